/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several systems on one volume. Each is a struct sg_vol of its own, in one process or in several.
 * Four threads do a kernel's periodic work: one watches, one acknowledges, one settles, and one
 * freezes the system for snapshots.
 */
#ifndef SG_TEST_SYSTEMS_H
#define SG_TEST_SYSTEMS_H

#include <sys/types.h>
#include "test.h"

/**
 * struct tkeeper - the threads of a system.
 * @paused: they do nothing, so the system neither sends heartbeats nor acknowledges.
 * @dead: the threads have learned that the system was fenced.
 */
struct tkeeper {
	struct sg_vol *v;
	pthread_t watcher, acknowledger, settler, freezer;
	bool settled, stop, paused, dead;
	u64 begun;		/* its threads that have started */
};

void tkeeper_start(struct tkeeper *k, struct sg_vol *v);
void tkeeper_end(struct tkeeper *k);	/* does nothing without threads */

/* A system. */
struct tsys {
	struct sg_vol v;
	struct sg_iref root;
	struct tkeeper keeper;
	pthread_rwlock_t calls;
};

u8 *tsys_volume(u64 size);		/* formatted, joined by no system */
u8 *tsys_volume_in(u64 size, u64 memory);	/* with room to grow to @memory */
/* Grows the volume by @by within the memory. After a death it may not grow now (EBUSY). */
void tsys_grow(struct sg_vol *v, u64 by);
/* Machines and boots have numbers; machine 0 has no machine id. */
struct sg_identity tsys_identity(unsigned int machine, unsigned int boot);
/* Opens and joins. Damage fails the test. */
int tsys_try(struct tsys *s, u8 *mem, u64 size, const struct sg_identity *id, unsigned int wait_ms,
	     bool force);
void tsys_join(struct tsys *s, u8 *mem, u64 size, unsigned int machine);
void tsys_maintain(struct tsys *s);		/* starts its threads */
void tsys_pause(struct tsys *s, bool on);
/*
 * A call of the VFS that stores lies between tsys_call() and tsys_called(). None is in progress
 * while the system is frozen, if tsys_calls() was called first.
 */
void tsys_calls(struct tsys *s);
void tsys_call(struct tsys *s);
void tsys_called(struct tsys *s);
void tsys_rest(struct tsys *s);		/* ends its threads */
void tsys_leave(struct tsys *s);
void tsys_die(struct tsys *s);		/* its slot stays LIVE */
void tsys_fence(struct tsys *by, struct tsys *s);	/* fences @s, like a guard */

unsigned int tsys_state(const struct tsys *by, unsigned int slot);

/*
 * Stores a valid record in an area of a slot, whose word is not yet in place. A death after the
 * commit leaves that. The record has one word, or fills the area with words that follow each other.
 */
void tsys_record_full(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);
void tsys_record(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);

/* --- processes ----------------------------------------------------------------------------- */

void *tshare(size_t len);		/* zeroed memory, shared with children */
pid_t tproc(void (*body)(void *arg), void *arg);
void tproc_end(pid_t pid);		/* it must have exited with status 0 */
void tproc_kill(pid_t pid);
/* Waits for a word that another process or thread sets; a wait that is too long fails the test. */
void tawait(const u64 *word, u64 at_least);
void tadvance(u64 *word, u64 to);

/* --- the log ------------------------------------------------------------------------------- */

void tlog_catch(void);			/* keeps lines instead of printing them */
void tlog_clear(void);
bool tlog_has(const char *text);	/* in a line since then */

#endif
