// SPDX-License-Identifier: GPL-2.0
/*
 * Files that a mount shows in addition to the volume's own. The directory .stargate in its root
 * does not appear in listings. With struct pages it has
 *
 *	region	the volume's memory from its first byte to its last, for a VMM to map as memory
 *		of a VM (D3, D11): a regular file, since containers may not open devices.
 *	region@UUID
 *		the same file by a name that listings leave out. An opener uses it to name the
 *		machine for which it maps the file; the host can then fence this machine
 *		(region_holders.c).
 *
 * and always
 *
 *	volume.json	data for the VMM: the place and the size (volume_json.c).
 *	semaphores	shared semaphores (sem_file.c).
 *
 * For the kernel, region is a file of one extent on a DAX device. The kernel handles its faults: 2
 * MiB at a time, with pages that KVM can use. MADV_POPULATE_WRITE stores nothing into them, so a
 * VMM that allocates its memory in advance does not overwrite bytes that other systems use.
 *
 * These inodes are no inodes of the volume: sgfs_is_virtual() keeps the engine away from them. They
 * are in no hash, so the kernel does not write them back: a machine flushes its own stores.
 */
#include <linux/dax.h>
#include <linux/iomap.h>
#include <linux/mount.h>
#include <linux/sched/signal.h>
#include <linux/uuid.h>

#include "stargatefs.h"

#define DIR_NAME	".stargate"
#define REGION_NAME	"region"
#define REGION_OF	"region@"
#define ABOUT_NAME	"volume.json"
#define SEMAPHORES_NAME	"semaphores"
#define DIR_INO		(SG_INO_MAX + 1)
#define REGION_INO	(SG_INO_MAX + 2)
#define ABOUT_INO	(SG_INO_MAX + 3)
#define SEMAPHORES_INO	(SG_INO_MAX + 4)

static bool sgfs_is_named(const struct qstr *name, const char *text)
{
	return name->len == strlen(text) && !memcmp(name->name, text, name->len);
}

/* Parse a name of region: @machine is the machine that it names; zeroes: none. */
static bool sgfs_is_region(const struct qstr *name, u8 machine[16])
{
	const size_t lead = strlen(REGION_OF);
	uuid_t uuid;

	memset(machine, 0, 16);
	if (sgfs_is_named(name, REGION_NAME))
		return true;
	if (name->len != lead + UUID_STRING_LEN || memcmp(name->name, REGION_OF, lead) ||
	    uuid_parse(name->name + lead, &uuid))
		return false;
	export_uuid(machine, &uuid);
	return true;
}

void sgfs_region_machine(const struct file *file, u8 machine[16])
{
	sgfs_is_region(&file->f_path.dentry->d_name, machine);
}

/* --- region ----------------------------------------------------------------------------------- */

static int sgfs_find_extent(struct inode *inode, loff_t pos, loff_t len, unsigned int flags,
			    struct iomap *map, struct iomap *source)
{
	const struct sgfs_memory *mem = &SGFS(inode->i_sb)->mem;

	map->type = IOMAP_MAPPED;
	map->offset = 0;
	map->length = mem->size;
	map->addr = mem->start;
	map->bdev = inode->i_sb->s_bdev;
	map->dax_dev = mem->dax;
	return 0;
}

static const struct iomap_ops extents = {
	.iomap_begin	= sgfs_find_extent,
};

/*
 * Report whether the range that a fault would map has a bad page. Such a large page is mapped by
 * small pages.
 */
static bool sgfs_region_has_bad(const struct vm_fault *vmf, sgfs_fault_order order)
{
	const struct sg_vol *vol = &SGFS(file_inode(vmf->vma->vm_file)->i_sb)->vol;
	u64 pages = order == SGFS_FAULT_PTE ? 1 : PMD_SIZE / PAGE_SIZE;

	return sg_has_bad(vol) &&
	       sg_is_bad(vol, (u64)round_down(vmf->pgoff, pages) << PAGE_SHIFT, pages);
}

/* A revocation removes the pages of all holders, and keeps faults away meanwhile. */
static vm_fault_t sgfs_region_huge_fault(struct vm_fault *vmf, sgfs_fault_order order)
{
	struct address_space *mapping = vmf->vma->vm_file->f_mapping;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	filemap_invalidate_lock_shared(mapping);
	if (sgfs_region_has_bad(vmf, order))
		ret = order == SGFS_FAULT_PTE ? VM_FAULT_HWPOISON : VM_FAULT_FALLBACK;
	else if (!sgfs_is_revoked(vmf->vma->vm_private_data))
		ret = dax_iomap_fault(vmf, order, NULL, NULL, &extents);
	filemap_invalidate_unlock_shared(mapping);
	return ret;
}

