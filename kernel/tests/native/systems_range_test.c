// SPDX-License-Identifier: Apache-2.0
/*
 * One system walks a file's table without the file's lock, step by step. Between two steps another
 * system changes the file, and the former tables become pages of another file. No step may report
 * that as damage: damage makes a mount read-only, and any user can cause this.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define PAGES	3200		/* size of a file: three quarters of the volume */

extern bool (*sg_interrupt_hook)(void);

static struct tsys a, b;
static struct sg_iref fa, fb;
static u64 turns, first_at, step;
static void (*between)(void);

/*
 * System a calls this every SG_TURNS steps. Acts at call @first_at, and at each @step-th call after
 * that.
 */
static bool at_turn(void)
{
	bool now = ++turns >= first_at && (turns == first_at || (step && !((turns - first_at) % step)));

	if (now) {
		sg_interrupt_hook = NULL;
		between();
		sg_interrupt_hook = at_turn;
	}
	return false;
}

static void at_turns(u64 first, u64 each, void (*what)(void))
{
	turns = 0;
	first_at = first;
	step = each;
	between = what;
	sg_interrupt_hook = what ? at_turn : NULL;
}

static void join(void)
{
	u8 *mem = tsys_volume(SIZE);

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
}

static void leave(void)
{
	CHECK_EQ(sg_get(&a.v, SG_HOT(errors)), 0);
	tsys_leave(&a);
	tsys_leave(&b);
}

/* Writes the last page first, so that no two pages are contiguous: each page is a step. */
static void make(u64 pages, u64 apart)
{
	u8 byte = 1;

	fa = test_create(&a.v, &a.root, "file", S_IFREG | 0600);
	while (pages--)
		CHECK_EQ(sg_write(&a.v, &fa, apart * pages * SG_PAGE, &byte, 1, 1), 1);
	fb = test_lookup(&b.v, &b.root, "file");
}

/* --- tables that become pages of another file ------------------------------------------------- */

#define KEPT	12		/* free pages that remain */

static u64 evil_pages;

/* Writes a file over all free pages. Its pages look like tables; each names one page 512 times. */
static void write_tables(void)
{
	u64 buf[SG_TABLE_ENTRIES], i;
	struct sg_run run;
	struct sg_iref f;
	char name[16];

	for (evil_pages = 0; sg_free_pages(&b.v) > KEPT; evil_pages++) {
		sprintf(name, "evil%u", (unsigned int)evil_pages);
		f = test_create(&b.v, &b.root, name, S_IFREG | 0600);
		if (!evil_pages) {
			CHECK_OK(sg_allocate(&b.v, &f, 0, 1));
			CHECK_OK(sg_walk(&b.v, &f, 0, 1, &run));
			for (i = 0; i < SG_TABLE_ENTRIES; i++)
				buf[i] = sg_link_entry(&b.v, run.off);
		}
		if (sg_write(&b.v, &f, 0, buf, SG_PAGE, 3) != SG_PAGE)
			break;
	}
}

static void truncate_and_reuse(void)
{
	unsigned int i;

	CHECK_OK(sg_resize(&b.v, &fb, 0, 2));
	for (i = 0; i < 20; i++) {
		sg_maintain(&a.v);
		sg_maintain(&b.v);
		sg_settle(&b.v);
	}
	CHECK_EQ(sg_ledger_reclaimable(&b.v), 0);
	write_tables();
	CHECK(evil_pages > 1000);
}

static void collapse(void)
{
	u8 byte = 1;
	u64 i;

	join();
	/* makes upper tables, so that the walk has to list many */
	make(1100, 2);
	for (i = 0; i < 20; i++)
		CHECK_EQ(sg_write(&a.v, &fa, i << 31, &byte, 1, 1), 1);
	at_turns(1, 0, truncate_and_reuse);
	/* collapses a file that is empty meanwhile */
	CHECK_EQ(sg_collapse(&a.v, &fa, 0, SG_PAGE, 5), -EINVAL);
	at_turns(0, 0, NULL);
	CHECK(evil_pages);
	leave();
}

/* --- a file that gets more pages than were counted -------------------------------------------- */

#define MEM(s)	((u8 *)(s).v.base)

static u64 grown;

