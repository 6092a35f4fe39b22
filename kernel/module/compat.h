/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This file, and no other, contains the differences between the supported kernels. The code is
 * written for the newest kernel. The definitions below make older kernels look like it.
 */
#ifndef SG_COMPAT_H
#define SG_COMPAT_H

#include <linux/dax.h>
#include <linux/dcache.h>
#include <linux/fileattr.h>
#include <linux/fs.h>
#include <linux/huge_mm.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <linux/xattr.h>

#define SGFS_KERNEL_AT_LEAST(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))

#if SGFS_KERNEL_AT_LEAST(6, 4)
#include <linux/filelock.h>
#endif
#if !SGFS_KERNEL_AT_LEAST(7, 0)
#include <linux/pfn_t.h>
#endif

/* --- exports: the name of a namespace is a string since 6.13 ---------------------------------- */

#if SGFS_KERNEL_AT_LEAST(6, 13)
#define SGFS_EXPORT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, "STARGATE")
#else
#define SGFS_EXPORT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, STARGATE)
#endif

/* --- id mapping of mounts: was done with user namespaces up to 6.2 ---------------------------- */

#if !SGFS_KERNEL_AT_LEAST(6, 3)
#define mnt_idmap		user_namespace
#define nop_mnt_idmap		init_user_ns
#define file_mnt_idmap(file)	file_mnt_user_ns(file)
#endif

/* --- eventfds: had a count up to 6.7 ---------------------------------------------------------- */

#if SGFS_KERNEL_AT_LEAST(6, 8)
#define sgfs_eventfd_signal(ctx)	eventfd_signal(ctx)
#else
#define sgfs_eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#endif

/* --- times ------------------------------------------------------------------------------------ */

#if !SGFS_KERNEL_AT_LEAST(6, 7)
static inline struct timespec64 inode_get_atime(const struct inode *inode)
{
	return inode->i_atime;
}

static inline struct timespec64 inode_get_mtime(const struct inode *inode)
{
	return inode->i_mtime;
}

static inline struct timespec64 inode_set_atime_to_ts(struct inode *inode, struct timespec64 ts)
{
	return inode->i_atime = ts;
}

static inline struct timespec64 inode_set_mtime_to_ts(struct inode *inode, struct timespec64 ts)
{
	return inode->i_mtime = ts;
}
#endif

/*
 * ->update_time(): 6.1 passes the time, 6.12 lets the file system take it, 7.2 names a type.
 * sgfs_update_time() calls sgfs_update_time_common(inode, atime, mtime and ctime, now) in all
 * cases.
 */
int sgfs_update_time_common(struct inode *inode, bool atime, bool cmtime, struct timespec64 now);

#if SGFS_KERNEL_AT_LEAST(7, 0)
static inline int sgfs_update_time(struct inode *inode, enum fs_update_time type,
				   unsigned int flags)
{
	return sgfs_update_time_common(inode, type == FS_UPD_ATIME, type == FS_UPD_CMTIME,
				     current_time(inode));
}
#elif SGFS_KERNEL_AT_LEAST(6, 6)
static inline int sgfs_update_time(struct inode *inode, int flags)
{
	return sgfs_update_time_common(inode, flags & S_ATIME, flags & (S_MTIME | S_CTIME),
				     current_time(inode));
}
#else
static inline int sgfs_update_time(struct inode *inode, struct timespec64 *now, int flags)
{
	return sgfs_update_time_common(inode, flags & S_ATIME, flags & (S_MTIME | S_CTIME), *now);
}
#endif

/* --- state of an inode: a plain word before 7.0 ----------------------------------------------- */

#if !SGFS_KERNEL_AT_LEAST(7, 0)
#define inode_state_read_once(inode)	READ_ONCE((inode)->i_state)
#endif

/* --- attributes ------------------------------------------------------------------------------- */

#if !SGFS_KERNEL_AT_LEAST(6, 17)
#define file_kattr		fileattr
#endif

static inline void sgfs_generic_fillattr(struct mnt_idmap *idmap, u32 mask, struct inode *inode,
				       struct kstat *stat)
{
#if SGFS_KERNEL_AT_LEAST(6, 6)
	generic_fillattr(idmap, mask, inode, stat);
#else
	generic_fillattr(idmap, inode, stat);
#endif
}

