// SPDX-License-Identifier: Apache-2.0
/*
 * Reclaim while a paused system has a chunk locked: only deferred frees in that chunk wait
 * (docs/protocol.md, section 4). A system that is out of space immediately gets the other pages.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	(32ULL << 20)
#define SEC	1000000000ULL
#define SOON	(5 * SEC)	/* reclaim ends sooner than this, even on a busy machine */

static u64 lock_of(const struct sg_vol *v, u64 off)
{
	return sg_chunk_off(v, off >> SG_CHUNK_SHIFT) + offsetof(struct sg_chunk, lock);
}

static u64 page_of(const struct sg_vol *v, const struct sg_iref *f, u64 page)
{
	struct sg_run run;

	CHECK_OK(sg_walk(v, f, page, 1, &run));
	CHECK(run.off);
	return run.off;
}

/* Appends @pages pages, or as many as fit. Returns their number. */
static u64 append(struct sg_vol *v, const struct sg_iref *f, u64 pages)
{
	static u8 buf[SG_PAGE];
	struct sg_attr a;
	s64 n = SG_PAGE;
	u64 i;

	CHECK_OK(sg_getattr(v, f, &a));
	for (i = 0; i < pages; i++) {
		n = sg_write(v, f, a.size + i * SG_PAGE, buf, SG_PAGE, 1);
		if (n < 0)
			break;
	}
	CHECK(n == SG_PAGE || n == -ENOSPC);
	return i;
}

static void free_file(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	struct sg_iref f = test_lookup(v, dir, name);

	CHECK_OK(sg_unlink(v, dir, name, (u32)strlen(name), 1));
	CHECK_OK(sg_evict(v, &f));
}

/* --- every kind of deferred free, with each chunk locked in turn ------------------------------ */

#define APART	32		/* distance between free pages */
#define NAMES	300
#define BLOB	20000u
/* pages of an extended attribute, which are freed from the end, and wait together */
#define BLOB_PAGES	(2 + BLOB / SG_PAGE)
#define TABLES	8		/* pages that wait for a child page, or name a page that waits */

static struct tvol t;
static struct sg_iref dir, linked;

/* Leaves mostly single free pages, so that new files and tables have pages in many chunks. */
static void make_fragments(void)
{
	struct sg_iref all = test_create(&t.v, &t.root, "all", S_IFREG | 0600);
	u64 i, pages;

	for (i = 0; sg_free_pages(&t.v) > 100; i += SG_CHUNK_PAGES)
		if (sg_allocate(&t.v, &all, i,
				SG_MIN((u64)SG_CHUNK_PAGES, sg_free_pages(&t.v) - 80)))
			break;
	for (pages = i, i = 0; i < pages; i += APART)
		CHECK_OK(sg_punch(&t.v, &all, i * SG_PAGE, SG_PAGE, 1));
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
}

static void make_all_kinds(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	static char value[BLOB];
	char name[100];
	unsigned int i;

	CHECK_EQ(append(&t.v, &f, 100), 100);
	memset(value, 'v', sizeof(value));
	CHECK_OK(sg_xattr_set(&t.v, &f, SG_XATTR_USER, "x", 1, value, sizeof(value), 0, 1));
	memset(name, 'n', sizeof(name));
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%080u", i);
		CHECK_OK(sg_link(&t.v, &linked, &dir, name, 80, 1));
	}
	CHECK(sg_iget(&t.v, &dir, table) & SG_DIR_ENTRY_INDEX);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
}

/* Frees pages of each kind. The directory loses its index with all names, as at its removal. */
static void free_all_kinds(void)
{
	struct sg_tx *tx;

	free_file(&t.v, &t.root, "f");
	tx = sg_tx_begin(&t.v);
	sg_dir_drop(tx, &dir);
	sg_tx_iset(tx, &dir, entries, 0);
	sg_tx_iset(tx, &dir, size, 0);
	sg_tx_iset(tx, &linked, mode, 1ULL << 32 | S_IFREG | 0600);
	CHECK_OK(sg_tx_commit(tx));
}

