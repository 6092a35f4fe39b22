// SPDX-License-Identifier: Apache-2.0
/*
 * Death (docs/protocol.md, sections 2 and 3): which systems count as dead, and what happens to
 * their locks and records. systems_declared_test covers fenced systems that still run.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define LOCK	SG_HOT(rename_lock)
#define SIZE	TEST_SMALL

static u8 *mem;

/* Offset of a word that replay may store and that has no other use, on the last, free data page. */
static u64 spare_word(const struct sg_vol *v, unsigned int i)
{
	return v->size - 2 * SG_PAGE + i * 8;
}

static u64 spare_value(const struct sg_vol *v, unsigned int i)
{
	return sg_get(v, spare_word(v, i));
}

static u64 state_of(const struct sg_vol *v, unsigned int slot)
{
	return sg_load64(sg_state_word(v, slot));
}

/* --- systems that need locks of a dead one ---------------------------------------------------- */

static void *wait_for_lock(void *arg)
{
	struct tsys *s = arg;

	sg_lock(&s->v, LOCK);
	return NULL;
}

/* A waiter that holds a lock itself recovers the dead holder, but not before the death is known. */
static void waiter_recovers(void)
{
	struct tsys a, b;
	struct sg_iref f;
	pthread_t id;
	u64 start;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	f = test_create(&b.v, &b.root, "mine", S_IFREG | 0600);
	sg_lock(&a.v, LOCK);
	tsys_record(&a.v, 0, 1, spare_word(&a.v, 0), 42);
	sg_ilock(&b.v, &f);
	CHECK_OK(pthread_create(&id, NULL, wait_for_lock, &b));
	sg_sleep_us(30000);
	CHECK_EQ(tsys_state(&b, 0), SG_SLOT_LIVE);
	CHECK_EQ(sg_get(&b.v, LOCK) & ~SG_LOCK_ASKED, SG_LOCK_WORD(0, a.v.incarnation));
	start = sg_ticks();
	tsys_fence(&b, &a);
	CHECK_OK(pthread_join(id, NULL));
	CHECK(sg_ticks() - start < 2000000000);
	CHECK_EQ(tsys_state(&b, 0), SG_SLOT_FREE);
	/* the record was replayed before the lock was released */
	CHECK_EQ(spare_value(&b.v, 0), 42);
	CHECK_EQ(sg_get(&b.v, LOCK), SG_LOCK_WORD(1, b.v.incarnation));
	sg_iunlock(&b.v, &f);
	sg_unlock(&b.v, LOCK);
	tsys_die(&a);
	tsys_leave(&b);
	test_clean(mem, SIZE);
}

static void *recover_it(void *arg)
{
	struct tsys *s = arg;

	sg_recover_all(&s->v);
	return NULL;
}

/* A system that gets a dead system's lock sees all changes that were committed under the lock. */
static void no_lock_before_replay(u64 rounds)
{
	struct tsys a, b, c;
	pthread_t id;
	unsigned int i;
	u64 r;

	tsys_join(&b, mem, SIZE, 2);
	tsys_join(&c, mem, SIZE, 3);
	for (r = 1; r <= rounds; r++) {
		tsys_join(&a, mem, SIZE, 1);
		sg_lock(&a.v, LOCK);
		i = (unsigned int)a.v.slot;
		tsys_record_full(&a.v, i, 0, spare_word(&a.v, 0), r);
		tsys_record_full(&a.v, i, 1, spare_word(&a.v, SG_AREA_WORDS), r);
		tsys_fence(&b, &a);
		CHECK_OK(pthread_create(&id, NULL, recover_it, &b));
		while (!sg_trylock(&c.v, LOCK))
			sg_relax();
		for (i = 2 * SG_AREA_WORDS; i-- > 0;)
			CHECK_EQ(spare_value(&c.v, i), r);
		sg_unlock(&c.v, LOCK);
		CHECK_OK(pthread_join(id, NULL));
		tsys_die(&a);
	}
	tsys_leave(&b);
	tsys_leave(&c);
	test_clean(mem, SIZE);
}

