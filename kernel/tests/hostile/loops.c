// SPDX-License-Identifier: Apache-2.0
/*
 * Loops whose end depends on words of the volume, which an attacker has changed so that no end
 * comes. The test limits the number of loads, which unlike time does not depend on the machine.
 */
#include <sys/stat.h>
#include <unistd.h>
#include "hostile.h"

static struct sg_vol v;
static u64 loads, most;

static void set(u64 off, u64 val)
{
	__atomic_store_n((u64 *)(volume + off), val, __ATOMIC_RELAXED);
}

static void count_load(u64 off)
{
	if (++loads > most)
		test_fail(__FILE__, __LINE__, "no end after %" PRIu64 " loads; the last at 0x%" PRIx64,
			  most, off);
}

static void begin_limit(u64 n)
{
	loads = 0;
	most = n;
	hook_load = count_load;
	alarm(100);	/* ends loops that load no word */
}

static void end_limit(void)
{
	hook_load = NULL;
	alarm(0);
	test_counted();
}

/* --- a table that names itself ---------------------------------------------------------------- */

static bool is_used(u64 page)
{
	return sg_get(&v, sg_chunk_off(&v, page / SG_CHUNK) + offsetof(struct sg_chunk, map) +
		      page % SG_CHUNK / SG_PAGE / 64 * 8) >> (page >> SG_PAGE_SHIFT & 63) & 1;
}

static u64 some_free_page(void)
{
	u64 page = H_SIZE - 2 * SG_PAGE;

	while (is_used(page))
		page -= SG_PAGE;
	return page;
}

/* A table contains itself. sg_holdings() only reads, and counts deferred frees up to a limit. */
void case_table_of_itself(void)
{
	static struct sg_holding all[SG_SLOTS];
	u64 page, i;

	CHECK_OK(host_join(&v, true));
	page = some_free_page();
	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		set(page + 8 * i, (victim.sb.phys + page) | SG_PTE_TABLE);
	set(sg_ledger_off(&v, 20) + 8,
	    SG_LEDGER_ENTRY(SG_LEDGER_TABLE + 3, page >> SG_PAGE_SHIFT, 0, 0));
	begin_limit(8 << 20);
	sg_holdings(&v, all);
	end_limit();
	CHECK(all[20].deferred > SG_TABLE_ENTRIES);
	set(sg_ledger_off(&v, 20) + 8, 0);
	sg_leave(&v);
}

/* --- a killed thread -------------------------------------------------------------------------- */

extern bool (*sg_interrupt_hook)(void);

static bool killed(void)
{
	return true;
}

static struct sg_iref inode(const char *name)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	return test_lookup(&v, &root, name);
}

/* --- parents ---------------------------------------------------------------------------------- */

/*
 * Tests directories that are each other's parents, in a cycle of @n that begins @before steps above
 * the target of a rename. The count of inodes is the largest that fits in its word.
 */
static void parent_circle(unsigned int before, unsigned int n)
{
	struct sg_iref root, d[16], from;
	unsigned int i;
	char name[8];

	CHECK_OK(host_join(&v, true));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	d[0] = test_create(&v, &root, "d0", S_IFDIR | 0755);
	for (i = 1; i < before + n; i++) {
		sprintf(name, "d%u", i);
		d[i] = test_create(&v, &root, name, S_IFDIR | 0755);
		set(SG_IOFF(&d[i - 1], special), d[i].ino);
	}
	set(SG_IOFF(&d[i - 1], special), d[before].ino);
	from = test_create(&v, &root, "from", S_IFDIR | 0755);
	set(SG_HOT(inodes), ~0ULL);
	begin_limit(20000);
	CHECK_EQ(sg_rename(&v, &root, "from", 4, &d[0], "to", 2, 0, NULL, 5), -EUCLEAN);
	end_limit();
	CHECK(!sg_is_locked(&v, SG_HOT(rename_lock)) && !sg_is_locked(&v, SG_IOFF(&from, lock)));
	sg_leave(&v);
}

void case_parent_circle(void)
{
	unsigned int n;

	for (n = 1; n < 6; n++) {
		volume_reset();
		parent_circle(n % 3, n);
	}
	volume_reset();
	parent_circle(7, 9);
}

/* --- a file with endless pages ---------------------------------------------------------------- */

/*
 * Makes three levels of tables: all entries of an upper table name the same next table. No run is
 * longer than a page.
 */
