// SPDX-License-Identifier: GPL-2.0
/*
 * Slots: entering and leaving the mount table, and what a dead system left (D6, D8).
 *
 * Recovery of a slot: LIVE -> RECOVERING by compare-and-swap (one recoverer), replay of its areas,
 * then FREE: from that store on its incarnation is not live, so that all its locks can be taken.
 * Its debts stay in its ledger until they are settled into ours. A crash in between leaves a slot
 * that is not free, or a ledger that is not empty: the next one to join begins again.
 */
#include "internal.h"

#define WATCH_STEP_MS	10

static u64 slot_field(const struct sg_vol *vol, unsigned int slot, u64 field)
{
	return sg_slot_off(vol, slot) + field;
}

static u64 *state_word(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, slot_field(vol, slot, offsetof(struct sg_slot, state)));
}

int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out)
{
	if (slot >= SG_SLOTS)
		return -EINVAL;
	memcpy(out, sg_at(vol, sg_slot_off(vol, slot)), sizeof(*out));
	out->name[sizeof(out->name) - 1] = 0;
	return 0;
}

static bool slot_free(const struct sg_vol *vol, unsigned int slot)
{
	return SG_SLOT_STATE(sg_load64_acquire(state_word(vol, slot))) == SG_SLOT_FREE;
}

static bool ledger_empty(const struct sg_vol *vol, unsigned int slot)
{
	const u64 *word = sg_at(vol, sg_ledger_off(vol, slot));
	unsigned int i;

	for (i = 0; i < SG_LEDGER_WORDS; i++)
		if (sg_load64(&word[i]) && i)
			return false;
	return !sg_load64(&word[0]);
}

bool sg_needs_recovery(const struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (!slot_free(vol, i))
			return true;
	return false;
}

/* --- dead or alive -------------------------------------------------------------------------- */

/* All zeroes or all ones is what firmware says of a machine that nobody gave a number. */
static bool machine_known(const u8 machine[16])
{
	unsigned int i;

	for (i = 1; i < 16; i++)
		if (machine[i] != machine[0])
			return true;
	return machine[0] != 0 && machine[0] != 0xff;
}

/* The same machine, booted since, cannot be what the slot speaks of. */
static bool surely_dead(const struct sg_slot *slot, const struct sg_identity *id)
{
	return machine_known(id->machine) && !memcmp(slot->machine, id->machine, 16) &&
	       memcmp(slot->boot, id->boot, 16);
}

static u64 beat_of(const struct sg_vol *vol, unsigned int slot)
{
	return sg_get(vol, slot_field(vol, slot, offsetof(struct sg_slot, heartbeat)));
}

/* Slots that may be alive: taken, in a state that there is, and not of this machine's last boot. */
static u64 suspects(const struct sg_vol *vol, const struct sg_identity *id, u64 beat[SG_SLOTS])
{
	struct sg_slot slot;
	unsigned int i;
	u64 bits = 0;

	for (i = 0; i < SG_SLOTS; i++) {
		sg_slot_read(vol, i, &slot);
		beat[i] = beat_of(vol, i);
		if (SG_SLOT_STATE(slot.state) != SG_SLOT_FREE &&
		    SG_SLOT_STATE(slot.state) <= SG_SLOT_RECOVERING && !surely_dead(&slot, id))
			bits |= 1ULL << i;
	}
	return bits;
}

/* The first of the suspects whose heart has beaten since, or -1. */
static int first_beating(const struct sg_vol *vol, u64 bits, const u64 beat[SG_SLOTS])
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (bits >> i & 1 && beat_of(vol, i) != beat[i] && !slot_free(vol, i))
			return (int)i;
	return -1;
}

