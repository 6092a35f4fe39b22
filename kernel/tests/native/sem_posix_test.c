// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores compared with those of POSIX. The same steps run on a process-shared object of
 * the C library and on an object of StargateFS. Three threads run them, on one system or on two,
 * each directly or through its kernel (sem_kernel.h). Both objects must return the expected
 * results. The expectation is POSIX.1-2017 on sem_*, on robust and recursive pthread_mutex_*,
 * pthread_rwlock_*, pthread_cond_* and pthread_barrier_*. Random steps follow, for which the C
 * library's result is the expected one.
 *
 * Some differences are intended. EBUSY of POSIX is EAGAIN here, and EDEADLK if the caller itself
 * has the lock. The death of a thread releases its write locks and read locks of a reader-writer
 * lock.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <semaphore.h>
#include "sem_kernel.h"

#define ACTORS		3
#define BLOCKED_MS	10	/* a call that takes longer counts as waiting */

/* --- objects of both kinds -------------------------------------------------------------------- */

enum kind { MUTEX, RECURSIVE, SEMAPHORE, RWLOCK, COND, BARRIER };

static struct {
	pthread_mutex_t m;
	pthread_rwlock_t rw;
	pthread_cond_t c;
	pthread_barrier_t b;
	sem_t s;
} posix;
static stargate_sem *kept[2];
static enum kind kind;
static u64 serial;		/* how often a barrier has returned "serial" to a thread */
static const struct timespec past;

static void posix_mutex(int type)
{
	pthread_mutexattr_t a;

	CHECK_OK(pthread_mutexattr_init(&a));
	CHECK_OK(pthread_mutexattr_settype(&a, type));
	CHECK_OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_mutex_init(&posix.m, &a));
}

static void posix_make(u64 value)
{
	pthread_rwlockattr_t rw;
	pthread_barrierattr_t b;
	pthread_condattr_t c;

	memset(&posix, 0, sizeof(posix));
	posix_mutex(kind == RECURSIVE ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK);
	if (kind == SEMAPHORE)
		CHECK_OK(sem_init(&posix.s, 1, (unsigned int)value));
	CHECK_OK(pthread_rwlockattr_init(&rw));
	CHECK_OK(pthread_rwlockattr_setpshared(&rw, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_rwlock_init(&posix.rw, &rw));
	CHECK_OK(pthread_condattr_init(&c));
	CHECK_OK(pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_cond_init(&posix.c, &c));
	CHECK_OK(pthread_barrierattr_init(&b));
	CHECK_OK(pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED));
	if (kind == BARRIER)
		CHECK_OK(pthread_barrier_init(&posix.b, &b, (unsigned int)value));
}

static void ours_make(u64 value)
{
	static const enum stargate_type types[] = { STARGATE_MUTEX, STARGATE_MUTEX,
		STARGATE_SEMAPHORE, STARGATE_RWLOCK, STARGATE_CONDITION, STARGATE_BARRIER };

	kept[0] = make("o", types[kind], kind == RECURSIVE ? STARGATE_RECURSIVE : 0, value);
	if (kind == COND)
		kept[1] = make("m", STARGATE_MUTEX, 0, 0);
}

static void ours_drop(void)
{
	stargate_close(kept[0]);
	CHECK_OK(stargate_remove(at[0], "o"));
	if (kind == COND) {
		stargate_close(kept[1]);
		CHECK_OK(stargate_remove(at[0], "m"));
	}
}

/* --- the threads ------------------------------------------------------------------------------ */

struct step;
/**
 * struct actor - a thread that runs the steps that the test gives it
 * @ours: the thread uses our object, otherwise that of POSIX; @seat: its handle, from have().
 * @reads, @writes: how often the thread has a reader-writer lock; @told: its last lock returned
 * EOWNERDEAD.
 */
