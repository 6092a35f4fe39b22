// SPDX-License-Identifier: GPL-2.0
/*
 * flock, fcntl and open-file locks. The volume's table grants locks (core/filelock/lock_table.c),
 * also between processes of this system. The VFS's own lists follow the table. So /proc/locks shows
 * the locks, and the VFS releases a process's locks when it closes the file or ends.
 *
 * A mount that is no member of the volume (read-only, of a device that cannot be written) uses only
 * the VFS's lists. Its locks are valid only in this system.
 */
#include <linux/once.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/siphash.h>
#include <linux/wait.h>

#include "stargatefs.h"

/*
 * Between two attempts a task sleeps for an eighth of its wait so far, within these limits. The
 * longest sleep is the delay until a release is detected for which no doorbell rings.
 */
#define NAP_NS_MIN	(50 * NSEC_PER_USEC)
#define NAP_NS_MAX	(20 * NSEC_PER_MSEC)
#define NAP_NS_BELL	(100 * NSEC_PER_MSEC)	/* the longest one if doorbells work */
/*
 * A sleep begins with a 64th of the wait so far, up to this time, which no ring ends. A ring does
 * not say which lock was released, and each attempt locks the chain, which all systems share.
 */
#define NAP_NS_RING	(1 * NSEC_PER_MSEC)

/*
 * Both tables of an inode change under its @tables (struct sgfs_inode), so that no reader sees them
 * differ. Its @changes counts these changes, for tasks that wait for a change by this system. No
 * task waits for another system under @tables, because a process that exits waits for this lock,
 * and cannot be killed.
 */
static wait_queue_head_t *sgfs_lock_waiters(struct sgfs_inode *si)
{
	return &SGFS(si->vfs.i_sb)->lock_waiters[si->ref.ino % SGFS_AWAITING];
}

static void sgfs_changed(struct sgfs_inode *si)
{
	wait_queue_head_t *waiters = sgfs_lock_waiters(si);

	atomic_inc(&si->changes);
	if (wq_has_sleeper(waiters))	/* includes the memory barrier */
		wake_up_all(waiters);
}

/* Another system has rung: it may have released a lock. Called in the interrupt. */
void sgfs_userlocks_rung(struct sgfs *fs)
{
	unsigned int i;

	atomic_inc(&fs->lock_rings);
	for (i = 0; i < SGFS_AWAITING; i++)
		if (wq_has_sleeper(&fs->lock_waiters[i]))
			wake_up_all(&fs->lock_waiters[i]);
}

/*
 * Hide the address of an owner, because other systems compare owners, but must not see addresses of
 * this kernel.
 */
static u64 sgfs_scrambled(const void *owner)
{
	static siphash_key_t key;

	get_random_once(&key, sizeof(key));
	return siphash_1u64((u64)(uintptr_t)owner, &key);
}

/*
 * Derive the kind of a lock from its owner, because the VFS does not name the kind when it drops an
 * open file's locks.
 */
static unsigned int sgfs_filelock_kind_of(const struct file *file, const struct file_lock *fl)
{
	if (sgfs_fl(fl, flags) & FL_FLOCK)
		return SG_USERLOCK_FLOCK;
	return sgfs_fl(fl, owner) == (fl_owner_t)file ? SG_USERLOCK_OFD : SG_USERLOCK_POSIX;
}

static struct sg_userlock sgfs_lock_of(const struct file *file, const struct file_lock *fl)
{
	return (struct sg_userlock){
		.kind = sgfs_filelock_kind_of(file, fl),
		.exclusive = sgfs_fl(fl, type) == F_WRLCK,
		.pid = sgfs_fl(fl, pid),
		.owner = sgfs_scrambled(sgfs_fl(fl, owner)),
		.start = fl->fl_start,
		.last = fl->fl_end,
		.brief = true,
	};
}

/* --- changing both tables --------------------------------------------------------------------- */

/* Change the VFS's lists without a wait: they allow any lock that the volume has granted. */
static int sgfs_change_local(struct file *file, struct file_lock *fl, unsigned char type)
{
	unsigned char was_type = sgfs_fl(fl, type);
	unsigned int was_flags = sgfs_fl(fl, flags);
	int err;

	sgfs_fl(fl, type) = type;
	sgfs_fl(fl, flags) &= ~FL_SLEEP;
	err = locks_lock_file_wait(file, fl);
	sgfs_fl(fl, type) = was_type;
	sgfs_fl(fl, flags) = was_flags;
	return err;
}

