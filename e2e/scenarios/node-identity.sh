#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests that addresses are equal in all systems (D3). One system writes a mark into each page of a
# volume at the page's physical address, and the other system finds the mark at that address. This
# works from host to guest and from guest to host. KVM maps the complete volume in pages of 2 MiB.
# The processor of one system follows file tables that the other system built. The module does not
# mount a volume that a VMM has placed at another address.
#
# node: --guests 1 --size 64M --append iomem=relaxed
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# in_one SYSTEM WHAT COMMAND: checks that COMMAND succeeds in the system. Stores its output in
# $said.
in_one() {
	said=$(on "$1" "$3" 2>&1 </dev/null) || fail "$2: $1: $3: $said"
	passed "$2"
}

# counter SYSTEM FILE NAME: prints a counter of the system's mount.
counter() { on "$1" "awk '\$1 == \"$3\" { print \$2 }' /sys/fs/stargatefs/pmem0/$2" </dev/null; }

# --- A volume at another address ------------------------------------------------------------------

step "a VMM that places the volume at another address"
stop_guest g1
wrong=$(printf '0x%x' $((RIG_BASE + 0x40000000)))
start_guest g1 --no-mount -- -machine nvdimm=on -m "size=384M,slots=2,maxmem=$((2 * wrong >> 20))M" \
	-object "memory-backend-file,id=range,mem-path=/mnt/sg/.stargate/region,size=$RIG_SIZE,align=2M,share=on,prealloc=off" \
	-device "nvdimm,id=range0,memdev=range,addr=$wrong"
in_one g1 "the guest's device exists" 'mkdir -p /mnt/sg; for try in $(seq 500); do [ -b /dev/pmem0 ] && exit; sleep 0.02; done; exit 1'
right=$(printf '0x%x' $((RIG_BASE)))
refused "a plain mount is refused, with both addresses and the remedies" \
	"made for physical address $right, but lies at $wrong \(place it there, or move it here: -o relocate\)" \
	'mount -t stargatefs /dev/pmem0 /mnt/sg'
refused "a read-only mount is refused" "wrong base" 'mount -t stargatefs -o ro /dev/pmem0 /mnt/sg'
refused "a relocation is refused while the host uses the volume" "relocate: mounted by host " 'mount -t stargatefs -o relocate /dev/pmem0 /mnt/sg'
in_one host "the refused mounts do not affect the host" 'echo fine >/mnt/sg/fine && [ "$(cat /sys/fs/stargatefs/pmem0/state)" = writable ]'
stop_guest g1

# --- Pages ----------------------------------------------------------------------------------------

step "marks in each page of the volume"
start_guest g1 --no-mount
compile pages
for system in host g1; do put "$compiled/pages" /root/pages "$system"; done
pages=$((RIG_SIZE / 4096))

# marks SYSTEM KEY: counts the marks of KEY that the system finds at the volume's physical
# addresses.
marks() { on "$1" "/root/pages count /dev/mem $RIG_BASE $RIG_BASE $RIG_SIZE $2" </dev/null; }

# mapped SIZE: prints how many pages of that size KVM has mapped for g1.
mapped() { on host "cat /sys/kernel/debug/kvm/\$(cat /run/rig/g1.pid)-*/pages_$1" </dev/null; }

in_one host "the host's mount is frozen" 'fsfreeze -f /mnt/sg'
small=$(mapped 4k) large=$(mapped 2m)
in_one host "the host marks the volume's physical memory" \
	"/root/pages mark /dev/mem $RIG_BASE $RIG_BASE $RIG_SIZE 0x1dea5a5a00000000 /run/saved"
all="same $pages ones 0 zero 0 other 0"
same "the host's marks are at the expected places of the volume" "$all" \
	"$("$compiled/pages" count "$RIG_RANGE" 0 "$RIG_BASE" "$RIG_SIZE" 0x1dea5a5a00000000)"
