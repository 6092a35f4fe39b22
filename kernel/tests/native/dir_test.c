// SPDX-License-Identifier: Apache-2.0
/*
 * Directories: cost by size, order and stability of listings, readers during writes, reuse of freed
 * space, damage.
 */
#include <pthread.h>
#include "count.h"
#include "dir/dir_index.h"

static const struct sg_new new_dir = { .mode = SG_S_IFDIR | 0755, .now = 1 };
static const struct sg_new new_file = { .mode = SG_S_IFREG | 0644, .now = 1 };

static struct sg_iref make_dir(struct sg_vol *v, const struct sg_iref *in, const char *name)
{
	struct sg_iref dir;

	CHECK_OK(sg_create(v, in, name, (u32)strlen(name), &new_dir, &dir));
	return dir;
}

static u32 nth_name(char *name, u64 i)
{
	return (u32)sprintf(name, "name-%07" PRIu64, i);
}

/* All names are links to one file, so a million names need one inode. */
static void add_names(struct sg_vol *v, const struct sg_iref *dir, const struct sg_iref *file,
		      u64 from, u64 to)
{
	char name[32];

	for (; from < to; from++) {
		u32 len = nth_name(name, from);

		CHECK_OK(sg_link(v, file, dir, name, len, 2));
	}
}

static void remove_names(struct sg_vol *v, const struct sg_iref *dir, u64 from, u64 to)
{
	char name[32];

	for (; from < to; from++) {
		u32 len = nth_name(name, from);

		CHECK_OK(sg_unlink(v, dir, name, len, 3));
	}
}

/* --- a listing, which marks the names -------------------------------------------------------- */

struct seen {
	u64 names, last, stop_after;
	u8 *mark;		/* how often name-N was listed, for each N < room */
	u64 room;
};

static bool see(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct seen *s = ctx;
	u64 i = 0;
	u32 k;

	if (!s->stop_after)
		return false;
	s->stop_after--;
	CHECK(ino && type == SG_S_IFREG >> 12);
	CHECK(cookie >= 2 && cookie > s->last && cookie < INT64_MAX);
	s->last = cookie;
	CHECK(len == 12 && !memcmp(name, "name-", 5));
	for (k = 5; k < len; k++)
		i = i * 10 + (u64)(name[k] - '0');
	CHECK(i < s->room);
	s->mark[i]++;
	s->names++;
	return true;
}

/* Lists some names from *@cookie on. Returns true if more names follow. */
static bool list_some(struct sg_vol *v, const struct sg_iref *dir, u64 *cookie, u64 some,
		      struct seen *s)
{
	s->stop_after = some;
	CHECK_OK(sg_readdir(v, dir, cookie, see, s));
	return *cookie != INT64_MAX;
}

static void expect_listing(struct sg_vol *v, const struct sg_iref *dir, u64 from, u64 to, u64 some)
{
	struct seen s = { .mark = calloc(1, to + 1), .room = to };
	u64 cookie = 0, i;

	while (list_some(v, dir, &cookie, some, &s))
		;
	CHECK_EQ(s.names, to - from);
	for (i = from; i < to; i++)
		CHECK(s.mark[i] == 1);
	CHECK_EQ(sg_iget(v, dir, entries), to - from);
	free(s.mark);
}

/* --- cost ------------------------------------------------------------------------------------- */

struct job {
	struct sg_vol *v;
	struct sg_iref dir, file;
	u64 names;
	const char *what;
};

static u64 counted;

static void count_lookups(void *arg)
{
	struct job *j = arg;
	struct sg_iref ref;
	char name[32];
	u64 i;

	for (i = 0; i < counted; i++) {
		u32 len = nth_name(name, i * j->names / counted);

		CHECK_OK(sg_lookup(j->v, &j->dir, name, len, &ref, NULL));
	}
}

