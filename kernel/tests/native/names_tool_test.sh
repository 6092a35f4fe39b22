#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl mv, ln, chmod, chown on an unused volume: they behave like the coreutils, and a
# refused command changes nothing.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# clean [VOLUME]: fsck finds nothing
clean() {
	expect 0 "$fsck" -n "${1:-v.img}"
	says ': clean'
}

# stat_of EXPRESSION PATH: evaluates EXPRESSION with d set to the output of `stat PATH`.
stat_of() {
	"$ctl" -j stat v.img "$2" | pick "$1"
}

# is PATH EXPRESSION VALUE: stat_of gives VALUE
is() {
	[[ $(stat_of "$2" "$1") == "$3" ]] || fail "$1: $2 is $(stat_of "$2" "$1"), not $3"
	checks=$((checks + 1))
}

# gone PATH: PATH does not exist
gone() {
	refuses 1 'No such file' "$ctl" stat v.img "$1"
}

# holds PATH TEXT: the file's content is TEXT
holds() {
	expect 0 "$ctl" cat v.img "$1"
	[[ $(<out) == "$2" ]] || fail "$1 holds '$(<out)', not '$2'"
	checks=$((checks + 1))
}

# unchanged STATUS PATTERN COMMAND...: fails unless the command is refused, and the tree is
# unchanged.
unchanged() {
	local before after
	before=$("$ctl" ls -lr v.img /)
	refuses "$@"
	after=$("$ctl" ls -lr v.img /)
	[[ $before == "$after" ]] || fail "a refused command has changed the tree: ${*:3}"
	checks=$((checks + 1))
}

"$mkfs" -q --size 32M --phys 16G v.img
for name in a b c d e f; do echo $name >$name; done
mkdir -p tree/sub/empty tree/full
for name in one two; do echo $name >tree/sub/$name; done
echo x >tree/full/x
ln -s sub/one tree/link
ln -s /none tree/dangling
ln -s sub tree/subs
ln -s ../../../../../../../../../../etc tree/out
"$ctl" put -r v.img tree /
for name in a b c d e f; do "$ctl" put v.img $name /$name; done

# --- arguments -------------------------------------------------------------------------------

for command in mv ln chmod chown; do
	refuses 2 "$command: takes VOLUME" "$ctl" $command
	refuses 2 "$command: takes VOLUME" "$ctl" $command v.img x
	refuses 2 "$command: takes no --json" "$ctl" -j $command v.img x y
done
refuses 2 'mv: takes no --recursive' "$ctl" mv -r v.img /a /b
refuses 2 'ln: takes no --no-clobber' "$ctl" ln -n v.img /a /b
refuses 2 'ls: takes no --symbolic' "$ctl" ls -s v.img
refuses 2 '-T: takes one source' "$ctl" mv -T v.img /a /b /tree
refuses 2 '-f: give --force' "$ctl" mv -f v.img /a /b

# --- mv --------------------------------------------------------------------------------------

number=$(stat_of 'd["inode"]' /a)
expect 0 "$ctl" mv v.img /a /new
gone /a
is /new 'd["inode"]' "$number"
expect 0 "$ctl" mv v.img /new /tree # into a directory
is /tree/new 'd["inode"]' "$number"
expect 0 "$ctl" mv v.img /tree/new /tree/subs/ # into a directory, through a link
is /tree/sub/new 'd["inode"]' "$number"
expect 0 "$ctl" mv v.img /b /c /tree/sub
holds /tree/sub/b b
holds /tree/sub/c c
free=$("$ctl" -j df v.img | pick 'd["inodes_used"]')
expect 0 "$ctl" mv v.img /d /e # replaces the target, which is freed
holds /e d
gone /d
[[ $("$ctl" -j df v.img | pick 'd["inodes_used"]') -eq $((free - 1)) ]] ||
	fail "the replaced file is not freed"