/* The change counter in statx, for NFS. Before 6.3 the kernel takes it from i_version instead. */
static inline void sgfs_stat_change(struct kstat *stat, u32 mask, u64 cookie)
{
#if SGFS_KERNEL_AT_LEAST(6, 3)
	if (mask & STATX_CHANGE_COOKIE) {
		stat->change_cookie = cookie;
		stat->result_mask |= STATX_CHANGE_COOKIE;
	}
#endif
}

/* --- directory operations --------------------------------------------------------------------- */

/* ->mkdir() returns a dentry since 6.15: NULL, or an error. */
int sgfs_mkdir_common(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		    umode_t mode);
#if SGFS_KERNEL_AT_LEAST(6, 15)
static inline struct dentry *sgfs_mkdir(struct mnt_idmap *idmap, struct inode *dir,
				      struct dentry *dentry, umode_t mode)
{
	return ERR_PTR(sgfs_mkdir_common(idmap, dir, dentry, mode));
}
#else
#define sgfs_mkdir		sgfs_mkdir_common
#endif

/* --- names ------------------------------------------------------------------------------------ */

/*
 * Check whether the dentry still agrees with the volume. 1: yes. 0: no. -ECHILD: the check must
 * sleep.
 */
int sgfs_revalidate_rcu(struct inode *dir, struct dentry *dentry);
int sgfs_revalidate_common(struct inode *dir, const struct qstr *name, struct dentry *dentry,
			   unsigned int flags);

#if SGFS_KERNEL_AT_LEAST(6, 14)
static inline int sgfs_revalidate(struct inode *dir, const struct qstr *name,
				  struct dentry *dentry, unsigned int flags)
{
	if (flags & LOOKUP_RCU)
		return sgfs_revalidate_rcu(dir, dentry);
	return sgfs_revalidate_common(dir, name, dentry, flags);
}
#else
static inline int sgfs_revalidate(struct dentry *dentry, unsigned int flags)
{
	struct name_snapshot name;
	struct dentry *parent;
	int ret;

	if (flags & LOOKUP_RCU) {
		struct inode *dir = d_inode_rcu(READ_ONCE(dentry->d_parent));

		return dir ? sgfs_revalidate_rcu(dir, dentry) : -ECHILD;
	}
	parent = dget_parent(dentry);
	take_dentry_name_snapshot(&name, dentry);
	ret = sgfs_revalidate_common(d_inode(parent), &name.name, dentry, flags);
	release_dentry_name_snapshot(&name);
	dput(parent);
	return ret;
}
#endif

#if !SGFS_KERNEL_AT_LEAST(6, 17)
static inline void set_default_d_op(struct super_block *sb, const struct dentry_operations *ops)
{
	sb->s_d_op = ops;
}
#endif

/* --- access control lists --------------------------------------------------------------------- */

struct posix_acl *sgfs_get_acl(struct inode *inode, int type, bool rcu);
int sgfs_set_acl_common(struct mnt_idmap *idmap, struct inode *inode, struct posix_acl *acl,
		      int type);

#if SGFS_KERNEL_AT_LEAST(6, 2)
#define SGFS_GET_ACL_OP		.get_inode_acl = sgfs_get_acl
#define SGFS_ACL_XATTR_HANDLERS	/* the VFS handles these attributes itself */

static inline int sgfs_set_acl(struct mnt_idmap *idmap, struct dentry *dentry,
			     struct posix_acl *acl, int type)
{
	return sgfs_set_acl_common(idmap, d_inode(dentry), acl, type);
}

static inline int sgfs_acl_chmod(struct mnt_idmap *idmap, struct dentry *dentry)
{
	return posix_acl_chmod(idmap, dentry, d_inode(dentry)->i_mode);
}
#else
#define SGFS_GET_ACL_OP		.get_acl = sgfs_get_acl
#define SGFS_ACL_XATTR_HANDLERS	&posix_acl_access_xattr_handler, &posix_acl_default_xattr_handler,
#define sgfs_set_acl		sgfs_set_acl_common

static inline int sgfs_acl_chmod(struct mnt_idmap *idmap, struct dentry *dentry)
{
	return posix_acl_chmod(idmap, d_inode(dentry), d_inode(dentry)->i_mode);
}
#endif

