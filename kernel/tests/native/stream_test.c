// SPDX-License-Identifier: Apache-2.0
/*
 * Streams of libstargate between two systems, over the engine (sem_kernel.h): listen, dial, join,
 * order and content, half-close, time limits, the death of one side, hostile clients.
 */
#define _GNU_SOURCE
#include "sem_kernel.h"

static const struct stargate_streams small = { 65536, 0600, 0 };

static stargate_stream *server, *client;

static void *accepts(void *arg)
{
	CHECK_OK(stargate_accept(arg, &server, stargate_in(20 * SEC)));
	thread_ends();
	return NULL;
}

static void connect_both(stargate_listener *l)
{
	pthread_t t;

	CHECK_OK(pthread_create(&t, NULL, accepts, l));
	CHECK_OK(stargate_dial(&client, at[1], "s", stargate_in(20 * SEC)));
	CHECK_OK(pthread_join(t, NULL));
}

static void say(stargate_stream *s, const char *text)
{
	size_t done;

	CHECK_OK(stargate_write(s, text, strlen(text), &done, STARGATE_TRY));
	CHECK_EQ(done, strlen(text));
}

static void hear(stargate_stream *s, size_t room, const char *text)
{
	char buf[100];
	size_t got;

	CHECK_OK(stargate_read(s, buf, room, &got, stargate_in(20 * SEC)));
	CHECK(got == strlen(text) && !memcmp(buf, text, got));
}

