// SPDX-License-Identifier: GPL-2.0
/* Totals of a volume, and its health. */
#include "internal.h"

/*
 * limit of the wait for acknowledgements of other systems, which make freed space reclaimable
 */
#define STATFS_WAIT_MS	200

/*
 * Reclaims deferred frees, so that they count as free space; waits for a thread that already does
 * so.
 */
static void reclaim_all(struct sg_vol *vol)
{
	u64 start;

	if (sg_may_write(vol) || sg_reclaim(vol, ~0u) <= 0)
		return;
	start = sg_ticks();
	if (sg_epoch_ends(vol, STATFS_WAIT_MS))
		sg_reclaim(vol, ~0u);
	while (sg_ledger_reclaiming(vol) && sg_ticks() - start < STATFS_WAIT_MS * 1000000ULL) {
		sg_sleep_us(200);
		/* that thread may have put back entries that it could not reclaim */
		sg_reclaim(vol, ~0u);
	}
}

int sg_statfs(struct sg_vol *vol, struct sg_statfs *out)
{
	u64 meta = vol->sb.data_off / SG_PAGE + 1;

	if (sg_has_stopped(vol))
		return -EIO;
	sg_follow(vol);
	reclaim_all(vol);
	if (sg_has_stopped(vol))	/* the reclaim may have taken long */
		return -EIO;
	out->pages = sg_size(vol) / SG_PAGE - meta;
	out->free_pages = SG_MIN(sg_free_pages(vol), out->pages);
	out->free_pages -= SG_MIN(sg_bad_free(vol), out->free_pages);
	out->used_inodes = sg_used_inodes(vol);
	/* existing records (number 0 is unused), plus as many as the free space allows */
	out->inodes = SG_MAX(sg_get(vol, SG_HOT(inodes)) - 1, out->used_inodes) +
		      out->free_pages * SG_INODES_PER_PAGE;
	return 0;
}

struct sg_counters sg_counters(const struct sg_vol *vol)
{
	struct sg_counters sum = vol->stat;
	unsigned int i;

	for (i = 0; vol->tx && i < vol->sb.areas; i++) {
		const struct sg_counters *c = &vol->tx[i].stat;

		sum.commits += sg_load64(&c->commits);
		sum.commit_words += sg_load64(&c->commit_words);
		sum.aborts += sg_load64(&c->aborts);
		sum.pages_allocated += sg_load64(&c->pages_allocated);
		sum.pages_freed += sg_load64(&c->pages_freed);
		sum.atomic_replaced += sg_load64(&c->atomic_replaced);
		sum.atomic_logged += sg_load64(&c->atomic_logged);
	}
	return sum;
}

int sg_health(const struct sg_vol *vol, struct sg_health *out)
{
	struct sg_slot slot = {};
	int err = sg_is_lost(vol, SG_HOT_OFF) ? -EIO : 0;

	if (!err && vol->slot >= 0)
		err = sg_slot_read(vol, (unsigned int)vol->slot, &slot);
	if (err)
		return err;
	out->epoch = sg_get(vol, SG_HOT(epoch));
	out->acknowledged = slot.epoch;
	out->errors = sg_get(vol, SG_HOT(errors));
	out->error_ino = sg_get(vol, SG_HOT(error_ino));
	return 0;
}
