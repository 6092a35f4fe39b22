// SPDX-License-Identifier: Apache-2.0
/*
 * stargatefs-fuse: the command line, and the keeper.
 *
 * There are two processes. The server handles all calls, and may die. The keeper has the descriptor
 * of the mount and the memory that servers inherit. It only starts the next server. So a mount
 * outlives its server.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fuse.h"

#define RESTARTS	10	/* with so many within RESTARTS_S, the keeper unmounts */
#define RESTARTS_S	60
#define LEAVE_S		10	/* time for calls in progress when the server ends */
#define JOINED		"joined\n"	/* to a keeper that is another program (--kept) */

struct server fs = { .fd = -1 };

static const char usage[] =
"Usage: stargatefs-fuse [OPTION]... DEVICE|FILE DIRECTORY\n"
"       stargatefs-fuse --kept MOUNT,MEMORY [OPTION]... DEVICE|FILE\n"
"Mount a StargateFS without its kernel module, by a server in user space.\n"
"\n"
"  -f, --foreground       stay in the foreground\n"
"  -o, --options LIST     as in mount(8): ro, noatime, nosuid, nodev, noexec,\n"
"                         allow_other, and the options below as NAME=VALUE\n"
"      --cache MS         the kernel may cache names and attributes for this time,\n"
"                         even if other systems change them (default 0)\n"
"      --shared-mmap      allow shared mappings, whose stores other systems\n"
"                         see later\n"
"      --workers N        calls that may be in progress (2-64, default 32)\n"
"      --errors WHAT      after damage: remount-ro (default) or continue\n"
"      --only-me          no other user may use the mount, if root mounts\n"
"      --kept MOUNT,MEMORY\n"
"                         serve a mount that the calling program has made; these are\n"
"                         its open descriptors of /dev/fuse and of a memfd\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Unmount with umount(8), or fusermount3 -u. See stargatefs-fuse(8).\n";

/* --- the command line ----------------------------------------------------------------------- */

/* Options from OPT_CACHE on can also be given with -o. */
enum { OPT_KEPT = 256, OPT_CACHE, OPT_MMAP, OPT_WORKERS, OPT_ERRORS, OPT_ME };

static const struct option options[] = {
	{ "foreground", no_argument, NULL, 'f' },
	{ "options", required_argument, NULL, 'o' },
	{ "cache", required_argument, NULL, OPT_CACHE },
	{ "shared-mmap", no_argument, NULL, OPT_MMAP },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "errors", required_argument, NULL, OPT_ERRORS },
	{ "only-me", no_argument, NULL, OPT_ME },
	{ "kept", required_argument, NULL, OPT_KEPT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 }
};

static bool take_errors(struct options *opt, const char *arg)
{
	opt->errors = strcmp(arg, "continue") ? ERRORS_REMOUNT_RO : ERRORS_CONTINUE;
	return opt->errors == ERRORS_CONTINUE || !strcmp(arg, "remount-ro");
}

/* Parses two descriptors, such as 3,4. */
static bool take_kept(struct options *opt, const char *arg)
{
	char mount[16];
	const char *comma = strchr(arg, ',');
	u64 n, m;

	if (!comma || (size_t)(comma - arg) >= sizeof(mount))
		return false;
	memcpy(mount, arg, (size_t)(comma - arg));
	mount[comma - arg] = 0;
	if (!parse_number(mount, 10, INT_MAX, &n) || !parse_number(comma + 1, 10, INT_MAX, &m) ||
	    n <= STDERR_FILENO || m <= STDERR_FILENO || n == m)
		return false;
	opt->kept = true;
	opt->kept_mount = (int)n;
	opt->kept_memory = (int)m;
	return true;
}

static int take(struct options *opt, int c, const char *arg)
{
	u64 n;

	switch (c) {
	case 'f':
		opt->foreground = true;
		return 0;
	case OPT_CACHE:
		if (!parse_number(arg, 10, 60000, &n))
			return tool_value_error("cache", arg, false, "0 to 60000 (ms)");
		opt->cache_ns = n * 1000000;
		return 0;
	case OPT_MMAP:
		opt->mappings = true;
		return 0;
	case OPT_WORKERS:
		if (!parse_number(arg, 10, WORKERS_MAX, &n) || n < 2)
			return tool_value_error("workers", arg, false, "2 to 64");
		opt->workers = (unsigned int)n;
		return 0;
	case OPT_ERRORS:
		return take_errors(opt, arg) ? 0 :
		       tool_value_error("errors", arg, false, "remount-ro or continue");
	case OPT_ME:
		opt->alone = true;
		return 0;
	case OPT_KEPT:
		return take_kept(opt, arg) ? 0 :
		       tool_value_error("kept", arg, false,
					"two open descriptors above 2, such as 3,4");
	}
	return tool_usage_error("there is no such option");
}

