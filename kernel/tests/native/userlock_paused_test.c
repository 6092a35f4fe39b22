// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of users beside a system that is paused and has a lock of the lock file: searches for
 * circles of waiting requests.
 */
#include "userlock_util.h"

/*
 * Two requests close a circle while another system has @lock, and is paused. The search waits for
 * neither of its locks, and finds the circle as soon as that lock is free.
 */
static void circle_behind(u64 lock)
{
	struct sg_userlock_wait a = { 0 }, b = { 0 };
	unsigned int turn;

	CHECK_EQ(ask(0, 1, POSIX(1, true), &a), -EAGAIN);
	CHECK_OK(sg_lock(&sys[2], lock));
	test_within(20, "a search for circles, while another system has a lock that it needs");
	for (turn = 0; turn < 3; turn++)
		CHECK_EQ(ask(1, 0, POSIX(2, true), &b), -EAGAIN);
	test_within(0, NULL);
	sg_unlock(&sys[2], lock);
	CHECK_EQ(ask(1, 0, POSIX(2, true), &b), -EDEADLK);
	sg_userlock_give_up(&sys[0], &file[1], &a);
	CHECK_EQ(each_record(NULL, NULL), 2);
}

int main(void)
{
	struct sg_userlock_page *page;
	int err;

	seed = test_seed();
	begin(TEST_SMALL);
	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_OK(try(1, 1, POSIX(2, true)));
	CHECK(chain_with(file[0].ino) != chain_with(file[1].ino));
	page = sg_userlock_page(&sys[2], chain_with(file[1].ino), 0, &err);
	circle_behind((u64)((u8 *)&page->lock - sys[2].base));
	page = sg_userlock_page(&sys[2], 0, 0, &err);
	circle_behind((u64)((u8 *)&page->circle - sys[2].base));
	drop(0, 0, POSIX(1, true));
	drop(1, 1, POSIX(2, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
	end();
	return test_done();
}
