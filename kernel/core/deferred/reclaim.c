// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim (D7): deferred frees of pages become free pages when no system can read them any more
 * (docs/protocol.md, section 4).
 *
 * A paused system may have a chunk locked. The pages of that chunk remain deferred, and do not
 * delay others. Reclaim sets their entry aside until the call ends, or makes a separate entry for
 * them.
 */
#include "journal/ledger_priv.h"

#define BATCH	64	/* number of entries picked at a time */
#define BUSY	1	/* not reclaimed, because a chunk is locked; the entry remains RECLAIMING */

static bool begin_growing(struct sg_ledger *l)
{
	bool ok;

	sg_spin_lock(&l->spin);
	ok = !l->growing && l->pages < SG_LEDGER_PAGES;
	if (ok)
		l->growing = true;
	sg_spin_unlock(&l->spin);
	return ok;
}

/*
 * Adds a page to the chain in the volume. The function first makes the page empty and durable, then
 * names it in the chain, and only then uses it. If the previous growth waited in vain for a chunk
 * that is still locked, this growth does not wait. Otherwise each transaction would wait, one after
 * another.
 */
static int add_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page)
{
	struct sg_tx *tx = sg_tx_begin_reclaimer(vol);
	u64 off;
	int err;

	tx->hasty = l->room_in && sg_is_locked(vol, l->room_in);
	if (!sg_take_page(tx, SG_USE_META, &off)) {
		sg_fresh_zero(vol, off, SG_PAGE);
		sg_tx_set(tx, l->page[l->pages - 1]->off, off);
	}
	sg_store64(&l->room_in, tx->room_in);
	err = sg_tx_commit(tx);
	if (!err)
		sg_ledger_adopt_page(vol, l, page, off);
	return err;
}

/*
 * Adds a page to the chain. Memory for its mirror is allocated first. If a page were in the chain
 * but not in the mirror, the next growth would replace the page's name in the chain, and the page
 * would be lost.
 */
int sg_ledger_grow(struct sg_vol *vol)
{
	struct sg_ledger *l = vol->ledger;
	struct ledger_page *page;
	int err;

	if (!begin_growing(l))
		return -ENOSPC;
	page = sg_alloc(sizeof(*page));
	err = page ? add_page(vol, l, page) : -ENOMEM;
	if (err)
		sg_free(page);
	sg_spin_lock(&l->spin);
	l->growing = false;
	sg_spin_unlock(&l->spin);
	return err;
}

/**
 * struct pick - deferred frees that are being reclaimed
 * @unread: no thread of any system can still read the pages of any of them. Otherwise a system that
 * is alone must quiesce first.
 * @serial: sg_ledger.serial when they were picked
 */
struct pick {
	u32 index[BATCH];
	u64 serial;
	unsigned int n;
	bool unread;
};

/**
 * struct cursor - a place in the ledger's mirror
 * @i: number of the entry @e; @left: entries from @e to the end of its page
 */
struct cursor {
	struct entry *e;
	unsigned int i, left;
};

static void cursor_set(struct cursor *c, const struct sg_ledger *l, unsigned int i)
{
	c->i = i;
	c->e = ledger_entry(l, i);
	c->left = PER_PAGE - i % PER_PAGE;
}

/* Moves to the next entry; after the last of @n entries, to the first one. */
static void cursor_next(struct cursor *c, const struct sg_ledger *l, unsigned int n)
{
	if (--c->left) {
		c->i++;
		c->e++;
	} else {
		cursor_set(c, l, c->i + 1 < n ? c->i + 1 : 0);
	}
}

static void pick(struct sg_ledger *l, struct pick *p, const struct cursor *c, bool unread)
{
	p->unread &= unread;
	c->e->state = RECLAIMING;
	ledger_adjust(&l->reclaiming, 1);
	p->index[p->n++] = c->i;
}

/*
 * Picks deferred frees and marks them as being reclaimed. Flat tables come first. A deep table is
 * picked alone, and only when no flatter table remains. Its reclaim needs ledger entries for child
 * tables, and earlier reclaims have freed such entries. The search ends when it has seen all
 * entries that may be picked. @any: also picks entries whose pages threads of this system may still
 * read.
 */
