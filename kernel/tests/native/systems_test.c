// SPDX-License-Identifier: Apache-2.0
/*
 * Slots (docs/protocol.md, section 1): joining and leaving, many systems, exclusive access,
 * identity.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define MANY	SG_SLOTS

static u8 *mem;

static void says(const struct sg_vol *v, const char *reason)
{
	test_counted();
	if (!strstr(v->why, reason))
		test_fail(__FILE__, __LINE__, "'%s' does not contain '%s'", v->why, reason);
}

static void try(struct tsys *s, unsigned int machine, unsigned int boot, int want)
{
	struct sg_identity id = tsys_identity(machine, boot);

	CHECK_EQ(tsys_try(s, mem, TEST_SMALL, &id, 300, false), want);
}

/* Each system immediately sees changes of other systems, even without periodic work. */
static void see_each_other(void)
{
	struct tsys s[4];
	unsigned int i, k;
	char name[20];
	u8 buf[100], got[100];

	for (i = 0; i < 4; i++) {
		tsys_join(&s[i], mem, TEST_SMALL, i + 1);
		CHECK_EQ(s[i].v.slot, i);
	}
	for (i = 0; i < 4; i++) {
		struct sg_iref f;

		sprintf(name, "from-%u", i);
		f = test_create(&s[i].v, &s[i].root, name, S_IFREG | 0600);
		memset(buf, (int)i + 1, sizeof(buf));
		CHECK_EQ(sg_write(&s[i].v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
		for (k = 0; k < 4; k++) {
			struct sg_iref seen = test_lookup(&s[k].v, &s[k].root, name);

			CHECK_EQ(seen.ino, f.ino);
			CHECK_EQ(sg_read(&s[k].v, &seen, 0, got, sizeof(got)), sizeof(got));
			CHECK(!memcmp(buf, got, sizeof(buf)));
		}
		CHECK_OK(sg_unlink(&s[3 - i].v, &s[3 - i].root, name, (u32)strlen(name), 1));
		CHECK_EQ(sg_lookup(&s[i].v, &s[i].root, name, (u32)strlen(name), &f, NULL), -ENOENT);
	}
	for (i = 0; i < 4; i++)
		tsys_leave(&s[i]);
	test_clean(mem, TEST_SMALL);
}

/* The next joiner gets a slot that another system has left, with a new incarnation. */
static void slots_are_used_again(void)
{
	struct tsys a, b, c;
	u32 first;

	tsys_join(&a, mem, TEST_SMALL, 1);
	tsys_join(&b, mem, TEST_SMALL, 2);
	first = a.v.incarnation;
	tsys_leave(&a);
	tsys_join(&c, mem, TEST_SMALL, 3);
	CHECK_EQ(c.v.slot, 0);
	CHECK(c.v.incarnation > b.v.incarnation && b.v.incarnation > first);
	CHECK_EQ(sg_fence_slot(&b.v, 0, first), -ESTALE);	/* a delayed guard's fence */
	CHECK_EQ(sg_fence_slot(&b.v, SG_SLOTS, 1), -EINVAL);
	CHECK_EQ(tsys_state(&b, 0), SG_SLOT_LIVE);
	tsys_leave(&b);
	tsys_leave(&c);
	test_clean(mem, TEST_SMALL);
}

static void take_dead_slot(struct tsys *s)
{
	try(&s[MANY], 65, 1, 0);
	CHECK_EQ(s[MANY].v.slot, 20);
	CHECK_EQ(tsys_state(&s[0], 30), SG_SLOT_FREE);
	tsys_leave(&s[MANY]);
	tsys_join(&s[20], mem, TEST_SMALL, 21);
	tsys_join(&s[30], mem, TEST_SMALL, 31);
}

static void *join_one(void *arg)
{
	struct tsys *s = arg;
	struct sg_identity id = tsys_identity(70, 1);

	s->keeper.dead = tsys_try(s, mem, TEST_SMALL, &id, 0, false) != 0;
	return NULL;
}

/* While a live system has exclusive access, a joiner without a free slot recovers no slot. */
static void none_while_alone(struct tsys *s)
{
	u64 *alone = sg_at(&s[0].v, SG_HOT(alone_lock.word));
	struct sg_identity id = tsys_identity(70, 1);
	struct tsys joiner;

	sg_store64(alone, SG_LOCK_WORD(s[0].v.slot, s[0].v.incarnation));
	CHECK_EQ(tsys_try(&joiner, mem, TEST_SMALL, &id, 0, false), -EBUSY);
	says(&joiner.v, "(slot 0) is moving the volume");
	CHECK_EQ(tsys_state(&s[0], 40), SG_SLOT_DEAD);
	sg_store64(alone, 0);
}

/* Two systems join, with one dead slot and no free slot: one of them gets the dead slot. */
static void two_want_one(struct tsys *s)
{
	struct tsys two[2];
	pthread_t id[2];
	unsigned int i;

	tsys_fence(&s[0], &s[40]);
	tsys_die(&s[40]);
	none_while_alone(s);
	for (i = 0; i < 2; i++)
		CHECK_OK(pthread_create(&id[i], NULL, join_one, &two[i]));
	for (i = 0; i < 2; i++)
		CHECK_OK(pthread_join(id[i], NULL));
	CHECK_EQ(two[0].keeper.dead + two[1].keeper.dead, 1);
	i = two[0].keeper.dead;
	CHECK_EQ(two[i].v.slot, 40);
	says(&two[!i].v, "all 64 slots are in use");
	tsys_leave(&two[i]);
	tsys_join(&s[40], mem, TEST_SMALL, 41);
}

/*
 * A tool that was killed with exclusive access does not prevent joins. Even 64 such tools do not.
 */
static void killed_tools(void)
{
	struct sg_identity id = tsys_identity(9, 1);
	struct tsys s;
	struct sg_vol v;
	unsigned int i;

	id.pid = 4711;
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join_alone(&v, &id, 0, true));
	sg_abandon(&v);
	test_hasten(true);
	try(&s, 2, 1000, 0);
	tsys_leave(&s);
	for (i = 0; i < MANY; i++) {
		CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
		CHECK_OK(sg_join(&v, &id, 0, false));
		sg_abandon(&v);
	}
	try(&s, 2, 1000, 0);	/* the tools may only be stopped: the joiner waits for their lapses */
	test_hasten(false);
	tsys_leave(&s);
	test_clean(mem, TEST_SMALL);
}

extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);

