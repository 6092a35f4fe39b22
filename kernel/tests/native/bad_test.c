// SPDX-License-Identifier: Apache-2.0
/*
 * Bad memory (docs/bad-memory.md). The test makes a page inaccessible before it reports the page as
 * bad. A load or store there then ends the program with a signal. So each check below also proves
 * that the engine does not access the page.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include "data_util.h"

static unsigned int damages;

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

static void damaged(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	damages++;
}

static void break_page(struct sg_vol *vol, u64 off)
{
	CHECK_OK(mprotect(vol->base + off, SG_PAGE, PROT_NONE));
	CHECK_EQ(sg_bad_add(vol, off + 100, 1), 1);
}

static void mend_page(struct sg_vol *vol, u64 off)
{
	CHECK_OK(mprotect(vol->base + off, SG_PAGE, PROT_READ | PROT_WRITE));
	CHECK_EQ(sg_bad_remove(vol, off, SG_PAGE), 1);
}

static struct sg_iref file_named(struct tvol *t, const char *name, u64 pages)
{
	struct sg_iref f = test_create(&t->v, &t->root, name, SG_S_IFREG | 0644);
	u8 buf[SG_PAGE];
	u64 i;

	for (i = 0; i < pages; i++) {
		memset(buf, (int)(i + 1), sizeof(buf));
		CHECK_EQ(sg_write(&t->v, &f, i * SG_PAGE, buf, SG_PAGE, 1), SG_PAGE);
	}
	return f;
}

static u64 place_of(struct tvol *t, const struct sg_iref *f, u64 page)
{
	struct sg_run run;

	CHECK_OK(sg_walk(&t->v, f, page, 1, &run));
	CHECK(run.off);
	return run.off;
}

/* --- the list --------------------------------------------------------------------------------- */

static void test_list(void)
{
	struct tvol t;
	u64 page, pages, i;

	tvol_make(&t, TEST_SMALL);
	CHECK(!sg_has_bad(&t.v));
	CHECK_EQ(sg_bad_add(&t.v, t.size, 1), -EINVAL);
	CHECK_EQ(sg_bad_add(&t.v, t.size - 1, 2), -EINVAL);
	CHECK_EQ(sg_bad_add(&t.v, 0, 0), -EINVAL);
	CHECK_EQ(sg_bad_add(&t.v, 3000 * SG_PAGE, 2 * SG_PAGE), 1);
	CHECK_EQ(sg_bad_add(&t.v, 3001 * SG_PAGE + 5, 1), 0);
	/* a second extent directly behind the first */
	CHECK_EQ(sg_bad_add(&t.v, 3001 * SG_PAGE + 5, SG_PAGE), 1);
	CHECK(sg_bad_entry(&t.v, 0, &page, &pages));
	CHECK_EQ(page, 3000);
	CHECK_EQ(pages, 3);
	CHECK(!sg_bad_entry(&t.v, 1, &page, &pages));
	CHECK_EQ(sg_good_pages(&t.v, 2990 * SG_PAGE, 100), 10);
	CHECK_EQ(sg_good_pages(&t.v, 3001 * SG_PAGE, 100), 0);
	CHECK_EQ(sg_good_pages(&t.v, 3003 * SG_PAGE, 100), 100);

	/* removing a page in the middle leaves two extents */
	CHECK_EQ(sg_bad_remove(&t.v, 3001 * SG_PAGE, 1), 1);
	CHECK_EQ(sg_bad_pages(&t.v), 2);
	CHECK(!sg_is_bad(&t.v, 3001 * SG_PAGE, 1));
	CHECK(sg_is_bad(&t.v, 3000 * SG_PAGE, 1) && sg_is_bad(&t.v, 3002 * SG_PAGE, 1));
	CHECK_EQ(sg_bad_remove(&t.v, 3001 * SG_PAGE, 1), 0);
	CHECK_EQ(sg_bad_remove(&t.v, 0, t.size), 1);
	CHECK_EQ(sg_bad_pages(&t.v), 0);

	for (i = 0; i < SG_BAD_MAX; i++)
		CHECK_EQ(sg_bad_add(&t.v, (2000 + 2 * i) * SG_PAGE, 1), 1);
	CHECK_EQ(sg_bad_add(&t.v, 3500 * SG_PAGE, 1), -ENOSPC);
	CHECK_EQ(sg_bad_add(&t.v, 2001 * SG_PAGE, 1), 1);	/* next to a known bad page */
	CHECK_EQ(sg_bad_pages(&t.v), SG_BAD_MAX + 1);
	test_clean(t.mem, t.size);
	CHECK_EQ(sg_bad_remove(&t.v, 0, t.size), 1);
	tvol_drop(&t);
	printf("ok the list\n");
}

