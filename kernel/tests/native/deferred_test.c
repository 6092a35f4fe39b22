// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of deferred inodes for which the ledger has no room (deferred_inodes.c). With any number of
 * open files without links, names can be removed and files truncated. The periodic work for open
 * files takes a bounded time each second.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE		TEST_SMALL
#define LARGE		(128ULL << 20)
#define MANY		135000u	/* more than the capacity of the ledger */

static u8 *mem;
static u64 asked;	/* calls of in_use() */
static const u8 *closed;	/* which files are closed, by inode number; NULL: none */

static bool in_use(struct sg_vol *v, u64 ino, u32 generation)
{
	(void)v;
	(void)generation;
	asked++;
	return !closed || !closed[ino];
}

static unsigned int on_lists(struct sg_vol *v)
{
	unsigned int slot, i, n = 0;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		for (i = 0; i < v->sb.areas; i++) {
			struct sg_deferred_walk w = sg_deferred_walk(v, slot, i);

			while (sg_deferred_walk_next(v, &w))
				n++;
		}
	}
	return n;
}

static int unlink_by(struct tsys *s, const char *name)
{
	return sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1);
}

static struct sg_iref make(struct tsys *s, const char *name)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);

	f.generation = (u32)sg_iget(&s->v, &f, genflags);
	return f;
}

static bool gone(struct tsys *s, const struct sg_iref *ref)
{
	struct sg_attr a;
	int err = sg_getattr(&s->v, ref, &a);

	CHECK(!err || err == -ESTALE);
	return err;
}

static u64 used(struct tsys *s)
{
	return sg_used_inodes(&s->v);
}

static void leave(struct tsys *s)
{
	struct sg_statfs st;

	sg_settle(&s->v);
	CHECK_OK(sg_statfs(&s->v, &st));
	CHECK_EQ(st.used_inodes, 1);
	tsys_leave(s);
	test_clean(mem, SIZE);
}

/* --- more than the ledger has room for -------------------------------------------------------- */

static void more_than_the_ledger(void)
{
	struct sg_iref *t = calloc(MANY, sizeof(*t)), victim, cut;
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	u8 *is_closed = calloc(1, 2 * MANY);
	struct sg_statfs before, after;
	struct tvol vol;
	unsigned int i;

	CHECK(t && is_closed);
	tvol_make(&vol, LARGE);
	vol.v.in_use = in_use;
	closed = NULL;
	victim = test_create(&vol.v, &vol.root, "victim", S_IFREG | 0600);
	cut = test_create(&vol.v, &vol.root, "cut", S_IFREG | 0600);
	test_fill(&vol.v, &victim, 0, 100000);
	test_fill(&vol.v, &cut, 0, 100000);
	CHECK_OK(sg_statfs(&vol.v, &before));
	for (i = 0; i < MANY; i++)
		CHECK_OK(sg_tmpfile(&vol.v, &new, &t[i]));
	CHECK_OK(sg_resize(&vol.v, &cut, 5000, 1));
	CHECK_OK(sg_unlink(&vol.v, &vol.root, "victim", 6, 1));
	CHECK_OK(sg_evict(&vol.v, &victim));
	for (i = 0; i < 20; i++) {
		asked = 0;
		sg_settle(&vol.v);
		CHECK(asked < 10000);
	}
	CHECK_EQ(sg_used_inodes(&vol.v), before.used_inodes - 1 + MANY);
	/*
	 * a link ends the deferral of one file; all others are closed, most of them without
	 * sg_evict()
	 */
	CHECK_OK(sg_link(&vol.v, &t[MANY / 2], &vol.root, "named", 5, 2));
	for (i = 0; i < MANY; i++) {
		if (i == MANY / 2)
			continue;
		CHECK(t[i].ino < 2 * MANY);
		is_closed[t[i].ino] = 1;
		sg_ledger_let_go(&vol.v, &t[i]);
		if (i % 5 == 0) {
			CHECK(sg_close_inode(&vol.v, &t[i]));
			CHECK_OK(sg_evict(&vol.v, &t[i]));
		}
	}
	closed = is_closed;
	for (i = 0; i < 20 && on_lists(&vol.v); i++)
		sg_settle(&vol.v);
	CHECK_EQ(on_lists(&vol.v), 0);
	CHECK_EQ(sg_used_inodes(&vol.v), before.used_inodes);
	CHECK_EQ(test_lookup(&vol.v, &vol.root, "named").ino, t[MANY / 2].ino);
	CHECK_OK(sg_statfs(&vol.v, &after));
	CHECK(after.free_pages + 40 + MANY / SG_INODES_PER_PAGE + 20 > before.free_pages);
	vol.v.in_use = NULL;
	tvol_recheck(&vol);
	tvol_drop(&vol);
	closed = NULL;
	free(is_closed);
	free(t);
}

