// SPDX-License-Identifier: Apache-2.0
/*
 * Atomic writes: which pages stay, which pages are replaced, and which states refuse a write. Then
 * random writes are compared with a copy in memory, with occasional mappings, holes, and a volume
 * that becomes full.
 */
#include "data_util.h"

#define KIB	1024ULL

static u8 bytes[3 * MIB], got[3 * MIB];

static int put(struct sg_vol *vol, const struct sg_iref *f, u64 pos, u64 len)
{
	bool filled = false;

	rng_fill(&rng, bytes, len);
	return sg_write_atomic(vol, f, pos, bytes, len, 0, 1, &filled);
}

static void has(struct sg_vol *vol, const struct sg_iref *f, u64 pos, u64 len)
{
	CHECK_EQ(sg_read(vol, f, pos, got, len), len);
	CHECK(!memcmp(got, bytes, len));
}

static u64 page_at(struct sg_vol *vol, const struct sg_iref *f, u64 page, unsigned int *level)
{
	struct sg_run run;

	CHECK_OK(sg_walk(vol, f, page, 1, &run));
	if (level)
		*level = run.level;
	return run.off;
}

static u32 flags_of(struct sg_vol *vol, const struct sg_iref *f)
{
	struct sg_attr a;

	CHECK_OK(sg_getattr(vol, f, &a));
	return a.flags;
}

/* --- one thing at a time -------------------------------------------------------------------- */

/* Without the flag no page moves: other systems may store there without a lock. */
static void pages_stay(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol);
	u64 was, cuts = sg_cuts(vol, &f);

	CHECK_OK(put(vol, &f, 0, 64 * KIB));
	CHECK_EQ(flags_of(vol, &f), SG_FL_WHOLE | SG_FL_TOLD);
	/*
	 * replay could undo a store without the lock, so such stores are refused, also through
	 * windows
	 */
	CHECK_EQ(sg_write_begin(vol, &f, 0, 10, SG_WRITE_IN_PLACE, &(struct sg_write){}), -EAGAIN);
	CHECK(sg_cuts(vol, &f) != cuts);
	was = page_at(vol, &f, 1, NULL);
	CHECK_OK(put(vol, &f, 0, 64 * KIB));
	has(vol, &f, 0, 64 * KIB);
	CHECK_EQ(page_at(vol, &f, 1, NULL), was);
	CHECK_OK(put(vol, &f, 5000, 100));
	has(vol, &f, 5000, 100);
	CHECK_EQ(page_at(vol, &f, 1, NULL), was);
	account_volume(vol, &f, 1, NULL);
	file_end(vol, &f);
}

static void pages_are_replaced(struct sg_vol *vol)
{
	static u8 old[SG_PAGE];
	struct sg_iref f = file_new(vol);
	u64 was, cuts;

	CHECK_OK(put(vol, &f, 0, 64 * KIB));
	CHECK_OK(sg_set_atomic(vol, &f, true, 5));
	CHECK_EQ(flags_of(vol, &f), SG_FL_WHOLE | SG_FL_TOLD | SG_FL_ATOMIC | SG_FL_REPLACE);
	was = page_at(vol, &f, 1, NULL);
	cuts = sg_cuts(vol, &f);
	memcpy(old, vol->base + was, SG_PAGE);
	CHECK_OK(put(vol, &f, 0, 16 * KIB));
	has(vol, &f, 0, 16 * KIB);
	CHECK(page_at(vol, &f, 1, NULL) != was);
	CHECK_EQ(sg_cuts(vol, &f), cuts);	/* no system has to check its translations */
	/* a reader that found the old page still sees it */
	CHECK(!memcmp(old, vol->base + was, SG_PAGE));
	CHECK(page_used(vol, was / SG_PAGE));
	/* parts of pages are written in place */
	was = page_at(vol, &f, 1, NULL);
	CHECK_OK(put(vol, &f, 4100, 4000));
	CHECK_EQ(page_at(vol, &f, 1, NULL), was);
	account_volume(vol, &f, 1, NULL);
	file_end(vol, &f);
}

