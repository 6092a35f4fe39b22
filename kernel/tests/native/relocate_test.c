// SPDX-License-Identifier: Apache-2.0
/*
 * Volumes that move to another base: every byte of every file stays, and only addresses change.
 * Cases are moves over overlapping ranges, after a crash, and of half-moved volumes. The test also
 * checks which systems may use a half-moved volume, and which may complete the move.
 * crash_relocate_test has crashes at each store.
 */
#include <signal.h>
#include <sys/mman.h>
#include "relocate_util.h"
#include "systems.h"

#define SIZE	(32 * MIB)

static struct tvol t;
static u8 *good;	/* a copy of the volume after populate() and a clean leave */
static u64 sum;

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

static void make_good(void)
{
	tvol_make(&t, SIZE);
	populate(&t, 1500);
	tvol_leave(&t);
	good = test_map(SIZE);
	sum = digest(t.mem, SIZE);
	memcpy(good, t.mem, SIZE);
}

static void again(void)
{
	memcpy(t.mem, good, SIZE);
}

static u64 base_now(void)
{
	struct sg_probe probe;

	CHECK_OK(sg_probe(t.mem, SIZE, &probe));
	CHECK(probe.valid);
	return probe.sb.phys;
}

static int refused(u64 phys, bool force, const char *why)
{
	const struct sg_relocate_opts opts = { .phys = phys, .id = &test_identity, .force = force };
	struct sg_relocate_result res;
	int err = sg_relocate(t.mem, SIZE, &opts, &res);

	if (!err || !strstr(res.why, why))
		test_fail(__FILE__, __LINE__, "the move was not refused with '%s' (%d, %s)", why,
			  err, res.why);
	return err;
}

/* --- changed words -------------------------------------------------------------------------- */

/* Returns whether a word may differ, because it is in a superblock, the hot page, or a slot. */
static bool is_of_the_move(const struct sg_super *sb, u64 off)
{
	return off < sb->journal_off || off >= sb->size - SG_PAGE;
}

/* Checks that all other changed words are addresses, which differ as much as the bases. */
static void only_addresses(u64 by, u64 entries)
{
	const u64 *was = (void *)good, *is = (void *)t.mem;
	const struct sg_super *sb = (void *)good;
	u64 i, n = 0;

	for (i = 0; i < SIZE / 8; i++) {
		if (was[i] == is[i] || is_of_the_move(sb, 8 * i))
			continue;
		n++;
		CHECK_EQ(is[i] - was[i], by);
	}
	/* the remaining words are root words of system inodes */
	CHECK(n <= entries && n + SG_SYS_COUNT >= entries);
}

static void case_there_and_back(void)
{
	static const u64 bases[] = {
		TEST_PHYS + 64 * GIB, TEST_PHYS + SG_CHUNK, TEST_PHYS - SG_CHUNK, 0,
		SIZE, SIZE - SG_CHUNK, 0xffffffe00000ULL, TEST_PHYS + 10 * MIB,
		(SG_PTE_ADDR - SIZE) & ~(SG_CHUNK - 1), TEST_PHYS + 30 * MIB,
	};
	struct sg_relocate_result r;
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(bases); i++) {
		test_note("base 0x%" PRIx64, bases[i]);
		again();
		r = moved_to(t.mem, SIZE, bases[i]);
		CHECK_EQ(r.from, TEST_PHYS);
		CHECK_EQ(r.to, bases[i]);
		CHECK(!r.resumed && r.tables > 10 && r.entries > 1500);
		only_addresses(bases[i] - TEST_PHYS, r.entries);
		CHECK_EQ(base_now(), bases[i]);
		CHECK_EQ(digest(t.mem, SIZE), sum);
		/* the volume can be used at the new base, and moved again */
		r = moved_to(t.mem, SIZE, bases[i] + SG_CHUNK <= SG_PTE_ADDR - SIZE ?
			     bases[i] + SG_CHUNK : bases[i] - SG_CHUNK);
		CHECK_EQ(digest(t.mem, SIZE), sum);
		r = moved_to(t.mem, SIZE, TEST_PHYS);
		only_addresses(0, 0 + SG_SYS_COUNT);
		CHECK_EQ(digest(t.mem, SIZE), sum);
	}
	/* the volume has this base already: nothing changes */
	r = moved_to(t.mem, SIZE, TEST_PHYS);
	CHECK(!r.tables && !r.entries && !r.resumed);
	memcpy(good, t.mem, SIZE);
	r = moved_to(t.mem, SIZE, SG_BASE_BEGUN);
	CHECK(!memcmp(good, t.mem, SIZE));
}

