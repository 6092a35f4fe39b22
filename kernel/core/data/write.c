// SPDX-License-Identifier: GPL-2.0
/*
 * Writing: in place where pages exist, otherwise into fresh pages. docs/file-tables.md has the
 * order of stores, and the state after a crash between them.
 */
#include "internal.h"

#define NO_SIZE		(~0ULL)	/* sg_write.size: this write does not extend the file */

bool sg_is_cutting(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return (sg_iget(vol, ref, genflags) >> 32) & SG_FL_CUTTING;
}

void sg_publish(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now)
{
	struct sg_inode *in = sg_at(vol, ref->off);

	sg_fence();	/* the bytes are stored before the size that exposes them */
	sg_store64(&in->size, size);
	if (now) {
		sg_store64(&in->mtime, (u64)now);
		sg_store64(&in->ctime, (u64)now);
	}
	sg_inode_changed(vol, ref);
	sg_fence();
}

/* --- fresh pages ----------------------------------------------------------------------------- */

/* Returns the best offset for the file's next page: behind the page before it. */
static u64 goal_for(struct sg_vol *vol, const struct sg_iref *ref, u64 page)
{
	struct sg_run run;

	if (!page || sg_walk_bad(vol, ref, page - 1, 1, &run) || !run.off)
		return 0;
	return run.off + SG_PAGE;
}

/*
 * Pages for an aligned 2 MiB of a file come from the start of an empty chunk, even if not all are
 * needed yet. The following pages will probably fit behind them, and later all of them become one
 * large leaf. This is not done for the first 2 MiB, nor for short writes of the second 2 MiB,
 * because many files end there: they would use up all empty chunks.
 */
static bool take_aligned(struct sg_tx *tx, u64 page, u64 goal, u64 want, u64 *off)
{
	if (page & (SG_CHUNK_PAGES - 1) || (!page && want < SG_CHUNK_PAGES) ||
	    (page == SG_CHUNK_PAGES && want < SG_CHUNK_PAGES / 4) || sg_take_chunk(tx, goal, off))
		return false;
	if (want < SG_CHUNK_PAGES)
		sg_give_run(tx, *off + (want << SG_PAGE_SHIFT), SG_CHUNK_PAGES - want);
	return true;
}

int sg_take_fresh(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want, u64 *off,
		  u64 *got)
{
	u64 goal = goal_for(tx->vol, ref, page);
	int err;

	want = sg_table_fit(tx, ref, page, want);
	if (!want)
		return -ENOSPC;
	*got = want;
	if (!take_aligned(tx, page, goal, want, off)) {
		err = sg_take_run(tx, SG_USE_DATA, goal, want, off, got);
		if (err)
			return err;
	}
	return sg_table_add(tx, ref, page, *off, *got);
}

static int begin_fresh(struct sg_vol *vol, const struct sg_iref *ref, u64 len, u64 hole,
		       struct sg_write *w)
{
	u64 in = w->pos & (SG_PAGE - 1), want = SG_MIN(hole, (u64)SG_CHUNK_PAGES), bytes, off;
	struct sg_tx *tx = sg_tx_begin(vol);
	int err;

	w->first = w->pos >> SG_PAGE_SHIFT;
	want = SG_MIN(want, SG_CHUNK_PAGES - (w->first & (SG_CHUNK_PAGES - 1)));
	err = sg_take_fresh(tx, ref, w->first, want, &off, &w->pages);
	if (err) {
		sg_tx_abort(tx);
		return err;
	}
	bytes = w->pages << SG_PAGE_SHIFT;
	w->len = SG_MIN(len, bytes - in);
	w->off = off + in;
	sg_fresh_zero(vol, off, in);
	sg_fresh_zero(vol, w->off + w->len, bytes - in - w->len);
	w->fresh = true;
	w->tx = tx;
	return 0;
}

/* --- one part of a write --------------------------------------------------------------------- */

