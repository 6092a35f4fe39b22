// SPDX-License-Identifier: GPL-2.0
/*
 * Out of space: a system that needs pages searches its own deferred frees, and those of other
 * systems, live or dead. It waits a bounded time until these become free pages (D7;
 * docs/protocol.md, section 4).
 */
#include "internal.h"

#define SPACE_WAIT_MS	2000
#define LIST_BEGIN	64	/* records to read of another system's list of deferred inodes */

static bool is_being_cut(const struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref;

	return !sg_iref(vol, ino, &ref) && sg_iget(vol, &ref, mode) && sg_is_cutting(vol, &ref);
}

/*
 * Reports whether the inode's pages will become free although no program closes or removes
 * anything.
 */
static bool inode_will_be_free(const struct sg_vol *vol, u64 ino)
{
	return sg_is_left(vol, ino) || is_being_cut(vol, ino);
}

static bool will_be_free(const struct sg_vol *vol, u64 deferred)
{
	return deferred && (SG_LEDGER_KIND(deferred) != SG_LEDGER_INODE ||
			    inode_will_be_free(vol, SG_LEDGER_VALUE(deferred)));
}

static bool lists_will_free(const struct sg_vol *vol, unsigned int slot)
{
	unsigned int i, n;

	for (i = 0; i < vol->sb.areas; i++) {
		struct sg_deferred_walk w = sg_deferred_walk(vol, slot, i);

		for (n = 0; n < LIST_BEGIN && sg_deferred_walk_next(vol, &w); n++)
			if (inode_will_be_free(vol, w.ref.ino))
				return true;
	}
	return false;
}

/*
 * Reports whether other systems, live or dead, have deferred frees that will become free pages.
 * Reads the first page of their ledgers, and the beginnings of their lists.
 */
static bool others_defer(const struct sg_vol *vol)
{
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		u64 page = sg_ledger_off(vol, slot);

		for (i = 1; (int)slot != vol->slot && i < SG_LEDGER_WORDS; i++)
			if (will_be_free(vol, sg_get(vol, page + i * 8)))
				return true;
		if ((int)slot != vol->slot && lists_will_free(vol, slot))
			return true;
	}
	return false;
}

/*
 * Takes over the deferred frees of free slots, and frees unused deferred inodes, without waiting
 * for the next sg_settle(). The caller may hold locks, so the function waits for no lock. False: an
 * inode is locked now.
 */
static bool make_reclaimable(struct sg_vol *vol)
{
	sg_settle_free(vol, false);
	return sg_ledger_settle_left(vol);
}

/*
 * Waits for other systems. Each of them reclaims every second (sg_settle()), as far as epochs
 * allow.
 */
static void wait_for_others(struct sg_vol *vol, u64 free_pages, unsigned int wait_ms)
{
	u64 start = sg_ticks();

	while (!sg_may_write(vol) && sg_free_pages(vol) <= free_pages &&
	       !sg_ledger_reclaimable(vol) && others_defer(vol) &&
	       sg_ticks() - start < wait_ms * 1000000ULL && !sg_wait_ends(vol)) {
		sg_epoch_urge(vol);
		sg_sleep_us(1000);
		make_reclaimable(vol);
	}
}

/*
 * Ends the attempts of a thread that would try again, because other threads here wait for locks
 * that it holds.
 */
static bool ends_for_others(struct sg_vol *vol, struct sg_nospace *nospace)
{
	nospace->gives_way = sg_wait_ends(vol);
	if (nospace->gives_way && vol->room_locked)
		vol->room_locked(vol, SG_ROOM_OTHERS);
	return nospace->gives_way;
}

/*
 * Reports whether another attempt to find pages makes sense: as long as any system has deferred
 * frees. Callers try more than once, because another system may take the freed pages first.
 */
bool sg_more_space(struct sg_vol *vol, struct sg_nospace *nospace)
{
	u64 now = sg_ticks(), before = sg_free_pages(vol), passed;
	unsigned int wait_ms = vol->space_wait_ms ?: SPACE_WAIT_MS;
	bool first = !nospace->since, soon, more, again;
	int left;

	nospace->gives_way = false;
	vol->up->follow(vol);
	if (first)
		nospace->since = now;
	passed = (now - nospace->since) / 1000000;
	if (passed >= wait_ms)
		return false;
	wait_ms -= (unsigned int)passed;
	soon = !make_reclaimable(vol);
	left = sg_reclaim(vol, SG_RECLAIM_SOME);
	if (left > 0 && sg_ledger_is_stuck(vol) && sg_free_pages(vol) <= before) {
		if (sg_epoch_wait(vol, wait_ms))
			left = sg_reclaim(vol, SG_RECLAIM_SOME);
	} else if (!left && !soon) {
		wait_for_others(vol, before, wait_ms);
	} else if (left >= 0 && sg_free_pages(vol) <= before) {
		/* another thread of this system is reclaiming, or a lock is about to become free */
		sg_sleep_us(200);
	}
	more = sg_free_pages(vol) > before;
	again = left >= 0 && (first || left || soon || more || sg_ledger_reclaimable(vol) ||
			      others_defer(vol));
	return again && (more || !ends_for_others(vol, nospace));
}
