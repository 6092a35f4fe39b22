/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstargate: semaphores and locks by name, and helpers for shared files. Programs of different
 * systems use them to coordinate their work on files of a StargateFS volume. See libstargate(3).
 *
 * Functions that can fail return 0 or an errno number; stargate_why() returns a message for it. All
 * threads of a process may use a handle at the same time. After fork(), the child may use the
 * inherited handles, whose operations are then system calls. For fast operations the child opens
 * the objects again.
 */
#ifndef STARGATE_H
#define STARGATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stargate_sem stargate_sem;

enum stargate_type {
	STARGATE_ANY,
	STARGATE_MUTEX,
	STARGATE_SEMAPHORE,
	STARGATE_RWLOCK,
	STARGATE_CONDITION,
	STARGATE_BARRIER,
	STARGATE_EVENT,
	STARGATE_RING
};

/* Flags of a new object. */
#define STARGATE_RECURSIVE	1u	/* a mutex that its owner may lock again */
#define STARGATE_GUARDED	2u	/* not mapped: the kernel performs each operation */
#define STARGATE_LAST_USER	4u	/* the object is removed when its last user closes it */
#define STARGATE_SINGLE		8u	/* for a ring: one handle at a time receives, in order */

/* Flags for opening. */
#define STARGATE_EXCLUSIVE	1u	/* creates the object, or fails with EEXIST */
#define STARGATE_LOOK		2u	/* to read and await counts: needs read permission */
#define STARGATE_BY_KERNEL	4u	/* this handle does not map the object */

/* The time limit of a wait: ns of CLOCK_MONOTONIC. */
#define STARGATE_TRY		((uint64_t)0)	/* does not wait, but returns EAGAIN */
#define STARGATE_FOREVER	(~(uint64_t)0)
uint64_t stargate_in(uint64_t ns);		/* returns the time @ns from now */

const char *stargate_why(int err);

/* --- objects ---------------------------------------------------------------------------------- */

/**
 * struct stargate_new - an object to create
 * @flags: STARGATE_RECURSIVE, ... @mode: permissions, reduced by the umask.
 * @initial: the value of a semaphore, the number of parties of a barrier, or the size of a ring.
 */
struct stargate_new {
	enum stargate_type type;
	unsigned int flags, mode;
	uint64_t initial;
};

/*
 * @volume: any path on the volume; NULL: the first mounted volume. If the object exists, it is
 * opened.
 */
int stargate_create(stargate_sem **out, const char *volume, const char *name,
		    const struct stargate_new *what, unsigned int how);
int stargate_open(stargate_sem **out, const char *volume, const char *name,
		  enum stargate_type type, unsigned int how);
void stargate_close(stargate_sem *s);
/* Removes the name. Processes that have the object open can still use it. */
int stargate_remove(const char *volume, const char *name);
/*
 * Restores the object's state from its creation, even if an owner has locked it. Only for the
 * object's owner (uid).
 */
int stargate_reset(const char *volume, const char *name);

/**
 * struct stargate_stat - the present state of an object
 * @flags: STARGATE_RECURSIVE, ... @users, @waiters: a bit for each system.
 * @value: of a semaphore or event: its value; of a mutex: 1 if it is locked; of a reader-writer
 *	lock: the number of readers; of a barrier: the number of arrived parties; of a condition:
 *	the number of signals.
 * @slot, @pid, @tid, @comm, @system: the owner; @slot -1: no owner. @since: ns since the epoch.
 * @died: an owner has died, and no later owner has made the object consistent; @lost: this is not
 *	possible any more.
 */
struct stargate_stat {
	char name[256];
	enum stargate_type type;
	unsigned int flags, mode;
	uid_t uid;
	gid_t gid;
	int slot, died, lost;
	uint64_t created, users, waiters, initial, value, since;
	pid_t pid, tid;
	char comm[16], system[64];
};
int stargate_stat(const char *volume, const char *name, struct stargate_stat *out);
int stargate_fstat(stargate_sem *s, struct stargate_stat *out);
/*
 * Calls @fn for each object, in any order, until it returns a value other than 0. Returns that
 * value.
 */
int stargate_list(const char *volume, int (*fn)(void *ctx, const struct stargate_stat *st),
		  void *ctx);

/* --- mutex ------------------------------------------------------------------------------------ */

/*
 * EOWNERDEAD: the caller has the lock, but the last owner died while it had the lock. Repair the
 * data that the lock protects, then make the lock consistent. If the caller unlocks a mutex without
 * that, each later lock returns ENOTRECOVERABLE. EDEADLK: the caller has already locked it. EPERM:
 * the caller has not locked it. Functions that wait also return EAGAIN, ETIMEDOUT, and EINTR (a
 * signal handler without SA_RESTART).
 */
int stargate_mutex_lock(stargate_sem *s, uint64_t until);
int stargate_mutex_unlock(stargate_sem *s);
/* Also for a reader-writer lock that the caller has locked for writing. */
int stargate_consistent(stargate_sem *s);

