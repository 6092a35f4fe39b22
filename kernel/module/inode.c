// SPDX-License-Identifier: GPL-2.0
/* VFS inodes: made from the volume's, kept up to date with them, and their attributes. */
#include <linux/blk_types.h>
#include <linux/iversion.h>

#include "stargatefs.h"

static struct kmem_cache *inode_cache;

/* --- allocation ------------------------------------------------------------------------------- */

static void init_once(void *p)
{
	struct sgfs_inode *si = p;

	inode_init_once(&si->vfs);
	mutex_init(&si->window_lock);
	INIT_LIST_HEAD(&si->mapped);
	xa_init(&si->written);
}

struct inode *sgfs_alloc_inode(struct super_block *sb)
{
	struct sgfs_inode *si = alloc_inode_sb(sb, inode_cache, GFP_KERNEL);

	if (!si)
		return NULL;
	si->ref = (struct sg_iref){};
	si->seq = 0;
	si->flags = 0;
	si->opens = 0;
	si->map = SGFS_MAP_WALK;
	si->window = NULL;
	si->shadow = NULL;
	return &si->vfs;
}

void sgfs_free_inode(struct inode *inode)
{
	if (S_ISLNK(inode->i_mode))
		kfree(inode->i_link);
	kmem_cache_free(inode_cache, SGFS_I(inode));
}

int sgfs_inode_cache_init(void)
{
	inode_cache = kmem_cache_create("stargatefs_inode", sizeof(struct sgfs_inode), 0,
					SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, init_once);
	return inode_cache ? 0 : -ENOMEM;
}

void sgfs_inode_cache_exit(void)
{
	rcu_barrier();	/* inodes are freed after a grace period */
	kmem_cache_destroy(inode_cache);
}

/* The last user is gone. Without links, so is the file. */
void sgfs_evict_inode(struct inode *inode)
{
	const struct sg_iref *ref = sgfs_ref(inode);
	struct super_block *sb = inode->i_sb;

	truncate_inode_pages_final(&inode->i_data);
	if (inode->i_nlink)
		sgfs_written_flush(inode, 0, U64_MAX);
	sgfs_written_forget(inode);
	sgfs_map_evict(inode);
	clear_inode(inode);
	if (!ref->ino || inode->i_nlink)
		return;
	/*
	 * Not while frozen. Waiting for the thaw here could hold up the freeze itself, so what is
	 * closed then stays owed until the volume is left.
	 */
	if (!sb_start_intwrite_trylock(sb))
		return;
	if (!READ_ONCE(sgfs_vol(inode)->read_only))
		sg_evict(sgfs_vol(inode), ref);
	sb_end_intwrite(sb);
	sgfs_reclaim_soon(SGFS(sb));
}

/* --- from the volume to the VFS --------------------------------------------------------------- */

static const struct {
	u32 sg, vfs, ioctl;
} flag_table[] = {
	{ SG_FL_IMMUTABLE, S_IMMUTABLE, FS_IMMUTABLE_FL },
	{ SG_FL_APPEND, S_APPEND, FS_APPEND_FL },
	{ SG_FL_NOATIME, S_NOATIME, FS_NOATIME_FL },
	{ SG_FL_NODUMP, 0, FS_NODUMP_FL },
	{ SG_FL_SYNC, S_SYNC, FS_SYNC_FL },
	{ SG_FL_DIRSYNC, S_DIRSYNC, FS_DIRSYNC_FL },
};

static u32 to_ioctl_flags(u32 flags)
{
	unsigned int i;
	u32 out = 0;

	for (i = 0; i < ARRAY_SIZE(flag_table); i++)
		if (flags & flag_table[i].sg)
			out |= flag_table[i].ioctl;
	return out;
}

static void show_flags(struct inode *inode, u32 flags)
{
	unsigned int mask = 0, set = 0, i;

	for (i = 0; i < ARRAY_SIZE(flag_table); i++) {
		mask |= flag_table[i].vfs;
		if (flags & flag_table[i].sg)
			set |= flag_table[i].vfs;
	}
	inode_set_flags(inode, set, mask);
	SGFS_I(inode)->flags = flags;
}

static void show(struct inode *inode, const struct sg_attr *attr)
{
	struct sgfs_inode *si = SGFS_I(inode);

	inode->i_mode = attr->mode;
	i_uid_write(inode, attr->uid);
	i_gid_write(inode, attr->gid);
	set_nlink(inode, attr->nlink);
	i_size_write(inode, attr->size);
	inode->i_blocks = attr->blocks << (PAGE_SHIFT - SECTOR_SHIFT);
	inode->i_generation = attr->generation;
	inode_set_mtime_to_ts(inode, sgfs_ts(attr->mtime));
	inode_set_ctime_to_ts(inode, sgfs_ts(attr->ctime));
	inode_set_atime_to_ts(inode, sgfs_ts(attr->atime));
	inode_set_iversion(inode, attr->seq / 2);
	show_flags(inode, attr->flags);
	si->btime = attr->btime;
	si->has_xattr = attr->has_xattr;
	si->seq = attr->seq;
}

