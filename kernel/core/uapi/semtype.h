/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The words of shared semaphores: all that a process needs to know of an object that it has mapped
 * (docs/semaphores.md). Part of the format (format.h), and small enough for programs to include it
 * alone. semword.h has the operations on these words.
 */
#ifndef SG_SEMTYPE_H
#define SG_SEMTYPE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint64_t u64;
#endif

enum { SG_SEM_MUTEX = 1, SG_SEM_COUNT, SG_SEM_RWLOCK, SG_SEM_COND, SG_SEM_BARRIER, SG_SEM_EVENT,
	SG_SEM_TYPES /* of semaphores */, SG_SEM_RING = SG_SEM_TYPES, SG_SEM_KINDS };

/* Permanent properties of an object. */
#define SG_SEM_RECURSIVE	(1u << 0)	/* a mutex that its owner may lock again */
#define SG_SEM_MAPPED		(1u << 1)	/* processes may map its words */
#define SG_SEM_SINGLE		(1u << 2)	/* a ring: one descriptor at a time receives */
#define SG_SEM_FLAGS_KNOWN	7u

/**
 * struct sg_semwords - an object's words: one cache line.
 * @word: the state of the object. @more: recursive mutex: how many more times its owner has locked
 *   it.
 */
struct sg_semwords {
	u64 word;
	u64 more;
	u64 reserved[6];
};

/*
 * The page of a mapped object: its words. A reader-writer lock also has counts of readers there,
 * one for each process that has it open. Cell i is word i of the page. The first SG_SEM_CELL_FIRST
 * cells are the words, and the kernels' counts.
 */
#define SG_SEM_CELLS		512u
#define SG_SEM_CELL_KERNEL	64u	/* cell of slot i: this + i */
#define SG_SEM_CELL_FIRST	128u	/* first cell for processes, and for readers of a ring */

/*
 * The word of mutexes and reader-writer locks: the owner (0: none), and flags.
 *
 *   bits 0-6    slot + 1
 *   bits 7-22   member of that slot's system
 *   bits 23-54  generation of that member
 */
#define SG_SEMW_OWNER		((1ULL << 55) - 1)
#define SG_SEMW_ID(slot, member, gen) \
	((u64)((slot) + 1) | (u64)(member) << 7 | (u64)(gen) << 23)
#define SG_SEMW_SLOT(w)		((unsigned int)((w) & 0x7f) - 1)
#define SG_SEMW_MEMBER(w)	((unsigned int)((w) >> 7 & 0xffff))
#define SG_SEMW_GEN(w)		((unsigned int)((w) >> 23 & 0xffffffff))
#define SG_SEMW_LOST		(1ULL << 60)	/* mutex: given back while inconsistent: unusable */
#define SG_SEMW_DIED		(1ULL << 61)	/* an owner died while it held the lock */

/* Flags of all words. */
#define SG_SEMW_ASKED		(1ULL << 62)	/* a thread has waited long: no overtaking */
#define SG_SEMW_WAITERS		(1ULL << 63)	/* a thread sleeps: each giver has to ring */

/* Semaphores: the value; the others: a count that only grows. */
#define SG_SEMW_VALUE		0x7fffffffULL
#define SG_SEMW_COUNT		((1ULL << 62) - 1)

/*
 * A ring (docs/channels.md): its size in bytes is a power of two. Positions count grains since the
 * ring was made, and only grow; grain p of the data is at (p mod the number of grains).
 *
 * Its page has these parts, each a word with the rules of a type above; the kernel waits for one
 * part of a ring (SG_SEM_PART). LOCK: a mutex, of the writer. TAIL: an event counter, the position
 * behind the last record. ROOM: an event counter that grows while a writer waits for room (ASKED).
 */
#define SG_RING_MIN		(64ULL << 10)
#define SG_RING_MAX		(64ULL << 20)
#define SG_RING_GRAIN		16u
enum { SG_RING_LOCK, SG_RING_TAIL, SG_RING_ROOM, SG_RING_PARTS };
#define SG_RING_WORD(part)	(8u * (part))	/* a cache line each */
/* Up to where records are claimed, and the cell of the last claim. */
#define SG_RING_HEAD		24u
/* Up to where data may be overwritten, as the last writer has found it; only the writer stores. */
#define SG_RING_FREED		32u
#define SG_RING_SENT		33u		/* number of records */
#define SG_RING_HEAD_AT(pos, cell) ((u64)(pos) << 9 | (cell))
#define SG_RING_HEAD_POS(w)	((w) >> 9)
#define SG_RING_HEAD_CELL(w)	((unsigned int)((w) & 511))
#define SG_RING_POS_MAX		((1ULL << 55) - 1)

/*
 * A reader's cell, from word SG_SEM_CELL_FIRST on: 0, or the position of the record that it is
 * about to claim or has claimed. The bit is not the position's, so position 0 is like all others.
 */
#define SG_RING_TRIES		1u
#define SG_RING_CLAIMED		2u
#define SG_RING_CELL_AT(pos, how) ((u64)(pos) << 2 | (how))
#define SG_RING_CELL_POS(w)	((w) >> 2)

/**
 * struct sg_ring_record - the head of a record; its payload follows, up to a whole grain
 * @len: of the payload. @tag: of the user. @at: the position of this record.
 */
struct sg_ring_record {
	u64 len_tag;		/* low 32: length; high 32: tag */
	u64 at;
};

#endif
