#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One system continuously reads a range of a file, by calls and in a mapping (e2e/programs/stale.c).
# Another system frees the range's pages, in each possible way, and immediately gives them to
# another file. No reader may get the other file's bytes (D7). The mutants of e2e/mutants show that
# the test fails if a flush, an unmapping or the announcement of a reader is missing.
#
# The volume is small and full, so that freed pages are the next ones allocated. preempt=full lets
# the kernel preempt a reader in the middle of a copy, so that copies last longer. The third range
# is so high in its file that its window is the only one of its size. When a reader replaces that
# window, the new window has the same addresses, and the processor may still have old translations.
#
# A node has one processor. There, first the host reads while a guest frees pages, and then a guest
# reads while the host frees them.
#
# rig: --guests 2 --cpus 2 --size 16M --mem 320M --append preempt=full
# test: splice
# node: --guests 2 --size 16M --append preempt=full
# kernels: 6.12
# limit: 900
# node-limit: 2400
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere stale
rounds=$(scaled 3 10 200)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# window_bytes: prints the number of bytes that the reader has read through windows so far.
window_bytes() {
	on "$looks" "awk '/^window_bytes/ { print \$2 }' /sys/fs/stargatefs/pmem0/operations" </dev/null
}

# range NAME READERS WAIT OFFSET LENGTH: tests that range of a file. READERS are flags of
# `stale look`. WAIT is the time of each round, in milliseconds.
range() {
	local file=/mnt/sg/$1 readers=$2 wait=$3 before reader mapper cutter first
	shift 3
	before=$(window_bytes)
	on "$cuts" "touch $file" </dev/null
	on "$looks" "/root/stale look -c $processor $readers $file $*" </dev/null >"$work/reader" 2>&1 &
	reader=$!
	on "$looks" "/root/stale look -c 0 -m $file $*" </dev/null >"$work/mapper" 2>&1 &
	mapper=$!
	on "$cuts" "/root/stale cut -r $rounds -w $wait $file $*" </dev/null >"$work/cutter" 2>&1 &
	cutter=$!
	wait -n -p first || {
		on "$cuts" 'stargatectl systems /dev/pmem0; df /mnt/sg' </dev/null || true
		fail "$(cat "$work/"{reader,mapper,cutter})"
	}
	[[ $first == "$cutter" ]] || fail "a reading process has ended before the other system"
	on "$looks" 'pkill -TERM -x stale' </dev/null || fail "no process was reading at the end"
	wait "$reader" || fail "reading by calls failed: $(<"$work/reader")"
	wait "$mapper" || fail "reading in a mapping failed: $(<"$work/mapper")"
	for who in cutter reader mapper; do passed "$(<"$work/$who")"; done
	if [[ $map == walk ]]; then
		same "no byte was read through a window" "$before" "$(window_bytes)"
	else
		[[ $(window_bytes) -gt $before ]] || fail "no byte was read through a window"
		passed "bytes were read through windows"
	fi
	on "$cuts" "rm $file" </dev/null
}

# stale LOOKS CUTS MAP: tests all ranges. The system LOOKS reads with map=MAP, and the system CUTS
# frees the pages.
stale() {
	looks=$1 cuts=$2 map=$3
	processor=$(on "$looks" 'echo $(($(nproc) - 1))' </dev/null)
	its_map "$looks" "$map"
	step "$looks: twelve threads read 2 MiB at the beginning of a file"
	range low '-n 12' 50 0 $((2 << 20))
	step "$looks: twelve threads read the same range, and are preempted during copies"
	range slow '-b -n 12' 400 0 $((2 << 20))
	step "$looks: one thread reads 48 pages at 1 GiB in a file"
	range high '-n 1' 50 $((1 << 30)) $((192 << 10))
}

for map in $(map_modes); do
	stale "${systems[0]}" "${systems[1]}" "$map"
	! in_a_node || stale "${systems[2]}" host "$map"
done
finish
