#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the tools on block devices. The tools detect the base, also through device-mapper. They read
# what the mounted file system wrote, and the mounted file system reads what they wrote. They refuse
# to change a mounted volume.
#
# rig: --size 128M --pages --pkgs "dmsetup attr"
# kernels: 6.12
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

step "the tools on a mounted device"
on g1 'echo before >/mnt/sg/file' </dev/null
refused "fsck refuses a mounted device" 'mounted or in use here' 'fsck.stargatefs -y /dev/pmem0'
refused "mkfs refuses a mounted device" 'mounted or in use here' 'mkfs.stargatefs -f /dev/pmem0'
refused "stargatectl refuses to change a mounted device" 'mounted or in use here' 'stargatectl mkdir /dev/pmem0 /new'
same "stargatectl reads a mounted device" before "$(on g1 'stargatectl cat /dev/pmem0 /file 2>/dev/null' </dev/null)"
on g1 'echo after >/mnt/sg/file' </dev/null
same "stargatectl reads the current content" after \
	"$(on g1 'stargatectl cat /dev/pmem0 /file 2>/dev/null' </dev/null)"
holds "stargatectl shows the slot of the mount" \
	'stargatectl slots /dev/pmem0 2>/dev/null | grep -q "state: live"'

step "the tools on an unmounted device"
holds "the volume is unmounted" 'umount /mnt/sg'
holds "the volume is clean" 'fsck.stargatefs -n /dev/pmem0'
same "stargatectl reads the bytes that the kernel has written" after "$(on g1 'stargatectl cat /dev/pmem0 /file' </dev/null)"
holds "stargatectl copies a tree into the volume" 'stargatectl put -r /dev/pmem0 /etc /'
holds "the volume is mounted" 'mount -t stargatefs /dev/pmem0 /mnt/sg'
holds "the kernel sees the tree" 'diff -r --no-dereference /etc /mnt/sg/etc'
holds "files of the tree can be removed and added in a mount" 'rm -r /mnt/sg/etc/ssl; cp -r /etc/apt /mnt/sg/; umount /mnt/sg'
holds "the volume passes fsck after the kernel's changes" 'fsck.stargatefs -n /dev/pmem0'
holds "stargatectl reads the added files" \
	'stargatectl get -r /dev/pmem0 /apt /tmp/apt && diff -r /etc/apt /tmp/apt'

step "stargatectl replaces a file only when the new one is complete"
on g1 'head -c 40M /dev/urandom >/tmp/first; head -c 40M /dev/urandom >/tmp/second
	ln /tmp/first /tmp/apt/name; ln /tmp/apt/name /tmp/apt/other' \
	</dev/null || fail "the files to copy cannot be made"
holds "stargatectl copies a large file into the volume" 'stargatectl rm -r /dev/pmem0 /etc && stargatectl put /dev/pmem0 /tmp/first /file'
refused "the volume has no space for a larger file" 'No space left in the volume' \
	'head -c 130M /dev/zero | stargatectl put /dev/pmem0 - /file'
holds "the old file is complete, and no other file exists" \
	'stargatectl cat /dev/pmem0 /file | cmp - /tmp/first && fsck.stargatefs -n /dev/pmem0'
holds "stargatectl copies a tree with hard links" 'stargatectl rm /dev/pmem0 /file &&
	stargatectl put -r /dev/pmem0 /tmp/apt /'
holds "the kernel sees one file with two names, and replaces it" 'mount -t stargatefs /dev/pmem0 /mnt/sg &&
	[ /mnt/sg/apt/name -ef /mnt/sg/apt/other ] && cmp /mnt/sg/apt/other /tmp/first &&
	rm /mnt/sg/apt/other && chmod 604 /mnt/sg/apt/name &&
	setfattr -n user.kept -v value /mnt/sg/apt/name && umount /mnt/sg'
holds "stargatectl replaces one of the names" 'stargatectl put /dev/pmem0 /tmp/second /apt/name &&
	stargatectl cat /dev/pmem0 /apt/name | cmp - /tmp/second && fsck.stargatefs -n /dev/pmem0'
holds "the new file has mode and attributes of the old one" 'mount -t stargatefs /dev/pmem0 /mnt/sg &&
	[ "$(stat -c %a /mnt/sg/apt/name)" = 604 ] &&
	[ "$(getfattr --only-values -n user.kept /mnt/sg/apt/name)" = value ] && umount /mnt/sg'

step "repair"
on g1 'head -c 4096 /dev/zero | dd of=/dev/pmem0 bs=4096 conv=notrunc,fsync status=none' </dev/null
said=$(on g1 'fsck.stargatefs -n /dev/pmem0' </dev/null) && fail "fsck does not find the damage"
passed "fsck finds the damage: ${said%%$'\n'*}"
on g1 'fsck.stargatefs -y /dev/pmem0; test $? -eq 1' </dev/null || fail "fsck does not repair the damage"
passed "fsck repairs the damage"
holds "the repaired volume is clean, and can be mounted" \
	'fsck.stargatefs -n /dev/pmem0 && mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/sg'

step "the address of a device"
# base_of DEVICE: prints the base that mkfs detects.
base_of() {
	on g1 "mkfs.stargatefs -n -f --json '$1'" </dev/null |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["phys"])'
}
same "mkfs detects the address of the disk" "$((RIG_BASE))" "$(base_of /dev/pmem0)"
on g1 'modprobe dm-mod; dmsetup --noudevsync create low --table "0 65536 linear /dev/pmem0 65536"
	dmsetup mknodes
	dmsetup --noudevsync create upper --table "0 49152 linear /dev/mapper/low 8192"
	dmsetup mknodes' </dev/null || fail "the device-mapper devices cannot be made"
same "mkfs detects the address of a stack of linear devices" "$((RIG_BASE + (65536 + 8192) * 512))" \
	"$(base_of /dev/mapper/upper)"
refused "an address that is not the device's is refused" 'lies at 0x' \
	'mkfs.stargatefs -f --phys 64G /dev/mapper/upper'
holds "a volume is made on the stacked device" 'mkfs.stargatefs -f /dev/mapper/upper'
holds "the volume on the stacked device can be mounted" 'mount -t stargatefs /dev/mapper/upper /mnt/sg && umount /mnt/sg'
on g1 'dmsetup --noudevsync create torn --table "0 16384 linear /dev/pmem0 0
16384 32768 linear /dev/pmem0 65536"; dmsetup mknodes' </dev/null || fail "the device-mapper devices cannot be made"
refused "a device in two pieces is refused" 'not one contiguous range' 'mkfs.stargatefs -f /dev/mapper/torn'
on g1 'dmsetup --noudevsync remove torn; dmsetup --noudevsync remove upper
	dmsetup --noudevsync remove low; mkfs.stargatefs -q -f /dev/pmem0 &&
	mount -t stargatefs /dev/pmem0 /mnt/sg' </dev/null ||
	fail "the volume for the end of the run cannot be made and mounted"
finish
