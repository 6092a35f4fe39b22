// SPDX-License-Identifier: GPL-2.0
/*
 * File tables: checked entries, the walk, growth (P1 3.4, D5). Protocol: docs/file-tables.md.
 *
 * Any system that can write the volume may change a table at any time (D10). So the code loads each
 * entry once, checks the loaded value before it uses the value as a reference, and trusts nothing
 * else.
 */
#include "internal.h"

/* number of parts of tables that one walk joins; for more the caller walks again */
#define WALK_ROUNDS	64
/* words that sg_table_add() needs in addition to the entries of one table */
#define ADD_RESERVE	32
/* words to merge a table into a leaf, which also needs half as many deferred frees */
#define MERGE_ROOM	16

/* --- entries --------------------------------------------------------------------------------- */

/**
 * struct bounds - the range of pages that entries may name.
 * @low: physical address of the first page. @room: bytes from there to the end.
 * @bad: the volume, if it has bad pages.
 */
struct bounds {
	u64 low, room;
	const struct sg_vol *bad;
};

static SG_INLINE struct bounds bounds_of(const struct sg_vol *vol)
{
	return (struct bounds){ vol->sb.phys + vol->sb.data_off,
				sg_bound(vol) - SG_PAGE - vol->sb.data_off,
				sg_has_bad(vol) ? vol : NULL };
}

/*
 * Checks an entry by one comparison. @x is the entry with its expected flags flipped, so right
 * flags leave only the address. A wrong high flag makes the address too large; a wrong low flag
 * breaks its alignment. A volume has room for some pages (sg_geometry()), but not always for a
 * larger leaf. Without the first check, the second subtraction would then wrap, and any address
 * would seem to lie inside.
 */
static SG_INLINE bool names(struct bounds b, u64 x, u64 bytes)
{
	return !(x & (bytes - 1)) && (bytes == SG_PAGE || bytes <= b.room) &&
	       x - b.low <= b.room - bytes;
}

/* Reports whether a table is on a bad page, so that it must not be read. */
static SG_NOINLINE bool is_lost(struct bounds b, u64 e)
{
	u64 x = e ^ SG_PTE_TABLE;

	return b.bad && names(b, x, SG_PAGE) && sg_is_bad(b.bad, x - b.bad->sb.phys, 1);
}

static SG_INLINE bool is_table(struct bounds b, u64 e)
{
	return names(b, e ^ SG_PTE_TABLE, SG_PAGE) && !(b.bad && is_lost(b, e));
}

static SG_INLINE bool is_leaf(struct bounds b, u64 e, unsigned int level)
{
	u64 bytes = sg_level_pages(level) << SG_PAGE_SHIFT;

	if (level == 1)
		return names(b, e ^ SG_PTE_LEAF, SG_PAGE);
	return level < SG_TABLE_LEVELS && names(b, e ^ SG_PTE_LEAF_HUGE, bytes);
}

enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off)
{
	struct bounds b = bounds_of(vol);

	if (!e)
		return SG_ENTRY_NONE;
	*off = (e & SG_PTE_ADDR) - vol->sb.phys;
	if (level > 1 && is_table(b, e))
		return SG_ENTRY_TABLE;
	return is_leaf(b, e, level) ? SG_ENTRY_LEAF : SG_ENTRY_BAD;
}

#define HEIGHT_BITS	(7ULL << SG_ROOT_HEIGHT_SHIFT)

enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off)
{
	struct bounds b = bounds_of(vol);

	if (!root)
		return SG_ENTRY_NONE;
	*off = (root & SG_PTE_ADDR) - vol->sb.phys;
	if (SG_ROOT_HEIGHT(root) > SG_TABLE_LEVELS ||
	    !names(b, (root & ~HEIGHT_BITS) ^ SG_PTE_TABLE, SG_PAGE))
		return SG_ENTRY_BAD;
	if (!(root & HEIGHT_BITS))
		return SG_ENTRY_LEAF;
	return is_table(b, root & ~HEIGHT_BITS) ? SG_ENTRY_TABLE : SG_ENTRY_BAD;
}

bool sg_table_lost(const struct sg_vol *vol, u64 e)
{
	return is_lost(bounds_of(vol), e & ~HEIGHT_BITS);
}

u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 root = sg_iget(vol, ref, table), off;

	return sg_root_kind(vol, root, &off) == SG_ENTRY_TABLE ? root : 0;
}

