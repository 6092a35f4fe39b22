// SPDX-License-Identifier: Apache-2.0
/*
 * Readers without a lock during replay of a dead system's journal. After each store of the dying
 * system or of the recovery, a directory with an even change counter has a complete transaction or
 * no part of it. When another system can take a lock of the dead one, replay is complete.
 */
#include <sys/stat.h>
#include "crash.h"
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static struct crash deaths, recoveries;
static struct tsys dies, lives;
static u64 looks, changes;

static bool has(struct sg_vol *v, const char *name)
{
	const struct sg_iref root = lives.root;
	struct sg_iref f;
	int err = sg_lookup(v, &root, name, (u32)strlen(name), &f, NULL);

	CHECK(!err || err == -ENOENT);
	return !err;
}

/* The locks of the dead system become free together with its slot. */
static void released_after_replay(const struct sg_vol *v)
{
	unsigned int slot = (unsigned int)dies.v.slot, i, log;

	if (SG_SLOT_STATE(sg_load64(sg_state_word(v, slot))) != SG_SLOT_FREE)
		return;
	for (i = 0; i < v->sb.areas; i++)
		CHECK(!sg_tx_words(sg_at(v, sg_area_off(v, slot, i)), &log));
}

/* Looks up one name in each image in which a reader accepts the data that it has read. */
static void look(struct crash *c, struct crash_image *img)
{
	struct sg_vol v;

	(void)c;
	CHECK_OK(sg_open(&v, img->mem, SIZE, true, NULL));
	released_after_replay(&v);
	changes++;
	if (sg_iget(&v, &lives.root, seq) & 1)
		return;
	CHECK_EQ(has(&v, "before") + has(&v, "after"), 1);
	looks++;
}

/* Returns the other system, moved to an image. */
static struct sg_vol moved(struct crash_image *img)
{
	struct sg_vol v = lives.v;

	v.base = img->mem;
	sg_bad_watch(&v);
	v.state = sg_state_word(&v, (unsigned int)v.slot);
	return v;
}

static void recover(struct crash *c, struct crash_image *img)
{
	struct sg_vol v = moved(img);
	struct rec log;

	look(c, img);
	crash_reset(&recoveries, img->mem);
	rec_init(&log, img->mem, SIZE, true);
	rec_to(&log);
	CHECK_OK(sg_fence_slot(&v, (unsigned int)dies.v.slot, dies.v.incarnation));
	CHECK(sg_recover_slot(&v, (unsigned int)dies.v.slot));
	rec_to(NULL);
	crash_run(&recoveries, log.ev, log.n);
	CHECK(!(sg_iget(&v, &lives.root, seq) & 1));
	look(c, img);
	while (log.pages)
		rec_mark(&img->rec, log.page[--log.pages] * SG_PAGE);
	rec_free(&log);
}

int main(void)
{
	u8 *mem = tsys_volume(SIZE);
	struct rec rec;

	tsys_join(&dies, mem, SIZE, 1);
	tsys_join(&lives, mem, SIZE, 2);
	test_create(&dies.v, &dies.root, "before", S_IFREG | 0600);
	crash_init(&deaths, mem, SIZE);
	crash_init(&recoveries, mem, SIZE);
	deaths.judge = recover;
	recoveries.judge = look;
	deaths.killed_only = recoveries.killed_only = true;
	rec_init(&rec, mem, SIZE, true);
	rec_to(&rec);
	CHECK_OK(sg_rename(&dies.v, &dies.root, "before", 6, &dies.root, "after", 5, 0, NULL, 1));
	rec_to(NULL);
	crash_run(&deaths, rec.ev, rec.n);
	CHECK(looks > 100 && looks < changes);
	printf("%" PRIu64 " looks of %" PRIu64 "\n", looks, changes);
	rec_free(&rec);
	crash_free(&deaths);
	crash_free(&recoveries);
	tsys_leave(&dies);
	tsys_leave(&lives);
	test_clean(mem, SIZE);
	return test_done();
}
