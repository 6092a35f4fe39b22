// SPDX-License-Identifier: Apache-2.0
/*
 * pipe, listen, dial: connects two processes of any systems in both directions by a stream. With
 * pipe, either process may start first. Programs in other languages may dial a listener, and listen
 * for a dialer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "tool.h"
#include "ring.h"

#define BLOCK	65536

static void *send_all(void *arg)
{
	stargate_stream *s = arg;
	char *block = malloc(BLOCK);
	int err = block ? 0 : ENOMEM;
	size_t done, at;
	ssize_t len = 0;

	while (!err && (len = read(STDIN_FILENO, block, BLOCK)) > 0) {
		at = 0;
		do {
			err = stargate_write(s, block + at, (size_t)len - at, &done,
					     STARGATE_FOREVER);
			at += done;
		} while (err == EINTR);
	}
	while (!err && (err = stargate_shut(s, STARGATE_FOREVER)) == EINTR)
		err = 0;
	free(block);
	/* the other end has died, which the receiver reports */
	return (void *)(intptr_t)(err == EPIPE ? 0 : err);
}

/* Prints all received bytes. Returns EPIPE if the reader of standard output has ended. */
static int print_all(stargate_stream *s)
{
	char *block = malloc(BLOCK);
	int err = block ? 0 : ENOMEM;
	size_t len = 1;

	while (!err && len) {
		err = stargate_read(s, block, BLOCK, &len, STARGATE_FOREVER);
		if (err == EINTR) {
			err = 0;
			len = 1;
		} else if (!err && (fwrite(block, 1, len, stdout) != len || fflush(stdout))) {
			err = EPIPE;
		}
	}
	free(block);
	return err;
}

static int pass_all(struct call *c, stargate_stream *s)
{
	pthread_t sender;
	void *sent = NULL;
	int err = pthread_create(&sender, NULL, send_all, s);

	if (err)
		return trouble(c, err);
	err = print_all(s);
	if (err == EPIPE)
		return tool_output_error() ? 1 : 0;
	/* after an error, the sender may wait for its input forever, and ends with the process */
	if (err)
		return trouble(c, err);
	pthread_join(sender, &sent);
	err = (int)(intptr_t)sent;
	stargate_stream_close(s);
	return err ? trouble(c, err) : 0;
}

int cmd_listen(struct call *c)
{
	const struct stargate_streams what = { .mode = c->o.mode };
	stargate_listener *l;
	stargate_stream *s;
	int err = stargate_listen(&l, c->o.volume, c->o.name, &what);

	if (err)
		return trouble(c, err);
	do
		err = stargate_accept(l, &s, c->o.until);
	while (err == EINTR);
	stargate_listener_close(l);
	return err ? trouble(c, err) : pass_all(c, s);
}

int cmd_dial(struct call *c)
{
	stargate_stream *s;
	int err = stargate_dial(&s, c->o.volume, c->o.name, c->o.until);

	return err ? trouble(c, err) : pass_all(c, s);
}

int cmd_pipe(struct call *c)
{
	const struct stargate_streams what = { .size = c->size, .mode = c->o.mode };
	stargate_stream *s;
	int err = stargate_join(&s, c->o.volume, c->o.name, &what);

	if (err == EADDRINUSE) {
		tool_error("%s: two processes use it already", c->o.name);
		return 1;
	}
	return err ? trouble(c, err) : pass_all(c, s);
}
