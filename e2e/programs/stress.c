// SPDX-License-Identifier: Apache-2.0
/*
 * Several processes work in the same few directories at the same time: they make, remove, rename,
 * exchange, link and list names. The test checks these rules:
 *
 * - a call fails only with an error that another process can have caused;
 * - each lookup finds a name that always exists, and each listing shows it exactly once;
 * - a name that rename() replaces exists at any moment, with the complete content of one writer;
 * - if a file was complete before it got its name, each process that opens it sees it complete;
 * - at the end, each inode has as many names as its link count says, and each directory's link
 *   count is the number of its sub-directories plus 2.
 *
 *   stress [-s SEED] [-p PROCESSES] [-t SECONDS] [-o] [-f FIRST] [-x prepare|work|check] DIR
 *
 * With -o, all processes replace and read only one name.
 *
 * Several systems can run the test together: one system prepares, all systems work, and then one
 * system checks (-x). Each system numbers its processes from its own FIRST on.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "random.h"

#define DIRS 4
#define NAMES 12		/* contended names per directory */
#define ANCHORS 40		/* names per directory that never go away */
#define WORDS 1500		/* size of each file: several pages and a part of a page */

static uint64_t seed = 1;
static unsigned int me, first;
/* in shared memory: one entry per process */
static struct { unsigned long done, refused, stale; } *counts;
static bool others;		/* other systems run the test at the same time */
static bool one_name;		/* all processes use only the name "token" */

static unsigned int below(unsigned int n)
{
	return random64() % n;
}

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	int err = errno;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("stress: process %u, seed %llu: %s (errno %d, %s)\n", me, (unsigned long long)seed,
	       text, err, strerror(err));
	exit(1);
}

/* Counts a call. If it failed, its error must be one of the listed errors. The list ends with 0. */
static int result(const char *what, const char *name, int answer, ...)
{
	int allowed;
	va_list list;

	if (answer >= 0) {
		counts[me - first].done++;
		return answer;
	}
	va_start(list, answer);
	while ((allowed = va_arg(list, int)))
		if (errno == allowed)
			break;
	va_end(list);
	if (!allowed)
		die("%s %s", what, name);
	counts[me - first].refused++;
	return -1;
}

/*
 * Returns whether to repeat a call. While other systems move a directory or replace a name, a call
 * for that name may return ESTALE (docs/limitations.md). One of the repeated calls must succeed.
 * Without other systems, no call may return ESTALE.
 */
static bool ask_again(int answer, unsigned int *turn)
{
	if (answer >= 0 || errno != ESTALE || !others || (*turn)++ == 200)
		return false;
	counts[me - first].stale++;
	usleep(5000);
	return true;
}

#define AGAIN(call) ({ unsigned int turn_ = 0; int answer_;	\
	do							\
		answer_ = (call);				\
	while (ask_again(answer_, &turn_));			\
	answer_; })

static void in_dir(char *to, unsigned int dir, const char *kind, unsigned int n)
{
	sprintf(to, "d%u/%s%u", dir, kind, n);
}

static void contended(char *to)
{
	in_dir(to, below(DIRS), "n", below(NAMES));
}

/* --- content that shows its writer, and whether it is complete -------------------------------- */

static void write_content(int fd, const char *name)
{
	uint64_t words[WORDS], key = random64();

	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = key ^ i * 0x9e3779b97f4a7c15ull;
	if (write(fd, words, sizeof(words)) != sizeof(words))
		die("writing %s", name);
}

static void check_content(int fd, const char *name)
{
	uint64_t words[WORDS + 1];
	ssize_t n = pread(fd, words, sizeof(words), 0);

	if (n != sizeof(uint64_t) * WORDS)
		die("%s has %zd bytes, not %zu", name, n, sizeof(uint64_t) * WORDS);
	for (unsigned int i = 0; i < WORDS; i++)
		if (words[i] != (words[0] ^ i * 0x9e3779b97f4a7c15ull))
			die("%s has the content of two writers: word %u differs", name, i);
}

/* Makes a complete file with a name that no other process uses. */
static void make_private(char *name)
{
	in_dir(name, below(DIRS), "private-", me);
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	if (fd < 0)
		die("creating %s", name);
	write_content(fd, name);
	close(fd);
}

/* --- actions of the processes ----------------------------------------------------------------- */

static void do_publish(void)
{
	char from[64], to[64];

	make_private(from);
	contended(to);
	if (result("rename to", to, AGAIN(rename(from, to)), EISDIR, 0) < 0 && unlink(from))
		die("removing %s", from);
}

