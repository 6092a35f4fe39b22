/* SPDX-License-Identifier: GPL-2.0 */
/* Deferred frees: the ledger, and lists of inodes (D7). */
#ifndef SG_LEDGER_H
#define SG_LEDGER_H

#include "journal/tx.h"

#define SG_LEDGER_PAGES	256	/* maximum length of a slot's chain */

int sg_ledger_open(struct sg_vol *vol);	/* opens this slot's ledger; reclaims nothing yet */
void sg_ledger_close(struct sg_vol *vol);
/* Make a transaction's changes to the ledger valid at commit, and undo them at abort. */
void sg_ledger_commit(struct sg_tx *tx);
void sg_ledger_abort(struct sg_tx *tx);
/* returns how many more deferred frees it can take */
unsigned int sg_ledger_room(const struct sg_vol *vol);
/*
 * Records a deferred free in the transaction; sets tx->err = -ENOSPC if the ledger has no room for
 * it.
 */
void sg_defer_free(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count);
/* records one deferred free for each chunk that the run touches */
void sg_defer_run(struct sg_tx *tx, u64 off, u64 pages);
/*
 * sg_defer_inode() makes an inode a deferred inode, because it has no links, or has SG_FL_CUTTING.
 * It always succeeds: an inode for which the ledger has no room goes on a list (deferred_list.c). A
 * second call for the same inode has no effect. sg_disown_inode() removes the ledger's entry,
 * unless the inode, as the transaction sees it, still has one of the two reasons. An inode on a
 * list remains there.
 */
void sg_defer_inode(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * Reports whether an inode with these two words has a reason to be deferred: it is in use, and it
 * has no links or has SG_FL_CUTTING.
 */
static inline bool sg_has_reason(u64 mode, u64 genflags)
{
	return mode && (!(u32)(mode >> 32) || (u32)(genflags >> 32) & SG_FL_CUTTING);
}
void sg_disown_inode(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * Defers an inode that this system has just made, and uses. Until sg_close_inode() or a new link,
 * no thread settles or evicts it, even without an opener's bit.
 */
void sg_defer_kept(struct sg_tx *tx, const struct sg_iref *ref);
bool sg_ledger_keeps(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Ends the use of an inode from sg_defer_kept(): for sg_close_inode() and sg_link(), in the system
 * that made it.
 */
void sg_ledger_let_go(struct sg_vol *vol, const struct sg_iref *ref);
/* reports whether this system's ledger has the inode */
bool sg_ledger_deferred(const struct sg_vol *vol, const struct sg_iref *ref);
bool sg_ledger_is_full(const struct sg_vol *vol);	/* true: a transaction may need more room */
bool sg_ledger_is_tight(const struct sg_vol *vol);	/* true: reclaim before deferring more */
bool sg_ledger_waits(const struct sg_vol *vol);	/* true: deferred frees wait for other systems */
/*
 * Returns the lock of the chunk for which the last growth of a full ledger waited in vain, or 0.
 * sg_ledger_room_free() records that this lock is now free.
 */
u64 sg_ledger_room_in(const struct sg_vol *vol);
void sg_ledger_room_free(struct sg_vol *vol);
/* returns the number of deferred frees of pages */
u64 sg_ledger_reclaimable(const struct sg_vol *vol);
/* reports whether a thread of this system is reclaiming now */
bool sg_ledger_reclaiming(const struct sg_vol *vol);
/* reports whether other systems keep this one from reclaiming anything */
bool sg_ledger_is_stuck(const struct sg_vol *vol);

/* --- inodes without a name that this system has made (unnamed.c) --------------------------- */

int sg_nameless_open(struct sg_vol *vol);
void sg_nameless_close(struct sg_vol *vol);
void sg_nameless_keep(struct sg_tx *tx, const struct sg_iref *ref);	/* an abort undoes this */
bool sg_nameless_kept(const struct sg_vol *vol, const struct sg_iref *ref);
/* Removes @which; if that is NULL, the inode of @ref. */
void sg_nameless_drop(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_kept *which);

/* --- lists of deferred inodes (deferred_list.c) -------------------------------------------- */

static inline u64 sg_deferred_head(const struct sg_vol *vol, unsigned int slot, unsigned int area)
{
	return sg_area_off(vol, slot, area) + offsetof(struct sg_area, deferred_ino);
}

static inline u64 sg_deferred_link(const struct sg_iref *ref)
{
	return SG_IOFF(ref, deferred_next);
}

/*
 * Reports whether the inode is on a list of some system, which then settles it. The inode is
 * locked.
 */
static inline bool sg_is_listed(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_get(vol, ref->off + offsetof(struct sg_inode, deferred_next));
}
/*
 * Puts the inode on a list of this system, unless it is on a list already. Needs no room. The inode
 * is locked.
 */
void sg_deferred_add(struct sg_tx *tx, const struct sg_iref *ref);
bool sg_deferred_empty(const struct sg_vol *vol, unsigned int slot);

#endif
