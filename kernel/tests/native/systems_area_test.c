// SPDX-License-Identifier: Apache-2.0
/*
 * Another system has locked transaction areas, as in a search for free records, and is paused. The
 * owner's threads continue with the other areas. One thread acts as all systems; other events
 * happen while it sleeps.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define S	1000000000ULL

extern bool (*sg_interrupt_hook)(void);
extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);

static struct tsys a, b;
static u64 now, free_at, kill_at;
static unsigned int kept;		/* the area that stays locked */

static u64 lock_of(unsigned int k)
{
	return sg_area_off(&b.v, (unsigned int)b.v.slot, k) + offsetof(struct sg_area, lock);
}

static u64 ticks(void)
{
	return now += 100;
}

static void sleep_ns(u64 ns)
{
	unsigned int k;

	now += ns;
	if (!free_at || now < free_at)
		return;
	free_at = 0;
	for (k = 0; k < b.v.sb.areas; k++)
		if (k != kept)
			sg_unlock(&a.v, lock_of(k));
}

static bool killed(void)
{
	return now > kill_at;
}

/* First all areas are locked; later only one area, whose holder is paused. */
static void one_stays(unsigned int k)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f;
	unsigned int i;

	kept = k;
	for (i = 0; i < b.v.sb.areas; i++)
		CHECK(sg_trylock(&a.v, lock_of(i)));
	now = 1000 * S;
	free_at = now + S / 2;
	kill_at = now + 20 * S;
	sg_ticks_hook = ticks;
	sg_sleep_hook = sleep_ns;
	sg_interrupt_hook = killed;
	CHECK_OK(sg_create(&b.v, &b.root, "f", 1, &new, &f));
	CHECK(now < kill_at - 10 * S);
	sg_ticks_hook = NULL;
	sg_sleep_hook = NULL;
	sg_interrupt_hook = NULL;
	sg_unlock(&a.v, lock_of(kept));
	CHECK_OK(sg_unlink(&b.v, &b.root, "f", 1, 2));
	CHECK_OK(sg_evict(&b.v, &f));
}

/*
 * B seems to have freed many inodes, but the list that A takes from B names no valid record. A
 * drops the list once, and does not take it again for each new file.
 */
static void damaged_list(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	unsigned int slot, k;
	struct sg_iref f;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (k = 0; k < a.v.sb.areas; k++)
			sg_store64(sg_at(&a.v, sg_area_off(&a.v, slot, k) +
					 offsetof(struct sg_area, free_ino)), 0);
	sg_store64(sg_at(&a.v, sg_area_off(&a.v, (unsigned int)b.v.slot, 0) +
			 offsetof(struct sg_area, free_ino)), SG_INO_MAX - 1);
	sg_store64(sg_at(&a.v, sg_area_off(&a.v, (unsigned int)b.v.slot, 0) +
			 offsetof(struct sg_area, used_inodes)), -1000ULL);
	a.v.on_damage = NULL;
	CHECK_EQ(sg_create(&a.v, &a.root, "g", 1, &new, &f), -EUCLEAN);
	CHECK_OK(sg_create(&a.v, &a.root, "g", 1, &new, &f));
}

int main(void)
{
	u8 *mem = tsys_volume(SIZE);
	unsigned int k;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	CHECK(b.v.sb.areas > 1);
	for (k = 0; k < b.v.sb.areas; k++)
		one_stays(k);
	damaged_list();
	tsys_leave(&a);
	tsys_leave(&b);
	return test_done();
}
