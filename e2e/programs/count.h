/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that count instructions in a guest of `e2e/rig run --icount`, where the processor's
 * time stamp counter counts instructions. They make system calls without the C library, so that its
 * version does not affect a figure.
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
/* sys(number, arguments...) returns the kernel's value, which may be -errno. */
#define sys(...) SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

__attribute__((noreturn)) static inline void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

/*
 * Sleeps until deferred work is done, so that it does not run during a measurement. Deferred work
 * is RCU callbacks, work queues, and pages and inodes that wait for other systems. With --icount, a
 * guest's clock jumps while the guest sleeps, so the sleep takes almost no time.
 */
static inline void settle(void)
{
	struct timespec t = { 0, 300000000 };

	nanosleep(&t, NULL);
}

/*
 * Checks that the counter counts a loop of two million instructions as two million, plus at most
 * one interrupt. If it does not, all figures are meaningless.
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
	printf("a loop of 2000000 instructions counted as %llu: run this in a guest of `e2e/rig run --icount`\n",
	       (unsigned long long)best);
	exit(1);
}

#endif
