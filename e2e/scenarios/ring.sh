#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Rings between two guests: by name; records in order; a pipe between two shells, both ways, with
# checksums; two receivers that share the records of two senders; a receiver, a sender and a guest
# that are killed while they work. The other processes continue, no record arrives twice, and the
# lost claims are counted. Processes that wait by poll, epoll and io_uring; streams between programs
# in C and Go; a frozen mount, also with several threads on one descriptor.
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

root=$(dirname "$0")/../..
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/ringpoll" "$root/e2e/programs/ringpoll.c" "$root"/kernel/lib/*.c ||
	fail "ringpoll.c does not compile"
(cd "$root/docs/examples/go" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -o "$work/" ./stream) ||
	fail "the example of a stream in Go does not compile"
for guest in g1 g2; do
	put "$work/ringpoll" /root/ringpoll "$guest"
	put "$work/stream" /root/stream "$guest"
done

step "by name"
at g1 'stargate-ring create box --size 64K && stargate-ring create box --size 64K'
same "the other guest sees the change" box "$(at g2 'stargate-ring list --names')"
refuses "--exclusive refuses an existing ring" 'already' g2 'stargate-ring create box --exclusive'
refuses "a ring larger than 64 MiB is refused" 'must be 64K to 64M' g2 'stargate-ring create large --size 65M'
refuses "a missing ring is reported" 'no object of that name' g2 'stargate-ring recv nobody'
at g1 'stargate-sem create lock --type mutex'
refuses "an object of another kind is refused" 'of another kind' g2 'stargate-ring recv lock'
refuses "a mutex is not removed" 'of another kind' g2 'stargate-ring rm lock'
refuses "a user without permission cannot receive" 'do not permit' g2 'setpriv --reuid 1000 --clear-groups stargate-ring recv box'
refuses "an empty ring returns no record" 'no record' g2 'stargate-ring recv -t 0 box'
at g1 'printf "one\ntwo\n\nfour\n" | stargate-ring send --tag 7 box'
same "records arrive in order" $'7 one\n7 two\n7 \n7 four' "$(at g2 'stargate-ring recv -n 4 --tags -t 20 box')"
refuses "a full ring accepts no record" 'no room' g1 'yes 0123456789 | stargate-ring send -t 0 box'
at g2 'stargate-ring reset box'
same "the ring is empty again" 0 "$(ring_is box used)"
refuses "a record larger than half the ring is refused" 'larger than half the ring' g1 'head -c 40000 /dev/zero | stargate-ring send --block 40000 box'

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
same "no trace of the removed ring remains" 'box' "$(at g2 'stargate-ring list --names')"

