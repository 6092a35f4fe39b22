// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that hold locks for which page faults wait, and that may have to wait for another system.
 * Also the times of stores by mappings.
 *
 * Another system may keep a lock without a time limit. A fault for a store delays each freeze
 * (sb_start_pagefault()). The freeze holds s_umount, which sync(2) needs for all mounts. The fault
 * also holds mmap_lock, as a call of mmap() does, and a task that examines the process, as ps does,
 * waits for that lock. The fault may also wait for invalidate_lock.
 *
 * So no fault waits in this way during a freeze: it ends, and is retried, to wait for the thaw. No
 * fault that can be retried waits long with mmap_lock either: it drops mmap_lock first (mmap.c). No
 * task waits long with invalidate_lock: it tries briefly, waits without the lock, and tries again.
 */
#include <linux/hash.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "stargatefs.h"

/*
 * Waiting threads, hashed by task. A process may have very many, and each of them checks this table
 * about once a millisecond, with preemption off. So each chain must be short.
 */
#define WAITERS_BITS	12
static struct hlist_bl_head sgfs_waiters[1 << WAITERS_BITS];

static struct hlist_bl_head *sgfs_waiters_of(const struct task_struct *task)
{
	return &sgfs_waiters[hash_ptr(task, WAITERS_BITS)];
}

void sgfs_begin_waiting(const struct sgfs *fs, struct sgfs_waiting *w, u64 ns)
{
	struct hlist_bl_head *head = sgfs_waiters_of(current);

	w->fs = fs;
	w->task = current;
	w->left = ns;
	w->room_in = 0;
	w->last = ktime_get_ns();
	hlist_bl_lock(head);
	hlist_bl_add_head(&w->node, head);
	hlist_bl_unlock(head);
}

void sgfs_end_waiting(struct sgfs_waiting *w)
{
	struct hlist_bl_head *head = sgfs_waiters_of(current);

	hlist_bl_lock(head);
	hlist_bl_del(&w->node);
	hlist_bl_unlock(head);
}

#define LOOK_NS	NSEC_PER_MSEC	/* the longest time between two checks of one wait */

/*
 * Count the time since the last check. If it is longer, the thread has worked, or had no processor,
 * and only a part counts. So an attempt that has much to do may still wait.
 */
static bool sgfs_has_waited(struct sgfs_waiting *w)
{
	u64 now = ktime_get_ns();

	if (w->left != SGFS_ANY_NS)
		w->left -= min3(w->left, now - w->last, (u64)LOOK_NS);
	w->last = now;
	return !w->left;
}

bool sgfs_gives_way(const struct sg_vol *vol)
{
	const struct sgfs *fs = container_of(vol, struct sgfs, vol);
	bool freezes = READ_ONCE(fs->sb->s_writers.frozen) >= SB_FREEZE_PAGEFAULT, ends = false;
	struct hlist_bl_head *head = sgfs_waiters_of(current);
	struct hlist_bl_node *node;
	struct sgfs_waiting *w;

	if (hlist_bl_empty(head))
		return false;
	hlist_bl_lock(head);
	hlist_bl_for_each_entry(w, node, head, node)
		if (w->task == current && w->fs == fs)
			ends |= sgfs_has_waited(w) || freezes;
	hlist_bl_unlock(head);
	return ends;
}

void sgfs_room_locked(const struct sg_vol *vol, u64 lock)
{
	const struct sgfs *fs = container_of(vol, struct sgfs, vol);
	struct hlist_bl_head *head = sgfs_waiters_of(current);
	struct hlist_bl_node *node;
	struct sgfs_waiting *w;

	hlist_bl_lock(head);
	hlist_bl_for_each_entry(w, node, head, node)
		if (w->task == current && w->fs == fs)
			w->room_in = lock;
	hlist_bl_unlock(head);
}

/* --- invalidate_lock -------------------------------------------------------------------------- */

#define AT_ONCE		4	/* number of attempts without a pause */
#define LONGER_MOST	4	/* number of doublings of the time that an attempt may wait */
#define PAUSE_MOST	8	/* number of doublings of the pause, from 1 ms on */

/*
 * Wait for pages that other systems must free, after an attempt that needed them. Calls without
 * such a lock wait in the same way. The limit of the wait starts again if the file has got pages
 * since.
 */
static int sgfs_wait_frees(struct inode *inode, struct sgfs_attempts *a)
{
	u64 blocks = READ_ONCE(sgfs_record(inode)->blocks);

	if (blocks != a->blocks)
		a->nospace.since = 0;
	a->blocks = blocks;
	if (sg_more_space(sgfs_vol(inode), &a->nospace))
		return 0;
	return a->nospace.gives_way ? -EINTR : -ENOSPC;
}

/*
 * Wait for the inode's lock. If the attempt failed because of another lock, of an area or a chunk,
 * the next attempt waits for that lock. Consecutive attempts must not keep page faults out, nor
 * leave many spare inodes (collapse.c). So there is a pause between them.
 */