/* Snapshots may be shown out of order when several tasks refresh: the newest one stays. */
int sgfs_refresh_slow(struct inode *inode)
{
	struct sg_attr attr;
	int err = sg_getattr(sgfs_vol(inode), sgfs_ref(inode), &attr);

	if (err)
		return err;
	if ((attr.mode ^ inode->i_mode) & S_IFMT)
		return -ESTALE;		/* the number has got a new owner */
	spin_lock(&inode->i_lock);
	if (attr.seq >= SGFS_I(inode)->seq)
		show(inode, &attr);
	spin_unlock(&inode->i_lock);
	return 0;
}

void sgfs_set_operations(struct inode *inode, dev_t rdev)
{
	switch (inode->i_mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &sgfs_file_inode_operations;
		inode->i_fop = &sgfs_file_operations;
		inode->i_mapping->a_ops = &sgfs_address_operations;
		inode->i_flags |= SGFS_S_DAX;
		break;
	case S_IFDIR:
		inode->i_op = &sgfs_dir_inode_operations;
		inode->i_fop = &sgfs_dir_operations;
		break;
	case S_IFLNK:
		inode->i_op = &sgfs_symlink_inode_operations;
		break;
	default:
		inode->i_op = &sgfs_special_inode_operations;
		init_special_inode(inode, inode->i_mode, rdev);
	}
}

static bool known_type(u32 mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	}
	return false;
}

static int fill(struct inode *inode, const struct sg_iref *ref)
{
	struct sg_attr attr;
	int err = sg_getattr(sgfs_vol(inode), ref, &attr);

	if (err)
		return err;
	if (!known_type(attr.mode))
		return -EUCLEAN;
	SGFS_I(inode)->ref = *ref;
	show(inode, &attr);
	sgfs_set_operations(inode, new_decode_dev(attr.special));
	return S_ISLNK(inode->i_mode) ? sgfs_readlink_cache(inode) : 0;
}

struct inode *sgfs_iget(struct super_block *sb, const struct sg_iref *ref)
{
	struct inode *inode = iget_locked(sb, ref->ino);
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!(inode_state_read_once(inode) & I_NEW))
		return inode;
	err = fill(inode, ref);
	if (err) {
		SGFS_I(inode)->ref.ino = 0;	/* not ours to free */
		iget_failed(inode);
		return ERR_PTR(err);
	}
	unlock_new_inode(inode);
	return inode;
}

/* --- attributes ------------------------------------------------------------------------------- */

static int set_size(struct inode *inode, loff_t size)
{
	loff_t old = i_size_read(inode);
	int err = inode_newsize_ok(inode, size);

	if (err)
		return err;
	filemap_invalidate_lock(inode->i_mapping);
	if (size < old)
		sgfs_unmap(inode, round_up(size, PAGE_SIZE), LLONG_MAX, true);
	err = sg_resize(sgfs_vol(inode), sgfs_ref(inode), size, sgfs_now(inode));
	sgfs_refresh_slow(inode);
	filemap_invalidate_unlock(inode->i_mapping);
	sgfs_map_cut(inode, size, U64_MAX);
	return err;
}

/* What of struct iattr the volume is to keep. The VFS inode has the new values already. */
static unsigned int gather(const struct inode *inode, unsigned int valid, struct sg_attr *attr)
{
	static const struct {
		unsigned int vfs, sg;
	} table[] = {
		{ ATTR_MODE, SG_SET_MODE }, { ATTR_UID, SG_SET_UID }, { ATTR_GID, SG_SET_GID },
		{ ATTR_MTIME, SG_SET_MTIME }, { ATTR_CTIME, SG_SET_CTIME },
		{ ATTR_ATIME, SG_SET_ATIME },
	};
	unsigned int set = 0, i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (valid & table[i].vfs)
			set |= table[i].sg;
	attr->mode = inode->i_mode;
	attr->uid = i_uid_read(inode);
	attr->gid = i_gid_read(inode);
	attr->mtime = sgfs_ns(inode_get_mtime(inode));
	attr->ctime = sgfs_ns(inode_get_ctime(inode));
	attr->atime = sgfs_ns(inode_get_atime(inode));
	return set;
}

