// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores, step by step. The test checks the guarantees of each kind of object, as POSIX
 * defines semaphores, robust mutexes and reader-writer locks. It checks the state of an object
 * after the death of its owner: a thread, a process, or a system. It also checks words that a
 * member may have forged.
 */
#include "sem_pair.h"

/* --- mutex ------------------------------------------------------------------------------------ */

static void mutex(void)
{
	struct sg_sem m, m2;
	u64 start;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	m2 = sem_of(&other, "m");
	CHECK_EQ(sg_sem_unlock(&t.v, &m, me), -EPERM);
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EDEADLK);
	CHECK_EQ(sg_sem_lock(&t.v, &m, you, 0), -EAGAIN);
	CHECK_EQ(sg_sem_lock(&other, &m2, they, 0), -EAGAIN);
	start = sg_ticks();
	CHECK_EQ(sg_sem_lock(&other, &m2, they, in_ms(30)), -ETIMEDOUT);
	CHECK(sg_ticks() - start >= 30 * MS);
	CHECK_EQ(sg_load64(&sg_sem_record(&t.v, &m)->waits.waiters), 0);
	CHECK_EQ(sg_sem_unlock(&t.v, &m, you), -EPERM);
	CHECK_EQ(sg_sem_unlock(&other, &m2, they), -EPERM);
	CHECK_EQ(sg_sem_consistent(&t.v, &m, me), -EINVAL);
	CHECK_EQ(stat_of(&other, "m").slot, t.v.slot);
	CHECK_EQ(stat_of(&other, "m").pid, getpid());
	CHECK_EQ(stat_of(&other, "m").tid, 1);
	CHECK(!strcmp(stat_of(&other, "m").comm, "tester"));
	CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	CHECK_EQ(stat_of(&other, "m").slot, -1);
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	/* the same holds for processes that lock without the kernel */
	CHECK(!sg_semw_take(sg_sem_word(&t.v, &m), me->me));
	CHECK(sg_semw_give(sg_sem_word(&other, &m2), they->me));
	CHECK(sg_semw_take(sg_sem_word(&t.v, &m), me->me));
	CHECK_EQ(sg_sem_lock(&other, &m2, they, in_ms(20)), -ETIMEDOUT);
	CHECK(!sg_semw_give(sg_sem_word(&t.v, &m), me->me));	/* fails: a thread has slept */
	CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	CHECK_EQ(sg_load64(sg_sem_word(&t.v, &m)), 0);
	end();
}

static void recursive(void)
{
	struct sg_sem m;
	unsigned int i;

	begin();
	m = sem_make(&t.v, "r", SG_SEM_MUTEX, SG_SEM_RECURSIVE, 0);
	for (i = 0; i < 5; i++)
		CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	for (i = 0; i < 5; i++) {
		CHECK_EQ(sg_sem_lock(&t.v, &m, you, 0), -EAGAIN);
		CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	}
	CHECK_EQ(sg_sem_unlock(&t.v, &m, me), -EPERM);
	CHECK_OK(sg_sem_lock(&t.v, &m, you, 0));
	CHECK_OK(sg_sem_lock(&t.v, &m, you, 0));
	/* the owner dies after it has locked the mutex several times */
	caller_end(&t.v, you);
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EOWNERDEAD);
	CHECK_OK(sg_sem_consistent(&t.v, &m, me));
	CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	CHECK_EQ(sg_sem_unlock(&t.v, &m, me), -EPERM);
	you = caller_of(&t.v, 2);
	sg_store64((u64 *)sg_at(&t.v, m.words) + 1, SG_SEMW_VALUE);
	CHECK_OK(sg_sem_lock(&t.v, &m, you, 0));
	CHECK_EQ(sg_sem_lock(&t.v, &m, you, 0), -EAGAIN);	/* the count is at its limit */
	end();
}

/*
 * Tests a mutex after an owner's death, with pthread_mutex_consistent()'s counterpart and without
 * it.
 */
static void robust(void)
{
	struct sg_sem m, m2;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, SG_SEM_MAPPED, 0);
	m2 = sem_of(&other, "m");
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	caller_end(&t.v, me);
	me = caller_of(&t.v, 1);	/* the same member with another owner number */
	CHECK_EQ(sg_sem_unlock(&t.v, &m, me), -EPERM);
	CHECK(!sg_semw_take(sg_sem_word(&t.v, &m), me->me));
	CHECK_EQ(sg_sem_lock(&other, &m2, they, 0), -EOWNERDEAD);
	CHECK(stat_of(&t.v, "m").died);
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EAGAIN);
	/*
	 * the next owner dies before it makes the mutex consistent: its successor gets EOWNERDEAD
	 * as well
	 */
	caller_end(&other, they);
	they = caller_of(&other, 3);
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EOWNERDEAD);
	CHECK_EQ(sg_sem_consistent(&t.v, &m, you), -EPERM);
	CHECK_OK(sg_sem_consistent(&t.v, &m, me));
	CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	CHECK_OK(sg_sem_unlock(&other, &m2, they));
	/* the owner unlocks an inconsistent mutex: no caller can lock it any more */
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	caller_end(&t.v, me);
	me = caller_of(&t.v, 1);
	CHECK_EQ(sg_sem_lock(&other, &m2, they, 0), -EOWNERDEAD);
	CHECK_OK(sg_sem_unlock(&other, &m2, they));
	CHECK(stat_of(&t.v, "m").lost);
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, SG_SEM_NEVER), -ENOTRECOVERABLE);
	CHECK_EQ(sg_sem_lock(&other, &m2, they, 0), -ENOTRECOVERABLE);
	CHECK(!sg_semw_take(sg_sem_word(&t.v, &m), me->me));
	CHECK_OK(sg_sem_reset(&t.v, "m", 1, SG_SEM_ANY));
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	end();
}

