/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstargate: semaphores and locks by name, and helpers for shared files. Programs of different
 * systems use them to coordinate their work on files of a StargateFS volume. See libstargate(3).
 *
 * Functions that can fail return 0 or an errno number; stargate_why() explains the number in a
 * sentence. All threads of the process may use a handle at once. After fork() the child may use its
 * handles, which then call the kernel. For fast operations the child opens the objects again.
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
#define STARGATE_GUARDED	2u	/* no process maps it: the kernel checks each step */
#define STARGATE_LAST_USER	4u	/* removed when its last user closes it */
#define STARGATE_SINGLE		8u	/* a ring: one handle at a time receives, in order */

/* Flags for opening. */
#define STARGATE_EXCLUSIVE	1u	/* creates it, or fails with EEXIST */
#define STARGATE_LOOK		2u	/* to read, wait for counts: needs read permission */
#define STARGATE_BY_KERNEL	4u	/* this handle does not map it */

/* The time limit of a wait: ns of CLOCK_MONOTONIC. */
#define STARGATE_TRY		((uint64_t)0)	/* does not wait: EAGAIN */
#define STARGATE_FOREVER	(~(uint64_t)0)
uint64_t stargate_in(uint64_t ns);		/* @ns from now */

const char *stargate_why(int err);

/* --- objects ---------------------------------------------------------------------------------- */

/**
 * struct stargate_new - an object to create
 * @flags: STARGATE_RECURSIVE, ... @mode: permissions, reduced by the umask.
 * @initial: of a semaphore: its value; of a barrier: the number of parties; of a ring: its size.
 */
struct stargate_new {
	enum stargate_type type;
	unsigned int flags, mode;
	uint64_t initial;
};

/* @volume: any path on it, NULL: the first mounted volume. An existing object is opened. */
int stargate_create(stargate_sem **out, const char *volume, const char *name,
		    const struct stargate_new *what, unsigned int how);
int stargate_open(stargate_sem **out, const char *volume, const char *name,
		  enum stargate_type type, unsigned int how);
void stargate_close(stargate_sem *s);
/* Removes the name. Processes that have the object open keep it. */
int stargate_remove(const char *volume, const char *name);
/* Restores the state of its creation, whoever has it locked. For the object's owner (uid). */
int stargate_reset(const char *volume, const char *name);

/**
 * struct stargate_stat - the present state of an object
 * @flags: STARGATE_RECURSIVE, ... @users, @waiters: a bit for each system.
 * @value: of a semaphore or event: its value; of a mutex: 1 if it is locked; of a reader-writer
 *	lock: the number of readers; of a barrier: of arrived parties; of a condition: of signals.
 * @slot, @pid, @tid, @comm, @system: the owner; @slot -1: none. @since: ns since the epoch.
 * @died: an owner has died, and the object was not made consistent; @lost: it cannot be.
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
 * EOWNERDEAD: locked, but the last owner died with it. Repair the data that it protects, then make
 * it consistent. A mutex that is unlocked without that is lost for all: ENOTRECOVERABLE. EDEADLK:
 * the caller has it already. EPERM: the caller does not have it. Functions that wait also return
 * EAGAIN, ETIMEDOUT, and EINTR (a signal handler without SA_RESTART).
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
 * EOWNERDEAD: a writer died with it. Each lock returns that until a writer has made it consistent.
 */
int stargate_read_lock(stargate_sem *s, uint64_t until);
int stargate_read_unlock(stargate_sem *s);
int stargate_write_lock(stargate_sem *s, uint64_t until);
int stargate_write_unlock(stargate_sem *s);

/* --- condition, barrier, event counter -------------------------------------------------------- */

/* Unlocks @mutex during the wait, and locks it again whatever the result is. */
int stargate_cond_wait(stargate_sem *s, stargate_sem *mutex, uint64_t until);
/* The same in two steps, without a mutex: a signal after the look is not missed. */
int stargate_cond_look(stargate_sem *s, uint64_t *seen);
int stargate_cond_wait_from(stargate_sem *s, uint64_t seen, uint64_t until);
int stargate_cond_signal(stargate_sem *s);
int stargate_cond_broadcast(stargate_sem *s);

/* *last, unless NULL: 1 for one of the parties. */
int stargate_barrier_wait(stargate_sem *s, uint64_t until, int *last);

int stargate_event_advance(stargate_sem *s, uint64_t by);
int stargate_event_read(stargate_sem *s, uint64_t *count);
int stargate_event_await(stargate_sem *s, uint64_t count, uint64_t until);

/* --- ring ------------------------------------------------------------------------------------- */

/*
 * Records from any senders to any receivers; each record goes to one receiver. A record has at most
 * half the ring, and a tag that means what its users agree on. Memory of the ring is mapped, so all
 * users of a ring have to trust each other with what is in it.
 *
 * A sender that dies sends nothing. A record that a receiver had claimed when it died is lost, and
 * counted. EMSGSIZE: the record is too large for the ring, or for the buffer (*len: its length; it
 * stays). EUCLEAN: a user has forged the ring: reset it. ENOTCONN: after fork(): open it again.
 * Functions that wait also return EAGAIN, ETIMEDOUT, EINTR.
 *
 * All threads may send by one handle. One thread at a time receives by a handle, otherwise EBUSY;
 * each receiver should have its own. EBUSY also: another handle receives from a STARGATE_SINGLE
 * ring. EUSERS: 384 handles receive.
 */
typedef struct stargate_ring stargate_ring;

/* @what->initial: bytes, from 64 KiB to 64 MiB; rounded up to a power of two. */
int stargate_ring_create(stargate_ring **out, const char *volume, const char *name,
			 const struct stargate_new *what, unsigned int how);
