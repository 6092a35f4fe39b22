// SPDX-License-Identifier: GPL-2.0
/*
 * Locks between systems (D6). A lock has an owner, is handed over in turn, and is released when its
 * dead holder is recovered.
 *
 * Taking a free lock is one locked instruction; unlocking it is one store. A waiter sets its slot's
 * bit, and takes the lock if the waiter finds the lock free at a check. A release does not hand the
 * lock to a sleeper, because each use would then wait until the sleeper has woken. A running thread
 * may take it first. A system that has waited long sets ASKED in the word. Then the holder hands
 * the lock to the next live slot in turn. A lock that was handed over but not yet accepted protects
 * nothing. So any system may take it after some time, and a waiter that died in between delays no
 * other.
 *
 * Each system counts its own locks in private memory, by hash: it adds 1 before it sets a lock's
 * word, and subtracts 1 after the release. So it can detect a wrong word that names it.
 */
#include "internal.h"

#define SPINS		200	/* then yield */
#define YIELDS		20	/* then sleep */
#define SLEEP_US_MAX	1000u
#define ASK_NS		5000000ULL	/* then it sets ASKED */
#define PATIENCE_NS	10000000ULL	/* for a system to accept a lock that was handed to it */
#define REPORT_NS	10000000000ULL	/* between messages about a holder in the log */
#define SOON_NS		10000000000ULL	/* for callers that can try again */
#define STUCK_NS	50000000ULL	/* from here on a wait is counted (freeze.c) */
#define SURE_NS		100000000000ULL	/* for callers that can neither try again nor be killed */
#define BRIEF_NS	20000000ULL	/* for callers for which other threads wait */
#define HURRY_NS	REPORT_NS	/* for a system that is about to leave */
/* how long a word may name this system before it checks its count of locks */
#define STRAY_NS	1000000000ULL

static u64 own_word(const struct sg_vol *vol)
{
	return SG_LOCK_WORD(vol->slot, vol->incarnation);
}

bool sg_holder_gone(const struct sg_vol *vol, u64 word)
{
	unsigned int slot = SG_LOCK_SLOT(word);
	u64 state;

	if (slot >= SG_SLOTS)
		return true;	/* a wild store: no system has this slot */
	state = sg_get(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, state));
	return SG_SLOT_STATE(state) == SG_SLOT_FREE || SG_SLOT_INC(state) != SG_LOCK_INC(word);
}

/* Returns this system's count of locks at @off and at other offsets with the same hash. */
static u64 *held(const struct sg_vol *vol, u64 off)
{
	return &vol->held[(off >> 6) * 0x9e3779b97f4a7c15ULL >> (64 - SG_HELD_BITS)];
}

bool sg_holder_lapses(const struct sg_vol *vol, u64 word)
{
	unsigned int slot = SG_LOCK_SLOT(word);

	return slot < SG_SLOTS && !(word & SG_LOCK_HANDED) &&
	       sg_load64_acquire(sg_state_word(vol, slot)) ==
	       SG_SLOT_WORD(SG_SLOT_FREE, SG_LOCK_INC(word)) &&
	       sg_get(vol, SG_HOT(lapsed)) >> slot & 1;
}

/*
 * Reports whether this is a chunk's lock whose last holder was fenced for silence. That kernel may
 * have been storing into pages that it had taken there, and may continue. No deferred free protects
 * these pages, because no transaction was committed. So during the lapse the lock counts as held.
 */
static bool pages_lapse(const struct sg_vol *vol, u64 off, u64 word)
{
	return off >= vol->sb.chunk_off && off < vol->sb.data_off && sg_holder_lapses(vol, word);
}

static bool take_if(struct sg_vol *vol, u64 off, u64 seen, u64 own)
{
	struct sg_lock *lk = sg_at(vol, off);

	sg_add64(held(vol, off), 1);
	if (sg_cas64(&lk->word, seen, own) == seen)
		return true;
	sg_add64(held(vol, off), -1ULL);
	return false;
}

