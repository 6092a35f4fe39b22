// SPDX-License-Identifier: Apache-2.0
/*
 * Fenced systems that still run (docs/protocol.md, section 1, "Own life"). With any operation in
 * progress, they store nothing more, and do not report changes of other systems as damage.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static u8 *mem;

enum deed {
	CREATE, UNLINK, RENAME, LINK, TMPFILE, WRITE, OVERWRITE, APPEND, GROW, SHRINK, PUNCH, PUNCH_PART,
	ALLOCATE, COLLAPSE, INSERT, SETATTR, TOUCH, XATTR, EVICT, RECLAIM, UNLOCK, HELP, DEEDS
};

struct world {
	struct tsys s;
	struct sg_iref f, gone, dir;
	int ret, deaths;
	enum deed deed;
};

static struct world *w_dead;

static void on_death(struct sg_vol *v)
{
	(void)v;
	w_dead->deaths++;
}

static int perform(struct world *w, enum deed deed)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_attr a = { .mode = 0640, .uid = 7 };
	struct sg_vol *v = &w->s.v;
	struct sg_iref ref;
	static u8 buf[20000];
	int err;

	memset(buf, 0x77, sizeof(buf));
	switch (deed) {
	case CREATE:	return sg_create(v, &w->dir, "new", 3, &new, &ref);
	case UNLINK:	return sg_unlink(v, &w->dir, "f", 1, 2);
	case RENAME:	return sg_rename(v, &w->dir, "f", 1, &w->dir, "g", 1, 0, NULL, 2);
	case LINK:	return sg_link(v, &w->f, &w->dir, "l", 1, 2);
	case TMPFILE:	return sg_tmpfile(v, &new, &ref);
	case WRITE:	return (int)sg_write(v, &w->f, 200000, buf, sizeof(buf), 2);
	case OVERWRITE:	return (int)sg_write(v, &w->f, 100, buf, 5000, 2);
	case APPEND:	return (int)sg_write(v, &w->f, 10000, buf, 500, 2);
	case GROW:	return sg_resize(v, &w->f, 11000, 2);
	case SHRINK:	return sg_resize(v, &w->f, 5000, 2);
	case PUNCH:	return sg_punch(v, &w->f, 0, 8192, 2);
	case PUNCH_PART: return sg_punch(v, &w->f, 10, 100, 2);
	case ALLOCATE:	return sg_allocate(v, &w->f, 3, 10);
	case COLLAPSE:	return sg_collapse(v, &w->f, 0, 4096, 2);
	case INSERT:	return sg_insert(v, &w->f, 0, 4096, 2);
	case SETATTR:	return sg_setattr(v, &w->f, SG_SET_MODE | SG_SET_UID, &a);
	case TOUCH:	return sg_touch(v, &w->f, SG_SET_MTIME, 3, 3, 3);
	case XATTR:	return sg_xattr_set(v, &w->f, SG_XATTR_USER, "x", 1, buf, 600, 0, 2);
	case EVICT:	return sg_evict(v, &w->gone);
	case RECLAIM:	return sg_reclaim(v, ~0u);
	case UNLOCK:
		err = sg_may_change(v, &w->f);	/* the test has taken the lock before */
		sg_iunlock(v, &w->f);
		return err;
	case HELP:
		sg_help(v, SG_LOCK_WORD(9, 1));
		return sg_maintain(v);
	default:
		return 0;
	}
}

static void world_make(struct world *w)
{
	static u8 buf[10000];

	memset(w, 0, sizeof(*w));
	tsys_join(&w->s, mem, SIZE, 1);
	/*
	 * otherwise a waiter would send heartbeats itself, and complete a begun heartbeat after the
	 * fence
	 */
	w->s.v.maintained = true;
	w->s.v.on_death = on_death;
	w_dead = w;
	w->dir = test_create(&w->s.v, &w->s.root, "d", S_IFDIR | 0700);
	w->f = test_create(&w->s.v, &w->dir, "f", S_IFREG | 0600);
	memset(buf, 0x33, sizeof(buf));
	CHECK_EQ(sg_write(&w->s.v, &w->f, 0, buf, sizeof(buf), 1), sizeof(buf));
	w->gone = test_create(&w->s.v, &w->dir, "gone", S_IFREG | 0600);
	CHECK_EQ(sg_write(&w->s.v, &w->gone, 0, buf, sizeof(buf), 1), sizeof(buf));
	CHECK_OK(sg_unlink(&w->s.v, &w->dir, "gone", 4, 1));
	CHECK_OK(sg_punch(&w->s.v, &w->f, 8192, 1000, 1));
}