static vm_fault_t sgfs_region_fault(struct vm_fault *vmf)
{
	return sgfs_region_huge_fault(vmf, SGFS_FAULT_PTE);
}

/*
 * An extent that was once mapped by small pages would not get a large page again. So the first
 * mapping drops the pages of earlier mappings, unless one of them is still held.
 */
static void sgfs_region_count_mapping(struct inode *inode, int by)
{
	struct sgfs_inode *si = SGFS_I(inode);

	filemap_invalidate_lock(inode->i_mapping);
	if (!si->vmas && !sgfs_is_lent(inode))
		sgfs_dax_forget(inode);
	si->vmas += by;
	filemap_invalidate_unlock(inode->i_mapping);
}

static bool sgfs_may_store(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_MAYWRITE;
}

static void sgfs_region_open_mapping(struct vm_area_struct *vma)
{
	struct inode *inode = file_inode(vma->vm_file);

	sgfs_region_count_mapping(inode, 1);
	vma->vm_private_data = sgfs_hold_again(SGFS(inode->i_sb), vma->vm_private_data, vma->vm_mm,
					       sgfs_may_store(vma));
}

static void sgfs_region_close_mapping(struct vm_area_struct *vma)
{
	struct inode *inode = file_inode(vma->vm_file);

	sgfs_let_go(SGFS(inode->i_sb), vma->vm_private_data, sgfs_may_store(vma));
	sgfs_region_count_mapping(inode, -1);
	sgfs_keep_lent(SGFS(inode->i_sb), vma->vm_file);
}

static const struct vm_operations_struct vm_operations = {
	.open		= sgfs_region_open_mapping,
	.close		= sgfs_region_close_mapping,
	.fault		= sgfs_region_fault,
	.huge_fault	= sgfs_region_huge_fault,
	.page_mkwrite	= sgfs_region_fault,
	.pfn_mkwrite	= sgfs_region_fault,
};

/*
 * A private mapping would give a machine its own copies, which no other system ever sees. For a
 * file that is open for reading, the kernel makes a mapping that can never become writable.
 *
 * The flags do not change here. Otherwise Linux 6.12 would merge the mapping into its neighbour
 * after this call, and free it without ->close(), so its hold would never end. DAX mappings have
 * large entries without VM_HUGEPAGE.
 */
static int sgfs_map_region(struct file *file, struct vm_area_struct *vma)
{
	struct inode *inode = file_inode(file);
	struct sgfs_holder *holder;
	u8 machine[16];

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	sgfs_region_machine(file, machine);
	holder = sgfs_hold(SGFS(inode->i_sb), vma->vm_mm, machine, sgfs_may_store(vma));
	if (IS_ERR(holder))
		return PTR_ERR(holder);
	sgfs_region_count_mapping(inode, 1);
	vma->vm_private_data = holder;
	vma->vm_ops = &vm_operations;
	return 0;
}

static ssize_t sgfs_read_region(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t beyond = iov_iter_count(to);
	ssize_t done = 0;

	inode_lock_shared(inode);
	if (iocb->ki_pos < i_size_read(inode)) {
		/* The part beyond the end is in no extent, and the code must not query it. */
		iov_iter_truncate(to, i_size_read(inode) - iocb->ki_pos);
		beyond -= iov_iter_count(to);
		done = dax_iomap_rw(iocb, to, &extents);
		iov_iter_reexpand(to, iov_iter_count(to) + beyond);
	}
	inode_unlock_shared(inode);
	return done;
}

/* A volume may be large, so a task that waits for all of it can be killed. */
static int sgfs_sync_region(struct file *file, loff_t start, loff_t end, int datasync)
{
	const struct sgfs_memory *mem = &SGFS(file_inode(file)->i_sb)->mem;
	u64 pos = start, stop = min_t(u64, (u64)end + 1, mem->size), n;
	int err = 0;

	for (; pos < stop; pos += n) {
		n = min_t(u64, stop - pos, SGFS_PIECE);
		sg_wb(mem->base + pos, n);
		cond_resched();
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
	}
	sg_fence();
	return err;
}

/*
 * All mounts of a volume share the inode of region, with its owner and mode. Only attributes of the
 * mount itself distinguish them. This attribute is kept when a mount is copied, bound or remounted:
 * a namespace of less privilege cannot change attributes of access times.
 */
static bool sgfs_region_may_open(const struct file *file)
{
	const struct sgfs *fs = SGFS(file_inode(file)->i_sb);

	return !READ_ONCE(fs->opt.region_marked) ||
	       file->f_path.mnt->mnt_flags & MNT_NODIRATIME || capable(CAP_SYS_ADMIN);
}

/*
 * Refuse this machine's own id. Its slot is in the mount table too, and the end of the last hold
 * for its id would fence it.
 */