static void mapped_pages_stay(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol);
	u64 was;

	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	CHECK_OK(put(vol, &f, 0, 16 * KIB));
	sg_set_mapper(vol, &f, false, true);
	was = page_at(vol, &f, 0, NULL);
	CHECK_OK(put(vol, &f, 0, 16 * KIB));
	has(vol, &f, 0, 16 * KIB);
	CHECK_EQ(page_at(vol, &f, 0, NULL), was);
	CHECK(!sg_is_replacing(vol, &f));
	sg_set_mapper(vol, &f, false, false);
	/* the bit of a slot without a system has no effect */
	sg_or64(sg_at(vol, SG_IOFF(&f, mappers)), 1ULL << 63);
	CHECK_OK(put(vol, &f, 0, 16 * KIB));
	CHECK(page_at(vol, &f, 0, NULL) != was);
	CHECK(!sg_is_replacing(vol, &f));
	/* a system died while it replaced pages; the next system that maps the file notices that */
	CHECK(!sg_ilock(vol, &f));
	CHECK(sg_replace_begin(vol, &f));
	sg_iunlock(vol, &f);
	CHECK(sg_is_replacing(vol, &f));
	CHECK_OK(sg_wait_replaced(vol, &f));
	CHECK(!sg_is_replacing(vol, &f));
	/*
	 * after the recovery of that system nothing has to wait, and other systems do not clear its
	 * word
	 */
	sg_store64(sg_at(vol, SG_IOFF(&f, replacing)), SG_LOCK_WORD(63, 1));
	CHECK(!sg_is_replacing(vol, &f));
	sg_replace_end(vol, &f);
	CHECK_EQ(sg_iget(vol, &f, replacing), SG_LOCK_WORD(63, 1));
	CHECK_OK(sg_wait_replaced(vol, &f));
	CHECK_EQ(sg_iget(vol, &f, replacing), 0);
	file_end(vol, &f);
}

static void large_leaves_stay(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol);
	unsigned int level;
	u64 was;

	rng_fill(&rng, bytes, 2 * MIB);
	CHECK_EQ(sg_write(vol, &f, 0, bytes, 2 * MIB, 1), 2 * MIB);
	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	was = page_at(vol, &f, 8, &level);
	CHECK_EQ(level, 2);
	CHECK_OK(put(vol, &f, 32 * KIB, 64 * KIB));
	has(vol, &f, 32 * KIB, 64 * KIB);
	CHECK_EQ(page_at(vol, &f, 8, &level), was);
	CHECK_EQ(level, 2);
	file_end(vol, &f);
}

static void refusals(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol), other = f;
	bool filled = false;

	CHECK_EQ(put(vol, &f, 0, SG_ATOMIC_MAX + 1), -EINVAL);
	CHECK_EQ(sg_write_atomic(vol, &f, 0, bytes, 0, 0, 1, &filled), -EINVAL);
	CHECK_EQ(put(vol, &f, SG_FILE_MAX, 1), -EFBIG);
	CHECK_EQ(put(vol, &f, SG_FILE_MAX - 1, 2), -EFBIG);
	other.generation++;
	CHECK_EQ(put(vol, &other, 0, 10), -ESTALE);
	CHECK_EQ(sg_set_atomic(vol, &other, true, 1), -ESTALE);
	/* a volume that older software may use as well */
	vol->sb.incompat &= ~SG_INCOMPAT_ATOMIC;
	CHECK_EQ(put(vol, &f, 0, 10), -EOPNOTSUPP);
	CHECK_EQ(sg_set_atomic(vol, &f, true, 1), -EOPNOTSUPP);
	vol->sb.incompat |= SG_INCOMPAT_ATOMIC;
	CHECK_EQ(flags_of(vol, &f), 0);
	CHECK_EQ(sg_iget(vol, &f, size), 0);
	/* a change of the users' attributes does not change the engine's flags */
	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	CHECK_OK(sg_setattr(vol, &f, SG_SET_FLAGS, &(struct sg_attr){ .flags = SG_FL_NODUMP }));
	CHECK_EQ(flags_of(vol, &f), SG_FL_ATOMIC | SG_FL_REPLACE | SG_FL_NODUMP);
	CHECK_OK(sg_setattr(vol, &f, SG_SET_FLAGS, &(struct sg_attr){ .flags = SG_FL_ATOMIC }));
	CHECK_OK(sg_set_atomic(vol, &f, false, 1));
	CHECK_EQ(flags_of(vol, &f), 0);
	file_end(vol, &f);
}

