// SPDX-License-Identifier: GPL-2.0
/*
 * Locks of users: flock, fcntl and open-file locks between systems (docs/protocol.md, section 6).
 *
 * A record belongs to its system until it is unused again. Other systems read it, and clear it
 * after that system has ended; all of this needs the chain's lock. So no store has to be durable.
 * But a system that dies during a change must keep all its earlier locks until it has been
 * recovered. So it stores new records before it shortens old ones.
 */
#include "internal.h"

#define QUEUE_NS	20000000ULL	/* longest wait for a chain, in the queue of its waiters */

#define COURTESY_NS	1000000000ULL	/* how long a request yields to earlier ones */
/*
 * A caller that tries again soon makes its request only after this time. Until then a release need
 * not ring for it: in a fast exchange, doorbells would only cost time. A request for a POSIX lock
 * is made at once, because the search for cycles follows requests, and may search only once.
 */
#define REQUEST_NS	300000ULL

/* --- chains ----------------------------------------------------------------------------------- */

static unsigned int chain_of(u64 ino)
{
	return (unsigned int)(ino * 0x9e3779b97f4a7c15ULL >> 32) % SG_USERLOCK_CHAINS;
}

struct sg_userlock_page *sg_userlock_page(struct sg_vol *vol, unsigned int nr, unsigned int k,
					  int *err)
{
	const struct sg_iref file = sg_sys_ref(SG_SYS_LOCKS);
	struct sg_run run;

	*err = sg_walk(vol, &file, nr + (u64)k * SG_USERLOCK_CHAINS, 1, &run);
	return *err || !run.off ? NULL : sg_at(vol, run.off);
}

int sg_userlock_grow(struct sg_vol *vol, unsigned int nr, unsigned int k)
{
	const struct sg_iref file = sg_sys_ref(SG_SYS_LOCKS);
	int err;

	if (k >= SG_USERLOCK_CHAIN_PAGES)
		return -ENOLCK;
	err = sg_allocate(vol, &file, nr + (u64)k * SG_USERLOCK_CHAINS, 1);
	return err == -ENOSPC || err == -EROFS ? -ENOLCK : err;
}

/*
 * Reports whether a record counts. A request counts while its system is live, and a lock until its
 * system has been recovered (D6).
 */
static bool lock_table_counts(const struct sg_vol *vol, u64 head)
{
	unsigned int slot = SG_USERLOCK_SLOT(head);
	u64 state;

	if (!SG_USERLOCK_KIND(head) || slot >= SG_SLOTS ||
	    SG_USERLOCK_HEAD(SG_USERLOCK_WHAT(head) & SG_USERLOCK_KNOWN, slot,
			     SG_USERLOCK_INC(head)) != head)
		return false;
	state = sg_load64_acquire(sg_state_word(vol, slot));
	if (SG_SLOT_INC(state) != SG_USERLOCK_INC(head))
		return false;
	if (head & SG_USERLOCK_WAITING)
		return SG_SLOT_STATE(state) == SG_SLOT_LIVE;
	return SG_SLOT_STATE(state) != SG_SLOT_FREE;
}

/* Reports whether a range can be shown to users, and used in calculations here. */
static bool has_range(const struct sg_userlock_record *r)
{
	u64 start = sg_load64(&r->start), last = sg_load64(&r->last);

	return start <= last && last <= SG_USERLOCK_MAX;
}

/* Clears invalid records, finds unused ones, and counts waiting requests. */
static void lock_table_survey_page(struct sg_userlock_chain *c, struct sg_userlock_page *page,
				   u64 *waiting)
{
	unsigned int i;

	for (i = 0; i < SG_USERLOCK_RECORDS; i++) {
		struct sg_userlock_record *rec = &page->record[i];
		u64 head = sg_load64(&rec->head);

		if (head && (!lock_table_counts(c->vol, head) || !has_range(rec))) {
			sg_store64(&rec->head, 0);
			head = 0;
		}
		if (!head && c->spares < SG_USERLOCK_SPARES)
			c->spare[c->spares++] = rec;
		if (head & SG_USERLOCK_WAITING)
			c->waiting |= 1ULL << (SG_USERLOCK_SLOT(head) & (SG_SLOTS - 1));
		*waiting += head & SG_USERLOCK_WAITING &&
			    SG_USERLOCK_KIND(head) == SG_USERLOCK_POSIX;
	}
}

