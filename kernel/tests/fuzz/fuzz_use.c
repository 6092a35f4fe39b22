// SPDX-License-Identifier: Apache-2.0
/* Uses of a hostile volume: each call may fail, but must return. */
#include <sys/stat.h>
#include "fuzz.h"

#define INODES	48
#define NAMES	400	/* names listed per directory */

static u8 buf[1 << 16];

bool fuzz_join(struct sg_vol *v, u8 *mem, bool read_only)
{
	if (sg_open(v, mem, FUZZ_SIZE, read_only, NULL))
		return false;
	return read_only || !sg_join(v, &test_identity, 0, true);
}

static bool emit_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	unsigned int *n = ctx;

	(void)ino;
	(void)cookie;
	CHECK(len && len <= SG_NAME_MAX && type < 16 && !memchr(name, 0, len) && !memchr(name, '/', len));
	return ++*n < NAMES;
}

static int emit_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
		      const void *value, u32 value_len)
{
	u32 sum = sg_crc32c(sg_crc32c(space, name, name_len), value, value_len);

	*(u32 *)ctx ^= sum;	/* reads every byte */
	return 0;
}

static void read_data(struct sg_vol *v, const struct sg_iref *ref)
{
	static const u64 at[] = { 0, 4096, SG_CHUNK - 10, SG_CHUNK, 1ULL << 30, 1ULL << 40, 1ULL << 45 };
	struct sg_run run;
	unsigned int i;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		sg_read(v, ref, at[i], buf, sizeof(buf));
		if (!sg_walk(v, ref, at[i] / SG_PAGE, 1 << 20, &run)) {
			CHECK(run.pages && run.pages <= 1 << 20);
			CHECK(!run.off || (run.off < FUZZ_SIZE &&
					   run.pages <= (FUZZ_SIZE - run.off) / SG_PAGE));
		}
		sg_seek(v, ref, at[i], i & 1);
	}
	sg_flush(v, ref, 0, 1 << 20);
	sg_root(v, ref);
}

static void read_one(struct sg_vol *v, const struct sg_iref *ref)
{
	unsigned int n = 0;
	u64 cookie = 0;
	struct sg_attr a;
	u32 sum = 0;

	sg_seq(v, ref);
	sg_xattr_list(v, ref, emit_xattr, &sum);
	sg_xattr_get(v, ref, SG_XATTR_USER, "small", 5, buf, sizeof(buf));
	sg_xattr_get(v, ref, SG_XATTR_USER, "big", 3, buf, sizeof(buf));
	if (sg_getattr(v, ref, &a))
		return;
	switch (a.mode & S_IFMT) {
	case S_IFREG:
		read_data(v, ref);
		break;
	case S_IFLNK:
		CHECK(sg_readlink(v, ref, (char *)buf, SG_SYMLINK_MAX) <= SG_SYMLINK_MAX);
		break;
	case S_IFDIR:
		sg_readdir(v, ref, &cookie, emit_name, &n);
		break;
	}
}

void fuzz_read_all(struct sg_vol *v)
{
	struct sg_iref ref;
	unsigned int type;
	u64 ino;

	for (ino = 0; ino < INODES; ino++) {
		if (sg_iref(v, ino, &ref))
			continue;
		CHECK(ref.off < FUZZ_SIZE - SG_INODE_SIZE);
		read_one(v, &ref);
		sg_lookup(v, &ref, "one", 3, &ref, &type);
	}
	sg_iref(v, ~0ULL, &ref);
}

/* --- changes -------------------------------------------------------------------------------- */

static const char *const names[] = {
	"dir", "many", "one", "table", "short", "long", "link", "fifo", "new", "sub", "large", "sparse",
	"a-name-of-some-length-so-that-a-bucket-holds-few-7", "other",
};
#define NAME(i)	names[(i) % (sizeof(names) / sizeof(names[0]))]

static void change_names(struct sg_vol *v, const struct sg_iref *dir, const struct sg_iref *other,
			 u8 script)
{
	struct sg_new new = { .mode = (script & 1 ? S_IFDIR : S_IFREG) | 0700, .now = 2 };
	const char *a = NAME(script), *b = NAME(script / 14 + 3);
	u32 alen = (u32)strlen(a), blen = (u32)strlen(b);
	struct sg_iref ref;
	unsigned int type;

	if (!sg_create(v, dir, a, alen, &new, &ref))
		sg_link(v, &ref, other, b, blen, 2);
	sg_rename(v, dir, a, alen, other, b, blen, script >> 6 & 3, &new, 2);
	if (!sg_lookup(v, other, b, blen, &ref, &type)) {
		if (sg_unlink(v, other, b, blen, 2))
			sg_rmdir(v, other, b, blen, 2);
		sg_evict(v, &ref);
	}
	sg_xattr_set(v, dir, SG_XATTR_USER, "new", 3, buf, 5000, 0, 2);
	sg_xattr_set(v, other, SG_XATTR_USER, "small", 5, NULL, 0, 0, 2);
}

void fuzz_names(struct sg_vol *v, u8 script)
{
	struct sg_statfs st;
	struct sg_iref a, b;
	u64 ino;

	for (ino = 1; ino < 5; ino++)
		if (!sg_iref(v, ino, &a) && !sg_iref(v, 1 + (ino + script) % 4, &b))
			change_names(v, &a, &b, (u8)(script + ino * 37));
	sg_statfs(v, &st);
}

/* Appends atomically, with the file's lock, so that it waits for no other system. */
static void append_atomic(struct sg_vol *v, const struct sg_iref *f, u64 len)
{
	bool filled = false;
	u64 size;

	if (sg_append_begin(v, f, &size))
		return;
	sg_write_atomic(v, f, size, buf, len, SG_WRITE_APPEND, 2, &filled);
	sg_append_end(v, f);
}

static void change_data(struct sg_vol *v, const struct sg_iref *f, u8 script)
{
	static const u64 at[] = { 0, 5000, SG_CHUNK, 1ULL << 30, 1ULL << 40 };
	u64 pos = at[script % 5];

	if (script & 8)
		sg_write(v, f, pos, buf, 9000, 2);
	if ((script & 12) == 4)
		append_atomic(v, f, script & 16 ? 9000 : 100);
	if (script & 16)
		sg_collapse(v, f, pos & ~(SG_PAGE - 1), SG_PAGE, 2);
	if (script & 32)
		sg_insert(v, f, pos & ~(SG_PAGE - 1), 3 * SG_PAGE, 2);
	if (script & 64)
		sg_punch(v, f, pos, SG_CHUNK / 2, 2);
	sg_allocate(v, f, pos / SG_PAGE, 5);
	sg_resize(v, f, script & 128 ? 0 : pos + 1, 2);
}

void fuzz_data(struct sg_vol *v, u8 script)
{
	struct sg_statfs st;
	struct sg_iref f;
	struct sg_attr a;
	u64 ino;

	for (ino = 2; ino < 14; ino++)
		if (!sg_iref(v, ino, &f) && !sg_getattr(v, &f, &a) && S_ISREG(a.mode))
			change_data(v, &f, (u8)(script + ino * 41));
	sg_statfs(v, &st);
}
