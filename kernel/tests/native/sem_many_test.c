// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores, used by many threads of three systems at the same time. Some act as processes
 * that have mapped the words, some use their kernel. Counters must be exact. No thread starves. A
 * sleeping thread costs almost nothing, wakes soon, and leaves no state in the words.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>
#include "sem_util.h"

#define SIZE	(32ULL << 20)
#define SYSTEMS	3
#define THREADS	6

static u8 *mem;
static struct tsys sys[SYSTEMS];
static struct listener ear[SYSTEMS];

static void begin(bool listening)
{
	unsigned int i;

	mem = tsys_volume(SIZE);
	for (i = 0; i < SYSTEMS; i++) {
		tsys_join(&sys[i], mem, SIZE, i + 1);
		tsys_maintain(&sys[i]);
		if (listening)
			listen_begin(&ear[i], &sys[i].v);
	}
}

static void end(void)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++) {
		if (ear[i].v)
			listen_end(&ear[i]);
		ear[i].v = NULL;
		tsys_leave(&sys[i]);
	}
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

/* --- numbered threads, each of some system ---------------------------------------------------- */

struct worker {
	unsigned int n;
	struct sg_vol *v;
	struct sg_sem_caller *c;
	struct sg_sem sem[3];
	pthread_t thread;
	u64 done, most, waits;
	/* number of waits, by the logarithm of their length in microseconds */
	u64 by_size[24];
};

static struct worker w[THREADS];
static u64 rounds, stop;

static void open_all(struct worker *k, const char *const *names)
{
	unsigned int i;

	for (i = 0; i < 3 && names[i]; i++)
		CHECK_OK(try_open(k->v, names[i], 0, true, &k->sem[i]));
}

static void run(unsigned int threads, void *(*body)(void *arg), const char *const *names)
{
	unsigned int i, s;

	for (i = 0; i < threads; i++) {
		w[i] = (struct worker){ .n = i, .v = &sys[i % SYSTEMS].v };
		w[i].c = caller_of(w[i].v, i + 1);
		open_all(&w[i], names);
	}
	for (i = 0; i < threads; i++)
		CHECK_OK(pthread_create(&w[i].thread, NULL, body, &w[i]));
	for (i = 0; i < threads; i++)
		CHECK_OK(pthread_join(w[i].thread, NULL));
	for (i = 0; i < threads; i++) {
		caller_end(w[i].v, w[i].c);
		for (s = 0; s < 3 && names[s]; s++) {
			CHECK_EQ(sg_load64(&sg_sem_record(w[i].v, &w[i].sem[s])->waits.waiters), 0);
			sg_sem_close(w[i].v, &w[i].sem[s]);
		}
	}
}

static void note_wait(struct worker *k, u64 ns)
{
	u64 us = ns / 1000;
	unsigned int i = 0;

	while (us >> i && i < SG_ARRAY_SIZE(k->by_size) - 1)
		i++;
	k->by_size[i]++;
	k->waits++;
	k->most = SG_MAX(k->most, ns);
}

/* Returns the microseconds within which @percent of all threads' waits ended. */
static u64 percentile(unsigned int threads, u64 percent)
{
	u64 all = 0, sum = 0;
	unsigned int i, k;

	for (k = 0; k < threads; k++)
		all += w[k].waits;
	for (i = 0; i < SG_ARRAY_SIZE(w[0].by_size); i++) {
		for (k = 0; k < threads; k++)
			sum += w[k].by_size[i];
		if (sum * 100 >= all * percent)
			break;
	}
	return 1ULL << i;
}

/* Locks like a process that maps the words: directly if possible, otherwise through its kernel. */
static int lock(struct worker *k, const struct sg_sem *sem)
{
	if (k->n & 1 && sg_semw_take(sg_sem_word(k->v, sem), k->c->me))
		return 0;
	return sg_sem_lock(k->v, sem, k->c, SG_SEM_NEVER);
}

static void unlock(struct worker *k, const struct sg_sem *sem)
{
	if (!(k->n & 1) || !sg_semw_give(sg_sem_word(k->v, sem), k->c->me))
		CHECK_OK(sg_sem_unlock(k->v, sem, k->c));
}

