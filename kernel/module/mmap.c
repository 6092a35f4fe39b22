// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings: user space sees the volume's own pages, so mmap, read and write always agree.
 *
 * The page at a place in a file may change under a mapping in two ways. First, pages are cut off:
 * the task holds invalidate_lock exclusively, and removes them from all mappings before that.
 * Second, holes are filled: a process that only read a hole maps a page of zeroes, which is removed
 * afterwards.
 *
 * Entries are special, also where struct pages exist, so get_user_pages() refuses them. It also
 * refuses the whole mapping (VM_IO), because it does not know large special entries. A pin of this
 * system would not keep another system from freeing a page of the volume.
 */
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "mmap_priv.h"
#include "trace.h"

/*
 * A fault also enters the pages around it, within this many bytes, because that costs less than a
 * fault for each page.
 */
#define AROUND		(16 * PAGE_SIZE)

#define HUGE_PAGES	(PMD_SIZE / PAGE_SIZE)
#define HUGE_ORDER	(PMD_SHIFT - PAGE_SHIFT)

/*
 * At one place of a page table an entry of 2 MiB and a table for small entries exclude each other.
 * The kernel warns if another entry was made meanwhile at the place of a large entry. The kernel's
 * own lock cannot be held from the check of a place until the entry is made. So a fault holds this
 * lock when it makes a large entry, or any entry at an empty place. A place shows one file, so each
 * mount has its own locks. A process may hold such a lock for long if its cgroup is out of memory.
 */
static struct mutex *sgfs_mmap_place_of(const struct vm_fault *vmf)
{
	struct sgfs *fs = SGFS(file_inode(vmf->vma->vm_file)->i_sb);

	return &fs->places[hash_ptr(vmf->pmd, SGFS_PLACE_BITS)];
}

/* Zero pages for holes: one of 4 KiB, and one of 2 MiB, made at its first use. */
static struct page *zeroes, *huge_zeroes;

void sgfs_mmap_prepare(struct sgfs *fs)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fs->places); i++)
		mutex_init(&fs->places[i]);
}

int sgfs_mmap_init(void)
{
	zeroes = alloc_page(GFP_KERNEL | __GFP_ZERO);
	return zeroes ? 0 : -ENOMEM;
}

void sgfs_mmap_exit(void)
{
	if (huge_zeroes)
		__free_pages(huge_zeroes, HUGE_ORDER);
	__free_page(zeroes);
}

/* Return the 2 MiB of zeroes. NULL: there is no memory for them, or none without waiting. */
static struct page *sgfs_find_huge_zeroes(void)
{
	struct page *new, *there = smp_load_acquire(&huge_zeroes);

