// SPDX-License-Identifier: Apache-2.0
/*
 * Epochs (docs/protocol.md, section 4): freed pages are reused after all live systems have
 * acknowledged two further epochs, and not earlier.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define PAGES	50	/* pages of each file that is freed */

static u8 *mem;

static u64 epoch_now(void)
{
	return sg_load64((u64 *)(mem + SG_HOT(epoch)));
}

static struct sg_iref make_file(struct tsys *s, const char *name, u64 pages, int byte)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
	static u8 buf[SG_PAGE];
	u64 i;

	memset(buf, byte, sizeof(buf));
	for (i = 0; i < pages; i++)
		CHECK_EQ(sg_write(&s->v, &f, i * SG_PAGE, buf, SG_PAGE, 1), SG_PAGE);
	return f;
}

static void free_file(struct tsys *s, const char *name)
{
	struct sg_iref f = test_lookup(&s->v, &s->root, name);

	CHECK_OK(sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1));
	CHECK_OK(sg_evict(&s->v, &f));
}

static void *write_some(void *arg)
{
	struct tsys *s = arg;

	make_file(s, "f", PAGES, 1);
	return NULL;
}

/* Returns whether a reclaim frees anything. */
static bool reclaims(struct tsys *s)
{
	u64 before = sg_free_pages(&s->v);

	CHECK(sg_reclaim(&s->v, ~0u) >= 0);
	return sg_free_pages(&s->v) != before;
}

static void acknowledge(struct tsys *s)
{
	CHECK(sg_maintain(&s->v) >= 0);
}

static void join(struct tsys *s, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		s[i].v.maintained = true;	/* only sg_maintain() acknowledges */
	}
}

static void leave(struct tsys *s, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		s[i].v.maintained = false;
	for (i = 0; i < n; i++)
		sg_leave(&s[i].v);
	test_clean(mem, SIZE);
}

/*
 * Goes through epochs step by step. Pages are not reclaimed after one epoch, or while any system is
 * one epoch behind.
 */
static void two_epochs_of_all(void)
{
	struct tsys s[3];
	u64 e;

	join(s, 3);
	make_file(&s[0], "f", PAGES, 1);
	e = epoch_now();
	free_file(&s[0], "f");
	CHECK(!reclaims(&s[0]));
	CHECK_EQ(epoch_now(), e + 1);	/* all systems had acknowledged the previous epoch */
	acknowledge(&s[0]);
	acknowledge(&s[1]);
	CHECK(!reclaims(&s[0]));
	CHECK_EQ(epoch_now(), e + 1);
	acknowledge(&s[2]);
	CHECK(!reclaims(&s[0]));
	CHECK_EQ(epoch_now(), e + 2);
	CHECK(!reclaims(&s[0]));
	acknowledge(&s[0]);
	acknowledge(&s[2]);
	CHECK(!reclaims(&s[0]));
	acknowledge(&s[1]);
	CHECK(reclaims(&s[0]));
	CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	leave(s, 3);
}

/* Runs so many rounds that the epochs of deferred frees wrap. */
static void around(void)
{
	struct tsys s[2];
	unsigned int i;
	u64 e;

	join(s, 2);
	for (i = 0; i < 6; i++) {
		*(u64 *)(mem + SG_HOT(epoch)) = 2040 + 2 * i;
		acknowledge(&s[0]);
		acknowledge(&s[1]);
		make_file(&s[0], "f", 3, 1);
		e = epoch_now();
		free_file(&s[0], "f");
		CHECK(!reclaims(&s[0]));
		while (epoch_now() < e + 2) {
			acknowledge(&s[0]);
			CHECK(!reclaims(&s[0]));
			acknowledge(&s[1]);
			CHECK(!reclaims(&s[0]) || epoch_now() == e + 2);
		}
		acknowledge(&s[0]);
		acknowledge(&s[1]);
		CHECK_EQ(sg_reclaim(&s[0].v, ~0u), 0);
	}
	leave(s, 2);
}

