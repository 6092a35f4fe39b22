// SPDX-License-Identifier: Apache-2.0
/*
 * A prototype of P3's log for each page, to compare its cost with that of the engine's redo log
 * (docs/decisions/0013). It has what determines the cost of writes and reads, on a real file:
 *
 *   A page's log is a block of 4 KiB. An entry is the data, then a word with offset and length, so
 *   that a reader scans backwards. The page's head is a word in a second file, which names the end
 *   of the newest entry. A write stores the entry, fences, stores the head, fences.
 *   A read copies each byte once, from the newest entry that has it, or from the page.
 *   A write of a whole page, and one for which the block has no room, writes a fresh page and drops
 *   the log, in one transaction. A write to several pages changes all heads in one transaction.
 *
 * The prototype omits mappings, windows, snapshots, tools, other systems, and recovery. These would
 * add cost, so the figures are a lower bound.
 */
#include <sys/stat.h>
#include "cost.h"

#define ENTRY_PAGE(at)	((at) & ~(SG_PAGE - 1))
#define META(in, len)	((u64)(in) << 32 | (len))
#define META_IN(m)	((m) >> 32)
#define META_LEN(m)	((m) & 0xffffffff)
#define ROUND(len)	SG_ALIGN_UP(len, 8)

void pagelog_make(struct cost_bed *b)
{
	b->heads = test_create(&b->v, &b->root, "heads", S_IFREG | 0600);
	CHECK_OK(sg_allocate(&b->v, &b->heads, 0, 1));
}

/* Returns the offset of the page's head. */
static u64 head_of(struct cost_bed *b, u64 page)
{
	struct sg_run run;

	CHECK_OK(sg_walk(&b->v, &b->heads, 0, 1, &run));
	return run.off + page * 8;
}

/* --- reading --------------------------------------------------------------------------------- */

/**
 * struct gaps - the parts of a request that no newer entry has: [from, to) in the page.
 */
struct gaps {
	struct gap {
		u32 from, to;
	} gap[SG_PAGE / 8];
	unsigned int n;
};

/* Copies what entry [in, in + len) has of the gaps. */
static void fill_gaps(struct gaps *g, u8 *buf, u64 start, const u8 *data, u32 in, u32 len)
{
	unsigned int i, n = g->n;
	u32 from, to;

	for (i = 0; i < n; i++) {
		struct gap *gap = &g->gap[i];

		from = SG_MAX(gap->from, in);
		to = SG_MIN(gap->to, in + len);
		if (from >= to)
			continue;
		memcpy(buf + from - start, data + from - in, to - from);
		if (to < gap->to && from > gap->from)
			g->gap[g->n++] = (struct gap){ to, gap->to };
		if (from > gap->from)
			gap->to = from;
		else
			gap->from = to;
	}
	for (i = 0; i < g->n;)
		if (g->gap[i].from < g->gap[i].to)
			i++;
		else
			g->gap[i] = g->gap[--g->n];
}

/* Reads bytes [in, in + len) of a page. */
static void read_page(struct cost_bed *b, u64 page, u64 in, u8 *buf, u64 len)
{
	u64 head = sg_load64_acquire(sg_at(&b->v, head_of(b, page))), block, meta;
	struct gaps g = { .n = 1 };
	struct sg_run run;
	unsigned int i;

	CHECK_OK(sg_walk(&b->v, &b->file, page, 1, &run));
	if (!head) {
		memcpy(buf, b->mem + run.off + in, len);
		return;
	}
	g.gap[0] = (struct gap){ (u32)in, (u32)(in + len) };
	for (block = ENTRY_PAGE(head - 1); head > block && g.n;) {
		meta = sg_get(&b->v, head - 8);
		head -= 8 + ROUND(META_LEN(meta));
		fill_gaps(&g, buf, in, b->mem + head, (u32)META_IN(meta), (u32)META_LEN(meta));
	}
	for (i = 0; i < g.n; i++)
		memcpy(buf + g.gap[i].from - in, b->mem + run.off + g.gap[i].from,
		       g.gap[i].to - g.gap[i].from);
}

/* As sg_read(): a reader sees all of a write or nothing. */
void pagelog_read(struct cost_bed *b, u64 pos, u8 *buf, u64 len)
{
	u64 seq, done, n, in;

	do {
		CHECK_OK(sg_read_begin(&b->v, &b->file, &seq));
		for (done = 0; done < len; done += n) {
			in = (pos + done) & (SG_PAGE - 1);
			n = SG_MIN(SG_PAGE - in, len - done);
			sg_look_begin();
			read_page(b, (pos + done) >> SG_PAGE_SHIFT, in, buf + done, n);
			sg_look_end();
		}
	} while (sg_read_retry(&b->v, &b->file, seq));
}

