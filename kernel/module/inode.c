// SPDX-License-Identifier: GPL-2.0
/* VFS inodes: creation from the volume's inodes, refresh, and attributes. */
#include <linux/blk_types.h>
#include <linux/delay.h>
#include <linux/iversion.h>
#include <linux/security.h>

#include "stargatefs.h"

#define MAKING_TURNS	50	/* the number of an inode that this system is creating */
#define MAKING_US	1000

static struct kmem_cache *inode_cache;

/* --- allocation ------------------------------------------------------------------------------- */

static void sgfs_init_once(void *p)
{
	struct sgfs_inode *si = p;

	inode_init_once(&si->vfs);
	mutex_init(&si->window_lock);
	mutex_init(&si->tables);
	atomic_set(&si->changes, 0);
	INIT_LIST_HEAD(&si->kept_at);
	INIT_LIST_HEAD(&si->mapped);
	INIT_LIST_HEAD(&si->mappers);
	xa_init(&si->written[0]);
	xa_init(&si->written[1]);
}

struct inode *sgfs_alloc_inode(struct super_block *sb)
{
	struct sgfs_inode *si = alloc_inode_sb(sb, inode_cache, GFP_KERNEL);

	if (!si)
		return NULL;
	si->ref = (struct sg_iref){};
	si->seq = 0;
	si->known = 0;
	si->base = 0;
	si->changing = false;
	si->kept = false;
	si->vmas = 0;
	si->written_in = (struct sgfs_layout){};
	si->moved = false;
	si->deferred_time = 0;
	si->holer = false;
	si->flags = 0;
	si->has_xattr = false;
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
					SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, sgfs_init_once);
	return inode_cache ? 0 : -ENOMEM;
}

void sgfs_inode_cache_exit(void)
{
	rcu_barrier();	/* inodes are freed after a grace period */
	kmem_cache_destroy(inode_cache);
}

/* Do not keep an inode in the cache if it has changed meanwhile. i_lock is held. */
int sgfs_drop_inode(struct inode *inode)
{
	return !inode->i_nlink || inode_unhashed(inode) || sgfs_is_lost(inode) ||
	       READ_ONCE(sgfs_record(inode)->seq) != SGFS_I(inode)->seq;
}

/* Report whether the file has no links and no other user now. The VFS inode's nlink may be old. */
static bool sgfs_is_removed(struct inode *inode)
{
	const struct sg_inode *record = sgfs_record(inode);
	u64 mode;

	if (!sgfs_ref(inode)->ino || !sgfs_alive(inode->i_sb) || sgfs_is_lost(inode))
		return false;
	mode = READ_ONCE(record->mode);
	return mode && !(mode >> 32) &&
	       (u32)READ_ONCE(record->genflags) == (u32)sgfs_ref(inode)->generation;
}

/* Free the file if it has no links. Called after the last user has closed it. */
void sgfs_evict_inode(struct inode *inode)
{
	struct super_block *sb = inode->i_sb;
	bool removed;

	sgfs_kept_evict(inode);
	removed = sgfs_is_removed(inode);
	if (sgfs_is_virtual(inode))
		sgfs_dax_evict(inode);
	truncate_inode_pages_final(&inode->i_data);
	if (!removed && sgfs_ref(inode)->ino)
		sgfs_written_flush(inode, 0, U64_MAX, false);
	sgfs_written_forget(inode);
	sgfs_map_evict(inode);
	clear_inode(inode);
	if (!removed)
		return;
	/*
	 * Evict an inode without waiting: memory reclaim and exiting processes call this, and
	 * cannot be killed. A wait for the thaw could delay the freeze itself. Another system may
	 * hold a lock for long. An inode that is not freed here stays a deferred free, and
	 * sg_settle() frees it (membership.c).
	 */
	if (!sb_start_intwrite_trylock(sb))
		return;
	if (!READ_ONCE(sgfs_vol(inode)->read_only))
		sg_evict_try(sgfs_vol(inode), sgfs_ref(inode));
	sb_end_intwrite(sb);
}

/* --- open and closed -------------------------------------------------------------------------- */

/*
 * Declare the file open. While it is open here, it keeps its number and its contents, even if
 * another system removes its last name. -ESTALE: the file was removed before this call; the VFS
 * looks its name up again.
 */
int sgfs_open(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	int err = 0;

	mutex_lock(&si->window_lock);
	if (!si->opens)
		err = sg_open_inode(sgfs_vol(inode), sgfs_ref(inode), si->kept);
	if (!err && !si->opens++) {
		if (list_empty(&si->kept_at))	/* created without links, and kept for this open */
			si->kept = false;
		if (S_ISREG(inode->i_mode))
			sgfs_map_attach(inode);
	}
	mutex_unlock(&si->window_lock);
	return err;
}

