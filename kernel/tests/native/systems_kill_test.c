// SPDX-License-Identifier: Apache-2.0
/*
 * Processes act as systems that all work on one volume. Each is killed (SIGKILL) repeatedly, at any
 * point: at work, while it recovers another system, joins, maintains or settles. This program acts
 * as the guard, and fences the dead systems. The others recover them and continue. The successor
 * finds the effect of each call that had returned.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"
#include "workman.h"

#define SYSTEMS	4
#define PRIZES	4	/* names that all systems compete for */
#define LINKS	5	/* links of each system to one file */

struct contest {
	/* number + 1 of the prize that the system has, or is about to take */
	u64 want;
	u64 won;
};

static struct shared {
	struct work_book book[SYSTEMS];
	struct contest contest[SYSTEMS];
	u64 owner[PRIZES];
	u64 ready[SYSTEMS], stop;
} *sh;

static u8 *mem;
static u64 size, seed;		/* @size: size of the memory, into which the volume grows */

struct member {
	struct tsys s;
	unsigned int n;
	struct workman man;
	struct rng rng;
	struct sg_iref prizes, hub;
};

static bool stopped(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

/* --- prizes: names that one system has, or none ----------------------------------------------- */

static u32 prize_name(u64 prize, char *name)
{
	return (u32)sprintf(name, "prize-%" PRIu64, prize);
}

static bool cas(u64 *word, u64 from, u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void give_up(struct member *m, u64 prize, const struct sg_iref *ref)
{
	char name[30];
	u32 len = prize_name(prize, name);

	CHECK(cas(&sh->owner[prize], m->n + 1, 0));
	CHECK_OK(sg_unlink(&m->s.v, &m->prizes, name, len, 1));
	CHECK_OK(sg_evict(&m->s.v, ref));
}

/*
 * Finds out whether the predecessor got the prize that it wanted: its file then has the
 * predecessor's mark.
 */
static void settle_prize(struct member *m)
{
	u64 want = sh->contest[m->n].want, prize = want - 1, owner;
	struct sg_iref ref;
	struct sg_attr a;
	char name[30];
	u32 len;

	if (!want)
		return;
	len = prize_name(prize, name);
	owner = __atomic_load_n(&sh->owner[prize], __ATOMIC_SEQ_CST);
	if (!sg_lookup(&m->s.v, &m->prizes, name, len, &ref, NULL) &&
	    !sg_getattr(&m->s.v, &ref, &a) && a.uid == m->n + 1) {
		CHECK(owner == m->n + 1 || cas(&sh->owner[prize], 0, m->n + 1));
		give_up(m, prize, &ref);
	} else {
		CHECK(owner != m->n + 1);
	}
	tadvance(&sh->contest[m->n].want, 0);
}

static void compete(struct member *m)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .uid = m->n + 1, .now = 1 };
	u64 prize = rng_below(&m->rng, PRIZES);
	struct sg_iref ref, found;
	char name[30];
	u32 len = prize_name(prize, name);
	int err;

	tadvance(&sh->contest[m->n].want, prize + 1);
	err = sg_create(&m->s.v, &m->prizes, name, len, &new, &ref);
	if (!err) {
		CHECK(cas(&sh->owner[prize], 0, m->n + 1));
		CHECK_OK(sg_lookup(&m->s.v, &m->prizes, name, len, &found, NULL));
		CHECK_EQ(found.ino, ref.ino);
		sh->contest[m->n].won++;
		give_up(m, prize, &ref);
	} else {
		CHECK_EQ(err, -EEXIST);
	}
	tadvance(&sh->contest[m->n].want, 0);
}

/* --- links of one file ------------------------------------------------------------------------ */

static void link_or_not(struct member *m)
{
	struct sg_iref ref;
	char name[30];
	u32 len = (u32)sprintf(name, "link-%u-%u", m->n, (unsigned int)rng_below(&m->rng, LINKS));
	int err = sg_lookup(&m->s.v, &m->man.common, name, len, &ref, NULL);

	if (err) {
		CHECK_EQ(err, -ENOENT);
		CHECK_OK(sg_link(&m->s.v, &m->hub, &m->man.common, name, len, 1));
	} else {
		CHECK_EQ(ref.ino, m->hub.ino);
		CHECK_OK(sg_unlink(&m->s.v, &m->man.common, name, len, 1));
	}
}

