// SPDX-License-Identifier: Apache-2.0
/*
 * Names: the result of each operation, its effect on links, parents and times; all kinds of
 * renaming; full volumes; many threads.
 */
#include <pthread.h>
#include "internal.h"
#include "test.h"

#define L(name) name, (u32)strlen(name)

static struct sg_new new_of(u32 mode)
{
	return (struct sg_new){ .mode = mode, .uid = 11, .gid = 12, .now = 100 };
}

static struct sg_iref make(struct sg_vol *v, const struct sg_iref *dir, const char *name, u32 mode)
{
	struct sg_new new = new_of(mode);
	struct sg_iref ref;

	if (sg_is_lnk(mode)) {
		new.target = "target";
		new.target_len = 6;
	}
	CHECK_OK(sg_create(v, dir, L(name), &new, &ref));
	return ref;
}

static struct sg_iref mkdir_in(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	return make(v, dir, name, SG_S_IFDIR | 0755);
}

static struct sg_iref file_in(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	return make(v, dir, name, SG_S_IFREG | 0644);
}

static u64 lookup_ino(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	struct sg_iref ref;
	int err = sg_lookup(v, dir, L(name), &ref, NULL);

	CHECK(!err || err == -ENOENT);
	return err ? 0 : ref.ino;
}

static struct sg_attr attr_of(struct sg_vol *v, const struct sg_iref *ref)
{
	struct sg_attr a;

	CHECK_OK(sg_getattr(v, ref, &a));
	return a;
}

static void expect_links(struct sg_vol *v, const struct sg_iref *ref, u32 nlink, s64 ctime)
{
	struct sg_attr a = attr_of(v, ref);

	CHECK_EQ(a.nlink, nlink);
	CHECK_EQ(a.ctime, ctime);
}

static void expect_dir(struct sg_vol *v, const struct sg_iref *ref, u32 nlink, u64 entries,
		       s64 time)
{
	struct sg_attr a = attr_of(v, ref);

	CHECK_EQ(a.nlink, nlink);
	CHECK_EQ(a.entries, entries);
	CHECK_EQ(a.mtime, time);
	CHECK_EQ(a.ctime, time);
}

/* --- creating, linking, removing -------------------------------------------------------------- */

static void test_types(void)
{
	static const u32 types[] = { SG_S_IFREG, SG_S_IFDIR, SG_S_IFLNK, SG_S_IFCHR, SG_S_IFBLK,
				     SG_S_IFIFO, SG_S_IFSOCK };
	struct tvol t;
	unsigned int i;

	tvol_make(&t, TEST_SMALL);
	for (i = 0; i < SG_ARRAY_SIZE(types); i++) {
		struct sg_new new = new_of(types[i] | 0640);
		struct sg_iref ref, found;
		struct sg_attr a;
		unsigned int type;
		char name[8];

		sprintf(name, "t%u", i);
		new.rdev = 0x12345;
		new.target = "x";
		new.target_len = 1;
		new.flags = SG_FL_NODUMP;
		new.now = 200 + i;
		CHECK_OK(sg_create(&t.v, &t.root, L(name), &new, &ref));
		CHECK_OK(sg_lookup(&t.v, &t.root, L(name), &found, &type));
		CHECK(found.ino == ref.ino && found.off == ref.off && type == types[i] >> 12);
		a = attr_of(&t.v, &ref);
		CHECK(a.mode == new.mode && a.uid == 11 && a.gid == 12 && a.flags == SG_FL_NODUMP);
		CHECK(a.mtime == new.now && a.ctime == new.now && a.atime == new.now &&
		      a.btime == new.now);
		CHECK_EQ(a.nlink, types[i] == SG_S_IFDIR ? 2 : 1);
		CHECK_EQ(a.size, types[i] == SG_S_IFLNK ? 1 : 0);
		CHECK_EQ(a.special, types[i] == SG_S_IFDIR ? SG_INO_ROOT : 0x12345);
		expect_dir(&t.v, &t.root, i ? 3 : 2, i + 1, new.now);
	}
	tvol_drop(&t);
	printf("ok every type is created\n");
}

static void test_links(void)
{
	const struct sg_new new = new_of(SG_S_IFREG | 0644);
	struct sg_iref dir, sub, file;
	struct tvol t;

	tvol_make(&t, TEST_SMALL);
	dir = mkdir_in(&t.v, &t.root, "dir");
	expect_dir(&t.v, &t.root, 3, 1, 100);
	sub = mkdir_in(&t.v, &dir, "sub");
	file = file_in(&t.v, &dir, "file");
	expect_dir(&t.v, &dir, 3, 2, 100);
	CHECK_OK(sg_link(&t.v, &file, &sub, L("again"), 300));
	expect_links(&t.v, &file, 2, 300);
	expect_dir(&t.v, &sub, 2, 1, 300);
	CHECK_EQ(attr_of(&t.v, &file).mtime, 100);
	CHECK_OK(sg_unlink(&t.v, &dir, L("file"), 400));
	expect_links(&t.v, &file, 1, 400);
	expect_dir(&t.v, &dir, 3, 1, 400);
	CHECK_EQ(sg_rmdir(&t.v, &dir, L("sub"), 500), -ENOTEMPTY);
	CHECK_OK(sg_unlink(&t.v, &sub, L("again"), 500));
	expect_links(&t.v, &file, 0, 500);
	CHECK_OK(sg_evict(&t.v, &file));
	CHECK_EQ(sg_evict(&t.v, &file), 0);
	CHECK_OK(sg_rmdir(&t.v, &dir, L("sub"), 600));
	expect_dir(&t.v, &dir, 2, 0, 600);
	expect_links(&t.v, &sub, 0, 600);
	/* the removed directory is still open, but cannot get entries any more */
	CHECK_EQ(sg_link(&t.v, &dir, &sub, L("x"), 1), -ENOENT);
	CHECK_EQ(sg_create(&t.v, &sub, L("x"), &new, &file), -ENOENT);
	CHECK_EQ(lookup_ino(&t.v, &sub, "x"), 0);
	CHECK_OK(sg_evict(&t.v, &sub));
	tvol_drop(&t);
	printf("ok links and times\n");
}

