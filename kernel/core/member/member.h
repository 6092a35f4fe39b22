/* SPDX-License-Identifier: GPL-2.0 */
/* The steps of joining, recovery, growth and freeze; fsck takes them one by one. */
#ifndef SG_MEMBER_H
#define SG_MEMBER_H

#include "deferred/deferred.h"

int sg_slot_take(struct sg_vol *vol, const struct sg_identity *id);
/* Who we are is said anew, if a joiner that was paused has stored its own words over ours. */
void sg_slot_mend(struct sg_vol *vol);
int sg_slot_take_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		       bool force);
int sg_slot_enter(struct sg_vol *vol);	/* transactions and ledger; settles what the dead owed */
void sg_slot_exit(struct sg_vol *vol);	/* their end; the slot stays ours */

/* --- fencing and recovery (fence.c, recovery.c; D6) -------------------------------------- */

struct sg_watch *sg_watch_make(void);
u64 sg_slots_of_tools(const struct sg_vol *vol);
u64 sg_slots_of_machine(const struct sg_vol *vol, const struct sg_identity *id);
void sg_fence_slots(struct sg_vol *vol, u64 bits);	/* all of them, but ours */
/*
 * Fences those of @bits whose heart stands still for @wait_ms. With @live: only if all do; else
 * -EBUSY, and who is alive. Without, guards do not count: it is our own machine that has booted.
 */
int sg_fence_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, unsigned int *live);
int sg_fence_silent_tools(struct sg_vol *vol, unsigned int wait_ms);	/* those that are silent */
void sg_end_lapse(struct sg_vol *vol, unsigned int slot);
int sg_wait_for_lapse(struct sg_vol *vol);	/* who joins, for a slot */
bool sg_recover_slot(struct sg_vol *vol, unsigned int slot);	/* true: it was us who did it */
void sg_recover_all(struct sg_vol *vol);
void sg_recover_none_yet(struct sg_vol *vol);	/* we have just got our slot */

/* --- growth (volume_grow.c) -------------------------------------------------------------- */

/*
 * For who is about to join or to replay: the volume may have grown since it was opened. With a
 * slot: it is said how far we reach, from now on. -EUCLEAN, -EBUSY: not here, not now (vol->why).
 */
int sg_size_join(struct sg_vol *vol);
/*
 * For who is joined: the volume's size as it is by now, and an answer to who wants it to grow. Any
 * lock may be held, but it may sleep if the system's memory has to be looked at.
 */
void sg_follow(struct sg_vol *vol);
/* It is said to have @size, and we use it alone so far. -EUCLEAN: more than is here (vol->why). */
int sg_size_take(struct sg_vol *vol, u64 size);
void sg_grow_settle(struct sg_vol *vol);	/* what a dead grower left */

/* --- freeze (freeze.c) ------------------------------------------------------------------- */

void sg_freeze_settle(struct sg_vol *vol);	/* what a dead one has announced */

/* --- shared semaphores (sem/) ------------------------------------------------------------ */

struct sg_sems *sg_sems_make(void);
void sg_sems_free(struct sg_vol *vol);
/* We have just joined: what the slot's last owner had open, and waited for, we have not. */
int sg_sem_withdraw(struct sg_vol *vol);
void sg_sem_settle(struct sg_vol *vol);	/* what could not be closed when it was to be */

/* As sg_open(), and also what is half moved to another base, for who goes on with that. */
int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);

#endif
