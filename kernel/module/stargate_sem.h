/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores for other modules: what processes have by ioctls (uapi/semctl.h), with the
 * same errors, but that a signal ends a wait with -EINTR. Threads are known by themselves, kernel
 * threads too: who has locked unlocks, and what a thread has locked when it ends is left by the
 * dead. In process context, and nothing may be held that the volume's own work needs.
 */
#ifndef STARGATE_SEM_H
#define STARGATE_SEM_H

#include "uapi/semctl.h"

struct stargate_sem;

/**
 * stargate_sem_open() - opens an object, or makes it
 * @volume: where its volume is mounted, as the calling task sees it; it stays mounted meanwhile
 * @how: SG_IOC_SEM_OPEN; permissions are those of the calling task
 * Return: ERR_PTR(): -ENOENT also if nothing is mounted there, -ENODEV if it is no StargateFS.
 */
struct stargate_sem *stargate_sem_open(const char *volume, struct sg_ioc_sem_open *how);
/* SG_IOC_SEM_OP. */
int stargate_sem_op(struct stargate_sem *s, struct sg_ioc_sem_op *op);
void stargate_sem_close(struct stargate_sem *s);

#endif