static int survey(struct sg_userlock_chain *c)
{
	struct sg_userlock_page *page = c->first;
	u64 waiting = 0;
	int err = 0;

	c->spares = 0;
	c->waiting = 0;
	for (c->pages = 0; page; ) {
		lock_table_survey_page(c, page, &waiting);
		if (++c->pages == SG_USERLOCK_CHAIN_PAGES)
			break;
		page = sg_userlock_page(c->vol, c->nr, c->pages, &err);
	}
	if (sg_load64(&c->first->waiting) != waiting)
		sg_store64(&c->first->waiting, waiting);
	return err;
}

static unsigned int make_releases(struct sg_userlock_chain *c);

int sg_userlock_enter(struct sg_vol *vol, unsigned int nr, struct sg_userlock_chain *c,
		      enum sg_userlock_patience patience)
{
	u64 lock;
	int err;

	if (vol->slot < 0)
		return -EROFS;
	c->vol = vol;
	c->nr = nr;
	c->gave = false;
	c->first = sg_userlock_page(vol, nr, 0, &err);
	if (!c->first)
		return err ? err : -ENOENT;
	lock = (u64)((u8 *)&c->first->lock - vol->base);
	if (patience == SG_USERLOCK_TRY)
		err = sg_trylock(vol, lock) ? 0 : -EBUSY;
	else if (patience == SG_USERLOCK_QUEUE)
		err = sg_lock_for(vol, lock, QUEUE_NS);
	else
		err = patience == SG_USERLOCK_BRIEF ? sg_lock_brief(vol, lock) : sg_lock(vol, lock);
	if (err)
		return err;
	err = survey(c);
	if (!err && make_releases(c)) {
		c->gave = true;
		err = survey(c);
	}
	if (err)
		sg_userlock_leave(c);
	return err;
}

/*
 * A request was made with the chain locked. So it was here when this system locked the chain, or
 * the other system finds the change itself.
 */
void sg_userlock_leave(struct sg_userlock_chain *c)
{
	u64 waiting = c->gave ? c->waiting : 0;

	sg_unlock(c->vol, (u64)((u8 *)&c->first->lock - c->vol->base));
	for (; waiting; waiting &= waiting - 1)
		sg_doorbell_ring(c->vol, sg_ctz64(waiting));
}

static void load(const struct sg_userlock_record *rec, struct sg_userlock_record *copy)
{
	copy->head = sg_load64(&rec->head);
	copy->owner = sg_load64(&rec->owner);
	copy->ino = sg_load64(&rec->ino);
	copy->who = sg_load64(&rec->who);
	copy->start = sg_load64(&rec->start);
	copy->last = sg_load64(&rec->last);
	copy->ticket = sg_load64(&rec->ticket);
}

static void lock_table_put(struct sg_userlock_record *rec, const struct sg_userlock_record *r)
{
	sg_store64(&rec->owner, r->owner);
	sg_store64(&rec->ino, r->ino);
	sg_store64(&rec->who, r->who);
	sg_store64(&rec->start, r->start);
	sg_store64(&rec->last, r->last);
	sg_store64(&rec->ticket, r->ticket);
	sg_store64_release(&rec->head, r->head);	/* from here on the record counts */
}

/*
 * Reports whether a record is valid: any system may have stored it, and an invalid record is no
 * lock.
 */
static bool plausible(const struct sg_userlock_record *r)
{
	return SG_USERLOCK_KIND(r->head) && SG_USERLOCK_SLOT(r->head) < SG_SLOTS &&
	       has_range(r);
}

