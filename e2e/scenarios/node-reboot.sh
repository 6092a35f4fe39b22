#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node reboots, and its memory keeps its bytes (NVM). After the boot, zone and volumes have the
# same places and contents. Before the first reboot one VM shuts down, and one is killed during a
# write. The host unmounts, and the mount table is empty. At the second reboot, host and VMs still
# have the volume mounted and hold its locks. No guard process runs. The host's next mount detects
# that all these systems are dead, and recovers their slots before any VM starts.
#
# node: --guests 2 --no-mount --size 64M --pkgs lvm2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile reboot

# members: prints the names of volume a's systems. The function reads the volume's memory outside of
# the node.
members() {
	memory "$base" "$end" >"$work/volume"
	"$SG_TOOLS/stargatectl" -j systems "$work/volume" 2>/dev/null | python3 -c 'import json, sys
print(*sorted(s["name"] for s in json.load(sys.stdin)["systems"]))'
}

# machine GUEST: starts a VM, which mounts volume a.
machine() {
	start "$1" a
	in_one "$1" "$1 mounts volume a" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ -s /mnt/sg/data ]'
}

# orders GUEST NAME: makes numbered files in the guest's folder GUEST.NAME until the guest ends. A
# file outside of the node records each complete file.
orders() {
	: >"$work/$1.$2"
	on "$1" "mkdir /mnt/sg/$1.$2; cd /mnt/sg/$1.$2; n=0; while n=\$((n + 1)); do
		echo \$n >new && mv new \$n && echo \$n; done" >"$work/$1.$2" 2>/dev/null </dev/null &
	for ((i = 0; i < 600; i++)); do
		[[ $(wc -l <"$work/$1.$2") -lt 20 ]] || return 0
		sleep 0.1
	done
	fail "$1 has not made 20 files within 60 s"
}

# all_there FOLDER: checks that the host can read every recorded file of FOLDER. The last line of
# the record may be incomplete.
all_there() {
	local n
	n=$(($(wc -l <"$work/$1") - 1))
	in_one host "the volume has all $n complete files of $1" \
		"for n in \$(seq $n); do [ \"\$(cat /mnt/a/$1/\$n)\" = \$n ] || exit 1; done; rm -r /mnt/a/$1"
}

# boots: makes the kernel reboot immediately, without unmounting.
boots() {
	put "$compiled/reboot" /root/reboot host
	on host /root/reboot </dev/null >/dev/null 2>&1 || true
	await_reboot
	wait || true
}

# back STATE: starts the node, and checks that it finds the zone with both volumes. STATE is
# `ready`, or `in use` if the mount tables list systems.
back() {
	start_node
	in_one host "the node finds the zone" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
		stargatectl zone show sm && DM_DISABLE_UDEV=1 vgchange -qq -ay sm'
	same "the volumes have their addresses, and the state $1" "$base $1 $base_b $1" \
		"$(of a base) $(of a state) $(of b base) $(of b state)"
	in_one host "both volumes can be mounted" 'mkdir -p /mnt/a /mnt/b &&
		mount -t stargatefs /dev/sm/a /mnt/a && mount -t stargatefs /dev/sm/b /mnt/b'
	same "the files have the same bytes" "$sums" "$(sums)"
	same "only the host is a member" host "$(members)"
}
sums() { on host 'sha256sum /mnt/a/data /mnt/b/data; stat -c "%n %i %s %y %a" /mnt/a/data' </dev/null; }

step "a zone with two volumes, one of which two VMs use"
in_one host "a zone is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0'
for v in a b; do
	in_one host "volume $v is made and mounted" "stargatectl volume create $v --size 16M && mkdir -p /mnt/$v &&
		mount -t stargatefs /dev/sm/$v /mnt/$v && head -c 2M /dev/urandom >/mnt/$v/data"
done
base=$(of a base) base_b=$(of b base)
end=$((base + $(of a size)))
sums=$(sums)
machine g1
machine g2
same "three systems are members" "g1 g2 host" "$(members)"

step "a reboot after all systems have left the volumes"
in_one g1 "g1 writes files" 'echo mine >/mnt/sg/g1 && mkdir /mnt/sg/open && exec 9>/mnt/sg/open/file && rm /mnt/sg/open/file'
orders g2 1
stop_guest g1
denied host "the host cannot unmount a volume that g2 uses" busy 'umount /mnt/a'
in_one host "the host kills g2, unmounts, and deactivates the zone" 'pid=$(cat /run/rig/g2.pid); kill -KILL $pid
	for try in $(seq 600); do [ -d /proc/$pid ] || break; sleep 0.1; done
	umount /mnt/a && umount /mnt/b && DM_DISABLE_UDEV=1 vgchange -qq -an sm && rmmod stargatefs'
same "the mount table is empty" "" "$(members)"
"$SG_TOOLS/fsck.stargatefs" -n "$work/volume" >"$work/said" 2>&1 ||
	fail "fsck finds damage in a volume that all systems have left: $(cat "$work/said")"
passed "no system needs recovery, and the volume needs no repair"
boots
back ready
all_there g2.1
same "the host reads what g1 wrote" mine "$(on host 'cat /mnt/a/g1' </dev/null)"
same "the kernel log has no message about a recovery" 0 "$(on host 'dmesg | grep -c "stargatefs.*recovered"' </dev/null || true)"

step "a reboot while all systems work"
machine g1
machine g2
in_one host "the host guards both VMs" 'for try in $(seq 100); do
		[ "$(stargatectl -j systems /mnt/a/.stargate/region | tr , "\n" | grep -c "\"guarded\": true")" = 2 ] && exit
		sleep 0.1; done; stargatectl -j systems /mnt/a/.stargate/region; exit 1'
for guest in g1 g2; do orders "$guest" 2; done
on g1 'exec 9>/mnt/sg/lock; flock 9; echo >/mnt/sg/locked; sleep 1000' </dev/null >/dev/null 2>&1 &
in_one host "g1 holds a lock" 'until [ -e /mnt/a/locked ]; do sleep 0.1; done; ! flock -n /mnt/a/lock true'
boots
same "the mount table still lists three systems" "g1 g2 host" "$(members)"
back "in use"
in_one host "the lock can be taken" 'flock -w 5 /mnt/a/lock true'
for guest in g1 g2; do
	in_one host "the log reports the recovery of $guest" "dmesg | grep 'recovered $guest '"
	all_there "$guest.2"
done
machine g1
same "a VM can join the volume after the reboot" "g1 host" "$(members)"
in_one g1 "the VM reads its file, and writes another one" 'echo more >/mnt/sg/more && [ "$(cat /mnt/sg/g1)" = mine ]'
same "the host reads the VM's new file" more "$(on host 'cat /mnt/a/more' </dev/null)"
stop_guest g1

step "a check of both volumes"
in_one host "both volumes pass fsck" 'umount /mnt/a /mnt/b && stargatectl volume check a && stargatectl volume check b'
finish
