#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A page of a file becomes bad while two systems use the volume. In both systems, a read of the page
# gets EIO or SIGBUS. All other operations continue to work, and no other file gets the page.
#
# The kernel of one system reports the page by its code for machine checks (memory_failure()).
#
# rig: --guests 2 --size 128M --pages --mem 384M
# kernels: 6.12
# maps: walk
# limit: 400
# shellcheck disable=SC2016 # quoted text is for the VMs' shells
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere poison
readonly page=5

# sees GUEST WHAT EXPECTED COMMAND: checks that COMMAND prints EXPECTED in the guest.
sees() {
	local got
	got=$(on "$1" "$4" 2>&1 </dev/null) || true
	same "$1: $2" "$3" "$got"
}

step "a file that two systems use"
on g1 'head -c 1M /dev/urandom >/mnt/sg/f && cp /mnt/sg/f /root/f && echo other >/mnt/sg/other'
sum_before=$(on g1 "head -c $((page * 4096)) /root/f | sha256sum")
sum_behind=$(on g1 "tail -c +$(((page + 1) * 4096 + 1)) /root/f | sha256sum")
phys=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" /f | tr -d ' \n' |
	sed -nE 's/.*"runs":\[\{"page":0,[^}]*"phys":"(0x[0-9a-f]+)".*/\1/p')
[[ -n $phys ]] || fail "stargatectl stat does not print the address of the file"
phys=$(printf '0x%x' $((phys + page * 4096)))
for guest in g1 g2; do
	on "$guest" 'nohup /root/poison /mnt/sg/f /root/go >/root/said 2>&1 &
		until grep -q looked /root/said; do sleep 0.1; done' </dev/null
done

step "page $page of the file, at $phys, becomes bad"
on g1 "echo $phys >/sys/devices/system/memory/hard_offline_page" || fail "the kernel does not accept the address for hard_offline_page"
sees g1 "the kernel has recovered from the error" Recovered \
	'dmesg | sed -nE "s/.*recovery action for dax page: //p"'
for guest in g1 g2; do
	sees "$guest" "a read of the bad page gets EIO" "Input/output error" \
		"dd if=/mnt/sg/f of=/dev/null bs=4096 skip=$page count=1 2>&1 | sed -nE 's/.*: (Input.*)/\\1/p'"
	sees "$guest" "a write to the bad page gets EIO" "Input/output error" \
		"dd if=/dev/zero of=/mnt/sg/f bs=4096 seek=$page count=1 conv=notrunc 2>&1 | sed -nE 's/.*: (Input.*)/\\1/p'"
	sees "$guest" "the bytes before the bad page can be read" "$sum_before" "head -c $((page * 4096)) /mnt/sg/f | sha256sum"
	sees "$guest" "the bytes behind the bad page can be read" "$sum_behind" "tail -c +$(((page + 1) * 4096 + 1)) /mnt/sg/f | sha256sum"
	sees "$guest" "a process that has mapped the file gets a signal for the bad page" "$page bad memory" \
		'touch /root/go; while pgrep -x poison >/dev/null; do sleep 0.1; done
		sed 1d /root/said'
	sees "$guest" "a process that maps the file now gets a signal for the bad page" "$page bad memory" '/root/poison /mnt/sg/f'
	sees "$guest" "other files can be written and read" "other $guest" \
		"echo $guest >/mnt/sg/$guest && echo \$(cat /mnt/sg/other /mnt/sg/$guest)"
done
bad=$((phys - RIG_BASE >> 12))
sees g1 "a process that maps region gets a signal for the bad page" "$bad bad memory" '/root/poison /mnt/sg/.stargate/region'
sees g2 "the volume lists the bad page" "$phys 4 KiB in use <2>" 'stargatectl bad /dev/pmem0 | tr -s " "'
for guest in g1 g2; do
	sees "$guest" "volume.json reports the bad memory" '"bad": true' \
		'grep -o "\"bad\": [a-z]*" /mnt/sg/.stargate/volume.json'
done

step "the file is removed, and no other file gets the page"
sees g2 "the file is removed" "" 'rm /mnt/sg/f'
on g1 'cat /dev/zero >/mnt/sg/full; sync' 2>/dev/null </dev/null || true
sees g1 "the volume is full" 0 "stat -f -c %f /mnt/sg"
sees g1 "the bad page stays unused" "$phys 4 KiB free" 'stargatectl bad /dev/pmem0 | tr -s " "'
sees g2 "the file that filled the volume can be read" "" 'cat /mnt/sg/full | tr -d "\0"'
sees g2 "the file that filled the volume is removed" "" 'rm /mnt/sg/full'

step "the list of bad pages after a mount"
refused "the kernel that found the page keeps it marked as bad" 'found that memory to be bad' "stargatectl bad /dev/pmem0 remove $phys"
holds "the volume can be unmounted and mounted" 'umount /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
sees g1 "the bad page is listed after the next mount" "$phys 4 KiB free" 'stargatectl bad /dev/pmem0 | tr -s " "'
sees g2 "a system that knows the page only by the list can remove it from the list" none \
	"stargatectl bad /dev/pmem0 remove $phys && stargatectl bad /dev/pmem0"
sees g2 "volume.json of the new mount shows no bad memory" '"bad": false' 'grep -o "\"bad\": [a-z]*" /mnt/sg/.stargate/volume.json'
sees g1 "volume.json of the system that found the page still shows bad memory" '"bad": true' 'grep -o "\"bad\": [a-z]*" /mnt/sg/.stargate/volume.json'
holds "the system that found the page does not use it" \
	"! cat /dev/zero >/mnt/sg/full 2>/dev/null; rm /mnt/sg/full && stargatectl bad /dev/pmem0 add $phys"

step "a bad page in the mount table"
slots=$(printf '0x%x' $((RIG_BASE + 2 * 4096)))
on g2 "stargatectl bad /dev/pmem0 add $slots"
for guest in g1 g2; do
	sees "$guest" "a read of any file gets EIO" "Input/output error" \
		'for i in $(seq 100); do cat /mnt/sg/other >/dev/null 2>&1 || break; sleep 0.1; done
		cat /mnt/sg/other 2>&1 | sed -nE "s/.*: (Input.*)/\1/p"'
	sees "$guest" "the log gives the reason once" 1 'dmesg | grep -c "mount table.*the volume cannot be used"'
	on "$guest" 'umount /mnt/sg'
done
refused "a mount is refused while the mount table is bad" 'bad memory at offset 0x2000 .mount table' 'mount -t stargatefs /dev/pmem0 /mnt/sg 2>&1; dmesg | tail -n 3; false'
on g2 "stargatectl bad /dev/pmem0 remove $slots"
holds "after the page is removed from the list, the volume can be mounted and read" 'mount -t stargatefs /dev/pmem0 /mnt/sg && grep -q other /mnt/sg/other'
on g2 'mount -t stargatefs /dev/pmem0 /mnt/sg'
finish
