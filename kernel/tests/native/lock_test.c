// SPDX-License-Identifier: Apache-2.0
/*
 * Locks between systems: two systems, several threads of each at one lock, and words that no system
 * of the test has stored.
 */
#include "internal.h"
#include "test.h"

#define LOCK	SG_HOT(rename_lock)
#define SECOND	1000000000ULL

extern bool (*sg_interrupt_hook)(void);

static struct tvol t;
static struct sg_vol second;
static u64 inside, entered, rounds;

static struct sg_lock *word(void)
{
	return (void *)(t.mem + LOCK);
}

static void *fight(void *arg)
{
	struct sg_vol *v = arg;
	u64 i;

	for (i = 0; i < rounds; i++) {
		sg_lock(v, LOCK);
		CHECK_EQ(__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST), 0);
		entered++;
		CHECK_EQ(__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST), 1);
		sg_unlock(v, LOCK);
	}
	return NULL;
}

static void only_one_holds_it(void)
{
	pthread_t id[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&id[i], NULL, fight, i & 1 ? &second : &t.v));
	for (i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	CHECK_EQ(entered, 4 * rounds);
}

static void *wait_for_it(void *arg)
{
	sg_lock(arg, LOCK);
	return NULL;
}

static void until(u64 waiters)
{
	while (sg_load64(&word()->waiters) != waiters)
		sg_sleep_us(100);
}

/* After a long wait, a waiter gets the lock next, before a holder that wants it again. */
static void handed_over_in_turn(void)
{
	pthread_t id;

	word()->waiters = 0;
	sg_lock(&t.v, LOCK);
	CHECK(!sg_trylock(&second, LOCK));
	CHECK(!sg_trylock(&t.v, LOCK));
	CHECK_OK(pthread_create(&id, NULL, wait_for_it, &second));
	until(1ULL << second.slot);
	while (!(sg_load64(&word()->word) & SG_LOCK_ASKED))
		sg_sleep_us(100);
	sg_unlock(&t.v, LOCK);
	CHECK(!sg_trylock(&t.v, LOCK));
	pthread_join(id, NULL);
	CHECK_EQ(word()->word, SG_LOCK_WORD(second.slot, second.incarnation));
	sg_unlock(&second, LOCK);
}

/*
 * A release hands the lock only to a system that has requested the handover. Otherwise a holder
 * with more work takes the lock again, instead of waiting until a sleeper has woken up.
 */
static void kept_from_sleepers(void)
{
	word()->waiters = 1ULL << second.slot;
	sg_lock(&t.v, LOCK);
	sg_unlock(&t.v, LOCK);
	CHECK_EQ(word()->word, 0);
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
	word()->waiters = 0;
}

/* A waiter gave up just when it was handed the lock, so no thread has the lock. */
static void handed_in_vain(void)
{
	word()->word = SG_LOCK_WORD(second.slot, second.incarnation) | SG_LOCK_HANDED;
	word()->waiters = 1ULL << second.slot;
	CHECK(sg_is_locked(&t.v, LOCK));
	word()->waiters = 0;
	CHECK(!sg_is_locked(&t.v, LOCK));
	word()->word = 0;
}

static void *take_and_give(void *arg)
{
	while (!sg_load64(&inside)) {
		sg_lock(arg, LOCK);
		sg_add64(&entered, 1);
		sg_unlock(arg, LOCK);
	}
	return NULL;
}

/* A system that takes and releases the lock all the time does not starve other systems. */
static void kept_from_nobody(void)
{
	u64 start = sg_ticks(), before;
	pthread_t id;
	int i;

	entered = 0;
	CHECK_OK(pthread_create(&id, NULL, take_and_give, &t.v));
	while (!sg_load64(&entered))
		sg_sleep_us(100);
	for (i = 0; i < 20; i++) {
		before = sg_load64(&entered);
		CHECK_OK(sg_lock(&second, LOCK));
		sg_unlock(&second, LOCK);
		while (sg_load64(&entered) == before)
			sg_sleep_us(100);
	}
	sg_store64(&inside, 1);
	CHECK_OK(pthread_join(id, NULL));
	sg_store64(&inside, 0);
	CHECK(sg_ticks() - start < 20 * SECOND);
	CHECK(!word()->word);
	word()->waiters = 0;
}

/*
 * A waiter that has ended before its turn, or the bit of a free slot, delays other waiters only
 * briefly.
 */
