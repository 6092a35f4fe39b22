// SPDX-License-Identifier: GPL-2.0
/*
 * Cutting pages out of file tables, and reclaiming them (D7; docs/file-tables.md).
 *
 * A cut clears entries, and defers the free of their targets: pages, or a table with everything
 * below it. So a few words cut most of a large file. When no system can read the table any more,
 * reclaim follows in bounded steps, one per transaction.
 */
#include "internal.h"

/* words to keep free: for words that callers add, and for a last run */
#define CUT_ROOM	25
/* number of entries to read per transaction, to bound its time */
#define CUT_LOOKS	(1u << 18)
/* words to keep free: for a run's bitmap, and for the remainders of children */
#define RECLAIM_WORDS	40

static u64 entry_at(u64 table, u64 i)
{
	return table + 8 * i;
}

static void cut_bad(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	sg_tx_fail(tx, sg_table_wrong(tx->vol, ref, page));
}

/*
 * Subtracts cut pages from the file's number of pages, which bounds the cut: the cut of a table
 * that names itself would not end otherwise.
 */
static void cut_blocks(struct sg_tx *tx, const struct sg_iref *ref, u64 pages)
{
	u64 have = sg_tx_iget(tx, ref, blocks);

	if (pages > have || have > sg_bound(tx->vol) >> SG_PAGE_SHIFT)
		sg_tx_fail(tx, sg_damaged(tx->vol, ref->ino, 0, "file with too many blocks"));
	sg_tx_iset(tx, ref, blocks, have - pages);
}

/* Makes other systems check again their windows, shadows and mappings of the file (D9). */
void sg_count_cut(struct sg_tx *tx, const struct sg_iref *ref)
{
	sg_tx_iset(tx, ref, cuts, sg_tx_iget(tx, ref, cuts) + 1);
}

/* --- cutting --------------------------------------------------------------------------------- */

/**
 * struct cut - a cut in progress.
 * @page: the cut is complete up to this page. @end: the first page that remains.
 * @run, @run_pages: contiguous pages that have been cut but not yet deferred.
 * @looks: number of entries read.
 */
struct cut {
	struct sg_tx *tx;
	const struct sg_iref *ref;
	u64 page, end;
	u64 run, run_pages, pages;
	unsigned int looks;
	bool full;
};

static void defer_pending(struct cut *c)
{
	if (c->run_pages)
		sg_defer_run(c->tx, c->run, c->run_pages);
	c->run_pages = 0;
}

static void table_cut_pages(struct cut *c, u64 off, u64 pages)
{
	if (c->run_pages && (off != c->run + (c->run_pages << SG_PAGE_SHIFT) ||
			     c->run_pages + pages > 2 * SG_CHUNK_PAGES))
		defer_pending(c);
	if (!c->run_pages)
		c->run = off;
	c->run_pages += pages;
	c->pages += pages;
}

static bool cut_full(struct cut *c)
{
	if (sg_tx_room(c->tx) < CUT_ROOM || c->looks > CUT_LOOKS || c->tx->err)
		c->full = true;
	return c->full;
}

/* Reports whether entries [from, to) of a table are empty. */
static bool empty_between(struct cut *c, u64 table, u64 from, u64 to)
{
	for (; from < to; from++, c->looks++)
		if (sg_get(c->tx->vol, entry_at(table, from)))
			return false;
	return true;
}

/*
 * Reports whether no entry of the table (of @level, for pages from @base on) remains after the cut.
 */
static bool nothing_stays(struct cut *c, u64 table, unsigned int level, u64 base)
{
	u64 span = sg_level_pages(level), pages = span * SG_TABLE_ENTRIES;
	u64 from = SG_MAX(c->page, base) - base, to = SG_MIN(c->end, base + pages) - base;

	/* an entry that lies partly in the range remains */
	return empty_between(c, table, 0, (from + span - 1) / span) &&
	       empty_between(c, table, to / span, SG_TABLE_ENTRIES);
}

