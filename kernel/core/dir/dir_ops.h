/* SPDX-License-Identifier: GPL-2.0 */
/* Steps of operations on names, shared by dir_ops.c, rename.c and readlink.c. */
#ifndef SG_DIR_OPS_H
#define SG_DIR_OPS_H

#include "internal.h"

#define SG_NAME_TRIES	1000	/* attempts, if a name refers to another inode each time */

/*
 * Checks a name. Returns 0, or an error if the name is not allowed. @dots: the error for "." and
 * "..".
 */
int sg_name_check(const char *name, u32 len, int dots);

/*
 * Checks that names may be added to the locked directory. Returns -ENOENT if the directory has been
 * removed, or the error of a damaged directory.
 */
int sg_dir_alive(const struct sg_vol *vol, const struct sg_iref *dir);

/* Returns the inode to which a found name refers. */
int sg_name_inode(const struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		  struct sg_iref *out);

/*
 * Reports whether a name that was looked up before the directory was locked still has the same
 * result. Looks the name up again if the directory has changed. @was: the first result, possibly
 * -ENOENT.
 */
bool sg_name_stands(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
		    int was);

/*
 * Reports whether to repeat a failed transaction that adds @n (NULL: no name) to @dir, because the
 * reason for the failure has been removed. Locks are held. @again is { 0 } at first.
 */
struct sg_again {
	unsigned int turn;
	struct sg_nospace nospace;
};
bool sg_name_again(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		   int *err, struct sg_again *again);

/* Reports whether the locked inode is the one that @seen names. */
static inline bool sg_is_seen(const struct sg_vol *vol, const struct sg_iref *now,
			      const struct sg_iref *seen)
{
	return now->ino == seen->ino && sg_is_same(vol, seen);
}

/*
 * Reports whether the file itself has no protection. Any user who may remove names from the
 * directory may then remove the file.
 */
static inline bool sg_is_unprotected(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_dir(sg_iget(vol, ref, mode)) &&
	       !((u32)(sg_iget(vol, ref, genflags) >> 32) & (SG_FL_IMMUTABLE | SG_FL_APPEND));
}

/* Makes a new inode in the transaction, complete except for its name. */
int sg_new_inode(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 parent,
		 struct sg_iref *out);

/* Removes one link. If it was the last one, the inode is deferred. */
void sg_drop_link(struct sg_tx *tx, const struct sg_iref *ref, s64 now);
/* Adds @by subdirectories to a directory's link count. */
void sg_add_links(struct sg_tx *tx, const struct sg_iref *dir, int by);

static inline unsigned int sg_type(u64 mode)	/* as stored in a name */
{
	return (sg_mode(mode) & SG_S_IFMT) >> 12;
}

#endif
