/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations shared by dir_index.c, dir_bucket.c, dir_hash.c and readdir.c. */
#ifndef SG_DIR_INDEX_H
#define SG_DIR_INDEX_H

#include "internal.h"

#define SG_DIR_HASH_BITS	(SG_DIR_KEY_BITS - SG_DIR_TIE_BITS)
#define SG_DIR_HASH_MAX		((1ULL << SG_DIR_HASH_BITS) - 1)
#define SG_DIR_INDEX_BITS	9	/* bits of the key for each level of the index */

/* --- names, eight bytes at a time ----------------------------------------------------------- */

static inline u64 sg_name_word(const char *p)
{
	u64 w;

	memcpy(&w, p, 8);
	return w;
}

static inline u64 sg_name_half(const char *p)
{
	u32 w;

	memcpy(&w, p, 4);
	return w;
}

/* Returns the last len % 8 bytes, with zeroes above; reads nothing outside the name. */
static inline u64 sg_name_tail(const char *name, u32 len)
{
	u32 rest = len & 7;
	const char *p = name + len - rest;

	if (!rest)
		return 0;
	if (len >= 8)
		return sg_name_word(name + len - 8) >> (64 - 8 * rest);
	if (rest >= 4)
		return sg_name_half(p) | sg_name_half(p + rest - 4) << (8 * (rest - 4));
	return (u64)(u8)p[0] | (u64)(u8)p[rest / 2] << (8 * (rest / 2)) |
	       (u64)(u8)p[rest - 1] << (8 * (rest - 1));
}

/* --- index (dir_index.c) -------------------------------------------------------------------- */

/**
 * struct sg_place - position of the bucket of a hash in the index.
 * @bucket: its page; 0: the directory has no bucket yet; after -EUCLEAN: the damaged offset.
 * @word: offset of the word that names the bucket.
 * @level: of the index page with @word; 0: @word is the root word.
 * @depth: number of bits that the keys of the bucket share.
 */
struct sg_place {
	u64 bucket;
	u64 word;
	unsigned int level;
	unsigned int depth;
};

/*
 * Finds the bucket without a transaction. -EUCLEAN, not reported: a change in progress may look
 * like damage.
 */
int sg_dir_walk(const struct sg_vol *vol, const struct sg_iref *dir, u64 hash, struct sg_place *p);

/* --- buckets (dir_bucket.c) ----------------------------------------------------------------- */

/* a search ends at an empty slot, so all buckets keep some slots empty */
#define SG_BUCKET_LIVE_MAX	112

static inline u64 sg_bucket_slot(u64 bucket, unsigned int i)
{
	return bucket + offsetof(struct sg_bucket, slot) + i % SG_BUCKET_SLOTS * 8;
}

static inline u32 sg_dirent_size(u32 len)
{
	return (u32)SG_ALIGN_UP(sizeof(struct sg_dirent) + len, 8);
}

/* Reports whether a dirent with this offset and name length lies in the data of its page. */
static inline bool sg_dirent_inside(unsigned int off, u32 len)
{
	return !(off & 7) && off >= offsetof(struct sg_bucket, data) && len &&
	       off + sizeof(struct sg_dirent) + len <= SG_PAGE;
}

/* Returns the first @depth bits of a key, left-aligned. */
static inline u64 sg_key_prefix(u64 key, unsigned int depth)
{
	return key & ~((1ULL << (SG_DIR_KEY_BITS - depth)) - 1);
}

/* Finds the name in n->bucket and stores its position in @n. -ENOENT; -EUCLEAN as sg_dir_walk(). */
int sg_bucket_find(const struct sg_vol *vol, struct sg_name *n);

/* Makes an empty bucket in a fresh page. */
void sg_bucket_init(struct sg_vol *vol, u64 bucket, u64 dir, u64 prefix, unsigned int depth);

/* Adds the name; false: no room, or damage (tx->err). */
bool sg_bucket_put(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
		   unsigned int type);
bool sg_bucket_has_room(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n);
void sg_bucket_remove(struct sg_tx *tx, const struct sg_name *n);

/* Returns the bytes that the names of a bucket take, without unused bytes between them. */
int sg_bucket_load(struct sg_tx *tx, const struct sg_iref *dir, u64 bucket, unsigned int *live,
		   unsigned int *bytes);
/* Copies all names into 1 << @bits fresh, initialised buckets, by the next bits of their keys. */
int sg_bucket_deal(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_place *from,
		   const u64 *to, unsigned int bits);

#endif
