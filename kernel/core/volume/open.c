// SPDX-License-Identifier: GPL-2.0
/* Opening a volume: checks for a volume in the memory, and whether this software can use it. */
#include "internal.h"

const struct sg_upcalls sg_upcalls = {
	.recover_slot = sg_recover_slot,
	.acknowledge = sg_epoch_acknowledge,
	.freeze_watch = sg_freeze_watch,
	.follow = sg_follow,
	.reclaim = sg_reclaim_ripe,
	.grow_ledger = sg_ledger_grow,
	.more_space = sg_more_space,
	.evict = sg_evict,
	.replay_log = sg_redo_replay,
};

static int why(struct sg_vol *vol, int err, const char *text)
{
	sg_snprintf(vol->why, sizeof(vol->why), "%s", text);
	return err;
}

static int check_features(struct sg_vol *vol)
{
	const struct sg_super *sb = &vol->sb;

	if (sb->version != SG_VERSION) {
		sg_snprintf(vol->why, sizeof(vol->why), "format version %u is not supported (this program knows %u)",
			    sb->version, SG_VERSION);
		return -EOPNOTSUPP;
	}
	if (sb->incompat & ~SG_INCOMPAT_KNOWN || sb->params & ~SG_PARAM_KNOWN) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "unknown features (incompat 0x%llx, params 0x%llx): newer tools needed",
			    (unsigned long long)(sb->incompat & ~SG_INCOMPAT_KNOWN),
			    (unsigned long long)(sb->params & ~SG_PARAM_KNOWN));
		return -EOPNOTSUPP;
	}
	if (sb->ro_compat & ~SG_RO_COMPAT_KNOWN && !vol->read_only) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "unknown features 0x%llx: can be used read-only",
			    (unsigned long long)(sb->ro_compat & ~SG_RO_COMPAT_KNOWN));
		return -EROFS;
	}
	return 0;
}

static int open_any(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	struct sg_probe probe;
	unsigned int i;
	u64 found;

	memset(vol, 0, sizeof(*vol));
	for (i = 0; i < SG_OPENING; i++)
		sg_spin_init(&vol->opening[i].spin);
	sg_spin_init(&vol->spin);
	vol->base = base;
	vol->up = &sg_upcalls;
	sg_bad_watch(vol);
	vol->room = size & ~(SG_VOLUME_ALIGN - 1);
	vol->slot = -1;
	vol->read_only = read_only;
	vol->owner = owner;
	if (size < SG_VOLUME_MIN)
		return why(vol, -EINVAL, "smaller than the smallest volume, 16 MiB");
	found = sg_search(base, size, &probe);
	if (probe.whole) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "cut short: the volume has %llu MiB, and only %llu are here",
			    (unsigned long long)probe.whole >> 20, (unsigned long long)size >> 20);
		return -EUCLEAN;
	}
	if (!probe.stargate)
		return why(vol, -EINVAL,
			   "no StargateFS here: check the device, or make one with mkfs.stargatefs");
	/* the backup may belong to an older volume, so a person must decide */
	if (found != size)
		return why(vol, -EUCLEAN,
			   "the first superblock is damaged: fsck.stargatefs -y can repair it");
	if (!probe.valid)
		return why(vol, -EUCLEAN, "superblock and backup are damaged: run fsck.stargatefs");
	if (probe.from_backup)
		sg_log(owner, SG_WARN, "superblock damaged, using the backup; run fsck.stargatefs");
	vol->sb = probe.sb;
	vol->size = probe.sb.size;
	return check_features(vol);
}

int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	int err = open_any(vol, base, size, read_only, owner);

	if (err || !sg_is_image(vol))
		return err;
	return why(vol, -EOPNOTSUPP,
		   "is a metadata image, without contents of files: it can only be inspected");
}

static int refuse_moving(struct sg_vol *vol)
{
	if (!sg_is_moving(vol))
		return 0;
	sg_snprintf(vol->why, sizeof(vol->why),
		    "half moved to base 0x%llx: run stargatectl relocate to finish the move",
		    (unsigned long long)vol->sb.move_to);
	return -EUCLEAN;
}

int sg_open(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	return sg_open_moving(vol, base, size, read_only, owner) ?: refuse_moving(vol);
}

int sg_open_to_look(struct sg_vol *vol, void *base, u64 size, void *owner)
{
	return open_any(vol, base, size, true, owner) ?: refuse_moving(vol);
}
