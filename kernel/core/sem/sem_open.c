// SPDX-License-Identifier: GPL-2.0
/*
 * Openers of objects, and the state of an object after its last opener.
 *
 * One bit for each slot records that a system has the object open. The bit is durable before the
 * system uses the object. So the next opener can decide whether the last one left a valid state.
 * These functions need the file's lock (sem_table.c).
 */
#include "sem/sem.h"

/* --- openers ---------------------------------------------------------------------------------- */

static struct sg_sem_opened **opened(struct sg_sems *s, u64 rec)
{
	struct sg_sem_opened **at = &s->open[SG_SEM_BUCKET(rec)];

	while (*at && (*at)->rec != rec)
		at = &(*at)->next;
	return at;
}

static u64 count_open(struct sg_sems *s, u64 rec)
{
	struct sg_sem_opened *o = *opened(s, rec);

	return o ? o->n : 0;
}

static int count_more(struct sg_sems *s, u64 rec)
{
	struct sg_sem_opened **at = opened(s, rec);

	if (!*at) {
		struct sg_sem_opened *o = sg_alloc(sizeof(*o));

		if (!o)
			return -ENOMEM;
		o->rec = rec;
		*at = o;
	}
	(*at)->n++;
	return 0;
}

static u64 count_less(struct sg_sems *s, u64 rec)
{
	struct sg_sem_opened **at = opened(s, rec), *o = *at;

	if (!o || --o->n)
		return o ? o->n : 0;
	*at = o->next;
	sg_free(o);
	return 0;
}

/*
 * Reports whether another system uses the object. A dead system counts until it has been recovered,
 * as with its locks.
 */
static bool used_elsewhere(const struct sg_vol *vol, const struct sg_sem_spot *s)
{
	u64 users = sg_get(vol, SG_SEM_FIELD(s, users));
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (users >> i & 1 && (int)i != vol->slot &&
		    SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, i))) != SG_SLOT_FREE)
			return true;
	return false;
}

bool sg_sem_is_used(const struct sg_vol *vol, const struct sg_sem_spot *s)
{
	return count_open(vol->sems, s->off) || used_elsewhere(vol, s);
}

void sg_sem_set_durably(struct sg_vol *vol, u64 off, u64 val)
{
	sg_store64(sg_at(vol, off), val);
	sg_wb(sg_at(vol, off), 8);
	sg_fence();
}

bool sg_sem_is_meant(const struct sg_vol *vol, const struct sg_sem_spot *s, u64 serial)
{
	return serial == SG_SEM_ANY || SG_SEM_SERIAL(sg_get(vol, SG_SEM_FIELD(s, head))) == serial;
}

/*
 * Returns the lapsed systems among the users. Their processes may still store into the object's
 * words, so no other object may get these words.
 */
static u64 lapsed_users(const struct sg_vol *vol, const struct sg_sem_spot *s)
{
	return sg_get(vol, SG_SEM_FIELD(s, users)) & sg_get(vol, SG_HOT(lapsed)) &
	       ~(1ULL << vol->slot);
}

bool sg_sem_is_over(const struct sg_vol *vol, const struct sg_sem_spot *s)
{
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head));

	return head && (SG_SEM_FLAGS(head) & SG_SEM_REMOVED ||
			SG_SEM_LIFE(head) == SG_SEM_LAST_USER) &&
	       !sg_sem_is_used(vol, s) && !lapsed_users(vol, s);
}

/* --- bad pages -------------------------------------------------------------------------------- */

bool sg_sem_is_bad(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_is_lost(vol, sem->rec) || sg_is_lost(vol, sem->words) ||
	       (sem->side && sg_is_lost(vol, sem->side));
}

/* --- words ------------------------------------------------------------------------------------ */

u64 sg_sem_first_word(unsigned int type, u64 initial)
{
	return type == SG_SEM_COUNT ? initial & SG_SEMW_VALUE : 0;
}