/* Reclaim waits neither for a dead system nor for a later joiner, as neither can read the pages. */
static void not_the_dead(void)
{
	struct tsys s[4];
	u64 e;

	join(s, 3);
	make_file(&s[0], "f", PAGES, 1);
	e = epoch_now();
	free_file(&s[0], "f");
	CHECK(!reclaims(&s[0]));
	acknowledge(&s[0]);
	acknowledge(&s[1]);
	tsys_fence(&s[0], &s[2]);
	sg_abandon(&s[2].v);
	CHECK(!reclaims(&s[0]));		/* advances the epoch */
	CHECK_EQ(epoch_now(), e + 2);
	acknowledge(&s[0]);
	tsys_join(&s[2], mem, SIZE, 4);
	s[2].v.maintained = true;
	CHECK(!reclaims(&s[0]));
	acknowledge(&s[1]);
	CHECK(reclaims(&s[0]));
	leave(s, 3);
}

/* A dead system's deferred frees count from the epoch in which another system takes them over. */
static void deferred_by_fenced(void)
{
	struct tsys s[3];
	u64 e;

	join(s, 3);
	make_file(&s[0], "f", PAGES, 1);
	free_file(&s[0], "f");
	tsys_fence(&s[1], &s[0]);
	sg_abandon(&s[0].v);
	sg_recover_all(&s[1].v);
	for (e = epoch_now(); epoch_now() < e + 5; ) {
		sg_epoch_push(&s[1].v);
		acknowledge(&s[1]);
		acknowledge(&s[2]);
	}
	CHECK_OK(sg_settle_free(&s[1].v, true));
	CHECK(!reclaims(&s[1]));
	tsys_fence(&s[2], &s[1]);
	sg_abandon(&s[1].v);
	sg_recover_all(&s[2].v);
	for (e = epoch_now(); epoch_now() < e + 5; ) {
		sg_epoch_push(&s[2].v);
		acknowledge(&s[2]);
	}
	/* deferred frees also count from that epoch if the slot's next system takes them over */
	CHECK_EQ(tsys_state(&s[2], 0), SG_SLOT_FREE);
	/* a live owner keeps the joiner out of slot 0 */
	*sg_state_word(&s[2].v, 0) = SG_SLOT_WORD(SG_SLOT_LIVE, 1);
	*(u64 *)sg_at(&s[2].v, sg_slot_off(&s[2].v, 0) + offsetof(struct sg_slot, epoch)) =
		epoch_now();
	tsys_join(&s[1], mem, SIZE, 7);
	CHECK_EQ(s[1].v.slot, 1);
	*sg_state_word(&s[2].v, 0) = SG_SLOT_WORD(SG_SLOT_FREE, 1);
	s[1].v.maintained = true;
	CHECK(!reclaims(&s[1]));
	for (e = epoch_now(); epoch_now() < e + 2; ) {
		acknowledge(&s[1]);
		acknowledge(&s[2]);
	}
	acknowledge(&s[1]);
	acknowledge(&s[2]);
	CHECK(reclaims(&s[1]));
	leave(&s[1], 2);
}

/* A system does not acknowledge while an earlier transaction is in progress. */
static void transactions_are_waited_for(void)
{
	struct tsys s[2];
	struct sg_write w;
	struct sg_iref f;
	u64 e;

	join(s, 2);
	make_file(&s[1], "g", PAGES, 1);
	f = make_file(&s[0], "f", 1, 1);
	CHECK_OK(sg_write_begin(&s[0].v, &f, SG_PAGE, 100, 0, &w));
	free_file(&s[1], "g");
	e = epoch_now();
	CHECK(!reclaims(&s[1]));
	CHECK_EQ(epoch_now(), e + 1);
	acknowledge(&s[1]);
	acknowledge(&s[0]);
	acknowledge(&s[0]);
	CHECK(!reclaims(&s[1]));
	CHECK_EQ(epoch_now(), e + 1);
	memset(mem + w.off, 1, 100);
	CHECK_OK(sg_write_end(&s[0].v, &f, &w, 100, 1));
	acknowledge(&s[0]);
	CHECK(!reclaims(&s[1]));
	CHECK_EQ(epoch_now(), e + 2);
	/* the acknowledgement does not wait for a later transaction */
	CHECK_OK(sg_write_begin(&s[0].v, &f, 2 * SG_PAGE, 100, 0, &w));
	acknowledge(&s[1]);
	acknowledge(&s[0]);
	CHECK(!reclaims(&s[1]));
	memset(mem + w.off, 1, 100);
	CHECK_OK(sg_write_end(&s[0].v, &f, &w, 100, 1));
	acknowledge(&s[0]);
	CHECK(reclaims(&s[1]));
	free_file(&s[0], "f");
	leave(s, 2);
}

