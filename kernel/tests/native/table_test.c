// SPDX-License-Identifier: Apache-2.0
/* File tables: entries, walk, growth, truncation, reclaim, hostile tables. */
#include "data_util.h"

/* --- entries --------------------------------------------------------------------------------- */

static void test_entries(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	u64 data = SG_ALIGN_UP(vol->sb.data_off, SG_CHUNK), last = vol->size - 2 * SG_PAGE, off;
	u64 leaf = sg_leaf(vol, data, 1), large = sg_leaf(vol, data, 2);
	u64 link = sg_link_entry(vol, data);
	unsigned int bit, level;

	CHECK(sg_entry_kind(vol, 0, 1, &off) == SG_ENTRY_NONE);
	CHECK(sg_entry_kind(vol, leaf, 1, &off) == SG_ENTRY_LEAF && off == data);
	CHECK(sg_entry_kind(vol, large, 2, &off) == SG_ENTRY_LEAF && off == data);
	CHECK(sg_entry_kind(vol, sg_leaf(vol, last, 1), 1, &off) == SG_ENTRY_LEAF && off == last);
	CHECK(sg_entry_kind(vol, sg_leaf(vol, last + SG_PAGE, 1), 1, &off) == SG_ENTRY_BAD);
	CHECK(sg_entry_kind(vol, sg_leaf(vol, vol->sb.data_off - SG_PAGE, 1), 1, &off) ==
	      SG_ENTRY_BAD);
	CHECK(sg_entry_kind(vol, sg_leaf(vol, -SG_PAGE, 1) & ~SG_PTE_NX, 1, &off) == SG_ENTRY_BAD);
	/* the last 2 MiB contain the backup superblock */
	CHECK(sg_entry_kind(vol, sg_leaf(vol, vol->size - SG_CHUNK, 2), 2, &off) == SG_ENTRY_BAD);
	CHECK(sg_entry_kind(vol, large + SG_PAGE, 2, &off) == SG_ENTRY_BAD);
	for (level = 1; level <= 4; level++) {
		CHECK((sg_entry_kind(vol, leaf, level, &off) == SG_ENTRY_LEAF) == (level == 1));
		CHECK((sg_entry_kind(vol, link, level, &off) == SG_ENTRY_TABLE) == (level > 1));
	}
	CHECK(sg_entry_kind(vol, large, 3, &off) == SG_ENTRY_BAD);	/* not aligned to 1 GiB */
	CHECK(sg_entry_kind(vol, large, 4, &off) == SG_ENTRY_BAD);
	/* an entry with any other flag is invalid */
	for (bit = 0; bit < 64; bit++) {
		if (SG_PTE_ADDR >> bit & 1)
			continue;
		CHECK(sg_entry_kind(vol, leaf ^ 1ULL << bit, 1, &off) == SG_ENTRY_BAD);
		if (bit != 7 && bit != 63)
			CHECK(sg_entry_kind(vol, large ^ 1ULL << bit, 2, &off) == SG_ENTRY_BAD);
		CHECK(sg_entry_kind(vol, link ^ 1ULL << bit, 2, &off) == SG_ENTRY_BAD);
	}
	CHECK(sg_root_kind(vol, 0, &off) == SG_ENTRY_NONE);
	CHECK(sg_root_kind(vol, SG_ROOT(leaf, 0), &off) == SG_ENTRY_LEAF && off == data);
	CHECK(sg_root_kind(vol, SG_ROOT(link, 4), &off) == SG_ENTRY_TABLE);
	CHECK(sg_root_kind(vol, SG_ROOT(link, 5), &off) == SG_ENTRY_BAD);
	CHECK(sg_root_kind(vol, link | SG_PTE_NX | 1ULL << 52, &off) == SG_ENTRY_BAD);
	vol_end(vol);
	printf("ok entries\n");
}

/* --- growth and walk ------------------------------------------------------------------------- */

