// SPDX-License-Identifier: Apache-2.0
/* Commands that send and receive records. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tool.h"
#include "ring.h"

/* --- send ------------------------------------------------------------------------------------- */

static int send_lines(struct call *c, stargate_ring *r)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	while (!err && (len = getline(&line, &room, stdin)) > 0) {
		len -= line[len - 1] == '\n';
		err = stargate_ring_send(r, (uint32_t)c->tag, line, (size_t)len, c->until);
	}
	free(line);
	return err;
}

static int send_blocks(struct call *c, stargate_ring *r)
{
	char *block = malloc(c->block);
	size_t len;
	int err = 0;

	if (!block)
		return ENOMEM;
	while (!err && (len = fread(block, 1, c->block, stdin)) > 0)
		err = stargate_ring_send(r, (uint32_t)c->tag, block, len, c->until);
	free(block);
	return err;
}

int cmd_send(struct call *c)
{
	stargate_ring *r;
	int err = stargate_ring_open(&r, c->volume, c->name), status = 0;

	if (err)
		return trouble(c, err);
	err = c->block ? send_blocks(c, r) : send_lines(c, r);
	if (err)
		status = trouble(c, err);
	else if (ferror(stdin))
		status = (tool_error("standard input cannot be read"), 1);
	stargate_ring_close(r);
	return status;
}

/* --- recv ------------------------------------------------------------------------------------- */

static int print_one(struct call *c, stargate_ring *r)
{
	const void *at;
	uint32_t tag;
	size_t len;
	int err = stargate_ring_peek(r, &tag, &at, &len, c->until);

	if (err)
		return err;
	if (c->tags)
		printf("%u ", tag);
	fwrite(at, 1, len, stdout);
	if (!c->raw)
		putchar('\n');
	if (fflush(stdout))
		err = EPIPE;
	stargate_ring_release(r);
	return err;
}

int cmd_recv(struct call *c)
{
	stargate_ring *r;
	uint64_t n = 0;
	int err = stargate_ring_open(&r, c->volume, c->name);

	if (err)
		return trouble(c, err);
	while (!err && (!c->count || n < c->count)) {
		err = print_one(c, r);
		n += !err;
	}
	stargate_ring_close(r);
	if (err == EPIPE)
		return tool_output_error() ? 1 : 0;
	return err ? trouble(c, err) : 0;
}
