// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting and waking, for all types (docs/semaphores.md).
 *
 * The volume has only one bit for each system that has sleepers; the order of these is in that
 * system's own memory. So a dead waiter leaves at most a bit, which does not count when its system
 * is not live.
 *
 * A waiter sets the bit, then sets the flag in the word, by compare-and-swap with the value that it
 * has seen, then sleeps. A giver is a caller that releases an object. If it finds no flag, no
 * thread sleeps, so it need not ring. Otherwise its kernel releases the object. It keeps the flag
 * if there are bits, stores the word, and loads the bits again. Waiter and giver both execute a
 * locked instruction in between. So either a late waiter sees the free word, or the giver sees the
 * waiter's bit. That waiter may already sleep because of the old flag, so the giver sets the flag
 * again, then rings. To ring is to store into the other system's bell, which that system loads
 * regularly, or after a doorbell interrupt. If a ring is lost, each waiter still checks every
 * LOOK_NS.
 *
 * Any caller may take a released object. A waiter that has waited for ASK_NS sets ASKED in the
 * word. Then only the system that has the turn may take the object, and in that system only the
 * first waiter. A system that does not take it within PATIENCE_NS loses its turn.
 */
#include "sem/sem.h"

#define SPINS_MIN	16
#define SPINS_MAX	512
/* about the time of a sleep and a wake-up between systems */
#define LONG_NS		300000ULL
/* SPIN_NS as a number of turns, if the clock does not move */
#define LONG_TURNS	30000
/* a long spin in one of this many waits for which a short spin was not enough */
#define LONG_EACH	8
#define ASK_NS		5000000ULL
#define PATIENCE_NS	10000000ULL
#define LOOK_NS		20000000ULL	/* between checks of a waiter, if a thread polls the bell */
/* the same after a wait of CALM_NS, if each other system can ring this one by a doorbell */
#define LOOK_BELL_NS	100000000ULL
#define CALM_NS		1000000000ULL
#define GRACE_NS	20000000ULL	/* for a doorbell that is later than the store before it */
#define NAP_MIN_NS 50000ULL /* if no thread polls the bell, a waiter sleeps for 1/8 of its wait, in
#these limits */
#define NAP_MAX_NS	2000000ULL
#define WAKE_DIRECTLY	16	/* waiters that an interrupt wakes itself */
#define POLL_IDLE_NS	1000000000ULL
/* number of consecutive changes of a word after which the caller sleeps anyway */
#define MISSES		100

struct sg_sems *sg_sems_make(void)
{
	struct sg_sems *s = sg_alloc(sizeof(*s));

	if (!s)
		return NULL;
	sg_spin_init(&s->spin);
	sg_bell_init(&s->poller);
	s->spins = SPINS_MIN;
	return s;
}

void sg_sems_free(struct sg_vol *vol)
{
	struct sg_sems *s = vol->sems;
	unsigned int i;

	if (!s)
		return;
	SG_ASSERT(!s->first);
	while (s->closing) {
		struct sg_sem_closing *c = s->closing;

		s->closing = c->next;
		sg_free(c);
	}
	for (i = 0; i < SG_SEM_BUCKETS; i++) {
		while (s->open[i]) {
			struct sg_sem_opened *o = s->open[i];

			s->open[i] = o->next;
			sg_free(o);
		}
	}
	sg_bell_end(&s->poller);
	sg_free(s);
	vol->sems = NULL;
}

/* --- waiters of this system ------------------------------------------------------------------- */

/* Returns the first caller of this system that waits for the object. @spin is held. */
static struct sg_sem_caller *first_for(const struct sg_sems *s, u64 waits)
{
	struct sg_sem_caller *c = s->first;

	while (c && c->waits_for != waits)
		c = c->after;
	return c;
}

/*
 * Inserts a caller after the last waiter for the same object; an urgent caller after the last
 * urgent one.
 */