clean
unchanged 1 '/f: File exists' "$ctl" mv -n v.img /e /f
expect 0 "$ctl" mv -n v.img /e /g
holds /g d
unchanged 1 '/none: No such file' "$ctl" mv v.img /none /f
unchanged 1 'No such file' "$ctl" mv v.img /f /none/g
unchanged 1 '/none: No such file' "$ctl" mv v.img /f /g /none
unchanged 1 '/g: Not a directory' "$ctl" mv v.img /f /tree /g
unchanged 1 '/f/: Not a directory' "$ctl" mv v.img /f/ /g
unchanged 1 '/h/: Not a directory' "$ctl" mv v.img /f /h/
unchanged 1 '/f: is the same file as /f' "$ctl" mv v.img /f /f
unchanged 1 '/f: is the same file as /f' "$ctl" mv v.img /f /
unchanged 1 'cannot be moved below itself, to /tree/sub/tree' "$ctl" mv v.img /tree /tree/sub
unchanged 1 'cannot be moved below itself, to /tree/sub/empty/sub' "$ctl" mv v.img /tree/sub /tree/sub/empty
unchanged 1 'is the root directory' "$ctl" mv v.img / /tree
unchanged 1 'give the directory.s own name' "$ctl" mv v.img /tree/sub/.. /tree
unchanged 1 'is a number, not a name' "$ctl" mv v.img "<$number>" /h
unchanged 1 'the path is empty' "$ctl" mv v.img '' /h
unchanged 1 'the path is empty' "$ctl" mv v.img /f ''
unchanged 1 'File name too long' "$ctl" mv v.img /f "/$(printf 'x%.0s' $(seq 256))"
unchanged 1 '/tree: Is a directory' "$ctl" mv -T v.img /f /tree
unchanged 1 '/f: Not a directory' "$ctl" mv -T v.img /tree /f
unchanged 1 '/tree/full: Directory not empty' "$ctl" mv -T v.img /tree/sub /tree/full
unchanged 1 '/tree/full/tree: No such file' "$ctl" stat v.img /tree/full/tree
expect 0 "$ctl" mv -T v.img /tree/full /tree/sub/empty # replaces an empty directory
holds /tree/sub/empty/x x
gone /tree/full
is /tree/sub/empty 'd["parent"]' "$(stat_of 'd["inode"]' /tree/sub)"
expect 0 "$ctl" mv v.img /tree/link /tree/sub/link # moves the link itself
is /tree/sub/link 'd["target"]' sub/one
# Two sources have the same name: the second would replace the first.
expect 0 "$ctl" mkdir v.img /to /m /n
expect 0 "$ctl" put v.img f /m/f
expect 0 "$ctl" put v.img a /n/f
expect 1 "$ctl" mv v.img /m/f /n/f /to
complains '/n/f: would replace a file that was just moved there'
holds /to/f f
holds /n/f a
# One failure does not stop the other moves; a file that an earlier call moved is replaced.
expect 1 "$ctl" mv v.img /none /n/f /g /to
complains '/none: No such file'
holds /to/f a
holds /to/g d
gone /n/f
clean

# --- ln --------------------------------------------------------------------------------------

number=$(stat_of 'd["inode"]' /to/g)
expect 0 "$ctl" ln v.img /to/g /h
is /h '(d["inode"], d["links"])' "($number, 2)"
expect 0 "$ctl" ln v.img /h /f /n
is /n/h 'd["links"]' 3
is /n/f 'd["links"]' 2
expect 0 "$ctl" ln v.img "<$number>" /by-number
is /by-number '(d["inode"], d["links"])' "($number, 4)"
unchanged 1 'is a number, not a name; give the name, too' "$ctl" ln v.img "<$number>" /to
unchanged 1 '/h: File exists' "$ctl" ln v.img /f /h
unchanged 1 '/n/h: File exists' "$ctl" ln v.img /h /n
unchanged 1 '/tree: is a directory, which has one name' "$ctl" ln v.img /tree /i
unchanged 1 '/tree: File exists' "$ctl" ln -T v.img /f /tree
unchanged 1 '/i/: No such file' "$ctl" ln v.img /f /i/
unchanged 1 '/none: No such file' "$ctl" ln v.img /none /i
unchanged 1 '/h: is the same file as /by-number' "$ctl" mv v.img /h /by-number
expect 0 "$ctl" ln v.img /tree/dangling /tree/again # the link itself now has two names
is /tree/again '(d["target"], d["links"])' "('/none', 2)"
expect 0 "$ctl" ln -s v.img sub/one /tree/sym
holds /tree/sym one
unchanged 1 '/to/f: File exists' "$ctl" ln -s v.img ../f /to
expect 0 "$ctl" ln -s v.img ../to/f ../h /m
is /m/f 'd["target"]' ../to/f
holds /m/h d
unchanged 1 'No such file' "$ctl" ln -s v.img '' /i
unchanged 1 '/i: File name too long' "$ctl" ln -s v.img "$(printf 'x%.0s' $(seq 4096))" /i
expect 0 "$ctl" ln -s v.img "$(printf 'x%.0s' $(seq 4095))" /i
expect 0 "$ctl" rm v.img /i
# the link does not lead to a file outside
refuses 1 'No such file' "$ctl" cat v.img /tree/out/passwd
expect 0 "$ctl" put v.img c /moving
expect 0 "$ctl" mv v.img /moving /tree/out # mv replaces the link, and does not follow it
is /tree/out 'd["type"]' file
clean