	if (there)
		return there;
	new = alloc_pages(GFP_NOWAIT | __GFP_ZERO | __GFP_COMP | __GFP_NOWARN, HUGE_ORDER);
	if (!new)
		return NULL;
	there = cmpxchg(&huge_zeroes, NULL, new);
	if (!there)
		return new;
	__free_pages(new, HUGE_ORDER);
	return there;
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

/* --- pages ------------------------------------------------------------------------------------ */

/* Read the size from the volume, because the size in the VFS inode may be old. */
static bool sgfs_beyond_end(struct inode *inode, pgoff_t page)
{
	return page >= DIV_ROUND_UP_ULL(READ_ONCE(sgfs_record(inode)->size), PAGE_SIZE);
}

/* No process has a sealed file mapped writably, unless a hostile system has set the flag. */
static bool sgfs_is_sealed_now(struct inode *inode)
{
	return sg_is_sealed(sgfs_vol(inode), sgfs_ref(inode));
}

/*
 * Handle a write fault in a hole. No process keeps the page of zeroes. -EINTR: the hole could not
 * be filled within SGFS_BRIEF_NS. -EBUSY, if @brief: invalidate_lock is taken, and its holder may
 * have much to do.
 */
static int sgfs_try_to_fill(struct inode *inode, pgoff_t page, bool brief, u64 *room_in)
{
	struct rw_semaphore *lock = &inode->i_mapping->invalidate_lock;
	struct sgfs_waiting w;
	int err = 0;

	if (!down_write_trylock(lock)) {
		if (brief)
			return -EBUSY;
		if (down_write_killable(lock))
			return -EINTR;
	}
	/* done in any case, because a repeated fault must not spin */
	sgfs_begin_waiting(SGFS(inode->i_sb), &w, SGFS_BRIEF_NS);
	if (!sgfs_beyond_end(inode, page))
		err = sg_allocate(sgfs_vol(inode), sgfs_ref(inode), page, 1);
	sgfs_end_waiting(&w);
	*room_in = w.room_in;
	if (!err)
		sgfs_unmap(inode, (loff_t)page << PAGE_SHIFT, PAGE_SIZE, false);
	filemap_invalidate_unlock(inode->i_mapping);
	sgfs_refresh(inode);	/* it may wait for another system */
	if (!err)
		sg_wait_mappers(sgfs_vol(inode), sgfs_ref(inode), true);
	return err;
}

/*
 * A brief attempt has no time to wait for other systems that can free pages. After -ENOSPC, the
 * caller decides whether it waits.
 */
static bool sgfs_found_no_room(const struct inode *inode, bool brief, u64 room_in)
{
	return brief && room_in == SG_ROOM_OTHERS &&
	       READ_ONCE(inode->i_sb->s_writers.frozen) < SB_FREEZE_PAGEFAULT;
}

static int sgfs_fill_hole(struct inode *inode, pgoff_t page, bool brief)
{
	struct sgfs_attempts a = {};
	u64 room_in = 0;
	int err;

	do {
		err = sgfs_try_to_fill(inode, page, brief, &room_in);
		if (err != -EINTR)
			break;
		if (sgfs_found_no_room(inode, brief, room_in))
			return -ENOSPC;
		err = sgfs_wait_outside(inode, &a, room_in);
	} while (!err);
	return err;
}

struct sgfs_entering sgfs_begin_entering(struct inode *inode)
	__acquires(&SGFS(inode->i_sb)->faults)
{
	struct sgfs_entering e;

	e.nofs = memalloc_nofs_save();
	e.srcu = srcu_read_lock(&SGFS(inode->i_sb)->faults);
	e.layout = sgfs_layout_of(inode);
	return e;
}

void sgfs_end_entering(struct inode *inode, struct sgfs_entering e)
	__releases(&SGFS(inode->i_sb)->faults)
{
	srcu_read_unlock(&SGFS(inode->i_sb)->faults, e.srcu);
	memalloc_nofs_restore(e.nofs);
	filemap_invalidate_unlock_shared(inode->i_mapping);
}

/*
 * Declare that this system shows holes: a system that later fills one waits until this system no
 * longer shows it. The hole may have been filled meanwhile, even if another thread has already
 * stored this. So check the table again.
 */
static int sgfs_look_at_hole(struct inode *inode, pgoff_t page, u64 want, struct sg_run *run)
{
	struct sgfs_inode *si = SGFS_I(inode);

	spin_lock(&inode->i_lock);
	if (!si->holer) {
		si->hole_seq = READ_ONCE(sgfs_record(inode)->seq);
		sg_set_mapper(sgfs_vol(inode), sgfs_ref(inode), true, true);
		si->holer = true;
	}
	spin_unlock(&inode->i_lock);
	return sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, want, run);
}

int sgfs_mmap_look(struct inode *inode, pgoff_t page, u64 want, bool write, struct sg_run *run)
{
	int err;

	if (!sgfs_alive(inode->i_sb) || sgfs_is_lost(inode))
		return -EIO;
	if (write && READ_ONCE(sgfs_vol(inode)->read_only))
		/* damage was found, and a freeze removes entries that allow stores */
		return -EROFS;
	if (sgfs_beyond_end(inode, page) || (write && sgfs_is_sealed_now(inode)))
		return -EFAULT;
	smp_mb();	/* pairs with the one in show_filled() */
	err = sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, want, run);
	if (!err && !run->off)
		err = sgfs_look_at_hole(inode, page, want, run);
	return err;
}