static void pick_some(struct sg_vol *vol, struct pick *p, unsigned int max, bool any)
{
	struct sg_ledger *l = vol->ledger;
	u64 horizon = sg_epoch_horizon(vol), left;
	unsigned int n = ledger_capacity(l), k;
	struct cursor c, deep = {};
	bool unread, deep_unread = false;

	p->n = 0;
	p->unread = true;
	sg_spin_lock(&l->spin);
	p->serial = l->serial;
	left = l->reclaimable - l->reclaiming;
	cursor_set(&c, l, l->hunt);
	for (k = 0; k < n && left && p->n < max; k++, cursor_next(&c, l, n)) {
		unsigned int kind;

		if (c.e->state != DEFERRED)
			continue;
		kind = SG_LEDGER_KIND(c.e->word);
		if (kind == SG_LEDGER_INODE)
			continue;
		left--;
		unread = ledger_is_quiesced(l, c.e) ||
			 sg_epoch_over(vol, horizon, SG_LEDGER_EPOCH(c.e->word));
		if (!any && !unread)
			continue;
		if (sg_is_lost(vol, ledger_entry_off(l, c.i))) {
			c.e->state = LOST;
			ledger_adjust(&l->reclaimable, -1);
		} else if (kind <= 1 || kind == SG_LEDGER_XATTR) {
			pick(l, p, &c, unread);
		} else if (!deep.e) {
			deep = c;
			deep_unread = unread;
		}
	}
	if (!p->n && deep.e) {
		pick(l, p, &deep, deep_unread);
		c = deep;
	}
	l->hunt = c.i;
	sg_spin_unlock(&l->spin);
}

static void put_back(struct sg_ledger *l, u32 i)
{
	sg_spin_lock(&l->spin);
	if (ledger_entry(l, i)->state == RECLAIMING) {
		ledger_entry(l, i)->state = DEFERRED;
		ledger_adjust(&l->reclaiming, -1);
	}
	sg_spin_unlock(&l->spin);
}

static void put_back_all(struct sg_ledger *l, const struct pick *p)
{
	unsigned int k;

	for (k = 0; k < p->n; k++)
		put_back(l, p->index[k]);
}

/*
 * Sets an entry aside: no thread picks it again until sg_reclaim() ends. @aside: the last such
 * entry.
 */
static void set_aside(struct sg_ledger *l, u32 i, u32 *aside)
{
	ledger_entry(l, i)->next = *aside;
	*aside = i;
}

/* Puts back the entries that were set aside, and returns their number. */
static unsigned int put_back_aside(struct sg_ledger *l, u32 i)
{
	unsigned int n;

	for (n = 0; i != NONE; n++) {
		u32 before = ledger_entry(l, i)->next;

		put_back(l, i);
		i = before;
	}
	return n;
}

/*
 * Waits for the chunk of @lock, because its holder is usually about to commit. If the wait is in
 * vain, the holder may be paused, and no thread waits again until the chunk is unlocked. Returns
 * true if the caller should try again.
 */
static bool reclaim_await(struct sg_vol *vol, u64 lock)
{
	struct sg_ledger *l = vol->ledger;
	u64 known = sg_load64(&l->busy);
	int err;

	if (known && sg_is_locked(vol, known))
		return false;
	err = sg_lock_brief(vol, lock);
	if (!err)
		sg_unlock(vol, lock);
	sg_store64(&l->busy, err == -EBUSY ? lock : 0);
	return !err;
}

/*
 * Clears an entry whose reclaim fails because of damage, so that fsck finds its pages. If even this
 * fails, the pages remain deferred.
 */
static int write_off(struct sg_vol *vol, u32 i)
{
	struct sg_tx *tx = sg_tx_begin_reclaimer(vol);
	int err;

	sg_ledger_clear(tx, i);
	err = sg_tx_commit(tx);
	if (err)
		put_back(vol->ledger, i);
	return err;
}

/* Reclaims a part of a table or index in one transaction, which also records the position. */
static int reclaim_step(struct sg_tx *tx, u32 i, u64 word, bool *done)
{
	unsigned int kind = SG_LEDGER_KIND(word), index = SG_LEDGER_COUNT(word);
	u64 off = SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT;
	int err;

	if (!sg_data_page(tx->vol, off))
		err = sg_damaged(tx->vol, 0, off, "ledger names a page out of bounds");
	else if (kind == SG_LEDGER_XATTR)
		err = sg_xattr_reclaim(tx, off, done);
	else if (kind == SG_LEDGER_DIR)
		err = sg_dir_reclaim(tx, off, &index);
	else
		err = sg_table_reclaim(tx, off, kind, &index);
	if (err)
		return err;
	if (kind != SG_LEDGER_XATTR)
		*done = index >= SG_TABLE_ENTRIES;
	if (*done)
		sg_ledger_clear(tx, i);
	else if (kind != SG_LEDGER_XATTR)		/* the blob's head records the position */
		sg_tx_set(tx, ledger_entry_off(tx->vol->ledger, i),
			  SG_LEDGER_ENTRY(kind, SG_LEDGER_VALUE(word), index,
					  SG_LEDGER_EPOCH(word)));
	return 0;
}

