// SPDX-License-Identifier: Apache-2.0
/*
 * oneobject FOLDER SECONDS: some threads request to receive from a ring, and other threads request
 * an object. All threads use one descriptor. At the same time the program repeatedly freezes and
 * thaws the file system. Each freeze must end within LIMIT_S. Prints the number of freezes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "../../kernel/core/uapi/semctl.h"

#define THREADS	4	/* threads of each kind */
#define LIMIT_S	20

static int object;
static atomic_bool enough;

static int fail(const char *what)
{
	fprintf(stderr, "oneobject: %s: %s\n", what, strerror(errno));
	return 1;
}

static void *ask_to_receive(void *arg)
{
	struct sg_ioc_sem_op op;

	(void)arg;
	while (!enough) {
		op = (struct sg_ioc_sem_op){ .op = SG_SEM_OP_READER, .until = SG_SEM_FOREVER };
		if (ioctl(object, SG_IOC_SEM_OP, &op))
			_exit(fail("READER"));
	}
	return NULL;
}

static void *ask_for_object(void *arg)
{
	struct sg_ioc_sem_open again;

	(void)arg;
	while (!enough) {
		again = (struct sg_ioc_sem_open){ .name = "other" };
		if (!ioctl(object, SG_IOC_SEM_OPEN, &again) || errno != EBUSY)
			_exit(fail("a second object"));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int folder = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct sg_ioc_sem_open ring = {
		.name = "oneobject", .type = SG_SEM_RING, .how = SG_SEM_CREATE, .flags = SG_SEM_MAPPED,
		.life = 1, .mode = 0600, .initial = SG_RING_MIN,
	};
	time_t end = time(NULL) + (argc == 3 ? atoi(argv[2]) : 0);
	pthread_t thread[2 * THREADS];
	unsigned int rounds, i;

	object = openat(folder, SG_SEM_FILE, O_RDWR | O_CLOEXEC);
	if (object < 0 || ioctl(object, SG_IOC_SEM_OPEN, &ring))
		return fail("oneobject FOLDER SECONDS");
	for (i = 0; i < 2 * THREADS; i++)
		pthread_create(&thread[i], NULL, i % 2 ? ask_for_object : ask_to_receive, NULL);
	for (rounds = 0; time(NULL) < end; rounds++) {
		usleep(1000);
		alarm(LIMIT_S);	/* waiting threads run no signal handler, but can be killed */
		if (ioctl(folder, FIFREEZE, 0) || ioctl(folder, FITHAW, 0))
			return fail("FIFREEZE, FITHAW");
		alarm(0);
	}
	enough = true;
	for (i = 0; i < 2 * THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%u freezes\n", rounds);
	return 0;
}
