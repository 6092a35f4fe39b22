// SPDX-License-Identifier: GPL-2.0
/*
 * The pages to which mappings may have stored: fsync(), msync(), sync() and a freeze have to write
 * them back. A page is marked when an entry of it becomes writable. It remains marked as long as
 * any process maps the file writably: without a struct page, a later store cannot be detected.
 *
 * A mark names a position in the file. When a range is collapsed or inserted, here or in another
 * system, pages get other positions, and the table gets another root. Then all pages of the file
 * are written back, and the marks start again. The same root page can return to the file only in
 * two cases. Either this system has acknowledged that the page left the file, and has then compared
 * the roots (sgfs_written_look()). Or this system did not map the file meanwhile.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "stargatefs.h"

/* One entry of an xarray holds this many marks, as a value: of pages, or of extents of 2 MiB. */
#define MARKS	32u
static const unsigned int mark_shift[] = { 0, PMD_SHIFT - PAGE_SHIFT };

void sgfs_written_track(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);

	spin_lock(&fs->mapped_lock);
	if (list_empty(&SGFS_I(inode)->mapped))
		list_add(&SGFS_I(inode)->mapped, &fs->mapped);
	spin_unlock(&fs->mapped_lock);
}

static int sgfs_mark(struct xarray *xa, unsigned long index, unsigned long bits)
{
	void *old = xa_load(xa, index), *seen, *new;

	for (;; old = seen) {
		new = xa_mk_value((old ? xa_to_value(old) : 0) | bits);
		if (new == old)
			return 0;
		seen = xa_cmpxchg(xa, index, old, new, GFP_NOFS);
		if (xa_is_err(seen))
			return xa_err(seen);
		if (seen == old)
			return 0;
	}
}

/*
 * An extent of 2 MiB has one mark, because it has one entry. Its mark costs no more than the mark
 * of a page.
 */
static unsigned int sgfs_mmap_dirty_kind_of(u64 first, u64 pages)
{
	u64 large = 1ULL << mark_shift[1];

	return pages == large && IS_ALIGNED(first, large);
}

struct sgfs_layout sgfs_layout_of(const struct inode *inode)
{
	if (sgfs_is_lost(inode))
		return (struct sgfs_layout){ .root = 1 };
	return (struct sgfs_layout){
		.root = sg_root(sgfs_vol(inode), sgfs_ref(inode)) ?: 1,
		.cuts = sg_cuts(sgfs_vol(inode), sgfs_ref(inode)),
	};
}

/* Report whether pages may have changed their positions since the marks were made. */
static bool sgfs_has_moved(const struct inode *inode)
{
	const struct sgfs_inode *si = SGFS_I(inode);
	u64 root = READ_ONCE(si->written_in.root);
	struct sgfs_layout now;

	if (!root || sgfs_is_lost(inode))
		return false;	/* the flush finds a page that is lost */
	now = sgfs_layout_of(inode);
	return READ_ONCE(si->moved) || now.root != root ||
	       (!READ_ONCE(si->vmas) && now.cuts != READ_ONCE(si->written_in.cuts));
}

void sgfs_written_look(struct inode *inode)
{
	if (sgfs_has_moved(inode))
		WRITE_ONCE(SGFS_I(inode)->moved, true);
}

/*
 * Mark pages. invalidate_lock is held shared, so no flush runs meanwhile. A task that finds a mark
 * may store immediately and call sync(), which uses the list. So the inode enters the list before
 * its first mark. If two tasks saw different layouts, one of their marks may name an old position.
 */
int sgfs_written_mark(struct inode *inode, u64 first, u64 pages, const struct sgfs_layout *seen)
{
	unsigned int kind = sgfs_mmap_dirty_kind_of(first, pages);
	struct xarray *xa = &SGFS_I(inode)->written[kind];
	int err = 0;

	if (xa_empty(xa))
		sgfs_written_track(inode);
	if (!READ_ONCE(SGFS_I(inode)->written_in.root)) {
		WRITE_ONCE(SGFS_I(inode)->written_in.cuts, seen->cuts);
		cmpxchg(&SGFS_I(inode)->written_in.root, 0, seen->root);
	}
	if (READ_ONCE(SGFS_I(inode)->written_in.root) != seen->root)
		WRITE_ONCE(SGFS_I(inode)->moved, true);
	first >>= mark_shift[kind];
	pages >>= mark_shift[kind];
	while (pages && !err) {
		u64 n = min_t(u64, pages, MARKS - first % MARKS);

		err = sgfs_mark(xa, first / MARKS, GENMASK_ULL(n - 1, 0) << first % MARKS);
		first += n;
		pages -= n;
	}
	return err;
}