/* Whoever waits is told what for. */
static void report_watch(struct sg_vol *vol, u64 bits, unsigned int wait_ms)
{
	unsigned int first = sg_ctz64(bits), more = sg_popcount64(bits) - 1;
	char others[32] = "";
	struct sg_slot slot;

	sg_slot_read(vol, first, &slot);
	if (more)
		sg_snprintf(others, sizeof(others), " and %u more", more);
	sg_log(vol->owner, SG_INFO, "%.60s (slot %u)%s did not leave: watched for up to %u ms",
	       slot.name, first, others, wait_ms);
}

/*
 * -EBUSY with a reason when some slot lives, -EINTR when who waits is to die. All are watched at
 * once, however many there are.
 */
int sg_slots_find_live(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms)
{
	u64 beat[SG_SLOTS], bits = suspects(vol, id, beat);
	struct sg_slot slot;
	unsigned int t;
	int live = -1;

	if (bits && wait_ms)
		report_watch(vol, bits, wait_ms);
	for (t = 0; bits && live < 0 && t < wait_ms; t += WATCH_STEP_MS) {
		if (sg_interrupted()) {
			sg_snprintf(vol->why, sizeof(vol->why), "interrupted");
			return -EINTR;
		}
		sg_sleep_us(WATCH_STEP_MS * 1000);
		live = first_beating(vol, bits, beat);
	}
	if (live < 0)
		return 0;
	sg_slot_read(vol, (unsigned int)live, &slot);
	if (slot.pid)
		sg_snprintf(vol->why, sizeof(vol->why),
			    "in use by process %llu on %.60s (slot %d); wait for it to end",
			    (unsigned long long)slot.pid, slot.name, live);
	else
		sg_snprintf(vol->why, sizeof(vol->why),
			    "mounted by %.60s (slot %d); unmount it there first", slot.name, live);
	return -EBUSY;
}

/* --- recovery ------------------------------------------------------------------------------- */

static void recover_slot(struct sg_vol *vol, unsigned int slot)
{
	u64 *word = state_word(vol, slot), seen = sg_load64(word);
	u64 inc = SG_SLOT_INC(seen);
	struct sg_slot info;

	if (SG_SLOT_STATE(seen) == SG_SLOT_FREE ||
	    sg_cas64(word, seen, SG_SLOT_WORD(SG_SLOT_RECOVERING, inc)) != seen)
		return;
	sg_slot_read(vol, slot, &info);
	sg_tx_replay(vol, slot);
	sg_store64_release(word, SG_SLOT_WORD(SG_SLOT_FREE, inc));
	sg_wb(word, 8);
	sg_fence();
	sg_log(vol->owner, SG_INFO, "recovered what %.60s (slot %u) left", info.name, slot);
}

void sg_slots_recover(struct sg_vol *vol)
{
	bool dirty = sg_needs_recovery(vol);
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if ((int)i != vol->slot)
			recover_slot(vol, i);
	if (dirty)
		sg_space_rebuild_hints(vol);
}

/* --- joining -------------------------------------------------------------------------------- */

/* What has been done in the slot, then the slot; unless it has been taken from us meanwhile. */
static void set_free(struct sg_vol *vol)
{
	u64 *word = state_word(vol, (unsigned int)vol->slot);

	sg_fence();
	sg_cas64(word, vol->alive, SG_SLOT_WORD(SG_SLOT_FREE, vol->incarnation));
	sg_wb(word, 8);
	sg_fence();
}

