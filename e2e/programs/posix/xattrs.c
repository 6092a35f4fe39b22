// SPDX-License-Identifier: Apache-2.0
/* Tests of extended attributes and access control lists. */
#include <sys/xattr.h>

#include "posix.h"

TEST("xattr", set_get_list_remove)
{
	char buf[100], list[200];
	ssize_t n;

	close(make_file("f", "", 0));
	OK(setxattr("f", "user.a", "one", 3, 0));
	OK(setxattr("f", "user.b", "", 0, 0));
	OK(setxattr("f", "trusted.t", "two", 3, 0));
	OK(setxattr("f", "security.s", "three", 5, 0));
	CHECK(getxattr("f", "user.a", buf, 100) == 3 && !memcmp(buf, "one", 3));
	CHECK(getxattr("f", "user.b", buf, 100) == 0);
	CHECK(getxattr("f", "security.s", NULL, 0) == 5);
	FAILS(getxattr("f", "user.a", buf, 2), ERANGE);
	FAILS(getxattr("f", "user.none", buf, 100), ENODATA);
	n = OK(listxattr("f", list, sizeof(list)));
	CHECK(n == OK(listxattr("f", NULL, 0)));
	CHECK(memmem(list, n, "user.a", 7) && memmem(list, n, "trusted.t", 10) &&
	      memmem(list, n, "security.s", 11));
	FAILS(listxattr("f", list, 3), ERANGE);
	OK(removexattr("f", "user.a"));
	FAILS(removexattr("f", "user.a"), ENODATA);
	FAILS(getxattr("f", "user.a", buf, 100), ENODATA);
}

TEST("xattr", flags)
{
	close(make_file("f", "", 0));
	FAILS(setxattr("f", "user.a", "x", 1, XATTR_REPLACE), ENODATA);
	OK(setxattr("f", "user.a", "x", 1, XATTR_CREATE));
	FAILS(setxattr("f", "user.a", "y", 1, XATTR_CREATE), EEXIST);
	OK(setxattr("f", "user.a", "y", 1, XATTR_REPLACE));
	FAILS(setxattr("f", "nonsense.a", "y", 1, 0), EOPNOTSUPP);
}

TEST("xattr", large_values)
{
	char *value = calloc(1, 65537), *back = malloc(65536), name[32];
	static const size_t sizes[] = { 1, 100, 4000, 4096, 5000, 32768, 65536 };
	unsigned int i;

	close(make_file("f", "", 0));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(name, sizeof(name), "user.n%u", i);
		fill(value, sizes[i], i);
		OK(setxattr("f", name, value, sizes[i], 0));
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(name, sizeof(name), "user.n%u", i);
		CHECK(getxattr("f", name, back, 65536) == (ssize_t)sizes[i]);
		CHECK(is_filled(back, sizes[i], i));
	}
	FAILS(setxattr("f", "user.big", value, 65537, 0), E2BIG);
}

TEST("xattr", everywhere)
{
	char c;

	OK(mkdir("d", 0755));
	OK(setxattr("d", "user.x", "d", 1, 0));
	CHECK(getxattr("d", "user.x", &c, 1) == 1 && c == 'd');
	OK(symlink("d", "l"));
	FAILS(lsetxattr("l", "user.x", "l", 1, 0), EPERM);
	OK(lsetxattr("l", "trusted.x", "l", 1, 0));
	CHECK(lgetxattr("l", "trusted.x", &c, 1) == 1 && c == 'l');
	OK(mkfifo("p", 0644));
	FAILS(setxattr("p", "user.x", "p", 1, 0), EPERM);
	OK(setxattr("p", "trusted.x", "p", 1, 0));
}

