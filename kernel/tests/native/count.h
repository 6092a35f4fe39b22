/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions of a call, exactly: in a child that is stepped through it one by one. So
 * costs can be compared on any machine, however busy, and no timer is trusted.
 */
#ifndef SG_TEST_COUNT_H
#define SG_TEST_COUNT_H

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"

/* Instructions of fn(arg), in a copy of this process; its volumes are shared with it. */
static inline u64 count_instructions(void (*fn)(void *arg), void *arg)
{
	pid_t child = fork();
	u64 steps = 0;
	int status;

	CHECK(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(3);
		fn(arg);	/* once before: functions of libraries are looked up then */
		raise(SIGSTOP);
		fn(arg);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSTOPPED(status));	/* else this place does not let us trace */
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
