// SPDX-License-Identifier: Apache-2.0
/* A worker on its own files, which may be killed at any moment. */
#include <sys/stat.h>
#include "workman.h"

#define SIZE_OF(f) (3000 + 1777 * (u64)(f))
#define WORK_MAX SIZE_OF(WORK_FILES)

enum { ABSENT, EMPTY, FULL, MIXED };	/* MIXED: a write was interrupted */

/* --- files ---------------------------------------------------------------------------------- */

static const struct sg_iref *dir_of(struct workman *th, u32 f)
{
	return f % 2 ? &th->common : &th->own;
}

static u32 name_of(struct workman *th, u32 f, char *name)
{
	return (u32)sprintf(name, "worker-%u-file-%u", th->n, f);
}

static void pattern(struct workman *th, u32 f, u32 version, u8 *buf)
{
	struct rng r = { (u64)version << 32 | f << 8 | th->n };

	rng_fill(&r, buf, SIZE_OF(f));
}

static bool find(struct workman *th, u32 f, struct sg_iref *ref)
{
	char name[40];
	u32 len = name_of(th, f, name);
	int err = sg_lookup(th->v, dir_of(th, f), name, len, ref, NULL);

	if (err)
		CHECK_EQ(err, -ENOENT);
	return !err;
}

/* --- the present state of files ------------------------------------------------------------- */

/*
 * Returns whether file @f has the state @want. After a rename, a file has the data of another file
 * number.
 */
static bool matches(struct workman *th, u32 f, const struct work_content *want)
{
	static __thread u8 got[WORK_MAX], buf[WORK_MAX];
	u32 origin = want->version >> 24;
	struct sg_iref ref;
	struct sg_attr a;

	if (!find(th, f, &ref))
		return want->state == ABSENT;
	CHECK_OK(sg_getattr(th->v, &ref, &a));
	CHECK_EQ(a.nlink, 1);
	if (want->state == ABSENT)
		return false;
	if (want->state == MIXED)
		return a.size <= WORK_MAX;
	if (want->state == EMPTY)
		return a.size == 0;
	pattern(th, origin, want->version, buf);
	return a.size == SIZE_OF(origin) &&
	       sg_read(th->v, &ref, 0, got, a.size) == (s64)a.size && !memcmp(buf, got, a.size);
}

/* Returns whether an interrupted write may leave these bytes: each is old, new, or zero. */
static bool is_mix(struct workman *th, u32 f, const struct work_content *old, const struct work_content *new)
{
	static __thread u8 got[WORK_MAX], was[WORK_MAX], is[WORK_MAX];
	u64 i, old_size = old->state == FULL ? SIZE_OF(old->version >> 24) : 0;
	struct sg_iref ref;
	struct sg_attr a;

	if (new->state != FULL || !find(th, f, &ref))
		return false;
	CHECK_OK(sg_getattr(th->v, &ref, &a));
	if (old->state == MIXED)
		return a.size <= WORK_MAX;
	memset(was, 0, sizeof(was));
	if (old->state == FULL)
		pattern(th, old->version >> 24, old->version, was);
	pattern(th, f, new->version, is);
	if (a.size < old_size || a.size > WORK_MAX)
		return false;
	CHECK_EQ(sg_read(th->v, &ref, 0, got, a.size), a.size);
	for (i = 0; i < a.size; i++)
		if (!(i < old_size && got[i] == was[i]) && !(i < SIZE_OF(f) && got[i] == is[i]))
			return false;
	return true;
}

/*
 * Finds out whether the intent of a killed worker was done. Only reads the volume, so the caller
 * may be killed as well.
 */
static void settle(struct workman *th)
{
	struct work_intent in = th->w->intent;
	struct work_content *a = &th->w->file[in.a], *b = &th->w->file[in.b];

	if (!in.active)
		return;
	test_note("worker %u: files %u, %u, to state %u, %u", th->n, in.a, in.b, in.to_a.state,
		  in.to_b.state);
	if (matches(th, in.a, &in.to_a) && matches(th, in.b, in.a == in.b ? &in.to_a : &in.to_b)) {
		*a = in.to_a;
		if (in.a != in.b)
			*b = in.to_b;
	} else if (!(matches(th, in.a, a) && matches(th, in.b, b))) {
		if (in.a != in.b || !is_mix(th, in.a, a, &in.to_a))
			test_fail(__FILE__, __LINE__, "half done: files %u and %u, states %u and %u",
				  in.a, in.b, a->state, b->state);
		a->state = MIXED;
	}
	th->w->intent.active = 0;
}

