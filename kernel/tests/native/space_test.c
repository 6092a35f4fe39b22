// SPDX-License-Identifier: Apache-2.0
/*
 * Hints of free space (docs/protocol.md, section 9). A joiner trusts the hints and examines no
 * chunk. Missing hints are set later, and wrong hints are cleared. Neither missing nor wrong hints
 * cause ENOSPC. The test also covers formatting: mkfs does not touch memory that no reader reads.
 */
#include <sys/mman.h>
#include <time.h>
#include "systems.h"
#include "deferred/deferred.h"
#include "data_util.h"

#define LARGE	(40 * GIB)	/* hints are completed in several steps; the last step is shorter */
#define STEP	8192

static u64 half(const struct sg_vol *vol)
{
	return SG_ALIGN_UP(vol->sb.chunk_cap, 64) / 8;
}

static u8 *hints(const struct sg_vol *vol)
{
	return vol->base + vol->sb.hint_off;
}

static bool hinted(const struct sg_vol *vol, bool empty, u64 chunk)
{
	return hints(vol)[empty * half(vol) + chunk / 8] >> chunk % 8 & 1;
}

static u64 promised(const struct sg_vol *vol, bool empty, u64 from, u64 to)
{
	u64 c, n = 0;

	for (c = from; c < to; c++)
		n += hinted(vol, empty, c);
	return n;
}

static struct sg_chunk *chunk_at(const struct sg_vol *vol, u64 chunk)
{
	return (void *)(vol->base + sg_chunk_off(vol, chunk));
}

/* Checks that the hints agree with every chunk's map. */
static void expect_exact(const struct sg_vol *vol)
{
	u64 c;

	for (c = 0; c < sg_chunks(vol); c++) {
		const struct sg_chunk *k = chunk_at(vol, c);
		u64 all = ~0ULL, any = 0;
		unsigned int i;

		for (i = 0; i < 8; i++) {
			all &= k->map[i];
			any |= k->map[i];
		}
		if (hinted(vol, false, c) != (all != ~0ULL) || hinted(vol, true, c) != !any)
			test_fail(__FILE__, __LINE__, "hints of chunk %" PRIu64 " are wrong", c);
	}
	test_counted();
}

/* Sets all bytes of the hints to @byte: 0 for none, 0xff for both hints of every chunk. */
static void set_hints(const struct sg_vol *vol, u8 byte)
{
	memset(hints(vol), byte, 2 * half(vol));
}

/* Marks all pages as used in the maps, except in chunk @but. A copy of the maps undoes that. */
static void take_all_but(const struct sg_vol *vol, u64 but)
{
	u64 c;

	for (c = 0; c < sg_chunks(vol); c++)
		if (c != but)
			memset(chunk_at(vol, c)->map, 0xff, sizeof(chunk_at(vol, c)->map));
}

static void *keep_chunks(const struct sg_vol *vol)
{
	u64 len = sg_chunks(vol) * sizeof(struct sg_chunk);
	void *copy = malloc(len);

	CHECK(copy);
	memcpy(copy, chunk_at(vol, 0), len);
	return copy;
}

static void put_back(const struct sg_vol *vol, void *copy)
{
	memcpy(chunk_at(vol, 0), copy, sg_chunks(vol) * sizeof(struct sg_chunk));
	free(copy);
}

/* --- formatting ------------------------------------------------------------------------------ */

/* Before mkfs, all memory is full of garbage. Afterwards the room to grow still has its garbage. */
static void made_where_it_counts(void)
{
	struct tvol t;
	u64 off, end;
	char why[200];

	tvol_make_in(&t, 64 * MIB, 256 * MIB);
	expect_exact(&t.v);
	end = sg_chunk_off(&t.v, t.v.sb.chunk_cap);
	for (off = sg_chunk_off(&t.v, sg_chunks(&t.v)); off < end; off++)
		if (t.mem[off] != 0xa5)
			test_fail(__FILE__, __LINE__, "0x%" PRIx64 " has been written", off);
	for (off = sg_chunks(&t.v); off < t.v.sb.chunk_cap; off++)
		CHECK(!hinted(&t.v, false, off) && !hinted(&t.v, true, off));
	CHECK_OK(sg_grow(&t.v, 256 * MIB, 0, why));
	expect_exact(&t.v);
	tvol_drop(&t);
	printf("ok formatted where needed\n");
}

