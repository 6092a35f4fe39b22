// SPDX-License-Identifier: Apache-2.0
/*
 * Mounts any volume: first read-only, when the engine may store nothing; then joins, uses and
 * leaves it.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_volume(data, size, FZ_ALL);
	struct sg_probe probe;
	struct sg_vol v;

	if (!mem)
		return 0;
	fuzz_protect(true);
	CHECK_OK(sg_probe(mem, FUZZ_SIZE, &probe));
	if (fuzz_join(&v, mem, true))
		fuzz_read_all(&v);
	fuzz_protect(false);
	if (!fuzz_join(&v, mem, false))
		return 0;
	fuzz_read_all(&v);
	fuzz_names(&v, fuzz_script(data, size));
	fuzz_data(&v, fuzz_script(data, size));
	sg_leave(&v);
	return 0;
}
