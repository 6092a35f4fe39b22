// SPDX-License-Identifier: GPL-2.0
/*
 * Relocation: moves a volume to another base, and rewrites every physical address in it.
 * docs/relocation.md lists their places, and the state after a crash at each store.
 *
 * The superblock records that the volume moves, and the new base. A mark in each entry shows to
 * which of the two bases its address is relative. So any stores may survive a crash, and the two
 * ranges may overlap: the next relocation does the rest. Relocation uses no transactions.
 */
#include "internal.h"

enum step {
	LOOK,	/* stores nothing; checks that everything can be moved */
	MOVE,	/* each entry gets its new address, and the mark */
	SETTLE,	/* all entries are relative to the new base: removes the marks */
};

static const char *const phase[] = { "looking", "moving", "settling" };

/* Bits for this many pages are one allocation: a kernel cannot allocate 2 GiB in one piece. */
#define PIECE_SHIFT	30
#define PIECES		((unsigned int)(SG_VOLUME_MAX >> SG_PAGE_SHIFT >> PIECE_SHIFT))

/**
 * struct move - a volume being moved.
 * @to: the new base, for the first check.
 * @seen: one bit for each table or page of records that this step has found, so that circles end.
 *   It covers all pages that an entry may name; the size is fixed when this system has exclusive
 *   access (hold()).
 * @damage: this step has found damage, which is logged once.
 * @err: ends the step.
 */
struct move {
	struct sg_vol *vol;
	const struct sg_relocate_opts *opts;
	struct sg_relocate_result *res;
	enum step step;
	u64 to;
	u64 *seen[PIECES], pages;
	u64 damage;
	int err;
};

/**
 * struct tree - the owner of the table being walked.
 * @records: the inode file: the tree is that of the inode file, whose pages contain further root
 * words.
 */
struct tree {
	u64 ino;
	bool records;
};

/* --- one entry -------------------------------------------------------------------------------- */

/*
 * Handles damage, which ends the relocation before any store. If a relocation has begun, there was
 * no damage before, so this damage is new. It remains for fsck, which cannot run before the move is
 * complete.
 */
static void damaged(struct move *m, u64 ino, u64 off, const char *what)
{
	int err = m->damage++ ? -EUCLEAN : sg_damaged(m->vol, ino, off, what);

	if (m->step == LOOK || err != -EUCLEAN)
		m->err = err;
}

static bool met_before(struct move *m, u64 off)
{
	u64 page = off >> SG_PAGE_SHIFT, in = page & ((1ULL << PIECE_SHIFT) - 1), *word, bit;
	bool was;

	if (page >= m->pages)
		return true;
	word = &m->seen[page >> PIECE_SHIFT][in >> 6];
	bit = 1ULL << (in & 63);
	was = *word & bit;
	*word |= bit;
	return was;
}

/* Returns the bytes of one allocation. */
static u64 piece_bytes(const struct move *m, unsigned int i)
{
	u64 first = (u64)i << PIECE_SHIFT, all = 1ULL << PIECE_SHIFT;

	return first < m->pages ? SG_ALIGN_UP(SG_MIN(m->pages - first, all), 64) / 8 : 0;
}

static int make_seen(struct move *m)
{
	unsigned int i;

	m->pages = sg_bound(m->vol) >> SG_PAGE_SHIFT;
	for (i = 0; piece_bytes(m, i); i++) {
		m->seen[i] = sg_alloc(piece_bytes(m, i));
		if (!m->seen[i])
			return -ENOMEM;
	}
	return 0;
}

static void forget_seen(struct move *m)
{
	unsigned int i;

	for (i = 0; i < PIECES; i++)
		sg_free(m->seen[i]);
}

/* Returns the entry as if it were relative to sb.phys, so that the ordinary checks apply. */
static u64 plain(const struct move *m, u64 e)
{
	const struct sg_super *sb = &m->vol->sb;

	if (m->step == LOOK || !(e & SG_PTE_MOVED))
		return e;
	return (e & ~SG_PTE_MOVED) - sb->move_to + sb->phys;
}

/*
 * Stores an entry. If this system was fenced and continues, other systems may have changed entries
 * since. If it was live after it loaded the entry, the entry agrees with its copy of the
 * superblock. The store is a compare-and-swap, so no outdated value is stored, whenever this system
 * was stopped.
 */
static void rewrite(struct move *m, u64 at, u64 e, u64 is)
{
	const struct sg_super *sb = &m->vol->sb;

	m->res->entries++;
	if (m->step == MOVE)
		is = (is - sb->phys + sb->move_to) | SG_PTE_MOVED;
	if (is == e)
		return;
	sg_acquire_fence();
	if (!sg_is_ours(m->vol) || sg_cas64(sg_at(m->vol, at), e, is) != e)
		m->err = sg_is_ours(m->vol) ? -EIO : sg_declared_dead(m->vol);
}

