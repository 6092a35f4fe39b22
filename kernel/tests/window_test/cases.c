// SPDX-License-Identifier: GPL-2.0
/* Cases with one thread: the contents of a window after each kind of change. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "window_priv.h"
#include "wt.h"

static struct sg_window *get_hooked(struct sg_windows *ws, const struct wt_file *f)
{
	struct sg_window *w = wt_get(ws, f->height);

	if (w)
		CHECK(!sg_window_hook(w, wt_file_root(f)));
	return w;
}

static bool read_ok(struct sg_window *w, u64 pos, size_t len, u32 tag, enum wt_iter kind)
{
	return wt_read(w, pos, len, kind) == len && wt_matches(wt_buf, pos, len, tag);
}

void case_refusals(void)
{
	struct sg_windows *ws = wt_windows(0);
	struct wt_file f;
	struct sg_window *w;
	u64 outside = wt_range_phys() + wt_range_size();

	if (!ws)
		return;
	wt_file_init(&f, SG_WINDOW_2M, 1);
	CHECK(!sg_window_get(ws, 0));
	CHECK(!sg_window_get(ws, 4));
	w = wt_get(ws, SG_WINDOW_2M);
	if (w) {
		CHECK(IS_ALIGNED((unsigned long)sg_window_addr(w), SZ_2M));
		CHECK(wt_read(w, 0, 8, WT_USER) == 0);
		CHECK(sg_window_hook(w, 0) == -EINVAL);
		CHECK(sg_window_hook(w, SG_PTE_TABLE) == -EINVAL);
		CHECK(sg_window_hook(w, outside | SG_PTE_TABLE) == -EINVAL);
		CHECK(sg_window_hook(w, (outside - SG_PAGE) | SG_PTE_LEAF_HUGE) == -EINVAL);
		CHECK(sg_window_hook(w, outside | SG_PTE_LEAF_HUGE) == -EINVAL);
		CHECK(sg_window_hook(w, f.root_phys) == -EINVAL);
		CHECK(sg_window_hook(w, SG_ROOT(f.root_phys | SG_PTE_TABLE, 2)) == -EINVAL);
		CHECK(wt_read(w, 0, 8, WT_USER) == 0);
		CHECK(!sg_window_hook(w, wt_file_root(&f)));
		CHECK(sg_window_copy_to_iter(w, SZ_2M, 8, &(struct iov_iter){ }) == 0);
		CHECK(wt_read(w, SZ_2M - 8, 16, WT_USER) == 0);
	}
	sg_window_put(w);
	sg_window_put(NULL);
	sg_windows_destroy(ws);
	sg_windows_destroy(NULL);
}

/* Makes a file with leaves of both sizes, at its start, in the middle, and at its very end. */
static void make_file(struct wt_file *f, unsigned int height, u32 tag)
{
	u64 pages = SG_WINDOW_SIZE(height) >> PAGE_SHIFT;
	u64 p;

	wt_file_init(f, height, tag);
	for (p = 0; p < 64; p++)	/* maps scattered pages */
		wt_map_fresh(f, (p * 37) % 64, 1);
	wt_map_fresh(f, pages - 1, 1);
	if (height < SG_WINDOW_1G)
		return;
	for (p = 2; p < 4; p++)
		wt_map_fresh(f, p * 512, 2);
	for (p = 0; p < 16; p++)
		wt_map_fresh(f, pages / 2 + p, 1);
}

static void check_contents(struct sg_window *w, struct wt_file *f, enum wt_iter kind)
{
	u64 size = SG_WINDOW_SIZE(f->height);
	u64 *word;

	CHECK(read_ok(w, 0, 64 * SG_PAGE, f->tag, kind));
	CHECK(read_ok(w, 5 * SG_PAGE - 8, 16, f->tag, kind));
	CHECK(read_ok(w, size - SG_PAGE, SG_PAGE, f->tag, kind));
	/* A copy stops at the end of its own window, even if the next slot is hooked as well. */
	CHECK(wt_read(w, size - SG_PAGE, 2 * SG_PAGE, kind) == SG_PAGE);
	if (f->height >= SG_WINDOW_1G) {
		CHECK(read_ok(w, SZ_4M, SZ_4M, f->tag, kind));
		CHECK(read_ok(w, size / 2, 16 * SG_PAGE, f->tag, kind));
	}

	/* A write stores into the pages that the table names, and is read back. */
	memset(wt_buf, 0xa5, SG_PAGE + 24);
	CHECK(wt_write(w, 3 * SG_PAGE + 8, SG_PAGE + 24, kind) == SG_PAGE + 24);
	word = wt_virt(*wt_entry(f, 4, 1) & SG_PTE_ADDR);
	CHECK(word[0] == 0xa5a5a5a5a5a5a5a5 && word[3] == 0xa5a5a5a5a5a5a5a5);
	CHECK(word[4] == ((u64)f->tag << 40 ^ (4 * 512 + 4)));
	wt_pattern(word, f->tag, 4);
	wt_pattern(wt_virt(*wt_entry(f, 3, 1) & SG_PTE_ADDR), f->tag, 3);
	CHECK(read_ok(w, 0, 64 * SG_PAGE, f->tag, kind));
}