static int sgfs_open_region(struct inode *inode, struct file *file)
{
	struct sg_identity self;
	u8 machine[16];

	/*
	 * Refuse an overlay: the user who made it chose the attributes of that mount, and its
	 * names.
	 */
	if (file->f_path.mnt->mnt_sb != inode->i_sb || !sgfs_region_may_open(file))
		return -EACCES;
	sgfs_identify(&self);
	sgfs_region_machine(file, machine);
	if (sg_machine_known(machine) && !memcmp(machine, self.machine, sizeof(machine))) {
		sg_log(inode->i_sb, SG_WARN, "region@%pUb: this is the host's own UUID",
		       machine);
		return -EINVAL;
	}
	return generic_file_open(inode, file);
}

static const struct file_operations region_operations = {
	.open		= sgfs_open_region,
	.llseek		= generic_file_llseek,
	.read_iter	= sgfs_read_region,
	.mmap		= sgfs_map_region,
	.get_unmapped_area = thp_get_unmapped_area,
	.fsync		= sgfs_sync_region,
	.unlocked_ioctl	= sgfs_identity_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	SGFS_FILE_FLAGS_OP,
};

/*
 * Allow only the administrator to change owner and mode of region, because they determine who may
 * map it. Its size cannot change, and its mode has only permission bits. All mounts have the same
 * inode, and the root user of a container can own it. With the capabilities of an owner, one
 * container could deny or allow region to the others.
 */
static int sgfs_set_attributes(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	int err;

	if (attr->ia_valid & ATTR_SIZE ||
	    (attr->ia_valid & ATTR_MODE && attr->ia_mode & ~(S_IFMT | 0777)))
		return -EPERM;
	if (attr->ia_valid & (ATTR_MODE | ATTR_UID | ATTR_GID) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = setattr_prepare(idmap, dentry, attr);
	if (!err)
		setattr_copy(idmap, d_inode(dentry), attr);
	return err;
}

/* Update the length of the description, which changes with its content. */
static int sgfs_get_attributes(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat,
			       u32 mask, unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);

	sgfs_generic_fillattr(idmap, mask, inode, stat);
	if (inode->i_ino == ABOUT_INO)
		stat->size = sgfs_about_size(inode->i_sb);
	return 0;
}

static const struct inode_operations file_inode_operations = {
	.setattr	= sgfs_set_attributes,
	.getattr	= sgfs_get_attributes,
};

static const struct address_space_operations region_address_operations = {
	.dirty_folio	= noop_dirty_folio,
};

/* --- .stargate -------------------------------------------------------------------------------- */

static struct dentry *sgfs_region_find(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct sgfs *fs = SGFS(dir->i_sb);
	struct inode *inode = NULL;
	u8 machine[16];

	if (sgfs_is_region(&dentry->d_name, machine))
		inode = fs->region;
	else if (sgfs_is_named(&dentry->d_name, ABOUT_NAME))
		inode = fs->about;
	else if (sgfs_is_named(&dentry->d_name, SEMAPHORES_NAME))
		inode = fs->semaphores;
	if (inode)
		ihold(inode);
	return d_splice_alias(inode, dentry);
}

static bool sgfs_region_emit(struct dir_context *ctx, const char *name, u64 ino)
{
	if (!dir_emit(ctx, name, strlen(name), ino, DT_REG))
		return false;
	ctx->pos++;
	return true;
}

static int sgfs_region_iterate(struct file *file, struct dir_context *ctx)
{
	bool region = SGFS(file_inode(file)->i_sb)->region;

	if (!dir_emit_dots(file, ctx))
		return 0;
	if (ctx->pos == 2 && !sgfs_region_emit(ctx, ABOUT_NAME, ABOUT_INO))
		return 0;
	if (ctx->pos == 3 && !sgfs_region_emit(ctx, SEMAPHORES_NAME, SEMAPHORES_INO))
		return 0;
	if (ctx->pos == 4 && region)
		sgfs_region_emit(ctx, REGION_NAME, REGION_INO);
	return 0;
}

static const struct inode_operations dir_inode_operations = {
	.lookup		= sgfs_region_find,
};

static const struct file_operations dir_operations = {
	.llseek		= generic_file_llseek,
	.read		= generic_read_dir,
	.iterate_shared	= sgfs_region_iterate,
};

struct dentry *sgfs_virtual_lookup(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = SGFS(dir->i_sb)->virtual_dir;

	if (dir->i_ino != SG_INO_ROOT || !sgfs_is_named(&dentry->d_name, DIR_NAME))
		return NULL;
	ihold(inode);
	return d_splice_alias(inode, dentry) ?: dentry;
}

/* --- with the mount --------------------------------------------------------------------------- */

static struct inode *sgfs_region_make(struct super_block *sb, u64 ino, umode_t mode)
{
	struct inode *inode = new_inode(sb);
	struct timespec64 now;

