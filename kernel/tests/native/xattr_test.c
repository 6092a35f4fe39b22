// SPDX-License-Identifier: Apache-2.0
/*
 * Extended attributes: limits and errors, random changes compared with a plain list, readers during
 * writes, damage, full volumes, pages that are freed again.
 */
#include <pthread.h>
#include "internal.h"
#include "test.h"

#define L(name) name, (u32)strlen(name)

static struct sg_iref make_file(struct tvol *t)
{
	return test_create(&t->v, &t->root, "file", SG_S_IFREG | 0644);
}

static int set(struct sg_vol *v, const struct sg_iref *ref, const char *name, const void *value,
	       u32 len, unsigned int flags)
{
	return sg_xattr_set(v, ref, SG_XATTR_USER, L(name), value, len, flags, 50);
}

static int get(struct sg_vol *v, const struct sg_iref *ref, const char *name, void *buf, u32 len)
{
	return sg_xattr_get(v, ref, SG_XATTR_USER, L(name), buf, len);
}

/* --- limits and errors ------------------------------------------------------------------------ */

static void test_errors(void)
{
	static char value[SG_XATTR_VALUE_MAX + 1], buf[SG_XATTR_VALUE_MAX];
	char name[300];
	struct sg_iref ref;
	struct sg_attr a;
	struct tvol t;
	u64 i;

	tvol_make(&t, TEST_SMALL);
	ref = make_file(&t);
	memset(name, 'n', sizeof(name));
	memset(value, 'v', sizeof(value));
	CHECK_EQ(get(&t.v, &ref, "none", buf, 10), -ENODATA);
	CHECK_EQ(set(&t.v, &ref, "none", NULL, 0, 0), -ENODATA);
	CHECK_EQ(set(&t.v, &ref, "none", "x", 1, SG_XATTR_REPLACE), -ENODATA);
	CHECK_OK(set(&t.v, &ref, "one", "value", 5, SG_XATTR_CREATE));
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK(a.has_xattr && a.ctime == 50 && a.blocks == 1);
	CHECK_EQ(set(&t.v, &ref, "one", "other", 5, SG_XATTR_CREATE), -EEXIST);
	CHECK_EQ(get(&t.v, &ref, "one", NULL, 0), 5);
	CHECK_EQ(get(&t.v, &ref, "one", buf, 4), -ERANGE);
	CHECK_EQ(get(&t.v, &ref, "one", buf, 5), 5);
	CHECK(!memcmp(buf, "value", 5));
	CHECK_EQ(get(&t.v, &ref, "on", buf, 5), -ENODATA);
	CHECK_EQ(get(&t.v, &ref, "onE", buf, 5), -ENODATA);
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_TRUSTED, L("one"), buf, 5), -ENODATA);
	/* an empty value differs from a missing attribute */
	CHECK_OK(set(&t.v, &ref, "one", "", 0, SG_XATTR_REPLACE));
	CHECK_EQ(get(&t.v, &ref, "one", buf, 5), 0);
	CHECK_EQ(sg_xattr_set(&t.v, &ref, SG_XATTR_USER, name, 256, "x", 1, 0, 1), -ERANGE);
	CHECK_EQ(sg_xattr_set(&t.v, &ref, SG_XATTR_USER, "", 0, "x", 1, 0, 1), -EINVAL);
	CHECK_EQ(sg_xattr_set(&t.v, &ref, SG_XATTR_ACL_ACCESS, "x", 1, "x", 1, 0, 1), -EINVAL);
	CHECK_EQ(sg_xattr_set(&t.v, &ref, 0, "x", 1, "x", 1, 0, 1), -EINVAL);
	CHECK_EQ(sg_xattr_set(&t.v, &ref, SG_XATTR_ACL_DEFAULT + 1, "", 0, "x", 1, 0, 1), -EINVAL);
	CHECK_OK(sg_xattr_set(&t.v, &ref, SG_XATTR_USER, name, 255, "x", 1, 0, 1));
	CHECK_EQ(set(&t.v, &ref, "big", value, SG_XATTR_VALUE_MAX + 1, 0), -E2BIG);
	CHECK_OK(set(&t.v, &ref, "big", value, SG_XATTR_VALUE_MAX, 0));
	CHECK_EQ(get(&t.v, &ref, "big", buf, sizeof(buf)), SG_XATTR_VALUE_MAX);
	CHECK(!memcmp(buf, value, sizeof(buf)));
	for (i = 0; i < 14; i++) {	/* attributes of up to 1 MiB in total */
		sprintf(name, "more%02" PRIu64, i);
		CHECK_OK(set(&t.v, &ref, name, value, SG_XATTR_VALUE_MAX, 0));
	}
	CHECK_EQ(set(&t.v, &ref, "last", value, SG_XATTR_VALUE_MAX, 0), -ENOSPC);
	CHECK_OK(set(&t.v, &ref, "last", value, SG_XATTR_VALUE_MAX - 1000, 0));
	CHECK_EQ(get(&t.v, &ref, "more13", buf, sizeof(buf)), SG_XATTR_VALUE_MAX);
	tvol_recheck(&t);
	CHECK_EQ(get(&t.v, &ref, "more00", buf, sizeof(buf)), SG_XATTR_VALUE_MAX);
	t.v.read_only = true;
	CHECK_EQ(set(&t.v, &ref, "one", "x", 1, 0), -EROFS);
	t.v.read_only = false;
	CHECK_OK(sg_unlink(&t.v, &t.root, L("file"), 9));
	CHECK_OK(sg_evict(&t.v, &ref));
	CHECK_EQ(set(&t.v, &ref, "one", "x", 1, 0), -ESTALE);
	tvol_drop(&t);
	printf("ok limits and errors\n");
}

