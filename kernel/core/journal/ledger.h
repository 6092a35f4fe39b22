/* SPDX-License-Identifier: GPL-2.0 */
/* Deferred frees: the ledger, and lists of inodes (D7). */
#ifndef SG_LEDGER_H
#define SG_LEDGER_H

#include "journal/tx.h"

#define SG_LEDGER_PAGES	256	/* of a slot's chain, at most */

int sg_ledger_open(struct sg_vol *vol);	/* our slot's; pays nothing yet */
void sg_ledger_close(struct sg_vol *vol);
/* For commit and abort: what a transaction did to the ledger becomes so, or never was. */
void sg_ledger_commit(struct sg_tx *tx);
void sg_ledger_abort(struct sg_tx *tx);
unsigned int sg_ledger_room(const struct sg_vol *vol);	/* debts that can still be taken on */
/* Records a debt in the transaction; sets tx->err = -ENOSPC when the ledger cannot hold it. */
void sg_owe(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count);
void sg_owe_run(struct sg_tx *tx, u64 off, u64 pages);	/* a debt per chunk that it touches */
/*
 * The debt of an inode: no links, or SG_FL_CUTTING. It always succeeds: an inode for which the
 * ledger has no room goes on a list (deferred_list.c). Owing twice is once. The second ends it,
 * unless the inode, as the transaction sees it, still has one of the two reasons; what is on a list
 * stays there.
 */
void sg_owe_inode(struct sg_tx *tx, const struct sg_iref *ref);
/* An inode with these words is owed: it has no links, or is being cut. */
static inline bool sg_has_reason(u64 mode, u64 genflags)
{
	return mode && (!(u32)(mode >> 32) || (u32)(genflags >> 32) & SG_FL_CUTTING);
}
void sg_disown_inode(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * The debt of an inode that we have just made, and use: it is not settled, nor is it given up for
 * want of an opener's bit, until sg_evict(). A link ends it, too.
 */
void sg_owe_kept(struct sg_tx *tx, const struct sg_iref *ref);
bool sg_ledger_keeps(const struct sg_vol *vol, const struct sg_iref *ref);
void sg_ledger_let_go(struct sg_vol *vol, const struct sg_iref *ref);
bool sg_ledger_owes(const struct sg_vol *vol, const struct sg_iref *ref);	/* we do */
bool sg_ledger_is_tight(const struct sg_vol *vol);	/* pay before owing more */
bool sg_ledger_waits(const struct sg_vol *vol);	/* there are debts that others hold up */
u64 sg_ledger_payable(const struct sg_vol *vol);	/* debts of pages */
bool sg_ledger_paying(const struct sg_vol *vol);	/* a thread of ours pays some just now */
bool sg_ledger_is_stuck(const struct sg_vol *vol);	/* others keep us from paying any */

/* --- inodes without a name that this system has made (unnamed.c) --------------------------- */

int sg_nameless_open(struct sg_vol *vol);
void sg_nameless_close(struct sg_vol *vol);
void sg_nameless_keep(struct sg_tx *tx, const struct sg_iref *ref);	/* abort drops it again */
bool sg_nameless_kept(const struct sg_vol *vol, const struct sg_iref *ref);
/* @which, or, if that is NULL, the one of @ref. */
void sg_nameless_drop(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_kept *which);

/* --- lists of deferred inodes (deferred_list.c) -------------------------------------------- */

static inline u64 sg_deferred_head(const struct sg_vol *vol, unsigned int slot, unsigned int area)
{
	return sg_area_off(vol, slot, area) + offsetof(struct sg_area, owed_ino);
}

static inline u64 sg_deferred_link(const struct sg_iref *ref)
{
	return SG_IOFF(ref, owed_next);
}

/* Is on some list, whosever it is: then it is looked after there. The inode is locked. */
static inline bool sg_is_listed(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_get(vol, ref->off + offsetof(struct sg_inode, owed_next));
}
/* Puts it on a list of ours, unless it is on some list. Needs no room. The inode is locked. */
void sg_owed_add(struct sg_tx *tx, const struct sg_iref *ref);
bool sg_owed_empty(const struct sg_vol *vol, unsigned int slot);

#endif
