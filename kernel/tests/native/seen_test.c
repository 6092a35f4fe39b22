// SPDX-License-Identifier: Apache-2.0
/*
 * A system looks a name up, to remove or rename it. Before it locks the directory, another system
 * gives the name to another inode.
 */
#include "internal.h"
#include "test.h"

#define L(name) name, (u32)strlen(name)

/*
 * Another system has changed the name since the lookup: the operation does not touch the new inode.
 */
static void only_what_was_seen(void)
{
	struct tvol t;
	struct sg_iref a, b, d, e, old;
	struct sg_renamed seen;

	tvol_make(&t, TEST_SMALL);
	a = test_create(&t.v, &t.root, "a", SG_S_IFREG | 0600);
	b = test_create(&t.v, &t.root, "b", SG_S_IFREG | 0600);
	d = test_create(&t.v, &t.root, "d", SG_S_IFDIR | 0700);
	e = test_create(&t.v, &t.root, "e", SG_S_IFDIR | 0700);
	CHECK_EQ(sg_unlink_seen(&t.v, &t.root, L("a"), &b, true, 1), -ESTALE);
	CHECK_EQ(sg_unlink_seen(&t.v, &t.root, L("d"), &b, false, 1), -ESTALE);
	CHECK_EQ(sg_rmdir_seen(&t.v, &t.root, L("d"), &e, 1), -ESTALE);
	old = a;	/* another file has the same inode number */
	old.generation = (u32)(sg_iget(&t.v, &a, genflags) + 1);
	CHECK_EQ(sg_unlink_seen(&t.v, &t.root, L("a"), &old, true, 1), -ESTALE);
	seen = (struct sg_renamed){ .what = &b };
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("a"), &t.root, L("c"), 0, NULL, &seen, 1), -ESTALE);
	/* the target name did not exist at the lookup */
	seen = (struct sg_renamed){ .what = &d };
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("d"), &t.root, L("e"), 0, NULL, &seen, 1), -ESTALE);
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("d"), &t.root, L("e"), SG_RENAME_NOREPLACE, NULL,
				&seen, 1), -EEXIST);
	seen.replaced = &d;
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("d"), &t.root, L("e"), 0, NULL, &seen, 1), -ESTALE);
	/* the target name existed at the lookup, but does not exist any more */
	seen.replaced = &e;
	seen.exact = true;
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("d"), &t.root, L("f"), 0, NULL, &seen, 1), -ESTALE);
	CHECK_EQ(test_lookup(&t.v, &t.root, "d").ino, d.ino);
	CHECK_EQ(test_lookup(&t.v, &t.root, "e").ino, e.ino);
	CHECK_OK(sg_rename_seen(&t.v, &t.root, L("d"), &t.root, L("e"), 0, NULL, &seen, 1));
	CHECK_OK(sg_evict(&t.v, &e));
	CHECK_OK(sg_rmdir_seen(&t.v, &t.root, L("e"), &d, 1));
	CHECK_OK(sg_unlink_seen(&t.v, &t.root, L("a"), &a, true, 1));
	CHECK_OK(sg_evict(&t.v, &d));
	CHECK_OK(sg_evict(&t.v, &a));
	/* operations on a freed directory fail with ESTALE, and hold no lock */
	CHECK_EQ(sg_lookup(&t.v, &d, L("x"), &e, NULL), -ESTALE);
	CHECK_EQ(sg_unlink(&t.v, &d, L("x"), 1), -ESTALE);
	CHECK_EQ(sg_create(&t.v, &d, L("x"), &(struct sg_new){ .mode = SG_S_IFREG }, &e), -ESTALE);
	CHECK_EQ(sg_rename(&t.v, &d, L("x"), &t.root, L("y"), 0, NULL, 1), -ESTALE);
	CHECK_EQ(sg_rename(&t.v, &t.root, L("b"), &d, L("y"), 0, NULL, 1), -ESTALE);
	tvol_drop(&t);
}

/* A rename or removal may hit another file than its lookup found, unless that file is protected. */
static void another_file_will_do(void)
{
	struct tvol t;
	struct sg_iref a, b, c;
	struct sg_renamed seen;

	tvol_make(&t, TEST_SMALL);
	a = test_create(&t.v, &t.root, "a", SG_S_IFREG | 0600);
	b = test_create(&t.v, &t.root, "b", SG_S_IFREG | 0600);
	c = test_create(&t.v, &t.root, "c", SG_S_IFREG | 0600);
	seen = (struct sg_renamed){ .what = &a, .replaced = &c };
	CHECK_OK(sg_setattr(&t.v, &b, SG_SET_FLAGS, &(struct sg_attr){ .flags = SG_FL_IMMUTABLE }));
	CHECK_EQ(sg_rename_seen(&t.v, &t.root, L("a"), &t.root, L("b"), 0, NULL, &seen, 1), -ESTALE);
	CHECK_EQ(sg_unlink_seen(&t.v, &t.root, L("b"), &c, false, 1), -ESTALE);
	CHECK_OK(sg_setattr(&t.v, &b, SG_SET_FLAGS, &(struct sg_attr){ .flags = 0 }));
	CHECK_OK(sg_rename_seen(&t.v, &t.root, L("a"), &t.root, L("b"), 0, NULL, &seen, 1));
	CHECK_EQ(test_lookup(&t.v, &t.root, "b").ino, a.ino);
	CHECK_OK(sg_rename_seen(&t.v, &t.root, L("b"), &t.root, L("none"), 0, NULL, &seen, 1));
	CHECK_OK(sg_unlink_seen(&t.v, &t.root, L("none"), &c, false, 1));
	CHECK_OK(sg_unlink(&t.v, &t.root, L("c"), 1));
	CHECK_OK(sg_evict(&t.v, &a));
	CHECK_OK(sg_evict(&t.v, &b));
	CHECK_OK(sg_evict(&t.v, &c));
	tvol_drop(&t);
}

int main(void)
{
	only_what_was_seen();
	another_file_will_do();
	return test_done();
}
