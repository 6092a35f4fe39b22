// SPDX-License-Identifier: Apache-2.0
/*
 * A system is paused during a change (virsh suspend, a stalled host): its heartbeat stops, and a
 * change counter stays odd. Other systems wait for it without limit, and do not report the odd
 * counter as damage. They report damage only while the slot sends heartbeats. One thread acts as
 * all systems; the clock advances when the thread sleeps.
 */
#include <setjmp.h>
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define S	1000000000ULL

extern bool (*sg_interrupt_hook)(void);
extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);

static u8 *mem;
static struct tsys paused, lives;
static u64 now = 1000 * S, damage;
static u64 beats_from, beats_until;	/* times between which the paused system sends heartbeats */
/* times at which a system is fenced, a waiter is killed, and the clock jumps; 0: never */
static u64 fence_at, kill_at, jump_at;

/* --- the clock ------------------------------------------------------------------------------ */

static u64 ticks(void)
{
	return now += 100;
}

static void sleep_ns(u64 ns)
{
	u64 *heart = sg_at(&lives.v, sg_slot_off(&lives.v, (unsigned int)paused.v.slot) +
				     offsetof(struct sg_slot, heartbeat));

	now += ns;
	if (now >= beats_from && now < beats_until)
		++*heart;
	if (jump_at && now >= jump_at) {
		jump_at = 0;
		now += 300 * S;
	}
	if (fence_at && now >= fence_at) {
		fence_at = 0;
		tsys_fence(&lives, &paused);
	}
}

static bool killed(void)
{
	return kill_at && ticks() >= kill_at;
}

static void clock_on(bool on)
{
	sg_ticks_hook = on ? ticks : NULL;
	sg_sleep_hook = on ? sleep_ns : NULL;
	sg_interrupt_hook = on ? killed : NULL;
	beats_from = beats_until = fence_at = kill_at = jump_at = 0;
}

/* --- the pause ------------------------------------------------------------------------------ */

static void (*meanwhile)(void);
static jmp_buf death;

/*
 * The system pauses here: its stores have made the directory's change counter odd, and not yet
 * even.
 */
static void at_store(const void *p)
{
	if (p != mem + SG_IOFF(&paused.root, seq) || !(*(const u64 *)p & 1))
		return;
	rec_at_store = NULL;
	clock_on(true);
	meanwhile();
	clock_on(false);
}

static void count_damage(struct sg_vol *v, u64 ino, u64 off)
{
	(void)v;
	(void)ino;
	(void)off;
	damage++;
}

static void world_make(void)
{
	damage = 0;
	mem = tsys_volume(SIZE);
	tsys_join(&paused, mem, SIZE, 1);
	tsys_join(&lives, mem, SIZE, 2);
	/* otherwise a waiting system would send heartbeats itself */
	paused.v.maintained = lives.v.maintained = true;
	lives.v.on_damage = count_damage;
	test_create(&lives.v, &lives.root, "old", S_IFREG | 0600);
}

static int make(struct tsys *s, const char *name)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f;

	return sg_create(&s->v, &s->root, name, (u32)strlen(name), &new, &f);
}

static int look(void)
{
	struct sg_iref f;

	return sg_lookup(&lives.v, &lives.root, "old", 3, &f, NULL);
}

/* Returns false if the system does not continue after the pause. */
static bool pause_in_change(void (*fn)(void))
{
	int err;

	meanwhile = fn;
	if (setjmp(death))
		return false;
	rec_at_store = at_store;
	err = make(&paused, "new");
	CHECK(!rec_at_store);
	CHECK_OK(err);
	return true;
}

