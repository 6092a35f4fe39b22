// SPDX-License-Identifier: GPL-2.0
/*
 * Faults that may wait for another system, and the times of stores by mappings.
 *
 * Another system may keep a lock for as long as it likes. A fault that stores delays each freeze
 * (sb_start_pagefault()). The freeze holds s_umount, which sync(2) needs for all mounts. The fault
 * also holds mmap_lock, as a call of mmap() does: a task that looks at the process, as ps does,
 * waits for it.
 *
 * So no fault waits in this way during a freeze: it ends, and is retried, to wait for the thaw. No
 * fault that can be retried waits long with mmap_lock either: it drops mmap_lock first (mmap.c).
 */
#include "stargatefs.h"

void sgfs_begin_waiting(struct sgfs *fs, struct sgfs_waiting *w, bool brief)
{
	w->task = current;
	w->until = U64_MAX;
	if (brief)	/* a lock that was kept for long is not about to be released */
		w->until = ktime_get_ns() + (READ_ONCE(fs->vol.stuck) ? 0 : SGFS_BRIEF_NS);
	spin_lock(&fs->waiting_lock);
	list_add(&w->list, &fs->waiting);
	spin_unlock(&fs->waiting_lock);
}

void sgfs_end_waiting(struct sgfs *fs, struct sgfs_waiting *w)
{
	spin_lock(&fs->waiting_lock);
	list_del(&w->list);
	spin_unlock(&fs->waiting_lock);
}

bool sgfs_gives_way(const struct sg_vol *vol)
{
	struct sgfs *fs = container_of((struct sg_vol *)vol, struct sgfs, vol);
	bool freezes = READ_ONCE(fs->sb->s_writers.frozen) >= SB_FREEZE_PAGEFAULT, ends = false;
	struct sgfs_waiting *w;

	if (list_empty(&fs->waiting))
		return false;
	spin_lock(&fs->waiting_lock);
	list_for_each_entry(w, &fs->waiting, list)
		if (w->task == current)
			ends |= freezes || ktime_get_ns() >= w->until;
	spin_unlock(&fs->waiting_lock);
	return ends;
}

/* --- times of stores -------------------------------------------------------------------------- */

/*
 * Times of stores by mappings. The store to come makes no fault, and cannot wait for another system
 * to let its time be stored. So a time that cannot be stored now is deferred: stat() here shows it.
 * fsync() stores it, or the maintenance of each second does (membership.c). Until then a reference
 * keeps the inode in memory: its eviction may be part of memory reclaim, which cannot wait either.
 * A system that keeps many files locked cannot pin any number of inodes so.
 */
#define DEFERRED_MAX	4096	/* deferred times of a mount; later ones are not recorded */

static void sgfs_defer_time(struct inode *inode, s64 time)
{
	s64 *deferred = &SGFS_I(inode)->deferred_time, seen;
	struct sgfs *fs = SGFS(inode->i_sb);

	if (atomic_read(&fs->deferred_times) >= DEFERRED_MAX && !READ_ONCE(*deferred))
		return;
	ihold(inode);
	do {
		seen = READ_ONCE(*deferred);
	} while (time > seen && cmpxchg(deferred, seen, time) != seen);
	if (seen)
		iput(inode);	/* it has its reference; the caller's file has another one */
	else
		atomic_inc(&fs->deferred_times);
	sgfs_written_track(inode);
}

void sgfs_forget_time(struct inode *inode, s64 time)
{
	if (!time || cmpxchg(&SGFS_I(inode)->deferred_time, time, 0) != time)
		return;
	atomic_dec(&SGFS(inode->i_sb)->deferred_times);
	iput(inode);
}

/*
 * The caller has the inode locked: utimes() then comes before or after, never between. A later time
 * in the record stays. -EINTR: another system is in the way, or the mount is frozen.
 */
static int sgfs_store_deferred_locked(struct inode *inode)
{
	struct super_block *sb = inode->i_sb;
	unsigned int set = 0;
	int err = 0;
	s64 time;

	time = READ_ONCE(SGFS_I(inode)->deferred_time);
	if (!time)	/* utimes() came first */
		return 0;
	if (sgfs_is_lost(inode)) {
		sgfs_forget_time(inode, time);
		return -EIO;
	}
	if (!sb_start_intwrite_trylock(sb))
		return -EINTR;
	if (time > (s64)READ_ONCE(sgfs_record(inode)->mtime))
		set |= SG_SET_MTIME;
	if (time > (s64)READ_ONCE(sgfs_record(inode)->ctime))
		set |= SG_SET_CTIME;
	if (set)
		err = sg_touch(sgfs_vol(inode), sgfs_ref(inode), set, time, time, 0);
	if (!err || err == -ESTALE || err == -EIO)
		sgfs_forget_time(inode, time);
	sb_end_intwrite(sb);
	return err;
}

/* Data is durable without the time. So a read-only or frozen mount is no error: the time waits. */
int sgfs_store_deferred_time(struct inode *inode)
{
	int err = down_write_killable(&inode->i_rwsem);
	struct sgfs_waiting w;

	if (err)
		return err;
	sgfs_begin_waiting(SGFS(inode->i_sb), &w, false);
	err = sgfs_store_deferred_locked(inode);
	sgfs_end_waiting(SGFS(inode->i_sb), &w);
	inode_unlock(inode);
	return err == -EROFS || (err == -EINTR && !fatal_signal_pending(current)) ? 0 : err;
}

/* sgfs_written_*() limit the wait of all such calls of a pass. */
void sgfs_store_time_soon(struct inode *inode)
{
	if (READ_ONCE(SGFS_I(inode)->deferred_time) && inode_trylock(inode)) {
		sgfs_store_deferred_locked(inode);
		inode_unlock(inode);
	}
}

void sgfs_note_store(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct timespec64 now = current_time(inode), mtime = inode_get_mtime(inode);
	struct timespec64 ctime = inode_get_ctime(inode);
	struct sgfs_waiting w;

	if (timespec64_equal(&mtime, &now) && timespec64_equal(&ctime, &now))
		return;
	sgfs_begin_waiting(SGFS(inode->i_sb), &w, true);
	if (file_update_time(file) == -EINTR)
		sgfs_defer_time(inode, sgfs_ns(now));
	sgfs_end_waiting(SGFS(inode->i_sb), &w);
}