static void handed_to_nobody(void)
{
	u64 start;

	word()->waiters = 1ULL << second.slot;
	sg_lock(&t.v, LOCK);
	word()->word |= SG_LOCK_ASKED;
	sg_unlock(&t.v, LOCK);
	CHECK(word()->word & SG_LOCK_HANDED);
	start = sg_ticks();
	sg_lock(&t.v, LOCK);
	CHECK(sg_ticks() - start < 5 * SECOND);
	word()->waiters = 1ULL << 40;
	word()->word |= SG_LOCK_ASKED;
	sg_unlock(&t.v, LOCK);
	CHECK(!word()->word && !word()->waiters);
}

/*
 * A waiter stops waiting just when the lock is handed to it, and hands the lock to the next waiter.
 * Then even callers that do not wait may take the lock. Otherwise the lock would remain locked
 * forever.
 */
static void handed_to_one_who_left(void)
{
	word()->word = SG_LOCK_WORD(second.slot, second.incarnation) | SG_LOCK_HANDED;
	word()->waiters = 1ULL << second.slot;
	CHECK(!sg_trylock(&t.v, LOCK));
	word()->waiters = 1ULL << 40;
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
	CHECK(!word()->word);
	word()->waiters = 0;
}

/* A lock word that names no live slot is free. */
static void held_by_nobody(void)
{
	word()->word = SG_LOCK_WORD(200, 1);
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
	word()->word = SG_LOCK_WORD(50, 1);
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
	word()->word = SG_LOCK_WORD(second.slot, second.incarnation - 1);
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
}

/* --- lock words with a wild store ----------------------------------------------------------- */

static unsigned int strays;

static void count_strays(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_ERR && strstr(line, "which does not hold it"))
		strays++;
}

/* A stray word that names this system as holder is detected and reported, with any other bits. */
static void strayed(void)
{
	u64 own = SG_LOCK_WORD(t.v.slot, t.v.incarnation), start = sg_ticks();
	u64 words[] = { own, own | SG_LOCK_DOUBT, own | 1ULL << 63 };
	unsigned int i;

	sg_log_hook = count_strays;
	t.v.on_damage = NULL;
	for (i = 0; i < SG_ARRAY_SIZE(words); i++) {
		memset(t.v.damage_seen, 0, sizeof(t.v.damage_seen));
		word()->word = words[i];
		CHECK(!sg_trylock(&t.v, LOCK));
		CHECK_OK(sg_lock(&t.v, LOCK));
		CHECK_EQ(word()->word, own);
		CHECK(!sg_trylock(&t.v, LOCK));
		sg_unlock(&t.v, LOCK);
		CHECK(!word()->word);
	}
	CHECK_EQ(strays, SG_ARRAY_SIZE(words));
	CHECK(sg_ticks() - start < 20 * SECOND);
	memset(t.mem + SG_HOT(errors), 0, 16);	/* fsck must not report these errors */
}

/*
 * While a thread of this system holds the lock, the system does not report the lock's word, because
 * long holds are allowed.
 */
static void held_for_long(void)
{
	pthread_t id[4];
	unsigned int i;

	entered = 0;
	rounds = 3;
	CHECK_OK(sg_lock(&t.v, LOCK));
	for (i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&id[i], NULL, fight, &t.v));
	sg_sleep_us(350000);	/* three times as long as the detection of a stray word takes */
	CHECK_EQ(entered, 0);
	sg_unlock(&t.v, LOCK);
	for (i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	CHECK_EQ(entered, 4 * rounds);
	CHECK_EQ(word()->word, 0);
}

static bool dying(void)
{
	return true;
}

/*
 * A live system holds the lock forever. A thread with a fatal signal does not wait, nor a thread
 * that can repeat its call.
 */