struct actor {
	bool ours, alive, busy, quit, writes, told;
	unsigned int seat, reads;
	int result;
	const struct step *step;
	stargate_sem *o, *m;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

struct step {
	const char *name;
	int (*posix)(struct actor *a);
	int (*ours)(struct actor *a);
};

static int by_errno(int ret)
{
	return ret ? errno : 0;
}

/*
 * Translates our error of a failed try. POSIX returns EBUSY also if the caller itself has the lock.
 */
static int tried(int err)
{
	return err == EAGAIN || err == EDEADLK ? EBUSY : err;
}

static int p_take(struct actor *a)
{
	(void)a;
	return kind == SEMAPHORE ? by_errno(sem_wait(&posix.s)) : pthread_mutex_lock(&posix.m);
}

static int p_try(struct actor *a)
{
	(void)a;
	return kind == SEMAPHORE ? by_errno(sem_trywait(&posix.s)) :
				   tried(pthread_mutex_trylock(&posix.m));
}

static int p_late(struct actor *a)
{
	(void)a;
	return kind == SEMAPHORE ? by_errno(sem_timedwait(&posix.s, &past)) :
				   pthread_mutex_timedlock(&posix.m, &past);
}

static int p_give(struct actor *a)
{
	(void)a;
	return kind == SEMAPHORE ? by_errno(sem_post(&posix.s)) :
	       kind == RWLOCK ? pthread_rwlock_unlock(&posix.rw) : pthread_mutex_unlock(&posix.m);
}

static int p_consistent(struct actor *a)
{
	(void)a;
	return pthread_mutex_consistent(&posix.m);
}

static int p_value(struct actor *a)
{
	int value;

	(void)a;
	return sem_getvalue(&posix.s, &value) ? -errno : value;
}

static int p_read(struct actor *a) { (void)a; return pthread_rwlock_rdlock(&posix.rw); }
static int p_write(struct actor *a) { (void)a; return pthread_rwlock_wrlock(&posix.rw); }
static int p_tryread(struct actor *a) { (void)a; return tried(pthread_rwlock_tryrdlock(&posix.rw)); }
static int p_trywrite(struct actor *a) { (void)a; return tried(pthread_rwlock_trywrlock(&posix.rw)); }
static int p_lateread(struct actor *a)
{
	(void)a;
	return pthread_rwlock_timedrdlock(&posix.rw, &past);
}
static int p_latewrite(struct actor *a)
{
	(void)a;
	return pthread_rwlock_timedwrlock(&posix.rw, &past);
}

/* Waits for the condition, then releases the mutex, so that the next waiter can return. */
static int p_cwait(struct actor *a)
{
	int err = pthread_cond_wait(&posix.c, &posix.m);

	(void)a;
	return err ? err : pthread_mutex_unlock(&posix.m);
}
static int p_clate(struct actor *a)
{
	(void)a;
	return pthread_cond_timedwait(&posix.c, &posix.m, &past);
}
static int p_signal(struct actor *a) { (void)a; return pthread_cond_signal(&posix.c); }
static int p_broadcast(struct actor *a) { (void)a; return pthread_cond_broadcast(&posix.c); }

static int p_meet(struct actor *a)
{
	int err = pthread_barrier_wait(&posix.b);

	(void)a;
	if (err == PTHREAD_BARRIER_SERIAL_THREAD)
		return sg_add64(&serial, 1), 0;
	return err;
}

static int serial_so_far(struct actor *a)
{
	(void)a;
	return (int)sg_load64(&serial);
}

/* --- the same with our objects ---------------------------------------------------------------- */

#define LATE	1ULL		/* one nanosecond after boot */

static int o_lock(struct actor *a, u64 until)
{
	return kind == SEMAPHORE ? stargate_sem_wait(a->o, until) :
				   stargate_mutex_lock(kind == COND ? a->m : a->o, until);
}
static int o_take(struct actor *a) { return o_lock(a, STARGATE_FOREVER); }
static int o_late(struct actor *a) { return o_lock(a, LATE); }
static int o_try(struct actor *a)
{
	int err = o_lock(a, STARGATE_TRY);

	return kind == SEMAPHORE ? err : tried(err);
}

static int o_give(struct actor *a)
{
	if (kind == SEMAPHORE)
		return stargate_sem_post(a->o);
	if (kind == RWLOCK)
		return a->writes ? stargate_write_unlock(a->o) : stargate_read_unlock(a->o);
	return stargate_mutex_unlock(kind == COND ? a->m : a->o);
}

static int o_consistent(struct actor *a) { return stargate_consistent(kind == COND ? a->m : a->o); }

static int o_value(struct actor *a)
{
	struct stargate_stat st;
	int err = stargate_fstat(a->o, &st);

	return err ? -err : (int)st.value;
}

static int o_read(struct actor *a) { return stargate_read_lock(a->o, STARGATE_FOREVER); }
static int o_write(struct actor *a) { return stargate_write_lock(a->o, STARGATE_FOREVER); }
static int o_tryread(struct actor *a) { return tried(stargate_read_lock(a->o, STARGATE_TRY)); }
static int o_trywrite(struct actor *a) { return tried(stargate_write_lock(a->o, STARGATE_TRY)); }
static int o_lateread(struct actor *a) { return stargate_read_lock(a->o, LATE); }
static int o_latewrite(struct actor *a) { return stargate_write_lock(a->o, LATE); }

static int o_cwait(struct actor *a)
{
	int err = stargate_cond_wait(a->o, a->m, STARGATE_FOREVER);

	return err ? err : stargate_mutex_unlock(a->m);
}
static int o_clate(struct actor *a) { return stargate_cond_wait(a->o, a->m, LATE); }
static int o_signal(struct actor *a) { return stargate_cond_signal(a->o); }
static int o_broadcast(struct actor *a) { return stargate_cond_broadcast(a->o); }

static int o_meet(struct actor *a)
{
	int last, err = stargate_barrier_wait(a->o, STARGATE_FOREVER, &last);

	sg_add64(&serial, (u64)last);
	return err;
}

static const struct step steps[] = {
	{ "take", p_take, o_take }, { "try", p_try, o_try }, { "late", p_late, o_late },
	{ "give", p_give, o_give }, { "consistent", p_consistent, o_consistent },
	{ "value", p_value, o_value },
	{ "read", p_read, o_read }, { "tryread", p_tryread, o_tryread },
	{ "lateread", p_lateread, o_lateread },
	{ "write", p_write, o_write }, { "trywrite", p_trywrite, o_trywrite },
	{ "latewrite", p_latewrite, o_latewrite },
	{ "cwait", p_cwait, o_cwait }, { "clate", p_clate, o_clate },
	{ "signal", p_signal, o_signal }, { "broadcast", p_broadcast, o_broadcast },
	{ "meet", p_meet, o_meet }, { "serial", serial_so_far, serial_so_far },
};

static const struct step *step_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(steps); i++)
		if (!strcmp(steps[i].name, name))
			return &steps[i];
	test_fail(__FILE__, __LINE__, "no step '%s'", name);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void note(struct actor *a, const struct step *step, int result)
{
	if (result && result != EOWNERDEAD)
		return;
	if (strstr(step->name, "read"))
		a->reads++;
	else if (strstr(step->name, "write"))
		a->writes = true;
	else if (step->posix == p_give && a->writes)
		a->writes = false;
	else if (step->posix == p_give && a->reads)
		a->reads--;
	if (step->posix == p_take || step->posix == p_try || step->posix == p_late)
		a->told |= result == EOWNERDEAD;
	else if (step->posix == p_give || step->posix == p_consistent)
		a->told = false;
}

