/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker on files of its own, half of them in a directory that other workers use, too. It may be
 * killed at any moment. Its log, in memory that outlives it, records its completed and intended
 * steps. A change that had returned must be there for its successor; any other is done or not done.
 */
#ifndef SG_TEST_WORKMAN_H
#define SG_TEST_WORKMAN_H

#include "test.h"

#define WORK_FILES	12	/* half of them in the shared directory */

struct work_content {
	u32 state, version;
};

/* The intent: files a and b (or none) change to these contents. */
struct work_intent {
	u32 active, a, b;
	struct work_content to_a, to_b;
};

/* In shared memory. All zeroes at first: no file exists. */
struct work_book {
	struct work_content file[WORK_FILES];
	struct work_intent intent;
	u64 done;
	u32 version;
};

/**
 * struct workman - the worker that has the book now.
 * @n: its number, part of its file names. @own, @common: directories.
 */
struct workman {
	struct sg_vol *v;
	struct work_book *w;
	unsigned int n;
	struct rng rng;
	struct sg_iref own, common;
};

/* Settles the predecessor's intent, and checks that all files are as the book says. */
void workman_verify(struct workman *th);
void workman_step(struct workman *th);

#endif
