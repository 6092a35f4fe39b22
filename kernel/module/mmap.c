// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings: user space sees the volume's own pages, so mmap, read and write agree at any moment.
 *
 * What a page of a file is may change under a mapping in two ways. Pages go away: then
 * invalidate_lock is held exclusively and they are taken out of all mappings first. Holes are
 * filled: who only read there has a page of zeroes, which is taken away afterwards.
 *
 * Entries are special ones, also where there are struct pages: get_user_pages() refuses them. A pin
 * of ours would not keep a page of the volume from being freed by another system.
 */
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "stargatefs.h"
#include "trace.h"

static struct page *zeroes;

int sgfs_mmap_init(void)
{
	zeroes = alloc_page(GFP_KERNEL | __GFP_ZERO);
	return zeroes ? 0 : -ENOMEM;
}

void sgfs_mmap_exit(void)
{
	__free_page(zeroes);
}

void sgfs_unmap(struct inode *inode, loff_t pos, loff_t len, bool cows)
{
	loff_t begin = round_down(pos, PAGE_SIZE);

	if (len > LLONG_MAX - pos)
		unmap_mapping_range(inode->i_mapping, begin, 0, cows);
	else
		unmap_mapping_range(inode->i_mapping, begin, round_up(pos + len, PAGE_SIZE) - begin,
				    cows);
}

static bool beyond_end(struct inode *inode, pgoff_t page)
{
	return page >= DIV_ROUND_UP_ULL(i_size_read(inode), PAGE_SIZE);
}

/* A write fault in a hole. Nobody keeps the page of zeroes. */
static int fill_hole(struct inode *inode, pgoff_t page)
{
	int err = 0;

	filemap_invalidate_lock(inode->i_mapping);
	if (!beyond_end(inode, page))
		err = sg_allocate(sgfs_vol(inode), sgfs_ref(inode), page, 1);
	if (!err)
		sgfs_unmap(inode, (loff_t)page << PAGE_SHIFT, PAGE_SIZE, false);
	sgfs_refresh(inode);
	filemap_invalidate_unlock(inode->i_mapping);
	return err;
}

/*
 * Finds the page, filling a hole if it is to be written. Returns with invalidate_lock held shared,
 * whatever it says.
 */
static int find_page(struct inode *inode, pgoff_t page, bool write, struct sg_run *run)
{
	struct address_space *mapping = inode->i_mapping;
	int err;

	for (;;) {
		filemap_invalidate_lock_shared(mapping);
		if (beyond_end(inode, page))
			return -EFAULT;
		smp_mb();	/* pairs with the one in show_filled() */
		err = sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, 1, run);
		if (err || run->off || !write)
			return err;
		filemap_invalidate_unlock_shared(mapping);
		err = fill_hole(inode, page);
		if (err) {
			filemap_invalidate_lock_shared(mapping);
			return err;
		}
	}
}

static unsigned long pfn_of(const struct inode *inode, u64 off)
{
	return PHYS_PFN(SGFS(inode->i_sb)->mem.phys + off);
}

/*
 * Entries come in read-only first, for whatever access: a shared one is made writable by
 * pfn_mkwrite(), a private one is copied by the kernel, each at the second fault.
 */
static vm_fault_t enter_page(struct inode *inode, struct vm_fault *vmf, bool write)
{
	struct sg_run run;
	vm_fault_t ret;
	int err = find_page(inode, vmf->pgoff, write, &run);

	if (err)
		ret = vmf_error(err);
	else
		ret = sgfs_insert_page(vmf, run.off ? pfn_of(inode, run.off) : page_to_pfn(zeroes));
	filemap_invalidate_unlock_shared(inode->i_mapping);
	return ret;
}

static bool is_shared_write(const struct vm_fault *vmf)
{
	return vmf->flags & FAULT_FLAG_WRITE && vmf->vma->vm_flags & VM_SHARED;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	bool write = is_shared_write(vmf);
	vm_fault_t ret;

	sgfs_add(inode->i_sb, SGFS_FAULTS, 1);
	if (write)
		sb_start_pagefault(inode->i_sb);
	ret = enter_page(inode, vmf, write);
	if (write)
		sb_end_pagefault(inode->i_sb);
	trace_sgfs_fault(inode, vmf->pgoff, vmf->flags, ret);
	return ret;
}

/* A shared, readable entry is about to become writable: not while it shows a page of zeroes. */
static vm_fault_t pfn_mkwrite(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct sg_run run;
	int err;

	sb_start_pagefault(inode->i_sb);
	file_update_time(vmf->vma->vm_file);
	/* If this fills a hole, the entry is gone, and the kernel notices and comes back. */
	err = find_page(inode, vmf->pgoff, true, &run);
	if (!err)
		err = sgfs_written_mark(inode, vmf->pgoff, 1);
	filemap_invalidate_unlock_shared(inode->i_mapping);
	sb_end_pagefault(inode->i_sb);
	return err ? vmf_error(err) : 0;
}

