/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores for other modules: the operations that processes have by ioctls
 * (uapi/semctl.h), with the same errors. One difference: a signal ends a wait with -EINTR. Each
 * thread is its own owner, also a kernel thread: the thread that has locked must unlock. A lock
 * that a thread still holds when it ends counts as a lock of a dead owner. Call these functions in
 * process context. Hold no lock that operations on the volume take, such as an inode's lock.
 */
#ifndef STARGATE_SEM_H
#define STARGATE_SEM_H

#include "uapi/semctl.h"

struct stargate_sem;

/**
 * stargate_sem_open() - open an object, or create it
 * @volume: the mount point of its volume, as the calling task sees it; it stays mounted meanwhile
 * @how: SG_IOC_SEM_OPEN; permissions are those of the calling task
 * Return: ERR_PTR(): -ENOENT also if nothing is mounted there, -ENODEV if it is no StargateFS.
 */
struct stargate_sem *stargate_sem_open(const char *volume, struct sg_ioc_sem_open *how);
/* SG_IOC_SEM_OP. */
int stargate_sem_op(struct stargate_sem *s, struct sg_ioc_sem_op *op);
void stargate_sem_close(struct stargate_sem *s);

#endif
