// SPDX-License-Identifier: Apache-2.0
/*
 * A recoverer is paused before its last store to a record, and fenced. Another system recovers the
 * slot. A third system joins in the slot, and has a valid record when the first recoverer
 * continues.
 */
#include "internal.h"
#include "systems.h"

#define SIZE	(16ULL << 20)

static u8 *mem;
static struct tsys dead, late, other, next;
static struct sg_area *area;
static unsigned int heads;
static bool joined;

/* The last access of the recoverer to the record's head is the store that makes it void. */
static void on_area(void *addr, bool behind)
{
	if (behind || addr != &area->head || ++heads != 3)
		return;
	tsys_fence(&other, &late);
	CHECK(sg_maintain(&other.v) >= 0);
	CHECK_EQ(tsys_state(&other, 0), SG_SLOT_FREE);
	CHECK(!area->head);
	tsys_join(&next, mem, SIZE, 4);
	CHECK_EQ(next.v.slot, 0);
	tsys_record(&next.v, 0, 0, SG_HOT(error_ino), 22);
	joined = true;
}

int main(void)
{
	u64 is;

	mem = tsys_volume(SIZE);
	tsys_join(&dead, mem, SIZE, 1);
	tsys_join(&late, mem, SIZE, 2);
	tsys_join(&other, mem, SIZE, 3);
	CHECK_EQ(dead.v.slot, 0);
	area = sg_at(&other.v, sg_area_off(&other.v, 0, 0));
	tsys_record(&dead.v, 0, 0, SG_HOT(error_ino), 11);
	tsys_fence(&other, &dead);
	test_trap((u8 *)area, on_area);
	CHECK(!sg_recover_slot(&late.v, 0));
	test_trap_end();
	CHECK(joined);
	CHECK_EQ(sg_get(&other.v, SG_HOT(error_ino)), 11);
	is = area->head;
	CHECK(is);
	CHECK_EQ(SG_AREA_COUNT(is), 1);
	/* the record's system dies now: its change must not be lost */
	tsys_fence(&other, &next);
	CHECK(sg_maintain(&other.v) >= 0);
	CHECK_EQ(sg_get(&other.v, SG_HOT(error_ino)), 22);
	sg_store64(sg_at(&other.v, SG_HOT(error_ino)), 0);
	tsys_die(&dead);
	tsys_die(&late);
	tsys_die(&next);
	tsys_leave(&other);
	test_clean(mem, SIZE);
	return test_done();
}
