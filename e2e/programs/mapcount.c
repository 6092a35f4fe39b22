// SPDX-License-Identifier: Apache-2.0
/*
 * mapcount FILE STOP: increases the first word of FILE through a mapping, until the file STOP
 * exists.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0 || ftruncate(fd, 4096)) {
		perror("mapcount: FILE STOP");
		return 2;
	}
	volatile uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (word == MAP_FAILED) {
		perror("mapcount: mmap");
		return 1;
	}
	while (access(argv[2], F_OK))
		++*word;
	return 0;
}
