// SPDX-License-Identifier: Apache-2.0
/* Checks, amounts, random numbers. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "test.h"

unsigned long test_checks;
static __thread char note[512];
static u64 seed;

void test_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	va_list ap;

	pthread_mutex_lock(&once);	/* never unlocked: only the first failure is printed */
	fflush(stdout);
	fprintf(stderr, "%s:%d: failed: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n  while: %s\n  SEED=%" PRIu64 "\n", note[0] ? note : "-", seed);
	fflush(stderr);
	abort();
}

static const char *within;

static void too_late(int sig)
{
	(void)sig;
	test_fail(__FILE__, __LINE__, "not complete in time: %s", within);
}

void test_within(unsigned int seconds, const char *what)
{
	within = what;
	signal(SIGALRM, seconds ? too_late : SIG_DFL);
	alarm(seconds);
}

pid_t test_fork(void)
{
	pid_t maker = getpid(), pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != maker)
		_exit(1);	/* the parent has already ended */
	return 0;
}

int test_done(void)
{
	printf("%lu checks\n", test_checks);
	return 0;
}

u64 test_amount(u64 quick, u64 normal, u64 slow)
{
	const char *ops = getenv("SG_OPS"), *scale = getenv("SG_TEST_SCALE");

	if (ops)
		return strtoull(ops, NULL, 0);
	if (!scale || !strcmp(scale, "normal"))
		return normal;
	if (!strcmp(scale, "quick"))
		return quick;
	if (!strcmp(scale, "long"))
		return slow;
	test_fail(__FILE__, __LINE__, "SG_TEST_SCALE=%s: must be quick, normal or long", scale);
}

u64 test_seed(void)
{
	const char *given = getenv("SEED");

	if (!given)
		seed = 1;
	else if (!strcmp(given, "random"))
		sg_random(&seed, 4);
	else
		seed = strtoull(given, NULL, 0);
	printf("SEED=%" PRIu64 "\n", seed);
	fflush(stdout);
	return seed;
}

/* --- random numbers ------------------------------------------------------------------------- */

u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

u64 rng_below(struct rng *r, u64 n)
{
	return n ? rng_next(r) % n : 0;
}

u64 rng_range(struct rng *r, u64 lo, u64 hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

bool rng_chance(struct rng *r, unsigned int percent)
{
	return rng_below(r, 100) < percent;
}

u64 rng_size(struct rng *r, u64 max)
{
	u64 cap = max;

	while (cap > 1 && rng_next(r) & 1)
		cap /= 2 + rng_below(r, 3);
	return rng_below(r, cap + 1);
}

void rng_fill(struct rng *r, void *buf, size_t len)
{
	u8 *p = buf;
	u64 w;

	for (; len >= 8; len -= 8, p += 8) {
		w = rng_next(r);
		memcpy(p, &w, 8);
	}
	w = rng_next(r);
	memcpy(p, &w, len);
}

/* --- time ----------------------------------------------------------------------------------- */

extern u64 (*sg_ticks_hook)(void);

static u64 fast_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 10 * ((u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec);
}

void test_hasten(bool on)
{
	__atomic_store_n(&sg_ticks_hook, on ? fast_clock : NULL, __ATOMIC_RELEASE);
}

/* --- sanitizers ----------------------------------------------------------------------------- */

/*
 * Suppressions for ThreadSanitizer. All words of a volume are loaded and stored as atomics, and the
 * engine itself orders them (sequence counters, locks between systems). ThreadSanitizer reports two
 * kinds of false races:
 *
 * - Bytes in bulk. A read of a file during a write gets old or new bytes, as in any file system.
 * The engine first copies names and xattrs, and then checks the change counter.
 * - Memory fences. ThreadSanitizer does not support them, and misses the order that they impose.
 *
 * It also reports a false misuse: one thread may freeze a mount's calls, and another thread thaw
 * them.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^sg_os_write$\n"
	       "race:^sg_os_zero$\n"
	       "race:^sg_read$\n"
	       "mutex:^freeze_calls$\n";
}
