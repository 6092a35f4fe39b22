#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl find and du, compared with find(1) and du(1) on the same tree, and on damaged, hostile
# and large volumes.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# alike TEST...: fails unless stargatectl find and find(1) print the same results.
alike() {
	expect 0 "$ctl" find v.img /tree "$@"
	LC_ALL=C sort out >ours
	find tree "$@" -printf '/%p\n' | sed 's/\\/&&/g' | LC_ALL=C sort >theirs
	same ours theirs
}

# found LINE...: the last command printed these lines, in this order.
found() {
	printf '%s\n' "$@" >want
	same out want
}

mkdir -p tree/a/b/c tree/d
for i in 0 1 511 512 513 1024 5000 1048576 1048577; do head -c $i /dev/zero >tree/a/size-$i; done
for name in .hidden a.c b.c 'two words' 'back\slash' 'star*'; do echo x >"tree/d/$name"; done
ln tree/d/a.c tree/a/b/other
ln tree/d/a.c tree/a/b/third
ln -s ../a tree/d/link
mkfifo tree/d/pipe
[[ $(id -u) -ne 0 ]] || { chown 7:8 tree/a tree/d/b.c && chown -h 9 tree/d/link; }
"$mkfs" -q --size 64M --phys 16G v.img
"$ctl" put -r v.img tree /

# --- find ------------------------------------------------------------------------------------

alike
for pattern in '*' 'a*' '*.c' '?.c' '.*' '[ab].c' '*\\*' 'star\*' tree none; do alike -name "$pattern"; done
for types in f d l p f,d d,l,p s,b,c; do alike -type $types; done
for size in 0 1 2 -2 +1 513c -513c +512c 1k 1M -1M +1M 2M +4w 3b; do alike -size $size -type f; done
for links in 1 2 3 +1 -3; do alike -links $links -type f; done
for depth in 0 1 2 3 1024; do alike -maxdepth $depth; done
for owner in 7 9 0 root; do alike -user $owner; done
for owner in 8 0; do alike -group $owner; done
alike -name '*c' -type f -links +1
alike -maxdepth 3 -type d -name '?'
expect 0 "$ctl" find v.img
says '^/$'
says '^/tree/a/b/c$'
number=$("$ctl" -j stat v.img /tree/d/a.c | pick 'd["inode"]')
expect 0 "$ctl" find v.img -inum "$number"
found /tree/a/b/other /tree/a/b/third /tree/d/a.c
expect 0 "$ctl" find v.img /tree/d/pipe
found /tree/d/pipe
expect 0 "$ctl" find v.img /tree/d/link # finds the link itself
found /tree/d/link
expect 0 "$ctl" find v.img /tree/d/link/ -maxdepth 1 -type d
found /tree/d/link/ /tree/d/link/b
expect 0 "$ctl" find v.img '<1>' -maxdepth 1
found '<1>' '<1>/tree'
expect 0 "$ctl" find v.img /tree -name '*a*' -print0
find tree -name '*a*' -printf '/%p\0' | LC_ALL=C sort -z >theirs
LC_ALL=C sort -z out >ours
same ours theirs
expect 0 "$ctl" -j find v.img /tree -name '*.c'
json '[x["path"] for x in d["found"]] == ["/tree/d/a.c", "/tree/d/b.c"] and
	d["found"][0]["links"] == 3 and d["found"][0]["type"] == "file"'
expect 0 "$ctl" find --json v.img -name none
json 'd == {"found": []}'

