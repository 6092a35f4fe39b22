/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations under the recorder: each is done once, and then judged at every image that a crash
 * during it can leave. What is expected: the tree as it was before, or as it is after; once the
 * operation has returned, after only. File data may be mixed byte by byte (data=inplace), but never
 * holds anything that was not written, and a size covers nothing that was not.
 */
#ifndef SG_TEST_CRASH_WORK_H
#define SG_TEST_CRASH_WORK_H

#include "crash.h"

enum cw_kind {
	CW_CREATE, CW_MKDIR, CW_SYMLINK, CW_MKNOD, CW_LINK, CW_UNLINK, CW_RMDIR, CW_RENAME, CW_EVICT,
	CW_TMPFILE, CW_WRITE, CW_RESIZE, CW_PUNCH, CW_ALLOCATE, CW_COLLAPSE, CW_INSERT, CW_XATTR,
	CW_UNXATTR, CW_SETATTR, CW_RECLAIM, CW_REMOUNT, CW_KINDS
};

struct cw_op {
	enum cw_kind kind;
	const char *a, *b;	/* paths from the root, without a leading slash */
	u64 pos, len;
	unsigned int flags;
};

/**
 * struct cw - the volume that is worked on, and what is known of the operation under way.
 * @nest: one image in so many is also crashed during its own recovery; 0: none.
 * @check: one image in so many is checked before anybody recovers it, too.
 * @beside: a system that is there all the time, and goes on in each image; or slot -1.
 */
struct cw {
	struct tvol t;
	struct sg_vol beside;
	struct sg_iref beside_dir, beside_file;
	struct rec rec;
	struct crash c, nested;
	u64 nest, check;
	struct rng rng;
	struct sg_iref open;	/* inode that was unlinked last, to be evicted */
	u64 stamp;
	/* the operation */
	u64 ino;		/* of the file whose data it changes, or 0 */
	u64 before, after;
	char *before_text;
	u8 *old, *new;
	u64 old_size, new_size;
	bool done;		/* as crash.done, for the recovery under test */
	u64 recoveries;
};

void cw_make(struct cw *w, u64 size, u64 seed);
/* Leaves only so many pages free: operations meet a full volume. */
void cw_fill(struct cw *w, u64 leave);
/* Returns what the operation returned; judges if it succeeded. */
s64 cw_do(struct cw *w, const struct cw_op *op);
/*
 * From now on there is another system, and it is only one of the two that dies: the other one goes
 * on, says that it is dead, needs its locks, recovers it, and finds old or new.
 */
void cw_beside(struct cw *w);
void cw_drop(struct cw *w);
/* The inode behind a path; false: there is none. */
bool cw_find(struct cw *w, const char *path, struct sg_iref *ref);

#endif