/* Until the replay, a dead system still has its locks (docs/protocol.md, section 3). */
static void system_dies(void)
{
	struct sg_sem m, rw, m2, rw2;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	m2 = sem_of(&other, "m");
	rw2 = sem_of(&other, "rw");
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	CHECK_OK(sg_sem_read_lock(&other, &rw2, they, 0));
	/* the other system may only be paused */
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, in_ms(30)), -ETIMEDOUT);
	CHECK_EQ(sg_sem_write_lock(&t.v, &rw, me, in_ms(30)), -ETIMEDOUT);
	kill_other(false);
	/* a caller that wants the lock recovers the system itself */
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, in_ms(1000)), -EOWNERDEAD);
	CHECK_EQ(SG_SLOT_STATE(sg_load64(sg_state_word(&t.v, (unsigned int)t.v.slot + 1))),
		 SG_SLOT_FREE);
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));	/* dead readers leave no state */
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	/*
	 * a dead process that read without the kernel leaves no state after its slot has a new
	 * incarnation
	 */
	join_other();
	CHECK_OK(try_open(&other, "rw", 0, true, &rw2));
	CHECK(sg_semw_read(sg_sem_word(&other, &rw2), sg_sem_word(&other, &rw2) + rw2.cell));
	CHECK_EQ(sg_sem_write_lock(&t.v, &rw, me, 0), -EAGAIN);
	kill_other(true);
	join_other();
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	/* this system still sees the dead reader's cell, until it opens the lock again */
	CHECK(!sg_semw_no_readers(sg_sem_word(&t.v, &rw)));
	sg_sem_close(&t.v, &rw);
	rw = sem_of(&t.v, "rw");
	CHECK(sg_semw_no_readers(sg_sem_word(&t.v, &rw)));	/* the open has cleared the cell */
	/* the same slot and member with a new incarnation */
	m2 = sem_of(&other, "m");
	rw2 = sem_of(&other, "rw");
	CHECK_EQ(sg_sem_read_unlock(&other, &rw2), -EPERM);
	CHECK_OK(sg_sem_write_lock(&other, &rw2, they, 0));
	kill_other(false);
	CHECK_EQ(sg_sem_read_lock(&t.v, &rw, me, in_ms(1000)), -EOWNERDEAD);
	CHECK_OK(sg_sem_read_unlock(&t.v, &rw));
	/* readers get EOWNERDEAD until a writer makes the lock consistent */
	CHECK_EQ(sg_sem_read_lock(&t.v, &rw, me, 0), -EOWNERDEAD);
	CHECK_OK(sg_sem_read_unlock(&t.v, &rw));
	CHECK_EQ(sg_sem_write_lock(&t.v, &rw, me, 0), -EOWNERDEAD);
	CHECK_OK(sg_sem_consistent(&t.v, &rw, me));
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	CHECK_OK(sg_sem_read_lock(&t.v, &rw, me, 0));
	CHECK_OK(sg_sem_read_unlock(&t.v, &rw));
	join_other();
	end();
}

/* A fenced system owns no locks, and stores nothing. */
static void declared_dead(void)
{
	struct sg_sem m, m2, c2;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	sem_make(&t.v, "c", SG_SEM_COUNT, 0, 5);
	m2 = sem_of(&other, "m");
	c2 = sem_of(&other, "c");
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	CHECK_OK(sg_fence_slot(&t.v, (unsigned int)other.slot, other.incarnation));
	CHECK_EQ(sg_sem_unlock(&other, &m2, they), -EIO);
	CHECK_EQ(sg_sem_wait(&other, &c2, they, 0), -EIO);
	CHECK_EQ(sg_sem_wait(&other, &c2, they, SG_SEM_NEVER), -EIO);
	CHECK_EQ(sg_sem_post(&other, &c2), -EIO);
	CHECK(!sg_sem_unlock_at_once(&other, &m2, they));
	CHECK(!sg_sem_wait_at_once(&other, &c2) && !sg_sem_post_at_once(&other, &c2));
	CHECK_EQ(try_open(&other, "m", 0, false, &m2), -EIO);
	CHECK_EQ(stat_of(&t.v, "c").value, 5);
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, in_ms(1000)), -EOWNERDEAD);
	sg_sem_close(&other, &m2);
	sg_sem_exit(&other, they);
	CHECK_EQ(sg_load64(sg_sem_word(&t.v, &m)) & SG_SEMW_OWNER, me->me);
	sg_free(they);
	sg_leave(&other);
	join_other();
	end();
}

/* --- after the last user has closed the object or died ---------------------------------------- */

