// SPDX-License-Identifier: Apache-2.0
/*
 * fsck's table of names, for a volume with forged inode numbers that would collide in a table with
 * a public hash function.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <time.h>
#include "test.h"
#include "../../tools/lib/paths.c"

#define SIZE	(32ULL << 20)
#define NAMES	100000u
#define ROOM	(1u << 18)	/* number of entries of a table for NAMES names */

static struct tvol t;

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Returns the next inode number whose public hash falls into one of 64 entries. */
static u64 next_colliding(u64 ino)
{
	do
		ino++;
	while ((ino * 0x9e3779b97f4a7c15ULL >> 20 & (ROOM - 1)) >= 64);
	return ino;
}

int main(void)
{
	struct sg_iref dir, file;
	struct paths *p;
	double before;
	unsigned int i;
	u64 ino = 1;
	char *path, name[16];

	tvol_make(&t, SIZE);
	dir = test_create(&t.v, &t.root, "dir", S_IFDIR | 0700);
	file = test_create(&t.v, &dir, "file", S_IFREG | 0600);
	for (i = 0; i < NAMES; i++) {
		ino = next_colliding(ino);
		snprintf(name, sizeof(name), "%u", i);
		test_forge_name(&t.v, &dir, name, ino, S_IFREG >> 12);
	}
	CHECK(ino <= SG_INO_MAX);
	tvol_leave(&t);

	before = cpu_seconds();
	p = paths_begin(t.mem, SIZE);
	path = paths_find(p, file.ino);
	CHECK(path && !strcmp(path, "/dir/file"));
	free(path);
	printf("%.2f s of CPU for %u names\n", cpu_seconds() - before, NAMES);
	CHECK(cpu_seconds() - before < 2);
	CHECK(p->n < NAMES / 2);	/* an inode number that has no record needs no entry */
	paths_end(p);
	test_unmap(t.mem, SIZE);
	return test_done();
}
