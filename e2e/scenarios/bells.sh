#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Doorbells between two guests (QEMU's ivshmem-doorbell): which pairs have them; the time of a
# hand-over with and without them; a truncation of a file that the other guest maps; a sleeper's
# cost; a storm of rings; the removal of the device while it is in use; a death, and a second life.
# The lines "bells ..." compare both sides, in ns.
#
# rig: --guests 2 --size 128M --mem 384M --bells
# test: walk
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in bells sembench; do
	gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" \
		-I"$root/kernel/lib" -o "$work/$name" "$root/e2e/programs/$name.c" \
		"$root"/kernel/lib/*.c || fail "$name.c does not compile"
	for guest in g1 g2; do put "$work/$name" "/root/$name" "$guest"; done
done

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# told GUEST WORD: the value of a line of the guest's file `bells`.
told() { at "$1" "awk '\$1 == \"$2\" { print \$2 }' /sys/fs/stargatefs/*/bells"; }
drivers=/sys/bus/pci/drivers/stargatefs-bells
device=$(at g1 "basename $drivers/0000:*")	# the same in both guests
bells_off() { at "$1" "echo $device >$drivers/unbind"; }
bells_on() { at "$1" "echo $device >$drivers/bind"; }
# both COMMAND: runs the command in both guests at once, and prints g1's output. %w is the number of
# the guest.
both() {
	local second
	on g2 "${1//%w/1}" >"$work/2" 2>&1 </dev/null & second=$!
	on g1 "${1//%w/0}" >"$work/1" 2>&1 </dev/null || fail "g1: $1: $(cat "$work/1" "$work/2")"
	wait "$second" || fail "g2: $1: $(cat "$work/2")"
	cat "$work/1"
}
median() { awk '{ print $2 }' <<<"$1"; }

step "pairs"
slot1=$(at g1 'cat /sys/fs/stargatefs/*/slot') slot2=$(at g2 'cat /sys/fs/stargatefs/*/slot')
same "g1 rings g2 by its device" ivshmem "$(told g1 "slot_$slot2")"
same "g2 rings g1 by its device" ivshmem "$(told g2 "slot_$slot1")"
same "both are at one exchange" "$(told g1 exchange)" "$(told g2 exchange)"

step "hand-over"
at g1 'stargate-sem create bells-0 --value 0 && stargate-sem create bells-1 --value 0 &&
	stargate-sem create begin --type barrier --value 2' >/dev/null
count=$(scaled 50 200 2000)
declare -A took
# idle: prints the processor time, in ns, of a sleeper in g1 and of the thread that polls for it,
# in five seconds.
idle() {
	# after a late ring, which a busy machine may have, a system polls for ten seconds
	[[ $1 == without ]] ||
		at g1 'for i in $(seq 60); do
			grep -qx "covered 1" /sys/fs/stargatefs/*/bells && exit 0; sleep 0.5; done
			cat /sys/fs/stargatefs/*/bells; exit 1'
	on g2 'stargate-sem wait -t 20 bells-0; true' >/dev/null 2>&1 </dev/null &
	at g1 'cost() {
			cat /proc/$pid/schedstat /proc/$(pgrep -x stargatefs-sem)/schedstat |
				awk "{ n += \$1 } END { print n }"
		}
		stargate-sem wait -t 20 bells-0 & pid=$!
		sleep 4; before=$(cost); sleep 5; echo $(($(cost) - before))
		stargate-sem post bells-0; stargate-sem post bells-0; wait $pid'
	wait $!
}
measure() {
	local bench=/root/sembench
	took[woken $1]=$(both "/root/bells wake %w $count 20")
	took[semaphore $1]=$(both "$bench turn kernel-semaphore /mnt/sg/s %w $((2 * count)) begin")
	took[idle $1]=$(idle "$1")
	took[flock $1]=$(both "$bench turn flock /mnt/sg/l %w $((2 * count)) begin")
}
measure with
rings=$(told g2 rings_received)
((rings > count / 2)) || fail "g2 was rung $rings times in $count rounds"
passed "g2 was rung $rings times"
at g2 'touch /mnt/sg/cut; setsid /root/bells map /mnt/sg/cut >/tmp/map 2>&1 </dev/null &
	for i in $(seq 600); do grep -q mapped /tmp/map && exit 0; sleep 0.05; done
	cat /tmp/map; exit 1'
