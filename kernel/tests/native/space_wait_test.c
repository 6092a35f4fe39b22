// SPDX-License-Identifier: Apache-2.0
/*
 * No page is free, and another system has deferred frees. A thread that holds locks for which other
 * threads wait gives way, as in a wait for a lock (sg_vol.gives_way). It waits again without these
 * locks.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	(32ULL << 20)
#define MS	1000000ULL
#define SOON	(1000 * MS)	/* much less than the 2 s for which a thread may wait */
#define PAGES	16u
#define ROOM	512u

static struct tsys s[2];
static u64 told, ends;

static bool gives_way(const struct sg_vol *vol)
{
	(void)vol;
	return sg_ticks() >= ends;
}

static void room_locked(const struct sg_vol *vol, u64 lock)
{
	(void)vol;
	told = lock;
}

static void fill(struct sg_vol *v, const struct sg_iref *f)
{
	static u8 buf[1 << 16];
	u64 at = 0;
	s64 n;

	v->space_wait_ms = 1;
	while ((n = sg_write(v, f, at, buf, sizeof(buf), 1)) > 0)
		at += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	v->space_wait_ms = 0;
}

/* The calls that the module makes with invalidate_lock held. */
static int allocate(const struct sg_iref *f)
{
	return sg_allocate(&s[0].v, f, 0, PAGES);
}

static int insert(const struct sg_iref *f)
{
	return sg_insert(&s[0].v, f, 0, SG_PAGE, 1);
}

static int briefly(int (*call)(const struct sg_iref *f), const struct sg_iref *f)
{
	u64 begun = sg_ticks();
	int err;

	told = 0;
	ends = begun + 20 * MS;
	s[0].v.gives_way = gives_way;
	s[0].v.room_locked = room_locked;
	err = call(f);
	s[0].v.gives_way = NULL;
	s[0].v.room_locked = NULL;
	CHECK(sg_ticks() - begun < SOON);
	return err;
}

static void gives_way_in(int (*call)(const struct sg_iref *f))
{
	struct sg_nospace nospace = {};
	struct sg_iref f, x, full;
	static u8 page[SG_PAGE];
	u8 *mem = tsys_volume(SIZE);
	unsigned int i;

	tsys_join(&s[0], mem, SIZE, 1);
	tsys_join(&s[1], mem, SIZE, 2);
	f = test_create(&s[0].v, &s[0].root, "f", S_IFREG | 0600);
	for (i = 0; i < 4; i++)		/* every second page, so that an insertion needs tables */
		CHECK_EQ(sg_write(&s[0].v, &f, (2 * i + 1 + PAGES) * SG_PAGE, page, SG_PAGE, 1), SG_PAGE);
	x = test_create(&s[1].v, &s[1].root, "x", S_IFREG | 0600);
	CHECK_OK(sg_allocate(&s[1].v, &x, 0, ROOM));
	full = test_create(&s[0].v, &s[0].root, "full", S_IFREG | 0600);
	fill(&s[0].v, &full);
	CHECK_OK(sg_unlink(&s[1].v, &s[1].root, "x", 1, 1));
	CHECK_OK(sg_evict(&s[1].v, &x));

	CHECK_EQ(briefly(call, &f), -EINTR);
	CHECK_EQ(told, SG_ROOM_OTHERS);
	/* without these locks, the thread waits until the other system has reclaimed */
	for (i = 0; i < 6; i++) {
		CHECK(sg_maintain(&s[0].v) >= 0);
		CHECK(sg_maintain(&s[1].v) >= 0);
		sg_settle(&s[1].v);
	}
	CHECK(sg_more_space(&s[0].v, &nospace));
	CHECK_OK(briefly(call, &f));
	CHECK_EQ(told, 0);
	tsys_leave(&s[0]);
	tsys_leave(&s[1]);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

int main(void)
{
	gives_way_in(allocate);
	gives_way_in(insert);
	return test_done();
}
