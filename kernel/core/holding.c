// SPDX-License-Identifier: GPL-2.0
/*
 * Who keeps what from the others: for those who only look on (stargatectl systems). Takes no lock
 * and stores nothing, so what it says of a volume in use is about right, and all loops are bounded
 * by the volume (D10).
 */
#include "internal.h"

#define BUDGET	(1u << 20)	/* entries of tables that are looked at */

/**
 * struct count - what is being found out, and for whom.
 * @budget: entries of cut-off tables that may still be looked at.
 */
struct count {
	const struct sg_vol *vol;
	struct sg_slot slots[SG_SLOTS];
	struct sg_holding *out;
	unsigned int budget;
};

/* A table that was cut off, from entry @first on, with all below it. */
static u64 table_pages(struct count *c, u64 off, unsigned int level, unsigned int first)
{
	u64 pages = 1, sub;
	unsigned int i;

	if (!sg_data_page(c->vol, off))
		return 0;
	for (i = first; i < SG_TABLE_ENTRIES && c->budget; i++) {
		c->budget--;	/* before what is below it spends the rest */
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

/* Pages that a debt is for, at least: of directories and attributes only the first. */
static u64 debt_pages(struct count *c, u64 word)
{
	unsigned int kind = SG_DEBT_KIND(word);

	if (kind == SG_DEBT_RUN)
		return SG_DEBT_COUNT(word) + 1;
	if (kind < SG_DEBT_TABLE || kind >= SG_DEBT_TABLE + SG_TABLE_LEVELS)
		return 1;
	return table_pages(c, SG_DEBT_VALUE(word) << SG_PAGE_SHIFT, kind - SG_DEBT_TABLE + 1,
			   SG_DEBT_COUNT(word));
}

/* Lives, and has not acknowledged an epoch that others wait for. */
static bool lags(const struct sg_slot *s, u64 epoch)
{
	return SG_SLOT_STATE(s->state) == SG_SLOT_LIVE && (s64)(epoch - s->epoch) > 0;
}

/* An inode that is owed waits for those who have it open, not for an epoch. */
static void count_debt(struct count *c, u64 word, unsigned int slot)
{
	u64 epoch = sg_get(c->vol, SG_HOT(epoch)), pages;
	unsigned int i;

	if (!word || SG_DEBT_KIND(word) == SG_DEBT_INODE)
		return;
	pages = debt_pages(c, word);
	c->out[slot].owes += pages;
	for (i = 0; i < SG_SLOTS; i++)
		if (lags(&c->slots[i], epoch) &&
		    !sg_epoch_over(c->vol, c->slots[i].epoch, SG_DEBT_EPOCH(word)))
			c->out[i].held_up += pages;
}

static void count_ledger(struct count *c, unsigned int slot)
{
	u64 page = sg_ledger_off(c->vol, slot);
	unsigned int n, i;

	for (n = 0; page && n < SG_LEDGER_PAGES; n++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			count_debt(c, sg_get(c->vol, page + 8 * i), slot);
		page = sg_get(c->vol, page);
		if (!sg_data_page(c->vol, page))
			page = 0;
	}
}

static void count_debts(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS])
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

static void count_openers(u64 bits, struct sg_holding out[SG_SLOTS])
{
	for (; bits; bits &= bits - 1)
		out[sg_ctz64(bits)].open++;
}

/* A page of records at a time: one walk for all of them. */
static void count_opens(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS])
{
	u64 end = SG_MIN(sg_get(vol, SG_HOT(inodes)), sg_bound(vol) / SG_INODE_SIZE), ino;
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_run run;
	unsigned int i;

	for (ino = 0; ino < end; ino += SG_INODES_PER_PAGE) {
		if (sg_walk(vol, &sys, ino / SG_INODES_PER_PAGE, 1, &run) || !run.off)
			continue;
		for (i = 0; i < SG_INODES_PER_PAGE; i++)
			count_openers(sg_get(vol, run.off + i * SG_INODE_SIZE +
					     offsetof(struct sg_inode, openers)), out);
	}
}

void sg_holdings(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS])
{
	memset(out, 0, SG_SLOTS * sizeof(*out));
	count_debts(vol, out);
	count_opens(vol, out);
}
