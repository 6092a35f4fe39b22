// SPDX-License-Identifier: Apache-2.0
/*
 * Operations of the systems. Each system has its own directory and files, except in operations with
 * "shared" in the name. File data is not copied: only the engine's own accesses count.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include "lines.h"

static u32 name_of(char *name, char kind, unsigned int i)
{
	return (u32)sprintf(name, "%c%u", kind, i);
}

static struct sg_iref make(unsigned int c, const struct sg_iref *dir, char kind, unsigned int i)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref ref;
	char name[16];
	u32 len = name_of(name, kind, i);

	CHECK_OK(sg_create(lines_vol(c), dir, name, len, &new, &ref));
	return ref;
}

static void discard(unsigned int c, char kind, unsigned int i)
{
	struct sg_iref ref;
	char name[16];
	u32 len = name_of(name, kind, i);

	CHECK_OK(sg_lookup(lines_vol(c), &lines.dir[c], name, len, &ref, NULL));
	CHECK_OK(sg_unlink(lines_vol(c), &lines.dir[c], name, len, 2));
	CHECK_OK(sg_evict(lines_vol(c), &ref));
}

static void store(unsigned int c, const struct sg_iref *ref, u64 page, unsigned int flags)
{
	struct sg_write w;

	CHECK_OK(sg_write_begin(lines_vol(c), ref, page * SG_PAGE, SG_PAGE, flags, &w));
	CHECK_OK(sg_write_end(lines_vol(c), ref, &w, w.len, 3));
}

static void read_it(unsigned int c, const struct sg_iref *ref, unsigned int i)
{
	struct sg_run run;
	struct sg_attr attr;

	CHECK_OK(sg_getattr(lines_vol(c), ref, &attr));
	CHECK_OK(sg_walk(lines_vol(c), ref, i % 16, 1, &run));
}

static void op_read(unsigned int c, unsigned int i)
{
	read_it(c, &lines.file[c], i);
}

static void op_read_shared(unsigned int c, unsigned int i)
{
	read_it(c, &lines.shared, i);
}

static void op_overwrite(unsigned int c, unsigned int i)
{
	store(c, &lines.file[c], i % 16, SG_WRITE_IN_PLACE);
}

static void op_append(unsigned int c, unsigned int i)
{
	store(c, &lines.file[c], 16 + i, SG_WRITE_LOCKED);
}

static void op_allocate(unsigned int c, unsigned int i)
{
	CHECK_OK(sg_allocate(lines_vol(c), &lines.file[c], 1024 + 2 * i, 1));
}

static void op_stat(unsigned int c, unsigned int i)
{
	struct sg_attr attr;

	(void)i;
	CHECK_OK(sg_getattr(lines_vol(c), &lines.file[c], &attr));
}

static void op_open_close(unsigned int c, unsigned int i)
{
	(void)i;
	CHECK_OK(sg_open_inode(lines_vol(c), &lines.file[c], false));
	CHECK(!sg_close_inode(lines_vol(c), &lines.file[c]));
}

static void op_open_close_shared(unsigned int c, unsigned int i)
{
	(void)i;
	CHECK_OK(sg_open_inode(lines_vol(c), &lines.shared, false));
	if (!lines.threads)	/* all threads of a system share one bit */
		CHECK(!sg_close_inode(lines_vol(c), &lines.shared));
}

static void op_chmod(unsigned int c, unsigned int i)
{
	struct sg_attr attr = { .mode = i % 2 ? 0600 : 0640 };

	CHECK_OK(sg_setattr(lines_vol(c), &lines.file[c], SG_SET_MODE, &attr));
}

static void op_create(unsigned int c, unsigned int i)
{
	make(c, &lines.dir[c], 'f', i);
}

static void op_create_shared(unsigned int c, unsigned int i)
{
	make(c, &lines.shared_dir, 's', c + i * CORES);
}

