// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of a ledger that have no effect any more, and the checker (docs/protocol.md, section 5).
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static u8 *mem;

static struct sg_check_result check(enum sg_check_mode mode)
{
	struct sg_identity id = tsys_identity(9, 1);
	struct sg_check_opts opts = { .mode = mode, .id = &id, .force = true };
	struct sg_check_result res;

	CHECK_OK(sg_check(mem, SIZE, &opts, &res));
	return res;
}

/*
 * The unlinking system defers the inode, and the last close frees it. The entry stays until its
 * system settles. A check before that, of a dead or a free slot, finds no damage.
 */
static void deferred_for_nothing(bool leaves, enum sg_check_mode mode)
{
	struct sg_check_result res;
	struct tsys s[2];
	struct sg_iref f;
	struct sg_attr a;

	tsys_join(&s[0], mem, SIZE, 1);
	tsys_join(&s[1], mem, SIZE, 2);
	f = test_create(&s[0].v, &s[0].root, "f", S_IFREG | 0600);
	f.generation = (u32)sg_iget(&s[0].v, &f, genflags);
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(sg_unlink(&s[0].v, &s[0].root, "f", 1, 1));
	CHECK_OK(sg_evict(&s[0].v, &f));
	if (leaves)
		tsys_leave(&s[0]);
	sg_close_inode(&s[1].v, &f);
	CHECK_OK(sg_evict(&s[1].v, &f));
	CHECK_EQ(sg_getattr(&s[1].v, &f, &a), -ESTALE);
	CHECK(!sg_ledger_empty(&s[1].v, 0));
	if (!leaves)
		tsys_die(&s[0]);
	tsys_die(&s[1]);
	res = check(SG_CHECK_ONLY);
	CHECK_EQ(res.found, 0);
	CHECK(res.unclean);
	res = check(mode);
	CHECK_EQ(res.found, 0);
	CHECK(res.unclean);
	res = check(SG_CHECK_ONLY);
	CHECK_EQ(res.found, 0);
	CHECK(!res.unclean);	/* the entry has been removed */
	test_lapses_over(mem);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	deferred_for_nothing(false, SG_CHECK_PREEN);
	deferred_for_nothing(false, SG_CHECK_REPAIR);
	deferred_for_nothing(true, SG_CHECK_PREEN);
	deferred_for_nothing(true, SG_CHECK_REPAIR);
	return test_done();
}
