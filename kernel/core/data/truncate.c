// SPDX-License-Identifier: GPL-2.0
/*
 * Truncate, extend, punch. docs/file-tables.md has the protocol, and the state after a crash.
 *
 * A cut needs no page, so it works on a full volume. There is one exception: a large leaf that lies
 * partly in the range is split, which needs a page for the smaller table. If there is no page, the
 * bytes are zeroed instead of freed.
 *
 * A full ledger needs a page to grow. If the only one is in a chunk that a paused system has
 * locked, a cut waits for that chunk, with no other lock held.
 */
#include "internal.h"

/* longest wait for a chunk; after that time the ledger may have room again */
#define LOOK_NS	100000000ULL

/* --- large leaves over the ends of the range ------------------------------------------------- */

/*
 * Makes @page the start of a leaf, if it is mapped, with the inode locked. It does not wait for a
 * locked chunk, because the caller can use another method.
 */
static int split_at(struct sg_vol *vol, const struct sg_iref *ref, u64 page, struct sg_run *run)
{
	struct sg_tx *tx;
	int err;

	err = sg_walk_bad(vol, ref, page, 1, run);
	if (err || run->level == 1 || !(page & (sg_level_pages(run->level) - 1)))
		return err;
	tx = sg_tx_begin(vol);
	tx->hasty = true;
	err = sg_table_split(tx, ref, page);
	if (err) {
		sg_tx_abort(tx);
		return err;
	}
	sg_tx_inode(tx, ref);
	return sg_tx_commit(tx);
}

static int zero_pages(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 end)
{
	int err = sg_zero_mapped(vol, ref, page << SG_PAGE_SHIFT, end << SG_PAGE_SHIFT);

	sg_fence();
	return err;
}

/*
 * Splits the leaves that lie partly in [*page, *end), with the inode locked. With @zero, if there
 * is no page for a split, that part is zeroed and excluded from the range.
 */
static int trim_ends(struct sg_vol *vol, const struct sg_iref *ref, u64 *page, u64 *end, bool zero)
{
	struct sg_run run;
	u64 edge;
	int err;

	err = split_at(vol, ref, *page, &run);
	if (err == -ENOSPC && zero) {
		edge = SG_MIN(SG_ALIGN_UP(*page, sg_level_pages(run.level)), *end);
		err = zero_pages(vol, ref, *page, edge);
		*page = edge;
	}
	if (err || *page >= *end)
		return err;
	err = split_at(vol, ref, *end, &run);
	if (err == -ENOSPC && zero) {
		edge = SG_MAX(*end & ~(sg_level_pages(run.level) - 1), *page);
		err = zero_pages(vol, ref, edge, *end);
		*end = edge;
	}
	return err;
}

/* --- finish a truncation --------------------------------------------------------------------- */

static void set_cutting(struct sg_tx *tx, const struct sg_iref *ref, bool on)
{
	u64 word = sg_tx_iget(tx, ref, genflags), flag = (u64)SG_FL_CUTTING << 32;

	sg_tx_iset(tx, ref, genflags, on ? word | flag : word & ~flag);
}

/*
 * Makes one bounded step of the cut behind the size, with the inode locked; the last step ends the
 * cut.
 */
static int finish_some(struct sg_vol *vol, const struct sg_iref *ref, bool zero, bool *done)
{
	u64 page = sg_pages_of(sg_iget(vol, ref, size)), end = SG_TABLE_PAGES, next;
	struct sg_tx *tx;
	int err;

	*done = !sg_is_cutting(vol, ref);
	if (*done)
		return 0;
	err = sg_may_change(vol, ref) ?: trim_ends(vol, ref, &page, &end, zero);
	if (err)
		return err;
	tx = sg_tx_begin(vol);
	sg_table_cut(tx, ref, page, end, &next);
	if (next >= end) {
		set_cutting(tx, ref, false);
		sg_disown_inode(tx, ref);
		*done = true;
	} else if (next == page) {
		sg_tx_fail(tx, -ENOSPC);	/* the ledger is full */
	}
	sg_tx_inode(tx, ref);
	return sg_tx_commit(tx);
}

/*
 * Decides after -ENOSPC: returns 0 if another step makes sense. If the ledger could grow in a
 * locked chunk, the function waits for that lock, also in a thread that gives way. The last steps
 * of a mount, and settling, do not wait for a chunk, so the rest of the cut remains deferred.
 */
static int space_for_cut(struct sg_vol *vol, struct sg_nospace *nospace)
{
	int err = sg_space_again(vol, nospace), waited;
	u64 lock = err ? sg_ledger_room_in(vol) : 0;

	if (!lock || vol->hurry || sg_is_settler(vol))
		return err;
	waited = sg_wait_room(vol, lock, LOOK_NS);
	if (!waited)
		sg_ledger_room_free(vol);
	if (err == -EINTR)
		return err;
	return waited == -ENOSPC ? 0 : waited;
}

