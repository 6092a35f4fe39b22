#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node with a zone gets another release of the module. Its host has two volumes mounted, and a VM
# has one of them as its memory. Before the module can be unloaded, that VM must end, and the host
# must unmount both volumes. The errors name these users and no others. The zone itself can stay
# active. After the upgrade the volumes and the zone are unchanged. A VM with the earlier release
# and the host work together, and the host can fence the VM. At the end the host gets the first
# release back.
#
# node: --guests 1 --no-mount --size 64M --pkgs lvm2
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/lib/zone.sh
source e2e/lib/zone.sh
# shellcheck source=e2e/lib/release.sh
source e2e/lib/release.sh

region=/mnt/a/.stargate/region

# members: prints the systems of volume a, with their versions.
members() {
	on host "stargatectl -j systems $region" </dev/null | python3 -c 'import json, sys
print(*sorted(s["name"] + "=" + s["version"] for s in json.load(sys.stdin)["systems"]))'
}

# zone: prints all records of the zone.
# files: prints digests and attributes of the files of both volumes.
zone() {
	on host 'stargatectl -j zone show sm
		lvs --noheadings -o lv_name,lv_attr,lv_size,lv_tags sm' </dev/null
}
files() {
	on host 'cd /mnt && sha256sum [ab]/data &&
		stat -c "%n %i %s %y %a" [ab]/data a/link b/dir' </dev/null
}

# machine: starts g1 with volume a.
machine() {
	start g1 a
	in_one g1 "g1 mounts volume a" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
}

# stays WHY: checks that the module cannot be unloaded.
stays() { denied host "the module cannot be unloaded while $1" 'in use' 'rmmod stargatefs'; }

# exchanged MODULE VERSION: replaces the module of the host, which has no volume mounted. Checks
# that no byte of the zone changes, and that LVM keeps its volumes active.
exchanged() {
	local zone bytes
	zone=$(zone)
	bytes=$(bytes "$RIG_BASE" $((RIG_BASE + RIG_SIZE)))
	in_one host "the module is replaced while LVM has the volumes active" \
		"[ -e /dev/sm/a ] && rmmod stargatefs && ! grep -q ^stargatefs /proc/modules && insmod /root/$1"
	same "the loaded module has the expected release" "$2" "$(on host 'cat /sys/module/stargatefs/version' </dev/null)"
	same "the zone is unchanged" "$zone" "$(zone)"
	same "the bytes of the zone are unchanged" "$bytes" "$(bytes "$RIG_BASE" $((RIG_BASE + RIG_SIZE)))"
	in_one host "both volumes are mounted" \
		'mount -t stargatefs /dev/sm/a /mnt/a && mount -t stargatefs /dev/sm/b /mnt/b'
	same "the files are unchanged" "$files" "$(files)"
}

step "a zone with two volumes, one of which a VM uses"
other_release
has_other host
in_one host "a zone is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0'
for v in a b; do
	in_one host "volume $v is made and mounted" "stargatectl volume create $v --size 16M && mkdir -p /mnt/$v &&
		mount -t stargatefs /dev/sm/$v /mnt/$v && head -c 2M /dev/urandom >/mnt/$v/data &&
		ln -s data /mnt/$v/link && mkdir /mnt/$v/dir"
done
files=$(files)
machine
has_other g1
same "two systems are members" "g1=$now host=$now" "$(members)"

step "users that must end before the module can be unloaded"
stays "both volumes are mounted"
pid=$(on host 'cat /run/rig/g1.pid' </dev/null)
denied host "volume a cannot be unmounted while g1 uses it" 'busy' 'umount /mnt/a'
denied host "volume a cannot be unmounted by umount -f" 'busy' 'umount -f /mnt/a'
in_one host "the log names the process that prevents the unmount" "dmesg | grep 'stays mounted: process $pid '"
in_one host "the list of holders has this process" "cat /sys/fs/stargatefs/*/holders | grep -w $pid"
in_one host "volume b, which no VM uses, can be unmounted" 'umount /mnt/b'
in_one g1 "the VM can write" 'echo on >/mnt/sg/goes && rm /mnt/sg/goes'
stays "g1 uses volume a"
stop_guest g1
stays "volume a is mounted"
in_one host "volume a can be unmounted after the end of g1" 'umount /mnt/a'

