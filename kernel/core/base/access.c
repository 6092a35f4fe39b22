// SPDX-License-Identifier: GPL-2.0
/*
 * Functions for all layers of the engine: permission to write the volume, reports of damage, stores
 * to fresh pages.
 */
#include "internal.h"

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
	/* changes the list of reports, not the bytes of the volume */
	struct sg_vol *vol = (struct sg_vol *)cvol;

	/*
	 * The loads of the damaged words come before this memory barrier. If this system still owns
	 * its slot after the barrier, no other system has changed the words that this system's
	 * locks protect (D6).
	 */
	sg_acquire_fence();
	/* a system that was set back must not report damage, because its own state is old */
	sg_beat(vol);
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
