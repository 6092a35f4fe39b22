// SPDX-License-Identifier: GPL-2.0
/*
 * Conditions, event counters, barriers: objects on which many threads wait together. Their word
 * only grows. A condition's word counts signals; a barrier's word counts how often its threads have
 * met (docs/semaphores.md).
 */
#include "sem/sem.h"

static struct sg_sem_want sem_event_want_of(struct sg_vol *vol, const struct sg_sem *sem,
					    struct sg_sem_caller *c, u64 arg)
{
	return (struct sg_sem_want){ .vol = vol, .sem = sem, .c = c, .arg = arg, .herd = true };
}

/* Adds @by to the word. Returns the new word, or 0 if the count would be too large. */
static u64 count_up(struct sg_vol *vol, const struct sg_sem *sem, u64 by)
{
	u64 *at = sg_sem_word(vol, sem), word, now;

	do {
		word = sg_load64(at);
		if ((word & SG_SEMW_COUNT) + by > SG_SEMW_COUNT || by > SG_SEMW_COUNT)
			return 0;
		now = ((word & SG_SEMW_COUNT) + by) | sg_sem_flags_left(vol, sem, word);
	} while (sg_cas64(at, word, now) != word);
	return now;
}

/* --- condition -------------------------------------------------------------------------------- */

int sg_sem_cond_prepare(struct sg_vol *vol, const struct sg_sem *sem, u64 *seen)
{
	if (sem->type != SG_SEM_COND)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	*seen = sg_semw_count(sg_sem_word(vol, sem));
	return 0;
}

static int look_cond(struct sg_sem_want *w)
{
	u64 word = sg_load64_acquire(sg_sem_word(w->vol, w->sem));

	return (word & SG_SEMW_COUNT) != w->arg ? 0 : sg_sem_not_yet(w, word);
}

int sg_sem_cond_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		     u64 seen, u64 until)
{
	struct sg_sem_want w = sem_event_want_of(vol, sem, c, seen);

	w.look = look_cond;
	return sem->type == SG_SEM_COND ? sg_sem_wait_for(&w, until) : -EINVAL;
}

int sg_sem_cond_signal(struct sg_vol *vol, const struct sg_sem *sem, bool all)
{
	u64 now;

	if (sem->type != SG_SEM_COND)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	now = count_up(vol, sem, 1);
	if (!now)
		return -EOVERFLOW;
	sg_sem_given(vol, sem, now, all);
	return 0;
}

/* --- event counter ---------------------------------------------------------------------------- */

static int look_event(struct sg_sem_want *w)
{
	u64 word = sg_load64_acquire(sg_sem_word(w->vol, w->sem));

	return (word & SG_SEMW_COUNT) >= w->arg ? 0 : sg_sem_not_yet(w, word);
}

int sg_sem_await(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		 u64 count, u64 until)
{
	struct sg_sem_want w = sem_event_want_of(vol, sem, c, count);

	w.look = look_event;
	return sem->type == SG_SEM_EVENT ? sg_sem_wait_for(&w, until) : -EINVAL;
}

int sg_sem_advance(struct sg_vol *vol, const struct sg_sem *sem, u64 by)
{
	u64 now;

	if (sem->type != SG_SEM_EVENT)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	if (!by)
		return 0;
	now = count_up(vol, sem, by);
	if (!now)
		return -EOVERFLOW;
	sg_sem_given(vol, sem, now, true);
	return 0;
}

/* --- barrier ---------------------------------------------------------------------------------- */

static struct sg_sem_side *side_of(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_at(vol, sem->side);
}

static u64 phase_of(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_load64_acquire(sg_sem_word(vol, sem)) & SG_SEMW_COUNT;
}

/*
 * Counts the arrivals of live systems. The arrivals of dead systems do not count, because their
 * threads arrive again, or never.
 */
