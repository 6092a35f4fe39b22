// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing. There is no page cache: a read is one copy out of the volume, a write one
 * copy into it, durable when the call returns. So O_DIRECT is how every file is opened.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "stargatefs.h"
#include "trace.h"

static u64 pages_spanned(u64 pos, size_t len)
{
	return DIV_ROUND_UP(offset_in_page(pos) + len, PAGE_SIZE);
}

/* --- read ------------------------------------------------------------------------------------- */

static ssize_t read_walking(struct inode *inode, u64 pos, size_t len, struct iov_iter *to)
{
	struct sg_vol *vol = sgfs_vol(inode);
	size_t done = 0, n, copied;
	struct sg_run run;
	int err;

	while (done < len) {
		err = sg_walk(vol, sgfs_ref(inode), pos >> PAGE_SHIFT,
			      pages_spanned(pos, len - done), &run);
		if (err)
			return done ?: err;
		n = min3(len - done, (size_t)((run.pages << PAGE_SHIFT) - offset_in_page(pos)),
			 (size_t)SGFS_PIECE);
		if (run.off)
			copied = _copy_mc_to_iter(vol->base + run.off + offset_in_page(pos), n, to);
		else
			copied = iov_iter_zero(n, to);
		done += copied;
		pos += copied;
		if (copied < n)
			return done ?: -EFAULT;
		if (done < len)
			cond_resched();
	}
	return done;
}

static ssize_t read_locked(struct inode *inode, u64 pos, struct iov_iter *to)
{
	loff_t size = i_size_read(inode);
	size_t len, done;
	ssize_t walked;

	if (pos >= size)
		return 0;
	len = min_t(u64, iov_iter_count(to), size - pos);
	done = sgfs_map_read(inode, pos, len, to);
	if (done == len)
		return done;
	walked = read_walking(inode, pos + done, len - done, to);
	if (walked > 0)
		sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, walked);
	return walked < 0 ? (ssize_t)done ?: walked : done + walked;
}

static ssize_t read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n;

	if (!iov_iter_count(to))
		return 0;
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		inode_lock_shared(inode);
	else if (!inode_trylock_shared(inode))
		return -EAGAIN;
	n = sgfs_refresh(inode) ?: read_locked(inode, iocb->ki_pos, to);
	inode_unlock_shared(inode);
	trace_sgfs_read(inode, iocb->ki_pos, n);
	if (n > 0) {
		iocb->ki_pos += n;
		sgfs_add(inode->i_sb, SGFS_READS, 1);
		sgfs_add(inode->i_sb, SGFS_READ_BYTES, n);
	}
	file_accessed(iocb->ki_filp);
	return n;
}

/* --- write ------------------------------------------------------------------------------------ */

/*
 * A hole has been filled. Who read it through a mapping has a page of zeroes there. The barrier
 * pairs with the one in faulting: either we see its mapping here, or it sees our page.
 */
static void show_filled(struct inode *inode, u64 pos, size_t len)
{
	smp_mb();
	if (!mapping_mapped(inode->i_mapping))
		return;
	filemap_invalidate_lock(inode->i_mapping);
	sgfs_unmap(inode, pos, len, false);
	filemap_invalidate_unlock(inode->i_mapping);
}

/* Returns bytes written; 0: the source has to be faulted in again. */
static ssize_t write_piece(struct inode *inode, u64 pos, struct iov_iter *from, s64 now)
{
	size_t want = min_t(u64, iov_iter_count(from), SGFS_PIECE), copied;
	struct sg_vol *vol = sgfs_vol(inode);
	struct sg_write w;
	bool fresh;
	int err;

	/* While the engine's locks are held, nothing may be faulted in. */
	if (fault_in_iov_iter_readable(from, want) == want)
		return -EFAULT;
	err = sg_write_begin(vol, sgfs_ref(inode), pos, want, 0, &w);
	if (err)
		return err;
	fresh = w.fresh;
	pagefault_disable();
	copied = _copy_from_iter_flushcache(vol->base + w.off, min_t(u64, want, w.len), from);
	pagefault_enable();
	err = sg_write_end(vol, sgfs_ref(inode), &w, copied, now);
	if (err) {
		iov_iter_revert(from, copied);
		return err;
	}
	if (fresh && copied)
		show_filled(inode, pos, copied);
	return copied;
}

static ssize_t write_walking(struct inode *inode, u64 pos, struct iov_iter *from, s64 now)
{
	ssize_t done = 0, n = 0;

	while (iov_iter_count(from)) {
		n = write_piece(inode, pos + done, from, now);
		if (n < 0)
			break;
		done += n;
		if (!iov_iter_count(from))
			break;
		cond_resched();
		if (fatal_signal_pending(current)) {
			n = -EINTR;
			break;
		}
	}
	if (done)
		sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, done);
	return done ?: n;
}