/* Allocates a large, unused range of the volume. */
static u64 take_giant(struct sg_vol *v)
{
	u64 at, i, used;

	for (at = GIB; at + GIB < v->size; at += GIB) {
		struct sg_chunk *c = sg_at(v, sg_chunk_off(v, at / SG_CHUNK));

		for (i = 0, used = 0; i < GIB / SG_CHUNK; i++)
			used |= c[i].map[0] | c[i].map[7];
		if (used)
			continue;
		for (i = 0; i < GIB / SG_CHUNK; i++)
			memset(c[i].map, 0xff, sizeof(c[i].map));
		*(u64 *)sg_at(v, v->sb.journal_off + offsetof(struct sg_area, free_pages)) -=
			GIB / SG_PAGE;
		return at;
	}
	test_fail(__FILE__, __LINE__, "no free GiB");
}

/* Leaves of 1 GiB, which no engine makes today, may move by multiples of 1 GiB only. */
static void case_giant_leaf(void)
{
	const struct sg_relocate_opts o = { .phys = TEST_PHYS + SG_CHUNK, .id = &test_identity };
	struct tvol g = { .mem = test_map(4 * GIB), .size = 4 * GIB };
	const struct sg_format_opts fmt = { .phys = TEST_PHYS };
	struct sg_relocate_result r;
	char text[20] = "";
	struct sg_iref f;
	u64 *level3, at;

	CHECK_OK(sg_format(g.mem, g.size, &fmt, r.why));
	tvol_join(&g);
	f = make_file(&g, "giant", 2 * GIB, 4096);
	CHECK_EQ(SG_ROOT_HEIGHT(sg_iget(&g.v, &f, table)), 3);
	level3 = sg_at(&g.v, (sg_iget(&g.v, &f, table) & SG_PTE_ADDR) - TEST_PHYS);
	CHECK(!level3[1]);
	at = take_giant(&g.v);
	level3[1] = (TEST_PHYS + at) | SG_PTE_LEAF_HUGE;
	*(u64 *)sg_at(&g.v, SG_IOFF(&f, blocks)) += GIB / SG_PAGE;
	strcpy((char *)g.mem + at + 77, "in the giant leaf");
	tvol_leave(&g);
	test_clean(g.mem, g.size);
	CHECK_EQ(sg_relocate(g.mem, g.size, &o, &r), -EINVAL);
	CHECK(strstr(r.why, "pages of 1024 MiB"));
	moved_to(g.mem, g.size, TEST_PHYS - GIB);
	tvol_join(&g);
	CHECK_EQ(sg_read(&g.v, &f, GIB + 77, text, 17), 17);
	CHECK(!strcmp(text, "in the giant leaf"));
	tvol_drop(&g);
}

/* --- after a crash -------------------------------------------------------------------------- */

/* Returns the next ledger word with a deferred table, of all ledgers. */
static u64 *next_deferred(unsigned int *at)
{
	struct sg_probe probe;

	CHECK_OK(sg_probe(t.mem, SIZE, &probe));
	for (; *at < SG_SLOTS * SG_LEDGER_WORDS; ++*at) {
		u64 *w = (u64 *)(t.mem + probe.sb.ledger_off) + *at;

		if (*at % SG_LEDGER_WORDS && *w && SG_LEDGER_KIND(*w) >= SG_LEDGER_TABLE &&
		    SG_LEDGER_KIND(*w) < SG_LEDGER_INODE) {
			++*at;
			return w;
		}
	}
	return NULL;
}

/*
 * One table has been partly reclaimed. The pages named before its first remaining entry have new
 * owners, and may have any content; here, one of them is a table in use.
 */
static void reclaim_in_part(u64 elsewhere)
{
	unsigned int at = 0;
	u64 *w, *table;

	while ((w = next_deferred(&at))) {
		table = (u64 *)(t.mem + (SG_LEDGER_VALUE(*w) << SG_PAGE_SHIFT));
		if (SG_LEDGER_KIND(*w) != 2 || table[0] || SG_LEDGER_COUNT(*w))
			continue;
		table[0] = elsewhere;
		*w = SG_LEDGER_ENTRY(2, SG_LEDGER_VALUE(*w), 1, SG_LEDGER_EPOCH(*w));
		return;
	}
	test_fail(__FILE__, __LINE__, "found no deferred table whose first entry is empty");
}

