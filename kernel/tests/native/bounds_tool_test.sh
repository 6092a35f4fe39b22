#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Commands of stargatectl finish in bounded time on any volume, also with forged contents: files
# that map one page many times, inodes that share one record, directories with many names of one
# inode.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# soon STATUS COMMAND...: checks that COMMAND exits with STATUS, in time and with little memory.
soon() {
	local want=$1
	shift
	expect "$want" bash -c 'ulimit -v 700000; ulimit -f 200000; exec timeout 100 "$@"' - "$@"
}

# forge EXPRESSION: evaluates EXPRESSION, which may call put(offset, word) and get(offset), and
# writes v.img.
forge() {
	python3 - "$1" <<'END'
import struct, sys
b = bytearray(open("v.img", "rb").read())
def put(off, word): struct.pack_into("<Q", b, off, word)
def get(off): return struct.unpack_from("<Q", b, off)[0]
PHYS, TABLE, LEAF = 16 << 30, 0x63, 0x63 | 1 << 63
def root(off, height): return PHYS + off | TABLE | height << 52
# three levels of tables from page p on: all entries of an upper table name the same next table
def forge(p, data, holes):
    for i in range(512):
        put(p + 8 * i, 0 if holes and i & 1 else PHYS + data | LEAF)
        put(p + 4096 + 8 * i, PHYS + p | TABLE)
        put(p + 8192 + 8 * i, PHYS + p + 4096 | TABLE)
    return root(p + 8192, 3)
exec(sys.argv[1])
open("v.img", "wb").write(b)
END
}
record() { printf '%d' "$("$ctl" -j dump v.img inode "$1" 2>/dev/null | pick 'd["record"]')"; }
page() { "$ctl" -j stat v.img "$1" 2>/dev/null | pick 'd["table"]["runs"][0]["offset"]' | xargs printf '%d'; }

"$mkfs" -q --phys 16G --size 32M v.img
head -c 65536 /dev/zero | tr '\0' x >pages
echo small >small
"$ctl" put v.img pages /pages
"$ctl" put v.img small /file
"$ctl" put v.img small /small
"$ctl" put v.img small /well
expect 0 "$ctl" bad v.img add $(((16 << 30) + $(page /small)))
at=$(record /file) pages=$(page /pages)
cp v.img whole.img

# --- a file of 512 GiB that maps one page everywhere, with holes and without ---
for holes in True False; do
	cp whole.img v.img
	forge "put($at + 48, forge($pages, $pages + 16384, $holes)); put($at + 40, 512 ** 3 * 4096)"
	soon 1 "$ctl" get v.img /file to
	says '^stargatectl: to: maps more than the volume has; run fsck' err
	[[ $(stat -c %b to) -le $((64 << 11)) ]] ||
		fail "get writes more bytes than the volume has"
	soon 1 "$ctl" get --tar v.img /file to.tar
	says '^stargatectl: /file: maps more than the volume has; run fsck' err
	soon 1 "$ctl" get -r v.img / tree
	[[ $(<tree/well) == small ]] || fail "an undamaged file was not copied"
	rm -rf to tree
	soon '*' "$ctl" stat v.img /file
	soon '*' "$ctl" dump v.img table /file
done

# --- all inodes share one record: the command bad has to name all inodes of the bad page ---
inodes=$((at & ~4095))
forge "put(5120 + 48, forge($pages + 20480, $inodes, False)); put(5120 + 40, 1 << 40); put(4096 + 80, 1 << 40)
for i in range(16):
    b[$inodes + 256 * i:$inodes + 256 * (i + 1)] = b[$at:$at + 256]"
soon '*' "$ctl" bad v.img
says 'v.img: damaged; run fsck' err
soon '*' "$ctl" -j bad v.img
soon '*' "$ctl" systems --open v.img

# --- nested directories with a hundred names each, above a thousand files ---
rm -rf many && mkdir -p many/mid/leaf
for i in $(seq 1000); do echo >"many/mid/leaf/$i"; done
for i in $(seq 0 99); do echo | tee "many/m$(printf %02d "$i")" >"many/mid/n$(printf %02d "$i")"; done
rm v.img
"$mkfs" -q --phys 16G --size 16M v.img
"$ctl" put -r v.img many /many
python3 - "$("$ctl" -j stat v.img /many/mid | pick 'd["inode"]')" "$("$ctl" -j stat v.img /many/mid/leaf | pick 'd["inode"]')" <<'END'
import re, struct, sys
b, n = bytearray(open("v.img", "rb").read()), 0
for m in re.finditer(rb"[mn]\d\d", bytes(b)):
    at = m.start() - 8
    ref = struct.unpack_from("<Q", b, at)[0]
    if ref >> 40 == 3 | 8 << 8:		# the entry of a file with a name of three bytes
        to = int(sys.argv[1 if m[0][:1] == b"m" else 2])
        struct.pack_into("<Q", b, at, to | 3 << 40 | 4 << 48)
        n += 1
assert n >= 200, n
open("v.img", "wb").write(b)
END
soon 1 "$ctl" ls -r v.img /
says 'has two names, but can have only one; run fsck' err
(($(wc -l <out) < 700000)) || fail "more names than the volume has room for"
echo "$checks checks"
