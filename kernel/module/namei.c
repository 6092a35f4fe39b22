// SPDX-License-Identifier: GPL-2.0
/*
 * Names: look up, create, link, remove, rename. The engine does the work; this file informs the
 * VFS.
 */
#include <linux/delay.h>
#include <linux/namei.h>

#include "stargatefs.h"
#include "trace.h"

#define TURNS	1000	/* attempts, if a name refers to another file each time */
#define MOVE_TURNS	50	/* attempts, if the VFS cannot move a directory at present */
#define MOVE_US		1000

/*
 * Return the inode of a name, or NULL. *@seq returns the directory's counter at the time of the
 * lookup.
 */
static struct inode *sgfs_namei_find(struct inode *dir, const struct qstr *name, unsigned int flags,
				     u64 *seq)
{
	struct inode *inode = ERR_PTR(-ESTALE);
	struct sg_iref ref;
	unsigned int turn;
	int err;

	for (turn = 0; turn < TURNS && inode == ERR_PTR(-ESTALE); turn++) {
		*seq = sgfs_dir_look(dir);
		err = sg_lookup(sgfs_vol(dir), sgfs_ref(dir), name->name, name->len, &ref, NULL);
		if (err)
			return err == -ENOENT ? NULL : ERR_PTR(err);
		inode = sgfs_iget(dir->i_sb, &ref);
		if (!IS_ERR(inode) && flags & LOOKUP_REVAL) {
			err = sgfs_keep(inode);
			if (err) {
				iput(inode);
				inode = ERR_PTR(err);
			}
		}
		if (inode != ERR_PTR(-ESTALE) ||
		    sg_seq(sgfs_vol(dir), sgfs_ref(dir)) != *seq)
			continue;
		/*
		 * Report a name without an inode. Any member may have made the name, so it is
		 * escaped: it must not start a new line in the log.
		 */
		sg_log(dir->i_sb, SG_ERR, "name in directory %llu without an inode: %*pE",
		       (u64)dir->i_ino, (int)name->len, name->name);
		return ERR_PTR(-EUCLEAN);
	}
	return inode;
}

/*
 * A directory has only one place. If the VFS has it at another place, another system has moved the
 * directory. If the directory is not in use at that place, drop its dentry. The VFS then need not
 * move the directory, which a running rename of this system would prevent (sgfs_place()).
 */
static void sgfs_forget_old_place(struct inode *inode)
{
	struct dentry *alias = d_find_any_alias(inode);

	if (!alias)
		return;
	if (!IS_ROOT(alias))
		d_invalidate(alias);
	dput(alias);
	d_prune_aliases(inode);
}

/*
 * Check whether the VFS has the directory above the place where it was found. The VFS then has the
 * state before moves by another system, and would report a loop. A new lookup of the path repairs
 * this.
 */
static bool sgfs_seems_above(struct inode *inode, struct dentry *dentry)
{
	struct dentry *alias = d_find_any_alias(inode);
	bool above = alias && is_subdir(dentry, alias);

	dput(alias);
	return above;
}

/*
 * The directory is in use at its old place, so the VFS moves it here. It returns -ESTALE while a
 * task of this system renames between directories, or changes the old place. Such a task may wait
 * long for the volume. Wait for it, but not long, because it may wait for a lock of the caller.
 * After the failure here that task continues, and the VFS makes a second attempt.
 */
static struct dentry *sgfs_place(struct inode *inode, struct dentry *dentry)
{
	struct dentry *alias = ERR_PTR(-ESTALE);
	unsigned int turn;

	if (IS_ERR_OR_NULL(inode) || !S_ISDIR(inode->i_mode))
		return d_splice_alias(inode, dentry);
	for (turn = 0; turn < MOVE_TURNS && alias == ERR_PTR(-ESTALE); turn++) {
		if (turn)
			usleep_range(MOVE_US, 2 * MOVE_US);
		sgfs_forget_old_place(inode);
		if (sgfs_seems_above(inode, dentry))
			break;
		ihold(inode);		/* the call below consumes this reference */
		alias = d_splice_alias(inode, dentry);
	}
	iput(inode);
	return alias;
}

static struct dentry *sgfs_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct dentry *alias;
	struct inode *inode;
	u64 seq;

	sgfs_add(dir->i_sb, SGFS_LOOKUPS, 1);
	if (dentry->d_name.len > SG_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	alias = sgfs_virtual_lookup(dir, dentry);
	if (alias)
		return alias == dentry ? NULL : alias;
	inode = sgfs_namei_find(dir, &dentry->d_name, flags, &seq);
	dentry->d_time = seq;
	alias = sgfs_place(inode, dentry);
	if (!IS_ERR_OR_NULL(alias))	/* a directory that was moved here */
		WRITE_ONCE(alias->d_time, seq);
	return alias;
}

/* --- making ----------------------------------------------------------------------------------- */