static u64 free_pages(u8 *mem)
{
	struct tvol g = { .mem = mem, .size = SIZE };
	u64 n;

	tvol_join(&g);
	n = sg_free_pages(&g.v);
	tvol_leave(&g);
	return n;
}

static void case_deferred(void)
{
	unsigned int at = 0, n = 0;
	struct sg_iref f;
	u64 table;

	again();
	tvol_join(&t);
	f = test_lookup(&t.v, &t.root, "table");
	table = sg_iget(&t.v, &f, table) & ~(7ULL << SG_ROOT_HEIGHT_SHIFT);
	defer_and_die(&t);
	reclaim_in_part(table);
	/* the result of a recovery without a move */
	memcpy(good, t.mem, SIZE);
	sum = digest(good, SIZE);
	moved_to(t.mem, SIZE, TEST_PHYS + 2 * SG_CHUNK);
	while (next_deferred(&at))
		n++;
	CHECK(n > 3);	/* the move adapts deferred tables, and does not reclaim them */
	test_clean(t.mem, SIZE);
	CHECK_EQ(digest(t.mem, SIZE), sum);
	at = 0;
	CHECK(!next_deferred(&at));
	CHECK_EQ(free_pages(t.mem), free_pages(good));
}

/* A record is committed, but none of its words is stored in place yet. */
static void case_journal(void)
{
	u8 *before = test_map(SIZE);
	struct sg_area *a = NULL;
	struct sg_iref f;
	unsigned int i, n = 0;
	u64 want;

	again();
	tvol_join(&t);
	f = test_lookup(&t.v, &t.root, "gigabytes");
	put_bytes(&t.v, &f, 2 * GIB, 5000);
	memcpy(before, t.mem, SIZE);
	put_bytes(&t.v, &f, GIB, 5000);	/* tables, and entries above them */
	for (i = 0; i < t.v.sb.areas; i++) {
		struct sg_area *b = (void *)(t.mem + sg_area_off(&t.v, (unsigned int)t.v.slot, i));

		if (memcmp(b->word, before + ((u8 *)b->word - t.mem), sizeof(b->word)))
			a = b;
	}
	want = tree_of(&t.v, 0);
	CHECK(a);
	/* the record's values equal the words in place */
	while (n < SG_AREA_WORDS && a->word[n].off && a->word[n].off < SIZE &&
	       *(u64 *)(t.mem + a->word[n].off) == a->word[n].val &&
	       a->word[n].off >= SG_PAGE)
		n++;
	CHECK(n > 3);
	for (i = 0; i < n; i++)
		memcpy(t.mem + a->word[i].off, before + a->word[i].off, 8);
	a->head = SG_AREA_HEAD((u64)t.v.incarnation, n);
	a->crc = sg_crc32c(sg_crc32c(~0u, &a->head, 8), a->word, n * sizeof(a->word[0]));
	tvol_crash(&t);
	moved_to(t.mem, SIZE, TEST_PHYS + 5 * SG_CHUNK);
	CHECK_EQ(digest(t.mem, SIZE), want);
	test_unmap(before, SIZE);
}

/* --- half moved ----------------------------------------------------------------------------- */

/* Only the moving tool can use the volume. The errors of other programs name the remedy. */
static void nobody_uses_it(u64 to)
{
	const struct sg_check_opts only = { .mode = SG_CHECK_ONLY };
	struct sg_check_result res;
	struct sg_probe probe;
	struct sg_vol v;
	char base[30];

	snprintf(base, sizeof(base), "base 0x%" PRIx64, to);
	CHECK_EQ(sg_open(&v, t.mem, SIZE, true, NULL), -EUCLEAN);
	CHECK(strstr(v.why, base) && strstr(v.why, "stargatectl relocate"));
	CHECK_EQ(sg_open(&v, t.mem, SIZE, false, NULL), -EUCLEAN);
	CHECK_EQ(sg_check(t.mem, SIZE, &only, &res), -EUCLEAN);
	CHECK(strstr(res.why, base));
	CHECK_OK(sg_probe(t.mem, SIZE, &probe));
	CHECK(probe.stargate && probe.valid);
}

