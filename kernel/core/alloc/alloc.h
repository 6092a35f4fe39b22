/* SPDX-License-Identifier: GPL-2.0 */
/* Free pages. */
#ifndef SG_ALLOC_H
#define SG_ALLOC_H

#include "journal/tx.h"

enum sg_use { SG_USE_DATA, SG_USE_META };

/*
 * Takes a run of up to @want pages (at least one) in one chunk, as close behind @goal (volume
 * offset, or 0) as possible. -ENOSPC: there is none; sets tx->err, too. The pages have old
 * contents.
 */
int sg_take_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
/* As sg_take_run(), but -ENOSPC does not set tx->err: the caller can continue without pages. */
int sg_try_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
int sg_take_page(struct sg_tx *tx, enum sg_use use, u64 *off);
/*
 * Takes a complete aligned chunk, or returns -ENOSPC (tx->err is not set: the caller then takes
 * runs).
 */
int sg_take_chunk(struct sg_tx *tx, u64 goal, u64 *off);
/*
 * Returns pages of one chunk to the bitmap: for reclaim, and for pages that the same transaction
 * has taken. Waits for no lock. False: nothing was done. Either another transaction holds the chunk
 * (tx->busy set, tx->err untouched), or this one has no place for another lock: the caller commits
 * and tries again. Or there is damage (tx->err set).
 */
bool sg_give_run(struct sg_tx *tx, u64 off, u64 pages);
/*
 * Returns pages of a part of a table or index. With tx->pass_over, pages of a chunk that cannot be
 * locked become a separate deferred free, if the ledger has enough room.
 */
bool sg_give_or_defer(struct sg_tx *tx, u64 off, u64 pages);
void sg_chunk_release(struct sg_tx *tx, u64 chunk_lock);	/* stores the hints, then unlocks */
u64 sg_free_pages(const struct sg_vol *vol);
u64 sg_used_inodes(const struct sg_vol *vol);
/* makes all hints again; needs exclusive access */
void sg_space_rebuild_hints(struct sg_vol *vol);
/* sets the hints of the chunks from @from on */
void sg_space_found(struct sg_vol *vol, u64 from);
/*
 * Handle missing hints: hints are not flushed, and a dead system may not have stored its own. Each
 * call of sg_space_mend_hints() completes the hints of some chunks. False: nothing remains to do.
 */
void sg_space_doubt_hints(struct sg_vol *vol);
bool sg_space_mend_hints(struct sg_vol *vol);

#endif