/* A reader that finds an unfinished change recovers the system that began it. */
static void reader_recovers(void)
{
	struct tsys a, b;
	struct sg_inode *rec;
	struct sg_iref f;
	struct sg_attr attr;
	u64 start = sg_ticks();

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	f = test_create(&b.v, &b.root, "changing", S_IFREG | 0600);
	rec = sg_at(&b.v, f.off);
	sg_ilock(&a.v, &f);
	tsys_record(&a.v, 0, 0, f.off + offsetof(struct sg_inode, seq), (rec->seq | 1) + 1);
	rec->seq |= 1;
	tsys_fence(&b, &a);
	CHECK_OK(sg_getattr(&b.v, &f, &attr));
	CHECK(sg_ticks() - start < 2000000000);
	CHECK_EQ(tsys_state(&b, 0), SG_SLOT_FREE);
	tsys_die(&a);
	tsys_leave(&b);
	test_clean(mem, SIZE);
}

/* --- recoverers that die -------------------------------------------------------------------- */

static void recovering(struct sg_vol *v, unsigned int slot, u32 inc, const struct tsys *by)
{
	*sg_state_word(v, slot) = SG_SLOT_WORD(SG_SLOT_RECOVERING, inc) |
				  SG_SLOT_BY_WORD(by->v.slot, by->v.incarnation);
}

/*
 * While the recoverer lives, no other system touches the slot. After its death, each system may
 * recover the slot.
 */
static void recoverer_dies(void)
{
	struct tsys a, b, c;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	tsys_join(&c, mem, SIZE, 3);
	sg_lock(&a.v, LOCK);
	tsys_record(&a.v, 0, 0, spare_word(&a.v, 1), 1);
	tsys_record(&b.v, 1, 0, spare_word(&b.v, 2), 2);
	recovering(&c.v, 0, a.v.incarnation, &b);
	CHECK(!sg_recover_slot(&c.v, 0));
	CHECK(!sg_trylock(&c.v, LOCK));
	tsys_fence(&c, &b);
	CHECK(!sg_trylock(&c.v, LOCK));		/* the lock is released only after recovery */
	CHECK(sg_maintain(&c.v) >= 0);
	CHECK_EQ(sg_slots_taken(&c.v), 1ULL << 2);
	CHECK_EQ(spare_value(&c.v, 1), 1);
	CHECK_EQ(spare_value(&c.v, 2), 2);
	CHECK(sg_trylock(&c.v, LOCK));
	sg_unlock(&c.v, LOCK);
	tsys_die(&a);
	tsys_die(&b);
	/*
	 * the recoverer has joined again with another incarnation, but the slot names its former
	 * incarnation
	 */
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	recovering(&c.v, 0, a.v.incarnation, &b);
	sg_leave(&b.v);
	*sg_state_word(&c.v, 1) = SG_SLOT_WORD(SG_SLOT_LIVE, a.v.incarnation);
	CHECK(sg_recover_slot(&c.v, 0));
	*sg_state_word(&c.v, 1) = SG_SLOT_WORD(SG_SLOT_FREE, a.v.incarnation);
	tsys_die(&a);
	tsys_leave(&c);
	test_clean(mem, SIZE);
}