struct sg_userlock_record *sg_userlock_next(const struct sg_userlock_chain *c,
					    struct sg_userlock_at *at,
					    struct sg_userlock_record *copy)
{
	int err;

	for (; at->page < c->pages; at->page++, at->in = NULL, at->i = 0) {
		if (!at->in && at->page && sg_wanted())
			sg_yield();	/* a chain may be long, and is searched often */
		if (!at->in)
			at->in = sg_userlock_page(c->vol, c->nr, at->page, &err);
		while (at->in && at->i < SG_USERLOCK_RECORDS) {
			struct sg_userlock_record *rec = &at->in->record[at->i++];

			if (!sg_load64(&rec->head))
				continue;
			load(rec, copy);
			if (plausible(copy))
				return rec;
		}
	}
	return NULL;
}

/* --- exclusion -------------------------------------------------------------------------------- */

static bool same_file(const struct sg_userlock_record *a, const struct sg_userlock_record *b)
{
	bool flock = SG_USERLOCK_KIND(a->head) == SG_USERLOCK_FLOCK;

	return a->ino == b->ino && (u32)a->who == (u32)b->who &&
	       flock == (SG_USERLOCK_KIND(b->head) == SG_USERLOCK_FLOCK);
}

static bool overlap(const struct sg_userlock_record *a, const struct sg_userlock_record *b)
{
	return a->start <= b->last && b->start <= a->last;
}

static bool excludes(const struct sg_userlock_record *a, const struct sg_userlock_record *b)
{
	return (a->head | b->head) & SG_USERLOCK_EXCLUSIVE && same_file(a, b) && overlap(a, b) &&
	       !sg_userlock_same_owner(a, b);
}

bool sg_userlock_held(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
		      struct sg_userlock_record *by)
{
	struct sg_userlock_at at = {};

	while (sg_userlock_next(c, &at, by))
		if (!(by->head & SG_USERLOCK_WAITING) && excludes(by, want))
			return true;
	return false;
}

/*
 * Returns, of the held locks that exclude @want, the one that begins first. So a program that
 * queries again behind each result finds all these locks, in whatever order the chain has them.
 */
static bool first_in_the_way(const struct sg_userlock_chain *c,
			     const struct sg_userlock_record *want, struct sg_userlock_record *by)
{
	struct sg_userlock_at at = {};
	struct sg_userlock_record r;
	bool found = false;

	while (sg_userlock_next(c, &at, &r)) {
		if (r.head & SG_USERLOCK_WAITING || !excludes(&r, want) ||
		    (found && r.start >= by->start))
			continue;
		*by = r;
		found = true;
	}
	return found;
}

/* Visits the owner's own locks of the file, without requests. */
static struct sg_userlock_record *next_own(const struct sg_userlock_chain *c,
					   struct sg_userlock_at *at,
					   const struct sg_userlock_record *want,
					   struct sg_userlock_record *copy)
{
	struct sg_userlock_record *rec;

	while ((rec = sg_userlock_next(c, at, copy)))
		if (!(copy->head & SG_USERLOCK_WAITING) && same_file(copy, want) &&
		    sg_userlock_same_owner(copy, want))
			return rec;
	return NULL;
}

#define QUEUE_LOOKS	16384	/* about one pass over the longest chain */

/*
 * Reports whether a request waits for a lock of @want's owner. The chain is locked, and the
 * function compares each pair of records. So after too many comparisons it returns true: yielding
 * to an earlier request is optional.
 */
static bool queue_waits_for(const struct sg_userlock_chain *c,
			    const struct sg_userlock_record *want)
{
	unsigned int looks = QUEUE_LOOKS;
	struct sg_userlock_at at = {};
	struct sg_userlock_record own, r;

	while (next_own(c, &at, want, &own)) {
		struct sg_userlock_at in = {};

		while (sg_userlock_next(c, &in, &r))
			if (!looks-- || (r.head & SG_USERLOCK_WAITING && excludes(&own, &r)))
				return true;
	}
	return false;
}

