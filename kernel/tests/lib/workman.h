/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One who works on files of his own, some of them in a directory that others use, too, and may be
 * killed over it at any moment. What he has done and is about to do stands in memory that outlives
 * him: what had returned must be there for the next one, and what had not is done or not done.
 */
#ifndef SG_TEST_WORKMAN_H
#define SG_TEST_WORKMAN_H

#include "test.h"

#define WORK_FILES	12	/* half of them in the common directory */

struct work_content {
	u32 state, version;
};

/* What he says he is doing: files a and b (or none) go from what they are to these. */
struct work_intent {
	u32 active, a, b;
	struct work_content to_a, to_b;
};

/* In shared memory. All zeroes at first: no file is there. */
struct work_book {
	struct work_content file[WORK_FILES];
	struct work_intent intent;
	u64 done;
	u32 version;
};

/**
 * struct workman - the one who has the book now.
 * @n: number that his names bear. @own, @common: directories.
 */
struct workman {
	struct sg_vol *v;
	struct work_book *w;
	unsigned int n;
	struct rng rng;
	struct sg_iref own, common;
};

/* Settles what his predecessor was about, and sees that all files are what the book says. */
void workman_verify(struct workman *th);
void workman_step(struct workman *th);

#endif