static void test_tmpfile(void)
{
	struct sg_new new = new_of(SG_S_IFREG | 0600), dir = new_of(SG_S_IFDIR | 0700);
	struct sg_iref a, b, c;
	struct tvol t;
	u64 inodes;

	tvol_make(&t, TEST_SMALL);
	inodes = sg_used_inodes(&t.v);
	CHECK_EQ(sg_tmpfile(&t.v, &dir, &a), -EISDIR);
	CHECK_OK(sg_tmpfile(&t.v, &new, &a));
	CHECK_OK(sg_tmpfile(&t.v, &new, &b));
	CHECK_OK(sg_tmpfile(&t.v, &new, &c));
	expect_links(&t.v, &a, 0, 100);
	CHECK_OK(sg_link(&t.v, &a, &t.root, L("named"), 200));
	expect_links(&t.v, &a, 1, 200);
	CHECK_OK(sg_evict(&t.v, &a));	/* the file has a link, so it stays */
	CHECK_OK(sg_evict(&t.v, &b));	/* the file's maker still uses it */
	CHECK_EQ(sg_used_inodes(&t.v), inodes + 3);
	CHECK(sg_close_inode(&t.v, &b));
	CHECK_OK(sg_evict(&t.v, &b));
	CHECK_EQ(sg_used_inodes(&t.v), inodes + 2);
	tvol_crash(&t);			/* no system has the third file open now */
	tvol_join(&t);
	CHECK_EQ(lookup_ino(&t.v, &t.root, "named"), a.ino);
	CHECK_EQ(sg_used_inodes(&t.v), inodes + 1);
	tvol_drop(&t);
	printf("ok files without names\n");
}