/* --- a single system -------------------------------------------------------------------------- */

static struct tsys guest;
static unsigned int guests, quiesced;

static void quiesce(struct sg_vol *v)
{
	(void)v;
	quiesced++;
	if (guests) {
		guests--;
		tsys_join(&guest, mem, SIZE, 2);
		guest.v.maintained = true;
	}
}

/*
 * A single system reclaims immediately after its own readers, unless another system joins just
 * then.
 */
static void alone(void)
{
	struct tsys s;

	join(&s, 1);
	s.v.quiesce = quiesce;
	make_file(&s, "f", PAGES, 1);
	free_file(&s, "f");
	quiesced = 0;
	CHECK(reclaims(&s));
	CHECK(quiesced > 0);
	make_file(&s, "f", PAGES, 1);
	free_file(&s, "f");
	guests = 1;
	CHECK(!reclaims(&s));
	CHECK_EQ(guests, 0);
	sg_leave(&guest.v);
	CHECK(reclaims(&s));
	/* a dead system may have committed changes that have not been replayed yet */
	tsys_join(&guest, mem, SIZE, 2);
	tsys_fence(&s, &guest);
	sg_abandon(&guest.v);
	make_file(&s, "f", PAGES, 1);
	free_file(&s, "f");
	CHECK(!reclaims(&s));
	sg_recover_all(&s.v);
	CHECK(reclaims(&s));
	leave(&s, 1);
}

/* --- a slow reader ---------------------------------------------------------------------------- */

static struct {
	u64 step, off;
} *stage;

enum { LOOKS = 1, RELEASE, LEAVE, LEFT };

/* Reads a page that another system frees meanwhile: its contents stay. */
static void looker(void *arg)
{
	struct tsys s;
	struct sg_run run;
	struct sg_iref f;
	unsigned int i;

	(void)arg;
	tsys_join(&s, mem, SIZE, 2);
	tsys_maintain(&s);
	f = test_lookup(&s.v, &s.root, "watched");
	sg_look_begin();
	CHECK_OK(sg_walk(&s.v, &f, PAGES / 2, 1, &run));
	stage->off = run.off;
	tadvance(&stage->step, LOOKS);
	while (__atomic_load_n(&stage->step, __ATOMIC_SEQ_CST) < RELEASE) {
		for (i = 0; i < SG_PAGE; i++)
			if (mem[run.off + i] != 0x42)
				test_fail(__FILE__, __LINE__, "byte %u of a page in use is %x",
					  i, mem[run.off + i]);
		sg_sleep_us(100);
	}
	sg_look_end();
	tawait(&stage->step, LEAVE);
	tsys_leave(&s);
	tadvance(&stage->step, LEFT);
}

/* Writes until the volume is full. Returns the number of pages written. */
static u64 fill(struct tsys *s, const char *name, int byte)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
	static u8 buf[16 * SG_PAGE];
	u64 pos = 0;
	s64 n;

	memset(buf, byte, sizeof(buf));
	while ((n = sg_write(&s->v, &f, pos, buf, sizeof(buf), 1)) > 0)
		pos += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	return pos / SG_PAGE;
}

static u64 heart(const struct tsys *by, unsigned int slot)
{
	const struct sg_slot *s = sg_at(&by->v, sg_slot_off(&by->v, slot));

	return sg_load64(&s->heartbeat);
}