/*
 * Decides by the result of a step. Returns 0 if another step makes sense, also after a lack of
 * space.
 */
static int after_piece(struct sg_vol *vol, int err, struct sg_nospace *nospace)
{
	if (err == -ENOSPC)
		return space_for_cut(vol, nospace);
	if (err)
		return err;
	nospace->since = 0;
	if (sg_ledger_is_tight(vol))
		vol->up->reclaim(vol, SG_RECLAIM_SOME);
	return 0;
}

/*
 * Limits the number of steps; called between them. Each step cuts a page, or skips many entries. So
 * there are no more steps than pages in the volume, unless another system adds new pages all the
 * time. The rest of the cut then remains deferred.
 */
static int next_piece(struct sg_vol *vol, const struct sg_iref *ref, u64 *pieces)
{
	if (sg_wanted())
		sg_yield();
	if (sg_interrupted())
		return -EINTR;
	if (++*pieces > sg_bound(vol) >> SG_PAGE_SHIFT)
		return sg_damaged(vol, ref->ino, ref->off, "truncated pages come back");
	return 0;
}

int sg_finish_cut(struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_nospace nospace = {};
	u64 pieces = 0;
	bool done = false;
	int err = 0;

	while (!err && !done) {
		err = sg_ilock(vol, ref);
		if (err)
			return err;
		err = finish_some(vol, ref, nospace.since, &done);
		sg_iunlock(vol, ref);
		err = after_piece(vol, err, &nospace);
		if (!err && !done)
			err = next_piece(vol, ref, &pieces);
	}
	return err;
}

/* other systems truncate, too, but only hostile ones do it so often */
#define CUT_TURNS	1000

int sg_finish_cut_again(struct sg_vol *vol, const struct sg_iref *ref, unsigned int *turns)
{
	if (sg_interrupted())
		return -EINTR;
	if (++*turns > CUT_TURNS)
		return sg_damaged(vol, ref->ino, ref->off, "a truncation never ends");
	return sg_finish_cut(vol, ref);
}

/* --- size ------------------------------------------------------------------------------------ */

/*
 * Sets the size and cuts in one transaction, with the inode locked. sg_finish_cut() does the rest,
 * which the deferred inode records.
 */
static int shrink(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now, bool zero)
{
	u64 page = sg_pages_of(size), next = page;
	bool stuck = false;
	struct sg_run run;
	struct sg_tx *tx;
	int err;

	if (page) {
		err = split_at(vol, ref, page, &run);
		stuck = err == -ENOSPC && zero;
		if (err && !stuck)
			return err;
	}
	tx = sg_tx_begin(vol);
	sg_tx_inode(tx, ref);
	if (now)
		sg_tx_times(tx, ref, now, now);
	sg_tx_iset(tx, ref, size, size);
	if (!page) {
		sg_table_drop(tx, ref);
		next = SG_TABLE_PAGES;
	} else if (!stuck) {
		sg_table_cut(tx, ref, page, SG_TABLE_PAGES, &next);
	}
	if (next < SG_TABLE_PAGES) {
		set_cutting(tx, ref, true);
		sg_defer_inode(tx, ref);
	}
	err = sg_tx_commit(tx);
	if (!err)
		err = sg_zero_mapped(vol, ref, size, SG_ALIGN_UP(size, SG_PAGE));
	sg_fence();
	return err;
}

static int truncate_grow(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now)
{
	u64 old = sg_iget(vol, ref, size);
	int err = sg_zero_mapped(vol, ref, old, SG_MIN(size, sg_stale_end(old)));

	if (!err)
		sg_publish(vol, ref, size, now);
	return err;
}

/* Returns 1 if pages are mapped behind @size, as after fallocate() with FALLOC_FL_KEEP_SIZE. */
static int has_more(struct sg_vol *vol, const struct sg_iref *ref, u64 size)
{
	u64 page = sg_pages_of(size), turns = 0;
	struct sg_run run;
	int err;

	for (; page < SG_TABLE_PAGES; page += run.pages) {
		err = sg_turn(&turns) ?:
		      sg_walk_bad(vol, ref, page, SG_TABLE_PAGES - page, &run);
		if (err || run.off)
			return err ?: 1;
	}
	return 0;
}

/* Truncates to the current size, with the inode locked: frees the pages allocated behind it. */
static int keep_size(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now, bool zero)
{
	int more = has_more(vol, ref, size);

	if (more < 0)
		return more;
	return more ? shrink(vol, ref, size, now, zero) : truncate_grow(vol, ref, size, now);
}

enum resize {
	ANY_SIZE,
	ONLY_LONGER,
};