u64 sg_sem_arrived(const struct sg_vol *vol, const struct sg_sem *sem)
{
	const struct sg_sem_side *side = side_of(vol, sem);
	u64 phase = phase_of(vol, sem), sum = 0;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (sg_sem_cell_counts(vol, sg_load64(&side->own[SG_SEM_CELL_KERNEL + i])) &&
		    sg_load64(&side->own[SG_SEM_PHASE_AT + i]) == phase)
			sum += sg_load64(&side->own[SG_SEM_COUNT_AT + i]) & SG_SEMW_VALUE;
	return sum;
}

/* Adds one to this system's arrivals in this phase. */
static void arrive(struct sg_vol *vol, const struct sg_sem *sem, u64 phase)
{
	struct sg_sem_side *side = side_of(vol, sem);
	u64 *count = &side->own[SG_SEM_COUNT_AT + vol->slot];
	u64 *at = &side->own[SG_SEM_PHASE_AT + vol->slot];

	sg_spin_lock(&vol->spin);
	if (sg_load64(at) != phase) {
		sg_store64(count, 0);
		sg_store64(at, phase);
	}
	sg_store64(count, sg_load64(count) + 1);
	sg_spin_unlock(&vol->spin);
}

static void sem_event_withdraw(struct sg_vol *vol, const struct sg_sem *sem, u64 phase)
{
	struct sg_sem_side *side = side_of(vol, sem);
	u64 *count = &side->own[SG_SEM_COUNT_AT + vol->slot];

	sg_spin_lock(&vol->spin);
	if (sg_load64(&side->own[SG_SEM_PHASE_AT + vol->slot]) == phase && sg_load64(count))
		sg_store64(count, sg_load64(count) - 1);
	sg_spin_unlock(&vol->spin);
}

static u64 lock_of(const struct sg_sem *sem)
{
	return sem->rec + offsetof(struct sg_sem_record, lock);
}

/* Arrives at a barrier. Returns 1 if all threads have arrived, and may continue. */
static int come(struct sg_vol *vol, const struct sg_sem *sem, u64 *phase)
{
	int err = sg_lock(vol, lock_of(sem));
	bool all = false;
	u64 now = 0;

	if (err)
		return err;
	if (sg_sem_lost(vol, sem)) {
		sg_unlock(vol, lock_of(sem));
		return -EIO;
	}
	*phase = phase_of(vol, sem);
	arrive(vol, sem, *phase);
	if (sg_sem_arrived(vol, sem) >= sg_load64(&sg_sem_record(vol, sem)->initial)) {
		now = count_up(vol, sem, 1);
		all = true;
	}
	sg_unlock(vol, lock_of(sem));
	if (all)
		sg_sem_given(vol, sem, now, true);
	return all;
}

/*
 * Withdraws the arrival of a caller that stops waiting, unless all threads have met meanwhile. The
 * barrier's lock decides for all systems which of these two events came first. If the lock's holder
 * is paused, the caller withdraws its arrival without the lock after a long wait. Otherwise the
 * barrier would count an absent caller, and open too early each time.
 */
static int go(struct sg_vol *vol, const struct sg_sem *sem, u64 phase, int err)
{
	bool locked = !sg_lock_sure(vol, lock_of(sem));

	if (sg_is_ours(vol) && !sg_sem_lost(vol, sem)) {
		if (phase_of(vol, sem) != phase)
			err = 0;
		else
			sem_event_withdraw(vol, sem, phase);
	}
	if (locked)
		sg_unlock(vol, lock_of(sem));
	return err;
}

static int look_phase(struct sg_sem_want *w)
{
	u64 word = sg_load64_acquire(sg_sem_word(w->vol, w->sem));

	return (word & SG_SEMW_COUNT) != w->arg ? 0 : sg_sem_not_yet(w, word);
}

int sg_sem_meet(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until)
{
	struct sg_sem_want w;
	u64 phase;
	int err;

	if (sem->type != SG_SEM_BARRIER)
		return -EINVAL;
	err = come(vol, sem, &phase);
	if (err)
		return err;
	w = sem_event_want_of(vol, sem, c, phase);
	w.look = look_phase;
	err = sg_sem_wait_for(&w, until);
	return err && err != -EIO ? go(vol, sem, phase, err) : err;
}