void sg_help(struct sg_vol *vol, u64 word)
{
	unsigned int slot = SG_LOCK_SLOT(word);

	/* a system without a slot only reads */
	if (word && slot < SG_SLOTS && vol->slot >= 0 && (int)slot != vol->slot)
		vol->up->recover_slot(vol, slot);
}

/*
 * Reports whether the lock was handed to a system that had just given up. That system does not
 * accept the lock, and a thread that only tries the lock must not wait until the 10 ms have passed.
 */
static bool handed_in_vain(const struct sg_lock *lk, u64 word)
{
	return word & SG_LOCK_HANDED && !(sg_load64(&lk->waiters) >> SG_LOCK_SLOT(word) & 1);
}

/*
 * @fills: during its lapse, the holder may still fill the pages that the lock protects, as with a
 * chunk's lock.
 */
static bool try_lock(struct sg_vol *vol, u64 off, bool fills)
{
	const struct sg_lock *lk = sg_at(vol, off);
	u64 word, own = own_word(vol);

	/* this check is first: if this system has stopped, that page may be bad */
	if (!sg_is_ours(vol))
		return false;
	word = sg_load64(&lk->word);
	/*
	 * loads the slot first, the lapse second: the bit of the lapse is set before the slot
	 * becomes free
	 */
	if (word && word != (own | SG_LOCK_HANDED) &&
	    (sg_holder_gone(vol, word) ?
	     pages_lapse(vol, off, word) || (fills && sg_holder_lapses(vol, word)) :
	     !handed_in_vain(lk, word)))
		return false;
	return take_if(vol, off, word, own);
}

bool sg_trylock(struct sg_vol *vol, u64 off)
{
	return try_lock(vol, off, false);
}

bool sg_trylock_filled(struct sg_vol *vol, u64 off)
{
	return try_lock(vol, off, true);
}

static bool names_us(const struct sg_vol *vol, u64 word)
{
	return SG_LOCK_SLOT(word) == (unsigned int)vol->slot &&
	       SG_LOCK_INC(word) == vol->incarnation;
}

bool sg_is_locked(const struct sg_vol *vol, u64 off)
{
	u64 word = sg_get(vol, off);

	if (!word)
		return false;
	if (sg_holder_gone(vol, word))
		return pages_lapse(vol, off, word);
	if (handed_in_vain(sg_at(vol, off), word))
		return false;
	return !vol->held || !names_us(vol, word) || sg_load64(held(vol, off));
}

/* --- waiting -------------------------------------------------------------------------------- */

/**
 * struct wait - a lock for which a thread waits.
 * @word: its word at the last load; @since: when the thread first saw this word.
 */
struct wait {
	u64 off, next_report;
	u64 word, since;
	struct sg_long_wait wait;
};

/*
 * Takes a lock whose word names this system although none of its threads holds it, because of a
 * wild store. It first marks the word. A thread that had taken the lock before was counted before
 * the mark. That thread remains counted until it unlocks, which changes the word again. Only one
 * thread checks at a time, so no mark is that of another thread.
 */
static bool take_stray(struct sg_vol *vol, const struct wait *w)
{
	struct sg_lock *lk = sg_at(vol, w->off);
	u64 own = own_word(vol), mark = own | SG_LOCK_DOUBT;
	bool taken = false;

	sg_spin_lock(&vol->spin);
	if (w->word == mark || sg_cas64(&lk->word, w->word, mark) == w->word) {
		if (!sg_load64(held(vol, w->off)))
			taken = take_if(vol, w->off, mark, own);
		if (!taken && w->word != mark)
			sg_cas64(&lk->word, mark, w->word);
	}
	sg_spin_unlock(&vol->spin);
	return taken;
}

/*
 * Takes a lock whose word has not changed for some time, because the word is stray, or because the
 * lock was handed to a system that has ended.
 */
