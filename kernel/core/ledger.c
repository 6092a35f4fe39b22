// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger (D7): what this slot has taken out of use and not yet made free.
 *
 * A transaction that takes pages out of a file, directory or xattr writes a debt for them; a later
 * one, after everybody who might still look at them has been waited for (quiesce), clears the debt
 * and frees them. Debts for inodes last as long as their reason, which users decide: so the ledger
 * takes some of them, and the rest go on lists (owed.c), which need no room. The ledger's words
 * live in a chain of pages in the volume; here is a mirror of them with a state for each.
 */
#include "internal.h"

#define PER_PAGE	(SG_LEDGER_WORDS - 1)
#define TIGHT		64	/* payable debts that are worth a payment */
#define BATCH		64	/* debts picked at a time */
#define INODES_MAX	2048	/* owed here, not on a list: each is looked at every second */
#define ROOM_KEPT	(SG_AREA_WORDS / 4)	/* entries that inodes leave to pages */

enum state { FREE, PENDING, OWED, PAYING };
#define NONE	(~0u)
#define BUCKETS	256

struct entry {
	u64 word;
	u16 state;
	u32 kept;	/* owing an inode: we use its file of this generation, or 0: we do not */
	u32 next;	/* free: in the list of free ones; owing an inode: in its bucket */
};

struct ledger_page {
	u64 off;
	struct entry entry[PER_PAGE];
};

/* Pages of the mirror never move; counters are words because some readers take no lock. */
struct sg_ledger {
	struct sg_spin spin;
	u64 pages, nfree, payable, paying;
	u64 inodes;	/* entries that owe one */
	u64 stuck;	/* horizon + 1 at which nothing could be paid; 0: something may be */
	u32 first_free;
	unsigned int hunt;	/* where the last search for something to pay ended */
	u32 bucket[BUCKETS];	/* entries that owe inodes, by number */
	bool growing;
	struct ledger_page *page[SG_LEDGER_PAGES];
};

static void adjust(u64 *counter, s64 by)
{
	sg_store64(counter, sg_load64(counter) + (u64)by);
}

static unsigned int capacity(const struct sg_ledger *l)
{
	return (unsigned int)sg_load64(&l->pages) * PER_PAGE;
}

static struct entry *entry(const struct sg_ledger *l, unsigned int i)
{
	return &l->page[i / PER_PAGE]->entry[i % PER_PAGE];
}

static u64 entry_off(const struct sg_ledger *l, unsigned int i)
{
	return l->page[i / PER_PAGE]->off + (1 + i % PER_PAGE) * 8;
}

static bool is_inode(u64 word)
{
	return SG_DEBT_KIND(word) == SG_DEBT_INODE;
}

/* --- the mirror ----------------------------------------------------------------------------- */

static u32 *bucket(struct sg_ledger *l, u64 word)
{
	return &l->bucket[SG_DEBT_VALUE(word) % BUCKETS];
}

static void entry_fill(struct sg_ledger *l, u32 i, u64 word, u32 state, u32 kept)
{
	struct entry *e = entry(l, i);

	e->word = word;
	e->state = (u16)state;
	e->kept = kept;
	if (is_inode(word)) {
		e->next = *bucket(l, word);
		*bucket(l, word) = i;
		l->inodes++;
	}
}

static void entry_free(struct sg_ledger *l, u32 i)
{
	struct entry *e = entry(l, i);

	if (is_inode(e->word)) {
		u32 *at = bucket(l, e->word);

		while (*at != i)
			at = &entry(l, *at)->next;
		*at = e->next;
		l->inodes--;
	}
	e->word = 0;
	e->state = FREE;
	e->next = l->first_free;
	l->first_free = i;
	adjust(&l->nfree, 1);
}

static u64 of_epoch(u64 word, u64 epoch)
{
	return SG_DEBT(SG_DEBT_KIND(word), SG_DEBT_VALUE(word), SG_DEBT_COUNT(word), epoch);
}

