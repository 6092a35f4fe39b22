// SPDX-License-Identifier: GPL-2.0
/*
 * Shadows (D5): private page tables, filled with checked leaves. The MMU locates the data as with a
 * splice, but it follows a table in this system's own memory, where no peer can write.
 *
 * Entries change from empty to present, and back; never from one value to another. So only
 * sg_shadow_clear() has to flush, and never a filler.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>

#include "window_priv.h"

/*
 * Files are opened and grow under locks of this file system, so the allocation must not wait for
 * them; without memory the caller walks.
 */
#define SHADOW_GFP	(GFP_NOFS | __GFP_ACCOUNT | __GFP_NOWARN)

/**
 * struct sg_shadow - a private table and its window
 * @ws: the pool
 * @window: shows @root
 * @root: table of level @window->height
 * @walk: finds checked runs
 * @ctx: for @walk
 */
struct sg_shadow {
	struct sg_windows *ws;
	struct sg_window *window;
	u64 *root;
	sg_shadow_walk_t walk;
	void *ctx;
};

/* Return the number of file pages that one entry of a table of @level maps. */
static u64 sgfs_entry_pages(unsigned int level)
{
	return 1ULL << (9 * (level - 1));
}

static u64 *sgfs_entry_at(u64 *table, unsigned int level, u64 page)
{
	return &table[(page >> (9 * (level - 1))) % SG_TABLE_ENTRIES];
}

static u64 *sgfs_entry_table(u64 e)
{
	return phys_to_virt(e & SG_PTE_ADDR);
}

static bool sgfs_is_table(u64 e, unsigned int level)
{
	return e && level > 1 && !(e & SG_PTE_HUGE);
}

static bool sgfs_leaf_fits(unsigned int level, phys_addr_t phys, u64 pages)
{
	return pages == sgfs_entry_pages(level) && IS_ALIGNED(phys, pages << PAGE_SHIFT) &&
	       (level < 3 || boot_cpu_has(X86_FEATURE_GBPAGES));
}

/* Map [page, page + pages) to @phys in @table and below, where nothing is mapped yet. */
static int sgfs_table_map(u64 *table, unsigned int level, u64 page, phys_addr_t phys, u64 pages)
{
	u64 n;

	for (; pages; page += n, phys += n << PAGE_SHIFT, pages -= n) {
		u64 *e = sgfs_entry_at(table, level, page);
		int err;

		n = min(pages, sgfs_entry_pages(level) - page % sgfs_entry_pages(level));
		if (!*e && sgfs_leaf_fits(level, phys, n)) {
			WRITE_ONCE(*e, phys | (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF));
			continue;
		}
		if (!*e) {
			void *child = (void *)get_zeroed_page(SHADOW_GFP);

			if (!child)
				return -ENOMEM;
			smp_wmb();	/* the child is empty before the parent names it */
			WRITE_ONCE(*e, virt_to_phys(child) | SG_PTE_TABLE);
		}
		if (!sgfs_is_table(*e, level))
			continue;
		err = sgfs_table_map(sgfs_entry_table(*e), level - 1, page, phys, n);
		if (err)
			return err;
	}
	return 0;
}

static void sgfs_table_free(u64 *table, unsigned int level)
{
	unsigned int i;

	for (i = 0; level > 1 && i < SG_TABLE_ENTRIES; i++)
		if (sgfs_is_table(table[i], level))
			sgfs_table_free(sgfs_entry_table(table[i]), level - 1);
	free_page((unsigned long)table);
}

/*
 * Empty the entries of [page, page + pages). A table that lies completely in the range is cut off
 * and put on @dead, unchanged, because a CPU may still follow it until the flush.
 */
static void sgfs_table_clear(u64 *table, unsigned int level, u64 page, u64 pages,
			     struct list_head *dead)
{
	u64 n;

	for (; pages; page += n, pages -= n) {
		u64 *e = sgfs_entry_at(table, level, page);
		u64 old = *e;

		n = min(pages, sgfs_entry_pages(level) - page % sgfs_entry_pages(level));
		if (sgfs_is_table(old, level) && n < sgfs_entry_pages(level)) {
			sgfs_table_clear(sgfs_entry_table(old), level - 1, page, n, dead);
			continue;
		}
		WRITE_ONCE(*e, 0);
		if (sgfs_is_table(old, level)) {
			struct page *child = virt_to_page(sgfs_entry_table(old));

			set_page_private(child, level - 1);
			list_add(&child->lru, dead);
		}
	}
}

static u64 sgfs_shadow_pages(const struct sg_shadow *sh)
{
	return SG_WINDOW_SIZE(sh->window->height) >> PAGE_SHIFT;
}

struct sg_shadow *sg_shadow_open(struct sg_windows *ws, unsigned int height, sg_shadow_walk_t walk,
				 void *ctx)
{
	struct sg_shadow *sh = kzalloc(sizeof(*sh), SHADOW_GFP);

	if (!sh)
		return NULL;
	sh->ws = ws;
	sh->walk = walk;
	sh->ctx = ctx;
	sh->root = (u64 *)get_zeroed_page(SHADOW_GFP);
	if (!sh->root)
		goto err_free;
	sh->window = sg_window_get(ws, height);
	if (!sh->window)
		goto err_root;
	if (sg_window_hook_private(sh->window, sh->root))
		goto err_window;
	return sh;

err_window:
	sg_window_put(sh->window);
err_root:
	free_page((unsigned long)sh->root);
err_free:
	kfree(sh);
	return NULL;
}

int sg_shadow_fill(struct sg_shadow *sh, u64 first, u64 pages)
{
	u64 size = sgfs_shadow_pages(sh);
	u64 left = first < size ? min(pages, size - first) : 0;

	while (left) {
		struct sg_shadow_run run = { };
		int err = sh->walk(sh->ctx, first, left, &run);
		u64 n;

		if (err)
			return err;
		n = min(run.pages, left);
		if (!n)
			return -EUCLEAN;
		if (run.phys) {
			if (!PAGE_ALIGNED(run.phys) ||
			    !sg_windows_hold(sh->ws, run.phys, n << PAGE_SHIFT))
				return -EUCLEAN;
			err = sgfs_table_map(sh->root, sh->window->height, first, run.phys, n);
			if (err)
				return err;
		}
		first += n;
		left -= n;
		cond_resched();
	}
	return 0;
}

void sg_shadow_clear(struct sg_shadow *sh, u64 first, u64 pages)
{
	u64 size = sgfs_shadow_pages(sh);
	struct page *child, *next;
	LIST_HEAD(dead);

	if (first >= size)
		return;
	sgfs_table_clear(sh->root, sh->window->height, first, min(pages, size - first), &dead);
	sg_windows_flush(sh->ws);
	list_for_each_entry_safe(child, next, &dead, lru) {
		unsigned int level = page_private(child);

		list_del(&child->lru);
		set_page_private(child, 0);
		sgfs_table_free(page_address(child), level);
	}
}

struct sg_window *sg_shadow_window(const struct sg_shadow *sh)
{
	return sh->window;
}

void sg_shadow_close(struct sg_shadow *sh)
{
	unsigned int level;

	if (!sh)
		return;
	level = sh->window->height;
	sg_window_put(sh->window);
	sg_windows_flush(sh->ws);
	sgfs_table_free(sh->root, level);
	kfree(sh);
}