static void do_publish_tmpfile(void)
{
	char dir[16], to[64], proc[64];

	sprintf(dir, "d%u", below(DIRS));
	contended(to);
	int fd = open(dir, O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		die("O_TMPFILE in %s", dir);
	write_content(fd, "an unnamed file");
	sprintf(proc, "/proc/self/fd/%d", fd);
	result("link to", to, AGAIN(linkat(AT_FDCWD, proc, AT_FDCWD, to, AT_SYMLINK_FOLLOW)),
	       EEXIST, 0);
	close(fd);
}

static void do_read(void)
{
	char name[64];

	contended(name);
	int fd = result("open", name, AGAIN(open(name, O_RDONLY | O_NOFOLLOW)), ENOENT, ELOOP, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st))
		die("fstat %s", name);
	if (S_ISREG(st.st_mode))
		check_content(fd, name);
	close(fd);
}

static void do_unlink(void)
{
	char name[64];

	contended(name);
	result("unlink", name, AGAIN(unlink(name)), ENOENT, EISDIR, 0);
}

static void do_link(void)
{
	char from[64], to[64];

	contended(from);
	contended(to);
	result("link", to, AGAIN(link(from, to)), ENOENT, EEXIST, EPERM, 0);
}

static void do_symlink(void)
{
	char name[64];

	contended(name);
	result("symlink", name, AGAIN(symlink("somewhere/else", name)), EEXIST, 0);
}

static void do_mkdir(void)
{
	char name[64];

	contended(name);
	result("mkdir", name, AGAIN(mkdir(name, 0700)), EEXIST, 0);
}

static void do_rmdir(void)
{
	char name[64];

	contended(name);
	result("rmdir", name, AGAIN(rmdir(name)), ENOENT, ENOTDIR, ENOTEMPTY, 0);
}

