/* SPDX-License-Identifier: GPL-2.0 */
/* Locks of users. */
#ifndef SG_FILELOCK_H
#define SG_FILELOCK_H

#include "data/data.h"

#define SG_USERLOCK_SPARES	3	/* records that one change may need: two locks, a request */

/**
 * struct sg_userlock_chain - a chain of the lock file, locked
 * @first: its first page
 * @nr: which; @pages: that it has
 * @spare: unused records, as many as were found
 */
struct sg_userlock_chain {
	struct sg_vol *vol;
	struct sg_userlock_page *first;
	unsigned int nr, pages, spares;
	struct sg_userlock_record *spare[SG_USERLOCK_SPARES];
};
struct sg_userlock_at {			/* where a search through a chain is; zeroes at first */
	struct sg_userlock_page *in;
	unsigned int page, i;
};

/* The page @k of a chain; NULL with *err 0: there is none. */
struct sg_userlock_page *sg_userlock_page(struct sg_vol *vol, unsigned int nr, unsigned int k,
					  int *err);
int sg_userlock_grow(struct sg_vol *vol, unsigned int nr, unsigned int k);
/*
 * How to wait for a chain's lock. SURE: to give something back, which a process that is killed must
 * do all the same. BRIEF: -EBUSY instead of waiting for long.
 */
enum sg_userlock_patience { SG_USERLOCK_PATIENT, SG_USERLOCK_SURE, SG_USERLOCK_BRIEF };
/* -ENOENT: there is no such chain yet. After 0, what the dead have left in it is gone. */
int sg_userlock_enter(struct sg_vol *vol, unsigned int nr, struct sg_userlock_chain *c,
		      enum sg_userlock_patience patience);
void sg_userlock_leave(struct sg_userlock_chain *c);
/* The next record in use, and a copy of it; NULL at the end. */
struct sg_userlock_record *sg_userlock_next(const struct sg_userlock_chain *c,
					    struct sg_userlock_at *at,
					    struct sg_userlock_record *copy);
/* Somebody else holds what @want cannot be had beside: who. */
bool sg_userlock_held(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
		      struct sg_userlock_record *by);
/* One of the same kind, by the same owner. */
static inline bool sg_userlock_same_owner(const struct sg_userlock_record *a,
					  const struct sg_userlock_record *b)
{
	return a->owner == b->owner && !((a->head ^ b->head) >> 8) &&
	       SG_USERLOCK_KIND(a->head) == SG_USERLOCK_KIND(b->head);
}
/*
 * @want waits for the lock that @wait names: -EDEADLK when that lock's owner waits, over others
 * maybe, for the owner of @want. Then the request has been given up. No chain is locked.
 */
int sg_userlock_circle(struct sg_vol *vol, const struct sg_iref *ref,
		       const struct sg_userlock_record *want, struct sg_userlock_wait *wait);

#endif
