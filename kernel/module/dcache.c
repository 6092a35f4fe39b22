// SPDX-License-Identifier: GPL-2.0
/*
 * Names in the cache of the VFS, also absent ones, and changes to them by other systems (D9).
 *
 * A dentry has the change counter of its directory at the time of the lookup (d_time). The
 * directory stores the last counter seen, @known, and an older one, @base: this system has made all
 * changes since @base. The VFS has applied these changes to its dentries itself. So a name is valid
 * while the counter is @known and the name is not older than @base. Otherwise the code looks the
 * name up again. If nothing has changed, this costs only the lookup.
 */
#include <linux/namei.h>
#include <linux/wait_bit.h>

#include "stargatefs.h"

/*
 * Store both counters; i_lock is held. A reader that sees @known also sees the @base that belongs
 * to it.
 */
static void sgfs_move_on(struct sgfs_inode *si, u64 seq, bool own)
{
	if (seq <= si->known)
		return;
	if (!own)
		WRITE_ONCE(si->base, seq);
	smp_store_release(&si->known, seq);
}

u64 sgfs_dir_look(struct inode *dir)
{
	u64 seq = sg_seq(sgfs_vol(dir), sgfs_ref(dir));
	struct sgfs_inode *si = SGFS_I(dir);

	if (likely(seq == READ_ONCE(si->known)))
		return seq;
	spin_lock(&dir->i_lock);
	/* the task that changes the directory will find all other changes */
	if (!si->changing)
		sgfs_move_on(si, seq, false);
	spin_unlock(&dir->i_lock);
	return seq;
}

void sgfs_dir_begin(struct inode *dir)
{
	spin_lock(&dir->i_lock);
	SGFS_I(dir)->changing = true;
	spin_unlock(&dir->i_lock);
}

u64 sgfs_dir_end(struct inode *dir, unsigned int commits)
{
	u64 seq = sg_seq(sgfs_vol(dir), sgfs_ref(dir));
	struct sgfs_inode *si = SGFS_I(dir);
	bool own;

	spin_lock(&dir->i_lock);
	own = seq == si->known + 2 * commits;
	sgfs_move_on(si, seq, own);
	WRITE_ONCE(si->changing, false);
	spin_unlock(&dir->i_lock);
	smp_mb();	/* a task that still sees the old value is among the waiters */
	wake_up_var(&si->changing);
	return own ? seq : 0;
}

void sgfs_name_known(struct dentry *dentry, u64 seq)
{
	WRITE_ONCE(dentry->d_time, seq);
}

static bool sgfs_dcache_is_current(const struct inode *dir, const struct dentry *dentry)
{
	const struct sgfs_inode *si = SGFS_I(dir);

	return smp_load_acquire(&sgfs_record(dir)->seq) == smp_load_acquire(&si->known) &&
	       READ_ONCE(dentry->d_time) >= READ_ONCE(si->base);
}

/* Check whether the name still leads to the dentry's inode. */
static int sgfs_dcache_is_same(struct inode *dir, const struct qstr *name, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	struct sg_iref ref;
	int err = sg_lookup(sgfs_vol(dir), sgfs_ref(dir), name->name, name->len, &ref, NULL);

	if (err)
		return err == -ENOENT ? !inode : err;
	return inode && sgfs_is_inode(inode, &ref);
}

static int sgfs_look_again(struct inode *dir, const struct qstr *name, struct dentry *dentry)
{
	struct sgfs_inode *si = SGFS_I(dir);

	for (;;) {
		bool changing = READ_ONCE(si->changing);
		u64 seq = sgfs_dir_look(dir);
		int same = sgfs_dcache_is_same(dir, name, dentry);

		if (same > 0)
			WRITE_ONCE(dentry->d_time, seq);
		if (same || !changing)
			return same;
		/*
		 * Report whether a task of this system is changing the directory, and the VFS has
		 * not yet applied the change.
		 */
		if (wait_var_event_killable(&si->changing, !READ_ONCE(si->changing)))
			return -EINTR;
	}
}

/* Report whether the directory or the inode is not in the volume. Such names are always valid. */
static bool sgfs_dcache_is_virtual(const struct inode *dir, const struct inode *inode)
{
	return sgfs_is_virtual(dir) || (inode && sgfs_is_virtual(inode));
}

/*
 * Refresh the inode here as well, because the VFS reads its flags (immutable, append-only) before
 * it checks permissions.
 */
int sgfs_revalidate_rcu(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode_rcu(dentry);

	if (sgfs_dcache_is_virtual(dir, inode))
		return 1;
	return sgfs_dcache_is_current(dir, dentry) && (!inode || sgfs_is_fresh(inode)) ? 1 :
	       -ECHILD;
}

int sgfs_revalidate_common(struct inode *dir, const struct qstr *name, struct dentry *dentry,
			   unsigned int flags)
{
	struct inode *inode = d_inode(dentry);
	int ret, err = 0;

	if (sgfs_dcache_is_virtual(dir, inode))
		return 1;
	ret = sgfs_dcache_is_current(dir, dentry) ? 1 : sgfs_look_again(dir, name, dentry);
	if (ret > 0 && inode && flags & LOOKUP_REVAL)
		err = sgfs_keep(inode);
	if (ret > 0 && inode && !err)
		err = sgfs_refresh(inode);
	if (err == -ESTALE)
		return 0;
	return err ?: ret;
}

/*
 * Check the end of a path that was not reached by name: a descriptor's link, or the working
 * directory.
 */
static int sgfs_weak_revalidate(struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = d_inode(dentry);
	int err = sgfs_is_virtual(inode) ? 0 : sgfs_refresh(inode);

	if (err == -ESTALE)
		return 0;
	return err ?: 1;
}

const struct dentry_operations sgfs_dentry_operations = {
	.d_revalidate		= sgfs_revalidate,
	.d_weak_revalidate	= sgfs_weak_revalidate,
};
