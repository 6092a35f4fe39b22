/* SPDX-License-Identifier: GPL-2.0 */
/* Deferred frees: reclaim, eviction, taking over (D7). */
#ifndef SG_DEFERRED_H
#define SG_DEFERRED_H

#include "data/data.h"
#include "dir/dir.h"

int sg_ledger_grow(struct sg_vol *vol);
/*
 * Does this slot's ledger hold no deferred free? Reads the whole chain. Damage counts as not empty,
 * so that the caller looks closer.
 */
bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot);
/* Moves the deferred frees of a recovered slot into this system's ledger. */
int sg_ledger_settle(struct sg_vol *vol, unsigned int slot);
/* Frees, or cuts to size, the deferred inodes of this system that no system has open or locked. */
int sg_ledger_settle_inodes(struct sg_vol *vol);
/*
 * Does the part of this that is possible at once, for a caller that waits for space and holds
 * locks. False: an inode is locked now.
 */
bool sg_ledger_settle_left(struct sg_vol *vol);
/* As sg_ledger_settle_inodes() and sg_ledger_settle_left(), some inodes at a time. */
int sg_deferred_settle(struct sg_vol *vol);
bool sg_deferred_settle_left(struct sg_vol *vol);
/* Moves the lists of a free slot to this system. slot_lock is held. */
int sg_deferred_take_over(struct sg_vol *vol, unsigned int slot);
/* Finishes a deferred inode: evicts it, or cuts it behind its size. */
int sg_inode_settle(struct sg_vol *vol, u64 ino);
/*
 * Tries once to free a deferred inode, since a lack of space asks for it. False: it is locked, and
 * the caller may hold a lock for which that lock's holder waits.
 */
bool sg_inode_settle_left(struct sg_vol *vol, u64 ino);
/*
 * Takes over the deferred frees of free slots; without @wait, only if no other system is doing so.
 */
int sg_settle_free(struct sg_vol *vol, bool wait);

#endif
