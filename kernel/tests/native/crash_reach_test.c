// SPDX-License-Identifier: Apache-2.0
/*
 * A system dies at each store of a commit that makes a new inode. After one of these stores, other
 * systems see the new name. As soon as they get the inode's lock, they link it or fill the
 * directory. Replay must undo neither the link count nor the change counter that they have stored.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "systems.h"

#define SIZE	TEST_SMALL

extern bool (*sg_interrupt_hook)(void);

static const struct kind {
	const char *what;
	u32 mode;
	bool whiteout;
} kinds[] = {
	{ "create", S_IFREG | 0600, false }, { "mkdir", S_IFDIR | 0700, false },
	{ "symlink", S_IFLNK | 0777, false }, { "mknod", S_IFIFO | 0600, false },
	{ "whiteout", S_IFCHR, true },
};

static u8 *mem;
static struct tsys dies, lives;
static struct sg_iref other;
/* the number of stores since the record became valid, and of the store at which the system dies */
static u64 stores, last;
static jmp_buf death;
static u64 waits;		/* number of waits that the single thread has stopped */
/* how often other systems could change the new inode before the death */
static u64 changed;

/* One thread acts as both systems, so neither may wait for the other. */
static bool impatient(void)
{
	waits++;
	return true;
}

/* Returns whether this store makes a record of the dying system valid. */
static bool makes_valid(const void *p)
{
	u64 from = sg_area_off(&dies.v, (unsigned int)dies.v.slot, 0);
	u64 off = (u64)((const u8 *)p - mem) - from;

	return off < dies.v.sb.areas * sizeof(struct sg_area) &&
	       off % sizeof(struct sg_area) == offsetof(struct sg_area, head) && *(const u64 *)p;
}

static void at_store(const void *p)
{
	if (!stores && !makes_valid(p))
		return;
	if (stores++ == last)
		longjmp(death, 1);
}

static int make(struct tsys *s, const struct kind *k, const char *name)
{
	struct sg_new new = { .mode = k->mode, .now = 1 };
	struct sg_iref ref;

	if (S_ISLNK(k->mode)) {
		new.target = "target";
		new.target_len = 6;
	}
	if (k->whiteout)
		return sg_rename(&s->v, &s->root, name, 1, &s->root, "moved", 5,
				 SG_RENAME_WHITEOUT, &new, 2);
	return sg_create(&s->v, &s->root, name, 1, &new, &ref);
}

/* Changes the new inode as the other system. */
static int change(struct tsys *s, const struct kind *k, const struct sg_iref *x)
{
	struct sg_new new = { .mode = S_IFDIR | 0700, .now = 3 };
	struct sg_iref ref;

	if (!S_ISDIR(k->mode))
		return sg_link(&s->v, x, &other, "y", 1, 3);
	return sg_create(&s->v, x, "sub", 3, &new, &ref);
}

/* Finds the new inode by its name. Ignores the file that was "x" before the whiteout. */
static bool see(struct tsys *s, const struct kind *k, struct sg_iref *x, struct sg_attr *attr)
{
	if (sg_lookup(&s->v, &s->root, "x", 1, x, NULL))
		return false;
	return !sg_getattr(&s->v, x, attr) && (attr->mode & S_IFMT) == (k->mode & S_IFMT);
}

static void world_make(const struct kind *k)
{
	mem = tsys_volume(SIZE);
	tsys_join(&dies, mem, SIZE, 1);
	tsys_join(&lives, mem, SIZE, 2);
	other = test_create(&lives.v, &lives.root, "other", S_IFDIR | 0700);
	if (k->whiteout)
		test_create(&lives.v, &lives.root, "x", S_IFREG | 0600);
}

/*
 * Dies @at stores after the one that makes the record valid. Returns false if there are fewer
 * stores.
 */
static bool dies_at(const struct kind *k, u64 at)
{
	int err;

	last = at;
	stores = 0;
	if (!setjmp(death)) {
		rec_at_store = at_store;
		err = make(&dies, k, "x");
		rec_at_store = NULL;
		CHECK_OK(err);
		return false;
	}
	rec_at_store = NULL;
	return true;
}