/*
 * Reports whether this request must yield to an earlier one that it would overtake. Otherwise a
 * stream of readers would block a writer forever. The request does not yield if the queue waits for
 * its owner, because that would help no request. A converted flock yields, because the conversion
 * releases its lock. A request yields only for a limited time, because its owner may hold other
 * locks, or users may wait for it in ways that are not recorded here.
 */
static bool steps_back(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
		       const struct sg_userlock_wait *wait, struct sg_userlock_record *behind)
{
	bool flock = SG_USERLOCK_KIND(want->head) == SG_USERLOCK_FLOCK;
	struct sg_userlock_at at = {};

	if (wait->since && sg_ticks() - wait->since > COURTESY_NS)
		return false;
	while (sg_userlock_next(c, &at, behind))
		if (behind->head & SG_USERLOCK_WAITING && excludes(behind, want) &&
		    (!wait->ticket || behind->ticket < wait->ticket))
			return flock || !queue_waits_for(c, want);
	return false;
}

/* --- change ----------------------------------------------------------------------------------- */

struct request {
	struct sg_userlock_record want, by;
	struct sg_userlock_wait *wait;
	int (*follow)(void *arg);
	void *arg;
	bool clear, brief;
	/* -EAGAIN: the lock is held; otherwise another request was first */
	bool held;
};

/*
 * Enters the lock in the caller's own table first, while the chain is locked. If there is no memory
 * for that, nothing has been stored yet, and the owner still has its earlier locks.
 */
static int lock_table_follow(const struct request *q)
{
	return q->follow ? q->follow(q->arg) : 0;
}

static bool same_type(const struct sg_userlock_record *a, const struct sg_userlock_record *b)
{
	return !((a->head ^ b->head) & SG_USERLOCK_EXCLUSIVE);
}

/*
 * Computes @all: @want merged with the owner's locks of the same type that it touches. Returns
 * whether it splits another lock.
 */
static bool grow_by_own(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
			bool clear, struct sg_userlock_record *all)
{
	struct sg_userlock_at at = {};
	struct sg_userlock_record r;
	bool splits = false;

	*all = *want;
	while (next_own(c, &at, want, &r)) {
		if (clear || !same_type(&r, want)) {
			splits |= r.start < want->start && r.last > want->last;
		} else if (r.start <= want->last + 1 && want->start <= r.last + 1) {
			all->start = SG_MIN(all->start, r.start);
			all->last = SG_MAX(all->last, r.last);
		}
	}
	return splits;
}

/*
 * Removes [want->start, want->last] from a lock. If the lock extends beyond both ends, the function
 * first stores the part behind the range in a spare record. If another system has changed the
 * owner's records since they were counted, there may be no spare record, and that part is lost.
 */
static void cut(struct sg_userlock_chain *c, struct sg_userlock_record *rec,
		const struct sg_userlock_record *r, const struct sg_userlock_record *want)
{
	bool left = r->start < want->start, right = r->last > want->last;
	struct sg_userlock_record end = *r;

	c->gave = true;
	if (left && right && c->spares) {
		end.start = want->last + 1;
		lock_table_put(c->spare[--c->spares], &end);
	} else if (left && right) {
		sg_damaged(c->vol, r->ino, (u64)((u8 *)rec - c->vol->base),
			   "file lock has changed");
	}
	if (left)
		sg_store64(&rec->last, want->start - 1);
	else if (right)
		sg_store64(&rec->start, want->last + 1);
	else
		sg_store64(&rec->head, 0);
}

