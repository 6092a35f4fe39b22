/* SPDX-License-Identifier: GPL-2.0 */
/* Inodes: finding, attributes, opening, eviction. */
#ifndef SG_ENGINE_INODE_H
#define SG_ENGINE_INODE_H

#include "engine/volume.h"

struct sg_iref {
	u64 ino;
	u64 off;		/* of its struct sg_inode in the volume */
	/*
	 * When not 0: which of the files that have had this number. Changes to another one are
	 * refused with -ESTALE.
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
/* A consistent snapshot. -ESTALE when the record is free. */
int sg_getattr(struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr);
u64 sg_seq(const struct sg_vol *vol, const struct sg_iref *ref); /* change counter, even */
int sg_setattr(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	       const struct sg_attr *attr);
/*
 * For who could not wait for the inode's lock (sg_vol.gives_way), and has let go of what others
 * wait for: waits until nobody has it, or -EINTR.
 */
int sg_wait_inode(struct sg_vol *vol, const struct sg_iref *ref);
/* Times only, without the journal: each is one word. For the hot paths. */
int sg_touch(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	     s64 mtime, s64 ctime, s64 atime);
/*
 * This system uses the inode from now on, by as many openers as it likes: without links it stays
 * until sg_close(). -ESTALE: it is gone, or has no links (@again: it may have none, because we
 * had it open before, or made it).
 */
int sg_open_inode(struct sg_vol *vol, const struct sg_iref *ref, bool again);
/* The last of them is gone. True: it has no links, so that sg_evict() is due. */
bool sg_close_inode(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Processes of this system have pages of the file mapped (@holes: have zeroes mapped where it has
 * holes), or have not any more. Setting ends with a full fence: then look what is there, then map.
 */
void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on);
/*
 * Pages have been cut out of the file (@holes: holes of it filled): waits until no other system's
 * processes see what was there before, at most 2 s. Nothing that quiesce waits for may be held.
 */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes);
/* +1 whenever pages are taken out of the file's table. */
u64 sg_cuts(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * This system has no use for the inode any more. Frees it if it has no links and no other system
 * has it open.
 */
int sg_evict(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * The same, for callers that nobody can kill (memory reclaim, exits): it waits for no other system.
 * -EBUSY, -ENOSPC: not without that; the system that owes the inode frees it, by sg_settle().
 */
int sg_evict_try(struct sg_vol *vol, const struct sg_iref *ref);

#endif
