/* SPDX-License-Identifier: GPL-2.0 */
/* Joining, watching, fencing, leaving; growth; which system uses which inodes. */
#ifndef SG_ENGINE_MEMBER_H
#define SG_ENGINE_MEMBER_H

#include "engine/volume.h"

/*
 * Enters the mount table beside all other systems, and recovers the dead ones. -EBUSY, with
 * vol->why: no slot is free, or a system needs exclusive access.
 * @wait_ms: a slot of an earlier boot of this machine, or of a VM on it, is watched for this time
 *   before it is fenced.
 * @force: fence all other systems.
 */
int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force);
/*
 * As sg_join(), for a caller that needs exclusive access. All silent slots are watched for
 * @wait_ms, then fenced. -EBUSY, with vol->why: it names a live system. Other systems cannot join
 * until this one leaves.
 */
int sg_join_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		  bool force);
/*
 * Work for which no caller waits: sends heartbeats, watches other systems, recovers dead ones,
 * acknowledges epochs. Takes no shared lock. Call it every SG_MAINTAIN_MS, or after the shorter
 * time (ms) that it returns. -EIO: this system has been fenced.
 */
int sg_maintain(struct sg_vol *vol);
#define SG_MAINTAIN_MS	50
/*
 * For this time after a fence for silence, pages that the fenced system may have mapped are not
 * reclaimed.
 */
#define SG_LAPSE_MS	10000
/*
 * The same work in two parts, for two threads. sg_acknowledge() waits until no thread of this
 * system looks at pages that other systems have freed. The heartbeat must not stop meanwhile.
 */
int sg_watch(struct sg_vol *vol);
int sg_acknowledge(struct sg_vol *vol);
/*
 * Work that may wait longer, and for locks: reclaims, takes over deferred frees of dead systems,
 * completes hints. Call it every second.
 */
void sg_settle(struct sg_vol *vol);
/* @on: the thread in sg_settle() returns soon, whatever it waits for, and no other one begins. */
void sg_settle_stop(struct sg_vol *vol, bool on);
void sg_beat(struct sg_vol *vol);	/* sends only the heartbeat */
/*
 * Fences a system: the caller is certain that it stores nothing more. -ESTALE: another incarnation.
 */
int sg_fence_slot(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* The same for a system that nothing has stopped: it may still run for a while. */
int sg_fence_lapsed(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* machine.c, for systems that see machines from outside. Is this number unique to one machine? */
bool sg_machine_known(const u8 machine[16]);
/* The slot is LIVE, has an identity, and belongs to that machine. */
bool sg_slot_of_machine(const struct sg_slot *slot, const u8 machine[16]);
/* The machine is present: its systems may be paused, but are not dead. Call it every 500 ms. */
void sg_guard(struct sg_vol *vol, const u8 machine[16]);
void sg_guard_slot(struct sg_vol *vol, unsigned int slot, const u8 machine[16]);
/*
 * Nothing of the machine stores any more: fences all its systems except this one. Returns their
 * number.
 */
unsigned int sg_fence_machine(struct sg_vol *vol, const u8 machine[16]);
/*
 * Sets the lease: from now on a system without a moving guard word is fenced after this silence; 0:
 * never. Every system loads this one word at each look, so it may change at any time, whichever
 * systems are present.
 */
void sg_set_lease(struct sg_vol *vol, u64 ms);
u64 sg_lease(const struct sg_vol *vol);
#define SG_SUSPECT_MS	2000	/* silence after which a system is suspected; no lease is shorter */
/*
 * Tries to end the current epoch, and waits up to @wait_ms until its deferred frees can be
 * reclaimed.
 */
bool sg_epoch_wait(struct sg_vol *vol, unsigned int wait_ms);
/* Reclaims all deferred frees and frees the slot. The caller has closed everything. */
void sg_leave(struct sg_vol *vol);
/*
 * Ends the use without leaving: the slot stays, as after a crash. Frees this system's own memory.
 */
void sg_abandon(struct sg_vol *vol);
/* A slot needs recovery: a read-only open refuses, or warns. */
bool sg_needs_recovery(const struct sg_vol *vol);
/* -EIO: the slot's page is bad. *out then looks free, for callers that read all slots. */
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out);
/**
 * struct sg_holding - what a slot holds, as seen by a program that only looks.
 * @open: inodes that the system has open, or that a dead owner of the slot had open.
 * @deferred: pages in its ledger, at least.
 * @held_up: pages in all ledgers, at least, that wait for this live system's acknowledgement.
 */
struct sg_holding {
	u64 open, deferred, held_up;
};
/* Reads all inodes. On a volume in use the result is approximate. */
void sg_holdings(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS]);
/**
 * struct sg_opened - an inode that systems have open, or had open when they died.
 * @slots: one bit for each of these systems. @mode: type and permissions. @links: 0: the inode has
 *   been removed.
 */
struct sg_opened {
	u64 ino, slots, size;
	u32 mode, links;
};
/* Calls @each for all of them until it returns false, as seen by a program that only looks. */
void sg_opened(const struct sg_vol *vol, bool (*each)(void *ctx, const struct sg_opened *o),
	       void *ctx);
/*
 * Makes the volume larger while all live systems use it, at most to the end of the memory that each
 * of them has behind it. @size is rounded down to SG_VOLUME_ALIGN; 0: as large as possible. All
 * live systems have @wait_ms to answer (0: SG_GROW_WAIT_MS). On an error nothing has changed, and
 * why has the reason and the largest possible size. -EINVAL: smaller than now. -ENOSPC: no room.
 * -EBUSY: another system cannot follow. -EAGAIN: another system does not answer. -EROFS, -EIO. If
 * interrupted at any point, the growth is complete or has not begun.
 */
int sg_grow(struct sg_vol *vol, u64 size, unsigned int wait_ms, char why[200]);
#define SG_GROW_WAIT_MS	5000
/*
 * True if all other systems have stored that they have memory for @size. 0, or -EBUSY, which names
 * one.
 */
int sg_grow_ask(const struct sg_vol *vol, u64 size, char why[200]);
u64 sg_grow_limit(struct sg_vol *vol);	/* the largest size that sg_grow() could make */
/* the size now, even if another system has just made the volume grow */
u64 sg_size_now(struct sg_vol *vol);

#endif
