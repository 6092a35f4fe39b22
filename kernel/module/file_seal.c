// SPDX-License-Identifier: GPL-2.0
/*
 * Sealed files (docs/sealed-files.md). The engine looks at other systems, and refuses each change
 * of a sealed file. Here are the processes of this system: none of them has the file open for
 * writing when it is sealed, and none opens it so later. A mapping holds its file open, so no
 * process has it mapped writably either.
 */
#include <linux/mount.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "uapi/ioctl.h"
#include "stargatefs.h"

int sgfs_open_to_write(struct inode *inode)
{
	int err = sg_may_open_to_write(sgfs_vol(inode), sgfs_ref(inode));

	if (err)
		sgfs_close(inode);
	return err;
}

/* Meanwhile an open for writing fails with ETXTBSY, as that of a program that runs. */
static int sgfs_seal(struct file *file, struct sg_ioc_seal *s)
{
	struct inode *inode = file_inode(file);
	int err;

	if (deny_write_access(file)) {
		snprintf(s->why, sizeof(s->why),
			 "a process of this system has the file open for writing");
		return -EBUSY;
	}
	err = sg_seal(sgfs_vol(inode), sgfs_ref(inode), sgfs_now(inode), s->why);
	allow_write_access(file);
	return err;
}

static int sgfs_unseal(struct file *file, struct sg_ioc_seal *s)
{
	struct inode *inode = file_inode(file);
	struct sgfs_inode *si = SGFS_I(inode);
	bool others;

	mutex_lock(&si->window_lock);
	others = si->opens > 1;
	mutex_unlock(&si->window_lock);
	if (others) {
		snprintf(s->why, sizeof(s->why),
			 "a process of this system has the file open, or mapped");
		return -EBUSY;
	}
	return sg_unseal(sgfs_vol(inode), sgfs_ref(inode), sgfs_now(inode), s->why);
}

static int sgfs_seal_change(struct file *file, struct sg_ioc_seal *s)
{
	struct inode *inode = file_inode(file);
	u64 root[SG_DIGEST_SIZE / 8];
	int err;

	if (!inode_owner_or_capable(file_mnt_idmap(file), inode))
		return -EPERM;
	err = mnt_want_write_file(file);
	if (err)
		return err;
	err = sgfs_refresh(inode);
	if (!err && IS_IMMUTABLE(inode))
		err = -EPERM;
	if (!err && s->what == SG_SEAL_ROOT) {
		memcpy(root, s->root, sizeof(root));
		err = sg_seal_set_root(sgfs_vol(inode), sgfs_ref(inode), root);
	} else if (!err) {
		err = s->what == SG_SEAL_SET ? sgfs_seal(file, s) : sgfs_unseal(file, s);
	}
	sgfs_refresh(inode);
	mnt_drop_write_file(file);
	return err;
}

static int sgfs_seal_ask(struct inode *inode, struct sg_ioc_seal *s)
{
	u64 root[SG_DIGEST_SIZE / 8];
	int err = sgfs_refresh(inode);

	if (err)
		return err;
	err = sg_seal_root(sgfs_vol(inode), sgfs_ref(inode), root);
	if (err && err != -ENODATA)
		return err;
	s->state = sg_is_sealed(sgfs_vol(inode), sgfs_ref(inode)) ? SG_SEAL_IS_SET : 0;
	memset(s->root, 0, sizeof(s->root));
	if (!err) {
		s->state |= SG_SEAL_HAS_ROOT;
		memcpy(s->root, root, sizeof(root));
	}
	return 0;
}

static long sgfs_seal_ioctl(struct file *file, void __user *user)
{
	struct sg_ioc_seal *s = memdup_user(user, sizeof(*s));
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	memset(s->why, 0, sizeof(s->why));
	if (s->what > SG_SEAL_ROOT)
		err = -EINVAL;
	else if (s->what == SG_SEAL_ASK)
		err = sgfs_seal_ask(file_inode(file), s);
	else
		err = sgfs_seal_change(file, s);
	if (copy_to_user(user, s, sizeof(*s)))
		err = -EFAULT;
	kfree(s);
	return err;
}

long sgfs_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case SG_IOC_ATOMIC:
		return sgfs_atomic_ioctl(file, user);
	case SG_IOC_SEAL:
		return sgfs_seal_ioctl(file, user);
	}
	return -ENOTTY;
}
