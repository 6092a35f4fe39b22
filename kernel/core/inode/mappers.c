// SPDX-License-Identifier: GPL-2.0
/*
 * Mappers: two words in the inode record, with one bit for each slot, which systems have processes
 * that map the file. Epochs ensure that no page is reused while it may be mapped. These words are
 * for systems whose change must be visible in all mappings when the call returns (docs/protocol.md,
 * section 5).
 *
 * A system that maps the file sets its bit, then reads the table. A system that cuts pages out
 * changes the table, then reads the bits. Both execute a full fence in between. So either the
 * mapping system sees the cut, or the cutting system waits for the mapping system.
 *
 * While a system replaces pages (data/atomic.c), no process may store to the old page. So that
 * system first sets a word in the inode, and then reads the bits. A mapping system sets its bit,
 * and then reads that word (docs/atomic-data.md).
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

/*
 * Waits for mappers. A bit that a dead system left, and that the slot's next owner did not set,
 * only costs time.
 */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes)
{
	if (vol->slot < 0 || sg_is_lost(vol, ref->off))
		return;
	sg_full_fence();
	if (sg_load64(mappers_word_of(vol, ref, holes)) & ~(1ULL << vol->slot))
		sg_epoch_next(vol, WAIT_MS);
}

/* --- replaced pages -------------------------------------------------------------------------- */

/*
 * Reports whether processes of a live system map the file; stores of other systems do not matter.
 */
static bool is_mapped(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 left = sg_iget(vol, ref, mappers);

	for (; left; left &= left - 1)
		if (SG_SLOT_STATE(sg_load64(sg_state_word(vol, sg_ctz64(left)))) == SG_SLOT_LIVE)
			return true;
	return false;
}

bool sg_replace_begin(struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_store64(sg_at(vol, SG_IOFF(ref, replacing)),
		   SG_LOCK_WORD((unsigned int)vol->slot, vol->incarnation));
	sg_full_fence();
	return !is_mapped(vol, ref);
}

void sg_replace_end(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 own = SG_LOCK_WORD((unsigned int)vol->slot, vol->incarnation);

	/* fenced meanwhile, so the word may belong to the next writer */
	if (sg_is_ours(vol))
		sg_cas64(sg_at(vol, SG_IOFF(ref, replacing)), own, 0);
}

bool sg_is_replacing(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 word = sg_is_lost(vol, ref->off) ? 0 : sg_iget(vol, ref, replacing);

	return word && !sg_holder_gone(vol, word);
}

int sg_wait_replaced(struct sg_vol *vol, const struct sg_iref *ref)
{
	int err = vol->slot < 0 ? 0 : sg_ilock(vol, ref);
	u64 seen;

	if (err || vol->slot < 0)
		return err;
	/* a system that died may have left the word */
	seen = sg_iget(vol, ref, replacing);
	if (seen && sg_is_ours(vol))
		sg_cas64(sg_at(vol, SG_IOFF(ref, replacing)), seen, 0);
	sg_iunlock(vol, ref);
	return 0;
}