static void count_misses(void *arg)
{
	struct job *j = arg;
	struct sg_iref ref;
	char name[32];
	u64 i;

	for (i = 0; i < counted; i++) {
		u32 len = nth_name(name, j->names + i);

		CHECK_EQ(sg_lookup(j->v, &j->dir, name, len, &ref, NULL), -ENOENT);
	}
}

static void count_nothing(void *arg)
{
	char name[32];
	u64 i;

	for (i = 0; i < counted; i++)
		CHECK(nth_name(name, i + (u64)(arg != NULL)) == 12);
}

/* Runs in the child process. The volume keeps its changes of names. */
static void count_changes(void *arg)
{
	struct job *j = arg;

	add_names(j->v, &j->dir, &j->file, j->names, j->names + counted);
	remove_names(j->v, &j->dir, j->names, j->names + counted);
}

static u64 cost(const struct job *j, void (*fn)(void *))
{
	u64 idle = count_instructions(count_nothing, NULL);

	return (count_instructions(fn, (void *)j) - idle) / counted;
}

static void compare(const struct job *small, const struct job *big, const char *what,
		    void (*fn)(void *))
{
	u64 a = cost(small, fn), b = cost(big, fn);

	printf("ok %s: %" PRIu64 " instructions of %" PRIu64 " names, %" PRIu64 " of %" PRIu64 "\n",
	       what, a, small->names, b, big->names);
	CHECK(b <= 2 * a);
}

static void test_million(void)
{
	u64 n = test_amount(50000, 1000000, 1000000);
	struct job small = { .names = 1000 }, big = { .names = n };
	struct sg_statfs before, after;
	struct tvol t;

	counted = test_amount(2, 16, 64);
	tvol_make(&t, 256 << 20);
	small.v = big.v = &t.v;
	small.dir = make_dir(&t.v, &t.root, "small");
	big.dir = make_dir(&t.v, &t.root, "big");
	small.file = big.file = test_create(&t.v, &t.root, "file", SG_S_IFREG | 0600);
	CHECK_OK(sg_statfs(&t.v, &before));
	add_names(&t.v, &small.dir, &small.file, 0, small.names);
	add_names(&t.v, &big.dir, &big.file, 0, n);
	expect_listing(&t.v, &small.dir, 0, small.names, 7);
	expect_listing(&t.v, &big.dir, 0, n, 1000);
	compare(&small, &big, "lookup of a name", count_lookups);
	compare(&small, &big, "lookup of a missing name", count_misses);
	compare(&small, &big, "link and unlink", count_changes);
	expect_listing(&t.v, &big.dir, 0, n, ~0ULL);
	printf("ok %" PRIu64 " names take %" PRIu64 " pages\n", n, sg_iget(&t.v, &big.dir, blocks));
	tvol_recheck(&t);
	remove_names(&t.v, &big.dir, 0, n);
	remove_names(&t.v, &small.dir, 0, small.names);
	expect_listing(&t.v, &big.dir, n, n, 1);
	CHECK_EQ(sg_iget(&t.v, &big.dir, table), 0);
	CHECK_EQ(sg_iget(&t.v, &big.dir, blocks), 0);
	CHECK_EQ(sg_iget(&t.v, &big.dir, size), 0);
	CHECK_OK(sg_statfs(&t.v, &after));
	CHECK_EQ(after.free_pages, before.free_pages);
	tvol_drop(&t);
}

/* --- listings during changes ------------------------------------------------------------------ */

/*
 * Names below @keep remain; other names are added and removed during the listing. Each remaining
 * name is listed exactly once, and no name is listed twice.
 */