/* Checks that large leaves can move: a leaf of 1 GiB can only move by a multiple of 1 GiB. */
static void look_at_leaf(struct move *m, unsigned int level)
{
	u64 bytes = sg_level_pages(level) << SG_PAGE_SHIFT, by = m->to - m->vol->sb.phys;

	if (m->step != LOOK || !(by & (bytes - 1)))
		return;
	sg_snprintf(m->vol->why, sizeof(m->vol->why),
		    "has pages of %llu MiB: the new base must be a multiple of that away from the old one",
		    (unsigned long long)bytes >> 20);
	m->err = -EINVAL;
}

/*
 * Ends the step if the thread is being killed. The move may then be incomplete, as after a crash;
 * the next relocation continues it.
 */
static void rest(struct move *m)
{
	sg_beat(m->vol);
	sg_yield();
	if (!m->err && sg_interrupted())
		m->err = -EINTR;
}

/* --- tables ----------------------------------------------------------------------------------- */

static void walk_records(struct move *m, u64 page, u64 off, u64 pages);
static void relocate_walk_table(struct move *m, const struct tree *t, u64 table, unsigned int level,
				unsigned int first, u64 page);

static void relocate_walk_entry(struct move *m, const struct tree *t, u64 at, unsigned int level,
				u64 page)
{
	u64 e = sg_get(m->vol, at), is = plain(m, e), off = 0;

	switch (sg_entry_kind(m->vol, is, level, &off)) {
	case SG_ENTRY_NONE:
		break;
	case SG_ENTRY_BAD:
		damaged(m, t->ino, at, "file table");
		break;
	case SG_ENTRY_TABLE:
		rewrite(m, at, e, is);
		relocate_walk_table(m, t, off, level - 1, 0, page);
		break;
	case SG_ENTRY_LEAF:
		look_at_leaf(m, level);
		rewrite(m, at, e, is);
		if (t->records)
			walk_records(m, page, off, sg_level_pages(level));
	}
}

/*
 * Finishes a page that has been walked with all its targets, and whose entries may have been
 * rewritten.
 */
static void page_done(struct move *m, u64 off)
{
	const struct sg_relocate_opts *o = m->opts;

	if (m->step == LOOK)
		return;
	sg_wb(sg_at(m->vol, off), SG_PAGE);
	if (!m->err && o->relieve)
		m->err = o->relieve(o->ctx, SG_PAGE);
}

/* Walks a table and all tables below it. Recurses once per level. */
static void relocate_walk_table(struct move *m, const struct tree *t, u64 table, unsigned int level,
				unsigned int first, u64 page)
{
	unsigned int i;

	if (met_before(m, table)) {
		damaged(m, t->ino, table, "file table used twice");
		return;
	}
	for (i = first; i < SG_TABLE_ENTRIES && !m->err; i++)
		relocate_walk_entry(m, t, table + 8 * i, level, page + i * sg_level_pages(level));
	page_done(m, table);
	m->res->tables++;
	rest(m);
}

static void walk_root(struct move *m, const struct tree *t, u64 at)
{
	u64 root = sg_get(m->vol, at), is = plain(m, root), off = 0;

	switch (sg_root_kind(m->vol, is, &off)) {
	case SG_ENTRY_NONE:
		break;
	case SG_ENTRY_BAD:
		damaged(m, t->ino, at, "root of a file table");
		break;
	case SG_ENTRY_TABLE:
		rewrite(m, at, root, is);
		relocate_walk_table(m, t, off, SG_ROOT_HEIGHT(is), 0, 0);
		break;
	case SG_ENTRY_LEAF:
		rewrite(m, at, root, is);
		if (t->records)
			walk_records(m, 0, off, 1);
	}
}

/* --- roots ------------------------------------------------------------------------------------ */

/*
 * Reports whether an inode has a file table. A record without a valid type may be a file that has
 * lost its type: fsck restores the type from its name.
 */
static bool has_table(struct move *m, u64 ino, u64 off)
{
	u64 mode = sg_get(m->vol, off + offsetof(struct sg_inode, mode));

	switch (sg_mode(mode) & SG_S_IFMT) {
	case SG_S_IFREG:
		return true;
	case SG_S_IFDIR:
	case SG_S_IFLNK:
	case SG_S_IFCHR:
	case SG_S_IFBLK:
	case SG_S_IFIFO:
	case SG_S_IFSOCK:
		return false;
	}
	if (mode)
		damaged(m, ino, off, "inode of unknown type");
	return false;
}