/* --- the walk -------------------------------------------------------------------------------- */

/**
 * struct spot - the entry of one page in a table.
 * @entry: address of the entry; @e: the value loaded from that address, a leaf or 0.
 * @shift: 9 * (level - 1). @after: number of entries after it in the same table.
 */
struct spot {
	const u64 *entry;
	u64 e;
	unsigned int shift, after;
};

/*
 * Descends to the entry of @page, which must be in the table's range. -EUCLEAN: damaged; -EIO: bad
 * page.
 */
static int table_find(const struct sg_vol *vol, struct bounds b, u64 root, u64 page, struct spot *s)
{
	unsigned int height = SG_ROOT_HEIGHT(root), shift = 9 * height, i;
	u64 e = root & ~HEIGHT_BITS;

	if (!names(b, e ^ SG_PTE_TABLE, SG_PAGE) || height > SG_TABLE_LEVELS)
		return -EUCLEAN;
	if (!height) {
		*s = (struct spot){ .e = e | SG_PTE_NX };
		return 0;
	}
	if (is_lost(b, e))
		return -EIO;
	do {
		shift -= 9;
		i = (unsigned int)(page >> shift) & (SG_TABLE_ENTRIES - 1);
		s->entry = (const u64 *)(vol->base + ((e & SG_PTE_ADDR) - vol->sb.phys)) + i;
		e = sg_load64(s->entry);
	} while (shift && is_table(b, e));
	s->e = e;
	s->shift = shift;
	s->after = SG_TABLE_ENTRIES - 1 - i;
	if (!e || is_leaf(b, e, shift / 9 + 1))
		return 0;
	return shift && is_lost(b, e) ? -EIO : -EUCLEAN;
}

/* Returns the volume offset of @page from its leaf; 0 for a hole. */
static inline u64 page_off(const struct sg_vol *vol, const struct spot *s, u64 page)
{
	u64 in = page & ((1ULL << s->shift) - 1);

	return s->e ? (s->e & SG_PTE_ADDR) - vol->sb.phys + (in << SG_PAGE_SHIFT) : 0;
}

/*
 * Returns the number of pages from @page on that the entries from @s on map contiguously, or that
 * are all holes. *more: the run reaches the end of the table, so the next table may continue it.
 */
static inline u64 extent(const struct sg_vol *vol, const struct spot *s, u64 page, u64 want,
			 bool *more)
{
	u64 span = 1ULL << s->shift, n = span - (page & (span - 1)), e = s->e;
	u64 step = e ? span << SG_PAGE_SHIFT : 0;
	unsigned int i;

	for (i = 1; i <= s->after && n < want; i++, n += span) {
		e += step;
		if (sg_load64(s->entry + i) != e)
			break;
	}
	*more = n < want && i > s->after;
	if (n >= want)
		n = want;
	/*
	 * the first entry was checked; the following ones are right if they continue it and lie
	 * inside
	 */
	if (step && n > span)
		n = SG_MIN(n, (sg_bound(vol) - SG_PAGE - page_off(vol, s, page)) >> SG_PAGE_SHIFT);
	return n;
}

/* Returns the number of pages of @run, including those in further tables that continue it. */
static u64 walk_on(const struct sg_vol *vol, struct bounds b, u64 root, u64 page, u64 want,
		   const struct sg_run *run)
{
	u64 top = sg_level_pages(SG_ROOT_HEIGHT(root) + 1), n = run->pages;
	unsigned int round;
	bool more = true;
	struct spot s;

	for (round = 0; more && round < WALK_ROUNDS; round++) {
		if (page + n >= top)
			return run->off ? n : want;
		if (table_find(vol, b, root, page + n, &s) || page_off(vol, &s, page + n) !=
		    (run->off ? run->off + (n << SG_PAGE_SHIFT) : 0))
			break;
		n += extent(vol, &s, page + n, want - n, &more);
	}
	return n;
}

/*
 * The path of most accesses: finds one page in a leaf of 4 KiB or 2 MiB. Returns its offset, or 0
 * in any other case. It is table_find() without the parts for other cases.
 */