/* Flushes the pages from @first to @last that are marked in the word of marks from @mark on. */
static int sgfs_flush_marks(struct inode *inode, unsigned int kind, u64 mark, unsigned long bits,
			    u64 first, u64 last)
{
	unsigned int i, n;
	int err = 0;

	for (i = 0; i < MARKS && !err; i += max(n, 1u)) {
		u64 from, to;

		for (n = 0; i + n < MARKS && bits >> (i + n) & 1; n++)
			;
		from = max((mark + i) << mark_shift[kind], first);
		to = min(((mark + i + n) << mark_shift[kind]) - 1, last);
		if (n && from <= to)
			err = sg_flush(sgfs_vol(inode), sgfs_ref(inode), from, to - from + 1);
	}
	return err;
}

static int sgfs_flush_kind(struct inode *inode, unsigned int kind, u64 first, u64 last)
{
	struct xarray *xa = &SGFS_I(inode)->written[kind];
	unsigned int shift = mark_shift[kind];
	unsigned long index;
	void *entry;
	int err = 0;

	xa_for_each_range(xa, index, entry, (first >> shift) / MARKS,
			  min_t(u64, (last >> shift) / MARKS, ULONG_MAX)) {
		err = sgfs_flush_marks(inode, kind, (u64)index * MARKS, xa_to_value(entry), first,
				       last);
		if (err)
			break;
		cond_resched();
	}
	return err;
}

int sgfs_written_flush(struct inode *inode, u64 first, u64 last, bool wait)
{
	struct sgfs_inode *si = SGFS_I(inode);
	int err;

	if (xa_empty(&si->written[0]) && xa_empty(&si->written[1]))
		return 0;	/* most files: no process has stored through a mapping */
	if (!sgfs_has_moved(inode)) {
		err = sgfs_flush_kind(inode, 0, first, last) ?:
		      sgfs_flush_kind(inode, 1, first, last);
		smp_rmb();	/* the table was read before its root is compared */
		if (err != -EBUSY && (err || !sgfs_has_moved(inode)))
			return err;
	}
	/* a page of the range may now be at any position */
	return sg_flush_moving(sgfs_vol(inode), sgfs_ref(inode), 0, U64_MAX, wait);
}

void sgfs_written_forget(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);

	spin_lock(&fs->mapped_lock);
	if (!READ_ONCE(SGFS_I(inode)->deferred_time))	/* set before it is listed */
		list_del_init(&SGFS_I(inode)->mapped);
	spin_unlock(&fs->mapped_lock);
	xa_destroy(&SGFS_I(inode)->written[0]);
	xa_destroy(&SGFS_I(inode)->written[1]);
	WRITE_ONCE(SGFS_I(inode)->written_in.root, 0);
	WRITE_ONCE(SGFS_I(inode)->moved, false);
}

/*
 * Flush a complete file. Return -EBUSY instead of -EINTR if the wait ended because of other tasks
 * (sgfs_gives_way()), and not because of a signal.
 */
static int sgfs_written_flush_outside(struct inode *inode)
{
	int err = sgfs_written_flush(inode, 0, U64_MAX, true);

	return err == -EINTR && !fatal_signal_pending(current) ? -EBUSY : err;
}

/*
 * Flush a file. invalidate_lock keeps faults out, and no writable entry remains, so pages flushed
 * now need no mark any more. A task that holds invalidate_lock may have much to do, and may wait
 * briefly for another system. sync() covers all volumes of the node, so it waits for none of these
 * tasks: like fsync(), it flushes the marked pages and keeps the marks. Marks with old positions
 * are useless: the entries are removed, and later faults mark pages again. If pages move all the
 * time, the flush waits for the file's lock without invalidate_lock.
 */
