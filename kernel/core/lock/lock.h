/* SPDX-License-Identifier: GPL-2.0 */
/* Locks between systems (D6). */
#ifndef SG_LOCK_H
#define SG_LOCK_H

#include "base/base.h"

/*
 * slot_lock, freeze_lock and grow_lock come first. A thread waits for slot_lock or freeze_lock with
 * no other lock held, and for grow_lock with at most freeze_lock held. Then the order is:
 * rename_lock, inode locks by ascending inode number, a transaction area, inode_lock, chunk locks.
 * A thread waits for a chunk lock only if it holds no other one. System inodes (number 0) come
 * before other inodes. A new inode's lock has no place in this order: it is only tried, with the
 * area's lock held (inode_record.c). The lock of the semaphores' file is taken with no other lock
 * held. No lock is taken before or after a barrier's lock.
 *
 * -EINTR: not taken, because the waiting thread is being killed, or gives way. -EIO: not taken,
 * because this system has been fenced. -EBUSY: not taken in time, because this system is leaving
 * (sg_vol.hurry), or has waited too long while joining.
 */
#define SG_HELD_BITS	13
#define SG_HELD	(1u << SG_HELD_BITS)	/* size of sg_vol.held: few locks share a line there */
int sg_lock(struct sg_vol *vol, u64 off);
int sg_lock_soon(struct sg_vol *vol, u64 off);	/* or -EBUSY, for callers that can try again */
/*
 * As sg_lock(), but returns -EBUSY almost at once: for callers that hold locks for which other
 * threads wait.
 */
int sg_lock_brief(struct sg_vol *vol, u64 off);
int sg_lock_for(struct sg_vol *vol, u64 off, u64 ns);	/* killable; -EBUSY: not in this time */
/* For threads that must not give up when they are killed: never -EINTR; -EBUSY after minutes. */
int sg_lock_sure(struct sg_vol *vol, u64 off);
bool sg_trylock(struct sg_vol *vol, u64 off);
/* Of a record that its holder may be filling: not while that holder lapses. */
bool sg_trylock_filled(struct sg_vol *vol, u64 off);
void sg_unlock(struct sg_vol *vol, u64 off);
/* By a live system, as far as is known; or it is a chunk's lock, and the holder lapses. */
bool sg_is_locked(const struct sg_vol *vol, u64 off);
/* Two inodes at once, in order; @b may be NULL or the same inode. */
int sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
/* Up to four inodes; duplicates and NULL are allowed. */
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
 * @start: when it began. @counted: it has been long, and is counted in sg_vol.stuck.
 */
struct sg_long_wait {
	u64 start;
	bool counted;
};
/* At each look. After 50 ms the wait counts, until sg_long_wait_end(). */
void sg_long_wait_look(struct sg_vol *vol, struct sg_long_wait *w, u64 now);
static inline void sg_long_wait_end(struct sg_vol *vol, struct sg_long_wait *w)
{
	if (w->counted)
		sg_add64(&vol->stuck, -1ULL);
	w->counted = false;
}

/* A holder counts until its slot has been recovered, even if it is dead. */
bool sg_holder_gone(const struct sg_vol *vol, u64 word);
/* The holder was fenced for its silence and recovered, and may still store (the lapse). */
bool sg_holder_lapses(const struct sg_vol *vol, u64 word);
/* The holder that this lock word names is dead: recovers it in this thread. */
void sg_help(struct sg_vol *vol, u64 lock_word);

#endif