static void unmake(struct tsys *by)
{
	struct sg_iref d = test_lookup(&by->v, &by->root, "d"), f = test_lookup(&by->v, &d, "f");

	CHECK_OK(sg_unlink(&by->v, &d, "f", 1, 2));
	CHECK_OK(sg_evict(&by->v, &f));
	CHECK_OK(sg_rmdir(&by->v, &by->root, "d", 1, 2));
	CHECK_OK(sg_evict(&by->v, &d));
}

static void same_bytes(const u8 *before, enum deed deed, const char *when)
{
	u64 i;

	test_counted();
	for (i = 0; i < SIZE; i += 8)
		if (memcmp(before + i, mem + i, 8))
			test_fail(__FILE__, __LINE__, "operation %d, %s: a store at 0x%" PRIx64 ": %" PRIx64
				  " was %" PRIx64, deed, when, i, *(u64 *)(mem + i),
				  *(const u64 *)(before + i));
}

/* Copies single words, like loads of the engine, because other systems may store meanwhile. */
static void snapshot(u8 *to)
{
	u64 i;

	for (i = 0; i < SIZE; i += 8)
		*(u64 *)(to + i) = sg_load64((u64 *)(mem + i));
}

/*
 * The system is fenced before the operation. Its slot is dead, in recovery, free, or has a new
 * owner.
 */
static void dead_before(enum deed deed, unsigned int how, u8 *before)
{
	struct tsys by, other;
	struct world w;

	tsys_join(&by, mem, SIZE, 2);
	world_make(&w);
	if (deed == UNLOCK)
		sg_ilock(&w.s.v, &w.f);
	if (deed == HELP)
		*sg_state_word(&by.v, 9) = SG_SLOT_WORD(SG_SLOT_DEAD, 1);
	tsys_fence(&by, &w.s);
	if (how > 0)
		CHECK(sg_recover_slot(&by.v, (unsigned int)w.s.v.slot));
	if (how > 1)
		tsys_join(&other, mem, SIZE, 3);
	snapshot(before);
	test_note("operation %d, system fenced before, slot state %u", deed, how);
	/* the slot's next owner has freed the deferred inodes */
	CHECK_EQ(perform(&w, deed), -EIO);
	same_bytes(before, deed, "fenced before");
	CHECK_EQ(sg_maintain(&w.s.v), -EIO);
	sg_beat(&w.s.v);
	sg_settle(&w.s.v);
	tsys_leave(&w.s);
	same_bytes(before, deed, "leaving");
	CHECK_EQ(w.deaths, 1);
	sg_recover_all(&by.v);
	/* leaves now, so that no system later waits for its acknowledgement */
	tsys_leave(&by);
	if (how > 1)
		tsys_leave(&other);
	tsys_join(&w.s, mem, SIZE, 1);	/* the fenced system can join again */
	unmake(&w.s);
	tsys_leave(&w.s);
	test_clean(mem, SIZE);
}

static void *perform_there(void *arg)
{
	struct world *w = arg;

	w->ret = perform(w, w->deed);
	return NULL;
}

/*
 * Takes a lock for which @s will wait, or releases it. Sets the bit of @s and the flag ASKED in
 * advance, so that the wait itself stores nothing.
 */
static void have(struct tsys *by, const struct tsys *s, u64 off, bool take)
{
	if (!take) {
		sg_unlock(&by->v, off);
		return;
	}
	sg_lock_sure(&by->v, off);
	sg_or64(sg_at(&by->v, off + offsetof(struct sg_lock, word)), SG_LOCK_ASKED);
	sg_or64(sg_at(&by->v, off + offsetof(struct sg_lock, waiters)), 1ULL << s->v.slot);
}

/* Takes all locks that the operations need, so that each of them waits. */
static void all_locks(struct tsys *by, const struct world *w, bool take)
{
	const struct tsys *s = &w->s;
	u64 c;

	have(by, s, w->dir.off, take);
	have(by, s, w->f.off, take);
	have(by, s, w->gone.off, take);
	for (c = 0; c < by->v.sb.chunks; c++)
		have(by, s, sg_chunk_off(&by->v, c), take);
	have(by, s, SG_HOT(inode_lock), take);
}

