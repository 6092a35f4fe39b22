// SPDX-License-Identifier: GPL-2.0
/*
 * Rename: move, replace, exchange, leave a whiteout; always one transaction.
 *
 * Directories change their parent only under rename_lock. So while a system holds rename_lock, the
 * path from any directory up to the root does not change. The code follows this path to check that
 * no directory becomes its own ancestor.
 */
#include "dir/dir_ops.h"

struct move {
	struct sg_vol *vol;
	const struct sg_iref *odir, *ndir;
	struct sg_name on, nn;
	struct sg_iref src, dst;
	bool has_dst;		/* the new name exists */
	bool src_dir, dst_dir;
	unsigned int flags;
	const struct sg_new *whiteout;
	const struct sg_renamed *seen;	/* NULL: any inodes */
	s64 now;
};

static bool cross(const struct move *m)
{
	return m->odir->ino != m->ndir->ino;
}

static bool rename_exchange(const struct move *m)
{
	return m->flags & SG_RENAME_EXCHANGE;
}

/* --- is it allowed? --------------------------------------------------------------------------- */

static int parent_of(const struct sg_vol *vol, struct sg_iref *at)
{
	int err = sg_iref(vol, sg_iget(vol, at, special), at);

	if (err == -ESTALE || (!err && !sg_is_dir(sg_iget(vol, at, mode))))
		return sg_damaged(vol, at->ino, at->off, "parent of a directory");
	return err;
}

/*
 * Returns 1 if @dir is @top, or below it. The path to the root has at most as many steps as there
 * are inodes. But that number is a word of the volume, too, and locks are held here. So the loop
 * also keeps the directory at each power of two: a circular path reaches the kept directory again
 * after few rounds.
 */
static int is_below(const struct sg_vol *vol, const struct sg_iref *dir, u64 top)
{
	u64 most = SG_MIN(sg_get(vol, SG_HOT(inodes)), sg_bound(vol) / SG_INODE_SIZE);
	u64 turns = 0, kept = 0;
	struct sg_iref at = *dir;
	int err = 0;

	while (!err && turns < most && at.ino != kept) {
		if (at.ino == top)
			return 1;
		if (at.ino == SG_INO_ROOT)
			return 0;
		if (!(turns & (turns - 1)))
			kept = at.ino;
		err = sg_turn(&turns) ?: parent_of(vol, &at);
	}
	return err ?: sg_damaged(vol, dir->ino, dir->off, "parents of a directory form a cycle");
}

static int check_circle(const struct move *m)
{
	int below = 0;

	if (m->src_dir)
		below = is_below(m->vol, m->ndir, m->src.ino);
	if (!below && rename_exchange(m) && m->dst_dir)
		below = is_below(m->vol, m->odir, m->dst.ino);
	return below > 0 ? -EINVAL : below;
}

static int check_replaced(const struct move *m)
{
	if (m->src_dir != m->dst_dir)
		return m->dst_dir ? -EISDIR : -ENOTDIR;
	if (m->dst_dir && sg_iget(m->vol, &m->dst, entries))
		return -ENOTEMPTY;
	return 0;
}

/* Computes how many subdirectories the new and the old parent gain. */
static int ndir_gains(const struct move *m)
{
	return (int)m->src_dir - (int)(m->has_dst && m->dst_dir);
}

static int odir_gains(const struct move *m)
{
	return (int)(rename_exchange(m) && m->dst_dir) - (int)m->src_dir;
}

static bool too_many_links(const struct move *m)
{
	return cross(m) &&
	       ((ndir_gains(m) > 0 && sg_nlink(sg_iget(m->vol, m->ndir, mode)) >= SG_LINK_MAX) ||
		(odir_gains(m) > 0 && sg_nlink(sg_iget(m->vol, m->odir, mode)) >= SG_LINK_MAX));
}

