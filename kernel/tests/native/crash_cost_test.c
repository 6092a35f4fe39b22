// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of making an operation durable: fences, and the cache lines that the operation writes
 * back (D8). Each operation runs many times on one processor, and the recorder counts. The test
 * compares the most frequent count, and the mean (sometimes a bucket splits or a table grows). The
 * expected figures are in this file. A commit that changes a cost on purpose changes its figure
 * here, and gives the reason.
 *
 * `crash_cost_test table` prints lines for e2e/bench/flushes, which makes a page of them. Columns,
 * separated by tabs:
 *
 *     WHAT FENCES LINES DATA-LINES MEAN-FENCES MEAN-LINES
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "test.h"

#define OPS	128u		/* operations of each kind that are counted */
#define WARM	32u		/* operations of each kind before that, not counted */
#define ALL	(OPS + WARM)

struct bed {
	struct tvol t;
	struct rec rec;
	struct sg_iref dir, other, file, big;	/* file: 4 KiB; big: 1 MiB for each operation */
	struct sg_iref whole;	/* 64 KiB, with atomic writes */
	u8 bytes[1 << 20];
	s64 now;
};

/* --- operations ----------------------------------------------------------------------------- */

static u32 name_of(char name[24], const char *kind, unsigned int i)
{
	return (u32)snprintf(name, 24, "%s-%04u", kind, i);
}

static struct sg_iref found(struct bed *b, const char *kind, unsigned int i)
{
	char name[24];

	name_of(name, kind, i);
	return test_lookup(&b->t.v, &b->dir, name);
}

static void make(struct bed *b, const char *kind, unsigned int i, u32 mode)
{
	struct sg_new new = { .mode = mode, .now = b->now };
	struct sg_iref ref;
	char name[24];
	u32 len = name_of(name, kind, i);

	CHECK_OK(sg_create(&b->t.v, &b->dir, name, len, &new, &ref));
}

static void op_create(struct bed *b, unsigned int i)
{
	make(b, "file", i, S_IFREG | 0600);
}

static void op_mkdir(struct bed *b, unsigned int i)
{
	make(b, "dir", i, S_IFDIR | 0700);
}

static void op_lookup(struct bed *b, unsigned int i)
{
	found(b, "file", i);
}

static void op_stat(struct bed *b, unsigned int i)
{
	struct sg_attr a;

	(void)i;
	CHECK_OK(sg_getattr(&b->t.v, &b->file, &a));
}

static void op_append(struct bed *b, unsigned int i)
{
	CHECK_EQ(sg_write(&b->t.v, &b->file, (u64)i << SG_PAGE_SHIFT, b->bytes, SG_PAGE, b->now),
		 SG_PAGE);
}

static void op_overwrite(struct bed *b, unsigned int i)
{
	op_append(b, i);
}

static void op_read(struct bed *b, unsigned int i)
{
	CHECK_EQ(sg_read(&b->t.v, &b->file, (u64)i << SG_PAGE_SHIFT, b->bytes, SG_PAGE), SG_PAGE);
}

static void op_append_big(struct bed *b, unsigned int i)
{
	CHECK_EQ(sg_write(&b->t.v, &b->big, (u64)i * sizeof(b->bytes), b->bytes, sizeof(b->bytes),
			  b->now), sizeof(b->bytes));
}

static void op_overwrite_big(struct bed *b, unsigned int i)
{
	op_append_big(b, i);
}

static void op_write_small(struct bed *b, unsigned int i)
{
	struct sg_iref ref = found(b, "file", i);

	CHECK_EQ(sg_write(&b->t.v, &ref, 0, b->bytes, 100, b->now), 100);
}

static void atomic(struct bed *b, u64 pos, u64 len)
{
	bool filled;

	CHECK_OK(sg_write_atomic(&b->t.v, &b->whole, pos, b->bytes, len, 0, b->now, &filled));
}

static void op_atomic_small(struct bed *b, unsigned int i)
{
	atomic(b, (u64)i * 64 + 33, 100);
}

static void op_atomic_page(struct bed *b, unsigned int i)
{
	atomic(b, i % 16 * SG_PAGE, SG_PAGE);
}

static void op_atomic_odd(struct bed *b, unsigned int i)
{
	atomic(b, i % 15 * SG_PAGE + 33, SG_PAGE);
}

static void op_chmod(struct bed *b, unsigned int i)
{
	struct sg_attr a = { .mode = S_IFREG | (0600 + i % 8), .ctime = b->now };

	CHECK_OK(sg_setattr(&b->t.v, &b->file, SG_SET_MODE | SG_SET_CTIME, &a));
}

