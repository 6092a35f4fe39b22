// SPDX-License-Identifier: Apache-2.0
/*
 * One system writes a file, and another system reads it, block by block in turns. Two shared
 * semaphores of StargateFS order the turns (P1 5.3). The file may be on any file system.
 *
 *   handover write|read FILE BLOCK COUNT [direct] [turns=PATH:OFFSET]
 *
 * Prints "BYTES NANOSECONDS". The semaphores handover-full (value 0) and handover-empty (value 1)
 * must exist. With `turns`, two words of memory at OFFSET in the file PATH replace the semaphores,
 * and both sides poll these words. So the turns work as with P1's semaphores in user space, but
 * without a mounted volume.
 * With `direct`, calls bypass page caches (O_DIRECT). Each block contains its number. If FILE is -,
 * the systems only take turns, without a file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
		die("read", "the block differs from what the other system wrote");
}

/* --- Turns ------------------------------------------------------------------------------------ */

/*
 * Two numbers in shared memory: the blocks that may be read, and the blocks that may be written.
 * Each number has its own cache line.
 */
struct words {
	_Alignas(64) _Atomic int64_t full;
	_Alignas(64) _Atomic int64_t empty;
};

static struct words *words;
static stargate_sem *full, *empty;

static void words_at(char *place)
{
	char *offset = strrchr(place, ':');

	if (!offset)
		die(place, "give PATH:OFFSET");
	*offset++ = 0;
	int file = open(place, O_RDWR);

	if (file < 0)
		die(place, strerror(errno));
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		     (off_t)strtoull(offset, NULL, 10));
	if (words == MAP_FAILED)
		die(place, strerror(errno));
}

static void turns_at(char *place)
{
	if (place) {
		words_at(place);
		return;
	}
	must("handover-full", stargate_open(&full, VOLUME, "handover-full", STARGATE_SEMAPHORE, 0));
	must("handover-empty", stargate_open(&empty, VOLUME, "handover-empty", STARGATE_SEMAPHORE, 0));
}

#define LOOKS	200	/* polls before the process yields the processor */

static bool came(_Atomic int64_t *word)
{
	for (int i = 0; i < LOOKS; i++)
		if (atomic_load_explicit(word, memory_order_acquire) > 0)
			return true;
	return false;
}

static void await_word(_Atomic int64_t *word)
{
	uint64_t end = now() + 60 * SECOND;

	while (!came(word)) {
		sched_yield();
		if (now() > end)
			die("wait", "the other system made no progress for 60 s");
	}
	atomic_fetch_sub(word, 1);
}

static void await(bool writes)
{
	if (words)
		await_word(writes ? &words->empty : &words->full);
	else
		must("wait", stargate_sem_wait(writes ? empty : full, stargate_in(60 * SECOND)));
}

static void post(bool writes)
{
	if (words)
		atomic_fetch_add(writes ? &words->full : &words->empty, 1);
	else
		must("post", stargate_sem_post(writes ? full : empty));
}

int main(int argc, char **argv)
{
	bool writes = argc > 4 && !strcmp(argv[1], "write");
	size_t len = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
	uint64_t count = argc > 4 ? strtoull(argv[4], NULL, 10) : 0, start;
	char *place = NULL;
	int direct = 0;

	if (len < sizeof(uint64_t) || !count || (!writes && strcmp(argv[1], "read"))) {
		fprintf(stderr, "usage: handover write|read FILE BLOCK COUNT [direct] "
				"[turns=PATH:OFFSET]\n");
		return 2;
	}
	for (int i = 5; i < argc; i++) {
		if (!strncmp(argv[i], "turns=", 6))
			place = argv[i] + 6;
		else if (!strcmp(argv[i], "direct"))
			direct = O_DIRECT;
	}
	char *block = aligned_alloc(4096, (len + 4095) & ~4095ul);
	bool none = !strcmp(argv[2], "-");
	int file = none ? -1 : open(argv[2], O_RDWR | O_CREAT | direct, 0644);

	if (!block || (file < 0 && !none))
		die(argv[2], strerror(errno));
	memset(block, 0x5a, len);
	turns_at(place);
	start = now();
	for (uint64_t i = 0; i < count; i++) {
		await(writes);
		if (none)
			; /* the turn moves no data */
		else if (writes)
			give(file, block, len, i);
		else
			take(file, block, len, i);
		post(writes);
	}
	printf("%llu %llu\n", (unsigned long long)(len * count), (unsigned long long)(now() - start));
	return 0;
}
