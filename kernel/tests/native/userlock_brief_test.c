// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of users: calls that must not wait, because their callers hold locks for which other
 * threads wait.
 */
#include "userlock_util.h"

static struct sg_userlock brief(struct sg_userlock l)
{
	l.brief = true;
	return l;
}

static int brief_clear(unsigned int s, struct sg_userlock l)
{
	struct sg_userlock range = brief(l);

	return sg_userlock_clear(&sys[s], &file[0], &range);
}

static u64 awaited;

static void *await(void *arg)
{
	CHECK_OK(sg_userlock_await(&sys[0], &file[0], -EBUSY));
	sg_store64(&awaited, 1);
	return arg;
}

/*
 * Another system has the chain's lock, and does not release it. A brief call still returns, and
 * changes nothing. It returns immediately if another thread has already waited for long.
 */
static void brief_never_waits(void)
{
	struct sg_userlock_wait w = { 0 };
	struct sg_userlock_chain c;
	unsigned int nr, i;
	pthread_t id;
	u64 start;
	int err;

	CHECK_OK(try(0, 0, POSIX(1, true)));
	nr = chain_with(file[0].ino);
	test_within(20, "a brief call, while another system has the chain's lock");
	CHECK_OK(sg_userlock_enter(&sys[1], nr, &c, SG_USERLOCK_PATIENT));
	CHECK_EQ(try(0, 0, brief(FLOCK(1, true))), -EBUSY);
	CHECK_EQ(ask(0, 0, brief(FLOCK(1, true)), &w), -EBUSY);
	CHECK_EQ(brief_clear(0, POSIX(1, true)), -EBUSY);
	CHECK_EQ(each_record(NULL, NULL), 1);
	awaited = 0;
	CHECK_OK(pthread_create(&id, NULL, await, NULL));
	while (!sg_load64(&sys[0].stuck))
		sg_sleep_us(1000);
	start = sg_ticks();
	for (i = 0; i < 100; i++)	/* each would take 20 ms if the long wait were not known */
		CHECK_EQ(brief_clear(0, POSIX(1, true)), -EBUSY);
	CHECK(sg_ticks() - start < 1000 * MS);
	CHECK(!sg_load64(&awaited));
	sg_userlock_leave(&c);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(sg_load64(&sys[0].stuck), 0);
	test_within(0, NULL);
	CHECK_OK(try(0, 0, brief(FLOCK(1, true))));
	CHECK_OK(brief_clear(0, POSIX(1, true)));
	CHECK_OK(brief_clear(0, FLOCK(1, true)));
	CHECK_EQ(each_record(NULL, NULL), 0);
	/* a brief call does not make room in the chain either */
	for (i = 0; (err = try(0, 6, brief(lock_of(SG_USERLOCK_OFD, 1, true, 2 * i, 2 * i)))) == 0; i++)
		CHECK(i < SG_USERLOCK_RECORDS);
	CHECK_EQ(err, -ENOBUFS);
	CHECK_EQ(each_record(NULL, NULL), i);
	CHECK_OK(sg_userlock_await(&sys[0], &file[6], err));
	CHECK_OK(try(0, 6, brief(lock_of(SG_USERLOCK_OFD, 1, true, 2 * i, 2 * i))));
	drop(0, 6, OFD(1, true));
}

/*
 * A brief call for a flock only tries at first: its request is in the chain when it has waited for
 * 300 us. The call yields to earlier requests nevertheless.
 */
static void brief_tries_first(void)
{
	struct sg_userlock want = brief(FLOCK(1, true));
	struct sg_userlock_wait a = { 0 }, b = { 0 };

	CHECK_OK(try(0, 0, FLOCK(1, true)));
	a.since = sg_ticks() - MS;
	CHECK_EQ(ask(1, 0, want, &a), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 2);
	drop(0, 0, FLOCK(1, true));
	CHECK_EQ(ask(0, 0, want, &b), -EAGAIN);
	CHECK(sg_ticks() - b.since > 300000 || each_record(NULL, NULL) == 1);
	CHECK_OK(ask(1, 0, want, &a));
	drop(1, 0, FLOCK(1, true));
	CHECK_OK(ask(0, 0, want, &b));
	drop(0, 0, FLOCK(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* The search for a brief request's cycle runs after the call. */
static void brief_circle(void)
{
	struct sg_userlock_wait a = { 0 }, b = { 0 };
	struct sg_userlock want = brief(POSIX(1, true));

	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_OK(try(1, 1, POSIX(1, true)));
	CHECK_EQ(ask(0, 1, want, &a), -EAGAIN);
	CHECK_EQ(sg_userlock_deadlock(&sys[0], &file[1], &want, &a), -EAGAIN);
	CHECK_EQ(ask(1, 0, want, &b), -EAGAIN);
	CHECK_EQ(sg_userlock_deadlock(&sys[1], &file[0], &want, &b), -EDEADLK);
	drop(1, 1, POSIX(1, true));
	CHECK_OK(ask(0, 1, want, &a));
	drop(0, 0, POSIX(1, true));
	drop(0, 1, POSIX(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

int main(void)
{
	seed = test_seed();
	begin(TEST_SMALL);
	brief_never_waits();
	brief_tries_first();
	brief_circle();
	end();
	return test_done();
}
