#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/quick runs this inside the rig. Prints "SYSTEM OPERATION INSTRUCTIONS".
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

operations=(call read-1 read-4k read-1m write-4k write-1m append-4k append-4k-fsync
	open-close stat lookup create create-fsync unlink)

# Counts each operation twice, so that the report can check that both counts agree.
measure() {
	on g1 "/root/icount $2 ${operations[*]} ${operations[*]}" </dev/null | sed "s/^/$1 /" ||
		fail "icount in $1"
}

program icount
# shellcheck disable=SC2016 # for the VM's shell
on g1 'modprobe nd_e820; for try in $(seq 500); do [ -b /dev/pmem1 ] && break; sleep 0.02; done
	mkfs.ext4 -q -b 4096 /dev/pmem1 && mkdir -p /mnt/ext4 /mnt/tmpfs &&
	mount -o dax /dev/pmem1 /mnt/ext4 &&
	grep " /mnt/ext4 .*dax" /proc/mounts && mount -t tmpfs tmpfs /mnt/tmpfs' </dev/null >&2 ||
	fail "ext4 with DAX, for the comparison, does not mount"

measure tmpfs /mnt/tmpfs
measure ext4-dax /mnt/ext4
for map in walk splice shadow; do
	mount_with "map=$map"
	on g1 "grep -q 'map=$map' /proc/mounts" </dev/null || fail "the volume is not mounted with map=$map"
	measure "$map" /mnt/sg
done
on g1 'umount /mnt/ext4' </dev/null
