// SPDX-License-Identifier: GPL-2.0
/*
 * Windows (D5): where the addresses come from, and how a table gets into them and out again.
 *
 * A stock kernel exports nothing that hands out bare kernel addresses, nor the functions that edit
 * its page table. But ioremap() hands out addresses, aligned to the size up to 1 GiB and mapped by
 * entries that belong to nobody else as long as we hold them. So a slot is made like this: borrow
 * *physical* addresses where nothing is (taken from the resource tree, so that nothing will be),
 * ioremap() them, find the entries by walking down from CR3, save them, and store 0. The memory
 * type that the borrowed addresses would have does not matter: nobody ever gets to use them, and
 * being uncached they are not read ahead either. From then on the entries are ours: hooking a table
 * is one store. Before the addresses go back, each entry gets its saved value back; otherwise the
 * kernel would take our tables for its own, and zero and free them.
 *
 * An edit is seen by all processes because the levels below the first that the kernel shares are
 * the same pages for everybody: the kernel allocates the upper levels of the vmalloc area at boot.
 * With 4-level paging that leaves windows of 512 GiB without an entry of their own (theirs would be
 * in the page that each process has a copy of). They are *mirrored*: the 512 entries of the file's
 * level 3 table are copied into the 512 entries below, each of which maps 1 GiB.
 *
 * No entry of ours is global, so the translations live in each address space (PCID) of each CPU:
 * INVLPG would reach one of them only. sg_windows_flush() drops all.
 */
#include <linux/cc_platform.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/invpcid.h>
#include <asm/pgtable.h>
#include <asm/special_insns.h>

#include "window_priv.h"

#define WINDOWS_MAX_DEFAULT	1024u
#define WINDOWS_512G_MAX	4u
#define ENTRY_TABLE		(SG_PTE_PRESENT | SG_PTE_ACCESSED | SG_PTE_DIRTY | SG_PTE_NX)

/**
 * struct sg_arena - slots that were made together, out of one ioremap()
 * @list: in sg_windows.arenas
 * @area: the addresses
 * @saved: room for the saved entries of all slots
 * @made: slots whose entries are ours
 * @windows: the slots
 */
struct sg_arena {
	struct list_head list;
	void __iomem *area;
	u64 *saved;
	unsigned int made;
	struct sg_window windows[];
};

/* The borrowed physical addresses: one range for all volumes, and for all arenas over and over. */
static DEFINE_MUTEX(borrow_lock);
static struct {
	struct resource res;
	unsigned int users;
	bool huge;		/* ioremap() maps it by large entries */
} borrow;

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

