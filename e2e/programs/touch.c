// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions of the first access to every page of a mapped file.
 *
 *   touch make FILE MIB             makes a file of that size, and writes 1 MiB per call
 *   touch read|write FILE MIB       maps FILE, accesses each page of 4 KiB once, and prints "PAGES
 *                                   INSTRUCTIONS", the instructions of all accesses
 *   touch read-4k|write-4k ...      the same, but at an address that is no multiple of 2 MiB, so
 *                                   that the kernel cannot use large pages
 *
 * The program runs the loop a second time, when all pages are present, and subtracts that cost.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "count.h"

#define PAGE	4096ul
#define MIB	(1ul << 20)
#define HUGE	(2 * MIB)

static int file;

static void make(size_t len)
{
	static char data[MIB];

	memset(data, 0x5a, sizeof(data));
	for (size_t at = 0; at < len; at += MIB)
		if (pwrite(file, data, MIB, (off_t)at) != (ssize_t)MIB)
			die("write");
	if (fsync(file))
		die("fsync");
}

static uint64_t touch(volatile char *p, size_t len, bool store)
{
	uint64_t start = counter();

	for (size_t at = 0; at < len; at += PAGE) {
		if (store)
			p[at] = 1;
		else
			(void)p[at];
	}
	return counter() - start;
}

static char *map(size_t len, bool store, bool small)
{
	char *room = mmap(NULL, len + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1)) + (small ? PAGE : 0);

	if (room == MAP_FAILED)
		die("room");
	at = mmap(at, len, store ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED,
		  file, 0);
	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

int main(int argc, char **argv)
{
	size_t len = argc == 4 ? strtoul(argv[3], NULL, 10) * MIB : 0;
	bool making = argc == 4 && !strcmp(argv[1], "make");
	bool store = argc == 4 && !strncmp(argv[1], "write", 5);
	bool small = argc == 4 && strstr(argv[1], "-4k");

	if (!len || (!making && !store && strncmp(argv[1], "read", 4))) {
		fprintf(stderr, "usage: touch make|read|write|read-4k|write-4k FILE MIB\n");
		return 2;
	}
	file = open(argv[2], O_RDWR | (making ? O_CREAT | O_TRUNC : 0), 0600);
	if (file < 0)
		die(argv[2]);
	if (making) {
		make(len);
		return 0;
	}
	must_count();
	char *p = map(len, store, small);

	settle();
	uint64_t first = touch(p, len, store), again = touch(p, len, store);

	printf("%zu %llu\n", len / PAGE, (unsigned long long)(first > again ? first - again : 0));
	return 0;
}
