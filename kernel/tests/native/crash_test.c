// SPDX-License-Identifier: Apache-2.0
/*
 * A script with at least one operation of each kind, judged at every crash point: after each store
 * (the VM is killed), and at each fence with each set of lines that may have reached memory (the
 * power fails). Some crashes interrupt the recovery from another crash.
 */
#include "crash_script.h"

/* Makes enough names for several splits, and removes them. */
static void many_names(struct cw *w, unsigned int n)
{
	static const char pad[] = "a-name-that-takes-its-place-in-the-bucket-so-that-it-splits-soon";
	char path[100];
	unsigned int i;

	CHECK_OK(DO(w, MKDIR, "many"));
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "many/%s-%u", pad, i);
		CHECK_OK(DO(w, CREATE, path));
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "many/%s-%u", pad, i);
		CHECK_OK(DO(w, UNLINK, path));
		CHECK_OK(DO(w, EVICT));
	}
	CHECK_OK(DO(w, RMDIR, "many"));
	CHECK_OK(DO(w, EVICT));
	CHECK_OK(DO(w, RECLAIM));
}

int main(void)
{
	u64 thorough = test_amount(0, 1, 2), i;
	struct cw w;

	cw_make(&w, TEST_SMALL, test_seed());
	w.c.every = thorough ? 1 : 16;
	w.c.samples = thorough > 1 ? 30 : 3;
	w.nest = thorough > 1 ? 40 : 400;
	for (i = 0; i < sizeof(script) / sizeof(script[0]); i++)
		CHECK(cw_do(&w, &script[i]) >= 0);
	w.c.every = thorough > 1 ? 1 : 40;
	many_names(&w, thorough > 1 ? 200 : 70);
	printf("%" PRIu64 " images, %" PRIu64 " interrupted recoveries\n", w.c.images,
	       w.recoveries);
	cw_drop(&w);
	return test_done();
}
