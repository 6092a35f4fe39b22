/* SPDX-License-Identifier: Apache-2.0 */
/* What a volume shows, as one number to compare and as text to read. Holes and zeroes are the same. */
#ifndef SG_TEST_TREE_H
#define SG_TEST_TREE_H

#include "test.h"

/**
 * struct tree - what is compared.
 * @skip: an inode whose size and bytes do not count; 0: all do.
 * @text: where each inode gets a line, or NULL.
 */
struct tree {
	struct sg_vol *v;
	u64 skip;
	FILE *text;
	u64 inodes;		/* names met */
};

u64 tree_digest(struct tree *t);
u64 tree_of(struct sg_vol *v, u64 skip);
/* Of what is below a directory of the root. */
u64 tree_below(struct sg_vol *v, const char *name);
/* The whole text; to be freed. */
char *tree_text(struct sg_vol *v);

#endif