/* --- semaphore -------------------------------------------------------------------------------- */

int stargate_sem_wait(stargate_sem *s, uint64_t until);
int stargate_sem_post(stargate_sem *s);

/* --- reader-writer lock ----------------------------------------------------------------------- */

/*
 * EOWNERDEAD: a writer died while it had the lock. Each lock returns this until a writer has made
 * the lock consistent.
 */
int stargate_read_lock(stargate_sem *s, uint64_t until);
int stargate_read_unlock(stargate_sem *s);
int stargate_write_lock(stargate_sem *s, uint64_t until);
int stargate_write_unlock(stargate_sem *s);

/* --- condition, barrier, event counter -------------------------------------------------------- */

/* Unlocks @mutex, waits, and locks @mutex again, also after an error. */
int stargate_cond_wait(stargate_sem *s, stargate_sem *mutex, uint64_t until);
/*
 * The same wait in two steps, without a mutex. A signal after stargate_cond_look() is not missed.
 */
int stargate_cond_look(stargate_sem *s, uint64_t *seen);
int stargate_cond_wait_from(stargate_sem *s, uint64_t seen, uint64_t until);
int stargate_cond_signal(stargate_sem *s);
int stargate_cond_broadcast(stargate_sem *s);

/* Sets *last to 1 for one of the parties, and to 0 for the others. @last may be NULL. */
int stargate_barrier_wait(stargate_sem *s, uint64_t until, int *last);

int stargate_event_advance(stargate_sem *s, uint64_t by);
int stargate_event_read(stargate_sem *s, uint64_t *count);
int stargate_event_await(stargate_sem *s, uint64_t count, uint64_t until);

/* --- ring ------------------------------------------------------------------------------------- */

/*
 * Records from any senders to any receivers; each record goes to one receiver. A record has at most
 * half the size of the ring. It has a tag, whose meaning its users define. Users map the memory of
 * the ring, so all of them can change its contents and must trust each other.
 *
 * If a sender dies while it sends, no record is sent. If a receiver dies with a claimed record, the
 * record is lost, and the claim is counted. EMSGSIZE: the record is too large for the ring, or for
 * the buffer (*len is its length; it stays in the ring). EUCLEAN: a user has forged the ring: reset
 * it. ENOTCONN: the process has called fork(): open the ring again. Functions that wait also return
 * EAGAIN, ETIMEDOUT, EINTR.
 *
 * All threads may send with one handle. Only one thread at a time receives with a handle (EBUSY),
 * so open a handle for each receiver. EBUSY also: another handle receives from a STARGATE_SINGLE
 * ring. EUSERS: 384 handles receive.
 */
typedef struct stargate_ring stargate_ring;

/* @what->initial: the size in bytes, from 64 KiB to 64 MiB; rounded up to a power of two. */
int stargate_ring_create(stargate_ring **out, const char *volume, const char *name,
			 const struct stargate_new *what, unsigned int how);
int stargate_ring_open(stargate_ring **out, const char *volume, const char *name);
void stargate_ring_close(stargate_ring *r);
size_t stargate_ring_most(const stargate_ring *r);	/* length of the largest record */
/*
 * A descriptor for poll(2), epoll(7) and io_uring: readable while the ring has a record, writable
 * while half of the ring is free. Another receiver may take the record first, so receive with
 * STARGATE_TRY. stargate_ring_close() closes the descriptor.
 */
int stargate_ring_fd(const stargate_ring *r);

int stargate_ring_send(stargate_ring *r, uint32_t tag, const void *from, size_t len,
		       uint64_t until);
/* @tag may be NULL. */
int stargate_ring_recv(stargate_ring *r, uint32_t *tag, void *to, size_t room, size_t *len,
		       uint64_t until);

/*
 * Many records with one turn at the ring, and one claim. A receiver gets at most STARGATE_BATCH
 * records; a sender may send any number.
 *
 * Sending sets *sent to the number of sent records, also after an error; the caller may send the
 * rest again. EMSGSIZE: one record is too large, and none was sent. Receiving waits for the first
 * record, and takes the available records. Each begins at a multiple of 8 bytes in @to.
 */
#define STARGATE_BATCH	64u
struct stargate_record {
	const void *data;
	size_t len;
	uint32_t tag, reserved;
};
int stargate_ring_send_many(stargate_ring *r, const struct stargate_record *records, size_t n,
			    size_t *sent, uint64_t until);
int stargate_ring_recv_many(stargate_ring *r, void *to, size_t room,
			    struct stargate_record *out, size_t most, size_t *n,
			    uint64_t until);

/*
 * Sending and receiving without a copy. Between reserve and commit (or cancel), other senders wait
 * for the calling thread; a commit may send fewer bytes than were reserved. Between peek and
 * release, the record keeps its place in the ring.
 */