static void walk_record_page(struct move *m, u64 ino, u64 off)
{
	unsigned int i;

	for (i = 0; i < SG_INODES_PER_PAGE && !m->err; i++) {
		u64 at = off + i * SG_INODE_SIZE;
		const struct tree t = { .ino = ino + i };

		if (has_table(m, t.ino, at))
			walk_root(m, &t, at + offsetof(struct sg_inode, table));
	}
	page_done(m, off);
}

static void walk_records(struct move *m, u64 page, u64 off, u64 pages)
{
	const struct sg_relocate_opts *o = m->opts;
	u64 end = page + pages, ino;

	for (; page < end && !m->err; page++, off += SG_PAGE) {
		ino = page * SG_INODES_PER_PAGE;
		if (met_before(m, off)) {
			damaged(m, ino, off, "page of inodes used twice");
			return;
		}
		if (!sg_is_lost(m->vol, off))	/* if not, its root words cannot be read */
			walk_record_page(m, ino, off);
		if (page & 63)
			continue;
		rest(m);
		if (o->progress)
			o->progress(o->ctx, phase[m->step], ino, sg_get(m->vol, SG_HOT(inodes)));
	}
}

/*
 * Entries before a deferred free's first entry have been reclaimed, and may now have another owner.
 */
static void walk_ledger_page(struct move *m, u64 ledger)
{
	const struct tree nobody = {};
	unsigned int i;

	for (i = 1; i < SG_LEDGER_WORDS && !m->err; i++) {
		u64 word = sg_get(m->vol, ledger + 8 * i);
		u64 off = SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT;
		unsigned int kind = SG_LEDGER_KIND(word);

		if (kind < SG_LEDGER_TABLE || kind >= SG_LEDGER_TABLE + SG_TABLE_LEVELS)
			continue;
		if (sg_data_page(m->vol, off))
			relocate_walk_table(m, &nobody, off, kind, SG_LEDGER_COUNT(word), 0);
		else
			damaged(m, 0, ledger + 8 * i, "deferred free of a file table");
	}
}

static void walk_ledger(struct move *m, u64 page)
{
	while (page && !m->err) {
		u64 next = sg_get(m->vol, page);

		walk_ledger_page(m, page);
		if (next && (!sg_data_page(m->vol, next) || met_before(m, next))) {
			damaged(m, 0, page, "chain of a ledger");
			next = 0;
		}
		page = next;
	}
}

/*
 * Checks the copies of root words. If a valid copy names another table, fsck must decide which is
 * right. Relocation makes all copies again from the words in place, so these must be right.
 */
static void look_at_copy(struct move *m, unsigned int which)
{
	const struct sg_sys_copy *copy = sg_at(m->vol, sg_sys_copy_off(m->vol, which));
	const struct sg_iref sys = sg_sys_ref(which);
	u64 table = sg_load64(&copy->table), own = sg_iget(m->vol, &sys, table);

	if ((table != own && sg_load64(&copy->check) ==
			     sg_sys_check(which, table, sg_load64(&copy->records))) ||
	    (which == SG_SYS_INODES && !own))
		damaged(m, 0, SG_IOFF(&sys, table), "root of a system inode");
}

/* Ends a step, and makes all its stores durable before the next step begins. */
static int flush(const struct move *m)
{
	sg_fence();
	return m->opts->flush ? m->opts->flush(m->opts->ctx) : 0;
}

/* Makes one pass over everything that contains physical addresses. */
static int walk_all(struct move *m, enum step step)
{
	unsigned int i;

	m->step = step;
	m->damage = 0;
	m->res->tables = 0;
	m->res->entries = 0;
	for (i = 0; i < PIECES && m->seen[i]; i++)
		memset(m->seen[i], 0, piece_bytes(m, i));
	for (i = 0; i < SG_SYS_COUNT && !m->err; i++) {
		const struct tree t = { .records = i == SG_SYS_INODES };
		const struct sg_iref sys = sg_sys_ref(i);

		if (step == LOOK)
			look_at_copy(m, i);
		if (!m->err)
			walk_root(m, &t, SG_IOFF(&sys, table));
	}
	if (step != LOOK)
		sg_wb(sg_at(m->vol, SG_HOT_OFF), SG_PAGE);
	for (i = 0; i < SG_SLOTS && !m->err; i++)
		walk_ledger(m, sg_ledger_off(m->vol, i));
	return m->err ?: step == LOOK ? 0 : flush(m);
}

/* --- the steps -------------------------------------------------------------------------------- */

static int say(struct move *m, bool moving, u64 phys, u64 to)
{
	struct sg_super sb = m->vol->sb;

	sb.incompat = moving ? sb.incompat | SG_INCOMPAT_MOVING : sb.incompat & ~SG_INCOMPAT_MOVING;
	sb.phys = phys;
	sb.move_to = to;
	return sg_super_write(m->vol, &sb) ?: flush(m);
}

