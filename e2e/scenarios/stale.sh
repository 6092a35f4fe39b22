#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One system continuously reads a range of a file, by calls and in a mapping. Another system frees
# the range's pages, in each possible way, and immediately gives them to another file. No reader may
# read that file's bytes (D7): e2e/programs/stale.c. e2e/mutants show that the test fails if a
# flush, an unmapping or the announcement of a reader is missing.
#
# The volume is small and full, so that freed pages are the next ones allocated. preempt=full lets
# the kernel preempt a reader in the middle of a copy, so that copies last longer. The second range
# lies so high in its file that its window is the only one of its size. A reader that exchanges it
# gets the same addresses again, with any translations that the processor still has for them.
#
# In a node, which has one processor, first the host reads, and then a guest while the host cuts.
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

# range NAME READERS WAIT OFFSET LENGTH: tests that part of a file. READERS: flags of `stale look`;
# WAIT: milliseconds that they have in each round.
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
	[[ $first == "$cutter" ]] || fail "the looking system has stopped"
	on "$looks" 'pkill -TERM -x stale' </dev/null || fail "nobody has looked until the end"
	wait "$reader" || fail "by reading: $(<"$work/reader")"
	wait "$mapper" || fail "in a mapping: $(<"$work/mapper")"
	for who in cutter reader mapper; do passed "$(<"$work/$who")"; done
	if [[ $map == walk ]]; then
		same "no window was in use" "$before" "$(window_bytes)"
	else
		[[ $(window_bytes) -gt $before ]] || fail "nothing was read through a window"
		passed "windows were in use"
	fi
	on "$cuts" "rm $file" </dev/null
}

# stale LOOKS CUTS MAP: tests all ranges, with the reader in that map mode.
stale() {
	looks=$1 cuts=$2 map=$3
	processor=$(on "$looks" 'echo $(($(nproc) - 1))' </dev/null)
	its_map "$looks" "$map"
	step "$looks: 2 MiB at the beginning of a file, by twelve at once"
	range low '-n 12' 50 0 $((2 << 20))
	step "$looks: the same, by readers who lose the processor in the midst of a copy"
	range slow '-b -n 12' 400 0 $((2 << 20))
	step "$looks: a few pages far behind it"
	range high '-n 1' 50 $((1 << 30)) $((192 << 10))
}

for map in $(map_modes); do
	stale "${systems[0]}" "${systems[1]}" "$map"
	! in_a_node || stale "${systems[2]}" host "$map"
done
finish
