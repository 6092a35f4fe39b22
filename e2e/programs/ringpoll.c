// SPDX-License-Identifier: Apache-2.0
/*
 * ringpoll VOLUME RING HOW: waits for a ring by poll, epoll or io_uring. HOW is:
 *
 *   poll, epoll, uring	waits for a record, receives it, and prints it and the time of the wait
 *   room		waits by poll until half of the ring is free; prints the time of the wait
 *   frozen FILE	opens the ring, and waits until FILE exists; then the first receive must
 *			time out, and the second receive must succeed
 *   edge N		receives N records by epoll with edge-triggered events
 *   multishot N	receives N records by one request of io_uring
 *   many N		receives N records by one epoll for N descriptors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "stargate.h"

#define LIMIT_MS	20000

static void fail(const char *what, int err)
{
	fprintf(stderr, "ringpoll: %s: %s\n", what, stargate_why(err));
	exit(1);
}

static void by_poll(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n = poll(&p, 1, LIMIT_MS);

	if (n != 1 || p.revents != events)
		fail("poll", n < 0 ? errno : ETIMEDOUT);
}

static void by_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) || epoll_wait(ep, &e, 1, LIMIT_MS) != 1)
		fail("epoll", errno);
	close(ep);
}

/* One request to io_uring, without a library. */
struct uring {
	int fd;
	struct io_uring_params p;
	unsigned char *sq, *cq;
};

static void uring_begin(struct uring *u, int fd, unsigned int flags)
{
	struct io_uring_params *p = &u->p;
	struct io_uring_sqe *sqe;
	unsigned int *tail;

	memset(u, 0, sizeof(*u));
	p->flags = IORING_SETUP_CQSIZE;
	p->cq_entries = 64;
	u->fd = (int)syscall(SYS_io_uring_setup, 1, p);
	if (u->fd < 0)
		fail("io_uring_setup", errno);
	u->sq = mmap(NULL, p->sq_off.array + 4 * p->sq_entries, PROT_READ | PROT_WRITE, MAP_SHARED,
		     u->fd, IORING_OFF_SQ_RING);
	u->cq = mmap(NULL, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p->sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
		   IORING_OFF_SQES);
	if (u->sq == MAP_FAILED || u->cq == MAP_FAILED || (void *)sqe == MAP_FAILED)
		fail("io_uring", errno);
	*sqe = (struct io_uring_sqe){ .opcode = IORING_OP_POLL_ADD, .fd = fd, .len = flags,
		.poll32_events = POLLIN };
	*(unsigned int *)(u->sq + p->sq_off.array) = 0;
	tail = (void *)(u->sq + p->sq_off.tail);
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, u->fd, 1, 0, 0, NULL, 0) != 1)
		fail("io_uring_enter", errno);
}

/* Waits for the next completion, and returns its flags. The completion must report a record. */
static unsigned int uring_next(struct uring *u)
{
	unsigned int *head = (void *)(u->cq + u->p.cq_off.head), flags;
	unsigned int *tail = (void *)(u->cq + u->p.cq_off.tail);
	struct io_uring_cqe *cqe = (void *)(u->cq + u->p.cq_off.cqes);

	alarm(LIMIT_MS / 1000);
	while (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			fail("io_uring_enter", errno);
	alarm(0);
	cqe += *head & (u->p.cq_entries - 1);
	if (cqe->res != POLLIN)
		fail("io_uring", EPROTO);
	flags = cqe->flags;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return flags;
}

static void by_uring(int fd)
{
	struct uring u;

	uring_begin(&u, fd, 0);
	uring_next(&u);
	close(u.fd);
}

static void by_many(const char *volume, const char *name, unsigned int n)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned int i, got = 0;
	int ep = epoll_create1(0);
	stargate_ring *r[64];
	char buf[100];
	size_t len;
	int err;

	for (i = 0; i < n && i < 64; i++) {
		err = stargate_ring_open(&r[i], volume, name);
		e.data.u32 = i;
		if (err || epoll_ctl(ep, EPOLL_CTL_ADD, stargate_ring_fd(r[i]), &e))
			fail(name, err ? err : errno);
	}
	while (got < n) {
		if (epoll_wait(ep, &e, 1, LIMIT_MS) != 1)
			fail("epoll", ETIMEDOUT);
		err = stargate_ring_recv(r[e.data.u32], NULL, buf, sizeof(buf), &len, STARGATE_TRY);
		if (err && err != EAGAIN)
			fail(name, err);
		got += !err;
	}
	printf("%u records\n", got);
}