static int resize_once(struct sg_vol *vol, const struct sg_iref *ref, u64 size, enum resize how,
		       s64 now, bool zero)
{
	int err = sg_ilock(vol, ref);
	u64 old;

	if (err)
		return err;
	err = sg_may_store(vol, ref);
	if (err)
		goto out;
	old = sg_iget(vol, ref, size);
	if (sg_is_cutting(vol, ref))
		err = -EAGAIN;
	else if (size > old)
		err = truncate_grow(vol, ref, size, now);
	else if (how == ONLY_LONGER)
		err = truncate_grow(vol, ref, old, now);
	else if (size < old)
		err = shrink(vol, ref, size, now, zero);
	else
		err = keep_size(vol, ref, size, now, zero);
out:
	sg_iunlock(vol, ref);
	return err;
}

static int resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, enum resize how, s64 now)
{
	struct sg_nospace nospace = {};
	int err = sg_may_write(vol);
	unsigned int turns = 0;
	bool again;

	if (err)
		return err;
	if (size > SG_FILE_MAX)
		return -EFBIG;
	do {
		err = resize_once(vol, ref, size, how, now, nospace.since);
		again = err == -ENOSPC || err == -EAGAIN;
		if (err == -ENOSPC)
			err = space_for_cut(vol, &nospace);
		else if (err == -EAGAIN)
			err = sg_finish_cut_again(vol, ref, &turns);
		again = again && !err;
	} while (again);
	return err;
}

int sg_set_size(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now)
{
	return resize(vol, ref, size, ANY_SIZE, now);
}

int sg_extend(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now)
{
	return resize(vol, ref, size, ONLY_LONGER, now);
}

int sg_resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now)
{
	int err = sg_set_size(vol, ref, size, now);

	return err || !sg_is_cutting(vol, ref) ? err : sg_finish_cut(vol, ref);
}

/* --- punch ----------------------------------------------------------------------------------- */

/* Cuts a part of [*page, end), with the inode locked. */
static int punch_some(struct sg_vol *vol, const struct sg_iref *ref, u64 *page, u64 end, bool zero)
{
	u64 from = *page, to = end, next;
	struct sg_tx *tx;
	int err;

	err = sg_may_store(vol, ref) ?: trim_ends(vol, ref, &from, &to, zero);
	if (err)
		return err;
	if (from < to) {
		tx = sg_tx_begin(vol);
		sg_table_cut(tx, ref, from, to, &next);
		if (next == from)
			sg_tx_fail(tx, -ENOSPC);	/* the ledger is full */
		sg_tx_inode(tx, ref);
		err = sg_tx_commit(tx);
		if (err)
			return err;
		from = next;
	}
	*page = from < to ? from : end;
	return 0;
}

static int punch_pages(struct sg_vol *vol, const struct sg_iref *ref, u64 *page, u64 end)
{
	struct sg_nospace nospace = {};
	u64 pieces = 0;
	int err = 0;

	while (!err && *page < end) {
		err = sg_ilock(vol, ref);
		if (err)
			return err;
		err = punch_some(vol, ref, page, end, nospace.since);
		sg_iunlock(vol, ref);
		err = after_piece(vol, err, &nospace);
		if (!err && *page < end)
			err = next_piece(vol, ref, &pieces);
	}
	return err;
}

/* Zeroes the bytes of [*pos, end), a part of one page. */
static int punch_bytes(struct sg_vol *vol, const struct sg_iref *ref, u64 *pos, u64 end)
{
	int err;

	if (*pos >= end)
		return 0;
	err = sg_ilock(vol, ref);
	if (err)
		return err;
	err = sg_may_store(vol, ref) ?: sg_zero_mapped(vol, ref, *pos, end);
	sg_fence();
	sg_iunlock(vol, ref);
	if (!err)
		*pos = end;
	return err;
}

int sg_punch_rest(struct sg_vol *vol, const struct sg_iref *ref, u64 *pos, u64 end)
{
	u64 first = sg_pages_of(*pos), last = end >> SG_PAGE_SHIFT, page = first;
	int err = sg_may_write(vol) ?:
		  punch_bytes(vol, ref, pos, SG_MIN(end, first << SG_PAGE_SHIFT));

	if (err)
		return err;
	if (page < last) {
		err = punch_pages(vol, ref, &page, last);
		*pos = page << SG_PAGE_SHIFT;
	}
	return err ?: punch_bytes(vol, ref, pos, end);
}

int sg_punch(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now)
{
	int err = sg_may_write(vol);

	if (err)
		return err;
	if (pos >= SG_FILE_MAX || !len)
		return len ? 0 : -EINVAL;
	err = sg_punch_rest(vol, ref, &pos, pos + SG_MIN(len, SG_FILE_MAX - pos));
	if (!err && now)
		err = sg_touch(vol, ref, SG_SET_MTIME | SG_SET_CTIME, now, now, 0);
	return err;
}
