/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * Shared semaphores as processes use them: the ioctls of SG_SEM_FILE, below the root of a mounted
 * volume (docs/semaphores.md). Programs may include this folder alone.
 *
 * Each open() of that file gives a descriptor, to which SG_IOC_SEM_OPEN binds one object. The
 * descriptor keeps the object open until it is closed and no longer mapped. One page at offset 0,
 * shared, can be mapped if the object is SG_SEM_MAPPED and was opened for writing: the page of its
 * words.
 *
 * The kernel knows threads without registration. When a thread ends in any way, or executes another
 * program, the kernel gives up its locks, as those of a dead owner. A descriptor can own the locks
 * instead, for programs whose work moves between threads (SG_SEM_BY_HANDLE). fork() does not
 * inherit a mapping.
 *
 * All reserved fields are 0, otherwise EINVAL. Each call below lists its errors.
 */
#ifndef SG_SEMCTL_H
#define SG_SEMCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/ioctl.h>
#endif

#include "magic.h"
#include "semtype.h"

#define SG_SEM_FILE	".stargate/semaphores"
#define SG_SEM_NAME_ROOM 256	/* a name of 1 to 255 bytes, without slashes; then zeroes */

/* How an object is opened. */
#define SG_SEM_CREATE	(1u << 0)	/* creates the object if no object has that name */
#define SG_SEM_EXCL	(1u << 1)	/* with SG_SEM_CREATE: EEXIST if the object exists */
#define SG_SEM_LOOK	(1u << 2)	/* to read and wait for counts: read permission suffices */
#define SG_SEM_BY_KERNEL (1u << 3)	/* will not be mapped: the kernel counts readers, too */
#define SG_SEM_BY_HANDLE (1u << 4)	/* the descriptor is the owner, whichever thread uses it */
#define SG_SEM_HOW_KNOWN 31u

/**
 * struct sg_ioc_sem_open - binds an object to the descriptor
 * @name: of the object.
 * @type: SG_SEM_MUTEX, ...; 0, if none is created: any. Out: its type.
 * @how: SG_SEM_CREATE, ...
 * @flags: if created: SG_SEM_RECURSIVE, SG_SEM_MAPPED. Out: its flags.
 * @life: if created: 0: until it is removed by name; 1: until its last user closes it.
 * @mode: if created: permissions, less the umask.
 * @cell: out: the word of the page in which this process counts its readers (SG_SEM_CELL_FIRST or
 *   more); 0: it asks the kernel.
 * @initial: if created: semaphore: its value; barrier: the number of threads that meet; ring: its
 *   size in bytes, a power of two from SG_RING_MIN to SG_RING_MAX.
 *
 * A ring is SG_SEM_MAPPED. Its data can be mapped from offset 4096 on.
 *
 * ENOENT: the object does not exist. EEXIST. EINVAL: no object can have this name, another type, or
 * an invalid argument. ENAMETOOLONG. EACCES: its owner and mode forbid it; or, to create it, the
 * caller may not create files in the root of the volume. EBUSY: the descriptor has an object
 * already. ENOSPC: the volume is full, or too many names hash like this one. EUCLEAN: damaged, as
 * the log says. EROFS: the volume is read-only. EIO: this system has been fenced. With
 * SG_SEM_BY_HANDLE EAGAIN: this system has too many owners. EOPNOTSUPP: to create a ring: a system
 * has the volume open with software that knows no rings.
 */
struct sg_ioc_sem_open {
	char name[SG_SEM_NAME_ROOM];
	__u32 type, how, flags, life, mode, cell;
	__u64 initial;
	__u64 reserved[2];
};
#define SG_IOC_SEM_OPEN		_IOWR(SG_IOC_MAGIC, 16, struct sg_ioc_sem_open)

/*
 * The owner as stored in words: SG_SEMW_ID() of the calling thread, by any such descriptor; of the
 * descriptor itself if it is SG_SEM_BY_HANDLE. EAGAIN: too many owners.
 */
#define SG_IOC_SEM_ME		_IOR(SG_IOC_MAGIC, 17, __u64)

/* Operations, and the types of objects to which they apply. */
enum {
	SG_SEM_OP_LOCK = 1,	/* mutex */
	SG_SEM_OP_UNLOCK,
	SG_SEM_OP_CONSISTENT,	/* either lock, which the caller got from a dead owner */
	SG_SEM_OP_WAIT,		/* semaphore: -1 */
	SG_SEM_OP_POST,
	SG_SEM_OP_READ,		/* reader-writer lock */
	SG_SEM_OP_READ_END,
	SG_SEM_OP_WRITE,
	SG_SEM_OP_WRITE_END,
	SG_SEM_OP_DRAIN,	/* the caller has taken the word: waits until readers are gone */
	SG_SEM_OP_RING,		/* the caller has given back the word, which has WAITERS */
	SG_SEM_OP_COND_LOOK,	/* condition: @value: the count from which COND_WAIT waits */
	SG_SEM_OP_COND_WAIT,	/* @value: from COND_LOOK */
	SG_SEM_OP_SIGNAL,
	SG_SEM_OP_BROADCAST,
	SG_SEM_OP_MEET,		/* barrier; @value: 1 for one of the threads that have met */
	SG_SEM_OP_ADVANCE,	/* event counter: + @value */
	SG_SEM_OP_AWAIT,	/* event counter: until it is at least @value */
	SG_SEM_OP_READER,	/* ring: @value: the cell in which this descriptor claims records */
	SG_SEM_OP_SWEEP,	/* ring: claims of dead readers end */
	SG_SEM_OPS
};

