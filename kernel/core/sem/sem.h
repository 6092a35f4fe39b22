/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared semaphores: what their files share. docs/semaphores.md tells the whole story.
 *
 *   sem_table.c	objects: where they are, how they come and go
 *   sem_open.c		who has them open, and what becomes of their state
 *   sem_list.c		looking at them
 *   sem_member.c	who can own a lock, and whether he lives
 *   sem_wait.c		waiting and waking, whatever it is for
 *   sem_mutex.c	mutexes, semaphores
 *   sem_rw.c		reader-writer locks
 *   sem_event.c	conditions, barriers, event counters
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
/* Offset of a page of the file; 0: it has none, or *err. */
u64 sg_sem_page_at(const struct sg_vol *vol, u64 page, int *err);
static inline bool sg_sem_has_words(unsigned int type, unsigned int flags)
{
	return flags & SG_SEM_MAPPED || type == SG_SEM_RWLOCK;
}
static inline bool sg_sem_has_side(unsigned int type)
{
	return type == SG_SEM_RWLOCK || type == SG_SEM_BARRIER;
}
static inline u64 sg_sem_chain(u64 hash)
{
	return hash % SG_SEM_CHAINS;
}
u64 sg_sem_hash(const struct sg_vol *vol, const void *name, u32 len);
/* File page of an object's words, by its record's place; that of its side follows. */
static inline u64 sg_sem_words_page(u64 page, unsigned int i)
{
	return SG_SEM_WORDS_PAGE + 2 * (page * 8 + i);
}
/* Does this cell's owner live, or has it not been recovered yet? */
bool sg_sem_cell_counts(const struct sg_vol *vol, u64 own);
u64 sg_sem_cell_value(const struct sg_vol *vol, const struct sg_sem *sem, unsigned int i);
/* So many readers less; not less than none: somebody may have reset the object. */
void sg_sem_cell_less(u64 *cell, u64 n);
u64 sg_sem_arrived(const struct sg_vol *vol, const struct sg_sem *sem);
/* A head that an object can have. */
bool sg_sem_head_known(u64 head);

bool sg_sem_is_bad(const struct sg_vol *vol, const struct sg_sem *sem);
/*
 * What was looked up when the object was opened is bad memory by now: no word of it is touched any
 * more, not even to give it back. What we have set there stays until our slot is another's.
 */
static inline bool sg_sem_lost(const struct sg_vol *vol, const struct sg_sem *sem)
{
	return sg_has_bad(vol) && sg_sem_is_bad(vol, sem);
}
/* Before each use of an open object, and each time when one has slept: else -EIO. */
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
/* Calls @fn for each record of a page; its answer ends it, if it is not 0. */
typedef int (*sg_sem_on_spot)(struct sg_vol *vol, const struct sg_sem_spot *s, void *ctx);
int sg_sem_each_in_page(struct sg_vol *vol, u64 page, sg_sem_on_spot fn, void *ctx);
/**
 * struct sg_sem_search - a name that is looked for
 * @found: where it is, if it is there (@has). @room: where it could be: an unused record
 * (@has_room), or a page that is missing (@has_hole).
 */
struct sg_sem_search {
	const char *name;
	u32 len;
	u64 hash;
	struct sg_sem_spot found, room;
	bool has, has_room, has_hole;
};
int sg_sem_name_fits(const char *name, u32 len);	/* 0, -EINVAL, -ENAMETOOLONG */
/* With the file locked after 0, until the end. All behind this is for who has it locked. */
int sg_sem_begin(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_search *q);
void sg_sem_end(struct sg_vol *vol);
/* An object in @q->room; it is found then. */
int sg_sem_make(struct sg_vol *vol, struct sg_sem_search *q, const struct sg_sem_new *new);
/* Nobody has it open. Its pages go, and that of its record if it was the last one there. */
int sg_sem_destroy(struct sg_vol *vol, const struct sg_sem_spot *s);

/* --- who has it open (sem_open.c) ------------------------------------------------------------ */

