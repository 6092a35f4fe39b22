/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that mmap.c and mmap_access.c share. */
#ifndef SGFS_MMAP_PRIV_H
#define SGFS_MMAP_PRIV_H

#include <linux/mm.h>

#include "stargatefs.h"

/*
 * Begin and end the part of a fault that enters the pages that it has found. invalidate_lock is
 * held, and excludes changes by this system. Quiesce waits for the end of the fault before it
 * acknowledges changes by other systems. So code in between may neither wait for the volume, nor
 * reclaim memory by evicting inodes of this file system.
 */
struct sgfs_entering {
	int srcu;
	unsigned int nofs;
	struct sgfs_layout layout;
};
struct sgfs_entering sgfs_begin_entering(struct inode *inode);
void sgfs_end_entering(struct inode *inode, struct sgfs_entering e);

/* Find the extent at the page, up to @want pages; for stores if @write. */
int sgfs_mmap_look(struct inode *inode, pgoff_t page, u64 want, bool write, struct sg_run *run);

/*
 * Call @act with the entry of @address in the table at @pmd, if there is a table, with its lock
 * held. Return the result of @act, or @none.
 *
 * A table that is removed meanwhile is freed after a grace period. With its lock held, a check
 * shows that it is no longer at its place (as in the kernel's pte_offset_map_lock(), which is not
 * exported).
 */
static __always_inline int sgfs_at_entry(struct mm_struct *mm, const pmd_t *pmd,
					 unsigned long address,
					 int (*act)(pte_t *pte, void *arg), void *arg, int none)
{
	spinlock_t *lock;
	int ret = none;
	pmd_t table;

	rcu_read_lock();
	table = READ_ONCE(*pmd);
	if (likely(pmd_present(table) && !pmd_leaf(table))) {
		lock = pte_lockptr(mm, &table);
		spin_lock(lock);
		if (likely(pmd_same(table, READ_ONCE(*pmd))))
			ret = act(pte_offset_kernel(&table, address), arg);
		spin_unlock(lock);
	}
	rcu_read_unlock();
	return ret;
}

/* mmap_access.c: vm_ops->access() */
int sgfs_mmap_access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, int write);

#endif
