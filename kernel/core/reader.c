// SPDX-License-Identifier: GPL-2.0
/*
 * Reading without a lock (D9). A reader begins with an even change counter, and reads again when it
 * has changed. Odd means that a change is being stored, which takes microseconds. A counter that
 * stays odd is damage: whoever finds that out has waited, and remembers it for all others.
 */
#include "internal.h"

#define SPINS		1000
#define PATIENCE_HELD_NS 20000000000ULL	/* somebody has the inode's lock */
#define PATIENCE_NS	2000000000ULL	/* nobody has: it may be a new one, or a wild store */
#define HASTE		6

/* By what it said: a change that is made after all says something else. */
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
	sg_spin_lock(&vol->spin);
	vol->odd[vol->odd_judged % SG_ARRAY_SIZE(vol->odd)] = (struct sg_odd){ ref->off, seq };
	sg_store64(&vol->odd_judged, vol->odd_judged + 1);
	sg_spin_unlock(&vol->spin);
	return sg_damaged(vol, ref->ino, ref->off, "a change never ended");
}

/* Each one that was judged makes the next one cheaper: many of them are no coincidence. */
static u64 patience(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 ns = sg_is_locked(vol, SG_IOFF(ref, lock)) ? PATIENCE_HELD_NS : PATIENCE_NS;

	return vol->alone ? 0 : ns >> SG_MIN(sg_load64(&vol->odd_judged), (u64)HASTE);
}

static int wait_even(const struct sg_vol *cvol, const struct sg_iref *ref, u64 *seq)
{
	struct sg_vol *vol = (struct sg_vol *)cvol;	/* what was judged, not its bytes */
	u64 limit = patience(vol, ref), start = sg_ticks();
	unsigned int turn;

	for (turn = 0; ; turn++) {
		*seq = sg_load64_acquire(sg_at(vol, SG_IOFF(ref, seq)));
		if (!(*seq & 1))
			return 0;
		if (!turn && is_judged(vol, ref->off, *seq))
			return -EUCLEAN;
		if (turn == SPINS)	/* who died in the middle of it */
			sg_help(vol, sg_iget(vol, ref, lock.word));
		if (turn < SPINS && limit)
			sg_relax();
		else if (sg_interrupted())
			return -EINTR;
		else if (sg_ticks() - start < limit)
			sg_sleep_us(100);
		else
			return judge(vol, ref, *seq);
	}
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
