/* SPDX-License-Identifier: GPL-2.0 */
/* Transactions (D8). */
#ifndef SG_TX_H
#define SG_TX_H

#include "lock/lock.h"

#define SG_TX_LOCKS	17	/* one of them a new inode's */
#define SG_TX_INODES	6
#define SG_TX_INDEX	512	/* a power of two, twice SG_AREA_WORDS and more */

struct sg_tx;
typedef void (*sg_tx_release)(struct sg_tx *tx, u64 off);
struct sg_tx_lock {
	u64 off;
	sg_tx_release release;
};

/**
 * struct sg_tx - a transaction being built. Nothing but fresh pages changes before commit.
 * @err: first error; sticky, so that builders need not check each step. Commit returns it.
 * @index, @round: where each word is, by a hash of its offset; entries of earlier transactions have
 *   another round, so that nothing has to be cleared. In memory of our own: nobody else's store
 *   leads a search astray (D10).
 * @owed: ledger entries taken by this transaction, given back by abort.
 */
struct sg_tx {
	struct sg_vol *vol;
	u64 turn;		/* odd while under way: sg_ack waits for it */
	u64 area;
	struct sg_area *a;
	bool locked;		/* we have the area's lock; else nothing comes of it */
	bool spare;		/* in memory of its own, not one of sg_vol.tx: not @locked */
	int err;
	unsigned int n;
	u32 round, index[SG_TX_INDEX];
	s64 free_pages, used_inodes;	/* changes, applied to the area's counters at commit */
	unsigned int nlocks, ninodes, nowed;
	struct sg_tx_lock lock[SG_TX_LOCKS];
	u64 inode[SG_TX_INODES];
	u32 owed[SG_AREA_WORDS / 2];
	unsigned int npaid;
	u32 paid[SG_AREA_WORDS / 2];	/* ledger entries cleared by this transaction */
	struct sg_kept *kept;	/* noted by this transaction, taken back by abort (ledger.c) */
	bool holds_chunk;
	u64 fresh_ino, fresh_ino_off;	/* records that the inode file gains with this commit */
};

/*
 * Takes an area; waits when all are busy. Never NULL: when the volume may not be changed, or who
 * waits is to die, tx->err says so at once. Pays debts first when the ledger is tight.
 */
struct sg_tx *sg_tx_begin(struct sg_vol *vol);
struct sg_tx *sg_tx_begin_payer(struct sg_vol *vol);	/* for those who pay */
struct sg_tx *sg_tx_begin_in(struct sg_vol *vol, unsigned int area);	/* in this one */
/*
 * For callers that must not wait for other systems. NULL: no area is free, or this system stands
 * still. It pays no debts.
 */
struct sg_tx *sg_tx_try(struct sg_vol *vol);
/* The word as this transaction sees it, and its new value. */
u64 sg_tx_get(struct sg_tx *tx, u64 off);
void sg_tx_set(struct sg_tx *tx, u64 off, u64 val);
/*
 * Words that may still be set, keeping a reserve for counters and sequence numbers; no more than
 * twice the debts that the ledger can still take, so that one loop bound serves cutters.
 */
unsigned int sg_tx_room(const struct sg_tx *tx);
/* This inode changes: readers notice (seq). What guards it is held until the record is void. */
void sg_tx_inode(struct sg_tx *tx, const struct sg_iref *ref);
/* Held until commit or abort; then @release, or sg_unlock() if that is NULL. */
void sg_tx_keep_lock(struct sg_tx *tx, u64 off, sg_tx_release release);
/* Waits for it first. -EIO, in tx->err, too: declared dead meanwhile, and the area not ours. */
int sg_tx_wait_lock(struct sg_tx *tx, u64 off, bool soon, sg_tx_release release);
/*
 * Nothing stands still for one who has been declared dead, locked or not, and he gets no lock:
 * whatever he finds to be full, or damaged, or another, this is why.
 */
static inline void sg_tx_fail(struct sg_tx *tx, int err)
{
	if (!tx->err)
		tx->err = sg_is_ours(tx->vol) ? err : sg_declared_dead(tx->vol);
}
/* Both end the transaction and free the object. */
int sg_tx_commit(struct sg_tx *tx);
void sg_tx_abort(struct sg_tx *tx);
/*
 * Replays what a slot had committed. Trusts nothing in there. -EIO: not all, for we have been
 * declared dead, or the slot's state is not @held any more (0: whatever it is, we are alone).
 */
int sg_tx_replay(struct sg_vol *vol, unsigned int slot, u64 held);
/* What replay would store, for those who only look: words of a valid record, and which count. */
unsigned int sg_tx_words(const struct sg_area *a);
u32 sg_area_crc(u64 head, const struct sg_word *words, unsigned int n);
bool sg_tx_word_replays(const struct sg_vol *vol, u64 off);

/* Fields of an inode within a transaction. */
#define SG_IOFF(ref, field)	((ref)->off + offsetof(struct sg_inode, field))
#define sg_tx_iget(tx, ref, field)	sg_tx_get(tx, SG_IOFF(ref, field))
#define sg_tx_iset(tx, ref, field, v)	sg_tx_set(tx, SG_IOFF(ref, field), v)
#define sg_iget(vol, ref, field)	sg_get(vol, SG_IOFF(ref, field))

/* The file that @ref means has its number still. */
static inline bool sg_is_same(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !ref->generation || (!sg_is_lost(vol, ref->off) &&
	       (u32)sg_iget(vol, ref, genflags) == (u32)ref->generation);
}

#endif
