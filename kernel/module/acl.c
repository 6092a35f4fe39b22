// SPDX-License-Identifier: GPL-2.0
/* POSIX access control lists, kept in the kernel's own format for extended attributes. */
#include "stargatefs.h"

static unsigned int sgfs_space_of(int type)
{
	return type == ACL_TYPE_ACCESS ? SG_XATTR_ACL_ACCESS : SG_XATTR_ACL_DEFAULT;
}

/*
 * Read an attribute of unknown size. Another task may change it between the query of its size and
 * the read. If it has grown in between, the next attempt has room for the largest attribute.
 */
static int sgfs_read_whole(struct inode *inode, unsigned int space, void **out)
{
	const struct sg_iref *ref = sgfs_ref(inode);
	int size = sg_xattr_get(sgfs_vol(inode), ref, space, "", 0, NULL, 0), got;
	void *buf;

	for (;;) {
		if (size <= 0)
			return size ?: -ENODATA;
		buf = kvmalloc(size, GFP_NOFS);
		if (!buf)
			return -ENOMEM;
		got = sg_xattr_get(sgfs_vol(inode), ref, space, "", 0, buf, size);
		if (got >= 0)
			break;
		kvfree(buf);
		if (got != -ERANGE || size == SG_XATTR_VALUE_MAX)
			return got;
		size = SG_XATTR_VALUE_MAX;
	}
	*out = buf;
	return got;
}

struct posix_acl *sgfs_get_acl(struct inode *inode, int type, bool rcu)
{
	struct posix_acl *acl;
	void *value;
	int err;

	if (rcu)
		return ERR_PTR(-ECHILD);
	err = sgfs_refresh(inode);
	if (err)
		return ERR_PTR(err);
	if (!SGFS_I(inode)->has_xattr)
		return NULL;
	err = sgfs_read_whole(inode, sgfs_space_of(type), &value);
	if (err == -ENODATA)
		return NULL;
	if (err < 0)
		return ERR_PTR(err);
	acl = posix_acl_from_xattr(&init_user_ns, value, err);
	kvfree(value);
	return acl;
}

int sgfs_set_acl_common(struct mnt_idmap *idmap, struct inode *inode, struct posix_acl *acl,
			int type)
{
	struct sg_vol *vol = sgfs_vol(inode);
	umode_t mode;
	void *value = NULL;
	size_t size = 0;
	int err = sgfs_refresh(inode);

	if (err)
		return err;
	mode = inode->i_mode;
	if (type == ACL_TYPE_DEFAULT && !S_ISDIR(mode))
		return acl ? -EACCES : 0;
	if (type == ACL_TYPE_ACCESS && acl) {
		/*
		 * Replace an ACL that is equivalent to a mode by that mode, and set the ACL to
		 * NULL.
		 */
		err = posix_acl_update_mode(idmap, inode, &mode, &acl);
		if (err)
			return err;
	}
	if (acl) {
		value = sgfs_acl_to_xattr(acl, &size, GFP_KERNEL);
		if (!value)
			return -ENOMEM;
	}
	if (type == ACL_TYPE_ACCESS)
		err = sg_xattr_set_mode(vol, sgfs_ref(inode), SG_XATTR_ACL_ACCESS, value, size,
					mode, sgfs_now(inode));
	else
		err = sg_xattr_set(vol, sgfs_ref(inode), SG_XATTR_ACL_DEFAULT, "", 0, value, size,
				   0, sgfs_now(inode));
	kfree(value);
	if (err == -ENODATA && !acl)
		err = 0;	/* no ACL existed */
	/* Do not cache the new ACL here, because another system may have set one since. */
	sgfs_refresh(inode);
	return err;
}
