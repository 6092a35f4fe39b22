/* SPDX-License-Identifier: GPL-2.0 */
/* Inodes: finding, attributes, opening, eviction. */
#ifndef SG_ENGINE_INODE_H
#define SG_ENGINE_INODE_H

#include "engine/volume.h"

struct sg_iref {
	u64 ino;
	u64 off;		/* of the struct sg_inode in the volume */
	/*
	 * If not 0: identifies one of the files that have had this number. Changes to another file
	 * are refused with -ESTALE.
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
/* A consistent snapshot. -ESTALE: the record is free. */
int sg_getattr(struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr);
u64 sg_seq(const struct sg_vol *vol, const struct sg_iref *ref); /* change counter, even */
int sg_setattr(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	       const struct sg_attr *attr);
/*
 * For a caller that could not wait for the inode's lock (sg_vol.gives_way). It has meanwhile
 * released the locks for which other threads wait. Waits until no thread holds the inode's lock, or
 * -EINTR.
 */
int sg_wait_inode(struct sg_vol *vol, const struct sg_iref *ref);
/* Times only, without the journal: each is one word. For hot paths. */
int sg_touch(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	     s64 mtime, s64 ctime, s64 atime);
/*
 * From now on this system uses the inode, with any number of openers: without links it stays until
 * sg_close_inode(). -ESTALE: the inode is gone, or has no links. @again: no links are allowed,
 * because this system had it open before, or made it.
 */
int sg_open_inode(struct sg_vol *vol, const struct sg_iref *ref, bool again);
/*
 * Closes the last opener, or ends the use of an inode that sg_tmpfile() made. True: the inode has
 * no links, so that the caller has to sg_evict() it.
 */
bool sg_close_inode(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Processes of this system have pages of the file mapped, or no longer have (@holes: have zero
 * pages mapped for its holes). Setting ends with a full fence: only then may the caller look at the
 * table, and map.
 */
void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on);
/*
 * Pages have been cut out of the file (@holes: its holes have been filled). Waits until no process
 * of another system sees the old pages, at most 2 s. The caller must hold nothing that quiesce
 * waits for.
 */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes);
/*
 * A system may be about to replace pages of the file. A caller that has just set its bit by
 * sg_set_mapper() calls this before it reads the table. If it is true, the caller waits by
 * sg_wait_replaced(), which ends when the pages are replaced, or with -EINTR, as any wait for the
 * inode's lock.
 */
bool sg_is_replacing(const struct sg_vol *vol, const struct sg_iref *ref);
int sg_wait_replaced(struct sg_vol *vol, const struct sg_iref *ref);
/* Grows by 1 whenever pages leave the file's table. */
u64 sg_cuts(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * This system does not use the inode any more. Frees it if it has no links and no other system has
 * it open.
 */
int sg_evict(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * As sg_evict(), for callers that cannot be killed (memory reclaim, exits): it waits for no other
 * system. -EBUSY, -ENOSPC: it would have to wait. Then the system that has the deferred inode frees
 * it, in sg_settle().
 */
int sg_evict_try(struct sg_vol *vol, const struct sg_iref *ref);

#endif
