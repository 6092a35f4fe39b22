// SPDX-License-Identifier: Apache-2.0
/*
 * hostile cases | step | sweep | race: runs the cases, or rounds of attacks.
 *
 *   SEED=N		the first round's number; the rounds are N, N + 1, ...
 *   SG_OPS=N		the number of rounds
 *   HOSTILE_SECONDS=S	instead: as many rounds as fit in S seconds of processor time
 *   HOSTILE_TALK=1	print the engine's log
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include "hostile.h"

static u64 first, rounds;

/* Makes ASan print the stack on a failure or a hang. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_abort=1:detect_leaks=0";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1";
}

/* Returns the processor time of this process and its ended children. */
static double cpu_seconds(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
			children.ru_stime.tv_sec) +
	       (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
			children.ru_stime.tv_usec) / 1e6;
}

/* Prints the first round, the number of rounds, and the time. */
static void tell(const char *mode, u64 seed)
{
	printf("%s: %" PRIu64 " rounds from %" PRIu64 ", next %" PRIu64 ", %.1f s of processor time\n", mode,
	       seed - first, first, seed, cpu_seconds());
	fflush(stdout);
}

static void run(const char *mode, void (*round)(u64 seed), u64 quick, u64 normal, u64 slow)
{
	const char *limit = getenv("HOSTILE_SECONDS");
	double seconds = limit ? atof(limit) : 0;
	u64 seed;

	first = test_seed();
	rounds = test_amount(quick, normal, slow);
	for (seed = first; limit ? cpu_seconds() < seconds : seed < first + rounds; seed++) {
		/* after a failure, the last printed round is the failed one */
		printf("round %" PRIu64 "\n", seed);
		fflush(stdout);
		round(seed);
	}
	tell(mode, seed);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	volume_setup();
	if (!strcmp(mode, "cases"))
		cases_run();
	else if (!strcmp(mode, "step"))
		run("step", step_round, 60, 150, 20000);
	else if (!strcmp(mode, "sweep"))
		run("sweep", sweep_round, 1, 4, 1000);
	else if (!strcmp(mode, "race"))
		run("race", race_round, 2, 6, 600);
	else
		test_fail(__FILE__, __LINE__, "hostile cases | step | sweep | race");
	return test_done();
}
