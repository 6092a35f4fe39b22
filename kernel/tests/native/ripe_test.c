// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for readers when a system that is alone removes many files (D7). One wait is enough for all
 * pages that were taken out of use before it. A transaction that begins does not wait while the
 * ledger has room. Pages that are taken out of use during a wait need the next one.
 */
#include <sys/stat.h>
#include "deferred/deferred.h"
#include "test.h"

#define FILES	1000u
#define WAITS	4u	/* for 1,000 removals: the ledger's first page has room for 511 */

static struct tvol t;
static struct sg_iref late;
static unsigned int quiesced;

static void remove_one(unsigned int i)
{
	struct sg_iref ref;
	char name[16];
	u32 len = (u32)sprintf(name, "f%u", i);

	ref = test_create(&t.v, &t.root, name, S_IFREG | 0600);
	test_fill(&t.v, &ref, 0, SG_PAGE);
	CHECK_OK(sg_unlink(&t.v, &t.root, name, len, 1));
	CHECK_OK(sg_evict(&t.v, &ref));
}

static void many(void)
{
	u64 before = sg_counters(&t.v).quiesces, waits;
	unsigned int i;

	for (i = 0; i < FILES; i++)
		remove_one(i);
	waits = sg_counters(&t.v).quiesces - before;
	printf("%u removals: %" PRIu64 " waits for readers\n", FILES, waits);
	CHECK(waits <= WAITS);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_EQ(sg_counters(&t.v).quiesces - before, waits + 1);
}

/* The engine calls this function while it waits for readers. */
static void cut_late(struct sg_vol *v)
{
	if (!quiesced++)
		CHECK_OK(sg_resize(v, &late, 0, 1));
}

static void during(void)
{
	struct sg_iref early = test_create(&t.v, &t.root, "early", S_IFREG | 0600);

	late = test_create(&t.v, &t.root, "late", S_IFREG | 0600);
	test_fill(&t.v, &early, 0, SG_PAGE);
	test_fill(&t.v, &late, 0, SG_PAGE);
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_OK(sg_resize(&t.v, &early, 0, 1));
	t.v.quiesce = cut_late;
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_EQ(quiesced, 2);
	t.v.quiesce = NULL;
}

/* The parts of a large table are unread, as the table is. */
static void table(void)
{
	struct sg_iref big = test_create(&t.v, &t.root, "big", S_IFREG | 0600);
	u64 before, i;
	u8 byte = 1;

	for (i = 0; i < 300; i++)	/* many tables of level 1, with a page each */
		CHECK_EQ(sg_write(&t.v, &big, i * SG_CHUNK, &byte, 1, 1), 1);
	CHECK_OK(sg_resize(&t.v, &big, 0, 1));
	before = sg_counters(&t.v).quiesces;
	CHECK_EQ(sg_reclaim(&t.v, ~0u), 0);
	CHECK_EQ(sg_counters(&t.v).quiesces - before, 1);
}

int main(void)
{
	tvol_make(&t, 1ULL << 30);
	t.v.maintained = true;	/* no epoch is acknowledged beside these waits */
	many();
	during();
	table();
	test_clean(t.mem, t.size);
	tvol_drop(&t);
	return test_done();
}
