// SPDX-License-Identifier: Apache-2.0
/*
 * Computes crc32c (Castagnoli) without final inversion, with the processor's instruction if it has
 * one, otherwise with a table.
 */
#include <nmmintrin.h>
#include <sg_os.h>

static u32 by_table(u32 crc, const u8 *p, size_t len)
{
	static u32 table[256];
	unsigned int i, k;

	if (!__atomic_load_n(&table[1], __ATOMIC_ACQUIRE))
		/* stores entry 1 last: a value there means that the table is complete */
		for (i = 256; i-- > 0;) {
			u32 c = i;

			for (k = 0; k < 8; k++)
				c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
			__atomic_store_n(&table[i], c, __ATOMIC_RELEASE);
		}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

__attribute__((target("sse4.2"))) static inline u64 word(u64 crc, const u8 *p)
{
	u64 w;

	memcpy(&w, p, 8);
	return _mm_crc32_u64(crc, w);
}

__attribute__((target("sse4.2"))) static u32 by_instruction(u32 crc, const u8 *p, size_t len)
{
	u64 c = crc;

	for (; len >= 64; len -= 64, p += 64) {
		c = word(word(word(word(c, p), p + 8), p + 16), p + 24);
		c = word(word(word(word(c, p + 32), p + 40), p + 48), p + 56);
	}
	for (; len >= 8; len -= 8, p += 8)
		c = word(c, p);
	for (; len; len--, p++)
		c = _mm_crc32_u8((u32)c, *p);
	return (u32)c;
}

u32 sg_crc32c(u32 crc, const void *buf, size_t len)
{
	if (__builtin_cpu_supports("sse4.2"))
		return by_instruction(crc, buf, len);
	return by_table(crc, buf, len);
}