step "streams"
bytes=$(scaled 500000 4000000 $((256 << 20)))
# streams WHAT COMMAND-IN-G1 COMMAND-IN-G2: checks that each command receives the input of the other
# one.
streams() {
	on g1 "head -c $bytes /dev/urandom >/tmp/in; $2 </tmp/in >/tmp/out" >"$work/1" 2>&1 </dev/null & first=$!
	at g2 "head -c $bytes /dev/urandom >/tmp/in; for i in \$(seq 100); do [ \"\$(stargate-ring list --names)\" = 'box
s' ] && break; sleep 0.1; done; $3 </tmp/in >/tmp/out"
	wait "$first" || fail "$1: g1: $(cat "$work/1")"
	same "$1: to g2" "$(at g1 'md5sum </tmp/in')" "$(at g2 'md5sum </tmp/out')"
	same "$1: to g1" "$(at g2 'md5sum </tmp/in')" "$(at g1 'md5sum </tmp/out')"
}
streams "C listens, C dials" 'stargate-ring listen s' 'stargate-ring dial s -t 20'
streams "C listens, Go dials" 'stargate-ring listen s' '/root/stream dial /mnt/sg s'
streams "Go listens, C dials" '/root/stream listen /mnt/sg s' 'stargate-ring dial s -t 20'
same "no trace of the removed rings remains" 'box' "$(at g2 'stargate-ring list --names')"
refuses "a dial without a listener is refused" 'no process listens' g2 'stargate-ring dial s'
for end in '/root/stream dial /mnt/sg s' 'stargate-ring dial s -t 20'; do
	# It sends 200,000 bytes and then waits. More of them would fill the memory of g2.
	on g1 'rm -f /tmp/in; mkfifo /tmp/in; (head -c 200000 /dev/zero >/tmp/in &)
		stargate-ring listen s <>/tmp/in >/dev/null' >"$work/1" 2>&1 </dev/null & first=$!
	at g2 'for i in $(seq 100); do
			stargate-ring list --names | grep -qx s && exit 0; sleep 0.1
		done
		exit 1'
	at g2 "mkfifo /tmp/never; (sleep 30 >/tmp/never &); setsid sh -c '$end </tmp/never >/tmp/reset 2>&1; echo \$? >>/tmp/reset' >/dev/null 2>&1 </dev/null &
		for i in \$(seq 100); do [ \"\$(stat -c %s /tmp/reset 2>/dev/null || echo 0)\" -gt 100000 ] && exit 0; sleep 0.1; done; exit 1"
	at g1 'pkill -9 -x stargate-ring'
	wait "$first" || true
	at g2 'for i in $(seq 20); do tail -n 1 /tmp/reset | grep -qx 1 && break; sleep 0.1; done
		tail -c 200 /tmp/reset | tr -d "\0" | grep -q "other end has died\|connection reset" && rm -f /tmp/never /tmp/reset'
	passed "$end: the other end was killed, and within two seconds it says so"
done

step "poll, epoll, io_uring"
at g1 'stargate-ring create p --size 64K'
for how in poll epoll uring; do
	for from in g1 g2; do
		on g1 "/root/ringpoll /mnt/sg p $how" >"$work/out" 2>"$work/took" </dev/null & first=$!
		sleep 1
		at "$from" "echo $how-$from | stargate-ring send p"
		wait "$first" || fail "$how: $(cat "$work/took")"
		same "$how, from $from, after $(cat "$work/took")" "$how-$from" "$(cat "$work/out")"
	done
done
at g1 'seq 100000 | stargate-ring send --block 1000 -t 0 p || true'
on g1 '/root/ringpoll /mnt/sg p room' >"$work/out" 2>&1 </dev/null & first=$!
sleep 1
kill -0 "$first" 2>/dev/null || fail "there is no room yet: $(cat "$work/out")"
at g2 'stargate-ring recv -t 0 p >/dev/null || true'
wait "$first" || fail "room: $(cat "$work/out")"
passed "room, after $(cat "$work/out")"
on g1 '/root/ringpoll /mnt/sg p many 16' >"$work/out" 2>&1 </dev/null & first=$!
at g2 'for i in $(seq 16); do echo $i; sleep 0.02; done | stargate-ring send p'
wait "$first" || fail "sixteen descriptors: $(cat "$work/out")"
same "sixteen descriptors in one epoll" "16 records" "$(cat "$work/out")"
on g1 '/root/ringpoll /mnt/sg p edge 6' >"$work/out" 2>&1 </dev/null & first=$!
at g2 'sleep 1; for i in $(seq 6); do echo $i; sleep 0.2; done | stargate-ring send p'
wait "$first" || fail "edge-triggered: $(cat "$work/out")"
same "an edge-triggered wait reports all records" "6 records" "$(cat "$work/out")"
on g1 '/root/ringpoll /mnt/sg p multishot 6' >"$work/out" 2>&1 </dev/null & first=$!
at g2 'sleep 1; for i in $(seq 6); do echo $i; sleep 0.2; done | stargate-ring send p'
wait "$first" || fail "multishot: $(cat "$work/out")"
same "a multishot request of io_uring" "6 records" "$(cat "$work/out")"
at g1 'mkfifo /tmp/pipe; setsid sh -c "stargate-ring recv p >/tmp/pipe; echo ended >/tmp/ended" >/dev/null 2>&1 </dev/null &
	head -n 1 /tmp/pipe >/tmp/head & sleep 1; echo line | stargate-ring send p
	for i in $(seq 100); do [ -e /tmp/ended ] && exit 0; sleep 0.1; done; exit 1'
passed "recv ends with the process that reads its output"

step "a frozen mount"
# says LINE: checks that the process in g1 has written this line.
says() { at g1 "for i in \$(seq 100); do grep -qx '$1' /tmp/frozen && exit 0; sleep 0.1; done; exit 1"; }
on g1 '/root/ringpoll /mnt/sg p frozen /tmp/go >/tmp/frozen 2>&1' >"$work/out" 2>&1 </dev/null & first=$!
says open
at g1 'fsfreeze -f /mnt/sg && touch /tmp/go'
at g2 'echo frozen | stargate-ring send p'
says 'timed out'
at g1 'sleep 1'
kill -0 "$first" 2>/dev/null || fail "frozen: $(at g1 'cat /tmp/frozen')"
at g1 'fsfreeze -u /mnt/sg'
wait "$first" || fail "frozen: $(at g1 'cat /tmp/frozen')"
says frozen
passed "on a frozen mount a receive times out as requested, and the process gets its first record after the thaw"
at g1 'stargate-ring rm p'

step "throughput"
at g1 'stargate-ring bench --block 4096' >"$work/bench"
sed 's/^/   /' "$work/bench"
same "five pairs of counts" 5 "$(awk 'NF == 5 && $4 + 0 > 0' "$work/bench" | wc -l)"

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
same "each record arrived once" "$((2 * n)) $((2 * n))" \
	"$(cat "$work"/got-? | wc -l) $(sort -u "$work"/got-? | wc -l)"
for got in "$work"/got-?; do
	for guest in g1 g2; do
		# a receiver may get none of a sender's records
		awk -v guest="$guest" '$1 == guest { if ($2 <= last) exit 1; last = $2 }' "$got" ||
			fail "$guest's records are not in order"
	done
done
passed "each receiver got each sender's records in order"
same "no claim is lost" 0 "$(ring_is work claims_lost)"

step "a freeze"
program oneobject
said=$(on g1 "/root/oneobject /mnt/sg $(scaled 10 30 300)" </dev/null 2>&1) ||
	fail "a freeze does not end (status $?): $said"
passed "each freeze ends while one descriptor has different requests: $said"

step "deaths"
at g1 'stargate-ring create d --size 64K'
# g2 fills the ring, and its sender waits for space while it holds the lock; then g2 is killed
at g2 'setsid sh -c "seq -f %06.0f 100000 | stargate-ring send d" >/dev/null 2>&1 </dev/null &
	for i in $(seq 100); do [ "$(stargate-ring stat d | grep -oE "\"used\": *[0-9]+" | grep -oE "[0-9]+$")" -gt 65000 ] && exit 0; sleep 0.1; done; exit 1'
at g2 'pkill -9 -x stargate-ring; sleep 0.2; true'
at g1 'stargate-ring recv -t 5 -n 2000 d >/tmp/d && sort -c /tmp/d'
passed "a sender was killed, and its records are whole and in order"
at g1 'echo after | stargate-ring send -t 5 d'
same "another process receives the next record" after "$(at g2 'stargate-ring recv -t 1 d | tail -n 1; true')"
# a receiver is killed while it prints a record that is longer than a pipe: its claim is counted
at g1 'stargate-ring create e; head -c 400000 /dev/zero | stargate-ring send --block 200000 e
	mkfifo /tmp/fifo; setsid sh -c "stargate-ring recv e >/tmp/fifo" >/dev/null 2>&1 </dev/null & exec 3</tmp/fifo; sleep 1
	kill -9 $(pgrep -x stargate-ring) && sleep 0.5; exec 3<&-'
same "a lost claim is counted" 1 "$(ring_is e claims_lost)"
same "the next record is whole" 200001 "$(at g2 'stargate-ring recv -t 5 -n 1 e | wc -c')"
at g2 'head -c 20000000 /dev/zero | stargate-ring send -t 60 --block 100000 e &
	stargate-ring recv -t 60 --raw -n 200 e | wc -c | grep -qx 20000000 && wait'
passed "other processes continue after it"

step "a guest is killed"
at g1 'stargate-ring create v --size 64K'
on g2 'seq -f %06.0f 100000000 | stargate-ring send v' >"$work/victim" 2>&1 </dev/null & victim=$!
at g1 'stargate-ring recv -t 20 -n 3000 v >/tmp/before && sort -c /tmp/before'
# a stream without data
on g2 'sleep 1000 | stargate-ring listen t >/dev/null' >"$work/listens" 2>&1 </dev/null & listens=$!
at g1 'for i in $(seq 100); do stargate-ring list --names | grep -qx t && break; sleep 0.1; done
	setsid sh -c "sleep 1000 | { stargate-ring dial -t 20 t >/dev/null 2>/tmp/left; echo \$? >>/tmp/left; }" >/dev/null 2>&1 </dev/null &
	sleep 2; ! grep . /tmp/left'
kill_guest g2
start=$EPOCHREALTIME
wait "$victim" "$listens" || true
at g1 'for i in $(seq 600); do grep -qx 1 /tmp/left && break; sleep 0.1; done; grep -q "other end has died" /tmp/left'
passed "the other end of a stream says so $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }') later"
at g1 'stargate-ring recv -t 3 v >/tmp/after; test "$(cat /tmp/before /tmp/after | sort -u | wc -l)" = "$(cat /tmp/before /tmp/after | wc -l)" && cat /tmp/before /tmp/after | sort -c'
passed "its records arrived once, complete and in order"
start=$EPOCHREALTIME
at g1 'echo alive | stargate-ring send -t 20 v && stargate-ring recv -t 20 -n 1 v | grep -qx alive'
passed "the other guest sends again $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }') later"
finish
