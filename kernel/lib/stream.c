// SPDX-License-Identifier: Apache-2.0
/*
 * Streams: two rings, one per direction, each with one receiver. An end exists while it receives
 * from its ring. If the end dies, its kernel, or the system that recovers its system, ends this
 * receiver. So the other end queries the number of receivers of the ring into which it sends.
 *
 * NAME is the listener's ring. A client makes a pair of rings with a number, and sends this number
 * to NAME. The client receives from NAME.NUMBER.1, and the listener from NAME.NUMBER.2. With its
 * first record, the listener accepts. Each ring is removed with its last user.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "lib.h"

#define LOOK_NS		250000000ULL	/* between checks for the other end */
#define BLOCK		65536u
#define NUMBER_LEN	16
#define NAME_MOST	230
#define REQUESTS	65536u		/* size of a listener's ring */

enum { TAG_DATA, TAG_END, TAG_ACCEPTED };

/**
 * struct stargate_stream - one end
 * @rest, @left: the unread bytes of the present record. @ended: the other end has shut down its
 * side; @shut: this end has. @met: the other end has been seen. @gone: the other end has left.
 * @looked: the time of the last check for the other end.
 */
struct stargate_stream {
	stargate_ring *in, *out;
	const unsigned char *rest;
	size_t left, block;
	bool ended, shut, met, gone;
	u64 looked;
};

struct stargate_listener {
	stargate_ring *requests;
	char *volume, *name;
};

/* --- ends ------------------------------------------------------------------------------------- */

static bool is_gone(const struct stargate_stream *s)
{
	return __atomic_load_n(&s->gone, __ATOMIC_RELAXED);
}

/* Returns whether the other end was seen earlier, and has left. */
static bool has_left(struct stargate_stream *s)
{
	struct stargate_ring_stat st;

	__atomic_store_n(&s->looked, stargate_in(0), __ATOMIC_RELAXED);
	if (stargate_ring_fstat(s->out, &st))
		return false;
	if (st.receivers)
		__atomic_store_n(&s->met, true, __ATOMIC_RELAXED);
	else if (__atomic_load_n(&s->met, __ATOMIC_RELAXED))
		__atomic_store_n(&s->gone, true, __ATOMIC_RELAXED);
	return is_gone(s);
}

static u64 slice(u64 until)
{
	u64 look = stargate_in(LOOK_NS);

	return until < look ? until : look;
}

static bool is_over(u64 until)
{
	return until != STARGATE_FOREVER && stargate_in(0) >= until;
}

static int make_stream(stargate_stream **out, stargate_ring *in, stargate_ring *to)
{
	struct stargate_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return ENOMEM;
	s->in = in;
	s->out = to;
	s->block = stargate_ring_most(to);
	if (s->block > BLOCK)
		s->block = BLOCK;
	*out = s;
	return 0;
}

/* Opens one ring of a pair, or creates it with @what. Without @what, the ring must exist. */
static int open_ring(stargate_ring **out, const char *volume, const char *name, const char *number,
		     unsigned int n, const struct stargate_streams *what, unsigned int how)
{
	char full[256 + NUMBER_LEN];
	struct stargate_new new = { .type = STARGATE_RING,
		.flags = STARGATE_SINGLE | STARGATE_LAST_USER };

	*out = NULL;
	if (strlen(name) > NAME_MOST)
		return ENAMETOOLONG;
	snprintf(full, sizeof(full), "%s%s%s.%u", name, *number ? "." : "", number, n);
	if (!what)
		return stargate_ring_open(out, volume, full);
	new.mode = what->mode;
	new.initial = what->size ? what->size : 1 << 20;
	return stargate_ring_create(out, volume, full, &new, how);
}

static int open_pair(stargate_ring *ring[2], const char *volume, const char *name,
		     const char *number, const struct stargate_streams *what, unsigned int how)
{
	int err = open_ring(&ring[0], volume, name, number, 1, what, how);

	ring[1] = NULL;
	return err ? err : open_ring(&ring[1], volume, name, number, 2, what, how);
}

static void close_pair(stargate_ring *ring[2])
{
	stargate_ring_close(ring[0]);
	stargate_ring_close(ring[1]);
}