/* --- writing --------------------------------------------------------------------------------- */

/* Stores an entry, and starts its write-back. Returns the new head. */
static u64 put_entry(struct cost_bed *b, u64 at, u64 in, const u8 *buf, u64 len)
{
	u64 meta = at + ROUND(len);

	sg_os_write(sg_at(&b->v, at), buf, len);
	sg_store64(sg_at(&b->v, meta), META(in, len));
	sg_wb(sg_at(&b->v, at), meta + 8 - at);
	return meta + 8;
}

/* Returns whether the page's block has room for an entry. */
static bool fits(u64 head, u64 len)
{
	return head && head + ROUND(len) + 8 <= ENTRY_PAGE(head - 1) + SG_PAGE;
}

/*
 * Writes the page anew in the transaction: a fresh page with the old bytes, those of the log, and
 * the new ones. Drops the log.
 */
static void fold(struct cost_bed *b, struct sg_tx *tx, u64 page, u64 in, const u8 *buf, u64 len)
{
	u64 at = head_of(b, page), head = sg_get(&b->v, at), off, got, old;
	u8 bytes[SG_PAGE];

	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got));
	if (len < SG_PAGE) {
		read_page(b, page, 0, bytes, SG_PAGE);
		memcpy(bytes + in, buf, len);
		buf = bytes;
	}
	sg_fresh_write(&b->v, off, buf, SG_PAGE);
	CHECK_OK(sg_table_replace(tx, &b->file, page, off, &old));
	sg_defer_run(tx, old, 1);
	if (head)
		sg_defer_run(tx, ENTRY_PAGE(head - 1), 1);
	sg_tx_set(tx, at, 0);
}

/* Writes one page in a transaction. */
static void page_in_tx(struct cost_bed *b, struct sg_tx *tx, u64 page, u64 in, const u8 *buf,
		       u64 len)
{
	u64 at = head_of(b, page), head = sg_get(&b->v, at), got;

	if (len == SG_PAGE || (head && !fits(head, len)) || ROUND(len) + 8 > SG_PAGE) {
		fold(b, tx, page, in, buf, len);
		return;
	}
	if (!head)
		CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, 1, &head, &got));
	sg_tx_set(tx, at, put_entry(b, head, in, buf, len));
}

static void write_in_tx(struct cost_bed *b, u64 pos, const u8 *buf, u64 len)
{
	struct sg_tx *tx = sg_tx_begin(&b->v);
	u64 done, n, in;

	tx->most_locks = SG_TX_LOCKS;
	for (done = 0; done < len; done += n) {
		in = (pos + done) & (SG_PAGE - 1);
		n = SG_MIN(SG_PAGE - in, len - done);
		page_in_tx(b, tx, (pos + done) >> SG_PAGE_SHIFT, in, buf + done, n);
	}
	sg_tx_inode(tx, &b->file);
	CHECK_OK(sg_tx_commit(tx));
}

/* P3's usual case: the entry, then the head, which is one store. */
static bool append_entry(struct cost_bed *b, u64 pos, const u8 *buf, u64 len)
{
	u64 in = pos & (SG_PAGE - 1), at = head_of(b, pos >> SG_PAGE_SHIFT);
	u64 head = sg_get(&b->v, at), end;
	struct sg_inode *inode = sg_at(&b->v, b->file.off);

	if (in + len > SG_PAGE || len == SG_PAGE || !fits(head, len))
		return false;
	end = put_entry(b, head, in, buf, len);
	sg_fence();
	sg_or64(&inode->seq, 1);
	sg_store64_release(sg_at(&b->v, at), end);
	sg_store64_release(&inode->seq, sg_load64(&inode->seq) + 1);
	sg_wb(sg_at(&b->v, at), 8);
	sg_wb(&inode->seq, 8);
	sg_fence();
	return true;
}

void pagelog_write(struct cost_bed *b, u64 pos, const u8 *buf, u64 len)
{
	struct sg_run run;

	CHECK_OK(sg_may_write(&b->v));
	CHECK_OK(sg_ilock(&b->v, &b->file));
	CHECK_OK(sg_may_store(&b->v, &b->file));
	CHECK_OK(sg_walk(&b->v, &b->file, pos >> SG_PAGE_SHIFT, 1, &run));
	if (!append_entry(b, pos, buf, len))
		write_in_tx(b, pos, buf, len);
	sg_iunlock(&b->v, &b->file);
}
