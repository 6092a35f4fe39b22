/* SPDX-License-Identifier: GPL-2.0 */
/* The part of the engine's interface for shared semaphores. Only engine.h includes it. */
#ifndef SG_ENGINE_SEM_H
#define SG_ENGINE_SEM_H

/**
 * struct sg_sem_new - a new object
 * @type: SG_SEM_MUTEX...; @life: SG_SEM_PERSISTENT, ...; @flags: SG_SEM_RECURSIVE, ...
 * @initial: semaphore: its value; barrier: the number of threads that meet, at least 1; ring: its
 *   size in bytes.
 */
struct sg_sem_new {
	unsigned int type, life, flags;
	u32 uid, gid, mode;
	u64 initial;
	s64 now;
};

/**
 * struct sg_sem - an object that a user of this system has open; the struct is in the system's own
 * memory.
 * @words: volume offset of its words; with SG_SEM_MAPPED in flags they have their own page.
 * @cell: reader-writer lock: the cell that counts this opener's readers. If it is SG_SEM_CELL_FIRST
 * or higher, the opener may change it directly; otherwise only through the engine. Ring: the
 * reader's cell, set by sg_sem_ring_reader().
 * @waits: volume offset of its struct sg_sem_waits. @size, @data: ring: bytes, and the first page
 *   of the data in the file.
 */
struct sg_sem {
	u64 rec, words, side, waits;
	u64 size, data;
	u64 head;
	unsigned int type, flags, cell;
	u64 reads;		/* the number of this opener's readers in the system's cell */
};

/**
 * struct sg_sem_caller - a thread that uses objects; it can own locks, and can wait.
 * @me: its id in the words of locks that it owns.
 * @urgent: a hint: the system serves it before its other callers, and requests a turn immediately.
 */
struct sg_sem_caller {
	u64 me;
	bool urgent;
	/* private to the engine */
	u64 cancelled, record;
	struct sg_bell bell;
	struct sg_sem_caller *before, *after;
	u64 waits_for;
	bool herd;
	struct sg_sem_watch *watch;	/* the watch of which this caller is a part, or NULL */
};

#define SG_SEM_NEVER	(~0ULL)

struct sg_sem_stat {
	unsigned int type, life, flags;
	u32 uid, gid, mode, serial;
	u64 created, users, waiters, initial;
	/* semaphore, counters: the value; barrier: arrivals; ring: bytes in use; others: readers */
	u64 value;
	u64 claims_lost, sent, receivers;	/* ring */
	/* an owner died and the object is not yet consistent; it can never be made consistent */
	bool died, lost;
	int slot;		/* slot of the owner, or -1 */
	u32 pid, tid;
	u64 since;		/* ns since the Unix epoch: when the owner began to use objects */
	char comm[16];
};

/*
 * Creates and opens an object. If the object exists, the call opens it, or with @exclusive returns
 * -EEXIST. -EINVAL, -ENAMETOOLONG: a name has 1 to SG_SEM_NAME_MAX bytes, without / and zeroes.
 * @user: the opener is a process that maps the words, if the object's flags allow that.
 */
int sg_sem_create(struct sg_vol *vol, const char *name, u32 len, const struct sg_sem_new *new,
		  bool exclusive, bool user, struct sg_sem *out);
/* -ENOENT; -EINVAL: the object has another type than @type (0: any). */
int sg_sem_open(struct sg_vol *vol, const char *name, u32 len, unsigned int type, bool user,
		struct sg_sem *out);
/*
 * Closes the object; the opener must hold no lock. The call ends the opener's reads immediately. It
 * does the rest as soon as no other system has the objects' file locked, and waits only briefly for
 * that.
 */
void sg_sem_close(struct sg_vol *vol, struct sg_sem *sem);
/*
 * As sg_sem_close(), for callers that must not wait. The call only ends reads; the engine does the
 * rest later.
 */
void sg_sem_close_later(struct sg_vol *vol, struct sg_sem *sem);
/*
 * Removes the object's name; openers can still use the object. @serial is the number that
 * sg_sem_stat() returned for the object, as another object may have got the name since. -ESTALE:
 * the name belongs to another object now. SG_SEM_ANY: any object.
 */
#define SG_SEM_ANY	(~0ULL)
int sg_sem_unlink(struct sg_vol *vol, const char *name, u32 len, u64 serial);
int sg_sem_stat(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_stat *out);
int sg_sem_fstat(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out);
/*
 * Sets the object with this name to its first state, even if a thread holds it. All sleepers wake
 * and check the object again. @serial: as for sg_sem_unlink().
 */
int sg_sem_reset(struct sg_vol *vol, const char *name, u32 len, u64 serial);
/*
 * Lists the objects. *cookie is 0 for the first call. @emit must neither sleep nor call the engine;
 * if it returns false, the listing stops before that object.
 */
typedef bool (*sg_sem_emit)(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st);
int sg_sem_list(struct sg_vol *vol, u64 *cookie, sg_sem_emit emit, void *ctx);

/*
 * Called when a thread begins to use objects. sg_sem_exit() releases all that the thread owns, as
 * locks of a dead owner.
 */
int sg_sem_enter(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		 struct sg_sem_caller *caller);
/*
 * As sg_sem_enter(), without a transaction, for a frozen mount. -EAGAIN: only sg_sem_enter() can do
 * it.
 */
int sg_sem_enter_as_is(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		       struct sg_sem_caller *caller);
void sg_sem_exit(struct sg_vol *vol, struct sg_sem_caller *caller);
/* Called by another thread: ends the caller's current wait and each later one with -EINTR. */
void sg_sem_cancel(struct sg_sem_caller *caller);

