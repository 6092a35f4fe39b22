// SPDX-License-Identifier: Apache-2.0
/*
 * bindtwice FILE: two processes share one descriptor of FILE, which is .stargate/semaphores. Each
 * process prints its process number, and then binds an object to the descriptor. The second process
 * does this half a second after the first one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../kernel/core/uapi/semctl.h"

int main(int argc, char **argv)
{
	struct sg_ioc_sem_open o = {
		.name = "bound", .type = SG_SEM_MUTEX, .how = SG_SEM_CREATE | SG_SEM_BY_KERNEL,
		.mode = 0600,
	};
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
	pid_t child;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fd < 0) {
		perror("bindtwice FILE");
		return 2;
	}
	child = fork();
	if (child < 0)
		return 1;
	if (!child)
		usleep(500000);
	printf("%s %d\n", child ? "first" : "second", (int)getpid());
	printf("%s: %s\n", child ? "first" : "second",
	       ioctl(fd, SG_IOC_SEM_OPEN, &o) ? strerror(errno) : "bound");
	return 0;
}
