/* SPDX-License-Identifier: GPL-2.0 */
/* Deferred frees: reclaim, eviction, taking over (D7). */
#ifndef SG_DEFERRED_H
#define SG_DEFERRED_H

#include "data/data.h"
#include "dir/dir.h"

/* As sg_reclaim(), for a transaction that begins. */
int sg_reclaim_ripe(struct sg_vol *vol, unsigned int budget);
int sg_ledger_grow(struct sg_vol *vol);
/*
 * Reports whether this slot's ledger has no deferred free; reads the complete chain. A damaged
 * chain counts as not empty, so that the caller examines it.
 */
bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot);
/* Moves the deferred frees of a recovered slot into this system's ledger. */
int sg_ledger_settle(struct sg_vol *vol, unsigned int slot);
/*
 * Frees, or cuts to size, those deferred inodes of this system that no system has open or locked.
 */
int sg_ledger_settle_inodes(struct sg_vol *vol);
/*
 * As sg_ledger_settle_inodes(), but without waiting, for a caller that waits for space and holds
 * locks. False: an inode is locked now.
 */
bool sg_ledger_settle_left(struct sg_vol *vol);
/*
 * As sg_ledger_settle_inodes() and sg_ledger_settle_left(), for the lists; settles some inodes at a
 * time.
 */
int sg_deferred_settle(struct sg_vol *vol);
bool sg_deferred_settle_left(struct sg_vol *vol);
/* Moves the lists of a free slot to this system. slot_lock is held. */
int sg_deferred_take_over(struct sg_vol *vol, unsigned int slot);
/* Settles a deferred inode, that is, evicts it, or cuts off its pages behind its size. */
int sg_inode_settle(struct sg_vol *vol, u64 ino);
/*
 * Tries once to free a deferred inode, for a caller that lacks space. Returns false if the inode is
 * locked, because the lock's holder may wait for a lock of the caller.
 */
bool sg_inode_settle_left(struct sg_vol *vol, u64 ino);
/*
 * Takes over the deferred frees of free slots; without @wait, only if no other system does so now.
 */
int sg_settle_free(struct sg_vol *vol, bool wait);

#endif