int stargate_ring_reserve(stargate_ring *r, size_t len, void **at, uint64_t until);
int stargate_ring_commit(stargate_ring *r, uint32_t tag, size_t len);
int stargate_ring_cancel(stargate_ring *r);
int stargate_ring_peek(stargate_ring *r, uint32_t *tag, const void **at, size_t *len,
		       uint64_t until);
/* The same for a batch. One call of release() releases the complete batch. */
int stargate_ring_peek_many(stargate_ring *r, struct stargate_record *out, size_t most, size_t *n,
			    uint64_t until);
int stargate_ring_release(stargate_ring *r);

/**
 * struct stargate_ring_stat - the present state of a ring
 * @size, @used: in bytes, with the heads of records. @sent: records since the ring was created or
 *	reset.
 * @claims_lost: claims whose receivers died. @receivers: live handles that receive.
 */
struct stargate_ring_stat {
	uint64_t size, used, sent, claims_lost;
	int single;
	uint64_t receivers, reserved[7];
};
int stargate_ring_stat(const char *volume, const char *name, struct stargate_ring_stat *out);
int stargate_ring_fstat(stargate_ring *r, struct stargate_ring_stat *out);

/* --- stream ----------------------------------------------------------------------------------- */

/*
 * A stream passes bytes in order, in both directions, between two processes of any systems, over a
 * pair of rings. A server listens on a name, and clients dial it. One thread may read while another
 * one writes. If the other end dies, calls return ECONNRESET or EPIPE. If its system dies, they do
 * so within two seconds of the report of this death.
 */
typedef struct stargate_stream stargate_stream;
typedef struct stargate_listener stargate_listener;

/**
 * struct stargate_streams - parameters of a listener, or of a name with which two processes join
 * @size: the size of each ring in bytes; 0: 1 MiB. @mode: permissions; clients create their rings
 *	with it.
 */
struct stargate_streams {
	uint64_t size;
	unsigned int mode, reserved;
};

/* EADDRINUSE: another process listens on that name. A name has at most 230 bytes. */
int stargate_listen(stargate_listener **out, const char *volume, const char *name,
		    const struct stargate_streams *what);
int stargate_accept(stargate_listener *l, stargate_stream **out, uint64_t until);
void stargate_listener_close(stargate_listener *l);
/* ECONNREFUSED: no process listens on that name. */
int stargate_dial(stargate_stream **out, const char *volume, const char *name, uint64_t until);
/*
 * Connects the two processes that use the same name, without a listener. EADDRINUSE: two processes
 * already use it.
 */
int stargate_join(stargate_stream **out, const char *volume, const char *name,
		  const struct stargate_streams *what);

/* Waits for the first byte. Sets *got to 0 after the other end has shut down its side. */
int stargate_read(stargate_stream *s, void *to, size_t room, size_t *got, uint64_t until);
/* Writes all bytes. Sets *done to the number of written bytes, also after an error. */
int stargate_write(stargate_stream *s, const void *from, size_t len, size_t *done, uint64_t until);
/*
 * Ends this direction: the other end reads the written bytes, and then the end. This end can still
 * read.
 */
int stargate_shut(stargate_stream *s, uint64_t until);
/* Also shuts this end down if that is possible without a wait. */
void stargate_stream_close(stargate_stream *s);

/* --- files ------------------------------------------------------------------------------------ */

/**
 * struct stargate_map - an open file that is mapped completely
 */
struct stargate_map {
	void *base;
	size_t size;
	int fd;
};
/*
 * @flags: as for open(2). A writable file is extended to at least @size. EINVAL: the file is empty.
 */
int stargate_map_file(struct stargate_map *m, const char *path, int flags, mode_t mode,
		      size_t size);
/* Maps the file's present length; the address may change. */
int stargate_map_again(struct stargate_map *m);
void stargate_unmap(struct stargate_map *m);
/* Waits until the file has @size bytes. Any system may extend it. */
int stargate_await_size(int fd, uint64_t size, uint64_t until);

/*
 * A cursor is for one producer and one consumer of a ring of @room bytes, which both have mapped,
 * on any systems. Two event counters, NAME.published and NAME.consumed, hold the progress of the
 * two sides.
 */
typedef struct stargate_cursor stargate_cursor;
int stargate_cursor_open(stargate_cursor **out, const char *volume, const char *name,
			 uint64_t room);
void stargate_cursor_close(stargate_cursor *c);
/*
 * Returns the position in the ring for the next bytes, and how many fit contiguously. Waits for
 * free room.
 */
int stargate_publish_at(stargate_cursor *c, uint64_t *at, uint64_t *room, uint64_t until);
int stargate_publish(stargate_cursor *c, uint64_t bytes);
/* Returns the position of the next bytes, and how many are contiguous. Waits for bytes. */
int stargate_consume_at(stargate_cursor *c, uint64_t *at, uint64_t *bytes, uint64_t until);
int stargate_consume(stargate_cursor *c, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