static void as_other(void)
{
	char c;

	FAILS(setxattr("f", "user.x", "y", 1, 0), EACCES);
	CHECK(getxattr("f", "user.x", &c, 1) == 1);
	FAILS(getxattr("f", "trusted.x", &c, 1), ENODATA);
	{
		char list[100];
		ssize_t n = OK(listxattr("f", list, sizeof(list)));

		CHECK(!memmem(list, n, "trusted.x", 9) && memmem(list, n, "user.x", 6));
	}
}

TEST("xattr", permissions)
{
	close(make_file("f", "", 0));
	OK(setxattr("f", "user.x", "x", 1, 0));
	OK(setxattr("f", "trusted.x", "x", 1, 0));
	as_user(1000, 1000, as_other);
}

TEST("xattr", change_time_follows)
{
	struct stat before;

	close(make_file("f", "", 0));
	before = stat_of("f");
	wait_tick();
	OK(setxattr("f", "user.x", "x", 1, 0));
	CHECK(later(stat_of("f").st_ctim, before.st_ctim));
	CHECK(same_time(stat_of("f").st_mtim, before.st_mtim));
}

/* An ACL in the kernel's format. */
struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};
struct acl {
	uint32_t version;
	struct acl_entry e[5];
};
enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 0x10, OTHER = 0x20 };
#define NOBODY ((uint32_t)-1)

static const struct acl for_1000 = { 2, {
	{ USER_OBJ, 6, NOBODY }, { USER, 6, 1000 }, { GROUP_OBJ, 0, NOBODY }, { MASK, 6, NOBODY },
	{ OTHER, 0, NOBODY } } };

static void may(void)
{
	close(OK(open("f", O_RDWR)));
}

static void may_not(void)
{
	FAILS(open("f", O_RDONLY), EACCES);
}

TEST("xattr", access_acl)
{
	struct acl back;

	close(make_file("f", "", 0));
	OK(chmod("f", 0600));
	as_user(1000, 1000, may_not);
	OK(setxattr("f", "system.posix_acl_access", &for_1000, sizeof(for_1000), 0));
	as_user(1000, 1000, may);
	as_user(1001, 1001, may_not);
	/* The mode's group bits show the ACL's mask. */
	CHECK((stat_of("f").st_mode & 0777) == 0660);
	CHECK(getxattr("f", "system.posix_acl_access", &back, sizeof(back)) == sizeof(back));
	CHECK(!memcmp(&back, &for_1000, sizeof(back)));
	OK(chmod("f", 0600));					/* removes the mask */
	as_user(1000, 1000, may_not);
	OK(removexattr("f", "system.posix_acl_access"));
	FAILS(getxattr("f", "system.posix_acl_access", NULL, 0), ENODATA);
	OK(removexattr("f", "system.posix_acl_access"));
}

TEST("xattr", default_acl_is_inherited)
{
	struct acl back;
	char list[200];
	ssize_t n;

	OK(mkdir("d", 0755));
	OK(setxattr("d", "system.posix_acl_default", &for_1000, sizeof(for_1000), 0));
	close(OK(open("d/f", O_CREAT | O_RDWR, 0666)));
	/* The default ACL replaces the umask. */
	CHECK((stat_of("d/f").st_mode & 0777) == 0660);
	CHECK(getxattr("d/f", "system.posix_acl_access", &back, sizeof(back)) == sizeof(back));
	CHECK(back.e[1].id == 1000 && back.e[1].perm == 6);
	FAILS(getxattr("d/f", "system.posix_acl_default", NULL, 0), ENODATA);
	OK(mkdir("d/sub", 0777));
	CHECK(getxattr("d/sub", "system.posix_acl_default", &back, sizeof(back)) == sizeof(back));
	n = OK(listxattr("d/sub", list, sizeof(list)));
	CHECK(memmem(list, n, "system.posix_acl_access", 24) &&
	      memmem(list, n, "system.posix_acl_default", 25));
	FAILS(setxattr("d/f", "system.posix_acl_default", &for_1000, sizeof(for_1000), 0), EACCES);
	OK(symlink("x", "d/l"));
}