static void closed_in_order(void)
{
	struct sg_sem c, m, e;

	begin();
	c = sem_make(&t.v, "c", SG_SEM_COUNT, SG_SEM_MAPPED, 5);
	e = sem_make(&t.v, "e", SG_SEM_EVENT, 0, 0);
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	CHECK_OK(sg_sem_wait(&t.v, &c, me, 0));
	CHECK_OK(sg_sem_advance(&t.v, &e, 9));
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	sg_sem_close(&t.v, &c);
	sg_sem_close(&t.v, &e);
	sg_sem_close(&t.v, &m);		/* closes a mutex that it holds */
	CHECK_EQ(stat_of(&t.v, "c").value, 4);
	caller_end(&t.v, me);
	caller_end(&t.v, you);
	caller_end(&other, they);
	sg_leave(&other);
	tvol_recheck(&t);
	CHECK_EQ(stat_of(&t.v, "c").value, 4);
	CHECK_EQ(stat_of(&t.v, "e").value, 9);
	CHECK(stat_of(&t.v, "m").died);
	c = sem_of(&t.v, "c");
	CHECK_EQ(stat_of(&t.v, "c").value, 4);
	sg_sem_close(&t.v, &c);
	tvol_drop(&t);
}

/*
 * All users died: objects are as after creation, but locks report the death, and some keep counts.
 */
static void all_died(void)
{
	struct sg_sem c, m, e, rw, b;

	begin();
	c = sem_make(&t.v, "c", SG_SEM_COUNT, SG_SEM_MAPPED, 5);
	e = sem_make(&t.v, "e", SG_SEM_EVENT, 0, 0);
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, 0, 0);
	b = sem_make(&t.v, "b", SG_SEM_BARRIER, 0, 2);
	CHECK_OK(sg_sem_wait(&t.v, &c, me, 0));
	CHECK_OK(sg_sem_wait(&t.v, &c, me, 0));
	CHECK_OK(sg_sem_advance(&t.v, &e, 9));
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	CHECK_OK(sg_sem_read_lock(&t.v, &rw, me, 0));
	CHECK_EQ(sg_sem_meet(&t.v, &b, me, in_ms(5)), -ETIMEDOUT);
	sg_free(me);
	sg_free(you);
	sg_free(they);
	sg_abandon(&other);
	tvol_crash(&t);
	tvol_join(&t);
	me = caller_of(&t.v, 1);
	c = sem_of(&t.v, "c");
	CHECK_EQ(stat_of(&t.v, "c").value, 5);
	e = sem_of(&t.v, "e");
	CHECK_EQ(stat_of(&t.v, "e").value, 9);
	m = sem_of(&t.v, "m");
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EOWNERDEAD);
	rw = sem_of(&t.v, "rw");
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));
	b = sem_of(&t.v, "b");
	CHECK_EQ(stat_of(&t.v, "b").value, 0);
	CHECK_EQ(sg_sem_meet(&t.v, &b, me, in_ms(5)), -ETIMEDOUT);
	/* the state stays while one system has the object open */
	join_other();
	c = sem_of(&other, "c");
	CHECK_OK(sg_sem_wait(&other, &c, they, 0));
	kill_other(true);
	c = sem_of(&t.v, "c");
	CHECK_EQ(stat_of(&t.v, "c").value, 4);
	caller_end(&t.v, me);
	tvol_drop(&t);
}

/* The only user has died, and another system gets its slot before the object is opened again. */
static void all_died_long_ago(void)
{
	struct sg_sem c;

	begin();
	c = sem_make(&other, "c", SG_SEM_COUNT, 0, 5);
	CHECK_OK(sg_sem_wait(&other, &c, they, 0));
	kill_other(true);
	join_other();
	CHECK_EQ(stat_of(&t.v, "c").value, 4);	/* no system has opened the object since */
	c = sem_of(&t.v, "c");
	CHECK_EQ(stat_of(&t.v, "c").value, 5);
	CHECK_OK(sg_sem_wait(&t.v, &c, me, 0));
	sg_sem_close(&t.v, &c);
	c = sem_of(&other, "c");
	CHECK_EQ(stat_of(&t.v, "c").value, 4);	/* a close keeps the value */
	end();
}

/* --- objects of the other kinds, without waits ------------------------------------------------ */

static void semaphore(void)
{
	struct sg_sem c;
	u64 start;

	begin();
	c = sem_make(&t.v, "c", SG_SEM_COUNT, 0, 2);
	CHECK_OK(sg_sem_wait(&t.v, &c, me, 0));
	CHECK(sg_semw_down(sg_sem_word(&t.v, &c)));
	CHECK(!sg_semw_down(sg_sem_word(&t.v, &c)));
	CHECK_EQ(sg_sem_wait(&t.v, &c, me, 0), -EAGAIN);
	start = sg_ticks();
	CHECK_EQ(sg_sem_wait(&t.v, &c, me, in_ms(25)), -ETIMEDOUT);
	CHECK(sg_ticks() - start >= 25 * MS);
	CHECK_EQ(sg_sem_wait(&t.v, &c, me, 1), -ETIMEDOUT);	/* the time has passed */
	CHECK(!sg_semw_up(sg_sem_word(&t.v, &c)));	/* fails because of the flag of a sleeper */
	CHECK_OK(sg_sem_post(&t.v, &c));
	CHECK(sg_semw_up(sg_sem_word(&t.v, &c)));
	CHECK_EQ(stat_of(&t.v, "c").value, 2);
	sg_store64(sg_sem_word(&t.v, &c), SG_SEMW_VALUE - 1);
	CHECK(sg_semw_up(sg_sem_word(&t.v, &c)));
	CHECK(!sg_semw_up(sg_sem_word(&t.v, &c)));
	CHECK_EQ(sg_sem_post(&t.v, &c), -EOVERFLOW);
	CHECK_EQ(stat_of(&t.v, "c").value, SG_SEMW_VALUE);
	end();
}

