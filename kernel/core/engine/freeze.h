/* SPDX-License-Identifier: GPL-2.0 */
/* Freeze: all systems stop storing while one copies the volume (docs/snapshots.md). */
#ifndef SG_ENGINE_FREEZE_H
#define SG_ENGINE_FREEZE_H

#include "engine/volume.h"

/*
 * Freezes all systems, for @limit_ms at most. 0: memory is as after a power failure, and no
 * operation is in progress. -EBUSY: a system does not freeze, or another copy is in progress.
 * -EROFS, -EIO. After any error @why has the reason, and all systems continue.
 */
int sg_freeze(struct sg_vol *vol, unsigned int limit_ms, char why[200]);
/*
 * Ends the freeze. 0: all systems were frozen until now. -EAGAIN: a system was not, so the copy is
 * invalid.
 */
int sg_thaw(struct sg_vol *vol);
#define SG_FREEZE_MS	2000	/* the default */
/*
 * Freezes this system while another system copies; waits until all operations in progress here have
 * ended. A separate thread calls it again after the returned time (ms). -EIO: this system has been
 * fenced.
 */
int sg_freeze_watch(struct sg_vol *vol);
/* Lets this system, and all systems that it has frozen, continue. Called when that thread ends. */
void sg_freeze_watch_end(struct sg_vol *vol);

#endif