void case_contents(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;
	enum wt_iter kind;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct sg_window *w, *w2;
		struct wt_file f, g;
		u64 *before;

		make_file(&f, height, 10 + height);
		make_file(&g, height, 20 + height);
		before = kmemdup(f.root, SG_PAGE, GFP_KERNEL);
		w = get_hooked(ws, &f);
		w2 = w ? get_hooked(ws, &g) : NULL;
		for (kind = WT_USER; w && w2 && kind < WT_ITERS; kind++) {
			check_contents(w, &f, kind);
			check_contents(w2, &g, kind);
		}
		sg_window_put(w);
		sg_window_put(w2);
		sg_windows_flush(ws);
		/* Neither the processor nor the kernel has written into the table. */
		CHECK(before && !memcmp(before, f.root, SG_PAGE));
		kfree(before);
	}
	sg_windows_destroy(ws);
}

void case_holes(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;
	enum wt_iter kind;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct sg_windows_stats st;
		struct sg_window *w;
		struct wt_file f;
		u64 p;

		wt_file_init(&f, height, 30 + height);
		for (p = 0; p < 8; p++)
			if (p != 3)
				wt_map_fresh(&f, p, 1);
		w = get_hooked(ws, &f);
		for (kind = WT_USER; w && kind < WT_ITERS; kind++) {
			CHECK(wt_read(w, 0, 8 * SG_PAGE, kind) == 3 * SG_PAGE);
			CHECK(wt_matches(wt_buf, 0, 3 * SG_PAGE, f.tag));
			CHECK(wt_read(w, 3 * SG_PAGE - 8, 32, kind) == 8);
			CHECK(wt_read(w, 3 * SG_PAGE + 8, 32, kind) == 0);
			CHECK(wt_read(w, 8 * SG_PAGE, 8, kind) == 0);
			CHECK(wt_read(w, SG_WINDOW_SIZE(height) - SG_PAGE, 8, kind) == 0);
			CHECK(read_ok(w, 4 * SG_PAGE, 4 * SG_PAGE, f.tag, kind));
			for (p = 0; p < 4; p++)
				wt_pattern((u64 *)(wt_buf + p * SG_PAGE), f.tag, p);
			CHECK(wt_write(w, 0, 4 * SG_PAGE, kind) == 3 * SG_PAGE);
			CHECK(wt_write(w, 3 * SG_PAGE, SG_PAGE, kind) == 0);
			CHECK(read_ok(w, 0, 3 * SG_PAGE, f.tag, kind));
			sg_window_wb(w, 0, 16 * SG_PAGE);	/* must not fault over holes */
			sg_windows_stats(ws, &st);
			CHECK(st.shorts);
		}
		sg_window_put(w);
	}
	sg_windows_destroy(ws);
}

/* Entries that are added to a hooked table are visible immediately. */
void case_growth(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height, level;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct sg_windows_stats st;
		struct sg_window *w;
		struct wt_file f;
		u64 flushes, p;

		wt_file_init(&f, height, 40 + height);
		w = get_hooked(ws, &f);
		if (!w)
			continue;
		sg_windows_stats(ws, &st);
		flushes = st.flushes;
		for (p = 0; p < 512; p++) {
			CHECK(wt_read(w, p * SG_PAGE, 8, WT_USER) == 0);
			wt_map_fresh(&f, p, 1);
			CHECK(read_ok(w, p * SG_PAGE, SG_PAGE, f.tag, WT_USER));
		}
		CHECK(read_ok(w, 0, 512 * SG_PAGE, f.tag, WT_USER));
		/* New tables at each level are visible as well. */
		for (level = 2; level <= height; level++) {
			p = 3ULL << (9 * (level - 1));
			CHECK(wt_read(w, p * SG_PAGE, 8, WT_KVEC) == 0);
			wt_map_fresh(&f, p, 1);
			CHECK(read_ok(w, p * SG_PAGE, SG_PAGE, f.tag, WT_KVEC));
		}
		sg_windows_stats(ws, &st);
		CHECK(st.flushes == flushes);
		sg_window_put(w);
	}
	sg_windows_destroy(ws);
}