#define FORGED	40
#define EACH_NS	4900000000ULL

static u64 now;

static u64 ticks(void)
{
	return now += 1000;
}

static struct sg_slot *forged(unsigned int i)
{
	const struct sg_super *sb = (void *)mem;

	return (struct sg_slot *)(mem + sb->slot_off) + 20 + i;
}

/* Advances the clock. The systems send heartbeats in turn, each just before it would be fenced. */
static void sleep_ns(u64 ns)
{
	u64 before = now / EACH_NS;

	now += ns;
	if (now / EACH_NS != before)
		forged((unsigned int)before % FORGED)->heartbeat++;
}

/* A mount watches all silent tools at the same time, not one after the other. */
static void beating_tools(void)
{
	struct tsys s;
	unsigned int i;

	for (i = 0; i < FORGED; i++) {
		forged(i)->pid = 1;
		forged(i)->named = 1;
		forged(i)->state = SG_SLOT_WORD(SG_SLOT_LIVE, 1);
	}
	now = EACH_NS;
	sg_ticks_hook = ticks;
	sg_sleep_hook = sleep_ns;
	try(&s, 2, 1000, 0);
	CHECK(now < EACH_NS + 8000000000ULL);
	sg_ticks_hook = NULL;
	sg_sleep_hook = NULL;
	for (i = 0; i < FORGED; i++)
		memset(forged(i), 0, sizeof(struct sg_slot));
	tsys_leave(&s);
	test_lapses_over(mem);
	test_clean(mem, TEST_SMALL);
}

/*
 * The 65th join is refused, unless one of the 64 systems is fenced. A silent system counts as
 * alive.
 */
static void sixty_five(void)
{
	static struct tsys s[MANY + 1];
	unsigned int i;

	for (i = 0; i < MANY; i++)
		tsys_join(&s[i], mem, TEST_SMALL, i + 1);
	try(&s[MANY], 65, 1, -EBUSY);
	says(&s[MANY].v, "all 64 slots are in use");
	CHECK_EQ(sg_slots_taken(&s[0].v), ~0ULL);
	tsys_leave(&s[7]);
	try(&s[MANY], 65, 1, 0);
	CHECK_EQ(s[MANY].v.slot, 7);
	tsys_leave(&s[MANY]);
	tsys_join(&s[7], mem, TEST_SMALL, 8);
	for (i = 20; i <= 30; i += 10) {
		tsys_fence(&s[0], &s[i]);
		tsys_die(&s[i]);
	}
	take_dead_slot(s);
	two_want_one(s);
	for (i = 0; i < MANY; i++)
		tsys_leave(&s[i]);
	test_clean(mem, TEST_SMALL);
}

