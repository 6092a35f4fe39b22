// SPDX-License-Identifier: Apache-2.0
/*
 * Forged records of users' locks. These records are no valid locks, and other systems clear them
 * even while the system that they name lives.
 */
#include "userlock_util.h"

static u64 head;	/* head of a record, for a lock that a live system may have */

/* Forges a record of each range that no process can request. */
static void forge(struct sg_userlock_page *page)
{
	unsigned int i;

	for (i = 0; i < SG_USERLOCK_RECORDS; i++) {
		page->record[i].owner = i;
		page->record[i].ino = file[0].ino;
		page->record[i].start = i % 2 ? 0 : 7;
		page->record[i].last = i % 2 ? SG_USERLOCK_MAX + 1 : 3;
		page->record[i].head = head;
	}
}

static struct sg_userlock_page *page_of(struct sg_userlock_record *r)
{
	return (void *)((uintptr_t)r & ~(uintptr_t)(SG_PAGE - 1));
}

static void found(void *ctx, struct sg_userlock_record *r)
{
	*(struct sg_userlock_page **)ctx = page_of(r);
}

/* The next system that locks the chain clears the forged records, so the chain does not grow. */
static void cleared_by_the_next(void)
{
	struct sg_userlock_page *page = NULL;

	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_EQ(each_record(found, &page), 1);
	forge(page);
	CHECK_EQ(each_record(NULL, NULL), SG_USERLOCK_RECORDS);
	CHECK_OK(try(2, 0, POSIX(1, true)));
	CHECK_EQ(each_record(NULL, NULL), 1);
	drop(2, 0, POSIX(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* fsck finds the forged records. It does not report records of dead systems. */
static void found_by_fsck(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_PREEN, .id = &test_identity, .force = true };
	struct sg_userlock_page *page = NULL;
	struct sg_check_result res;
	unsigned int i;

	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_EQ(each_record(found, &page), 1);
	for (i = 0; i < SYSTEMS; i++)
		sg_leave(&sys[i]);
	tvol_leave(&t);
	test_clean(t.mem, t.size);
	forge(page);
	CHECK(!test_is_clean(t.mem, t.size, &res));
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK_EQ(res.found, 1);
	CHECK_EQ(res.fixed, 1);
	for (i = 0; i < SG_USERLOCK_RECORDS; i++)
		CHECK_EQ(page->record[i].head, 0);
	test_clean(t.mem, t.size);
	test_unmap(t.mem, t.size);
}

int main(void)
{
	seed = test_seed();
	begin(64 << 20);
	head = SG_USERLOCK_HEAD(SG_USERLOCK_POSIX, (unsigned int)sys[1].slot, sys[1].incarnation);
	cleared_by_the_next();
	found_by_fsck();
	return test_done();
}
