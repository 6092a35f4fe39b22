/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores in the module: what its files share. docs/semaphores.md, section 7.
 *
 *   sem_file.c	 the file .stargate/semaphores: objects by name, who may have them, mapping
 *   sem_call.c	 what is done with an object, for processes and for other modules
 *   sem_thread.c threads that own locks, and when they are gone; the one that listens
 */
#ifndef SGFS_SEM_PRIV_H
#define SGFS_SEM_PRIV_H

#include "uapi/semctl.h"
#include "stargatefs.h"

/**
 * struct sgfs_sem - what a descriptor of the file has
 * @lock: gives it its object, once; @bound: it has. From then on all of it but @sem.reads stays.
 * @look: opened to look only; @mapped: its words may be mapped by it. @owns: what is locked by it
 * is its own (SG_SEM_BY_HANDLE), as @self; @busy: bit 0: somebody does that.
 */
struct sgfs_sem {
	struct sgfs *fs;
	struct mutex lock;
	bool bound, look, mapped, owns;
	unsigned long busy;
	struct sg_sem sem;
	struct sg_sem_caller self;
};

/* sem_file.c */
int sgfs_sem_bind(struct file *file, struct sg_ioc_sem_open *how);

/* sem_call.c: -EINTR by a signal. */
int sgfs_sem_do(struct sgfs_sem *s, struct sg_ioc_sem_op *op);
/* -EAGAIN: nothing is done. */
int sgfs_sem_at_once(struct sgfs_sem *s, unsigned int op);

/* sem_thread.c: the calling thread, made known if it is not; or an error. */
struct sg_sem_caller *sgfs_sem_me(struct sgfs *fs);
/* Threads that are gone give up what they had. */
void sgfs_sem_reap(struct sgfs *fs);
/* From now on somebody listens for rings. */
int sgfs_sem_listen(struct sgfs *fs);

#endif
