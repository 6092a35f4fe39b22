// SPDX-License-Identifier: Apache-2.0
/*
 * Adds 1 to the first word of each page of a mapped file, again and again, until STOP exists. If a
 * word differs from its last stored count, another program has overwritten it, and tally fails.
 *
 *   tally FILE STOP
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static int fail(const char *what)
{
	fprintf(stderr, "tally: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	uint64_t round, page;
	volatile char *mem;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return fail(argc == 3 ? argv[1] : "FILE STOP");
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return fail("mmap");
	for (page = 0; page < (uint64_t)st.st_size / PAGE; page++)
		*(volatile uint64_t *)(mem + page * PAGE) = 0;
	for (round = 0; access(argv[2], F_OK); round++)
		for (page = 0; page < (uint64_t)st.st_size / PAGE; page++) {
			volatile uint64_t *count = (volatile uint64_t *)(mem + page * PAGE);

			if (*count != round) {
				fprintf(stderr, "tally: page %llu has %llu, but must have %llu\n",
					(unsigned long long)page, (unsigned long long)*count,
					(unsigned long long)round);
				return 1;
			}
			*count = round + 1;
		}
	printf("%llu\n", (unsigned long long)round);
	return 0;
}