static void test_symlinks(void)
{
	char target[SG_SYMLINK_MAX + 2], got[SG_SYMLINK_MAX + 2], name[16];
	struct sg_new new = new_of(SG_S_IFLNK | 0777);
	struct sg_statfs before, after;
	struct sg_iref ref;
	struct tvol t;
	u32 len, i;

	tvol_make(&t, 64 << 20);
	mkdir_in(&t.v, &t.root, "first");
	CHECK_OK(sg_rmdir(&t.v, &t.root, L("first"), 1));
	CHECK_OK(sg_statfs(&t.v, &before));
	for (i = 0; i < sizeof(target); i++)
		target[i] = (char)(1 + i % 255);
	new.target = target;
	for (len = 1; len <= SG_SYMLINK_MAX; len += len < 130 ? 1 : 119) {
		sprintf(name, "link%u", len);
		new.target_len = len;
		CHECK_OK(sg_create(&t.v, &t.root, L(name), &new, &ref));
		CHECK_EQ(attr_of(&t.v, &ref).size, len);
		CHECK_EQ(attr_of(&t.v, &ref).blocks, len < 64 ? 0 : 1);
		memset(got, 0, sizeof(got));
		CHECK_EQ(sg_readlink(&t.v, &ref, got, sizeof(got)), len);
		CHECK(!memcmp(got, target, len) && !got[len]);
		/* readlink stores no more bytes than the buffer's size */
		memset(got, 0, sizeof(got));
		CHECK_EQ(sg_readlink(&t.v, &ref, got, len / 2), len);
		CHECK(!memcmp(got, target, len / 2) && !got[len / 2]);
	}
	tvol_recheck(&t);
	for (len = 1; len <= SG_SYMLINK_MAX; len += len < 130 ? 1 : 119) {
		sprintf(name, "link%u", len);
		ref = test_lookup(&t.v, &t.root, name);
		CHECK_EQ(sg_readlink(&t.v, &ref, got, sizeof(got)), len);
		CHECK(!memcmp(got, target, len));
		CHECK_OK(sg_unlink(&t.v, &t.root, L(name), 3));
		CHECK_OK(sg_evict(&t.v, &ref));
	}
	new.target_len = SG_SYMLINK_MAX + 1;
	CHECK_EQ(sg_create(&t.v, &t.root, L("long"), &new, &ref), -ENAMETOOLONG);
	new.target_len = 0;
	CHECK_EQ(sg_create(&t.v, &t.root, L("empty"), &new, &ref), -ENOENT);
	ref = t.root;
	CHECK_EQ(sg_readlink(&t.v, &ref, got, sizeof(got)), -EINVAL);
	CHECK_OK(sg_statfs(&t.v, &after));
	/* the inode file keeps its additional pages, and the root directory its first bucket */
	CHECK(after.free_pages <= before.free_pages && after.free_pages + 16 >= before.free_pages);
	tvol_drop(&t);
	printf("ok targets of 1 to %u bytes\n", SG_SYMLINK_MAX);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void test_errors(void)
{
	char longname[SG_NAME_MAX + 2];
	struct sg_new f = new_of(SG_S_IFREG | 0644), bad = new_of(0644), d = new_of(SG_S_IFDIR);
	struct sg_iref dir, file, ref;
	struct tvol t;
	struct sg_tx *tx;

	memset(longname, 'n', sizeof(longname));
	tvol_make(&t, TEST_SMALL);
	dir = mkdir_in(&t.v, &t.root, "dir");
	file = file_in(&t.v, &t.root, "file");
#define CREATE(in, new, ...) sg_create(&t.v, in, __VA_ARGS__, new, &ref)
	CHECK_EQ(CREATE(&t.root, &f, "", 0), -ENOENT);
	CHECK_EQ(CREATE(&t.root, &f, longname, SG_NAME_MAX + 1), -ENAMETOOLONG);
	CHECK_OK(CREATE(&t.root, &f, longname, SG_NAME_MAX));
	CHECK_EQ(CREATE(&t.root, &f, longname, SG_NAME_MAX), -EEXIST);
	CHECK_OK(CREATE(&t.root, &f, longname, SG_NAME_MAX - 1));
	CHECK_EQ(CREATE(&t.root, &f, L("a/b")), -EINVAL);
	CHECK_EQ(CREATE(&t.root, &f, "a\0b", 3), -EINVAL);
	CHECK_EQ(CREATE(&t.root, &d, L(".")), -EEXIST);
	CHECK_EQ(CREATE(&t.root, &d, L("..")), -EEXIST);
	CHECK_OK(CREATE(&t.root, &d, L("...")));
	CHECK_OK(CREATE(&t.root, &d, L(".x")));
	CHECK_EQ(CREATE(&t.root, &d, L("dir")), -EEXIST);
	CHECK_EQ(CREATE(&file, &f, L("x")), -ENOTDIR);
	CHECK_EQ(CREATE(&t.root, &bad, L("x")), -EINVAL);
	CHECK_EQ(sg_lookup(&t.v, &t.root, L("none"), &ref, NULL), -ENOENT);
	CHECK_EQ(sg_lookup(&t.v, &t.root, "", 0, &ref, NULL), -ENOENT);
	CHECK_EQ(sg_lookup(&t.v, &t.root, L("."), &ref, NULL), -ENOENT);
	CHECK_EQ(sg_lookup(&t.v, &t.root, longname, SG_NAME_MAX + 1, &ref, NULL), -ENAMETOOLONG);
	CHECK_EQ(sg_lookup(&t.v, &file, L("x"), &ref, NULL), -ENOTDIR);
	CHECK_EQ(sg_link(&t.v, &dir, &t.root, L("x"), 1), -EPERM);
	CHECK_EQ(sg_link(&t.v, &file, &t.root, L("dir"), 1), -EEXIST);
	CHECK_EQ(sg_link(&t.v, &file, &file, L("x"), 1), -ENOTDIR);
	CHECK_EQ(sg_link(&t.v, &file, &t.root, L(".."), 1), -EEXIST);
	CHECK_EQ(sg_unlink(&t.v, &t.root, L("none"), 1), -ENOENT);
	CHECK_EQ(sg_unlink(&t.v, &t.root, L("dir"), 1), -EISDIR);
	CHECK_EQ(sg_unlink(&t.v, &t.root, L("."), 1), -EISDIR);
	CHECK_EQ(sg_unlink(&t.v, &file, L("x"), 1), -ENOTDIR);
	CHECK_EQ(sg_unlink(&t.v, &t.root, longname, SG_NAME_MAX + 1, 1), -ENAMETOOLONG);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L("file"), 1), -ENOTDIR);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L("none"), 1), -ENOENT);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L("."), 1), -EINVAL);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L(".."), 1), -ENOTEMPTY);
	/*
	 * sets counts to their limits; the test restores them later, so that the checker finds
	 * nothing
	 */
	tx = sg_tx_begin(&t.v);
	sg_tx_iset(tx, &file, mode, (u64)SG_LINK_MAX << 32 | SG_S_IFREG | 0644);
	sg_tx_iset(tx, &dir, mode, (u64)SG_LINK_MAX << 32 | SG_S_IFDIR | 0755);
	CHECK_OK(sg_tx_commit(tx));
	CHECK_EQ(sg_link(&t.v, &file, &t.root, L("x"), 1), -EMLINK);
	CHECK_EQ(CREATE(&dir, &d, L("x")), -EMLINK);
	CHECK_EQ(sg_rename(&t.v, &t.root, L(".x"), &dir, L("x"), 0, NULL, 1), -EMLINK);
	CHECK_OK(CREATE(&dir, &f, L("x")));
	CHECK_OK(sg_rename(&t.v, &dir, L("x"), &t.root, L("x"), 0, NULL, 1));
	tx = sg_tx_begin(&t.v);
	sg_tx_iset(tx, &file, mode, 1ULL << 32 | SG_S_IFREG | 0644);
	sg_tx_iset(tx, &dir, mode, 2ULL << 32 | SG_S_IFDIR | 0755);
	CHECK_OK(sg_tx_commit(tx));
	t.v.read_only = true;
	CHECK_EQ(CREATE(&t.root, &f, L("ro")), -EROFS);
	CHECK_EQ(sg_unlink(&t.v, &t.root, L("file"), 1), -EROFS);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L("dir"), 1), -EROFS);
	CHECK_EQ(sg_link(&t.v, &file, &t.root, L("ro"), 1), -EROFS);
	CHECK_EQ(sg_rename(&t.v, &t.root, L("file"), &t.root, L("ro"), 0, NULL, 1), -EROFS);
	CHECK_EQ(sg_tmpfile(&t.v, &f, &ref), -EROFS);
	CHECK_EQ(lookup_ino(&t.v, &t.root, "file"), file.ino);
	t.v.read_only = false;
	tvol_drop(&t);
	printf("ok refusals\n");
}

