// SPDX-License-Identifier: Apache-2.0
/*
 * pipe: two processes of any systems, joined both ways. Each direction is a ring with one receiver.
 * A mutex beside each ring belongs to its receiver. The first process of the two gets that of
 * NAME.1, the second that of NAME.2. The kernel gives up the mutex of a process that dies, so the
 * other one notices. All of this is removed when both have ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tool.h"
#include "ring.h"

#define END	1u		/* tag of the last record */
#define LOOK_NS	500000000ULL

/**
 * struct ends - both directions
 * @in, @mine: where this process receives, and its mutex; @out, @other: those of the other one.
 * @met: the other process has been seen. @ended: it has sent its last record.
 */
struct ends {
	struct call *c;
	stargate_ring *in, *out;
	stargate_sem *mine, *other;
	size_t block;
	bool met, ended;
};

static int open_end(struct call *c, unsigned int n, stargate_ring **ring, stargate_sem **mutex)
{
	const struct stargate_new what = {
		.type = STARGATE_RING, .flags = STARGATE_SINGLE | STARGATE_LAST_USER,
		.mode = c->mode, .initial = c->size,
	}, lives = { .type = STARGATE_MUTEX, .flags = STARGATE_LAST_USER, .mode = c->mode };
	char name[300];
	int err;

	if (strlen(c->name) > 240)
		return ENAMETOOLONG;
	snprintf(name, sizeof(name), "%s.%u", c->name, n);
	err = stargate_ring_create(ring, c->volume, name, &what, 0);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%s.%u.lives", c->name, n);
	return stargate_create(mutex, c->volume, name, &lives, 0);
}

/* EBUSY: another process receives there. */
static int receive_at(stargate_sem *lives)
{
	int err = stargate_mutex_lock(lives, STARGATE_TRY);

	if (err == EOWNERDEAD)
		err = stargate_consistent(lives);
	return err == EAGAIN ? EBUSY : err;
}

static int take_end(struct ends *e)
{
	stargate_ring *ring[2];
	stargate_sem *lives[2];
	unsigned int i, n = 0;
	int err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = open_end(e->c, i + 1, &ring[i], &lives[i]);
	for (; n < 2 && !err; n++) {
		err = receive_at(lives[n]);
		if (err != EBUSY)
			break;
		err = n ? EBUSY : 0;
	}
	if (err)
		return err;
	e->in = ring[n];
	e->mine = lives[n];
	e->out = ring[1 - n];
	e->other = lives[1 - n];
	e->block = stargate_ring_most(e->out);
	if (e->block > 65536)
		e->block = 65536;
	return 0;
}

/* Has the other process been here, and ended without its last record? */
static bool is_left(struct ends *e)
{
	int err = stargate_mutex_lock(e->other, STARGATE_TRY);

	if (err == EAGAIN) {
		__atomic_store_n(&e->met, true, __ATOMIC_RELAXED);
		return false;
	}
	if (err == EOWNERDEAD)
		stargate_consistent(e->other);
	if (!err || err == EOWNERDEAD)
		stargate_mutex_unlock(e->other);
	return __atomic_load_n(&e->met, __ATOMIC_RELAXED);
}

static int send_one(struct ends *e, uint32_t tag, const void *from, size_t len)
{
	int err;

	do
		err = stargate_ring_send(e->out, tag, from, len, stargate_in(LOOK_NS));
	while (err == EINTR || (err == ETIMEDOUT && !is_left(e)));
	return err;
}

static void *send_all(void *arg)
{
	struct ends *e = arg;
	char *block = malloc(e->block);
	ssize_t len = 0;
	int err = block ? 0 : ENOMEM;

	while (!err && (len = read(STDIN_FILENO, block, e->block)) > 0)
		err = send_one(e, 0, block, (size_t)len);
	if (!err)
		err = send_one(e, END, NULL, 0);
	free(block);
	/* after a time-out the other end has died: the receiver reports that */
	return (void *)(intptr_t)(err == ETIMEDOUT ? 0 : err);
}

static int print_all(struct ends *e)
{
	const void *at;
	uint32_t tag;
	size_t len;
	int err;
	bool left = false;

	for (;;) {
		err = stargate_ring_peek(e->in, &tag, &at, &len, left ? STARGATE_TRY :
					 stargate_in(LOOK_NS));
		if (err == EINTR)
			continue;
		if (err == ETIMEDOUT) {
			left = is_left(e);	/* then what it had sent is still printed */
			continue;
		}
		if (err)
			return left && err == EAGAIN ? EOWNERDEAD : err;
		e->ended = tag == END;
		if (!e->ended && fwrite(at, 1, len, stdout) != len)
			err = EPIPE;
		if (!err && fflush(stdout))
			err = EPIPE;
		stargate_ring_release(e->in);
		if (err || e->ended)
			return err;
	}
}

int cmd_pipe(struct call *c)
{
	struct ends e = { .c = c };
	pthread_t sender;
	void *sent = NULL;
	int err = take_end(&e);

	if (err == EBUSY) {
		tool_error("%s: two processes use it already", c->name);
		return 1;
	}
	if (!err)
		err = pthread_create(&sender, NULL, send_all, &e);
	if (err)
		return trouble(c, err);
	err = print_all(&e);
	if (err == EOWNERDEAD) {
		tool_error("%s: the other end has died; its last bytes may be missing", c->name);
		return 1;
	}
	if (err == EPIPE)
		return tool_output_error() ? 1 : 0;
	if (err)
		return trouble(c, err);
	pthread_join(sender, &sent);
	err = (int)(intptr_t)sent;
	if (err)
		return trouble(c, err);
	stargate_mutex_unlock(e.mine);
	return 0;
}