/* Finds the words and the side of an existing object. -EUCLEAN: a page is missing. */
static int find_words(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out)
{
	u64 page = sg_sem_words_page(s->page, s->i);
	int err = 0;

	out->words = SG_SEM_FIELD(s, words);
	if (sg_sem_has_words(out->type, out->flags))
		out->words = sg_sem_page_at(vol, page, &err);
	if (!err && sg_sem_has_side(out->type))
		out->side = sg_sem_page_at(vol, page + 1, &err);
	if (!err && (!out->words || (sg_sem_has_side(out->type) && !out->side)))
		err = sg_damaged(vol, 0, s->off, "a semaphore without its words");
	if (!err && out->type == SG_SEM_RING)
		err = sg_sem_ring_find(vol, s, out);
	return err;
}

/*
 * Clears the counts of all readers, live or dead. Current readers then have no read to end.
 */
static void clear_cells(struct sg_vol *vol, const struct sg_sem *sem)
{
	u64 *cell = sg_at(vol, sem->words);
	unsigned int i;

	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		if (sg_load64(&cell[i]))
			sg_store64(&cell[i], 0);
}

void sg_sem_reset_words(struct sg_vol *vol, const struct sg_sem *sem, bool force)
{
	struct sg_semwords *w = sg_at(vol, sem->words);
	u64 word = sg_load64(&w->word);

	switch (sem->type) {
	case SG_SEM_RING:
		sg_sem_ring_reset(vol, sem, force);
		return;
	case SG_SEM_MUTEX:
	case SG_SEM_RWLOCK:
		if (word & SG_SEMW_OWNER)
			word |= SG_SEMW_DIED;
		word = force ? 0 : word & (SG_SEMW_DIED | SG_SEMW_LOST);
		break;
	case SG_SEM_COUNT:
		word = sg_sem_first_word(sem->type, sg_load64(&sg_sem_record(vol, sem)->initial));
		break;
	case SG_SEM_BARRIER:
		word = (word + force) & SG_SEMW_COUNT;
		break;
	default:
		word &= SG_SEMW_COUNT;
	}
	if (force && sem->type == SG_SEM_RWLOCK)
		clear_cells(vol, sem);
	sg_store64(&w->more, 0);
	sg_store64_release(&w->word, word);
}

/* --- open ------------------------------------------------------------------------------------- */

bool sg_sem_cell_counts(const struct sg_vol *vol, u64 own)
{
	unsigned int slot = SG_LOCK_SLOT(own);
	u64 state;

	if (!own || slot >= SG_SLOTS)
		return false;
	state = sg_load64_acquire(sg_state_word(vol, slot));
	return SG_SLOT_STATE(state) != SG_SLOT_FREE && SG_SLOT_INC(state) == SG_LOCK_INC(own);
}

/*
 * Takes the system's own cell, for a system that has just joined. A count of another incarnation is
 * invalid.
 */
static void system_cell(struct sg_vol *vol, const struct sg_sem *sem)
{
	unsigned int i = SG_SEM_CELL_KERNEL + (unsigned int)vol->slot;
	struct sg_sem_side *side = sg_at(vol, sem->side);
	u64 own = SG_LOCK_WORD(vol->slot, vol->incarnation);

	if (sg_load64(&side->own[i]) == own)
		return;
	if (sem->type == SG_SEM_RWLOCK)
		sg_store64(sg_at(vol, sem->words + 8 * i), 0);
	else
		sg_store64(&side->own[SG_SEM_COUNT_AT + vol->slot], 0);
	sg_store64_release(&side->own[i], own);
}

/*
 * Clears counts of dead readers. Kernels ignore these counts, but a writing process cannot tell
 * them from the counts of live readers. The file's lock is held, so that no cell gets an owner
 * meanwhile.
 */
static void sweep_cells(struct sg_vol *vol, const struct sg_sem *sem)
{
	struct sg_sem_side *side = sg_at(vol, sem->side);
	u64 *cell = sg_at(vol, sem->words);
	unsigned int i;

	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		if (sg_load64(&cell[i]) && !sg_sem_cell_counts(vol, sg_load64(&side->own[i])))
			sg_store64(&cell[i], 0);
}

