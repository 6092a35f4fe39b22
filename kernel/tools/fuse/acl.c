// SPDX-License-Identifier: Apache-2.0
/*
 * POSIX access control lists. The kernel checks them, but does not store or change them: the file
 * system does. A new inode inherits the default list of its directory. A list that grants nothing
 * beyond a mode is stored as that mode. chmod() changes the list.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "fuse.h"

/* The format of the lists in extended attributes is part of the kernel's interface. */
#define ACL_VERSION	2
#define USER_OBJ	0x01
#define USER		0x02
#define GROUP_OBJ	0x04
#define GROUP		0x08
#define MASK		0x10
#define OTHER		0x20
#define ENTRIES_MAX	8191	/* as many as the largest attribute holds */

struct acl {
	u32 version;
	struct acl_entry {
		uint16_t tag, perm;
		u32 id;
	} entry[];
};

static u32 acl_count(u32 len)
{
	return (u32)((len - sizeof(struct acl)) / sizeof(struct acl_entry));
}

static bool acl_valid(const struct acl *a, u32 len)
{
	return len >= sizeof(*a) && a->version == ACL_VERSION &&
	       !((len - sizeof(*a)) % sizeof(struct acl_entry)) && acl_count(len) <= ENTRIES_MAX;
}

static struct acl_entry *acl_find(struct acl *a, u32 len, uint16_t tag)
{
	u32 i;

	for (i = 0; i < acl_count(len); i++)
		if (a->entry[i].tag == tag)
			return &a->entry[i];
	return NULL;
}

/*
 * Reads the list of an inode into new memory, which the caller frees. Returns the length of the
 * list, 0 if the inode has none, or -errno.
 */
static int acl_read(const struct sg_iref *ref, unsigned int space, struct acl **out)
{
	int len;

	if (!sg_load64(&node_record(ref)->xattr))
		return 0;
	*out = malloc(SG_XATTR_VALUE_MAX);
	if (!*out)
		return -ENOMEM;
	len = sg_xattr_get(VOL, ref, space, "", 0, *out, SG_XATTR_VALUE_MAX);
	if (len > 0 && acl_valid(*out, (u32)len))
		return len;
	free(*out);
	*out = NULL;
	if (len >= 0)
		return -EUCLEAN;
	return len == -ENODATA ? 0 : len;
}

/* --- a mode and a list ---------------------------------------------------------------------- */

/* Returns the entry that corresponds to the group bits of the mode. */
static struct acl_entry *group_bits(struct acl *a, u32 len)
{
	struct acl_entry *mask = acl_find(a, len, MASK);

	return mask ? mask : acl_find(a, len, GROUP_OBJ);
}

static bool is_a_mode(struct acl *a, u32 len)
{
	u32 i;

	for (i = 0; i < acl_count(len); i++)
		if (a->entry[i].tag & (USER | GROUP | MASK))
			return false;
	return true;
}

static u32 acl_mode(struct acl *a, u32 len)
{
	const struct acl_entry *u = acl_find(a, len, USER_OBJ), *g = group_bits(a, len);
	const struct acl_entry *o = acl_find(a, len, OTHER);

	return (u32)(u ? u->perm & 7 : 0) << 6 | (u32)(g ? g->perm & 7 : 0) << 3 |
	       (u32)(o ? o->perm & 7 : 0);
}

static void acl_set_mode(struct acl *a, u32 len, u32 mode)
{
	struct acl_entry *u = acl_find(a, len, USER_OBJ), *g = group_bits(a, len);
	struct acl_entry *o = acl_find(a, len, OTHER);

	if (u)
		u->perm = mode >> 6 & 7;
	if (g)
		g->perm = mode >> 3 & 7;
	if (o)
		o->perm = mode & 7;
}

/* --- a new inode ---------------------------------------------------------------------------- */

static int payload_add(struct payload *p, unsigned int space, const void *value, u32 len)
{
	size_t size = (sizeof(struct sg_xattr_entry) + len + 7) & ~7ul;
	u8 *data = realloc(p->data, p->len + size);
	struct sg_xattr_entry *e;

	if (!data)
		return -ENOMEM;
	e = (void *)(data + p->len);
	memset(e, 0, size);
	e->value_len = len;
	e->space = (u8)space;
	memcpy(e->name, value, len);
	p->data = data;
	p->len += (u32)size;
	return 0;
}

/*
 * Gives a new inode the default list of its directory. Applies the umask if there is no such list.
 */
int acl_inherit(const struct sg_iref *dir, u32 *mode, u32 umask, struct payload *p)
{
	struct acl *a = NULL;
	int len = acl_read(dir, SG_XATTR_ACL_DEFAULT, &a), err = 0;
	u32 both;

	if (len <= 0) {
		*mode &= ~(umask & 0777);
		return len;
	}
	if (S_ISDIR(*mode))
		err = payload_add(p, SG_XATTR_ACL_DEFAULT, a, (u32)len);
	both = acl_mode(a, (u32)len) & *mode;
	*mode = (*mode & ~0777u) | both;
	acl_set_mode(a, (u32)len, both);
	if (!err && !is_a_mode(a, (u32)len))
		err = payload_add(p, SG_XATTR_ACL_ACCESS, a, (u32)len);
	free(a);
	return err;
}

/* --- changes -------------------------------------------------------------------------------- */

int acl_chmod(const struct sg_iref *ref, u32 mode, s64 now, bool *done)
{
	struct acl *a = NULL;
	int len = acl_read(ref, SG_XATTR_ACL_ACCESS, &a), err;

	*done = false;
	if (len <= 0)
		return len;
	acl_set_mode(a, (u32)len, mode);
	err = sg_xattr_set_mode(VOL, ref, SG_XATTR_ACL_ACCESS, a, (u32)len, mode, now);
	free(a);
	*done = !err;
	return err;
}

static int set_access(const struct sg_iref *ref, const void *value, u32 len, bool drop_gid, s64 now)
{
	u32 mode = (u32)sg_load64(&node_record(ref)->mode);
	struct acl *a = NULL;
	int err;

	if (value) {
		a = malloc(len);
		if (!a)
			return -ENOMEM;
		memcpy(a, value, len);
		mode = (mode & ~0777u) | acl_mode(a, len);
		if (drop_gid)
			mode &= ~(u32)S_ISGID;
		if (is_a_mode(a, len)) {
			free(a);
			a = NULL;
		}
	}
	err = sg_xattr_set_mode(VOL, ref, SG_XATTR_ACL_ACCESS, a, a ? len : 0, mode, now);
	free(a);
	return err == -ENODATA ? 0 : err;
}

/* Sets a list, or removes it if @value is NULL. */
int acl_set(const struct sg_iref *ref, unsigned int space, const void *value, u32 len,
	    bool drop_gid, s64 now)
{
	bool is_dir = S_ISDIR((u32)sg_load64(&node_record(ref)->mode));
	int err;

	if (value && !acl_valid(value, len))
		return -EINVAL;
	if (space == SG_XATTR_ACL_ACCESS)
		return set_access(ref, value, len, drop_gid, now);
	if (!is_dir)
		return value ? -EACCES : 0;
	if (value && !acl_count(len))
		value = NULL;
	err = sg_xattr_set(VOL, ref, space, "", 0, value, value ? len : 0, 0, now);
	return err == -ENODATA && !value ? 0 : err;
}
