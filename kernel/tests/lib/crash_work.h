/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations under the recorder. Each operation runs once. Then the test judges each image that a
 * crash during the operation can leave. The tree must be the one before or after the operation;
 * after the operation has returned, only the one after it. File data may be mixed byte by byte
 * (data=inplace), unless the write is atomic. But data never holds bytes that were not written, and
 * a size never covers bytes that were not written.
 */
#ifndef SG_TEST_CRASH_WORK_H
#define SG_TEST_CRASH_WORK_H

#include "crash.h"

enum cw_kind {
	CW_CREATE, CW_MKDIR, CW_SYMLINK, CW_MKNOD, CW_LINK, CW_UNLINK, CW_RMDIR, CW_RENAME, CW_EVICT,
	CW_TMPFILE, CW_WRITE, CW_RESIZE, CW_PUNCH, CW_ALLOCATE, CW_COLLAPSE, CW_INSERT, CW_XATTR,
	CW_UNXATTR, CW_SETATTR, CW_RECLAIM, CW_REMOUNT,
	CW_ATOMIC,	/* an atomic write of at most SG_ATOMIC_MAX bytes */
	CW_FLAG,	/* sets data=atomic for the file; len 0: clears it */
	CW_MAP,		/* a process maps the file; len 0: unmaps it */
	CW_SEAL,	/* seals the file; len 0: unseals it */
	CW_ROOT,	/* keeps a root with the seal */
	CW_STALE,	/* a process stores behind the size, through a mapping */
	CW_KINDS
};

struct cw_op {
	enum cw_kind kind;
	const char *a, *b;	/* paths from the root, without a leading slash */
	u64 pos, len;
	unsigned int flags;
};

/**
 * struct cw - the volume, and the state of the operation in progress.
 * @nest: one image in this many is also crashed during its own recovery; 0: none.
 * @check: one image in this many is also checked before its recovery.
 * @beside: a second system, which does not crash (cw_beside()). In each image it continues its work
 *	and recovers the crashed system. If its slot is -1, there is no second system.
 */
struct cw {
	struct tvol t;
	struct sg_vol beside;
	struct sg_iref beside_dir, beside_file;
	struct rec rec;
	struct crash c, nested;
	u64 nest, check;
	struct rng rng;
	struct sg_iref open;	/* the last unlinked inode, not yet evicted */
	u64 stamp;
	/* the operation */
	u64 ino;		/* number of the file whose data the operation changes, or 0 */
	u64 before, after;
	char *before_text;
	u8 *old, *new;
	u64 old_size, new_size;
	bool whole;		/* the write is atomic */
	bool done;		/* like crash.done, for the recovery under test */
	u64 recoveries;
};

void cw_make(struct cw *w, u64 size, u64 seed);
/* Leaves only @leave pages free, so that operations reach a full volume. */
void cw_fill(struct cw *w, u64 leave);
/* Runs an operation, judges its crashes if it succeeded, and returns its result. */
s64 cw_do(struct cw *w, const struct cw_op *op);
/*
 * Joins a second system. From now on only the first system dies. The second one continues, fences
 * the dead system, requests its locks, recovers it, and finds the old or the new tree.
 */
void cw_beside(struct cw *w);
void cw_drop(struct cw *w);
/* Finds the inode of a path. Returns false if the path does not exist. */
bool cw_find(struct cw *w, const char *path, struct sg_iref *ref);

#endif
