# SPDX-License-Identifier: Apache-2.0
#
# A transaction that holds the area's lock waits for a free record with a busy lock.
# file: kernel/core/inode/inode_record.c
# test: crash_reach_test
/^static int lock_record/,/^}/s/if (sg_trylock_filled(vol, SG_IOFF(out, lock))) {/if (!sg_lock(vol, SG_IOFF(out, lock))) {/
