/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The operations on words of shared semaphores that need no kernel: the fast paths. They are the
 * same for kernels and for processes that have mapped an object (docs/semaphores.md). Each is one
 * locked instruction if no other caller is in the way. False: ask the kernel, which does the same
 * and can also wait. Nothing here waits, and nothing depends on the rest of the page.
 */
#ifndef SG_SEMWORD_H
#define SG_SEMWORD_H

#include "semtype.h"

#ifdef SG_OS_H		/* the engine: through sg_os.h, so that tests see each store */
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
 * Subtracts one reader, but never below 0. A forced reset may have cleared the cell meanwhile, and
 * a count that wraps would keep writers out for ever.
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
 * A reader counts itself, then looks at the word. A writer takes the word, then looks at the
 * counts. Both have a locked instruction in between, so at least one sees the other.
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

/* Gives the read back in any case. False: a thread may wait for that: the kernel rings. */
static inline bool sg_semw_unread(const u64 *word, u64 *cell)
{
	sg_semw_less(cell);
	return !sg_semw_load(word);
}

/*
 * For a caller that has taken the word of a reader-writer lock. @page: of the object. True: there
 * are no readers. False: readers exist, or died while reading; the kernel knows which, and waits if
 * necessary.
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

/* False: nothing was done. */
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