/* An ACL and the mode change together, or not at all. */
static void test_acl(void)
{
	struct sg_iref ref;
	struct sg_attr a;
	struct tvol t;
	char buf[16];

	tvol_make(&t, TEST_SMALL);
	ref = make_file(&t);
	CHECK_OK(set(&t.v, &ref, "beside", "it", 2, 0));
	CHECK_OK(sg_xattr_set_mode(&t.v, &ref, SG_XATTR_ACL_ACCESS, "acl", 3, 0751, 60));
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK(a.mode == (SG_S_IFREG | 0751) && a.ctime == 60 && a.nlink == 1);
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_ACL_ACCESS, "", 0, buf, sizeof(buf)), 3);
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_ACL_DEFAULT, "", 0, buf, 16), -ENODATA);
	CHECK_OK(sg_xattr_set_mode(&t.v, &ref, SG_XATTR_ACL_ACCESS, NULL, 0, 0640, 70));
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_ACL_ACCESS, "", 0, buf, 16), -ENODATA);
	/* without an ACL to remove, the mode still changes */
	CHECK_OK(sg_xattr_set_mode(&t.v, &ref, SG_XATTR_ACL_ACCESS, NULL, 0, 0600, 80));
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK(a.mode == (SG_S_IFREG | 0600) && a.ctime == 80);
	CHECK_EQ(get(&t.v, &ref, "beside", buf, 16), 2);
	tvol_drop(&t);
	printf("ok ACLs\n");
}

/* --- random changes against a plain list ------------------------------------------------------ */

#define NAMES 40

struct plain {
	u32 len[NAMES];
	u8 *value[NAMES];
	bool there[NAMES];
};

static unsigned int space_of(unsigned int i)
{
	return i % 3 + SG_XATTR_USER;
}

static u32 name_of(unsigned int i, char *name)
{
	memset(name, 'a' + (int)i % 26, i * 6);
	return i * 6 + (u32)sprintf(name + i * 6, "%u", i);
}

static u8 value_byte(u64 turn, u64 k)
{
	return (u8)(turn * 31 + k * 7 + (k >> 8));
}

struct listing {
	const struct plain *p;
	u32 n;
};

static int list_one(void *ctx, unsigned int space, const char *name, u32 name_len,
		    const void *value, u32 len)
{
	struct listing *l = ctx;
	char want[300];
	unsigned int i;

	for (i = 0; i < NAMES; i++) {
		u32 want_len = name_of(i, want);

		if (want_len != name_len || memcmp(want, name, name_len))
			continue;
		CHECK(l->p->there[i] && space == space_of(i) && len == l->p->len[i]);
		CHECK(!memcmp(value, l->p->value[i], len));
		l->n++;
		return 0;
	}
	test_fail(__FILE__, __LINE__, "the list has a name that was never set");
}