/* Report whether @err means that the operation would have to wait for another system. */
static bool sgfs_is_put_off(int err)
{
	return err == -EBUSY || err == -ENOBUFS;
}

/*
 * Report whether the task may be in execve(), which closes descriptors with this mutex held, for
 * which ptrace() waits. Some kernels also hold exec_update_lock then, and a reader of /proc/PID
 * waits for it. Tracers take the mutex as well, so a held mutex does not prove that this task
 * executes a program.
 */
static bool sgfs_executes(void)
{
	return current->in_execve;
}

/*
 * Report whether the task is ending, and so cannot be killed any more; the VFS also closes files in
 * kernel threads.
 */
static bool sgfs_ends(void)
{
	return current->flags & (PF_EXITING | PF_KTHREAD) || fatal_signal_pending(current);
}

static bool sgfs_must_not_wait(const struct file_lock *fl)
{
	return sgfs_ends() || (sgfs_fl(fl, flags) & FL_CLOSE && sgfs_executes());
}

/*
 * Report whether the owner has a lock in the VFS's lists, which have each lock of this system.
 * While a file has any lock, the VFS unlocks it at the close of each descriptor, for any owner.
 */
static bool sgfs_has_lock(struct inode *inode, const struct file_lock *fl)
{
	struct file_lock_context *ctx = smp_load_acquire(&inode->i_flctx);
	struct file_lock *it;
	bool found = false;

	if (!ctx)
		return false;
	spin_lock(&ctx->flc_lock);
	list_for_each_entry(it, sgfs_fl(fl, flags) & FL_FLOCK ? &ctx->flc_flock : &ctx->flc_posix,
			    SGFS_FL_LIST) {
		found = sgfs_fl(it, owner) == sgfs_fl(fl, owner);
		if (found)
			break;
	}
	spin_unlock(&ctx->flc_lock);
	return found;
}

/*
 * Release a lock; @whole: of the complete file. If the volume's table is not available immediately,
 * and the task must not wait, the engine releases the lock later.
 */
static int sgfs_unlock_once(struct file *file, struct file_lock *fl,
			    const struct sg_userlock *range, bool whole)
{
	struct inode *inode = file_inode(file);
	struct sgfs_inode *si = SGFS_I(inode);
	int err;

	mutex_lock(&si->tables);
	if (!sgfs_has_lock(inode, fl)) {
		mutex_unlock(&si->tables);
		return 0;
	}
	err = sg_userlock_clear(sgfs_vol(inode), sgfs_ref(inode), range);
	if (sgfs_is_put_off(err) && whole && sgfs_must_not_wait(fl)) {
		/*
		 * If there is no memory, a task that continues waits; a task that ends does not
		 * release the lock.
		 */
		if (!sg_userlock_clear_later(sgfs_vol(inode), sgfs_ref(inode), range) ||
		    sgfs_ends())
			err = 0;
	}
	/*
	 * If there is no room to split a lock, nothing has changed. After other errors no lock
	 * remains.
	 */
	if (err != -ENOLCK && !sgfs_is_put_off(err))
		err = sgfs_change_local(file, fl, F_UNLCK);
	mutex_unlock(&si->tables);
	return err;
}

/*
 * A task that waits for another system polls its lock every millisecond. So only one task at a time
 * waits, for all locked files with the same hash.
 */
static int sgfs_await(struct inode *inode, int err)
{
	const struct sg_iref *ref = sgfs_ref(inode);
	struct mutex *turn = &SGFS(inode->i_sb)->awaiting[ref->ino % SGFS_AWAITING];
	int e = mutex_lock_killable(turn);

	if (e)
		return e;
	e = sg_userlock_await(sgfs_vol(inode), ref, err);
	mutex_unlock(turn);
	return e;
}

/*
 * Unlock. A task that can be killed waits until the volume's table has changed, and other systems
 * can see that. Otherwise the complete file is unlocked, by the engine as soon as possible.
 */