/* Adds a page of the chain with what it holds, to be kept in @page. */
static void adopt_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page, u64 off)
{
	unsigned int first = capacity(l), i;

	page->off = off;
	sg_spin_lock(&l->spin);
	l->page[first / PER_PAGE] = page;
	for (i = first + PER_PAGE; i-- > first;) {
		u64 word = sg_get(vol, entry_off(l, i));

		if (!word) {
			entry_free(l, i);
			continue;
		}
		/* replay may just have made it true: it is of today (epoch.c) */
		entry_fill(l, i, of_epoch(word, sg_get(vol, SG_HOT(epoch))), OWED, 0);
		if (!is_inode(word))
			adjust(&l->payable, 1);
	}
	adjust(&l->pages, 1);
	sg_spin_unlock(&l->spin);
}

/* What follows this page in the chain: a page that has not been there yet, or 0. */
static u64 next_page(struct sg_vol *vol, const struct sg_ledger *l, u64 off)
{
	unsigned int i;

	off = sg_get(vol, off);
	if (off && !sg_data_page(vol, off)) {
		sg_damaged(vol, 0, off, "ledger chain leaves the volume");
		return 0;
	}
	for (i = 0; off && i < l->pages; i++) {
		if (l->page[i]->off == off) {
			sg_damaged(vol, 0, off, "ledger chain comes back to a page of its own");
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
		adopt_page(vol, l, page, off);
		off = next_page(vol, l, off);
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

u64 sg_ledger_payable(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->payable);
}

bool sg_ledger_paying(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->paying);
}

bool sg_ledger_is_stuck(const struct sg_vol *vol)
{
	return sg_load64(&vol->ledger->stuck);
}

bool sg_ledger_is_tight(const struct sg_vol *vol)
{
	const struct sg_ledger *l = vol->ledger;

	return (sg_load64(&l->payable) >= TIGHT + sg_load64(&l->paying) &&
		!sg_load64(&l->stuck)) || sg_ledger_room(vol) < SG_AREA_WORDS / 2;
}

bool sg_ledger_waits(const struct sg_vol *vol)
{
	struct sg_ledger *l = vol->ledger;
	u64 stuck = sg_load64(&l->stuck);

	if (stuck && (stuck != sg_epoch_horizon(vol) + 1 || sg_alone(vol)))
		sg_store64(&l->stuck, 0);
	return sg_load64(&l->payable) != 0;
}

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

/* Empty and durable first, then named, then used. */
static int add_page(struct sg_vol *vol, struct sg_ledger *l, struct ledger_page *page)
{
	struct sg_tx *tx = sg_tx_begin_payer(vol);
	u64 off;
	int err;

	if (!sg_take_page(tx, SG_USE_META, &off)) {
		sg_fresh_zero(vol, off, SG_PAGE);
		sg_tx_set(tx, l->page[l->pages - 1]->off, off);
	}
	err = sg_tx_commit(tx);
	if (!err)
		adopt_page(vol, l, page, off);
	return err;
}

/*
 * A further page for the chain. Memory for its mirror comes first: a page that is named and not
 * known to us would be lost with the next one, which is named in its place.
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

/* --- owing ---------------------------------------------------------------------------------- */

static u32 entry_take(struct sg_ledger *l, u64 word, u32 kept, unsigned int inodes)
{
	u32 i;

	sg_spin_lock(&l->spin);
	i = l->first_free;
	if (is_inode(word) && (l->inodes >= inodes || l->nfree <= ROOM_KEPT))
		i = NONE;
	if (i != NONE) {
		l->first_free = entry(l, i)->next;
		adjust(&l->nfree, -1);
		entry_fill(l, i, word, PENDING, kept);
	}
	sg_spin_unlock(&l->spin);
	return i;
}

/* False: the ledger has no room for it. */
static bool owe(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count, u32 kept)
{
	struct sg_ledger *l = tx->vol->ledger;
	u64 word = SG_DEBT(kind, value, count, sg_get(tx->vol, SG_HOT(epoch)));
	u32 i;

	if (tx->err)
		return true;
	i = tx->nowed < SG_ARRAY_SIZE(tx->owed) ?
		entry_take(l, word, kept, tx->vol->owed_on_lists ? 0 : INODES_MAX) : NONE;
	if (i == NONE)
		return false;
	tx->owed[tx->nowed++] = i;
	sg_tx_set(tx, entry_off(l, i), word);
	return true;
}

void sg_owe(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count)
{
	if (!owe(tx, kind, value, count, 0))
		sg_tx_fail(tx, -ENOSPC);
}

void sg_owe_run(struct sg_tx *tx, u64 off, u64 pages)
{
	while (pages) {
		u64 left = SG_CHUNK_PAGES - ((off >> SG_PAGE_SHIFT) & (SG_CHUNK_PAGES - 1));
		u64 n = SG_MIN(pages, left);

		sg_owe(tx, SG_DEBT_RUN, off >> SG_PAGE_SHIFT, (unsigned int)(n - 1));
		off += n * SG_PAGE;
		pages -= n;
	}
}

/*
 * The entry that owes inode @ino, and its word, or NONE. Not one whose transaction is under way:
 * who takes debts over has no inode locked.
 */
static u32 find_inode(struct sg_ledger *l, u64 ino, u64 *word)
{
	u32 i;

	sg_spin_lock(&l->spin);
	i = l->bucket[ino % BUCKETS];
	while (i != NONE && (entry(l, i)->state != OWED || SG_DEBT_VALUE(entry(l, i)->word) != ino))
		i = entry(l, i)->next;
	*word = i != NONE ? entry(l, i)->word : 0;
	sg_spin_unlock(&l->spin);
	return i;
}

bool sg_ledger_owes(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 word;

	return find_inode(vol->ledger, ref->ino, &word) != NONE;
}

void sg_owe_inode(struct sg_tx *tx, const struct sg_iref *ref)
{
	/* as it stood before this transaction: with a reason, the debt exists */
	if (sg_has_reason(sg_iget(tx->vol, ref, mode), sg_iget(tx->vol, ref, genflags)) &&
	    (sg_is_listed(tx->vol, ref) || sg_ledger_owes(tx->vol, ref)))
		return;
	if (!owe(tx, SG_DEBT_INODE, ref->ino, 0, 0))
		sg_owed_add(tx, ref);
}

void sg_owe_kept(struct sg_tx *tx, const struct sg_iref *ref)
{
	if (owe(tx, SG_DEBT_INODE, ref->ino, 0, (u32)ref->generation))
		return;
	sg_nameless_keep(tx, ref);
	sg_owed_add(tx, ref);
}

/* The record may be another file's by now, which is kept for itself. */
static bool keeps(const struct entry *e, const struct sg_iref *ref)
{
	return e->kept && SG_DEBT_VALUE(e->word) == ref->ino &&
	       (!ref->generation || e->kept == (u32)ref->generation);
}

bool sg_ledger_keeps(const struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_ledger *l = vol->ledger;
	bool kept = false;
	u32 i;

	sg_spin_lock(&l->spin);
	for (i = l->bucket[ref->ino % BUCKETS]; i != NONE && !kept; i = entry(l, i)->next)
		kept = keeps(entry(l, i), ref);
	sg_spin_unlock(&l->spin);
	return kept || sg_nameless_kept(vol, ref);
}

void sg_ledger_let_go(struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_ledger *l = vol->ledger;
	u32 i;

	sg_spin_lock(&l->spin);
	for (i = l->bucket[ref->ino % BUCKETS]; i != NONE; i = entry(l, i)->next)
		if (keeps(entry(l, i), ref))
			entry(l, i)->kept = 0;
	sg_spin_unlock(&l->spin);
	sg_nameless_drop(vol, ref, NULL);
}

static void pay_entry(struct sg_tx *tx, unsigned int i)
{
	SG_ASSERT(tx->npaid < SG_ARRAY_SIZE(tx->paid));
	tx->paid[tx->npaid++] = i;
	sg_tx_set(tx, entry_off(tx->vol->ledger, i), 0);
}

/*
 * Pays the debt of inode @word in entry @i, unless somebody else is about to. The inode's lock
 * alone does not tell: who stores what he likes gives it to two at once, or takes the inode away.
 */
static void pay_inode(struct sg_tx *tx, u32 i, u64 word)
{
	struct sg_ledger *l = tx->vol->ledger;
	struct entry *e = entry(l, i);
	bool ours;

	sg_spin_lock(&l->spin);
	ours = e->state == OWED && e->word == word;
	if (ours)
		e->state = PAYING;
	sg_spin_unlock(&l->spin);
	if (ours)
		pay_entry(tx, i);
}

void sg_disown_inode(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 word;
	u32 i;

	if (sg_has_reason(sg_tx_iget(tx, ref, mode), sg_tx_iget(tx, ref, genflags)))
		return;
	i = find_inode(tx->vol->ledger, ref->ino, &word);
	if (i != NONE)
		pay_inode(tx, i, word);
}

/* --- commit and abort ----------------------------------------------------------------------- */

void sg_ledger_commit(struct sg_tx *tx)
{
	struct sg_ledger *l = tx->vol->ledger;
	unsigned int k;

	if (!tx->nowed && !tx->npaid)
		return;
	sg_spin_lock(&l->spin);
	for (k = 0; k < tx->nowed; k++) {
		struct entry *e = entry(l, tx->owed[k]);

		e->state = OWED;
		if (!is_inode(e->word))
			adjust(&l->payable, 1);
	}
	for (k = 0; k < tx->npaid; k++) {
		if (!is_inode(entry(l, tx->paid[k])->word)) {
			adjust(&l->payable, -1);
			adjust(&l->paying, -1);
		}
		entry_free(l, tx->paid[k]);
	}
	sg_spin_unlock(&l->spin);
}

void sg_ledger_abort(struct sg_tx *tx)
{
	struct sg_ledger *l = tx->vol->ledger;
	unsigned int k;

	if (tx->kept)
		sg_nameless_drop(tx->vol, NULL, tx->kept);
	if (!tx->nowed && !tx->npaid)
		return;
	sg_spin_lock(&l->spin);
	for (k = 0; k < tx->nowed; k++)
		entry_free(l, tx->owed[k]);
	for (k = 0; k < tx->npaid; k++)	/* of the others, who picked them thinks (put_back()) */
		if (is_inode(entry(l, tx->paid[k])->word))
			entry(l, tx->paid[k])->state = OWED;
	sg_spin_unlock(&l->spin);
}

/* --- paying --------------------------------------------------------------------------------- */

struct pick {
	u32 index[BATCH];
	unsigned int n;
};

/*
 * Picks debts and marks them as being paid. Deep tables wait while there is anything flatter: so
 * a payment that needs entries for child tables finds that the others have been cleared.
 */
static void pick_some(struct sg_vol *vol, struct pick *p, unsigned int max, bool alone)
{
	struct sg_ledger *l = vol->ledger;
	u64 horizon = sg_epoch_horizon(vol);
	unsigned int n = capacity(l), k, deep;

	p->n = 0;
	sg_spin_lock(&l->spin);
	for (deep = 0; deep < 2 && !p->n; deep++) {
		for (k = 0; k < n && p->n < max && l->payable > l->paying; k++) {
			unsigned int i = (l->hunt + k) % n;
			struct entry *e = entry(l, i);
			unsigned int kind = SG_DEBT_KIND(e->word);
			bool flat = kind <= 1 || kind == SG_DEBT_XATTR;

			if (e->state != OWED || kind == SG_DEBT_INODE || (!deep && !flat) ||
			    (!alone && !sg_epoch_over(vol, horizon, SG_DEBT_EPOCH(e->word))))
				continue;
			e->state = PAYING;
			adjust(&l->paying, 1);
			p->index[p->n++] = i;
			if (deep)
				break;
		}
		l->hunt = (l->hunt + k) % n;
	}
	sg_spin_unlock(&l->spin);
}

static void put_back(struct sg_ledger *l, u32 i)
{
	sg_spin_lock(&l->spin);
	if (entry(l, i)->state == PAYING) {
		entry(l, i)->state = OWED;
		adjust(&l->paying, -1);
	}
	sg_spin_unlock(&l->spin);
}

static void put_back_all(struct sg_ledger *l, const struct pick *p)
{
	unsigned int k;

	for (k = 0; k < p->n; k++)
		put_back(l, p->index[k]);
}

/* Damage is in the way: fsck finds these pages. If even that fails, they stay deferred. */
static int write_off(struct sg_vol *vol, u32 i)
{
	struct sg_tx *tx = sg_tx_begin_payer(vol);
	int err;

	pay_entry(tx, i);
	err = sg_tx_commit(tx);
	if (err)
		put_back(vol->ledger, i);
	return err;
}

/* A table or index: one transaction frees some of it, and notes how far it has come. */
static int pay_step(struct sg_tx *tx, u32 i, u64 word, bool *done)
{
	unsigned int kind = SG_DEBT_KIND(word), index = SG_DEBT_COUNT(word);
	u64 off = SG_DEBT_VALUE(word) << SG_PAGE_SHIFT;
	int err;

	if (!sg_data_page(tx->vol, off))
		err = sg_damaged(tx->vol, 0, off, "ledger names a page out of bounds");
	else if (kind == SG_DEBT_XATTR)
		err = sg_xattr_pay(tx, off, done);
	else if (kind == SG_DEBT_DIR)
		err = sg_dir_pay(tx, off, &index);
	else
		err = sg_table_pay(tx, off, kind, &index);
	if (err)
		return err;
	if (kind != SG_DEBT_XATTR)
		*done = index >= SG_TABLE_ENTRIES;
	if (*done)
		pay_entry(tx, i);
	else if (kind != SG_DEBT_XATTR)		/* whose head says it */
		sg_tx_set(tx, entry_off(tx->vol->ledger, i),
			  SG_DEBT(kind, SG_DEBT_VALUE(word), index, SG_DEBT_EPOCH(word)));
	return 0;
}

/* Each step gets further, unless somebody stores into the debt: then that is all for now. */
static int pay_tree(struct sg_vol *vol, u32 i)
{
	u64 owes = entry(vol->ledger, i)->word, at = entry_off(vol->ledger, i);
	unsigned int turn = 0;
	bool done = false;
	int err = 0;

	while (!done && !err) {
		struct sg_tx *tx = sg_tx_begin_payer(vol);
		u64 word = sg_get(vol, at);

		/* only how far it has come, and its epoch, may differ from our copy */
		if ((word ^ owes) & SG_DEBT(7, SG_DEBT_VALUE(~0ULL), 0, 0))
			err = sg_damaged(vol, 0, at, "ledger entry was changed");
		else
			err = pay_step(tx, i, word, &done);
		if (err)
			sg_tx_abort(tx);
		else
			err = sg_tx_commit(tx);
		if (!err && !done && ++turn > 2 * SG_TABLE_ENTRIES)
			err = -EAGAIN;
	}
	if (err == -EUCLEAN)
		return write_off(vol, i);
	if (err)
		put_back(vol->ledger, i);
	return err;
}

/* Runs, as many in one transaction as it can lock chunks for. Returns how many it took. */
static int pay_runs(struct sg_vol *vol, const struct pick *p, unsigned int from, unsigned int *paid)
{
	struct sg_ledger *l = vol->ledger;
	struct sg_tx *tx = sg_tx_begin_payer(vol);
	unsigned int k;
	int err;

	for (k = from; k < p->n; k++) {
		u64 word = entry(l, p->index[k])->word, at = entry_off(l, p->index[k]);

		if (SG_DEBT_KIND(word) != SG_DEBT_RUN || tx->n > SG_AREA_WORDS / 2)
			break;
		/* else others freed or reused these pages; our epoch may be later (adopt_page()) */
		if (of_epoch(sg_get(vol, at), 0) != of_epoch(word, 0)) {
			sg_tx_fail(tx, sg_damaged(vol, 0, at, "ledger entry was changed"));
			break;
		}
		if (!sg_give_run(tx, SG_DEBT_VALUE(word) << SG_PAGE_SHIFT, SG_DEBT_COUNT(word) + 1))
			break;
		pay_entry(tx, p->index[k]);
	}
	*paid = k - from;
	err = sg_tx_commit(tx);
	if (err)
		*paid = 0;
	return err;
}

static int pay_picked(struct sg_vol *vol, const struct pick *p)
{
	unsigned int k = 0, paid;
	int err = 0;

	while (k < p->n && !err) {
		if (SG_DEBT_KIND(entry(vol->ledger, p->index[k])->word) != SG_DEBT_RUN) {
			err = pay_tree(vol, p->index[k++]);
			continue;
		}
		err = pay_runs(vol, p, k, &paid);
		k += paid;
		if (err == -EUCLEAN) {	/* the first one is bad, or a later one: try each alone */
			struct pick one = { { p->index[k] }, 1 };

			err = pay_runs(vol, &one, 0, &paid);
			if (err == -EUCLEAN)
				err = write_off(vol, p->index[k]);
			else if (err)
				put_back(vol->ledger, p->index[k]);
			k++;
		}
	}
	for (; k < p->n; k++)
		put_back(vol->ledger, p->index[k]);
	return err;
}

/* Alone, a system waits for itself only. With others it reclaims what all have acknowledged. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget)
{
	struct sg_ledger *l = vol->ledger;
	int err = sg_may_write(vol);

	while (!err && budget && sg_load64(&l->payable) > sg_load64(&l->paying) &&
	       !sg_settle_ends(vol)) {
		u64 stuck = sg_epoch_horizon(vol) + 1;
		bool alone = sg_alone(vol);
		struct pick p;

		pick_some(vol, &p, SG_MIN(budget, (unsigned int)BATCH), alone);
		if (!p.n) {
			if (!alone) {
				sg_store64(&l->stuck, stuck);
				sg_epoch_push(vol);
			}
			break;
		}
		if (alone)
			sg_quiesce(vol);
		/* alone still, now that what is paid is known? who joins later sees none of it */
		if (alone && !sg_alone(vol)) {
			put_back_all(l, &p);
			continue;
		}
		budget -= p.n;
		err = pay_picked(vol, &p);
	}
	return err ?: (int)sg_load64(&l->payable);
}

