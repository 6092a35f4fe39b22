// SPDX-License-Identifier: Apache-2.0
/*
 * P3's two mixes of operations, scaled to a small machine. Each thread has its own folder.
 *
 *   varmail: remove a mail, write a new one; read another and append to it; read a third. 1 read
 *   for each write; a mail has 32 KiB on average.
 *   webproxy: remove a page, write a new one; read five others; append to a log. 5 reads for each
 *   write; a page has 64 KiB on average.
 *
 * Writes have up to 16 KiB, reads up to 1 MiB, as in P3. A length is uniformly random, so most
 * appends begin and end inside of pages.
 */
#include <sys/stat.h>
#include <time.h>
#include "cost.h"
#include "systems.h"
#ifdef SG_RECORD
#include "record.h"
#endif

#define MEMORY		(768ULL << 20)
#define FILES		1000u	/* in all folders together */
#define THREADS		16u
#define PIECE		(16u << 10)
#define READ		(1u << 20)
#define TICK		4000000	/* ns: a kernel's coarse clock */
#define LOG_MAX		(4u << 20)

/* struct worker - a thread. @asked: the bytes that it has written. */
struct worker {
	pthread_t thread;
	struct sg_vol *v;
	struct sg_iref dir, log;
	struct rng rng;
	unsigned int n, files, loops;
	bool atomic, proxy;
	u64 asked;
	u8 *bytes;
};

static struct tsys sys;

static s64 coarse_now(void)
{
	return (s64)(sg_now() / TICK * TICK);
}

static struct sg_iref make(struct worker *w, unsigned int i)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = coarse_now(),
			      .flags = w->atomic ? SG_FL_ATOMIC : 0 };
	struct sg_iref ref;
	char name[16];

	CHECK_OK(sg_create(w->v, &w->dir, name, (u32)sprintf(name, "%u", i), &new, &ref));
	return ref;
}

static struct sg_iref found(struct worker *w, unsigned int i)
{
	char name[16];

	sprintf(name, "%u", i);
	return test_lookup(w->v, &w->dir, name);
}

static void discard(struct worker *w, unsigned int i)
{
	struct sg_iref ref = found(w, i);
	char name[16];

	CHECK_OK(sg_unlink(w->v, &w->dir, name, (u32)sprintf(name, "%u", i), coarse_now()));
	CHECK_OK(sg_evict(w->v, &ref));
}

static void append(struct worker *w, const struct sg_iref *ref, u64 most)
{
	u64 left = 1 + rng_below(&w->rng, most), n;
	struct sg_attr a;

	w->asked += left;
	CHECK_OK(sg_getattr(w->v, ref, &a));
	for (; left; left -= n, a.size += n) {
		n = SG_MIN(left, (u64)PIECE);
		CHECK_EQ(sg_write(w->v, ref, a.size, w->bytes, n, coarse_now()), n);
	}
}

static void read_one(struct worker *w)
{
	struct sg_iref ref = found(w, (unsigned int)rng_below(&w->rng, w->files));

	CHECK(sg_read(w->v, &ref, 0, w->bytes, READ) >= 0);
}

static void write_new(struct worker *w, u64 most)
{
	unsigned int i = (unsigned int)rng_below(&w->rng, w->files);
	struct sg_iref ref;

	discard(w, i);
	ref = make(w, i);
	append(w, &ref, most);
}

static void varmail(struct worker *w)
{
	unsigned int i = (unsigned int)rng_below(&w->rng, w->files);
	struct sg_iref ref;

	write_new(w, 2 * PIECE);
	ref = found(w, i);
	CHECK(sg_read(w->v, &ref, 0, w->bytes, READ) >= 0);
	append(w, &ref, 2 * PIECE);
	read_one(w);
}

static void webproxy(struct worker *w)
{
	struct sg_attr a;
	unsigned int i;

	write_new(w, 8 * PIECE);
	for (i = 0; i < 5; i++)
		read_one(w);
	append(w, &w->log, 2 * PIECE);
	CHECK_OK(sg_getattr(w->v, &w->log, &a));
	if (a.size > LOG_MAX)
		CHECK_OK(sg_resize(w->v, &w->log, 0, coarse_now()));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	for (i = 0; i < w->loops; i++)
		(w->proxy ? webproxy : varmail)(w);
	return NULL;
}

static void prepare(struct worker *w)
{
	struct sg_iref ref;
	char name[16];
	unsigned int i;

	sprintf(name, "d%u", w->n);
	w->dir = test_create(w->v, &sys.root, name, S_IFDIR | 0700);
	w->bytes = calloc(1, READ);
	CHECK(w->bytes);
	for (i = 0; i < w->files; i++) {
		ref = make(w, i);
		append(w, &ref, w->proxy ? 8 * PIECE : 4 * PIECE);
	}
	w->log = make(w, w->files);
}

#ifndef SG_RECORD
static double seconds(clockid_t id)
{
	struct timespec t;

	CHECK_OK(clock_gettime(id, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
#endif

static void worker_make(struct worker *w, const char *name, bool atomic, unsigned int n,
			unsigned int threads, unsigned int loops)
{
	*w = (struct worker){
		.v = &sys.v, .n = n, .files = FILES / threads, .loops = loops, .atomic = atomic,
		.proxy = !strcmp(name, "webproxy"), .rng = { n + 1 },
	};
	prepare(w);
	w->asked = 0;
}

#ifdef SG_RECORD
/* Counts bytes and lines instead of time. The recorder works for one thread. */
void mix_run(const char *name, bool atomic, unsigned int threads, unsigned int loops)
{
	static struct worker w;
	static struct rec rec;
	u64 lines = 0, bytes = 0, k;
	u8 *mem = tsys_volume(MEMORY);
	unsigned int i;

	(void)threads;
	tsys_join(&sys, mem, MEMORY, 1);
	rec_init(&rec, mem, MEMORY, true);
	worker_make(&w, name, atomic, 0, 1, 1);
	for (i = 0; i < loops; i++) {
		rec.n = 0;
		rec_to(&rec);
		work(&w);
		CHECK_OK(sg_reclaim(&sys.v, ~0u));
		rec_to(NULL);
		rec_forget_pages(&rec);
		for (k = 0; k < rec.n; k++) {
			lines += rec.ev[k].kind == REC_WB;
			bytes += rec.ev[k].kind == REC_STORE ? rec.ev[k].len : 0;
		}
		for (k = 0; k < 4; k++)
			CHECK(sg_maintain(&sys.v) >= 0);
	}
	printf("LOOPS %u LINES %" PRIu64 " BYTES %" PRIu64 " ASKED %" PRIu64 "\n", loops, lines, bytes,
	       w.asked);
	tsys_leave(&sys);
}
#else
void mix_run(const char *name, bool atomic, unsigned int threads, unsigned int loops)
{
	static struct worker worker[THREADS];
	double wall, cpu;
	unsigned int i;

	threads = SG_MAX(1u, SG_MIN(threads, THREADS));
	tsys_join(&sys, tsys_volume(MEMORY), MEMORY, 1);
	tsys_maintain(&sys);
	for (i = 0; i < threads; i++)
		worker_make(&worker[i], name, atomic, i, threads, loops);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < threads; i++)
		CHECK_OK(pthread_create(&worker[i].thread, NULL, work, &worker[i]));
	for (i = 0; i < threads; i++)
		CHECK_OK(pthread_join(worker[i].thread, NULL));
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("LOOPS %u RATE %.0f CPU_US %.2f\n", threads * loops, threads * loops / wall,
	       cpu * 1e6 / (threads * loops));
	tsys_leave(&sys);
}
#endif
