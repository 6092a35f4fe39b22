/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows: kernel addresses into which a file table is spliced (D5, P1 3.4), so that the MMU
 * locates "window + file offset". window_arena.c makes them, window.c hooks tables into them,
 * window_copy.c copies through them, shadow.c builds private tables for them.
 *
 * Functions for each data path:
 *   map=walk    none of these
 *   map=splice  sg_window_get(), sg_window_hook() with the file's root, copies
 *   map=shadow  sg_shadow_open(), sg_shadow_fill(), copies through sg_shadow_window()
 *
 * Every call may sleep unless its description says otherwise, and needs interrupts enabled.
 */
#ifndef SG_WINDOW_H
#define SG_WINDOW_H

#include <linux/types.h>

struct iov_iter;
struct sg_windows;
struct sg_window;
struct sg_shadow;

/*
 * The height of a window is the height of the file table that fits into it, as in SG_ROOT_HEIGHT().
 * Files of height 0 (one page) and 4 (above 512 GiB) have no window: walk them.
 */
#define SG_WINDOW_2M		1u
#define SG_WINDOW_1G		2u
#define SG_WINDOW_512G		3u
#define SG_WINDOW_HEIGHTS	3u

#define SG_WINDOW_SIZE(height)	(1ULL << (12 + 9 * (height)))

/**
 * sg_windows_supported() - report whether this kernel, on this machine, can have windows
 * @why: if not, set to the reason, as text that follows "map=splice is not possible: "
 *
 * Xen PV guests do not own their page tables. With memory encryption (SME, SEV, TDX) the address
 * field of an entry means something else on each system.
 */
bool sg_windows_supported(const char **why);

/**
 * sg_windows_create() - the windows of one volume
 * @base: physical address of the volume
 * @size: its size in bytes; only tables and leaves inside [@base, @base + @size) are hooked
 * @linear: linear, write-back mapping of the whole volume, for reading the entries of tables that
 *	cannot be hooked as a whole (see window.c)
 * @max: limit of windows of 2 MiB, and of windows of 1 GiB (of 512 GiB there are a few). 0: default
 *
 * The call is cheap: the first sg_window_get() of a size makes many slots, which stay in the pool.
 * Return: the pool, or ERR_PTR: -EOPNOTSUPP (see sg_windows_supported()), -ENOSPC (no unused
 * physical addresses to borrow), -ENOMEM.
 */
struct sg_windows *sg_windows_create(phys_addr_t base, u64 size, void *linear, unsigned int max);

/** sg_windows_extend() - the volume has become larger: @size bytes, at the same place */
void sg_windows_extend(struct sg_windows *ws, u64 size);

/**
 * sg_windows_destroy() - return all addresses to the kernel
 * @ws: pool whose windows and shadows have all been put; NULL is fine
 */
void sg_windows_destroy(struct sg_windows *ws);

/**
 * sg_windows_flush() - drop, on all CPUs, every translation whose entry has been removed
 * @ws: the pool
 *
 * D7 requires it: a system calls this after it has seen an epoch that freed pages or table pages,
 * and before it acknowledges that epoch. Closing a window does not flush by itself (a slot is not
 * reused before the next flush), so a system also calls this before it frees private tables.
 *
 * Also empties the windows whose root has changed (sg_window_hook_root()): the pages that they show
 * may be about to be reused.
 */
void sg_windows_flush(struct sg_windows *ws);

/**
 * struct sg_windows_stats - counters, for sysfs
 * @slots: windows that exist, by height - 1
 * @used: windows that are handed out, by height - 1
 * @hooks: tables hooked so far
 * @flushes: flushes of all CPUs so far
 * @refused: sg_window_get() calls that returned NULL
 * @shorts: copies that ended early: an entry was missing, or the user's buffer faulted
 */
struct sg_windows_stats {
	unsigned int slots[SG_WINDOW_HEIGHTS];
	unsigned int used[SG_WINDOW_HEIGHTS];
	u64 hooks;
	u64 flushes;
	u64 refused;
	u64 shorts;
};

void sg_windows_stats(struct sg_windows *ws, struct sg_windows_stats *st);

/**
 * sg_window_get() - take an empty window from the pool
 * @ws: the pool
 * @height: SG_WINDOW_2M, SG_WINDOW_1G or SG_WINDOW_512G; any other value returns NULL
 *
 * Return: a window, or NULL if none is free now, or this machine has none of that height. NULL is
 * no error: the caller then walks.
 */
struct sg_window *sg_window_get(struct sg_windows *ws, unsigned int height);

/**
 * sg_window_hook() - hook a file table into a window: one store, no flush
 * @w: an empty window
 * @entry: entry or root word (sg_root()) naming a table of the window's height, or a leaf as large
 *	as the window (SG_PTE_HUGE). Without SG_PTE_WRITE the window is read-only, whatever the
 *	table's flags are. Only the address and these two flags are used.
 *
 * The table is not checked: any system that can write it determines which memory this one reads and
 * writes (D5, D10). Entries that a peer adds later are visible immediately; entries that it removes
 * disappear only after sg_windows_flush().
 * Return: 0; -EINVAL when the table is not inside the volume; -EBUSY when @w is hooked.
 */
int sg_window_hook(struct sg_window *w, u64 entry);

