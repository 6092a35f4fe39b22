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
 * struct sg_sem - an object that a user of this system has open. In the system's own memory.
 * @words: volume offset of its words; a page of its own if flags have SG_SEM_MAPPED.
 * @cell: reader-writer lock: the cell that counts this opener's readers. From SG_SEM_CELL_FIRST on,
 *   the opener may change it directly; otherwise only through the engine. Ring: from the first
 *   sg_sem_ring_reader() on.
 * @waits: volume offset of its struct sg_sem_waits. @size, @data: ring: bytes, and the first page
 *   of the data in the file.
 */
struct sg_sem {
	u64 rec, words, side, waits;
	u64 size, data;
	u64 head;
	unsigned int type, flags, cell;
	u64 reads;		/* this opener's part of the system's cell */
};

/**
 * struct sg_sem_caller - a thread that uses objects: it can own locks, and wait.
 * @me: its name in the words of locks that it owns.
 * @urgent: a hint: it goes before other callers of its system, and asks for its turn at once.
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
	struct sg_sem_watch *watch;	/* of which it is a part, or NULL */
};

#define SG_SEM_NEVER	(~0ULL)

struct sg_sem_stat {
	unsigned int type, life, flags;
	u32 uid, gid, mode, serial;
	u64 created, users, waiters, initial;
	/* semaphore, counters: the value; barrier: arrivals; ring: bytes in use; others: readers */
	u64 value;
	u64 claims_lost, sent, receivers;	/* ring */
	/* an owner died: the object is not yet consistent again; or it never was made so */
	bool died, lost;
	int slot;		/* of the owner, or -1 */
	u32 pid, tid;
	u64 since;		/* ns since the Unix epoch: when the owner began to use objects */
	char comm[16];
};

/*
 * Creates and opens an object. If it exists: -EEXIST with @exclusive, otherwise the call opens it.
 * -EINVAL, -ENAMETOOLONG: a name has 1 to SG_SEM_NAME_MAX bytes, without / and zeroes. @user: for a
 * process that maps the words, if the object's flags allow it.
 */
int sg_sem_create(struct sg_vol *vol, const char *name, u32 len, const struct sg_sem_new *new,
		  bool exclusive, bool user, struct sg_sem *out);
/* -ENOENT; -EINVAL: the object has another type than @type (0: any). */
int sg_sem_open(struct sg_vol *vol, const char *name, u32 len, unsigned int type, bool user,
		struct sg_sem *out);
/*
 * The opener holds no lock. Its reads are given back at once, and the rest as soon as no other
 * system has the objects' file locked. The call waits only briefly for that.
 */
void sg_sem_close(struct sg_vol *vol, struct sg_sem *sem);
/*
 * As sg_sem_close(), for callers that may not wait: only reads are given back now, the rest later.
 */
void sg_sem_close_later(struct sg_vol *vol, struct sg_sem *sem);
/*
 * An opener keeps the object, without a name. Another object may get the name between a look and
 * this call. @serial is the number from sg_sem_stat() of the object that the caller means; -ESTALE:
 * the name belongs to another object now. SG_SEM_ANY: any object.
 */
#define SG_SEM_ANY	(~0ULL)
int sg_sem_unlink(struct sg_vol *vol, const char *name, u32 len, u64 serial);
int sg_sem_stat(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_stat *out);
int sg_sem_fstat(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out);
/*
 * By name: sets the object to its first state, whoever holds it; all sleepers look again. @serial
 * as for sg_sem_unlink().
 */
int sg_sem_reset(struct sg_vol *vol, const char *name, u32 len, u64 serial);
/*
 * *cookie: 0 begins. @emit must not sleep, nor call the engine; if it returns false, the listing
 * stops before that object.
 */
typedef bool (*sg_sem_emit)(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st);
int sg_sem_list(struct sg_vol *vol, u64 *cookie, sg_sem_emit emit, void *ctx);

/*
 * A thread begins to use objects. sg_sem_exit() gives back all that it owns, as a dead owner leaves
 * it.
 */
int sg_sem_enter(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		 struct sg_sem_caller *caller);
/* The same without a transaction, for a frozen mount. -EAGAIN: that needs sg_sem_enter(). */
int sg_sem_enter_as_is(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		       struct sg_sem_caller *caller);
void sg_sem_exit(struct sg_vol *vol, struct sg_sem_caller *caller);
/* Called by another thread: the caller's present wait, and each later one, ends with -EINTR. */
void sg_sem_cancel(struct sg_sem_caller *caller);

