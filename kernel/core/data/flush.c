// SPDX-License-Identifier: GPL-2.0
/* Flush of a file whose pages other systems move meanwhile (docs/file-tables.md, "Moves"). */
#include "internal.h"

/* number of flushes without the file's lock before one with the lock */
#define TRIES	3

/**
 * struct places - the places of the file's pages
 * @root: of its table; each move changes it first
 * @cuts: of the file; each move or cut then increments it
 * @acknowledged: epoch acknowledged by this system; before its acknowledgement no page that left
 *   the file is used again
 */
struct places {
	u64 root, cuts, acknowledged;
};

static u64 acknowledged(const struct sg_vol *vol)
{
	if (vol->slot < 0)
		return 0;
	return sg_get(vol, sg_slot_off(vol, (unsigned int)vol->slot) +
		      offsetof(struct sg_slot, epoch));
}

/* Loads the places. The root is last: a move that changes it later also counts its cut later. */
static struct places places_before(const struct sg_vol *vol, const struct sg_iref *ref)
{
	struct places p = { 0 };

	p.acknowledged = acknowledged(vol);
	sg_acquire_fence();
	p.cuts = sg_cuts(vol, ref);
	sg_acquire_fence();
	if (!sg_is_lost(vol, ref->off))
		p.root = sg_iget(vol, ref, table);
	sg_acquire_fence();	/* the table is read after this fence */
	return p;
}

/*
 * Compares the places. Here the root is first: of two moves, the first has counted its cut before
 * the second changes the root. The second can restore the first root only after an acknowledgement.
 * A cut that moves no page does not change the root.
 */
static bool same_places(const struct sg_vol *vol, const struct sg_iref *ref,
			const struct places *before)
{
	u64 root;

	if (sg_is_lost(vol, ref->off))
		return !before->root;
	sg_acquire_fence();	/* the table was read before this fence */
	root = sg_iget(vol, ref, table);
	sg_acquire_fence();
	if (root != before->root)
		return false;
	if (sg_cuts(vol, ref) == before->cuts)
		return true;
	sg_acquire_fence();
	return vol->slot >= 0 && acknowledged(vol) == before->acknowledged;
}

/*
 * Flushes, in the end with the file's lock. If a paused system holds that lock, it moves no page,
 * so a further flush without the lock is enough.
 */
int sg_flush_moving(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages, bool wait)
{
	struct places before;
	unsigned int tries;
	int err;

	for (tries = 0; tries < TRIES; tries++) {
		before = places_before(vol, ref);
		err = sg_flush(vol, ref, first, pages);
		if (err ? err != -EBUSY : same_places(vol, ref, &before))
			return err;
	}
	if (!wait || vol->slot < 0)
		return -EBUSY;
	err = sg_ilock(vol, ref);
	if (err)
		return err;
	err = sg_flush_killable(vol, ref, first, pages);
	sg_iunlock(vol, ref);
	return err;
}