/* Other members may have stored anything in the list (D10). */
static void test_hostile_list(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_check_result res;
	struct sg_iref f;
	struct tvol t;
	u8 buf[SG_PAGE];
	u64 i, n;

	tvol_make(&t, TEST_SMALL);
	f = file_named(&t, "f", 4);
	for (n = 0; n < test_amount(200, 2000, 20000); n++) {
		u64 *hot = (u64 *)(t.mem + SG_HOT(bads));

		for (i = 0; i <= SG_BAD_MAX; i++)
			hot[i] = rng_next(&rng) >> rnd(64);
		sg_read(&t.v, &f, 0, buf, SG_PAGE);
		sg_write(&t.v, &f, rnd(100) * SG_PAGE, buf, 1, 1);
		CHECK(sg_bad_pages(&t.v) <= t.size / SG_PAGE);
	}
	sg_abandon(&t.v);
	for (i = 0; i <= SG_BAD_MAX; i++)
		((u64 *)(t.mem + SG_HOT(bads)))[i] = i < 2 ? ~0ULL : i * 0x1111111111ULL;
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK(res.found >= SG_BAD_MAX && res.found == res.fixed);
	test_clean(t.mem, t.size);
	test_unmap(t.mem, t.size);
	printf("ok a hostile list\n");
}

/* --- data ------------------------------------------------------------------------------------- */

static void test_data(void)
{
	struct sg_statfs before, after;
	u8 buf[6 * SG_PAGE];
	struct sg_iref f, g;
	struct tvol t;
	u64 off, i;

	tvol_make(&t, TEST_SMALL);
	f = file_named(&t, "f", 6);
	off = place_of(&t, &f, 3);
	break_page(&t.v, off);

	/* the read ends before the bad page */
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, sizeof(buf)), 3 * SG_PAGE);
	CHECK_EQ(buf[2 * SG_PAGE], 3);
	CHECK_EQ(sg_read(&t.v, &f, 3 * SG_PAGE, buf, 1), -EIO);
	CHECK_EQ(sg_read(&t.v, &f, 4 * SG_PAGE, buf, sizeof(buf)), 2 * SG_PAGE);
	CHECK_EQ(buf[0], 5);
	CHECK_EQ(sg_write(&t.v, &f, 3 * SG_PAGE, buf, SG_PAGE, 2), -EIO);
	CHECK_EQ(sg_write(&t.v, &f, 2 * SG_PAGE, buf, 3 * SG_PAGE, 2), SG_PAGE);
	CHECK_EQ(sg_write(&t.v, &f, 4 * SG_PAGE, buf, SG_PAGE, 2), SG_PAGE);
	/* a bad page counts as data, not as a hole */
	CHECK_EQ(sg_seek(&t.v, &f, 0, true), 6 * SG_PAGE);
	CHECK_OK(sg_allocate(&t.v, &f, 0, 6));
	CHECK_OK(sg_flush(&t.v, &f, 0, 6));
	/* truncation cannot zero the rest of the bad page, but succeeds */
	CHECK_OK(sg_resize(&t.v, &f, 3 * SG_PAGE + 10, 2));
	CHECK_OK(sg_resize(&t.v, &f, 6 * SG_PAGE, 2));
	CHECK_EQ(sg_read(&t.v, &f, 3 * SG_PAGE, buf, SG_PAGE), -EIO);
	tvol_recheck(&t);		/* the file keeps the page; fsck finds nothing wrong */
	CHECK_EQ(sg_read(&t.v, &f, 3 * SG_PAGE, buf, SG_PAGE), -EIO);

	/* a punched hole there lets a later write allocate a good page */
	CHECK_OK(sg_punch(&t.v, &f, 3 * SG_PAGE, SG_PAGE, 3));
	CHECK_EQ(sg_write(&t.v, &f, 3 * SG_PAGE, buf, SG_PAGE, 3), SG_PAGE);
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, sizeof(buf)), sizeof(buf));
	CHECK(place_of(&t, &f, 3) != off);

	/* no other file gets the bad page, even when all other pages are in use */
	CHECK_OK(sg_unlink(&t.v, &t.root, "f", 1, 4));
	sg_evict(&t.v, &f);
	g = test_create(&t.v, &t.root, "g", SG_S_IFREG | 0644);
	CHECK_OK(sg_statfs(&t.v, &before));
	for (i = 0; sg_write(&t.v, &g, i * SG_PAGE, buf, SG_PAGE, 4) == SG_PAGE; i++)
		CHECK(place_of(&t, &g, i) != off);
	CHECK_OK(sg_statfs(&t.v, &after));
	CHECK_EQ(after.free_pages, 0);
	CHECK(i > before.free_pages - 10);
	CHECK_EQ(sg_largest_free(&t.v), 0);

	mend_page(&t.v, off);	/* the last free page is good again, and can be allocated */
	CHECK_EQ(sg_write(&t.v, &g, i * SG_PAGE, buf, SG_PAGE, 4), SG_PAGE);
	CHECK_EQ(place_of(&t, &g, i), off);
	tvol_drop(&t);
	printf("ok data\n");
}

