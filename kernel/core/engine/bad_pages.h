/* SPDX-License-Identifier: GPL-2.0 */
/* Bad pages: memory that the hardware can no longer read (docs/bad-memory.md). */
#ifndef SG_ENGINE_BAD_PAGES_H
#define SG_ENGINE_BAD_PAGES_H

#include "engine/volume.h"

/*
 * Marks these bytes as unreadable, or as readable again. All systems see the change at once. Takes
 * no lock, and needs no slot. 1: the list has changed; 0: the list said so already. -ENOSPC: the
 * list is full. -EINVAL: outside the volume.
 */
int sg_bad_add(struct sg_vol *vol, u64 off, u64 bytes);
int sg_bad_remove(struct sg_vol *vol, u64 off, u64 bytes);
/* Entry @i of the list, from 0. False: there are no more entries. An entry of 0 pages is unused. */
bool sg_bad_entry(const struct sg_vol *vol, unsigned int i, u64 *page, u64 *pages);
bool sg_is_bad(const struct sg_vol *vol, u64 off, u64 pages);	/* any of them */
/* The number of these pages before the first bad one. */
u64 sg_good_pages(const struct sg_vol *vol, u64 off, u64 pages);
/*
 * The list of bad pages is not empty. All data paths ask this, so it is one load. It loads the
 * list's word, or, once this system has found bad pages itself, a word in its own memory.
 */
static inline bool sg_has_bad(const struct sg_vol *vol)
{
	return sg_load64(*(const u64 *const volatile *)&vol->bads);
}
/* The page with these bytes, which the caller needs, is bad. */
static inline bool sg_is_lost(const struct sg_vol *vol, u64 off)
{
	return sg_has_bad(vol) && sg_is_bad(vol, off & ~(SG_PAGE - 1), 1);
}
/*
 * This system has stopped and reads nothing of the volume any more. Either vital pages are bad
 * (bad_pages.c), or a later run of this system has the slot (slots.c). A caller that does not check
 * sg_is_ours() first checks this.
 */
static inline bool sg_has_stopped(const struct sg_vol *vol)
{
	return *(const u64 *const volatile *)&vol->state == &vol->stopped;
}
u64 sg_bad_pages(const struct sg_vol *vol);
/* A page is bad without which no part of the volume can be found. @off: the first such page. */
bool sg_bad_vital(const struct sg_vol *vol, u64 *off);
/* -EIO, with vol->why, if that is so: for a caller that is about to use the volume. */
int sg_bad_refuse(struct sg_vol *vol);
/* The role of this page in the volume: text for messages. */
const char *sg_page_role(const struct sg_vol *vol, u64 off);

#endif