static SG_INLINE u64 single_page(const struct sg_vol *vol, struct bounds b, u64 root, u64 page,
				 unsigned int *level)
{
	unsigned int shift = 9 * SG_ROOT_HEIGHT(root);
	u64 e, x = (root & ~HEIGHT_BITS) ^ SG_PTE_TABLE;

	if (!shift || shift > 9 * SG_TABLE_LEVELS || page >> shift || !names(b, x, SG_PAGE))
		return 0;
	for (;;) {
		shift -= 9;
		e = sg_load64((const u64 *)(vol->base + (x - vol->sb.phys)) +
			      (page >> shift & (SG_TABLE_ENTRIES - 1)));
		if (!shift)
			break;
		x = e ^ SG_PTE_TABLE;
		if (names(b, x, SG_PAGE))
			continue;
		x = e ^ SG_PTE_LEAF_HUGE;
		*level = 2;
		return shift == 9 && names(b, x, SG_CHUNK) ?
		       x - vol->sb.phys + ((page & (SG_CHUNK_PAGES - 1)) << SG_PAGE_SHIFT) : 0;
	}
	x = e ^ SG_PTE_LEAF;
	*level = 1;
	return names(b, x, SG_PAGE) ? x - vol->sb.phys : 0;
}

static SG_NOINLINE int walk_any(const struct sg_vol *vol, struct bounds b, u64 root, u64 page,
				u64 want, struct sg_run *run)
{
	struct spot s;
	bool more;
	int err;

	run->level = 1;
	if (!root || page >> (9 * SG_ROOT_HEIGHT(root))) {
		run->off = 0;
		run->pages = want;
		return 0;
	}
	err = table_find(vol, b, root, page, &s);
	if (err)
		return err;
	run->off = page_off(vol, &s, page);
	run->pages = extent(vol, &s, page, want, &more);
	if (more)
		run->pages = walk_on(vol, b, root, page, want, run);
	if (s.shift && run->off && (page & ((1ULL << s.shift) - 1)) + run->pages <= 1ULL << s.shift)
		run->level = s.shift / 9 + 1;
	return 0;
}

/*
 * Reports damage of a root word, unless another file has the inode number now (D9). The root word
 * was stored after the generation. Callers may read a file that they keep without its lock.
 */
static int no_table(const struct sg_vol *vol, const struct sg_iref *ref, u64 page)
{
	sg_acquire_fence();
	if (!sg_is_same(vol, ref))
		return -ESTALE;
	return sg_damaged(vol, ref->ino, page << SG_PAGE_SHIFT, "file table");
}

/* Cuts the run at the first bad page. */
static SG_NOINLINE int before_bad(const struct sg_vol *vol, struct sg_run *run)
{
	if (run->off)
		run->pages = sg_good_pages(vol, run->off, run->pages);
	return run->pages ? 0 : -EIO;
}

int sg_walk_bad(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
		struct sg_run *run)
{
	int err = -EIO;

	sg_look_begin();
	if (!sg_is_lost(vol, ref->off))
		err = walk_any(vol, bounds_of(vol), sg_iget(vol, ref, table), page, want, run);
	sg_look_end();
	return err == -EUCLEAN ? no_table(vol, ref, page) : err;
}

int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run)
{
	struct bounds b = bounds_of(vol);
	unsigned int level;
	u64 root, off = 0;
	int err = 0;

	if (b.bad)
		return sg_walk_bad(vol, ref, page, want, run) ?: before_bad(vol, run);
	sg_look_begin();
	root = sg_iget(vol, ref, table);
	if (want == 1)
		off = single_page(vol, b, root, page, &level);
	if (off)
		*run = (struct sg_run){ off, 1, level };
	else
		err = walk_any(vol, b, root, page, want, run);
	sg_look_end();
	return err ? no_table(vol, ref, page) : 0;
}

int sg_table_wrong(const struct sg_vol *vol, const struct sg_iref *ref, u64 page)
{
	struct sg_run run;

	if (sg_has_bad(vol) && sg_walk_bad(vol, ref, page, 1, &run) == -EIO)
		return -EIO;
	return sg_damaged(vol, ref->ino, page << SG_PAGE_SHIFT, "file table");
}

/* --- growth ---------------------------------------------------------------------------------- */

/**
 * struct place - an entry of a file's table as a transaction sees it.
 * @fresh: this transaction has allocated the table, so no other system sees it, and entries are
 * stored directly.
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
	int err = sg_table_wrong(tx->vol, ref, page);

	sg_tx_fail(tx, err);
	return err;
}

/* Returns the height that a table needs to reach @page. */
static unsigned int table_height_for(u64 page)
{
	unsigned int h = 1;

	while (page >= sg_level_pages(h + 1))
		h++;
	return h;
}

