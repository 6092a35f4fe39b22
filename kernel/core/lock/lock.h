/* SPDX-License-Identifier: GPL-2.0 */
/* Locks between systems (D6). */
#ifndef SG_LOCK_H
#define SG_LOCK_H

#include "base/base.h"

/*
 * Order: rename_lock, inode locks by ascending inode number, a transaction area, inode_lock,
 * chunk locks. A chunk lock is waited for only when no other chunk lock is held. slot_lock,
 * freeze_lock and then grow_lock are waited for with nothing else held; system inodes (number 0)
 * come before others.
 * A new inode's lock is only tried, with the area's held (inode_record.c): it has no place here.
 * That of semaphores is locked with nothing else held; a barrier's lock with nothing before or
 * behind it.
 *
 * -EINTR: not taken, since who waits is to die, or to give way. -EIO: nor by one who has been taken
 * for dead.
 * -EBUSY: nor by one in a hurry (sg_vol.hurry), or who has waited for long while joining.
 */
#define SG_HELD	1024	/* of sg_vol.held */
int sg_lock(struct sg_vol *vol, u64 off);
int sg_lock_soon(struct sg_vol *vol, u64 off);	/* or -EBUSY, for those who can come again */
/* Or -EBUSY at once, or nearly so, for callers that hold what other threads wait for. */
int sg_lock_brief(struct sg_vol *vol, u64 off);
int sg_lock_for(struct sg_vol *vol, u64 off, u64 ns);	/* killable; -EBUSY: not in this time */
/* For who is to die, too: never -EINTR; -EBUSY after minutes. */
int sg_lock_sure(struct sg_vol *vol, u64 off);
bool sg_trylock(struct sg_vol *vol, u64 off);
void sg_unlock(struct sg_vol *vol, u64 off);
bool sg_is_locked(const struct sg_vol *vol, u64 off);	/* by one who lives, as far as is known */
/* Two inodes at once, in order; b may be NULL or the same. */
int sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
/* Up to four, duplicates and NULL allowed. */
int sg_lock_four(struct sg_vol *vol, const struct sg_iref *const v[4]);
void sg_unlock_four(struct sg_vol *vol, const struct sg_iref *const v[4]);

static inline int sg_ilock(struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_lock(vol, ref->off + offsetof(struct sg_inode, lock));
}

static inline void sg_iunlock(struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_unlock(vol, ref->off + offsetof(struct sg_inode, lock));
}

/* The holder of the lock that this word names is dead: recovered here and now. */
void sg_help(struct sg_vol *vol, u64 lock_word);

#endif
