#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl on full, foreign, damaged and used volumes, and with wrong arguments: each error is
# one line with the right exit status, and no data is lost.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# make_volume FILE SIZE: makes a volume.
make_volume() {
	rm -f "$1"
	expect 0 "$mkfs" -q --size "$2" --phys 16G "$1"
}

clean() {
	expect 0 "$fsck" -n v.img
	says ': clean'
}

# inside PATH FILE: PATH in the volume has the bytes of FILE.
inside() {
	expect 0 "$ctl" cat v.img "$1"
	same out "$2"
}

number_of() {
	"$ctl" -j stat v.img "$1" | pick 'd["inode"]'
}

names() {
	"$ctl" ls v.img "$1"
}

make_volume v.img 32M
echo old >old
echo new >new

# --- the command line -----------------------------------------------------------------------

cp v.img before
refuses 2 'which command' "$ctl"
refuses 2 "there is no command 'nonsense'" "$ctl" nonsense v.img
refuses 2 "there is no command 'v.img'" "$ctl" v.img
refuses 2 "there is no command ''" "$ctl" ''
for command in info df slots look systems ls stat cat get put mkdir rm label dump; do
	refuses 2 "$command: takes VOLUME" "$ctl" "$command"
done
for command in stat cat get put mkdir rm dump; do
	refuses 2 "$command: takes VOLUME" "$ctl" "$command" v.img
done
refuses 2 'info: takes VOLUME;' "$ctl" info v.img more
refuses 2 'stat: takes VOLUME PATH' "$ctl" stat v.img / /
refuses 2 'put: takes VOLUME FROM' "$ctl" put v.img a b c
for bad in 'cat -j' 'cat -r' 'info -l' 'ls -p' 'ls --force' 'rm -p' 'put -l' 'mkdir -r' 'label -r'; do
	# shellcheck disable=SC2086
	refuses 2 "${bad% *}: takes no --" "$ctl" $bad v.img /
done
refuses 2 '-f: give --force' "$ctl" rm -rf v.img /
refuses 2 "there is no option '-x'" "$ctl" -lx ls v.img
refuses 2 'takes no argument' "$ctl" --json=1 ls v.img
refuses 2 "there is no structure 'sup'" "$ctl" dump v.img sup
refuses 2 'dump super: takes VOLUME super;' "$ctl" dump v.img super more
refuses 2 'dump inode: takes VOLUME inode PATH' "$ctl" dump v.img inode
refuses 2 'dump bucket: takes VOLUME bucket OFFSET' "$ctl" dump v.img bucket
for bad in '' -1 16 abc 18446744073709551616; do
	refuses 1 "FIRST '.*': must be 0 to 15" "$ctl" -- dump v.img chunks "$bad"
	refuses 1 "OFFSET '.*': must be a page" "$ctl" -- dump v.img bucket "$bad"
done
refuses 1 "COUNT '0': must be 1 or more" "$ctl" dump v.img chunks 0 0
expect 0 "$ctl" -j dump v.img chunks 15 99999
json 'len(d["chunks"]) == 1'
for bad in "$(printf 'x%.0s' $(seq 64))" $'two\nlines' $'\xff' $'\e[2J'; do
	refuses 2 "label '.*': must be up to 63 bytes" "$ctl" label v.img "$bad"
done

# --- files that are no volumes --------------------------------------------------------------

mkfifo pipe
refuses 1 'pipe: is a FIFO, not a file or device' "$ctl" ls pipe
refuses 1 '\.: is a directory, not a file or device' "$ctl" ls .
refuses 1 'none: cannot be opened: No such file' "$ctl" ls none
refuses 1 'cannot be opened: No such file' "$ctl" ls ''
refuses 1 '/dev/null: is a character device, but not a device-dax node' "$ctl" ls /dev/null
refuses 1 'old: has 4 bytes; the smallest volume is 16 MiB' "$ctl" put old new
truncate -s 32M foreign
refuses 1 'no StargateFS here: check the device' "$ctl" info foreign
poke foreign 0x438 '\x53\xef'
cp foreign foreign.before
refuses 1 'foreign: holds ext2, ext3 or ext4, not a StargateFS' "$ctl" info foreign
refuses 1 'foreign: holds ext2, ext3 or ext4, not a StargateFS' "$ctl" put foreign old
same foreign foreign.before
cp v.img short
truncate -s 20M short
cp short short.before
refuses 1 'short: cut short: the volume has 32 MiB, and only 20 are here' "$ctl" ls short
refuses 1 'short: cut short: the volume has 32 MiB, and only 20 are here' "$ctl" put short old
same short short.before
rm foreign* short*