static unsigned long sgfs_pfn_of(const struct inode *inode, u64 off)
{
	return PHYS_PFN(SGFS(inode->i_sb)->mem.phys + off);
}

/*
 * Return the result of a fault that failed with @err. If this system is not fenced, EIO means bad
 * pages, so the process gets the signal for bad memory.
 */
static vm_fault_t sgfs_fault_error(struct inode *inode, int err)
{
	return err == -EIO && sgfs_alive(inode->i_sb) ? VM_FAULT_HWPOISON : vmf_error(err);
}

/*
 * Count the pages, from the faulting page on, that may be entered with it: pages of its
 * neighbourhood and its mapping.
 */
static u64 sgfs_neighbours(const struct vm_fault *vmf)
{
	unsigned long end = min(round_down(vmf->address, AROUND) + AROUND, vmf->vma->vm_end);

	return (end - vmf->address) >> PAGE_SHIFT;
}

/* Return the frame that shows page @i of a run, which may be a hole. */
static unsigned long sgfs_shown_by(const struct inode *inode, const struct sg_run *run, u64 i)
{
	return run->off ? sgfs_pfn_of(inode, run->off) + i : page_to_pfn(zeroes);
}

/*
 * Enter the pages after the faulting page, up to the end of the file. A failure to enter them is no
 * error.
 */
static void sgfs_enter_neighbours(struct inode *inode, const struct vm_fault *vmf,
				  const struct sg_run *run)
{
	u64 n = run->pages, i;

	while (n > 1 && sgfs_beyond_end(inode, vmf->pgoff + n - 1))
		n--;
	for (i = 1; i < n; i++)
		if (sgfs_insert_page(vmf->vma, vmf->address + i * PAGE_SIZE,
				     sgfs_shown_by(inode, run, i)) != VM_FAULT_NOPAGE)
			break;
}

static vm_fault_t sgfs_insert_small(struct inode *inode, struct vm_fault *vmf,
				    const struct sg_run *run)
{
	vm_fault_t ret = sgfs_insert_page(vmf->vma, vmf->address, sgfs_shown_by(inode, run, 0));

	if (ret == VM_FAULT_NOPAGE)
		sgfs_enter_neighbours(inode, vmf, run);
	return ret;
}

/*
 * Enter small pages. A place for 2 MiB belongs to small pages once it has a table for them. With
 * CONFIG_PT_RECLAIM, MADV_DONTNEED frees an empty table under mmap_lock, which faults also hold in
 * shared mode. So a table that exists now may be freed immediately after this check.
 */
static vm_fault_t sgfs_insert_pages(struct inode *inode, struct vm_fault *vmf,
				    const struct sg_run *run)
{
	struct mutex *place = sgfs_mmap_place_of(vmf);
	vm_fault_t ret;

	if (!SGFS_LARGE_ENTRIES ||
	    (!IS_ENABLED(CONFIG_PT_RECLAIM) && !pmd_none(READ_ONCE(*vmf->pmd))))
		return sgfs_insert_small(inode, vmf, run);
	if (mutex_lock_killable(place))
		return VM_FAULT_SIGBUS;		/* the process is about to die */
	ret = sgfs_insert_small(inode, vmf, run);
	mutex_unlock(place);
	return ret;
}

static bool sgfs_is_shared_write(const struct vm_fault *vmf)
{
	return vmf->flags & FAULT_FLAG_WRITE && vmf->vma->vm_flags & VM_SHARED;
}

static bool sgfs_can_come_again(const struct vm_fault *vmf)
{
	return vmf->flags & FAULT_FLAG_ALLOW_RETRY;
}