/*
 * Reclaims a tree in steps. Each step makes progress, unless another system stores into the entry,
 * which ends the loop. Pages of a chunk that remains locked become a separate deferred free.
 */
static int reclaim_tree(struct sg_vol *vol, u32 i)
{
	u64 deferred = ledger_entry(vol->ledger, i)->word, at = ledger_entry_off(vol->ledger, i);
	bool done = false, pass_over = false;
	unsigned int turn = 0;
	u64 busy = 0;
	int err = 0;

	while (!done && !err) {
		struct sg_tx *tx = sg_tx_begin_reclaimer(vol);
		u64 word = sg_get(vol, at);

		sg_tx_plain(tx);
		tx->pass_over = pass_over;
		tx->split = deferred;
		/* only the position and the epoch may differ from the mirror */
		if ((word ^ deferred) & SG_LEDGER_ENTRY(7, SG_LEDGER_VALUE(~0ULL), 0, 0))
			err = sg_damaged(vol, 0, at, "ledger entry was changed");
		else
			err = reclaim_step(tx, i, word, &done);
		busy = tx->busy;
		if (err)
			sg_tx_abort(tx);
		else
			err = sg_tx_commit(tx);
		if (err == -EBUSY && busy && !pass_over) {
			pass_over = !reclaim_await(vol, busy);
			err = 0;
		}
		if (!err && !done && ++turn > 2 * SG_TABLE_ENTRIES)
			err = -EAGAIN;
	}
	if (err == -EUCLEAN)
		return write_off(vol, i);
	if (err == -EBUSY && busy)
		return BUSY;
	if (err)
		put_back(vol->ledger, i);
	return err;
}

/*
 * Reclaims as many runs in one transaction as it can lock chunks for. *reclaimed: their number.
 * Returns BUSY if it reclaimed no run, because the chunk of the first one is locked; *busy is then
 * that lock.
 */
static int try_runs(struct sg_vol *vol, const struct pick *p, unsigned int from,
		    unsigned int *reclaimed, u64 *busy)
{
	struct sg_ledger *l = vol->ledger;
	struct sg_tx *tx = sg_tx_begin_reclaimer(vol);
	unsigned int k;
	int err;

	sg_tx_plain(tx);
	for (k = from; k < p->n; k++) {
		u64 word = ledger_entry(l, p->index[k])->word;
		u64 at = ledger_entry_off(l, p->index[k]);

		if (SG_LEDGER_KIND(word) != SG_LEDGER_RUN || tx->n > SG_AREA_WORDS / 2)
			break;
		/*
		 * otherwise another system has freed or reused these pages; the mirror may have a
		 * later epoch
		 */
		if (ledger_of_epoch(sg_get(vol, at), 0) != ledger_of_epoch(word, 0)) {
			sg_tx_fail(tx, sg_damaged(vol, 0, at, "ledger entry was changed"));
			break;
		}
		if (!sg_give_run(tx, SG_LEDGER_VALUE(word) << SG_PAGE_SHIFT,
				 SG_LEDGER_COUNT(word) + 1))
			break;
		sg_ledger_clear(tx, p->index[k]);
	}
	*reclaimed = k - from;
	*busy = tx->busy;
	err = sg_tx_commit(tx);
	if (err)
		*reclaimed = 0;
	else if (!*reclaimed)
		err = BUSY;
	return err;
}

static int reclaim_runs(struct sg_vol *vol, const struct pick *p, unsigned int from,
			unsigned int *reclaimed)
{
	u64 busy;
	int err = try_runs(vol, p, from, reclaimed, &busy);

	if (err == BUSY && reclaim_await(vol, busy))
		err = try_runs(vol, p, from, reclaimed, &busy);
	return err;
}

