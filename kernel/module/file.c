// SPDX-License-Identifier: GPL-2.0
/*
 * Read and write. There is no page cache: a read is one copy out of the volume. A write is one copy
 * into the volume, durable when the call returns. So every file behaves as if opened with O_DIRECT.
 */
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "copy_wide.h"
#include "stargatefs.h"
#include "trace.h"

static u64 sgfs_pages_spanned(u64 pos, size_t len)
{
	return DIV_ROUND_UP(offset_in_page(pos) + len, PAGE_SIZE);
}

/* --- read ------------------------------------------------------------------------------------- */

#define TRIES	16	/* attempts to copy, if an attempt copies nothing */
#define CUT_TRIES	4	/* attempts to read a file that another system cuts */
/* attempts to read a file that another system writes by atomic writes */
#define WHOLE_TRIES	16
#define SECONDS_A_DAY	(24 * 60 * 60)

static size_t sgfs_copy_run(const struct sg_vol *vol, const struct sg_run *run, u64 pos, size_t n,
			    struct iov_iter *to)
{
	if (run->off)
		return _copy_mc_to_iter(vol->base + run->off + offset_in_page(pos), n, to);
	return iov_iter_zero(n, to);
}

/*
 * Walk and copy in one look. A system that waits for the end of looks (D7) must not wait for the
 * user's memory. An absent page ends the copy early (*@want: the length it should have had; *@stop:
 * the position in the volume).
 */
static ssize_t sgfs_read_piece(struct inode *inode, u64 pos, size_t *want, struct iov_iter *to,
			       u64 *stop)
{
	struct sg_vol *vol = sgfs_vol(inode);
	struct sg_run run;
	ssize_t n;

	sg_look_begin();
	n = sg_walk(vol, sgfs_ref(inode), pos >> PAGE_SHIFT, sgfs_pages_spanned(pos, *want), &run);
	if (!n) {
		*want = min3(*want, (size_t)((run.pages << PAGE_SHIFT) - offset_in_page(pos)),
			     (size_t)SGFS_PIECE);
		pagefault_disable();
		n = sgfs_copy_run(vol, &run, pos, *want, to);
		pagefault_enable();
		*stop = run.off ? run.off + offset_in_page(pos) + n : 0;
	}
	sg_look_end();
	return n;
}

/* Copy through a bounce page, for an iterator that allocates during the copy. */
static ssize_t sgfs_read_bounced(struct inode *inode, u64 pos, size_t *want, struct iov_iter *to,
				 u64 *stop, bool nowait)
{
	gfp_t gfp = nowait ? GFP_NOWAIT | __GFP_NOWARN : GFP_KERNEL;
	void *page = (void *)__get_free_page(gfp);
	struct kvec vec = { .iov_base = page };
	struct iov_iter bounce;
	ssize_t n = nowait ? -EAGAIN : -ENOMEM;

	*want = min_t(size_t, *want, PAGE_SIZE);
	if (page) {
		vec.iov_len = *want;
		iov_iter_kvec(&bounce, ITER_DEST, &vec, 1, *want);
		n = sgfs_read_piece(inode, pos, want, &bounce, stop);
		if (n > 0)
			n = _copy_to_iter(page, n, to);
	}
	free_page((unsigned long)page);
	return n;
}

static ssize_t sgfs_read_walking(struct inode *inode, u64 pos, size_t len, struct iov_iter *to,
				 bool nowait)
{
	bool bounce = sgfs_iter_allocates(to);
	unsigned int tries = 0;
	size_t done = 0, want;
	u64 stop = 0;
	ssize_t n;

	while (done < len) {
		want = len - done;
		n = bounce ? sgfs_read_bounced(inode, pos + done, &want, to, &stop, nowait) :
			     sgfs_read_piece(inode, pos + done, &want, to, &stop);
		if (n < 0)
			return done ?: n;
		done += n;
		if (n == want) {
			tries = 0;
			if (done < len)
				cond_resched();
			continue;
		}
		if (nowait)
			return done ?: -EAGAIN;
		/*
		 * Handle a copy that ended early: either the user's memory was absent, and a fault
		 * brings it in, or the volume's page is bad (poison.c).
		 */
		if (stop && sgfs_poison_met(SGFS(inode->i_sb), stop, want - n))
			return done ?: -EIO;
		tries = n ? 0 : tries + 1;
		if (tries == TRIES || fault_in_iov_iter_writeable(to, want - n) == want - n)
			return done ?: -EFAULT;
	}
	return done;
}