# --- chmod -----------------------------------------------------------------------------------

umask 022
# changed MODE CHANGE...: each change gives the same mode as chmod(1) outside.
changed() {
	local mode from=$1 path
	for mode in "${@:2}"; do
		for path in /mode /modes; do
			rm -rf outside
			if [[ $path == /mode ]]; then touch outside; else mkdir outside; fi
			chmod "0000$from" outside
			chmod -- "$mode" outside
			expect 0 "$ctl" chmod v.img "0000$from" $path
			expect 0 "$ctl" chmod v.img -- "$mode" $path
			is $path 'd["mode"].lstrip("0") or "0"' "$(stat -c %a outside)"
		done
	done
}
expect 0 "$ctl" put v.img f /mode
expect 0 "$ctl" mkdir v.img /modes
changed 644 755 0 u+x g=u,o-r a+X +x +w = o=t u+s,g+s +t ug=rw,o= a=r-w+x u=g,g=o
changed 6755 0755 00755 u-s g=rx 2755 u=
changed 751 go-x+w +X g+s,g-x
now=$(stat_of 'd["changed"]' /mode)
expect 0 "$ctl" chmod v.img 600 /mode
[[ $(stat_of 'd["changed"]' /mode) -gt $now ]] || fail "chmod has not changed the ctime"
for bad in 8 77777 -1 u z=r 'u+z,' ',u+x' u++q 0x1 '' 'u+x,'; do
	refuses 2 'must be 0 to 7777' "$ctl" chmod v.img -- "$bad" /mode
done
unchanged 1 '/none: No such file' "$ctl" chmod v.img 600 /none
link=$(stat_of 'd["inode"]' /tree/sym)
unchanged 1 'is a symbolic link, which has no mode of its own' "$ctl" chmod v.img 600 "<$link>"
expect 0 "$ctl" chmod v.img 640 /tree/sym # through a link
is /tree/sub/one 'd["mode"]' 0640
expect 0 "$ctl" chmod -R v.img u=rwX,go= /tree
is /tree 'd["mode"]' 0700
is /tree/sub 'd["mode"]' 0700
is /tree/sub/two 'd["mode"]' 0600
is /tree/sub/one 'd["mode"]' 0600
is /tree/sub/link 'd["mode"]' 0777 # links keep their mode
expect 0 "$ctl" chmod -r v.img 755 /tree/sub
is /tree/sub/two 'd["mode"]' 0755
clean

# --- chown -----------------------------------------------------------------------------------

expect 0 "$ctl" chmod v.img 6755 /mode
expect 0 "$ctl" chown v.img 107:108 /mode
is /mode '(d["uid"], d["gid"], d["mode"])' "(107, 108, '0755')"
# without execute permission of the group, the set-group-ID bit has another meaning
expect 0 "$ctl" chmod v.img 6745 /mode
expect 0 "$ctl" chown v.img 5 /mode
is /mode '(d["uid"], d["gid"], d["mode"])' "(5, 108, '02745')"
expect 0 "$ctl" chown v.img :6 /mode
is /mode '(d["uid"], d["gid"])' '(5, 6)'
expect 0 "$ctl" chown v.img root:root /mode
is /mode '(d["uid"], d["gid"])' '(0, 0)'
expect 0 "$ctl" chmod v.img 2775 /modes
expect 0 "$ctl" chown v.img 4294967294:4294967294 /modes
is /modes '(d["uid"], d["gid"], d["mode"])' "(4294967294, 4294967294, '02775')"
for bad in '' : 1: -1 4294967295 nosuchuser 1:nosuchgroup 1:2:3 1.2; do
	refuses 2 'must be USER' "$ctl" chown v.img -- "$bad" /mode
