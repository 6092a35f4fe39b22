// SPDX-License-Identifier: Apache-2.0
/*
 * One thread. The attacker acts at loads and stores of the engine, like another processor: at any
 * of them, and on any structure. More often than a real processor, it changes the word that the
 * engine is about to load, or has just loaded. Time advances when the clock is read, or in a sleep.
 * So time-outs take no real time, and the same seed gives the same round.
 */
#include <stdlib.h>
#include <unistd.h>
#include "hostile.h"

#define MS		((u64)1000000)
/*
 * Limit of loads per operation. The longest ones take SG_READ_TURNS, each with a full list of bad
 * pages.
 */
#define LOADS_MAX	1000000000ULL
/* limit of time per operation, by the clock that advances when it is read */
#define SECONDS_MAX	900ULL
#define KILL_AFTER	(40 * 1000 * MS)	/* time after which a user sends SIGKILL */
#define HELD		8

extern u64 (*sg_ticks_hook)(void);
extern bool (*sg_interrupt_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);
void (*hook_load)(u64 off);

static u64 now, loads;
static struct host *host;		/* the host whose operation runs */

/* --- the clock -------------------------------------------------------------------------------- */

static u64 ticks(void)
{
	return now += 1000;
}

static void sleep_ns(u64 ns)
{
	now += ns;
}

static bool interrupted(void)
{
	return host && ticks() - host->since > KILL_AFTER;
}

void step_clock(bool on)
{
	sg_ticks_hook = on ? ticks : NULL;
	sg_sleep_hook = on ? sleep_ns : NULL;
	sg_interrupt_hook = on ? interrupted : NULL;
}

/* --- the attacker ----------------------------------------------------------------------------- */

/* struct fickle - a word that changes at each load, @left more times. */
struct fickle {
	u64 off, val[2], left;
};

/*
 * struct round - the attacker's state in a round
 * @mean: loads between stores; @left: number of remaining stores; @waits: waits until a system has
 * joined
 */
static struct round {
	struct attacker a;
	struct fickle fickle[HELD];
	u64 mean, until_next, left;
	bool on, busy, waits, sweeps;
} r;

static u64 gap(void)
{
	return 1 + rng_below(&r.a.rng, 2 * r.mean);
}

static void begin_fickle(u64 off)
{
	struct fickle *f = &r.fickle[rng_below(&r.a.rng, HELD)];
	u64 was = *(u64 *)(volume + off);

	*f = (struct fickle){ off, { attack_value(&r.a, off), attack_value(&r.a, off) },
		rng_chance(&r.a.rng, 15) ? ~0ULL : 1 + rng_size(&r.a.rng, 64) };
	if (rng_chance(&r.a.rng, 70))
		f->val[0] = was;
	if (rng_chance(&r.a.rng, 40))
		f->val[1] = was ^ 1ULL << rng_below(&r.a.rng, 64);
}

static void turn(u64 off, bool inside)
{
	u64 dice = rng_below(&r.a.rng, 10);

	r.left--;
	r.until_next = gap();
	if (dice < 4 || !inside)
		attack_once(&r.a);
	else if (dice < 7)
		attack_store(&r.a, off, attack_value(&r.a, off));
	else
		begin_fickle(rng_chance(&r.a.rng, 70) ? off : attack_place(&r.a));
}

static void be_fickle(u64 off)
{
	unsigned int i;

	for (i = 0; i < HELD; i++) {
		struct fickle *f = &r.fickle[i];

		if (f->left && f->off == off)
			attack_store(&r.a, off, f->val[--f->left & 1]);
	}
}

static void check_bounds(void)
{
	if (++loads < LOADS_MAX && now - host->since < SECONDS_MAX * 1000 * MS)
		return;
	r.on = false;
	test_fail(__FILE__, __LINE__, "the operation never ends: %" PRIu64 " loads, %" PRIu64 " s",
		  loads, (u64)((now - host->since) / (1000 * MS)));
}

/* The load at which the only store of a run happens, and the number of loads so far. */
static u64 sweep_at, sweep_loads;

static void sweep(u64 off)
{
	if (++sweep_loads == sweep_at)
		attack_store(&r.a, off, attack_value(&r.a, off));
}

static void step(const void *p)
{
	u64 off = (u64)((const u8 *)p - volume) & ~7ULL;
	bool inside = (const u8 *)p >= volume && off < H_ROOM;

	if (hook_load && inside) {
		hook_load(off);
		return;
	}
	if (!r.on || r.busy)
		return;
	r.busy = true;
	check_bounds();
	if (inside && r.sweeps)
		sweep(off);
	if (inside)
		be_fickle(off);
	if (!r.waits && r.left && !--r.until_next)
		turn(off, inside);
	r.busy = false;
}

void sg_hostile_load(const u64 *p)
{
	step(p);
}

