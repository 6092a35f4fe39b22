// SPDX-License-Identifier: GPL-2.0
/* Extended attributes: conversion between the VFS's prefixes and the engine's name spaces. */
#include <linux/xattr.h>

#include "stargatefs.h"

static int sgfs_get(const struct xattr_handler *handler, struct dentry *dentry, struct inode *inode,
		    const char *name, void *buf, size_t size)
{
	int err = sgfs_refresh(inode);

	if (err)
		return err;
	if (!SGFS_I(inode)->has_xattr)
		return -ENODATA;
	return sg_xattr_get(sgfs_vol(inode), sgfs_ref(inode), handler->flags, name, strlen(name),
			    size ? buf : NULL, size);
}

static int sgfs_set(const struct xattr_handler *handler, struct mnt_idmap *idmap,
		    struct dentry *dentry, struct inode *inode, const char *name, const void *value,
		    size_t size, int vfs_flags)
{
	unsigned int flags = (vfs_flags & XATTR_CREATE ? SG_XATTR_CREATE : 0) |
			     (vfs_flags & XATTR_REPLACE ? SG_XATTR_REPLACE : 0);
	int err = sg_xattr_set(sgfs_vol(inode), sgfs_ref(inode), handler->flags, name, strlen(name),
			       value, size, flags, sgfs_now(inode));

	sgfs_refresh(inode);
	return err;
}

#define HANDLER(string, space)			\
	&(const struct xattr_handler) {		\
		.prefix = string,		\
		.flags = space,			\
		.get = sgfs_get,			\
		.set = sgfs_set,			\
	}

sgfs_xattr_table sgfs_xattr_handlers[] = {
	HANDLER(XATTR_USER_PREFIX, SG_XATTR_USER),
	HANDLER(XATTR_TRUSTED_PREFIX, SG_XATTR_TRUSTED),
	HANDLER(XATTR_SECURITY_PREFIX, SG_XATTR_SECURITY),
	SGFS_ACL_XATTR_HANDLERS
	NULL
};

/* --- listing ---------------------------------------------------------------------------------- */

struct listing {
	char *out;
	size_t size, used;
	bool trusted;
};

static const char *sgfs_prefix_of(unsigned int space)
{
	switch (space) {
	case SG_XATTR_USER:
		return XATTR_USER_PREFIX;
	case SG_XATTR_TRUSTED:
		return XATTR_TRUSTED_PREFIX;
	case SG_XATTR_SECURITY:
		return XATTR_SECURITY_PREFIX;
	case SG_XATTR_ACL_ACCESS:
		return XATTR_NAME_POSIX_ACL_ACCESS;
	case SG_XATTR_ACL_DEFAULT:
		return XATTR_NAME_POSIX_ACL_DEFAULT;
	}
	return NULL;
}

static int sgfs_xattr_list_one(void *ctx, unsigned int space, const char *name, u32 name_len,
			       const void *value, u32 value_len)
{
	const char *prefix = sgfs_prefix_of(space);
	struct listing *l = ctx;
	size_t plen, len;

	if (!prefix || (space == SG_XATTR_TRUSTED && !l->trusted))
		return 0;
	plen = strlen(prefix);
	len = plen + name_len + 1;
	if (l->out) {
		if (l->used + len > l->size)
			return -ERANGE;
		memcpy(l->out + l->used, prefix, plen);
		memcpy(l->out + l->used + plen, name, name_len);
		l->out[l->used + len - 1] = 0;
	}
	l->used += len;
	return 0;
}

ssize_t sgfs_listxattr(struct dentry *dentry, char *list, size_t size)
{
	struct inode *inode = d_inode(dentry);
	struct listing l = {
		.out = size ? list : NULL,
		.size = size,
		.trusted = capable(CAP_SYS_ADMIN),
	};
	int err = sgfs_refresh(inode) ?:
		  sg_xattr_list(sgfs_vol(inode), sgfs_ref(inode), sgfs_xattr_list_one, &l);

	return err ?: (ssize_t)l.used;
}

/* --- initial attributes of an inode ----------------------------------------------------------- */

int sgfs_payload_add(struct sgfs_payload *p, unsigned int space, const char *name,
		     const void *value, size_t len)
{
	size_t name_len = strlen(name);
	size_t size = ALIGN(sizeof(struct sg_xattr_entry) + name_len + len, 8);
	struct sg_xattr_entry *entry;
	void *data;

	if (name_len > U8_MAX || len > SG_XATTR_VALUE_MAX)
		return -E2BIG;
	data = kvzalloc(p->len + size, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	if (p->len)
		memcpy(data, p->data, p->len);
	entry = data + p->len;
	entry->value_len = len;
	entry->space = space;
	entry->name_len = name_len;
	memcpy(entry->name, name, name_len);
	memcpy(entry->name + name_len, value, len);
	kvfree(p->data);
	p->data = data;
	p->len += size;
	return 0;
}
