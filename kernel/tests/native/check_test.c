// SPDX-License-Identifier: Apache-2.0
/*
 * The checker: the test damages each structure of a volume, one at a time. The checker must find
 * each damage without a store, and then repair it. The repaired volume is clean, and has lost no
 * more than necessary.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check_damage.h"

/* --- checking and repairing ---------------------------------------------------------------- */

static bool verbose;

static void report(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	(void)ctx;
	if (verbose)
		fprintf(stderr, "    %s (inode %" PRIu64 ", 0x%" PRIx64 ")%s\n", what, ino, off,
			fixed ? " fixed" : "");
}

static struct sg_check_result check(enum sg_check_mode mode)
{
	struct sg_check_opts opts = { .mode = mode, .id = &test_identity, .force = true,
				      .report = report, .holding = test_end_lapses };
	struct sg_check_result res;
	int err = sg_check(t.mem, SIZE, &opts, &res);

	if (err)
		test_fail(__FILE__, __LINE__, "sg_check: %d, %s", err, res.why);
	return res;
}

/* Makes each store end the program with a signal, or allows stores again. */
static void frozen(bool on)
{
	CHECK_OK(mprotect(t.mem, SIZE, on ? PROT_READ : PROT_READ | PROT_WRITE));
}

static bool count_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	(void)ino;
	(void)type;
	(void)cookie;
	CHECK(len > 1 && name[0] == '#');
	++*(unsigned int *)ctx;
	return true;
}

static unsigned int in_lost_found(struct sg_vol *v)
{
	unsigned int n = 0, type;
	struct sg_iref root, dir;
	u64 cookie = 0;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	if (sg_lookup(v, &root, "lost+found", 10, &dir, &type))
		return 0;
	while (cookie != INT64_MAX)
		CHECK_OK(sg_readdir(v, &dir, &cookie, count_name, &n));
	return n;
}

/* Undamaged files are unchanged, and the volume can be used. */
static void survivors(const struct damage *d)
{
	struct sg_iref ref, root;
	struct sg_vol v;
	u64 free;

	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	check_intact(&v, d);
	if (in_lost_found(&v) < d->saved)
		test_fail(__FILE__, __LINE__, "only %u saved", in_lost_found(&v));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	free = sg_free_pages(&v);
	ref = test_create(&v, &root, "new", S_IFREG | 0644);
	CHECK_EQ(sg_write(&v, &ref, 0, good, 100 * SG_PAGE, 9), 100 * SG_PAGE);
	CHECK_OK(sg_unlink(&v, &root, "new", 3, 9));
	CHECK_OK(sg_evict(&v, &ref));
	CHECK(sg_reclaim(&v, ~0u) == 0);
	CHECK(sg_free_pages(&v) + 16 >= free);
	sg_leave(&v);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
}

static void restore(const struct damage *d)
{
	memcpy(t.mem, good, SIZE);
	if (d)
		d->make();
}

/* Counts inodes that existed before and are missing now. */
static u64 missing(void)
{
	struct sg_attr attr;
	struct sg_iref ref;
	struct sg_vol v;
	unsigned int i;
	u64 n = 0;

	CHECK_OK(sg_open(&v, t.mem, SIZE, true, NULL));
	for (i = 0; i < nknown; i++)
		n += sg_iref(&v, known[i].ino, &ref) || sg_getattr(&v, &ref, &attr) ||
		     attr.btime != 7;
	return n;
}

static void test_damage(const struct damage *d)
{
	struct sg_check_result res;

	restore(d);
	frozen(true);
	res = check(SG_CHECK_ONLY);
	CHECK(res.found > 0);
	CHECK_EQ(res.fixed, 0);
	frozen(false);
	res = check(SG_CHECK_REPAIR);
	CHECK(res.found > 0);
	CHECK_EQ(res.fixed, res.found);
	CHECK_EQ(res.lost, d->make == lost_unlinked ? 0 : missing());
	CHECK(res.lost_files + res.lost_dirs <= res.lost);
	frozen(true);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
	CHECK_EQ(check(SG_CHECK_REPAIR).found, 0);
	frozen(false);
	survivors(d);
}

/* Preening repairs safe findings, and does not change the others. */
static void test_preen(const struct damage *d)
{
	struct sg_check_result res;

	restore(d);
	res = check(SG_CHECK_PREEN);
	CHECK(res.found > 0);
	CHECK_EQ(res.fixed == res.found, d->safe);
	res = check(SG_CHECK_ONLY);
	CHECK_EQ(res.found == 0, d->safe);
	if (d->safe)
		survivors(d);
}