static void given_up(void)
{
	struct sg_iref a = test_create(&t.v, &t.root, "first", 0100600);
	struct sg_iref b = test_create(&t.v, &t.root, "then", 0100600);
	u64 lock = a.off + offsetof(struct sg_inode, lock), start;
	const struct sg_iref *const v[4] = { &b, &a, NULL, NULL };

	CHECK(a.ino < b.ino);
	CHECK_OK(sg_ilock(&second, &b));
	sg_interrupt_hook = dying;
	CHECK_EQ(sg_lock_four(&t.v, v), -EINTR);
	CHECK_EQ(sg_unlink(&t.v, &t.root, "then", 4, 1), -EINTR);
	sg_interrupt_hook = NULL;
	CHECK(sg_trylock(&t.v, lock));	/* the failed call released the locks that it had taken */
	sg_unlock(&t.v, lock);
	start = sg_ticks();
	CHECK_EQ(sg_lock_soon(&t.v, b.off + offsetof(struct sg_inode, lock)), -EBUSY);
	CHECK(sg_ticks() - start < 30 * SECOND);
	sg_iunlock(&second, &b);
	CHECK_OK(sg_unlink(&t.v, &t.root, "then", 4, 1));
	CHECK_OK(sg_unlink(&t.v, &t.root, "first", 5, 1));
}

/* True for a thread that holds locks for which other threads of this system wait. */
static __thread bool holds_others_up;
static u64 asked;

static bool gives_way(const struct sg_vol *vol)
{
	CHECK(vol == &t.v);
	sg_add64(&asked, 1);
	return holds_others_up;
}

static void *takes_in_time(void *arg)
{
	CHECK_OK(sg_lock(arg, LOCK));
	sg_unlock(arg, LOCK);
	return NULL;
}

/* Locks all areas of the first system for the second one, or releases them. */
static void hold_areas(bool on)
{
	unsigned int i;

	for (i = 0; i < t.v.sb.areas; i++) {
		u64 lock = sg_area_off(&t.v, (unsigned int)t.v.slot, i) +
			   offsetof(struct sg_area, lock);

		if (on)
			CHECK(sg_trylock(&second, lock));
		else
			sg_unlock(&second, lock);
	}
}

static void given_way(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "gives way", SG_S_IFREG | 0644);
	u64 start = sg_ticks(), ino_lock = SG_IOFF(&f, lock);
	pthread_t other;

	t.v.gives_way = gives_way;
	CHECK_OK(sg_lock(&second, LOCK));
	CHECK_OK(pthread_create(&other, NULL, takes_in_time, &t.v));
	holds_others_up = true;
	CHECK_EQ(sg_lock(&t.v, LOCK), -EINTR);
	/*
	 * the work of a page fault: fills a hole, stores a time; needs areas and inodes of other
	 * systems
	 */
	CHECK_OK(sg_lock(&second, ino_lock));
	CHECK_EQ(sg_allocate(&t.v, &f, 0, 1), -EINTR);
	CHECK_EQ(sg_touch(&t.v, &f, SG_SET_MTIME, 77, 0, 0), -EINTR);
	CHECK_EQ(sg_wait_inode(&t.v, &f), -EINTR);
	sg_unlock(&second, ino_lock);
	hold_areas(true);
	CHECK_EQ(sg_allocate(&t.v, &f, 0, 1), -EINTR);
	hold_areas(false);
	/* the mount is frozen: the fault does not wait for the thaw either */
	sg_store64(&t.v.still.closed, 1);
	CHECK_EQ(sg_allocate(&t.v, &f, 0, 1), -EINTR);
	/* the caller must learn of the freeze, although the lock is free */
	CHECK_EQ(sg_wait_inode(&t.v, &f), -EINTR);
	sg_store64(&t.v.still.closed, 0);
	CHECK(sg_ticks() - start < 5 * SECOND);
	CHECK(sg_load64(&asked));
	CHECK_OK(sg_allocate(&t.v, &f, 0, 1));	/* no lock is held: the fault succeeds */
	holds_others_up = false;
	CHECK_OK(sg_wait_inode(&t.v, &f));
	CHECK(!sg_is_locked(&t.v, ino_lock));
	sg_unlock(&second, LOCK);
	pthread_join(other, NULL);
	t.v.gives_way = NULL;
}

#define SPARSE	1000u	/* number of single pages, more than one step of a cut frees */

/*
 * Truncations and hole punches by callers that wait briefly, and repeat the call. A second attempt
 * continues the first one, and erases nothing that another system wrote after the first.
 */
