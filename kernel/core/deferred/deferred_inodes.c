// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of deferred inodes (docs/protocol.md, section 4).
 *
 * An inode without links is deferred for as long as its users have it open. There may be as many
 * such inodes as files. Inodes for which the ledger has no room are chained by a word of their own
 * records, so that removing a name never needs room. Each transaction area has a list, whose head
 * changes under the area's lock. So adding an inode needs only the locks of the inode and of the
 * area, which the transaction already has.
 *
 * A record has a flag while it is on a list. It remains there when the inode is freed, gets a name,
 * or becomes another file. A system that later defers the inode sees the flag, and does nothing
 * more. Only the system that has the list removes the record, under the inode's lock, when the
 * inode has no reason to be deferred any more. So a list needs only one direction, and other
 * systems free inodes on it without a change of the list.
 *
 *   head of a list, links of the records on it   lock of its area; slot_lock, if the slot is free
 *   whether a record is on a list                the inode's lock, too
 */
#include "internal.h"

/* number of records to pass without a change before other work continues */
#define KEPT_AT_A_TIME	1024
/* limit of one call, because other systems may store any links */
#define TURNS_MAX	(1u << 20)
#define SPLICED		1024	/* number of records of a dead system's list in one transaction */
/* limit for one list: more than the largest volume can have */
#define SPLICES		(1u << 20)

/*
 * Returns the word that names inode @ino in place @at. A head is only the number; the word of a
 * record also has the flag of a list.
 */
static u64 word_for(const struct sg_vol *vol, u64 at, u64 ino)
{
	return at >= vol->sb.journal_off && at < vol->sb.ledger_off ? ino : SG_DEFERRED_LINK(ino);
}

/*
 * Finds the record that a word of a list names. -EUCLEAN: it cannot be on a list. -EIO: bad page.
 */
static int deferred_inodes_find(const struct sg_vol *vol, u64 at, struct sg_iref *ref)
{
	u64 ino = SG_DEFERRED_LINK_INO(sg_get(vol, at));
	int err = sg_iref(vol, ino, ref);

	if (err == -ESTALE)
		return sg_damaged(vol, ino, at, "list of deferred inodes leaves the inode file");
	if (err)
		return err;
	if (sg_is_lost(vol, ref->off))
		return -EIO;
	return sg_is_listed(vol, ref) ? 0 :
		sg_damaged(vol, ino, at, "list of deferred inodes names an inode that is not deferred");
}

/* --- take a record off ------------------------------------------------------------------------ */

/*
 * Ends a list of this system at the word @at, which names the inode @ino that cannot be on the
 * list. The rest of the list is lost.
 */
static int cut_off(struct sg_vol *vol, unsigned int area, u64 at, u64 ino)
{
	struct sg_tx *tx = sg_tx_begin_in(vol, area);

	if (SG_DEFERRED_LINK_INO(sg_tx_get(tx, at)) == ino)
		sg_tx_set(tx, at, word_for(vol, at, 0));
	return sg_tx_commit(tx);
}

static bool has_reason(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_has_reason(sg_iget(vol, ref, mode), sg_iget(vol, ref, genflags));
}

/*
 * Removes @ref, which the word @at names, from a list of this system, unless the inode has a reason
 * to be deferred again. With @sure, removes it in any case. Returns 1 if @ref was removed, and 0 if
 * its lock is busy, or if it is no longer the next record.
 */
static int take_off(struct sg_vol *vol, unsigned int area, u64 at, const struct sg_iref *ref,
		    bool sure)
{
	struct sg_tx *tx;
	bool done;
	int err;

	if (!sg_trylock(vol, SG_IOFF(ref, lock)))
		return 0;
	tx = sg_tx_begin_in(vol, area);
	done = !tx->err && SG_DEFERRED_LINK_INO(sg_get(vol, at)) == ref->ino &&
	       sg_is_listed(vol, ref) && (sure || !has_reason(vol, ref));
	if (done) {
		u64 next = SG_DEFERRED_LINK_INO(sg_get(vol, sg_deferred_link(ref)));

		sg_tx_set(tx, at, word_for(vol, at, next));
		sg_tx_set(tx, sg_deferred_link(ref), 0);
	}
	err = sg_tx_commit(tx);
	sg_iunlock(vol, ref);
	return err ?: done;
}

