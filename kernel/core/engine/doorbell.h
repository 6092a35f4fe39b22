/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doorbells: an interrupt from one system to another (docs/doorbells.md). A ring contains nothing
 * but the request to look at the volume. No result depends on a ring: every wait also looks without
 * one.
 */
#ifndef SG_ENGINE_DOORBELL_H
#define SG_ENGINE_DOORBELL_H

#include "engine/volume.h"

/*
 * Announces in the volume how other systems ring this one: its number @id at the exchange
 * @exchange. Exchange 0 withdraws the announcement. The system must have joined.
 */
void sg_doorbell_announce(struct sg_vol *vol, u16 exchange, u16 id);
/*
 * Reports whether this system can ring the live system in that slot, and stores its number at the
 * exchange in *id.
 */
bool sg_doorbell_of(const struct sg_vol *vol, unsigned int slot, u16 *id);
/*
 * Rings one system, or all others. The caller has stored the words for which those systems wait.
 * The call orders these stores before the ring. It does nothing without a bell between the systems.
 */
void sg_doorbell_ring(struct sg_vol *vol, unsigned int slot);
void sg_doorbell_ring_all(struct sg_vol *vol);
/* Work that may be due now: bits for sg_vol.due. */
#define SG_DUE_ACKNOWLEDGE	1u	/* sg_acknowledge() */
#define SG_DUE_FREEZE		2u	/* sg_freeze_watch() */
#define SG_DUE_WATCH		4u	/* sg_watch() */
/*
 * Called by the driver when another system has rung, also from an interrupt. Wakes the thread that
 * polls for semaphores, and calls sg_vol.due if the volume has news.
 */
void sg_doorbell_rung(struct sg_vol *vol);
/*
 * Called after a store for which all systems have work: makes the threads of this system and of the
 * others run now.
 */
void sg_doorbell_tell(struct sg_vol *vol, unsigned int due);
/*
 * Reports whether this system may expect a ring from each live system, so that frequent looks are
 * unnecessary. False if one system has no bell here, if the driver has muted one, and for some
 * seconds after a ring was lost.
 */
bool sg_doorbell_covers(const struct sg_vol *vol);
/* Called by a thread that has found another system's store without a ring: the ring was lost. */
void sg_doorbell_lost(struct sg_vol *vol);
#define SG_DOORBELL_DOUBT_MS	10000	/* sg_doorbell_covers() returns false for this time */

/**
 * struct sg_ring_rate - the rate of one sender's rings, at a receiver
 * @tokens: rings that are still allowed; @filled: time of the last refill.
 * @mute_ms: how long the sender is muted next time; @muted: when this began.
 */
struct sg_ring_rate {
	u64 tokens, filled, muted;
	unsigned int mute_ms;
};
#define SG_RING_BURST		1000u	/* rings */
#define SG_RING_REFILL_NS	200000u	/* time after which one more ring is allowed */
#define SG_MUTE_MS_MIN		100u
#define SG_MUTE_MS_MAX		6400u
/*
 * Counts a ring. Returns 0, or how many milliseconds the driver must ignore this sender. The time
 * doubles while the sender continues, so a storm costs its receiver almost nothing.
 */
unsigned int sg_ring_count(struct sg_ring_rate *rate, u64 now);

#endif
