// SPDX-License-Identifier: Apache-2.0
/*
 * What one system has written, another one reads: block after block, in turns that two shared
 * semaphores give them (P1 5.3). The semaphores are StargateFS's, wherever the file is.
 *
 *   handover write|read FILE BLOCK COUNT      prints "BYTES NANOSECONDS"
 *
 * The semaphores handover-full (0) and handover-empty (1) are there. Each block says which one it
 * is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "stargate.h"

#define VOLUME	"/mnt/sg"
#define SECOND	1000000000ull

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	printf("handover: %s: %s\n", what, why);
	exit(1);
}

static void must(const char *what, int err)
{
	if (err)
		die(what, stargate_why(err));
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void give(int file, char *block, size_t len, uint64_t i)
{
	memcpy(block, &i, sizeof(i));
	if (pwrite(file, block, len, (off_t)(i * len)) != (ssize_t)len)
		die("write", strerror(errno));
}

static void take(int file, char *block, size_t len, uint64_t i)
{
	uint64_t seen;

	if (pread(file, block, len, (off_t)(i * len)) != (ssize_t)len)
		die("read", strerror(errno));
	memcpy(&seen, block, sizeof(seen));
	if (seen != i)
		die("read", "not what the other one wrote");
}

int main(int argc, char **argv)
{
	bool writes = argc == 5 && !strcmp(argv[1], "write");
	size_t len = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	uint64_t count = argc == 5 ? strtoull(argv[4], NULL, 10) : 0, start;
	stargate_sem *full, *empty;

	if (len < sizeof(uint64_t) || !count || (!writes && strcmp(argv[1], "read"))) {
		fprintf(stderr, "usage: handover write|read FILE BLOCK COUNT\n");
		return 2;
	}
	char *block = aligned_alloc(4096, (len + 4095) & ~4095ul);
	int file = open(argv[2], O_RDWR | O_CREAT, 0644);

	if (!block || file < 0)
		die(argv[2], strerror(errno));
	memset(block, 0x5a, len);
	must("handover-full", stargate_open(&full, VOLUME, "handover-full", STARGATE_SEMAPHORE, 0));
	must("handover-empty", stargate_open(&empty, VOLUME, "handover-empty", STARGATE_SEMAPHORE, 0));
	start = now();
	for (uint64_t i = 0; i < count; i++) {
		must("wait", stargate_sem_wait(writes ? empty : full, stargate_in(60 * SECOND)));
		if (writes)
			give(file, block, len, i);
		else
			take(file, block, len, i);
		must("post", stargate_sem_post(writes ? full : empty));
	}
	printf("%llu %llu\n", (unsigned long long)(len * count), (unsigned long long)(now() - start));
	return 0;
}
