#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume of 512 GiB, half of what an emulated processor can address, on memory that is there where it
# is touched: it is made, mounted, written to at both ends, looked at, checked and unmounted as a
# small one is, and mounting and unmounting take hardly more than those of 1 GiB (counted: a nanosecond
# of the guest is an instruction).
#
# rig: --icount --size 512G --mem 1G --no-mount
# kernels: 6.12
# also: 7.2
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

used() { echo $(($(stat -L -c '%b * %B' "$RIG_RANGE") >> 20)); }

# timed COMMAND: the least of five, with UNDO behind each.
timed() {
	on g1 "best=0
		for try in 1 2 3 4 5; do
			start=\$(date +%s%N); $1 || exit 1; took=\$((\$(date +%s%N) - start))
			[ \$best -gt 0 ] && [ \$best -lt \$took ] || best=\$took
			$2 || exit 1
		done; echo \$best" </dev/null || fail "$1"
}

# volume SIZE: made outside; mounting and unmounting it, in $mounting and $unmounting.
volume() {
	head -c 1M /dev/zero | dd of="$RIG_RANGE" bs=1M conv=notrunc status=none
	"$SG_TOOLS/mkfs.stargatefs" --quiet -f --phys "$RIG_BASE" --size "$1" "$RIG_RANGE" || fail "mkfs of $1"
	mounting=$(timed 'mount -t stargatefs /dev/pmem0 /mnt/large' 'umount /mnt/large')
	on g1 'mount -t stargatefs /dev/pmem0 /mnt/large' </dev/null || fail "mount of $1"
	unmounting=$(timed 'umount /mnt/large' 'mount -t stargatefs /dev/pmem0 /mnt/large')
	passed "$1: mounted in $((mounting / 1000)) us, unmounted in $((unmounting / 1000)) us"
}

holds "a device" 'mkdir -p /mnt/large
	for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done; [ -b /dev/pmem0 ]'
step "1 GiB"
volume 1G
small=($mounting $unmounting)
holds "is unmounted" "umount /mnt/large"
step "512 GiB"
before=$(used)
volume 512G
made=$(($(used) - before))
[[ $made -lt 128 ]] || fail "a volume of 512 GiB that has nothing takes $made MiB"
passed "with nothing in it, it takes $made MiB"
for i in 0 1; do
	large=("$mounting" "$unmounting")
	[[ ${large[i]} -lt $((small[i] + small[i] / 2)) ]] ||
		fail "512 GiB: ${large[i]} ns where 1 GiB takes ${small[i]}"
done
passed "hardly longer than a small one"
holds "and says its size" '[ "$(df --output=size -B1G /mnt/large | tail -n 1)" -ge 500 ]'
holds "a file of 300 GiB with bytes at its ends" 'cd /mnt/large && truncate -s 300G file &&
	echo first | dd of=file conv=notrunc status=none &&
	echo last | dd of=file bs=1 seek=$((300 * 1024 * 1024 * 1024 - 5)) conv=notrunc status=none &&
	[ "$(head -c 5 file)" = first ] && [ "$(tail -c 5 file)" = last ] && [ "$(du -k file | cut -f 1)" -le 64 ]'
holds "is sound" 'umount /mnt/large && fsck.stargatefs -n /dev/pmem0'
finish