/* The system is fenced while it waits for another system's lock. */
static void dead_while_waiting(enum deed deed, u8 *before)
{
	struct tsys by;
	struct world w;
	pthread_t id;

	tsys_join(&by, mem, SIZE, 2);
	world_make(&w);
	w.deed = deed;
	all_locks(&by, &w, true);
	test_note("operation %d, system fenced while it waits", deed);
	CHECK_OK(pthread_create(&id, NULL, perform_there, &w));
	tawait(&w.s.v.stat.lock_waits, 1);
	sg_sleep_us(5000);	/* the waiter sleeps by now */
	tsys_fence(&by, &w.s);
	CHECK(sg_recover_slot(&by.v, (unsigned int)w.s.v.slot));
	snapshot(before);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(w.ret, -EIO);
	same_bytes(before, deed, "fenced while waiting");
	tsys_leave(&w.s);
	all_locks(&by, &w, false);
	sg_settle(&by.v);
	unmake(&by);
	tsys_leave(&by);
	test_clean(mem, SIZE);
}

static struct tsys *fencer;
static u64 waiters_word;

/* Fences the calling system, and sets the bit of its slot, as the slot's next owner may do. */
static bool fence_it(const struct sg_vol *vol)
{
	if (sg_is_ours(vol)) {
		tsys_fence(fencer, &w_dead->s);
		CHECK(sg_recover_slot(&fencer->v, (unsigned int)vol->slot));
		sg_or64(sg_at(&fencer->v, waiters_word), 1ULL << vol->slot);
	}
	return true;
}

/*
 * The system is fenced at the moment at which it gives up waiting for a lock. Its slot's bit in the
 * lock's waiters word may then belong to the next owner of the slot, so the system must not clear
 * the bit.
 */
static void dead_when_it_gives_up(void)
{
	struct tsys by;
	struct world w;
	u64 bit;

	tsys_join(&by, mem, SIZE, 2);
	world_make(&w);
	fencer = &by;
	waiters_word = w.dir.off + offsetof(struct sg_lock, waiters);
	w.s.v.gives_way = fence_it;
	have(&by, &w.s, w.dir.off, true);
	CHECK(sg_lock(&w.s.v, w.dir.off) < 0);
	CHECK(!sg_is_ours(&w.s.v));
	bit = 1ULL << w.s.v.slot;
	CHECK(sg_load64(sg_at(&by.v, waiters_word)) & bit);
	tsys_leave(&w.s);
	sg_and64(sg_at(&by.v, waiters_word), ~bit);
	have(&by, &w.s, w.dir.off, false);
	sg_settle(&by.v);
	unmake(&by);
	tsys_leave(&by);
	test_clean(mem, SIZE);
}

/* Returns whether the operation needs a lock that another system can hold. */
static bool may_wait(enum deed deed)
{
	return deed != TMPFILE && deed != COLLAPSE && deed != INSERT && deed < RECLAIM;
}

static void declared_dead(void)
{
	u8 *before = test_map(SIZE);
	unsigned int deed, how;

	for (deed = 0; deed < DEEDS; deed++) {
		for (how = 0; how < 3; how++)
			dead_before(deed, how, before);
		if (may_wait(deed))
			dead_while_waiting(deed, before);
	}
	test_unmap(before, SIZE);
}

/*
 * The system is fenced while it waits in the middle of a transaction. Its area has another owner
 * meanwhile, whose words must stay.
 */