static u64 add(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 pages)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	u64 off, got;

	if (pages == SG_CHUNK_PAGES) {
		CHECK(!sg_take_chunk(tx, 0, &off));
	} else {
		CHECK(!sg_take_run(tx, SG_USE_DATA, 0, pages, &off, &got));
		CHECK(got == pages);
	}
	CHECK(!sg_table_add(tx, ref, page, off, pages));
	sg_tx_inode(tx, ref);
	CHECK(!sg_tx_commit(tx));
	return off;
}

static unsigned int height(struct sg_vol *vol, const struct sg_iref *ref)
{
	return SG_ROOT_HEIGHT(sg_iget(vol, ref, table));
}

static void expect(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want, u64 off,
		   u64 pages, unsigned int level)
{
	struct sg_run run;

	CHECK(!sg_walk(vol, ref, page, want, &run));
	CHECK(run.off == off);
	CHECK(run.pages == pages);
	CHECK(!off || run.level == level);
}

static void test_growth(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f = file_new(vol);
	u64 a, b, c, d, e;

	expect(vol, &f, 0, 7, 0, 7, 1);
	CHECK(sg_root(vol, &f) == 0);
	a = add(vol, &f, 0, 1);
	CHECK(height(vol, &f) == 0 && sg_iget(vol, &f, blocks) == 1 && sg_root(vol, &f) == 0);
	expect(vol, &f, 0, 1, a, 1, 1);
	expect(vol, &f, 0, 100, a, 1, 1);
	expect(vol, &f, 1, 100, 0, 100, 1);
	b = add(vol, &f, 2, 3);
	CHECK(height(vol, &f) == 1 && sg_iget(vol, &f, blocks) == 5);
	CHECK(sg_root(vol, &f) == sg_iget(vol, &f, table));
	expect(vol, &f, 0, 100, a, 1, 1);
	expect(vol, &f, 1, 100, 0, 1, 1);
	expect(vol, &f, 2, 100, b, 3, 1);
	expect(vol, &f, 3, 1, b + SG_PAGE, 1, 1);
	expect(vol, &f, 5, 10000, 0, 10000, 1);
	/* a complete chunk at an aligned position takes one entry */
	c = add(vol, &f, 1024, 512);
	CHECK(height(vol, &f) == 2 && sg_iget(vol, &f, blocks) == 5 + 513);
	expect(vol, &f, 1024, 512, c, 512, 2);
	expect(vol, &f, 1030, 10, c + 6 * SG_PAGE, 10, 2);
	expect(vol, &f, 1024, 10000, c, 512, 2);
	expect(vol, &f, 5, 10000, 0, 1019, 1);
	/* adds pages across the end of a table, then a page that needs the full height */
	d = add(vol, &f, 511, 2);
	expect(vol, &f, 511, 10, d, 2, 1);
	e = add(vol, &f, SG_FILE_PAGES - 1, 1);
	CHECK(height(vol, &f) == 4);
	expect(vol, &f, SG_FILE_PAGES - 1, 1, e, 1, 1);
	expect(vol, &f, SG_FILE_PAGES - 1, 5, e, 1, 1);
	expect(vol, &f, SG_TABLE_PAGES, 5, 0, 5, 1);
	expect(vol, &f, ~0ULL >> 12, 5, 0, 5, 1);
	expect(vol, &f, 511, 10, d, 2, 1);
	expect(vol, &f, 2, 100, b, 3, 1);
	account_volume(vol, &f, 1, NULL);
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok growth\n");
}