/* Drops this CPU's translations of all address spaces, and those of the kernel if @globals. */
static void flush_cpu(void *globals)
{
	unsigned long flags, cr4;

	if (cpu_feature_enabled(X86_FEATURE_INVPCID)) {
		if (globals)
			invpcid_flush_all();
		else
			invpcid_flush_all_nonglobals();
		return;
	}
	/* Any change of CR4.PGE drops everything. The kernel's own way of doing so is not exported. */
	raw_local_irq_save(flags);
	cr4 = native_read_cr4();
	asm volatile("mov %0, %%cr4" : : "r" (cr4 ^ X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	raw_local_irq_restore(flags);
}

static void flush_all(struct sg_windows *ws, bool globals)
{
	atomic64_inc(&ws->flushes);
#ifdef SG_WINDOW_TEST
	if (ws->no_flush)
		return;
#endif
	on_each_cpu(flush_cpu, (void *)(unsigned long)globals, 1);
}

/* --- entries -------------------------------------------------------------------------------- */

/* The word that maps @addr at @level of the kernel's page table, or NULL when it ends above. */
static u64 *table_word(unsigned long addr, unsigned int level)
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

/*
 * The entry that we hook for @e: its address and nothing else is taken over, and only when what it
 * names lies inside the volume. @height is that of the table named, or of a leaf of that size.
 */
static u64 checked_entry(const struct sg_windows *ws, u64 e, unsigned int height, bool write)
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

/* Brings the entries of a mirrored window up to date. Returns whether any appeared or changed. */
static bool window_mirror(struct sg_window *w)
{
	bool news = false;
	unsigned int i;

	lockdep_assert_held(&w->ws->lock);
	for (i = 0; i < w->entries; i++) {
		u64 e = READ_ONCE(w->mirror[i]);

		if (w->bounded)
			e = checked_entry(w->ws, e, SG_WINDOW_1G, w->write);
		if (e == READ_ONCE(w->entry[i]))
			continue;
		news |= e;
		WRITE_ONCE(w->entry[i], e);
	}
	return news;
}

bool sg_window_refresh(struct sg_window *w)
{
	bool news;

	if (w->entries == 1)
		return false;
	spin_lock(&w->ws->lock);
	news = w->hooked && window_mirror(w);
	spin_unlock(&w->ws->lock);
	return news;
}

/* --- making slots --------------------------------------------------------------------------- */

/* Does ioremap() use large entries here (no nohugeiomap, uniform memory type)? */
static bool borrow_is_huge(void)
{
	void __iomem *area = ioremap(borrow.res.start, PMD_SIZE);
	u64 *word;
	bool huge;

	if (!area)
		return false;
	word = table_word((__force unsigned long)area, 2);
	huge = word && (READ_ONCE(*word) & SG_PTE_HUGE);
	iounmap(area);
	return huge;
}

/* Takes unused physical addresses, high up, where no memory or device will be plugged in later. */
static int borrow_find(void)
{
	static const u64 sizes[] = { SG_WINDOW_SIZE(SG_WINDOW_512G), SZ_16G, SZ_1G };
	resource_size_t top = min_t(resource_size_t, iomem_resource.end,
				    (1ULL << boot_cpu_data.x86_phys_bits) - 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		resource_size_t min;

		for (min = (top >> 1) + 1; min >= SZ_4G; min >>= 1) {
			borrow.res = (struct resource) {
				.name = "stargatefs windows (addresses only)",
				.flags = IORESOURCE_MEM | IORESOURCE_BUSY,
			};
			if (!allocate_resource(&iomem_resource, &borrow.res, sizes[i], min, top,
					       SZ_1G, NULL, NULL))
				return 0;
		}
	}
	return -ENOSPC;
}

static int borrow_get(void)
{
	int err = 0;

	mutex_lock(&borrow_lock);
	if (!borrow.users) {
		err = borrow_find();
		if (!err)
			borrow.huge = borrow_is_huge();
	}
	if (!err)
		borrow.users++;
	mutex_unlock(&borrow_lock);
	return err;
}

static void borrow_put(void)
{
	mutex_lock(&borrow_lock);
	if (!--borrow.users)
		release_resource(&borrow.res);
	mutex_unlock(&borrow_lock);
}

/*
 * ioremap() of 512 GiB, aligned to that. It aligns to 1 GiB at most, but goes upwards through the
 * same free space: so fill the gap up to the next boundary, and try again.
 */
static void __iomem *ioremap_512g(void)
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
		/* The guard page behind an area costs the GiB that it is in. */
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

/* How many slots to make at once; 0: this machine gives none of that height. */
static unsigned int arena_slots(unsigned int height)
{
	/* KASAN backs an eighth of all vmalloc addresses with memory, whatever they are used for. */
	if (IS_ENABLED(CONFIG_KASAN_VMALLOC))
		return height == SG_WINDOW_2M ? 16 : height == SG_WINDOW_1G;
	if (height == SG_WINDOW_2M)
		return 64;
	/* Without large entries the kernel fills a table page per 2 MiB, and keeps it. */
	if (height == SG_WINDOW_1G)
		return !borrow.huge ? 1 : min_t(u64, 16, resource_size(&borrow.res) >> 30);
	return borrow.huge && resource_size(&borrow.res) >= SG_WINDOW_SIZE(SG_WINDOW_512G);
}

static unsigned int slots_max(const struct sg_windows *ws, unsigned int height)
{
	if (height == SG_WINDOW_512G)
		return WINDOWS_512G_MAX;
	if (height == SG_WINDOW_1G && (IS_ENABLED(CONFIG_KASAN_VMALLOC) || !borrow.huge))
		return min(ws->max, 8u);
	return ws->max;
}

/* Puts the kernel's entries back, so that it finds its own page table when it unmaps the area. */
static void arena_free(struct sg_windows *ws, struct sg_arena *arena)
{
	unsigned int i, k;

	for (i = 0; i < arena->made; i++)
		for (k = 0; k < arena->windows[i].entries; k++)
			WRITE_ONCE(arena->windows[i].entry[k], 0);
	flush_all(ws, false);
	for (i = 0; i < arena->made; i++)
		for (k = 0; k < arena->windows[i].entries; k++)
			WRITE_ONCE(arena->windows[i].entry[k], arena->windows[i].saved[k]);
	iounmap(arena->area);
	kvfree(arena->saved);
	kvfree(arena);
}

/* Makes the entries of slot @i ours. */
static bool arena_take(struct sg_windows *ws, struct sg_arena *arena, unsigned int i,
		       unsigned int height, unsigned int entries)
{
	struct sg_window *w = &arena->windows[i];
	unsigned int k;

	w->ws = ws;
	w->height = height;
	w->entries = entries;
	w->addr = (__force void *)arena->area + i * SG_WINDOW_SIZE(height);
	w->saved = arena->saved + i * entries;
	w->entry = table_word((unsigned long)w->addr, entries == 1 ? height + 1 : height);
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

static int arena_make(struct sg_windows *ws, unsigned int height)
{
	unsigned int entries = height == SG_WINDOW_512G && !pgtable_l5_enabled() ? SG_TABLE_ENTRIES : 1;
	unsigned int slots = arena_slots(height);
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
	arena->area = height == SG_WINDOW_512G ? ioremap_512g() :
		      ioremap(borrow.res.start, slots * SG_WINDOW_SIZE(height));
	if (!arena->area)
		goto err_free;
	while (arena->made < slots && arena_take(ws, arena, arena->made, height, entries))
		arena->made++;
	flush_all(ws, true);	/* what ioremap() stored may be global */
	if (arena->made < slots) {
		arena_free(ws, arena);
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

/* --- the pool ------------------------------------------------------------------------------- */

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
	err = borrow_get();
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
	INIT_LIST_HEAD(&ws->mirrors);
	for (i = 0; i < SG_WINDOW_HEIGHTS; i++)
		INIT_LIST_HEAD(&ws->clean[i]);
	return ws;
}

void sg_windows_destroy(struct sg_windows *ws)
{
	struct sg_arena *arena, *next;
	unsigned int i;

	if (!ws)
		return;
	for (i = 0; i < SG_WINDOW_HEIGHTS; i++)
		WARN_ON(ws->used[i]);
	list_for_each_entry_safe(arena, next, &ws->arenas, list)
		arena_free(ws, arena);
	borrow_put();
	kfree(ws);
}

void sg_windows_flush(struct sg_windows *ws)
{
	struct sg_window *w, *next;
	LIST_HEAD(stale);

	spin_lock(&ws->lock);
	list_splice_init(&ws->stale, &stale);
	list_for_each_entry(w, &ws->mirrors, list)
		window_mirror(w);
	spin_unlock(&ws->lock);

	flush_all(ws, false);

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

static struct sg_window *take_clean(struct sg_windows *ws, unsigned int height)
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

static bool have_stale(struct sg_windows *ws, unsigned int height)
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

/* No clean slot was there: flush the ones that were used, or else make new ones. */
static struct sg_window *window_get_slow(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w;

	mutex_lock(&ws->grow);
	w = take_clean(ws, height);	/* whoever held the lock before us may have made some */
	if (!w && have_stale(ws, height)) {
		sg_windows_flush(ws);
		w = take_clean(ws, height);
	}
	if (!w && ws->slots[height - 1] < slots_max(ws, height) && !arena_make(ws, height))
		w = take_clean(ws, height);
	mutex_unlock(&ws->grow);
	return w;
}

struct sg_window *sg_window_get(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w = NULL;

	if (height >= SG_WINDOW_2M && height <= SG_WINDOW_HEIGHTS) {
		w = take_clean(ws, height);
		if (!w)
			w = window_get_slow(ws, height);
	}
	if (!w)
		atomic64_inc(&ws->refused);
	return w;
}

/* --- one window ----------------------------------------------------------------------------- */

/* Nothing may be hooked into a slot while a CPU remembers what was there before. */
static int window_ready(struct sg_window *w)
{
	if (WARN_ON_ONCE(w->hooked))
		return -EBUSY;
	if (w->stale) {
		sg_windows_flush(w->ws);
		w->stale = false;
	}
	return 0;
}

static void window_show_mirrored(struct sg_window *w, const u64 *table, bool bounded, bool write)
{
	spin_lock(&w->ws->lock);
	w->mirror = table;
	w->bounded = bounded;
	w->write = write;
	w->hooked = true;
	list_add(&w->list, &w->ws->mirrors);
	window_mirror(w);
	spin_unlock(&w->ws->lock);
	atomic64_inc(&w->ws->hooks);
}

static void window_show(struct sg_window *w, u64 entry)
{
	w->write = entry & SG_PTE_WRITE;
	w->hooked = true;
	smp_wmb();	/* the table's content is there before the table */
	WRITE_ONCE(*w->entry, entry);
	atomic64_inc(&w->ws->hooks);
}

int sg_window_hook(struct sg_window *w, u64 entry)
{
	unsigned int height = SG_ROOT_HEIGHT(entry);
	u64 e = checked_entry(w->ws, entry, w->height, true);
	int err;

	/* In a root word the height stands in bits that are 0 in a plain entry. */
	if (!e || (height && !(entry & SG_PTE_NX) && height != w->height))
		return -EINVAL;
	err = window_ready(w);
	if (err)
		return err;
	if (w->entries == 1)
		window_show(w, e);
	else
		window_show_mirrored(w, w->ws->linear + ((e & SG_PTE_ADDR) - w->ws->base), true,
				     e & SG_PTE_WRITE);
	return 0;
}

int sg_window_hook_private(struct sg_window *w, u64 *table)
{
	int err = window_ready(w);

	if (err)
		return err;
	if (w->entries == 1)
		window_show(w, virt_to_phys(table) | ENTRY_TABLE | SG_PTE_WRITE);
	else
		window_show_mirrored(w, table, false, true);
	return 0;
}

void sg_window_unhook(struct sg_window *w)
{
	unsigned int i;

	if (!w->hooked)
		return;
	spin_lock(&w->ws->lock);
	if (w->entries > 1)
		list_del_init(&w->list);
	for (i = 0; i < w->entries; i++)
		WRITE_ONCE(w->entry[i], 0);
	w->hooked = false;
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
