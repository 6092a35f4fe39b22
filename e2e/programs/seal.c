// SPDX-License-Identifier: Apache-2.0
/*
 * seal refuses FILE: checks that no call can change the content or the size of the sealed FILE.
 * seal maps FILE SECONDS: maps FILE writably, closes it, stores, and keeps the mapping for SECONDS.
 * seal reads FILE SECONDS: maps FILE for reading, and checks for SECONDS that no byte changes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "seal: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void is_refused(const char *what, int ret, int with)
{
	if (ret >= 0) {
		fprintf(stderr, "seal: the kernel does not refuse %s\n", what);
		exit(1);
	}
	if (errno != with)
		fail(what);
}

static int refuses(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *p;

	if (fd < 0)
		fail(path);
	is_refused("open O_WRONLY", open(path, O_WRONLY), EPERM);
	is_refused("open O_RDWR", open(path, O_RDWR), EPERM);
	is_refused("open O_APPEND", open(path, O_WRONLY | O_APPEND), EPERM);
	is_refused("open O_TRUNC", open(path, O_WRONLY | O_TRUNC), EPERM);
	is_refused("open O_RDONLY | O_TRUNC", open(path, O_RDONLY | O_TRUNC), EPERM);
	is_refused("open O_CREAT", open(path, O_WRONLY | O_CREAT, 0600), EPERM);
	is_refused("truncate", truncate(path, 10), EPERM);
	is_refused("truncate to a larger size", truncate(path, 1 << 30), EPERM);
	is_refused("write", (int)write(fd, "x", 1), EBADF);
	is_refused("fallocate", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
		   EBADF);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	is_refused("mmap", p == MAP_FAILED ? -1 : 0, EACCES);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		fail("mmap for reading");
	is_refused("mprotect", mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
	/* The program may change a private copy. */
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		fail("mmap of a private copy");
	*(volatile char *)p += 1;
	return 0;
}

static char *map(const char *path, int flags, int prot, size_t *len)
{
	int fd = open(path, flags);
	struct stat st;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	*len = (size_t)st.st_size;
	p = mmap(NULL, *len, prot, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	close(fd);
	return p;
}

static int maps(const char *path, unsigned int seconds)
{
	size_t len;
	volatile char *p = map(path, O_RDWR, PROT_READ | PROT_WRITE, &len);

	*p += 1;
	puts("mapped");
	fflush(stdout);
	sleep(seconds);
	return 0;
}

static int reads(const char *path, unsigned int seconds)
{
	size_t len;
	char *p = map(path, O_RDONLY, PROT_READ, &len), *was = malloc(len);
	time_t end = time(NULL) + seconds;

	if (!was)
		fail("malloc");
	memcpy(was, p, len);
	puts("mapped");
	fflush(stdout);
	while (time(NULL) < end)
		if (memcmp(p, was, len)) {
			fprintf(stderr, "seal: bytes of %s have changed\n", path);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "refuses"))
		return refuses(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "maps"))
		return maps(argv[2], (unsigned int)atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "reads"))
		return reads(argv[2], (unsigned int)atoi(argv[3]));
	fprintf(stderr, "Usage: seal refuses FILE | maps FILE SECONDS | reads FILE SECONDS\n");
	return 2;
}
