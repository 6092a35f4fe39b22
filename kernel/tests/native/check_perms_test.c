// SPDX-License-Identifier: Apache-2.0
/*
 * A repair never widens access. It restores inodes, or names them in lost+found, with no more
 * permissions than before. That holds for any stored permissions, and for any entries that users
 * have made in the root directory.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include "internal.h"
#include "test.h"

#define SIZE	TEST_SMALL

static struct tvol t;
static char said[4000];

static void note(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	size_t n = strlen(said);

	(void)ctx;
	(void)ino;
	(void)off;
	(void)fixed;
	snprintf(said + n, sizeof(said) - n, "%s\n", what);
}

static void quietly(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* Leaves the volume, damages and repairs it, and joins again. */
static struct sg_check_result repair(void (*damage)(void))
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &test_identity, .report = note };
	struct sg_check_result res;

	tvol_leave(&t);
	if (damage)
		damage();
	*said = 0;
	CHECK_OK(sg_check(t.mem, SIZE, &opts, &res));
	CHECK(res.found && res.fixed == res.found);
	test_clean(t.mem, SIZE);
	tvol_join(&t);
	return res;
}

static u32 mode_of(const struct sg_iref *ref)
{
	struct sg_attr attr;

	CHECK_OK(sg_getattr(&t.v, ref, &attr));
	return attr.mode;
}

static struct sg_inode *record(const struct sg_iref *ref)
{
	return (void *)(t.mem + ref->off);
}

/* --- permissions in an invalid word --------------------------------------------------------- */

static struct sg_iref file, dir;

static void all_bits(void)
{
	record(&file)->mode |= 0xffffffff;
	record(&dir)->mode |= 0xffffffff;
	record(&t.root)->mode |= 0xffffffff;
}

static void test_mode(void)
{
	tvol_make(&t, SIZE);
	file = test_create(&t.v, &t.root, "file", S_IFREG | 0600);
	dir = test_create(&t.v, &t.root, "dir", S_IFDIR | 0700);
	repair(all_bits);
	CHECK_EQ(mode_of(&file), S_IFREG | 0700);
	CHECK_EQ(mode_of(&dir), S_IFDIR | 0700);
	CHECK_EQ(mode_of(&t.root), S_IFDIR | 0755);
	tvol_drop(&t);
}

/* --- ACLs ----------------------------------------------------------------------------------- */

static struct sg_iref other;

static struct sg_xattr_head *blob(const struct sg_iref *ref)
{
	return (void *)(t.mem + record(ref)->xattr);
}

static void blobs_damaged(void)
{
	((u8 *)blob(&file)->page)[sizeof(struct sg_xattr_entry) + 3] ^= 1;
	/* the damaged entry may have had any type */
	((u8 *)blob(&dir)->page)[0] ^= 0x40;
	blob(&other)->crc ^= 1;
}

static void test_acl(void)
{
	static const char acl[40];

	tvol_make(&t, SIZE);
	file = test_create(&t.v, &t.root, "file", S_IFREG | 0660);
	dir = test_create(&t.v, &t.root, "dir", S_IFDIR | S_ISGID | 0775);
	other = test_create(&t.v, &t.root, "other", S_IFREG | 0664);
	CHECK_OK(sg_xattr_set(&t.v, &file, SG_XATTR_ACL_ACCESS, "", 0, acl, sizeof(acl), 0, 1));
	CHECK_OK(sg_xattr_set(&t.v, &dir, SG_XATTR_ACL_ACCESS, "", 0, acl, sizeof(acl), 0, 1));
	CHECK_OK(sg_xattr_set(&t.v, &other, SG_XATTR_USER, "x", 1, acl, sizeof(acl), 0, 1));
	repair(blobs_damaged);
	CHECK_EQ(mode_of(&file), S_IFREG | 0600);
	CHECK_EQ(mode_of(&dir), S_IFDIR | S_ISGID | 0705);
	CHECK_EQ(mode_of(&other), S_IFREG | 0664);
	CHECK(strstr(said, "its group loses its permissions"));
	tvol_drop(&t);
}

/* --- lost+found ----------------------------------------------------------------------------- */

/* Makes a file that has a link and no name. */
static u64 orphan(void)
{
	struct sg_new new = { .mode = S_IFREG | 0644, .now = 1 };
	struct sg_tx *tx = sg_tx_begin(&t.v);
	struct sg_iref ref;

	CHECK_OK(sg_inode_take(tx, &new, 1, 0, &ref));
	CHECK_OK(sg_tx_commit(tx));
	return ref.ino;
}

static struct sg_iref users_dir(const char *name, u32 mode, u32 uid)
{
	struct sg_new new = { .mode = S_IFDIR | mode, .uid = uid, .gid = uid, .now = 1 };
	struct sg_iref ref;

	CHECK_OK(sg_create(&t.v, &t.root, name, (u32)strlen(name), &new, &ref));
	return ref;
}

struct found {
	u64 ino;
	bool seen;
};

static bool look(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct found *f = ctx;

	(void)name;
	(void)len;
	(void)type;
	(void)cookie;
	f->seen |= ino == f->ino;
	return true;
}

static bool holds(const struct sg_iref *in, u64 ino)
{
	struct found f = { ino, false };
	u64 cookie = 0;

	while (cookie != INT64_MAX)
		CHECK_OK(sg_readdir(&t.v, in, &cookie, look, &f));
	return f.seen;
}

static void private_has(const char *name, u64 ino)
{
	struct sg_iref ref = test_lookup(&t.v, &t.root, name);

	CHECK_EQ(mode_of(&ref), S_IFDIR | 0700);
	CHECK_EQ((u32)sg_iget(&t.v, &ref, owner), 0);
	CHECK(holds(&ref, ino));
}

static void test_lost_found(void)
{
	struct sg_iref users;
	char name[40];
	unsigned int i;
	u64 ino;

	tvol_make(&t, SIZE);
	users = users_dir("lost+found", 0777, 1000);
	users_dir("lost+found.1", 0700, 1000);
	users_dir("lost+found.2", 0755, 0);
	ino = orphan();
	CHECK_EQ(repair(NULL).adopted, 1);
	CHECK(!holds(&users, ino));
	private_has("lost+found.3", ino);
	ino = orphan();		/* the next repair uses the same directory again */
	CHECK_EQ(repair(NULL).adopted, 1);
	private_has("lost+found.3", ino);
	tvol_drop(&t);

	tvol_make(&t, SIZE);	/* fsck uses a lost+found that root has made */
	users_dir("lost+found", 0700, 0);
	ino = orphan();
	CHECK_EQ(repair(NULL).adopted, 1);
	private_has("lost+found", ino);
	/* users have taken all names that fsck could give to this inode */
	users = test_lookup(&t.v, &t.root, "lost+found");
	ino = orphan();
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), i ? "#%" PRIu64 ".%u" : "#%" PRIu64, ino, i);
		test_create(&t.v, &users, name, S_IFREG | 0600);
	}
	CHECK_EQ(repair(NULL).adopted, 1);
	private_has("lost+found", ino);
	tvol_drop(&t);

	tvol_make(&t, SIZE);	/* users have taken all names that fsck could give to lost+found */
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), i ? "lost+found.%u" : "lost+found", i);
		test_create(&t.v, &t.root, name, S_IFREG | 0600);
	}
	ino = orphan();
	CHECK_EQ(repair(NULL).adopted, 1);
	CHECK(!holds(&t.root, ino));
	tvol_drop(&t);
}

int main(void)
{
	sg_log_hook = quietly;
	test_mode();
	test_acl();
	test_lost_found();
	return test_done();
}