bool sg_sem_cell_lapses(const struct sg_vol *vol, u64 own)
{
	unsigned int slot = SG_LOCK_SLOT(own);

	return own && slot < SG_SLOTS && slot != (unsigned int)vol->slot &&
	       sg_get(vol, SG_HOT(lapsed)) >> slot & 1;
}

/*
 * Takes a cell for a process that maps the words. If all cells are in use, the process reads
 * through its kernel.
 */
static unsigned int process_cell(struct sg_vol *vol, const struct sg_sem *sem)
{
	struct sg_sem_side *side = sg_at(vol, sem->side);
	unsigned int i;

	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++) {
		u64 own = sg_load64(&side->own[i]);

		if (sg_sem_cell_counts(vol, own) || sg_sem_cell_lapses(vol, own))
			continue;
		sg_store64(sg_at(vol, sem->words + 8 * i), 0);
		sg_store64_release(&side->own[i], SG_LOCK_WORD(vol->slot, vol->incarnation));
		return i;
	}
	return SG_SEM_CELL_KERNEL + (unsigned int)vol->slot;
}

static void take_cells(struct sg_vol *vol, struct sg_sem *sem, bool user)
{
	if (!sem->side || sem->type == SG_SEM_RING)
		return;
	if (sem->type == SG_SEM_RWLOCK)
		sweep_cells(vol, sem);
	system_cell(vol, sem);
	sem->cell = SG_SEM_CELL_KERNEL + (unsigned int)vol->slot;
	if (user && sem->type == SG_SEM_RWLOCK && sem->flags & SG_SEM_MAPPED)
		sem->cell = process_cell(vol, sem);
}

int sg_sem_look_at(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out)
{
	memset(out, 0, sizeof(*out));
	out->head = sg_get(vol, SG_SEM_FIELD(s, head));
	if (!sg_sem_head_known(out->head))
		return sg_damaged(vol, 0, s->off, "a semaphore of no known type");
	out->type = SG_SEM_TYPE(out->head);
	out->flags = SG_SEM_FLAGS(out->head);
	out->rec = s->off;
	out->waits = SG_SEM_FIELD(s, waits);
	return find_words(vol, s, out);
}

/*
 * Restores an object that no system has open. A remaining bit, or the mark that a joiner stored
 * instead, belongs to a dead system. Returns true if the caller must remove the mark.
 */
static bool begin_anew(struct sg_vol *vol, const struct sg_sem_spot *s, const struct sg_sem *sem)
{
	u64 unclean = sg_get(vol, SG_SEM_FIELD(s, unclean));
	unsigned int i;

	if (!sg_get(vol, SG_SEM_FIELD(s, users)) && !unclean)
		return false;
	sg_sem_reset_words(vol, sem, false);
	sg_store64(sg_at(vol, SG_SEM_FIELD(s, waits.waiters)), 0);
	for (i = 0; i < SG_RING_PARTS - 1; i++)
		sg_store64(sg_at(vol, SG_SEM_FIELD(s, part[i].waiters)), 0);
	return unclean;
}

static int open_found(struct sg_vol *vol, const struct sg_sem_spot *s, unsigned int type, bool user,
		      struct sg_sem *out)
{
	bool used = sg_sem_is_used(vol, s), unclean = false;
	u64 users = sg_get(vol, SG_SEM_FIELD(s, users)), left = used ? users : lapsed_users(vol, s);
	int err = sg_sem_look_at(vol, s, out);

	if (!err && type && type != out->type)
		err = -EINVAL;
	if (!err)
		err = count_more(vol->sems, s->off);
	if (err)
		return err;
	if (!used)
		unclean = begin_anew(vol, s, out);
	left |= 1ULL << vol->slot;
	if (left != users)
		sg_sem_set_durably(vol, SG_SEM_FIELD(s, users), left);
	/*
	 * cleared last: until the new state is durable, the bit or the mark must exist for the case
	 * of a power failure
	 */
	if (unclean)
		sg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 0);
	take_cells(vol, out, user);
	return 0;
}

