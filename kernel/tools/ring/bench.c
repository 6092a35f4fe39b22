// SPDX-License-Identifier: Apache-2.0
/*
 * bench: the cost of a record that one process sends and receives, beside that of the two copies
 * that this takes at least. The clock of a VM with an instruction counter (-icount) makes it the
 * number of instructions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tool.h"
#include "ring.h"

#define RING	(1u << 20)

static void *(*volatile copy)(void *to, const void *from, size_t len) = memcpy;

static int rounds(stargate_ring *r, char *block, size_t len, uint64_t n, double *ns)
{
	uint64_t i, begun = stargate_in(0);
	size_t got;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		err = stargate_ring_send(r, 0, block, len, STARGATE_TRY);
		if (!err)
			err = stargate_ring_recv(r, NULL, block, len, &got, STARGATE_TRY);
	}
	*ns = (double)(stargate_in(0) - begun) / (double)n;
	return err;
}

static double copies(char *room, char *block, size_t len, uint64_t n)
{
	uint64_t i, at = 0, begun = stargate_in(0);

	for (i = 0; i < n; i++) {
		copy(room + at, block, len);
		copy(block, room + at, len);
		at = (at + len + 16) & (RING - 1);
	}
	return (double)(stargate_in(0) - begun) / (double)n;
}

static int one(struct call *c, stargate_ring *r, struct json *j, size_t len)
{
	uint64_t n = c->count ? c->count : len > 16384 ? 2000 : 20000;
	char *room = calloc(1, 2 * RING), *block = calloc(1, len);
	double ring = 0, plain = 0;
	int err = room && block ? 0 : ENOMEM;

	if (!err)	/* all pages are there before anything is measured */
		err = rounds(r, block, len, RING / len + 16, &ring);
	if (!err)
		err = rounds(r, block, len, n, &ring);
	if (!err) {
		copies(room, block, len, RING / len + 16);
		plain = copies(room, block, len, n);
	}
	free(room);
	free(block);
	if (err)
		return err;
	if (!c->json) {
		printf("%8zu  %10.1f  %10.1f  %8.2f\n", len, ring, plain, ring / plain);
		return 0;
	}
	json_row(j, NULL);
	json_u64(j, "bytes", len);
	json_u64(j, "ring_ps", (u64)(ring * 1000));
	json_u64(j, "copies_ps", (u64)(plain * 1000));
	json_close(j, '}');
	return 0;
}

int cmd_bench(struct call *c)
{
	const struct stargate_new what = { .type = STARGATE_RING, .flags = STARGATE_LAST_USER,
		.mode = 0600, .initial = RING };
	static const size_t sizes[] = { 64, 4096, 65536 };
	char name[64];
	stargate_ring *r;
	struct json j;
	unsigned int i;
	int err;

	if (c->block > RING / 2 - 16)
		return tool_usage_error("bench: --block: at most %u", RING / 2 - 16);
	snprintf(name, sizeof(name), "stargate-ring bench %d", (int)getpid());
	err = stargate_ring_create(&r, c->volume, name, &what, STARGATE_EXCLUSIVE);
	if (err)
		return trouble(c, err);
	if (c->json) {
		json_begin(&j, stdout, false);
		json_array(&j, "records");
	} else {
		printf("%8s  %10s  %10s  %8s\n", "bytes", "ring, ns", "copies, ns", "ratio");
	}
	if (c->block)
		err = one(c, r, &j, c->block);
	for (i = 0; i < 3 && !c->block && !err; i++)
		err = one(c, r, &j, sizes[i]);
	if (c->json) {
		json_close(&j, ']');
		json_end(&j);
	}
	stargate_ring_close(r);
	return err ? trouble(c, err) : 0;
}
