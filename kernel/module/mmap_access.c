// SPDX-License-Identifier: GPL-2.0
/*
 * Access to a process's mappings by other processes: debuggers, and /proc/PID/mem. get_user_pages()
 * refuses these mappings, so the kernel calls these functions instead.
 */
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "mmap_priv.h"

/*
 * Not only debuggers use this path. A process that reads another one's arguments in /proc uses it,
 * too, and no mapping may delay that. So this code waits for nothing, and fills no hole.
 */
static int sgfs_access_page(struct inode *inode, u64 pos, void *buf, int len, int write)
{
	struct sg_run run = {};
	struct sgfs_entering e;
	void *p;
	int err;

	if (sg_is_replacing(sgfs_vol(inode), sgfs_ref(inode)) ||
	    !filemap_invalidate_trylock_shared(inode->i_mapping))
		return -EAGAIN;
	e = sgfs_begin_entering(inode);
	err = sgfs_mmap_look(inode, pos >> PAGE_SHIFT, 1, write, &run);
	if (!err && write && !run.off)
		err = -EAGAIN;
	if (!err && write)
		err = sgfs_written_mark(inode, pos >> PAGE_SHIFT, 1, &e.layout);
	if (!err) {
		p = sgfs_vol(inode)->base + run.off + offset_in_page(pos);
		if (write)
			memcpy(p, buf, len);
		else if (!run.off)
			memset(buf, 0, len);
		else if (copy_mc_to_kernel(buf, p, len))
			err = -EIO;
	}
	sgfs_end_entering(inode, e);
	if (err == -EIO && !write && run.off)	/* this waits for faults that make an entry */
		sgfs_poison_met(SGFS(inode->i_sb), run.off + offset_in_page(pos), len);
	return err;
}

/**
 * struct sgfs_own - an access to a process's own copy of a page
 * @buf, @len, @offset: within the page; @write: store
 */
struct sgfs_own {
	void *buf;
	int len, offset, write;
};

#define COPY_TURNS	8	/* for a page that is paged out again immediately */

/*
 * Access the process's own copy of the page. 0: there is no copy, so the process sees the file's
 * page. 1: done. -EAGAIN: the copy is not in memory. -EFAULT: the process itself would need a fault
 * to store.
 */
static int sgfs_access_own(pte_t *pte, void *arg)
{
	const struct sgfs_own *own = arg;
	pte_t entry = ptep_get(pte);
	char *page;

	if (pte_none(entry) || (pte_present(entry) && pte_special(entry)))
		return own->write ? -EFAULT : 0;
	if (!pte_present(entry))
		return -EAGAIN;
	page = page_address(pte_page(entry));
	if (!own->write)
		return copy_mc_to_kernel(own->buf, page + own->offset, own->len) ? -EIO : 1;
	if (!pte_write(entry))
		return -EFAULT;
	memcpy(page + own->offset, own->buf, own->len);
	set_pte(pte, pte_mkdirty(pte_mkyoung(entry)));
	return 1;
}

/* mmap_lock is held, so page tables of the mapping's part of the address space remain. */
static pmd_t *sgfs_place_at(struct mm_struct *mm, unsigned long address)
{
	pgd_t *pgd = pgd_offset(mm, address);
	p4d_t *p4d = pgd_present(*pgd) ? p4d_offset(pgd, address) : NULL;
	pud_t *pud = p4d && p4d_present(*p4d) ? pud_offset(p4d, address) : NULL;

	return pud && pud_present(*pud) && !pud_leaf(*pud) ? pmd_offset(pud, address) : NULL;
}

/*
 * Access a private mapping, for which get_user_pages() refuses even existing copies. Wait only for
 * a copy that was paged out. Make no copy here: for a special entry, the kernel would copy from the
 * address space of the running task. Return 0, 1, or an error.
 */
static int sgfs_access_copy(struct vm_area_struct *vma, unsigned long address, void *buf, int len,
			    int write)
{
	struct sgfs_own own = {
		.buf = buf, .len = len, .offset = offset_in_page(address), .write = write,
	};
	const int none = write ? -EFAULT : 0;
	int ret = -EAGAIN, err = 0;
	unsigned int turn;

	for (turn = 0; turn < COPY_TURNS && ret == -EAGAIN && !err; turn++) {
		pmd_t *pmd = sgfs_place_at(vma->vm_mm, address);

		ret = pmd ? sgfs_at_entry(vma->vm_mm, pmd, address, sgfs_access_own, &own, none) :
			    none;
		if (ret == -EAGAIN)
			err = fixup_user_fault(vma->vm_mm, address, 0, NULL);
	}
	return err ?: ret;
}

static int sgfs_access_piece(struct vm_area_struct *vma, unsigned long address, void *buf, int len,
			     int write)
{
	u64 pos = ((u64)vma->vm_pgoff << PAGE_SHIFT) + address - vma->vm_start;
	int ret = vma->vm_flags & VM_SHARED ? 0 :
		  sgfs_access_copy(vma, address, buf, len, write);

	if (ret)
		return min(ret, 0);
	return sgfs_access_page(file_inode(vma->vm_file), pos, buf, len, write);
}

/*
 * Access a mapping for another process. The kernel passes the complete range that the caller wants,
 * also beyond the end of the mapping. A forced store into memory that the process itself may not
 * write fails.
 */
int sgfs_mmap_access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, int write)
{
	struct super_block *sb = file_inode(vma->vm_file)->i_sb;
	bool stores = write && vma->vm_flags & VM_SHARED;
	int done = 0, n;

	if (write && !(vma->vm_flags & VM_WRITE))
		return -EFAULT;
	len = min_t(unsigned long, len, vma->vm_end - addr);
	if (stores)
		sb_start_pagefault(sb);
	for (; done < len; done += n) {
		n = min_t(int, len - done, PAGE_SIZE - offset_in_page(addr + done));
		if (sgfs_access_piece(vma, addr + done, buf + done, n, write))
			break;
	}
	if (stores)
		sb_end_pagefault(sb);
	return done ?: -EFAULT;
}