static u64 forge_table(void)
{
	u64 data = victim.sb.phys + H_SIZE / 2, at[3], i, k;

	for (k = 0; k < 3; k++) {
		at[k] = some_free_page() - k * SG_PAGE;
		for (i = 0; i < SG_TABLE_ENTRIES; i++)
			set(at[k] + 8 * i, k ? (victim.sb.phys + at[k - 1]) | SG_PTE_TABLE :
			    (data + (i & 1) * 2 * SG_PAGE) | SG_PTE_LEAF);
	}
	return SG_ROOT((victim.sb.phys + at[2]) | SG_PTE_TABLE, 3);
}

/* A file maps more pages than exist. A thread that counts them can be killed. */
void case_allocate(void)
{
	const u64 pages = 1ULL << 27;
	struct sg_iref f;

	CHECK_OK(host_join(&v, true));
	f = inode("table");
	set(SG_IOFF(&f, table), forge_table());
	begin_limit(100 * H_SIZE / SG_PAGE);
	CHECK_EQ(sg_allocate(&v, &f, 0, pages), -EUCLEAN);
	end_limit();
	sg_interrupt_hook = killed;
	set(SG_IOFF(&f, size), 1ULL << 38);
	begin_limit(100 * SG_TURNS);
	CHECK_EQ(sg_allocate(&v, &f, 0, pages), -EINTR);
	CHECK_EQ(sg_seek(&v, &f, 0, true), -EINTR);
	end_limit();
	sg_interrupt_hook = NULL;
	sg_leave(&v);
}

/* --- bad pages -------------------------------------------------------------------------------- */

/* Queries a full list of bad extents, each as large as the volume. */
void case_bad_list(void)
{
	struct sg_statfs st;
	u64 i;

	CHECK_OK(host_join(&v, true));
	for (i = 0; i < SG_BAD_MAX; i++)
		set(SG_HOT(bad) + 8 * i, SG_BAD(victim.sb.data_off / SG_PAGE, SG_BAD_COUNT_MAX));
	set(SG_HOT(bads), SG_BADS(SG_BAD_MAX, 1));
	begin_limit(SG_BAD_MAX * (H_SIZE / SG_PAGE / 64 + 8) + 20000);
	CHECK_OK(sg_statfs(&v, &st));
	end_limit();
	set(SG_HOT(bads), SG_BADS(0, 2));
	sg_leave(&v);
}

/* --- a transaction area ----------------------------------------------------------------------- */

/*
 * All transaction areas are in use, and their threads wait for a paused system. One more thread is
 * killed, and returns without an area.
 */
void case_no_place(void)
{
	struct sg_tx *tx[64];
	struct sg_iref f;
	unsigned int i;

	CHECK_OK(host_join(&v, true));
	f = inode("one");
	for (i = 0; i < victim.sb.areas; i++) {
		tx[i] = sg_tx_begin_reclaimer(&v);
		CHECK_OK(tx[i]->err);
	}
	sg_interrupt_hook = killed;
	begin_limit(20000);
	CHECK_EQ(sg_resize(&v, &f, 0, 1), -EINTR);
	end_limit();
	sg_interrupt_hook = NULL;
	for (i = 0; i < victim.sb.areas; i++)
		sg_tx_abort(tx[i]);
	CHECK_OK(sg_resize(&v, &f, 0, 1));
	sg_leave(&v);
}

/* --- truncating and moving -------------------------------------------------------------------- */

/*
 * Makes three levels of tables. All entries name one table of the lowest level, which is empty or
 * has a run.
 */
static u64 forge_same(bool empty)
{
	u64 at = some_free_page(), low = at - SG_PAGE, mid = low - SG_PAGE, i;

	for (i = 0; i < SG_TABLE_ENTRIES; i++) {
		set(low + 8 * i, empty ? 0 :
		    (victim.sb.phys + H_SIZE / 2 + i * SG_PAGE) | SG_PTE_LEAF);
		set(mid + 8 * i, (victim.sb.phys + low) | SG_PTE_TABLE);
		set(at + 8 * i, (victim.sb.phys + mid) | SG_PTE_TABLE);
	}
	return SG_ROOT((victim.sb.phys + at) | SG_PTE_TABLE, 3);
}

/* A move counts pages. A killed thread stops its search through endless holes. */
void case_move_range(void)
{
	struct sg_iref f;

	CHECK_OK(host_join(&v, true));
	f = inode("table");
	set(SG_IOFF(&f, table), forge_same(false));
	set(SG_IOFF(&f, size), 1ULL << 38);
	begin_limit(200000);
	CHECK_EQ(sg_collapse(&v, &f, 0, SG_PAGE, 1), -EUCLEAN);
	end_limit();
	set(SG_IOFF(&f, table), forge_same(true));
	sg_interrupt_hook = killed;
	begin_limit(60000000);
	CHECK_EQ(sg_collapse(&v, &f, 0, SG_PAGE, 1), -EINTR);
	end_limit();
	sg_interrupt_hook = NULL;
	sg_leave(&v);
}

