// SPDX-License-Identifier: Apache-2.0
/* The model's operations on file data. */
#include "model.h"

#define NOW(m)	((s64)(m)->ops + 1)
#define TABLES	24	/* pages of file tables that one operation may need */

/* Chooses a position in the file: near its data, or far behind, where tables grow. */
static u64 some_pos(struct model *m, const struct m_inode *in)
{
	u64 dice = rng_below(&m->rng, 100), pos;

	if (dice < 60)
		pos = rng_below(&m->rng, in->size + 1);
	else if (dice < 80)
		pos = in->size;
	else if (dice < 97)
		pos = rng_below(&m->rng, in->size + (4u << 20));
	else
		pos = rng_below(&m->rng, 1ULL << rng_range(&m->rng, 20, 46));
	if (rng_chance(&m->rng, 25))
		pos &= ~(SG_CHUNK - 1);
	else if (rng_chance(&m->rng, 40))
		pos &= ~(SG_PAGE - 1);
	return pos < SG_FILE_MAX ? pos : SG_FILE_MAX - 1;
}

static u64 some_len(struct model *m)
{
	if (rng_chance(&m->rng, m->t.size > (64u << 20) ? 2 : 1))
		return rng_range(&m->rng, 1, M_IO);	/* enough for a complete 2 MiB leaf */
	return 1 + rng_size(&m->rng, 40000);
}

static u64 pages_for(u64 pos, u64 len)
{
	return (pos % SG_PAGE + len + SG_PAGE - 1) / SG_PAGE + TABLES;
}

/*
 * An atomic write takes pages for a log, or new pages for old ones, which become free only later.
 */
static u64 pages_to_write(const struct m_inode *in, u64 pos, u64 len)
{
	return pages_for(pos, len) + (in->atomic ? 2 * SG_ATOMIC_PAGES : 0);
}

static void grown(struct m_inode *in, u64 size)
{
	if (size > in->size)
		in->size = size;
}

static void step_write(struct model *m, struct m_inode *in)
{
	u64 pos = some_pos(m, in), len = some_len(m);
	struct m_expect e = { .need = pages_to_write(in, pos, len) };
	s64 done;

	if (len > SG_FILE_MAX - pos)
		len = SG_FILE_MAX - pos;
	test_note("op %" PRIu64 ": write %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64,
		  m->ops, len, pos, in->ref.ino, in->size);
	rng_fill(&m->rng, m->buf, len);
	done = sg_write(&m->t.v, &in->ref, pos, m->buf, len, NOW(m));
	if (!m_check(m, &e, done))
		return;
	if ((u64)done < len) {
		m_check(m, &e, -ENOSPC);	/* only ENOSPC makes a write short */
		e.need = 0;
	}
	sparse_write(&in->data, pos, m->buf, (u64)done);
	grown(in, pos + (u64)done);
}

/*
 * Writes atomically. This is allowed for any file, also for one that other writers change in place.
 * With other systems, the first such write would wait for them.
 */
static void step_atomic(struct model *m, struct m_inode *in)
{
	bool whole = rng_chance(&m->rng, 30); /* complete pages */
	u64 pos = some_pos(m, in), len = whole ? SG_PAGE * rng_range(&m->rng, 1, 16) :
						 1 + rng_size(&m->rng, SG_ATOMIC_MAX - 1);
	struct m_expect e = { .need = pages_for(pos, len) + 2 * SG_ATOMIC_PAGES };
	bool filled = false;

	if (rng_chance(&m->rng, 1))
		len = SG_ATOMIC_MAX + 1;
	test_note("op %" PRIu64 ": atomic write of %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %"
		  PRIu64, m->ops, len, pos, in->ref.ino, in->size);
	m_may(&e, len > SG_ATOMIC_MAX, -EINVAL);
	m_may(&e, len > SG_FILE_MAX - pos, -EFBIG);
	rng_fill(&m->rng, m->buf, len);
	if (!m_check(m, &e, sg_write_atomic(&m->t.v, &in->ref, pos, m->buf, len, 0, NOW(m), &filled)))
		return;
	sparse_write(&in->data, pos, m->buf, len);
	grown(in, pos + len);
}

