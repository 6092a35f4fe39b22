#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# When zone and volume commands fail, no data is lost. A volume that is open or read-only keeps its
# bytes and its tag. A device that does not become a zone keeps its contents.
#
# rig: --guests 1 --pages --no-mount --size 128M --pkgs lvm2
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# refuses_with STATUS WHAT PATTERN COMMAND: checks that COMMAND fails with STATUS, and prints one
# line that matches PATTERN.
refuses_with() {
	local status=0
	on g1 "$4" >/dev/null 2>&1 </dev/null || status=$?
	refuses "$2" "$3" g1 "$4"
	same "$2: the exit status is $1" "$1" "$status"
}

line() { on g1 "$1 | xargs" </dev/null; }

# kept WHEN: checks that the volume is unchanged.
kept() {
	same "$1: the volume has its tag" stargate "$(line 'lvs --noheadings -o lv_tags sm/a')"
	holds "$1: the volume has its bytes" 'stargatectl volume check a &&
		mount -t stargatefs -o ro /dev/sm/a /mnt/a && grep -q "^kept" /mnt/a/file && umount /mnt/a'
}

# sum: prints the digest of the device.
sum() { line 'head -c 64M /dev/pmem0 | sha256sum | cut -c 1-64'; }

step "devices that do not become a zone"
holds "a volume group exists that is not a zone" 'truncate -s 64M /run/disk && modprobe loop &&
	losetup /dev/loop0 /run/disk && pvcreate -y /dev/loop0 && vgcreate disks /dev/loop0'
holds "the device has a StargateFS" 'mkfs.stargatefs -q /dev/pmem0'
before=$(sum)
refuses_with 4 "the name of a volume group is refused" "^stargatectl: disks: is the name of a volume group" \
	'stargatectl zone create --force disks /dev/pmem0'
refuses_with 4 "the name of a file in /dev is refused" "would be in /dev/null" \
	'stargatectl zone create --force null /dev/pmem0'
refuses_with 2 "a device that is named twice is refused" "/dev/pmem0: is named twice" \
	'stargatectl zone create --force sm /dev/pmem0 /dev/pmem0'
refuses_with 2 "a device that is named by two paths is refused" "/run/alias: is named twice, also as /dev/pmem0" \
	'ln -sf /dev/pmem0 /run/alias && stargatectl zone create --force sm /dev/pmem0 /run/alias'
same "the content is unchanged" "$before" "$(sum)"
refuses_with 6 "a device of another volume group is refused" \
	"loop0: belongs to the volume group disks.*vgremove disks" \
	'stargatectl zone create --force sm /dev/loop0'

holds "a volume group with another system ID is made, which LVM hides" 'truncate -s 64M /run/away &&
	losetup /dev/loop2 /run/away && pvcreate -y -q /dev/loop2 &&
	vgcreate -q --systemid elsewhere away /dev/loop2 && ! vgs away'
refuses_with 4 "the name of the hidden volume group is refused" "^stargatectl: away: is the name of a volume group" \
	'stargatectl zone create --force away /dev/pmem0'
refuses_with 6 "the device of the hidden volume group is refused" "loop2: belongs to the volume group away; see vgs --foreign" \
	'stargatectl zone create --force sm /dev/loop2'
same "the content is still unchanged" "$before" "$(sum)"

step "two commands at the same time"
holds "the device is empty" 'dd if=/dev/zero of=/dev/pmem0 bs=1M count=128 oflag=direct status=none'
refuses_with 7 "a zone cannot be made while another command changes zones" "another stargatectl is at work" \
	'mkdir -p /run/stargatefs/_ &&
	flock /run/stargatefs/_/_ stargatectl zone create sm /dev/pmem0'
refuses_with 7 "a zone cannot be destroyed while another command changes zones" "another stargatectl is at work" \
	'flock /run/stargatefs/_/_ stargatectl zone destroy sm'