int sgfs_wait_outside(struct inode *inode, struct sgfs_attempts *a, u64 room_in)
{
	unsigned int turn = a->turns++;
	int err = fatal_signal_pending(current) ? -EINTR : 0;

	if (!err && room_in == SG_ROOM_OTHERS)
		err = sgfs_wait_frees(inode, a);
	if (!err)
		err = sg_wait_inode(sgfs_vol(inode), sgfs_ref(inode));
	if (!err && turn >= AT_ONCE)
		schedule_timeout_killable(msecs_to_jiffies(1 << min(turn - AT_ONCE, PAUSE_MOST)));
	return err;
}

/* wait for one chunk at a time, because pages may become free in others */
#define ROOM_NS		(100 * NSEC_PER_MSEC)

/*
 * Wait for the locked chunk that has the only free pages. 0: another attempt makes sense.
 */
static int sgfs_wait_room(struct inode *inode, u64 lock, u64 *room_ns)
{
	u64 start = ktime_get_ns();
	int err = sg_wait_room(sgfs_vol(inode), lock, min(*room_ns, (u64)ROOM_NS));

	if (*room_ns != SGFS_ANY_NS)
		*room_ns -= min(*room_ns, ktime_get_ns() - start);
	return err == -ENOSPC && *room_ns ? 0 : err;
}

/*
 * Call @change until it succeeds. The refresh also waits for a change counter that remains odd.
 * Each attempt may wait longer than the one before, because a collapse starts from the beginning
 * each time, and needs many locks.
 */
int sgfs_change_pages(struct inode *inode, int (*change)(struct inode *inode, void *arg),
		      void *arg, u64 room_ns)
{
	struct sgfs_attempts a = {};
	struct sgfs_waiting w;
	int err;

	do {
		filemap_invalidate_lock(inode->i_mapping);
		sgfs_begin_waiting(SGFS(inode->i_sb), &w,
				   (u64)SGFS_BRIEF_NS << min_t(unsigned int, a.turns, LONGER_MOST));
		err = change(inode, arg);
		sgfs_end_waiting(&w);
		filemap_invalidate_unlock(inode->i_mapping);
		sgfs_refresh_slow(inode);
		if (err != -EINTR)
			break;
		err = w.room_in && w.room_in != SG_ROOM_OTHERS && !fatal_signal_pending(current) ?
		      sgfs_wait_room(inode, w.room_in, &room_ns) : 0;
		err = err ?: sgfs_wait_outside(inode, &a, w.room_in);
	} while (!err);
	return err;
}

/* --- times of stores -------------------------------------------------------------------------- */

/*
 * Times of stores by mappings. The coming store makes no further fault, and cannot wait until
 * another system permits storing its time. So a time that cannot be stored now is deferred, and
 * stat() here shows it. fsync() stores it, or the maintenance of each second does (membership.c).
 * Until then a reference keeps the inode in memory: its eviction may be part of memory reclaim,
 * which cannot wait either. The number of such inodes is limited, so a system that keeps many files
 * locked cannot pin any number of them.
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
		iput(inode);	/* the inode has its reference; the caller's file has another one */
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
 * Store a time. The caller has the inode locked, so a utimes() call is before or after it, not in
 * between. A later time in the record remains. -EINTR: another system holds a lock, or the mount is
 * frozen.
 */
static int sgfs_store_deferred_locked(struct inode *inode)
{
	struct super_block *sb = inode->i_sb;
	unsigned int set = 0;
	int err = 0;
	s64 time;

	time = READ_ONCE(SGFS_I(inode)->deferred_time);
	if (!time)	/* utimes() was first */
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

/*
 * Store the deferred time of a file for fsync(). The data is durable even without the time, so a
 * read-only or frozen mount is no error: the time remains deferred.
 */
int sgfs_store_deferred_time(struct inode *inode)
{
	int err = down_write_killable(&inode->i_rwsem);
	struct sgfs_waiting w;

	if (err)
		return err;
	sgfs_begin_waiting(SGFS(inode->i_sb), &w, SGFS_ANY_NS);
	err = sgfs_store_deferred_locked(inode);
	sgfs_end_waiting(&w);
	inode_unlock(inode);
	return err == -EROFS || (err == -EINTR && !fatal_signal_pending(current)) ? 0 : err;
}

/*
 * Store a deferred time, unless another task has the inode locked. sgfs_for_all() limits the total
 * wait of a pass over all inodes.
 */
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
	sgfs_begin_waiting(SGFS(inode->i_sb), &w, sgfs_brief_ns(SGFS(inode->i_sb)));
	if (file_update_time(file) == -EINTR)
		sgfs_defer_time(inode, sgfs_ns(now));
	sgfs_end_waiting(&w);
}
