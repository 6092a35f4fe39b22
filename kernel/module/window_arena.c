// SPDX-License-Identifier: GPL-2.0
/*
 * The source of the addresses of windows.
 *
 * A stock kernel exports no function that allocates only kernel addresses, and none that changes
 * its page table. But ioremap() allocates addresses, aligned to their size up to 1 GiB. The entries
 * that map them have no other user until iounmap(). So the code makes a slot of the pool (not of
 * the mount table) in these steps. It borrows *physical* addresses that are unused (it takes them
 * from the resource tree, so that they stay unused). It calls ioremap() for them, finds the entries
 * by a walk down from CR3, saves them, and stores 0. The entries now belong to the slot, until the
 * addresses are returned. Before that, each entry gets its saved value again. Otherwise the kernel
 * would treat file tables as its own, and zero and free them.
 *
 * The memory type of the borrowed addresses does not matter: no code ever uses them, and processors
 * do not prefetch from uncached addresses.
 */
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <asm/pgtable.h>

#include "window_priv.h"

#define WINDOWS_512G_MAX	4u

/**
 * struct sg_arena - slots that were made together, out of one ioremap()
 * @list: in sg_windows.arenas
 * @area: the addresses
 * @saved: room for the saved entries of all slots
 * @made: slots whose entries were taken over
 * @windows: the slots
 */
struct sg_arena {
	struct list_head list;
	void __iomem *area;
	u64 *saved;
	unsigned int made;
	struct sg_window windows[];
};

/* The borrowed physical addresses: one range serves all volumes and all arenas. */
static DEFINE_MUTEX(borrow_lock);
static struct {
	struct resource res;
	unsigned int users;
	bool huge;		/* ioremap() maps it by large entries */
} borrow;

/*
 * Return the word that maps @addr at @level of the kernel's page table, or NULL if the table ends
 * above. The top of the table belongs to an mm, which a kernel thread may have borrowed only until
 * it is preempted. The levels below belong to the kernel, and remain.
 */
static u64 *sgfs_walk_kernel(unsigned long addr, unsigned int level)
{
	u64 *table = __va(read_cr3_pa());
	unsigned int l = pgtable_l5_enabled() ? 5 : 4;

	for (;; l--) {
		u64 *word = &table[(addr >> (12 + 9 * (l - 1))) % SG_TABLE_ENTRIES];
		u64 e = READ_ONCE(*word);

		if (l == level)
			return word;
		if (!(e & SG_PTE_PRESENT) || (e & SG_PTE_HUGE))
			return NULL;
		table = __va(e & PTE_PFN_MASK & SG_PTE_ADDR);
	}
}

static u64 *sgfs_table_word(unsigned long addr, unsigned int level)
{
	u64 *word;

	preempt_disable();
	word = sgfs_walk_kernel(addr, level);
	preempt_enable();
	return word;
}

/* Report whether ioremap() uses large entries here (no nohugeiomap, uniform memory type). */
static bool sgfs_borrow_is_huge(void)
{
	void __iomem *area = ioremap(borrow.res.start, PMD_SIZE);
	u64 *word;
	bool huge;

	if (!area)
		return false;
	word = sgfs_table_word((__force unsigned long)area, 2);
	huge = word && (READ_ONCE(*word) & SG_PTE_HUGE);
	iounmap(area);
	return huge;
}

/*
 * Take unused physical addresses, as high as possible, because memory and devices that are plugged
 * in later get lower ones.
 */
static int sgfs_borrow_find(void)
{
	static const u64 sizes[] = { SG_WINDOW_SIZE(SG_WINDOW_512G), SZ_16G, SZ_1G };
	u64 end = min_t(u64, iomem_resource.end, BIT_ULL(boot_cpu_data.x86_phys_bits) - 1) + 1;
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (k = 1; k < 64; k++) {
			u64 min = end - k * (end / 64);

			if (min < SZ_4G || end - min < sizes[i])
				continue;
			borrow.res = (struct resource) {
				.name = "stargatefs windows (addresses only)",
				.flags = IORESOURCE_MEM | IORESOURCE_BUSY,
			};
			if (!allocate_resource(&iomem_resource, &borrow.res, sizes[i], min, end - 1,
					       SZ_1G, NULL, NULL))
				return 0;
		}
	}
	return -ENOSPC;
}

int sg_borrow_get(void)
{
	int err = 0;

	mutex_lock(&borrow_lock);
	if (!borrow.users) {
		err = sgfs_borrow_find();
		if (!err)
			borrow.huge = sgfs_borrow_is_huge();
	}
	if (!err)
		borrow.users++;
	mutex_unlock(&borrow_lock);
	return err;
}

void sg_borrow_put(void)
{
	mutex_lock(&borrow_lock);
	if (!--borrow.users)
		release_resource(&borrow.res);
	mutex_unlock(&borrow_lock);
}

/*
 * Call ioremap() for 512 GiB, aligned to 512 GiB. It aligns to 1 GiB at most, but always searches
 * free space upwards. So fill the gap up to the next boundary, and try again.
 */
