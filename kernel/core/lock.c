// SPDX-License-Identifier: GPL-2.0
/*
 * Locks between systems (D6): owned, handed over in turn, never left with the dead.
 *
 * Taking a free lock is one locked instruction, giving it back without waiters one store. A waiter
 * sets its slot's bit; the holder hands the lock to the next slot in turn that still lives. What
 * has been handed but not taken up protects nothing yet, so that anybody may take it after a
 * while: a waiter that died in between holds up nobody.
 */
#include "internal.h"

#define SPINS		200	/* then yield */
#define YIELDS		20	/* then sleep */
#define SLEEP_US_MAX	1000
#define PATIENCE_NS	10000000ULL	/* for a hand-over to be taken up */
#define REPORT_NS	10000000000ULL	/* a holder worth a line in the log */

static u64 own_word(const struct sg_vol *vol)
{
	return SG_LOCK_WORD(vol->slot, vol->incarnation);
}

/* A holder counts until its slot has been recovered, dead or not. */
static bool holder_gone(const struct sg_vol *vol, u64 word)
{
	unsigned int slot = SG_LOCK_SLOT(word);
	u64 state;

	if (slot >= SG_SLOTS)
		return true;	/* a wild store: nobody's */
	state = sg_get(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, state));
	return SG_SLOT_STATE(state) == SG_SLOT_FREE || SG_SLOT_INC(state) != SG_LOCK_INC(word);
}

static bool take_if(struct sg_lock *lk, u64 seen, u64 own)
{
	return sg_cas64(&lk->word, seen, own) == seen;
}

bool sg_trylock(struct sg_vol *vol, u64 off)
{
	struct sg_lock *lk = sg_at(vol, off);
	u64 word = sg_load64(&lk->word);

	if (word && word != (own_word(vol) | SG_LOCK_HANDED) && !holder_gone(vol, word))
		return false;
	return take_if(lk, word, own_word(vol));
}

static void report(const struct sg_vol *vol, u64 off, u64 word, u64 since)
{
	struct sg_slot slot;

	if (sg_slot_read(vol, SG_LOCK_SLOT(word), &slot))
		return;
	sg_log(vol->owner, SG_WARN, "lock at 0x%llx held by system %u (%.64s) for %llu s",
	       (unsigned long long)off, SG_LOCK_SLOT(word), slot.name,
	       (unsigned long long)((sg_ticks() - since) / 1000000000ULL));
}

static void wait_a_little(unsigned int turn)
{
	if (turn < SPINS)
		sg_relax();
	else if (turn < SPINS + YIELDS)
		sg_yield();
	else
		sg_sleep_us(SG_MIN(10u << SG_MIN(turn - SPINS - YIELDS, 7u), SLEEP_US_MAX));
}

static void lock_slow(struct sg_vol *vol, u64 off)
{
	struct sg_lock *lk = sg_at(vol, off);
	u64 bit = 1ULL << vol->slot, own = own_word(vol);
	u64 start = sg_ticks(), next_report = start + REPORT_NS, handed = 0, handed_at = 0;
	unsigned int turn;

	sg_count(&vol->stat.lock_waits, 1);
	for (turn = 0; ; turn++) {
		u64 word, now;

		if (sg_trylock(vol, off))
			break;
		if (!(sg_load64(&lk->waiters) & bit))
			sg_or64(&lk->waiters, bit);
		word = sg_load64(&lk->word);
		wait_a_little(turn);
		if (turn < SPINS)
			continue;
		now = sg_ticks();
		if (!(word & SG_LOCK_HANDED) || word != handed) {
			handed = word;
			handed_at = now;
		} else if (now - handed_at > PATIENCE_NS && take_if(lk, word, own)) {
			break;
		}
		if (now > next_report && word) {
			report(vol, off, word, start);
			next_report = now + REPORT_NS;
		}
	}
	sg_and64(&lk->waiters, ~bit);
}

void sg_lock(struct sg_vol *vol, u64 off)
{
	SG_ASSERT(vol->slot >= 0);
	if (!sg_trylock(vol, off))
		lock_slow(vol, off);
}

/* The next waiting slot behind ours that lives, as the word that makes it the holder; or 0. */
static u64 successor(struct sg_vol *vol, struct sg_lock *lk, u64 waiters)
{
	unsigned int i;

	for (i = 1; i <= SG_SLOTS; i++) {
		unsigned int slot = ((unsigned int)vol->slot + i) % SG_SLOTS;
		u64 state;

		if (!(waiters >> slot & 1))
			continue;
		state = sg_get(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, state));
		if (SG_SLOT_STATE(state) == SG_SLOT_LIVE)
			return SG_LOCK_WORD(slot, SG_SLOT_INC(state)) | SG_LOCK_HANDED;
		sg_and64(&lk->waiters, ~(1ULL << slot));
	}
	return 0;
}

void sg_unlock(struct sg_vol *vol, u64 off)
{
	struct sg_lock *lk = sg_at(vol, off);
	u64 waiters = sg_load64(&lk->waiters);

	SG_ASSERT(sg_load64(&lk->word) == own_word(vol));
	sg_store64_release(&lk->word, waiters ? successor(vol, lk, waiters) : 0);
}

void sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b)
{
	const struct sg_iref *const v[4] = { a, b, NULL, NULL };

	sg_lock_four(vol, v);
}

void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b)
{
	const struct sg_iref *const v[4] = { a, b, NULL, NULL };

	sg_unlock_four(vol, v);
}

/* Index of the entry with the smallest inode number above @above, or -1. */
static int next_above(const struct sg_iref *const v[4], u64 above)
{
	int i, best = -1;

	for (i = 0; i < 4; i++)
		if (v[i] && v[i]->ino > above && (best < 0 || v[i]->ino < v[best]->ino))
			best = i;
	return best;
}

void sg_lock_four(struct sg_vol *vol, const struct sg_iref *const v[4])
{
	u64 above = 0;
	int i;

	while ((i = next_above(v, above)) >= 0) {
		above = v[i]->ino;
		sg_ilock(vol, v[i]);
	}
}

void sg_unlock_four(struct sg_vol *vol, const struct sg_iref *const v[4])
{
	u64 above = 0;
	int i;

	while ((i = next_above(v, above)) >= 0) {
		above = v[i]->ino;
		sg_iunlock(vol, v[i]);
	}
}