/* After 65,536 joins, incarnations have the same low half again, here in the same slot. */
static void recoverer_comes_back(void)
{
	struct tsys a, b, c, next;
	u32 inc;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	tsys_join(&c, mem, SIZE, 3);
	sg_lock(&a.v, LOCK);
	tsys_record(&a.v, 0, 0, spare_word(&a.v, 1), 7);
	recovering(&c.v, 0, a.v.incarnation, &b);
	inc = b.v.incarnation;
	tsys_fence(&c, &b);
	CHECK(sg_recover_slot(&c.v, 1));	/* the system died during a recovery */
	tsys_die(&a);
	tsys_die(&b);
	sg_store64(sg_at(&c.v, SG_HOT(incarnation)), inc + 0xffff);
	tsys_join(&next, mem, SIZE, 4);
	CHECK_EQ(next.v.slot, 1);
	CHECK_EQ(next.v.incarnation, inc + 0x10000);
	CHECK_EQ(tsys_state(&c, 0), SG_SLOT_FREE);
	CHECK_EQ(spare_value(&c.v, 1), 7);
	CHECK(sg_trylock(&c.v, LOCK));
	sg_unlock(&c.v, LOCK);
	/*
	 * only the slot's recoverer completes the recovery, even if another incarnation has the
	 * same low half
	 */
	*sg_state_word(&c.v, 0) = SG_SLOT_WORD(SG_SLOT_RECOVERING, a.v.incarnation) |
				  SG_SLOT_BY_WORD(c.v.slot, c.v.incarnation);
	sg_recover_none_yet(&next.v);
	CHECK_EQ(tsys_state(&c, 0), SG_SLOT_RECOVERING);
	*sg_state_word(&c.v, 0) = SG_SLOT_WORD(SG_SLOT_FREE, a.v.incarnation);
	tsys_leave(&next);
	tsys_leave(&c);
	test_clean(mem, SIZE);
}

/*
 * Dead systems were recovering each other. In any order, a waiter gets its lock, without periodic
 * work.
 */
