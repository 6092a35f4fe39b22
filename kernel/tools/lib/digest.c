// SPDX-License-Identifier: Apache-2.0
/*
 * The tree of hashes of a sealed file, as fs-verity makes it: SHA-256, blocks of 4 KiB, no salt. So
 * the digest of a file is that of `fsverity digest`.
 *
 * Level 0 has the hash of each block of the file; the last block is filled up with zeroes. The
 * hashes of a level, again in blocks, are the contents of the next one, up to a level of one hash:
 * the root. The root of an empty file is zero.
 */
#include <string.h>
#include "tool.h"

#define BLOCK	4096
#define LEVELS	8		/* 128^8 blocks are more than any file has */

/* @in: for each level, the hashes that are not yet in a complete block. */
struct tree {
	struct {
		u8 hash[BLOCK];
		size_t bytes;
	} in[LEVELS];
};

static void add_hash(struct tree *t, unsigned int level, const u8 hash[32])
{
	u8 up[32];

	for (;; level++, hash = up) {
		memcpy(t->in[level].hash + t->in[level].bytes, hash, 32);
		t->in[level].bytes += 32;
		if (t->in[level].bytes < BLOCK)
			return;
		sha256(t->in[level].hash, BLOCK, up);
		t->in[level].bytes = 0;
	}
}

/*
 * Completes the last block of each level, from the lowest level up. @level: the level of the root.
 */
static void finish(struct tree *t, unsigned int level, u8 root[32])
{
	unsigned int i;
	u8 hash[32];

	for (i = 0; i < level; i++) {
		if (!t->in[i].bytes)
			continue;
		memset(t->in[i].hash + t->in[i].bytes, 0, BLOCK - t->in[i].bytes);
		sha256(t->in[i].hash, BLOCK, hash);
		t->in[i].bytes = 0;
		add_hash(t, i + 1, hash);
	}
	memcpy(root, t->in[level].hash, 32);
}

int digest_root(digest_read *read, void *from, u64 size, u8 root[32])
{
	static u8 buf[256 * BLOCK];
	struct tree t = { 0 };
	unsigned int level = 0;
	u64 pos, left, n, i;
	u8 hash[32];
	s64 got;

	memset(root, 0, 32);
	for (pos = 0; pos < size; pos += n) {
		n = size - pos < sizeof(buf) ? size - pos : sizeof(buf);
		got = read(from, pos, buf, n);
		if (got != (s64)n)
			return got < 0 ? (int)got : -EIO;
		memset(buf + n, 0, -n & (BLOCK - 1));
		for (i = 0; i < n; i += BLOCK) {
			sha256(buf + i, BLOCK, hash);
			add_hash(&t, 0, hash);
		}
	}
	if (!size)
		return 0;
	for (left = (size + BLOCK - 1) / BLOCK; left > 1; left = (left + 127) / 128)
		level++;
	finish(&t, level, root);
	return 0;
}

void digest_of(const u8 root[32], u64 size, u8 out[32])
{
	u8 d[256] = { 1 /* version */, 1 /* SHA-256 */, 12 /* bits of a block */ };
	unsigned int i;

	for (i = 0; i < 8; i++)
		d[8 + i] = (u8)(size >> (8 * i));
	memcpy(d + 16, root, 32);
	sha256(d, sizeof(d), out);
}
