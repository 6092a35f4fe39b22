/* SPDX-License-Identifier: GPL-2.0 */
/* All systems stop for a copy of the volume (docs/snapshots.md). */
#ifndef SG_ENGINE_FREEZE_H
#define SG_ENGINE_FREEZE_H

#include "engine/volume.h"

/*
 * All systems stand still, for @limit_ms at most: 0. From then on what is in memory is what a power
 * cut would leave, with nothing under way. -EBUSY: one of them does not, or another copy is being
 * made; -EROFS, -EIO; with why. All go on as before then.
 */
int sg_freeze(struct sg_vol *vol, unsigned int limit_ms, char why[200]);
/* They go on. 0: all have stood still since; -EAGAIN: somebody has not, so the copy is void. */
int sg_thaw(struct sg_vol *vol);
#define SG_FREEZE_MS	2000	/* as a rule */
/*
 * Does our part when others copy; waits until all that is under way here has ended. For a thread of
 * its own, after the time (ms) that it returns; -EIO: we have been declared dead.
 */
int sg_stand(struct sg_vol *vol);
/* That thread comes no more: we go on, and so do all who stand still for us. */
void sg_stand_end(struct sg_vol *vol);

#endif
