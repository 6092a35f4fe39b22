// SPDX-License-Identifier: Apache-2.0
/*
 * Serial numbers of deferred frees (D7). While several systems are mounted, these numbers grow, but
 * the number of the last quiesce stays. Any distance between them is correct: no page is reused
 * while another system reads it, and a system that is alone needs one wait for all pages.
 */
#include <sys/stat.h>
#include "journal/ledger_priv.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define PAGES	50

static u8 *mem;

static struct sg_iref make_file(struct tsys *s, const char *name)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
	static u8 buf[SG_PAGE];
	u64 i;

	memset(buf, 0x42, sizeof(buf));
	for (i = 0; i < PAGES; i++)
		CHECK_EQ(sg_write(&s->v, &f, i * SG_PAGE, buf, SG_PAGE, 1), SG_PAGE);
	return f;
}

static void free_file(struct tsys *s, const char *name)
{
	struct sg_iref f = test_lookup(&s->v, &s->root, name);

	CHECK_OK(sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1));
	CHECK_OK(sg_evict(&s->v, &f));
}

/* --- a reader in another system --------------------------------------------------------------- */

static struct {
	u64 step, off;
} *stage;

enum { LOOKS = 1, RELEASE };

static void looker(void *arg)
{
	struct sg_run run;
	struct sg_iref f;
	struct tsys s;

	(void)arg;
	tsys_join(&s, mem, SIZE, 2);
	tsys_maintain(&s);
	f = test_lookup(&s.v, &s.root, "watched");
	sg_look_begin();
	CHECK_OK(sg_walk(&s.v, &f, PAGES / 2, 1, &run));
	stage->off = run.off;
	tadvance(&stage->step, LOOKS);
	tawait(&stage->step, RELEASE);
	sg_look_end();
	tsys_leave(&s);
}

/* @serial: number of frees of pages that the system has deferred before this one. */
static void is_read_elsewhere(u64 serial)
{
	struct tsys s;
	u64 before;
	pid_t pid;
	int i;

	mem = tsys_volume(SIZE);
	stage = tshare(sizeof(*stage));
	tsys_join(&s, mem, SIZE, 1);
	make_file(&s, "watched");
	CHECK_EQ(sg_reclaim(&s.v, ~0u), 0);
	pid = tproc(looker, NULL);
	tsys_maintain(&s);
	tawait(&stage->step, LOOKS);
	s.v.ledger->serial = serial;
	free_file(&s, "watched");
	before = sg_free_pages(&s.v);
	for (i = 0; i < 20; i++) {
		CHECK(sg_reclaim(&s.v, ~0u) > 0);
		sg_sleep_us(10000);
	}
	CHECK_EQ(sg_free_pages(&s.v), before);
	CHECK_EQ(mem[stage->off], 0x42);
	tadvance(&stage->step, RELEASE);
	tproc_end(pid);
	CHECK_EQ(sg_reclaim(&s.v, ~0u), 0);
	CHECK(sg_free_pages(&s.v) >= before + PAGES);
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

/* --- a system that is alone again ------------------------------------------------------------- */

static void is_alone(u64 serial)
{
	struct tsys s;
	u64 before;

	mem = tsys_volume(SIZE);
	tsys_join(&s, mem, SIZE, 1);
	s.v.maintained = true;	/* no epoch is acknowledged beside these waits */
	make_file(&s, "a");
	make_file(&s, "b");
	CHECK_EQ(sg_reclaim(&s.v, ~0u), 0);
	s.v.ledger->serial = serial;
	free_file(&s, "a");
	free_file(&s, "b");
	before = sg_counters(&s.v).quiesces;
	while (sg_reclaim(&s.v, 1) > 0)	/* entries one by one */
		;
	CHECK_EQ(sg_counters(&s.v).quiesces - before, 1);
	s.v.maintained = false;
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

int main(void)
{
	static const u64 serials[] = { 0x7fffffff, 0x80000000, 0xffffffff };
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(serials); i++) {
		is_read_elsewhere(serials[i]);
		is_alone(serials[i]);
	}
	return test_done();
}
