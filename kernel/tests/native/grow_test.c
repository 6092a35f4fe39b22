// SPDX-License-Identifier: Apache-2.0
/*
 * Growth in place (docs/protocol.md, section 7): on an unused volume; while other systems work,
 * cannot follow, or do not answer; joins during growth; a grower that died; invalid words.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define MIB	(1ULL << 20)
#define ROOM	(64 * MIB)

static u8 *mem;
static char why[200];

static void make(u64 size, u64 cap)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .chunk_cap = cap / SG_CHUNK };

	memset(mem, 0xa5, ROOM);
	CHECK_OK(sg_format(mem, size, &opts, why));
}

static void says(const char *text, const char *reason)
{
	test_counted();
	if (!strstr(text, reason))
		test_fail(__FILE__, __LINE__, "'%s' does not contain '%s'", text, reason);
}

static void grows(struct tsys *s, u64 to)
{
	int err = sg_grow(&s->v, to, 0, why);

	if (err)
		test_fail(__FILE__, __LINE__, "cannot grow to %" PRIu64 ": %d, %s", to, err, why);
	CHECK_EQ(sg_size(&s->v), to & ~(SG_VOLUME_ALIGN - 1));
	CHECK_EQ(SG_SIZE_OF(sg_get(&s->v, SG_HOT(grow))), 0);
}

static void refused(struct tsys *s, u64 to, int want, const char *reason)
{
	u64 had = sg_size(&s->v);

	CHECK_EQ(sg_grow(&s->v, to, 300, why), want);
	says(why, reason);
	CHECK(!strchr(why, '\n'));
	CHECK_EQ(sg_size(&s->v), had);
	CHECK_EQ(SG_SIZE_OF(sg_get(&s->v, SG_HOT(grow))), 0);
}

static u64 pages_of(struct tsys *s)
{
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&s->v, &st));
	CHECK(st.free_pages <= st.pages);
	return st.pages;
}

static struct sg_super first_super(void)
{
	struct sg_super sb;

	memcpy(&sb, mem, sizeof(sb));
	return sb;
}

/* Fills the volume with a file, and returns the file's size in bytes. */
static u64 fill(struct tsys *s, const char *name)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
	static u8 buf[1 << 16];
	u64 at = 0;
	s64 n;

	memset(buf, name[0], sizeof(buf));
	while ((n = sg_write(&s->v, &f, at, buf, sizeof(buf), 1)) > 0)
		at += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	return at;
}

static void holds(struct tsys *s, const char *name, u64 len)
{
	struct sg_iref f = test_lookup(&s->v, &s->root, name);
	static u8 buf[1 << 16];
	u64 at, i;

	for (at = 0; at < len; at += sizeof(buf)) {
		u64 n = SG_MIN(len - at, sizeof(buf));

		CHECK_EQ(sg_read(&s->v, &f, at, buf, n), n);
		for (i = 0; i < n; i++)
			if (buf[i] != (u8)name[0])
				test_fail(__FILE__, __LINE__, "%s: byte %" PRIu64, name, at + i);
	}
}

static void join(struct tsys *s, u64 memory, unsigned int machine)
{
	tsys_join(s, mem, memory, machine);
}

/* --- on an unused volume ---------------------------------------------------------------------- */

/*
 * Files use the complete new part, including the page of the old backup superblock. All data can be
 * read again.
 */
static void to_the_last_page(void)
{
	u64 had, more, pages;
	struct tsys s;

	make(16 * MIB, 0);
	join(&s, ROOM, 1);
	had = fill(&s, "a");
	pages = pages_of(&s);
	grows(&s, 20 * MIB + 5);
	CHECK_EQ(pages_of(&s), pages + 4 * MIB / SG_PAGE);
	more = fill(&s, "b");
	CHECK(more > 4 * MIB - 64 * SG_PAGE && more <= 4 * MIB);
	CHECK(sg_get(&s.v, sg_chunk_off(&s.v, 7) + offsetof(struct sg_chunk, map) + 56) >> 63);
	tsys_leave(&s);
	test_clean(mem, ROOM);
	test_clean(mem, 20 * MIB);
	CHECK_EQ(first_super().size, 20 * MIB);
	CHECK(!memcmp(mem, mem + 20 * MIB - SG_PAGE, sizeof(struct sg_super)));
	join(&s, ROOM, 1);
	CHECK_EQ(sg_size(&s.v), 20 * MIB);
	holds(&s, "a", had);
	holds(&s, "b", more);
	grows(&s, 22 * MIB);	/* a second growth */
	holds(&s, "b", more);
	CHECK_EQ(sg_grow(&s.v, 0, 0, why), 0);
	CHECK_EQ(sg_size(&s.v), ROOM);
	fill(&s, "c");
	holds(&s, "a", had);
	tsys_leave(&s);
	test_clean(mem, ROOM);
}