static void world_end(void)
{
	test_lookup(&lives.v, &lives.root, "new");
	CHECK_OK(look());
	CHECK_OK(make(&lives, "after"));
	sg_leave(&lives.v);
	if (damage)	/* expected: fsck would report it as well */
		*(u64 *)(mem + SG_HOT(errors)) = 0;
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

/*
 * The pause takes half an hour. Meanwhile a waiter can be killed; afterwards all operations
 * continue.
 */
static void waits(void)
{
	u64 since = now;

	kill_at = now + 1800 * S;
	CHECK_EQ(look(), -EINTR);
	CHECK(now - since >= 1800 * S);
	CHECK_EQ(damage, 0);
	CHECK_EQ(sg_get(&lives.v, SG_HOT(errors)), 0);
}

static void comes_back(void)
{
	test_note("%s", __func__);
	world_make();
	CHECK(pause_in_change(waits));
	sg_leave(&paused.v);
	world_end();
}

/*
 * Another system fences the paused system while others wait for it. They recover the paused system,
 * and their calls succeed.
 */
static void waits_for_recovery(void)
{
	fence_at = now + 100 * S;
	kill_at = now + 2000 * S;
	CHECK_OK(look());
	CHECK(!fence_at);
	CHECK_EQ(damage, 0);
	clock_on(false);
	longjmp(death, 1);
}

static void is_fenced(void)
{
	test_note("%s", __func__);
	world_make();
	CHECK(!pause_in_change(waits_for_recovery));
	CHECK_EQ(tsys_state(&lives, (unsigned int)paused.v.slot), SG_SLOT_FREE);
	world_end();
}

/* The slot sends heartbeats, but the change does not end, because of a wild store or an attacker.
 * */
static void judges(void)
{
	u64 since = now;

	beats_from = now;
	beats_until = now + 1000 * S;
	CHECK_EQ(look(), -EUCLEAN);
	CHECK_EQ(damage, 1);
	CHECK(now - since > 15 * S && now - since < 60 * S);
	since = now;
	CHECK_EQ(look(), -EUCLEAN);	/* the next reader gets the error immediately */
	CHECK(now - since < S);
}

static void beats_on(void)
{
	test_note("%s", __func__);
	world_make();
	CHECK(pause_in_change(judges));
	sg_leave(&paused.v);
	world_end();
}

/* The heartbeat stops before the time-out. Then the complete machine is paused. */
static void stops_beating(void)
{
	beats_from = now;
	beats_until = now + 15 * S;
	jump_at = now + 10 * S;
	kill_at = now + 2000 * S;
	CHECK_EQ(look(), -EINTR);
	CHECK(!jump_at);
	CHECK_EQ(damage, 0);
}

static void stops(void)
{
	test_note("%s", __func__);
	world_make();
	CHECK(pause_in_change(stops_beating));
	sg_leave(&paused.v);
	world_end();
}

/* --- time-outs ------------------------------------------------------------------------------ */

static u64 judged(const char *name)
{
	struct sg_iref f = test_create(&lives.v, &lives.root, name, S_IFREG | 0600);
	struct sg_attr attr;
	u64 since = now;

	*(u64 *)(mem + SG_IOFF(&f, seq)) |= 1;
	CHECK_EQ(sg_getattr(&lives.v, &f, &attr), -EUCLEAN);
	since = now - since;
	*(u64 *)(mem + SG_IOFF(&f, seq)) += 1;
	return since;
}

static void patience_comes_back(void)
{
	char name[8];
	unsigned int i;

	test_note("%s", __func__);
	world_make();
	clock_on(true);
	CHECK(judged("first") > 2 * S - 1);
	for (i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		judged(name);
	}
	CHECK(judged("hasty") < S / 10);
	now += 70 * S;
	CHECK(judged("calm") > 2 * S - 1);
	CHECK(judged("next") > S / 2);
	clock_on(false);
	CHECK_OK(make(&paused, "new"));
	sg_leave(&paused.v);
	world_end();
}

/* --- a joiner ------------------------------------------------------------------------------- */

#define VICTIM	63

static struct sg_vol joiner[2];
static u64 replayed;			/* the first word of the record that replay stores */
static unsigned int joining;
static u64 state_of_second;

/*
 * All slots are taken, and one system is dead. A joiner recovers the dead system, and acts for that
 * slot.
 */
static int join(unsigned int which)
{
	struct sg_identity id = tsys_identity(50 + which, 1);

	CHECK_OK(sg_open(&joiner[which], mem, SIZE, false, NULL));
	return sg_join(&joiner[which], &id, 0, false);
}

static void in_replay(const void *p)
{
	if (p != mem + replayed)
		return;
	if (joining)	/* the second joiner is recovering when the first one continues */
		longjmp(death, 1);
	joining = 1;
	/* the first joiner has been silent for 5 s */
	sg_fence_slots(&lives.v, 1ULL << VICTIM);
	CHECK_EQ(tsys_state(&lives, VICTIM), SG_SLOT_DEAD);
	if (!setjmp(death))
		join(1);
	rec_at_store = NULL;
	CHECK_EQ(tsys_state(&lives, VICTIM), SG_SLOT_RECOVERING);
	state_of_second = *sg_state_word(&lives.v, VICTIM);
}

static void joiner_comes_back(void)
{
	struct sg_iref old;
	unsigned int i;

	test_note("%s", __func__);
	world_make();
	old = test_lookup(&lives.v, &lives.root, "old");
	replayed = SG_IOFF(&old, mtime);
	for (i = 0; i < SG_SLOTS; i++)
		if (tsys_state(&lives, i) == SG_SLOT_FREE)
			*sg_state_word(&lives.v, i) = SG_SLOT_WORD(SG_SLOT_LIVE, 7000 + i);
	tsys_record(&lives.v, VICTIM, 0, replayed, 77);
	*sg_state_word(&lives.v, VICTIM) = SG_SLOT_WORD(SG_SLOT_DEAD, 7000 + VICTIM);
	joining = 0;
	rec_at_store = in_replay;
	CHECK_EQ(join(0), -EBUSY);
	CHECK_EQ(joining, 1);
	/* only the second joiner recovers the slot now: the first one releases nothing */
	CHECK_EQ(*sg_state_word(&lives.v, VICTIM), state_of_second);
	test_unmap(mem, SIZE);
}

/* --- the log of a write --------------------------------------------------------------------- */

#define LEN	SG_ATOMIC_MAX
/* a system that stores a log checks its slot each time after this many bytes */
#define STEP	256u

static struct tsys third;
static struct sg_iref f;
static u8 *content;			/* the content of f, in one run of pages */
static u8 first[LEN], second[LEN];
static u64 steps, mem_area, seq_then;
static const u8 *last_step;		/* the last step of a part of the log */

static void logged_world(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1, .flags = SG_FL_ATOMIC };
	bool filled = false;
	struct sg_run run;

	world_make();
	tsys_join(&third, mem, SIZE, 3);
	third.v.maintained = true;
	CHECK_OK(sg_create(&lives.v, &lives.root, "f", 1, &new, &f));
	CHECK_OK(sg_write_atomic(&lives.v, &f, 0, second, LEN, 0, 1, &filled));
	CHECK_OK(sg_walk(&lives.v, &f, 0, LEN / SG_PAGE, &run));
	CHECK_EQ(run.pages, LEN / SG_PAGE);
	content = mem + run.off;
	sg_set_mapper(&lives.v, &f, false, true);	/* the file's pages stay where they are */
	rng_fill(&(struct rng){ 1 }, first, LEN);
	rng_fill(&(struct rng){ 2 }, second, LEN);
	steps = 0;
}

