// SPDX-License-Identifier: Apache-2.0
/*
 * The lapse after a fence for silence (docs/protocol.md, section 3): which fences begin a lapse,
 * which work waits for its end, and how it ends. systems_death_test checks that pages and slots
 * stay unused during a lapse.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"
#include "tool.h"

#define MIB	(1ULL << 20)
#define SIZE	(16 * MIB)
#define ROOM	(32 * MIB)	/* size to which the volume may grow */

/* most time of a lapse that one check of a slot can count */
#define STEP_NS	(4 * SG_MAINTAIN_MS * 1000000ULL)

extern bool (*sg_interrupt_hook)(void);
extern u64 (*sg_ticks_hook)(void);

static u8 *mem;

static u64 *lapsed(void)
{
	return (u64 *)(mem + SG_HOT(lapsed));
}

/* Fences @s like an operator without proof of its end, and recovers its slot. */
static void lapse_of(struct tsys *by, struct tsys *s)
{
	CHECK_OK(sg_fence_lapsed(&by->v, (unsigned int)s->v.slot, s->v.incarnation));
	CHECK(sg_maintain(&by->v) >= 0);
	CHECK_EQ(tsys_state(by, (unsigned int)s->v.slot), SG_SLOT_FREE);
}

/* Truncation and growth wait for live systems only. Reclaim waits for lapsed systems as well. */
static void waits_for_the_living(void)
{
	static u8 buf[8 * SG_PAGE] = { 1 };
	struct tsys a, silent;
	struct sg_iref f;
	char why[200];
	u64 start;
	int i;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&silent, mem, ROOM, 2);
	f = test_create(&a.v, &a.root, "f", S_IFREG | 0600);
	CHECK_EQ(sg_write(&a.v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	sg_set_mapper(&silent.v, &f, false, true);
	lapse_of(&a, &silent);
	CHECK_OK(sg_resize(&a.v, &f, 0, 1));
	start = sg_ticks();
	for (i = 0; i < 4; i++)
		sg_wait_mappers(&a.v, &f, false);
	CHECK(sg_ticks() - start < 1000000000);
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	tlog_clear();
	CHECK(!sg_epoch_wait(&a.v, 20));
	CHECK(tlog_has("system-2 (slot 1) was fenced and may still run"));
	CHECK(tlog_has("stay unused for 10 s"));
	CHECK_OK(sg_grow(&a.v, SIZE + 2 * MIB, 300, why));
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	*lapsed() = 0;
	CHECK_EQ(sg_reclaim(&a.v, ~0u), 0);
	tsys_die(&silent);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* --- work that the fenced system had begun ---------------------------------------------------- */

static bool has_page_of(struct sg_vol *v, const struct sg_iref *f, const struct sg_write *w)
{
	u64 page, first = w->off & ~(SG_PAGE - 1);
	struct sg_run run;

	for (page = 0; page < ROOM / SG_PAGE; page += run.pages) {
		CHECK_OK(sg_walk(v, f, page, ROOM / SG_PAGE - page, &run));
		if (run.off && run.off < first + w->pages * SG_PAGE &&
		    first < run.off + run.pages * SG_PAGE)
			return true;
	}
	return false;
}

static void fill_up(struct sg_vol *v, const struct sg_iref *f, u64 *end)
{
	static u8 buf[16 * SG_PAGE] = { 1 };
	s64 n;

	while ((n = sg_write(v, f, *end, buf, sizeof(buf), 1)) > 0)
		*end += (u64)n;
	CHECK_EQ(n, -ENOSPC);
}

/* The fenced system was paused while it copied a user's bytes into pages that it had taken. */
static void fresh_pages_wait(void)
{
	struct tsys a, paused;
	struct sg_iref f, g;
	struct sg_write w;
	u64 end = 0, before;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&paused, mem, ROOM, 2);
	f = test_create(&paused.v, &paused.root, "fresh", S_IFREG | 0600);
	CHECK_OK(sg_write_begin(&paused.v, &f, 0, 2 * MIB, 0, &w));
	CHECK(w.fresh && w.pages == 512);
	lapse_of(&a, &paused);
	g = test_create(&a.v, &a.root, "full", S_IFREG | 0600);
	a.v.space_wait_ms = 1;
	fill_up(&a.v, &g, &end);
	CHECK(!has_page_of(&a.v, &g, &w));
	before = end;
	*lapsed() = 0;
	fill_up(&a.v, &g, &end);
	CHECK(has_page_of(&a.v, &g, &w));
	CHECK(end - before > MIB);
	tsys_die(&paused);
	CHECK_OK(sg_unlink(&a.v, &a.root, "full", 4, 1));
	CHECK_OK(sg_unlink(&a.v, &a.root, "fresh", 5, 1));
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* Returns the next free record of @a's list, after locking it for @paused. */
static struct sg_iref filled_by(struct tsys *a, const struct tsys *paused)
{
	struct sg_area *area = NULL;
	struct sg_iref next;
	struct sg_lock *lock;
	unsigned int i;

	for (i = 0; i < a->v.sb.areas && !area; i++) {
		area = sg_at(&a->v, sg_area_off(&a->v, (unsigned int)a->v.slot, i));
		area = area->free_ino ? area : NULL;
	}
	CHECK(area);
	CHECK_OK(sg_iref(&a->v, area->free_ino, &next));
	lock = sg_at(&a->v, next.off + offsetof(struct sg_inode, lock));
	lock->word = SG_LOCK_WORD(paused->v.slot, paused->v.incarnation);
	return next;
}

/* The fenced system was paused while it filled a free record, whose lock it held. */
static void records_wait(void)
{
	struct tsys a, paused;
	struct sg_iref f, next;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&paused, mem, ROOM, 2);
	f = test_create(&a.v, &a.root, "first", S_IFREG | 0600);
	next = filled_by(&a, &paused);
	lapse_of(&a, &paused);
	f = test_create(&a.v, &a.root, "second", S_IFREG | 0600);
	CHECK(f.ino != next.ino);
	*lapsed() = 0;
	f = test_create(&a.v, &a.root, "third", S_IFREG | 0600);
	CHECK_EQ(f.ino, next.ino);
	tsys_die(&paused);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

static u64 *recovered_state, recovered_as;

static void recovered_behind_load(void *addr, bool behind)
{
	if (addr == recovered_state && behind)
		*recovered_state = recovered_as;
}

/* The recovery of the fenced system ends between two checks of its slot. */
static void records_wait_from_the_start(void)
{
	struct tsys a, paused;
	struct sg_iref f, next;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&paused, mem, ROOM, 2);
	f = test_create(&a.v, &a.root, "fourth", S_IFREG | 0600);
	next = filled_by(&a, &paused);
	lapse_of(&a, &paused);
	recovered_state = sg_state_word(&a.v, (unsigned int)paused.v.slot);
	recovered_as = *recovered_state;
	*recovered_state = SG_SLOT_WORD(SG_SLOT_RECOVERING, paused.v.incarnation);
	test_trap((u8 *)((uintptr_t)recovered_state & ~(SG_PAGE - 1)), recovered_behind_load);
	f = test_create(&a.v, &a.root, "fifth", S_IFREG | 0600);
	test_trap_end();
	CHECK_EQ(*recovered_state, recovered_as);
	CHECK(f.ino != next.ino);
	*lapsed() = 0;
	tsys_die(&paused);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* --- fences that begin a lapse ---------------------------------------------------------------- */

static void abandoned(struct tsys *s, const struct sg_identity *id)
{
	CHECK_OK(tsys_try(s, mem, ROOM, id, 0, false));
}

/*
 * A tool gets exclusive access after a time of silence of all systems. One of them is only paused.
 */
static void alone_by_silence(void)
{
	struct sg_identity vm = tsys_identity(1, 1), tool = tsys_identity(9, 1);
	static u8 buf[8 * SG_PAGE] = { 1 };
	struct tsys paused, killed;
	struct sg_statfs free;
	struct sg_iref f;
	struct sg_vol v;
	u64 start;

	tool.pid = 4711;
	abandoned(&paused, &vm);
	abandoned(&killed, &tool);
	CHECK_EQ(paused.v.slot, 0);
	CHECK_EQ(killed.v.slot, 1);
	/* a system that died before it stored its identity */
	*sg_state_word(&paused.v, 2) = SG_SLOT_WORD(SG_SLOT_LIVE, killed.v.incarnation);
	f = test_create(&paused.v, &paused.root, "g", S_IFREG | 0600);
	CHECK_EQ(sg_write(&paused.v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	CHECK_OK(sg_open(&v, mem, ROOM, false, NULL));
	CHECK_OK(sg_join_alone(&v, &tool, 20, false));
	CHECK_EQ(*lapsed(), 3);		/* the tool may be stopped as well */
	/* pages that the paused system may have mapped stay unused, despite the exclusive access */
	CHECK(sg_holds_alone(&v) && !sg_alone(&v));
	CHECK_OK(sg_unlink(&v, &paused.root, "g", 1, 2));
	CHECK_OK(sg_evict(&v, &f));
	CHECK(sg_reclaim(&v, ~0u) > 0);
	start = sg_ticks();
	CHECK_OK(sg_statfs(&v, &free));		/* the call returns before the lapse ends */
	CHECK(sg_ticks() - start < 150000000);
	*lapsed() = 0;
	CHECK_EQ(sg_reclaim(&v, ~0u), 0);
	sg_leave(&v);
	tsys_die(&paused);
	tsys_die(&killed);
	test_clean(mem, SIZE + 2 * MIB);
}

static struct tsys *fenced_meanwhile;

/* Behind the load of the word of lapses, slot 1 is fenced with a lapse, and recovered. */
static void fence_behind_load(void *addr, bool behind)
{
	if (addr != lapsed() || !behind || !fenced_meanwhile)
		return;
	sg_or64(lapsed(), 2);
	sg_store64_release(sg_state_word(&fenced_meanwhile->v, 1),
			   SG_SLOT_WORD(SG_SLOT_FREE, fenced_meanwhile->v.incarnation));
	fenced_meanwhile = NULL;
}

/* A system is not alone while another one passes from its slot to its lapse. */
static void alone_between_loads(void)
{
	struct tsys a, silent;
	bool alone;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&silent, mem, ROOM, 2);
	CHECK_EQ(silent.v.slot, 1);
	fenced_meanwhile = &silent;
	test_trap(mem + SG_HOT_OFF, fence_behind_load);
	alone = sg_alone(&a.v);
	test_trap_end();
	CHECK(!fenced_meanwhile && !alone);
	CHECK(!sg_alone(&a.v));
	*lapsed() = 0;
	CHECK(sg_alone(&a.v));
	tsys_die(&silent);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* A tool that is stopped in a copy continues it later: another file must not have those pages. */
static void copy_of_a_tool(void)
{
	struct sg_identity tool = tsys_identity(9, 1), other = tsys_identity(8, 1);
	struct tsys stopped;
	struct sg_write w;
	struct sg_iref f, g;
	struct sg_vol v;
	u64 end = 0;

	tool.pid = other.pid = 4711;
	abandoned(&stopped, &tool);
	f = test_create(&stopped.v, &stopped.root, "copied", S_IFREG | 0600);
	CHECK_OK(sg_write_begin(&stopped.v, &f, 0, 2 * MIB, 0, &w));
	CHECK(w.fresh && w.pages == 512);
	CHECK_OK(sg_open(&v, mem, ROOM, false, NULL));
	CHECK_OK(sg_join_alone(&v, &other, 20, false));
	g = test_create(&v, &stopped.root, "full", S_IFREG | 0600);
	v.space_wait_ms = 1;
	fill_up(&v, &g, &end);
	CHECK(!has_page_of(&v, &g, &w));
	*lapsed() = 0;
	CHECK_OK(sg_unlink(&v, &stopped.root, "full", 4, 1));
	CHECK_OK(sg_unlink(&v, &stopped.root, "copied", 6, 1));
	sg_leave(&v);
	tsys_die(&stopped);
	test_clean(mem, SIZE + 2 * MIB);
}

/* Returns whether a tool with this process ID, of that boot, is fenced with a lapse. */
static bool process_lapses(const u8 boot[16], u64 process)
{
	struct sg_identity tool = tsys_identity(9, 1), other = tsys_identity(8, 1);
	struct tsys silent;
	struct sg_vol v;
	bool lapses;

	memcpy(tool.boot, boot, sizeof(tool.boot));
	tool.pid = process;
	abandoned(&silent, &tool);
	CHECK_OK(sg_open(&v, mem, ROOM, false, NULL));
	CHECK_OK(sg_join_alone(&v, &other, 20, false));
	lapses = *lapsed();
	*lapsed() = 0;
	sg_leave(&v);
	tsys_die(&silent);
	return lapses;
}

static void *stay(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* Starts a process whose first thread has ended, while another one goes on. */
static pid_t start_headless(void)
{
	pid_t pid = fork();
	pthread_t thread;
	char state = 0, path[64];
	FILE *f;

	if (!pid) {
		pthread_create(&thread, NULL, stay, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'Z') {
		f = fopen(path, "re");
		CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
	}
	return pid;
}

/* The fencing tool sees that the process has ended, also if its parent has not waited for it. */
static void of_processes(void)
{
	u64 self = process_self();
	pid_t pid = start_headless();
	u8 boot[16], none[16] = { 1 };
	siginfo_t info;

	CHECK(process_boot(boot));
	CHECK(SG_SLOT_PID_SPACE(self));
	CHECK_EQ(SG_SLOT_PID(self), (u64)getpid());
	CHECK(process_lapses(boot, SG_SLOT_PROCESS(pid, SG_SLOT_PID_SPACE(self))));
	kill(pid, SIGKILL);
	CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	CHECK(!process_lapses(boot, SG_SLOT_PROCESS(pid, SG_SLOT_PID_SPACE(self))));
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(!process_lapses(boot, SG_SLOT_PROCESS(pid, SG_SLOT_PID_SPACE(self))));
	CHECK(process_lapses(none, SG_SLOT_PROCESS(pid, SG_SLOT_PID_SPACE(self))));
	CHECK(process_lapses(boot, SG_SLOT_PROCESS(pid, SG_SLOT_PID_SPACE(self) + 1)));
	CHECK(process_lapses(boot, SG_SLOT_PROCESS(pid, 0)));
	CHECK(process_lapses(boot, self));
	test_clean(mem, SIZE + 2 * MIB);
}

/* With force, no system is watched before it is fenced. */
static void alone_by_force(void)
{
	struct sg_identity vm = tsys_identity(1, 1), tool = tsys_identity(9, 1);
	struct tsys paused, next;
	struct sg_vol v;

	tool.pid = 4711;
	abandoned(&paused, &vm);
	CHECK_OK(sg_open(&v, mem, ROOM, false, NULL));
	CHECK_OK(sg_join_alone(&v, &tool, 0, true));
	CHECK_EQ(*lapsed(), 1ULL << paused.v.slot);
	*lapsed() = 0;
	sg_leave(&v);
	tsys_die(&paused);
	abandoned(&paused, &vm);
	CHECK_OK(tsys_try(&next, mem, ROOM, &tool, 0, true));
	CHECK_EQ(*lapsed(), 1ULL << paused.v.slot);
	*lapsed() = 0;
	tsys_leave(&next);
	tsys_die(&paused);
	test_clean(mem, SIZE + 2 * MIB);
}

/*
 * Two machines have the same UUID, because one is a copy. One system is paused while the other
 * mounts.
 */
static void of_one_machine(void)
{
	struct sg_identity vm = tsys_identity(1, 1), copy = tsys_identity(1, 2);
	struct tsys paused, next;

	abandoned(&paused, &vm);
	CHECK_OK(tsys_try(&next, mem, ROOM, &copy, 20, false));
	CHECK_EQ(*lapsed(), 1ULL << paused.v.slot);
	CHECK(next.v.slot != paused.v.slot);
	*lapsed() = 0;
	tsys_die(&paused);
	/* a fence by a caller that knows that the system has ended begins no lapse */
	vm = tsys_identity(3, 1);
	abandoned(&paused, &vm);
	tsys_fence(&next, &paused);
	CHECK(sg_maintain(&next.v) >= 0);
	CHECK_EQ(*lapsed(), 0);
	tsys_die(&paused);
	tsys_leave(&next);
	test_clean(mem, SIZE + 2 * MIB);
}

/* --- the end of a lapse ----------------------------------------------------------------------- */

static bool to_die(void)
{
	return true;
}

static u64 clock_now;

static u64 own_clock(void)
{
	return clock_now;
}

static void look_once(struct tsys *s)
{
	clock_now += STEP_NS;
	CHECK(sg_watch(&s->v) >= 0);
}

static unsigned int loads;	/* number of loads of the word of lapses */
static u64 *next_state;

/*
 * A check of a slot loads its state, then the word of lapses. Between the two loads, the lapse of
 * slot 1 ends. Then the slot's next owner joins, is fenced for silence, and is recovered.
 */
static void on_load(void *addr, bool behind)
{
	if (addr == lapsed() && !behind && ++loads == 2)
		sg_add64(next_state, 1ULL << 32);
}

/* A watcher that was paused in a check ends the lapse that it has seen, but not the next one. */
static void a_younger_one(void)
{
	struct tsys a, b;
	int looks = 0, i;

	clock_now = sg_ticks();
	sg_ticks_hook = own_clock;
	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&b, mem, ROOM, 2);
	CHECK_EQ(b.v.slot, 1);
	look_once(&a);		/* the first check starts the watcher's measurement */
	lapse_of(&a, &b);
	for (; *lapsed(); looks++)
		look_once(&a);
	CHECK(looks * STEP_NS >= SG_LAPSE_MS * 1000000ULL - STEP_NS);
	tsys_die(&b);
	tsys_join(&b, mem, ROOM, 3);
	CHECK_EQ(b.v.slot, 1);
	lapse_of(&a, &b);
	for (i = 1; i < looks; i++)
		look_once(&a);
	CHECK_EQ(*lapsed(), 2);
	next_state = sg_state_word(&a.v, 1);
	/* the incarnation of that next owner */
	sg_add64((u64 *)(mem + SG_HOT(incarnation)), 1);
	test_trap(mem + SG_HOT_OFF, on_load);
	look_once(&a);
	test_trap_end();
	CHECK(loads >= 2);
	CHECK_EQ(*lapsed(), 2);
	for (i = 0; i < looks; i++)
		look_once(&a);
	look_once(&a);
	CHECK_EQ(*lapsed(), 0);
	sg_ticks_hook = NULL;
	tsys_die(&b);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* A late fence begins no lapse. A leaving system clears the bit that a failed fence left. */
static void of_failed_fences(void)
{
	struct tsys a, b;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&b, mem, ROOM, 2);
	CHECK_EQ(sg_fence_lapsed(&a.v, 1, b.v.incarnation - 1), -ESTALE);
	CHECK_EQ(*lapsed(), 0);
	sg_or64(lapsed(), 2);
	tsys_leave(&b);
	CHECK_EQ(*lapsed(), 0);
	tsys_leave(&a);
	test_clean(mem, SIZE + 2 * MIB);
}

/* All slots are free but lapsed, and no live system exists that could end the lapses. */
static void nobody_is_left(void)
{
	struct sg_identity id = tsys_identity(1, 1);
	struct tsys s;

	*lapsed() = ~0ULL;
	sg_interrupt_hook = to_die;
	CHECK_EQ(tsys_try(&s, mem, ROOM, &id, 0, false), -EINTR);
	sg_interrupt_hook = NULL;
	CHECK_EQ(*lapsed(), ~0ULL);
	tlog_clear();
	test_hasten(true);
	CHECK_OK(tsys_try(&s, mem, ROOM, &id, 0, false));
	test_hasten(false);
	CHECK(tlog_has("fenced systems may still store into the volume: waiting for up to 10 s"));
	CHECK_EQ(*lapsed(), 0);
	tsys_leave(&s);
	test_clean(mem, SIZE + 2 * MIB);
}

/*
 * A system died with deferred frees that a lapsed system may still reach. A repair waits for the
 * end of the lapse, and then frees all of them.
 */
static void repaired_after_it(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_PREEN, .wait_ms = 20, .force = true };
	static u8 buf[8 * SG_PAGE] = { 1 };
	struct sg_check_result res;
	struct tsys a, silent;
	struct sg_iref f;

	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&silent, mem, ROOM, 2);
	f = test_create(&a.v, &a.root, "h", S_IFREG | 0600);
	CHECK_EQ(sg_write(&a.v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	lapse_of(&a, &silent);
	CHECK_OK(sg_unlink(&a.v, &a.root, "h", 1, 2));
	CHECK_OK(sg_evict(&a.v, &f));
	CHECK(sg_reclaim(&a.v, ~0u) > 0);
	tsys_die(&silent);
	tsys_die(&a);
	tlog_clear();
	test_hasten(true);
	CHECK_OK(sg_check(mem, SIZE + 2 * MIB, &opts, &res));
	test_hasten(false);
	CHECK(tlog_has("fenced systems may still store into the volume: waiting for up to 10 s"));
	CHECK(res.unclean);
	CHECK_EQ(res.found, res.fixed);
	CHECK_EQ(*lapsed(), 0);
	test_clean(mem, SIZE + 2 * MIB);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume_in(SIZE, ROOM);
	waits_for_the_living();
	fresh_pages_wait();
	records_wait();
	records_wait_from_the_start();
	alone_by_silence();
	alone_between_loads();
	copy_of_a_tool();
	of_processes();
	alone_by_force();
	of_one_machine();
	a_younger_one();
	of_failed_fences();
	nobody_is_left();
	repaired_after_it();
	return test_done();
}
