#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies of a volume that three systems write by calls and mappings, each in its own map mode. Each
# copy passes fsck. A copy has every store that returned before the copy began. If it has a later
# store of a system, it also has all earlier stores of that system. The scenario also measures the
# pause. If a system does not pause, the error must name it. Further cases are a system that pauses
# the others and then dies or never resumes them, and unmounts, remounts and freezes in a pause.
#
# rig: --guests 3 --size 64M --pages
# maps: inside
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere sequence
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# refuses WHAT PATTERN COMMAND: checks that COMMAND fails in g1, with PATTERN in one line.
refuses() {
	local said
	said=$(on g1 "$3" 2>&1 </dev/null) && fail "$1: the command succeeded: $said"
	grep -qE -- "$2" <<<"$said" || fail "$1: the output does not match '$2': $said"
	[[ $(wc -l <<<"$said") -eq 1 ]] || fail "$1: the output has more than one line: $said"
	passed "$1: $said"
}
# goes_on SYSTEM: checks that the system can write.
goes_on() { at "$1" "timeout 20 sh -c 'echo on >/mnt/sg/on-$1 && rm /mnt/sg/on-$1'"; }
# stored SYSTEM: prints the number of the system's last completed step.
stored() { at "$1" "cd /mnt/sg/$1 && ls | sed -n s/^k-//p | sort -n | head -n 1"; }
# writes SYSTEM: starts writing a sequence.
writes() {
	at "$1" "mkdir -p /mnt/sg/$1; rm -f /run/enough /mnt/sg/$1/*
		/root/sequence store /mnt/sg/$1 /run/enough >/run/sequence.log 2>&1 &"
	at "$1" "until [ -s /mnt/sg/$1/log ]; do sleep 0.1; done"
}
# ended SYSTEM: prints the number of the system's steps, and the duration of the longest one (ms).
ended() {
	at "$1" 'touch /run/enough
		until [ -s /run/sequence.log ]; do sleep 0.1; done; cat /run/sequence.log'
}

step "copies while three systems write"
each_its_map
for s in "${systems[@]}"; do writes "$s"; done
stalls=()
for ((i = 1; i <= $(scaled 2 4 40); i++)); do
	declare -A had=()
	for s in "${systems[@]}"; do had[$s]=$(stored "$s"); done
	said=$(at g1 "rm -rf /run/copy /run/got; stargatectl -j snapshot /mnt/sg /run/copy")
	stalls+=("$(($(sed -nE 's/.*"stall_us": ([0-9]+).*/\1/p' <<<"$said") / 1000))")
	at g1 'fsck.stargatefs -n /run/copy >/run/fsck.log || { cat /run/fsck.log; exit 1; }'
	for s in "${systems[@]}"; do
		at g1 "stargatectl get -r /run/copy /$s /run/got-$s >/run/get.log 2>&1 ||
			{ cat /run/get.log; exit 1; }
			/root/sequence check /run/got-$s ${had[$s]} >/run/check.log ||
				{ cat /run/check.log; exit 1; }
			rm -r /run/got-$s"
	done
done
passed "${#stalls[@]} copies have all completed stores; the systems paused for ${stalls[*]} ms"
for s in "${systems[@]}"; do
	read -r steps longest <<<"$(ended "$s")"
	[[ $steps =~ ^[0-9]+$ && $longest =~ ^[0-9]+$ ]] || fail "$s: its program failed: '$steps $longest'"
	((longest < 6000)) || fail "$s: a step took $longest ms"
	passed "$s made $steps steps, the longest in $longest ms"
done

step "copies that are refused"
refuses "a copy onto its own volume is refused" "lies on the volume that is to be copied" "stargatectl snapshot /mnt/sg /mnt/sg/copy"
refuses "a clone onto its own volume is refused" "lies on the volume that is to be copied" \
	"stargatectl clone /mnt/sg /mnt/sg/copy --base 64G"
refuses "a copy over an existing file is refused" 'exists already' 'stargatectl snapshot /mnt/sg /run/copy'
refuses "a pause that is too short is refused" 'would pause all systems for about|does not freeze' \
	'stargatectl snapshot --stall 1 /mnt/sg /run/other'
at g2 'fsfreeze -f /mnt/sg'
refuses "a copy is refused while a user of g2 has frozen the mount" 'slot [0-9]+\) does not freeze' \
	'stargatectl snapshot /mnt/sg /run/other'