static void in_place(struct sg_write *w, const struct sg_run *run, u64 len)
{
	u64 in = w->pos & (SG_PAGE - 1);

	w->off = run->off + in;
	w->len = SG_MIN(len, (run->pages << SG_PAGE_SHIFT) - in);
}

static int walk_piece(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_write *w,
		      u64 len, struct sg_run *run)
{
	return sg_walk(vol, ref, w->pos >> SG_PAGE_SHIFT,
		       sg_pages_of((w->pos & (SG_PAGE - 1)) + len), run);
}

/*
 * Limits a write in place beyond the size to the end that sg_stale_end() allows; the inode is
 * locked.
 */
static void in_place_beyond(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w)
{
	if (w->pos >= sg_stale_end(w->size)) {
		sg_publish(vol, ref, w->pos, 0);
		w->size = w->pos;
	}
	w->len = SG_MIN(w->len, sg_stale_end(w->pos) - w->pos);
}

/*
 * Extends the size, with the inode locked. It first zeroes the gap between the old size and
 * @w->pos, which becomes visible.
 */
static int begin_locked(struct sg_vol *vol, const struct sg_iref *ref, u64 len, struct sg_write *w)
{
	u64 size = sg_iget(vol, ref, size), flags;
	int err = sg_may_store(vol, ref);
	struct sg_run run;

	if (err)
		return err;
	flags = sg_iget(vol, ref, genflags) >> 32 & (SG_FL_CUTTING | SG_FL_ATOMIC);
	if (flags)
		return flags & SG_FL_CUTTING ? -EAGAIN : -EMEDIUMTYPE;
	if (w->size != NO_SIZE)
		w->size = size;
	if (w->size < w->pos) {
		err = sg_zero_mapped(vol, ref, size, SG_MIN(w->pos, sg_stale_end(size)));
		if (err)
			return err;
	}
	err = walk_piece(vol, ref, w, len, &run);
	if (err)
		return err;
	if (!run.off)
		return begin_fresh(vol, ref, len, run.pages, w);
	in_place(w, &run, len);
	if (w->size < w->pos + w->len)
		in_place_beyond(vol, ref, w);
	return 0;
}

/* Takes pages, but does not reclaim for them, because that takes locks of other inodes. */
static int append_piece(struct sg_vol *vol, const struct sg_iref *ref, u64 len, struct sg_write *w)
{
	int err;

	w->size = 0;
	err = begin_locked(vol, ref, len, w);
	w->locked = w->append = !err;
	return err;
}

int sg_append_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 *size)
{
	unsigned int turns = 0;
	int err;

	for (;;) {
		err = sg_may_write(vol);
		if (err)
			return err;
		err = sg_ilock(vol, ref);
		if (err)
			return err;
		if (!sg_is_same(vol, ref))
			err = -ESTALE;
		else if (sg_is_sealed(vol, ref))
			err = -EPERM;
		else if (!sg_is_cutting(vol, ref))
			break;
		sg_iunlock(vol, ref);
		err = err ?: sg_finish_cut_again(vol, ref, &turns);
		if (err)
			return err;
	}
	*size = sg_iget(vol, ref, size);
	if (*size <= SG_FILE_MAX)
		return 0;
	sg_iunlock(vol, ref);
	return sg_damaged(vol, ref->ino, ref->off, "inode larger than a file can be");
}

void sg_append_end(struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_iunlock(vol, ref);
}

