#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume of 512 GiB on sparse memory. An emulated processor can address twice as much. All
# operations work as on a small volume: make, mount, write at both ends, examine, check, unmount.
# A mount and its program take at most 30 million instructions. The same limit holds for an unmount.
# Therefore no code scans the 512 GiB. With --icount a nanosecond of the guest is one instruction.
#
# rig: --icount --size 512G --mem 1G --no-mount
# kernels: 6.12 7.2
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# used: prints the memory that the range occupies, in MiB.
used() { echo $(($(stat -L -c '%b * %B' "$RIG_RANGE") >> 20)); }

# timed COMMAND UNDO: runs COMMAND five times, each time followed by UNDO. Prints the shortest time
# of COMMAND in nanoseconds.
timed() {
	on g1 "best=0
		for try in 1 2 3 4 5; do
			start=\$(date +%s%N); $1 || exit 1; took=\$((\$(date +%s%N) - start))
			[ \$best -gt 0 ] && [ \$best -lt \$took ] || best=\$took
			$2 || exit 1
		done; echo \$best" </dev/null || fail "this command failed: $1"
}

# quick WHAT NANOSECONDS: checks the limit for one operation.
quick() {
	[[ $2 -lt 30000000 ]] || fail "$1 takes $2 instructions"
	passed "$1 takes $2 instructions"
}

holds "a device of 512 GiB is made" 'mkdir -p /mnt/large
	for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done; [ -b /dev/pmem0 ]'
step "an empty volume of 512 GiB"
before=$(used)
"$SG_TOOLS/mkfs.stargatefs" --quiet -f --phys "$RIG_BASE" "$RIG_RANGE" || fail mkfs
made=$(($(used) - before))
[[ $made -lt 128 ]] || fail "an empty volume of 512 GiB occupies $made MiB"
passed "an empty volume occupies $made MiB"
quick mounting "$(timed 'mount -t stargatefs /dev/pmem0 /mnt/large' 'umount /mnt/large')"
holds "the volume is mounted" 'mount -t stargatefs /dev/pmem0 /mnt/large'
quick unmounting "$(timed 'umount /mnt/large' 'mount -t stargatefs /dev/pmem0 /mnt/large')"
holds "df shows the volume's size" '[ "$(df --output=size -B1G /mnt/large | tail -n 1)" -ge 500 ]'
holds "a file of 300 GiB has bytes at both ends" 'cd /mnt/large && truncate -s 300G file &&
	echo first | dd of=file conv=notrunc status=none &&
	echo last | dd of=file bs=1 seek=$((300 * (1 << 30) - 5)) conv=notrunc status=none &&
	[ "$(head -c 5 file)" = first ] && [ "$(tail -c 5 file)" = last ] && [ "$(du -k file | cut -f 1)" -le 64 ]'
holds "the volume passes fsck" 'umount /mnt/large && fsck.stargatefs -n /dev/pmem0'
finish