static void op_utimes(struct bed *b, unsigned int i)
{
	CHECK_OK(sg_touch(&b->t.v, &b->file, SG_SET_ATIME | SG_SET_MTIME, i + 2, 0, i + 2));
}

static void op_xattr(struct bed *b, unsigned int i)
{
	struct sg_iref ref = found(b, "file", i);

	CHECK_OK(sg_xattr_set(&b->t.v, &ref, SG_XATTR_USER, "note", 4, "value", 5, 0, b->now));
}

static void op_link(struct bed *b, unsigned int i)
{
	struct sg_iref ref = found(b, "file", i);
	char name[24];
	u32 len = name_of(name, "link", i);

	CHECK_OK(sg_link(&b->t.v, &ref, &b->dir, name, len, b->now));
}

static void op_unlink_link(struct bed *b, unsigned int i)
{
	char name[24];
	u32 len = name_of(name, "link", i);

	CHECK_OK(sg_unlink(&b->t.v, &b->dir, name, len, b->now));
}

static void renamed(struct bed *b, const struct sg_iref *to, const char *kind, unsigned int i)
{
	char from[24], name[24];
	u32 from_len = name_of(from, "file", i), len = name_of(name, kind, i);

	CHECK_OK(sg_rename(&b->t.v, &b->dir, from, from_len, to, name, len, 0, NULL, b->now));
}

static void op_rename(struct bed *b, unsigned int i)
{
	renamed(b, &b->dir, "renamed", i);
}

static void op_rename_over(struct bed *b, unsigned int i)
{
	struct sg_iref ref = found(b, "renamed", i);

	renamed(b, &b->dir, "renamed", i);
	CHECK_OK(sg_evict(&b->t.v, &ref));
}

static void op_move(struct bed *b, unsigned int i)
{
	renamed(b, &b->other, "moved", i);
}

static void op_symlink(struct bed *b, unsigned int i)
{
	struct sg_new new = { .mode = S_IFLNK | 0777, .now = b->now, .target = "file-0000",
			      .target_len = 9 };
	struct sg_iref ref;
	char name[24];
	u32 len = name_of(name, "symlink", i);

	CHECK_OK(sg_create(&b->t.v, &b->dir, name, len, &new, &ref));
}

static void removed(struct bed *b, const char *kind, unsigned int i, bool dir)
{
	struct sg_iref ref = found(b, kind, i);
	char name[24];
	u32 len = name_of(name, kind, i);

	CHECK_OK((dir ? sg_rmdir : sg_unlink)(&b->t.v, &b->dir, name, len, b->now));
	CHECK_OK(sg_evict(&b->t.v, &ref));
}

static void op_unlink(struct bed *b, unsigned int i)
{
	removed(b, "file", i, false);
}

static void op_rmdir(struct bed *b, unsigned int i)
{
	removed(b, "dir", i, true);
}

static void op_truncate(struct bed *b, unsigned int i)
{
	CHECK_OK(sg_resize(&b->t.v, &b->file, (u64)(ALL - 1 - i) << SG_PAGE_SHIFT, b->now));
}

static void op_allocate(struct bed *b, unsigned int i)
{
	CHECK_OK(sg_allocate(&b->t.v, &b->file, i, 1));
}

static void op_punch(struct bed *b, unsigned int i)
{
	CHECK_OK(sg_punch(&b->t.v, &b->file, (u64)i << SG_PAGE_SHIFT, SG_PAGE, b->now));
}

/* --- counting ------------------------------------------------------------------------------- */

/**
 * struct row - an operation, and its most frequent cost.
 * @again: the operation needs op_create's file, which the test makes again before each run.
 * @data: the number of @lines that hold the file's own bytes.
 */
struct row {
	const char *what;
	void (*op)(struct bed *b, unsigned int i);
	bool again;
	unsigned int fences, lines, data;
};

