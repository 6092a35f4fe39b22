// SPDX-License-Identifier: GPL-2.0
/* Eviction of an inode: defers the frees of its contents, and frees its record. */
#include "internal.h"

static void drop_contents(struct sg_tx *tx, const struct sg_iref *ref, u64 mode)
{
	u64 table = sg_tx_iget(tx, ref, table);

	if (sg_is_reg(mode))
		sg_table_drop(tx, ref);
	else if (sg_is_dir(mode))
		sg_dir_drop(tx, ref);
	else if (sg_is_lnk(mode) && table && sg_data_page(tx->vol, table))
		sg_defer_run(tx, table, 1);
	if (sg_tx_iget(tx, ref, xattr))
		sg_xattr_drop(tx, ref);
}

/*
 * Frees an inode. @begin is sg_tx_begin() or sg_tx_try(). An inode that this system has made and
 * uses remains, even if the caller used a stale or forged file handle. @settles: the caller is not
 * the last user here, so an inode with users remains. The inode may have got users after the caller
 * checked it without the lock. Then another system has made a file with this inode number, and this
 * system has opened the file.
 */
static int evict_locked(struct sg_vol *vol, const struct sg_iref *ref,
			struct sg_tx *(*begin)(struct sg_vol *vol), bool settles)
{
	u64 mode = sg_iget(vol, ref, mode);
	struct sg_tx *tx;

	if (!mode || sg_nlink(mode) || !sg_is_same(vol, ref) || sg_ledger_keeps(vol, ref) ||
	    sg_open_elsewhere(vol, ref) || (settles && sg_open_here(vol, ref)))
		return 0;
	tx = begin(vol);
	if (!tx)
		return -EBUSY;
	sg_tx_plain(tx);
	drop_contents(tx, ref, mode);
	sg_inode_give(tx, ref);
	sg_disown_inode(tx, ref);
	return sg_tx_commit(tx);
}

static int evict_once(struct sg_vol *vol, const struct sg_iref *ref, bool settles)
{
	int err = sg_ilock(vol, ref);

	if (err)
		return err;
	err = evict_locked(vol, ref, sg_tx_begin, settles);
	sg_iunlock(vol, ref);
	return err;
}

static int evict(struct sg_vol *vol, const struct sg_iref *ref, bool settles)
{
	struct sg_nospace nospace = {};
	int err = evict_once(vol, ref, settles);

	while (err == -ENOSPC) {	/* the ledger was full */
		err = sg_space_again(vol, &nospace);
		if (err)
			return err;
		err = evict_once(vol, ref, settles);
	}
	return err;
}

int sg_evict(struct sg_vol *vol, const struct sg_iref *ref)
{
	return evict(vol, ref, false);
}

/*
 * Tries to evict an inode. The inode remains deferred until it is freed (sg_defer_inode()). So if
 * this call cannot free the inode, the next sg_settle() of the system that deferred the inode frees
 * it.
 */
int sg_evict_try(struct sg_vol *vol, const struct sg_iref *ref)
{
	int err;

	if (vol->slot < 0)
		return -EROFS;
	if (sg_is_lost(vol, SG_IOFF(ref, lock)))
		return -EIO;
	if (!sg_trylock(vol, SG_IOFF(ref, lock)))
		return -EBUSY;
	err = evict_locked(vol, ref, sg_tx_try, false);
	sg_iunlock(vol, ref);
	return err;
}

int sg_inode_settle(struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref = {};
	u64 mode;
	int err = sg_iref(vol, ino, &ref);

	if (err)
		return err;
	ref.generation = (u32)sg_iget(vol, &ref, genflags);
	mode = sg_iget(vol, &ref, mode);
	if (!mode)
		return 0;
	if (!sg_nlink(mode))
		return sg_open_here(vol, &ref) ? 0 : evict(vol, &ref, true);
	if ((u32)(sg_iget(vol, &ref, genflags) >> 32) & SG_FL_CUTTING)
		return sg_finish_cut(vol, &ref);
	return 0;
}

bool sg_inode_settle_left(struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref = {};

	if (sg_iref(vol, ino, &ref))
		return true;
	ref.generation = (u32)sg_iget(vol, &ref, genflags);
	if (sg_open_here(vol, &ref))
		return true;
	if (!sg_trylock(vol, SG_IOFF(&ref, lock)))
		return false;
	evict_locked(vol, &ref, sg_tx_begin, true);
	sg_iunlock(vol, &ref);
	return true;
}
