/* SPDX-License-Identifier: GPL-2.0 */
/* Free pages. */
#ifndef SG_ALLOC_H
#define SG_ALLOC_H

#include "journal/tx.h"

enum sg_use { SG_USE_DATA, SG_USE_META };

/*
 * Takes a run of up to @want pages (at least one) in one chunk, as close behind @goal (volume
 * offset, or 0) as possible. -ENOSPC: no page is free; the function also sets tx->err. The pages
 * still have their old contents.
 */
int sg_take_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
/*
 * As sg_take_run(), but -ENOSPC does not set tx->err, so that the caller can continue without
 * pages.
 */
int sg_try_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
int sg_take_page(struct sg_tx *tx, enum sg_use use, u64 *off);
/*
 * Takes a complete aligned chunk, or returns -ENOSPC (tx->err is not set: the caller then takes
 * runs).
 */
int sg_take_chunk(struct sg_tx *tx, u64 goal, u64 *off);
/*
 * Returns pages of one chunk to the bitmap: for reclaim, and for pages that the same transaction
 * has taken. Waits for no lock. Returns false if it has done nothing, for one of three reasons. If
 * another transaction holds the chunk, tx->busy is set, and tx->err is not. If this transaction has
 * no place for another lock, the caller commits and tries again. After damage, tx->err is set.
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
 * Handle missing hints. A system does not flush hints, so a dead system's last hints may be
 * missing. Each call of sg_space_mend_hints() completes the hints of some chunks. False: nothing
 * remains to do.
 */
void sg_space_doubt_hints(struct sg_vol *vol);
bool sg_space_mend_hints(struct sg_vol *vol);

#endif