static u64 resident(const u8 *mem, u64 size)
{
	u64 pages = size / SG_PAGE, i, n = 0;
	unsigned char *vec = malloc(pages);

	CHECK(vec);
	CHECK_OK(mincore((void *)mem, size, vec));
	for (i = 0; i < pages; i++)
		n += vec[i] & 1;
	free(vec);
	return n;
}

/*
 * mkfs writes metadata for the present size only. For the maximum size it would fill most of a
 * sparse memory.
 */
static void made_in_little(void)
{
	struct sg_vol *vol = vol_new(LARGE);
	u64 used = resident(vol->base, LARGE);

	CHECK(used > sg_chunks(vol) * sizeof(struct sg_chunk) / SG_PAGE);
	CHECK(used < (vol->sb.chunk_off + sg_chunks(vol) * sizeof(struct sg_chunk)) / SG_PAGE + 16);
	vol_end(vol);
	printf("ok formatted with few stores\n");
}

/* --- mending --------------------------------------------------------------------------------- */

/*
 * A joiner examines no chunk. Its first rounds of settling set the hints of all chunks, in steps.
 */
static void joined_then_mended(void)
{
	struct sg_vol *vol = vol_new(LARGE), again;
	u64 chunks = sg_chunks(vol), left = chunks;

	expect_exact(vol);
	sg_leave(vol);
	set_hints(vol, 0);
	CHECK_OK(sg_open(&again, vol->base, LARGE, false, NULL));
	CHECK_OK(sg_join(&again, &test_identity, 0, false));
	CHECK_EQ(promised(&again, false, 0, chunks), 0);
	while (left) {
		u64 step = SG_MIN(left, (u64)STEP);

		CHECK_EQ(promised(&again, true, 0, left), 0);
		sg_settle(&again);
		left -= step;
		/* up to 32 pages are metadata */
		CHECK(promised(&again, true, left, left + step) >= step - 32);
	}
	expect_exact(&again);
	CHECK(!sg_space_mend_hints(&again));
	*vol = again;
	vol_end(vol);
	printf("ok joined, then mended\n");
}

/* Tests the same for a system with exclusive access. */
static void alone_then_mended(void)
{
	struct tvol t;

	tvol_make(&t, 64 * MIB);
	tvol_leave(&t);
	set_hints(&t.v, 0);
	CHECK_OK(sg_open(&t.v, t.mem, t.size, false, NULL));
	CHECK_OK(sg_join_alone(&t.v, &test_identity, 0, false));
	sg_settle(&t.v);
	expect_exact(&t.v);
	tvol_drop(&t);
	printf("ok alone, then mended\n");
}

/* A dead system's commits are in place, by its own stores or by replay, but it has set no hints. */
static void what_the_dead_freed(void)
{
	struct tsys a, b;
	u8 *mem = tsys_volume(64 * MIB);
	struct sg_chunk *k;
	u64 chunk;

	tsys_join(&a, mem, 64 * MIB, 1);
	tsys_join(&b, mem, 64 * MIB, 2);
	chunk = sg_chunks(&a.v) - 2;
	while (sg_space_mend_hints(&a.v))
		;
	/* a chunk is free except for one word of its map, which b frees */
	k = chunk_at(&a.v, chunk);
	k->map[3] = ~0ULL;
	set_hints(&a.v, 0);
	tsys_record(&b.v, 1, 0, (u64)((u8 *)&k->map[3] - mem), 0);
	tsys_die(&b);
	CHECK_OK(sg_fence_slot(&a.v, 1, b.v.incarnation));
	CHECK(sg_watch(&a.v) >= 0);
	CHECK_EQ(k->map[3], 0);
	sg_settle(&a.v);
	CHECK(hinted(&a.v, false, chunk) && hinted(&a.v, true, chunk));
	tsys_leave(&a);
	test_clean(mem, 64 * MIB);
	test_unmap(mem, 64 * MIB);
	printf("ok pages that a dead system freed\n");
}

