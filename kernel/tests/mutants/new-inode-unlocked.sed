# SPDX-License-Identifier: Apache-2.0
#
# A new inode is unlocked before its creator's record is cleared: replay undoes later changes of
# other systems.
# file: kernel/core/inode/inode_record.c
# test: crash_reach_test
/^static int lock_record/,/^}/{
s/if (sg_trylock_filled(vol, SG_IOFF(out, lock))) {/if (1) {/
s/sg_tx_keep_lock(tx, SG_IOFF(out, lock));/;/
}
