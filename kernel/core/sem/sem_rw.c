// SPDX-License-Identifier: GPL-2.0
/*
 * Reader-writer locks. The word belongs to the writer, as a mutex's word belongs to its owner.
 * Cells count the readers: one cell for each process that maps the words, and one for each system's
 * callers of the kernel. A cell counts while its owner is live, so dead readers stop counting with
 * it (docs/semaphores.md).
 *
 * A writer sets the word, which blocks new readers, then waits until the current readers have
 * ended. So readers do not starve writers. Writers do not starve readers either: a thread that has
 * waited long requests its turn, and readers get turns like any waiter.
 */
#include "sem/sem.h"

static u64 *cell_at(const struct sg_vol *vol, const struct sg_sem *sem, unsigned int i)
{
	return (u64 *)sg_at(vol, sem->words) + i;
}

u64 sg_sem_cell_value(const struct sg_vol *vol, const struct sg_sem *sem, unsigned int i)
{
	const struct sg_sem_side *side = sg_at(vol, sem->side);
	u64 own = sg_load64_acquire(&side->own[i]);

	/* this check is first, because most cells have no readers */
	if (!own || !sg_load64_acquire(cell_at(vol, sem, i)))
		return 0;
	return sg_sem_cell_counts(vol, own) ? sg_load64(cell_at(vol, sem, i)) : 0;
}

void sg_sem_cell_less(u64 *cell, u64 n)
{
	u64 seen = sg_load64(cell), old;

	while ((old = sg_cas64(cell, seen, seen - SG_MIN(seen, n))) != seen)
		seen = old;
}

static bool has_readers(const struct sg_vol *vol, const struct sg_sem *sem)
{
	unsigned int i;

	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		if (sg_sem_cell_value(vol, sem, i))
			return true;
	return false;
}

/*
 * Recovers systems that died with readers in their cells, because those readers count until then.
 */
static void help_readers(struct sg_vol *vol, const struct sg_sem *sem)
{
	const struct sg_sem_side *side = sg_at(vol, sem->side);
	unsigned int i;

	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		if (sg_sem_cell_value(vol, sem, i))
			sg_help(vol, sg_load64(&side->own[i]));
}

static struct sg_sem_want sem_rw_want_of(struct sg_vol *vol, const struct sg_sem *sem,
					 struct sg_sem_caller *c,
					 int (*look)(struct sg_sem_want *w))
{
	return (struct sg_sem_want){ .vol = vol, .sem = sem, .c = c, .look = look, .takes = true,
		.herd = true };
}

/* --- readers ---------------------------------------------------------------------------------- */

/*
 * Returns 0 if no writer owns the lock. If a dead writer owns it, marks that in the word. @seen:
 * the word as loaded.
 */
static int free_of_writer(struct sg_sem_want *w, u64 *seen)
{
	u64 *at = sg_sem_word(w->vol, w->sem), word = sg_load64_acquire(at), left;

	*seen = word;
	if (!(word & SG_SEMW_OWNER))
		return 0;
	if ((word & SG_SEMW_OWNER) == w->c->me)
		return -EDEADLK;
	if (!sg_sem_is_left(w->vol, w->sem, word))
		return sg_sem_not_yet(w, word);
	left = (word & (SG_SEMW_WAITERS | SG_SEMW_ASKED)) | SG_SEMW_DIED;
	if (sg_is_ours(w->vol))
		sg_cas64(at, word, left);
	return SG_SEM_CHANGED;
}

/* Ends this caller's turn, during which other callers had to wait. */
static void end_turn(struct sg_sem_want *w, u64 word)
{
	if (word & SG_SEMW_ASKED)
		sg_cas64(sg_sem_word(w->vol, w->sem), word, word & ~SG_SEMW_ASKED);
	sg_sem_taken(w, word);
}

static int look_read(struct sg_sem_want *w)
{
	u64 *cell = cell_at(w->vol, w->sem, (unsigned int)w->arg), word, now;
	int err = free_of_writer(w, &word);

	if (err)
		return err;
	if (!sg_sem_may_take(w, word))
		return sg_sem_not_yet(w, word);
	sg_add64(cell, 1);	/* includes a full fence: the check for a writer follows */
	now = sg_load64_acquire(sg_sem_word(w->vol, w->sem));
	if (now & SG_SEMW_OWNER || (now & SG_SEMW_ASKED && !sg_sem_may_take(w, now))) {
		sg_sem_cell_less(cell, 1);	/* unless a reset has already cleared the count */
		/* the writer may have waited for this reader */
		sg_sem_wake_all(w->vol, w->sem);
		return SG_SEM_CHANGED;
	}
	end_turn(w, now);
	return now & SG_SEMW_DIED ? -EOWNERDEAD : 0;
}