/* Writes in several parts, by the calls that the module uses. Aborts some parts. */
static void step_pieces(struct model *m, struct m_inode *in)
{
	u64 pos = some_pos(m, in), len = some_len(m) & 0xffff, done;
	struct m_expect e = { .need = pages_for(pos, len) };
	bool keep = rng_chance(&m->rng, 20);
	struct sg_write w;

	if (!len || len > SG_FILE_MAX - pos)
		return;
	m_may(&e, in->atomic, -EMEDIUMTYPE);	/* an atomic file must be written in units */
	test_note("op %" PRIu64 ": piece of %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64
		  "%s", m->ops, len, pos, in->ref.ino, in->size, keep ? ", keep size" : "");
	if (!m_check(m, &e, sg_write_begin(&m->t.v, &in->ref, pos, len, keep ? SG_WRITE_KEEP_SIZE : 0,
					   &w)))
		return;
	CHECK(w.len && w.len <= len && w.pos == pos);
	CHECK(w.off + w.len <= m->t.size);
	done = w.fresh && rng_chance(&m->rng, 30) ? 0 : rng_range(&m->rng, 1, w.len);
	if (keep && pos + done > in->size)
		done = pos < in->size ? in->size - pos : 0;
	rng_fill(&m->rng, m->buf, done);
	sg_os_write(m->t.mem + w.off, m->buf, done);
	sg_wb(m->t.mem + w.off, done);
	CHECK_OK(sg_write_end(&m->t.v, &in->ref, &w, done, NOW(m)));
	if (!done)
		return;
	sparse_write(&in->data, pos, m->buf, done);
	if (!keep)
		grown(in, pos + done);
}

static void step_read(struct model *m, struct m_inode *in)
{
	u64 pos = some_pos(m, in), len = some_len(m), want;
	s64 got;

	want = pos >= in->size ? 0 : len < in->size - pos ? len : in->size - pos;
	test_note("op %" PRIu64 ": read %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64,
		  m->ops, len, pos, in->ref.ino, in->size);
	got = sg_read(&m->t.v, &in->ref, pos, m->got, len);
	CHECK_EQ(got, want);
	sparse_read(&in->data, pos, m->buf, want);
	CHECK(!memcmp(m->buf, m->got, want));
}

static void step_resize(struct model *m, struct m_inode *in)
{
	u64 size = rng_chance(&m->rng, m->aim == M_SHRINK ? 80 : 40) ?
		   rng_below(&m->rng, in->size + 1) : some_pos(m, in);
	struct m_expect e = { 0 };	/* ENOSPC is never correct here */

	if (rng_chance(&m->rng, 10))
		size = 0;
	if (rng_chance(&m->rng, 1))
		size = SG_FILE_MAX + 1 + rng_below(&m->rng, 1u << 30);
	test_note("op %" PRIu64 ": resize %" PRIu64 " from %" PRIu64 " to %" PRIu64, m->ops,
		  in->ref.ino, in->size, size);
	m_may(&e, size > SG_FILE_MAX, -EFBIG);
	if (!m_check(m, &e, sg_resize(&m->t.v, &in->ref, size, NOW(m))))
		return;
	if (size < in->size)
		sparse_zero(&in->data, size, ~0ULL);
	in->size = size;
}

static void step_punch(struct model *m, struct m_inode *in)
{
	u64 pos = some_pos(m, in);
	u64 len = rng_chance(&m->rng, 70) ? some_len(m) : 1 + rng_size(&m->rng, SG_FILE_MAX);
	struct m_expect e = { 0 };	/* ENOSPC is never correct here */

	test_note("op %" PRIu64 ": punch %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64,
		  m->ops, len, pos, in->ref.ino, in->size);
	if (m_check(m, &e, sg_punch(&m->t.v, &in->ref, pos, len, NOW(m))))
		sparse_zero(&in->data, pos, len);
}

static void step_allocate(struct model *m, struct m_inode *in)
{
	u64 first = some_pos(m, in) / SG_PAGE, pages = 1 + rng_size(&m->rng, 1200);
	struct m_expect e = { .need = pages + TABLES };
	u64 after = (first + pages) * SG_PAGE;

	m_may(&e, first + pages > SG_FILE_MAX / SG_PAGE, -EFBIG);
	test_note("op %" PRIu64 ": allocate %" PRIu64 " pages at %" PRIu64 " of %" PRIu64, m->ops,
		  pages, first, in->ref.ino);
	if (!m_check(m, &e, sg_allocate(&m->t.v, &in->ref, first, pages)) ||
	    rng_chance(&m->rng, 50) || after < in->size)
		return;
	CHECK_OK(sg_resize(&m->t.v, &in->ref, after, NOW(m)));
	in->size = after;
}

/* --- moving --------------------------------------------------------------------------------- */

/*
 * Inserting and collapsing build a second table in addition to the first, and a list of leftover
 * pages.
 */
