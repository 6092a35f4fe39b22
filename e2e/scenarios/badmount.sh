#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Mounts that the module must refuse. Each error gives the reason and the action to take, and no
# byte of the volume changes.
#
# rig: --guests 2 --size 32M
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

tools=$(dirname "$0")/../../build/tools
pages=$((RIG_SIZE / 4096))
mount='mount -t stargatefs /dev/pmem0 /mnt/sg'
saved=$(mktemp -d)
trap 'rm -rf "$saved"' EXIT

bytes() { sha256sum <"$RIG_RANGE"; }
save() { cat "$RIG_RANGE" >"$saved/volume"; }
restore() { dd if="$saved/volume" of="$RIG_RANGE" bs=1M conv=notrunc status=none; }
# damage PAGE: overwrites the page from outside with random bytes. The first 8 bytes, which hold the
# magic number, stay.
damage() {
	dd if=/dev/urandom of="$RIG_RANGE" bs=8 count=511 seek=$(($1 * 512 + 1)) conv=notrunc \
		status=none
}

# refuses WHAT PATTERN [OPTIONS [SOURCE]]: the mount fails with PATTERN and changes nothing.
refuses() {
	local before
	before=$(bytes)
	refused "$1" "$2" "mount -t stargatefs ${3:+-o '$3'} ${4:-/dev/pmem0} /mnt/sg"
	[[ $before == "$(bytes)" ]] || fail "$1: the refused mount has changed the volume"
}

step "mkfs and fsck of a mounted volume"
said=$("$tools/mkfs.stargatefs" -f --phys "$RIG_BASE" "$RIG_RANGE" 2>&1) &&
	fail "mkfs overwrites a mounted volume"
passed "mkfs refuses: $said"
said=$("$tools/fsck.stargatefs" -y "$RIG_RANGE" 2>&1) && fail "fsck repairs a mounted volume"
passed "fsck refuses: ${said##*$'\n'}"
holds "g1 is not affected" 'echo x >/mnt/sg/file && rm /mnt/sg/file'
holds "g1 unmounts" 'umount /mnt/sg'
on g2 'echo x >/mnt/sg/file && rm /mnt/sg/file' </dev/null || fail "g2 cannot write a file"
passed "g2 is not affected"
said=$("$tools/mkfs.stargatefs" -f --phys "$RIG_BASE" "$RIG_RANGE" 2>&1) &&
	fail "mkfs overwrites a volume that g2 has mounted"
passed "mkfs refuses: $said"
# From here on no system has the volume mounted. So no heartbeat changes it, and the scenario can
# compare its bytes.
on g2 'umount /mnt/sg' </dev/null || fail "g2 cannot unmount"
save

step "sources that cannot contain a volume"
on g1 'head -c 32M /dev/zero >/tmp/image && modprobe loop && losetup /dev/loop0 /tmp/image' \
	</dev/null
refuses "a device without DAX is refused" 'not a DAX device' '' /dev/loop0
refuses "a range in the VM's own memory is refused" 'reserved memory' 'phys=16M,size=32M' none
refuses "a range that a driver uses is refused" 'a driver uses this memory' "phys=$RIG_BASE,size=$RIG_SIZE" none
refuses "a range without alignment to 2 MiB is refused" 'multiple of 2 MiB' "phys=$((RIG_BASE + 4096)),size=16M" none
refuses "a range smaller than 16 MiB is refused" 'at least 16 MiB' "phys=$RIG_BASE,size=1M" none
refuses "phys= without size= is refused" 'belong together' "phys=$RIG_BASE" none
refuses "phys= with a word in place of a number is refused" 'is not a number of bytes' 'phys=here,size=16M' none
refuses "phys= without a digit is refused" 'is not a number of bytes' 'phys=G,size=16M' none
refuses "phys= with two units is refused" 'is not a number of bytes' 'phys=16GG,size=16M' none
refuses "phys= that would wrap around to the volume's address is refused" 'out of range' \
	"phys=$(python3 -c "print((1 << 64) + $RIG_BASE)"),size=$RIG_SIZE" none
refuses "size= that would wrap around after multiplication by its unit is refused" 'out of range' "phys=$RIG_BASE,size=16777217T" none

