/* SPDX-License-Identifier: GPL-2.0 */
/* Locks between systems (D6). */
#ifndef SG_LOCK_H
#define SG_LOCK_H

#include "base/base.h"

/*
 * The order of locks: slot_lock, freeze_lock and grow_lock come first. A thread waits for slot_lock
 * or freeze_lock with no other lock held, and for grow_lock with at most freeze_lock held. Then
 * follow rename_lock, inode locks by ascending inode number, a transaction area, inode_lock, and
 * chunk locks. A thread waits for a chunk lock only if it holds no other one. System inodes (number
 * 0) come before other inodes. A new inode's lock has no place in this order: a thread that holds
 * the area's lock only tries it (inode_record.c). The lock of the semaphores' file is taken with no
 * other lock held. No lock is taken before or after a barrier's lock.
 *
 * Errors mean that the lock was not taken. -EINTR: the waiting thread is being killed, or gives
 * way. -EIO: this system has been fenced. -EBUSY: this system is leaving (sg_vol.hurry) and the
 * lock was not free in time, or the wait was too long while it joined.
 */
#define SG_HELD_BITS	13
/* size of sg_vol.held, in which few locks share a cache line */
#define SG_HELD	(1u << SG_HELD_BITS)
int sg_lock(struct sg_vol *vol, u64 off);
int sg_lock_soon(struct sg_vol *vol, u64 off);	/* or -EBUSY, for callers that can try again */
/*
 * As sg_lock(), but returns -EBUSY after a very short wait: for callers that hold locks for which
 * other threads wait.
 */
int sg_lock_brief(struct sg_vol *vol, u64 off);
/* killable; -EBUSY: the lock was not free in this time */
int sg_lock_for(struct sg_vol *vol, u64 off, u64 ns);
/*
 * For threads that must not give up when they are killed: never returns -EINTR; returns -EBUSY
 * after minutes.
 */
int sg_lock_sure(struct sg_vol *vol, u64 off);
bool sg_trylock(struct sg_vol *vol, u64 off);
/* Tries the lock of a record that its holder may be filling; fails while that holder lapses. */
bool sg_trylock_filled(struct sg_vol *vol, u64 off);
void sg_unlock(struct sg_vol *vol, u64 off);
/*
 * Reports whether a live system holds the lock, as far as is known; or whether it is a chunk's lock
 * whose holder lapses.
 */
bool sg_is_locked(const struct sg_vol *vol, u64 off);
/* Lock and unlock two inodes, in order; @b may be NULL or the same inode. */
int sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
/* Lock and unlock up to four inodes; duplicates and NULL are allowed. */
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

/**
 * struct sg_long_wait - a wait of a thread for another system
 * @start: when the wait began. @counted: the wait is long, and counts in sg_vol.stuck.
 */
struct sg_long_wait {
	u64 start;
	bool counted;
};
/* Called at each attempt. After 50 ms the wait counts, until sg_long_wait_end(). */
void sg_long_wait_look(struct sg_vol *vol, struct sg_long_wait *w, u64 now);
static inline void sg_long_wait_end(struct sg_vol *vol, struct sg_long_wait *w)
{
	if (w->counted)
		sg_add64(&vol->stuck, -1ULL);
	w->counted = false;
}

/* Reports whether the holder's slot has been recovered; before that even a dead holder counts. */
bool sg_holder_gone(const struct sg_vol *vol, u64 word);
/*
 * Reports whether the holder was fenced for silence and recovered, but may still store (the lapse).
 */
bool sg_holder_lapses(const struct sg_vol *vol, u64 word);
/* Recovers in this thread the holder that this lock word names, if it is dead. */
void sg_help(struct sg_vol *vol, u64 lock_word);

/*
 * Sets a feature bit of sg_super.ro_compat, so that software without the feature does not mount the
 * volume for writing. -EOPNOTSUPP: the software of a system that has joined lacks the feature.
 * -EBUSY: the volume is growing.
 */
int sg_feature_allow(struct sg_vol *vol, u64 feature);

#endif