static bool sgfs_may_let_go(const struct vm_fault *vmf)
{
	return sgfs_can_come_again(vmf) && !(vmf->flags & FAULT_FLAG_RETRY_NOWAIT);
}

/*
 * Without mmap_lock a fault cannot report why the hole was not filled. So only the first attempt
 * drops the lock.
 */
static bool sgfs_lets_go(const struct vm_fault *vmf)
{
	return sgfs_may_let_go(vmf) && !(vmf->flags & FAULT_FLAG_TRIED);
}

/*
 * Release mmap_lock or the lock of the mapping, as filemap_fault() does to read a page; the fault
 * is then repeated. @vmf still exists after that, but its mapping may not.
 */
static struct file *sgfs_mmap_let_go(const struct vm_fault *vmf)
{
	struct file *kept = get_file(vmf->vma->vm_file);

	sgfs_release_fault_lock(vmf);
	return kept;
}

/*
 * Wait for a system that is replacing pages, and may have begun before it could see that this
 * system maps the file. It holds the inode's lock until the pages are replaced. The first wait is
 * without mmap_lock, and then the fault is retried. The second wait is brief. It returns 0 if the
 * lock was free, because then no system replaces pages. Otherwise the fault is repeated.
 */
static vm_fault_t sgfs_await_replaced(struct inode *inode, const struct vm_fault *vmf,
				      struct file **kept)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_waiting w;
	int err;

	if (sgfs_can_come_again(vmf) && vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	if (sgfs_lets_go(vmf))
		*kept = sgfs_mmap_let_go(vmf);
	sgfs_begin_waiting(fs, &w, *kept ? SGFS_ANY_NS : sgfs_brief_ns(fs));
	err = sg_wait_replaced(&fs->vol, sgfs_ref(inode));
	sgfs_end_waiting(&w);
	if (*kept)
		return VM_FAULT_RETRY;
	return err ? VM_FAULT_NOPAGE : 0;
}

/*
 * Take invalidate_lock. Its holder waits only briefly for other systems, but may have much to do.
 * So the first wait is without mmap_lock, and then the fault is retried. A second attempt queues
 * with mmap_lock held, so that consecutive truncations cannot keep it out. The few faults that
 * cannot be retried (futexes of the kernel) queue, too.
 */
static vm_fault_t sgfs_lock_pages(struct inode *inode, const struct vm_fault *vmf,
				  struct file **kept)
{
	struct address_space *mapping = inode->i_mapping;
	vm_fault_t ret;

	if (unlikely(sg_is_replacing(sgfs_vol(inode), sgfs_ref(inode)))) {
		ret = sgfs_await_replaced(inode, vmf, kept);
		if (ret)
			return ret;
	}
	if (likely(filemap_invalidate_trylock_shared(mapping)))
		return 0;
	if (sgfs_can_come_again(vmf) && vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	if (!sgfs_may_let_go(vmf) || vmf->flags & FAULT_FLAG_TRIED)
		return down_read_killable(&mapping->invalidate_lock) ? VM_FAULT_SIGBUS : 0;
	*kept = sgfs_mmap_let_go(vmf);
	if (!down_read_killable(&mapping->invalidate_lock))
		filemap_invalidate_unlock_shared(mapping);
	return VM_FAULT_RETRY;
}

/*
 * Handle a fault for a small page. Entries are read-only at first, for any access. At the second
 * fault, sgfs_pfn_mkwrite() makes a shared entry writable, and the kernel copies a private one. So
 * entries of neighbouring pages may exist before any access to them.
 */
static vm_fault_t sgfs_enter_page(struct inode *inode, struct vm_fault *vmf, bool write, bool *hole,
				  struct file **kept)
{
	vm_fault_t ret = sgfs_lock_pages(inode, vmf, kept);
	struct sgfs_entering e;
	struct sg_run run;
	int err;

