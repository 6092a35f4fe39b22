// SPDX-License-Identifier: Apache-2.0
/*
 * Gives a name in the volume to a new object. The new object gets the name only when it is
 * complete. If the tool is killed or has no more space before that, only the old object remains
 * (D8).
 */
#include "ctl.h"

/* Looks up the name in the directory. Refuses to replace an object of another kind. */
int place_look(struct call *c, const struct sg_iref *dir, const char *name, u32 mode,
	       const char *from, struct place *p)
{
	unsigned int type;
	int err;

	*p = (struct place){ .dir = *dir, .name = name, .len = (u32)strlen(name) };
	err = sg_lookup(call_vol(c), dir, name, p->len, &p->old, &type);
	if (err == -ENOENT)
		return 0;
	if (!err)
		err = sg_getattr(call_vol(c), &p->old, &p->attr);
	if (err)
		return path_error(from, err);
	p->taken = true;
	if ((p->attr.mode & S_IFMT) != (mode & S_IFMT)) {
		tool_error("%s: the volume has a %s of that name", from, type_name(p->attr.mode));
		return -EEXIST;
	}
	if (p->attr.flags & (SG_FL_IMMUTABLE | SG_FL_APPEND) && !S_ISDIR(mode)) {
		tool_error("%s: the volume has a file of that name that is immutable or "
			   "append-only", from);
		return -EPERM;
	}
	return 0;
}

/*
 * The engine can give a name to an inode without one, or rename a name over another one. So a
 * replacement first gets a temporary name. A kill between the two steps leaves a complete file with
 * the temporary name.
 */
static int replace(struct call *c, const struct place *p, const struct sg_iref *ref)
{
	struct sg_vol *vol = call_vol(c);
	s64 now = (s64)sg_now();
	char beside[40];
	u64 number;
	u32 len;
	int err;

	sg_random(&number, sizeof(number));
	len = (u32)snprintf(beside, sizeof(beside), ".stargatectl.%016llx",
			    (unsigned long long)number);
	err = sg_link(vol, ref, &p->dir, beside, len, now);
	if (err)
		return err;
	err = sg_rename(vol, &p->dir, beside, len, &p->dir, p->name, p->len, 0, NULL, now);
	if (err)
		sg_unlink(vol, &p->dir, beside, len, now);
	return err ? err : sg_evict(vol, &p->old);
}

int place_give(struct call *c, const struct place *p, const struct sg_iref *ref)
{
	if (!p->taken)
		return sg_link(call_vol(c), ref, &p->dir, p->name, p->len, (s64)sg_now());
	return p->old.ino == ref->ino ? 0 : replace(c, p, ref);
}

/* --- attributes that a replacement inherits ------------------------------------------------ */

int xattrs_add(struct xattrs *x, unsigned int space, const char *name, u32 name_len,
	       const void *value, u32 value_len)
{
	u32 size = (u32)SG_ALIGN_UP(sizeof(struct sg_xattr_entry) + name_len + value_len, 8);
	struct sg_xattr_entry *e = (void *)((u8 *)x->data + x->len);

	if (value_len > SG_XATTR_VALUE_MAX || size > SG_XATTR_TOTAL_MAX - x->len)
		return -E2BIG;
	memset(e, 0, size);
	e->value_len = value_len;
	e->space = (u8)space;
	e->name_len = (u8)name_len;
	memcpy(e->name, name, name_len);
	memcpy(e->name + name_len, value, value_len);
	x->len += size;
	return 0;
}

/* Does not keep capabilities, which belong to the old bytes. A write to a file drops them, too. */
static int inherit_one(void *ctx, unsigned int space, const char *name, u32 name_len,
		       const void *value, u32 value_len)
{
	if (space == SG_XATTR_SECURITY && name_len == 10 && !memcmp(name, "capability", 10))
		return 0;
	return xattrs_add(ctx, space, name, name_len, value, value_len) ? -EUCLEAN : 0;
}

int place_inherit(struct call *c, const struct place *p, struct sg_new *new)
{
	static struct xattrs in;
	int err;

	in.len = 0;
	err = sg_xattr_list(call_vol(c), &p->old, inherit_one, &in);

	new->mode = p->attr.mode;
	new->uid = p->attr.uid;
	new->gid = p->attr.gid;
	new->flags = p->attr.flags;
	new->xattrs = in.data;
	new->xattrs_len = in.len;
	return err;
}
