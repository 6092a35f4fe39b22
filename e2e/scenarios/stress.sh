#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Many processes create, remove and rename names in the same directories (e2e/programs/stress.c
# lists the invariants). At the end all space is free.
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
		</dev/null || fail "map=$map, SG_SEED=$seed: stress found an error"
	passed "map=$map: stress with eight processes found no error"
	on g1 "/root/stress -s $seed -o -p 12 -t $seconds /mnt/sg/storm" </dev/null ||
		fail "map=$map, SG_SEED=$seed: stress with one name found an error"
	passed "map=$map: a name that is replaced repeatedly always exists"
	holds "map=$map: stress has left no file" 'rmdir /mnt/sg/storm'
	after=$(used)
	same "map=$map: no page and no inode is lost" "$before" "$after"
}

# used: prints the numbers of possible and of free inodes. Pages with inodes are never freed, and
# free pages count as the inodes that they could hold. So if no page is lost, both numbers are equal
# before and after the test.
used() { on g1 "stat -f -c '%c %d' /mnt/sg" </dev/null; }

# The first inodes also need a page for the table of the inode file. A short run allocates it before
# the first measurement.
holds "stress with two processes finds no error" "mkdir /mnt/sg/storm && /root/stress -s $seed -p 2 -t 1 /mnt/sg/storm &&
	rmdir /mnt/sg/storm"
each_map storm
finish