static void expect_plain(struct sg_vol *v, const struct sg_iref *ref, const struct plain *p)
{
	static u8 buf[SG_XATTR_VALUE_MAX];
	struct listing l = { p, 0 };
	unsigned int i, n = 0;
	char name[300];

	CHECK_OK(sg_xattr_list(v, ref, list_one, &l));
	for (i = 0; i < NAMES; i++) {
		u32 len = name_of(i, name);
		int got = sg_xattr_get(v, ref, space_of(i), name, len, buf, sizeof(buf));

		CHECK_EQ(got, p->there[i] ? (int)p->len[i] : -ENODATA);
		if (p->there[i])
			CHECK(!memcmp(buf, p->value[i], p->len[i]));
		n += p->there[i];
	}
	CHECK_EQ(l.n, n);
}

static void change_one(struct sg_vol *v, const struct sg_iref *ref, struct plain *p,
		       struct rng *rng, u64 turn)
{
	unsigned int i = (unsigned int)rng_below(rng, NAMES);
	char name[300];
	u32 name_len = name_of(i, name), len = (u32)rng_size(rng, 20000), k;
	bool drop = rng_chance(rng, 30);
	int err;

	for (k = 0; !drop && k < len; k++)
		p->value[i][k] = value_byte(turn, k);
	err = sg_xattr_set(v, ref, space_of(i), name, name_len, drop ? NULL : p->value[i], len, 0,
			   (s64)turn + 1);
	CHECK_EQ(err, drop && !p->there[i] ? -ENODATA : 0);
	p->there[i] = !drop;
	p->len[i] = len;
}

static void test_random(void)
{
	u64 turns = test_amount(300, 5000, 50000), i;
	struct rng rng = { test_seed() };
	struct sg_statfs before, after;
	struct plain p = { .len = { 0 } };
	struct sg_iref ref;
	struct sg_attr a;
	struct tvol t;

	for (i = 0; i < NAMES; i++)
		p.value[i] = calloc(1, SG_XATTR_VALUE_MAX);
	tvol_make(&t, 64 << 20);
	ref = make_file(&t);
	CHECK_OK(sg_statfs(&t.v, &before));
	for (i = 0; i < turns; i++) {
		test_note("turn %" PRIu64, i);
		change_one(&t.v, &ref, &p, &rng, i);
		if (i % 50 == 0)
			expect_plain(&t.v, &ref, &p);
		if (i % 1000 == 0)
			tvol_recheck(&t);
	}
	expect_plain(&t.v, &ref, &p);
	for (i = 0; i < NAMES; i++) {
		char name[300];
		u32 len = name_of((unsigned int)i, name);
		unsigned int space = space_of((unsigned int)i);

		if (p.there[i])
			CHECK_OK(sg_xattr_set(&t.v, &ref, space, name, len, NULL, 0, 0, 2));
		free(p.value[i]);
	}
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK(!a.has_xattr && !a.blocks);
	CHECK_OK(sg_statfs(&t.v, &after));
	CHECK_EQ(after.free_pages, before.free_pages);
	tvol_drop(&t);
	printf("ok %" PRIu64 " random changes\n", turns);
}

/* --- attributes at creation ------------------------------------------------------------------- */

static u32 put(u8 *at, unsigned int space, const char *name, const void *value, u32 len)
{
	struct sg_xattr_entry *e = (void *)at;

	e->value_len = len;
	e->space = (u8)space;
	e->name_len = (u8)strlen(name);
	memcpy(e->name, name, e->name_len);
	memcpy(e->name + e->name_len, value, len);
	return (u32)SG_ALIGN_UP(sizeof(*e) + e->name_len + len, 8);
}

