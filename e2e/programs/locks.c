// SPDX-License-Identifier: Apache-2.0
/*
 * Uses locks of flock() and fcntl() and open-file-description locks, as programs do.
 *
 *   locks alone FILE                          checks many rules for one system
 *   locks try  KIND TYPE START LEN FILE       tries the lock once, prints "got" or the error
 *   locks hold KIND TYPE START LEN FILE       waits for the lock, prints "held", keeps the lock
 *                                             until it is killed
 *   locks wait KIND TYPE START LEN FILE       waits for the lock, prints "got" or the error
 *   locks get  TYPE START LEN FILE            calls F_GETLK, prints "TYPE START LEN PID" or "free"
 *   locks cross FILE A B MS                   locks byte A, sleeps MS, waits for byte B, prints
 *                                             "got" or the error
 *   locks count KIND N FILE                   N times: locks, adds 1 to the number in FILE, unlocks
 *   locks read KIND MS FILE                   takes shared locks one after the other for MS
 *
 * KIND is posix, ofd or flock. TYPE is sh or ex. LEN 0 means up to the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "locks: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

static void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* --- One function for all kinds of locks ------------------------------------------------------ */

enum { UNLOCK = F_UNLCK, SHARED = F_RDLCK, EXCLUSIVE = F_WRLCK };

static int lock(int fd, const char *kind, short type, long start, long len, int wait)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	int op = type == UNLOCK ? LOCK_UN : type == SHARED ? LOCK_SH : LOCK_EX;

	if (!strcmp(kind, "flock"))
		return flock(fd, op | (wait ? 0 : LOCK_NB)) ? errno : 0;
	if (!strcmp(kind, "ofd"))
		return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l) ? errno : 0;
	if (strcmp(kind, "posix")) {
		errno = EINVAL;
		die(kind);
	}
	return fcntl(fd, wait ? F_SETLKW : F_SETLK, &l) ? errno : 0;
}

static void say(int err, const char *good)
{
	puts(err ? strerrorname_np(err) : good);
	fflush(stdout);
}

/* --- Rules for one system --------------------------------------------------------------------- */

static unsigned int checks;

#define CHECK(cond) do {								\
	checks++;									\
	if (!(cond)) {									\
		fprintf(stderr, "locks.c:%d: %s (errno %d)\n", __LINE__, #cond, errno);	\
		exit(1);								\
	}										\
} while (0)

/* Returns the result of a request by another process, which does not wait. */
static int other(const char *path, const char *kind, short type, long start, long len)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(lock(opened(path), kind, type, start, len, 0));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct flock asked(int fd, short type, long start, long len)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	CHECK(!fcntl(fd, F_GETLK, &l));
	return l;
}