static void insert(struct sg_sems *s, struct sg_sem_caller *c)
{
	struct sg_sem_caller *at = first_for(s, c->waits_for), *before = at ? at->before : NULL;

	for (; at && at->waits_for == c->waits_for && !(c->urgent && !at->urgent); at = at->after)
		before = at;
	if (!before)
		at = s->first;
	c->before = before;
	c->after = at;
	if (at)
		at->before = c;
	if (before)
		before->after = c;
	else
		s->first = c;
}

static void take_out(struct sg_sems *s, struct sg_sem_caller *c)
{
	if (c->before)
		c->before->after = c->after;
	else
		s->first = c->after;
	if (c->after)
		c->after->before = c->before;
}

static bool is_first_here(const struct sg_sem_want *w)
{
	struct sg_sems *s = w->vol->sems;
	bool first;

	sg_spin_lock(&s->spin);
	first = first_for(s, w->sem->waits) == w->c;
	sg_spin_unlock(&s->spin);
	return first;
}

static bool others_have(const struct sg_sem_want *w)
{
	return sg_load64(&sg_sem_record(w->vol, w->sem)->users) & ~(1ULL << w->vol->slot);
}

/*
 * Counts a waiter whose object another system has open. Only a system with the object open rings.
 * If there is no such waiter, no thread polls the bell.
 */
void sg_sem_note_others(struct sg_sem_want *w, bool waits)
{
	bool others = waits && others_have(w);
	struct sg_sems *s = w->vol->sems;

	if (others == w->others)
		return;
	w->others = others;
	if (sg_add64(&s->nothers, others ? 1 : ~0ULL) == 0)
		sg_bell_ring(&s->poller);
}

void sg_sem_queue(struct sg_sem_want *w)
{
	struct sg_sems *s = w->vol->sems;
	struct sg_sem_caller *c = w->c;

	c->waits_for = w->sem->waits;
	c->herd = w->herd;
	sg_spin_lock(&s->spin);
	insert(s, c);
	if (!sg_sem_lost(w->vol, w->sem))
		sg_or64(&sg_sem_waits(w->vol, w->sem)->waiters, 1ULL << w->vol->slot);
	sg_spin_unlock(&s->spin);
	w->queued = true;
	sg_store64(&s->busy, sg_ticks());
}

void sg_sem_leave(struct sg_sem_want *w)
{
	struct sg_sems *s = w->vol->sems;

	sg_sem_note_others(w, false);
	sg_spin_lock(&s->spin);
	take_out(s, w->c);
	if (!first_for(s, w->sem->waits) && sg_sem_usable(w->vol, w->sem))
		sg_and64(&sg_sem_waits(w->vol, w->sem)->waiters, ~(1ULL << w->vol->slot));
	sg_spin_unlock(&s->spin);
	w->queued = false;
}

/* --- turns ------------------------------------------------------------------------------------ */

/*
 * Reports whether a thread of that slot sleeps. A bit counts while its slot is LIVE; otherwise the
 * function clears the bit. If the slot's next owner also waits, it sets the bit again at its next
 * check.
 */
static bool sleeps(const struct sg_vol *vol, struct sg_sem_waits *r, unsigned int slot)
{
	if (!(sg_load64(&r->waiters) >> slot & 1))
		return false;
	if (SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, slot))) == SG_SLOT_LIVE)
		return true;
	if (sg_is_ours(vol))
		sg_and64(&r->waiters, ~(1ULL << slot));
	return false;
}

/* Returns the next system with sleepers, after the one that had the last turn; or -1. */
static int next_in_turn(const struct sg_vol *vol, const struct sg_sem *sem)
{
	struct sg_sem_waits *r = sg_sem_waits(vol, sem);
	unsigned int last = (unsigned int)sg_load64(&r->last) % SG_SLOTS, i;

	for (i = 1; i <= SG_SLOTS && sg_load64(&r->waiters); i++)
		if (sleeps(vol, r, (last + i) % SG_SLOTS))
			return (int)((last + i) % SG_SLOTS);
	return -1;
}

