// SPDX-License-Identifier: Apache-2.0
/*
 * guard: watches a VM, and fences its systems when it has ended (D6; docs/protocol.md, 3).
 *
 * After the end of the VM's process, the VM stores nothing more. The guard then fences the VM's
 * systems, and other systems recover them immediately. While the process exists, the guard
 * regularly changes a word in their slots. So other systems do not take a paused VM for a dead one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ctl.h"

#define TICK_MS		500
#define OWN_FAILURE	125	/* as in env(1) and timeout(1) */
#define CANNOT_RUN	126
#define NOT_FOUND	127

/**
 * struct guard - one watched machine. @pid, @pidfd: its process. @child: the guard has started it.
 * @spare: a descriptor reserved for @pidfd, or -1. @machine: its ID, which its systems store in
 * their slots.
 * @silent_ms: time for which no heartbeat of its systems has moved. @looked: time of the last read
 * (ticks).
 */
struct guard {
	struct call *c;
	pid_t pid;
	int pidfd, spare;
	bool child, killed;
	u8 machine[16];
	u64 silent_ms, looked;
	struct guarded *volume;
	unsigned int volumes;
};

/* --- the machine's ID ---------------------------------------------------------------------- */

/* Reads the UUID from QEMU's "-uuid U", or "-smbios type=1,...,uuid=U". */
static bool uuid_in(const char *arg, const char *next, u8 uuid[16])
{
	char text[37];
	const char *at;

	if (!next)
		return false;
	if (!strcmp(arg, "-uuid") || !strcmp(arg, "--uuid"))
		return parse_uuid(next, uuid);
	if (strcmp(arg, "-smbios") && strcmp(arg, "--smbios"))
		return false;
	at = strstr(next, "uuid=");
	if (strncmp(next, "type=1,", 7) || !at)
		return false;
	snprintf(text, sizeof(text), "%s", at + 5);
	text[strcspn(text, ",")] = 0;
	return parse_uuid(text, uuid);
}

static bool uuid_of_words(char *const *argv, u8 uuid[16])
{
	bool found = false;

	for (; *argv; argv++)
		found |= uuid_in(argv[0], argv[1], uuid);
	return found;
}

static bool uuid_of_process(pid_t pid, u8 uuid[16])
{
	char path[64], *line = NULL, *word, *next;
	size_t room = 0;
	ssize_t len;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	len = getdelim(&line, &room, EOF, f);
	fclose(f);
	for (word = line; len > 0 && word < line + len; word = next) {
		next = word + strlen(word) + 1;
		found |= uuid_in(word, next < line + len ? next : NULL, uuid);
	}
	free(line);
	return found;
}

static int find_machine(struct guard *g)
{
	struct call *c = g->c;

	if (c->machine) {
		memcpy(g->machine, c->machine_id, sizeof(g->machine));
		return 0;
	}
	if (g->child ? uuid_of_words(c->argv + c->argc - c->tail, g->machine) :
	    uuid_of_process(g->pid, g->machine))
		return 0;
	tool_error("the VM's command line has no UUID: add -uuid to it, or give --machine=UUID");
	return -EINVAL;
}

/* --- its process --------------------------------------------------------------------------- */

static volatile pid_t passing_to;

static void pass_on(int sig)
{
	int err = errno;

	if (passing_to > 0)
		kill(passing_to, sig);
	errno = err;
}

/*
 * Waits for the child. Another process may have the child's PID afterwards, so the guard passes on
 * no more signals.
 */
static void wait_for_child(pid_t pid, int *status)
{
	passing_to = 0;
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
}

/*
 * Passes a signal to the machine, for which the user meant it. The machine can then shut down, and
 * the guard detects its end.
 */