static void dead_in_transaction(void)
{
	static const u64 stamp = 0x5151515151515151;
	u8 *before = test_map(SIZE);
	struct tsys by, next;
	struct world w;
	unsigned int i, n;
	pthread_t id;
	char name[20];
	bool left;

	tsys_join(&by, mem, SIZE, 2);
	world_make(&w);
	/* uses up all free records, so that the next file needs new ones */
	for (n = 0, left = true; left; n++) {
		sprintf(name, "x%u", n);
		test_create(&w.s.v, &w.dir, name, S_IFREG | 0600);
		for (i = 0, left = false; i < SG_SLOTS * w.s.v.sb.areas; i++)
			/* skips the slot of the live system */
			left |= (int)(i % SG_SLOTS) != by.v.slot &&
				sg_get(&by.v, sg_area_off(&by.v, i % SG_SLOTS, i / SG_SLOTS) +
				       offsetof(struct sg_area, free_ino)) != 0;
	}
	w.deed = CREATE;
	have(&by, &w.s, SG_HOT(inode_lock), true);
	CHECK_OK(pthread_create(&id, NULL, perform_there, &w));
	tawait(&w.s.v.stat.lock_waits, 1);
	sg_sleep_us(5000);
	tsys_fence(&by, &w.s);
	tsys_join(&next, mem, SIZE, 3);		/* recovers the fenced system */
	CHECK_EQ(tsys_state(&by, 1), SG_SLOT_FREE);
	for (i = 0; i < w.s.v.sb.areas; i++)
		sg_store64(sg_at(&by.v, sg_area_off(&by.v, 1, i) + offsetof(struct sg_area, word)),
			   stamp);
	snapshot(before);
	sg_unlock(&by.v, SG_HOT(inode_lock));
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(w.ret, -EIO);
	CHECK(!memcmp(before, mem, SG_HOT(inode_lock)));
	CHECK(!memcmp(before + 2 * SG_PAGE, mem + 2 * SG_PAGE, SIZE - 2 * SG_PAGE));
	tsys_leave(&w.s);
	for (i = 0; i < n; i++) {
		struct sg_iref x;

		sprintf(name, "x%u", i);
		x = test_lookup(&by.v, &w.dir, name);
		CHECK_OK(sg_unlink(&by.v, &w.dir, name, (u32)strlen(name), 1));
		CHECK_OK(sg_evict(&by.v, &x));
	}
	unmake(&by);
	tsys_leave(&next);
	tsys_leave(&by);
	test_clean(mem, SIZE);
	test_unmap(before, SIZE);
}

static u64 damage_seen;

static void count_damage(struct sg_vol *v, u64 ino, u64 off)
{
	(void)v;
	(void)ino;
	(void)off;
	damage_seen++;
}

static u64 list_of(const struct sg_tx *tx)
{
	return tx->area + offsetof(struct sg_area, free_ino);
}

/*
 * Returns a transaction of a system that has taken an area, was fenced, and has not detected that
 * yet. The area's list begins at @head.
 */
static struct sg_tx *dead_with_area(struct tsys *by, struct world *w, u64 head, u64 *was, u8 *before)
{
	struct sg_tx *tx = sg_tx_begin(&w->s.v);

	CHECK_EQ(tx->err, 0);
	tsys_fence(by, &w->s);
	CHECK(sg_recover_slot(&by->v, (unsigned int)w->s.v.slot));
	*was = sg_get(&by->v, list_of(tx));
	*(u64 *)(mem + list_of(tx)) = head;
	snapshot(before);
	return tx;
}

/*
 * The system is fenced in the middle of a transaction, without a wait. Other systems change its
 * former lists and pages. The fenced system reports neither damage nor ENOSPC, and stores into none
 * of these pages.
 */
static void dead_sees_others_work(void)
{
	enum { DAMAGED_LIST, RECORD, PAGES, LOOK, CASES };
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	u8 *before = test_map(SIZE);
	struct sg_iref x, ref;
	struct tsys by;
	struct world w;
	u64 off, was;
	int i, err;

	for (i = 0; i < CASES; i++) {
		struct sg_tx *tx;

		test_note("fenced in a transaction, case %d", i);
		tsys_join(&by, mem, SIZE, 2);
		world_make(&w);
		w.s.v.on_damage = count_damage;
		x = test_create(&by.v, &by.root, "x", S_IFREG | 0600);
		CHECK_OK(sg_unlink(&by.v, &by.root, "x", 1, 1));
		CHECK_OK(sg_evict(&by.v, &x));
		/* the list's first record is in use by now, or seems to be free */
		tx = dead_with_area(&by, &w, i == DAMAGED_LIST ? w.f.ino : x.ino, &was, before);
		if (i == PAGES)
			err = sg_take_page(tx, SG_USE_META, &off);
		else if (i == LOOK)
			err = sg_damaged(&w.s.v, 1, 2 * SG_PAGE, "the changed page");
		else
			err = sg_inode_take(tx, &new, 1, 0, &ref);
		CHECK_EQ(err, -EIO);
		if (i == LOOK)
			sg_tx_fail(tx, -EUCLEAN);
		CHECK_EQ(sg_tx_commit(tx), -EIO);
		same_bytes(before, CREATE, "fenced in a transaction");
		CHECK_EQ(damage_seen, 0);
		CHECK_EQ(w.deaths, 1);
		*(u64 *)(mem + list_of(tx)) = was;
		tsys_leave(&w.s);
		sg_settle(&by.v);
		unmake(&by);
		tsys_leave(&by);
		test_clean(mem, SIZE);
	}
	test_unmap(before, SIZE);
}

#define CROWD	6	/* more threads than areas */

struct worker {
	struct tsys *s;
	struct sg_iref dir;
	unsigned int n;
	u64 steps, *ready, *go;
	int err;
};

