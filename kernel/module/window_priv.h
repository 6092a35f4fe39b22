/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that window.c, window_arena.c, window_copy.c and shadow.c share. */
#ifndef SG_WINDOW_PRIV_H
#define SG_WINDOW_PRIV_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "format/format.h"
#include "window.h"

/**
 * struct sg_windows - the windows of one volume
 * @base: physical address of the volume
 * @size: its size
 * @linear: linear mapping of the volume
 * @max: bound on @slots of 2 MiB and 1 GiB
 * @grow: held while slots are being made
 * @arenas: the source of the slots, under @grow
 * @lock: guards everything below
 * @clean: empty slots by height - 1, ready to be hooked
 * @stale: empty slots for whose last table some CPU may still have translations
 * @hooked: windows that show a table
 * @slots: windows made, by height - 1
 * @used: windows handed out, by height - 1
 * @hooks: counter
 * @flushes: counter
 * @refused: counter
 * @shorts: counter
 * @no_flush: tests only: omit all flushes, to show that the tests detect this
 */
struct sg_windows {
	phys_addr_t base;
	u64 size;
	void *linear;
	unsigned int max;

	struct mutex grow;
	struct list_head arenas;

	spinlock_t lock;
	struct list_head clean[SG_WINDOW_HEIGHTS];
	struct list_head stale;
	struct list_head hooked;
	unsigned int slots[SG_WINDOW_HEIGHTS];
	unsigned int used[SG_WINDOW_HEIGHTS];

	atomic64_t hooks;
	atomic64_t flushes;
	atomic64_t refused;
	atomic64_t shorts;
#ifdef SG_WINDOW_TEST
	bool no_flush;
#endif
};

/**
 * struct sg_window - a slot: addresses that the pool holds, and the entries that map them
 * @list: in sg_windows.clean or .stale; when handed out and hooked, in .hooked
 * @ws: the pool
 * @addr: first address
 * @entry: @entries consecutive words of the kernel's page table
 * @saved: the kernel's values, to be restored before the addresses are returned
 * @entries: 1, or 512 where a window of 512 GiB has no entry of its own
 * @height: SG_WINDOW_2M, ...
 * @mirror: the level 3 table that a mirrored window shows
 * @root: the file's root word in the volume, or NULL
 * @word: the value of @root when the table was hooked
 * @bounded: entries of @mirror are used only if they lead inside the volume
 * @write: whether the window is writable
 * @hooked: whether it shows a table
 * @lost: hooked, but emptied by a flush because @root has changed
 * @stale: not hooked, and not yet flushed since it was
 */
struct sg_window {
	struct list_head list;
	struct sg_windows *ws;
	void *addr;
	u64 *entry;
	u64 *saved;
	unsigned int entries;
	unsigned int height;
	const u64 *mirror;
	const u64 *root;
	u64 word;
	bool bounded;
	bool write;
	bool hooked;
	bool lost;
	bool stale;
};

/* Report whether [phys, phys + len) is inside the volume. */
static inline bool sg_windows_hold(const struct sg_windows *ws, phys_addr_t phys, u64 len)
{
	u64 size = READ_ONCE(ws->size);

	return phys >= ws->base && len <= size && phys - ws->base <= size - len;
}

/* window_arena.c: the borrowed physical addresses, and slots made of them (under @ws->grow). */
int sg_borrow_get(void);
void sg_borrow_put(void);
int sg_arena_make(struct sg_windows *ws, unsigned int height);
void sg_arenas_free(struct sg_windows *ws);
unsigned int sg_slots_max(const struct sg_windows *ws, unsigned int height);

/* Make all CPUs drop the windows' translations, and with @globals the kernel's, too. */
void sg_windows_flush_cpus(struct sg_windows *ws, bool globals);

/* Hook a private table of this system (of level w->height), which lies outside the volume. */
int sg_window_hook_private(struct sg_window *w, u64 *table);
/* Copy entries that a mirrored window's table has got since; false: there are none. */
bool sg_window_refresh(struct sg_window *w);

#endif