/* --- renaming --------------------------------------------------------------------------------- */

enum kind { NONE, FILE_, LINK, EMPTY, FULL, KINDS };

/* Makes an inode of kind @k with a name. Returns a zero reference for NONE. */
static struct sg_iref put_kind(struct sg_vol *v, const struct sg_iref *dir, const char *name,
			       enum kind k)
{
	struct sg_iref ref = { 0 };

	switch (k) {
	case FILE_:
		return file_in(v, dir, name);
	case LINK:
		return make(v, dir, name, SG_S_IFLNK | 0777);
	case EMPTY:
		return mkdir_in(v, dir, name);
	case FULL:
		ref = mkdir_in(v, dir, name);
		file_in(v, &ref, "inside");
		return ref;
	default:
		return ref;
	}
}

static bool is_dir_kind(enum kind k)
{
	return k == EMPTY || k == FULL;
}

/* Returns the error that rename(2) specifies. */
static int expected(enum kind src, enum kind dst, unsigned int flags)
{
	if (src == NONE)
		return -ENOENT;
	if (flags & SG_RENAME_NOREPLACE && dst != NONE)
		return -EEXIST;
	if (flags & SG_RENAME_EXCHANGE)
		return dst == NONE ? -ENOENT : 0;
	if (dst == NONE)
		return 0;
	if (is_dir_kind(src) && !is_dir_kind(dst))
		return -ENOTDIR;
	if (!is_dir_kind(src) && is_dir_kind(dst))
		return -EISDIR;
	return dst == FULL ? -ENOTEMPTY : 0;
}

static u64 parent_of(struct sg_vol *v, const struct sg_iref *ref)
{
	return attr_of(v, ref).special;
}

struct pair {
	struct sg_iref odir, ndir, src, dst;
	enum kind skind, dkind;
	bool cross;
	unsigned int flags;
};

/* Checks everything that must hold after a successful rename. */
static void expect_renamed(struct sg_vol *v, const struct pair *p)
{
	bool exchange = p->flags & SG_RENAME_EXCHANGE, white = p->flags & SG_RENAME_WHITEOUT;
	u64 there = lookup_ino(v, &p->odir, "old");

	CHECK_EQ(lookup_ino(v, &p->ndir, "new"), p->src.ino);
	CHECK_EQ(attr_of(v, &p->src).ctime, 700);
	if (is_dir_kind(p->skind))
		CHECK_EQ(parent_of(v, &p->src), p->ndir.ino);
	if (exchange) {
		CHECK_EQ(there, p->dst.ino);
		CHECK_EQ(attr_of(v, &p->dst).ctime, 700);
		if (is_dir_kind(p->dkind))
			CHECK_EQ(parent_of(v, &p->dst), p->odir.ino);
	} else if (white) {
		struct sg_iref w = test_lookup(v, &p->odir, "old");
		struct sg_attr a = attr_of(v, &w);

		CHECK(a.mode == SG_S_IFCHR && a.special == 0 && a.nlink == 1);
		CHECK(there != p->src.ino && there != p->dst.ino);
	} else {
		CHECK_EQ(there, 0);
	}
	if (p->dkind != NONE && !exchange) {
		expect_links(v, &p->dst, 0, 700);
		CHECK_OK(sg_evict(v, &p->dst));
	}
}

static void expect_dirs(struct sg_vol *v, const struct pair *p, const struct sg_iref *dir)
{
	struct sg_attr a = attr_of(v, dir);
	const char *const names[] = { "old", "new" };
	u32 subdirs = 0, entries = 0, i;

	for (i = 0; i < 2; i++) {
		struct sg_iref ref;

		if (sg_lookup(v, dir, L(names[i]), &ref, NULL))
			continue;
		entries++;
		subdirs += sg_is_dir(attr_of(v, &ref).mode);
	}
	(void)p;
	CHECK_EQ(a.nlink, 2 + subdirs);
	CHECK_EQ(a.entries, entries);
}

