// SPDX-License-Identifier: Apache-2.0
/*
 * A joiner is paused after one of the stores that write its identity. It has no name yet, so after
 * some seconds it is fenced, and another system gets the slot. Then the joiner continues. The slot
 * must hold the other system's identity. One thread acts as all systems; the clock advances when
 * the thread sleeps.
 */
#include <stddef.h>
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define S	1000000000ULL
#define SLOT	1	/* the slot that both systems get */

extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);

static u8 *mem;
static struct tsys lives, joiner, third;
static u64 now, stores, pause_at;
static bool paused;

static u64 ticks(void)
{
	return now += 100;
}

static void sleep_ns(u64 ns)
{
	now += ns;
}

static struct sg_slot *slot(void)
{
	return (struct sg_slot *)(mem + sg_slot_off(&lives.v, SLOT));
}

/* @guarded: the machine in the slot, if a guard watches it. */
static void watch_for(u64 ns, const struct sg_identity *guarded)
{
	u64 end = now + ns;

	while (now < end) {
		CHECK(sg_maintain(&lives.v) > 0);
		if (guarded)
			sg_guard(&lives.v, guarded->machine);
		now += SG_MAINTAIN_MS * 1000000;
	}
}

static bool is_thirds(void)
{
	const struct sg_identity id = tsys_identity(3, 1);

	return slot()->named == third.v.incarnation && !memcmp(slot()->machine, id.machine, 16) &&
	       !memcmp(slot()->boot, id.boot, 16) && slot()->pid == id.pid &&
	       !strcmp(slot()->name, id.name);
}

static u64 acknowledged;	/* the epoch that the third system acknowledged */

static void at_store(const void *p)
{
	const u8 *s = (const u8 *)slot();

	if ((const u8 *)p < s || (const u8 *)p >= s + sizeof(*slot()) ||
	    SG_SLOT_STATE(slot()->state) != SG_SLOT_LIVE || ++stores != pause_at)
		return;
	rec_at_store = NULL;
	paused = true;
	watch_for(7 * S, NULL);
	if (SG_SLOT_STATE(slot()->state) == SG_SLOT_LIVE)
		return;		/* the joiner had stored its name, so no lease ends its life */
	tsys_join(&third, mem, SIZE, 3);
	third.v.maintained = true;
	CHECK_EQ(third.v.slot, SLOT);
	CHECK(is_thirds());
	acknowledged = slot()->epoch;
	/* an epoch that the third system has not acknowledged yet */
	sg_store64(sg_at(&lives.v, SG_HOT(epoch)), sg_get(&lives.v, SG_HOT(epoch)) + 1);
}

/* Returns whether the joiner was fenced. */
static bool pause_behind(u64 n)
{
	struct sg_identity id = tsys_identity(2, 1), id3 = tsys_identity(3, 1);
	int err;

	memset(&third, 0, sizeof(third));
	memset(&joiner, 0, sizeof(joiner));
	stores = 0;
	pause_at = n;
	paused = false;
	mem = tsys_volume(SIZE);
	tsys_join(&lives, mem, SIZE, 1);
	lives.v.maintained = true;
	CHECK_OK(sg_open(&joiner.v, mem, SIZE, false, NULL));
	joiner.v.on_death = NULL;
	rec_at_store = at_store;
	err = sg_join(&joiner.v, &id, 0, false);
	rec_at_store = NULL;
	CHECK(paused);
	if (third.v.base) {
		CHECK(err);
		CHECK(is_thirds());
		CHECK_EQ(slot()->epoch, acknowledged);
		CHECK_EQ(SG_SIZE_NR(slot()->reach), third.v.incarnation);
		CHECK_EQ(SG_SIZE_NR(slot()->memory), third.v.incarnation);
		watch_for(7 * S, &id3);		/* paused, but guarded */
		CHECK(sg_is_ours(&third.v));
		sg_leave(&third.v);
	} else {
		CHECK_OK(err);
		sg_leave(&joiner.v);
	}
	sg_leave(&lives.v);
	return third.v.base;
}

/*
 * A joiner is paused between its check and a store. The slot's owner then stores its identity
 * again.
 */
static void stored_over(void)
{
	unsigned int i;

	mem = tsys_volume(SIZE);
	memset(&third, 0, sizeof(third));
	tsys_join(&lives, mem, SIZE, 1);
	tsys_join(&third, mem, SIZE, 3);
	for (i = 0; i < 5; i++) {
		struct sg_identity other = tsys_identity(2, 2);

		switch (i) {
		case 0:
			memcpy(slot()->machine, other.machine, 16);
			break;
		case 1:
			memcpy(slot()->boot, other.boot, 16);
			break;
		case 2:
			memcpy(slot()->name, other.name, sizeof(other.name));
			break;
		case 3:
			slot()->named = 1;
			break;
		default:
			slot()->pid++;
		}
		CHECK(!is_thirds());
		CHECK(sg_maintain(&third.v) > 0);
		CHECK(is_thirds());
	}
	sg_leave(&third.v);
	sg_leave(&lives.v);
}

int main(void)
{
	unsigned int fenced = 0;
	u64 n;

	tlog_catch();
	sg_ticks_hook = ticks;
	sg_sleep_hook = sleep_ns;
	now = 1000 * S;
	for (n = 1; pause_behind(n); n++)
		fenced++;
	CHECK(fenced >= 8);	/* the fences come at stores to the slot's own words and to the identity */
	stored_over();
	return test_done();
}
