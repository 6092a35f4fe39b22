// SPDX-License-Identifier: GPL-2.0
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "wt.h"

static struct {
	phys_addr_t phys;
	u64 size;
	void *linear;
	/* the free range: single pages are allocated from its start, large ones from its end */
	u64 low, high;
} range;

int wt_range_open(phys_addr_t phys, u64 size)
{
	range.linear = memremap(phys, size, MEMREMAP_WB);
	if (!range.linear)
		return -ENOMEM;
	range.phys = phys;
	range.size = size;
	range.low = 0;
	range.high = size;
	return 0;
}

void wt_range_close(void)
{
	memunmap(range.linear);
}

phys_addr_t wt_range_phys(void)
{
	return range.phys;
}

u64 wt_range_size(void)
{
	return range.size;
}

void *wt_range_linear(void)
{
	return range.linear;
}

void *wt_virt(u64 phys)
{
	return range.linear + (phys - range.phys);
}

u64 wt_alloc(u64 size)
{
	u64 off;

	if (size == SG_PAGE) {
		off = range.low;
		range.low += size;
	} else {
		range.high = round_down(range.high - size, size);
		off = range.high;
	}
	if (range.low > range.high)
		panic("window_test: the range is too small");
	return range.phys + off;
}

void wt_pattern(u64 *words, u32 tag, u64 page)
{
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / sizeof(u64); i++)
		words[i] = (u64)tag << 40 ^ (page * 512 + i);
}

bool wt_matches(const void *buf, u64 pos, size_t len, u32 tag)
{
	const u64 *words = buf;
	size_t i;

	for (i = 0; i < len / sizeof(u64); i++)
		if (words[i] != ((u64)tag << 40 ^ (pos / sizeof(u64) + i)))
			return false;
	return true;
}

static u64 wt_table(void)
{
	u64 phys = wt_alloc(SG_PAGE);

	memset(wt_virt(phys), 0, SG_PAGE);
	return phys;
}

void wt_file_init(struct wt_file *f, unsigned int height, u32 tag)
{
	f->height = height;
	f->tag = tag;
	f->root_phys = wt_table();
	f->root = wt_virt(f->root_phys);
}

u64 wt_file_root(const struct wt_file *f)
{
	return SG_ROOT(f->root_phys | SG_PTE_TABLE, f->height);
}

u64 *wt_entry(struct wt_file *f, u64 page, unsigned int level)
{
	u64 *table = f->root;
	unsigned int l;

	for (l = f->height; ; l--) {
		u64 *e = &table[(page >> (9 * (l - 1))) % SG_TABLE_ENTRIES];

		if (l == level)
			return e;
		if (!*e)
			WRITE_ONCE(*e, wt_table() | SG_PTE_TABLE);
		table = wt_virt(*e & SG_PTE_ADDR);
	}
}

u64 wt_fresh(struct wt_file *f, u64 page, u64 pages)
{
	u64 phys = wt_alloc(pages * SG_PAGE);
	u64 i;

	for (i = 0; i < pages; i++)
		wt_pattern(wt_virt(phys + i * SG_PAGE), f->tag, page + i);
	return phys;
}

void wt_map(struct wt_file *f, u64 page, u64 phys, unsigned int level)
{
	WRITE_ONCE(*wt_entry(f, page, level), phys | (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF));
}

void wt_map_fresh(struct wt_file *f, u64 page, unsigned int level)
{
	wt_map(f, page, wt_fresh(f, page, 1ULL << (9 * (level - 1))), level);
}
