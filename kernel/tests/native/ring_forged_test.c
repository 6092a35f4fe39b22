// SPDX-License-Identifier: Apache-2.0
/* Rings whose words and records another user forges, through libstargate. */
#define _GNU_SOURCE
#include "ring_lib.h"

/* With any words and any data, each call returns, and accesses only the ring's memory. */
static void forged(void)
{
	stargate_ring *a = ring_make("f", 64 * KIB, 0), *b = ring_have(1, "f");
	static const unsigned int words[] = { 0, 8, 16, 24, 32, 33, 128, 136 };
	u64 *page = words_of("f"), i, val;
	struct rng rng = { test_seed() };
	unsigned int bad = 0;
	struct sg_ring_record *rec;
	const void *from;
	size_t len;
	int err;

	put(a, 1, 10);
	get(b, 1, 10);
	for (i = 0; i < test_amount(3000, 30000, 1000000); i++) {
		unsigned int w = words[rng_below(&rng, SG_ARRAY_SIZE(words))];

		val = rng_size(&rng, ~0ULL);
		if (rng_chance(&rng, 30))
			val = sg_load64(page + w) + rng_below(&rng, 100) - 50;
		sg_store64(page + w, val & ~(SG_SEMW_WAITERS | SG_SEMW_ASKED));
		if (w == 0 && rng_chance(&rng, 80))
			sg_store64(page, 0);
		if (rng_chance(&rng, 20))
			fill(a->w.data, 64 * KIB, i);
		err = stargate_ring_send(a, 1, buf, rng_size(&rng, 32000), STARGATE_TRY);
		bad += err == EUCLEAN;
		CHECK(err != EIO && err != EINVAL);
		err = stargate_ring_recv(b, NULL, out, sizeof(out), &len, STARGATE_TRY);
		bad += err == EUCLEAN;
		CHECK(len <= sizeof(out) || err == EMSGSIZE || err == EUCLEAN);
		if (!stargate_ring_peek(b, NULL, &from, &len, STARGATE_TRY)) {
			CHECK(len <= stargate_ring_most(b));
			CHECK_OK(stargate_ring_release(b));
		}
		if (i % 100 == 0)
			CHECK_OK(stargate_reset(at[0], "f"));
	}
	CHECK(bad);
	CHECK_OK(stargate_reset(at[0], "f"));
	put(a, 3, 10);
	rec = sg_ringw_record(&a->w, SG_RING_HEAD_POS(sg_load64(page + SG_RING_HEAD)));
	for (i = 17; i; i = i * 33 & 0xffffffff) {	/* a length above that of the sent record */
		rec->len_tag = i | 3ULL << 32;
		CHECK_EQ(stargate_ring_peek(b, NULL, &from, &len, STARGATE_TRY), EUCLEAN);
		if (i > 1u << 31)
			break;
	}
	rec->len_tag = 10 | 3ULL << 32;
	get(b, 3, 10);
	/* a reset makes the ring usable again */
	CHECK_OK(stargate_reset(at[0], "f"));
	put(a, 2, 20000);
	get(b, 2, 20000);
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "f"));
}

static void *waits_for_it(void *arg)
{
	size_t len;

	CHECK_OK(stargate_ring_recv(arg, NULL, out, sizeof(out), &len, stargate_in(60 * SEC)));
	CHECK_EQ(len, 30);
	thread_ends();
	return NULL;
}

/* A user briefly stores a forged position. A sleeping receiver still gets the next record. */
static void forged_for_a_moment(void)
{
	stargate_ring *a = ring_make("m", 64 * KIB, 0), *b = ring_have(1, "m");
	u64 *page = words_of("m"), *tail = page + SG_RING_WORD(SG_RING_TAIL), pos, begun;
	pthread_t t;

	put(a, 1, 10);
	get(b, 1, 10);
	pos = sg_load64(tail);
	sg_store64(tail, pos + 1000);
	sg_store64(page + SG_RING_HEAD, SG_RING_HEAD_AT(pos + 1000, 0));
	CHECK_OK(pthread_create(&t, NULL, waits_for_it, b));
	while (!(sg_load64(tail) & SG_SEMW_WAITERS))
		sg_sleep_us(1000);
	begun = sg_ticks();
	sg_store64(page + SG_RING_HEAD, SG_RING_HEAD_AT(pos, 0));
	sg_store64(tail, pos | SG_SEMW_WAITERS);
	fill(buf, 30, 2);
	CHECK_OK(stargate_ring_send(a, 2, buf, 30, STARGATE_TRY));
	CHECK_OK(pthread_join(t, NULL));
	CHECK(sg_ticks() - begun < 30 * SEC);
	/* a position above the limit is refused, even if the ring seems to have room */
	sg_store64(page + SG_RING_FREED, SG_RING_POS_MAX - 1);
	sg_store64(page + SG_RING_HEAD, SG_RING_HEAD_AT(SG_RING_POS_MAX - 1, 0));
	sg_store64(tail, SG_RING_POS_MAX - 1);
	CHECK_EQ(stargate_ring_send(a, 1, buf, 100, STARGATE_TRY), EUCLEAN);
	CHECK_EQ(sg_load64(tail), SG_RING_POS_MAX - 1);
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "m"));
}

static stargate_ring *first;
static u64 *moved_head, moves;

/* Stores another head just before each load of the head. */
static void moves_head(void *addr, bool behind)
{
	if (behind || addr != &first->w.page[SG_RING_HEAD])
		return;
	sg_store64(moved_head, sg_load64(moved_head) ^ (SG_SEM_CELL_FIRST ^ (SG_SEM_CELL_FIRST + 1)));
	if (++moves > 10 * SG_RING_TURNS * SG_RING_ROUNDS)
		test_fail(__FILE__, __LINE__, "a receive call without a time limit");
}

/* A receiver without a time limit does not spin forever. */
static void forged_all_the_time(void)
{
	size_t len;

	first = ring_make("t", 64 * KIB, 0);
	put(first, 1, 10);
	get(first, 1, 10);
	put(first, 2, 20);
	moved_head = words_of("t") + SG_RING_HEAD;
	sg_store64(moved_head, SG_RING_HEAD_AT(SG_RING_HEAD_POS(*moved_head), SG_SEM_CELL_FIRST));
	test_trap((u8 *)first->w.page, moves_head);
	CHECK_EQ(stargate_ring_recv(first, NULL, out, sizeof(out), &len, STARGATE_FOREVER), EUCLEAN);
	CHECK(moves > SG_RING_TURNS * SG_RING_ROUNDS);
	CHECK_EQ(stargate_ring_recv(first, NULL, out, sizeof(out), &len, STARGATE_TRY), EAGAIN);
	test_trap_end();
	get(first, 2, 20);	/* the record was not claimed */
	stargate_ring_close(first);
	CHECK_OK(stargate_remove(at[0], "t"));
}

int main(void)
{
	begin();
	forged();
	forged_for_a_moment();
	forged_all_the_time();
	end();
	return test_done();
}