static u64 free_in(u64 c)
{
	const struct sg_chunk *chunk = sg_at(&t.v, sg_chunk_off(&t.v, c));
	unsigned int i;
	u64 n = 0;

	for (i = 0; i < SG_CHUNK_PAGES; i++)
		n += !(chunk->map[i / 64] >> i % 64 & 1);
	return n;
}

/* Tests reclaim with chunk @c locked. Returns whether any free waited for that chunk. */
static bool chunk_locked(u64 c, u64 all_free)
{
	u64 lock = lock_of(&t.v, c << SG_CHUNK_SHIFT), room = free_in(c), start, left;

	make_all_kinds();
	free_all_kinds();
	CHECK(sg_trylock(&t.v, lock));
	test_within(60, "reclaim while a chunk is locked");
	start = sg_ticks();
	CHECK(sg_reclaim(&t.v, ~0u) >= 0);
	CHECK(sg_reclaim(&t.v, ~0u) >= 0);
	CHECK(sg_ticks() - start < SOON);
	test_within(0, NULL);
	left = all_free - sg_free_pages(&t.v);
	CHECK(left <= room + BLOB_PAGES + TABLES);
	CHECK_EQ(!left, !sg_ledger_reclaimable(&t.v));
	CHECK(!sg_ledger_reclaiming(&t.v));
	sg_unlock(&t.v, lock);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_EQ(sg_free_pages(&t.v), all_free);
	return left;
}

static void each_chunk(void)
{
	unsigned int waited = 0;
	u64 c, all_free;

	tvol_make(&t, SIZE);
	dir = test_create(&t.v, &t.root, "dir", S_IFDIR | 0700);
	linked = test_create(&t.v, &t.root, "linked", S_IFREG | 0600);
	make_fragments();
	make_all_kinds();
	free_all_kinds();
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	all_free = sg_free_pages(&t.v);
	for (c = 0; c < sg_chunks(&t.v); c++)
		waited += chunk_locked(c, all_free);
	CHECK(waited > 3);
	tvol_drop(&t);
}

/* --- transactions while another system is paused ---------------------------------------------- */

static struct tsys s[2];
static u8 *mem;

static void join_both(void)
{
	unsigned int i;

	mem = tsys_volume(SIZE);
	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		s[i].v.maintained = true;	/* only sg_maintain() acknowledges */
	}
}

static void leave_both(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		s[i].v.maintained = false;
	for (i = 0; i < 2; i++)
		sg_leave(&s[i].v);
	test_clean(mem, SIZE);
}

/* Makes all present deferred frees old enough to be reclaimed. */
static void pass_epochs(void)
{
	unsigned int turn, i;

	for (turn = 0; turn < 3; turn++) {
		sg_epoch_push(&s[0].v);
		for (i = 0; i < 2; i++)
			CHECK(sg_maintain(&s[i].v) >= 0);
	}
}

#define RUNS	150		/* deferred frees in one chunk */
#define BEGUN	1000		/* number of transactions */

/* Runs transactions. Returns how many ended meanwhile, reclaim's transactions included. */
static u64 begin_many(void)
{
	struct sg_counters before = sg_counters(&s[0].v), now;
	unsigned int i;

	for (i = 0; i < BEGUN; i++)
		sg_tx_abort(sg_tx_begin(&s[0].v));
	now = sg_counters(&s[0].v);
	return now.commits + now.aborts - before.commits - before.aborts;
}

/*
 * A transaction skips entries that cannot be reclaimed. After the chunk's lock is released, one of
 * the next transactions reclaims them.
 */
static void each_transaction(void)
{
	struct sg_iref f;
	u64 lock, i;

	join_both();
	f = test_create(&s[0].v, &s[0].root, "f", S_IFREG | 0600);
	CHECK_EQ(append(&s[0].v, &f, 2 * RUNS), 2 * RUNS);
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	lock = lock_of(&s[0].v, page_of(&s[0].v, &f, 1));
	CHECK(sg_trylock(&s[1].v, lock));
	for (i = 1; i < 2 * RUNS; i += 2)
		CHECK_OK(sg_punch(&s[0].v, &f, i * SG_PAGE, SG_PAGE, 1));
	pass_epochs();
	CHECK_EQ(sg_ledger_reclaimable(&s[0].v), RUNS);
	i = begin_many();
	test_note("%" PRIu64 " transactions instead of %u", i, BEGUN);
	CHECK(i < BEGUN + 3 * RUNS);
	CHECK_EQ(sg_ledger_reclaimable(&s[0].v), RUNS);
	sg_unlock(&s[1].v, lock);
	begin_many();
	CHECK(sg_ledger_reclaimable(&s[0].v) < 64);
	leave_both();
}