struct listing {
	u64 last, links;
};

static bool meet(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct listing *l = ctx;

	(void)ino;
	CHECK_EQ(type, S_IFREG >> 12);
	CHECK(len > 5 && (!memcmp(name, "link-", 5) || !memcmp(name, "worke", 5)));
	CHECK(cookie > l->last);
	l->last = cookie;
	l->links += !memcmp(name, "link-", 5);
	return true;
}

static u64 count_links(struct member *m)
{
	struct listing l = { 0 };
	u64 cookie = 0;

	CHECK_OK(sg_readdir(&m->s.v, &m->man.common, &cookie, meet, &l));
	return l.links;
}

/* --- growth ----------------------------------------------------------------------------------- */

/*
 * Grows the volume by a step while memory remains. Then requests a growth that is always refused.
 */
static void grow(struct member *m)
{
	u64 had = sg_size(&m->s.v);
	char why[200];

	if (had < size) {
		tsys_grow(&m->s.v, SG_CHUNK);
		return;
	}
	CHECK_EQ(sg_grow(&m->s.v, had - SG_CHUNK, 100, why), -EINVAL);
	CHECK_EQ(sg_grow(&m->s.v, had + SG_CHUNK, 100, why), -ENOSPC);
}

/* --- a process -------------------------------------------------------------------------------- */

static void *contend(void *arg)
{
	struct member *m = arg;

	while (!stopped()) {
		u64 dice = rng_below(&m->rng, 20);

		test_note("system %u competes, dice %" PRIu64, m->n, dice);
		if (dice < 10)
			compete(m);
		else if (dice < 19)
			link_or_not(m);
		else if (rng_chance(&m->rng, 80))
			count_links(m);
		else
			grow(m);
	}
	return NULL;
}

static void enter(struct member *m, unsigned int n, u64 round)
{
	struct sg_identity id = tsys_identity(n + 1, (unsigned int)round + 1);
	char name[20];

	m->n = n;
	id.pid = (u64)getpid();
	if (tsys_try(&m->s, mem, size, &id, 0, false))
		test_fail(__FILE__, __LINE__, "system %u cannot join: %s", n, m->s.v.why);
	m->s.v.space_wait_ms = 60000;	/* the machine may be busy */
	tsys_maintain(&m->s);
	sprintf(name, "own-%u", n);
	m->rng.state = seed * 7919 + round;
	m->man = (struct workman){ .v = &m->s.v, .w = &sh->book[n], .n = n };
	m->man.rng.state = m->rng.state * 31;
	m->man.own = test_lookup(&m->s.v, &m->s.root, name);
	m->man.common = test_lookup(&m->s.v, &m->s.root, "common");
	m->prizes = test_lookup(&m->s.v, &m->s.root, "prizes");
	m->hub = test_lookup(&m->s.v, &m->s.root, "hub");
	workman_verify(&m->man);
	settle_prize(m);
}

struct start {
	unsigned int n;
	u64 round;
};

static void system_body(void *arg)
{
	const struct start *start = arg;
	struct member m = { .n = 0 };
	pthread_t id;

	enter(&m, start->n, start->round);
	tadvance(&sh->ready[start->n], 1);
	CHECK_OK(pthread_create(&id, NULL, contend, &m));
	while (!stopped())
		workman_step(&m.man);
	CHECK_OK(pthread_join(id, NULL));
	tsys_leave(&m.s);
}

/* --- the guard -------------------------------------------------------------------------------- */

static pid_t pid[SYSTEMS];
static struct sg_vol guard;

static void start(unsigned int n, u64 round)
{
	struct start s = { n, round };

	sh->ready[n] = 0;
	pid[n] = tproc(system_body, &s);
}

static bool runs(u64 who)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		if (who && (u64)pid[i] == who)
			return true;
	return false;
}

/*
 * Fences all slots without a running process. If all processes have stored their identity (@all),
 * also fences slots without an identity.
 */
