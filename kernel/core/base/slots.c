// SPDX-License-Identifier: GPL-2.0
/*
 * The mount table: reading slots, and the system's own slot while it uses the volume
 * (docs/protocol.md, section 1).
 */
#include "internal.h"

#define NOBODY	(~0ULL)		/* no incarnation */

static u64 slot_field(const struct sg_vol *vol, unsigned int slot, u64 field)
{
	return sg_slot_off(vol, slot) + field;
}

u64 *sg_state_word(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, slot_field(vol, slot, offsetof(struct sg_slot, state)));
}

/* Makes a name printable, because a hostile name must not add lines to a log or a list (D10). */
void sg_make_legible(char *name, size_t len)
{
	size_t i;

	name[len - 1] = 0;
	for (i = 0; name[i]; i++)
		if (name[i] < ' ' || name[i] > '~')
			name[i] = '?';
}

/*
 * Reads a slot. A joiner stores its state, then its identity, then the word that makes the identity
 * valid. A reader loads in the opposite order: named and hosted first, the state last. If the state
 * equals the copied one, the identity belongs to that state's owner. If not, the copy mixes two
 * owners.
 */
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out)
{
	const struct sg_slot *shared;
	u64 named, hosted;

	if (slot >= SG_SLOTS)
		return -EINVAL;
	if (sg_is_lost(vol, sg_slot_off(vol, slot))) {
		memset(out, 0, sizeof(*out));
		return -EIO;
	}
	shared = sg_at(vol, sg_slot_off(vol, slot));
	named = sg_load64(&shared->named);
	hosted = sg_load64(&shared->hosted);
	sg_acquire_fence();
	memcpy(out, shared, sizeof(*out));
	sg_acquire_fence();
	if (sg_load64(&shared->state) != out->state)
		named = hosted = NOBODY;
	out->named = named;
	out->hosted = hosted;
	sg_make_legible(out->name, sizeof(out->name));
	return 0;
}

bool sg_owner_live(const struct sg_vol *vol, unsigned int slot, u32 inc)
{
	return slot < SG_SLOTS && sg_load64_acquire(sg_state_word(vol, slot)) ==
				  SG_SLOT_WORD(SG_SLOT_LIVE, inc);
}

u64 sg_slots_taken(const struct sg_vol *vol)
{
	unsigned int i;
	u64 bits = 0;

	for (i = 0; i < SG_SLOTS; i++)
		if (SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, i))) != SG_SLOT_FREE)
			bits |= 1ULL << i;
	return bits;
}

bool sg_needs_recovery(const struct sg_vol *vol)
{
	return sg_slots_taken(vol) != 0;
}

int sg_declared_dead(const struct sg_vol *cvol)
{
	/* changes the system's private state, not the bytes of the volume */
	struct sg_vol *vol = (struct sg_vol *)cvol;

	/* only the first thread that detects it logs it */
	if (sg_cas64(&vol->shut_down, false, true))
		return -EIO;
	sg_log(vol->owner, SG_ERR,
	       "fenced by another system: every access fails until the volume is unmounted");
	if (vol->on_death)
		vol->on_death(vol);
	return -EIO;
}

static u64 *heartbeat(struct sg_vol *vol)
{
	return sg_at(vol, slot_field(vol, (unsigned int)vol->slot,
				     offsetof(struct sg_slot, heartbeat)));
}

/*
 * Stops this system if its VM was reverted to an earlier saved state, or runs twice. The later run
 * owns the slot, its locks and its ledger, so this run must store nothing.
 */
static void set_back(struct sg_vol *vol)
{
	if (sg_cas64(&vol->shut_down, false, true))
		return;
	sg_stop_state(vol);
	sg_log(vol->owner, SG_ERR,
	       "this system was set back to an earlier state: every access fails until the volume is unmounted");
	if (vol->on_death)
		vol->on_death(vol);
}

/*
 * Sends a heartbeat, from any thread of this system. The thread first counts the heartbeat in
 * private memory, then stores it in the slot. So the slot's counter is never ahead of the private
 * count, unless another run of this system has sent heartbeats. The swap fails if another system
 * has got the slot since the load, so the count of the other system remains exact.
 */
void sg_beat(struct sg_vol *vol)
{
	u64 *beats, seen;

	if (vol->slot < 0 || sg_load64(&vol->shut_down))
		return;
	beats = heartbeat(vol);
	sg_add64(&vol->beats, 1);
	do {
		seen = sg_load64(beats);
		if (!sg_is_ours(vol)) {
			sg_declared_dead(vol);
			return;
		}
		if (seen >= sg_load64(&vol->beats)) {
			set_back(vol);
			return;
		}
	} while (sg_cas64(beats, seen, seen + 1) != seen);
}

void sg_first_beat(struct sg_vol *vol)
{
	u64 *beats = heartbeat(vol), seen;

	do {
		seen = sg_load64(beats);
		if (!sg_is_ours(vol))
			return;
	} while (sg_cas64(beats, seen, seen + 1) != seen);
	vol->beats = seen + 1;
}

bool sg_is_taken_alone(const struct sg_vol *vol)
{
	u64 word = sg_get(vol, SG_HOT(alone_lock.word));

	return word && !sg_holds_alone(vol) &&
	       sg_owner_live(vol, SG_LOCK_SLOT(word), SG_LOCK_INC(word));
}

bool sg_holds_alone(const struct sg_vol *vol)
{
	return sg_get(vol, SG_HOT(alone_lock.word)) == SG_LOCK_WORD(vol->slot, vol->incarnation);
}
