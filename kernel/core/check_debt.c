// SPDX-License-Identifier: GPL-2.0
/*
 * Ledgers: what slots still have to free. Such pages belong to nothing else any more and are not
 * lost; recovery gives them back. A debt that names what somebody owns is struck out: paying it
 * would give away pages in use.
 */
#include "check.h"

static bool run_owed(struct sg_ck *c, u64 word)
{
	u64 off = SG_DEBT_VALUE(word) << SG_PAGE_SHIFT, pages = SG_DEBT_COUNT(word) + 1;

	return sg_data_range(&c->vol, off, pages) && ck_claim(c, off, pages);
}

static bool inode_owed(struct sg_ck *c, u64 word)
{
	u64 ino = SG_DEBT_VALUE(word);

	if (ino >= c->inodes || !(c->state[ino] & (CK_USED | CK_TYPELESS)))
		return false;
	c->state[ino] |= CK_OWED;
	return true;
}

/* A page of debts to come: claimed before it is looked into. */
static bool page_owed(struct sg_ck *c, u64 word)
{
	u64 off = SG_DEBT_VALUE(word) << SG_PAGE_SHIFT;

	return sg_data_page(&c->vol, off) && ck_claim(c, off, 1);
}

static bool owed(struct sg_ck *c, u64 word)
{
	u64 off = SG_DEBT_VALUE(word) << SG_PAGE_SHIFT;
	unsigned int kind = SG_DEBT_KIND(word), from = SG_DEBT_COUNT(word);
	u64 pages = 0;

	switch (kind) {
	case SG_DEBT_RUN:
		return run_owed(c, word);
	case SG_DEBT_INODE:
		return inode_owed(c, word);
	case SG_DEBT_XATTR:
		return ck_xattr_owed(c, off);
	case SG_DEBT_DIR:
		return page_owed(c, word) && ck_dir_owed(c, off, from, 1, &pages);
	default:
		return page_owed(c, word) && ck_table_owed(c, off, kind, from);
	}
}

static void debt(struct sg_ck *c, u64 at, u64 word)
{
	c->recovering = true;	/* also when its slot is free: then recovery stopped there */
	if (!owed(c, word) && !c->no_memory &&
	    ck_found(c, CK_ASK, 0, at, "a debt (0x%llx) names what is not owed", CK_U(word)))
		ck_set(c, at, 0);
}

/* Debts of inodes are looked at early: they say what to expect of the inode. */
static void ledger_page(struct sg_ck *c, u64 page, bool inodes)
{
	unsigned int i;

	for (i = 1; i < SG_LEDGER_WORDS; i++) {
		u64 word = ck_get(c, page + 8 * i);

		if (word && (SG_DEBT_KIND(word) == SG_DEBT_INODE) == inodes)
			debt(c, page + 8 * i, word);
	}
}

/* The chain's pages are claimed when it is followed for the first time, which also bounds it. */
static u64 next_page(struct sg_ck *c, u64 page, bool claim)
{
	u64 next = ck_get(c, page);

	if (!next || !claim)
		return sg_data_page(&c->vol, next) ? next : 0;
	if (sg_data_page(&c->vol, next) && ck_claim(c, next, 1))
		return next;
	if (ck_found(c, CK_ASK, 0, page, "a ledger goes on where it cannot"))
		ck_set(c, page, 0);
	else
		c->no_debts = true;
	return 0;
}

static void ledgers(struct sg_ck *c, bool inodes)
{
	unsigned int slot;
	u64 page;

	for (slot = 0; slot < SG_SLOTS && !c->no_debts; slot++)
		for (page = sg_ledger_off(&c->vol, slot); page; page = next_page(c, page, inodes))
			ledger_page(c, page, inodes);
}

void ck_debts_of_inodes(struct sg_ck *c)
{
	c->no_debts = false;
	ledgers(c, true);
}

void ck_debts_of_pages(struct sg_ck *c)
{
	ledgers(c, false);
}
