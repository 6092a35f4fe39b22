#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Random operations change three files by calls and by mappings. The program fsx compares each file
# with a copy in memory. The first file is smaller than five pages, the second has 4 KiB leaves, and
# the third has 2 MiB leaves that appear and disappear.
#
# rig: --size 256M --cpus 2
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats this run"
program fsx
seconds=$(scaled 2 5 60)

random_operations() {
	local map=$1 pids=() pid size
	for size in 20000 500000 9000000; do
		on g1 "/root/fsx -s $seed -l $size -n 100000000 -t $seconds /mnt/sg/fsx-$size" \
			</dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "fsx failed with map=$map, SG_SEED=$seed"
	done
	passed "map=$map: three files were equal to their copies in memory"
	holds "map=$map: the three files can be removed" 'rm /mnt/sg/fsx-*'
	seed=$((seed + 1))
}

each_map random_operations
finish
