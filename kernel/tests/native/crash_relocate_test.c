// SPDX-License-Identifier: Apache-2.0
/*
 * Interrupted moves. A volume moves to another base under the recorder. In each image that a crash
 * can leave, the next system finds the volume at the old base or at the new one, or completes the
 * move. It finds every byte of every file. Some completions are interrupted as well.
 */
#define _GNU_SOURCE
#include "crash.h"
#include "relocate_util.h"

#define SIZE	TEST_SMALL

struct work {
	u64 base, to, sum;
	struct crash again;	/* crashes while the relocation is completed */
	u64 nest, judged;
};

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* Checks the base: after any crash, it is the old base or the new one. */
static void check_whole(struct work *w, u8 *mem, bool done)
{
	struct sg_probe probe;

	CHECK_OK(sg_probe(mem, SIZE, &probe));
	CHECK(probe.valid && !(probe.sb.incompat & SG_INCOMPAT_MOVING) && !probe.sb.move_to);
	CHECK(probe.sb.phys == w->to || (!done && probe.sb.phys == w->base));
	CHECK_EQ(digest(mem, SIZE), w->sum);
}

/*
 * If the crash interrupted the write of a superblock, the checker restores it from the other copy.
 */
static void even_supers(u8 *mem)
{
	const struct sg_check_opts preen = { .mode = SG_CHECK_PREEN, .force = true,
					     .holding = test_end_lapses };
	struct sg_check_result res;

	CHECK_OK(sg_check(mem, SIZE, &preen, &res));
	CHECK(res.found <= 1 && res.fixed == res.found);
}

static bool is_moving(u8 *mem)
{
	struct sg_probe probe;

	CHECK_OK(sg_probe(mem, SIZE, &probe));
	CHECK(probe.valid);
	return probe.sb.incompat & SG_INCOMPAT_MOVING;
}

static void judge_again(struct crash *c, struct crash_image *img)
{
	struct work *w = c->ctx;

	if (!is_moving(img->mem))
		even_supers(img->mem);
	moved_to(img->mem, SIZE, SG_BASE_BEGUN);
	check_whole(w, img->mem, true);
}

/* Completes the move under the recorder, and judges interruptions of the completion as well. */
static void crash_again(struct work *w, const u8 *mem)
{
	u8 *copy = test_map(SIZE);
	struct rec log, *was;

	memcpy(copy, mem, SIZE);
	crash_reset(&w->again, copy);
	rec_init(&log, copy, SIZE, true);
	was = rec_to(&log);
	moved_to(copy, SIZE, SG_BASE_BEGUN);
	rec_to(was);
	w->again.every = log.n / 40 + 1;
	crash_run(&w->again, log.ev, log.n);
	rec_free(&log);
	test_unmap(copy, SIZE);
}

static void judge(struct crash *c, struct crash_image *img)
{
	struct work *w = c->ctx;

	if (!is_moving(img->mem)) {
		if (!c->done)
			even_supers(img->mem);
		check_whole(w, img->mem, c->done);
		return;
	}
	CHECK(!c->done);
	if (!(w->judged++ % w->nest))
		crash_again(w, img->mem);
	moved_to(img->mem, SIZE, SG_BASE_BEGUN);
	check_whole(w, img->mem, true);
}

static u64 plain_stores(const struct rec *log)
{
	u64 i, n = 0;

	for (i = 0; i < log->n; i++)
		n += log->ev[i].kind == REC_STORE && log->ev[i].len < REC_LINE;
	return n;
}

/* Moves the volume in @mem, and judges about @points points. */
static void run(struct work *w, u8 *mem, u64 to, u64 points)
{
	struct crash c;
	struct rec log;

	test_note("to 0x%" PRIx64, to);
	w->base = TEST_PHYS;
	w->to = to;
	w->again.images = 0;
	crash_init(&c, mem, SIZE);
	c.judge = judge;
	c.ctx = w;
	c.samples = 1;
	rec_init(&log, mem, SIZE, true);
	rec_to(&log);
	moved_to(mem, SIZE, to);
	rec_to(NULL);
	c.every = plain_stores(&log) / points + 1;
	crash_run(&c, log.ev, log.n);
	crash_end(&c);
	printf("%" PRIu64 " stores, %" PRIu64 " images, %" PRIu64 " images of interrupted completions\n",
	       plain_stores(&log), c.images, w->again.images);
	CHECK(c.images > points / 2 && w->again.images);
	rec_free(&log);
	crash_free(&c);
}

int main(void)
{
	u64 points = test_amount(60, 1200, 20000), i;
	static const u64 goal[] = { TEST_PHYS + SG_CHUNK, TEST_PHYS - SG_CHUNK, TEST_PHYS + 4 * GIB };
	struct work w = { .nest = 40 };
	u8 *from = test_map(SIZE);
	struct tvol t;

	sg_log_hook = quiet;
	tvol_make(&t, SIZE);
	populate(&t, 40);
	defer_and_die(&t);
	memcpy(from, t.mem, SIZE);
	w.sum = digest(t.mem, SIZE);
	crash_init(&w.again, t.mem, SIZE);
	w.again.judge = judge_again;
	w.again.ctx = &w;
	for (i = 0; i < SG_ARRAY_SIZE(goal); i++) {
		memcpy(t.mem, from, SIZE);
		run(&w, t.mem, goal[i], points);
		/* a half moved volume of which only the backup superblock is valid */
		memcpy(t.mem, from, SIZE);
		half_move(t.mem, SIZE, goal[i], "moving", 0);
		t.mem[offsetof(struct sg_super, uuid)] ^= 1;
		run(&w, t.mem, goal[i], points / 4);
	}
	crash_free(&w.again);
	test_unmap(from, SIZE);
	test_unmap(t.mem, SIZE);
	return test_done();
}
