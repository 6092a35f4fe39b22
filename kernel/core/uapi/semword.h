/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The fast paths: operations on words of shared semaphores that need no system call. They are the
 * same for kernels and for processes that have mapped an object (docs/semaphores.md). Each is one
 * locked instruction if no other caller uses the object. False: the caller must use the system
 * call, which does the same and can also wait. These functions do not wait, and do not depend on
 * the rest of the page.
 */
#ifndef SG_SEMWORD_H
#define SG_SEMWORD_H

#include "semtype.h"

#ifdef SG_OS_H		/* the engine stores through sg_os.h, so that tests see each store */
#define sg_semw_load(p)		sg_load64_acquire(p)
#define sg_semw_cas(p, old, new) sg_cas64(p, old, new)
#define sg_semw_add(p, n)	sg_add64(p, n)
#else
#ifndef __cplusplus
#include <stdbool.h>
#endif
static inline u64 sg_semw_load(const u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline u64 sg_semw_cas(u64 *p, u64 old, u64 now)
{
	__atomic_compare_exchange_n(p, &old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

static inline u64 sg_semw_add(u64 *p, u64 n)
{
	return __atomic_fetch_add(p, n, __ATOMIC_SEQ_CST);
}
#endif

/* --- mutex, and the writer of a reader-writer lock ------------------------------------------ */

static inline bool sg_semw_take(u64 *word, u64 me)
{
	return sg_semw_cas(word, 0, me) == 0;
}

static inline bool sg_semw_give(u64 *word, u64 me)
{
	return sg_semw_cas(word, me, 0) == me;
}

/* --- semaphore ------------------------------------------------------------------------------ */

static inline bool sg_semw_down(u64 *word)
{
	u64 seen = sg_semw_load(word), old;

	for (; seen & SG_SEMW_VALUE && !(seen & SG_SEMW_ASKED); seen = old) {
		old = sg_semw_cas(word, seen, seen - 1);
		if (old == seen)
			return true;
	}
	return false;
}

static inline bool sg_semw_up(u64 *word)
{
	u64 seen = sg_semw_load(word), old;

	for (; !(seen & SG_SEMW_WAITERS) && (seen & SG_SEMW_VALUE) < SG_SEMW_VALUE; seen = old) {
		old = sg_semw_cas(word, seen, seen + 1);
		if (old == seen)
			return true;
	}
	return false;
}

/* --- readers -------------------------------------------------------------------------------- */

/*
 * Subtracts one reader, but not below 0: a forced reset may have cleared the cell meanwhile. A
 * count below 0 would wrap, and would block writers forever.
 */
static inline void sg_semw_less(u64 *cell)
{
	u64 seen = sg_semw_load(cell), old;

	for (; seen; seen = old) {
		old = sg_semw_cas(cell, seen, seen - 1);
		if (old == seen)
			return;
	}
}

/*
 * Takes the lock for reading. A reader counts itself, then loads the word. A writer sets the word,
 * then loads the counts. Both execute a locked instruction in between, so at least one of them sees
 * the other.
 */
static inline bool sg_semw_read(const u64 *word, u64 *cell)
{
	if (sg_semw_load(word))
		return false;
	sg_semw_add(cell, 1);
	if (!sg_semw_load(word))
		return true;
	sg_semw_less(cell);
	return false;
}

/* Ends the read in any case. False: a writer may wait for that, so the kernel must ring. */
static inline bool sg_semw_unread(const u64 *word, u64 *cell)
{
	sg_semw_less(cell);
	return !sg_semw_load(word);
}

/*
 * Reports whether a reader-writer lock has no readers, for a caller that has set its word. @page:
 * of the object. False: readers exist, or died while they held the lock. The kernel finds out
 * which, and waits if necessary.
 */
static inline bool sg_semw_no_readers(const u64 *page)
{
	unsigned int i;

	for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
		if (sg_semw_load(page + i))
			return false;
	return true;
}

/* --- event counter -------------------------------------------------------------------------- */

/* Adds 1 to the count. False: nothing was done. */
static inline bool sg_semw_advance(u64 *word)
{
	u64 seen = sg_semw_load(word), old;

	for (; seen < SG_SEMW_COUNT; seen = old) {
		old = sg_semw_cas(word, seen, seen + 1);
		if (old == seen)
			return true;
	}
	return false;
}

static inline u64 sg_semw_count(const u64 *word)
{
	return sg_semw_load(word) & SG_SEMW_COUNT;
}

#endif