/* Changes the owner's locks as requested. -ENOBUFS: the chain must grow first. */
static int lock_table_change(struct sg_userlock_chain *c, const struct request *q)
{
	const struct sg_userlock_record *want = &q->want;
	struct sg_userlock_at at = {};
	struct sg_userlock_record all, r, *rec, *made = NULL;
	bool clear = q->clear;
	unsigned int need = grow_by_own(c, want, clear, &all) + !clear;
	int err;

	if (need > c->spares)
		return -ENOBUFS;
	err = lock_table_follow(q);
	if (err)
		return err;
	if (!clear) {
		made = c->spare[--c->spares];
		lock_table_put(made, &all);
	}
	while ((rec = next_own(c, &at, want, &r))) {
		if (rec == made)
			continue;
		if (!clear && same_type(&r, want)) {
			if (overlap(&r, &all))	/* the lock lies completely inside @all */
				sg_store64(&rec->head, 0);
		} else if (overlap(&r, want)) {
			cut(c, rec, &r, want);
		}
	}
	return 0;
}

/* Reports whether the owner has a flock of this type. */
static bool has_same(const struct sg_userlock_chain *c, const struct sg_userlock_record *want)
{
	struct sg_userlock_at at = {};
	struct sg_userlock_record r;

	while (next_own(c, &at, want, &r))
		if (same_type(&r, want))
			return true;
	return false;
}

/* Removes a flock whose conversion fails (flock(2)). */
static void drop_own(struct sg_userlock_chain *c, const struct sg_userlock_record *want)
{
	struct sg_userlock_at at = {};
	struct sg_userlock_record r, *rec;

	while ((rec = next_own(c, &at, want, &r))) {
		c->gave = true;
		sg_store64(&rec->head, 0);
	}
}

/* --- wait ------------------------------------------------------------------------------------- */

/*
 * Returns the request's record, if it still exists. The record never moves, and no system clears it
 * while this system is live.
 */
static struct sg_userlock_record *place(const struct sg_vol *vol,
					const struct sg_userlock_wait *wait)
{
	struct sg_userlock_record *rec;

	if (!wait->off)
		return NULL;
	rec = sg_at(vol, wait->off);
	return sg_load64(&rec->head) == wait->head && sg_load64(&rec->ticket) == wait->ticket ?
	       rec : NULL;
}

static int stand_in_line(struct sg_userlock_chain *c, const struct sg_userlock_record *want,
			 struct sg_userlock_wait *wait, bool soon)
{
	struct sg_userlock_record r = *want, *rec;

	if (!wait->since)
		wait->since = sg_ticks();
	if (place(c->vol, wait))
		return 0;
	if (soon && SG_USERLOCK_KIND(want->head) != SG_USERLOCK_POSIX &&
	    sg_ticks() - wait->since < REQUEST_NS)
		return 0;
	if (!c->spares)
		return -ENOBUFS;
	rec = c->spare[--c->spares];
	r.head |= SG_USERLOCK_WAITING;
	r.ticket = sg_load64(&c->first->ticket) + 1;
	sg_store64(&c->first->ticket, r.ticket);
	if (SG_USERLOCK_KIND(r.head) == SG_USERLOCK_POSIX)
		sg_store64(&c->first->waiting, sg_load64(&c->first->waiting) + 1);
	lock_table_put(rec, &r);
	wait->off = (u64)((u8 *)rec - c->vol->base);
	wait->head = r.head;
	wait->ticket = r.ticket;
	return 0;
}

static void leave_line(struct sg_vol *vol, struct sg_userlock_wait *wait)
{
	struct sg_userlock_record *rec = place(vol, wait);

	if (rec)
		sg_store64(&rec->head, 0);
	wait->off = 0;
}

/* --- releases that wait ----------------------------------------------------------------------- */

/**
 * struct sg_userlock_release - a release to make as soon as its chain can be locked
 * @want: all locks of its owner in its file. @wait: this request instead of the locks.
 */
struct sg_userlock_release {
	struct sg_userlock_release *next;
	struct sg_userlock_record want;
	struct sg_userlock_wait wait;
};

