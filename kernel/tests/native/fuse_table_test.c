// SPDX-License-Identifier: Apache-2.0
/*
 * The locks of a mount, in the memory that the next server inherits (kernel/tools/fuse/locks.c). A
 * server may be killed after each store. The next server must then find each lock that a process
 * still has, and none that nobody had.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "test.h"
#include "../../tools/fuse/locks.c"

struct server fs;
__thread struct worker *self;

/* Other parts of the server, which these functions of locks.c do not reach. */
int node_ref(u64 id, struct sg_iref *ref) { (void)id; (void)ref; abort(); }
int change_begin(void) { abort(); }
bool change_try(void) { abort(); }
void change_end(void) { abort(); }
const void *call_arg(size_t len) { (void)len; abort(); }
int reply(const void *data, size_t len) { (void)data; (void)len; abort(); }
void reply_later(void) { abort(); }
void answer(u64 unique, int err, const void *data, size_t len)
{
	(void)unique; (void)err; (void)data; (void)len;
	abort();
}

#define OWNERS	3
#define BYTES	100

/* For each owner: the bytes that are locked before and after the change. */
static bool before[OWNERS][BYTES], after[OWNERS][BYTES];
static u64 first, last;		/* the range of the change: the next server repeats the call */
static unsigned int stores;

/* Reads the table as the next server does. */
static void read_table(bool has[OWNERS][BYTES])
{
	u64 i, byte;

	memset(has, 0, sizeof(before));
	CHECK(fs.kept->locks <= LOCKS_KEPT);
	for (i = 0; i < fs.kept->locks; i++) {
		const struct kept_lock *l = &fs.kept->lock[i];

		if (!l->id)
			continue;
		CHECK(l->owner < OWNERS && l->id == 10 + l->owner && l->fh == 20 + l->owner);
		CHECK(l->pid == 30 + l->owner && l->start <= l->last && l->last < BYTES);
		for (byte = l->start; byte <= l->last; byte++)
			has[l->owner][byte] = true;
	}
}

static void look(void *addr, bool behind)
{
	static bool now[OWNERS][BYTES];
	unsigned int o, i;

	(void)addr;
	if (!behind)
		return;
	stores++;
	read_table(now);
	for (o = 0; o < OWNERS; o++) {
		for (i = 0; i < BYTES; i++) {
			if (o == 1 && i >= first && i <= last)
				continue;
			CHECK_EQ(now[o][i], before[o][i]);
		}
	}
}

static void lock(u64 owner, u64 start, u64 end, bool held)
{
	struct sg_userlock want = { .owner = owner, .start = start, .last = end,
				    .pid = (u32)(30 + owner) };

	table_note(10 + owner, 20 + owner, &want, held);
}

/* Owner 1 unlocks, or locks again, bytes of its lock. The locks of the others stay. */
static void change(u64 start, u64 end, bool held)
{
	u64 byte;

	first = start;
	last = end;
	fs.kept->locks = 0;
	lock(0, 0, 99, true);
	lock(1, 20, 79, true);
	lock(2, 5, 6, true);
	read_table(before);
	memcpy(after, before, sizeof(after));
	for (byte = start; byte <= end; byte++)
		after[1][byte] = held;
	test_trap((u8 *)&fs.kept->locks, look);
	lock(1, start, end, held);
	test_trap_end();
	read_table(before);
	CHECK(!memcmp(before, after, sizeof(after)));
}

int main(void)
{
	size_t room = sizeof(struct inherited) + 2 * SG_PAGE;
	u8 *at = mmap(NULL, room, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(at != MAP_FAILED);
	/* the number of locks begins a page, which the first locks share */
	fs.kept = (void *)(at + SG_PAGE - offsetof(struct inherited, locks) % SG_PAGE);
	change(40, 59, false);
	change(20, 39, false);
	change(60, 79, false);
	change(0, 99, false);
	change(40, 59, true);
	change(20, 79, true);
	CHECK(stores > 20);
	return test_done();
}