static const struct {
	const char *name;
	unsigned long set, clear;
} mount_flags[] = {
	{ "rw", 0, 0 }, { "suid", 0, MS_NOSUID }, { "nosuid", MS_NOSUID, 0 },
	{ "dev", 0, MS_NODEV }, { "nodev", MS_NODEV, 0 }, { "exec", 0, MS_NOEXEC },
	{ "noexec", MS_NOEXEC, 0 }, { "relatime", 0, 0 }, { "default_permissions", 0, 0 },
	{ "auto", 0, 0 }, { "noauto", 0, 0 }, { "nofail", 0, 0 }, { "_netdev", 0, 0 },
};

static bool take_mount_flag(struct options *opt, const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(mount_flags) / sizeof(mount_flags[0]); i++) {
		if (strcmp(word, mount_flags[i].name))
			continue;
		opt->flags = (opt->flags | mount_flags[i].set) & ~mount_flags[i].clear;
		return true;
	}
	return false;
}

static int take_word(struct options *opt, char *word)
{
	char *value = strchr(word, '=');
	const struct option *o;

	if (!strcmp(word, "ro")) {
		opt->read_only = true;
		return 0;
	}
	if (!strcmp(word, "noatime")) {
		opt->noatime = true;
		return 0;
	}
	if (!strcmp(word, "allow_other")) {
		opt->others = true;
		return 0;
	}
	if (!*word || take_mount_flag(opt, word))
		return 0;
	if (value)
		*value++ = 0;
	for (o = options; o->name; o++)
		if (o->val >= OPT_CACHE && !strcmp(o->name, word) && !o->has_arg == !value)
			return take(opt, o->val, value);
	return tool_usage_error("-o: there is no option '%s'", word);
}

static int take_list(struct options *opt, const char *list)
{
	char *copy = strdup(list), *rest = copy, *word;
	int status = copy ? 0 : 1;

	while (!status && (word = strsep(&rest, ",")))
		status = take_word(opt, word);
	free(copy);
	return status;
}

/* Parses the command line. Returns an exit status, or -1 if the program shall continue. */
static int parse(int argc, char **argv, struct options *opt)
{
	int c, status = 0;

	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, ":fo:hV", options, NULL)) >= 0) {
		if (c == 'h')
			return tool_help(usage);
		if (c == 'V')
			return tool_version();
		if (c == '?' || c == ':')
			return tool_option_error(c, argv);
		status = c == 'o' ? take_list(opt, optarg) : take(opt, c, optarg);
	}
	if (status)
		return status;
	if (opt->kept && argc - optind != 1)
		return tool_usage_error("--kept: takes only DEVICE|FILE");
	if (!opt->kept && argc - optind != 2)
		return tool_usage_error("takes DEVICE|FILE and DIRECTORY");
	opt->volume = argv[optind];
	opt->dir = opt->kept ? NULL : argv[optind + 1];
	return -1;
}

/* Makes both paths absolute: the background process changes its directory. */
static int make_absolute(struct options *opt)
{
	static char volume[PATH_MAX], dir[PATH_MAX];
	struct stat st;

	if (!realpath(opt->volume, volume)) {
		tool_error("%s: cannot be opened: %s", opt->volume, strerror(errno));
		return -1;
	}
	if (!realpath(opt->dir, dir) || stat(dir, &st)) {
		tool_error("%s: cannot be mounted on: %s", opt->dir, strerror(errno));
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		tool_error("%s: is no directory", opt->dir);
		return -1;
	}
	opt->volume = volume;
	opt->dir = dir;
	return 0;
}

/* --- the server ----------------------------------------------------------------------------- */

/*
 * Leaves the volume once. Two threads may call it at the same time: one after the end of the mount,
 * and one after a signal.
 */
static void leave_once(void)
{
	static bool begun;

	if (__atomic_exchange_n(&begun, true, __ATOMIC_SEQ_CST))
		for (;;)
			pause();
	locks_stop();
	system_leave();
}

/*
 * Ends the server on a signal. The server leaves the volume when no thread uses it any more. If a
 * call does not end, the server exits without leaving, as after a crash: the next system replays
 * committed changes.
 */
