#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many processes create, remove and rename names in the same directories (e2e/programs/stress.c
# lists the invariants). At the end all space is free again.
#
# rig: --size 256M --cpus 2
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
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
	passed "map=$map: eight processes pass the storm"
	on g1 "/root/stress -s $seed -o -p 12 -t $seconds /mnt/sg/storm" </dev/null ||
		fail "one name, map=$map, SG_SEED=$seed"
	passed "map=$map: a name that is replaced all the time is always there"
	holds "map=$map: nothing is left" 'rmdir /mnt/sg/storm'
	after=$(used)
	same "map=$map: no page and no inode is lost" "$before" "$after"
}

# Prints the numbers of possible and of free inodes. Pages with inodes are never freed, and free
# pages count as the inodes that they could hold. So both numbers are the same again if no page is
# lost.
used() { on g1 "stat -f -c '%c %d' /mnt/sg" </dev/null; }

# The first inodes also need a page of the table that finds them.
holds "two processes pass a first storm" "mkdir /mnt/sg/storm && /root/stress -s $seed -p 2 -t 1 /mnt/sg/storm &&
	rmdir /mnt/sg/storm"
each_map storm
finish
