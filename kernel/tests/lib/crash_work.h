/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations under the recorder. Each operation runs once, and is then judged at every image that a
 * crash during it can leave. The tree must be as before the operation or as after it; once the
 * operation has returned, only as after it. File data may be mixed byte by byte (data=inplace),
 * unless the write is atomic. But data never holds bytes that were not written, and a size never
 * covers bytes that were not written.
 */
#ifndef SG_TEST_CRASH_WORK_H
#define SG_TEST_CRASH_WORK_H

#include "crash.h"

enum cw_kind {
	CW_CREATE, CW_MKDIR, CW_SYMLINK, CW_MKNOD, CW_LINK, CW_UNLINK, CW_RMDIR, CW_RENAME, CW_EVICT,
	CW_TMPFILE, CW_WRITE, CW_RESIZE, CW_PUNCH, CW_ALLOCATE, CW_COLLAPSE, CW_INSERT, CW_XATTR,
	CW_UNXATTR, CW_SETATTR, CW_RECLAIM, CW_REMOUNT,
	CW_ATOMIC,	/* a write that is old or new as a whole, of SG_ATOMIC_MAX bytes at most */
	CW_FLAG,	/* each write to the file is atomic from now on; len 0: not any more */
	CW_MAP,		/* a process maps the file; len 0: not any more */
	CW_KINDS
};

struct cw_op {
	enum cw_kind kind;
	const char *a, *b;	/* paths from the root, without a leading slash */
	u64 pos, len;
	unsigned int flags;
};

/**
 * struct cw - the volume under work, and what is known of the operation in progress.
 * @nest: one image in this many is also crashed during its own recovery; 0: none.
 * @check: one image in this many is also checked before its recovery.
 * @beside: a system that stays joined all the time, and continues in each image; or slot -1.
 */
struct cw {
	struct tvol t;
	struct sg_vol beside;
	struct sg_iref beside_dir, beside_file;
	struct rec rec;
	struct crash c, nested;
	u64 nest, check;
	struct rng rng;
	struct sg_iref open;	/* the inode unlinked last, still to be evicted */
	u64 stamp;
	/* the operation */
	u64 ino;		/* of the file whose data the operation changes, or 0 */
	u64 before, after;
	char *before_text;
	u8 *old, *new;
	u64 old_size, new_size;
	bool whole;		/* the write is atomic */
	bool done;		/* as crash.done, for the recovery under test */
	u64 recoveries;
};

void cw_make(struct cw *w, u64 size, u64 seed);
/* Leaves only this many pages free, so that operations meet a full volume. */
void cw_fill(struct cw *w, u64 leave);
/* Returns what the operation returned; judges if it succeeded. */
s64 cw_do(struct cw *w, const struct cw_op *op);
/*
 * Joins a second system. From now on only one of the two dies. The other one continues, fences the
 * dead system, needs its locks, recovers it, and finds the tree old or new.
 */
void cw_beside(struct cw *w);
void cw_drop(struct cw *w);
/* Finds the inode of a path. False: the path does not exist. */
bool cw_find(struct cw *w, const char *path, struct sg_iref *ref);

#endif
