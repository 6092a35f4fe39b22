// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic writes (docs/atomic-data.md): with RWF_ATOMIC, to files with the attribute, and through a
 * mount with data=atomic. The module first copies the bytes into memory of this system, so that the
 * engine has all of them even if the user's memory changes or disappears.
 *
 * A read of up to SG_ATOMIC_MAX bytes of such a file has all of a write or nothing of it, also
 * while another system writes.
 */
#include <linux/iversion.h>
#include <linux/log2.h>
#include <linux/mount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "uapi/ioctl.h"
#include "stargatefs.h"

bool sgfs_knows_atomic(const struct super_block *sb)
{
	return SGFS(sb)->vol.sb.incompat & SG_INCOMPAT_ATOMIC;
}

/* --- writes ----------------------------------------------------------------------------------- */

/*
 * Check the kernel's rules for RWF_ATOMIC: one segment, whose length is a power of two, at a
 * multiple of this length.
 */
int sgfs_atomic_refusal(const struct kiocb *iocb, const struct iov_iter *from, size_t asked)
{
	size_t len = iov_iter_count(from);

	if (!sgfs_iter_is_one(from) || len != asked || len < SGFS_ATOMIC_MIN ||
	    len > SG_ATOMIC_MAX || !is_power_of_2(len) || !IS_ALIGNED(iocb->ki_pos, len))
		return -EINVAL;
	return 0;
}

/* The kept memory is in places by processor. Taking and giving it back are single swaps. */
static void **sgfs_unit_place(struct sgfs *fs)
{
	return &fs->units[raw_smp_processor_id() % SGFS_UNITS];
}

void *sgfs_unit_take(struct sgfs *fs)
{
	return xchg(sgfs_unit_place(fs), NULL) ?: kvmalloc(SG_ATOMIC_MAX, GFP_KERNEL);
}

void sgfs_unit_give(struct sgfs *fs, void *unit)
{
	if (unit)
		kvfree(xchg(sgfs_unit_place(fs), unit));
}

void sgfs_units_free(struct sgfs *fs)
{
	unsigned int i;

	for (i = 0; i < SGFS_UNITS; i++)
		kvfree(fs->units[i]);
}

/* Copy all of the unit, or nothing (0). */
static size_t sgfs_copy_unit(void *buf, u64 want, struct iov_iter *from)
{
	size_t copied = copy_from_iter(buf, want, from);

	if (copied == want)
		return want;
	iov_iter_revert(from, copied);
	return 0;
}

static ssize_t sgfs_write_unit(struct inode *inode, u64 pos, struct iov_iter *from, void *buf,
			       s64 now, bool *filled)
{
	u64 want = sg_atomic_unit(pos, iov_iter_count(from));
	int err;

	if (!sgfs_copy_unit(buf, want, from))
		return -EFAULT;
	err = sg_write_atomic(sgfs_vol(inode), sgfs_ref(inode), pos, buf, want, 0, now, filled);
	if (!err)
		return want;
	iov_iter_revert(from, want);
	return err;
}

static ssize_t sgfs_write_units(struct inode *inode, u64 pos, struct iov_iter *from, void *buf,
				s64 now, bool *filled)
{
	ssize_t done = 0, n = 0;

	while (iov_iter_count(from)) {
		n = sgfs_write_unit(inode, pos + done, from, buf, now, filled);
		if (n < 0)
			break;
		done += n;
		cond_resched();
		if (iov_iter_count(from) && fatal_signal_pending(current)) {
			n = -EINTR;
			break;
		}
	}
	/* bad memory: the failed unit may have filled holes, too */
	if (*filled)
		sgfs_show_filled(inode, pos,
				 done + sg_atomic_unit(pos + done, iov_iter_count(from)));
	return done ?: n;
}

/*
 * Show an atomic write of this system in the VFS inode, which was fresh with the counter @seq. If
 * the counter has advanced by one change, that change was this write, which has changed nothing but
 * the times. Return false if another change came between.
 */
static bool sgfs_show_write(struct inode *inode, u64 seq, struct timespec64 now)
{
	struct sgfs_inode *si = SGFS_I(inode);
	bool only;

	if (sgfs_is_lost(inode))
		return false;
	spin_lock(&inode->i_lock);
	only = si->seq == seq && smp_load_acquire(&sgfs_record(inode)->seq) == seq + 2;
	if (only) {
		inode_set_mtime_to_ts(inode, now);
		inode_set_ctime_to_ts(inode, now);
		inode_set_iversion(inode, (seq + 2) / 2);
		smp_store_release(&si->seq, seq + 2);
	}
	spin_unlock(&inode->i_lock);
	return only;
}

/*
 * @buf: memory for the bytes of a unit. The VFS inode was fresh at the beginning of the call, and
 * the VFS has it locked.
 */
static ssize_t sgfs_write_from(struct inode *inode, u64 pos, struct iov_iter *from, void *buf)
{
	size_t asked = iov_iter_count(from);
	struct timespec64 now = current_time(inode);
	loff_t size = i_size_read(inode);
	u64 seq = READ_ONCE(SGFS_I(inode)->seq);
	bool filled = false;
	ssize_t n = sgfs_write_units(inode, pos, from, buf, sgfs_ns(now), &filled);

	if (n == asked && asked <= SG_ATOMIC_MAX && !filled && pos + asked <= size &&
	    sgfs_show_write(inode, seq, now))
		return n;
	sgfs_refresh(inode);
	if (i_size_read(inode) > size)
		sgfs_map_grown(inode);
	return n;
}

