#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The VM's power is cut at random times while files change. A file outside of the VM records each
# completed step. After the next mount the volume must have exactly these steps, and at most a part
# of the next write. Processes that create, rename and remove names run at the same time, so that
# all areas of the journal are in use. Files of earlier rounds must never change.
#
# rig: --size 256M --cpus 2
# maps: inside
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats the steps, but not their times"
rounds=$(scaled 2 3 30)
read -ra maps <<<"$(map_modes)" # each round uses the next map mode
notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT

# last_step FILE: prints the last complete line of a writer's output.
last_step() { sed -nE 's/^([0-9]+)$/\1/p' <<<"$(head -c -1 "$1")" | tail -n 1; }

sums() { on g1 "cd /mnt/sg && find $1 -type f | sort | xargs sha256sum" </dev/null; }

declare -A left
for ((round = 1; round <= rounds; round++)); do
	map=${maps[$((round % ${#maps[@]}))]}
	step "round $round, map=$map"
	mount_with "map=$map"
	program powercut stress
	on g1 "mkdir /mnt/sg/round$round.1 /mnt/sg/round$round.2 /mnt/sg/storm" </dev/null
	jobs=()
	for writer in 1 2; do
		on g1 "/root/powercut run /mnt/sg/round$round.$writer \
			$((seed + round * 2 + writer))" \
			</dev/null >"$notes/$writer" 2>"$notes/$writer.err" &
		jobs+=($!)
	done
	on g1 "/root/stress -s $seed -p 3 -t 600 /mnt/sg/storm" </dev/null >"$notes/storm" 2>&1 &
	jobs+=($!)
	# On a busy host programs take seconds to begin, so the time counts from the first steps.
	for writer in 1 2; do
		for ((i = 0; i < 600; i++)); do
			[[ -z $(last_step "$notes/$writer") ]] || break
			sleep 0.1
		done
	done
	sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.2f", 1 + 3 * r / 32768 }')"
	kill_guest g1
	for job in "${jobs[@]}"; do wait "$job" || true; done
	! grep . "$notes/1.err" "$notes/2.err" | grep -v 'rig:' || fail "a writer was refused"
	! grep '^stress:' "$notes/storm" || fail "the load processes found an error"

	begin=$EPOCHREALTIME
	start_guest g1
	printf '   recovered and mounted within %s of power-on\n' \
		"$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')"
	program powercut
	for writer in 1 2; do
		last=$(last_step "$notes/$writer")
		[[ -n $last ]] || fail "writer $writer made no step"
		on g1 "/root/powercut verify /mnt/sg/round$round.$writer \
			$((seed + round * 2 + writer)) $last" </dev/null ||
			fail "round $round: the volume lacks a completed step of writer $writer"
		passed "round $round, writer $writer: the volume has all $last completed steps"
		left[$round.$writer]=$(sums "round$round.$writer")
	done
	for old in "${!left[@]}"; do
		[[ $(sums "round$old") == "${left[$old]}" ]] ||
			fail "round $round changed round$old"
	done
	passed "round $round: earlier files are unchanged"
	holds "round $round: the files of the load processes can be removed" 'rm -r /mnt/sg/storm'
done

# The rig checks the volume after a clean unmount.
holds "all files can be removed" 'rm -r /mnt/sg/round*'
finish
