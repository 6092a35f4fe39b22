// SPDX-License-Identifier: Apache-2.0
/*
 * ringcost HOW BYTES N: sends and receives N records of BYTES bytes by libstargate. HOW is:
 *   ring      one record per call
 *   single    the same, for a ring with one sender and one receiver
 *   batch     16 records per call
 *   place     the program itself writes and reads the ring's memory
 *   copies    no ring: only copies each record twice, the minimum if the records are elsewhere
 *
 * The ring is in the program's own memory, and no call enters a kernel. e2e/bench/ring counts the
 * instructions.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib.h"

#define PAGE	4096
#define SIZE	(4u << 20)

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

#define BATCH	16

static int pass_batches(struct stargate_ring *r, char *block, size_t len, long n)
{
	struct stargate_record out[BATCH], in[BATCH];
	size_t got = 0, done;
	int err = 0, i;

	for (i = 0; i < BATCH; i++)
		out[i] = (struct stargate_record){ block + i * len, len, 0, 0 };
	for (; n > 0 && !err; n -= BATCH) {
		err = stargate_ring_send_many(r, out, BATCH, &done, STARGATE_TRY);
		if (!err)
			err = stargate_ring_recv_many(r, block, BATCH * (len + 8), in, BATCH, &got,
						      STARGATE_TRY);
		if (!err && got != BATCH)
			err = EPROTO;
	}
	return err;
}

/* The program copies each record into the ring and out of it, so this includes two copies. */
static int pass_in_place(struct stargate_ring *r, char *block, size_t len, long n)
{
	const void *from;
	size_t got;
	int err = 0;
	void *to;

	for (; n && !err; n--) {
		err = stargate_ring_reserve(r, len, &to, STARGATE_TRY);
		if (err)
			break;
		copy(to, block, len);
		err = stargate_ring_commit(r, 0, len);
		if (!err)
			err = stargate_ring_peek(r, NULL, &from, &got, STARGATE_TRY);
		if (err)
			break;
		copy(block, from, got);
		err = stargate_ring_release(r);
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
	char *block = calloc(BATCH, len + 8);
	int err;

	if (!len || len > SIZE / 2 - 16 || n <= 0 || !base || !block) {
		fprintf(stderr, "Usage: ringcost ring|single|batch|place|copies BYTES N\n");
		return 2;
	}
	r.object.volume = 1;
	r.object.page = (void *)base;
	r.w = (struct sg_ring){ .page = (void *)base, .data = base + PAGE,
		.grains = SIZE / SG_RING_GRAIN, .cell = SG_SEM_CELL_FIRST,
		.single = !strcmp(argv[1], "single") };
	sgl_mine = (struct sgl_mine){ 1, SG_SEMW_ID(0, 1, 1) };
	if (!strcmp(argv[1], "copies"))
		err = copies(base + PAGE, block, len, n);
	else if (!strcmp(argv[1], "batch"))
		err = pass_batches(&r, block, len, n);
	else if (!strcmp(argv[1], "place"))
		err = pass_in_place(&r, block, len, n);
	else
		err = pass(&r, block, len, n);
	if (err)
		fprintf(stderr, "ringcost: %s\n", stargate_why(err));
	return err ? 1 : 0;
}