static int sgfs_unlock(struct file *file, struct file_lock *fl)
{
	struct sg_userlock range = sgfs_lock_of(file, fl);
	bool whole = !range.start && range.last == SG_USERLOCK_MAX;
	struct inode *inode = file_inode(file);
	int err;

	for (;;) {
		err = sgfs_unlock_once(file, fl, &range, whole);
		if (!sgfs_is_put_off(err))
			break;
		err = sgfs_await(inode, err);
		/* other errors: the next attempt ends with them */
		if (err == -ENOLCK || (err == -EINTR && !whole))
			break;
	}
	sgfs_changed(SGFS_I(inode));
	return err;
}

struct granted {
	struct file *file;
	struct file_lock *fl;
};

/*
 * Enter a lock in the VFS's lists before the volume grants it: the VFS would never release a lock
 * that is not in its lists. These lists may fail for lack of memory, and then do not change. The
 * allocation evicts no inode of this file system, because other systems wait for the chain of locks
 * meanwhile.
 */
static int sgfs_follow(void *arg)
{
	struct granted *granted = arg;
	unsigned int nofs = memalloc_nofs_save();
	int err = sgfs_change_local(granted->file, granted->fl, sgfs_fl(granted->fl, type));

	memalloc_nofs_restore(nofs);
	return err;
}

static int sgfs_try_once(struct file *file, struct file_lock *fl, struct sg_userlock *want,
			 struct sg_userlock_wait *wait)
{
	struct granted granted = { .file = file, .fl = fl };
	struct inode *inode = file_inode(file);
	struct sgfs_inode *si = SGFS_I(inode);
	int err = mutex_lock_killable(&si->tables);

	if (err)
		return err;
	want->follow = sgfs_follow;
	want->arg = &granted;
	err = sg_userlock_set(sgfs_vol(inode), sgfs_ref(inode), want, wait, NULL);
	if (err == -EAGAIN && want->kind == SG_USERLOCK_FLOCK)
		sgfs_change_local(file, fl, F_UNLCK);	/* a conversion: the volume dropped the old
							 * lock */
	mutex_unlock(&si->tables);
	return err;
}

/* Try a lock. If its state depends on another system's answer, wait for that answer here. */
static int sgfs_try_lock(struct file *file, struct file_lock *fl, struct sg_userlock *want,
			 struct sg_userlock_wait *wait)
{
	struct inode *inode = file_inode(file);
	int err;

