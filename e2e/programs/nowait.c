// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that must not wait (RWF_NOWAIT), each printed with its result.
 *
 *   nowait read|write|append FILE   one byte at 0, or at the end
 *   nowait fill FILE                one page behind the end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char page[4096];
	struct iovec vec = { page, 1 };
	const char *verb = argc == 3 ? argv[1] : "";
	struct timespec begin, end;
	struct stat st;
	ssize_t n = -1;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "nowait: read|write|append|fill FILE\n");
		return 2;
	}
	fd = open(argv[2], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[2]);
		return 1;
	}
	memset(page, 'n', sizeof(page));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!strcmp(verb, "read"))
		n = preadv2(fd, &vec, 1, 0, RWF_NOWAIT);
	else if (!strcmp(verb, "write"))
		n = pwritev2(fd, &vec, 1, 0, RWF_NOWAIT);
	else if (!strcmp(verb, "append"))
		n = pwritev2(fd, &vec, 1, 0, RWF_NOWAIT | RWF_APPEND);
	else if (!strcmp(verb, "fill")) {
		vec.iov_len = sizeof(page);
		n = pwritev2(fd, &vec, 1, (st.st_size + 4095) / 4096 * 4096, RWF_NOWAIT);
	} else {
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%s%s\n", n < 0 ? strerror(errno) : "done",
	       end.tv_sec - begin.tv_sec > 1 ? ", after a while" : "");
	return 0;
}
