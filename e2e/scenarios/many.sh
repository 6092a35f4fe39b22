#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Three systems, each with another kernel and map mode, work in the same directories. One system
# loses its power while it holds a lock for which another system waits. Later one loses its power
# without a guard, one is paused, and one is fenced while it is paused. The other systems continue,
# and no completed operation is lost. Each system that was lost joins once more. In a node every VM
# is guarded, because the host detects which VM has ended (node-fence.sh). So in a node one VM loses
# its power and one is paused.
#
# The volume is large, because no page can be freed before a dead system is fenced (D7).
#
# rig: --guests 3 --size 1G --mem 320M
# test: walk
# mixed: 6.1,6.12,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 1G
# kernels: 6.12
# node-kernels: 6.12 7.2
# maps: inside
# limit: 900
# node-limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats the load, but not its times"
program_everywhere stress
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=0
declare -A job
one=${systems[0]} two=${systems[1]} three=${systems[2]}

# stress SYSTEM SECONDS DIR: runs the load in the background. Its process numbers were not used
# before.
stress() {
	on "$1" "/root/stress -s $seed -x work -f $first -p 2 -t $2 /mnt/sg/$3" </dev/null \
		>"$work/$1" 2>&1 &
	job[$1]=$!
	first=$((first + 2))
}

# ends_well SYSTEM WHAT: checks that the system's load found no error.
ends_well() {
	wait "${job[$1]}" || fail "$2: $1: $(cat "$work/$1")"
	passed "$2: $1: $(cat "$work/$1")"
}

# inside SYSTEM WHAT COMMAND: checks that COMMAND succeeds in the system.
inside() {
	local said
	said=$(on "$1" "$3" 2>&1 </dev/null) || fail "$2: $1: $3: status $?: $said"
	passed "$2"
}

# slot SYSTEM: prints state and `guarded` of the system from `stargatectl systems`.
slot() {
	"$SG_TOOLS/stargatectl" --json systems "$RIG_RANGE" | python3 -c 'import json, sys
for s in json.load(sys.stdin)["systems"]:
	if s["name"] == sys.argv[1]:
		print(s["state"], "guarded" if s["guarded"] else "unguarded")' "$1"
}

# until_blocked SYSTEM: waits until flock in the system is blocked.
until_blocked() {
	on "$1" 'for try in $(seq 100); do pgrep -x flock >/dev/null && exit 0; sleep 0.1; done
		exit 1' </dev/null || fail "$1 has not requested the lock within 10 s"
	sleep 1
}

each_its_map
step "three systems in the same directories"
inside "$one" "the directory for the load is made" "mkdir /mnt/sg/storm && /root/stress -s $seed -x prepare /mnt/sg/storm"
seconds=$(scaled 5 15 300)
for system in "${systems[@]}"; do stress "$system" "$seconds" storm; done
inside "$two" "stargatectl lists three live systems" '[ "$(stargatectl systems /dev/pmem0 | grep -c " alive ")" -eq 3 ]'
for system in "${systems[@]}"; do ends_well "$system" "the load of three systems found no error"; done
refused "stargatectl guard refuses a block device" "is a block device" \
	"stargatectl guard /dev/pmem0 --pid 1 --machine $(</proc/sys/kernel/random/uuid)"
refused "stargatectl tune refuses a device in use" "is mounted or in use here" \
	"stargatectl tune /dev/pmem0 --lease 9"

# The first system waits for a lock of the third. The time runs from the SIGKILL until the first
# system has the lock. It includes the guard, the replay, and the intervals between checks of the
# slots.
step "a system loses its power while it holds a lock"
for system in "${systems[@]}"; do stress "$system" "$((seconds + 10))" storm; done
sleep "$(scaled 2 4 20)"
on "$three" 'exec 9>/mnt/sg/locked; flock 9; echo locked; sleep 600' </dev/null \
	>"$work/holder" 2>/dev/null &
until grep -q locked "$work/holder"; do sleep 0.1; done
same "$three is alive and guarded" "alive guarded" "$(slot "$three")"
{
	on "$one" 'flock /mnt/sg/locked touch /mnt/sg/storm/../needed' </dev/null
	echo "$EPOCHREALTIME" >"$work/had"
} &
waiter=$!
until_blocked "$one"
[[ ! -e $work/had ]] || fail "$one has a lock that $three holds"
begin=$EPOCHREALTIME
kill_guest "$three"
inside "$two" "a process that needs no lock of the dead system continues" \
	'mkdir /mnt/sg/own && for i in $(seq 100); do echo $i >/mnt/sg/own/$i; done'
