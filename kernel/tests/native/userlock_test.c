// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of users (flock, fcntl, open-file locks) between systems on one mapping.
 *
 * A model of 64 bytes, with owner and type of each, predicts which requests succeed, which holder
 * is named as the conflict, and the exact contents of the lock file. Further cases are turns of
 * waiters, the detection of cycles, systems that may not lock, room, and damage.
 */
#include "userlock_util.h"

/* --- the model -------------------------------------------------------------------------------- */

#define CELLS	64	/* number of bytes; the last one stands for all bytes behind it */
#define OWNERS	9	/* three owners on each system */
#define FILES	3	/* two of the files share a chain */

enum { NONE, SHARED, EXCLUSIVE };
static u8 model[FILES][OWNERS][CELLS];

static struct sg_vol *vol_of(unsigned int o)
{
	return &sys[o % SYSTEMS];
}

static unsigned int kind_of(unsigned int o)
{
	return o < 6 ? SG_USERLOCK_POSIX : SG_USERLOCK_OFD;
}

/* Owners of different systems, or kinds, may have the same number. */
static u64 number_of(unsigned int o)
{
	return 7 + (o / SYSTEMS) % 2;
}

static u64 last_byte(unsigned int cell)
{
	return cell == CELLS - 1 ? SG_USERLOCK_MAX : cell;
}

static bool model_allows(unsigned int f, unsigned int o, bool exclusive, unsigned int a,
			 unsigned int b)
{
	unsigned int other, i;

	for (other = 0; other < OWNERS; other++)
		for (i = a; i <= b && other != o; i++)
			if (model[f][other][i] == EXCLUSIVE || (model[f][other][i] && exclusive))
				return false;
	return true;
}

/* Checks that no conflict begins before @start. */
static void check_first(unsigned int f, unsigned int asker, bool exclusive, unsigned int a,
			unsigned int b, unsigned int start)
{
	unsigned int o, i, from;

	for (o = 0; o < OWNERS; o++) {
		for (i = a; i <= b && o != asker; i++) {
			if (!model[f][o][i] || (model[f][o][i] == SHARED && !exclusive))
				continue;
			for (from = i; from && model[f][o][from - 1] == model[f][o][i]; from--)
				;
			CHECK(start <= from);
		}
	}
}

/* Checks that the named holder has a conflicting lock on the complete named range. */
static void check_holder(unsigned int f, unsigned int asker, bool exclusive, unsigned int a,
			 unsigned int b, const struct sg_userlock *h)
{
	unsigned int o, from = (unsigned int)h->start, i;
	unsigned int to = h->last == SG_USERLOCK_MAX ? CELLS - 1 : (unsigned int)h->last;
	int slot = h->slot < 0 ? vol_of(asker)->slot : h->slot;

	for (o = 0; o < OWNERS; o++)
		if (vol_of(o)->slot == slot && kind_of(o) == h->kind && number_of(o) == h->owner)
			break;
	CHECK(o < OWNERS && o != asker);
	CHECK(h->slot < 0 ? vol_of(o) == vol_of(asker) : vol_of(o) != vol_of(asker));
	CHECK_EQ(h->pid, number_of(o) + 1000);
	CHECK(from <= b && a <= to && to < CELLS);
	CHECK(exclusive || h->exclusive);
	for (i = from; i <= to; i++)
		CHECK_EQ(model[f][o][i], h->exclusive ? EXCLUSIVE : SHARED);
	CHECK(!from || model[f][o][from - 1] != model[f][o][from]);
	CHECK(to == CELLS - 1 || model[f][o][to + 1] != model[f][o][to]);
}

struct sums {
	u64 records, bytes;
};

/* Checks that a record is a maximal range of one owner and type. */
static void check_record(void *ctx, struct sg_userlock_record *r)
{
	unsigned int o, f, type = r->head & SG_USERLOCK_EXCLUSIVE ? EXCLUSIVE : SHARED, i;
	unsigned int from = (unsigned int)r->start, to;
	struct sums *sums = ctx;

	to = r->last == SG_USERLOCK_MAX ? CELLS - 1 : (unsigned int)r->last;
	for (o = 0; o < OWNERS; o++)
		if (vol_of(o)->slot == (int)SG_USERLOCK_SLOT(r->head) &&
		    kind_of(o) == SG_USERLOCK_KIND(r->head) && number_of(o) == r->owner)
			break;
	for (f = 0; f < FILES && file[f].ino != r->ino; f++)
		;
	CHECK(o < OWNERS && f < FILES && from <= to && to < CELLS);
	CHECK(!(r->head & SG_USERLOCK_WAITING));
	for (i = from; i <= to; i++)
		CHECK_EQ(model[f][o][i], type);
	CHECK(!from || model[f][o][from - 1] != type);
	CHECK(to == CELLS - 1 || model[f][o][to + 1] != type);
	sums->records++;
	sums->bytes += to - from + 1;
}

