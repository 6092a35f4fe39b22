// SPDX-License-Identifier: GPL-2.0
/* Allocation of a file's pages, and the report of their addresses: fallocate() and FIEMAP. */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/pagemap.h>

#include "stargatefs.h"
#include "trace.h"

/**
 * struct sgfs_request - a call of fallocate()
 * @punched: the position up to which a hole is punched. A brief attempt may end in the middle
 * (sgfs_change_pages()).
 */
struct sgfs_request {
	int mode;
	loff_t pos, len;
	u64 punched;
};

/* Change a file's pages, in any mode. The caller holds i_rwsem and invalidate_lock. */

static int sgfs_touch_now(struct inode *inode)
{
	s64 now = sgfs_now(inode);

	return sg_touch(sgfs_vol(inode), sgfs_ref(inode), SG_SET_MTIME | SG_SET_CTIME, now, now, 0);
}

static int sgfs_allocate(struct inode *inode, int mode, loff_t pos, loff_t len)
{
	u64 first = pos >> PAGE_SHIFT, end = DIV_ROUND_UP_ULL((u64)pos + len, PAGE_SIZE);
	struct sg_vol *vol = sgfs_vol(inode);
	int err = 0;

	if (!(mode & FALLOC_FL_KEEP_SIZE))
		err = inode_newsize_ok(inode, pos + len);
	if (err)
		return err;
	err = sg_allocate(vol, sgfs_ref(inode), first, end - first);
	sgfs_unmap(inode, pos, len, false);	/* removes zero pages that were mapped for holes */
	if (err)
		return err;
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		return sg_extend(vol, sgfs_ref(inode), pos + len, sgfs_now(inode));
	return sgfs_touch_now(inode);
}

static int sgfs_punch(struct inode *inode, struct sgfs_request *r)
{
	sgfs_unmap(inode, r->pos, r->len, false);
	return sg_punch_rest(sgfs_vol(inode), sgfs_ref(inode), &r->punched, r->pos + r->len) ?:
	       sgfs_touch_now(inode);
}

static int sgfs_zero(struct inode *inode, struct sgfs_request *r)
{
	return sgfs_punch(inode, r) ?: sgfs_allocate(inode, r->mode, r->pos, r->len);
}

static bool sgfs_whole_pages(loff_t pos, loff_t len)
{
	return IS_ALIGNED(pos | len, PAGE_SIZE);
}

static int sgfs_collapse(struct inode *inode, loff_t pos, loff_t len)
{
	if (!sgfs_whole_pages(pos, len) || pos + len >= i_size_read(inode))
		return -EINVAL;
	sgfs_unmap(inode, pos, LLONG_MAX, true);
	return sg_collapse(sgfs_vol(inode), sgfs_ref(inode), pos, len, sgfs_now(inode));
}

static int sgfs_insert(struct inode *inode, loff_t pos, loff_t len)
{
	loff_t size = i_size_read(inode);
	int err;

	if (!sgfs_whole_pages(pos, len) || pos >= size)
		return -EINVAL;
	if (len > inode->i_sb->s_maxbytes - size)
		return -EFBIG;
	err = inode_newsize_ok(inode, size + len);
	if (err)
		return err;
	sgfs_unmap(inode, pos, LLONG_MAX, true);
	return sg_insert(sgfs_vol(inode), sgfs_ref(inode), pos, len, sgfs_now(inode));
}

static int sgfs_fallocate_once(struct inode *inode, void *arg)
{
	struct sgfs_request *r = arg;

	switch (r->mode & ~FALLOC_FL_KEEP_SIZE) {
	case 0:
		return sgfs_allocate(inode, r->mode, r->pos, r->len);
	case FALLOC_FL_PUNCH_HOLE:
		return sgfs_punch(inode, r);
	case FALLOC_FL_ZERO_RANGE:
		return sgfs_zero(inode, r);
	case FALLOC_FL_COLLAPSE_RANGE:
		return sgfs_collapse(inode, r->pos, r->len);
	case FALLOC_FL_INSERT_RANGE:
		return sgfs_insert(inode, r->pos, r->len);
	}
	return -EOPNOTSUPP;
}

#define MODES_KNOWN	(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | \
			 FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)

long sgfs_fallocate(struct file *file, int mode, loff_t pos, loff_t len)
{
	struct sgfs_request r = { .mode = mode, .pos = pos, .len = len, .punched = pos };
	struct inode *inode = file_inode(file);
	int err;

	/* this check is first, because a failed call must keep the set-ID bits */
	if (mode & ~MODES_KNOWN)
		return -EOPNOTSUPP;
	inode_lock(inode);
	err = sgfs_refresh(inode) ?: sgfs_remove_privs(file);
	if (!err) {
		err = sgfs_change_pages(inode, sgfs_fallocate_once, &r,
					mode & FALLOC_FL_PUNCH_HOLE ? SGFS_ANY_NS : SGFS_ROOM_NS);
		sgfs_map_cut(inode, pos, U64_MAX);
		sg_wait_mappers(sgfs_vol(inode), sgfs_ref(inode), false);
		sg_wait_mappers(sgfs_vol(inode), sgfs_ref(inode), true);
	}
	inode_unlock(inode);
	trace_sgfs_fallocate(inode, mode, pos, len, err);
	return err;
}

/* --- FIEMAP ----------------------------------------------------------------------------------- */

/* An extent, which is reported when the next one is not adjacent to it. */
struct extent {
	u64 page, off, pages;
};

static int sgfs_tell(struct fiemap_extent_info *fi, const struct extent *x, u32 flags)
{
	if (!x->pages)
		return 0;
	return fiemap_fill_next_extent(fi, x->page << PAGE_SHIFT, x->off, x->pages << PAGE_SHIFT,
				       flags);
}

/*
 * List the extents of a file. The last extent of the file has a mark, so the search continues
 * beyond the range until the next extent begins. Pages beyond the end of the file
 * (FALLOC_FL_KEEP_SIZE) are listed, too.
 */
static int sgfs_map_extents(struct inode *inode, struct fiemap_extent_info *fi, u64 page, u64 end)
{
	const u64 limit = inode->i_sb->s_maxbytes >> PAGE_SHIFT;
	struct extent x = {};
	struct sg_run run;
	int err;

	for (; page < limit && (page < end || x.pages); page += run.pages) {
		err = sg_walk_bad(sgfs_vol(inode), sgfs_ref(inode), page, limit - page, &run);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		if (!run.off)
			continue;
		if (x.pages && page == x.page + x.pages &&
		    run.off == x.off + (x.pages << PAGE_SHIFT)) {
			x.pages += run.pages;
			continue;
		}
		err = sgfs_tell(fi, &x, 0);
		if (err || page >= end)
			return min(err, 0);
		x = (struct extent){ .page = page, .off = run.off, .pages = run.pages };
	}
	return min(sgfs_tell(fi, &x, FIEMAP_EXTENT_LAST), 0);
}

int sgfs_fiemap(struct inode *inode, struct fiemap_extent_info *fi, u64 start, u64 len)
{
	int err = fiemap_prep(inode, fi, start, &len, 0);

	if (err)
		return err;
	inode_lock_shared(inode);
	err = sgfs_map_extents(inode, fi, start >> PAGE_SHIFT,
			       DIV_ROUND_UP_ULL(start + len, PAGE_SIZE));
	inode_unlock_shared(inode);
	return err;
}