static void names(void)
{
	stargate_listener *l, *other;
	char name[300];

	CHECK_EQ(stargate_dial(&client, at[0], "s", STARGATE_FOREVER), ECONNREFUSED);
	CHECK_OK(stargate_listen(&l, at[0], "s", &small));
	CHECK_EQ(stargate_listen(&other, at[1], "s", &small), EADDRINUSE);
	CHECK_EQ(stargate_accept(l, &server, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_accept(l, &server, stargate_in(MS)), ETIMEDOUT);
	/* a dial without an accept times out; then the listener closes */
	CHECK_EQ(stargate_dial(&client, at[1], "s", stargate_in(50 * MS)), ETIMEDOUT);
	/* the client has withdrawn its request */
	CHECK_EQ(stargate_accept(l, &server, STARGATE_TRY), EAGAIN);
	stargate_listener_close(l);
	CHECK_EQ(stargate_dial(&client, at[1], "s", STARGATE_FOREVER), ECONNREFUSED);
	memset(name, 'n', sizeof(name));
	name[231] = 0;
	CHECK_EQ(stargate_listen(&l, at[0], name, &small), ENAMETOOLONG);
	CHECK_EQ(stargate_join(&client, at[0], name, &small), ENAMETOOLONG);
	name[230] = 0;
	CHECK_OK(stargate_join(&client, at[0], name, &small));
	stargate_stream_close(client);
	stargate_stream_close(NULL);
	stargate_listener_close(NULL);
}

static void both_ways(stargate_listener *l)
{
	size_t got;
	char c;

	connect_both(l);
	say(client, "hello");
	say(client, "again");
	hear(server, 3, "hel");
	hear(server, 100, "lo");
	hear(server, 100, "again");
	CHECK_EQ(stargate_read(server, &c, 1, &got, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_read(server, &c, 1, &got, stargate_in(MS)), ETIMEDOUT);
	say(server, "yes");
	hear(client, 100, "yes");
	/* half-close: the other direction still works */
	say(client, "last");
	CHECK_OK(stargate_shut(client, STARGATE_TRY));
	CHECK_OK(stargate_shut(client, STARGATE_TRY));
	CHECK_EQ(stargate_write(client, "x", 1, &got, STARGATE_TRY), EPIPE);
	hear(server, 100, "last");
	hear(server, 100, "");
	hear(server, 100, "");
	say(server, "more");
	hear(client, 100, "more");
	stargate_stream_close(server);
	hear(client, 100, "");
	stargate_stream_close(client);
}

/*
 * Acts as the kernel of a dead process: closes the descriptors, without a message to the other
 * side.
 */
static void dies(stargate_stream *s)
{
	struct {
		stargate_ring *in, *out;
	} *both = (void *)s;

	stargate_ring_close(both->in);
	stargate_ring_close(both->out);
	free(s);
}

static void deaths(stargate_listener *l)
{
	char block[1000];
	size_t done, got;
	u64 begun;
	int err;

	connect_both(l);
	say(client, "said before");
	dies(client);
	hear(server, 100, "said before");
	begun = sg_ticks();
	CHECK_EQ(stargate_read(server, block, 1, &got, STARGATE_FOREVER), ECONNRESET);
	CHECK_EQ(stargate_write(server, "x", 1, &done, STARGATE_FOREVER), EPIPE);
	CHECK(sg_ticks() - begun < 2 * SEC || getenv("SLOW"));
	stargate_stream_close(server);
	/* a writer without room */
	connect_both(l);
	memset(block, 1, sizeof(block));
	while (!(err = stargate_write(client, block, sizeof(block), &done, STARGATE_TRY)))
		;
	CHECK(err == EAGAIN && !done);
	dies(server);
	CHECK_EQ(stargate_write(client, block, sizeof(block), &done, STARGATE_FOREVER), EPIPE);
	dies(client);
}

/* --- many bytes ------------------------------------------------------------------------------- */

static u64 total;

static void *writes_all(void *arg)
{
	static __thread u8 block[100000];
	struct rng rng = { 5 }, sizes = { 6 };
	u64 left = total, n;
	size_t done;

	for (; left; left -= n) {
		n = SG_MIN(1 + rng_size(&sizes, sizeof(block) - 1), left);
		rng_fill(&rng, block, (n + 7) & ~7ULL);
		CHECK_OK(stargate_write(arg, block, n, &done, stargate_in(60 * SEC)));
		CHECK_EQ(done, n);
	}
	CHECK_OK(stargate_shut(arg, stargate_in(60 * SEC)));
	thread_ends();
	return NULL;
}

/* Reads the expected numbers, which arrive in parts of any size. */
static void *reads_all(void *arg)
{
	static __thread u8 block[100000], want[100000];
	struct rng rng = { 5 }, sizes = { 6 }, rooms = { (u64)(uintptr_t)arg };
	u64 left = total, n, at;
	size_t got;

	for (; left; left -= n) {
		n = SG_MIN(1 + rng_size(&sizes, sizeof(block) - 1), left);
		rng_fill(&rng, want, (n + 7) & ~7ULL);
		for (at = 0; at < n; at += got) {
			CHECK_OK(stargate_read(arg, block + at, 1 + rng_below(&rooms, n - at), &got,
					       stargate_in(60 * SEC)));
			CHECK(got);
		}
		CHECK(!memcmp(block, want, n));
	}
	CHECK_OK(stargate_read(arg, block, 1, &got, stargate_in(60 * SEC)));
	CHECK_EQ(got, 0);
	thread_ends();
	return NULL;
}

static void many(void)
{
	stargate_stream *a, *b, *c;
	pthread_t t[4];
	unsigned int i;

	total = test_amount(2 << 20, 20 << 20, 1 << 30);
	CHECK_OK(stargate_join(&a, at[0], "j", &small));
	CHECK_OK(stargate_join(&b, at[1], "j", &small));
	CHECK_EQ(stargate_join(&c, at[1], "j", &small), EADDRINUSE);
	CHECK_OK(pthread_create(&t[0], NULL, writes_all, a));
	CHECK_OK(pthread_create(&t[1], NULL, reads_all, a));
	CHECK_OK(pthread_create(&t[2], NULL, writes_all, b));
	CHECK_OK(pthread_create(&t[3], NULL, reads_all, b));
	for (i = 0; i < 4; i++)
		CHECK_OK(pthread_join(t[i], NULL));
	stargate_stream_close(a);
	stargate_stream_close(b);
	CHECK_OK(stargate_join(&a, at[0], "j", &small));	/* the name can be used again */
	stargate_stream_close(a);
}

/* --- hostile ---------------------------------------------------------------------------------- */

/*
 * A hostile client sends invalid requests to the listener's ring, and invalid records into its own.
 */
static void hostile(stargate_listener *l)
{
	const struct stargate_new any = { .type = STARGATE_RING, .mode = 0600, .flags = STARGATE_LAST_USER };
	static const char *const lines[] = { "", "0", "../../../../x/y", "0123456789ABCDEF",
		"0123456789abcdef", "this one is much longer than any valid number could be" };
	stargate_ring *requests, *one, *two;
	unsigned int i;
	size_t got;
	char c;

	CHECK_OK(stargate_ring_open(&requests, at[1], "s"));
	for (i = 0; i < SG_ARRAY_SIZE(lines); i++)
		CHECK_OK(stargate_ring_send(requests, i, lines[i], strlen(lines[i]), STARGATE_TRY));
	CHECK_EQ(stargate_accept(l, &server, STARGATE_TRY), EAGAIN);
	/* rings of a client that does not receive */
	CHECK_OK(stargate_ring_create(&one, at[1], "s.0123456789abcdef.1", &any, 0));
	CHECK_OK(stargate_ring_create(&two, at[1], "s.0123456789abcdef.2", &any, 0));
	CHECK_OK(stargate_ring_send(requests, 0, "0123456789abcdef", 16, STARGATE_TRY));
	CHECK_EQ(stargate_accept(l, &server, STARGATE_TRY), EAGAIN);
	/* a client that receives, and sends records with an invalid tag */
	CHECK_EQ(stargate_ring_recv(one, NULL, &c, 1, &got, STARGATE_TRY), EAGAIN);
	CHECK_OK(stargate_ring_send(requests, 0, "0123456789abcdef", 16, STARGATE_TRY));
	CHECK_OK(stargate_accept(l, &server, STARGATE_TRY));
	CHECK_OK(stargate_ring_send(two, 77, "x", 1, STARGATE_TRY));
	CHECK_EQ(stargate_read(server, &c, 1, &got, STARGATE_TRY), EPROTO);
	CHECK_OK(stargate_ring_send(two, 0, "", 0, STARGATE_TRY));
	CHECK_EQ(stargate_read(server, &c, 1, &got, STARGATE_TRY), EPROTO);
	stargate_stream_close(server);
	stargate_ring_close(one);
	stargate_ring_close(two);
	stargate_ring_close(requests);
}

int main(void)
{
	stargate_listener *l;

	begin();
	names();
	CHECK_OK(stargate_listen(&l, at[0], "s", &small));
	both_ways(l);
	deaths(l);
	hostile(l);
	both_ways(l);
	stargate_listener_close(l);
	many();
	end();
	return test_done();
}
