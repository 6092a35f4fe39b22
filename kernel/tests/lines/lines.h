/* SPDX-License-Identifier: Apache-2.0 */
/* A volume, the systems that use it, and their operations, in turn. */
#ifndef LINES_H
#define LINES_H

#include "internal.h"
#include "test.h"
#include "counter.h"

#define LINES_SIZE	(4ULL << 30)

/**
 * struct lines_set - N systems with one processor each, or one system with N processors
 * @mem: the volume. @v: the systems; with @threads only v[0].
 * @dir, @file: separate ones for each processor. @shared, @shared_dir: used by all.
 */
struct lines_set {
	u8 *mem;
	unsigned int n;
	bool threads;
	struct sg_vol *v[CORES];
	struct sg_iref root, dir[CORES], file[CORES], last[CORES], shared, shared_dir;
};
extern struct lines_set lines;

extern unsigned int lines_cpu;	/* the number that sg_cpu() returns */

static inline struct sg_vol *lines_vol(unsigned int c)
{
	return lines.v[lines.threads ? 0 : c];
}
void lines_play(unsigned int c);	/* the following calls run on processor @c */

void lines_make(unsigned int n, bool threads);
void lines_drop(void);

/**
 * struct lines_op - an operation that each processor runs @rounds times, after @warm times without
 * counting. @together: instead, all processors together run it this number of times.
 */
struct lines_op {
	const char *name;
	void (*once)(unsigned int c, unsigned int i);
	unsigned int warm, rounds, together;
};
extern const struct lines_op lines_ops[];
extern const unsigned int lines_nops;

#define LINES_NAME	64
/* Stores the name of the object to which the line belongs. */
void lines_name(const void *line, char name[LINES_NAME]);
void lines_names_learn(void);	/* finds the inodes; must be called before lines_name() */

#endif
