/* SPDX-License-Identifier: GPL-2.0 */
/* Steps of joining, recovery, growth and freeze; fsck does them one by one. */
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
void sg_slot_exit(struct sg_vol *vol);	/* closes them; this system keeps the slot */

/* --- fencing and recovery (fence.c, recovery.c; D6) -------------------------------------- */

struct sg_watch *sg_watch_make(void);
u64 sg_slots_of_tools(const struct sg_vol *vol);
u64 sg_slots_of_machine(const struct sg_vol *vol, const struct sg_identity *id);
void sg_fence_slots(struct sg_vol *vol, u64 bits);	/* all of these, except this system's own */
/*
 * Fences the slots of @bits whose heartbeat stops for @wait_ms. With @live: only if all of them are
 * silent; otherwise -EBUSY, and *live is a live one. Without it a guard's word does not count as a
 * heartbeat, since this system's own machine has booted.
 */
int sg_fence_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, unsigned int *live);
/* the silent ones of them */
int sg_fence_silent_tools(struct sg_vol *vol, unsigned int wait_ms);
void sg_end_lapse(struct sg_vol *vol, unsigned int slot);
int sg_wait_for_lapse(struct sg_vol *vol);	/* until a slot has lapsed */
/* true: this system has recovered it */
bool sg_recover_slot(struct sg_vol *vol, unsigned int slot);
void sg_recover_all(struct sg_vol *vol);
void sg_recover_none_yet(struct sg_vol *vol);	/* this system has just got its slot */

/* --- growth (volume_grow.c) -------------------------------------------------------------- */

/*
 * For a system that is about to join or to replay: the volume may have grown since it was opened.
 * With a slot: announces this system's bound from now on. -EUCLEAN, -EBUSY, -EAGAIN: not possible
 * here, or not now (vol->why).
 */
int sg_size_join(struct sg_vol *vol);
/*
 * For a member: takes the volume's present size, and answers a system that wants it to grow. Any
 * lock may be held, but it may sleep if it has to look at the system's memory.
 */
void sg_follow(struct sg_vol *vol);
/*
 * Takes @size as the volume's size. Only one thread uses @vol so far. -EUCLEAN: larger than this
 * system's memory. -EAGAIN: the superblock has changed in more than the size (vol->why).
 */
int sg_size_take(struct sg_vol *vol, u64 size);
void sg_grow_settle(struct sg_vol *vol);	/* cleans up after a dead grower */

/* --- freeze (freeze.c) ------------------------------------------------------------------- */

void sg_freeze_settle(struct sg_vol *vol);	/* withdraws the announcement of a dead system */

/* --- shared semaphores (sem/) ------------------------------------------------------------ */

struct sg_sems *sg_sems_make(void);
void sg_sems_free(struct sg_vol *vol);
/*
 * This system has just joined, so its slot's bits of openers and waiters belong to the last owner:
 * withdraws them.
 */
int sg_sem_withdraw(struct sg_vol *vol);
void sg_sem_settle(struct sg_vol *vol);	/* closes objects that could not be closed in time */

/*
 * As sg_open(), but also opens a volume half moved to another base: for callers that continue the
 * move.
 */
int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);

#endif
