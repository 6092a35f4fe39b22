// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells: which system can ring which, and how much this system relies on it
 * (docs/doorbells.md). The driver behind sg_vol.ring sends the interrupt.
 *
 * A word of the hot page names each system's number at an exchange, a program outside the systems
 * that connects their interrupts. Two systems ring each other if they are at the same exchange. The
 * words are hostile input: each is loaded once. A wrong word leads to a ring that is lost, or that
 * makes a system look in vain.
 */
#include "internal.h"

#define DOUBT_NS	(SG_DOORBELL_DOUBT_MS * 1000000ULL)

static u64 *doorbell_word(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, SG_HOT(doorbell) + slot * sizeof(u64));
}

/* The word is not durable: it is valid only during this life of the system. */
void sg_doorbell_announce(struct sg_vol *vol, u16 exchange, u16 id)
{
	struct sg_doorbells *d = &vol->doorbells;

	sg_store64(&d->exchange, exchange);
	if (vol->slot < 0 || sg_has_stopped(vol) || !sg_is_ours(vol))
		return;
	sg_store64_release(doorbell_word(vol, (unsigned int)vol->slot),
			   exchange ? SG_DOORBELL(exchange, id, vol->incarnation) : 0);
}

/* @state: the slot's state word. */
static bool is_connected(const struct sg_vol *vol, unsigned int slot, u64 state, u16 *id)
{
	u64 word = sg_load64(doorbell_word(vol, slot));

	*id = SG_DOORBELL_ID(word);
	return state == SG_SLOT_WORD(SG_SLOT_LIVE, SG_DOORBELL_INC(word)) &&
	       SG_DOORBELL_EXCHANGE(word) == sg_load64(&vol->doorbells.exchange);
}

bool sg_doorbell_of(const struct sg_vol *vol, unsigned int slot, u16 *id)
{
	if (!sg_load64(&vol->doorbells.exchange) || slot >= SG_SLOTS || (int)slot == vol->slot ||
	    sg_has_stopped(vol))
		return false;
	return is_connected(vol, slot, sg_load64_acquire(sg_state_word(vol, slot)), id);
}

static void ring(struct sg_vol *vol, unsigned int slot)
{
	u16 id;

	if (!sg_doorbell_of(vol, slot, &id))
		return;
	sg_count(&vol->doorbells.sent, 1);
	vol->ring(vol, id);
}

void sg_doorbell_ring(struct sg_vol *vol, unsigned int slot)
{
	if (!vol->ring || !sg_load64(&vol->doorbells.exchange))
		return;
	sg_full_fence();	/* the other system must find what this one has stored */
	ring(vol, slot);
}

void sg_doorbell_ring_all(struct sg_vol *vol)
{
	unsigned int slot;

	if (!vol->ring || !sg_load64(&vol->doorbells.exchange))
		return;
	sg_full_fence();
	for (slot = 0; slot < SG_SLOTS; slot++)
		ring(vol, slot);
}

void sg_doorbell_tell(struct sg_vol *vol, unsigned int due)
{
	if (vol->due)
		vol->due(vol, due);
	sg_doorbell_ring_all(vol);
}

bool sg_doorbell_covers(const struct sg_vol *vol)
{
	const struct sg_doorbells *d = &vol->doorbells;
	unsigned int slot;
	u64 state;
	u16 id;

	if (!sg_load64(&d->exchange) || sg_load64(&d->muted) || sg_has_stopped(vol) ||
	    (sg_load64(&d->doubt) && sg_ticks() - sg_load64(&d->doubt) < DOUBT_NS))
		return false;
	for (slot = 0; slot < SG_SLOTS; slot++) {
		state = sg_load64_acquire(sg_state_word(vol, slot));
		if ((int)slot != vol->slot && SG_SLOT_STATE(state) == SG_SLOT_LIVE &&
		    !is_connected(vol, slot, state, &id))
			return false;
	}
	return true;
}

void sg_doorbell_lost(struct sg_vol *vol)
{
	sg_count(&vol->doorbells.lost, 1);
	sg_store64(&vol->doorbells.doubt, sg_ticks() | 1);
}

/* --- the rate of one sender ------------------------------------------------------------------- */

static void refill(struct sg_ring_rate *rate, u64 now)
{
	u64 more = (now - rate->filled) / SG_RING_REFILL_NS;

	if (!rate->filled || more >= SG_RING_BURST) {
		rate->tokens = SG_RING_BURST;
		rate->filled = now;
		return;
	}
	rate->tokens = SG_MIN(rate->tokens + more, (u64)SG_RING_BURST);
	rate->filled += more * SG_RING_REFILL_NS;
}

unsigned int sg_ring_count(struct sg_ring_rate *rate, u64 now)
{
	u64 calm = now - rate->muted;

	refill(rate, now);
	if (rate->tokens) {
		rate->tokens--;
		return 0;
	}
	/* a sender that was calm for some time begins again with the shortest mute */
	if (!rate->mute_ms || calm > 2 * SG_MUTE_MS_MAX * 1000000ULL)
		rate->mute_ms = SG_MUTE_MS_MIN;
	else
		rate->mute_ms = SG_MIN(2 * rate->mute_ms, SG_MUTE_MS_MAX);
	rate->muted = now;
	return rate->mute_ms;
}
