// SPDX-License-Identifier: GPL-2.0
/*
 * Removing a range from a file (collapse) and opening a hole in it (insert), atomic at any size.
 *
 * The code builds a second table next to the one in use, with the same pages in their new places.
 * One transaction then replaces the first table by the second. Before this transaction the new
 * table's pages need an owner. Afterwards the old table's pages and the removed pages need one. The
 * owner is a spare inode without a name, which is deferred and therefore freed in any case. Its
 * data pages become the new table. The transaction swaps: the file gets the new table, and the
 * spare inode gets a table that lists all remaining pages. After a crash before that transaction
 * the file is the old one, after a later crash the new one; nothing is lost.
 *
 * The build takes no lock; if the file changes meanwhile, the build restarts. The file's old tables
 * may then have any bytes. So nothing counts as damage after the file has changed.
 */
#include "internal.h"

#define ATTEMPTS	16
/* extra pages of the pool for rounding, in addition to one in 128 */
#define SLACK		32

/* --- tables being built, in ascending order of pages ----------------------------------------- */

/**
 * struct pool - pages that become tables: the data of the spare inode.
 * @run: the run of these pages in use, from page @run_at on.
 */
struct pool {
	struct sg_vol *vol;
	struct sg_iref spare;
	u64 pages, used, run_at;
	struct sg_run run;
};

/* the file being read; @seq: its change counter at the beginning */
struct source {
	struct sg_vol *vol;
	const struct sg_iref *ref;
	u64 seq;
};

/**
 * struct build - a table under construction; without @pool its pages are only counted. @table,
 * @covers: for each level, the table being filled, and the number of the range that it maps.
 * @tables: number of tables of each level. @large: level of the largest leaf above 1, or 0.
 */
struct build {
	struct pool *pool;
	const struct source *from;
	unsigned int height, large;
	u64 root, leaves, last;
	u64 table[SG_TABLE_LEVELS + 1], covers[SG_TABLE_LEVELS + 1];
	u64 tables[SG_TABLE_LEVELS + 1];
};

/*
 * Reports whether the file is unchanged. A system that changes the file stores the change counter
 * before any page of the file is reused (D7). So an equal counter proves that the bytes read
 * belonged to the file.
 */
static int still_same(const struct source *from)
{
	return sg_read_retry(from->vol, from->ref, from->seq) ? -EAGAIN : 0;
}

static int collapse_too_large(const struct source *from, u64 off)
{
	return still_same(from) ?:
	       sg_damaged(from->vol, from->ref->ino, off, "file table larger than the volume");
}

/*
 * Finds the next run. If a hostile member has freed the spare inode, its record may now belong to
 * another file, whose pages must not become tables.
 */
static int pool_next_run(struct pool *p)
{
	int err = sg_walk(p->vol, &p->spare, p->used, p->pages - p->used, &p->run);

	sg_acquire_fence();	/* the root word was stored after the generation */
	if (!sg_is_same(p->vol, &p->spare))
		return -EAGAIN;
	if (err)
		return err;
	p->run_at = p->used;
	return p->run.off ? 0 : -EAGAIN;
}

static int pool_take(struct pool *p, u64 *off)
{
	int err;

	if (p->used == p->pages)
		return -EAGAIN;	/* the file has grown since its pages were counted */
	if (p->used >= p->run_at + p->run.pages) {
		err = pool_next_run(p);
		if (err)
			return err;
	}
	*off = p->run.off + ((p->used++ - p->run_at) << SG_PAGE_SHIFT);
	return 0;
}

static unsigned int collapse_height_for(u64 last)
{
	unsigned int h = 0;

	while (last >> (9 * h))
		h++;
	return h;
}

static u64 tables_upto(const struct build *b, unsigned int height)
{
	u64 n = 0;
	unsigned int l;

	for (l = 1; l <= height; l++)
		n += b->tables[l];
	return n;
}

static void set_entry(struct build *b, unsigned int level, u64 page, u64 e)
{
	u64 i = page >> (9 * (level - 1)) & (SG_TABLE_ENTRIES - 1);

	if (!b->pool)
		return;
	SG_ASSERT(b->table[level]);
	sg_fresh_set(b->pool->vol, b->table[level] + 8 * i, e);
}

/*
 * Makes the tables for @page, from the root down to @level, and fills these from now on. With a
 * pool, it makes only tables that fit into the counted height. The file may have grown since the
 * count, and the code must not store to a missing table.
 */
