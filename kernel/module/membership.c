// SPDX-License-Identifier: GPL-2.0
/*
 * This system's membership of a volume that many systems use (docs/protocol.md). There are three
 * threads. The first maintains the slot and waits for nothing, because other systems count its
 * heartbeats. The second acknowledges epochs; it waits for readers of this system, but takes no
 * lock of the volume. The third does the work that may wait for locks (settling). Its queue belongs
 * to this mount, because another system may keep a lock without a time limit, and other volumes
 * must not wait for that. A separate work item releases users' locks, because processes of other
 * systems wait for them. Neither settling nor a freeze of this mount may delay these releases.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>

#include "stargatefs.h"

#define SETTLE_MS	1000
#define PAUSE_MS	10000	/* the longest time that a freeze waits for the end of settling */
#define RELEASE_MS	100	/* longest time between attempts to release users' locks */
#define WORKS		3	/* @settle, @freeze_watch and @release may run at the same time */

static void sgfs_watch(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, watch);
	int ms;

	sgfs_due_begins(&fs->bells.watch);
	ms = sg_watch(&fs->vol);
	if (ms < 0)
		return;
	sgfs_holders_guard(fs);
	queue_delayed_work(fs->watcher, &fs->watch, msecs_to_jiffies(ms));
}

static void sgfs_acknowledge(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, acknowledge);
	int ms;

	sgfs_due_begins(&fs->bells.acknowledge);
	ms = sg_acknowledge(&fs->vol);
	if (ms >= 0)
		queue_delayed_work(fs->acknowledger, &fs->acknowledge, msecs_to_jiffies(ms));
}

static void sgfs_settle(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, settle);

	mutex_lock(&fs->settle_lock);
	if (!sg_load64(&fs->vol.settle_stop)) {
		sgfs_kept_settle(fs);
		sgfs_written_store_times(fs);
		sg_settle(&fs->vol);
		sgfs_memory_watch(fs);
		sgfs_show_failed(fs);
		if (!fs->vol.shut_down)
			queue_delayed_work(fs->waiter, &fs->settle, msecs_to_jiffies(SETTLE_MS));
	}
	mutex_unlock(&fs->settle_lock);
}

static void sgfs_release(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, release);

	if (sg_userlock_settle(&fs->vol, true)) {
		fs->release_ms = 0;
		return;
	}
	fs->release_ms = clamp(2 * fs->release_ms, 1, RELEASE_MS);
	queue_delayed_work(fs->waiter, &fs->release, msecs_to_jiffies(fs->release_ms));
}

/* --- callbacks of the engine ------------------------------------------------------------------ */

static void sgfs_on_release(struct sg_vol *vol)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);

	queue_delayed_work(fs->waiter, &fs->release, 1);
}

static void sgfs_quiesce(struct sg_vol *vol)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);

	sgfs_mmap_quiesce(fs);
	sgfs_map_quiesce(fs);
}

/*
 * Report whether an inode is in use: from the moment when the VFS has it. An inode that is being
 * created without a name is in the volume before the VFS has it. A thread that has seen such an
 * inode in the volume finds it in @creations, or in the VFS.
 */
static bool sgfs_in_use(struct sg_vol *vol, u64 ino, u32 generation)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);
	struct sg_iref ref = { .ino = ino, .generation = generation };
	bool known;

	if (atomic_read(&fs->creations))
		return true;
	smp_rmb();
	rcu_read_lock();
	known = find_inode_rcu(fs->sb, ino, sgfs_is_inode, &ref);
	rcu_read_unlock();
	return known;
}

static u64 sgfs_reach(struct sg_vol *vol)
{
	return sgfs_memory_follow(container_of(vol, struct sgfs, vol));
}

/* React to a fence of this system. The code that detects the fence may hold any lock. */
static void sgfs_on_death(struct sg_vol *vol)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);

	queue_work(sgfs_wq, &fs->death);
}

/*
 * Remove the entries of mappings, which stops stores through them; system calls detect the fence
 * themselves.
 */
static void sgfs_death(struct work_struct *work)
{
	struct sgfs *fs = container_of(work, struct sgfs, death);

	sgfs_mmap_revoke(fs);
	sgfs_sems_revoke(fs);
	sgfs_map_quiesce(fs);
}

/* --- beginning and end ------------------------------------------------------------------------ */

