// SPDX-License-Identifier: Apache-2.0
/*
 * fsync() of a file that has stores through a mapping, while another system moves the file's pages.
 * The recorder shows which lines fsync() writes back: all of them, in a bounded number of passes.
 */
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define PAGES	3200		/* size of the file: three quarters of the volume */
#define AHEAD	SG_TURNS	/* distance of a move, in pages */
#define PASSES	5		/* limit; a pass for each move would exceed it */

extern bool (*sg_interrupt_hook)(void);

static struct tsys a, b;
static struct sg_iref fa, fb;
static u64 place[PAGES];
static unsigned int moves, kept_out;
static void (*between)(void);

/* A flush calls this function after every SG_TURNS pages. */
static bool at_turn(void)
{
	sg_interrupt_hook = NULL;
	between();
	sg_interrupt_hook = at_turn;
	return false;
}

static u64 lock_of_file(void)
{
	return fb.off + offsetof(struct sg_inode, lock);
}

/* Moves all pages up, or down again. Does nothing while the flush keeps the file locked. */
static void move(void)
{
	const u64 len = (u64)AHEAD << SG_PAGE_SHIFT;

	if (sg_is_locked(&b.v, lock_of_file())) {
		kept_out++;
		return;
	}
	CHECK_OK(moves++ % 2 ? sg_collapse(&b.v, &fb, 0, len, 3) :
			       sg_insert(&b.v, &fb, 0, len, 3));
	sg_maintain(&a.v);
	sg_maintain(&b.v);
	sg_settle(&b.v);
}

/* Moves all pages once, then pauses with the file's lock held. */
static void move_and_stop(void)
{
	if (!moves)
		move();
	else if (!sg_is_locked(&b.v, lock_of_file()))
		CHECK_OK(sg_lock(&b.v, lock_of_file()));
}

/* Holds the lock whenever the flush could take it, and still moves all pages. */
static void move_and_hold(void)
{
	if (sg_is_locked(&b.v, lock_of_file()))
		sg_unlock(&b.v, lock_of_file());
	move();
	CHECK_OK(sg_lock(&b.v, lock_of_file()));
}

/* Punches out a page behind the others, which do not move. */
static void punch(void)
{
	CHECK_OK(sg_punch(&b.v, &fb, (u64)(PAGES + moves++) << SG_PAGE_SHIFT, SG_PAGE, 3));
}

/*
 * Writes the last page first, so that no two pages are contiguous: each page is a step of a flush.
 */
static void make(void)
{
	u8 *mem = tsys_volume(SIZE), byte = 1;
	struct sg_run run;
	u64 i;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	fa = test_create(&a.v, &a.root, "file", S_IFREG | 0600);
	for (i = PAGES; i--;)
		CHECK_EQ(sg_write(&a.v, &fa, i * SG_PAGE, &byte, 1, 1), 1);
	fb = test_lookup(&b.v, &b.root, "file");
	for (i = 0; i < PAGES; i++) {
		CHECK_OK(sg_walk(&a.v, &fa, i, 1, &run));
		place[i] = run.off;
	}
	moves = kept_out = 0;
}

static void leave(void)
{
	CHECK_EQ(sg_get(&a.v, SG_HOT(errors)), 0);
	tsys_leave(&a);
	tsys_leave(&b);
}

static int flush_now(void (*what)(void), bool wait)
{
	int err;

	between = what;
	sg_interrupt_hook = what ? at_turn : NULL;
	err = sg_flush_moving(&a.v, &fa, 0, ~0ULL, wait);
	sg_interrupt_hook = NULL;
	return err;
}

/* Flushes the file, and returns how often its lines were written back, on average. */
static u64 flush_beside(void (*what)(void))
{
	u8 *line = calloc(SIZE / REC_LINE, 1);
	struct rec log, *was;
	u64 i, k, n = 0;
	int err;

	CHECK(line);
	rec_init(&log, a.v.base, SIZE, true);
	was = rec_to(&log);
	err = flush_now(what, true);
	rec_to(was);
	CHECK_OK(err);
	for (i = 0; i < log.n; i++)
		if (log.ev[i].kind == REC_WB)
			line[log.ev[i].off / REC_LINE] += line[log.ev[i].off / REC_LINE] < 255;
	for (i = 0; i < PAGES; i++)
		for (k = place[i] / REC_LINE; k < (place[i] + SG_PAGE) / REC_LINE; k++) {
			CHECK(line[k]);
			n += line[k];
		}
	rec_free(&log);
	free(line);
	return n / (PAGES * SG_PAGE / REC_LINE);
}

static bool always(const struct sg_vol *v)
{
	(void)v;
	return true;
}

/* @gives_way: the thread waits for no lock, because it holds a lock for which other threads wait.
 * */
static void paused(bool gives_way)
{
	make();
	a.v.gives_way = gives_way ? always : NULL;
	test_within(20, "a flush while a paused system has the file's lock");
	CHECK(flush_beside(move_and_stop) <= PASSES);
	test_within(0, NULL);
	a.v.gives_way = NULL;
	CHECK_EQ(moves, 1);
	CHECK(sg_is_locked(&b.v, lock_of_file()));
	sg_unlock(&b.v, lock_of_file());
	leave();
}

/*
 * Another system always has the lock, and moves pages. The end of an inode does not wait, and a
 * system that leaves waits once.
 */
static void held(bool wait)
{
	make();
	a.v.join_until = wait;	/* a time in the past: no wait for a lock continues */
	test_within(20, "a flush while another system moves pages and keeps the file's lock");
	CHECK_EQ(flush_now(move_and_hold, wait), -EBUSY);
	test_within(0, NULL);
	a.v.join_until = 0;
	CHECK(moves >= 2);
	sg_unlock(&b.v, lock_of_file());
	leave();
}

/* Tests cuts without moves. One pass is enough, and the flush does not take the file's lock. */
static void cut(void)
{
	u8 byte = 1;
	u64 i;

	make();
	for (i = PAGES; i < PAGES + 64; i++)
		CHECK_EQ(sg_write(&a.v, &fa, i * SG_PAGE, &byte, 1, 1), 1);
	CHECK_EQ(flush_beside(punch), 1);
	CHECK(moves);
	leave();
}

int main(void)
{
	make();
	CHECK_EQ(flush_beside(NULL), 1);
	CHECK(flush_beside(move) <= PASSES);
	test_note("%u moves; the flush's lock prevented %u more", moves, kept_out);
	CHECK(moves >= 2 && kept_out >= 2);
	CHECK(!sg_is_locked(&b.v, lock_of_file()));
	leave();

	paused(false);
	paused(true);
	held(false);
	held(true);
	cut();
	return test_done();
}
