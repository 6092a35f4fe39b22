// SPDX-License-Identifier: Apache-2.0
/*
 * Processes on one mapping, one after the other: each takes the volume over from one that was
 * killed (SIGKILL) somewhere in its work or in its recovery, with several threads at it. A ledger
 * of what each thread does stands in shared memory beside the volume: what had returned must be
 * there for the next process, and what had not is done or not done.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"

#define THREADS	3
#define FILES	12	/* per thread: half of them in a directory that all threads use */
#define SIZE_OF(f) (3000 + 1777 * (u64)(f))
#define MAX_SIZE SIZE_OF(FILES)

enum { ABSENT, EMPTY, FULL, MIXED };	/* MIXED: a write was cut off in the middle */

struct content {
	u32 state, version;
};

/* What a thread says it is doing: files a and b (or none) go from what they are to these. */
struct intent {
	u32 active, a, b;
	struct content to_a, to_b;
};

struct worker {
	struct content file[FILES];
	struct intent intent;
	u64 done;
	u32 version;
};

struct shared {
	struct worker worker[THREADS];
	u32 ready, stop;
};

static struct shared *sh;
static u8 *mem;
static u64 volume_size = 32 << 20, seed;

struct thread {
	struct tvol *t;
	struct worker *w;
	unsigned int n;
	struct rng rng;
	struct sg_iref own, common;
};

/* --- files ---------------------------------------------------------------------------------- */

static struct sg_iref *dir_of(struct thread *th, u32 f)
{
	return f % 2 ? &th->common : &th->own;
}

static u32 name_of(struct thread *th, u32 f, char *name)
{
	return (u32)sprintf(name, "worker-%u-file-%u", th->n, f);
}

static void pattern(struct thread *th, u32 f, u32 version, u8 *buf)
{
	struct rng r = { (u64)version << 32 | f << 8 | th->n };

	rng_fill(&r, buf, SIZE_OF(f));
}

static bool find(struct thread *th, u32 f, struct sg_iref *ref)
{
	char name[40];
	u32 len = name_of(th, f, name);
	int err = sg_lookup(&th->t->v, dir_of(th, f), name, len, ref, NULL);

	if (err)
		CHECK_EQ(err, -ENOENT);
	return !err;
}

/* --- what is there -------------------------------------------------------------------------- */

/* Is file @f what @want says? Its data were written for @data: renames carry them along. */
static bool matches(struct thread *th, u32 f, const struct content *want)
{
	static __thread u8 got[MAX_SIZE], buf[MAX_SIZE];
	u32 origin = want->version >> 24;
	struct sg_iref ref;
	struct sg_attr a;

	if (!find(th, f, &ref))
		return want->state == ABSENT;
	CHECK_OK(sg_getattr(&th->t->v, &ref, &a));
	CHECK_EQ(a.nlink, 1);
	if (want->state == ABSENT)
		return false;
	if (want->state == MIXED)
		return a.size <= MAX_SIZE;
	if (want->state == EMPTY)
		return a.size == 0;
	pattern(th, origin, want->version, buf);
	return a.size == SIZE_OF(origin) &&
	       sg_read(&th->t->v, &ref, 0, got, a.size) == (s64)a.size && !memcmp(buf, got, a.size);
}

/* Bytes that a write that was cut off may leave: old, new, or none yet. */
static bool is_mix(struct thread *th, u32 f, const struct content *old, const struct content *new)
{
	static __thread u8 got[MAX_SIZE], was[MAX_SIZE], is[MAX_SIZE];
	u64 i, old_size = old->state == FULL ? SIZE_OF(old->version >> 24) : 0;
	struct sg_iref ref;
	struct sg_attr a;

	if (new->state != FULL || !find(th, f, &ref))
		return false;
	CHECK_OK(sg_getattr(&th->t->v, &ref, &a));
	if (old->state == MIXED)
		return a.size <= MAX_SIZE;
	memset(was, 0, sizeof(was));
	if (old->state == FULL)
		pattern(th, old->version >> 24, old->version, was);
	pattern(th, f, new->version, is);
	if (a.size < old_size || a.size > MAX_SIZE)
		return false;
	CHECK_EQ(sg_read(&th->t->v, &ref, 0, got, a.size), a.size);
	for (i = 0; i < a.size; i++)
		if (!(i < old_size && got[i] == was[i]) && !(i < SIZE_OF(f) && got[i] == is[i]))
			return false;
	return true;
}