/* --- identity --------------------------------------------------------------------------------- */

/*
 * A machine's previous boot cannot be live if its heartbeat has stopped. A copied UUID is the
 * exception.
 */
static void other_boot(void)
{
	struct tsys old, next, third;

	tsys_join(&old, mem, TEST_SMALL, 1);
	tsys_maintain(&old);
	try(&next, 1, 2, 0);
	/* both send heartbeats, so the UUID was copied */
	CHECK_EQ(tsys_state(&next, 0), SG_SLOT_LIVE);
	tsys_pause(&old, true);
	sg_sleep_us(20000);
	try(&third, 1, 3, 0);	/* fences both, as neither sends heartbeats */
	CHECK_EQ(tsys_state(&third, 0), SG_SLOT_FREE);
	CHECK_EQ(tsys_state(&third, 1), SG_SLOT_FREE);
	tsys_die(&old);
	tsys_die(&next);
	tsys_leave(&third);
	test_lapses_over(mem);
	/*
	 * systems of another machine, of the same boot, and of a machine without a UUID are not
	 * fenced
	 */
	tsys_join(&old, mem, TEST_SMALL, 1);
	try(&next, 2, 2, 0);
	CHECK_EQ(tsys_state(&next, 0), SG_SLOT_LIVE);
	try(&third, 1, 1, 0);
	CHECK_EQ(tsys_state(&third, 0), SG_SLOT_LIVE);
	tsys_leave(&third);
	tsys_leave(&next);
	tsys_leave(&old);
	try(&old, 0, 1, 0);
	try(&next, 0, 2, 0);
	CHECK_EQ(tsys_state(&next, 0), SG_SLOT_LIVE);
	tsys_leave(&next);
	tsys_leave(&old);
	test_clean(mem, TEST_SMALL);
}

static bool rebooting;

static void *guard_other(void *arg)
{
	while (__atomic_load_n(&rebooting, __ATOMIC_ACQUIRE)) {
		sg_add64(arg, 1);
		sg_sleep_us(1000);
	}
	return NULL;
}

/* The guard of a rebooting machine sees its process run all the time, and does not detect boots. */
static void guarded_boot(void)
{
	struct sg_identity id = tsys_identity(1, 2);
	struct tsys old, next;
	pthread_t guard;

	tsys_join(&old, mem, TEST_SMALL, 1);
	tsys_die(&old);
	rebooting = true;
	CHECK_OK(pthread_create(&guard, NULL, guard_other,
				mem + 2 * SG_PAGE + offsetof(struct sg_slot, guard)));
	CHECK_OK(tsys_try(&next, mem, TEST_SMALL, &id, 100, false));
	CHECK_EQ(tsys_state(&next, 0), SG_SLOT_FREE);
	__atomic_store_n(&rebooting, false, __ATOMIC_RELEASE);
	CHECK_OK(pthread_join(guard, NULL));
	tsys_leave(&next);
	test_lapses_over(mem);
	test_clean(mem, TEST_SMALL);
}

/*
 * A host's reboot ends its machines: those that it has recorded in their slots, and no others. A
 * heartbeat shows that a record is wrong.
 */