static void down(struct worker *k, const struct sg_sem *sem)
{
	if (!(k->n & 1) || !sg_semw_down(sg_sem_word(k->v, sem)))
		CHECK_OK(sg_sem_wait(k->v, sem, k->c, SG_SEM_NEVER));
}

static void up(struct worker *k, const struct sg_sem *sem)
{
	if (!(k->n & 1) || !sg_semw_up(sg_sem_word(k->v, sem)))
		CHECK_OK(sg_sem_post(k->v, sem));
}

/* --- a counter -------------------------------------------------------------------------------- */

static u64 counter;		/* not atomic: only the lock keeps the counter exact */

static void *count(void *arg)
{
	struct worker *k = arg;
	u64 i;

	for (i = 0; i < rounds; i++) {
		CHECK_OK(lock(k, &k->sem[0]));
		counter++;
		unlock(k, &k->sem[0]);
	}
	return NULL;
}

static void *count_by_semaphore(void *arg)
{
	struct worker *k = arg;
	u64 i;

	for (i = 0; i < rounds; i++) {
		down(k, &k->sem[0]);
		counter++;
		up(k, &k->sem[0]);
	}
	return NULL;
}

static void exact(unsigned int type, void *(*body)(void *), const char *what, bool listening)
{
	static const char *const names[3] = { "lock" };
	u64 start;
	struct sg_sem m;

	begin(listening);
	m = sem_make(&sys[0].v, names[0], type, SG_SEM_MAPPED, 1);
	/* about 10^8 increments for SG_TEST_SCALE=long */
	rounds = test_amount(10000, 150000, 17000000);
	counter = 0;
	start = sg_ticks();
	run(THREADS, body, names);
	CHECK_EQ(counter, THREADS * rounds);
	printf("%s: %" PRIu64 " acquisitions by %u threads of %u systems%s, %" PRIu64 " ns each\n",
	       what, counter, THREADS, SYSTEMS, listening ? ", with bells" : "",
	       (sg_ticks() - start) / counter);
	sg_sem_close(&sys[0].v, &m);
	end();
}

/* --- fairness --------------------------------------------------------------------------------- */

/*
 * Holds the lock for a while, releases it, and immediately takes it again. Without turns, hardly
 * any other thread would get the lock.
 */
static void *hog(void *arg)
{
	struct worker *k = arg;

	while (!sg_load64(&stop)) {
		u64 start = sg_ticks(), got;

		CHECK_OK(lock(k, &k->sem[0]));
		got = sg_ticks();
		note_wait(k, got - start);
		while (sg_ticks() - got < 100000)
			sg_relax();
		k->done++;
		unlock(k, &k->sem[0]);
	}
	return NULL;
}

static void *end_it(void *arg)
{
	sg_sleep_us((unsigned int)(uintptr_t)arg);
	sg_store64(&stop, 1);
	return NULL;
}

static void fair(void)
{
	static const char *const names[3] = { "lock" };
	u64 us = test_amount(1000000, 3000000, 30000000), sum = 0, least = ~0ULL, most = 0;
	struct sg_sem m;
	pthread_t timer;
	unsigned int i;

	begin(true);
	m = sem_make(&sys[0].v, names[0], SG_SEM_MUTEX, SG_SEM_MAPPED, 0);
	stop = 0;
	CHECK_OK(pthread_create(&timer, NULL, end_it, (void *)(uintptr_t)us));
	run(THREADS, hog, names);
	CHECK_OK(pthread_join(timer, NULL));
	printf("fairness, turns of %u threads that hold a lock for 100 us and take it again:",
	       THREADS);
	for (i = 0; i < THREADS; i++) {
		printf(" %" PRIu64, w[i].done);
		sum += w[i].done;
		least = SG_MIN(least, w[i].done);
		most = SG_MAX(most, w[i].most);
	}
	printf("; waits: half < %" PRIu64 " us, 99 of 100 < %" PRIu64 " us, most %" PRIu64 " us\n",
	       percentile(THREADS, 50), percentile(THREADS, 99), most / 1000);
	/* each thread gets a twentieth of its share, even on a very busy machine */
	CHECK(least * THREADS * 20 > sum);
	CHECK(most < 2 * SEC);
	sg_sem_close(&sys[0].v, &m);
	end();
}