/* --- the split of a bucket -------------------------------------------------------------------- */

/* bit map of the pages that were free at the start */
static u64 empty[H_SIZE / SG_PAGE / 64];

/*
 * Called before each load of the word at @off. If this word is an empty slot of a bucket, in a page
 * that was free at the start, the attacker fills the slot.
 */
static void fill_slots(u64 off)
{
	u64 in = off % SG_PAGE, page = off / SG_PAGE;

	if (off < H_SIZE && empty[page / 64] >> page % 64 & 1 && !*(u64 *)(volume + off) &&
	    in >= offsetof(struct sg_bucket, slot) && in < offsetof(struct sg_bucket, data))
		set(off, SG_BUCKET_TOMB);
	count_load(off);
}

static void note_free_pages(void)
{
	u64 page;

	memset(empty, 0, sizeof(empty));
	for (page = victim.sb.data_off; page < H_SIZE - SG_PAGE; page += SG_PAGE)
		if (!is_used(page))
			empty[page / SG_PAGE / 64] |= 1ULL << page / SG_PAGE % 64;
}

/* A full bucket is split into fresh buckets, whose slots all seem to be taken. */
void case_split(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref root, dir, f;
	unsigned int i;
	char name[40];
	int err = 0;

	CHECK_OK(host_join(&v, true));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	dir = test_create(&v, &root, "split", S_IFDIR | 0755);
	for (i = 0; i < 2 * SG_BUCKET_SLOTS && !err; i++) {
		sprintf(name, "a-name-of-some-length-%u", i);
		note_free_pages();
		begin_limit(200000);
		hook_load = fill_slots;
		err = sg_create(&v, &dir, name, strlen(name), &new, &f);
		end_limit();
	}
	CHECK(!err || err == -EUCLEAN);
	CHECK(i > SG_BUCKET_SLOTS / 2);	/* more names than one bucket has room for */
	sg_leave(&v);
}

/* --- a removed semaphore ---------------------------------------------------------------------- */

static u64 over_at, over_head;

/* Makes an object's record look removed at each load, so that freeing it never ends. */
static void keep_over(u64 off)
{
	if (off == over_at)
		set(off, over_head);
	count_load(off);
}

static int create_over(bool (*interrupted)(void))
{
	struct sg_sem_new new = { .type = SG_SEM_MUTEX, .mode = 0600 };
	struct sg_sem sem;
	int err;

	sg_interrupt_hook = interrupted;
	begin_limit(10000000);
	hook_load = keep_over;
	err = sg_sem_create(&v, "over", 4, &new, true, false, &sem);
	end_limit();
	sg_interrupt_hook = NULL;
	return err;
}

/*
 * Creating an object of the same name first frees the old record, several times, but not forever.
 */
void case_sem_over(void)
{
	struct sg_sem_new new = { .type = SG_SEM_MUTEX, .mode = 0600 };
	struct sg_sem sem;
	u64 next;

	CHECK_OK(host_join(&v, true));
	CHECK_OK(sg_sem_create(&v, "over", 4, &new, true, false, &sem));
	sg_sem_close(&v, &sem);
	over_at = sem.rec;
	over_head = SG_SEM_HEAD(SG_SEM_MUTEX, SG_SEM_PERSISTENT, SG_SEM_REMOVED, 1);
	next = over_at + sizeof(struct sg_sem_record);
	/* another object keeps the page */
	set(next, SG_SEM_HEAD(SG_SEM_MUTEX, SG_SEM_PERSISTENT, 0, 77));
	CHECK_EQ(create_over(NULL), -EBUSY);
	CHECK_EQ(create_over(killed), -EINTR);
	set(next, 0);
	CHECK_OK(sg_sem_create(&v, "over", 4, &new, false, false, &sem));
	sg_sem_close(&v, &sem);
	sg_leave(&v);
}

/* Changes an entry of the list before each load, so that the list always seems to have room. */
static void change_bad(u64 off)
{
	static u64 n;

	if (off == SG_HOT(bad)) {
		memset(volume + off, 0, 8 * SG_BAD_MAX);
		set(off, SG_BAD(2000, 2 + ++n % 100));
	}
}

void case_bad_changes(void)
{
	CHECK_OK(host_join(&v, true));
	set(SG_HOT(bad), SG_BAD(2000, 2));
	set(SG_HOT(bads), SG_BADS(1, 1));
	hook_load = change_bad;
	CHECK_EQ(sg_bad_remove(&v, 2000 * SG_PAGE, SG_PAGE), -EAGAIN);
	hook_load = NULL;
	set(SG_HOT(bad), 0);
	sg_leave(&v);
}
