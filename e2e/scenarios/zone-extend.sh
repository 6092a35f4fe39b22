#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A zone gets more memory while one of its volumes is mounted. The memory is a further device, or a
# new part of a device that has become longer. Volumes can be renamed, except volumes in use. A
# command that is killed at any time leaves the old or the new state.
#
# g2 has the same memory, and acts as another system that has a volume mounted.
#
# rig: --guests 2 --pages --no-mount --size 256M --pkgs "lvm2 fdisk"
# kernels: 6.12
# maps: walk
# limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# of VOLUME KEY: prints the value of KEY in the output of `volume show`.
# zone KEY: prints the value of KEY in the output of `zone show`.
of() {
	on g1 "stargatectl -j volume show $1" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}
zone() {
	on g1 'stargatectl -j zone show sm' </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)["zones"][0][sys.argv[1]])' "$1"
}
line() { on g1 "$1 | xargs" </dev/null; }

# refuses_with STATUS WHAT PATTERN COMMAND: checks that COMMAND fails with STATUS, and prints one
# line that matches PATTERN.
refuses_with() {
	local status=0
	on g1 "$4" >/dev/null 2>&1 </dev/null || status=$?
	refuses "$2" "$3" g1 "$4"
	same "$2: the exit status is $1" "$1" "$status"
}

# shape SIZE: resizes the first partition. While the device is in use, the kernel cannot read the
# complete partition table. So partx updates this one partition.
shape() {
	on g1 "echo 'size=$1' | sfdisk -q --no-reread --force -N 1 /dev/pmem0 && partx -u --nr 1 /dev/pmem0" </dev/null ||
		fail "the first partition cannot be resized to $1"
}

holds "two partitions with a gap between them are made" 'printf "label: gpt\nfirst-lba: 4096\nstart=4M, size=64M\nstart=132M, size=64M\n" |
	sfdisk -q --wipe always /dev/pmem0 && ls /dev/pmem0p2'
holds "the first partition becomes a zone" 'stargatectl zone create sm /dev/pmem0p1'
small=$(zone size)
holds "a volume is made and mounted" 'stargatectl volume create a --size 32M -- --max-size 96M && mkdir -p /mnt/a &&
	mount -t stargatefs /dev/sm/a /mnt/a'
holds "a process uses the volume" '{ while echo beat >>/mnt/a/beats; do sleep 0.05; done & } >/dev/null 2>&1 </dev/null
	echo $! >/run/writer; sleep 1; grep -q beat /mnt/a/beats'

step "extensions that are refused"
refuses_with 2 "a disk is refused" "is not DAX capable" 'modprobe loop; truncate -s 64M /run/disk; losetup /dev/loop0 /run/disk 2>/dev/null
	stargatectl zone extend sm /dev/loop0'
refuses_with 6 "the zone's own device is refused" "pmem0p1: belongs to zone sm" "stargatectl zone extend sm /dev/pmem0p1"
refuses_with 2 "a device that is named twice is refused" "is named twice" "stargatectl zone extend sm /dev/pmem0p2 /dev/pmem0p2"
refuses_with 9 "an absent zone is refused" "no zone 'none'" "stargatectl zone extend none /dev/pmem0p2"
holds "the second partition has a StargateFS" "mkfs.stargatefs -q /dev/pmem0p2"
refuses_with 4 "a device with a file system is refused" "holds a StargateFS; give --force" "stargatectl zone extend sm /dev/pmem0p2"
same "the zone is unchanged" "$small" "$(zone size)"
holds "an extension changes nothing if no device is new or longer" "stargatectl zone extend sm"
same "the zone has its earlier size" "$small" "$(zone size)"

step "an extension by another device"
holds "of two commands at the same time, one extends the zone" 'stargatectl zone extend --force sm /dev/pmem0p2 >/run/one 2>&1 & one=$!
	stargatectl zone extend --force sm /dev/pmem0p2 >/run/two 2>&1; two=$?; wait $one; one=$?
	cat /run/one /run/two; [ $((one == 0)) != $((two == 0)) ] && [ $((one + two)) -ge 6 ]'