/* Settles the intent of a thread that was killed. Only reads the volume: may itself be killed. */
static void settle(struct thread *th)
{
	struct intent in = th->w->intent;
	struct content *a = &th->w->file[in.a], *b = &th->w->file[in.b];

	if (!in.active)
		return;
	test_note("worker %u: files %u, %u, to state %u, %u", th->n, in.a, in.b, in.to_a.state,
		  in.to_b.state);
	if (matches(th, in.a, &in.to_a) && matches(th, in.b, in.a == in.b ? &in.to_a : &in.to_b)) {
		*a = in.to_a;
		if (in.a != in.b)
			*b = in.to_b;
	} else if (!(matches(th, in.a, a) && matches(th, in.b, b))) {
		if (in.a != in.b || !is_mix(th, in.a, a, &in.to_a))
			test_fail(__FILE__, __LINE__, "half done: files %u and %u, states %u and %u",
				  in.a, in.b, a->state, b->state);
		a->state = MIXED;
	}
	th->w->intent.active = 0;
}

static void verify(struct thread *th)
{
	u32 f;

	settle(th);
	for (f = 0; f < FILES; f++) {
		test_note("worker %u: file %u, state %u, version %x", th->n, f, th->w->file[f].state,
			  th->w->file[f].version);
		CHECK(matches(th, f, &th->w->file[f]));
	}
}

/* --- work ----------------------------------------------------------------------------------- */

static void intend(struct thread *th, u32 a, u32 b, struct content to_a, struct content to_b)
{
	struct intent *in = &th->w->intent;

	in->a = a;
	in->b = b;
	in->to_a = to_a;
	in->to_b = to_b;
	__atomic_store_n(&in->active, 1, __ATOMIC_SEQ_CST);
}

static void did(struct thread *th)
{
	struct intent *in = &th->w->intent;

	/* a kill between these finds both true of the volume */
	th->w->file[in->a] = in->to_a;
	if (in->a != in->b)
		th->w->file[in->b] = in->to_b;
	__atomic_store_n(&in->active, 0, __ATOMIC_SEQ_CST);
	th->w->done++;
}

static u32 next_version(struct thread *th, u32 f)
{
	return f << 24 | (++th->w->version & 0xffffff);
}

static void create(struct thread *th, u32 f)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct content empty = { EMPTY, 0 };
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(th, f, name);

	intend(th, f, f, empty, empty);
	CHECK_OK(sg_create(&th->t->v, dir_of(th, f), name, len, &new, &ref));
	did(th);
}

static void fill(struct thread *th, u32 f)
{
	struct content full = { FULL, next_version(th, f) };
	static __thread u8 buf[MAX_SIZE];
	struct sg_iref ref;
	struct sg_attr a;

	CHECK(find(th, f, &ref));
	CHECK_OK(sg_getattr(&th->t->v, &ref, &a));
	if (a.size > SIZE_OF(f))
		return;		/* a larger one has been renamed to here */
	pattern(th, f, full.version, buf);
	intend(th, f, f, full, full);
	CHECK_EQ(sg_write(&th->t->v, &ref, 0, buf, SIZE_OF(f), 1), SIZE_OF(f));
	did(th);
}

static void empty(struct thread *th, u32 f)
{
	struct content empty = { EMPTY, 0 };
	struct sg_iref ref;

	CHECK(find(th, f, &ref));
	intend(th, f, f, empty, empty);
	CHECK_OK(sg_resize(&th->t->v, &ref, 0, 1));
	did(th);
}

static void discard(struct thread *th, u32 f)
{
	struct content absent = { ABSENT, 0 };
	struct sg_iref ref;
	char name[40];
	u32 len = name_of(th, f, name);

	CHECK(find(th, f, &ref));
	intend(th, f, f, absent, absent);
	CHECK_OK(sg_unlink(&th->t->v, dir_of(th, f), name, len, 1));
	did(th);
	CHECK_OK(sg_evict(&th->t->v, &ref));
}

