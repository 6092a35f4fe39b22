/* SPDX-License-Identifier: Apache-2.0 */
/* Two systems on one volume, each with its callers (threads), for tests that run step by step. */
#ifndef SG_SEM_PAIR_H
#define SG_SEM_PAIR_H

#include "sem_util.h"

#define SIZE	(32ULL << 20)

static struct tvol t;
static struct sg_vol other;		/* another system */
static struct sg_sem_caller *me, *you, *they;	/* two threads of this system, one of the other */

static inline void join_other(void)
{
	CHECK_OK(sg_open(&other, t.mem, t.size, false, NULL));
	if (sg_join(&other, &test_identity, 0, false))
		test_fail(__FILE__, __LINE__, "cannot join: %s", other.why);
	they = caller_of(&other, 3);
}

static inline void begin(void)
{
	tvol_make(&t, SIZE);
	me = caller_of(&t.v, 1);
	you = caller_of(&t.v, 2);
	join_other();
}

static inline void end(void)
{
	caller_end(&t.v, me);
	caller_end(&t.v, you);
	caller_end(&other, they);
	sg_leave(&other);
	tvol_drop(&t);
}

/* Kills the other system. Without @recover, its slot stays until a system recovers it. */
static inline void kill_other(bool recover)
{
	unsigned int slot = (unsigned int)other.slot;
	u32 inc = other.incarnation;

	sg_free(they);
	sg_abandon(&other);
	CHECK_OK(sg_fence_slot(&t.v, slot, inc));
	if (recover)
		CHECK(sg_recover_slot(&t.v, slot));
}

#endif
