#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many processes in each other's way: names that come, go and move in the same directories
# (e2e/programs/stress.c says what must hold), and all space back at the end.
#
# rig: --size 256M --cpus 2
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=$(seed)
echo "SG_SEED=$seed repeats this run"
program stress
seconds=$(scaled 2 6 120)

storm() {
	local map=$1 before after
	before=$(used)
	on g1 "mkdir /mnt/sg/storm && /root/stress -s $seed -p 8 -t $seconds /mnt/sg/storm" \
		</dev/null || fail "stress, map=$map, SG_SEED=$seed"
	passed "map=$map: eight processes"
	holds "map=$map: nothing is left" 'rmdir /mnt/sg/storm'
	after=$(used)
	same "map=$map: pages and inodes in use are what they were" "$before" "$after"
}

# Pages and inodes in use; pages that hold inodes stay with the volume, so the first storm is not
# compared but lets it have as many as it will need.
used() { on g1 "stat -f -c '%b-%f' /mnt/sg; df -i --output=iused /mnt/sg | tail -n 1" | xargs; }

each_map storm
finish