step "devices without StargateFS"
head -c "$RIG_SIZE" /dev/zero | dd of="$RIG_RANGE" bs=1M conv=notrunc status=none
refuses "a device full of zeros is refused" 'no StargateFS here: .*mkfs.stargatefs'
printf '\x53\xef' | dd of="$RIG_RANGE" bs=1 seek=1080 conv=notrunc status=none
refuses "a device with another file system is refused" 'no StargateFS here: .*mkfs.stargatefs'
restore

step "StargateFS volumes with a defect"
"$tools/mkfs.stargatefs" --quiet -f --phys 0x500000000 "$RIG_RANGE"
refuses "a volume for another address is refused, and the error has both addresses" '0x500000000.*0x400000000'
restore
damage 0
damage $((pages - 1))
refuses "a volume with two damaged superblocks is refused" 'backup are damaged.*run fsck.stargatefs'
restore
program_here() { gcc -O2 -Wall -Wextra -Werror -o "$saved/$1" "$(dirname "$0")/../programs/$1.c"; }
program_here resuper
for wrong in "incompat 0x8000:unknown features" "version 99:format version 99" \
	"data_off 4096:run fsck.stargatefs"; do
	# shellcheck disable=SC2086 # field and value are two words
	"$saved/resuper" "$RIG_RANGE" ${wrong%%:*}
	refuses "a superblock with ${wrong%%:*} is refused" "${wrong#*:}"
	restore
done
"$saved/resuper" "$RIG_RANGE" ro_compat 0x8000
refuses "a writable mount is refused if only readers may ignore an unknown feature" 'can be used read-only' rw
restore

step "options"
refuses "an unknown option is refused" 'unknown parameter.*nonsense' 'nonsense'
refuses "an unknown map mode is refused" 'map=teleport is unknown: use map=walk, splice or shadow' 'map=teleport'
refuses "an unknown value of errors= is refused" \
	'errors=ignore is unknown: use errors=continue, remount-ro or panic' 'errors=ignore'

step "mounts that must still work"
damage 0
holds "a volume with a damaged superblock and a good backup can be mounted" "$mount && umount /mnt/sg"
restore
"$saved/resuper" "$RIG_RANGE" ro_compat 0x8000
holds "a volume with a feature that only writers need can be mounted read-only" "$mount -o ro && umount /mnt/sg"
restore
"$saved/resuper" "$RIG_RANGE" compat 0x8000
holds "a volume with an unknown feature that everybody may ignore can be mounted" "$mount && umount /mnt/sg"
restore
holds "one system can mount the undamaged volume twice" "$mount && mkdir -p /mnt/again &&
	mount -t stargatefs /dev/pmem0 /mnt/again && echo x >/mnt/sg/file &&
	"'[ "$(cat /mnt/again/file)" = x ] && umount /mnt/again && rm /mnt/sg/file'
holds "sysfs reports a largest free extent that is not larger than the free space" \
	'awk "{ n[\$1] = \$2 } END { exit !(n[\"largest_free\"] > 0 &&
		n[\"largest_free\"] <= n[\"free_pages\"] && n[\"free_pages\"] <= n[\"pages\"]) }" \
		/sys/fs/stargatefs/pmem0/free'
again='mount -t stargatefs /dev/pmem0 /mnt/again'
holds "a second mount with the same options is accepted" "$again -o map=walk,errors=remount-ro &&
	umount /mnt/again"
refused "a second mount with another map= is refused" 'mounted already, with map=walk; mount -o remount,map=splice' \
	"$again -o map=splice"
refused "a second mount with another errors= is refused" 'mounted already, with errors=remount-ro; .*errors=continue' \
	"$again -o errors=continue"
holds "a remount changes the option for all mounts" "mount -o remount,errors=continue /mnt/sg &&
	$again -o errors=continue && grep -c errors=continue /proc/mounts | grep -qx 2 &&
	umount /mnt/again && mount -o remount,errors=remount-ro /mnt/sg"
refused "a read-only mount next to a writable one is refused" 'busy|mounted' \
	'mount -t stargatefs -o ro /dev/pmem0 /mnt/again'
finish
