// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of a slot whose system is dead (D6): block, fence, replay, release. The locks of the
 * dead system stay taken until its journal has been replayed. All become free with the one store
 * that makes the slot free. docs/protocol.md, section 3.
 */
#include "internal.h"

/*
 * RECOVERING is held by the recoverer while it lives, and not, as a lock is, until it has been
 * recovered itself: one that swaps though it has been declared dead could close a circle of slots
 * that wait for each other. A joiner that found no slot free recovers the one that it wants to
 * have, in that slot's own name, with the incarnation that it has taken to join: a joiner that was
 * paused and fenced meanwhile must not take the word of the next one for its own.
 */
static bool recoverer_gone(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	unsigned int by = SG_SLOT_BY(state);
	u64 holder;

	if (by == slot)
		return false;	/* fenced when it is silent, as any other */
	if (by >= SG_SLOTS)
		return true;	/* a wild store */
	holder = sg_load64_acquire(sg_state_word(vol, by));
	return SG_SLOT_STATE(holder) != SG_SLOT_LIVE ||
	       (u16)SG_SLOT_INC(holder) != SG_SLOT_BY_INC(state);
}

/*
 * The word has room for half of an incarnation, which comes back after 65,536 joins. What an
 * earlier owner of our slot had begun with the same half would pass for ours, and wait for as long
 * as we live: it is the next one's to do. Called before we recover anybody.
 */
void sg_recover_none_yet(struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		u64 *word = sg_state_word(vol, i), seen = sg_load64(word);

		if (SG_SLOT_STATE(seen) != SG_SLOT_RECOVERING ||
		    SG_SLOT_BY(seen) != (unsigned int)vol->slot || (int)i == vol->slot ||
		    SG_SLOT_BY_INC(seen) != (u16)vol->incarnation)
			continue;
		sg_cas64(word, seen, SG_SLOT_WORD(SG_SLOT_DEAD, SG_SLOT_INC(seen)));
		sg_wb(word, 8);
		sg_fence();
	}
}

static bool may_recover(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	switch (SG_SLOT_STATE(state)) {
	case SG_SLOT_FREE:
	case SG_SLOT_LIVE:
		return false;
	case SG_SLOT_RECOVERING:
		return (int)slot != vol->slot && recoverer_gone(vol, slot, state);
	}
	return true;
}

/* What the dead one has stored may lie in a part that the volume has not had for long. */
static bool sees_all(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return !sg_size_join(vol);
	sg_follow(vol);
	return true;
}

bool sg_recover_slot(struct sg_vol *vol, unsigned int slot)
{
	u64 *beats = sg_at(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, heartbeat));
	u64 beat = sg_load64_acquire(beats);	/* before the look at the word: see below */
	u64 *word = sg_state_word(vol, slot), seen = sg_load64_acquire(word), ours;
	struct sg_slot info;

	if (!may_recover(vol, slot, seen) || sg_is_fenced(vol) || !sees_all(vol))
		return false;
	ours = SG_SLOT_WORD(SG_SLOT_RECOVERING, SG_SLOT_INC(seen)) |
	       (vol->slot < 0 ? SG_SLOT_BY_WORD(slot, vol->incarnation) :
		SG_SLOT_BY_WORD(vol->slot, vol->incarnation));
	/*
	 * First: who has watched the slot must not take us for as silent as the dead one is. A
	 * swap: a system that has taken the slot meanwhile counts its own beats exactly.
	 */
	if (vol->slot < 0)
		sg_cas64(beats, beat, beat + 1);
	if (sg_cas64(word, seen, ours) != seen)
		return false;
	sg_slot_read(vol, slot, &info);
	/* not if we are dead: what we have stored is the word of one who is gone */
	if (sg_tx_replay(vol, slot, ours))
		return false;
	sg_fence();
	/* not if we have been taken for dead meanwhile, and somebody does it again */
	sg_cas64(word, ours, SG_SLOT_WORD(SG_SLOT_FREE, SG_SLOT_INC(seen)));
	sg_wb(word, 8);
	sg_fence();
	sg_space_doubt_hints(vol);	/* what has been stored just now nobody has promised yet */
	sg_log(vol->owner, SG_INFO, "recovered what %.60s (slot %u) left", info.name, slot);
	return true;
}

/* Until nothing is left to recover: one recovery may give another back. */
void sg_recover_all(struct sg_vol *vol)
{
	unsigned int i, turn;
	bool any = true;

	for (turn = 0; any && turn < SG_SLOTS; turn++)
		for (i = 0, any = false; i < SG_SLOTS; i++)
			if ((int)i != vol->slot)
				any |= sg_recover_slot(vol, i);
}