static int collapse_reach(struct build *b, u64 page, unsigned int level)
{
	unsigned int l;
	int err;

	/* checked for each entry: after a fence, another system may own the pool's pages */
	if (b->pool && !sg_is_ours(b->pool->vol))
		return sg_declared_dead(b->pool->vol);
	if (b->pool && (level > SG_MAX(b->height, 1u) || page >> (9 * b->height)))
		return -EAGAIN;
	for (l = b->height; l >= level && l; l--) {
		u64 piece = page >> (9 * l);

		if (b->tables[l] && b->covers[l] == piece)
			continue;
		b->tables[l]++;
		b->covers[l] = piece;
		if (!b->pool)
			continue;
		err = pool_take(b->pool, &b->table[l]);
		if (err)
			return err;
		if (l < b->height)
			set_entry(b, l + 1, page, sg_link_entry(b->from->vol, b->table[l]));
		else
			b->root = SG_ROOT(sg_link_entry(b->from->vol, b->table[l]), l);
	}
	return 0;
}

static int put_leaf(struct build *b, u64 page, u64 off, unsigned int level)
{
	int err;

	b->leaves += sg_level_pages(level);
	/* a page is mapped several times */
	if (b->leaves > sg_bound(b->from->vol) >> SG_PAGE_SHIFT)
		return collapse_too_large(b->from, off);
	b->last = page + sg_level_pages(level) - 1;
	if (level > 1)
		b->large = SG_MAX(b->large, level);
	err = collapse_reach(b, page, level);
	if (err)
		return err;
	if (b->height)
		set_entry(b, level, page, sg_leaf(b->from->vol, off, level));
	else	/* a file of one page needs no table */
		b->root = SG_ROOT(sg_leaf(b->from->vol, off, 1), 0);
	return 0;
}

/* Adds contiguous pages at @off; uses large leaves where they fit. */
static int put_run(struct build *b, u64 page, u64 off, u64 pages)
{
	int err = 0;

	while (pages && !err) {
		bool large = pages >= SG_CHUNK_PAGES && !(off & (SG_CHUNK - 1)) &&
			     !(page & (SG_CHUNK_PAGES - 1));
		u64 n = large ? SG_CHUNK_PAGES : 1;

		err = put_leaf(b, page, off, large ? 2 : 1);
		page += n;
		off += n << SG_PAGE_SHIFT;
		pages -= n;
	}
	return err;
}

/* --- the new order --------------------------------------------------------------------------- */

/** struct plan - pages [@from, @end) of the file move to page @to. */
struct plan {
	u64 from, end, to;
};

/* A list under construction: a table whose only purpose is to own its pages. */
struct list {
	struct build b;
	u64 next;
};

static int list_run(struct list *l, u64 off, u64 pages)
{
	u64 to = l->next;

	if (pages >= SG_CHUNK_PAGES && !(off & (SG_CHUNK - 1)))
		to = SG_ALIGN_UP(to, SG_CHUNK_PAGES);
	l->next = to + pages;
	return put_run(&l->b, to, off, pages);
}

/* Calls put_run() or list_run() for all mapped pages in the plan's range. */
static int collapse_move(const struct source *from, const struct plan *plan, struct build *b,
			 struct list *l)
{
	struct sg_vol *vol = from->vol;
	u64 page = plan->from, met = 0, turns = 0;
	struct sg_run run;
	int err;

	while (page < plan->end) {
		err = sg_turn(&turns) ?: still_same(from) ?:
		      sg_walk_bad(vol, from->ref, page, plan->end - page, &run);
		if (err)
			return err;
		met += run.off ? run.pages : 1;		/* an undamaged file maps no page twice */
		if (met > 2 * (sg_bound(vol) >> SG_PAGE_SHIFT))
			return collapse_too_large(from, page << SG_PAGE_SHIFT);
		if (run.off)
			err = b ? put_run(b, plan->to + (page - plan->from), run.off, run.pages) :
				  list_run(l, run.off, run.pages);
		if (err)
			return err;
		page += run.pages;
	}
	return 0;
}

/*
 * Lists the pages of the table itself. *@tables counts them; they are more than the volume's pages
 * only if a table is named twice. Recurses once per level.
 */
static int list_tables(const struct source *from, struct list *l, u64 table, unsigned int level,
		       u64 *tables)
{
	int err = sg_turn(tables) ?: still_same(from) ?: list_run(l, table, 1);
	struct sg_vol *vol = from->vol;
	u64 i, off;

	if (!err && *tables > sg_bound(vol) >> SG_PAGE_SHIFT)
		return collapse_too_large(from, table);
	for (i = 0; level > 1 && i < SG_TABLE_ENTRIES && !err; i++)
		if (sg_entry_kind(vol, sg_get(vol, table + 8 * i), level, &off) == SG_ENTRY_TABLE)
			err = list_tables(from, l, off, level - 1, tables);
	return err;
}