# --- invalid paths --------------------------------------------------------------------------

expect 0 "$ctl" mkdir v.img /dir
expect 0 "$ctl" put v.img old /file
mkdir -p tree/links
ln -s /file tree/links/file
ln -s ../links tree/links/dir
ln -s loop tree/links/loop
mkfifo tree/pipe
expect 0 "$ctl" put -r v.img tree /
refuses 1 '<0>: there is no such inode' "$ctl" cat v.img '<0>'
refuses 1 '<99>: there is no such inode' "$ctl" stat v.img '<99>'
for bad in '<' '<>' '<-1>' '< 1>' '<1' '<1>/' '<0x1>' '<1>/file' '<18446744073709551616>' '<x>'; do
	refuses 1 'is not an inode number' "$ctl" stat v.img "$bad"
done
refuses 1 'No such file or directory' "$ctl" ls v.img ''
refuses 1 '/none: No such file or directory' "$ctl" ls v.img /none
refuses 1 '/none: No such file or directory' "$ctl" -j ls v.img /none
refuses 1 '/file/: Not a directory' "$ctl" cat v.img /file/
refuses 1 'Not a directory' "$ctl" cat v.img /file/more
refuses 1 '/dir: Is a directory' "$ctl" cat v.img /dir
refuses 1 '/tree/pipe: is a fifo, which has no content' "$ctl" cat v.img /tree/pipe
refuses 1 'Too many levels of symbolic links' "$ctl" cat v.img /tree/links/loop
refuses 1 'File name too long' "$ctl" cat v.img "/$(printf 'x%.0s' $(seq 256))"
inside /tree/links/file old
inside /tree/links/dir/dir/file old
expect 0 "$ctl" ls v.img '<1>'
cp v.img before
refuses 1 '/: is the root directory' "$ctl" rm -r v.img /
refuses 1 '//: is the root directory' "$ctl" rm -r v.img //
for bad in /.. /. /dir/.. /dir/. ..; do
	refuses 1 'give the directory.s own name' "$ctl" rm -r v.img "$bad"
done
refuses 1 'is a number, not a name' "$ctl" rm v.img '<2>'
refuses 1 'the path is empty' "$ctl" rm v.img ''
refuses 1 '/file/: Not a directory' "$ctl" rm v.img /file/
refuses 1 '/dir: Is a directory; give -r' "$ctl" rm v.img /dir
for bad in / /.. /dir /dir/ /file; do
	refuses 1 'File exists' "$ctl" mkdir v.img "$bad"
done
expect 0 "$ctl" mkdir -p v.img / /.. /dir /dir/../dir
refuses 1 '/file: File exists' "$ctl" mkdir -p v.img /file
refuses 1 '/none/: No such file' "$ctl" mkdir v.img /none/dir
refuses 1 'No such file|path is empty' "$ctl" mkdir v.img ''
refuses 1 'is a number, not a name' "$ctl" mkdir v.img '<77>'
refuses 1 '/none/: No such file' "$ctl" put v.img old /none/file
refuses 1 'Not a directory' "$ctl" put v.img old /file/x
refuses 1 '/none/: No such file' "$ctl" put v.img old /none/
refuses 1 'none: No such file' "$ctl" put v.img none
refuses 1 'tree: Is a directory; give -r' "$ctl" put v.img tree
refuses 1 'standard input has no name' "$ctl" put v.img -
refuses 1 'standard input has no name' "$ctl" put v.img - /dir
refuses 1 'old: the volume has a symlink of that name' "$ctl" put v.img old /tree/links/file
refuses 1 'v.img: is the volume itself' "$ctl" put v.img v.img
refuses 1 'is a number, not a name' "$ctl" put v.img old '<99>'
"${python[@]}" -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
refuses 1 'socket: is a socket' "$ctl" put v.img socket
clean
[[ $("$ctl" ls -r v.img | sort | md5sum) == $("$ctl" ls -r before | sort | md5sum) ]] ||
	fail "a refused command has changed the volume"
expect 0 "$ctl" put v.img old /..
expect 0 "$ctl" put v.img old /dir/.
expect 0 "$ctl" put v.img old '<1>'
printf 'dir\nfile\nold\ntree\n' | cmp -s - <(names /) ||
	fail "put to /.. does not store into the root directory"
