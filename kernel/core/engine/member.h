/* SPDX-License-Identifier: GPL-2.0 */
/* Joining, watching, fencing, leaving; growth; which system uses which inodes. */
#ifndef SG_ENGINE_MEMBER_H
#define SG_ENGINE_MEMBER_H

#include "engine/volume.h"

/*
 * Takes a slot in the mount table, next to those of other systems, and recovers dead systems.
 * -EBUSY, with vol->why: no slot is free, or a system needs exclusive access.
 * @wait_ms: the call watches a slot of an earlier boot of this machine, or of a VM on it, for this
 * time before it fences the slot. @force: fence all other systems.
 */
int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force);
/*
 * As sg_join(), for a caller that needs exclusive access. The call watches all silent slots for
 * @wait_ms, then fences them. -EBUSY: vol->why names a live system. Other systems cannot join until
 * this one leaves.
 */
int sg_join_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		  bool force);
/*
 * Does work for which no caller waits: sends heartbeats, watches other systems, recovers dead
 * systems, acknowledges epochs. It takes no shared lock. Call it every SG_MAINTAIN_MS, or after the
 * returned time (ms), which may be shorter. -EIO: this system has been fenced.
 */
int sg_maintain(struct sg_vol *vol);
#define SG_MAINTAIN_MS	50
/*
 * The lapse: for this time after a fence for silence, pages that the fenced system may have mapped
 * are not reclaimed.
 */
#define SG_LAPSE_MS	10000
/*
 * The work of sg_maintain() in two parts, for two threads. sg_acknowledge() waits until no thread
 * of this system reads pages that other systems have freed. The heartbeat must continue meanwhile.
 */
int sg_watch(struct sg_vol *vol);
int sg_acknowledge(struct sg_vol *vol);
/*
 * Does work that may wait longer, and for locks: reclaims, takes over deferred frees of dead
 * systems, completes hints. Call it every second.
 */
void sg_settle(struct sg_vol *vol);
/*
 * @on: makes the thread in sg_settle() return soon, whatever it waits for; no further thread
 * begins. Not @on: ends this.
 */
void sg_settle_stop(struct sg_vol *vol, bool on);
void sg_beat(struct sg_vol *vol);	/* sends only the heartbeat */
/*
 * Fences a system. The caller is certain that this system stores nothing more. -ESTALE: another
 * incarnation has the slot.
 */
int sg_fence_slot(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* As sg_fence(), for a silent system that may still run for a while. */
int sg_fence_lapsed(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/*
 * Ends the lapse of a fenced incarnation. The caller is certain that the incarnation stores nothing
 * more, and has opened all files that it keeps open for the users of that system. Includes a full
 * fence.
 */
void sg_end_lapse_of(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/*
 * machine.c, for systems that see machines from outside. Reports whether this number is unique to
 * one machine.
 */
bool sg_machine_known(const u8 machine[16]);
/* Reports whether the slot is LIVE, has an identity, and belongs to that machine. */
bool sg_slot_of_machine(const struct sg_slot *slot, const u8 machine[16]);
/*
 * Records that the machine still exists: increments the guard word in the slot of each of its
 * systems. The other systems then take one of these without a heartbeat for paused, and not for
 * dead. Call it every 500 ms.
 */
void sg_guard(struct sg_vol *vol, const u8 machine[16]);
void sg_guard_slot(struct sg_vol *vol, unsigned int slot, const u8 machine[16]);
/*
 * Fences all systems of the machine except this one, and returns their number. The caller is
 * certain that none of them stores any more.
 */
unsigned int sg_fence_machine(struct sg_vol *vol, const u8 machine[16]);
/*
 * Sets the lease, the time of silence after which the others fence a system whose guard word does
 * not move; 0: never. Every system loads the lease again each time it watches the others, so the
 * lease may change at any time.
 */
void sg_set_lease(struct sg_vol *vol, u64 ms);
u64 sg_lease(const struct sg_vol *vol);
#define SG_SUSPECT_MS	2000	/* silence after which a system is suspected; no lease is shorter */
/*
 * Tries to end the current epoch, and waits up to @wait_ms until the epoch's deferred frees can be
 * reclaimed.
 */
bool sg_epoch_wait(struct sg_vol *vol, unsigned int wait_ms);
/*
 * Reclaims all deferred frees and frees the slot. The caller must have closed all inodes and
 * objects.
 */
void sg_leave(struct sg_vol *vol);
/*
 * Ends the use of the volume without freeing the slot, as after a crash. Frees this system's own
 * memory.
 */
void sg_abandon(struct sg_vol *vol);
/* Reports whether a slot needs recovery: a read-only open then fails, or warns. */
bool sg_needs_recovery(const struct sg_vol *vol);
/*
 * Reads a slot. -EIO: the slot's page is bad; *out is then a free slot, for callers that read all
 * slots.
 */
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out);
/**
 * struct sg_holding - inodes and deferred frees of a slot, as a reader without a slot sees them.
 * @open: inodes that the system has open, or that a dead owner of the slot had open.
 * @deferred: minimal number of pages in its ledger.
 * @held_up: minimal number of pages in all ledgers that wait for the acknowledgement of this live
 *   system.
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
/* Calls @each for all such inodes until it returns false, for a caller without a slot. */
void sg_opened(const struct sg_vol *vol, bool (*each)(void *ctx, const struct sg_opened *o),
	       void *ctx);
/*
 * Makes the volume larger while all live systems use it, at most to the end of the memory that each
 * of these systems has. @size is rounded down to SG_VOLUME_ALIGN; 0: as large as possible. All live
 * systems have @wait_ms to answer (0: SG_GROW_WAIT_MS). After an error nothing has changed, and
 * @why has the reason and the largest possible size. -EINVAL: the size is smaller than the current
 * one. -ENOSPC: no room. -EBUSY: another system has too little memory. -EAGAIN: another system does
 * not answer. -EROFS, -EIO. If the call is interrupted at any point, the growth is complete or has
 * not begun.
 */
int sg_grow(struct sg_vol *vol, u64 size, unsigned int wait_ms, char why[200]);
#define SG_GROW_WAIT_MS	5000
/*
 * Reports whether all other systems have stored that they have memory for @size. Returns 0 if they
 * have, and -EBUSY if not; @why then names a system that has not.
 */
int sg_grow_ask(const struct sg_vol *vol, u64 size, char why[200]);
u64 sg_grow_limit(struct sg_vol *vol);	/* returns the largest size that sg_grow() could make */
/* returns the current size, even if another system has just made the volume grow */
u64 sg_size_now(struct sg_vol *vol);

#endif
