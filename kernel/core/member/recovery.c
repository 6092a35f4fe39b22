// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of a dead system's slot (D6): block, fence, replay, release. The dead system's locks
 * stay taken until its journal has been replayed. The one store that makes the slot free releases
 * all of them. docs/protocol.md, section 3.
 */
#include "internal.h"

/*
 * RECOVERING counts while the recoverer is live, and no longer. A lock, in contrast, counts until
 * its holder has been recovered. If RECOVERING also counted, a recoverer that swaps after it was
 * fenced could close a circle of slots that wait for each other.
 *
 * A joiner that found no free slot recovers the slot that it wants, in that slot's own name, with
 * the incarnation that it has taken. So a joiner that was paused and fenced meanwhile does not take
 * the next joiner's word for its own.
 */
static bool recoverer_gone(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	unsigned int by = SG_SLOT_BY(state);
	u64 holder;

	if (by == slot)
		/* such a joiner is fenced when it is silent, like any other system */
		return false;
	if (by >= SG_SLOTS)
		return true;	/* a wild store */
	holder = sg_load64_acquire(sg_state_word(vol, by));
	return SG_SLOT_STATE(holder) != SG_SLOT_LIVE ||
	       (u16)SG_SLOT_INC(holder) != SG_SLOT_BY_INC(state);
}

/*
 * Sets slots back to DEAD whose recovery an earlier owner of this slot had begun. The word has room
 * for only half of an incarnation, which is repeated after 65,536 joins. If that owner had the same
 * half, its recovery would look like one of this system, and would never end while this system is
 * live. So this is done before this system recovers any slot.
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

/*
 * Reads the volume's size again, because stores of the dead system may lie in a part that growth
 * has added recently. A joiner may just have recovered the system that made it grow, so the volume
 * may be larger than the memory of this system.
 */
static bool sees_all(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return !sg_size_join(vol);
	if (!vol->tx && sg_size_take(vol, sg_get(vol, SG_HOT(size))))
		return false;
	sg_follow(vol);
	return true;
}

bool sg_recover_slot(struct sg_vol *vol, unsigned int slot)
{
	u64 *beats = sg_at(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, heartbeat));
	/* loaded before the state word is checked: see below */
	u64 beat = sg_load64_acquire(beats);
	u64 *word = sg_state_word(vol, slot), seen = sg_load64_acquire(word), ours;
	struct sg_slot info;

	if (!may_recover(vol, slot, seen) || sg_is_fenced(vol) || !sees_all(vol))
		return false;
	ours = SG_SLOT_WORD(SG_SLOT_RECOVERING, SG_SLOT_INC(seen)) |
	       (vol->slot < 0 ? SG_SLOT_BY_WORD(slot, vol->incarnation) :
		SG_SLOT_BY_WORD(vol->slot, vol->incarnation));
	/*
	 * Sends a heartbeat first, because systems that have watched the slot must not regard this
	 * one as silent, too. It is a swap, so that the heartbeats of a system that has taken the
	 * slot meanwhile are not lost.
	 */
	if (vol->slot < 0)
		sg_cas64(beats, beat, beat + 1);
	if (sg_cas64(word, seen, ours) != seen)
		return false;
	/*
	 * A system with exclusive access checks the records before they are replayed (fsck). Either
	 * it sees this word, or a joiner without a slot sees its lock here.
	 */
	if (vol->slot < 0 && sg_is_taken_alone(vol)) {
		sg_cas64(word, ours, seen);
		sg_wb(word, 8);
		sg_fence();
		return false;
	}
	sg_slot_read(vol, slot, &info);
	/* if this system was fenced, it is gone as a recoverer: another one replays again */
	if (sg_tx_replay(vol, slot, ours))
		return false;
	sg_fence();
	/*
	 * the swap fails if this system was fenced meanwhile, and another one recovers the slot
	 * again
	 */
	sg_cas64(word, ours, SG_SLOT_WORD(SG_SLOT_FREE, SG_SLOT_INC(seen)));
	sg_wb(word, 8);
	sg_fence();
	sg_space_doubt_hints(vol);	/* the replayed changes may lack hints */
	sg_log(vol->owner, SG_INFO, "recovered %.60s (slot %u)", info.name, slot);
	return true;
}

/* Repeats until nothing remains to recover, because one recovery may set another slot back. */
void sg_recover_all(struct sg_vol *vol)
{
	unsigned int i, turn;
	bool any = true;

	for (turn = 0; any && turn < SG_SLOTS; turn++)
		for (i = 0, any = false; i < SG_SLOTS; i++)
			if ((int)i != vol->slot)
				any |= sg_recover_slot(vol, i);
}
