// SPDX-License-Identifier: Apache-2.0
/*
 * Recovers damaged records, ledgers and slots of a dead system; then uses the volume, leaves it,
 * and recovers again.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_volume(data, size, FZ_RECOVER);
	struct sg_vol v;

	if (!mem || !fuzz_join(&v, mem, false))
		return 0;
	fuzz_names(&v, fuzz_script(data, size));
	sg_abandon(&v);
	if (!fuzz_join(&v, mem, false))
		return 0;
	fuzz_data(&v, fuzz_script(data, size));
	sg_leave(&v);
	return 0;
}
