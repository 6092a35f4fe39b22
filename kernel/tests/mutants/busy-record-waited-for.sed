# SPDX-License-Identifier: Apache-2.0
#
# A free record whose lock is busy is waited for, although the area's lock is held.
# file: kernel/core/inode/inode_record.c
# test: crash_reach_test
/^static int lock_record/,/^}/s/if (sg_trylock(vol, SG_IOFF(out, lock))) {/if (!sg_lock(vol, SG_IOFF(out, lock))) {/
