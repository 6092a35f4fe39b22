// SPDX-License-Identifier: GPL-2.0
/*
 * Freeze: all systems pause their changes while one of them copies the volume. docs/snapshots.md.
 *
 * A frozen system sets a word in its slot, and clears it before it stores anything again. A copy is
 * valid if all live systems were frozen before it began, and are still frozen after it ended. In
 * addition, no system may have joined, died or been recovered meanwhile. No system remains frozen
 * longer than the announced limit, whatever happens to the copying system.
 */
#include "internal.h"

#define LOOK_US		500		/* between checks of systems that have not answered */
#define FREEZE_MS	5		/* until the next sg_freeze_watch() while frozen */
#define MS		1000000ULL
#define MOST_NS		(SG_FREEZE_MAX_MS * MS)
/* a system is frozen for at most 1/REST of the time */
#define REST		6

static struct sg_slot *freeze_slot_at(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, sg_slot_off(vol, slot));
}

static u64 freeze_word(const struct sg_vol *vol)
{
	return sg_load64_acquire(sg_at(vol, SG_HOT(freeze)));
}

/* Returns the limit in the word, bounded after the load because the word is hostile input (D10). */
static u64 limit_ns(u64 word)
{
	return SG_MIN(SG_FREEZE_LIMIT(word), SG_FREEZE_MAX_MS) * MS;
}

static bool holder_lives(const struct sg_vol *vol)
{
	u64 word = sg_get(vol, SG_HOT(freeze_lock.word));

	return word && sg_owner_live(vol, SG_LOCK_SLOT(word), SG_LOCK_INC(word));
}

/* --- a frozen system ------------------------------------------------------------------------ */

/*
 * Closes the gate, so that no transaction begins any more. On return, all transactions that had
 * begun have ended.
 */
static int close_gate(struct sg_vol *vol, u64 end)
{
	unsigned int i;

	sg_store64(&vol->still.closed, 1);
	sg_full_fence();	/* pairs with the barrier in begin_turn() */
	for (i = 0; i < vol->sb.areas; i++) {
		u64 turn = sg_load64_acquire(&vol->tx[i].turn);

		while (turn & 1 && sg_load64_acquire(&vol->tx[i].turn) == turn) {
			if ((s64)(sg_ticks() - end) > 0)
				return -EBUSY;
			sg_sleep_us(LOOK_US);
		}
	}
	return 0;
}

/*
 * Opens the gate. The copying system either sees that this system is not frozen any more, or sees
 * none of its later stores.
 */
static void freeze_go_on(struct sg_vol *vol)
{
	struct sg_still *s = &vol->still;

	if (sg_is_ours(vol))
		sg_store64_release(&freeze_slot_at(vol, (unsigned int)vol->slot)->frozen, 0);
	sg_full_fence();
	sg_store64_release(&s->closed, 0);
	if (s->outside)
		vol->freeze_mount(vol, false);
	s->outside = false;
	s->word = 0;
	sg_store64(&s->spent, s->spent + sg_ticks() - s->since);
}

/*
 * Freezes this system, but not while one of its calls waits for another system. That system may be
 * paused, so the call would not end, and all threads here would wait for it.
 */
static void stand_still(struct sg_vol *vol, u64 word)
{
	struct sg_still *s = &vol->still;
	u64 frozen = SG_FROZEN(SG_FREEZE_NR(word), vol->incarnation);

	s->answered = word;
	if (sg_load64(&vol->stuck))
		return;
	s->word = word;
	s->since = sg_ticks();
	s->outside = vol->freeze_mount && !vol->freeze_mount(vol, true);
	if ((!vol->freeze_mount || s->outside) && !close_gate(vol, s->since + limit_ns(word)) &&
	    freeze_word(vol) == word && sg_is_ours(vol))
		sg_store64_release(&freeze_slot_at(vol, (unsigned int)vol->slot)->frozen, frozen);
	else
		freeze_go_on(vol);
}

/*
 * Limits the part of the time that this system is frozen, if a member requests freezes again and
 * again.
 */
static bool may_spend(struct sg_vol *vol, u64 ns)
{
	struct sg_still *s = &vol->still;
	u64 now = sg_ticks(), rested = (now - s->counted) / REST;

	if (rested) {
		sg_store64(&s->spent, s->spent - SG_MIN(s->spent, rested));
		s->counted = now;
	}
	return s->spent + ns <= MOST_NS;
}

/*
 * Reports whether this system should answer an attempt to freeze. It answers each attempt only
 * once, because a second answer would hide that it was not frozen in between.
 */
static bool is_wanted(struct sg_vol *vol, u64 word)
{
	return SG_FREEZE_LIMIT(word) && word != vol->still.answered && holder_lives(vol) &&
	       may_spend(vol, limit_ns(word));
}