/* Reclaims one entry in a separate transaction, because the entry may be damaged. */
static int reclaim_single(struct sg_vol *vol, u32 i)
{
	const struct pick one = { .index = { i }, .n = 1 };
	unsigned int reclaimed;
	int err = reclaim_runs(vol, &one, 0, &reclaimed);

	if (err == -EUCLEAN)
		return write_off(vol, i);
	if (err < 0)
		put_back(vol->ledger, i);
	return err;
}

static int reclaim_picked(struct sg_vol *vol, const struct pick *p, u32 *aside)
{
	unsigned int k = 0, reclaimed;
	int err = 0;

	while (k < p->n && err >= 0) {
		u32 i = p->index[k];

		reclaimed = 1;
		if (SG_LEDGER_KIND(ledger_entry(vol->ledger, i)->word) != SG_LEDGER_RUN)
			err = reclaim_tree(vol, i);
		else
			err = reclaim_runs(vol, p, k, &reclaimed);
		if (err == -EUCLEAN && !reclaimed) {	/* one of several runs */
			err = reclaim_single(vol, i);
			reclaimed = 1;
		}
		if (err == BUSY) {
			set_aside(vol->ledger, i, aside);
			reclaimed = 1;
		}
		k += reclaimed;
	}
	for (; k < p->n; k++)
		put_back(vol->ledger, p->index[k]);
	return err < 0 ? err : 0;
}

/*
 * Makes sure that no thread can read pages of the picked entries. False: another system has joined,
 * so entries must wait for epochs. One quiesce is enough for all entries that were deferred before
 * it. It checks again whether this system is alone, after the entries were picked: a system that
 * joins later cannot see their pages.
 */
static bool reclaim_quiesce(struct sg_vol *vol, const struct pick *p)
{
	struct sg_ledger *l = vol->ledger;

	if (p->unread)
		return true;
	sg_quiesce(vol);
	if (!sg_alone(vol))
		return false;
	sg_spin_lock(&l->spin);
	if (p->serial > l->quiesced)
		l->quiesced = p->serial;
	sg_spin_unlock(&l->spin);
	return true;
}

/*
 * Reclaims up to @budget deferred frees. A system that is alone waits only for itself; otherwise it
 * reclaims only what all systems have acknowledged. @waits: a system that is alone quiesces, if it
 * must.
 */
static int reclaim(struct sg_vol *vol, unsigned int budget, bool waits)
{
	struct sg_ledger *l = vol->ledger;
	int err = sg_may_write(vol);
	u32 aside = NONE;
	u64 behind;

	if (err)
		return err;
	/* a call that does not wait may have found nothing, but this one can */
	if (waits && sg_load64(&l->stuck) && sg_alone(vol))
		sg_store64(&l->stuck, 0);
	behind = sg_ledger_behind(vol);
	while (!err && budget && sg_load64(&l->reclaimable) > sg_load64(&l->reclaiming) &&
	       !sg_settle_ends(vol)) {
		u64 stuck = sg_epoch_horizon(vol) + 1;
		bool any = waits && sg_alone(vol);
		struct pick p;

		sg_epoch_acknowledge(vol);	/* the reclaim of many deferred frees takes long */
		pick_some(vol, &p, SG_MIN(budget, (unsigned int)BATCH), any);
		if (!p.n) {
			if (!any) {
				sg_store64(&l->stuck, stuck);
				sg_epoch_push(vol);
			}
			behind = 0;	/* all other entries have been tried now */
			break;
		}
		if (!reclaim_quiesce(vol, &p)) {
			put_back_all(l, &p);
			continue;
		}
		budget -= p.n;
		err = reclaim_picked(vol, &p, &aside);
	}
	behind += put_back_aside(l, aside);
	sg_store64(&l->behind, SG_MIN(behind, sg_load64(&l->reclaimable)));
	return err ?: (int)sg_load64(&l->reclaimable);
}

int sg_reclaim(struct sg_vol *vol, unsigned int budget)
{
	return reclaim(vol, budget, true);
}

/*
 * A transaction that begins does not wait for readers, unless the ledger is nearly full. Epochs
 * advance meanwhile, also in a system that is alone. So the transactions of a thread that removes
 * many files share a wait, or need none.
 */
int sg_reclaim_ripe(struct sg_vol *vol, unsigned int budget)
{
	return reclaim(vol, budget, sg_ledger_is_full(vol));
}
