#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section meta: the time of one operation on names: create, stat, open, list, rename and
# remove. Prints one line a round:
#
#   meta SYSTEM WAY OPERATION NANOSECONDS
#
# With WAY one, all names are in one directory. With WAY many, they are in 16 directories. With WAY
# two, two guests work at the same time, each in its own directory, and the figure is that of the
# slower guest.
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

files=${SG_FILES:-$(scaled 100 400 2000)} ms=${SG_MS:-$(scaled 200 500 2000)}
rounds=${SG_ROUNDS:-$(scaled 1 3 7)}
order=(stargatefs 9p virtiofs nfs smb ext4-dax tmpfs)

names() { # SYSTEM WAY
	local n=1 i dirs=1
	[[ $2 != many ]] || dirs=16
	[[ $2 != two ]] || n=2
	for ((i = 0; i < n; i++)); do
		start "${clients[i]}" "/root/meta ${folder[$1]} meta-$i $files $dirs $ms together"
	done
	go || fail "$*: $(tail -n 1 "$work"/said.*)"
	for ((i = 0; i < n; i++)); do grep -v ready "$work/said.$i"; done |
		awk -v what="meta $1 $2" '
			!($1 in most) { order[++n] = $1 }
			$2 > most[$1] { most[$1] = $2 }
			END { for (i = 1; i <= n; i++) print what, order[i], most[order[i]] }'
}

serve nfs smb
compile meta
for guest in "${clients[@]}"; do put "$compiled/meta" /root/meta "$guest"; done
prepare "${clients[0]}" "${order[@]}"
for guest in "${clients[@]:1}"; do prepare "$guest" stargatefs 9p virtiofs nfs smb; done
load
for ((round = 1; round <= rounds; round++)); do
	for way in one many two; do
		step "round $round, $way" >&2
		for system in "${order[@]}"; do
			# Only one guest can use these systems.
			case $way-$system in two-ext4-dax | two-tmpfs) continue ;; esac
			names "$system" "$way"
		done
	done
done
load
leave