/* --- settle ----------------------------------------------------------------------------------- */

/*
 * Lets only one thread at a time remove records, because the record before the removed one must
 * remain on the list.
 */
static bool deferred_inodes_begin(struct sg_deferred_at *c)
{
	return !sg_cas64(&c->busy, 0, 1);
}

static void end(struct sg_deferred_at *c)
{
	sg_store64_release(&c->busy, 0);
}

/*
 * Returns the word from which an interrupted walk continues, or 0 if there is none. The word
 * belongs to a record that is still on a list.
 */
static u64 goes_on_at(const struct sg_vol *vol, const struct sg_deferred_at *c)
{
	struct sg_iref ref;

	if (!c->ino || sg_iref(vol, c->ino, &ref) || sg_is_lost(vol, ref.off) ||
	    !sg_is_listed(vol, &ref))
		return 0;
	return sg_deferred_link(&ref);
}

/*
 * Frees the inode, or cuts it to size, unless it is in use or locked. 1: the inode has no reason to
 * be deferred (any more).
 */
static int settle_one(struct sg_vol *vol, const struct sg_iref *ref, bool *sure)
{
	u64 mode = sg_iget(vol, ref, mode);
	struct sg_iref now = *ref;
	int err;

	*sure = false;
	if (!has_reason(vol, ref))
		return 1;
	now.generation = (u32)sg_iget(vol, ref, genflags);
	if (sg_is_locked(vol, SG_IOFF(ref, lock)) ||
	    (!sg_nlink(mode) && (sg_open_here(vol, &now) || sg_open_elsewhere(vol, &now))))
		return 0;
	err = sg_inode_settle(vol, ref->ino);
	if (sg_is_bad_memory(vol, err))
		return 0;
	*sure = err == -EUCLEAN;
	if (err && err != -EUCLEAN && err != -ESTALE)
		return err;
	return *sure || !has_reason(vol, ref);
}

/*
 * Makes one step along this system's list of the area. 1: the record remains, and *at advances to
 * its link. 0: it was removed. At the end of the list *at is 0.
 */
static int settle_next(struct sg_vol *vol, unsigned int area, u64 *at, u64 *ino)
{
	u64 next = SG_DEFERRED_LINK_INO(sg_get(vol, *at));
	struct sg_iref ref;
	bool sure;
	int err;

	err = next ? deferred_inodes_find(vol, *at, &ref) : -ENOENT;
	if (err) {
		if (err == -EUCLEAN)
			err = cut_off(vol, area, *at, next);
		*at = 0;
		return err == -ENOENT || err == -EIO ? 0 : err;
	}
	err = settle_one(vol, &ref, &sure);
	if (err > 0)
		err = take_off(vol, area, *at, &ref, sure);
	if (err < 0)
		return err;
	if (err)
		return 0;
	*at = sg_deferred_link(&ref);
	*ino = next;
	return 1;
}

static int settle(struct sg_vol *vol, struct sg_deferred_at *c)
{
	unsigned int kept = 0, lists = 0, turn = 0;
	u64 at = goes_on_at(vol, c);
	int stays = 0;

	while (stays >= 0 && kept < KEPT_AT_A_TIME && lists <= vol->sb.areas &&
	       turn < TURNS_MAX && !sg_settle_ends(vol)) {
		if (!at)
			at = sg_deferred_head(vol, (unsigned int)vol->slot, c->area);
		stays = settle_next(vol, c->area, &at, &c->ino);
		kept += stays == 1;
		if (!at) {
			c->area = (c->area + 1) % vol->sb.areas;
			c->ino = 0;
			lists++;
		}
		if (++turn % 64)
			continue;
		sg_epoch_acknowledge(vol);
		sg_yield();
		if (vol->hurry)
			break;
	}
	return SG_MIN(stays, 0);
}

