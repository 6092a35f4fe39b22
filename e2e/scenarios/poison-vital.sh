#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A bad page in the mount table, on which the complete volume depends. A machine check reports it to
# the kernel, which removes the page from its own mapping, so that a later access would cause an
# oops. All operations of the mount must fail. It must still be possible to read its state and to
# unmount it.
#
# rig: --guests 1 --size 64M --pages
# kernels: 6.12
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program region
machine=eeeeeeee-0000-4000-8000-000000000001

holds "a file is stored" 'echo x >/mnt/sg/f && sync'
holds "a process holds region for a VM" "{ setsid /root/region hold /mnt/sg/.stargate/region@$machine /tmp/stop \
		>/tmp/hold 2>&1 </dev/null & echo \$! >/tmp/pid; }
	for try in \$(seq 100); do
		grep -q $machine /sys/fs/stargatefs/pmem0/holders && exit 0
		sleep 0.1; done; exit 1"

step "a machine check about the mount table"
memory_fails "$(printf '0x%x' $((RIG_BASE + 0x2000)))"
holds "the system shuts down its mount" 'for try in $(seq 300); do
	dmesg | grep -q "(mount table): the volume cannot be used" && exit 0
	sleep 0.1; done; dmesg | tail; exit 1'
refused "calls fail with an error" "Input/output error" 'cat /mnt/sg/f'
holds "sysfs shows that the mount is shut down" 'grep -q "shut down" /sys/fs/stargatefs/pmem0/state'
holds "each file of sysfs can be read, or returns an error" 'cd /sys/fs/stargatefs/pmem0
	for f in *; do
		timeout -s KILL 60 cat "$f" >/dev/null 2>/tmp/said || grep -q "rror\|denied" /tmp/said ||
			{ echo "$f"; exit 1; }
	done'
holds "the process that holds the region ends" 'kill -KILL $(cat /tmp/pid) 2>/dev/null
	for try in $(seq 50); do [ -e /proc/$(cat /tmp/pid) ] || exit 0; sleep 0.1; done
	cat /proc/$(cat /tmp/pid)/stack; exit 1'
holds "the volume can be unmounted within a minute" 'timeout -s KILL 60 umount /mnt/sg'
same "the kernel reports no error" "" "$(on g1 'dmesg | grep -E "BUG:|Oops|WARNING:|general protection"' </dev/null || true)"

step "the memory is good again"
page=$(printf '0x%x' $((RIG_BASE + 0x2000)))
said=$("$SG_TOOLS/stargatectl" bad "$RIG_RANGE" remove "$page" 2>&1) || fail "$said"
passed "the volume can be checked and used"
finish