/*
 * Ends the turn of another system that does not take it, because it is paused, or has no waiter
 * left.
 */
static bool skip_turn(struct sg_sem_want *w, u64 word, unsigned int whose)
{
	u64 now = sg_ticks();

	if (!w->free_since || w->free_word != word) {
		w->free_since = now;
		w->free_word = word;
		/* that system may not have seen its turn yet */
		sg_sem_wake_slot(w->vol, w->sem, whose);
		return false;
	}
	if (now - w->free_since < PATIENCE_NS)
		return false;
	/* a waiter there sets the bit again at its next check */
	sg_and64(&sg_sem_waits(w->vol, w->sem)->waiters, ~(1ULL << whose));
	w->free_since = 0;
	return true;
}

bool sg_sem_may_take(struct sg_sem_want *w, u64 word)
{
	int whose;

	if (!sg_is_ours(w->vol))
		return false;
	if (!(word & SG_SEMW_ASKED))
		return true;
	if (!w->queued || !is_first_here(w))
		return false;
	do {
		whose = next_in_turn(w->vol, w->sem);
		if (whose < 0 || whose == w->vol->slot)
			return true;
	} while (skip_turn(w, word, (unsigned int)whose));
	return false;
}

void sg_sem_taken(const struct sg_sem_want *w, u64 word)
{
	/* only for a take in turn: other takes must not move the turn */
	if (w->queued && word & SG_SEMW_ASKED)
		sg_store64(&sg_sem_waits(w->vol, w->sem)->last, (u64)w->vol->slot);
}

/* --- wake ------------------------------------------------------------------------------------- */

static void wake_here(struct sg_vol *vol, u64 waits, bool all)
{
	struct sg_sems *s = vol->sems;
	struct sg_sem_caller *c;

	sg_spin_lock(&s->spin);
	c = first_for(s, waits);
	for (; c && c->waits_for == waits; c = all || c->herd ? c->after : NULL)
		sg_bell_ring(&c->bell);
	sg_spin_unlock(&s->spin);
}

/*
 * Wakes the first waiter of each object, or all of them if they wait together, because the bell
 * does not name the object. Returns false if there are more than @most waiters. @spin is held.
 */
static bool wake_firsts(struct sg_sems *s, u64 most)
{
	struct sg_sem_caller *c;

	for (c = s->first; c && most; c = c->after, most--)
		if (c->herd || !c->before || c->before->waits_for != c->waits_for)
			sg_bell_ring(&c->bell);
	return !c;
}

static void wake_all_here(struct sg_vol *vol)
{
	struct sg_sems *s = vol->sems;

	sg_spin_lock(&s->spin);
	wake_firsts(s, ~0ULL);
	sg_spin_unlock(&s->spin);
}

void sg_sem_wake_slot(struct sg_vol *vol, const struct sg_sem *sem, unsigned int slot)
{
	struct sg_sem_bell *bells;
	u64 off;
	int err;

	if ((int)slot == vol->slot) {
		wake_here(vol, sem->waits, false);
		return;
	}
	off = sg_sem_page_at(vol, SG_SEM_BELLS_PAGE, &err);
	if (!off || slot >= SG_SLOTS || sg_is_silenced(vol))
		return;
	bells = sg_at(vol, off);
	sg_add64(&bells[slot].rung, 1);
	sg_doorbell_ring(vol, slot);
}

void sg_sem_wake_next(struct sg_vol *vol, const struct sg_sem *sem)
{
	int whose = next_in_turn(vol, sem);

	if (whose >= 0)
		sg_sem_wake_slot(vol, sem, (unsigned int)whose);
}

