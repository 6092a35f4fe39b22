/* SPDX-License-Identifier: GPL-2.0 */
/* Locks of users: flock, fcntl. */
#ifndef SG_ENGINE_FILELOCK_H
#define SG_ENGINE_FILELOCK_H

#include "engine/inode.h"

/**
 * struct sg_userlock - a lock of a user: a requested lock, or a held one.
 * @kind: SG_USERLOCK_POSIX, _OFD, _FLOCK. The first two exclude each other; flock is separate.
 * @owner: a process or an open file; unique within this system and kind.
 * @start, @last: bytes; SG_USERLOCK_MAX is the last one. flock: all bytes.
 * @slot: of a holder: its system; -1: this system.
 * @follow: for sg_userlock_set(), may be NULL: called with @arg when the lock can be granted,
 *   before anything is stored and with the chain locked. If it fails, the request fails with its
 *   error, and the owner keeps its locks. It may allocate memory, but must not wait for anything
 *   else.
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
	u64 blocker, blocker_owner; /* the search found no circle through this lock */
};

/*
 * Takes a lock, or the part of it that the owner does not have yet, and changes the type of the
 * rest. Does not wait. -EAGAIN: *holder (may be NULL) is one of the holders that exclude the
 * request. With @wait the request then has a place in the queue: call again soon with the same
 * @wait, or give up. -EDEADLK: the request would wait for itself (POSIX). -ENOLCK: no room for more
 * locks. After -EAGAIN the owner has lost a flock of the other type. After any other error the
 * owner has the locks that it had before.
 */
int sg_userlock_set(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		    struct sg_userlock_wait *wait, struct sg_userlock *holder);
/*
 * @brief is for callers that hold locks for which other threads wait. With it, set() and clear()
 * wait for no other system, and do not search for circles. -EBUSY, -ENOBUFS: the call would have to
 * wait. Nothing has changed, except that a flock of the other type may be lost. The caller releases
 * its locks, waits with await() until the reason of @err is over, and calls again. For a waiting
 * request it calls deadlock(). -EDEADLK: the request would wait for itself, and has been given up.
 * Otherwise -EAGAIN.
 */
int sg_userlock_await(struct sg_vol *vol, const struct sg_iref *ref, int err);
int sg_userlock_deadlock(struct sg_vol *vol, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait);
/*
 * Ends the request after any answer of set(): it has no place in the queue any more, or loses it
 * when another system releases the chain. Waits for no other system.
 */
void sg_userlock_give_up(struct sg_vol *vol, const struct sg_iref *ref,
			 struct sg_userlock_wait *wait);
/*
 * Releases the range, of either type. -ENOLCK: this splits a lock, and there is no room for two
 * records.
 */
int sg_userlock_clear(struct sg_vol *vol, const struct sg_iref *ref,
		      const struct sg_userlock *range);
/*
 * For a process that cannot wait, after a brief clear() with -EBUSY. Once another system releases
 * the chain, this releases all of the owner's locks in the file (@range is the whole file), before
 * this system uses them for anything else. -ENOMEM: it does not.
 */
int sg_userlock_clear_later(struct sg_vol *vol, const struct sg_iref *ref,
			    const struct sg_userlock *range);
/*
 * Makes the releases that wait for their chains, as far as the chains are not locked. True: none is
 * left. sg_settle() calls it, and may wait for other systems. Therefore a thread of its own also
 * calls it, as soon as sg_vol.on_release() asks for it. With @wait it queues for each chain for
 * 20 ms: others may ask for the chain all the time. Otherwise it waits for no other system.
 */
bool sg_userlock_settle(struct sg_vol *vol, bool wait);
/* 0: the lock could be granted now; -EAGAIN: *holder excludes it. */
int sg_userlock_test(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		     struct sg_userlock *holder);

#endif
