// SPDX-License-Identifier: GPL-2.0
/*
 * Reading without a lock (D9). A reader begins with an even change counter, and reads again if the
 * counter has changed. An odd counter means that a system is storing a change, which takes
 * microseconds, unless that system is paused. While its heartbeat has stopped, or until it has been
 * recovered, a reader waits as for a lock. A counter that remains odd while the heartbeat moves is
 * damage. The reader that detects this has waited, and records it for all other readers of this
 * system.
 */
#include "internal.h"

#define SPINS		1000
/* the inode's lock is held, and the holder's heartbeat moves */
#define PATIENCE_HELD_NS 20000000000ULL
#define PATIENCE_NS	2000000000ULL	/* the lock is not held: a wild store */
#define HASTE		6
/* if no damaged counter was found for this time, the wait has its full length again */
#define CALM_NS		60000000000ULL
/* a heartbeat that has not moved for this time has stopped */
#define BEATS_NS	1000000000ULL
/* after a longer step, this system was stopped, and perhaps others with it */
#define STEP_NS		200000000ULL
#define HURRY_NS	10000000000ULL	/* for a system that is about to leave */

/*
 * Reports whether a counter was judged damaged. Also compares the counter's value, which differs if
 * the change has ended later.
 */
static bool is_judged(struct sg_vol *vol, u64 off, u64 seq)
{
	bool found = false;
	unsigned int i;

	sg_spin_lock(&vol->spin);
	for (i = 0; i < SG_ARRAY_SIZE(vol->odd) && !found; i++)
		found = vol->odd[i].off == off && vol->odd[i].seq == seq;
	sg_spin_unlock(&vol->spin);
	return found;
}

static int judge(struct sg_vol *vol, const struct sg_iref *ref, u64 seq)
{
	u64 now = sg_ticks();

	sg_spin_lock(&vol->spin);
	vol->odd[vol->odd_next++ % SG_ARRAY_SIZE(vol->odd)] = (struct sg_odd){ ref->off, seq };
	if (now - sg_load64(&vol->odd_last) > CALM_NS)
		sg_store64(&vol->odd_judged, 0);
	sg_store64(&vol->odd_judged, vol->odd_judged + 1);
	sg_store64(&vol->odd_last, now);
	sg_spin_unlock(&vol->spin);
	return sg_damaged(vol, ref->ino, ref->off, "a change never ends");
}

/*
 * Returns the time to wait before a counter counts as damaged. Each damaged counter shortens the
 * time for the next one, because many odd counters are no coincidence. The time is not shortened
 * while the inode's lock is held, because the holder may only lack a processor.
 */
static u64 haste(const struct sg_vol *vol)
{
	u64 judged = sg_load64(&vol->odd_judged);

	return sg_ticks() - sg_load64(&vol->odd_last) > CALM_NS ? 0 : SG_MIN(judged, (u64)HASTE);
}

/**
 * struct odd_wait - a reader that waits for an even counter
 * @last: time of the last check; @counted: the time that counts towards damage
 * @word, @beat: the holder's lock word and heartbeat at the last check; @beaten: when the heartbeat
 *   changed, 0: not yet
 */
struct odd_wait {
	u64 last, counted, word, beat, beaten;
	bool held;
	struct sg_long_wait wait;
};

/* Reports whether the heartbeat of the holder of lock @word moves. */
static bool heart_beats(const struct sg_vol *vol, struct odd_wait *w, u64 word, u64 now)
{
	u64 beat = sg_get(vol, sg_slot_off(vol, SG_LOCK_SLOT(word)) +
			       offsetof(struct sg_slot, heartbeat));
	bool other = word != w->word;

	if (other || beat != w->beat)
		w->beaten = other ? 0 : now;
	w->word = word;
	w->beat = beat;
	return w->beaten && now - w->beaten < BEATS_NS;
}

/*
 * Reports whether the time counts towards damage: not while the change belongs to a system that is
 * paused, or is being recovered. A system without a slot recovers nothing, and there may be no
 * other system to do so.
 */