cp v.img before
refuses 2 'find: takes VOLUME' "$ctl" find
refuses 2 'find: takes VOLUME' "$ctl" find v.img / /tree
refuses 2 "find: there is no test '-mtime'" "$ctl" find v.img -mtime 1
refuses 2 "find: there is no test 'more'" "$ctl" find v.img -name x more
refuses 2 "find: there is no test '-j'" "$ctl" find v.img -name x -j
refuses 2 "an argument is missing behind '-name'" "$ctl" find v.img -name
refuses 2 'find: takes no --recursive' "$ctl" find -r v.img
refuses 2 'either --json or -print0' "$ctl" -j find v.img -print0
for bad in '-type x' '-type f,' '-type ff' '-inum x' '-inum --1' '-size 1x' '-size +' '-links 1.5' \
	'-user nosuchuser' '-maxdepth -1' '-maxdepth 1025'; do
	# shellcheck disable=SC2086
	refuses 2 "find: ${bad% *} '.*': must be " "$ctl" find v.img $bad
done
many=()
for i in $(seq 65); do many+=(-name x); done
refuses 2 'more than 64 tests' "$ctl" find v.img "${many[@]}"
refuses 1 '/none: No such file' "$ctl" find v.img /none
same v.img before

# --- du --------------------------------------------------------------------------------------

# blocks PATH: prints the number of pages of a file's data and tables, or of a directory's names
blocks() {
	"$ctl" -j stat v.img "$1" | pick 'd["pages"]'
}

sum=0
for path in a a/b a/b/c a/size-{0,1,511,512,513,1024,5000,1048576,1048577} d d/.hidden d/a.c d/b.c \
	'd/two words' 'd/back\slash' 'd/star*' d/link d/pipe ''; do
	sum=$((sum + $(blocks "/tree/$path")))
done
expect 0 "$ctl" du -s v.img /tree
found "$((sum * 4))	/tree"
expect 0 "$ctl" -j du -s v.img /tree
json "d == {'used': [{'path': '/tree', 'bytes': $((sum * 4096))}]}"
expect 0 "$ctl" du v.img /tree
cut -f 2 out | sed 's|^/||' >ours
(cd "$dir" && find tree -depth -type d | LC_ALL=C sort) >theirs
LC_ALL=C sort ours >sorted
same sorted theirs
[[ $(tail -1 out) == "$((sum * 4))	/tree" ]] || fail "the last line is not the sum"
expect 0 "$ctl" du -a v.img /tree
[[ $(grep -c 'other$\|third$\|a\.c$' out) -eq 1 ]] ||
	fail "du lists a file with hard links more than once"
[[ $(wc -l <out) -eq $(($(find tree | wc -l) - 2)) ]] || fail "du -a does not list all files"
expect 0 "$ctl" du -h v.img /tree/a/size-1048576
says '^1 MiB	|^1\.0 MiB	'
expect 0 "$ctl" du --human-readable --summarize v.img
refuses 2 'either --all or --summarize' "$ctl" du -as v.img
refuses 2 'du: takes VOLUME' "$ctl" du
refuses 2 'du: takes no --recursive' "$ctl" du -r v.img
refuses 1 '/none: No such file' "$ctl" du v.img /none
expect 0 "$ctl" ls -h # all other commands still take -h as the help option
says '^Usage: '
expect 0 "$ctl" du --help
says '^Usage: '

# --- hostile names ---------------------------------------------------------------------------

evil=$'e\e[2J\nroot: \x07'
mkdir -p evil/"$evil"
echo x >evil/"$evil/$evil"
"$ctl" put -r v.img evil /
for command in find 'du -a'; do
	# shellcheck disable=SC2086
	expect 0 "$ctl" $command v.img /evil
	says 'e\\x1b\[2J\\x0aroot: \\x07/e\\x1b\[2J\\x0aroot: \\x07$'
	! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out ||
		fail "a name with terminal commands reaches the terminal"
	[[ $(wc -l <out) -eq 3 ]] || fail "a name forges a line of the output"
done

# --- damage ----------------------------------------------------------------------------------

# offset PATH FIELD: prints the offset of a word of the inode's record.
offset() {
	echo $(($("$ctl" -j stat v.img "$1" | pick 'd["record"]') + $2))
}
# word FILE OFFSET VALUE: stores a word
word() {
	python3 -c 'import struct, sys
f = open(sys.argv[1], "r+b")
f.seek(int(sys.argv[2]))
f.write(struct.pack("<Q", int(sys.argv[3], 0)))' "$@"
}

