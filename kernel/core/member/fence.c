// SPDX-License-Identifier: GPL-2.0
/*
 * Fencing (D6) decides which systems are dead: each system watches the heartbeats of the others
 * (docs/protocol.md, section 3).
 */
#include "internal.h"

#define WATCH_STEP_MS	10
/* time for a system with a slot to store its identity, by a few stores */
#define UNNAMED_MS	5000

/**
 * struct sg_watch - observations of the other systems, by this system's clock
 * @beat: sum of heartbeat and guard word, which changes while either does
 * @silent: how long this sum has not changed (ns), as far as this system checked; @looked: the last
 *   check
 * @inc: incarnation of the observed system
 * @lapsed: how long this system has seen the slot lapsed (ns)
 */
struct sg_watch {
	u64 beat[SG_SLOTS], silent[SG_SLOTS], lapsed[SG_SLOTS], looked;
	u32 inc[SG_SLOTS];
};

struct sg_watch *sg_watch_make(void)
{
	return sg_alloc(sizeof(struct sg_watch));
}

/* @guarded: a moving guard word counts, too: the system is live, although it may be paused. */
static u64 beat_of(const struct sg_vol *vol, unsigned int slot, bool guarded)
{
	const struct sg_slot *s = sg_at(vol, sg_slot_off(vol, slot));

	return sg_load64(&s->heartbeat) + (guarded ? sg_load64(&s->guard) : 0);
}

/* --- fencing ---------------------------------------------------------------------------------- */

/* Reports whether a joiner recovers, or recovered, the slot in the slot's own name. */
static bool recovers_itself(unsigned int slot, u64 state)
{
	return SG_SLOT_STATE(state) == SG_SLOT_RECOVERING && SG_SLOT_BY(state) == slot;
}

/* Reports whether a system sends, or sent, heartbeats in this slot: its owner, or such a joiner. */
static bool may_be_fenced(unsigned int slot, u64 state)
{
	return SG_SLOT_STATE(state) == SG_SLOT_LIVE || recovers_itself(slot, state);
}

/* -EIO: this system has stopped, or the slot is in a bad page. */
static int can_fence(const struct sg_vol *vol, unsigned int slot)
{
	return sg_has_stopped(vol) || sg_is_lost(vol, sg_slot_off(vol, slot)) ? -EIO : 0;
}

static int fence(struct sg_vol *vol, unsigned int slot, u64 seen)
{
	u64 *word = sg_state_word(vol, slot);
	int err = can_fence(vol, slot);

	if (err)
		return err;
	if (sg_cas64(word, seen, SG_SLOT_WORD(SG_SLOT_DEAD, SG_SLOT_INC(seen))) != seen)
		return -ESTALE;
	sg_wb(word, 8);
	sg_fence();
	return 0;
}

int sg_fence_slot(struct sg_vol *vol, unsigned int slot, u32 incarnation)
{
	if (slot >= SG_SLOTS)
		return -EINVAL;
	return fence(vol, slot, SG_SLOT_WORD(SG_SLOT_LIVE, incarnation));
}

/*
 * Sets the lapsed bit before the fence, so that a system that sees the slot dead also sees this bit
 * (epoch.c).
 */
static void note_lapse(struct sg_vol *vol, unsigned int slot)
{
	u64 *word = sg_at(vol, SG_HOT(lapsed));

	sg_or64(word, 1ULL << slot);
	sg_wb(word, 8);
	sg_fence();
}

/*
 * Fences a slot, after it has set the lapsed bit. If another system fences the slot first, this bit
 * is not needed; a leaving system clears it (join.c).
 */
static int fence_lapsed(struct sg_vol *vol, unsigned int slot, u64 seen)
{
	int err = can_fence(vol, slot) ?: sg_is_lost(vol, SG_HOT_OFF) ? -EIO : 0;

	if (err)
		return err;
	if (sg_load64(sg_state_word(vol, slot)) != seen)
		return -ESTALE;
	note_lapse(vol, slot);
	return fence(vol, slot, seen);
}

int sg_fence_lapsed(struct sg_vol *vol, unsigned int slot, u32 incarnation)
{
	if (slot >= SG_SLOTS)
		return -EINVAL;
	return fence_lapsed(vol, slot, SG_SLOT_WORD(SG_SLOT_LIVE, incarnation));
}

