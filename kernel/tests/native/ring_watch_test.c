// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting for a ring without a thread, like poll(): for a record, and for room. The other system
 * provides both. A watch that has become ready costs the other system nothing more.
 */
#define _GNU_SOURCE
#include "member/member.h"
#include "ring_util.h"

#define SIZE	(32ULL << 20)
#define LEN	3000u

static u8 *mem;
static struct tsys here, there;
static struct listener ear[2];
static struct ring_user a, b;	/* one user on each system */

static void give_record(struct ring_user *u, u32 tag)
{
	u64 tail;

	memset(ring_begin(u, LEN, &tail), (int)tag, LEN);
	ring_commit(u, tail, LEN, tag);
	ring_unlock(u);
}

static void take_record(struct ring_user *u, u32 tag)
{
	struct sg_ring_claim c;

	CHECK(ring_take_many(u, &c, 1, in_ms(5000)));
	CHECK_EQ(c.tag, tag);
	ring_give(u);
}

/* Checks that the bell rings, and the watch becomes ready, within @ms. */
static void rings_within(struct sg_sem_watch *w, u64 ms)
{
	u64 end = in_ms(ms);
	int ready;

	while (!(ready = sg_sem_watch_look(&here.v, w, false))) {
		CHECK(sg_ticks() < end);
		sg_bell_wait(&w->caller.bell, end - sg_ticks());
	}
	CHECK_EQ(ready, 1);
}

/* Checks that the bell rings, without a poll of the watch that could hide a missing ring. */
static void bell_rings(struct sg_sem_watch *w)
{
	u64 begun = sg_ticks();

	sg_bell_wait(&w->caller.bell, 20 * SEC);
	CHECK(sg_ticks() - begun < 10 * SEC);
}

static u64 waiting(const struct sg_sem *part)
{
	return sg_load64(&sg_sem_waits(&here.v, part)->waiters);
}

static void *sends_later(void *arg)
{
	sg_sleep_us(20000);
	give_record(arg, 7);
	return NULL;
}

static void *receives_later(void *arg)
{
	u32 i;

	for (i = 0; i < 12; i++) {
		sg_sleep_us(5000);
		take_record(arg, i);
	}
	return NULL;
}

static void for_records(struct ring_user *from)
{
	struct sg_sem_watch w;
	pthread_t t;
	unsigned int turn;

	sg_sem_watch_begin(&w, &a.sem, false);
	for (turn = 0; turn < 20; turn++) {
		CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
		CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
		CHECK_EQ(waiting(&a.tail), 1ULL << here.v.slot);
		CHECK_OK(pthread_create(&t, NULL, sends_later, from));
		rings_within(&w, 20000);
		CHECK_OK(pthread_join(t, NULL));
		CHECK_EQ(waiting(&a.tail), 0);
		/* the record is still in the ring */
		CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
		take_record(&a, 7);
		/* no system waits any more, so this record's sender clears the flag */
		give_record(&b, 8);
		CHECK(!(sg_load64(a.w.page + SG_RING_WORD(SG_RING_TAIL)) & SG_SEMW_WAITERS));
		take_record(&a, 8);
	}
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	sg_sem_watch_end(&here.v, &w);
	CHECK_EQ(waiting(&a.tail), 0);
}

/* A user of the ring clears the flag. The watch still becomes ready, though later. */
static void flag_forged(void)
{
	u64 *tail = a.w.page + SG_RING_WORD(SG_RING_TAIL);
	struct sg_sem_watch w;

	sg_sem_watch_begin(&w, &a.sem, false);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	sg_store64(tail, sg_load64(tail) & SG_SEMW_COUNT);
	give_record(&b, 9);
	bell_rings(&w);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	take_record(&a, 9);
	sg_sem_watch_end(&here.v, &w);
}

static void for_room(void)
{
	struct sg_sem_watch w;
	pthread_t t;
	u32 i;

	sg_sem_watch_begin(&w, &a.sem, true);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	for (i = 0; i < SG_RING_MIN / 2 / (LEN + 24) + 2; i++)
		give_record(&a, i);
	CHECK_EQ(i, 12);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	CHECK_EQ(waiting(&a.room), 1ULL << here.v.slot);
	CHECK_OK(pthread_create(&t, NULL, receives_later, &b));
	rings_within(&w, 20000);
	CHECK_EQ(waiting(&a.room), 0);
	CHECK_OK(pthread_join(t, NULL));
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	sg_sem_watch_end(&here.v, &w);
}

/*
 * One process sleeps for the watch. Another system sends a record, and a second process here takes
 * it before the bell rings. The first process has to check again, and sleep.
 */
static void two_pollers(void)
{
	struct sg_sem_watch w;

	listen_end(&ear[0]);
	sg_sem_watch_begin(&w, &a.sem, false);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	give_record(&b, 10);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	take_record(&a, 10);
	bell_rings(&w);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	CHECK_EQ(waiting(&a.tail), 1ULL << here.v.slot);
	sg_sem_watch_end(&here.v, &w);
	listen_begin(&ear[0], &here.v);
}

/* Acts as an edge-triggered poller, which checks the watch only when the bell has rung. */
static void finds_when_rung(struct sg_sem_watch *w)
{
	u64 end = in_ms(20000);

	do {
		sg_bell_wait(&w->caller.bell, end - sg_ticks());
		CHECK(sg_ticks() < end);
	} while (!sg_sem_watch_look(&here.v, w, true));
}

