// SPDX-License-Identifier: Apache-2.0
/*
 * Checks page table entries of 2 MiB in shared mappings of a file.
 *
 *   large fork FILE           prints the page faults of a child's first read, which are more than 0
 *                             if the child inherits no entry
 *   large race FILE SECONDS   threads make entries of 4 KiB and of 2 MiB at one place at the same
 *                             time, while another thread truncates and extends the file
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define LARGE	(2L << 20)
#define THREADS	2

static int fd;
static volatile char *base;	/* 2 MiB, aligned */
static atomic_uint round_no, done;
static atomic_bool enough;

static int fail(const char *what)
{
	fprintf(stderr, "large: %s: %s\n", what, strerror(errno));
	return 1;
}

static int map(void)
{
	void *p = mmap((void *)base, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);

	return p == MAP_FAILED ? fail("mmap") : 0;
}

static int begin(const char *path)
{
	char *room = mmap(NULL, 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || room == MAP_FAILED)
		return fail(path);
	errno = posix_fallocate(fd, 0, LARGE);
	if (errno)
		return fail("posix_fallocate");
	base = (char *)(((uintptr_t)room + LARGE - 1) & ~(uintptr_t)(LARGE - 1));
	return map();
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static int in_child(void)
{
	long before, after;
	int status;

	base[0] = 1;
	fflush(stdout);
	switch (fork()) {
	case -1:
		return fail("fork");
	case 0:
		faults();	/* makes this function's own memory present */
		before = faults();
		(void)base[0];
		after = faults();
		printf("%ld\n", after - before);
		fflush(stdout);
		_exit(0);
	}
	return wait(&status) < 0 || status;
}

static void *store(void *arg)
{
	size_t at = (size_t)arg * PAGE;
	unsigned int seen = 0, now;

	while (!enough) {
		now = atomic_load(&round_no);
		if (now == seen)
			continue;
		base[at]++;
		seen = now;
		atomic_fetch_add(&done, 1);
	}
	return NULL;
}

static void *cut(void *arg)
{
	(void)arg;
	while (!enough)
		if (ftruncate(fd, LARGE - PAGE) || ftruncate(fd, LARGE) ||
		    pwrite(fd, "x", 1, LARGE - 1) != 1)
			exit(fail("ftruncate, pwrite"));
	return NULL;
}

static int race(int seconds)
{
	time_t end = time(NULL) + seconds;
	pthread_t threads[THREADS + 1];
	unsigned int rounds = 0;

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, store, (void *)i);
	pthread_create(&threads[THREADS], NULL, cut, NULL);
	for (; time(NULL) < end; rounds++) {
		atomic_store(&done, 0);
		if (map())
			return 1;
		atomic_fetch_add(&round_no, 1);
		while (atomic_load(&done) < THREADS)
			;
	}
	enough = true;
	for (size_t i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%u rounds\n", rounds);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";

	if (argc < 3) {
		fprintf(stderr, "large: fork FILE | race FILE SECONDS\n");
		return 2;
	}
	if (begin(argv[2]))
		return 1;
	if (!strcmp(verb, "fork"))
		return in_child();
	if (!strcmp(verb, "race") && argc == 4)
		return race(atoi(argv[3]));
	return 2;
}