	if (!inode)
		return NULL;
	inode->i_ino = ino;
	inode->i_mode = mode;
	inode->i_uid = GLOBAL_ROOT_UID;
	inode->i_gid = GLOBAL_ROOT_GID;
	inode->i_opflags &= ~IOP_XATTR;
	inode->i_flags |= S_NOATIME | S_NOCMTIME;
	now = current_time(inode);
	inode_set_atime_to_ts(inode, now);
	inode_set_mtime_to_ts(inode, now);
	inode_set_ctime_to_ts(inode, now);
	return inode;
}

/*
 * Make .stargate: no file can be created, renamed or removed in it, and the directory itself cannot
 * be renamed or removed.
 */
static struct inode *sgfs_make_dir(struct super_block *sb)
{
	struct inode *inode = sgfs_region_make(sb, DIR_INO, S_IFDIR | 0755);

	if (!inode)
		return NULL;
	set_nlink(inode, 2);
	inode->i_flags |= S_IMMUTABLE;
	inode->i_op = &dir_inode_operations;
	inode->i_fop = &dir_operations;
	return inode;
}

static struct inode *sgfs_make_region(struct super_block *sb, const struct sgfs_memory *mem)
{
	struct inode *inode = sgfs_region_make(sb, REGION_INO, S_IFREG);

	if (!inode)
		return NULL;
	i_size_write(inode, mem->size);
	inode->i_blocks = mem->size >> SECTOR_SHIFT;
	inode->i_flags |= S_DAX;
	inode->i_op = &file_inode_operations;
	inode->i_fop = &region_operations;
	inode->i_mapping->a_ops = &region_address_operations;
	return inode;
}

static struct inode *sgfs_make_about(struct super_block *sb)
{
	struct inode *inode = sgfs_region_make(sb, ABOUT_INO, S_IFREG);

	if (!inode)
		return NULL;
	inode->i_op = &file_inode_operations;
	inode->i_fop = &sgfs_about_operations;
	return inode;
}

/* The file is open to all users, because each object has its own permissions. */
static struct inode *sgfs_make_semaphores(struct super_block *sb)
{
	struct inode *inode = sgfs_region_make(sb, SEMAPHORES_INO, S_IFREG | 0666);

	if (!inode)
		return NULL;
	inode->i_op = &file_inode_operations;
	inode->i_fop = &sgfs_sem_operations;
	return inode;
}

static void sgfs_give(struct inode *inode, const struct sgfs_options *opt, umode_t mask)
{
	inode->i_uid = opt->region_uid;
	inode->i_gid = opt->region_gid;
	inode->i_mode = S_IFREG | (opt->region_mode & mask);
}

/* Apply owner and mode of the mount options. */
void sgfs_virtual_give(struct sgfs *fs)
{
	sgfs_give(fs->about, &fs->opt, 0444);
	if (fs->region)
		sgfs_give(fs->region, &fs->opt, fs->mem.read_only ? 0444 : 0666);
}

static bool sgfs_has_pages(const struct sgfs_memory *mem)
{
	return IS_ENABLED(CONFIG_FS_DAX) && mem->dax && pfn_valid(PHYS_PFN(mem->phys));
}

int sgfs_virtual_make(struct sgfs *fs)
{
	fs->virtual_dir = sgfs_make_dir(fs->sb);
	fs->about = sgfs_make_about(fs->sb);
	fs->semaphores = sgfs_make_semaphores(fs->sb);
	if (!fs->virtual_dir || !fs->about || !fs->semaphores)
		return -ENOMEM;
	if (sgfs_has_pages(&fs->mem)) {
		mutex_lock(&fs->windows_lock);	/* the device may grow at this moment */
		fs->region = sgfs_make_region(fs->sb, &fs->mem);
		mutex_unlock(&fs->windows_lock);
		if (!fs->region)
			return -ENOMEM;
	}
	sgfs_virtual_give(fs);
	return 0;
}

/*
 * Update the size of region. Existing mappings keep their size; later ones can cover the new size.
 */
void sgfs_virtual_resize(struct sgfs *fs)
{
	if (!fs->region)
		return;
	i_size_write(fs->region, fs->mem.size);
	fs->region->i_blocks = fs->mem.size >> SECTOR_SHIFT;
}

void sgfs_virtual_release(struct sgfs *fs)
{
	struct inode *region, *semaphores;

	sgfs_lent_end(fs);
	sgfs_identity_release(fs);
	mutex_lock(&fs->windows_lock);
	region = fs->region;
	fs->region = NULL;
	semaphores = fs->semaphores;
	fs->semaphores = NULL;
	mutex_unlock(&fs->windows_lock);
	iput(region);
	iput(semaphores);
	iput(fs->about);
	iput(fs->virtual_dir);
	fs->about = NULL;
	fs->virtual_dir = NULL;
}
