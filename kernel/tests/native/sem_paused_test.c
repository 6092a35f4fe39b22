// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores while another system is paused. That system holds a lock that callers need, or
 * it is fenced for its silence while its processes may still store.
 */
#include <time.h>
#include "sem_pair.h"

extern u64 (*sg_ticks_hook)(void);

static u64 paused_at;

/* Returns the time. Since the pause of the other system, the clock runs 1000 times as fast. */
static u64 fast_ticks(void)
{
	struct timespec ts;
	u64 now, at = sg_load64(&paused_at);

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (u64)ts.tv_sec * SEC + (u64)ts.tv_nsec;
	return at ? at + (now - at) * 1000 : now;
}

static void *meet_in_vain(void *arg)
{
	CHECK_EQ(sg_sem_meet(&t.v, arg, me, sg_ticks() + 2 * SEC), -ETIMEDOUT);
	return NULL;
}

/*
 * The other system is paused while it has the lock. A caller that stops waiting does not count
 * forever.
 */
static void barrier_behind_paused(void)
{
	pthread_t thread;
	struct timespec ts;
	struct sg_sem b;
	u64 lock;

	begin();
	b = sem_make(&t.v, "b", SG_SEM_BARRIER, 0, 2);
	lock = b.rec + offsetof(struct sg_sem_record, lock);
	sg_ticks_hook = fast_ticks;
	CHECK_OK(pthread_create(&thread, NULL, meet_in_vain, &b));
	while (sg_sem_arrived(&t.v, &b) != 1)
		sg_sleep_us(100);
	while (!sg_trylock(&other, lock))
		sg_sleep_us(100);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	sg_store64(&paused_at, (u64)ts.tv_sec * SEC + (u64)ts.tv_nsec);
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_EQ(sg_sem_arrived(&t.v, &b), 0);
	sg_unlock(&other, lock);
	sg_store64(&paused_at, 0);
	sg_ticks_hook = NULL;
	end();
}

/* Removes the page of bells. Earlier software leaves such a volume if no thread has waited. */
static void without_bells(void)
{
	const struct sg_iref file = sg_sem_file();
	struct sg_tx *tx;
	u64 next;
	int err;

	CHECK_OK(sg_ilock(&t.v, &file));
	tx = sg_tx_begin(&t.v);
	sg_tx_inode(tx, &file);
	CHECK_OK(sg_table_cut(tx, &file, SG_SEM_BELLS_PAGE, SG_SEM_BELLS_PAGE + 1, &next));
	sg_sys_copy(tx, SG_SYS_SEMS);
	CHECK_OK(sg_tx_commit(tx));
	sg_iunlock(&t.v, &file);
	CHECK(!sg_sem_page_at(&t.v, SG_SEM_BELLS_PAGE, &err) && !err);
}

static void areas(bool taken)
{
	unsigned int i;

	for (i = 0; i < t.v.sb.areas; i++) {
		u64 lock = sg_area_off(&t.v, (unsigned int)t.v.slot, i) + offsetof(struct sg_area, lock);

		if (taken)
			CHECK(sg_trylock(&other, lock));
		else
			sg_unlock(&other, lock);
	}
}

/*
 * Opening an object makes the page of bells. A sleeper works without the page while a paused system
 * holds locks that a transaction needs: the time limit covers the complete wait.
 */
static void sleep_without_bells(void)
{
	struct sg_sem s;
	u64 start;
	int err;

	begin();
	s = sem_make(&t.v, "s", SG_SEM_COUNT, 0, 0);
	CHECK(sg_sem_page_at(&t.v, SG_SEM_BELLS_PAGE, &err) && !err);
	without_bells();
	areas(true);
	test_within(30, "a wait of 10 ms");
	start = sg_ticks();
	CHECK_EQ(sg_sem_wait(&t.v, &s, me, in_ms(10)), -ETIMEDOUT);
	CHECK(sg_ticks() - start < SEC);
	test_within(0, NULL);
	areas(false);
	/* the state after an open that found no room */
	sg_store64(&t.v.sems->bells, SG_SEM_BELLS_WANTED);
	sg_settle(&t.v);
	CHECK(sg_sem_page_at(&t.v, SG_SEM_BELLS_PAGE, &err) && !err);
	CHECK_EQ(sg_load64(&t.v.sems->bells), SG_SEM_BELLS_MADE);
	sg_sem_close(&t.v, &s);
	end();
}

/* No other object gets a semaphore's words while a fenced system may still store into them. */
static void lapsed_user(void)
{
	struct sg_sem_new new = new_of(SG_SEM_COUNT, 0, 1);
	struct sg_sem s;
	u64 bit;

	begin();
	new.life = SG_SEM_LAST_USER;
	CHECK_OK(try_create(&other, "s", new, true, &s));
	bit = 1ULL << other.slot;
	kill_other(true);
	sg_or64(sg_at(&t.v, SG_HOT(lapsed)), bit);
	CHECK_EQ(try_create(&t.v, "s", new, true, &s), -EEXIST);
	/* no other object gets the words after this system has closed the object either */
	CHECK_OK(try_open(&t.v, "s", 0, false, &s));
	sg_sem_close(&t.v, &s);
	CHECK_EQ(try_create(&t.v, "s", new, true, &s), -EEXIST);
	sg_and64(sg_at(&t.v, SG_HOT(lapsed)), ~bit);
	CHECK_OK(try_create(&t.v, "s", new, true, &s));
	sg_sem_close(&t.v, &s);
	join_other();
	end();
}

/* No other process gets a reader's cell while a fenced system may still store into it. */
static void lapsed_reader(void)
{
	struct sg_sem_new new = new_of(SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	struct sg_sem theirs, ours, late;
	u64 bit;

	begin();
	CHECK_OK(sg_sem_create(&other, "rw", 2, &new, true, true, &theirs));
	CHECK(theirs.cell >= SG_SEM_CELL_FIRST);
	bit = 1ULL << other.slot;
	kill_other(true);
	sg_or64(sg_at(&t.v, SG_HOT(lapsed)), bit);
	CHECK_OK(try_open(&t.v, "rw", SG_SEM_RWLOCK, true, &ours));
	CHECK(ours.cell != theirs.cell);
	sg_and64(sg_at(&t.v, SG_HOT(lapsed)), ~bit);
	CHECK_OK(try_open(&t.v, "rw", SG_SEM_RWLOCK, true, &late));
	CHECK_EQ(late.cell, theirs.cell);
	sg_sem_close(&t.v, &late);
	sg_sem_close(&t.v, &ours);
	join_other();
	end();
}

int main(void)
{
	barrier_behind_paused();
	lapsed_user();
	lapsed_reader();
	sleep_without_bells();
	return test_done();
}
