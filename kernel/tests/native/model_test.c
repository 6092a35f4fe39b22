// SPDX-License-Identifier: Apache-2.0
/*
 * Random operations on volumes of several sizes, compared with the model: what each returns, and
 * every now and then the whole tree, the counters, and what sg_check() says. The small volume is
 * full most of the time, the others seldom.
 */
#include "model.h"

static void run(u64 size, u64 ops, u64 every, u64 seed)
{
	struct model m;
	u64 i;

	model_make(&m, size, seed);
	for (i = 1; i <= ops; i++) {
		model_step(&m);
		if (i % every)
			continue;
		model_compare(&m);
		model_remount(&m, rng_chance(&m.rng, 50));
		model_compare(&m);
	}
	model_compare(&m);
	printf("%3" PRIu64 " MiB: %" PRIu64 " operations, %" PRIu64 " changes, %" PRIu64
	       " on a full volume, %" PRIu64 " recoveries, %u inodes at the end\n", size >> 20, m.ops,
	       m.done, m.full, m.recoveries, m.inodes);
	fflush(stdout);
	model_drop(&m);
}

int main(void)
{
	u64 ops = test_amount(20000, 1000000, 10000000), seed = test_seed(), i;

	for (i = 0; i < 4; i++)		/* short runs find what needs an empty volume */
		run(16 << 20, ops / 100, 500, seed + i);
	run(16 << 20, ops * 45 / 100, 2000, seed + 10);
	run(64 << 20, ops * 20 / 100, 4000, seed + 20);
	run(256 << 20, ops * 31 / 100, 10000, seed + 30);
	return test_done();
}
