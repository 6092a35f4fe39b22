/* SPDX-License-Identifier: GPL-2.0 */
/* Extended attributes. */
#ifndef SG_ENGINE_XATTR_H
#define SG_ENGINE_XATTR_H

#include "engine/inode.h"

#define SG_XATTR_CREATE		1u
#define SG_XATTR_REPLACE	2u
/*
 * @space: SG_XATTR_*; @name without its prefix (empty for ACLs). @buf NULL: returns only the size.
 */
int sg_xattr_get(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, void *buf, u32 len);
/* @value NULL removes the attribute. Sets ctime to @now. */
int sg_xattr_set(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, const void *value, u32 len, unsigned int flags,
		 s64 now);
/* As sg_xattr_set(), for an ACL that also changes the mode, in one transaction. */
int sg_xattr_set_mode(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		      const void *value, u32 len, u32 mode, s64 now);
typedef int (*sg_xattr_emit)(void *ctx, unsigned int space, const char *name, u32 name_len,
			     const void *value, u32 value_len);
int sg_xattr_list(struct sg_vol *vol, const struct sg_iref *ref, sg_xattr_emit emit, void *ctx);

#endif
