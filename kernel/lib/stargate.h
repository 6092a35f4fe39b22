/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstargate: what programs of different systems need to share files of a StargateFS volume in
 * step: semaphores and locks by name, and a little for shared files. See libstargate(3).
 *
 * Functions that can fail return 0 or an errno number; stargate_why() says it in a sentence.
 * Handles may be used by all threads of the process at once. After fork() the child may use those
 * that it has, through the kernel; what it should do fast it opens anew.
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
	STARGATE_EVENT
};

/* Of an object, when it is made. */
#define STARGATE_RECURSIVE	1u	/* a mutex that its owner may lock again */
#define STARGATE_GUARDED	2u	/* nobody maps it: each step is checked by the kernel */
#define STARGATE_LAST_USER	4u	/* it goes with the last one who has it open */

/* How it is opened. */
#define STARGATE_EXCLUSIVE	1u	/* to make it: EEXIST if it is there */
#define STARGATE_LOOK		2u	/* to read, wait for counts: read permission will do */
#define STARGATE_BY_KERNEL	4u	/* this handle does not map it */

/* Until when a function waits: ns of CLOCK_MONOTONIC. */
#define STARGATE_TRY		((uint64_t)0)	/* not at all: EAGAIN */
#define STARGATE_FOREVER	(~(uint64_t)0)
uint64_t stargate_in(uint64_t ns);		/* so long from now */

const char *stargate_why(int err);

/* --- objects ---------------------------------------------------------------------------------- */

/**
 * struct stargate_new - an object to make
 * @flags: STARGATE_RECURSIVE, ... @mode: permissions, less the umask.
 * @initial: semaphore: its value; barrier: for how many it is.
 */
struct stargate_new {
	enum stargate_type type;
	unsigned int flags, mode;
	uint64_t initial;
};

/* @volume: any path on it, NULL: the first one that is mounted. Opened if it is there already. */
int stargate_create(stargate_sem **out, const char *volume, const char *name,
		    const struct stargate_new *what, unsigned int how);
int stargate_open(stargate_sem **out, const char *volume, const char *name,
		  enum stargate_type type, unsigned int how);
void stargate_close(stargate_sem *s);
/* The name goes; who has it open keeps it. */
int stargate_remove(const char *volume, const char *name);
/* As it was made, whoever has it: for its owner. */
int stargate_reset(const char *volume, const char *name);

/**
 * struct stargate_stat - what an object is at this moment
 * @flags: STARGATE_RECURSIVE, ... @users, @waiters: a bit for each system.
 * @value: semaphore, event: that; mutex: 1 if it is locked; reader-writer lock: readers;
 *	barrier: who has arrived; condition: signals.
 * @slot, @pid, @tid, @comm, @system: the owner; @slot -1: none. @since: ns since the epoch.
 * @died: an owner has died, and nobody has made it consistent; @lost: nor ever will.
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
/* Calls @fn for each object, in no order, until it returns not 0, which is returned. */
int stargate_list(const char *volume, int (*fn)(void *ctx, const struct stargate_stat *st),
		  void *ctx);

/* --- mutex ------------------------------------------------------------------------------------ */

/*
 * EOWNERDEAD: locked, but somebody died with it: repair what it protects, then make it consistent.
 * Unlocked without that it is lost, for all: ENOTRECOVERABLE. EDEADLK, EPERM: the caller has it, or
 * not. All that waits: EAGAIN, ETIMEDOUT, EINTR (a signal handler without SA_RESTART).
 */
int stargate_mutex_lock(stargate_sem *s, uint64_t until);
int stargate_mutex_unlock(stargate_sem *s);
/* Also of a reader-writer lock, for who has it for writing. */
int stargate_consistent(stargate_sem *s);

/* --- semaphore -------------------------------------------------------------------------------- */

int stargate_sem_wait(stargate_sem *s, uint64_t until);
int stargate_sem_post(stargate_sem *s);

/* --- reader-writer lock ----------------------------------------------------------------------- */

/* EOWNERDEAD: a writer died with it; so it says until another one has made it consistent. */
int stargate_read_lock(stargate_sem *s, uint64_t until);
int stargate_read_unlock(stargate_sem *s);
int stargate_write_lock(stargate_sem *s, uint64_t until);
int stargate_write_unlock(stargate_sem *s);

/* --- condition, barrier, event counter -------------------------------------------------------- */

/* @mutex is unlocked meanwhile, and locked again whatever is returned. */
int stargate_cond_wait(stargate_sem *s, stargate_sem *mutex, uint64_t until);
/* The same in two steps, without a mutex: signals from the look on are not missed. */
int stargate_cond_look(stargate_sem *s, uint64_t *seen);
int stargate_cond_wait_from(stargate_sem *s, uint64_t seen, uint64_t until);
int stargate_cond_signal(stargate_sem *s);
int stargate_cond_broadcast(stargate_sem *s);

/* *last, unless NULL: 1 for one of those who have met. */
int stargate_barrier_wait(stargate_sem *s, uint64_t until, int *last);

int stargate_event_advance(stargate_sem *s, uint64_t by);
int stargate_event_read(stargate_sem *s, uint64_t *count);
int stargate_event_await(stargate_sem *s, uint64_t count, uint64_t until);

/* --- files ------------------------------------------------------------------------------------ */

/**
 * struct stargate_map - a file, open and mapped whole
 */
struct stargate_map {
	void *base;
	size_t size;
	int fd;
};
/* @flags: of open(2). What may be written is made at least @size long. EINVAL: it is empty. */
int stargate_map_file(struct stargate_map *m, const char *path, int flags, mode_t mode,
		      size_t size);
/* As long as the file is by now; its address may change. */
int stargate_map_again(struct stargate_map *m);
void stargate_unmap(struct stargate_map *m);
/* Until the file has @size bytes, whoever in whichever system makes it grow. */
int stargate_await_size(int fd, uint64_t size, uint64_t until);

/*
 * One producer and one consumer, in whichever systems, of a ring of @room bytes that both have
 * mapped: two event counters, NAME.published and NAME.consumed, say how far each has come.
 */
typedef struct stargate_cursor stargate_cursor;
int stargate_cursor_open(stargate_cursor **out, const char *volume, const char *name,
			 uint64_t room);
void stargate_cursor_close(stargate_cursor *c);
/* Where in the ring the next bytes go, and how many can, in one piece; waits until there is one. */
int stargate_publish_at(stargate_cursor *c, uint64_t *at, uint64_t *room, uint64_t until);
int stargate_publish(stargate_cursor *c, uint64_t bytes);
/* Where they are to be had. */
int stargate_consume_at(stargate_cursor *c, uint64_t *at, uint64_t *bytes, uint64_t until);
int stargate_consume(stargate_cursor *c, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