/*
 * All waits last at most until @until, in sg_ticks(). 0: do not wait (-EAGAIN). SG_SEM_NEVER: no
 * limit. -ETIMEDOUT; -EINTR: by a signal; -EIO: this system has been fenced, or the object is on
 * bad pages; -EINVAL: the object has another type. -EOWNERDEAD: the caller owns the lock, as after
 * 0, but the previous owner died.
 */
int sg_sem_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_unlock(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_consistent(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_post(struct sg_vol *vol, const struct sg_sem *sem);	/* -EOVERFLOW */
/*
 * The same operations by one locked instruction, as a process that has mapped the words executes
 * them. False: nothing was done, because another caller uses the object, or for another reason. The
 * calls above then return the reason.
 */
bool sg_sem_lock_at_once(struct sg_vol *vol, const struct sg_sem *sem,
			 const struct sg_sem_caller *c);
bool sg_sem_unlock_at_once(struct sg_vol *vol, const struct sg_sem *sem,
			   const struct sg_sem_caller *c);
bool sg_sem_wait_at_once(struct sg_vol *vol, const struct sg_sem *sem);
bool sg_sem_post_at_once(struct sg_vol *vol, const struct sg_sem *sem);
int sg_sem_read_lock(struct sg_vol *vol, struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_read_unlock(struct sg_vol *vol, struct sg_sem *sem);
int sg_sem_write_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		      u64 until);
int sg_sem_write_unlock(struct sg_vol *vol, const struct sg_sem *sem,
			const struct sg_sem_caller *c);
/*
 * Waits until a reader-writer lock has no readers, for a caller that has set its word itself.
 */
int sg_sem_drain(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
/* Wakes waiters, for a caller that has released the word itself and found the flag for waiters. */
void sg_sem_ring(struct sg_vol *vol, const struct sg_sem *sem);
/*
 * Condition: the wait compares the count with the count that sg_sem_cond_prepare() returned. So a
 * caller misses no signal between releasing its mutex and waiting. A signal wakes at least one
 * waiter.
 */
int sg_sem_cond_prepare(struct sg_vol *vol, const struct sg_sem *sem, u64 *seen);
int sg_sem_cond_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		     u64 seen, u64 until);
int sg_sem_cond_signal(struct sg_vol *vol, const struct sg_sem *sem, bool all);
/* Returns 1 to one of the threads that have met, 0 to the others. */
int sg_sem_meet(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_advance(struct sg_vol *vol, const struct sg_sem *sem, u64 by); /* -EOVERFLOW */
int sg_sem_await(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		 u64 count, u64 until);

/*
 * Rings. Processes send and receive without the engine (uapi/ringword.h). The engine has the lock
 * and the waits: sg_sem_lock(), sg_sem_await(), ... with a part of the ring (SG_RING_LOCK, ...).
 */
int sg_sem_ring_part(const struct sg_sem *ring, unsigned int part, struct sg_sem *out);
/*
 * Gives the opener a reader's cell. -EBUSY: the ring is SG_SEM_SINGLE, and has a reader. -EUSERS:
 * all cells are in use. -ETIMEDOUT, or -EAGAIN without @until: another system has the objects' file
 * locked.
 */
int sg_sem_ring_reader(struct sg_vol *vol, struct sg_sem *ring, u64 until);
/*
 * Ends the claims of dead readers, and wakes a writer that waits for room. Does nothing while
 * another system has the objects' file locked, because callers hold the ring's lock; they call
 * again later.
 */
int sg_sem_ring_sweep(struct sg_vol *vol, const struct sg_sem *ring);
/* Returns the volume offset of page @i of the data; 0: the page does not exist, or is bad. */
u64 sg_sem_ring_at(const struct sg_vol *vol, const struct sg_sem *ring, u64 i);

/**
 * struct sg_sem_watch - a wait for a ring without a thread that sleeps, as poll() needs it
 * @part: a wait for records (SG_RING_TAIL), or for room (SG_RING_ROOM). @armed: it is among the
 * waiters.
 * @edge: a poller is edge-triggered: the watch stays among the waiters. @ready: the last check
 * found a record or room. The polling thread then rings only after a sender has moved the tail from
 * @tail.
 */
struct sg_sem_watch {
	struct sg_sem ring, part;
	struct sg_sem_caller caller;
	bool room, armed, others, edge;
	u64 ready, tail;
};
void sg_sem_watch_begin(struct sg_sem_watch *w, const struct sg_sem *ring, bool room);
/*
 * Checks the ring. 1: there is a record, or half of the ring is free. 0: not yet; the caller's bell
 * rings when the caller should check again. -EIO: this system has been fenced, or the ring's memory
 * is bad. Only one call at a time.
 *
 * @edge: the caller checks again only after the bell, even after a result of 1. After the first
 * such call the watch stays among the waiters.
 */
int sg_sem_watch_look(struct sg_vol *vol, struct sg_sem_watch *w, bool edge);
void sg_sem_watch_end(struct sg_vol *vol, struct sg_sem_watch *w);

/*
 * Sleeps until a sleeper of this system may have to wake, at most one second, and wakes that
 * sleeper. Other systems ring by a store, which a thread here must load; a separate thread calls
 * this function for that. Without such a thread each waiter polls.
 */
void sg_sem_poll(struct sg_vol *vol);
void sg_sem_poll_begin(struct sg_vol *vol, bool on);	/* such a thread starts or ends */
/* Called when a doorbell of another system reaches this one, also from an interrupt (rung.c). */
void sg_sem_rung(struct sg_vol *vol);

#endif