/* Reads the identity of the system in a slot with that state. Returns false if it has none. */
static bool read_named(const struct sg_vol *vol, unsigned int slot, u64 state,
		       struct sg_slot *info)
{
	return !sg_slot_read(vol, slot, info) && info->state == state &&
	       info->named == SG_SLOT_INC(state);
}

/* Reports whether that is a process of this machine, and has ended. */
static bool has_ended(const struct sg_slot *info)
{
	return info->pid && sg_os_has_ended(info->boot, info->pid);
}

/*
 * Reports whether that system may continue and store into pages of the volume. Its processes may
 * have them mapped, or it may be a tool that was stopped in a copy. A system without a name has
 * stored into no pages that it took. The same is true of a joiner that recovers a slot for itself.
 */
static bool may_continue(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	struct sg_slot info;

	return SG_SLOT_STATE(state) == SG_SLOT_LIVE && read_named(vol, slot, state, &info) &&
	       !has_ended(&info);
}

/*
 * Fences any silent owner, also a joiner that recovers the slot in its own name, and therefore has
 * no guard. @seen is the state word of the silent one: the next joiner in that slot has another
 * one. Silence does not prove that a system has stopped: it may continue later.
 */
static void fence_silent(struct sg_vol *vol, unsigned int slot, u64 seen)
{
	if (!may_be_fenced(slot, seen))
		return;
	if (may_continue(vol, slot, seen))
		fence_lapsed(vol, slot, seen);
	else
		fence(vol, slot, seen);
}

void sg_fence_slots(struct sg_vol *vol, u64 bits)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (bits >> i & 1 && (int)i != vol->slot)
			fence_silent(vol, i, sg_load64(sg_state_word(vol, i)));
}

/*
 * Returns the slots of systems that no guard watches, although a joiner may need what they hold.
 * Tools send a heartbeat every 100 ms. A joiner that recovers a slot in its own name sends one
 * before it begins.
 */
static u64 slots_without_guard(const struct sg_vol *vol)
{
	struct sg_slot slot;
	unsigned int i;
	u64 bits = 0;

	for (i = 0; i < SG_SLOTS; i++) {
		sg_slot_read(vol, i, &slot);
		if (recovers_itself(i, slot.state) ||
		    (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE &&
		     slot.named == SG_SLOT_INC(slot.state) && slot.pid))
			bits |= 1ULL << i;
	}
	return bits;
}

/* Logs the systems for which the caller waits. */
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

/* Returns the slots of @bits whose heartbeat has not moved since @beat. */
static u64 silent_still(const struct sg_vol *vol, u64 bits, bool guarded,
			const u64 beat[SG_SLOTS])
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (bits >> i & 1 && beat_of(vol, i, guarded) != beat[i])
			bits &= ~(1ULL << i);
	return bits;
}

/*
 * Watches several slots together for @wait_ms. Fences the slots whose heartbeat does not move
 * meanwhile, and whose system is the same at the end. With @live, it fences only if all are silent;
 * otherwise it returns -EBUSY, and *live is the first live one. -EINTR: the thread is being killed.
 */
static int fence_those_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, bool guarded,
			      unsigned int *live)
{
	u64 beat[SG_SLOTS], state[SG_SLOTS], silent;
	unsigned int i, t;

	for (i = 0; i < SG_SLOTS; i++) {
		state[i] = sg_load64(sg_state_word(vol, i));
		beat[i] = beat_of(vol, i, guarded);
		if (!may_be_fenced(i, state[i]) || (int)i == vol->slot)
			bits &= ~(1ULL << i);
	}
	silent = bits;
	if (bits && wait_ms)
		report_watch(vol, bits, wait_ms);
	for (t = 0; silent && t < wait_ms && !(live && silent != bits); t += WATCH_STEP_MS) {
		if (sg_interrupted()) {
			sg_snprintf(vol->why, sizeof(vol->why), "interrupted");
			return -EINTR;
		}
		sg_sleep_us(WATCH_STEP_MS * 1000);
		sg_beat(vol);
		silent = silent_still(vol, silent, guarded, beat);
	}
	if (live && silent != bits) {
		*live = sg_ctz64(bits & ~silent);
		return -EBUSY;
	}
	for (i = 0; i < SG_SLOTS; i++)
		if (silent >> i & 1)
			fence_silent(vol, i, state[i]);
	return 0;
}

