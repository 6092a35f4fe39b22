// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions of one operation on a file system, in a guest in which one instruction
 * takes one nanosecond (e2e/rig run --icount).
 *
 *   icount DIR OPERATION...      prints "OPERATION INSTRUCTIONS" for each operation
 *
 * Each operation first runs some times to warm up, and then a fixed number of times between two
 * readings of the clock. The cost of an empty loop is subtracted. The figure includes other work of
 * the kernel for these operations, for example of a journal's thread, because the operations need
 * it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)

static char *buffer;
static int file = -1;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

__attribute__((noreturn)) static void die(const char *what)
{
	printf("icount: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void name_of(char *to, unsigned int i)
{
	sprintf(to, "name-%06u", i);
}

static void make(unsigned int from, unsigned int to)
{
	char name[32];

	for (unsigned int i = from; i < to; i++) {
		name_of(name, i);
		int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

		if (fd < 0)
			die(name);
		close(fd);
	}
}

static void forget(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "2", 1) != 1)
		die("/proc/sys/vm/drop_caches");
	close(fd);
}

/* --- Preparations: each leaves @file open, and the names from 0 to @all - 1 absent or present - */

static void with_data(unsigned int all)
{
	(void)all;
	file = open("data", O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (file < 0 || pwrite(file, buffer, MIB, 0) != MIB)
		die("data");
}

static void with_empty(unsigned int all)
{
	(void)all;
	file = open("data", O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0600);
	if (file < 0)
		die("data");
}

static void with_names(unsigned int all)
{
	with_empty(all);
	make(0, all);
}

static void with_forgotten_names(unsigned int all)
{
	with_names(all);
	forget();
}

/* --- Operations ------------------------------------------------------------------------------- */

static int do_nothing(unsigned int i)
{
	(void)i;
	return 0;
}

static int do_call(unsigned int i)
{
	(void)i;
	return syscall(SYS_getppid) < 0;
}

static int do_read_1(unsigned int i)
{
	return pread(file, buffer, 1, i % 256 * 4096) == 1 ? 0 : -1;
}

static int do_read(unsigned int i)
{
	return pread(file, buffer, 4096, i % 256 * 4096) == 4096 ? 0 : -1;
}

static int do_write(unsigned int i)
{
	return pwrite(file, buffer, 4096, i % 256 * 4096) == 4096 ? 0 : -1;
}

static int do_read_1m(unsigned int i)
{
	(void)i;
	return pread(file, buffer, MIB, 0) == MIB ? 0 : -1;
}

static int do_write_1m(unsigned int i)
{
	(void)i;
	return pwrite(file, buffer, MIB, 0) == MIB ? 0 : -1;
}

static int do_append(unsigned int i)
{
	(void)i;
	return write(file, buffer, 4096) == 4096 ? 0 : -1;
}

static int do_append_sync(unsigned int i)
{
	return do_append(i) || fsync(file) ? -1 : 0;
}

static int do_open_close(unsigned int i)
{
	int fd = open("data", O_RDONLY);

	(void)i;
	return fd < 0 ? -1 : close(fd);
}

static int do_create(unsigned int i)
{
	char name[32];

	name_of(name, i);
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	return fd < 0 ? -1 : close(fd);
}

static int do_create_sync(unsigned int i)
{
	char name[32];

	name_of(name, i);
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	return fd < 0 || fsync(fd) ? -1 : close(fd);
}

static int do_unlink(unsigned int i)
{
	char name[32];

	name_of(name, i);
	return unlink(name);
}

static int do_lookup(unsigned int i)
{
	char name[32];
	struct stat st;

	name_of(name, i);
	return stat(name, &st);
}

static int do_stat(unsigned int i)
{
	struct stat st;

	(void)i;
	return stat("data", &st);
}

static const struct {
	const char *name;
	void (*prepare)(unsigned int all);
	int (*run)(unsigned int i);
	unsigned int warm, count;
} operations[] = {
	{ "call", with_empty, do_call, 300, 2000 },
	{ "read-1", with_data, do_read_1, 300, 2000 },
	{ "read-4k", with_data, do_read, 300, 2000 },
	{ "read-1m", with_data, do_read_1m, 5, 50 },
	{ "write-4k", with_data, do_write, 300, 2000 },
	{ "write-1m", with_data, do_write_1m, 5, 50 },
	{ "append-4k", with_empty, do_append, 300, 2000 },
	{ "append-4k-fsync", with_empty, do_append_sync, 100, 500 },
	{ "open-close", with_empty, do_open_close, 300, 2000 },
	{ "stat", with_empty, do_stat, 300, 2000 },
	{ "create", with_empty, do_create, 300, 2000 },
	{ "create-fsync", with_empty, do_create_sync, 100, 500 },
	{ "lookup", with_forgotten_names, do_lookup, 300, 2000 },
	{ "unlink", with_names, do_unlink, 300, 2000 },
};

static uint64_t loop(int (*run)(unsigned int), unsigned int from, unsigned int to)
{
	uint64_t start = now();

	for (unsigned int i = from; i < to; i++)
		if (run(i))
			die("the operation");
	return now() - start;
}

static void measure(const char *name)
{
	for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
		unsigned int warm = operations[o].warm, all = warm + operations[o].count;

		if (strcmp(name, operations[o].name))
			continue;
		operations[o].prepare(all);
		loop(operations[o].run, 0, warm);
		uint64_t took = loop(operations[o].run, warm, all);

		took -= loop(do_nothing, warm, all);
		printf("%s %llu\n", name, (unsigned long long)took / operations[o].count);
		close(file);
		unlink("data");
		for (unsigned int i = 0; i < all; i++) {
			char left[32];

			name_of(left, i);
			if (unlink(left) && errno != ENOENT)
				die(left);
		}
		return;
	}
	fprintf(stderr, "icount: unknown operation %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	buffer = aligned_alloc(4096, MIB);
	if (!buffer || argc < 3 || chdir(argv[1])) {
		fprintf(stderr, "usage: icount DIR OPERATION...\n");
		return 2;
	}
	memset(buffer, 0x5a, MIB);
	for (int i = 2; i < argc; i++)
		measure(argv[i]);
	return 0;
}
