/* SPDX-License-Identifier: GPL-2.0 */
/* Totals, health, and waiting for space. */
#ifndef SG_ENGINE_SPACE_H
#define SG_ENGINE_SPACE_H

#include "engine/volume.h"

struct sg_statfs {
	u64 pages, free_pages, inodes, used_inodes;
};
/* Exact. Pays debts first, so that freed space counts as free. */
int sg_statfs(struct sg_vol *vol, struct sg_statfs *out);
/**
 * struct sg_health - what the volume says of how it fares
 * @epoch: of the volume; @acknowledged: by our slot, or 0
 * @errors: met so far; @error_ino: the inode of the last one
 */
struct sg_health {
	u64 epoch, acknowledged, errors, error_ino;
};
int sg_health(const struct sg_vol *vol, struct sg_health *out);	/* -EIO: that page is bad memory */
/* Pages of the longest free piece. Looks at every chunk: not for those who ask often. */
u64 sg_largest_free(const struct sg_vol *vol);
/* Pays up to @budget debts; returns how many remain, or -errno. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget);
/* struct sg_hunger - since when somebody has found no space; 0 to begin with, and after progress */
struct sg_hunger {
	u64 since;
};
/*
 * For who has got -ENOSPC: pays, and waits for others, for 2 s in all. True: try again. False: it
 * is no use.
 */
bool sg_more_space(struct sg_vol *vol, struct sg_hunger *hunger);

#endif
