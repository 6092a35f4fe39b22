// SPDX-License-Identifier: GPL-2.0
/*
 * Listing a directory, in the order of keys, one bucket at a time.
 *
 * A name's key never changes, even if a split moves the name, so the key serves as cookie. A
 * listing that continues "from this key" returns each name that still exists exactly once. Names
 * come from a copy: while the caller gets them, the code holds no lock and does not read the
 * volume.
 */
#include "dir/dir_index.h"

#define COOKIE_FIRST	2		/* the cookie of key 0; the caller uses 0 and 1 */
#define COOKIE_END	0x7fffffffffffffffULL
#define KEY_END		(1ULL << SG_DIR_KEY_BITS)
#define REST_EVERY	256		/* buckets */

struct item {
	u64 key;
	u64 off;
};

struct listing {
	struct sg_bucket b;
	u64 next;		/* the first key after those of the bucket */
	unsigned int n;
	struct item item[SG_BUCKET_SLOTS];
};

/* Copies the current bucket of @key. Returns 1 if it exists; -EUCLEAN as sg_dir_walk(). */
static int copy_bucket(const struct sg_vol *vol, const struct sg_iref *dir, u64 key,
		       struct listing *l, u64 *at)
{
	u64 *to = (u64 *)&l->b, bytes;
	struct sg_place p;
	unsigned int i;
	int err = sg_dir_there(vol, dir);

	if (err)
		return err;
	err = sg_dir_walk(vol, dir, key >> SG_DIR_TIE_BITS, &p);
	*at = p.bucket;
	if (err || !p.bucket)
		return err;
	bytes = sg_get(vol, p.bucket + offsetof(struct sg_bucket, fill)) & 0xffff;
	bytes = offsetof(struct sg_bucket, data) + SG_MIN(bytes, (u64)SG_BUCKET_DATA);
	for (i = 0; i < bytes / 8; i++)
		to[i] = sg_get(vol, p.bucket + i * 8);
	memset(to + i, 0, SG_PAGE - i * 8);
	l->next = sg_key_prefix(key, p.depth) + (1ULL << (SG_DIR_KEY_BITS - p.depth));
	return 1;
}

static int readdir_load_bucket(const struct sg_vol *vol, const struct sg_iref *dir, u64 key,
			       struct listing *l, u64 *at)
{
	unsigned int turn;
	u64 seq;
	int err;

	for (turn = 0; turn < SG_READ_TURNS; turn += 1 + SG_READ_PAGE) {
		int got;

		err = sg_read_begin(vol, dir, &seq);
		if (err)
			return err;
		got = copy_bucket(vol, dir, key, l, at);
		if (!sg_read_retry(vol, dir, seq))
			return got == -EUCLEAN ? sg_damaged(vol, dir->ino, *at, "directory") : got;
	}
	return sg_damaged(vol, dir->ino, dir->off, "a change of a directory never ends");
}

static const struct sg_dirent *readdir_dirent_at(const struct listing *l, u64 off)
{
	return (const struct sg_dirent *)((const u8 *)&l->b + off);
}

/*
 * Reports whether a name is valid. A name that no system makes must not reach a caller that trusts
 * names.
 */
static bool readdir_name_valid(const u8 *name, u32 len)
{
	u32 i;

	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return false;
	for (i = 0; i < len; i++)
		if (!name[i] || name[i] == '/')
			return false;
	return true;
}

static bool readdir_dirent_valid(const struct listing *l, u64 word)
{
	unsigned int off = SG_BUCKET_OFF(word);
	const struct sg_dirent *d = readdir_dirent_at(l, off);

	return sg_dirent_inside(off, 1) && sg_dirent_inside(off, SG_REF_LEN(d->ref)) &&
	       d->key >= l->b.prefix && d->key < l->next &&
	       d->key >> SG_DIR_TIE_BITS < SG_DIR_HASH_MAX &&
	       readdir_name_valid(d->name, SG_REF_LEN(d->ref));
}

static void sort(struct listing *l)
{
	static const u8 gaps[] = { 57, 23, 10, 4, 1 };
	unsigned int g, i, k;

	for (g = 0; g < SG_ARRAY_SIZE(gaps); g++) {
		unsigned int gap = gaps[g];

		for (i = gap; i < l->n; i++) {
			struct item it = l->item[i];

			for (k = i; k >= gap && l->item[k - gap].key > it.key; k -= gap)
				l->item[k] = l->item[k - gap];
			l->item[k] = it;
		}
	}
}

/* Selects the names from @key on. Reports an invalid name as damage, and omits it. */
static void pick_names(const struct sg_vol *vol, const struct sg_iref *dir, u64 key,
		       struct listing *l, u64 at)
{
	unsigned int i;

	l->n = 0;
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 word = l->b.slot[i], off = SG_BUCKET_OFF(word);

		if (!word || word == SG_BUCKET_TOMB)
			continue;
		if (!readdir_dirent_valid(l, word))
			sg_damaged(vol, dir->ino, at + offsetof(struct sg_bucket, slot) + i * 8,
				   "invalid name in a directory");
		else if (readdir_dirent_at(l, off)->key >= key)
			l->item[l->n++] = (struct item){ readdir_dirent_at(l, off)->key, off };
	}
	sort(l);
}

/* Passes names to the caller. False: the caller wants no more. */
static bool emit_names(const struct listing *l, u64 *cookie, sg_emit emit, void *ctx)
{
	unsigned int i;

	for (i = 0; i < l->n; i++) {
		const struct sg_dirent *d = readdir_dirent_at(l, l->item[i].off);

		*cookie = d->key + COOKIE_FIRST;
		if (!emit(ctx, (const char *)d->name, SG_REF_LEN(d->ref), SG_REF_INO(d->ref),
			  SG_REF_TYPE(d->ref), *cookie))
			return false;
		*cookie += 1;
	}
	return true;
}

static int list(struct sg_vol *vol, const struct sg_iref *dir, struct listing *l, u64 *cookie,
		sg_emit emit, void *ctx)
{
	u64 key = SG_MAX(*cookie, (u64)COOKIE_FIRST) - COOKIE_FIRST, at = 0, turn;

	/* each bucket has a range of keys, so there are no more turns than pages */
	for (turn = 0; turn <= sg_bound(vol) >> SG_PAGE_SHIFT; turn++) {
		int err;

		if (key >> SG_DIR_TIE_BITS >= SG_DIR_HASH_MAX)
			err = 0;
		else
			err = readdir_load_bucket(vol, dir, key, l, &at);
		if (err < 0)
			return err;
		if (err) {
			pick_names(vol, dir, key, l, at);
			if (!emit_names(l, cookie, emit, ctx))
				return 0;
			key = l->next;
		}
		if (!err || key >= KEY_END) {
			*cookie = COOKIE_END;
			return 0;
		}
		*cookie = key + COOKIE_FIRST;
		if (turn % REST_EVERY == REST_EVERY - 1) {
			if (sg_interrupted())
				return -EINTR;
			sg_yield();
		}
	}
	return sg_damaged(vol, dir->ino, dir->off, "directory without end");
}

int sg_readdir(struct sg_vol *vol, const struct sg_iref *dir, u64 *cookie, sg_emit emit, void *ctx)
{
	struct listing *l;
	int err;

	if (*cookie >= COOKIE_END)
		return 0;
	l = sg_alloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	err = list(vol, dir, l, cookie, emit, ctx);
	sg_free(l);
	return err;
}
