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
/* Offset of a page of the file; 0: the page does not exist, or *err. */
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
/* File page of an object's words, computed from its record's place; the side page follows it. */
static inline u64 sg_sem_words_page(u64 page, unsigned int i)
{
	return SG_SEM_WORDS_PAGE + 2 * (page * 8 + i);
}
/* The first page of a ring's data. */
static inline u64 sg_sem_ring_page(u64 page, unsigned int i)
{
	return SG_SEM_RINGS_PAGE + SG_RING_PAGES_MAX * (page * 8 + i);
}
static inline bool sg_sem_ring_size_fits(u64 bytes)
{
	return bytes >= SG_RING_MIN && bytes <= SG_RING_MAX && !(bytes & (bytes - 1));
}
/* Is this cell's owner live, or not recovered yet? */
bool sg_sem_cell_counts(const struct sg_vol *vol, u64 own);
u64 sg_sem_cell_value(const struct sg_vol *vol, const struct sg_sem *sem, unsigned int i);
/* Subtracts @n readers, at most to 0: a user may have reset the object. */
void sg_sem_cell_less(u64 *cell, u64 n);
u64 sg_sem_arrived(const struct sg_vol *vol, const struct sg_sem *sem);
/* A head that an object can have. */
bool sg_sem_head_known(u64 head);

bool sg_sem_is_bad(const struct sg_vol *vol, const struct sg_sem *sem);
/*
 * Pages that were found when the object was opened are bad now. The engine does not touch the
 * object's words any more, not even to unlock it. Bits that this system has set there stay until
 * another system has its slot.
 */
static inline bool sg_sem_lost(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_has_bad(vol) && sg_sem_is_bad(vol, sem);
}
/* Before each use of an open object, and after each sleep; otherwise -EIO. */
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
 * struct sg_sem_spot - where an object is, or could be.
 * @page: of the file; @off: of the record in the volume, 0: the page is missing; @i: in the page.
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
 * struct sg_sem_search - a name that is looked for
 * @found: where it is, if it exists (@has). @room: where it could be: an unused record (@has_room),
 *   or a missing page (@has_hole).
 */
struct sg_sem_search {
	const char *name;
	u32 len;
	u64 hash;
	struct sg_sem_spot found, room;
	bool has, has_room, has_hole;
};
int sg_sem_name_fits(const char *name, u32 len);	/* 0, -EINVAL, -ENAMETOOLONG */
/* Transactions that change the file; begin with @try: NULL as for sg_tx_try(). */
struct sg_tx *sg_sem_tx_begin(struct sg_vol *vol, bool try);
int sg_sem_tx_commit(struct sg_tx *tx);
/* After 0 the file is locked until sg_sem_end(). The functions below need that lock. */
int sg_sem_begin(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_search *q);
void sg_sem_end(struct sg_vol *vol);
/* Makes an object in @q->room; after that it is in @q->found. */
int sg_sem_make(struct sg_vol *vol, struct sg_sem_search *q, const struct sg_sem_new *new);
/*
 * No system has it open. Removes its pages, and its record's page if it was the last record there.
 */
int sg_sem_destroy(struct sg_vol *vol, const struct sg_sem_spot *s);
/* The same, for callers that must not wait for other systems: -EBUSY. */
int sg_sem_destroy_try(struct sg_vol *vol, const struct sg_sem_spot *s);

/* --- openers (sem_open.c) -------------------------------------------------------------------- */

bool sg_sem_is_used(const struct sg_vol *vol, const struct sg_sem_spot *s);
/*
 * True if only the record is left: no system has the object open, and it has no name, or its
 * lifetime ended with the last user.
 */
bool sg_sem_is_over(const struct sg_vol *vol, const struct sg_sem_spot *s);
/* It has this serial number, or any number is meant (SG_SEM_ANY). */
bool sg_sem_is_meant(const struct sg_vol *vol, const struct sg_sem_spot *s, u64 serial);
/* Finds its words, without opening it. */
int sg_sem_look_at(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out);
u64 sg_sem_first_word(unsigned int type, u64 initial);
/*
 * All systems that had it open are gone, and not all of them closed it. A lock may protect a change
 * that is half done, and its next owner is told so. A semaphore gets its first value. Counters only
 * grow, and cells of dead systems do not count. @force: a lock becomes free, and threads that wait
 * at a barrier continue.
 */
void sg_sem_reset_words(struct sg_vol *vol, const struct sg_sem *sem, bool force);
void sg_sem_set_durably(struct sg_vol *vol, u64 off, u64 val);
/* A process of a fenced system may still store into its cell: no other process may get it. */
bool sg_sem_cell_lapses(const struct sg_vol *vol, u64 own);

/* --- rings (sem_ring.c) ---------------------------------------------------------------------- */

/*
 * With the file's lock. Fill: every page of the data exists and is zero. A ring that is being
 * made, or removed, has no name yet or any more (SG_SEM_REMOVED), so a crash leaves an object that
 * is over. Cut: its data is removed; @try: do not wait for other systems (-EBUSY).
 */