void sg_sem_wake_all(struct sg_vol *vol, const struct sg_sem *sem)
{
	struct sg_sem_waits *r = sg_sem_waits(vol, sem);
	unsigned int i;

	for (i = 0; i < SG_SLOTS && sg_load64(&r->waiters); i++) {
		if (!sleeps(vol, r, i))
			continue;
		if ((int)i == vol->slot)
			wake_here(vol, sem->waits, true);
		else
			sg_sem_wake_slot(vol, sem, i);
	}
}

void sg_sem_ring(struct sg_vol *vol, const struct sg_sem *sem)
{
	if (!sg_sem_usable(vol, sem))
		return;
	if (sem->type == SG_SEM_MUTEX || sem->type == SG_SEM_COUNT)
		sg_sem_wake_next(vol, sem);
	else
		sg_sem_wake_all(vol, sem);
}

void sg_sem_given(struct sg_vol *vol, const struct sg_sem *sem, u64 left, bool all)
{
	if (!(left & SG_SEMW_WAITERS) && sg_load64(&sg_sem_waits(vol, sem)->waiters))
		sg_or64(sg_sem_word(vol, sem), SG_SEMW_WAITERS);
	if (all)
		sg_sem_wake_all(vol, sem);
	else
		sg_sem_wake_next(vol, sem);
}

u64 sg_sem_flags_left(const struct sg_vol *vol, const struct sg_sem *sem, u64 word)
{
	u64 waiters = sg_load64(&sg_sem_waits(vol, sem)->waiters);

	return waiters ? SG_SEMW_WAITERS | (word & SG_SEMW_ASKED) : 0;
}

/* --- poll ------------------------------------------------------------------------------------- */

void sg_sem_poll_begin(struct sg_vol *vol, bool on)
{
	sg_store64(&vol->sems->polled, on);
	sg_bell_ring(&vol->sems->poller);
}

/*
 * Wakes a few waiters directly, because a wake-up of the polling thread before them would double
 * the delay. That thread wakes many waiters, and acts if the interrupt came while the list's lock
 * was held.
 */
void sg_sem_rung(struct sg_vol *vol)
{
	struct sg_sems *s = vol->sems;
	bool woken;

	sg_store64(&s->busy, sg_ticks());
	if (sg_spin_trylock(&s->spin)) {
		woken = wake_firsts(s, WAKE_DIRECTLY);
		sg_spin_unlock(&s->spin);
		if (woken)
			return;
	}
	sg_bell_ring(&s->poller);
}

/* Returns the time between checks that find lost rings; @waited: how long the caller has waited. */
static u64 look_ns(const struct sg_vol *vol, u64 waited)
{
	return waited > CALM_NS && sg_doorbell_covers(vol) ? LOOK_BELL_NS : LOOK_NS;
}

/*
 * Returns the time between checks of the bell: short during a fast exchange, later longer. A
 * thousand checks a second cost one per cent of a processor. For a caller that has waited for
 * seconds, some milliseconds more do not matter. With doorbells, checks only find lost rings.
 */
static u64 poll_nap(const struct sg_vol *vol)
{
	const struct sg_sems *s = vol->sems;
	u64 quiet = sg_ticks() - sg_load64(&s->busy);

	if (!sg_load64(&s->nothers))
		return sg_load64(&s->watches) ? look_ns(vol, quiet) : POLL_IDLE_NS;
	if (sg_doorbell_covers(vol))
		return look_ns(vol, quiet);
	if (quiet < 50000000ULL)
		return quiet < 2000000ULL ? 50000 : 200000;
	return quiet < 2000000000ULL ? 1000000 : 4000000;
}

/* Rings watches, which have no thread that checks every LOOK_NS, as other waiters have. */
static void wake_watches(struct sg_vol *vol)
{
	struct sg_sems *s = vol->sems;
	u64 now = sg_ticks();
	struct sg_sem_caller *c;

	if (!sg_load64(&s->watches) ||
	    now - s->watched < look_ns(vol, now - sg_load64(&s->busy)))
		return;
	s->watched = now;
	sg_spin_lock(&s->spin);
	for (c = s->first; c; c = c->after)
		if (c->watch && sg_sem_watch_is_due(vol, c->watch))
			sg_bell_ring(&c->bell);
	sg_spin_unlock(&s->spin);
}