/* --- recovery ------------------------------------------------------------------------------- */

bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot)
{
	u64 page = sg_ledger_off(vol, slot);
	unsigned int pages, i;

	for (pages = 0; page && pages < SG_LEDGER_PAGES; pages++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			if (sg_get(vol, page + i * 8))
				return false;
		page = sg_get(vol, page);	/* stays when all is paid */
		if (page && !sg_data_page(vol, page))
			return false;
	}
	return sg_owed_empty(vol, slot);
}

/*
 * Our ledger has no room for this inode. On a list it goes under its lock, which is only tried, as
 * an area's is held: false, it is busy, and stays owed where it is. What has no record is not owed.
 */
static bool take_inode_over(struct sg_tx *tx, u64 ino)
{
	struct sg_iref ref;
	int err = sg_iref(tx->vol, ino, &ref);

	if (err)
		return err == -ESTALE || err == -EUCLEAN;
	if (!sg_trylock(tx->vol, SG_IOFF(&ref, lock)))
		return false;
	sg_tx_keep_lock(tx, SG_IOFF(&ref, lock));
	sg_owed_add(tx, &ref);
	return true;
}

/* Moves a debt of another slot's ledger into ours. */
static int take_over(struct sg_vol *vol, u64 at)
{
	u64 word = sg_get(vol, at);
	struct sg_tx *tx;

	if (!word)	/* somebody has taken it away since it was looked at */
		return 0;
	tx = sg_tx_begin(vol);
	if (!owe(tx, SG_DEBT_KIND(word), SG_DEBT_VALUE(word), SG_DEBT_COUNT(word), 0)) {
		if (!is_inode(word)) {
			sg_tx_fail(tx, -ENOSPC);
		} else if (!take_inode_over(tx, SG_DEBT_VALUE(word))) {
			sg_tx_abort(tx);
			return 0;
		}
	}
	sg_tx_set(tx, at, 0);
	return sg_tx_commit(tx);
}