static int sgfs_namei_make(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			   umode_t mode, dev_t rdev, const char *target)
{
	struct sgfs_creation c;
	struct sg_iref ref;
	u64 seq;
	int err = sgfs_creation_begin(idmap, dir, &dentry->d_name, mode, rdev, &c);

	if (err)
		return err;
	if (target) {
		c.new.target = target;
		c.new.target_len = strlen(target);
		c.inode->i_link = kstrdup(target, GFP_KERNEL_ACCOUNT);
		if (!c.inode->i_link) {
			sgfs_creation_abort(&c);
			return -ENOMEM;
		}
	}
	sgfs_dir_begin(dir);
	err = sg_create(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name, dentry->d_name.len,
			&c.new, &ref);
	seq = sgfs_dir_end(dir, !err);
	if (err) {
		sgfs_creation_abort(&c);
		return err;
	}
	sgfs_add(dir->i_sb, SGFS_CREATES, 1);
	trace_sgfs_create(dir, ref.ino, c.new.mode);
	err = sgfs_creation_end(&c, &ref);
	sgfs_refresh(dir);
	sgfs_name_known(dentry, err ? 0 : seq);
	if (!err)
		d_instantiate_new(dentry, c.inode);
	return err;
}

static int sgfs_namei_create(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			     umode_t mode, bool excl)
{
	int err = sgfs_namei_make(idmap, dir, dentry, mode, 0, NULL);

	/*
	 * Another system has created the file first. The caller must open that file, so the VFS has
	 * to look it up.
	 */
	return err == -EEXIST && !excl ? -ESTALE : err;
}

static int sgfs_mknod(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      umode_t mode, dev_t rdev)
{
	return sgfs_namei_make(idmap, dir, dentry, mode, rdev, NULL);
}

int sgfs_mkdir_common(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      umode_t mode)
{
	return sgfs_namei_make(idmap, dir, dentry, S_IFDIR | mode, 0, NULL);
}

static int sgfs_symlink(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			const char *target)
{
	if (strlen(target) > SG_SYMLINK_MAX)
		return -ENAMETOOLONG;
	return sgfs_namei_make(idmap, dir, dentry, S_IFLNK | 0777, 0, target);
}

/*
 * O_TMPFILE: create an inode without name and links, which the engine frees at eviction, or after a
 * crash.
 */
static int sgfs_tmpfile(struct mnt_idmap *idmap, struct inode *dir, struct file *file, umode_t mode)
{
	struct sgfs_creation c;
	struct sg_iref ref;
	int err = sgfs_creation_begin(idmap, dir, &file->f_path.dentry->d_name, mode, 0, &c);

	if (err)
		return finish_open_simple(file, err);
	atomic_inc(&SGFS(dir->i_sb)->creations);	/* until the VFS has it (membership.c) */
	smp_mb__after_atomic();
	err = sg_tmpfile(sgfs_vol(dir), &c.new, &ref);
	if (err) {
		atomic_dec(&SGFS(dir->i_sb)->creations);
		sgfs_creation_abort(&c);
		return finish_open_simple(file, err);
	}
	sgfs_add(dir->i_sb, SGFS_CREATES, 1);
	err = sgfs_creation_end(&c, &ref);
	smp_mb__before_atomic();
	atomic_dec(&SGFS(dir->i_sb)->creations);
	if (err) {
		sg_close_inode(sgfs_vol(dir), &ref);	/* sg_settle() frees it */
	} else {
		SGFS_I(c.inode)->kept = true;
		set_nlink(c.inode, 1);		/* d_tmpfile() drops one link */
		d_tmpfile(file, c.inode);
		unlock_new_inode(c.inode);
	}
	return finish_open_simple(file, err);
}

static int sgfs_link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old);
	u64 seq;
	int err;

	if (sgfs_is_virtual(inode))
		return -EPERM;
	sgfs_dir_begin(dir);
	err = sg_link(sgfs_vol(dir), sgfs_ref(inode), sgfs_ref(dir), dentry->d_name.name,
		      dentry->d_name.len, sgfs_now(inode));
	seq = sgfs_dir_end(dir, !err);
	if (err)
		return err;
	sgfs_refresh(dir);
	sgfs_refresh(inode);
	sgfs_name_known(dentry, seq);
	ihold(inode);
	d_instantiate(dentry, inode);
	return 0;
}

/* --- removing --------------------------------------------------------------------------------- */

/*
 * Pass to the engine the inode that the VFS has looked up, because another inode may have the name
 * now. If that were a directory, the VFS would regard the wrong directory as removed. If the owner
 * matters, the VFS has checked only the owner of the first inode. In these cases the result is
 * -ESTALE, and the VFS looks the name up again.
 */
static bool sgfs_must_be_that(const struct inode *dir, const struct inode *seen)
{
	return dir->i_mode & S_ISVTX || (seen && S_ISDIR(seen->i_mode));
}

static int sgfs_removed(struct inode *dir, struct inode *inode, int err)
{
	sgfs_dir_end(dir, !err);
	if (err)
		return err;
	sgfs_add(dir->i_sb, SGFS_REMOVES, 1);
	trace_sgfs_remove(dir, inode->i_ino, inode->i_mode);
	sgfs_refresh(dir);
	sgfs_refresh(inode);
	return 0;
}