/*
 * After a flush, removed entries are not visible any more (D7). Without the flush, reads would
 * sometimes return stale data.
 */
void case_removal(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct wt_file f, g;
		struct sg_window *w;
		unsigned int i, stale = 0, gone = 0;
		u64 old, new;

		wt_file_init(&f, height, 50 + height);
		wt_file_init(&g, height, 60 + height);	/* used only for its pages */
		old = wt_fresh(&f, 0, 1);
		new = wt_fresh(&g, 0, 1);
		w = get_hooked(ws, &f);
		for (i = 0; w && i < 500; i++) {
			wt_map(&f, 0, old, 1);
			sg_windows_flush(ws);
			CHECK(wt_read(w, 0, 64, WT_USER) == 64);

			WRITE_ONCE(*wt_entry(&f, 0, 1), 0);
			sg_windows_flush(ws);
			gone += wt_read(w, 0, 64, WT_USER) == 0;

			wt_map(&f, 0, new, 1);
			sg_windows_flush(ws);
			stale += !read_ok(w, 0, 64, g.tag, WT_USER);
		}
		CHECK(!w || gone == 500);
		CHECK(!stale);
		sg_window_put(w);

		/* Removes a complete table, one level below the root. */
		if (height == SG_WINDOW_2M)
			continue;
		wt_map(&f, 0, old, 1);
		w = get_hooked(ws, &f);
		if (w) {
			CHECK(read_ok(w, 0, 64, f.tag, WT_USER));
			WRITE_ONCE(f.root[0], 0);
			sg_windows_flush(ws);
			CHECK(wt_read(w, 0, 64, WT_USER) == 0);
		}
		sg_window_put(w);
	}
	sg_windows_destroy(ws);
}

/* The root of a file changes: after a flush, the window shows neither table. */
void case_lost(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct sg_window *w = wt_get(ws, height);
		struct wt_file f, g;
		u64 root = 0;

		if (!w)
			continue;
		wt_file_init(&f, height, 65 + height);
		wt_file_init(&g, height, 165 + height);
		wt_map_fresh(&f, 0, 1);
		wt_map_fresh(&g, 0, 1);
		CHECK(sg_window_hook_root(w, &root) == -EINVAL);
		root = wt_file_root(&f);
		CHECK(!sg_window_hook_root(w, &root));
		sg_windows_flush(ws);
		CHECK(read_ok(w, 0, SG_PAGE, f.tag, WT_USER) && !sg_window_lost(w));

		WRITE_ONCE(root, wt_file_root(&g));
		CHECK(read_ok(w, 0, SG_PAGE, f.tag, WT_USER) && !sg_window_lost(w));
		sg_windows_flush(ws);
		CHECK(wt_read(w, 0, 8, WT_USER) == 0 && sg_window_lost(w));
		sg_windows_flush(ws);
		CHECK(wt_read(w, 0, 8, WT_KVEC) == 0 && sg_window_lost(w));
		sg_window_put(w);

		w = wt_get(ws, height);
		if (w && CHECK(!sg_window_hook_root(w, &root)))
			CHECK(read_ok(w, 0, SG_PAGE, g.tag, WT_USER) && !sg_window_lost(w));
		sg_window_put(w);
	}
	sg_windows_destroy(ws);
}

void case_read_only(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;
	enum wt_iter kind;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++) {
		struct sg_window *w = wt_get(ws, height);
		struct wt_file f;

		if (!w)
			continue;
		wt_file_init(&f, height, 70 + height);
		wt_map_fresh(&f, 0, 1);
		CHECK(!sg_window_hook(w, wt_file_root(&f) & ~SG_PTE_WRITE));
		for (kind = WT_USER; kind < WT_ITERS; kind++) {
			CHECK(read_ok(w, 0, SG_PAGE, f.tag, kind));
			memset(wt_buf, 0, 8);
			CHECK(wt_write(w, 0, 8, kind) == 0);
			CHECK(read_ok(w, 0, SG_PAGE, f.tag, kind));
		}
		if (w->entries == 1)
			CHECK(!(READ_ONCE(*w->entry) & SG_PTE_WRITE));
		sg_window_put(w);
	}
	sg_windows_destroy(ws);
}