[[ $(names /dir) == old ]] || fail "put to /dir/. does not store into /dir"
refuses 1 'name the target' "$ctl" get -r v.img /
refuses 1 'name the target' "$ctl" get -r v.img '<1>'
refuses 1 'name the target' "$ctl" get -r v.img /dir/..
refuses 1 'to write to standard output, use cat' "$ctl" get v.img /old -
refuses 1 '/none: No such file' "$ctl" get v.img /none
refuses 1 'stargatectl: /dir: Is a directory; give -r' "$ctl" get v.img /dir
[[ ! -e none ]] || fail "get has made a file without a source"
clean

# --- put replaces a file only after the new one is complete ----------------------------------

make_volume v.img 32M
expect 0 "$ctl" put v.img old /file
head -c 20M /dev/urandom >big
expect 0 "$ctl" put v.img big /big
used=$("$ctl" -j df v.img | pick 'd["used"], d["inodes_used"]')
head -c 20M /dev/zero | tr '\0' x >bigger
refuses 1 'bigger: No space left in the volume' "$ctl" put v.img bigger /big
inside /big big
refuses 1 'No space left in the volume' "$ctl" put v.img bigger /none
input=bigger refuses 1 '-: No space left in the volume' "$ctl" put v.img - /big
inside /big big
[[ $(names /) == $'big\nfile' ]] || fail "a failed put leaves a name"
[[ $("$ctl" -j df v.img | pick 'd["used"], d["inodes_used"]') == "$used" ]] ||
	fail "a failed put takes space"
clean

# A put is killed during the transfer.
mkfifo slow
exec 9<>slow
"$ctl" put v.img slow /big >/dev/null 2>&1 &
beater=$!
head -c 3M bigger >&9 # more than a pipe's capacity, so put has read most of it
kill -9 "$beater"
wait "$beater" 2>/dev/null || true
beater=
exec 9>&-
"$ctl" cat v.img /big >out 2>/dev/null
same out big
expect 1 "$fsck" -y v.img
says 'clean, recovered'
inside /big big
[[ $(names /) == $'big\nfile' ]] || fail "a killed put leaves a name"
[[ $("$ctl" -j df v.img | pick 'd["used"], d["inodes_used"]') == "$used" ]] ||
	fail "a killed put takes space"

# Some attributes stay, and others change with the new contents.
chmod 604 old
touch -d '2001-02-03 04:05:06.7 UTC' new
expect 0 "$ctl" put v.img old /file
before=$(number_of /file)
"$ctl" -j stat v.img /file >out
json "d['mode'] == '0644'" # the mode of the first file stays, and does not become 604
expect 0 "$ctl" put v.img new /file
inside /file new
"$ctl" -j stat v.img /file >out
json "d['inode'] != $before and d['links'] == 1 and d['modified'] == 981173106700000000"
expect 0 "$ctl" put v.img old /other
"$ctl" -j stat v.img /other >out
json "d['mode'] == '0604' and d['uid'] == $(id -u)"
clean

# --- trees ----------------------------------------------------------------------------------

# Hard links stay hard links, also after a second put. Other names of a replaced file keep its
# contents.
make_volume v.img 32M
rm -rf tree && mkdir -p tree/sub
echo one >tree/a
ln tree/a tree/sub/b
ln tree/a tree/c
ln -s a tree/link
ln tree/link tree/sub/link
echo alone >tree/d
for turn in 1 2 3; do
	expect 0 "$ctl" put -r v.img tree /
	"$ctl" -j stat v.img /tree/a >out
	json 'd["links"] == 3'
	[[ $(number_of /tree/a) == "$(number_of /tree/sub/b)" &&
		$(number_of /tree/a) == "$(number_of /tree/c)" &&
		$(number_of /tree/link) == "$(number_of /tree/sub/link)" &&
		$(number_of /tree/a) != "$(number_of /tree/d)" ]] ||
			fail "put number $turn: wrong hard links"
	"$ctl" -j df v.img >out
	json 'd["inodes_used"] == 6' # inodes of / tree sub a link d
	clean
done
expect 0 "$ctl" get -r v.img /tree back
[[ $(stat -c %i back/a) == "$(stat -c %i back/sub/b)" && $(stat -c %h back/a) -eq 3 ]] ||
	fail "get does not restore hard links"