/*
 * Executes the steps after the superblock records the move. An earlier relocation may have done a
 * part of them.
 */
static int relocate_finish(struct move *m)
{
	const struct sg_super *sb = &m->vol->sb;
	int err = 0;

	if (sb->phys != sb->move_to)
		err = walk_all(m, MOVE) ?: say(m, true, sb->move_to, sb->move_to);
	err = err ?: walk_all(m, SETTLE) ?: sg_may_write(m->vol);
	if (err)
		return err;
	sg_sys_copies_write(m->vol, sg_size(m->vol));
	return flush(m) ?: say(m, false, sb->phys, 0);
}

static int relocate_move(struct move *m, u64 to)
{
	const struct sg_super *sb = &m->vol->sb;
	int err = 0;

	m->res->resumed = sg_is_moving(m->vol);
	if (m->res->resumed)
		err = relocate_finish(m);
	if (err || to == SG_BASE_BEGUN || to == sb->phys)
		return err;
	m->to = to;
	err = walk_all(m, LOOK);
	if (err == -EUCLEAN)
		sg_snprintf(m->vol->why, sizeof(m->vol->why),
			    "damaged: repair it with fsck.stargatefs -y first");
	return err ?: say(m, true, sb->phys, to) ?: relocate_finish(m);
}

/* --- exclusive access ------------------------------------------------------------------------- */

/*
 * Recovers dead systems before any address changes, because their committed records are relative to
 * the old base. Such records may lie in a part that growth has just added, or was adding. So the
 * size is read again until the last dead slot is recovered. The volume is moved with that size:
 * otherwise a backup superblock at a later end would have the old base.
 */
static int recover(struct move *m)
{
	struct sg_vol *vol = m->vol;

	sg_recover_all(vol);
	if (sg_slots_taken(vol) & ~(1ULL << vol->slot)) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "a dead system cannot be recovered: run fsck.stargatefs -y");
		return -EUCLEAN;
	}
	return sg_size_take(vol, sg_get(vol, SG_HOT(size)));
}

/*
 * Takes a slot, but opens neither transactions nor ledger, so nothing is reclaimed or settled
 * meanwhile.
 */
static int hold(struct move *m)
{
	const struct sg_relocate_opts *o = m->opts;
	struct sg_vol *vol = m->vol;
	int err = sg_slot_take_alone(vol, o->id, o->wait_ms, o->force);

	if (err)
		return err;
	err = sg_size_take(vol, sg_get(vol, SG_HOT(size))) ?: recover(m);
	vol->steady = true;
	if (!err && o->phys != SG_BASE_BEGUN && !sg_base_fits(sg_size(vol), o->phys))
		err = sg_refuse_base(sg_size(vol), o->phys, vol->why);
	err = err ?: make_seen(m);
	if (!err && o->holding) {
		err = o->holding(o->ctx, vol);
		if (err)
			o->holding(o->ctx, NULL);
	}
	if (err)
		sg_leave(vol);
	return err;
}

static int relocate(struct move *m, void *base, u64 size)
{
	const struct sg_relocate_opts *o = m->opts;
	struct sg_vol *vol = m->vol;
	int err = sg_open_moving(vol, base, size, false, o->owner);

	if (err)
		return err;
	m->res->from = m->res->to = vol->sb.phys;
	if (o->phys != SG_BASE_BEGUN && !sg_base_fits(sg_size(vol), o->phys))
		return sg_refuse_base(sg_size(vol), o->phys, vol->why);
	if (!sg_is_moving(vol) && (o->phys == SG_BASE_BEGUN || o->phys == vol->sb.phys))
		return 0;
	err = hold(m);
	if (err)
		return err;
	err = relocate_move(m, o->phys);
	if (!err)
		sg_log(o->owner, SG_INFO, "moved to base 0x%llx",
		       (unsigned long long)vol->sb.phys);
	m->res->to = vol->sb.phys;
	if (o->holding)
		o->holding(o->ctx, NULL);
	sg_leave(vol);
	return err;
}

int sg_relocate(void *base, u64 size, const struct sg_relocate_opts *opts,
		struct sg_relocate_result *res)
{
	struct move *m = sg_alloc(sizeof(*m));
	struct sg_vol *vol = sg_alloc(sizeof(*vol));
	int err = -ENOMEM;

	memset(res, 0, sizeof(*res));
	if (m && vol) {
		*m = (struct move){ .vol = vol, .opts = opts, .res = res };
		err = relocate(m, base, size);
		memcpy(res->why, vol->why, sizeof(res->why));
		forget_seen(m);
	}
	if (err == -ENOMEM)
		sg_snprintf(res->why, sizeof(res->why), "no memory");
	sg_free(vol);
	sg_free(m);
	return err;
}
