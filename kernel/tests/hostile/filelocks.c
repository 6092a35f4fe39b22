// SPDX-License-Identifier: Apache-2.0
/* Records of users' locks that another system changes between two loads of the engine. */
#include "hostile.h"

static struct sg_vol v;

static struct sg_iref inode(const char *name)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	return test_lookup(&v, &root, name);
}

/* Returns the first record of the owner's locks in a chain. */
static struct sg_userlock_record *own_record(unsigned int nr, u64 owner)
{
	int err = 0;
	struct sg_userlock_page *p = sg_userlock_page(&v, nr, 0, &err);
	unsigned int i;

	CHECK(p);
	for (i = 0; i < SG_USERLOCK_RECORDS; i++)
		if (p->record[i].head && p->record[i].owner == owner)
			return &p->record[i];
	test_fail(__FILE__, __LINE__, "no record of owner %" PRIu64, owner);
}

static unsigned int chain_with(u64 owner)
{
	unsigned int nr, i;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		int err = 0;
		struct sg_userlock_page *p = sg_userlock_page(&v, nr, 0, &err);

		for (i = 0; p && i < SG_USERLOCK_RECORDS; i++)
			if (p->record[i].head && p->record[i].owner == owner)
				return nr;
	}
	test_fail(__FILE__, __LINE__, "no chain with owner %" PRIu64, owner);
}

static struct {
	struct sg_userlock_record *rec;
	u64 loads, from;
} widened;

/* Extends this system's lock at the end of the range to all bytes, between two loads of it. */
static void widen(u64 off)
{
	if (off != (u64)((u8 *)&widened.rec->start - volume) || ++widened.loads != widened.from)
		return;
	widened.rec->start = 0;
	widened.rec->last = SG_USERLOCK_MAX;
}

/*
 * A call checks whether it splits a lock before it changes any record. Without a split, it reserves
 * no record for that. A live system has all other records of the chain.
 */
static void split_lock(u64 from, bool set_other)
{
	struct sg_userlock lock = {
		.kind = SG_USERLOCK_POSIX, .exclusive = true, .pid = 5, .owner = 77,
		.start = 12, .last = 20, .slot = -1, .brief = true,
	};
	struct sg_userlock_page *p;
	struct sg_iref f;
	unsigned int nr, i;
	int err = 0;

	CHECK_OK(host_join(&v, true));
	f = inode("one");
	lock.brief = false;
	CHECK_OK(sg_userlock_set(&v, &f, &lock, NULL, NULL));
	lock.brief = true;
	nr = chain_with(77);
	widened.rec = own_record(nr, 77);
	p = sg_userlock_page(&v, nr, 0, &err);
	sg_store64(sg_state_word(&v, 9), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	for (i = 0; i < SG_USERLOCK_RECORDS - set_other; i++)
		if (!p->record[i].head)
			p->record[i] = (struct sg_userlock_record){
				.head = SG_USERLOCK_HEAD(SG_USERLOCK_POSIX, 9, 77),
				.ino = 1 << 20, .owner = i,
			};
	lock.start = 10;
	lock.last = 30;
	lock.exclusive = false;
	widened.loads = 0;
	widened.from = from;
	hook_load = widen;
	err = set_other ? sg_userlock_set(&v, &f, &lock, NULL, NULL) :
			  sg_userlock_clear(&v, &f, &lock);
	hook_load = NULL;
	CHECK(!err || err == -ENOBUFS);
	sg_leave(&v);
}

void case_split_lock(void)
{
	u64 from;

	for (from = 1; from < 8; from++) {
		volume_reset();
		split_lock(from, false);
		volume_reset();
		split_lock(from, true);
	}
}

static struct {
	struct sg_userlock_record *rec;
	u64 start, last, loads, from;
} inverted;

/* Changes the range at one of its loads: in the survey of the chain, or after it. */
static void invert(u64 off)
{
	if (off != (u64)((u8 *)&inverted.rec->start - volume) || ++inverted.loads != inverted.from)
		return;
	inverted.rec->start = inverted.start;
	inverted.rec->last = inverted.last;
}

/*
 * Users get the start and the end of a conflicting lock, so these numbers must always be valid. The
 * survey of the chain removes a record with an invalid range, so each round uses another lock.
 */
static void lock_range(u64 start, u64 last, u64 from)
{
	struct sg_userlock lock = {
		.kind = SG_USERLOCK_POSIX, .exclusive = true, .pid = 5, .owner = 77, .last = 9, .slot = -1,
	}, other = lock, held = { 0 };
	struct sg_iref f;

	volume_reset();
	CHECK_OK(host_join(&v, true));
	f = inode("one");
	CHECK_OK(sg_userlock_set(&v, &f, &lock, NULL, NULL));
	other.owner = 78;
	CHECK_EQ(sg_userlock_test(&v, &f, &other, &held), -EAGAIN);
	inverted.rec = own_record(chain_with(77), 77);
	inverted.start = start;
	inverted.last = last;
	inverted.loads = 0;
	inverted.from = from;
	hook_load = invert;
	memset(&held, 0, sizeof(held));
	sg_userlock_test(&v, &f, &other, &held);
	hook_load = NULL;
	CHECK(held.start <= held.last && held.last <= SG_USERLOCK_MAX);
	CHECK(inverted.loads >= from);
	CHECK_OK(sg_userlock_clear(&v, &f, &lock));
	sg_leave(&v);
}

void case_lock_range(void)
{
	static const u64 range[][2] = { { 0, ~0ULL }, { 5, 4 }, { 1, 1ULL << 63 } };
	unsigned int i, from;

	for (i = 0; i < 3; i++)
		for (from = 1; from < 3; from++)
			lock_range(range[i][0], range[i][1], from);
}
