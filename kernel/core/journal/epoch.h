/* SPDX-License-Identifier: GPL-2.0 */
/* Epochs (D7). */
#ifndef SG_EPOCH_H
#define SG_EPOCH_H

#include "journal/tx.h"

struct sg_ack *sg_ack_make(void);
/* reports whether no other system has a slot, and none has lapsed */
bool sg_alone(const struct sg_vol *vol);
/* waits for this system's walks, then drops its windows and mappings */
void sg_quiesce(struct sg_vol *vol);
/* returns the last epoch that all live and lapsed systems have acknowledged */
u64 sg_epoch_horizon(const struct sg_vol *vol);
/* Reports whether a deferred free with that epoch in its word may be reclaimed. */
bool sg_epoch_over(const struct sg_vol *vol, u64 horizon, unsigned int deferred_epoch);
void sg_epoch_push(struct sg_vol *vol);
/* acknowledges, unless another thread of this system does so */
void sg_epoch_acknowledge(struct sg_vol *vol);
void sg_epoch_urge(struct sg_vol *vol);		/* acknowledges, and tries to advance the epoch */
/* Waits for live systems, but not for lapsed ones; ends if the calling thread is being killed. */
bool sg_epoch_next(struct sg_vol *vol, unsigned int wait_ms);
bool sg_epoch_ends(struct sg_vol *vol, unsigned int wait_ms);

#endif
