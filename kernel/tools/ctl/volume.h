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
 * struct refusal - the reason why a command was not done, in addition to its errno.
 * @largest: if @sized, the largest possible size. @system: the systems in a volume's mount table.
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
 * struct volume - the volume of a command, as LVM had it at the last look.
 * @zone: its zone, or the one for which it is meant. @piece: its place, or NULL: no volume has that
 *	name.
 * @lv: its name for LVM. @path: of its device. @lock: -1, or no other command changes it meanwhile.
 * @finished: one of that name was half deleted, or half made, and is gone now.
 * @why: a change of it was refused.
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

/* --- found.c: which volume is meant, and its lock. All functions report errors ------------- */

/* "ZONE/NAME", or "NAME" if there is one zone. Returns the exit status; looks nothing up. */
int volume_named(const char *name);
int before_volume(struct call *c);
int zone_pick(const struct zones *z, const char *name, size_t len, struct zone **out);
/* Open it to look. No volume of that name need exist. */
int volume_open(struct volume *v, const char *name);
/* Open it to change it: first finish what earlier commands have left half done in the zone. */
int volume_hold(struct volume *v, const char *name);
int volume_reload(struct volume *v);
void volume_close(struct volume *v);
/* It must exist and be complete; its device exists on return. */
int volume_need(struct volume *v);
int volume_need_any(struct volume *v);		/* the same, or a snapshot */
int volume_activate(const char *lv, const char *path);
/* Lock a zone while space in it is chosen. -1: the lock is not available (reported). */
int zone_lock(const char *zone);
/* Lock all zones: to make or destroy one. -EAGAIN: another command has the lock. Reported. */
int zones_lock(void);
/* Lock a logical volume. -1 with EBUSY: another command has it; otherwise reported. */
int volume_lock(const char *zone, const char *name);

/* --- volume.c ------------------------------------------------------------------------------ */

/*
 * Make a logical volume for @v, with WIPING_TAG, at the tightest place; @reserve of it is for later
 * growth. Reports errors.
 */
int volume_cut(struct volume *v, u64 size, u64 reserve, u64 align);
int volume_wipe(const struct volume *v);	/* its bytes become zeroes */

/* --- wipe.c -------------------------------------------------------------------------------- */

/* No process has the device open for use now, and none can until it is closed. -errno: reported. */
int volume_claim(const char *path);
/*
 * No process has the claimed device open either, to read it or as part of another. -errno:
 * reported.
 */
int volume_sole(int fd, const char *path);
/* Zero all bytes of a claimed device. */
int wipe(int fd, const char *path, const char *name);
/* Wipe a logical volume with WIPING_TAG, then remove it. */
int wipe_and_remove(const char *zone, const char *name);
/* Finish commands that did not end. True: there were some, and the map is out of date. */
bool zone_finish(const struct zone *z);

/* --- shorten.c ------------------------------------------------------------------------------ */

/*
 * Shorten it to the size that @v has, after a failed growth. Not if the file system has grown after
 * all, or if a mount of this system may have seen the memory (reported).
 */
void volume_shorten(const struct volume *v);

/* --- engine.c: the file system in a volume --------------------------------------------------- */

/* The content of the device; false: it cannot be read (reported, if @say). */
bool engine_look(const char *path, struct sg_probe *out, bool say);
/* -EBUSY, reported, if a live system has it mounted; @v->why names the systems in its table. */
int engine_unused(struct volume *v, bool force);
/*
 * Run mkfs.stargatefs with these options, in addition to those of each volume: on that much of it.
 */
int engine_make(const struct volume *v, u64 size, char *const *options, int n, bool dry);
int engine_check(const struct volume *v, char *const *options, int n);	/* the exit status */
/*
 * For a volume mounted here: -EBUSY, reported, if another of its users has no memory for the
 * growth. That user can be found before any system is asked to follow.
 */
int engine_may_grow(const struct volume *v, u64 size);
/* Is a reserve of use, with which the volume has this much @memory? */
int engine_may_reach(const char *lv, const struct sg_super *sb, u64 memory);
int engine_grow(const struct volume *v, u64 size);	/* all users of it to exactly that size */
int engine_relocate(const struct volume *v);	/* to the place of its device */
/* The place where this system has it mounted; false: nowhere. */
bool engine_mounted(const char *path, char where[PATH_MAX]);

/* --- reason.c: for programs ----------------------------------------------------------------- */

/*
 * The exit status for an error that has been reported: -EINVAL is a bad argument, -ENOENT no such
 * volume, -EEXIST one of that name exists, -ENOSPC no room, -EBUSY in use, -EAGAIN being changed by
 * another command, -ENODEV no zone, -EUCLEAN damaged; any other error is a failure. @why may be
 * NULL.
 */
int refused(struct call *c, int err, const struct refusal *why);
void refusal_systems(struct refusal *why, const struct target *t, const struct sg_super *sb);

/* --- volume_show.c ------------------------------------------------------------------------- */

void show_volume(struct call *c, const struct zone *z, const struct zone_piece *p);

#endif