int sg_write_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len,
		   unsigned int flags, struct sg_write *w)
{
	bool keep = flags & SG_WRITE_KEEP_SIZE;
	struct sg_nospace nospace = {};
	unsigned int turns = 0;
	struct sg_run run;
	int err = sg_may_write(vol);

	*w = (struct sg_write){ .pos = pos, .size = NO_SIZE };
	if (err)
		return err;
	if (!len)
		return -EINVAL;
	if (pos >= SG_FILE_MAX)
		return -EFBIG;
	len = SG_MIN(len, SG_FILE_MAX - pos);
	if (flags & SG_WRITE_APPEND)
		return append_piece(vol, ref, len, w);
	if (!(flags & SG_WRITE_LOCKED) && (keep || pos < sg_iget(vol, ref, size)) &&
	    !(sg_iget(vol, ref, genflags) >> 32 & (SG_FL_ATOMIC | SG_FL_WHOLE | SG_FL_SEALED))) {
		err = walk_piece(vol, ref, w, len, &run);
		if (err)
			return err;
		in_place(w, &run, len);
		if (run.off && (keep || pos + w->len <= sg_iget(vol, ref, size)))
			return 0;
	}
	if (flags & SG_WRITE_IN_PLACE)
		return -EAGAIN;
	for (;;) {
		w->size = keep ? NO_SIZE : 0;
		err = sg_ilock(vol, ref);
		if (err)
			return err;
		w->locked = true;
		err = begin_locked(vol, ref, len, w);
		if (!err)
			return 0;
		sg_iunlock(vol, ref);
		w->locked = false;
		if (err == -EAGAIN) {
			err = sg_finish_cut_again(vol, ref, &turns);
		} else if (err == -ENOSPC) {
			err = sg_space_again(vol, &nospace);
		}
		if (err)
			return err;
	}
}

static int end_fresh(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		     s64 now)
{
	struct sg_tx *tx = w->tx;

	if (!done) {
		sg_tx_abort(tx);
		return 0;
	}
	/*
	 * the file keeps the pages that the caller did not fill, because the caller will probably
	 * continue there
	 */
	sg_fresh_zero(vol, w->off + done, w->len - done);
	sg_tx_inode(tx, ref);
	if (w->size != NO_SIZE && w->pos + done > w->size)
		sg_tx_iset(tx, ref, size, w->pos + done);
	if (now)
		sg_tx_times(tx, ref, now, now);
	return sg_tx_commit(tx);
}

int sg_write_end(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		 s64 now)
{
	u64 size;
	int err = 0;

	done = SG_MIN(done, w->len);
	if (!w->locked) {
		sg_fence();
		/* this system was fenced, so the written pages may belong to another file */
		err = sg_may_write(vol);
		if (err || !done || !sg_times_differ(vol, ref, now))
			return err;
		return sg_touch(vol, ref, SG_SET_MTIME | SG_SET_CTIME, now, now, 0);
	}
	if (w->fresh) {
		err = end_fresh(vol, ref, w, done, now);
	} else if (done) {
		err = sg_may_write(vol);
		size = sg_iget(vol, ref, size);
		if (w->size != NO_SIZE)
			size = SG_MAX(size, w->pos + done);
		if (!err)
			sg_publish(vol, ref, size, now);
	}
	if (!w->append)
		sg_iunlock(vol, ref);
	w->locked = false;
	w->tx = NULL;
	return err;
}

/* Writes to a file of atomic writes, in units. */
static s64 write_units(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const u8 *buf,
		       u64 len, s64 now)
{
	u64 done = 0, n;
	bool filled = false;
	int err = 0;

	for (; done < len; done += n) {
		n = sg_atomic_unit(pos + done, len - done);
		err = sg_write_atomic(vol, ref, pos + done, buf + done, n, 0, now, &filled);
		if (err)
			break;
	}
	return done ? (s64)done : err;
}

s64 sg_write(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf, u64 len,
	     s64 now)
{
	struct sg_write w;
	u64 done = 0;
	s64 err = 0;

	while (done < len && !err) {
		/* so callers of sg_write() need no other lock against cuts */
		err = sg_write_begin(vol, ref, pos + done, len - done, SG_WRITE_LOCKED, &w);
		if (err)
			break;
		sg_os_write(sg_at(vol, w.off), (const u8 *)buf + done, w.len);
		sg_wb(sg_at(vol, w.off), w.len);
		err = sg_write_end(vol, ref, &w, w.len, now);
		if (!err)
			done += w.len;
	}
	if (err == -EMEDIUMTYPE) {
		err = write_units(vol, ref, pos + done, (const u8 *)buf + done, len - done, now);
		if (err > 0)
			done += (u64)err;
	}
	return done ? (s64)done : err;
}

