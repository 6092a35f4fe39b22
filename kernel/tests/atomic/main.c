// SPDX-License-Identifier: Apache-2.0
/*
 * cost write WAY BYTES aligned|unaligned: measures writes to a file that has all its pages.
 * cost read WAY OVERWRITES: measures reads of 4 KiB, after each page was overwritten so often.
 * cost mix varmail|webproxy WAY THREADS LOOPS: prints loops for each second.
 * cost check: compares what each way has written with a copy in memory.
 *
 * WAY: `atomic`, with the attribute; `place`, without; `pagelog`, a prototype of P3's logs
 * (pagelog.c). In the build SG_COW, `atomic` copies pages.
 *
 * For `write` and `read`, the program prints "OPS N". valgrind counts the instructions in
 * measured() meanwhile (--toggle-collect). A build with the recorder (SG_RECORD) also prints
 * "FENCES F LINES L BYTES B" of all N operations: fences, cache lines written back, bytes stored.
 * e2e/bench/atomic makes a page of these lines.
 */
#include <sys/stat.h>
#include "cost.h"
#ifdef SG_RECORD
#include "record.h"
#endif

#define SIZE		(64ULL << 20)
#define BATCH		16u	/* operations between two turns of the system's periodic work */
#define WARM		2u	/* batches that are not counted */
#define BATCHES		32u
#define SMALL		64u	/* bytes of an overwrite before a read */

/* --- the bed --------------------------------------------------------------------------------- */

static u8 model[COST_BYTES];

static void fill(struct cost_bed *b)
{
	static u8 bytes[SG_PAGE];
	u64 pos;

	/* page by page, so that the file gets no large leaf */
	for (pos = 0; pos < COST_BYTES; pos += SG_PAGE) {
		memset(bytes, (int)(pos >> SG_PAGE_SHIFT), SG_PAGE);
		CHECK_EQ(sg_write(&b->v, &b->file, pos, bytes, SG_PAGE, 1), SG_PAGE);
		memcpy(model + pos, bytes, SG_PAGE);
	}
}

static void bed_make(struct cost_bed *b, bool atomic)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1,
			      .flags = atomic ? SG_FL_ATOMIC : 0 };

	b->atomic = atomic;
	b->mem = test_map(SIZE);
	CHECK_OK(sg_format(b->mem, SIZE, &opts, b->v.why));
	CHECK_OK(sg_open(&b->v, b->mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&b->v, &test_identity, 0, false));
	CHECK_OK(sg_iref(&b->v, SG_INO_ROOT, &b->root));
	CHECK_OK(sg_create(&b->v, &b->root, "file", 4, &new, &b->file));
	fill(b);
}

/* Does the system's periodic work, so that deferred frees can be reclaimed. */
static void keep(struct cost_bed *b)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		CHECK(sg_maintain(&b->v) >= 0);
}

/* --- ways ------------------------------------------------------------------------------------ */

/* As the module writes to a file with the attribute. */
static void write_atomic(struct cost_bed *b, u64 pos, const u8 *buf, u64 len)
{
	bool filled;

	CHECK_OK(sg_write_atomic(&b->v, &b->file, pos, buf, len, 0, 1, &filled));
}

/* As the module writes in place: without the lock, where the pages exist. */
static void write_place(struct cost_bed *b, u64 pos, const u8 *buf, u64 len)
{
	struct sg_write w;
	u64 done;

	for (done = 0; done < len; done += w.len) {
		CHECK_OK(sg_write_begin(&b->v, &b->file, pos + done, len - done, 0, &w));
		sg_os_write(sg_at(&b->v, w.off), buf + done, w.len);
		sg_wb(sg_at(&b->v, w.off), w.len);
		CHECK_OK(sg_write_end(&b->v, &b->file, &w, w.len, 1));
	}
}

static void read_bytes(struct cost_bed *b, u64 pos, u8 *buf, u64 len)
{
	CHECK_EQ(sg_read(&b->v, &b->file, pos, buf, len), len);
}

static const struct way {
	const char *name;
	void (*write)(struct cost_bed *b, u64 pos, const u8 *buf, u64 len);
	void (*read)(struct cost_bed *b, u64 pos, u8 *buf, u64 len);
	bool atomic;
} ways[] = {
	{ "atomic", write_atomic, read_bytes, true },
	{ "place", write_place, read_bytes, false },
	{ "pagelog", pagelog_write, pagelog_read, true },
};

static const struct way *way_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(ways); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	fprintf(stderr, "cost: no way %s\n", name);
	exit(2);
}

static void way_make(struct cost_bed *b, const struct way *way)
{
	bed_make(b, way->atomic);
	if (way->write == pagelog_write)
		pagelog_make(b);
}

/* --- measuring ------------------------------------------------------------------------------- */

/**
 * struct job - operations to measure: all at the positions @pos, of @len bytes.
 */
struct job {
	struct cost_bed *b;
	const struct way *way;
	u64 pos[BATCH], len;
	bool reads;
};

static u8 buffer[SG_ATOMIC_MAX];

/*
 * valgrind counts the instructions of this function. The later reclaim of old pages is a part of a
 * write's cost.
 */
void measured(const struct job *j);
__attribute__((noinline, noclone)) void measured(const struct job *j)
{
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		if (j->reads)
			j->way->read(j->b, j->pos[i], buffer, j->len);
		else
			j->way->write(j->b, j->pos[i], buffer, j->len);
	}
	if (!j->reads)
		CHECK_OK(sg_reclaim(&j->b->v, ~0u));
}

#ifdef SG_RECORD
static struct {
	u64 fences, lines, bytes;
} sum;

