#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume grows while two systems use it. In g1 the volume is on a logical volume of the same size.
# In g2 the device is larger than the volume from the beginning. The volume can grow after the
# logical volume has grown, and mounts and mappings continue to work. If a system has no memory for
# the growth, or does not answer, the error names it and nothing changes. If a system dies during
# the growth, the volume has the old or the new size.
#
# rig: --guests 2 --no-mount --size 256M --mem 320M --pages --pkgs dmsetup
# kernels: 6.12
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

dev=/dev/mapper/box
region=/mnt/sg/.stargate/region
read -ra maps <<<"$(map_modes)"
program_everywhere mapped

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# sized GUEST: prints the size of the guest's volume in MiB, with metadata.
sized() { at "$1" 'echo $(($(cat /sys/fs/stargatefs/*/size) >> 20))'; }
same_everywhere() {
	local guest
	for guest in $RIG_GUESTS; do same "$guest sees $1 MiB" "$1" "$(sized "$guest")"; done
	same "df prints the same size on both guests" "$(at g1 'stat -f -c %b /mnt/sg')" "$(at g2 'stat -f -c %b /mnt/sg')"
}
# lengthen MIB: grows g1's logical volume while it is in use, as lvextend does.
lengthen() {
	at g1 "dmsetup --noudevsync reload box --table '0 $(($1 * 2048)) linear /dev/pmem0 0' &&
		dmsetup --noudevsync suspend box && dmsetup --noudevsync resume box"
}
logical_volume() {
	at g1 "modprobe dm-mod; dmsetup --noudevsync create box --table '0 $(($1 * 2048)) linear /dev/pmem0 0'
		dmsetup mknodes"
}
mounted() { at "$1" "mkdir -p /mnt/sg && mount -t stargatefs -o map=$3 $2 /mnt/sg"; }

step "a volume of 64 MiB, on a logical volume of 64 MiB and a device of 256 MiB"
at g2 'mkfs.stargatefs -q --size 64M /dev/pmem0'
logical_volume 64
mounted g1 $dev "${maps[0]}"
mounted g2 /dev/pmem0 "${maps[-1]}"
same_everywhere 64
same "region has 64 MiB in g1" $((64 << 20)) "$(at g1 "stat -c %s $region")"
at g2 'head -c 24M /dev/urandom >/mnt/sg/old; sha256sum </mnt/sg/old >/mnt/sg/old.sum'

step "g1 writes by calls, and g2 by a mapping"
# The writes are small, because pages that are freed while a system is paused are not available.
at g1 'cat >/root/work <<-"END"
	i=0
	while [ ! -e /run/enough ]; do
		sleep 0.05
		head -c 256K /dev/urandom >/run/bytes && cp /run/bytes /mnt/sg/w.$((i % 3)) &&
			cmp /run/bytes /mnt/sg/w.$((i % 3)) && i=$((i + 1)) || exit 1
	done
	echo $i >/run/rounds
	END
	bash /root/work >/run/work.log 2>&1 &'
at g2 '/root/mapped /mnt/sg/mapped /run/enough >/run/map.log 2>&1 &'

step "g1 has no memory for the growth"
refuses "the growth from g2 is refused" 'no more than 64 MiB while .* \(slot 0\) uses the volume' g2 \
	'stargatectl grow --size 128M /mnt/sg'
refuses "the growth from g1 itself is refused" 'no more than 64 MiB: this system has no memory beyond' g1 \
	"stargatectl grow --size 128M $dev"
refuses "the volume does not shrink" 'a volume cannot shrink: it has 64 MiB' g1 \
	"stargatectl grow --size 32M $dev"
same_everywhere 64

step "the logical volume grows, and then the volume"
lengthen 128
same "g1 can grow the volume with the path of the device" "$dev: has grown from 64 MiB to 128 MiB" "$(at g1 "stargatectl grow $dev")"
same_everywhere 128
same "region has 128 MiB in g1" $((128 << 20)) "$(at g1 "stat -c %s $region")"
lengthen 192
same "g2 can grow the volume with the path of the mount" "/mnt/sg: has grown from 128 MiB to 160 MiB" \
	"$(at g2 'stargatectl grow --size 160M /mnt/sg')"
