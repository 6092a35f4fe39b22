/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module that uses shared semaphores as any other one can: by stargate_sem.h and nothing else.
 *
 *   main.c	the file /proc/sem_user, in which a test writes what is to be done
 *   threads.c	kernel threads that have locks
 */
#ifndef SEM_USER_H
#define SEM_USER_H

#include <linux/ktime.h>
#include "stargate_sem.h"

/* One operation, as the calling thread; @ms: for all that waits. */
static inline int su_do(struct stargate_sem *sem, u32 what, u64 ms, u64 value)
{
	struct sg_ioc_sem_op op = {
		.op = what, .value = value, .until = ms ? ktime_get_ns() + ms * NSEC_PER_MSEC : 0,
	};

	return stargate_sem_op(sem, &op);
}

/* --- threads.c --- */
struct su_holder;
/* A thread that has locked it: the mutex, or the reader-writer lock for writing, by now. */
struct su_holder *su_hold(struct stargate_sem *sem, bool write, u64 ms);
/* It ends; after it has unlocked it, or not. What it said to unlocking. */
int su_let_go(struct su_holder *h, bool unlock);
/* So many threads lock the mutex @rounds times each, and add 1 to two words of a file. */
int su_count(struct stargate_sem *sem, unsigned int threads, u64 rounds, const char *path);

#endif