/* Checks the rename, with all inodes locked. 1: nothing to do. */
static int rename_check(const struct move *m)
{
	int err = sg_dir_alive(m->vol, m->ndir);

	if (err)
		return err;
	if (m->has_dst && m->flags & SG_RENAME_NOREPLACE)
		return -EEXIST;
	if (!m->has_dst && rename_exchange(m))
		return -ENOENT;
	if (m->has_dst && m->src.ino == m->dst.ino)
		return 1;
	if (cross(m))
		err = check_circle(m);
	if (!err && m->has_dst && !rename_exchange(m))
		err = check_replaced(m);
	if (!err && too_many_links(m))
		err = -EMLINK;
	return err;
}

/* --- change ----------------------------------------------------------------------------------- */

/* Updates an inode that has got another name, perhaps in another directory. */
static void moved(struct sg_tx *tx, const struct move *m, const struct sg_iref *ref,
		  const struct sg_iref *to, bool is_dir)
{
	sg_tx_inode(tx, ref);
	sg_tx_times(tx, ref, 0, m->now);
	if (is_dir && cross(m))
		sg_tx_iset(tx, ref, special, to->ino);
}

static int leave_whiteout(struct sg_tx *tx, const struct move *m)
{
	struct sg_iref w;

	if (!sg_new_inode(tx, m->whiteout, 1, 0, &w))
		sg_dir_point(tx, m->odir, &m->on, w.ino, sg_type(m->whiteout->mode));
	return tx->err;
}

static void change_names(struct sg_tx *tx, struct move *m)
{
	unsigned int type = SG_REF_TYPE(m->on.ref);

	if (rename_exchange(m))
		sg_dir_point(tx, m->odir, &m->on, m->dst.ino, SG_REF_TYPE(m->nn.ref));
	else if (m->flags & SG_RENAME_WHITEOUT)
		leave_whiteout(tx, m);
	else
		sg_dir_remove(tx, m->odir, &m->on);
	if (m->has_dst)
		sg_dir_point(tx, m->ndir, &m->nn, m->src.ino, type);
	else
		sg_dir_add(tx, m->ndir, &m->nn, m->src.ino, type);
}

static int move_tx(struct move *m)
{
	struct sg_tx *tx = sg_tx_begin(m->vol);

	sg_tx_plain(tx);
	change_names(tx, m);
	moved(tx, m, &m->src, m->ndir, m->src_dir);
	if (rename_exchange(m))
		moved(tx, m, &m->dst, m->odir, m->dst_dir);
	else if (m->has_dst)
		sg_drop_link(tx, &m->dst, m->now);
	sg_add_links(tx, m->ndir, ndir_gains(m));
	sg_add_links(tx, m->odir, odir_gains(m));
	sg_tx_times(tx, m->odir, m->now, m->now);
	sg_tx_times(tx, m->ndir, m->now, m->now);
	return sg_tx_commit(tx);
}

static int move_locked(struct move *m)
{
	struct sg_again again = {};
	int err = rename_check(m);

	if (err)
		return err < 0 ? err : 0;
	do {	/* sg_dir_make_room() moves names */
		if (!sg_name_stands(m->vol, m->odir, &m->on, 0))
			return -EUCLEAN;
		err = move_tx(m);
	} while (sg_name_again(m->vol, m->ndir, m->has_dst ? NULL : &m->nn, &err, &again));
	return err;
}

/* --- look up, lock, and compare --------------------------------------------------------------- */

static int rename_look(struct move *m)
{
	int err = sg_dir_look(m->vol, m->odir, &m->on);

	if (!err)
		err = sg_name_inode(m->vol, m->odir, &m->on, &m->src);
	if (err)
		return err;
	err = sg_dir_look(m->vol, m->ndir, &m->nn);
	m->has_dst = !err;
	if (!err)
		err = sg_name_inode(m->vol, m->ndir, &m->nn, &m->dst);
	else if (err == -ENOENT)
		err = 0;
	m->src_dir = SG_REF_TYPE(m->on.ref) == SG_S_IFDIR >> 12;
	m->dst_dir = m->has_dst && SG_REF_TYPE(m->nn.ref) == SG_S_IFDIR >> 12;
	return err;
}

/*
 * Reports whether both lookups are still valid, and whether the inodes have the types in the names.
 */
