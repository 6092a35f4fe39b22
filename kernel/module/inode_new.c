// SPDX-License-Identifier: GPL-2.0
/*
 * Creation of inodes. All initial state of a new inode (owner, mode, inherited ACLs, security
 * labels) is known before the call of the engine. The inode is therefore created in one
 * transaction: no crash leaves a file without its ACL. The VFS inode is allocated first, so that
 * nothing can fail once the name exists.
 */
#include <linux/security.h>

#include "stargatefs.h"

static int sgfs_add_label(struct inode *inode, const struct xattr *x, void *payload)
{
	int err = 0;

	for (; x->name && !err; x++)
		err = sgfs_payload_add(payload, SG_XATTR_SECURITY, x->name, x->value, x->value_len);
	return err;
}

static int sgfs_add_acl(struct sgfs_payload *p, unsigned int space, const struct posix_acl *acl)
{
	size_t size;
	void *value;
	int err;

	if (!acl)
		return 0;
	value = sgfs_acl_to_xattr(acl, &size, GFP_KERNEL);
	if (!value)
		return -ENOMEM;
	err = sgfs_payload_add(p, space, "", value, size);
	kfree(value);
	return err;
}

/* Compute the mode of the new inode from the directory's default ACL, or the umask. */
static int sgfs_inherit_acls(struct inode *dir, struct inode *inode, struct sgfs_payload *p)
{
	struct posix_acl *def, *acl;
	umode_t mode = inode->i_mode;
	int err = posix_acl_create(dir, &mode, &def, &acl);

	if (err)
		return err;
	inode->i_mode = mode;
	err = sgfs_add_acl(p, SG_XATTR_ACL_ACCESS, acl) ?:
		sgfs_add_acl(p, SG_XATTR_ACL_DEFAULT, def);
	if (!err) {
		set_cached_acl(inode, ACL_TYPE_ACCESS, acl);
		if (S_ISDIR(mode))
			set_cached_acl(inode, ACL_TYPE_DEFAULT, def);
	}
	posix_acl_release(acl);
	posix_acl_release(def);
	return err;
}

/*
 * Select the flags to inherit: symbolic links and special files do not use most flags, nor
 * attributes of data.
 */
static u32 sgfs_inherit_flags(const struct inode *dir, umode_t mode)
{
	u32 flags = SGFS_I(dir)->flags &
		    (SG_FL_NOATIME | SG_FL_NODUMP | SG_FL_SYNC | SG_FL_DIRSYNC | SG_FL_ATOMIC);

	if (SGFS(dir->i_sb)->opt.data == SGFS_DATA_ATOMIC)
		flags |= SG_FL_ATOMIC;
	if (!S_ISDIR(mode))
		flags &= ~SG_FL_DIRSYNC;
	if (!S_ISDIR(mode) && !S_ISREG(mode))
		flags &= SG_FL_NOATIME | SG_FL_NODUMP;
	return flags;
}

int sgfs_creation_begin(struct mnt_idmap *idmap, struct inode *dir, const struct qstr *name,
			umode_t mode, dev_t rdev, struct sgfs_creation *c)
{
	struct sgfs_payload payload = {};
	struct inode *inode = new_inode(dir->i_sb);
	int err;

	*c = (struct sgfs_creation){};
	if (!inode)
		return -ENOMEM;
	inode_init_owner(idmap, inode, dir, mode);
	err = sgfs_inherit_acls(dir, inode, &payload);
	if (!err)
		err = security_inode_init_security(inode, dir, name, sgfs_add_label, &payload);
	if (err && err != -EOPNOTSUPP) {
		kvfree(payload.data);
		iput(inode);
		return err;
	}
	c->inode = inode;
	c->new.mode = inode->i_mode;
	c->new.uid = i_uid_read(inode);
	c->new.gid = i_gid_read(inode);
	c->new.rdev = new_encode_dev(rdev);
	c->new.flags = sgfs_inherit_flags(dir, mode);
	c->new.now = sgfs_now(inode);
	c->new.xattrs = payload.data;
	c->new.xattrs_len = payload.len;
	sgfs_set_operations(inode, rdev);
	return 0;
}

/* Attach @ref, which the engine has made, to the VFS inode, which remains new and locked. */
int sgfs_creation_end(struct sgfs_creation *c, const struct sg_iref *ref)
{
	struct inode *inode = c->inode;
	int err;

	kvfree(c->new.xattrs);
	SGFS_I(inode)->ref = *ref;
	inode->i_ino = ref->ino;
	err = sgfs_refresh_slow(inode);
	/*
	 * The insertion fails if the number is in use. Another system has then given the inode a
	 * second name, and a lookup of this name has found the inode here.
	 */
	if (!err && insert_inode_locked4(inode, ref->ino, sgfs_is_inode, (void *)ref))
		err = -ESTALE;
	if (err) {
		SGFS_I(inode)->ref.ino = 0;
		iput(inode);
	}
	return err;
}

void sgfs_creation_abort(struct sgfs_creation *c)
{
	kvfree(c->new.xattrs);
	iput(c->inode);
}
