#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl snapshot, as a user calls it: of an unused file, and of a file that processes use as
# systems (machine.c). One of them does not freeze.
set -euo pipefail
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"
# shellcheck source=kernel/tests/lib/swaps.sh
source "$src/../tests/lib/swaps.sh"

nothing_left() { [[ ! -e $1 && ! -e $1.part ]] || fail "$1 is there"; }

# --- no system uses the volume ---
"$mkfs" -q --phys 16G --size 64M v.img
head -c 3M /dev/urandom >bytes
expect 0 "$ctl" put v.img bytes /bytes
expect 0 "$ctl" snapshot --stall 10000 v.img c1
says '^v.img: copied to c1, 64 MiB; all systems paused for [0-9.]+ ms$'
expect 0 "$fsck" -n c1
expect 0 "$ctl" get c1 /bytes got
cmp bytes got || fail "the copied file has wrong bytes"
[[ $(stat -c %s c1) -eq $((64 << 20)) ]] || fail "the copy's size differs from the volume's size"
(($(stat -c %b c1) * 512 < 8 << 20)) || fail "zeros take space in the copy: $(stat -c %b c1) blocks"
[[ $(stat -c %a c1) == 600 ]] || fail "the copy's mode is not 600"
expect 0 "$ctl" -j snapshot --stall 10000 v.img c2
says '"file": "c2"'
says '"size": 67108864'
says '"tries": 1$'
cp v.img longer.img
truncate -s 80M longer.img
expect 0 "$ctl" snapshot --stall 10000 longer.img c3
[[ $(stat -c %s c3) -eq $((64 << 20)) ]] || fail "the bytes behind the volume were copied"
expect 0 "$fsck" -n v.img

# --- refusals ---
refuses 1 'c1: exists already' "$ctl" snapshot --stall 10000 v.img c1
refuses 1 'none: cannot be opened: No such file' "$ctl" snapshot none c4
refuses 1 'no/c4.part: cannot be created: No such file' "$ctl" snapshot v.img no/c4
refuses 2 "'0': must be 1 to 10000 \(milliseconds\)" "$ctl" snapshot --stall 0 v.img c4
refuses 2 "'10001': must be" "$ctl" snapshot --stall 10001 v.img c4
refuses 2 'snapshot: takes VOLUME FILE' "$ctl" snapshot v.img
refuses 2 'takes no --size' "$ctl" snapshot --size 1G v.img c4
head -c 32M /dev/zero >empty
refuses 1 'empty: no StargateFS' "$ctl" snapshot empty c4
(ulimit -f 1024; trap '' XFSZ; refuses 1 'c4.part: cannot be' "$ctl" snapshot v.img c4)
nothing_left c4
echo old >c4.part
expect 0 "$ctl" snapshot --stall 10000 v.img c4
expect 0 "$fsck" -n c4
[[ ! -e c4.part ]] || fail "snapshot has left c4.part"

# snapshot does not use a partial file of another user, who could read the copy.
if [[ $(id -u) -eq 0 ]]; then
	install -o 65534 -m 666 /dev/null c4b.part
	refuses 1 'c4b.part: exists, and is not a private file of yours' "$ctl" snapshot v.img c4b
	[[ ! -e c4b && ! -s c4b.part ]] || fail "snapshot has used a file of another user"
	rm c4b.part
fi
echo mine >mine
ln mine c4b.part
refuses 1 'c4b.part: exists, and is not a private file of yours' "$ctl" snapshot v.img c4b
[[ $(cat mine) == mine ]] || fail "snapshot has changed a file through a hard link"
rm c4b.part
mkfifo c4b.part
refuses 1 'c4b.part: exists, and is not a private file of yours' timeout 20 "$ctl" snapshot v.img c4b
rm c4b.part
# A process that has the old file open does not see the copy.
echo old >c4b.part
chmod 644 c4b.part
exec 8<c4b.part
expect 0 "$ctl" snapshot --stall 10000 v.img c4b
[[ $(cat <&8) == old && $(stat -c %a c4b) == 600 ]] ||
	fail "a process that had the old file open can read the copy"
