// SPDX-License-Identifier: Apache-2.0
/*
 * Checks any volume without a store, then repairs it. If the repair reports that it has repaired
 * everything, a check finds nothing, and a system that uses the volume reports no damage.
 */
#include "fuzz.h"

static void met_damage(struct sg_vol *v, u64 ino, u64 off)
{
	(void)v;
	test_fail(__FILE__, __LINE__, "damage after repair: inode %" PRIu64 ", offset 0x%" PRIx64, ino,
		  off);
}

static void found(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	char line[300];

	snprintf(line, sizeof(line), "%s: %s (inode %" PRIu64 ", offset 0x%" PRIx64 ")%s", (char *)ctx,
		 what, ino, off, fixed ? ", fixed" : "");
	fuzz_say(line);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct sg_check_opts only = { .mode = SG_CHECK_ONLY, .report = found, .ctx = "only" };
	const struct sg_check_opts repair = { .mode = SG_CHECK_REPAIR, .report = found, .ctx = "repair",
					      .holding = test_end_lapses };
	u8 *mem = fuzz_volume(data, size, FZ_ALL);
	struct sg_check_result res;
	struct sg_vol v;

	if (!mem)
		return 0;
	fuzz_protect(true);
	sg_check(mem, FUZZ_SIZE, &only, &res);
	fuzz_protect(false);
	if (sg_check(mem, FUZZ_SIZE, &repair, &res) || res.found > res.fixed)
		return 0;	/* the repair reports that it cannot repair everything */
	test_clean(mem, FUZZ_SIZE);
	if (!fuzz_join(&v, mem, false))
		test_fail(__FILE__, __LINE__, "the repaired volume cannot be joined: %s", v.why);
	v.on_damage = met_damage;
	fuzz_read_all(&v);
	fuzz_names(&v, fuzz_script(data, size));
	fuzz_data(&v, fuzz_script(data, size));
	sg_leave(&v);
	test_clean(mem, FUZZ_SIZE);
	return 0;
}
