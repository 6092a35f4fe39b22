#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section many: a single guest, and eight guests at the same time, each with its own
# file. Prints one line a round:
#
#   many SYSTEM KIND BLOCK GUESTS KIB-PER-SECOND      the sum of all guests
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 500 1000 5000)} rounds=${SG_ROUNDS:-$(scaled 1 3 7)} mib=${SG_MIB:-8}
order=(stargatefs 9p virtiofs nfs smb)
kinds=(read write)
blocks=(131072 2097152)

many() { # SYSTEM KIND BLOCK GUESTS
	local i
	for ((i = 0; i < $4; i++)); do
		start "${clients[i]}" "/root/flow $2 ${folder[$1]}/many.$i $3 $mib $ms together"
	done
	go || fail "$*: $(tail -n 1 "$work"/said.*)"
	for ((i = 0; i < $4; i++)); do tail -n 1 "$work/said.$i"; done |
		awk -v what="many $*" '{ sum += $1 / 1024 / $2 * 1e9 } END { printf "%s %d\n", what, sum }'
}

flow_everywhere "${order[@]}"
step "files" >&2
for system in "${order[@]}"; do
	for i in "${!clients[@]}"; do
		at "${clients[i]}" "/root/flow read ${folder[$system]}/many.$i 131072 $mib 1"
	done
done
load
for ((round = 1; round <= rounds; round++)); do
	for block in "${blocks[@]}"; do
		step "round $round, blocks of $block" >&2
		for kind in "${kinds[@]}"; do
			for n in 1 ${#clients[@]}; do
				for system in "${order[@]}"; do many "$system" "$kind" "$block" "$n"; done
			done
		done
	done
done
load
leave
