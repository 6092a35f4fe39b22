/* SPDX-License-Identifier: GPL-2.0 */
/* Joining, watching, fencing, leaving; growth; which system uses what. */
#ifndef SG_ENGINE_MEMBER_H
#define SG_ENGINE_MEMBER_H

#include "engine/volume.h"

/*
 * Enters the mount table, beside all who are there, and recovers those who are known to be dead.
 * -EBUSY with vol->why when no slot is free or somebody needs the volume for himself.
 * @wait_ms: how long a slot of this machine's last boot, or of one in it, is watched before it
 *	counts as dead.
 * @force: take all others for dead.
 */
int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force);
/*
 * As sg_join(), but for who needs the volume for himself: all silent slots are watched for so
 * long, and then count as dead; -EBUSY with vol->why naming one that lives. Others cannot join
 * until we leave.
 */
int sg_join_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		  bool force);
/*
 * What nobody waits for: beats, watches others, recovers the dead, acknowledges epochs. Takes no
 * shared lock. Call it every SG_TEND_MS, or after the shorter time (ms) that it returns. -EIO: we
 * have been declared dead.
 */
int sg_tend(struct sg_vol *vol);
#define SG_TEND_MS	50
/* After a fence for silence, the pages that the fenced system may have mapped are not given out. */
#define SG_LAPSE_MS	10000
/*
 * The same in two halves, for two threads: the second waits until nobody here looks at pages that
 * others have freed, and the heart must not stand still meanwhile.
 */
int sg_watch(struct sg_vol *vol);
int sg_acknowledge(struct sg_vol *vol);
/* What can wait longer, and for locks: pays, takes over what the dead owed, mends. Every second. */
void sg_settle(struct sg_vol *vol);
/* On: the thread in sg_settle() ends it soon, whatever it waits for, and no other one begins. */
void sg_settle_stop(struct sg_vol *vol, bool on);
void sg_beat(struct sg_vol *vol);	/* the heartbeat alone */
/* Declares a system dead: the caller knows that it stores nothing more. -ESTALE: not that one. */
int sg_fence_slot(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* The same for a system that nothing has stopped: it may still run for a while. */
int sg_fence_lapsed(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* machine.c: for who sees machines from outside. Is this number one's own? */
bool sg_machine_known(const u8 machine[16]);
/* A system of that machine, which lives and has said who it is. */
bool sg_slot_of_machine(const struct sg_slot *slot, const u8 machine[16]);
/* The machine is there: its systems may be paused, but are not dead. Every 500 ms. */
void sg_stand_by(struct sg_vol *vol, const u8 machine[16]);
void sg_stand_by_slot(struct sg_vol *vol, unsigned int slot, const u8 machine[16]);
/* Nothing of the machine stores any more: all its systems but ourselves are dead. How many. */
unsigned int sg_fence_machine(struct sg_vol *vol, const u8 machine[16]);
/*
 * From now on a system counts as dead when it is silent for so long and nobody guards it; 0: never.
 * One word, which everybody reads at each look: it may change at any time, whoever is there.
 */
void sg_set_lease(struct sg_vol *vol, u64 ms);
u64 sg_lease(const struct sg_vol *vol);
#define SG_SUSPECT_MS	2000	/* silence that is worth a word; no lease is shorter */
/* Tries to end the current epoch and waits up to @wait_ms for its debts to become payable. */
bool sg_epoch_wait(struct sg_vol *vol, unsigned int wait_ms);
/* Pays all debts and frees the slot. The caller has closed everything. */
void sg_leave(struct sg_vol *vol);
/* Ends the use without a clean leave (the slot stays, as after a crash); frees own memory. */
void sg_abandon(struct sg_vol *vol);
/* True when some slot needs recovery: a read-only open refuses or warns. */
bool sg_needs_recovery(const struct sg_vol *vol);
/* -EIO: bad memory. It looks free then, for those who look at all of them. */
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out);
/**
 * struct sg_holding - what is a slot's, as somebody sees it who only looks on.
 * @open: inodes that it has open, or that a dead owner of the slot had.
 * @owes: pages in its ledger, at least.
 * @held_up: pages in all ledgers, at least, that it has yet to let go of: it lives, and has not
 * acknowledged what the others wait for.
 */
struct sg_holding {
	u64 open, owes, held_up;
};
/* Looks through all inodes. Of a volume in use: about right. */
void sg_holdings(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS]);
/**
 * struct sg_opened - an inode that somebody has open, or had when it died.
 * @slots: a bit for each of theirs. @mode: type and permissions. @links: 0: it has been removed.
 */
struct sg_opened {
	u64 ino, slots, size;
	u32 mode, links;
};
/* Each of them, as somebody sees it who only looks on, until @each returns false. */
void sg_opened(const struct sg_vol *vol, bool (*each)(void *ctx, const struct sg_opened *o),
	       void *ctx);
/*
 * Makes the volume larger, while whoever lives goes on using it: up to the memory that all of them
 * have behind it. @size is rounded down to SG_VOLUME_ALIGN; 0: as large as possible. All who live
 * have @wait_ms to answer (0: SG_GROW_WAIT_MS). Done, or nothing is changed and why says why, with
 * the largest size that is possible: -EINVAL (smaller), -ENOSPC (no room), -EBUSY (one of the
 * others cannot), -EAGAIN (one does not answer), -EROFS, -EIO. Interrupted anywhere, it is done or
 * not begun.
 */
int sg_grow(struct sg_vol *vol, u64 size, unsigned int wait_ms, char why[200]);
#define SG_GROW_WAIT_MS	5000
/* Whether all others have memory for @size, as they have noted: 0, or -EBUSY with one named. */
int sg_grow_ask(const struct sg_vol *vol, u64 size, char why[200]);
u64 sg_grow_limit(struct sg_vol *vol);	/* the largest size that sg_grow() could make */
u64 sg_size_now(struct sg_vol *vol);	/* its size, whoever may just have made it grow */

#endif