static void recorded(const struct job *j)
{
	static struct rec rec;
	u64 k;

	if (!rec.base)
		rec_init(&rec, j->b->mem, SIZE, true);
	rec.n = 0;
	rec_to(&rec);
	measured(j);
	rec_to(NULL);
	rec_forget_pages(&rec);
	for (k = 0; k < rec.n; k++) {
		sum.fences += rec.ev[k].kind == REC_FENCE;
		sum.lines += rec.ev[k].kind == REC_WB;
		sum.bytes += rec.ev[k].kind == REC_STORE ? rec.ev[k].len : 0;
	}
}

static void say(void)
{
	printf("OPS %u FENCES %" PRIu64 " LINES %" PRIu64 " BYTES %" PRIu64 "\n", BATCH * BATCHES,
	       sum.fences, sum.lines, sum.bytes);
}
#else
static void recorded(const struct job *j)
{
	measured(j);
}

static void say(void)
{
	printf("OPS %u\n", BATCH * BATCHES);
}
#endif

static struct rng rng = { 37 };

/*
 * A position for @len bytes. Unaligned ones begin at an odd byte, so writes of 4 KiB and more begin
 * and end inside of pages.
 */
static u64 place_for(u64 len, bool aligned)
{
	u64 unit = SG_MIN(SG_MAX(len, 64u), (u64)SG_PAGE);
	u64 pos = rng_below(&rng, (COST_BYTES - len) / unit - 1) * unit;

	return aligned ? pos : pos + 1 + 2 * rng_below(&rng, unit / 2);
}

static void warm_up(const struct job *j)
{
	struct job one = *j;
	unsigned int i, k;

	for (i = 0; i < WARM; i++) {
		for (k = 0; k < BATCH; k++)
			one.pos[k] = place_for(j->len, true);
		for (k = 0; k < BATCH; k++)
			j->way->write(j->b, one.pos[k], buffer, j->len);
		keep(j->b);
		CHECK_OK(sg_reclaim(&j->b->v, ~0u));
	}
}

static void measure_writes(const struct way *way, u64 len, bool aligned)
{
	static struct cost_bed b;
	struct job j = { .b = &b, .way = way, .len = len };
	unsigned int i, k;

	way_make(&b, way);
	warm_up(&j);
	for (i = 0; i < BATCHES; i++) {
		for (k = 0; k < BATCH; k++)
			j.pos[k] = place_for(len, aligned);
		keep(&b);
		recorded(&j);
	}
	say();
}

static void measure_reads(const struct way *way, unsigned int overwrites)
{
	static struct cost_bed b;
	struct job j = { .b = &b, .way = way, .len = SG_PAGE, .reads = true };
	unsigned int i, k;
	u64 page;

	way_make(&b, way);
	for (i = 0; i < overwrites; i++)
		for (page = 0; page < COST_PAGES; page++) {
			way->write(&b, page * SG_PAGE + rng_below(&rng, SG_PAGE - SMALL), buffer,
				   SMALL);
			if (page % BATCH == 0) {
				keep(&b);
				CHECK_OK(sg_reclaim(&b.v, ~0u));
			}
		}
	for (i = 0; i < BATCHES; i++) {
		for (k = 0; k < BATCH; k++)
			j.pos[k] = rng_below(&rng, COST_PAGES) * SG_PAGE;
		recorded(&j);
	}
	say();
}

/* --- checking -------------------------------------------------------------------------------- */

/* A way that loses bytes would be fast. */
static void check(const struct way *way)
{
	static struct cost_bed b;
	static u8 got[COST_BYTES];
	unsigned int i;
	u64 pos, len;

	memset(&b, 0, sizeof(b));
	way_make(&b, way);
	for (i = 0; i < 20000; i++) {
		len = 1 + rng_size(&rng, SG_ATOMIC_MAX - 1);
		pos = rng_below(&rng, COST_BYTES - len);
		if (rng_chance(&rng, 20)) {
			pos &= ~(SG_PAGE - 1);
			len = SG_MIN(SG_ALIGN_UP(len, SG_PAGE), (u64)SG_ATOMIC_MAX);
			pos = SG_MIN(pos, COST_BYTES - len);
		}
		rng_fill(&rng, buffer, len);
		way->write(&b, pos, buffer, len);
		memcpy(model + pos, buffer, len);
		if (i % BATCH)
			continue;
		keep(&b);
		CHECK_OK(sg_reclaim(&b.v, ~0u));
		for (pos = 0; pos < COST_BYTES; pos += SG_ATOMIC_MAX)
			way->read(&b, pos, got + pos, SG_ATOMIC_MAX);
		test_note("%s, after %u writes", way->name, i + 1);
		CHECK(!memcmp(got, model, COST_BYTES));
	}
	sg_leave(&b.v);
	/* the prototype's blocks belong to no file */
	if (way->write != pagelog_write)
		test_clean(b.mem, SIZE);
	test_unmap(b.mem, SIZE);
}

static int usage(void)
{
	fprintf(stderr, "cost: see the comment at the top of kernel/tests/atomic/main.c\n");
	return 2;
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc == 5 && !strcmp(argv[1], "write")) {
		measure_writes(way_of(argv[2]), strtoull(argv[3], NULL, 0),
			       !strcmp(argv[4], "aligned"));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "read")) {
		measure_reads(way_of(argv[2]), (unsigned int)strtoul(argv[3], NULL, 0));
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "mix")) {
		mix_run(argv[2], way_of(argv[3])->atomic, (unsigned int)strtoul(argv[4], NULL, 0),
			(unsigned int)strtoul(argv[5], NULL, 0));
		return 0;
	}
	if (argc != 2 || strcmp(argv[1], "check"))
		return usage();
	for (i = 0; i < SG_ARRAY_SIZE(ways); i++)
		check(&ways[i]);
	return test_done();
}
