// SPDX-License-Identifier: GPL-2.0
/*
 * Openers of a file: one bit for each slot in the inode, which keeps the inode after its last link
 * was removed. A bit counts while its slot is LIVE or in its lapse (docs/protocol.md, section 5).
 *
 * An opener sets its bit, then reads the link count. An evicting system has seen that no link
 * remains, then reads the bits. Both execute a full fence in between, so at least one of them sees
 * the other.
 */
#include "internal.h"

#define LISTED_AT_A_TIME	1024	/* number of records on lists to check each second */
#define LOOKS_MAX	16	/* a hostile system may pretend that systems join all the time */

static u64 own_bit(const struct sg_vol *vol)
{
	return 1ULL << vol->slot;
}

static u64 *openers(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_at(vol, SG_IOFF(ref, openers));
}

/*
 * Returns the lock that protects the bit of an inode number. A system has one bit for all files
 * that have had this number. An opener that sets the bit, and finds that another file has the
 * number now, clears the bit again. But it must not clear a bit that an opener of the other file
 * has set.
 */
static struct sg_spin *spin_of(struct sg_vol *vol, u64 ino)
{
	/* creators have 64 consecutive numbers, and usually use the same ones of them */
	return &vol->opening[(ino ^ ino >> 6) % SG_OPENING].spin;
}

static void take_back(const struct sg_vol *vol, const struct sg_iref *ref)
{
	if (sg_load64(openers(vol, ref)) & own_bit(vol))
		sg_and64(openers(vol, ref), ~own_bit(vol));
}

static int say_open(const struct sg_vol *vol, const struct sg_iref *ref, bool again)
{
	u64 mode;

	/* another file has the number, and its opener may have set the bit */
	if (!sg_is_same(vol, ref))
		return -ESTALE;
	if (!(sg_load64(openers(vol, ref)) & own_bit(vol)))
		sg_or64(openers(vol, ref), own_bit(vol));	/* includes a full fence */
	else
		sg_full_fence();
	mode = sg_iget(vol, ref, mode);
	if (mode && sg_is_same(vol, ref) && (again || sg_nlink(mode)))
		return 0;
	if (!again)
		take_back(vol, ref);
	return -ESTALE;
}

int sg_open_inode(struct sg_vol *vol, const struct sg_iref *ref, bool again)
{
	int err;

	if (vol->slot < 0)
		return 0;	/* read-only, and not joined */
	if (sg_is_silenced(vol))
		return -EIO;
	sg_spin_lock(spin_of(vol, ref->ino));
	err = say_open(vol, ref, again);
	sg_spin_unlock(spin_of(vol, ref->ino));
	return err;
}

/*
 * Clears this system's bit, with a full fence at the end, so that the caller then reads the same
 * link count as an evicting system.
 */
bool sg_close_inode(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 mode;

	if (vol->slot < 0 || sg_is_silenced(vol) || sg_is_lost(vol, ref->off))
		return false;
	/* done first, because without the bit another system may free the inode immediately */
	if (!sg_nlink(sg_iget(vol, ref, mode)))
		sg_ledger_let_go(vol, ref);
	sg_spin_lock(spin_of(vol, ref->ino));
	if (sg_is_same(vol, ref))
		take_back(vol, ref);
	sg_spin_unlock(spin_of(vol, ref->ino));
	sg_full_fence();
	mode = sg_iget(vol, ref, mode);
	return mode && !sg_nlink(mode) && sg_is_same(vol, ref);
}

void sg_tmpfile_open(struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_spin_lock(spin_of(vol, ref->ino));
	sg_store64(openers(vol, ref), own_bit(vol));
	sg_spin_unlock(spin_of(vol, ref->ino));
}

/*
 * Returns the slots whose bits count. A fence sets a slot's lapsed bit before its state is DEAD.
 * @dead: fenced systems count until they are recovered.
 */
static u64 slots_that_count(const struct sg_vol *vol, bool dead)
{
	const u64 *lapsed = sg_at(vol, SG_HOT(lapsed));
	u64 slots = sg_load64_acquire(lapsed);
	unsigned int i, state;

	for (i = 0; i < SG_SLOTS; i++) {
		state = SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, i)));
		if (state == SG_SLOT_LIVE || (dead && state != SG_SLOT_FREE))
			slots |= 1ULL << i;
	}
	return slots | sg_load64_acquire(lapsed);
}

/*
 * Returns those systems of @slots that have the inode open. A system may succeed one that was
 * fenced: it joins, sets its own bits, and then ends the lapse of the other (docs/fuse.md). If all
 * of this happens between the loads here, none of the two slots seems to count. Then a system has
 * joined meanwhile, and this function looks again.
 */
static u64 those_who_have(const struct sg_vol *vol, const struct sg_iref *ref, u64 slots,
			  bool dead)
{
	const u64 *joins = sg_at(vol, SG_HOT(incarnation));
	u64 before, count, have = 0;
	unsigned int i;

	for (i = 0; i < LOOKS_MAX; i++) {
		have = sg_load64_acquire(openers(vol, ref)) & slots;
		if (!have)
			return 0;
		before = sg_load64_acquire(joins);
		count = slots_that_count(vol, dead);
		have = sg_load64_acquire(openers(vol, ref)) & slots;
		if (have & count)
			return have & count;
		if (sg_load64_acquire(joins) == before)
			return 0;
	}
	return have;	/* the caller tries again later */
}