/* Calls without the kernel fail for operations that need more than a store of one word. */
static void at_once(void)
{
	struct sg_sem m, r, c;
	u64 *word;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	r = sem_make(&t.v, "r", SG_SEM_MUTEX, SG_SEM_RECURSIVE, 0);
	c = sem_make(&t.v, "c", SG_SEM_COUNT, 0, 1);
	CHECK(sg_sem_lock_at_once(&t.v, &m, me) && !sg_sem_lock_at_once(&t.v, &m, me));
	CHECK(!sg_sem_lock_at_once(&t.v, &m, you) && !sg_sem_unlock_at_once(&t.v, &m, you));
	CHECK(sg_sem_unlock_at_once(&t.v, &m, me) && !sg_sem_unlock_at_once(&t.v, &m, me));
	CHECK(sg_sem_lock_at_once(&t.v, &r, me));
	CHECK_OK(sg_sem_lock(&t.v, &r, me, 0));
	CHECK(!sg_sem_unlock_at_once(&t.v, &r, me));
	CHECK(sg_sem_wait_at_once(&t.v, &c) && !sg_sem_wait_at_once(&t.v, &c));
	CHECK(sg_sem_post_at_once(&t.v, &c));
	CHECK(!sg_sem_lock_at_once(&t.v, &c, me) && !sg_sem_unlock_at_once(&t.v, &c, me));
	CHECK(!sg_sem_wait_at_once(&t.v, &m) && !sg_sem_post_at_once(&t.v, &m));
	word = sg_sem_word(&t.v, &c);	/* the word shows a sleeping thread */
	sg_store64(word, sg_load64(word) | SG_SEMW_WAITERS);
	CHECK(!sg_sem_post_at_once(&t.v, &c) && sg_sem_wait_at_once(&t.v, &c));
	CHECK(sg_sem_lock_at_once(&t.v, &m, you));
	caller_end(&t.v, you);
	you = caller_of(&t.v, 2);
	CHECK(!sg_sem_lock_at_once(&t.v, &m, me));
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, 0), -EOWNERDEAD);
	CHECK(!sg_sem_unlock_at_once(&t.v, &m, me));
	end();
}

static void event(void)
{
	struct sg_sem e;

	begin();
	e = sem_make(&t.v, "e", SG_SEM_EVENT, 0, 0);
	CHECK_OK(sg_sem_await(&t.v, &e, me, 0, 0));
	CHECK_EQ(sg_sem_await(&t.v, &e, me, 1, 0), -EAGAIN);
	CHECK_EQ(sg_sem_await(&t.v, &e, me, 1, in_ms(10)), -ETIMEDOUT);
	CHECK(!sg_semw_advance(sg_sem_word(&t.v, &e)));
	CHECK_OK(sg_sem_advance(&t.v, &e, 0));
	CHECK_OK(sg_sem_advance(&t.v, &e, 3));
	CHECK(sg_semw_advance(sg_sem_word(&t.v, &e)));
	CHECK_EQ(sg_semw_count(sg_sem_word(&t.v, &e)), 4);
	CHECK_OK(sg_sem_await(&t.v, &e, me, 4, 0));
	CHECK_EQ(sg_sem_await(&t.v, &e, me, 5, 0), -EAGAIN);
	CHECK_EQ(sg_sem_advance(&t.v, &e, SG_SEMW_COUNT - 3), -EOVERFLOW);
	CHECK_EQ(sg_sem_advance(&t.v, &e, ~0ULL), -EOVERFLOW);
	CHECK_OK(sg_sem_advance(&t.v, &e, SG_SEMW_COUNT - 4));
	CHECK_EQ(sg_sem_advance(&t.v, &e, 1), -EOVERFLOW);
	CHECK(!sg_semw_advance(sg_sem_word(&t.v, &e)));
	end();
}

