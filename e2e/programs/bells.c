// SPDX-License-Identifier: Apache-2.0
/*
 * Measures how fast one system reacts to another one, and misuses a doorbell (bells.sh).
 *
 *   bells wake WHO COUNT PAUSE-MS     two systems (WHO: 0, 1) wake each other by semaphores: half
 *                                     of the time of a round. In each one, system 1 sleeps first.
 *   bells truncate FILE COUNT         the time of ftruncate(2) of a file with a page
 *   bells map FILE                    maps the file until it is killed; prints "mapped"
 *   bells storm RESOURCE ID SECONDS   rings as often as possible, by the registers of an ivshmem
 *                                     device that no driver uses: "RINGS"
 *
 * Times: "COUNT MEDIAN P99 LONGEST", ns. The semaphores bells-0 and bells-1 must exist.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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
#define MOST	10000
#define RING	12	/* offset of the register */

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "bells: %s: %s\n", what, why);
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

static uint64_t took[MOST];

static int by_size(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

static void print_times(unsigned int n)
{
	qsort(took, n, sizeof(took[0]), by_size);
	printf("%u %llu %llu %llu\n", n, (unsigned long long)took[n / 2],
	       (unsigned long long)took[n * 99 / 100], (unsigned long long)took[n - 1]);
}

static stargate_sem *named(const char *name)
{
	stargate_sem *s;

	must(name, stargate_open(&s, VOLUME, name, STARGATE_SEMAPHORE, 0));
	return s;
}

static void wake(int who, unsigned int n, unsigned int pause_ms)
{
	stargate_sem *mine = named(who ? "bells-1" : "bells-0");
	stargate_sem *other = named(who ? "bells-0" : "bells-1");
	uint64_t start;

	for (unsigned int i = 0; i < n; i++) {
		if (!who)
			usleep(pause_ms * 1000);
		start = now();
		if (!who)
			must("post", stargate_sem_post(other));
		must("wait", stargate_sem_wait(mine, stargate_in(60 * SECOND)));
		took[i] = (now() - start) / 2;
		if (who)
			must("post", stargate_sem_post(other));
	}
	if (!who)
		print_times(n);
}

static void truncate_often(const char *path, unsigned int n)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	uint64_t start;

	if (fd < 0)
		die(path, strerror(errno));
	for (unsigned int i = 0; i < n; i++) {
		if (pwrite(fd, "x", 1, 0) != 1)
			die(path, strerror(errno));
		start = now();
		if (ftruncate(fd, 0))
			die(path, strerror(errno));
		took[i] = now() - start;
	}
	print_times(n);
}

static void map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	volatile char *at;

	if (fd < 0 || pwrite(fd, "x", 1, 0) != 1)
		die(path, strerror(errno));
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		die(path, strerror(errno));
	at[0] = 'y';
	puts("mapped");
	fflush(stdout);
	for (;;)
		pause();
}

static void storm(const char *path, uint32_t id, unsigned int seconds)
{
	int fd = open(path, O_RDWR);
	uint64_t end = now() + seconds * SECOND, n = 0;
	volatile char *registers;

	if (fd < 0)
		die(path, strerror(errno));
	registers = mmap(NULL, 256, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (registers == MAP_FAILED)
		die(path, strerror(errno));
	for (; now() < end; n++)
		*(volatile uint32_t *)(registers + RING) = id << 16;
	printf("%llu\n", (unsigned long long)n);
}

static unsigned int count_of(const char *text)
{
	unsigned long n = strtoul(text, NULL, 10);

	return n && n <= MOST ? (unsigned int)n : 1;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "wake"))
		wake(atoi(argv[2]), count_of(argv[3]), (unsigned int)atoi(argv[4]));
	else if (argc == 4 && !strcmp(argv[1], "truncate"))
		truncate_often(argv[2], count_of(argv[3]));
	else if (argc == 3 && !strcmp(argv[1], "map"))
		map(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "storm"))
		storm(argv[2], (uint32_t)strtoul(argv[3], NULL, 10), (unsigned int)atoi(argv[4]));
	else
		die("usage", "see the top of bells.c");
	return 0;
}