static void *act(void *arg)
{
	struct actor *a = arg;
	int result;

	CHECK_OK(pthread_mutex_lock(&a->lock));
	while (!a->quit) {
		if (!a->busy) {
			CHECK_OK(pthread_cond_wait(&a->wake, &a->lock));
			continue;
		}
		CHECK_OK(pthread_mutex_unlock(&a->lock));
		result = a->ours ? a->step->ours(a) : a->step->posix(a);
		note(a, a->step, result);
		CHECK_OK(pthread_mutex_lock(&a->lock));
		a->result = result;
		a->busy = false;
		CHECK_OK(pthread_cond_broadcast(&a->wake));
	}
	CHECK_OK(pthread_mutex_unlock(&a->lock));
	if (a->ours)
		thread_ends();
	return NULL;
}

static void begin_thread(struct actor *a)
{
	a->quit = a->writes = a->told = false;
	a->reads = 0;
	a->alive = true;
	CHECK_OK(pthread_create(&a->thread, NULL, act, a));
}

static void actor_begin(struct actor *a, bool ours, unsigned int seat)
{
	*a = (struct actor){ .ours = ours, .seat = seat };
	CHECK_OK(pthread_mutex_init(&a->lock, NULL));
	CHECK_OK(pthread_cond_init(&a->wake, NULL));
	if (ours) {
		a->o = have(seat, "o");
		a->m = kind == COND ? have(seat, "m") : NULL;
	}
	begin_thread(a);
}

static void tell(struct actor *a, const struct step *step)
{
	CHECK(a->alive && !a->busy);
	CHECK_OK(pthread_mutex_lock(&a->lock));
	a->step = step;
	a->busy = true;
	CHECK_OK(pthread_cond_broadcast(&a->wake));
	CHECK_OK(pthread_mutex_unlock(&a->lock));
}

