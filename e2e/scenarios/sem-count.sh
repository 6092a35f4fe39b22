#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Four systems acquire one mutex, and increase a counter each time. Two systems use the interface of
# programs, and two use the kernel's. No increase may be lost. `make test SUITE=sem-long` acquires
# the mutex ten million times; other runs acquire it less often.
#
# rig: --guests 4 --size 64M --mem 320M
# kernels: 6.12
# maps: walk
# suite: sem-long
# limit: 7200
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/sem" "$root/e2e/programs/sem.c" "$root"/kernel/lib/*.c || fail "sem.c does not compile"
for system in "${systems[@]}"; do put "$work/sem" /root/sem "$system"; done
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }

n=$(scaled 10000 50000 2500000)
at g1 'stargate-sem create m --type mutex && /root/sem count m user /mnt/sg/n 1'
faces=(user kernel user kernel)
jobs=()
start=$EPOCHREALTIME
for ((i = 0; i < 4; i++)); do
	on "${systems[i]}" "/root/sem count m ${faces[i]} /mnt/sg/n $n" \
		>"$work/$i" 2>&1 </dev/null &
	jobs+=($!)
done
for ((i = 0; i < 4; i++)); do
	wait "${jobs[i]}" || fail "${systems[i]}: $(cat "$work/$i")"
done
took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
same "the counter has every increase" "$((4 * n + 1)) $((4 * n + 1))" "$(at g2 '/root/sem words /mnt/sg/n')"
passed "4 systems acquired the mutex $((4 * n)) times in $took s"
finish