/* Queries a lock from a child, because a process never conflicts with itself. */
static void check_asked(const char *path, short type, long start, long len, short want, long at,
			long n)
{
	pid_t pid = fork(), parent = getppid();
	int status;

	if (!pid) {
		struct flock l = asked(opened(path), type, start, len);

		parent = getppid();
		CHECK(l.l_type == want);
		CHECK(want == UNLOCK || (l.l_start == at && l.l_len == n && l.l_pid == parent));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void ranges(const char *path)
{
	int fd = opened(path), again;

	CHECK(!lock(fd, "posix", EXCLUSIVE, 0, 100, 0));
	CHECK(other(path, "posix", SHARED, 99, 1) == EAGAIN);
	CHECK(!other(path, "posix", EXCLUSIVE, 100, 0));
	CHECK(!lock(fd, "posix", UNLOCK, 40, 20, 0));
	CHECK(!other(path, "posix", EXCLUSIVE, 40, 20));
	check_asked(path, EXCLUSIVE, 0, 0, EXCLUSIVE, 0, 40);
	check_asked(path, EXCLUSIVE, 45, 0, EXCLUSIVE, 60, 40);
	CHECK(!lock(fd, "posix", SHARED, 30, 50, 0));
	check_asked(path, EXCLUSIVE, 30, 5, SHARED, 30, 50);
	check_asked(path, SHARED, 30, 50, UNLOCK, 0, 0);
	check_asked(path, SHARED, 30, 51, EXCLUSIVE, 80, 20);
	CHECK(!lock(fd, "posix", EXCLUSIVE, 0, 0, 0));
	check_asked(path, SHARED, 1000000, 5, EXCLUSIVE, 0, 0);
	CHECK(asked(fd, EXCLUSIVE, 0, 0).l_type == UNLOCK);
	again = opened(path);
	CHECK(!lock(again, "posix", EXCLUSIVE, 5, 5, 0));
	close(again);	/* any close of the file releases all locks of the process */
	CHECK(!other(path, "posix", EXCLUSIVE, 0, 0));
	close(fd);
}

/*
 * With FUSE, the kernel does not report the kind of a lock to the server. The kernel reports the
 * close of a file only after close() has returned, or after the process has ended.
 */
static bool by_fuse;

static void look_for_fuse(const char *path)
{
	struct statfs fs;
	int fd = opened(path);

	by_fuse = !fstatfs(fd, &fs) && fs.f_type == 0x65735546;
	close(fd);
}

/* Checks that the lock is free immediately, or within 5 s with FUSE. */
#define CHECK_FREE(attempt) do { \
	int tries = by_fuse ? 500 : 1, err; \
	while ((err = (attempt)) == EAGAIN && --tries) \
		nap(10); \
	CHECK(!err); \
} while (0)

static void open_files(const char *path)
{
	int a = opened(path), b = opened(path), c = dup(a);

	CHECK(!lock(a, "ofd", EXCLUSIVE, 0, 10, 0));
	CHECK(lock(b, "ofd", SHARED, 9, 1, 0) == EAGAIN);
	CHECK(lock(b, "posix", SHARED, 9, 1, 0) == EAGAIN);
	CHECK(!lock(b, "ofd", EXCLUSIVE, 10, 10, 0));
	CHECK(!lock(c, "ofd", SHARED, 0, 10, 0));
	CHECK(!lock(b, "ofd", SHARED, 0, 10, 0));
	CHECK(lock(a, "ofd", EXCLUSIVE, 0, 10, 0) == EAGAIN);
	CHECK(asked(a, EXCLUSIVE, 15, 1).l_pid == -1 || by_fuse);
	close(b);
	CHECK_FREE(lock(a, "ofd", EXCLUSIVE, 0, 20, 0));
	close(a);	/* the duplicated descriptor keeps the lock */
	CHECK(other(path, "ofd", SHARED, 0, 1) == EAGAIN);
	close(c);
	CHECK_FREE(other(path, "ofd", EXCLUSIVE, 0, 0));
}

static void flocks(const char *path)
{
	int a = opened(path), b = opened(path);

	CHECK(!lock(a, "flock", SHARED, 0, 0, 0));
	CHECK(!lock(b, "flock", SHARED, 0, 0, 0));
	CHECK(!other(path, "posix", EXCLUSIVE, 0, 0));	/* the two kinds of locks are independent */
	CHECK(lock(a, "flock", EXCLUSIVE, 0, 0, 0) == EWOULDBLOCK);
	CHECK(!lock(b, "flock", EXCLUSIVE, 0, 0, 0));	/* a has lost its own lock: see flock(2) */
	CHECK(lock(a, "flock", SHARED, 0, 0, 0) == EWOULDBLOCK);
	CHECK(!lock(b, "flock", SHARED, 0, 0, 0));
	CHECK(!lock(a, "flock", SHARED, 0, 0, 0));
	close(a);
	CHECK_FREE(lock(b, "flock", EXCLUSIVE, 0, 0, 0));
	if (!fork()) {	/* the child's unlock also releases the lock of the parent's open file */
		CHECK(!lock(b, "flock", UNLOCK, 0, 0, 0));
		_exit(0);
	}
	wait(NULL);
	CHECK(!other(path, "flock", EXCLUSIVE, 0, 0));
	close(b);
}

static void nothing(int sig)
{
	(void)sig;
}

/* Checks that a signal ends the wait for a lock, and that the waiter gets no lock later. */
static void interrupted(const char *path, const char *kind)
{
	struct sigaction sa = { .sa_handler = nothing };
	int fd = opened(path), status;
	pid_t pid;

	CHECK_FREE(lock(fd, kind, EXCLUSIVE, 0, 0, 0));
	pid = fork();
	if (!pid) {
		sigaction(SIGUSR1, &sa, NULL);
		_exit(lock(opened(path), kind, EXCLUSIVE, 0, 0, 1));
	}
	nap(300);
	CHECK(!waitpid(pid, &status, WNOHANG));
	kill(pid, SIGUSR1);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == EINTR);
	pid = fork();
	if (!pid)
		_exit(lock(opened(path), kind, EXCLUSIVE, 0, 0, 1));
	nap(100);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	pid = fork();
	if (!pid)
		_exit(lock(opened(path), kind, EXCLUSIVE, 0, 0, 1));
	nap(100);
	CHECK(!lock(fd, kind, UNLOCK, 0, 0, 0));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	close(fd);
}

