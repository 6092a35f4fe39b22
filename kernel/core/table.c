// SPDX-License-Identifier: GPL-2.0
/*
 * File tables: checked entries, the walk, growth (P1 3.4, D5). docs/file-tables.md has the protocol.
 *
 * A table may be changed under us by anybody who can write the volume (D10). So each entry is
 * loaded once, what was loaded is checked before it is followed, and nothing else is believed.
 */
#include "internal.h"

#define WALK_ROUNDS	64	/* pieces of tables that one walk joins; the caller asks again */
#define ADD_RESERVE	32	/* words that adding needs besides the entries of one table */

/* --- entries --------------------------------------------------------------------------------- */

/* @bytes from @off on are pages that the allocator hands out. */
static inline bool data_bytes(const struct sg_vol *vol, u64 off, u64 bytes)
{
	u64 room = vol->size - SG_PAGE - vol->sb.data_off;

	/* an offset below data_off wraps around and is far too large */
	return bytes <= room && off - vol->sb.data_off <= room - bytes;
}

static inline enum sg_entry entry_kind(const struct sg_vol *vol, u64 e, unsigned int level,
				       u64 *off)
{
	u64 flags = e & ~SG_PTE_ADDR, addr = e & SG_PTE_ADDR, span;

	if (!e)
		return SG_ENTRY_NONE;
	*off = addr - vol->sb.phys;
	if (level > 1 && flags == SG_PTE_TABLE)
		return data_bytes(vol, *off, SG_PAGE) ? SG_ENTRY_TABLE : SG_ENTRY_BAD;
	if (level > 3 || flags != (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF))
		return SG_ENTRY_BAD;
	span = sg_level_pages(level) << SG_PAGE_SHIFT;
	return !(addr & (span - 1)) && data_bytes(vol, *off, span) ? SG_ENTRY_LEAF : SG_ENTRY_BAD;
}

enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off)
{
	return entry_kind(vol, e, level, off);
}

static inline enum sg_entry root_kind(const struct sg_vol *vol, u64 root, u64 *off)
{
	const u64 height = 7ULL << SG_ROOT_HEIGHT_SHIFT;

	if (!root)
		return SG_ENTRY_NONE;
	*off = (root & SG_PTE_ADDR) - vol->sb.phys;
	if ((root & ~SG_PTE_ADDR & ~height) != SG_PTE_TABLE || !data_bytes(vol, *off, SG_PAGE) ||
	    SG_ROOT_HEIGHT(root) > SG_TABLE_LEVELS)
		return SG_ENTRY_BAD;
	return root & height ? SG_ENTRY_TABLE : SG_ENTRY_LEAF;
}

enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off)
{
	return root_kind(vol, root, off);
}

u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 root = sg_iget(vol, ref, table), off;

	return root_kind(vol, root, &off) == SG_ENTRY_TABLE ? root : 0;
}

/* --- the walk -------------------------------------------------------------------------------- */

/**
 * struct spot - what a table says of one page.
 * @entry: where its entry is; @e: what was loaded from there.
 * @off: leaf: volume offset of the page itself.
 * @after: entries behind it in the same table.
 */
struct spot {
	const u64 *entry;
	u64 e, off;
	unsigned int level, after;
};

static inline enum sg_entry find(const struct sg_vol *vol, u64 root, u64 page, struct spot *s)
{
	unsigned int level = SG_ROOT_HEIGHT(root), i;
	enum sg_entry kind;
	u64 off = 0;

	kind = root_kind(vol, root, &off);
	if (kind == SG_ENTRY_LEAF)
		*s = (struct spot){ .e = root, .off = off, .level = 1 };
	while (kind == SG_ENTRY_TABLE) {
		i = (unsigned int)(page >> (9 * (level - 1))) & (SG_TABLE_ENTRIES - 1);
		s->entry = (const u64 *)(vol->base + off) + i;
		s->e = sg_load64(s->entry);
		s->level = level;
		s->after = SG_TABLE_ENTRIES - 1 - i;
		kind = entry_kind(vol, s->e, level, &off);
		s->off = off + ((page & (sg_level_pages(level) - 1)) << SG_PAGE_SHIFT);
		level--;
	}
	return kind;
}