static int sgfs_flush_file(struct inode *inode, bool revoke)
{
	bool done;
	int err;

	sgfs_store_time_soon(inode);
	if (revoke)
		filemap_invalidate_lock(inode->i_mapping);
	else if (!down_write_trylock(&inode->i_mapping->invalidate_lock))
		return sgfs_written_flush_outside(inode);
	done = revoke || sgfs_has_moved(inode);
	if (done)
		unmap_mapping_range(inode->i_mapping, 0, 0, 0);
	else
		done = !mapping_writably_mapped(inode->i_mapping);
	err = sgfs_written_flush(inode, 0, U64_MAX, false);
	if (!err && done)
		sgfs_written_forget(inode);
	filemap_invalidate_unlock(inode->i_mapping);
	return err == -EBUSY ? sgfs_written_flush_outside(inode) : err;
}

int sgfs_written_sync(struct inode *inode, u64 first, u64 last)
{
	if (unlikely(sgfs_has_moved(inode)))
		return sgfs_flush_file(inode, false);
	return sgfs_written_flush(inode, first, last, true);
}

/*
 * Return the next inode to flush, with a reference, or NULL. Skip an inode that is being evicted,
 * because its eviction flushes it.
 */
static struct inode *sgfs_next_to_flush(struct sgfs *fs, struct list_head *todo)
{
	struct sgfs_inode *si;
	struct inode *inode;

	spin_lock(&fs->mapped_lock);
	while ((si = list_first_entry_or_null(todo, struct sgfs_inode, mapped))) {
		list_move(&si->mapped, &fs->mapped);
		inode = igrab(&si->vfs);
		if (inode)
			break;
	}
	spin_unlock(&fs->mapped_lock);
	return si ? &si->vfs : NULL;
}

/* The caller has flush_lock. */
static int sgfs_for_all(struct sgfs *fs, int (*visit)(struct inode *inode))
{
	struct sgfs_waiting w;
	struct inode *inode;
	int err = 0, e;
	LIST_HEAD(todo);

	/*
	 * One time limit for all inodes, because there may be many deferred times, and sync() waits
	 * for this pass.
	 */
	sgfs_begin_waiting(fs, &w, sgfs_brief_ns(fs));
	spin_lock(&fs->mapped_lock);
	list_splice_init(&fs->mapped, &todo);
	spin_unlock(&fs->mapped_lock);
	while ((inode = sgfs_next_to_flush(fs, &todo))) {
		e = visit(inode);
		err = err ?: e;
		iput(inode);
		cond_resched();
	}
	sgfs_end_waiting(&w);
	return err;
}

static int sgfs_flush(struct inode *inode)
{
	return sgfs_flush_file(inode, false);
}

static int sgfs_flush_and_revoke(struct inode *inode)
{
	return sgfs_flush_file(inode, true);
}

int sgfs_written_flush_all(struct sgfs *fs, bool revoke)
{
	int err;

	mutex_lock(&fs->flush_lock);
	err = sgfs_for_all(fs, revoke ? sgfs_flush_and_revoke : sgfs_flush);
	mutex_unlock(&fs->flush_lock);
	return err;
}

static int sgfs_store_time_of(struct inode *inode)
{
	/* A freeze or an unmount waits for this work. */
	if (!sg_load64(&sgfs_vol(inode)->settle_stop))
		sgfs_store_time_soon(inode);
	return 0;
}

void sgfs_written_store_times(struct sgfs *fs)
{
	if (!atomic_read(&fs->deferred_times) || !mutex_trylock(&fs->flush_lock))
		return;		/* sync() stores times, too */
	sgfs_for_all(fs, sgfs_store_time_of);
	mutex_unlock(&fs->flush_lock);
}

static int sgfs_store_or_forget_time(struct inode *inode)
{
	sgfs_store_time_soon(inode);
	sgfs_forget_time(inode, READ_ONCE(SGFS_I(inode)->deferred_time));
	return 0;
}

void sgfs_written_forget_times(struct sgfs *fs)
{
	mutex_lock(&fs->flush_lock);
	sgfs_for_all(fs, sgfs_store_or_forget_time);
	mutex_unlock(&fs->flush_lock);
}
