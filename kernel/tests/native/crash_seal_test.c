// SPDX-License-Identifier: Apache-2.0
/*
 * Sealing, judged at a kill after each store and at a power cut at each fence: the file is sealed
 * or it is not, and has its root or none. Then the same with a second system, which continues.
 */
#include "internal.h"
#include "crash_work.h"

#define OP(k, ...)	{ .kind = CW_##k, __VA_ARGS__ }

static const struct cw_op script[] = {
	OP(CREATE, "f"), OP(WRITE, "f", .len = 9000),
	OP(SEAL, "f", .len = 1), OP(SEAL, "f", .len = 1), OP(ROOT, "f"), OP(SEAL, "f"),
	OP(WRITE, "f", .pos = 9000, .len = 5000), OP(SEAL, "f", .len = 1), OP(ROOT, "f"),
	OP(SETATTR, "f", .len = 0751), OP(XATTR, "f", .b = "one", .len = 100), OP(LINK, "g", .b = "f"),
	OP(CREATE, "e"), OP(SEAL, "e", .len = 1), OP(REMOUNT), OP(RENAME, "f", .b = "e"), OP(EVICT),
	OP(UNLINK, "e"), OP(UNLINK, "g"), OP(EVICT), OP(RECLAIM),
};

static void run(bool beside, u64 thorough)
{
	struct cw w;
	u64 i;

	cw_make(&w, TEST_SMALL, test_seed());
	/*
	 * sets the feature bit in both superblocks, as the volume's first seal does; the test does
	 * not judge that
	 */
	CHECK_OK(sg_feature_allow(&w.t.v, SG_RO_COMPAT_SEALS));
	crash_reset(&w.c, w.t.mem);
	if (beside)
		cw_beside(&w);
	w.c.every = thorough ? 1 : 8;
	w.c.samples = thorough > 1 ? 30 : 4;
	w.nest = thorough > 1 ? 40 : 300;
	for (i = 0; i < sizeof(script) / sizeof(script[0]); i++)
		CHECK(cw_do(&w, &script[i]) >= 0);
	cw_drop(&w);
}

int main(void)
{
	u64 thorough = test_amount(0, 1, 2);

	run(false, thorough);
	run(true, thorough);
	return test_done();
}