void workman_verify(struct workman *th)
{
	u32 f;

	settle(th);
	for (f = 0; f < WORK_FILES; f++) {
		test_note("worker %u: file %u, state %u, version %x", th->n, f, th->w->file[f].state,
			  th->w->file[f].version);
		CHECK(matches(th, f, &th->w->file[f]));
	}
}

/* --- work ----------------------------------------------------------------------------------- */

static void intend(struct workman *th, u32 a, u32 b, struct work_content to_a, struct work_content to_b)
{
	struct work_intent *in = &th->w->intent;

	in->a = a;
	in->b = b;
	in->to_a = to_a;
	in->to_b = to_b;
	__atomic_store_n(&in->active, 1, __ATOMIC_SEQ_CST);
}

static void did(struct workman *th)
{
	struct work_intent *in = &th->w->intent;

	/* after a kill between these two stores, both old and new entries match the volume */
	th->w->file[in->a] = in->to_a;
	if (in->a != in->b)
		th->w->file[in->b] = in->to_b;
	__atomic_store_n(&in->active, 0, __ATOMIC_SEQ_CST);
	th->w->done++;
}

static u32 next_version(struct workman *th, u32 f)
{
	return f << 24 | (++th->w->version & 0xffffff);
}

static void create(struct workman *th, u32 f)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct work_content empty = { EMPTY, 0 };
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(th, f, name);

	intend(th, f, f, empty, empty);
	CHECK_OK(sg_create(th->v, dir_of(th, f), name, len, &new, &ref));
	did(th);
}

static void fill(struct workman *th, u32 f)
{
	struct work_content full = { FULL, next_version(th, f) };
	static __thread u8 buf[WORK_MAX];
	struct sg_iref ref;
	struct sg_attr a;

	CHECK(find(th, f, &ref));
	CHECK_OK(sg_getattr(th->v, &ref, &a));
	if (a.size > SIZE_OF(f))
		return;		/* a larger file has been renamed to this name */
	pattern(th, f, full.version, buf);
	intend(th, f, f, full, full);
	CHECK_EQ(sg_write(th->v, &ref, 0, buf, SIZE_OF(f), 1), SIZE_OF(f));
	did(th);
}

static void empty(struct workman *th, u32 f)
{
	struct work_content empty = { EMPTY, 0 };
	struct sg_iref ref;

	CHECK(find(th, f, &ref));
	intend(th, f, f, empty, empty);
	CHECK_OK(sg_resize(th->v, &ref, 0, 1));
	did(th);
}

static void discard(struct workman *th, u32 f)
{
	struct work_content absent = { ABSENT, 0 };
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(th, f, name);

	CHECK(find(th, f, &ref));
	intend(th, f, f, absent, absent);
	CHECK_OK(sg_unlink(th->v, dir_of(th, f), name, len, 1));
	did(th);
	CHECK_OK(sg_evict(th->v, &ref));
}

static void move(struct workman *th, u32 f, u32 g)
{
	bool exchange = th->w->file[g].state != ABSENT && rng_chance(&th->rng, 50);
	struct work_content absent = { ABSENT, 0 };
	char from[40], to[40];
	u32 flen = name_of(th, f, from), glen = name_of(th, g, to);
	struct sg_iref ref;
	bool replaced = find(th, g, &ref) && !exchange;

	if (f == g)
		return;
	intend(th, f, g, exchange ? th->w->file[g] : absent, th->w->file[f]);
	CHECK_OK(sg_rename(th->v, dir_of(th, f), from, flen, dir_of(th, g), to, glen,
			   exchange ? SG_RENAME_EXCHANGE : 0, NULL, 1));
	did(th);
	if (replaced)
		CHECK_OK(sg_evict(th->v, &ref));
}

void workman_step(struct workman *th)
{
	u32 f = (u32)rng_below(&th->rng, WORK_FILES), dice = (u32)rng_below(&th->rng, 10);

	test_note("worker %u: file %u in state %u, dice %u", th->n, f, th->w->file[f].state, dice);
	if (th->w->file[f].state == ABSENT)
		create(th, f);
	else if (dice < 5)
		fill(th, f);
	else if (dice < 6)
		empty(th, f);
	else if (dice < 8)
		discard(th, f);
	else
		move(th, f, (u32)rng_below(&th->rng, WORK_FILES));
}