/* --- allocation ------------------------------------------------------------------------------ */

int sg_allocate_some(struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want, u64 *n)
{
	int err = sg_may_store(vol, ref);
	struct sg_run run;
	struct sg_tx *tx;
	u64 off;

	if (err)
		return err;
	if (sg_is_cutting(vol, ref))
		return -EAGAIN;
	err = sg_walk_bad(vol, ref, page, want, &run);
	if (err)
		return err;
	*n = run.pages;
	if (run.off)
		return 0;
	tx = sg_tx_begin(vol);
	err = sg_take_fresh(tx, ref, page, SG_MIN(run.pages, SG_CHUNK_PAGES -
						  (page & (SG_CHUNK_PAGES - 1))), &off, n);
	if (err) {
		sg_tx_abort(tx);
		return err;
	}
	sg_fresh_zero(vol, off, *n << SG_PAGE_SHIFT);
	if (!ref->ino)
		sg_sys_copy(tx, sg_sys_which(ref));
	sg_tx_inode(tx, ref);
	return sg_tx_commit(tx);
}

/*
 * Checks that the holes of [first, end) do not need more pages than are free. -ENOSPC: they do;
 * nothing is taken. An undamaged file maps no page twice, so it has no more runs than the volume
 * has pages.
 */
static int has_room(const struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 end)
{
	u64 all = sg_bound(vol) >> SG_PAGE_SHIFT, left = SG_MIN(sg_free_pages(vol), all);
	struct sg_met mapped = {};
	struct sg_run run;
	u64 turns = 0;
	int err;

	for (; first < end; first += run.pages) {
		err = sg_turn(&turns) ?: sg_walk_bad(vol, ref, first, end - first, &run) ?:
		      sg_met(vol, ref, &mapped, run.off ? run.pages : 0, 1);
		if (err)
			return err;
		if (run.off)
			continue;
		if (run.pages > left)
			return -ENOSPC;
		left -= run.pages;
	}
	return 0;
}

int sg_allocate_now(struct sg_vol *vol, const struct sg_iref *ref, u64 page)
{
	int err = sg_may_write(vol);
	u64 n;

	if (err)
		return err;
	if (!sg_trylock(vol, SG_IOFF(ref, lock)))
		return -EBUSY;
	err = sg_allocate_some(vol, ref, page, 1, &n);
	sg_iunlock(vol, ref);
	return err;
}

int sg_allocate(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages)
{
	struct sg_nospace nospace = {};
	int err = sg_may_write(vol);
	unsigned int turns = 0;
	u64 end, n;

	if (first > SG_FILE_PAGES || pages > SG_FILE_PAGES - first)
		return -EFBIG;
	end = first + pages;
	err = err ?: sg_may_store(vol, ref);
	/*
	 * only for many pages, because the sum of free pages moves a cache line from each thread
	 * that changes such a counter
	 */
	if (!err && pages >= SG_CHUNK_PAGES)
		err = has_room(vol, ref, first, end);
	if (err == -ENOSPC) {
		vol->up->reclaim(vol, ~0u);	/* as in statfs, deferred frees count as free */
		err = has_room(vol, ref, first, end);
	}
	/* also the deferred frees of other systems */
	while (err == -ENOSPC) {
		err = sg_space_again(vol, &nospace);
		if (err)
			return err;
		err = has_room(vol, ref, first, end);
	}
	while (!err && first < end) {
		if (sg_wanted())
			sg_yield();
		err = sg_interrupted() ? -EINTR : sg_ilock(vol, ref);
		if (err)
			return err;
		err = sg_allocate_some(vol, ref, first, end - first, &n);
		sg_iunlock(vol, ref);
		if (!err) {
			first += n;
			nospace.since = 0;
		} else if (err == -EAGAIN) {
			err = sg_finish_cut_again(vol, ref, &turns);
		} else if (err == -ENOSPC) {
			err = sg_space_again(vol, &nospace);
		}
	}
	return err;
}
