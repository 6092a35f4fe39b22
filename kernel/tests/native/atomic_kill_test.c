// SPDX-License-Identifier: Apache-2.0
/*
 * Processes act as systems that write atomically to two files, and are killed (SIGKILL) at any
 * point. One file has the attribute, the other one does not. Each system has its own part of the
 * files, which its successor compares byte by byte. A write of up to SG_ATOMIC_MAX bytes is
 * complete or missing; of a longer write, only the first units may be stored. In a common part, all
 * systems write and read blocks that describe themselves: no reader ever sees part of a block. This
 * program is the guard.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"

#define SYSTEMS	3
#define FILES	2
#define OWN	(1280u << 10)	/* bytes of a file that one system alone writes */
#define BLOCK	SG_ATOMIC_MAX
#define BLOCKS	6
#define COMMON	((u64)SYSTEMS * OWN)
#define MEMORY	(96u << 20)

/**
 * struct book - the data that a system has written to its own parts.
 * @active: a write is under way: of @len bytes at @pos of @file, made from @stamp.
 */
struct book {
	u64 active, file, pos, len, stamp;
	u64 writes, blocks;
	u8 own[FILES][OWN];
};

static struct shared {
	struct book book[SYSTEMS];
	u64 ready[SYSTEMS], stop;
} *sh;

struct block {
	u64 stamp, len;
	u32 crc, magic;
};

struct member {
	struct tsys s;
	unsigned int n;
	struct book *b;
	struct rng rng;
	struct sg_iref f[FILES];
};

static u8 *mem;
static u64 seed;

static void make_bytes(u64 stamp, u8 *buf, u64 len)
{
	struct rng r = { stamp };

	rng_fill(&r, buf, len);
}

/* --- the own part --------------------------------------------------------------------------- */

/* Finds out how many units a killed system's last write has stored, and records the number. */
static void settle(struct member *m)
{
	static u8 bytes[OWN], got[OWN];
	struct book *b = m->b;
	u64 done, n;

	if (!b->active)
		return;
	test_note("system %u: write of %" PRIu64 " at %" PRIu64 " of file %" PRIu64, m->n, b->len,
		  b->pos, b->file);
	make_bytes(b->stamp, bytes, b->len);
	CHECK_EQ(sg_read(&m->s.v, &m->f[b->file], (u64)m->n * OWN, got, OWN), OWN);
	for (done = 0; done < b->len; done += n) {
		n = sg_atomic_unit((u64)m->n * OWN + b->pos + done, b->len - done);
		if (memcmp(got + b->pos + done, bytes + done, n))
			break;
		memcpy(b->own[b->file] + b->pos + done, bytes + done, n);
	}
	b->active = 0;
}

static void verify(struct member *m)
{
	static u8 got[OWN];
	unsigned int f;

	settle(m);
	for (f = 0; f < FILES; f++) {
		test_note("system %u: comparing its own part of file %u", m->n, f);
		CHECK_EQ(sg_read(&m->s.v, &m->f[f], (u64)m->n * OWN, got, OWN), OWN);
		CHECK(!memcmp(got, m->b->own[f], OWN));
	}
}

/* The file without the attribute gets atomic writes only, the other file also longer writes. */
static void write_own(struct member *m)
{
	static u8 bytes[OWN];
	struct book *b = m->b;
	u64 most = rng_chance(&m->rng, 10) ? 1 << 20 : SG_ATOMIC_MAX;
	bool filled = false;

	b->file = rng_below(&m->rng, FILES);
	b->len = 1 + rng_size(&m->rng, (b->file ? SG_ATOMIC_MAX : most) - 1);
	b->pos = rng_below(&m->rng, OWN - b->len);
	if (rng_chance(&m->rng, 50)) {
		b->pos &= ~(SG_PAGE - 1);
		b->len = SG_ALIGN_UP(b->len, SG_PAGE);
		b->len = b->file ? SG_MIN(b->len, (u64)SG_ATOMIC_MAX) : b->len;
	}
	b->stamp = rng_next(&m->rng);
	make_bytes(b->stamp, bytes, b->len);
	tadvance(&b->active, 1);
	if (b->file)
		CHECK_OK(sg_write_atomic(&m->s.v, &m->f[1], (u64)m->n * OWN + b->pos, bytes, b->len,
					 0, 1, &filled));
	else
		CHECK_EQ(sg_write(&m->s.v, &m->f[0], (u64)m->n * OWN + b->pos, bytes, b->len, 1),
			 b->len);
	memcpy(b->own[b->file] + b->pos, bytes, b->len);
	tadvance(&b->active, 0);
	b->writes++;
}

