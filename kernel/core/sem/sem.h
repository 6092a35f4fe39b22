/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores: declarations that sem_*.c share. docs/semaphores.md explains them.
 *
 *   sem_table.c	objects: where they are, creation and removal
 *   sem_open.c		which systems have them open, and their state after that
 *   sem_list.c		listing and status
 *   sem_member.c	owners of locks, and whether they are live
 *   sem_wait.c		waiting and waking, for all types
 *   sem_mutex.c	mutexes, semaphores
 *   sem_rw.c		reader-writer locks
 *   sem_event.c	conditions, barriers, event counters
 *   sem_ring.c		rings: their data, their parts, and claims of dead readers
 *   sem_watch.c	waiting for a ring without a thread
 */
#ifndef SG_SEM_H
#define SG_SEM_H

#include "internal.h"
#include "uapi/semword.h"

/* --- the file (sem_table.c) ------------------------------------------------------------------ */

static inline struct sg_iref sg_sem_file(void)
{
	return sg_sys_ref(SG_SYS_SEMS);
}
/* Returns the offset of a page of the file. 0: the page does not exist, or *err is set. */
u64 sg_sem_page_at(const struct sg_vol *vol, u64 page, int *err);
static inline bool sg_sem_has_words(unsigned int type, unsigned int flags)
{
	return flags & SG_SEM_MAPPED || type == SG_SEM_RWLOCK;
}
static inline bool sg_sem_has_side(unsigned int type)
{
	return type == SG_SEM_RWLOCK || type == SG_SEM_BARRIER || type == SG_SEM_RING;
}
static inline u64 sg_sem_chain(u64 hash)
{
	return hash % SG_SEM_CHAINS;
}
u64 sg_sem_hash(const struct sg_vol *vol, const void *name, u32 len);
/*
 * Returns the file page of an object's words, computed from its record's place. The side page is
 * the next one.
 */
static inline u64 sg_sem_words_page(u64 page, unsigned int i)
{
	return SG_SEM_WORDS_PAGE + 2 * (page * 8 + i);
}
/* Returns the first page of a ring's data. */
static inline u64 sg_sem_ring_page(u64 page, unsigned int i)
{
	return SG_SEM_RINGS_PAGE + SG_RING_PAGES_MAX * (page * 8 + i);
}
static inline bool sg_sem_ring_size_fits(u64 bytes)
{
	return bytes >= SG_RING_MIN && bytes <= SG_RING_MAX && !(bytes & (bytes - 1));
}
/* Reports whether this cell's owner is live, or not yet recovered. */
bool sg_sem_cell_counts(const struct sg_vol *vol, u64 own);
u64 sg_sem_cell_value(const struct sg_vol *vol, const struct sg_sem *sem, unsigned int i);
/* Subtracts @n readers, but not below 0: a user may have reset the object. */
void sg_sem_cell_less(u64 *cell, u64 n);
u64 sg_sem_arrived(const struct sg_vol *vol, const struct sg_sem *sem);
/* Reports whether an object can have this head. */
bool sg_sem_head_known(u64 head);

bool sg_sem_is_bad(const struct sg_vol *vol, const struct sg_sem *sem);
/*
 * Reports whether pages of an open object are now bad. The engine does not access the object's
 * words any more, not even to unlock it. Bits that this system has set there remain until another
 * system has its slot.
 */
static inline bool sg_sem_lost(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_has_bad(vol) && sg_sem_is_bad(vol, sem);
}
/*
 * Checks that an open object is usable; called before each use, and after each sleep. False: the
 * caller returns -EIO.
 */
static inline bool sg_sem_usable(struct sg_vol *vol, const struct sg_sem *sem)
{
	return !sg_is_silenced(vol) && !sg_sem_lost(vol, sem);
}

static inline u64 *sg_sem_word(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return &((struct sg_semwords *)sg_at(vol, sem->words))->word;
}
static inline struct sg_sem_record *sg_sem_record(const struct sg_vol *vol,
						  const struct sg_sem *sem)
{
	return sg_at(vol, sem->rec);
}
static inline struct sg_sem_waits *sg_sem_waits(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_at(vol, sem->waits);
}