	*hole = false;
	if (ret)
		return ret;
	e = sgfs_begin_entering(inode);
	err = sgfs_mmap_look(inode, vmf->pgoff, sgfs_neighbours(vmf), write, &run);
	*hole = !err && write && !run.off;
	if (err)
		ret = sgfs_fault_error(inode, err);
	else if (!*hole)
		ret = sgfs_insert_pages(inode, vmf, &run);
	if (ret == VM_FAULT_OOM && pmd_leaf(READ_ONCE(*vmf->pmd)))
		ret = VM_FAULT_NOPAGE;	/* a large page was entered meanwhile: check again */
	sgfs_end_entering(inode, e);
	return ret;
}

static int sgfs_mmap_fill(struct inode *inode, pgoff_t page, bool brief)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_waiting w;
	int err;

	sgfs_begin_waiting(fs, &w, brief ? sgfs_brief_ns(fs) : SGFS_ANY_NS);
	err = sgfs_fill_hole(inode, page, brief);
	sgfs_end_waiting(&w);
	return err;
}

/*
 * Handle a fault that has given way with mmap_lock held. A fault from within the kernel is repeated
 * immediately, and would keep the lock. So the lock is released before the wait for the other
 * system.
 */
static vm_fault_t sgfs_come_again(struct inode *inode, const struct vm_fault *vmf,
				  struct file **kept)
{
	if (!sgfs_may_let_go(vmf))
		return vmf->flags & FAULT_FLAG_RETRY_NOWAIT ? VM_FAULT_RETRY : VM_FAULT_NOPAGE;
	*kept = sgfs_mmap_let_go(vmf);
	sgfs_mmap_fill(inode, vmf->pgoff, false);
	return VM_FAULT_RETRY;
}

