/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands about zones and the volumes in them share. */
#ifndef SG_CTL_VOLUME_H
#define SG_CTL_VOLUME_H

#include <limits.h>
#include "ctl.h"
#include "lvm.h"
#include "zone.h"

#define SHOW_MAX	320
/* Of a logical volume that holds what a volume is about to grow by; volumes' names have no '_'. */
#define GROWTH_PREFIX	"grow_"

/**
 * struct refusal - what there is to know about why a command was not done, beside its errno.
 * @largest: if @sized, the size that could have been had. @system: those in a volume's mount table.
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
 * struct volume - one that a command is about, as LVM had it at the last look.
 * @zone: that it is in, or is to be in. @piece: where, or NULL: there is none of that name.
 * @lv: its name for LVM. @path: of its device. @lock: -1, or nobody else changes it meanwhile.
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

/* --- found.c: which one is meant; who else is at it. All say what is wrong ------------------ */

/* "ZONE/NAME", or "NAME" where there is one zone. The exit status; nothing has been looked for. */
int volume_named(const char *name);
int before_volume(struct call *c);
int zone_pick(const struct zones *z, const char *name, size_t len, struct zone **out);
/* To look at it. There need be none of that name. */
int volume_open(struct volume *v, const char *name);
/* To change it: what others have left half done in the zone is finished first. */
int volume_hold(struct volume *v, const char *name);
int volume_reload(struct volume *v);
void volume_close(struct volume *v);
/* There is one, which is whole; its device is there then. */
int volume_need(struct volume *v);
int volume_need_any(struct volume *v);		/* the same, or a snapshot */
int volume_activate(const char *lv, const char *path);
/* Of a zone: for as long as space in it is chosen. -1: it cannot be had (said). */
int zone_lock(const char *zone);
/* Of all zones: to make or destroy one. -EAGAIN: somebody else does. Said. */
int zones_lock(void);
/* Of a logical volume. -1 with EBUSY: somebody else has it; else said. */
int volume_lock(const char *zone, const char *name);

/* --- volume.c ------------------------------------------------------------------------------ */

/*
 * A logical volume for @v, with WIPING_TAG, where it fits tightest; @reserve of it is for later.
 * Says what is wrong.
 */
int volume_cut(struct volume *v, u64 size, u64 reserve, u64 align);
int volume_wipe(const struct volume *v);	/* its bytes become zeroes */

/* --- wipe.c -------------------------------------------------------------------------------- */

/* Nobody has the device open for use now, and none can until it is closed. -errno: said. */
int volume_claim(const char *path);
/* Nor has anybody the claimed device open, be it to read or as part of another. -errno: said. */
int volume_sole(int fd, const char *path);
/* All of a claimed device's bytes become zeroes. */
int wipe(int fd, const char *path, const char *name);
/* A logical volume with WIPING_TAG: its bytes, then itself. */
int wipe_and_remove(const char *zone, const char *name);
/* What is left of commands that did not end. True: there was something, and the map is old. */
bool zone_finish(const struct zone *z);

/* --- shorten.c ------------------------------------------------------------------------------ */

/*
 * Back to the size that @v tells, after a growth that failed; unless the file system has followed
 * in spite of that, or somebody here may have seen the memory (said).
 */
void volume_shorten(const struct volume *v);

/* --- engine.c: the file system in a volume --------------------------------------------------- */

/* What is there; false: the device cannot be looked into (said, if @say). */
bool engine_look(const char *path, struct sg_probe *out, bool say);
/* -EBUSY, said, if some system that lives has it mounted; @v->why names those in its table. */
int engine_unused(struct volume *v, bool force);
/* mkfs.stargatefs with these options, on top of what a volume has anyway: of that much of it. */
int engine_make(const struct volume *v, u64 size, char *const *options, int n, bool dry);
int engine_check(const struct volume *v, char *const *options, int n);	/* the exit status */
/*
 * Of one that is mounted here: -EBUSY, said, if somebody else who uses it has no memory for that.
 * Who it is can be known before anybody is asked to follow.
 */
int engine_may_grow(const struct volume *v, u64 size);
/* A reserve, with which the volume has so much @memory, is of use. */
int engine_may_reach(const char *lv, const struct sg_super *sb, u64 memory);
int engine_grow(const struct volume *v, u64 size);	/* all who use it to just that */
int engine_relocate(const struct volume *v);	/* to where its device is */
/* Where this system has it mounted; false: nowhere. */
bool engine_mounted(const char *path, char where[PATH_MAX]);

/* --- reason.c: for programs ----------------------------------------------------------------- */

/*
 * The exit status for an error that has been said: -EINVAL is a bad argument, -ENOENT no such
 * volume, -EEXIST one of that name, -ENOSPC no room, -EBUSY in use, -EAGAIN being changed by
 * somebody else, -ENODEV no zone, -EUCLEAN not as it should be; all else has failed. @why may be
 * NULL.
 */
int refused(struct call *c, int err, const struct refusal *why);
void refusal_systems(struct refusal *why, const struct target *t, const struct sg_super *sb);

/* --- volume_show.c ------------------------------------------------------------------------- */

void show_volume(struct call *c, const struct zone *z, const struct zone_piece *p);

#endif
