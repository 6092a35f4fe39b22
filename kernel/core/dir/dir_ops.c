// SPDX-License-Identifier: GPL-2.0
/*
 * Names: create, link, unlink, rmdir. Each is one transaction.
 *
 * Only a lookup can find the inode of a name, but locks are taken in the order of inode numbers. So
 * an operation looks up the name without a lock, then locks all inodes. Then the directory's change
 * counter shows whether the result of the lookup is still valid.
 */
#include "dir/dir_ops.h"

#define AGAIN_TURNS	3

/* --- steps ------------------------------------------------------------------------------------ */

int sg_name_check(const char *name, u32 len, int dots)
{
	u32 i;

	if (!len)
		return -ENOENT;
	if (len > SG_NAME_MAX)
		return -ENAMETOOLONG;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return dots;
	for (i = 0; i < len; i++)
		if (!name[i] || name[i] == '/')
			return -EINVAL;
	return 0;
}

int sg_dir_alive(const struct sg_vol *vol, const struct sg_iref *dir)
{
	return sg_dir_there(vol, dir) ?: sg_nlink(sg_iget(vol, dir, mode)) ? 0 : -ENOENT;
}

/*
 * Returns the inode to which a name refers. No name refers to the root. The number of an existing
 * record remains valid.
 */
int sg_name_inode(const struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		  struct sg_iref *out)
{
	u64 ino = SG_REF_INO(n->ref);
	int err = ino == SG_INO_ROOT ? -ESTALE : sg_iref(vol, ino, out);

	return err == -ESTALE ?
		sg_damaged(vol, dir->ino, n->ref_off, "name of a missing inode") : err;
}

int sg_lookup(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      struct sg_iref *out, unsigned int *type)
{
	struct sg_iref found = {};
	struct sg_name n;
	int err;

	if (!len)
		return -ENOENT;
	if (len > SG_NAME_MAX)
		return -ENAMETOOLONG;
	sg_name_of(vol, name, len, &n);
	for (;; n.turns += 1 + SG_READ_PAGE) {	/* sg_dir_look() bounds this loop */
		err = sg_dir_look(vol, dir, &n);
		if (!err)
			err = sg_name_inode(vol, dir, &n, &found);
		if (!sg_is_same(vol, dir))
			return -ESTALE;
		if (err)
			return err;
		found.generation = (u32)sg_iget(vol, &found, genflags);
		if (sg_read_retry(vol, dir, n.seq))
			continue;
		/* the name has not changed, so the generation is right, too */
		if (type)
			*type = SG_REF_TYPE(n.ref);
		*out = found; /* the last use of @dir, which may be @out */
		return 0;
	}
}

/* Checks that the locked directory may get that name; returns 0 if it may. */
static int name_free(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n)
{
	int err = sg_dir_alive(vol, dir);

	if (err)
		return err;
	err = sg_dir_look(vol, dir, n);
	return err == -ENOENT ? 0 : err ?: -EEXIST;
}

bool sg_name_stands(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
		    int was)
{
	u64 ref = n->ref;
	int now;

	if (sg_iget(vol, dir, seq) == n->seq)
		return true;
	now = sg_dir_look(vol, dir, n);
	/* compares the complete word, because the same number may now be a directory */
	return now == was && (now || n->ref == ref);
}

bool sg_name_again(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		   int *err, struct sg_again *again)
{
	if (*err == -EAGAIN && n) {
		*err = again->turn < AGAIN_TURNS ? sg_dir_make_room(vol, dir, n) : -ENOSPC;
		if (!*err)
			return ++again->turn;
	}
	return *err == -ENOSPC && vol->up->more_space(vol, &again->nospace);
}

void sg_drop_link(struct sg_tx *tx, const struct sg_iref *ref, s64 now)
{
	u64 mode = sg_tx_iget(tx, ref, mode);
	u32 nlink = sg_nlink(mode);

	sg_tx_inode(tx, ref);
	sg_tx_times(tx, ref, 0, now);
	if (!nlink)	/* damaged: the inode is deferred already, or fsck finds it */
		return;
	nlink = sg_is_dir(mode) ? 0 : nlink - 1;
	sg_tx_iset(tx, ref, mode, sg_mode(mode) | (u64)nlink << 32);
	if (!nlink)
		sg_defer_inode(tx, ref);
}

void sg_add_links(struct sg_tx *tx, const struct sg_iref *dir, int by)
{
	u64 mode = sg_tx_iget(tx, dir, mode);
	u32 nlink = sg_nlink(mode) + (u32)by;

	if (by && nlink >= 2)
		sg_tx_iset(tx, dir, mode, sg_mode(mode) | (u64)nlink << 32);
}

/* --- new inodes ------------------------------------------------------------------------------- */

