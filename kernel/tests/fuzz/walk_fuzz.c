// SPDX-License-Identifier: Apache-2.0
/* Walks, reads, writes, truncates and moves files with damaged tables, root words and sizes. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_volume(data, size, FZ_WALK);
	struct sg_vol v;

	if (!mem || !fuzz_join(&v, mem, false))
		return 0;
	fuzz_read_all(&v);
	fuzz_data(&v, fuzz_script(data, size));
	fuzz_data(&v, (u8)(fuzz_script(data, size) * 7));
	sg_leave(&v);
	return 0;
}