/* --- the common part ------------------------------------------------------------------------ */

static void write_block(struct member *m, const struct sg_iref *f, u64 at)
{
	u8 bytes[BLOCK];
	struct block *k = (void *)bytes;
	u64 len = sizeof(*k) + rng_size(&m->rng, BLOCK - sizeof(*k));
	bool filled = false;

	if (rng_chance(&m->rng, 60))
		len = SG_ALIGN_UP(len, SG_PAGE);
	make_bytes(rng_next(&m->rng), bytes, len);
	k->len = len;
	k->magic = 0xb10c;
	k->crc = 0;
	k->crc = sg_crc32c(~0u, bytes, len);
	CHECK_OK(sg_write_atomic(&m->s.v, f, COMMON + at * BLOCK, bytes, len, 0, 1, &filled));
}

static void read_block(struct member *m, const struct sg_iref *f, u64 at)
{
	u8 bytes[BLOCK];
	struct block *k = (void *)bytes;
	u32 crc;

	CHECK_EQ(sg_read(&m->s.v, f, COMMON + at * BLOCK, bytes, BLOCK), BLOCK);
	if (!k->magic)
		return;		/* not written yet */
	CHECK_EQ(k->magic, 0xb10c);
	CHECK(k->len >= sizeof(*k) && k->len <= BLOCK);
	crc = k->crc;
	k->crc = 0;
	if (sg_crc32c(~0u, bytes, k->len) != crc)
		test_fail(__FILE__, __LINE__, "block %" PRIu64 " has parts of several writes", at);
	m->b->blocks++;
	test_counted();
}

/* Acts as a process that maps the file. Meanwhile the file keeps the same page at each position. */
static void map_block(struct member *m, const struct sg_iref *f, u64 at)
{
	u64 page = (COMMON + at * BLOCK) / SG_PAGE, off;
	struct sg_run run;
	unsigned int i;

	sg_set_mapper(&m->s.v, f, false, true);
	if (sg_is_replacing(&m->s.v, f))
		CHECK_OK(sg_wait_replaced(&m->s.v, f));
	CHECK_OK(sg_walk(&m->s.v, f, page, 1, &run));
	off = run.off;
	for (i = 0; off && i < 20; i++) {
		sg_yield();
		CHECK_OK(sg_walk(&m->s.v, f, page, 1, &run));
		CHECK_EQ(run.off, off);
	}
	sg_set_mapper(&m->s.v, f, false, false);
}

static void contend(struct member *m)
{
	const struct sg_iref *f = &m->f[rng_below(&m->rng, FILES)];
	u64 at = rng_below(&m->rng, BLOCKS), dice = rng_below(&m->rng, 100);

	if (dice < 40)
		write_block(m, f, at);
	else if (dice < 90)
		read_block(m, f, at);
	else
		map_block(m, f, at);
}

/* --- a system ------------------------------------------------------------------------------- */

struct start {
	unsigned int n;
	u64 round;
};

