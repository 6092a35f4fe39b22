// SPDX-License-Identifier: Apache-2.0
/*
 * Atomic writes of every kind, judged at every crash point: at a kill after each store, and at a
 * power cut at each fence. Each image has the complete write or no part of it. Then the same runs
 * with a second system, which continues and recovers the dead one.
 */
#include "crash_work.h"

#define MIB	(1u << 20)
#define KIB	1024u
#define OP(k, ...)	{ .kind = CW_##k, __VA_ARGS__ }

static const struct cw_op script[] = {
	OP(CREATE, "f"),
	/* a file of one page: its root word is the leaf */
	OP(ATOMIC, "f", .len = 100), OP(ATOMIC, "f", .pos = 50, .len = 1), OP(ATOMIC, "f", .len = 4096),
	/* without the flag: writes fill holes, and log other bytes, in the record or outside */
	OP(ATOMIC, "f", .pos = 4000, .len = 200), OP(ATOMIC, "f", .pos = 8, .len = 8),
	OP(ATOMIC, "f", .pos = 4000, .len = 3000), OP(ATOMIC, "f", .pos = 0, .len = 8 * KIB),
	OP(ATOMIC, "f", .len = 64 * KIB), OP(ATOMIC, "f", .pos = 1, .len = 64 * KIB),
	OP(ATOMIC, "f", .pos = 100 * KIB, .len = 10), OP(ATOMIC, "f", .pos = 90 * KIB, .len = 30000),
	/* writes behind the size, where pages are allocated */
	OP(ALLOCATE, "f", .pos = 132 * KIB, .len = 64 * KIB),
	OP(ATOMIC, "f", .pos = 140 * KIB + 5, .len = 5000), OP(RESIZE, "f", .len = 8 * KIB + 9),
	OP(STALE, "f", .pos = 8 * KIB + 100, .len = 600),
	OP(ATOMIC, "f", .pos = 8 * KIB + 1000, .len = 70), OP(RESIZE, "f", .len = 128 * KIB),
	/* a file that has the flag from its creation: complete pages are replaced */
	OP(UNLINK, "f"), OP(EVICT), OP(CREATE, "f", .flags = SG_FL_ATOMIC),
	OP(ATOMIC, "f", .len = 64 * KIB), OP(ATOMIC, "f", .pos = 64 * KIB, .len = 64 * KIB),
	OP(ATOMIC, "f", .len = 4 * KIB), OP(ATOMIC, "f", .len = 16 * KIB),
	OP(ATOMIC, "f", .pos = 3, .len = 16 * KIB), OP(ATOMIC, "f", .pos = 16 * KIB, .len = 64 * KIB),
	OP(ATOMIC, "f", .pos = 100 * KIB, .len = 64 * KIB), OP(ATOMIC, "f", .pos = 20, .len = 64 * KIB),
	OP(WRITE, "f", .pos = 5000, .len = 20000), OP(RECLAIM),
	OP(PUNCH, "f", .pos = 12 * KIB, .len = 8 * KIB), OP(PUNCH, "f", .pos = 28 * KIB, .len = 4 * KIB),
	OP(ATOMIC, "f", .pos = 2 * KIB, .len = 63 * KIB),
	/* a mapped file: logged again */
	OP(MAP, "f", .len = 1), OP(ATOMIC, "f", .len = 16 * KIB), OP(ATOMIC, "f", .pos = 5, .len = 64 * KIB),
	OP(MAP, "f"), OP(ATOMIC, "f", .len = 16 * KIB),
	/* the end of the first table, and its first entries */
	OP(ATOMIC, "f", .pos = 2 * MIB - 30 * KIB, .len = 60 * KIB),
	OP(ATOMIC, "f", .pos = 2 * MIB - 29 * KIB, .len = 57 * KIB),
	/* a file of one page; each write replaces the page */
	OP(CREATE, "one", .flags = SG_FL_ATOMIC), OP(ATOMIC, "one", .len = 4096),
	OP(ATOMIC, "one", .len = 4096), OP(ATOMIC, "one", .pos = 10, .len = 8 * KIB),
	/* a large leaf stays */
	OP(CREATE, "big"), OP(WRITE, "big", .len = 2 * MIB), OP(FLAG, "big", .len = 1),
	OP(ATOMIC, "big", .pos = MIB, .len = 64 * KIB), OP(ATOMIC, "big", .pos = 77, .len = 5000),
	OP(FLAG, "big"), OP(ATOMIC, "big", .pos = MIB, .len = 4 * KIB),
	OP(RECLAIM), OP(REMOUNT), OP(ATOMIC, "f", .len = 64 * KIB),
};

static void run(bool beside, u64 thorough)
{
	struct cw w;
	u64 i;

	cw_make(&w, TEST_SMALL, test_seed());
	if (beside)
		cw_beside(&w);
	w.nest = thorough > 1 ? 40 : 300;
	for (i = 0; i < sizeof(script) / sizeof(script[0]); i++) {
		/* few images show a complete record and a stale byte */
		bool stale = i && script[i - 1].kind == CW_STALE;

		w.c.every = thorough ? 2 : 16;
		w.c.samples = stale ? 200 : thorough > 1 ? 30 : 4;
		CHECK(cw_do(&w, &script[i]) >= 0);
	}
	printf("%" PRIu64 " images, %" PRIu64 " recoveries crashed in turn\n", w.c.images,
	       w.recoveries);
	fflush(stdout);
	cw_drop(&w);
}

/* Finally no page is free: a write is logged, or fails and keeps the old data. */
static void run_full(u64 thorough)
{
	u64 done = 0, failed = 0, i;
	struct rng rng = { test_seed() };
	struct cw w;
	s64 ret;

	cw_make(&w, TEST_SMALL, test_seed());
	w.c.every = thorough ? 4 : 24;
	w.nest = 300;
	CHECK_OK(cw_do(&w, &(struct cw_op)OP(CREATE, "f")));
	CHECK_OK(cw_do(&w, &(struct cw_op)OP(ATOMIC, "f", .len = 64 * KIB)));
	CHECK_OK(cw_do(&w, &(struct cw_op)OP(FLAG, "f", .len = 1)));
	cw_fill(&w, 2);
	w.t.v.space_wait_ms = 1;
	for (i = 0; i < (thorough ? 60 : 15); i++) {
		struct cw_op op = OP(ATOMIC, "f", .pos = rng_size(&rng, 60 * KIB),
				     .len = 1 + rng_size(&rng, 64 * KIB - 1));

		if (rng_chance(&rng, 40)) {
			op.pos &= ~(SG_PAGE - 1);
			op.len = 16 * KIB;
		}
		ret = cw_do(&w, &op);
		CHECK(!ret || ret == -ENOSPC);
		*(ret ? &failed : &done) += 1;
	}
	printf("full: %" PRIu64 " writes, %" PRIu64 " of them failed\n", done + failed, failed);
	CHECK(done && failed);
	cw_drop(&w);
}

int main(void)
{
	u64 thorough = test_amount(0, 1, 2);

	run(false, thorough);
	run(true, thorough);
	run_full(thorough);
	return test_done();
}