static void is_quiet(struct sg_sem_watch *w)
{
	u64 begun;

	/* the bell may ring once more after the last change */
	sg_bell_wait(&w->caller.bell, 100 * MS);
	begun = sg_ticks();
	sg_bell_wait(&w->caller.bell, 200 * MS);
	CHECK(sg_ticks() - begun >= 200 * MS);
}

static void edges(struct ring_user *from)
{
	struct sg_sem_watch w, room;
	unsigned int turn;
	u32 i;

	sg_sem_watch_begin(&w, &a.sem, false);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, true), 0);
	for (turn = 0; turn < 20; turn++) {
		give_record(from, turn);
		finds_when_rung(&w);
		take_record(&a, turn);
	}
	give_record(from, turn);
	finds_when_rung(&w);
	/* the record is still in the ring, but the bell does not ring again */
	is_quiet(&w);
	/* another poller, level-triggered */
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	CHECK_EQ(waiting(&a.tail), 1ULL << here.v.slot);
	take_record(&a, turn);
	sg_sem_watch_end(&here.v, &w);
	CHECK_EQ(waiting(&a.tail), 0);

	sg_sem_watch_begin(&room, &a.sem, true);
	CHECK_EQ(sg_sem_watch_look(&here.v, &room, true), 1);
	for (turn = 0; turn < 5; turn++) {
		is_quiet(&room);
		for (i = 0; i < 12; i++)
			give_record(&a, i);
		for (i = 0; i < 12; i++)
			take_record(&b, i);
		finds_when_rung(&room);
	}
	sg_sem_watch_end(&here.v, &room);
	CHECK_EQ(waiting(&a.room), 0);
}

/*
 * A reader dies with its system, while it has a claim. No sender has checked for dead readers yet.
 */
static void reader_dies(void)
{
	struct sg_ring_claim c;
	struct sg_sem_watch w;
	struct ring_user u;
	u32 i, incarnation;
	struct tsys dead;
	unsigned int slot;

	tsys_join(&dead, mem, SIZE, 3);
	ring_use(&u, &dead.v, "ring", 3);
	for (i = 0; i < 12; i++)
		give_record(&a, i);
	CHECK(ring_take_many(&u, &c, 1, 0));
	for (i = 1; i < 12; i++)
		take_record(&b, i);
	sg_sem_watch_begin(&w, &a.sem, true);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	slot = (unsigned int)dead.v.slot;
	incarnation = dead.v.incarnation;
	tsys_die(&dead);
	/* the dead system may still read the claimed record */
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	CHECK_OK(sg_fence_slot(&there.v, slot, incarnation));
	sg_recover_slot(&there.v, slot);
	CHECK_EQ(tsys_state(&there, slot), SG_SLOT_FREE);
	rings_within(&w, 20000);
	sg_sem_watch_end(&here.v, &w);
	munmap(u.twice, 2 * u.sem.size);
	sg_free(u.c);
	for (i = 0; i < 12; i++) {
		give_record(&a, i);
		take_record(&b, i);
	}
}

/*
 * With forged words, or on a fenced system, the watch is ready, because the next call returns an
 * error.
 */
static void forged_and_fenced(void)
{
	u64 *head = a.w.page + SG_RING_HEAD, was = sg_load64(head);
	struct sg_sem_watch w, room, edge;

	sg_sem_watch_begin(&w, &a.sem, false);
	sg_sem_watch_begin(&room, &a.sem, true);
	sg_sem_watch_begin(&edge, &a.sem, true);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	sg_store64(head, SG_RING_HEAD_AT(1ULL << 50, 0));
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 1);
	CHECK_EQ(sg_sem_watch_look(&here.v, &room, false), 1);
	sg_store64(head, was);
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), 0);
	CHECK_EQ(sg_sem_watch_look(&here.v, &edge, true), 1);
	is_quiet(&edge);
	tsys_fence(&there, &here);
	bell_rings(&edge);
	CHECK_EQ(sg_sem_watch_look(&here.v, &edge, true), -EIO);
	listen_end(&ear[0]);
	sg_bell_wait(&w.caller.bell, 0);	/* the bell may have rung before */
	CHECK_EQ(sg_sem_watch_look(&here.v, &w, false), -EIO);
	bell_rings(&w);		/* rings for other processes that sleep */
	CHECK_EQ(sg_sem_watch_look(&here.v, &room, false), -EIO);
	sg_sem_watch_end(&here.v, &w);
	sg_sem_watch_end(&here.v, &room);
	sg_sem_watch_end(&here.v, &edge);
}

int main(void)
{
	struct sg_sem sem;

	mem = tsys_volume(SIZE);
	tsys_join(&here, mem, SIZE, 1);
	tsys_join(&there, mem, SIZE, 2);
	listen_begin(&ear[0], &here.v);
	listen_begin(&ear[1], &there.v);
	CHECK_OK(try_create(&here.v, "ring", ring_new(SG_RING_MIN, 0), true, &sem));
	ring_use(&a, &here.v, "ring", 1);
	ring_use(&b, &there.v, "ring", 2);
	for_records(&b);
	for_records(&a);	/* records of the same system */
	flag_forged();
	for_room();
	two_pollers();
	edges(&b);
	edges(&a);
	reader_dies();
	forged_and_fenced();
	munmap(a.twice, 2 * a.sem.size);
	sg_free(a.c);
	ring_end(&b);
	listen_end(&ear[1]);
	sg_abandon(&here.v);
	tsys_leave(&there);
	test_unmap(mem, SIZE);
	return test_done();
}
