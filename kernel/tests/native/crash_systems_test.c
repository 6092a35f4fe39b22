// SPDX-License-Identifier: Apache-2.0
/*
 * Two systems; one is killed after each store of each operation of the script, the other one goes
 * on: at once with what is its own, and as soon as it knows of the death with what the dead one
 * holds, whose journal it replays. It finds the tree as it was before the operation, or after it.
 * Some deaths strike the recoverer as well.
 */
#include "crash_script.h"

int main(void)
{
	u64 thorough = test_amount(0, 1, 2), i;
	struct cw w;

	cw_make(&w, TEST_SMALL, test_seed());
	cw_beside(&w);
	w.c.every = thorough ? 1 : 16;
	w.nest = thorough > 1 ? 40 : 400;
	for (i = 0; i < sizeof(script) / sizeof(script[0]); i++)
		CHECK(cw_do(&w, &script[i]) >= 0);
	printf("%" PRIu64 " images, %" PRIu64 " recoveries crashed in turn\n", w.c.images,
	       w.recoveries);
	cw_drop(&w);
	return test_done();
}
