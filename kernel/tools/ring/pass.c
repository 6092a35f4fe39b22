// SPDX-License-Identifier: Apache-2.0
/* Commands that send and receive records. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
		err = stargate_ring_send(r, (uint32_t)c->tag, line, (size_t)len, c->o.until);
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
		err = stargate_ring_send(r, (uint32_t)c->tag, block, len, c->o.until);
	free(block);
	return err;
}

int cmd_send(struct call *c)
{
	stargate_ring *r;
	int err = stargate_ring_open(&r, c->o.volume, c->o.name), status = 0;

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

/*
 * Waits for a record, or for the end of the process that reads the output. So `recv | head` ends
 * when head ends, even if no more records arrive.
 */
static int await(struct call *c, stargate_ring *r)
{
	struct pollfd fds[] = {
		{ .fd = stargate_ring_fd(r), .events = POLLIN }, { .fd = STDOUT_FILENO },
	};
	uint64_t now = stargate_in(0), ms = 60000;

	if (c->o.until != STARGATE_FOREVER)
		ms = c->o.until > now ? (c->o.until - now) / 1000000 + 1 : 0;
	if (poll(fds, 2, ms < 60000 ? (int)ms : 60000) < 0)
		return errno;
	if (fds[1].revents & (POLLERR | POLLHUP)) {
		errno = EPIPE;
		return EPIPE;
	}
	return fds[0].revents & (POLLERR | POLLHUP) ? EIO : 0;
}

static int print_one(struct call *c, stargate_ring *r)
{
	const void *at;
	uint32_t tag;
	size_t len;
	int err;

	/* another receiver may take the record first, which gives EAGAIN again */
	while ((err = stargate_ring_peek(r, &tag, &at, &len, STARGATE_TRY))) {
		if (err != EAGAIN || !c->o.until)
			return err;
		if (stargate_in(0) >= c->o.until)
			return ETIMEDOUT;
		err = await(c, r);
		if (err)
			return err;
	}
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
	int err = stargate_ring_open(&r, c->o.volume, c->o.name);

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
