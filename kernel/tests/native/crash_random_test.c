// SPDX-License-Identifier: Apache-2.0
/*
 * Random operations on few names, so that the names collide. The test judges a sample of the crash
 * points, and for some operations every crash point. Some volumes are full, so that operations fail
 * as well.
 */
#include "crash_work.h"

static const char *const paths[] = {
	"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "g", "g/a", "g/h", "g/h/b",
};
static const char *const dirs[] = { "d", "d/e", "g", "g/h" };
static const char *const xattrs[] = { "one", "two" };
#define PICK(r, list) list[rng_below(r, sizeof(list) / sizeof(list[0]))]

#define FILE_MAX	(200u << 10)

static enum cw_kind some_kind(struct rng *r)
{
	static const enum cw_kind kinds[] = {
		CW_CREATE, CW_CREATE, CW_MKDIR, CW_MKDIR, CW_SYMLINK, CW_LINK, CW_UNLINK, CW_UNLINK,
		CW_RMDIR, CW_RENAME, CW_RENAME, CW_RENAME, CW_EVICT, CW_EVICT, CW_TMPFILE, CW_WRITE,
		CW_WRITE, CW_WRITE, CW_WRITE, CW_RESIZE, CW_RESIZE, CW_PUNCH, CW_ALLOCATE, CW_COLLAPSE,
		CW_INSERT, CW_XATTR, CW_XATTR, CW_UNXATTR, CW_SETATTR, CW_RECLAIM, CW_REMOUNT,
		CW_ATOMIC, CW_ATOMIC, CW_ATOMIC, CW_ATOMIC, CW_FLAG, CW_FLAG, CW_MAP,
	};

	return PICK(r, kinds);
}

static void some_op(struct rng *r, struct cw_op *op)
{
	*op = (struct cw_op){ .kind = some_kind(r), .a = PICK(r, paths), .b = PICK(r, paths) };
	op->pos = rng_size(r, FILE_MAX);
	op->len = 1 + rng_size(r, FILE_MAX / 2);
	switch (op->kind) {
	case CW_MKDIR:
	case CW_RMDIR:
		op->a = PICK(r, dirs);
		break;
	case CW_SYMLINK:
		op->len = rng_range(r, 1, 300);
		break;
	case CW_RENAME:
		op->flags = (unsigned int)rng_below(r, 5);
		break;
	case CW_ALLOCATE:
	case CW_COLLAPSE:
	case CW_INSERT:
		op->pos &= ~(SG_PAGE - 1);
		op->len = (op->len | (SG_PAGE - 1)) + 1;
		break;
	case CW_XATTR:
	case CW_UNXATTR:
		op->b = PICK(r, xattrs);
		op->len = 1 + rng_size(r, 20000);
		break;
	case CW_RESIZE:
		op->len = rng_size(r, FILE_MAX);
		break;
	case CW_ATOMIC:
		op->len = op->len % SG_ATOMIC_MAX + 1;
		if (rng_chance(r, 50)) {	/* complete pages */
			op->pos &= ~(SG_PAGE - 1);
			op->len = (op->len | (SG_PAGE - 1)) + 1;
			op->len = op->len > SG_ATOMIC_MAX ? SG_ATOMIC_MAX : op->len;
		}
		break;
	case CW_FLAG:
	case CW_MAP:
		op->len = op->len % 3;
		break;
	default:
		break;
	}
}

/* Data operations need a regular file. A call with any other type would be a mistake of the caller.
 * */
static bool makes_sense(struct cw *w, const struct cw_op *op)
{
	struct sg_iref ref;
	struct sg_attr a;

	if ((op->kind < CW_WRITE || op->kind > CW_INSERT) && op->kind < CW_ATOMIC)
		return true;
	return cw_find(w, op->a, &ref) && !sg_getattr(&w->t.v, &ref, &a) &&
	       (a.mode & 0170000) == 0100000 && a.size < 4 * FILE_MAX;
}

static void run(u64 ops, u64 seed, bool full)
{
	u64 i, done = 0;
	struct cw_op op;
	struct rng rng = { seed };
	struct cw w;

	cw_make(&w, TEST_SMALL, seed);
	w.nest = 700;
	if (full)
		cw_fill(&w, 30);
	for (i = 0; i < ops; i++) {
		do
			some_op(&rng, &op);
		while (!makes_sense(&w, &op));
		w.c.every = i % 20 ? 12 : 1;
		w.c.samples = i % 20 ? 1 : 10;
		done += cw_do(&w, &op) >= 0;
	}
	printf("%" PRIu64 " operations, %" PRIu64 " of these succeeded, %" PRIu64 " images, %" PRIu64
	       " interrupted recoveries\n", ops, done, w.c.images, w.recoveries);
	fflush(stdout);
	cw_drop(&w);
}

int main(void)
{
	u64 ops = test_amount(200, 4000, 100000), seed = test_seed(), i;

	for (i = 0; i < 8; i++)
		run(ops / 8, seed * 8 + i, i % 4 == 3);
	return test_done();
}