/* Pages from @page on that the entries at and behind @s map in a row, or leave empty in a row. */
static inline u64 extent(const struct sg_vol *vol, const struct spot *s, u64 page, u64 want)
{
	u64 span = sg_level_pages(s->level), n = span - (page & (span - 1)), e = s->e;
	u64 step = e ? span << SG_PAGE_SHIFT : 0;
	unsigned int left;

	for (left = s->after; left && n < want; left--, n += span) {
		e += step;
		if (sg_load64(s->entry + 1 + (s->after - left)) != e)
			break;
	}
	/* the entries behind the first are right if they lie inside */
	if (step)
		n = SG_MIN(n, (vol->size - SG_PAGE - s->off) >> SG_PAGE_SHIFT);
	return SG_MIN(n, want);
}

int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run)
{
	u64 root = sg_iget(vol, ref, table);
	u64 top = root ? sg_level_pages(SG_ROOT_HEIGHT(root) + 1) : 0;
	unsigned int round;
	u64 n = 0, piece;

	run->off = 0;
	run->level = 1;
	for (round = 0; n < want && round < WALK_ROUNDS; round++) {
		enum sg_entry kind = SG_ENTRY_NONE;
		struct spot s;

		if (page + n >= top) {
			if (!run->off)
				n = want;
			break;
		}
		kind = find(vol, root, page + n, &s);
		if (kind == SG_ENTRY_BAD) {
			if (n)
				break;
			return sg_damaged(vol, ref->ino, page << SG_PAGE_SHIFT, "file table");
		}
		if (kind == SG_ENTRY_NONE)
			s.off = 0;
		if (n && s.off != (run->off ? run->off + (n << SG_PAGE_SHIFT) : 0))
			break;
		piece = extent(vol, &s, page + n, want - n);
		if (!n) {
			u64 span = sg_level_pages(s.level);

			run->off = s.off;
			run->level = s.off && piece <= span - (page & (span - 1)) ? s.level : 1;
		} else {
			run->level = 1;
		}
		n += piece;
	}
	run->pages = n;
	return 0;
}

/* --- growth ---------------------------------------------------------------------------------- */

/**
 * struct place - an entry of a file's table as a transaction sees it.
 * @fresh: its table was taken by this transaction: nobody sees it, it is stored to directly.
 */
struct place {
	u64 off, e;
	unsigned int level;
	bool fresh;
};

static u64 entry_off(u64 table, unsigned int level, u64 page)
{
	return table + 8 * (page >> (9 * (level - 1)) & (SG_TABLE_ENTRIES - 1));
}

static void place_set(struct sg_tx *tx, struct place *p, u64 e)
{
	p->e = e;
	if (p->fresh) {
		sg_fresh_set(tx->vol, p->off, e);
		sg_wb(sg_at(tx->vol, p->off), 8);
	} else {
		sg_tx_set(tx, p->off, e);
	}
}

static int take_table(struct sg_tx *tx, const struct sg_iref *ref, u64 *off)
{
	int err = sg_take_page(tx, SG_USE_META, off);

	if (err)
		return err;
	sg_fresh_zero(tx->vol, *off, SG_PAGE);
	sg_tx_iset(tx, ref, blocks, sg_tx_iget(tx, ref, blocks) + 1);
	return 0;
}

static int bad_table(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	int err = sg_damaged(tx->vol, ref->ino, page << SG_PAGE_SHIFT, "file table");

	sg_tx_fail(tx, err);
	return err;
}

/* Height of a table that has room for @page. */
static unsigned int height_for(u64 page)
{
	unsigned int h = 1;

	while (page >= sg_level_pages(h + 1))
		h++;
	return h;
}

