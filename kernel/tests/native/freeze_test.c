// SPDX-License-Identifier: Apache-2.0
/*
 * Freezing for a snapshot (docs/snapshots.md): calls that wait, events that make a copy invalid,
 * refused requests with their reasons, the end of a freeze if the copying system dies or never
 * thaws, and invalid words. Under load, with kills: freeze_kill_test.c.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define LIMIT	2000

static u8 *mem;
static char why[200];

static void make(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };

	memset(mem, 0xa5, SIZE);
	CHECK_OK(sg_format(mem, SIZE, &opts, why));
}

static void join(struct tsys *s, unsigned int machine)
{
	tsys_join(s, mem, SIZE, machine);
	tsys_maintain(s);
}

static void says(const char *reason)
{
	test_counted();
	if (!strstr(why, reason) || strchr(why, '\n'))
		test_fail(__FILE__, __LINE__, "'%s' does not contain '%s'", why, reason);
}

static u64 word(const struct tsys *s)
{
	return sg_get(&s->v, SG_HOT(freeze));
}

static u64 frozen(const struct tsys *s)
{
	return sg_get(&s->v, sg_slot_off(&s->v, (unsigned int)s->v.slot) +
			     offsetof(struct sg_slot, frozen));
}

static void freezes(struct tsys *s, unsigned int limit)
{
	if (sg_freeze(&s->v, limit, why))
		test_fail(__FILE__, __LINE__, "cannot freeze: %s", why);
}

/* Checks that the freeze is completely over, and that the system can work. */
static void over(struct tsys *s)
{
	u64 start = sg_ticks();

	while ((SG_FREEZE_LIMIT(word(s)) || sg_is_still(&s->v) || frozen(s) ||
		sg_is_locked(&s->v, SG_HOT(freeze_lock))) && sg_ticks() - start < 5000000000ULL)
		sg_sleep_us(500);
	CHECK_EQ(SG_FREEZE_LIMIT(word(s)), 0);
	CHECK(!sg_is_locked(&s->v, SG_HOT(freeze_lock)));
	CHECK(!sg_is_locked(&s->v, SG_HOT(grow_lock)));
	CHECK(!sg_is_still(&s->v));
	CHECK_EQ(frozen(s), 0);
}

/* --- a thread that wants to store ------------------------------------------------------------ */

static struct maker {
	struct tsys *s;
	const char *name;
	u64 done;
} maker[3];