/* The system dies with many removed files open: the next mount frees them. */
static void many_left_by_the_dead(void)
{
	unsigned int n = (unsigned int)test_amount(5000, 20000, MANY), i;
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f;
	struct tvol vol;

	tvol_make(&vol, LARGE);
	for (i = 0; i < n; i++)
		CHECK_OK(sg_tmpfile(&vol.v, &new, &f));
	CHECK(on_lists(&vol.v) > n / 2);
	tvol_crash(&vol);
	test_clean(vol.mem, LARGE);
	tvol_join(&vol);
	for (i = 0; i < 20 && on_lists(&vol.v); i++)
		sg_settle(&vol.v);
	CHECK_EQ(sg_used_inodes(&vol.v), 1);
	tvol_drop(&vol);
}

/* --- a full volume ---------------------------------------------------------------------------- */

#define OPEN	3000u

static void full(void)
{
	struct sg_iref *t = calloc(OPEN, sizeof(*t)), big;
	struct tvol vol;
	char name[20];
	unsigned int i;
	u64 at = 0;

	CHECK(t);
	tvol_make(&vol, SIZE);
	vol.v.space_wait_ms = 1;
	big = test_create(&vol.v, &vol.root, "big", S_IFREG | 0600);
	for (i = 0; i < OPEN; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		t[i] = test_create(&vol.v, &vol.root, name, S_IFREG | 0600);
		CHECK_OK(sg_open_inode(&vol.v, &t[i], false));
	}
	while (sg_write(&vol.v, &big, at, "x", 1, 1) == 1)
		at += SG_PAGE;
	for (i = 0; i < OPEN; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_OK(sg_unlink(&vol.v, &vol.root, name, (u32)strlen(name), 1));
	}
	CHECK(on_lists(&vol.v));
	CHECK_OK(sg_resize(&vol.v, &big, at / 2, 1));
	CHECK_OK(sg_unlink(&vol.v, &vol.root, "big", 3, 1));
	CHECK_OK(sg_evict(&vol.v, &big));
	for (i = 0; i < OPEN; i++) {
		CHECK(sg_close_inode(&vol.v, &t[i]));
		CHECK_OK(sg_evict(&vol.v, &t[i]));
	}
	sg_settle(&vol.v);
	CHECK_EQ(on_lists(&vol.v), 0);
	CHECK_EQ(sg_used_inodes(&vol.v), 1);
	tvol_recheck(&vol);
	tvol_drop(&vol);
	free(t);
}

static bool stop_soon(struct sg_vol *v, u64 ino, u32 generation)
{
	(void)ino;
	(void)generation;
	if (++asked == 5)
		sg_settle_stop(v, true);
	return false;
}

/* A freeze waits until settling stops, which it does soon with any number of files to free. */
static void told_to_stop(void)
{
	const struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct tvol vol;
	struct sg_iref f;
	unsigned int i;

	tvol_make(&vol, SIZE);
	vol.v.deferred_on_lists = true;
	for (i = 0; i < OPEN; i++) {
		CHECK_OK(sg_tmpfile(&vol.v, &new, &f));
		CHECK(sg_close_inode(&vol.v, &f));
	}
	CHECK_EQ(on_lists(&vol.v), OPEN);
	asked = 0;
	vol.v.in_use = stop_soon;
	sg_settle(&vol.v);
	CHECK(on_lists(&vol.v) > OPEN - 10);
	sg_settle_stop(&vol.v, false);
	vol.v.in_use = NULL;
	sg_settle(&vol.v);
	CHECK_EQ(on_lists(&vol.v), 0);
	tvol_drop(&vol);
}

