/* SPDX-License-Identifier: GPL-2.0 */
/* The engine's interface, its part on shared semaphores. Included by engine.h alone. */
#ifndef SG_ENGINE_SEM_H
#define SG_ENGINE_SEM_H

/**
 * struct sg_sem_new - what to create
 * @type: SG_SEM_MUTEX...; @life: SG_SEM_PERSISTENT, ...; @flags: SG_SEM_RECURSIVE, ...
 * @initial: semaphore: its value; barrier: for how many it is, at least 1.
 */
struct sg_sem_new {
	unsigned int type, life, flags;
	u32 uid, gid, mode;
	u64 initial;
	s64 now;
};

/**
 * struct sg_sem - an object that somebody of this system has open. In the system's own memory.
 * @words: offset in the volume of its words; a page of its own, if flags say SG_SEM_MAPPED.
 * @cell: of a reader-writer lock: where readers of this opener are counted. One that the opener may
 * change itself, if >= SG_SEM_CELL_FIRST; else only through here.
 */
struct sg_sem {
	u64 rec, words, side;
	u64 head;
	unsigned int type, flags, cell;
	u64 reads;		/* that this opener has of the system's cell */
};

/**
 * struct sg_sem_caller - a thread that uses objects: it can own locks, and wait.
 * @me: what stands in the words of what it owns.
 * @urgent: a hint: it does not wait behind others of its system, nor for long to be asked for.
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
};

#define SG_SEM_NEVER	(~0ULL)

struct sg_sem_stat {
	unsigned int type, life, flags;
	u32 uid, gid, mode, serial;
	u64 created, users, waiters, initial;
	u64 value;		/* semaphore, counters; barrier: arrived; others: readers */
	bool died, lost;	/* an owner died and nobody has made it consistent; never was */
	int slot;		/* of the owner, or -1 */
	u32 pid, tid;
	u64 since;		/* ns since the epoch: when the owner began to use objects */
	char comm[16];
};

/*
 * Creates and opens. -EEXIST with @exclusive; else what is there is opened. -EINVAL,
 * -ENAMETOOLONG: a name is 1 to SG_SEM_NAME_MAX bytes without / and zeroes. @user: for a process
 * that maps the words, if the object's flags allow it.
 */
int sg_sem_create(struct sg_vol *vol, const char *name, u32 len, const struct sg_sem_new *new,
		  bool exclusive, bool user, struct sg_sem *out);
/* -ENOENT; -EINVAL: it is of another @type (0: of any). */
int sg_sem_open(struct sg_vol *vol, const char *name, u32 len, unsigned int type, bool user,
		struct sg_sem *out);
/* The opener has nothing locked. What it still reads is given back. */
void sg_sem_close(struct sg_vol *vol, struct sg_sem *sem);
/* The same for who may not wait: only what it still reads is given back now, the rest later. */
void sg_sem_close_later(struct sg_vol *vol, struct sg_sem *sem);
/*
 * Who has it open keeps it, without a name. What a name stands for may change between a look and
 * this: @serial is what sg_sem_stat() said of the object that is meant, and -ESTALE says that it is
 * another one by now. SG_SEM_ANY: whichever it is.
 */
#define SG_SEM_ANY	(~0ULL)
int sg_sem_unlink(struct sg_vol *vol, const char *name, u32 len, u64 serial);
int sg_sem_stat(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_stat *out);
int sg_sem_fstat(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out);
/* By name, whatever anybody has: as it was made, and all who sleep look again. @serial likewise. */
int sg_sem_reset(struct sg_vol *vol, const char *name, u32 len, u64 serial);
/* *cookie: 0 begins. @emit must not sleep, nor call the engine; false: stop before that one. */
typedef bool (*sg_sem_emit)(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st);
int sg_sem_list(struct sg_vol *vol, u64 *cookie, sg_sem_emit emit, void *ctx);

/* A thread begins to use objects; its end gives back all that it owns, as left by the dead. */
int sg_sem_enter(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		 struct sg_sem_caller *caller);
void sg_sem_exit(struct sg_vol *vol, struct sg_sem_caller *caller);
/* Its wait ends with -EINTR, now or whenever it begins; from another thread. */
void sg_sem_cancel(struct sg_sem_caller *caller);

/*
 * All that waits does so until @until, by sg_ticks(): 0: not at all (-EAGAIN), SG_SEM_NEVER: for
 * ever. -ETIMEDOUT; -EINTR: by a signal; -EIO: we have been declared dead, or the object is in bad
 * memory; -EINVAL: another type.
 * -EOWNERDEAD: it is ours, as with 0, but somebody died who had it.
 */
int sg_sem_lock(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_unlock(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_consistent(struct sg_vol *vol, const struct sg_sem *sem, const struct sg_sem_caller *c);
int sg_sem_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_post(struct sg_vol *vol, const struct sg_sem *sem);	/* -EOVERFLOW */
/*
 * The same as a process does it by itself that has mapped the words: by one locked instruction, if
 * nobody is in the way. False: nothing is done, for whatever reason: the calls above know it.
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
/* For who has taken the word of a reader-writer lock itself: until readers are gone. */
int sg_sem_drain(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
/* For who has given back itself, and been told that somebody waits. */
void sg_sem_ring(struct sg_vol *vol, const struct sg_sem *sem);
/*
 * Condition: what prepare says is what wait compares with, so that nothing is missed between
 * giving back a mutex and waiting. Signal wakes one at least.
 */
int sg_sem_cond_prepare(struct sg_vol *vol, const struct sg_sem *sem, u64 *seen);
int sg_sem_cond_wait(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		     u64 seen, u64 until);
int sg_sem_cond_signal(struct sg_vol *vol, const struct sg_sem *sem, bool all);
/* 1 for one of those who have met, 0 for the others. */
int sg_sem_meet(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c, u64 until);
int sg_sem_advance(struct sg_vol *vol, const struct sg_sem *sem, u64 by); /* -EOVERFLOW */
int sg_sem_await(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_caller *c,
		 u64 count, u64 until);

/*
 * Sleeps until it may be that somebody of ours is to be woken, and wakes him; a second at most. For
 * a thread that does nothing else: others ring by a store, which somebody has to see. Without it
 * each who waits looks himself.
 */
void sg_sem_poll(struct sg_vol *vol);
void sg_sem_poll_begin(struct sg_vol *vol, bool on);	/* there is such a thread */
/* A doorbell of this system has rung, wherever there are doorbells (sg_vol.ring). */
void sg_sem_rung(struct sg_vol *vol);

#endif
