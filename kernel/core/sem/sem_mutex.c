// SPDX-License-Identifier: GPL-2.0
/*
 * Mutexes (robust), and semaphores. semword.h has the operations that processes execute directly.
 * This file has all operations, for callers of the kernel interface and for waiters
 * (docs/semaphores.md).
 */
#include "sem/sem.h"

static struct sg_sem_want sem_mutex_want_of(struct sg_vol *vol, const struct sg_sem *sem,
					    struct sg_sem_caller *c,
					    int (*look)(struct sg_sem_want *w))
{
	return (struct sg_sem_want){ .vol = vol, .sem = sem, .c = c, .look = look, .takes = true };
}

/* --- mutex ------------------------------------------------------------------------------------ */

static struct sg_semwords *sem_mutex_words_of(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_at(vol, sem->words);
}

/*
 * Locks a recursive mutex once more. @more was loaded before. If the mutex was reset meanwhile, or
 * got another owner, the count starts again.
 */
static bool count_again(struct sg_semwords *w, u64 me, u64 more, u64 now)
{
	return (sg_load64_acquire(&w->word) & SG_SEMW_OWNER) == me &&
	       sg_cas64(&w->more, more, now) == more;
}

static int lock_again(struct sg_vol *vol, const struct sg_sem *sem, u64 me)
{
	struct sg_semwords *w = sem_mutex_words_of(vol, sem);
	u64 more = sg_load64_acquire(&w->more);

	if (!(sem->flags & SG_SEM_RECURSIVE))
		return -EDEADLK;
	if (more >= SG_SEMW_VALUE)
		return -EAGAIN;
	return count_again(w, me, more, more + 1) ? 0 : SG_SEM_CHANGED;
}

static int look_mutex(struct sg_sem_want *w)
{
	u64 *at = sg_sem_word(w->vol, w->sem), word = sg_load64_acquire(at);
	u64 died = word & SG_SEMW_DIED;

	if (word & SG_SEMW_LOST)
		return -ENOTRECOVERABLE;
	if (word & SG_SEMW_OWNER) {
		if ((word & SG_SEMW_OWNER) == w->c->me)
			return lock_again(w->vol, w->sem, w->c->me);
		if (!sg_sem_is_left(w->vol, w->sem, word))
			return sg_sem_not_yet(w, word);
		died = SG_SEMW_DIED;
	}
	if (!sg_sem_may_take(w, word))
		return sg_sem_not_yet(w, word);
	if (sg_cas64(at, word, w->c->me | died | (word & SG_SEMW_WAITERS)) != word)
		return SG_SEM_CHANGED;
	sg_sem_taken(w, word);
	if (!died)
		return 0;
	sg_store64(&sem_mutex_words_of(w->vol, w->sem)->more, 0);
	return -EOWNERDEAD;
}

int sg_sem_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until)
{
	struct sg_sem_want w = sem_mutex_want_of(vol, sem, c, look_mutex);

	return sem->type == SG_SEM_MUTEX ? sg_sem_wait_for(&w, until) : -EINVAL;
}

int sg_sem_unlock(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c)
{
	struct sg_semwords *w = sem_mutex_words_of(vol, sem);
	u64 word, left, more;

	if (sem->type != SG_SEM_MUTEX)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	for (;;) {
		word = sg_load64_acquire(&w->word);
		if ((word & SG_SEMW_OWNER) != c->me)
			return -EPERM;
		more = sg_load64_acquire(&w->more);
		if (!(sem->flags & SG_SEM_RECURSIVE) || !more || more > SG_SEMW_VALUE)
			break;
		if (count_again(w, c->me, more, more - 1))
			return 0;
	}
	do {
		word = sg_load64(&w->word);
		/* the mutex was reset meanwhile, or has another owner */
		if ((word & SG_SEMW_OWNER) != c->me)
			return -EPERM;
		left = sg_sem_flags_left(vol, sem, word);
		if (word & SG_SEMW_DIED)	/* the owner has not made it consistent */
			left |= SG_SEMW_LOST;
	} while (sg_cas64(&w->word, word, left) != word);
	sg_sem_given(vol, sem, left, left & SG_SEMW_LOST);
	return 0;
}

int sg_sem_consistent(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c)
{
	u64 *at = sg_sem_word(vol, sem), word;

	if (sem->type != SG_SEM_MUTEX && sem->type != SG_SEM_RWLOCK)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	do {
		word = sg_load64(at);
		/* the mutex was reset meanwhile, or has a new owner */
		if ((word & SG_SEMW_OWNER) != c->me)
			return -EPERM;
		if (!(word & SG_SEMW_DIED))
			return -EINVAL;
	} while (sg_cas64(at, word, word & ~SG_SEMW_DIED) != word);
	return 0;
}

bool sg_sem_lock_at_once(struct sg_vol *vol, const struct sg_sem *sem,
			 const struct sg_sem_caller *c)
{
	return sem->type == SG_SEM_MUTEX && sg_sem_usable(vol, sem) &&
	       sg_semw_take(sg_sem_word(vol, sem), c->me);
}

/*
 * Unlocks a mutex that is not recursive. A recursive one may be locked more than once, so one store
 * cannot unlock it.
 */
bool sg_sem_unlock_at_once(struct sg_vol *vol, const struct sg_sem *sem,
			   const struct sg_sem_caller *c)
{
	return sem->type == SG_SEM_MUTEX && !(sem->flags & SG_SEM_RECURSIVE) &&
	       sg_sem_usable(vol, sem) && sg_semw_give(sg_sem_word(vol, sem), c->me);
}

/* --- semaphore -------------------------------------------------------------------------------- */

static int look_count(struct sg_sem_want *w)
{
	u64 *at = sg_sem_word(w->vol, w->sem), word = sg_load64_acquire(at);

	if (!(word & SG_SEMW_VALUE) || !sg_sem_may_take(w, word))
		return sg_sem_not_yet(w, word);
	if (sg_cas64(at, word, ((word & SG_SEMW_VALUE) - 1) | (word & SG_SEMW_WAITERS)) != word)
		return SG_SEM_CHANGED;
	sg_sem_taken(w, word);
	return 0;
}

int sg_sem_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until)
{
	struct sg_sem_want w = sem_mutex_want_of(vol, sem, c, look_count);

	return sem->type == SG_SEM_COUNT ? sg_sem_wait_for(&w, until) : -EINVAL;
}

int sg_sem_post(struct sg_vol *vol, const struct sg_sem *sem)
{
	u64 *at = sg_sem_word(vol, sem), word, left;

	if (sem->type != SG_SEM_COUNT)
		return -EINVAL;
	if (!sg_sem_usable(vol, sem))
		return -EIO;
	do {
		word = sg_load64(at);
		if ((word & SG_SEMW_VALUE) == SG_SEMW_VALUE)
			return -EOVERFLOW;
		left = sg_sem_flags_left(vol, sem, word);
	} while (sg_cas64(at, word, ((word & SG_SEMW_VALUE) + 1) | left) != word);
	sg_sem_given(vol, sem, left, false);
	return 0;
}

bool sg_sem_wait_at_once(struct sg_vol *vol, const struct sg_sem *sem)
{
	return sem->type == SG_SEM_COUNT && sg_sem_usable(vol, sem) &&
	       sg_semw_down(sg_sem_word(vol, sem));
}

bool sg_sem_post_at_once(struct sg_vol *vol, const struct sg_sem *sem)
{
	return sem->type == SG_SEM_COUNT && sg_sem_usable(vol, sem) &&
	       sg_semw_up(sg_sem_word(vol, sem));
}
