#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Systems die at random times, and the other systems continue. Each guest has one life after the
# other. In a life, the guest writes its own files, records each completed step outside of the VM,
# and makes and renames names in common directories. Then its power is cut. Some systems are paused
# before the cut, some unmount cleanly, and some lose their power while they mount and unmount. A
# live system checks that the volume has exactly the completed steps. In a node the host works like
# a guest, but does not die alone. Complete nodes die in node-cuts.sh.
#
# SG_KILLS=N sets the number of deaths in all guests together. `make test SUITE=torture` makes many.
#
# rig: --guests 4 --size 512M --mem 288M
# mixed: 6.1,6.12,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 512M --timeout 60m
# maps: inside
# kernels: 6.12
# limit: 2400
# node-limit: 3600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
usual=$(scaled 12 50 200)
patience=15000 # ms; a survivor may wait for a paused system
if in_a_node; then # all systems share one processor with a booting system
	usual=$(scaled 3 6 50)
	patience=60000
fi
kills=${SG_KILLS:-$usual}
slowest=${SG_SLOWEST_MS:-$patience} # limit until a survivor has worked
read -ra maps <<<"$(map_modes)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work"/{deaths,progress,lives}
echo "The scenario makes $kills deaths. SG_SEED=$seed repeats the loads, but not their times."

# --- Common parts of all lives ----------------------------------------------------------------

note() { echo "${2:-$BASHPID}" >>"$work/$1"; } # one write, because several processes append
tally() { wc -l <"$work/$1"; }
enough() { [[ $(tally deaths) -ge $kills || -e $work/failed ]]; }
between() { # prints a random number between A and B
	awk -v r=$RANDOM -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a + (b - a) * r / 32768 }'
}
ms_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", 1000 * (b - a) }'; }

# up and down record whether a system answers. alive prints the systems that answer, in random
# order. A system may have died when the caller uses it.
up() { echo "$EPOCHREALTIME" >"$work/up.$1"; }
down() { rm -f "$work/up.$1"; }
alive() {
	local system
	for system in $(shuf -e "${systems[@]}"); do
		[[ ! -e $work/up.$system ]] || echo "$system"
	done
}

# ask GUEST COMMAND: runs the command, with its status in $status and its output in $said. Fails if
# the guest died during the command, even if the guest has already been restarted.
ask() {
	local since
	since=$(cat "$work/up.$1" 2>/dev/null) || return
	status=0
	said=$(on "$1" "$2" 2>&1 </dev/null) || status=$?
	[[ $status -eq 0 || $status -ne 255 && $(cat "$work/up.$1" 2>/dev/null) == "$since" ]]
}

# progress DEAD SINCE: records the time until another system has worked in all directories of the
# dead one. The time is measured outside, so it includes calls into the guest.
progress() {
	local other took
	for other in $(alive); do
		ask "$other" "cd /mnt/sg/storm && for d in d?; do
			echo x >\$d/next.$BASHPID && rm \$d/next.$BASHPID || exit; done" || continue
		took=$(ms_since "$2")
		[[ $status -eq 0 ]] || fail "after the death of $1, $other cannot work: $said"
		[[ $took -le $slowest ]] || fail "after the death of $1, $other could work only after $took ms, not within $slowest"
		note progress "$took"
		return 0
	done
}

# verified LIFE STEPS: lets a live system verify the files of the life. The function waits if no
# system is live. The system moves verified files to another directory, so that its own death does
# not affect the next verification.
verified() {
	local other tried=false turns
	for ((turns = 0; turns < 600; turns++)); do
		[[ ! -e $work/failed ]] || exit 1 # another life has failed and gives the reason
		for other in $(alive); do
			ask "$other" "cd /mnt/sg/lives && cd .. && { $tried && [ ! -e lives/$1 ]; } ||
				{ /mnt/sg/bin/powercut verify lives/$1 $1 $2 && mv lives/$1 old; }" || {
				tried=true
				continue
			}
			[[ $status -eq 0 ]] || fail "life $1 ($2 steps), verified by $other: $said"
			ask "$other" "rm -rf /mnt/sg/old/$1" || true
			return 0
		done
		sleep 0.5
	done
	fail "life $1: for 300 s no system could verify it"
}

# --- A life -----------------------------------------------------------------------------------

# last_step FILE: prints the last complete line of a writer's output.
last_step() { sed -nE 's/^([0-9]+)$/\1/p' <<<"$(head -c -1 "$1")" | tail -n 1; }

cut_off() {
	local since=$EPOCHREALTIME
	down "$1"
	kill_guest "$1"
	note deaths "$1"
	progress "$1" "$since"
}

stands_still() {
	down "$1"
	pause_guest "$1"
	sleep "$(between 0.2 5)"
	resume_guest "$1"
	up "$1"
	sleep "$(between 0 1)"
}

# $unmounted is a command that repeats the unmount, because a running request keeps the mount busy.
unmounted='for i in $(seq 100); do umount /mnt/sg 2>/dev/null && break; sleep 0.1; done
	! mountpoint -q /mnt/sg'

leaves() {
	on "$1" "pkill -KILL powercut; pkill -KILL stress; $unmounted" </dev/null >/dev/null ||
		fail "$1 cannot unmount"
}