static void killed(const char *path, const char *kind)
{
	int to[2], status;
	char byte;
	pid_t pid;

	CHECK(!pipe(to));
	pid = fork();
	if (!pid) {
		CHECK(!lock(opened(path), kind, EXCLUSIVE, 0, 0, 1));
		CHECK(write(to[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(to[0], &byte, 1) == 1);
	CHECK(other(path, kind, SHARED, 0, 1) == EAGAIN);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_FREE(other(path, kind, EXCLUSIVE, 0, 0));
	close(to[0]);
	close(to[1]);
}

/*
 * Checks that a lease is refused, because it would be valid in this system only. With FUSE, the
 * kernel grants a lease without asking the file system.
 */
static int no_lease(int fd, int type)
{
	return by_fuse || (fcntl(fd, F_SETLEASE, type) == -1 && errno == EINVAL);
}

static void refused(const char *path)
{
	int fd = opened(path), dir = open("/", O_RDONLY);

	CHECK(no_lease(fd, F_WRLCK));
	CHECK(no_lease(fd, F_RDLCK));
	close(fd);
	fd = open(path, O_RDONLY);
	CHECK(no_lease(fd, F_RDLCK));
	CHECK(lock(fd, "posix", EXCLUSIVE, 0, 0, 0) == EBADF);
	close(fd);
	close(dir);
}

static void directory(const char *path)
{
	char *dir = strdup(path);
	int a, b;

	*strrchr(dir, '/') = 0;
	a = open(dir, O_RDONLY | O_DIRECTORY);
	b = open(dir, O_RDONLY | O_DIRECTORY);
	CHECK(a >= 0 && b >= 0);
	CHECK(!lock(a, "flock", EXCLUSIVE, 0, 0, 0));
	CHECK(lock(b, "flock", SHARED, 0, 0, 0) == EWOULDBLOCK);
	CHECK(fcntl(b, F_SETLEASE, F_RDLCK) == -1 && errno == EINVAL);
	close(a);
	CHECK_FREE(lock(b, "flock", SHARED, 0, 0, 0));
	close(b);
	free(dir);
}

static int alone(const char *path)
{
	static const char *const kinds[] = { "posix", "ofd", "flock" };
	unsigned int i;

	look_for_fuse(path);
	ranges(path);
	open_files(path);
	flocks(path);
	for (i = 0; i < 3; i++) {
		interrupted(path, kinds[i]);
		killed(path, kinds[i]);
	}
	refused(path);
	directory(path);
	printf("%u checks\n", checks);
	return 0;
}

/* --- Commands for tests with several processes ------------------------------------------------ */

static int get(char **arg)
{
	int fd = opened(arg[3]);
	struct flock l = asked(fd, !strcmp(arg[0], "ex") ? EXCLUSIVE : SHARED, atol(arg[1]),
			       atol(arg[2]));

	if (l.l_type == UNLOCK)
		puts("free");
	else
		printf("%s %ld %ld %d\n", l.l_type == EXCLUSIVE ? "ex" : "sh", (long)l.l_start,
		       (long)l.l_len, l.l_pid);
	return 0;
}

static int cross(char **arg)
{
	int fd = opened(arg[0]), err = lock(fd, "posix", EXCLUSIVE, atol(arg[1]), 1, 1);

	if (err)
		die("first lock");
	puts("first");
	fflush(stdout);
	nap(atol(arg[3]));
	say(lock(fd, "posix", EXCLUSIVE, atol(arg[2]), 1, 1), "got");
	return 0;
}

static int count(char **arg)
{
	long n = atol(arg[1]), i, value;
	int fd = opened(arg[2]), err;
	char text[32];
	ssize_t len;

	for (i = 0; i < n; i++) {
		err = lock(fd, arg[0], EXCLUSIVE, 0, 0, 1);
		errno = err;
		if (err)
			die("lock");
		len = pread(fd, text, sizeof(text) - 1, 0);
		if (len < 0)
			die("read");
		text[len] = 0;
		value = atol(text) + 1;
		len = snprintf(text, sizeof(text), "%ld\n", value);
		if (pwrite(fd, text, (size_t)len, 0) != len)
			die("write");
		err = lock(fd, arg[0], UNLOCK, 0, 0, 1);
		errno = err;
		if (err)
			die("unlock");
	}
	return 0;
}

static int readers(char **arg)
{
	struct timespec start, now;
	int fd = opened(arg[2]);

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (lock(fd, arg[0], SHARED, 0, 0, 1))
			die("lock");
		nap(20);
		if (lock(fd, arg[0], UNLOCK, 0, 0, 1))
			die("unlock");
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
		 atol(arg[1]));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char **arg = argv + 2;
	int n = argc - 2;

	if (!strcmp(what, "alone") && n == 1)
		return alone(arg[0]);
	if (!strcmp(what, "get") && n == 4)
		return get(arg);
	if (!strcmp(what, "cross") && n == 4)
		return cross(arg);
	if (!strcmp(what, "count") && n == 3)
		return count(arg);
	if (!strcmp(what, "read") && n == 3)
		return readers(arg);
	if ((!strcmp(what, "try") || !strcmp(what, "hold") || !strcmp(what, "wait")) && n == 5) {
		short type = !strcmp(arg[1], "ex") ? EXCLUSIVE : SHARED;
		int err = lock(opened(arg[4]), arg[0], type, atol(arg[2]), atol(arg[3]),
			       *what != 't');

		say(err, *what == 'h' ? "held" : "got");
		if (*what == 'h' && !err)
			for (;;)
				pause();
		return 0;
	}
	fprintf(stderr, "usage: see the top of locks.c\n");
	return 2;
}