same "the guest finds each of $pages pages at the same physical address" "$all" "$(marks g1 0x1dea5a5a00000000)"
in_one g1 "the guest replaces the marks with its own" \
	"/root/pages spoil /dev/mem $RIG_BASE $RIG_BASE $RIG_SIZE 0x9e9e000000000000"
same "the host finds each mark of the guest" "$all" "$(marks host 0x9e9e000000000000)"
same "the host finds none of its own marks" 0 "$(marks host 0x1dea5a5a00000000 | cut -d' ' -f2)"
in_one host "the host restores the saved words" \
	"/root/pages restore /dev/mem $RIG_BASE $RIG_BASE $RIG_SIZE /run/saved"
more_small=$(($(mapped 4k) - small)) more_large=$(($(mapped 2m) - large))
# The guest's kernel has already searched both ends of the volume for signatures.
[[ $more_large -ge $((RIG_SIZE / 2097152 - 2)) && $more_small -lt 64 ]] ||
	fail "KVM does not map the volume by 2 MiB: $more_large pages of 2 MiB, $more_small of 4 KiB"
passed "KVM maps $((RIG_SIZE >> 20)) MiB by $more_large pages of 2 MiB and $more_small of 4 KiB"
in_one host "the host's mount is thawed" 'fsfreeze -u /mnt/sg'
in_one g1 "the guest can mount the volume, and read a file" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ "$(cat /mnt/sg/fine)" = fine ]'

# --- Tables ---------------------------------------------------------------------------------------

# build SYSTEM: makes files that need windows of each size, and one file with holes.
build() {
	in_one "$1" "$1 makes files" "mkdir /mnt/sg/of-$1 && cd /mnt/sg/of-$1 &&
		head -c 300K /dev/urandom >small && head -c 9M /dev/urandom >large &&
		truncate -s 2G holes && for at in 0 3 511 512 700 1023; do
			head -c 8K /dev/urandom | dd of=holes bs=1M seek=\$at conv=notrunc status=none; done"
}

# pieces BY OF: prints digests that BY computes of ranges of OF's file with holes. Some ranges have
# data.
pieces() {
	on "$1" "for at in 0 1 3 511 512 513 700 1023 2000; do
		dd if=/mnt/sg/of-$2/holes bs=1M skip=\$at count=1 status=none | sha256sum; done" </dev/null
}

# spliced BY OF: checks that BY reads OF's files through windows that use the tables of the files.
spliced() {
	local by=$1 of=$2 file size hooks window walked sum
	for file in small large; do
		size=$(on "$by" "stat -c %s /mnt/sg/of-$of/$file" </dev/null)
		sum=$(on "$of" "sha256sum </mnt/sg/of-$of/$file" </dev/null)
		hooks=$(counter "$by" windows hooks)
		window=$(counter "$by" operations window_bytes)
		walked=$(counter "$by" operations walked_bytes)
		same "$by reads the bytes of $of's file $file" "$sum" "$(on "$by" "sha256sum </mnt/sg/of-$of/$file" </dev/null)"
		[[ $(counter "$by" windows hooks) -gt $hooks ]] || fail "$by: no window uses the table of $file"
		same "all bytes of $file come through the window, and none from a walk" "$size 0" \
			"$(($(counter "$by" operations window_bytes) - window)) $(($(counter "$by" operations walked_bytes) - walked))"
	done
	same "files with holes have the same pieces on both sides" "$(pieces "$of" "$of")" "$(pieces "$by" "$of")"
	same "no request for a window fails" 0 "$(counter "$by" windows refused)"
}

step "tables that another system built"
for system in host g1; do build "$system"; done
for system in host g1; do in_one "$system" "$system changes to map=splice" 'mount -o remount,map=splice /mnt/sg'; done
spliced g1 host
spliced host g1
for system in host g1; do in_one "$system" "$system changes to map=walk" 'mount -o remount,map=walk /mnt/sg'; done
finish
