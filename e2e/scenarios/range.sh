#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume in a bare physical range, without any block device. The kernel reserves the memory by
# memmap=. The volume is mounted and used in all map modes, and several mounts share one instance.
# The module refuses a range that is not completely reserved memory, and gives the reason.
#
# rig: --size 32M --cpus 2 --append 'memmap=64M$256M,16M$256G'
# maps: inside
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# at OPTIONS: prints the command that mounts a range.
at() { echo "mount -t stargatefs -o '$1' none /mnt/bare"; }
# refuses WHAT PATTERN OPTIONS: checks that a mount with OPTIONS fails with PATTERN.
refuses() { refused "$1" "$2" "$(at "$3")"; }

step "a volume in reserved memory"
holds "the memory is reserved" 'grep -qi "10000000-13ffffff : reserved" /proc/iomem'
holds "a volume for that memory is made" 'mkdir -p /mnt/bare /run/bare &&
	mkfs.stargatefs -q --phys 256M --size 32M /run/bare/volume &&
	dd if=/run/bare/volume of=/dev/mem bs=1M seek=256 conv=notrunc status=none'
holds "the volume can be mounted" "$(at phys=256M,size=32M)"
holds "/proc/mounts shows the range" 'grep "/mnt/bare stargatefs rw,.*phys=0x10000000,size=0x2000000" /proc/mounts'
holds "/proc/iomem shows the range as taken" 'grep -q "10000000-11ffffff : stargatefs" /proc/iomem'
for map in $(map_modes); do
	holds "map=$map: the volume can be used" "mount -o remount,map=$map /mnt/bare &&"'
		cd /mnt/bare && head -c 3M /dev/urandom >/run/bytes && cp /run/bytes f &&
		cmp f /run/bytes && mkdir d && mv f d/g && cmp d/g /run/bytes && rm -r d'
done
holds "a second mount is a mount of the same volume" "mkdir -p /mnt/twice &&
	mount -t stargatefs -o phys=256M,size=32M none /mnt/twice && echo x >/mnt/twice/f &&"'
	[ "$(cat /mnt/bare/f)" = x ] && umount /mnt/twice && cat /mnt/bare/f'
refuses "a second mount with another size is refused" 'mounted already, with size=0x2000000' 'phys=256M,size=16M'
refuses "a range within the mounted one is refused" 'a driver uses|not all of this' 'phys=272M,size=16M'
refused "a remount cannot change the size" 'cannot be changed' 'mount -o remount,size=16M /mnt/bare'
refused "a remount cannot change the size of a device's mount" 'cannot be changed' 'mount -o remount,size=0 /mnt/sg'
refused "a remount cannot change the address" 'cannot be changed' 'mount -o remount,phys=0 /mnt/sg'
holds "a remount with the same range is accepted" 'mount -o remount,ro,phys=256M,size=32M /mnt/bare &&
	mount -o remount,rw /mnt/bare && cat /mnt/bare/f'
holds "the volume is unmounted cleanly" 'umount /mnt/bare &&
	! grep "10000000-11ffffff : stargatefs" /proc/iomem &&
	dd if=/dev/mem of=/run/bare/after bs=1M skip=256 count=32 status=none &&
	fsck.stargatefs -n /run/bare/after'

step "mounts that are refused"
refuses "memory of the kernel is refused" 'not all of this is reserved memory' 'phys=128M,size=32M'
refuses "a range that begins in the kernel's memory is refused" 'not all of this is reserved memory' 'phys=240M,size=32M'
refuses "a range that ends in the kernel's memory is refused" 'not all of this is reserved memory' 'phys=304M,size=32M'
refuses "addresses without memory are refused" 'not all of this is reserved memory' 'phys=64G,size=32M'
refuses "a range that extends beyond memory is refused" 'not all of this is reserved memory' 'phys=256G,size=32M'
refuses "a range that ends beyond all addresses is refused" 'not all of this is reserved memory' \
	'phys=0xffffffffffe00000,size=32M'
refuses "an unaligned start is refused" 'multiple of 2 MiB' 'phys=0x10001000,size=32M'
refuses "a size below the smallest volume is refused" 'at least 16 MiB' 'phys=256M,size=2M'
refuses "a range smaller than its volume is refused" 'run fsck.stargatefs|cut short' 'phys=256M,size=16M'
refuses "reserved memory without a volume is refused" 'no StargateFS here' 'phys=288M,size=32M'
holds "the volume is copied to another address" \
	'dd if=/run/bare/after of=/dev/mem bs=1M seek=288 conv=notrunc status=none'
refuses "a volume for another address is refused, with both addresses" '0x10000000.*0x12000000' \
	'phys=288M,size=32M'
holds "the volume can be mounted after all refusals" "$(at phys=256M,size=32M) && cat /mnt/bare/f && umount /mnt/bare"
finish