int sg_ledger_settle(struct sg_vol *vol, unsigned int slot)
{
	u64 page = sg_ledger_off(vol, slot);
	unsigned int pages, i;
	int err;

	for (pages = 0; page && pages < SG_LEDGER_PAGES; pages++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++) {
			if (!sg_get(vol, page + i * 8))
				continue;
			err = take_over(vol, page + i * 8);
			if (err)
				return err;
			sg_epoch_heed(vol);
			/* a hostile one may go on for long */
			if (vol->hurry || sg_settle_ends(vol))
				return -EBUSY;
		}
		sg_yield();
		page = sg_get(vol, page);
		if (page && !sg_data_page(vol, page)) {
			sg_damaged(vol, 0, page, "ledger chain leaves the volume");
			break;
		}
	}
	return sg_owed_take_over(vol, slot);
}

static bool still_has_reason(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_has_reason(sg_iget(vol, ref, mode), sg_iget(vol, ref, genflags));
}

/* The debt of an inode in entry @i, or 0. */
static u64 owed(struct sg_ledger *l, unsigned int i)
{
	u64 word = 0;

	sg_spin_lock(&l->spin);
	if (entry(l, i)->state == OWED && is_inode(entry(l, i)->word) && !entry(l, i)->kept)
		word = entry(l, i)->word;
	sg_spin_unlock(&l->spin);
	return word;
}