/* --- out of space while another system is paused ---------------------------------------------- */

#define LARGE	1200		/* number of pages, in more than two chunks */

/*
 * Both systems die after a reclaim that has skipped a chunk. The next system reclaims the frees
 * that have waited in that chunk. Returns the number of free pages after that.
 */
static u64 both_die(void)
{
	u8 *copy = test_map(SIZE);
	struct tsys c;
	unsigned int i;
	u64 free;

	memcpy(copy, mem, SIZE);
	tsys_join(&c, copy, SIZE, 3);
	for (i = 0; i < 2; i++) {
		CHECK_OK(sg_fence_slot(&c.v, (unsigned int)s[i].v.slot, s[i].v.incarnation));
		CHECK(sg_recover_slot(&c.v, (unsigned int)s[i].v.slot));
	}
	sg_settle(&c.v);
	CHECK_EQ(sg_reclaim(&c.v, ~0u), 0);
	free = sg_free_pages(&c.v);
	tsys_leave(&c);
	test_clean(copy, SIZE);
	test_unmap(copy, SIZE);
	return free;
}

static void out_of_space(void)
{
	struct sg_iref small, large, f;
	u64 lock, start, in_chunk, i, blocks, before, then;

	join_both();
	large = test_create(&s[0].v, &s[0].root, "large", S_IFREG | 0600);
	small = test_create(&s[0].v, &s[0].root, "small", S_IFREG | 0600);
	f = test_create(&s[0].v, &s[0].root, "found", S_IFREG | 0600);
	CHECK_EQ(append(&s[0].v, &large, LARGE / 2), LARGE / 2);
	CHECK_EQ(append(&s[0].v, &small, 1), 1);
	CHECK_EQ(append(&s[0].v, &large, LARGE / 2), LARGE / 2);
	append(&s[0].v, &f, ~0ULL);
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);	/* tables that were replaced by large leaves */
	before = sg_free_pages(&s[0].v);
	lock = lock_of(&s[0].v, page_of(&s[0].v, &large, 0));
	in_chunk = lock_of(&s[0].v, page_of(&s[0].v, &small, 0)) == lock;
	for (i = 0; i < LARGE; i++)
		in_chunk += lock_of(&s[0].v, page_of(&s[0].v, &large, i)) == lock;
	CHECK(in_chunk > 1 && in_chunk < LARGE / 2);
	blocks = sg_iget(&s[0].v, &large, blocks) + 1;
	free_file(&s[0].v, &s[0].root, "large");
	free_file(&s[0].v, &s[0].root, "small");
	pass_epochs();

	/* this system is paused, and does not acknowledge */
	CHECK(sg_trylock(&s[1].v, lock));
	test_within(60, "writes while another system is paused");
	start = sg_ticks();
	CHECK_EQ(append(&s[0].v, &f, 100), 100);
	CHECK(sg_ticks() - start < SOON);
	CHECK(sg_ledger_reclaimable(&s[0].v));
	/*
	 * all pages except those of the locked chunk; these may be tables, and the file gets tables
	 * as well
	 */
	i = append(&s[0].v, &f, ~0ULL) + 100;
	test_note("%" PRIu64 " of %" PRIu64 " pages written; %" PRIu64 " pages are in the locked chunk", i,
		  blocks, in_chunk);
	CHECK(i + TABLES >= LARGE - in_chunk && i <= before + blocks - in_chunk);
	CHECK(sg_ledger_reclaimable(&s[0].v));
	test_within(0, NULL);

	then = both_die();
	sg_unlock(&s[1].v, lock);
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	CHECK_EQ(sg_free_pages(&s[0].v), then);
	CHECK(append(&s[0].v, &f, in_chunk - 2) == in_chunk - 2);
	free_file(&s[0].v, &s[0].root, "found");
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	leave_both();
}