/* Creates and unlinks files. After all threads are ready, each does one more step. */
static void *work_until_dead(void *arg)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct worker *w = arg;
	struct sg_iref f;
	char name[20];
	u64 i;

	for (i = 0; i <= w->steps; i++) {
		u32 len = (u32)sprintf(name, "w%u", (unsigned int)(i % 10) % 5);

		if (i == w->steps) {
			sg_add64(w->ready, 1);
			tawait(w->go, 1);
		}
		w->err = i % 10 < 5 ? sg_create(&w->s->v, &w->dir, name, len, &new, &f) :
				      sg_unlink(&w->s->v, &w->dir, name, len, 1);
		if (i < w->steps)
			CHECK_OK(w->err);
	}
	return NULL;
}

static void have_areas(struct tsys *by, const struct tsys *s, bool take)
{
	unsigned int i;

	for (i = 0; i < by->v.sb.areas; i++)
		have(by, s, sg_area_off(&by->v, (unsigned int)s->v.slot, i) +
			    offsetof(struct sg_area, lock), take);
}

static void clear_away(struct tsys *by, struct worker *w, struct sg_iref *dir)
{
	unsigned int i, k;
	char name[20];

	for (i = 0; i < CROWD; i++) {
		for (k = 0; k < 5; k++) {
			int err = sg_unlink(&by->v, &w[i].dir, name,
					    (u32)sprintf(name, "w%u", k), 1);

			CHECK(!err || err == -ENOENT);
		}
		CHECK_OK(sg_rmdir(&by->v, dir, name, (u32)sprintf(name, "d%u", i), 1));
		CHECK_OK(sg_evict(&by->v, &w[i].dir));
	}
}

/*
 * Each thread is in the middle of a change, holds its own lock, and waits for an area; all get an
 * area at the same time. If the fence came between a thread's check and its store, the thread would
 * still store. So the test fences the system only when all its threads wait.
 */
static void crowd_dies_once(struct tsys *by, struct rng *rng, u8 *before)
{
	struct worker w[CROWD];
	pthread_t id[CROWD];
	u64 ready = 0, go = 0;
	struct tsys s;
	char name[20];
	unsigned int i;

	tsys_join(&s, mem, SIZE, 1);
	s.v.maintained = true;	/* as in world_make() */
	for (i = 0; i < CROWD; i++) {
		sprintf(name, "d%u", i);
		w[i] = (struct worker){ .s = &s, .n = i, .ready = &ready, .go = &go,
			.dir = test_create(&by->v, &by->root, name, S_IFDIR | 0700),
			.steps = rng_below(rng, 20) };
		CHECK_OK(pthread_create(&id[i], NULL, work_until_dead, &w[i]));
	}
	tawait(&ready, CROWD);
	have_areas(by, &s, true);
	tadvance(&go, 1);
	for (i = 0; i < CROWD; i++)	/* waits for the last store of each thread */
		tawait(sg_at(&by->v, w[i].dir.off), SG_LOCK_WORD(s.v.slot, s.v.incarnation));
	tsys_fence(by, &s);
	CHECK(sg_recover_slot(&by->v, (unsigned int)s.v.slot));
	snapshot(before);
	for (i = 0; i < CROWD; i++) {
		CHECK_OK(pthread_join(id[i], NULL));
		CHECK_EQ(w[i].err, -EIO);
	}
	same_bytes(before, CREATE, "a fenced crowd");
	have_areas(by, &s, false);
	tsys_die(&s);
	clear_away(by, w, &by->root);
	sg_settle(&by->v);
}

extern u64 (*sg_ticks_hook)(void);

/* Stops the clock. A wait with a time-out would clear its bit, and set that of the next area. */
static u64 stopped_clock(void)
{
	return 1000000000ULL;
}

static void crowd_dies(u64 rounds)
{
	struct rng rng = { test_seed() };
	u8 *before = test_map(SIZE);
	struct tsys by;

	sg_ticks_hook = stopped_clock;
	tsys_join(&by, mem, SIZE, 2);
	while (rounds--)
		crowd_dies_once(&by, &rng, before);
	sg_ticks_hook = NULL;
	tsys_leave(&by);
	test_clean(mem, SIZE);
	test_unmap(before, SIZE);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	declared_dead();
	dead_when_it_gives_up();
	dead_in_transaction();
	dead_sees_others_work();
	crowd_dies(test_amount(20, 200, 2000));
	return test_done();
}
