// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger (D7): this slot's deferred frees.
 *
 * A transaction that takes pages out of a file, directory or xattr writes a deferred free for them.
 * A later transaction clears it and frees the pages, after all systems that might still read them
 * have quiesced. A deferred inode remains while its reason exists, which depends on users. So the
 * ledger takes a limited number of inodes. Further inodes go on lists (deferred_list.c), which need
 * no room. The ledger's words are in a chain of pages in the volume; the mirror here adds a state
 * for each.
 */
#include "journal/ledger_priv.h"

/* number of reclaimable deferred frees from which on a reclaim is worthwhile */
#define TIGHT		64
/* deferred inodes in the ledger, at most: sg_settle() checks each of them every second */
#define INODES_MAX	2048
#define ROOM_KEPT	(SG_AREA_WORDS / 4)	/* entries that inodes must leave free for pages */

/* --- the mirror ----------------------------------------------------------------------------- */

static u32 *ledger_bucket(struct sg_ledger *l, u64 word)
{
	return &l->bucket[SG_LEDGER_VALUE(word) % BUCKETS];
}

static void entry_fill(struct sg_ledger *l, u32 i, u64 word, u32 state, u64 kept)
{
	struct entry *e = ledger_entry(l, i);

	e->word = word;
	e->state = (u16)state;
	e->kept = kept;
	if (ledger_is_inode(word)) {
		e->next = *ledger_bucket(l, word);
		*ledger_bucket(l, word) = i;
		l->inodes++;
	}
}

static void entry_free(struct sg_ledger *l, u32 i)
{
	struct entry *e = ledger_entry(l, i);

	if (ledger_is_inode(e->word)) {
		u32 *at = ledger_bucket(l, e->word);

		while (*at != i)
			at = &ledger_entry(l, *at)->next;
		*at = e->next;
		l->inodes--;
	}
	e->word = 0;
	e->state = FREE;
	e->next = l->first_free;
	l->first_free = i;
	ledger_adjust(&l->nfree, 1);
}

/* Adds a page of the chain, with its entries, to the mirror in @page. */
void sg_ledger_adopt_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page,
			  u64 off)
{
	unsigned int first = ledger_capacity(l), i;

	page->off = off;
	sg_spin_lock(&l->spin);
	l->page[first / PER_PAGE] = page;
	for (i = first + PER_PAGE; i-- > first;) {
		u64 word = sg_get(vol, ledger_entry_off(l, i));

		if (!word) {
			entry_free(l, i);
			continue;
		}
		/*
		 * replay may just have stored it, so it counts as deferred in the current epoch
		 * (epoch.c)
		 */
		entry_fill(l, i, ledger_of_epoch(word, sg_get(vol, SG_HOT(epoch))), DEFERRED,
			   ledger_is_inode(word) ? 0 : ++l->serial);
		if (!ledger_is_inode(word))
			ledger_adjust(&l->reclaimable, 1);
	}
	ledger_adjust(&l->pages, 1);
	sg_spin_unlock(&l->spin);
}

/* Returns the next page of the chain if it is not in the mirror yet; otherwise 0. */
static u64 ledger_next_page(struct sg_vol *vol, const struct sg_ledger *l, u64 off)
{
	unsigned int i;

	off = sg_get(vol, off);
	if (off && !sg_data_page(vol, off)) {
		sg_damaged(vol, 0, off, "ledger chain leaves the volume");
		return 0;
	}
	for (i = 0; off && i < l->pages; i++) {
		if (l->page[i]->off == off) {
			sg_damaged(vol, 0, off, "ledger chain forms a cycle");
			return 0;
		}
	}
	return off;
}

int sg_ledger_open(struct sg_vol *vol)
{
	u64 off = sg_ledger_off(vol, (unsigned int)vol->slot);
	struct sg_ledger *l = sg_alloc(sizeof(*l));

	if (!l || sg_nameless_open(vol)) {
		sg_free(l);
		return -ENOMEM;
	}
	sg_spin_init(&l->spin);
	l->first_free = NONE;
	memset(l->bucket, 0xff, sizeof(l->bucket));
	vol->ledger = l;
	while (off && l->pages < SG_LEDGER_PAGES) {
		struct ledger_page *page = sg_alloc(sizeof(*page));

		if (!page) {
			sg_ledger_close(vol);
			return -ENOMEM;
		}
		sg_ledger_adopt_page(vol, l, page, off);
		off = ledger_next_page(vol, l, off);
	}
	return 0;
}

void sg_ledger_close(struct sg_vol *vol)
{
	struct sg_ledger *l = vol->ledger;

	if (!l)
		return;
	while (l->pages)
		sg_free(l->page[--l->pages]);
	sg_nameless_close(vol);
	sg_free(l);
	vol->ledger = NULL;
}

unsigned int sg_ledger_room(const struct sg_vol *vol)
{
	return (unsigned int)sg_load64(&vol->ledger->nfree);
}

u64 sg_ledger_room_in(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->room_in);
}

void sg_ledger_room_free(struct sg_vol *vol)
{
	sg_store64(&vol->ledger->room_in, 0);
}

