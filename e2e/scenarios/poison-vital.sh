#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A bad page in the mount table, on which the complete volume depends. A machine check reports the
# page to the kernel, which removes it from its own mapping. A later access would cause an oops. All
# operations of the mount must fail. The mount's state can still be read, and the volume can be
# unmounted.
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
holds "a process maps region for a VM" "{ setsid /root/region hold /mnt/sg/.stargate/region@$machine /tmp/stop \
		>/tmp/hold 2>&1 </dev/null & echo \$! >/tmp/pid; }
	for try in \$(seq 100); do
		grep -q $machine /sys/fs/stargatefs/pmem0/holders && exit 0
		sleep 0.1; done; exit 1"

step "a machine check about the mount table"
memory_fails "$(printf '0x%x' $((RIG_BASE + 0x2000)))"
holds "the module shuts down the mount" 'for try in $(seq 300); do
	dmesg | grep -q "(mount table): the volume cannot be used" && exit 0
	sleep 0.1; done; dmesg | tail; exit 1'
refused "a read of a file fails" "Input/output error" 'cat /mnt/sg/f'
holds "sysfs shows that the mount is shut down" 'grep -q "shut down" /sys/fs/stargatefs/pmem0/state'
holds "each file of sysfs can be read, or returns an error" 'cd /sys/fs/stargatefs/pmem0
	for f in *; do
		timeout -s KILL 60 cat "$f" >/dev/null 2>/tmp/said || grep -q "rror\|denied" /tmp/said ||
			{ echo "$f"; exit 1; }
	done'
holds "the process that maps region ends" 'kill -KILL $(cat /tmp/pid) 2>/dev/null
	for try in $(seq 50); do [ -e /proc/$(cat /tmp/pid) ] || exit 0; sleep 0.1; done
	cat /proc/$(cat /tmp/pid)/stack; exit 1'
holds "the volume can be unmounted within a minute" 'timeout -s KILL 60 umount /mnt/sg'
same "the kernel reports no error" "" "$(on g1 'dmesg | grep -E "BUG:|Oops|WARNING:|general protection"' </dev/null || true)"

step "the page is removed from the list of bad pages"
page=$(printf '0x%x' $((RIG_BASE + 0x2000)))
said=$("$SG_TOOLS/stargatectl" bad "$RIG_RANGE" remove "$page" 2>&1) || fail "$said"
passed "stargatectl removes the page from the list"
finish