static unsigned int take_all(stargate_ring *r)
{
	unsigned int got = 0;
	char buf[100];
	size_t len;
	int err;

	while (!(err = stargate_ring_recv(r, NULL, buf, sizeof(buf), &len, STARGATE_TRY)))
		got++;
	if (err != EAGAIN)
		fail("a receive", err);
	return got;
}

/* An edge-triggered event comes only once, so each event makes this receive all records. */
static void by_edge(stargate_ring *r, unsigned int n)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0);
	unsigned int got = 0;

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, stargate_ring_fd(r), &e))
		fail("epoll", errno);
	while (got < n) {
		if (epoll_wait(ep, &e, 1, LIMIT_MS) != 1)
			fail("epoll", ETIMEDOUT);
		got += take_all(r);
	}
	printf("%u records\n", got);
}

/* The request stays active, and completes once for each event. */
static void by_multishot(stargate_ring *r, unsigned int n)
{
	unsigned int got = 0;
	struct uring u;

	uring_begin(&u, stargate_ring_fd(r), IORING_POLL_ADD_MULTI);
	while (got < n) {
		if (!(uring_next(&u) & IORING_CQE_F_MORE))
			fail("the request has ended too early", EPROTO);
		got += take_all(r);
	}
	close(u.fd);
	printf("%u records\n", got);
}

static void by_frozen(stargate_ring *r, const char *path)
{
	char buf[100];
	size_t len;
	int err;

	printf("open\n");
	fflush(stdout);
	while (access(path, F_OK))
		usleep(10000);
	err = stargate_ring_recv(r, NULL, buf, sizeof(buf), &len, stargate_in(300000000));
	if (err != ETIMEDOUT)
		fail("a receive in the frozen volume", err);
	printf("timed out\n");
	fflush(stdout);
	err = stargate_ring_recv(r, NULL, buf, sizeof(buf), &len,
				 stargate_in(LIMIT_MS * 1000000ULL));
	if (err)
		fail("a receive", err);
	printf("%.*s\n", (int)len, buf);
}

int main(int argc, char **argv)
{
	stargate_ring *r;
	char buf[4096];
	uint64_t begun;
	size_t len;
	int err;

	if (argc < 4) {
		fprintf(stderr,
			"Usage: ringpoll VOLUME RING poll|epoll|uring|room\n"
			"                            |edge N|multishot N|frozen FILE|many N\n");
		return 2;
	}
	if (!strcmp(argv[3], "many") && argc == 5) {
		by_many(argv[1], argv[2], (unsigned int)atoi(argv[4]));
		return 0;
	}
	err = stargate_ring_open(&r, argv[1], argv[2]);
	if (err)
		fail(argv[2], err);
	if (!strcmp(argv[3], "frozen") && argc == 5) {
		by_frozen(r, argv[4]);
		return 0;
	}
	if (!strcmp(argv[3], "edge") && argc == 5) {
		by_edge(r, (unsigned int)atoi(argv[4]));
		return 0;
	}
	if (!strcmp(argv[3], "multishot") && argc == 5) {
		by_multishot(r, (unsigned int)atoi(argv[4]));
		return 0;
	}
	begun = stargate_in(0);
	if (!strcmp(argv[3], "poll"))
		by_poll(stargate_ring_fd(r), POLLIN);
	else if (!strcmp(argv[3], "epoll"))
		by_epoll(stargate_ring_fd(r));
	else if (!strcmp(argv[3], "uring"))
		by_uring(stargate_ring_fd(r));
	else if (!strcmp(argv[3], "room"))
		by_poll(stargate_ring_fd(r), POLLOUT);
	fprintf(stderr, "%.1f ms\n", (double)(stargate_in(0) - begun) / 1e6);
	if (!strcmp(argv[3], "room"))
		return 0;
	err = stargate_ring_recv(r, NULL, buf, sizeof(buf), &len, STARGATE_TRY);
	if (err)
		fail(argv[2], err);
	printf("%.*s\n", (int)len, buf);
	return 0;
}