/* Returns whether the actor's call returns within @ms. */
static bool returns(struct actor *a, u64 ms)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)((u64)until.tv_nsec + ms * MS) / (time_t)SEC;
	until.tv_nsec = (long)(((u64)until.tv_nsec + ms * MS) % SEC);
	CHECK_OK(pthread_mutex_lock(&a->lock));
	while (a->busy && !pthread_cond_timedwait(&a->wake, &a->lock, &until))
		;
	done = !a->busy;
	CHECK_OK(pthread_mutex_unlock(&a->lock));
	return done;
}

static void dies(struct actor *a)
{
	if (!a->alive)
		return;
	CHECK(!a->busy);
	CHECK_OK(pthread_mutex_lock(&a->lock));
	a->quit = true;
	CHECK_OK(pthread_cond_broadcast(&a->wake));
	CHECK_OK(pthread_mutex_unlock(&a->lock));
	CHECK_OK(pthread_join(a->thread, NULL));
	a->alive = false;
}

static void actor_end(struct actor *a)
{
	dies(a);
	stargate_close(a->o);
	stargate_close(a->m);
}

/* --- the expectations ------------------------------------------------------------------------- */

/*
 * "A take 0": A calls take, which returns 0. "A take ...": the call waits. "A done 0": A's waiting
 * call returns 0. "A done ...": A's call still waits. "A die": A's thread ends. "BC one 0": exactly
 * one of the waiters B and C returns; from then on X means that one, and Y the other one.
 */
