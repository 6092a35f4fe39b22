/* SPDX-License-Identifier: GPL-2.0 */
/* File tables (D5). */
#ifndef SG_TABLE_H
#define SG_TABLE_H

#include "journal/tx.h"

/* Checks entry @e of a table of @level (1..4), and returns the kind of its target: */
enum sg_entry { SG_ENTRY_NONE, SG_ENTRY_LEAF, SG_ENTRY_TABLE, SG_ENTRY_BAD };
enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off);
/*
 * As sg_entry_kind(), for a root word. LEAF: the only page of a file. TABLE: a table of the root's
 * height.
 */
enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off);
/* the entry names a table that is on a bad page */
bool sg_table_lost(const struct sg_vol *vol, u64 e);
/*
 * Returns the error for @page: -EUCLEAN, after a report, if the table's entries are invalid; -EIO
 * if they are on a bad page.
 */
int sg_table_wrong(const struct sg_vol *vol, const struct sg_iref *ref, u64 page);
static inline u64 sg_leaf(const struct sg_vol *vol, u64 off, unsigned int level)
{
	return (vol->sb.phys + off) | (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF);
}
static inline u64 sg_link_entry(const struct sg_vol *vol, u64 off)
{
	return (vol->sb.phys + off) | SG_PTE_TABLE;
}
/* returns the number of pages that one entry maps */
static inline u64 sg_level_pages(unsigned int level)
{
	return 1ULL << (9 * (level - 1));
}
/*
 * Adds @pages fresh pages at @off to the table at file page @page: one run, all holes before. A
 * complete aligned chunk gets a level 2 leaf if the entry is free. Such a leaf also replaces a
 * level 1 table that now maps a complete chunk. Grows the table as needed. Adds the pages, and
 * those of new tables, to sg_inode.blocks in @tx.
 */
int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages);
/* Returns how many of @want pages at the hole @page one sg_table_add() can add. */
u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want);
/*
 * Replaces a large leaf by a table of smaller leaves if @page lies inside the leaf, but not at its
 * start. -ENOSPC: no page for the table; the transaction remains usable.
 */
int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page);
/*
 * Puts a fresh page at @off in place of the page at @page, which has a leaf of 4 KiB. *old: the
 * offset of the replaced page, which the caller makes a deferred free.
 */
int sg_table_replace(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 *old);
/*
 * Cuts mapped pages out of [page, end), in file order, until all are cut, or the transaction or
 * ledger is full. *next: where to continue (>= end: done). The cut pages become deferred frees;
 * sg_inode.blocks is updated. The caller has split large leaves that lie partly in the range;
 * -EAGAIN: one was not split.
 */
int sg_table_cut(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 end, u64 *next);
/* Increments sg_inode.cuts, for code that takes pages out in another way. */
void sg_count_cut(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * Cuts off the complete table by one word. The root becomes a deferred free, or a run if the file
 * is a single page.
 */
void sg_table_drop(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * Makes one step of reclaiming a SG_LEDGER_TABLE: frees entries of the table page @off (@level)
 * from *@index on in @tx. Child tables become separate deferred frees. *index == SG_TABLE_ENTRIES:
 * all entries and the page itself are free now.
 */
int sg_table_reclaim(struct sg_tx *tx, u64 off, unsigned int level, unsigned int *index);

#endif
