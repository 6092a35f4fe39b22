/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crash images: the contents of memory that a crash can leave, built from the recorder's log.
 *
 *   killed     the VM dies, memory stays: all stores up to a point, in their order (TSO)
 *   power cut  caches are lost: each cache line holds the result of some prefix of its own stores,
 *              independently of all other lines, but at least the stores that were written back
 *              before a fence that has been passed
 */
#ifndef SG_TEST_CRASH_H
#define SG_TEST_CRASH_H

#include "record.h"
#include "test.h"

struct crash_line {
	u64 off;
	/* number of stores that may not be durable, and of those before the last write-back */
	u32 stores, room, wb;
	struct rec_event *store;
};

/* An image, and the base of which it is a copy. Restoring the image copies only changed pages. */
struct crash_image {
	u8 *mem, *ref;
	struct rec rec;
};

/**
 * struct crash - the images of a run, up to one event in its log.
 * @every: judges one in this many points after a store; 1: all points.
 * @samples: random power cuts per fence, in addition to the systematic ones.
 * @killed_only: no power cuts, because other systems continue.
 * @done: the operation has returned, so only its result is correct.
 */
struct crash {
	u64 size;
	struct crash_image killed, cut;
	struct crash_line *line;
	u64 lines, room;
	u32 *at;		/* for each line of the volume: its index in @line + 1, or 0 */
	u64 every, samples;
	struct rng rng;
	bool done, killed_only;
	u64 images;
	void (*judge)(struct crash *c, struct crash_image *img);
	void *ctx;
};

void crash_init(struct crash *c, const u8 *base, u64 size);
/* sets new contents, without pending stores */
void crash_reset(struct crash *c, const u8 *base);
void crash_free(struct crash *c);
/*
 * Goes through a log and judges each point. crash_end() judges the state after the operation
 * returned.
 */
void crash_run(struct crash *c, const struct rec_event *ev, u64 n);
void crash_end(struct crash *c);

#endif
