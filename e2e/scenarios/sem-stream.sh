#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The producer and consumer of P1. One system writes much data through a small file, and another
# system reads the data. Two semaphores synchronise the systems. The scenario uses several block
# sizes and both interfaces, and the output must equal the input. In a node the host is one of the
# two systems.
#
# rig: --guests 2 --size 128M --mem 384M
# node: --guests 2 --size 128M
# kernels: 6.12
# node-kernels: 6.12
# maps: walk
# suite: sem-long
# limit: 7200
# node-limit: 7200
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/sem" "$root/e2e/programs/sem.c" "$root"/kernel/lib/*.c || fail "sem.c does not compile"
for system in "${systems[@]}"; do put "$work/sem" /root/sem "$system"; done
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }

bytes=$(scaled $((2 << 20)) $((8 << 20)) $((2 << 30)))
# passes FROM TO FACE FACE BLOCK: checks that FROM can pass data to TO. The faces are the interfaces
# that FROM and TO use, `user` or `kernel`.
passes() {
	local from=$1 to=$2 block=$5 first put got
	at "$from" "rm -f /mnt/sg/small && head -c $((4 * block)) /dev/zero >/mnt/sg/small
		stargate-sem rm p.room 2>/dev/null; stargate-sem rm p.full 2>/dev/null
		stargate-sem create p.room --value 4 && stargate-sem create p.full --value 0"
	on "$from" "/root/sem put p $3 /mnt/sg/small $bytes $block" >"$work/put" 2>&1 </dev/null & first=$!
	on "$to" "/root/sem get p $4 /mnt/sg/small $bytes $block" >"$work/get" 2>&1 </dev/null ||
		fail "$to: $(cat "$work/get")"
	wait "$first" || fail "$from: $(cat "$work/put")"
	read -r put _ <"$work/put"
	read -r got took <"$work/get"
	[[ -n $put && $put == "$got" ]] || fail "the producer's digest is $put, the consumer's $got"
	passed "$from passes $((bytes >> 20)) MiB to $to ($3, $4) in blocks of $block in $took ms"
}

step "data from ${systems[0]} to ${systems[1]}"
for block in 1024 4096 16384 65536 262144 1048576; do
	passes "${systems[0]}" "${systems[1]}" user user "$block"
done
step "data in the other direction, and by the kernel's interface"
bytes=$((bytes / 4))
for block in 1024 65536 1048576; do
	passes "${systems[1]}" "${systems[0]}" user kernel "$block"
	passes "${systems[-1]}" "${systems[0]}" kernel kernel "$block"
done
finish