#define SG_SEM_URGENT	(1u << 0)	/* a hint: go before other waiters of this system */
/* The part of a ring to which the operation applies; LOCK, UNLOCK and CONSISTENT: SG_RING_LOCK. */
#define SG_SEM_PART(part) ((unsigned int)(part) << 8)
#define SG_SEM_PART_OF(flags) ((flags) >> 8 & 3)
#define SG_SEM_OP_FLAGS_KNOWN 0x301u
#define SG_SEM_TRY	0ULL		/* @until: do not wait */
#define SG_SEM_FOREVER	(~0ULL)

/**
 * struct sg_ioc_sem_op - an operation on the descriptor's object
 * @op: SG_SEM_OP_LOCK, ...
 * @flags: SG_SEM_URGENT, SG_SEM_PART().
 * @until: end of a wait: ns of CLOCK_MONOTONIC.
 * @value: depends on @op.
 *
 * EAGAIN: the call would have to wait. ETIMEDOUT. EINTR: by a signal whose handler was installed
 * without SA_RESTART. EDEADLK: the caller owns it. EPERM: the caller does not own it. EOWNERDEAD:
 * done, and the caller owns it, but its earlier owner died. ENOTRECOVERABLE: a mutex was given back
 * without being made consistent. EOVERFLOW: the count would be too large. EINVAL: does not apply to
 * this type of object. ENOTCONN: the descriptor has no object. EBADF: it was opened only to look.
 * EBUSY: another thread waits to lock by this SG_SEM_BY_HANDLE descriptor already; READER: another
 * descriptor receives from this SG_SEM_SINGLE ring. EUSERS: READER: all cells are in use. EIO: this
 * system has been fenced. READER needs the file of the objects, so @until is for it, too.
 */
struct sg_ioc_sem_op {
	__u32 op, flags;
	__u64 until;
	__u64 value;
	__u64 reserved;
};
#define SG_IOC_SEM_OP		_IOWR(SG_IOC_MAGIC, 18, struct sg_ioc_sem_op)
/*
 * A faster call: posix_fadvise() of the descriptor, for 0 bytes at 0, with this plus
 * SG_SEM_OP_LOCK, _UNLOCK, _WAIT or _POST as advice. No other call has less code between a process
 * and a file. ioctl() asks each security module again what open() has asked already, which costs
 * more than a lock. 0: done, as no other caller was in the way. Otherwise nothing is done:
 * SG_IOC_SEM_OP does it, or returns the reason.
 */
#define SG_SEM_AT_ONCE	(SG_IOC_MAGIC << 8)

/**
 * struct sg_ioc_sem_stat - state of an object at this moment
 * @name: the object; empty: the descriptor's (and stays empty).
 * @value: semaphore, counters: the value; mutex: 1 if locked; reader-writer lock: readers; barrier:
 *   arrivals; ring: bytes of it that are in use.
 * @claims_lost: ring: claims that ended with their readers. @sent: records sent. @receivers: live
 *   descriptors that receive.
 * @users, @waiters: a bit for each slot whose system has it open; for each in which a thread
 *   sleeps.
 * @slot, @pid, @tid, @since, @comm: the owner of a lock (@slot -1: none), and when it began to use
 *   objects (ns since the Unix epoch). @system: the host name there.
 * @died: an owner has died, and the object is not yet consistent. @lost: it never will be.
 */
struct sg_ioc_sem_stat {
	char name[SG_SEM_NAME_ROOM];
	__u32 type, life, flags, serial;
	__u32 uid, gid, mode, died, lost;
	__s32 slot;
	__u32 pid, tid;
	__u64 created, users, waiters, initial, value, since;
	char comm[16], system[64];
	__u64 claims_lost, sent, receivers;
	__u64 reserved;
};
#define SG_IOC_SEM_STAT		_IOWR(SG_IOC_MAGIC, 19, struct sg_ioc_sem_stat)

/**
 * struct sg_ioc_sem_list - objects, in no order
 * @cookie: 0 begins; it follows.
 * @buffer: has room for @room of struct sg_ioc_sem_stat; @count: objects found; 0: no more.
 */
struct sg_ioc_sem_list {
	__u64 cookie;
	__u64 buffer;
	__u32 room, count;
};
#define SG_IOC_SEM_LIST		_IOWR(SG_IOC_MAGIC, 20, struct sg_ioc_sem_list)

struct sg_ioc_sem_name {
	char name[SG_SEM_NAME_ROOM];
};
/*
 * Removes the object; permissions are those of removing a file in the root of the volume. Processes
 * that have it open keep it.
 */
#define SG_IOC_SEM_REMOVE	_IOW(SG_IOC_MAGIC, 21, struct sg_ioc_sem_name)
/*
 * Sets the object to its first state, whoever holds it: for its owner and CAP_FOWNER. Sleepers look
 * again.
 */
#define SG_IOC_SEM_RESET	_IOW(SG_IOC_MAGIC, 22, struct sg_ioc_sem_name)

#endif