static ssize_t sgfs_read_once(struct inode *inode, u64 pos, struct iov_iter *to, bool nowait)
{
	loff_t size = i_size_read(inode);
	size_t len, done;
	ssize_t walked;

	if (pos >= size)
		return 0;
	len = min_t(u64, iov_iter_count(to), size - pos);
	done = sgfs_map_read(inode, pos, len, to, nowait);
	if (done < len) {
		walked = sgfs_read_walking(inode, pos + done, len - done, to, nowait);
		if (walked > 0)
			sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, walked);
		if (walked < 0 && !done)
			return walked;
		done += max_t(ssize_t, walked, 0);
	}
	return done;
}

/*
 * Refresh the inode. A call that must not wait (RWF_NOWAIT, the first attempt of io_uring) uses
 * cached attributes, because a change of the inode by another system may take any time. -EAGAIN:
 * the caller retries, and may wait then.
 */
static int sgfs_file_look(struct inode *inode, bool nowait)
{
	if (!nowait)
		return sgfs_refresh(inode);
	return sgfs_is_fresh(inode) ? 0 : -EAGAIN;
}

/*
 * Report whether the time of the last access must be stored, which needs the file's lock between
 * systems. It is due when the VFS would store it, or more often.
 */
static bool sgfs_atime_is_due(const struct file *file)
{
	const struct inode *inode = file_inode(file);
	unsigned int flags = file->f_path.mnt->mnt_flags;
	struct timespec64 atime = inode_get_atime(inode), mtime = inode_get_mtime(inode);
	struct timespec64 ctime = inode_get_ctime(inode);

	if (file->f_flags & O_NOATIME || IS_NOATIME(inode) || flags & (MNT_NOATIME | MNT_READONLY))
		return false;
	return !(flags & MNT_RELATIME) || timespec64_compare(&mtime, &atime) >= 0 ||
	       timespec64_compare(&ctime, &atime) >= 0 ||
	       ktime_get_real_seconds() - atime.tv_sec >= SECONDS_A_DAY;
}

/*
 * Read, and read again if another system has changed the file meanwhile. If it has cut the file,
 * the first read may return zeroes beyond the new end, which the file never had. In a file of
 * atomic writes, the first read may return a part of a write by another system.
 */
static ssize_t sgfs_read_locked(struct inode *inode, u64 pos, struct iov_iter *to, bool nowait)
{
	const struct sg_inode *record = sgfs_record(inode);
	unsigned int turn = 0;
	u64 cuts, seq;
	ssize_t n;
	int err;

	for (;;) {
		cuts = READ_ONCE(record->cuts);
		seq = READ_ONCE(SGFS_I(inode)->seq);
		n = sgfs_read_once(inode, pos, to, nowait);
		/*
		 * Check after a copy whether this system was fenced. Other systems then do not wait
		 * for it any more, and the page may belong to another file.
		 */
		err = sgfs_file_look(inode, nowait);
		if (err || n <= 0)
			return err ?: n;
		if (sgfs_is_torn(inode, seq)) {
			iov_iter_revert(to, n);
			if (fatal_signal_pending(current))
				return -EINTR;
			if (++turn >= WHOLE_TRIES)
				return nowait ? -EAGAIN : sgfs_read_alone(inode, pos, to);
			continue;
		}
		if (likely(cuts == READ_ONCE(record->cuts) && pos + n <= i_size_read(inode)))
			return n;
		if (++turn >= CUT_TRIES)
			return n;
		iov_iter_revert(to, n);
	}
}

/*
 * Read a file of atomic writes in the parts that one atomic write can change. So after a write by
 * another system only one part is read again.
 */
static ssize_t sgfs_read_parts(struct inode *inode, u64 pos, struct iov_iter *to, bool nowait)
{
	size_t all = iov_iter_count(to), want;
	ssize_t done = 0, n;

	do {
		want = sg_atomic_unit(pos + done, all - done);
		iov_iter_truncate(to, want);
		n = sgfs_read_locked(inode, pos + done, to, nowait);
		done += max_t(ssize_t, n, 0);
		iov_iter_reexpand(to, all - done);
	} while (n == want && done < all && !fatal_signal_pending(current));
	return done ?: n;
}

