/* SPDX-License-Identifier: GPL-2.0 */
/* Freeze: all systems stop storing while one copies the volume (docs/snapshots.md). */
#ifndef SG_ENGINE_FREEZE_H
#define SG_ENGINE_FREEZE_H

#include "engine/volume.h"

/*
 * Freezes all systems, for @limit_ms at most. 0: memory is in a state as after a power cut, with no
 * operation in progress. -EBUSY: a system does not freeze, or another copy is in progress. -EROFS,
 * -EIO. All errors come with why; then all systems continue as before.
 */
int sg_freeze(struct sg_vol *vol, unsigned int limit_ms, char why[200]);
/*
 * Ends the freeze. 0: all systems were frozen throughout; -EAGAIN: one was not, so the copy is
 * void.
 */
int sg_thaw(struct sg_vol *vol);
#define SG_FREEZE_MS	2000	/* the default */
/*
 * Freezes this system while another system copies; waits until all operations in progress here have
 * ended. A thread of its own calls it again after the time (ms) that it returns. -EIO: this system
 * has been fenced.
 */
int sg_freeze_watch(struct sg_vol *vol);
/* That thread has ended: this system and all systems that are frozen for it continue. */
void sg_freeze_watch_end(struct sg_vol *vol);

#endif
