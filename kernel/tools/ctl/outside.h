/* SPDX-License-Identifier: Apache-2.0 */
/* Names outside of the volume, which get writes to and put reads from. */
#ifndef SG_CTL_OUTSIDE_H
#define SG_CTL_OUTSIDE_H

#include <sys/stat.h>
#include "tool.h"

/**
 * struct outside - a name outside.
 * @at: its directory, opened, or AT_FDCWD; @name: the name there.
 * @path: all of it, for messages only: it may lead elsewhere by the time it is used.
 * @depth: below the argument of the command line. @follow: a symbolic link is followed.
 */
struct outside {
	int at;
	const char *name;
	char *path;
	unsigned int depth;
	bool follow;
};

/* The argument of the command line. */
static inline struct outside outside_named(int at, const char *name, char *path, bool follow)
{
	return (struct outside){ .at = at, .name = name, .path = path, .follow = follow };
}
/* @name in @dir, which is the opened @up. 0 or -ENOMEM, reported; to be freed by outside_free(). */
int outside_below(struct outside *o, const struct outside *up, int dir, const char *name);
void outside_free(struct outside *o);

/* One directory is open per level, and trees may be deep. */
void outside_many(void);
int outside_stat(const struct outside *o, struct stat *st);	/* 0, or -1 with errno */
/*
 * Open with @flags; -errno, reported. @is: the object that it must be, from outside_stat(); or
 * NULL.
 */
int outside_open(const struct outside *o, int flags, const struct stat *is);
/* Open directory @path below @top, a name at a time, following no link: to be closed, or -errno. */
int outside_walk(int top, const char *path, size_t len);
int outside_exchanged(const struct outside *o);	/* reports it; -ESTALE */

static inline bool outside_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

#endif
