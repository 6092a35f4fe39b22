// SPDX-License-Identifier: Apache-2.0
/*
 * Extended attributes. This file translates between the kernel's prefixes of names and the engine's
 * name spaces.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/xattr.h>
#include "fuse.h"

#define LIST_MAX	65536u	/* the kernel's limit for a list of names */

static const struct {
	const char *prefix;
	unsigned int space;
} spaces[] = {
	{ "user.", SG_XATTR_USER },
	{ "trusted.", SG_XATTR_TRUSTED },
	{ "security.", SG_XATTR_SECURITY },
	{ "system.posix_acl_access", SG_XATTR_ACL_ACCESS },
	{ "system.posix_acl_default", SG_XATTR_ACL_DEFAULT },
};
#define SPACES	(sizeof(spaces) / sizeof(spaces[0]))

static bool is_acl(unsigned int space)
{
	return space == SG_XATTR_ACL_ACCESS || space == SG_XATTR_ACL_DEFAULT;
}

/* Finds the name space of an attribute. @rest: the name without its prefix. */
static int find_space(const char *name, unsigned int *space, const char **rest)
{
	size_t i, n;

	for (i = 0; name && i < SPACES; i++) {
		n = strlen(spaces[i].prefix);
		if (strncmp(name, spaces[i].prefix, n) ||
		    !is_acl(spaces[i].space) != (name[n] != 0))
			continue;
		*space = spaces[i].space;
		*rest = name + n;
		return strlen(*rest) > 255 ? -ERANGE : 0;
	}
	return -EOPNOTSUPP;
}

int op_getxattr(void)
{
	const struct fuse_getxattr_in *in = ARG(struct fuse_getxattr_in);
	struct fuse_getxattr_out out = { 0 };
	unsigned int space;
	struct sg_iref ref;
	const char *rest;
	int n = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!n)
		n = find_space(call_name(sizeof(*in), NULL), &space, &rest);
	if (!n && !sg_load64(&node_record(&ref)->xattr))
		n = -ENODATA;
	if (!n && in->size && !out_room())
		n = -ENOMEM;
	if (n)
		return n;
	n = sg_xattr_get(VOL, &ref, space, rest, (u32)strlen(rest), in->size ? self->out : NULL,
			 in->size < IO_MAX ? in->size : IO_MAX);
	if (n < 0)
		return n;
	if (in->size)
		return reply_large(self->out, (size_t)n);
	out.size = (u32)n;
	return reply(&out, sizeof(out));
}

/*
 * Reports whether the last server has finished this call: then the inode has the time of the call,
 * to the nanosecond.
 */
static bool set_before(const struct sg_iref *ref)
{
	return is_repeated() && (s64)sg_load64(&node_record(ref)->ctime) == call_time();
}

static int set_any(const char *name, const void *value, u32 len, int flags, bool drop_gid)
{
	unsigned int space, how = (flags & XATTR_CREATE ? SG_XATTR_CREATE : 0) |
				  (flags & XATTR_REPLACE ? SG_XATTR_REPLACE : 0);
	struct sg_iref ref;
	const char *rest;
	int err = node_ref(IN->nodeid, &ref);

	if (!err)
		err = find_space(name, &space, &rest);
	if (!err && is_fixed(&ref, SG_FL_IMMUTABLE | SG_FL_APPEND))
		err = -EPERM;
	if (err)
		return err;
	if (is_acl(space))
		return acl_set(&ref, space, value, len, drop_gid, call_time());
	err = sg_xattr_set(VOL, &ref, space, rest, (u32)strlen(rest), value, len, how,
			   call_time());
	return (err == -EEXIST || err == -ENODATA) && set_before(&ref) ? 0 : err;
}

int op_setxattr(void)
{
	bool ext = fs.kept->flags & FUSE_SETXATTR_EXT;
	size_t head = ext ? sizeof(struct fuse_setxattr_in) : FUSE_COMPAT_SETXATTR_IN_SIZE, at;
	const struct fuse_setxattr_in *in = call_arg(head);
	const char *name = in ? call_name(head, &at) : NULL;
	int err;

	if (!name || !call_arg(at + in->size))
		return -EINVAL;
	err = set_any(name, (const u8 *)in + at, in->size, (int)in->flags,
		      ext && in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID);
	return err ? err : reply(NULL, 0);
}

int op_removexattr(void)
{
	int err = set_any(call_name(0, NULL), NULL, 0, 0, false);

	return err ? err : reply(NULL, 0);
}

struct names {
	u8 *out;
	u32 used, room;
	bool trusted;
};

static int add_name(void *ctx, unsigned int space, const char *name, u32 name_len,
		    const void *value, u32 value_len)
{
	struct names *l = ctx;
	const char *prefix = NULL;
	size_t i, n;

	(void)value;
	(void)value_len;
	for (i = 0; i < SPACES; i++)
		if (spaces[i].space == space)
			prefix = spaces[i].prefix;
	if (!prefix || (space == SG_XATTR_TRUSTED && !l->trusted))
		return 0;
	n = strlen(prefix);
	if (l->used + n + name_len + 1 > LIST_MAX)
		return -E2BIG;
	if (l->room) {
		if (l->used + n + name_len + 1 > l->room)
			return -ERANGE;
		memcpy(l->out + l->used, prefix, n);
		memcpy(l->out + l->used + n, name, name_len);
		l->out[l->used + n + name_len] = 0;
	}
	l->used += (u32)(n + name_len + 1);
	return 0;
}

int op_listxattr(void)
{
	const struct fuse_getxattr_in *in = ARG(struct fuse_getxattr_in);
	struct fuse_getxattr_out out = { 0 };
	struct names l = { .trusted = !IN->uid };
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!err && in->size) {
		l.out = out_room();
		l.room = in->size < IO_MAX ? in->size : IO_MAX;
		err = l.out ? 0 : -ENOMEM;
	}
	if (!err)
		err = sg_xattr_list(VOL, &ref, add_name, &l);
	if (err)
		return err;
	if (in->size)
		return reply_large(self->out, l.used);
	out.size = l.used;
	return reply(&out, sizeof(out));
}
