// SPDX-License-Identifier: Apache-2.0
/*
 * Measures the time of operations on names.
 *
 *   meta DIR NAME FILES DIRS MS [together]
 *
 * Makes DIRS directories in DIR/NAME, and files in these directories in turn, until there are FILES
 * files or MS milliseconds have passed. Then it runs the operations stat, open, list, rename and
 * unlink on the files. After MS milliseconds an operation ends, and omits the remaining files.
 * Prints "OPERATION NANOSECONDS", the time for one file, and removes all files that it has made.
 * With `together`, the program prints "ready" and begins when it reads a line, so that several
 * systems begin at the same time.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_DIRS 64u

static unsigned int files, dirs;
static uint64_t budget;

__attribute__((noreturn)) static void die(const char *what)
{
	printf("meta: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void dir_name(char path[64], unsigned int d)
{
	snprintf(path, 64, "d%02u", d);
}

static void file_name(char path[64], const char *kind, unsigned int i)
{
	snprintf(path, 64, "d%02u/%s-%06u", i % dirs, kind, i);
}

static void create(unsigned int i)
{
	char path[64];
	int fd;

	file_name(path, "file", i);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || close(fd))
		die("create");
}

static void look(unsigned int i)
{
	struct stat st;
	char path[64];

	file_name(path, "file", i);
	if (stat(path, &st))
		die("stat");
}

static void reopen(unsigned int i)
{
	char path[64];
	int fd;

	file_name(path, "file", i);
	fd = open(path, O_RDONLY);
	if (fd < 0 || close(fd))
		die("open");
}

static void change_name(unsigned int i)
{
	char from[64], to[64];

	file_name(from, "file", i);
	file_name(to, "name", i);
	if (rename(from, to))
		die("rename");
}

static void list(unsigned int d)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	dir_name(path, d);
	dir = opendir(path);
	if (!dir)
		die("opendir");
	while (readdir(dir))
		n++;
	closedir(dir);
	if (n < 2)
		die("readdir");
}

static void destroy(unsigned int i)
{
	char path[64];

	file_name(path, "name", i);
	if (unlink(path))
		die("unlink");
}

/*
 * Calls @each for the numbers from 0 to @most - 1, until the time is over. One call does @units
 * operations. Prints the time of one operation, and returns the number of calls.
 */
static unsigned int timed(const char *what, void (*each)(unsigned int i), unsigned int most,
			  unsigned int units)
{
	uint64_t start = now(), spent = 0;
	unsigned int n = 0;

	while (n < most && spent < budget) {
		each(n++);
		spent = now() - start;
	}
	printf("%s %.0f\n", what, (double)spent / n / (units ? units : 1));
	return n;
}

static void made(const char *dir, const char *name)
{
	char path[64];
	unsigned int d;

	if (chdir(dir) || (mkdir(name, 0700) && errno != EEXIST) || chdir(name))
		die(dir);
	for (d = 0; d < dirs; d++) {
		dir_name(path, d);
		if (mkdir(path, 0700))
			die("mkdir");
	}
}

static void unmade(const char *name)
{
	char path[64];
	unsigned int d;

	for (d = 0; d < dirs; d++) {
		dir_name(path, d);
		if (rmdir(path))
			die("rmdir");
	}
	if (chdir("..") || rmdir(name))
		die(name);
}

static void finish(unsigned int renamed, unsigned int all)
{
	char path[64];
	unsigned int i;

	for (i = 0; i < all; i++) {
		file_name(path, i < renamed ? "name" : "file", i);
		if (unlink(path) && errno != ENOENT)
			die("unlink");
	}
}

int main(int argc, char **argv)
{
	unsigned int all, renamed;
	char line[8];

	files = argc > 5 ? (unsigned int)atoi(argv[3]) : 0;
	dirs = argc > 5 ? (unsigned int)atoi(argv[4]) : 0;
	budget = argc > 5 ? strtoull(argv[5], NULL, 10) * 1000000u : 0;
	if (!files || !dirs || dirs > MOST_DIRS || !budget) {
		fprintf(stderr, "usage: meta DIR NAME FILES DIRS MS [together]\n");
		return 2;
	}
	made(argv[1], argv[2]);
	if (argc > 6) {
		printf("ready\n");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	all = timed("create", create, files, 1);
	timed("stat", look, all, 1);
	timed("open", reopen, all, 1);
	timed("list", list, dirs, all / dirs);
	renamed = timed("rename", change_name, all, 1);
	timed("unlink", destroy, renamed, 1);
	finish(renamed, all);
	unmade(argv[2]);
	return 0;
}
