// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of users while a paused system has a lock of the lock file: searches for cycles of waiting
 * requests, and processes that exit.
 */
#include "userlock_util.h"

/*
 * Two requests close a cycle while another system has @lock, and is paused. The search does not
 * wait for the paused system, and finds the cycle as soon as @lock is free.
 */
static void circle_behind(u64 lock)
{
	struct sg_userlock_wait a = { 0 }, b = { 0 };
	unsigned int turn;

	CHECK_EQ(ask(0, 1, POSIX(1, true), &a), -EAGAIN);
	CHECK_OK(sg_lock(&sys[2], lock));
	test_within(20, "a search for cycles, while another system has a lock that it needs");
	for (turn = 0; turn < 3; turn++)
		CHECK_EQ(ask(1, 0, POSIX(2, true), &b), -EAGAIN);
	test_within(0, NULL);
	sg_unlock(&sys[2], lock);
	CHECK_EQ(ask(1, 0, POSIX(2, true), &b), -EDEADLK);
	sg_userlock_give_up(&sys[0], &file[1], &a);
	CHECK_EQ(each_record(NULL, NULL), 2);
}

/* --- a process that ends ---------------------------------------------------------------------- */

/* Locks all existing chains for a paused system, or releases them. */
static void pause_chains(bool on)
{
	unsigned int nr;
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		struct sg_userlock_page *page = sg_userlock_page(&sys[2], nr, 0, &err);
		u64 lock = page ? (u64)((u8 *)&page->lock - sys[2].base) : 0;

		if (page && on)
			CHECK(sg_trylock(&sys[2], lock));
		else if (page)
			sg_unlock(&sys[2], lock);
	}
}

/* Releases a lock, like the module when a process exits. */
static void release(unsigned int f, struct sg_userlock l)
{
	l.brief = true;
	CHECK_EQ(sg_userlock_clear(&sys[0], &file[f], &l), -EBUSY);
	CHECK_OK(sg_userlock_clear_later(&sys[0], &file[f], &l));
}

/* number of locks; waits of 20 ms for each would take 4 s, waits of 100 s would take hours */
#define MANY	200u

/*
 * An exiting process with many locks does not wait for the paused system. All its locks are
 * released later.
 */
static void ends(void)
{
	struct sg_userlock_wait w = { 0 };
	unsigned int i;
	u64 start;

	for (i = 0; i < MANY; i++)
		CHECK_OK(try(0, i % 8, OFD(i + 1, false)));
	CHECK_EQ(ask(0, 0, OFD(MANY + 1, true), &w), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), MANY + 1);
	pause_chains(true);
	start = sg_ticks();
	for (i = 0; i < MANY; i++)
		release(i % 8, OFD(i + 1, false));
	sg_userlock_give_up(&sys[0], &file[0], &w);
	CHECK(sg_ticks() - start < 1000 * MS);
	sg_settle(&sys[0]);		/* settling does not wait either */
	CHECK_EQ(each_record(NULL, NULL), MANY + 1);
	pause_chains(false);
	sg_settle(&sys[0]);
	CHECK_EQ(each_record(NULL, NULL), 0);
	CHECK_EQ(sys[0].nreleases, 0);
	CHECK_OK(try(1, 0, OFD(1, true)));
	drop(1, 0, OFD(1, true));
}

extern bool (*sg_no_memory_hook)(size_t len);

static bool no_memory(size_t len)
{
	(void)len;
	return true;
}

/*
 * A thread withdraws a request while the chain is locked, and has no memory to record the
 * withdrawal. No request remains that would block later requests.
 */
