// SPDX-License-Identifier: Apache-2.0
/*
 * Large leaves on an aged volume. Files of all sizes come and go at random for ten times the
 * volume's size, while 70 % of it are in use. Then most of a new large file still is in leaves of
 * 2 MiB, since small runs gather in few chunks. Nothing touches the bytes of the files, so a large
 * volume takes little memory.
 */
#include <sys/stat.h>
#include "internal.h"
#include "test.h"

#define SIZE	(1ULL << 30)
#define PAGES	(SIZE / SG_PAGE)
#define FULL	(PAGES / 10 * 7)
#define TIMES	10u		/* the volume's size, in new files */
#define DIRS	64u
#define FILES	100000u
#define PIECE	16u		/* pages of one write */
#define TICK	20u		/* files that a system makes in 5 ms: 2 GB/s */
#define LARGE	16384u		/* pages of the large file */
#define LEAVES	24u		/* of its 32 parts of 2 MiB, at least */

static struct tvol t;
static struct sg_iref dir[DIRS];
static struct file {
	unsigned int id, pages;
} file[FILES];
static unsigned int files, next_id;
static u64 used;
static struct rng rng;

static u32 name_of(char name[16], unsigned int id)
{
	return (u32)snprintf(name, 16, "%u", id);
}

/* Returns a size in pages: most files are small, and most pages belong to large files. */
static unsigned int some_size(void)
{
	u64 r = rng_below(&rng, 1000);

	if (r < 600)
		return 1 + (unsigned int)rng_below(&rng, 16);
	if (r < 900)
		return 16 + (unsigned int)rng_below(&rng, 240);
	if (r < 985)
		return 256 + (unsigned int)rng_below(&rng, 768);
	return 1024 + (unsigned int)rng_below(&rng, 3072);
}

static struct sg_iref make(unsigned int pages, unsigned int piece)
{
	struct sg_iref ref;
	struct sg_write w;
	char name[16];
	u64 done;

	CHECK(files < FILES);
	name_of(name, next_id);
	ref = test_create(&t.v, &dir[next_id % DIRS], name, S_IFREG | 0600);
	for (done = 0; done < pages; done += w.len / SG_PAGE) {
		u64 len = SG_MIN((u64)piece, pages - done) * SG_PAGE;

		CHECK_OK(sg_write_begin(&t.v, &ref, done * SG_PAGE, len, SG_WRITE_LOCKED, &w));
		CHECK_OK(sg_write_end(&t.v, &ref, &w, w.len, 1));
	}
	file[files++] = (struct file){ next_id++, pages };
	used += pages;
	if (!(next_id % TICK))
		CHECK(sg_acknowledge(&t.v) > 0);
	return ref;
}

static void discard(unsigned int i)
{
	struct sg_iref ref;
	char name[16];
	u32 len = name_of(name, file[i].id);

	ref = test_lookup(&t.v, &dir[file[i].id % DIRS], name);
	CHECK_OK(sg_unlink(&t.v, &dir[file[i].id % DIRS], name, len, 1));
	CHECK_OK(sg_evict(&t.v, &ref));
	used -= file[i].pages;
	file[i] = file[--files];
}

static void churn(u64 pages)
{
	while (pages) {
		unsigned int n = some_size();

		while (used + n > FULL)
			discard((unsigned int)rng_below(&rng, files));
		make(n, PIECE);
		pages -= SG_MIN(pages, (u64)n);
	}
}

static unsigned int empty_chunks(void)
{
	unsigned int n = 0, i;
	u64 c;

	for (c = 0; c < sg_chunks(&t.v); c++) {
		const struct sg_chunk *k = sg_at(&t.v, sg_chunk_off(&t.v, c));
		u64 any = 0;

		for (i = 0; i < 8; i++)
			any |= k->map[i];
		n += !any;
	}
	return n;
}

/* Returns the number of runs of contiguous pages of a file. */
static unsigned int runs_of(const struct file *f)
{
	struct sg_run run;
	struct sg_iref ref;
	char name[16];
	unsigned int n = 0;
	u64 page;

	name_of(name, f->id);
	ref = test_lookup(&t.v, &dir[f->id % DIRS], name);
	for (page = 0; page < f->pages; page += run.pages, n++)
		CHECK_OK(sg_walk(&t.v, &ref, page, f->pages - page, &run));
	return n;
}

static double mean_runs(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < files; i++)
		n += runs_of(&file[i]);
	return (double)n / (double)used * 256;
}

/* Returns how many parts of 2 MiB of a new large file are large leaves; prints the rest. */
static unsigned int large_leaves(const char *when)
{
	unsigned int empty = empty_chunks(), leaves = 0, runs = 0;
	struct sg_iref ref = make(LARGE, 256);
	struct sg_run run;
	u64 page;

	for (page = 0; page < LARGE; page += run.pages, runs++) {
		CHECK_OK(sg_walk(&t.v, &ref, page, SG_CHUNK_PAGES - page % SG_CHUNK_PAGES, &run));
		leaves += run.level == 2;
	}
	discard(files - 1);
	printf("%s: %u files with %.1f runs per MiB, %u of %" PRIu64 " chunks empty; a file of 64 MiB: %u of 32 leaves, %u runs\n",
	       when, files, mean_runs(), empty, sg_chunks(&t.v), leaves, runs);
	return leaves;
}

static void age(u64 seed)
{
	unsigned int i;
	char name[16];

	rng = (struct rng){ seed };
	files = next_id = 0;
	used = 0;
	tvol_make(&t, SIZE);
	t.v.maintained = true;
	for (i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		dir[i] = test_create(&t.v, &t.root, name, S_IFDIR | 0700);
	}
	while (used < FULL - 4096)
		make(some_size(), PIECE);
	CHECK(large_leaves("filled") >= LEAVES);
	for (i = 1; i <= TIMES; i++) {
		churn(PAGES);
		if (i == 1 || i == 2 || i == 5)
			large_leaves("churned");
	}
	CHECK(large_leaves("churned ten times") >= LEAVES);
	test_clean(t.mem, t.size);
	tvol_drop(&t);
}

int main(void)
{
	u64 seed = test_seed(), i;

	for (i = 0; i < 3; i++)
		age(seed + i);
	return test_done();
}