step "another release on the host"
exchanged next.ko "$other"
same "only the host is a member" "host=$other" "$(members)"

step "a VM with the earlier release"
machine
same "both systems are members" "g1=$now host=$other" "$(members)"
same "the VM reads the same bytes as the host" "$(on host 'sha256sum </mnt/a/data' </dev/null)" \
	"$(on g1 'sha256sum </mnt/sg/data' </dev/null)"
in_one g1 "the VM writes a file" 'head -c 3M /dev/urandom >/mnt/sg/of.g1 && sha256sum </mnt/sg/of.g1 >/mnt/sg/sum'
in_one host "the host reads the VM's file, and writes another one" 'sha256sum </mnt/a/of.g1 | cmp - /mnt/a/sum &&
	head -c 3M /dev/urandom >/mnt/a/of.host && sha256sum </mnt/a/of.host >/mnt/a/sum'
in_one g1 "the VM reads the host's file" 'sha256sum </mnt/sg/of.host | cmp - /mnt/sg/sum'
# The VM holds a lock and makes directories until it is killed.
on g1 'exec 9>/mnt/sg/lock; flock 9; touch /mnt/sg/has; while :; do
	mkdir /mnt/sg/d.$((n += 1)); done' </dev/null >/dev/null 2>&1 &
holder=$!
in_one host "the host cannot take the VM's lock" 'until [ -d /mnt/a/d.9 ]; do sleep 0.1; done
	! flock -w 1 /mnt/a/lock true'
in_one host "the VM cannot take the host's lock" 'exec 9>/mnt/a/host.lock; flock 9; touch /mnt/a/host.has
	for try in $(seq 300); do [ -s /mnt/a/tried ] && break; sleep 0.1; done
	[ "$(cat /mnt/a/tried)" = refused ]' &
locker=$!
in_one g1 "the VM has tried to take the host's lock" 'until [ -e /mnt/sg/host.has ]; do sleep 0.1; done
	flock -n /mnt/sg/host.lock true && said=had || said=refused; echo $said >/mnt/sg/tried'
wait "$locker" || exit 1

step "the VM with the earlier release is killed"
on host 'exec 9>>/mnt/a/lock; flock -w 60 9 && echo "${EPOCHREALTIME/[.,]/}" >/run/has' </dev/null &
waits=$!
sleep 1
kill -0 "$waits" || fail "the host got a lock that g1 holds"
on host 'echo "${EPOCHREALTIME/[.,]/}" >/run/killed' </dev/null
kill_guest g1
wait "$waits" || fail "the host does not get g1's lock"
wait "$holder" || true
took=$(on host 'echo $((($(cat /run/has) - $(cat /run/killed)) / 1000))' </dev/null)
[[ $took -lt 2000 ]] || fail "the host got the lock $took ms after SIGKILL, not within 2 s"
passed "the host got the VM's lock $took ms after SIGKILL"
in_one host "the log reports the fence of the VM" \
	'dmesg | grep "g1 (slot [0-9]*): its VM has ended: fenced"'
same "the killed VM is no member" "host=$other" "$(members)"
in_one host "the files of the killed VM can be removed" \
	'cd /mnt/a && [ -d d.9 ] && rm -r d.* of.* sum tried *has *lock'

step "another release in the VM"
machine
has_other g1
in_one g1 "the VM replaces its module" \
	'umount /mnt/sg && rmmod stargatefs && insmod /root/next.ko &&
		mount -t stargatefs /dev/pmem0 /mnt/sg'
same "both systems have the other release" "g1=$other host=$other" "$(members)"
same "the files are unchanged" "$files" "$(files)"
stop_guest g1

step "the first release on the host"
in_one host "both volumes are unmounted" 'umount /mnt/a /mnt/b'
exchanged stargatefs.ko "$now"
in_one host "both volumes pass fsck" \
	'umount /mnt/a /mnt/b && stargatectl volume check a && stargatectl volume check b'
finish