static void case_half_moved(void)
{
	static const char *const phases[] = { "moving", "settling" };
	const u64 to = TEST_PHYS + SG_CHUNK;
	const struct sg_check_opts preen = { .mode = SG_CHECK_PREEN, .force = true };
	struct sg_check_result res;
	struct sg_relocate_result r;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		again();
		half_move(t.mem, SIZE, to, phases[i / 2], i % 2);
		nobody_uses_it(to);
		r = moved_to(t.mem, SIZE, SG_BASE_BEGUN);
		CHECK(r.resumed && r.to == to);
		CHECK_EQ(digest(t.mem, SIZE), sum);
		/* a move to a third base first completes the old move */
		again();
		half_move(t.mem, SIZE, to, phases[i / 2], i % 2);
		r = moved_to(t.mem, SIZE, TEST_PHYS - 3 * SG_CHUNK);
		CHECK(r.resumed);
		CHECK_EQ(base_now(), TEST_PHYS - 3 * SG_CHUNK);
		CHECK_EQ(digest(t.mem, SIZE), sum);
		/* returns to the old base */
		again();
		half_move(t.mem, SIZE, to, phases[i / 2], i % 2);
		moved_to(t.mem, SIZE, TEST_PHYS);
		only_addresses(0, SG_SYS_COUNT);
		CHECK_EQ(digest(t.mem, SIZE), sum);
		/* fsck completes the move as well */
		again();
		half_move(t.mem, SIZE, to, phases[i / 2], i % 2);
		CHECK_OK(sg_check(t.mem, SIZE, &preen, &res));
		CHECK_EQ(res.found, 1);
		CHECK_EQ(res.fixed, 1);
		CHECK_EQ(base_now(), to);
		CHECK_EQ(digest(t.mem, SIZE), sum);
	}
}

static void pause_there(void *ctx, const char *phase, u64 done, u64 total)
{
	struct stop *s = ctx;

	(void)done;
	(void)total;
	if (!strcmp(phase, s->phase) && !s->after--)
		raise(SIGSTOP);
}

/*
 * A tool that was paused during the move is fenced, and another tool completes the move. The paused
 * tool then changes nothing.
 */
static void case_stopped(void)
{
	static const char *const phases[] = { "looking", "moving", "settling" };
	unsigned int i;
	u8 *done = test_map(SIZE);

	for (i = 0; i < 6; i++) {
		struct stop stop = { phases[i / 2], i % 2 };
		const struct sg_relocate_opts opts = { .phys = TEST_PHYS + SG_CHUNK, .force = true,
						       .id = &test_identity, .progress = pause_there,
						       .ctx = &stop };
		struct sg_relocate_result res;
		int status;
		pid_t pid;

		again();
		pid = test_fork();
		if (!pid) {
			sg_log_hook = quiet;
			_exit(sg_relocate(t.mem, SIZE, &opts, &res) == -EIO ? 0 : 1);
		}
		CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status));
		moved_to(t.mem, SIZE, TEST_PHYS + SG_CHUNK);
		moved_to(t.mem, SIZE, TEST_PHYS - SG_CHUNK);
		memcpy(done, t.mem, SIZE);
		kill(pid, SIGCONT);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		CHECK(!memcmp(done, t.mem, SIZE));
		CHECK_EQ(digest(t.mem, SIZE), sum);
	}
	test_unmap(done, SIZE);
}

/* --- through a page cache -------------------------------------------------------------------- */

/*
 * struct cache - a device behind a page cache. @durable has the flushed contents. Each other sector
 * may or may not have been written.
 */
struct cache {
	u8 *durable, *image;
	u64 from, to, images;
	struct rng rng;
};

static void power_cut(struct cache *c, unsigned int percent)
{
	const struct sg_check_opts preen = { .mode = SG_CHECK_PREEN, .force = true };
	struct sg_check_result res;
	struct sg_probe probe;
	u64 off;

	memcpy(c->image, c->durable, SIZE);
	for (off = 0; off < SIZE; off += 512)
		if (memcmp(c->durable + off, t.mem + off, 512) && rng_chance(&c->rng, percent))
			memcpy(c->image + off, t.mem + off, 512);
	moved_to(c->image, SIZE, SG_BASE_BEGUN);
	CHECK_OK(sg_check(c->image, SIZE, &preen, &res));	/* the superblocks may differ */
	CHECK(res.found <= 1 && res.fixed == res.found);
	CHECK_OK(sg_probe(c->image, SIZE, &probe));
	CHECK(probe.sb.phys == c->from || probe.sb.phys == c->to);
	CHECK_EQ(digest(c->image, SIZE), sum);
	c->images++;
}