/*
 * Another member removes an entry that this system has added. The system keeps its own copy until
 * the page is reported as good.
 */
static void test_own(void)
{
	struct sg_iref f;
	struct tvol t;
	u8 buf[1];
	u64 off;

	tvol_make(&t, TEST_SMALL);
	f = file_named(&t, "f", 2);
	off = place_of(&t, &f, 1);
	break_page(&t.v, off);
	sg_store64(sg_at(&t.v, SG_HOT(bad)), 0);
	sg_store64(sg_at(&t.v, SG_HOT(bads)), 0);
	CHECK_EQ(sg_read(&t.v, &f, SG_PAGE, buf, 1), -EIO);
	/* the system finds the bad page again, and adds it to the list again */
	CHECK_EQ(sg_bad_add(&t.v, off, 1), 1);
	mend_page(&t.v, off);
	CHECK_EQ(sg_read(&t.v, &f, SG_PAGE, buf, 1), 1);
	tvol_drop(&t);
	printf("ok a system's own copy of an entry\n");
}

/* While any page is bad, a reader that loads v.bads during changes of the list finds an entry. */
static void test_between(void)
{
	struct sg_vol other;
	struct tvol t;
	const u64 *where;
	unsigned int i;

	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_open(&other, t.mem, t.size, false, NULL));
	CHECK_EQ(sg_bad_add(&other, 2000 * SG_PAGE, 1), 1);
	for (i = 0; i < 3 * SG_BAD_MAX; i++) {
		CHECK_EQ(sg_bad_add(&t.v, (3000 + 2 * i % 7) * SG_PAGE, 1), 1);
		where = t.v.bads;
		CHECK_EQ(sg_bad_remove(&t.v, (3000 + 2 * i % 7) * SG_PAGE, 1), 1);
		CHECK(*where && sg_has_bad(&t.v));
		CHECK(!sg_is_bad(&t.v, (3000 + 2 * i % 7) * SG_PAGE, 1));
		CHECK(sg_is_bad(&t.v, 2000 * SG_PAGE, 1));
	}
	CHECK_EQ(sg_bad_add(&t.v, 3000 * SG_PAGE, 1), 1);	/* the list has room */
	sg_store64(sg_at(&t.v, SG_HOT(bads)), 0);
	CHECK(sg_is_bad(&t.v, 3000 * SG_PAGE, 1));
	sg_abandon(&t.v);
	test_unmap(t.mem, t.size);
	printf("ok a reader beside changes of the list\n");
}

/* Tests one bad page in a large leaf of 2 MiB. */
static void test_large(void)
{
	struct sg_iref f;
	struct sg_run run;
	struct tvol t;
	u64 off;

	tvol_make(&t, 64 << 20);
	f = test_create(&t.v, &t.root, "f", SG_S_IFREG | 0644);
	CHECK_OK(sg_allocate(&t.v, &f, 0, 4 * SG_CHUNK_PAGES));
	CHECK_OK(sg_walk(&t.v, &f, SG_CHUNK_PAGES, SG_CHUNK_PAGES, &run));
	CHECK_EQ(run.level, 2);
	off = run.off + 100 * SG_PAGE;
	break_page(&t.v, off);
	CHECK_OK(sg_walk(&t.v, &f, SG_CHUNK_PAGES, SG_CHUNK_PAGES, &run));
	CHECK_EQ(run.pages, 100);
	CHECK_EQ(sg_walk(&t.v, &f, SG_CHUNK_PAGES + 100, 1, &run), -EIO);
	CHECK_OK(sg_walk_bad(&t.v, &f, SG_CHUNK_PAGES, SG_CHUNK_PAGES, &run));
	CHECK_EQ(run.pages, SG_CHUNK_PAGES);
	CHECK_OK(sg_punch(&t.v, &f, (SG_CHUNK_PAGES + 100) * SG_PAGE, SG_PAGE, 1));
	tvol_recheck(&t);
	CHECK_OK(sg_unlink(&t.v, &t.root, "f", 1, 2));
	sg_evict(&t.v, &f);
	/* the new file gets no leaf of 2 MiB that would include the bad page */
	f = test_create(&t.v, &t.root, "g", SG_S_IFREG | 0644);
	while (!sg_allocate(&t.v, &f, sg_pages_of(sg_iget(&t.v, &f, blocks)) + rnd(1u << 20), 512))
		;
	mend_page(&t.v, off);
	tvol_drop(&t);
	printf("ok large pages\n");
}