static int write_it(struct tsys *s, const u8 *bytes)
{
	bool filled = false;

	return sg_write_atomic(&s->v, &f, 0, bytes, LEN, 0, 1, &filled);
}

static bool is_content(const void *p)
{
	return (const u8 *)p >= content && (const u8 *)p < content + LEN;
}

static void count_steps(const void *p)
{
	steps += is_content(p);
}

/* The system is fenced and recovered after its first step. Another one writes to the same place. */
static void fenced_in(struct tsys *s)
{
	rec_at_store = NULL;
	CHECK_EQ(memcmp(content, first, STEP), 0);
	tsys_fence(&lives, s);
	CHECK_OK(write_it(&lives, second));
	CHECK_EQ(memcmp(content, second, LEN), 0);
	seq_then = sg_iget(&lives.v, &f, seq);
}

static void in_commit(const void *p)
{
	if (is_content(p))
		fenced_in(&paused);
}

/* Does the same as fenced_in(), in the last step of this part. */
static void in_last_step(const void *p)
{
	if (p != last_step)
		return;
	rec_at_store = NULL;
	tsys_fence(&lives, &paused);
	CHECK_OK(write_it(&lives, second));
	seq_then = sg_iget(&lives.v, &f, seq);
}

static void dies(const void *p)
{
	if (!is_content(p))
		return;
	rec_at_store = NULL;
	longjmp(death, 1);
}

