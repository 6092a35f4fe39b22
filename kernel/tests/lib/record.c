// SPDX-License-Identifier: Apache-2.0
/*
 * The recorder. A bulk store is one event per cache line, because a crash can separate the lines.
 */
#include "record.h"
#include "test.h"

#ifndef SG_RECORD
#error "the recorder needs an engine that calls it: build with SAN=rec"
#endif

static struct rec *now;
void (*rec_at_store)(const void *p);

void rec_init(struct rec *r, u8 *base, u64 size, bool keep)
{
	memset(r, 0, sizeof(*r));
	r->base = base;
	r->size = size;
	r->keep = keep;
	r->page = calloc(size / SG_PAGE, sizeof(*r->page));
	r->page_seen = calloc(size / SG_PAGE, 1);
	CHECK(r->page && r->page_seen);
}

void rec_free(struct rec *r)
{
	free(r->ev);
	free(r->page);
	free(r->page_seen);
	memset(r, 0, sizeof(*r));
}

struct rec *rec_to(struct rec *r)
{
	struct rec *before = now;

	now = r;
	return before;
}

void rec_mark(struct rec *r, u64 off)
{
	u64 page = off / SG_PAGE;

	if (!r->page_seen[page]) {
		r->page_seen[page] = 1;
		r->page[r->pages++] = page;
	}
}

void rec_forget_pages(struct rec *r)
{
	while (r->pages)
		r->page_seen[r->page[--r->pages]] = 0;
}

static struct rec_event *event(struct rec *r, enum rec_kind kind)
{
	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 4096;
		r->ev = realloc(r->ev, r->room * sizeof(*r->ev));
		CHECK(r->ev);
	}
	r->ev[r->n].kind = kind;
	return &r->ev[r->n++];
}

/* Finds the part of [p, p + len) inside the range, and returns it in [*off, *end). */
static bool inside(const struct rec *r, const void *p, size_t len, u64 *off, u64 *end)
{
	const u8 *b = p;

	if (!r || b >= r->base + r->size || b + len <= r->base)
		return false;
	CHECK(b >= r->base && b + len <= r->base + r->size);
	*off = (u64)(b - r->base);
	*end = *off + len;
	return true;
}

static void record_store(const void *p, size_t len)
{
	u64 off, end;

	if (!inside(now, p, len, &off, &end))
		return;
	while (off < end) {
		u64 line_end = (off | (REC_LINE - 1)) + 1, n = (line_end < end ? line_end : end) - off;

		rec_mark(now, off);
		if (now->keep) {
			struct rec_event *e = event(now, REC_STORE);

			e->off = off;
			e->len = (u32)n;
			memcpy(e->bytes, now->base + off, n);
		}
		off += n;
	}
}

void sg_rec_store(const void *p, size_t len)
{
	record_store(p, len);
	if (rec_at_store)
		rec_at_store(p);
}

void sg_rec_wb(const void *p, size_t len)
{
	u64 off, end;

	if (!inside(now, p, len, &off, &end) || !now->keep)
		return;
	for (off &= ~(u64)(REC_LINE - 1); off < end; off += REC_LINE)
		event(now, REC_WB)->off = off;
}

void sg_rec_fence(void)
{
	if (now && now->keep)
		event(now, REC_FENCE);
}
