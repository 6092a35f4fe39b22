// SPDX-License-Identifier: Apache-2.0
/* Defects that random runs have found, each reduced to a few operations. */
#include <sys/stat.h>
#include "test.h"

static u8 data[4 << 20];

/*
 * Makes a file whose only pages are one 2 MiB leaf at its start, so that it has no table of level
 * 1.
 */
static void insert_behind_only_large_leaf(void)
{
	struct sg_run run;
	struct sg_iref f;
	struct tvol t;

	tvol_make(&t, 64 << 20);
	f = test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	CHECK_EQ(sg_write(&t.v, &f, 0, data, SG_CHUNK, 1), SG_CHUNK);
	CHECK_OK(sg_walk(&t.v, &f, 0, 512, &run));
	CHECK_EQ(run.level, 2);
	CHECK_OK(sg_resize(&t.v, &f, 2 * SG_CHUNK, 1));
	CHECK_OK(sg_insert(&t.v, &f, SG_CHUNK + SG_PAGE, SG_CHUNK, 1));
	CHECK_OK(sg_walk(&t.v, &f, 0, 512, &run));
	CHECK_EQ(run.level, 2);
	tvol_drop(&t);
}

int main(void)
{
	insert_behind_only_large_leaf();
	return test_done();
}