static void test_stable(void)
{
	u64 keep = 3000, extra = 9000, rounds = test_amount(4, 30, 300), r, i;
	struct rng rng = { test_seed() };
	struct sg_iref dir, file;
	struct tvol t;
	u8 *there = calloc(1, keep + extra);

	tvol_make(&t, 64 << 20);
	dir = make_dir(&t.v, &t.root, "dir");
	file = test_create(&t.v, &t.root, "file", SG_S_IFREG | 0600);
	add_names(&t.v, &dir, &file, 0, keep);
	for (r = 0; r < rounds; r++) {
		struct seen s = { .mark = calloc(1, keep + extra), .room = keep + extra };
		u64 cookie = 0;
		bool grow = r & 1;

		while (list_some(&t.v, &dir, &cookie, rng_range(&rng, 1, 40), &s)) {
			for (i = 0; i < 100; i++) {
				u64 k = keep + rng_below(&rng, extra);

				if (rng_chance(&rng, grow ? 80 : 20) && !there[k])
					add_names(&t.v, &dir, &file, k, k + 1);
				else if (there[k])
					remove_names(&t.v, &dir, k, k + 1);
				else
					continue;
				there[k] ^= 1;
			}
		}
		for (i = 0; i < keep + extra; i++)
			CHECK(i < keep ? s.mark[i] == 1 : s.mark[i] <= 1);
		free(s.mark);
	}
	tvol_drop(&t);
	free(there);
	printf("ok listings are stable\n");
}

/* --- readers during writes -------------------------------------------------------------------- */

#define FIXED 500

struct race {
	struct tvol t;
	struct sg_iref dir, file;
	bool stop;
	u64 looked, listed;
};

static bool stopped(struct race *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_RELAXED);
}