static void in_parts(void)
{
	struct sg_iref f = test_create(&t.v, &t.root, "in parts", SG_S_IFREG | 0644);
	u64 pos = 100, end = 3 * SG_PAGE + 100, i;
	u8 buf[5 * SG_PAGE], zero[3 * SG_PAGE] = { 0 };

	for (i = 0; i < SPARSE; i++)
		CHECK_OK(sg_allocate(&t.v, &f, 2 * i, 1));
	CHECK_OK(sg_resize(&t.v, &f, 2 * SPARSE * SG_PAGE, 1));
	t.v.gives_way = gives_way;
	holds_others_up = true;
	CHECK_OK(sg_ilock(&second, &f));
	CHECK_EQ(sg_set_size(&t.v, &f, SG_PAGE, 1), -EINTR);
	CHECK_EQ(sg_punch_rest(&t.v, &f, &pos, end), -EINTR);
	CHECK_EQ(pos, 100);
	sg_iunlock(&second, &f);
	CHECK_EQ(sg_iget(&t.v, &f, size), 2 * SPARSE * SG_PAGE);
	CHECK_OK(sg_set_size(&t.v, &f, SG_PAGE, 1));
	CHECK_EQ(sg_iget(&t.v, &f, size), SG_PAGE);
	CHECK(sg_is_cutting(&t.v, &f));
	CHECK_OK(sg_finish_cut(&t.v, &f));
	CHECK(!sg_is_cutting(&t.v, &f));

	memset(buf, 'x', sizeof(buf));
	CHECK_EQ(sg_write(&t.v, &f, 0, buf, sizeof(buf), 1), (s64)sizeof(buf));
	hold_areas(true);
	CHECK_EQ(sg_punch_rest(&t.v, &f, &pos, end), -EINTR);
	CHECK_EQ(pos, SG_PAGE);
	CHECK_EQ(sg_write(&second, &f, 200, "new", 3, 1), 3);
	hold_areas(false);
	CHECK_OK(sg_punch_rest(&t.v, &f, &pos, end));
	CHECK_EQ(pos, end);
	holds_others_up = false;
	t.v.gives_way = NULL;
	CHECK_EQ(sg_read(&t.v, &f, 0, buf, sizeof(buf)), (s64)sizeof(buf));
	CHECK(buf[99] == 'x' && !memcmp(buf + 100, zero, 100));
	CHECK(!memcmp(buf + 200, "new", 3));
	CHECK(!memcmp(buf + SG_PAGE, zero, end - SG_PAGE));
	CHECK(buf[end] == 'x');
	CHECK_OK(sg_unlink(&t.v, &t.root, "in parts", 8, 1));
}

/* The system dies while it holds the lock. Recovery of the slot releases the lock. */
static void recovered(void)
{
	sg_lock(&second, LOCK);
	sg_abandon(&second);
	CHECK(!sg_trylock(&t.v, LOCK));
	CHECK_OK(sg_fence_slot(&t.v, 1, second.incarnation));
	/* a death does not release the lock: replay comes first */
	CHECK(!sg_trylock(&t.v, LOCK));
	sg_recover_all(&t.v);
	CHECK(sg_trylock(&t.v, LOCK));
	sg_unlock(&t.v, LOCK);
}

static void several_inodes(void)
{
	struct sg_iref a = test_create(&t.v, &t.root, "a", 0100600);
	struct sg_iref b = test_create(&t.v, &t.root, "b", 0100600);
	const struct sg_iref *const v[4] = { &b, NULL, &a, &b };

	sg_lock_four(&t.v, v);
	CHECK(!sg_trylock(&t.v, a.off + offsetof(struct sg_inode, lock)));
	CHECK(!sg_trylock(&t.v, b.off + offsetof(struct sg_inode, lock)));
	sg_unlock_four(&t.v, v);
	sg_lock_inodes(&t.v, &a, &a);
	sg_unlock_inodes(&t.v, &a, &a);
	sg_ilock(&t.v, &a);
	sg_iunlock(&t.v, &a);
}

int main(void)
{
	rounds = test_amount(2000, 100000, 3000000);
	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_open(&second, t.mem, t.size, false, NULL));
	CHECK_OK(sg_join(&second, &test_identity, 0, false));
	CHECK_EQ(second.slot, 1);
	only_one_holds_it();
	handed_over_in_turn();
	kept_from_sleepers();
	handed_in_vain();
	kept_from_nobody();
	handed_to_nobody();
	handed_to_one_who_left();
	held_by_nobody();
	test_hasten(true);
	strayed();
	held_for_long();
	given_up();
	test_hasten(false);
	given_way();
	in_parts();
	recovered();
	several_inodes();
	tvol_drop(&t);
	return test_done();
}
