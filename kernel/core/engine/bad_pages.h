/* SPDX-License-Identifier: GPL-2.0 */
/* Pages whose memory is bad (docs/bad-memory.md). */
#ifndef SG_ENGINE_BAD_PAGES_H
#define SG_ENGINE_BAD_PAGES_H

#include "engine/volume.h"

/*
 * The memory of these bytes cannot be read any more, or can again. All systems see that at once.
 * Takes no lock, and needs no slot. 1: the list has changed; 0: it said so already. -ENOSPC: it is
 * full. -EINVAL: outside the volume.
 */
int sg_bad_add(struct sg_vol *vol, u64 off, u64 bytes);
int sg_bad_remove(struct sg_vol *vol, u64 off, u64 bytes);
/* Entry @i of the list, from 0 on. False: there are no more. An entry of no pages is none. */
bool sg_bad_entry(const struct sg_vol *vol, unsigned int i, u64 *page, u64 *pages);
bool sg_is_bad(const struct sg_vol *vol, u64 off, u64 pages);	/* any of them */
/* Of these, those before the first bad one. */
u64 sg_good_pages(const struct sg_vol *vol, u64 off, u64 pages);
/* Some are known of. Asked on all ways, so it is one word: of our own, as soon as that says so. */
static inline bool sg_has_bad(const struct sg_vol *vol)
{
	return sg_load64(*(const u64 *const volatile *)&vol->bads);
}
/* The page with these bytes, which one would take for granted, is bad. */
static inline bool sg_is_lost(const struct sg_vol *vol, u64 off)
{
	return sg_has_bad(vol) && sg_is_bad(vol, off & ~(SG_PAGE - 1), 1);
}
/*
 * This system has stopped and looks at nothing of the volume any more: vital memory is bad
 * (bad_pages.c), or a later run of this system has the slot (slots.c). A caller that does not check
 * sg_is_ours() first checks this.
 */
static inline bool sg_has_stopped(const struct sg_vol *vol)
{
	return *(const u64 *const volatile *)&vol->state == &vol->stopped;
}
u64 sg_bad_pages(const struct sg_vol *vol);
/* Some are bad without which nothing of the volume can be found. Where the first of them are. */
bool sg_bad_vital(const struct sg_vol *vol, u64 *off);
/* -EIO, with vol->why, if that is so: for who is about to use the volume. */
int sg_bad_refuse(struct sg_vol *vol);
/* What this page is to the volume: as text, for people. */
const char *sg_page_role(const struct sg_vol *vol, u64 off);

#endif