static void op_lookup(unsigned int c, unsigned int i)
{
	struct sg_iref ref;
	char name[16];
	u32 len = name_of(name, 'f', i % 64);

	CHECK_OK(sg_lookup(lines_vol(c), &lines.dir[c], name, len, &ref, NULL));
}

static void op_rename(unsigned int c, unsigned int i)
{
	char from[16], to[16];
	u32 len = name_of(from, i % 2 ? 'r' : 'f', i / 2), tolen = name_of(to, i % 2 ? 'f' : 'r', i / 2);

	CHECK_OK(sg_rename(lines_vol(c), &lines.dir[c], from, len, &lines.dir[c], to, tolen, 0, NULL,
			   4));
}

static void op_unlink(unsigned int c, unsigned int i)
{
	discard(c, 'f', i);
}

static void op_create_unlink(unsigned int c, unsigned int i)
{
	make(c, &lines.dir[c], 't', i);
	discard(c, 't', i);
}

static void op_create_write_unlink(unsigned int c, unsigned int i)
{
	struct sg_iref ref = make(c, &lines.dir[c], 't', i);

	store(c, &ref, 0, SG_WRITE_LOCKED);
	discard(c, 't', i);
}

static void flock_it(unsigned int c, const struct sg_iref *ref, bool exclusive)
{
	struct sg_userlock lock = {
		.kind = SG_USERLOCK_FLOCK, .exclusive = exclusive, .pid = c + 1, .owner = c + 1,
		.last = SG_USERLOCK_MAX, .slot = -1,
	};

	CHECK_OK(sg_userlock_set(lines_vol(c), ref, &lock, NULL, NULL));
	CHECK_OK(sg_userlock_clear(lines_vol(c), ref, &lock));
}

static void op_flock(unsigned int c, unsigned int i)
{
	(void)i;
	flock_it(c, &lines.file[c], true);
}

static void op_flock_shared(unsigned int c, unsigned int i)
{
	(void)i;
	flock_it(c, &lines.shared, true);
}

static void op_statfs(unsigned int c, unsigned int i)
{
	struct sg_statfs s;

	(void)i;
	CHECK_OK(sg_statfs(lines_vol(c), &s));
}

static void op_maintain(unsigned int c, unsigned int i)
{
	(void)i;
	if (c && lines.threads)		/* one thread of a system does its periodic work */
		return;
	CHECK(sg_maintain(lines_vol(c)) >= 0);
}

const struct lines_op lines_ops[] = {
	{ "read", op_read, 16, 16, 0 },
	{ "read-shared", op_read_shared, 16, 16, 0 },
	{ "overwrite", op_overwrite, 16, 16, 0 },
	{ "append", op_append, 32, 64, 0 },
	{ "allocate", op_allocate, 8, 16, 0 },
	{ "stat", op_stat, 4, 8, 0 },
	{ "chmod", op_chmod, 4, 8, 0 },
	{ "open-close", op_open_close, 4, 8, 0 },
	{ "open-close-shared", op_open_close_shared, 4, 8, 0 },
	{ "flock", op_flock, 4, 8, 0 },
	{ "flock-shared", op_flock_shared, 4, 8, 0 },
	{ "create", op_create, 64, 128, 0 },
	{ "lookup", op_lookup, 64, 32, 0 },
	{ "rename", op_rename, 8, 32, 0 },
	{ "unlink", op_unlink, 64, 128, 0 },
	{ "create-unlink", op_create_unlink, 64, 64, 0 },
	{ "create-write-unlink", op_create_write_unlink, 64, 64, 0 },
	{ "create-shared", op_create_shared, 8, 16, 0 },
	{ "statfs", op_statfs, 2, 2, 0 },
	{ "maintain", op_maintain, 2, 2, 0 },
	{ "remove-written-1000", op_create_write_unlink, 0, 0, 1000 },
};
const unsigned int lines_nops = SG_ARRAY_SIZE(lines_ops);