static int flushed(void *ctx)
{
	static const unsigned int percent[] = { 5, 50, 95 };
	struct cache *c = ctx;
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(percent); i++)
		power_cut(c, percent[i]);
	memcpy(c->durable, t.mem, SIZE);
	return 0;
}

/* A block device writes stores back in any order, except stores that were flushed before. */
static void case_page_cache(void)
{
	struct cache c = { test_map(SIZE), test_map(SIZE), TEST_PHYS, TEST_PHYS + SG_CHUNK, 0,
			   { test_seed() } };
	const struct sg_relocate_opts opts = { .phys = c.to, .id = &test_identity, .force = true,
					       .flush = flushed, .ctx = &c };
	struct sg_relocate_result res;

	again();
	memcpy(c.durable, t.mem, SIZE);
	CHECK_OK(sg_relocate(t.mem, SIZE, &opts, &res));
	CHECK(c.images >= 15);
	CHECK_EQ(digest(t.mem, SIZE), sum);
	test_unmap(c.durable, SIZE);
	test_unmap(c.image, SIZE);
}

/*
 * struct told - the bytes changed since the last call of relieve(), which reports each changed
 * page.
 */
struct told {
	u64 calls, bytes, most;
	u8 *was;
};

static u64 pages_changed(const struct told *told)
{
	u64 off, n = 0;

	for (off = 0; off < SIZE; off += SG_PAGE)
		n += memcmp(told->was + off, t.mem + off, SG_PAGE) != 0;
	return n;
}

static int relieved(void *ctx, u64 bytes)
{
	struct told *told = ctx;

	told->calls++;
	told->bytes += bytes;
	if (told->bytes < 64 * SG_PAGE)
		return 0;
	told->most = SG_MAX(told->most, pages_changed(told));
	/* the caller has stored all changes, and released their memory */
	memcpy(told->was, t.mem, SIZE);
	told->bytes = 0;
	return 0;
}

static int stopped(void *ctx, u64 bytes)
{
	(void)bytes;
	return ++*(u64 *)ctx == 10 ? -EIO : 0;
}

/*
 * The move calls relieve() of a caller with private memory early enough. The caller may end the
 * move.
 */
static void case_relieved(void)
{
	struct told told = { .was = test_map(SIZE) };
	struct sg_relocate_opts opts = { .phys = TEST_PHYS + SG_CHUNK, .id = &test_identity,
					 .force = true, .relieve = relieved, .ctx = &told };
	struct sg_relocate_result res;
	u64 calls = 0;

	again();
	memcpy(told.was, t.mem, SIZE);
	CHECK_OK(sg_relocate(t.mem, SIZE, &opts, &res));
	CHECK(told.calls >= 2 * res.tables);	/* once for the move, once for settling */
	CHECK(told.calls >= 4 * 64);		/* otherwise the test proves nothing */
	CHECK(told.most > 16 && told.most <= 64 + 16);	/* 16 for pages that change at each step */
	CHECK_EQ(digest(t.mem, SIZE), sum);

	again();
	opts.relieve = stopped;
	opts.ctx = &calls;
	CHECK_EQ(sg_relocate(t.mem, SIZE, &opts, &res), -EIO);
	CHECK_EQ(calls, 10);
	moved_to(t.mem, SIZE, SG_BASE_BEGUN);
	CHECK_EQ(digest(t.mem, SIZE), sum);
	test_unmap(told.was, SIZE);
}

/* --- refusals ------------------------------------------------------------------------------- */

