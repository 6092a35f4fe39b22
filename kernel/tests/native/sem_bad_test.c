// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores on bad pages (docs/bad-memory.md). As in bad_test.c, the test makes a page
 * inaccessible before it reports the page as bad. A load or store there ends the program with a
 * signal.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "sem_pair.h"

static u64 broken[8];
static unsigned int nbroken;

/* Makes a page inaccessible, and reports it to both systems. */
static void break_page(u64 off)
{
	off &= ~(SG_PAGE - 1);
	CHECK(sg_bad_add(&t.v, off, 1) >= 0);
	sg_bad_look(&other);
	CHECK_OK(mprotect(t.mem + off, SG_PAGE, PROT_NONE));
	broken[nbroken++] = off;
}

static void mend_pages(void)
{
	while (nbroken) {
		u64 off = broken[--nbroken];

		CHECK_OK(mprotect(t.mem + off, SG_PAGE, PROT_READ | PROT_WRITE));
		CHECK_EQ(sg_bad_remove(&t.v, off, 1), 1);
	}
}

/* Checks that all operations on the object fail, except close. */
static void is_gone(struct sg_vol *v, struct sg_sem *s, struct sg_sem_caller *c)
{
	struct sg_sem_stat st;
	u64 seen;

	CHECK_EQ(sg_sem_fstat(v, s, &st), -EIO);
	switch (s->type) {
	case SG_SEM_MUTEX:
		CHECK_EQ(sg_sem_lock(v, s, c, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_unlock(v, s, c), -EIO);
		CHECK_EQ(sg_sem_consistent(v, s, c), -EIO);
		CHECK(!sg_sem_lock_at_once(v, s, c) && !sg_sem_unlock_at_once(v, s, c));
		break;
	case SG_SEM_COUNT:
		CHECK_EQ(sg_sem_wait(v, s, c, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_post(v, s), -EIO);
		CHECK(!sg_sem_wait_at_once(v, s) && !sg_sem_post_at_once(v, s));
		break;
	case SG_SEM_RWLOCK:
		CHECK_EQ(sg_sem_read_lock(v, s, c, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_read_unlock(v, s), -EIO);
		CHECK_EQ(sg_sem_write_lock(v, s, c, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_write_unlock(v, s, c), -EIO);
		CHECK_EQ(sg_sem_drain(v, s, c, in_ms(10)), -EIO);
		break;
	case SG_SEM_COND:
		CHECK_EQ(sg_sem_cond_prepare(v, s, &seen), -EIO);
		CHECK_EQ(sg_sem_cond_wait(v, s, c, 0, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_cond_signal(v, s, true), -EIO);
		break;
	case SG_SEM_BARRIER:
		CHECK_EQ(sg_sem_meet(v, s, c, in_ms(10)), -EIO);
		break;
	default:
		CHECK_EQ(sg_sem_await(v, s, c, 5, in_ms(10)), -EIO);
		CHECK_EQ(sg_sem_advance(v, s, 1), -EIO);
	}
	sg_sem_ring(v, s);
	sg_sem_close(v, s);
}

static void each_kind(unsigned int type, unsigned int flags, bool words)
{
	struct sg_sem s, s2;

	begin();
	s = sem_make(&t.v, "s", type, flags, type == SG_SEM_BARRIER ? 2 : 0);
	s2 = sem_of(&other, "s");
	if (type == SG_SEM_RWLOCK)
		CHECK_OK(sg_sem_read_lock(&t.v, &s, me, 0));
	break_page(words ? s.words : s.rec);
	is_gone(&t.v, &s, me);
	is_gone(&other, &s2, they);
	/* no lock stays held, not even that of the objects' file */
	s = sem_make(&other, "another one", SG_SEM_COUNT, 0, 1);
	CHECK_OK(sg_sem_wait(&other, &s, they, 0));
	sg_sem_close(&other, &s);
	mend_pages();
	end();
}

/* --- a waiter --------------------------------------------------------------------------------- */

static struct sg_sem waited;
static int wait_err;

static void *wait_long(void *arg)
{
	(void)arg;
	wait_err = sg_sem_lock(&t.v, &waited, me, SG_SEM_NEVER);
	return NULL;
}

static void waiting(void)
{
	pthread_t thread;
	struct sg_sem m2;
	u64 off;

	begin();
	waited = sem_make(&t.v, "m", SG_SEM_MUTEX, SG_SEM_MAPPED, 0);
	m2 = sem_of(&other, "m");
	CHECK_OK(sg_sem_lock(&other, &m2, they, 0));
	CHECK_OK(pthread_create(&thread, NULL, wait_long, NULL));
	while (!sg_load64(&sg_sem_record(&other, &m2)->waits.waiters))
		sg_sleep_us(1000);
	off = waited.words & ~(SG_PAGE - 1);
	CHECK_EQ(sg_bad_add(&t.v, off, 1), 1);
	sg_sleep_us(50000);	/* the waiter has checked its word again by then */
	break_page(off);
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_EQ(wait_err, -EIO);
	is_gone(&t.v, &waited, me);
	is_gone(&other, &m2, they);
	mend_pages();
	end();
}

/* --- owners and joiners ----------------------------------------------------------------------- */

static void members(void)
{
	struct sg_sem_caller *late;
	struct sg_sem s;

	begin();
	s = sem_make(&t.v, "m", SG_SEM_MUTEX, 0, 0);
	CHECK_OK(sg_sem_lock(&t.v, &s, me, 0));
	break_page(me->record);
	caller_end(&t.v, me);
	caller_end(&t.v, you);		/* its record is on the same page */
	late = caller_of(&t.v, 4);	/* its record is on another page */
	CHECK((late->record ^ broken[0]) >> SG_PAGE_SHIFT);
	CHECK_OK(sg_sem_lock(&t.v, &s, late, 0) == -EOWNERDEAD ? 0 : 1);
	CHECK_OK(sg_sem_consistent(&t.v, &s, late));
	CHECK_OK(sg_sem_unlock(&t.v, &s, late));
	caller_end(&t.v, late);
	sg_sem_close(&t.v, &s);
	mend_pages();
	me = caller_of(&t.v, 1);
	you = caller_of(&t.v, 2);
	end();
}

static bool count_one(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	(void)name;
	(void)len;
	(void)st;
	++*(unsigned int *)ctx;
	return true;
}

/* A page of records is bad: systems can join, and use objects on other pages. */
static void joining(void)
{
	struct sg_sem bad, good;
	unsigned int n = 0;
	u64 cookie = 0;

	begin();
	bad = sem_make(&t.v, "bad", SG_SEM_COUNT, 0, 1);
	good = sem_make(&t.v, "good", SG_SEM_COUNT, 0, 1);
	CHECK((bad.rec ^ good.rec) >> SG_PAGE_SHIFT);
	sg_sem_close(&t.v, &bad);
	break_page(bad.rec);
	caller_end(&other, they);
	sg_leave(&other);
	join_other();
	CHECK_OK(sg_sem_list(&other, &cookie, count_one, &n));
	CHECK_EQ(n, 1);
	CHECK_EQ(try_open(&other, "bad", 0, false, &bad), -EIO);
	sg_sem_close(&t.v, &good);
	mend_pages();
	end();
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

int main(void)
{
	unsigned int type;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sg_log_hook = quiet;
	for (type = SG_SEM_MUTEX; type < SG_SEM_TYPES; type++) {
		each_kind(type, 0, false);
		each_kind(type, SG_SEM_MAPPED, true);
		each_kind(type, SG_SEM_MAPPED, false);
	}
	waiting();
	members();
	joining();
	return test_done();
}
