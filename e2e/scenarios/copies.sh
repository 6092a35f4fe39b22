#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The module copies a program's bytes into a file (copy_wide.c). The scenario tests every size and
# alignment, and sources that are missing, partly missing or not yet present. The program's vector
# registers must keep their values. Three programs write at the same time.
#
# rig: --size 64M --cpus 2
# maps: inside
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

turns=$(scaled 20 100 3000)
seed=$(seed)
program copies

copies() {
	holds "map=$1, seed $seed: files have the written bytes, and registers keep their values" \
		"grep -qw avx /proc/cpuinfo || exit 9
		for s in $((seed + 1)) $((seed + 2)) $((seed + 3)); do
			/root/copies /mnt/sg \$s $turns &
		done
		wait -n && wait -n && wait -n"
}

each_map copies
finish