int sgfs_membership_init(struct sgfs *fs)
{
	INIT_DELAYED_WORK(&fs->watch, sgfs_watch);
	INIT_DELAYED_WORK(&fs->acknowledge, sgfs_acknowledge);
	INIT_DELAYED_WORK(&fs->settle, sgfs_settle);
	INIT_DELAYED_WORK(&fs->release, sgfs_release);
	mutex_init(&fs->settle_lock);
	INIT_WORK(&fs->death, sgfs_death);
	sgfs_snapshot_init(fs);
	fs->watcher = alloc_ordered_workqueue("%s-watch", WQ_HIGHPRI | WQ_MEM_RECLAIM, SGFS_NAME);
	if (!fs->watcher)
		return -ENOMEM;
	fs->acknowledger = alloc_ordered_workqueue("%s-ack", WQ_HIGHPRI | WQ_MEM_RECLAIM, SGFS_NAME);
	if (!fs->acknowledger)
		return -ENOMEM;
	fs->waiter = alloc_workqueue("%s-wait", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, WORKS,
				     SGFS_NAME);
	return fs->waiter ? 0 : -ENOMEM;
}

void sgfs_membership_exit(struct sgfs *fs)
{
	if (fs->waiter)
		destroy_workqueue(fs->waiter);
	if (fs->acknowledger)
		destroy_workqueue(fs->acknowledger);
	if (fs->watcher)
		destroy_workqueue(fs->watcher);
}

/* Called before the join, because after it the engine may call back. */
void sgfs_membership_prepare(struct sgfs *fs)
{
	fs->vol.quiesce = sgfs_quiesce;
	fs->vol.in_use = sgfs_in_use;
	fs->vol.reach = sgfs_reach;
	fs->vol.gives_way = sgfs_gives_way;
	fs->vol.room_locked = sgfs_room_locked;
	fs->vol.on_death = sgfs_on_death;
	fs->vol.on_release = sgfs_on_release;
	sgfs_bells_prepare(fs);
}

void sgfs_membership_start(struct sgfs *fs)
{
	fs->vol.maintained = true;
	fs->vol.hurry = false;
	queue_delayed_work(fs->watcher, &fs->watch, 0);
	queue_delayed_work(fs->acknowledger, &fs->acknowledge, 0);
	queue_delayed_work(fs->waiter, &fs->settle, msecs_to_jiffies(SETTLE_MS));
	sgfs_snapshot_start(fs);
	sgfs_bells_start(fs);
}

/*
 * Leave the volume. Slow work is done while this system still maintains its slot. A task that waits
 * here for locks cannot be killed.
 */
void sgfs_membership_stop(struct sgfs *fs)
{
	sgfs_bells_stop(fs);
	sgfs_snapshot_stop(fs);
	WRITE_ONCE(fs->vol.hurry, true);
	sgfs_settle_end(fs);
	cancel_delayed_work_sync(&fs->release);	/* no file is open that has locks */
	sg_settle_stop(&fs->vol, false);	/* the last run, which cannot be stopped */
	if (fs->joined)
		sg_settle(&fs->vol);
	cancel_delayed_work_sync(&fs->acknowledge);
	cancel_delayed_work_sync(&fs->watch);
	fs->vol.maintained = false;
}

/* Called after the leave, which may still detect that this system was fenced. */
void sgfs_membership_end(struct sgfs *fs)
{
	cancel_work_sync(&fs->death);
}

void sgfs_watch_now(struct sgfs *fs)
{
	if (fs->vol.maintained)
		mod_delayed_work(fs->watcher, &fs->watch, 0);
}

/*
 * Stop settling for a freeze, which holds s_umount and cannot be killed. Settling may wait for a
 * lock that another system never releases. So sg_settle_stop() requests the end of settling, and
 * settling checks for this request wherever it waits. Return -EBUSY if settling has not ended in
 * time, and continues.
 */
int sgfs_settle_pause(struct sgfs *fs)
{
	unsigned long end = jiffies + msecs_to_jiffies(PAUSE_MS);

	sg_settle_stop(&fs->vol, true);
	while (!mutex_trylock(&fs->settle_lock)) {
		if (time_after(jiffies, end)) {
			sgfs_settle_resume(fs);
			return -EBUSY;
		}
		msleep(1);
	}
	mutex_unlock(&fs->settle_lock);	/* from now on settling sees the request to stop */
	return 0;
}

void sgfs_settle_resume(struct sgfs *fs)
{
	sg_settle_stop(&fs->vol, false);
	if (fs->joined)
		mod_delayed_work(fs->waiter, &fs->settle, msecs_to_jiffies(SETTLE_MS));
}

void sgfs_settle_end(struct sgfs *fs)
{
	sg_settle_stop(&fs->vol, true);
	cancel_delayed_work_sync(&fs->settle);
}
