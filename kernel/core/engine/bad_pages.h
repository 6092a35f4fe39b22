/* SPDX-License-Identifier: GPL-2.0 */
/* Bad pages: memory that the hardware can no longer read (docs/bad-memory.md). */
#ifndef SG_ENGINE_BAD_PAGES_H
#define SG_ENGINE_BAD_PAGES_H

#include "engine/volume.h"

/*
 * Marks these bytes as unreadable, or as readable again. All systems see the change immediately.
 * The call takes no lock, and needs no slot. 1: the list has changed; 0: the bytes were marked so
 * before. -ENOSPC: the list is full. -EINVAL: the bytes are outside the volume.
 */
int sg_bad_add(struct sg_vol *vol, u64 off, u64 bytes);
int sg_bad_remove(struct sg_vol *vol, u64 off, u64 bytes);
/*
 * Returns entry @i of the list, counted from 0. False: there are no more entries. An entry of 0
 * pages is unused.
 */
bool sg_bad_entry(const struct sg_vol *vol, unsigned int i, u64 *page, u64 *pages);
/* reports whether any of these pages is bad */
bool sg_is_bad(const struct sg_vol *vol, u64 off, u64 pages);
/* Returns the number of these pages before the first bad one. */
u64 sg_good_pages(const struct sg_vol *vol, u64 off, u64 pages);
/*
 * Reports whether the list of bad pages is not empty. All data paths call it, so it is one load. It
 * loads the list's word; after this system has found a bad page itself, it loads a word in the
 * system's own memory.
 */
static inline bool sg_has_bad(const struct sg_vol *vol)
{
	return sg_load64(*(const u64 *const volatile *)&vol->bads);
}
/* Reports whether any page with these bytes is bad, for a caller that needs all of them. */
static inline bool sg_is_lost(const struct sg_vol *vol, u64 off)
{
	return sg_has_bad(vol) && sg_is_bad(vol, off & ~(SG_PAGE - 1), 1);
}
/*
 * Reports whether this system has stopped: it reads nothing of the volume any more. Either vital
 * pages are bad (bad_pages.c), or a later run of this system has the slot (slots.c). A caller that
 * does not check sg_is_ours() first must call this.
 */
static inline bool sg_has_stopped(const struct sg_vol *vol)
{
	return *(const u64 *const volatile *)&vol->state == &vol->stopped;
}
u64 sg_bad_pages(const struct sg_vol *vol);
/*
 * Reports whether a vital page is bad: without it no part of the volume can be found. @off: the
 * first such page.
 */
bool sg_bad_vital(const struct sg_vol *vol, u64 *off);
/*
 * Returns -EIO, with vol->why, if a vital page is bad. For a caller that is about to use the
 * volume.
 */
int sg_bad_refuse(struct sg_vol *vol);
/* Returns the role of this page in the volume, as text for messages. */
const char *sg_page_role(const struct sg_vol *vol, u64 off);

#endif
