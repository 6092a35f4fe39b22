// SPDX-License-Identifier: Apache-2.0
/* Volumes for tests. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include "internal.h"
#include "test.h"

#define GUARD	SG_CHUNK

const struct sg_identity test_identity = {
	.machine = "test machine", .boot = "test boot", .name = "test", .pid = 1,
	.beat_ns = 1000000000,
};

static void damaged(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	test_fail(__FILE__, __LINE__, "damage in an intact volume: inode %" PRIu64 ", offset 0x%"
		  PRIx64, ino, off);
}

u8 *test_map(u64 size)
{
	u8 *p = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK(mmap(p + GUARD, size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == p + GUARD);
	return p + GUARD;
}

void test_unmap(u8 *mem, u64 size)
{
	CHECK_OK(munmap(mem - GUARD, size + 2 * GUARD));
}

/* Gives every volume the same hash keys, so that a test repeats exactly. */
static void same_hashes(struct tvol *t, u64 size)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct sg_super *sb = (void *)(t->mem + i * (size - SG_PAGE));

		sb->hash_seed[0] = 0x0123456789abcdefULL;
		sb->hash_seed[1] = 0xfedcba9876543210ULL;
		sb->crc = 0;
		sb->crc = sg_crc32c(~0u, sb, sizeof(*sb));
	}
}

void tvol_make(struct tvol *t, u64 size)
{
	tvol_make_in(t, size, size);
}

void tvol_make_in(struct tvol *t, u64 size, u64 memory)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .label = "test" };
	char why[200] = "";

	memset(t, 0, sizeof(*t));
	t->mem = test_map(memory);
	t->size = memory;
	memset(t->mem, 0xa5, memory);
	if (sg_format(t->mem, size, &opts, why))
		test_fail(__FILE__, __LINE__, "sg_format: %s", why);
	same_hashes(t, size);
	tvol_join(t);
}

void test_lapses_over(u8 *mem)
{
	*(u64 *)(mem + SG_HOT(lapsed)) = 0;	/* a recorder need not see this store */
}

int test_end_lapses(void *ctx, struct sg_vol *v)
{
	(void)ctx;
	if (v)
		test_lapses_over(v->base);
	return 0;
}

void tvol_join(struct tvol *t)
{
	int err = sg_open(&t->v, t->mem, t->size, false, NULL);

	t->v.on_damage = damaged;
	if (!err)
		err = sg_join(&t->v, &test_identity, 0, true);
	if (err)
		test_fail(__FILE__, __LINE__, "cannot join: %d, %s", err, t->v.why);
	if (sg_get(&t->v, SG_HOT(lapsed))) {
		test_lapses_over(t->mem);
		sg_settle(&t->v);	/* frees removed files that a fenced system had open */
	}
	CHECK_OK(sg_iref(&t->v, SG_INO_ROOT, &t->root));
}

void tvol_leave(struct tvol *t)
{
	sg_leave(&t->v);
	CHECK(!sg_needs_recovery(&t->v));
}

void tvol_crash(struct tvol *t)
{
	sg_abandon(&t->v);
	CHECK(sg_needs_recovery(&t->v));
}

void tvol_recheck(struct tvol *t)
{
	tvol_leave(t);
	test_clean(t->mem, t->size);
	tvol_join(t);
}

void tvol_drop(struct tvol *t)
{
	tvol_leave(t);
	test_clean(t->mem, t->size);
	test_unmap(t->mem, t->size);
}

/* --- check ---------------------------------------------------------------------------------- */

static void print_finding(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	(void)ctx;
	fprintf(stderr, "  check: %s (inode %" PRIu64 ", offset 0x%" PRIx64 ")%s\n", what, ino, off,
		fixed ? ", fixed" : "");
}

bool test_is_clean(void *base, u64 size, struct sg_check_result *res)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_ONLY, .report = print_finding };
	int err = sg_check(base, size, &opts, res);

	if (err)
		fprintf(stderr, "  sg_check: %d\n", err);
	return !err && !res->found;
}

void test_clean(void *base, u64 size)
{
	struct sg_check_result res;

	CHECK(test_is_clean(base, size, &res));
}

/* --- names ---------------------------------------------------------------------------------- */

struct sg_iref test_create(struct sg_vol *v, const struct sg_iref *dir, const char *name, u32 mode)
{
	struct sg_new new = { .mode = mode, .now = 1 };
	struct sg_iref ref;

	CHECK_OK(sg_create(v, dir, name, (u32)strlen(name), &new, &ref));
	return ref;
}

void test_fill(struct sg_vol *v, const struct sg_iref *f, u64 pos, u64 len)
{
	static u8 buf[3 << 20];

	memset(buf, 'f', sizeof(buf));
	CHECK_EQ(sg_write(v, f, pos, buf, len, 1), len);
}

void test_symlink(struct sg_vol *v, const struct sg_iref *dir, const char *name, u32 len)
{
	static char target[SG_SYMLINK_MAX];
	struct sg_new new = { .mode = S_IFLNK | 0777, .target = target, .target_len = len, .now = 1 };
	struct sg_iref ref;

	memset(target, 't', sizeof(target));
	CHECK_OK(sg_create(v, dir, name, (u32)strlen(name), &new, &ref));
}

struct sg_iref test_lookup(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	unsigned int type;
	struct sg_iref ref;

	CHECK_OK(sg_lookup(v, dir, name, (u32)strlen(name), &ref, &type));
	return ref;
}

void test_forge_name(struct sg_vol *v, const struct sg_iref *dir, const char *name, u64 ino,
		     unsigned int type)
{
	struct sg_name n;
	int err = -EAGAIN;

	sg_name_of(v, name, (u32)strlen(name), &n);
	CHECK_OK(sg_lock(v, SG_IOFF(dir, lock)));
	while (err == -EAGAIN) {
		struct sg_tx *tx = sg_tx_begin(v);

		err = sg_dir_add(tx, dir, &n, ino, type);
		if (err == -EAGAIN) {
			sg_tx_abort(tx);
			CHECK_OK(sg_dir_make_room(v, dir, &n));
		} else {
			err = sg_tx_commit(tx);
		}
	}
	sg_unlock(v, SG_IOFF(dir, lock));
	CHECK_OK(err);
}