at g2 'fsfreeze -u /mnt/sg'
pause_guest g2
refuses "a copy is refused while g2 is paused" 'slot [0-9]+\) does not freeze' 'stargatectl snapshot /mnt/sg /run/other'
goes_on g3
resume_guest g2
goes_on g2
at g1 'rm /run/copy; stargatectl snapshot /mnt/sg /run/copy && rm /run/copy
	[ ! -e /run/copy ] && [ ! -e /run/other.part ]'
passed "a copy succeeds after g2 continues, and the failed ones have left no file"

# A system pauses for at most ten seconds in a minute, so these pauses are short.
step "a freezing system that never resumes the others"
begun=$EPOCHREALTIME
said=$(at g1 '/root/sequence freeze /mnt/sg 3000 &&
	{ ! LC_ALL=C fsfreeze -f /mnt/sg && ! LC_ALL=C fsfreeze -u /mnt/sg; } 2>&1')
grep -q busy <<<"$said" || fail "a user's freeze during the pause is not refused: $said"
grep -q Invalid <<<"$said" || fail "a user's thaw during the pause is not refused: $said"
passed "a user can neither freeze nor thaw the mount during the pause: ${said//$'\n'/, }"
at g3 'umount /mnt/sg'
goes_on g2
goes_on g1
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')
((took < 15000)) || fail "all systems were paused for $took ms"
passed "the systems continue without a resume after $took ms"
at g3 'for i in $(seq 50); do
	mount -t stargatefs /dev/pmem0 /mnt/sg && exit 0
	sleep 0.2
	done; exit 1'
goes_on g3
passed "a system can unmount during the pause, and mount after it"
at g1 'mount -o remount,ro /mnt/sg && mount -o remount,rw /mnt/sg'
goes_on g1

step "a freezing system that dies"
at g3 '/root/sequence freeze /mnt/sg 4000'
kill_guest g3
goes_on g1
goes_on g2
passed "the other systems continue"
at g1 'stargatectl snapshot --stall 1500 /mnt/sg /run/copy >/dev/null &&
	fsck.stargatefs -n /run/copy >/dev/null'
passed "the volume can be copied"

step "copies by a mount that only reads"
at g1 'mount -o remount,ro /mnt/sg'
writes g2
at g1 'stargatectl snapshot --stall 4000 /mnt/sg /run/reader >/dev/null &&
	fsck.stargatefs -n /run/reader >/dev/null'
passed "a member with a read-only mount can make a copy while g2 writes"
read -r steps longest <<<"$(ended g2)"
((steps > 0 && longest < 6000)) || fail "g2 made $steps steps, the longest in $longest ms"
at g2 'umount /mnt/sg'
at g1 'umount /mnt/sg && mount -t stargatefs -o ro,nojoin /dev/pmem0 /mnt/sg'
said=$(at g1 'stargatectl snapshot /mnt/sg /run/alone && fsck.stargatefs -n /run/alone >/dev/null &&
	stargatectl get -r /run/alone / /run/got && diff -r /mnt/sg /run/got && echo the same')
[[ $said == *"the same" && $said != *"systems paused"* ]] || fail "a copy of a volume without members is wrong, or has paused systems: $said"
passed "a copy of a volume without members pauses no system"
at g2 'mount -t stargatefs /dev/pmem0 /mnt/sg && echo later >/mnt/sg/later'
refuses "a mount with nojoin refuses a copy after a system has joined" 'in use or needs recovery' 'stargatectl snapshot /mnt/sg /run/late'
at g1 'umount /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ "$(cat /mnt/sg/later)" = later ]'

step "a copy with the UUID of its mounted source"
address=$(at g1 'cd /sys/fs/stargatefs/pmem0; echo $(($(cat phys) + $(cat size) - 4096 * 1000))')
at g1 "stargatectl bad /run/alone add $address"
passed "a page of the copy is added to the copy's list of bad pages"
[[ $(at g1 'stargatectl bad /dev/pmem0') == none ]] || fail "the mounted source lists the bad page of the copy"
passed "the mounted source does not list the page"
at g1 "stargatectl bad /dev/pmem0 add $address && stargatectl bad /dev/pmem0 | grep -q . &&
	stargatectl bad /dev/pmem0 remove $address"
passed "a bad page can be added to the mounted source, and removed from it"
finish
