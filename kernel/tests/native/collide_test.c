// SPDX-License-Identifier: Apache-2.0
/*
 * Directories whose names collide on purpose. The test's own hash function reads the hash from the
 * name, so the test decides which names share which bits.
 */
#include "dir/dir_index.h"
#include "test.h"

/* Replaces dir_hash.c: a name begins with its hash, as 14 hexadecimal digits. */
u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len)
{
	u64 hash = 0;
	u32 i;

	(void)vol;
	for (i = 0; i < len && i < 14; i++)
		hash = hash << 4 | (u64)(name[i] >= 'a' ? name[i] - 'a' + 10 : name[i] & 15);
	return hash & SG_DIR_HASH_MAX;
}

static const struct sg_new new_dir = { .mode = SG_S_IFDIR | 0755, .now = 1 };

struct dir {
	struct tvol t;
	struct sg_iref dir, file;
};

static void begin(struct dir *d, u64 size)
{
	tvol_make(&d->t, size);
	/* every name has to begin with a hash, also those of the root and of the tests' library */
	CHECK_OK(sg_create(&d->t.v, &d->t.root, "0000000000000d", 14, &new_dir, &d->dir));
	d->file = test_create(&d->t.v, &d->t.root, "0000000000000f", SG_S_IFREG | 0600);
}

static u32 spell(char *name, u64 hash, u64 i)
{
	return (u32)sprintf(name, "%014" PRIx64 "-%03" PRIu64, hash, i);
}

static int add(struct dir *d, u64 hash, u64 i)
{
	char name[40];
	u32 len = spell(name, hash, i);

	return sg_link(&d->t.v, &d->file, &d->dir, name, len, 2);
}

static int drop(struct dir *d, u64 hash, u64 i)
{
	char name[40];
	u32 len = spell(name, hash, i);

	return sg_unlink(&d->t.v, &d->dir, name, len, 3);
}

static int find(struct dir *d, u64 hash, u64 i)
{
	struct sg_iref ref;
	char name[40];
	u32 len = spell(name, hash, i);

	return sg_lookup(&d->t.v, &d->dir, name, len, &ref, NULL);
}

struct count {
	u64 n, last;
};

static bool count_one(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct count *c = ctx;

	(void)name;
	(void)len;
	(void)ino;
	(void)type;
	CHECK(cookie > c->last);
	c->last = cookie;
	c->n++;
	return true;
}

static u64 listed(struct dir *d)
{
	struct count c = { 0 };
	u64 cookie = 0;

	CHECK_OK(sg_readdir(&d->t.v, &d->dir, &cookie, count_one, &c));
	return c.n;
}

/* Counts the index levels on the way to a hash. */
static unsigned int levels(struct dir *d, u64 hash)
{
	struct sg_place p;

	CHECK_OK(sg_dir_walk(&d->t.v, &d->dir, hash, &p));
	return p.level;
}

/*
 * A bucket's capacity limits the names of one hash. One more name fails with ENOSPC, for that hash
 * only.
 */
static void test_same_hash(u64 hash)
{
	struct dir d;
	u64 n = 0, i;
	int err;

	begin(&d, 16 << 20);
	while (!(err = add(&d, hash, n)))
		n++;
	CHECK_EQ(err, -ENOSPC);
	CHECK(n >= 64 && n <= SG_BUCKET_LIVE_MAX);
	CHECK_EQ(levels(&d, hash), SG_DIR_LEVELS_MAX);
	CHECK_EQ(listed(&d), n);
	CHECK_OK(add(&d, hash ^ 1ULL << 54, 0));	/* other hashes still work */
	CHECK_OK(add(&d, hash ^ 2, 0));
	for (i = 0; i < n; i++)
		CHECK_OK(find(&d, hash, i));
	CHECK_EQ(find(&d, hash, n), -ENOENT);
	tvol_recheck(&d.t);
	/* makes and removes more names than there are tie-breaks, so tie-breaks are reused */
	for (i = 0; i < 600; i++) {
		CHECK_OK(drop(&d, hash, i));
		CHECK_OK(add(&d, hash, n + i));
		CHECK_EQ(find(&d, hash, i), -ENOENT);
		CHECK_OK(find(&d, hash, n + i));
	}
	CHECK_EQ(listed(&d), n + 2);
	tvol_recheck(&d.t);
	for (; i < 600 + n; i++)
		CHECK_OK(drop(&d, hash, i));
	CHECK_OK(drop(&d, hash ^ 1ULL << 54, 0));
	CHECK_OK(drop(&d, hash ^ 2, 0));
	CHECK_EQ(listed(&d), 0);
	CHECK_EQ(sg_iget(&d.t.v, &d.dir, blocks), 0);
	tvol_drop(&d.t);
	printf("ok %" PRIu64 " names of one hash\n", n);
}

/*
 * Returns the part of hash @i behind the shared bits. The part has @rest bits, and its first bits
 * differ from hash to hash.
 */
static u64 behind(u64 i, u64 rest)
{
	return rest > 9 ? i << (rest - 9) : i & ((1ULL << rest) - 1);
}

