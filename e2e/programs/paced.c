// SPDX-License-Identifier: Apache-2.0
/*
 * paced FILE HZ: increases a counter in the first bytes of FILE through a mapping, HZ times a
 * second, until it is killed. The program sleeps between two stores, because a program that never
 * yields takes the processor from other VMs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int hz = argc == 3 ? atoi(argv[2]) : 0;
	int fd = hz > 0 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	struct timespec pause = { .tv_nsec = hz > 0 ? 999999999 / hz : 0 };
	volatile unsigned int *count;

	if (fd < 0 || ftruncate(fd, sizeof(*count))) {
		perror("paced");
		return 1;
	}
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (;;) {
		++*count;
		nanosleep(&pause, NULL);
	}
}
