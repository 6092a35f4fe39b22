/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * Shared semaphores as processes ask for them: the ioctls of SG_SEM_FILE, below the root of a
 * mounted volume (docs/semaphores.md). Programs may include this folder alone.
 *
 * Each open() of that file gives a descriptor that can be given one object (SG_IOC_SEM_OPEN). It
 * has the object open then, and as long as it is mapped; one page at offset 0, shared, of an object
 * that is SG_SEM_MAPPED and was opened for writing, is the page of its words. Threads are known by
 * themselves: what a thread has locked is given up, as left by the dead, when it ends, however that
 * is, or executes another program. A descriptor can own what is locked by it instead, for programs
 * whose threads come and go beneath what they do (SG_SEM_BY_HANDLE). A mapping is not inherited by
 * fork().
 *
 * Everything that is reserved is 0, or EINVAL. What the errors mean is said with each of them.
 */
#ifndef SG_SEMCTL_H
#define SG_SEMCTL_H

#include "magic.h"
#include "semtype.h"
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define SG_SEM_FILE	".stargate/semaphores"
#define SG_SEM_NAME_ROOM 256	/* a name of 1 to 255 bytes, without slashes; then zeroes */

/* How an object is opened. */
#define SG_SEM_CREATE	(1u << 0)	/* made, if there is none of that name */
#define SG_SEM_EXCL	(1u << 1)	/* with SG_SEM_CREATE: EEXIST if there is one */
#define SG_SEM_LOOK	(1u << 2)	/* to read and wait for counts: read permission will do */
#define SG_SEM_BY_KERNEL (1u << 3)	/* it is not to be mapped: the kernel counts readers, too */
#define SG_SEM_BY_HANDLE (1u << 4)	/* the descriptor is the owner, by whichever thread */
#define SG_SEM_HOW_KNOWN 31u

/**
 * struct sg_ioc_sem_open - the descriptor gets an object
 * @name: of it.
 * @type: SG_SEM_MUTEX, ...; 0, when none is made: any. Then: what it is.
 * @how: SG_SEM_CREATE, ...
 * @flags: when it is made: SG_SEM_RECURSIVE, SG_SEM_MAPPED. Then: what it has.
 * @life: when it is made: 0: until it is removed by name; 1: until nobody has it open.
 * @mode: when it is made: permissions, less the umask.
 * @cell: then: which word of the page this process counts its readers in (SG_SEM_CELL_FIRST or
 *	more); 0: it asks the kernel.
 * @initial: when it is made: of a semaphore its value, of a barrier for how many it is.
 *
 * ENOENT: there is none. EEXIST. EINVAL: a name that no object can have, another type, or nonsense.
 * ENAMETOOLONG. EACCES: not by its owner and mode; or, to make it, for who may not make files in
 * the root of the volume. EBUSY: the descriptor has one already. ENOSPC: of the volume, or for
 * names like this one. EUCLEAN: damaged, as the log says. EROFS: the volume is read-only. EIO: this
 * system has been declared dead. With SG_SEM_BY_HANDLE EAGAIN: too many owners here.
 */
struct sg_ioc_sem_open {
	char name[SG_SEM_NAME_ROOM];
	uint32_t type, how, flags, life, mode, cell;
	uint64_t initial;
	uint64_t reserved[2];
};
#define SG_IOC_SEM_OPEN		_IOWR(SG_IOC_MAGIC, 16, struct sg_ioc_sem_open)

/*
 * Who owns in words what is locked: SG_SEMW_ID() of the calling thread, by any such descriptor; of
 * the descriptor itself, if it is SG_SEM_BY_HANDLE. EAGAIN: too many.
 */
#define SG_IOC_SEM_ME		_IOR(SG_IOC_MAGIC, 17, uint64_t)

/* What can be done; with objects of which kind. */
enum {
	SG_SEM_OP_LOCK = 1,	/* mutex */
	SG_SEM_OP_UNLOCK,
	SG_SEM_OP_CONSISTENT,	/* either lock, which the caller has from a dead owner */
	SG_SEM_OP_WAIT,		/* semaphore: -1 */
	SG_SEM_OP_POST,
	SG_SEM_OP_READ,		/* reader-writer lock */
	SG_SEM_OP_READ_END,
	SG_SEM_OP_WRITE,
	SG_SEM_OP_WRITE_END,
	SG_SEM_OP_DRAIN,	/* the caller has taken the word: until readers are gone */
	SG_SEM_OP_RING,		/* the caller has given back by itself, and the word says WAITERS */
	SG_SEM_OP_COND_LOOK,	/* condition: @value: what COND_WAIT is to wait from */
	SG_SEM_OP_COND_WAIT,	/* @value: from COND_LOOK */
	SG_SEM_OP_SIGNAL,
	SG_SEM_OP_BROADCAST,
	SG_SEM_OP_MEET,		/* barrier; @value: 1 for one of those who have met */
	SG_SEM_OP_ADVANCE,	/* event counter: + @value */
	SG_SEM_OP_AWAIT,	/* event counter: until it is @value or more */
	SG_SEM_OPS
};

