// SPDX-License-Identifier: GPL-2.0
/*
 * Open inodes and deferred frees of each system, and deferred frees that wait for it: for programs
 * that only read (stargatectl systems). The code takes no lock and stores nothing, so the result is
 * approximate on a volume in use. The volume's size bounds all loops (D10).
 */
#include "internal.h"

#define BUDGET	(1u << 20)	/* limit of table entries to read */

/**
 * struct count - a count in progress, and its result.
 * @budget: number of entries of cut-off tables that may still be read.
 */
struct count {
	const struct sg_vol *vol;
	struct sg_slot slots[SG_SLOTS];
	struct sg_holding *out;
	unsigned int budget;
};

/* Returns the pages of a cut-off table from entry @first on, with everything below it. */
static u64 table_pages(struct count *c, u64 off, unsigned int level, unsigned int first)
{
	u64 pages = 1, sub;
	unsigned int i;

	if (!sg_data_page(c->vol, off))
		return 0;
	for (i = first; i < SG_TABLE_ENTRIES && c->budget; i++) {
		c->budget--;	/* taken before the tables below use up the rest */
		switch (sg_entry_kind(c->vol, sg_get(c->vol, off + 8 * i), level, &sub)) {
		case SG_ENTRY_LEAF:
			pages += 1ULL << 9 * (level - 1);
			break;
		case SG_ENTRY_TABLE:
			pages += table_pages(c, sub, level - 1, 0);
			break;
		default:
			break;
		}
	}
	return pages;
}

/*
 * Returns the minimal number of pages of a deferred free: for directories and attributes it counts
 * only the first page.
 */
static u64 deferred_pages(struct count *c, u64 word)
{
	unsigned int kind = SG_LEDGER_KIND(word);

	if (kind == SG_LEDGER_RUN)
		return SG_LEDGER_COUNT(word) + 1;
	if (kind < SG_LEDGER_TABLE || kind >= SG_LEDGER_TABLE + SG_TABLE_LEVELS)
		return 1;
	return table_pages(c, SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT, kind - SG_LEDGER_TABLE + 1,
			   SG_LEDGER_COUNT(word));
}

/*
 * Reports whether the system is live, and has not acknowledged an epoch for which other systems
 * wait.
 */
static bool lags(const struct sg_slot *s, u64 epoch)
{
	return SG_SLOT_STATE(s->state) == SG_SLOT_LIVE && (s64)(epoch - s->epoch) > 0;
}

/* Counts a deferred free; a deferred inode waits for its openers, not for an epoch. */
static void count_deferred(struct count *c, u64 word, unsigned int slot)
{
	u64 epoch = sg_get(c->vol, SG_HOT(epoch)), pages;
	unsigned int i;

	if (!word || SG_LEDGER_KIND(word) == SG_LEDGER_INODE)
		return;
	pages = deferred_pages(c, word);
	c->out[slot].deferred += pages;
	for (i = 0; i < SG_SLOTS; i++)
		if (lags(&c->slots[i], epoch) &&
		    !sg_epoch_over(c->vol, c->slots[i].epoch, SG_LEDGER_EPOCH(word)))
			c->out[i].held_up += pages;
}

static void count_ledger(struct count *c, unsigned int slot)
{
	u64 page = sg_ledger_off(c->vol, slot);
	unsigned int n, i;

	for (n = 0; page && n < SG_LEDGER_PAGES; n++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			count_deferred(c, sg_get(c->vol, page + 8 * i), slot);
		page = sg_get(c->vol, page);
		if (!sg_data_page(c->vol, page))
			page = 0;
	}
}

static void count_all_deferred(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS])
{
	struct count *c = sg_alloc(sizeof(*c));
	unsigned int slot;

	if (!c)
		return;
	c->vol = vol;
	c->out = out;
	c->budget = BUDGET;
	for (slot = 0; slot < SG_SLOTS; slot++)
		sg_slot_read(vol, slot, &c->slots[slot]);
	for (slot = 0; slot < SG_SLOTS; slot++)
		count_ledger(c, slot);
	sg_free(c);
}

/* Visits all inodes, one page of records at a time, with one walk for each page. */
static void look_through(const struct sg_vol *vol,
			 bool (*each)(void *ctx, const struct sg_opened *o), void *ctx)
{
	u64 end = SG_MIN(sg_get(vol, SG_HOT(inodes)), sg_bound(vol) / SG_INODE_SIZE), ino;
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_opened o;
	struct sg_run run;
	u64 rec, mode;

	for (ino = 0; ino < end; ino++) {
		if (!(ino % SG_INODES_PER_PAGE) &&
		    sg_walk(vol, &sys, ino / SG_INODES_PER_PAGE, 1, &run))
			run.off = 0;
		if (!run.off) {
			ino |= SG_INODES_PER_PAGE - 1;
			continue;
		}
		rec = run.off + ino % SG_INODES_PER_PAGE * SG_INODE_SIZE;
		o.slots = sg_get(vol, rec + offsetof(struct sg_inode, openers));
		if (!o.slots)
			continue;
		mode = sg_get(vol, rec + offsetof(struct sg_inode, mode));
		o.ino = ino;
		o.mode = (u32)mode;
		o.links = sg_nlink(mode);
		o.size = sg_get(vol, rec + offsetof(struct sg_inode, size));
		if (!each(ctx, &o))
			return;
	}
}

static bool count_openers(void *ctx, const struct sg_opened *o)
{
	struct sg_holding *out = ctx;
	u64 bits;

	for (bits = o->slots; bits; bits &= bits - 1)
		out[sg_ctz64(bits)].open++;
	return true;
}

struct telling {
	bool (*each)(void *ctx, const struct sg_opened *o);
	void *ctx;
};

/* Skips free records, which may still have a bit that no system has cleared. */
static bool slot_usage_tell(void *ctx, const struct sg_opened *o)
{
	const struct telling *t = ctx;

	return !o->mode || t->each(t->ctx, o);
}

void sg_opened(const struct sg_vol *vol, bool (*each)(void *ctx, const struct sg_opened *o),
	       void *ctx)
{
	struct telling t = { each, ctx };

	look_through(vol, slot_usage_tell, &t);
}

void sg_holdings(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS])
{
	memset(out, 0, SG_SLOTS * sizeof(*out));
	count_all_deferred(vol, out);
	look_through(vol, count_openers, out);
}