static ssize_t sgfs_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool nowait = iocb->ki_flags & IOCB_NOWAIT;
	ssize_t n;

	if (!iov_iter_count(to))
		return 0;
	if (!nowait)
		inode_lock_shared(inode);
	else if (sgfs_atime_is_due(iocb->ki_filp) || !inode_trylock_shared(inode))
		return -EAGAIN;
	n = sgfs_file_look(inode, nowait);
	if (!n && sgfs_is_read_whole(inode))
		n = sgfs_read_parts(inode, iocb->ki_pos, to, nowait);
	else if (!n)
		n = sgfs_read_locked(inode, iocb->ki_pos, to, nowait);
	inode_unlock_shared(inode);
	trace_sgfs_read(inode, iocb->ki_pos, n);
	if (n > 0) {
		iocb->ki_pos += n;
		sgfs_add(inode->i_sb, SGFS_READS, 1);
		sgfs_add(inode->i_sb, SGFS_READ_BYTES, n);
	}
	if (!nowait)
		file_accessed(iocb->ki_filp);
	return n;
}

/* --- write ------------------------------------------------------------------------------------ */

/*
 * Unmap the pages of zeroes after a hole was filled. A process that read the hole through a mapping
 * has such a page. The barrier pairs with the one in the fault handler: either this task sees the
 * mapping, or the fault sees the new page.
 */
void sgfs_show_filled(struct inode *inode, u64 pos, size_t len)
{
	smp_mb();
	if (mapping_mapped(inode->i_mapping)) {
		filemap_invalidate_lock(inode->i_mapping);
		sgfs_unmap(inode, pos, len, false);
		filemap_invalidate_unlock(inode->i_mapping);
	}
	sg_wait_mappers(sgfs_vol(inode), sgfs_ref(inode), true);
}

static size_t sgfs_file_copy_in(struct inode *inode, const struct sg_write *w, size_t want,
				struct iov_iter *from)
{
	void *to = sgfs_vol(inode)->base + w->off;
	size_t copied;

	want = min_t(u64, want, w->len);
	pagefault_disable();
	copied = sg_copy_wide(to, want, from);
	if (copied < want)
		copied += _copy_from_iter_flushcache(to + copied, want - copied, from);
	pagefault_enable();
	return copied;
}

/*
 * Write in place without a lock, as one look; otherwise with the inode locked, so that the file
 * keeps its pages. In both cases page faults are not allowed.
 */
static int sgfs_begin_piece(struct inode *inode, u64 pos, size_t want, struct iov_iter *from,
			    struct sg_write *w, size_t *copied)
{
	struct sg_vol *vol = sgfs_vol(inode);
	int err;

	sg_look_begin();
	err = sg_write_begin(vol, sgfs_ref(inode), pos, want, SG_WRITE_IN_PLACE, w);
	if (!err)
		*copied = sgfs_file_copy_in(inode, w, want, from);
	sg_look_end();
	if (err != -EAGAIN)
		return err;
	err = sg_write_begin(vol, sgfs_ref(inode), pos, want, SG_WRITE_LOCKED, w);
	if (!err)
		*copied = sgfs_file_copy_in(inode, w, want, from);
	return err;
}

/* Return the bytes written; 0: the source must be faulted in again. */
static ssize_t sgfs_write_piece(struct inode *inode, u64 pos, struct iov_iter *from, s64 now,
				bool *filled)
{
	size_t want = min_t(u64, iov_iter_count(from), SGFS_PIECE), copied;
	struct sg_write w;
	bool fresh;
	int err;

	if (fault_in_iov_iter_readable(from, want) == want)
		return -EFAULT;
	err = sgfs_begin_piece(inode, pos, want, from, &w, &copied);
	if (err)
		return err;
	fresh = w.fresh;
	err = sg_write_end(sgfs_vol(inode), sgfs_ref(inode), &w, copied, now);
	if (err) {
		iov_iter_revert(from, copied);
		return err;
	}
	*filled |= fresh && copied;
	return copied;
}

static ssize_t sgfs_write_walking(struct inode *inode, u64 pos, struct iov_iter *from, s64 now)
{
	ssize_t done = 0, n = 0;
	unsigned int tries = 0;
	bool filled = false;

	while (iov_iter_count(from)) {
		n = sgfs_write_piece(inode, pos + done, from, now, &filled);
		/*
		 * The kernel's copy may stop some bytes before the absent page, so one attempt
		 * without progress is not an error.
		 */
		tries = n ? 0 : tries + 1;
		if (tries == TRIES)
			n = -EFAULT;
		if (n == -EMEDIUMTYPE)	/* the attribute was set meanwhile */
			n = sgfs_write_atomic(inode, pos + done, from);
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
	/* After an early end, new pages may also lie beyond the written bytes. */
	if (filled)
		sgfs_show_filled(inode, pos, iov_iter_count(from) ? done + SGFS_PIECE : done);
	if (done)
		sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, done);
	return done ?: n;
}