int sg_sem_ring_fill(struct sg_vol *vol, const struct sg_sem_spot *s, u64 size);
int sg_sem_ring_cut(struct sg_vol *vol, const struct sg_sem_spot *s, bool try);
/* Finds its size and data. -EUCLEAN: a page is missing. */
int sg_sem_ring_find(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out);
static inline bool sg_sem_ring_allowed(const struct sg_vol *vol)
{
	return vol->sb.ro_compat & SG_RO_COMPAT_RINGS;
}
/*
 * Before the first ring: all systems here and later know rings. Without the file's lock: a system
 * that grows the volume has the lock that this waits for, and then waits for the file's.
 */
int sg_sem_ring_allow(struct sg_vol *vol);
/* All its systems died, or @force: it is empty, and no record is claimed. */
void sg_sem_ring_reset(struct sg_vol *vol, const struct sg_sem *sem, bool force);
/* The reader of this descriptor has ended. */
void sg_sem_ring_give_cell(struct sg_vol *vol, struct sg_sem *sem);
/* The last user closes it: all data is durable before the record says so. */
void sg_sem_ring_write_back(struct sg_vol *vol, const struct sg_sem *sem);
u64 sg_sem_ring_used(struct sg_vol *vol, const struct sg_sem *sem);
u64 sg_sem_ring_tail(const struct sg_vol *vol, const struct sg_sem *ring);
/* Is there a record? Is half of the ring free? True also if the words make no sense. */
bool sg_sem_ring_has_record(const struct sg_vol *vol, const struct sg_sem *ring);
bool sg_sem_ring_has_room(const struct sg_vol *vol, const struct sg_sem *ring);

/* --- members (sem_member.c) ------------------------------------------------------------------ */

enum sg_sem_life { SG_SEM_LIVE, SG_SEM_DEAD, SG_SEM_UNKNOWN };
/*
 * Does the owner that a word names count? DEAD: its thread, process or system is gone, and the
 * system has been recovered. UNKNOWN: such an owner never existed.
 */
enum sg_sem_life sg_sem_owner(struct sg_vol *vol, u64 word);
bool sg_sem_member_read(const struct sg_vol *vol, u64 word, struct sg_sem_member *out);
/*
 * For a word that says that the lock is taken: its owner is not live. The lock of a ring stays
 * taken during its owner's lapse. Logs an owner that never existed.
 */
bool sg_sem_is_left(struct sg_vol *vol, const struct sg_sem *sem, u64 word);
bool sg_sem_owner_may_store(const struct sg_vol *vol, const struct sg_sem *sem, u64 word);

/* --- waiting (sem_wait.c) -------------------------------------------------------------------- */

/**
 * struct sg_sem_want - something that is waited for
 * @look: 0 or another result; -EAGAIN: not yet. Once @queued, each giver must ring for this caller:
 *   the word says so.
 * @takes: a lock: one caller at a time gets it, in turn. Otherwise all get it when they look.
 * @herd: a ring is for all waiters of this system, otherwise for the first one.
 * @free_since: when it was first seen to be free, at another system's turn.
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
/* The word is free: may this caller take it, given the other waiters? */
bool sg_sem_may_take(struct sg_sem_want *w, u64 word);
/* This caller has taken it, when the word had this value. */
void sg_sem_taken(const struct sg_sem_want *w, u64 word);
/* For a look that ends with "not yet": stores in the word, if unchanged, that a thread sleeps. */
int sg_sem_not_yet(struct sg_sem_want *w, u64 word);
/* This system's list of waiters, for sem_watch.c. Does another system have the object open? */
void sg_sem_queue(struct sg_sem_want *w);
void sg_sem_leave(struct sg_sem_want *w);
void sg_sem_note_others(struct sg_sem_want *w, bool waits);
/* With the list's lock: is it time for a look, though no giver has rung? (sem_watch.c) */
bool sg_sem_watch_is_due(struct sg_vol *vol, struct sg_sem_watch *w);
#define SG_SEM_CHANGED	1	/* the word has changed meanwhile: look again */
/*
 * The flags that stay in a word when it is given back. Afterwards always call sg_sem_given() with
 * them.
 */
u64 sg_sem_flags_left(const struct sg_vol *vol, const struct sg_sem *sem, u64 word);
/* It has been given back, with these flags: wakes the next waiter, or all. */
void sg_sem_given(struct sg_vol *vol, const struct sg_sem *sem, u64 left, bool all);
void sg_sem_wake_next(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_all(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_slot(struct sg_vol *vol, const struct sg_sem *sem, unsigned int slot);

/**
 * struct sg_sems - one system's use of semaphores. In the system's own memory.
 * @first: list of the callers that wait; those for one object are adjacent, in order.
 * @open: number of this system's openers of each object, by record; with the file's lock.
 * @closing: objects closed while the volume could not be changed, or while another system had the
 *   file locked; guarded by @spin.
 * @nothers: number of waiting callers whose object another system has open, too. @watches: of them
 *   and of the others: watches, which cannot look themselves; @watched: their last look.
 * @rung: value of this system's bell at the last look.
 * @busy: when the bell rang last, or when a caller last began to wait.
 * @said: time of the last line in the log.
 * @bells: an object was opened here, so the file's page of bells is wanted, or exists.
 * @polled: a thread of this system listens (sg_sem_poll()), and sleeps at @poller.
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
	u64 nothers, rung, busy, spins, polled, said, bells, watches, watched;
	struct sg_bell poller;
	u64 member[SG_SEM_MEMBERS / 64];	/* a bit each: in use */
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
