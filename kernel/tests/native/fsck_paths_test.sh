#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fsck.stargatefs prints a path for each inode that a finding concerns, if a path leads to it.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

mkdir -p $'odd/sp ace/\xff'
for i in $(seq 300); do echo "$i" >"odd/sp ace/$i"; done
echo x >$'odd/sp ace/\xff/\n'
ln odd/sp\ ace/7 odd/again
expect 0 "$mkfs" --size 16M --phys 16G odd.img
expect 0 "$ctl" put -r odd.img odd /odd

# lose AT PATH COUNT: zeroes COUNT bytes of PATH's inode in odd.img, from offset AT on. The mode and
# link count are at 24.
lose() {
	"$ctl" --json dump odd.img inode "$2" >record
	dd if=/dev/zero of=odd.img bs=1 seek=$(($(grep -o '"record": *"0x[0-9a-f]*' record | grep -o '0x.*') + $1)) \
		count="$3" conv=notrunc status=none
}
ino=$("$ctl" --json stat odd.img $'/odd/sp ace/\xff/\n' | pick 'd["inode"]')
cp odd.img whole.img
lose 25 $'/odd/sp ace/\xff/\n' 1 # makes the inode's type unknown
cp odd.img v.img
expect 4 "$fsck" -n v.img
says "^inode $ino \\(/odd/sp ace/\\\\xff/\\\\x0a\\): its type"
expect 4 "$fsck" --json -n v.img
json '{f["path_hex"] for f in d["findings"] if f.get("inode") == '"$ino"'} == {b"/odd/sp ace/\xff/\n".hex()}'
expect 1 "$fsck" -y v.img
says "^inode $ino \\(/odd/sp ace/\\\\xff/\\\\x0a\\): its type.*: repaired\$"
expect 0 "$fsck" -n v.img

# A file with two names: fsck prints one of them.
cp whole.img odd.img
lose 28 '/odd/sp ace/300' 4 # clears the link count
lose 28 '/odd/again' 4
cp odd.img v.img
expect 4 "$fsck" --json -n v.img
json '"/odd/sp ace/300" in [f["path"] for f in d["findings"]]'
json 'len([f for f in d["findings"] if f["path"] in ("/odd/again", "/odd/sp ace/7")]) == 1'
expect 1 "$fsck" -p v.img
says '^inode [0-9]+ \(/odd/sp ace/300\): has 1 links, counts 0.*: repaired$'
says '^inode [0-9]+ \(/odd/(again|sp ace/7)\): has 2 links, counts 0.*: repaired$'
expect 0 "$fsck" -n v.img

# No path leads from the root to the directory: fsck prints none.
cp whole.img v.img
"$ctl" --json dump v.img inode /odd >record
dd if=/dev/zero of=v.img bs=1 seek=$(($(grep -o '"record": *"0x[0-9a-f]*' record | grep -o '0x.*') + 48)) \
	count=8 conv=notrunc status=none
expect 4 "$fsck" -n v.img
says '^inode [0-9]+ \(/odd\): directory: '
! grep -q 'sp ace' out || fail "fsck prints a path that does not exist"
echo "$checks checks"
