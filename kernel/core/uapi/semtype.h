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
	SG_SEM_TYPES };

/* Permanent properties of an object. */
#define SG_SEM_RECURSIVE	(1u << 0)	/* a mutex that its owner may lock again */
#define SG_SEM_MAPPED		(1u << 1)	/* processes may map its words */
#define SG_SEM_FLAGS_KNOWN	3u

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
#define SG_SEM_CELL_FIRST	128u	/* first cell for processes */

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

#endif
