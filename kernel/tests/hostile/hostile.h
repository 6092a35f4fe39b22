/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile guests: somebody stores whatever he likes into the volume while we use it (D10). What he
 * does cannot be kept from doing harm to what is in the volume; but whoever uses it comes back from
 * every call, in time, and never loads or stores outside.
 *
 *   volume.c	the volume, between canaries, and how it is put back
 *   attack.c	what is stored, and where
 *   use.c	what the host does
 *   step.c	one thread; the attacker gets his turn at loads and stores of the engine: repeatable
 *   race.c	the attacker is a process, the host has threads
 *   cases.c	what has been found, each as a test
 *   loops.c	likewise: loops that must end, whatever the volume says
 *
 * Built with SG_HOSTILE, and the sanitizers of addresses and of undefined behaviour (SAN=hostile).
 */
#ifndef SG_HOSTILE_H
#define SG_HOSTILE_H

#include "internal.h"
#include "sem/sem.h"
#include "test.h"

/* --- volume.c --------------------------------------------------------------------------------- */

#define H_SIZE		SG_VOLUME_MIN
#define H_ROOM		(H_SIZE + 4 * SG_CHUNK)	/* it can grow into that */
#define H_PLACES	96

/* Pages of a kind in the honest volume: where an attacker aims. */
struct places {
	u64 page[H_PLACES];
	unsigned int n;
};
struct honest {
	struct sg_super sb;
	u32 incarnation;	/* last one given out */
	struct places inode, table, dir, xattr, sem, lock;
};
extern struct honest honest;
extern u8 *volume;		/* H_ROOM bytes */

void volume_setup(void);
void volume_reset(void);	/* honest again: somebody died in it, who owed something */
void volume_reset_shared(void);	/* likewise, and processes see what each other stores */
void volume_check_canaries(void);

/* --- attack.c --------------------------------------------------------------------------------- */

#define A_HISTORY	64

/**
 * struct attacker - who stores
 * @slot, @incarnation: of the host
 * @spares: the host's state: else it soon takes itself for dead, and does nothing any more
 * @old: what was there before his last stores
 */
struct attacker {
	struct rng rng;
	unsigned int slot;
	u32 incarnation;
	bool spares;
	struct {
		u64 off, val;
	} old[A_HISTORY];
	u64 stores;
};

u64 attack_place(struct attacker *a);		/* offset of some word of some structure */
u64 attack_value(struct attacker *a, u64 off);	/* something for it */
void attack_store(struct attacker *a, u64 off, u64 val);
void attack_once(struct attacker *a);		/* a word, some, or a page */
/* Checksums that hold for what stands there now: superblocks, records, copies. */
void attack_mend(u64 off);

/* --- use.c ------------------------------------------------------------------------------------ */

/**
 * struct host - one thread of a system under attack
 * @v: shared with the others. @note: what it does, for who asks. @since: by sg_ticks().
 */
struct host {
	struct sg_vol *v;
	struct rng rng;
	const char *op;
	u64 since, done;
	struct sg_sem_caller *caller;
	u8 *buf;
};
#define HOST_BUF	(1u << 17)

void host_begin(struct host *h, struct sg_vol *v, u64 seed);
void host_end(struct host *h);
void host_step(struct host *h);			/* one operation beside others */
int host_join(struct sg_vol *v, bool force);	/* opens and joins */
/* What needs the volume for itself, or nothing at all: checks, repairs, moves, looks. */
void host_alone(struct host *h);
extern void (*host_interlude)(struct host *h);	/* begins each operation */

/* When nobody attacks any more: it can be left, repaired, used, and made anew. */
void volume_afterwards(void);

/* --- modes ------------------------------------------------------------------------------------ */

void step_round(u64 seed);
void sweep_round(u64 seed);
void race_round(u64 seed);
void cases_run(void);
/* step.c: the clock that goes only when somebody looks at it. */
void step_clock(bool on);
/* cases.c: called at each load of the engine, before it. */
extern void (*hook_load)(u64 off);

/* loops.c: run by cases.c. */
void case_table_of_itself(void);
void case_parent_circle(void);
void case_allocate(void);
void case_bad_list(void);
void case_no_place(void);
void case_move_range(void);
void case_split(void);
void case_sem_over(void);

#endif
