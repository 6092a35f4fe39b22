#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl systems --open lists the files that each system (machine.c) has open, with paths.
# Cases: removed files; files of a dead system; names of files and systems with terminal commands; a
# volume with hostile words everywhere.
set -euo pipefail
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

# opened EXPRESSION: EXPRESSION is true for the list of v.img.
opened() {
	expect 0 "$ctl" -j systems --open v.img
	json "$1"
}

mkdir -p tree/sub/deep
echo 12345 >tree/one
echo x >tree/gone
head -c 70000 /dev/zero >tree/sub/deep/two
ln tree/one tree/sub/again
evil=$'evil\e[31m\xff\\'
echo x >"tree/$evil"
"$mkfs" -q --phys 16G --size 32M v.img
"$ctl" put -r v.img tree/. /

tar cf tree.tar tree
"$ctl" put --tar v.img tree.tar /

# --- no system has a file open; the slot's last owner was a tool with an open file ---
expect 0 "$ctl" systems --open v.img
[[ ! -s out && ! -s err ]] || fail "the list for a volume without systems is not empty"
opened 'd == {"open": [], "truncated": False}'
start 1
start 2
say 1 join v.img $m1 1
say 2 join v.img $m2 1
expect 0 "$ctl" systems --open v.img
[[ ! -s out ]] || fail "the list for systems without open files is not empty"

# --- two systems ---
ino() { "$ctl" -j stat v.img "$1" 2>/dev/null | pick 'd["inode"]'; }
one=$(ino /one) two=$(ino /sub/deep/two)
say 1 open 0 one
say 2 open 0 one
say 2 open 0 gone
say 2 open 0 "$evil"
say 1 open 0 sub/deep/two
opened 'len(d["open"]) == 5'
opened "[f['slot'] for f in d['open'] if f['inode'] == $one] == [0, 1]"
opened "[(f['name'], f['state'], f['type'], f['links'], f['size'], f['path']) for f in d['open']
	if f['inode'] == $two] == [('machine-11111111', 'live', 'file', 1, 70000, '/sub/deep/two')]"
opened "all(f['path'] in ('/one', '/sub/again') and f['links'] == 2 for f in d['open'] if f['inode'] == $one)"
opened '[f["path_hex"] for f in d["open"] if "path_hex" in f] == [b"/evil\x1b[31m\xff\\".hex()]'
expect 0 "$ctl" systems --open v.img
says '^SLOT  SYSTEM  '
says "^   0  machine-11111111 +$two  file       68.4 KiB   /sub/deep/two\$"
says '/evil\\x1b\[31m\\xff\\\\$'
! grep -q $'\e' out || fail "a file's name reaches the terminal unescaped"
[[ $(wc -l <out) -eq 6 ]] || fail "the list does not have a line for each open file"
# `systems` gives the same counts.
expect 0 "$ctl" -j systems v.img
json 'sorted(s["open"] for s in d["systems"]) == [2, 3]'

# --- without a name ---
say 1 unlink 0 gone
opened '[(f["slot"], f["links"], f.get("path")) for f in d["open"] if f["links"] == 0] == [(1, 0, None)]'
expect 0 "$ctl" systems --open v.img
says '^   1  machine-11111111 .* \(removed\)$'

# --- dead, and recovered ---
say 1 leave 0
say 2 reset 0
expect 0 "$ctl" systems v.img fence 1 --force
opened '{f["state"] for f in d["open"] if f["slot"] == 1} == {"dead"} and len(d["open"]) == 3'
start 3
say 3 join v.img $m1 3 # this join recovers the dead system
opened 'not [f for f in d["open"] if f["state"] == "dead"]'
opened "not [f for f in d['open'] if f.get('path') == '/gone']"
say 3 leave 0

# --- a system's name with terminal commands ---
(
	export MACHINE_NAME=$'g\e[31m\n0 forged'
	start 4
	say 4 join v.img $m2 4
	say 4 open 0 one
	expect 0 "$ctl" systems --open v.img
	! grep -q $'\e' out || fail "a system's name reaches the terminal unescaped"
	[[ $(wc -l <out) -eq 3 ]] ||
		fail "a name forges a line, or files of the slot's last owner are listed"
	opened 'd["open"][0]["name"].startswith("g\x1b[31m\n")'
	say 4 leave 0
	echo "exit 0" >&"${to[4]}"
)

# --- invalid words ---
refuses 2 'systems: takes VOLUME \[fence .*\], or --open VOLUME' "$ctl" systems --open v.img fence 0
refuses 2 'systems: takes VOLUME' "$ctl" systems --open --watch 1 v.img
refuses 2 'systems: takes VOLUME' "$ctl" systems --open --force v.img
refuses 2 'info: takes no --open' "$ctl" info --open v.img
refuses 1 'none: cannot be opened' "$ctl" systems --open none
head -c 32M /dev/zero >empty
refuses 1 'empty: no StargateFS here' "$ctl" systems --open empty

# --- a hostile volume: all slots are taken, all records are open, and lists are endless ---
python3 - v.img lie.img <<'END'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
slots, data = struct.unpack_from("<Q", b, 200)[0], struct.unpack_from("<Q", b, 240)[0]
for i in range(64):
    struct.pack_into("<Q", b, slots + 256 * i, 1 | i << 32)
    b[slots + 256 * i + 64:slots + 256 * i + 128] = (b"\x1b[2J\n\xff" * 11)[:64]
for i in range(16):
    struct.pack_into("<Q", b, data + 256 * i + 136, (1 << 64) - 1)
struct.pack_into("<Q", b, 4096 + 80, 1 << 61)
open(sys.argv[2], "wb").write(b)
END
expect 0 "$ctl" systems --open lie.img
! grep -q $'\e' out || fail "a system's name reaches the terminal unescaped"
[[ $(wc -l <out) -gt 64 ]] || fail "the list does not show the files of the hostile volume"
awk 'NR > 1 && !/^ +[0-9]+  -  / { exit 1 }' out || fail "a name forges a line of the list"
expect 0 "$ctl" -j systems --open lie.img
json 'len(d["open"]) % 64 == 0 and not d["truncated"]'

echo "exit 0" >&"${to[1]}"
echo "exit 0" >&"${to[2]}"
echo "exit 0" >&"${to[3]}"
echo "$checks checks"