static void nothing_is_reused(void)
{
	struct sg_statfs st;
	struct tsys s;
	u64 pages, beats;
	pid_t pid;

	stage = tshare(sizeof(*stage));
	tsys_join(&s, mem, SIZE, 1);
	make_file(&s, "watched", PAGES, 0x42);
	pid = tproc(looker, NULL);
	tsys_maintain(&s);
	tawait(&stage->step, LOOKS);
	free_file(&s, "watched");
	tlog_clear();
	pages = fill(&s, "filler", 0x66);
	CHECK(tlog_has("system-2 (slot 1) does not acknowledge epoch"));
	CHECK_EQ(mem[stage->off], 0x42);
	beats = heart(&s, 1);
	sg_sleep_us(300000);
	CHECK(heart(&s, 1) != beats);	/* a late acknowledgement does not stop the heartbeat */
	CHECK_EQ(fill(&s, "more", 0x66), 0);
	CHECK_EQ(mem[stage->off], 0x42);
	tadvance(&stage->step, RELEASE);
	pages = fill(&s, "at last", 0x66);
	CHECK(pages >= PAGES);
	CHECK_EQ(mem[stage->off], 0x66);
	tadvance(&stage->step, LEAVE);
	tproc_end(pid);
	free_file(&s, "filler");
	free_file(&s, "more");
	free_file(&s, "at last");
	CHECK_OK(sg_statfs(&s.v, &st));
	CHECK(st.free_pages > st.pages / 2);
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

/* --- a system that leaves --------------------------------------------------------------------- */

#define REMOVED	400	/* number of files of one page, which are reclaimed 64 at a time */

extern bool (*sg_interrupt_hook)(void);

static struct tsys *stays;
static u64 beats_of_last_wait;

static bool in_last_wait(void)
{
	acknowledge(stays);
	beats_of_last_wait = heart(stays, 1);
	return false;
}

/*
 * A system that leaves tries to reclaim pages that other systems delay. It sends heartbeats until
 * its slot is free.
 */
static void leaver_sends_heartbeats(void)
{
	struct tsys s[2];
	char name[16];
	unsigned int i;

	mem = tsys_volume(SIZE);
	join(s, 2);
	CHECK_EQ(s[1].v.slot, 1);
	for (i = 0; i < REMOVED; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		make_file(&s[1], name, 1, 1);
	}
	for (i = 0; i < REMOVED; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		free_file(&s[1], name);
	}
	CHECK(sg_ledger_reclaimable(&s[1].v) >= REMOVED);
	stays = &s[0];
	beats_of_last_wait = 0;
	s[1].v.maintained = false;
	sg_interrupt_hook = in_last_wait;
	sg_leave(&s[1].v);
	sg_interrupt_hook = NULL;
	CHECK(beats_of_last_wait);
	CHECK(heart(&s[0], 1) >= beats_of_last_wait + REMOVED / 64);
	leave(s, 1);
}

/* --- deferred frees of other systems ---------------------------------------------------------- */

/* The volume is full, except for another system's deferred frees: a writer waits for those. */
static void deferred_by_others(void)
{
	struct tsys s[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		tsys_maintain(&s[i]);
	}
	make_file(&s[1], "theirs", 4 * PAGES, 1);
	fill(&s[0], "filler", 2);
	for (i = 0; i < 10; i++) {
		free_file(&s[1], "theirs");
		make_file(&s[0], "ours", 4 * PAGES, 3);
		free_file(&s[0], "ours");
		make_file(&s[1], "theirs", 4 * PAGES, 1);
	}
	free_file(&s[1], "theirs");
	free_file(&s[0], "filler");
	for (i = 0; i < 2; i++)
		tsys_leave(&s[i]);
	test_clean(mem, SIZE);
}

/* An allocation reserves all its space first, before it writes. */
static void what_is_allocated(void)
{
	struct tsys s[2];
	struct sg_iref f;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		tsys_maintain(&s[i]);
	}
	f = make_file(&s[0], "ours", 1, 1);
	make_file(&s[0], "deferred here", 4 * PAGES, 1);
	make_file(&s[1], "deferred there", 4 * PAGES, 1);
	fill(&s[0], "filler", 2);
	free_file(&s[0], "deferred here");
	CHECK_OK(sg_allocate(&s[0].v, &f, 0, 3 * PAGES));
	free_file(&s[1], "deferred there");
	CHECK_OK(sg_allocate(&s[0].v, &f, 0, 6 * PAGES));
	CHECK_EQ(sg_allocate(&s[0].v, &f, 0, 12 * PAGES), -ENOSPC);
	free_file(&s[0], "ours");
	free_file(&s[0], "filler");
	for (i = 0; i < 2; i++)
		tsys_leave(&s[i]);
	test_clean(mem, SIZE);
}