/* Makes the table at least @height high; the old root becomes its first entry. */
static int raise_root(struct sg_tx *tx, const struct sg_iref *ref, unsigned int height)
{
	u64 root = sg_tx_iget(tx, ref, table), old = 0, off;
	enum sg_entry kind = sg_root_kind(tx->vol, root, &old);
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
 * Descends to the entry for @page at @level, or stops above it at an entry that names no table. The
 * root must be high enough. A table is fresh if this transaction has set the word that names it,
 * with one exception: the first entry of a fresh root may name the old table.
 */
static int descend(struct sg_tx *tx, const struct sg_iref *ref, u64 page, unsigned int level,
		   struct place *p)
{
	struct sg_vol *vol = tx->vol;
	u64 root = sg_tx_iget(tx, ref, table), was = sg_iget(vol, ref, table), old = 0, off;

	if (sg_root_kind(vol, was, &old) != SG_ENTRY_TABLE)
		old = 0;
	if (sg_root_kind(vol, root, &off) != SG_ENTRY_TABLE)
		return bad_table(tx, ref, page);
	p->fresh = root != was;
	p->level = SG_ROOT_HEIGHT(root);
	for (;;) {
		enum sg_entry kind;

		p->off = entry_off(off, p->level, page);
		p->e = sg_tx_get(tx, p->off);
		kind = sg_entry_kind(vol, p->e, p->level, &off);
		if (kind == SG_ENTRY_BAD)
			return bad_table(tx, ref, page);
		if (p->level == level || kind != SG_ENTRY_TABLE)
			return 0;
		p->fresh = p->fresh ? off != old : p->e != sg_get(vol, p->off);
		p->level--;
	}
}

/*
 * As descend(), but adds missing tables. The next turn must find each added table. If it does not,
 * another system stores into the table, which is damage.
 */
static int table_reach(struct sg_tx *tx, const struct sg_iref *ref, u64 page, unsigned int level,
		       struct place *p)
{
	unsigned int above = ~0u;
	u64 off;
	int err;

	for (;; above = p->level) {
		err = descend(tx, ref, page, level, p);
		if (err || p->level == level)
			return err;
		if (p->e || p->level >= above)	/* a large leaf instead of the expected hole */
			return bad_table(tx, ref, page);
		err = take_table(tx, ref, &off);
		if (err)
			return err;
		place_set(tx, p, sg_link_entry(tx->vol, off));
	}
}

/* Fills @n entries of one table. */
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

/* Reports whether @page has no table below level 2, as this transaction sees it. */
static bool no_leaf_table(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	u64 root = sg_tx_iget(tx, ref, table), off;
	struct place p;
	struct spot s;

	if (!root || page >> (9 * SG_ROOT_HEIGHT(root)))
		return true;
	if (!tx->n)	/* the transaction has set no word yet, so it sees the words in place */
		return !table_find(tx->vol, bounds_of(tx->vol), root, page, &s) && s.shift && !s.e;
	return sg_root_kind(tx->vol, root, &off) == SG_ENTRY_TABLE &&
	       !descend(tx, ref, page, 1, &p) && p.level > 1 && !p.e;
}

u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want)
{
	u64 left = SG_TABLE_ENTRIES - (page & (SG_TABLE_ENTRIES - 1)), room;

	if (!no_leaf_table(tx, ref, page)) {
		room = sg_tx_room(tx);
		left = SG_MIN(left, room > ADD_RESERVE ? room - ADD_RESERVE : 0);
	}
	return SG_MIN(left, want);
}

/*
 * Replaces a full level 1 table that maps a complete chunk in order by one large leaf. So reads of
 * a file that grew in small writes are as fast as those of a file that was written in one call.
 */
