// SPDX-License-Identifier: GPL-2.0
/* The flag that makes each write to a file atomic (P3). docs/atomic-data.md */
#include "internal.h"

/* longest wait for the acknowledgement of all systems; a paused system may acknowledge later */
#define KNOWN_MS	2000
/* one of these flags is set before the first byte of an atomic write is stored */
#define NOTED		(SG_FL_ATOMIC | SG_FL_WHOLE)
/*
 * These flags are valid only together with a flag of NOTED, because software that does not know
 * SG_FL_TOLD does not clear it with the other flags.
 */
#define TOLD		(SG_FL_REPLACE | SG_FL_TOLD)

/*
 * Stores the inode's flags. @cut: also makes other systems check again their windows, shadows and
 * mappings of the file.
 */
static int store_flags(struct sg_vol *vol, const struct sg_iref *ref, u64 flags, bool cut, s64 now)
{
	struct sg_tx *tx = sg_tx_begin(vol);

	sg_tx_inode(tx, ref);
	sg_tx_iset(tx, ref, genflags, (u32)sg_tx_iget(tx, ref, genflags) | flags << 32);
	if (cut)
		sg_count_cut(tx, ref);
	if (now)
		sg_tx_times(tx, ref, 0, now);
	return sg_tx_commit(tx);
}

/*
 * Sets the flag before any byte of the write is stored. So a reader that sees such a byte also sees
 * the flag, and checks the change counter. A writer without the lock that sees the flag takes the
 * lock, and windows are dropped.
 */
int sg_note_whole(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 flags = sg_iget(vol, ref, genflags) >> 32;

	if (flags & NOTED)
		return 0;
	return store_flags(vol, ref, (flags & ~TOLD) | SG_FL_WHOLE, true, 0);
}

bool sg_is_told(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 flags = sg_iget(vol, ref, genflags) >> 32;

	return flags & NOTED && flags & TOLD;
}

/* *@cuts returns the file's count of cuts after the flag is set. */
static int note_whole_locked(struct sg_vol *vol, const struct sg_iref *ref, u64 *cuts)
{
	int err = sg_ilock(vol, ref);

	if (err)
		return err;
	err = sg_may_store(vol, ref) ?: sg_note_whole(vol, ref);
	*cuts = sg_cuts(vol, ref);
	sg_iunlock(vol, ref);
	return err;
}

/*
 * Marks that all systems have seen the flag, if sg_cuts() is still @cuts. Other systems may have
 * cleared the flags since, and even set them again, which has incremented the cuts. A write without
 * the lock may have begun in between, so the next writer then waits.
 */
static int note_told(struct sg_vol *vol, const struct sg_iref *ref, u64 cuts)
{
	u64 flags;
	int err = sg_ilock(vol, ref);

	if (err)
		return err;
	err = sg_may_change(vol, ref);
	flags = sg_iget(vol, ref, genflags) >> 32;
	if (!err && flags & NOTED && !(flags & SG_FL_TOLD) && sg_cuts(vol, ref) == cuts)
		err = store_flags(vol, ref, flags | SG_FL_TOLD, false, 0);
	sg_iunlock(vol, ref);
	return err;
}

/*
 * Waits until no system writes without the lock any more. The first atomic write, and each one that
 * begins meanwhile, calls it. A paused system delays these writes for KNOWN_MS, and later writes
 * not at all.
 */
int sg_note_whole_first(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 cuts;
	int err;

	if (sg_is_lost(vol, ref->off))
		return -EIO;
	if (sg_is_told(vol, ref))
		return 0;
	err = note_whole_locked(vol, ref, &cuts);
	if (err)
		return err;
	sg_epoch_ends(vol, KNOWN_MS);
	return note_told(vol, ref, cuts);
}

/* Sets and clears flags. *cuts: the file's count of cuts afterwards. */
static int change_flags(struct sg_vol *vol, const struct sg_iref *ref, u64 set, u64 clear,
			s64 now, u64 *cuts)
{
	u64 mode, flags;
	int err = sg_ilock(vol, ref);

	if (err)
		return err;
	err = sg_may_store(vol, ref);
	mode = sg_iget(vol, ref, mode);
	flags = sg_iget(vol, ref, genflags) >> 32;
	if (!(flags & NOTED))
		clear |= TOLD;
	if (!err && !sg_is_reg(mode) && !sg_is_dir(mode))
		err = -EINVAL;
	if (!err && ((flags & ~clear) | set) != flags)
		err = store_flags(vol, ref, (flags & ~clear) | set,
				  sg_is_reg(mode) && set & SG_FL_ATOMIC, now);
	*cuts = sg_cuts(vol, ref);
	sg_iunlock(vol, ref);
	return err;
}

/*
 * Allows the replacement of pages, as soon as no system writes in place without the lock. Such a
 * write checks the flag, but may have begun before the flag was set. If a system does not
 * acknowledge, all writes are logged until a caller sets the flag again.
 */
static int replace_too(struct sg_vol *vol, const struct sg_iref *ref, u64 cuts)
{
	u64 flags;
	int err;

	if (!sg_is_reg(sg_iget(vol, ref, mode)) || !sg_epoch_ends(vol, KNOWN_MS))
		return 0;
	err = sg_ilock(vol, ref);
	if (err)
		return err;
	err = sg_may_change(vol, ref);
	flags = sg_iget(vol, ref, genflags) >> 32;
	/* if other systems have cleared the flag and set it again, that has incremented the cuts */
	if (!err && flags & SG_FL_ATOMIC && !(flags & SG_FL_REPLACE) && sg_cuts(vol, ref) == cuts)
		err = store_flags(vol, ref, flags | SG_FL_REPLACE, false, 0);
	sg_iunlock(vol, ref);
	return err;
}

int sg_set_atomic(struct sg_vol *vol, const struct sg_iref *ref, bool on, s64 now)
{
	int err = sg_may_write(vol);
	u64 cuts;

	if (err)
		return err;
	if (!sg_knows_atomic(vol))
		return -EOPNOTSUPP;
	if (!on)
		return change_flags(vol, ref, 0, NOTED | TOLD, now, &cuts);
	err = change_flags(vol, ref, SG_FL_ATOMIC, 0, now, &cuts);
	if (err || sg_iget(vol, ref, genflags) >> 32 & SG_FL_REPLACE)
		return err;
	return replace_too(vol, ref, cuts);
}

bool sg_is_read_whole(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_lost(vol, ref->off) && sg_iget(vol, ref, genflags) >> 32 & NOTED;
}

bool sg_is_atomic(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_lost(vol, ref->off) && sg_iget(vol, ref, genflags) >> 32 & SG_FL_ATOMIC;
}