/* --- producers and consumers ------------------------------------------------------------------ */

#define RING	8

static u64 ring[RING], consumed;

static void *produce_consume(void *arg)
{
	struct worker *k = arg;
	u64 i;

	for (i = 0; i < rounds; i++) {
		if (k->n % 2) {
			down(k, &k->sem[0]);		/* free entries */
			up(k, &k->sem[1]);		/* full entries */
		} else {
			down(k, &k->sem[1]);
			sg_add64(&consumed, 1);
			up(k, &k->sem[0]);
		}
	}
	return NULL;
}

/*
 * Passes values from a producer to a consumer of another system: each arrives once, and in order.
 */
static void *pass(void *arg)
{
	struct worker *k = arg;
	u64 i;

	for (i = 0; i < rounds; i++) {
		if (k->n) {
			down(k, &k->sem[0]);
			ring[i % RING] = i;
			up(k, &k->sem[1]);
		} else {
			down(k, &k->sem[1]);
			CHECK_EQ(ring[i % RING], i);
			up(k, &k->sem[0]);
		}
	}
	return NULL;
}

static void producers(void)
{
	static const char *const names[3] = { "room", "things" };
	struct sg_sem room, things;

	begin(true);
	room = sem_make(&sys[0].v, names[0], SG_SEM_COUNT, SG_SEM_MAPPED, RING);
	things = sem_make(&sys[0].v, names[1], SG_SEM_COUNT, SG_SEM_MAPPED, 0);
	rounds = test_amount(3000, 50000, 1000000);
	run(2, pass, names);
	consumed = 0;
	run(THREADS, produce_consume, names);
	CHECK_EQ(consumed, THREADS / 2 * rounds);
	CHECK_EQ(stat_of(&sys[0].v, "room").value, RING);
	CHECK_EQ(stat_of(&sys[0].v, "things").value, 0);
	sg_sem_close(&sys[0].v, &room);
	sg_sem_close(&sys[0].v, &things);
	end();
}

/* --- readers and writers ---------------------------------------------------------------------- */

static u64 left, right, writers_in, readers_in;

static void read_it(struct worker *k)
{
	u64 *word = sg_sem_word(k->v, &k->sem[0]), *cell = word + k->sem[0].cell;
	bool own = k->n & 1 && k->sem[0].cell >= SG_SEM_CELL_FIRST;
	u64 start = sg_ticks();

	if (!own || !sg_semw_read(word, cell))
		CHECK_OK(sg_sem_read_lock(k->v, &k->sem[0], k->c, SG_SEM_NEVER));
	note_wait(k, sg_ticks() - start);
	sg_add64(&readers_in, 1);
	CHECK_EQ(sg_load64(&writers_in), 0);
	CHECK_EQ(sg_load64(&left), sg_load64(&right));
	sg_add64(&readers_in, ~0ULL);
	if (!own)
		CHECK_OK(sg_sem_read_unlock(k->v, &k->sem[0]));
	else if (!sg_semw_unread(word, cell))
		sg_sem_ring(k->v, &k->sem[0]);
}

static void write_it(struct worker *k)
{
	u64 *word = sg_sem_word(k->v, &k->sem[0]), start = sg_ticks();

	if (k->n & 1 && sg_semw_take(word, k->c->me))
		CHECK_OK(sg_semw_no_readers(word) ? 0 :
			 sg_sem_drain(k->v, &k->sem[0], k->c, SG_SEM_NEVER));
	else
		CHECK_OK(sg_sem_write_lock(k->v, &k->sem[0], k->c, SG_SEM_NEVER));
	note_wait(k, sg_ticks() - start);
	CHECK_EQ(sg_add64(&writers_in, 1), 0);
	CHECK_EQ(sg_load64(&readers_in), 0);
	sg_store64(&left, left + 1);
	sg_store64(&right, right + 1);
	CHECK_EQ(sg_add64(&writers_in, ~0ULL), 1);
	if (!(k->n & 1) || !sg_semw_give(word, k->c->me))
		CHECK_OK(sg_sem_write_unlock(k->v, &k->sem[0], k->c));
}