/* --- a cut while a chunk is locked, with a full ledger ---------------------------------------- */

/* number of runs, more than the first page of the ledger has room for */
#define CUTS	600u
#define ROOM	13		/* a cut begins only with at least this room in the ledger */
#define HELD	(2 * SEC)	/* time until the release, longer than any wait of an allocation */

static u64 locked, released_at;

static void *release_later(void *arg)
{
	(void)arg;
	while (sg_ledger_room(&s[0].v) > ROOM)
		sg_sleep_us(1000);
	sg_sleep_us(HELD / 1000);
	sg_store64(&released_at, sg_ticks());
	sg_unlock(&s[1].v, locked);
	return NULL;
}

/* Fills the volume, and frees one page of @f. Returns the lock of that page's chunk. */
static u64 leave_one_page(const struct sg_iref *f)
{
	struct sg_iref all = test_create(&s[0].v, &s[0].root, "all", S_IFREG | 0600);
	u64 lock;

	append(&s[0].v, &all, ~0ULL);
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	append(&s[0].v, &all, ~0ULL);
	CHECK_EQ(sg_free_pages(&s[0].v), 0);
	lock = lock_of(&s[0].v, page_of(&s[0].v, f, 7));
	CHECK_OK(sg_punch(&s[0].v, f, 7 * SG_PAGE, SG_PAGE, 1));
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	CHECK_EQ(sg_free_pages(&s[0].v), 1);
	return lock;
}

/*
 * s[1] is paused while it has the chunk's lock, and acknowledges no epoch. The ledger of s[0]
 * becomes full, and cannot grow. A cut (truncation or punched hole) needs no free page, so it must
 * not fail because none is free. It waits for the lock instead.
 */
static void cut_beside(void)
{
	struct sg_iref f, g, large;
	pthread_t thread;
	unsigned int i;
	u64 start;

	join_both();
	s[0].v.space_wait_ms = 50;
	large = test_create(&s[0].v, &s[0].root, "large", S_IFREG | 0600);
	CHECK_EQ(append(&s[0].v, &large, 2 * SG_CHUNK_PAGES), 2 * SG_CHUNK_PAGES);
	f = test_create(&s[0].v, &s[0].root, "cut", S_IFREG | 0600);
	g = test_create(&s[0].v, &s[0].root, "dropped", S_IFREG | 0600);
	for (i = 0; i < CUTS; i++)	/* leaves holes, so that no leaf is large */
		CHECK_OK(sg_allocate(&s[0].v, &f, 2 * i + 1, 1));
	CHECK_EQ(append(&s[0].v, &g, 10), 10);
	locked = leave_one_page(&g);
	CHECK(sg_trylock(&s[1].v, locked));
	CHECK(!pthread_create(&thread, NULL, release_later, NULL));
	test_within(60, "a cut while a chunk is locked");
	/* the cut zeroes pages of a large leaf that it cannot split */
	start = sg_ticks();
	CHECK_OK(sg_resize(&s[0].v, &large, SG_PAGE, 1));
	CHECK_EQ(page_of(&s[0].v, &large, 3), page_of(&s[0].v, &large, 0) + 3 * SG_PAGE);
	CHECK(sg_ticks() - start < SEC);
	for (i = 0; i < CUTS; i++)
		CHECK_OK(sg_punch(&s[0].v, &f, (2 * i + 1) * SG_PAGE, SG_PAGE, 1));
	CHECK(sg_load64(&released_at));		/* the cut waited for the lock */
	CHECK_OK(sg_resize(&s[0].v, &g, 0, 1));
	CHECK_OK(sg_resize(&s[0].v, &f, 0, 1));
	test_within(0, NULL);
	CHECK(!pthread_join(thread, NULL));
	free_file(&s[0].v, &s[0].root, "cut");
	free_file(&s[0].v, &s[0].root, "dropped");
	free_file(&s[0].v, &s[0].root, "all");
	free_file(&s[0].v, &s[0].root, "large");
	pass_epochs();
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	leave_both();
}

int main(void)
{
	cut_beside();
	each_chunk();
	each_transaction();
	out_of_space();
	return test_done();
}
