// SPDX-License-Identifier: Apache-2.0
/* Crash images. crash.h lists the kinds. */
#include "crash.h"

/* if at most this many lines are open, crash.c judges all their subsets */
#define ALL_SUBSETS	4
/* one in this many stores of a complete line is a point to judge */
#define BULK		32
/* with at most this many lines, judges each line alone, and all lines except each one */
#define EACH_LINE	48

/* --- images --------------------------------------------------------------------------------- */

static void image_init(struct crash_image *img, u64 size)
{
	img->mem = test_map(size);
	img->ref = test_map(size);
	rec_init(&img->rec, img->mem, size, false);
}

static void image_free(struct crash_image *img, u64 size)
{
	test_unmap(img->mem, size);
	test_unmap(img->ref, size);
	rec_free(&img->rec);
}

static void image_reset(struct crash_image *img, const u8 *base, u64 size)
{
	memcpy(img->mem, base, size);
	memcpy(img->ref, base, size);
	rec_forget_pages(&img->rec);
}

/* Applies a store to an image, and to the base of which it is a copy. */
static void image_store(struct crash_image *img, const struct rec_event *e)
{
	memcpy(img->mem + e->off, e->bytes, e->len);
	memcpy(img->ref + e->off, e->bytes, e->len);
}

static void judge(struct crash *c, struct crash_image *img)
{
	struct rec *before = rec_to(&img->rec);
	u64 i;

	c->images++;
	c->judge(c, img);
	rec_to(before);
	for (i = 0; i < img->rec.pages; i++)
		memcpy(img->mem + img->rec.page[i] * SG_PAGE, img->ref + img->rec.page[i] * SG_PAGE,
		       SG_PAGE);
	rec_forget_pages(&img->rec);
}

void crash_init(struct crash *c, const u8 *base, u64 size)
{
	memset(c, 0, sizeof(*c));
	c->size = size;
	c->every = 1;
	c->rng.state = 1;
	c->at = calloc(size / REC_LINE, sizeof(*c->at));
	CHECK(c->at);
	image_init(&c->killed, size);
	image_init(&c->cut, size);
	crash_reset(c, base);
}

void crash_reset(struct crash *c, const u8 *base)
{
	image_reset(&c->killed, base, c->size);
	image_reset(&c->cut, base, c->size);
	while (c->lines)
		c->at[c->line[--c->lines].off / REC_LINE] = 0;
	c->done = false;
}

void crash_free(struct crash *c)
{
	u64 i;

	image_free(&c->killed, c->size);
	image_free(&c->cut, c->size);
	for (i = 0; i < c->room; i++)
		free(c->line[i].store);
	free(c->line);
	free(c->at);
}

/* --- lines that may or may not be durable --------------------------------------------------- */

static struct crash_line *line_at(struct crash *c, u64 off, bool make)
{
	u32 *at = &c->at[off / REC_LINE];
	struct crash_line *l;

	if (*at)
		return &c->line[*at - 1];
	if (!make)
		return NULL;
	if (c->lines == c->room) {
		u64 room = c->room ? 2 * c->room : 256;

		c->line = realloc(c->line, room * sizeof(*c->line));
		CHECK(c->line);
		memset(c->line + c->room, 0, (room - c->room) * sizeof(*c->line));
		c->room = room;
	}
	l = &c->line[c->lines++];
	*at = (u32)c->lines;
	l->off = off & ~(u64)(REC_LINE - 1);
	l->stores = l->wb = 0;
	return l;
}

static void line_store(struct crash *c, const struct rec_event *e)
{
	struct crash_line *l = line_at(c, e->off, true);

	if (l->stores == l->room) {
		l->room = l->room ? 2 * l->room : 4;
		l->store = realloc(l->store, l->room * sizeof(*l->store));
		CHECK(l->store);
	}
	l->store[l->stores++] = *e;
}

static void line_wb(struct crash *c, u64 off)
{
	struct crash_line *l = line_at(c, off, false);

	if (l)
		l->wb = l->stores;
}

