/* SPDX-License-Identifier: Apache-2.0 */
/* Names outside of the volume, which get writes to and put reads from. */
#ifndef SG_CTL_OUTSIDE_H
#define SG_CTL_OUTSIDE_H

#include <sys/stat.h>
#include "tool.h"

/**
 * struct outside - a name outside.
 * @at: the directory that it is in, opened, or AT_FDCWD; @name: there.
 * @path: all of it, for messages only: it may lead elsewhere by the time it is used.
 * @depth: below what the command line names. @follow: it may be a symbolic link to what is meant.
 */
struct outside {
	int at;
	const char *name;
	char *path;
	unsigned int depth;
	bool follow;
};

/* What the command line names. */
static inline struct outside outside_named(int at, const char *name, char *path, bool follow)
{
	return (struct outside){ .at = at, .name = name, .path = path, .follow = follow };
}
/* @name in @dir, which is @up opened. 0 or -ENOMEM, said; to be freed by outside_free(). */
int outside_below(struct outside *o, const struct outside *up, int dir, const char *name);
void outside_free(struct outside *o);

/* One directory is open per level, and trees may be deep. */
void outside_many(void);
int outside_stat(const struct outside *o, struct stat *st);	/* 0, or -1 with errno */
/* With @flags; -errno, said. @is: what it must be, as outside_stat() has found it; or NULL. */
int outside_open(const struct outside *o, int flags, const struct stat *is);
/* Directory @path below @top, a name at a time, following no link: to be closed, or -errno. */
int outside_walk(int top, const char *path, size_t len);
int outside_exchanged(const struct outside *o);	/* says so; -ESTALE */

static inline bool outside_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

#endif