/* Makes the table at least @height high; what there was becomes its first entry. */
static int raise_root(struct sg_tx *tx, const struct sg_iref *ref, unsigned int height)
{
	u64 root = sg_tx_iget(tx, ref, table), old = 0, off;
	enum sg_entry kind = root_kind(tx->vol, root, &old);
	unsigned int h = SG_ROOT_HEIGHT(root);
	int err;

	if (kind == SG_ENTRY_BAD)
		return bad_table(tx, ref, 0);
	if (kind != SG_ENTRY_NONE && h >= height)
		return 0;
	if (kind == SG_ENTRY_NONE)
		h = height - 1;
	for (; h < height; h++) {
		err = take_table(tx, ref, &off);
		if (err)
			return err;
		if (old) {
			sg_fresh_set(tx->vol, off, h ? sg_link_entry(tx->vol, old) :
				     sg_leaf(tx->vol, old, 1));
			sg_wb(sg_at(tx->vol, off), 8);
		}
		old = off;
	}
	sg_tx_iset(tx, ref, table, SG_ROOT(sg_link_entry(tx->vol, old), height));
	return 0;
}

/*
 * Goes down to the entry for @page at @level, or stops above it at an entry that is no table.
 * The table is high enough. A table is fresh when the word that names it is this transaction's,
 * except that a fresh root's first entry may name the table that was there before.
 */
static int descend(struct sg_tx *tx, const struct sg_iref *ref, u64 page, unsigned int level,
		   struct place *p)
{
	struct sg_vol *vol = tx->vol;
	u64 root = sg_tx_iget(tx, ref, table), was = sg_iget(vol, ref, table), old = 0, off;

	if (root_kind(vol, was, &old) != SG_ENTRY_TABLE)
		old = 0;
	if (root_kind(vol, root, &off) != SG_ENTRY_TABLE)
		return bad_table(tx, ref, page);
	p->fresh = root != was;
	p->level = SG_ROOT_HEIGHT(root);
	for (;;) {
		enum sg_entry kind;

		p->off = entry_off(off, p->level, page);
		p->e = sg_tx_get(tx, p->off);
		kind = entry_kind(vol, p->e, p->level, &off);
		if (kind == SG_ENTRY_BAD)
			return bad_table(tx, ref, page);
		if (p->level == level || kind != SG_ENTRY_TABLE)
			return 0;
		p->fresh = p->fresh ? off != old : p->e != sg_get(vol, p->off);
		p->level--;
	}
}

/* As descend(), with tables put where there were none. */
static int reach(struct sg_tx *tx, const struct sg_iref *ref, u64 page, unsigned int level,
		 struct place *p)
{
	u64 off;
	int err;

	for (;;) {
		err = descend(tx, ref, page, level, p);
		if (err || p->level == level)
			return err;
		if (p->e)	/* a large leaf where a hole was expected */
			return bad_table(tx, ref, page);
		err = take_table(tx, ref, &off);
		if (err)
			return err;
		place_set(tx, p, sg_link_entry(tx->vol, off));
	}
}

/* Fills @n entries, all in one table. */
static int fill(struct sg_tx *tx, const struct sg_iref *ref, struct place *p, u64 page, u64 off,
		u64 n)
{
	u64 span = sg_level_pages(p->level), first = p->off, i;

	for (i = 0; i < n; i++, p->off += 8) {
		u64 e = sg_leaf(tx->vol, off + (i * span << SG_PAGE_SHIFT), p->level);

		if (i)
			p->e = p->fresh ? sg_get(tx->vol, p->off) : sg_tx_get(tx, p->off);
		if (p->e)
			return bad_table(tx, ref, page + i * span);
		if (p->fresh)
			sg_fresh_set(tx->vol, p->off, e);
		else
			sg_tx_set(tx, p->off, e);
	}
	if (p->fresh)
		sg_wb(sg_at(tx->vol, first), 8 * n);
	return tx->err;
}