static int new_fits(const struct sg_sem_new *new)
{
	if (!new->type || new->type >= SG_SEM_KINDS || new->life >= SG_SEM_LIVES ||
	    new->flags & ~SG_SEM_FLAGS_KNOWN || new->initial > SG_SEMW_VALUE)
		return -EINVAL;
	if (new->flags & SG_SEM_RECURSIVE && new->type != SG_SEM_MUTEX)
		return -EINVAL;
	if (new->flags & SG_SEM_SINGLE && new->type != SG_SEM_RING)
		return -EINVAL;
	if (new->type == SG_SEM_RING)
		return new->flags & SG_SEM_MAPPED && sg_sem_ring_size_fits(new->initial) ? 0 :
									       -EINVAL;
	return new->type == SG_SEM_BARRIER && !new->initial ? -EINVAL : 0;
}

#define NOT_ALLOWED	1	/* no ring can be made yet: sg_sem_ring_allow() */

/*
 * Opens or creates an object, with the file locked. First frees an object that is no longer needed,
 * to make room, in a separate transaction.
 */
static int create_or_open(struct sg_vol *vol, struct sg_sem_search *q, const struct sg_sem_new *new,
			  bool exclusive, bool user, struct sg_sem *out)
{
	int err = 0;

	if (q->has && sg_sem_is_over(vol, &q->found)) {
		err = sg_sem_destroy(vol, &q->found);
		return err ? err : -EAGAIN;
	}
	if (q->has)
		return exclusive ? -EEXIST : open_found(vol, &q->found, new->type, user, out);
	if (!q->has_room && !q->has_hole)
		return -ENOSPC;		/* this chain is full */
	if (q->room.off && sg_get(vol, SG_SEM_FIELD(&q->room, head))) {
		err = sg_sem_destroy(vol, &q->room);
		return err ? err : -EAGAIN;
	}
	if (new->type == SG_SEM_RING && !sg_sem_ring_allowed(vol))
		return NOT_ALLOWED;
	err = sg_sem_make(vol, q, new);
	return err ? err : open_found(vol, &q->found, new->type, user, out);
}

/* turns that make room; only a hostile member makes more necessary */
#define CREATE_TURNS	100

/*
 * Makes the page of bells, into which other systems store to ring. An opener makes the page,
 * because an opener waits for locks in any case. A wait with a time limit must not wait for locks.
 * If there is no room, or another system has the file locked, waiters poll until sg_settle() has
 * made the page.
 */
static void make_bells(struct sg_vol *vol)
{
	const struct sg_iref file = sg_sem_file();
	int err;

	if (!sg_sem_page_at(vol, SG_SEM_BELLS_PAGE, &err) && !err)
		err = sg_allocate_now(vol, &file, SG_SEM_BELLS_PAGE);
	/* after -EIO the page cannot be read, so another attempt would fail, too */
	sg_store64(&vol->sems->bells, err && err != -EIO ? SG_SEM_BELLS_WANTED : SG_SEM_BELLS_MADE);
}

static void want_bells(struct sg_vol *vol)
{
	if (sg_load64(&vol->sems->bells) != SG_SEM_BELLS_MADE)
		make_bells(vol);
}

int sg_sem_create(struct sg_vol *vol, const char *name, u32 len, const struct sg_sem_new *new,
		  bool exclusive, bool user, struct sg_sem *out)
{
	struct sg_nospace nospace = {};
	unsigned int turns = 0;
	struct sg_sem_search q;
	int err;

	err = new_fits(new);
	if (err)
		return err;
	do {
		if (turns && sg_interrupted())
			return -EINTR;
		err = sg_sem_begin(vol, name, len, &q);
		if (err)
			return err;
		err = create_or_open(vol, &q, new, exclusive, user, out);
		sg_sem_end(vol);
		if (err == NOT_ALLOWED)
			err = sg_sem_ring_allow(vol) ?: -EAGAIN;
		turns += err == -EAGAIN;
		if (turns == CREATE_TURNS)
			return -EBUSY;
	} while (err == -EAGAIN || (err == -ENOSPC && vol->up->more_space(vol, &nospace)));
	if (!err)
		want_bells(vol);
	return err;
}