holds "one of the two commands gets the device" 'for try in 1 2 3; do
		stargatectl zone create one /dev/pmem0 >/run/one 2>&1 & first=$!
		stargatectl zone create two /dev/pmem0 >/run/two 2>&1; s=$?
		wait $first; f=$?
		case $f,$s in
		0,[67]) has=one lost=two ;;
		[67],0) has=two lost=one ;;
		*) cat /run/one /run/two; exit 1 ;;
		esac
		[ $(wc -l </run/$lost) = 1 ] &&
			[ "$(vgs --noheadings -o vg_name -S vg_tags=stargate | xargs)" = $has ] &&
			stargatectl zone destroy $has || { cat /run/$lost; exit 1; }
	done'

step "a command that was killed while it made a zone"
holds "the killed command has made an LVM device" 'pvcreate -y -q /dev/pmem0'
holds "a zone can be made without --force after the killed command" 'stargatectl zone create sm /dev/pmem0'
refuses_with 6 "the device of a zone is refused" "/dev/pmem0: belongs to zone sm.*zone destroy sm" \
	'stargatectl zone create --force other /dev/pmem0'

step "deletions of a volume that is open"
holds "a volume is made and mounted" 'stargatectl volume create a --size 32M && mkdir -p /mnt/a &&
	mount -t stargatefs /dev/sm/a /mnt/a &&
	yes kept | head -n 100000 >/mnt/a/file && umount /mnt/a'
refuses_with 6 "a volume that a process has open for reading is not deleted" \
	"/dev/sm/a: is open here in another program or device; close it first" \
	'exec 7</dev/sm/a; exec stargatectl volume delete a'
kept "after the first refused deletion"
holds "a loop device uses the volume" 'losetup /dev/loop1 /dev/sm/a'
refuses_with 6 "a volume that a loop device uses is not deleted with --force" \
	"/dev/sm/a: is open here in another program or device" \
	'stargatectl volume delete a --force'
holds "the loop device is detached" 'losetup -d /dev/loop1'
kept "after the second refused deletion"

step "a volume whose mount is not visible"
holds "the volume is unmounted while a process still has a file open" 'mount -t stargatefs /dev/sm/a /mnt/a &&
	{ tail -f /mnt/a/file >/dev/null 2>&1 </dev/null & echo $! >/run/tail; } && sleep 1 &&
	umount -l /mnt/a && ! grep stargatefs /proc/mounts'
refuses_with 6 "a volume without a visible mount cannot grow" "sm/a: is in use here, but none of its mounts is visible" \
	'stargatectl volume resize a --size 48M'
same "LVM has not extended the volume" "32.00m stargate" "$(line 'lvs --noheadings -o lv_size,lv_tags sm')"
holds "a resize to the present size does nothing" 'stargatectl volume resize a --size 32M'
holds "the volume can grow after it is mounted" 'mount -t stargatefs /dev/sm/a /mnt/a &&
	stargatectl volume resize a --size 40M && [ $(stat -f -c %b /mnt/a) -gt 8500 ]'
holds "the volume is unmounted" 'umount /mnt/a && kill $(cat /run/tail) &&
	for i in $(seq 100); do stargatectl volume check a && exit; sleep 0.1; done; exit 1'
kept "after the growth"

step "a read-only volume"
holds "the device is set read-only" 'blockdev --setro /dev/sm/a'
ro='/dev/sm/a: is a read-only device.*blockdev --setrw /dev/sm/a'
refuses_with 1 "a read-only volume is not deleted" "$ro" 'stargatectl volume delete a'
kept "after the refused deletion"
refuses_with 1 "a read-only volume cannot grow" "$ro" 'stargatectl volume resize a --size 48M'
same "the volume has its earlier size" 40.00m "$(line 'lvs --noheadings -o lv_size sm/a')"
refuses_with 1 "a read-only volume is not relocated" "$ro" 'stargatectl volume relocate a'
refused "a read-only volume is not repaired" "$ro" 'stargatectl volume check a -- -y'
holds "a read-only volume can be checked" 'stargatectl volume check a'
holds "the volume can be deleted after it is set writable" 'blockdev --setrw /dev/sm/a && stargatectl volume delete a &&
	stargatectl zone destroy sm'
finish
