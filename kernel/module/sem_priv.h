/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores in the module: declarations that its files share. See docs/semaphores.md,
 * section 7.
 *
 *   sem_file.c	 the file .stargate/semaphores: objects by name, permissions, mapping
 *   sem_poll.c	 poll(), for rings
 *   sem_call.c	 operations on an object, for processes and for other modules
 *   sem_thread.c threads that own locks, and their end; the thread that polls the bell
 */
#ifndef SGFS_SEM_PRIV_H
#define SGFS_SEM_PRIV_H

#include "uapi/semctl.h"
#include "stargatefs.h"

/**
 * struct sgfs_sem - the state of a descriptor of the file
 * @lock: guards the assignment of the object, which happens once; @bound: it has an object. From
 *   then on everything except @sem.reads and a ring's @sem.cell is constant.
 * @look: opened only to read; @mapped: the descriptor may map its words. @owns: it owns what it
 *   locks (SG_SEM_BY_HANDLE), as @self; @busy: bit 0: an operation as @self runs.
 * @watch: of poll(), for records and for room; or NULL.
 */
struct sgfs_sem {
	struct sgfs *fs;
	struct mutex lock;
	bool bound, look, mapped, owns;
	unsigned long busy;
	struct sg_sem sem;
	struct sg_sem_caller self;
	struct sgfs_sem_watch *watch[2];
};

/* sem_file.c */
int sgfs_sem_bind(struct file *file, struct sg_ioc_sem_open *how);

/* sem_call.c: executes an operation; -EINTR after a signal. */
int sgfs_sem_do(struct sgfs_sem *s, struct sg_ioc_sem_op *op);
/* executes an operation without waiting; -EAGAIN: nothing has been done */
int sgfs_sem_at_once(struct sgfs_sem *s, unsigned int op);

/* sem_poll.c */
__poll_t sgfs_sem_poll(struct file *file, struct poll_table_struct *pt);
void sgfs_sem_poll_end(struct sgfs_sem *s);

/* sem_thread.c: returns the calling thread, after registering it if necessary; or an error. */
struct sg_sem_caller *sgfs_sem_me(struct sgfs *fs);
/* Releases all that ended threads owned. */
void sgfs_sem_reap(struct sgfs *fs);
/* Starts the thread that polls this system's bell. */
int sgfs_sem_listen(struct sgfs *fs);

#endif