static int still_valid(struct move *m)
{
	if (!sg_name_stands(m->vol, m->odir, &m->on, 0) ||
	    !sg_name_stands(m->vol, m->ndir, &m->nn, m->has_dst ? 0 : -ENOENT))
		return 0;
	if (sg_is_dir(sg_iget(m->vol, &m->src, mode)) != m->src_dir)
		return sg_damaged(m->vol, m->src.ino, m->on.ref_off, "type of a name");
	if (m->has_dst && sg_is_dir(sg_iget(m->vol, &m->dst, mode)) != m->dst_dir)
		return sg_damaged(m->vol, m->dst.ino, m->nn.ref_off, "type of a name");
	return 1;
}

/*
 * Reports whether these are the inodes that the caller has looked up and checked, and will report.
 * Another system may have given a name to another inode since, which the caller has not checked.
 * But systems that repeatedly replace the same file must not block each other.
 */
static bool as_seen(const struct move *m)
{
	if (!m->seen)
		return true;
	if (!sg_is_seen(m->vol, &m->src, m->seen->what))
		return false;
	if (m->flags & SG_RENAME_NOREPLACE)
		return true;	/* the result is -EEXIST for any inode */
	if (!m->has_dst)
		return !m->seen->replaced || !m->seen->exact;
	if (m->seen->replaced && sg_is_seen(m->vol, &m->dst, m->seen->replaced))
		return true;
	return !m->seen->exact && sg_is_unprotected(m->vol, &m->dst);
}

/*
 * Renames with all four inodes locked. 1: done, with the result in *@err. 0: the names changed
 * before the inodes were locked.
 */
static int move_four(struct move *m, int *err)
{
	const struct sg_iref *const four[4] = { m->odir, m->ndir, &m->src,
						m->has_dst ? &m->dst : NULL };
	int ok;

	*err = sg_lock_four(m->vol, four);
	if (*err)
		return 1;
	ok = still_valid(m);
	*err = ok < 0 ? ok : 0;
	if (ok > 0)
		*err = as_seen(m) ? move_locked(m) : -ESTALE;
	sg_unlock_four(m->vol, four);
	return ok;
}

static int try_move(struct move *m, int *err)
{
	int ok;

	if (!cross(m) || (!m->src_dir && !m->dst_dir))
		return move_four(m, err);
	*err = sg_lock(m->vol, SG_HOT(rename_lock));
	if (*err)
		return 1;
	ok = move_four(m, err);
	sg_unlock(m->vol, SG_HOT(rename_lock));
	return ok;
}

static int check_args(const struct sg_vol *vol, const char *oname, u32 olen, const char *nname,
		      u32 nlen, unsigned int flags, const struct sg_new *whiteout)
{
	const unsigned int known = SG_RENAME_NOREPLACE | SG_RENAME_EXCHANGE | SG_RENAME_WHITEOUT;

	if (flags & ~known || (flags & SG_RENAME_EXCHANGE && flags != SG_RENAME_EXCHANGE))
		return -EINVAL;
	if (flags & SG_RENAME_WHITEOUT && (!whiteout || sg_is_dir(whiteout->mode)))
		return -EINVAL;
	return sg_name_check(oname, olen, -EBUSY) ?: sg_name_check(nname, nlen, -EBUSY) ?:
		sg_may_write(vol);
}

int sg_rename_seen(struct sg_vol *vol, const struct sg_iref *odir, const char *oname, u32 olen,
		   const struct sg_iref *ndir, const char *nname, u32 nlen, unsigned int flags,
		   const struct sg_new *whiteout, const struct sg_renamed *seen, s64 now)
{
	struct move m = { .vol = vol, .odir = odir, .ndir = ndir, .flags = flags,
			  .whiteout = whiteout, .seen = seen, .now = now };
	int err = check_args(vol, oname, olen, nname, nlen, flags, whiteout);
	unsigned int turn;

	if (err)
		return err;
	sg_name_of(vol, oname, olen, &m.on);
	sg_name_of(vol, nname, nlen, &m.nn);
	for (turn = 0; turn < SG_NAME_TRIES; turn++) {
		err = rename_look(&m);
		if (err || try_move(&m, &err))
			return err;
	}
	return -EBUSY;
}
