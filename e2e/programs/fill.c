// SPDX-License-Identifier: Apache-2.0
/*
 * Requests space until the volume is full.
 *
 *   fill large|small|directories|append|allocate DIR     prints the number of successful requests
 *
 * The program fails if the last error is not ENOSPC, or if a file's size is not the number of bytes
 * that were written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE (3u << 20)

static char buffer[LARGE];

/* Writes @len bytes to a file. The file's size must not include bytes that did not fit. */
static int write_file(const char *name, int flags, size_t len)
{
	struct stat before, after;
	ssize_t n = 0, done = 0;
	int fd = open(name, O_WRONLY | flags, 0600), err;

	if (fd < 0 || fstat(fd, &before))
		return -1;
	while ((size_t)done < len && (n = write(fd, buffer, len - done)) > 0)
		done += n;
	err = errno;
	if (fstat(fd, &after) || after.st_size != before.st_size + done) {
		printf("fill: %s has %lld bytes after %zd were written to its %lld\n", name,
		       (long long)after.st_size, done, (long long)before.st_size);
		exit(1);
	}
	close(fd);
	errno = err;
	return n < 0 ? -1 : 0;
}

static int once(const char *kind, unsigned long n)
{
	char name[64];
	int fd, answer;

	snprintf(name, sizeof(name), "%s-%lu", kind, n);
	if (!strcmp(kind, "large"))
		return write_file(name, O_CREAT | O_EXCL, LARGE);
	if (!strcmp(kind, "small"))
		return write_file(name, O_CREAT | O_EXCL, 2);
	if (!strcmp(kind, "append"))
		return write_file("appended", O_CREAT | O_APPEND, 100000);
	if (!strcmp(kind, "directories"))
		return mkdir(name, 0700) || chdir(name) || write_file("inside", O_CREAT, 0) ||
		       (n % 50 && chdir("..")) ? -1 : 0;
	if (strcmp(kind, "allocate")) {
		fprintf(stderr, "fill: unknown kind %s\n", kind);
		exit(2);
	}
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -1;
	answer = posix_fallocate(fd, 0, 2500000);
	close(fd);
	errno = answer;
	return answer ? -1 : 0;
}

int main(int argc, char **argv)
{
	unsigned long n = 0;

	if (argc != 3 || chdir(argv[2])) {
		perror("fill: KIND DIR");
		return 2;
	}
	memset(buffer, 0x5a, sizeof(buffer));
	while (!once(argv[1], n + 1))
		n++;
	if (errno != ENOSPC) {
		printf("fill: %s number %lu: %s\n", argv[1], n + 1, strerror(errno));
		return 1;
	}
	printf("%lu\n", n);
	return n == 0;
}
