/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share that copy whole volumes: snapshot, clone, volume snapshot, volume clone. */
#ifndef SG_CTL_COPY_H
#define SG_CTL_COPY_H

#include <limits.h>
#include "ctl.h"

/**
 * struct copy - a volume that is copied as it is at one moment.
 * @path: of it, as the user calls it. @stall_ms: that all may have to stand still for.
 * @from, @mapped: its memory. @size: of the volume. @sb: its superblock, checked.
 * @fd, @name: of what it is copied to. @to: that, mapped; or NULL: it is read and written.
 * @freeze, @thaw: how all are made to stand still, or NULL: there is nobody. -errno, with @why.
 * @how: it has been opened. @dir: of the mount.
 * @slots, @incarnation: of one that nobody uses, or has a mount that has not joined: if somebody
 *	comes the copy does not count.
 * @took, @wrote: of the last pass: ns, bytes. @stalled: for how long all stood still (ns).
 */
struct copy {
	const char *path, *name;
	unsigned int stall_ms;
	const u8 *from;
	u64 mapped, size;
	struct sg_super sb;
	int fd, dir;
	u8 *to;
	enum { COPY_MOUNTED, COPY_JOINED, COPY_LEFT } how;
	struct member member;
	struct sg_slot slots[SG_SLOTS];
	u64 incarnation;
	char why[200];
	int (*freeze)(struct copy *s, unsigned int limit_ms);
	int (*thaw)(struct copy *s);
	u64 took, wrote, stalled, tries;
};

/* --- copy.c: 0, or -errno, which has been said ----------------------------------------------- */

/*
 * A volume, or a directory that it is mounted at. @left: if nobody who lives is in its mount table
 * it is not joined either, so that nothing of it changes.
 */
int copy_open(struct copy *s, const char *path, u64 stall_ms, bool left);
/* -EINVAL, said: @name would lie on the volume itself, which grew with each pass. */
int copy_refuse_own(const struct copy *s, const char *name);
/* To @fd, @to and @name. What is there need not be zero where the volume has something. */
int copy_run(struct copy *s);
int copy_close(struct copy *s);
/* What a copy is to have: *@size, if it may be that; 0: as much as the volume. */
int copy_size(const struct copy *s, u64 *size);

/* --- part.c: a file that gets its name when it is whole -------------------------------------- */

/**
 * struct part - one being made. @path: what it is called until then. @whole: only its name is
 * missing.
 */
struct part {
	const char *name;
	char path[PATH_MAX];
	int fd;
	bool whole;
};
/* With so many zeroes, as a hole or (@reserved) in memory. What others have left is made anew. */
int part_open(struct part *p, const char *name, u64 size, bool reserved);
int part_finish(struct part *p);	/* durable, then it has its name */
void part_close(struct part *p);	/* one that is not whole is gone */

/* --- snapshot.c ------------------------------------------------------------------------------ */

/* What has been opened, to a file that gets its name when it is whole. Shows it. */
int copy_to_file(struct call *c, struct copy *s, const char *path);

/* --- clone.c --------------------------------------------------------------------------------- */

/**
 * struct own - what a copy gets that is to be a volume of its own.
 * @path: where it is. @base: that it is made for, if @base_given; else where its device is.
 * @size: that it grows to.
 */
struct own {
	const char *path, *label;
	u64 base, size;
	bool base_given;
};
/* Those who used the volume that it is a copy of are dead here. */
int copy_own(const struct own *o);

#endif