/*
 * Another system has changed the bell, and no doorbell had arrived by then: it is late or lost. If
 * it was lost, this thread polls for some time.
 */
static void find_lost(struct sg_vol *vol, u64 rings)
{
	if (!sg_doorbell_covers(vol))
		return;
	sg_bell_wait(&vol->sems->poller, GRACE_NS);
	sg_bell_ring(&vol->sems->poller);	/* this thread may have slept through a ring */
	if (sg_load64(&vol->doorbells.rings) == rings)
		sg_doorbell_lost(vol);
}

void sg_sem_poll(struct sg_vol *vol)
{
	const struct sg_sem_bell *bells;
	struct sg_sems *s = vol->sems;
	u64 off, rung, rings;
	int err;

	sg_bell_wait(&s->poller, poll_nap(vol));
	wake_watches(vol);
	off = sg_sem_page_at(vol, SG_SEM_BELLS_PAGE, &err);
	if (!off)
		return;
	bells = sg_at(vol, off);
	rung = sg_load64(&bells[vol->slot].rung);
	if (rung == s->rung)
		return;
	s->rung = rung;
	rings = sg_load64(&vol->doorbells.rings);
	sg_store64(&s->busy, sg_ticks());
	wake_all_here(vol);
	if (rings == s->rings)
		find_lost(vol, rings);
	s->rings = rings;
}

/* --- wait ------------------------------------------------------------------------------------- */

int sg_sem_not_yet(struct sg_sem_want *w, u64 word)
{
	u64 say = word | SG_SEMW_WAITERS, bit = 1ULL << w->vol->slot;
	struct sg_sem_waits *r = sg_sem_waits(w->vol, w->sem);

	if (!w->queued || !sg_is_ours(w->vol))
		return -EAGAIN;
	if (!(sg_load64(&r->waiters) & bit))
		/* another system has cleared the bit, because this one did not take its turn */
		sg_or64(&r->waiters, bit);
	if (w->takes && (w->c->urgent || sg_ticks() - w->since > ASK_NS))
		say |= SG_SEMW_ASKED;
	if (say == word || sg_cas64(sg_sem_word(w->vol, w->sem), word, say) == word)
		return -EAGAIN;
	return SG_SEM_CHANGED;
}

static int sem_wait_look(struct sg_sem_want *w)
{
	unsigned int i;
	int err = SG_SEM_CHANGED;

	for (i = 0; i < MISSES && err == SG_SEM_CHANGED; i++)
		err = w->look(w);
	return err == SG_SEM_CHANGED ? -EAGAIN : err;
}

/* Spins before a sleep, as long as was successful recently. */
static int spin(struct sg_sem_want *w)
{
	struct sg_sems *s = w->vol->sems;
	u64 turns = sg_load64(&s->spins), i;
	int err = -EAGAIN;

	for (i = 0; i < turns && err == -EAGAIN; i++) {
		sg_relax();
		err = sem_wait_look(w);
	}
	sg_store64(&s->spins, err == -EAGAIN ? SG_MAX(turns / 2, (u64)SPINS_MIN) :
					       SG_MIN(turns * 2, (u64)SPINS_MAX));
	return err;
}

/*
 * Reports whether another system may soon release the object to any caller that checks. A thread
 * does not spin for an owner in this system, because the owner may need this processor. With turns
 * only queued callers get the object.
 */
static bool may_come(const struct sg_sem_want *w)
{
	u64 word = sg_load64(sg_sem_word(w->vol, w->sem));

	if (!others_have(w) || w->c->urgent || (w->takes && word & SG_SEMW_ASKED))
		return false;
	return w->sem->type != SG_SEM_MUTEX || (int)SG_SEMW_SLOT(word) != w->vol->slot;
}

