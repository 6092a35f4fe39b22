#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node with a zone gets another release of the module. Its host has two volumes mounted, and a VM
# has one of them as its memory. The errors name only the users that must end first: the VMs that
# have volumes as their memory, and the host's own mounts. For the other volume this is only the
# mount. The zone has no such user. After the upgrade everything works as before. A VM with the
# earlier release and the host work together, and the host can fence the VM. Then the scenario
# repeats this in the other direction.
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

# zone: prints all records of the zone. files: prints the content of the volumes.
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
	in_one g1 "g1 has a mounted" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
}

# stays WHY: checks that the module cannot be unloaded.
stays() { denied host "the module stays: $1" 'in use' 'rmmod stargatefs'; }

# exchanged MODULE VERSION: exchanges the module on the host, which has nothing mounted; no byte of
# the zone changes, and LVM keeps its volumes.
exchanged() {
	local zone bytes
	zone=$(zone)
	bytes=$(bytes "$RIG_BASE" $((RIG_BASE + RIG_SIZE)))
	in_one host "the module is exchanged while LVM has the volumes" \
		"[ -e /dev/sm/a ] && rmmod stargatefs && ! grep -q ^stargatefs /proc/modules && insmod /root/$1"
	same "the loaded module has the expected release" "$2" "$(on host 'cat /sys/module/stargatefs/version' </dev/null)"
	same "the zone is unchanged" "$zone" "$(zone)"
	same "the bytes of the zone are unchanged" "$bytes" "$(bytes "$RIG_BASE" $((RIG_BASE + RIG_SIZE)))"
	in_one host "both are mounted" \
		'mount -t stargatefs /dev/sm/a /mnt/a && mount -t stargatefs /dev/sm/b /mnt/b'
	same "the files are unchanged" "$files" "$(files)"
}

step "a zone with two volumes, one of which a machine has"
other_release
has_other host
in_one host "a zone" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0'
for v in a b; do
	in_one host "$v" "stargatectl volume create $v --size 16M && mkdir -p /mnt/$v &&
		mount -t stargatefs /dev/sm/$v /mnt/$v && head -c 2M /dev/urandom >/mnt/$v/data &&
		ln -s data /mnt/$v/link && mkdir /mnt/$v/dir"
done
files=$(files)
machine
has_other g1
same "two systems are members" "g1=$now host=$now" "$(members)"

step "users that must end before the module can go"
stays "both are mounted"
pid=$(on host 'cat /run/rig/g1.pid' </dev/null)
denied host "a is not unmounted under g1" 'busy' 'umount /mnt/a'
denied host "nor by force" 'busy' 'umount -f /mnt/a'
in_one host "the log says who is in the way" "dmesg | grep 'stays mounted: process $pid '"
in_one host "holders says it, too" "cat /sys/fs/stargatefs/*/holders | grep -w $pid"
in_one host "b, which no machine has, is unmounted while g1 works" 'umount /mnt/b'
in_one g1 "the machine can write" 'echo on >/mnt/sg/goes && rm /mnt/sg/goes'
stays "g1 has a"
stop_guest g1
stays "a is mounted"
in_one host "which is unmounted when g1 has ended" 'umount /mnt/a'

step "another release"
exchanged next.ko "$other"
same "only the host is a member" "host=$other" "$(members)"

step "a machine with the release before"
machine
same "both systems are members" "g1=$now host=$other" "$(members)"
same "the machine reads the same bytes as the host" "$(on host 'sha256sum </mnt/a/data' </dev/null)" \
	"$(on g1 'sha256sum </mnt/sg/data' </dev/null)"
in_one g1 "the machine writes a file" 'head -c 3M /dev/urandom >/mnt/sg/of.g1 && sha256sum </mnt/sg/of.g1 >/mnt/sg/sum'
in_one host "the host reads that, and writes" 'sha256sum </mnt/a/of.g1 | cmp - /mnt/a/sum &&
	head -c 3M /dev/urandom >/mnt/a/of.host && sha256sum </mnt/a/of.host >/mnt/a/sum'
in_one g1 "which it reads" 'sha256sum </mnt/sg/of.host | cmp - /mnt/sg/sum'
# It continues to work, with a lock, until it is killed.
on g1 'exec 9>/mnt/sg/lock; flock 9; touch /mnt/sg/has; while :; do
	mkdir /mnt/sg/d.$((n += 1)); done' </dev/null >/dev/null 2>&1 &
holder=$!
in_one host "the machine's lock is valid on the host" 'until [ -d /mnt/a/d.9 ]; do sleep 0.1; done
	! flock -w 1 /mnt/a/lock true'
in_one host "one of the host holds there" 'exec 9>/mnt/a/host.lock; flock 9; touch /mnt/a/host.has
	for try in $(seq 300); do [ -s /mnt/a/tried ] && break; sleep 0.1; done
	[ "$(cat /mnt/a/tried)" = refused ]' &
locker=$!
in_one g1 "the machine has tried to get the host's lock" 'until [ -e /mnt/sg/host.has ]; do sleep 0.1; done
	flock -n /mnt/sg/host.lock true && said=had || said=refused; echo $said >/mnt/sg/tried'
wait "$locker" || exit 1

step "its machine is killed"
on host 'exec 9>>/mnt/a/lock; flock -w 60 9 && echo "${EPOCHREALTIME/[.,]/}" >/run/has' </dev/null &
waits=$!
sleep 1
kill -0 "$waits" || fail "the lock of g1 is had by the host"
on host 'echo "${EPOCHREALTIME/[.,]/}" >/run/killed' </dev/null
kill_guest g1
wait "$waits" || fail "the host does not get g1's lock"
wait "$holder" || true
took=$(on host 'echo $((($(cat /run/has) - $(cat /run/killed)) / 1000))' </dev/null)
[[ $took -lt 2000 ]] || fail "$took ms from SIGKILL to the host's lock"
passed "after SIGKILL, the host had the machine's lock in $took ms"
in_one host "the host has fenced it at once" \
	'dmesg | grep "g1 (slot [0-9]*): its VM has ended: fenced"'
same "the killed machine is no member" "host=$other" "$(members)"
in_one host "the files of the killed machine can be removed" \
	'cd /mnt/a && [ -d d.9 ] && rm -r d.* of.* sum tried *has *lock'

step "the machine's own module, in its time"
machine
has_other g1
in_one g1 "exchanged" \
	'umount /mnt/sg && rmmod stargatefs && insmod /root/next.ko &&
		mount -t stargatefs /dev/pmem0 /mnt/sg'
same "both systems have the other release" "g1=$other host=$other" "$(members)"
same "the files are unchanged" "$files" "$(files)"
stop_guest g1

step "and back"
in_one host "unmounted" 'umount /mnt/a /mnt/b'
exchanged stargatefs.ko "$now"
in_one host "both are sound" \
	'umount /mnt/a /mnt/b && stargatectl volume check a && stargatectl volume check b'
finish
