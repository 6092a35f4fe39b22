// SPDX-License-Identifier: GPL-2.0
/*
 * Inodes that count as open for a second or two. They were replaced during a lookup by name, and
 * may be replaced again, while the VFS looks up twice at most. An open and close by another task
 * does not end this state, because the task that looks up a second time may not yet have opened the
 * file. The state does not last longer, because a file that another system has removed would then
 * keep its space until memory gets short here.
 */
#include "stargatefs.h"

void sgfs_kept_init(struct sgfs *fs)
{
	spin_lock_init(&fs->kept_lock);
	INIT_LIST_HEAD(&fs->kept_young);
	INIT_LIST_HEAD(&fs->kept_old);
}

int sgfs_keep(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_inode *si = SGFS_I(inode);
	int err = 0;

	mutex_lock(&si->window_lock);
	if (!si->opens && !si->kept)
		err = sg_open_inode(&fs->vol, sgfs_ref(inode), false);
	if (!err) {
		si->kept = true;
		spin_lock(&fs->kept_lock);
		list_move_tail(&si->kept_at, &fs->kept_young);
		spin_unlock(&fs->kept_lock);
	}
	mutex_unlock(&si->window_lock);
	return err;
}

/* Forget an inode that is being evicted. */
void sgfs_kept_evict(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_inode *si = SGFS_I(inode);

	spin_lock(&fs->kept_lock);
	list_del_init(&si->kept_at);
	spin_unlock(&fs->kept_lock);
	if (si->kept)
		sg_close_inode(&fs->vol, sgfs_ref(inode));
}

static struct inode *sgfs_next_old(struct sgfs *fs)
{
	struct inode *inode = NULL;
	struct sgfs_inode *si;

	spin_lock(&fs->kept_lock);
	while (!inode && !list_empty(&fs->kept_old)) {
		si = list_first_entry(&fs->kept_old, struct sgfs_inode, kept_at);
		list_del_init(&si->kept_at);
		inode = igrab(&si->vfs);	/* NULL: it is being evicted */
	}
	spin_unlock(&fs->kept_lock);
	return inode;
}

static void sgfs_pin_recent_let_go(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	bool removed = false;

	mutex_lock(&si->window_lock);
	if (si->kept && list_empty(&si->kept_at)) {	/* the inode was not kept again meanwhile */
		si->kept = false;
		removed = !si->opens && sg_close_inode(sgfs_vol(inode), sgfs_ref(inode));
	}
	mutex_unlock(&si->window_lock);
	if (removed)
		sgfs_forget_names(inode);
}

/* Once a second: release the inodes kept since the call before last. */
void sgfs_kept_settle(struct sgfs *fs)
{
	struct inode *inode;

	while ((inode = sgfs_next_old(fs))) {
		sgfs_pin_recent_let_go(inode);
		iput(inode);
	}
	spin_lock(&fs->kept_lock);
	list_splice_init(&fs->kept_young, &fs->kept_old);
	spin_unlock(&fs->kept_lock);
}
