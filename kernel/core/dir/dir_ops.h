/* SPDX-License-Identifier: GPL-2.0 */
/* What dir_ops.c, rename.c and readlink.c share: steps of operations on names. */
#ifndef SG_DIR_OPS_H
#define SG_DIR_OPS_H

#include "internal.h"

#define SG_NAME_TRIES	1000	/* a name that means something else each time it is looked at */

/* 0, or why no such name can be made; @dots: the error for "." and "..". */
int sg_name_check(const char *name, u32 len, int dots);

/* May the directory, locked, get names? 0, -ENOTDIR, -ENOENT when it has been removed. */
int sg_dir_alive(const struct sg_vol *vol, const struct sg_iref *dir);

/* The inode that a name found refers to. */
int sg_name_inode(const struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		  struct sg_iref *out);

/*
 * A name was looked up, then the directory locked: does it still mean what it meant? Looks again
 * if the directory has changed. @was: what looking said, -ENOENT counts as an answer.
 */
bool sg_name_stands(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
		    int was);

/*
 * After a transaction that adds @n (or none: NULL) to @dir: whether to try it again, because what
 * failed it has been seen to. Locks are held. @again begins with { 0 }.
 */
struct sg_again {
	unsigned int turn;
	struct sg_hunger hunger;
};
bool sg_name_again(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n,
		   int *err, struct sg_again *again);

/* The inode, locked, is the one that @seen means. */
static inline bool sg_is_seen(const struct sg_vol *vol, const struct sg_iref *now,
			      const struct sg_iref *seen)
{
	return now->ino == seen->ino && sg_is_same(vol, seen);
}

/* A file that whoever may remove names from its directory may remove: no one else is asked. */
static inline bool sg_is_unprotected(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_dir(sg_iget(vol, ref, mode)) &&
	       !((u32)(sg_iget(vol, ref, genflags) >> 32) & (SG_FL_IMMUTABLE | SG_FL_APPEND));
}

/* A new inode within the transaction, complete but for its name. */
int sg_new_inode(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 parent,
		 struct sg_iref *out);

/* One link less. The last one: the inode is owed. */
void sg_drop_link(struct sg_tx *tx, const struct sg_iref *ref, s64 now);
/* The links of a directory from its subdirectories. */
void sg_add_links(struct sg_tx *tx, const struct sg_iref *dir, int by);

static inline unsigned int sg_type(u64 mode)	/* as a name has it */
{
	return (sg_mode(mode) & SG_S_IFMT) >> 12;
}

#endif
