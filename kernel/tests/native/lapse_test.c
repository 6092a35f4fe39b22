// SPDX-License-Identifier: Apache-2.0
/*
 * The lapse behind a fence for silence (docs/protocol.md, section 3): who gets one, what waits for
 * its end and what does not, and how it ends. That pages and slots stay unused meanwhile:
 * systems_death_test.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define MIB	(1ULL << 20)
#define SIZE	(16 * MIB)
#define ROOM	(32 * MIB)	/* that it may grow to */

static u8 *mem;

static u64 *lapsed(void)
{
	return (u64 *)(mem + SG_HOT(lapsed));
}

/* As an operator's word does it, and recovered. */
static void lapse_of(struct tsys *by, struct tsys *s)
{
	CHECK_OK(sg_fence_lapsed(&by->v, (unsigned int)s->v.slot, s->v.incarnation));
	CHECK(sg_tend(&by->v) >= 0);
	CHECK_EQ(tsys_state(by, (unsigned int)s->v.slot), SG_SLOT_FREE);
}

/* Nobody makes a lapsed system look: a cut and a growth wait for those who live, payments do not. */
static void waits_for_the_living(void)
{
	static u8 buf[8 * SG_PAGE] = { 1 };
	struct tsys a, silent;
	struct sg_iref f;
	char why[200];
	u64 start;
	int i;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&silent, mem, ROOM, 2);
	f = test_create(&a.v, &a.root, "f", S_IFREG | 0600);
	CHECK_EQ(sg_write(&a.v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	sg_set_mapper(&silent.v, &f, false, true);
	lapse_of(&a, &silent);
	CHECK_OK(sg_resize(&a.v, &f, 0, 1));
	start = sg_ticks();
	for (i = 0; i < 4; i++)
		sg_wait_mappers(&a.v, &f, false);
	CHECK(sg_ticks() - start < 1000000000);
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	CHECK(!sg_epoch_wait(&a.v, 20));
	CHECK_OK(sg_grow(&a.v, SIZE + 2 * MIB, 300, why));
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	*lapsed() = 0;
	CHECK_EQ(sg_reclaim(&a.v, ~0u), 0);
	tsys_die(&silent);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume_in(SIZE, ROOM);
	waits_for_the_living();
	return test_done();
}