/* --- 2 MiB ------------------------------------------------------------------------------------ */

#define HUGE_PAGES	(PMD_SIZE / PAGE_SIZE)

/* The first page of the 2 MiB in which the fault is, if all of them lie in the mapping, aligned. */
static bool huge_place(const struct vm_fault *vmf, pgoff_t *page)
{
	unsigned long start = vmf->address & PMD_MASK;

	*page = vmf->pgoff - ((vmf->address - start) >> PAGE_SHIFT);
	return start >= vmf->vma->vm_start && start + PMD_SIZE <= vmf->vma->vm_end &&
	       IS_ALIGNED(*page, HUGE_PAGES);
}

static vm_fault_t enter_huge(struct inode *inode, struct vm_fault *vmf, pgoff_t page, bool write)
{
	pmd_t pmd = READ_ONCE(*vmf->pmd);
	struct sg_run run;
	unsigned long pfn;

	if (beyond_end(inode, page + HUGE_PAGES - 1))
		return VM_FAULT_FALLBACK;
	smp_mb();	/* as in find_page() */
	if (sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, HUGE_PAGES, &run))
		return VM_FAULT_FALLBACK;
	pfn = pfn_of(inode, run.off);
	if (!run.off || run.pages < HUGE_PAGES || !IS_ALIGNED(pfn, HUGE_PAGES))
		return VM_FAULT_FALLBACK;
	if (!pmd_none(pmd) && !pmd_leaf(pmd))
		return 0;	/* small pages have been entered meanwhile: look again */
	if (write && sgfs_written_mark(inode, page, HUGE_PAGES))
		return VM_FAULT_OOM;
	return sgfs_insert_huge(vmf, pfn, write);
}

vm_fault_t sgfs_huge_fault_common(struct vm_fault *vmf, unsigned int order)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	vm_fault_t ret;
	pgoff_t page;

	if (order != PMD_SHIFT - PAGE_SHIFT || !huge_place(vmf, &page))
		return VM_FAULT_FALLBACK;
	if (write && !(vmf->vma->vm_flags & VM_SHARED))
		return VM_FAULT_FALLBACK;	/* copies are made page by page */
	if (write) {
		sb_start_pagefault(inode->i_sb);
		file_update_time(vmf->vma->vm_file);
	}
	filemap_invalidate_lock_shared(inode->i_mapping);
	ret = enter_huge(inode, vmf, page, write);
	filemap_invalidate_unlock_shared(inode->i_mapping);
	if (write)
		sb_end_pagefault(inode->i_sb);
	if (ret != VM_FAULT_FALLBACK) {
		sgfs_add(inode->i_sb, SGFS_HUGE_FAULTS, 1);
		trace_sgfs_fault(inode, page, vmf->flags, ret);
	}
	return ret;
}

/* --- access by debuggers ---------------------------------------------------------------------- */

static int access_page(struct inode *inode, u64 pos, void *buf, int len, int write)
{
	struct sg_run run;
	int err = find_page(inode, pos >> PAGE_SHIFT, write, &run);
	void *p;

	if (!err && write)
		err = sgfs_written_mark(inode, pos >> PAGE_SHIFT, 1);
	if (!err) {
		p = sgfs_vol(inode)->base + run.off + offset_in_page(pos);
		if (write)
			memcpy(p, buf, len);
		else if (!run.off)
			memset(buf, 0, len);
		else if (copy_mc_to_kernel(buf, p, len))
			err = -EFAULT;
	}
	filemap_invalidate_unlock_shared(inode->i_mapping);
	return err;
}

/* For what get_user_pages() refuses: pages of the file, not yet copied by a private mapping. */
static int access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, int write)
{
	struct inode *inode = file_inode(vma->vm_file);
	u64 pos = ((u64)vma->vm_pgoff << PAGE_SHIFT) + addr - vma->vm_start;
	int done = 0, n;

	if (write && !(vma->vm_flags & VM_SHARED))
		return -EFAULT;
	if (write)
		sb_start_pagefault(inode->i_sb);
	for (; done < len; done += n) {
		n = min_t(int, len - done, PAGE_SIZE - offset_in_page(pos + done));
		if (access_page(inode, pos + done, buf + done, n, write))
			break;
	}
	if (write)
		sb_end_pagefault(inode->i_sb);
	return done ?: -EFAULT;
}

static const struct vm_operations_struct vm_operations = {
	.fault		= fault,
	.huge_fault	= sgfs_huge_fault,
	.pfn_mkwrite	= pfn_mkwrite,
	.access		= access,
};

int sgfs_mmap(struct file *file, struct vm_area_struct *vma)
{
	file_accessed(file);
	vma->vm_ops = &vm_operations;
	vm_flags_set(vma, VM_MIXEDMAP | VM_HUGEPAGE);
	return 0;
}