/* Returns the number of pages below a table of level 1 or 2, including the table itself. */
static u64 count_pages(struct cut *c, u64 table, unsigned int level, u64 base)
{
	u64 n = 1, span = sg_level_pages(level), off, i;

	for (i = 0; i < SG_TABLE_ENTRIES; i++, c->looks++) {
		u64 e = sg_get(c->tx->vol, entry_at(table, i));

		switch (sg_entry_kind(c->tx->vol, e, level, &off)) {
		case SG_ENTRY_NONE:
			break;
		case SG_ENTRY_LEAF:
			n += span;
			break;
		case SG_ENTRY_TABLE:
			n += count_pages(c, off, level - 1, base + i * span);
			break;
		case SG_ENTRY_BAD:
			cut_bad(c->tx, c->ref, base + i * span);
			return n;
		}
	}
	return n;
}

static void cut_table(struct cut *c, u64 table, unsigned int level, u64 base)
{
	c->pages += count_pages(c, table, level, base);
	sg_defer_free(c->tx, level, table >> SG_PAGE_SHIFT, 0);
}

static bool cut_in(struct cut *c, u64 table, unsigned int level, u64 base);

/*
 * Splits a leaf of 1 GiB before it is cut, because one deferred free cannot name so many pages. A
 * table of 2 MiB leaves is one deferred free. If there is no page for the table, the transaction
 * ends here, as its cut pages may later provide the missing page. False: there is no table.
 */
static bool without_giant(struct cut *c, u64 at, u64 *e, unsigned int level, u64 first)
{
	u64 off;
	int err;

	if (level != 3 || sg_entry_kind(c->tx->vol, *e, level, &off) != SG_ENTRY_LEAF)
		return true;
	err = sg_table_split(c->tx, c->ref, first + SG_CHUNK_PAGES);
	*e = sg_tx_get(c->tx, at);
	if (err == -ENOSPC && c->pages)
		c->full = true;
	else if (err == -ENOSPC)
		sg_tx_fail(c->tx, -ENOSPC);
	return !err;
}

/* Cuts one entry that is not empty. Returns whether the entry is empty now. */
static bool cut_entry(struct cut *c, u64 at, u64 e, unsigned int level, u64 first)
{
	u64 span = sg_level_pages(level), off;

	if (!without_giant(c, at, &e, level, first))
		return false;
	switch (sg_entry_kind(c->tx->vol, e, level, &off)) {
	case SG_ENTRY_LEAF:
		if (first >= c->page && first + span <= c->end) {
			table_cut_pages(c, off, span);
			break;
		}
		if (c->pages)
			/* the cut stops here; the caller splits the leaf and continues */
			c->full = true;
		else
			sg_tx_fail(c->tx, -EAGAIN);
		return false;
	case SG_ENTRY_TABLE:
		if (level <= 3 && nothing_stays(c, off, level - 1, first))
			cut_table(c, off, level - 1, first);
		else if (cut_in(c, off, level - 1, first))
			table_cut_pages(c, off, 1);
		else
			return false;
		break;
	default:
		cut_bad(c->tx, c->ref, first);
		return false;
	}
	sg_tx_set(c->tx, at, 0);
	return true;
}

/*
 * Cuts the range out of a table. Returns whether the table is empty afterwards. Recurses once per
 * level, so at most four deep.
 */
static bool cut_in(struct cut *c, u64 table, unsigned int level, u64 base)
{
	u64 span = sg_level_pages(level), i = (SG_MAX(c->page, base) - base) / span;
	bool empty = empty_between(c, table, 0, i);

	for (; i < SG_TABLE_ENTRIES; i++) {
		u64 first = base + i * span, at = entry_at(table, i), e;

		if (first >= c->end)
			return empty && empty_between(c, table, i, SG_TABLE_ENTRIES);
		e = sg_tx_get(c->tx, at);
		c->looks++;
		if (e && (cut_full(c) || !cut_entry(c, at, e, level, first)))
			empty = false;
		if (c->full || c->tx->err)
			return false;
		c->page = SG_MAX(c->page, SG_MIN(first + span, c->end));
	}
	return empty;
}

