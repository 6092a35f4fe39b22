// SPDX-License-Identifier: Apache-2.0
/*
 * Loops whose end stands in the volume, where somebody has made it so that there is none. Each has
 * a limit of loads, which is one of time that does not depend on the machine.
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
	alarm(100);	/* for loops without loads */
}

static void end_limit(void)
{
	hook_load = NULL;
	alarm(0);
	test_counted();
}

/* --- a table that names itself ------------------------------------------------------------------ */

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

/* What it owes is counted by who only looks on, up to so many entries. */
void case_table_of_itself(void)
{
	static struct sg_holding all[SG_SLOTS];
	u64 page, i;

	CHECK_OK(host_join(&v, true));
	page = some_free_page();
	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		set(page + 8 * i, (honest.sb.phys + page) | SG_PTE_TABLE);
	set(sg_ledger_off(&v, 20) + 8,
	    SG_DEBT(SG_DEBT_TABLE + 3, page >> SG_PAGE_SHIFT, 0, 0));
	begin_limit(8 << 20);
	sg_holdings(&v, all);
	end_limit();
	CHECK(all[20].owes > SG_TABLE_ENTRIES);
	set(sg_ledger_off(&v, 20) + 8, 0);
	sg_leave(&v);
}

/* --- for one who is to die ---------------------------------------------------------------------- */

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

/* --- bad memory --------------------------------------------------------------------------------- */

/* A list that is full, and each piece of it as large as the volume: asked by who wants to know. */
void case_bad_list(void)
{
	struct sg_statfs st;
	u64 i;

	CHECK_OK(host_join(&v, true));
	for (i = 0; i < SG_BAD_MAX; i++)
		set(SG_HOT(bad) + 8 * i, SG_BAD(honest.sb.data_off / SG_PAGE, SG_BAD_COUNT_MAX));
	set(SG_HOT(bads), SG_BADS(SG_BAD_MAX, 1));
	begin_limit(SG_BAD_MAX * (H_SIZE / SG_PAGE / 64 + 8) + 20000);
	CHECK_OK(sg_statfs(&v, &st));
	end_limit();
	set(SG_HOT(bads), SG_BADS(0, 2));
	sg_leave(&v);
}

/* --- a place for a transaction ------------------------------------------------------------------ */

/*
 * All areas of a transaction are in use, and who uses them waits for somebody who is paused. One
 * more that is to die leaves, without a place.
 */
void case_no_place(void)
{
	struct sg_tx *tx[64];
	struct sg_iref f;
	unsigned int i;

	CHECK_OK(host_join(&v, true));
	f = inode("one");
	for (i = 0; i < honest.sb.areas; i++) {
		tx[i] = sg_tx_begin_payer(&v);
		CHECK_OK(tx[i]->err);
	}
	sg_interrupt_hook = killed;
	begin_limit(20000);
	CHECK_EQ(sg_resize(&v, &f, 0, 1), -EINTR);
	end_limit();
	sg_interrupt_hook = NULL;
	for (i = 0; i < honest.sb.areas; i++)
		sg_tx_abort(tx[i]);
	CHECK_OK(sg_resize(&v, &f, 0, 1));
	sg_leave(&v);
}