/* Locks the inode, and leaves the file in the state after the first transaction of a truncation. */
static void begin_cut(struct tsys *s, const struct sg_iref *f)
{
	struct sg_tx *tx = sg_tx_begin(&s->v);

	sg_tx_inode(tx, f);
	sg_tx_iset(tx, f, size, SG_PAGE);
	sg_tx_iset(tx, f, genflags, sg_iget(&s->v, f, genflags) | (u64)SG_FL_CUTTING << 32);
	sg_defer_inode(tx, f);
	CHECK_OK(sg_tx_commit(tx));
}

static bool deferred(const struct tsys *s)
{
	unsigned int i;

	for (i = 1; i < SG_LEDGER_WORDS; i++)
		if (sg_get(&s->v, sg_ledger_off(&s->v, (unsigned int)s->v.slot) + i * 8))
			return true;
	return false;
}

/* The volume is full, except for another system's truncation: a writer waits for that as well. */
static void what_is_being_cut(void)
{
	struct tsys s[2];
	struct sg_iref f;
	pthread_t id;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		s[i].v.space_wait_ms = 20000;
		tsys_maintain(&s[i]);
	}
	f = make_file(&s[1], "cut", 4 * PAGES, 1);
	fill(&s[1], "filler", 2);
	CHECK_OK(sg_ilock(&s[1].v, &f));
	while (deferred(&s[1]))
		sg_sleep_us(1000);
	begin_cut(&s[1], &f);
	CHECK_OK(pthread_create(&id, NULL, write_some, &s[0]));
	sg_sleep_us(300000);	/* the writer finds no page, and waits */
	sg_iunlock(&s[1].v, &f);
	CHECK_OK(sg_finish_cut(&s[1].v, &f));
	CHECK_OK(pthread_join(id, NULL));
	free_file(&s[0], "f");
	free_file(&s[0], "cut");
	free_file(&s[0], "filler");
	for (i = 0; i < 2; i++)
		tsys_leave(&s[i]);
	test_clean(mem, SIZE);
}

/*
 * The volume is full, except for a dead system's deferred frees: the writing system takes them
 * over.
 */
