// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores whose system dies, or whose machine loses power, at every store. All names are
 * those from before the operation, or those from after it. Each object is complete. An object that
 * was closed keeps the state of its close; an object that was open has the state that its type
 * demands. Removed objects do not exist any more.
 */
#include "crash.h"
#include "sem_util.h"

#define NAMES	6

enum { ABSENT, CLOSED, OPEN };

/*
 * @state: state of the name. @life: lifetime of the named object. @value: its value at the last
 * close.
 */
struct object {
	unsigned int state, type, life, flags;
	u64 initial, value;
};

static struct tvol t;
static struct sg_sem_caller *me;
static struct sg_sem sem[NAMES];
static struct object before[NAMES], after[NAMES];
static u64 checks, orphans;
static struct sg_sem orphan;		/* an open object without a name */
static bool has_orphan;

static const char *name_of(unsigned int n)
{
	static const char *const names[NAMES] = {
		"a", "b", "c", "d", "a name that needs many words of a transaction, so that a crash "
		"would leave a part of it and a part of an older name if the engine did not store "
		"it in one transaction", "e",
	};

	return names[n];
}

/* --- judging ---------------------------------------------------------------------------------- */

static bool value_fits(const struct object *o, u64 value)
{
	switch (o->type) {
	case SG_SEM_COUNT:
		return value == (o->state == CLOSED ? o->value : o->initial);
	case SG_SEM_EVENT:	/* an event's value only grows; after a power cut the value may be older */
		return o->state == CLOSED ? value == o->value : value <= o->value;
	default:
		return !value;
	}
}

/* Compares an object after the crash with the test's record from before the crash. */
static bool fits(const struct object *o, int err, const struct sg_sem_stat *st)
{
	if (o->state == ABSENT || (o->state == OPEN && o->life == SG_SEM_LAST_USER))
		return err == -ENOENT;
	return !err && st->type == o->type && st->flags == o->flags && st->initial == o->initial &&
	       st->life == o->life && value_fits(o, st->value);
}

static void judge_object(struct crash *c, struct sg_vol *v, unsigned int n)
{
	struct sg_sem_stat st;
	struct sg_sem s;
	int err = sg_sem_open(v, name_of(n), (u32)strlen(name_of(n)), 0, false, &s);

	if (!err)
		sg_sem_fstat(v, &s, &st);
	if (!fits(&after[n], err, &st) && (c->done || !fits(&before[n], err, &st)))
		test_fail(__FILE__, __LINE__, "%s: error %d, type %u, value %" PRIu64
			  "; was %u, value %" PRIu64 ", is to be %u, value %" PRIu64, name_of(n), err,
			  err ? 0 : st.type, err ? 0 : st.value, before[n].state, before[n].value,
			  after[n].state, after[n].value);
	if (!err) {
		CHECK_EQ(st.users, 1ULL << v->slot);
		CHECK_EQ(st.waiters, 0);
		sg_sem_close(v, &s);
	}
}

static bool count_named(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	(void)name;
	(void)len;
	(void)st;
	++*(unsigned int *)ctx;
	return true;
}