/*
 * Drop names that the file has lost. In the cache they would keep the file until memory gets short.
 */
void sgfs_forget_names(struct inode *inode)
{
	struct dentry *alias;
	bool known = true;

	while (known && (alias = d_find_alias(inode))) {
		known = !d_unhashed(alias);	/* a directory's alias is found even if unhashed */
		d_invalidate(alias);	/* drops also the dentries and mounts below it */
		dput(alias);
	}
}

void sgfs_close(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	bool removed = false;

	mutex_lock(&si->window_lock);
	if (!--si->opens) {
		sgfs_map_detach(inode);
		removed = !si->kept && sg_close_inode(sgfs_vol(inode), sgfs_ref(inode));
	}
	mutex_unlock(&si->window_lock);
	if (removed)
		sgfs_forget_names(inode);
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

static u32 sgfs_to_ioctl_flags(u32 flags)
{
	unsigned int i;
	u32 out = 0;

	for (i = 0; i < ARRAY_SIZE(flag_table); i++)
		if (flags & flag_table[i].sg)
			out |= flag_table[i].ioctl;
	return out;
}

/*
 * Drop caches that were derived from attributes that may have changed: ACLs, security labels, and
 * S_NOSEC, which means that a write need not check for privileges to remove.
 */
static void sgfs_forget_derived(struct inode *inode, const struct sg_attr *attr)
{
	if (!SGFS_I(inode)->has_xattr && !attr->has_xattr && inode->i_mode == attr->mode)
		return;
	forget_all_cached_acls(inode);
	security_inode_invalidate_secctx(inode);
	inode_set_flags(inode, 0, S_NOSEC);
}

static void sgfs_show_flags(struct inode *inode, u32 flags)
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

static void sgfs_inode_show(struct inode *inode, const struct sg_attr *attr)
{
	struct sgfs_inode *si = SGFS_I(inode);

	sgfs_forget_derived(inode, attr);
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
	sgfs_show_flags(inode, attr->flags);
	si->btime = attr->btime;
	si->has_xattr = attr->has_xattr;
	smp_store_release(&si->seq, attr->seq);
}

/*
 * Several tasks may refresh at the same time, and apply snapshots out of order: the newest snapshot
 * remains.
 */
int sgfs_refresh_slow(struct inode *inode)
{
	struct sg_attr attr;
	int err;

	if (!sgfs_alive(inode->i_sb))
		return -EIO;
	err = sg_getattr(sgfs_vol(inode), sgfs_ref(inode), &attr);
	if (err == -ESTALE || (!err && attr.generation != (u32)sgfs_ref(inode)->generation))
		return -ESTALE;		/* the number belongs to another file now, or to none */
	if (err)
		return err;
	if ((attr.mode ^ inode->i_mode) & S_IFMT)
		return -EUCLEAN;
	spin_lock(&inode->i_lock);
	if (attr.seq >= SGFS_I(inode)->seq)
		sgfs_inode_show(inode, &attr);
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

static bool sgfs_known_type(u32 mode)
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

/* Read the target of this link, and not of another file that has got the link's inode number since.
 * */
static int sgfs_read_target(struct inode *inode)
{
	const struct sg_inode *record = sgfs_record(inode);
	int err = sgfs_readlink_cache(inode);

	if (!READ_ONCE(record->mode) ||
	    (u32)READ_ONCE(record->genflags) != (u32)sgfs_ref(inode)->generation) {
		kfree(inode->i_link);	/* a bad inode is no link, and is not freed as one */
		inode->i_link = NULL;
		return -ESTALE;
	}
	return err;
}

static int sgfs_inode_fill(struct inode *inode, const struct sg_iref *ref)
{
	struct sg_attr attr;
	int err = sg_getattr(sgfs_vol(inode), ref, &attr);

	if (err)
		return err;
	if (attr.generation != (u32)ref->generation)
		return -ESTALE;
	if (!sgfs_known_type(attr.mode))
		return -EUCLEAN;
	sgfs_inode_show(inode, &attr);
	sgfs_set_operations(inode, new_decode_dev(attr.special));
	return S_ISLNK(inode->i_mode) ? sgfs_read_target(inode) : 0;
}

int sgfs_is_inode(struct inode *inode, void *p)
{
	const struct sg_iref *ref = p;

	return sgfs_ref(inode)->ino == ref->ino &&
	       (u32)sgfs_ref(inode)->generation == (u32)ref->generation;
}

static int sgfs_become(struct inode *inode, void *p)
{
	const struct sg_iref *ref = p;

	SGFS_I(inode)->ref = *ref;
	inode->i_ino = ref->ino;
	return 0;
}

/*
 * The VFS returns no inode in two cases: memory is short, or this system is still creating the
 * inode, and another system has already given it the name that led here. The retry distinguishes
 * the cases.
 */
static struct inode *sgfs_find_or_new(struct super_block *sb, const struct sg_iref *ref)
{
	struct inode *inode;
	unsigned int turn;

	for (turn = 0; turn < MAKING_TURNS; turn++) {
		inode = iget5_locked(sb, ref->ino, sgfs_is_inode, sgfs_become, (void *)ref);
		if (inode)
			break;
		usleep_range(MAKING_US, 2 * MAKING_US);
	}
	return inode;
}

struct inode *sgfs_iget(struct super_block *sb, const struct sg_iref *ref)
{
	struct inode *inode = sgfs_find_or_new(sb, ref);
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!(inode_state_read_once(inode) & I_NEW)) {
		/*
		 * Refresh an inode that the VFS has in its cache, because the VFS uses the inode's
		 * mode and flags next.
		 */
		err = sgfs_refresh(inode);
		if (!err)
			return inode;
		iput(inode);
		return ERR_PTR(err);
	}
	err = sgfs_inode_fill(inode, ref);
	if (err) {
		SGFS_I(inode)->ref.ino = 0;	/* this inode must not be freed here */
		iget_failed(inode);
		return ERR_PTR(err);
	}
	unlock_new_inode(inode);
	return inode;
}

/*
 * Return the inode of the file that has the number now. @generation: only a file with this
 * generation; 0: any file.
 */
struct inode *sgfs_iget_number(struct super_block *sb, u64 ino, u32 generation)
{
	struct sg_vol *vol = &SGFS(sb)->vol;
	struct sg_attr attr;
	struct sg_iref ref;
	int err = sg_iref(vol, ino, &ref) ?: sg_getattr(vol, &ref, &attr);

	if (!err && generation && attr.generation != generation)
		err = -ESTALE;
	if (err)
		return ERR_PTR(err);
	ref.generation = attr.generation;
	return sgfs_iget(sb, &ref);
}

/* --- attributes ------------------------------------------------------------------------------- */

/*
 * Check permissions for a directory. A path may begin at a directory without a check that the
 * directory is up to date.
 */
int sgfs_permission(struct mnt_idmap *idmap, struct inode *inode, int mask)
{
	int err;

	if (!sgfs_is_fresh(inode)) {
		if (mask & MAY_NOT_BLOCK)
			return -ECHILD;
		err = sgfs_refresh_slow(inode);
		if (err)
			return err;
	}
	return generic_permission(idmap, inode, mask);
}

static int sgfs_set_size_once(struct inode *inode, void *arg)
{
	loff_t size = *(const loff_t *)arg;

	sgfs_unmap(inode, round_up(size, PAGE_SIZE), LLONG_MAX, true);
	return sg_set_size(sgfs_vol(inode), sgfs_ref(inode), size, sgfs_now(inode));
}

/*
 * Remove everything that the file has beyond the new size, even if another system has just added
 * it. No fault enters a page behind the size, so remaining pages there are cut off without
 * invalidate_lock.
 */
static int sgfs_set_size(struct inode *inode, loff_t size)
{
	int err = inode_newsize_ok(inode, size);

	if (err)
		return err;
	err = sgfs_change_pages(inode, sgfs_set_size_once, &size, SGFS_ANY_NS) ?:
	      sg_finish_cut(sgfs_vol(inode), sgfs_ref(inode));
	sgfs_map_cut(inode, size, U64_MAX);
	sg_wait_mappers(sgfs_vol(inode), sgfs_ref(inode), false);
	return err;
}

/*
 * Return the part of struct iattr that the volume must store. The VFS inode already has the new
 * values.
 */
static unsigned int sgfs_gather(const struct inode *inode, unsigned int valid, struct sg_attr *attr)
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

static int sgfs_set_others(struct mnt_idmap *idmap, struct inode *inode, struct iattr *iattr)
{
	const unsigned int times = SG_SET_MTIME | SG_SET_CTIME | SG_SET_ATIME;
	s64 deferred = READ_ONCE(SGFS_I(inode)->deferred_time);
	struct sg_attr attr = {};
	unsigned int set;
	int err;

	/* a refresh in between would restore the old values before they are collected */
	spin_lock(&inode->i_lock);
	setattr_copy(idmap, inode, iattr);
	set = sgfs_gather(inode, iattr->ia_valid, &attr);
	spin_unlock(&inode->i_lock);
	if (set & ~times)
		err = sg_setattr(sgfs_vol(inode), sgfs_ref(inode), set, &attr);
	else
		err = sg_touch(sgfs_vol(inode), sgfs_ref(inode), set, attr.mtime, attr.ctime,
			       attr.atime);
	if (err)
		SGFS_I(inode)->seq = 0;		/* the copied attributes are not valid */
	else if (iattr->ia_valid & ATTR_MTIME)
		sgfs_forget_time(inode, deferred);
	sgfs_refresh(inode);
	return err;
}

/*
 * Check the flags again. With a descriptor, the VFS has checked them only at the time of the open.
 * It does not check its own changes (ATTR_FORCE).
 */
static int sgfs_still_may(struct mnt_idmap *idmap, struct inode *inode, unsigned int valid)
{
	int err;

	if (sgfs_is_fresh(inode))
		return 0;
	err = sgfs_refresh_slow(inode);
	if (err || valid & ATTR_FORCE)
		return err;
	return may_setattr(idmap, inode, valid);
}

int sgfs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = sgfs_still_may(idmap, inode, attr->ia_valid) ?:
		setattr_prepare(idmap, dentry, attr);

	if (!err && attr->ia_valid & ATTR_SIZE && sgfs_is_sealed(inode))
		err = -EPERM;
	if (!err && attr->ia_valid & ATTR_SIZE && attr->ia_size != i_size_read(inode))
		err = sgfs_set_size(inode, attr->ia_size);
	if (!err)
		err = sgfs_set_others(idmap, inode, attr);
	if (!err && attr->ia_valid & ATTR_MODE)
		err = sgfs_acl_chmod(idmap, dentry);
	return err;
}

