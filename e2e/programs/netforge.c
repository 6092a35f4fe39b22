// SPDX-License-Identifier: Apache-2.0
/*
 * netforge VOLUME RING MS KIND: forges a ring of the network while systems use it, as a hostile
 * member can. Kinds: `data`: the bytes of records; `words`: positions and flags. Each store goes to
 * a random place with a random value, or with a value near the old one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
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

static void forge_data(volatile unsigned char *data, uint64_t size)
{
	uint64_t at = any() % (size / 16) * 16;

	if (any() & 1)		/* the length in the head of a record */
		*(volatile uint32_t *)(data + at) = (uint32_t)any() >> (any() & 31);
	else
		data[at + any() % 16] = (unsigned char)any();
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
		if (!strcmp(argv[4], "words"))
			forge_word((uint64_t *)at);
		else
			forge_data(at + 4096, st.initial);
		if (n % 64 == 0)
			usleep(100);
	}
	printf("%llu stores\n", (unsigned long long)n);
	return 0;
}
