// SPDX-License-Identifier: Apache-2.0
/*
 * posix_matrix DIRECTORY [SUBJECT | NAME | !NAME | -NAME]...
 *
 * Runs all tests, the tests of each SUBJECT, or the test NAME. The test !NAME must fail, because
 * the file system must refuse its calls. The test -NAME does not run. Give -NAME before the other
 * arguments.
 */
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "posix.h"

#define SKIPPED 77
#define LIMIT_S 120

static struct test *tests, **last = &tests;

void add_test(struct test *t)
{
	*last = t;
	last = &t->next;
}

void failed(const char *file, int line, const char *what)
{
	int err = errno;

	printf("%s:%d: %s (errno: %s)\n", file, line, what, strerror(err));
	fflush(stdout);
	_exit(1);
}

void skip(const char *why)
{
	printf("skipped: %s\n", why);
	fflush(stdout);
	_exit(SKIPPED);
}

int make_file(const char *name, const void *data, size_t len)
{
	int fd = OK(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644));

	CHECK(write(fd, data, len) == (ssize_t)len);
	return fd;
}

void fill(void *buf, size_t len, unsigned int seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)((i * 167 + seed * 31 + (i >> 12) * 7) % 251 + 1);
}

bool is_filled(const void *buf, size_t len, unsigned int seed)
{
	unsigned char *want = malloc(len);
	bool same;

	fill(want, len, seed);
	same = !memcmp(buf, want, len);
	free(want);
	return same;
}

bool is_zero(const void *buf, size_t len)
{
	const char *p = buf;

	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

struct stat stat_of(const char *name)
{
	struct stat st;

	OK(lstat(name, &st));
	return st;
}

off_t size_of(const char *name)
{
	return stat_of(name).st_size;
}

bool exists(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

void wait_tick(void)
{
	/* Time stamps advance by ticks of the kernel's clock. */
	struct timespec t = { 0, 20000000 };

	nanosleep(&t, NULL);
}

bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int status_of(pid_t pid)
{
	int status;

	OK(waitpid(pid, &status, 0));
	return status;
}

void in_child(void (*fn)(void))
{
	pid_t pid = OK(fork());

	if (!pid) {
		fn();
		fflush(stdout);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
}

void as_user(uid_t uid, gid_t gid, void (*fn)(void))
{
	pid_t pid = OK(fork());

	if (!pid) {
		OK(setgroups(0, NULL));
		OK(setresgid(gid, gid, gid));
		OK(setresuid(uid, uid, uid));
		fn();
		fflush(stdout);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
}

void dies_of(int sig, void (*fn)(void))
{
	pid_t pid = OK(fork());
	int status;

	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		fn();
		_exit(0);
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int run(const struct test *t)
{
	int status;
	pid_t pid;

	if (mkdir(t->name, 0777) || chmod(t->name, 0777)) {
		printf("mkdir %s: %s\n", t->name, strerror(errno));
		return 1;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		umask(022);
		if (chdir(t->name))
			failed(__FILE__, __LINE__, "chdir");
		alarm(LIMIT_S);
		t->run();
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	if (nftw(t->name, remove_one, 16, FTW_DEPTH | FTW_PHYS)) {
		printf("%s cannot be removed: %s\n", t->name, strerror(errno));
		return 1;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		return SKIPPED;
	if (WIFSIGNALED(status))
		printf("died of %s\n", strsignal(WTERMSIG(status)));
	return status ? 1 : 0;
}

static bool wanted(const struct test *t, char **names)
{
	bool chosen = false;

	for (; *names; names++) {
		if (**names == '-' && !strcmp(*names + 1, t->name))
			return false;
		if (**names == '!' || **names == '-')
			continue;
		chosen = true;
		if (!strcmp(*names, t->name) || !strcmp(*names, t->subject))
			return true;
	}
	return !chosen;
}

static bool to_fail(const struct test *t, char **names)
{
	for (; *names; names++)
		if (**names == '!' && !strcmp(*names + 1, t->name))
			return true;
	return false;
}

/* Returns 0 if the test had the expected outcome: for !NAME, a failure. */
static int judge(const struct test *t, int result, char **names)
{
	if (!to_fail(t, names) || result == SKIPPED)
		return result;
	if (!result)
		printf("%s passed, but must fail\n", t->name);
	return !result;
}

int main(int argc, char **argv)
{
	unsigned int passed = 0, failures = 0, skipped = 0;
	const struct test *t;

	if (argc < 2 || chdir(argv[1])) {
		fprintf(stderr, "usage: %s DIRECTORY [SUBJECT | NAME | !NAME | -NAME]...\n", argv[0]);
		return 2;
	}
	for (t = tests; t; t = t->next) {
		int result;

		if (!wanted(t, argv + 2))
			continue;
		result = judge(t, run(t), argv + 2);
		if (result)
			printf("%s %s/%s\n", result == SKIPPED ? "SKIP" : "FAIL", t->subject,
			       t->name);
		if (!result)
			passed++;
		else if (result == SKIPPED)
			skipped++;
		else
			failures++;
	}
	printf("%u passed, %u failed, %u skipped\n", passed, failures, skipped);
	return failures || !passed;
}
