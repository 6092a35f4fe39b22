// SPDX-License-Identifier: Apache-2.0
/*
 * A system succeeds a dead one, and keeps its files open (docs/protocol.md, section 5).
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static u8 *mem;

static int unlink_by(struct tsys *s, const char *name)
{
	return sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1);
}

static bool gone(struct tsys *s, const struct sg_iref *ref)
{
	struct sg_attr a;
	int err = sg_getattr(&s->v, ref, &a);

	CHECK(!err || err == -ESTALE);
	return err;
}

static void join(struct tsys *s, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
}

static struct sg_iref make(struct tsys *s, const char *name)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);

	f.generation = (u32)sg_iget(&s->v, &f, genflags);
	return f;
}

static void settle_all(struct tsys *s)
{
	sg_recover_all(&s->v);
	sg_settle(&s->v);
	sg_settle(&s->v);
}

/*
 * During its lapse a fenced system keeps its files open, until a system that opens the same files
 * ends the lapse. No other system can end the lapse in this way.
 */
static void lapse_keeps_open(void)
{
	struct tsys s[2], next;
	unsigned int slot;
	struct sg_iref f, g;
	u32 incarnation;

	join(s, 2);
	f = make(&s[0], "f");
	g = make(&s[0], "g");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(sg_open_inode(&s[1].v, &g, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(unlink_by(&s[1], "g"));
	slot = (unsigned int)s[1].v.slot;
	incarnation = s[1].v.incarnation;
	sg_or64(sg_at(&s[0].v, SG_HOT(lapsed)), 1ULL << slot);
	sg_end_lapse_of(&s[0].v, slot, incarnation);
	CHECK_EQ(sg_get(&s[0].v, SG_HOT(lapsed)), 1ULL << slot);	/* it is live */
	CHECK_OK(sg_fence_lapsed(&s[0].v, slot, incarnation));
	tsys_die(&s[1]);
	settle_all(&s[0]);
	CHECK(!gone(&s[0], &f) && !gone(&s[0], &g));
	tsys_join(&next, mem, SIZE, 9);
	CHECK(next.v.slot != (int)slot);
	CHECK_OK(sg_open_inode(&next.v, &f, true));
	sg_end_lapse_of(&next.v, slot, incarnation + 1);
	sg_end_lapse_of(&next.v, SG_SLOTS, incarnation);
	settle_all(&s[0]);
	CHECK(!gone(&s[0], &f) && !gone(&s[0], &g));
	sg_end_lapse_of(&next.v, slot, incarnation);
	settle_all(&s[0]);
	CHECK(!gone(&s[0], &f) && gone(&s[0], &g));
	sg_close_inode(&next.v, &f);
	settle_all(&s[0]);
	CHECK(gone(&s[0], &f));
	sg_leave(&next.v);
	sg_leave(&s[0].v);
}

static struct {
	struct tsys *by, *first, next;
	const struct sg_iref *ref;
	u64 *at;
	unsigned int loads;
} succession;

/* The first system is fenced. The next one joins, opens the file, and ends the lapse. */
static void succeed(void)
{
	unsigned int slot = (unsigned int)succession.first->v.slot;
	u32 incarnation = succession.first->v.incarnation;

	CHECK_OK(sg_fence_lapsed(&succession.by->v, slot, incarnation));
	tsys_die(succession.first);
	tsys_join(&succession.next, mem, SIZE, 9);
	CHECK_OK(sg_open_inode(&succession.next.v, succession.ref, true));
	sg_end_lapse_of(&succession.next.v, slot, incarnation);
}

/*
 * Makes the succession between two loads of a system that looks for openers: @at is the word of a
 * slot's state, in which the next system joins.
 */
static void on_state(void *addr, bool behind)
{
	if (addr == succession.at && behind && !succession.loads++)
		succeed();
}

static void succeeded_between_loads(void)
{
	struct tsys s[3];
	struct sg_iref f;

	join(s, 3);
	f = make(&s[0], "f");
	CHECK_OK(sg_open_inode(&s[2].v, &f, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	sg_leave(&s[1].v);
	succession.by = &s[0];
	succession.first = &s[2];
	succession.ref = &f;
	succession.loads = 0;
	succession.at = sg_state_word(&s[0].v, 1);
	test_trap((u8 *)((uintptr_t)succession.at & ~(uintptr_t)(SG_PAGE - 1)), on_state);
	CHECK(sg_open_elsewhere(&s[0].v, &f));
	test_trap_end();
	CHECK(succession.loads > 1);
	CHECK_EQ(succession.next.v.slot, 1);
	settle_all(&s[0]);
	CHECK(!gone(&s[0], &f));
	sg_close_inode(&succession.next.v, &f);
	settle_all(&s[0]);
	CHECK(gone(&s[0], &f));
	sg_leave(&succession.next.v);
	sg_leave(&s[0].v);
}

/* Makes the succession just before a system loads the state of the first one. */
static void before_state(void *addr, bool behind)
{
	if (addr == succession.at && !behind && !succession.loads++)
		succeed();
}

/* The users of the next system have the file open for writing, so it cannot be sealed. */
static void succeeded_during_seal(void)
{
	struct tsys s[3];
	struct sg_iref f, g;
	char why[200];

	join(s, 3);
	f = make(&s[0], "f");
	g = make(&s[0], "g");
	CHECK_OK(sg_seal(&s[0].v, &g, 1, why));		/* sets the feature bit, too */
	CHECK_OK(sg_open_inode(&s[2].v, &f, false));
	sg_leave(&s[1].v);
	succession.by = &s[0];
	succession.first = &s[2];
	succession.ref = &f;
	succession.loads = 0;
	succession.at = sg_state_word(&s[0].v, (unsigned int)s[2].v.slot);
	test_trap((u8 *)((uintptr_t)succession.at & ~(uintptr_t)(SG_PAGE - 1)), before_state);
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EBUSY);
	test_trap_end();
	CHECK(succession.loads);
	CHECK(strstr(why, "has the file open"));
	CHECK(!sg_is_sealed(&s[0].v, &f));
	sg_close_inode(&succession.next.v, &f);
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	sg_leave(&succession.next.v);
	sg_leave(&s[0].v);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	lapse_keeps_open();
	succeeded_between_loads();
	succeeded_during_seal();
	return test_done();
}