static bool anybody_has(const struct sg_vol *vol, const struct sg_iref *ref, u64 slots)
{
	return those_who_have(vol, ref, slots, false);
}

u64 sg_users_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_full_fence();
	return those_who_have(vol, ref, ~own_bit(vol), true);
}

/* Reports whether another system has the inode open. The inode is locked, and has no links. */
bool sg_open_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_full_fence();
	return anybody_has(vol, ref, ~own_bit(vol));
}

bool sg_is_left(const struct sg_vol *vol, u64 ino)
{
	struct sg_iref ref;
	u64 mode;

	if (sg_iref(vol, ino, &ref))
		return false;
	mode = sg_iget(vol, &ref, mode);
	return mode && !sg_nlink(mode) && !anybody_has(vol, &ref, ~0ULL);
}

/* Reports whether this system uses the inode. */
bool sg_open_here(struct sg_vol *vol, const struct sg_iref *ref)
{
	if (sg_ledger_keeps(vol, ref))
		return true;
	if (vol->in_use)
		return vol->in_use(vol, ref->ino, (u32)ref->generation);
	return sg_load64(openers(vol, ref)) & own_bit(vol);
}

/*
 * --- bits of past owners ----------------------------------------------------------------------
 *
 * A slot's last owner may have died with files open. Such a bit matters when the file loses its
 * last link. Then a ledger or list names the inode, and the slot's present owner finds it there.
 */

static void withdraw_ref(struct sg_vol *vol, struct sg_iref ref, bool all)
{
	if (!(sg_load64(openers(vol, &ref)) & own_bit(vol)))
		return;
	sg_spin_lock(spin_of(vol, ref.ino));
	ref.generation = (u32)sg_iget(vol, &ref, genflags);
	if (!sg_nlink(sg_iget(vol, &ref, mode)) && (all || !sg_open_here(vol, &ref)) &&
	    !sg_is_silenced(vol))
		take_back(vol, &ref);
	sg_spin_unlock(spin_of(vol, ref.ino));
}

static void opens_withdraw(struct sg_vol *vol, u64 deferred, bool all)
{
	struct sg_iref ref;

	if (!sg_iref(vol, SG_LEDGER_VALUE(deferred), &ref))
		withdraw_ref(vol, ref, all);
}

static void withdraw_from_lists(struct sg_vol *vol, unsigned int slot)
{
	struct sg_deferred_walk w;
	unsigned int i;

	for (i = 0; i < vol->sb.areas; i++) {
		w = sg_deferred_walk(vol, slot, i);
		while (sg_deferred_walk_next(vol, &w)) {
			withdraw_ref(vol, w.ref, true);
			if (!(w.n % LISTED_AT_A_TIME))
				sg_epoch_acknowledge(vol);
		}
	}
}

static void next_list(const struct sg_vol *vol, struct sg_deferred_at *c)
{
	c->ino = 0;
	c->area = (c->area + 1) % vol->sb.areas;
	if (!c->area)
		c->slot = (c->slot + 1) % SG_SLOTS;
}

/*
 * Checks some records of the lists at a time, one list after the other, because lists may be long.
 * If a list has changed at the saved position, the next call begins at the start of that list.
 */
static void withdraw_some(struct sg_vol *vol, struct sg_deferred_at *c)
{
	struct sg_deferred_walk w = sg_deferred_walk(vol, c->slot, c->area);
	unsigned int n = 0, lists = 0;
	struct sg_iref ref;

	if (c->ino && !sg_iref(vol, c->ino, &ref) && !sg_is_lost(vol, ref.off))
		w.at = SG_IOFF(&ref, deferred_next);
	while (n < LISTED_AT_A_TIME && lists < SG_SLOTS * vol->sb.areas) {
		if (sg_deferred_walk_next(vol, &w)) {
			withdraw_ref(vol, w.ref, false);
			c->ino = w.ref.ino;
			n++;
			continue;
		}
		next_list(vol, c);
		lists++;
		w = sg_deferred_walk(vol, c->slot, c->area);
	}
}

static void withdraw_from(struct sg_vol *vol, unsigned int slot, bool all)
{
	u64 page = sg_ledger_off(vol, slot);
	unsigned int pages, i;

	for (pages = 0; page && pages < SG_LEDGER_PAGES; pages++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++) {
			u64 deferred = sg_get(vol, page + i * 8);

			if (deferred && SG_LEDGER_KIND(deferred) == SG_LEDGER_INODE)
				opens_withdraw(vol, deferred, all);
		}
		page = sg_get(vol, page);
		if (page && !sg_data_page(vol, page))
			return;
	}
}

void sg_withdraw_opens(struct sg_vol *vol, bool all)
{
	unsigned int i;

	if (!all && sg_alone(vol))
		return;
	for (i = 0; i < SG_SLOTS; i++) {
		withdraw_from(vol, i, all);
		if (all)
			withdraw_from_lists(vol, i);
	}
	if (!all && !sg_cas64(&vol->opens_at.busy, 0, 1)) {
		withdraw_some(vol, &vol->opens_at);
		sg_store64_release(&vol->opens_at.busy, 0);
	}
}
