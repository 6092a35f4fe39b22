/* SPDX-License-Identifier: GPL-2.0 */
/* Transactions (D8). */
#ifndef SG_TX_H
#define SG_TX_H

#include "lock/lock.h"

#define SG_TX_LOCKS_USUAL	17	/* one of these inodes may be new */
/* an atomic write may take each of its pages, and pages of some tables, from another chunk */
#define SG_TX_LOCKS	(SG_ATOMIC_PAGES + 12)
#define SG_TX_INODES	6
#define SG_TX_INDEX	512	/* a power of two, at least twice SG_AREA_WORDS */

struct sg_tx;
/**
 * struct sg_redo - bytes of a file that a commit stores besides its words (data/redo.c)
 * @put: writes the log of these bytes after the @n words of the record; returns the length of the
 *   log in words.
 * @apply: stores the bytes in place, when the record is valid and the change counters are odd. The
 *   commit returns its error, but still makes the change, unless this system has been fenced.
 */
struct sg_redo {
	unsigned int (*put)(struct sg_tx *tx, const struct sg_redo *redo);
	int (*apply)(struct sg_tx *tx, const struct sg_redo *redo);
};
typedef void (*sg_tx_release)(struct sg_tx *tx, u64 off);
struct sg_tx_lock {
	u64 off;
	sg_tx_release release;
};

/**
 * struct sg_tx - a transaction being built. Only fresh pages change before commit.
 * @err: first error; sticky, so that builders need not check each step. Commit returns it.
 * @index, @round: position of each word, by a hash of its offset. Entries of earlier transactions
 * have another round, so no entry has to be cleared. The index is in private memory, so stores of
 * other systems cannot mislead a search (D10).
 * @deferred: ledger entries taken by this transaction; an abort returns them.
 */
struct sg_tx {
	struct sg_vol *vol;
	u64 turn;		/* odd while the transaction is in progress: sg_ack waits for it */
	u64 area;
	struct sg_area *a;
	/* this system has the area's lock; otherwise the transaction has no effect */
	bool locked;
	bool spare;		/* in separate memory, not in sg_vol.tx; never @locked */
	int err;
	unsigned int n;
	u32 round, index[SG_TX_INDEX];
	s64 free_pages, used_inodes;	/* changes, applied to the area's counters at commit */
	unsigned int nlocks, most_locks, ninodes, ndeferred;
	struct sg_tx_lock lock[SG_TX_LOCKS];
	u64 inode[SG_TX_INODES];
	u32 deferred[SG_AREA_WORDS / 2];
	unsigned int npaid;
	u32 reclaimed[SG_AREA_WORDS / 2];	/* ledger entries cleared by this transaction */
	/* an inode kept by this transaction; an abort drops it (ledger.c) */
	struct sg_kept *kept;
	bool holds_chunk;
	u64 busy;		/* lock of a chunk that another transaction holds, or 0 */
	bool hasty;		/* true: waits for no chunk that remains locked */
	/* lock of a chunk for which this transaction waited in vain, or 0 */
	u64 room_in;
	bool pass_over;		/* sg_give_or_defer() */
	/* sg_tx_plain(); bytes outside the record must be durable before it (sg_tx_fresh()) */
	bool plain, fresh;
	/* the deferred free that it reclaims, whose epoch its parts keep; or 0 */
	u64 split;
	/*
	 * State of inode_record.c for later transactions in this area: the number of searches of
	 * other areas for free inode records, the area that had some, and @turn when another thread
	 * last searched.
	 */
	unsigned int looks, donor;
	u64 seen_turn;
	u64 fresh_ino, fresh_ino_off;	/* records that the inode file gains with this commit */
	const struct sg_redo *redo;	/* or NULL */
	unsigned int nlog;		/* words of its log */
	struct sg_counters stat;
	/* padding: another thread uses the next struct, so they share no cache line */
	u64 apart[8];
};

/*
 * Begins a transaction: takes an area, and waits if all are in use. Never returns NULL: if the
 * volume may not be changed, or the waiting thread is being killed, tx->err is already set.
 * Reclaims first if the ledger is tight.
 */
struct sg_tx *sg_tx_begin(struct sg_vol *vol);
struct sg_tx *sg_tx_begin_reclaimer(struct sg_vol *vol);	/* for reclaim itself */
struct sg_tx *sg_tx_begin_in(struct sg_vol *vol, unsigned int area);	/* in this area */
/*
 * Begins a transaction for callers that must not wait for other systems. NULL: no area is free, or
 * this system is frozen. Does not reclaim.
 */