static void __iomem *sgfs_ioremap_512g(void)
{
	const u64 size = SG_WINDOW_SIZE(SG_WINDOW_512G);
	void __iomem *fill[12] = { NULL };
	void __iomem *area;
	unsigned int n = 0;

	for (;;) {
		u64 next, gap;

		area = ioremap(borrow.res.start, size);
		if (!area || IS_ALIGNED((__force u64)area, size))
			break;
		fill[n++] = area;
		/* The guard page behind an area makes the GiB that contains it unusable. */
		next = (__force u64)area + size + SZ_1G;
		gap = ALIGN(next, size) - next;
		if (gap > SZ_1G)
			fill[n++] = ioremap(borrow.res.start, gap - SZ_1G);
		if (n >= ARRAY_SIZE(fill) - 1) {
			area = NULL;
			break;
		}
	}
	while (n--)
		if (fill[n])
			iounmap(fill[n]);
	return area;
}

/* Return the number of slots to make together; 0: this machine has none of that height. */
static unsigned int sgfs_arena_slots(unsigned int height)
{
	/*
	 * KASAN allocates memory for an eighth of all vmalloc addresses, even if they are unused.
	 */
	if (IS_ENABLED(CONFIG_KASAN_VMALLOC))
		return height == SG_WINDOW_2M ? 16 : height == SG_WINDOW_1G;
	if (height == SG_WINDOW_2M)
		return 64;
	/* Without large entries the kernel fills one table page for each 2 MiB, and keeps it. */
	if (height == SG_WINDOW_1G)
		return !borrow.huge ? 1 : min_t(u64, 16, resource_size(&borrow.res) >> 30);
	return borrow.huge && resource_size(&borrow.res) >= SG_WINDOW_SIZE(SG_WINDOW_512G);
}

unsigned int sg_slots_max(const struct sg_windows *ws, unsigned int height)
{
	if (height == SG_WINDOW_512G)
		return WINDOWS_512G_MAX;
	if (height == SG_WINDOW_1G && (IS_ENABLED(CONFIG_KASAN_VMALLOC) || !borrow.huge))
		return min(ws->max, 8u);
	return ws->max;
}

/* Restore the kernel's entries, so that it finds its own page table when it unmaps the area. */
static void sgfs_arena_free(struct sg_windows *ws, struct sg_arena *arena)
{
	unsigned int i, k;

	for (i = 0; i < arena->made; i++)
		for (k = 0; k < arena->windows[i].entries; k++)
			WRITE_ONCE(arena->windows[i].entry[k], 0);
	sg_windows_flush_cpus(ws, false);
	for (i = 0; i < arena->made; i++)
		for (k = 0; k < arena->windows[i].entries; k++)
			WRITE_ONCE(arena->windows[i].entry[k], arena->windows[i].saved[k]);
	iounmap(arena->area);
	kvfree(arena->saved);
	kvfree(arena);
}

/* Take over the entries of slot @i. */
static bool sgfs_arena_take(struct sg_windows *ws, struct sg_arena *arena, unsigned int i,
			    unsigned int height, unsigned int entries)
{
	struct sg_window *w = &arena->windows[i];
	unsigned int k;

	w->ws = ws;
	w->height = height;
	w->entries = entries;
	w->addr = (__force void *)arena->area + i * SG_WINDOW_SIZE(height);
	w->saved = arena->saved + i * entries;
	w->entry = sgfs_table_word((unsigned long)w->addr, entries == 1 ? height + 1 : height);
	if (!w->entry)
		return false;
	for (k = 0; k < entries; k++) {
		w->saved[k] = READ_ONCE(w->entry[k]);
		if (!(w->saved[k] & SG_PTE_PRESENT))
			return false;
	}
	for (k = 0; k < entries; k++)
		WRITE_ONCE(w->entry[k], 0);
	return true;
}

int sg_arena_make(struct sg_windows *ws, unsigned int height)
{
	bool mirrored = height == SG_WINDOW_512G && !pgtable_l5_enabled();
	unsigned int entries = mirrored ? SG_TABLE_ENTRIES : 1;
	unsigned int slots = sgfs_arena_slots(height);
	struct sg_arena *arena;
	unsigned int i;

	if (!slots)
		return -ENOSPC;
	arena = kvzalloc(struct_size(arena, windows, slots), GFP_KERNEL);
	if (!arena)
		return -ENOMEM;
	arena->saved = kvcalloc(slots * entries, sizeof(u64), GFP_KERNEL);
	if (!arena->saved)
		goto err_free;
	arena->area = height == SG_WINDOW_512G ? sgfs_ioremap_512g() :
		      ioremap(borrow.res.start, slots * SG_WINDOW_SIZE(height));
	if (!arena->area)
		goto err_free;
	while (arena->made < slots && sgfs_arena_take(ws, arena, arena->made, height, entries))
		arena->made++;
	sg_windows_flush_cpus(ws, true);	/* entries of ioremap() may be global */
	if (arena->made < slots) {
		sgfs_arena_free(ws, arena);
		return -ENOSPC;
	}

	list_add(&arena->list, &ws->arenas);
	spin_lock(&ws->lock);
	for (i = 0; i < slots; i++)
		list_add_tail(&arena->windows[i].list, &ws->clean[height - 1]);
	ws->slots[height - 1] += slots;
	spin_unlock(&ws->lock);
	return 0;

err_free:
	kvfree(arena->saved);
	kvfree(arena);
	return -ENOMEM;
}

void sg_arenas_free(struct sg_windows *ws)
{
	struct sg_arena *arena, *next;

	list_for_each_entry_safe(arena, next, &ws->arenas, list)
		sgfs_arena_free(ws, arena);
}