/*
 * Returns how to wait for a chain. A process that ends may have many locks, and must not wait for
 * each. So only the first of its releases waits briefly; while a release is pending, later ones
 * only try the lock.
 */
static enum sg_userlock_patience release_patience(const struct sg_vol *vol)
{
	return sg_load64(&vol->nreleases) ? SG_USERLOCK_TRY : SG_USERLOCK_BRIEF;
}

/*
 * Records a release. After -ENOMEM the lock remains, and other systems see the lock until this
 * system unmounts.
 */
static int release_later(struct sg_vol *vol, const struct sg_userlock_release *what)
{
	struct sg_userlock_release *r = sg_alloc(sizeof(*r)), **at;

	if (!r)
		return -ENOMEM;
	*r = *what;
	at = &vol->releases[chain_of(r->want.ino)];
	sg_spin_lock(&vol->spin);
	r->next = *at;
	*at = r;
	sg_store64(&vol->nreleases, vol->nreleases + 1);
	sg_spin_unlock(&vol->spin);
	if (vol->on_release)
		vol->on_release(vol);
	return 0;
}

static struct sg_userlock_release *take_releases(struct sg_vol *vol, unsigned int nr)
{
	struct sg_userlock_release *all, *r;
	u64 n = 0;

	sg_spin_lock(&vol->spin);
	all = vol->releases[nr];
	vol->releases[nr] = NULL;
	for (r = all; r; r = r->next)
		n++;
	sg_store64(&vol->nreleases, vol->nreleases - n);
	sg_spin_unlock(&vol->spin);
	return all;
}

/*
 * Makes pending releases before any other use of the chain, because the same owner, or a new one
 * with the same number, may have requested a lock since. A release of complete files splits no
 * lock, so it needs no room. Returns the number of releases made.
 */
static unsigned int make_releases(struct sg_userlock_chain *c)
{
	struct sg_userlock_release *r, *next;
	unsigned int n = 0;

	if (!sg_load64(&c->vol->nreleases))
		return 0;
	for (r = take_releases(c->vol, c->nr); r; r = next, n++) {
		next = r->next;
		if (r->wait.off)
			leave_line(c->vol, &r->wait);
		else
			drop_own(c, &r->want);
		sg_free(r);
	}
	return n;
}

static bool release_waits(struct sg_vol *vol, unsigned int nr)
{
	bool any;

	sg_spin_lock(&vol->spin);
	any = vol->releases[nr];
	sg_spin_unlock(&vol->spin);
	return any;
}

static void forget_releases(struct sg_vol *vol, unsigned int nr)
{
	struct sg_userlock_release *r, *next;

	for (r = take_releases(vol, nr); r; r = next) {
		next = r->next;
		sg_free(r);
	}
}

/* Makes the releases of a chain. If the chain cannot be read, no system finds these locks in it. */
static void release_now(struct sg_vol *vol, unsigned int nr, enum sg_userlock_patience patience)
{
	struct sg_userlock_chain c;
	int err = sg_userlock_enter(vol, nr, &c, patience);

	if (!err)
		sg_userlock_leave(&c);
	else if (err == -EIO || err == -EUCLEAN)
		forget_releases(vol, nr);
}

bool sg_userlock_settle(struct sg_vol *vol, bool wait)
{
	unsigned int nr;

	if (vol->slot < 0 || sg_is_member(vol))
		return true;
	for (nr = 0; nr < SG_USERLOCK_CHAINS && sg_load64(&vol->nreleases); nr++)
		if (release_waits(vol, nr))
			release_now(vol, nr, wait ? SG_USERLOCK_QUEUE : SG_USERLOCK_TRY);
	return !sg_load64(&vol->nreleases);
}

void sg_userlock_forget(struct sg_vol *vol)
{
	unsigned int nr;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++)
		forget_releases(vol, nr);
}

/*
 * Withdraws a request without the chain's lock. No other system clears the request of a live
 * system, and no later system in the slot stores the same head. No other thread of this system uses
 * this record.
 */
