/* SPDX-License-Identifier: GPL-2.0 */
/* Inodes: finding, attributes, opening, eviction. */
#ifndef SG_ENGINE_INODE_H
#define SG_ENGINE_INODE_H

#include "engine/volume.h"

struct sg_iref {
	u64 ino;
	u64 off;		/* of the struct sg_inode in the volume */
	/*
	 * If not 0, selects one of the files that have had this inode number. A change to another
	 * file fails with -ESTALE.
	 */
	u64 generation;
};

struct sg_attr {
	u64 ino, size, blocks, entries, special, seq;
	u32 mode, nlink, uid, gid, generation, flags;
	s64 mtime, ctime, atime, btime;
	bool has_xattr;
};

/* Fields for sg_setattr(). */
#define SG_SET_MODE	(1u << 0)
#define SG_SET_UID	(1u << 1)
#define SG_SET_GID	(1u << 2)
#define SG_SET_MTIME	(1u << 3)
#define SG_SET_CTIME	(1u << 4)
#define SG_SET_ATIME	(1u << 5)
#define SG_SET_FLAGS	(1u << 6)
#define SG_SET_BTIME	(1u << 7)
#define SG_SET_GENERATION (1u << 8)

int sg_iref(const struct sg_vol *vol, u64 ino, struct sg_iref *ref); /* -ESTALE: no such record */
/* Reads the attributes as a consistent snapshot. Returns -ESTALE if the record is free. */
int sg_getattr(struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr);
u64 sg_seq(const struct sg_vol *vol, const struct sg_iref *ref); /* change counter, even */
int sg_setattr(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	       const struct sg_attr *attr);
/*
 * Waits until no thread holds the inode's lock, or returns -EINTR. For a caller that could not wait
 * for that lock (sg_vol.gives_way), and has released the locks for which other threads wait.
 */
int sg_wait_inode(struct sg_vol *vol, const struct sg_iref *ref);
/* Sets only times, for hot paths. Each time is one word, so this needs no journal. */
int sg_touch(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	     s64 mtime, s64 ctime, s64 atime);
/*
 * Declares that this system uses the inode, with any number of openers. An inode without links then
 * remains until sg_close_inode(). -ESTALE: the inode no longer exists, or has no links. @again:
 * accept an inode without links, because this system made it or had it open before.
 */
int sg_open_inode(struct sg_vol *vol, const struct sg_iref *ref, bool again);
/*
 * Closes the last opener, or ends the use of an inode that sg_tmpfile() made. Returns true if the
 * inode has no links; the caller must then call sg_evict().
 */
bool sg_close_inode(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Declares that processes of this system map pages of the file, or no longer do (@holes: map zero
 * pages for its holes). A declaration ends with a full fence. After that fence the caller may read
 * the table, and map.
 */
void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on);
/*
 * Waits until no process of another system maps the old pages, at most 2 s. Called after pages have
 * been cut out of the file (@holes: after its holes have been filled). The caller must hold nothing
 * that quiesce waits for.
 */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes);
/*
 * Reports whether a system may be about to replace pages of the file. A caller that has just set
 * its bit by sg_set_mapper() calls this before it reads the table. If the result is true, the
 * caller waits by sg_wait_replaced() until the pages are replaced. That wait can end with -EINTR,
 * as any wait for the inode's lock.
 */
bool sg_is_replacing(const struct sg_vol *vol, const struct sg_iref *ref);
int sg_wait_replaced(struct sg_vol *vol, const struct sg_iref *ref);
/* Grows by 1 whenever pages leave the file's table. */
u64 sg_cuts(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Declares that this system does not use the inode any more. Frees the inode if it has no links and
 * no other system has it open.
 */
int sg_evict(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * As sg_evict(), but waits for no other system, for callers that cannot be killed (memory reclaim,
 * exits). Returns -EBUSY or -ENOSPC if it would have to wait. In this case sg_settle() of the
 * system that has the deferred inode frees the inode.
 */
int sg_evict_try(struct sg_vol *vol, const struct sg_iref *ref);

#endif
