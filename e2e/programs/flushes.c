// SPDX-License-Identifier: Apache-2.0
/*
 * flushes FILE PAGE GO: maps FILE, and stores to that page of it. Once GO exists, it calls fsync(),
 * then stores to the first page, and calls fsync() again.
 */
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

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;
	volatile char *at;
	struct stat st;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fd < 0 || fstat(fd, &st))
		return failed("flushes FILE PAGE GO");
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return failed("mmap");
	at[atol(argv[2]) * PAGE] = 1;
	printf("stored\n");
	while (access(argv[3], F_OK))
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