/* --- tables and other metadata of a file ------------------------------------------------------ */

/* A bad page is a table of a file: only the data below that table is inaccessible. */
static void test_table(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_check_result res;
	struct sg_iref f, g;
	struct tvol t;
	u8 buf[SG_PAGE] = {};
	u64 table;

	tvol_make(&t, 64 << 20);
	t.v.on_damage = damaged;
	f = file_named(&t, "f", 3);
	g = file_named(&t, "g", 3);
	/* adds a second table of level 1 */
	CHECK_EQ(sg_write(&t.v, &f, 5 * SG_CHUNK, buf, 1, 1), 1);
	table = (sg_get(&t.v, (sg_root(&t.v, &f) & SG_PTE_ADDR) - TEST_PHYS) & SG_PTE_ADDR) -
		TEST_PHYS;
	break_page(&t.v, table);
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, 1), -EIO);
	CHECK_EQ(sg_write(&t.v, &f, 0, buf, 1, 1), -EIO);
	CHECK_EQ(sg_write(&t.v, &f, 100 * SG_PAGE, buf, 1, 1), -EIO);
	CHECK_EQ(sg_punch(&t.v, &f, SG_PAGE, SG_PAGE, 1), -EIO);
	CHECK_EQ(sg_read(&t.v, &f, 5 * SG_CHUNK, buf, 1), 1);
	CHECK_EQ(sg_read(&t.v, &g, 0, buf, 1), 1);
	CHECK_EQ(damages, 0);		/* the mount continues */

	CHECK_OK(sg_unlink(&t.v, &t.root, "f", 1, 2));	/* the file can be removed */
	CHECK_OK(sg_evict(&t.v, &f));
	sg_reclaim(&t.v, ~0u);
	CHECK_EQ(damages, 0);
	tvol_leave(&t);
	/* fsck finds, and frees, the pages that only the lost table named */
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK(res.found && res.found == res.fixed);
	tvol_join(&t);
	mend_page(&t.v, table);
	tvol_drop(&t);
	printf("ok file tables\n");
}

static void test_fsck(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_iref f, d, other = {};
	struct sg_check_result res;
	struct tvol t;
	char name[8];
	u64 bucket, records, i;
	u8 buf[4];

	tvol_make(&t, 64 << 20);
	t.v.on_damage = damaged;
	d = test_create(&t.v, &t.root, "dir", SG_S_IFDIR | 0755);
	for (i = 0; i < 100; i++) {
		sg_snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		other = test_create(&t.v, &t.root, name, SG_S_IFREG | 0644);
	}
	other = test_lookup(&t.v, &t.root, "f50");
	f = test_create(&t.v, &d, "lost", SG_S_IFREG | 0644);
	CHECK_EQ(sg_write(&t.v, &f, 0, "abcd", 4, 1), 4);
	bucket = sg_iget(&t.v, &d, table) & ~SG_DIR_ENTRY_KIND;
	records = other.off & ~(SG_PAGE - 1);
	CHECK(records != (f.off & ~(SG_PAGE - 1)) && records != (d.off & ~(SG_PAGE - 1)));
	break_page(&t.v, bucket);
	break_page(&t.v, records);

	CHECK(sg_lookup(&t.v, &d, "lost", 4, &other, NULL));
	CHECK_EQ(sg_iref(&t.v, other.ino, &other), -EIO);
	CHECK_EQ(sg_lock(&t.v, records), -EIO);
	tvol_leave(&t);
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK(res.found && res.found == res.fixed);
	test_clean(t.mem, t.size);
	CHECK_OK(mprotect(t.mem + bucket, SG_PAGE, PROT_READ | PROT_WRITE));
	CHECK_OK(mprotect(t.mem + records, SG_PAGE, PROT_READ | PROT_WRITE));
	tvol_join(&t);
	d = test_lookup(&t.v, &t.root, "dir");
	CHECK_EQ(sg_lookup(&t.v, &d, "lost", 4, &f, NULL), -ENOENT);
	/* the file is named by its number, and has its contents */
	d = test_lookup(&t.v, &t.root, "lost+found");
	sg_snprintf(name, sizeof(name), "#%u", (unsigned int)f.ino);
	f = test_lookup(&t.v, &d, name);
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, 4), 4);
	CHECK(!memcmp(buf, "abcd", 4));
	tvol_drop(&t);
	printf("ok fsck\n");
}