static const struct script {
	enum kind kind;
	u64 value;
	const char *what, *steps;
} scripts[] = {
	{ MUTEX, 0, "a free lock needs no wait, even after the time limit",
	  "A take 0;A give 0;B try 0;B give 0;C late 0;C give 0" },
	{ MUTEX, 0, "another thread has the lock",
	  "A take 0;B try EBUSY;B late ETIMEDOUT;A give 0" },
	{ MUTEX, 0, "the caller already has the lock",
	  "A take 0;A take EDEADLK;A try EBUSY;A late EDEADLK;A give 0" },
	{ MUTEX, 0, "only the owner can release a mutex",
	  "A give EPERM;A take 0;B give EPERM;A give 0;A give EPERM" },
	{ MUTEX, 0, "a waiter gets the released mutex",
	  "A take 0;B take ...;A give 0;B done 0;A try EBUSY;B give 0" },
	{ MUTEX, 0, "one of several waiters gets the released mutex",
	  "A take 0;B take ...;C take ...;A give 0;BC one 0;A try EBUSY;X give 0;Y done 0;Y give 0" },
	{ MUTEX, 0, "the next owner after a death gets EOWNERDEAD",
	  "A take 0;A die;B take EOWNERDEAD;B consistent 0;B give 0;C take 0;C give 0" },
	{ MUTEX, 0, "a waiter gets EOWNERDEAD when the owner dies",
	  "A take 0;B take ...;A die;B done EOWNERDEAD;B consistent 0;"
	  "B give 0;C try 0;C give 0" },
	{ MUTEX, 0, "a try, or a wait after the time limit, gets EOWNERDEAD",
	  "A take 0;A die;B try EOWNERDEAD;C try EBUSY;"
	  "B consistent 0;B give 0;C take 0;C die;B late EOWNERDEAD;B consistent 0;B give 0" },
	{ MUTEX, 0, "each next owner gets EOWNERDEAD until the mutex is consistent",
	  "A take 0;A die;B take EOWNERDEAD;B die;C take EOWNERDEAD;C consistent 0;C give 0" },
	{ MUTEX, 0, "a release without a repair makes the mutex unusable",
	  "A take 0;A die;B take EOWNERDEAD;B give 0;"
	  "C take ENOTRECOVERABLE;B try ENOTRECOVERABLE;C give EPERM" },
	{ MUTEX, 0, "an unusable mutex returns its error also after the time limit",
	  "A take 0;A die;B take EOWNERDEAD;B give 0;C late ENOTRECOVERABLE" },
	{ MUTEX, 0, "the waiters of a mutex that becomes unusable get its error",
	  "A take 0;A die;B take EOWNERDEAD;C take ...;B give 0;"
	  "C done ENOTRECOVERABLE" },
	{ MUTEX, 0, "a consistent mutex cannot be repaired",
	  "A take 0;A consistent EINVAL;A give 0" },
	{ MUTEX, 0, "a mutex cannot be repaired twice",
	  "A take 0;A die;B take EOWNERDEAD;B consistent 0;"
	  "B consistent EINVAL;B give 0" },
	{ MUTEX, 0, "after a repair, the owner may die again", "A take 0;A die;B take EOWNERDEAD;"
	  "B consistent 0;B die;C take EOWNERDEAD;C consistent 0;C give 0" },
	{ MUTEX, 0, "the death of a former owner has no effect",
	  "A take 0;A give 0;A die;B take 0;B give 0" },
	{ RECURSIVE, 0, "a mutex is free after as many releases as locks",
	  "A take 0;A try 0;A late 0;B try EBUSY;A give 0;"
	  "A give 0;B late ETIMEDOUT;A give 0;B take 0;B give 0;A give EPERM" },
	{ RECURSIVE, 0, "a waiter gets the mutex after the last release",
	  "A take 0;A take 0;B take ...;A give 0;B done ...;A give 0;B done 0;B give 0" },
	{ RECURSIVE, 0, "after a death, the next owner has locked the mutex once",
	  "A take 0;A take 0;A die;B take EOWNERDEAD;"
	  "B consistent 0;B give 0;C take 0;C give 0;C give EPERM" },
	{ SEMAPHORE, 2, "the value goes down to 0",
	  "A take 0;B take 0;C try EAGAIN;C late ETIMEDOUT;A value 0;"
	  "A give 0;A value 1;C late 0;C value 0" },
	{ SEMAPHORE, 0, "a post wakes the waiter", "A take ...;B give 0;A done 0;B value 0" },
	{ SEMAPHORE, 0, "each post wakes one waiter",
	  "A take ...;B take ...;C give 0;AB one 0;C value 0;C give 0;Y done 0;C value 0" },
	{ SEMAPHORE, 0, "any thread can post",
	  "A give 0;A give 0;B value 2;B take 0;C take 0;A try EAGAIN" },
	{ SEMAPHORE, 1, "a death posts nothing", "A take 0;A die;B try EAGAIN;B give 0;C take 0" },
	{ SEMAPHORE, SEM_VALUE_MAX, "the value has a limit", "A give EOVERFLOW;A value 2147483647;"
	  "A take 0;A give 0;B give EOVERFLOW" },
	{ RWLOCK, 0, "many readers at a time",
	  "A read 0;B read 0;C tryread 0;A give 0;B give 0;C give 0" },
	{ RWLOCK, 0, "a writer excludes readers and writers",
	  "A write 0;B tryread EBUSY;B trywrite EBUSY;B lateread ETIMEDOUT;"
	  "B latewrite ETIMEDOUT;A give 0;B tryread 0;B give 0" },
	{ RWLOCK, 0, "readers exclude a writer", "A read 0;B trywrite EBUSY;B latewrite ETIMEDOUT;"
	  "A trywrite EBUSY;A give 0;B trywrite 0;B give 0" },
	{ RWLOCK, 0, "a thread can have several read locks",
	  "A read 0;A read 0;B trywrite EBUSY;A give 0;"
	  "B trywrite EBUSY;A give 0;B trywrite 0;B give 0" },
	{ RWLOCK, 0, "the caller already has the write lock",
	  "A write 0;A write EDEADLK;A read EDEADLK;A tryread EBUSY;"
	  "A trywrite EBUSY;A lateread EDEADLK;A latewrite EDEADLK;A give 0;B write 0;B give 0" },
	{ RWLOCK, 0, "a free lock needs no wait, even after the time limit",
	  "A lateread 0;A give 0;A latewrite 0;A give 0" },
	{ RWLOCK, 0, "a writer waits for all readers",
	  "A read 0;B read 0;C write ...;A give 0;C done ...;B give 0;C done 0;C give 0" },
	{ RWLOCK, 0, "after a writer, all readers get the lock",
	  "A write 0;B read ...;C read ...;A give 0;B done 0;"
	  "C done 0;A trywrite EBUSY;B give 0;C give 0" },
	{ RWLOCK, 0, "one writer at a time", "A write 0;B write ...;C write ...;A give 0;BC one 0;"
	  "A tryread EBUSY;X give 0;Y done 0;Y give 0" },
	{ COND, 0, "a signal wakes a waiter",
	  "A take 0;A cwait ...;B take 0;B signal 0;B give 0;A done 0" },
	{ COND, 0, "a waiter has released the mutex",
	  "A take 0;A cwait ...;B try 0;B give 0;B signal 0;A done 0" },
	{ COND, 0, "a broadcast wakes all waiters",
	  "A take 0;A cwait ...;B take 0;B cwait ...;C take 0;"
	  "C broadcast 0;C give 0;A done 0;B done 0" },
	{ COND, 0, "after a time-out, the waiter has the mutex",
	  "A take 0;A clate ETIMEDOUT;B try EBUSY;A give 0" },
	{ COND, 0, "a signal without a waiter is lost",
	  "A signal 0;A take 0;A clate ETIMEDOUT;A cwait ...;B signal 0;A done 0" },
	{ COND, 0, "a wait without the mutex fails", "A take 0;B clate EPERM;A give 0" },
	{ COND, 0, "the mutex's owner dies during the wait",
	  "A take 0;A cwait ...;B take 0;B signal 0;B die;"
	  "A done EOWNERDEAD;A consistent 0;A give 0" },
	{ BARRIER, 3, "all threads meet, and one of them is the serial thread",
	  "A meet ...;B meet ...;C meet 0;A done 0;B done 0;A serial 1;"
	  "C meet ...;A meet ...;B meet 0;A done 0;C done 0;A serial 2" },
	{ BARRIER, 1, "a barrier of one thread", "A meet 0;A serial 1;A meet 0;A serial 2" },
};