static void circle_of_recoverers(void)
{
	struct tsys s[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
	sg_lock(&s[0].v, LOCK);
	for (i = 0; i < 3; i++)
		recovering(&s[3].v, i, s[i].v.incarnation, &s[(i + 1) % 3]);
	sg_lock(&s[3].v, LOCK);
	sg_recover_all(&s[3].v);
	CHECK_EQ(sg_slots_taken(&s[3].v), 1ULL << 3);
	sg_unlock(&s[3].v, LOCK);
	for (i = 0; i < 3; i++)
		tsys_die(&s[i]);
	tsys_leave(&s[3]);
	test_clean(mem, SIZE);
}

/* Replay stops as soon as another system recovers the slot, or the recoverer itself is fenced. */
static void replay_given_up(void)
{
	struct tsys a, b, c;
	u64 held, was;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	tsys_join(&c, mem, SIZE, 3);
	was = spare_value(&a.v, 3);
	tsys_record(&a.v, 0, 0, spare_word(&a.v, 3), ~was);
	recovering(&c.v, 0, a.v.incarnation, &b);
	held = state_of(&c.v, 0);
	recovering(&c.v, 0, a.v.incarnation, &c);
	CHECK_EQ(sg_tx_replay(&b.v, 0, held), -EIO);
	CHECK_EQ(spare_value(&a.v, 3), was);
	*sg_state_word(&c.v, 0) = held;
	tsys_fence(&c, &b);
	CHECK_EQ(sg_tx_replay(&b.v, 0, held), -EIO);
	CHECK_EQ(spare_value(&a.v, 3), was);
	CHECK(sg_maintain(&c.v) >= 0);	/* the record still exists, and is replayed now */
	CHECK_EQ(spare_value(&a.v, 3), ~was);
	CHECK_EQ(sg_slots_taken(&c.v), 1ULL << 2);
	tsys_die(&a);
	tsys_die(&b);
	/* a record that stores the state of a slot changes no system's state */
	tsys_join(&a, mem, SIZE, 1);
	held = state_of(&c.v, 2);
	tsys_record(&a.v, 0, 0, sg_slot_off(&c.v, 2) + offsetof(struct sg_slot, state), 0);
	tsys_fence(&c, &a);
	CHECK(sg_recover_slot(&c.v, 0));
	CHECK_EQ(state_of(&c.v, 2), held);
	tsys_die(&a);
	tsys_leave(&c);
	test_clean(mem, SIZE);
}

/* --- slots that other systems can skip -------------------------------------------------------- */

extern bool (*sg_interrupt_hook)(void);

static bool dying(void)
{
	return true;
}

/* A join that fails leaves no lock or slot for which other systems would wait. */
static void join_given_up(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	struct tsys a, b;

	tsys_join(&a, mem, SIZE, 1);
	sg_lock(&a.v, SG_HOT(slot_lock));
	sg_interrupt_hook = dying;
	CHECK_EQ(tsys_try(&b, mem, SIZE, &id, 0, false), -EINTR);
	sg_interrupt_hook = NULL;
	CHECK_EQ(sg_slots_taken(&a.v), 1);
	sg_unlock(&a.v, SG_HOT(slot_lock));
	tsys_join(&b, mem, SIZE, 2);
	CHECK_EQ(b.v.slot, 1);
	tsys_leave(&b);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

static void waits_in_vain(const struct tsys *holder, bool tried)
{
	struct sg_identity id = tsys_identity(2, 1);
	u64 start = sg_ticks();
	struct tsys b;

	CHECK_OK(sg_open(&b.v, mem, SIZE, false, NULL));
	b.v.join_wait_ms = 100;
	if (tried) {
		CHECK_OK(sg_join(&b.v, &id, 0, false));
		sg_leave(&b.v);
		return;
	}
	CHECK_EQ(sg_join(&b.v, &id, 0, false), -EBUSY);
	CHECK(sg_ticks() - start >= 100000000ULL);
	CHECK(strstr(b.v.why, "system-1 (slot 0) holds a lock"));
	CHECK_EQ(sg_slots_taken(&holder->v), 1);
}

/*
 * The holder of a lock that a joiner needs may be paused forever: the joiner's error names the
 * holder.
 */
static void join_held_up(void)
{
	const struct sg_iref sems = sg_sys_ref(SG_SYS_SEMS);
	const struct sg_sem_new new = { .type = SG_SEM_COUNT, .mode = 0666, .initial = 1 };
	struct sg_new tmp = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_sem sem;
	struct sg_iref f;
	struct tsys a, b;
	u64 before;

	tsys_join(&a, mem, SIZE, 1);
	before = sg_used_inodes(&a.v);
	CHECK_OK(sg_sem_create(&a.v, "s", 1, &new, true, false, &sem));
	CHECK_OK(sg_lock(&a.v, SG_HOT(slot_lock)));
	waits_in_vain(&a, false);
	sg_unlock(&a.v, SG_HOT(slot_lock));
	CHECK_OK(sg_ilock(&a.v, &sems));
	waits_in_vain(&a, false);
	sg_iunlock(&a.v, &sems);
	/* a lock that only deferrable work needs does not prevent the join */
	tsys_join(&b, mem, SIZE, 3);
	CHECK_OK(sg_tmpfile(&b.v, &tmp, &f));
	tsys_fence(&a, &b);
	tsys_die(&b);
	sg_recover_all(&a.v);
	CHECK_OK(sg_ilock(&a.v, &f));
	waits_in_vain(&a, true);
	sg_iunlock(&a.v, &f);
	sg_settle(&a.v);
	CHECK_EQ(sg_used_inodes(&a.v), before);
	CHECK_OK(sg_sem_unlink(&a.v, "s", 1, SG_SEM_SERIAL(sem.head)));
	sg_sem_close(&a.v, &sem);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/* Settling skips a free slot whose ledger has a chain of pages without deferred frees. */
static void long_ledger(void)
{
	struct tsys a, b, c;
	u64 page;

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&c, mem, SIZE, 2);
	tsys_join(&b, mem, SIZE, 3);
	CHECK_OK(sg_ledger_grow(&b.v));
	tsys_leave(&b);
	page = sg_get(&a.v, sg_ledger_off(&a.v, 2));
	CHECK(page);
	sg_lock(&c.v, SG_HOT(slot_lock));
	sg_interrupt_hook = dying;
	CHECK_OK(sg_settle_free(&a.v, true));
	*(u64 *)(mem + page + 8) = SG_LEDGER_ENTRY(SG_LEDGER_INODE, SG_INO_ROOT, 0, 0);
	/* now settling waits for the lock of the slots */
	CHECK_EQ(sg_settle_free(&a.v, true), -EINTR);
	sg_interrupt_hook = NULL;
	sg_unlock(&c.v, SG_HOT(slot_lock));
	CHECK_OK(sg_settle_free(&a.v, true));
	CHECK(sg_ledger_empty(&a.v, 2));
	CHECK_EQ(*(u64 *)(mem + page + 8), 0);
	tsys_leave(&c);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

extern bool (*sg_no_memory_hook)(size_t len);

static bool no_memory(size_t len)
{
	return len;
}

/*
 * Without memory for its mirror, a ledger gets no new page, as the slot's next system would replace
 * that page.
 */
static void ledger_without_memory(void)
{
	struct tsys a;

	tsys_join(&a, mem, SIZE, 1);
	sg_no_memory_hook = no_memory;
	CHECK_EQ(sg_ledger_grow(&a.v), -ENOMEM);
	sg_no_memory_hook = NULL;
	CHECK_EQ(sg_get(&a.v, sg_ledger_off(&a.v, 0)), 0);
	CHECK_OK(sg_ledger_grow(&a.v));
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/* All systems die: the next joiner replays for all of them, even if no slot is free. */
static void all_die(unsigned int n)
{
	static struct tsys s[SG_SLOTS], next;
	struct sg_identity id = tsys_identity(99, 1);
	unsigned int i;

	for (i = 0; i < n; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		tsys_record(&s[i].v, i, i & 1, spare_word(&s[i].v, i), 1000 + i);
	}
	for (i = 0; i < n; i++)
		tsys_die(&s[i]);
	CHECK_OK(tsys_try(&next, mem, SIZE, &id, 0, true));
	for (i = 0; i < n; i++)
		CHECK_EQ(spare_value(&next.v, i), 1000 + i);
	CHECK_EQ(sg_slots_taken(&next.v), 1ULL << next.v.slot);
	tsys_leave(&next);
	test_clean(mem, SIZE);
}

extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);
static u64 clock_now, *beats_on, *state_to, next_state;

static u64 own_clock(void)
{
	return clock_now += 1000;
}

/*
 * Advances the clock. The joiner that still runs sends a heartbeat, or the next one takes its
 * place.
 */
static void sleep_and_beat(u64 ns)
{
	clock_now += ns;
	if (beats_on)
		sg_add64(beats_on, 1);
	if (state_to)
		sg_store64(state_to, next_state);
}

static int mount_with_clock(struct sg_vol *v)
{
	struct sg_identity id = tsys_identity(99, 1);
	int err;

	CHECK_OK(sg_open(v, mem, SIZE, false, NULL));
	clock_now = sg_ticks();
	sg_ticks_hook = own_clock;
	sg_sleep_hook = sleep_and_beat;
	err = sg_join(v, &id, 1000, false);
	sg_ticks_hook = NULL;
	sg_sleep_hook = NULL;
	return err;
}

/*
 * All systems die, one of them with a lock that each joiner needs. A joiner begins to recover the
 * slot of that system, acts for this slot, and dies, too. With @dead, the other systems are fenced,
 * so the next joiner finds dead slots. Otherwise nothing shows that they are dead.
 */
static void joiner_dies(bool dead)
{
	static struct tsys s[SG_SLOTS];
	const unsigned int k = 9;
	struct sg_vol next;
	unsigned int i;
	u64 state;

	for (i = 0; i < SG_SLOTS; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
	CHECK_OK(sg_lock(&s[k].v, SG_HOT(slot_lock)));
	tsys_record(&s[k].v, k, 0, spare_word(&s[k].v, 4), 4711 + dead);
	for (i = 0; i < SG_SLOTS && dead; i++)
		if (i != k)
			tsys_fence(&s[k], &s[i]);
	state = SG_SLOT_WORD(SG_SLOT_RECOVERING, s[k].v.incarnation) |
		SG_SLOT_BY_WORD(k, s[k].v.incarnation + 100);
	*sg_state_word(&s[k].v, k) = state;
	/* as long as that joiner sends heartbeats, it keeps the slot */
	beats_on = sg_at(&s[k].v, sg_slot_off(&s[k].v, k) + offsetof(struct sg_slot, heartbeat));
	CHECK_EQ(mount_with_clock(&next), -EBUSY);
	CHECK_EQ(state_of(&s[k].v, k), state);
	beats_on = NULL;
	/* a joiner that has begun with the same slot meanwhile keeps it, too */
	state_to = sg_state_word(&s[k].v, k);
	next_state = SG_SLOT_WORD(SG_SLOT_RECOVERING, s[k].v.incarnation) |
		     SG_SLOT_BY_WORD(k, s[k].v.incarnation + 101);
	CHECK_EQ(mount_with_clock(&next), -EBUSY);
	CHECK_EQ(state_of(&s[k].v, k), next_state);
	state_to = NULL;
	CHECK_OK(mount_with_clock(&next));
	CHECK_EQ(spare_value(&s[k].v, 4), 4711 + dead);
	CHECK_EQ(sg_slots_taken(&next), dead ? 1ULL << next.slot : ~0ULL);
	CHECK_EQ(sg_get(&next, SG_HOT(lapsed)), 0);
	sg_leave(&next);
	for (i = 0; i < SG_SLOTS; i++) {
		if (SG_SLOT_STATE(state_of(&s[i].v, i)) == SG_SLOT_LIVE)
			tsys_leave(&s[i]);
		else
			tsys_die(&s[i]);
	}
	test_clean(mem, SIZE);
}

/* A slot with an invalid state counts as dead; an invalid recoverer counts as dead as well. */
static void wild_states(void)
{
	struct tsys a;

	tsys_join(&a, mem, SIZE, 1);
	*sg_state_word(&a.v, 5) = SG_SLOT_WORD(77, 12);
	*sg_state_word(&a.v, 6) = SG_SLOT_WORD(SG_SLOT_RECOVERING, 13) | SG_SLOT_BY_WORD(200, 1);
	*sg_state_word(&a.v, 7) = SG_SLOT_WORD(SG_SLOT_RECOVERING, 14);
	CHECK(sg_maintain(&a.v) >= 0);
	CHECK_EQ(sg_slots_taken(&a.v), 1);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/* --- the lease ------------------------------------------------------------------------------ */

static u64 set_clock(void)
{
	return clock_now;
}

/* Runs periodic work for @ms. The test moves the clock, so no step waits, and none is late. */
static void maintain_for(struct tsys *s, unsigned int ms, u64 *beats, unsigned int n)
{
	unsigned int i;

	for (; ms; ms -= 5) {
		CHECK(sg_maintain(&s->v) >= 0);
		for (i = 0; i < n; i++)
			sg_add64((u64 *)(mem + beats[i]), 1);
		clock_now += 5000000;
	}
}

static void lease(void)
{
	struct tsys a, silent, guarded, beating, joiner;
	u64 beats[3];

	clock_now = sg_ticks();
	sg_ticks_hook = set_clock;
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&silent, mem, SIZE, 2);
	tsys_join(&guarded, mem, SIZE, 3);
	tsys_join(&beating, mem, SIZE, 4);
	tsys_join(&joiner, mem, SIZE, 5);
	beats[0] = sg_slot_off(&a.v, 2) + offsetof(struct sg_slot, guard);
	beats[1] = sg_slot_off(&a.v, 3) + offsetof(struct sg_slot, heartbeat);
	/* a joiner recovers the slot that it will use, and sends heartbeats in it */
	*sg_state_word(&a.v, 4) = SG_SLOT_WORD(SG_SLOT_RECOVERING, joiner.v.incarnation) |
				  SG_SLOT_BY_WORD(4, joiner.v.incarnation);
	beats[2] = sg_slot_off(&a.v, 4) + offsetof(struct sg_slot, heartbeat);
	*(u64 *)(mem + SG_HOT(lease_ms)) = 0;
	maintain_for(&a, 400, beats, 0);
	CHECK_EQ(sg_slots_taken(&a.v), 0x1f);
	*(u64 *)(mem + SG_HOT(lease_ms)) = 1500;
	tlog_clear();
	maintain_for(&a, 500, beats, 3);
	/* these systems were silent for less than the lease */
	CHECK_EQ(sg_slots_taken(&a.v), 0x1f);
	clock_now += 60000000000;	/* the complete machine was paused */
	CHECK(sg_maintain(&a.v) >= 0);
	CHECK_EQ(sg_slots_taken(&a.v), 0x1f);
	maintain_for(&a, 1800, beats, 3);
	CHECK_EQ(sg_slots_taken(&a.v), 0x1d);
	CHECK(tlog_has("system-2 (slot 1) has been silent"));
	CHECK(!tlog_has("system-3") && !tlog_has("system-4") && !tlog_has("system-5"));
	maintain_for(&a, 1700, beats, 2);
	CHECK_EQ(sg_slots_taken(&a.v), 0xd);	/* the joiner no longer stores heartbeats */
	*(u64 *)(mem + SG_HOT(lease_ms)) = 0;
	/* also without a lease a nameless system is fenced: no guard can detect its death */
	*sg_state_word(&a.v, 1) = SG_SLOT_WORD(SG_SLOT_LIVE, 1);
	maintain_for(&a, 4900, beats, 2);
	CHECK_EQ(sg_slots_taken(&a.v), 0xf);
	maintain_for(&a, 200, beats, 2);
	CHECK_EQ(sg_slots_taken(&a.v), 0xd);
	sg_ticks_hook = NULL;
	tsys_die(&silent);
	tsys_die(&joiner);
	tsys_leave(&guarded);
	tsys_leave(&beating);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/*
 * A system that was fenced for silence may still map pages: these pages and its slot stay unused
 * for a while.
 */
static void lapse(void)
{
	static u8 buf[8 * SG_PAGE] = { 1 };
	struct tsys a, silent, next;
	struct sg_iref f;

	clock_now = sg_ticks();
	sg_ticks_hook = set_clock;
	*(u64 *)(mem + SG_HOT(lapsed)) = 0;	/* clears lapses that lease() has left */
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&silent, mem, SIZE, 2);
	f = test_create(&a.v, &a.root, "f", S_IFREG | 0600);
	CHECK_EQ(sg_write(&a.v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	CHECK(sg_maintain(&silent.v) >= 0);
	*(u64 *)(mem + SG_HOT(lease_ms)) = 1500;
	maintain_for(&a, 1700, NULL, 0);
	CHECK_EQ(sg_slots_taken(&a.v), 1);
	*(u64 *)(mem + SG_HOT(lease_ms)) = 0;
	CHECK_OK(sg_unlink(&a.v, &a.root, "f", 1, 2));
	CHECK_OK(sg_evict(&a.v, &f));
	CHECK(!sg_alone(&a.v));
	maintain_for(&a, SG_LAPSE_MS - 500, NULL, 0);
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	tsys_join(&next, mem, SIZE, 3);
	CHECK_EQ(next.v.slot, 2);
	tsys_leave(&next);
	maintain_for(&a, 1000, NULL, 0);
	CHECK(sg_alone(&a.v));
	CHECK_EQ(sg_reclaim(&a.v, ~0u), 0);
	tsys_join(&next, mem, SIZE, 3);
	CHECK_EQ(next.v.slot, 1);
	tsys_leave(&next);
	/* a fence by an operator does not delay a join either */
	tsys_join(&next, mem, SIZE, 3);
	CHECK_OK(sg_fence_lapsed(&a.v, 1, next.v.incarnation));
	CHECK(sg_maintain(&a.v) >= 0);
	CHECK(!sg_alone(&a.v));
	maintain_for(&a, SG_LAPSE_MS + 200, NULL, 0);
	CHECK(sg_alone(&a.v));
	sg_ticks_hook = NULL;
	tsys_die(&next);
	tsys_die(&silent);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/* A read-only mount without a slot recovers no system: its mapping may not be writable. */
static void reader_without_slot(void)
{
	struct sg_vol reader;
	struct tsys a;

	tsys_join(&a, mem, SIZE, 1);
	*sg_state_word(&a.v, 9) = SG_SLOT_WORD(SG_SLOT_DEAD, 1);
	CHECK_OK(sg_open(&reader, mem, SIZE, true, NULL));
	sg_help(&reader, SG_LOCK_WORD(9, 1));
	CHECK_EQ(state_of(&a.v, 9), SG_SLOT_WORD(SG_SLOT_DEAD, 1));
	sg_help(&a.v, SG_LOCK_WORD(9, 1));
	CHECK_EQ(tsys_state(&a, 9), SG_SLOT_FREE);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/* --- machines, seen by their host ----------------------------------------------------------- */

static u64 guard_of(const struct sg_vol *v, unsigned int slot)
{
	return sg_get(v, sg_slot_off(v, slot) + offsetof(struct sg_slot, guard));
}

/* A fence of a machine fences its systems of all boots, but no other system, and not the caller. */
static void machine_goes(void)
{
	struct sg_identity gone = tsys_identity(7, 1), next = tsys_identity(7, 2), nobody = { 0 };
	struct tsys host, one, two, other, unnamed;
	struct sg_slot *slot;
	unsigned int i;
	u64 before[4];

	tsys_join(&host, mem, SIZE, 7);
	CHECK_OK(tsys_try(&one, mem, SIZE, &gone, 0, false));
	slot = sg_at(&one.v, sg_slot_off(&one.v, 1));
	tsys_join(&other, mem, SIZE, 8);
	tsys_join(&unnamed, mem, SIZE, 7);
	sg_store64(&((struct sg_slot *)sg_at(&host.v, sg_slot_off(&host.v, 3)))->named, 0);
	for (i = 0; i < 4; i++)
		before[i] = guard_of(&host.v, i);
	sg_guard(&host.v, gone.machine);
	for (i = 0; i < 4; i++)
		CHECK_EQ(guard_of(&host.v, i), before[i] + (i == 1));
	tlog_clear();
	CHECK_EQ(sg_fence_machine(&host.v, gone.machine), 1);
	CHECK(tlog_has("system-7 (slot 1): its VM has ended: fenced"));
	CHECK_EQ(tsys_state(&host, 0), SG_SLOT_LIVE);
	CHECK_EQ(tsys_state(&host, 1), SG_SLOT_DEAD);
	CHECK_EQ(tsys_state(&host, 2), SG_SLOT_LIVE);
	CHECK_EQ(tsys_state(&host, 3), SG_SLOT_LIVE);
	/* slots that are dead already are not counted */
	CHECK_EQ(sg_fence_machine(&host.v, gone.machine), 0);
	sg_recover_all(&host.v);
	CHECK_OK(tsys_try(&two, mem, SIZE, &next, 0, false));
	CHECK_EQ(sg_slot_of_machine(slot, next.machine), true);
	CHECK_EQ(sg_slot_of_machine(slot, nobody.machine), false);
	CHECK_EQ(sg_machine_known(next.machine), true);
	CHECK_EQ(sg_machine_known(nobody.machine), false);
	tsys_die(&one);
	tsys_leave(&unnamed);
	tsys_leave(&other);
	tsys_leave(&two);
	tsys_leave(&host);
	test_clean(mem, SIZE);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	waiter_recovers();
	no_lock_before_replay(test_amount(200, 2000, 20000));
	reader_recovers();
	recoverer_dies();
	recoverer_comes_back();
	circle_of_recoverers();
	replay_given_up();
	join_given_up();
	join_held_up();
	long_ledger();
	ledger_without_memory();
	all_die(4);
	all_die(SG_SLOTS);
	joiner_dies(true);
	joiner_dies(false);
	wild_states();
	reader_without_slot();
	lease();
	lapse();
	machine_goes();
	return test_done();
}