static void case_in_use(void)
{
	again();
	tvol_join(&t);
	CHECK_EQ(refused(TEST_PHYS + SG_CHUNK + 1, true, "invalid base"), -EINVAL);
	CHECK_EQ(refused(SG_PTE_ADDR & ~(SG_CHUNK - 1), true, "invalid base"), -EINVAL);
	{
		/* the moving tool's own thread sends heartbeats */
		pid_t pid = test_fork();
		const struct sg_relocate_opts opts = { .phys = SIZE, .id = &test_identity,
						       .wait_ms = 500 };
		struct sg_relocate_result res;
		int status;

		if (!pid) {
			for (;;) {
				sg_beat(&t.v);
				usleep(5000);
			}
		}
		CHECK_EQ(sg_relocate(t.mem, SIZE, &opts, &res), -EBUSY);
		CHECK(strstr(res.why, "in use by process"));
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
	}
	/* the child process sent heartbeats in this slot */
	t.v.beats = sg_get(&t.v, sg_slot_off(&t.v, (unsigned int)t.v.slot) +
			   offsetof(struct sg_slot, heartbeat));
	CHECK_EQ(base_now(), TEST_PHYS);
	tvol_leave(&t);
	CHECK_EQ(digest(t.mem, SIZE), sum);
}

/* A system that opened the volume before the move has outdated addresses. */
static void case_late_joiner(void)
{
	struct sg_vol v, w;

	again();
	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_open(&w, t.mem, SIZE, false, NULL));
	moved_to(t.mem, SIZE, TEST_PHYS + SG_CHUNK);
	CHECK_EQ(sg_join(&v, &test_identity, 0, false), -EAGAIN);
	CHECK_EQ(sg_join_alone(&w, &test_identity, 0, false), -EAGAIN);
	CHECK(!sg_needs_recovery(&v));
	CHECK_EQ(digest(t.mem, SIZE), sum);
}

/* A move of a damaged volume is refused, and changes no word. */
static void case_damaged(void)
{
	u64 i, at[4], n = 0;
	struct sg_iref f;

	again();
	tvol_join(&t);
	f = test_lookup(&t.v, &t.root, "table");
	at[n++] = f.off + offsetof(struct sg_inode, table);
	at[n++] = f.off + offsetof(struct sg_inode, mode);
	at[n++] = (sg_iget(&t.v, &f, table) & SG_PTE_ADDR) - TEST_PHYS + 3 * 8;
	at[n++] = SG_HOT(sys[SG_SYS_INODES].table);
	tvol_leave(&t);
	memcpy(good, t.mem, SIZE);
	for (i = 0; i < n; i++) {
		const struct sg_check_opts repair = { .mode = SG_CHECK_REPAIR, .force = true };
		struct sg_check_result res;
		u64 *w = (u64 *)(t.mem + at[i]);

		again();
		*w ^= i == 1 ? 0170000 : 1ULL << 40;
		test_note("damage %" PRIu64, i);
		CHECK_EQ(refused(TEST_PHYS + SG_CHUNK, true, "fsck.stargatefs"), -EUCLEAN);
		CHECK_EQ(base_now(), TEST_PHYS);
		*w ^= i == 1 ? 0170000 : 1ULL << 40;
		only_addresses(0, SG_SYS_COUNT);
		*w ^= i == 1 ? 0170000 : 1ULL << 40;
		CHECK_OK(sg_check(t.mem, SIZE, &repair, &res));
		CHECK_EQ(res.found, res.fixed);
		moved_to(t.mem, SIZE, TEST_PHYS + SG_CHUNK);
		test_clean(t.mem, SIZE);
	}
	again();
}

/*
 * --- killed repeatedly --------------------------------------------------------------------------
 */

static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid;
}

/*
 * Kills at any time, or only during the move: on a busy machine, a random time seldom hits the
 * move.
 */
static void strike(pid_t pid, struct rng *rng, u64 i)
{
	const u64 *incompat = &((const struct sg_super *)t.mem)->incompat;

	if (i % 2) {
		usleep((unsigned int)rng_size(rng, 8000 + 100 * i));
	} else {
		while (!(sg_load64(incompat) & SG_INCOMPAT_MOVING) && !has_ended(pid))
			sched_yield();
		usleep((unsigned int)rng_size(rng, 1000));
	}
	kill(pid, SIGKILL);
}

