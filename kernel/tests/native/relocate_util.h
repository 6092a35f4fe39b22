/* SPDX-License-Identifier: Apache-2.0 */
/* A volume with all structures that hold physical addresses, for tests that move it. */
#ifndef RELOCATE_UTIL_H
#define RELOCATE_UTIL_H

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "test.h"
#include "tree.h"

#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)

static inline struct sg_relocate_result moved_to(u8 *mem, u64 size, u64 phys)
{
	const struct sg_relocate_opts opts = { .phys = phys, .id = &test_identity, .force = true };
	struct sg_relocate_result res;
	int err = sg_relocate(mem, size, &opts, &res);

	if (err)
		test_fail(__FILE__, __LINE__, "cannot move to 0x%" PRIx64 " (%d, %s)", phys, err,
			  res.why);
	return res;
}

static inline void put_bytes(struct sg_vol *v, const struct sg_iref *f, u64 pos, u64 len)
{
	static u8 data[4 * MIB];
	struct rng rng = { pos ^ f->ino << 40 };

	CHECK(len <= sizeof(data));
	rng_fill(&rng, data, len);
	CHECK_EQ(sg_write(v, f, pos, data, len, 1), len);
}

static inline struct sg_iref make_file(struct tvol *t, const char *name, u64 pos, u64 len)
{
	struct sg_iref f = test_create(&t->v, &t->root, name, S_IFREG | 0640);

	put_bytes(&t->v, &f, pos, len);
	return f;
}

/*
 * Makes files with tables of each height, leaves of both sizes, holes, and data that looks like an
 * address.
 */
static inline void populate(struct tvol *t, unsigned int files)
{
	struct sg_userlock lock = { .kind = SG_USERLOCK_POSIX, .owner = 7, .last = 99, .slot = -1 };
	struct sg_iref dir = test_create(&t->v, &t->root, "many", S_IFDIR | 0700), f;
	struct sg_new link = { .mode = S_IFLNK | 0777, .target_len = 3000, .now = 1 };
	static char target[3001], value[9000];
	char name[60];
	unsigned int i;

	make_file(t, "page", 0, 100);
	make_file(t, "table", 0, 50000);
	f = make_file(t, "large", 0, 2 * MIB + 12345);
	make_file(t, "gigabytes", 3 * GIB + 4096, 9000);
	make_file(t, "terabytes", 5ULL << 40, 9000);
	put_bytes(&t->v, &f, 700 * MIB, 20000);
	memset(target, 'x', 3000);
	link.target = target;
	CHECK_OK(sg_create(&t->v, &t->root, "link", 4, &link, &f));
	for (i = 0; i < files; i++) {
		sprintf(name, "a-name-that-is-long-enough-to-split-buckets-soon-%u", i);
		f = test_create(&t->v, &dir, name, S_IFREG | 0600);
		put_bytes(&t->v, &f, i % 3 ? 0 : i * 4096, i % 5000 + 1);
		if (i % 9 == 0)
			CHECK_OK(sg_xattr_set(&t->v, &f, SG_XATTR_USER, "x", 1, value,
					      sizeof(value) >> i % 4, 0, 1));
	}
	CHECK_OK(sg_userlock_set(&t->v, &f, &lock, NULL, NULL));
	CHECK_OK(sg_userlock_clear(&t->v, &f, &lock));
}

static inline void defer_file(struct tvol *t, const char *name, const struct sg_iref *f)
{
	CHECK_OK(sg_open_inode(&t->v, f, false));
	CHECK_OK(sg_unlink(&t->v, &t->root, name, (u32)strlen(name), 1));
	sg_close_inode(&t->v, f);
	CHECK_OK(sg_evict(&t->v, f));
}

/* Leaves deferred frees of complete tables, and unfinished truncations, like a killed system. */
static inline void defer_and_die(struct tvol *t)
{
	struct sg_iref f = make_file(t, "gone", 0, 3 * MIB), g = make_file(t, "cut", 6 * GIB, 99);
	struct sg_iref h = make_file(t, "late", 9 * MIB, 5000);
	unsigned int i;

	for (i = 0; i < 60; i++) {
		put_bytes(&t->v, &f, 5 * MIB + i * 8192, 4096);
		put_bytes(&t->v, &g, i * 4 * MIB, 4096);
	}
	CHECK_OK(sg_resize(&t->v, &g, 12 * MIB, 1));
	defer_file(t, "gone", &f);
	defer_file(t, "late", &h);
	tvol_crash(t);
}

struct stop {
	const char *phase;
	unsigned int after;
};

static inline void stop_there(void *ctx, const char *phase, u64 done, u64 total)
{
	struct stop *s = ctx;

	(void)done;
	(void)total;
	if (!strcmp(phase, s->phase) && !s->after--)
		_exit(0);
}

/* Lets a process begin the move, and die during it. */
static inline void half_move(u8 *mem, u64 size, u64 phys, const char *phase,
			     unsigned int after)
{
	struct stop stop = { phase, after };
	const struct sg_relocate_opts opts = { .phys = phys, .id = &test_identity, .force = true,
					       .progress = stop_there, .ctx = &stop };
	struct sg_relocate_result res;
	int status;
	pid_t pid = test_fork();

	if (!pid) {
		sg_relocate(mem, size, &opts, &res);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static inline u64 digest(u8 *mem, u64 size)
{
	struct tvol t = { .mem = mem, .size = size };
	u64 sum;

	tvol_join(&t);
	sum = tree_of(&t.v, 0);
	tvol_leave(&t);
	test_clean(mem, size);
	return sum;
}

#endif
