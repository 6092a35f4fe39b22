/* SPDX-License-Identifier: GPL-2.0 */
/* Names: creating, linking, removing, renaming, reading directories. */
#ifndef SG_ENGINE_DIR_H
#define SG_ENGINE_DIR_H

#include "engine/inode.h"

struct sg_new {			/* what to create */
	u32 mode, uid, gid;
	u64 rdev;		/* device nodes */
	u32 flags;		/* SG_FL_* inherited */
	const char *target;	/* symlink */
	u32 target_len;
	s64 now;
	/* initial xattrs (inherited ACLs, labels): a payload of struct sg_xattr_entry, or NULL */
	const void *xattrs;
	u32 xattrs_len;
};

#define SG_RENAME_NOREPLACE	1u	/* as RENAME_*; WHITEOUT comes with @whiteout */
#define SG_RENAME_EXCHANGE	2u
#define SG_RENAME_WHITEOUT	4u

/* @type (as S_IFMT >> 12) may be NULL. *out tells the generation, too. */
int sg_lookup(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      struct sg_iref *out, unsigned int *type);
int sg_create(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      const struct sg_new *new, struct sg_iref *out);
/* An inode without a name (O_TMPFILE): owed to be freed until sg_link() gives it one. */
int sg_tmpfile(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out);
int sg_link(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
	    const char *name, u32 len, s64 now);
/*
 * Removes the name; the inode itself stays, owed, until sg_evict(). @seen: what the caller takes to
 * be under it; if another system has put something else there: -ESTALE. NULL: whatever is there.
 * Unless @exact, another file that nothing protects will do.
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
 * struct sg_renamed - what the caller takes to be under the two names; else -ESTALE
 * @what: under the old one; @replaced: under the new one, NULL: nothing
 * @exact: nor may another file be replaced than @replaced; else any that nothing protects may
 */
struct sg_renamed {
	const struct sg_iref *what, *replaced;
	bool exact;
};
/* @seen: NULL: whatever is there. */
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
 * Calls @emit for each name with key >= *cookie in key order; *cookie follows. @emit returns false
 * to stop before that name. "." and ".." are the caller's. Cookies: 0 begins; each name's own is
 * its key + 2 (so that 0 and 1 are free for the caller); at the end S64_MAX.
 */
typedef bool (*sg_emit)(void *ctx, const char *name, u32 len, u64 ino, unsigned int type,
			u64 cookie);
int sg_readdir(struct sg_vol *vol, const struct sg_iref *dir, u64 *cookie, sg_emit emit, void *ctx);
/* Copies up to @len bytes of the target, no terminator; returns its length. */
int sg_readlink(struct sg_vol *vol, const struct sg_iref *ref, char *buf, u32 len);

#endif