/* --- pages that the complete volume needs ----------------------------------------------------- */

static unsigned int deaths, told;

static void on_death(struct sg_vol *vol)
{
	(void)vol;
	deaths++;
}

static void on_bad(struct sg_vol *vol)
{
	(void)vol;
	told++;
}

/* Calls queries and operations of a stopped system: none of them accesses the bad page. */
static void nothing_is_looked_at(struct sg_vol *vol)
{
	static const u8 machine[16] = { 1, 2, 3 };
	char why[200];
	struct sg_slot slot;
	struct sg_health h;
	struct sg_statfs s;
	struct sg_iref ref;
	unsigned int i;

	CHECK(sg_has_stopped(vol));
	for (i = 0; i < SG_SLOTS; i++)
		CHECK(!sg_slot_read(vol, i, &slot) || !slot.state);
	CHECK_EQ(sg_fence_machine(vol, machine), 0);
	sg_guard(vol, machine);
	CHECK_EQ(sg_fence_slot(vol, 5, 1), -EIO);
	CHECK_EQ(sg_fence_lapsed(vol, 5, 1), -EIO);
	CHECK_EQ(sg_size_now(vol), sg_size(vol));
	CHECK_EQ(sg_grow_limit(vol), sg_size(vol));
	CHECK_EQ(sg_grow_ask(vol, 2 * sg_size(vol), why), -EIO);
	CHECK(sg_grow(vol, 2 * sg_size(vol), 1, why));
	CHECK(sg_freeze(vol, 10, why));
	CHECK(sg_thaw(vol));
	sg_freeze_watch(vol);
	sg_settle(vol);
	CHECK(sg_maintain(vol) == -EIO || vol->slot < 0);
	CHECK_EQ(sg_statfs(vol, &s), -EIO);
	CHECK_EQ(sg_largest_free(vol), 0);
	sg_health(vol, &h);
	sg_iref(vol, SG_INO_ROOT, &ref);
	sg_epoch_wait(vol, 1);
}

/* A mount without a slot also stops, although it cannot report the bad page to other systems. */
static void test_looking_on(u64 off)
{
	struct sg_vol *b = calloc(1, sizeof(*b));
	struct sg_iref ref;
	struct sg_health h;
	struct tvol t;

	tvol_make(&t, TEST_SMALL);
	file_named(&t, "f", 1);
	tvol_leave(&t);
	CHECK_OK(sg_open(b, t.mem, t.size, true, NULL));
	deaths = 0;
	b->on_death = on_death;
	CHECK_OK(sg_health(b, &h));
	CHECK_OK(mprotect(t.mem + off, SG_PAGE, PROT_NONE));
	CHECK_EQ(sg_bad_add(b, off, 1), -EROFS);
	CHECK_EQ(deaths, 1);
	/* the word by which callers detect the stop (sgfs_alive()) */
	CHECK(b->state && *b->state != b->alive);
	nothing_is_looked_at(b);
	if (off == SG_HOT_OFF) {
		CHECK_EQ(sg_iref(b, SG_INO_ROOT, &ref), -EIO);
		CHECK_EQ(sg_health(b, &h), -EIO);
	}
	CHECK_OK(mprotect(t.mem + off, SG_PAGE, PROT_READ | PROT_WRITE));
	tvol_join(&t);
	tvol_drop(&t);
	free(b);
	printf("ok a mount without a slot\n");
}

static struct sg_vol *late;
static u64 late_lock;
static int late_err;

/* Waits for another system's lock. The lock's page becomes bad meanwhile. */
static void *wait_late(void *arg)
{
	(void)arg;
	late_err = sg_lock(late, late_lock);
	return NULL;
}

