#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume is at another physical address than its base. A mount fails and prints both addresses.
# The tool or a mount option relocates the volume. The new range may overlap the old one, and an
# earlier relocation may have been killed. After each relocation the scenario reads the volume in
# each map mode, writes to it, and checks it. The tool refuses to relocate a volume in use.
#
# rig: --size 160M --pages --pkgs "dmsetup"
# kernels: 6.12 7.2
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

tools=$(dirname "$0")/../../build/tools
mib=$((1 << 20))
elsewhere=0x500000000
# Pages of a file that reaches beyond 1 TiB, so that it has tables of all four levels.
at='1 30 700 40000 300000000'
pieces='for i in '$at'; do
		dd if=/mnt/sg/sparse bs=4096 skip=$i count=3 status=none
	done | sha256sum'

hex() { printf '0x%x' "$1"; }

# cut_device NAME MIB: makes a device of 48 MiB that begins MIB behind the range's beginning.
cut_device() {
	on g1 "dmsetup --noudevsync create $1 --table '0 98304 linear /dev/pmem0 $(($2 * 2048))' &&
		dmsetup mknodes" </dev/null || fail "the device $1 cannot be made"
}

# copy FROM TO: copies a device's bytes past all caches. The devices may overlap.
copy() {
	on g1 "dd if=/dev/mapper/$1 of=/tmp/volume bs=2M iflag=direct status=none &&
		dd if=/tmp/volume of=/dev/mapper/$2 bs=2M oflag=direct conv=fsync status=none &&
		rm /tmp/volume && blockdev --flushbufs /dev/mapper/$2" </dev/null ||
		fail "device $1 cannot be copied to $2"
}

# fill: makes files of all kinds in the mount, and records their digests outside of the volume.
fill() {
	holds "the volume has files of many kinds" 'cd /mnt/sg && cp -r /etc/. . && head -c 5M /dev/urandom >large &&
		echo page >page && head -c 70000 /dev/urandom >table &&
		for i in '"$at"'; do
			head -c 9000 /dev/urandom |
				dd of=sparse bs=4096 seek=$i conv=notrunc status=none
		done &&
		{ '"$pieces"'; } >/tmp/pieces &&
		mkdir many && for i in $(seq 300); do echo $i >many/$i; done &&
		printf "%0200d" 7 >/tmp/target && ln -s $(cat /tmp/target) long &&
		find . -type f -not -path "./.stargate/*" -not -name sparse -print0 |
		xargs -0 sha256sum >/tmp/sums &&
		cd / && umount /mnt/sg'
}

# whole DEVICE: mounts the device in each map mode, and checks that every file is unchanged and that
# the volume works.
whole() {
	local map
	for map in $(map_modes); do
		holds "map=$map: every file is unchanged" \
			"umount /mnt/sg; mount -t stargatefs -o map=$map $1 /mnt/sg &&
			cd /mnt/sg && sha256sum -c --quiet /tmp/sums &&
			[ \$(readlink long) = \$(cat /tmp/target) ] &&
			{ $pieces; } | cmp - /tmp/pieces"
		holds "map=$map: files can be made, changed and removed" \
			"cd /mnt/sg && cp -r /etc/apt new && diff -r /etc/apt new &&
			cp large copy && truncate -s 3M copy && cmp -n 3145728 large copy && rm -r new copy"
	done
	holds "the volume is clean" "umount /mnt/sg && fsck.stargatefs -n $1"
}

step "a volume in use"
said=$("$tools/stargatectl" relocate --base "$elsewhere" "$RIG_RANGE" 2>&1) &&
	fail "the tool relocates a mounted volume"
grep -q 'mounted by g1' <<<"$said" || fail "the error does not name the system: $said"
passed "the tool refuses to relocate a mounted volume: $said"
holds "the mount is not affected" 'echo x >/mnt/sg/file && cat /mnt/sg/file && rm /mnt/sg/file'