static int set_others(struct mnt_idmap *idmap, struct inode *inode, struct iattr *iattr)
{
	const unsigned int times = SG_SET_MTIME | SG_SET_CTIME | SG_SET_ATIME;
	struct sg_attr attr = {};
	unsigned int set;
	int err;

	setattr_copy(idmap, inode, iattr);
	set = gather(inode, iattr->ia_valid, &attr);
	if (set & ~times)
		err = sg_setattr(sgfs_vol(inode), sgfs_ref(inode), set, &attr);
	else
		err = sg_touch(sgfs_vol(inode), sgfs_ref(inode), set, attr.mtime, attr.ctime,
			       attr.atime);
	if (err)
		SGFS_I(inode)->seq = 0;		/* what was copied is not true */
	sgfs_refresh(inode);
	return err;
}

int sgfs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = sgfs_refresh(inode) ?: setattr_prepare(idmap, dentry, attr);

	if (!err && attr->ia_valid & ATTR_SIZE && attr->ia_size != i_size_read(inode))
		err = set_size(inode, attr->ia_size);
	if (!err)
		err = set_others(idmap, inode, attr);
	if (!err && attr->ia_valid & ATTR_MODE)
		err = sgfs_acl_chmod(idmap, dentry);
	return err;
}

int sgfs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	const struct sgfs_inode *si = SGFS_I(inode);
	int err = sgfs_refresh(inode);

	if (err)
		return err;
	stat->attributes_mask |= STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP |
				 STATX_ATTR_DAX;
	if (S_ISREG(inode->i_mode))
		stat->attributes |= STATX_ATTR_DAX;
	if (si->flags & SG_FL_IMMUTABLE)
		stat->attributes |= STATX_ATTR_IMMUTABLE;
	if (si->flags & SG_FL_APPEND)
		stat->attributes |= STATX_ATTR_APPEND;
	if (si->flags & SG_FL_NODUMP)
		stat->attributes |= STATX_ATTR_NODUMP;
	sgfs_generic_fillattr(idmap, mask, inode, stat);
	stat->btime = sgfs_ts(si->btime);
	stat->result_mask |= STATX_BTIME;
	/* Writes in place move the times and not the counter; together they tell every change. */
	sgfs_stat_change(stat, mask, si->seq + sgfs_ns(inode_get_ctime(inode)));
	if (mask & STATX_DIOALIGN && S_ISREG(inode->i_mode)) {
		stat->result_mask |= STATX_DIOALIGN;
		stat->dio_mem_align = 1;	/* every access is direct: no alignment is asked */
		stat->dio_offset_align = 1;
	}
	return 0;
}

int sgfs_update_time_common(struct inode *inode, bool atime, bool cmtime, struct timespec64 now)
{
	unsigned int set = (atime ? SG_SET_ATIME : 0) | (cmtime ? SG_SET_MTIME | SG_SET_CTIME : 0);
	s64 ns = sgfs_ns(now);
	int err = sg_touch(sgfs_vol(inode), sgfs_ref(inode), set, ns, ns, ns);

	if (err)
		return err;
	if (atime)
		inode_set_atime_to_ts(inode, now);
	if (cmtime) {
		inode_set_mtime_to_ts(inode, now);
		inode_set_ctime_to_ts(inode, now);
	}
	return 0;
}

/* --- flags (chattr) --------------------------------------------------------------------------- */

int sgfs_fileattr_get(struct dentry *dentry, struct file_kattr *fa)
{
	struct inode *inode = d_inode(dentry);
	int err = sgfs_refresh(inode);

	if (!err)
		fileattr_fill_flags(fa, to_ioctl_flags(SGFS_I(inode)->flags));
	return err;
}

static int from_ioctl_flags(u32 in, u32 *out)
{
	unsigned int i;

	*out = 0;
	for (i = 0; i < ARRAY_SIZE(flag_table); i++) {
		if (in & flag_table[i].ioctl)
			*out |= flag_table[i].sg;
		in &= ~flag_table[i].ioctl;
	}
	return in ? -EOPNOTSUPP : 0;
}

int sgfs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa)
{
	struct inode *inode = d_inode(dentry);
	struct sg_attr attr = {};
	int err;

	if (fileattr_has_fsx(fa) && (fa->fsx_extsize || fa->fsx_cowextsize || fa->fsx_projid))
		return -EOPNOTSUPP;
	err = from_ioctl_flags(fa->flags, &attr.flags);
	if (err)
		return err;
	attr.flags |= SGFS_I(inode)->flags & SG_FL_CUTTING;	/* the engine's own */
	attr.ctime = sgfs_now(inode);
	err = sg_setattr(sgfs_vol(inode), sgfs_ref(inode), SG_SET_FLAGS | SG_SET_CTIME, &attr);
	return err ?: sgfs_refresh_slow(inode);
}
