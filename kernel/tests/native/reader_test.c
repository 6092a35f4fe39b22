// SPDX-License-Identifier: Apache-2.0
/*
 * Change counters that a wild store has left odd. A reader waits once, for a bounded time, and can
 * be killed meanwhile. Later readers do not wait. There is one report, and the next change repairs
 * the counter.
 */
#include "internal.h"
#include "test.h"

#define SECOND	1000000000ULL

extern bool (*sg_interrupt_hook)(void);

static struct tvol t;
static unsigned int reports;

static void count_reports(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_ERR && strstr(line, "a change never ends"))
		reports++;
}

static void make_odd(const struct sg_iref *f)
{
	*(u64 *)(t.mem + SG_IOFF(f, seq)) |= 1;
}

/* Reads the attributes; the result must be @want. Returns the time that this takes. */
static u64 look(const struct sg_iref *f, int want)
{
	struct sg_attr attr;
	u64 start = sg_ticks();

	CHECK_EQ(sg_getattr(&t.v, f, &attr), want);
	return sg_ticks() - start;
}

static void waited_for_once(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "odd", 0100600);
	u64 took;

	make_odd(&f);
	took = look(&f, -EUCLEAN);
	CHECK(took > SECOND && took < 10 * SECOND);
	CHECK(look(&f, -EUCLEAN) < SECOND / 2);
	CHECK_EQ(sg_seq(&t.v, &f), 0);
	CHECK_EQ(reports, 1);
}

/* A change of the inode works with any counter, and makes the counter valid. */
static void mended_by_a_change(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "mended", 0100600);
	struct sg_attr attr = { .mode = 0640 };

	make_odd(&f);
	look(&f, -EUCLEAN);
	CHECK_OK(sg_setattr(&t.v, &f, SG_SET_MODE, &attr));
	CHECK(look(&f, 0) < SECOND / 2);
	make_odd(&f);	/* for readers this is another change: they wait once more */
	CHECK_EQ(reports, 2);
	look(&f, -EUCLEAN);
	CHECK(look(&f, -EUCLEAN) < SECOND / 2);
}

static void the_more_the_faster(void)
{
	struct sg_iref f;
	u64 took = 0;
	char name[8];
	int i;

	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		f = test_create(&t.v, &t.root, name, 0100600);
		make_odd(&f);
		took += look(&f, -EUCLEAN);
	}
	CHECK(took < 20 * SECOND);
}

/*
 * A lock word that names a system without a slot counts as free, and delays readers only briefly.
 */
static void lock_of_nobody(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "gone", 0100600);

	*(u64 *)(t.mem + SG_IOFF(&f, lock.word)) = SG_LOCK_WORD(40, 1);
	make_odd(&f);
	CHECK(look(&f, -EUCLEAN) < 10 * SECOND);
	f = test_create(&t.v, &t.root, "ours", 0100600);
	*(u64 *)(t.mem + SG_IOFF(&f, lock.word)) = SG_LOCK_WORD(t.v.slot, t.v.incarnation);
	make_odd(&f);
	CHECK(look(&f, -EUCLEAN) < 10 * SECOND);
}

static bool dying(void)
{
	return true;
}

static void killed(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "killed", 0100600);
	unsigned int before = reports;

	make_odd(&f);
	sg_interrupt_hook = dying;
	CHECK(look(&f, -EINTR) < SECOND / 2);
	sg_interrupt_hook = NULL;
	CHECK_EQ(reports, before);
	look(&f, -EUCLEAN);
}

/* Without another system, readers do not wait. */
static void alone(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "alone", 0100600);

	make_odd(&f);
	t.v.odd_judged = 0;
	t.v.alone = true;
	CHECK(look(&f, -EUCLEAN) < SECOND / 2);
	t.v.alone = false;
}

int main(void)
{
	sg_log_hook = count_reports;
	tvol_make(&t, TEST_SMALL);
	t.v.on_damage = NULL;
	killed();
	t.v.odd_judged = 0;
	reports = 0;
	waited_for_once();
	mended_by_a_change();
	lock_of_nobody();
	the_more_the_faster();
	alone();
	return test_done();
}
