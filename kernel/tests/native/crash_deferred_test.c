// SPDX-License-Identifier: Apache-2.0
/*
 * The script of crash_test.c, with a ledger without room for inodes: the engine puts all deferred
 * inodes on lists (deferred_inodes.c). After a crash at any store, recovery finds intact lists.
 */
#include "crash_script.h"

int main(void)
{
	u64 thorough = test_amount(0, 1, 2), i;
	struct cw w;

	cw_make(&w, TEST_SMALL, test_seed());
	w.c.every = thorough ? 1 : 64;
	w.c.samples = thorough > 1 ? 30 : 3;
	w.nest = thorough > 1 ? 40 : 400;
	for (i = 0; i < sizeof(script) / sizeof(script[0]); i++) {
		w.t.v.deferred_on_lists = true;	/* each mount clears this flag */
		CHECK(cw_do(&w, &script[i]) >= 0);
	}
	/*
	 * several inodes are on the list: the first, the last and a middle one are removed from it
	 */
	for (i = 0; i < 6; i++) {
		char name[] = { 'u' + (char)i, 0 };

		w.c.every = 40;
		w.t.v.deferred_on_lists = true;
		CHECK_OK(DO(&w, CREATE, name));
		CHECK_EQ(DO(&w, WRITE, name, .len = 5000), 5000);
		w.c.every = thorough ? 1 : 64;
		CHECK_OK(DO(&w, UNLINK, name));
		CHECK_OK(DO(&w, EVICT));
		if (i % 3 == 2)
			CHECK_OK(DO(&w, REMOUNT));
	}
	printf("%" PRIu64 " images, %" PRIu64 " interrupted recoveries\n", w.c.images,
	       w.recoveries);
	cw_drop(&w);
	return test_done();
}
