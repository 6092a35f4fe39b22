// SPDX-License-Identifier: Apache-2.0
/*
 * bench: measures the cost of a record that one process sends and receives, and the cost of the two
 * copies that this needs at least. In a VM with an instruction counter (-icount), the time is the
 * number of instructions. Then measures the throughput of one, two and four senders with as many
 * receivers (P4).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
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

	if (!err)	/* allocates all pages before the measurement */
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
	if (!c->o.json) {
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

/* --- throughput ------------------------------------------------------------------------------- */

#define RUN_NS	500000000ULL
#define MOST 64u /* number of senders, and of receivers */

struct shared {
	uint64_t ready, go, stop, records, err;
};

static uint64_t seen(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static int pass_on(struct shared *sh, stargate_ring *r, bool sends, char *block, size_t len,
		   uint64_t *n)
{
	int err = 0;
	size_t got;

	__atomic_add_fetch(&sh->ready, 1, __ATOMIC_SEQ_CST);
	while (!seen(&sh->go))
		usleep(100);
	while (!seen(&sh->stop) && (!err || err == ETIMEDOUT)) {
		uint64_t until = stargate_in(20000000);

		err = sends ? stargate_ring_send(r, 0, block, len, until) :
			      stargate_ring_recv(r, NULL, block, len, &got, until);
		*n += !err;
	}
	return err == ETIMEDOUT ? 0 : err;
}

static void be_process(struct call *c, struct shared *sh, const char *name, bool sends, size_t len)
{
	char *block = calloc(1, len);
	stargate_ring *r;
	uint64_t n = 0;
	int err = block ? stargate_ring_open(&r, c->o.volume, name) : ENOMEM;

	if (!err)
		err = pass_on(sh, r, sends, block, len, &n);
	if (err)
		__atomic_store_n(&sh->err, (uint64_t)err, __ATOMIC_SEQ_CST);
	if (!sends)
		__atomic_add_fetch(&sh->records, n, __ATOMIC_SEQ_CST);
	_exit(err ? 1 : 0);
}

static int start(struct call *c, struct shared *sh, const char *name, size_t len,
		 unsigned int writers, unsigned int readers, pid_t *pid)
{
	unsigned int i;

	for (i = 0; i < writers + readers; i++) {
		pid[i] = fork();
		if (!pid[i])
			be_process(c, sh, name, i < writers, len);
		if (pid[i] < 0)
			return errno;
	}
	while (seen(&sh->ready) < writers + readers && !seen(&sh->err))
		usleep(1000);
	return 0;
}

/* Returns the number of records received in one second. */
static int run(struct call *c, const char *name, size_t len, unsigned int writers,
	       unsigned int readers, double *rate)
{
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[2 * MOST] = { 0 };
	uint64_t begun;
	unsigned int i;
	int err;

	if (sh == MAP_FAILED)
		return errno;
	fflush(stdout);
	err = start(c, sh, name, len, writers, readers, pid);
	begun = stargate_in(0);
	__atomic_store_n(&sh->go, 1, __ATOMIC_SEQ_CST);
	if (!err && !seen(&sh->err))
		usleep(RUN_NS / 1000);
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	begun = stargate_in(0) - begun;
	for (i = 0; i < writers + readers && pid[i] > 0; i++)
		waitpid(pid[i], NULL, 0);
	*rate = (double)sh->records * 1e9 / (double)begun;
	err = err ? err : (int)sh->err;
	munmap(sh, sizeof(*sh));
	return err;
}

static int put_run(struct call *c, struct json *j, const char *name, size_t len,
		   unsigned int writers, unsigned int readers)
{
	double rate = 0, mib;
	int err = run(c, name, len, writers, readers, &rate);

	if (err)
		return err;
	mib = rate * (double)len / (1 << 20);
	if (!c->o.json) {
		printf("%8zu  %8u  %8u  %12.0f  %10.1f\n", len, writers, readers, rate, mib);
		return 0;
	}
	json_row(j, NULL);
	json_u64(j, "bytes", len);
	json_u64(j, "writers", writers);
	json_u64(j, "readers", readers);
	json_u64(j, "records_per_s", (u64)rate);
	json_close(j, '}');
	return 0;
}

static int throughput(struct call *c, struct json *j, const char *name)
{
	static const size_t sizes[] = { 64, 4096, 65536 };
	static const unsigned int counts[][2] = {
		{ 1, 1 }, { 1, 2 }, { 1, 4 }, { 2, 2 }, { 4, 4 },
	};
	size_t i, k;
	int err = 0;

	if (c->o.json)
		json_array(j, "throughput");
	else
		printf("\n%8s  %8s  %8s  %12s  %10s\n", "bytes", "writers", "readers", "records/s",
		       "MiB/s");
	for (i = 0; i < (c->block ? 1 : 3) && !err; i++) {
		size_t len = c->block ? c->block : sizes[i];

		for (k = 0; k < 5 && !err && !c->writers && !c->readers; k++)
			err = put_run(c, j, name, len, counts[k][0], counts[k][1]);
		if (!err && (c->writers || c->readers))
			err = put_run(c, j, name, len, c->writers ? (unsigned int)c->writers : 1,
				      c->readers ? (unsigned int)c->readers : 1);
	}
	if (c->o.json)
		json_close(j, ']');
	return err;
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
	err = stargate_ring_create(&r, c->o.volume, name, &what, STARGATE_EXCLUSIVE);
	if (err)
		return trouble(c, err);
	if (c->o.json) {
		json_begin(&j, stdout, false);
		json_array(&j, "records");
	} else {
		printf("%8s  %10s  %10s  %8s\n", "bytes", "ring, ns", "copies, ns", "ratio");
	}
	if (c->block)
		err = one(c, r, &j, c->block);
	for (i = 0; i < 3 && !c->block && !err; i++)
		err = one(c, r, &j, sizes[i]);
	if (c->o.json)
		json_close(&j, ']');
	if (!err)
		err = throughput(c, &j, name);
	if (c->o.json)
		json_end(&j);
	stargate_ring_close(r);
	return err ? trouble(c, err) : 0;
}