int sg_table_cut(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 end, u64 *next)
{
	struct cut c = { .tx = tx, .ref = ref, .page = page, .end = end };
	u64 root = sg_tx_iget(tx, ref, table), off;
	unsigned int height = SG_ROOT_HEIGHT(root);
	u64 top = sg_level_pages(height + 1);

	*next = page;
	if (tx->err)
		return tx->err;
	switch (sg_root_kind(tx->vol, root, &off)) {
	case SG_ENTRY_NONE:
		c.page = end;
		break;
	case SG_ENTRY_BAD:
		cut_bad(tx, ref, 0);
		return tx->err;
	case SG_ENTRY_LEAF:
		if (!page && end && !cut_full(&c)) {
			table_cut_pages(&c, off, 1);
			sg_tx_iset(tx, ref, table, 0);
		}
		break;
	case SG_ENTRY_TABLE:
		c.end = SG_MIN(end, top);
		if (page >= c.end || cut_full(&c))
			break;
		if (height <= 2 && nothing_stays(&c, off, height, 0))
			cut_table(&c, off, height, 0);
		else if (cut_in(&c, off, height, 0))
			table_cut_pages(&c, off, 1);
		else
			break;
		c.full = false;
		c.page = c.end;
		sg_tx_iset(tx, ref, table, 0);
		break;
	}
	defer_pending(&c);
	if (c.pages) {
		cut_blocks(tx, ref, c.pages);
		sg_count_cut(tx, ref);
	}
	*next = c.full ? c.page : end;
	return tx->err;
}

/*
 * Returns the number of pages of the extended attributes, which remain when the table is cut off.
 */
static u64 table_cut_xattr_pages(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 head = sg_tx_iget(tx, ref, xattr);

	if (!head || !sg_data_page(tx->vol, head))
		return 0;
	return 1 + sg_tx_get(tx, head + offsetof(struct sg_xattr_head, pages));
}

void sg_table_drop(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 root = sg_tx_iget(tx, ref, table), off;

	switch (sg_root_kind(tx->vol, root, &off)) {
	case SG_ENTRY_NONE:
		return;
	case SG_ENTRY_LEAF:
		sg_defer_run(tx, off, 1);
		break;
	case SG_ENTRY_TABLE:
		sg_defer_free(tx, SG_ROOT_HEIGHT(root), off >> SG_PAGE_SHIFT, 0);
		break;
	case SG_ENTRY_BAD:
		/*
		 * the file can still be removed; fsck finds the pages without a reference
		 */
		sg_table_wrong(tx->vol, ref, 0);
		break;
	}
	sg_tx_iset(tx, ref, table, 0);
	sg_count_cut(tx, ref);
	sg_tx_iset(tx, ref, blocks,
		   SG_MIN(table_cut_xattr_pages(tx, ref), sg_tx_iget(tx, ref, blocks)));
}

/* --- reclaim --------------------------------------------------------------------------------- */

static unsigned int table_cut_reclaim_in(struct sg_tx *tx, u64 table, unsigned int level,
					 unsigned int i);

/* Returns the number of contiguous pages in one chunk that the level 1 entries from @i on name. */
static unsigned int run_at(const struct sg_vol *vol, u64 table, unsigned int i, u64 e)
{
	unsigned int n = 1;

	while (i + n < SG_TABLE_ENTRIES && ((e & SG_PTE_ADDR) + n * SG_PAGE) & (SG_CHUNK - 1) &&
	       sg_get(vol, entry_at(table, i + n)) == e + n * SG_PAGE)
		n++;
	return n;
}

/*
 * Reclaims a leaf of 1 GiB, which is too large for one transaction. The leaf's own first page
 * becomes a table of 2 MiB leaves. The rest of the first 2 MiB becomes a separate deferred free.
 */
static void reclaim_giant(struct sg_tx *tx, u64 off)
{
	u64 i;

	sg_fresh_set(tx->vol, off, 0);
	for (i = 1; i < SG_TABLE_ENTRIES; i++)
		sg_fresh_set(tx->vol, entry_at(off, i),
			     sg_leaf(tx->vol, off + (i << SG_CHUNK_SHIFT), 2));
	sg_wb(sg_at(tx->vol, off), SG_PAGE);
	sg_defer_run(tx, off + SG_PAGE, SG_CHUNK_PAGES - 1);
	sg_defer_free(tx, SG_LEDGER_TABLE + 1, off >> SG_PAGE_SHIFT, 0);
}