int sg_slot_take(struct sg_vol *vol, const struct sg_identity *id)
{
	u32 inc = (u32)sg_add64(sg_at(vol, SG_HOT(incarnation)), 1) + 1;
	unsigned int i;

	/* durable before anybody bears it: twice given, it would own what the dead locked */
	sg_wb(sg_at(vol, SG_HOT(incarnation)), 8);
	sg_fence();
	for (i = 0; i < SG_SLOTS; i++) {
		struct sg_slot *slot = sg_at(vol, sg_slot_off(vol, i));
		u64 seen = sg_load64(&slot->state);

		if (SG_SLOT_STATE(seen) != SG_SLOT_FREE ||
		    sg_cas64(&slot->state, seen, SG_SLOT_WORD(SG_SLOT_LIVE, inc)) != seen)
			continue;
		sg_os_write(slot->machine, id->machine, 16);
		sg_os_write(slot->boot, id->boot, 16);
		sg_os_write(slot->name, id->name, sizeof(slot->name));
		sg_store64(&slot->pid, id->pid);
		sg_store64(&slot->beat_ns, id->beat_ns);
		sg_store64(&slot->joined, sg_now());
		sg_store64(&slot->epoch, sg_get(vol, SG_HOT(epoch)));
		sg_add64(&slot->heartbeat, 1);
		sg_wb(slot, sizeof(*slot));
		sg_fence();
		vol->slot = (int)i;
		vol->incarnation = inc;
		vol->state = &slot->state;
		vol->alive = SG_SLOT_WORD(SG_SLOT_LIVE, inc);
		return 0;
	}
	sg_snprintf(vol->why, sizeof(vol->why), "all %u slots are in use", SG_SLOTS);
	return -EBUSY;
}

static int settle_others(struct sg_vol *vol)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < SG_SLOTS && !err; i++)
		if ((int)i != vol->slot && !ledger_empty(vol, i))
			err = sg_ledger_settle(vol, i);
	return err;
}

int sg_slot_enter(struct sg_vol *vol)
{
	int err;

	vol->tx = sg_alloc(vol->sb.areas * sizeof(*vol->tx));
	vol->held = sg_alloc(SG_HELD * sizeof(*vol->held));
	if (!vol->tx || !vol->held)
		return -ENOMEM;
	err = sg_ledger_open(vol);
	if (!err)
		err = settle_others(vol);
	if (!err)
		err = sg_ledger_settle_inodes(vol);
	return err;
}

void sg_slot_exit(struct sg_vol *vol)
{
	sg_ledger_close(vol);
	sg_free(vol->tx);
	sg_free(vol->held);
	vol->tx = NULL;
	vol->held = NULL;
}

static void forget(struct sg_vol *vol)
{
	sg_slot_exit(vol);
	vol->slot = -1;
}

/*
 * Two that join at the same moment see nobody alive, both. Each has its slot before it looks, so
 * that one of them at least sees the other, and goes.
 */
static int only_one(struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		if ((int)i == vol->slot || slot_free(vol, i))
			continue;
		set_free(vol);
		vol->slot = -1;
		sg_snprintf(vol->why, sizeof(vol->why),
			    "another system joins at the same moment (slot %u); try again", i);
		return -EBUSY;
	}
	return 0;
}

int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force)
{
	int err = 0;

	SG_ASSERT(!vol->read_only && vol->slot < 0);
	if (!force)
		err = sg_slots_find_live(vol, id, wait_ms);
	if (err)
		return err;
	sg_slots_recover(vol);
	err = sg_slot_take(vol, id);
	if (!err)
		err = only_one(vol);
	if (err)
		return err;
	err = sg_slot_enter(vol);
	if (err) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "what a dead system owed cannot be settled: run fsck.stargatefs");
		sg_abandon(vol);
	}
	return err;
}

void sg_beat(struct sg_vol *vol)
{
	u64 *beat;

	if (vol->slot < 0)
		return;
	if (!sg_is_ours(vol)) {	/* whoever has it now must not seem to live by our beats */
		sg_taken_for_dead(vol);
		return;
	}
	beat = sg_at(vol, slot_field(vol, (unsigned int)vol->slot,
				     offsetof(struct sg_slot, heartbeat)));
	sg_store64(beat, sg_load64(beat) + 1);
}

/* --- leaving -------------------------------------------------------------------------------- */

void sg_leave(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return;
	if (!sg_may_write(vol) && vol->ledger) {
		sg_ledger_settle_inodes(vol);
		sg_reclaim(vol, ~0u);
	}
	if (!vol->shut_down)
		set_free(vol);
	forget(vol);
}

void sg_abandon(struct sg_vol *vol)
{
	if (vol->slot >= 0)
		forget(vol);
}
