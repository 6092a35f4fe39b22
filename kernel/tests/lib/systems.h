/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several systems on one volume: each a struct sg_vol of its own, in one process or in several.
 * What a kernel does beside its operations, four threads do here: one watches, one acknowledges,
 * one settles, one stands still for those who copy.
 */
#ifndef SG_TEST_SYSTEMS_H
#define SG_TEST_SYSTEMS_H

#include <sys/types.h>
#include "test.h"

/**
 * struct tkeeper - the threads of a system.
 * @paused: they do nothing: its heart stands still, and it acknowledges nothing.
 * @dead: they have been told that it has been declared dead.
 */
struct tkeeper {
	struct sg_vol *v;
	pthread_t watcher, acknowledger, settler, stander;
	bool settled, stop, paused, dead;
	u64 begun;		/* threads of it that run */
};

void tkeeper_start(struct tkeeper *k, struct sg_vol *v);
void tkeeper_end(struct tkeeper *k);	/* nothing, if there is none */

/* A system. */
struct tsys {
	struct sg_vol v;
	struct sg_iref root;
	struct tkeeper keeper;
	pthread_rwlock_t calls;
};

u8 *tsys_volume(u64 size);		/* formatted, nobody in it */
u8 *tsys_volume_in(u64 size, u64 memory);	/* with more memory behind it */
/* It grows by @by, if there is memory for that; if not now, since somebody has just died: later. */
void tsys_grow(struct sg_vol *v, u64 by);
/* Machines and boots by number; 0 is a machine that nobody gave a number. */
struct sg_identity tsys_identity(unsigned int machine, unsigned int boot);
/* Opens and joins. Damage fails the test. */
int tsys_try(struct tsys *s, u8 *mem, u64 size, const struct sg_identity *id, unsigned int wait_ms,
	     bool force);
void tsys_join(struct tsys *s, u8 *mem, u64 size, unsigned int machine);
void tsys_tend(struct tsys *s);		/* from now on its threads do */
void tsys_pause(struct tsys *s, bool on);
/*
 * What the VFS is to a kernel: between these two lies a call that stores. None is under way while
 * the system stands still, if tsys_calls() has said before that there are any.
 */
void tsys_calls(struct tsys *s);
void tsys_call(struct tsys *s);
void tsys_called(struct tsys *s);
void tsys_rest(struct tsys *s);		/* they end */
void tsys_leave(struct tsys *s);
void tsys_die(struct tsys *s);		/* its slot stays as it is */
void tsys_fence(struct tsys *by, struct tsys *s);	/* as a guard does */

unsigned int tsys_state(const struct tsys *by, unsigned int slot);

/*
 * A record in an area of a slot, valid, and stored nowhere else yet: what a death behind the first
 * step of a commit leaves. One word, or as many of them, behind each other, as an area holds.
 */
void tsys_record_full(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);
void tsys_record(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val);

/* --- processes ----------------------------------------------------------------------------- */

void *tshare(size_t len);		/* zeroed memory that children share */
pid_t tproc(void (*body)(void *arg), void *arg);
void tproc_end(pid_t pid);		/* it has ended by itself, and well */
void tproc_kill(pid_t pid);
/* Waits for a word that another process or thread sets; too long is a failure. */
void tawait(const u64 *word, u64 at_least);
void tadvance(u64 *word, u64 to);

/* --- the log ------------------------------------------------------------------------------- */

void tlog_catch(void);			/* lines are kept, not printed */
void tlog_clear(void);
bool tlog_has(const char *text);	/* in one of the lines since then */

#endif
