// SPDX-License-Identifier: Apache-2.0
/*
 * ringcost ring|single|copies BYTES N: sends and receives N records of BYTES bytes by libstargate.
 * Memory of its own stands for the ring. Or it copies them twice, the least that this takes.
 * e2e/bench/ring counts the instructions. No call reaches a kernel.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib.h"

#define PAGE	4096
#define SIZE	(1u << 20)

static void *(*volatile copy)(void *to, const void *from, size_t len) = memcpy;

static unsigned char *map_ring(void)
{
	int fd = memfd_create("ring", 0);
	unsigned char *base;

	if (fd < 0 || ftruncate(fd, PAGE + SIZE))
		return NULL;
	base = mmap(NULL, PAGE + 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED ||
	    mmap(base + PAGE + SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 PAGE) == MAP_FAILED)
		return NULL;
	return base;
}

static int pass(struct stargate_ring *r, char *block, size_t len, long n)
{
	size_t got;
	int err = 0;

	for (; n && !err; n--) {
		err = stargate_ring_send(r, 0, block, len, STARGATE_TRY);
		if (!err)
			err = stargate_ring_recv(r, NULL, block, len, &got, STARGATE_TRY);
	}
	return err;
}

static int copies(unsigned char *data, char *block, size_t len, long n)
{
	size_t at = 0;

	for (; n; n--) {
		copy(data + at, block, len);
		copy(block, data + at, len);
		at = (at + len + 16) & (SIZE - 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t len = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	long n = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	unsigned char *base = map_ring();
	struct stargate_ring r = { .size = SIZE };
	char *block = calloc(1, len);
	int err;

	if (!len || len > SIZE / 2 - 16 || n <= 0 || !base || !block) {
		fprintf(stderr, "Usage: ringcost ring|single|copies BYTES N\n");
		return 2;
	}
	r.object.volume = 1;
	r.object.page = (void *)base;
	r.w = (struct sg_ring){ .page = (void *)base, .data = base + PAGE,
		.grains = SIZE / SG_RING_GRAIN, .cell = SG_SEM_CELL_FIRST,
		.single = !strcmp(argv[1], "single") };
	sgl_mine = (struct sgl_mine){ 1, SG_SEMW_ID(0, 1, 1) };
	err = strcmp(argv[1], "copies") ? pass(&r, block, len, n) : copies(base + PAGE, block, len, n);
	if (err)
		fprintf(stderr, "ringcost: %s\n", stargate_why(err));
	return err ? 1 : 0;
}