step "a volume with tables of all kinds"
holds "the volume is unmounted" 'umount /mnt/sg && modprobe dm-mod'
cut_device one 0
cut_device two 64
cut_device three 66
holds "the volume is made" 'mkfs.stargatefs -q -f /dev/mapper/one &&
	mount -t stargatefs /dev/mapper/one /mnt/sg'
fill

step "a mount option relocates a moved volume"
copy one two
here=$(hex $((RIG_BASE)))
there=$(hex $((RIG_BASE + 64 * mib)))
refused "a plain mount of the moved volume is refused" "made for physical address $here, but lies at $there .*-o relocate" \
	'mount -t stargatefs /dev/mapper/two /mnt/sg'
refused "a read-only mount of the moved volume is refused" "$here.*$there" \
	'mount -t stargatefs -o ro /dev/mapper/two /mnt/sg'
holds "a mount with -o relocate relocates the volume" 'mount -t stargatefs -o relocate /dev/mapper/two /mnt/sg &&
	! grep -q relocate /proc/mounts'
whole /dev/mapper/two

step "the tool relocates a volume that was moved by 2 MiB"
copy two three
refused "a plain mount of the moved volume is refused" "wrong base.*$there.*$(hex $((RIG_BASE + 66 * mib)))" \
	'mount -t stargatefs /dev/mapper/three /mnt/sg'
refused "the tool refuses --base for a device with a known address" 'lies at .* leave --base out' \
	"stargatectl relocate --base $elsewhere /dev/mapper/three"
holds "a dry run shows what the tool would do" \
	'stargatectl relocate --dry-run /dev/mapper/three | grep -q "would be moved from 0x"'
holds "the tool relocates the volume" 'stargatectl relocate /dev/mapper/three | grep "moved from"'
whole /dev/mapper/three

step "a relocation that is killed"
# The tool relocates a copy of the third device's volume to the address of the second device, and is
# killed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# moving: succeeds if the superblock has the feature bit of an unfinished relocation.
moving() { (($(od -An -tu1 -j32 -N1 "$work/half") & 1)); }
for ((try = 0; try < 400; try++)); do
	dd if="$RIG_RANGE" of="$work/half" bs=2M skip=33 count=24 status=none
	"$tools/stargatectl" relocate --base "$there" "$work/half" >/dev/null 2>&1 &
	sleep "0.$(printf %03d $((try * 7 % (10 + try))))"
	kill -9 $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	! moving || break
done
moving || fail "no try killed the tool during the relocation"
passed "the tool was killed during the relocation after $try tries"
dd if="$work/half" of="$RIG_RANGE" bs=2M seek=32 conv=notrunc status=none
refused "a mount of the half-moved volume is refused" "half moved to base $there: .*stargatectl relocate" \
	'mount -t stargatefs /dev/mapper/two /mnt/sg'
refused "a read-only mount of the half-moved volume is refused" 'half moved' 'mount -t stargatefs -o ro /dev/mapper/two /mnt/sg'
holds "a mount with -o relocate finishes the relocation" 'mount -t stargatefs -o relocate /dev/mapper/two /mnt/sg'
whole /dev/mapper/two

step "a volume whose base changed on the host, while the guest has it at $here"
on g1 'for d in one two three; do dmsetup --noudevsync remove $d; done
	mkfs.stargatefs -q -f /dev/pmem0 && mount -t stargatefs /dev/pmem0 /mnt/sg' </dev/null ||
	fail "no volume can be made and mounted"
fill
"$tools/stargatectl" relocate --base "$elsewhere" "$RIG_RANGE" || fail "the tool does not relocate the volume"
refused "a plain mount of the moved volume is refused" "$elsewhere.*$here" 'mount -t stargatefs /dev/pmem0 /mnt/sg'
holds "a mount with -o relocate relocates the volume back" 'mount -t stargatefs -o relocate /dev/pmem0 /mnt/sg'
whole /dev/pmem0
holds "the option relocate is accepted where no relocation is needed" \
	'mount -t stargatefs -o relocate /dev/pmem0 /mnt/sg && mount -o remount,relocate /mnt/sg'
finish