static bool type_known(u32 mode)
{
	switch (mode & SG_S_IFMT) {
	case SG_S_IFREG: case SG_S_IFDIR: case SG_S_IFLNK: case SG_S_IFBLK: case SG_S_IFCHR:
	case SG_S_IFIFO: case SG_S_IFSOCK:
		return !(mode & ~(SG_S_IFMT | 07777u));
	}
	return false;
}

static int new_check(const struct sg_new *new)
{
	if (!type_known(new->mode) || new->xattrs_len > SG_XATTR_TOTAL_MAX)
		return -EINVAL;
	if (!sg_is_lnk(new->mode))
		return 0;
	if (!new->target_len)
		return -ENOENT;
	return new->target_len > SG_SYMLINK_MAX ? -ENAMETOOLONG : 0;
}

static void set_target(struct sg_vol *vol, u64 at, const char *target, u32 len)
{
	u64 word;
	u32 i;

	for (i = 0; i < len; i += 8) {
		word = 0;
		memcpy(&word, target + i, SG_MIN(len - i, 8u));
		sg_fresh_set(vol, at + i, word);
	}
	sg_wb(sg_at(vol, at), len);
}

/*
 * Fills a new record. No system uses it yet, so the stores are those to a fresh page. Returns the
 * number of pages taken.
 */
static u64 new_symlink(struct sg_tx *tx, const struct sg_new *new, const struct sg_iref *ref)
{
	u64 page = 0;

	if (new->target_len < sizeof(((struct sg_inode *)0)->tail))
		set_target(tx->vol, SG_IOFF(ref, tail), new->target, new->target_len);
	else if (!sg_take_page(tx, SG_USE_META, &page))
		set_target(tx->vol, page, new->target, new->target_len);
	sg_fresh_set(tx->vol, SG_IOFF(ref, size), new->target_len);
	sg_fresh_set(tx->vol, SG_IOFF(ref, table), page);
	return page != 0;
}

int sg_new_inode(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 parent,
		 struct sg_iref *out)
{
	u64 head = 0, pages = 0, blocks = 0;
	u64 special = sg_is_dir(new->mode) ? parent : new->rdev;

	if (sg_inode_take(tx, new, nlink, special, out))
		return tx->err;
	if (sg_is_lnk(new->mode))
		blocks = new_symlink(tx, new, out);
	if (new->xattrs_len && sg_xattr_build(tx, out->ino, new->xattrs, new->xattrs_len, &head,
					      &pages))
		return tx->err;
	blocks += pages;
	if (blocks) {
		sg_fresh_set(tx->vol, SG_IOFF(out, xattr), head);
		sg_fresh_set(tx->vol, SG_IOFF(out, blocks), blocks);
	}
	if (blocks || sg_is_lnk(new->mode))
		sg_wb(sg_at(tx->vol, out->off), sizeof(struct sg_inode));
	return tx->err;
}

static int create_tx(struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
		     const struct sg_new *new, struct sg_iref *out)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	bool is_dir = sg_is_dir(new->mode);

	if (!sg_new_inode(tx, new, is_dir ? 2 : 1, dir->ino, out)) {
		sg_inode_inherit(tx, dir, new->mode, out);
		sg_dir_add(tx, dir, n, out->ino, sg_type(new->mode));
		sg_add_links(tx, dir, is_dir);
		sg_tx_times(tx, dir, new->now, new->now);
	}
	return sg_tx_commit(tx);
}

static int create_locked(struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
			 const struct sg_new *new, struct sg_iref *out)
{
	struct sg_again again = {};
	int err = name_free(vol, dir, n);

	if (err)
		return err;
	if (sg_is_dir(new->mode) && sg_nlink(sg_iget(vol, dir, mode)) >= SG_LINK_MAX)
		return -EMLINK;
	do {
		err = create_tx(vol, dir, n, new, out);
	} while (sg_name_again(vol, dir, n, &err, &again));
	return err;
}

int sg_create(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      const struct sg_new *new, struct sg_iref *out)
{
	struct sg_name n;
	int err = sg_name_check(name, len, -EEXIST) ?: new_check(new) ?: sg_may_write(vol);

	if (err)
		return err;
	sg_name_of(vol, name, len, &n);
	err = sg_ilock(vol, dir);
	if (err)
		return err;
	err = create_locked(vol, dir, &n, new, out);
	sg_iunlock(vol, dir);
	return err;
}

static int tmpfile_tx(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out)
{
	struct sg_tx *tx = sg_tx_begin(vol);

	if (!sg_new_inode(tx, new, 0, 0, out)) {
		sg_tmpfile_open(vol, out);
		sg_defer_kept(tx, out);
	}
	return sg_tx_commit(tx);
}

int sg_tmpfile(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out)
{
	struct sg_again again = {};
	int err = new_check(new) ?: sg_may_write(vol);

	if (err)
		return err;
	if (sg_is_dir(new->mode))
		return -EISDIR;
	do {
		err = tmpfile_tx(vol, new, out);
	} while (sg_name_again(vol, NULL, NULL, &err, &again));
	return err;
}

