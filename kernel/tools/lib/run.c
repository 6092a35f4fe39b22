// SPDX-License-Identifier: Apache-2.0
/*
 * Runs other programs: finds them in fixed folders, and calls them without a shell, in an
 * environment of their own. So their effects and output do not depend on the caller's environment.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run.h"

#define PATH		"/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
#define NOT_FOUND	127

bool program_find(const char *name, char path[PATH_MAX])
{
	const char *dir = PATH;
	size_t n;

	for (;; dir += n + 1) {
		n = strcspn(dir, ":");
		snprintf(path, PATH_MAX, "%.*s/%s", (int)n, dir, name);
		if (!access(path, X_OK))
			return true;
		if (!dir[n])
			return false;
	}
}

bool program_beside(const char *name, char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n <= 0 || (size_t)n + strlen(name) >= PATH_MAX)
		return program_find(name, path);
	strcpy(path + n, name);
	return !access(path, X_OK) || program_find(name, path);
}

/* --- output -------------------------------------------------------------------------------- */

static bool take(int fd, struct text *t)
{
	ssize_t n;

	if (t->room - t->len < 2048) {
		size_t room = 2 * t->room + 4096;
		char *bytes = realloc(t->bytes, room);

		if (!bytes)
			return false;
		t->bytes = bytes;
		t->room = room;
	}
	do
		n = read(fd, t->bytes + t->len, t->room - t->len - 1);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		t->len += (size_t)n;
	t->bytes[t->len] = 0;
	return n > 0;
}

/* Reads both pipes together: a program that waits on one full pipe would never close the other. */
static void listen_to(int out, int err, struct said *said)
{
	struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	struct text *t[2] = { &said->out, &said->err };
	int i;

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		for (i = 0; i < 2; i++)
			if (p[i].fd >= 0 && p[i].revents && !take(p[i].fd, t[i]))
				p[i].fd = -1;
	}
}

void said_free(struct said *said)
{
	free(said->out.bytes);
	free(said->err.bytes);
	*said = (struct said){ 0 };
}

/* --- running ------------------------------------------------------------------------------- */

/* @out, @err: descriptors for its output, or -1 for those of this process. */
static void become(const char *path, const char *const *words, const char *const *env, int out,
		   int err)
{
	int null = open("/dev/null", O_RDONLY);

	signal(SIGBUS, SIG_DFL);	/* restores the handlers that tool_begin() has changed */
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	if (err >= 0)
		dup2(err, STDERR_FILENO);
	if (env)
		execve(path, (char *const *)words, (char *const *)env);
	else
		execv(path, (char *const *)words);
	_exit(NOT_FOUND);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return NOT_FOUND;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int program_show(const char *path, const char *const *words, bool quiet)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		become(path, words, NULL, quiet ? open("/dev/null", O_WRONLY) : -1, -1);
	return pid < 0 ? NOT_FOUND : wait_for(pid);
}

int program_hear(const char *path, const char *const *words, const char *const *env,
		 struct said *said)
{
	int out[2], err[2];
	pid_t pid;

	*said = (struct said){ 0 };
	if (pipe2(out, O_CLOEXEC))
		return NOT_FOUND;
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return NOT_FOUND;
	}
	fflush(NULL);
	pid = fork();
	if (!pid)
		become(path, words, env, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (pid > 0)
		listen_to(out[0], err[0], said);
	close(out[0]);
	close(err[0]);
	return pid < 0 ? NOT_FOUND : wait_for(pid);
}
