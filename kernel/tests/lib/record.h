/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: what the engine stores into a range, writes back, and fences, in its order. For
 * programs built with SG_RECORD (sg_os.h), with one thread.
 */
#ifndef SG_TEST_RECORD_H
#define SG_TEST_RECORD_H

#include "engine.h"

#define REC_LINE	64

enum rec_kind { REC_STORE, REC_WB, REC_FENCE };

struct rec_event {
	u32 kind, len;
	u64 off;		/* in the range; a store lies in one cache line */
	u8 bytes[REC_LINE];
};

/**
 * struct rec - what happened to [base, base + size).
 * @keep: events are kept, not only the pages noted that were stored to.
 */
struct rec {
	u8 *base;
	u64 size;
	bool keep;
	struct rec_event *ev;
	u64 n, room;
	u64 *page;		/* stored to, each once */
	u64 pages;
	u8 *page_seen;
};

void rec_init(struct rec *r, u8 *base, u64 size, bool keep);
void rec_free(struct rec *r);
/* From now on, until the next call; NULL: nothing is recorded. Returns the one before. */
struct rec *rec_to(struct rec *r);
void rec_mark(struct rec *r, u64 off);	/* a page is stored to by somebody else */
void rec_forget_pages(struct rec *r);
/* Called after each store of the engine, wherever it goes: others act there, or the storer dies. */
extern void (*rec_at_store)(const void *p);

#endif