static void test_birth(void)
{
	static u8 payload[80000], big[70000];
	struct sg_new new = { .mode = SG_S_IFREG | 0644, .now = 1, .xattrs = payload };
	struct sg_iref ref;
	struct sg_attr a;
	struct tvol t;
	char buf[8];
	u64 inodes;

	tvol_make(&t, TEST_SMALL);
	new.xattrs_len = put(payload, SG_XATTR_SECURITY, "selinux", "label", 5);
	new.xattrs_len += put(payload + new.xattrs_len, SG_XATTR_ACL_DEFAULT, "", "acl", 3);
	CHECK_OK(sg_create(&t.v, &t.root, L("born"), &new, &ref));
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK(a.has_xattr && a.blocks == 1);
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_SECURITY, L("selinux"), buf, 8), 5);
	CHECK(!memcmp(buf, "label", 5));
	CHECK_EQ(sg_xattr_get(&t.v, &ref, SG_XATTR_ACL_DEFAULT, "", 0, buf, 8), 3);
	new.xattrs_len += put(payload + new.xattrs_len, SG_XATTR_USER, "big", big, 60000);
	CHECK_OK(sg_tmpfile(&t.v, &new, &ref));
	CHECK_OK(sg_getattr(&t.v, &ref, &a));
	CHECK_EQ(a.blocks, 1 + (new.xattrs_len + SG_PAGE - 1) / SG_PAGE);
	CHECK(sg_close_inode(&t.v, &ref));
	CHECK_OK(sg_evict(&t.v, &ref));
	/* invalid attributes prevent the creation */
	inodes = sg_used_inodes(&t.v);
	((struct sg_xattr_entry *)payload)->space = 9;
	CHECK_EQ(sg_create(&t.v, &t.root, L("bad"), &new, &ref), -EINVAL);
	((struct sg_xattr_entry *)payload)->space = SG_XATTR_SECURITY;
	new.xattrs_len -= 8;
	CHECK_EQ(sg_create(&t.v, &t.root, L("bad"), &new, &ref), -EINVAL);
	CHECK_EQ(sg_used_inodes(&t.v), inodes);
	CHECK_EQ(sg_lookup(&t.v, &t.root, L("bad"), &ref, NULL), -ENOENT);
	tvol_drop(&t);
	printf("ok attributes at birth\n");
}

/* --- readers during writes -------------------------------------------------------------------- */

struct race {
	struct tvol t;
	struct sg_iref ref;
	bool stop;
	u64 reads;
};

/* Each value is one byte, repeated: a torn value is visible. */
static void *reader(void *arg)
{
	struct race *r = arg;
	static __thread u8 buf[20000];
	u64 n = 0;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		int got = get(&r->t.v, &r->ref, "value", buf, sizeof(buf)), i;

		CHECK(got > 0);
		for (i = 1; i < got; i++)
			if (buf[i] != buf[0] || (u32)got != 1 + buf[0] * 70u)
				test_fail(__FILE__, __LINE__, "the value is torn at byte %d of %d", i, got);
		n++;
	}
	__atomic_fetch_add(&r->reads, n, __ATOMIC_RELAXED);
	return NULL;
}

static void test_race(void)
{
	u64 turns = test_amount(500, 8000, 80000), i;
	struct race *r = calloc(1, sizeof(*r));
	static u8 value[20000];
	pthread_t thread[2];

	tvol_make(&r->t, TEST_SMALL);
	r->ref = make_file(&r->t);
	CHECK_OK(set(&r->t.v, &r->ref, "value", "", 1, 0));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, reader, r));
	for (i = 0; i < turns; i++) {
		u8 byte = (u8)(i * 37);

		memset(value, byte, sizeof(value));
		CHECK_OK(set(&r->t.v, &r->ref, "value", value, 1 + byte * 70u, 0));
		if (i % 16 == 0)	/* pages of old blobs are reused for new ones */
			CHECK(sg_reclaim(&r->t.v, ~0u) == 0);
	}
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	tvol_drop(&r->t);
	printf("ok %" PRIu64 " reads beside %" PRIu64 " changes\n", r->reads, turns);
	free(r);
}

/* --- damage ----------------------------------------------------------------------------------- */

static u64 damage_seen;

static void on_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	damage_seen++;
}

