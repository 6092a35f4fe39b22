/* SPDX-License-Identifier: Apache-2.0 */
/* Names outside of the volume: get writes there, and put reads from there. */
#ifndef SG_CTL_OUTSIDE_H
#define SG_CTL_OUTSIDE_H

#include <sys/stat.h>
#include "tool.h"

/**
 * struct outside - a name outside. @at: descriptor of its directory, or AT_FDCWD; @name: the name
 * there. @path: the complete path, only for messages, because another user can change it at any
 * time.
 * @depth: levels below the argument of the command line. @follow: follow a symbolic link.
 */
struct outside {
	int at;
	const char *name;
	char *path;
	unsigned int depth;
	bool follow;
};

/* Returns the name that is the argument of the command line. */
static inline struct outside outside_named(int at, const char *name, char *path, bool follow)
{
	return (struct outside){ .at = at, .name = name, .path = path, .follow = follow };
}
/*
 * Makes @name in @dir, which is the descriptor of @up. Returns 0, or -ENOMEM after a message. The
 * caller frees it with outside_free().
 */
int outside_below(struct outside *o, const struct outside *up, int dir, const char *name);
void outside_free(struct outside *o);

/* Raises the limit of open files, because each level of a tree needs one. */
void outside_many(void);
int outside_stat(const struct outside *o, struct stat *st);	/* returns 0, or -1 with errno */
/*
 * Opens the name with @flags. Returns -errno after a message. @is: the expected object, from
 * outside_stat(), or NULL.
 */
int outside_open(const struct outside *o, int flags, const struct stat *is);
/*
 * Opens directory @path below @top, name by name, without following links. Returns a descriptor, or
 * -errno.
 */
int outside_walk(int top, const char *path, size_t len);
int outside_exchanged(const struct outside *o);	/* prints a message; returns -ESTALE */

static inline bool outside_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

#endif