/* In place through a window, as far as there are pages; the times first, they may be refused. */
static ssize_t write_windowed(struct inode *inode, u64 pos, struct iov_iter *from, s64 now)
{
	u64 size = i_size_read(inode);
	size_t done;
	int err;

	if (pos >= size || !(SGFS_I(inode)->window || SGFS_I(inode)->shadow))
		return 0;
	err = sg_touch(sgfs_vol(inode), sgfs_ref(inode), SG_SET_MTIME | SG_SET_CTIME, now, now, 0);
	if (err)
		return err;
	done = sgfs_map_write(inode, pos, min_t(u64, iov_iter_count(from), size - pos), from);
	sg_fence();
	return done;
}

static ssize_t write_locked(struct inode *inode, u64 pos, struct iov_iter *from)
{
	struct timespec64 now = current_time(inode);
	loff_t size = i_size_read(inode);
	ssize_t done, n = 0;

	done = write_windowed(inode, pos, from, sgfs_ns(now));
	if (done < 0)
		return done;
	if (iov_iter_count(from))
		n = write_walking(inode, pos + done, from, sgfs_ns(now));
	sgfs_refresh(inode);
	if (done || n > 0) {	/* writes in place move the times without the change counter */
		inode_set_mtime_to_ts(inode, now);
		inode_set_ctime_to_ts(inode, now);
	}
	if (i_size_read(inode) > size)
		sgfs_map_grown(inode);
	return n < 0 ? done ?: n : done + n;
}

static ssize_t write_checked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n = sgfs_refresh(inode);

	if (!n)
		n = generic_write_checks(iocb, from);
	if (n <= 0)
		return n;
	n = file_remove_privs(iocb->ki_filp);
	return n ?: write_locked(inode, iocb->ki_pos, from);
}

static ssize_t write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n;

	if (!(iocb->ki_flags & IOCB_NOWAIT))
		inode_lock(inode);
	else if (!inode_trylock(inode))
		return -EAGAIN;
	n = write_checked(iocb, from);
	inode_unlock(inode);
	trace_sgfs_write(inode, iocb->ki_pos, n);
	if (n <= 0)
		return n;
	iocb->ki_pos += n;
	sgfs_add(inode->i_sb, SGFS_WRITES, 1);
	sgfs_add(inode->i_sb, SGFS_WRITE_BYTES, n);
	return generic_write_sync(iocb, n);
}

/* --- the rest --------------------------------------------------------------------------------- */

/* Only what came through mappings is not durable yet. */
int sgfs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);

	sgfs_add(inode->i_sb, SGFS_FSYNCS, 1);
	sg_fence();	/* times are written back without waiting */
	return sgfs_written_flush(inode, start >> PAGE_SHIFT, end >> PAGE_SHIFT);
}

static loff_t seek_extent(struct file *file, loff_t offset, bool hole)
{
	struct inode *inode = file_inode(file);
	loff_t pos = -ENXIO;

	inode_lock_shared(inode);
	if (offset >= 0)
		pos = sg_seek(sgfs_vol(inode), sgfs_ref(inode), offset, hole);
	inode_unlock_shared(inode);
	return pos < 0 ? pos : vfs_setpos(file, pos, inode->i_sb->s_maxbytes);
}

loff_t sgfs_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);
	int err = sgfs_refresh(inode);

	if (err)
		return err;
	if (whence == SEEK_HOLE || whence == SEEK_DATA)
		return seek_extent(file, offset, whence == SEEK_HOLE);
	return generic_file_llseek_size(file, offset, whence, inode->i_sb->s_maxbytes,
					i_size_read(inode));
}

static int open(struct inode *inode, struct file *file)
{
	int err = generic_file_open(inode, file) ?: sgfs_refresh(inode) ?: sgfs_map_open(inode);

	file->f_mode |= SGFS_FILE_MODE;
	return err;
}

static int release(struct inode *inode, struct file *file)
{
	sgfs_map_close(inode);
	return 0;
}

const struct file_operations sgfs_file_operations = {
	.read_iter		= read_iter,
	.write_iter		= write_iter,
	.open			= open,
	.release		= release,
	.llseek			= sgfs_llseek,
	.fsync			= sgfs_fsync,
	.fallocate		= sgfs_fallocate,
	.mmap			= sgfs_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.splice_read		= SGFS_SPLICE_READ,
	.splice_write		= iter_file_splice_write,
	.setlease		= generic_setlease,
	SGFS_FILE_FLAGS_OP,
};

const struct inode_operations sgfs_file_inode_operations = {
	.setattr	= sgfs_setattr,
	.getattr	= sgfs_getattr,
	.listxattr	= sgfs_listxattr,
	.update_time	= sgfs_update_time,
	.set_acl	= sgfs_set_acl,
	.fiemap		= sgfs_fiemap,
	.fileattr_get	= sgfs_fileattr_get,
	.fileattr_set	= sgfs_fileattr_set,
	SGFS_GET_ACL_OP,
};

/* No page of a file is ever in the page cache; but the VFS likes to call these. */
const struct address_space_operations sgfs_address_operations = {
	.dirty_folio	= noop_dirty_folio,
	.direct_IO	= noop_direct_IO,
};