static int list_tables_of(const struct source *from, struct list *l, u64 root)
{
	u64 off, tables = 0;

	switch (sg_root_kind(from->vol, root, &off)) {
	case SG_ENTRY_TABLE:
		return list_tables(from, l, off, SG_ROOT_HEIGHT(root), &tables);
	case SG_ENTRY_BAD:
		return still_same(from) ?:
		       sg_damaged(from->vol, from->ref->ino, root & SG_PTE_ADDR, "file table");
	default:
		return 0;
	}
}

/* --- a collapse or insert -------------------------------------------------------------------- */

/**
 * struct job - one collapse or insert.
 * @keep: the file's pages in their new order; @gone: the pages that leave the file.
 * @root, @size: of the file when it was read. @left: number of its pages that go to the list.
 */
struct job {
	struct source from;
	struct plan keep[2], gone;
	u64 root, size, left;
	struct pool pool;
	struct build file;
	struct list rest;
};

static void start_build(struct job *j, struct build *b, struct pool *pool, unsigned int height)
{
	*b = (struct build){ .from = &j->from, .pool = pool, .height = height };
}

static int build_file(struct job *j)
{
	int err = collapse_move(&j->from, &j->keep[0], &j->file, NULL);

	return err ?: collapse_move(&j->from, &j->keep[1], &j->file, NULL);
}

static int list_rest(struct job *j)
{
	int err = collapse_move(&j->from, &j->gone, NULL, &j->rest);

	if (!err)
		err = list_tables_of(&j->from, &j->rest, j->root);
	j->left = j->rest.b.leaves;
	return err;
}

/*
 * Lists the rest of the pool, and the tables of the pool. The last page may become a table.
 */
static int list_pool(struct job *j)
{
	u64 root = sg_iget(j->from.vol, &j->pool.spare, table), off;
	int err = list_tables_of(&j->from, &j->rest, root);

	while (!err && j->pool.used < j->pool.pages) {
		err = collapse_reach(&j->rest.b, j->rest.next, 1);
		if (err || j->pool.used == j->pool.pages)
			break;
		err = pool_take(&j->pool, &off);
		if (!err)
			err = list_run(&j->rest, off, 1);
	}
	return err;
}

/*
 * Counts the pages that both tables need, and computes their heights; then builds both tables.
 */
static int build(struct job *j)
{
	struct sg_vol *vol = j->from.vol;
	unsigned int height, rest_height;
	u64 need, more;
	int err;

	/* the count assumes full height; tables above the needed height are subtracted */
	start_build(j, &j->file, NULL, SG_TABLE_LEVELS);
	start_build(j, &j->rest.b, NULL, SG_TABLE_LEVELS);
	j->rest.next = 0;
	err = build_file(j) ?: list_rest(j);
	if (err)
		return err;
	/* a large leaf needs a table of the leaf's level, even if it is the only leaf */
	height = j->file.leaves ? SG_MAX(collapse_height_for(j->file.last), j->file.large) : 0;
	need = tables_upto(&j->file, height) + tables_upto(&j->rest.b, SG_TABLE_LEVELS);
	more = need / 128 + SLACK;
	rest_height = SG_MAX(collapse_height_for(j->rest.next + need + 2 * more), 1u);
	j->pool.pages = need + more;
	err = sg_allocate(vol, &j->pool.spare, 0, j->pool.pages);
	if (err)
		return err;
	start_build(j, &j->file, &j->pool, height);
	start_build(j, &j->rest.b, &j->pool, rest_height);
	j->rest.next = 0;
	err = build_file(j) ?: list_rest(j) ?: list_pool(j);
	return err ?: sg_flush(vol, &j->pool.spare, 0, j->pool.pages);
}

/* Swaps the tables in one transaction, if the file has not changed since it was read. */
static int collapse_exchange(struct job *j, u64 size, s64 now)
{
	const struct sg_iref *ref = j->from.ref, *spare = &j->pool.spare;
	struct sg_vol *vol = j->from.vol;
	struct sg_tx *tx;
	int err = sg_lock_inodes(vol, ref, spare);

	if (err)
		return err;
	err = sg_may_store(vol, ref) ?: sg_may_change(vol, spare);
	if (!err && sg_iget(vol, ref, seq) != j->from.seq)
		err = -EAGAIN;
	/*
	 * the distances of pages from the size change, so no stale bytes may remain behind the size
	 */
	if (!err)
		err = sg_zero_mapped(vol, ref, j->size, sg_stale_end(j->size));
	sg_fence();
	if (!err) {
		tx = sg_tx_begin(vol);
		sg_tx_inode(tx, ref);
		sg_tx_inode(tx, spare);
		sg_tx_iset(tx, ref, table, j->file.root);
		sg_count_cut(tx, ref);
		sg_tx_iset(tx, ref, size, size);
		sg_tx_iset(tx, ref, blocks, sg_tx_iget(tx, ref, blocks) - j->left +
			   tables_upto(&j->file, SG_TABLE_LEVELS));
		sg_tx_times(tx, ref, now, now);
		sg_tx_iset(tx, spare, table, j->rest.b.root);
		sg_tx_iset(tx, spare, blocks, j->rest.b.leaves +
			   tables_upto(&j->rest.b, SG_TABLE_LEVELS));
		err = sg_tx_commit(tx);
	}
	sg_unlock_inodes(vol, ref, spare);
	return err;
}