/* Tests a high table made in one step, two consecutive large leaves, and sg_table_fit(). */
static void test_fit(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f = file_new(vol), g = file_new(vol), both[2];
	struct sg_tx *tx;
	u64 off, got, off2;

	tx = sg_tx_begin(vol);
	CHECK(sg_table_fit(tx, &f, 0, 1000) == 512);
	CHECK(sg_table_fit(tx, &f, 1, 1000) == 511);
	CHECK(sg_table_fit(tx, &f, 512, 511) == 511);
	CHECK(!sg_take_run(tx, SG_USE_DATA, 0, 200, &off, &got) && got == 200);
	CHECK(!sg_table_add(tx, &f, 100 * 512ULL * 512, off, 200));
	/* the transaction that builds a table sees it, and can add to it again */
	CHECK(sg_table_fit(tx, &f, 100 * 512ULL * 512 + 200, 100) > 0);
	CHECK(sg_table_fit(tx, &f, 100 * 512ULL * 512 + 512, 512) == 512);
	CHECK(!sg_take_run(tx, SG_USE_DATA, off + 200 * SG_PAGE, 100, &off2, &got));
	CHECK(!sg_table_add(tx, &f, 100 * 512ULL * 512 + 200, off2, got));
	sg_tx_inode(tx, &f);
	CHECK(tx->n < 60);	/* entries of fresh tables are not journalled */
	CHECK(!sg_tx_commit(tx));
	expect(vol, &f, 100 * 512ULL * 512, 200, off, 200, 1);
	expect(vol, &f, 100 * 512ULL * 512 + 200, got, off2, got, 1);
	/*
	 * for an existing table, entries need words of the record, and sg_table_fit() counts them
	 */
	tx = sg_tx_begin(vol);
	got = sg_table_fit(tx, &f, 100 * 512ULL * 512 + 300, 212);
	CHECK(got > 100 && got <= 212 && got < sg_tx_room(tx));
	sg_tx_abort(tx);
	/* a small run in a table of level 1 gets no large leaf, even in a large hole */
	tx = sg_tx_begin(vol);
	CHECK(!sg_take_chunk(tx, 0, &off));
	CHECK(!sg_table_add(tx, &g, 512, off, 512));
	CHECK(!sg_take_chunk(tx, off + SG_CHUNK, &off2));
	CHECK(!sg_table_add(tx, &g, 1024, off2, 512));
	CHECK(!sg_tx_commit(tx));
	if (off2 == off + SG_CHUNK)
		expect(vol, &g, 512, 9999, off, 1024, 1);
	expect(vol, &g, 512, 512, off, 512, 2);
	CHECK(sg_iget(vol, &g, blocks) == 1025);
	both[0] = f;
	both[1] = g;
	account_volume(vol, both, 2, NULL);
	/* an abort frees all pages that the transaction took */
	tx = sg_tx_begin(vol);
	CHECK(!sg_take_run(tx, SG_USE_DATA, 0, 50, &off, &got));
	CHECK(!sg_table_add(tx, &g, 1ULL << 30, off, got));
	sg_tx_abort(tx);
	account_volume(vol, both, 2, NULL);
	CHECK(height(vol, &g) == 2);
	file_end(vol, &f);
	file_end(vol, &g);
	vol_end(vol);
	printf("ok fit\n");
}

/* --- truncation ------------------------------------------------------------------------------ */

static unsigned int cut(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 end)
{
	unsigned int steps = 0;

	while (page < end) {
		struct sg_tx *tx = sg_tx_begin(vol);
		u64 next;

		CHECK(!sg_table_cut(tx, ref, page, end, &next));
		sg_tx_inode(tx, ref);
		CHECK(next > page);
		CHECK(!sg_tx_commit(tx));
		page = next;
		CHECK(++steps < 10000);
		sg_reclaim(vol, ~0u);
	}
	return steps;
}

static void split(struct sg_vol *vol, const struct sg_iref *ref, u64 page)
{
	struct sg_tx *tx = sg_tx_begin(vol);

	CHECK(!sg_table_split(tx, ref, page));
	CHECK(!sg_tx_commit(tx));
}