/*
 * Without @live, the slots belong to this machine's earlier boots. A guard's word does not count
 * then, because the guard sees that the machine runs, but cannot distinguish its boots.
 */
int sg_fence_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, unsigned int *live)
{
	return fence_those_silent(vol, bits, wait_ms, live, live);
}

int sg_fence_unguarded(struct sg_vol *vol, unsigned int wait_ms)
{
	return fence_those_silent(vol, slots_without_guard(vol), wait_ms, true, NULL);
}

/* --- watch ------------------------------------------------------------------------------------ */

u64 sg_lease(const struct sg_vol *vol)
{
	return sg_get(vol, SG_HOT(lease_ms));
}

void sg_set_lease(struct sg_vol *vol, u64 ms)
{
	u64 *word = sg_at(vol, SG_HOT(lease_ms));

	sg_store64(word, ms);
	sg_wb(word, sizeof(*word));
	sg_fence();
}

static void report_lease(struct sg_vol *vol, unsigned int slot, u64 ms)
{
	struct sg_slot info;

	sg_slot_read(vol, slot, &info);
	sg_log(vol->owner, SG_WARN,
	       "%.60s (slot %u) has been silent for %llu ms and no host guards it: fenced",
	       info.name, slot, (unsigned long long)ms);
}

static bool is_named(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	const struct sg_slot *s = sg_at(vol, sg_slot_off(vol, slot));

	return SG_SLOT_STATE(state) == SG_SLOT_LIVE && sg_load64(&s->named) == SG_SLOT_INC(state);
}

/*
 * Returns how long a system may be silent. A system that died before it stored its identity has no
 * guard. Without this limit it would delay all epochs forever. A joiner that was recovering the
 * slot that it wanted would also block the dead system's locks.
 */
static u64 fence_patience(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	u64 lease = sg_lease(vol);

	if (!is_named(vol, slot, state))
		return lease ? SG_MIN(lease, (u64)UNNAMED_MS) : UNNAMED_MS;
	return lease;
}

/*
 * Returns the time since the last check that counts as silence. The time is limited, because if
 * this system was stopped, the complete machine was probably stopped, with the other systems on it.
 */
static u64 time_seen(u64 *looked)
{
	u64 now = sg_ticks(), passed = now - *looked;

	*looked = now;
	return SG_MIN(passed, 4ULL * SG_MAINTAIN_MS * 1000000);
}

void sg_end_lapse(struct sg_vol *vol, unsigned int slot)
{
	u64 *word = sg_at(vol, SG_HOT(lapsed));

	if (!(sg_load64(word) >> slot & 1))
		return;
	sg_and64(word, ~(1ULL << slot));
	sg_wb(word, 8);
	sg_fence();
}

void sg_end_lapse_of(struct sg_vol *vol, unsigned int slot, u32 incarnation)
{
	u64 state;

	if (slot >= SG_SLOTS || can_fence(vol, slot) || sg_is_lost(vol, SG_HOT_OFF))
		return;
	state = sg_load64_acquire(sg_state_word(vol, slot));
	if (SG_SLOT_INC(state) == incarnation && SG_SLOT_STATE(state) != SG_SLOT_LIVE)
		sg_end_lapse(vol, slot);
}

/*
 * Measures a lapse. Each live system measures it by its own clock, from the time when it first saw
 * the slot lapsed and fenced. The first system whose time is over clears the bit. No system joins
 * in that slot meanwhile.
 */
static void see_lapse(struct sg_vol *vol, unsigned int slot, u64 state, u64 passed)
{
	struct sg_watch *w = vol->watch;

	if (!(sg_get(vol, SG_HOT(lapsed)) >> slot & 1) || SG_SLOT_STATE(state) == SG_SLOT_LIVE) {
		w->lapsed[slot] = 0;
		return;
	}
	if (w->inc[slot] != SG_SLOT_INC(state)) {
		w->inc[slot] = SG_SLOT_INC(state);
		w->lapsed[slot] = 0;
	}
	w->lapsed[slot] += passed;
	if (w->lapsed[slot] < SG_LAPSE_MS * 1000000ULL)
		return;
	/*
	 * While this system was stopped, another one may have ended this lapse, and the slot's next
	 * owner may have a new lapse. So the state is loaded again after the bit.
	 */
	if (sg_load64_acquire(sg_state_word(vol, slot)) != state)
		return;
	w->lapsed[slot] = 0;
	sg_end_lapse(vol, slot);
}

