#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Write-back of cache lines (flush=): what the device says, what the option says, and what
# stargatectl and sysfs show. Files stay intact in each mode.
#
# rig: --size 64M --pages --mem 1G
# maps: inside
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

device=$(on g1 'findmnt -no SOURCE /mnt/sg')
cache=/sys/block/${device##*/}/dax/write_cache
flush() { on g1 'cat /sys/fs/stargatefs/*/flush'; }
again() { on g1 "umount /mnt/sg && mount -t stargatefs -o '$1' $device /mnt/sg"; }

files=0
write_some() {
	files=$((files + 1))
	holds "files can be made, read and removed ($1)" \
		"echo $files > /mnt/sg/f$files && ln /mnt/sg/f$files /mnt/sg/l$files && rm /mnt/sg/l$files &&
		 dd if=/dev/zero of=/mnt/sg/big$files bs=64K count=16 conv=fsync 2>/dev/null &&
		 [ \$(cat /mnt/sg/f$files) = $files ] && rm /mnt/sg/big$files"
}

step "the device decides"
same "a device whose caches are lost needs write-back" "on device" "$(flush)"
holds "stargatectl info says so" "stargatectl info $device | grep -q '^write_back: *needed\$'"
write_some auto
on g1 "echo 0 > $cache"
again map=walk
same "a device whose caches persist needs none" "off device" "$(flush)"
holds "stargatectl info says so, too" \
	"stargatectl info $device | grep -q '^write_back: *not needed: caches persist\$'"
write_some "caches persist"

step "the option decides"
again flush=always
same "flush=always" "on option" "$(flush)"
holds "the option is shown" 'grep -q " /mnt/sg .*flush=always" /proc/mounts'
on g1 "echo 1 > $cache"
again flush=never
same "flush=never" "off option" "$(flush)"
write_some never
refused "a remount does not change it" 'flush: a remount does not change it' \
	'mount -o remount,flush=always /mnt/sg'
same "a refused remount changes nothing" "off option" "$(flush)"
refused "an unknown value" 'flush=often is unknown: use flush=auto, always or never' \
	"mount -t stargatefs -o flush=often $device /mnt"
refused "another mount of the volume with another value" 'mounted already, with flush=never' \
	"mount -t stargatefs -o flush=always $device /mnt"

step "back"
again flush=auto
same "flush=auto" "on device" "$(flush)"
holds "all files are there" "[ \$(cat /mnt/sg/f* | wc -l) = $files ]"