/**
 * struct sg_sem_spot - the place of an existing or possible object.
 * @page: page of the file; @off: volume offset of the record, 0: the page is missing; @i: index in
 * the page.
 */
struct sg_sem_spot {
	u64 page, off;
	unsigned int i;
};
#define SG_SEM_FIELD(s, f)	((s)->off + offsetof(struct sg_sem_record, f))
static inline u64 sg_sem_record_off(u64 page_off, unsigned int i)
{
	return page_off + offsetof(struct sg_sem_page, record) + i * sizeof(struct sg_sem_record);
}
/* Calls @fn for each record of a page, until it returns something other than 0. */
typedef int (*sg_sem_on_spot)(struct sg_vol *vol, const struct sg_sem_spot *s, void *ctx);
int sg_sem_each_in_page(struct sg_vol *vol, u64 page, sg_sem_on_spot fn, void *ctx);
/**
 * struct sg_sem_search - a name to look up
 * @found: its place, if it exists (@has). @room: a possible place for it: an unused record
 * (@has_room), or a missing page (@has_hole).
 */
struct sg_sem_search {
	const char *name;
	u32 len;
	u64 hash;
	struct sg_sem_spot found, room;
	bool has, has_room, has_hole;
};
int sg_sem_name_fits(const char *name, u32 len);	/* 0, -EINVAL, -ENAMETOOLONG */
/* Transactions that change the file. With @try, the begin may return NULL, as sg_tx_try() does. */
struct sg_tx *sg_sem_tx_begin(struct sg_vol *vol, bool try);
int sg_sem_tx_commit(struct sg_tx *tx);
/* Locks the file until sg_sem_end(), if it returns 0. The functions below need that lock. */
int sg_sem_begin(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_search *q);
void sg_sem_end(struct sg_vol *vol);
/* Makes an object in @q->room, and sets @q->found to its place. */
int sg_sem_make(struct sg_vol *vol, struct sg_sem_search *q, const struct sg_sem_new *new);
/*
 * Removes an object that no system has open: its pages, and its record's page if that has no other
 * record.
 */
int sg_sem_destroy(struct sg_vol *vol, const struct sg_sem_spot *s);
/* As sg_sem_remove(), for callers that must not wait for other systems: returns -EBUSY instead. */
int sg_sem_destroy_try(struct sg_vol *vol, const struct sg_sem_spot *s);

/* --- openers (sem_open.c) -------------------------------------------------------------------- */

bool sg_sem_is_used(const struct sg_vol *vol, const struct sg_sem_spot *s);
/*
 * Reports whether only the record of an object remains. No system has such an object open, and it
 * has no name, or its lifetime ended with its last user.
 */
bool sg_sem_is_over(const struct sg_vol *vol, const struct sg_sem_spot *s);
/* Reports whether the object has this serial number; SG_SEM_ANY matches any. */
bool sg_sem_is_meant(const struct sg_vol *vol, const struct sg_sem_spot *s, u64 serial);
/* Finds the words of an object without opening it. */
int sg_sem_look_at(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out);
u64 sg_sem_first_word(unsigned int type, u64 initial);
/*
 * Restores an object after all systems that had it open have ended, and not all of them closed it.
 * A lock may protect an incomplete change, so its next owner gets -EOWNERDEAD. A semaphore gets its
 * first value. Counters only grow, and cells of dead systems do not count. @force: a lock becomes
 * free, and threads that wait at a barrier continue.
 */
void sg_sem_reset_words(struct sg_vol *vol, const struct sg_sem *sem, bool force);
void sg_sem_set_durably(struct sg_vol *vol, u64 off, u64 val);
/*
 * Reports whether a process of a fenced system may still store into this cell, so that no other
 * process may get it.
 */
bool sg_sem_cell_lapses(const struct sg_vol *vol, u64 own);

