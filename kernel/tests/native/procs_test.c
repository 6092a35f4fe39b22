// SPDX-License-Identifier: Apache-2.0
/*
 * Processes use one mapping, one after the other. Each has several threads, and mounts the volume
 * after a process that was killed (SIGKILL) in its work or in its recovery. A log in separate
 * shared memory records what each thread does. The next process must find each change that had
 * returned. Any other change is complete or missing.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workman.h"

#define THREADS	3

struct shared {
	struct work_book worker[THREADS];
	u32 ready, stop;
};

static struct shared *sh;
static u8 *mem;
static u64 volume_size = 32 << 20, seed;

static void *work(void *arg)
{
	struct workman *th = arg;

	while (!__atomic_load_n(&sh->stop, __ATOMIC_RELAXED))
		workman_step(th);
	return NULL;
}

/* --- a process ------------------------------------------------------------------------------ */

static void open_threads(struct tvol *t, struct workman *th, u64 round)
{
	struct sg_iref common = test_lookup(&t->v, &t->root, "common");
	char name[20];
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		sprintf(name, "own-%u", i);
		th[i] = (struct workman){ .v = &t->v, .w = &sh->worker[i], .n = i, .common = common };
		th[i].own = test_lookup(&t->v, &t->root, name);
		th[i].rng.state = seed * 1000003 + round * THREADS + i;
		workman_verify(&th[i]);
	}
}

/* Runs until the process is killed, or until it gets the request to stop and has left. */
static void process(u64 round)
{
	struct tvol t = { .mem = mem, .size = volume_size };
	struct workman th[THREADS];
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

/*
 * Kills mostly during the work, sometimes during the recovery; some processes may leave. Returns
 * true if the process left.
 */
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
		pid = test_fork();
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
	printf("%" PRIu64 " processes killed, %" PRIu64 " left by themselves, %" PRIu64 " operations\n",
	       kills - left, left, done);
	CHECK(done > kills);
	return test_done();
}