/*
 * Write in place through a window, as far as pages exist. The times are stored first, because that
 * may fail.
 */
static ssize_t sgfs_write_windowed(struct inode *inode, u64 pos, struct iov_iter *from, s64 now)
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
	return sgfs_alive(inode->i_sb) ? done : -EIO;
}

static ssize_t sgfs_write_locked(struct inode *inode, u64 pos, struct iov_iter *from)
{
	struct timespec64 now = current_time(inode);
	loff_t size = i_size_read(inode);
	ssize_t done, n = 0;

	done = sgfs_write_windowed(inode, pos, from, sgfs_ns(now));
	if (done < 0)
		return done;
	if (iov_iter_count(from))
		n = sgfs_write_walking(inode, pos + done, from, sgfs_ns(now));
	sgfs_refresh(inode);
	if (done || n > 0) {	/* writes in place change the times without the change counter */
		inode_set_mtime_to_ts(inode, now);
		inode_set_ctime_to_ts(inode, now);
	}
	if (i_size_read(inode) > size)
		sgfs_map_grown(inode);
	return n < 0 ? done ?: n : done + n;
}

/*
 * --- appending: the bytes of one call are contiguous, for any length ----------------------------
 */

/*
 * Write the first part completely, or return 0. After a 0, sgfs_append_locked() tries again, and
 * sgfs_append_once() faults the source in first.
 */
static ssize_t sgfs_append_piece(struct inode *inode, u64 pos, struct iov_iter *from, s64 now,
				 bool first)
{
	size_t want = min_t(u64, iov_iter_count(from), SGFS_PIECE), copied;
	struct sg_write w;
	int err = sg_write_begin(sgfs_vol(inode), sgfs_ref(inode), pos, want, SG_WRITE_APPEND, &w);

	if (err)
		return err;
	copied = sgfs_file_copy_in(inode, &w, want, from);
	if (first && copied < min_t(u64, want, w.len)) {
		iov_iter_revert(from, copied);
		copied = 0;
	}
	err = sg_write_end(sgfs_vol(inode), sgfs_ref(inode), &w, copied, now);
	if (err)
		iov_iter_revert(from, copied);
	return err ?: (ssize_t)copied;
}

/* @buf: of an atomic write, or NULL. */
static ssize_t sgfs_append_pieces(struct inode *inode, u64 pos, struct iov_iter *from, void *buf,
				  s64 now)
{
	ssize_t done = 0, n = 0;

	while (iov_iter_count(from)) {
		n = buf ? sgfs_append_unit(inode, pos + done, from, buf, now) :
			  sgfs_append_piece(inode, pos + done, from, now, !done);
		if (n <= 0)
			break;
		done += n;
		cond_resched();
		if (fatal_signal_pending(current))
			break;
	}
	return done ?: n;
}

/* Append with the file locked between systems; 0: the source must be faulted in again. */
static ssize_t sgfs_append_once(struct kiocb *iocb, struct iov_iter *from, void *buf, s64 now)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t asked = iov_iter_count(from);
	ssize_t n;
	u64 size;

	if (fault_in_iov_iter_readable(from, iov_iter_count(from)) == iov_iter_count(from))
		return -EFAULT;
	n = sg_append_begin(sgfs_vol(inode), sgfs_ref(inode), &size);
	if (n)
		return n;
	n = sgfs_refresh(inode);
	if (!n)
		n = generic_write_checks(iocb, from);	/* at the current end */
	if (n > 0)
		n = sgfs_atomic_allowed(iocb, from, asked) ?: n;
	if (n > 0)
		n = sgfs_append_pieces(inode, iocb->ki_pos, from, buf, now);
	sg_append_end(sgfs_vol(inode), sgfs_ref(inode));
	/* bad memory: a failed atomic unit may have filled the hole at the old end, too */
	if (unlikely(buf))
		sgfs_show_filled(inode, iocb->ki_pos, max_t(ssize_t, n, 0) + SG_ATOMIC_MAX);
	else if (n > 0)
		sgfs_show_filled(inode, iocb->ki_pos, n);
	return n;
}

