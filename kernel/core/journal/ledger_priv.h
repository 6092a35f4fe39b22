/* SPDX-License-Identifier: GPL-2.0 */
/* The mirror of the ledger in private memory: for journal/ledger.c and deferred/. */
#ifndef SG_LEDGER_PRIV_H
#define SG_LEDGER_PRIV_H

#include "internal.h"

#define PER_PAGE	(SG_LEDGER_WORDS - 1)

/* LOST: the entry is in a page that has become bad; no system reads it. */
enum state { FREE, PENDING, DEFERRED, RECLAIMING, LOST };
#define NONE	(~0u)
#define BUCKETS	256

struct entry {
	u64 word;
	/*
	 * deferred inode: generation of the file, if this system uses it; otherwise 0. Deferred
	 * free of pages: sg_ledger.serial at the commit that deferred it
	 */
	u64 kept;
	/*
	 * unused entry: the next unused one; deferred inode: the next entry in its bucket; entry
	 * set aside by sg_reclaim(): the previous one
	 */
	u32 next;
	u16 state;
};

struct ledger_page {
	u64 off;
	struct entry entry[PER_PAGE];
};

/*
 * The mirror of the ledger. Its pages never move. Its counters are full words, because some readers
 * take no lock.
 */
struct sg_ledger {
	struct sg_spin spin;
	u64 pages, nfree, reclaimable, reclaiming;
	u64 inodes;	/* number of entries that name an inode */
	/* horizon + 1 of the last vain search for an entry to reclaim; 0: there may be one */
	u64 stuck;
	/*
	 * number of deferred frees of pages until now; and that number before the last quiesce of a
	 * system that was alone: no thread can still read pages that were deferred earlier. Both
	 * have 64 bits, and do not wrap: with other systems, @quiesced may stay the same for months
	 */
	u64 serial, quiesced;
	u64 busy;	/* lock of a chunk for which reclaim waited in vain, or 0 */
	u64 behind;	/* number of entries that reclaim has tried in vain since then */
	u32 first_free;
	unsigned int hunt;	/* where the last search for an entry to reclaim ended */
	u32 bucket[BUCKETS];	/* first entry of each hash chain of inodes */
	bool growing;
	u64 room_in;	/* lock of the chunk for which the last growth waited in vain, or 0 */
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

/* Reports whether this system quiesced while it was alone, after the deferred free was made. */
static inline bool ledger_is_quiesced(const struct sg_ledger *l, const struct entry *e)
{
	return e->kept <= l->quiesced;
}

static inline u64 ledger_of_epoch(u64 word, u64 epoch)
{
	return SG_LEDGER_ENTRY(SG_LEDGER_KIND(word), SG_LEDGER_VALUE(word), SG_LEDGER_COUNT(word),
			       epoch);
}

/*
 * Returns the number of entries that the next reclaim would try in vain, because the chunk is still
 * locked.
 */
u64 sg_ledger_behind(const struct sg_vol *vol);
void sg_ledger_adopt_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page,
			  u64 off);
/* False: the ledger has no room for it. */
bool sg_ledger_defer(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count, u64 kept);
void sg_ledger_clear(struct sg_tx *tx, unsigned int i);
void sg_ledger_clear_inode(struct sg_tx *tx, u32 i, u64 word);

#endif