static void limits(void)
{
	struct tsys s;

	make(16 * MIB, 24 * MIB);
	join(&s, ROOM, 1);
	refused(&s, 14 * MIB, -EINVAL, "a volume cannot shrink: it has 16 MiB");
	refused(&s, 1, -EINVAL, "cannot shrink");
	refused(&s, 26 * MIB, -ENOSPC, "no more than 24 MiB: the volume's metadata");
	refused(&s, ~0ULL, -ENOSPC, "no more than 24 MiB");
	CHECK_EQ(sg_grow_limit(&s.v), 24 * MIB);
	grows(&s, 16 * MIB);
	grows(&s, 16 * MIB + SG_CHUNK - 1);	/* rounded down: no change */
	CHECK_EQ(sg_get(&s.v, SG_HOT(size)), 0);
	s.v.read_only = true;
	CHECK_EQ(sg_grow(&s.v, 24 * MIB, 0, why), -EROFS);
	s.v.read_only = false;
	grows(&s, 24 * MIB);
	refused(&s, 26 * MIB, -ENOSPC, "no more than 24 MiB");
	tsys_leave(&s);
	join(&s, 30 * MIB + 12345, 1);
	CHECK_EQ(sg_grow_limit(&s.v), 24 * MIB);
	tsys_leave(&s);
	make(16 * MIB, 0);
	join(&s, 30 * MIB + 12345, 1);
	refused(&s, 32 * MIB, -ENOSPC, "no more than 30 MiB: this system has no memory");
	grows(&s, 30 * MIB);
	tsys_leave(&s);
	test_clean(mem, 30 * MIB);
}

/* A volume that mkfs.stargatefs makes there next has exactly the requested size. */
static void made_anew(void)
{
	struct tsys s;

	make(16 * MIB, 0);
	join(&s, ROOM, 1);
	grows(&s, 40 * MIB);
	tsys_leave(&s);
	CHECK_OK(sg_format(mem, 18 * MIB, &(struct sg_format_opts){ .phys = TEST_PHYS }, why));
	join(&s, ROOM, 1);
	CHECK_EQ(sg_size(&s.v), 18 * MIB);
	tsys_leave(&s);
	test_clean(mem, ROOM);
}

/* --- while other systems use the volume ------------------------------------------------------- */

static struct {
	struct tsys s;
	u64 stop, rounds, full;
} worker[3];

