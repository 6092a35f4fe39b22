/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module that uses shared semaphores like any other module, only through stargate_sem.h.
 *
 *   main.c	the file /proc/sem_user, to which a test writes operations
 *   threads.c	kernel threads that hold locks
 */
#ifndef SEM_USER_H
#define SEM_USER_H

#include <linux/ktime.h>
#include "stargate_sem.h"

/* Runs one operation by the calling thread. @ms: the time limit of operations that wait. */
static inline int su_do(struct stargate_sem *sem, u32 what, u64 ms, u64 value)
{
	struct sg_ioc_sem_op op = {
		.op = what, .value = value, .until = ms ? ktime_get_ns() + ms * NSEC_PER_MSEC : 0,
	};

	return stargate_sem_op(sem, &op);
}

/* --- threads.c --- */
struct su_holder;
/*
 * Starts a thread that locks the mutex, or write-locks the reader-writer lock. On return the thread
 * holds the lock.
 */
struct su_holder *su_hold(struct stargate_sem *sem, bool write, u64 ms);
/* Ends the thread, after or without an unlock. Returns the result of the unlock. */
int su_let_go(struct su_holder *h, bool unlock);
/*
 * Starts @threads threads, each of which locks the mutex @rounds times, and adds 1 to two words of
 * a file.
 */
int su_count(struct stargate_sem *sem, unsigned int threads, u64 rounds, const char *path);

#endif