static vm_fault_t sgfs_mmap_fault(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	bool write = sgfs_is_shared_write(vmf), hole = true, brief;
	struct file *kept = NULL;
	vm_fault_t ret = 0;
	int err;

	sgfs_add(inode->i_sb, SGFS_FAULTS, 1);
	if (write)
		sb_start_pagefault(inode->i_sb);
	while (!ret && hole) {
		ret = sgfs_enter_page(inode, vmf, write, &hole, &kept);
		if (!hole)
			break;
		if (sgfs_lets_go(vmf))
			kept = sgfs_mmap_let_go(vmf);
		brief = !kept && sgfs_can_come_again(vmf);
		err = sgfs_mmap_fill(inode, vmf->pgoff, brief);
		/* with mmap_lock: without it, the fault could not report that no page came free */
		if (err == -ENOSPC && brief && sgfs_may_let_go(vmf))
			err = sgfs_mmap_fill(inode, vmf->pgoff, false);
		if (kept)
			ret = VM_FAULT_RETRY;
		else if (err == -EBUSY || (err == -EINTR && !fatal_signal_pending(current)))
			ret = sgfs_come_again(inode, vmf, &kept);
		else if (err == -ENOSPC && vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
			ret = VM_FAULT_RETRY;	/* the caller repeats it, and may then wait */
		else if (err)
			ret = sgfs_fault_error(inode, err);
	}
	if (write)
		sb_end_pagefault(inode->i_sb);
	trace_sgfs_fault(inode, vmf->pgoff, vmf->flags, ret);
	if (kept)
		fput(kept);
	return ret;
}

static int sgfs_make_entry_writable(pte_t *pte, void *arg)
{
	const struct vm_fault *vmf = arg;

	if (likely(pte_same(ptep_get(pte), vmf->orig_pte)))
		set_pte(pte, sgfs_pte_mkwrite(pte_mkdirty(pte_mkyoung(vmf->orig_pte))));
	return 0;
}

/*
 * Make the entry of the fault writable if it has not changed since the fault; otherwise the fault
 * is retried. The kernel must not do this after the return. After sb_end_pagefault() a freeze could
 * remove all entries, and a read by another thread could make an equal entry. If that entry became
 * writable, it would allow stores to frozen data, and no mark would name the page.
 */
static void sgfs_mmap_make_writable(struct vm_fault *vmf)
{
	sgfs_at_entry(vmf->vma->vm_mm, vmf->pmd, vmf->address, sgfs_make_entry_writable, vmf, 0);
}

/*
 * Called before a shared, readable entry becomes writable. If it shows a page of zeroes, or a page
 * that the file has lost, remove it, and let the kernel retry.
 */
static vm_fault_t sgfs_pfn_mkwrite(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct file *kept = NULL;
	struct sgfs_entering e;
	struct sg_run run;
	vm_fault_t ret;
	int err;

	sb_start_pagefault(inode->i_sb);
	sgfs_note_store(vmf->vma->vm_file);
	ret = sgfs_lock_pages(inode, vmf, &kept);
	if (ret) {
		sb_end_pagefault(inode->i_sb);
		if (kept)
			fput(kept);
		return ret | VM_FAULT_NOPAGE;	/* the kernel must not use the entry any more */
	}
	e = sgfs_begin_entering(inode);
	err = sgfs_mmap_look(inode, vmf->pgoff, 1, true, &run);
	if (!err && run.off)
		err = sgfs_written_mark(inode, vmf->pgoff, 1, &e.layout);
	if (!err && run.off && pte_pfn(vmf->orig_pte) == sgfs_pfn_of(inode, run.off))
		sgfs_mmap_make_writable(vmf);
	else if (!err)
		sgfs_unmap(inode, (loff_t)vmf->pgoff << PAGE_SHIFT, PAGE_SIZE, false);
	sgfs_end_entering(inode, e);
	sb_end_pagefault(inode->i_sb);
	return err ? sgfs_fault_error(inode, err) : VM_FAULT_NOPAGE;
}

/* --- 2 MiB ------------------------------------------------------------------------------------ */

/*
 * Return the first page of the aligned 2 MiB around the fault, if all of them are in the mapping.
 */
static bool sgfs_huge_place(const struct vm_fault *vmf, pgoff_t *page)
{
	unsigned long start = vmf->address & PMD_MASK;

	*page = vmf->pgoff - ((vmf->address - start) >> PAGE_SHIFT);
	return start >= vmf->vma->vm_start && start + PMD_SIZE <= vmf->vma->vm_end &&
	       IS_ALIGNED(*page, HUGE_PAGES);
}

/* Find 2 MiB of the file, or of a hole that is read, that can be mapped at @page; false: none. */
static bool sgfs_find_huge(struct inode *inode, pgoff_t page, bool write, unsigned long *pfn)
{
	struct page *none;
	struct sg_run run;

	if (!sgfs_alive(inode->i_sb) || sgfs_is_lost(inode) ||
	    (write && (READ_ONCE(sgfs_vol(inode)->read_only) || sgfs_is_sealed_now(inode))) ||
	    sgfs_beyond_end(inode, page + HUGE_PAGES - 1))
		return false;
	smp_mb();	/* as in sgfs_mmap_look() */
	if (sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, HUGE_PAGES, &run) ||
	    run.pages < HUGE_PAGES)
		return false;
	if (run.off) {
		*pfn = sgfs_pfn_of(inode, run.off);
		return IS_ALIGNED(*pfn, HUGE_PAGES);
	}
	none = write ? NULL : sgfs_find_huge_zeroes();
	if (!none || sgfs_look_at_hole(inode, page, HUGE_PAGES, &run) || run.off ||
	    run.pages < HUGE_PAGES)
		return false;
	*pfn = page_to_pfn(none);
	return true;
}

/*
 * This task holds the lock of the place: no other task makes an entry there, but entries may be
 * removed.
 */
