#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A bad page in a zone. A node's processor finds bad memory in a volume on LVM while the host and a
# VM under its KVM use the volume. LVM does not forward the kernel's notice. Both systems get EIO
# for that page. All other operations and the VM continue to work. The zone's other volume has all
# its bytes.
#
# node: --guests 1 --no-mount --size 64M --pkgs lvm2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

compile poison

# sees SYSTEM WHAT EXPECTED COMMAND: checks that COMMAND prints EXPECTED in the system.
sees() {
	local got
	got=$(on "$1" "$4" 2>&1 </dev/null) || true
	same "$1: $2" "$3" "$got"
}

step "a volume of a zone that the host and a VM use"
in_one host "a zone with two volumes is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 && stargatectl volume create v --size 24M &&
	stargatectl volume create w --size 24M && mkdir -p /mnt/sg /mnt/w &&
	mount -t stargatefs /dev/sm/v /mnt/sg && mount -t stargatefs /dev/sm/w /mnt/w &&
	yes 0123456 | head -c 64K >/mnt/sg/f && cp /mnt/sg/f /mnt/sg/g && cp /mnt/sg/f /mnt/w/f'
start g1 v
in_one g1 "a VM mounts the volume" 'mkdir -p /mnt/sg &&
	mount -t stargatefs /dev/pmem0 /mnt/sg && cmp /mnt/sg/f /mnt/sg/g'
for system in host g1; do
	put "$compiled/poison" /root/poison "$system"
	on "$system" 'nohup /root/poison /mnt/sg/f /root/go >/root/said 2>&1 &
		until grep -q looked /root/said; do sleep 0.1; done' </dev/null
done
phys=$(on host 'stargatectl --json stat /dev/sm/v /f' </dev/null | tr -d ' \n' |
	sed -nE 's/.*"runs":\[\{"page":0,[^}]*"phys":"(0x[0-9a-f]+)".*/\1/p')
[[ -n $phys ]] || fail "stargatectl stat does not print the address of the file"
phys=$(printf '0x%x' $((phys + 3 * 4096)))

step "the host's processor finds $phys bad"
sees host "the volume lists no bad memory" none 'stargatectl bad /mnt/sg/.stargate/region'
on host 'echo 1 >/sys/devices/system/machinecheck/machinecheck0/check_interval' </dev/null
machine_check host 4 0x9400100000080000 0 "$(printf '0x%x' $((phys + 128)))" 0
sees host "the volume lists the bad page" "$phys 4 KiB in use <2>" 'for i in $(seq 200); do
	stargatectl bad /mnt/sg/.stargate/region | grep -q none || break; sleep 0.1; done
	stargatectl bad /mnt/sg/.stargate/region | tr -s " "'
for system in host g1; do
	sees "$system" "a read of the bad page gets EIO" "Input/output error" \
		"dd if=/mnt/sg/f of=/dev/null bs=4096 skip=3 count=1 2>&1 | sed -nE 's/.*: (Input.*)/\\1/p'"
	sees "$system" "the other pages of the file can be read" 0 \
		"cmp -n 12288 /mnt/sg/f /mnt/sg/g && cmp -i 16384 /mnt/sg/f /mnt/sg/g; echo \$?"
	sees "$system" "a process that has mapped the bad page gets a signal" "3 bad memory" \
		'touch /root/go; while pgrep -x poison >/dev/null; do sleep 0.1; done
		sed 1d /root/said'
	sees "$system" "other files can be written and read" "$system" "echo $system >/mnt/sg/$system && cat /mnt/sg/$system"
done
same "the VM's system is alive" alive "$(on host \
	'stargatectl --json systems /mnt/sg/.stargate/region' </dev/null |
	python3 -c 'import json, sys
print(*[s["state"] for s in json.load(sys.stdin)["systems"] if s["name"] == "g1"])')"
sees host "the other volume has its bytes, and lists no bad memory" "0 none" \
	'cmp /mnt/w/f /mnt/sg/g; echo $? $(stargatectl bad /mnt/w/.stargate/region)'

# The kernel has removed its mapping of the bad page.
in_one host "region can be synced without an access to the bad page" \
	'timeout 60 sync /mnt/sg/.stargate/region && ! dmesg | grep -i "unable to handle"'

step "the VM writes the lost page once more"
sees g1 "after a punched hole, a write gets a good page" 0 'cd /mnt/sg && fallocate -p -o 12288 -l 4096 f &&
	dd if=g of=f bs=4096 skip=3 seek=3 count=1 conv=notrunc 2>/dev/null
	cmp f g; echo $?'
sees host "the host reads the new bytes" 0 'cmp /mnt/sg/f /mnt/sg/g; echo $?'
in_one g1 "the VM unmounts the volume" 'umount /mnt/sg'
kill_guest g1
in_one host "the host unmounts both volumes, and unloads the module" 'umount /mnt/sg && umount /mnt/w && rmmod stargatefs'
finish
