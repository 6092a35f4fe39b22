/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * Shared semaphores as processes use them: the ioctls of SG_SEM_FILE, below the root of a mounted
 * volume (docs/semaphores.md). Programs may include this folder alone.
 *
 * Each open() of that file gives a descriptor, to which SG_IOC_SEM_OPEN binds one object. The
 * object stays open until the descriptor is closed and nothing maps it any more. If the object is
 * SG_SEM_MAPPED and was opened for writing, a process can map the page of its words: one shared
 * page at offset 0.
 *
 * Threads need no registration. When a thread ends in any way, or executes another program, the
 * kernel releases its locks as those of a dead owner. With SG_SEM_BY_HANDLE the descriptor owns the
 * locks instead of the thread, for programs whose work moves between threads. A child does not
 * inherit a mapping at fork().
 *
 * Reserved fields must be 0, otherwise a call returns EINVAL. The comment at each call lists its
 * errors.
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
/* only to read and wait for counts: read permission suffices */
#define SG_SEM_LOOK	(1u << 2)
/* the process will not map the words: the kernel also counts readers */
#define SG_SEM_BY_KERNEL (1u << 3)
#define SG_SEM_BY_HANDLE (1u << 4)	/* the descriptor owns locks, whichever thread uses it */
#define SG_SEM_HOW_KNOWN 31u

/**
 * struct sg_ioc_sem_open - binds an object to the descriptor
 * @name: of the object.
 * @type: SG_SEM_MUTEX, ...; 0: any type, if the call creates no object. Out: its type.
 * @how: SG_SEM_CREATE, ...
 * @flags: for a new object: SG_SEM_RECURSIVE, SG_SEM_MAPPED. Out: its flags.
 * @life: for a new object: 0: it exists until it is removed by name; 1: until its last user closes
 * it.
 * @mode: for a new object: permissions, without those of the umask.
 * @cell: out: the word of the page in which this process counts its readers (SG_SEM_CELL_FIRST or
 * more); 0: the kernel must count them.
 * @initial: for a new object: semaphore: its value; barrier: the number of threads that meet; ring:
 * its
 *   size in bytes, a power of two from SG_RING_MIN to SG_RING_MAX.
 *
 * A ring is SG_SEM_MAPPED. Its data can be mapped from offset 4096 on.
 *
 * ENOENT: the object does not exist. EEXIST. EINVAL: the name is not possible, the object has
 * another type, or an argument is invalid. ENAMETOOLONG. EACCES: the object's owner and mode forbid
 * the access; or the caller wants to create an object but may not create files in the root of the
 * volume. EBUSY: the descriptor has an object already. ENOSPC: the volume is full, or too many
 * names have the same hash. EUCLEAN: the objects' file is damaged; the kernel log has the details.
 * EROFS: the volume is read-only. EIO: this system has been fenced. With SG_SEM_BY_HANDLE EAGAIN:
 * this system has too many owners. EOPNOTSUPP: a ring cannot be created, because the software of a
 * system that uses the volume is too old for rings.
 */
struct sg_ioc_sem_open {
	char name[SG_SEM_NAME_ROOM];
	__u32 type, how, flags, life, mode, cell;
	__u64 initial;
	__u64 reserved[2];
};
#define SG_IOC_SEM_OPEN		_IOWR(SG_IOC_MAGIC, 16, struct sg_ioc_sem_open)

/*
 * Returns the owner as words store it: SG_SEMW_ID() of the calling thread, with any descriptor of
 * this file. For an SG_SEM_BY_HANDLE descriptor it is the descriptor's own SG_SEMW_ID(). EAGAIN:
 * this system has too many owners.
 */
#define SG_IOC_SEM_ME		_IOR(SG_IOC_MAGIC, 17, __u64)