static void survives(const struct kind *k)
{
	struct sg_attr before = {}, after;
	struct sg_iref x;
	bool seen, done = false;

	sg_interrupt_hook = impatient;
	seen = see(&lives, k, &x, &before);
	if (seen) {
		int err = change(&lives, k, &x);

		CHECK(!err || err == -EINTR);
		done = !err;
		changed += done;
		CHECK(see(&lives, k, &x, &before));
	}
	sg_interrupt_hook = NULL;
	tsys_fence(&lives, &dies);
	CHECK_EQ(sg_watch(&lives.v), SG_MAINTAIN_MS);
	CHECK_EQ(tsys_state(&lives, (unsigned int)dies.v.slot), SG_SLOT_FREE);
	CHECK(see(&lives, k, &x, &after));
	if (!done)
		CHECK_OK(change(&lives, k, &x));
	if (seen) {
		CHECK_EQ(after.nlink, before.nlink);
		CHECK_EQ(after.entries, before.entries);
		CHECK(after.seq >= before.seq);
	}
	CHECK_OK(sg_getattr(&lives.v, &x, &after));
	CHECK_EQ(after.nlink, S_ISDIR(k->mode) ? 3 : 2);
	CHECK_EQ(after.entries, S_ISDIR(k->mode) ? 1 : 0);
	/* the second name keeps the file when its first name is removed */
	if (!S_ISDIR(k->mode)) {
		CHECK_OK(sg_unlink(&lives.v, &lives.root, "x", 1, 9));
		CHECK_OK(sg_evict(&lives.v, &x));
		x = test_lookup(&lives.v, &other, "y");
		CHECK_OK(sg_getattr(&lives.v, &x, &after));
	}
}

static void each_store(const struct kind *k)
{
	bool more = true;
	u64 at;

	for (at = 0; more; at++) {
		test_note("%s, death at store %llu", k->what, (unsigned long long)at);
		world_make(k);
			more = dies_at(k, at);
		if (more) {
			survives(k);
		} else {
			CHECK(at > 10);	/* the system died often enough */
			sg_leave(&dies.v);
		}
		sg_leave(&lives.v);
		test_clean(mem, SIZE);
		test_unmap(mem, SIZE);
	}
}

/* --- allocation skips a free record whose lock is busy ---------------------------------------- */

static void passed_over(unsigned int busy)
{
	struct sg_iref f, held[64];
	char name[16];
	unsigned int i;

	test_note("%u busy records", busy);
	world_make(&kinds[0]);
	for (i = 0; i < busy; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		held[i] = test_create(&dies.v, &dies.root, name, S_IFREG | 0600);
	}
	for (i = 0; i < busy; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_OK(sg_unlink(&dies.v, &dies.root, name, (u32)strlen(name), 2));
		CHECK_OK(sg_evict(&dies.v, &held[i]));
		CHECK(sg_trylock(&lives.v, SG_IOFF(&held[i], lock)));
	}
	waits = 0;
	sg_interrupt_hook = impatient;
	f = test_create(&dies.v, &dies.root, "new", S_IFREG | 0600);
	sg_interrupt_hook = NULL;
	CHECK_EQ(waits, 0);
	for (i = 0; i < busy; i++) {
		CHECK(f.ino != held[i].ino);
		sg_unlock(&lives.v, SG_IOFF(&held[i], lock));
	}
	/* no record is lost: fsck will count them */
	for (i = 0; i < busy + 200; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		f = test_create(&dies.v, &dies.root, name, S_IFREG | 0600);
	}
	sg_leave(&dies.v);
	sg_leave(&lives.v);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

/* --- its generation -------------------------------------------------------------------------- */

/* Generation 0 means any: a reference to the previous file would be valid for the new one. */
static void generation_wraps(void)
{
	struct sg_attr attr = { .generation = ~0u };
	struct sg_iref f, next;

	test_note("%s", __func__);
	world_make(&kinds[0]);
	f = test_create(&lives.v, &lives.root, "f", S_IFREG | 0600);
	CHECK_OK(sg_setattr(&lives.v, &f, SG_SET_GENERATION, &attr));
	f.generation = ~0u;
	CHECK_OK(sg_unlink(&lives.v, &lives.root, "f", 1, 2));
	CHECK_OK(sg_evict(&lives.v, &f));
	next = test_create(&lives.v, &lives.root, "next", S_IFREG | 0600);
	CHECK_EQ(next.ino, f.ino);
	CHECK_EQ(next.generation, 1);
	attr.generation = 0;
	CHECK_OK(sg_setattr(&lives.v, &next, SG_SET_GENERATION, &attr));
	CHECK_OK(sg_getattr(&lives.v, &next, &attr));
	CHECK_EQ(attr.generation, 1);
	sg_leave(&dies.v);
	sg_leave(&lives.v);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

int main(void)
{
	unsigned int i;
	cpu_set_t one;

	/* the processor's number selects the area, so the test runs on one processor */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
	tlog_catch();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		each_store(&kinds[i]);
	generation_wraps();
	passed_over(1);
	passed_over(5);
	passed_over(20);
	/* changes came between the end of the record and the release of its locks */
	CHECK(changed);
	return test_done();
}