u64 sg_ledger_reclaimable(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->reclaimable);
}

bool sg_ledger_reclaiming(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->reclaiming);
}

bool sg_ledger_is_stuck(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->stuck);
}

u64 sg_ledger_behind(const struct sg_vol *vol)
{
	u64 busy = sg_load64(&vol->ledger->busy);

	return busy && sg_is_locked(vol, busy) ? sg_load64(&vol->ledger->behind) : 0;
}

/*
 * Reports whether to reclaim before deferring more. Entries that wait for a locked chunk count
 * again after a number of new entries, or when the chunk is unlocked. Otherwise each transaction
 * would begin with these entries.
 */
bool sg_ledger_is_tight(const struct sg_vol *vol)
{
	const struct sg_ledger *l = vol->ledger;
	u64 least = TIGHT + sg_load64(&l->reclaiming);

	return (sg_load64(&l->reclaimable) >= least && !sg_load64(&l->stuck) &&
		sg_load64(&l->reclaimable) >= least + sg_ledger_behind(vol)) ||
	       sg_ledger_is_full(vol);
}

bool sg_ledger_is_full(const struct sg_vol *vol)
{
	return sg_ledger_room(vol) < SG_AREA_WORDS / 2;
}

bool sg_ledger_waits(const struct sg_vol *vol)
{
	struct sg_ledger *l = vol->ledger;
	u64 stuck = sg_load64(&l->stuck);

	if (stuck && (stuck != sg_epoch_horizon(vol) + 1 || sg_alone(vol)))
		sg_store64(&l->stuck, 0);
	return sg_load64(&l->reclaimable) != 0;
}

/* --- deferring ------------------------------------------------------------------------------ */

static u32 entry_take(struct sg_ledger *l, u64 word, u64 kept, unsigned int inodes)
{
	u32 i;

	sg_spin_lock(&l->spin);
	i = l->first_free;
	if (ledger_is_inode(word) && (l->inodes >= inodes || l->nfree <= ROOM_KEPT))
		i = NONE;
	if (i != NONE) {
		l->first_free = ledger_entry(l, i)->next;
		ledger_adjust(&l->nfree, -1);
		entry_fill(l, i, word, PENDING, kept);
	}
	sg_spin_unlock(&l->spin);
	return i;
}

/* Records a deferred free in the transaction. Returns false if the ledger has no room for it. */
bool sg_ledger_defer(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count, u64 kept)
{
	struct sg_ledger *l = tx->vol->ledger;
	u64 epoch = tx->split ? SG_LEDGER_EPOCH(tx->split) : sg_get(tx->vol, SG_HOT(epoch));
	u64 word = SG_LEDGER_ENTRY(kind, value, count, epoch);
	u32 i;

	if (tx->err)
		return true;
	i = tx->ndeferred < SG_ARRAY_SIZE(tx->deferred) ?
		entry_take(l, word, kept, tx->vol->deferred_on_lists ? 0 : INODES_MAX) : NONE;
	if (i == NONE)
		return false;
	tx->deferred[tx->ndeferred++] = i;
	sg_tx_set(tx, ledger_entry_off(l, i), word);
	return true;
}

void sg_defer_free(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count)
{
	if (!sg_ledger_defer(tx, kind, value, count, 0))
		sg_tx_fail(tx, -ENOSPC);
}

void sg_defer_run(struct sg_tx *tx, u64 off, u64 pages)
{
	while (pages) {
		u64 left = SG_CHUNK_PAGES - ((off >> SG_PAGE_SHIFT) & (SG_CHUNK_PAGES - 1));
		u64 n = SG_MIN(pages, left);

		sg_defer_free(tx, SG_LEDGER_RUN, off >> SG_PAGE_SHIFT, (unsigned int)(n - 1));
		off += n * SG_PAGE;
		pages -= n;
	}
}

/*
 * Returns the entry that names inode @ino, and its word, or NONE. It skips an entry whose
 * transaction is in progress, because a thread that takes over deferred frees has no inode locked.
 */
static u32 find_inode(struct sg_ledger *l, u64 ino, u64 *word)
{
	u32 i;

	sg_spin_lock(&l->spin);
	i = l->bucket[ino % BUCKETS];
	while (i != NONE && (ledger_entry(l, i)->state != DEFERRED ||
			     SG_LEDGER_VALUE(ledger_entry(l, i)->word) != ino))
		i = ledger_entry(l, i)->next;
	*word = i != NONE ? ledger_entry(l, i)->word : 0;
	sg_spin_unlock(&l->spin);
	return i;
}

bool sg_ledger_deferred(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 word;

	return find_inode(vol->ledger, ref->ino, &word) != NONE;
}

void sg_defer_inode(struct sg_tx *tx, const struct sg_iref *ref)
{
	/* the inode as before this transaction: if it had a reason, it is deferred already */
	if (sg_has_reason(sg_iget(tx->vol, ref, mode), sg_iget(tx->vol, ref, genflags)) &&
	    (sg_is_listed(tx->vol, ref) || sg_ledger_deferred(tx->vol, ref)))
		return;
	if (!sg_ledger_defer(tx, SG_LEDGER_INODE, ref->ino, 0, 0))
		sg_deferred_add(tx, ref);
}

