#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Root unbinds the driver from the device under a mounted volume. The unbinding waits until the
# volume is unmounted. Until then, users of files and processes that map region can use the memory.
# After the unmount the device disappears. When root binds the driver, the device appears with all
# its contents. The scenario tests the same with a device below LVM.
#
# rig: --guests 1 --pages --no-mount --size 128M --pkgs lvm2
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

driver=/sys/bus/nd/drivers/nd_pmem
region=/mnt/a/.stargate/region
program region

# removal DEVICE: unbinds the driver of DEVICE, which is mounted at /mnt/a, and tests the wait.
removal() {
	holds "files are made, and a process maps the region" "yes kept | head -n 1600000 >/mnt/a/file &&
		{ /root/region use $region /run/stop >/run/mapped 2>&1 </dev/null &
			echo \$! >/run/user; } &&
		until [ -s /run/mapped ]; do sleep 0.1; done && grep mapped /run/mapped"
	holds "the unbinding of the driver waits" "dmesg -C
		(exec &>/dev/null; echo $namespace >$driver/unbind; touch /run/unbound) &
		for i in \$(seq 100); do
			dmesg | grep -q 'is being removed' && break
			sleep 0.1
		done
		[ ! -e /run/unbound ]"
	holds "the log gives the reason for the wait" \
		"dmesg | grep 'stargatefs ($1): its device is being removed, which waits for'"
	holds "the files can be read" "[ \"\$(sort -u /mnt/a/file)\" = kept ]"
	holds "the files can be changed" "yes more | head -n 800000 >/mnt/a/more &&
		mv /mnt/a/more /mnt/a/moved &&
		[ \"\$(sort -u /mnt/a/moved)\" = more ] && sync"
	holds "a process that has mapped region can access it" "sleep 1; kill -0 \$(cat /run/user)"
	refused "a new mapping of region gets SIGBUS" "Bus error|status 135|core dumped" \
		"/root/region touch $region; [ \$? = 135 ] && { echo Bus error; exit 1; }"
	refused "the volume stays mounted while a process maps the region" "busy" "umount /mnt/a"
	holds "the process ends" "touch /run/stop
		while kill -0 \$(cat /run/user) 2>/dev/null; do sleep 0.1; done
		rm /run/stop /run/mapped; [ ! -e /run/unbound ]"
	holds "after the unmount the device disappears" "umount /mnt/a &&
		for i in \$(seq 100); do [ -e /run/unbound ] && break; sleep 0.1; done
		rm /run/unbound && [ ! -e $driver/$namespace ]"
}

step "a volume on the device itself"
namespace=$(on g1 'basename $(readlink -f /sys/block/pmem0/device)' </dev/null)
holds "a volume is made on $namespace" "[ -e $driver/$namespace ] && mkfs.stargatefs -q /dev/pmem0 &&
	mkdir -p /mnt/a && mount -t stargatefs /dev/pmem0 /mnt/a"
removal pmem0
holds "the device can be bound and mounted" "echo $namespace >$driver/bind && mount -t stargatefs /dev/pmem0 /mnt/a"
holds "the files are unchanged" "[ \"\$(sort -u /mnt/a/file)\" = kept ] &&
	[ \"\$(sort -u /mnt/a/moved)\" = more ] && umount /mnt/a && fsck.stargatefs -n /dev/pmem0"

step "a volume of a zone"
holds "a zone with a volume is made" "stargatectl zone create --force sm /dev/pmem0 &&
	stargatectl volume create a --size 64M &&
	mount -t stargatefs /dev/sm/a /mnt/a"
removal 'dm-[0-9]*'
refused "the volume cannot be mounted while the device is unbound" "cannot be accessed|special device|can't read" \
	"mount -t stargatefs /dev/sm/a /mnt/a"
holds "the device can be bound and mounted" "DM_DISABLE_UDEV=1 dmsetup remove sm-a &&
	echo $namespace >$driver/bind && vgscan -q &&
	stargatectl volume activate a && mount -t stargatefs /dev/sm/a /mnt/a"
holds "the files are unchanged" "[ \"\$(sort -u /mnt/a/file)\" = kept ] &&
	[ \"\$(sort -u /mnt/a/moved)\" = more ] && umount /mnt/a && stargatectl volume check a"
finish
