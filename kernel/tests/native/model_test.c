// SPDX-License-Identifier: Apache-2.0
/*
 * Random operations on volumes of several sizes, compared with the model. The test compares each
 * result, and periodically the complete tree, the counters, and the findings of sg_check(). The
 * small volume is full most of the time, the others seldom. `model_test atomic` runs only the part
 * with atomic writes: SG_OPS=1000000 for a million operations.
 */
#include <sys/mman.h>
#include "internal.h"
#include "model.h"

static u64 free_pages(struct model *m)
{
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&m->t.v, &st));
	CHECK_EQ(st.pages, sg_size(&m->t.v) / SG_PAGE - m->t.v.sb.data_off / SG_PAGE - 1);
	return st.free_pages;
}

/*
 * Grows the volume and the model's free space by a chunk. Makes only the superblock's page
 * writable.
 */
static void grow(struct model *m)
{
	u64 size = sg_size(&m->t.v), had = free_pages(m);
	char why[200];

	if (size == m->t.size)
		return;
	test_note("op %" PRIu64 ": grow from %" PRIu64, m->ops, size);
	CHECK_OK(mprotect(m->t.mem, SG_PAGE, PROT_READ | PROT_WRITE));
	CHECK_OK(sg_grow(&m->t.v, size + SG_CHUNK, 0, why));
	CHECK_OK(mprotect(m->t.mem, SG_PAGE, PROT_READ));
	CHECK_EQ(free_pages(m), had + SG_CHUNK_PAGES);
}

/* @atomic: all files have data=atomic, unless an operation clears the attribute. */
static void run_in(u64 size, u64 memory, u64 ops, u64 every, u64 seed, bool atomic)
{
	struct model m;
	u64 i;

	model_make(&m, size, memory, seed);
	if (atomic)
		model_all_atomic(&m);
	for (i = 1; i <= ops; i++) {
		model_step(&m);
		if (size < memory && i % (ops / 20 + 1) == 0)
			grow(&m);
		if (i % every)
			continue;
		model_compare(&m);
		model_remount(&m, rng_chance(&m.rng, 50));
		model_compare(&m);
	}
	model_compare(&m);
	printf("%3" PRIu64 " MiB: %" PRIu64 " operations, %" PRIu64 " changes, %" PRIu64
	       " on a full volume, %" PRIu64 " recoveries, %u inodes at the end\n", memory >> 20, m.ops,
	       m.done, m.full, m.recoveries, m.inodes);
	fflush(stdout);
	model_drop(&m);
}

static void run(u64 size, u64 ops, u64 every, u64 seed)
{
	run_in(size, size, ops, every, seed, false);
}

static void run_atomic(u64 size, u64 ops, u64 every, u64 seed)
{
	run_in(size, size, ops, every, seed, true);
}

static void run_plain(u64 seed)
{
	u64 ops = test_amount(20000, 1000000, 10000000), i;

	for (i = 0; i < 4; i++)		/* short runs find the defects of nearly empty volumes */
		run(16 << 20, ops / 100, 500, seed + i);
	run(16 << 20, ops * 45 / 100, 2000, seed + 10);
	run_in(16 << 20, 48 << 20, ops * 10 / 100, 1000, seed + 15, false);
	run(64 << 20, ops * 10 / 100, 4000, seed + 20);
	run(256 << 20, ops * 31 / 100, 10000, seed + 30);
}

int main(int argc, char **argv)
{
	u64 seed = test_seed(), ops;

	if (argc < 2 || strcmp(argv[1], "atomic"))
		run_plain(seed);
	ops = test_amount(6000, 150000, 1000000);
	run_atomic(16 << 20, ops * 50 / 100, 2000, seed + 40);
	run_atomic(64 << 20, ops * 30 / 100, 4000, seed + 50);
	run_atomic(256 << 20, ops * 20 / 100, 10000, seed + 60);
	return test_done();
}
