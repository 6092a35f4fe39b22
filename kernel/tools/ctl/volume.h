/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the commands about zones and the volumes in them. */
#ifndef SG_CTL_VOLUME_H
#define SG_CTL_VOLUME_H

#include <limits.h>
#include "ctl.h"
#include "lvm.h"
#include "zone.h"

#define SHOW_MAX	320
/* Prefix of the logical volume that reserves a growth; volumes' names have no '_'. */
#define GROWTH_PREFIX	"grow_"

/**
 * struct refusal - details of a refused command, in addition to its errno. @largest: if @sized, the
 * largest possible size. @system: the systems in the volume's mount table.
 */
struct refusal {
	bool sized;
	u64 largest;
	unsigned int systems;
	struct {
		unsigned int slot;
		char name[65];
	} system[SG_SLOTS];
};

/**
 * struct volume - the volume of a command, as LVM last reported it. @zone: its zone, or the zone
 * for a new volume. @piece: its place, or NULL if no volume has that name. @lv: its name in LVM.
 * @path: path of its device. @lock: descriptor of the lock against other commands, or -1.
 * @finished: this command has removed an incomplete volume of that name. @why: details of a refused
 * change.
 */
struct volume {
	struct zones zones;
	struct zone *zone;
	struct zone_piece *piece;
	char name[ZONE_NAME_MAX + 1], lv[SHOW_MAX], path[SHOW_MAX + 8];
	int lock;
	bool finished;
	struct refusal why;
};

/* --- found.c: finds a volume and locks it. All functions report errors ----------------------- */

/*
 * Reads "ZONE/NAME", or "NAME" if there is one zone. Returns the exit status. Does not search for
 * the volume.
 */
int volume_named(const char *name);
int before_volume(struct call *c);
int zone_pick(const struct zones *z, const char *name, size_t len, struct zone **out);
/* Opens a volume for reading. A volume of that name need not exist. */
int volume_open(struct volume *v, const char *name);
/*
 * Opens a volume for a change. First completes unfinished changes of earlier commands in the zone.
 *
 */
int volume_hold(struct volume *v, const char *name);
int volume_reload(struct volume *v);
void volume_close(struct volume *v);
/* Opens a volume that must exist and be complete. On return its device exists. */
int volume_need(struct volume *v);
int volume_need_any(struct volume *v);		/* like volume_need(), also for a snapshot */
int volume_activate(const char *lv, const char *path);
/*
 * Locks a zone for the choice of space in it. Returns -1, after a message, if it cannot be locked.
 *
 */
int zone_lock(const char *zone);
/*
 * Locks all zones, to make or destroy one. Returns -EAGAIN if another command has the lock. Reports
 * errors.
 */
int zones_lock(void);
/*
 * Locks a logical volume. Returns -1 with EBUSY if another command has the lock; reports other
 * errors.
 */
int volume_lock(const char *zone, const char *name);

/* --- volume.c ------------------------------------------------------------------------------ */

/*
 * Makes a logical volume for @v, with WIPING_TAG, in the smallest free space that is large enough;
 * @reserve of it is for later growth. Reports errors.
 */
int volume_cut(struct volume *v, u64 size, u64 reserve, u64 align);
int volume_wipe(const struct volume *v);	/* zeroes its bytes */

/* --- wipe.c -------------------------------------------------------------------------------- */

/*
 * Opens the device exclusively. No process uses the device now, and none can until the caller
 * closes it. Returns -errno after a message.
 */
int volume_claim(const char *path);
/*
 * Checks that no process has the claimed device open, not even to read it or as part of another
 * device. Returns -errno after a message.
 */
int volume_sole(int fd, const char *path);
/* Zeroes all bytes of a claimed device. */
int wipe(int fd, const char *path, const char *name);
/* Wipes a logical volume with WIPING_TAG, then removes it. */
int wipe_and_remove(const char *zone, const char *name);
/*
 * Completes unfinished commands. Returns true if there were some, which makes the map out of date.
 *
 */
bool zone_finish(const struct zone *z);

/* --- shorten.c ------------------------------------------------------------------------------ */

/*
 * Shortens the logical volume to the size of @v after a failed growth. Does not do so, and prints a
 * message, if the file system has grown, or if a mount of this system may have read the new size.
 */
void volume_shorten(const struct volume *v);

/* --- engine.c: the file system in a volume --------------------------------------------------- */

/* Reads the content of the device. Returns false, after a message if @say, if it cannot be read. */
bool engine_look(const char *path, struct sg_probe *out, bool say);
/*
 * Returns -EBUSY, after a message, if a live system has the volume mounted; @v->why then names the
 * systems in the mount table.
 */
int engine_unused(struct volume *v, bool force);
/*
 * Runs mkfs.stargatefs on that part of the volume, with these options and those of each volume.
 */
int engine_make(const struct volume *v, u64 size, char *const *options, int n, bool dry);
int engine_check(const struct volume *v, char *const *options, int n);	/* the exit status */
/*
 * For a volume mounted here: returns -EBUSY, after a message, if another system has no memory for
 * the growth. The check detects such a system before any system grows.
 */
int engine_may_grow(const struct volume *v, u64 size);
/* Reports whether the volume can use a reserve with which it has this much @memory. */
int engine_may_reach(const char *lv, const struct sg_super *sb, u64 memory);
/* grows it on all its systems to exactly that size */
int engine_grow(const struct volume *v, u64 size);
int engine_relocate(const struct volume *v);	/* relocates it to the address of its device */
/* Finds the directory where this system has it mounted. Returns false if there is none. */
bool engine_mounted(const char *path, char where[PATH_MAX]);

/* --- reason.c: for programs ----------------------------------------------------------------- */

/*
 * Returns the exit status for a reported error: -EINVAL for a bad argument, -ENOENT if there is no
 * such volume, -EEXIST if one of that name exists, -ENOSPC without enough space, -EBUSY if it is in
 * use, -EAGAIN if another command is changing it, -ENODEV without a zone, -EUCLEAN for damage. Any
 * other error is a failure. @why may be NULL.
 */
int refused(struct call *c, int err, const struct refusal *why);
void refusal_systems(struct refusal *why, const struct target *t, const struct sg_super *sb);

/* --- volume_show.c ------------------------------------------------------------------------- */

void show_volume(struct call *c, const struct zone *z, const struct zone_piece *p);

#endif