/**
 * sg_window_hook_root() - as sg_window_hook(), and watch the file's root
 * @w: an empty window
 * @root: the file's root word in the volume (sg_inode.table, in the linear mapping); must stay
 *	readable while the window is hooked
 *
 * A flush of a table's translations has no effect while the table itself stays hooked. So the first
 * sg_windows_flush() after the root word has changed empties the window. Copies then end
 * immediately, and sg_window_lost() reports it. Use this function to hook a file of the volume.
 */
int sg_window_hook_root(struct sg_window *w, const u64 *root);

/**
 * sg_window_lost() - report whether a flush has emptied the window
 * @w: a window from sg_window_hook_root()
 *
 * If so, put the window, and get one that fits the new root.
 */
bool sg_window_lost(const struct sg_window *w);

/**
 * sg_window_unhook() - empty a window
 * @w: the window; no copy through it may be running, and none may start
 *
 * The table's pages must not be freed before sg_windows_flush() (on this system; D7 for others).
 */
void sg_window_unhook(struct sg_window *w);

/**
 * sg_window_put() - unhook a window if necessary, and return it to its pool
 * @w: the window, or NULL
 */
void sg_window_put(struct sg_window *w);

/** sg_window_addr() - the window's first address; only for copies that survive a fault */
void *sg_window_addr(const struct sg_window *w);
/** sg_window_size() - the window's length in bytes: SG_WINDOW_SIZE(height) */
u64 sg_window_size(const struct sg_window *w);

/**
 * sg_window_copy_to_iter() - read through a window
 * @w: a hooked window
 * @pos: offset in the file
 * @len: bytes; the part beyond the window's end is not copied
 * @to: target; advanced by the copied length
 *
 * Never oopses: ends early at a page without entry (a hole, or a peer removed it), and when the
 * user's buffer faults. The caller then walks, which shows the reason.
 * Return: bytes copied.
 */
size_t sg_window_copy_to_iter(struct sg_window *w, u64 pos, size_t len, struct iov_iter *to);

/**
 * sg_window_copy_from_iter() - write through a window, in place, and start write-back
 * @w: a window hooked with SG_PTE_WRITE; nothing is copied otherwise
 * @pos: offset in the file
 * @len: bytes; the part beyond the window's end is not copied
 * @from: source; advanced by the copied length
 *
 * As sg_window_copy_to_iter(). On return, the write-back of the written lines has begun; they are
 * durable after the caller's store fence.
 * Return: bytes copied.
 */
size_t sg_window_copy_from_iter(struct sg_window *w, u64 pos, size_t len, struct iov_iter *from);

/**
 * sg_window_wb() - start write-back of a range of a window, surviving missing entries
 * @w: a hooked window
 * @pos: offset in the file
 * @len: bytes
 *
 * Pages without entry are skipped: nothing was written through them. Does not fence. Never sleeps.
 */
void sg_window_wb(struct sg_window *w, u64 pos, size_t len);

/*
 * Shadows (D5): a table in the system's own RAM, filled with checked leaves, hooked into a window.
 * Later changes of the volume's bytes do not affect it, so it is as safe against any peer as the
 * walk.
 */

/**
 * struct sg_shadow_run - an extent of a file, as the checked walk finds it
 * @phys: physical address of its first page; 0 is a hole
 * @pages: length, at least 1; may reach beyond the requested range
 */
struct sg_shadow_run {
	phys_addr_t phys;
	u64 pages;
};

/**
 * typedef sg_shadow_walk_t - finds the run that starts at a page of the file
 * @ctx: the @ctx of sg_shadow_open()
 * @page: page number in the file
 * @want: number of wanted pages
 * @run: the result
 *
 * Return: 0 or -errno, which ends sg_shadow_fill().
 */
typedef int (*sg_shadow_walk_t)(void *ctx, u64 page, u64 want, struct sg_shadow_run *run);

/**
 * sg_shadow_open() - make an empty private table, hooked into its own window
 * @ws: the pool
 * @height: of the window
 * @walk: called by sg_shadow_fill()
 * @ctx: for @walk
 *
 * Return: the shadow, or NULL: no window or no memory, and the caller walks.
 */
struct sg_shadow *sg_shadow_open(struct sg_windows *ws, unsigned int height, sg_shadow_walk_t walk,
				 void *ctx);

/**
 * sg_shadow_fill() - copy checked leaves of [@first, @first + @pages) into the empty entries there
 * @sh: the shadow
 * @first: page number
 * @pages: count; pages beyond the window's end are ignored
 *
 * Leaves are large where the run's address and length allow. Present entries are kept: after pages
 * of a file were *replaced* or removed, call sg_shadow_clear() first. Calls for one shadow must
 * exclude each other (and sg_shadow_clear()); copies may run meanwhile.
 * Return: 0; -ENOMEM (some may be filled); the error of the walk; -EUCLEAN when the walk named an
 * address outside the volume.
 */
int sg_shadow_fill(struct sg_shadow *sh, u64 first, u64 pages);

/**
 * sg_shadow_clear() - remove the leaves of [@first, @first + @pages), and flush
 * @sh: the shadow
 * @first: page number; a large leaf that overlaps the range is removed completely
 * @pages: count; U64_MAX for all
 *
 * Copies that run meanwhile end early and continue by walking. Refill with sg_shadow_fill().
 */
void sg_shadow_clear(struct sg_shadow *sh, u64 first, u64 pages);

/** sg_shadow_window() - the window to copy through */
struct sg_window *sg_shadow_window(const struct sg_shadow *sh);

/**
 * sg_shadow_close() - unhook, flush, free the table
 * @sh: a shadow without running copies, or NULL
 */
void sg_shadow_close(struct sg_shadow *sh);

#endif