static void test_cut(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f = file_new(vol);
	struct account acc;
	struct sg_run run;
	u64 a, b, i, next;
	struct sg_tx *tx;

	account_volume(vol, &f, 1, NULL);
	add(vol, &f, 0, 1);
	CHECK(cut(vol, &f, 0, 1) == 1);
	CHECK(!sg_iget(vol, &f, table) && !sg_iget(vol, &f, blocks));
	account_volume(vol, &f, 1, NULL);

	add(vol, &f, 0, 1);
	b = add(vol, &f, 10, 20);
	cut(vol, &f, 0, 5);
	expect(vol, &f, 0, 100, 0, 10, 1);
	cut(vol, &f, 12, 14);
	expect(vol, &f, 10, 100, b, 2, 1);
	expect(vol, &f, 12, 100, 0, 2, 1);
	expect(vol, &f, 14, 100, b + 4 * SG_PAGE, 16, 1);
	account_volume(vol, &f, 1, NULL);
	/* removal of the last entries of a table removes the table as well */
	cut(vol, &f, 5, 200);
	CHECK(!sg_iget(vol, &f, table) && !sg_iget(vol, &f, blocks));
	account_volume(vol, &f, 1, NULL);

	/*
	 * removal of a complete large leaf takes one word; for a part, the leaf must be split first
	 */
	a = add(vol, &f, 512, 512);
	add(vol, &f, 1024, 512);
	add(vol, &f, 0, 5);
	tx = sg_tx_begin(vol);
	CHECK(sg_table_cut(tx, &f, 520, 1024, &next) == -EAGAIN);
	sg_tx_abort(tx);
	cut(vol, &f, 1000, 1000);
	split(vol, &f, 512);
	CHECK(!sg_walk(vol, &f, 512, 1, &run) && run.level == 2);
	split(vol, &f, 520);
	expect(vol, &f, 512, 512, a, 512, 1);
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.large == 1 && acc.tables == 3);
	/* 8 pages stay; the removed ones need more words than a transaction has */
	CHECK(cut(vol, &f, 520, 1024) > 2);
	expect(vol, &f, 512, 1000, a, 8, 1);
	CHECK(cut(vol, &f, 520, 1536) == 1);
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.large == 0 && acc.leaves == 13);
	CHECK(cut(vol, &f, 0, SG_TABLE_PAGES) == 1);
	CHECK(!sg_iget(vol, &f, table) && !sg_iget(vol, &f, blocks));
	account_volume(vol, &f, 1, NULL);

	/*
	 * a scattered file of full height, truncated from the middle, from the end, from the start
	 */
	for (i = 0; i < 12; i++) {
		add(vol, &f, (i * 5 + 1) << 28, 3);
		add(vol, &f, ((i * 5 + 1) << 28) + 700, 2);
	}
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.leaves == 60 && height(vol, &f) == 4);
	cut(vol, &f, (11ULL << 28) + 1, (11ULL << 28) + 701);
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.leaves == 57);
	cut(vol, &f, 40ULL << 28, SG_TABLE_PAGES);
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.leaves == 37);
	cut(vol, &f, 0, (31ULL << 28) + 1);
	account_volume(vol, &f, 1, &acc);
	CHECK(acc.leaves == 9);
	cut(vol, &f, 0, SG_TABLE_PAGES);
	CHECK(!sg_iget(vol, &f, table) && !sg_iget(vol, &f, blocks));
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok cut\n");
}

/* --- reclaim --------------------------------------------------------------------------------- */

/* Each page is in another chunk than the previous one, so one step never frees all pages. */
static void test_reclaim(void)
{
	struct sg_vol *vol = vol_new(256 * MIB);
	struct sg_iref f[2];
	u64 i, chunks = vol->sb.chunks, n = 0;

	f[0] = file_new(vol);
	f[1] = file_new(vol);
	for (i = 0; i < 1500; i++) {
		struct sg_tx *tx = sg_tx_begin(vol);
		u64 off, got;

		CHECK(!sg_take_run(tx, SG_USE_DATA, (1 + i * 7 % (chunks - 1)) << SG_CHUNK_SHIFT, 1,
				   &off, &got));
		CHECK(!sg_table_add(tx, &f[i & 1], (i / 2) << (i & 1 ? 0 : 14), off, 1));
		CHECK(!sg_tx_commit(tx));
		n++;
	}
	account_volume(vol, f, 2, NULL);
	CHECK(n == 1500);
	file_end(vol, &f[0]);
	account_volume(vol, &f[1], 1, NULL);
	cut(vol, &f[1], 3, SG_TABLE_PAGES);
	account_volume(vol, &f[1], 1, NULL);
	file_end(vol, &f[1]);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok reclaim\n");
}