static bool take_left_over(struct sg_vol *vol, struct wait *w, u64 now)
{
	struct sg_lock *lk = sg_at(vol, w->off);

	if (w->word & SG_LOCK_HANDED && now - w->since > PATIENCE_NS &&
	    take_if(vol, w->off, w->word, own_word(vol))) {
		/*
		 * the named system did not accept the lock, so it does not wait; if it does wait,
		 * it sets its bit again
		 */
		sg_and64(&lk->waiters, ~(1ULL << (SG_LOCK_SLOT(w->word) & (SG_SLOTS - 1))));
		return true;
	}
	if (w->word & SG_LOCK_HANDED || !names_us(vol, w->word) || now - w->since < STRAY_NS)
		return false;
	w->since = now;
	if (!take_stray(vol, w))
		return false;
	sg_damaged(vol, 0, w->off, "a lock names this system, which does not hold it");
	return true;
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

/*
 * Sets ASKED, so that the holder hands the lock over when it unlocks. If the holder unlocks at the
 * same time, the bit is lost, and the next turn sets it again.
 */
static void ask(struct sg_vol *vol, const struct wait *w, u64 word, u64 now)
{
	struct sg_lock *lk = sg_at(vol, w->off);

	if (word && !(word & (SG_LOCK_HANDED | SG_LOCK_DOUBT | SG_LOCK_ASKED)) &&
	    now - w->wait.start > ASK_NS && sg_is_ours(vol))
		sg_cas64(&lk->word, word, word | SG_LOCK_ASKED);
}

void sg_long_wait_look(struct sg_vol *vol, struct sg_long_wait *w, u64 now)
{
	if (w->counted || now - w->start <= STUCK_NS)
		return;
	sg_add64(&vol->stuck, 1);
	w->counted = true;
}

static void lock_look(struct sg_vol *vol, struct wait *w, u64 word, u64 now)
{
	if ((word ^ w->word) & ~SG_LOCK_ASKED)
		w->since = now;
	w->word = word;
	sg_long_wait_look(vol, &w->wait, now);
	if (now > w->next_report && word) {
		report(vol, w->off, word, w->wait.start);
		w->next_report = now + REPORT_NS;
	}
}

/*
 * Reports whether the wait has reached its own limit, or the limit for a system that leaves or
 * joins.
 */
static bool gives_up(struct sg_vol *vol, const struct wait *w, u64 limit, u64 now)
{
	if (vol->join_until && now > vol->join_until) {
		vol->held_up = w->word;
		return true;
	}
	return now - w->wait.start > (vol->hurry ? SG_MIN(limit, HURRY_NS) : limit);
}

static int lock_slow(struct sg_vol *vol, u64 off, bool killable, u64 limit)
{
	struct wait w = { .off = off, .wait.start = sg_ticks() };
	struct sg_lock *lk = sg_at(vol, off);
	u64 bit = 1ULL << vol->slot;
	unsigned int turn;
	int err = 0;

	w.next_report = w.wait.start + REPORT_NS;
	sg_count(&vol->stat.lock_waits, 1);
	for (turn = 0; !err && !sg_trylock(vol, off); turn++) {
		u64 word, now;

		if (!sg_is_ours(vol)) {
			sg_long_wait_end(vol, &w.wait);
			return sg_declared_dead(vol);
		}
		if (!(sg_load64(&lk->waiters) & bit))
			sg_or64(&lk->waiters, bit);
		word = sg_load64(&lk->word);
		wait_a_little(turn);
		if (turn < SPINS)
			continue;
		if (sg_is_lost(vol, off)) {	/* the page became bad during the wait */
			sg_long_wait_end(vol, &w.wait);
			return -EIO;
		}
		sg_help(vol, word);
		/* the holder may wait for this system's acknowledgement */
		vol->up->acknowledge(vol);
		now = sg_ticks();
		lock_look(vol, &w, word, now);
		ask(vol, &w, word, now);
		if (take_left_over(vol, &w, now))
			break;
		if (killable && (sg_interrupted() || sg_wait_ends(vol)))
			err = -EINTR;
		else if (gives_up(vol, &w, limit, now))
			err = -EBUSY;
	}
	if (sg_is_ours(vol))	/* after a fence the bit belongs to the slot's next owner */
		sg_and64(&lk->waiters, ~bit);
	sg_long_wait_end(vol, &w.wait);
	return err;
}

/*
 * Takes a lock, with a limited wait. If this system was fenced during the wait, the lock's word
 * does not name it, and the lock protects nothing.
 */
static int lock_limited(struct sg_vol *vol, u64 off, bool killable, u64 limit)
{
	int err;

	if (sg_is_lost(vol, off))
		return -EIO;
	err = sg_trylock(vol, off) ? 0 : lock_slow(vol, off, killable, limit);

	if (err || sg_is_ours(vol))
		return err;
	sg_unlock(vol, off);
	return sg_declared_dead(vol);
}

int sg_lock(struct sg_vol *vol, u64 off)
{
	SG_ASSERT(vol->slot >= 0);
	return lock_limited(vol, off, true, ~0ULL);
}

int sg_lock_soon(struct sg_vol *vol, u64 off)
{
	return lock_limited(vol, off, true, SOON_NS);
}

/*
 * Takes a lock with a brief wait. If a thread of this system has waited long, the holder will
 * probably not unlock soon, so this thread does not wait.
 */
int sg_lock_brief(struct sg_vol *vol, u64 off)
{
	return lock_limited(vol, off, false, sg_load64(&vol->stuck) ? 0 : BRIEF_NS);
}

int sg_lock_for(struct sg_vol *vol, u64 off, u64 ns)
{
	return lock_limited(vol, off, true, ns);
}

int sg_lock_sure(struct sg_vol *vol, u64 off)
{
	return lock_limited(vol, off, false, SURE_NS);
}

/* --- unlocking ------------------------------------------------------------------------------ */

/*
 * Returns the word that hands the lock to the next live slot after this one that waits; 0: there is
 * none.
 */
static u64 successor(struct sg_vol *vol, struct sg_lock *lk)
{
	u64 waiters = sg_load64(&lk->waiters);
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

	/* otherwise another system holds the lock now, or may take it at any time */
	if (sg_is_ours(vol)) {
		u64 word = sg_load64(&lk->word);

		SG_ASSERT((word & ~(SG_LOCK_DOUBT | SG_LOCK_ASKED)) == own_word(vol));
		sg_store64_release(&lk->word, word & SG_LOCK_ASKED ? successor(vol, lk) : 0);
	}
	sg_add64(held(vol, off), -1ULL);
}

/* --- several inodes ------------------------------------------------------------------------- */

int sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b)
{
	const struct sg_iref *const v[4] = { a, b, NULL, NULL };

	return sg_lock_four(vol, v);
}

