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
 * struct sg_met - count of the pages that a walk through a file has found
 * @seq: of the file when counting began; @counted: how often counting has restarted.
 */
struct sg_met {
	u64 sum, seq;
	unsigned int counted;
};
/* Flushes as sg_flush() does, but returns -EINTR if the thread is being killed. */
int sg_flush_killable(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
int sg_met_more(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m);
/*
 * Counts pages to detect damage. An undamaged file maps no page twice, so a walk finds at most
 * @times as many pages as the volume has. A walk through a damaged file may not end. It may also
 * find pages again that other systems move meanwhile, so only a count in one state of the file
 * shows damage. -EBUSY: the file changes all the time.
 */
static inline int sg_met(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m,
			 u64 pages, unsigned int times)
{
	m->sum += pages;
	return m->sum <= times * (sg_bound(vol) >> SG_PAGE_SHIFT) ? 0 : sg_met_more(vol, ref, m);
}

/* Zeroes the mapped bytes of [pos, end) in place and starts their write-back. */
int sg_zero_mapped(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 end);
/*
 * Sets size and times (@now 0: keeps the times) without the journal, durable on return. The inode
 * is locked.
 */
void sg_publish(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Reports whether a write must store times, because with a coarse clock many writes have the same
 * time. @now 0: it keeps the times.
 */
static inline bool sg_times_differ(const struct sg_vol *vol, const struct sg_iref *ref, s64 now)
{
	return now && (sg_iget(vol, ref, mtime) != (u64)now ||
		       sg_iget(vol, ref, ctime) != (u64)now);
}
/*
 * Returns the end of stale bytes. Between the size and this offset, mapped pages may have any
 * bytes, from stores through a mapping, or from an incomplete write. They are zeroed before the
 * size grows over them. Mapped pages behind this offset are zero, because a write in place begins
 * there only when the size is near.
 */
static inline u64 sg_stale_end(u64 size)
{
	return (size & ~(SG_CHUNK - 1)) + SG_CHUNK;
}
/*
 * Skips mapped pages, or fills a part of a hole, with the inode locked. *n: number of pages done.
 */
int sg_allocate_some(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want, u64 *n);
/*
 * Takes up to @want contiguous pages and enters them into the hole at @page. Other systems do not
 * see these pages yet.
 */
int sg_take_fresh(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want, u64 *off,
		  u64 *got);
/*
 * Makes readers check the change counter of a file. Called before the first atomic write to the
 * file, with the inode locked.
 */
int sg_note_whole(struct sg_vol *vol, const struct sg_iref *ref);
/* Waits, within a limit, until no write to the file without its lock is in progress. */
bool sg_is_told(const struct sg_vol *vol, const struct sg_iref *ref);
/* Allocates one page, if the file's lock and space are available immediately. */
int sg_allocate_now(struct sg_vol *vol, const struct sg_iref *ref, u64 page);
/*
 * Completes a truncation that may have left pages behind the size. Called before any byte is stored
 * there.
 */
bool sg_is_cutting(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * As sg_finish_cut(), for a caller that retries. *turns counts the attempts; it is 0 at first.
 * -EUCLEAN: the cut never ends.
 */
int sg_finish_cut_again(struct sg_vol *vol, const struct sg_iref *ref, unsigned int *turns);
#define SG_RECLAIM_SOME	1024	/* number of deferred frees to reclaim before ENOSPC */

#endif
