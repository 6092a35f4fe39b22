/* SPDX-License-Identifier: GPL-2.0 */
/* What becomes of deferred frees: reclaim, eviction, taking over (D7). */
#ifndef SG_DEFERRED_H
#define SG_DEFERRED_H

#include "data/data.h"
#include "dir/dir.h"

int sg_ledger_grow(struct sg_vol *vol);
/* Does this slot's ledger hold any debt? Its chain may be long; damage is looked at closely. */
bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot);
/* Moves the debts of a recovered slot into our own books. */
int sg_ledger_settle(struct sg_vol *vol, unsigned int slot);
/* Frees, or cuts to size, the inodes that we owe; those that nobody has open, or locked. */
int sg_ledger_settle_inodes(struct sg_vol *vol);
/*
 * Of these, what can be done at once for somebody who is waiting for space, locks held. False: some
 * is locked just now.
 */
bool sg_ledger_settle_left(struct sg_vol *vol);
/* As sg_ledger_settle_inodes() and sg_ledger_settle_left(), some of them at a time. */
int sg_owed_settle(struct sg_vol *vol);
bool sg_owed_settle_left(struct sg_vol *vol);
/* The lists of a slot that is free become ours. slot_lock is held. */
int sg_owed_take_over(struct sg_vol *vol, unsigned int slot);
/* Finishes what the ledger says of an inode: evicts, or cuts behind size. */
int sg_inode_settle(struct sg_vol *vol, u64 ino);
/*
 * Tries to free what has been left: once, as it is want of space that asks for it. False: it is
 * locked, and whoever wants space may hold what its holder waits for.
 */
bool sg_inode_settle_left(struct sg_vol *vol, u64 ino);
/* Takes over the debts of slots that are free; without @wait, if nobody else is just doing so. */
int sg_settle_free(struct sg_vol *vol, bool wait);

#endif
