/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for tests of file tables and data: a volume in anonymous memory, files without names, and
 * an account of every page. The account does not use the engine's own walk, so it can find errors
 * of the walk.
 */
#ifndef DATA_UTIL_H
#define DATA_UTIL_H

#include "internal.h"
#include "test.h"

#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)

static struct rng rng;
static inline u64 rnd(u64 below)
{
	return rng_below(&rng, below);
}

static inline bool page_used(const struct sg_vol *vol, u64 page)
{
	u64 chunk = page / SG_CHUNK_PAGES, bit = page % SG_CHUNK_PAGES;
	const struct sg_chunk *c = (void *)(vol->base + sg_chunk_off(vol, chunk));

	return c->map[bit / 64] >> bit % 64 & 1;
}

/* Fills the free pages with bytes that no reader may see later. */
static inline void dirty_free_pages(struct sg_vol *vol)
{
	u64 i;

	for (i = vol->sb.data_off / SG_PAGE; i < vol->size / SG_PAGE - 1; i++) {
		if (!page_used(vol, i))
			memset(vol->base + i * SG_PAGE, 0xee, SG_PAGE);
	}
}

/* Does the same as tvol_make(), also for large sizes: memory is allocated only for used pages. */
static inline struct sg_vol *vol_new(u64 size)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	struct sg_vol *vol = calloc(1, sizeof(*vol));
	u8 *mem = test_map(size);

	CHECK_OK(sg_format(mem, size, &opts, vol->why));
	CHECK_OK(sg_open(vol, mem, size, false, NULL));
	CHECK_OK(sg_join(vol, &test_identity, 0, false));
	if (size <= 256 * MIB)
		dirty_free_pages(vol);
	return vol;
}

static inline void vol_end(struct sg_vol *vol)
{
	u8 *mem = vol->base;
	u64 size = vol->size;

	sg_leave(vol);
	test_clean(mem, size);
	test_unmap(mem, size);
	free(vol);
}

static inline struct sg_iref file_new(struct sg_vol *vol)
{
	struct sg_new new = { .mode = SG_S_IFREG | 0644, .now = 1 };
	struct sg_tx *tx = sg_tx_begin(vol);
	struct sg_iref ref;

	CHECK(!sg_inode_take(tx, &new, 1, 0, &ref));
	CHECK(!sg_tx_commit(tx));
	return ref;
}

static inline void file_end(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 mode = sg_iget(vol, ref, mode);
	struct sg_tx *tx = sg_tx_begin(vol);

	sg_tx_inode(tx, ref);
	sg_tx_iset(tx, ref, mode, (u64)sg_mode(mode));	/* no links */
	CHECK(!sg_tx_commit(tx));
	CHECK(!sg_evict(vol, ref));
}

/* --- the account ----------------------------------------------------------------------------- */

struct account {
	struct sg_vol *vol;
	u8 *owned;		/* a byte per page of the volume */
	u64 tables, leaves, large;
};

static inline void claim(struct account *a, u64 off, u64 pages)
{
	u64 i, page = off >> SG_PAGE_SHIFT;

	CHECK(off >= a->vol->sb.data_off && off + pages * SG_PAGE <= a->vol->size - SG_PAGE);
	for (i = 0; i < pages; i++) {
		if (a->owned[page + i])
			test_fail(__FILE__, __LINE__, "a page has more than one owner");
		a->owned[page + i] = 1;
	}
}

/*
 * Follows the words as format.h defines them, without the engine's walk. Finds empty tables as
 * well.
 */
static inline void account_table(struct account *a, u64 off, unsigned int level)
{
	unsigned int i, used = 0;

	claim(a, off, 1);
	a->tables++;
	for (i = 0; i < SG_TABLE_ENTRIES; i++) {
		u64 e = *(u64 *)(a->vol->base + off + i * 8), to = (e & SG_PTE_ADDR) - TEST_PHYS;

		if (!e)
			continue;
		used++;
		if ((e & ~SG_PTE_ADDR) == SG_PTE_TABLE) {
			CHECK(level > 1);
			account_table(a, to, level - 1);
		} else {
			CHECK((e & ~SG_PTE_ADDR) == (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF));
			CHECK(level <= 3 && !(to & (sg_level_pages(level) * SG_PAGE - 1)));
			claim(a, to, sg_level_pages(level));
			a->leaves += sg_level_pages(level);
			a->large += level > 1;
		}
	}
	CHECK(used);
}

static inline void account_file(struct account *a, const struct sg_iref *ref)
{
	u64 root = sg_iget(a->vol, ref, table), off = (root & SG_PTE_ADDR) - TEST_PHYS;
	u64 before = a->tables + a->leaves;

	if (root && SG_ROOT_HEIGHT(root)) {
		account_table(a, off, SG_ROOT_HEIGHT(root));
	} else if (root) {
		claim(a, off, 1);
		a->leaves++;
	}
	CHECK(sg_iget(a->vol, ref, blocks) == a->tables + a->leaves - before);
}

/*
 * Checks that each page is free, or belongs to exactly one of a file, the inode file, and the
 * ledger.
 */
static inline void account_volume(struct sg_vol *vol, const struct sg_iref *files, unsigned int n,
				  struct account *out)
{
	u64 pages = vol->size / SG_PAGE, i, used = 0, page;
	struct account a = { .vol = vol, .owned = calloc(1, pages) };
	struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);

	CHECK(sg_reclaim(vol, ~0u) == 0);
	account_file(&a, &sys);
	for (page = *(u64 *)(vol->base + sg_ledger_off(vol, vol->slot)); page;
	     page = *(u64 *)(vol->base + page))
		claim(&a, page, 1);
	a.tables = a.leaves = a.large = 0;
	for (i = 0; i < n; i++)
		account_file(&a, &files[i]);
	for (i = vol->sb.data_off / SG_PAGE; i < pages - 1; i++) {
		bool bit = page_used(vol, i);

		if (bit != !!a.owned[i])
			test_fail(__FILE__, __LINE__,
				  "a used page has no owner, or a free page has one");
		used += bit;
	}
	CHECK(sg_free_pages(vol) == pages - 1 - vol->sb.data_off / SG_PAGE - used);
	free(a.owned);
	if (out)
		*out = a;
}

#endif
