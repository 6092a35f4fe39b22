// SPDX-License-Identifier: GPL-2.0
/*
 * The freeze of this mount while a volume is copied (docs/snapshots.md), for a copy by any member,
 * and for a copy through this mount. A work item does it, because it may sleep for long, which the
 * maintenance thread must not.
 *
 * The VFS's freeze blocks system calls, and stores through mappings. A frozen superblock has one
 * more active reference. If it was unmounted meanwhile, the task that thaws it drops the last
 * reference. So the module takes a reference around the freeze. A separate work item drops it, and
 * no task waits for this item.
 */
#include <linux/uaccess.h>

#include "uapi/ioctl.h"
#include "stargatefs.h"

/*
 * Handle a freeze by a user: only one freeze exists at a time, a user's or the module's, and
 * neither can undo the other.
 */
int sgfs_user_freeze(struct super_block *sb, bool thaw, unsigned int who, const void *owner)
{
	struct sgfs *fs = SGFS(sb);
	int err;

	mutex_lock(&fs->freeze_lock);
	if (fs->snapshot_frozen)
		err = thaw ? -EINVAL : -EBUSY;
	else
		err = sgfs_vfs_freeze(sb, thaw, who, owner);
	mutex_unlock(&fs->freeze_lock);
	return err;
}

/* --- callbacks of the engine ------------------------------------------------------------------ */

static int sgfs_begin(struct sgfs *fs)
{
	struct super_block *sb = fs->sb;
	int err = -EBUSY;

	if (!fs->pinned && !atomic_inc_not_zero(&sb->s_active))
		return -ESHUTDOWN;	/* it is being unmounted */
	fs->pinned = true;
	mutex_lock(&fs->freeze_lock);
	if (sb->s_writers.frozen == SB_UNFROZEN) {
		fs->snapshot_frozen = true;
		err = sgfs_vfs_freeze(sb, false, FREEZE_HOLDER_KERNEL, NULL);
		fs->snapshot_frozen = !err;
	}
	mutex_unlock(&fs->freeze_lock);
	return err;
}

static int sgfs_freeze_mount(struct sg_vol *vol, bool on)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);
	int err;

	if (on)
		return sgfs_begin(fs);
	mutex_lock(&fs->freeze_lock);
	err = sgfs_vfs_freeze(fs->sb, true, FREEZE_HOLDER_KERNEL, NULL);
	fs->snapshot_frozen = false;
	mutex_unlock(&fs->freeze_lock);
	if (err)
		sg_log(fs->sb, SG_ERR, "cannot be thawed (error %d): run fsfreeze -u", -err);
	return err;
}

/* --- the work item ---------------------------------------------------------------------------- */

static void sgfs_unpin_work(struct work_struct *work)
{
	deactivate_super(container_of(work, struct sgfs, unpin)->sb);
}

static void sgfs_unpin(struct sgfs *fs)
{
	fs->pinned = false;
	if (!atomic_add_unless(&fs->sb->s_active, -1, 1))
		queue_work(sgfs_wq, &fs->unpin);
}

/*
 * Do nothing before the mount is complete: a mount in progress holds locks that a freeze needs, and
 * waits for this work if it fails.
 */
static void sgfs_freeze_watch_work(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, freeze_watch);
	int ms = SG_MAINTAIN_MS;

	sgfs_due_begins(&fs->bells.freeze);
	if (READ_ONCE(fs->sb->s_flags) & SB_BORN)
		ms = sg_freeze_watch(&fs->vol);
	if (ms >= 0)
		queue_delayed_work(fs->waiter, &fs->freeze_watch, msecs_to_jiffies(ms));
	if (fs->pinned && !fs->vol.still.word)
		sgfs_unpin(fs);
}

void sgfs_snapshot_init(struct sgfs *fs)
{
	INIT_DELAYED_WORK(&fs->freeze_watch, sgfs_freeze_watch_work);
	INIT_WORK(&fs->unpin, sgfs_unpin_work);
	mutex_init(&fs->freeze_lock);
}

void sgfs_snapshot_start(struct sgfs *fs)
{
	fs->vol.freeze_mount = sgfs_freeze_mount;
	fs->vol.freeze_watched = true;
	queue_delayed_work(fs->waiter, &fs->freeze_watch, 0);
}

/* A frozen mount is not unmounted before it has thawed. */
void sgfs_snapshot_stop(struct sgfs *fs)
{
	cancel_delayed_work_sync(&fs->freeze_watch);
	fs->vol.freeze_watched = false;
	fs->vol.freeze_mount = NULL;
}

/* --- requests by ioctl ------------------------------------------------------------------------ */

static int sgfs_freeze(struct sg_vol *vol, struct sg_ioc_freeze __user *user)
{
	struct sg_ioc_freeze *f = memdup_user(user, sizeof(*f));
	int err;

	if (IS_ERR(f))
		return PTR_ERR(f);
	memset(f->why, 0, sizeof(f->why));
	err = f->reserved ? -EINVAL : sg_freeze(vol, f->limit_ms, f->why);
	if (copy_to_user(user, f, sizeof(*f))) {
		if (!err)
			sg_thaw(vol);
		err = -EFAULT;
	}
	kfree(f);
	return err;
}

long sgfs_snapshot_ioctl(struct file *file, unsigned int cmd, void __user *user)
{
	struct sg_vol *vol = sgfs_vol(file_inode(file));

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return cmd == SG_IOC_FREEZE ? sgfs_freeze(vol, user) : sg_thaw(vol);
}