static void rename_once(struct tvol *t, struct pair *p)
{
	struct sg_new white = new_of(SG_S_IFCHR);
	int err, want = expected(p->skind, p->dkind, p->flags);

	p->odir = mkdir_in(&t->v, &t->root, "odir");
	p->ndir = p->cross ? mkdir_in(&t->v, &t->root, "ndir") : p->odir;
	p->src = put_kind(&t->v, &p->odir, "old", p->skind);
	p->dst = put_kind(&t->v, &p->ndir, "new", p->dkind);
	test_note("rename kind %d onto %d, flags %u, cross %d", p->skind, p->dkind, p->flags,
		  p->cross);
	err = sg_rename(&t->v, &p->odir, L("old"), &p->ndir, L("new"), p->flags, &white, 700);
	CHECK_EQ(err, want);
	if (err) {
		CHECK_EQ(lookup_ino(&t->v, &p->odir, "old"), p->src.ino);
		CHECK_EQ(lookup_ino(&t->v, &p->ndir, "new"), p->dst.ino);
	} else {
		expect_renamed(&t->v, p);
		CHECK_EQ(attr_of(&t->v, &p->odir).mtime, 700);
		CHECK_EQ(attr_of(&t->v, &p->ndir).ctime, 700);
	}
	expect_dirs(&t->v, p, &p->odir);
	expect_dirs(&t->v, p, &p->ndir);
}

static void test_rename_matrix(void)
{
	static const unsigned int flags[] = {
		0, SG_RENAME_NOREPLACE, SG_RENAME_EXCHANGE, SG_RENAME_WHITEOUT,
		SG_RENAME_NOREPLACE | SG_RENAME_WHITEOUT,
	};
	unsigned int s, d, f, cross, n = 0;

	for (f = 0; f < SG_ARRAY_SIZE(flags); f++)
		for (s = 0; s < KINDS; s++)
			for (d = 0; d < KINDS; d++)
				for (cross = 0; cross < 2; cross++, n++) {
					struct pair p = { .skind = s, .dkind = d, .flags = flags[f],
							  .cross = cross };
					struct tvol t;

					tvol_make(&t, TEST_SMALL);
					rename_once(&t, &p);
					tvol_drop(&t);
				}
	printf("ok %u kinds of renaming\n", n);
}

static void test_rename_special(void)
{
	struct sg_iref a, b, c, file, other;
	struct sg_new white = new_of(SG_S_IFCHR);
	struct tvol t;

	tvol_make(&t, TEST_SMALL);
	a = mkdir_in(&t.v, &t.root, "a");
	b = mkdir_in(&t.v, &a, "b");
	c = mkdir_in(&t.v, &b, "c");
	file = file_in(&t.v, &t.root, "file");
	other = file_in(&t.v, &c, "other");
#define RENAME(od, on, nd, nn, fl) sg_rename(&t.v, od, L(on), nd, L(nn), fl, &white, 9)
	/* a directory cannot become its own ancestor */
	CHECK_EQ(RENAME(&t.root, "a", &c, "x", 0), -EINVAL);
	CHECK_EQ(RENAME(&t.root, "a", &a, "x", 0), -EINVAL);
	CHECK_EQ(RENAME(&a, "b", &b, "x", 0), -EINVAL);
	CHECK_EQ(RENAME(&t.root, "a", &b, "c", SG_RENAME_EXCHANGE), -EINVAL);
	CHECK_EQ(RENAME(&b, "c", &t.root, "a", SG_RENAME_EXCHANGE), -EINVAL);
	CHECK_EQ(RENAME(&b, "c", &t.root, "a", 0), -ENOTEMPTY);
	CHECK_OK(RENAME(&t.root, "file", &b, "c", SG_RENAME_EXCHANGE));
	CHECK_EQ(lookup_ino(&t.v, &t.root, "file"), c.ino);
	CHECK_EQ(parent_of(&t.v, &c), SG_INO_ROOT);
	CHECK_OK(RENAME(&t.root, "file", &b, "c", SG_RENAME_EXCHANGE));
	/* for two names of one inode, POSIX requires that rename does nothing */
	CHECK_OK(sg_link(&t.v, &file, &a, L("file2"), 3));
	CHECK_OK(RENAME(&t.root, "file", &a, "file2", 0));
	CHECK_OK(RENAME(&t.root, "file", &t.root, "file", 0));
	CHECK_EQ(lookup_ino(&t.v, &t.root, "file"), file.ino);
	expect_links(&t.v, &file, 2, 3);
	/* replaces one name of an inode with two names */
	CHECK_OK(RENAME(&c, "other", &a, "file2", 0));
	expect_links(&t.v, &file, 1, 9);
	CHECK_EQ(lookup_ino(&t.v, &a, "file2"), other.ino);
	CHECK_EQ(RENAME(&t.root, "file", &t.root, "x", 8), -EINVAL);
	CHECK_EQ(RENAME(&t.root, "file", &a, "b", SG_RENAME_EXCHANGE | SG_RENAME_NOREPLACE),
		 -EINVAL);
	CHECK_EQ(RENAME(&t.root, "file", &a, "b", SG_RENAME_EXCHANGE | SG_RENAME_WHITEOUT),
		 -EINVAL);
	CHECK_EQ(sg_rename(&t.v, &t.root, L("file"), &a, L("x"), SG_RENAME_WHITEOUT, NULL, 9),
		 -EINVAL);
	CHECK_EQ(RENAME(&t.root, ".", &a, "x", 0), -EBUSY);
	CHECK_EQ(RENAME(&t.root, "file", &a, "..", 0), -EBUSY);
	CHECK_EQ(RENAME(&t.root, "file", &a, "x/y", 0), -EINVAL);
	CHECK_EQ(RENAME(&file, "x", &a, "x", 0), -ENOTDIR);
	CHECK_EQ(RENAME(&t.root, "file", &file, "x", 0), -ENOTDIR);
	/* moves a name into a removed directory */
	CHECK_OK(sg_rmdir(&t.v, &b, L("c"), 10));
	CHECK_EQ(RENAME(&t.root, "file", &c, "x", 0), -ENOENT);
	CHECK_EQ(lookup_ino(&t.v, &t.root, "file"), file.ino);
	CHECK_OK(sg_evict(&t.v, &c));
	tvol_drop(&t);
	printf("ok special cases of renaming\n");
}

