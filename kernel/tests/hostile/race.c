// SPDX-License-Identifier: Apache-2.0
/*
 * The attacker is a process that has mapped the volume, like a virtual machine; the host is a
 * system with threads. The seed makes each of them repeatable, but not both together.
 */
#include <signal.h>
#include <unistd.h>
#include "hostile.h"
#include "systems.h"

#define THREADS		3
#define LIVES		2
#define STEPS		60
/* by the test's clock, which runs ten times as fast */
#define KILL_AFTER	(100ULL * 1000000000)
#define LOOK_US		100000
/* number of late checks after which the watchdog ends the test */
#define LOOKS_MAX	900

extern bool (*sg_interrupt_hook)(void);

static struct shared {		/* shared with the attacker */
	u64 stop, slot, incarnation;
} *shared;

static struct host hosts[THREADS + 1];	/* the last one joins, and gets exclusive access */
static pthread_t threads[THREADS + 1];
static __thread struct host *current;

/* --- the attacker ----------------------------------------------------------------------------- */

/* Changes a word repeatedly for a while. */
static void shake(struct attacker *a)
{
	u64 off = attack_place(a), v[2] = { attack_value(a, off), attack_value(a, off) }, i;

	for (i = rng_size(&a->rng, 100000); i; i--)
		attack_store(a, off, v[i & 1]);
}

static void attack(void *arg)
{
	static const u64 pauses[] = { 0, 20, 200, 2000, 20000 };
	struct attacker a = { .rng = { *(u64 *)arg } };
	u64 pause = pauses[rng_below(&a.rng, 5)];

	a.spares = rng_chance(&a.rng, 80);
	while (!sg_load64(&shared->stop)) {
		a.slot = (unsigned int)sg_load64(&shared->slot);
		a.incarnation = (u32)sg_load64(&shared->incarnation);
		if (rng_chance(&a.rng, 3))
			shake(&a);
		else
			attack_once(&a);
		if (pause)
			usleep((unsigned int)rng_below(&a.rng, 2 * pause));
	}
}

/* --- the watchdog ----------------------------------------------------------------------------- */

/*
 * Returns whether a waiting thread counts as killed. Even then it completes work that it must not
 * abort.
 */
static bool interrupted(void)
{
	return current && sg_ticks() - sg_load64(&current->since) > KILL_AFTER;
}

static void bite(unsigned int i, unsigned int looks)
{
	fprintf(stderr, "hangs: \"%s\" for %u looks; its stack:\n", hosts[i].op, looks);
	fflush(stderr);
	pthread_kill(threads[i], SIGABRT);
	pause();
}

/*
 * Detects hanging threads. It measures a hang in numbers of its own checks, not in time. So no
 * thread counts as hanging only because the watchdog gets no processor time.
 */
static void *watchdog(void *arg)
{
	unsigned int looks[THREADS + 1] = { 0 }, i;
	u64 since[THREADS + 1] = { 0 };

	while (!sg_load64(arg)) {
		for (i = 0; i <= THREADS; i++) {
			u64 now = sg_load64(&hosts[i].since);

			looks[i] = !hosts[i].op || now != since[i] ? 0 : looks[i] + 1;
			since[i] = now;
			if (looks[i] > LOOKS_MAX)
				bite(i, looks[i]);
		}
		usleep(LOOK_US);
	}
	return NULL;
}

/* --- the host --------------------------------------------------------------------------------- */

static void *be_thread(void *arg)
{
	struct host *h = current = arg;
	unsigned int i;

	for (i = 0; i < STEPS; i++)
		host_step(h);
	host_end(h);
	return NULL;
}

static void be_host(struct rng *rng, struct host *one)
{
	struct tkeeper keeper;
	struct sg_vol v;
	unsigned int i;

	one->op = "join";
	one->since = sg_ticks();
	if (host_join(&v, true))
		return;
	v.space_wait_ms = 500;
	shared->slot = (u64)v.slot;
	shared->incarnation = v.incarnation;
	tkeeper_start(&keeper, &v);
	for (i = 0; i < THREADS; i++) {
		host_begin(&hosts[i], &v, rng_next(rng));
		CHECK_OK(pthread_create(&threads[i], NULL, be_thread, &hosts[i]));
	}
	one->op = NULL;
	for (i = 0; i < THREADS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	one->op = "leave";
	one->since = sg_ticks();
	v.hurry = true;		/* settling stops soon, as during an unmount */
	threads[THREADS] = keeper.settler;	/* this call waits for the settler */
	tkeeper_end(&keeper);
	threads[THREADS] = pthread_self();
	if (rng_chance(rng, 70))
		sg_leave(&v);
	else
		sg_abandon(&v);
}

void race_round(u64 seed)
{
	struct rng rng = { .state = seed };
	u64 attack_seed = rng_next(&rng), stop = 0;
	struct sg_vol none = { .slot = -1 };
	struct host *one = &hosts[THREADS];
	unsigned int life;
	pthread_t dog;
	pid_t pid;

	if (!shared)
		shared = tshare(sizeof(*shared));
	shared->stop = 0;
	volume_reset_shared();
	test_hasten(true);
	sg_interrupt_hook = interrupted;
	pid = tproc(attack, &attack_seed);
	host_begin(one, &none, rng_next(&rng));
	threads[THREADS] = pthread_self();
	current = one;
	CHECK_OK(pthread_create(&dog, NULL, watchdog, &stop));
	for (life = 0; life < LIVES; life++) {
		be_host(&rng, one);
		host_alone(one);
	}
	sg_store64(&shared->stop, 1);
	tproc_end(pid);
	one->op = "afterwards";
	one->since = sg_ticks();
	volume_check_canaries();
	volume_afterwards();
	one->op = NULL;
	sg_store64(&stop, 1);
	CHECK_OK(pthread_join(dog, NULL));
	host_end(one);
	current = NULL;
	sg_interrupt_hook = NULL;
	test_hasten(false);
}