/* Allocates large leaves in a place where the collapse has counted two pages. */
static void get_large(void)
{
	CHECK_OK(sg_allocate(&b.v, &fb, SG_CHUNK_PAGES, 2 * SG_CHUNK_PAGES));
	grown++;
}

/*
 * A collapse counts the pages of its table, then builds the table. Pages that the file gets in
 * between have no room in the table. They must not be stored elsewhere, in particular not in the
 * volume's first page.
 */
static void more_than_counted(u64 at)
{
	u8 first[SG_PAGE];
	int err;

	join();
	make(2, 1);
	CHECK_OK(sg_resize(&a.v, &fa, 10 << 20, 2));
	memcpy(first, MEM(a), sizeof(first));
	at_turns(at, 0, get_large);
	err = sg_collapse(&a.v, &fa, 8 << 20, SG_PAGE, 5);
	at_turns(0, 0, NULL);
	CHECK_OK(err);
	CHECK(!memcmp(first, MEM(a), sizeof(first)));
	CHECK_EQ(sg_iget(&a.v, &fa, size), (10 << 20) - SG_PAGE);
	leave();
}

/* --- a builder that is fenced ----------------------------------------------------------------- */

#define PATTERN	0x5a

static u64 all_size;
static struct sg_iref all;

/* Writes a file of system @s over all free pages, with at most @most bytes. */
static void take_all(struct tsys *s, u64 most)
{
	static u8 buf[16 * SG_PAGE];

	memset(buf, PATTERN, sizeof(buf));
	all = test_create(&s->v, &s->root, "all", S_IFREG | 0600);
	s->v.space_wait_ms = 1;
	for (all_size = 0; all_size < most; all_size += sizeof(buf))
		if (sg_write(&s->v, &all, all_size, buf, sizeof(buf), 3) != sizeof(buf))
			break;
	s->v.space_wait_ms = 0;
	CHECK(all_size);
}

/* Checks that no byte of this file has changed. */
static void check_all(struct tsys *s)
{
	static u8 buf[SG_PAGE];
	u64 pos, wrong = 0;
	unsigned int i;

	for (pos = 0; pos < all_size; pos += SG_PAGE) {
		CHECK_EQ(sg_read(&s->v, &all, pos, buf, SG_PAGE), SG_PAGE);
		for (i = 0; i < SG_PAGE; i++)
			wrong += buf[i] != PATTERN;
	}
	CHECK_EQ(wrong, 0);
}

/* Fences a, which frees the pages of its new tables, and writes a file of b over all free pages. */
static void fence_and_take_all(void)
{
	unsigned int i;

	tsys_fence(&b, &a);
	for (i = 0; i < 10; i++) {
		sg_maintain(&b.v);
		sg_settle(&b.v);
	}
	CHECK_EQ(tsys_state(&b, (unsigned int)a.v.slot), SG_SLOT_FREE);
	take_all(&b, SIZE);
}

/* Fences a at call @at of its build. Returns false if the build was complete before. */
static bool fenced_in_build(u64 at)
{
	int err;

	join();
	a.v.maintained = true;	/* a sends no heartbeat, which would detect the fence */
	make(2800, 2);
	all_size = 0;
	at_turns(at, 0, fence_and_take_all);
	err = sg_collapse(&a.v, &fa, 0, SG_PAGE, 5);
	at_turns(0, 0, NULL);
	if (!all_size) {
		CHECK_OK(err);
		leave();
		return false;
	}
	CHECK_EQ(err, -EIO);
	check_all(&b);
	tsys_die(&a);
	tsys_leave(&b);
	return true;
}

/* --- a builder whose spare inode another caller finds ----------------------------------------- */

static struct sg_iref spare;
static unsigned int found;

/* Finds the inode without links. Returns false if it has no pages yet, or is freed. */
static bool find_spare(void)
{
	u64 n = sg_get(&a.v, SG_HOT(inodes)), ino, mode;

	for (ino = 1; ino < n; ino++) {
		CHECK_OK(sg_iref(&a.v, ino, &spare));
		mode = sg_iget(&a.v, &spare, mode);
		if (mode && !sg_nlink(mode) && sg_iget(&a.v, &spare, blocks)) {
			spare.generation = (u32)sg_iget(&a.v, &spare, genflags);
			found++;
			return true;
		}
	}
	return false;
}

