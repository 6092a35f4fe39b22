// SPDX-License-Identifier: Apache-2.0
/*
 * Reads or writes one file for MS milliseconds, without page caches if there are any.
 *
 *   flow KIND FILE BLOCK MIB MS [cached] [together]
 *   flow map FILE            maps FILE, reads one byte of each page, and exits
 *
 * KIND is read, write, randread or randwrite. The file has MIB mebibytes, which the program writes
 * before the measurement. With `together` the program prints "ready" and begins when it reads a
 * line, so that several systems begin at the same time. With `cached` page caches may be used.
 * Prints "BYTES NANOSECONDS P50 P99 P99.9": the sums of all calls, and percentiles of the time of
 * one call, in nanoseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB	(1024ul * 1024)
#define SECOND	1000000000ull
#define KEPT	(1u << 20)	/* the times of the last KEPT calls are kept */

static uint32_t took[KEPT];

__attribute__((noreturn)) static void die(const char *what)
{
	printf("flow: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the next number of a sequence that is the same in each run. */
static uint64_t next(void)
{
	static uint64_t state = 0x5eed;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

/* Writes the complete file before the measurement, by large writes. */
static void lay_out(int file, const char *path, char *buffer, size_t size)
{
	off_t have = lseek(file, 0, SEEK_END);

	if (have == (off_t)size)
		return;
	for (size_t at = 0; at < size; at += MIB)
		if (pwrite(file, buffer, MIB, (off_t)at) != (ssize_t)MIB)
			die(path);
	if (fsync(file))
		die("fsync");
}

static void wait_for_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static ssize_t move(int file, char *buffer, size_t block, off_t at, bool writes)
{
	return writes ? pwrite(file, buffer, block, at) : pread(file, buffer, block, at);
}

static void flow(int file, char *buffer, size_t block, size_t size, uint64_t ms, bool writes,
		 bool random)
{
	uint64_t blocks = size / block, calls = 0, start = now(), at = start, before;
	uint64_t end = start + ms * 1000000;

	while (at < end) {
		off_t where = (off_t)((random ? next() : calls) % blocks * block);

		before = at;
		if (move(file, buffer, block, where, writes) != (ssize_t)block)
			die(writes ? "write" : "read");
		at = now();
		before = at - before;
		took[calls++ % KEPT] = before > UINT32_MAX ? UINT32_MAX : (uint32_t)before;
	}
	uint64_t kept = calls < KEPT ? calls : KEPT;

	qsort(took, kept, sizeof(took[0]), by_size);
	printf("%llu %llu %u %u %u\n", (unsigned long long)(calls * block),
	       (unsigned long long)(at - start), took[kept / 2], took[kept * 99 / 100],
	       took[kept * 999 / 1000]);
}

static int map(const char *path)
{
	int file = open(path, O_RDONLY);
	off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
	volatile char *p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0);

	if (size <= 0 || p == MAP_FAILED)
		die(path);
	for (off_t at = 0; at < size; at += 4096)
		(void)p[at];
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "map"))
		return map(argv[2]);

	bool cached = false, together = false;
	const char *kind = argc > 5 ? argv[1] : "";
	bool random = !strncmp(kind, "rand", 4), writes = !strcmp(kind + 4 * random, "write");
	size_t block = argc > 5 ? strtoul(argv[3], NULL, 10) : 0;
	size_t size = argc > 5 ? strtoul(argv[4], NULL, 10) * MIB : 0;

	for (int i = 6; i < argc; i++) {
		cached |= !strcmp(argv[i], "cached");
		together |= !strcmp(argv[i], "together");
	}
	if (!block || size < block || (!writes && strcmp(kind + 4 * random, "read"))) {
		fprintf(stderr, "usage: flow KIND FILE BLOCK MIB MS [cached] [together]\n");
		return 2;
	}
	int file = open(argv[2], O_RDWR | O_CREAT | (cached ? 0 : O_DIRECT), 0644);
	size_t room = block > MIB ? block : MIB;
	char *buffer = aligned_alloc(4096, (room + 4095) & ~4095ul);

	if (file < 0 || !buffer)
		die(argv[2]);
	memset(buffer, 0x5a, room);
	lay_out(file, argv[2], buffer, size);
	memset(took, 1, sizeof(took)); /* makes the array present before the measurement */
	if (together)
		wait_for_line();
	flow(file, buffer, block, size, strtoull(argv[5], NULL, 10), writes, random);
	return 0;
}