/* Makes the spare inode: without a name, deferred from the start. */
static int make_spare(struct sg_vol *vol, s64 now, struct sg_iref *spare)
{
	const struct sg_new new = { .mode = SG_S_IFREG | 0600, .now = now };
	struct sg_tx *tx = sg_tx_begin(vol);

	if (!sg_inode_take(tx, &new, 0, 0, spare)) {
		/* neither this system nor others may free the inode before its close */
		sg_tmpfile_open(vol, spare);
		sg_defer_kept(tx, spare);
	}
	return sg_tx_commit(tx);
}

/* Checks the request against the file and makes the plan. Returns the new size or -errno. */
static s64 plan_move(struct job *j, bool insert, u64 pos, u64 len)
{
	u64 at = pos >> SG_PAGE_SHIFT, n = len >> SG_PAGE_SHIFT;

	j->keep[0] = (struct plan){ 0, at, 0 };
	if (insert) {
		if (pos >= j->size)
			return -EINVAL;
		if (len > SG_FILE_MAX - j->size)
			return -EFBIG;
		j->keep[1] = (struct plan){ at, SG_FILE_PAGES - n, at + n };
		j->gone = (struct plan){ SG_FILE_PAGES - n, SG_TABLE_PAGES, 0 };
		return (s64)(j->size + len);
	}
	if (pos >= j->size || len >= j->size - pos)
		return -EINVAL;
	j->keep[1] = (struct plan){ at + n, SG_TABLE_PAGES, at };
	j->gone = (struct plan){ at, at + n, 0 };
	return (s64)(j->size - len);
}

static int collapse_attempt(struct job *j, bool insert, u64 pos, u64 len, s64 now)
{
	const struct sg_iref *ref = j->from.ref;
	struct sg_vol *vol = j->from.vol;
	s64 size;
	int err;

	if (sg_is_cutting(vol, ref)) {
		err = sg_finish_cut(vol, ref);
		if (err)
			return err;
	}
	err = sg_read_begin(vol, ref, &j->from.seq);
	if (err)
		return err;
	j->root = sg_iget(vol, ref, table);
	j->size = sg_iget(vol, ref, size);
	if (j->size > SG_FILE_MAX)
		return sg_damaged(vol, ref->ino, ref->off, "inode larger than a file can be");
	size = plan_move(j, insert, pos, len);
	if (size < 0)
		return (int)size;
	j->pool = (struct pool){ .vol = vol };
	err = make_spare(vol, now, &j->pool.spare);
	if (err)
		return err;
	err = build(j);
	if (!err)
		err = collapse_exchange(j, (u64)size, now);
	/*
	 * the use of the spare inode ends here: frees everything that it owns now; if that fails,
	 * it remains deferred
	 */
	sg_close_inode(vol, &j->pool.spare);
	vol->up->evict(vol, &j->pool.spare);
	return err;
}

static int move_range(struct sg_vol *vol, const struct sg_iref *ref, bool insert, u64 pos, u64 len,
		      s64 now)
{
	struct job j = { .from = { .vol = vol, .ref = ref } };
	struct sg_nospace nospace = {};
	/* checked early, because an attempt first builds a table */
	int err = sg_may_write(vol) ?: sg_may_store(vol, ref), wait;
	unsigned int tries;

	if (err)
		return err;
	if (!len || (pos | len) & (SG_PAGE - 1))
		return -EINVAL;
	for (tries = 0; tries < ATTEMPTS; tries++) {
		err = collapse_attempt(&j, insert, pos, len, now);
		if (err == -EAGAIN)
			continue;
		if (err != -ENOSPC)
			break;
		wait = sg_space_again(vol, &nospace);
		if (wait)
			return wait;
	}
	return err;
}

int sg_collapse(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now)
{
	return move_range(vol, ref, false, pos, len, now);
}

int sg_insert(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now)
{
	return move_range(vol, ref, true, pos, len, now);
}
