/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile guests: an attacker stores anything into the volume while the host uses it (D10). It can
 * always harm the contents of the volume. But every call of the host returns in time, and never
 * loads or stores outside the volume.
 *
 *   volume.c	the volume, between canaries, and its restoration
 *   attack.c	what is stored, and where
 *   use.c	the host's operations
 *   step.c	one thread; the attacker acts at loads and stores of the engine: repeatable
 *   race.c	the attacker is a process, the host has threads
 *   cases.c	defects that were found, each as a test
 *   loops.c	likewise: loops that must end, whatever the volume's contents
 *
 * Built with SG_HOSTILE, and the sanitizers of addresses and of undefined behaviour (SAN=hostile).
 */
#ifndef SG_HOSTILE_H
#define SG_HOSTILE_H

#include "internal.h"
#include "sem/sem.h"
#include "test_objects.h"
#include "test.h"

/* --- volume.c --------------------------------------------------------------------------------- */

#define H_SIZE		SG_VOLUME_MIN
#define H_ROOM		(H_SIZE + 4 * SG_CHUNK)	/* maximum size of the volume */
#define H_PLACES	96

/* Pages of one kind in the undamaged volume, as targets of the attacker. */
struct places {
	u64 page[H_PLACES];
	unsigned int n;
};
struct victim {
	struct sg_super sb;
	u32 incarnation;	/* the last incarnation that the volume has assigned */
	struct places inode, table, dir, xattr, sem, lock;
};
extern struct victim victim;
extern u8 *volume;		/* H_ROOM bytes */

void volume_setup(void);
/* restores the volume, with a dead system that has deferred frees */
void volume_reset(void);
void volume_reset_shared(void);	/* does the same in memory that processes share */
void volume_check_canaries(void);

/* --- attack.c --------------------------------------------------------------------------------- */

#define A_HISTORY	64

/**
 * struct attacker - the attacker's state
 * @slot, @incarnation: the host's slot and incarnation
 * @spares: does not change the host's state word; otherwise the host soon regards itself as fenced,
 * and does nothing
 * @old: the values before the attacker's last stores
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

u64 attack_place(struct attacker *a);		/* returns the offset of a word of some structure */
u64 attack_value(struct attacker *a, u64 off);	/* returns a value for the word at @off */
void attack_store(struct attacker *a, u64 off, u64 val);
void attack_once(struct attacker *a);		/* stores a word, several words, or a page */
/* Makes the checksum over @off valid for the present contents: of a superblock, record or copy. */
void attack_mend(u64 off);

/* --- use.c ------------------------------------------------------------------------------------ */

/**
 * struct host - one thread of a system under attack
 * @v: the system, shared with other threads. @op: the current operation, for reports. @since: its
 * begin, by sg_ticks().
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
/* runs one operation that needs no exclusive access */
void host_step(struct host *h);
int host_join(struct sg_vol *v, bool force);	/* opens and joins */
/* Runs an operation that needs exclusive access, or no mount: a check, repair, move or read. */
void host_alone(struct host *h);
extern void (*host_interlude)(struct host *h);	/* a function that runs before each operation */

/* Checks after an attack that the volume can be repaired, used, and formatted. */
void volume_afterwards(void);

/* --- modes ------------------------------------------------------------------------------------ */

void step_round(u64 seed);
void sweep_round(u64 seed);
void race_round(u64 seed);
void cases_run(void);
/* Starts or stops a clock that advances only when it is read (step.c). */
void step_clock(bool on);
/* A function that runs before each load of the engine (cases.c). */
extern void (*hook_load)(u64 off);

/* filelocks.c, called by cases.c: */
void case_split_lock(void);
void case_lock_range(void);

/* loops.c, called by cases.c: */
void case_table_of_itself(void);
void case_parent_circle(void);
void case_allocate(void);
void case_bad_list(void);
void case_bad_changes(void);
void case_no_place(void);
void case_move_range(void);
void case_split(void);
void case_sem_over(void);

#endif