/* Names share the first @bits bits: the index becomes deep enough to separate them. */
static void test_same_prefix(unsigned int bits)
{
	u64 prefix = 0x55555555555555ULL & SG_DIR_HASH_MAX, n = 400, i, rest;
	struct dir d;

	begin(&d, 16 << 20);
	rest = SG_DIR_HASH_BITS - bits;
	prefix = prefix >> rest << rest;
	for (i = 0; i < n; i++)
		CHECK_OK(add(&d, prefix | behind(i, rest), i));
	CHECK(levels(&d, prefix) >= bits / SG_DIR_INDEX_BITS);
	for (i = 0; i < n; i++)
		CHECK_OK(find(&d, prefix | behind(i, rest), i));
	CHECK_EQ(listed(&d), n);
	tvol_recheck(&d.t);
	CHECK_EQ(listed(&d), n);
	tvol_drop(&d.t);
	printf("ok names that share %u bits\n", bits);
}

/* Random hashes of a small set, compared with a plain list of the names. */
static void test_random(void)
{
	u64 ops = test_amount(3000, 60000, 600000), i;
	struct rng rng = { test_seed() };
	u64 hash[64];
	bool there[64][48] = { { false } };
	u64 names = 0;
	struct dir d;

	begin(&d, 16 << 20);
	for (i = 0; i < 64; i++)	/* neighbours share all but a few bits */
		hash[i] = i % 8 ? hash[i - 1] ^ 1ULL << rng_below(&rng, 55) :
				  rng_next(&rng) & SG_DIR_HASH_MAX;
	for (i = 0; i < ops; i++) {
		u64 h = rng_below(&rng, 64), k = rng_below(&rng, 48);
		bool shrink = i / 4000 & 1;

		CHECK_EQ(find(&d, hash[h], k), there[h][k] ? 0 : -ENOENT);
		if (there[h][k] ? rng_chance(&rng, shrink ? 90 : 30) :
				  rng_chance(&rng, shrink ? 10 : 90)) {
			CHECK_OK(there[h][k] ? drop(&d, hash[h], k) : add(&d, hash[h], k));
			there[h][k] ^= 1;
			names += there[h][k] ? 1 : -1ULL;
		}
		if (i % 1000 == 0)
			CHECK_EQ(listed(&d), names);
		if (i % 20000 == 0)
			tvol_recheck(&d.t);
	}
	CHECK_EQ(listed(&d), names);
	tvol_drop(&d.t);
	printf("ok %" PRIu64 " operations on few hashes\n", ops);
}

/* Renames into a bucket whose split goes deeper than one transaction allows. */
static void test_rename_splits(void)
{
	u64 hash = 0x2aaaaaaaaaaaaaULL, near = hash ^ 2, half = 40, i;
	char from[40], to[40];
	struct dir d;

	begin(&d, 16 << 20);
	for (i = 0; i < half; i++)
		CHECK_OK(add(&d, hash, i));
	CHECK_EQ(levels(&d, hash), 0);
	/* the split must distinguish about 50 bits in one operation */
	for (i = 0; i < half; i++)
		CHECK_OK(add(&d, near, i));
	CHECK_EQ(levels(&d, hash), SG_DIR_LEVELS_MAX);
	for (i = 0; i < half; i++) {
		u32 flen = spell(from, near, i), tlen = spell(to, hash, 100 + i);
		int err = sg_rename(&d.t.v, &d.dir, from, flen, &d.dir, to, tlen, 0, NULL, 7);

		if (err == -ENOSPC)	/* one hash allows no more names */
			break;
		CHECK_OK(err);
		CHECK_EQ(find(&d, near, i), -ENOENT);
		CHECK_OK(find(&d, hash, 100 + i));
	}
	CHECK(i >= half / 2 && i < half);
	CHECK_OK(find(&d, near, i));		/* the name whose rename failed is unchanged */
	CHECK_EQ(find(&d, hash, 100 + i), -ENOENT);
	CHECK_EQ(listed(&d), 2 * half);
	tvol_drop(&d.t);
	begin(&d, 16 << 20);	/* the split and the rename are one operation to the caller */
	for (i = 0; i < half; i++)
		CHECK_OK(add(&d, hash, i));
	CHECK_OK(add(&d, 0, 0));
	for (i = 0; levels(&d, hash) == 0; i++) {
		u32 flen = spell(from, i ? near : 0, i ? i - 1 : 0), tlen = spell(to, near, i);

		CHECK_OK(sg_rename(&d.t.v, &d.dir, from, flen, &d.dir, to, tlen, 0, NULL, 7));
		CHECK_OK(find(&d, near, i));
		CHECK_OK(add(&d, near, 500 + i));
	}
	CHECK_EQ(listed(&d), half + 1 + i);
	tvol_drop(&d.t);
	printf("ok renames that split\n");
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_ERR)
		printf("%s\n", line);
}

int main(void)
{
	extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
	unsigned int bits;

	sg_log_hook = quiet;	/* this test fills buckets on purpose */
	test_same_hash(0x123456789abcdeULL & SG_DIR_HASH_MAX);
	test_same_hash(0);
	test_same_hash(SG_DIR_HASH_MAX - 1);
	for (bits = 0; bits <= 45; bits += 3)
		test_same_prefix(bits);
	test_random();
	test_rename_splits();
	return test_done();
}