/* Marks all free pages as used in the maps, or restores the maps. */
static void fill(struct sg_vol *vol, bool full)
{
	static u64 was_free[4 * GIB >> SG_CHUNK_SHIFT][8];
	struct sg_tx *tx = sg_tx_begin(vol);
	u64 c, i;

	for (c = 0; c < sg_chunks(vol); c++)
		for (i = 0; i < 8; i++) {
			struct sg_chunk *chunk = (void *)(vol->base + sg_chunk_off(vol, c));

			if (full)
				was_free[c][i] = ~chunk->map[i];
			chunk->map[i] ^= was_free[c][i];
			tx->free_pages -= (full ? 1 : -1) * __builtin_popcountll(was_free[c][i]);
		}
	CHECK_OK(sg_tx_commit(tx));
	CHECK(!full || !sg_free_pages(vol));
	sg_space_rebuild_hints(vol);
}

/*
 * Leaves of 1 GiB are valid, although no engine makes them today. The test builds, splits,
 * truncates and frees them.
 */
static void test_giant(void)
{
	struct sg_vol *vol = vol_new(4 * GIB);
	struct sg_iref f = file_new(vol);
	u64 gib = GIB, c, page, i, root, off;
	struct account acc;
	struct sg_tx *tx;
	int turn;

	for (turn = 0; turn < 4; turn++) {
		/* marks the leaf's pages as used, at 1 GiB, where no page is in use yet */
		for (c = gib >> SG_CHUNK_SHIFT; c < 2 * gib >> SG_CHUNK_SHIFT; c++) {
			struct sg_chunk *chunk = (void *)(vol->base + sg_chunk_off(vol, c));

			for (i = 0; i < 8; i++) {
				CHECK(!chunk->map[i]);
				chunk->map[i] = ~0ULL;
			}
		}
		tx = sg_tx_begin(vol);
		tx->free_pages -= gib >> SG_PAGE_SHIFT;
		page = 5ULL << 18;
		CHECK(!sg_take_page(tx, SG_USE_DATA, &off));
		CHECK(!sg_table_add(tx, &f, page - 1, off, 1));	/* makes the upper tables */
		CHECK(!sg_tx_commit(tx));
		root = sg_iget(vol, &f, table);
		CHECK(SG_ROOT_HEIGHT(root) == 3);
		tx = sg_tx_begin(vol);
		sg_tx_set(tx, (root & SG_PTE_ADDR) - TEST_PHYS + 5 * 8, sg_leaf(vol, gib, 3));
		sg_tx_iset(tx, &f, blocks, sg_tx_iget(tx, &f, blocks) + (gib >> SG_PAGE_SHIFT));
		CHECK(!sg_tx_commit(tx));
		sg_space_rebuild_hints(vol);
		expect(vol, &f, page, 1ULL << 18, gib, 1ULL << 18, 3);
		expect(vol, &f, page + 77777, 5, gib + 77777 * SG_PAGE, 5, 3);
		account_volume(vol, &f, 1, &acc);
		CHECK(acc.large == 1 && acc.leaves == 1 + (1 << 18));
		if (turn == 0) {	/* frees the complete file */
			tx = sg_tx_begin(vol);
			sg_table_drop(tx, &f);
			CHECK(!sg_tx_commit(tx));
		} else if (turn == 1) {	/* truncates the complete file */
			cut(vol, &f, 0, SG_TABLE_PAGES);
		/*
		 * punches the complete file on a full volume: freeing the small page first makes
		 * that possible
		 */
		} else if (turn == 2) {
			CHECK_OK(sg_reclaim(vol, ~0u));
			fill(vol, true);
			CHECK_OK(sg_punch(vol, &f, 0, SG_FILE_MAX, 1));
			fill(vol, false);
		} else {		/* truncates a part of the leaf */
			split(vol, &f, page + 1000);
			account_volume(vol, &f, 1, &acc);
			CHECK(acc.large == 511);
			expect(vol, &f, page + 1000, 24, gib + 1000 * SG_PAGE, 24, 1);
			expect(vol, &f, page + 1024, 512, gib + 1024 * SG_PAGE, 512, 2);
			cut(vol, &f, page + 1000, SG_TABLE_PAGES);
			account_volume(vol, &f, 1, &acc);
			CHECK(acc.leaves == 1001);
			cut(vol, &f, 0, SG_TABLE_PAGES);
		}
		CHECK(!sg_iget(vol, &f, table) && !sg_iget(vol, &f, blocks));
		account_volume(vol, &f, 1, NULL);
	}
	file_end(vol, &f);
	vol_end(vol);
	printf("ok giant\n");
}