bool sg_sem_is_used(const struct sg_vol *vol, const struct sg_sem_spot *s);
/* Gone, but for its record: nobody has it open, and it has no name, or was not to outlive them. */
bool sg_sem_is_over(const struct sg_vol *vol, const struct sg_sem_spot *s);
/* It has this serial number, or any will do (SG_SEM_ANY). */
bool sg_sem_is_meant(const struct sg_vol *vol, const struct sg_sem_spot *s, u64 serial);
/* Its words, without opening it. */
int sg_sem_look_at(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out);
u64 sg_sem_first_word(unsigned int type, u64 initial);
/*
 * Nobody is left who had it open, and not all of them closed it: what a lock protects may be half
 * done, which the next one to take it is told; a semaphore has its first value. Counts only grow,
 * and in cells of the dead nobody looks. By force: a lock is free, and who waits to meet goes on.
 */
void sg_sem_reset_words(struct sg_vol *vol, const struct sg_sem *sem, bool force);
void sg_sem_set_durably(struct sg_vol *vol, u64 off, u64 val);

/* --- members (sem_member.c) ------------------------------------------------------------------ */

enum sg_sem_life { SG_SEM_LIVE, SG_SEM_DEAD, SG_SEM_UNKNOWN };
/*
 * Does the owner that a word names count? DEAD: his thread, process or system is gone, and his
 * system has been recovered; UNKNOWN: there was never such a one.
 */
enum sg_sem_life sg_sem_owner(struct sg_vol *vol, u64 word);
bool sg_sem_member_read(const struct sg_vol *vol, u64 word, struct sg_sem_member *out);
/* As sg_sem_owner(), for a word that says that it is taken: it has been left, and says so. */
bool sg_sem_is_left(struct sg_vol *vol, const struct sg_sem *sem, u64 word);

/* --- waiting (sem_wait.c) -------------------------------------------------------------------- */

/**
 * struct sg_sem_want - something that is waited for
 * @look: 0 or another end of it; -EAGAIN: not yet. Once @queued, whoever gives must ring for us:
 * it says so in the word.
 * @takes: one at a time gets it, in turn: a lock. Else all of them, when they look.
 * @herd: a ring is for all of ours who wait for it, else for the first of them.
 * @free_since: when it was first seen to be free, and another's turn.
 */
struct sg_sem_want {
	struct sg_vol *vol;
	const struct sg_sem *sem;
	struct sg_sem_caller *c;
	int (*look)(struct sg_sem_want *w);
	bool takes, herd;
	u64 arg;
	/* the rest is sem_wait.c's */
	u64 until, since, free_since, free_word;
	bool queued, others;
};

int sg_sem_wait_for(struct sg_sem_want *w, u64 until);
/* The word is free: may we take it, with the waiters that there are? */
bool sg_sem_may_take(struct sg_sem_want *w, u64 word);
/* We have taken it, when the word said this. */
void sg_sem_taken(const struct sg_sem_want *w, u64 word);
/* For a look, if it is not yet: the word, as it was seen, has to say that somebody sleeps. */
int sg_sem_not_yet(struct sg_sem_want *w, u64 word);
#define SG_SEM_CHANGED	1	/* ... and has changed meanwhile: look again */
/* What of a word's flags stays when it is given back; then, whatever that was, sg_sem_given(). */
u64 sg_sem_flags_left(const struct sg_vol *vol, const struct sg_sem *sem, u64 word);
/* It has been, with these flags: wakes the next one, or all. */
void sg_sem_given(struct sg_vol *vol, const struct sg_sem *sem, u64 left, bool all);
void sg_sem_wake_next(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_all(struct sg_vol *vol, const struct sg_sem *sem);
void sg_sem_wake_slot(struct sg_vol *vol, const struct sg_sem *sem, unsigned int slot);

/**
 * struct sg_sems - of a system. Its own memory.
 * @first: callers that wait: those for one object behind each other, in order.
 * @open: how many of ours have an object open, by record; with the file's lock.
 * @closing: what has been closed while nothing might be changed; guarded by @spin.
 * @nothers: how many of them wait for what others have open, too.
 * @rung: what our bell said; @busy: when it rang last, or somebody began to wait.
 * @said: when there was last something for the log.
 * @has_bells: the file has its page for them.
 * @polled: a thread of ours listens (sg_sem_poll()), and sleeps at @poller.
 * @patience: how long it is worth it to look before one sleeps, by record; and how often one slept.
 */
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
	u64 nothers, rung, busy, spins, polled, said, has_bells;
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