cp v.img damaged.img
number=$("$ctl" -j stat v.img /tree/d/b.c | pick 'd["inode"]')
word damaged.img "$(offset /tree/d/b.c 24)" 0x100000001 # makes the inode's type unknown
expect 1 "$ctl" find damaged.img -inum "$number"
found /tree/d/b.c
complains '/tree/d/b.c: damaged'
expect 1 "$ctl" find damaged.img -name b.c
found /tree/d/b.c
expect 1 "$ctl" find damaged.img -name b.c -type f
[[ ! -s out ]] || fail "an unreadable inode passes the test -type f"
expect 1 "$ctl" find damaged.img /tree
says '^/tree/d/star\*$' # find continues with the next entry
expect 1 "$ctl" du -s damaged.img
complains '/tree/d/b.c: damaged'
cp v.img damaged.img
word damaged.img "$(offset /tree/d 48)" 0x12345001 # makes the index invalid
expect 1 "$ctl" find damaged.img /tree -name 'size-0'
found /tree/a/size-0
complains '/tree/d: damaged'
cp v.img damaged.img
# the record counts more pages than the volume has
word damaged.img "$(offset /tree/a/size-1 56)" 0xffffffffffff
expect 0 "$ctl" du -s damaged.img /tree/a
[[ $(cut -f 1 out) -le $((2 * 65536)) ]] || fail "du prints a forged count of pages"

# A directory contains itself: find reads each directory once.
cp v.img circle.img
"$ctl" put circle.img tree/d/a.c /tree/a/b/c/x
python3 - circle.img "$("$ctl" -j stat circle.img /tree/a | pick 'd["inode"]')" <<'PY'
import struct, sys
f = open(sys.argv[1], "r+b")
data = f.read()
at = data.index(b"x\0\0\0\0\0\0\0", data.index(b"TKBS"[::-1]))
while True:	# the name "x" of one byte: its dirent's second word
    ref = struct.unpack_from("<Q", data, at - 8)[0]
    if ref >> 40 & 0xff == 1 and ref >> 48 == 8:
        break
    at = data.index(b"x\0\0\0\0\0\0\0", at + 1)
f.seek(at - 8)
f.write(struct.pack("<Q", int(sys.argv[2]) | 1 << 40 | 4 << 48))
PY
for command in find du 'find -j'; do
	# shellcheck disable=SC2086
	expect 1 timeout 20 "$ctl" $command circle.img /tree
	complains '/tree/a/b/c/x: is a directory that has been met by another name'
done
expect 1 timeout 20 "$ctl" chmod -R circle.img 700 /tree
complains 'met by another name'

# --- large volumes ---------------------------------------------------------------------------

"$mkfs" -q --size 128M --phys 16G large.img
python3 -c '
import io, tarfile
tar = tarfile.open("many.tar", "w")
for i in range(60000):
    tar.addfile(tarfile.TarInfo("many/name-%d" % i))
name = "deep"
for i in range(900):
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    tar.addfile(info)
    name += "/d"
tar.close()'
expect 0 "$ctl" put --tar large.img many.tar /
expect 0 timeout 60 "$ctl" find large.img -name 'name-*'
[[ $(wc -l <out) -eq 60000 ]] || fail "$(wc -l <out) names of 60000"
expect 0 timeout 60 "$ctl" find large.img /deep -type d
[[ $(wc -l <out) -eq 900 ]] || fail "$(wc -l <out) directories of 900"
expect 0 timeout 60 "$ctl" du -s large.img
# The reader closes the pipe: find ends without an error message.
"$ctl" find large.img 2>err | head -1 >/dev/null || true
[[ ! -s err ]] || fail "find complains about a closed pipe"

echo "$checks checks"
