/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of the commands that copy whole volumes: snapshot, clone, volume snapshot, volume
 * clone.
 */
#ifndef SG_CTL_COPY_H
#define SG_CTL_COPY_H

#include <limits.h>
#include "ctl.h"

/**
 * struct copy - a volume that is copied as it is at one moment.
 * @path: the source, as the user calls it. @stall_ms: bound on the pause of all systems.
 * @from, @mapped: its memory. @size: of the volume. @sb: its superblock, checked.
 * @fd, @name: the target. @to: the target mapped; or NULL: it is read and written.
 * @freeze, @thaw: functions that freeze all systems, or NULL: there are none. -errno, with @why.
 * @how: the way in which it was opened. @dir: of the mount.
 * @slots, @incarnation: for a volume without users, or with a mount that has not joined: if a
 *	system joins, the copy does not count.
 * @took, @wrote: ns and bytes of the last pass. @stalled: length of the pause of all systems (ns).
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

/* --- copy.c: 0, or -errno, which has been reported ------------------------------------------- */

/*
 * Open a volume, or a directory where it is mounted. @left: if no live system is in its mount
 * table, it is not joined either, so that nothing in it changes.
 */
int copy_open(struct copy *s, const char *path, u64 stall_ms, bool left);
/* -EINVAL, reported: @name would be on the volume itself, which would grow with each pass. */
int copy_refuse_own(const struct copy *s, const char *name);
/* Copy to @fd, @to and @name. The target need not be zero where the volume has data. */
int copy_run(struct copy *s);
int copy_close(struct copy *s);
/* The size of the copy: *@size, if possible; 0: as large as the volume. */
int copy_size(const struct copy *s, u64 *size);

/* --- part.c: a file that gets its name when it is complete ----------------------------------- */

/**
 * struct part - a file in the making. @path: its name until then. @whole: it is complete and lacks
 * only its name.
 */
struct part {
	const char *name;
	char path[PATH_MAX];
	int fd;
	bool whole;
};
/*
 * Create it with @size zero bytes, as a hole or (@reserved) with memory. A leftover of an earlier
 * run is replaced.
 */
int part_open(struct part *p, const char *name, u64 size, bool reserved);
int part_finish(struct part *p);	/* makes it durable, then names it */
void part_close(struct part *p);	/* removes an incomplete file */

/* --- snapshot.c ------------------------------------------------------------------------------ */

/* Copy an opened volume to a file that gets its name when it is complete. Print it. */
int copy_to_file(struct call *c, struct copy *s, const char *path);

/* --- clone.c --------------------------------------------------------------------------------- */

/**
 * struct own - the properties of a copy that becomes a volume of its own.
 * @path: its place. @base: the base for which it is made, if @base_given; otherwise that of its
 *	device.
 * @size: the size to which it grows.
 */
struct own {
	const char *path, *label;
	u64 base, size;
	bool base_given;
};
/* The users of the source volume are dead in this copy. */
int copy_own(const struct own *o);

#endif
