#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of single operations, and compares each count with the committed one in
# e2e/bench/baseline. The gate fails if a count is higher by more than 2 % plus twice the spread of
# its repeats (e2e/bench/gate.awk). With UPDATE=1, the scenario writes the baseline instead. Commit
# the baseline together with the change of the code, and give the reason for the new cost. Each run
# also checks that the gate can fail, and that a second count gives the same numbers.
#
# rig: --icount --size 256M --pages
# test: walk splice shadow
# kernels: 6.12
# maps: inside
# limit: 600
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

bench=$(dirname "$0")/../bench
repeats=7
all=(read-1 read-4k read-1m read-hole-4k write-1 write-4k write-1m append-64 append-4k append-1m
	fsync fstat stat stat-absent lookup open-close create unlink mkdir rmdir rename rename-over
	rename-across link symlink readlink list-100 grow-and-cut allocate-1m write-and-punch
	seek-data map-read map-write map-huge setxattr getxattr chmod utimens flock posix-lock)
# The other operations run the same code with each map=.
by_map=(read-4k read-1m write-4k write-1m open-close)
# These operations are counted twice. The list has no operation that allocates pages or inodes,
# because the place of the next free one depends on earlier operations. Two runs give the same
# counts for such an operation, but two counts in one run differ.
again=(read-4k write-4k stat open-close unlink)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count MAP OPERATION...: prints lines "MAP OPERATION INSTRUCTIONS SPREAD".
count() {
	local said
	said=$(on g1 "/root/cost /mnt/sg $repeats ${*:2}" </dev/null 2>&1) || fail "cost: $said"
	printf '%s\n' "$1 ${said//$'\n'/$'\n'$1 }"
}

# machine: prints the versions on which the counts also depend. Updates of one kernel series count
# as the same version.
machine() {
	echo "on: kernel $(cut -d . -f 1,2 <<<"$RIG_KERNEL")"
	# shellcheck disable=SC2016 # for the VM's shell
	on g1 'echo "on: machine $(cat /sys/class/dmi/id/product_version)"
		echo "on: module compiled by $(grep -aoE "GCC: \([^)]*\) [0-9.]+" \
			/root/stargatefs.ko* | head -n 1 | sed "s/.*GCC: //")"' </dev/null
}

# The hash of names has a random seed in each volume. This volume gets a fixed seed, so that the
# counts repeat.
volume() {
	on g1 'umount /mnt/sg' </dev/null || fail "umount"
	"$SG_TOOLS/mkfs.stargatefs" --quiet -f --phys "$RIG_BASE" "$RIG_RANGE" || fail "mkfs"
	compile resuper
	"$compiled/resuper" "$RIG_RANGE" hash_seed 0x5eed5eed5eed5eed || fail "resuper"
	on g1 'mount -t stargatefs /dev/pmem0 /mnt/sg' </dev/null || fail "mount"
}

compare() { awk -v tolerance=2 -f "$bench/gate.awk" "$1" "$2"; }

program cost
volume
machine >"$work/now"
for map in $(map_modes); do
	step "map=$map"
	mount_with "map=$map"
	operations=("${by_map[@]}")
	[[ $map != walk ]] || operations=("${all[@]}")
	count "$map" "${operations[@]}" >>"$work/now"
	[[ $map == walk ]] || continue

	step "a second count, and a count with an injected cost"
	{ machine; count walk "${again[@]}"; } >"$work/again"
	awk 'FNR == NR { again[$1, $2] = 1; next } /^on:/ || ($1, $2) in again' \
		"$work/again" "$work/now" >"$work/first"
	sed '/^on:/d' "$work/again" | paste -d ' ' - <(sed '/^on:/d' "$work/first") |
		awk '{ printf "   %s: first %d, then %d\n", $2, $7, $3 }'
	for pair in "first again" "again first"; do
		# shellcheck disable=SC2086 # two words
		set -- $pair
		compare "$work/$1" "$work/$2" >"$work/said" || fail "the second counts differ: $(<"$work/said")"
	done
	passed "${#again[@]} second counts are equal to the first ones"

	# A tracepoint in the path of a read adds a real but small cost.
	tracepoint=/sys/kernel/tracing/events/stargatefs/sgfs_read/enable
	on g1 "echo 1 >$tracepoint" </dev/null || fail "the tracepoint cannot be enabled"
	{ grep -v ' read-4k ' "$work/again"; count walk read-4k; } >"$work/dearer"
	on g1 "echo 0 >$tracepoint" </dev/null
	! compare "$work/again" "$work/dearer" >"$work/said" ||
		fail "the gate does not detect the cost of a tracepoint: $(grep ' read-4k ' "$work/dearer")"
	grep -q 'read-4k' "$work/said" || fail "the gate fails for another operation than read-4k: $(<"$work/said")"
	passed "the gate fails for the injected cost: $(grep -m 1 'read-4k' "$work/said")"
done

step "comparison with the committed counts"
if [[ -n ${UPDATE:-} ]]; then
	[[ $(map_modes) == "walk splice shadow" ]] || fail "UPDATE=1 needs a run with all map modes, because the baseline has all of them"
	{
		sed -n '/^#/!q; p' "$bench/baseline"
		cat "$work/now"
	} >"$work/new"
	cp "$work/new" "$bench/baseline"
	passed "e2e/bench/baseline is written ($(grep -c '^[a-z]* [a-z0-9-]* [0-9]' "$bench/baseline") counts)"
	finish
	exit 0
fi
status=0
compare "$bench/baseline" "$work/now" || status=$?
case $status in
0) passed "$(grep -cv '^on:' "$work/now") counts are within the limits of the baseline" ;;
3) ;; # gate.awk has printed that the versions differ
*) fail "an operation takes more instructions than e2e/bench/baseline allows. If there is a reason,
run \`make bench SUITE=gate UPDATE=1\` and commit the baseline with the change and the reason" ;;
esac
finish