static vm_fault_t sgfs_mmap_insert_huge(struct inode *inode, struct vm_fault *vmf, pgoff_t page,
					unsigned long pfn, const struct sgfs_layout *seen)
{
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	pmd_t pmd = READ_ONCE(*vmf->pmd);

	if (!pmd_none(pmd) && !pmd_leaf(pmd))
		return 0;	/* small pages were entered meanwhile: check again */
	if (!pmd_none(pmd) && pmd_pfn(pmd) != pfn) {
		/* Another system has put other pages there, so remove this entry, then check again.
		 * */
		sgfs_unmap(inode, (loff_t)page << PAGE_SHIFT, PMD_SIZE, false);
		return 0;
	}
	if (write && sgfs_written_mark(inode, page, HUGE_PAGES, seen))
		return VM_FAULT_OOM;
	return sgfs_insert_huge(vmf, pfn, write);
}

static vm_fault_t sgfs_enter_huge(struct inode *inode, struct vm_fault *vmf, pgoff_t page,
				  const struct sgfs_layout *seen)
{
	struct mutex *place = sgfs_mmap_place_of(vmf);
	unsigned long pfn;
	vm_fault_t ret;

	if (!sgfs_find_huge(inode, page, vmf->flags & FAULT_FLAG_WRITE, &pfn))
		return VM_FAULT_FALLBACK;
	if (mutex_lock_killable(place))
		return VM_FAULT_SIGBUS;
	ret = sgfs_mmap_insert_huge(inode, vmf, page, pfn, seen);
	mutex_unlock(place);
	return ret;
}

vm_fault_t sgfs_huge_fault_common(struct vm_fault *vmf, unsigned int order)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	struct file *kept = NULL;
	struct sgfs_entering e;
	vm_fault_t ret;
	pgoff_t page;

	if (!SGFS_LARGE_ENTRIES || order != HUGE_ORDER || !sgfs_huge_place(vmf, &page))
		return VM_FAULT_FALLBACK;
	if (!(vmf->vma->vm_flags & VM_SHARED))
		return VM_FAULT_FALLBACK;	/* the kernel copies page by page */
	if (write) {
		sb_start_pagefault(inode->i_sb);
		sgfs_note_store(vmf->vma->vm_file);
	}
	ret = sgfs_lock_pages(inode, vmf, &kept);
	if (!ret) {
		e = sgfs_begin_entering(inode);
		ret = sgfs_enter_huge(inode, vmf, page, &e.layout);
		sgfs_end_entering(inode, e);
	}
	if (write)
		sb_end_pagefault(inode->i_sb);
	if (ret != VM_FAULT_FALLBACK) {
		sgfs_add(inode->i_sb, SGFS_HUGE_FAULTS, 1);
		trace_sgfs_fault(inode, page, vmf->flags, ret);
	}
	if (kept)
		fput(kept);
	return ret;
}

/* --- mappers of a file ------------------------------------------------------------------------ */

/*
 * Keep this system's bit as a mapper of the file in the volume, from the first mapping to the last.
 */
static void sgfs_mmap_count_mapping(struct inode *inode, int by)
{
	struct sgfs_inode *si = SGFS_I(inode);
	struct sgfs *fs = SGFS(inode->i_sb);
	bool was;

	mutex_lock(&fs->mappers_lock);
	was = si->vmas;
	if (!was)
		sgfs_written_look(inode);	/* no task has needed it meanwhile */
	WRITE_ONCE(si->vmas, si->vmas + by);
	if (!was) {
		sg_set_mapper(&fs->vol, &si->ref, false, true);
		si->cuts = sg_cuts(&fs->vol, &si->ref);
		list_add(&si->mappers, &fs->mappers);
	} else if (!si->vmas) {
		list_del_init(&si->mappers);
		sg_set_mapper(&fs->vol, &si->ref, false, false);
		if (si->holer)
			sg_set_mapper(&fs->vol, &si->ref, true, false);
		si->holer = false;
	}
	mutex_unlock(&fs->mappers_lock);
}

/*
 * Count a new mapping, and keep fork() from copying entries. A child's shared mapping starts empty,
 * and faults make its entries. fork() would copy entries of 2 MiB after a check without a lock. The
 * child would then keep an entry that a truncation removes at the same time. fork() tests this flag
 * after this call.
 */
