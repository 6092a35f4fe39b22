/* SPDX-License-Identifier: GPL-2.0 */
/* Totals, health, and waiting for space. */
#ifndef SG_ENGINE_SPACE_H
#define SG_ENGINE_SPACE_H

#include "engine/volume.h"

struct sg_statfs {
	u64 pages, free_pages, inodes, used_inodes;
};
/* Exact. Reclaims first, so that deferred frees count as free space. */
int sg_statfs(struct sg_vol *vol, struct sg_statfs *out);
/**
 * struct sg_health - state of the volume
 * @epoch: of the volume; @acknowledged: by this slot, or 0
 * @errors: found so far; @error_ino: the inode of the last one
 */
struct sg_health {
	u64 epoch, acknowledged, errors, error_ino;
};
int sg_health(const struct sg_vol *vol, struct sg_health *out);	/* -EIO: the hot page is bad */
/* Statistics of this system since it joined. */
struct sg_counters sg_counters(const struct sg_vol *vol);
/* Pages of the longest free range. Looks at every chunk: not for frequent calls. */
u64 sg_largest_free(const struct sg_vol *vol);
/* Reclaims up to @budget deferred frees; returns the number that remains, or -errno. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget);
/* struct sg_nospace - when a caller first found no space; 0 at first, and again after progress */
struct sg_nospace {
	u64 since;
};
/*
 * For a caller that got -ENOSPC: reclaims, and waits for other systems, for 2 s in all. True: try
 * again. False: nothing will become free.
 */
bool sg_more_space(struct sg_vol *vol, struct sg_nospace *nospace);
/*
 * The only free pages are in a chunk whose lock is at @lock (sg_vol.room_locked). Waits until it is
 * free; with no lock held. -ENOSPC: not in @ns.
 */
int sg_wait_room(struct sg_vol *vol, u64 lock, u64 ns);

#endif