exec 8<&-
# Another command completes the copy while this command begins. This command then does not copy
# again.
if [[ $swaps ]]; then
	for swap_skip in 0 1; do
		rm -f c4c c4c.part
		cp c4 c4c.part
		swapped open c4c.part 'mv c4c.part c4c' 1 "$ctl" snapshot v.img c4c
		[[ -e swapped ]] || fail "nothing was swapped"
		complains 'c4c: exists already'
		cmp c4 c4c || fail "a finished copy was replaced"
		[[ ! -e c4c.part ]] || fail "c4c.part still exists"
	done
	swap_skip=0
fi

# --- while other systems use the volume ---
start 1
start 2
say 1 join v.img $m1 1
say 2 join v.img $m2 1
say 1 mkdir 0 before
expect 0 "$ctl" snapshot --stall 4000 v.img c5
say 1 mkdir 0 after
expect 0 "$ctl" ls c5
says '^before$'
grep -q '^after$' out && fail "the copy has a file that was made later"
expect 0 "$fsck" -n c5
say 2 still 0
refuses 7 'v.img: machine-11111111 \(slot 1\) does not freeze' "$ctl" snapshot --stall 4000 v.img c6
expect 7 "$ctl" -j snapshot --stall 4000 v.img c6
json 'd == {"reason": "busy"}'
nothing_left c6
say 1 mkdir 0 goes-on
say 2 go 0
expect 0 "$ctl" snapshot --stall 4000 v.img c6
expect 0 "$ctl" ls c6
says '^goes-on$'

# A copying tool is killed: all systems continue, and the next copy starts again.
"$ctl" snapshot --stall 4000 v.img c7 >/dev/null 2>&1 &
sleep 0.05
kill -9 $! 2>/dev/null || true
wait $! 2>/dev/null || true
rm -f c7
say 1 mkdir 0 after-the-kill
say 2 mkdir 0 there-too
for try in 1 2 3 4 5 6; do
	"$ctl" snapshot --stall 4000 v.img c7 >out 2>said && break
	[[ $try != 6 ]] || fail "no snapshot succeeds after a killed one: $(cat said)"
	# a joiner fences the silent tool after five seconds
	sleep 2
done
expect 0 "$ctl" ls c7
says '^there-too$'
say 1 leave 0
say 2 leave 0
echo "exit 0" >&"${to[1]}"
echo "exit 0" >&"${to[2]}"
wait "${pid[1]}" "${pid[2]}" || true
expect 0 "$fsck" -n v.img

# --- file systems without renameat2() and hard links (NFS, FUSE) ---
if [[ $swaps ]]; then
	cat >rename.c <<-'END'
		#include <errno.h>
		#include <stdlib.h>
		int renameat2(int a, const char *b, int c, const char *d, unsigned int e)
		{
			errno = atoi(getenv("RENAME_ERRNO"));
			return -1;
		}
		int link(const char *a, const char *b)
		{
			extern int linkat(int, const char *, int, const char *, int);
			errno = atoi(getenv("LINK_ERRNO"));
			return errno ? -1 : linkat(-100, a, -100, b, 0);
		}
	END
	gcc -shared -fPIC -w -o rename.so rename.c || fail "cannot compile rename.c"
	for errors in '22 0' '38 0' '22 1' '22 95'; do
		rm -f n1
		expect 0 env LD_PRELOAD="$dir/rename.so" RENAME_ERRNO="${errors% *}" LINK_ERRNO="${errors#* }" \
			"$ctl" snapshot --stall 10000 v.img n1
		[[ ! -e n1.part && $(stat -c %h n1) == 1 ]] || fail "snapshot has left n1.part, or a second link of n1"
		expect 0 "$fsck" -n n1
		refuses 1 'n1: exists already' env LD_PRELOAD="$dir/rename.so" RENAME_ERRNO=22 LINK_ERRNO=0 \
			"$ctl" snapshot v.img n1
	done
	# a complete copy that cannot be renamed is not deleted
	rm -f n1
	expect 1 env LD_PRELOAD="$dir/rename.so" RENAME_ERRNO=5 LINK_ERRNO=0 \
		"$ctl" snapshot --stall 10000 v.img n1
	complains 'n1.part: is complete, but cannot be renamed to n1: Input/output error'
	expect 0 "$fsck" -n n1.part
fi

echo "$checks checks"