done
unchanged 1 '/none: No such file' "$ctl" chown v.img 1:1 /none
expect 0 "$ctl" chown -R v.img 9:9 /tree
is /tree/sub/two '(d["uid"], d["gid"])' '(9, 9)'
is /tree/sub/link 'd["uid"]' 9 # changes the links themselves
is /h 'd["uid"]' "$(stat -c %u f)"
expect 0 "$ctl" ls -lr v.img /tree
[[ $(grep -cE ' 9 +9 ' out) -eq $(grep -cvE '^$|:$' out) ]] ||
	fail "chown -R has not changed all entries"
clean

# --- ACLs, capabilities, flags ---------------------------------------------------------------

python3 -c '
import io, tarfile
def add(name, **pax):
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid, info.size = 0o754, 1, 2, 2
    info.pax_headers = pax
    tar.addfile(info, io.BytesIO(b"x\n"))
tar = tarfile.open("attrs.tar", "w", format=tarfile.PAX_FORMAT)
add("acl", **{"SCHILY.acl.access": "user::rwx,user:7:rwx,group::r-x,mask::r-x,other::r--"})
add("cap", **{"SCHILY.xattr.security.capability": "\1" * 20, "SCHILY.xattr.user.keep": "me"})
add("frozen", **{"SCHILY.fflags": "schg"})
add("grows", **{"SCHILY.fflags": "sappnd"})
tar.close()'
expect 0 "$ctl" put --tar v.img attrs.tar /
expect 0 "$ctl" chmod v.img 610 /acl
is /acl 'd["mode"]' 0610
expect 0 "$ctl" get --tar v.img /acl got.tar
python3 -c '
import sys, tarfile
acl = tarfile.open("got.tar").getmembers()[0].pax_headers["SCHILY.acl.access"]
sys.exit(acl != "user::rw-,user:7:rwx,group::r-x,mask::--x,other::---")' ||
	fail "the archive has another ACL"
expect 0 "$ctl" chown v.img 3 /cap
is /cap '[x["name"] for x in d["xattrs"]]' "['user.keep']"
for path in /frozen /grows; do
	unchanged 1 "$path: is immutable or append-only" "$ctl" chmod v.img 600 $path
	unchanged 1 "$path: is immutable or append-only" "$ctl" chown v.img 600 $path
	unchanged 1 "$path: is immutable or append-only" "$ctl" mv v.img $path /j
	unchanged 1 "$path: is immutable or append-only" "$ctl" mv v.img /h $path
	unchanged 1 "$path: is immutable or append-only" "$ctl" ln v.img $path /j
done
clean

# --- a full volume ---------------------------------------------------------------------------

"$mkfs" -q --size 16M --phys 16G full.img
"$ctl" put full.img f /f
"$ctl" mkdir full.img /d
expect 0 "$ctl" mkdir full.img /n
free=$("$ctl" -j df full.img | pick 'd["free"]')
for ((size = free - 64 * 1024; size > 0; size -= 64 * 1024)); do
	head -c "$size" /dev/zero | tr '\0' x >much
	! "$ctl" put full.img much /much 2>err || break
done
for i in $(seq 40); do
	truncate -s 4096 page
	head -c 4096 /dev/zero | tr '\0' x >page
	"$ctl" put full.img page "/n/$i" 2>err || break
done
[[ -s err ]] || fail "the volume did not become full"
# A name that fits into an existing page succeeds; a name that needs a new page is refused in one
# line.
expect '*' "$ctl" mv full.img /f /d
[[ ! -s err ]] || complains 'No space left in the volume'
expect 0 "$ctl" ls -r full.img
[[ $(grep -c "^f$" out) -eq 1 ]] || fail "the moved file is lost, or has two names"
expect 0 "$ctl" chmod full.img 600 /much
expect 0 "$ctl" chown full.img 5:5 /much
expect 0 "$ctl" mv full.img /much /less
clean full.img

echo "$checks checks"
