// SPDX-License-Identifier: Apache-2.0
/*
 *   flushes store FILE PAGE GO
 *	maps FILE, and stores to page PAGE. When GO exists, it calls fsync(), stores to the first
 *	page, and calls fsync() a second time
 *   flushes collapse|insert FILE BYTES
 *	collapses or inserts a range of BYTES at the start of FILE. The program fallocate(1) is not
 *	used, because it calls fsync() afterwards
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096

static int failed(const char *what)
{
	perror(what);
	return 1;
}

static int store(int fd, long page, const char *go)
{
	volatile char *at;
	struct stat st;

	if (fstat(fd, &st))
		return failed("fstat");
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return failed("mmap");
	at[page * PAGE] = 1;
	printf("stored\n");
	while (access(go, F_OK))
		usleep(10000);
	if (fsync(fd))
		return failed("fsync");
	printf("synced\n");
	at[0] = 1;
	if (fsync(fd))
		return failed("fsync");
	printf("again\n");
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc >= 4 ? open(argv[2], O_RDWR) : -1, mode;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fd < 0)
		return failed("flushes store FILE PAGE GO | flushes collapse|insert FILE BYTES");
	if (argc == 5)
		return store(fd, atol(argv[3]), argv[4]);
	mode = strcmp(argv[1], "insert") ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE;
	return fallocate(fd, mode, 0, atol(argv[3])) ? failed(argv[1]) : 0;
}
