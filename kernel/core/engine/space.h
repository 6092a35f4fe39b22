/* SPDX-License-Identifier: GPL-2.0 */
/* Totals, health, and waiting for space. */
#ifndef SG_ENGINE_SPACE_H
#define SG_ENGINE_SPACE_H

#include "engine/volume.h"

struct sg_statfs {
	u64 pages, free_pages, inodes, used_inodes;
};
/* Returns exact totals. Reclaims first, so that deferred frees count as free space. */
int sg_statfs(struct sg_vol *vol, struct sg_statfs *out);
/**
 * struct sg_health - state of the volume
 * @epoch: of the volume; @acknowledged: the last epoch that this slot acknowledged, or 0
 * @errors: number of damages found; @error_ino: the inode of the last one
 */
struct sg_health {
	u64 epoch, acknowledged, errors, error_ino;
};
int sg_health(const struct sg_vol *vol, struct sg_health *out);	/* -EIO: the hot page is bad */
/* Returns the statistics of this system since it joined. */
struct sg_counters sg_counters(const struct sg_vol *vol);
/*
 * Returns the number of pages of the longest free range. It reads every chunk, so it is not for
 * frequent calls.
 */
u64 sg_largest_free(const struct sg_vol *vol);
/* Reclaims up to @budget deferred frees; returns the number that remains, or -errno. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget);
/**
 * struct sg_nospace - a caller that has found no space
 * @since: the time when it first found none; 0 before that, and after progress.
 * @gives_way: sg_more_space() has ended its wait for other threads here: -EINTR.
 */
struct sg_nospace {
	u64 since;
	bool gives_way;
};
/*
 * For sg_vol.room_locked: the thread waited not for a lock, but for deferred frees of other
 * systems.
 */
#define SG_ROOM_OTHERS	(~0ULL)
/*
 * For a caller that got -ENOSPC: reclaims, and waits for other systems, up to 2 s in total. Returns
 * true if the caller may try again, and false if no page will become free, or if the thread gives
 * way (sg_vol.gives_way).
 */
bool sg_more_space(struct sg_vol *vol, struct sg_nospace *nospace);
/*
 * Waits until the lock at @lock is free, for a caller that holds no lock. That lock belongs to the
 * only chunk with free pages (sg_vol.room_locked). -ENOSPC: the lock was not free within @ns.
 */
int sg_wait_room(struct sg_vol *vol, u64 lock, u64 ns);

#endif
