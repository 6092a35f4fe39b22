/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of the commands that copy complete volumes: snapshot, clone, volume snapshot, volume
 * clone.
 */
#ifndef SG_CTL_COPY_H
#define SG_CTL_COPY_H

#include <limits.h>
#include "ctl.h"

/**
 * struct copy - a copy of a volume's state at one moment. @path: the source, as given by the user.
 * @stall_ms: limit for the pause of all systems.
 * @from, @mapped: the source's memory. @size: size of the volume. @sb: its checked superblock.
 * @fd, @name: the target. @to: the mapped target, or NULL if the copy reads and writes it.
 * @freeze, @thaw: functions that freeze and thaw all systems, or NULL without other systems. They
 * return -errno and set @why.
 * @how: the way in which the source was opened. @dir: directory of the mount.
 * @slots, @incarnation: for a volume without users, or with a mount that has not joined. They
 * change when a system joins, which makes the copy invalid.
 * @took, @wrote: duration (ns) and bytes of the last pass. @stalled: length of the pause of all
 * systems (ns).
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

/* --- copy.c: functions return 0, or -errno after a message ----------------------------------- */

/*
 * Opens a volume, or a directory where it is mounted. @left: if the mount table has no live system,
 * the tool does not join the volume, and so changes nothing in it.
 */
int copy_open(struct copy *s, const char *path, u64 stall_ms, bool left);
/*
 * Returns -EINVAL, after a message, if @name is on the volume itself, where each pass would add
 * data.
 */
int copy_refuse_own(const struct copy *s, const char *name);
/* Copies to @fd, @to and @name. Where the volume has data, the target may have any content. */
int copy_run(struct copy *s);
int copy_close(struct copy *s);
/* Checks the size of the copy; if *@size is 0, sets it to the volume's size. */
int copy_size(const struct copy *s, u64 *size);

/* --- part.c: a file that gets its name only when it is complete ------------------------------ */

/**
 * struct part - an incomplete file. @path: its temporary name. @whole: it is complete, but does not
 * have its own name yet.
 */
struct part {
	const char *name;
	char path[PATH_MAX];
	int fd;
	bool whole;
};
/*
 * Creates the file with @size zero bytes, as a hole or (@reserved) with allocated memory. Replaces
 * an incomplete file of an earlier run.
 */
int part_open(struct part *p, const char *name, u64 size, bool reserved);
int part_finish(struct part *p);	/* makes the file durable, then gives it its name */
void part_close(struct part *p);	/* removes an incomplete file */

/* --- snapshot.c ------------------------------------------------------------------------------ */

/*
 * Copies an opened volume to a file, which gets its name when it is complete, and prints the
 * result.
 */
int copy_to_file(struct call *c, struct copy *s, const char *path);

/* --- clone.c --------------------------------------------------------------------------------- */

/**
 * struct own - the properties of a copy that becomes an independent volume. @path: its file or
 * device. @base: its base, if @base_given; otherwise it gets the base of its device. @size: the
 * size to which it grows.
 */
struct own {
	const char *path, *label;
	u64 base, size;
	bool base_given;
};
/*
 * Treats the systems in the copy's mount table as dead, because they use the source and not the
 * copy.
 */
int copy_own(const struct own *o);

#endif