expect 0 "$ctl" get -r v.img /tree/. back # a second get, over the first copy
[[ $(stat -c %h back/a) -eq 3 ]] || fail "a second get does not restore hard links"
diff -r --no-dereference tree back >/dev/null || fail "the tree differs after put and get"
expect 0 "$ctl" put v.img new /tree/a
inside /tree/c tree/a
inside /tree/a new
clean

# Putting a tree over itself needs room for one more file only, as each old file is freed
# immediately.
make_volume v.img 32M
rm -rf tree && mkdir tree
for i in 1 2 3; do head -c 6M /dev/urandom >"tree/$i"; done
for _ in 1 2 3; do expect 0 "$ctl" put -r v.img tree /; done
inside /tree/2 tree/2
clean
expect 0 "$ctl" rm -r v.img /tree

# Times out of range cause one warning. Times in range are kept, also of directories and links.
rm -rf tree && mkdir -p tree/dir
for i in 1 2 3; do touch -d '2500-01-01 UTC' "tree/late$i"; done
touch -d '1600-01-01 UTC' tree/early
touch -d '2200-01-01 UTC' tree/fits
ln -s fits tree/link
touch -h -d '1999-09-09 UTC' tree/link
touch -d '1985-05-05 UTC' tree/dir
expect 0 "$ctl" put -r v.img tree /times
complains 'warning: tree/.*: its time is outside the range .*1677 to 2262'
"$ctl" -j ls -r v.img /times >listing
pick 'json.dumps({e["name"]: e["mtime"] // 10**9 for e in d["directories"][0]["entries"]})' \
	<listing >out
json 'd["late2"] == 9223372035' # 2262-04-11 23:47:15, the latest time of a mount
if [[ $(stat -c %Y tree/early) -lt -9300000000 ]]; then # if the file system has such times
	json '-9223372040 < d["early"] < -9223372030'
fi
json "d['fits'] == $(date -d '2200-01-01 UTC' +%s) and d['link'] == $(date -d '1999-09-09 UTC' +%s)"
json "d['dir'] == $(date -d '1985-05-05 UTC' +%s)"
expect 0 "$ctl" get -r v.img /times back2
[[ $(stat -c %Y back2/link) == "$(stat -c %Y tree/link)" &&
	$(stat -c %Y back2/dir) == "$(stat -c %Y tree/dir)" ]] || fail "get does not restore times"

# Sparse files stay sparse. A huge hole takes no space, and a file of unknown size has data.
rm -rf tree && mkdir tree
truncate -s 1G tree/hole
printf x | dd of=tree/hole bs=1 seek=700000000 conv=notrunc status=none
expect 0 "$ctl" put -r v.img tree /sparse
"$ctl" -j stat v.img /sparse/hole >out
json 'd["size"] == 1 << 30 and d["pages"] < 10'
expect 0 "$ctl" get v.img /sparse/hole hole
same hole tree/hole
[[ $(stat -c %b hole) -lt 100 ]] || fail "get has filled a hole"
expect 0 "$ctl" put v.img /proc/version /version
cat /proc/version >version
inside /version version
expect 0 "$ctl" put v.img /dev/null /empty
expect 0 "$ctl" rm -r v.img /sparse

# All other types of files: put as parts of a tree, and again over the first copy.
rm -rf tree && mkdir tree
mkfifo tree/fifo
cp -a socket tree/socket
ln -s nowhere tree/link
[[ $(id -u) -ne 0 ]] || mknod tree/device c 10 200 2>/dev/null || true
for turn in 1 2; do
	expect 0 "$ctl" mkdir -p v.img /special
	expect 0 "$ctl" put -r v.img tree/. /special
	"$ctl" -j ls v.img /special >out
	json '{x["name"]: x["type"] for x in d["directories"][0]["entries"] if x["name"] != "device"} ==
		{"fifo": "fifo", "socket": "socket", "link": "symlink"}'
done
if [[ -e tree/device ]]; then
	"$ctl" -j stat v.img /special/device >out
	json 'd["type"] == "character device" and d["major"] == 10 and d["minor"] == 200'
	rm -rf back3
	refuses 1 'back3/device: is a character device; devices are not' "$ctl" get -r v.img /special back3
	[[ ! -e back3/device && -p back3/fifo && -S back3/socket ]] ||
		fail "get has made wrong special files"
fi