/*
 * Return an ACL as the allocated value of an extended attribute, with ids of the initial namespace.
 */
static inline void *sgfs_acl_to_xattr(const struct posix_acl *acl, size_t *size, gfp_t gfp)
{
#if SGFS_KERNEL_AT_LEAST(7, 0)
	return posix_acl_to_xattr(&init_user_ns, acl, size, gfp);
#else
	void *value;

	*size = posix_acl_xattr_size(acl->a_count);
	value = kmalloc(*size, gfp);
	if (value)
		posix_acl_to_xattr(&init_user_ns, acl, value, *size);
	return value;
#endif
}

/* --- superblock ------------------------------------------------------------------------------- */

#if SGFS_KERNEL_AT_LEAST(6, 6)
typedef const struct xattr_handler *const sgfs_xattr_table;
#else
typedef const struct xattr_handler *sgfs_xattr_table;
#endif

static inline void sgfs_super_set_uuid(struct super_block *sb, const u8 *uuid)
{
#if SGFS_KERNEL_AT_LEAST(6, 9)
	super_set_uuid(sb, uuid, 16);
#else
	import_uuid(&sb->s_uuid, uuid);
#endif
}

/*
 * Freezing: the operations name the requester since 6.6 and its owner since 7.0. A request of a
 * user reaches the module before the VFS acts on it. Each version calls sgfs_user_freeze(sb, thaw,
 * who, owner).
 */
int sgfs_user_freeze(struct super_block *sb, bool thaw, unsigned int who, const void *owner);

static inline int sgfs_vfs_freeze(struct super_block *sb, bool thaw, unsigned int who,
				  const void *owner)
{
#if SGFS_KERNEL_AT_LEAST(7, 0)
	return thaw ? thaw_super(sb, who, owner) : freeze_super(sb, who, owner);
#elif SGFS_KERNEL_AT_LEAST(6, 6)
	return thaw ? thaw_super(sb, who) : freeze_super(sb, who);
#else
	return thaw ? thaw_super(sb) : freeze_super(sb);
#endif
}

#if SGFS_KERNEL_AT_LEAST(7, 0)
static inline int sgfs_freeze_super(struct super_block *sb, enum freeze_holder who,
				    const void *owner)
{
	return sgfs_user_freeze(sb, false, who, owner);
}

static inline int sgfs_thaw_super(struct super_block *sb, enum freeze_holder who,
				  const void *owner)
{
	return sgfs_user_freeze(sb, true, who, owner);
}
#elif SGFS_KERNEL_AT_LEAST(6, 6)
static inline int sgfs_freeze_super(struct super_block *sb, enum freeze_holder who)
{
	return sgfs_user_freeze(sb, false, who, NULL);
}

static inline int sgfs_thaw_super(struct super_block *sb, enum freeze_holder who)
{
	return sgfs_user_freeze(sb, true, who, NULL);
}
#else
#define FREEZE_HOLDER_KERNEL	0
static inline int sgfs_freeze_super(struct super_block *sb)
{
	return sgfs_user_freeze(sb, false, 0, NULL);
}

static inline int sgfs_thaw_super(struct super_block *sb)
{
	return sgfs_user_freeze(sb, true, 0, NULL);
}
#endif