static bool freeze_is_over(const struct sg_vol *vol)
{
	const struct sg_still *s = &vol->still;

	return !sg_is_ours(vol) || freeze_word(vol) != s->word || !holder_lives(vol) ||
	       sg_ticks() - s->since > limit_ns(s->word);
}

/* --- the copying system --------------------------------------------------------------------- */

static void store_freeze(struct sg_vol *vol, u64 word)
{
	u64 *freeze = sg_at(vol, SG_HOT(freeze));

	sg_store64_release(freeze, word);
	sg_wb(freeze, 8);
	sg_fence();
	/* from now on this system sees a joiner, or the joiner stores nothing that is copied */
	sg_full_fence();
	sg_doorbell_tell(vol, SG_DUE_FREEZE);
}

static void freeze_withdraw(struct sg_vol *vol)
{
	if (sg_is_ours(vol))
		store_freeze(vol, SG_FREEZE(0, SG_FREEZE_NR(freeze_word(vol))));
}

static bool is_still(const struct sg_vol *vol, unsigned int slot, u64 state)
{
	return sg_load64_acquire(&freeze_slot_at(vol, slot)->frozen) ==
	       SG_FROZEN(SG_FREEZE_NR(vol->freezing.word), SG_SLOT_INC(state));
}

/*
 * Returns the first slot whose system may store; SG_SLOTS: there is none. A dead system does not
 * store, but its recoverer does.
 */
static unsigned int somebody_moves(struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		u64 state = sg_load64_acquire(sg_state_word(vol, i));

		vol->freezing.seen[i] = state;
		if (SG_SLOT_STATE(state) == SG_SLOT_LIVE ? !is_still(vol, i, state) :
		    SG_SLOT_STATE(state) != SG_SLOT_FREE)
			return i;
	}
	return SG_SLOTS;
}

/*
 * Returns the first slot of a system that was fenced for silence, whose processes may still store;
 * SG_SLOTS: there is none. Called after somebody_moves(): a slot that was seen dead, or recovered,
 * had its lapsed bit before.
 */
static unsigned int somebody_lapses(const struct sg_vol *vol)
{
	u64 lapsed = sg_get(vol, SG_HOT(lapsed));
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (lapsed >> i & 1 &&
		    SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, i))) != SG_SLOT_LIVE)
			return i;
	return SG_SLOTS;
}

/* Rejects the freeze during a lapse, which lasts longer than the wait for a freeze. */
static int freeze_lapses(struct sg_vol *vol, unsigned int who, char *why)
{
	struct sg_slot slot;

	sg_slot_read(vol, who, &slot);
	sg_snprintf(why, 200, "%.60s (slot %u) was fenced for its silence, and its processes may "
		    "still store: try again in %u s", slot.name, who, SG_LAPSE_MS / 1000);
	return -EBUSY;
}

static int freeze_no_answer(struct sg_vol *vol, unsigned int who, char *why)
{
	struct sg_slot slot;

	sg_slot_read(vol, who, &slot);
	if (SG_SLOT_STATE(slot.state) != SG_SLOT_LIVE)
		sg_snprintf(why, 200, "%.60s (slot %u) was fenced and is being recovered: try again",
			    slot.name, who);
	else
		sg_snprintf(why, 200, "%.60s (slot %u) does not freeze: is it paused, frozen by its user, "
			    "dead or too old, or was it asked too often within a minute?", slot.name, who);
	return -EBUSY;
}

/*
 * Waits until all systems are frozen. The limit of the first frozen system is already running, so
 * the wait takes at most half of it.
 */
static int wait_for_all(struct sg_vol *vol, u64 end, char *why)
{
	unsigned int who, lapsed;

	for (;;) {
		if (!sg_is_ours(vol))	/* this check is first: the slots may now be on bad pages */
			return sg_declared_dead(vol);
		who = somebody_moves(vol);
		lapsed = somebody_lapses(vol);
		if (lapsed != SG_SLOTS)
			return freeze_lapses(vol, lapsed, why);
		if (who == SG_SLOTS)
			return 0;
		if (sg_interrupted())
			return -EINTR;
		if ((s64)(sg_ticks() - end) > 0)
			return freeze_no_answer(vol, who, why);
		if (!vol->freeze_watched)
			sg_freeze_watch(vol);
		if (!vol->maintained)
			sg_maintain(vol);
		sg_sleep_us(LOOK_US);
	}
}

static int freeze(struct sg_vol *vol, unsigned int limit_ms, char *why)
{
	struct sg_freezing *f = &vol->freezing;
	u64 start = sg_ticks();
	int err;

	sg_store64(&f->until, start + limit_ms * MS);	/* thaw_late() may read it immediately */
	f->word = SG_FREEZE(limit_ms, SG_FREEZE_NR(freeze_word(vol)) + 1);
	store_freeze(vol, f->word);
	err = wait_for_all(vol, start + limit_ms * MS / 2, why);
	sg_full_fence();	/* before the first byte is copied */
	if (err)
		freeze_withdraw(vol);
	return err;
}

