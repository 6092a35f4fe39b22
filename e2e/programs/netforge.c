// SPDX-License-Identifier: Apache-2.0
/*
 * netforge VOLUME RING MS KIND: forges a ring of the network while systems use it, as a hostile
 * member can. Kinds: `frames`: what the sender says about a packet, and the packet's headers;
 * `heads`: the heads of records; `words`: positions and flags. Each store has a random value, or a
 * value near the old one. The first two kinds store only into records that were just sent, because
 * the receiver never reads other bytes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "uapi/semctl.h"

static uint64_t state = 88172645463325252ull;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void forge_word(volatile uint64_t *page)
{
	static const unsigned int words[] = {
		SG_RING_WORD(SG_RING_TAIL), SG_RING_WORD(SG_RING_ROOM), SG_RING_HEAD,
		SG_RING_FREED, SG_RING_SENT, SG_SEM_CELL_FIRST };
	volatile uint64_t *at = page + words[any() % (sizeof(words) / sizeof(words[0]))];

	*at = any() & 1 ? any() : *at + (any() & 0xffff) - 0x8000;
}

static uint64_t tail_of(const volatile uint64_t *page)
{
	return page[SG_RING_WORD(SG_RING_TAIL)] & SG_SEMW_COUNT;
}

/* Waits for the next record. Returns its byte in the ring, or -1 after the end. */
static int64_t next_record(const volatile uint64_t *page, uint64_t size, uint64_t end)
{
	uint64_t pos = tail_of(page);

	while (tail_of(page) == pos) {
		if (now_ms() >= end)
			return -1;
		sched_yield();
	}
	return (int64_t)(pos * SG_RING_GRAIN % size);
}

/* Forges the first bytes of a record: @from to @to, the record's head included. */
static bool forge_record(volatile uint64_t *page, uint64_t size, uint64_t end, unsigned int from,
			 unsigned int to)
{
	volatile unsigned char *data = (volatile unsigned char *)page + 4096;
	int64_t at = next_record(page, size, end);

	if (at < 0)
		return false;
	data[((uint64_t)at + from + any() % (to - from)) % size] = (unsigned char)any();
	return true;
}

#define HEAD	sizeof(struct sg_ring_record)
#define FRAME	16u	/* struct sgn_frame, kernel/net/wire.h */

/* One store. False: the time is over. */
static bool forge(volatile uint64_t *page, uint64_t size, uint64_t end, const char *kind)
{
	if (!strcmp(kind, "frames"))
		return forge_record(page, size, end, HEAD, HEAD + FRAME + 20);
	if (!strcmp(kind, "heads"))
		return forge_record(page, size, end, 0, HEAD);
	forge_word(page);
	return true;
}

int main(int argc, char **argv)
{
	struct sg_ioc_sem_open o = { 0 };
	struct sg_ioc_sem_stat st = { 0 };
	unsigned char *at;
	char path[4096];
	uint64_t end, n;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "see netforge.c\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/" SG_SEM_FILE, argv[1]);
	snprintf(o.name, sizeof(o.name), "%s", argv[2]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, SG_IOC_SEM_OPEN, &o) || ioctl(fd, SG_IOC_SEM_STAT, &st)) {
		perror(argv[2]);
		return 1;
	}
	at = mmap(NULL, 4096 + st.initial, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	end = now_ms() + strtoull(argv[3], NULL, 0);
	for (n = 0; now_ms() < end; n++) {
		if (!forge((uint64_t *)at, st.initial, end, argv[4]))
			break;
		if (n % 64 == 0)
			usleep(100);
	}
	printf("%llu stores\n", (unsigned long long)n);
	return 0;
}
