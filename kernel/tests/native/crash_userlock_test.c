// SPDX-License-Identifier: Apache-2.0
/*
 * A system is killed at every store of its operations on users' locks, while other systems
 * continue.
 *
 * Until its recovery the killed system keeps all its locks, except those that it was releasing.
 * After the recovery it has none. Other systems keep exactly their locks. After each crash, systems
 * can continue to use the file, and the checker finds nothing.
 */
#include <sys/stat.h>
#include "crash.h"
#include "internal.h"

#define CELLS	24
#define FILES	2
#define OWNERS	4	/* two owners on the system that dies, and one on each other system */

static struct tvol t;		/* the system that dies */
static struct sg_vol other[2];
static struct sg_iref file[FILES];
static u8 before[FILES][OWNERS][CELLS], after[FILES][OWNERS][CELLS];
static u64 checks;

static struct sg_vol *vol_of(unsigned int o)
{
	return o < 2 ? &t.v : &other[o - 2];
}

static struct sg_userlock lock_of(unsigned int o, bool exclusive, unsigned int a, unsigned int b)
{
	return (struct sg_userlock){ .kind = SG_USERLOCK_POSIX, .owner = o + 1, .pid = o,
		.exclusive = exclusive, .start = a, .last = b };
}

/* --- the locks in an image -------------------------------------------------------------------- */

static void note_record(const struct sg_userlock_record *r, u8 found[FILES][OWNERS][CELLS])
{
	unsigned int o = (unsigned int)r->owner - 1, f, i;

	for (f = 0; f < FILES && file[f].ino != r->ino; f++)
		;
	CHECK(o < OWNERS && f < FILES && r->last < CELLS && r->start <= r->last);
	CHECK_EQ(SG_USERLOCK_SLOT(r->head), vol_of(o)->slot);
	CHECK_EQ(SG_USERLOCK_INC(r->head), vol_of(o)->incarnation);
	for (i = (unsigned int)r->start; i <= r->last; i++)
		found[f][o][i] |= r->head & SG_USERLOCK_EXCLUSIVE ? 2 : 1;
}

static void look(struct sg_vol *v, u8 found[FILES][OWNERS][CELLS])
{
	unsigned int nr, k, i;
	int err;

	memset(found, 0, FILES * OWNERS * CELLS);
	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		for (k = 0; k < SG_USERLOCK_CHAIN_PAGES; k++) {
			struct sg_userlock_page *page = sg_userlock_page(v, nr, k, &err);

			CHECK_OK(err);
			if (!page)
				break;
			for (i = 0; i < SG_USERLOCK_RECORDS; i++)
				if (page->record[i].head &&
				    !(page->record[i].head & SG_USERLOCK_WAITING))
					note_record(&page->record[i], found);
		}
	}
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Moves a surviving system to the image. Locks keep no state in its private memory. */
static void go_on(struct sg_vol *v, const struct sg_vol *who, u8 *mem)
{
	*v = *who;
	v->base = mem;
	sg_bad_watch(v);
	v->state = sg_state_word(v, (unsigned int)v->slot);
}

static void still_held(u8 found[FILES][OWNERS][CELLS])
{
	unsigned int f, o, i;

	for (f = 0; f < FILES; f++) {
		for (o = 0; o < 2; o++) {
			for (i = 0; i < CELLS; i++) {
				unsigned int least = SG_MIN(before[f][o][i], after[f][o][i]);

				if (found[f][o][i] < least)
					test_fail(__FILE__, __LINE__, "file %u, owner %u, byte %u: "
						  "lock mode %u, expected %u or more",
						  f, o, i, found[f][o][i], least);
			}
		}
	}
}

static void others_have_theirs(u8 found[FILES][OWNERS][CELLS])
{
	unsigned int f, o, i;

	for (f = 0; f < FILES; f++)
		for (o = 2; o < OWNERS; o++)
			for (i = 0; i < CELLS; i++)
				CHECK_EQ(found[f][o][i], before[f][o][i]);
}

/* The survivors lock all ranges: only their own locks may conflict. */
static void rest_is_free(struct sg_vol v[2])
{
	struct sg_userlock by;
	unsigned int f, i;

	for (f = 0; f < FILES; f++) {
		for (i = 0; i < CELLS; i++) {
			struct sg_userlock l = lock_of(2, true, i, i);
			int err = sg_userlock_set(&v[0], &file[f], &l, NULL, &by);

			CHECK_EQ(err, before[f][3][i] ? -EAGAIN : 0);
			CHECK(!err || by.slot == v[1].slot);
		}
	}
}