/* Writes half of the volume's present size, reads it again, and removes it. */
static void *work(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg, k;
	struct tsys *s = &worker[n].s;
	static u8 want[3][1 << 15], got[3][1 << 15];
	char name[20];

	memset(want[n], (int)n + 1, sizeof(want[n]));
	while (!__atomic_load_n(&worker[n].stop, __ATOMIC_ACQUIRE)) {
		struct sg_iref f;
		u64 at = 0, to = (4 + n) * MIB;
		s64 did = 0;

		k = (unsigned int)worker[n].rounds % 3;
		sprintf(name, "w%u-%u", n, k);
		if (!sg_lookup(&s->v, &s->root, name, (u32)strlen(name), &f, NULL)) {
			CHECK_OK(sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1));
			sg_evict(&s->v, &f);
		}
		if (sg_create(&s->v, &s->root, name, (u32)strlen(name),
			      &(struct sg_new){ .mode = S_IFREG | 0600, .now = 1 }, &f))
			continue;
		for (; at < to && did >= 0; at += (u64)did)
			did = sg_write(&s->v, &f, at, want[n], sizeof(want[n]), 1);
		CHECK(did > 0 || did == -ENOSPC);
		if (did == -ENOSPC)
			__atomic_fetch_add(&worker[n].full, 1, __ATOMIC_RELAXED);
		for (at = 0; at + sizeof(got[n]) <= to && did > 0; at += sizeof(got[n])) {
			CHECK_EQ(sg_read(&s->v, &f, at, got[n], sizeof(got[n])), sizeof(got[n]));
			CHECK(!memcmp(got[n], want[n], sizeof(got[n])));
		}
		__atomic_fetch_add(&worker[n].rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void under_load(u64 step)
{
	pthread_t id[3];
	struct tsys s;
	unsigned int i;
	u64 to, full = 0;

	make(16 * MIB, 0);
	join(&s, ROOM, 9);
	tsys_maintain(&s);
	memset(worker, 0, sizeof(worker));
	for (i = 0; i < 3; i++) {
		join(&worker[i].s, ROOM, i + 1);
		tsys_maintain(&worker[i].s);
		CHECK_OK(pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i));
	}
	for (to = 16 * MIB + step; to <= ROOM; to += step) {
		u64 pages;

		grows(&s, to);
		pages = pages_of(&s);
		/* all of them stop at the same time, so that no read has to wait */
		for (i = 0; i < 3; i++)
			CHECK_EQ(pages_of(&worker[i].s), pages);
	}
	for (i = 0; i < 3; i++)
		full += __atomic_load_n(&worker[i].full, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++) {
		u64 rounds = __atomic_load_n(&worker[i].rounds, __ATOMIC_RELAXED);

		tawait(&worker[i].rounds, rounds + 2);
		__atomic_store_n(&worker[i].stop, 1, __ATOMIC_RELEASE);
		CHECK_OK(pthread_join(id[i], NULL));
		printf("%" PRIu64 " rounds, ", worker[i].rounds);
	}
	printf("%" PRIu64 " writes failed because the volume was full\n", full);
	for (i = 0; i < 3; i++)
		tsys_leave(&worker[i].s);
	tsys_leave(&s);
	test_clean(mem, ROOM);
}

static u64 joining;

static void *join_and_leave(void *arg)
{
	struct sg_identity id = tsys_identity(30 + (unsigned int)(uintptr_t)arg, 1);

	while (!__atomic_load_n(&joining, __ATOMIC_ACQUIRE)) {
		struct tsys s;

		CHECK_OK(tsys_try(&s, mem, ROOM, &id, 0, false));
		tsys_maintain(&s);
		test_create(&s.v, &s.root, "mine", S_IFREG | 0600);
		CHECK_OK(sg_unlink(&s.v, &s.root, "mine", 4, 1));
		tsys_leave(&s);
	}
	return NULL;
}

/* Systems that join and leave do not prevent growth, and see the size correctly. */
static void among_joiners(u64 step)
{
	struct tsys s;
	pthread_t id;
	u64 to;

	make(16 * MIB, 0);
	join(&s, ROOM, 1);
	tsys_maintain(&s);
	joining = 0;
	CHECK_OK(pthread_create(&id, NULL, join_and_leave, NULL));
	for (to = 16 * MIB + step; to <= ROOM; to += step)
		grows(&s, to);
	__atomic_store_n(&joining, 1, __ATOMIC_RELEASE);
	CHECK_OK(pthread_join(id, NULL));
	tsys_leave(&s);
	test_clean(mem, ROOM);
}

/* --- systems that cannot follow, or do not answer --------------------------------------------- */

static u64 more_memory;

static u64 reach(struct sg_vol *vol)
{
	(void)vol;
	return more_memory;
}

/*
 * A system with less memory prevents the growth, and continues. It can get more memory while it
 * runs.
 */
static void small_memory(void)
{
	struct tsys big, small;

	make(16 * MIB, 0);
	join(&big, ROOM, 1);
	join(&small, 24 * MIB, 2);
	tsys_maintain(&big);
	tsys_maintain(&small);
	CHECK_EQ(sg_grow_ask(&big.v, 24 * MIB, why), 0);
	CHECK_EQ(sg_grow_ask(&big.v, 26 * MIB, why), -EBUSY);
	says(why, "no more than 24 MiB while system-2 (slot 1) uses");
	CHECK_EQ(sg_grow_ask(&small.v, ROOM, why), 0);
	/* the query announces nothing, and changes no bound */
	CHECK_EQ(sg_bound(&big.v), 16 * MIB);
	refused(&big, 32 * MIB, -EBUSY, "no more than 24 MiB while system-2 (slot 1) uses");
	CHECK_EQ(sg_grow_limit(&big.v), 24 * MIB);
	test_create(&small.v, &small.root, "goes on", S_IFREG | 0600);
	grows(&big, 22 * MIB);
	CHECK_EQ(pages_of(&small), pages_of(&big));
	refused(&big, 26 * MIB, -EBUSY, "no more than 24 MiB while system-2");
	fill(&big, "x");
	tsys_rest(&small);
	more_memory = 40 * MIB;
	small.v.reach = reach;
	tsys_maintain(&small);
	grows(&big, 30 * MIB);
	CHECK_EQ(sg_grow(&big.v, 0, 0, why), 0);
	CHECK_EQ(sg_size(&big.v), 40 * MIB);
	CHECK_EQ(pages_of(&small), pages_of(&big));
	fill(&small, "y");
	CHECK_EQ(sg_grow(&small.v, 44 * MIB, 0, why), -ENOSPC);
	says(why, "no more than 40 MiB: this system has no memory");
	tsys_leave(&small);
	grows(&big, 44 * MIB);
	tsys_leave(&big);
	test_clean(mem, ROOM);
}

static void silent(void)
{
	struct tsys a, b;
	struct sg_slot *slot;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	join(&b, ROOM, 2);
	tsys_maintain(&a);
	refused(&a, 20 * MIB, -EAGAIN, "system-2 (slot 1) does not answer");
	/* an engine without support for growth has taken the slot after one with support */
	slot = sg_at(&a.v, sg_slot_off(&a.v, 1));
	slot->reach = SG_SIZE_WORD(ROOM, b.v.incarnation - 1);
	b.v.steady = true;
	tsys_maintain(&b);
	refused(&a, 20 * MIB, -EAGAIN, "system-2 (slot 1) does not answer");
	tsys_rest(&b);
	b.v.steady = false;
	/* the system has enough memory, but an operation that began earlier is still in progress */
	sg_follow(&b.v);
	slot->reach = SG_SIZE_WORD(ROOM, b.v.incarnation);
	refused(&a, 20 * MIB, -EAGAIN, "does not finish an operation");
	/* dead systems do not prevent growth */
	tsys_fence(&a, &b);
	tsys_die(&b);
	grows(&a, 20 * MIB);
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

/*
 * This system follows a growth only when required, and reads as little of the growth as necessary.
 */
static struct tsys asked;

static void ask(struct sg_vol *vol)
{
	(void)vol;
	CHECK(sg_maintain(&asked.v) >= 0);
}

static void not_looked_yet(struct sg_vol *vol)
{
	vol->sb.size = 16 * MIB;
	vol->sb.chunks = 8;
}

/* The system reads, changes and frees data that others stored in the new part, and adds inodes. */
static void unnoticed(void)
{
	unsigned int i;
	struct tsys a;
	u64 records;
	char name[20];

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	join(&asked, ROOM, 2);
	a.v.space_wait_ms = asked.v.space_wait_ms = 1;
	fill(&a, "full");
	for (i = 0; i < 3; i++) {
		CHECK(sg_maintain(&asked.v) >= 0);
		CHECK(sg_maintain(&a.v) >= 0);
	}
	a.v.quiesce = ask;
	grows(&a, 32 * MIB);
	CHECK_EQ(sg_size(&asked.v), 16 * MIB);
	CHECK_EQ(sg_bound(&asked.v), 32 * MIB);
	fill(&a, "new");
	holds(&asked, "new", 15 * MIB);
	CHECK_OK(sg_unlink(&asked.v, &asked.root, "new", 3, 1));
	for (i = 0; i < 6; i++) {
		CHECK(sg_maintain(&asked.v) >= 0);
		CHECK(sg_maintain(&a.v) >= 0);
		sg_settle(&asked.v);
		a.v.quiesce = NULL;
	}
	not_looked_yet(&asked.v);
	CHECK_EQ(sg_size_now(&asked.v), 32 * MIB);
	not_looked_yet(&asked.v);
	records = sg_get(&a.v, SG_HOT(inodes));
	for (i = 0; sg_get(&a.v, SG_HOT(inodes)) == records; i++) {
		sprintf(name, "f%u", i);
		test_create(&asked.v, &asked.root, name, S_IFREG | 0600);
	}
	CHECK_EQ(sg_size(&asked.v), 32 * MIB);
	tsys_leave(&asked);
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

/* --- a joining system ------------------------------------------------------------------------- */

static u64 *announced;

/* While the system examines its memory for one announcement, another announcement replaces it. */
static u64 reach_late(struct sg_vol *vol)
{
	(void)vol;
	*announced = SG_SIZE_WORD(26 * MIB, 2);
	return ROOM;
}

/* The joiner has enough memory. The join succeeds although the joiner has not answered yet. */
static void joins_between_two(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	struct tsys a, b;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	CHECK_OK(sg_open(&b.v, mem, 20 * MIB, false, NULL));
	b.v.reach = reach_late;
	announced = sg_at(&a.v, SG_HOT(grow));
	*announced = SG_SIZE_WORD(24 * MIB, 1);
	CHECK_OK(sg_lock(&a.v, SG_HOT(grow_lock)));
	if (sg_join(&b.v, &id, 0, false))
		test_fail(__FILE__, __LINE__, "cannot join: %s", b.v.why);
	CHECK(sg_maintain(&b.v) >= 0);
	CHECK_EQ(sg_bound(&b.v), 26 * MIB);
	sg_unlock(&a.v, SG_HOT(grow_lock));
	tsys_leave(&b);
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

static u64 *size_word;

/*
 * While the system examines its memory for one size, a growth completes that did not wait for the
 * system.
 */
static u64 reach_ended(struct sg_vol *vol)
{
	(void)vol;
	*size_word = 24 * MIB;
	return ROOM;
}

/*
 * The grower checked the slots before the joiner was live. The joiner never had to confirm the new
 * size.
 */
static void joins_at_the_end(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	u8 backup[SG_PAGE];
	struct tsys a, b;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	CHECK_OK(sg_open(&b.v, mem, 16 * MIB, false, NULL));
	grows(&a, 20 * MIB);
	memcpy(backup, mem + 20 * MIB - SG_PAGE, SG_PAGE);
	grows(&a, 24 * MIB);
	memcpy(mem + 20 * MIB - SG_PAGE, backup, SG_PAGE);	/* the state before the growth */
	size_word = sg_at(&a.v, SG_HOT(size));
	*size_word = 20 * MIB;
	b.v.reach = reach_ended;
	if (sg_join(&b.v, &id, 0, false))
		test_fail(__FILE__, __LINE__, "cannot join: %s", b.v.why);
	CHECK_EQ(sg_size(&b.v), 24 * MIB);
	tsys_leave(&b);
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

static void who_joins(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	struct tsys a, b, c;
	u64 *grow;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	grow = sg_at(&a.v, SG_HOT(grow));
	/* b opens the volume before it grows */
	CHECK_OK(sg_open(&b.v, mem, 20 * MIB, false, NULL));
	CHECK_OK(sg_open(&c.v, mem, ROOM, false, NULL));
	*grow = SG_SIZE_WORD(24 * MIB, 7);
	CHECK_OK(sg_lock(&a.v, SG_HOT(grow_lock)));
	CHECK_EQ(sg_join(&b.v, &id, 0, false), -EBUSY);
	says(b.v.why, "is growing to 24 MiB, and only 20 are here");
	CHECK_EQ(sg_slots_taken(&a.v), 1);
	CHECK_OK(sg_join(&c.v, &id, 0, false));		/* the joiner follows the growth first */
	CHECK_EQ(sg_bound(&c.v), 24 * MIB);
	CHECK_EQ(sg_size(&c.v), 16 * MIB);
	sg_leave(&c.v);
	sg_unlock(&a.v, SG_HOT(grow_lock));
	CHECK_OK(sg_join(&b.v, &id, 0, false));		/* no growth is in progress */
	CHECK_EQ(SG_SIZE_OF(*grow), 0);
	CHECK_EQ(sg_bound(&b.v), 16 * MIB);
	sg_leave(&b.v);
	CHECK_OK(sg_open(&b.v, mem, 20 * MIB, false, NULL));
	CHECK_OK(sg_open(&c.v, mem, ROOM, false, NULL));
	grows(&a, 24 * MIB);
	fill(&a, "f");
	CHECK_EQ(sg_join(&b.v, &id, 0, false), -EUCLEAN);
	says(b.v.why, "cut short: the volume has grown to 24 MiB, and only 20 are here");
	/* c opened the volume before it grew, and joins now */
	CHECK_OK(sg_join(&c.v, &id, 0, false));
	CHECK_EQ(sg_size(&c.v), 24 * MIB);
	CHECK_OK(sg_iref(&c.v, SG_INO_ROOT, &c.root));
	holds(&c, "f", 20 * MIB - 4 * MIB);
	sg_leave(&c.v);
	CHECK_EQ(sg_open(&b.v, mem, 20 * MIB, false, NULL), -EUCLEAN);
	says(b.v.why, "cut short: the volume has 24 MiB, and only 20 are here");
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

/*
 * A dead system has stored in the new part. A joiner that opened the volume earlier replays its
 * journal.
 */
static void recovered_by_who_comes(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	struct sg_iref f;
	struct tsys a, b;
	struct sg_run run;
	u64 val;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	fill(&a, "a");
	CHECK_OK(sg_open(&b.v, mem, ROOM, false, NULL));
	grows(&a, 24 * MIB);
	fill(&a, "b");
	f = test_lookup(&a.v, &a.root, "b");
	CHECK_OK(sg_walk(&a.v, &f, 2 * MIB / SG_PAGE, 1, &run));
	CHECK(run.off > 16 * MIB);
	tsys_record(&a.v, 0, 0, run.off + 64, 0x6262626262626263ULL);
	tsys_die(&a);
	CHECK_OK(sg_join(&b.v, &id, 0, true));
	val = sg_get(&b.v, run.off + 64);
	CHECK_EQ(val, 0x6262626262626263ULL);
	sg_leave(&b.v);
	test_clean(mem, ROOM);
}

/* --- after a grower's death ------------------------------------------------------------------- */

/*
 * Restores the state before the first superblock is complete. That superblock is old, or half of it
 * is new.
 */
static void unwritten(const struct sg_super *old, bool torn)
{
	struct sg_hot *hot = (void *)(mem + SG_PAGE);

	memcpy(mem, old, torn ? sizeof(*old) / 2 : sizeof(*old));
	hot->grow = SG_SIZE_WORD(24 * MIB, 3);
}

static void finished_by_others(void)
{
	unsigned int torn, by;
	struct sg_super old;
	struct sg_probe p;
	struct tsys s, t;

	for (by = 0; by < 3; by++)
		for (torn = 0; torn < 2; torn++) {
			make(16 * MIB, 0);
			old = first_super();
			join(&s, ROOM, 1);
			join(&t, ROOM, 2);
			tsys_maintain(&t);
			grows(&s, 24 * MIB);
			tsys_rest(&t);
			unwritten(&old, torn);
			sg_probe(mem, ROOM, &p);
			CHECK(p.valid && !p.from_backup && p.sb.size == 24 * MIB);
			if (by == 0)			/* a live system completes the growth */
				sg_settle(&t.v);
			/* the next grower completes the growth, with any size */
			else if (by == 1)
				grows(&s, 24 * MIB);
			tsys_leave(&t);
			tsys_leave(&s);
			test_clean(mem, ROOM);
			/* case 2: the next mount completes the growth */
			if (by == 2) {
				unwritten(&old, torn);
				join(&s, ROOM, 1);
				tsys_leave(&s);
			}
			CHECK_EQ(first_super().size, 24 * MIB);
			CHECK(!memcmp(mem, mem + 24 * MIB - SG_PAGE, sizeof(struct sg_super)));
			test_clean(mem, ROOM);
		}
}

/* --- invalid words ---------------------------------------------------------------------------- */

static u64 found, fixed;

static void count(void *ctx, const char *what, u64 ino, u64 off, bool was_fixed)
{
	(void)ctx;
	(void)what;
	(void)ino;
	(void)off;
	found++;
	fixed += was_fixed;
}

static void repaired(u64 at_least)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_PREEN, .report = count };
	struct sg_check_result res;

	found = fixed = 0;
	CHECK_OK(sg_check(mem, ROOM, &opts, &res));
	CHECK(found >= at_least && found == fixed);
	test_clean(mem, ROOM);
}

static u64 seen_damage;

static void see_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	seen_damage++;
}

static void nonsense(void)
{
	const u64 sizes[] = { 1, SG_CHUNK, 14 * MIB, 16 * MIB + 8, 20 * MIB, ROOM, ~0ULL,
			      SG_VOLUME_MAX, 1ULL << 63 };
	struct sg_identity id = tsys_identity(1, 1);
	struct sg_hot *hot = (void *)(mem + SG_PAGE);
	unsigned int i;
	struct tsys s;

	for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
		make(16 * MIB, 0);
		hot->size = sizes[i];
		/* no superblock confirms the forged size */
		CHECK_OK(sg_open(&s.v, mem, ROOM, false, NULL));
		CHECK_EQ(sg_size(&s.v), 16 * MIB);
		repaired(1);
		CHECK_EQ(hot->size, 0);
		hot->size = sizes[i];
		seen_damage = 0;
		CHECK_OK(sg_open(&s.v, mem, ROOM, false, NULL));
		s.v.on_damage = see_damage;
		CHECK_OK(sg_join(&s.v, &id, 0, true));
		CHECK_EQ(sg_size(&s.v), 16 * MIB);
		CHECK_EQ(seen_damage, sizes[i] > 16 * MIB);
		sg_grow(&s.v, 18 * MIB, 0, why);
		sg_leave(&s.v);
	}
	for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
		make(16 * MIB, 0);
		hot->grow = SG_SIZE_WORD(sizes[i], 5) | 1;
		join(&s, ROOM, 1);
		CHECK_EQ(sg_size(&s.v), 16 * MIB);
		CHECK(sg_bound(&s.v) <= ROOM);
		hot->grow = sizes[i];
		sg_follow(&s.v);
		CHECK(sg_bound(&s.v) <= ROOM);
		grows(&s, 18 * MIB);
		hot->grow = sizes[i];
		tsys_leave(&s);
		repaired(0);
	}
}

/* The backup superblock of an older volume, or of another volume, is ignored. */
static void wrong_backup(void)
{
	struct sg_hot *hot = (void *)(mem + SG_PAGE);
	struct sg_super *sb = (void *)(mem + 20 * MIB - SG_PAGE);
	struct tsys s;

	make(20 * MIB, 16 * MIB * 16);
	CHECK_OK(sg_format(mem, 16 * MIB, &(struct sg_format_opts){ .phys = TEST_PHYS }, why));
	CHECK_EQ(sb->size, 20 * MIB);
	hot->size = 20 * MIB;
	hot->grow = SG_SIZE_WORD(20 * MIB, 1);
	CHECK_OK(sg_open(&s.v, mem, ROOM, false, NULL));
	CHECK_EQ(sg_size(&s.v), 16 * MIB);
}

/*
 * The volume has grown since it was opened, and the superblock at the new end differs in more than
 * the size. The volume has moved meanwhile, or a hostile member has stored that superblock.
 */
static void changed_since(void (*change)(struct sg_super *sb))
{
	struct sg_super *sb = (void *)(mem + 24 * MIB - SG_PAGE), was;
	struct sg_identity id = tsys_identity(2, 1);
	struct tsys a, b;

	make(16 * MIB, 0);
	join(&a, ROOM, 1);
	CHECK_OK(sg_open(&b.v, mem, ROOM, false, NULL));
	grows(&a, 24 * MIB);
	was = *sb;
	change(sb);
	sg_super_sign(sb);
	CHECK_EQ(sg_size_take(&b.v, 24 * MIB), -EAGAIN);
	CHECK_EQ(sg_join(&b.v, &id, 0, false), -EAGAIN);
	says(b.v.why, "its superblock has changed: try again");
	CHECK_EQ(sg_slots_taken(&a.v), 1);
	CHECK_EQ(b.v.sb.phys, TEST_PHYS);
	CHECK_EQ(sg_size(&b.v), 16 * MIB);
	*sb = was;
	strcpy(sb->label, "label");	/* the label may differ */
	sg_super_sign(sb);
	CHECK_OK(sg_join(&b.v, &id, 0, false));
	CHECK_EQ(sg_size(&b.v), 24 * MIB);
	sg_leave(&b.v);
	*sb = was;
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

static void change_base(struct sg_super *sb)
{
	sb->phys += SG_VOLUME_ALIGN;
}

static void change_features(struct sg_super *sb)
{
	sb->incompat ^= 1ULL << 40;
}

static void change_move(struct sg_super *sb)
{
	sb->move_to = sb->phys + SG_VOLUME_ALIGN;
}

static void change_seed(struct sg_super *sb)
{
	sb->hash_seed[1]++;
}

/*
 * A hostile member forges a superblock with the right checksum: the first one, or the backup. No
 * growth copies the forged superblock over the valid one.
 */
static void forged(void (*change)(struct sg_super *sb))
{
	struct sg_super *first = (void *)mem, *last = (void *)(mem + 24 * MIB - SG_PAGE), was;
	struct sg_hot *hot = (void *)(mem + SG_PAGE);
	struct tsys s;

	make(16 * MIB, 0);
	join(&s, ROOM, 1);
	s.v.on_damage = see_damage;
	was = *first;
	change(first);
	sg_super_sign(first);
	refused(&s, 20 * MIB, -EUCLEAN, "the superblock is damaged");
	*first = was;
	grows(&s, 24 * MIB);
	was = *last;
	change(last);
	sg_super_sign(last);
	hot->grow = SG_SIZE_WORD(24 * MIB, 3);	/* the first superblock is not written yet */
	seen_damage = 0;
	sg_settle(&s.v);
	CHECK_EQ(seen_damage, 1);
	CHECK(!memcmp(first, &was, sizeof(was)));
	*last = was;
	sg_settle(&s.v);
	CHECK_EQ(SG_SIZE_OF(hot->grow), 0);
	tsys_leave(&s);
	repaired(0);
}

/* Growth refuses a volume whose superblock is damaged. */
static void damaged_super(void)
{
	struct tsys s;

	make(16 * MIB, 0);
	join(&s, ROOM, 1);
	mem[100] ^= 1;
	refused(&s, 20 * MIB, -EUCLEAN, "the superblock is damaged");
	mem[100] ^= 1;
	grows(&s, 20 * MIB);
	tsys_leave(&s);
	/* the hot page locates the backup, which is not at the end of memory */
	mem[100] ^= 1;
	CHECK_OK(sg_open(&s.v, mem, ROOM, false, NULL));
	CHECK_EQ(sg_size(&s.v), 20 * MIB);
	repaired(1);
}

int main(void)
{
	tlog_catch();
	mem = test_map(ROOM);
	to_the_last_page();
	limits();
	made_anew();
	under_load(test_amount(8, 4, 2) * MIB);
	among_joiners(test_amount(8, 2, 2) * MIB);
	small_memory();
	silent();
	unnoticed();
	joins_between_two();
	joins_at_the_end();
	who_joins();
	recovered_by_who_comes();
	finished_by_others();
	nonsense();
	wrong_backup();
	changed_since(change_base);
	changed_since(change_features);
	changed_since(change_move);
	changed_since(change_seed);
	forged(change_base);
	forged(change_features);
	forged(change_move);
	forged(change_seed);
	damaged_super();
	return test_done();
}
