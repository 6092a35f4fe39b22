/* SPDX-License-Identifier: Apache-2.0 */
/* A script with at least one operation of each kind, for tests that judge crashes. */
#ifndef CRASH_SCRIPT_H
#define CRASH_SCRIPT_H

#include "crash_work.h"

#define MIB	(1u << 20)
#define OP(k, ...)	{ .kind = CW_##k, __VA_ARGS__ }
#define DO(w, ...)	cw_do(w, &(struct cw_op)OP(__VA_ARGS__))

static const struct cw_op script[] = {
	OP(CREATE, "f"), OP(MKDIR, "d"), OP(MKDIR, "d/e"), OP(CREATE, "d/g"),
	OP(SYMLINK, "short", .len = 20), OP(SYMLINK, "long", .len = 3000),
	OP(MKNOD, "node", .len = 0x103),
	/* data: in the first page, in another page, over a hole, through a table, in place */
	OP(WRITE, "f", .len = 100), OP(WRITE, "f", .pos = 100, .len = 300),
	OP(WRITE, "f", .pos = 400, .len = 9000), OP(WRITE, "f", .pos = 40000, .len = 5000),
	OP(WRITE, "f", .pos = 50, .len = 6000), OP(WRITE, "f", .pos = 60000, .len = 10),
	OP(RESIZE, "f", .len = 59000), OP(RESIZE, "f", .len = 61000),
	OP(WRITE, "f", .pos = 3 * MIB, .len = 5000), OP(PUNCH, "f", .pos = 5000, .len = 30000),
	OP(ALLOCATE, "f", .pos = 8192, .len = 16384), OP(WRITE, "f", .pos = 9000, .len = 5000),
	OP(COLLAPSE, "f", .pos = 4096, .len = 8192), OP(INSERT, "f", .pos = 8192, .len = 12288),
	OP(RESIZE, "f", .len = 30001), OP(RECLAIM), OP(RESIZE, "f", .len = 4097),
	/* a large leaf that is split and cut */
	OP(WRITE, "d/g", .len = 2 * MIB + 5000), OP(WRITE, "d/g", .pos = MIB, .len = 10000),
	OP(PUNCH, "d/g", .pos = MIB / 2, .len = MIB / 4 + 100),
	OP(RESIZE, "d/g", .len = MIB + 77), OP(RECLAIM, .len = 2), OP(RECLAIM),
	/* names */
	OP(LINK, "d/f2", .b = "f"), OP(UNLINK, "f"), OP(LINK, "f", .b = "d/f2"),
	OP(RENAME, "f", .b = "h"), OP(RENAME, "h", .b = "d/h"), OP(RENAME, "d/h", .b = "d/f2"),
	OP(RENAME, "d/e", .b = "e"), OP(RENAME, "e", .b = "d/e2"), OP(CREATE, "victim"),
	OP(WRITE, "victim", .len = 20000), OP(RENAME, "short", .b = "victim"), OP(EVICT),
	OP(MKDIR, "empty"), OP(RENAME, "d/e2", .b = "empty"), OP(EVICT),
	OP(RENAME, "d", .b = "empty", .flags = SG_RENAME_EXCHANGE),
	OP(RENAME, "long", .b = "empty/g", .flags = SG_RENAME_EXCHANGE),
	OP(RENAME, "long", .b = "whited", .flags = SG_RENAME_WHITEOUT),
	OP(RENAME, "whited", .b = "long", .flags = SG_RENAME_WHITEOUT), OP(EVICT),
	OP(CREATE, "n"), OP(RENAME, "n", .b = "n2", .flags = SG_RENAME_NOREPLACE),
	OP(TMPFILE, "tmp"), OP(WRITE, "tmp", .len = 6000),
	/* attributes */
	OP(SETATTR, "tmp", .len = 0751), OP(XATTR, "tmp", .b = "one", .len = 10),
	OP(XATTR, "tmp", .b = "two", .len = 300), OP(XATTR, "tmp", .b = "one", .len = 6000),
	OP(XATTR, "tmp", .b = "three", .len = 50000), OP(UNXATTR, "tmp", .b = "three"),
	OP(UNXATTR, "tmp", .b = "two"), OP(UNXATTR, "tmp", .b = "one"), OP(XATTR, "n2", .b = "a", .len = 5),
	/* removals and a remount */
	OP(UNLINK, "n2"), OP(EVICT), OP(UNLINK, "long"), OP(EVICT), OP(UNLINK, "tmp"),
	OP(REMOUNT), OP(CREATE, "last"), OP(WRITE, "last", .len = 30000),
	OP(UNLINK, "last"), OP(EVICT), OP(RECLAIM), OP(REMOUNT),
};

#endif