API int stargate_join(stargate_stream **out, const char *volume, const char *name,
		      const struct stargate_streams *what)
{
	stargate_ring *ring[2];
	int err = open_pair(ring, volume, name, "", what, 0), n = 0;

	if (!err)
		err = sgl_receive_by(ring[0], slice(STARGATE_FOREVER));
	if (err == EBUSY) {
		n = 1;
		err = sgl_receive_by(ring[1], slice(STARGATE_FOREVER));
	}
	if (!err)
		err = make_stream(out, ring[n], ring[1 - n]);
	if (err)
		close_pair(ring);
	return err == EBUSY ? EADDRINUSE : err;
}

/* --- a listener and its clients --------------------------------------------------------------- */

API int stargate_listen(stargate_listener **out, const char *volume, const char *name,
			const struct stargate_streams *what)
{
	const struct stargate_new new = { .type = STARGATE_RING, .mode = what->mode,
		.flags = STARGATE_SINGLE | STARGATE_LAST_USER, .initial = REQUESTS };
	struct stargate_listener *l;
	int err;

	if (strlen(name) > NAME_MOST)
		return ENAMETOOLONG;
	l = calloc(1, sizeof(*l));
	if (l) {
		l->volume = volume ? strdup(volume) : NULL;
		l->name = strdup(name);
	}
	err = l && l->name && (!volume || l->volume) ? 0 : ENOMEM;
	if (!err)
		err = stargate_ring_create(&l->requests, volume, name, &new, 0);
	if (!err)
		err = sgl_receive_by(l->requests, slice(STARGATE_FOREVER));
	if (err)
		stargate_listener_close(l);
	else
		*out = l;
	return err == EBUSY ? EADDRINUSE : err;
}

API void stargate_listener_close(stargate_listener *l)
{
	if (!l)
		return;
	stargate_ring_close(l->requests);
	free(l->volume);
	free(l->name);
	free(l);
}

/*
 * Accepts a client that has made both rings: opens them, and sends the first record. Returns ENOENT
 * or ECONNRESET if the client has given up meanwhile.
 */
static int answer(struct stargate_listener *l, const char *number, stargate_stream **out)
{
	stargate_ring *ring[2];
	int err = open_pair(ring, l->volume, l->name, number, NULL, 0);

	if (!err)
		err = sgl_receive_by(ring[1], slice(STARGATE_FOREVER));
	if (!err)
		err = make_stream(out, ring[1], ring[0]);
	if (err) {
		close_pair(ring);
		return err;
	}
	(*out)->met = true;
	if (has_left(*out))
		err = ECONNRESET;
	else
		err = stargate_ring_send(ring[0], TAG_ACCEPTED, NULL, 0, STARGATE_TRY);
	if (err)
		stargate_stream_close(*out);
	return err;
}

/* Any process that may send to the ring chooses these bytes, and they become a part of a name. */
static bool is_number(const char *text, size_t len)
{
	return len == NUMBER_LEN && strspn(text, "0123456789abcdef") == len;
}

API int stargate_accept(stargate_listener *l, stargate_stream **out, uint64_t until)
{
	char number[NUMBER_LEN + 1];
	size_t len;
	int err;

	for (;;) {
		memset(number, 0, sizeof(number));
		err = stargate_ring_recv(l->requests, NULL, number, NUMBER_LEN, &len, until);
		if (err == EMSGSIZE) {	/* no client sends such a record: drop it */
			const void *at;

			err = stargate_ring_peek(l->requests, NULL, &at, &len, STARGATE_TRY);
			if (!err)
				stargate_ring_release(l->requests);
			continue;
		}
		if (err)
			return err;
		/* EACCES and other errors concern this client alone */
		if (is_number(number, len) && !answer(l, number, out))
			return 0;
	}
}

static int listens(stargate_ring *requests)
{
	struct stargate_ring_stat st;
	int err = stargate_ring_fstat(requests, &st);

	return err ? err : st.receivers ? 0 : ECONNREFUSED;
}

/* Waits for the listener's first record. */
static int await_answer(struct stargate_stream *s, stargate_ring *requests, u64 until)
{
	unsigned char none;
	uint32_t tag;
	size_t len;
	int err;

	do {
		err = stargate_ring_recv(s->in, &tag, &none, 0, &len, slice(until));
		if (!err)
			return tag == TAG_ACCEPTED ? 0 : EPROTO;
		if (err == ETIMEDOUT && !is_over(until))
			err = listens(requests);
	} while (!err || err == EINTR);
	return err;
}

