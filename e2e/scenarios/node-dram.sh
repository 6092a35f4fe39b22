#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A zone in plain memory: with the node's power its bytes are gone, and a new volume is there.
#
# node: --guests 0 --zone dram --size 32M
# limit: 300
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# uuid: of the volume that the host has mounted.
uuid() { on host 'cat /sys/fs/stargatefs/*/uuid' </dev/null; }

on host 'echo lost >/mnt/sg/file && sync' </dev/null
before=$(uuid)
kill_node
same "nothing is left of it" "" "$(tr -d '\0' <"$RIG_RANGE" | head -c 1 | wc -c | sed 's/^0$//')"
start_node
same "the file is gone" "" "$(on host 'ls /mnt/sg' </dev/null)"
[[ $(uuid) != "$before" ]] || fail "it is the old volume"
passed "there is a new volume"
finish