/* --- a full volume ---------------------------------------------------------------------------- */

/* Counts pages of the inode file and of the ledger, which stay allocated after use. */
static u64 kept_pages(struct sg_vol *v)
{
	const struct sg_iref inodes = sg_sys_ref(SG_SYS_INODES);
	u64 page = sg_get(v, sg_ledger_off(v, (unsigned int)v->slot));
	u64 n = sg_iget(v, &inodes, blocks);

	for (; page; page = sg_get(v, page))
		n++;
	return n;
}

#define MOVED	20

static void test_full(void)
{
	struct sg_new new = new_of(SG_S_IFDIR | 0755), link = new_of(SG_S_IFLNK | 0777);
	char name[300], target[1000], to[32];
	bool moved[MOVED];
	struct sg_statfs before, after;
	struct sg_iref dir, ref;
	struct tvol t;
	u64 n = 0, links = 0, kept, i;
	int err;

	memset(target, 't', sizeof(target));
	link.target = target;
	link.target_len = sizeof(target);
	tvol_make(&t, TEST_SMALL);
	dir = mkdir_in(&t.v, &t.root, "dir");
	CHECK_OK(sg_statfs(&t.v, &before));
	kept = kept_pages(&t.v);
	memset(name, 'n', sizeof(name));
	name[250] = 0;
#define NAME(i) (sprintf(name, "%06" PRIu64, i), name[6] = 'n', name)
	while (!(err = sg_create(&t.v, &dir, NAME(n), 250, &link, &ref)))
		n++;
	CHECK_EQ(err, -ENOSPC);
	ref = test_lookup(&t.v, &dir, NAME((u64)0));
	while (!(err = sg_link(&t.v, &ref, &dir, NAME(n + links), 250, 3)))
		links++;
	CHECK_EQ(err, -ENOSPC);
	printf("ok full with %" PRIu64 " links and %" PRIu64 " more names\n", n, links);
	CHECK_EQ(sg_create(&t.v, &dir, NAME(n + links), 250, &new, &ref), -ENOSPC);
	CHECK_EQ(lookup_ino(&t.v, &dir, "n"), 0);
	CHECK_EQ(sg_iget(&t.v, &dir, entries), n + links);
	/* a rename over another name succeeds, or changes nothing */
	for (i = 0; i < MOVED; i++) {
		sprintf(to, "to%" PRIu64, i);
		err = sg_rename(&t.v, &dir, NAME(i), 250, &dir, L(to), 0, NULL, 5);
		CHECK(!err || err == -ENOSPC);
		CHECK((lookup_ino(&t.v, &dir, to) != 0) == !err);
		CHECK((lookup_ino(&t.v, &dir, NAME(i)) == 0) == !err);
		moved[i] = !err;
	}
	tvol_recheck(&t);
	for (i = 0; i < n + links; i++) {	/* a removed name needs no page */
		const char *was = NAME(i);

		sprintf(to, "to%" PRIu64, i);
		if (i < MOVED && moved[i])
			was = to;
		CHECK_OK(sg_lookup(&t.v, &dir, L(was), &ref, NULL));
		CHECK_OK(sg_unlink(&t.v, &dir, L(was), 7));
		CHECK_OK(sg_evict(&t.v, &ref));
	}
	CHECK_OK(sg_rmdir(&t.v, &t.root, L("dir"), 8));
	CHECK_OK(sg_evict(&t.v, &dir));
	CHECK_OK(sg_statfs(&t.v, &after));
	CHECK_EQ(after.used_inodes, before.used_inodes - 1);
	CHECK_EQ(after.free_pages + kept_pages(&t.v), before.free_pages + kept);
	tvol_drop(&t);
}

/* --- damage ----------------------------------------------------------------------------------- */

static u64 reports;

static void on_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	reports++;
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

static void store(struct sg_vol *v, u64 off, u64 val)
{
	*(u64 *)sg_at(v, off) = val;
}

/* Returns where a name's dirent refers to the inode. */
static u64 ref_off(struct sg_vol *v, const struct sg_iref *dir, const char *name)
{
	struct sg_name n;

	sg_name_of(v, L(name), &n);
	CHECK_OK(sg_dir_look(v, dir, &n));
	return n.ref_off;
}

/*
 * Tests damage that the directory's checks do not find. Each case is reported once, and none causes
 * a loop.
 */