int sg_sem_open(struct sg_vol *vol, const char *name, u32 len, unsigned int type, bool user,
		struct sg_sem *out)
{
	struct sg_sem_search q;
	int err = sg_sem_begin(vol, name, len, &q);

	if (err)
		return err;
	if (!q.has)
		err = -ENOENT;
	else if (sg_sem_is_over(vol, &q.found))
		err = sg_sem_destroy(vol, &q.found) ?: -ENOENT;
	else
		err = open_found(vol, &q.found, type, user, out);
	sg_sem_end(vol);
	if (!err)
		want_bells(vol);
	return err;
}

/* --- close ------------------------------------------------------------------------------------ */

/*
 * Ends this opener's reads without the file's lock. Until the last store here the cell belongs to
 * this system, and no other function releases it.
 */
static void give_cells(struct sg_vol *vol, struct sg_sem *sem)
{
	struct sg_sem_side *side;

	if (sem->type == SG_SEM_RING)
		sg_sem_ring_give_cell(vol, sem);
	if (sem->type != SG_SEM_RWLOCK)
		return;
	side = sg_at(vol, sem->side);
	/* the cell's process has ended, or has unmapped the page */
	if (sem->cell >= SG_SEM_CELL_FIRST) {
		sg_store64(sg_at(vol, sem->words + 8 * sem->cell), 0);
		sg_store64_release(&side->own[sem->cell], 0);
	} else if (sem->reads) {
		sg_sem_cell_less(sg_at(vol, sem->words + 8 * sem->cell), sem->reads);
		sem->reads = 0;
	}
	sg_sem_wake_all(vol, sem);
}

static struct sg_sem_spot spot_of(const struct sg_sem *sem, u64 page)
{
	u64 first = sg_sem_record_off(sem->rec & ~(SG_PAGE - 1), 0);

	return (struct sg_sem_spot){ .page = page, .off = sem->rec,
		.i = (unsigned int)((sem->rec - first) / sizeof(struct sg_sem_record)) };
}

/* Finds the page of the file with the record: the page of its chain at that offset. */
static int find_page(struct sg_vol *vol, const struct sg_sem *sem, u64 *page)
{
	u64 chain = sg_sem_chain(sg_load64(&sg_sem_record(vol, sem)->hash));
	unsigned int k;
	int err;

	for (k = 0; k < SG_SEM_CHAIN_PAGES; k++) {
		*page = chain + (u64)k * SG_SEM_CHAINS;
		if (sg_sem_page_at(vol, *page, &err) == (sem->rec & ~(SG_PAGE - 1)))
			return 0;
	}
	return sg_damaged(vol, 0, sem->rec, "a semaphore in another's place");
}

/*
 * Completes the object's state, and makes it durable, before the bit of the last opener is cleared.
 * An opener that closes a lock which it owns counts as an owner that died. Its id must not match a
 * later owner after a power failure.
 */
static void put_away(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_spot *s)
{
	u64 word = sg_load64(sg_sem_word(vol, sem));

	if ((sem->type == SG_SEM_MUTEX || sem->type == SG_SEM_RWLOCK ||
	     sem->type == SG_SEM_RING) && word & SG_SEMW_OWNER)
		sg_store64(sg_sem_word(vol, sem), (word & SG_SEMW_LOST) | SG_SEMW_DIED);
	if (sem->type == SG_SEM_RING)
		sg_sem_ring_write_back(vol, sem);
	sg_wb(sg_at(vol, sem->words), sizeof(struct sg_semwords));
	sg_fence();
	sg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 0);
	sg_sem_set_durably(vol, SG_SEM_FIELD(s, users), lapsed_users(vol, s));
}

static void close_last(struct sg_vol *vol, struct sg_sem *sem)
{
	struct sg_sem_spot s;
	u64 page;

	if (find_page(vol, sem, &page))
		return;
	s = spot_of(sem, page);
	if (used_elsewhere(vol, &s))
		sg_and64(sg_at(vol, SG_SEM_FIELD(&s, users)), ~(1ULL << vol->slot));
	else
		put_away(vol, sem, &s);
	if (sg_sem_is_over(vol, &s))
		/* if the removal fails, the next system that finds the object tries again */
		sg_sem_destroy_try(vol, &s);
}

