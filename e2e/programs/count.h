/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting instructions in a guest whose processor's time stamp counter counts them (e2e/rig run
 * --icount). System calls are made without a C library, so that its version does not affect a
 * figure.
 */
#ifndef COUNT_H
#define COUNT_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

static inline uint64_t counter(void)
{
	return __rdtsc();
}

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
	long ret;

	asm volatile("syscall"
		     : "=a" (ret)
		     : "a" (n), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

#define SYS_ARGS(n, a, b, c, d, e, f, ...) \
	sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* sys(number, arguments...): the kernel's return value, including -errno. */
#define sys(...) SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

__attribute__((noreturn)) static inline void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

/*
 * Sleeps until deferred work is done, so that this work does not run during a measurement. Deferred
 * work is RCU callbacks, work queues, and pages and inodes that wait for other systems. Sleep of a
 * guest does not count as time.
 */
static inline void settle(void)
{
	struct timespec t = { 0, 300000000 };

	nanosleep(&t, NULL);
}

/*
 * Checks that a loop of two million instructions counts as two million, plus at most one interrupt.
 * Otherwise all figures would be meaningless.
 */
static inline void must_count(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t turns = 1000000, start = counter();

		asm volatile("1: decq %0; jnz 1b" : "+r" (turns) : : "cc");
		uint64_t took = counter() - start;

		if (took < best)
			best = took;
	}
	if (best >= 2000000 && best < 2010000)
		return;
	printf("a loop of 2000000 instructions took %llu: no guest of `e2e/rig run --icount`\n",
	       (unsigned long long)best);
	exit(1);
}

#endif
