/* SPDX-License-Identifier: GPL-2.0 */
/* Locks of users: flock, fcntl. */
#ifndef SG_ENGINE_FILELOCK_H
#define SG_ENGINE_FILELOCK_H

#include "engine/inode.h"

/**
 * struct sg_userlock - a lock of a user: one that is wanted, or one that somebody holds.
 * @kind: SG_USERLOCK_POSIX, _OFD, _FLOCK. The first two exclude each other; flock is by itself.
 * @owner: who it is, within this system and kind: a process, an open file.
 * @start, @last: bytes; SG_USERLOCK_MAX is the last there is. flock: all of them.
 * @slot: of a holder: its system; -1: this one.
 * @follow: of sg_userlock_set(), may be NULL: called with @arg when the lock can be had, before
 *	anything is stored and with the chain locked. An error of it is that of the request, and the
 *	owner keeps what it had. It may seek memory, but not wait for anything else.
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

/* A request that waits; all zeroes at first. Private to the engine. */
struct sg_userlock_wait {
	u64 off, head, ticket;	/* its record */
	u64 since;
	u64 by, by_owner;	/* the lock that is in the way, or 0 */
	u64 blocker, blocker_owner; /* no circle leads through that one */
};

/*
 * Takes a lock, or what of it the owner does not have yet, and changes what it has otherwise. Does
 * not wait: -EAGAIN, and *holder (may be NULL) is one of those who are in the way. With @wait the
 * request has its place in the queue then: call again soon, with the same @wait, or give up.
 * -EDEADLK: would wait for itself (POSIX). -ENOLCK: no room for more locks.
 * -EAGAIN: a flock of the other type that the owner held is lost. After any other error the owner
 * has what it had.
 */
int sg_userlock_set(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		    struct sg_userlock_wait *wait, struct sg_userlock *holder);
/*
 * With @brief, for who holds what other threads wait for, set() and clear() wait for no other
 * system, and look for no circle. -EBUSY, -ENOBUFS: not without waiting; nothing has changed, but
 * that a flock of the other type may be lost. The caller lets go of what it holds, waits by await()
 * until the reason of @err is over (@sure: as clear() does), and comes again. For a request that
 * waits it calls deadlock(): -EDEADLK, it would wait for itself, and is given up; or -EAGAIN.
 */
int sg_userlock_await(struct sg_vol *vol, const struct sg_iref *ref, int err, bool sure);
int sg_userlock_deadlock(struct sg_vol *vol, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait);
/* Whatever set() has answered last: the request is over, and has no place in the queue. */
void sg_userlock_give_up(struct sg_vol *vol, const struct sg_iref *ref,
			 struct sg_userlock_wait *wait);
/* Gives up the range, of either type. -ENOLCK: it splits a lock, and there is no room for two. */
int sg_userlock_clear(struct sg_vol *vol, const struct sg_iref *ref,
		      const struct sg_userlock *range);
/* 0: could be had now; -EAGAIN: *holder is in the way. */
int sg_userlock_test(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		     struct sg_userlock *holder);

#endif