enum close_patience {
	CLOSE_TRY,
	CLOSE_BRIEF,
	/* the system leaves the volume, so a close that is not complete counts as a death */
	CLOSE_HURRY,
};

static int lock_file_to_close(struct sg_vol *vol, u64 lock, enum close_patience patience)
{
	switch (patience) {
	case CLOSE_TRY:
		return sg_trylock(vol, lock) ? 0 : -EBUSY;
	case CLOSE_BRIEF:
		return sg_lock_brief(vol, lock);
	default:
		return sg_lock_sure(vol, lock);
	}
}

static int close_object(struct sg_vol *vol, struct sg_sem *sem, enum close_patience patience)
{
	const struct sg_iref file = sg_sem_file();
	int err = sg_may_write(vol);

	/* a freeze waits only for transactions, and the stores of a close are in none (freeze.c) */
	if (!err && sg_is_still(vol))
		err = -EBUSY;
	if (!err)
		err = lock_file_to_close(vol, SG_IOFF(&file, lock), patience);
	if (err)
		return err;
	err = sg_may_change(vol, &file);
	if (!err && !count_less(vol->sems, sem->rec) && !sg_sem_lost(vol, sem))
		close_last(vol, sem);
	sg_iunlock(vol, &file);
	return err;
}

static void keep_closing(struct sg_sems *s, struct sg_sem_closing *c)
{
	sg_spin_lock(&s->spin);
	c->next = s->closing;
	s->closing = c;
	sg_spin_unlock(&s->spin);
}

static void close_later(struct sg_vol *vol, const struct sg_sem *sem)
{
	struct sg_sem_closing *c = sg_alloc(sizeof(*c));

	if (!c)
		return;		/* the object's bit remains until the slot has another owner */
	c->sem = *sem;
	keep_closing(vol->sems, c);
}

/*
 * Ends the opener's reads immediately, because other systems wait for readers. That also holds on a
 * mount that may change nothing else, because it is frozen or has become read-only. The rest of the
 * close follows when the volume may be changed again.
 */
static bool give_readers(struct sg_vol *vol, struct sg_sem *sem)
{
	if (sg_is_silenced(vol))
		return false;
	if (!sg_sem_lost(vol, sem))
		give_cells(vol, sem);
	return true;
}

/*
 * Closes an object. The process may be ending, with many objects open, while another system has the
 * file locked. So only the first close waits briefly. While that close is pending, later ones only
 * try the lock.
 */
void sg_sem_close(struct sg_vol *vol, struct sg_sem *sem)
{
	bool first;

	if (!give_readers(vol, sem))
		return;
	sg_spin_lock(&vol->sems->spin);
	first = !vol->sems->closing;
	sg_spin_unlock(&vol->sems->spin);
	if (close_object(vol, sem, first ? CLOSE_BRIEF : CLOSE_TRY) && !sg_is_silenced(vol))
		close_later(vol, sem);
}

void sg_sem_close_later(struct sg_vol *vol, struct sg_sem *sem)
{
	if (give_readers(vol, sem))
		close_later(vol, sem);
}

static struct sg_sem_closing *take_closing(struct sg_sems *s)
{
	struct sg_sem_closing *c;

	sg_spin_lock(&s->spin);
	c = s->closing;
	if (c)
		s->closing = c->next;
	sg_spin_unlock(&s->spin);
	return c;
}

void sg_sem_settle(struct sg_vol *vol)
{
	struct sg_sem_closing *c;

	while (vol->sems && (c = take_closing(vol->sems))) {
		if (close_object(vol, &c->sem, vol->hurry ? CLOSE_HURRY : CLOSE_TRY)) {
			keep_closing(vol->sems, c);
			return;
		}
		sg_free(c);
	}
	if (vol->sems && !vol->hurry && sg_load64(&vol->sems->bells) == SG_SEM_BELLS_WANTED)
		make_bells(vol);
}