static void compare(void)
{
	struct sums sums = { 0 };
	unsigned int f, o, i;
	u64 bytes = 0;

	each_record(check_record, &sums);
	for (f = 0; f < FILES; f++)
		for (o = 0; o < OWNERS; o++)
			for (i = 0; i < CELLS; i++)
				bytes += model[f][o][i] != NONE;
	/* counts each byte once, so ranges of one type do not overlap */
	CHECK_EQ(sums.bytes, bytes);
}

static void model_step(struct rng *rng)
{
	unsigned int f = (unsigned int)rng_below(rng, FILES);
	unsigned int o = (unsigned int)rng_below(rng, OWNERS);
	unsigned int a = (unsigned int)rng_below(rng, CELLS);
	unsigned int dice = (unsigned int)rng_below(rng, 10);
	u64 far = a + rng_size(rng, CELLS);
	unsigned int b = (unsigned int)SG_MIN(far, (u64)CELLS - 1);
	bool exclusive = rng_chance(rng, 30), may = model_allows(f, o, exclusive, a, b);
	struct sg_userlock h, l = lock_of(kind_of(o), number_of(o), exclusive, a, last_byte(b));

	test_note("file %u, owner %u, cells %u to %u, %s, dice %u", f, o, a, b,
		  exclusive ? "exclusive" : "shared", dice);
	if (dice < 5) {
		CHECK_EQ(sg_userlock_set(vol_of(o), &file[f], &l, NULL, &h), may ? 0 : -EAGAIN);
		if (may)
			memset(&model[f][o][a], exclusive ? EXCLUSIVE : SHARED, b - a + 1);
	} else if (dice < 9) {
		CHECK_OK(sg_userlock_clear(vol_of(o), &file[f], &l));
		memset(&model[f][o][a], NONE, b - a + 1);
		return;
	} else {
		CHECK_EQ(sg_userlock_test(vol_of(o), &file[f], &l, &h), may ? 0 : -EAGAIN);
	}
	if (may)
		return;
	check_holder(f, o, exclusive, a, b, &h);
	if (dice == 9)
		check_first(f, o, exclusive, a, b, (unsigned int)h.start);
}

static void against_the_model(u64 ops)
{
	struct rng rng = { seed };
	unsigned int f, o;
	u64 i;

	for (i = 0; i < ops; i++) {
		model_step(&rng);
		if (i < 1000 || i % 50 == 0)
			compare();
	}
	for (f = 0; f < FILES; f++) {
		for (o = 0; o < OWNERS; o++) {
			struct sg_userlock l = whole(kind_of(o), number_of(o), false);

			CHECK_OK(sg_userlock_clear(vol_of(o), &file[f], &l));
		}
	}
	memset(model, 0, sizeof(model));
	compare();
}

static void refused(void)
{
	struct sg_userlock l = lock_of(SG_USERLOCK_POSIX, 1, true, 5, 4), h;

	CHECK_EQ(sg_userlock_set(&sys[0], &file[0], &l, NULL, NULL), -EINVAL);
	l = lock_of(SG_USERLOCK_POSIX, 1, true, 0, SG_USERLOCK_MAX + 1);
	CHECK_EQ(sg_userlock_clear(&sys[0], &file[0], &l), -EINVAL);
	l = lock_of(4, 1, true, 0, 1);
	CHECK_EQ(sg_userlock_test(&sys[0], &file[0], &l, &h), -EINVAL);
}

/* --- flock ------------------------------------------------------------------------------------ */