static void waits_until_bad(u64 lock)
{
	struct sg_vol *b = calloc(1, sizeof(*b));
	pthread_t thread;
	struct tvol t;
	u64 page;

	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_open(b, t.mem, t.size, false, NULL));
	CHECK_OK(sg_join(b, &test_identity, 0, false));
	late_lock = lock ?: test_create(&t.v, &t.root, "f", SG_S_IFREG | 0644).off;
	page = late_lock & ~(SG_PAGE - 1);
	late = &t.v;
	CHECK(sg_trylock(b, late_lock));
	CHECK_OK(pthread_create(&thread, NULL, wait_late, NULL));
	while (!sg_load64(&t.v.stuck))
		sg_sleep_us(1000);
	/* first reported, then inaccessible: any later access ends the program */
	CHECK_EQ(sg_bad_add(&t.v, page, 1), 1);
	sg_sleep_us(20000);
	CHECK_OK(mprotect(t.mem + page, SG_PAGE, PROT_NONE));
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_EQ(late_err, -EIO);
	CHECK_EQ(sg_load64(&t.v.stuck), 0);
	if (lock)
		nothing_is_looked_at(&t.v);
	sg_abandon(&t.v);
	sg_abandon(b);
	CHECK_OK(mprotect(t.mem + page, SG_PAGE, PROT_READ | PROT_WRITE));
	test_unmap(t.mem, t.size);
	free(b);
}

static void test_waiting(void)
{
	waits_until_bad(0);
	waits_until_bad(SG_HOT(grow_lock));
	printf("ok a wait for a lock whose page becomes bad\n");
}

/* The list is full: the system still keeps in its own memory each bad page that it finds. */
static void test_full_list(void)
{
	struct tvol t;
	u64 i;

	tvol_make(&t, TEST_SMALL);
	for (i = 0; i < SG_BAD_MAX; i++)
		CHECK_EQ(sg_bad_add(&t.v, (2000 + 2 * i) * SG_PAGE, 1), 1);
	deaths = 0;
	t.v.on_death = on_death;
	CHECK_EQ(sg_bad_remove(&t.v, 2000 * SG_PAGE, 2 * SG_BAD_MAX * SG_PAGE), 1);
	for (i = 0; i < SG_BAD_MAX; i++)	/* another system has filled the list */
		sg_store64(sg_at(&t.v, SG_HOT(bad) + i * 8), SG_BAD(2000 + 2 * i, 1));
	sg_store64(sg_at(&t.v, SG_HOT(bads)), SG_BADS(SG_BAD_MAX, 0));
	CHECK_EQ(deaths, 0);
	CHECK_EQ(sg_bad_add(&t.v, sg_area_off(&t.v, 7, 0), 1), -ENOSPC);
	CHECK_EQ(deaths, 1);
	nothing_is_looked_at(&t.v);
	sg_abandon(&t.v);
	test_unmap(t.mem, t.size);
	printf("ok a full list\n");
}

/*
 * One system finds a bad page, and the other one reads that in the list. Both stop, and neither
 * accesses the page again.
 */
static void test_vital(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_vol *b = calloc(1, sizeof(*b));
	struct sg_check_result res;
	struct sg_iref f;
	struct tvol t;
	u8 buf[8];
	u64 off;

	tvol_make(&t, TEST_SMALL);
	f = file_named(&t, "f", 1);
	CHECK_OK(sg_open(b, t.mem, t.size, false, NULL));
	CHECK_OK(sg_join(b, &test_identity, 0, false));
	t.v.on_death = b->on_death = on_death;
	t.v.on_bad = b->on_bad = on_bad;

	off = place_of(&t, &f, 0);	/* a bad page of data stops no system */
	break_page(&t.v, off);
	CHECK(sg_maintain(b) > 0 && sg_maintain(&t.v) > 0);
	CHECK_EQ(told, 2);
	CHECK_EQ(deaths, 0);
	mend_page(&t.v, off);
	CHECK(sg_maintain(b) > 0);
	CHECK_EQ(told, 4);

	/* a bad page in the mount table, with the slots of both systems */
	off = sg_slot_off(&t.v, 0) & ~(SG_PAGE - 1);
	break_page(&t.v, off);
	CHECK_EQ(deaths, 1);
	CHECK_EQ(sg_maintain(&t.v), -EIO);
	CHECK_EQ(sg_maintain(b), -EIO);
	CHECK_EQ(deaths, 2);
	CHECK_EQ(sg_write(&t.v, &f, 0, buf, 1, 1), -EIO);
	CHECK_EQ(sg_write(b, &f, 0, buf, 1, 1), -EIO);
	nothing_is_looked_at(&t.v);
	nothing_is_looked_at(b);
	sg_leave(&t.v);
	sg_leave(b);
	CHECK_OK(sg_open(b, t.mem, t.size, false, NULL));
	CHECK_EQ(sg_join(b, &test_identity, 0, false), -EIO);
	CHECK(strstr(b->why, "mount table"));
	CHECK_EQ(sg_join_alone(b, &test_identity, 0, false), -EIO);
	CHECK_EQ(sg_check(t.mem, t.size, &opts, &res), -EIO);
	CHECK(strstr(res.why, "bad memory"));
	/* the memory is replaced, with the same bytes: no system stops */
	mend_page(b, off);
	/* the first superblock is bad: the mount reads from the backup where the list is */
	break_page(b, 0);
	CHECK_OK(sg_open(b, t.mem, t.size, false, NULL));
	CHECK_EQ(sg_join(b, &test_identity, 0, false), -EIO);
	CHECK(strstr(b->why, "superblock"));
	mend_page(b, 0);
	tvol_join(&t);
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, 1), 1);
	tvol_drop(&t);
	free(b);
	printf("ok pages that the complete volume needs\n");
}

