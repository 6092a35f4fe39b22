// SPDX-License-Identifier: Apache-2.0
/*
 * Processes act as systems. Each stores a sequence: into two files in place, at the end of a third
 * file, and as names. Another process copies the volume meanwhile. Each valid copy passes fsck. It
 * holds all steps that had returned before the copy, and a prefix of the later steps. Some
 * processes are killed (SIGKILL) before and during a freeze, the copying process among them. Then
 * the other processes continue.
 */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"

#define SYSTEMS		3
#define SIZE		(32ULL << 20)
#define PAGES		3		/* pages of the first file */
#define LIMIT		4000
#define TRIES		3

/*
 * @begun, @done: the last step that each process began and ended. @ready: since when it is joined.
 * @holder: state of the copying process. @churned: files made and removed.
 */
static struct shared {
	u64 begun[SYSTEMS], done[SYSTEMS], ready[SYSTEMS];
	u64 holder, churned;
} *sh;

static u8 *mem, *copy;
static u64 seed;
static pid_t pid[SYSTEMS];
static bool dead[SYSTEMS];

/* --- a process that stores a sequence -------------------------------------------------------- */

struct member {
	struct tsys s;
	unsigned int n;
	u64 round;
	struct sg_iref a, b, log;
};

static u32 name_of(char *buf, const char *what, unsigned int n, u64 k)
{
	return (u32)sprintf(buf, "%s-%u-%" PRIu64, what, n, k);
}

static struct sg_iref open_file(struct member *m, const char *what)
{
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(name, what, m->n, 0);

	if (!sg_lookup(&m->s.v, &m->s.root, name, len, &ref, NULL))
		return ref;
	return test_create(&m->s.v, &m->s.root, name, S_IFREG | 0600);
}

static void store(struct member *m, const struct sg_iref *f, u64 pos, u64 k, u64 words)
{
	static __thread u64 buf[PAGES * SG_PAGE / 8];
	u64 i;

	for (i = 0; i < words; i++)
		buf[i] = k;
	CHECK_EQ(sg_write(&m->s.v, f, pos, buf, words * 8, 1), words * 8);
}

static void append(struct member *m, u64 k)
{
	struct sg_attr a;

	CHECK_OK(sg_getattr(&m->s.v, &m->log, &a));
	if (a.size >= 64 * SG_PAGE) {
		CHECK_OK(sg_resize(&m->s.v, &m->log, 0, 1));
		a.size = 0;
	}
	store(m, &m->log, a.size, k, 1);
}

static void make_name(struct member *m, u64 k)
{
	char name[40];

	name_of(name, "k", m->n, k);
	test_create(&m->s.v, &m->s.root, name, S_IFREG | 0600);
}

static void drop_name(struct member *m, u64 k)
{
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(name, "k", m->n, k);

	if (sg_lookup(&m->s.v, &m->s.root, name, len, &ref, NULL))
		return;
	CHECK_OK(sg_unlink(&m->s.v, &m->s.root, name, len, 1));
	CHECK_OK(sg_evict(&m->s.v, &ref));
}

/* Does a step of the sequence, which is one call or several calls. */
static void step(struct member *m, u64 k)
{
	u64 i;

	tadvance(&sh->begun[m->n], k);
	for (i = 0; i < 5; i++) {
		tsys_call(&m->s);
		switch (i) {
		case 0: store(m, &m->a, 0, k, PAGES * SG_PAGE / 8); break;
		case 1: store(m, &m->b, 8, k, 1); break;
		case 2: append(m, k); break;
		case 3: make_name(m, k); break;
		case 4: drop_name(m, k - 1); break;
		}
		tsys_called(&m->s);
	}
	tadvance(&sh->done[m->n], k);
}

/*
 * Files are made and removed as well. The last close of a file is not a call, and continues while
 * calls wait. Only the engine keeps the stores of the close out of the copy.
 */
#define GONE	64
static struct sg_iref gone[GONE];
static u64 left, freed;

static void *let_go(void *arg)
{
	struct member *m = arg;

	for (;; sg_add64(&freed, 1)) {
		while (sg_load64_acquire(&left) == freed)
			sg_sleep_us(100);
		CHECK_OK(sg_evict(&m->s.v, &gone[freed % GONE]));
		sg_add64(&sh->churned, 1);
	}
	return NULL;
}

static void *churn(void *arg)
{
	struct member *m = arg;
	char name[40];
	u64 i;

	for (i = 0;; i++) {
		u32 len = name_of(name, "churn", m->n, m->round << 32 | i);
		struct sg_iref ref;

		tsys_call(&m->s);
		ref = test_create(&m->s.v, &m->s.root, name, S_IFREG | 0600);
		store(m, &ref, (i % 50) << SG_PAGE_SHIFT, i, PAGES * SG_PAGE / 8);
		tsys_called(&m->s);
		tsys_call(&m->s);
		CHECK_OK(sg_unlink(&m->s.v, &m->s.root, name, len, 1));
		tsys_called(&m->s);
		while (left - sg_load64_acquire(&freed) == GONE)
			sg_sleep_us(100);
		gone[left % GONE] = ref;
		sg_add64(&left, 1);
	}
	return NULL;
}