static void case_killed(void)
{
	u64 want = test_amount(15, 150, 3000), most = 40 * want, i, halves = 0, goal = SG_BASE_BEGUN;
	struct rng rng = { test_seed() };
	struct sg_probe probe;
	int status;

	again();
	sum = digest(t.mem, SIZE);
	for (i = 0; i < most && halves < want; i++) {
		pid_t pid;

		if (rng_chance(&rng, 40))
			goal = TEST_PHYS + rng_below(&rng, 40) * SG_CHUNK;
		pid = test_fork();
		if (!pid) {
			moved_to(t.mem, SIZE, goal);
			_exit(0);
		}
		strike(pid, &rng, i);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) || !WEXITSTATUS(status));
		CHECK_OK(sg_probe(t.mem, SIZE, &probe));
		CHECK(probe.valid);
		halves += !!(probe.sb.incompat & SG_INCOMPAT_MOVING);
		if (i % 10)
			continue;
		moved_to(t.mem, SIZE, SG_BASE_BEGUN);
		CHECK_EQ(digest(t.mem, SIZE), sum);
	}
	printf("%" PRIu64 " moves begun, %" PRIu64 " of them interrupted halfway\n", i, halves);
	CHECK_EQ(halves, want);
}

/* --- a volume that was growing -------------------------------------------------------------- */

#define SMALL	(16 * MIB)
#define LARGE	(64 * MIB)

/* Makes two slots of dead systems. A tool with exclusive access recovers one after the other. */
static void two_died(struct sg_vol *v)
{
	sg_store64(sg_state_word(v, 5), SG_SLOT_WORD(SG_SLOT_DEAD, 1));
	sg_store64(sg_state_word(v, 7), SG_SLOT_WORD(SG_SLOT_DEAD, 1));
}

/*
 * A grower has committed its record, and stored nothing in place. At the open, the volume has the
 * old size; after replay, it has the new one. The superblock at the new end has the old base, and
 * is valid from then on.
 */
static void case_dead_grower(void)
{
	struct tvol g;
	struct sg_probe probe;
	u8 first[SG_PAGE];
	struct sg_hot *hot;
	char why[200];
	u64 whole;

	tvol_make_in(&g, SMALL, LARGE);
	populate(&g, 20);
	memcpy(first, g.mem, sizeof(first));
	CHECK_OK(sg_grow(&g.v, LARGE, 0, why));
	tvol_leave(&g);
	whole = digest(g.mem, LARGE);
	memcpy(g.mem, first, sizeof(first));
	hot = (void *)(g.mem + SG_HOT_OFF);
	hot->size = 0;
	hot->grow = SG_SIZE_WORD(LARGE, 5);
	CHECK_OK(sg_open(&g.v, g.mem, LARGE, false, NULL));
	CHECK_EQ(g.v.sb.size, SMALL);
	tsys_record(&g.v, 7, 0, SG_HOT(size), LARGE);
	two_died(&g.v);
	moved_to(g.mem, LARGE, TEST_PHYS + 4 * GIB);
	CHECK_OK(sg_probe(g.mem, LARGE, &probe));
	CHECK_EQ(probe.sb.phys, TEST_PHYS + 4 * GIB);
	CHECK_EQ(probe.sb.size, LARGE);
	CHECK_EQ(digest(g.mem, LARGE), whole);
	test_clean(g.mem, LARGE);
	test_unmap(g.mem, LARGE);
}

/*
 * Two forged words of the hot page set the size. The tool detects that at the recovery of the
 * second dead system. Its notes on pages have room for the largest size that may result.
 */
static void case_said_to_grow(void)
{
	const struct sg_relocate_opts opts = { .phys = 0, .id = &test_identity, .force = true };
	struct sg_relocate_result res;
	struct sg_hot *hot;
	struct tvol g;

	tvol_make_in(&g, SMALL, LARGE);
	populate(&g, 20);
	tvol_leave(&g);
	two_died(&g.v);
	hot = (void *)(g.mem + SG_HOT_OFF);
	hot->grow = SG_SIZE_WORD(LARGE, 5);
	hot->size = LARGE;
	sg_log_hook = quiet;
	sg_relocate(g.mem, LARGE, &opts, &res);
	sg_log_hook = NULL;
	test_unmap(g.mem, LARGE);
	test_counted();
}

/* --- a thread that is killed ---------------------------------------------------------------- */

extern bool (*sg_interrupt_hook)(void);

static u64 looks;

static bool killed_soon(void)
{
	return ++looks > 3;
}

