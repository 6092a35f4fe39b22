// SPDX-License-Identifier: Apache-2.0
/*
 * A tool changes a block device, and sees no heartbeats in its own mapping. The test checks which
 * systems the tool regards as live: systems that send heartbeats, and paused systems with a running
 * guard.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"
#include "test.h"
#include "tool.h"

#define SIZE	SG_VOLUME_MIN

static char path[] = "/tmp/sg-member.XXXXXX";
static u8 *mem;
static u64 *moving;
static bool stop;

static void make_volume(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	int fd = mkstemp(path);
	char why[200];

	CHECK(fd >= 0);
	CHECK_OK(ftruncate(fd, (off_t)SIZE));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mem != MAP_FAILED);
	CHECK_OK(sg_format(mem, SIZE, &opts, why));
	close(fd);
}

static void *move(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		sg_add64(moving, 1);
		sg_sleep_us(20000);
	}
	return NULL;
}

/* Watches the slots while a thread changes @word. NULL: no word changes. */
static int watched(const struct target *t, const struct sg_super *sb, u64 *word, char why[200])
{
	pthread_t mover;
	int err;

	moving = word;
	stop = !word;
	if (word)
		CHECK_OK(pthread_create(&mover, NULL, move, NULL));
	err = member_watch(t, sb, 300, why);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	if (word)
		CHECK_OK(pthread_join(mover, NULL));
	return err;
}

int main(void)
{
	struct sg_slot *slot;
	struct target t;
	struct sg_vol v;
	char why[200] = "";

	make_volume();
	CHECK_OK(member_look_on(&t, &v, path));
	slot = (struct sg_slot *)(mem + v.sb.slot_off);
	slot->state = SG_SLOT_WORD(SG_SLOT_LIVE, 1);
	slot->named = 1;
	strcpy(slot->name, "somebody");
	CHECK_OK(watched(&t, &v.sb, NULL, why));
	CHECK_EQ(watched(&t, &v.sb, &slot->heartbeat, why), -EBUSY);
	CHECK(strstr(why, "in use by somebody (slot 0)"));
	CHECK_EQ(watched(&t, &v.sb, &slot->guard, why), -EBUSY);
	slot->state = SG_SLOT_WORD(SG_SLOT_FREE, 1);
	CHECK_OK(watched(&t, &v.sb, &slot->heartbeat, why));
	target_close(&t);
	CHECK_OK(unlink(path));
	return test_done();
}