static void rwlock(void)
{
	struct sg_sem a, b, u;
	u64 *word, *cell;

	begin();
	a = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	b = sem_of(&other, "rw");
	CHECK_OK(try_open(&t.v, "rw", SG_SEM_RWLOCK, true, &u));
	CHECK(u.cell >= SG_SEM_CELL_FIRST && a.cell == SG_SEM_CELL_KERNEL + (unsigned int)t.v.slot);
	word = sg_sem_word(&t.v, &u);
	cell = word + u.cell;
	CHECK_OK(sg_sem_read_lock(&t.v, &a, me, 0));
	CHECK_OK(sg_sem_read_lock(&t.v, &a, you, 0));
	CHECK_OK(sg_sem_read_lock(&other, &b, they, 0));
	CHECK(sg_semw_read(word, cell));
	CHECK_EQ(stat_of(&t.v, "rw").value, 4);
	CHECK_EQ(sg_sem_write_lock(&other, &b, they, 0), -EAGAIN);
	CHECK_OK(sg_sem_read_unlock(&other, &b));
	CHECK_EQ(sg_sem_read_unlock(&other, &b), -EPERM);
	CHECK_OK(sg_sem_read_unlock(&t.v, &a));
	CHECK_OK(sg_sem_read_unlock(&t.v, &a));
	/* the process still holds its read lock */
	CHECK_EQ(sg_sem_write_lock(&other, &b, they, 0), -EAGAIN);
	CHECK_EQ(sg_sem_write_lock(&other, &b, they, in_ms(10)), -ETIMEDOUT);
	sg_semw_unread(word, cell);
	CHECK_OK(sg_sem_write_lock(&other, &b, they, 0));
	CHECK_EQ(sg_sem_write_lock(&other, &b, they, 0), -EDEADLK);
	CHECK_EQ(sg_sem_read_lock(&other, &b, they, 0), -EDEADLK);
	CHECK_EQ(sg_sem_read_lock(&t.v, &a, me, 0), -EAGAIN);
	CHECK_EQ(sg_sem_write_lock(&t.v, &a, me, 0), -EAGAIN);
	CHECK(!sg_semw_read(word, cell));
	CHECK_EQ(sg_load64(cell), 0);
	CHECK_EQ(sg_sem_write_unlock(&t.v, &a, me), -EPERM);
	CHECK_OK(sg_sem_write_unlock(&other, &b, they));
	/* a process write-locks without the kernel, and another one dies while it reads */
	CHECK(sg_semw_take(word, me->me));
	CHECK(sg_semw_no_readers(word));
	CHECK_OK(sg_sem_drain(&t.v, &u, me, 0));
	CHECK(sg_semw_give(word, me->me));
	CHECK(sg_semw_read(word, cell));
	CHECK(sg_semw_read(word, cell));
	CHECK(!sg_semw_no_readers(word));
	CHECK_EQ(sg_sem_write_lock(&other, &b, they, 0), -EAGAIN);
	sg_sem_close(&t.v, &u);
	CHECK(sg_semw_no_readers(word));
	CHECK_OK(sg_sem_write_lock(&other, &b, they, 0));
	CHECK_OK(sg_sem_write_unlock(&other, &b, they));
	/* a process that read through its kernel leaves no reader either */
	CHECK_OK(sg_sem_read_lock(&t.v, &a, me, 0));
	u = sem_of(&t.v, "rw");
	CHECK_OK(sg_sem_read_lock(&t.v, &u, you, 0));
	sg_sem_close(&t.v, &a);
	CHECK_EQ(stat_of(&t.v, "rw").value, 1);
	sg_sem_close(&t.v, &u);
	CHECK_EQ(stat_of(&t.v, "rw").value, 0);
	end();
}

/*
 * A mount is frozen, or has become read-only. A close immediately releases the object's read locks,
 * so that writers continue. The remaining work of the close is done when the mount can be changed
 * again.
 */
static void closed_while_read_only(void)
{
	struct sg_sem rw, rw2, mapped;
	u64 *users, own;

	begin();
	own = 1ULL << t.v.slot;
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	users = &sg_sem_record(&t.v, &rw)->users;
	CHECK_OK(sg_sem_open(&t.v, "rw", 2, SG_SEM_RWLOCK, true, &mapped));
	rw2 = sem_of(&other, "rw");
	CHECK_OK(sg_sem_read_lock(&t.v, &rw, me, 0));
	CHECK(mapped.cell >= SG_SEM_CELL_FIRST);
	CHECK(sg_semw_read(sg_sem_word(&t.v, &mapped), sg_sem_word(&t.v, &mapped) + mapped.cell));
	t.v.read_only = true;
	sg_sem_close(&t.v, &rw);
	CHECK_EQ(sg_sem_write_lock(&other, &rw2, they, in_ms(50)), -ETIMEDOUT);
	sg_sem_close(&t.v, &mapped);
	CHECK_OK(sg_sem_write_lock(&other, &rw2, they, in_ms(50)));
	CHECK_OK(sg_sem_write_unlock(&other, &rw2, they));
	CHECK(sg_load64(users) & own);
	sg_settle(&t.v);
	CHECK(sg_load64(users) & own);
	t.v.read_only = false;
	sg_settle(&t.v);
	CHECK(!(sg_load64(users) & own));
	sg_sem_close(&other, &rw2);
	end();
}

/*
 * A forced reset comes while a process reads. The process later releases a lock that no longer
 * exists.
 */
static void reset_beside_readers(void)
{
	struct sg_sem rw, rw2;
	u64 *word, *cell;

	begin();
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	rw2 = sem_of(&other, "rw");
	word = sg_sem_word(&t.v, &rw);
	cell = word + rw.cell;
	CHECK(sg_semw_read(word, cell));
	CHECK_OK(sg_sem_reset(&other, "rw", 2, SG_SEM_ANY));
	CHECK(sg_semw_unread(word, cell));
	CHECK_EQ(sg_load64(cell), 0);
	CHECK_OK(sg_sem_write_lock(&other, &rw2, they, in_ms(50)));
	CHECK_OK(sg_sem_write_unlock(&other, &rw2, they));
	end();
}


