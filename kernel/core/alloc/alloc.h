/* SPDX-License-Identifier: GPL-2.0 */
/* Free pages. */
#ifndef SG_ALLOC_H
#define SG_ALLOC_H

#include "journal/tx.h"

enum sg_use { SG_USE_DATA, SG_USE_META };

/*
 * Takes a run of up to @want pages (at least one) in one chunk, as close behind @goal (volume
 * offset, or 0) as possible. -ENOSPC: there is none; sets tx->err too. Contents are stale.
 */
int sg_take_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
/* The same, but -ENOSPC does not set tx->err: the caller can do without. */
int sg_try_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
int sg_take_page(struct sg_tx *tx, enum sg_use use, u64 *off);
/* A whole aligned chunk, or -ENOSPC (tx->err is not set: the caller falls back to runs). */
int sg_take_chunk(struct sg_tx *tx, u64 goal, u64 *off);
/*
 * Gives pages of one chunk back to the bitmap: for reclaim, and for pages that the same transaction
 * has taken. Waits for no lock. False: nothing was done. Either another transaction holds the chunk
 * (tx->busy set, tx->err untouched), or this one has no place for another lock: the caller commits
 * and tries again. Or there is damage (tx->err set).
 */
bool sg_give_run(struct sg_tx *tx, u64 off, u64 pages);
/*
 * The same for a part of a table or index. With tx->pass_over, pages of a chunk that cannot be
 * locked become a deferred free of their own, if the ledger has room to spare.
 */
bool sg_give_or_defer(struct sg_tx *tx, u64 off, u64 pages);
void sg_chunk_release(struct sg_tx *tx, u64 chunk_lock);	/* stores the hints, then unlocks */
u64 sg_free_pages(const struct sg_vol *vol);
u64 sg_used_inodes(const struct sg_vol *vol);
void sg_space_rebuild_hints(struct sg_vol *vol);	/* all hints; needs exclusive access */
void sg_space_found(struct sg_vol *vol, u64 from);	/* hints of the chunks from @from on */
/*
 * Hints may be missing: they are not flushed, and a dead system has not stored its own. They are
 * completed for some chunks at a time; sg_space_mend_hints() does one step. False: nothing is left
 * to do.
 */
void sg_space_doubt_hints(struct sg_vol *vol);
bool sg_space_mend_hints(struct sg_vol *vol);

#endif