static void deferred_by_dead(void)
{
	struct tsys s[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
	make_file(&s[1], "theirs", 4 * PAGES, 1);
	fill(&s[0], "filler", 2);
	free_file(&s[1], "theirs");
	tsys_fence(&s[0], &s[1]);
	sg_abandon(&s[1].v);
	sg_recover_all(&s[0].v);
	make_file(&s[0], "ours", 3 * PAGES, 3);
	free_file(&s[0], "ours");
	free_file(&s[0], "filler");
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/*
 * The volume is full, except for a removed file that its last user has just closed. The system
 * whose ledger names the file frees it.
 */
static void what_is_left(void)
{
	struct tsys s[2];
	struct sg_iref f;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		tsys_maintain(&s[i]);
	}
	/* in the first round the writing system has deferred the file, then another system */
	for (i = 0; i < 2; i++) {
		f = make_file(&s[0], "left", 4 * PAGES, 1);
		CHECK_OK(sg_open_inode(&s[1].v, &f, false));
		free_file(&s[0], "left");
		fill(&s[i], "filler", 2);
		CHECK(sg_close_inode(&s[1].v, &f));
		make_file(&s[i], "found", 3 * PAGES, 3);
		free_file(&s[i], "found");
		free_file(&s[i], "filler");
	}
	for (i = 0; i < 2; i++)
		tsys_leave(&s[i]);
	test_clean(mem, SIZE);
}

/* --- free space that another system has locked ------------------------------------------------ */

/*
 * A system stops, or dies, with all free space locked. A writer must not treat that as a full
 * volume.
 */
static void what_is_locked(bool dies)
{
	struct tsys s[2];
	pthread_t id;
	u64 c;

	tsys_join(&s[0], mem, SIZE, 1);
	tsys_join(&s[1], mem, SIZE, 2);
	make_file(&s[0], "other", 1, 1);
	for (c = 0; c < s[1].v.sb.chunks; c++)
		CHECK(sg_trylock(&s[1].v, sg_chunk_off(&s[1].v, c) +
				 offsetof(struct sg_chunk, lock)));
	CHECK_OK(pthread_create(&id, NULL, write_some, &s[0]));
	sg_sleep_us(500000);
	if (dies)
		tsys_fence(&s[0], &s[1]);
	for (c = 0; c < s[1].v.sb.chunks && !dies; c++)
		sg_unlock(&s[1].v, sg_chunk_off(&s[1].v, c) + offsetof(struct sg_chunk, lock));
	CHECK_OK(pthread_join(id, NULL));
	if (dies)
		tsys_die(&s[1]);
	else
		tsys_leave(&s[1]);
	free_file(&s[0], "f");
	free_file(&s[0], "other");
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

struct maker {
	struct tsys *s;
	struct sg_iref dir;
	int err;
};

static void *make_in(void *arg)
{
	const struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct maker *m = arg;
	struct sg_iref f;

	m->err = sg_create(&m->s->v, &m->dir, "f", 1, &new, &f);
	return NULL;
}

/*
 * A system that needs space has a directory locked. Another system has locked the free space, and
 * needs that directory. Neither waits forever for the other.
 */
static void what_is_left_is_locked(void)
{
	struct maker m;
	struct tsys s[2];
	struct sg_iref f;
	pthread_t id;
	unsigned int i;

	mem = tsys_volume(SIZE);	/* a new volume, as incarnations only increase */
	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		tsys_maintain(&s[i]);
	}
	f = make_file(&s[0], "left", 4 * PAGES, 1);
	m = (struct maker){ &s[0], test_create(&s[0].v, &s[0].root, "d", S_IFDIR | 0700), 0 };
	CHECK(f.ino < m.dir.ino);
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	free_file(&s[0], "left");
	fill(&s[0], "filler", 2);
	CHECK_OK(sg_ilock(&s[1].v, &f));
	CHECK(sg_close_inode(&s[1].v, &f));
	CHECK_OK(pthread_create(&id, NULL, make_in, &m));
	while (!sg_is_locked(&s[1].v, SG_IOFF(&m.dir, lock)))
		sg_sleep_us(10);
	CHECK_OK(sg_lock_soon(&s[1].v, SG_IOFF(&m.dir, lock)));
	sg_iunlock(&s[1].v, &m.dir);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(m.err, -ENOSPC);
	/* the other system blocks only briefly: a retry succeeds */
	CHECK_OK(pthread_create(&id, NULL, make_in, &m));
	while (!sg_is_locked(&s[1].v, SG_IOFF(&m.dir, lock)))
		sg_sleep_us(10);
	sg_sleep_us(100000);
	sg_iunlock(&s[1].v, &f);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_OK(m.err);
	free_file(&s[0], "filler");
	for (i = 0; i < 2; i++)
		tsys_leave(&s[i]);
	test_clean(mem, SIZE);
}

/* --- a joiner --------------------------------------------------------------------------------- */

static void *join_second(void *joined)
{
	struct tsys s;

	tsys_join(&s, mem, SIZE, 2);
	tadvance(joined, 1);
	tsys_leave(&s);
	return NULL;
}

/*
 * The joiner waits for a lock whose holder waits for an epoch. The joiner acknowledges that epoch.
 */
static void who_joins_acknowledges(void)
{
	u64 joined = 0, beats;
	pthread_t joiner;
	struct tsys s;

	tsys_join(&s, mem, SIZE, 1);
	CHECK_OK(sg_lock(&s.v, SG_HOT(slot_lock)));
	CHECK_OK(pthread_create(&joiner, NULL, join_second, &joined));
	while (!(sg_load64((u64 *)(mem + SG_HOT(slot_lock.waiters))) & 2))
		sg_sleep_us(100);
	beats = heart(&s, 1);
	CHECK(sg_epoch_wait(&s.v, 20000));
	CHECK(heart(&s, 1) != beats);
	CHECK_EQ(sg_load64(&joined), 0);
	sg_unlock(&s.v, SG_HOT(slot_lock));
	CHECK_OK(pthread_join(joiner, NULL));
	CHECK_EQ(joined, 1);
	tsys_leave(&s);
	test_clean(mem, SIZE);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	two_epochs_of_all();
	around();
	not_the_dead();
	deferred_by_fenced();
	transactions_are_waited_for();
	alone();
	nothing_is_reused();
	who_joins_acknowledges();
	deferred_by_others();
	what_is_allocated();
	what_is_being_cut();
	deferred_by_dead();
	what_is_left();
	what_is_locked(false);
	what_is_locked(true);
	what_is_left_is_locked();
	leaver_sends_heartbeats();
	return test_done();
}
