/* SPDX-License-Identifier: GPL-2.0 */
/* Locks of users. */
#ifndef SG_FILELOCK_H
#define SG_FILELOCK_H

#include "data/data.h"

/* number of records that one change may need: two locks, and a request */
#define SG_USERLOCK_SPARES	3

/**
 * struct sg_userlock_chain - a locked chain of the lock file
 * @first: its first page
 * @nr: its number; @pages: number of its pages
 * @spare: unused records, as many as were found
 * @waiting: one bit for each slot with a request in the chain; @gave: a lock or a request has gone,
 * so these systems are rung when the chain is unlocked
 */
struct sg_userlock_chain {
	struct sg_vol *vol;
	struct sg_userlock_page *first;
	unsigned int nr, pages, spares;
	struct sg_userlock_record *spare[SG_USERLOCK_SPARES];
	u64 waiting;
	bool gave;
};
struct sg_userlock_at {			/* position of a search through a chain; zeroes at first */
	struct sg_userlock_page *in;
	unsigned int page, i;
};

/* Returns page @k of a chain. NULL with *err 0: the page does not exist. */
struct sg_userlock_page *sg_userlock_page(struct sg_vol *vol, unsigned int nr, unsigned int k,
					  int *err);
int sg_userlock_grow(struct sg_vol *vol, unsigned int nr, unsigned int k);
/*
 * How to wait for a chain's lock. BRIEF returns -EBUSY instead of a long wait, and TRY instead of
 * any wait.
 */
enum sg_userlock_patience {
	SG_USERLOCK_PATIENT, SG_USERLOCK_BRIEF, SG_USERLOCK_QUEUE, SG_USERLOCK_TRY
};
/*
 * -ENOENT: the chain does not exist yet. After 0, records of dead systems are cleared, and this
 * system's releases that waited for the chain are made.
 */
int sg_userlock_enter(struct sg_vol *vol, unsigned int nr, struct sg_userlock_chain *c,
		      enum sg_userlock_patience patience);
void sg_userlock_leave(struct sg_userlock_chain *c);
void sg_userlock_forget(struct sg_vol *vol);	/* owned by a system that has left */
/* Returns the next record in use, and a copy of it; NULL at the end. */
struct sg_userlock_record *sg_userlock_next(const struct sg_userlock_chain *c,
					    struct sg_userlock_at *at,
					    struct sg_userlock_record *copy);
/* Reports whether another owner holds a lock that excludes @want; @by: that lock. */
bool sg_userlock_held(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
		      struct sg_userlock_record *by);
/* Reports whether two locks have the same kind and owner. */
static inline bool sg_userlock_same_owner(const struct sg_userlock_record *a,
					  const struct sg_userlock_record *b)
{
	return a->owner == b->owner && !((a->head ^ b->head) >> 8) &&
	       SG_USERLOCK_KIND(a->head) == SG_USERLOCK_KIND(b->head);
}
/*
 * @want waits for the lock that @wait names. -EDEADLK: the owner of that lock waits, perhaps
 * through other owners, for the owner of @want; the request has been withdrawn. The caller has no
 * chain locked.
 */
int sg_userlock_circle(struct sg_vol *vol, const struct sg_iref *ref,
		       const struct sg_userlock_record *want, struct sg_userlock_wait *wait);

#endif