static void *stop_on_signal(void *arg)
{
	int sig;

	sigwait(arg, &sig);
	if (fs.opt.kept)
		_exit(STATUS_AGAIN);	/* 0 would tell the keeper that the mount has ended */
	if (!session_stop(LEAVE_S)) {
		tool_warn("%s: calls have not ended within %d s: the server exits without leaving the volume",
			  fs.opt.volume, LEAVE_S);
		_exit(0);
	}
	/* an unfinished join ends by the interruption, and then the server exits */
	if (!__atomic_load_n(&fs.joined, __ATOMIC_ACQUIRE))
		sleep(LEAVE_S);
	leave_once();
	_exit(0);
}

static void catch_signals(void)
{
	static sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, stop_on_signal, &set);
}

/*
 * Runs a server. @keeper: socket to the keeper. The server reports there that it has joined the
 * volume, and receives the mount. @keeper is -1 if the mount already exists.
 */
static int serve(int keeper)
{
	int err;

	prctl(PR_SET_NAME, "stargatefs-srv");
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	session_prepare();
	catch_signals();
	if (system_join())
		return 1;
	if (fs.opt.kept && write(STDOUT_FILENO, JOINED, strlen(JOINED)) < 0) {
		system_leave();
		return 1;
	}
	if (keeper >= 0) {
		if (write(keeper, "", 1) == 1)
			fs.fd = fd_receive(keeper);
		close(keeper);
		if (fs.fd < 0) {
			system_leave();
			return 1;
		}
	}
	err = session_run();
	leave_once();
	return err ? 1 : 0;
}

/* --- the keeper ----------------------------------------------------------------------------- */

static pid_t server_pid;
static volatile sig_atomic_t asked;
static sigset_t while_waiting;	/* the keeper's mask while it waits for its server */

static void on_signal(int sig)
{
	asked += sig != SIGCHLD;
}

/*
 * Handles a signal. The first signal unmounts, and the server ends after its last user. The second
 * signal ends the server.
 */
static void obey(const struct options *opt, int before)
{
	if (!before)
		mount_end(opt, true);
	else if (server_pid > 0)
		kill(server_pid, SIGTERM);
}

/* @keeper: the server's end of a socket, and @other the keeper's end; -1: there is none */
static int start_server(int keeper, int other)
{
	sigset_t none;

	fflush(NULL);
	server_pid = fork();
	if (server_pid)
		return server_pid < 0 ? -errno : 0;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (other >= 0)
		close(other);	/* or the server would not see that the keeper has closed it */
	_exit(serve(keeper));
}

/*
 * Blocks signals except while the keeper waits. So no signal is lost between a check and the wait.
 */
static void block_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t set;

	sigaction(SIGCHLD, &act, NULL);	/* SIGCHLD ends the wait */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &while_waiting);
	sigdelset(&while_waiting, SIGTERM);
	sigdelset(&while_waiting, SIGINT);
	sigdelset(&while_waiting, SIGCHLD);
}

static int wait_for_server(const struct options *opt)
{
	static int obeyed;	/* counts over all servers: the keeper unmounts once */
	int status;

	for (;;) {
		while (obeyed < asked)
			obey(opt, obeyed++);
		if (waitpid(server_pid, &status, WNOHANG) == server_pid)
			return status;
		sigsuspend(&while_waiting);
	}
}

/*
 * Reports whether the keeper may start another server: not if too many have died within RESTARTS_S.
 */
static bool may_restart(void)
{
	static time_t began[RESTARTS];
	static unsigned int n;
	struct timespec now;
	bool may;

	clock_gettime(CLOCK_MONOTONIC, &now);
	may = !began[n % RESTARTS] || now.tv_sec - began[n % RESTARTS] > RESTARTS_S;
	began[n++ % RESTARTS] = now.tv_sec;
	return may;
}

static int keep(const struct options *opt)
{
	int status;

	block_signals();
	status = wait_for_server(opt);
	while (!WIFEXITED(status) || WEXITSTATUS(status)) {
		if (asked > 1)
			return 1;
		if (!may_restart()) {
			tool_error("%s: the server has ended %d times within a minute: no other one starts, and the mount ends",
				   opt->dir, RESTARTS);
			mount_end(opt, true);
			return 1;
		}
		if (WIFSIGNALED(status))
			tool_warn("%s: signal %d ended the server: another server continues",
				  opt->dir, WTERMSIG(status));
		else if (WEXITSTATUS(status) != STATUS_AGAIN)
			usleep(500000);
		if (start_server(-1, -1))
			return 1;
		status = wait_for_server(opt);
	}
	return 0;
}