static void fence_dead(bool all)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		struct sg_slot slot;

		CHECK_OK(sg_slot_read(&guard, i, &slot));
		if (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE &&
		    (slot.named == SG_SLOT_INC(slot.state) ? !runs(slot.pid) : all))
			sg_fence_slot(&guard, i, SG_SLOT_INC(slot.state));
	}
}

static void kill_one(unsigned int n, u64 round, struct rng *rng)
{
	bool was_ready = __atomic_load_n(&sh->ready[n], __ATOMIC_SEQ_CST);
	unsigned int i;

	tproc_kill(pid[n]);
	pid[n] = 0;
	if (!was_ready)
		fence_dead(false);	/* other processes may wait for its locks */
	/* the dead process may not have stored its identity */
	for (i = 0; i < SYSTEMS && !was_ready; i++)
		if (i != n)
			tawait(&sh->ready[i], 1);
	if (rng_chance(rng, 30))
		sg_sleep_us((unsigned int)rng_below(rng, 3000));
	if (was_ready)
		/*
		 * the dead process had stored its identity, but a just started process may not have
		 */
		fence_dead(false);
	else if (rng_chance(rng, 50))
		fence_dead(true);
	/* starts the next boot, which also fences the previous one */
	start(n, round);
	if (!was_ready) {
		tawait(&sh->ready[n], 1);
		fence_dead(true);
	}
}

static void stop_all(void)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		tawait(&sh->ready[i], 1);
	tadvance(&sh->stop, 1);
	for (i = 0; i < SYSTEMS; i++)
		tproc_end(pid[i]);
	tadvance(&sh->stop, 0);
	test_clean(mem, size);
	for (i = 0; i < PRIZES; i++)
		CHECK_EQ(sh->owner[i], 0);
}

static void check_links(void)
{
	struct member m = { .n = 0 };
	struct sg_attr a;

	enter(&m, 0, 0);
	CHECK_OK(sg_getattr(&m.s.v, &m.hub, &a));
	CHECK_EQ(a.nlink, 1 + count_links(&m));
	tsys_leave(&m.s);
}

static void setup(void)
{
	struct tsys s;
	char name[20];
	unsigned int i;

	sh = tshare(sizeof(*sh));
	size = test_amount(96, 256, 2048) << 20;
	mem = tsys_volume_in(64 << 20, size);
	tsys_join(&s, mem, size, 1);
	test_create(&s.v, &s.root, "common", S_IFDIR | 0700);
	test_create(&s.v, &s.root, "prizes", S_IFDIR | 0700);
	test_create(&s.v, &s.root, "hub", S_IFREG | 0600);
	for (i = 0; i < SYSTEMS; i++) {
		sprintf(name, "own-%u", i);
		test_create(&s.v, &s.root, name, S_IFDIR | 0700);
	}
	tsys_leave(&s);
	CHECK_OK(sg_open(&guard, mem, size, false, NULL));
}

static u64 first_size(void)
{
	struct sg_super sb;

	memcpy(&sb, mem, sizeof(sb));
	return sb.size;
}

int main(void)
{
	u64 kills = test_amount(60, 1500, 30000), i, done = 0, won = 0;
	struct rng rng;
	unsigned int n;

	seed = rng.state = test_seed();
	tlog_catch();
	setup();
	for (i = 0; i < kills; i++) {
		if (i % 50 == 0)
			for (n = 0; n < SYSTEMS; n++)
				start(n, i + n);
		n = (unsigned int)rng_below(&rng, SYSTEMS);
		if (!rng_chance(&rng, 25))
			tawait(&sh->ready[n], 1);
		usleep((unsigned int)rng_size(&rng, 20000));
		kill_one(n, i + SYSTEMS, &rng);
		if (i % 50 == 49 || i + 1 == kills) {
			stop_all();
			check_links();
		}
	}
	for (n = 0; n < SYSTEMS; n++) {
		done += sh->book[n].done;
		won += sh->contest[n].won;
	}
	printf("%" PRIu64 " processes killed, %" PRIu64 " operations on own files, %" PRIu64
	       " prizes taken; grown to %" PRIu64 " MiB\n", kills, done, won, first_size() >> 20);
	CHECK(first_size() > 64 << 20);
	CHECK(done > kills && won > kills / 10);
	return test_done();
}
