// SPDX-License-Identifier: GPL-2.0
/* A walk along a list of deferred inodes that other systems may change meanwhile. */
#include "internal.h"

struct sg_deferred_walk sg_deferred_walk(const struct sg_vol *vol, unsigned int slot,
					 unsigned int area)
{
	return (struct sg_deferred_walk){ .at = sg_deferred_head(vol, slot, area) };
}

/*
 * Makes one step of a walk. If the system that has the list changes it meanwhile, the walk ends
 * early, or continues along another list. A walk in a circle ends after three rounds at most: the
 * mark moves to the current record whenever the number of passed records has doubled.
 */
bool sg_deferred_walk_next(const struct sg_vol *vol, struct sg_deferred_walk *w)
{
	u64 ino = SG_DEFERRED_LINK_INO(sg_get(vol, w->at));

	if (!ino || ino == w->mark || sg_iref(vol, ino, &w->ref) || sg_is_lost(vol, w->ref.off) ||
	    !sg_is_listed(vol, &w->ref) || sg_turn(&w->n))
		return false;
	w->at = sg_deferred_link(&w->ref);
	if (!(w->n & (w->n - 1)))
		w->mark = ino;
	return true;
}