/* --- no ENOSPC too early --------------------------------------------------------------------- */

static struct sg_tx *begin(struct sg_vol *vol)
{
	struct sg_tx *tx = sg_tx_begin(vol);

	CHECK(!tx->err);
	return tx;
}

/* The only free chunk is the last but one that mending examines, and no hint is set. */
static void found_in_doubt(void)
{
	struct sg_vol *vol = vol_new(LARGE);
	u64 chunk = SG_ALIGN_UP(vol->sb.data_off, SG_CHUNK) / SG_CHUNK + 1, off, got;
	void *maps = keep_chunks(vol);
	struct sg_tx *tx;

	take_all_but(vol, chunk);
	set_hints(vol, 0);
	sg_space_doubt_hints(vol);
	tx = begin(vol);
	CHECK_OK(sg_take_chunk(tx, 0, &off));
	CHECK_EQ(off, chunk << SG_CHUNK_SHIFT);
	CHECK_EQ(sg_take_chunk(tx, 0, &off), -ENOSPC);
	sg_tx_abort(tx);

	set_hints(vol, 0);
	sg_space_doubt_hints(vol);
	tx = begin(vol);
	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, SG_CHUNK_PAGES, &off, &got));
	CHECK_EQ(off, chunk << SG_CHUNK_SHIFT);
	CHECK_EQ(got, SG_CHUNK_PAGES);
	CHECK_EQ(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got), -ENOSPC);
	sg_tx_abort(tx);
	put_back(vol, maps);
	set_hints(vol, 0);
	sg_space_rebuild_hints(vol);
	vol_end(vol);
	printf("ok space without hints\n");
}

/* Hints are missing although mending is complete: all chunks are examined before ENOSPC. */
static void found_beyond_doubt(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	u64 chunk = sg_chunks(vol) - 2, off, got;
	void *maps = keep_chunks(vol);
	struct sg_tx *tx;

	while (sg_space_mend_hints(vol))
		;
	take_all_but(vol, chunk);
	set_hints(vol, 0);
	tx = begin(vol);
	CHECK_OK(sg_take_run(tx, SG_USE_META, 0, 1, &off, &got));
	CHECK_EQ(off >> SG_CHUNK_SHIFT, chunk);
	sg_tx_abort(tx);
	put_back(vol, maps);
	sg_space_rebuild_hints(vol);
	vol_end(vol);
	printf("ok space with missing hints\n");
}

/* --- wrong hints ----------------------------------------------------------------------------- */

/* Sets the hints of mkfs again, like a power cut. Chunks with such hints are examined once only. */
static void false_promises_end(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	void *maps = keep_chunks(vol);
	u64 off, got, chunks = sg_chunks(vol);
	struct sg_tx *tx;

	take_all_but(vol, ~0ULL);
	set_hints(vol, 0xff);
	tx = begin(vol);
	CHECK_EQ(sg_take_chunk(tx, 0, &off), -ENOSPC);
	CHECK_EQ(promised(vol, true, 0, chunks), 0);
	CHECK_EQ(promised(vol, false, 0, chunks), 0);
	set_hints(vol, 0xff);
	CHECK_EQ(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got), -ENOSPC);
	CHECK_EQ(promised(vol, false, 0, chunks), 0);
	sg_tx_abort(tx);
	put_back(vol, maps);
	sg_space_rebuild_hints(vol);
	vol_end(vol);
	printf("ok wrong hints are cleared\n");
}

/* --- free space that another system has locked ------------------------------------------------ */

#define HUGE	(256 * GIB)

extern bool (*sg_interrupt_hook)(void);

static bool killed(void)
{
	return true;
}