static void given_up_without_memory(void)
{
	struct sg_userlock_wait w = { 0 };

	CHECK_OK(try(1, 0, OFD(1, false)));
	CHECK_EQ(ask(0, 0, OFD(2, true), &w), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 2);
	pause_chains(true);
	sg_no_memory_hook = no_memory;
	sg_userlock_give_up(&sys[0], &file[0], &w);
	sg_no_memory_hook = NULL;
	pause_chains(false);
	CHECK_EQ(w.off, 0);
	CHECK_EQ(each_record(NULL, NULL), 1);
	drop(1, 0, OFD(1, false));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* Another process may get the number of an owner that has exited. The new owner keeps its lock. */
static void same_owner_again(void)
{
	CHECK_OK(try(0, 0, FLOCK(1, true)));
	pause_chains(true);
	release(0, FLOCK(1, true));
	pause_chains(false);
	CHECK_OK(try(0, 0, FLOCK(1, true)));
	sg_settle(&sys[0]);
	CHECK_EQ(each_record(NULL, NULL), 1);
	CHECK_EQ(try(1, 0, FLOCK(1, true)), -EAGAIN);
	drop(0, 0, FLOCK(1, true));
	/* for other owners of this system the file is immediately free */
	CHECK_OK(try(0, 0, FLOCK(1, true)));
	pause_chains(true);
	release(0, FLOCK(1, true));
	pause_chains(false);
	CHECK_OK(try(0, 0, FLOCK(2, true)));
	drop(0, 0, FLOCK(2, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

static unsigned int told;

static void on_release(struct sg_vol *v)
{
	CHECK(v == &sys[0] && v->nreleases);
	told++;
}

/*
 * Settling is stopped, as before a freeze, or waits for another lock. Releases do not wait for
 * settling.
 */
static void without_settling(void)
{
	sys[0].on_release = on_release;
	CHECK_OK(try(0, 0, FLOCK(1, true)));
	CHECK_OK(try(0, 1, FLOCK(2, true)));
	sg_settle_stop(&sys[0], true);
	pause_chains(true);
	release(0, FLOCK(1, true));
	release(1, FLOCK(2, true));
	CHECK_EQ(told, 2);
	CHECK(!sg_userlock_settle(&sys[0], false));
	pause_chains(false);
	sg_settle(&sys[0]);
	CHECK_EQ(try(1, 0, FLOCK(1, true)), -EAGAIN);
	CHECK(sg_userlock_settle(&sys[0], false));
	CHECK_EQ(each_record(NULL, NULL), 0);
	CHECK(sg_userlock_settle(&sys[0], false));
	sg_settle_stop(&sys[0], false);
	sys[0].on_release = NULL;
}

static void *unpause(void *arg)
{
	(void)arg;
	sg_sleep_us(5000);
	pause_chains(false);
	return NULL;
}

/* The chain is always locked, as with many competing systems. The release queues for the lock. */
static void queued(void)
{
	pthread_t id;

	CHECK_OK(try(0, 0, FLOCK(1, true)));
	pause_chains(true);
	release(0, FLOCK(1, true));
	CHECK(!sg_userlock_settle(&sys[0], true));
	CHECK(!sg_userlock_settle(&sys[0], false));
	CHECK_OK(pthread_create(&id, NULL, unpause, NULL));
	CHECK(sg_userlock_settle(&sys[0], true));
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* The chain's page has become bad. No release waits for it forever. */
static void never(void)
{
	struct sg_userlock_page *page;
	u64 off;
	int err;

	CHECK_OK(try(0, 0, FLOCK(1, true)));
	page = sg_userlock_page(&sys[2], chain_with(file[0].ino), 0, &err);
	CHECK(page);
	off = (u64)((u8 *)page - sys[2].base);
	pause_chains(true);
	release(0, FLOCK(1, true));
	pause_chains(false);
	CHECK_EQ(sg_bad_add(&sys[0], off, SG_PAGE), 1);
	CHECK(sg_userlock_settle(&sys[0], false));
	CHECK_EQ(sg_bad_remove(&sys[0], off, SG_PAGE), 1);
	drop(0, 0, FLOCK(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* The system leaves before its locks are released: none of its records is a valid lock any more. */
static void leaves_first(void)
{
	CHECK_OK(try(0, 0, FLOCK(1, true)));
	pause_chains(true);
	release(0, FLOCK(1, true));
	sg_leave(&sys[0]);
	pause_chains(false);
	CHECK_OK(try(1, 0, FLOCK(1, true)));
	drop(1, 0, FLOCK(1, true));
	join(&sys[0]);
}

int main(void)
{
	struct sg_userlock_page *page;
	int err;

	seed = test_seed();
	begin(TEST_SMALL);
	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_OK(try(1, 1, POSIX(2, true)));
	CHECK(chain_with(file[0].ino) != chain_with(file[1].ino));
	page = sg_userlock_page(&sys[2], chain_with(file[1].ino), 0, &err);
	circle_behind((u64)((u8 *)&page->lock - sys[2].base));
	page = sg_userlock_page(&sys[2], 0, 0, &err);
	circle_behind((u64)((u8 *)&page->circle - sys[2].base));
	drop(0, 0, POSIX(1, true));
	drop(1, 1, POSIX(2, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
	ends();
	given_up_without_memory();
	same_owner_again();
	without_settling();
	queued();
	never();
	leaves_first();
	end();
	return test_done();
}