static void sgfs_show_deferred_time(const struct sgfs_inode *si, struct kstat *stat)
{
	s64 time = READ_ONCE(si->deferred_time);

	if (!time)
		return;
	if (time > sgfs_ns(stat->mtime))
		stat->mtime = sgfs_ts(time);
	if (time > sgfs_ns(stat->ctime))
		stat->ctime = sgfs_ts(time);
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
	if (unlikely(READ_ONCE(si->deferred_time)))
		sgfs_show_deferred_time(si, stat);
	stat->btime = sgfs_ts(si->btime);
	stat->result_mask |= STATX_BTIME;
	sgfs_stat_change(stat, mask, si->seq);
	if (S_ISREG(inode->i_mode) && sgfs_knows_atomic(inode->i_sb))
		sgfs_stat_atomic(stat, mask, SGFS_ATOMIC_MIN, SG_ATOMIC_MAX);
	if (mask & STATX_DIOALIGN && S_ISREG(inode->i_mode)) {
		/*
		 * Report the alignment for direct I/O: every access is direct, and none needs
		 * alignment.
		 */
		stat->result_mask |= STATX_DIOALIGN;
		stat->dio_mem_align = cache_line_size();
		stat->dio_offset_align = PAGE_SIZE;
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

/*
 * The VFS records that no privileges remain, by one store to flags that other tasks also change.
 * Another system may have set privileges or flags that a refresh has stored there meanwhile. The
 * VFS's store overwrites such a change, so refresh the inode again.
 */
int sgfs_remove_privs(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct sgfs_inode *si = SGFS_I(inode);
	u64 seq = READ_ONCE(si->seq);
	int err = file_remove_privs(file);

	if (likely(READ_ONCE(si->seq) == seq))
		return err;
	spin_lock(&inode->i_lock);
	si->seq = 0;
	inode_set_flags(inode, 0, S_NOSEC);
	spin_unlock(&inode->i_lock);
	return err;
}

/* --- flags (chattr) --------------------------------------------------------------------------- */

int sgfs_fileattr_get(struct dentry *dentry, struct file_kattr *fa)
{
	struct inode *inode = d_inode(dentry);
	int err = sgfs_refresh(inode);

	if (!err)
		fileattr_fill_flags(fa, sgfs_to_ioctl_flags(SGFS_I(inode)->flags));
	return err;
}

static int sgfs_from_ioctl_flags(u32 in, u32 *out)
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
	err = sgfs_refresh(inode) ?: sgfs_from_ioctl_flags(fa->flags, &attr.flags);
	if (err)
		return err;
	attr.ctime = sgfs_now(inode);
	err = sg_setattr(sgfs_vol(inode), sgfs_ref(inode), SG_SET_FLAGS | SG_SET_CTIME, &attr);
	return err ?: sgfs_refresh_slow(inode);
}