static void merge(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	struct sg_vol *vol = tx->vol;
	u64 table, first, i;
	struct place p;

	/*
	 * other systems walk the inode file at any time, and quiesce does not wait for these walks
	 */
	if (!ref->ino || sg_tx_room(tx) < MERGE_ROOM || descend(tx, ref, page, 2, &p) ||
	    p.level != 2 || !is_table(bounds_of(vol), p.e))
		return;
	table = (p.e & SG_PTE_ADDR) - vol->sb.phys;
	first = sg_tx_get(tx, table);
	if (first & SG_PTE_ADDR & (SG_CHUNK - 1) ||
	    !is_leaf(bounds_of(vol), first ^ SG_PTE_HUGE, 2))
		return;
	for (i = 1; i < SG_TABLE_ENTRIES; i++)
		if (sg_tx_get(tx, table + 8 * i) != first + (i << SG_PAGE_SHIFT))
			return;
	sg_defer_run(tx, table, 1);
	place_set(tx, &p, first ^ SG_PTE_HUGE);
	sg_tx_iset(tx, ref, blocks, sg_tx_iget(tx, ref, blocks) - 1);
}

int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages)
{
	unsigned int level = 1, height, was = SG_ROOT_HEIGHT(sg_tx_iget(tx, ref, table));
	struct place p;
	int err;

	SG_ASSERT(pages && sg_data_range(tx->vol, off, pages));
	SG_ASSERT(page + pages <= sg_level_pages(SG_TABLE_LEVELS + 1));
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
	height = SG_MAX(table_height_for(page + pages - 1), level);
	err = raise_root(tx, ref, height);
	if (!err && was == 1 && height > 1)
		merge(tx, ref, 0);	/* a root of height 1 has no entry for a large leaf */
	height = SG_MAX(height, was);
	while (!err && pages) {
		u64 n = SG_TABLE_ENTRIES - (page & (SG_TABLE_ENTRIES - 1));

		n = SG_MIN(n, pages);
		err = table_reach(tx, ref, page, level, &p);
		if (!err)
			err = fill(tx, ref, &p, page, off, level > 1 ? 1 : n);
		if (!err && level == 1 && height > 1 && !((page + n) & (SG_CHUNK_PAGES - 1)))
			merge(tx, ref, page);
		page += n;
		off += n << SG_PAGE_SHIFT;
		pages -= n;
	}
	return err;
}

/* --- splitting ------------------------------------------------------------------------------- */

int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page)
{
	u64 root = sg_tx_iget(tx, ref, table), leaf, table, i, step;
	unsigned int above = ~0u;
	struct place p;
	int err;

	if (tx->err)
		return tx->err;
	if (sg_root_kind(tx->vol, root, &leaf) != SG_ENTRY_TABLE ||
	    page >= sg_level_pages(SG_ROOT_HEIGHT(root) + 1))
		return 0;
	for (;; above = p.level) {
		err = descend(tx, ref, page, 1, &p);
		if (err || p.level == 1 || !p.e || !(page & (sg_level_pages(p.level) - 1)))
			return err;
		if (p.level >= above)
			return bad_table(tx, ref, page);
		err = take_table(tx, ref, &table);
		if (err == -ENOSPC)
			/* nothing was taken, so the caller can use another method */
			tx->err = 0;
		if (err)
			return err;
		leaf = (p.e & SG_PTE_ADDR) - tx->vol->sb.phys;
		step = sg_level_pages(p.level - 1) << SG_PAGE_SHIFT;
		for (i = 0; i < SG_TABLE_ENTRIES; i++)
			sg_fresh_set(tx->vol, table + 8 * i,
				     sg_leaf(tx->vol, leaf + i * step, p.level - 1));
		sg_wb(sg_at(tx->vol, table), SG_PAGE);
		place_set(tx, &p, sg_link_entry(tx->vol, table));
	}
}

/* --- replacing ------------------------------------------------------------------------------- */

int sg_table_replace(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 *old)
{
	u64 root = sg_tx_iget(tx, ref, table);
	enum sg_entry kind = sg_root_kind(tx->vol, root, old);
	struct place p;
	int err;

	if (tx->err)
		return tx->err;
	if (kind == SG_ENTRY_LEAF && !page) {
		sg_tx_iset(tx, ref, table, SG_ROOT(sg_leaf(tx->vol, off, 1), 0));
		return tx->err;
	}
	if (kind != SG_ENTRY_TABLE || page >= sg_level_pages(SG_ROOT_HEIGHT(root) + 1))
		return bad_table(tx, ref, page);
	err = descend(tx, ref, page, 1, &p);
	if (err)
		return err;
	if (p.level != 1 || sg_entry_kind(tx->vol, p.e, 1, old) != SG_ENTRY_LEAF)
		return bad_table(tx, ref, page);
	place_set(tx, &p, sg_leaf(tx->vol, off, 1));
	return tx->err;
}