/* Since 6.6 a fault in a file may hold the lock of its mapping instead of mmap_lock. */
static inline void sgfs_release_fault_lock(const struct vm_fault *vmf)
{
#if SGFS_KERNEL_AT_LEAST(6, 6)
	release_fault_lock((struct vm_fault *)vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

/* Return the number of pages that can be accessed from @page on, at most @pages; or -errno. */
static inline long sgfs_dax_access(struct dax_device *dax, pgoff_t page, long pages, void **kaddr,
				 phys_addr_t *phys)
{
#if SGFS_KERNEL_AT_LEAST(6, 17)
	unsigned long pfn = 0;
	long n = dax_direct_access(dax, page, pages, DAX_ACCESS, kaddr, &pfn);

	*phys = PFN_PHYS(pfn);
#else
	pfn_t pfn = { 0 };
	long n = dax_direct_access(dax, page, pages, DAX_ACCESS, kaddr, &pfn);

	*phys = PFN_PHYS(pfn_t_to_pfn(pfn));
#endif
	return n;
}

/*
 * Take a reference on the dev_pagemap of a device's memory. Removal of the device waits until the
 * reference is dropped.
 */
static inline struct dev_pagemap *sgfs_hold_pages(phys_addr_t phys)
{
#if SGFS_KERNEL_AT_LEAST(6, 18)
	return get_dev_pagemap(PHYS_PFN(phys));
#else
	return get_dev_pagemap(PHYS_PFN(phys), NULL);
#endif
}

/* --- locks of users --------------------------------------------------------------------------- */

#if SGFS_KERNEL_AT_LEAST(6, 9)
#define sgfs_fl(lock, field)	((lock)->c.flc_##field)
#define SGFS_FL_LIST	c.flc_list
#else
#define sgfs_fl(lock, field)	((lock)->fl_##field)
#define SGFS_FL_LIST	fl_list
#endif

/*
 * Refuse leases (EINVAL): another system could not break one. Since 7.0 the kernel refuses them if
 * the operation is absent.
 */
#if SGFS_KERNEL_AT_LEAST(7, 0)
#define SGFS_NO_LEASES_OP	.setlease = NULL
#else
#define SGFS_NO_LEASES_OP	.setlease = simple_nosetlease
#endif

/* --- files ------------------------------------------------------------------------------------ */

#if SGFS_KERNEL_AT_LEAST(6, 5)
#define SGFS_SPLICE_READ		copy_splice_read
#else
#define SGFS_SPLICE_READ		generic_file_splice_read
#endif

/*
 * MAP_SYNC, and buffered writes that must not wait, are flags of the operations since 6.12. The
 * similar flag for reads would promise a callback to io_uring (IOCB_WAITQ). A read that waits for
 * another system makes no callback, and would block the task that submits it. Without the flag a
 * thread of io_uring waits.
 */
#if SGFS_KERNEL_AT_LEAST(6, 12)
#define SGFS_FILE_FLAGS_OP	.fop_flags = FOP_MMAP_SYNC | FOP_BUFFER_WASYNC
#define SGFS_FILE_MODE		(FMODE_NOWAIT | FMODE_CAN_ODIRECT)
#define SGFS_FILE_ATOMIC	FMODE_CAN_ATOMIC_WRITE
#else
#define SGFS_FILE_FLAGS_OP	.mmap_supported_flags = MAP_SYNC
#define SGFS_FILE_MODE		(FMODE_NOWAIT | FMODE_CAN_ODIRECT | FMODE_BUF_WASYNC)
#define SGFS_FILE_ATOMIC	0
#endif

/* RWF_ATOMIC: since 6.11 */
static inline bool sgfs_iocb_is_atomic(const struct kiocb *iocb)
{
#if SGFS_KERNEL_AT_LEAST(6, 11)
	return unlikely(iocb->ki_flags & IOCB_ATOMIC);
#else
	return false;
#endif
}

/* Report whether the user's memory is one range, as RWF_ATOMIC requires. */
static inline bool sgfs_iter_is_one(const struct iov_iter *iter)
{
#if SGFS_KERNEL_AT_LEAST(6, 11)
	return iter_is_ubuf(iter);
#else
	return true;
#endif
}

/* Atomic writes in the result of statx(). */
static inline void sgfs_stat_atomic(struct kstat *stat, u32 mask, u32 min, u32 max)
{
#if SGFS_KERNEL_AT_LEAST(6, 11)
	stat->attributes_mask |= STATX_ATTR_WRITE_ATOMIC;
	stat->attributes |= STATX_ATTR_WRITE_ATOMIC;
	if (!(mask & STATX_WRITE_ATOMIC))
		return;
	stat->result_mask |= STATX_WRITE_ATOMIC;
	stat->atomic_write_unit_min = min;
	stat->atomic_write_unit_max = max;
	stat->atomic_write_segments_max = 1;
#endif
}

/* Up to 6.4, a splice from a file fills an iterator that allocates its pages during the copy. */
static inline bool sgfs_iter_allocates(const struct iov_iter *to)
{
#if SGFS_KERNEL_AT_LEAST(6, 5)
	return false;
#else
	return iov_iter_is_pipe(to);
#endif
}

/* --- mmap ------------------------------------------------------------------------------------- */

#if !SGFS_KERNEL_AT_LEAST(6, 3)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/*
 * Up to 6.11, S_DAX allows large faults. Since 6.15 it promises struct pages for large entries, and
 * the kernel then accesses these struct pages. Without S_DAX, special mappings have large faults
 * too, unless the system's setting of transparent huge pages is `never`.
 */
#if SGFS_KERNEL_AT_LEAST(6, 15)
#define SGFS_S_DAX		0
#else
#define SGFS_S_DAX		S_DAX
#endif

/* Enter a page as special: the kernel then accesses no struct page, so none needs to exist. */
static inline vm_fault_t sgfs_insert_page(struct vm_area_struct *vma, unsigned long address,
					  unsigned long pfn)
{
#if SGFS_KERNEL_AT_LEAST(6, 17)
	return vmf_insert_mixed(vma, address, pfn);
#else
	return vmf_insert_mixed(vma, address, pfn_to_pfn_t(pfn));
#endif
}

static inline pte_t sgfs_pte_mkwrite(pte_t pte)
{
#if SGFS_KERNEL_AT_LEAST(6, 6)
	return pte_mkwrite_novma(pte);
#else
	return pte_mkwrite(pte);
#endif
}

/*
 * Large entries. Much code of the kernel accesses the struct page of a large entry without a check
 * that it exists: get_user_pages(), MADV_COLD and smaps, for example. Memory without struct pages
 * therefore gets no large entries. Up to 6.11 no memory gets any, because no large entry can be
 * marked as special.
 */
#define SGFS_LARGE_ENTRIES	SGFS_KERNEL_AT_LEAST(6, 12)
static inline vm_fault_t sgfs_insert_huge(struct vm_fault *vmf, unsigned long pfn, bool write)
{
	if (!pfn_valid(pfn))
		return VM_FAULT_FALLBACK;
#if SGFS_KERNEL_AT_LEAST(6, 17)
	return vmf_insert_pfn_pmd(vmf, pfn, write);
#else
	return vmf_insert_pfn_pmd(vmf, pfn_to_pfn_t(pfn), write);
#endif
}

/* The size that a fault requests, and the smallest size. */
#if SGFS_KERNEL_AT_LEAST(6, 6)
typedef unsigned int sgfs_fault_order;
#define SGFS_FAULT_PTE		0
#else
typedef enum page_entry_size sgfs_fault_order;
#define SGFS_FAULT_PTE		PE_SIZE_PTE
#endif

/*
 * Report whether a page of region that no process maps is still held. dax_layout_busy_page()
 * reports the same, but up to 6.14 it examines nothing in this case.
 */
static inline bool sgfs_page_is_pinned(struct page *page)
{
#if SGFS_KERNEL_AT_LEAST(6, 15)
	return folio_ref_count(page_folio(page)) > 0;
#else
	return page_ref_count(page) > 1;
#endif
}

/*
 * Drop the records of the kernel's DAX code about an inode's pages, including the size at which
 * they were mapped. The caller makes sure that no page is held.
 */
static inline void sgfs_dax_forget(struct inode *inode)
{
#if SGFS_KERNEL_AT_LEAST(6, 15)
	dax_delete_mapping_range(inode->i_mapping, 0, LLONG_MAX);
#else
	truncate_inode_pages(inode->i_mapping, 0);
#endif
}

/* Drop these records before the inode is freed. Up to 6.14 truncation does this. */
static inline void sgfs_dax_evict(struct inode *inode)
{
#if SGFS_KERNEL_AT_LEAST(6, 15)
	dax_break_layout_final(inode);
#endif
}

vm_fault_t sgfs_huge_fault_common(struct vm_fault *vmf, unsigned int order);
#if SGFS_KERNEL_AT_LEAST(6, 6)
#define sgfs_huge_fault		sgfs_huge_fault_common
#else
static inline vm_fault_t sgfs_huge_fault(struct vm_fault *vmf, enum page_entry_size size)
{
	return sgfs_huge_fault_common(vmf, size == PE_SIZE_PMD ? PMD_SHIFT - PAGE_SHIFT :
				    size == PE_SIZE_PUD ? PUD_SHIFT - PAGE_SHIFT : 0);
}
#endif

#endif
