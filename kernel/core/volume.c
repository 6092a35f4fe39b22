// SPDX-License-Identifier: GPL-2.0
/* What all parts of the engine ask of a volume: may I write, is it damaged, fresh pages, totals. */
#include "internal.h"

#define STATFS_WAIT_MS	200	/* for who holds up what was freed, so that it counts as free */

int sg_is_member(const struct sg_vol *vol)
{
	if (sg_load64(&vol->shut_down))
		return -EIO;
	if (vol->slot < 0)
		return -EROFS;
	return sg_is_ours(vol) ? 0 : sg_declared_dead(vol);
}

int sg_may_write(const struct sg_vol *vol)
{
	int err = sg_is_member(vol);

	return err ?: vol->read_only ? -EROFS : 0;
}

static bool seen_before(struct sg_vol *vol, u64 key)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(vol->damage_seen); i++)
		if (vol->damage_seen[i] == key)
			return true;
	vol->damage_seen[vol->damage_next++ % SG_ARRAY_SIZE(vol->damage_seen)] = key;
	return false;
}

int sg_damaged(const struct sg_vol *cvol, u64 ino, u64 off, const char *what)
{
	struct sg_vol *vol = (struct sg_vol *)cvol;	/* its report list, not its bytes */

	/* what we saw was loaded before: when we were alive behind it, it stood still (D6) */
	sg_acquire_fence();
	sg_beat(vol);	/* or we were set back to an earlier state, and what we know is old */
	if (vol->slot >= 0 && !sg_is_ours(vol))
		return sg_declared_dead(vol);
	if (seen_before(vol, off | ino << 48 | 1))
		return -EUCLEAN;
	sg_log(vol->owner, SG_ERR, "damaged: %s (inode %llu, offset 0x%llx); run fsck.stargatefs",
	       what, (unsigned long long)ino, (unsigned long long)off);
	if (!sg_may_write(vol)) {
		sg_add64(sg_at(vol, SG_HOT(errors)), 1);
		sg_store64(sg_at(vol, SG_HOT(error_ino)), ino);
		sg_wb(sg_at(vol, SG_HOT(errors)), 16);
	}
	if (vol->on_damage)
		vol->on_damage(vol, ino, off);
	return -EUCLEAN;
}

void sg_fresh_write(struct sg_vol *vol, u64 off, const void *src, u64 len)
{
	SG_ASSERT(sg_inside(vol, off, len));
	sg_os_write(vol->base + off, src, len);
	sg_wb(vol->base + off, len);
}

void sg_fresh_zero(struct sg_vol *vol, u64 off, u64 len)
{
	SG_ASSERT(sg_inside(vol, off, len));
	sg_os_clear(vol->base + off, len);
}

void sg_fresh_set(struct sg_vol *vol, u64 off, u64 val)
{
	sg_store64(sg_at(vol, off), val);
}

/* What is owed counts as free: for whoever asks, it is paid, also by another thread of ours. */
static void pay_all(struct sg_vol *vol)
{
	u64 start;

	if (sg_may_write(vol) || sg_reclaim(vol, ~0u) <= 0)
		return;
	start = sg_ticks();
	if (sg_epoch_wait(vol, STATFS_WAIT_MS))
		sg_reclaim(vol, ~0u);
	while (sg_ledger_paying(vol) && sg_ticks() - start < STATFS_WAIT_MS * 1000000ULL) {
		sg_sleep_us(200);
		sg_reclaim(vol, ~0u);	/* that thread may have put back what it could not pay */
	}
}

int sg_statfs(struct sg_vol *vol, struct sg_statfs *out)
{
	u64 meta = vol->sb.data_off / SG_PAGE + 1;

	if (sg_has_stopped(vol))
		return -EIO;
	sg_follow(vol);
	pay_all(vol);
	if (sg_has_stopped(vol))	/* that may have taken long */
		return -EIO;
	out->pages = sg_size(vol) / SG_PAGE - meta;
	out->free_pages = SG_MIN(sg_free_pages(vol), out->pages);
	out->free_pages -= SG_MIN(sg_bad_free(vol), out->free_pages);
	out->used_inodes = sg_used_inodes(vol);
	/* the records that there are (number 0 is none), and as many more as space allows */
	out->inodes = SG_MAX(sg_get(vol, SG_HOT(inodes)) - 1, out->used_inodes) +
		      out->free_pages * SG_INODES_PER_PAGE;
	return 0;
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