static void host_boots(void)
{
	struct sg_identity id = tsys_identity(1, 2), vm_id = tsys_identity(7, 1);
	struct tsys host, vm, other, next;
	struct sg_slot *slot;

	tsys_join(&host, mem, TEST_SMALL, 1);
	tsys_join(&vm, mem, TEST_SMALL, 7);
	tsys_join(&other, mem, TEST_SMALL, 8);
	slot = sg_at(&host.v, sg_slot_off(&host.v, 1));
	sg_guard(&host.v, vm_id.machine);
	sg_lock(&vm.v, SG_HOT(rename_lock));
	tsys_die(&vm);
	tsys_die(&other);
	/* the next boot of a different machine does not prove that the VM has ended */
	try(&next, 9, 2, 0);
	CHECK_EQ(slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, vm.v.incarnation));
	tsys_leave(&next);
	try(&next, 1, 1, 0);		/* another mount of the same boot is no proof either */
	CHECK_EQ(slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, vm.v.incarnation));
	tsys_leave(&next);
	tsys_die(&host);
	CHECK_OK(tsys_try(&host, mem, TEST_SMALL, &id, 100, false));
	CHECK_EQ(tsys_state(&host, 0), SG_SLOT_FREE);
	CHECK_EQ(tsys_state(&host, 1), SG_SLOT_FREE);
	CHECK_EQ(tsys_state(&host, 2), SG_SLOT_LIVE);
	CHECK(sg_trylock(&host.v, SG_HOT(rename_lock)));
	sg_unlock(&host.v, SG_HOT(rename_lock));
	test_lapses_over(mem);
	/*
	 * The host's record in slot 1 names the incarnation of the slot's last owner. It says
	 * nothing about the new owner, until sg_guard() stores a new record.
	 */
	tsys_join(&vm, mem, TEST_SMALL, 6);
	CHECK_EQ(vm.v.slot, 0);
	tsys_join(&next, mem, TEST_SMALL, 7);
	CHECK_EQ(next.v.slot, 1);
	tsys_die(&host);
	id = tsys_identity(1, 3);
	CHECK_OK(tsys_try(&host, mem, TEST_SMALL, &id, 100, false));
	CHECK_EQ(slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, next.v.incarnation));
	/* the system lives, so the record is wrong */
	sg_guard(&host.v, vm_id.machine);
	CHECK_EQ(slot->hosted, next.v.incarnation);
	tsys_maintain(&next);
	tsys_die(&host);
	id = tsys_identity(1, 4);
	CHECK_OK(tsys_try(&host, mem, TEST_SMALL, &id, 500, false));
	CHECK_EQ(slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, next.v.incarnation));
	tsys_leave(&next);
	tsys_leave(&vm);
	tsys_leave(&host);
	CHECK_OK(tsys_try(&other, mem, TEST_SMALL, &vm_id, 0, true));
	tsys_leave(&other);
	test_lapses_over(mem);
	test_clean(mem, TEST_SMALL);
}

/* Until a joiner has stored its identity, its slot has the identity of the slot's last owner. */
static void named(void)
{
	struct tsys before, next;
	struct sg_slot *slot;
	u32 inc;

	tsys_join(&before, mem, TEST_SMALL, 1);
	slot = sg_at(&before.v, sg_slot_off(&before.v, 0));
	CHECK_EQ(slot->named, before.v.incarnation);
	inc = before.v.incarnation + 1;
	tsys_leave(&before);
	*(u64 *)(mem + SG_HOT(incarnation)) = inc;
	slot->state = SG_SLOT_WORD(SG_SLOT_LIVE, inc);
	/* this join would fence the previous boot, if the slot belonged to it */
	try(&next, 1, 2, 0);
	CHECK_EQ(slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, inc));
	slot->state = SG_SLOT_WORD(SG_SLOT_FREE, inc);
	tsys_leave(&next);
	test_clean(mem, TEST_SMALL);
}

/* --- exclusive access ------------------------------------------------------------------------- */

static void alone_or_not(void)
{
	struct sg_identity id = tsys_identity(9, 1);
	struct tkeeper beats;
	struct sg_vol alone;
	struct tsys a;

	tsys_join(&a, mem, TEST_SMALL, 1);
	tsys_maintain(&a);
	CHECK_OK(sg_open(&alone, mem, TEST_SMALL, false, NULL));
	CHECK_EQ(sg_join_alone(&alone, &id, 2000, false), -EBUSY);
	says(&alone, "mounted by system-1 (slot 0)");
	tsys_leave(&a);
	id.pid = 4711;
	CHECK_OK(sg_join_alone(&alone, &id, 2000, false));
	tkeeper_start(&beats, &alone);
	try(&a, 1, 1, -EBUSY);
	tkeeper_end(&beats);
	says(&a.v, "process 4711 on system-9 (slot 0) has exclusive access");
	CHECK_EQ(sg_slots_taken(&alone), 1);
	sg_leave(&alone);
	/* a tool that dies with exclusive access prevents no join after its death is known */
	CHECK_OK(sg_join_alone(&alone, &id, 2000, false));
	CHECK_OK(sg_fence_slot(&alone, 0, alone.incarnation));
	sg_abandon(&alone);
	try(&a, 1, 1, 0);
	tsys_leave(&a);
	test_clean(mem, TEST_SMALL);
}