# rests SYSTEM: ends the writers of the host, which cannot unmount while VMs map the volume.
rests() {
	on "$1" 'pkill -KILL powercut; pkill -KILL stress
		while pgrep "powercut|stress"; do sleep 0.1; done' </dev/null >/dev/null ||
		fail "the writers of $1 cannot be ended"
}

# lifetime SYSTEM: prints the duration of a life in seconds. The first system lives longer, so that
# usually a system is live.
lifetime() {
	if [[ $1 == "${systems[0]}" ]]; then between 10 40; else between 0.5 4; fi
}

# works GUEST LIFE HOW: lets the guest work until it loses its power or unmounts.
works() {
	local guest=$1 life=$2 steps jobs=()
	on "$guest" "mkdir /mnt/sg/lives/$life" </dev/null || fail "$guest: the directory of life $life cannot be made"
	on "$guest" "/mnt/sg/bin/powercut run /mnt/sg/lives/$life $life" \
		</dev/null >"$work/$life.steps" 2>"$work/$life.refused" &
	jobs+=($!)
	on "$guest" "/mnt/sg/bin/stress -s $((seed + life)) -x work -f $((life * 2)) -p 2 -t 3600 \
		/mnt/sg/storm" </dev/null >"$work/$life.storm" 2>&1 &
	jobs+=($!)
	up "$guest"
	sleep "$(lifetime "$guest")"
	case $3 in
	pause) stands_still "$guest" && cut_off "$guest" ;;
	leave) down "$guest" && leaves "$guest" ;;
	rest) down "$guest" && rests "$guest" && up "$guest" ;;
	*) cut_off "$guest" ;;
	esac
	wait "${jobs[@]}" || true
	! grep -h 'powercut:' "$work/$life".* || fail "$guest, life $life: its writer got an error"
	! grep '^stress: process' "$work/$life.storm" || fail "$guest, life $life: stress found an error"
	steps=$(last_step "$work/$life.steps")
	verified "$life" "${steps:-0}"
	rm "$work/$life".*
}

# comes_and_goes GUEST: lets the guest mount and unmount repeatedly, until it loses its power.
comes_and_goes() {
	local job
	down "$1"
	on "$1" "$unmounted || echo 'umount: busy'
		while mount -t stargatefs /dev/pmem0 /mnt/sg && umount /mnt/sg; do :; done" \
		</dev/null >"$work/comes.$1" 2>&1 &
	job=$!
	sleep "$(between 0.2 2)"
	cut_off "$1"
	wait "$job" || true
	! grep -i 'mount:' "$work/comes.$1" || fail "$1 could not mount or unmount"
}

# lives SYSTEM NUMBER: lets the system live until there were enough deaths.
lives() {
	local guest=$1 life how map
	until enough; do
		note lives
		life=$(($(tally lives) * 64 + $2))
		how=$(shuf -n 1 -e cut cut cut cut cut cut pause leave mounts)
		[[ $guest != host ]] || how=rest
		map=$(shuf -n 1 -e "${maps[@]}")
		on "$guest" "mount -o remount,map=$map /mnt/sg" </dev/null ||
			fail "$guest: remount with map=$map"
		case $how in
		mounts) comes_and_goes "$guest" ;;
		*) works "$guest" "$life" "$how" ;;
		esac
		case $how in
		rest) ;;
		leave)
			on "$guest" 'mount -t stargatefs /dev/pmem0 /mnt/sg' </dev/null ||
				fail "$guest cannot mount the volume after it has left"
			;;
		*) start_guest "$guest" ;;
		esac
		up "$guest"
	done
}

# --- The test ---------------------------------------------------------------------------------

step "the programs are copied to the volume"
compile powercut stress
on "${systems[0]}" 'mkdir /mnt/sg/bin /mnt/sg/lives /mnt/sg/old /mnt/sg/storm' </dev/null
for name in powercut stress; do put "$compiled/$name" "/mnt/sg/bin/$name"; done
holds "the names for all systems are made" "/mnt/sg/bin/stress -s $seed -x prepare /mnt/sg/storm"

step "lives and deaths"
jobs=()
for number in "${!systems[@]}"; do
	(
		trap '[[ $? -eq 0 ]] || touch "$work/failed"' EXIT
		up "${systems[number]}"
		lives "${systems[number]}" $((number + 1))
	) &
	jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || fail "SG_SEED=$seed"; done
# mk/test/repeat and e2e/bench/deaths read this line.
passed "$(tally deaths) deaths in $(tally lives) lives have lost no completed step"

step "times until another system worked in the directories of the dead one"
sort -n "$work/progress" | awk '{ ms[NR] = $1 } END {
	printf "   %d times; median %d ms, 90 %% %d ms, 99 %% %d ms, longest %d ms\n", NR,
		ms[int((NR + 1) / 2)], ms[int(NR * 0.9 + 0.5)], ms[int(NR * 0.99 + 0.5)], ms[NR] }'

step "checks at the end"
holds "all names lead to complete files" "/mnt/sg/bin/stress -s $seed -x check /mnt/sg/storm"
holds "all files can be removed" 'rm -r /mnt/sg/*'
for guest in "${systems[@]}"; do
	[[ -z $(on "$guest" 'ls /mnt/sg' </dev/null) ]] || fail "$guest still sees a removed name"
done
passed "no system sees a removed name"
finish