/*
 * Starts the first server, and mounts after the server has joined the volume. So a failed join
 * leaves no mount.
 */
static int start(const struct options *opt)
{
	int pair[2], err;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = start_server(pair[0], pair[1]);
	close(pair[0]);
	if (!err && read(pair[1], &byte, 1) != 1)
		err = -EIO;	/* the server has reported the reason */
	if (!err) {
		fs.fd = mount_fuse(opt);
		err = fs.fd < 0 ? -EIO : fd_send(pair[1], fs.fd);
		if (err && fs.fd >= 0) {
			tool_error("%s: cannot be mounted: %s", opt->dir, strerror(-err));
			mount_end(opt, true);
		}
	}
	close(pair[1]);
	if (err && server_pid > 0)
		while (waitpid(server_pid, NULL, 0) < 0 && errno == EINTR)
			;
	return err;
}

static void watch_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

/* Runs the keeper. @ready: a pipe to the caller that waits for the start, or -1. */
static int run(const struct options *opt, int ready)
{
	int err;

	prctl(PR_SET_NAME, "stargatefs-fuse");
	fs.kept = mmap(NULL, sizeof(*fs.kept), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fs.kept == MAP_FAILED) {
		tool_error("cannot allocate memory for calls in progress");
		return 1;
	}
	watch_signals();
	err = start(opt);
	if (err)
		return 1;
	if (ready >= 0) {
		if (write(ready, "", 1) < 0)
			tool_warn("cannot report the start: the calling process has exited");
		close(ready);
	}
	return keep(opt);
}

/* In the background, also the server keeps no pipe open that the caller reads until its end. */
static void close_outputs(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/* standard error stays open for the server's messages */
}

static int run_in_background(const struct options *opt)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return 1;
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		tool_error("cannot go into the background: %s", strerror(errno));
		return 1;
	}
	if (!pid) {
		setsid();
		if (chdir("/"))
			_exit(1);
		close(ready[0]);
		close_outputs();
		_exit(run(opt, ready[1]));
	}
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1 ? 0 : 1;
}

/* --- a keeper that is another program --------------------------------------------------------- */

/*
 * Maps the inherited memory, which is empty at the first start. Refuses memory from a server of
 * another release: this server would misread the calls and locks.
 */
static int take_memory(int fd)
{
	struct stat st;
	u64 unused = 0;

	if (fstat(fd, &st) || (!st.st_size && ftruncate(fd, sizeof(*fs.kept)))) {
		tool_error("--kept: descriptor %d cannot be used as memory: %s", fd, strerror(errno));
		return -1;
	}
	if (st.st_size && st.st_size != sizeof(*fs.kept))
		goto other;
	fs.kept = mmap(NULL, sizeof(*fs.kept), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fs.kept == MAP_FAILED) {
		tool_error("--kept: descriptor %d cannot be mapped: %s", fd, strerror(errno));
		return -1;
	}
	if (__atomic_compare_exchange_n(&fs.kept->layout, &unused, KEPT_LAYOUT, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
	    unused == KEPT_LAYOUT)
		return 0;
other:
	tool_error("--kept: this memory is from a server of another release: unmount the volume, and mount it again");
	return -1;
}

/*
 * Serves a mount for a keeper that is another program. The keeper starts this program again, with
 * the same descriptors, unless the exit status is 0.
 */
static int run_kept(struct options *opt)
{
	static char volume[PATH_MAX];

	if (!realpath(opt->volume, volume)) {
		tool_error("%s: cannot be opened: %s", opt->volume, strerror(errno));
		return 1;
	}
	opt->volume = volume;
	if (fcntl(opt->kept_mount, F_SETFD, FD_CLOEXEC)) {
		tool_error("--kept: descriptor %d is not open", opt->kept_mount);
		return 1;
	}
	fs.fd = opt->kept_mount;
	if (take_memory(opt->kept_memory))
		return 1;
	close(opt->kept_memory);
	return serve(-1);
}

int main(int argc, char **argv)
{
	struct options *opt = &fs.opt;
	int status;

	tool_begin("stargatefs-fuse", argv);
	opt->workers = WORKERS;
	status = parse(argc, argv, opt);
	if (status >= 0)
		return status;
	if (opt->kept)
		return run_kept(opt);
	if (make_absolute(opt))
		return 1;
	return opt->foreground ? run(opt, -1) : run_in_background(opt);
}
