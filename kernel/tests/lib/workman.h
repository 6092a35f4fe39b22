/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker on its own files, half of them in a directory that other workers use as well. The worker
 * may be killed at any moment. Its log, in memory that outlives it, records its completed and
 * intended steps. Its successor must find each change that had returned. Any other change is
 * complete or missing.
 */
#ifndef SG_TEST_WORKMAN_H
#define SG_TEST_WORKMAN_H

#include "test.h"

#define WORK_FILES	12	/* number of files, half of them in the shared directory */

struct work_content {
	u32 state, version;
};

/* struct work_intent - the next step: files @a and @b change to these contents. */
struct work_intent {
	u32 active, a, b;
	struct work_content to_a, to_b;
};

/* struct work_book - a worker's log in shared memory. It begins with zeroes: no file exists. */
struct work_book {
	struct work_content file[WORK_FILES];
	struct work_intent intent;
	u64 done;
	u32 version;
};

/**
 * struct workman - the worker that uses the log now.
 * @n: the worker's number, part of its file names. @own, @common: the directories of its files.
 */
struct workman {
	struct sg_vol *v;
	struct work_book *w;
	unsigned int n;
	struct rng rng;
	struct sg_iref own, common;
};

/* Finds out whether the predecessor's last step was done, and checks all files against the log. */
void workman_verify(struct workman *th);
void workman_step(struct workman *th);

#endif