int sg_sem_read_lock(struct sg_vol *vol, struct sg_sem *sem, struct sg_sem_caller *c, u64 until)
{
	struct sg_sem_want w = sem_rw_want_of(vol, sem, c, look_read);
	int err;

	if (sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	w.arg = sem->cell;
	/* a process that counted itself before it saw the writer may have made the writer wait */
	if (sem->cell >= SG_SEM_CELL_FIRST && sg_load64(sg_sem_word(vol, sem)) & SG_SEMW_OWNER)
		sg_sem_wake_all(vol, sem);
	err = sg_sem_wait_for(&w, until);
	if (!err || err == -EOWNERDEAD)
		sg_add64(&sem->reads, 1);
	return err;
}

/* Subtracts a reader of this opener; the engine has no count for the cell of a process. */
int sg_sem_read_unlock(struct sg_vol *vol, struct sg_sem *sem)
{
	u64 reads;

	if (sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	reads = sg_load64(&sem->reads);
	while (sem->cell < SG_SEM_CELL_FIRST) {
		u64 seen = reads ? sg_cas64(&sem->reads, reads, reads - 1) : 0;

		if (!reads)
			return -EPERM;
		if (seen == reads)
			break;
		reads = seen;
	}
	sg_sem_cell_less(cell_at(vol, sem, sem->cell), 1);
	if (sg_load64(sg_sem_word(vol, sem)))
		sg_sem_wake_all(vol, sem);
	return 0;
}

/* --- writers ---------------------------------------------------------------------------------- */

static int look_write(struct sg_sem_want *w)
{
	u64 *at = sg_sem_word(w->vol, w->sem), word;
	int err = free_of_writer(w, &word);

	if (err)
		return err;
	if (!sg_sem_may_take(w, word))
		return sg_sem_not_yet(w, word);
	if (sg_cas64(at, word, w->c->me | (word & (SG_SEMW_WAITERS | SG_SEMW_DIED))) != word)
		return SG_SEM_CHANGED;
	sg_sem_taken(w, word);
	return word & SG_SEMW_DIED ? -EOWNERDEAD : 0;
}

static int look_drained(struct sg_sem_want *w)
{
	u64 word = sg_load64_acquire(sg_sem_word(w->vol, w->sem));

	if ((word & SG_SEMW_OWNER) != w->c->me)
		/*
		 * after a wild store, or a forced reset: this caller does not own the lock any more
		 */
		return -EPERM;
	if (!has_readers(w->vol, w->sem))
		return word & SG_SEMW_DIED ? -EOWNERDEAD : 0;
	if (w->queued)
		help_readers(w->vol, w->sem);
	return sg_sem_not_yet(w, word);
}

int sg_sem_drain(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until)
{
	struct sg_sem_want w = sem_rw_want_of(vol, sem, c, look_drained);
	int err;

	if (sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	/* this caller owns the word, so turns of other callers do not matter */
	w.takes = false;
	err = sg_sem_wait_for(&w, until);
	if (err && err != -EOWNERDEAD && err != -EPERM)
		sg_sem_write_unlock(vol, sem, c);
	return err;
}

int sg_sem_write_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		      u64 until)
{
	struct sg_sem_want w = sem_rw_want_of(vol, sem, c, look_write);
	int err;

	if (sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	err = sg_sem_wait_for(&w, until);
	return err && err != -EOWNERDEAD ? err : sg_sem_drain(vol, sem, c, until);
}

/*
 * Releases the word. The mark of a dead writer remains until another writer makes the object
 * consistent.
 */
int sg_sem_write_unlock(struct sg_vol *vol, const struct sg_sem *sem,
			const struct sg_sem_caller *c)
{
	u64 *at = sg_sem_word(vol, sem), word, left;

	if (sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	do {
		word = sg_load64(at);
		if ((word & SG_SEMW_OWNER) != c->me)
			return -EPERM;
		left = sg_sem_flags_left(vol, sem, word) | (word & SG_SEMW_DIED);
	} while (sg_cas64(at, word, left) != word);
	sg_sem_given(vol, sem, left, true);
	return 0;
}
