// SPDX-License-Identifier: GPL-2.0
/* A walk along a list of deferred inodes that other systems may change meanwhile. */
#include "internal.h"

struct sg_owed_walk sg_owed_walk(const struct sg_vol *vol, unsigned int slot, unsigned int area)
{
	return (struct sg_owed_walk){ .at = sg_deferred_head(vol, slot, area) };
}

/*
 * Whoever has the list may change it meanwhile: then this ends early, or goes on along another
 * list. A circle is left when it has been passed three times at most: the mark moves to where we
 * are whenever twice as many have been passed.
 */
bool sg_owed_walk_next(const struct sg_vol *vol, struct sg_owed_walk *w)
{
	u64 ino = SG_OWED_INO(sg_get(vol, w->at));

	if (!ino || ino == w->mark || sg_iref(vol, ino, &w->ref) || sg_is_lost(vol, w->ref.off) ||
	    !sg_is_listed(vol, &w->ref) || sg_turn(&w->n))
		return false;
	w->at = sg_deferred_link(&w->ref);
	if (!(w->n & (w->n - 1)))
		w->mark = ino;
	return true;
}