/* --- rings (sem_ring.c) ---------------------------------------------------------------------- */

/*
 * Both functions need the file's lock. sg_sem_ring_fill() makes every page of the data, zeroed.
 * While a ring is being made or removed, it has SG_SEM_REMOVED and no name, so after a crash it is
 * freed. sg_sem_ring_cut() removes the data; @try: it does not wait for other systems (-EBUSY).
 */
int sg_sem_ring_fill(struct sg_vol *vol, const struct sg_sem_spot *s, u64 size);
int sg_sem_ring_cut(struct sg_vol *vol, const struct sg_sem_spot *s, bool try);
/* Finds the size and data of a ring. -EUCLEAN: a page is missing. */
int sg_sem_ring_find(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out);
static inline bool sg_sem_ring_allowed(const struct sg_vol *vol)
{
	return vol->sb.ro_compat & SG_RO_COMPAT_RINGS;
}
/*
 * Makes sure, before the first ring, that the software of all systems supports rings, now and
 * later. The caller must not have the file locked. A system that makes the volume grow holds the
 * lock for which this function waits, and then waits for the file's lock.
 */
int sg_sem_ring_allow(struct sg_vol *vol);
/* Makes a ring empty and free of claims, after all systems that used it died, or with @force. */
void sg_sem_ring_reset(struct sg_vol *vol, const struct sg_sem *sem, bool force);
/* Ends the reader of this descriptor. */
void sg_sem_ring_give_cell(struct sg_vol *vol, struct sg_sem *sem);
/*
 * Makes a ring's data durable, before the record is marked as closed. Called when the last user
 * closes the ring.
 */
void sg_sem_ring_write_back(struct sg_vol *vol, const struct sg_sem *sem);
u64 sg_sem_ring_used(struct sg_vol *vol, const struct sg_sem *sem);
u64 sg_sem_ring_tail(const struct sg_vol *vol, const struct sg_sem *ring);
/*
 * These two functions report whether there is a record, and whether half of the ring is free. Both
 * also return true if the ring's words are forged. The caller then takes its turn, which fails.
 */
bool sg_sem_ring_has_record(const struct sg_vol *vol, const struct sg_sem *ring);
bool sg_sem_ring_has_room(const struct sg_vol *vol, const struct sg_sem *ring);

/* --- members (sem_member.c) ------------------------------------------------------------------ */

enum sg_sem_life { SG_SEM_LIVE, SG_SEM_DEAD, SG_SEM_UNKNOWN };
/*
 * Returns the state of the owner that a word names. DEAD: its thread, process or system has ended,
 * and the system has been recovered. UNKNOWN: such an owner never existed.
 */
enum sg_sem_life sg_sem_owner(struct sg_vol *vol, u64 word);
bool sg_sem_member_read(const struct sg_vol *vol, u64 word, struct sg_sem_member *out);
/*
 * Reports whether the owner in the word of a taken lock is not live. The lock of a ring remains
 * taken during its owner's lapse. Logs an owner that never existed.
 */
bool sg_sem_is_left(struct sg_vol *vol, const struct sg_sem *sem, u64 word);
bool sg_sem_owner_may_store(const struct sg_vol *vol, const struct sg_sem *sem, u64 word);

/* --- waiting (sem_wait.c) -------------------------------------------------------------------- */

/**
 * struct sg_sem_want - the condition for which a caller waits
 * @look: checks it: 0 or another result; -EAGAIN: not yet. Once the caller is @queued, it must set
 *   the flag in the word, so that each giver rings.
 * @takes: a lock, which one caller at a time gets, in turn. Otherwise all callers get the object
 *   when they check.
 * @herd: a ring wakes all waiters of this system, otherwise only the first one.
 * @free_since: when the word was first seen free, during another system's turn.
 */
struct sg_sem_want {
	struct sg_vol *vol;
	const struct sg_sem *sem;
	struct sg_sem_caller *c;
	int (*look)(struct sg_sem_want *w);
	bool takes, herd;
	u64 arg;
	/* the rest is private to sem_wait.c */
	u64 until, since, free_since, free_word;
	bool queued, others;
};