/* No table below level 2 covers @page, as this transaction sees it. */
static bool no_leaf_table(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	u64 root = sg_tx_iget(tx, ref, table), off;
	struct place p;

	if (root_kind(tx->vol, root, &off) != SG_ENTRY_TABLE ||
	    page >= sg_level_pages(SG_ROOT_HEIGHT(root) + 1))
		return page || !root;
	return !descend(tx, ref, page, 1, &p) && p.level > 1 && !p.e;
}

u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want, bool *large)
{
	u64 left = SG_TABLE_ENTRIES - (page & (SG_TABLE_ENTRIES - 1)), room;
	bool fresh = no_leaf_table(tx, ref, page);

	*large = fresh && left == SG_CHUNK_PAGES && want >= SG_CHUNK_PAGES;
	if (!fresh) {
		room = sg_tx_room(tx);
		left = SG_MIN(left, room > ADD_RESERVE ? room - ADD_RESERVE : 0);
	}
	return SG_MIN(left, want);
}

int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages)
{
	unsigned int level = 1, height;
	struct place p;
	int err;

	SG_ASSERT(pages && sg_data_range(tx->vol, off, pages));
	SG_ASSERT(page + pages <= SG_FILE_MAX >> SG_PAGE_SHIFT);
	if (tx->err)
		return tx->err;
	sg_tx_iset(tx, ref, blocks, sg_tx_iget(tx, ref, blocks) + pages);
	if (!page && pages == 1 && !sg_tx_iget(tx, ref, table)) {
		sg_tx_iset(tx, ref, table, SG_ROOT(sg_leaf(tx->vol, off, 1), 0));
		return tx->err;
	}
	if (pages == SG_CHUNK_PAGES && !(off & (SG_CHUNK - 1)) &&
	    !(page & (SG_CHUNK_PAGES - 1)) && no_leaf_table(tx, ref, page))
		level = 2;
	height = SG_MAX(height_for(page + pages - 1), level);
	err = raise_root(tx, ref, height);
	while (!err && pages) {
		u64 n = SG_TABLE_ENTRIES - (page & (SG_TABLE_ENTRIES - 1));

		n = SG_MIN(n, pages);
		err = reach(tx, ref, page, level, &p);
		if (!err)
			err = fill(tx, ref, &p, page, off, level > 1 ? 1 : n);
		page += n;
		off += n << SG_PAGE_SHIFT;
		pages -= n;
	}
	return err;
}

/* --- splitting ------------------------------------------------------------------------------- */

int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	u64 root = sg_tx_iget(tx, ref, table), leaf, table, i;
	struct place p;
	int err;

	if (tx->err)
		return tx->err;
	if (root_kind(tx->vol, root, &leaf) != SG_ENTRY_TABLE ||
	    page >= sg_level_pages(SG_ROOT_HEIGHT(root) + 1))
		return 0;
	for (;;) {
		err = descend(tx, ref, page, 1, &p);
		if (err || p.level == 1 || !p.e || !(page & (sg_level_pages(p.level) - 1)))
			return err;
		err = take_table(tx, ref, &table);
		if (err == -ENOSPC)
			tx->err = 0;	/* nothing was taken: the caller has another way */
		if (err)
			return err;
		leaf = (p.e & SG_PTE_ADDR) - tx->vol->sb.phys;
		for (i = 0; i < SG_TABLE_ENTRIES; i++)
			sg_fresh_set(tx->vol, table + 8 * i, sg_leaf(tx->vol, leaf +
				     (i * sg_level_pages(p.level - 1) << SG_PAGE_SHIFT), p.level - 1));
		sg_wb(sg_at(tx->vol, table), SG_PAGE);
		place_set(tx, &p, sg_link_entry(tx->vol, table));
	}
}
