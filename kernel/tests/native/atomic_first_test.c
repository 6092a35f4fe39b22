// SPDX-License-Identifier: Apache-2.0
/*
 * The first atomic writes to a file wait until no system writes to the file without the lock. A
 * system that does not acknowledge delays them, and writes that begin meanwhile, for 2 s at most.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define MS	1000000ULL

extern void (*sg_sleep_hook)(u64 ns);

static struct tsys s[3];		/* two writers, and a system that acknowledges late */
static struct sg_iref f;
static u8 bytes[SG_PAGE];
static u64 begun, ended[2];

static int put(unsigned int i)
{
	bool filled = false;

	return sg_write_atomic(&s[i].v, &f, i * SG_PAGE, bytes, SG_PAGE, 0, 1, &filled);
}

static u64 flags(void)
{
	return sg_iget(&s[0].v, &f, genflags) >> 32;
}

static void *writes(void *arg)
{
	unsigned int i = arg != NULL;

	tadvance(&begun, i + 1);
	CHECK_OK(put(i));
	sg_store64(&ended[i], sg_ticks());
	return NULL;
}

static void acknowledge(struct tsys *by)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		sg_epoch_push(&s[0].v);
		CHECK(sg_maintain(&by->v) >= 0);
	}
}

static void make(const char *name, u32 set)
{
	f = test_create(&s[0].v, &s[0].root, name, S_IFREG | 0600);
	CHECK_EQ(sg_write(&s[0].v, &f, 0, bytes, SG_PAGE, 1), SG_PAGE);
	if (set)	/* the state while a paused system has not acknowledged */
		CHECK_OK(sg_set_atomic(&s[0].v, &f, true, 1));
	CHECK_EQ(flags(), set);
	begun = ended[0] = ended[1] = 0;
}

/* The second writer finds the flag that the first writer has set, and waits as well. */
static void both_wait(const char *name, u32 set)
{
	pthread_t thread[2];
	u64 acknowledged, until;

	test_note("%s", name);
	make(name, set);
	CHECK(!pthread_create(&thread[0], NULL, writes, NULL));
	while (!(flags() & (SG_FL_WHOLE | SG_FL_ATOMIC)))
		sg_sleep_us(100);
	tawait(&begun, 1);
	CHECK(!pthread_create(&thread[1], NULL, writes, (void *)1));
	tawait(&begun, 2);
	sg_sleep_us(300000);
	acknowledged = sg_ticks();
	for (until = acknowledged + 30000 * MS; sg_ticks() < until && !(ended[0] && ended[1]);) {
		acknowledge(&s[2]);
		sg_sleep_us(1000);
	}
	CHECK(!pthread_join(thread[0], NULL) && !pthread_join(thread[1], NULL));
	CHECK(ended[0] > acknowledged);
	CHECK(ended[1] > acknowledged);
	CHECK_EQ(flags(), set | SG_FL_TOLD | (set ? 0 : SG_FL_WHOLE));
}

/* A system that never acknowledges delays the first write only. */
static void never(void)
{
	u64 start;

	test_note("%s", __func__);
	make("never", 0);
	start = sg_ticks();
	CHECK_OK(put(0));
	CHECK(sg_ticks() - start > 1900 * MS);
	start = sg_ticks();
	CHECK_OK(put(0));
	CHECK_OK(put(1));
	CHECK(sg_ticks() - start < 1900 * MS);
}

/*
 * Runs while the first writer waits: sets data=inplace, then starts a first atomic write elsewhere.
 */
static void set_again(u64 ns)
{
	sg_sleep_hook = NULL;
	CHECK_EQ(flags(), SG_FL_WHOLE);
	CHECK_OK(sg_set_atomic(&s[1].v, &f, false, 1));
	CHECK_EQ(flags(), 0);
	CHECK_OK(sg_ilock(&s[1].v, &f));
	CHECK_OK(sg_note_whole(&s[1].v, &f));
	sg_iunlock(&s[1].v, &f);
	sg_sleep_us(ns / 1000);
}

/* A wait that began before the flag was cleared does not cover writes that began after that. */
static void begins_anew(void)
{
	test_note("%s", __func__);
	make("anew", 0);
	sg_sleep_hook = set_again;
	CHECK_OK(sg_note_whole_first(&s[0].v, &f));
	CHECK(!sg_sleep_hook);
	CHECK_EQ(flags(), SG_FL_WHOLE);
	CHECK(!sg_is_told(&s[0].v, &f));
	CHECK_OK(put(0));
	CHECK_EQ(flags(), SG_FL_WHOLE | SG_FL_TOLD);
}

/* Older software, which does not know SG_FL_TOLD, has cleared the other flags. */
static void told_stays(const char *name)
{
	u64 *genflags;

	make(name, 0);
	genflags = sg_at(&s[0].v, SG_IOFF(&f, genflags));
	sg_store64(genflags, *genflags | (u64)SG_FL_TOLD << 32);
	CHECK_EQ(flags(), SG_FL_TOLD);
	CHECK(!sg_is_told(&s[0].v, &f));
}

static void told_by_itself(void)
{
	test_note("%s", __func__);
	told_stays("write");
	CHECK_OK(sg_ilock(&s[0].v, &f));
	CHECK_OK(sg_note_whole(&s[0].v, &f));
	sg_iunlock(&s[0].v, &f);
	CHECK_EQ(flags(), SG_FL_WHOLE);
	told_stays("attribute");
	CHECK_OK(sg_set_atomic(&s[0].v, &f, true, 1));
	CHECK_EQ(flags(), SG_FL_ATOMIC);
	told_stays("cleared");
	CHECK_OK(sg_set_atomic(&s[0].v, &f, false, 1));
	CHECK_EQ(flags(), 0);
}

int main(void)
{
	u8 *mem = tsys_volume(SIZE);
	unsigned int i;

	for (i = 0; i < 3; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
	s[2].v.maintained = true;	/* only sg_maintain() acknowledges */
	both_wait("plain", 0);
	both_wait("with the attribute", SG_FL_ATOMIC);
	never();
	begins_anew();
	told_by_itself();
	s[2].v.maintained = false;
	for (i = 0; i < 3; i++)
		sg_leave(&s[i].v);
	test_clean(mem, SIZE);
	return test_done();
}
