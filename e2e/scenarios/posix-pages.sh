#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The POSIX matrix on memory that has struct pages, as on a node with memmap=: the volume is found
# through its DAX device, and mappings must not let anybody get at those pages.
#
# rig: --size 256M --pages
# maps: walk
# limit: 300
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program=$(dirname "$0")/../../build/e2e/posix
"$(dirname "$0")/../programs/posix/build" "$program" || fail "the matrix does not compile"
put "$program" /root/posix
said=$(on g1 '/root/posix /mnt/sg' </dev/null) || fail "$said"
passed "${said##*$'\n'}"
holds "the device is a DAX device" 'grep -q 1 /sys/block/pmem0/queue/dax'
finish