/* With more processes than cells, the processes without a cell read through their kernel. */
static void cells_run_out(void)
{
	static struct sg_sem u[SG_SEM_CELLS];
	unsigned int i, own = 0;
	struct sg_sem b;

	begin();
	b = sem_make(&other, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	for (i = 0; i < SG_ARRAY_SIZE(u); i++) {
		CHECK_OK(try_open(&t.v, "rw", 0, true, &u[i]));
		own += u[i].cell >= SG_SEM_CELL_FIRST;
		CHECK_OK(sg_sem_read_lock(&t.v, &u[i], me, 0));
	}
	CHECK_EQ(own, SG_SEM_CELLS - SG_SEM_CELL_FIRST);
	CHECK_EQ(stat_of(&t.v, "rw").value, SG_ARRAY_SIZE(u));
	for (i = 0; i < SG_ARRAY_SIZE(u); i++) {
		CHECK_EQ(sg_sem_write_lock(&other, &b, they, 0), -EAGAIN);
		sg_sem_close(&t.v, &u[i]);
	}
	CHECK_OK(sg_sem_write_lock(&other, &b, they, 0));
	CHECK_OK(sg_sem_write_unlock(&other, &b, they));
	CHECK_OK(try_open(&t.v, "rw", 0, true, &u[0]));
	CHECK(u[0].cell >= SG_SEM_CELL_FIRST);
	end();
}

static void barrier(void)
{
	struct sg_sem b, b2;

	begin();
	b = sem_make(&t.v, "b", SG_SEM_BARRIER, 0, 1);
	CHECK_EQ(sg_sem_meet(&t.v, &b, me, 0), 1);
	CHECK_EQ(sg_sem_meet(&t.v, &b, me, 0), 1);
	sg_sem_close(&t.v, &b);
	b = sem_make(&t.v, "b2", SG_SEM_BARRIER, 0, 2);
	b2 = sem_of(&other, "b2");
	/* a caller that may not wait does not count as arrived */
	CHECK_EQ(sg_sem_meet(&t.v, &b, me, 0), -EAGAIN);
	CHECK_EQ(stat_of(&t.v, "b2").value, 0);
	CHECK_EQ(sg_sem_meet(&other, &b2, they, in_ms(5)), -ETIMEDOUT);
	CHECK_EQ(stat_of(&t.v, "b2").value, 0);
	end();
}

static void condition(void)
{
	struct sg_sem c;
	u64 seen;

	begin();
	c = sem_make(&t.v, "c", SG_SEM_COND, 0, 0);
	CHECK_OK(sg_sem_cond_prepare(&t.v, &c, &seen));
	CHECK_EQ(sg_sem_cond_wait(&t.v, &c, me, seen, in_ms(5)), -ETIMEDOUT);
	CHECK_OK(sg_sem_cond_prepare(&t.v, &c, &seen));
	CHECK_OK(sg_sem_cond_signal(&t.v, &c, false));
	/* the signal came before the wait */
	CHECK_OK(sg_sem_cond_wait(&t.v, &c, me, seen, SG_SEM_NEVER));
	CHECK_OK(sg_sem_cond_prepare(&t.v, &c, &seen));
	CHECK_EQ(sg_sem_cond_wait(&t.v, &c, me, seen, 0), -EAGAIN);
	end();
}

/*
 * A releasing thread checks for sleepers, releases, and checks again. Between the checks another
 * thread went to sleep, and the release has cleared its flag. The release must restore the flag,
 * for the next release.
 */
static void flag_comes_back(void)
{
	struct sg_sem m;
	u64 *waiters, left;

	begin();
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	waiters = &sg_sem_record(&t.v, &m)->waits.waiters;
	left = sg_sem_flags_left(&t.v, &m, SG_SEMW_WAITERS | me->me);
	CHECK_EQ(left, 0);
	sg_store64(waiters, 1ULL << other.slot);
	sg_sem_given(&t.v, &m, left, false);
	CHECK_EQ(sg_load64(sg_sem_word(&t.v, &m)), SG_SEMW_WAITERS);
	CHECK(!sg_semw_take(sg_sem_word(&t.v, &m), me->me));
	CHECK_OK(sg_sem_lock(&t.v, &m, me, 0));
	CHECK(!sg_semw_give(sg_sem_word(&t.v, &m), me->me));
	sg_store64(waiters, 0);
	CHECK_OK(sg_sem_unlock(&t.v, &m, me));
	CHECK_EQ(sg_load64(sg_sem_word(&t.v, &m)), 0);
	end();
}

/*
 * A system that dies while it sleeps leaves a bit. The next release clears the bit, for each type
 * of object.
 */
static void bit_of_the_dead(void)
{
	static const unsigned int types[] = { SG_SEM_MUTEX, SG_SEM_COUNT, SG_SEM_RWLOCK, SG_SEM_COND,
		SG_SEM_EVENT };
	struct sg_sem s[SG_ARRAY_SIZE(types)];
	char name[8];
	unsigned int i;

	begin();
	for (i = 0; i < SG_ARRAY_SIZE(types); i++) {
		sprintf(name, "%u", i);
		s[i] = sem_make(&t.v, name, types[i], 0, 0);
		sg_or64(&sg_sem_record(&t.v, &s[i])->waits.waiters, 1ULL << other.slot);
		sg_or64(sg_sem_word(&t.v, &s[i]), SG_SEMW_WAITERS);
	}
	kill_other(true);
	CHECK_OK(sg_sem_lock(&t.v, &s[0], me, 0));
	CHECK_OK(sg_sem_unlock(&t.v, &s[0], me));
	CHECK_OK(sg_sem_post(&t.v, &s[1]));
	CHECK_OK(sg_sem_write_lock(&t.v, &s[2], me, 0));
	CHECK_OK(sg_sem_write_unlock(&t.v, &s[2], me));
	CHECK_OK(sg_sem_cond_signal(&t.v, &s[3], false));
	CHECK_OK(sg_sem_advance(&t.v, &s[4], 1));
	for (i = 0; i < SG_ARRAY_SIZE(types); i++)
		CHECK_EQ(sg_load64(&sg_sem_record(&t.v, &s[i])->waits.waiters), 0);
	join_other();
	end();
}

/* --- forged words ----------------------------------------------------------------------------- */

/* With any word, each call returns in time, and changes nothing but the word. */
static void forged(void)
{
	static const u64 base[] = {
		0, ~0ULL, 1, 1ULL << 63, 3ULL << 62, 1ULL << 60, 1ULL << 61, SG_SEMW_OWNER,
		SG_SEMW_ID(0, 0, 1), SG_SEMW_ID(0, 65535, 7), SG_SEMW_ID(63, 1, 1), SG_SEMW_ID(200, 1, 1),
		SG_SEMW_ID(1, 0, 0), SG_SEMW_VALUE, SG_SEMW_COUNT, 1ULL << 58,
	};
	static const unsigned int types[] = { SG_SEM_MUTEX, SG_SEM_COUNT, SG_SEM_RWLOCK, SG_SEM_COND,
		SG_SEM_BARRIER, SG_SEM_EVENT };
	u64 turns = test_amount(300, 3000, 100000), i, seen, start;
	struct rng rng = { test_seed() };
	struct sg_sem sem[SG_ARRAY_SIZE(types)];
	char name[8];
	unsigned int k;

	begin();
	tlog_catch();
	for (k = 0; k < SG_ARRAY_SIZE(types); k++) {
		sprintf(name, "%u", k);
		sem[k] = sem_make(&t.v, name, types[k], SG_SEM_MAPPED, 1);
	}
	start = sg_ticks();
	for (i = 0; i < turns; i++) {
		struct sg_sem *s = &sem[k = (unsigned int)rng_below(&rng, SG_ARRAY_SIZE(types))];
		u64 *w = sg_sem_word(&t.v, s), until = rng_chance(&rng, 10) ? in_ms(1) : 0;
		unsigned int n = (unsigned int)rng_below(&rng, 8);

		sg_store64(w, base[rng_below(&rng, SG_ARRAY_SIZE(base))] ^
			   (rng_chance(&rng, 30) ? rng_next(&rng) : 0));
		for (; s->words != s->rec + offsetof(struct sg_sem_record, words) && n; n--)
			sg_store64(w + rng_range(&rng, 1, SG_SEM_CELLS - 1), rng_next(&rng));
		test_note("type %u, word 0x%" PRIx64, types[k], sg_load64(w));
		switch (types[k]) {
		case SG_SEM_MUTEX:
			sg_sem_lock(&t.v, s, me, until);
			sg_sem_consistent(&t.v, s, me);
			sg_sem_unlock(&t.v, s, me);
			break;
		case SG_SEM_COUNT:
			sg_sem_wait(&t.v, s, me, until);
			sg_sem_post(&t.v, s);
			break;
		case SG_SEM_RWLOCK:
			if (sg_sem_read_lock(&t.v, s, me, until) != -EAGAIN)
				sg_sem_read_unlock(&t.v, s);
			sg_sem_write_lock(&t.v, s, me, until);
			sg_sem_write_unlock(&t.v, s, me);
			break;
		case SG_SEM_COND:
			sg_sem_cond_prepare(&t.v, s, &seen);
			sg_sem_cond_signal(&t.v, s, true);
			sg_sem_cond_wait(&t.v, s, me, seen, until);
			break;
		case SG_SEM_BARRIER:
			sg_sem_meet(&t.v, s, me, until);
			break;
		default:
			sg_sem_advance(&t.v, s, 1);
			sg_sem_await(&t.v, s, me, rng_next(&rng), until);
		}
		CHECK_EQ(sg_load64(&sg_sem_record(&t.v, s)->waits.waiters), 0);
	}
	CHECK(sg_ticks() - start < turns * 20 * MS);
	/* a word that names no live system is reported, and the lock can be taken */
	sg_store64(sg_sem_word(&t.v, &sem[0]), SG_SEMW_ID(40, 77, 5));
	t.v.sems->said = 0;
	tlog_clear();
	CHECK_EQ(sg_sem_lock(&t.v, &sem[0], me, 0), -EOWNERDEAD);
	CHECK(tlog_has("its owner never existed"));
	/* a forged word that names a live owner is valid until that owner ends, or until a reset */
	sg_store64(sg_sem_word(&t.v, &sem[0]), they->me);
	CHECK_EQ(sg_sem_lock(&t.v, &sem[0], me, in_ms(5)), -ETIMEDOUT);
	CHECK_OK(sg_sem_reset(&t.v, "0", 1, SG_SEM_ANY));
	CHECK_OK(sg_sem_lock(&t.v, &sem[0], me, 0));
	sg_log_hook = NULL;
	end();
}

/* Forged values in cells count as readers until a reset. */
static void forged_cells(void)
{
	unsigned int i;
	struct sg_sem rw, rw2;

	begin();
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	rw2 = sem_of(&other, "rw");
	CHECK_OK(sg_sem_read_lock(&other, &rw2, they, 0));
	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		sg_store64((u64 *)sg_at(&t.v, rw.words) + i, i & 1 ? ~0ULL : 1ULL << 40);
	CHECK_EQ(sg_sem_write_lock(&t.v, &rw, me, in_ms(5)), -ETIMEDOUT);
	CHECK_OK(sg_sem_reset(&t.v, "rw", 2, SG_SEM_ANY));
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));
	/* a reader from before the reset has no lock to release, now or at its end */
	CHECK_OK(sg_sem_read_unlock(&other, &rw2));
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	CHECK_OK(sg_sem_read_lock(&other, &rw2, they, 0));
	CHECK_OK(sg_sem_reset(&t.v, "rw", 2, SG_SEM_ANY));
	sg_sem_close(&other, &rw2);
	CHECK_OK(sg_sem_write_lock(&t.v, &rw, me, 0));
	CHECK_OK(sg_sem_write_unlock(&t.v, &rw, me));
	sg_sem_close(&t.v, &rw);
	end();
}