same_everywhere 160
at g1 'head -c 70M /dev/urandom >/mnt/sg/large; sha256sum </mnt/sg/large >/mnt/sg/large.sum'
at g2 'sha256sum </mnt/sg/large | cmp - /mnt/sg/large.sum'
passed "g2 reads a file that g1 wrote into the new part"
at g2 'sha256sum </mnt/sg/old | cmp - /mnt/sg/old.sum'
passed "a file from before the growth has its bytes"

step "a paused system does not answer"
pause_guest g2
refuses "the error names the system that does not answer" '\(slot 1\) does not answer' g1 "stargatectl grow --size 170M $dev"
resume_guest g2
same "the growth succeeds after the system was resumed" "$dev: has grown from 160 MiB to 170 MiB" \
	"$(at g1 "stargatectl grow --size 170M $dev")"
same_everywhere 170
for guest in $RIG_GUESTS; do at "$guest" 'touch /run/enough'; done
said=$(at g2 'until grep . /run/map.log; do sleep 0.2; done')
[[ $said == *rounds ]] || fail "the mapping has lost stores: $said"
passed "the mapping has all stores: $said"
at g1 'until [ -s /run/rounds ] || [ -s /run/work.log ]; do sleep 0.2; done'
same "no call has failed" "" "$(at g1 'cat /run/work.log')"
passed "the calls continued during the growth: $(at g1 'cat /run/rounds') rounds"

step "the growing system dies"
to=170
for delay in $(scaled 0.3 "0 0.05 0.3" "0 0.02 0.05 0.1 0.2 0.3 0.5"); do
	to=$((to + 2))
	on g1 "sync; stargatectl grow --size ${to}M $dev" >/dev/null 2>&1 </dev/null &
	sleep "$delay"
	kill_guest g1
	wait $! || true
	at g2 'echo on >/mnt/sg/goes && rm /mnt/sg/goes; sleep 1.5'
	start_guest g1 --no-mount
	logical_volume 192
	mounted g1 $dev "${maps[0]}"
	now=$(sized g2)
	[[ $now -eq $to || $now -lt $to && $now -ge 170 ]] || fail "the volume has $now MiB, and not its old or new size ($to MiB)"
	same_everywhere "$now"
	at g1 "stargatectl grow --size ${to}M /mnt/sg >/dev/null"
	same_everywhere "$to"
done

step "the next access in an idle system sees the new size"
sizes=$(seq $((to + 2)) 2 190 | paste -sd' ')
at g2 "sleep 0.5; for to in $sizes; do
		until [ -e /mnt/sg/grown.\$to ]; do :; done
		read -r size </sys/fs/stargatefs/pmem0/size
		echo \$((size >> 20))
	done >/run/seen" &
seen=$!
at g1 "sleep 1; for to in $sizes; do
		stargatectl grow --size \${to}M /mnt/sg >/dev/null || exit 1
		: >/mnt/sg/grown.\$to
	done"
wait "$seen" || fail "g2 has not seen all sizes"
same "g2 sees the sizes immediately" "$sizes" "$(at g2 'paste -sd" " /run/seen; rm /mnt/sg/grown.*')"

step "the largest size with both systems, and then with g2 alone"
at g1 'stargatectl grow /mnt/sg >/dev/null'
same_everywhere 192
same "sysfs in g2 shows the largest size that g1 allows" $((192 << 20)) "$(at g2 'cat /sys/fs/stargatefs/pmem0/max_size')"
at g1 'umount /mnt/sg'
at g2 'stargatectl grow /dev/pmem0 >/dev/null'
same "g2 sees all 256 MiB" 256 "$(sized g2)"
refuses "g1 cannot mount the volume from a shorter device" 'cut short: the volume has 256 MiB, and only 192 are here' g1 \
	"mount -t stargatefs $dev /mnt/sg 2>&1 | grep cut; exit 1"
lengthen 256
mounted g1 $dev "${maps[0]}"
same_everywhere 256
at g1 'sha256sum </mnt/sg/large | cmp - /mnt/sg/large.sum && umount /mnt/sg &&
	dmsetup --noudevsync remove box'
at g2 'umount /mnt/sg && fsck.stargatefs -n /dev/pmem0'
passed "the volume passes fsck"
finish
