// SPDX-License-Identifier: GPL-2.0
/*
 * Ledgers: a slot's deferred frees. Their pages have no other owner, and are not lost: recovery
 * reclaims them. If pages of a deferred free have another owner, the checker clears that entry,
 * because a reclaim would free pages in use.
 */
#include "check.h"

static bool run_deferred(struct sg_ck *c, u64 word)
{
	u64 off = SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT, pages = SG_LEDGER_COUNT(word) + 1;

	return sg_data_range(&c->vol, off, pages) && ck_claim(c, off, pages);
}

/*
 * Checks a deferred inode. The entry is only a hint that the inode may have to be freed. Another
 * system may have freed the inode since (docs/protocol.md, section 5), and the settling system then
 * clears the entry. An inode number that never existed is a finding.
 */
static bool inode_deferred(struct sg_ck *c, u64 word)
{
	u64 ino = SG_LEDGER_VALUE(word);

	if (!ino || ino >= c->inodes)
		return false;
	if (c->state[ino] & (CK_USED | CK_TYPELESS))
		c->state[ino] |= CK_DEFERRED;
	return true;
}

/* Claims a page that a deferred free names, before the checker reads that page. */
static bool page_deferred(struct sg_ck *c, u64 word)
{
	u64 off = SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT;

	return sg_data_page(&c->vol, off) && ck_claim(c, off, 1);
}

static bool deferred(struct sg_ck *c, u64 word)
{
	u64 off = SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT;
	unsigned int kind = SG_LEDGER_KIND(word), from = SG_LEDGER_COUNT(word);
	u64 pages = 0;

	switch (kind) {
	case SG_LEDGER_RUN:
		return run_deferred(c, word);
	case SG_LEDGER_INODE:
		return inode_deferred(c, word);
	case SG_LEDGER_XATTR:
		return ck_xattr_deferred(c, off);
	case SG_LEDGER_DIR:
		return page_deferred(c, word) && ck_dir_deferred(c, off, from, 1, &pages);
	default:
		return page_deferred(c, word) && ck_table_deferred(c, off, kind, from);
	}
}

/* --- deferred inodes, which later checks need ----------------------------------------------- */

static void mark_inodes(struct sg_ck *c, u64 page)
{
	unsigned int i;

	if (c->image)
		ck_image_deferred(c, page);
	for (i = 1; i < SG_LEDGER_WORDS; i++) {
		u64 word = ck_get(c, page + 8 * i);

		if (word && SG_LEDGER_KIND(word) == SG_LEDGER_INODE)
			inode_deferred(c, word);
	}
}

/*
 * Walks a list up to a record that cannot be on it, and ends the list there. The records after that
 * one are then on no list, and the checker treats them like all inodes that are not deferred.
 */
static void follow_list(struct sg_ck *c, u64 at)
{
	u64 head = at, word = ck_get(c, at), ino;

	while ((ino = SG_DEFERRED_LINK_INO(word)) != 0) {
		c->recovering = true;	/* as with any deferred free */
		if (ino >= c->inodes || c->state[ino] & (CK_MISSING | CK_CHAINED) ||
		    !ck_get(c, ck_ifield(c, ino, deferred_next))) {
			if (ck_found(c, CK_SAFE, 0, at, "a list of deferred inodes continues at an invalid place"))
				ck_set(c, at, at == head ? 0 : SG_DEFERRED_LINK(0));
			return;
		}
		c->state[ino] |= CK_CHAINED;
		if (c->state[ino] & (CK_USED | CK_TYPELESS))
			c->state[ino] |= CK_DEFERRED;
		at = ck_ifield(c, ino, deferred_next);
		word = ck_get(c, at);
	}
}

static void deferred_lists(struct sg_ck *c)
{
	unsigned int slot, i;
	u64 ino, at;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < c->vol.sb.areas; i++)
			follow_list(c, sg_area_off(&c->vol, slot, i) +
				       offsetof(struct sg_area, deferred_ino));
	for (ino = 1; ino < c->inodes; ino++) {
		if (c->state[ino] & CK_MISSING)
			continue;
		at = ck_ifield(c, ino, deferred_next);
		if (ck_get(c, at) && !(c->state[ino] & CK_CHAINED) &&
		    ck_found(c, CK_SAFE, ino, at, "is marked as deferred, but is on no list of deferred inodes"))
			ck_set(c, at, 0);
		c->state[ino] &= (u16)~CK_CHAINED;
	}
}

void ck_deferred_of_inodes(struct sg_ck *c)
{
	unsigned int slot, n;
	u64 page;

	if (c->inodes)
		deferred_lists(c);

	for (slot = 0; slot < SG_SLOTS; slot++) {
		page = sg_ledger_off(&c->vol, slot);
		for (n = 0; page && n < SG_LEDGER_PAGES; n++) {
			mark_inodes(c, page);
			page = ck_get(c, page);
			if (!sg_data_page(&c->vol, page))
				page = 0;
		}
	}
}

/* --- all deferred frees, when everything else has been claimed ----------------------------- */

static void ledger_page(struct sg_ck *c, u64 page)
{
	unsigned int i;

	if (c->image)
		ck_image_ledger(c, page);
	for (i = 1; i < SG_LEDGER_WORDS; i++) {
		u64 at = page + 8 * i, word = ck_get(c, at);

		if (!word)
			continue;
		/* also for a free slot: its recovery may have stopped here */
		c->recovering = true;
		if (!deferred(c, word) && !c->no_memory &&
		    ck_found(c, CK_ASK, 0, at, "a deferred free (0x%llx) names a page that is not deferred",
			     CK_U(word)))
			ck_set(c, at, 0);
	}
}

/* Each page is claimed before its link is followed, so the loop also ends for a circular chain. */
static u64 next_page(struct sg_ck *c, u64 page, unsigned int n)
{
	u64 next = ck_get(c, page);

	if (!next)
		return 0;
	if (n < SG_LEDGER_PAGES && sg_data_page(&c->vol, next) && ck_claim(c, next, 1))
		return next;
	if (ck_found(c, CK_ASK, 0, page, "a ledger continues at an invalid place"))
		ck_set(c, page, 0);
	return 0;
}

void ck_deferred(struct sg_ck *c)
{
	unsigned int slot, n;
	u64 page;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		page = sg_ledger_off(&c->vol, slot);
		for (n = 1; page; n++) {
			ledger_page(c, page);
			page = next_page(c, page, n);
		}
	}
}
