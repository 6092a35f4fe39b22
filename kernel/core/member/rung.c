// SPDX-License-Identifier: GPL-2.0
/*
 * Reaction to a ring of another system (docs/doorbells.md). It runs in an interrupt, so it only
 * loads some words and starts threads. For each value of a word it starts a thread once. So a
 * system that rings again and again causes no work, unless it also changes the words.
 */
#include "internal.h"

static bool is_news(u64 *seen, u64 word)
{
	if (sg_load64(seen) == word)
		return false;
	sg_store64(seen, word);
	return true;
}

static unsigned int find_due(struct sg_vol *vol)
{
	struct sg_doorbells *d = &vol->doorbells;
	unsigned int due = 0;

	if (is_news(&d->epoch, sg_get(vol, SG_HOT(epoch))))
		due |= SG_DUE_ACKNOWLEDGE;
	if (is_news(&d->freeze, sg_get(vol, SG_HOT(freeze))))
		due |= SG_DUE_FREEZE;
	if (is_news(&d->grow, sg_get(vol, SG_HOT(grow))))
		due |= SG_DUE_WATCH;
	return due;
}

void sg_doorbell_rung(struct sg_vol *vol)
{
	unsigned int due;

	sg_add64(&vol->doorbells.rings, 1);
	if (vol->sems)
		sg_sem_rung(vol);
	if (vol->slot < 0 || sg_has_stopped(vol) || !vol->due)
		return;
	due = find_due(vol);
	if (due)
		vol->due(vol, due);
}