/*
 * The page that contains the list is bad. The system that detects this keeps the entry in its own
 * memory, and does not access the page again.
 */
static void test_hot(void)
{
	struct sg_iref f;
	struct tvol t;
	u8 buf[8];

	tvol_make(&t, TEST_SMALL);
	f = file_named(&t, "f", 1);
	deaths = 0;
	t.v.on_death = on_death;
	break_page(&t.v, SG_HOT_OFF);
	CHECK_EQ(deaths, 1);
	CHECK_EQ(sg_bad_add(&t.v, t.size - 30 * SG_PAGE, 1), -EIO);
	CHECK_EQ(sg_maintain(&t.v), -EIO);
	CHECK_EQ(sg_write(&t.v, &f, 0, buf, 1, 1), -EIO);
	sg_read(&t.v, &f, 0, buf, 1);
	nothing_is_looked_at(&t.v);
	sg_leave(&t.v);
	CHECK_OK(mprotect(t.mem + SG_HOT_OFF, SG_PAGE, PROT_READ | PROT_WRITE));
	tvol_join(&t);
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, 1), 1);
	tvol_drop(&t);
	printf("ok a bad hot page\n");
}

/* The target page of one word of a committed record is bad: replay stores the other words. */
static void test_replay(void)
{
	struct sg_area *a;
	struct tvol t;
	unsigned int log;
	u64 off, good;

	tvol_make(&t, TEST_SMALL);
	off = t.size - 40 * SG_PAGE;
	good = t.size - 42 * SG_PAGE;
	a = (struct sg_area *)(t.mem + sg_area_off(&t.v, (unsigned int)t.v.slot, 0));
	a->word[0] = (struct sg_word){ off + 8, 1 };
	a->word[1] = (struct sg_word){ good + 8, 2 };
	a->head = SG_AREA_HEAD(7, 2);
	a->crc = sg_crc32c(sg_crc32c(~0u, &a->head, 8), a->word, 32);
	break_page(&t.v, off);
	CHECK_EQ(sg_tx_words(a, &log), 2);
	CHECK(!log);
	sg_abandon(&t.v);
	tvol_join(&t);
	CHECK_EQ(sg_get(&t.v, good + 8), 2);
	mend_page(&t.v, off);
	tvol_drop(&t);
	printf("ok replay\n");
}

/* --- bad pages that cost only their own inodes ------------------------------------------------ */

static struct sg_iref numbered(struct tvol *t, unsigned int i)
{
	char name[16];

	snprintf(name, sizeof(name), "n%u", i);
	return test_create(&t->v, &t->root, name, SG_S_IFREG | 0644);
}

static void remove_numbered(struct tvol *t, unsigned int i)
{
	char name[16];

	snprintf(name, sizeof(name), "n%u", i);
	CHECK_OK(sg_unlink(&t->v, &t->root, name, (u32)strlen(name), 1));
}

/*
 * Bad pages hold a deferred inode of a dead system, and an object that this system had open. A
 * joiner does not change these two, and finishes all others.
 */
