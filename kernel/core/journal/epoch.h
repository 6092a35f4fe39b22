/* SPDX-License-Identifier: GPL-2.0 */
/* Epochs (D7). */
#ifndef SG_EPOCH_H
#define SG_EPOCH_H

#include "journal/tx.h"

struct sg_ack *sg_ack_make(void);
bool sg_alone(const struct sg_vol *vol);	/* nobody else has a slot */
void sg_quiesce(struct sg_vol *vol);		/* our own looks, windows and mappings */
u64 sg_epoch_horizon(const struct sg_vol *vol);	/* what all who live have acknowledged */
/* A debt of that epoch, as it stands in a debt's word, may be paid. */
bool sg_epoch_over(const struct sg_vol *vol, u64 horizon, unsigned int debt_epoch);
void sg_epoch_push(struct sg_vol *vol);
void sg_epoch_heed(struct sg_vol *vol);		/* acknowledges, if nobody else does for us */
void sg_epoch_urge(struct sg_vol *vol);		/* that, and pushes */
/* Waits for those who live, and not for who has lapsed; ends when who waits is to die. */
bool sg_epoch_next(struct sg_vol *vol, unsigned int wait_ms);
bool sg_epoch_ends(struct sg_vol *vol, unsigned int wait_ms);

#endif