static void test_damage(void)
{
	extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
	struct sg_iref a, b, c, link, ref;
	char target[200], buf[8];
	struct sg_new new = new_of(SG_S_IFLNK | 0777);
	struct tvol t;
	u64 off;

	tvol_make(&t, TEST_SMALL);
	t.v.on_damage = on_damage;
	sg_log_hook = quiet;
	a = mkdir_in(&t.v, &t.root, "a");
	b = mkdir_in(&t.v, &a, "b");
	c = mkdir_in(&t.v, &t.root, "c");
	file_in(&t.v, &t.root, "file");
	memset(target, 't', sizeof(target));
	new.target = target;
	new.target_len = sizeof(target);
	CHECK_OK(sg_create(&t.v, &t.root, L("link"), &new, &link));

	store(&t.v, SG_IOFF(&a, special), b.ino);	/* a cycle of parents */
	CHECK_EQ(sg_rename(&t.v, &t.root, L("c"), &b, L("c"), 0, NULL, 1), -EUCLEAN);
	store(&t.v, SG_IOFF(&a, special), 1ULL << 35);	/* a parent that does not exist */
	CHECK_EQ(sg_rename(&t.v, &t.root, L("c"), &b, L("c"), 0, NULL, 1), -EUCLEAN);
	store(&t.v, SG_IOFF(&a, special), link.ino);	/* a parent that is no directory */
	CHECK_EQ(sg_rename(&t.v, &t.root, L("c"), &b, L("c"), 0, NULL, 1), -EUCLEAN);
	CHECK_EQ(parent_of(&t.v, &c), SG_INO_ROOT);

	off = sg_get(&t.v, SG_IOFF(&link, table));	/* a target with an early NUL */
	t.mem[off + sizeof(target) - 1] = 0;
	CHECK_EQ(sg_readlink(&t.v, &link, target, sizeof(target)), -EUCLEAN);
	t.mem[off + sizeof(target) - 1] = 't';
	CHECK_EQ(sg_readlink(&t.v, &link, target, sizeof(target)), sizeof(target));
	store(&t.v, SG_IOFF(&link, table), 3);		/* a target outside the volume */
	CHECK_EQ(sg_readlink(&t.v, &link, buf, sizeof(buf)), -EUCLEAN);
	store(&t.v, SG_IOFF(&link, size), SG_SYMLINK_MAX + 1);
	CHECK_EQ(sg_readlink(&t.v, &link, buf, sizeof(buf)), -EUCLEAN);
	CHECK_OK(sg_unlink(&t.v, &t.root, L("link"), 5));
	CHECK_OK(sg_evict(&t.v, &link));
	CHECK_EQ(sg_readlink(&t.v, &link, buf, sizeof(buf)), -ESTALE);

	/* a file whose dirent has the type of a directory */
	off = ref_off(&t.v, &t.root, "file");
	store(&t.v, off, SG_REF(SG_REF_INO(sg_get(&t.v, off)), 4, SG_S_IFDIR >> 12));
	CHECK_EQ(sg_rename(&t.v, &t.root, L("file"), &c, L("x"), 0, NULL, 1), -EUCLEAN);
	CHECK_EQ(sg_rename(&t.v, &t.root, L("c"), &t.root, L("file"), 0, NULL, 1), -EUCLEAN);
	store(&t.v, off, SG_REF(SG_INO_ROOT, 4, SG_S_IFDIR >> 12));
	CHECK_EQ(sg_lookup(&t.v, &t.root, L("file"), &ref, NULL), -EUCLEAN);
	CHECK_EQ(sg_rmdir(&t.v, &t.root, L("file"), 1), -EUCLEAN);
	store(&t.v, off, SG_REF(1ULL << 35, 4, SG_S_IFREG >> 12));
	CHECK_EQ(sg_unlink(&t.v, &t.root, L("file"), 1), -EUCLEAN);
	/* each place is reported once, in the log and in the volume's error count */
	CHECK(reports == 5 && sg_get(&t.v, SG_HOT(errors)) == 5);
	sg_log_hook = NULL;
	sg_abandon(&t.v);
	test_unmap(t.mem, t.size);
	printf("ok calls on damage fail with EUCLEAN\n");
}

/* --- many threads ----------------------------------------------------------------------------- */

#define DIRS	6
#define THREADS	4

struct crowd {
	struct tvol t;
	struct sg_iref dir[DIRS];
	u64 turns, done;
};

static void crowd_step(struct crowd *c, struct rng *rng)
{
	struct sg_vol *v = &c->t.v;
	const struct sg_iref *a = &c->dir[rng_below(rng, DIRS)], *b = &c->dir[rng_below(rng, DIRS)];
	struct sg_new file = new_of(SG_S_IFREG | 0600), dir = new_of(SG_S_IFDIR | 0700);
	struct sg_iref ref;
	char x[8], y[8];
	int err;

	sprintf(x, "n%" PRIu64, rng_below(rng, 12));
	sprintf(y, "n%" PRIu64, rng_below(rng, 12));
	switch (rng_below(rng, 6)) {
	case 0:
		err = sg_create(v, a, L(x), &file, &ref);
		break;
	case 1:
		err = sg_create(v, a, L(x), &dir, &ref);
		break;
	case 2:
		err = sg_unlink(v, a, L(x), 5);
		break;
	case 3:
		err = sg_rmdir(v, a, L(x), 6);
		break;
	case 4:
		err = sg_lookup(v, a, L(x), &ref, NULL);
		if (!err)
			err = sg_link(v, &ref, b, L(y), 7);
		break;
	default:
		err = sg_rename(v, a, L(x), b, L(y), rng_chance(rng, 30) ? SG_RENAME_EXCHANGE : 0,
				NULL, 8);
	}
	test_note("step of a thread that moves directories");
	switch (err) {
	case 0: case -ENOENT: case -EEXIST: case -ENOTDIR: case -EISDIR: case -ENOTEMPTY:
	case -EINVAL: case -EPERM: case -ESTALE:
		return;
	}
	test_fail(__FILE__, __LINE__, "unexpected: %d", err);
}