static void test_deferred(void)
{
	struct sg_sem_new new = { .type = SG_SEM_MUTEX, .mode = 0600 };
	struct sg_iref f[60];
	struct sg_sem sem;
	unsigned int i;
	struct tvol t;
	u64 page, rec;

	tvol_make(&t, TEST_SMALL);
	for (i = 0; i < 60; i++) {
		f[i] = numbered(&t, i);
		CHECK_OK(sg_open_inode(&t.v, &f[i], false));
	}
	CHECK_OK(sg_sem_create(&t.v, "bad", 3, &new, true, false, &sem));
	remove_numbered(&t, 2);
	remove_numbered(&t, 30);
	remove_numbered(&t, 58);
	page = f[30].off & ~(SG_PAGE - 1);
	CHECK(page != (f[2].off & ~(SG_PAGE - 1)) && page != (f[58].off & ~(SG_PAGE - 1)));
	rec = sem.rec & ~(SG_PAGE - 1);
	break_page(&t.v, page);
	break_page(&t.v, rec);
	sg_abandon(&t.v);
	tvol_join(&t);
	CHECK_EQ(sg_iget(&t.v, &f[2], mode), 0);
	CHECK_EQ(sg_iget(&t.v, &f[58], mode), 0);
	mend_page(&t.v, page);
	mend_page(&t.v, rec);
	CHECK(sg_iget(&t.v, &f[30], mode) != 0);	/* still deferred */
	sg_withdraw_opens(&t.v, true);
	CHECK_OK(sg_ledger_settle_inodes(&t.v));
	CHECK_EQ(sg_iget(&t.v, &f[30], mode), 0);
	CHECK_OK(sg_sem_withdraw(&t.v));
	tvol_drop(&t);
	printf("ok bad pages of deferred inodes\n");
}

/*
 * A page in the chain of this system's ledger is bad. The system reclaims the deferred frees of the
 * other pages only. A system that joins when the page has been mended reclaims the rest.
 */
static void test_ledger_page(void)
{
	struct sg_vol *b = calloc(1, sizeof(*b));
	struct tvol t;
	u64 page, used = 0;
	unsigned int i;

	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_open(b, t.mem, t.size, false, NULL));
	CHECK_OK(sg_join(b, &test_identity, 0, false));
	for (i = 0; i < SG_LEDGER_WORDS + 100; i++) {	/* b does not acknowledge the epoch */
		struct sg_iref f = numbered(&t, i);

		CHECK_OK(sg_allocate(&t.v, &f, 0, 1));
		remove_numbered(&t, i);
		CHECK_OK(sg_evict(&t.v, &f));
	}
	page = sg_get(&t.v, sg_ledger_off(&t.v, (unsigned int)t.v.slot));
	CHECK(sg_data_page(&t.v, page));
	for (i = 1; i < SG_LEDGER_WORDS; i++)
		used += sg_get(&t.v, page + i * 8) != 0;
	CHECK(used);
	sg_leave(b);
	break_page(&t.v, page);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_EQ(sg_ledger_reclaimable(&t.v), 0);
	mend_page(&t.v, page);
	for (i = 1; i < SG_LEDGER_WORDS; i++)
		used -= sg_get(&t.v, page + i * 8) != 0;
	CHECK_EQ(used, 0);
	tvol_leave(&t);
	tvol_join(&t);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	for (i = 1; i < SG_LEDGER_WORDS; i++)
		CHECK_EQ(sg_get(&t.v, page + i * 8), 0);
	tvol_drop(&t);
	free(b);
	printf("ok a bad page of a ledger\n");
}

/* Free inode records in bad memory: new files get other records. */
static void test_free_records(void)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_check_result res;
	struct sg_iref f[200];
	unsigned int i;
	struct tvol t;
	u64 page;

	tvol_make(&t, TEST_SMALL);
	for (i = 0; i < 200; i++)
		f[i] = numbered(&t, i);
	for (i = 0; i < 200; i++) {
		remove_numbered(&t, i);
		CHECK_OK(sg_evict(&t.v, &f[i]));
	}
	page = f[100].off & ~(SG_PAGE - 1);
	break_page(&t.v, page);
	t.v.on_damage = damaged;
	damages = 0;
	for (i = 0; i < 300; i++)
		CHECK((numbered(&t, i).off & ~(SG_PAGE - 1)) != page);
	CHECK_EQ(damages, 0);
	mend_page(&t.v, page);
	sg_leave(&t.v);
	/* finding: the records behind the bad one are on no list */
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	test_clean(t.mem, t.size);
	test_unmap(t.mem, t.size);
	printf("ok free records\n");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	rng.state = test_seed();
	sg_log_hook = quiet;
	test_list();
	test_hostile_list();
	test_data();
	test_own();
	test_between();
	test_large();
	test_table();
	test_fsck();
	test_vital();
	test_hot();
	test_looking_on(SG_HOT_OFF);
	test_looking_on(2 * SG_PAGE);	/* a bad page in the mount table */
	test_waiting();
	test_full_list();
	test_replay();
	test_deferred();
	test_ledger_page();
	test_free_records();
	return test_done();
}