same "the zone has both devices" 2 "$(zone devices | grep -o "'path'" | wc -l)"
(($(zone size) > small + (60 << 20))) || fail "the zone has only $(zone size) bytes"
holds "a volume is made on the second device" "stargatectl volume create b --size 60M"
same "the volume's address is aligned" 0 $(($(of b base) % (2 << 20)))
(($(of b base) >= RIG_BASE + (132 << 20))) || fail "b is not in the second partition"
holds "the new volume holds its files" "mkdir -p /mnt/b && mount -t stargatefs /dev/sm/b /mnt/b && cp /bin/bash /mnt/b && sync &&
	cmp /bin/bash /mnt/b/bash && umount /mnt/b && stargatectl volume check b"
holds "the first volume is still in use" 'n=$(wc -l </mnt/a/beats); sleep 1; [ $(wc -l </mnt/a/beats) -gt $n ]'
holds "the second device is removed from the zone" "stargatectl volume delete b && vgreduce -q sm /dev/pmem0p2 && pvremove -y -q /dev/pmem0p2"
refuses_with 1 "the StargateFS that --force has overwritten is gone" "no StargateFS here" "stargatectl info /dev/pmem0p2"

step "an extension that is killed at any time"
for ms in 10 50 100 200 300 500 800; do
	on g1 "stargatectl zone extend sm /dev/pmem0p2 >/dev/null 2>&1 & sleep $(printf '0.%03d' $ms); kill -9 \$! 2>/dev/null
		sleep 0.3; vgs >/dev/null 2>&1" </dev/null || true
	case $(line 'vgs --noheadings -o pv_count sm') in
	1) ;;
	2) holds "the killed command had finished; the device is removed from the zone" "vgreduce -q sm /dev/pmem0p2 && pvremove -y -q /dev/pmem0p2" ;;
	*) fail "the zone is damaged after a kill at $ms ms" ;;
	esac
done
holds "the zone can be extended after the kills" "stargatectl zone extend sm /dev/pmem0p2"
same "the zone has both devices" 2 "$(line 'vgs --noheadings -o pv_count sm')"

step "an extension by a device that has become longer"
shape 120M
both=$(zone size)
holds "the zone is extended by the new part of its device" "stargatectl zone extend sm"
same "the zone has the new size" $((both + (56 << 20))) "$(zone size)"
holds "a second extension changes nothing" "stargatectl zone extend sm"
same "the zone still has that size" $((both + (56 << 20))) "$(zone size)"
holds "the volume in use grows into the new part" 'stargatectl volume resize a --size 96M && n=$(wc -l </mnt/a/beats) &&
	sleep 1 && [ $(wc -l </mnt/a/beats) -gt $n ] && df -m /mnt/a'
shape 110M
refuses_with 10 "a device that has become smaller is refused" "pmem0p1: has become smaller" "stargatectl zone extend sm"
shape 120M
holds "an extension succeeds after the device has its size again" "stargatectl zone extend sm"

step "renames that are refused"
refuses_with 6 "a mounted volume cannot be renamed" "mounted or in use here" "stargatectl volume rename a c"
holds "the volume is unmounted" 'kill $(cat /run/writer); sleep 0.3; umount /mnt/a && stargatectl volume check a'
refuses_with 6 "a volume that a program has open cannot be renamed" "is open here in another program" \
	"exec 3</dev/sm/a; stargatectl volume rename a c"
on g2 'blockdev --rereadpt /dev/pmem0; mkdir -p /mnt/a && modprobe dm_mod &&
	DM_DISABLE_UDEV=1 vgchange -qq -ay sm &&
	mount -t stargatefs /dev/sm/a /mnt/a' </dev/null || fail "g2 does not mount it"
refuses_with 6 "a volume that g2 has mounted cannot be renamed" "in use by g2 .*unmount it there" "stargatectl volume rename a c"
refuses_with 6 "a volume that g2 has mounted cannot be renamed with --force" "in use by g2" "stargatectl volume rename --force a c"
on g2 'umount /mnt/a && DM_DISABLE_UDEV=1 vgchange -qq -an sm' </dev/null || fail "g2 cannot unmount the volume"
holds "a second volume and its snapshot are made" "stargatectl volume create b --size 16M && stargatectl volume snapshot b b.snap"
refuses_with 4 "the name of another volume is refused" "sm/b: exists already" "stargatectl volume rename a b"
refuses_with 4 "the volume's own name is refused" "sm/a: has this name already" "stargatectl volume rename a a"
refuses_with 3 "an absent volume cannot be renamed" "there is no such volume" "stargatectl volume rename none c"
for name in pvc-0 x-1 e-2 s-3; do
	refuses_with 10 "the name $name, which the CSI driver may give, is refused" "is a name of the CSI driver" "stargatectl volume rename a $name"