static bool seqread_counts(struct sg_vol *vol, const struct sg_iref *ref, struct odd_wait *w,
			   u64 now)
{
	u64 word = sg_iget(vol, ref, lock.word) & ~SG_LOCK_ASKED;
	unsigned int slot = SG_LOCK_SLOT(word);

	w->held = slot < SG_SLOTS && sg_is_locked(vol, SG_IOFF(ref, lock));
	if (!w->held || (int)slot == vol->slot)
		return true;
	if (!sg_owner_live(vol, slot, SG_LOCK_INC(word)))
		return vol->slot < 0;
	return heart_beats(vol, w, word, now);
}

static bool seqread_is_over(struct sg_vol *vol, const struct sg_iref *ref, struct odd_wait *w)
{
	u64 now = sg_ticks(), step = SG_MIN(now - w->last, STEP_NS);

	w->last = now;
	if (seqread_counts(vol, ref, w, now))
		w->counted += step;
	return w->counted >= (w->held ? PATIENCE_HELD_NS : PATIENCE_NS >> haste(vol));
}

static int look_until_even(struct sg_vol *vol, const struct sg_iref *ref, struct odd_wait *w,
			   u64 *seq)
{
	unsigned int turn;

	for (turn = 0; ; turn += turn <= SPINS) {
		*seq = sg_load64_acquire(sg_at(vol, SG_IOFF(ref, seq)));
		if (!(*seq & 1))
			return 0;
		if (!turn && is_judged(vol, ref->off, *seq))
			return -EUCLEAN;
		if (turn < SPINS && !vol->alone) {
			sg_relax();
			continue;
		}
		if (sg_interrupted() || sg_wait_ends(vol))
			return -EINTR;
		if (vol->alone || seqread_is_over(vol, ref, w))
			return judge(vol, ref, *seq);
		if (vol->slot >= 0 && !sg_is_ours(vol))
			return sg_declared_dead(vol);
		if (vol->join_until && sg_ticks() > vol->join_until) {
			vol->held_up = sg_iget(vol, ref, lock.word);
			return -EBUSY;
		}
		if (vol->hurry && sg_ticks() - w->wait.start > HURRY_NS)
			return -EBUSY;
		sg_long_wait_look(vol, &w->wait, sg_ticks());
		/* recovers a holder that died during the change */
		sg_help(vol, sg_iget(vol, ref, lock.word));
		if (!vol->maintained)	/* a waiting system is live */
			sg_beat(vol);
		sg_sleep_us(100);
		if (sg_is_lost(vol, ref->off))	/* the page became bad during the wait */
			return -EIO;
	}
}

/*
 * Waits for an even counter, and counts as a long wait, because the caller may hold locks for which
 * other threads here wait.
 */
static int wait_even(const struct sg_vol *cvol, const struct sg_iref *ref, u64 *seq)
{
	/* changes the list of findings, not the bytes of the volume */
	struct sg_vol *vol = (struct sg_vol *)cvol;
	u64 now = sg_ticks();
	struct odd_wait w = { .last = now, .wait.start = now };
	int err = look_until_even(vol, ref, &w, seq);

	sg_long_wait_end(vol, &w.wait);
	return err;
}

int sg_read_begin(const struct sg_vol *vol, const struct sg_iref *ref, u64 *seq)
{
	if (sg_is_lost(vol, ref->off))
		return -EIO;
	*seq = sg_load64_acquire(sg_at(vol, SG_IOFF(ref, seq)));
	return *seq & 1 ? wait_even(vol, ref, seq) : 0;
}

bool sg_read_retry(const struct sg_vol *vol, const struct sg_iref *ref, u64 seq)
{
	sg_acquire_fence();
	return sg_iget(vol, ref, seq) != seq;
}

u64 sg_seq(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 seq;

	return sg_read_begin(vol, ref, &seq) ? 0 : seq;
}

u64 sg_cuts(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_is_lost(vol, ref->off) ? 0 : sg_load64_acquire(sg_at(vol, SG_IOFF(ref, cuts)));
}