static void flocks(void)
{
	struct sg_userlock_wait w = { 0 };

	CHECK_OK(try(0, 0, FLOCK(1, false)));
	CHECK_OK(try(1, 0, FLOCK(1, false)));
	CHECK_OK(try(1, 0, FLOCK(1, false)));
	CHECK_EQ(each_record(NULL, NULL), 2);
	CHECK_OK(try(2, 0, POSIX(1, true)));	/* a POSIX lock does not conflict with flock */
	drop(2, 0, POSIX(1, true));
	/* a conversion that fails loses the old lock, as on Linux */
	CHECK_EQ(try(0, 0, FLOCK(1, true)), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 1);
	CHECK_OK(try(1, 0, FLOCK(1, true)));
	CHECK_EQ(try(0, 0, FLOCK(1, false)), -EAGAIN);
	CHECK_EQ(try(1, 0, FLOCK(2, false)), -EAGAIN);
	CHECK_EQ(ask(0, 0, FLOCK(1, false), &w), -EAGAIN);
	CHECK_OK(try(1, 0, FLOCK(1, false)));
	CHECK_OK(ask(0, 0, FLOCK(1, false), &w));
	drop(0, 0, FLOCK(1, false));
	drop(1, 0, FLOCK(1, false));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* --- a second lock table without room --------------------------------------------------------- */

static unsigned int follows;

static int no_memory(void *arg)
{
	follows++;
	return *(int *)arg;
}

/*
 * Takes @l on a system whose own lock table returns @answer. @waits: the request gets a place in
 * the queue.
 */
static int followed(unsigned int s, struct sg_userlock l, int answer, bool waits)
{
	struct sg_userlock_wait w = { 0 };
	int err;

	l.follow = no_memory;
	l.arg = &answer;
	err = sg_userlock_set(&sys[s], &file[0], &l, waits ? &w : NULL, NULL);
	sg_userlock_give_up(&sys[s], &file[0], &w);
	return err;
}

static void add_record(void *ctx, struct sg_userlock_record *r)
{
	u64 *sum = ctx;

	*sum = *sum * 31 + (r->head ^ r->owner ^ r->start << 8 ^ r->last << 24);
}

static u64 all_records(void)
{
	u64 sum = 0;

	each_record(add_record, &sum);
	return sum;
}

/* Checks that a request without room keeps all held locks, and adds none. */
static void nothing_changes(unsigned int s, struct sg_userlock l)
{
	u64 before = all_records();
	unsigned int n = follows;

	CHECK_EQ(followed(s, l, -ENOMEM, false), -ENOMEM);
	CHECK_EQ(all_records(), before);
	CHECK_EQ(followed(s, l, -ENOMEM, true), -ENOMEM);
	CHECK_EQ(all_records(), before);
	CHECK_EQ(follows, n + 2);
}

static void unfollowed(void)
{
	unsigned int n;

	CHECK_OK(try(0, 0, lock_of(SG_USERLOCK_POSIX, 1, false, 0, 99)));
	CHECK_OK(try(0, 0, lock_of(SG_USERLOCK_POSIX, 1, true, 200, 299)));
	nothing_changes(0, lock_of(SG_USERLOCK_POSIX, 1, true, 0, 99));
	nothing_changes(0, lock_of(SG_USERLOCK_POSIX, 1, true, 40, 59));
	nothing_changes(0, lock_of(SG_USERLOCK_POSIX, 1, false, 250, 400));
	nothing_changes(0, lock_of(SG_USERLOCK_POSIX, 1, false, 100, 199));
	CHECK_EQ(try(1, 0, lock_of(SG_USERLOCK_POSIX, 1, true, 99, 99)), -EAGAIN);
	CHECK_EQ(try(1, 0, lock_of(SG_USERLOCK_POSIX, 1, false, 250, 250)), -EAGAIN);
	/* a request that conflicts in the volume is not passed to the system's own table */
	n = follows;
	CHECK_EQ(followed(1, lock_of(SG_USERLOCK_POSIX, 1, true, 0, 0), 0, false), -EAGAIN);
	CHECK_EQ(follows, n);
	CHECK_OK(followed(0, lock_of(SG_USERLOCK_POSIX, 1, true, 40, 59), 0, true));
	CHECK_EQ(each_record(NULL, NULL), 4);
	drop(0, 0, POSIX(1, false));

	CHECK_OK(try(0, 0, FLOCK(1, false)));
	nothing_changes(0, FLOCK(1, true));
	nothing_changes(0, FLOCK(1, false));
	CHECK_EQ(try(1, 0, FLOCK(1, true)), -EAGAIN);
	CHECK_OK(followed(0, FLOCK(1, true), 0, true));
	nothing_changes(0, FLOCK(1, false));
	CHECK_EQ(try(1, 0, FLOCK(1, false)), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 1);
	drop(0, 0, FLOCK(1, false));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* --- turns ------------------------------------------------------------------------------------ */

/*
 * A later request does not overtake a queue of waiters. Exceptions: the request does not wait, or
 * the queue has not moved for a second.
 */
static void turns(void)
{
	struct sg_userlock_wait writer = { 0 }, reader = { 0 }, other = { 0 }, none = { 0 };
	u64 start;

	CHECK_OK(try(0, 0, POSIX(1, false)));
	CHECK_EQ(ask(1, 0, POSIX(1, true), &writer), -EAGAIN);
	CHECK_EQ(ask(2, 0, POSIX(1, false), &reader), -EAGAIN);
	CHECK_EQ(ask(2, 0, OFD(2, false), &other), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 4);
	CHECK_OK(try(2, 0, POSIX(3, false)));
	drop(2, 0, POSIX(3, false));
	/* this request conflicts with no waiter */
	CHECK_OK(ask(0, 1, POSIX(1, true), &none));
	/* the writer waits for this holder, so the holder may overtake the writer */
	CHECK_OK(ask(0, 0, POSIX(1, true), &none));
	CHECK_OK(ask(0, 0, POSIX(1, false), &none));
	drop(0, 0, POSIX(1, false));
	CHECK_EQ(ask(2, 0, POSIX(1, false), &reader), -EAGAIN);
	CHECK_OK(ask(1, 0, POSIX(1, true), &writer));
	CHECK_EQ(ask(2, 0, POSIX(1, false), &reader), -EAGAIN);
	drop(1, 0, POSIX(1, true));
	CHECK_OK(ask(2, 0, POSIX(1, false), &reader));
	CHECK_OK(ask(2, 0, OFD(2, false), &other));
	CHECK_EQ(each_record(NULL, NULL), 3);
	drop(2, 0, OFD(2, false));
	/* a request overtakes a queue that has not moved for a second */
	memset(&writer, 0, sizeof(writer));
	memset(&reader, 0, sizeof(reader));
	CHECK_EQ(ask(1, 0, FLOCK(1, true), &writer), 0);
	drop(1, 0, FLOCK(1, true));
	CHECK_EQ(ask(1, 0, POSIX(1, true), &writer), -EAGAIN);
	start = sg_ticks();
	while (ask(0, 0, POSIX(2, false), &reader))
		sg_sleep_us(5000);
	CHECK(sg_ticks() - start >= 900 * MS);
	/* an abandoned request delays no other request */
	sg_userlock_give_up(&sys[1], &file[0], &writer);
	memset(&reader, 0, sizeof(reader));
	CHECK_OK(ask(1, 0, POSIX(9, false), &reader));
	drop(1, 0, POSIX(9, false));
	drop(0, 0, POSIX(2, false));
	drop(2, 0, POSIX(1, false));
	drop(0, 1, POSIX(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/*
 * The search for a queue that waits for the caller checks a limited number of pairs, because the
 * chain is locked meanwhile. An owner with more locks immediately gets the lock.
 */
static void many_pairs(void)
{
	static struct sg_userlock_wait wait[200];
	struct sg_userlock_wait writer = { 0 }, none = { 0 };
	u64 i;

	CHECK_OK(try(1, 5, lock_of(SG_USERLOCK_OFD, 7, false, 5000, 5999)));
	CHECK_EQ(ask(2, 5, lock_of(SG_USERLOCK_OFD, 8, true, 5000, 5000), &writer), -EAGAIN);
	for (i = 0; i < SG_ARRAY_SIZE(wait); i++) {
		CHECK_OK(try(0, 5, lock_of(SG_USERLOCK_OFD, 1, true, 2 * i, 2 * i)));
		CHECK_EQ(ask(2, 5, lock_of(SG_USERLOCK_OFD, 9 + i, true, 5500 + i, 5500 + i),
			     &wait[i]), -EAGAIN);
	}
	CHECK_EQ(ask(0, 5, lock_of(SG_USERLOCK_OFD, 2, false, 5000, 5000), &none), -EAGAIN);
	sg_userlock_give_up(&sys[0], &file[5], &none);
	CHECK_OK(ask(0, 5, lock_of(SG_USERLOCK_OFD, 1, false, 5000, 5000), &none));
	for (i = 0; i < SG_ARRAY_SIZE(wait); i++)
		sg_userlock_give_up(&sys[2], &file[5], &wait[i]);
	sg_userlock_give_up(&sys[2], &file[5], &writer);
	drop(0, 5, OFD(1, true));
	drop(1, 5, OFD(7, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* --- cycles ----------------------------------------------------------------------------------- */

/*
 * Owner i holds byte i and requests byte i + 1, on different files and systems. The last one gets
 * EDEADLK.
 */
static void ring(unsigned int n, unsigned int kind, int expect)
{
	struct sg_userlock_wait *w = calloc(n, sizeof(*w));
	unsigned int i;

	for (i = 0; i < n; i++)
		CHECK_OK(try(i % SYSTEMS, i % 5, lock_of(kind, i, true, i, i)));
	for (i = 0; i < n; i++) {
		unsigned int next = (i + 1) % n;

		test_note("ring of %u, owner %u", n, i);
		CHECK_EQ(ask(i % SYSTEMS, next % 5, lock_of(kind, i, true, next, next), &w[i]),
			 i < n - 1 ? -EAGAIN : expect);
	}
	/* no other owner gets EDEADLK, as the last owner has left the cycle */
	for (i = 0; i < n; i++) {
		unsigned int next = (i + 1) % n;

		if (i < n - 1 || expect == -EAGAIN)
			CHECK_EQ(ask(i % SYSTEMS, next % 5, lock_of(kind, i, true, next, next),
				     &w[i]), -EAGAIN);
	}
	CHECK_EQ(each_record(NULL, NULL), expect == -EDEADLK ? 2 * n - 1 : 2 * n);
	/* the last owner releases its lock, and all others get theirs, one after the other */
	drop((n - 1) % SYSTEMS, (n - 1) % 5, lock_of(kind, n - 1, true, n - 1, n - 1));
	for (i = n - 1; i-- > 0; ) {
		CHECK_OK(ask(i % SYSTEMS, (i + 1) % 5, lock_of(kind, i, true, i + 1, i + 1),
			     &w[i]));
		drop(i % SYSTEMS, i % 5, lock_of(kind, i, true, i, i));
		drop(i % SYSTEMS, (i + 1) % 5, lock_of(kind, i, true, i + 1, i + 1));
	}
	sg_userlock_give_up(&sys[(n - 1) % SYSTEMS], &file[0], &w[n - 1]);
	free(w);
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* Two owners have a shared lock, and both request an exclusive one. */
static void upgrades(void)
{
	struct sg_userlock_wait a = { 0 }, b = { 0 };

	CHECK_OK(try(0, 0, POSIX(1, false)));
	CHECK_OK(try(1, 0, POSIX(1, false)));
	CHECK_EQ(ask(0, 0, POSIX(1, true), &a), -EAGAIN);
	CHECK_EQ(ask(1, 0, POSIX(1, true), &b), -EDEADLK);
	drop(1, 0, POSIX(1, false));
	CHECK_OK(ask(0, 0, POSIX(1, true), &a));
	drop(0, 0, POSIX(1, true));
}

/*
 * The conflict changes while a request waits. No new request closes the cycle, so a waiting request
 * has to detect it.
 */
static void closed_by_release(void)
{
	struct sg_userlock_wait a = { 0 }, b = { 0 };

	/* the search ends at the first conflict */
	CHECK_OK(try(0, 0, lock_of(SG_USERLOCK_POSIX, 1, true, 0, 0)));
	CHECK_OK(try(1, 0, lock_of(SG_USERLOCK_POSIX, 2, true, 1, 1)));
	CHECK_OK(try(2, 1, POSIX(3, true)));
	CHECK_EQ(ask(2, 0, lock_of(SG_USERLOCK_POSIX, 3, true, 0, 1), &a), -EAGAIN);
	CHECK_EQ(ask(1, 1, POSIX(2, true), &b), -EAGAIN);
	drop(0, 0, lock_of(SG_USERLOCK_POSIX, 1, true, 0, 0));
	CHECK_EQ(ask(2, 0, lock_of(SG_USERLOCK_POSIX, 3, true, 0, 1), &a), -EDEADLK);
	drop(2, 1, POSIX(3, true));
	CHECK_OK(ask(1, 1, POSIX(2, true), &b));
	drop(1, 1, POSIX(2, true));
	drop(1, 0, POSIX(2, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

static void circles(void)
{
	ring(2, SG_USERLOCK_POSIX, -EDEADLK);
	ring(5, SG_USERLOCK_POSIX, -EDEADLK);
	ring(64, SG_USERLOCK_POSIX, -EDEADLK);
	ring(70, SG_USERLOCK_POSIX, -EAGAIN);	/* a cycle beyond the limit of the search */
	/* OFD locks have no process, so cycles are not searched */
	ring(3, SG_USERLOCK_OFD, -EAGAIN);
	upgrades();
	closed_by_release();
}

/* --- room ------------------------------------------------------------------------------------- */

/*
 * Gives one owner as many locks as a chain can have. Takes the first hundred by calls, and stores
 * the remaining records directly, because calls would take long.
 */
static void fill_chain(unsigned int nr)
{
	unsigned int k, i;
	int err;

	for (k = 0; k < SG_USERLOCK_CHAIN_PAGES; k++) {
		struct sg_userlock_page *page;

		CHECK_OK(sg_userlock_grow(&sys[0], nr, k));
		page = sg_userlock_page(&t.v, nr, k, &err);
		CHECK(page);
		for (i = 0; i < SG_USERLOCK_RECORDS; i++) {
			u64 byte = 2 * ((u64)k * SG_USERLOCK_RECORDS + i);

			if (page->record[i].head)
				continue;
			page->record[i] = sg_userlock_page(&t.v, nr, 0, &err)->record[0];
			page->record[i].start = page->record[i].last = byte;
		}
	}
	CHECK_EQ(sg_userlock_grow(&sys[0], nr, k), -ENOLCK);
}

static void full_chain(void)
{
	u64 most = (u64)SG_USERLOCK_CHAIN_PAGES * SG_USERLOCK_RECORDS, i;
	struct sg_userlock_wait w = { 0 };

	for (i = 0; i < 100; i++)
		CHECK_OK(try(0, 0, lock_of(SG_USERLOCK_OFD, 1, true, 2 * i, 2 * i)));
	CHECK_EQ(each_record(NULL, NULL), 100);
	fill_chain(chain_with(file[0].ino));
	CHECK_EQ(each_record(NULL, NULL), most);
	CHECK_EQ(try(0, 0, lock_of(SG_USERLOCK_OFD, 1, true, 2 * most, 2 * most)), -ENOLCK);
	CHECK_EQ(ask(1, 0, lock_of(SG_USERLOCK_OFD, 1, true, 0, 0), &w), -ENOLCK);
	CHECK_EQ(try(1, 0, lock_of(SG_USERLOCK_OFD, 1, true, 0, 0)), -EAGAIN);
	CHECK_EQ(try(1, 0, lock_of(SG_USERLOCK_OFD, 1, true, 2 * most - 2, 2 * most)), -EAGAIN);
	/* a request that needs no further record still works */
	drop(0, 0, lock_of(SG_USERLOCK_OFD, 1, true, 10, 10));
	CHECK_OK(try(1, 0, lock_of(SG_USERLOCK_OFD, 1, true, 10, 10)));
	drop(0, 0, OFD(1, true));
	drop(1, 0, OFD(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
}

/* Makes freed pages available again. */
static void all_acknowledge(void)
{
	unsigned int turn, i;

	for (turn = 0; turn < 20; turn++) {
		CHECK(sg_maintain(&t.v) > 0);
		for (i = 0; i < SYSTEMS; i++)
			CHECK(sg_maintain(&sys[i]) > 0);
		sg_settle(&t.v);
	}
}

static void full_volume(void)
{
	struct sg_iref big, small;
	u64 pos = 0;
	s64 n;
	static u8 buf[1 << 20];

	test_hasten(true);	/* each caller that finds the chain full waits */
	begin(TEST_SMALL);
	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK(chain_with(file[0].ino) < SG_USERLOCK_CHAINS);
	big = test_create(&t.v, &t.root, "big", S_IFREG | 0600);
	small = test_create(&t.v, &t.root, "small", S_IFREG | 0600);
	while ((n = sg_write(&t.v, &big, pos, buf, sizeof(buf), 1)) > 0)
		pos += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	for (pos = 0; (n = sg_write(&t.v, &small, pos, buf, SG_PAGE, 1)) > 0; pos += SG_PAGE)
		;
	CHECK_EQ(n, -ENOSPC);
	CHECK_EQ(try(0, 1, POSIX(1, true)), -ENOLCK);
	CHECK_OK(try(1, 0, FLOCK(1, true)));
	CHECK_EQ(try(1, 0, POSIX(1, true)), -EAGAIN);
	drop(0, 0, POSIX(1, true));
	CHECK_OK(try(1, 0, POSIX(1, true)));
	drop(0, 1, POSIX(1, true));
	CHECK_OK(sg_resize(&t.v, &big, 0, 1));
	all_acknowledge();
	CHECK_OK(try(0, 1, POSIX(1, true)));
	end();
	test_hasten(false);
}

/* --- threads that are killed ------------------------------------------------------------------ */

extern bool (*sg_interrupt_hook)(void);

static bool dying(void)
{
	return true;
}

static void chains(bool locked)
{
	unsigned int nr;
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		struct sg_userlock_page *page = sg_userlock_page(&sys[1], nr, 0, &err);
		u64 off = page ? (u64)((u8 *)&page->lock - sys[1].base) : 0;

		if (page && locked)
			CHECK_OK(sg_lock_sure(&sys[1], off));
		else if (page)
			sg_unlock(&sys[1], off);
	}
}

static void *unlock_soon(void *arg)
{
	sg_sleep_us(50000);
	chains(false);
	return arg;
}

/* Briefly holds all locks that the killed thread needs, in another thread. */
static pthread_t busy(void)
{
	pthread_t id;

	chains(true);
	CHECK_OK(pthread_create(&id, NULL, unlock_soon, NULL));
	return id;
}

/* A killed thread gets no more locks, and does not wait. Its locks are released a little later. */
static void killed(void)
{
	struct sg_userlock a = whole(SG_USERLOCK_POSIX, 1, true), b = whole(SG_USERLOCK_POSIX, 2, true);
	struct sg_userlock_wait wait = { 0 };
	pthread_t id;

	CHECK_OK(sg_userlock_set(&sys[0], &file[0], &a, NULL, NULL));
	CHECK_EQ(sg_userlock_set(&sys[0], &file[0], &b, &wait, NULL), -EAGAIN);
	CHECK_EQ(each_record(NULL, NULL), 2);
	sg_interrupt_hook = dying;
	id = busy();
	CHECK_EQ(sg_userlock_set(&sys[0], &file[0], &b, &wait, NULL), -EINTR);
	sg_userlock_give_up(&sys[0], &file[0], &wait);
	CHECK_OK(pthread_join(id, NULL));
	sg_settle(&sys[0]);
	CHECK_EQ(each_record(NULL, NULL), 1);
	id = busy();
	CHECK_EQ(sg_userlock_clear(&sys[0], &file[0], &a), -EINTR);
	CHECK_OK(sg_userlock_clear_later(&sys[0], &file[0], &a));
	CHECK_OK(pthread_join(id, NULL));
	sg_settle(&sys[0]);
	CHECK_EQ(each_record(NULL, NULL), 0);
	sg_interrupt_hook = NULL;
}

/* --- a system that may not store -------------------------------------------------------------- */

static void not_a_member(void)
{
	struct sg_userlock l = POSIX(1, true), h;
	struct sg_vol v;

	CHECK_OK(sg_open(&v, t.mem, t.size, true, NULL));
	CHECK_EQ(sg_userlock_set(&v, &file[0], &l, NULL, NULL), -EROFS);
	CHECK_EQ(sg_userlock_clear(&v, &file[0], &l), -EROFS);
	CHECK_EQ(sg_userlock_test(&v, &file[0], &l, &h), -EROFS);
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* A fenced system may not store, and others get its locks after its recovery. */
static void declared_dead(void)
{
	struct sg_userlock l = POSIX(1, true);
	struct sg_userlock_wait w = { 0 };
	struct sg_vol v;

	join(&v);
	CHECK_OK(sg_userlock_set(&v, &file[0], &l, NULL, NULL));
	CHECK_EQ(ask(0, 0, POSIX(1, true), &w), -EAGAIN);
	sg_log_hook = quiet;
	CHECK_OK(sg_fence_slot(&t.v, (unsigned int)v.slot, v.incarnation));
	CHECK_EQ(ask(0, 0, POSIX(1, true), &w), -EAGAIN);
	CHECK_EQ(sg_userlock_clear(&v, &file[0], &l), -EIO);
	CHECK(sg_recover_slot(&t.v, (unsigned int)v.slot));
	CHECK_OK(ask(0, 0, POSIX(1, true), &w));
	CHECK_EQ(sg_userlock_set(&v, &file[0], &l, NULL, NULL), -EIO);
	sg_abandon(&v);
	drop(0, 0, POSIX(1, true));
	CHECK_EQ(each_record(NULL, NULL), 0);
	sg_log_hook = NULL;
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Returns a random word that names no live system, so that a wait for it must end. */
static u64 hostile(struct rng *rng)
{
	u64 head = SG_USERLOCK_HEAD(rng_below(rng, 16), rng_below(rng, 4),
				    rng_below(rng, sys[2].incarnation + 2));

	if (rng_chance(rng, 50))
		return rng_next(rng);
	return rng_chance(rng, 50) ? rng_below(rng, 130) : head;
}

static void damage(struct rng *rng)
{
	unsigned int nr, k, n = (unsigned int)rng_size(rng, 300);
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		struct sg_userlock_page *page = sg_userlock_page(&t.v, nr, 0, &err);
		u64 *word = (u64 *)page;

		for (k = 0; page && k < n; k++)
			word[4 + rng_below(rng, SG_PAGE / 8 - 4)] = hostile(rng);
	}
}

static unsigned int damaged_chain;

static void hostile_bytes(void)
{
	u64 rounds = test_amount(100, 2000, 50000), i, k;
	struct rng rng = { seed };
	struct sg_userlock h;
	int err;

	CHECK_OK(try(0, 0, POSIX(1, true)));
	CHECK_OK(try(0, 1, POSIX(1, true)));
	damaged_chain = chain_with(file[0].ino);
	for (i = 0; i < rounds; i++) {
		damage(&rng);
		for (k = 0; k < 20; k++) {
			unsigned int s = (unsigned int)rng_below(&rng, SYSTEMS);
			unsigned int f = (unsigned int)rng_below(&rng, 2);
			u64 a = rng_size(&rng, 100);
			struct sg_userlock l = lock_of(1 + (unsigned int)rng_below(&rng, 3),
						       rng_below(&rng, 130), rng_chance(&rng, 50),
						       a, a + rng_size(&rng, 100));
			struct sg_userlock_wait w = { 0 };

			err = rng_chance(&rng, 50) ?
			      sg_userlock_set(&sys[s], &file[f], &l, &w, &h) :
			      sg_userlock_clear(&sys[s], &file[f], &l);
			CHECK(!err || err == -EAGAIN || err == -EDEADLK || err == -ENOLCK);
			sg_userlock_give_up(&sys[s], &file[f], &w);
			CHECK(!sg_userlock_test(&sys[s], &file[f], &l, &h) || h.slot < SG_SLOTS);
		}
	}
}

/* The checker resets invalid words, also when it preens. Words of a dead system are valid. */
static void checked(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_PREEN, .id = &test_identity, .force = true };
	struct sg_userlock_page *page;
	struct sg_check_result res;
	unsigned int i;
	int err;

	page = sg_userlock_page(&t.v, damaged_chain, 0, &err);
	CHECK(page);
	for (i = 0; i < SYSTEMS; i++)
		sg_leave(&sys[i]);
	tvol_leave(&t);
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK_EQ(res.found, res.fixed);
	test_clean(t.mem, t.size);
	page->record[4].head = SG_USERLOCK_HEAD(SG_USERLOCK_POSIX, 1, 1);
	test_clean(t.mem, t.size);
	page->record[5].head = SG_USERLOCK_HEAD(SG_USERLOCK_POSIX, 1, 1000000);
	CHECK(!test_is_clean(t.mem, t.size, &res));
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	CHECK_EQ(res.found, 1);
	CHECK_EQ(res.fixed, 1);
	CHECK(!page->record[5].head && !page->record[4].head);
	test_clean(t.mem, t.size);
	test_unmap(t.mem, t.size);
}

int main(void)
{
	seed = test_seed();
	begin(64 << 20);
	refused();
	against_the_model(test_amount(3000, 100000, 5000000));
	flocks();
	unfollowed();
	killed();
	turns();
	many_pairs();
	circles();
	not_a_member();
	declared_dead();
	full_chain();
	hostile_bytes();
	checked();
	full_volume();
	return test_done();
}

