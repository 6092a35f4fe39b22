#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Doorbells in a node: the host and its guests ring each other, under KVM without help of a VMM. The
# time of a hand-over in both directions, a truncation of a file that another system maps, a death,
# and the end of the exchange. The lines "bells ..." are "COUNT MEDIAN P99 LONGEST", in ns.
#
# node: --guests 2 --size 256M --bells
# node-kernels: 6.12
# maps: walk
# node-limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" \
	-I"$root/kernel/lib" -o "$work/bells" "$root/e2e/programs/bells.c" \
	"$root"/kernel/lib/*.c || fail "bells.c does not compile"
for system in "${systems[@]}"; do put "$work/bells" /root/bells "$system"; done

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
told() { at "$1" "awk '\$1 == \"$2\" { print \$2 }' /sys/fs/stargatefs/*/bells"; }
slot() { at "$1" 'cat /sys/fs/stargatefs/*/slot'; }
# woken FIRST SECOND: prints half of the time of a round.
woken() {
	on "$2" "/root/bells wake 1 $count 20" >"$work/2" 2>&1 </dev/null & local second=$!
	on "$1" "/root/bells wake 0 $count 20" >"$work/1" 2>&1 </dev/null ||
		fail "$1: $(cat "$work/1" "$work/2")"
	wait "$second" || fail "$2: $(cat "$work/2")"
	cat "$work/1"
}

step "pairs"
same "the host rings g1 by an eventfd" host "$(told host "slot_$(slot g1)")"
same "g1 rings the host by its device" ivshmem "$(told g1 "slot_$(slot host)")"
same "g1 rings g2 by its device" ivshmem "$(told g1 "slot_$(slot g2)")"
same "all are at one exchange" "$(told host exchange)" "$(told g2 exchange)"

step "hand-over"
at host 'stargate-sem create bells-0 --value 0 && stargate-sem create bells-1 --value 0' >/dev/null
count=$(scaled 20 100 1000)
before=$(told host rings_received)
echo "bells woken, host and g1: $(woken host g1)"
(($(told g1 rings_received) > 0)) || fail "the host did not ring g1"
(($(told host rings_received) > before)) || fail "g1 did not ring the host"
passed "the host and g1 ring each other"
echo "bells woken, g1 and g2: $(woken g1 g2)"
at g1 'touch /mnt/sg/cut; setsid /root/bells map /mnt/sg/cut >/tmp/map 2>&1 </dev/null &
	for i in $(seq 600); do grep -q mapped /tmp/map && exit 0; sleep 0.05; done
	cat /tmp/map; exit 1'
took=$(at host "/root/bells truncate /mnt/sg/cut $count")
echo "bells truncate, host, of a file that g1 maps: $took"
on g1 'pkill -f "[b]ells map"; true' </dev/null
for system in host g1 g2; do echo "$system: $(told "$system" rings_lost) rings lost"; done

step "a death"
kill_guest g1
start_guest g1
put "$work/bells" /root/bells g1
same "the next g1 rings the host" ivshmem "$(told g1 "slot_$(slot host)")"
same "the host rings it" host "$(told host "slot_$(slot g1)")"
on g1 'stargate-sem wait -t 60 bells-1' </dev/null & job=$!
sleep 2
at host 'stargate-sem post bells-1'
wait "$job" || fail "the next g1 was not woken"
passed "a sleeper in the next g1 is woken"

step "the end of the exchange"
at host 'cd /run/rig && kill "$(cat bells.socket.pid)" && rm bells.socket.pid
	while [ -e bells.socket ]; do sleep 0.02; done'
same "the host has no bell" none "$(told host driver)"
same "g1 polls for the host" polled "$(told g1 "slot_$(slot host)")"
same "g1 and g2 still ring each other" ivshmem "$(told g1 "slot_$(slot g2)")"
woken g1 g2 >/dev/null
woken host g1 >/dev/null
passed "all of them still wake each other"
finish
