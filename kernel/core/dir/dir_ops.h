/* SPDX-License-Identifier: GPL-2.0 */
/* Steps of operations on names, shared by dir_ops.c, rename.c and readlink.c. */
#ifndef SG_DIR_OPS_H
#define SG_DIR_OPS_H

#include "internal.h"

#define SG_NAME_TRIES	1000	/* tries, if a name means another inode at each look */

/* 0, or the reason why such a name cannot be made; @dots: the error for "." and "..". */
int sg_name_check(const char *name, u32 len, int dots);

/* May names be added to the locked directory? 0, -ENOTDIR, -ENOENT: it has been removed. */
int sg_dir_alive(const struct sg_vol *vol, const struct sg_iref *dir);

/* The inode to which a found name refers. */
int sg_name_inode(const struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		  struct sg_iref *out);

/*
 * A name was looked up, then the directory was locked: does it still mean the same? Looks again if
 * the directory has changed. @was: the result of the first look; -ENOENT is a result, too.
 */
bool sg_name_stands(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
		    int was);

/*
 * After a transaction that adds @n (or NULL: none) to @dir: whether to try it again, because the
 * reason for its failure has been removed. Locks are held. @again begins with { 0 }.
 */
struct sg_again {
	unsigned int turn;
	struct sg_nospace nospace;
};
bool sg_name_again(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		   int *err, struct sg_again *again);

/* The locked inode is the one that @seen means. */
static inline bool sg_is_seen(const struct sg_vol *vol, const struct sg_iref *now,
			      const struct sg_iref *seen)
{
	return now->ino == seen->ino && sg_is_same(vol, seen);
}

/*
 * Any user that may remove names from the directory may remove this file: the file itself is not
 * protected.
 */
static inline bool sg_is_unprotected(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_dir(sg_iget(vol, ref, mode)) &&
	       !((u32)(sg_iget(vol, ref, genflags) >> 32) & (SG_FL_IMMUTABLE | SG_FL_APPEND));
}

/* A new inode within the transaction, complete except for its name. */
int sg_new_inode(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 parent,
		 struct sg_iref *out);

/* Removes one link. If it was the last one, the inode is deferred. */
void sg_drop_link(struct sg_tx *tx, const struct sg_iref *ref, s64 now);
/* Changes a directory's link count by its subdirectories. */
void sg_add_links(struct sg_tx *tx, const struct sg_iref *dir, int by);

static inline unsigned int sg_type(u64 mode)	/* as stored in a name */
{
	return (sg_mode(mode) & SG_S_IFMT) >> 12;
}

#endif
