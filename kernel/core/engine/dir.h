/* SPDX-License-Identifier: GPL-2.0 */
/* Names: creating, linking, removing, renaming, reading directories. */
#ifndef SG_ENGINE_DIR_H
#define SG_ENGINE_DIR_H

#include "engine/inode.h"

struct sg_new {			/* a new inode */
	u32 mode, uid, gid;
	u64 rdev;		/* of device nodes */
	u32 flags;		/* SG_FL_* inherited */
	const char *target;	/* of a symlink */
	u32 target_len;
	s64 now;
	/* initial xattrs (inherited ACLs, labels): a payload of struct sg_xattr_entry, or NULL */
	const void *xattrs;
	u32 xattrs_len;
};

#define SG_RENAME_NOREPLACE	1u	/* as RENAME_*; WHITEOUT comes with @whiteout */
#define SG_RENAME_EXCHANGE	2u
#define SG_RENAME_WHITEOUT	4u

/* @type (as S_IFMT >> 12) may be NULL. *out has the generation, too. */
int sg_lookup(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      struct sg_iref *out, unsigned int *type);
int sg_create(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      const struct sg_new *new, struct sg_iref *out);
/*
 * Creates an inode without a name (O_TMPFILE). It is a deferred inode until sg_link() gives it a
 * name. It is also open, so sg_evict() does not free it before sg_close_inode().
 */
int sg_tmpfile(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out);
int sg_link(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
	    const char *name, u32 len, s64 now);
/*
 * Removes the name; the inode stays, deferred, until sg_evict(). @seen: the inode that the caller
 * expects under the name; NULL: any. -ESTALE: another system has linked another inode there.
 * Without @exact the call also removes another inode if it is an unprotected file, that is, not a
 * directory, not immutable and not append-only.
 */
int sg_unlink_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		   const struct sg_iref *seen, bool exact, s64 now);
int sg_rmdir_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		  const struct sg_iref *seen, s64 now);
static inline int sg_unlink(struct sg_vol *vol, const struct sg_iref *dir, const char *name,
			    u32 len, s64 now)
{
	return sg_unlink_seen(vol, dir, name, len, NULL, false, now);
}
static inline int sg_rmdir(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
			   s64 now)
{
	return sg_rmdir_seen(vol, dir, name, len, NULL, now);
}
/**
 * struct sg_renamed - inodes that the caller expects under the two names; -ESTALE if they differ
 * @what: under the old name; @replaced: under the new name, NULL: none
 * @exact: replace only the inode @replaced. Otherwise the rename may replace any unprotected file.
 */
struct sg_renamed {
	const struct sg_iref *what, *replaced;
	bool exact;
};
/* Renames. @seen NULL: the caller expects no particular inodes. */
int sg_rename_seen(struct sg_vol *vol, const struct sg_iref *odir, const char *oname, u32 olen,
		   const struct sg_iref *ndir, const char *nname, u32 nlen, unsigned int flags,
		   const struct sg_new *whiteout, const struct sg_renamed *seen, s64 now);
static inline int sg_rename(struct sg_vol *vol, const struct sg_iref *odir, const char *oname,
			    u32 olen, const struct sg_iref *ndir, const char *nname, u32 nlen,
			    unsigned int flags, const struct sg_new *whiteout, s64 now)
{
	return sg_rename_seen(vol, odir, oname, olen, ndir, nname, nlen, flags, whiteout, NULL,
			      now);
}
/*
 * Calls @emit for each name with key >= *cookie, in key order, and advances *cookie. If @emit
 * returns false, the listing stops before that name. The caller adds "." and "..". Cookie 0 is the
 * start, and S64_MAX the end. A name's cookie is its key + 2, so that the caller can use 0 and 1.
 */
typedef bool (*sg_emit)(void *ctx, const char *name, u32 len, u64 ino, unsigned int type,
			u64 cookie);
int sg_readdir(struct sg_vol *vol, const struct sg_iref *dir, u64 *cookie, sg_emit emit, void *ctx);
/* Copies up to @len bytes of the target, without terminator; returns the length of the target. */
int sg_readlink(struct sg_vol *vol, const struct sg_iref *ref, char *buf, u32 len);

#endif