#define SG_SEM_URGENT	(1u << 0)	/* a hint: not behind others of this system who wait */
#define SG_SEM_TRY	0ULL		/* @until: not at all */
#define SG_SEM_FOREVER	(~0ULL)

/**
 * struct sg_ioc_sem_op - does it with the descriptor's object
 * @op: SG_SEM_OP_LOCK, ...
 * @flags: SG_SEM_URGENT.
 * @until: of all that waits: ns of CLOCK_MONOTONIC.
 * @value: as @op says.
 *
 * EAGAIN: not without waiting. ETIMEDOUT. EINTR: by a signal, if its handler was installed without
 * SA_RESTART. EDEADLK: the caller has it. EPERM: the caller has it not. EOWNERDEAD: done, and the
 * caller has it, but from somebody who died with it. ENOTRECOVERABLE: a mutex that was given back
 * without being made consistent. EOVERFLOW: the count would be too large. EINVAL: not with this
 * kind of object. ENOTCONN: the descriptor has no object. EBADF: it was opened to look only. EBUSY:
 * somebody waits to lock by this descriptor already, which is SG_SEM_BY_HANDLE. EIO: this system
 * has been declared dead.
 */
struct sg_ioc_sem_op {
	uint32_t op, flags;
	uint64_t until;
	uint64_t value;
	uint64_t reserved;
};
#define SG_IOC_SEM_OP		_IOWR(SG_IOC_MAGIC, 18, struct sg_ioc_sem_op)
/*
 * For callers who are in a hurry: posix_fadvise() of the descriptor, for 0 bytes at 0, with this
 * plus SG_SEM_OP_LOCK, _UNLOCK, _WAIT or _POST as advice. It is the call with the least between a
 * process and a file: ioctl() asks each security module anew what open() has asked already, which
 * costs more than a lock. 0: done, as nobody was in the way. Else nothing is done: SG_IOC_SEM_OP
 * does it, or says why not.
 */
#define SG_SEM_AT_ONCE	(SG_IOC_MAGIC << 8)

/**
 * struct sg_ioc_sem_stat - what an object is at this moment
 * @name: which; empty: the descriptor's (and stays empty).
 * @value: semaphore, counters: that; mutex: 1, if it is locked; reader-writer lock: readers;
 *	barrier: how many have arrived.
 * @users, @waiters: a bit per slot of a system that has it open; in which somebody sleeps.
 * @slot, @pid, @tid, @since, @comm: the owner of a lock (@slot -1: none), and since when (ns since
 *	the epoch) he has been using objects. @system: the host name there.
 * @died: an owner has died, and it has not been made consistent. @lost: nor ever will be.
 */
struct sg_ioc_sem_stat {
	char name[SG_SEM_NAME_ROOM];
	uint32_t type, life, flags, serial;
	uint32_t uid, gid, mode, died, lost;
	int32_t slot;
	uint32_t pid, tid;
	uint64_t created, users, waiters, initial, value, since;
	char comm[16], system[64];
	uint64_t reserved[4];
};
#define SG_IOC_SEM_STAT		_IOWR(SG_IOC_MAGIC, 19, struct sg_ioc_sem_stat)

/**
 * struct sg_ioc_sem_list - objects, in no order
 * @cookie: 0 begins; it follows.
 * @buffer: for @room of struct sg_ioc_sem_stat; @count of them were found: 0: that was all.
 */
struct sg_ioc_sem_list {
	uint64_t cookie;
	uint64_t buffer;
	uint32_t room, count;
};
#define SG_IOC_SEM_LIST		_IOWR(SG_IOC_MAGIC, 20, struct sg_ioc_sem_list)

struct sg_ioc_sem_name {
	char name[SG_SEM_NAME_ROOM];
};
/* As a file in the root of the volume is removed, by who may do that. Who has it open keeps it. */
#define SG_IOC_SEM_REMOVE	_IOW(SG_IOC_MAGIC, 21, struct sg_ioc_sem_name)
/* As it was made, whoever has it: for its owner and CAP_FOWNER. Who sleeps looks again. */
#define SG_IOC_SEM_RESET	_IOW(SG_IOC_MAGIC, 22, struct sg_ioc_sem_name)

#endif