/*
 * Settles some records of the lists. Many records remain, so the next call continues after them.
 * Only this system removes records, so the last record is still on its list.
 */
int sg_deferred_settle(struct sg_vol *vol)
{
	int err;

	if (sg_deferred_empty(vol, (unsigned int)vol->slot) ||
	    !deferred_inodes_begin(&vol->deferred_at))
		return 0;
	err = settle(vol, &vol->deferred_at);
	end(&vol->deferred_at);
	return err;
}

/* Frees inodes but leaves their records on the list, because a removal would wait for an area. */
static bool settle_left(struct sg_vol *vol, struct sg_deferred_at *c)
{
	struct sg_deferred_walk w = { .at = goes_on_at(vol, c) };
	unsigned int kept = 0, lists = 0;
	bool all = true;

	if (!w.at)
		w = sg_deferred_walk(vol, (unsigned int)vol->slot, c->area);
	while (kept < KEPT_AT_A_TIME && lists <= vol->sb.areas) {
		if (!sg_deferred_walk_next(vol, &w)) {
			c->area = (c->area + 1) % vol->sb.areas;
			c->ino = 0;
			lists++;
			w = sg_deferred_walk(vol, (unsigned int)vol->slot, c->area);
			continue;
		}
		c->ino = w.ref.ino;
		if (sg_is_left(vol, c->ino))
			all &= sg_inode_settle_left(vol, c->ino);
		else
			kept++;
	}
	return all;
}

bool sg_deferred_settle_left(struct sg_vol *vol)
{
	bool all;

	if (sg_deferred_empty(vol, (unsigned int)vol->slot) ||
	    !deferred_inodes_begin(&vol->deferred_left_at))
		return true;
	all = settle_left(vol, &vol->deferred_left_at);
	end(&vol->deferred_left_at);
	return all;
}

/* --- lists of a dead system ------------------------------------------------------------------- */

/*
 * Moves the first records of a list, up to a limit, to the front of a list of this system; only the
 * last record's link changes. Records after one that cannot be on the list are lost until fsck. 1:
 * there may be more.
 */
static int splice(struct sg_vol *vol, u64 from)
{
	u64 first = SG_DEFERRED_LINK_INO(sg_get(vol, from)), last = 0, next = first, head;
	struct sg_iref ref;
	struct sg_tx *tx;
	unsigned int n;
	int err = 0;

	for (n = 0; n < SPLICED && next && !err; n++) {
		err = deferred_inodes_find(vol, last ?: from, &ref);
		if (!err) {
			last = sg_deferred_link(&ref);
			next = SG_DEFERRED_LINK_INO(sg_get(vol, last));
		}
	}
	if (err == -EIO && !last)	/* bad page: the record remains where it is */
		return 0;
	if (err == -EUCLEAN)
		next = 0;
	else if (err && err != -EIO)
		return err;
	tx = sg_tx_begin(vol);
	sg_tx_set(tx, from, next);
	if (last) {
		head = tx->area + offsetof(struct sg_area, deferred_ino);
		sg_tx_set(tx, last, SG_DEFERRED_LINK(SG_DEFERRED_LINK_INO(sg_tx_get(tx, head))));
		sg_tx_set(tx, head, first);
	}
	return sg_tx_commit(tx) ?: next != 0;
}

int sg_deferred_take_over(struct sg_vol *vol, unsigned int slot)
{
	unsigned int i, n;
	int more;

	for (i = 0; i < vol->sb.areas; i++) {
		u64 head = sg_deferred_head(vol, slot, i);

		more = sg_get(vol, head) != 0;
		for (n = 0; more > 0 && n < SPLICES; n++) {
			more = splice(vol, head);
			sg_epoch_acknowledge(vol);
			if (more > 0 && (vol->hurry || sg_settle_ends(vol)))
				return -EBUSY;
			if (more > 0 && sg_interrupted())
				return -EINTR;
		}
		if (more < 0)
			return more;
	}
	return 0;
}
