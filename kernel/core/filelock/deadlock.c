// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlocks of POSIX locks: a request waits for an owner that waits, perhaps through other owners,
 * for the request's own owner (docs/protocol.md, section 6).
 *
 * No record names the owner for which a waiter waits. The search derives it from requests and
 * locks, chain by chain, so one step may be outdated at the next. But an owner that waits does
 * nothing else, and a request keeps its ticket. If two searches find the same requests in the same
 * order, all these requests waited between the searches, and their owners held their locks.
 */
#include "internal.h"

#define STEPS	64	/* Linux follows 10 steps */

/*
 * Finds, in one chain, the lock for which @who waits there. A ticket names one of its requests, for
 * processes with threads. @mark: identifies the request.
 */
static bool waits_in(struct sg_userlock_chain *c, const struct sg_userlock_record *who,
		     struct sg_userlock_record *by, u64 *mark)
{
	struct sg_userlock_at at = {};
	struct sg_userlock_record r;

	while (sg_userlock_next(c, &at, &r)) {
		if (!(r.head & SG_USERLOCK_WAITING) || !sg_userlock_same_owner(&r, who) ||
		    (who->ticket && (r.ticket != who->ticket || r.ino != who->ino)))
			continue;
		*mark = r.ticket * SG_USERLOCK_CHAINS + c->nr;
		return sg_userlock_held(c, &r, by);
	}
	return false;
}

/*
 * A paused system may keep chains locked. The search waits briefly for the first such chain, and
 * skips it and all others. The result is then not @sure, and the request searches again at its next
 * attempt.
 */
static bool waits_for(struct sg_vol *vol, const struct sg_userlock_record *who,
		      struct sg_userlock_record *by, u64 *mark, bool *sure)
{
	struct sg_userlock_chain c;
	unsigned int nr;
	bool found;
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		struct sg_userlock_page *page = sg_userlock_page(vol, nr, 0, &err);

		if (!page || !sg_load64(&page->waiting))
			continue;
		if (sg_userlock_enter(vol, nr, &c, *sure ? SG_USERLOCK_BRIEF : SG_USERLOCK_TRY)) {
			*sure = false;
			continue;
		}
		found = waits_in(&c, who, by, mark);
		sg_userlock_leave(&c);
		if (found)
			return true;
	}
	return false;
}

/*
 * Finds a path of requests that leads from @want back to its owner, and stores these requests in
 * @mark. Returns their number, or 0 if there is no such path.
 */
static unsigned int deadlock_follow(struct sg_vol *vol, const struct sg_userlock_record *want,
				    u64 mark[STEPS], bool *sure)
{
	struct sg_userlock_record at = *want, next;
	unsigned int n;

	for (n = 0; n < STEPS && SG_USERLOCK_KIND(at.head) == SG_USERLOCK_POSIX; n++) {
		if (!waits_for(vol, &at, &next, &mark[n], sure))
			return 0;
		at = next;
		if (sg_userlock_same_owner(&at, want))
			return n + 1;
	}
	return 0;
}

/*
 * Returns -EDEADLK for a deadlock, otherwise -EAGAIN. *sure: an owner on the path does not wait
 * now, and will search itself when it waits.
 */
static int deadlock_look(struct sg_vol *vol, const struct sg_userlock_record *want, bool *sure)
{
	u64 first[STEPS], second[STEPS];
	unsigned int n;
	bool twice;

	*sure = true;
	n = deadlock_follow(vol, want, first, sure);
	if (!n)
		return -EAGAIN;
	twice = deadlock_follow(vol, want, second, sure) == n &&
		!memcmp(first, second, n * sizeof(first[0]));
	*sure = false;
	return twice ? -EDEADLK : -EAGAIN;
}

/*
 * Searches for a deadlock. Only one thread searches at a time, and withdraws its request before the
 * next one searches. So if several requests together form a circle, only one of them fails. A
 * request searches again when another lock excludes it.
 */
int sg_userlock_circle(struct sg_vol *vol, const struct sg_iref *ref,
		       const struct sg_userlock_record *want, struct sg_userlock_wait *wait)
{
	struct sg_userlock_record ours = *want;
	struct sg_userlock_page *page;
	bool sure = false;
	u64 lock;
	int err;

	ours.ticket = wait->ticket;
	if (SG_USERLOCK_KIND(wait->by) != SG_USERLOCK_POSIX ||
	    (wait->blocker == wait->by && wait->blocker_owner == wait->by_owner))
		return -EAGAIN;
	page = sg_userlock_page(vol, 0, 0, &err);
	if (!page) {
		err = err ? err : sg_userlock_grow(vol, 0, 0);
		return err ? err : -EAGAIN;	/* the next attempt finds the deadlock */
	}
	lock = (u64)((u8 *)&page->circle - vol->base);
	err = sg_lock_brief(vol, lock);
	if (err)
		return err == -EBUSY ? -EAGAIN : err;	/* the request searches again */
	err = deadlock_look(vol, &ours, &sure);
	if (err == -EDEADLK)
		sg_userlock_give_up(vol, ref, wait);
	sg_unlock(vol, lock);
	if (sure) {
		wait->blocker = wait->by;
		wait->blocker_owner = wait->by_owner;
	}
	return err;
}
