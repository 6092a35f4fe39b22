#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A zone on an NVDIMM that ndctl has set up with struct pages (fsdax). The struct pages are on the
# NVDIMM itself or in the system's own memory, and the namespace has each alignment. The namespace
# reserves a part at its beginning, but volumes still begin at multiples of 2 MiB of physical
# memory. After a reboot the namespace and the zone still exist. The tool refuses other modes of a
# namespace, each with one line.
#
# The NVDIMM has labels, so it can have several namespaces. In the last part it has two, and the
# zone uses both.
#
# rig: --labels --size 256M --mem 320M --pkgs "lvm2 ndctl"
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
mib=$((1 << 20))

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }

# of VOLUME KEY: prints the value of KEY in the output of `volume show`.
of() {
	at g1 "stargatectl -j volume show $1" | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# bytes BASE SIZE: prints that part of the memory, which it reads from outside the VM.
bytes() { tail -c +$(($1 - RIG_BASE + 1)) "$RIG_RANGE" | head -c "$2" || true; }

# namespace ARGUMENT...: makes a namespace with ndctl, and sets $device to its device. With -f and a
# name, ndctl changes that namespace.
namespace() {
	local said
	said=$(on g1 "ndctl create-namespace $* 2>/run/said || { cat /run/said; exit 1; }" </dev/null) ||
		fail "ndctl create-namespace $*: $said"
	device=/dev/$(grep -oP '"(blockdev|chardev)":"\K[^"]+' <<<"$said")
	at g1 "for try in \$(seq 500); do [ -e $device ] && exit; sleep 0.02; done; exit 1"
	passed "ndctl makes $device with: $*"
}

# begins: prints the address of the namespace's memory, after the reserved part.
begins() { at g1 "cat /sys/block/${device#/dev/}/device/resource"; }

# volume NAME: makes and mounts a volume with bytes in it, at a multiple of 2 MiB. Checks from
# outside the VM that the memory at this address has the bytes.
volume() {
	local base
	holds "volume $1 is made and mounted" "stargatectl volume create $1 --size 64M && mkdir -p /mnt/$1 &&
		mount -t stargatefs /dev/sm/$1 /mnt/$1 && yes 'a word of $1' | head -c 8M >/mnt/$1/words"
	base=$(of "$1" base)
	same "the volume begins at a multiple of 2 MiB" 0 $((base % (2 * mib)))
	same "volume.json has the same address" $((base)) $(($(at g1 "cat /mnt/$1/.stargate/volume.json" | grep -oP '"base": "?\K0x[0-9a-f]+')))
	[[ $(bytes "$base" $((64 * mib)) | grep -ac "a word of $1") -gt 500000 ]] ||
		fail "the memory at the volume's address does not have the file's words"
	passed "the volume's content is in the memory at that address"
}

step "devices that cannot become a zone"
refuses "a raw namespace does not become a zone" 'is not DAX capable.*ndctl create-namespace --mode fsdax' g1 \
	"stargatectl zone create sm /dev/pmem0"
namespace -f -e namespace0.0 -m sector
refuses "a namespace of sectors does not become a zone" 'is not DAX capable.*ndctl create-namespace --mode fsdax' g1 "stargatectl zone create sm $device"
namespace -f -e namespace0.0 -m devdax
refuses "a device-dax namespace does not become a zone" 'is device-dax, and no block device.*ndctl create-namespace --mode fsdax' g1 \
	"stargatectl zone create sm $device"
refuses "a device that is no block device does not become a zone" 'is not a block device' g1 'stargatectl zone create sm /dev/null'

step "zones on namespaces with struct pages"
program region
for how in "-M mem -a 4K" "-M dev -a 4K" "-M mem -a 2M" "-M dev -a 2M"; do
	namespace -f -e namespace0.0 -m fsdax "$how"
	first=$(begins)
	echo "   the namespace's memory begins $(((first - RIG_BASE) / mib)) MiB behind the NVDIMM's"
	[[ $((first)) -gt $((RIG_BASE)) && $((first % (2 * mib))) -eq 0 ]] || fail "the namespace's memory begins at $first"
	holds "a zone is made" "stargatectl zone create sm $device"
	same "the first volume begins behind LVM's first 2 MiB" $((first + 2 * mib)) \
		$(($(at g1 'stargatectl -j zone show sm' | grep -oP '"base": "\K0x[0-9a-f]+')))
	volume a
	# The comparison skips the first 4 MiB, where the heartbeat changes.
	same "region has the bytes of the volume's memory" "$(bytes $(($(of a base) + 4 * mib)) $((60 * mib)) | sha256sum)" \
		"$(at g1 "/root/region read /mnt/a/.stargate/region $((4 * mib)) $((60 * mib)) | sha256sum")"
	faults=$(at g1 '/root/region touch /mnt/a/.stargate/region')
	[[ $faults -le 40 ]] || fail "$faults faults for 64 MiB"
	passed "64 MiB are mapped by $faults faults"
	holds "region can be allocated in advance" "/root/region populate /mnt/a/.stargate/region"
	[[ $how == "-M dev -a 2M" ]] || holds "the volume passes fsck and is deleted" "umount /mnt/a && stargatectl volume check a &&
		stargatectl volume delete a && stargatectl zone destroy sm"
done

step "boots with a zone"
# found: prints the namespaces, the zone, and the places of volumes.
found() {
	at g1 'ndctl list -N; stargatectl -j zone show sm
		lvs --noheadings -o lv_name,lv_size,lv_tags sm'
}
# boots HOW: ends the VM by HOW (`kill_guest` or `stop_guest`) and starts it. Checks that zone and
# volumes are unchanged.
boots() {
	local before sums
	before=$(found) sums=$(at g1 'sha256sum /mnt/*/words')
	[[ $1 == kill_guest ]] || holds "both volumes are unmounted" "umount /mnt/a /mnt/b"
	"$1" g1
	start_guest g1 --no-mount
	holds "the device exists" "for try in \$(seq 500); do [ -b $device ] && exit; sleep 0.02; done; exit 1"
	same "namespace and zone are unchanged" "$before" "$(found)"
	holds "the volumes are mounted" "DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
		for v in a b; do mkdir -p /mnt/\$v && mount -t stargatefs /dev/sm/\$v /mnt/\$v || exit 1; done"
	same "the files have the same bytes" "$sums" "$(at g1 'sha256sum /mnt/*/words')"
}
volume b
boots kill_guest
holds "both volumes pass fsck and are deleted" "for v in a b; do umount /mnt/\$v &&
		stargatectl volume check \$v && stargatectl volume delete \$v || exit 1
	done; stargatectl zone destroy sm"

step "a zone on two namespaces"
holds "two namespaces are made" \
	"ndctl disable-region region0 && ndctl init-labels -f nmem0 && ndctl enable-region region0"
namespace -s 128M -m fsdax -M mem
devices=$device first=$(begins)
namespace -s 128M -m fsdax -M dev
devices+=" $device"
holds "both devices become one zone" "stargatectl zone create sm $devices"
volume a
volume b
[[ $(($(of a base) < RIG_BASE + 128 * mib)) != $(($(of b base) < RIG_BASE + 128 * mib)) ]] ||
	fail "both volumes are on the same device: $(of a base), $(of b base)"
passed "each device has one volume"
boots stop_guest
holds "both volumes pass fsck" \
	"for v in a b; do umount /mnt/\$v && stargatectl volume check \$v || exit 1; done"
finish
