/* SPDX-License-Identifier: Apache-2.0 */
/* The visible contents of a volume, as one number to compare and as text. Holes equal zeroes. */
#ifndef SG_TEST_TREE_H
#define SG_TEST_TREE_H

#include "test.h"

/**
 * struct tree - one walk through a volume.
 * @skip: an inode whose size and bytes are not compared; 0: all are compared.
 * @text: gets a line for each inode, or NULL.
 */
struct tree {
	struct sg_vol *v;
	u64 skip;
	FILE *text;
	u64 inodes;		/* number of names found */
};

u64 tree_digest(struct tree *t);
u64 tree_of(struct sg_vol *v, u64 skip);
/* Returns the digest of the tree below a directory of the root. */
u64 tree_below(struct sg_vol *v, const char *name);
/* Returns the tree as text, which the caller frees. */
char *tree_text(struct sg_vol *v);

#endif