static void do_rename(void)
{
	static const unsigned int flags[] = { 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	char from[64], to[64];

	contended(from);
	contended(to);

	unsigned int how = flags[below(4)];

	result("rename to", to, AGAIN(renameat2(AT_FDCWD, from, AT_FDCWD, to, how)), ENOENT, EEXIST,
	       EISDIR, ENOTDIR, ENOTEMPTY, 0);
}

/*
 * Makes and removes names in directories that other processes move. All processes must see the new
 * paths.
 */
static void do_nested(void)
{
	char dir[64], name[80];

	contended(dir);
	sprintf(name, "%s/inner%u", dir, below(3));
	int fd = result("create", name, AGAIN(open(name, O_CREAT | O_WRONLY, 0600)), ENOENT,
			ENOTDIR, ELOOP, 0);

	if (fd >= 0)
		close(fd);
	sprintf(name, "%s/inner%u", dir, below(3));
	result("unlink", name, AGAIN(unlink(name)), ENOENT, ENOTDIR, ELOOP, 0);
}

static void do_token(void)
{
	char name[64];
	unsigned int dir = one_name ? 0 : below(DIRS);

	if (one_name ? me % 2 : below(2)) {
		char from[64];

		make_private(from);
		in_dir(name, dir, "token", 0);
		if (rename(from, name))
			die("replacing %s", name);
		counts[me - first].done++;
		return;
	}
	in_dir(name, dir, "token", 0);
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		die("%s is missing", name);
	check_content(fd, name);
	close(fd);
	counts[me - first].done++;
}

static void do_anchor(void)
{
	char name[64];
	struct stat st;

	in_dir(name, below(DIRS), "anchor", below(ANCHORS));
	if (stat(name, &st))
		die("%s is missing", name);
}

static void do_list(void)
{
	unsigned int seen[ANCHORS] = { 0 }, token = 0, dots = 0, n;
	char name[16];
	struct dirent *e;

	sprintf(name, "d%u", below(DIRS));
	DIR *dir = opendir(name);

	if (!dir)
		die("opendir %s", name);
	while (errno = 0, (e = readdir(dir))) {
		if (sscanf(e->d_name, "anchor%u", &n) == 1 && n < ANCHORS)
			seen[n]++;
		token += !strcmp(e->d_name, "token0");
		dots += !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	}
	if (errno)
		die("readdir %s", name);
	closedir(dir);
	for (n = 0; n < ANCHORS; n++)
		if (seen[n] != 1)
			die("the listing of %s showed anchor%u %u times", name, n, seen[n]);
	if (token != 1 || dots != 2)
		die("the listing of %s showed token0 %u times, and . and .. %u times", name, token,
		    dots);
	counts[me - first].done++;
}

static void (*const works[])(void) = {
	do_publish, do_publish, do_publish_tmpfile, do_read, do_read, do_unlink, do_unlink,
	do_link, do_symlink, do_mkdir, do_rmdir, do_rename, do_rename, do_nested, do_token,
	do_token, do_anchor, do_list,
};

/* --- the preparation and the final check ------------------------------------------------------ */

static void prepare(void)
{
	char name[64];

	for (unsigned int d = 0; d < DIRS; d++) {
		sprintf(name, "d%u", d);
		if (mkdir(name, 0700))
			die("mkdir %s", name);
		for (unsigned int n = 0; n <= ANCHORS; n++) {
			in_dir(name, d, n < ANCHORS ? "anchor" : "token", n % ANCHORS);
			int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

			if (fd < 0)
				die("creating %s", name);
			write_content(fd, name);
			close(fd);
		}
	}
}

struct seen {
	ino_t ino;
	nlink_t links, names;
	char *name;
};
static void *inodes;
static unsigned long names_seen;

static int by_ino(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static void remember(const struct stat *st, const char *path)
{
	struct seen *s = calloc(1, sizeof(*s)), **found;

	s->ino = st->st_ino;
	s->links = st->st_nlink;
	s->name = strdup(path);
	found = tsearch(s, &inodes, by_ino);
	if (!found)
		die("out of memory");
	if (*found != s) {
		free(s->name);
		free(s);
	}
	(*found)->names++;
	if ((*found)->links != st->st_nlink)
		die("%s: the link count changed, although no process works", path);
}

static void count_names(const void *node, VISIT which, int depth)
{
	const struct seen *s = *(struct seen *const *)node;

	(void)depth;
	if ((which == postorder || which == leaf) && s->names != s->links)
		die("inode %lu (%s) has %lu names, but its link count is %lu",
		    (unsigned long)s->ino, s->name, (unsigned long)s->names,
		    (unsigned long)s->links);
}

/* Checks every name below a directory, and with @remove, removes the names. */
static void walk(const char *path, int remove)
{
	struct dirent *e;
	struct stat st, own;
	nlink_t links = 2;
	DIR *dir = opendir(path);

	if (!dir || stat(path, &own))
		die("opendir %s", path);
	while (errno = 0, (e = readdir(dir))) {
		char name[300];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (lstat(name, &st))
			die("lstat %s, which the listing showed", name);
		if (st.st_ino != e->d_ino)
			die("%s is inode %lu, but the listing shows %lu", name,
			    (unsigned long)st.st_ino, (unsigned long)e->d_ino);
		names_seen++;
		if (S_ISDIR(st.st_mode)) {
			links++;
			walk(name, remove);
		} else if (!remove) {
			remember(&st, name);
		}
		if (remove && (S_ISDIR(st.st_mode) ? rmdir(name) : unlink(name)))
			die("removing %s", name);
	}
	if (errno)
		die("readdir %s", path);
	closedir(dir);
	if (own.st_nlink != links)
		die("%s has link count %lu, but must have %lu", path, (unsigned long)own.st_nlink,
		    (unsigned long)links);
}

static void work(unsigned int number, time_t end)
{
	me = number;
	state = seed + number * 7919;
	while (time(NULL) < end)
		for (unsigned int i = 0; i < 50; i++)
			one_name ? do_token() : works[below(sizeof(works) / sizeof(works[0]))]();
	exit(0);
}

int main(int argc, char **argv)
{
	unsigned int processes = 4, seconds = 10, bad = 0;
	bool prepares = true, works_on = true, checks = true;
	unsigned long done = 0, refused = 0, stale = 0;
	int c, status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "s:p:t:of:x:")) != -1) {
		switch (c) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'p': processes = strtoul(optarg, NULL, 0); break;
		case 't': seconds = strtoul(optarg, NULL, 0); break;
		case 'o': one_name = true; break;
		case 'f': first = strtoul(optarg, NULL, 0); break;
		case 'x':
			prepares = *optarg == 'p';
			works_on = *optarg == 'w';
			checks = *optarg == 'c';
			break;
		default: return 2;
		}
	}
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (optind + 1 != argc || counts == MAP_FAILED || processes > 4096 / sizeof(*counts) ||
	    chdir(argv[optind])) {
		perror("stress: DIR, or another argument, is not valid");
		return 2;
	}
	state = seed;
	others = works_on && !prepares;
	if (prepares)
		prepare();
	for (unsigned int i = 0; works_on && i < processes; i++)
		if (!fork())
			work(first + i, time(NULL) + seconds);
	while (wait(&status) > 0)
		bad += status != 0;
	if (bad)
		return 1;
	if (checks) {
		walk(".", 0);
		twalk(inodes, count_names);
	}
	unsigned long names = names_seen;

	if (checks)
		walk(".", 1);
	for (unsigned int i = 0; i < processes; i++) {
		done += counts[i].done;
		refused += counts[i].refused;
		stale += counts[i].stale;
	}
	printf("stress: seed %llu, %u processes, %lu calls done, %lu refused, %lu stale, %lu names left\n",
	       (unsigned long long)seed, processes, done, refused, stale, names);
	return done || !works_on ? 0 : 1;
}