static void enter(struct tsys *s, unsigned int machine, u64 round)
{
	struct sg_identity id = tsys_identity(machine, (unsigned int)round + 1);

	id.pid = (u64)getpid();
	if (tsys_try(s, mem, SIZE, &id, 0, false))
		test_fail(__FILE__, __LINE__, "system %u cannot join: %s", machine, s->v.why);
	s->v.space_wait_ms = 60000;
	tsys_calls(s);
	tsys_maintain(s);
}

struct start {
	unsigned int n;
	u64 round;
};

static void body(void *arg)
{
	const struct start *start = arg;
	struct member m = { .n = start->n, .round = start->round };
	u64 k = sh->begun[m.n] + 1;
	pthread_t id, other;

	enter(&m.s, m.n + 1, m.round);
	m.a = open_file(&m, "a");
	m.b = open_file(&m, "b");
	m.log = open_file(&m, "log");
	drop_name(&m, k - 2);
	step(&m, k);
	CHECK_OK(pthread_create(&id, NULL, churn, &m));
	CHECK_OK(pthread_create(&other, NULL, let_go, &m));
	tadvance(&sh->ready[m.n], 1);
	for (;;)
		step(&m, ++k);
}

/* --- a copy ---------------------------------------------------------------------------------- */

struct reader {
	struct tsys c;
	unsigned int n;
	u64 lowest, highest, names;
};

static bool meet(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct reader *r = ctx;
	unsigned int n;
	char buf[64];
	u64 k;

	(void)ino;
	(void)type;
	(void)cookie;
	snprintf(buf, sizeof(buf), "%.*s", (int)len, name);
	if (sscanf(buf, "k-%u-%" SCNu64, &n, &k) != 2 || n != r->n)
		return true;
	r->lowest = SG_MIN(r->lowest, k);
	r->highest = SG_MAX(r->highest, k);
	r->names++;
	return true;
}

static u64 word_at(struct reader *r, const char *what, u64 pos)
{
	char name[40];
	struct sg_iref ref;
	u64 k;

	name_of(name, what, r->n, 0);
	ref = test_lookup(&r->c.v, &r->c.root, name);
	CHECK_EQ(sg_read(&r->c.v, &ref, pos, &k, 8), 8);
	return k;
}

static u64 last_of_log(struct reader *r)
{
	struct sg_iref ref;
	struct sg_attr a;
	char name[40];

	name_of(name, "log", r->n, 0);
	ref = test_lookup(&r->c.v, &r->c.root, name);
	CHECK_OK(sg_getattr(&r->c.v, &ref, &a));
	CHECK(a.size >= 8);
	return word_at(r, "log", a.size - 8);
}

/*
 * Checks that parts which a step stores first are at least as new as parts which it stores later.
 */
static void check_sequence(struct reader *r, u64 done, u64 begun)
{
	u64 a = word_at(r, "a", 0), b = word_at(r, "b", 8), log = last_of_log(r), pos, cookie = 0;

	test_note("system %u: a %" PRIu64 ", b %" PRIu64 ", log %" PRIu64, r->n, a, b, log);
	for (pos = 0; pos < PAGES * SG_PAGE; pos += 8)
		CHECK_EQ(word_at(r, "a", pos), a);
	CHECK(a <= begun && log >= done);
	CHECK(a >= b && b >= log && a - log <= 1);
	r->lowest = ~0ULL;
	CHECK_OK(sg_readdir(&r->c.v, &r->c.root, &cookie, meet, r));
	CHECK(r->highest <= log && log - r->highest <= 1 && r->highest >= done);
	CHECK(r->names == r->highest - r->lowest + 1 && r->names <= 2);
	CHECK(r->names == 1 || r->highest == a);
	CHECK(r->highest == a || a - r->highest == 1);
}

/* @done: the last step that each process had completed before the copy; 0: unknown. */
static void check_copy(const u64 done[SYSTEMS], const u64 begun[SYSTEMS])
{
	struct sg_identity id = tsys_identity(99, 1);
	struct reader r = { .n = 0 };

	test_clean(copy, SIZE);
	CHECK_OK(tsys_try(&r.c, copy, SIZE, &id, 0, true));
	for (r.n = 0; r.n < SYSTEMS; r.n++) {
		r.highest = r.names = 0;
		if (done[r.n])
			check_sequence(&r, done[r.n], begun[r.n]);
	}
	tsys_leave(&r.c);
	test_clean(copy, SIZE);
}

/* --- the copying process, and the kills ------------------------------------------------------ */

static struct tsys us;

static void start(unsigned int n, u64 round)
{
	struct start s = { n, round };

	sh->ready[n] = 0;
	dead[n] = false;
	pid[n] = tproc(body, &s);
}

/* Fences the system that has this process id. */
static void fence(pid_t who)
{
	struct sg_slot slot;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		CHECK_OK(sg_slot_read(&us.v, i, &slot));
		if (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE && slot.pid == (u64)who)
			sg_fence_slot(&us.v, i, SG_SLOT_INC(slot.state));
	}
}