done
same "the refused commands have not renamed the volume" "a stargate" "$(line 'lvs --noheadings -o lv_name,lv_tags sm/a')"

step "a rename"
uuid=$(of a uuid) base=$(of a base)
holds "the volume is renamed" "stargatectl volume rename a c"
same "no device has the old name" "" "$(on g1 'lvs --noheadings sm/a 2>/dev/null; ls /dev/sm/a 2>/dev/null' </dev/null)"
same "the renamed volume is unchanged" "$uuid $base ready" "$(of c uuid) $(of c base) $(of c state)"
same "the renamed volume keeps its label" a "$(of c label)"
same "the renamed volume keeps its tag" stargate "$(line 'lvs --noheadings -o lv_tags sm/c')"
holds "the renamed volume keeps its files" "stargatectl volume check c && mount -t stargatefs /dev/sm/c /mnt/a && grep -q beat /mnt/a/beats &&
	umount /mnt/a"
holds "a new volume can get the old name" "stargatectl volume create a --size 16M && stargatectl volume delete a"
holds "a snapshot can be renamed" "stargatectl volume rename b.snap kept && stargatectl volume clone kept d --size 16M"
same "the renamed snapshot is still a snapshot" snapshot "$(of kept state)"
holds "--force allows a name of Kubernetes" "stargatectl volume rename --force c pvc-0"
refuses_with 10 "a volume of the CSI driver is not renamed without --force" "pvc-0: has a name of the CSI driver" "stargatectl volume rename pvc-0 c"
refuses_with 10 "a volume of the CSI driver is not renamed by its path without --force" "sm/pvc-0: has a name of the CSI driver" "stargatectl volume rename sm/pvc-0 c"
holds "--force allows the rename of a volume of Kubernetes" "stargatectl volume rename sm/pvc-0 c --force"

step "two renames at the same time"
holds "a volume gets one of two new names" 'stargatectl volume rename d e1 >/run/one 2>&1 & one=$!
	stargatectl volume rename d e2 >/run/two 2>&1; two=$?; wait $one; one=$?
	cat /run/one /run/two; [ $((one == 0)) != $((two == 0)) ] && [ $(lvs --noheadings -o lv_name sm | grep -c " e[12]") = 1 ] &&
	lvrename -q sm $(lvs --noheadings -o lv_name sm | grep -o "e[12]") d'
holds "one of two volumes gets the new name" 'stargatectl volume rename d e >/run/one 2>&1 & one=$!
	stargatectl volume rename b e >/run/two 2>&1; two=$?; wait $one; one=$?
	cat /run/one /run/two; [ $((one == 0)) != $((two == 0)) ] &&
	lvs --noheadings -o lv_name sm && [ $(lvs --noheadings -o lv_name sm | grep -cwE "[bde]") = 2 ]'

step "a rename that is killed at any time"
was=c to=f
for ms in 5 30 60 100 150 200 300 400 600 900; do
	on g1 "stargatectl volume rename $was $to >/dev/null 2>&1 & sleep $(printf '0.%03d' $ms); kill -9 \$! 2>/dev/null
		sleep 0.3; vgs >/dev/null 2>&1" </dev/null || true
	found=$(line "lvs --noheadings -o lv_name sm | grep -xE ' *($was|$to) *'")
	case $found in
	"$was") ;;
	"$to") to=$was was=$found ;;
	*) fail "after a kill at $ms ms the zone has '$found', not one of $was and $to" ;;
	esac
	holds "after a kill at $ms ms the volume has the name $was" "stargatectl volume activate $was && stargatectl volume check $was"
	same "the volume has its UUID and its address" "$uuid $base" "$(of "$was" uuid) $(of "$was" base)"
done
holds "the volume can be renamed after the kills" "stargatectl volume rename $was again && stargatectl volume check again &&
	mount -t stargatefs /dev/sm/again /mnt/a && grep -q beat /mnt/a/beats && umount /mnt/a"
finish