/*
 * Spins longer for an object that other systems release, if such spins succeeded recently. Sleepers
 * react late, so two systems that pass an object to each other could both keep sleeping. A long
 * spin now and then, even in vain, makes both spin again.
 */
static int spin_long(struct sg_sem_want *w, u64 until)
{
	struct sg_sem_patience *p = sg_sem_patience(w->vol->sems, w->sem->rec);
	u64 ns = sg_load64(&p->ns), begun = sg_ticks(), took = 0;
	unsigned int turn;
	int err = -EAGAIN;

	if (!ns && sg_add64(&p->missed, 1) % LONG_EACH == 0)
		ns = LONG_NS;
	for (turn = 0; turn < LONG_TURNS && err == -EAGAIN && took < ns; turn++) {
		if (begun + took >= until || !may_come(w))
			return err;	/* such a wait does not show how long other waits take */
		if (sg_wanted())
			sg_yield();
		sg_relax();
		err = sem_wait_look(w);
		took = sg_ticks() - begun;
	}
	if (err == -EAGAIN && ns)
		sg_store64(&p->ns, ns < LONG_NS / 8 ? 0 : ns / 2);
	else if (!err)
		sg_store64(&p->ns, SG_MIN(SG_MAX(took * 4, ns), LONG_NS));
	return err;
}

static u64 nap(const struct sg_sem_want *w, u64 now)
{
	u64 waited = now - w->since, ns = waited / 8;

	if (sg_load64(&w->vol->sems->polled))
		ns = w->takes && waited < ASK_NS ? ASK_NS : look_ns(w->vol, waited);
	else
		ns = SG_MIN(SG_MAX(ns, NAP_MIN_NS), NAP_MAX_NS);
	return SG_MIN(ns, w->until - now);
}

/* Makes one turn of a wait. 0: continue. */
static int sem_wait_is_over(const struct sg_sem_want *w, u64 now)
{
	if (sg_is_silenced(w->vol))
		return -EIO;
	if (sg_load64(&w->c->cancelled) || sg_interrupted())
		return -EINTR;
	return now >= w->until ? -ETIMEDOUT : 0;
}

/* Wakes the next waiter, because this caller may have consumed a ring for it. */
static void pass_on(const struct sg_sem_want *w, int err)
{
	u64 word;

	if (!w->takes || sg_sem_lost(w->vol, w->sem))
		return;
	word = sg_load64(sg_sem_word(w->vol, w->sem));
	if (!(word & SG_SEMW_WAITERS))
		return;
	if (err || (w->sem->type == SG_SEM_COUNT && word & SG_SEMW_VALUE))
		sg_sem_wake_next(w->vol, w->sem);
}

int sg_sem_wait_for(struct sg_sem_want *w, u64 until)
{
	u64 now;
	int err;

	if (!sg_sem_usable(w->vol, w->sem))
		return -EIO;
	err = sem_wait_look(w);
	if (err != -EAGAIN || !until)
		return err;
	err = spin(w);
	if (err == -EAGAIN && may_come(w))
		err = spin_long(w, until);
	if (err != -EAGAIN)
		return err;
	w->until = until;
	w->since = sg_ticks();
	sg_sem_queue(w);
	for (;;) {
		err = sg_sem_usable(w->vol, w->sem) ? sem_wait_look(w) : -EIO;
		if (err != -EAGAIN)
			break;
		sg_sem_note_others(w, true);
		now = sg_ticks();
		err = sem_wait_is_over(w, now) ?: sg_bell_wait(&w->c->bell, nap(w, now));
		if (err)
			break;
		sg_epoch_acknowledge(w->vol);
	}
	sg_sem_leave(w);
	pass_on(w, err);
	return err;
}