void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b)
{
	const struct sg_iref *const v[4] = { a, b, NULL, NULL };

	sg_unlock_four(vol, v);
}

/* Returns the index of the entry with the smallest inode number above @above, or -1. */
static int next_above(const struct sg_iref *const v[4], u64 above)
{
	int i, best = -1;

	for (i = 0; i < 4; i++)
		if (v[i] && v[i]->ino > above && (best < 0 || v[i]->ino < v[best]->ino))
			best = i;
	return best;
}

static void unlock_upto(struct sg_vol *vol, const struct sg_iref *const v[4], u64 last)
{
	u64 above = 0;
	int i;

	while ((i = next_above(v, above)) >= 0 && v[i]->ino <= last) {
		above = v[i]->ino;
		sg_iunlock(vol, v[i]);
	}
}

int sg_lock_four(struct sg_vol *vol, const struct sg_iref *const v[4])
{
	u64 above = 0;
	int i, err;

	while ((i = next_above(v, above)) >= 0) {
		err = sg_ilock(vol, v[i]);
		if (err) {
			unlock_upto(vol, v, above);
			return err;
		}
		above = v[i]->ino;
	}
	return 0;
}

void sg_unlock_four(struct sg_vol *vol, const struct sg_iref *const v[4])
{
	unlock_upto(vol, v, ~0ULL);
}