static u64 pages_to_move(struct model *m, const struct m_inode *in)
{
	struct sg_attr a;

	CHECK_OK(sg_getattr(&m->t.v, &in->ref, &a));
	return 2 * a.blocks + 200;
}

static void step_collapse(struct model *m, struct m_inode *in)
{
	u64 pos = rng_below(&m->rng, in->size + 1) & ~(SG_PAGE - 1);
	u64 len = SG_PAGE * (1 + rng_size(&m->rng, 700));
	struct m_expect e = { .need = pages_to_move(m, in) };

	if (rng_chance(&m->rng, 3))
		pos++;
	test_note("op %" PRIu64 ": collapse %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64,
		  m->ops, len, pos, in->ref.ino, in->size);
	m_may(&e, pos % SG_PAGE || pos + len >= in->size, -EINVAL);
	if (!m_check(m, &e, sg_collapse(&m->t.v, &in->ref, pos, len, NOW(m))))
		return;
	sparse_zero(&in->data, pos, len);
	sparse_shift(&in->data, pos / SG_PAGE, -(s64)(len / SG_PAGE));
	in->size -= len;
}

static void step_insert(struct model *m, struct m_inode *in)
{
	u64 pos = rng_below(&m->rng, in->size + 1) & ~(SG_PAGE - 1);
	u64 len = SG_PAGE * (1 + rng_size(&m->rng, 700));
	struct m_expect e = { .need = pages_to_move(m, in) };

	test_note("op %" PRIu64 ": insert %" PRIu64 " at %" PRIu64 " of %" PRIu64 ", size %" PRIu64,
		  m->ops, len, pos, in->ref.ino, in->size);
	m_may(&e, pos >= in->size, -EINVAL);
	m_may(&e, in->size + len > SG_FILE_MAX, -EFBIG);
	if (!m_check(m, &e, sg_insert(&m->t.v, &in->ref, pos, len, NOW(m))))
		return;
	sparse_shift(&in->data, pos / SG_PAGE, (s64)(len / SG_PAGE));
	in->size += len;
}

/* --- reading and seeking ------------------------------------------------------------------- */

static bool mapped(struct model *m, const struct m_inode *in, u64 page)
{
	struct sg_run run;

	CHECK_OK(sg_walk(&m->t.v, &in->ref, page, 1, &run));
	return run.off != 0;
}

/* The engine decides which ranges are data or holes, but a hole must have no bytes in the model. */
static void step_seek(struct model *m, struct m_inode *in)
{
	u64 pos = some_pos(m, in), i;
	bool hole = rng_chance(&m->rng, 50);
	s64 at;

	test_note("op %" PRIu64 ": seek %s from %" PRIu64 " in %" PRIu64, m->ops,
		  hole ? "hole" : "data", pos, in->ref.ino);
	at = sg_seek(&m->t.v, &in->ref, pos, hole);
	if (pos >= in->size) {
		CHECK_EQ(at, -ENXIO);
		return;
	}
	if (at < 0) {
		CHECK_EQ(at, -ENXIO);
		CHECK(!hole);
		at = (s64)in->size;
	}
	CHECK((u64)at >= pos && (u64)at <= in->size);
	if ((u64)at < in->size)
		CHECK_EQ(mapped(m, in, (u64)at / SG_PAGE), !hole);
	/* checks that the search has skipped no data */
	for (i = 0; !hole && i < in->data.cap; i++) {
		u64 page = in->data.e[i].page - 1;

		if (in->data.e[i].page && page >= pos / SG_PAGE && page < (u64)at / SG_PAGE)
			CHECK(!mapped(m, in, page));
	}
}

void m_step_data(struct model *m)
{
	struct m_inode *in = m_pick_file(m);
	u64 dice = rng_below(&m->rng, 100);
	bool grow = m->aim == M_GROW;

	if (!in)
		return;
	if (dice < (grow ? 34 : 10))
		(!m->shared && rng_chance(&m->rng, 20) ? step_atomic : step_write)(m, in);
	else if (dice < (grow ? 42 : 16))
		step_pieces(m, in);
	else if (dice < 58)
		step_read(m, in);
	else if (dice < (grow ? 64 : 76))
		step_resize(m, in);
	else if (dice < (grow ? 70 : 86))
		step_punch(m, in);
	else if (dice < (grow ? 78 : 88))
		step_allocate(m, in);
	else if (dice < 91)
		step_collapse(m, in);
	else if (dice < 94)
		step_insert(m, in);
	else if (dice < 98)
		step_seek(m, in);
	else
		CHECK_OK(sg_flush(&m->t.v, &in->ref, some_pos(m, in) / SG_PAGE, some_len(m)));
}