/* --- links ------------------------------------------------------------------------------------ */

static int link_tx(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
		   struct sg_name *n, s64 now)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	u64 mode = sg_iget(vol, inode, mode);

	sg_tx_inode(tx, inode);
	sg_tx_iset(tx, inode, mode, mode + (1ULL << 32));
	sg_tx_times(tx, inode, 0, now);
	if (!sg_nlink(mode))
		sg_disown_inode(tx, inode);
	sg_dir_add(tx, dir, n, inode->ino, sg_type(mode));
	sg_tx_times(tx, dir, now, now);
	return sg_tx_commit(tx);
}

static int link_locked(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
		       struct sg_name *n, s64 now)
{
	u64 mode = sg_iget(vol, inode, mode);
	struct sg_again again = {};
	int err = name_free(vol, dir, n);

	if (err)
		return err;
	if (!mode)
		return -ESTALE;
	if (sg_is_dir(mode))
		return -EPERM;
	/*
	 * another system may have removed the last name; an inode that this system made without a
	 * name is allowed
	 */
	if (!sg_nlink(mode) && !sg_ledger_deferred(vol, inode) && !sg_ledger_keeps(vol, inode))
		return -ENOENT;
	if (sg_nlink(mode) >= SG_LINK_MAX)
		return -EMLINK;
	do {
		err = link_tx(vol, inode, dir, n, now);
	} while (sg_name_again(vol, dir, n, &err, &again));
	if (!err && !sg_nlink(mode))
		sg_ledger_let_go(vol, inode);
	return err;
}

int sg_link(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
	    const char *name, u32 len, s64 now)
{
	struct sg_name n;
	int err = sg_name_check(name, len, -EEXIST) ?: sg_may_write(vol);

	if (err)
		return err;
	sg_name_of(vol, name, len, &n);
	err = sg_lock_inodes(vol, dir, inode);
	if (err)
		return err;
	err = link_locked(vol, inode, dir, &n, now);
	sg_unlock_inodes(vol, dir, inode);
	return err;
}

/* --- remove ----------------------------------------------------------------------------------- */

static int remove_tx(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		     const struct sg_iref *victim, s64 now)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	bool is_dir = sg_is_dir(sg_iget(vol, victim, mode));

	sg_tx_plain(tx);
	sg_dir_remove(tx, dir, n);
	sg_add_links(tx, dir, is_dir ? -1 : 0);
	sg_tx_times(tx, dir, now, now);
	sg_drop_link(tx, victim, now);
	return sg_tx_commit(tx);
}

static int remove_locked(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
			 const struct sg_iref *victim, bool want_dir, s64 now)
{
	bool is_dir = sg_is_dir(sg_iget(vol, victim, mode));
	struct sg_again again = {};
	int err;

	if (is_dir != want_dir)
		return is_dir ? -EISDIR : -ENOTDIR;
	if (is_dir && sg_iget(vol, victim, entries))
		return -ENOTEMPTY;
	do {
		err = remove_tx(vol, dir, n, victim, now);
	} while (sg_name_again(vol, dir, NULL, &err, &again));
	return err;
}

static int remove_name(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		       bool want_dir, const struct sg_iref *seen, bool exact, s64 now)
{
	struct sg_iref victim;
	struct sg_name n;
	unsigned int turn;
	int err = sg_may_write(vol);

	if (err)
		return err;
	sg_name_of(vol, name, len, &n);
	for (turn = 0; turn < SG_NAME_TRIES; turn++) {
		bool stands;

		err = sg_dir_look(vol, dir, &n);
		if (!err)
			err = sg_name_inode(vol, dir, &n, &victim);
		if (!err)
			err = sg_lock_inodes(vol, dir, &victim);
		if (err)
			return err;
		stands = sg_name_stands(vol, dir, &n, 0);
		if (stands)
			err = !seen || sg_is_seen(vol, &victim, seen) ||
			      (!exact && sg_is_unprotected(vol, &victim)) ?
				remove_locked(vol, dir, &n, &victim, want_dir, now) : -ESTALE;
		sg_unlock_inodes(vol, dir, &victim);
		if (stands)
			return err;
	}
	return -EBUSY;
}

int sg_unlink_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		   const struct sg_iref *seen, bool exact, s64 now)
{
	return sg_name_check(name, len, -EISDIR) ?:
		remove_name(vol, dir, name, len, false, seen, exact, now);
}

int sg_rmdir_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		  const struct sg_iref *seen, s64 now)
{
	return sg_name_check(name, len, len == 1 ? -EINVAL : -ENOTEMPTY) ?:
		remove_name(vol, dir, name, len, true, seen, true, now);
}