# put reports names that already exist with another type, and copies the rest of the tree.
rm -rf tree && mkdir -p tree
echo a >tree/a && mkdir tree/b && echo c >tree/c
expect 0 "$ctl" mkdir -p v.img /way/tree/a
expect 0 "$ctl" put v.img new /way/tree/b
expect 1 "$ctl" put -r v.img tree /way
[[ $(wc -l <err) -eq 2 ]] || fail "the errors are not two lines"
says 'tree/a: the volume has a directory of that name' err
says 'tree/b: the volume has a file of that name' err
inside /way/tree/c tree/c
inside /way/tree/b new

# get copies a file without set-ID bits, and does not follow a link in the target.
cp new suid && chmod 6755 suid
expect 0 "$ctl" put v.img suid /suid
expect 0 "$ctl" get v.img /suid suid.back
[[ $(stat -c %a suid.back) == 755 ]] || fail "get has kept set-ID bits"
mkdir -p trap victim
ln -s ../victim trap/way
expect 0 "$ctl" mkdir -p v.img /trap/way
expect 0 "$ctl" put v.img new /trap/way/file
refuses 1 'trap/way: Not a directory' "$ctl" get -r v.img /trap/. trap
[[ -z $(ls victim) ]] || fail "get has followed a link"
clean

# The volume becomes full in the middle of a tree: all copied files are complete.
make_volume v.img 16M
rm -rf tree && mkdir -p tree/sub
for i in $(seq 60); do head -c 400000 /dev/urandom >"tree/sub/$i"; done
refuses 1 'tree/sub/[0-9]+: No space left in the volume' "$ctl" put -r v.img tree /
there=$("$ctl" ls v.img /tree/sub)
[[ $(wc -l <<<"$there") -gt 20 && $(wc -l <<<"$there") -lt 60 ]] ||
	fail "wrong number of copied files: $there"
for name in $there; do inside "/tree/sub/$name" "tree/sub/$name"; done
clean
expect 0 "$ctl" rm -r v.img /tree
"$ctl" -j df v.img >out
json 'd["inodes_used"] == 1'

# --- output of names ------------------------------------------------------------------------

rm -rf tree && mkdir tree
weird=($'new\nline' 'new\x0aline' $'\xff\xfe' 'a -> b' ' blank ' $'\e[31mred' 'ünï' '"quoted"' $'back\\' '-rf'
	$'c1\xc2\x9b')
