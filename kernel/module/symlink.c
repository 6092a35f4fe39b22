// SPDX-License-Identifier: GPL-2.0
/*
 * Symbolic links. A target never changes, so it is cached with the inode: path walks need neither a
 * lock nor the volume.
 */
#include "stargatefs.h"

int sgfs_readlink_cache(struct inode *inode)
{
	loff_t size = i_size_read(inode);
	char *target;
	int len;

	if (size > SG_SYMLINK_MAX)
		return -EUCLEAN;
	target = kzalloc(size + 1, GFP_KERNEL_ACCOUNT);
	if (!target)
		return -ENOMEM;
	len = sg_readlink(sgfs_vol(inode), sgfs_ref(inode), target, size);
	if (len != size || strlen(target) != size) {
		kfree(target);
		return len < 0 ? len : -EUCLEAN;
	}
	inode->i_link = target;
	return 0;
}

const struct inode_operations sgfs_symlink_inode_operations = {
	.get_link	= simple_get_link,
	.setattr	= sgfs_setattr,
	.getattr	= sgfs_getattr,
	.listxattr	= sgfs_listxattr,
	.update_time	= sgfs_update_time,
};