static const struct {
	const char *name;
	int err;
} errors[] = {
	{ "EBUSY", EBUSY }, { "ETIMEDOUT", ETIMEDOUT }, { "EDEADLK", EDEADLK }, { "EPERM", EPERM },
	{ "EAGAIN", EAGAIN }, { "EOWNERDEAD", EOWNERDEAD }, { "EINVAL", EINVAL },
	{ "ENOTRECOVERABLE", ENOTRECOVERABLE }, { "EOVERFLOW", EOVERFLOW },
};

static int expected(const char *word)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(errors); i++)
		if (!strcmp(errors[i].name, word))
			return errors[i].err;
	CHECK(*word >= '0' && *word <= '9');
	return (int)strtol(word, NULL, 10);
}

/* --- a script --------------------------------------------------------------------------------- */

static struct actor actors[ACTORS], *winner, *loser;

static struct actor *actor_of(char letter)
{
	return letter == 'X' ? winner : letter == 'Y' ? loser : &actors[letter - 'A'];
}

static void just_one(const char *who, int want)
{
	struct actor *a = actor_of(who[0]), *b = actor_of(who[1]);
	unsigned int tries;

	for (tries = 0; tries < 1000 && !returns(a, 1); tries++)
		if (returns(b, 10))
			break;
	winner = returns(a, 0) ? a : b;
	loser = winner == a ? b : a;
	CHECK(returns(winner, 10000));
	CHECK_EQ(winner->result, want);
	CHECK(!returns(loser, BLOCKED_MS));
}

static void one_step(char *text)
{
	char *rest, *who = strtok_r(text, " ", &rest), *what = strtok_r(NULL, " ", &rest);
	char *want = strtok_r(NULL, " ", &rest);
	struct actor *a = actor_of(*who);

	if (!strcmp(what, "die")) {
		dies(a);
		return;
	}
	if (!strcmp(what, "one")) {
		just_one(who, expected(want));
		return;
	}
	if (strcmp(what, "done"))
		tell(a, step_of(what));
	if (!strcmp(want, "...")) {
		CHECK(!returns(a, BLOCKED_MS));
		return;
	}
	CHECK(returns(a, 10000));
	CHECK_EQ(a->result, expected(want));
}

static void follow(const struct script *s, bool ours, const unsigned int seats[ACTORS])
{
	char text[512], *step, *rest;
	unsigned int i;

	kind = s->kind;
	serial = 0;
	if (ours)
		ours_make(s->value);
	else
		posix_make(s->value);
	for (i = 0; i < ACTORS; i++)
		actor_begin(&actors[i], ours, seats[i]);
	CHECK(strlen(s->steps) < sizeof(text));
	strcpy(text, s->steps);
	for (step = strtok_r(text, ";", &rest); step; step = strtok_r(NULL, ";", &rest)) {
		test_note("%s of kind %d, '%s' at '%s', %s %u%u%u", s->what, (int)s->kind, s->steps, step,
			  ours ? "ours" : "POSIX", seats[0], seats[1], seats[2]);
		one_step(step);
	}
	for (i = 0; i < ACTORS; i++)
		actor_end(&actors[i]);
	if (ours)
		ours_drop();
}