static int sgfs_unlink(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);

	sgfs_dir_begin(dir);
	return sgfs_removed(dir, inode,
			    sg_unlink_seen(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name,
					   dentry->d_name.len, sgfs_ref(inode),
					   sgfs_must_be_that(dir, inode), sgfs_now(dir)));
}

static int sgfs_rmdir(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);

	sgfs_dir_begin(dir);
	return sgfs_removed(dir, inode,
			    sg_rmdir_seen(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name,
					  dentry->d_name.len, sgfs_ref(inode), sgfs_now(dir)));
}

/* --- renaming --------------------------------------------------------------------------------- */

static int sgfs_rename_seen(struct inode *old_dir, struct dentry *old, struct inode *new_dir,
			    struct dentry *new, unsigned int flags, const struct sg_new *whiteout,
			    s64 now)
{
	struct sg_renamed seen = {
		.what = sgfs_ref(d_inode(old)),
		.exact = flags & RENAME_EXCHANGE || sgfs_must_be_that(new_dir, d_inode(new)),
	};

	if (d_inode(new))
		seen.replaced = sgfs_ref(d_inode(new));
	return sg_rename_seen(sgfs_vol(old_dir), sgfs_ref(old_dir), old->d_name.name,
			      old->d_name.len, sgfs_ref(new_dir), new->d_name.name,
			      new->d_name.len, flags, whiteout, &seen, now);
}

/* RENAME_WHITEOUT leaves a character device 0/0, which overlayfs interprets as "deleted". */
static int sgfs_rename_leaving_whiteout(struct mnt_idmap *idmap, struct inode *old_dir,
					struct dentry *old, struct inode *new_dir,
					struct dentry *new, unsigned int flags)
{
	struct sgfs_creation c;
	int err = sgfs_creation_begin(idmap, old_dir, &old->d_name, S_IFCHR | WHITEOUT_MODE,
				      WHITEOUT_DEV, &c);

	if (err)
		return err;
	err = sgfs_rename_seen(old_dir, old, new_dir, new, flags, &c.new, c.new.now);
	sgfs_creation_abort(&c);	/* a later lookup makes its VFS inode */
	return err;
}

static int sgfs_namei_rename(struct mnt_idmap *idmap, struct inode *old_dir, struct dentry *old,
			     struct inode *new_dir, struct dentry *new, unsigned int flags)
{
	struct inode *replaced = d_inode(new);
	u64 old_seq, new_seq;
	int err;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	BUILD_BUG_ON(RENAME_NOREPLACE != SG_RENAME_NOREPLACE ||
		     RENAME_EXCHANGE != SG_RENAME_EXCHANGE ||
		     RENAME_WHITEOUT != SG_RENAME_WHITEOUT);
	sgfs_dir_begin(old_dir);
	if (new_dir != old_dir)
		sgfs_dir_begin(new_dir);
	if (flags & RENAME_WHITEOUT)
		err = sgfs_rename_leaving_whiteout(idmap, old_dir, old, new_dir, new, flags);
	else
		err = sgfs_rename_seen(old_dir, old, new_dir, new, flags, NULL, sgfs_now(old_dir));
	old_seq = sgfs_dir_end(old_dir, !err);
	new_seq = new_dir == old_dir ? old_seq : sgfs_dir_end(new_dir, !err);
	if (err)
		return err;
	sgfs_name_known(old, new_seq);
	if (flags & RENAME_EXCHANGE)
		sgfs_name_known(new, old_seq);
	sgfs_add(old_dir->i_sb, SGFS_RENAMES, 1);
	trace_sgfs_rename(old_dir, new_dir, d_inode(old)->i_ino, flags);
	sgfs_refresh(old_dir);
	sgfs_refresh(new_dir);
	sgfs_refresh(d_inode(old));
	if (replaced)
		sgfs_refresh(replaced);
	return 0;
}

const struct inode_operations sgfs_dir_inode_operations = {
	.lookup		= sgfs_lookup,
	.create		= sgfs_namei_create,
	.mknod		= sgfs_mknod,
	.mkdir		= sgfs_mkdir,
	.symlink	= sgfs_symlink,
	.link		= sgfs_link,
	.unlink		= sgfs_unlink,
	.rmdir		= sgfs_rmdir,
	.rename		= sgfs_namei_rename,
	.tmpfile	= sgfs_tmpfile,
	.permission	= sgfs_permission,
	.setattr	= sgfs_setattr,
	.getattr	= sgfs_getattr,
	.listxattr	= sgfs_listxattr,
	.update_time	= sgfs_update_time,
	.set_acl	= sgfs_set_acl,
	.fileattr_get	= sgfs_fileattr_get,
	.fileattr_set	= sgfs_fileattr_set,
	SGFS_GET_ACL_OP,
};

const struct inode_operations sgfs_special_inode_operations = {
	.setattr	= sgfs_setattr,
	.getattr	= sgfs_getattr,
	.listxattr	= sgfs_listxattr,
	.update_time	= sgfs_update_time,
	.set_acl	= sgfs_set_acl,
	SGFS_GET_ACL_OP,
};