int sg_sem_wait_for(struct sg_sem_want *w, u64 until);
/* Reports whether this caller may take a free object. Otherwise another waiter has the turn. */
bool sg_sem_may_take(struct sg_sem_want *w, u64 word);
/* Called after this caller has taken the object; @word: the word's value before. */
void sg_sem_taken(const struct sg_sem_want *w, u64 word);
/*
 * For a check that ends with "not yet": sets the flag in the word that a thread sleeps, if the word
 * is unchanged.
 */
int sg_sem_not_yet(struct sg_sem_want *w, u64 word);
/*
 * Access to this system's list of waiters, for sem_watch.c. sg_sem_note_others() records whether
 * another system has the object open.
 */
void sg_sem_queue(struct sg_sem_want *w);
void sg_sem_leave(struct sg_sem_want *w);
void sg_sem_note_others(struct sg_sem_want *w, bool waits);
/*
 * Reports whether a check is due although no giver has rung (sem_watch.c). The list's lock is held.
 */
bool sg_sem_watch_is_due(struct sg_vol *vol, struct sg_sem_watch *w);
#define SG_SEM_CHANGED	1	/* the word has changed meanwhile: check again */
/*
 * Returns the flags that remain in a word when it is released. The caller must then call
 * sg_sem_given() with them.
 */
u64 sg_sem_flags_left(const struct sg_vol *vol, const struct sg_sem *sem, u64 word);
/* Called after a word was released with these flags: wakes the next waiter, or all waiters. */
void sg_sem_given(struct sg_vol *vol, const struct sg_sem *sem, u64 left, bool all);
void sg_sem_wake_next(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_all(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_slot(struct sg_vol *vol, const struct sg_sem *sem, unsigned int slot);

/**
 * struct sg_sems - one system's use of semaphores, in the system's own memory.
 * @first: list of the callers that wait; those that wait for one object are adjacent, in order.
 * @open: number of this system's openers of each object, by record; needs the file's lock.
 * @closing: objects closed while the volume could not be changed, or while another system had the
 *   file locked; guarded by @spin.
 * @nothers: number of waiting callers whose object another system has open, too. @watches: number
 * of watches among the waiters, which cannot check themselves; @watched: time of their last check.
 * @rung: value of this system's bell at the last check; @rings: doorbells received by then.
 * @busy: when the bell last rang, or when a caller last began to wait.
 * @said: time of the last line in the log.
 * @bells: an object was opened here, so the file's page of bells exists or is needed.
 * @polled: a thread of this system polls the bell (sg_sem_poll()), and sleeps at @poller.
 * @patience: how long to spin before a sleep, by record, and how often that was too short.
 */
#define SG_SEM_BELLS_WANTED	1
#define SG_SEM_BELLS_MADE	2
#define SG_SEM_BUCKETS	256
struct sg_sem_opened {
	u64 rec, n;
	struct sg_sem_opened *next;
};
struct sg_sem_closing {
	struct sg_sem sem;
	struct sg_sem_closing *next;
};
struct sg_sems {
	struct sg_spin spin;
	struct sg_sem_caller *first;
	u64 nothers, rung, rings, busy, spins, polled, said, bells, watches, watched;
	struct sg_bell poller;
	u64 member[SG_SEM_MEMBERS / 64];	/* one bit for each: in use */
	struct sg_sem_opened *open[SG_SEM_BUCKETS];
	struct sg_sem_closing *closing;
	struct sg_sem_patience {
		u64 ns, missed;
	} patience[SG_SEM_BUCKETS];
};

#define SG_SEM_BUCKET(rec) ((rec) / sizeof(struct sg_sem_record) % SG_SEM_BUCKETS)

static inline struct sg_sem_patience *sg_sem_patience(struct sg_sems *s, u64 rec)
{
	return &s->patience[SG_SEM_BUCKET(rec)];
}

#endif