/* Returns the CPU time of this thread, which other programs do not affect. */
static double cpu_seconds(void)
{
	struct timespec t;

	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Acts as a paused system that has locked the only chunk with room, or releases the lock. */
static void lock_chunk(const struct sg_vol *vol, u64 chunk, bool on)
{
	sg_store64(sg_state_word(vol, 9), on ? SG_SLOT_WORD(SG_SLOT_LIVE, 77) : 0);
	sg_store64(&chunk_at(vol, chunk)->lock.word, on ? SG_LOCK_WORD(9, 77) : 0);
}

static void *give_back(void *arg)
{
	struct sg_vol *vol = arg;

	sg_sleep_us(30000);
	sg_store64(&chunk_at(vol, sg_chunks(vol) - 2)->lock.word, 0);
	return NULL;
}

static void *free_another(void *arg)
{
	struct sg_vol *vol = arg;

	sg_sleep_us(30000);
	memset(chunk_at(vol, sg_chunks(vol) - 3)->map, 0, sizeof(chunk_at(vol, 0)->map));
	return NULL;
}

/* A chunk stays locked, and meanwhile another chunk gets free pages. */
static void room_elsewhere(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	u64 chunk = sg_chunks(vol) - 2, off, got;
	void *maps = keep_chunks(vol);
	struct sg_tx *tx;
	pthread_t id;

	while (sg_space_mend_hints(vol))
		;
	take_all_but(vol, chunk);
	set_hints(vol, 0);
	lock_chunk(vol, chunk, true);
	CHECK_OK(pthread_create(&id, NULL, free_another, vol));
	tx = begin(vol);
	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got));
	CHECK_EQ(off >> SG_CHUNK_SHIFT, chunk - 1);
	sg_tx_abort(tx);
	CHECK_OK(pthread_join(id, NULL));
	lock_chunk(vol, chunk, false);
	put_back(vol, maps);
	sg_space_rebuild_hints(vol);
	vol_end(vol);
	printf("ok room in another chunk\n");
}

/* The ledger cannot grow while the chunk is locked. Only the first attempt to grow it waits. */
static void growth_in_vain(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	u64 chunk = sg_chunks(vol) - 2, start;
	void *maps = keep_chunks(vol);
	unsigned int i;

	while (sg_space_mend_hints(vol))
		;
	take_all_but(vol, chunk);
	set_hints(vol, 0);
	lock_chunk(vol, chunk, true);
	CHECK_EQ(sg_ledger_grow(vol), -ENOSPC);
	start = sg_ticks();
	for (i = 0; i < 20; i++)
		CHECK_EQ(sg_ledger_grow(vol), -ENOSPC);
	CHECK(sg_ticks() - start < 10000000000ULL);
	lock_chunk(vol, chunk, false);
	CHECK_OK(sg_ledger_grow(vol));
	put_back(vol, maps);
	sg_space_rebuild_hints(vol);
	sg_abandon(vol);
	test_unmap(vol->base, 64 * MIB);
	free(vol);
	printf("ok the ledger cannot grow\n");
}

/*
 * A thread with a fatal signal gives up soon, with or without a locked chunk. Other threads wait
 * for a bounded time, and find room if the chunk's lock is released.
 */
static void room_is_locked(void)
{
	struct sg_vol *vol = vol_new(HUGE);
	u64 chunk = sg_chunks(vol) - 2, off, got;
	double begun;
	struct sg_tx *tx;
	pthread_t id;

	while (sg_space_mend_hints(vol))
		;
	take_all_but(vol, chunk);
	set_hints(vol, 0);
	lock_chunk(vol, chunk, true);
	sg_interrupt_hook = killed;
	tx = begin(vol);
	begun = cpu_seconds();
	CHECK_EQ(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got), -EINTR);
	CHECK(cpu_seconds() - begun < 0.5);
	sg_tx_abort(tx);
	sg_interrupt_hook = NULL;

	tx = begin(vol);		/* the wait for a locked chunk is bounded */
	tx->holds_chunk = true;
	begun = cpu_seconds();
	CHECK_EQ(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got), -ENOSPC);
	CHECK(cpu_seconds() - begun < 0.5);
	tx->holds_chunk = false;
	sg_tx_abort(tx);

	test_within(60, "a wait for a chunk that stays locked");
	tx = begin(vol);
	begun = cpu_seconds();
	CHECK_EQ(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got), -ENOSPC);
	CHECK(cpu_seconds() - begun < 0.5);
	sg_tx_abort(tx);
	test_within(0, NULL);

	CHECK_OK(pthread_create(&id, NULL, give_back, vol));
	tx = begin(vol);
	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got));
	CHECK_EQ(off >> SG_CHUNK_SHIFT, chunk);
	sg_tx_abort(tx);
	CHECK_OK(pthread_join(id, NULL));
	lock_chunk(vol, chunk, false);
	sg_abandon(vol);
	test_unmap(vol->base, HUGE);
	free(vol);
	printf("ok room is locked\n");
}

