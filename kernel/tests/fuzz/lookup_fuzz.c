// SPDX-License-Identifier: Apache-2.0
/* Looks up, lists and changes names in damaged directories with damaged inodes. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_volume(data, size, FZ_LOOKUP);
	struct sg_vol v;

	if (!mem || !fuzz_join(&v, mem, false))
		return 0;
	fuzz_read_all(&v);
	fuzz_names(&v, fuzz_script(data, size));
	fuzz_names(&v, (u8)(fuzz_script(data, size) * 7));
	sg_leave(&v);
	return 0;
}
