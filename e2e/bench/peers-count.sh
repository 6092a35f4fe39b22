#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section count: the measurements of section tail, but in instructions, so that other
# work of the machine has no effect. The other system is a program on the host, with the same
# engine. Prints one line a round:
#
#   count SYSTEM OTHER HALF 99% 99.9% READS FILES       percentiles of the instructions of a read
#
# OTHER is what the other system does: with alone, nothing; with same, it makes and removes files of
# 1 MiB in the same file system. FILES is the number of these files.
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 20 200 1000)} rounds=${SG_ROUNDS:-$(scaled 1 5 9)}
order=(stargatefs tmpfs ext4-dax)

env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$root" build/tests/machine >&2 ||
	fail "tests/machine does not build"

coproc second { exec "$SG_TOOLS/../tests/machine"; }
exec {told}>&"${second[1]}" {said}<&"${second[0]}" # subshells have no descriptors of a coproc
say() {
	local answer
	echo "$*" >&"$told"
	read -r -t 60 -u "$said" answer || fail "the second system does not answer"
	[[ $answer == ok ]] || fail "the second system: $*: $answer"
}

# Makes and removes files until $work/end exists. Then writes the number of files to $work/files.
churn() {
	local n
	for ((n = 0; ; n++)); do
		[[ ! -e $work/end ]] || break
		say fill 0 noise
		say remove 0 noise
	done
	echo "$n" >"$work/files"
}

# reads SYSTEM OTHER
reads() {
	local text files=0 pid=''
	rm -f "$work/end"
	if [[ $2 == same ]]; then
		churn >&2 &
		pid=$!
	fi
	text=$(on g1 "/root/flow randread ${folder[$1]}/tail 4096 16 $ms" </dev/null) || fail "$1: $text"
	if [[ -n $pid ]]; then
		: >"$work/end"
		wait "$pid" || fail "the second system"
		files=$(<"$work/files")
	fi
	awk -v what="count $1 $2" -v files="$files" \
		'{ printf "%s %s %s %s %d %d\n", what, $3, $4, $5, $1 / 4096, files }' <<<"$text"
}

prepare g1 "${order[@]}"
program flow
for system in "${order[@]}"; do at g1 "/root/flow read ${folder[$system]}/tail 4096 16 1"; done
say join "$RIG_RANGE" 11111111-2222-3333-4444-555555555501 1
load
for ((round = 1; round <= rounds; round++)); do
	for system in "${order[@]}"; do reads "$system" alone; done
	reads stargatefs same
done
load
say leave 0
at g1 'umount /mnt/ext4 /mnt/tmpfs'
