#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Systems with different kernels and map modes take turns in random operations on one file. Each
# system keeps the file and a mapping open, and computes the operations of the others from the same
# random numbers. Before its own operation, a system checks the results of the others' operations in
# the file, by calls and through its earlier mappings. At the same time each system works on its own
# file.
#
# rig: --guests 3 --size 384M --mem 320M
# mixed: 6.1,6.12,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 384M
# kernels: 6.12
# maps: inside
# limit: 900
# node-limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats this run"
RANDOM=$((seed % 32768))
program_everywhere fsx
turns=$(scaled 40 100 2000)
work=$(mktemp -d)
declare -A to job
trap 'rm -rf "$work"' EXIT

# If a system has ended, the scenario reports the system's last output. It therefore ignores
# SIGPIPE.
trap : PIPE

# tell SYSTEM TURN LINE: sends the order and waits for the answer.
tell() {
	echo "$3" >&"${to[$1]}" || fail "$1 has ended before turn $2 ($3), \
SG_SEED=$seed: $(cat "$work/$1")"
	until [[ $(grep -c '^ok$' "$work/$1" || true) -ge $2 ]]; do
		if grep -q '^fsx:' "$work/$1" || ! kill -0 "${job[$1]}" 2>/dev/null; then
			fail "$1, turn $2 ($3), SG_SEED=$seed: $(cat "$work/$1")"
		fi
		sleep 0.01
	done
}

# in_turns BYTES: lets all systems work on one file of at most that size.
in_turns() {
	local system turn actor other fd own=()
	for system in "${systems[@]}"; do
		mkfifo "$work/to.$system"
		# The output file is emptied before the pipe opens. Otherwise the function tell
		# would count answers of the last round.
		on "$system" "/root/fsx -i -s $seed -l $1 /mnt/sg/one" >"$work/$system" 2>&1 \
			<"$work/to.$system" &
		job[$system]=$!
		on "$system" "/root/fsx -s $((seed + ${#own[@]} + 1)) -l 200000 -n 100000000 -t $((turns / 4)) \
			/mnt/sg/own-$system" </dev/null >"$work/own.$system" 2>&1 &
		own+=($!)
	done
	# The pipes are opened only after all processes have started, because a process that starts
	# later would inherit them and keep them open.
	for system in "${systems[@]}"; do
		exec {fd}>"$work/to.$system"
		to[$system]=$fd
	done
	for ((turn = 1; turn <= turns; turn++)); do
		actor=${systems[RANDOM % ${#systems[@]}]}
		count=$((1 + RANDOM % 8))
		tell "$actor" "$turn" "do $count"
		for other in "${systems[@]}"; do
			[[ $other == "$actor" ]] || tell "$other" "$turn" "skip $count"
		done
	done
	for system in "${systems[@]}"; do
		fd=${to[$system]}
		exec {fd}>&-
		wait "${job[$system]}" || fail "$system: $(cat "$work/$system")"
		rm "$work/to.$system"
	done
	passed "${#systems[@]} systems found no error in $turns turns on a file of up to $1 bytes"
	for system in "${!own[@]}"; do
		wait "${own[$system]}" || fail "SG_SEED=$seed: $(cat "$work"/own.*)"
	done
	passed "at the same time, no system found an error in its own file"
	holds "the files can be removed" 'rm /mnt/sg/one /mnt/sg/own-*'
}

each_its_map
for size in 20000 500000 5000000; do
	step "a file of up to $size bytes"
	in_turns "$size"
	seed=$((seed + 1))
done
finish
