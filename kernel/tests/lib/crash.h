/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crash images: from what the recorder saw, the contents of memory that a crash can leave.
 *
 *   killed     the VM dies, memory stays: all stores up to a point, in their order (TSO)
 *   power cut  caches are lost: each cache line holds what some prefix of its own stores left in
 *              it, independently of all other lines; but at least what had been written back
 *              before a fence that was passed
 */
#ifndef SG_TEST_CRASH_H
#define SG_TEST_CRASH_H

#include "record.h"
#include "test.h"

struct crash_line {
	u64 off;
	u32 stores, room, wb;	/* not surely durable; of these, before the last write-back */
	struct rec_event *store;
};

/* An image, and what it is a copy of: brought back by the pages that changed. */
struct crash_image {
	u8 *mem, *ref;
	struct rec rec;
};

/**
 * struct crash - the images of a run, as of an event in its log.
 * @every: judge every so manieth point after a store; 1: all.
 * @samples: random power cuts per fence, beside the systematic ones.
 * @killed_only: the power does not fail: others go on.
 * @done: the operation has returned: from now on only its result is right.
 */
struct crash {
	u64 size;
	struct crash_image killed, cut;
	struct crash_line *line;
	u64 lines, room;
	u32 *at;		/* per line of the volume: its place in @line + 1, or 0 */
	u64 every, samples;
	struct rng rng;
	bool done, killed_only;
	u64 images;
	void (*judge)(struct crash *c, struct crash_image *img);
	void *ctx;
};

void crash_init(struct crash *c, const u8 *base, u64 size);
void crash_reset(struct crash *c, const u8 *base);	/* other contents, nothing pending */
void crash_free(struct crash *c);
/* Goes through a log, judging at each point; crash_end() judges when all has returned. */
void crash_run(struct crash *c, const struct rec_event *ev, u64 n);
void crash_end(struct crash *c);

#endif
