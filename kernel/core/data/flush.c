// SPDX-License-Identifier: GPL-2.0
/* Flush of a file whose pages other systems move meanwhile (docs/file-tables.md, "Moves"). */
#include "internal.h"

#define TRIES	3		/* flushes without the file's lock, before a wait for it */
#define LOCK_NS	20000000ULL	/* to wait for it after each of them */

/* The places of the file's pages: a move changes the root first, and then the count of cuts. */
struct places {
	u64 root, cuts;
};

static struct places places_of(const struct sg_vol *vol, const struct sg_iref *ref)
{
	if (sg_is_lost(vol, ref->off))
		return (struct places){ 0 };
	return (struct places){ sg_iget(vol, ref, table), sg_cuts(vol, ref) };
}

static bool same_places(const struct sg_vol *vol, const struct sg_iref *ref,
			const struct places *before)
{
	struct places now;

	sg_acquire_fence();	/* the table was read before */
	now = places_of(vol, ref);
	return now.root == before->root && now.cuts == before->cuts;
}

/* -EBUSY: not at once, or this thread gives way. */
static int lock_soon(struct sg_vol *vol, const struct sg_iref *ref)
{
	int err = sg_lock_for(vol, SG_IOFF(ref, lock), LOCK_NS);

	return err == -EINTR && !sg_interrupted() ? -EBUSY : err;
}

/*
 * A system that is paused with the file's lock moves no page, so another flush without the lock is
 * enough then. A system that moves pages all the time releases the lock each time.
 */
int sg_flush_moving(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages)
{
	struct places before;
	unsigned int tries;
	int err;

	for (tries = 1;; tries++) {
		before = places_of(vol, ref);
		err = sg_flush(vol, ref, first, pages);
		if (err ? err != -EBUSY : same_places(vol, ref, &before))
			return err;
		if (vol->slot < 0)
			return -EBUSY;
		err = tries < TRIES ? lock_soon(vol, ref) : sg_ilock(vol, ref);
		if (err != -EBUSY)
			break;
	}
	if (err)
		return err;
	err = sg_flush(vol, ref, first, pages);
	sg_iunlock(vol, ref);
	return err;
}
