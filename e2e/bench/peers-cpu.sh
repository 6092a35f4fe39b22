#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section cpu: the processor time of reads and writes, in the guest, in the guest with
# the servers, and on the host. The host's time includes QEMU, and so all guests. Prints
#
#   cpu SYSTEM KIND BLOCK BYTES WALL-MS GUEST-MS SERVER-MS HOST-MS
#   cpu idle - 0 0 WALL-MS GUEST-MS SERVER-MS HOST-MS
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 500 1000 5000)} rounds=${SG_ROUNDS:-$(scaled 1 3 7)}
order=(stargatefs 9p virtiofs nfs smb virtio-blk ext4-dax tmpfs)
cases=("read 4096" "write 4096" "read 1048576" "write 1048576")

now_ms() {
	local outside
	outside=$(host_ms) || exit 1
	echo "$(($(date +%s%N) / 1000000)) $(guest_ms g1) $(guest_ms "$server") $outside"
}

cost() { # SYSTEM KIND BLOCK COMMAND
	local before after said
	before=$(now_ms) || exit 1
	said=$(on g1 "$4" </dev/null) || fail "$1 $2 $3: $said"
	after=$(now_ms) || exit 1
	awk -v before="$before" -v after="$after" -v what="cpu $1 $2 $3 ${said%% *}" 'BEGIN {
		split(before, b)
		split(after, a)
		printf "%s %d %d %d %d\n", what, a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4]
	}'
}

serve nfs smb
prepare g1 "${order[@]}"
program flow
for system in "${order[@]}"; do at g1 "/root/flow read ${folder[$system]}/flow 4096 16 1"; done
load
for ((round = 1; round <= rounds; round++)); do
	step "round $round" >&2
	cost idle - 0 "sleep $((ms / 1000 + 1)); echo 0"
	for one in "${cases[@]}"; do
		read -r kind block <<<"$one"
		for system in "${order[@]}"; do
			cost "$system" "$kind" "$block" "/root/flow $kind ${folder[$system]}/flow $block 16 $ms"
		done
	done
done
load
leave
