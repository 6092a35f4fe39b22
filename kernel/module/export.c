// SPDX-License-Identifier: GPL-2.0
/*
 * File handles, for NFS and open_by_handle_at(): inode number and generation. If the caller wants
 * to reconnect a file, the handle also has those of the parent.
 */
#include <linux/exportfs.h>

#include "stargatefs.h"

/* The types 0x81 and 0x82 are for 64-bit inode numbers; not all kernels have their names. */
#define TYPE_INODE	0x81
#define TYPE_PARENT	0x82

struct handle {
	__le64 ino;
	__le32 generation;
} __packed;
#define WORDS	(sizeof(struct handle) / sizeof(u32))

static void sgfs_put(struct handle *h, struct inode *inode)
{
	h->ino = cpu_to_le64(sgfs_ref(inode)->ino);
	h->generation = cpu_to_le32(inode->i_generation);
}

static int sgfs_encode(struct inode *inode, u32 *words, int *len, struct inode *parent)
{
	struct handle *h = (struct handle *)words;
	int need = parent ? 2 * WORDS : WORDS;
	bool fits = *len >= need;

	*len = need;
	if (!fits)
		return FILEID_INVALID;
	sgfs_put(h, inode);
	if (parent)
		sgfs_put(h + 1, parent);
	return parent ? TYPE_PARENT : TYPE_INODE;
}

/*
 * Report whether a process of this system has the file open: without links it remains until the
 * last close (sgfs_open()).
 */
static bool sgfs_is_open(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	bool open;

	mutex_lock(&si->window_lock);
	open = si->opens || si->kept;
	mutex_unlock(&si->window_lock);
	return open;
}

/*
 * Find the inode of a handle, which may be stale or forged. The handle never leads to another file
 * that has the number now, because the engine may be using that file.
 */
static struct dentry *sgfs_decode(struct super_block *sb, const struct handle *h)
{
	u32 generation = le32_to_cpu(h->generation);
	struct inode *inode = ERR_PTR(-ESTALE);

	if (generation)		/* 0 would match any generation */
		inode = sgfs_iget_number(sb, le64_to_cpu(h->ino), generation);
	if (!IS_ERR(inode) && !inode->i_nlink && !sgfs_is_open(inode)) {
		iput(inode);
		inode = ERR_PTR(-ESTALE);
	}
	return d_obtain_alias(inode);
}

static struct dentry *sgfs_fh_to_dentry(struct super_block *sb, struct fid *fid, int len, int type)
{
	if ((type != TYPE_INODE && type != TYPE_PARENT) || len < WORDS)
		return NULL;
	return sgfs_decode(sb, (const struct handle *)fid->raw);
}

static struct dentry *sgfs_fh_to_parent(struct super_block *sb, struct fid *fid, int len, int type)
{
	if (type != TYPE_PARENT || len < 2 * WORDS)
		return NULL;
	return sgfs_decode(sb, (const struct handle *)fid->raw + 1);
}

static struct dentry *sgfs_get_parent(struct dentry *child)
{
	struct inode *inode = d_inode(child);
	struct sg_attr attr;
	int err = sg_getattr(sgfs_vol(inode), sgfs_ref(inode), &attr);

	return err ? ERR_PTR(err) : d_obtain_alias(sgfs_iget_number(inode->i_sb, attr.special, 0));
}

const struct export_operations sgfs_export_operations = {
	.encode_fh	= sgfs_encode,
	.fh_to_dentry	= sgfs_fh_to_dentry,
	.fh_to_parent	= sgfs_fh_to_parent,
	.get_parent	= sgfs_get_parent,
};