static const struct row rows[] = {
	{ "create", op_create, false, 4, 17, 0 },
	{ "look up a name", op_lookup, false, 0, 0, 0 },
	{ "stat", op_stat, false, 0, 0, 0 },
	{ "first 100 bytes of a file", op_write_small, false, 4, 75, 2 },
	{ "append 4 KiB", op_append, false, 4, 75, 64 },
	{ "overwrite 4 KiB", op_overwrite, false, 2, 66, 64 },
	{ "read 4 KiB", op_read, false, 0, 0, 0 },
	{ "append 1 MiB", op_append_big, false, 8, 16505, 16384 },
	{ "overwrite 1 MiB", op_overwrite_big, false, 2, 16386, 16384 },
	{ "chmod", op_chmod, false, 3, 6, 0 },
	{ "utimes", op_utimes, false, 0, 2, 0 },
	{ "set an attribute", op_xattr, false, 4, 12, 0 },
	{ "link", op_link, false, 4, 13, 0 },
	{ "unlink one of two names", op_unlink_link, false, 3, 12, 0 },
	{ "rename", op_rename, false, 4, 15, 0 },
	{ "rename over a file", op_rename_over, true, 6, 35, 0 },
	{ "rename into another directory", op_move, true, 4, 19, 0 },
	{ "symlink", op_symlink, false, 4, 22, 0 },
	{ "mkdir", op_mkdir, false, 4, 19, 0 },
	{ "rmdir", op_rmdir, false, 6, 25, 0 },
	{ "unlink", op_unlink, true, 6, 23, 0 },
	{ "punch 4 KiB", op_punch, false, 4, 11, 0 },
	{ "allocate 4 KiB", op_allocate, false, 4, 73, 0 },
	{ "truncate by 4 KiB", op_truncate, false, 5, 11, 0 },
	{ "atomic write of 100 bytes", op_atomic_small, false, 3, 11, 2 },
	{ "atomic write of a page", op_atomic_page, false, 4, 75, 64 },
	{ "atomic write of 4 KiB in two pages", op_atomic_odd, false, 4, 136, 65 },
};

struct counts {
	unsigned int fences[OPS], lines[OPS];
};

static int by_value(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

static unsigned int median(unsigned int of[OPS])
{
	qsort(of, OPS, sizeof(*of), by_value);
	return of[OPS / 2];
}

static double mean(const unsigned int of[OPS])
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < OPS; i++)
		sum += of[i];
	return sum / OPS;
}

static void count_one(struct bed *b, const struct row *row, unsigned int i, struct counts *c)
{
	u64 k;

	b->rec.n = 0;
	b->now += 1000;
	rec_to(&b->rec);
	row->op(b, i);
	rec_to(NULL);
	rec_forget_pages(&b->rec);
	if (i < WARM)
		return;
	i -= WARM;
	c->fences[i] = c->lines[i] = 0;
	for (k = 0; k < b->rec.n; k++) {
		c->fences[i] += b->rec.ev[k].kind == REC_FENCE;
		c->lines[i] += b->rec.ev[k].kind == REC_WB;
	}
}

static void count_row(struct bed *b, const struct row *row, bool table)
{
	static struct counts c;
	unsigned int i, fences, lines;

	for (i = 0; row->again && i < ALL; i++)
		op_create(b, i);
	for (i = 0; i < ALL; i++)
		count_one(b, row, i, &c);
	fences = median(c.fences);
	lines = median(c.lines);
	if (table) {
		printf("%s\t%u\t%u\t%u\t%.1f\t%.1f\n", row->what, fences, lines, row->data,
		       mean(c.fences), mean(c.lines));
		return;
	}
	test_note("%s", row->what);
	CHECK_EQ(fences, row->fences);
	CHECK_EQ(lines, row->lines);
}

static void one_processor(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	CHECK_OK(sched_setaffinity(0, sizeof(set), &set));
}

int main(int argc, char **argv)
{
	bool table = argc > 1 && !strcmp(argv[1], "table");
	static struct bed b;
	unsigned int i;

	one_processor();
	tvol_make(&b.t, 512 << 20);
	rec_init(&b.rec, b.t.mem, b.t.size, true);
	b.now = 1000000;
	memset(b.bytes, 'x', sizeof(b.bytes));
	b.dir = test_create(&b.t.v, &b.t.root, "dir", S_IFDIR | 0700);
	b.other = test_create(&b.t.v, &b.t.root, "other", S_IFDIR | 0700);
	b.file = test_create(&b.t.v, &b.t.root, "pages", S_IFREG | 0600);
	b.big = test_create(&b.t.v, &b.t.root, "big", S_IFREG | 0600);
	b.whole = test_create(&b.t.v, &b.t.root, "whole", S_IFREG | 0600);
	for (i = 0; i < 16; i++)
		CHECK_EQ(sg_write(&b.t.v, &b.whole, i * SG_PAGE, b.bytes, SG_PAGE, 1), SG_PAGE);
	CHECK_OK(sg_set_atomic(&b.t.v, &b.whole, true, 1));
	for (i = 0; i < SG_ARRAY_SIZE(rows); i++)
		count_row(&b, &rows[i], table);
	rec_free(&b.rec);
	tvol_drop(&b.t);
	return table ? 0 : test_done();
}