int stargate_ring_open(stargate_ring **out, const char *volume, const char *name);
void stargate_ring_close(stargate_ring *r);
size_t stargate_ring_most(const stargate_ring *r);	/* length of the largest record */
/*
 * For poll(2), epoll(7) and io_uring: readable while there is a record, writable while half of the
 * ring is free. Another receiver may be first, so receive with STARGATE_TRY. The handle keeps the
 * descriptor.
 */
int stargate_ring_fd(const stargate_ring *r);

int stargate_ring_send(stargate_ring *r, uint32_t tag, const void *from, size_t len,
		       uint64_t until);
/* @tag may be NULL. */
int stargate_ring_recv(stargate_ring *r, uint32_t *tag, void *to, size_t room, size_t *len,
		       uint64_t until);

/*
 * Many records at once: one turn at the ring, and one claim. A batch has at most STARGATE_BATCH
 * records when it is received; a sender sends any number.
 *
 * Send: *sent: how many were sent, also after an error; the rest may be sent again. EMSGSIZE: one
 * of them is too large, and none was sent. Receive: waits for the first record, and takes those
 * that are there. Each begins at a multiple of 8 bytes in @to.
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
 * Without a copy. Between reserve and commit (or cancel), the calling thread keeps other senders
 * waiting; a commit may be shorter than what was reserved. Between peek and release, the record
 * keeps its place in the ring.
 */
int stargate_ring_reserve(stargate_ring *r, size_t len, void **at, uint64_t until);
int stargate_ring_commit(stargate_ring *r, uint32_t tag, size_t len);
int stargate_ring_cancel(stargate_ring *r);
int stargate_ring_peek(stargate_ring *r, uint32_t *tag, const void **at, size_t *len,
		       uint64_t until);
/* The same for a batch. One release gives it back. */
int stargate_ring_peek_many(stargate_ring *r, struct stargate_record *out, size_t most, size_t *n,
			    uint64_t until);
int stargate_ring_release(stargate_ring *r);

/**
 * struct stargate_ring_stat - the present state of a ring
 * @size, @used: in bytes, heads of records included. @sent: records since it was made or reset.
 * @claims_lost: claims that ended with their receivers. @receivers: live handles that receive.
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
 * Bytes in order, both ways, between two processes of any systems: a pair of rings. A server
 * listens by a name, and clients dial it. One thread may read while another one writes. If the
 * other end dies, it is ECONNRESET or EPIPE within two seconds of its system's report.
 */
typedef struct stargate_stream stargate_stream;
typedef struct stargate_listener stargate_listener;

/**
 * struct stargate_streams - of a listener, or of a name that two processes join
 * @size: of each ring, in bytes; 0: 1 MiB. @mode: permissions; clients make their rings with it.
 */
struct stargate_streams {
	uint64_t size;
	unsigned int mode, reserved;
};

/* EADDRINUSE: another process listens by that name. A name has at most 230 bytes. */
int stargate_listen(stargate_listener **out, const char *volume, const char *name,
		    const struct stargate_streams *what);
int stargate_accept(stargate_listener *l, stargate_stream **out, uint64_t until);
void stargate_listener_close(stargate_listener *l);
/* ECONNREFUSED: no process listens by that name. */
int stargate_dial(stargate_stream **out, const char *volume, const char *name, uint64_t until);
/* Two processes that use one name are joined, without a listener. EADDRINUSE: two have it. */
int stargate_join(stargate_stream **out, const char *volume, const char *name,
		  const struct stargate_streams *what);

/* Waits for the first byte. *got is 0 after the other end has shut its side. */
int stargate_read(stargate_stream *s, void *to, size_t room, size_t *got, uint64_t until);
/* Writes all of it. *done: how much was written, also after an error. */
int stargate_write(stargate_stream *s, const void *from, size_t len, size_t *done, uint64_t until);
/* The other end reads what was written, and then the end. This end may go on reading. */
int stargate_shut(stargate_stream *s, uint64_t until);
/* Shuts it if that needs no wait. */
void stargate_stream_close(stargate_stream *s);

/* --- files ------------------------------------------------------------------------------------ */

/**
 * struct stargate_map - a file, open and mapped whole
 */
struct stargate_map {
	void *base;
	size_t size;
	int fd;
};
/* @flags: of open(2). A writable file is extended to @size at least. EINVAL: the file is empty. */
int stargate_map_file(struct stargate_map *m, const char *path, int flags, mode_t mode,
		      size_t size);
/* Maps the file's present length; the address may change. */
int stargate_map_again(struct stargate_map *m);
void stargate_unmap(struct stargate_map *m);
/* Waits until the file has @size bytes, whichever system extends it. */
int stargate_await_size(int fd, uint64_t size, uint64_t until);

/*
 * A cursor is for one producer and one consumer, on any systems, of a ring of @room bytes that both
 * have mapped. Two event counters, NAME.published and NAME.consumed, hold the progress of each.
 */
typedef struct stargate_cursor stargate_cursor;
int stargate_cursor_open(stargate_cursor **out, const char *volume, const char *name,
			 uint64_t room);
void stargate_cursor_close(stargate_cursor *c);
/*
 * Returns where in the ring the next bytes go, and how many fit contiguously. Waits for free room.
 */
int stargate_publish_at(stargate_cursor *c, uint64_t *at, uint64_t *room, uint64_t until);
int stargate_publish(stargate_cursor *c, uint64_t bytes);
/* Returns where the next bytes are, and how many are contiguous. Waits for bytes. */
int stargate_consume_at(stargate_cursor *c, uint64_t *at, uint64_t *bytes, uint64_t until);
int stargate_consume(stargate_cursor *c, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
