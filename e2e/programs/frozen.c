// SPDX-License-Identifier: Apache-2.0
/*
 * frozen FOLDER SECONDS: one thread continuously stores into a mapped page. Another thread
 * repeatedly removes the page's page table entry, and a page fault makes a new one. At the same
 * time the program repeatedly freezes and thaws the file system. The page must not change while the
 * file system is frozen. Prints the number of freezes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define FROZEN_US	40000

static volatile unsigned long *page;
static atomic_bool enough;

static int fail(const char *what)
{
	fprintf(stderr, "frozen: %s: %s\n", what, strerror(errno));
	return 1;
}

static void *store(void *arg)
{
	(void)arg;
	while (!enough)
		++*page;
	return NULL;
}

static void *read_anew(void *arg)
{
	(void)arg;
	while (!enough) {
		madvise((void *)page, PAGE, MADV_DONTNEED);
		(void)*page;
	}
	return NULL;
}

static int freeze(int folder, int file)
{
	unsigned long first, second;
	int bad = 0;

	if (ioctl(folder, FIFREEZE, 0))
		return fail("FIFREEZE");
	if (pread(file, &first, sizeof(first), 0) != sizeof(first))
		bad = fail("pread");
	usleep(FROZEN_US);
	if (pread(file, &second, sizeof(second), 0) != sizeof(second))
		bad = fail("pread");
	if (ioctl(folder, FITHAW, 0))
		return fail("FITHAW");
	if (!bad && first != second) {
		fprintf(stderr, "frozen: the counter changed from %lu to %lu during a freeze\n", first, second);
		bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	int folder = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int file = openat(folder, "frozen", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	time_t end = time(NULL) + (argc == 3 ? atoi(argv[2]) : 0);
	pthread_t storer, reader;
	unsigned int rounds = 0;
	int bad = 0;

	if (file < 0 || ftruncate(file, PAGE))
		return fail("frozen FOLDER SECONDS");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (page == MAP_FAILED)
		return fail("mmap");
	pthread_create(&storer, NULL, store, NULL);
	pthread_create(&reader, NULL, read_anew, NULL);
	for (; !bad && time(NULL) < end; rounds++) {
		usleep(1000);
		bad = freeze(folder, file);
	}
	enough = true;
	pthread_join(storer, NULL);
	pthread_join(reader, NULL);
	printf("%u rounds\n", rounds);
	return bad;
}