static bool stopped(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

static void enter(struct member *m, unsigned int n, u64 round)
{
	struct sg_identity id = tsys_identity(n + 1, (unsigned int)round);

	m->n = n;
	m->b = &sh->book[n];
	m->rng.state = seed * 1000003 + round * 17 + n;
	id.pid = (u64)getpid();
	if (tsys_try(&m->s, mem, MEMORY, &id, 0, false))
		test_fail(__FILE__, __LINE__, "system %u cannot join: %s", n, m->s.v.why);
	tsys_maintain(&m->s);
	m->f[0] = test_lookup(&m->s.v, &m->s.root, "flagged");
	m->f[1] = test_lookup(&m->s.v, &m->s.root, "plain");
	verify(m);
}

static void system_body(void *arg)
{
	const struct start *start = arg;
	static struct member m;

	enter(&m, start->n, start->round);
	tadvance(&sh->ready[start->n], 1);
	while (!stopped()) {
		write_own(&m);
		contend(&m);
	}
	tsys_leave(&m.s);
}

/* --- the guard ------------------------------------------------------------------------------ */

static pid_t pid[SYSTEMS];
static struct sg_vol guard;

static void start(unsigned int n, u64 round)
{
	struct start s = { n, round };

	sh->ready[n] = 0;
	pid[n] = tproc(system_body, &s);
}

/* Fences the slot of the process that was killed. */
static void fence_dead(pid_t dead)
{
	struct sg_slot slot;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		CHECK_OK(sg_slot_read(&guard, i, &slot));
		if (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE && slot.pid == (u64)dead &&
		    slot.named == SG_SLOT_INC(slot.state))
			sg_fence_slot(&guard, i, SG_SLOT_INC(slot.state));
	}
}

static void kill_one(unsigned int n, u64 round)
{
	pid_t dead = pid[n];

	tproc_kill(dead);
	fence_dead(dead);
	start(n, round);
}

static void setup(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .flags = SG_FL_ATOMIC, .now = 1 };
	struct sg_iref f[FILES];
	struct tsys s;
	unsigned int i;

	sh = tshare(sizeof(*sh));
	mem = tsys_volume(MEMORY);
	tsys_join(&s, mem, MEMORY, 1);
	CHECK_OK(sg_create(&s.v, &s.root, "flagged", 7, &new, &f[0]));
	f[1] = test_create(&s.v, &s.root, "plain", S_IFREG | 0600);
	for (i = 0; i < FILES; i++) {
		CHECK_OK(sg_resize(&s.v, &f[i], COMMON + BLOCKS * BLOCK, 1));
		/* the first half has pages already, in large leaves */
		CHECK_OK(sg_allocate(&s.v, &f[i], 0, COMMON / 2 / SG_PAGE));
	}
	tsys_leave(&s);
	CHECK_OK(sg_open(&guard, mem, MEMORY, false, NULL));
}

static void stop_all(void)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		tawait(&sh->ready[i], 1);
	tadvance(&sh->stop, 1);
	for (i = 0; i < SYSTEMS; i++)
		tproc_end(pid[i]);
	tadvance(&sh->stop, 0);
	test_clean(mem, MEMORY);
}

int main(void)
{
	u64 kills = test_amount(60, 1000, 20000), writes = 0, blocks = 0, i;
	struct rng rng;
	unsigned int n;

	seed = rng.state = test_seed();
	tlog_catch();
	setup();
	for (i = 0; i < kills; i++) {
		if (i % 50 == 0)
			for (n = 0; n < SYSTEMS; n++)
				start(n, i + n);
		n = (unsigned int)rng_below(&rng, SYSTEMS);
		tawait(&sh->ready[n], 1);
		usleep((unsigned int)rng_size(&rng, 20000));
		kill_one(n, i + SYSTEMS);
		if (i % 50 == 49 || i + 1 == kills)
			stop_all();
	}
	for (n = 0; n < SYSTEMS; n++) {
		writes += sh->book[n].writes;
		blocks += sh->book[n].blocks;
	}
	printf("%" PRIu64 " killed, %" PRIu64 " writes to own parts, %" PRIu64 " blocks read\n", kills,
	       writes, blocks);
	CHECK(writes > kills && blocks > kills);
	return test_done();
}
