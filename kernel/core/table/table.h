/* SPDX-License-Identifier: GPL-2.0 */
/* File tables (D5). */
#ifndef SG_TABLE_H
#define SG_TABLE_H

#include "journal/tx.h"

/* Checks entry @e of a table of @level (1..4). Returns the kind of its target: */
enum sg_entry { SG_ENTRY_NONE, SG_ENTRY_LEAF, SG_ENTRY_TABLE, SG_ENTRY_BAD };
enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off);
/* The same for a root word. LEAF: the only page of a file. TABLE: a table of the root's height. */
enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off);
/* the entry names a table that is on a bad page */
bool sg_table_lost(const struct sg_vol *vol, u64 e);
/*
 * The table's entries for @page make no sense: -EUCLEAN, and it is logged; or they are on a bad
 * page: -EIO.
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
static inline u64 sg_level_pages(unsigned int level)	/* pages mapped by one entry */
{
	return 1ULL << (9 * (level - 1));
}
/*
 * Adds @pages fresh pages at @off to the table at file page @page: one run, all unmapped before. A
 * whole aligned chunk gets a level 2 leaf if the entry is free. A level 1 table that has become a
 * whole chunk is replaced by such a leaf. Grows the table as needed. Adds the pages, and those of
 * new tables, to sg_inode.blocks in tx.
 */
int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages);
/* How many of @want pages at the hole @page one sg_table_add() can take. */
u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want);
/*
 * If @page lies inside a large leaf, but not at its start: replaces the leaf by a table of smaller
 * leaves. -ENOSPC: no page for the table; the transaction remains usable.
 */
int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page);
/*
 * Enters a fresh page at @off in place of the one at @page, which has a leaf of 4 KiB; *old: the
 * offset of that. The caller makes it a deferred free.
 */
int sg_table_replace(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 *old);
/*
 * Cuts mapped pages out of [page, end), in file order, until all are cut, or the transaction or
 * ledger is full. *next: where to continue (>= end: done). The cut pages become deferred frees;
 * blocks follow. Large leaves that lie half in the range have been split before; -EAGAIN: one has
 * not.
 */
int sg_table_cut(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 end, u64 *next);
/* For code that takes pages out in another way: counts up sg_inode.cuts. */
void sg_count_cut(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * Cuts the whole table with one word: the root becomes a deferred free (or a run for a single
 * page).
 */
void sg_table_drop(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * One step of reclaiming a SG_LEDGER_TABLE: frees entries of the table page @off (@level) from
 * *@index on in @tx. Child tables become deferred frees of their own. *index == SG_TABLE_ENTRIES:
 * only the page itself was left, and has been freed too.
 */
int sg_table_reclaim(struct sg_tx *tx, u64 off, unsigned int level, unsigned int *index);

#endif