static void *crowd_member(void *arg)
{
	struct crowd *c = arg;
	struct rng rng = { __atomic_add_fetch(&c->done, 1, __ATOMIC_RELAXED) * 77 };
	u64 i;

	for (i = 0; i < c->turns; i++)
		crowd_step(c, &rng);
	return NULL;
}

/*
 * Threads continuously move directories into each other. Finally the directories must form a tree.
 */
static void test_crowd(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	pthread_t thread[THREADS];
	unsigned int i, k;
	char name[8];

	tvol_make(&c->t, 64 << 20);
	c->turns = test_amount(3000, 40000, 400000);
	/* nests the directories, under names that the threads move */
	for (i = 0; i < DIRS; i++) {
		sprintf(name, "n%u", i);
		c->dir[i] = mkdir_in(&c->t.v, i ? &c->dir[(i - 1) / 2] : &c->t.root, name);
	}
	for (i = 0; i < DIRS; i++)	/* a file makes the directory non-empty */
		file_in(&c->t.v, &c->dir[i], "stays");
	for (k = 0; k < THREADS; k++)
		CHECK(!pthread_create(&thread[k], NULL, crowd_member, c));
	for (k = 0; k < THREADS; k++)
		CHECK(!pthread_join(thread[k], NULL));
	for (i = 0; i < DIRS; i++)
		CHECK(lookup_ino(&c->t.v, &c->dir[i], "stays"));
	tvol_crash(&c->t);	/* inodes without links are still deferred frees */
	tvol_join(&c->t);
	tvol_drop(&c->t);
	free(c);
	printf("ok threads that move directories\n");
}

/*
 * One thread moves p/a below q/b/d and back, another one moves q/b below p/a/d and back. The two
 * moves share no inode, but both together would make a cycle: only one of them may succeed.
 */
struct circle {
	struct tvol t;
	struct sg_iref p, q, a, b, ad, bd;
	u64 turns, moves;
};

/* Moves a directory below @other and back. While it is below @other, @other must stay in @home. */
static void move_back_and_forth(struct circle *c, const struct sg_iref *from,
				const struct sg_iref *to, const char *name,
				const struct sg_iref *other, const struct sg_iref *home)
{
	u64 i = 0, tries;

	for (tries = 0; i < c->turns && tries < 1000 * c->turns; tries++) {
		int err = sg_rename(&c->t.v, from, L(name), to, L(name), 0, NULL, 5);

		CHECK(!err || err == -EINVAL);
		if (err) {	/* the other directory is below this one now */
			sg_yield();
			continue;
		}
		CHECK_EQ(parent_of(&c->t.v, other), home->ino);
		CHECK_OK(sg_rename(&c->t.v, to, L(name), from, L(name), 0, NULL, 6));
		i++;
	}
	__atomic_fetch_add(&c->moves, i, __ATOMIC_RELAXED);
}

static void *mover_a(void *arg)
{
	struct circle *c = arg;

	move_back_and_forth(c, &c->p, &c->bd, "a", &c->b, &c->q);
	return NULL;
}

static void *mover_b(void *arg)
{
	struct circle *c = arg;

	move_back_and_forth(c, &c->q, &c->ad, "b", &c->a, &c->p);
	return NULL;
}

static void test_circle(void)
{
	struct circle *c = calloc(1, sizeof(*c));
	pthread_t thread[2];

	tvol_make(&c->t, TEST_SMALL);
	c->turns = test_amount(2000, 20000, 200000);
	c->p = mkdir_in(&c->t.v, &c->t.root, "p");
	c->q = mkdir_in(&c->t.v, &c->t.root, "q");
	c->a = mkdir_in(&c->t.v, &c->p, "a");
	c->b = mkdir_in(&c->t.v, &c->q, "b");
	c->ad = mkdir_in(&c->t.v, &c->a, "d");
	c->bd = mkdir_in(&c->t.v, &c->b, "d");
	CHECK(!pthread_create(&thread[0], NULL, mover_a, c));
	CHECK(!pthread_create(&thread[1], NULL, mover_b, c));
	CHECK(!pthread_join(thread[0], NULL));
	CHECK(!pthread_join(thread[1], NULL));
	CHECK_EQ(c->moves, 2 * c->turns);
	tvol_drop(&c->t);
	printf("ok %" PRIu64 " moves that could have made a cycle\n", c->moves);
	free(c);
}

int main(void)
{
	test_types();
	test_links();
	test_tmpfile();
	test_symlinks();
	test_errors();
	test_rename_matrix();
	test_rename_special();
	test_full();
	test_damage();
	test_crowd();
	test_circle();
	return test_done();
}
