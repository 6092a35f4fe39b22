#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/atomic runs this inside the rig, with a range and without a volume. Prints "kernel
# SYSTEM OPERATION INSTRUCTIONS SPREAD" for writes in place and atomic writes, and for ext4 on the
# same memory. A write to ext4-dax is not atomic. With data=journal, ext4 has atomic writes of up to
# a page, if fsync() follows.
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

repeats=${SG_REPEATS:-7}
writes=(write-64 write-1k write-4k write-16k write-64k write-odd-4k write-odd-16k)
reads=(read-4k read-64k)

# count SYSTEM FOLDER OPERATION...
count() {
	local said
	said=$(on g1 "/root/cost $2 $repeats ${*:3}" </dev/null 2>&1) || fail "cost in $1: $said"
	printf '%s\n' "kernel $1 ${said//$'\n'/$'\n'kernel $1 }"
}
in_guest() { on g1 "$1" </dev/null >&2 || fail "$2"; }

program cost
# shellcheck disable=SC2016 # for the VM's shell
in_guest 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	test -b /dev/pmem0 && mkdir -p /mnt/peer /mnt/sg' "no device"

step "ext4-dax" >&2
in_guest "mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/pmem0 &&
	mount -t ext4 -o dax=always /dev/pmem0 /mnt/peer &&
	grep -q ' /mnt/peer .*dax=always' /proc/mounts" \
	"no ext4 with DAX"
count ext4-dax /mnt/peer "${writes[@]}" "${reads[@]}"
in_guest 'umount /mnt/peer' umount

step "ext4, data=journal" >&2
in_guest "mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/pmem0 &&
	mount -t ext4 -o data=journal /dev/pmem0 /mnt/peer &&
	grep -q ' /mnt/peer .*data=journal' /proc/mounts" \
	"no ext4 with data=journal"
count ext4-journal /mnt/peer "${writes[@]/%/-fsync}" "${reads[@]}"
in_guest 'umount /mnt/peer' umount

step "StargateFS" >&2
head -c 4M /dev/zero | dd of="$RIG_RANGE" bs=1M conv=notrunc status=none # clears old signatures
"$SG_TOOLS/mkfs.stargatefs" --quiet -f --phys "$RIG_BASE" "$RIG_RANGE" || fail mkfs
compile resuper
"$compiled/resuper" "$RIG_RANGE" hash_seed 0x5eed5eed5eed5eed || fail resuper
for data in inplace atomic; do
	in_guest "mount -t stargatefs -o data=$data /dev/pmem0 /mnt/sg" "data=$data"
	count "$data" /mnt/sg "${writes[@]}" "${reads[@]}"
	in_guest 'umount /mnt/sg' umount
done
