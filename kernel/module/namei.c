// SPDX-License-Identifier: GPL-2.0
/* Names: look up, make, link, remove, rename. The engine does it; here the VFS is told. */
#include <linux/namei.h>

#include "stargatefs.h"
#include "trace.h"

static struct dentry *lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = NULL;
	struct sg_iref ref;
	int err;

	sgfs_add(dir->i_sb, SGFS_LOOKUPS, 1);
	if (dentry->d_name.len > SG_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	err = sg_lookup(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name, dentry->d_name.len,
			&ref, NULL);
	if (!err)
		inode = sgfs_iget(dir->i_sb, &ref);
	else if (err != -ENOENT)
		inode = ERR_PTR(err);
	if (inode == ERR_PTR(-ESTALE)) {
		sg_log(dir->i_sb, SG_ERR, "name in directory %llu without an inode: %pd",
		       (u64)dir->i_ino, dentry);
		inode = ERR_PTR(-EUCLEAN);
	}
	return d_splice_alias(inode, dentry);
}

/* --- making ----------------------------------------------------------------------------------- */

static int make(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode,
		dev_t rdev, const char *target)
{
	struct sgfs_creation c;
	struct sg_iref ref;
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
	err = sg_create(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name, dentry->d_name.len,
			&c.new, &ref);
	if (err) {
		sgfs_creation_abort(&c);
		return err;
	}
	sgfs_add(dir->i_sb, SGFS_CREATES, 1);
	trace_sgfs_create(dir, ref.ino, c.new.mode);
	err = sgfs_creation_end(&c, &ref);
	sgfs_refresh(dir);
	if (!err)
		d_instantiate_new(dentry, c.inode);
	return err;
}

static int create(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode,
		  bool excl)
{
	return make(idmap, dir, dentry, mode, 0, NULL);
}

static int mknod(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry, umode_t mode,
		 dev_t rdev)
{
	return make(idmap, dir, dentry, mode, rdev, NULL);
}

int sgfs_mkdir_common(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      umode_t mode)
{
	return make(idmap, dir, dentry, S_IFDIR | mode, 0, NULL);
}

static int symlink(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		   const char *target)
{
	if (strlen(target) > SG_SYMLINK_MAX)
		return -ENAMETOOLONG;
	return make(idmap, dir, dentry, S_IFLNK | 0777, 0, target);
}

/* O_TMPFILE: no name, no links; the engine frees it when it is evicted, or after a crash. */
static int tmpfile(struct mnt_idmap *idmap, struct inode *dir, struct file *file, umode_t mode)
{
	struct sgfs_creation c;
	struct sg_iref ref;
	int err = sgfs_creation_begin(idmap, dir, &file->f_path.dentry->d_name, mode, 0, &c);

	if (err)
		return finish_open_simple(file, err);
	err = sg_tmpfile(sgfs_vol(dir), &c.new, &ref);
	if (err) {
		sgfs_creation_abort(&c);
		return finish_open_simple(file, err);
	}
	sgfs_add(dir->i_sb, SGFS_CREATES, 1);
	err = sgfs_creation_end(&c, &ref);
	if (!err) {
		set_nlink(c.inode, 1);		/* d_tmpfile() takes one link off */
		d_tmpfile(file, c.inode);
		unlock_new_inode(c.inode);
	}
	return finish_open_simple(file, err);
}

static int link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old);
	int err = sg_link(sgfs_vol(dir), sgfs_ref(inode), sgfs_ref(dir), dentry->d_name.name,
			  dentry->d_name.len, sgfs_now(inode));

	if (err)
		return err;
	sgfs_refresh(dir);
	sgfs_refresh(inode);
	ihold(inode);
	d_instantiate(dentry, inode);
	return 0;
}

/* --- removing --------------------------------------------------------------------------------- */

typedef int remove_fn(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		      s64 now);

static int remove(struct inode *dir, struct dentry *dentry, remove_fn *fn)
{
	struct inode *inode = d_inode(dentry);
	int err = fn(sgfs_vol(dir), sgfs_ref(dir), dentry->d_name.name, dentry->d_name.len,
		     sgfs_now(dir));

	if (err)
		return err;
	sgfs_add(dir->i_sb, SGFS_REMOVES, 1);
	trace_sgfs_remove(dir, inode->i_ino, inode->i_mode);
	sgfs_refresh(dir);
	sgfs_refresh(inode);
	return 0;
}

static int unlink(struct inode *dir, struct dentry *dentry)
{
	return remove(dir, dentry, sg_unlink);
}

static int rmdir(struct inode *dir, struct dentry *dentry)
{
	return remove(dir, dentry, sg_rmdir);
}

/* --- renaming --------------------------------------------------------------------------------- */

/* RENAME_WHITEOUT leaves a character device 0/0 behind, which overlayfs takes for "deleted". */
static int rename_leaving_whiteout(struct mnt_idmap *idmap, struct inode *old_dir,
				   struct dentry *old, struct inode *new_dir, struct dentry *new,
				   unsigned int flags)
{
	struct sgfs_creation c;
	int err = sgfs_creation_begin(idmap, old_dir, &old->d_name, S_IFCHR | WHITEOUT_MODE,
				      WHITEOUT_DEV, &c);

	if (err)
		return err;
	err = sg_rename(sgfs_vol(old_dir), sgfs_ref(old_dir), old->d_name.name, old->d_name.len,
			sgfs_ref(new_dir), new->d_name.name, new->d_name.len, flags, &c.new,
			c.new.now);
	sgfs_creation_abort(&c);	/* its VFS inode is made when somebody looks it up */
	return err;
}

static int rename(struct mnt_idmap *idmap, struct inode *old_dir, struct dentry *old,
		  struct inode *new_dir, struct dentry *new, unsigned int flags)
{
	struct inode *replaced = d_inode(new);
	int err;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	BUILD_BUG_ON(RENAME_NOREPLACE != SG_RENAME_NOREPLACE ||
		     RENAME_EXCHANGE != SG_RENAME_EXCHANGE ||
		     RENAME_WHITEOUT != SG_RENAME_WHITEOUT);
	if (flags & RENAME_WHITEOUT)
		err = rename_leaving_whiteout(idmap, old_dir, old, new_dir, new, flags);
	else
		err = sg_rename(sgfs_vol(old_dir), sgfs_ref(old_dir), old->d_name.name,
				old->d_name.len, sgfs_ref(new_dir), new->d_name.name,
				new->d_name.len, flags, NULL, sgfs_now(old_dir));
	if (err)
		return err;
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
	.lookup		= lookup,
	.create		= create,
	.mknod		= mknod,
	.mkdir		= sgfs_mkdir,
	.symlink	= symlink,
	.link		= link,
	.unlink		= unlink,
	.rmdir		= rmdir,
	.rename		= rename,
	.tmpfile	= tmpfile,
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
