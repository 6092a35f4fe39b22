// SPDX-License-Identifier: GPL-2.0
/*
 * Taking over the deferred frees of a recovered slot, and settling inodes that this system's ledger
 * names.
 */
#include "journal/ledger_priv.h"

bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot)
{
	u64 page = sg_ledger_off(vol, slot);
	unsigned int pages, i;

	for (pages = 0; page && pages < SG_LEDGER_PAGES; pages++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			if (sg_get(vol, page + i * 8))
				return false;
		/* this page remains after all entries have been reclaimed */
		page = sg_get(vol, page);
		if (page && !sg_data_page(vol, page))
			return false;
	}
	return sg_deferred_empty(vol, slot);
}

/*
 * Puts an inode for which this system's ledger has no room on a list, under the inode's lock. The
 * function only tries the lock, because this thread holds an area's lock. It returns false if the
 * lock is busy; the inode then remains in the other ledger. It ignores an inode without a record.
 */
static bool take_inode_over(struct sg_tx *tx, u64 ino)
{
	struct sg_iref ref;
	int err = sg_iref(tx->vol, ino, &ref);

	if (err)
		return err == -ESTALE || err == -EUCLEAN;
	if (!sg_trylock(tx->vol, SG_IOFF(&ref, lock)))
		return false;
	sg_tx_keep_lock(tx, SG_IOFF(&ref, lock), NULL);
	sg_deferred_add(tx, &ref);
	return true;
}

/* Moves a deferred free from another slot's ledger to this system's ledger. */
static int take_over(struct sg_vol *vol, u64 at)
{
	u64 word = sg_get(vol, at);
	struct sg_tx *tx;

	if (!word)	/* another system has taken it since the load */
		return 0;
	tx = sg_tx_begin(vol);
	if (!sg_ledger_defer(tx, SG_LEDGER_KIND(word), SG_LEDGER_VALUE(word),
			     SG_LEDGER_COUNT(word), 0)) {
		if (!ledger_is_inode(word)) {
			sg_tx_fail(tx, -ENOSPC);
		} else if (!take_inode_over(tx, SG_LEDGER_VALUE(word))) {
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
			sg_epoch_acknowledge(vol);
			/* a hostile ledger may make this loop long */
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
	return sg_deferred_take_over(vol, slot);
}

static bool still_has_reason(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_has_reason(sg_iget(vol, ref, mode), sg_iget(vol, ref, genflags));
}

/* Returns the word of entry @i if it names an inode, otherwise 0. */
static u64 ledger_settle_entry(struct sg_ledger *l, unsigned int i)
{
	const struct entry *e = ledger_entry(l, i);
	u64 word = 0;

	sg_spin_lock(&l->spin);
	if (e->state == DEFERRED && ledger_is_inode(e->word) && !e->kept)
		word = e->word;
	sg_spin_unlock(&l->spin);
	return word;
}

/*
 * Clears entry @i, because its inode is deferred twice, has no record, or has no reason to be
 * deferred any more.
 */
static int strike(struct sg_vol *vol, unsigned int i, u64 word, bool whatever)
{
	struct sg_iref ref;
	bool there = !sg_iref(vol, SG_LEDGER_VALUE(word), &ref);
	struct sg_tx *tx;
	int err = 0;

	if (there)
		err = sg_ilock(vol, &ref);
	if (err)
		return err;
	if (ledger_settle_entry(vol->ledger, i) == word &&
	    (whatever || !there || !still_has_reason(vol, &ref))) {
		tx = sg_tx_begin(vol);
		sg_ledger_clear_inode(tx, i, word);
		err = sg_tx_commit(tx);
	}
	if (there)
		sg_iunlock(vol, &ref);
	return err;
}

/*
 * Reports whether the inode's lock is held. The holder may be paused, or may wait for space that
 * this thread reclaims.
 */
static bool is_busy(const struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref;

	return !sg_iref(vol, ino, &ref) && sg_is_locked(vol, SG_IOFF(&ref, lock));
}

static int settle_entry(struct sg_vol *vol, unsigned int i)
{
	u64 word = ledger_settle_entry(vol->ledger, i);
	int err;

	if (!word || is_busy(vol, SG_LEDGER_VALUE(word)))
		return 0;
	err = sg_inode_settle(vol, SG_LEDGER_VALUE(word));
	/* a bad page: the inode remains deferred; the loop settles the others */
	if (sg_is_bad_memory(vol, err))
		return 0;
	if (err && err != -EUCLEAN && err != -ESTALE)
		return err;
	return strike(vol, i, word, err == -EUCLEAN);
}

/*
 * Frees the deferred inodes in this system's ledger, or cuts them to size, unless they are open or
 * locked; a later call tries those again. The function goes through the inodes in the order of the
 * hash chains. So each inode is the first one in its chain, even if a hostile ledger fills only one
 * chain.
 */
int sg_ledger_settle_inodes(struct sg_vol *vol)
{
	unsigned int page = (unsigned int)sg_load64(&vol->ledger->pages), i;
	int err = 0;

	while (!err && page--) {
		for (i = 0; !err && i < PER_PAGE && !sg_settle_ends(vol); i++)
			err = settle_entry(vol, page * PER_PAGE + i);
		sg_epoch_acknowledge(vol);
		sg_yield();
	}
	return err ?: sg_deferred_settle(vol);
}

bool sg_ledger_settle_left(struct sg_vol *vol)
{
	unsigned int i = ledger_capacity(vol->ledger);
	bool all = true;

	while (i--) {
		u64 word = ledger_settle_entry(vol->ledger, i);

		if (word && sg_is_left(vol, SG_LEDGER_VALUE(word)))
			all &= sg_inode_settle_left(vol, SG_LEDGER_VALUE(word));
	}
	return sg_deferred_settle_left(vol) && all;
}