static void leave_line_unlocked(struct sg_vol *vol, const struct sg_userlock_wait *wait)
{
	struct sg_userlock_record *rec = place(vol, wait);

	if (rec)
		sg_cas64(&rec->head, wait->head, 0);
}

void sg_userlock_give_up(struct sg_vol *vol, const struct sg_iref *ref,
			 struct sg_userlock_wait *wait)
{
	struct sg_userlock_release later = { .want.ino = ref->ino, .wait = *wait };
	struct sg_userlock_chain c;
	int err;

	if (!wait->off)
		return;
	err = sg_userlock_enter(vol, chain_of(ref->ino), &c, release_patience(vol));
	if (!err) {
		leave_line(vol, wait);
		c.gave = true;
		sg_userlock_leave(&c);
	} else if (err == -EBUSY && release_later(vol, &later)) {
		leave_line_unlocked(vol, wait);
	}
	wait->off = 0;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct sg_userlock_record record_of(const struct sg_vol *vol, const struct sg_iref *ref,
					   const struct sg_userlock *lock)
{
	return (struct sg_userlock_record){
		.head = SG_USERLOCK_HEAD(lock->kind | (lock->exclusive ? SG_USERLOCK_EXCLUSIVE : 0),
					 vol->slot, vol->incarnation),
		.owner = lock->owner,
		.ino = ref->ino,
		.who = (u32)sg_iget(vol, ref, genflags) | (u64)lock->pid << 32,
		.start = lock->start,
		.last = lock->last,
	};
}

static void lock_table_tell(const struct sg_vol *vol, const struct sg_userlock_record *r,
			    struct sg_userlock *out)
{
	unsigned int slot = SG_USERLOCK_SLOT(r->head);

