// SPDX-License-Identifier: Apache-2.0
/*
 * Makes a call that must not wait (RWF_NOWAIT), and prints its result: also whether the thread has
 * slept during the call, and whether the call took a second.
 *
 *   nowait read|write FILE [GO]   reads or writes the first byte
 *   nowait append FILE [GO]       appends one byte
 *   nowait fill FILE [GO]         writes one page behind the end
 *   nowait submit FILE GO         submits a read of the first byte by io_uring, and does not wait
 *                                 for its end
 *
 * The program opens the file immediately, and makes the call when GO exists.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void wait_for(const char *go)
{
	printf("open\n");
	fflush(stdout);
	while (access(go, F_OK))
		usleep(10000);
}

/* Returns the number of submitted requests. */
static long submit(int fd, void *buf)
{
	struct io_uring_params p = { 0 };
	struct io_uring_sqe *sqe;
	uint32_t *tail, *array;
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
	char *at;

	if (ring < 0)
		return -1;
	at = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	if (at == MAP_FAILED || sqe == MAP_FAILED)
		return -1;
	*sqe = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)buf,
		.len = 1 };
	tail = (uint32_t *)(at + p.sq_off.tail);
	array = (uint32_t *)(at + p.sq_off.array);
	array[*tail & (p.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0);
}

/* Returns how often this thread has slept so far. */
static long sleeps(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? -1 : u.ru_nvcsw;
}

int main(int argc, char **argv)
{
	static char page[4096];
	struct iovec vec = { page, 1 };
	const char *verb = argc >= 3 ? argv[1] : "";
	struct timespec begin, end;
	struct stat st;
	bool only_submits = !strcmp(verb, "submit");
	ssize_t n = -1;
	long slept;
	int fd;

	if (argc != 4 && (argc != 3 || only_submits)) {
		fprintf(stderr, "nowait: read|write|append|fill FILE [GO] | submit FILE GO\n");
		return 2;
	}
	fd = open(argv[2], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[2]);
		return 1;
	}
	memset(page, 'n', sizeof(page));
	if (argc == 4)
		wait_for(argv[3]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	slept = sleeps();
	if (!strcmp(verb, "read"))
		n = preadv2(fd, &vec, 1, 0, RWF_NOWAIT);
	else if (!strcmp(verb, "write"))
		n = pwritev2(fd, &vec, 1, 0, RWF_NOWAIT);
	else if (only_submits)
		n = submit(fd, page);
	else if (!strcmp(verb, "append"))
		n = pwritev2(fd, &vec, 1, 0, RWF_NOWAIT | RWF_APPEND);
	else if (!strcmp(verb, "fill")) {
		vec.iov_len = sizeof(page);
		n = pwritev2(fd, &vec, 1, (st.st_size + 4095) / 4096 * 4096, RWF_NOWAIT);
	} else {
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	slept = only_submits ? 0 : sleeps() - slept;	/* io_uring makes a thread */
	printf("%s%s%s\n", n < 0 ? strerror(errno) : "done", slept ? ", after a sleep" : "",
	       end.tv_sec - begin.tv_sec > 1 ? ", after a while" : "");
	fflush(stdout);
	_exit(0);	/* the submitted request may still wait */
}