static void in_units(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol);
	u64 commits = sg_counters(vol).commits;

	CHECK_EQ(sg_atomic_unit(100, 64 * KIB), 64 * KIB);
	CHECK_EQ(sg_atomic_unit(100, 64 * KIB + 1), 64 * KIB - 100);
	CHECK_EQ(sg_atomic_unit(64 * KIB, MIB), 64 * KIB);
	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	commits = sg_counters(vol).commits;
	rng_fill(&rng, bytes, MIB);
	CHECK_EQ(sg_write(vol, &f, 100, bytes, MIB, 1), MIB);
	CHECK_EQ(sg_counters(vol).commits - commits, 17);
	has(vol, &f, 100, MIB);
	/* no write without the lock changes the file */
	CHECK_EQ(sg_write_begin(vol, &f, 0, 10, SG_WRITE_IN_PLACE, &(struct sg_write){}), -EAGAIN);
	file_end(vol, &f);
}

/*
 * Other kinds of write fail also with the inode locked, as they may have begun before the attribute
 * was set.
 */
static void no_other_way(struct sg_vol *vol)
{
	struct sg_iref f = file_new(vol);
	struct sg_write w;
	u64 size;

	CHECK_OK(put(vol, &f, 0, 64 * KIB));
	CHECK_OK(sg_write_begin(vol, &f, 0, 10, SG_WRITE_LOCKED, &w));
	CHECK_OK(sg_write_end(vol, &f, &w, 0, 1));
	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	CHECK_EQ(sg_write_begin(vol, &f, 0, 10, SG_WRITE_LOCKED, &w), -EMEDIUMTYPE);
	CHECK_EQ(sg_write_begin(vol, &f, MIB, 10, 0, &w), -EMEDIUMTYPE);
	CHECK_OK(sg_append_begin(vol, &f, &size));
	CHECK_EQ(sg_write_begin(vol, &f, size, 10, SG_WRITE_APPEND, &w), -EMEDIUMTYPE);
	sg_append_end(vol, &f);
	CHECK_EQ(sg_iget(vol, &f, size), 64 * KIB);
	has(vol, &f, 0, 64 * KIB);
	CHECK_OK(sg_set_atomic(vol, &f, false, 1));
	CHECK_EQ(flags_of(vol, &f), 0);		/* readers need no check any more */
	CHECK_OK(sg_write_begin(vol, &f, 0, 10, SG_WRITE_LOCKED, &w));
	CHECK_OK(sg_write_end(vol, &f, &w, 0, 1));
	file_end(vol, &f);
}

/* Each free page is in a different chunk: a write of N pages needs the locks of N chunks. */
static void in_fragments(void)
{
	struct sg_vol *vol = vol_new(128 * MIB);
	struct sg_iref f = file_new(vol), all = file_new(vol), in[2];
	bool seen[128 * MIB >> SG_CHUNK_SHIFT] = {};
	struct sg_counters c;
	u64 page, pages;

	CHECK_OK(put(vol, &f, 0, 64 * KIB));
	vol->space_wait_ms = 1;
	for (pages = 0; !sg_allocate(vol, &all, 2 * pages, 1); pages++)	/* no large leaves */
		;
	for (page = 0; page < pages; page++) {
		bool *chunk = &seen[page_at(vol, &all, 2 * page, NULL) >> SG_CHUNK_SHIFT];

		if (*chunk)
			continue;
		*chunk = true;
		CHECK_OK(sg_punch(vol, &all, 2 * page * SG_PAGE, SG_PAGE, 1));
	}
	CHECK_EQ(sg_reclaim(vol, ~0u), 0);
	test_note("%" PRIu64 " free pages", sg_free_pages(vol));
	CHECK(sg_free_pages(vol) > 3 * SG_ATOMIC_PAGES && sg_free_pages(vol) <= sizeof(seen));
	CHECK_OK(put(vol, &f, 100, 64 * KIB));			/* written through the log */
	has(vol, &f, 100, 64 * KIB);
	CHECK_OK(put(vol, &f, 200 * KIB + 1, 64 * KIB));	/* written to holes */
	has(vol, &f, 200 * KIB + 1, 64 * KIB);
	CHECK_OK(sg_set_atomic(vol, &f, true, 1));
	c = sg_counters(vol);
	CHECK_OK(put(vol, &f, 0, 64 * KIB));			/* written to new pages */
	has(vol, &f, 0, 64 * KIB);
	CHECK_EQ(sg_counters(vol).atomic_replaced - c.atomic_replaced, 64 * KIB);
	CHECK_EQ(sg_counters(vol).atomic_logged, c.atomic_logged);
	in[0] = f;
	in[1] = all;
	account_volume(vol, in, 2, NULL);
	file_end(vol, &f);
	file_end(vol, &all);
	vol_end(vol);
}

