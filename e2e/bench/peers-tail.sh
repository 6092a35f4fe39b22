#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section tail: the longest times of random reads of 4 KiB, while another system makes
# and removes files. Prints
#
#   tail SYSTEM OTHER MEDIAN P99 P99.9 CALLS FILES      percentiles in nanoseconds
#
# OTHER is what the other system does. With alone, it is idle. With apart, it makes and removes
# files in its own tmpfs, and so competes only for the processor. With same, it makes and removes
# files in the same file system. FILES is the number of these files.
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 500 1500 8000)} rounds=${SG_ROUNDS:-$(scaled 1 5 9)}
order=(stargatefs 9p virtiofs nfs smb)

tails() { # SYSTEM OTHER
	local dir=${folder[$1]} files=0
	start g1 "/root/flow randread $dir/tail 4096 16 $ms together"
	case $2 in
	apart) start g2 "/root/together rate create /mnt/tmpfs/bench noise $ms" ;;
	same) start g2 "/root/together rate create $dir noise $ms" ;;
	esac
	go || fail "$1, $2: $(tail -n 1 "$work"/said.*)"
	[[ $2 == alone ]] || files=$(tail -n 1 "$work/said.1" | cut -d ' ' -f 1)
	awk -v what="tail $1 $2" -v files="$files" \
		'END { printf "%s %s %s %s %d %d\n", what, $3, $4, $5, $1 / 4096, files }' "$work/said.0"
}

serve nfs smb
for guest in "${clients[@]}"; do prepare "$guest" "${order[@]}" tmpfs; done
compile flow together
put "$compiled/flow" /root/flow g1
put "$compiled/together" /root/together g2
for system in "${order[@]}"; do at g1 "/root/flow read ${folder[$system]}/tail 4096 16 1"; done
load
for ((round = 1; round <= rounds; round++)); do
	step "round $round" >&2
	for system in "${order[@]}"; do
		for other in alone apart same; do tails "$system" "$other"; done
	done
done
load
leave