	out->kind = SG_USERLOCK_KIND(r->head);
	out->exclusive = r->head & SG_USERLOCK_EXCLUSIVE;
	out->pid = (u32)(r->who >> 32);
	out->owner = r->owner;
	out->start = r->start;
	out->last = r->last;
	out->slot = (int)slot == vol->slot ? -1 : (int)slot;
}

static bool lock_table_makes_sense(const struct sg_userlock *lock)
{
	return lock->kind >= SG_USERLOCK_POSIX && lock->kind <= SG_USERLOCK_FLOCK &&
	       lock->start <= lock->last && lock->last <= SG_USERLOCK_MAX;
}

static enum sg_userlock_patience lock_table_patience(const struct sg_vol *vol,
						     const struct request *q)
{
	if (q->brief && q->clear)
		return release_patience(vol);
	return q->brief ? SG_USERLOCK_BRIEF : SG_USERLOCK_PATIENT;
}

static int lock_table_attempt(struct sg_userlock_chain *c, struct request *q)
{
	bool flock = SG_USERLOCK_KIND(q->want.head) == SG_USERLOCK_FLOCK;
	int err;

	if (flock && !q->clear && has_same(c, &q->want))
		return lock_table_follow(q);
	q->held = !q->clear && sg_userlock_held(c, &q->want, &q->by);
	if (q->held || (q->wait && steps_back(c, &q->want, q->wait, &q->by))) {
		err = q->wait ? stand_in_line(c, &q->want, q->wait, q->brief) : 0;
		if (!err && flock)
			drop_own(c, &q->want);
		return err ? err : -EAGAIN;
	}
	err = lock_table_change(c, q);
	if (!err && q->wait)
		leave_line(c->vol, q->wait);
	return err;
}

/*
 * Tries a change; if necessary makes the chain longer and tries again, as often as a chain can
 * grow. If brief, tries once.
 */
static int try_request(struct sg_vol *vol, struct request *q)
{
	unsigned int nr = chain_of(q->want.ino), turn, pages;
	struct sg_userlock_chain c;
	int err = 0;

	for (turn = 0; !err && turn <= SG_USERLOCK_CHAIN_PAGES; turn++) {
		pages = 0;
		err = sg_userlock_enter(vol, nr, &c, lock_table_patience(vol, q));
		if (!err) {
			err = lock_table_attempt(&c, q);
			pages = c.pages;
			sg_userlock_leave(&c);
			if (err != -ENOBUFS)
				return err;
		} else if (err != -ENOENT || q->clear) {
			return err == -ENOENT ? 0 : err;
		}
		if (q->brief)
			return -ENOBUFS;
		err = sg_userlock_grow(vol, nr, pages);
	}
	return err ? err : -ENOLCK;
}

int sg_userlock_await(struct sg_vol *vol, const struct sg_iref *ref, int err)
{
	unsigned int nr = chain_of(ref->ino), pages = 0;
	struct sg_userlock_chain c;
	bool grow = err == -ENOBUFS;

	if (sg_interrupted())
		return -EINTR;
	err = sg_userlock_enter(vol, nr, &c, SG_USERLOCK_PATIENT);
	if (!err) {
		pages = c.pages;
		sg_userlock_leave(&c);
	} else if (err != -ENOENT) {
		return err;
	}
	return grow ? sg_userlock_grow(vol, nr, pages) : 0;
}

/* Stores in @wait the POSIX lock that excludes @q, for sg_userlock_circle(). */
static void note_holder(struct sg_userlock_wait *wait, const struct request *q, int err)
{
	if (err == -EAGAIN && q->held && SG_USERLOCK_KIND(q->want.head) == SG_USERLOCK_POSIX) {
		wait->by = q->by.head;
		wait->by_owner = q->by.owner;
		return;
	}
	wait->by = 0;
	wait->blocker = 0;
}

int sg_userlock_set(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		    struct sg_userlock_wait *wait, struct sg_userlock *holder)
{
	struct request q = {
		.wait = wait, .follow = want->follow, .arg = want->arg, .brief = want->brief,
	};
	int err;

	if (!lock_table_makes_sense(want))
		return -EINVAL;
	q.want = record_of(vol, ref, want);
	err = try_request(vol, &q);
	if (wait && err != -EBUSY)
		note_holder(wait, &q, err);
	if (err == -EAGAIN && wait && !q.brief)
		err = sg_userlock_deadlock(vol, ref, want, wait);
	if (err == -EAGAIN && holder)
		lock_table_tell(vol, &q.by, holder);
	return err;
}

int sg_userlock_deadlock(struct sg_vol *vol, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait)
{
	const struct sg_userlock_record record = record_of(vol, ref, want);

	return wait->by ? sg_userlock_circle(vol, ref, &record, wait) : -EAGAIN;
}

int sg_userlock_clear(struct sg_vol *vol, const struct sg_iref *ref,
		      const struct sg_userlock *range)
{
	struct request q = { .clear = true, .brief = range->brief };

	if (!lock_table_makes_sense(range))
		return -EINVAL;
	q.want = record_of(vol, ref, range);
	return try_request(vol, &q);
}

int sg_userlock_clear_later(struct sg_vol *vol, const struct sg_iref *ref,
			    const struct sg_userlock *range)
{
	struct sg_userlock_release later = { .want = record_of(vol, ref, range) };

	SG_ASSERT(!range->start && range->last == SG_USERLOCK_MAX);
	return release_later(vol, &later);
}

int sg_userlock_test(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		     struct sg_userlock *holder)
{
	struct sg_userlock_record w, by;
	struct sg_userlock_chain c;
	int err;

	if (!lock_table_makes_sense(want))
		return -EINVAL;
	w = record_of(vol, ref, want);
	err = sg_userlock_enter(vol, chain_of(ref->ino), &c, SG_USERLOCK_PATIENT);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (first_in_the_way(&c, &w, &by)) {
		lock_table_tell(vol, &by, holder);
		err = -EAGAIN;
	}
	sg_userlock_leave(&c);
	return err;
}