static struct {
	u64 stop, joined, refused, alone, alone_refused;
	u64 inside;	/* number of tools with exclusive access */
} *race;

/* Joins and leaves repeatedly. While this system is a member, no tool has exclusive access. */
static void joiner(void *arg)
{
	struct sg_identity id = tsys_identity((unsigned int)(uintptr_t)arg, 1);
	struct tsys s;

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		unsigned int i;

		if (tsys_try(&s, mem, TEST_SMALL, &id, 0, false)) {
			__atomic_fetch_add(&race->refused, 1, __ATOMIC_RELAXED);
			sg_sleep_us(300);
			continue;
		}
		for (i = 0; i < 20; i++) {
			bool alone = __atomic_load_n(&race->inside, __ATOMIC_SEQ_CST);

			sg_beat(&s.v);
			/* except if the member was fenced meanwhile */
			CHECK(!alone || sg_may_write(&s.v));
			sg_sleep_us(50);
		}
		if (sg_may_write(&s.v))
			tsys_die(&s);
		else
			tsys_leave(&s);
		__atomic_fetch_add(&race->joined, 1, __ATOMIC_RELAXED);
		sg_sleep_us(4000 * (unsigned int)(uintptr_t)arg);
	}
}

static void alone_for_a_while(void)
{
	CHECK_EQ(__atomic_fetch_add(&race->inside, 1, __ATOMIC_SEQ_CST), 0);
	sg_sleep_us(2000);
	CHECK_EQ(__atomic_fetch_sub(&race->inside, 1, __ATOMIC_SEQ_CST), 1);
}

static void only_one(void *arg)
{
	struct sg_identity id = tsys_identity((unsigned int)(uintptr_t)arg, 1);
	struct sg_vol v;

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
		if (sg_join_alone(&v, &id, 2000, false)) {
			__atomic_fetch_add(&race->alone_refused, 1, __ATOMIC_RELAXED);
		} else {
			alone_for_a_while();
			sg_leave(&v);
			__atomic_fetch_add(&race->alone, 1, __ATOMIC_RELAXED);
		}
		sg_sleep_us(3000 * (unsigned int)(uintptr_t)arg);
	}
}

/* Many joiners compete with two tools that request exclusive access. */
static void raced(u64 rounds)
{
	u64 start = sg_ticks();
	pid_t pid[6];
	unsigned int i;

	race = tshare(sizeof(*race));
	for (i = 0; i < 6; i++)
		pid[i] = tproc(i < 4 ? joiner : only_one, (void *)(uintptr_t)(i + 1));
	while ((race->alone < rounds || race->joined < rounds || race->refused < rounds / 4 ||
		race->alone_refused < rounds / 4) && sg_ticks() - start < 60000000000ULL)
		sg_sleep_us(1000);
	tadvance(&race->stop, 1);
	for (i = 0; i < 6; i++)
		tproc_end(pid[i]);
	printf("raced: %" PRIu64 " joined, %" PRIu64 " refused; %" PRIu64 " alone, %" PRIu64
	       " refused\n", race->joined, race->refused, race->alone, race->alone_refused);
	CHECK(race->joined && race->refused && race->alone && race->alone_refused);
	test_clean(mem, TEST_SMALL);
}

/*
 * A joiner recovers a slot, acts for that slot, and sends heartbeats in it. So a system that has
 * watched the dead owner does not fence the joiner as silent. The dead owner's delayed guard cannot
 * fence the joiner either.
 */
static void in_the_slots_name(void)
{
	struct tsys a, b;
	struct sg_vol joiner;
	struct sg_slot *slot;
	u64 beat;
	u32 inc;

	tsys_join(&a, mem, TEST_SMALL, 1);
	tsys_join(&b, mem, TEST_SMALL, 2);
	inc = b.v.incarnation;
	slot = sg_at(&a.v, sg_slot_off(&a.v, (unsigned int)b.v.slot));
	tsys_fence(&a, &b);
	CHECK_OK(sg_open(&joiner, mem, TEST_SMALL, false, "joiner"));
	beat = slot->heartbeat;
	CHECK(sg_recover_slot(&joiner, (unsigned int)b.v.slot));
	CHECK(slot->heartbeat != beat);

	slot->state = SG_SLOT_WORD(SG_SLOT_RECOVERING, inc) | SG_SLOT_BY_WORD(b.v.slot, inc);
	CHECK_EQ(sg_fence_slot(&a.v, (unsigned int)b.v.slot, inc), -ESTALE);
	slot->state = SG_SLOT_WORD(SG_SLOT_FREE, inc);
	tsys_die(&b);
	tsys_leave(&a);
	test_clean(mem, TEST_SMALL);
}