/* Returns the free slots that no system may take yet. */
static u64 lapsing(const struct sg_vol *vol)
{
	return sg_get(vol, SG_HOT(lapsed)) & ~sg_slots_taken(vol);
}

/*
 * Waits for the end of a lapse: for a joiner that finds only lapsed slots, and for a repair that
 * reclaims pages that a fenced system may have mapped. There may be no live system that ends
 * lapses, so the caller measures the time itself. 0: check again. -EBUSY: no slot has lapsed.
 */
int sg_wait_for_lapse(struct sg_vol *vol)
{
	u64 state[SG_SLOTS], bits = lapsing(vol), looked = sg_ticks(), seen = 0;
	unsigned int i;

	if (!bits)
		return -EBUSY;
	sg_log(vol->owner, SG_INFO,
	       "fenced systems may still store into the volume: waiting for up to %u s",
	       SG_LAPSE_MS / 1000);
	for (i = 0; i < SG_SLOTS; i++)
		state[i] = sg_load64(sg_state_word(vol, i));
	while (seen < SG_LAPSE_MS * 1000000ULL) {
		if (sg_interrupted()) {
			sg_snprintf(vol->why, sizeof(vol->why), "interrupted");
			return -EINTR;
		}
		sg_sleep_us(WATCH_STEP_MS * 1000);
		seen += time_seen(&looked);
		if (bits & ~lapsing(vol))
			/* another system has ended a lapse, or has taken the slot */
			return 0;
	}
	for (i = 0; i < SG_SLOTS; i++)
		if (bits >> i & 1 && sg_load64(sg_state_word(vol, i)) == state[i])
			sg_end_lapse(vol, i);
	return 0;
}

/*
 * Ends the lapses of fenced processes that have ended since. The caller has exclusive access, so
 * that no stargatefs-fuse joins meanwhile that succeeds one of them, and needs its open files.
 */
void sg_end_lapses_of_ended(struct sg_vol *vol)
{
	struct sg_slot info;
	u64 state, bits;
	unsigned int i;

	bits = sg_is_lost(vol, SG_HOT_OFF) ? 0 : sg_get(vol, SG_HOT(lapsed));
	for (i = 0; i < SG_SLOTS; i++) {
		state = sg_load64_acquire(sg_state_word(vol, i));
		if (bits >> i & 1 && SG_SLOT_STATE(state) != SG_SLOT_LIVE &&
		    read_named(vol, i, state, &info) && has_ended(&info))
			sg_end_lapse(vol, i);
	}
}

/*
 * Checks all slots once: recovers dead systems, and fences silent systems whose lease is over.
 */
static void watch_others(struct sg_vol *vol)
{
	struct sg_watch *w = vol->watch;
	u64 passed = time_seen(&w->looked);
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		u64 state = sg_load64_acquire(sg_state_word(vol, i)), beat = beat_of(vol, i, true);
		u64 lease = fence_patience(vol, i, state);

		see_lapse(vol, i, state, passed);
		if ((int)i == vol->slot || SG_SLOT_STATE(state) == SG_SLOT_FREE)
			continue;
		if (!may_be_fenced(i, state)) {
			sg_recover_slot(vol, i);
			continue;
		}
		if (w->beat[i] != beat || w->inc[i] != SG_SLOT_INC(state)) {
			w->beat[i] = beat;
			w->inc[i] = SG_SLOT_INC(state);
			w->silent[i] = 0;
			continue;
		}
		w->silent[i] += passed;
		if (lease && w->silent[i] / 1000000 >= lease) {
			report_lease(vol, i, w->silent[i] / 1000000);
			fence_silent(vol, i, state);
			sg_recover_slot(vol, i);
		}
	}
}

int sg_watch(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return SG_MAINTAIN_MS;
	/* this check is first: this slot's page may be bad, and then must not be read */
	sg_bad_look(vol);
	if (sg_is_fenced(vol))
		return sg_declared_dead(vol);
	sg_beat(vol);
	sg_slot_mend(vol);
	sg_follow(vol);
	watch_others(vol);
	return SG_MAINTAIN_MS;
}

int sg_maintain(struct sg_vol *vol)
{
	int err = sg_watch(vol);

	return err < 0 ? err : sg_acknowledge(vol);
}
