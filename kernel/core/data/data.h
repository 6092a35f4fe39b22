/* SPDX-License-Identifier: GPL-2.0 */
/* Contents of files. */
#ifndef SG_DATA_H
#define SG_DATA_H

#include "inode/inode.h"

#define SG_TABLE_PAGES	(1ULL << 36)	/* reach of a table of full height */
#define SG_FILE_PAGES	(SG_FILE_MAX >> SG_PAGE_SHIFT)
static inline u64 sg_pages_of(u64 bytes)
{
	return (bytes + SG_PAGE - 1) >> SG_PAGE_SHIFT;
}
/**
 * struct sg_met - count of the pages that a walk through a file has met
 * @seq: of the file when counting began; @counted: how often counting has restarted.
 */
struct sg_met {
	u64 sum, seq;
	unsigned int counted;
};
/* As sg_flush(). -EINTR: the thread is being killed. */
int sg_flush_killable(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
int sg_met_more(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m);
/*
 * An undamaged file maps no page twice, so a walk meets at most @times as many pages as the volume
 * has. A damaged file can go on without end. A walk meets pages again that other systems move ahead
 * of it. So only a count within one state of the file is damage. -EBUSY: the file changes all the
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
/* Sets size and times (now 0: keep) without the journal, durable on return. Inode locked. */
void sg_publish(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Between the size and this offset, mapped pages may hold any bytes: stores through a mapping, or a
 * write that did not complete. They are zeroed before the size moves over them. Mapped pages
 * further behind are zero: a write in place begins there only when the size is near.
 */
static inline u64 sg_stale_end(u64 size)
{
	return (size & ~(SG_CHUNK - 1)) + SG_CHUNK;
}
/* Inode locked. Passes mapped pages, or fills a part of a hole. *n: number of pages done. */
int sg_allocate_some(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want, u64 *n);
/*
 * Takes up to @want contiguous pages and enters them into the hole at @page. No other system sees
 * them yet.
 */
int sg_take_fresh(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want, u64 *off,
		  u64 *got);
/* Inode locked, before the first atomic write to the file: readers look at the change counter. */
int sg_note_whole(struct sg_vol *vol, const struct sg_iref *ref);
/* No write to the file without its lock is left, as far as can be waited for. */
bool sg_is_told(const struct sg_vol *vol, const struct sg_iref *ref);
/* Allocates one page, if the file's lock and space are available at once. */
int sg_allocate_now(struct sg_vol *vol, const struct sg_iref *ref, u64 page);
/* Pages behind the size may be left by a truncation: finish it before anything is stored there. */
bool sg_is_cutting(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * sg_finish_cut() for a caller that retries: *turns counts, 0 at first. -EUCLEAN: the cut never
 * ends.
 */
int sg_finish_cut_again(struct sg_vol *vol, const struct sg_iref *ref, unsigned int *turns);
#define SG_RECLAIM_SOME	1024	/* deferred frees to reclaim before ENOSPC */

#endif
