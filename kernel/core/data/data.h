/* SPDX-License-Identifier: GPL-2.0 */
/* Contents of files. */
#ifndef SG_DATA_H
#define SG_DATA_H

#include "inode/inode.h"

#define SG_TABLE_PAGES	(1ULL << 36)	/* that a table of full height reaches */
#define SG_FILE_PAGES	(SG_FILE_MAX >> SG_PAGE_SHIFT)
static inline u64 sg_pages_of(u64 bytes)
{
	return (bytes + SG_PAGE - 1) >> SG_PAGE_SHIFT;
}
/**
 * struct sg_met - pages that a walk through a file has met
 * @seq: of the file when counting began; @counted: how often it has begun anew.
 */
struct sg_met {
	u64 sum, seq;
	unsigned int counted;
};
int sg_met_more(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m);
/*
 * An honest file maps no page twice, so there is a limit to what may be met: @times as many pages
 * as the volume has. A damaged file can go on for ever. What others move ahead meanwhile is met
 * again; so only what one state of the file has too much of is damage. -EBUSY: it changes all the
 * time.
 */
static inline int sg_met(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m,
			 u64 pages, unsigned int times)
{
	m->sum += pages;
	return m->sum <= times * (sg_bound(vol) >> SG_PAGE_SHIFT) ? 0 : sg_met_more(vol, ref, m);
}

/* Zeroes the mapped bytes of [pos, end) in place and starts their write-back. */
int sg_zero_mapped(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 end);
/* Size and times (now 0: keep) without the journal, durable on return. Inode locked. */
void sg_publish(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Behind the size, up to here, mapped pages may hold anything: what was stored through a mapping or
 * by a write that did not come to its end. It is zeroed before the size moves up over it. Further
 * behind, mapped pages are zero: no write in place begins there before the size is near.
 */
static inline u64 sg_stale_end(u64 size)
{
	return (size & ~(SG_CHUNK - 1)) + SG_CHUNK;
}
/* One page, if the file's lock and space can be had at once. */
int sg_allocate_now(struct sg_vol *vol, const struct sg_iref *ref, u64 page);
/* Pages behind the size may remain of a truncation: finish it before anything is put there. */
bool sg_is_cutting(const struct sg_vol *vol, const struct sg_iref *ref);
int sg_finish_cut(struct sg_vol *vol, const struct sg_iref *ref);
/* The same for who comes back for it: *turns counts, 0 at first. -EUCLEAN: it is never over. */
int sg_finish_cut_again(struct sg_vol *vol, const struct sg_iref *ref, unsigned int *turns);
#define SG_RECLAIM_SOME	1024	/* debts to pay before giving up for want of space */

#endif