static void sgfs_mmap_open_mapping(struct vm_area_struct *vma)
{
	if (SGFS_LARGE_ENTRIES && vma->vm_flags & VM_SHARED && vma->vm_mm != current->mm)
		vm_flags_set(vma, VM_WIPEONFORK);
	sgfs_mmap_count_mapping(file_inode(vma->vm_file), 1);
}

static void sgfs_mmap_close_mapping(struct vm_area_struct *vma)
{
	sgfs_mmap_count_mapping(file_inode(vma->vm_file), -1);
}

/* --- removal of entries ----------------------------------------------------------------------- */

/*
 * Report whether mappings must be removed, because another system has cut pages off, or filled a
 * hole that this system shows as zeroes. A later fault declares its hole again. Wait for running
 * faults before any entry is removed.
 */
static bool sgfs_must_go(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	u64 cuts = sg_cuts(sgfs_vol(inode), sgfs_ref(inode));
	bool go = cuts != si->cuts;

	if (sgfs_is_lost(inode))
		return true;
	sgfs_written_look(inode);
	si->cuts = cuts;
	spin_lock(&inode->i_lock);
	if (si->holer && (go || si->hole_seq != READ_ONCE(sgfs_record(inode)->seq))) {
		si->holer = false;
		sg_set_mapper(sgfs_vol(inode), sgfs_ref(inode), true, false);
		go = true;
	}
	spin_unlock(&inode->i_lock);
	return go;
}

/*
 * Private copies remain, because they concern only the process. But copies beyond the end of the
 * file are removed.
 */
static void sgfs_mmap_take_away(struct inode *inode)
{
	u64 end;

	unmap_mapping_range(inode->i_mapping, 0, 0, 0);
	if (sgfs_is_lost(inode))
		return;
	end = round_up(READ_ONCE(sgfs_record(inode)->size), PAGE_SIZE);
	if (end <= LLONG_MAX)
		unmap_mapping_range(inode->i_mapping, end, 0, 1);
}

/*
 * An inode in the list is mapped. Its mappings end only under the lock that is held here, so the
 * inode remains.
 */
static void sgfs_take_away_from(struct sgfs *fs, bool all)
{
	struct sgfs_inode *si;
	bool any = false;

	mutex_lock(&fs->mappers_lock);
	list_for_each_entry(si, &fs->mappers, mappers) {
		si->zap = all || sgfs_must_go(&si->vfs);
		any |= si->zap;
	}
	if (any) {
		synchronize_srcu_expedited(&fs->faults);
		list_for_each_entry(si, &fs->mappers, mappers)
			if (si->zap)
				sgfs_mmap_take_away(&si->vfs);
	}
	mutex_unlock(&fs->mappers_lock);
}

void sgfs_mmap_quiesce(struct sgfs *fs)
{
	sgfs_take_away_from(fs, false);
}

void sgfs_mmap_revoke(struct sgfs *fs)
{
	sgfs_take_away_from(fs, true);
}

static const struct vm_operations_struct vm_operations = {
	.open		= sgfs_mmap_open_mapping,
	.close		= sgfs_mmap_close_mapping,
	.fault		= sgfs_mmap_fault,
	.huge_fault	= sgfs_huge_fault,
	.pfn_mkwrite	= sgfs_pfn_mkwrite,
	.access		= sgfs_mmap_access,
};

int sgfs_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct sgfs *fs = SGFS(file_inode(file)->i_sb);
	struct sgfs_waiting w;

	sgfs_begin_waiting(fs, &w, sgfs_brief_ns(fs));	/* mmap_lock is held */
	file_accessed(file);
	sgfs_end_waiting(&w);
	sgfs_mmap_count_mapping(file_inode(file), 1);
	vma->vm_ops = &vm_operations;
	vm_flags_set(vma, VM_IO | VM_MIXEDMAP | VM_HUGEPAGE);
	return 0;
}
