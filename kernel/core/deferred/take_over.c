// SPDX-License-Identifier: GPL-2.0
/* Takes over the deferred frees of free slots. */
#include "internal.h"

static bool slot_free(const struct sg_vol *vol, unsigned int slot)
{
	return SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, slot))) == SG_SLOT_FREE;
}

int sg_settle_free(struct sg_vol *vol, bool wait)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < SG_SLOTS && !err; i++) {
		if (!slot_free(vol, i) || sg_ledger_empty(vol, i))
			continue;
		/*
		 * a system that now takes the slot waits for this lock before it opens its ledger
		 */
		if (wait)
			err = sg_lock(vol, SG_HOT(slot_lock));
		else if (!sg_trylock(vol, SG_HOT(slot_lock)))
			err = -EBUSY;
		if (err)
			return err;
		if (slot_free(vol, i))
			err = sg_ledger_settle(vol, i);
		sg_unlock(vol, SG_HOT(slot_lock));
	}
	return err;
}
