// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of deferred inodes: adding an inode in a transaction. deferred/deferred_inodes.c has the
 * rest.
 */
#include "internal.h"

bool sg_deferred_empty(const struct sg_vol *vol, unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < vol->sb.areas; i++)
		if (sg_get(vol, sg_deferred_head(vol, slot, i)))
			return false;
	return true;
}

void sg_deferred_add(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 head = tx->area + offsetof(struct sg_area, deferred_ino);

	if (tx->err || sg_tx_get(tx, sg_deferred_link(ref)))
		return;
	sg_tx_set(tx, sg_deferred_link(ref),
		  SG_DEFERRED_LINK(SG_DEFERRED_LINK_INO(sg_tx_get(tx, head))));
	sg_tx_set(tx, head, ref->ino);
}