/* --- against a copy in memory --------------------------------------------------------------- */

struct twin {
	struct sg_iref f;
	u8 *data;
	u64 size;
};

#define TWIN_MAX	(3 * MIB)

static void twin_write(struct sg_vol *vol, struct twin *t)
{
	u64 len = 1 + rng_size(&rng, SG_ATOMIC_MAX - 1), pos = rnd(TWIN_MAX - len);
	int err;

	if (rnd(3))
		pos = rng_size(&rng, t->size);
	if (rnd(2)) {
		pos &= ~(SG_PAGE - 1);
		len = SG_ALIGN_UP(len, SG_PAGE);
	}
	if (pos + len > TWIN_MAX)
		return;
	test_note("write of %" PRIu64 " at %" PRIu64 ", size %" PRIu64, len, pos, t->size);
	err = put(vol, &t->f, pos, len);
	CHECK(!err || err == -ENOSPC);
	if (err)
		return;
	memcpy(t->data + pos, bytes, len);
	t->size = SG_MAX(t->size, pos + len);
}

static void twin_compare(struct sg_vol *vol, struct twin *t)
{
	CHECK_EQ(sg_iget(vol, &t->f, size), t->size);
	CHECK_EQ(sg_read(vol, &t->f, 0, got, TWIN_MAX), t->size);
	CHECK(!memcmp(got, t->data, t->size));
}

static void twin_step(struct sg_vol *vol, struct twin *t)
{
	u64 dice = rnd(100), pos = rng_size(&rng, t->size), len = 1 + rng_size(&rng, 200 * KIB);

	if (dice < 80) {
		twin_write(vol, t);
	} else if (dice < 85) {
		CHECK_OK(sg_punch(vol, &t->f, pos, len, 1));
		memset(t->data + pos, 0, SG_MIN(len, TWIN_MAX - pos));
	} else if (dice < 88) {
		CHECK_OK(sg_resize(vol, &t->f, pos, 1));
		memset(t->data + pos, 0, TWIN_MAX - pos);
		t->size = pos;
	} else if (dice < 91) {
		CHECK_OK(sg_set_atomic(vol, &t->f, rnd(3), 1));
	} else if (dice < 94) {
		sg_set_mapper(vol, &t->f, false, rnd(2));
	} else if (dice < 96) {
		CHECK(sg_allocate(vol, &t->f, rnd(TWIN_MAX / SG_PAGE - 20), rnd(20)) <= 0);
	} else {
		twin_compare(vol, t);
	}
}

static void twins(u64 size, u64 steps, u64 leave)
{
	struct sg_vol *vol = vol_new(size);
	struct twin t[2];
	struct sg_iref f[3];
	unsigned int i;
	u64 n;

	vol->space_wait_ms = 1;
	for (i = 0; i < 2; i++) {
		t[i] = (struct twin){ .f = file_new(vol), .data = calloc(1, TWIN_MAX) };
		CHECK(t[i].data);
	}
	f[2] = file_new(vol);
	if (leave)
		CHECK_OK(sg_allocate(vol, &f[2], 0, sg_free_pages(vol) - leave));
	for (n = 0; n < steps; n++)
		twin_step(vol, &t[rnd(2)]);
	for (i = 0; i < 2; i++) {
		twin_compare(vol, &t[i]);
		f[i] = t[i].f;
		free(t[i].data);
	}
	account_volume(vol, f, 3, NULL);
	for (i = 0; i < 3; i++)
		file_end(vol, &f[i]);
	vol_end(vol);
}

int main(void)
{
	u64 steps = test_amount(4000, 60000, 1000000);
	struct sg_vol *vol;

	rng.state = test_seed();
	vol = vol_new(16 * MIB);
	pages_stay(vol);
	pages_are_replaced(vol);
	mapped_pages_stay(vol);
	large_leaves_stay(vol);
	refusals(vol);
	in_units(vol);
	no_other_way(vol);
	vol_end(vol);
	in_fragments();
	twins(64 * MIB, steps, 0);
	twins(16 * MIB, steps / 2, 900);
	twins(16 * MIB, steps / 4, 120);
	return test_done();
}