static void in_recovery(const void *p)
{
	if (is_content(p))
		fenced_in(&third);
}

static void logged_world_end(void)
{
	static u8 now_there[LEN];

	CHECK(!rec_at_store);
	CHECK_EQ(sg_read(&lives.v, &f, 0, now_there, LEN), LEN);
	CHECK_EQ(memcmp(now_there, second, LEN), 0);
	sg_set_mapper(&lives.v, &f, false, false);
	CHECK_OK(make(&lives, "new"));
	world_end();
}

/* A fenced system that continues stores no byte after its next check of its slot. */
static void writer_comes_back(void)
{
	test_note("%s", __func__);
	logged_world();
	rec_at_store = count_steps;
	CHECK_OK(write_it(&paused, second));
	CHECK(steps >= LEN / STEP);
	rec_at_store = in_commit;
	CHECK_EQ(write_it(&paused, first), -EIO);
	/* it also stored no word of its record */
	CHECK_EQ(sg_iget(&lives.v, &f, seq), seq_then);
	sg_leave(&third.v);
	logged_world_end();
}

/*
 * The log has one part, or two with a hole between them. The paused system is fenced during the
 * last step of a part.
 */
static void fenced_at_end(unsigned int parts, u64 end)
{
	test_note("%s: parts: %u, end: %u", __func__, parts, (unsigned int)end);
	logged_world();
	if (parts == 2)
		CHECK_OK(sg_punch(&lives.v, &f, SG_PAGE, SG_PAGE, 1));
	last_step = content + end - STEP;
	rec_at_store = in_last_step;
	CHECK_EQ(write_it(&paused, first), -EIO);
	CHECK_EQ(sg_iget(&lives.v, &f, seq), seq_then);
	sg_leave(&third.v);
	logged_world_end();
}

static void recoverer_comes_back(void)
{
	test_note("%s", __func__);
	logged_world();
	if (!setjmp(death)) {
		rec_at_store = dies;
		write_it(&paused, first);
		CHECK(!"the write ends this system");
	}
	tsys_fence(&lives, &paused);
	rec_at_store = in_recovery;
	CHECK(!sg_recover_slot(&third.v, (unsigned int)paused.v.slot));
	logged_world_end();
}

/*
 * A page becomes bad between record and store: other pages are stored, and the caller gets an
 * error.
 */
static void page_is_lost(const void *p)
{
	u64 off = (u64)((const u8 *)p - mem);

	if (off < mem_area || off >= mem_area + SG_PAGE)
		return;
	rec_at_store = NULL;
	CHECK_EQ(sg_bad_add(&lives.v, (u64)(content - mem) + 3 * SG_PAGE, 1), 1);
}

