#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A machine check reports a bad page to a VM. The volume's memory has no struct pages, so the kernel
# itself cannot handle the error. QEMU's monitor injects the machine check.
#
# rig: --guests 2 --size 64M
# kernels: 6.12
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VMs' shells
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere poison

# sees GUEST WHAT EXPECTED COMMAND: checks that COMMAND prints EXPECTED in the guest.
sees() {
	local got
	got=$(on "$1" "$4" 2>&1 </dev/null) || true
	same "$1: $2" "$3" "$got"
}

on g1 'yes 0123456 | head -c 64K >/mnt/sg/f && cp /mnt/sg/f /mnt/sg/g'
phys=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" /f | tr -d ' \n' |
	sed -nE 's/.*"runs":\[\{"page":0,[^}]*"phys":"(0x[0-9a-f]+)".*/\1/p')
[[ -n $phys ]] || fail "stargatectl stat does not print the address of the file"
phys=$(printf '0x%x' $((phys + 3 * 4096)))
for guest in g1 g2; do
	on "$guest" 'nohup /root/poison /mnt/sg/f /root/go >/root/said 2>&1 &
		until grep -q looked /root/said; do sleep 0.1; done' </dev/null
done

step "a machine check about $phys"
sees g1 "the volume lists no bad memory" none 'stargatectl bad /dev/pmem0'
memory_fails "$(printf '0x%x' $((phys + 128)))"
sees g1 "the volume lists the bad page" "$phys 4 KiB in use <2>" 'for i in $(seq 200); do
	stargatectl bad /dev/pmem0 | grep -q none || break; sleep 0.1; done
	stargatectl bad /dev/pmem0 | tr -s " "'
for guest in g1 g2; do
	sees "$guest" "a read of the bad page gets EIO" "Input/output error" \
		"dd if=/mnt/sg/f of=/dev/null bs=4096 skip=3 count=1 2>&1 | sed -nE 's/.*: (Input.*)/\\1/p'"
	sees "$guest" "the other pages of the file can be read" 0 \
		"cmp -n 12288 /mnt/sg/f /mnt/sg/g && cmp -i 16384 /mnt/sg/f /mnt/sg/g; echo \$?"
	sees "$guest" "a process that has mapped the bad page gets a signal" "3 bad memory" \
		'touch /root/go; while pgrep -x poison >/dev/null; do sleep 0.1; done
		sed 1d /root/said'
	sees "$guest" "other files can be written and read" "$guest" "echo $guest >/mnt/sg/$guest && cat /mnt/sg/$guest"
done

step "the lost page is written once more"
sees g2 "after a punched hole, a write gets a good page" 0 \
	'cd /mnt/sg && fallocate -p -o 12288 -l 4096 f &&
	dd if=g of=f bs=4096 skip=3 seek=3 count=1 conv=notrunc 2>/dev/null
	cmp /mnt/sg/f /mnt/sg/g; echo $?'
sees g1 "the other system reads the new bytes" 0 'cmp /mnt/sg/f /mnt/sg/g; echo $?'
sees g1 "the bad page becomes free after its reclaim" "$phys 4 KiB free" 'for i in $(seq 100); do
	stargatectl bad /dev/pmem0 | grep -q free && break; sleep 0.1; done
	stargatectl bad /dev/pmem0 | tr -s " "'
finish