took[truncate with]=$(at g1 "/root/bells truncate /mnt/sg/cut $count")

step "without bells, in the same guests"
bells_off g1
bells_off g2
same "g1 has no device" none "$(told g1 driver)"
same "g1 polls for g2" polled "$(told g1 "slot_$slot2")"
measure without
took[truncate without]=$(at g1 "/root/bells truncate /mnt/sg/cut $((count / 5))")
on g2 'pkill -f "[b]ells map"; true' </dev/null
for what in woken semaphore flock truncate; do
	printf 'bells %s: COUNT MEDIAN P99 LONGEST: with %s, without %s\n' "$what" \
		"${took[$what with]}" "${took[$what without]}"
done
with=${took[idle with]} without=${took[idle without]}
echo "bells idle: ns in five seconds: with $with, without $without"
((with * 3 < without)) || fail "a sleeper costs as much with bells"
passed "a sleeper costs less than a third of the time"
(($(median "${took[truncate with]}") * 4 < $(median "${took[truncate without]}"))) ||
	fail "a truncation of a mapped file is hardly faster with bells"
passed "a truncation of a mapped file is at least four times as fast"
bells_on g1
bells_on g2
same "the device is in use again" ivshmem "$(told g1 "slot_$slot2")"

# QEMU passes on fewer rings in a second than g2 accepts, so each counts as a hundred.
step "a storm"
weight=/sys/module/stargatefs/parameters/ring_weight
at g2 "echo 100 >$weight"
id=$(told g2 number)
bells_off g1
at g1 "echo 1 >/sys/bus/pci/devices/$device/enable"
before=$(told g2 rings_received)
on g1 "/root/bells storm /sys/bus/pci/devices/$device/resource0 $id $(scaled 4 20 60)" >"$work/storm" 2>&1 \
	</dev/null & job=$!
muted=0
for ((i = 0; i < 60 && !muted; i++)); do sleep 0.2; muted=$(told g2 senders_muted); done
same "g2 ignores the sender" 1 "$muted"
at g2 'for i in $(seq 100); do echo $i >/mnt/sg/work; done'
wait "$job" || fail "storm: $(cat "$work/storm")"
rings=$(($(told g2 rings_received) - before)) sent=$(cat "$work/storm")
((sent > 20000)) || fail "only $sent rings were sent"
((rings > 0 && rings < 1000)) || fail "g2 handled $rings of $sent rings"
passed "g2 handled $rings of $sent rings"
at g2 "echo 1 >$weight"
sleep 7
same "g2 listens to it again" 0 "$(told g2 senders_muted)"
bells_on g1
at g1 'stargate-sem post bells-1'
at g2 'stargate-sem wait -t 10 bells-1'

step "deaths"
kill_guest g2
at g1 'echo x >/mnt/sg/work'
start_guest g2
slot2=$(at g2 'cat /sys/fs/stargatefs/*/slot') slot1=$(at g1 'cat /sys/fs/stargatefs/*/slot')
same "the next g2 has a bell at once" ivshmem "$(told g2 "slot_$slot1")"
same "and g1 rings it" ivshmem "$(told g1 "slot_$slot2")"
on g2 'stargate-sem wait -t 60 bells-1' </dev/null & job=$!
sleep 2
at g1 'stargate-sem post bells-1'
wait "$job" || fail "the next g2 was not woken"
passed "a sleeper in the next g2 is woken"
finish
