// SPDX-License-Identifier: Apache-2.0
/*
 * The checksum by the processor's instruction equals the definition, bit by bit, for each length up
 * to some cache lines, at each alignment.
 */
#include "test.h"

#define BYTES	300u

static u32 by_bits(u32 crc, const u8 *p, size_t len)
{
	unsigned int bit;

	for (; len; len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

int main(void)
{
	struct rng rng = { test_seed() };
	unsigned int at, len;
	u8 bytes[BYTES + 8];

	rng_fill(&rng, bytes, sizeof(bytes));
	for (at = 0; at < 8; at++)
		for (len = 0; len <= BYTES; len++) {
			test_note("%u bytes at %u", len, at);
			CHECK_EQ(sg_crc32c(~0u, bytes + at, len), by_bits(~0u, bytes + at, len));
		}
	/* the check value that all descriptions of CRC-32C have */
	CHECK_EQ((u32)~sg_crc32c(~0u, "123456789", 9), 0xe3069283u);
	return test_done();
}