/* Owed twice, or for nothing: the reason is gone, or cannot be found out. */
static int strike(struct sg_vol *vol, unsigned int i, u64 word, bool whatever)
{
	struct sg_iref ref;
	bool there = !sg_iref(vol, SG_DEBT_VALUE(word), &ref);
	struct sg_tx *tx;
	int err = 0;

	if (there)
		err = sg_ilock(vol, &ref);
	if (err)
		return err;
	if (owed(vol->ledger, i) == word &&
	    (whatever || !there || !still_has_reason(vol, &ref))) {
		tx = sg_tx_begin(vol);
		pay_inode(tx, i, word);
		err = sg_tx_commit(tx);
	}
	if (there)
		sg_iunlock(vol, &ref);
	return err;
}

/* Somebody has it locked: he may be stopped, or wait for the very space that we are to pay. */
static bool is_busy(const struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref;

	return !sg_iref(vol, ino, &ref) && sg_is_locked(vol, SG_IOFF(&ref, lock));
}

static int settle_entry(struct sg_vol *vol, unsigned int i)
{
	u64 word = owed(vol->ledger, i);
	int err;

	if (!word || is_busy(vol, SG_DEBT_VALUE(word)))
		return 0;
	err = sg_inode_settle(vol, SG_DEBT_VALUE(word));
	if (sg_is_bad_memory(vol, err))		/* it stays owed; the others are not */
		return 0;
	if (err && err != -EUCLEAN && err != -ESTALE)
		return err;
	return strike(vol, i, word, err == -EUCLEAN);
}

/*
 * The inodes that our ledger owes: freed, or cut to size, unless somebody has them open, or locked;
 * then it is done the next time. In the order of the buckets' lists, so that each is the first of
 * its own, even when a hostile ledger fills only one.
 */
int sg_ledger_settle_inodes(struct sg_vol *vol)
{
	unsigned int page = (unsigned int)sg_load64(&vol->ledger->pages), i;
	int err = 0;

	while (!err && page--) {
		for (i = 0; !err && i < PER_PAGE && !sg_settle_ends(vol); i++)
			err = settle_entry(vol, page * PER_PAGE + i);
		sg_epoch_heed(vol);
		sg_yield();
	}
	return err ?: sg_owed_settle(vol);
}

bool sg_ledger_settle_left(struct sg_vol *vol)
{
	unsigned int i = capacity(vol->ledger);
	bool all = true;

	while (i--) {
		u64 word = owed(vol->ledger, i);

		if (word && sg_is_left(vol, SG_DEBT_VALUE(word)))
			all &= sg_inode_settle_left(vol, SG_DEBT_VALUE(word));
	}
	return sg_owed_settle_left(vol) && all;
}
