// SPDX-License-Identifier: Apache-2.0
/*
 * Streams, and SIGKILL. Processes act as systems, each with its own slot, and with libstargate over
 * its own engine. A client dials and writes, and is killed at any point. The program listens, and
 * fences the client, like a guard. It reads the bytes that the client had written, in order, and
 * then gets an error in time. Then the next client dials. The test kills writers, and readers in
 * the middle of the program's write.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include "sem_kernel.h"

/* two seconds are expected; the limit allows for a machine with much other work */
#define TOO_LONG	(30 * SEC)

static const struct stargate_streams small = { 65536, 0600, 0 };

static struct shared {
	u64 state, reads;
} *sh;

static u8 byte_at(u64 i)
{
	return (u8)(i * 7 + (i >> 8));
}

static void write_on(stargate_stream *s, struct rng *rng)
{
	static u8 block[5000];
	u64 pos = 0, n, i;
	size_t done;

	for (;;) {
		n = 1 + rng_below(rng, sizeof(block) - 1);
		for (i = 0; i < n; i++)
			block[i] = byte_at(pos + i);
		CHECK_OK(stargate_write(s, block, n, &done, STARGATE_FOREVER));
		pos += n;
	}
}

static void be_client(void *arg)
{
	struct rng rng = { (u64)(uintptr_t)arg + 1 };
	stargate_stream *s;
	u8 block[3000];
	size_t got;

	tsys_join(&sys[1], mem, SIZE, 9);
	tsys_maintain(&sys[1]);
	listen_begin(&ear[1], &sys[1].v);
	sg_store64(&sh->state, SG_LOCK_WORD(sys[1].v.slot, sys[1].v.incarnation));
	CHECK_OK(stargate_dial(&s, at[1], "s", stargate_in(60 * SEC)));
	if (sg_load64(&sh->reads))
		while (!stargate_read(s, block, sizeof(block), &got, STARGATE_FOREVER))
			;
	else
		write_on(s, &rng);
}

static void kill_client(pid_t pid)
{
	u64 word = sg_load64(&sh->state);

	tproc_kill(pid);
	CHECK_OK(sg_fence_slot(&sys[0].v, SG_LOCK_SLOT(word), SG_LOCK_INC(word)));
}

/* Reads and checks the client's bytes until the client is dead. */
static u64 read_all(stargate_stream *s, struct rng *rng, pid_t pid, u64 ms)
{
	u64 pos = 0, end = in_ms(ms), i, killed = 0;
	u8 block[4000];
	size_t got;
	int err;

	for (;;) {
		if (!killed && sg_ticks() > end) {
			kill_client(pid);
			killed = sg_ticks();
		}
		err = stargate_read(s, block, 1 + rng_below(rng, sizeof(block) - 1), &got,
				    stargate_in(MS));
		if (err == ETIMEDOUT) {
			CHECK(!killed || sg_ticks() - killed < TOO_LONG);
			continue;
		}
		if (err)
			break;
		CHECK(got);
		for (i = 0; i < got; i++)
			CHECK(block[i] == byte_at(pos + i));
		pos += got;
	}
	CHECK(killed);
	CHECK_EQ(err, ECONNRESET);
	return pos;
}

static void write_until_it_dies(stargate_stream *s, pid_t pid, u64 ms)
{
	u64 end = in_ms(ms), killed = 0;
	static u8 block[10000];
	size_t done;
	int err = 0;

	while (!err || err == ETIMEDOUT) {
		if (!killed && sg_ticks() > end) {
			kill_client(pid);
			killed = sg_ticks();
		}
		CHECK(!killed || sg_ticks() - killed < TOO_LONG);
		err = stargate_write(s, block, sizeof(block), &done, stargate_in(MS));
	}
	CHECK(killed);
	CHECK_EQ(err, EPIPE);
}

int main(void)
{
	u64 kills = test_amount(20, 100, 2000), i, bytes = 0;
	struct rng rng = { test_seed() };
	stargate_listener *l;
	stargate_stream *s;
	unsigned int k;
	pid_t pid;

	mem = tsys_volume(SIZE);
	sh = tshare(sizeof(*sh));
	for (k = 0; k < SYSTEMS; k++) {
		snprintf(at[k], sizeof(at[k]), "/tmp/libstargate-%d-%u", (int)getpid(), k);
		CHECK_OK(mkdir(at[k], 0700));
	}
	tsys_join(&sys[0], mem, SIZE, 1);
	tsys_maintain(&sys[0]);
	listen_begin(&ear[0], &sys[0].v);
	CHECK_OK(stargate_listen(&l, at[0], "s", &small));
	for (i = 0; i < kills; i++) {
		sg_store64(&sh->reads, i % 3 == 2);
		pid = tproc(be_client, (void *)(uintptr_t)i);
		CHECK_OK(stargate_accept(l, &s, stargate_in(60 * SEC)));
		if (i % 3 == 2)
			write_until_it_dies(s, pid, rng_below(&rng, 30));
		else
			bytes += read_all(s, &rng, pid, rng_below(&rng, 30));
		stargate_stream_close(s);
	}
	printf("%" PRIu64 " killed, %" PRIu64 " bytes came\n", kills, bytes);
	stargate_listener_close(l);
	thread_ends();
	listen_end(&ear[0]);
	tsys_leave(&sys[0]);
	for (k = 0; k < SYSTEMS; k++)
		rmdir(at[k]);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
	return test_done();
}
