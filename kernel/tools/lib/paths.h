/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of inodes, for findings of fsck and for lists of open files. */
#ifndef SG_PATHS_H
#define SG_PATHS_H

#include "tool.h"

struct paths;

/* Reads nothing before the first call of paths_find(). Returns NULL without memory. */
struct paths *paths_begin(void *base, u64 size);
/*
 * Returns one path to @ino at the time of the first call; the caller frees it. Returns NULL if no
 * path from the root leads to @ino.
 */
char *paths_find(struct paths *p, u64 ino);
void paths_end(struct paths *p);

#endif