/* --- several systems at the same time -------------------------------------------------------- */

static u64 stop;

static void *doubter(void *arg)
{
	struct sg_vol *vol = arg;

	while (!sg_load64(&stop)) {
		u64 *w = (void *)(hints(vol) + rng_below(&(struct rng){ sg_ticks() }, 2) * half(vol));

		sg_store64(w, 0);
		sg_space_doubt_hints(vol);
		sg_space_mend_hints(vol);
	}
	return NULL;
}

/* With any hints, no system gets a page of another system. */
static void others_meanwhile(void)
{
	static u8 buf[3 << 20];
	u64 n = test_amount(100, 400, 4000);
	pthread_t id;
	struct tvol t;

	tvol_make(&t, 64 * MIB);
	CHECK_OK(pthread_create(&id, NULL, doubter, &t.v));
	while (n--) {
		struct sg_iref f = test_create(&t.v, &t.root, "f", SG_S_IFREG | 0600);

		test_fill(&t.v, &f, 0, sizeof(buf));
		CHECK_OK(sg_unlink(&t.v, &t.root, "f", 1, 1));
		CHECK_OK(sg_evict(&t.v, &f));
	}
	sg_store64(&stop, 1);
	CHECK_OK(pthread_join(id, NULL));
	while (sg_space_mend_hints(&t.v))
		;
	tvol_drop(&t);
	printf("ok several systems\n");
}

/* Takes a run of up to @want pages, frees it again, and returns its length. */
static u64 taken(struct sg_vol *vol, u64 want, u64 *chunk)
{
	struct sg_tx *tx = begin(vol);
	u64 off, got;

	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, want, &off, &got));
	sg_tx_abort(tx);
	*chunk = off >> SG_CHUNK_SHIFT;
	return got;
}

/*
 * Every second page is in use. A request for a long run examines few chunks, and gets the longest
 * run there. Each search begins where the previous one ended, so a later request finds the only
 * long run.
 */
static void fragmented(void)
{
	struct sg_vol *vol = vol_new(1024 * GIB);
	void *maps = keep_chunks(vol);
	u64 chunk, last, c, n;
	unsigned int i;
	double used;

	while (sg_space_mend_hints(vol))
		;
	for (c = 0; c < sg_chunks(vol); c++)
		for (i = 0; i < 8; i++)
			chunk_at(vol, c)->map[i] |= 0xaaaaaaaaaaaaaaaaULL;
	sg_space_rebuild_hints(vol);
	CHECK_EQ(taken(vol, 1, &chunk), 1);

	chunk_at(vol, chunk + 100)->map[3] = 0xffffffff;
	chunk_at(vol, chunk + 100)->map[4] |= 1;
	CHECK_EQ(taken(vol, 256, &c), 32);
	CHECK_EQ(c, chunk + 100);
	chunk_at(vol, c)->map[3] = ~0ULL;

	used = cpu_seconds();
	for (i = 0; i < 20; i++)
		CHECK_EQ(taken(vol, 256, &last), 1);
	CHECK(cpu_seconds() - used < 0.2);

	c = (last + 20000) % sg_chunks(vol);
	memset(chunk_at(vol, c)->map, 0, sizeof(chunk_at(vol, c)->map));
	for (n = 0; taken(vol, 256, &chunk) == 1; n++)
		CHECK(n < 2000);
	CHECK_EQ(chunk, c);
	put_back(vol, maps);
	sg_space_rebuild_hints(vol);
	vol_end(vol);
	printf("ok fragmented\n");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	made_where_it_counts();
	made_in_little();
	joined_then_mended();
	alone_then_mended();
	what_the_dead_freed();
	found_in_doubt();
	found_beyond_doubt();
	false_promises_end();
	room_is_locked();
	room_elsewhere();
	growth_in_vain();
	others_meanwhile();
	fragmented();
	return test_done();
}
