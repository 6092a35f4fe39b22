// SPDX-License-Identifier: Apache-2.0
/*
 * mapped FILE STOP: repeatedly stores a number into each page of FILE through a mapping, and checks
 * all numbers, until the file STOP exists. Prints the number of rounds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN	(8 << 20)
#define STEP	4096

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	volatile int *at;
	int n, i;

	if (fd < 0 || ftruncate(fd, LEN)) {
		perror("mapped");
		return 1;
	}
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (n = 1; access(argv[2], F_OK); n++) {
		for (i = 0; i < LEN / STEP; i++)
			at[i * (STEP / 4)] = n + i;
		for (i = 0; i < LEN / STEP; i++) {
			if (at[i * (STEP / 4)] == n + i)
				continue;
			printf("page %d has %d, expected %d\n", i, at[i * (STEP / 4)], n + i);
			return 1;
		}
	}
	printf("%d rounds\n", n - 1);
	return 0;
}