/*
 * A peer removes the write permission from an entry. The kernel's fault handler then reads the
 * entry through the linear mapping, so this case needs a range with a linear mapping.
 */
void case_no_write(void)
{
	struct sg_windows *ws;
	struct sg_window *w;
	struct wt_file f;
	enum wt_iter kind;

	if (!pfn_valid(PHYS_PFN(wt_range_phys()))) {
		pr_info("window_test: the range has no struct pages, case no_write skipped\n");
		return;
	}
	ws = wt_windows(0);
	wt_file_init(&f, SG_WINDOW_2M, 75);
	wt_map_fresh(&f, 0, 1);
	w = ws ? get_hooked(ws, &f) : NULL;
	if (w) {
		WRITE_ONCE(f.root[0], f.root[0] & ~SG_PTE_WRITE);
		sg_windows_flush(ws);
		memset(wt_buf, 0, 64);
		for (kind = WT_USER; kind < WT_ITERS; kind++)
			CHECK(wt_write(w, 0, 64, kind) == 0);
		CHECK(read_ok(w, 0, SG_PAGE, f.tag, WT_USER));
	}
	sg_window_put(w);
	sg_windows_destroy(ws);
}

void case_pool(void)
{
	const unsigned int max = 128, tries = 3 * max;
	struct sg_windows *ws = wt_windows(max);
	struct sg_windows_stats st;
	struct sg_window **w;
	struct wt_file f;
	unsigned int i, n, round;

	if (!ws)
		return;
	w = kvcalloc(tries, sizeof(*w), GFP_KERNEL);
	make_file(&f, SG_WINDOW_2M, 80);
	for (round = 0; CHECK(w) && round < 3; round++) {
		for (n = 0; n < tries; n++) {
			w[n] = sg_window_get(ws, SG_WINDOW_2M);
			if (!w[n])
				break;
			CHECK(!sg_window_hook(w[n], wt_file_root(&f)));
		}
		sg_windows_stats(ws, &st);
		/* Slots come from an arena, which may exceed the bound by less than one arena. */
		CHECK(n >= max && n < 2 * max);
		CHECK(st.slots[0] == n && st.used[0] == n);
		CHECK(st.refused == round + 1);
		for (i = 0; i < n; i++) {
			CHECK(!i || sg_window_addr(w[i]) != sg_window_addr(w[i - 1]));
			CHECK(read_ok(w[i], 0, 64 * SG_PAGE, f.tag, WT_USER));
		}
		for (i = 0; i < n; i++)
			sg_window_put(w[i]);
		sg_windows_stats(ws, &st);
		CHECK(!st.used[0] && st.hooks == (round + 1) * n);
	}
	kvfree(w);
	sg_windows_destroy(ws);
}

/* --- shadows -------------------------------------------------------------------------------- */

/* struct runs - a file's runs, made by the test in place of the engine's checked walk. */
struct runs {
	unsigned int count;
	struct {
		u64 page, pages, phys;
	} run[8];
	int err;
};

static int walk_runs(void *ctx, u64 page, u64 want, struct sg_shadow_run *run)
{
	struct runs *r = ctx;
	u64 next = page + want;
	unsigned int i;

	for (i = 0; i < r->count; i++) {
		u64 first = r->run[i].page, end = first + r->run[i].pages;

		if (page >= first && page < end) {
			run->phys = r->run[i].phys + (page - first) * SG_PAGE;
			run->pages = end - page;
			return r->err;
		}
		if (first > page)
			next = min(next, first);
	}
	run->phys = 0;
	run->pages = next - page;
	return r->err;
}

static void add_run(struct runs *r, struct wt_file *f, u64 page, u64 pages)
{
	r->run[r->count].page = page;
	r->run[r->count].pages = pages;
	r->run[r->count++].phys = wt_fresh(f, page, pages);
}