/* --- several systems -------------------------------------------------------------------------- */

/*
 * Files that a system has open remain, on any system's list. The last system that closes a file
 * frees it.
 */
static void open_elsewhere(void)
{
	struct tsys a, b;
	struct sg_iref f, g;
	u64 before;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	a.v.deferred_on_lists = b.v.deferred_on_lists = true;
	before = used(&a);
	f = make(&a, "f");
	g = make(&a, "g");
	CHECK_OK(sg_open_inode(&b.v, &f, false));
	CHECK_OK(sg_open_inode(&a.v, &g, false));
	CHECK_OK(unlink_by(&a, "f"));
	CHECK_OK(sg_evict(&a.v, &f));
	CHECK_OK(unlink_by(&b, "g"));
	CHECK_EQ(on_lists(&a.v), 2);
	sg_settle(&a.v);
	sg_settle(&b.v);
	CHECK(!gone(&a, &f) && !gone(&a, &g));
	/* a file that another system has removed cannot get a name again */
	CHECK_EQ(sg_link(&a.v, &g, &a.root, "again", 5, 2), -ENOENT);
	/* b frees the file, which is on a's list; a removes it from the list */
	CHECK(sg_close_inode(&b.v, &f));
	CHECK_OK(sg_evict(&b.v, &f));
	CHECK(gone(&a, &f));
	CHECK_EQ(on_lists(&a.v), 2);
	CHECK(sg_close_inode(&a.v, &g));
	CHECK_OK(sg_evict(&a.v, &g));
	sg_settle(&a.v);
	CHECK_EQ(on_lists(&a.v), 1);
	sg_settle(&b.v);
	CHECK_EQ(on_lists(&a.v), 0);
	CHECK_EQ(used(&a), before);
	tsys_leave(&b);
	leave(&a);
}

/* A system dies: a live system gets its lists, and keeps the files that it has open itself. */
static void taken_over(void)
{
	struct tsys a, b;
	struct sg_iref f[9];
	char name[2] = "a";
	unsigned int i;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	a.v.deferred_on_lists = b.v.deferred_on_lists = true;
	for (i = 0; i < 9; i++) {
		name[0] = (char)('a' + i);
		f[i] = make(&a, name);
		CHECK_OK(sg_open_inode(i % 3 ? &a.v : &b.v, &f[i], false));
		CHECK_OK(unlink_by(i % 2 ? &a : &b, name));
	}
	CHECK_EQ(on_lists(&b.v), 9);
	tsys_fence(&b, &a);
	tsys_die(&a);
	sg_maintain(&b.v);
	sg_settle(&b.v);
	for (i = 0; i < 9; i++)
		CHECK_EQ(gone(&b, &f[i]), i % 3 != 0);
	CHECK_EQ(on_lists(&b.v), 3);
	for (i = 0; i < 9; i += 3) {
		CHECK(sg_close_inode(&b.v, &f[i]));
		CHECK_OK(sg_evict(&b.v, &f[i]));
	}
	leave(&b);
}

/*
 * The dead system's ledger has too many inodes for the recoverer's ledger, so the recoverer puts
 * them on a list.
 */
static void ledger_to_list(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f, busy;
	struct tsys a, b;
	unsigned int i;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	b.v.deferred_on_lists = true;
	for (i = 0; i < 100; i++)
		CHECK_OK(sg_tmpfile(&a.v, &new, &f));
	busy = f;
	CHECK_EQ(on_lists(&b.v), 0);
	tsys_fence(&b, &a);
	tsys_die(&a);
	CHECK_OK(sg_ilock(&b.v, &busy));	/* locks the file, like another thread of b */
	sg_maintain(&b.v);
	sg_settle(&b.v);
	CHECK_EQ(used(&b), 2);
	sg_iunlock(&b.v, &busy);
	sg_settle(&b.v);
	CHECK_EQ(used(&b), 1);
	leave(&b);
}

