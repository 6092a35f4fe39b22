// SPDX-License-Identifier: GPL-2.0
/*
 * Which systems' processes have a file mapped: two words in the inode with a bit per slot. Nobody
 * reuses a page that may still be mapped (epochs see to that); these words are for those who want
 * their change to be seen by all mappings when it returns. docs/protocol.md, section 5.
 *
 * Who maps sets its bit, then looks at the table; who cuts has changed the table, then looks at the
 * bits; each with a full fence in between. So either the cut is seen, or the mapper waited for.
 */
#include "internal.h"

#define WAIT_MS		2000	/* a system that does not answer delays, it does not prevent */

static u64 *word_of(const struct sg_vol *vol, const struct sg_iref *ref, bool holes)
{
	return sg_at(vol, holes ? SG_IOFF(ref, holers) : SG_IOFF(ref, mappers));
}

void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on)
{
	u64 *word = word_of(vol, ref, holes), bit;

	if (vol->slot < 0 || sg_is_silenced(vol) || sg_is_lost(vol, ref->off))
		return;
	bit = 1ULL << vol->slot;
	if (on)
		sg_or64(word, bit);
	else
		sg_and64(word, ~bit);
	sg_full_fence();
}

/* A bit that a dead system left, or its slot's next owner did not set, costs time only. */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes)
{
	if (vol->slot < 0 || sg_is_lost(vol, ref->off))
		return;
	sg_full_fence();
	if (sg_load64(word_of(vol, ref, holes)) & ~(1ULL << vol->slot))
		sg_epoch_next(vol, WAIT_MS);
}