for name in "${weird[@]}"; do echo x >"tree/$name"; done
ln -s 'x -> y' 'tree/l -> m'
expect 0 "$ctl" put -r v.img tree /
[[ $(find tree -type f -printf x | wc -c) -eq ${#weird[@]} ]] ||
	fail "the test could not make all files"
expect 0 "$ctl" ls v.img /tree
[[ $(wc -l <out) -eq $((${#weird[@]} + 1)) ]] || fail "ls does not print one line for each name"
! grep -q $'\e\|\xff\|\xc2\x9b' out || fail "ls prints bytes that command a terminal"
while IFS= read -r line; do
	printf -v name %b "$line"
	[[ -e tree/$name || -L tree/$name ]] ||
		fail "ls prints '$line', which is no name in the tree"
	checks=$((checks + 1))
done <out
expect 0 "$ctl" ls -lr v.img /
says ' l\\x20-> m -> x\\x20-> y$'
expect 0 "$ctl" -j ls v.img /tree
json '{bytes.fromhex(e["name_hex"]) if "name_hex" in e else e["name"].encode()
	for e in d["directories"][0]["entries"]} == set(__import__("os").listdir(b"tree"))'
json '[e for e in d["directories"][0]["entries"] if "name_hex" in e][0]["name"] == "\ufffd\ufffd"'
for command in 'stat /tree' 'stat /' info df slots label 'ls -r /' 'dump super' 'dump hot' \
	'dump slots' 'dump journal' 'dump ledger' 'dump chunks' 'dump inode <1>' 'dump dir /tree' \
	'dump table /tree/-rf' 'dump xattr /'; do
	read -ra words <<<"$command"
	expect 0 "$ctl" -j "${words[0]}" v.img "${words[@]:1}"
	json 'isinstance(d, dict) and len(d) > 0'
done
cp v.img second.img
for command in info df slots; do "$ctl" -j "$command" v.img >"$command.json"; done
expect 0 "$ctl" -j look v.img v.img.not second.img
complains 'v.img.not: cannot be opened'
json '[v["path"] for v in d["volumes"]] == ["v.img", "v.img.not", "second.img"]'
json 'list(d["volumes"][1]) == ["path"]'
json 'd["volumes"][0]["info"] == __import__("json").load(open("info.json"))'
json 'd["volumes"][0]["space"] == __import__("json").load(open("df.json"))'
json 'd["volumes"][0]["taken"] == __import__("json").load(open("slots.json"))["taken"]'
json '{**d["volumes"][0], "path": ""} == {**d["volumes"][2], "path": ""}'
expect 1 "$ctl" dump v.img table /
complains '/: is not a file, and has no file table'
expect 1 "$ctl" dump v.img dir /tree/-rf
complains '/tree/-rf: Not a directory'
refuses 1 'tree/new\\x0aline/x: Not a directory' "$ctl" cat v.img $'tree/new\nline/x'

# The manual page and --help name the same commands for each option.
"$ctl" --help >help
python3 - help "$man/stargatectl.8" <<'PY' ||
	fail "--help and the manual page name different commands for an option"
import re, sys
text, page = open(sys.argv[1]).read(), open(sys.argv[2]).read()
page = page[page.index(".SH OPTIONS"):]
for option in ("json", "watch", "lease", "stall", "open", "export", "keep-names", "dry-run", "pid", "uuid"):
    said = re.search(r"--%s(?: [A-Z]+)?\s+\(([^)]*)\)" % option, text)[1]
    told = re.search(r"\\-\\-%s[^\n]*\n\.[A-Z]+ \( ?([^)]*)\)" % option.replace("-", r"\\-"), page)[1]
    said, told = (set(re.findall(r"[a-z][a-z -]*[a-z]", re.sub(r"\s+", " ", s))) for s in (said, told))
    assert said == told, (option, said ^ told)
PY

# The completion does not take an option's value for the command.
refuses 2 'find: takes no --size' "$ctl" --size 4G find v.img -name x
refuses 2 'find: takes no --size' "$ctl" --siz 4G find v.img -name x
refuses 2 'find: takes no --label' "$ctl" find --label -name v.img -name x
refuses 2 'du: takes no --watch' "$ctl" --watch 5 du -h v.img
refuses 2 'which command' "$ctl" --watch 5

if command -v compgen >/dev/null; then
	# offered WORD...: writes the completion's offers for the last word to out.
	offered() {
		expect 0 env PATH="$tools:$PATH" bash -c "source '$completion/stargatectl'
			compopt() { :; }
			COMP_WORDS=(stargatectl \"\$@\") COMP_CWORD=\$#
			_stargatectl
			printf '%s\n' \"\${COMPREPLY[@]}\"" - "$@"
	}
	# The completion gets --watch=5 as three words, and mistakes none of them for the command.
	offered --watch 5 systems v.img ''
	says '^fence$'
	offered --watch = 5 systems v.img ''
	says '^fence$'
	offered systems --watch 5 v.img f
	says '^fence$'
	offered --uuid = r
	says '^random$'
	offered --watch = ''
	[[ $(<out) == '' ]] || fail "a value of --watch is offered"
	offered --json d
	says '^dump$'
fi

# The completion offers names without quotes.
if command -v compgen >/dev/null; then
	expect 0 env PATH="$tools:$PATH" bash -c "source '$completion/stargatectl'
		compopt() { :; }
		COMP_WORDS=(stargatectl cat v.img /tree/new) COMP_CWORD=3
		_stargatectl
		printf '%q\n' \"\${COMPREPLY[@]}\" | sort"
	printf '%q\n' $'/tree/new\nline' '/tree/new\x0aline' | sort >want
	same out want
	# The completion quotes names of volumes, and does not run commands in them.
	mkdir fake
	# shellcheck disable=SC2016 # part of a name
	printf '#!/bin/sh\ncat <<"END"\nNAME SIZE\nx`id>pwned` 1M\ngood 2M\nEND\n' >fake/stargatectl
	chmod +x fake/stargatectl
	expect 0 env PATH="$dir/fake:$PATH" bash -c "source '$completion/stargatectl'
		compopt() { :; }
		COMP_WORDS=(stargatectl volume show '') COMP_CWORD=3
		_stargatectl
		printf '%s\n' \"\${COMPREPLY[@]}\""
	[[ ! -e pwned ]] || fail "the completion has run a command in a volume's name"
	# shellcheck disable=SC2016
	printf '%q\n' 'x`id>pwned`' good >want
	same out want
fi

# --- damaged names: each one is reported, and all other names are listed and copied -------------

make_volume v.img 16M
rm -rf tree && mkdir -p tree/sub/deep
for i in 1 2 3 4 5 6; do echo "$i" >"tree/sub/name$i"; done
echo deep >tree/sub/deep/file
ln -s name1 tree/sub/link
expect 0 "$ctl" put -r v.img tree /
cp v.img whole.img
# where NAME EXPRESSION: evaluates EXPRESSION with NAME's dirent e and bucket b in /tree/sub.
where() {
	"$ctl" -j dump whole.img dir /tree/sub | pick "next($2 for b in d['tree']
		for e in b['slots'] if e['name'] == '$1')"
}
bytes_at="int(b['bucket'], 16) + int(e['word'], 16) % 4096 + 16"
slot_at="int(b['bucket'], 16) + 64 + 8 * e['slot']"

# told COUNT PATTERN COMMAND...: COMMAND exits with 1, and prints COUNT lines that match PATTERN.
# Other lines come only from the engine, which reports offsets instead of paths.
told() {
	local count=$1 pattern=$2
	shift 2
	expect 1 "$@"
	grep -v '^stargatectl: damaged: ' err >lines || true
	[[ $(grep -cE -- "$pattern" lines) -eq $count && $(wc -l <lines) -eq $count ]] ||
		fail "not $count lines of '$pattern': $*"
}

for i in 2 4; do poke v.img "$(where "name$i" "$bytes_at")" /; done
for how in '' -l -j; do
	# shellcheck disable=SC2086 # none is no word
	told 2 '^stargatectl: /tree/sub: a name in it is damaged and left out \(at 0x[0-9a-f]+\)' \
		"$ctl" $how ls -r v.img
	for i in 1 3 5 6; do says "name$i"; done
	says 'file'
done
rm -rf back
told 2 '^stargatectl: back/sub: a name in it is damaged and left out' "$ctl" get -r v.img /tree back
rm -rf want && cp -a tree want && rm want/sub/name[24]
diff -r --no-dereference want back >/dev/null || fail "get has not copied all undamaged files"
expect 0 "$ctl" ls v.img /tree
told 3 'a name in it is damaged|Directory not empty' "$ctl" rm -r v.img /tree

# A name without any trace is missing: ls detects that by the directory's count of names.
cp whole.img v.img
poke v.img "$(where name3 "$slot_at")" '\xff\xff\xff\xff\xff\xff\xff\xff'
told 1 '/tree/sub: a name in it is damaged and left out|/tree/sub: counts 8 names, and 7' \
	"$ctl" ls -r v.img
cp whole.img v.img
poke v.img "$(where name3 "$slot_at")" '\1\0\0\0\0\0\0\0' # marks the name as removed
told 1 '/tree/sub: counts 8 names, and 7 were found; run fsck' "$ctl" ls v.img /tree/sub
rm -rf back
told 1 'back/sub: counts 8 names, and 7 were found' "$ctl" get -r v.img /tree back
[[ ! -e back/sub/name3 && -e back/sub/deep/file ]] || fail "get has copied wrong files"

# A name without an inode, and a link without a target: the name is listed, and the damage is
# reported.
cp whole.img v.img
poke v.img "$("$ctl" -j dump v.img inode /tree/sub/name5 | pick 'int(d["record"], 16)')" \
	"$(printf '\\0%.0s' $(seq 256))"
poke v.img "$("$ctl" -j dump v.img inode /tree/sub/link | pick 'int(d["record"], 16)') + 192" '\0'
for how in '' -l -j; do
	# shellcheck disable=SC2086
	told 2 'sub/name5: there is no such inode|sub/link: damaged' "$ctl" $how ls -r v.img
	says 'name6'
done
told 1 '/tree/sub/link: damaged' "$ctl" -j stat v.img /tree/sub/link
rm -rf back
told 2 'sub/name5: there is no such inode|sub/link: damaged' "$ctl" get -r v.img /tree back
[[ ! -L back/sub/link && -e back/sub/name6 ]] || fail "get has copied a link without a target"

# The commands still enter a directory whose dirent has the type of a file.
cp whole.img v.img
poke v.img "$(where deep "$bytes_at") - 2" '\x08' # sets the type in the dirent to "file"
for how in '' -l -j; do
	# shellcheck disable=SC2086
	expect 0 "$ctl" $how ls -r v.img
	says '/tree/sub/deep'
	says 'file'
done

# --- messages: their cause, and stdout or stderr --------------------------------------------

make_volume v.img 16M
too_long=$(printf 'x%.0s' $(seq 256))
expect 0 "$ctl" mkdir v.img /some
for path in "/$too_long" "/some/$too_long"; do
	refuses 1 "^stargatectl: $path: File name too long" "$ctl" put v.img old "$path"
done
expect 0 "$ctl" put v.img old "/${too_long:1}"
expect 0 "$ctl" put v.img old /
rm -rf place && mkdir -p place/old
refuses 1 '^stargatectl: place/old: Is a directory' "$ctl" get v.img /old place/
refuses 1 '^stargatectl: place/old: Is a directory' "$ctl" get -r v.img / place/

# A sparse volume gets no memory: the command prints one line, and the next command finds an intact
# volume.
if mkdir small-tmpfs && mount -t tmpfs -o size=4M none small-tmpfs 2>/dev/null; then
	expect 0 "$mkfs" -q --sparse --size 32M --phys 16G small-tmpfs/v.img
	head -c 8M /dev/urandom >big
	refuses 1 'memory of the volume is missing or bad .*stopped' "$ctl" put small-tmpfs/v.img big /
	mv small-tmpfs/v.img full.img
	umount small-tmpfs
	expect 1 "$fsck" -p full.img
	expect 0 "$fsck" -n full.img
fi

# --- output that cannot be written ------------------------------------------------------------

make_volume v.img 32M
head -c 5M /dev/urandom >big
expect 0 "$ctl" put v.img big /
expect 1 sh -c "'$ctl' cat v.img /big /none /big >/dev/full"
complains 'the output cannot be written: No space left on device'
for command in info 'ls /' '-j ls -r /' 'stat /big' 'dump chunks' 'label'; do
	read -ra words <<<"$command"
	[[ ${words[0]} == -j ]] && words=("${words[@]:1}")
	expect 1 sh -c "'$ctl' ${words[0]} v.img ${words[*]:1} >/dev/full" sh
	complains 'the output cannot be written: No space left on device'
done
# stargatectl behaves like other filters: SIGPIPE kills it silently; with SIGPIPE ignored, it fails
# silently.
expect 0 bash -c "'$ctl' cat v.img /big 2>noise | head -c 1 >/dev/null
	[[ \${PIPESTATUS[0]} -eq 141 ]]"
[[ ! -s noise ]] || fail "stargatectl prints an error after its reader has exited"
expect 0 bash -c "trap '' PIPE; '$ctl' cat v.img /big 2>noise | head -c 1 >/dev/null
	[[ \${PIPESTATUS[0]} -eq 1 ]]"
[[ ! -s noise ]] || fail "stargatectl prints an error after its reader has exited"
# A command that changes the volume continues to its end, even if its errors cannot be printed.
rm -rf tree && mkdir -p tree/dir
for i in $(seq 50); do echo "$i" >"tree/$i"; done
expect 0 "$ctl" mkdir -p v.img /tree/1 /tree/2 /tree/3
expect 0 bash -c "'$ctl' put -r v.img tree / 2>&1 | true; [[ \${PIPESTATUS[0]} -eq 1 ]]"
[[ $(names /tree | wc -l) -eq 51 ]] || fail "put stops when its output is closed"
clean

# --- a volume that another system uses ------------------------------------------------------

mkfifo hold
"$ctl" put v.img hold /held >/dev/null 2>&1 &
beater=$!
for _ in $(seq 100); do
	[[ $("$ctl" -j slots v.img 2>/dev/null | pick 'd["taken"]') -ne 1 ]] || break
	sleep 0.05
done
for command in 'put v.img old' 'mkdir v.img /x' 'rm -r v.img /tree' 'label v.img x'; do
	# shellcheck disable=SC2086
	refuses 1 'in use by process [0-9]+ on' "$ctl" $command
done
expect 0 "$ctl" label v.img
expect 0 "$ctl" cat v.img /big
same out big
kill -9 "$beater"
wait "$beater" 2>/dev/null || true
beater=
expect 0 "$ctl" put --force v.img old /forced
expect 0 "$ctl" cat v.img /forced
[[ ! -s err ]] || fail "cat prints an error after recovery"
same out old
clean

echo "$checks checks"
