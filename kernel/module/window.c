// SPDX-License-Identifier: GPL-2.0
/*
 * Windows (D5): hooking a table into a window, and unhooking it. window_arena.c describes the
 * origin of the addresses and page table entries. Here they belong to this pool, and hooking a
 * table is one store.
 *
 * All processes see a change, because they share the pages of the levels below the kernel's first
 * level. The kernel allocates the upper levels of the vmalloc area at boot. With 4-level paging,
 * windows of 512 GiB therefore have no entry of their own. That entry would be in the page of which
 * each process has a copy. They are *mirrored*: the 512 entries of the file's level 3 table are
 * copied into the 512 entries below, each of which maps 1 GiB.
 *
 * No entry of a window is global, so the translations live in each address space (PCID) of each
 * CPU: INVLPG would reach only one of them. sg_windows_flush() drops all translations on all CPUs.
 */
#include <linux/cc_platform.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/invpcid.h>
#include <asm/pgtable.h>
#include <asm/special_insns.h>

#include "window_priv.h"

#define WINDOWS_MAX_DEFAULT	1024u
#define ENTRY_TABLE		(SG_PTE_PRESENT | SG_PTE_ACCESSED | SG_PTE_DIRTY | SG_PTE_NX)

bool sg_windows_supported(const char **why)
{
	*why = NULL;
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		*why = "the page tables of a Xen PV guest belong to the hypervisor";
	else if (cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		*why = "memory is encrypted (SME, SEV or TDX)";
	else if (!(__supported_pte_mask & _PAGE_NX))
		*why = "the processor has no no-execute bit";
	return !*why;
}

/* --- flushing ------------------------------------------------------------------------------- */

/* Drop this CPU's translations of all address spaces, and with @globals the kernel's, too. */
static void sgfs_flush_cpu(void *globals)
{
	unsigned long flags, cr4;

	if (cpu_feature_enabled(X86_FEATURE_INVPCID)) {
		if (globals)
			invpcid_flush_all();
		else
			invpcid_flush_all_nonglobals();
		return;
	}
	/*
	 * Any change of CR4.PGE drops everything. The kernel's own function for it is not exported.
	 */
	raw_local_irq_save(flags);
	cr4 = native_read_cr4();
	asm volatile("mov %0, %%cr4" : : "r" (cr4 ^ X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	raw_local_irq_restore(flags);
}

void sg_windows_flush_cpus(struct sg_windows *ws, bool globals)
{
	atomic64_inc(&ws->flushes);
#ifdef SG_WINDOW_TEST
	if (ws->no_flush)
		return;
#endif
	on_each_cpu(sgfs_flush_cpu, (void *)(unsigned long)globals, 1);
}

/* --- entries -------------------------------------------------------------------------------- */

/*
 * Return the entry to hook for @e, with only the address of @e, and only if its target lies inside
 * the volume. @height: of the table that @e names, or of a leaf of that size.
 */
static u64 sgfs_checked_entry(const struct sg_windows *ws, u64 e, unsigned int height, bool write)
{
	u64 phys = e & SG_PTE_ADDR;
	u64 span = e & SG_PTE_HUGE ? SG_WINDOW_SIZE(height) : SG_PAGE;

	if (!(e & SG_PTE_PRESENT) || !IS_ALIGNED(phys, span) || !sg_windows_hold(ws, phys, span))
		return 0;
	if ((e & SG_PTE_HUGE) && (height > SG_WINDOW_1G ||
				  (height == SG_WINDOW_1G && !boot_cpu_has(X86_FEATURE_GBPAGES))))
		return 0;
	return phys | ENTRY_TABLE | (e & SG_PTE_HUGE) | (write ? e & SG_PTE_WRITE : 0);
}

/* Bring the entries of a mirrored window up to date. Return whether any appeared or changed. */
static bool sgfs_window_mirror(struct sg_window *w)
{
	bool news = false;
	unsigned int i;

	lockdep_assert_held(&w->ws->lock);
	for (i = 0; i < w->entries; i++) {
		u64 e = READ_ONCE(w->mirror[i]);

		if (w->bounded)
			e = sgfs_checked_entry(w->ws, e, SG_WINDOW_1G, w->write);
		if (e == READ_ONCE(w->entry[i]))
			continue;
		news |= e;
		WRITE_ONCE(w->entry[i], e);
	}
	return news;
}

static void sgfs_window_empty(struct sg_window *w)
{
	unsigned int i;

	for (i = 0; i < w->entries; i++)
		WRITE_ONCE(w->entry[i], 0);
}

/* Called before a flush: remove the entries whose translations the processors must drop. */
static void sgfs_window_catch_up(struct sg_window *w)
{
	if (w->root && READ_ONCE(*w->root) != w->word) {
		sgfs_window_empty(w);
		w->lost = true;
	}
	if (w->entries > 1 && !w->lost)
		sgfs_window_mirror(w);
}

bool sg_window_refresh(struct sg_window *w)
{
	bool news;

	if (w->entries == 1)
		return false;
	spin_lock(&w->ws->lock);
	news = w->hooked && !w->lost && sgfs_window_mirror(w);
	spin_unlock(&w->ws->lock);
	return news;
}

/* --- the pool ------------------------------------------------------------------------------- */

void sg_windows_extend(struct sg_windows *ws, u64 size)
{
	WRITE_ONCE(ws->size, size);
}

struct sg_windows *sg_windows_create(phys_addr_t base, u64 size, void *linear, unsigned int max)
{
	struct sg_windows *ws;
	const char *why;
	unsigned int i;
	int err;

	if (!sg_windows_supported(&why))
		return ERR_PTR(-EOPNOTSUPP);
	ws = kzalloc(sizeof(*ws), GFP_KERNEL);
	if (!ws)
		return ERR_PTR(-ENOMEM);
	err = sg_borrow_get();
	if (err) {
		kfree(ws);
		return ERR_PTR(err);
	}
	ws->base = base;
	ws->size = size;
	ws->linear = linear;
	ws->max = max ?: WINDOWS_MAX_DEFAULT;
	mutex_init(&ws->grow);
	spin_lock_init(&ws->lock);
	INIT_LIST_HEAD(&ws->arenas);
	INIT_LIST_HEAD(&ws->stale);
	INIT_LIST_HEAD(&ws->hooked);
	for (i = 0; i < SG_WINDOW_HEIGHTS; i++)
		INIT_LIST_HEAD(&ws->clean[i]);
	return ws;
}

void sg_windows_destroy(struct sg_windows *ws)
{
	unsigned int i;

	if (!ws)
		return;
	for (i = 0; i < SG_WINDOW_HEIGHTS; i++)
		WARN_ON(ws->used[i]);
	sg_arenas_free(ws);
	sg_borrow_put();
	kfree(ws);
}

void sg_windows_flush(struct sg_windows *ws)
{
	struct sg_window *w, *next;
	LIST_HEAD(stale);

	spin_lock(&ws->lock);
	list_splice_init(&ws->stale, &stale);
	list_for_each_entry(w, &ws->hooked, list)
		sgfs_window_catch_up(w);
	spin_unlock(&ws->lock);

	sg_windows_flush_cpus(ws, false);

	spin_lock(&ws->lock);
	list_for_each_entry_safe(w, next, &stale, list) {
		w->stale = false;
		list_move_tail(&w->list, &ws->clean[w->height - 1]);
	}
	spin_unlock(&ws->lock);
}

void sg_windows_stats(struct sg_windows *ws, struct sg_windows_stats *st)
{
	spin_lock(&ws->lock);
	memcpy(st->slots, ws->slots, sizeof(st->slots));
	memcpy(st->used, ws->used, sizeof(st->used));
	spin_unlock(&ws->lock);
	st->hooks = atomic64_read(&ws->hooks);
	st->flushes = atomic64_read(&ws->flushes);
	st->refused = atomic64_read(&ws->refused);
	st->shorts = atomic64_read(&ws->shorts);
}

static struct sg_window *sgfs_take_clean(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w;

	spin_lock(&ws->lock);
	w = list_first_entry_or_null(&ws->clean[height - 1], struct sg_window, list);
	if (w) {
		list_del_init(&w->list);
		ws->used[height - 1]++;
	}
	spin_unlock(&ws->lock);
	return w;
}

static bool sgfs_have_stale(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w;
	bool found = false;

	spin_lock(&ws->lock);
	list_for_each_entry(w, &ws->stale, list) {
		found = w->height == height;
		if (found)
			break;
	}
	spin_unlock(&ws->lock);
	return found;
}

/* Called when there is no clean slot: flush the used ones, or make new ones. */
static struct sg_window *sgfs_window_get_slow(struct sg_windows *ws, unsigned int height)
{
	unsigned int nofs = memalloc_nofs_save();	/* files are opened under locks of this file
							 * system */
	struct sg_window *w;

	mutex_lock(&ws->grow);
	/* An earlier owner of the lock may have made slots. */
	w = sgfs_take_clean(ws, height);
	if (!w && sgfs_have_stale(ws, height)) {
		sg_windows_flush(ws);
		w = sgfs_take_clean(ws, height);
	}
	if (!w && ws->slots[height - 1] < sg_slots_max(ws, height) && !sg_arena_make(ws, height))
		w = sgfs_take_clean(ws, height);
	mutex_unlock(&ws->grow);
	memalloc_nofs_restore(nofs);
	return w;
}

struct sg_window *sg_window_get(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w = NULL;

	if (height >= SG_WINDOW_2M && height <= SG_WINDOW_HEIGHTS) {
		w = sgfs_take_clean(ws, height);
		if (!w)
			w = sgfs_window_get_slow(ws, height);
	}
	if (!w)
		atomic64_inc(&ws->refused);
	return w;
}

/* --- one window ----------------------------------------------------------------------------- */

/* Nothing may be hooked into a slot while a CPU has translations of its earlier content. */
static int sgfs_window_ready(struct sg_window *w)
{
	if (WARN_ON_ONCE(w->hooked))
		return -EBUSY;
	if (w->stale) {
		sg_windows_flush(w->ws);
		w->stale = false;
	}
	return 0;
}

/* @mirror: the table that @e names, for windows without an entry of their own. */
static void sgfs_window_show(struct sg_window *w, u64 e, const u64 *mirror, bool bounded)
{
	lockdep_assert_held(&w->ws->lock);
	w->write = e & SG_PTE_WRITE;
	w->hooked = true;
	w->lost = false;
	list_add(&w->list, &w->ws->hooked);
	if (w->entries > 1) {
		w->mirror = mirror;
		w->bounded = bounded;
		sgfs_window_mirror(w);
	} else {
		smp_wmb();	/* the table's content must be visible before the table */
		WRITE_ONCE(*w->entry, e);
	}
	atomic64_inc(&w->ws->hooks);
}

static int sgfs_window_hook(struct sg_window *w, u64 entry, const u64 *root)
{
	struct sg_windows *ws = w->ws;
	int err = sgfs_window_ready(w);
	unsigned int height;
	u64 e;

	if (err)
		return err;
	spin_lock(&ws->lock);
	/*
	 * Read under the lock: either the flush has seen this window, or this read sees the change
	 * that caused the flush.
	 */
	if (root)
		entry = READ_ONCE(*root);
	height = SG_ROOT_HEIGHT(entry);
	e = sgfs_checked_entry(ws, entry, w->height, true);
	/* A root word has the height in bits that are 0 in a plain entry. */
	if (e && (!height || entry & SG_PTE_NX || height == w->height)) {
		w->root = root;
		w->word = entry;
		sgfs_window_show(w, e, ws->linear + ((e & SG_PTE_ADDR) - ws->base), true);
	} else {
		err = -EINVAL;
	}
	spin_unlock(&ws->lock);
	return err;
}

int sg_window_hook(struct sg_window *w, u64 entry)
{
	return sgfs_window_hook(w, entry, NULL);
}

int sg_window_hook_root(struct sg_window *w, const u64 *root)
{
	return sgfs_window_hook(w, 0, root);
}

int sg_window_hook_private(struct sg_window *w, u64 *table)
{
	int err = sgfs_window_ready(w);

	if (err)
		return err;
	spin_lock(&w->ws->lock);
	w->root = NULL;
	sgfs_window_show(w, virt_to_phys(table) | ENTRY_TABLE | SG_PTE_WRITE, table, false);
	spin_unlock(&w->ws->lock);
	return 0;
}

bool sg_window_lost(const struct sg_window *w)
{
	return READ_ONCE(w->lost);
}

void sg_window_unhook(struct sg_window *w)
{
	if (!w->hooked)
		return;
	spin_lock(&w->ws->lock);
	list_del_init(&w->list);
	sgfs_window_empty(w);
	w->hooked = false;
	w->lost = false;
	w->stale = true;
	spin_unlock(&w->ws->lock);
}

void sg_window_put(struct sg_window *w)
{
	struct sg_windows *ws;

	if (!w)
		return;
	ws = w->ws;
	sg_window_unhook(w);
	spin_lock(&ws->lock);
	list_add_tail(&w->list, w->stale ? &ws->stale : &ws->clean[w->height - 1]);
	ws->used[w->height - 1]--;
	spin_unlock(&ws->lock);
}

void *sg_window_addr(const struct sg_window *w)
{
	return w->addr;
}

u64 sg_window_size(const struct sg_window *w)
{
	return SG_WINDOW_SIZE(w->height);
}