/*
 * Makes system a find the spare inode by a file handle, and evict it. Then writes a file of system
 * a over all free pages.
 */
static void handle_leads_there(void)
{
	unsigned int i;

	if (!find_spare())
		return;
	CHECK_OK(sg_evict_try(&a.v, &spare));
	CHECK_OK(sg_evict(&a.v, &spare));
	for (i = 0; i < 10; i++) {
		sg_maintain(&a.v);
		sg_maintain(&b.v);
		sg_settle(&a.v);
		sg_settle(&b.v);
	}
	take_all(&a, SIZE);
}

/* System b clears a's bit, so that b can free the inode. b gets the record, and reuses no page. */
static void hostile_frees_it(void)
{
	if (!find_spare())
		return;
	sg_store64(sg_at(&b.v, SG_IOFF(&spare, openers)), 0);
	CHECK_OK(sg_evict(&b.v, &spare));
	take_all(&b, 128 * SG_PAGE);
	CHECK_EQ(all.ino, spare.ino);
}

/* Leaves only single free pages. */
static void scatter(void)
{
	struct sg_iref f = test_create(&a.v, &a.root, "scattered", S_IFREG | 0600);
	u64 pages = 0;

	a.v.space_wait_ms = 1;
	while (sg_write(&a.v, &f, 2 * pages * SG_PAGE, "x", 1, 1) == 1)
		pages++;
	a.v.space_wait_ms = 0;
	for (; pages > 1; pages -= 2) {
		CHECK_OK(sg_punch(&a.v, &f, 2 * (pages - 1) * SG_PAGE, SG_PAGE, 1));
		sg_maintain(&a.v);
		sg_maintain(&b.v);
	}
}

/* Returns whether the spare inode existed, with pages. */
static bool found_at(u64 at, bool lists, bool hostile)
{
	u8 *mem;
	int err;

	join();
	mem = MEM(a);
	a.v.deferred_on_lists = lists;
	make(2800, 2);
	if (hostile)
		scatter();
	all_size = 0;
	at_turns(at, 0, hostile ? hostile_frees_it : handle_leads_there);
	err = sg_collapse(&a.v, &fa, 0, SG_PAGE, 5);
	CHECK(!err || (err == -ESTALE && hostile));
	at_turns(0, 0, NULL);
	if (all_size)
		check_all(&a);
	CHECK_EQ(sg_get(&a.v, SG_HOT(errors)), 0);
	tsys_leave(&b);
	tsys_leave(&a);
	test_clean(mem, SIZE);
	return all_size;
}

static void found_in_build(bool lists, bool hostile)
{
	u64 at = 1;

	found = 0;
	while (found_at(at, lists, hostile) || (!found && at < 20))
		at++;
	CHECK(found > 3);
}

/* --- pages that are inserted before the walk -------------------------------------------------- */

#define AHEAD	SG_TURNS	/* number of pages that the walk has visited when pages are inserted */

static void move_ahead(void)
{
	CHECK_OK(sg_insert(&b.v, &fb, 0, (u64)AHEAD << SG_PAGE_SHIFT, 3));
}

/* Pages are inserted before the walk's position, so an allocation visits some pages again. */
static void allocate(void)
{
	join();
	make(PAGES, 1);
	at_turns(1, 0, move_ahead);
	CHECK_EQ(sg_allocate(&a.v, &fa, 0, PAGES + AHEAD), -ENOSPC);
	CHECK(turns > 3);
	at_turns(0, 0, NULL);
	leave();
}

#define MOVES	6

/* A flush ends at the requested end, also if pages are inserted before its position. */
static void flush(void)
{
	join();
	make(PAGES, 1);
	at_turns(1, 1, move_ahead);
	CHECK_OK(sg_flush(&a.v, &fa, 0, PAGES + MOVES * AHEAD));
	CHECK(turns > MOVES);
	at_turns(0, 0, NULL);
	leave();
}

int main(void)
{
	u64 at;

	collapse();
	for (at = 1; at < 12; at++)
		more_than_counted(at);
	CHECK(grown);
	for (at = 1; fenced_in_build(at); at++)
		;
	CHECK(at > 8);
	found_in_build(false, false);
	found_in_build(true, false);
	found_in_build(false, true);
	allocate();
	flush();
	return test_done();
}