static ssize_t sgfs_append_locked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool atomic = sgfs_writes_atomic(iocb, inode);
	void *buf = atomic ? sgfs_unit_take(SGFS(inode->i_sb)) : NULL;
	struct sg_nospace nospace = {};
	s64 now = sgfs_now(inode);
	unsigned int tries = 0;
	ssize_t n;

	if (atomic && !buf)
		return -ENOMEM;
	n = atomic ? sg_note_whole_first(sgfs_vol(inode), sgfs_ref(inode)) : 0;
	if (n) {
		sgfs_unit_give(SGFS(inode->i_sb), buf);
		return n;
	}
	do {
		n = sgfs_append_once(iocb, from, buf, now);
		if (n == -EMEDIUMTYPE) {	/* the attribute was set meanwhile */
			buf = sgfs_unit_take(SGFS(inode->i_sb));
			n = buf ? 0 : -ENOMEM;
		}
	} while (!fatal_signal_pending(current) &&
		 ((!n && ++tries < TRIES) ||
		  (n == -ENOSPC && sg_more_space(sgfs_vol(inode), &nospace))));
	if (unlikely(buf))
		sgfs_unit_give(SGFS(inode->i_sb), buf);
	sgfs_refresh(inode);
	if (n > 0)
		sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, n);
	if (n > 0 || unlikely(atomic))
		sgfs_map_grown(inode);
	return n ?: -EFAULT;
}

static ssize_t sgfs_write_checked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t asked = iov_iter_count(from);
	ssize_t n = sgfs_refresh(inode);

	if (!n && sgfs_is_sealed(inode))
		n = -EPERM;
	if (!n)
		n = generic_write_checks(iocb, from);
	if (n <= 0)
		return n;
	n = sgfs_remove_privs(iocb->ki_filp);
	if (n)
		return n;
	if (iocb->ki_flags & IOCB_APPEND)
		return sgfs_append_locked(iocb, from);
	if (sgfs_writes_atomic(iocb, inode)) {
		n = sgfs_atomic_allowed(iocb, from, asked) ?:
		    sgfs_write_atomic(inode, iocb->ki_pos, from);
		if (n > 0)
			sgfs_add(inode->i_sb, SGFS_WALKED_BYTES, n);
		return n;
	}
	return sgfs_write_locked(inode, iocb->ki_pos, from);
}

static ssize_t sgfs_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n;

	/*
	 * Return -EAGAIN for a write that must not wait. Even the times alone are stored with the
	 * file locked between systems, so each write may wait.
	 */
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	inode_lock(inode);
	n = sgfs_write_checked(iocb, from);
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

/* Make stores through mappings durable; all other writes already are. */
int sgfs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	int err = sgfs_store_time(inode);

	sgfs_add(inode->i_sb, SGFS_FSYNCS, 1);
	sg_fence();	/* times are written back without waiting */
	return sgfs_written_sync(inode, start >> PAGE_SHIFT, end >> PAGE_SHIFT) ?: err;
}

static loff_t sgfs_seek_extent(struct file *file, loff_t offset, bool hole)
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
		return sgfs_seek_extent(file, offset, whence == SEEK_HOLE);
	return generic_file_llseek_size(file, offset, whence, inode->i_sb->s_maxbytes,
					i_size_read(inode));
}

static int sgfs_file_open(struct inode *inode, struct file *file)
{
	int err = generic_file_open(inode, file) ?: sgfs_refresh(inode) ?: sgfs_open(inode);

	if (!err && file->f_mode & FMODE_WRITE)
		err = sgfs_open_to_write(inode);
	file->f_mode |= SGFS_FILE_MODE;
	if (sgfs_knows_atomic(inode->i_sb))
		file->f_mode |= SGFS_FILE_ATOMIC;
	return err;
}

static int sgfs_file_release(struct inode *inode, struct file *file)
{
	sgfs_close(inode);
	return 0;
}

const struct file_operations sgfs_file_operations = {
	.read_iter		= sgfs_read_iter,
	.write_iter		= sgfs_write_iter,
	.open			= sgfs_file_open,
	.release		= sgfs_file_release,
	.llseek			= sgfs_llseek,
	.fsync			= sgfs_fsync,
	.fallocate		= sgfs_fallocate,
	.mmap			= sgfs_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.splice_read		= SGFS_SPLICE_READ,
	.splice_write		= iter_file_splice_write,
	.lock			= sgfs_lock,
	.flock			= sgfs_flock,
	.unlocked_ioctl		= sgfs_file_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	SGFS_NO_LEASES_OP,
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

/* No page of a file is ever in the page cache, but the VFS calls these functions anyway. */
const struct address_space_operations sgfs_address_operations = {
	.dirty_folio	= noop_dirty_folio,
	.direct_IO	= noop_direct_IO,
};
