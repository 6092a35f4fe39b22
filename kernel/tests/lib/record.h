/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: it logs, in order, each store, write-back and fence of the engine in a range. For
 * programs with one thread, built with SG_RECORD (sg_os.h).
 */
#ifndef SG_TEST_RECORD_H
#define SG_TEST_RECORD_H

#include "engine.h"

#define REC_LINE	64

enum rec_kind { REC_STORE, REC_WB, REC_FENCE };

struct rec_event {
	u32 kind, len;
	u64 off;		/* offset in the range; a store lies in one cache line */
	u8 bytes[REC_LINE];
};

/**
 * struct rec - the events in [base, base + size).
 * @keep: keep the events themselves, not only the pages stored to.
 */
struct rec {
	u8 *base;
	u64 size;
	bool keep;
	struct rec_event *ev;
	u64 n, room;
	u64 *page;		/* the pages stored to, each once */
	u64 pages;
	u8 *page_seen;
};

void rec_init(struct rec *r, u8 *base, u64 size, bool keep);
void rec_free(struct rec *r);
/* Records into @r until the next call; NULL: records nothing. Returns the previous recorder. */
struct rec *rec_to(struct rec *r);
void rec_mark(struct rec *r, u64 off);	/* notes a store by another program */
void rec_forget_pages(struct rec *r);
/* Called after each store of the engine, anywhere. Tests act there, or kill the storing process. */
extern void (*rec_at_store)(const void *p);

#endif