/*
 * All waits last until @until, in sg_ticks(). 0: do not wait (-EAGAIN). SG_SEM_NEVER: no limit.
 * -ETIMEDOUT; -EINTR: by a signal; -EIO: this system has been fenced, or the object is on bad
 * pages; -EINVAL: another type. -EOWNERDEAD: the caller owns the lock, as with 0, but its earlier
 * owner died.
 */
int sg_sem_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_unlock(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_consistent(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_post(struct sg_vol *vol, const struct sg_sem *sem);	/* -EOVERFLOW */
/*
 * The same by one locked instruction, as a process that has mapped the words does it, if no other
 * caller is in the way. False: nothing was done, for any reason; the calls above find the reason.
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
 * For a caller that has taken the word of a reader-writer lock itself: waits until readers are
 * gone.
 */
int sg_sem_drain(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
/* For a caller that has given back the word itself, and found the flag for waiters. */
void sg_sem_ring(struct sg_vol *vol, const struct sg_sem *sem);
/*
 * Condition: wait compares the count with the one that prepare returned. So a caller misses no
 * signal between giving back its mutex and waiting. A signal wakes at least one waiter.
 */
int sg_sem_cond_prepare(struct sg_vol *vol, const struct sg_sem *sem, u64 *seen);
int sg_sem_cond_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		     u64 seen, u64 until);
int sg_sem_cond_signal(struct sg_vol *vol, const struct sg_sem *sem, bool all);
/* 1 for one of the threads that have met, 0 for the others. */
int sg_sem_meet(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_advance(struct sg_vol *vol, const struct sg_sem *sem, u64 by); /* -EOVERFLOW */
int sg_sem_await(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		 u64 count, u64 until);

/*
 * Rings. Processes send and receive by themselves (uapi/ringword.h). The rest is here: the lock,
 * and waiting, by sg_sem_lock(), sg_sem_await(), ... on a part of the ring (SG_RING_LOCK, ...).
 */
int sg_sem_ring_part(const struct sg_sem *ring, unsigned int part, struct sg_sem *out);
/*
 * -EBUSY: the ring is SG_SEM_SINGLE, and has a reader. -EUSERS: all cells are in use. -ETIMEDOUT,
 * or -EAGAIN without @until: another system has the objects' file locked.
 */
int sg_sem_ring_reader(struct sg_vol *vol, struct sg_sem *ring, u64 until);
/*
 * Ends the claims of dead readers, and wakes a writer that waits for room. Does nothing while
 * another system has the objects' file locked: callers hold the ring's lock, and come again.
 */
int sg_sem_ring_sweep(struct sg_vol *vol, const struct sg_sem *ring);
/* Volume offset of page @i of the data; 0: there is none, or it is lost. */
u64 sg_sem_ring_at(const struct sg_vol *vol, const struct sg_sem *ring, u64 i);

/**
 * struct sg_sem_watch - somebody waits for a ring without a thread of its own, as poll() does
 * @part: for records (SG_RING_TAIL), or for room (SG_RING_ROOM). @armed: it is among the waiters.
 * @edge: a poller is edge-triggered: it stays there. @ready: the last look has found something;
 *	then the thread that polls rings only after a sender has moved the tail from @tail.
 */
struct sg_sem_watch {
	struct sg_sem ring, part;
	struct sg_sem_caller caller;
	bool room, armed, others, edge;
	u64 ready, tail;
};
void sg_sem_watch_begin(struct sg_sem_watch *w, const struct sg_sem *ring, bool room);
/*
 * 1: there is a record, or half of the ring is free. 0: not yet; the caller's bell rings when it is
 * time to look again. -EIO: this system has been fenced, or the ring's memory is bad. One call at a
 * time.
 *
 * @edge: the caller looks again only after the bell, also after 1. From the first such call on the
 * watch stays among the waiters.
 */
int sg_sem_watch_look(struct sg_vol *vol, struct sg_sem_watch *w, bool edge);
void sg_sem_watch_end(struct sg_vol *vol, struct sg_sem_watch *w);

/*
 * Sleeps until a sleeper of this system may have to be woken, and wakes it; at most a second. For a
 * thread that does nothing else: other systems ring by a store, which a thread here has to load.
 * Without such a thread each waiter looks itself.
 */
void sg_sem_poll(struct sg_vol *vol);
void sg_sem_poll_begin(struct sg_vol *vol, bool on);	/* such a thread exists, or no longer */
/* A doorbell interrupt has reached this system, if doorbells exist (sg_vol.ring). */
void sg_sem_rung(struct sg_vol *vol);

#endif