static int ignore_one(void *ctx, unsigned int space, const char *name, u32 name_len,
		      const void *value, u32 len)
{
	(void)ctx;
	(void)space;
	(void)value;
	CHECK(name_len <= 255 && len <= SG_XATTR_VALUE_MAX && name);
	return 0;
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* Any changed bit of a blob is reported as damage, and has no other effect. */
static void test_damage(void)
{
	extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
	u64 rounds = test_amount(500, 20000, 200000), i, size, head, bits = 0;
	static u8 value[9000], buf[9000];
	struct rng rng = { test_seed() };
	struct sg_iref ref;
	struct tvol t;

	rng_fill(&rng, value, sizeof(value));	/* all pages of the value differ */
	sg_log_hook = quiet;
	tvol_make(&t, TEST_SMALL);
	t.v.on_damage = on_damage;
	ref = make_file(&t);
	CHECK_OK(set(&t.v, &ref, "small", "value", 5, 0));
	for (i = 0; i < rounds; i++) {
		u64 *word, old, bit = rng_below(&rng, 64);
		int got;

		if (i == rounds / 2)	/* makes the blob take several pages */
			CHECK_OK(set(&t.v, &ref, "large", value, sizeof(value), 0));
		head = sg_iget(&t.v, &ref, xattr);
		size = sg_get(&t.v, head + offsetof(struct sg_xattr_head, size));
		if (size > SG_XATTR_INLINE)	/* the head's fields, and the names of pages */
			size = 8 * SG_ALIGN_UP(size, SG_PAGE) / SG_PAGE;
		word = sg_at(&t.v, head + rng_below(&rng, (64 + size) / 8) * 8);
		if ((u64)((u8 *)word - t.mem) - head >= 32 && (u64)((u8 *)word - t.mem) - head < 64)
			continue;	/* reserved words are not checked */
		old = *word;
		*word ^= 1ULL << bit;
		test_note("word at %" PRId64 ", bit %" PRIu64, (s64)((u8 *)word - t.mem) - (s64)head,
			  bit);
		got = get(&t.v, &ref, "small", buf, sizeof(buf));
		CHECK_EQ(got, -EUCLEAN);
		CHECK_EQ(sg_xattr_list(&t.v, &ref, ignore_one, NULL), -EUCLEAN);
		CHECK_EQ(set(&t.v, &ref, "new", "x", 1, 0), -EUCLEAN);
		*word = old;
		CHECK_EQ(get(&t.v, &ref, "small", buf, sizeof(buf)), 5);
		bits++;
	}
	CHECK(bits && damage_seen);
	sg_log_hook = NULL;
	/* a file with a damaged blob can be removed */
	*(u64 *)sg_at(&t.v, sg_iget(&t.v, &ref, xattr)) = 0;
	CHECK_OK(sg_unlink(&t.v, &t.root, L("file"), 9));
	sg_log_hook = quiet;
	CHECK_OK(sg_evict(&t.v, &ref));
	sg_log_hook = NULL;
	sg_abandon(&t.v);
	test_unmap(t.mem, t.size);
	printf("ok %" PRIu64 " damaged bits\n", bits);
}

/* --- a full volume ---------------------------------------------------------------------------- */

static void test_full(void)
{
	static u8 value[SG_XATTR_VALUE_MAX], buf[SG_XATTR_VALUE_MAX];
	struct sg_new new = { .mode = SG_S_IFREG | 0600, .now = 1 };
	struct sg_iref ref, last = { 0 };
	struct tvol t;
	char name[32];
	u64 n = 0, k;
	int err = 0;

	tvol_make(&t, TEST_SMALL);
	while (!err) {
		sprintf(name, "f%" PRIu64, n);
		err = sg_create(&t.v, &t.root, L(name), &new, &ref);
		if (err)
			break;
		n++;
		last = ref;
		memset(value, (int)n, sizeof(value));
		err = set(&t.v, &ref, "value", value, sizeof(value), 0);
	}
	CHECK_EQ(err, -ENOSPC);
	/* the failed call has stored no part */
	CHECK_EQ(get(&t.v, &last, "value", buf, sizeof(buf)), -ENODATA);
	for (k = 0; !set(&t.v, &last, "value", "v", 1, 0); k++)
		if (k == 1000)
			break;
	CHECK_OK(sg_unlink(&t.v, &t.root, L("f0"), 3));
	tvol_crash(&t);
	tvol_join(&t);
	for (k = 1; k + 1 < n; k++) {
		sprintf(name, "f%" PRIu64, k);
		ref = test_lookup(&t.v, &t.root, name);
		CHECK_EQ(get(&t.v, &ref, "value", buf, sizeof(buf)), sizeof(buf));
		CHECK(buf[0] == (u8)(k + 1) && !memcmp(buf, buf + 1, sizeof(buf) - 1));
	}
	/* the volume has room again */
	CHECK_OK(set(&t.v, &last, "value", value, sizeof(value) / 2, 0));
	for (k = 1; k < n; k++) {
		sprintf(name, "f%" PRIu64, k);
		ref = test_lookup(&t.v, &t.root, name);
		CHECK_OK(set(&t.v, &ref, "value", NULL, 0, 0));
	}
	tvol_drop(&t);
	printf("ok full with %" PRIu64 " files\n", n);
}

/* --- a blob in many extents ------------------------------------------------------------------- */

#define WIDE	(64ULL << 20)
#define APART	32		/* distance of free pages: sixteen in a chunk */

static u64 chunk_lock(struct sg_vol *v, u64 off)
{
	return sg_chunk_off(v, off >> SG_CHUNK_SHIFT) + offsetof(struct sg_chunk, lock);
}

/* Locks or unlocks all chunks, except those of the blob's head and last page. */
static void hold_chunks(struct sg_vol *v, u64 head, u64 last, bool hold)
{
	u64 c;

	for (c = 0; c < sg_chunks(v); c++) {
		u64 lock = chunk_lock(v, c << SG_CHUNK_SHIFT);

		if (lock == chunk_lock(v, head) || lock == chunk_lock(v, last))
			continue;
		if (hold)
			CHECK(sg_trylock(v, lock));
		else
			sg_unlock(v, lock);
	}
}

/*
 * A blob has more extents than one transaction can defer one by one, and other transactions have
 * locked most of its chunks. The extents in other chunks are freed, and a reader finds the
 * remaining blob intact.
 */
static void test_pieces(void)
{
	static char value[SG_XATTR_VALUE_MAX - 512];
	u64 i, head, last, pages, before;
	const struct sg_xattr_head *h;
	struct sg_iref ref, all;
	struct sg_tx *tx;
	char name[16];
	struct tvol t;
	u8 *copy;

	tvol_make(&t, WIDE);
	ref = make_file(&t);
	all = test_create(&t.v, &t.root, "all", SG_S_IFREG | 0644);
	for (i = 0; sg_free_pages(&t.v) > 100; i += SG_CHUNK_PAGES)
		if (sg_allocate(&t.v, &all, i, SG_MIN((u64)SG_CHUNK_PAGES, sg_free_pages(&t.v) - 80)))
			break;
	for (pages = i, i = 0; i < pages; i += APART)
		CHECK_OK(sg_punch(&t.v, &all, i * SG_PAGE, SG_PAGE, 1));
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	memset(value, 'v', sizeof(value));
	for (i = 0; i < 11; i++) {
		sprintf(name, "v%u", (unsigned int)i);
		CHECK_OK(set(&t.v, &ref, name, value, sizeof(value), 0));
		CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	}
	head = sg_iget(&t.v, &ref, xattr);
	h = sg_at(&t.v, head);
	last = h->page[h->pages - 1];
	hold_chunks(&t.v, head, last, true);
	tx = sg_tx_begin(&t.v);
	sg_tx_inode(tx, &ref);
	sg_xattr_drop(tx, &ref);
	CHECK_OK(sg_tx_commit(tx));
	before = sg_free_pages(&t.v);
	CHECK(sg_reclaim(&t.v, ~0u));
	CHECK(sg_free_pages(&t.v) > before);
	copy = test_map(WIDE);
	hold_chunks(&t.v, head, last, false);
	memcpy(copy, t.mem, WIDE);
	test_clean(copy, WIDE);
	test_unmap(copy, WIDE);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK(sg_free_pages(&t.v) > before + 150);
	tvol_drop(&t);
	printf("ok pieces\n");
}

int main(void)
{
	test_errors();
	test_acl();
	test_birth();
	test_random();
	test_race();
	test_damage();
	test_full();
	test_pieces();
	return test_done();
}