/* Operations, and the types of objects to which they apply. */
enum {
	SG_SEM_OP_LOCK = 1,	/* mutex; for a ring: its lock */
	SG_SEM_OP_UNLOCK,
	/* mutex or reader-writer lock that the caller got after its owner died */
	SG_SEM_OP_CONSISTENT,
	SG_SEM_OP_WAIT,		/* semaphore: -1 */
	SG_SEM_OP_POST,
	SG_SEM_OP_READ,		/* reader-writer lock */
	SG_SEM_OP_READ_END,
	SG_SEM_OP_WRITE,
	SG_SEM_OP_WRITE_END,
	SG_SEM_OP_DRAIN,	/* the caller has set the word: waits until no reader is left */
	SG_SEM_OP_RING,		/* the caller has released the word, which has the flag WAITERS */
	SG_SEM_OP_COND_LOOK,	/* condition: returns in @value the count for COND_WAIT */
	SG_SEM_OP_COND_WAIT,	/* waits until the count is no longer @value */
	SG_SEM_OP_SIGNAL,
	SG_SEM_OP_BROADCAST,
	SG_SEM_OP_MEET,		/* barrier; @value: 1 for one of the threads that have met */
	SG_SEM_OP_ADVANCE,	/* event counter: adds @value */
	SG_SEM_OP_AWAIT,	/* event counter: waits until it is at least @value */
	SG_SEM_OP_READER,	/* ring: @value: the cell in which this descriptor claims records */
	SG_SEM_OP_SWEEP,	/* ring: ends the claims of dead readers */
	SG_SEM_OPS
};

/* a hint: serve this caller before other waiters of this system */
#define SG_SEM_URGENT	(1u << 0)
/*
 * The part of a ring to which the operation applies. For LOCK, UNLOCK and CONSISTENT it is
 * SG_RING_LOCK.
 */
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
 * EAGAIN: the call would have to wait. ETIMEDOUT. EINTR: a signal arrived whose handler was
 * installed without SA_RESTART. EDEADLK: the caller owns the lock already. EPERM: the caller does
 * not own the lock. EOWNERDEAD: the caller now owns the lock, but its earlier owner died.
 * ENOTRECOVERABLE: an owner released the mutex without making it consistent. EOVERFLOW: the count
 * would be too large. EINVAL: the operation does not apply to this type of object. ENOTCONN: the
 * descriptor has no object. EBADF: the object was opened only to read and wait for counts. EBUSY:
 * another thread already waits for a lock with this SG_SEM_BY_HANDLE descriptor; READER: another
 * descriptor receives from this SG_SEM_SINGLE ring. EUSERS: READER: all cells are in use. EIO: this
 * system has been fenced. READER waits for the lock of the objects' file, so @until also limits
 * READER.
 */
struct sg_ioc_sem_op {
	__u32 op, flags;
	__u64 until;
	__u64 value;
	__u64 reserved;
};
#define SG_IOC_SEM_OP		_IOWR(SG_IOC_MAGIC, 18, struct sg_ioc_sem_op)
/*
 * A faster call: posix_fadvise() of the descriptor, for 0 bytes at offset 0. The advice is this
 * number plus SG_SEM_OP_LOCK, _UNLOCK, _WAIT or _POST. No other system call has less code between a
 * process and a file. ioctl() calls each security module, as open() did before, which costs more
 * than a lock. 0: done without waiting. Otherwise nothing is done: SG_IOC_SEM_OP does the
 * operation, or returns the reason.
 */
#define SG_SEM_AT_ONCE	(SG_IOC_MAGIC << 8)

/**
 * struct sg_ioc_sem_stat - current state of an object
 * @name: of the object; if empty: the object of the descriptor, and @name stays empty.
 * @value: semaphore, counters: the value; mutex: 1 if locked; reader-writer lock: readers; barrier:
 * arrivals; ring: bytes in use.
 * @claims_lost: ring: claims of readers that died. @sent: records sent. @receivers: live
 *   descriptors that receive.
 * @users, @waiters: one bit for each slot whose system has the object open; one bit for each slot
 * in which a thread sleeps.
 * @slot, @pid, @tid, @since, @comm: the owner of a lock (@slot -1: none), and the time when it
 * began to use objects (ns since the Unix epoch). @system: the host name of the owner's system.
 * @died: an owner has died, and the object is not yet consistent. @lost: it can never be made
 * consistent.
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
 * struct sg_ioc_sem_list - a list of objects, in no order
 * @cookie: 0 for the first call; each call stores the value for the next one.
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
 * Removes the object. The caller needs the permissions to remove a file in the root of the volume.
 * Processes that have the object open can still use it.
 */
#define SG_IOC_SEM_REMOVE	_IOW(SG_IOC_MAGIC, 21, struct sg_ioc_sem_name)
/*
 * Sets the object to its first state, even if a thread holds it: for its owner and CAP_FOWNER.
 * Sleepers wake and check the object again.
 */
#define SG_IOC_SEM_RESET	_IOW(SG_IOC_MAGIC, 22, struct sg_ioc_sem_name)

#endif
