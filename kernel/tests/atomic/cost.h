/* SPDX-License-Identifier: Apache-2.0 */
/* A file on a volume, and the ways to write it, for measurements of atomic writes. */
#ifndef ATOMIC_COST_H
#define ATOMIC_COST_H

#include "internal.h"
#include "test.h"

#define COST_PAGES	256	/* pages of the file, in leaves of 4 KiB */
#define COST_BYTES	((u64)COST_PAGES * SG_PAGE)

/**
 * struct cost_bed - a volume with one system and one file.
 * @atomic: the file has the attribute. @heads: a second file with a word for each page of the
 * file, which says where the page's log ends (pagelog.c).
 */
struct cost_bed {
	u8 *mem;
	struct sg_vol v;
	struct sg_iref root, file, heads;
	bool atomic;
};

/* Bytes in a page's log, in a block of 4 KiB that only this page uses. */
void pagelog_make(struct cost_bed *b);
void pagelog_write(struct cost_bed *b, u64 pos, const u8 *buf, u64 len);
void pagelog_read(struct cost_bed *b, u64 pos, u8 *buf, u64 len);

/*
 * Runs P3's mix of operations @name in @threads threads, @loops times in each, and prints the
 * result.
 */
void mix_run(const char *name, bool atomic, unsigned int threads, unsigned int loops);

#endif
