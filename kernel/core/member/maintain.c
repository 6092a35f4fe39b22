// SPDX-License-Identifier: GPL-2.0
/* The work of each second that may wait for locks. */
#include "internal.h"

void sg_settle(struct sg_vol *vol)
{
	if (vol->slot < 0 || sg_load64(&vol->settle_stop) || sg_is_member(vol))
		return;
	sg_userlock_settle(vol, false);	/* users' locks are valid on a read-only mount, too */
	if (sg_may_write(vol))
		return;
	sg_store64(&vol->settler, sg_self());
	sg_settle_free(vol, true);
	sg_grow_settle(vol);
	sg_freeze_settle(vol);
	sg_withdraw_opens(vol, false);
	sg_ledger_settle_inodes(vol);
	sg_sem_settle(vol);
	sg_reclaim(vol, ~0u);
	sg_space_mend_hints(vol);
	sg_store64(&vol->settler, 0);
}

void sg_settle_stop(struct sg_vol *vol, bool on)
{
	sg_store64(&vol->settle_stop, on);
	sg_full_fence();
}
