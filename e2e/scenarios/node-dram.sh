#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A zone in plain memory. A power cut erases its bytes, and a new volume is made after the next
# boot.
#
# node: --guests 0 --zone dram --size 32M
# limit: 300
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# uuid: prints the UUID of the volume that the host has mounted.
uuid() { on host 'cat /sys/fs/stargatefs/*/uuid' </dev/null; }

on host 'echo lost >/mnt/sg/file && sync' </dev/null
before=$(uuid)
kill_node
same "no byte of the volume remains" "" "$(tr -d '\0' <"$RIG_RANGE" | head -c 1 | wc -c | sed 's/^0$//')"
start_node
same "the file is gone" "" "$(on host 'ls /mnt/sg' </dev/null)"
[[ $(uuid) != "$before" ]] || fail "after the power cut the host has mounted the old volume"
passed "after the power cut the host has mounted a new volume"
finish
