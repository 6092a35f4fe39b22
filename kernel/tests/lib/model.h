/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A POSIX tree in plain memory, and random operations that are applied to the tree and to a volume.
 * The engine must return the results that the model predicts, and the two trees must be equal at
 * any time.
 */
#ifndef SG_TEST_MODEL_H
#define SG_TEST_MODEL_H

#include <sys/stat.h>
#include "sparse.h"
#include "test.h"

struct m_xattr {
	unsigned int space;
	u32 name_len, len;
	char name[256];
	u8 *value;
};
#define M_XATTRS	8

struct m_inode;
struct m_name {
	u32 hash, len;
	char *name;
	struct m_inode *inode;
};

struct m_inode {
	struct sg_iref ref;
	u32 mode, uid, gid, nlink, flags;
	bool atomic;		/* SG_FL_ATOMIC */
	u64 rdev, size;
	struct sparse data;	/* of a regular file */
	char *target;		/* of a symbolic link */
	struct m_xattr xattr[M_XATTRS];
	unsigned int xattrs;
	struct m_name *name;	/* entries of a directory */
	u32 names, room;
	struct m_inode *parent;
	u32 at;			/* index in model.inode */
};

#define M_NUMBERS	(1u << 20)	/* limit of inode numbers */

enum m_aim { M_GROW, M_SHRINK };

/**
 * struct model - a tree, the volume that should hold the same tree, and the state of a run.
 * @inode: all inodes that exist, @unnamed of them without a name.
 * @done: operations that succeeded. @full: operations that failed on a full volume.
 * @shared: other systems use the volume as well. The model then covers only its own directory, and
 * has each of its inodes open, so that no system frees inodes without a name.
 * @using: a bit per inode number, for model_in_use().
 */
struct model {
	struct tvol t;
	struct rng rng;
	struct m_inode **inode;
	u32 inodes, room, unnamed;
	bool shared;
	u64 using[M_NUMBERS / 64];
	struct m_inode *root;
	enum m_aim aim;
	u64 ops, done, full, recoveries;
	u8 *buf, *got;		/* M_IO bytes each */
};
#define M_IO		(3u << 20)
#define M_UNNAMED_MAX	24

void model_make(struct model *m, u64 size, u64 memory, u64 seed);
/* The caller has joined @m->t; @dir is an empty directory. */
void model_share(struct model *m, const struct sg_iref *dir, u64 seed);
bool model_in_use(struct sg_vol *vol, u64 ino, u32 generation);	/* for sg_vol.in_use */
/*
 * Adapts the model to a new join after a crash or a leave, which has freed inodes without a name.
 */
void model_again(struct model *m);
void model_step(struct model *m);	/* does one random operation */
/* sets data=atomic for new files and directories of the root */
void model_all_atomic(struct model *m);
void model_compare(struct model *m);	/* compares the complete trees */
/* Leaves or crashes, checks, and joins again, which frees inodes without a name. */
void model_remount(struct model *m, bool crash);
void model_clear(struct model *m);	/* removes all files through the engine */
void model_drop(struct model *m);

/* --- between the model's own files ---------------------------------------------------------- */

/* Errors that are correct for an operation. Without such errors, the operation must succeed. */
struct m_expect {
	int err[8];
	unsigned int n;
	/*
	 * pages that the operation may need: with this many free pages or fewer, ENOSPC is correct
	 */
	u64 need;
};
void m_may(struct m_expect *e, bool cond, int err);
/* Checks the result @ret. Returns true if the operation succeeded. */
bool m_check(struct model *m, const struct m_expect *e, s64 ret);

struct m_inode *m_add(struct model *m, const struct sg_iref *ref, u32 mode);
void m_forget(struct model *m, struct m_inode *in);
struct m_name *m_find(const struct m_inode *dir, const char *name, u32 len);
void m_name_add(struct m_inode *dir, const char *name, u32 len, struct m_inode *in);
void m_name_remove(struct m_inode *dir, struct m_name *n);
/* true also for @above itself */
bool m_is_below(const struct m_inode *in, const struct m_inode *above);
void m_unlinked(struct model *m, struct m_inode *in);	/* evicts the inode, now or later */
void m_evict(struct model *m, struct m_inode *in);
/* Return a random inode, or NULL if there is none. */
struct m_inode *m_pick_dir(struct model *m);
struct m_inode *m_pick_file(struct model *m);
struct m_inode *m_pick_any(struct model *m);
u32 m_new_name(struct model *m, char name[SG_NAME_MAX + 2]);

void m_step_names(struct model *m);
void m_step_data(struct model *m);
void m_step_attr(struct model *m);
void m_step_volume(struct model *m);

#endif