static int dial(stargate_stream **out, stargate_ring *requests, const char *volume,
		const char *name, u64 until)
{
	struct stargate_streams what = { 0 };
	char number[NUMBER_LEN + 1];
	struct stargate_stat st;
	stargate_ring *ring[2];
	u64 random;
	int err = listens(requests);

	if (!err)
		err = stargate_stat(volume, name, &st);
	if (err)
		return err;
	what.mode = st.mode;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return errno;
	snprintf(number, sizeof(number), "%016llx", (unsigned long long)random);
	err = open_pair(ring, volume, name, number, &what, STARGATE_EXCLUSIVE);
	if (!err)
		err = sgl_receive_by(ring[0], until);
	if (!err)
		err = stargate_ring_send(requests, TAG_DATA, number, NUMBER_LEN, until);
	if (!err)
		err = make_stream(out, ring[0], ring[1]);
	if (err) {
		close_pair(ring);
		return err;
	}
	err = await_answer(*out, requests, until);
	(*out)->met = !err;
	if (err)
		stargate_stream_close(*out);
	return err;
}

API int stargate_dial(stargate_stream **out, const char *volume, const char *name, uint64_t until)
{
	stargate_ring *requests;
	int err = stargate_ring_open(&requests, volume, name);

	if (err)
		return err == ENOENT ? ECONNREFUSED : err;
	err = dial(out, requests, volume, name, until);
	stargate_ring_close(requests);
	return err;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Makes the next record the present one, or detects that there are no more records. */
static int next_record(struct stargate_stream *s, u64 until)
{
	const void *at;
	uint32_t tag;
	size_t len;
	bool last;
	int err;

	for (;;) {
		last = is_gone(s);	/* if true, this attempt still finds the last records */
		err = stargate_ring_peek(s->in, &tag, &at, &len,
					 last ? STARGATE_TRY : until ? slice(until) : until);
		if (!err)
			break;
		if (err != ETIMEDOUT && err != EAGAIN)
			return err;
		if (last)
			return ECONNRESET;
		if (!has_left(s) && (!until || is_over(until)))
			return err;
	}
	if (tag == TAG_DATA && len) {
		s->rest = at;
		s->left = len;
		return 0;
	}
	s->ended = tag == TAG_END;
	stargate_ring_release(s->in);
	return s->ended ? 0 : EPROTO;
}

API int stargate_read(stargate_stream *s, void *to, size_t room, size_t *got, uint64_t until)
{
	int err;

	*got = 0;
	if (!s->left && !s->ended) {
		err = next_record(s, until);
		if (err)
			return err;
	}
	if (s->ended)
		return 0;
	*got = room < s->left ? room : s->left;
	memcpy(to, s->rest, *got);
	s->rest += *got;
	s->left -= *got;
	return s->left ? 0 : stargate_ring_release(s->in);
}

static int send_one(struct stargate_stream *s, uint32_t tag, const void *from, size_t len,
		    u64 until)
{
	int err;

	if (stargate_in(0) - __atomic_load_n(&s->looked, __ATOMIC_RELAXED) > LOOK_NS)
		has_left(s);
	if (is_gone(s))
		return EPIPE;
	do
		err = stargate_ring_send(s->out, tag, from, len, until ? slice(until) : until);
	while (err == ETIMEDOUT && !has_left(s) && !is_over(until));
	return err == ETIMEDOUT && is_gone(s) ? EPIPE : err;
}

API int stargate_write(stargate_stream *s, const void *from, size_t len, size_t *done,
		       uint64_t until)
{
	size_t n;
	int err = 0;

	*done = 0;
	if (s->shut)
		return EPIPE;
	while (*done < len && !err) {
		n = len - *done < s->block ? len - *done : s->block;
		err = send_one(s, TAG_DATA, (const unsigned char *)from + *done, n, until);
		*done += err ? 0 : n;
	}
	return err;
}

API int stargate_shut(stargate_stream *s, uint64_t until)
{
	int err;

	if (s->shut)
		return 0;
	err = send_one(s, TAG_END, NULL, 0, until);
	s->shut = !err;
	return err;
}

API void stargate_stream_close(stargate_stream *s)
{
	if (!s)
		return;
	stargate_shut(s, STARGATE_TRY);
	stargate_ring_close(s->in);
	stargate_ring_close(s->out);
	free(s);
}