static void move(struct thread *th, u32 f, u32 g)
{
	bool exchange = th->w->file[g].state != ABSENT && rng_chance(&th->rng, 50);
	struct content absent = { ABSENT, 0 };
	char from[40], to[40];
	u32 flen = name_of(th, f, from), glen = name_of(th, g, to);
	struct sg_iref ref;
	bool replaced = find(th, g, &ref) && !exchange;

	if (f == g)
		return;
	intend(th, f, g, exchange ? th->w->file[g] : absent, th->w->file[f]);
	CHECK_OK(sg_rename(&th->t->v, dir_of(th, f), from, flen, dir_of(th, g), to, glen,
			   exchange ? SG_RENAME_EXCHANGE : 0, NULL, 1));
	did(th);
	if (replaced)
		CHECK_OK(sg_evict(&th->t->v, &ref));
}

static void step(struct thread *th)
{
	u32 f = (u32)rng_below(&th->rng, FILES), dice = (u32)rng_below(&th->rng, 10);

	test_note("worker %u: file %u in state %u, dice %u", th->n, f, th->w->file[f].state, dice);
	if (th->w->file[f].state == ABSENT)
		create(th, f);
	else if (dice < 5)
		fill(th, f);
	else if (dice < 6)
		empty(th, f);
	else if (dice < 8)
		discard(th, f);
	else
		move(th, f, (u32)rng_below(&th->rng, FILES));
}

static void *work(void *arg)
{
	struct thread *th = arg;

	while (!__atomic_load_n(&sh->stop, __ATOMIC_RELAXED))
		step(th);
	return NULL;
}

/* --- a process ------------------------------------------------------------------------------ */

static void open_threads(struct tvol *t, struct thread *th, u64 round)
{
	struct sg_iref common = test_lookup(&t->v, &t->root, "common");
	char name[20];
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		sprintf(name, "own-%u", i);
		th[i] = (struct thread){ .t = t, .w = &sh->worker[i], .n = i, .common = common };
		th[i].own = test_lookup(&t->v, &t->root, name);
		th[i].rng.state = seed * 1000003 + round * THREADS + i;
		verify(&th[i]);
	}
}

/* Runs until killed, or, when it is told to stop, until it has left properly. */
static void process(u64 round)
{
	struct tvol t = { .mem = mem, .size = volume_size };
	struct thread th[THREADS];
	pthread_t id[THREADS];
	unsigned int i;

	tvol_join(&t);
	open_threads(&t, th, round);
	__atomic_store_n(&sh->ready, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < THREADS; i++)
		CHECK_OK(pthread_create(&id[i], NULL, work, &th[i]));
	for (i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	tvol_leave(&t);
	_exit(0);
}

static void setup(void)
{
	struct tvol t;
	char name[20];
	unsigned int i;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	tvol_make(&t, volume_size);
	test_create(&t.v, &t.root, "common", S_IFDIR | 0700);
	for (i = 0; i < THREADS; i++) {
		sprintf(name, "own-%u", i);
		test_create(&t.v, &t.root, name, S_IFDIR | 0700);
	}
	mem = t.mem;
	tvol_leave(&t);
}

/* Mostly in the middle of its work, sometimes in its recovery; some may leave. Returns: it left. */
static bool end(struct rng *rng, pid_t pid)
{
	bool leave = rng_chance(rng, 5);
	int status;

	if (!rng_chance(rng, 25))
		while (!__atomic_load_n(&sh->ready, __ATOMIC_SEQ_CST) && !waitpid(pid, &status, WNOHANG))
			usleep(100);
	usleep((unsigned int)rng_size(rng, 12000));
	if (leave)
		__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	else
		kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (leave)
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	else
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return leave;
}

int main(void)
{
	u64 kills = test_amount(100, 2000, 30000), i, done = 0, left = 0;
	struct tvol t = { 0 };
	struct rng rng;
	pid_t pid;

	seed = rng.state = test_seed();
	setup();
	for (i = 0; i < kills; i++) {
		sh->ready = sh->stop = 0;
		fflush(stdout);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			process(i);
		left += end(&rng, pid);
		if (i % 8 == 0)
			test_clean(mem, volume_size);
	}
	t.mem = mem;
	t.size = volume_size;
	tvol_join(&t);
	tvol_drop(&t);
	for (i = 0; i < THREADS; i++)
		done += sh->worker[i].done;
	printf("%" PRIu64 " killed, %" PRIu64 " left by themselves, %" PRIu64 " operations\n",
	       kills - left, left, done);
	CHECK(done > kills);
	return test_done();
}