static void *read_and_write(void *arg)
{
	struct worker *k = arg;
	struct rng rng = { k->n + 1 };
	u64 i;

	for (i = 0; i < rounds; i++) {
		if (rng_chance(&rng, 20))
			write_it(k), k->done++;
		else
			read_it(k);
	}
	return NULL;
}

/*
 * Readers always overlap, or writers hold the lock most of the time: both kinds still get the lock.
 */
static u64 few;		/* 0: one writer among readers; 1: one reader among writers */

static void *starve(void *arg)
{
	struct worker *k = arg;

	while (!sg_load64(&stop)) {
		if (k->n ? few : !few)
			write_it(k);
		else
			read_it(k);
		k->done++;
	}
	return NULL;
}

static void readers_writers(void)
{
	static const char *const names[3] = { "rw" };
	u64 us = test_amount(500000, 2000000, 20000000), written = 0;
	struct sg_sem rw;
	pthread_t timer;
	unsigned int i;

	begin(true);
	rw = sem_make(&sys[0].v, names[0], SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	rounds = test_amount(3000, 50000, 1000000);
	run(THREADS, read_and_write, names);
	for (i = 0; i < THREADS; i++)
		written += w[i].done;
	CHECK_EQ(left, written);
	CHECK_EQ(right, written);
	for (few = 0; few < 2; few++) {
		stop = 0;
		CHECK_OK(pthread_create(&timer, NULL, end_it, (void *)(uintptr_t)us));
		run(THREADS, starve, names);
		CHECK_OK(pthread_join(timer, NULL));
		printf("one %s among %u %s: got in %" PRIu64 " times, waited %" PRIu64
		       " us at most\n", few ? "reader" : "writer", THREADS - 1,
		       few ? "writers" : "readers", w[0].done, w[0].most / 1000);
		CHECK(w[0].done > 3);
		CHECK(w[0].most < 2 * SEC);
	}
	sg_sem_close(&sys[0].v, &rw);
	end();
}

/* --- barriers, signals, counts ---------------------------------------------------------------- */

static u64 met[2], serial;

static void *meet(void *arg)
{
	struct worker *k = arg;
	u64 i;
	int err;

	for (i = 0; i < rounds; i++) {
		sg_add64(&met[i & 1], 1);
		err = sg_sem_meet(k->v, &k->sem[0], k->c, SG_SEM_NEVER);
		CHECK(err == 0 || err == 1);
		sg_add64(&serial, (u64)err);
		/* all threads have arrived, and none has passed the next barrier */
		CHECK_EQ(sg_load64(&met[i & 1]), THREADS * (i / 2 + 1));
	}
	return NULL;
}

static void barriers(void)
{
	static const char *const names[3] = { "barrier" };
	struct sg_sem b;

	begin(true);
	b = sem_make(&sys[0].v, names[0], SG_SEM_BARRIER, 0, THREADS);
	rounds = test_amount(100, 1000, 20000);
	run(THREADS, meet, names);
	CHECK_EQ(serial, rounds);
	sg_sem_close(&sys[0].v, &b);
	end();
}

static u64 token;

/*
 * Passes a token round the threads: each thread waits for its number, with a condition and a mutex.
 */
static void *go_round(void *arg)
{
	struct worker *k = arg;
	u64 i, seen;

	for (i = 0; i < rounds; i++) {
		CHECK_OK(lock(k, &k->sem[0]));
		while (token % THREADS != k->n) {
			CHECK_OK(sg_sem_cond_prepare(k->v, &k->sem[1], &seen));
			unlock(k, &k->sem[0]);
			CHECK_OK(sg_sem_cond_wait(k->v, &k->sem[1], k->c, seen, SG_SEM_NEVER));
			CHECK_OK(lock(k, &k->sem[0]));
		}
		token++;
		CHECK_OK(sg_sem_cond_signal(k->v, &k->sem[1], true));
		unlock(k, &k->sem[0]);
		CHECK_OK(sg_sem_advance(k->v, &k->sem[2], 1));
		CHECK_OK(sg_sem_await(k->v, &k->sem[2], k->c, i * THREADS, SG_SEM_NEVER));
	}
	return NULL;
}

/* Each signal wakes at least one waiter, so after as many signals as waiters no thread waits. */
static void *one_each(void *arg)
{
	struct worker *k = arg;
	u64 i, seen;

	for (i = 0; i < rounds; i++) {
		if (k->n) {
			CHECK_OK(lock(k, &k->sem[0]));
			while (!token) {
				CHECK_OK(sg_sem_cond_prepare(k->v, &k->sem[1], &seen));
				unlock(k, &k->sem[0]);
				CHECK_OK(sg_sem_cond_wait(k->v, &k->sem[1], k->c, seen,
							  SG_SEM_NEVER));
				CHECK_OK(lock(k, &k->sem[0]));
			}
			token--;
			unlock(k, &k->sem[0]);
			continue;
		}
		for (seen = 1; seen < THREADS; seen++) {
			CHECK_OK(lock(k, &k->sem[0]));
			token++;
			CHECK_OK(sg_sem_cond_signal(k->v, &k->sem[1], false));
			unlock(k, &k->sem[0]);
		}
	}
	return NULL;
}

static void conditions(void)
{
	static const char *const names[3] = { "mutex", "cond", "event" };
	struct sg_sem m, c, e;

	begin(true);
	m = sem_make(&sys[0].v, names[0], SG_SEM_MUTEX, SG_SEM_MAPPED, 0);
	c = sem_make(&sys[0].v, names[1], SG_SEM_COND, SG_SEM_MAPPED, 0);
	e = sem_make(&sys[0].v, names[2], SG_SEM_EVENT, 0, 0);
	rounds = test_amount(100, 1000, 20000);
	run(THREADS, go_round, names);
	CHECK_EQ(token, THREADS * rounds);
	CHECK_EQ(stat_of(&sys[0].v, "event").value, THREADS * rounds);
	token = 0;
	run(THREADS, one_each, names);
	CHECK_EQ(token, 0);
	sg_sem_close(&sys[0].v, &m);
	sg_sem_close(&sys[0].v, &c);
	sg_sem_close(&sys[0].v, &e);
	end();
}

/* --- sleeping --------------------------------------------------------------------------------- */

static u64 cpu_of(pthread_t thread)
{
	struct timespec now;
	clockid_t clock;

	CHECK_OK(pthread_getcpuclockid(thread, &clock));
	CHECK_OK(clock_gettime(clock, &now));
	return (u64)now.tv_sec * SEC + (u64)now.tv_nsec;
}

struct sleeper {
	struct sg_vol *v;
	struct sg_sem_caller *c;
	struct sg_sem sem;
	u64 until, woken, cpu;
	int err;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;
	u64 before = cpu_of(pthread_self());

	s->err = sg_sem_wait(s->v, &s->sem, s->c, s->until);
	sg_store64(&s->woken, sg_ticks());
	s->cpu = cpu_of(pthread_self()) - before;
	return NULL;
}

static struct sleeper sleeper_on(struct sg_vol *v, const char *name, u64 until)
{
	return (struct sleeper){ .v = v, .c = caller_of(v, 1), .sem = sem_of(v, name),
		.until = until };
}

static void sleeper_end(struct sleeper *s)
{
	caller_end(s->v, s->c);
	sg_sem_close(s->v, &s->sem);
}

/*
 * During a second of sleep, the sleeper and its system's listener together use less than 50 ms of
 * CPU time.
 */
static void cheap(bool listening)
{
	struct sleeper s;
	struct sg_sem c;
	pthread_t thread;
	u64 before, listened = 0, start;

	begin(listening);
	c = sem_make(&sys[0].v, "c", SG_SEM_COUNT, 0, 0);
	s = sleeper_on(&sys[1].v, "c", SG_SEM_NEVER);
	before = listening ? cpu_of(ear[1].thread) : 0;
	CHECK_OK(pthread_create(&thread, NULL, sleep_on, &s));
	sg_sleep_us(1000000);
	if (listening)
		listened = cpu_of(ear[1].thread) - before;
	start = sg_ticks();
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_OK(s.err);
	printf("a second asleep%s: %" PRIu64 " us of a processor, and %" PRIu64 " us for the "
	       "listener; woken by another system within %" PRIu64 " us\n",
	       listening ? ", with bells" : "", s.cpu / 1000, listened / 1000,
	       (s.woken - start) / 1000);
	CHECK(s.cpu + listened < 50 * MS);
	CHECK(s.woken - start < 500 * MS);
	sleeper_end(&s);
	sg_sem_close(&sys[0].v, &c);
	end();
}

/*
 * One of several sleepers stops waiting, or is cancelled, just when it is woken. Another sleeper
 * then gets the wake-up.
 */
static void cancelled(void)
{
	u64 turns = test_amount(50, 500, 5000), i, k;
	struct rng rng = { 5 };
	struct sg_sem c;

	begin(true);
	c = sem_make(&sys[0].v, "c", SG_SEM_COUNT, 0, 0);
	for (i = 0; i < turns; i++) {
		struct sleeper s[4];
		pthread_t thread[4];
		u64 got = 0, start;

		for (k = 0; k < 4; k++)
			s[k] = sleeper_on(&sys[k % SYSTEMS].v, "c", in_ms(k == 1 ? 3 : 1000000));
		for (k = 0; k < 4; k++)
			CHECK_OK(pthread_create(&thread[k], NULL, sleep_on, &s[k]));
		sg_sleep_us((unsigned int)rng_below(&rng, 5000));
		sg_sem_cancel(s[0].c);
		CHECK_OK(sg_sem_post(&sys[0].v, &c));
		start = sg_ticks();
		sg_sleep_us((unsigned int)rng_below(&rng, 1000));
		CHECK_OK(sg_sem_post(&sys[0].v, &c));
		/* these two end after the post or after their time limit */
		for (k = 0; k < 2; k++)
			CHECK_OK(pthread_join(thread[k], NULL));
		/* the remaining sleeper takes both posts soon */
		while (sg_load64(sg_sem_word(&sys[0].v, &c)) & SG_SEMW_VALUE) {
			CHECK(sg_ticks() - start < 2 * SEC);
			sg_sleep_us(100);
		}
		for (k = 0; k < 2; k++)
			CHECK_OK(sg_sem_post(&sys[0].v, &c));
		for (k = 2; k < 4; k++)
			CHECK_OK(pthread_join(thread[k], NULL));
		for (k = 0; k < 4; k++) {
			CHECK(!s[k].err || (k == 0 && s[k].err == -EINTR) ||
			      (k == 1 && s[k].err == -ETIMEDOUT));
			got += !s[k].err;
			sleeper_end(&s[k]);
		}
		while (sg_sem_wait(&sys[0].v, &c, NULL, 0) == 0)
			got++;
		CHECK_EQ(got, 4);
		CHECK_EQ(sg_load64(&sg_sem_record(&sys[0].v, &c)->waits.waiters), 0);
	}
	sg_sem_close(&sys[0].v, &c);
	end();
}

/* A system that is paused in its turn loses the turn: other systems continue. */
static void paused(void)
{
	struct sg_sem m[SYSTEMS];
	struct sg_sem_caller *c[SYSTEMS];
	u64 start, *word;
	unsigned int i;

	begin(true);
	m[0] = sem_make(&sys[0].v, "m", SG_SEM_MUTEX, SG_SEM_MAPPED, 0);
	for (i = 0; i < SYSTEMS; i++) {
		if (i)
			m[i] = sem_of(&sys[i].v, "m");
		c[i] = caller_of(&sys[i].v, i);
	}
	word = sg_sem_word(&sys[0].v, &m[0]);
	/* system 1 has requested the lock, has the turn, and is paused */
	sg_or64(&sg_sem_record(&sys[0].v, &m[0])->waits.waiters, 1ULL << sys[1].v.slot);
	sg_store64(&sg_sem_record(&sys[0].v, &m[0])->waits.last, (u64)sys[0].v.slot);
	sg_store64(word, SG_SEMW_ASKED | SG_SEMW_WAITERS);
	CHECK(!sg_semw_take(word, c[0]->me));
	CHECK_EQ(sg_sem_lock(&sys[0].v, &m[0], c[0], 0), -EAGAIN);
	start = sg_ticks();
	CHECK_OK(sg_sem_lock(&sys[2].v, &m[2], c[2], in_ms(2000)));
	CHECK(sg_ticks() - start >= 10 * MS);
	CHECK_EQ(sg_load64(&sg_sem_record(&sys[0].v, &m[0])->waits.waiters), 0);
	CHECK_OK(sg_sem_unlock(&sys[2].v, &m[2], c[2]));
	CHECK_EQ(sg_load64(word), 0);
	for (i = 0; i < SYSTEMS; i++) {
		caller_end(&sys[i].v, c[i]);
		sg_sem_close(&sys[i].v, &m[i]);
	}
	end();
}

/*
 * While no other system has the object open, no system polls for rings of the bell. A post by a
 * system that opens it later still wakes the sleeper.
 */
static void opened_later(void)
{
	struct sg_sem c, c2;
	struct sleeper s;
	pthread_t thread;

	begin(true);
	c2 = sem_make(&sys[1].v, "c", SG_SEM_COUNT, 0, 0);
	s = sleeper_on(&sys[1].v, "c", SG_SEM_NEVER);
	CHECK_OK(pthread_create(&thread, NULL, sleep_on, &s));
	while (!(sg_load64(sg_sem_word(&sys[1].v, &c2)) & SG_SEMW_WAITERS))
		sg_sleep_us(50);
	sg_sleep_us(50000);
	CHECK_EQ(sg_load64(&sys[1].v.sems->nothers), 0);
	c = sem_of(&sys[0].v, "c");
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(sg_sem_wait(&sys[1].v, &c2, s.c, 0));
	sleeper_end(&s);
	sg_sem_close(&sys[0].v, &c);
	sg_sem_close(&sys[1].v, &c2);
	end();
}

/* An urgent waiter gets its turn before other waiters of its system. */
static void urgent(void)
{
	struct sleeper s[3];
	pthread_t thread[3];
	struct sg_sem c;
	unsigned int i;

	begin(true);
	c = sem_make(&sys[0].v, "c", SG_SEM_COUNT, 0, 0);
	for (i = 0; i < 3; i++) {
		s[i] = sleeper_on(&sys[1].v, "c", SG_SEM_NEVER);
		s[i].c->urgent = i == 2;
		CHECK_OK(pthread_create(&thread[i], NULL, sleep_on, &s[i]));
		while (sg_load64(&sys[1].v.sems->nothers) != i + 1)
			sg_sleep_us(50);
	}
	sg_sleep_us(30000);	/* all three wait */
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(pthread_join(thread[2], NULL));
	CHECK_EQ(sg_load64(&s[0].woken) | sg_load64(&s[1].woken), 0);
	sg_sleep_us(30000);
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(pthread_join(thread[0], NULL));
	CHECK_EQ(sg_load64(&s[1].woken), 0);
	CHECK_OK(sg_sem_post(&sys[0].v, &c));
	CHECK_OK(pthread_join(thread[1], NULL));
	for (i = 0; i < 3; i++)
		sleeper_end(&s[i]);
	sg_sem_close(&sys[0].v, &c);
	end();
}

int main(void)
{
	test_seed();
	exact(SG_SEM_MUTEX, count, "mutex", true);
	exact(SG_SEM_MUTEX, count, "mutex", false);
	exact(SG_SEM_COUNT, count_by_semaphore, "semaphore", true);
	fair();
	producers();
	readers_writers();
	barriers();
	conditions();
	cheap(true);
	cheap(false);
	cancelled();
	paused();
	opened_later();
	urgent();
	return test_done();
}