static void *looker(void *arg)
{
	struct race *r = arg;
	struct sg_iref ref;
	char name[32];
	u32 len;
	u64 i;

	for (i = 0; !stopped(r); i++) {
		int err;

		len = nth_name(name, i % FIXED);
		CHECK_OK(sg_lookup(&r->t.v, &r->dir, name, len, &ref, NULL));
		CHECK_EQ(ref.ino, r->file.ino);
		len = (u32)sprintf(name, "none-%07" PRIu64, i % 5000);
		CHECK_EQ(sg_lookup(&r->t.v, &r->dir, name, len, &ref, NULL), -ENOENT);
		len = nth_name(name, FIXED + i % 4000);
		err = sg_lookup(&r->t.v, &r->dir, name, len, &ref, NULL);
		CHECK(err ? err == -ENOENT : ref.ino == r->file.ino);
		__atomic_fetch_add(&r->looked, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *lister(void *arg)
{
	struct race *r = arg;
	struct seen s = { .room = FIXED + 4000 };
	u64 i;

	s.mark = malloc(s.room);
	while (!stopped(r)) {
		u64 cookie = 0;

		memset(s.mark, 0, s.room);
		s.last = 0;
		while (list_some(&r->t.v, &r->dir, &cookie, 50, &s))
			;
		for (i = 0; i < s.room; i++)
			CHECK(i < FIXED ? s.mark[i] == 1 : s.mark[i] <= 1);
		__atomic_fetch_add(&r->listed, 1, __ATOMIC_RELAXED);
	}
	free(s.mark);
	return NULL;
}

static bool both_had_a_turn(const struct race *r)
{
	return __atomic_load_n(&r->looked, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&r->listed, __ATOMIC_RELAXED);
}

static void test_race(void)
{
	u64 rounds = test_amount(3, 20, 200), k;
	struct race *r = calloc(1, sizeof(*r));
	pthread_t thread[3];

	tvol_make(&r->t, 64 << 20);
	r->dir = make_dir(&r->t.v, &r->t.root, "dir");
	r->file = test_create(&r->t.v, &r->t.root, "file", SG_S_IFREG | 0600);
	add_names(&r->t.v, &r->dir, &r->file, 0, FIXED);
	CHECK(!pthread_create(&thread[0], NULL, looker, r));
	CHECK(!pthread_create(&thread[1], NULL, looker, r));
	CHECK(!pthread_create(&thread[2], NULL, lister, r));
	/*
	 * each round of 80 adds and removes all names, with splits, removals, and reuse of freed
	 * pages
	 */
	for (k = 0; k % 80 || k < rounds * 80 || !both_had_a_turn(r); k++) {
		u64 from = FIXED + k % 40 * 100;

		if (k / 40 & 1)
			remove_names(&r->t.v, &r->dir, from, from + 100);
		else
			add_names(&r->t.v, &r->dir, &r->file, from, from + 100);
		CHECK(sg_reclaim(&r->t.v, ~0u) == 0);
	}
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
	for (k = 0; k < 3; k++)
		CHECK(!pthread_join(thread[k], NULL));
	expect_listing(&r->t.v, &r->dir, 0, FIXED, ~0ULL);
	tvol_drop(&r->t);
	printf("ok %" PRIu64 " lookups and %" PRIu64 " listings beside a writer\n", 3 * r->looked,
	       r->listed);
	free(r);
}

/* --- space ------------------------------------------------------------------------------------ */

/* Adding and removing names does not make a directory grow. */
static void test_churn(void)
{
	u64 turns = test_amount(5000, 100000, 1000000), live = 300, i, first, most;
	struct sg_iref dir, file;
	struct tvol t;

	tvol_make(&t, 64 << 20);
	dir = make_dir(&t.v, &t.root, "dir");
	file = test_create(&t.v, &t.root, "file", SG_S_IFREG | 0600);
	for (i = 0; i < 1000; i++) {	/* the same name again and again takes no additional page */
		add_names(&t.v, &dir, &file, 7, 8);
		CHECK_EQ(sg_iget(&t.v, &dir, blocks), 1);
		remove_names(&t.v, &dir, 7, 8);
	}
	add_names(&t.v, &dir, &file, 0, live);
	most = first = sg_iget(&t.v, &dir, blocks);
	for (i = 0; i < turns; i++) {
		add_names(&t.v, &dir, &file, live + i, live + i + 1);
		remove_names(&t.v, &dir, i, i + 1);
		most = SG_MAX(most, sg_iget(&t.v, &dir, blocks));
	}
	printf("ok %" PRIu64 " names come and go: %" PRIu64 " pages became %" PRIu64 "\n", turns,
	       first, most);
	CHECK(most <= 4 * first);
	tvol_drop(&t);
}

/* Adds words without effect, so that the transaction is nearly full. */
static void fill_up(struct sg_tx *tx, u64 scratch, u64 words)
{
	u64 i;

	for (i = 0; i < words; i++)
		sg_tx_set(tx, scratch + i * 8, i);
}

/* An index is freed in as many steps as necessary; no step frees a page twice or forgets one. */
static void test_reclaim(void)
{
	u64 rounds = test_amount(5, 12, 120), r, scratch, free_pages;
	struct rng rng = { test_seed() };
	unsigned int steps = 0;
	struct sg_iref dir, file;
	struct sg_tx *tx;
	struct tvol t;

	tvol_make(&t, 64 << 20);
	dir = make_dir(&t.v, &t.root, "dir");
	file = test_create(&t.v, &t.root, "file", SG_S_IFREG | 0600);
	tx = sg_tx_begin(&t.v);
	CHECK_OK(sg_take_page(tx, SG_USE_META, &scratch));
	CHECK_OK(sg_tx_commit(tx));
	CHECK(sg_reclaim(&t.v, ~0u) == 0);
	free_pages = sg_free_pages(&t.v);
	for (r = 0; r < rounds; r++) {
		u64 n = r % 4 ? rng_range(&rng, 200, 3000) : 60000, off;
		unsigned int index = 0;

		add_names(&t.v, &dir, &file, 0, n);
		CHECK(sg_reclaim(&t.v, ~0u) == 0);
		off = sg_iget(&t.v, &dir, table) & ~SG_DIR_ENTRY_KIND;
		tx = sg_tx_begin(&t.v);	/* detaches the index, with all names */
		sg_tx_iset(tx, &dir, table, 0);
		sg_tx_iset(tx, &dir, entries, 0);
		sg_tx_iset(tx, &dir, blocks, 0);
		sg_tx_iset(tx, &dir, size, 0);
		sg_tx_iset(tx, &file, mode, 1ULL << 32 | SG_S_IFREG | 0600);
		CHECK_OK(sg_tx_commit(tx));
		while (index < SG_TABLE_ENTRIES) {
			tx = sg_tx_begin(&t.v);
			fill_up(tx, scratch, rng_range(&rng, 212, 219));
			CHECK_OK(sg_dir_reclaim(tx, off, &index));
			CHECK_OK(sg_tx_commit(tx));
			CHECK(index <= SG_TABLE_ENTRIES && steps++ < 1000000);
		}
		CHECK(sg_reclaim(&t.v, ~0u) == 0);
		CHECK_EQ(sg_free_pages(&t.v), free_pages);
	}
	tx = sg_tx_begin(&t.v);
	CHECK(sg_give_run(tx, scratch, 1));
	CHECK_OK(sg_tx_commit(tx));
	tvol_drop(&t);
	printf("ok %" PRIu64 " indexes freed in %u steps\n", rounds, steps);
}

/* Tests names of all lengths, with all bytes. */
static void test_any_name(void)
{
	u64 n = test_amount(2000, 20000, 200000), i, k;
	struct rng rng = { test_seed() };
	struct sg_iref dir, ref;
	struct tvol t;
	struct any {
		u32 len;
		u64 ino;
		char name[255];
	} *any = calloc(n, sizeof(*any));

	tvol_make(&t, 256 << 20);
	dir = make_dir(&t.v, &t.root, "dir");
	for (i = 0; i < n; i++) {
		struct any *a = &any[i];
		int err;

		a->len = i < 255 ? (u32)i + 1 : (u32)rng_range(&rng, 1, 255);
		rng_fill(&rng, a->name, a->len);
		for (k = 0; k < a->len; k++)
			if (!a->name[k] || a->name[k] == '/' || (k == 0 && a->name[k] == '.'))
				a->name[k] = 'x';
		err = sg_create(&t.v, &dir, a->name, a->len, &new_file, &ref);
		CHECK(!err || (err == -EEXIST && a->len < 4));
		a->ino = err ? 0 : ref.ino;
	}
	tvol_recheck(&t);
	for (i = 0; i < n; i++) {
		struct any *a = &any[i];

		if (!a->ino)
			continue;
		CHECK_OK(sg_lookup(&t.v, &dir, a->name, a->len, &ref, NULL));
		CHECK_EQ(a->ino, ref.ino);
		a->name[a->len / 2] ^= 0x80;	/* a name that differs in one bit only */
		CHECK(sg_lookup(&t.v, &dir, a->name, a->len, &ref, NULL) == -ENOENT || a->len < 4);
		a->name[a->len / 2] ^= 0x80;
		CHECK_OK(sg_unlink(&t.v, &dir, a->name, a->len, 9));
		CHECK_EQ(sg_unlink(&t.v, &dir, a->name, a->len, 9), -ENOENT);
		CHECK_OK(sg_iref(&t.v, a->ino, &ref));
		CHECK_OK(sg_evict(&t.v, &ref));
	}
	CHECK_EQ(sg_iget(&t.v, &dir, entries), 0);
	tvol_drop(&t);
	free(any);
	printf("ok %" PRIu64 " names of any bytes\n", n);
}

/* --- damage ----------------------------------------------------------------------------------- */

static u64 hostile_word(struct sg_vol *v, struct rng *rng)
{
	switch (rng_below(rng, 7)) {
	case 0: return rng_next(rng);
	case 1: return 1ULL << rng_below(rng, 64);
	case 2: return rng_below(rng, v->size) & ~(SG_PAGE - 1);
	case 3: return (rng_below(rng, v->size) & ~(SG_PAGE - 1)) | rng_below(rng, 4);
	case 4: return v->size - rng_below(rng, 3) * SG_PAGE + rng_below(rng, 4);
	case 5: return ~0ULL - rng_below(rng, 8);
	}
	return rng_below(rng, 4096);
}

/* Chooses a word of the directory: in its record, its root index page, or one of its buckets. */
static u64 *some_word(struct sg_vol *v, const struct sg_iref *dir, struct rng *rng)
{
	u64 root = sg_iget(v, dir, table), word, off;

	if (rng_chance(rng, 10))
		return sg_at(v, SG_IOFF(dir, table));
	off = root & ~SG_DIR_ENTRY_KIND;
	if (!sg_data_page(v, off))
		return sg_at(v, SG_IOFF(dir, table));
	if ((root & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX && rng_chance(rng, 80)) {
		word = sg_get(v, off + rng_below(rng, 512) * 8) & ~SG_DIR_ENTRY_KIND;
		if (sg_data_page(v, word))
			off = word;
	}
	return sg_at(v, off + (rng_chance(rng, 40) ? rng_below(rng, 8) : rng_below(rng, 512)) * 8);
}

static bool any_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	u64 *names = ctx;

	(void)ino;
	(void)cookie;
	CHECK(len && len <= 255 && type < 16);
	CHECK(!memchr(name, '/', len) && !memchr(name, 0, len));
	return ++*names < 100000;
}

static void allowed(int err, const char *what)
{
	test_note("%s on a damaged directory", what);
	switch (err) {
	case 0: case -EUCLEAN: case -ENOENT: case -EEXIST: case -ENOSPC: case -ESTALE:
	case -ENOTDIR: case -EISDIR: case -ENOTEMPTY: case -EMLINK:
		test_counted();
		return;
	}
	test_fail(__FILE__, __LINE__, "%s: %d", what, err);
}

static void use_damaged(struct sg_vol *v, const struct sg_iref *dir, u64 k)
{
	u64 cookie = 0, names = 0;
	struct sg_iref ref;
	char name[32];
	u32 len = nth_name(name, k);

	allowed(sg_lookup(v, dir, name, len, &ref, NULL), "lookup");
	allowed(sg_readdir(v, dir, &cookie, any_name, &names), "readdir");
	allowed(sg_unlink(v, dir, name, len, 5), "unlink");
	len = nth_name(name, k + 5000);
	allowed(sg_create(v, dir, name, len, &new_file, &ref), "create");
	allowed(sg_rename(v, dir, name, len, dir, "renamed", 7, 0, NULL, 6), "rename");
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/*
 * With any bytes in a directory, the engine does not crash, hang, or access memory outside the
 * volume.
 */
static void test_damage(void)
{
	extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
	u64 rounds = test_amount(100, 1500, 20000), r, k;
	struct rng rng = { test_seed() };
	struct sg_iref dir, file;
	struct tvol t;
	u8 *image;

	tvol_make(&t, 16 << 20);
	dir = make_dir(&t.v, &t.root, "dir");
	file = test_create(&t.v, &t.root, "file", SG_S_IFREG | 0600);
	add_names(&t.v, &dir, &file, 0, 600);
	tvol_leave(&t);
	image = malloc(t.size);
	memcpy(image, t.mem, t.size);
	sg_log_hook = quiet;
	for (r = 0; r < rounds; r++) {
		u64 hits = rng_range(&rng, 1, 12);

		test_note("round %" PRIu64, r);
		memcpy(t.mem, image, t.size);
		tvol_join(&t);
		t.v.on_damage = NULL;
		for (k = 0; k < hits; k++)
			*some_word(&t.v, &dir, &rng) = hostile_word(&t.v, &rng);
		for (k = 0; k < 20; k++)
			use_damaged(&t.v, &dir, rng_below(&rng, 600));
		sg_abandon(&t.v);
	}
	sg_log_hook = NULL;
	free(image);
	test_unmap(t.mem, t.size);
	printf("ok %" PRIu64 " damaged directories\n", rounds);
}

int main(void)
{
	test_million();
	test_stable();
	test_race();
	test_churn();
	test_reclaim();
	test_any_name();
	test_damage();
	return test_done();
}
