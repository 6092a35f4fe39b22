/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder logs, in order, each store, write-back and fence of the engine in a range. It works
 * in programs with one thread that are built with SG_RECORD (sg_os.h).
 */
#ifndef SG_TEST_RECORD_H
#define SG_TEST_RECORD_H

#include "engine.h"

#define REC_LINE	64

enum rec_kind { REC_STORE, REC_WB, REC_FENCE };

struct rec_event {
	u32 kind, len;
	u64 off;		/* offset in the range; a store does not cross a cache line */
	u8 bytes[REC_LINE];
};

/**
 * struct rec - the events in [base, base + size).
 * @keep: keeps the events, not only the list of pages with stores.
 */
struct rec {
	u8 *base;
	u64 size;
	bool keep;
	struct rec_event *ev;
	u64 n, room;
	u64 *page;		/* the pages with stores, each once */
	u64 pages;
	u8 *page_seen;
};

void rec_init(struct rec *r, u8 *base, u64 size, bool keep);
void rec_free(struct rec *r);
/* Records into @r until the next call, or nothing if @r is NULL. Returns the previous recorder. */
struct rec *rec_to(struct rec *r);
void rec_mark(struct rec *r, u64 off);	/* notes a store by another program */
void rec_forget_pages(struct rec *r);
/*
 * A function that runs after each store of the engine, anywhere. Tests use it to act at a store, or
 * to end the storing system.
 */
extern void (*rec_at_store)(const void *p);

#endif
