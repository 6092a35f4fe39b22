/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of inodes, for findings of fsck and files that systems have open. */
#ifndef SG_PATHS_H
#define SG_PATHS_H

#include "tool.h"

struct paths;

/* Nothing is read before the first question. NULL: no memory. */
struct paths *paths_begin(void *base, u64 size);
/*
 * One path that leads to @ino, as the volume was at the first question; to be freed. NULL: none
 * leads there from the root.
 */
char *paths_find(struct paths *p, u64 ino);
void paths_end(struct paths *p);

#endif
