// SPDX-License-Identifier: GPL-2.0
/*
 * The hash of names: SipHash-1-3 with the volume's own key.
 *
 * Cookies of readdir expose a name's hash to every user. So it must not be possible to compute the
 * key from hashes. Otherwise any user could make names that all fall into one bucket.
 */
#include "dir/dir_index.h"

struct sip {
	u64 v0, v1, v2, v3;
};

static inline u64 rotl(u64 x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 = rotl(s->v2, 32);
}

static inline void sip_word(struct sip *s, u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len)
{
	u64 k0 = vol->sb.hash_seed[0], k1 = vol->sb.hash_seed[1], hash;
	struct sip s = {
		.v0 = k0 ^ 0x736f6d6570736575ULL,
		.v1 = k1 ^ 0x646f72616e646f6dULL,
		.v2 = k0 ^ 0x6c7967656e657261ULL,
		.v3 = k1 ^ 0x7465646279746573ULL,
	};
	u32 i;

	for (i = 0; i + 8 <= len; i += 8)
		sip_word(&s, sg_name_word(name + i));
	sip_word(&s, sg_name_tail(name, len) | (u64)len << 56);
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	hash = (s.v0 ^ s.v1 ^ s.v2 ^ s.v3) >> (64 - SG_DIR_HASH_BITS);
	/* the largest hash would give cookies above COOKIE_END (readdir.c) */
	return hash == SG_DIR_HASH_MAX ? hash - 1 : hash;
}
