/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations for the parts of the window test. */
#ifndef WT_H
#define WT_H

#include <linux/types.h>

#include "format/format.h"
#include "window.h"

/* --- tables.c: file tables, built manually in the shared range ------------------------------ */

/* The range under test. Each page is allocated at most once, and is not freed. */
int wt_range_open(phys_addr_t phys, u64 size);
void wt_range_close(void);
phys_addr_t wt_range_phys(void);
u64 wt_range_size(void);
void *wt_range_linear(void);
void *wt_virt(u64 phys);
u64 wt_alloc(u64 size);			/* returns a physical address, aligned to @size */

/* struct wt_file - a table of level @height. The file's contents have the number @tag. */
struct wt_file {
	unsigned int height;
	u32 tag;
	u64 *root;
	u64 root_phys;
};

void wt_file_init(struct wt_file *f, unsigned int height, u32 tag);
u64 wt_file_root(const struct wt_file *f);		/* returns the root word */
u64 *wt_entry(struct wt_file *f, u64 page, unsigned int level);	/* makes the upper tables */
/* allocates pages with the contents of @page and the following ones */
u64 wt_fresh(struct wt_file *f, u64 page, u64 pages);
void wt_map(struct wt_file *f, u64 page, u64 phys, unsigned int level);
void wt_map_fresh(struct wt_file *f, u64 page, unsigned int level);
void wt_pattern(u64 *words, u32 tag, u64 page);		/* fills one page */
bool wt_matches(const void *buf, u64 pos, size_t len, u32 tag);	/* compares complete words */

/* --- main.c --------------------------------------------------------------------------------- */

extern bool wt_no_flush;
extern bool wt_need_512g;
extern unsigned int wt_cycles;

struct sg_windows *wt_windows(unsigned int max);	/* without flushes if wt_no_flush is set */
/* Takes a window. Returns NULL if this machine cannot have one, or after a reported failure. */
struct sg_window *wt_get(struct sg_windows *ws, unsigned int height);

enum wt_iter { WT_USER, WT_KVEC, WT_ITERS };
#define WT_BUF	(4u << 20)	/* length of the longest copy */
extern u8 *wt_buf;

/*
 * Copy to and from wt_buf through the window, with either kind of iterator. Return the bytes
 * copied.
 */
size_t wt_read(struct sg_window *w, u64 pos, size_t len, enum wt_iter kind);
size_t wt_write(struct sg_window *w, u64 pos, size_t len, enum wt_iter kind);

/* Counts a check, and prints it if it failed. */
bool wt_check(bool ok, const char *what, const char *func, int line);
#define CHECK(x)	wt_check(!!(x), #x, __func__, __LINE__)

/* --- cases.c, threads.c --------------------------------------------------------------------- */

void case_refusals(void);
void case_contents(void);
void case_holes(void);
void case_growth(void);
void case_removal(void);
void case_lost(void);
void case_read_only(void);
void case_no_write(void);
void case_pool(void);
void case_shadow(void);
void case_cycles(void);
void case_torn(void);

#endif