void sg_defer_kept(struct sg_tx *tx, const struct sg_iref *ref)
{
	if (sg_ledger_defer(tx, SG_LEDGER_INODE, ref->ino, 0, (u32)ref->generation))
		return;
	sg_nameless_keep(tx, ref);
	sg_deferred_add(tx, ref);
}

/*
 * Reports whether entry @e keeps the inode of @ref. The record may now belong to another file that
 * has its own entry.
 */
static bool keeps(const struct entry *e, const struct sg_iref *ref)
{
	return e->kept && SG_LEDGER_VALUE(e->word) == ref->ino &&
	       (!ref->generation || e->kept == (u32)ref->generation);
}

bool sg_ledger_keeps(const struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_ledger *l = vol->ledger;
	bool kept = false;
	u32 i;

	sg_spin_lock(&l->spin);
	for (i = l->bucket[ref->ino % BUCKETS]; i != NONE && !kept; i = ledger_entry(l, i)->next)
		kept = keeps(ledger_entry(l, i), ref);
	sg_spin_unlock(&l->spin);
	return kept || sg_nameless_kept(vol, ref);
}

void sg_ledger_let_go(struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_ledger *l = vol->ledger;
	u32 i;

	sg_spin_lock(&l->spin);
	for (i = l->bucket[ref->ino % BUCKETS]; i != NONE; i = ledger_entry(l, i)->next)
		if (keeps(ledger_entry(l, i), ref))
			ledger_entry(l, i)->kept = 0;
	sg_spin_unlock(&l->spin);
	sg_nameless_drop(vol, ref, NULL);
}

void sg_ledger_clear(struct sg_tx *tx, unsigned int i)
{
	SG_ASSERT(tx->npaid < SG_ARRAY_SIZE(tx->reclaimed));
	tx->reclaimed[tx->npaid++] = i;
	sg_tx_set(tx, ledger_entry_off(tx->vol->ledger, i), 0);
}

/*
 * Clears the deferred inode @word in entry @i, unless another thread is about to do so. The inode's
 * lock alone does not prevent this, because a hostile member can hand the lock to two threads at
 * the same time, or remove the inode.
 */
void sg_ledger_clear_inode(struct sg_tx *tx, u32 i, u64 word)
{
	struct sg_ledger *l = tx->vol->ledger;
	struct entry *e = ledger_entry(l, i);
	bool ours;

	sg_spin_lock(&l->spin);
	ours = e->state == DEFERRED && e->word == word;
	if (ours)
		e->state = RECLAIMING;
	sg_spin_unlock(&l->spin);
	if (ours)
		sg_ledger_clear(tx, i);
}

void sg_disown_inode(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 word;
	u32 i;

	if (sg_has_reason(sg_tx_iget(tx, ref, mode), sg_tx_iget(tx, ref, genflags)))
		return;
	i = find_inode(tx->vol->ledger, ref->ino, &word);
	if (i != NONE)
		sg_ledger_clear_inode(tx, i, word);
}

/* --- commit and abort ----------------------------------------------------------------------- */

void sg_ledger_commit(struct sg_tx *tx)
{
	struct sg_ledger *l = tx->vol->ledger;
	unsigned int k;

	if (!tx->ndeferred && !tx->npaid)
		return;
	sg_spin_lock(&l->spin);
	for (k = 0; k < tx->ndeferred; k++) {
		struct entry *e = ledger_entry(l, tx->deferred[k]);

		e->state = DEFERRED;
		if (ledger_is_inode(e->word))
			continue;
		/* a part of a table that is being freed: no thread can read the table any more */
		e->kept = tx->split ? l->quiesced : ++l->serial;
		ledger_adjust(&l->reclaimable, 1);
	}
	for (k = 0; k < tx->npaid; k++) {
		if (!ledger_is_inode(ledger_entry(l, tx->reclaimed[k])->word)) {
			ledger_adjust(&l->reclaimable, -1);
			ledger_adjust(&l->reclaiming, -1);
		}
		entry_free(l, tx->reclaimed[k]);
	}
	sg_spin_unlock(&l->spin);
}

void sg_ledger_abort(struct sg_tx *tx)
{
	struct sg_ledger *l = tx->vol->ledger;
	unsigned int k;

	if (tx->kept)
		sg_nameless_drop(tx->vol, NULL, tx->kept);
	if (!tx->ndeferred && !tx->npaid)
		return;
	sg_spin_lock(&l->spin);
	for (k = 0; k < tx->ndeferred; k++)
		entry_free(l, tx->deferred[k]);
	/* reclaim itself puts back the entries of pages that it has picked (put_back()) */
	for (k = 0; k < tx->npaid; k++)
		if (ledger_is_inode(ledger_entry(l, tx->reclaimed[k])->word))
			ledger_entry(l, tx->reclaimed[k])->state = DEFERRED;
	sg_spin_unlock(&l->spin);
}