/* The seat of each actor, as bits. 1: on the other system; 2: through the kernel. */
static const unsigned int seats[][ACTORS] = {
	{ 0, 0, 0 }, { 2, 2, 2 }, { 0, 1, 2 }, { 3, 0, 1 },
};

static void all_scripts(void)
{
	unsigned int i, k;

	for (i = 0; i < SG_ARRAY_SIZE(scripts); i++) {
		follow(&scripts[i], false, seats[0]);
		for (k = 0; k < SG_ARRAY_SIZE(seats); k++)
			follow(&scripts[i], true, seats[k]);
	}
	printf("%zu scripts, with POSIX's objects and with ours in %zu placements of the actors\n",
	       SG_ARRAY_SIZE(scripts), SG_ARRAY_SIZE(seats));
}

/* --- random steps ----------------------------------------------------------------------------- */

static struct actor both[2][ACTORS];		/* the actors of POSIX, and those of StargateFS */

/*
 * Returns a random step that POSIX defines, and for which our objects do not intend another result.
 */
static const struct step *any_step(struct rng *rng, const struct actor *a)
{
	static const char *const of_lock[] = { "try", "late", "try", "give", "give", "consistent" };
	static const char *const of_rw[] = { "tryread", "lateread", "trywrite", "latewrite", "give", "give" };
	const char *name = (kind == RWLOCK ? of_rw : of_lock)[rng_below(rng, 6)];

	if (kind == SEMAPHORE && !strcmp(name, "consistent"))
		name = "value";
	else if (!strcmp(name, "consistent") && !a->told)
		name = "late";
	/* after further locks and as many releases, the C library has a wrong owner */
	if (kind == RECURSIVE && a->told && strcmp(name, "give"))
		name = "consistent";
	if (kind == RWLOCK && !strcmp(name, "give") && !a->reads && !a->writes)
		name = "tryread";
	return step_of(name);
}

static bool may_die(const struct actor *a)
{
	return kind != RWLOCK || (!a->reads && !a->writes);
}

static void same_step(unsigned int n, const struct step *step)
{
	struct actor *p = &both[0][n], *o = &both[1][n];

	tell(p, step);
	tell(o, step);
	CHECK(returns(p, 10000) && returns(o, 10000));
	if (p->result != o->result)
		test_fail(__FILE__, __LINE__,
			  "%c %s of kind %d: POSIX returns %d (%s), ours %d (%s)",
			  'A' + (int)n, step->name, (int)kind, p->result, strerror(p->result), o->result,
			  strerror(o->result));
	test_counted();
}

static void walk(struct rng *rng, unsigned int length)
{
	const unsigned int *seat = seats[rng_below(rng, SG_ARRAY_SIZE(seats))];
	u64 value = rng_below(rng, 3);
	unsigned int i, n;

	posix_make(value);
	ours_make(kind == SEMAPHORE ? value : 0);
	for (n = 0; n < ACTORS; n++) {
		actor_begin(&both[0][n], false, 0);
		actor_begin(&both[1][n], true, seat[n]);
	}
	for (i = 0; i < length; i++) {
		n = (unsigned int)rng_below(rng, ACTORS);
		if (rng_chance(rng, 5) && may_die(&both[0][n])) {
			dies(&both[0][n]);
			dies(&both[1][n]);
			begin_thread(&both[0][n]);
			begin_thread(&both[1][n]);
			continue;
		}
		same_step(n, any_step(rng, &both[0][n]));
		/* the C library's trylock returns this error, but locks the mutex anyway */
		if (both[0][n].result == ENOTRECOVERABLE)
			break;
	}
	for (n = 0; n < ACTORS; n++) {
		actor_end(&both[0][n]);
		actor_end(&both[1][n]);
	}
	ours_drop();
}

