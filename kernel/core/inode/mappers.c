// SPDX-License-Identifier: GPL-2.0
/*
 * Which systems' processes have a file mapped: two words in the inode with a bit per slot. Epochs
 * ensure that no page is reused while it may be mapped. These words are for systems whose change
 * must be visible in all mappings when the call returns. docs/protocol.md, section 5.
 *
 * A mapping system sets its bit, then looks at the table. A cutting system has changed the table,
 * then looks at the bits. Both make a full fence in between. So either the mapping system sees the
 * cut, or the cutting system waits for it.
 */
#include "internal.h"

/* a system that does not acknowledge delays the change, but does not prevent it */
#define WAIT_MS		2000

static u64 *mappers_word_of(const struct sg_vol *vol, const struct sg_iref *ref, bool holes)
{
	return sg_at(vol, holes ? SG_IOFF(ref, holers) : SG_IOFF(ref, mappers));
}

void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on)
{
	u64 *word = mappers_word_of(vol, ref, holes), bit;

	if (vol->slot < 0 || sg_is_silenced(vol) || sg_is_lost(vol, ref->off))
		return;
	bit = 1ULL << vol->slot;
	if (on)
		sg_or64(word, bit);
	else
		sg_and64(word, ~bit);
	sg_full_fence();
}

/* A bit that a dead system left, and the slot's next owner did not set, only costs time. */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes)
{
	if (vol->slot < 0 || sg_is_lost(vol, ref->off))
		return;
	sg_full_fence();
	if (sg_load64(mappers_word_of(vol, ref, holes)) & ~(1ULL << vol->slot))
		sg_epoch_next(vol, WAIT_MS);
}