static bool has_words(const struct sg_tx *tx)
{
	return tx->n + RECLAIM_WORDS <= SG_AREA_WORDS;
}

/*
 * Reclaims as much of a child as fits into this transaction; the remainder becomes a separate
 * deferred free.
 */
static bool reclaim_child(struct sg_tx *tx, u64 table, unsigned int level)
{
	unsigned int i = table_cut_reclaim_in(tx, table, level, 0);

	if (i < SG_TABLE_ENTRIES)
		sg_defer_free(tx, level, table >> SG_PAGE_SHIFT, i);
	return i == SG_TABLE_ENTRIES;
}

/*
 * Records that the last entry is free but the table is not, so that the entry is not freed again.
 */
static unsigned int table_cut_page_left(struct sg_tx *tx, u64 table)
{
	if (sg_get(tx->vol, entry_at(table, SG_TABLE_ENTRIES - 1)))
		sg_tx_set(tx, entry_at(table, SG_TABLE_ENTRIES - 1), 0);
	return SG_TABLE_ENTRIES - 1;
}

/*
 * Reclaims entries of a table. Returns the entry at which to continue; SG_TABLE_ENTRIES: the table
 * itself is free, too. Recurses once per level, and needs at most one deferred free for each.
 */
static unsigned int table_cut_reclaim_in(struct sg_tx *tx, u64 table, unsigned int level,
					 unsigned int i)
{
	unsigned int n;
	u64 off;

	for (; i < SG_TABLE_ENTRIES; i += n) {
		u64 e = sg_get(tx->vol, entry_at(table, i));

		n = 1;
		if (e && (!has_words(tx) || (level > 1 && sg_tx_room(tx) < 4 * level)))
			return i;
		switch (sg_entry_kind(tx->vol, e, level, &off)) {
		case SG_ENTRY_NONE:
			break;
		case SG_ENTRY_LEAF:
			if (level == 1)
				n = run_at(tx->vol, table, i, e);
			if (level == 3)
				reclaim_giant(tx, off);
			else if (!sg_give_or_defer(tx, off, level == 1 ? n : SG_CHUNK_PAGES))
				return i;
			break;
		case SG_ENTRY_TABLE:
			if (reclaim_child(tx, off, level - 1))
				break;
			return i + 1 < SG_TABLE_ENTRIES ? i + 1 : table_cut_page_left(tx, table);
		case SG_ENTRY_BAD:
			/*
			 * its target remains lost until fsck finds it; the other entries are
			 * reclaimed
			 */
			if (!sg_table_lost(tx->vol, e))
				sg_damaged(tx->vol, 0, table, "file table being freed");
			break;
		}
	}
	if (has_words(tx) && sg_give_or_defer(tx, table, 1))
		return SG_TABLE_ENTRIES;
	return table_cut_page_left(tx, table);
}

int sg_table_reclaim(struct sg_tx *tx, u64 off, unsigned int level, unsigned int *index)
{
	unsigned int i = *index;

	if (level < 1 || level > SG_TABLE_LEVELS || !sg_data_place(tx->vol, off) ||
	    i >= SG_TABLE_ENTRIES)
		return sg_damaged(tx->vol, 0, off, "deferred free of a file table");
	if (!sg_is_lost(tx->vol, off))
		*index = table_cut_reclaim_in(tx, off, level, i);
	else if (sg_give_or_defer(tx, off, 1))	/* a bad page: fsck finds what its entries named */
		*index = SG_TABLE_ENTRIES;
	/*
	 * a chunk is busy, or the ledger has no room for a child's remainder: deferred frees
	 * without children must be reclaimed first
	 */
	if (*index == i && !tx->n)
		sg_tx_fail(tx, tx->busy ? -EBUSY : -ENOSPC);
	return tx->err;
}