/* Returns whether a list of free records leads to @ino. */
static bool is_listed(u64 ino)
{
	unsigned int slot, i;
	struct sg_iref ref;
	u64 at, steps;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < look.sb.areas; i++)
			for (at = *AREA(slot, i, free_ino), steps = 0; at; steps++) {
				if (at == ino)
					return true;
				if (steps > *HOT(inodes) || sg_iref(&look, at, &ref) ||
				    *word(ref.off + offsetof(struct sg_inode, mode)))
					/* a broken link: the list ends here for any reader */
					break;
				at = *word(ref.off + offsetof(struct sg_inode, next_free));
			}
	return false;
}

/*
 * A file's record is cleared, its name remains, and @d is damaged as well. Preening keeps the name,
 * which still leads to the record. If the record were on a free list, the old name would lead to
 * the next new file.
 */
static void test_preen_named(const struct damage *d)
{
	u64 ino = number("deep/a/file");
	struct sg_check_result res;
	struct sg_iref root, ref;
	struct sg_vol v;
	unsigned int i;
	char name[32];

	restore(d);
	memset(word(record("deep/a/file")), 0, SG_INODE_SIZE);
	res = check(SG_CHECK_PREEN);
	CHECK(res.found > res.fixed);
	if (is_listed(ino))
		test_fail(__FILE__, __LINE__, "inode %" PRIu64 " is named, and listed as free", ino);
	if (d)
		return;
	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	for (i = 0; i < 2 * SG_INODES_PER_PAGE; i++) {
		snprintf(name, sizeof(name), "secret-%u", i);
		ref = test_create(&v, &root, name, S_IFREG | 0600);
		CHECK(ref.ino != ino);
	}
	sg_leave(&v);
	res = check(SG_CHECK_REPAIR);
	CHECK_EQ(res.fixed, res.found);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
}

/* A later repair may find names that preening did not count, so the inode keeps its link count. */
static void test_preen_links(void)
{
	struct sg_check_result res;
	u64 *mode;

	restore(NULL);
	{
		WIDE_NAME;
		struct sg_iref ref;

		CHECK_OK(sg_iref(&look, SG_REF_INO(dirent_of(b, i)->ref), &ref));
		mode = word(ref.off + offsetof(struct sg_inode, mode));
	}
	name_twice();
	CHECK_EQ(sg_nlink(*mode), 1);
	*mode += 1ULL << 32;
	res = check(SG_CHECK_PREEN);
	CHECK(res.found > res.fixed);
	CHECK_EQ(sg_nlink(*mode), 2);
	res = check(SG_CHECK_REPAIR);
	CHECK_EQ(res.fixed, res.found);
	CHECK_EQ(sg_nlink(*mode), 1);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
}

/* --- repairs that are interrupted ---------------------------------------------------------- */

static void test_interrupted(const struct damage *d, struct rng *rng)
{
	unsigned int turn;
	int status;

	restore(d);
	for (turn = 0; turn < 3; turn++) {
		pid_t pid = test_fork();

		if (!pid) {
			check(SG_CHECK_REPAIR);
			_exit(0);
		}
		usleep((useconds_t)rng_below(rng, 6000));
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) || !WEXITSTATUS(status));
	}
	check(SG_CHECK_REPAIR);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
	survivors(&(struct damage){ d->name, d->make, d->safe, d->lost, 0 });
}

/* --- damage of any kind -------------------------------------------------------------------- */

static u64 some_place(struct rng *rng)
{
	struct sg_iref ref;

	switch (rng_below(rng, 4)) {
	case 0:		/* hot page, slots, journal, ledgers */
		return SG_PAGE + rng_below(rng, look.sb.hint_off - SG_PAGE);
	case 1:		/* an inode */
		CHECK_OK(sg_iref(&look, known[rng_below(rng, nknown)].ino, &ref));
		return ref.off + rng_below(rng, SG_INODE_SIZE);
	case 2:		/* a bucket */
		return (u64)((u8 *)bucket_of(rng_chance(rng, 50) ? "deep" : NULL) - t.mem) +
		       rng_below(rng, SG_PAGE);
	}
	return rng_below(rng, SIZE);
}

static u64 some_value(struct rng *rng, u64 old)
{
	switch (rng_below(rng, 5)) {
	case 0:
		return old ^ 1ULL << rng_below(rng, 64);
	case 1:
		return old + rng_range(rng, 0, 16) - 8;
	case 2:
		return *word(some_place(rng) & ~7ULL);	/* a valid word from another place */
	case 3:
		return 0;
	}
	return rng_next(rng);
}

/*
 * Tests that the checker survives any damage. It ends without a crash, and reports "clean" only for
 * a clean volume.
 */
