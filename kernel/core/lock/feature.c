// SPDX-License-Identifier: GPL-2.0
/*
 * Features that older software must not change (ro_compat), set when a volume first needs one: by
 * the first ring, and by the first sealed file.
 */
#include "internal.h"

/* a joiner stores the features that it supports just after it has its slot */
#define KNOWS_NS	200000000ULL

static bool feature_slot_knows(const struct sg_vol *vol, unsigned int i, u64 feature)
{
	u64 state = sg_load64_acquire(sg_state_word(vol, i)), said;

	if (SG_SLOT_STATE(state) == SG_SLOT_FREE)
		return true;
	said = sg_get(vol, sg_slot_off(vol, i) + offsetof(struct sg_slot, knows));
	return said >> 32 == SG_SLOT_INC(state) && said & feature;
}

static bool feature_all_know(const struct sg_vol *vol, u64 feature)
{
	u64 until = sg_ticks() + KNOWS_NS;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		while (!feature_slot_knows(vol, i, feature)) {
			if (sg_ticks() >= until)
				return false;
			sg_yield();
		}
	}
	return true;
}

/*
 * Stores the feature in both superblocks. Growth writes superblocks, too, and this system may not
 * have seen yet that another one has made the volume grow. The backup is stored first, so that one
 * of them is complete at any time.
 */
static int feature_set(struct sg_vol *vol, u64 feature)
{
	struct sg_super sb;
	int err = sg_lock(vol, SG_HOT(grow_lock));

	if (err)
		return err;
	vol->up->follow(vol);
	if (SG_SIZE_OF(sg_get(vol, SG_HOT(grow))))
		err = -EBUSY;
	else if (!sg_super_read(vol, 0, sg_size(vol), &sb))
		err = sg_damaged(vol, 0, 0, "the superblock");
	if (!err) {
		sb.ro_compat |= feature;
		sb.generation++;
		sg_super_store(vol, sg_size(vol) - SG_PAGE, &sb);
		sg_super_store(vol, 0, &sb);
		vol->sb.ro_compat |= feature;
	}
	sg_unlock(vol, SG_HOT(grow_lock));
	return err;
}

/*
 * A joiner reads the superblock after it has taken its slot; this function reads the slots after it
 * has stored the bit. So at least one of them sees the other.
 */
int sg_feature_allow(struct sg_vol *vol, u64 feature)
{
	int err = 0;

	if (vol->sb.ro_compat & feature)
		return 0;
	if (feature_all_know(vol, feature))
		err = feature_set(vol, feature);
	if (!err && !feature_all_know(vol, feature))
		err = -EOPNOTSUPP;
	return err;
}