static void at_random(void)
{
	static const enum kind kinds[] = { MUTEX, RECURSIVE, SEMAPHORE,
#ifndef __SANITIZE_THREAD__	/* TSan does not support timed reader-writer locks */
		RWLOCK
#endif
	};
	u64 walks = test_amount(20, 300, 10000), i, k;
	struct rng rng = { test_seed() };

	for (k = 0; k < SG_ARRAY_SIZE(kinds); k++) {
		kind = kinds[k];
		for (i = 0; i < walks; i++) {
			test_note("walk %" PRIu64 " of kind %d", i, (int)kind);
			walk(&rng, 50);
		}
	}
	printf("%" PRIu64 " random steps of each kind, with the results of POSIX\n", 50 * walks);
}

/* --- names: sem_open(3), sem_unlink(3) -------------------------------------------------------- */

struct named {
	sem_t *p;
	stargate_sem *o;
};

/* Opens both semaphores, and checks that the errors are the same. */
static int open_both(struct named *n, const char *name, int flags, unsigned int value)
{
	const struct stargate_new what = { .type = STARGATE_SEMAPHORE, .mode = 0600, .initial = value };
	char path[300];
	int p, o;

	snprintf(path, sizeof(path), "/%s", name);
	n->p = sem_open(path, flags, 0600, value);
	p = n->p == SEM_FAILED ? errno : 0;
	if (flags & O_CREAT)
		o = stargate_create(&n->o, at[0], name, &what, flags & O_EXCL ? STARGATE_EXCLUSIVE : 0);
	else
		o = stargate_open(&n->o, at[1], name, STARGATE_SEMAPHORE, 0);
	CHECK_EQ(o, p);
	return o;
}

static void close_both(struct named *n)
{
	CHECK_OK(sem_close(n->p));
	stargate_close(n->o);
}

static int unlink_both(const char *name)
{
	int p, o = stargate_remove(at[1], name);
	char path[300];

	snprintf(path, sizeof(path), "/%s", name);
	p = by_errno(sem_unlink(path));
	CHECK_EQ(o, p);
	return o;
}

/* Checks that both semaphores have the value @value, and takes it down to 0. */
static void has(struct named *n, unsigned int value)
{
	unsigned int i;

	for (i = 0; i < value; i++) {
		CHECK_OK(sem_trywait(n->p));
		CHECK_OK(stargate_sem_wait(n->o, STARGATE_TRY));
	}
	CHECK_EQ(by_errno(sem_trywait(n->p)), EAGAIN);
	CHECK_EQ(stargate_sem_wait(n->o, STARGATE_TRY), EAGAIN);
}

static void by_name(void)
{
	struct named a, b, c;
	char name[64], longest[257];

	snprintf(name, sizeof(name), "sem_posix_test-%d", (int)getpid());
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	CHECK_EQ(open_both(&a, name, 0, 0), ENOENT);
	CHECK_EQ(open_both(&a, "", O_CREAT, 0), EINVAL);
	/* POSIX allows this error, where the C library returns EINVAL */
	CHECK_EQ(stargate_open(&a.o, at[1], longest, STARGATE_SEMAPHORE, 0), ENAMETOOLONG);
	CHECK_EQ(open_both(&a, name, O_CREAT | O_EXCL, (unsigned int)SEM_VALUE_MAX + 1), EINVAL);
	CHECK_OK(open_both(&a, name, O_CREAT | O_EXCL, 2));
	CHECK_EQ(open_both(&b, name, O_CREAT | O_EXCL, 1), EEXIST);
	/* opens the existing semaphore, with its value */
	CHECK_OK(open_both(&b, name, O_CREAT, 7));
	has(&b, 2);
	CHECK_OK(sem_post(a.p));
	CHECK_OK(stargate_sem_post(a.o));
	has(&b, 1);
	CHECK_OK(unlink_both(name));
	CHECK_EQ(unlink_both(name), ENOENT);
	CHECK_EQ(open_both(&c, name, 0, 0), ENOENT);
	CHECK_OK(open_both(&c, name, O_CREAT, 0));	/* creates a new semaphore */
	CHECK_OK(sem_post(a.p));
	CHECK_OK(stargate_sem_post(a.o));
	has(&c, 0);
	has(&b, 1);
	close_both(&a);
	close_both(&b);
	CHECK_OK(unlink_both(name));
	close_both(&c);
}

/* This test unlocks another thread's lock on purpose, which ThreadSanitizer would report. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_mutex_bugs=0:detect_deadlocks=0";
}

int main(void)
{
	begin();
	by_name();
	all_scripts();
	at_random();
	end();
	return test_done();
}