static void test_random(struct rng *rng)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &test_identity, .force = true,
				      .report = report };
	unsigned int n = 1 + (unsigned int)rng_size(rng, 40);
	struct sg_check_result res;
	u64 off[41], val[41];
	unsigned int i;

	restore(NULL);
	for (i = 0; i < n; i++) {
		off[i] = some_place(rng) & ~7ULL;
		val[i] = some_value(rng, *word(off[i]));
	}
	for (i = 0; i < n; i++)
		*word(off[i]) = val[i];
	if (sg_check(t.mem, SIZE, &opts, &res))
		/* no superblock, or no valid one: the checker reports this and repairs nothing */
		return;
	if (res.found == res.fixed)
		CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
	test_counted();
}

/* --- states that are no damage ------------------------------------------------------------- */

/* A volume after a crash is clean before recovery, and after it. */
static void recovers(const char *what)
{
	struct sg_check_result res;
	struct sg_vol v;

	test_note("recovery: %s", what);
	frozen(true);
	res = check(SG_CHECK_ONLY);
	frozen(false);
	CHECK_EQ(res.found, 0);
	CHECK(res.unclean);
	res = check(SG_CHECK_PREEN);
	CHECK_EQ(res.found, 0);
	CHECK(res.unclean);
	frozen(true);
	res = check(SG_CHECK_REPAIR);
	frozen(false);
	CHECK_EQ(res.found, 0);
	CHECK(!res.unclean);
	CHECK_OK(sg_open(&v, t.mem, SIZE, true, NULL));
	CHECK(!sg_needs_recovery(&v));
}

static void unlink_path(struct sg_vol *v, const char *dir, const char *name, bool evict)
{
	struct sg_iref at, ref;
	unsigned int type;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &at));
	if (dir)
		CHECK_OK(sg_lookup(v, &at, dir, (u32)strlen(dir), &at, &type));
	CHECK_OK(sg_lookup(v, &at, name, (u32)strlen(name), &ref, &type));
	if (type == S_IFDIR >> 12)
		CHECK_OK(sg_rmdir(v, &at, name, (u32)strlen(name), 9));
	else
		CHECK_OK(sg_unlink(v, &at, name, (u32)strlen(name), 9));
	if (evict)
		CHECK_OK(sg_evict(v, &ref));
}

/* Deferred frees of each kind: no damage before recovery; recovery reclaims them. */
static void test_recovery(void)
{
	struct sg_iref root, ref;
	char name[SG_NAME_MAX + 1];
	struct sg_vol v;
	unsigned int i;

	restore(NULL);
	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	unlink_path(&v, NULL, "other", false);
	unlink_path(&v, NULL, "big", true);
	unlink_path(&v, NULL, "sparse", true);
	unlink_path(&v, NULL, "small", true);
	unlink_path(&v, NULL, "longlink", true);
	ref = test_create(&v, &root, "late", S_IFREG | 0644);
	CHECK_EQ(sg_write(&v, &ref, 0, good, 3000, 9), 3000);
	CHECK_OK(sg_resize(&v, &ref, 10, 9));
	sg_abandon(&v);
	recovers("files");

	restore(NULL);
	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	memset(name, '.', sizeof(name));
	for (i = 0; i < DEEP; i++) {
		snprintf(name + 230, 20, "%u", i);
		unlink_path(&v, "links", name, false);
	}
	unlink_path(&v, NULL, "links", false);
	/* a directory that is removed while a system has it open keeps its bucket */
	ref = test_create(&v, &root, "gone", S_IFDIR | 0755);
	test_create(&v, &ref, "one", S_IFREG | 0644);
	unlink_path(&v, "gone", "one", true);
	unlink_path(&v, NULL, "gone", false);
	sg_abandon(&v);
	recovers("directories");
}

