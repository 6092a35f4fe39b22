/* SPDX-License-Identifier: GPL-2.0 */
/* Locks of users: flock, fcntl. */
#ifndef SG_ENGINE_FILELOCK_H
#define SG_ENGINE_FILELOCK_H

#include "engine/inode.h"

/**
 * struct sg_userlock - a lock of a user, either requested or held.
 * @kind: SG_USERLOCK_POSIX, _OFD, _FLOCK. The first two exclude each other; flock is separate.
 * @owner: a process or an open file; unique within this system and kind.
 * @start, @last: bytes; SG_USERLOCK_MAX is the last one. flock: all bytes.
 * @slot: for a holder: the slot of its system; -1: this system.
 * @follow: for sg_userlock_set(), may be NULL: called with @arg when the lock can be granted,
 * before the engine stores anything and with the chain locked. If it fails, the request fails with
 * the same error, and the owner keeps its locks. It may allocate memory, but must not wait for
 * anything else.
 */
struct sg_userlock {
	unsigned int kind;
	bool exclusive;
	u32 pid;
	u64 owner, start, last;
	int slot;
	int (*follow)(void *arg);
	void *arg;
	bool brief;		/* see sg_userlock_await() */
};
#define SG_USERLOCK_MAX		0x7fffffffffffffffULL

/* A waiting request; all zeroes at first. Private to the engine. */
struct sg_userlock_wait {
	u64 off, head, ticket;	/* its record */
	u64 since;
	u64 by, by_owner;	/* the lock that excludes this request, or 0 */
	u64 blocker, blocker_owner; /* the search found no deadlock through this lock */
};

/*
 * Takes a lock, or the part that the owner does not have yet, and changes the type of the rest. The
 * call does not wait. -EAGAIN: *holder (may be NULL) is one of the holders that exclude the
 * request. With @wait the request is then queued: the caller calls again soon with the same @wait,
 * or gives up. -EDEADLK: the wait would be a deadlock (POSIX). -ENOLCK: no room for more locks.
 * After -EAGAIN the owner has lost a flock of the other type. After any other error the owner has
 * the locks that it had before.
 */
int sg_userlock_set(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		    struct sg_userlock_wait *wait, struct sg_userlock *holder);
/*
 * @brief is for callers that hold locks for which other threads wait. With @brief, set() and
 * clear() wait for no other system, and do not search for deadlocks. -EBUSY, -ENOBUFS: the call
 * would have to wait. Nothing has changed, except that a flock of the other type may be lost. The
 * caller releases its locks, waits with await() until the reason for @err has ended, and calls
 * again. For a waiting request it then calls deadlock(). -EDEADLK: the wait would be a deadlock, so
 * the request has been withdrawn. Otherwise deadlock() returns -EAGAIN.
 */
int sg_userlock_await(struct sg_vol *vol, const struct sg_iref *ref, int err);
int sg_userlock_deadlock(struct sg_vol *vol, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait);
/*
 * Withdraws the request after any result of set(). The request leaves the queue, or leaves it as
 * soon as another system unlocks the chain. The call waits for no other system.
 */
void sg_userlock_give_up(struct sg_vol *vol, const struct sg_iref *ref,
			 struct sg_userlock_wait *wait);
/*
 * Releases the range, of either type. -ENOLCK: the release would split a lock, and there is no room
 * for two records.
 */
int sg_userlock_clear(struct sg_vol *vol, const struct sg_iref *ref,
		      const struct sg_userlock *range);
/*
 * For a process that cannot wait, after a brief clear() has returned -EBUSY. Records the release of
 * all of the owner's locks in the file (@range is the complete file). The engine makes that release
 * when another system unlocks the chain, before any other use of the locks in this system. -ENOMEM:
 * the release is not recorded.
 */
int sg_userlock_clear_later(struct sg_vol *vol, const struct sg_iref *ref,
			    const struct sg_userlock *range);
/*
 * Makes the recorded releases whose chains are not locked. True: no release remains. sg_settle()
 * calls it, but may wait for other systems. Therefore a separate thread also calls it after each
 * sg_vol.on_release(). With @wait it queues for each chain for 20 ms, because other systems may
 * request the chain all the time. Without @wait it waits for no other system.
 */
bool sg_userlock_settle(struct sg_vol *vol, bool wait);
/* Tests a lock without taking it. 0: it could be granted now; -EAGAIN: *holder excludes it. */
int sg_userlock_test(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		     struct sg_userlock *holder);

#endif