/* A record on a list is freed and becomes another file. That file is deferred on the same list. */
static void used_again(void)
{
	struct tsys a, b;
	struct sg_iref f, g, h;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	a.v.deferred_on_lists = b.v.deferred_on_lists = true;
	f = make(&a, "f");
	CHECK_OK(sg_open_inode(&a.v, &f, false));
	CHECK_OK(unlink_by(&a, "f"));
	CHECK(sg_close_inode(&a.v, &f));
	CHECK_OK(sg_evict(&a.v, &f));
	CHECK_EQ(on_lists(&a.v), 1);
	do {	/* each processor has its own free records */
		g = make(&a, "g");
		if (g.ino != f.ino)
			CHECK_OK(sg_rename(&a.v, &a.root, "g", 1, &a.root, "other", 5, 0, NULL, 1));
	} while (g.ino != f.ino);
	CHECK_OK(sg_open_inode(&b.v, &g, false));
	CHECK_OK(unlink_by(&b, "g"));
	CHECK(sg_is_listed(&a.v, &g));
	sg_settle(&a.v);
	CHECK(!gone(&a, &g));
	tsys_fence(&a, &b);
	tsys_die(&b);
	sg_maintain(&a.v);
	sg_settle(&a.v);
	CHECK(gone(&a, &g));
	sg_settle(&a.v);
	CHECK_EQ(on_lists(&a.v), 0);
	if (!sg_lookup(&a.v, &a.root, "other", 5, &h, NULL)) {
		CHECK_OK(unlink_by(&a, "other"));
		CHECK_OK(sg_evict(&a.v, &h));
	}
	sg_settle(&a.v);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

/*
 * Tests that a new system in a slot does not count as an opener of the files that the slot's last
 * owner had open.
 */
static void withdrawn(void)
{
	struct tsys a, b;
	struct sg_iref f;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	a.v.deferred_on_lists = true;
	f = make(&a, "f");
	CHECK_OK(sg_open_inode(&b.v, &f, false));
	CHECK_OK(unlink_by(&a, "f"));
	CHECK_OK(sg_evict(&a.v, &f));
	tsys_fence(&a, &b);
	tsys_die(&b);
	sg_maintain(&a.v);
	tsys_join(&b, mem, SIZE, 2);	/* gets the same slot */
	CHECK_EQ(sg_get(&a.v, SG_IOFF(&f, openers)), 0);
	sg_settle(&a.v);
	CHECK(gone(&a, &f));
	tsys_leave(&b);
	leave(&a);
}

/* --- all systems at the same time ------------------------------------------------------------- */

#define THREADS	2	/* number of threads of each system */
#define LEFT_OPEN	200u	/* number of files that a thread leaves open */

struct worker {
	struct tsys *s;
	unsigned int nr;
	u64 turns;
};

/*
 * Makes files that are put on lists and removed from them, under names that the other system
 * removes as well. Files that remain open keep their space: together they must not fill the volume.
 */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_vol *v = &w->s->v;
	struct sg_iref f, t;
	char name[20], mine[2] = { (char)('a' + w->nr), 0 };
	u64 i;

	for (i = 0; i < w->turns; i++) {
		snprintf(name, sizeof(name), "%llu", (unsigned long long)(i % 5));
		CHECK_OK(sg_tmpfile(v, &new, &t));
		t.generation = (u32)sg_iget(v, &t, genflags);
		if (!sg_create(v, &w->s->root, name, (u32)strlen(name), &new, &f))
			sg_write(v, &f, 0, "x", 1, 1);
		if (!sg_lookup(v, &w->s->root, name, (u32)strlen(name), &f, NULL) &&
		    !sg_open_inode(v, &f, false)) {
			int err = sg_unlink(v, &w->s->root, name, (u32)strlen(name), 1);

			CHECK(!err || err == -ENOENT);
			if (i >= LEFT_OPEN) {
				sg_close_inode(v, &f);
				CHECK_OK(sg_evict(v, &f));
			}
		}
		if (i % 3 == 0)	/* gets a name, which is removed again */
			CHECK_OK(sg_link(v, &t, &w->s->root, mine, 1, 1) ?:
				 sg_unlink(v, &w->s->root, mine, 1, 1));
		sg_close_inode(v, &t);
		CHECK_OK(sg_evict(v, &t));
		if (i % 7 == 0)
			sg_settle(v);
	}
	return NULL;
}