static void *make_file(void *arg)
{
	struct maker *m = arg;

	test_create(&m->s->v, &m->s->root, m->name, S_IFREG | 0600);
	__atomic_store_n(&m->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool made(const struct maker *m)
{
	return __atomic_load_n(&m->done, __ATOMIC_SEQ_CST);
}

static bool has(struct sg_vol *v, const char *name)
{
	struct sg_iref root, ref;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	return !sg_lookup(v, &root, name, (u32)strlen(name), &ref, NULL);
}

/* Restores the copy, in which all systems are dead. */
static void copy_has(u8 *copy, const char *there, const char *not_there)
{
	struct sg_identity id = tsys_identity(9, 1);
	struct tsys c;

	test_clean(copy, SIZE);
	CHECK_OK(tsys_try(&c, copy, SIZE, &id, 0, true));
	CHECK(has(&c.v, there));
	CHECK(!has(&c.v, not_there));
	over(&c);
	tsys_leave(&c);
	CHECK_EQ(SG_FREEZE_LIMIT(*(u64 *)(copy + SG_HOT(freeze))), 0);
	test_clean(copy, SIZE);
}

/* Copies single words, because heartbeats continue during a freeze. */
static void copy_words(u8 *copy)
{
	u64 i;

	for (i = 0; i < SIZE / 8; i++)
		((u64 *)copy)[i] = sg_load64((const u64 *)mem + i);
}

/*
 * Three systems try to store during the freeze, the copying system among them. All of them wait,
 * and succeed afterwards.
 */
static void all_wait(void)
{
	static const char *const names[] = { "a", "b", "c" };
	u8 *copy = test_map(SIZE);
	struct tsys s[3];
	pthread_t id[3];
	unsigned int i;

	make();
	for (i = 0; i < 3; i++)
		join(&s[i], i + 1);
	test_create(&s[1].v, &s[1].root, "before", S_IFREG | 0600);
	freezes(&s[0], LIMIT);
	for (i = 0; i < 3; i++) {
		CHECK(sg_is_still(&s[i].v));
		CHECK_EQ(frozen(&s[i]), SG_FROZEN(SG_FREEZE_NR(word(&s[i])), s[i].v.incarnation));
		maker[i] = (struct maker){ &s[i], names[i], 0 };
		CHECK_OK(pthread_create(&id[i], NULL, make_file, &maker[i]));
	}
	sg_sleep_us(50000);
	copy_words(copy);
	for (i = 0; i < 3; i++)
		CHECK(!made(&maker[i]));
	CHECK_OK(sg_thaw(&s[0].v));
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN); /* a second thaw fails */
	for (i = 0; i < 3; i++) {
		CHECK_OK(pthread_join(id[i], NULL));
		over(&s[i]);
		tsys_leave(&s[i]);
	}
	copy_has(copy, "before", "a");
	test_clean(mem, SIZE);
	test_unmap(copy, SIZE);
}

/* The freeze waits for an operation in progress: a write whose bytes are not stored yet. */
static void *write_slowly(void *arg)
{
	struct maker *m = arg;
	struct sg_iref f = test_lookup(&m->s->v, &m->s->root, m->name);
	struct sg_write w;

	CHECK_OK(sg_write_begin(&m->s->v, &f, 0, 5, SG_WRITE_LOCKED, &w));
	CHECK(w.fresh);
	__atomic_store_n(&m->done, 1, __ATOMIC_SEQ_CST);
	sg_sleep_us(100000);
	memcpy(m->s->v.base + w.off, "hello", 5);
	CHECK_OK(sg_write_end(&m->s->v, &f, &w, 5, 1));
	__atomic_store_n(&m->done, 2, __ATOMIC_SEQ_CST);
	return NULL;
}

static void what_is_under_way(void)
{
	struct tsys s[2];
	pthread_t id;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	test_create(&s[1].v, &s[1].root, "f", S_IFREG | 0600);
	maker[0] = (struct maker){ &s[1], "f", 0 };
	CHECK_OK(pthread_create(&id, NULL, write_slowly, &maker[0]));
	tawait(&maker[0].done, 1);
	freezes(&s[0], LIMIT);
	CHECK_EQ(sg_load64(&maker[0].done), 2);
	CHECK_OK(sg_thaw(&s[0].v));
	CHECK_OK(pthread_join(id, NULL));
	over(&s[1]);
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* Tests a program with one thread, which does all periodic work itself. */
static void alone(void)
{
	struct tsys s;

	make();
	tsys_join(&s, mem, SIZE, 1);
	freezes(&s, LIMIT);
	CHECK(sg_is_still(&s.v));
	CHECK_OK(sg_thaw(&s.v));
	test_create(&s.v, &s.root, "a", S_IFREG | 0600);
	over(&s);
	freezes(&s, 30);		/* the system never thaws */
	test_create(&s.v, &s.root, "b", S_IFREG | 0600);
	over(&s);
	CHECK_EQ(sg_thaw(&s.v), -EAGAIN);
	freezes(&s, LIMIT);
	tsys_leave(&s);
	tsys_join(&s, mem, SIZE, 1);
	over(&s);
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

/* --- void ------------------------------------------------------------------------------------ */

static void someone_joins(void)
{
	struct tsys s[2], t;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	freezes(&s[0], LIMIT);
	tsys_join(&t, mem, SIZE, 3);
	/* the new system does not wait for the freeze, so the copy is void */
	test_create(&t.v, &t.root, "new", S_IFREG | 0600);
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	tsys_leave(&t);
	freezes(&s[0], LIMIT);
	tsys_join(&t, mem, SIZE, 3);
	tsys_leave(&t);			/* the system joined during the freeze, and has left */
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	freezes(&s[0], LIMIT);
	tsys_leave(&s[1]);
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

static void someone_dies(void)
{
	struct tsys s[2], t;

	make();
	tlog_catch();
	join(&s[0], 1);
	join(&s[1], 2);
	freezes(&s[0], LIMIT);
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	/* a new incarnation in the same slot: the word of its predecessor is ignored */
	join(&t, 3);
	CHECK_EQ(t.v.slot, 1);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	tsys_leave(&t);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* A system that has been frozen for the announced time continues. */
static void takes_too_long(void)
{
	struct tsys s[2];
	pthread_t id;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	maker[0] = (struct maker){ &s[1], "late", 0 };
	freezes(&s[0], 200);
	CHECK_OK(pthread_create(&id, NULL, make_file, &maker[0]));
	tawait(&maker[0].done, 1);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	over(&s[0]);
	over(&s[1]);
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* --- refused --------------------------------------------------------------------------------- */

/*
 * The system in slot 5 was fenced for its silence. Its processes may still store through mappings,
 * so a copy could be inconsistent, and the freeze is refused. The refusal does not keep other
 * systems paused.
 */
static void beside_a_lapse(struct tsys *s)
{
	u64 *lapsed = sg_at(&s->v, SG_HOT(lapsed)), start;

	sg_or64(lapsed, 1ULL << 5);
	start = sg_ticks();
	CHECK_EQ(sg_freeze(&s->v, SG_FREEZE_MAX_MS, why), -EBUSY);
	says("(slot 5) was fenced for its silence");
	CHECK(sg_ticks() - start < 2000000000ULL);
	over(s);
	sg_and64(lapsed, ~(1ULL << 5));
	/* a failed fence has left the bit of a live slot */
	sg_or64(lapsed, 1ULL << s->v.slot);
	freezes(s, LIMIT);
	CHECK_OK(sg_thaw(&s->v));
	sg_and64(lapsed, ~(1ULL << s->v.slot));
	over(s);
}

static void refused(void)
{
	struct tsys s[2];
	u64 start;

	make();
	join(&s[0], 1);
	CHECK_EQ(sg_freeze(&s[0].v, 0, why), -EINVAL);
	says("1 to 10000");
	CHECK_EQ(sg_freeze(&s[0].v, SG_FREEZE_MAX_MS + 1, why), -EINVAL);
	tsys_rest(&s[0]);
	s[0].v.read_only = true;		/* a read-only mount is a member as well */
	tsys_maintain(&s[0]);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	tsys_rest(&s[0]);
	s[0].v.read_only = false;
	tsys_maintain(&s[0]);
	freezes(&s[0], LIMIT);
	CHECK_EQ(sg_freeze(&s[0].v, LIMIT, why), -EBUSY);
	says("is being copied here");
	CHECK_OK(sg_thaw(&s[0].v));
	beside_a_lapse(&s[0]);

	tsys_join(&s[1], mem, SIZE, 2);		/* no thread of this system responds to freezes */
	start = sg_ticks();
	CHECK_EQ(sg_freeze(&s[0].v, 400, why), -EBUSY);
	says("system-2 (slot 1) does not freeze");
	CHECK(sg_ticks() - start < 5000000000ULL);
	over(&s[0]);
	/* the word of the slot's last owner is ignored */
	sg_store64(sg_at(&s[1].v, sg_slot_off(&s[1].v, 1) + offsetof(struct sg_slot, frozen)),
		   SG_FROZEN(SG_FREEZE_NR(word(&s[0])) + 1, s[1].v.incarnation - 1));
	CHECK_EQ(sg_freeze(&s[0].v, 400, why), -EBUSY);
	sg_store64(sg_at(&s[1].v, sg_slot_off(&s[1].v, 1) + offsetof(struct sg_slot, frozen)), 0);
	over(&s[0]);
	over(&s[1]);
	tsys_maintain(&s[1]);
	freezes(&s[1], LIMIT);
	/* the call waits for the thaw, and then has nothing to do */
	CHECK_EQ(sg_grow(&s[0].v, 0, 0, why), 0);
	over(&s[0]);
	CHECK_EQ(sg_thaw(&s[1].v), -EAGAIN);
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/*
 * A call waits for a system that may be paused. Other threads of its own system must not wait for
 * the call.
 */
static void waits_for_another(void)
{
	struct tsys s[2];
	struct sg_iref f;
	pthread_t id;
	u64 start;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	tsys_calls(&s[1]);
	f = test_create(&s[0].v, &s[0].root, "f", S_IFREG | 0600);
	maker[0] = (struct maker){ &s[1], "g", 0 };
	CHECK_OK(sg_ilock(&s[0].v, &s[0].root));
	CHECK_OK(pthread_create(&id, NULL, make_file, &maker[0]));
	start = sg_ticks();
	while (!sg_load64(&s[1].v.stuck) && sg_ticks() - start < 5000000000ULL)
		sg_sleep_us(1000);
	CHECK_EQ(sg_load64(&s[1].v.stuck), 1);
	CHECK_EQ(sg_freeze(&s[0].v, 400, why), -EBUSY);
	says("system-2 (slot 1) does not freeze");
	CHECK_EQ(sg_load64(&s[1].v.still.spent), 0);
	sg_iunlock(&s[0].v, &s[0].root);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(sg_load64(&s[1].v.stuck), 0);
	over(&s[0]);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	CHECK_OK(sg_evict(&s[0].v, &f));
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

static struct sg_iref odd;

static void *look_at_odd(void *arg)
{
	struct tsys *s = arg;
	struct sg_attr attr;

	CHECK_OK(sg_getattr(&s->v, &odd, &attr));
	return NULL;
}

/* Tests the same for a call that waits for the end of another system's change. */
static void waits_for_a_change(void)
{
	struct tsys s[2];
	pthread_t id;
	u64 start, *seq;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	tsys_calls(&s[1]);
	odd = test_create(&s[0].v, &s[0].root, "odd", S_IFREG | 0600);
	seq = sg_at(&s[0].v, SG_IOFF(&odd, seq));
	CHECK_OK(sg_ilock(&s[0].v, &odd));
	sg_or64(seq, 1);
	CHECK_OK(pthread_create(&id, NULL, look_at_odd, &s[1]));
	start = sg_ticks();
	while (!sg_load64(&s[1].v.stuck) && sg_ticks() - start < 5000000000ULL)
		sg_sleep_us(1000);
	CHECK_EQ(sg_load64(&s[1].v.stuck), 1);
	CHECK_EQ(sg_freeze(&s[0].v, 400, why), -EBUSY);
	says("system-2 (slot 1) does not freeze");
	CHECK_EQ(sg_load64(&s[1].v.still.spent), 0);
	sg_store64(seq, sg_load64(seq) + 1);
	sg_iunlock(&s[0].v, &odd);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(sg_load64(&s[1].v.stuck), 0);
	over(&s[0]);
	freezes(&s[0], LIMIT);
	CHECK_OK(sg_thaw(&s[0].v));
	CHECK_OK(sg_evict(&s[0].v, &odd));
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/*
 * The total time for which a system can be frozen is limited, with any number of requesting
 * systems.
 */
static void too_often(void)
{
	struct tsys s;
	u64 spent;

	make();
	join(&s, 1);
	freezes(&s, 6000);
	sg_sleep_us(300000);
	CHECK_OK(sg_thaw(&s.v));
	over(&s);
	CHECK(sg_load64(&s.v.still.spent) > 250000000ULL);
	tsys_rest(&s);
	s.v.still.spent = 7000000000ULL;	/* the state after many freezes */
	tsys_maintain(&s);
	CHECK_EQ(sg_freeze(&s.v, 6000, why), -EBUSY);
	says("too often");
	/* this freeze takes exactly the rest of the budget */
	freezes(&s, LIMIT);
	CHECK_OK(sg_thaw(&s.v));
	over(&s);
	spent = sg_load64(&s.v.still.spent);
	sg_sleep_us(600000);
	freezes(&s, LIMIT);
	/* meanwhile the budget has grown again */
	CHECK(sg_load64(&s.v.still.spent) < spent);
	CHECK_OK(sg_thaw(&s.v));
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

/* --- the copying system is dead --------------------------------------------------------------- */

static void holder_dies(void)
{
	struct tsys s[3];
	u64 start;

	make();
	tlog_catch();
	join(&s[0], 1);
	join(&s[1], 2);
	join(&s[2], 3);
	freezes(&s[0], SG_FREEZE_MAX_MS);
	tsys_fence(&s[1], &s[0]);
	start = sg_ticks();
	test_create(&s[1].v, &s[1].root, "goes-on", S_IFREG | 0600);
	/* the call does not wait for the time limit of the freeze */
	CHECK(sg_ticks() - start < 8000000000ULL);
	tsys_die(&s[0]);
	freezes(&s[2], LIMIT);
	CHECK_OK(sg_thaw(&s[2].v));
	CHECK_EQ(SG_FREEZE_NR(word(&s[2])), 2);
	over(&s[1]);
	over(&s[2]);
	tsys_leave(&s[2]);
	tsys_leave(&s[1]);
	test_clean(mem, SIZE);
}

static void *freeze_long(void *arg)
{
	freezes(arg, SG_FREEZE_MAX_MS);
	return NULL;
}

/* The system that froze the volume dies. Its announcement remains for now, because the system that
 * would withdraw the announcement may itself wait for the end of the freeze. */
static void holder_dies_unsettled(void)
{
	struct tsys s[2];
	pthread_t id;
	u64 start;

	make();
	tlog_catch();
	join(&s[0], 1);
	tsys_join(&s[1], mem, SIZE, 2);
	CHECK_OK(pthread_create(&id, NULL, freeze_long, &s[0]));
	start = sg_ticks();
	while (!frozen(&s[1]) && sg_ticks() - start < 5000000000ULL) {
		sg_freeze_watch(&s[1].v);
		sg_sleep_us(500);
	}
	CHECK_OK(pthread_join(id, NULL));
	CHECK(sg_is_still(&s[1].v));
	CHECK(sg_freeze_watch(&s[1].v) > 0 && sg_is_still(&s[1].v));
	tsys_fence(&s[1], &s[0]);
	sg_freeze_watch(&s[1].v);
	CHECK(!sg_is_still(&s[1].v));
	CHECK_EQ(frozen(&s[1]), 0);
	tsys_die(&s[0]);
	tsys_leave(&s[1]);
	test_clean(mem, SIZE);
}

/* The system that makes the copy continues to run, but never ends the freeze. */
static void holder_stops(void)
{
	struct tsys s[2];
	pthread_t id;

	make();
	join(&s[0], 1);
	join(&s[1], 2);
	maker[0] = (struct maker){ &s[1], "goes-on", 0 };
	freezes(&s[0], 300);
	tsys_pause(&s[0], true);
	CHECK_OK(pthread_create(&id, NULL, make_file, &maker[0]));
	tawait(&maker[0].done, 1);
	CHECK_OK(pthread_join(id, NULL));
	sg_sleep_us(120000);
	CHECK_EQ(frozen(&s[1]), 0);		/* the system freezes once per attempt */
	CHECK(sg_load64(&s[1].v.still.spent) < 2000000000ULL);
	tsys_pause(&s[0], false);
	over(&s[0]);
	CHECK_EQ(sg_thaw(&s[0].v), -EAGAIN);
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* The next system that settles withdraws the announcement. */
static void left_over(void)
{
	struct tsys s[2];
	u64 start = sg_ticks();

	make();
	tlog_catch();
	join(&s[0], 1);
	tsys_join(&s[1], mem, SIZE, 2);
	sg_store64(sg_at(&s[1].v, SG_HOT(freeze)), SG_FREEZE(5000, 7));
	CHECK_OK(sg_lock(&s[1].v, SG_HOT(freeze_lock)));
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	while (SG_FREEZE_LIMIT(word(&s[0])) && sg_ticks() - start < 20000000000ULL)
		sg_sleep_us(1000);
	over(&s[0]);
	CHECK_EQ(SG_FREEZE_NR(word(&s[0])), 7);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* --- invalid words --------------------------------------------------------------------------- */

static void nonsense(void)
{
	struct sg_check_result res;
	struct tsys s[2];
	u64 start;

	make();
	join(&s[0], 1);
	tsys_join(&s[1], mem, SIZE, 2);
	/* the announcement names no live system: no system freezes */
	sg_store64(sg_at(&s[1].v, SG_HOT(freeze)), ~0ULL);
	sg_sleep_us(120000);
	CHECK(!sg_is_still(&s[0].v));
	/* a holder that never thaws: systems freeze once, for the allowed time */
	test_hasten(true);
	CHECK_OK(sg_lock(&s[1].v, SG_HOT(freeze_lock)));
	start = sg_ticks();
	sg_store64(sg_at(&s[1].v, SG_HOT(freeze)), SG_FREEZE(~0u, 5));
	while (!frozen(&s[0]) && sg_ticks() - start < 100000000000ULL)
		sg_sleep_us(1000);
	CHECK(frozen(&s[0]));
	test_create(&s[0].v, &s[0].root, "at-last", S_IFREG | 0600);
	CHECK(sg_ticks() - start < 100000000000ULL);
	sg_store64(sg_at(&s[1].v, SG_HOT(freeze)), SG_FREEZE(~0u, 6));
	sg_sleep_us(120000);
	CHECK(!sg_is_still(&s[0].v));
	test_hasten(false);
	sg_unlock(&s[1].v, SG_HOT(freeze_lock));
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	*(u64 *)(mem + SG_HOT(freeze)) = SG_FREEZE(SG_FREEZE_MAX_MS + 1, 3);
	CHECK(!test_is_clean(mem, SIZE, &res));
	CHECK_OK(sg_check(mem, SIZE, &(struct sg_check_opts){ .mode = SG_CHECK_PREEN,
			  .id = &test_identity }, &res));
	CHECK_EQ(*(u64 *)(mem + SG_HOT(freeze)), SG_FREEZE(0, 3));
	*(u64 *)(mem + SG_HOT(freeze_lock.word)) = SG_LOCK_WORD(3, 0x7fffffff);
	CHECK(!test_is_clean(mem, SIZE, &res));
	CHECK_OK(sg_check(mem, SIZE, &(struct sg_check_opts){ .mode = SG_CHECK_PREEN,
			  .id = &test_identity }, &res));
	test_clean(mem, SIZE);
}

int main(void)
{
	mem = test_map(SIZE);
	all_wait();
	what_is_under_way();
	alone();
	someone_joins();
	takes_too_long();
	refused();
	waits_for_another();
	waits_for_a_change();
	too_often();
	someone_dies();
	holder_dies();
	holder_dies_unsettled();
	holder_stops();
	left_over();
	nonsense();
	return test_done();
}