struct sg_tx *sg_tx_try(struct sg_vol *vol);
/* Return a word as this transaction sees it, and set its new value. */
u64 sg_tx_get(struct sg_tx *tx, u64 off);
void sg_tx_set(struct sg_tx *tx, u64 off, u64 val);
/*
 * Declares that all stores of the transaction before its commit are in pages that it takes, or are
 * reported by sg_tx_fresh(). If there are none, the commit need not wait until they are durable.
 */
static inline void sg_tx_plain(struct sg_tx *tx)
{
	tx->plain = true;
}
static inline void sg_tx_fresh(struct sg_tx *tx)
{
	tx->fresh = true;
}
/*
 * Returns the number of words that may still be set, without the reserve for counters and sequence
 * numbers. It is at most twice the deferred frees that the ledger can still take, so that cuts need
 * only one loop bound.
 */
unsigned int sg_tx_room(const struct sg_tx *tx);
/*
 * Returns the number of words that a log may have (struct sg_redo), after all words of the change
 * are set.
 */
unsigned int sg_tx_log_room(const struct sg_tx *tx);
/*
 * Declares that this inode changes; readers detect that by its seq. Its lock is held until the
 * record is invalid.
 */
void sg_tx_inode(struct sg_tx *tx, const struct sg_iref *ref);
/* Keeps the lock until commit or abort; then calls @release, or sg_unlock() if that is NULL. */
void sg_tx_keep_lock(struct sg_tx *tx, u64 off, sg_tx_release release);
/*
 * As sg_tx_keep_lock(), but first waits for the lock. -EIO, also in tx->err: this system was fenced
 * meanwhile, and the area belongs to another system.
 */
int sg_tx_wait_lock(struct sg_tx *tx, u64 off, sg_tx_release release);
/*
 * Sets the error of the transaction. A fenced system really holds no lock, and other systems may
 * change all words meanwhile. So if it finds something full, damaged, or replaced, the fence is the
 * reason.
 */
static inline void sg_tx_fail(struct sg_tx *tx, int err)
{
	if (!tx->err)
		tx->err = sg_is_ours(tx->vol) ? err : sg_declared_dead(tx->vol);
}
/* Both functions end the transaction and free the object. */
int sg_tx_commit(struct sg_tx *tx);
void sg_tx_abort(struct sg_tx *tx);
/*
 * Replays committed transactions of a slot. Trusts nothing in the records. -EIO: the replay is
 * incomplete, because this system has been fenced, or the slot's state is not @held any more. @held
 * 0: ignore the state, since this system has exclusive access.
 */
int sg_tx_replay(struct sg_vol *vol, unsigned int slot, u64 held);
/**
 * struct sg_replay - the replay of a slot by the system that holds its state word.
 */
struct sg_replay {
	struct sg_vol *vol;
	unsigned int slot;
	u64 held;
};
/*
 * Reports whether the replay may store; called before each store. A fenced system stores nothing.
 * If another system recovers the slot, all its locks may be free, and the words may now belong to
 * other systems.
 */
bool sg_may_replay(const struct sg_replay *r);
/*
 * For callers that read records without a replay: returns the number of words of a valid record.
 * *log: the number of words of the log after them. sg_tx_word_replays() reports whether a word
 * would be replayed.
 */
unsigned int sg_tx_words(const struct sg_area *a, unsigned int *log);
u32 sg_area_crc(u64 head, const struct sg_word *words, unsigned int n);
bool sg_tx_word_replays(const struct sg_vol *vol, u64 off);

/* Fields of an inode within a transaction. */
#define SG_IOFF(ref, field)	((ref)->off + offsetof(struct sg_inode, field))
#define sg_tx_iget(tx, ref, field)	sg_tx_get(tx, SG_IOFF(ref, field))
#define sg_tx_iset(tx, ref, field, v)	sg_tx_set(tx, SG_IOFF(ref, field), v)
#define sg_iget(vol, ref, field)	sg_get(vol, SG_IOFF(ref, field))

/* Reports whether the inode number of @ref still belongs to the file that @ref names. */
static inline bool sg_is_same(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !ref->generation || (!sg_is_lost(vol, ref->off) &&
	       (u32)sg_iget(vol, ref, genflags) == (u32)ref->generation);
}

#endif