wait "$waiter" || fail "$one does not get the lock of the dead system"
took=$(awk -v a="$begin" -v b="$(<"$work/had")" 'BEGIN { printf "%.2f", b - a }')
printf '   %s s from SIGKILL until another system had the lock\n' "$took"
awk -v t="$took" 'BEGIN { exit !(t < 2) }' || fail "the lock was free after $took s, not within 2 s"
passed "the lock of the killed process was free within 2 s"
wait "${job[$three]}" || true
same "$three has no slot" "" "$(slot "$three")"
start_guest "$three"
each_its_map
put "$compiled/stress" /root/stress "$three"
for system in "$one" "$two"; do ends_well "$system" "the load beside a dead system found no error"; done
stress "$three" "$seconds" storm
ends_well "$three" "the load of the restarted system found no error"

dies_unguarded() {
	step "a system without a guard loses its power"
	unguard_guest "$three"
	stress "$three" "$((seconds + 10))" storm
	stress "$two" "$((seconds + 10))" storm
	sleep 2
	kill_guest "$three"
	wait "${job[$three]}" || true
	same "$three is suspected" "suspected unguarded" "$(slot "$three")"
	inside "$one" "a process that needs no lock of the dead system continues" 'echo more >>/mnt/sg/own/1'
	start_guest "$three"
	each_its_map
	put "$compiled/stress" /root/stress "$three"
	inside "$three" "after the system's next boot all names can be read" 'ls /mnt/sg/storm/* >/dev/null'
	ends_well "$two" "the load beside a dead system found no error"
}
in_a_node || dies_unguarded

step "a system is paused"
stress "$two" "$seconds" storm
sleep 1
pause_guest "$two"
inside "$one" "the other systems continue" \
	'for i in $(seq 100); do echo $i >>/mnt/sg/own/$i; done; rm -r /mnt/sg/own'
sleep "$(scaled 4 13 60)" # longer than any wait for a live system
same "$two is suspected, and not fenced" "suspected guarded" "$(slot "$two")"
resume_guest "$two"
ends_well "$two" "the load of the paused system found no error"
inside "$three" "the check of all names finds no error" "/root/stress -s $seed -x check /mnt/sg/storm"

taken_for_dead() {
	step "a system is fenced while it is paused"
	inside "$two" "a process writes to an open file" 'echo kept >/mnt/sg/kept
		(exec 5>>/mnt/sg/kept; while sleep 0.1; do
			echo more >&5 || { echo over >/run/over; exit; }
		done) >/dev/null 2>&1 &'
	unguard_guest "$two"
	"$SG_TOOLS/stargatectl" tune "$RIG_RANGE" --lease 6
	pause_guest "$two"
	sleep 14 # an emulated system may need some seconds more
	inside "$one" "the other systems continue after the fence" \
		'mkdir /mnt/sg/after && echo x >/mnt/sg/after/x && rm -r /mnt/sg/after'
	"$SG_TOOLS/stargatectl" tune "$RIG_RANGE" --lease never
	resume_guest "$two"
	inside "$two" "the writer in the fenced system gets an error" \
		'for try in $(seq 100); do [ -e /run/over ] && exit 0; sleep 0.1; done; exit 1'
	for call in 'cat /mnt/sg/kept' 'ls /mnt/sg' 'touch /mnt/sg/new' 'stat /mnt/sg/kept' \
		'df /mnt/sg'; do
		said=$(on "$two" "$call" 2>&1 </dev/null) &&
			fail "$call works in a system that was fenced: $said"
		[[ $said == *"Input/output error"* ]] || fail "$call: $said"
		passed "in the fenced system, $call fails: ${said##*: }"
	done
	[[ $(console "$two" | grep -c 'fenced by another system') -eq 1 ]] ||
		fail "$two does not log once that it was fenced"
	passed "the fenced system logs one message"
	inside "$two" "the fenced system can unmount and mount the volume" \
		'umount /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
	inside "$two" "the fenced system can remove its file" 'grep -q kept /mnt/sg/kept && rm /mnt/sg/kept'
	inside "$one" "the other systems see that the file is removed" '! [ -e /mnt/sg/kept ]'
}
in_a_node || taken_for_dead
finish
