#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Rings between two guests: by name; records in order; a pipe between two shells, both ways, with
# checksums; two receivers that share the records of two senders; a receiver, a sender and a guest
# that are killed while they work. The others go on, nothing comes twice, and lost claims are
# counted.
#
# rig: --guests 2 --size 256M --mem 384M
# kernels: 6.12
# maps: walk
# test: walk
# test-rig: --guests 2 --size 128M --mem 384M --pkgs "acl attr sqlite3"
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
ring_is() { at g1 "stargate-ring stat $1" | grep -oE "\"$2\": *[0-9]+" | grep -oE '[0-9]+$'; }

step "by name"
at g1 'stargate-ring create box --size 64K && stargate-ring create box --size 64K'
same "seen by the other one" box "$(at g2 'stargate-ring list --names')"
refuses "not twice" 'already' g2 'stargate-ring create box --exclusive'
refuses "not larger" 'must be 64K to 64M' g2 'stargate-ring create large --size 65M'
refuses "no such" 'no object of that name' g2 'stargate-ring recv nobody'
at g1 'stargate-sem create lock --type mutex'
refuses "of another kind" 'of another kind' g2 'stargate-ring recv lock'
refuses "a mutex is not removed" 'of another kind' g2 'stargate-ring rm lock'
refuses "not by owner and mode" 'forbid it' g2 'setpriv --reuid 1000 --clear-groups stargate-ring recv box'
refuses "nothing in it" 'no record' g2 'stargate-ring recv -t 0 box'
at g1 'printf "one\ntwo\n\nfour\n" | stargate-ring send --tag 7 box'
same "records come in order" $'7 one\n7 two\n7 \n7 four' "$(at g2 'stargate-ring recv -n 4 --tags -t 20 box')"
refuses "it is full at some time" 'no room' g1 'yes 0123456789 | stargate-ring send -t 0 box'
at g2 'stargate-ring reset box'
same "empty again" 0 "$(ring_is box used)"
refuses "too large a record" 'larger than half the ring' g1 'head -c 40000 /dev/zero | stargate-ring send --block 40000 box'

step "a pipe between two shells"
bytes=$(scaled $((2 << 20)) $((8 << 20)) $((512 << 20)))
for guest in g1 g2; do
	at "$guest" "head -c $bytes /dev/urandom >/tmp/in"
done
on g1 'stargate-ring pipe shells </tmp/in >/tmp/out' >"$work/1" 2>&1 </dev/null & first=$!
at g2 'stargate-ring pipe shells </tmp/in >/tmp/out'
wait "$first" || fail "g1: $(cat "$work/1")"
same "g1's bytes are in g2" "$(at g1 'md5sum </tmp/in')" "$(at g2 'md5sum </tmp/out')"
same "g2's bytes are in g1" "$(at g2 'md5sum </tmp/in')" "$(at g1 'md5sum </tmp/out')"
same "nothing is left of it" 'box' "$(at g2 'stargate-ring list --names')"

step "two senders and two receivers"
n=$(scaled 2000 20000 1000000)
at g1 'stargate-ring create work --size 256K'
for guest in g1 g2; do
	on "$guest" 'stargate-ring recv -t 15 work >/tmp/got' >"$work/recv-$guest" 2>&1 </dev/null &
done
for guest in g1 g2; do
	on "$guest" "seq -f '$guest %.0f' $n | stargate-ring send work" >"$work/send-$guest" 2>&1 </dev/null &
	senders+=($!)
done
for sender in "${senders[@]}"; do wait "$sender" || fail "a sender: $(cat "$work"/send-*)"; done
wait
at g1 'cat /tmp/got' >"$work/got-1"
at g2 'cat /tmp/got' >"$work/got-2"
same "each record came once" "$((2 * n)) $((2 * n))" \
	"$(cat "$work"/got-? | wc -l) $(sort -u "$work"/got-? | wc -l)"
for got in "$work"/got-?; do
	for guest in g1 g2; do
		grep "^$guest " "$got" | cut -d' ' -f2 | sort -nc || fail "$guest's records are not in order"
	done
done
passed "each receiver got each sender's records in order"
same "no claim is lost" 0 "$(ring_is work claims_lost)"

step "deaths"
at g1 'stargate-ring create d --size 64K'
# g2 fills it, and its sender waits for room with the lock; then it is killed
at g2 'setsid sh -c "seq -f %06.0f 100000 | stargate-ring send d" >/dev/null 2>&1 </dev/null &
	for i in $(seq 100); do [ "$(stargate-ring stat d | grep -oE "\"used\": *[0-9]+" | grep -oE "[0-9]+$")" -gt 65000 ] && exit 0; sleep 0.1; done; exit 1'
at g2 'pkill -9 -x stargate-ring; sleep 0.2; true'
at g1 'stargate-ring recv -t 5 -n 2000 d >/tmp/d && sort -c /tmp/d'
passed "a sender was killed, and its records are whole and in order"
at g1 'echo after | stargate-ring send -t 5 d'
same "another one goes on" after "$(at g2 'stargate-ring recv -t 1 d | tail -n 1; true')"
# a receiver is killed while it prints a record that is longer than a pipe: its claim is counted
at g1 'stargate-ring create e; head -c 400000 /dev/zero | stargate-ring send --block 200000 e
	mkfifo /tmp/fifo; setsid sh -c "stargate-ring recv e >/tmp/fifo" >/dev/null 2>&1 </dev/null & exec 3</tmp/fifo; sleep 1
	kill -9 $(pgrep -x stargate-ring) && sleep 0.5; exec 3<&-'
same "a lost claim is counted" 1 "$(ring_is e claims_lost)"
same "the next record is whole" 200001 "$(at g2 'stargate-ring recv -t 5 -n 1 e | wc -c')"
at g2 'head -c 20000000 /dev/zero | stargate-ring send -t 60 --block 100000 e &
	stargate-ring recv -t 60 --raw -n 200 e | wc -c | grep -qx 20000000 && wait'
passed "others go on after it"

step "a guest is killed"
at g1 'stargate-ring create v --size 64K'
on g2 'seq -f %06.0f 100000000 | stargate-ring send v' >"$work/victim" 2>&1 </dev/null & victim=$!
at g1 'stargate-ring recv -t 20 -n 3000 v >/tmp/before && sort -c /tmp/before'
kill_guest g2
wait "$victim" || true
at g1 'stargate-ring recv -t 3 v >/tmp/after; test "$(cat /tmp/before /tmp/after | sort -u | wc -l)" = "$(cat /tmp/before /tmp/after | wc -l)" && cat /tmp/before /tmp/after | sort -c'
passed "its records came once, whole and in order"
start=$EPOCHREALTIME
at g1 'echo alive | stargate-ring send -t 20 v && stargate-ring recv -t 20 -n 1 v | grep -qx alive'
passed "the other guest sends again $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }') later"
finish