void sg_hostile_store(const void *p)
{
	step(p);
}

/* --- a round ---------------------------------------------------------------------------------- */

static void interlude(struct host *h)
{
	host = h;
	loads = 0;
	alarm(300);	/* ends loops that load no word */
}

static void attacker_begin(struct rng *rng)
{
	static const u64 means[] = { 20, 100, 500, 3000, 20000 };
	static const u64 turns[] = { 1, 3, 10, 100, 1000, 1 << 30 };

	memset(&r, 0, sizeof(r));
	r.a.rng.state = rng_next(rng);
	r.mean = means[rng_below(rng, 5)];
	r.left = turns[rng_below(rng, 6)];
	r.a.incarnation = victim.incarnation + 1;
	r.a.spares = rng_chance(rng, 70);
	r.waits = rng_chance(rng, 60);
	r.until_next = gap();
	r.on = true;
}

/* Reads the host's identity for the attacker, as every member can. */
static void attacker_knows(const struct sg_vol *v)
{
	if (v->slot < 0)
		return;
	r.a.slot = (unsigned int)v->slot;
	r.a.incarnation = v->incarnation;
	r.waits = false;
}

static void be_host(struct rng *rng)
{
	u64 i, n = 1 + rng_size(rng, 60);
	struct sg_vol v, *peer = NULL, second;
	struct host h = { .op = "join", .since = now };
	bool joined;

	host = &h;
	loads = 0;
	test_note("join");
	joined = !host_join(&v, rng_chance(rng, 70));
	if (!joined)
		return;
	attacker_knows(&v);
	v.space_wait_ms = 20;
	v.alone = false;
	host_begin(&h, &v, rng_next(rng));
	if (rng_chance(rng, 30) && !host_join(&second, false)) {
		peer = &second;		/* a well-behaved system, which only stays live */
		second.space_wait_ms = 20;
	}
	for (i = 0; i < n; i++) {
		host_step(&h);
		if (peer && rng_chance(rng, 30))
			sg_maintain(peer);
	}
	host_end(&h);
	if (peer)
		sg_abandon(peer);
	test_note("leave");
	interlude(&h);
	h.since = now;
	if (rng_chance(rng, 70))
		sg_leave(&v);
	else
		sg_abandon(&v);
}

void step_round(u64 seed)
{
	struct rng rng = { .state = seed };
	struct host h;
	struct sg_vol none = { .slot = -1 };
	u64 lives = 1 + rng_below(&rng, 3);

	now = 1ULL << 40;
	step_clock(true);
	volume_reset();
	host_interlude = interlude;
	host = NULL;
	r.on = false;
	host_begin(&h, &none, rng_next(&rng));
	host = &h;
	attacker_begin(&rng);
	while (lives--) {
		be_host(&rng);
		host = &h;
		if (rng_chance(&rng, 40))
			host_alone(&h);
	}
	r.on = false;
	hook_load = NULL;
	volume_check_canaries();
	host_end(&h);
	test_note("afterwards");
	volume_afterwards();
	host = NULL;
	host_interlude = NULL;
	step_clock(false);
	alarm(0);
}

/* --- a sweep ---------------------------------------------------------------------------------- */

#define SWEEP_PLACES	300	/* at most so many loads of an operation, evenly spread */
#define SWEEP_VALUES	3

/*
 * Runs an operation on the undamaged volume, which is always the same, except for a store at load
 * @at.
 */
static void sweep_once(u64 seed, u64 at, u64 value)
{
	struct host h = { .op = "join" };
	struct sg_vol v;

	volume_reset();
	memset(&r, 0, sizeof(r));
	r.a.rng.state = seed * 1009 + at * 31 + value;
	r.sweeps = true;
	now = 1ULL << 40;
	h.since = now;
	host = &h;
	CHECK_OK(host_join(&v, true));
	v.space_wait_ms = 20;
	host_begin(&h, &v, seed);
	attacker_knows(&v);
	loads = 0;
	sweep_loads = 0;
	sweep_at = at;
	r.on = true;
	host_step(&h);
	host_end(&h);
	r.on = false;
	sg_abandon(&v);
	volume_check_canaries();
}

/*
 * Runs an operation once for each of its loads, or for some hundreds of them, and changes the
 * loaded word.
 */
void sweep_round(u64 seed)
{
	u64 at, all, value;

	step_clock(true);
	host_interlude = interlude;
	sweep_once(seed, 0, 0);
	all = sweep_loads;
	for (at = 1; at <= all; at += 1 + all / SWEEP_PLACES)
		for (value = 0; value < SWEEP_VALUES; value++) {
			test_note("load %" PRIu64 ", value %" PRIu64, at, value);
			sweep_once(seed, at, value);
		}
	host = NULL;
	host_interlude = NULL;
	step_clock(false);
	alarm(0);
}
