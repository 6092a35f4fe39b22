/* SPDX-License-Identifier: GPL-2.0 */
/* File tables (D5). */
#ifndef SG_TABLE_H
#define SG_TABLE_H

#include "journal/tx.h"

/* Checks entry @e of a table of @level (1..4). Kind of what it names: */
enum sg_entry { SG_ENTRY_NONE, SG_ENTRY_LEAF, SG_ENTRY_TABLE, SG_ENTRY_BAD };
enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off);
/* The same for a root word: LEAF is the only page of a file, TABLE a table of the root's height. */
enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off);
bool sg_table_lost(const struct sg_vol *vol, u64 e);	/* names a table, in bad memory */
/* What says where @page is makes no sense: -EUCLEAN, and it is logged; or bad memory: -EIO. */
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
 * Hooks @pages fresh pages at @off behind file page @page (one run, all unmapped before; for a
 * whole aligned chunk a level 2 leaf is used if the place is free, and made of a table of level 1
 * that has become one). Grows the table as needed.
 * Adds to sg_inode.blocks in tx what it took for tables and the pages themselves.
 */
int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages);
/* How many of @want pages at the hole @page one sg_table_add() can take. */
u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want);
/*
 * When @page lies inside a large leaf, but not at its start: a table of smaller leaves instead.
 * -ENOSPC when there is no page for the table; the transaction is still good then.
 */
int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page);
/*
 * Cuts mapped pages out of [page, end), in file order, until done or the transaction or ledger is
 * full; *next: where to go on (>= end when done). What was cut is owed; blocks follow. Large leaves
 * that lie half in the range have been split: -EAGAIN when one has not.
 */
int sg_table_cut(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 end, u64 *next);
/* For who takes pages out in another way: sg_inode.cuts. */
void sg_count_cut(struct sg_tx *tx, const struct sg_iref *ref);
/* Cuts everything with one word: the root becomes a debt (or a run for a single page). */
void sg_table_drop(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * One step in paying a SG_DEBT_TABLE: frees entries of the table page @off (@level) from *@index
 * on in @tx, child tables become debts of their own; *index == SG_TABLE_ENTRIES when only the page
 * itself was left and has been freed too.
 */
int sg_table_pay(struct sg_tx *tx, u64 off, unsigned int level, unsigned int *index);

#endif
