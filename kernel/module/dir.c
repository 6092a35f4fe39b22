// SPDX-License-Identifier: GPL-2.0
/* Reading directories. A position is the engine's cookie; 0 and 1 are "." and "..". */
#include "stargatefs.h"

static bool sgfs_dir_emit(void *ctx, const char *name, u32 len, u64 ino, unsigned int type,
			  u64 cookie)
{
	struct dir_context *out = ctx;

	out->pos = cookie;
	return dir_emit(out, name, len, ino, type);
}

static int sgfs_dir_iterate(struct file *file, struct dir_context *ctx)
{
	struct inode *dir = file_inode(file);
	u64 cookie;
	int err;

	err = sgfs_refresh(dir);
	if (err)
		return err;
	if (!dir_emit_dots(file, ctx))
		return 0;
	cookie = ctx->pos;
	err = sg_readdir(sgfs_vol(dir), sgfs_ref(dir), &cookie, sgfs_dir_emit, ctx);
	ctx->pos = cookie;
	return err;
}

static int sgfs_dir_open(struct inode *dir, struct file *file)
{
	return sgfs_open(dir);
}

static int sgfs_dir_release(struct inode *dir, struct file *file)
{
	sgfs_close(dir);
	return 0;
}

static loff_t sgfs_dir_llseek(struct file *file, loff_t offset, int whence)
{
	return generic_file_llseek_size(file, offset, whence, LLONG_MAX, LLONG_MAX);
}

/* Return 0, because a change of a directory is durable when its system call returns. */
static int sgfs_dir_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	return 0;
}

const struct file_operations sgfs_dir_operations = {
	.open		= sgfs_dir_open,
	.release	= sgfs_dir_release,
	.iterate_shared	= sgfs_dir_iterate,
	.read		= generic_read_dir,
	.llseek		= sgfs_dir_llseek,
	.fsync		= sgfs_dir_fsync,
	.lock		= sgfs_lock,
	.flock		= sgfs_flock,
	SGFS_NO_LEASES_OP,
	SGFS_IOCTL_OPS,
};
