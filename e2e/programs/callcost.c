// SPDX-License-Identifier: Apache-2.0
/*
 * Measures the times of single calls in several directories. The calls of a round run in all
 * directories in turn, so that other load of the machine affects all directories.
 *
 *   callcost ROUNDS DIR...       prints "OPERATION DIRECTORY NANOSECONDS", the median of the rounds
 *
 * For comparison, the operation "memcpy" copies 1 MiB in memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define SIZE (16 * MIB)
#define ROUNDS_MAX 1000
#define DIRS_MAX 8

static char *buffer, *other;
static int fd[DIRS_MAX];
static char *dir[DIRS_MAX];

static void die(const char *what)
{
	fprintf(stderr, "callcost: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void in_dir(char *to, int d, const char *name)
{
	snprintf(to, 256, "%s/%s", dir[d], name);
}

static void read_4k(int d, int i)
{
	if (pread(fd[d], buffer, 4096, (off_t)(i % 4096) * 4096) != 4096)
		die("read");
}

static void write_4k(int d, int i)
{
	if (pwrite(fd[d], buffer, 4096, (off_t)(i % 4096) * 4096) != 4096)
		die("write");
}

static void read_1m(int d, int i)
{
	if (pread(fd[d], buffer, MIB, (off_t)(i % 16) * (off_t)MIB) != (ssize_t)MIB)
		die("read");
}

static void write_1m(int d, int i)
{
	if (pwrite(fd[d], buffer, MIB, (off_t)(i % 16) * (off_t)MIB) != (ssize_t)MIB)
		die("write");
}

static void stat_it(int d, int i)
{
	char path[256];
	struct stat st;

	(void)i;
	in_dir(path, d, "bench");
	if (stat(path, &st))
		die("stat");
}

static void create(int d, int i)
{
	char path[256], name[32];
	int f;

	snprintf(name, sizeof(name), "n%d", i);
	in_dir(path, d, name);
	f = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (f < 0 || close(f) || unlink(path))
		die("create");
}

static void copy(int d, int i)
{
	(void)d;
	memcpy(other + (size_t)(i % 16) * MIB, buffer + (size_t)((i + 7) % 16) * MIB, MIB);
}

static const struct {
	const char *name;
	void (*run)(int d, int i);
	int times;
} ops[] = {
	{ "read-4k", read_4k, 400 }, { "write-4k", write_4k, 400 }, { "stat", stat_it, 400 },
	{ "create", create, 100 }, { "read-1m", read_1m, 16 }, { "write-1m", write_1m, 16 },
	{ "memcpy", copy, 16 },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double once(size_t op, int d)
{
	double begin = now();
	int i;

	for (i = 0; i < ops[op].times; i++)
		ops[op].run(d, i);
	return (now() - begin) / ops[op].times;
}

int main(int argc, char **argv)
{
	static double took[OPS][DIRS_MAX][ROUNDS_MAX];
	int rounds = argc > 2 ? atoi(argv[1]) : 0, dirs = argc - 2, r, d;
	char path[256];
	size_t op;

	if (rounds < 1 || rounds > ROUNDS_MAX || dirs > DIRS_MAX)
		return 2;
	buffer = malloc(SIZE);
	other = malloc(SIZE);
	memset(buffer, 'x', SIZE);
	memset(other, 'y', SIZE);
	for (d = 0; d < dirs; d++) {
		dir[d] = argv[2 + d];
		in_dir(path, d, "bench");
		fd[d] = open(path, O_RDWR | O_CREAT, 0644);
		if (fd[d] < 0 || pwrite(fd[d], buffer, SIZE, 0) != (ssize_t)SIZE)
			die(path);
	}
	for (r = 0; r < rounds; r++)
		for (op = 0; op < OPS; op++)
			for (d = 0; d < dirs; d++)
				took[op][d][r] = once(op, d);
	for (op = 0; op < OPS; op++) {
		for (d = 0; d < dirs; d++) {
			qsort(took[op][d], (size_t)rounds, sizeof(double), by_size);
			printf("%s %s %.0f\n", ops[op].name, dir[d], took[op][d][rounds / 2]);
		}
	}
	return 0;
}
