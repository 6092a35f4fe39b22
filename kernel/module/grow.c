// SPDX-License-Identifier: GPL-2.0
/*
 * Growth of a mounted volume, either on request (an ioctl on any of its directories) or because
 * another member makes it grow. If a device has become larger at the same addresses, as with LVM,
 * the module uses it up to its new end. Existing mappings remain.
 */
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/mount.h>
#include <linux/uaccess.h>

#include "uapi/ioctl.h"
#include "bells.h"

/*
 * Return the current size of the device, as one contiguous range from the first byte of the mount
 * on.
 */
static u64 sgfs_device_size(const struct sgfs *fs)
{
	long want = bdev_nr_bytes(fs->sb->s_bdev) >> PAGE_SHIFT, got;
	const struct sgfs_memory *mem = &fs->mem;
	phys_addr_t phys;
	void *base;
	int id;

	if (want <= mem->size >> PAGE_SHIFT)
		return mem->size;
	id = dax_read_lock();
	got = sgfs_dax_access(mem->dax, mem->start >> PAGE_SHIFT, want, &base, &phys);
	dax_read_unlock(id);
	return got > 0 && base == mem->base && phys == mem->phys ? (u64)got << PAGE_SHIFT : 0;
}

/*
 * Extend the windows before this system answers, because after the answer tables may refer to the
 * new part.
 */
u64 sgfs_memory_follow(struct sgfs *fs)
{
	struct sgfs_memory *mem = &fs->mem;
	u64 size;

	if (!mem->dax)
		return mem->size;
	mutex_lock(&fs->windows_lock);
	size = sgfs_device_size(fs);
	if (size > mem->size) {
		if (fs->windows)
			sg_windows_extend(fs->windows, size);
		WRITE_ONCE(mem->size, size);
		sgfs_virtual_resize(fs);
	}
	mutex_unlock(&fs->windows_lock);
	return mem->size;
}

static int sgfs_grow(struct file *file, struct sg_ioc_grow *g)
{
	struct sg_vol *vol = sgfs_vol(file_inode(file));
	int err = mnt_want_write_file(file);

	g->was = sg_size_now(vol);
	if (err) {
		snprintf(g->why, sizeof(g->why), "mounted read-only");
		return err;
	}
	err = sg_grow(vol, g->size, g->wait_ms, g->why);
	mnt_drop_write_file(file);
	g->size = err ? sg_grow_limit(vol) : sg_size_now(vol);
	return err;
}

long sgfs_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct sg_ioc_grow *g;
	int err;

	if (cmd == SG_IOC_ATOMIC)
		return sgfs_atomic_ioctl(file, user);
	if (cmd == SG_IOC_BELLS)
		return sgfs_bells_ioctl(file, user);
	if (cmd == SG_IOC_FREEZE || cmd == SG_IOC_THAW)
		return sgfs_snapshot_ioctl(file, cmd, user);
	if (cmd != SG_IOC_GROW)
		return -ENOTTY;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	g = memdup_user(user, sizeof(*g));
	if (IS_ERR(g))
		return PTR_ERR(g);
	memset(g->why, 0, sizeof(g->why));
	if (g->flags & ~SG_GROW_ASK)
		err = -EINVAL;
	else if (g->flags)
		err = sg_grow_ask(sgfs_vol(file_inode(file)), g->size, g->why);
	else
		err = sgfs_grow(file, g);
	if (copy_to_user(user, g, sizeof(*g)))
		err = -EFAULT;
	kfree(g);
	return err;
}
