// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of users, with many users at the same time: threads of several systems that lock in order
 * or in any order; readers that immediately lock again, and a writer; processes that act as
 * systems, and are killed (SIGKILL) with locks held while others continue.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "userlock_util.h"

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS	6
#define THINGS	5

static struct {
	u64 inside[THINGS], rounds, deadlocks, ordered, busy;
} sh;

/* Waits for a lock. Returns 0 or -EDEADLK. */
static int wait_for(struct sg_vol *v, const struct sg_iref *ref, struct sg_userlock l)
{
	struct sg_userlock_wait w = { 0 };
	unsigned int turn;
	int err;

	for (turn = 0; turn < 600000; turn++) {
		err = sg_userlock_set(v, ref, &l, &w, NULL);
		if (err != -EAGAIN)
			return err;
		if (turn > 20)
			sg_sleep_us(50);
	}
	test_fail(__FILE__, __LINE__, "a waiter does not get its lock in time");
}

static void come(unsigned int thing)
{
	CHECK_EQ(__atomic_fetch_add(&sh.inside[thing], 1, __ATOMIC_SEQ_CST), 0);
}

static void go(unsigned int thing)
{
	CHECK_EQ(__atomic_fetch_sub(&sh.inside[thing], 1, __ATOMIC_SEQ_CST), 1);
}

/*
 * Locks two files at a time, in order or in any order. With any order, one waiter of a cycle gets
 * -EDEADLK, and releases its lock.
 */
static void *lock_two(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg;
	struct sg_vol *v = &sys[n % SYSTEMS];
	struct rng rng = { n + 1 };
	u64 i;

	for (i = 0; i < sh.rounds; i++) {
		unsigned int a = (unsigned int)rng_below(&rng, THINGS);
		unsigned int b = (a + 1 + (unsigned int)rng_below(&rng, THINGS - 1)) % THINGS;
		struct sg_userlock la, lb;
		int err;

		if (sh.ordered && a > b) {
			unsigned int swap = a;

			a = b;
			b = swap;
		}
		la = lock_of(SG_USERLOCK_POSIX, n, true, a, a);
		lb = lock_of(SG_USERLOCK_POSIX, n, true, b, b);
		CHECK_OK(wait_for(v, &file[a % 2], la));
		come(a);
		err = wait_for(v, &file[b % 2], lb);
		if (!err) {
			come(b);
			go(b);
			CHECK_OK(sg_userlock_clear(v, &file[b % 2], &lb));
		} else {
			CHECK_EQ(err, -EDEADLK);
			__atomic_fetch_add(&sh.deadlocks, 1, __ATOMIC_SEQ_CST);
		}
		go(a);
		CHECK_OK(sg_userlock_clear(v, &file[a % 2], &la));
	}
	return NULL;
}

/* --- a forced cycle --------------------------------------------------------------------------- */

#define RING	4

static struct {
	u64 rounds, told;
	pthread_barrier_t all;
} ring;

/*
 * Each thread has one lock before any thread requests the next one: all wait in a cycle, and one
 * gets -EDEADLK.
 */
static void *lock_next(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg, next = (n + 1) % RING;
	struct sg_userlock mine = lock_of(SG_USERLOCK_POSIX, n, true, n, n);
	struct sg_userlock his = lock_of(SG_USERLOCK_POSIX, n, true, next, next);
	struct sg_vol *v = &sys[n % SYSTEMS];
	u64 i;
	int err;

	for (i = 0; i < ring.rounds; i++) {
		CHECK_OK(wait_for(v, &file[n % 2], mine));
		pthread_barrier_wait(&ring.all);
		err = wait_for(v, &file[next % 2], his);
		if (err == -EDEADLK)
			sg_add64(&ring.told, 1);
		else
			CHECK_OK(err);
		if (!err)
			CHECK_OK(sg_userlock_clear(v, &file[next % 2], &his));
		CHECK_OK(sg_userlock_clear(v, &file[n % 2], &mine));
		pthread_barrier_wait(&ring.all);
		CHECK_EQ(ring.told, i + 1);
		pthread_barrier_wait(&ring.all);
	}
	return NULL;
}

static void run_threads(void *(*fn)(void *), unsigned int n)
{
	pthread_t id[16];
	unsigned int i;

	for (i = 0; i < n; i++)
		CHECK_OK(pthread_create(&id[i], NULL, fn, (void *)(uintptr_t)i));
	for (i = 0; i < n; i++)
		pthread_join(id[i], NULL);
}

static void threads(void)
{
	sh.rounds = test_amount(1000, 3000, 100000);
	sh.ordered = true;
	run_threads(lock_two, THREADS);
	CHECK_EQ(sh.deadlocks, 0);
	sh.ordered = false;
	run_threads(lock_two, THREADS);
	printf("%" PRIu64 " cycles in %" PRIu64 " rounds of %u threads\n", sh.deadlocks, sh.rounds,
	       THREADS);
	CHECK_EQ(each_record(NULL, NULL), 0);
}

