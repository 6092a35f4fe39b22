// SPDX-License-Identifier: Apache-2.0
/*
 * lock: runs a command with the lock. This process owns the lock, not the command. If this process
 * dies, the lock becomes free, and the kernel kills the command, so that it does not continue
 * without the lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tool.h"
#include "sem.h"

static int take(struct call *c, stargate_sem *s, enum stargate_type type)
{
	int err;

	if (type == STARGATE_MUTEX)
		err = c->read ? EPROTOTYPE : stargate_mutex_lock(s, c->o.until);
	else if (type == STARGATE_RWLOCK)
		err = c->read ? stargate_read_lock(s, c->o.until) :
				stargate_write_lock(s, c->o.until);
	else
		err = EPROTOTYPE;
	if (err != EOWNERDEAD)
		return err;
	/*
	 * The command must check the protected data. A shell script cannot receive this warning
	 * later, so the warning precedes the command's start.
	 */
	tool_warn("%s: %s", c->o.name, stargate_why(err));
	setenv("STARGATE_OWNER_DIED", "1", 1);
	return c->read ? 0 : stargate_consistent(s);
}

static int give(struct call *c, stargate_sem *s, enum stargate_type type)
{
	if (type == STARGATE_MUTEX)
		return stargate_mutex_unlock(s);
	return c->read ? stargate_read_unlock(s) : stargate_write_unlock(s);
}

typedef void (*handler)(int);

/*
 * The command gets the signal handlers that this process has inherited. It ignores the same
 * signals, and no others.
 */
static void run_child(struct call *c, pid_t parent, handler on_int, handler on_quit)
{
	int err;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(STATUS_TROUBLE);
	signal(SIGINT, on_int);
	signal(SIGQUIT, on_quit);
	tool_signals_back();
	execvp(c->o.rest[0], c->o.rest);
	err = errno;
	tool_error("%s: cannot be run: %s", c->o.rest[0], strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

/* Passes signals from the terminal only to the command, which decides. */
static int run(struct call *c)
{
	handler on_int = signal(SIGINT, SIG_IGN), on_quit = signal(SIGQUIT, SIG_IGN);
	pid_t parent = getpid(), pid;
	int status;

	pid = fork();
	if (pid < 0) {
		tool_error("%s: cannot be run: %s", c->o.rest[0], strerror(errno));
		return STATUS_TROUBLE;
	}
	if (!pid)
		run_child(c, parent, on_int, on_quit);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int cmd_lock(struct call *c)
{
	struct stargate_stat st;
	stargate_sem *s;
	int err = stargate_open(&s, c->o.volume, c->o.name, STARGATE_ANY, STARGATE_BY_KERNEL);
	int status;

	if (err)
		return trouble(c, err, STATUS_TROUBLE);
	err = stargate_fstat(s, &st);
	if (!err)
		err = take(c, s, st.type);
	if (err) {
		stargate_close(s);
		return trouble(c, err, STATUS_TROUBLE);
	}
	status = run(c);
	err = give(c, s, st.type);
	stargate_close(s);
	return err ? trouble(c, err, STATUS_TROUBLE) : status;
}
