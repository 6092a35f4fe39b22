/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The words of shared semaphores: the definitions that a process needs for an object that it has
 * mapped (docs/semaphores.md). They are part of the format (format.h), and programs can include
 * this header alone. semword.h has the operations on these words.
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
#define SG_SEM_SINGLE		(1u << 2)	/* a ring: only one descriptor at a time receives */
#define SG_SEM_FLAGS_KNOWN	7u

/**
 * struct sg_semwords - an object's words: one cache line.
 * @word: the state of the object. @more: recursive mutex: the number of further times that its
 * owner has locked it.
 */
struct sg_semwords {
	u64 word;
	u64 more;
	u64 reserved[6];
};

/*
 * The page of a mapped object: its words. A reader-writer lock also has counts of readers there,
 * one for each process that has it open. Cell i is word i of the page. The first SG_SEM_CELL_FIRST
 * cells are the words, and the counts of the kernels.
 */
#define SG_SEM_CELLS		512u
#define SG_SEM_CELL_KERNEL	64u	/* the cell of slot i is this + i */
/* the first cell for processes, and for readers of a ring */
#define SG_SEM_CELL_FIRST	128u

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
/* mutex: its owner released it while inconsistent: unusable */
#define SG_SEMW_LOST		(1ULL << 60)
#define SG_SEMW_DIED		(1ULL << 61)	/* an owner died while it held the lock */

/* Flags of all words. */
/* a thread has waited long: later callers must not overtake it */
#define SG_SEMW_ASKED		(1ULL << 62)
/* a thread sleeps: a caller that releases the lock must ring */
#define SG_SEMW_WAITERS		(1ULL << 63)

/* For a semaphore: its value. For the other types: a count that only grows. */
#define SG_SEMW_VALUE		0x7fffffffULL
#define SG_SEMW_COUNT		((1ULL << 62) - 1)

/*
 * A ring (docs/channels.md): its size in bytes is a power of two. Positions count grains since the
 * ring was made, and only grow; grain p of the data is at (p mod the number of grains).
 *
 * Its page has the parts below; each part is a word with the rules of one of the types above. A
 * call waits for one part (SG_SEM_PART). LOCK: a mutex, of the writer. TAIL: an event counter, the
 * position behind the last record. ROOM: an event counter that grows while a writer waits for room
 * (ASKED).
 */
#define SG_RING_MIN		(64ULL << 10)
#define SG_RING_MAX		(64ULL << 20)
#define SG_RING_GRAIN		16u
enum { SG_RING_LOCK, SG_RING_TAIL, SG_RING_ROOM, SG_RING_PARTS };
#define SG_RING_WORD(part)	(8u * (part))	/* a cache line each */
/* HEAD: the position up to which records are claimed, and the cell of the last claim. */
#define SG_RING_HEAD		24u
/*
 * FREED: the position up to which data may be overwritten, as found by the last writer. Only the
 * writer stores it.
 */
#define SG_RING_FREED		32u
#define SG_RING_SENT		33u		/* number of records */
#define SG_RING_HEAD_AT(pos, cell) ((u64)(pos) << 9 | (cell))
#define SG_RING_HEAD_POS(w)	((w) >> 9)
#define SG_RING_HEAD_CELL(w)	((unsigned int)((w) & 511))
#define SG_RING_POS_MAX		((1ULL << 55) - 1)

/*
 * A reader's cell, from word SG_SEM_CELL_FIRST on: 0, or the position of the record that the reader
 * is about to claim or has claimed. The cell of position 0 is not 0 either, because a cell in use
 * also has a flag.
 */
#define SG_RING_TRIES		1u
#define SG_RING_CLAIMED		2u
#define SG_RING_CELL_AT(pos, how) ((u64)(pos) << 2 | (how))
#define SG_RING_CELL_POS(w)	((w) >> 2)

/**
 * struct sg_ring_record - the head of a record; its payload follows, padded to a full grain
 * @len: of the payload. @tag: of the user. @at: the position of this record.
 */
struct sg_ring_record {
	u64 len_tag;		/* low 32: length; high 32: tag */
	u64 at;
};

#endif