/* --- how long to poll before sleeping --------------------------------------------------------- */

static u64 clock_now, gives_at;
static unsigned int slept;
static const struct sg_sem *given;

extern u64 (*sg_ticks_hook)(void);	/* kernel/tools/lib/os_user.c */
extern void (*sg_sleep_hook)(u64 ns);

/* Returns the time. Each call takes a microsecond; at a set time the other system releases. */
static u64 clock_of_looks(void)
{
	clock_now += 1000;
	if (gives_at && clock_now >= gives_at) {
		gives_at = 0;
		sg_sem_post(&other, given);
	}
	return clock_now;
}

static void sleep_of_looks(u64 ns)
{
	slept++;
	clock_now += ns;
	clock_of_looks();
}

/* Waits for a release after @us microseconds. Returns how often the wait slept. */
static unsigned int sleeps_for(struct sg_sem *s, unsigned int us)
{
	slept = 0;
	gives_at = clock_now + us * 1000ULL;
	CHECK_OK(sg_sem_wait(&t.v, s, me, SG_SEM_NEVER));
	return slept;
}

static void patience(void)
{
	struct sg_sem s, s2, o, o2, m, m2;
	unsigned int i, n = 0;

	begin();
	s = sem_make(&t.v, "s", SG_SEM_COUNT, 0, 0);
	s2 = sem_of(&other, "s");
	o = sem_make(&t.v, "o", SG_SEM_COUNT, 0, 0);
	o2 = sem_of(&other, "o");
	m = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	m2 = sem_of(&other, "m");
	CHECK_OK(sg_sem_lock(&t.v, &m, you, 0));
	clock_now = sg_ticks();
	sg_ticks_hook = clock_of_looks;
	sg_sleep_hook = sleep_of_looks;
	given = &s2;
	/* a release within the polling time: the waiter does not sleep */
	for (i = 0; i < 20; i++)
		CHECK_EQ(sleeps_for(&s, 50 + i), 0);
	/* later releases: after a few unsuccessful attempts the waiter stops polling */
	for (i = 0; i < 8; i++)
		n += sleeps_for(&s, 100000) > 0;
	CHECK_EQ(n, 8);
	CHECK_EQ(sg_sem_patience(t.v.sems, s.rec)->ns, 0);
	/* a waiter still polls sometimes, succeeds, and starts polling again */
	for (i = 0, n = 0; i < 8; i++)
		n += sleeps_for(&s, 250) > 0;
	CHECK(n > 0 && n < 8);
	for (i = 0; i < 20; i++)
		CHECK_EQ(sleeps_for(&s, 50), 0);
	given = &o2;	/* another object has its own state */
	for (i = 0; i < 8; i++)
		CHECK(sleeps_for(&o, 100000) > 0);
	given = &s2;
	CHECK_EQ(sleeps_for(&s, 50), 0);
	/* no polling for a lock of this system: its owner may need this processor */
	slept = 0;
	CHECK_EQ(sg_sem_lock(&t.v, &m, me, clock_now + 10 * MS), -ETIMEDOUT);
	CHECK(slept > 0 && !sg_sem_patience(t.v.sems, m.rec)->missed);
	/*
	 * a wait with a shorter time limit than the polling time does not count as an unsuccessful
	 * attempt
	 */
	CHECK_EQ(sg_sem_wait(&t.v, &s, me, clock_now + 20000), -ETIMEDOUT);
	CHECK_EQ(sleeps_for(&s, 250), 0);
	sg_ticks_hook = NULL;
	sg_sleep_hook = NULL;
	CHECK_OK(sg_sem_unlock(&t.v, &m, you));
	(void)m2;
	end();
}

int main(void)
{
	mutex();
	patience();
	recursive();
	robust();
	system_dies();
	declared_dead();
	closed_in_order();
	all_died();
	all_died_long_ago();
	semaphore();
	at_once();
	event();
	rwlock();
	closed_while_read_only();
	reset_beside_readers();
	cells_run_out();
	barrier();
	condition();
	flag_comes_back();
	bit_of_the_dead();
	forged();
	forged_cells();
	return test_done();
}
