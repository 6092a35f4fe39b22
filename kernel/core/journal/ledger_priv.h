/* SPDX-License-Identifier: GPL-2.0 */
/* The mirror of the ledger in private memory: for journal/ledger.c and deferred/. */
#ifndef SG_LEDGER_PRIV_H
#define SG_LEDGER_PRIV_H

#include "internal.h"

#define PER_PAGE	(SG_LEDGER_WORDS - 1)

/* LOST: the entry is in a page that has become bad; no system looks there. */
enum state { FREE, PENDING, DEFERRED, RECLAIMING, LOST };
#define NONE	(~0u)
#define BUCKETS	256

struct entry {
	u64 word;
	u16 state;
	/* deferred inode: this system uses its file of this generation; 0: it does not */
	u32 kept;
	/*
	 * unused: next unused entry; deferred inode: next entry in its bucket; set aside by
	 * sg_reclaim(): the one before it
	 */
	u32 next;
};

struct ledger_page {
	u64 off;
	struct entry entry[PER_PAGE];
};

/* Pages of the mirror never move. Counters are words because some readers take no lock. */
struct sg_ledger {
	struct sg_spin spin;
	u64 pages, nfree, reclaimable, reclaiming;
	u64 inodes;	/* entries that name an inode */
	/* horizon + 1 at which nothing could be reclaimed; 0: something may be reclaimable */
	u64 stuck;
	u64 busy;	/* lock of a chunk for which reclaim has waited in vain, or 0 */
	u64 behind;	/* entries that reclaim has tried in vain since then */
	u32 first_free;
	unsigned int hunt;	/* where the last search for an entry to reclaim ended */
	u32 bucket[BUCKETS];	/* entries that name inodes, by number */
	bool growing;
	u64 room_in;	/* lock of the chunk that the last growth has waited for in vain, or 0 */
	struct ledger_page *page[SG_LEDGER_PAGES];
};

static inline void ledger_adjust(u64 *counter, s64 by)
{
	sg_store64(counter, sg_load64(counter) + (u64)by);
}

static inline unsigned int ledger_capacity(const struct sg_ledger *l)
{
	return (unsigned int)sg_load64(&l->pages) * PER_PAGE;
}

static inline struct entry *ledger_entry(const struct sg_ledger *l, unsigned int i)
{
	return &l->page[i / PER_PAGE]->entry[i % PER_PAGE];
}

static inline u64 ledger_entry_off(const struct sg_ledger *l, unsigned int i)
{
	return l->page[i / PER_PAGE]->off + (1 + i % PER_PAGE) * 8;
}

static inline bool ledger_is_inode(u64 word)
{
	return SG_LEDGER_KIND(word) == SG_LEDGER_INODE;
}

static inline u64 ledger_of_epoch(u64 word, u64 epoch)
{
	return SG_LEDGER_ENTRY(SG_LEDGER_KIND(word), SG_LEDGER_VALUE(word), SG_LEDGER_COUNT(word),
			       epoch);
}

/* Entries that the next reclaim would try in vain: the chunk is still locked. */
u64 sg_ledger_behind(const struct sg_vol *vol);
void sg_ledger_adopt_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page,
			  u64 off);
/* False: the ledger has no room for it. */
bool sg_ledger_defer(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count, u32 kept);
void sg_ledger_clear(struct sg_tx *tx, unsigned int i);
void sg_ledger_clear_inode(struct sg_tx *tx, u32 i, u64 word);

#endif