/* --- hostile tables -------------------------------------------------------------------------- */

static unsigned int damages;
static void on_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	damages++;
}

extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* With any words, no access leaves the volume, and every call returns. */
static void test_hostile(void)
{
	unsigned int i, k, n = (unsigned int)test_amount(500, 4000, 40000);
	struct sg_vol *vol = vol_new(16 * MIB);
	u8 *image = malloc(vol->size);
	struct sg_iref f = file_new(vol);
	u64 t[3];
	struct sg_run run;

	vol->on_damage = on_damage;
	sg_log_hook = quiet;
	add(vol, &f, 3, 5);
	add(vol, &f, 1ULL << 27, 5);
	for (i = 0; i < 3; i++)
		t[i] = add(vol, &f, 20 + i, 1);
	memcpy(image, vol->base, vol->size);
	for (i = 0; i < n; i++) {
		u64 root = sg_link_entry(vol, t[rnd(3)]);

		/* three pages of tables that name each other, data, and random words */
		for (k = 0; k < 3 * 512; k++) {
			u64 e = 0, *at = (u64 *)(vol->base + t[k / 512] + k % 512 * 8);

			switch (rnd(6)) {
			case 0: e = sg_link_entry(vol, t[rnd(3)]); break;
			case 1: e = sg_leaf(vol, rnd(vol->size) & ~(SG_PAGE - 1), 1); break;
			case 2: e = sg_leaf(vol, rnd(8) << SG_CHUNK_SHIFT, 2); break;
			case 3: e = rng_next(&rng); break;
			}
			*at = e;
		}
		*(u64 *)(vol->base + SG_IOFF(&f, table)) = rnd(4) ? SG_ROOT(root, rnd(6)) :
			rng_next(&rng);
		for (k = 0; k < 20; k++) {
			u64 page = rnd(2) ? rnd(SG_TABLE_PAGES) : rnd(4096);
			int err = sg_walk(vol, &f, page, 1 + rnd(5000), &run);

			CHECK(!err || err == -EUCLEAN);
			CHECK(err || (run.pages && run.pages <= 5000));
			CHECK(err || !run.off || sg_data_range(vol, run.off, run.pages));
		}
		if (i % 8 == 0) {
			struct sg_tx *tx = sg_tx_begin(vol);
			u64 next;

			sg_table_cut(tx, &f, rnd(4096), SG_TABLE_PAGES, &next);
			sg_tx_abort(tx);
			tx = sg_tx_begin(vol);
			sg_table_split(tx, &f, rnd(4096));
			sg_tx_abort(tx);
			tx = sg_tx_begin(vol);
			if (!sg_take_run(tx, SG_USE_DATA, 0, 3, &next, &next))
				sg_table_add(tx, &f, rnd(4096), t[0], 3);
			sg_tx_abort(tx);
			tx = sg_tx_begin(vol);
			k = 0;
			sg_table_reclaim(tx, t[0], 1 + (unsigned int)rnd(4), &k);
			sg_tx_abort(tx);
			sg_seek(vol, &f, 0, rnd(2));
			sg_flush(vol, &f, 0, 1000);
		}
		/* the volume was changed, and its pages freed and reclaimed: restores it */
		if (i % 64 == 0) {
			struct sg_tx *tx;
			u64 pos = rnd(4096) << SG_PAGE_SHIFT;

			if (rnd(2))
				*(u64 *)(vol->base + SG_IOFF(&f, size)) = rnd(SG_FILE_MAX);
			if (rnd(2))
				*(u64 *)(vol->base + SG_IOFF(&f, blocks)) = rnd(5000);
			switch (rnd(8)) {
			case 0: sg_insert(vol, &f, pos, 8192, 1); break;
			case 1: sg_collapse(vol, &f, pos, 8192, 1); break;
			case 2: sg_punch(vol, &f, pos + 1, SG_FILE_MAX, 1); break;
			case 3: sg_resize(vol, &f, pos + 1, 1); break;
			case 4: sg_allocate(vol, &f, pos >> SG_PAGE_SHIFT, 600); break;
			case 5: sg_write(vol, &f, pos + 7, image, 100000, 1); break;
			case 6: sg_resize(vol, &f, SG_FILE_MAX, 1); break;
			}
			tx = sg_tx_begin(vol);

			sg_table_drop(tx, &f);
			CHECK(!sg_tx_commit(tx));
			sg_reclaim(vol, 100);
			sg_ledger_close(vol);
			memcpy(vol->base, image, vol->size);
			CHECK(!sg_ledger_open(vol));
		}
	}
	CHECK(damages > 0);
	sg_ledger_close(vol);
	memcpy(vol->base, image, vol->size);
	CHECK(!sg_ledger_open(vol));
	account_volume(vol, &f, 1, NULL);
	free(image);
	file_end(vol, &f);
	vol_end(vol);
	sg_log_hook = NULL;
	printf("ok hostile\n");
}