static void shadow_of_height(struct sg_windows *ws, unsigned int height)
{
	u64 last = (SG_WINDOW_SIZE(height) >> PAGE_SHIFT) - 1;
	struct wt_file f = { .height = height, .tag = 90 + height };
	struct wt_file g = { .height = height, .tag = 190 + height };
	struct sg_window *w;
	struct sg_shadow *sh;
	struct runs r = { };
	enum wt_iter kind;
	u64 keep;

	add_run(&r, &f, 0, 1);
	add_run(&r, &f, 2, 16);
	add_run(&r, &f, last, 1);
	if (height > SG_WINDOW_2M) {
		add_run(&r, &f, 1024, 512);	/* a large leaf */
		add_run(&r, &f, 1535, 1024);	/* long enough for a large leaf, but not aligned */
	}
	sh = sg_shadow_open(ws, height, walk_runs, &r);
	if (!sh) {
		CHECK(height == SG_WINDOW_512G && !wt_need_512g);
		return;
	}
	w = sg_shadow_window(sh);
	CHECK(wt_read(w, 0, 8, WT_USER) == 0);
	CHECK(!sg_shadow_fill(sh, 0, last + 1));
	for (kind = WT_USER; kind < WT_ITERS; kind++) {
		CHECK(read_ok(w, 0, SG_PAGE, f.tag, kind));
		CHECK(wt_read(w, 0, 2 * SG_PAGE, kind) == SG_PAGE);
		CHECK(read_ok(w, 2 * SG_PAGE, 16 * SG_PAGE, f.tag, kind));
		CHECK(read_ok(w, last * SG_PAGE, SG_PAGE, f.tag, kind));
		if (height > SG_WINDOW_2M) {
			CHECK(read_ok(w, 1024 * SG_PAGE, SZ_2M, f.tag, kind));
			CHECK(read_ok(w, 1535 * SG_PAGE, SZ_4M, f.tag, kind));
		}
	}

	/* Growth: a fill adds the new part, and existing entries stay. */
	add_run(&r, &f, 100, 32);
	CHECK(wt_read(w, 100 * SG_PAGE, 8, WT_USER) == 0);
	CHECK(!sg_shadow_fill(sh, 90, 60));
	CHECK(read_ok(w, 100 * SG_PAGE, 32 * SG_PAGE, f.tag, WT_USER));
	CHECK(read_ok(w, 0, SG_PAGE, f.tag, WT_USER));

	/*
	 * Change: the shadow shows the old pages until it is cleared, then no pages, and after a
	 * fill the new pages.
	 */
	keep = r.run[1].phys;
	r.run[1].phys = wt_fresh(&g, 2, 16);
	CHECK(!sg_shadow_fill(sh, 2, 16));
	CHECK(read_ok(w, 2 * SG_PAGE, 16 * SG_PAGE, f.tag, WT_USER));
	sg_shadow_clear(sh, 2, 16);
	CHECK(wt_read(w, 2 * SG_PAGE, 8, WT_USER) == 0);
	CHECK(read_ok(w, 100 * SG_PAGE, 32 * SG_PAGE, f.tag, WT_USER));
	CHECK(!sg_shadow_fill(sh, 2, 16));
	CHECK(read_ok(w, 2 * SG_PAGE, 16 * SG_PAGE, g.tag, WT_USER));
	r.run[1].phys = keep;
	sg_shadow_clear(sh, 0, U64_MAX);
	CHECK(wt_read(w, 0, 8, WT_USER) == 0);
	CHECK(wt_read(w, 100 * SG_PAGE, 8, WT_USER) == 0);
	CHECK(!sg_shadow_fill(sh, 0, U64_MAX));
	CHECK(read_ok(w, 2 * SG_PAGE, 16 * SG_PAGE, f.tag, WT_USER));
	CHECK(read_ok(w, last * SG_PAGE, SG_PAGE, f.tag, WT_USER));

	/* Fills fail if the walk fails, or returns pages outside the volume. */
	r.err = -EIO;
	CHECK(sg_shadow_fill(sh, 0, 1) == -EIO);
	r.err = 0;
	r.run[r.count].page = 200;
	r.run[r.count].pages = 2;
	r.run[r.count++].phys = wt_range_phys() + wt_range_size() - SG_PAGE;
	CHECK(sg_shadow_fill(sh, 200, 2) == -EUCLEAN);
	r.run[r.count - 1].phys = 8;
	CHECK(sg_shadow_fill(sh, 200, 2) == -EUCLEAN);
	CHECK(wt_read(w, 200 * SG_PAGE, 8, WT_USER) == 0);
	sg_shadow_close(sh);
}

void case_shadow(void)
{
	struct sg_windows *ws = wt_windows(0);
	unsigned int height;

	for (height = SG_WINDOW_2M; ws && height <= SG_WINDOW_512G; height++)
		shadow_of_height(ws, height);
	sg_shadow_close(NULL);
	sg_windows_destroy(ws);
}