/* Threads with the same file open share one bit. Files that threads leave are freed at the end. */
static void all_at_once(void)
{
	struct worker w[2 * THREADS];
	pthread_t thread[2 * THREADS];
	struct tsys s[2];
	unsigned int i;

	mem = tsys_volume(SIZE);
	for (i = 0; i < 2; i++) {
		tsys_join(&s[i], mem, SIZE, i + 1);
		s[i].v.deferred_on_lists = true;
		tsys_maintain(&s[i]);
	}
	for (i = 0; i < 2 * THREADS; i++) {
		w[i] = (struct worker){ &s[i % 2], i, test_amount(300, 3000, 30000) };
		CHECK_OK(pthread_create(&thread[i], NULL, work, &w[i]));
	}
	for (i = 0; i < 2 * THREADS; i++)
		CHECK_OK(pthread_join(thread[i], NULL));
	tsys_leave(&s[0]);
	tsys_leave(&s[1]);
	test_clean(mem, SIZE);
}

/* --- invalid lists ---------------------------------------------------------------------------- */

static u64 damages;

static void on_damage(struct sg_vol *v, u64 ino, u64 off)
{
	(void)v;
	(void)ino;
	(void)off;
	damages++;
}

/* Puts six files on one list of @s. Sets *first to the word that names the first file. */
static void six(struct tsys *s, struct sg_iref f[6], u64 **first)
{
	char name[2] = "a";
	unsigned int i;

	mem = tsys_volume(SIZE);
	tsys_join(s, mem, SIZE, 1);
	s->v.deferred_on_lists = true;
	s->v.on_damage = on_damage;
	for (i = 0; i < 6; i++) {
		name[0] = (char)('a' + i);
		f[i] = make(s, name);
		CHECK_OK(sg_open_inode(&s->v, &f[i], false));
	}
	do {
		struct sg_tx *tx = sg_tx_begin(&s->v);

		*first = (u64 *)(mem + tx->area + offsetof(struct sg_area, deferred_ino));
		for (i = 0; i < 6; i++) {
			CHECK_OK(sg_ilock(&s->v, &f[i]));
			sg_deferred_add(tx, &f[i]);
		}
		CHECK_OK(sg_tx_commit(tx));
		for (i = 0; i < 6; i++)
			sg_iunlock(&s->v, &f[i]);
	} while (!**first);
	for (i = 0; i < 6; i++) {
		name[0] = (char)('a' + i);
		CHECK_OK(unlink_by(s, name));
	}
	CHECK_EQ(on_lists(&s->v), 6);
}

enum nonsense { CIRCLE, CIRCLE_OF_ONE, FAR, NOT_LISTED, TO_ANOTHER, NONSENSE };

static void spoil(enum nonsense what, struct sg_iref f[6], u64 *first)
{
#define LINK(i)	(*(u64 *)(mem + SG_IOFF(&f[i], deferred_next)))
	switch (what) {
	case CIRCLE:		LINK(1) = SG_DEFERRED_LINK(f[4].ino); break;
	case CIRCLE_OF_ONE:	LINK(5) = SG_DEFERRED_LINK(f[5].ino); break;
	case FAR:		LINK(3) = SG_DEFERRED_LINK(1ULL << 35); break;
	case NOT_LISTED:	LINK(3) = 0; break;
	case TO_ANOTHER:	*first = SG_INO_ROOT; break;
	case NONSENSE:		break;
	}
#undef LINK
}

/*
 * Checks that all walks end, and that fsck repairs the list, and frees the inodes that it has lost.
 */