static void say_busy(struct sg_vol *vol, char *why)
{
	unsigned int who = SG_LOCK_SLOT(sg_get(vol, SG_HOT(freeze_lock.word)));
	struct sg_slot slot;

	if (sg_slot_read(vol, who, &slot))
		return;
	sg_snprintf(why, 200, "%.60s (slot %u) is copying the volume: try again", slot.name, who);
}

/* Blocks growth during the freeze, because growth also stores outside transactions. */
static int take_locks(struct sg_vol *vol, char *why)
{
	int err = sg_lock_soon(vol, SG_HOT(freeze_lock));

	if (err == -EBUSY)
		say_busy(vol, why);
	if (err)
		return err;
	err = sg_lock_soon(vol, SG_HOT(grow_lock));
	if (err == -EBUSY)
		sg_snprintf(why, 200, "the volume is growing: try again");
	if (err)
		sg_unlock(vol, SG_HOT(freeze_lock));
	return err;
}

static void give_back(struct sg_vol *vol)
{
	sg_unlock(vol, SG_HOT(grow_lock));
	sg_unlock(vol, SG_HOT(freeze_lock));
}

int sg_freeze(struct sg_vol *vol, unsigned int limit_ms, char why[200])
{
	struct sg_freezing *f = &vol->freezing;
	int err = sg_is_member(vol); /* a read-only system can also arrange a freeze */

	why[0] = 0;
	if (!limit_ms || limit_ms > SG_FREEZE_MAX_MS) {
		sg_snprintf(why, 200, "a pause of %u ms is not possible: 1 to %u", limit_ms,
			    SG_FREEZE_MAX_MS);
		return -EINVAL;
	}
	if (!err && sg_cas64(&f->phase, 0, 1)) {
		sg_snprintf(why, 200, "the volume is being copied here: try again");
		return -EBUSY;
	}
	if (!err) {
		err = take_locks(vol, why);
		if (!err) {
			err = freeze(vol, limit_ms, why);
			if (err)
				give_back(vol);
		}
		sg_store64_release(&f->phase, err ? 0 : 2);
	}
	if (err && !why[0])
		sg_snprintf(why, 200, err == -EROFS ? "the volume cannot be changed here" :
			    err == -EINTR ? "interrupted" : "error %d", -err);
	return err;
}

/*
 * Reports whether no system has joined, left, died or been recovered, and all live ones were frozen
 * all the time.
 */
static bool all_stood(const struct sg_vol *vol)
{
	unsigned int i;

	sg_full_fence();	/* after the last byte that was copied */
	if (!sg_is_ours(vol))
		return false;
	for (i = 0; i < SG_SLOTS; i++) {
		u64 state = sg_load64_acquire(sg_state_word(vol, i));

		if (state != vol->freezing.seen[i] ||
		    (SG_SLOT_STATE(state) == SG_SLOT_LIVE && !is_still(vol, i, state)))
			return false;
	}
	return sg_is_ours(vol);
}

int sg_thaw(struct sg_vol *vol)
{
	struct sg_freezing *f = &vol->freezing;
	bool freeze_watched;

	if (sg_cas64(&f->phase, 2, 1) != 2)
		return -EAGAIN;
	freeze_watched = all_stood(vol);
	freeze_withdraw(vol);
	give_back(vol);
	sg_store64_release(&f->phase, 0);
	return freeze_watched ? 0 : -EAGAIN;
}

/* Ends a freeze whose caller of sg_freeze() has ended without sg_thaw(). */
static void thaw_late(struct sg_vol *vol)
{
	if (sg_load64_acquire(&vol->freezing.phase) == 2 &&
	    (s64)(sg_ticks() - sg_load64(&vol->freezing.until)) > 0)
		sg_thaw(vol);
}

/* --- both ----------------------------------------------------------------------------------- */

int sg_freeze_watch(struct sg_vol *vol)
{
	u64 word;

	if (vol->slot < 0)
		return SG_MAINTAIN_MS;
	thaw_late(vol);
	if (vol->still.word && !freeze_is_over(vol))
		return FREEZE_MS;
	if (vol->still.word)
		freeze_go_on(vol);
	if (!sg_is_ours(vol))
		return sg_declared_dead(vol);
	word = freeze_word(vol);
	if (is_wanted(vol, word))
		stand_still(vol, word);
	return vol->still.word ? FREEZE_MS : SG_MAINTAIN_MS;
}

void sg_freeze_watch_end(struct sg_vol *vol)
{
	sg_thaw(vol);
	if (vol->still.word)
		freeze_go_on(vol);
}

void sg_freeze_settle(struct sg_vol *vol)
{
	if (!SG_FREEZE_LIMIT(freeze_word(vol)) || holder_lives(vol) ||
	    !sg_trylock(vol, SG_HOT(freeze_lock)))
		return;
	freeze_withdraw(vol);
	sg_unlock(vol, SG_HOT(freeze_lock));
}