static void judge(struct crash *c, struct crash_image *img)
{
	unsigned int n, listed = 0, there = 0;
	struct sg_sem_stat st;
	u64 cookie = 0;
	struct sg_vol v;

	if (checks++ % 8 == 0)
		test_clean(img->mem, t.size);
	CHECK_OK(sg_open(&v, img->mem, t.size, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	test_lapses_over(img->mem);
	sg_leave(&v);
	CHECK_OK(sg_open(&v, img->mem, t.size, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));	/* frees objects of the lapsed system */
	for (n = 0; n < NAMES; n++)
		judge_object(c, &v, n);
	CHECK_OK(sg_sem_list(&v, &cookie, count_named, &listed));
	for (n = 0; n < NAMES; n++)
		there += !sg_sem_stat(&v, name_of(n), (u32)strlen(name_of(n)), &st);
	CHECK_EQ(listed, there);
	for (n = 0; n < NAMES; n++)
		sg_sem_unlink(&v, name_of(n), (u32)strlen(name_of(n)), SG_SEM_ANY);
	/*
	 * only members, bells, and their tables remain: objects without a name have been freed as
	 * well
	 */
	const struct sg_iref file = sg_sem_file();
	CHECK(sg_iget(&v, &file, blocks) <= 7);
	sg_leave(&v);
	if (checks % 8 == 0)
		test_clean(img->mem, t.size);
}

/* --- work ------------------------------------------------------------------------------------- */

static void create(struct rng *rng, unsigned int n)
{
	unsigned int type = 1 + (unsigned int)rng_below(rng, SG_SEM_TYPES - 1);
	struct sg_sem_new new = new_of(type, rng_chance(rng, 50) ? SG_SEM_MAPPED : 0,
				       rng_range(rng, 1, 1000));

	new.life = (unsigned int)rng_below(rng, 2);
	after[n] = (struct object){ OPEN, type, new.life, new.flags, new.initial, 0 };
	CHECK_OK(try_create(&t.v, name_of(n), new, true, &sem[n]));
}

static void use(struct rng *rng, unsigned int n)
{
	if (after[n].type == SG_SEM_COUNT) {
		CHECK_OK(sg_sem_post(&t.v, &sem[n]));
	} else if (after[n].type == SG_SEM_EVENT) {
		after[n].value += 1 + rng_below(rng, 9);
		CHECK_OK(sg_sem_advance(&t.v, &sem[n], after[n].value - before[n].value));
	} else if (after[n].type == SG_SEM_MUTEX) {
		CHECK_OK(sg_sem_lock(&t.v, &sem[n], me, 0));
		CHECK_OK(sg_sem_unlock(&t.v, &sem[n], me));
	}
}

static void close_one(unsigned int n)
{
	after[n].value = stat_of(&t.v, name_of(n)).value;
	after[n].state = after[n].life == SG_SEM_LAST_USER ? ABSENT : CLOSED;
	sg_sem_close(&t.v, &sem[n]);
}

static void step(struct rng *rng)
{
	unsigned int n = (unsigned int)rng_below(rng, NAMES);

	memcpy(after, before, sizeof(after));
	test_note("%s, which was %u", name_of(n), before[n].state);
	switch (before[n].state) {
	case ABSENT:
		create(rng, n);
		break;
	case CLOSED:
		if (rng_chance(rng, 50)) {
			after[n].state = ABSENT;
			CHECK_OK(sem_rm(&t.v, name_of(n)));
		} else {
			after[n].state = OPEN;
			sem[n] = sem_of(&t.v, name_of(n));
		}
		break;
	default:
		if (rng_chance(rng, 50)) {
			use(rng, n);
		} else if (!has_orphan && rng_chance(rng, 30)) {
			after[n].state = ABSENT;
			orphan = sem[n];
			has_orphan = true;
			orphans++;
			CHECK_OK(sem_rm(&t.v, name_of(n)));
		} else {
			close_one(n);
		}
	}
	if (has_orphan && rng_chance(rng, 20)) {
		has_orphan = false;
		sg_sem_close(&t.v, &orphan);
	}
}

/* --- opened after a death --------------------------------------------------------------------- */

#define FIRST	5

static void judge_reset(struct crash *c, struct crash_image *img)
{
	struct sg_sem s;
	struct sg_vol v;

	(void)c;
	CHECK_OK(sg_open(&v, img->mem, t.size, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	test_lapses_over(img->mem);
	s = sem_of(&v, "reset");
	CHECK_EQ(stat_of(&v, "reset").value, FIRST);
	sg_sem_close(&v, &s);
	sg_leave(&v);
}

/*
 * A system died with the object open, and the next system in its slot has recorded that. The first
 * opener resets the object, and the power fails.
 */
static void reset_once(void)
{
	struct sg_sem s = sem_make(&t.v, "reset", SG_SEM_COUNT, 0, FIRST);
	struct crash c;
	struct rec rec;

	sg_store64(sg_sem_word(&t.v, &s), FIRST - 2);
	tvol_crash(&t);
	tvol_join(&t);
	test_lapses_over(t.mem);
	tvol_leave(&t);
	tvol_join(&t);	/* takes the slot of the dead system */
	CHECK_EQ(t.v.slot, 0);
	crash_init(&c, t.mem, t.size);
	c.judge = judge_reset;
	c.samples = 8;
	rec_init(&rec, t.mem, t.size, true);
	rec_to(&rec);
	s = sem_of(&t.v, "reset");
	rec_to(NULL);
	c.done = false;
	crash_run(&c, rec.ev, rec.n);
	CHECK(c.images);
	crash_free(&c);
	rec_free(&rec);
	sg_sem_close(&t.v, &s);
	CHECK_OK(sem_rm(&t.v, "reset"));
}

int main(void)
{
	u64 ops = test_amount(30, 200, 3000), i;
	struct rng rng = { test_seed() };
	struct crash c;
	struct rec rec;

	tvol_make(&t, TEST_SMALL);
	reset_once();
	me = caller_of(&t.v, 1);
	crash_init(&c, t.mem, t.size);
	c.judge = judge;
	c.samples = 1;
	rec_init(&rec, t.mem, t.size, true);
	for (i = 0; i < ops; i++) {
		rec_to(&rec);
		step(&rng);
		rec_to(NULL);
		c.done = false;
		crash_run(&c, rec.ev, rec.n);
		c.done = true;
		rec.n = 0;
		crash_end(&c);
		memcpy(before, after, sizeof(before));
	}
	printf("%" PRIu64 " images, %" PRIu64 " with an open object that has no name\n", c.images,
	       orphans);
	CHECK(c.images > 10 * ops);
	crash_free(&c);
	rec_free(&rec);
	caller_end(&t.v, me);
	tvol_drop(&t);
	return test_done();
}
