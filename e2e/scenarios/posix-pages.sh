#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The POSIX matrix on memory that has struct pages, as on a node with memmap=. The module finds the
# volume through its DAX device, and mappings must not allow access to the struct pages. A child
# inherits no entries of 2 MiB, because fork() might copy an entry that the module is removing.
# Large and small entries may be next to each other without a kernel warning. While the volume is
# frozen, no mapping can store into it, even if programs read it.
#
# rig: --size 256M --cpus 2 --pages
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program=$(dirname "$0")/../../build/e2e/posix
"$(dirname "$0")/../programs/posix/build" "$program" || fail "the matrix does not compile"
put "$program" /root/posix
# Since 6.15 large entries follow this setting (posix.sh).
holds "large pages are allowed" 'echo madvise >/sys/kernel/mm/transparent_hugepage/enabled'
said=$(on g1 '/root/posix /mnt/sg' </dev/null) || fail "$said"
passed "the POSIX matrix finds no error: ${said##*$'\n'}"
holds "kernels after 6.1 map 2 MiB by one fault" 'case $(uname -r) in 6.1.*) exit;; esac
	[ "$(awk "/^huge_faults/ { print \$2 }" /sys/fs/stargatefs/pmem0/operations)" -gt 0 ]'
program large
said=$(on g1 '/root/large fork /mnt/sg/large' </dev/null) || fail "$said"
# 6.1 has no entries of 2 MiB, and copies small ones safely.
[[ $said -ge 1 || $(on g1 'uname -r' </dev/null) == 6.1.* ]] ||
	fail "a child has inherited its parent's entries: $said faults"
passed "on kernels after 6.1, a child inherits no entries: $said faults"
said=$(on g1 "/root/large race /mnt/sg/large $(scaled 5 20 120)" </dev/null) || fail "$said"
passed "entries of both sizes exist side by side: $said"
program frozen
said=$(on g1 "/root/frozen /mnt/sg $(scaled 5 20 120)" </dev/null 2>&1) || fail "$said"
passed "no store changes a frozen volume: $said"
holds "the device is a DAX device" 'grep -q 1 /sys/block/pmem0/queue/dax'
finish
