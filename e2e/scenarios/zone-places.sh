#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Zones and addresses. First the memory of a zone is in two places, or in a partition. Then the
# bytes of a volume move to another address. A mount fails with both addresses until the volume is
# relocated. The last part tests the limit of a VM's address space. Up to the limit, QEMU starts
# with the output of `qemu-args`. One step beyond the limit, stargatectl and QEMU refuse.
#
# The second place is 64 MiB of g1's own memory. There is no memory for a volume of a terabyte.
# Therefore the test mounts a sparse file over the volume's region, and another text over
# /proc/cpuinfo to simulate another processor.
#
# rig: --pages --no-mount --size 256M --mem 1G --append memmap=64M!0x20000000 --pkgs "lvm2 qemu-system-x86"
# kernels: 6.12
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
hex() { printf '0x%x' "$1"; }

# of VOLUME KEY: prints the value of KEY in the output of `volume show`.
of() {
	at g1 "stargatectl -j volume show $1" | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# device ADDRESS: prints the device whose memory begins at that address.
device() { at g1 "grep -lix $1 /sys/block/pmem*/device/resource | cut -d/ -f4"; }

# --- Zones in two places or in a partition --------------------------------------------------

two_places() {
	holds "two devices become one zone" "stargatectl zone create sm /dev/$high /dev/$low"
	same "the largest possible volume fits into one place" $((254 << 20)) \
		"$(at g1 'stargatectl -j zone show sm' | grep -oP '"largest_volume": \K\d+')"
	holds "a new volume is made" "stargatectl volume create small --size 62M"
	same "the volume is in the smallest place" "$(hex $((0x20200000)))" "$(of small base)"
	refused "a volume cannot extend over both places" "largest possible volume has 254 MiB" \
		"stargatectl volume create large --size 256M"
	holds "the next volume is in the other place" "stargatectl volume create large --size 128M"
	same "the next volume is in the larger place" "$(hex $((RIG_BASE + (2 << 20))))" "$(of large base)"
	refused "a volume cannot grow beyond the end of its place" "largest possible size is 62 MiB" \
		"stargatectl volume resize small --size 64M"
	holds "both volumes hold their files" "mkdir -p /mnt/small /mnt/large; for v in small large; do
			mount -t stargatefs /dev/sm/\$v /mnt/\$v &&
				cp /bin/bash /mnt/\$v && sync || exit 1
		done; cmp /bin/bash /mnt/small/bash && cmp /bin/bash /mnt/large/bash"
	refuses "a VM cannot get a volume below 4 GiB" "from 4 GiB on" g1 \
		"stargatectl volume qemu-args small --memory 256M"
	holds "both volumes pass fsck and are deleted" "umount /mnt/small /mnt/large && for v in small large; do
			stargatectl volume check \$v && stargatectl volume delete \$v || exit 1
		done; stargatectl zone destroy sm"
}

# partition: tests a zone in a partition. The partition has 81920 sectors and begins at sector 72,
# where no volume may begin.
partition() {
	holds "the device has a partition" "head -c 446 /dev/zero >/run/table &&
		printf '\\0\\0\\0\\0\\203\\0\\0\\0\\110\\0\\0\\0\\0\\100\\1\\0' >>/run/table &&
		head -c 48 /dev/zero >>/run/table && printf '\\125\\252' >>/run/table &&
		dd if=/run/table of=/dev/$low bs=512 status=none && blockdev --rereadpt /dev/$low &&
		[ \$(cat /sys/block/$low/${low}p1/start) = 72 ]"
	holds "the partition becomes a zone with a volume" "stargatectl zone create part /dev/${low}p1 && stargatectl volume create p --size 16M"
	same "the volume's address is aligned" 0 $(($(of p base) % (2 << 20)))
	holds "the volume is in the memory of its partition" "mkdir -p /mnt/p && mount -t stargatefs /dev/part/p /mnt/p &&
		[ \$((\$(cat /sys/fs/stargatefs/*/phys))) = $(($(of p base))) ] && umount /mnt/p"
	holds "the volume, the zone and the partition are removed" "stargatectl volume delete p && stargatectl zone destroy part &&
		dd if=/dev/zero of=/dev/$low bs=512 count=1 status=none && blockdev --rereadpt /dev/$low"
}

# --- A volume whose bytes have moved --------------------------------------------------------

moved() {
	local from to
	holds "a zone and a volume are made" "stargatectl zone create sm /dev/$high && stargatectl volume create old --size 64M &&
		cp -r /etc /run/etc &&
		mkdir -p /mnt/a && mount -t stargatefs /dev/sm/old /mnt/a &&
		cp -r /run/etc /mnt/a &&
		head -c 20M /dev/urandom >/mnt/a/file && sha256sum </mnt/a/file >/run/sum && umount /mnt/a"
	holds "the volume's bytes are copied to another place" "export DM_DISABLE_UDEV=1
		lvcreate -y -q -W n -Z n --addtag stargate -L 64M -n a sm && vgmknodes &&
		dd if=/dev/sm/old of=/dev/sm/a bs=2M iflag=direct oflag=direct status=none"
	from=$(of old base) to=$(of a base)
	[[ $from != "$to" ]] || fail "the copy has the address of the old volume"
	same "the old volume is ready" ready "$(of old state)"
	same "the copy is shown as moved" "moved $from" "$(of a state) $(of a made_for_base)"
	holds "the list shows the copy as moved" "stargatectl volume list |
		grep -E '^sm/a +moved +64 MiB +0x0*${to#0x} '"
	refused "the error of mount has both addresses and the remedy" \
		"made for physical address $from, but lies at $to .*relocate" \
		"mount -t stargatefs /dev/sm/a /mnt/a 2>&1"
	refuses "a moved volume cannot grow" \
		"was made for address $from and is at $to; run stargatectl volume relocate" g1 \
		"stargatectl volume resize a --size 80M"
	holds "the moved volume is relocated" "stargatectl volume relocate a"
	same "the relocated volume is ready" "ready $to" "$(of a state) $(of a base)"
	holds "a second relocation changes nothing" "stargatectl volume relocate a"
	holds "the relocated volume has its files" "stargatectl volume check a && mount -t stargatefs /dev/sm/a /mnt/a &&
		sha256sum </mnt/a/file | cmp - /run/sum &&
		diff -r --no-dereference /run/etc /mnt/a/etc &&
		[ \$((\$(cat /sys/fs/stargatefs/*/phys))) = $((to)) ]"
	refuses "a volume in use cannot be relocated" "mounted|in use" g1 "stargatectl volume relocate a"
	holds "both volumes are unchanged" "umount /mnt/a && stargatectl volume check a &&
		stargatectl volume check old && stargatectl volume delete old"
}

# --- The limit of a VM's address space ---------------------------------------------------------

qemu="qemu-system-x86_64 -nodefaults -no-user-config -display none -S -monitor stdio -M q35 -accel tcg"

# recipe MIB [OPTION...]: prints the output of qemu-args for a VM with MIB of memory, in one line.
recipe() { at g1 "stargatectl volume qemu-args a --memory $1M ${*:2} | xargs"; }

# larger RECIPE KEY MIB: prints the recipe with MIB added to the number of KEY.
larger() {
	local now
	now=$(grep -oP "\\b$2=\\K\\d+(?=M)" <<<"$1" | head -n 1)
	echo "${1/$2=${now}M/$2=$((now + $3))M}"
}

starts() { # WHAT CPU RECIPE: checks that QEMU starts with the volume at its address
	holds "$1: QEMU starts" "printf 'info memory-devices\\nquit\\n' | $qemu -cpu $2 $3 | tee /dev/stderr |
		grep -q 'addr: $(of a base)'"
}

# beyond WHAT PATTERN MIB: checks that stargatectl refuses MIB of memory in each kind of recipe.
beyond() {
	local recipe
	for recipe in qemu-args libvirt-xml; do
		refuses "$1: $recipe refuses" "$2" g1 "stargatectl volume $recipe a --memory $3M"
	done
}

stops() { # WHAT PATTERN CPU RECIPE: checks that QEMU does not start
	refused "$1: QEMU does not start" "$2" "echo quit | $qemu -cpu $3 $4"
}

# memory: tests the limit for the VM's own memory, which is below the volume. The VM's devices use 2
# of the 16 GiB below the volume.
memory() {
	local most
	most=$(recipe 14336)
	starts "14 GiB of memory" max "$most"
	beyond "1 MiB more than 14 GiB" "has memory there: give it at most 14 GiB" 14337
	stops "1 MiB more than 14 GiB" "usable range for memory devices" max "$(larger "$(larger "$most" size 1)" maxmem 1)"
	starts "all memory below 4 GiB" max "$(recipe 2815)"
	starts "memory below and above 4 GiB" max "$(recipe 2816)"
}

# large MIB: gives the volume's region that apparent size.
large() {
	at g1 "umount /mnt/a/.stargate/region 2>/dev/null; truncate -s $1M /run/large &&
		mount --bind /run/large /mnt/a/.stargate/region"
}

# processor VENDOR: makes /proc/cpuinfo show a processor of that vendor, with 40 address bits.
processor() {
	at g1 "umount /proc/cpuinfo 2>/dev/null; printf '%s\\n' 'vendor_id : $1' \
		'address sizes : 40 bits physical, 48 bits virtual' >/run/cpuinfo &&
		mount --bind /run/cpuinfo /proc/cpuinfo"
}

# limit VENDOR GIB PATTERN: tests the largest volume with which all addresses end at GIB, the limit
# of that vendor's processor. For a larger one stargatectl prints PATTERN. Behind the volume, 2 GiB
# are for slots, and 32 GiB for PCI devices.
limit() {
	local most=$((($2 - 32 - 2) * 1024 - ($(of a base) >> 20)))
	processor "$1"
	large $most
	starts "$1, addresses up to the last byte" "max,vendor=$1" "$(recipe 1024)"
	large $((most + 2))
	beyond "$1, 2 MiB more" "$3" 1024
	processor GenuineIntel
	stops "$1, 2 MiB more" "phys-bits too low" "max,vendor=$1" "$(recipe 1024 --phys-bits 41)"
}

step "a zone in two places"
low=$(device 0x20000000) high=$(device "$(hex "$RIG_BASE")")
[[ -n $low && -n $high ]] || fail "there are no two devices: '$low', '$high'"
two_places
step "a zone in a partition"
partition
step "a volume whose bytes have moved"
moved
step "the limit of a VM's own memory"
holds "the volume is mounted" "mount -t stargatefs /dev/sm/a /mnt/a && sysctl -qw vm.overcommit_memory=1"
memory
step "the limit of a processor's addresses"
limit AuthenticAMD 1012 'all of its memory moves to 1 TiB when they reach 1012 GiB'
limit GenuineIntel 1024 '40 bits for them \(as this processor has\) reach to 1 TiB'

step "a check of the volume"
holds "the volume passes fsck after all these changes" "umount /proc/cpuinfo /mnt/a/.stargate/region /mnt/a &&
	stargatectl volume check a && stargatectl volume delete a && stargatectl zone destroy sm"
finish