static void pass_signals_to(pid_t pid)
{
	static const int passed[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction act = { .sa_handler = pass_on };
	unsigned int i;

	passing_to = pid;
	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaction(passed[i], &act, NULL);
}

static void become(char **argv)
{
	int err;

	tool_signals_back();
	execvp(argv[0], argv);
	err = errno;
	tool_error("%s: cannot be run: %s", argv[0], strerror(err));
	_exit(err == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

/*
 * The guard closes this descriptor before it opens the machine's. So a machine is guarded even if
 * the system has no more descriptors.
 */
static int open_spare(struct guard *g)
{
	g->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (g->spare >= 0)
		return 0;
	tool_error("the VM cannot be watched: %s", strerror(errno));
	return -errno;
}

static void close_spare(struct guard *g)
{
	if (g->spare >= 0)
		close(g->spare);
	g->spare = -1;
}

static int start(struct guard *g)
{
	sigset_t all, before;

	if (open_spare(g))
		return -EMFILE;
	/* blocks signals until the guard has the process to which it passes them */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	fflush(NULL);
	g->pid = fork();
	if (!g->pid) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		become(g->c->argv + g->c->argc - g->c->tail);
	}
	if (g->pid > 0)
		pass_signals_to(g->pid);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (g->pid > 0)
		return 0;
	tool_error("no process can be made for the VM: %s", strerror(errno));
	return -EAGAIN;
}

static int watch_process(struct guard *g)
{
	close_spare(g);
	g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
	if (g->pidfd >= 0)
		return 0;
	tool_error("process %d cannot be watched: %s", (int)g->pid, strerror(errno));
	return -errno;
}

/* Kills a child that the guard cannot watch. */
static int watch_child(struct guard *g)
{
	int err = watch_process(g);

	if (!err)
		return 0;
	kill(g->pid, SIGKILL);	/* the child's PID stays valid until the wait */
	wait_for_child(g->pid, NULL);
	return err;
}

/* Waits at most @ms. */
static bool ended(const struct guard *g, int ms)
{
	struct pollfd p = { .fd = g->pidfd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* --- while the machine runs ---------------------------------------------------------------- */

/*
 * Reports whether the machine has been silent for longer than --pause-limit allows. Time in which
 * the guard itself was stopped does not count.
 */
static void end_when_stuck(struct guard *g, bool silent)
{
	u64 now = sg_ticks(), passed = (now - g->looked) / 1000000;

	g->looked = now;
	g->silent_ms = silent ? g->silent_ms + SG_MIN(passed, 2ULL * TICK_MS) : 0;
	if (!g->c->pause_limit || g->killed || g->silent_ms < g->c->pause_limit * 1000)
		return;
	tool_warn("no heartbeat for %llu s: process %d is killed",
		  (unsigned long long)g->silent_ms / 1000, (int)g->pid);
	g->killed = !syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
	if (!g->killed)
		tool_error("process %d cannot be killed: %s", (int)g->pid, strerror(errno));
}

static void look(struct guard *g)
{
	bool any = false, moved = false;
	unsigned int i;

	for (i = 0; i < g->volumes; i++)
		guarded_look(&g->volume[i], g->machine, &any, &moved);
	if (ended(g, 0))
		return;
	for (i = 0; i < g->volumes; i++)
		guarded_confirm(&g->volume[i]);
	end_when_stuck(g, any && !moved);
}

/* Exits with the machine's status, as if the guard were not there. */
static int watch(struct guard *g)
{
	unsigned int i;
	int status = 0;

	g->looked = sg_ticks();
	do
		look(g);
	while (!ended(g, TICK_MS));
	for (i = 0; i < g->volumes; i++)
		guarded_fence(&g->volume[i], g->machine);
	if (!g->child)
		return 0;
	wait_for_child(g->pid, &status);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- the command --------------------------------------------------------------------------- */

int before_guard(struct call *c)
{
	if (c->tail > c->argc || !c->tail == !c->pid)
		return tool_usage_error("guard: takes " GUARD_TAKES);
	return 0;
}

static int open_volumes(struct guard *g)
{
	unsigned int i;
	int err = 0;

	g->volumes = 1 + (unsigned int)(g->c->argc - g->c->tail);
	g->volume = calloc(g->volumes, sizeof(*g->volume));
	if (!g->volume)
		return tool_error("no memory"), -ENOMEM;
	for (i = 0; i < g->volumes && !err; i++)
		err = guarded_open(&g->volume[i], i ? g->c->argv[i - 1] : g->c->volume);
	return err;
}

/* For a running machine, first opens the process, so that its PID cannot change its meaning. */
int cmd_guard(struct call *c)
{
	struct guard g = { .c = c, .pid = (pid_t)c->pid, .child = !c->pid, .pidfd = -1,
			   .spare = -1 };
	int err, status;

	/* suppresses messages of the engine: a system that mounts the volume prints them */
	tool_quiet = true;
	err = open_volumes(&g);
	if (!err && !g.child)
		err = watch_process(&g);
	if (!err)
		err = find_machine(&g);
	if (!err && g.child)
		err = start(&g) ?: watch_child(&g);
	status = err ? OWN_FAILURE : watch(&g);
	free(g.volume);
	return status;
}
