#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The power of a complete node is cut at random times, and its memory keeps its bytes (NVM). When
# the power is cut, the host works, or mounts and unmounts. At each tenth cut two guests also work.
# A file outside records each completed step of a writer. After a cut, fsck checks a copy of the
# volume's memory. Then the node boots and mounts, which recovers the volume. The volume must have
# every completed step, and no step partly.
#
# SG_CUTS=N sets the number of cuts. `make test SUITE=node-cuts` makes many cuts.
#
# node: --guests 2 --kernel 6.1,7.2 --size 128M --timeout 4h
# limit: 3600
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
cuts=${SG_CUTS:-$(scaled 2 4 100)}
read -ra maps <<<"$(map_modes)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
storms=0 # processes that have made names so far
steps_in_all=0
kept= # the directory of the previous cut; $work/kept has the digests of its files
echo "The scenario makes $cuts cuts. SG_SEED=$seed repeats the steps, but not their times."

between() { # prints a random number between A and B
	awk -v r=$RANDOM -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a + (b - a) * r / 32768 }'
}

# at SYSTEM COMMAND: runs COMMAND in the system, and fails if it fails.
at() {
	local said
	said=$(on "$1" "$2" 2>&1 </dev/null) || fail "$1: $2: $said"
}

# last_step FILE: prints the last complete line of a writer's output.
last_step() { sed -nE 's/^([0-9]+)$/\1/p' <<<"$(head -c -1 "$1")" | tail -n 1; }

# begin_work CUT SYSTEM...: makes each system write its own files, and make names in a common
# directory.
begin_work() {
	local cut=$1 system
	shift
	at host "/mnt/sg/bin/stress -s $seed -x prepare /mnt/sg/storm"
	jobs=()
	for system in "$@"; do
		its_map "$system" "$(shuf -n 1 -e "${maps[@]}")"
		at "$system" "mkdir /mnt/sg/lives/$cut.$system"
		on "$system" "/mnt/sg/bin/powercut run /mnt/sg/lives/$cut.$system $((seed + cut))" \
			</dev/null >"$work/$system.steps" 2>"$work/$system.refused" &
		jobs+=($!)
		on "$system" "/mnt/sg/bin/stress -s $seed -x work -f $storms -p 2 -t 3600 /mnt/sg/storm" \
			</dev/null >"$work/$system.storm" 2>&1 &
		jobs+=($!)
		storms=$((storms + 2))
	done
}

# comes_and_goes: makes the host mount and unmount repeatedly from now on.
comes_and_goes() {
	at host 'pkill -KILL powercut; pkill -KILL stress
		for i in $(seq 100); do umount /mnt/sg 2>/dev/null && break; sleep 0.1; done
		! mountpoint -q /mnt/sg'
	on host 'while mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/sg; do :; done' \
		</dev/null >"$work/comes" 2>&1 &
	jobs+=($!)
}

# power_fails CUT: cuts the power, and checks that recovery alone makes the volume clean. `fsck -n`,
# which checks the state after recovery, must find no damage. `fsck -p`, which recovers the volume,
# must find nothing to repair.
power_fails() {
	local status=0
	kill_node
	wait "${jobs[@]}" || true
	! grep -h 'powercut:' "$work"/*.refused || fail "cut $1: a writer was refused"
	! grep -h '^stress: process' "$work"/*.storm || fail "cut $1: a load process found an error"
	[[ ! -e $work/comes ]] || ! grep -i 'mount:' "$work/comes" ||
		fail "cut $1: the host could not mount or unmount"
	rm -f "$work/comes"
	cp --sparse=always "$RIG_RANGE" "$work/copy"
	"$SG_TOOLS/fsck.stargatefs" -n "$work/copy" >"$work/fsck" 2>&1 ||
		fail "cut $1: fsck.stargatefs -n finds damage after the cut: $(cat "$work/fsck")"
	"$SG_TOOLS/fsck.stargatefs" -p --json "$work/copy" >"$work/fsck" 2>&1 || status=$?
	[[ $status -le 1 && $(<"$work/fsck") == *'"found": 0,'* ]] ||
		fail "cut $1: fsck.stargatefs -p: status $status: $(cat "$work/fsck")"
	"$SG_TOOLS/fsck.stargatefs" -n "$work/copy" >"$work/fsck" 2>&1 ||
		fail "cut $1: fsck.stargatefs -n finds damage after recovery: $(cat "$work/fsck")"
	rm "$work/copy"
}

sums() { on host "cd /mnt/sg/lives && find $1 -type f | sort | xargs sha256sum" </dev/null; }

# recovered CUT SYSTEM...: boots the node, and checks that the volume has every completed step of
# the systems.
recovered() {
	local cut=$1 system steps said begin=$EPOCHREALTIME
	shift
	start_node
	printf '   mounted %s after power came back\n' \
		"$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')"
	for system in "$@"; do
		steps=$(last_step "$work/$system.steps")
		said=$(on host "/mnt/sg/bin/powercut verify /mnt/sg/lives/$cut.$system $((seed + cut)) \
			${steps:-0}" </dev/null 2>&1) || fail "cut $cut, $system, ${steps:-0} steps: $said"
		steps_in_all=$((steps_in_all + ${steps:-0}))
		passed "cut $cut, $system: the volume has all ${steps:-0} completed steps, and no step partly"
	done
	at host "/mnt/sg/bin/stress -s $seed -x check /mnt/sg/storm" # also removes the names
	if [[ -n $kept ]]; then
		[[ $(sums "$kept") == "$(<"$work/kept")" ]] || fail "cut $cut changed files from before the cut"
		at host "rm -r /mnt/sg/lives/$kept"
	fi
	kept=$cut.host
	sums "$kept" >"$work/kept"
	for system in "$@"; do
		[[ $system == host ]] || at host "rm -r /mnt/sg/lives/$cut.$system"
	done
}

step "the programs are copied to the volume"
compile powercut stress
at host 'mkdir /mnt/sg/bin /mnt/sg/lives /mnt/sg/storm'
for name in powercut stress; do put "$compiled/$name" "/mnt/sg/bin/$name" host; done

for ((cut = 1; cut <= cuts; cut++)); do
	if ((cut % 10 == 1)); then
		((cut == 1)) || for guest in $RIG_GUESTS; do start_guest "$guest"; done
		at_work=("${systems[@]}") how="writes files"
	else
		at_work=(host) how=$(shuf -n 1 -e "writes files" "writes files" mounts)
	fi
	step "cut $cut, while each of these systems $how: ${at_work[*]}"
	begin_work "$cut" "${at_work[@]}"
	sleep "$(between ${#at_work[@]} $((4 * ${#at_work[@]})))"
	if [[ $how == mounts ]]; then
		comes_and_goes
		sleep "$(between 0.1 2)"
	fi
	power_fails "$cut"
	recovered "$cut" "${at_work[@]}"
done
[[ $steps_in_all -gt 0 ]] || fail "no system completed a step"
# mk/test/repeat reads this line.
passed "$cuts power cuts of the node have lost none of $steps_in_all completed steps"
start_guest g1
[[ $(on g1 'cd /mnt/sg/lives && find . -type f | wc -l' </dev/null) -gt 0 ]] || fail "g1 finds no file"
passed "a guest can mount the volume after the last cut, and finds the files"
finish