	for (;;) {
		err = sgfs_try_once(file, fl, want, wait);
		if (!sgfs_is_put_off(err))
			break;
		err = sgfs_await(inode, err);
		if (err)
			return err;
	}
	if (err == -EAGAIN && wait)
		err = sg_userlock_deadlock(sgfs_vol(inode), sgfs_ref(inode), want, wait);
	return err;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static u64 sgfs_nap_ns(const struct sg_vol *vol, u64 waited)
{
	u64 longest = waited > NSEC_PER_SEC && sg_doorbell_covers(vol) ? NAP_NS_BELL : NAP_NS_MAX;

	return clamp_t(u64, waited / 8, NAP_NS_MIN, longest);
}

static u64 sgfs_deaf_ns(u64 waited)
{
	return clamp_t(u64, waited / 64, NAP_NS_MIN, NAP_NS_RING);
}

/**
 * struct sgfs_news - the changes and rings that a task has seen before its attempt
 */
struct sgfs_news {
	int changes, rings;
};

static struct sgfs_news sgfs_news_of(struct sgfs_inode *si)
{
	return (struct sgfs_news){
		.changes = atomic_read(&si->changes),
		.rings = atomic_read(&SGFS(si->vfs.i_sb)->lock_rings),
	};
}

/*
 * Wait for a change by this system, or a ring of another one, for a limited time. A ring that comes
 * in the first part of this time ends the wait after that part. @waited: since the first attempt.
 */
static int sgfs_nap(struct sgfs_inode *si, const struct sgfs_news *seen, u64 waited)
{
	u64 ns = sgfs_nap_ns(sgfs_vol(&si->vfs), waited), deaf = sgfs_deaf_ns(waited);
	const struct sgfs *fs = SGFS(si->vfs.i_sb);
	int err;

	err = wait_event_interruptible_hrtimeout(*sgfs_lock_waiters(si),
			atomic_read(&si->changes) != seen->changes, ns_to_ktime(deaf));
	if (err == -ETIME && ns > deaf)
		err = wait_event_interruptible_hrtimeout(*sgfs_lock_waiters(si),
				atomic_read(&si->changes) != seen->changes ||
				atomic_read(&fs->lock_rings) != seen->rings,
				ns_to_ktime(ns - deaf));
	return err == -ETIME ? 0 : err;
}

static int sgfs_wait_and_lock(struct file *file, struct file_lock *fl, struct sg_userlock *want)
{
	struct inode *inode = file_inode(file);
	struct sg_userlock_wait wait = { 0 };
	u64 since = ktime_get_ns();
	struct sgfs_news seen;
	int err;

	for (;;) {
		seen = sgfs_news_of(SGFS_I(inode));
		err = sgfs_try_lock(file, fl, want, &wait);
		if (err != -EAGAIN)
			break;
		err = sgfs_nap(SGFS_I(inode), &seen, ktime_get_ns() - since);
		if (err)
			break;
	}
	sg_userlock_give_up(sgfs_vol(inode), sgfs_ref(inode), &wait);
	return err;
}

static int sgfs_filelock_lock(struct file *file, struct file_lock *fl, bool may_wait)
{
	struct sg_userlock want = sgfs_lock_of(file, fl);
	int err = may_wait ? sgfs_wait_and_lock(file, fl, &want) :
		sgfs_try_lock(file, fl, &want, NULL);

	/* Wake waiters, because a lock may have become weaker, or a place in the queue may be free.
	 * */
	sgfs_changed(SGFS_I(file_inode(file)));
	return err;
}

void sgfs_userlocks_init(struct sgfs *fs)
{
	unsigned int i;

	for (i = 0; i < SGFS_AWAITING; i++) {
		mutex_init(&fs->awaiting[i]);
		init_waitqueue_head(&fs->lock_waiters[i]);
	}
}

/* --- operations ------------------------------------------------------------------------------- */

/*
 * Report the conflicting lock. A process of another system has a negative number, as in other file
 * systems with locks between machines.
 */
static int sgfs_test(struct file *file, struct file_lock *fl)
{
	struct sg_userlock want = sgfs_lock_of(file, fl), by;
	struct inode *inode = file_inode(file);
	int err = sg_userlock_test(sgfs_vol(inode), sgfs_ref(inode), &want, &by);

	if (err != -EAGAIN) {
		sgfs_fl(fl, type) = F_UNLCK;
		return err;
	}
	sgfs_fl(fl, type) = by.exclusive ? F_WRLCK : F_RDLCK;
	sgfs_fl(fl, flags) &= ~FL_OFDLCK;
	fl->fl_start = by.start;
	fl->fl_end = by.last;
	if (by.kind == SG_USERLOCK_OFD)
		sgfs_fl(fl, pid) = -1;
	else
		sgfs_fl(fl, pid) = by.slot < 0 ? (pid_t)by.pid : -(pid_t)by.pid;
	return 0;
}

static bool sgfs_member(const struct file *file)
{
	return sgfs_vol(file_inode(file))->slot >= 0;
}

int sgfs_lock(struct file *file, int cmd, struct file_lock *fl)
{
	if (cmd == F_CANCELLK)
		return 0;	/* a request by a lock manager, for which this code never waits */
	if (!sgfs_member(file) && cmd == F_GETLK) {
		posix_test_lock(file, fl);
		return 0;
	}
	if (!sgfs_member(file))
		return locks_lock_file_wait(file, fl);
	if (cmd == F_GETLK)
		return sgfs_test(file, fl);
	if (sgfs_fl(fl, type) == F_UNLCK)
		return sgfs_unlock(file, fl);
	return sgfs_filelock_lock(file, fl, cmd == F_SETLKW);
}

int sgfs_flock(struct file *file, int cmd, struct file_lock *fl)
{
	if (!sgfs_member(file))
		return locks_lock_file_wait(file, fl);
	if (sgfs_fl(fl, type) == F_UNLCK)
		return sgfs_unlock(file, fl);
	return sgfs_filelock_lock(file, fl, cmd == F_SETLKW);
}