/* Makes the stores that were written back before the fence durable. */
static void line_fenced(struct crash *c, struct crash_line *l)
{
	u32 s;

	for (s = 0; s < l->wb; s++)
		image_store(&c->cut, &l->store[s]);
	l->stores -= l->wb;
	memmove(l->store, l->store + l->wb, l->stores * sizeof(*l->store));
	l->wb = 0;
}

static void lines_fenced(struct crash *c)
{
	u64 i, k = 0;

	for (i = 0; i < c->lines; i++) {
		struct crash_line l = c->line[i];

		line_fenced(c, &l);
		c->at[l.off / REC_LINE] = 0;
		/* swaps the lines, so that each keeps its own buffer */
		c->line[i] = c->line[k];
		c->line[k] = l;
		if (l.stores)
			c->at[l.off / REC_LINE] = (u32)++k;
	}
	c->lines = k;
}

/* --- power cuts ----------------------------------------------------------------------------- */

/* Applies the first @stores stores of a line to the image. */
static void persist(struct crash *c, u64 line, u32 stores)
{
	const struct crash_line *l = &c->line[line];
	u32 s;

	for (s = 0; s < stores; s++)
		memcpy(c->cut.mem + l->store[s].off, l->store[s].bytes, l->store[s].len);
	if (stores)
		rec_mark(&c->cut.rec, l->off);
}

static void cut_subset(struct crash *c, u64 subset)
{
	u64 i;

	for (i = 0; i < c->lines; i++)
		persist(c, i, subset >> i & 1 ? c->line[i].stores : 0);
	judge(c, &c->cut);
}

static void cut_each(struct crash *c, bool alone)
{
	u64 step = 1 + c->lines / EACH_LINE, at, i;

	for (at = rng_below(&c->rng, step); at < c->lines; at += step) {
		for (i = 0; i < c->lines; i++)
			persist(c, i, (i == at) == alone ? c->line[i].stores : 0);
		judge(c, &c->cut);
	}
}

static void cut_random(struct crash *c)
{
	unsigned int percent = (unsigned int)rng_below(&c->rng, 101);
	u64 i;

	for (i = 0; i < c->lines; i++)
		persist(c, i, rng_chance(&c->rng, percent) ? c->line[i].stores :
			(u32)rng_below(&c->rng, c->line[i].stores + 1));
	judge(c, &c->cut);
}

static void cuts(struct crash *c)
{
	u64 i;

	if (c->lines <= ALL_SUBSETS) {
		for (i = 0; i < 1ULL << c->lines; i++)
			cut_subset(c, i);
	} else {
		judge(c, &c->cut);
		for (i = 0; i < c->lines; i++)
			persist(c, i, c->line[i].stores);
		judge(c, &c->cut);
		if (c->every == 1 || rng_below(&c->rng, c->every) == 0) {
			cut_each(c, true);
			cut_each(c, false);
		}
	}
	for (i = 0; i < c->samples && c->lines; i++)
		cut_random(c);
}

/* --- a log ---------------------------------------------------------------------------------- */

/* Bulk stores go to data, or to pages without references yet, so judging a sample is enough. */
static bool chosen(struct crash *c, const struct rec_event *e)
{
	u64 every = c->every * (e->len == REC_LINE ? BULK : 1);

	return every == 1 || rng_below(&c->rng, every) == 0;
}

void crash_run(struct crash *c, const struct rec_event *ev, u64 n)
{
	u64 i;

	for (i = 0; i < n; i++) {
		switch (ev[i].kind) {
		case REC_STORE:
			image_store(&c->killed, &ev[i]);
			line_store(c, &ev[i]);
			if (chosen(c, &ev[i]))
				judge(c, &c->killed);
			break;
		case REC_WB:
			line_wb(c, ev[i].off);
			break;
		case REC_FENCE:
			if (!c->killed_only)
				cuts(c);
			lines_fenced(c);
			break;
		}
	}
}

void crash_end(struct crash *c)
{
	c->done = true;
	judge(c, &c->killed);
	if (!c->killed_only)
		cuts(c);
	c->done = false;
}
