// SPDX-License-Identifier: Apache-2.0
/* SHA-256 (FIPS 180-4), for the digests of sealed files. */
#include <string.h>
#include "tool.h"

static const u32 k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static u32 turned(u32 x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

static u32 word_at(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static void add_block(u32 state[8], const u8 *block)
{
	u32 w[64], v[8], a, b;
	unsigned int i;

	for (i = 0; i < 16; i++)
		w[i] = word_at(block + 4 * i);
	for (; i < 64; i++) {
		a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
		b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(v, state, sizeof(v));
	for (i = 0; i < 64; i++) {
		a = v[7] + (turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)) +
		    ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		b = (turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)) +
		    ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += a;
		v[0] = a + b;
	}
	for (i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256(const void *data, size_t len, u8 out[32])
{
	u32 state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	const u8 *p = data;
	size_t left = len, i;
	u8 end[128] = { 0 };

	for (; left >= 64; left -= 64, p += 64)
		add_block(state, p);
	memcpy(end, p, left);
	end[left] = 0x80;
	i = left < 56 ? 64 : 128;
	for (left = 0; left < 8; left++)
		end[i - 1 - left] = (u8)((u64)len * 8 >> (8 * left));
	for (left = 0; left < i; left += 64)
		add_block(state, end + left);
	for (i = 0; i < 32; i++)
		out[i] = (u8)(state[i / 4] >> (24 - i % 4 * 8));
}
