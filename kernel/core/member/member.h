/* SPDX-License-Identifier: GPL-2.0 */
/* Steps of joining, recovery, growth and freeze; fsck calls them one by one. */
#ifndef SG_MEMBER_H
#define SG_MEMBER_H

#include "deferred/deferred.h"

int sg_slot_take(struct sg_vol *vol, const struct sg_identity *id);
/*
 * Stores this system's identity again if a joiner that was paused has stored its own words over it.
 */
void sg_slot_mend(struct sg_vol *vol);
int sg_slot_take_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		       bool force);
/* opens transactions and ledger; settles the deferred frees of dead systems */
int sg_slot_enter(struct sg_vol *vol);
/* closes transactions and ledger; this system keeps the slot */
void sg_slot_exit(struct sg_vol *vol);

/* --- fencing and recovery (fence.c, recovery.c; D6) -------------------------------------- */

struct sg_watch *sg_watch_make(void);
u64 sg_slots_of_machine(const struct sg_vol *vol, const struct sg_identity *id);
/* acts on all of these slots, except this system's own */
void sg_fence_slots(struct sg_vol *vol, u64 bits);
/*
 * Fences the slots of @bits whose heartbeat stops for @wait_ms. With @live, it fences only if all
 * of them are silent; otherwise it returns -EBUSY, and *live is a live one. Without @live a guard's
 * word does not count as a heartbeat, since this system's own machine has booted.
 */
int sg_fence_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, unsigned int *live);
/* The same for tools, and for joiners that died while they recovered a slot in its own name. */
int sg_fence_unguarded(struct sg_vol *vol, unsigned int wait_ms);
void sg_end_lapse(struct sg_vol *vol, unsigned int slot);
int sg_wait_for_lapse(struct sg_vol *vol);	/* until a slot has lapsed */
void sg_end_lapses_of_ended(struct sg_vol *vol);	/* with exclusive access */
/* true: this system has recovered it */
bool sg_recover_slot(struct sg_vol *vol, unsigned int slot);
void sg_recover_all(struct sg_vol *vol);
void sg_recover_none_yet(struct sg_vol *vol);	/* this system has just got its slot */

/* --- growth (volume_grow.c) -------------------------------------------------------------- */

/*
 * Reads the volume's size again, for a system that is about to join or to replay: the volume may
 * have grown since it was opened. With a slot, also announces this system's bound from now on.
 * -EUCLEAN, -EBUSY, -EAGAIN: the size is not possible here, or not now (vol->why).
 */
int sg_size_join(struct sg_vol *vol);
/*
 * For a member: uses the volume's current size from now on, and answers a system that wants to make
 * the volume grow. Any lock may be held, but the call may sleep if it must check the system's
 * memory.
 */
void sg_follow(struct sg_vol *vol);
/*
 * Sets the volume's size to @size in @vol, which only one thread uses so far. -EUCLEAN: larger than
 * this system's memory. -EAGAIN: the superblock has changed in more than the size (vol->why).
 */
int sg_size_take(struct sg_vol *vol, u64 size);
/* cleans up after a system that died while it made the volume grow */
void sg_grow_settle(struct sg_vol *vol);

/* --- freeze (freeze.c) ------------------------------------------------------------------- */

void sg_freeze_settle(struct sg_vol *vol);	/* clears the announcement of a dead system */

/* --- shared semaphores (sem/) ------------------------------------------------------------ */

struct sg_sems *sg_sems_make(void);
void sg_sems_free(struct sg_vol *vol);
/*
 * Clears the slot's bits of openers and waiters, which belong to the last owner: called when this
 * system has just joined.
 */
int sg_sem_withdraw(struct sg_vol *vol);
void sg_sem_settle(struct sg_vol *vol);	/* closes objects that could not be closed in time */

/*
 * As sg_open(), but also opens a volume whose relocation is incomplete: for callers that continue
 * the relocation.
 */
int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);

#endif