static void bad_meanwhile(void)
{
	static u8 there[SG_PAGE];
	bool filled = false;

	test_note("%s", __func__);
	logged_world();
	mem_area = sg_area_off(&paused.v, (unsigned int)paused.v.slot, sg_cpu() % paused.v.sb.areas);
	rec_at_store = page_is_lost;
	CHECK_OK(sg_punch(&lives.v, &f, SG_PAGE, SG_PAGE, 1));
	CHECK_EQ(sg_write_atomic(&paused.v, &f, 0, first, LEN, 0, 1, &filled), -EIO);
	CHECK(!rec_at_store);
	CHECK(filled);
	CHECK_EQ(memcmp(content, first, SG_PAGE), 0);
	CHECK_EQ(sg_read(&lives.v, &f, SG_PAGE, there, SG_PAGE), SG_PAGE);
	CHECK_EQ(memcmp(there, first + SG_PAGE, SG_PAGE), 0);
	CHECK_EQ(memcmp(content + 2 * SG_PAGE, first + 2 * SG_PAGE, SG_PAGE), 0);
	CHECK_EQ(memcmp(content + 4 * SG_PAGE, first + 4 * SG_PAGE, LEN - 4 * SG_PAGE), 0);
	CHECK_EQ(sg_bad_remove(&lives.v, (u64)(content - mem) + 3 * SG_PAGE, 1), 1);
	CHECK_OK(write_it(&paused, second));
	sg_leave(&third.v);
	sg_leave(&paused.v);
	logged_world_end();
}

/*
 * A page becomes bad in the same way during an append. The caller of the append must still make the
 * filled hole and the new size visible.
 */
static void bad_meanwhile_in_append(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1, .flags = SG_FL_ATOMIC };
	static u8 there[SG_PAGE];
	u64 half = SG_PAGE / 2, size;
	bool filled = false;
	struct sg_iref g;
	struct sg_run run;

	test_note("%s", __func__);
	logged_world();
	CHECK_OK(sg_create(&lives.v, &lives.root, "g", 1, &new, &g));
	CHECK_OK(sg_extend(&lives.v, &g, half, 1));
	CHECK_OK(sg_allocate(&lives.v, &g, 1, 2));
	sg_set_mapper(&lives.v, &g, false, true);
	CHECK_OK(sg_walk(&lives.v, &g, 1, 2, &run));
	CHECK_EQ(run.pages, 2);
	content = mem + run.off - 2 * SG_PAGE;	/* page_is_lost() takes the page 3 behind it */
	mem_area = sg_area_off(&paused.v, (unsigned int)paused.v.slot, sg_cpu() % paused.v.sb.areas);
	rec_at_store = page_is_lost;
	CHECK_OK(sg_append_begin(&paused.v, &g, &size));
	CHECK_EQ(size, half);
	CHECK_EQ(sg_write_atomic(&paused.v, &g, half, first, 2 * SG_PAGE + half, SG_WRITE_APPEND, 1,
				 &filled), -EIO);
	sg_append_end(&paused.v, &g);
	CHECK(!rec_at_store);
	CHECK(filled);
	CHECK_EQ(sg_iget(&lives.v, &g, size), 3 * SG_PAGE);
	CHECK_EQ(sg_read(&lives.v, &g, half, there, half), half);
	CHECK_EQ(memcmp(there, first, half), 0);
	CHECK_EQ(sg_read(&lives.v, &g, 2 * SG_PAGE, there, SG_PAGE), -EIO);
	CHECK_EQ(sg_bad_remove(&lives.v, run.off + SG_PAGE, 1), 1);
	sg_leave(&third.v);
	sg_leave(&paused.v);
	logged_world_end();
}

int main(void)
{
	tlog_catch();
	writer_comes_back();
	fenced_at_end(1, LEN);
	fenced_at_end(2, SG_PAGE);
	fenced_at_end(2, LEN);
	recoverer_comes_back();
	bad_meanwhile();
	bad_meanwhile_in_append();
	comes_back();
	is_fenced();
	beats_on();
	stops();
	patience_comes_back();
	joiner_comes_back();
	return test_done();
}