/* --- a repair that is paused ------------------------------------------------------------------ */

#define TAKEN	100		/* number of pages */

static struct {
	bool holds, marks_free;
	struct tsys other;
	struct sg_iref f;
} stopped;

static int held(void *ctx, struct sg_vol *v)
{
	(void)ctx;
	stopped.holds = v;
	return 0;
}

/* Acts as a long pause of the process: other systems fence it, and continue. */
static void stop_here(void *ctx, const char *phase, u64 done, u64 total)
{
	static u8 bytes[TAKEN * SG_PAGE];
	struct sg_identity id = tsys_identity(5, 1);

	(void)ctx;
	(void)done;
	(void)total;
	if (!stopped.holds || strcmp(phase, "space map") || stopped.f.ino)
		return;
	CHECK_OK(tsys_try(&stopped.other, mem, TEST_SMALL, &id, 0, true));
	stopped.f = test_create(&stopped.other.v, &stopped.other.root, "new", S_IFREG | 0600);
	CHECK_EQ(sg_write(&stopped.other.v, &stopped.f, 0, bytes, sizeof(bytes), 1), sizeof(bytes));
}

static void note_finding(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	(void)ctx;
	(void)ino;
	(void)off;
	(void)fixed;
	stopped.marks_free |= strstr(what, "are marked free") != NULL;
}

/* A repair that was paused has outdated findings, so it stores nothing more, and fails. */
static void stopped_repair(void)
{
	struct sg_identity id = tsys_identity(6, 1);
	const struct sg_check_opts opts = {
		.mode = SG_CHECK_REPAIR, .id = &id, .force = true, .holding = held,
		.progress = stop_here, .report = note_finding,
	};
	struct sg_check_result res;
	struct sg_chunk *c;
	struct sg_vol v;

	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	c = (void *)(mem + sg_chunk_off(&v, sg_chunks(&v) - 2));
	/* a used page without an owner, which is a finding to repair */
	c->map[7] |= 1ULL << 62;
	CHECK_EQ(sg_check(mem, TEST_SMALL, &opts, &res), -EIO);
	CHECK(stopped.f.ino && strstr(res.why, "was fenced by another system"));
	tsys_leave(&stopped.other);
	stopped.marks_free = false;
	CHECK_OK(sg_check(mem, TEST_SMALL, &opts, &res));
	CHECK(!stopped.marks_free);
	test_lapses_over(mem);
	test_clean(mem, TEST_SMALL);
}

static unsigned int joins;

static void joiner_counts(void *addr, bool behind)
{
	if (addr == mem + SG_HOT(incarnation) && behind && joins) {
		joins--;
		/* not atomic, as TSan holds an internal lock in an atomic access */
		++*(volatile u64 *)addr;
	}
}

static void found_newest(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	(void)ctx;
	(void)ino;
	(void)off;
	(void)fixed;
	if (strstr(what, "the newest is"))
		joins = 20;
}

/* Joiners take incarnations while fsck repairs that word. fsck must not regard itself as fenced. */
static void mends_beside_joiners(void)
{
	struct sg_identity id = tsys_identity(6, 1);
	const struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &id, .force = true,
					     .report = found_newest };
	struct sg_slot *slot = (void *)(mem + 2 * SG_PAGE);
	struct sg_check_result res;

	slot[9].state = SG_SLOT_WORD(SG_SLOT_FREE, (u32)*(u64 *)(mem + SG_HOT(incarnation)) + 1000);
	joins = 0;
	test_trap(mem + SG_HOT_OFF, joiner_counts);
	CHECK_OK(sg_check(mem, TEST_SMALL, &opts, &res));
	test_trap_end();
	CHECK_EQ(joins, 0);	/* each joiner made one compare-and-swap of fsck fail */
	CHECK_EQ(res.found, res.fixed);
	test_clean(mem, TEST_SMALL);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(TEST_SMALL);
	see_each_other();
	slots_are_used_again();
	killed_tools();
	beating_tools();
	sixty_five();
	other_boot();
	guarded_boot();
	host_boots();
	named();
	in_the_slots_name();
	stopped_repair();
	mends_beside_joiners();
	alone_or_not();
	raced(test_amount(20, 200, 5000));
	return test_done();
}