/* Writes up to this length need no allocation of memory. */
#define SGFS_ATOMIC_SMALL	256

static noinline ssize_t sgfs_write_small(struct inode *inode, u64 pos, struct iov_iter *from)
{
	u8 buf[SGFS_ATOMIC_SMALL] SG_UNINITIALIZED;

	return sgfs_write_from(inode, pos, from, buf);
}

ssize_t sgfs_write_atomic(struct inode *inode, u64 pos, struct iov_iter *from)
{
	void *buf;
	ssize_t n;

	if (iov_iter_count(from) <= SGFS_ATOMIC_SMALL)
		return sgfs_write_small(inode, pos, from);
	buf = sgfs_unit_take(SGFS(inode->i_sb));
	if (!buf)
		return -ENOMEM;
	n = sgfs_write_from(inode, pos, from, buf);
	sgfs_unit_give(SGFS(inode->i_sb), buf);
	return n;
}

/*
 * Write a part of an append. The file is locked between systems, so page faults on @from are not
 * allowed. 0: a page is absent.
 */
ssize_t sgfs_append_unit(struct inode *inode, u64 pos, struct iov_iter *from, void *buf, s64 now)
{
	u64 want = sg_atomic_unit(pos, iov_iter_count(from));
	bool filled = false;
	size_t copied;
	int err;

	pagefault_disable();
	copied = sgfs_copy_unit(buf, want, from);
	pagefault_enable();
	if (!copied)
		return 0;
	err = sg_write_atomic(sgfs_vol(inode), sgfs_ref(inode), pos, buf, want, SG_WRITE_APPEND,
			      now, &filled);
	if (!err)
		return want;
	iov_iter_revert(from, want);
	return err;
}

/* --- reads ------------------------------------------------------------------------------------ */

/*
 * Report bad memory to all systems, if that is the reason why the engine could not copy some of
 * these bytes.
 */
static void sgfs_poison_in(struct inode *inode, u64 pos, size_t len)
{
	struct sg_run run;
	size_t n;
	int err;

	for (; len; pos += n, len -= n) {
		n = min_t(size_t, len, PAGE_SIZE - offset_in_page(pos));
		sg_look_begin();
		err = sg_walk(sgfs_vol(inode), sgfs_ref(inode), pos >> PAGE_SHIFT, 1, &run);
		sg_look_end();
		if (!err && run.off)
			sgfs_poison_met(SGFS(inode->i_sb), run.off + offset_in_page(pos), n);
	}
}

/*
 * Read a file that changed during each attempt: the engine reads into memory with the file locked.
 */
ssize_t sgfs_read_alone(struct inode *inode, u64 pos, struct iov_iter *to)
{
	void *buf = sgfs_unit_take(SGFS(inode->i_sb));
	ssize_t done = 0, n = 0, want;

	if (!buf)
		return -ENOMEM;
	while (iov_iter_count(to)) {
		want = sg_atomic_unit(pos + done, iov_iter_count(to));
		n = sg_read(sgfs_vol(inode), sgfs_ref(inode), pos + done, buf, want);
		if (n == -EIO)
			sgfs_poison_in(inode, pos + done, want);
		if (n > 0)
			n = copy_to_iter(buf, n, to) ?: -EFAULT;
		if (n > 0)
			done += n;
		if (n != want)
			break;
		cond_resched();
	}
	sgfs_unit_give(SGFS(inode->i_sb), buf);
	return done ?: n;
}

/* --- the attribute ---------------------------------------------------------------------------- */

static int sgfs_set_atomic(struct file *file, bool on)
{
	struct inode *inode = file_inode(file);
	int err = mnt_want_write_file(file);

	if (err)
		return err;
	inode_lock(inode);
	err = sgfs_refresh(inode);
	if (!err && IS_IMMUTABLE(inode))
		err = -EPERM;
	if (!err)
		err = sg_set_atomic(sgfs_vol(inode), sgfs_ref(inode), on, sgfs_now(inode));
	sgfs_refresh(inode);
	if (!err && S_ISREG(inode->i_mode))
		sgfs_map_grown(inode);
	inode_unlock(inode);
	mnt_drop_write_file(file);
	return err;
}

long sgfs_atomic_ioctl(struct file *file, void __user *user)
{
	struct inode *inode = file_inode(file);
	u32 arg;
	int err;

	if (get_user(arg, (u32 __user *)user))
		return -EFAULT;
	if (arg > SG_ATOMIC_ASK)
		return -EINVAL;
	if (arg != SG_ATOMIC_ASK && !inode_owner_or_capable(file_mnt_idmap(file), inode))
		return -EPERM;
	err = arg == SG_ATOMIC_ASK ? sgfs_refresh(inode) : sgfs_set_atomic(file, arg);
	if (err)
		return err;
	return SGFS_I(inode)->flags & SG_FL_ATOMIC ? 1 : 0;
}