/*
 * Metadata for later growth may leave less than 2 MiB for data. Any large leaf of such a volume is
 * invalid. A walk for one page has its own check for that.
 */
static void test_little_room(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .chunk_cap = 115000, .areas = 2 };
	struct sg_vol *vol = calloc(1, sizeof(*vol));
	u8 *mem = test_map(16 * MIB);
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	u64 far[] = { 0, 1ULL << 40, -(1ULL << 40), SG_CHUNK, -SG_CHUNK, 14 * MIB }, root, *leaf;
	struct sg_iref f, again;
	struct sg_run run;
	unsigned int i;

	opts.phys = 1ULL << 41;
	CHECK_OK(sg_format(mem, 16 * MIB, &opts, vol->why));
	CHECK_OK(sg_open(vol, mem, 16 * MIB, false, NULL));
	CHECK(vol->size - SG_PAGE - vol->sb.data_off < SG_CHUNK);
	CHECK_OK(sg_join(vol, &test_identity, 0, false));
	vol->on_damage = on_damage;
	sg_log_hook = quiet;
	f = file_new(vol);
	root = add(vol, &f, 0, 1);
	leaf = sg_at(vol, root);
	for (i = 0; i < SG_ARRAY_SIZE(far); i++) {
		*leaf = sg_leaf(vol, far[i], 2);
		sg_store64(sg_at(vol, SG_IOFF(&f, table)), SG_ROOT(sg_link_entry(vol, root), 2));
		CHECK_EQ(sg_walk(vol, &f, 0, 1, &run), -EUCLEAN);
		CHECK_EQ(sg_walk(vol, &f, 0, 2, &run), -EUCLEAN);
	}
	/* the same in the table of all inodes: records would be outside the volume */
	for (i = 0; i < SG_ARRAY_SIZE(far); i++) {
		u64 was = sg_iget(vol, &sys, table);

		*leaf = sg_leaf(vol, far[i], 2);
		sg_store64(sg_at(vol, SG_IOFF(&sys, table)),
			   SG_ROOT(sg_link_entry(vol, root), 2));
		CHECK_EQ(sg_iref(vol, f.ino, &again), -EUCLEAN);
		sg_store64(sg_at(vol, SG_IOFF(&sys, table)), was);
	}
	sg_log_hook = NULL;
	sg_abandon(vol);
	test_unmap(mem, 16 * MIB);
	free(vol);
	printf("ok little room\n");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	rng.state = test_seed();
	test_entries();
	test_growth();
	test_fit();
	test_cut();
	test_reclaim();
	test_giant();
	test_hostile();
	test_little_room();
	return test_done();
}
