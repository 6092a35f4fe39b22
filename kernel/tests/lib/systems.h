/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several systems on one volume. Each has its own struct sg_vol, in one process or in several. Four
 * threads do a kernel's periodic work: one watches, one acknowledges, one settles, and one freezes
 * the system for snapshots.
 */
#ifndef SG_TEST_SYSTEMS_H
#define SG_TEST_SYSTEMS_H

#include <sys/types.h>
#include "test.h"

/**
 * struct tkeeper - the threads of a system.
 * @paused: the threads do nothing, so the system neither sends heartbeats nor acknowledges.
 * @dead: the threads have detected that the system was fenced.
 */
struct tkeeper {
	struct sg_vol *v;
	pthread_t watcher, acknowledger, settler, freezer;
	bool settled, stop, paused, dead;
	u64 begun;		/* number of threads that have started */
};

void tkeeper_start(struct tkeeper *k, struct sg_vol *v);
void tkeeper_end(struct tkeeper *k);	/* does nothing without threads */

/* struct tsys - a system with its threads. */
struct tsys {
	struct sg_vol v;
	struct sg_iref root;
	struct tkeeper keeper;
	pthread_rwlock_t calls;
};

u8 *tsys_volume(u64 size);		/* makes a volume that no system has joined */
u8 *tsys_volume_in(u64 size, u64 memory);	/* does the same with room to grow to @memory */
/* Grows the volume by @by within the memory. After a death, EBUSY is correct as well. */
void tsys_grow(struct sg_vol *v, u64 by);
/* Returns the identity for a machine's and a boot's number. Machine 0 has no machine id. */
struct sg_identity tsys_identity(unsigned int machine, unsigned int boot);
/* Opens and joins a volume. Reported damage fails the test. */
int tsys_try(struct tsys *s, u8 *mem, u64 size, const struct sg_identity *id, unsigned int wait_ms,
	     bool force);
void tsys_join(struct tsys *s, u8 *mem, u64 size, unsigned int machine);
void tsys_maintain(struct tsys *s);		/* starts the system's threads */
void tsys_pause(struct tsys *s, bool on);
/*
 * tsys_call() and tsys_called() enclose a storing call of the VFS. After tsys_calls(), no such call
 * is in progress while the system is frozen.
 */
void tsys_calls(struct tsys *s);
void tsys_call(struct tsys *s);
void tsys_called(struct tsys *s);
void tsys_rest(struct tsys *s);		/* ends the system's threads */
void tsys_leave(struct tsys *s);
void tsys_die(struct tsys *s);		/* the slot stays live */
void tsys_fence(struct tsys *by, struct tsys *s);	/* fences @s, like a guard */

unsigned int tsys_state(const struct tsys *by, unsigned int slot);

/*
 * Stores a valid record, whose words are not yet in place, in an area of a slot, like a death after
 * a commit. The record has one word, or fills the area with consecutive words.
 */
void tsys_record_full(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);
void tsys_record(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);

/* --- processes ----------------------------------------------------------------------------- */

void *tshare(size_t len);		/* returns zeroed memory, which children share */
pid_t tproc(void (*body)(void *arg), void *arg);
void tproc_end(pid_t pid);		/* the process must exit with status 0 */
void tproc_kill(pid_t pid);
/* Waits until another process or thread sets the word. Too long a wait fails the test. */
void tawait(const u64 *word, u64 at_least);
void tadvance(u64 *word, u64 to);

/* --- the log ------------------------------------------------------------------------------- */

void tlog_catch(void);			/* keeps lines instead of printing them */
void tlog_clear(void);
bool tlog_has(const char *text);	/* whether a line since tlog_clear() has @text */

#endif