static void circles(void)
{
	ring.rounds = test_amount(50, 500, 5000);
	CHECK_OK(pthread_barrier_init(&ring.all, NULL, RING));
	run_threads(lock_next, RING);
	CHECK_EQ(ring.told, ring.rounds);
	CHECK_OK(pthread_barrier_destroy(&ring.all));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* Counters for readers that immediately lock again, so that one always reads, and for a writer. */
static u64 writer_waits, overtaken, readings, over;

static void *read_all_the_time(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg;
	struct sg_vol *v = &sys[n % SYSTEMS];
	struct sg_userlock l = POSIX(100 + n, false);
	struct rng rng = { n + 1 };

	while (!sg_load64(&over)) {
		u64 waited_for = sg_load64(&writer_waits);

		CHECK_OK(wait_for(v, &file[0], l));
		if (waited_for && waited_for == sg_load64(&writer_waits))
			sg_add64(&overtaken, 1);
		sg_add64(&readings, 1);
		sg_sleep_us(200 + (unsigned int)rng_below(&rng, 2000));
		CHECK_OK(sg_userlock_clear(v, &file[0], &l));
	}
	return NULL;
}

static void starvation(void)
{
	struct sg_userlock l = POSIX(1, true);
	u64 rounds = test_amount(5, 50, 1000), i, start, longest = 0;
	pthread_t id[5];
	unsigned int k;

	for (k = 0; k < 5; k++)
		CHECK_OK(pthread_create(&id[k], NULL, read_all_the_time, (void *)(uintptr_t)k));
	while (sg_load64(&readings) < 20)
		sg_sleep_us(100);
	for (i = 0; i < rounds; i++) {
		struct sg_userlock_wait w = { 0 };
		int err = sg_userlock_set(&t.v, &file[0], &l, &w, NULL);

		start = sg_ticks();
		if (err == -EAGAIN)
			sg_store64(&writer_waits, i + 1);
		while (err == -EAGAIN) {
			sg_sleep_us(3000);
			err = sg_userlock_set(&t.v, &file[0], &l, &w, NULL);
		}
		CHECK_OK(err);
		sg_store64(&writer_waits, 0);
		longest = SG_MAX(longest, sg_ticks() - start);
		CHECK_OK(sg_userlock_clear(&t.v, &file[0], &l));
		sg_sleep_us(2000);
	}
	sg_store64(&over, 1);
	for (k = 0; k < 5; k++)
		pthread_join(id[k], NULL);
	printf("a writer among 5 readers: %" PRIu64 " us at most, %" PRIu64 " readings\n",
	       longest / 1000, readings);
	CHECK_EQ(overtaken, 0);
	CHECK(longest < 900 * MS);
}

/* --- systems that are killed ------------------------------------------------------------------ */

#define CHILDREN	3
#define MANY		10000

/*
 * Shared state of the processes, outside the volume: which process holds which lock, and which are
 * dead.
 */
struct shared {
	u64 inside[THINGS];	/* number of the process, or 0 */
	u64 dead[MANY];
	u64 slot[MANY], inc[MANY];
	u64 got, deadlocks, lost;
};
static struct shared *ps;

static void enter_thing(u64 me, unsigned int thing)
{
	u64 was = __atomic_exchange_n(&ps->inside[thing], me, __ATOMIC_SEQ_CST);

	if (was && !sg_load64(&ps->dead[was]))
		test_fail(__FILE__, __LINE__, "%" PRIu64 " has what %" PRIu64 " holds", me, was);
	if (was)
		sg_add64(&ps->lost, 1);
	sg_add64(&ps->got, 1);
}

static void leave_thing(u64 me, unsigned int thing)
{
	CHECK_EQ(__atomic_exchange_n(&ps->inside[thing], 0, __ATOMIC_SEQ_CST), me);
}

static void child(u64 me)
{
	struct rng rng = { me };
	struct sg_vol v;

	join(&v);
	ps->slot[me] = (u64)v.slot;
	ps->inc[me] = v.incarnation;
	for (;;) {
		unsigned int a = (unsigned int)rng_below(&rng, THINGS);
		unsigned int b = (unsigned int)rng_below(&rng, THINGS);
		unsigned int kind = rng_chance(&rng, 80) ? SG_USERLOCK_POSIX : SG_USERLOCK_OFD;
		struct sg_userlock la = lock_of(kind, 5, true, 8 * a, 8 * a + 3);
		struct sg_userlock lb = lock_of(kind, 5, true, 8 * b, 8 * b + 5);
		bool exclusive = rng_chance(&rng, 50);
		struct sg_userlock mid = lock_of(kind, 5, exclusive, 8 * a + 1, 8 * a + 2);

		CHECK_OK(wait_for(&v, &file[a % 2], la));
		enter_thing(me, a);
		/* splits the lock and merges it again; its first byte stays locked */
		if (rng_chance(&rng, 50))
			CHECK_OK(sg_userlock_clear(&v, &file[a % 2], &mid));
		if (rng_chance(&rng, 50))
			CHECK_OK(wait_for(&v, &file[a % 2], mid));
		if (a != b && kind == SG_USERLOCK_POSIX) {
			if (!wait_for(&v, &file[b % 2], lb)) {
				enter_thing(me, b);
				leave_thing(me, b);
				CHECK_OK(sg_userlock_clear(&v, &file[b % 2], &lb));
			} else {
				sg_add64(&ps->deadlocks, 1);
			}
		}
		leave_thing(me, a);
		CHECK_OK(sg_userlock_clear(&v, &file[a % 2], &la));
	}
}

static pid_t start_child(u64 me)
{
	pid_t pid = test_fork();

	if (!pid)
		child(me);
	return pid;
}

static void kill_child(pid_t pid, u64 me)
{
	int status;

	CHECK_OK(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/*
	 * the dead process's locks stay until recovery: the test would detect any other holder here
	 */
	sg_sleep_us(1000);
	sg_store64(&ps->dead[me], 1);
	if (ps->inc[me])
		CHECK_OK(sg_fence_slot(&t.v, (unsigned int)ps->slot[me], (u32)ps->inc[me]));
	sg_recover_all(&t.v);
}

/* Stops a process that holds a lock, and returns its index. */
static u64 stop_inside(const pid_t pid[CHILDREN], const u64 number[CHILDREN])
{
	u64 start = sg_ticks();
	unsigned int k, i;
	int status;

	for (k = 0; sg_ticks() - start < 60000 * MS; k = (k + 1) % CHILDREN) {
		CHECK_OK(kill(pid[k], SIGSTOP));
		CHECK_EQ(waitpid(pid[k], &status, WUNTRACED), pid[k]);
		CHECK(WIFSTOPPED(status));
		for (i = 0; i < THINGS; i++)
			if (sg_load64(&ps->inside[i]) == number[k])
				return k;
		CHECK_OK(kill(pid[k], SIGCONT));
		usleep(500);
	}
	test_fail(__FILE__, __LINE__, "no process gets a lock");
}

/* Checks that the remaining processes get the dead process's locks. */
static void others_go_on(u64 lost)
{
	u64 start = sg_ticks();

	while (sg_load64(&ps->lost) == lost) {
		CHECK(sg_ticks() - start < 60000 * MS);
		usleep(200);
	}
}

/*
 * A process was killed in its join, before its slot was known. Fences each taken slot without a
 * process.
 */
static void fence_unknown(const u64 number[CHILDREN])
{
	u64 taken = sg_slots_taken(&t.v) & ~(1ULL << t.v.slot);
	unsigned int i, k;

	for (i = 0; i < SG_SLOTS; i++) {
		bool known = false;

		if (!(taken >> i & 1))
			continue;
		for (k = 0; k < SYSTEMS; k++)
			known |= sys[k].slot == (int)i;
		for (k = 0; k < CHILDREN; k++)
			known |= ps->inc[number[k]] && ps->slot[number[k]] == i;
		if (!known)
			sg_fence_slots(&t.v, 1ULL << i);
	}
	sg_recover_all(&t.v);
}

static void kills(void)
{
	u64 n = test_amount(30, 500, MANY - CHILDREN - 1), i, next = 1, number[CHILDREN];
	struct rng rng = { seed };
	pid_t pid[CHILDREN];
	unsigned int k;

	n = SG_MIN(n, (u64)MANY - CHILDREN - 1);
	ps = mmap(NULL, sizeof(*ps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ps != MAP_FAILED);
	for (k = 0; k < CHILDREN; k++) {
		number[k] = next++;
		pid[k] = start_child(number[k]);
	}
	for (i = 0; i < n; i++) {
		u64 victim = rng_below(&rng, CHILDREN), inside, lost;

		for (k = 0; !ps->inc[number[victim]] && k < 50000; k++)
			usleep(100);
		CHECK(ps->inc[number[victim]]);
		usleep((unsigned int)rng_size(&rng, 8000));
		inside = i % 20 == 10;
		lost = sg_load64(&ps->lost);
		if (inside)
			victim = stop_inside(pid, number);
		kill_child(pid[victim], number[victim]);
		number[victim] = next++;
		pid[victim] = start_child(number[victim]);
		if (inside)
			others_go_on(lost);
	}
	for (k = 0; k < CHILDREN; k++)
		kill_child(pid[k], number[k]);
	fence_unknown(number);
	printf("%" PRIu64 " processes killed, %" PRIu64 " of them with a lock; %" PRIu64 " locks, %"
	       PRIu64 " cycles\n", n, ps->lost, ps->got, ps->deadlocks);
	CHECK(ps->lost > 0);
	/* no lock or request of a killed process blocks others */
	for (k = 0; k < 2; k++) {
		CHECK_OK(try(0, k, POSIX(1, true)));
		drop(0, k, POSIX(1, true));
	}
	CHECK_EQ(each_record(NULL, NULL), 0);
	munmap(ps, sizeof(*ps));
}

int main(void)
{
	seed = test_seed();
	begin(64 << 20);
	threads();
	circles();
	starvation();
	kills();
	end();
	return test_done();
}
