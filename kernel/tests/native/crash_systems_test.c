// SPDX-License-Identifier: Apache-2.0
/*
 * Two systems. One is killed after each store of each operation of the script. The other system
 * immediately continues with its own files. As soon as it detects the death, it replays the dead
 * system's journal, and uses the files that the dead system had locked. It finds the tree from
 * before or after the operation. Some kills hit the recovering system as well.
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
	printf("%" PRIu64 " images, %" PRIu64 " interrupted recoveries\n", w.c.images,
	       w.recoveries);
	cw_drop(&w);
	return test_done();
}