/* A move in a thread with a fatal signal ends soon, and the next tool completes the move. */
static void case_to_die(void)
{
	const struct sg_relocate_opts opts = { .phys = 0, .id = &test_identity, .force = true };
	struct sg_relocate_result res;

	again();
	looks = 0;
	sg_interrupt_hook = killed_soon;
	CHECK_EQ(sg_relocate(t.mem, SIZE, &opts, &res), -EINTR);
	sg_interrupt_hook = NULL;
	moved_to(t.mem, SIZE, TEST_PHYS + 4 * GIB);
	CHECK_EQ(digest(t.mem, SIZE), sum);
}

/* --- bad pages ------------------------------------------------------------------------------ */

/* The move does not read an unreadable page of records, and adapts all other pages. */
static void case_bad_records(void)
{
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_iref ref;
	struct sg_run run;
	struct tvol g;

	tvol_make(&g, SMALL);
	populate(&g, 100);
	CHECK_OK(sg_walk(&g.v, &sys, 3, 1, &run));
	tvol_leave(&g);
	tvol_join(&g);
	CHECK_OK(mprotect(g.mem + run.off, SG_PAGE, PROT_NONE));
	CHECK_EQ(sg_bad_add(&g.v, run.off, SG_PAGE), 1);
	tvol_leave(&g);
	moved_to(g.mem, SMALL, TEST_PHYS + 4 * GIB);
	tvol_join(&g);
	CHECK_EQ(sg_iref(&g.v, 3 * SG_INODES_PER_PAGE, &ref), -EIO);
	tvol_crash(&g);
	test_unmap(g.mem, SMALL);
}

/* --- hostile bytes -------------------------------------------------------------------------- */

/* Random changes on a half-moved volume: the move ends, and fsck makes the volume valid. */
static void case_hostile(void)
{
	u64 rounds = test_amount(20, 200, 5000), i, k;
	const struct sg_check_opts repair = { .mode = SG_CHECK_REPAIR, .force = true };
	struct rng rng = { test_seed() };
	u8 *stopped = test_map(SIZE);

	sg_log_hook = quiet;
	for (i = 0; i < rounds; i++) {
		struct sg_check_result res;
		int err;

		if (i % 10 == 0) {
			again();
			half_move(t.mem, SIZE, TEST_PHYS + rng_below(&rng, 20) * SG_CHUNK + SG_CHUNK,
			     i % 20 ? "moving" : "settling", (unsigned int)rng_below(&rng, 2));
			memcpy(stopped, t.mem, SIZE);
		}
		memcpy(t.mem, stopped, SIZE);
		for (k = rng_range(&rng, 1, 40); k; k--) {
			u64 *w = (u64 *)(t.mem + SG_PAGE + rng_below(&rng, (SIZE - 2 * SG_PAGE) / 8) * 8);
			const struct sg_super *sb = (void *)t.mem;

			switch (rng_below(&rng, 4)) {
			case 0:
				*w = rng_next(&rng);
				break;
			case 1:
				*w ^= SG_PTE_MOVED;
				break;
			case 2:
				*w = (sb->phys + rng_below(&rng, SIZE / SG_PAGE) * SG_PAGE) | SG_PTE_TABLE |
				     (rng_next(&rng) & SG_PTE_MOVED);
				break;
			case 3:
				w = (u64 *)(t.mem + sb->data_off + rng_below(&rng, 200000) * 8);
				*w = (sb->move_to + rng_below(&rng, SIZE / SG_CHUNK) * SG_CHUNK) |
				     SG_PTE_LEAF_HUGE | (rng_next(&rng) & SG_PTE_MOVED);
				break;
			}
		}
		test_note("hostile round %" PRIu64, i);
		err = sg_check(t.mem, SIZE, &repair, &res);
		CHECK(!err);
		CHECK(res.found == res.fixed || res.beyond || res.no_space);
		if (res.found == res.fixed)
			test_clean(t.mem, SIZE);
	}
	test_unmap(stopped, SIZE);
	sg_log_hook = NULL;
}

int main(void)
{
	make_good();
	case_there_and_back();
	again();
	case_giant_leaf();
	case_half_moved();
	case_stopped();
	case_page_cache();
	case_relieved();
	case_in_use();
	case_late_joiner();
	case_journal();
	case_dead_grower();
	case_said_to_grow();
	case_bad_records();
	case_to_die();
	case_hostile();
	case_killed();
	sg_log_hook = quiet;
	case_damaged();
	sg_log_hook = NULL;
	case_deferred();
	test_unmap(good, SIZE);
	test_unmap(t.mem, SIZE);
	return test_done();
}