static void judge_killed(struct crash_image *img)
{
	u8 found[FILES][OWNERS][CELLS];
	struct sg_vol v[2];

	go_on(&v[0], &other[0], img->mem);
	go_on(&v[1], &other[1], img->mem);
	CHECK_OK(sg_fence_slot(&v[0], (unsigned int)t.v.slot, t.v.incarnation));
	look(&v[0], found);
	still_held(found);
	others_have_theirs(found);
	CHECK(sg_recover_slot(&v[0], (unsigned int)t.v.slot));
	rest_is_free(v);
	if (checks++ % 50 == 0)
		test_clean(img->mem, t.size);
}

static void judge(struct crash *c, struct crash_image *img)
{
	if (c->ctx)	/* another system works: no death to judge */
		return;
	if (img == &c->killed)
		judge_killed(img);
	else if (checks++ % 50 == 0)
		test_clean(img->mem, t.size);	/* after a power cut no lock is valid */
}

/* --- work ------------------------------------------------------------------------------------- */

static bool allowed(unsigned int f, unsigned int o, bool exclusive, unsigned int a, unsigned int b)
{
	unsigned int other_one, i;

	for (other_one = 0; other_one < OWNERS; other_one++)
		for (i = a; i <= b && other_one != o; i++)
			if (before[f][other_one][i] == 2 || (before[f][other_one][i] && exclusive))
				return false;
	return true;
}

static struct sg_userlock_wait waits;

/* Does a random step, and returns the system that did it. */
static unsigned int step(struct rng *rng)
{
	unsigned int o = (unsigned int)rng_below(rng, OWNERS);
	unsigned int f = (unsigned int)rng_below(rng, FILES);
	unsigned int a = (unsigned int)rng_below(rng, CELLS);
	unsigned int b = a + (unsigned int)rng_below(rng, 8);
	bool exclusive = rng_chance(rng, 40), take = rng_chance(rng, 60), may;
	struct sg_userlock l;

	b = SG_MIN(b, CELLS - 1u);
	l = lock_of(o, exclusive, a, b);
	may = allowed(f, o, exclusive, a, b);
	test_note("owner %u: %s%s file %u, %u to %u", o, take ? "lock" : "unlock",
		  exclusive ? " exclusive" : "", f, a, b);
	memcpy(after, before, sizeof(after));
	if (!take) {
		memset(&after[f][o][a], 0, b - a + 1);
		CHECK_OK(sg_userlock_clear(vol_of(o), &file[f], &l));
		return o;
	}
	if (may)
		memset(&after[f][o][a], exclusive ? 2 : 1, b - a + 1);
	if (o < 2 && rng_chance(rng, 50)) {	/* waits; without success, the waiter gives up */
		memset(&waits, 0, sizeof(waits));
		CHECK_EQ(sg_userlock_set(vol_of(o), &file[f], &l, &waits, NULL), may ? 0 : -EAGAIN);
		sg_userlock_give_up(vol_of(o), &file[f], &waits);
	} else {
		CHECK_EQ(sg_userlock_set(vol_of(o), &file[f], &l, NULL, NULL), may ? 0 : -EAGAIN);
	}
	return o;
}

int main(void)
{
	u64 ops = test_amount(150, 2000, 30000), i;
	struct rng rng = { test_seed() };
	struct crash c;
	struct rec rec;

	tvol_make(&t, TEST_SMALL);
	file[0] = test_create(&t.v, &t.root, "a", S_IFREG | 0600);
	file[1] = test_create(&t.v, &t.root, "b", S_IFREG | 0600);
	for (i = 0; i < 2; i++) {
		CHECK_OK(sg_open(&other[i], t.mem, t.size, false, NULL));
		CHECK_OK(sg_join(&other[i], &test_identity, 0, false));
	}
	crash_init(&c, t.mem, t.size);
	c.judge = judge;
	c.samples = 1;
	rec_init(&rec, t.mem, t.size, true);
	for (i = 0; i < ops; i++) {
		rec_to(&rec);
		c.ctx = step(&rng) < 2 ? NULL : &other;
		rec_to(NULL);
		crash_run(&c, rec.ev, rec.n);
		rec.n = 0;
		memcpy(before, after, sizeof(before));
		crash_end(&c);
	}
	printf("%" PRIu64 " images\n", c.images);
	CHECK(c.images > ops);
	crash_free(&c);
	rec_free(&rec);
	for (i = 0; i < 2; i++)
		sg_leave(&other[i]);
	tvol_drop(&t);
	return test_done();
}