/* The checker sees a committed transaction as if the words of the transaction had been stored. */
static void test_committed(void)
{
	struct sg_vol v;
	struct sg_area *a;
	u64 head, want;
	struct sg_check_result res;

	restore(NULL);
	CHECK_OK(sg_open(&v, t.mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	sg_abandon(&v);
	/* the forged record restores the counter that the test has changed */
	a = (void *)AREA(0, 0, head);
	want = *FIELD("big", blocks);
	*FIELD("big", blocks) = 3;
	a->word[0].off = record("big") + offsetof(struct sg_inode, blocks);
	a->word[0].val = want;
	head = SG_AREA_HEAD(1, 1);
	a->crc = sg_crc32c(sg_crc32c(~0u, &head, 8), a->word, sizeof(a->word[0]));
	a->head = head;
	frozen(true);
	res = check(SG_CHECK_ONLY);
	frozen(false);
	CHECK_EQ(res.found, 0);
	CHECK(res.replayed);
	a->crc ^= 1;	/* no longer committed */
	frozen(true);
	CHECK(check(SG_CHECK_ONLY).found > 0);
	frozen(false);
	a->crc ^= 1;
	recovers("a transaction");
	CHECK_EQ(*FIELD("big", blocks), want);
}

/* While a live system uses the volume, the checker repairs nothing and stores nothing. */
static void beat(int sig)
{
	(void)sig;
	sg_beat(&t.v);
}

static void test_live(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &test_identity,
				      .wait_ms = 300 };
	struct sg_check_result res;
	static u8 before[SG_PAGE * 8];

	restore(&damages[0]);
	restore(NULL);
	tvol_join(&t);
	*HOT(errors) = 1;
	signal(SIGALRM, beat);
	ualarm(20000, 20000);
	memcpy(before, t.mem, SG_PAGE);
	CHECK_EQ(sg_check(t.mem, SIZE, &opts, &res), -EBUSY);
	CHECK(strstr(res.why, "in use by process"));
	ualarm(0, 0);
	CHECK_OK(memcmp(before, t.mem, SG_PAGE));
	CHECK_EQ(*HOT(errors), 1);
	opts.wait_ms = 50;
	CHECK_OK(sg_check(t.mem, SIZE, &opts, &res));	/* its heartbeat has stopped */
	CHECK_EQ(res.fixed, res.found);
	sg_abandon(&t.v);
}

/* Only the superblock has the volume's size. Without both copies no check is possible. */
static void test_no_superblock(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR };
	struct sg_check_result res;

	restore(NULL);
	primary();
	backup();
	CHECK_EQ(sg_check(t.mem, SIZE, &opts, &res), -EUCLEAN);
	CHECK(res.why[0]);
	memset(t.mem, 0, SIZE);
	CHECK_EQ(sg_check(t.mem, SIZE, &opts, &res), -EINVAL);
	CHECK(res.why[0]);
}

/*
 * Both words that locate the inode file are lost, so all files are inaccessible. The checker
 * reports that, and does no further harm. When the test restores the word, all files are accessible
 * again.
 */
static void lost_inodes(u64 root)
{
	u64 was = SYS_ROOT;
	struct sg_check_result res;

	SYS_ROOT = root;
	copy_zero();
	res = check(SG_CHECK_ONLY);
	CHECK(res.found > 0 && res.beyond > 0);
	check(SG_CHECK_PREEN);
	res = check(SG_CHECK_REPAIR);
	CHECK(res.found > res.fixed && res.beyond > 0);
	CHECK(res.lost >= nknown);
	CHECK_EQ(SYS_ROOT, root);
	res = check(SG_CHECK_REPAIR);
	CHECK(res.found > res.fixed && res.lost >= nknown);
	SYS_ROOT = was;
	res = check(SG_CHECK_REPAIR);
	CHECK_EQ(res.fixed, res.found);
	CHECK_EQ(res.lost, 0);
	survivors(&(struct damage){ .lost = "" });
}

static void test_no_inodes(void)
{
	u64 roots[5] = { 0, 0x77 };
	unsigned int i;

	restore(NULL);
	roots[2] = *FIELD("small", table);
	roots[3] = *FIELD("one", table);
	roots[4] = inode_page_root(500);
	for (i = 0; i < SG_ARRAY_SIZE(roots); i++) {
		test_note("no inodes, root word 0x%" PRIx64, roots[i]);
		restore(NULL);
		lost_inodes(roots[i]);
	}
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	struct rng rng = { test_seed() };
	u64 i, n;

	verbose = only || getenv("VERBOSE");
	make_volume();
	frozen(true);
	CHECK_EQ(check(SG_CHECK_ONLY).found, 0);
	CHECK_EQ(check(SG_CHECK_REPAIR).found, 0);
	frozen(false);

	for (i = 0; i < DAMAGES; i++) {	/* the argument "random" skips all of them */
		if (only && strcmp(only, damages[i].name))
			continue;
		test_note("damage %s", damages[i].name);
		test_damage(&damages[i]);
		test_preen(&damages[i]);
		if (!below("deep/a/file", damages[i].lost)) {	/* the repair keeps that name */
			test_note("damage %s, and a cleared record", damages[i].name);
			test_preen_named(&damages[i]);
		}
		test_note("damage %s, repair interrupted", damages[i].name);
		for (n = only ? 1 : SG_MIN(test_amount(0, 1, 10), (u64)10); n; n--)
			test_interrupted(&damages[i], &rng);
	}
	if (only && strcmp(only, "random"))
		return test_done();
	test_note("preening does not free a record that still has a name");
	test_preen_named(NULL);
	test_preen_links();
	test_note("recovery");
	test_recovery();
	test_committed();
	test_note("live");
	test_live();
	test_note("no superblock");
	test_no_superblock();
	test_no_inodes();
	n = test_amount(100, 1000, 20000);
	for (i = 0; i < n; i++) {
		test_note("random damage %llu", (unsigned long long)i);
		test_random(&rng);
	}
	drop_volume();
	return test_done();
}