static void kill_one(unsigned int n, bool told)
{
	tawait(&sh->ready[n], 1);
	tproc_kill(pid[n]);
	dead[n] = true;
	if (told)
		fence(pid[n]);
}

/*
 * Copies slowly, so that a system that is not frozen would store meanwhile. Copies single words,
 * because this process's heartbeat continues.
 */
static void take_copy(void)
{
	u64 at;

	for (at = 0; at < SIZE; at += 8) {
		*(u64 *)(copy + at) = sg_load64((const u64 *)(mem + at));
		if (at % (SIZE / 128) == 0)
			sg_sleep_us(100);
	}
}

/*
 * @victim: a process that dies during the freeze; other processes may or may not learn of the
 * death.
 */
static bool try_copy(unsigned int victim, struct rng *rng)
{
	u64 done[SYSTEMS], begun[SYSTEMS];
	char why[200];
	unsigned int n;
	int err;

	for (n = 0; n < SYSTEMS; n++)
		done[n] = sh->ready[n] ? sh->done[n] : 0;
	err = sg_freeze(&us.v, LIMIT, why);
	if (err) {
		CHECK_EQ(err, -EBUSY);
		return false;
	}
	if (victim < SYSTEMS)
		kill_one(victim, rng_chance(rng, 50));
	take_copy();
	for (n = 0; n < SYSTEMS; n++)
		begun[n] = sh->begun[n];
	err = sg_thaw(&us.v);
	if (err)
		CHECK_EQ(err, -EAGAIN);
	else
		check_copy(done, begun);
	return !err;
}

static void holder(void *arg)
{
	struct tsys s;
	char why[200];

	(void)arg;
	enter(&s, 50, 1);
	tadvance(&sh->holder, 1);
	for (;;) {
		if (!sg_freeze(&s.v, LIMIT, why)) {
			tadvance(&sh->holder, 2);
			sg_sleep_us(20000);
			sg_thaw(&s.v);
		}
		sg_sleep_us(1000);
	}
}

/* The copying process dies; other processes continue. */
static void holder_dies(struct rng *rng)
{
	bool stands = rng_chance(rng, 70);
	pid_t who;
	unsigned int n;
	u64 was;

	sh->holder = 0;
	who = tproc(holder, NULL);
	tawait(&sh->holder, 1);
	for (n = 0; stands && n < 5000 && sg_load64(&sh->holder) < 2; n++)
		/* bounded, because the holder gets no freeze if systems were frozen too often */
		sg_sleep_us(1000);
	sg_sleep_us((unsigned int)rng_below(rng, 30000));
	tproc_kill(who);
	fence(who);
	for (n = 0; n < SYSTEMS; n++) {
		was = __atomic_load_n(&sh->done[n], __ATOMIC_SEQ_CST);
		tawait(&sh->done[n], was + 2);
	}
}

static u64 copies, victims;

static void round_of(u64 i, struct rng *rng)
{
	unsigned int victim = SYSTEMS, t;
	bool done = false;

	if (i % 5 == 4)
		holder_dies(rng);
	if (i % 3 == 2)
		victim = (unsigned int)rng_below(rng, SYSTEMS);
	sg_sleep_us((unsigned int)rng_below(rng, 20000));
	if (victim < SYSTEMS && rng_chance(rng, 30)) {
		kill_one(victim, true);
	} else {
		for (t = 0; t < TRIES && !done && (victim == SYSTEMS || !dead[victim]); t++)
			done = try_copy(victim, rng);
		copies += done;
	}
	if (victim < SYSTEMS) {
		if (!dead[victim])
			kill_one(victim, true);
		fence(pid[victim]);
		victims++;
		start(victim, i + 2);
		tawait(&sh->ready[victim], 1);
	}
}

/* The copying process has threads while it forks processes with threads. TSan must allow that. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

int main(void)
{
	u64 rounds = test_amount(10, 40, 3000), i;
	struct rng rng;
	unsigned int n;

	seed = rng.state = test_seed();
	tlog_catch();
	sh = tshare(sizeof(*sh));
	mem = tsys_volume(SIZE);
	copy = test_map(SIZE);
	enter(&us, 40, 1);
	for (n = 0; n < SYSTEMS; n++)
		start(n, 1);
	for (n = 0; n < SYSTEMS; n++)
		tawait(&sh->ready[n], 1);
	for (i = 0; i < rounds; i++)
		round_of(i, &rng);
	for (n = 0; n < SYSTEMS; n++)
		kill_one(n, true);
	tsys_leave(&us);
	test_clean(mem, SIZE);
	printf("%" PRIu64 " copies in %" PRIu64 " rounds, %" PRIu64 " processes killed; %" PRIu64
	       " steps, %" PRIu64 " files made and removed\n", copies, rounds, victims,
	       sh->done[0] + sh->done[1] + sh->done[2], sh->churned);
	CHECK(copies > rounds / 3);
	return test_done();
}
