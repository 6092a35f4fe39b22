/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions of a call exactly, by single-stepping a child process. Costs can thus be
 * compared on any machine, however busy, without a timer.
 */
#ifndef SG_TEST_COUNT_H
#define SG_TEST_COUNT_H

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"

/* Counts the instructions of fn(arg) in a copy of this process, which shares its volumes. */
static inline u64 count_instructions(void (*fn)(void *arg), void *arg)
{
	pid_t child = fork();
	u64 steps = 0;
	int status;

	CHECK(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(3);
		fn(arg);	/* the first call resolves library functions, and is not counted */
		raise(SIGSTOP);
		fn(arg);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSTOPPED(status));	/* fails where the environment does not permit tracing */
	do {
		CHECK(!ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
		CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		steps++;
	} while (WSTOPSIG(status) == SIGTRAP);
	CHECK_EQ(WSTOPSIG(status), SIGSTOP);
	CHECK(!kill(child, SIGKILL));
	CHECK(waitpid(child, &status, 0) == child);
	return steps;
}

#endif
