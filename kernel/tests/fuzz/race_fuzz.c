// SPDX-License-Identifier: Apache-2.0
/*
 * An attacker changes the volume during reads: a value may change after its check (D10). A reader
 * may get any data, but returns, and never accesses memory outside the volume.
 */
#include "fuzz.h"

#define TURNS	3

static void look(void *ctx)
{
	unsigned int i;

	for (i = 0; i < TURNS; i++)
		fuzz_read_all(ctx);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_race_volume(data, size, FZ_ALL);
	struct sg_vol v;

	if (mem && fuzz_join(&v, mem, true))
		fuzz_race(look, &v);
	return 0;
}