static void survives(enum nonsense what, bool dead)
{
	struct sg_check_result res;
	struct sg_check_opts opts = { .mode = SG_CHECK_PREEN, .id = &test_identity, .force = true,
				      .holding = test_end_lapses };
	struct sg_iref f[6];
	struct tsys s, b;
	unsigned int i;
	u64 *first;

	six(&s, f, &first);
	spoil(what, f, first);
	if (dead) {
		tsys_die(&s);
		CHECK_OK(sg_open(&b.v, mem, SIZE, false, NULL));
		b.v.on_damage = on_damage;
		struct sg_identity id = tsys_identity(1, 2);
		CHECK_OK(sg_join(&b.v, &id, 0, true));
		for (i = 0; i < 5; i++)
			sg_settle(&b.v);
		sg_abandon(&b.v);
	} else {
		for (i = 0; i < 5; i++) {
			sg_settle(&s.v);
			sg_ledger_settle_left(&s.v);
		}
		for (i = 0; i < 6; i++)
			CHECK(!gone(&s, &f[i]));
		tsys_die(&s);
	}
	CHECK_OK(sg_check(mem, SIZE, &opts, &res));
	test_clean(mem, SIZE);
	tsys_join(&s, mem, SIZE, 3);
	CHECK_EQ(used(&s), 1);
	leave(&s);
}

/* --- a number that is reused while settling is in progress ------------------------------------ */

static struct {
	struct sg_iref old, spare;
	unsigned int call;
} again;

/*
 * Acts as another thread: while settling checks the old file, frees that file, and makes the next
 * one.
 */
static bool used_meanwhile(struct sg_vol *v, u64 ino, u32 generation)
{
	const struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };

	if (ino != again.old.ino || generation != (u32)again.old.generation || --again.call)
		return false;
	CHECK_OK(sg_evict_try(v, &again.old));
	CHECK_OK(sg_tmpfile(v, &new, &again.spare));
	CHECK_EQ(again.spare.ino, ino);
	return false;
}

/* A later file with the same inode number remains deferred when the old file's deferral ends. */
static void kept_as_another(bool lists)
{
	struct sg_iref other;
	struct tsys s;

	mem = tsys_volume(SIZE);
	tsys_join(&s, mem, SIZE, 1);
	s.v.deferred_on_lists = lists;
	again.old = make(&s, "f");
	again.spare = (struct sg_iref){ 0 };
	CHECK_OK(unlink_by(&s, "f"));
	again.call = lists ? 2 : 1;
	s.v.in_use = used_meanwhile;
	CHECK_OK(sg_ledger_settle_inodes(&s.v));
	CHECK(again.spare.ino);
	CHECK(sg_ledger_keeps(&s.v, &again.spare));
	other = again.spare;
	other.generation--;
	CHECK(!sg_ledger_keeps(&s.v, &other));
	sg_settle(&s.v);
	CHECK(!gone(&s, &again.spare));
	/* only the file's maker ends its use, not a caller with a file handle */
	CHECK_OK(sg_evict(&s.v, &again.spare));
	CHECK_OK(sg_evict_try(&s.v, &again.spare));
	CHECK(!sg_close_inode(&s.v, &other));
	CHECK(sg_ledger_keeps(&s.v, &again.spare));
	CHECK(!gone(&s, &again.spare));
	CHECK(sg_close_inode(&s.v, &again.spare));
	CHECK(!sg_ledger_keeps(&s.v, &again.spare));
	CHECK_OK(sg_evict(&s.v, &again.spare));
	CHECK(gone(&s, &again.spare));
	s.v.in_use = NULL;
	leave(&s);
}

int main(void)
{
	kept_as_another(false);
	kept_as_another(true);
	unsigned int i;

	more_than_the_ledger();
	many_left_by_the_dead();
	full();
	told_to_stop();
	open_elsewhere();
	taken_over();
	ledger_to_list();
	used_again();
	withdrawn();
	all_at_once();
	for (i = 0; i < 2 * NONSENSE; i++)
		survives((enum nonsense)(i / 2), i % 2);
	return test_done();
}
