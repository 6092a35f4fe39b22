// SPDX-License-Identifier: Apache-2.0
/*
 * Threads of one system on the same directories, files and pages, with readers that take no lock.
 * Each thread compares its own files with their expected state. On contested names, only some
 * errors are correct. Each listing returns an unchanged name exactly once. A reader of a file gets
 * bytes of that file only.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include "test.h"

#define THREADS		4
#define OWN		8	/* files that only one thread uses */
#define CONTESTED	6	/* names that all threads compete for, in each directory */
#define STABLE		150	/* names that no thread changes */
#define DIRS		3
#define WORDS		2048	/* words in a block of data */

static struct tvol t;
static struct sg_iref dir[DIRS], stable[STABLE], common;
static pthread_rwlock_t walkers;
static u64 ops, seed;

struct thread {
	unsigned int n;
	struct rng rng;
	struct sg_iref own[OWN];
	bool there[OWN];
	u32 version[OWN];
	u64 buf[WORDS], got[WORDS];
};

/*
 * Waits for walks of threads, so that pages are not reused meanwhile (D7). A kernel does this in
 * another way.
 */
static void quiesce(struct sg_vol *v)
{
	(void)v;
	pthread_rwlock_wrlock(&walkers);
	pthread_rwlock_unlock(&walkers);
}

static void walk_begin(void)
{
	pthread_rwlock_rdlock(&walkers);
}

static void walk_end(void)
{
	pthread_rwlock_unlock(&walkers);
}

static void one_of(s64 ret, const int *allowed, const char *what)
{
	test_counted();
	for (; *allowed; allowed++)
		if (ret == *allowed)
			return;
	if (ret < 0)
		test_fail(__FILE__, __LINE__, "%s: %" PRId64, what, ret);
}
#define ONE_OF(call, ...) one_of(call, (const int[]){ __VA_ARGS__, 0 }, #call)

static int find(const struct sg_iref *d, const char *name, struct sg_iref *ref)
{
	int err;

	walk_begin();
	err = sg_lookup(&t.v, d, name, (u32)strlen(name), ref, NULL);
	walk_end();
	return err;
}

/* --- a thread's own ------------------------------------------------------------------------- */

static struct sg_iref *own_dir(struct thread *th, unsigned int f)
{
	return &dir[(th->n + f) % DIRS];
}

static void own_name(struct thread *th, unsigned int f, char *name)
{
	sprintf(name, "thread-%u-has-this-file-for-itself-%u", th->n, f);
}

static u64 tag(u32 owner, u32 version, u64 word)
{
	return (u64)owner << 56 | (u64)version << 32 | word;
}

static void own_check(struct thread *th, unsigned int f)
{
	struct sg_iref ref;
	char name[60];
	u64 i;
	s64 n;

	own_name(th, f, name);
	CHECK_EQ(find(own_dir(th, f), name, &ref), th->there[f] ? 0 : -ENOENT);
	if (!th->there[f])
		return;
	CHECK_EQ(ref.ino, th->own[f].ino);
	n = sg_read(&t.v, &ref, 0, th->got, sizeof(th->got));
	CHECK_EQ(n, th->version[f] ? (s64)sizeof(th->got) : 0);
	for (i = 0; i < (u64)n / 8; i++)
		if (th->got[i] != tag(th->n + 1, th->version[f], i))
			test_fail(__FILE__, __LINE__, "word %" PRIu64 " is %" PRIx64, i, th->got[i]);
}

static void own_change(struct thread *th, unsigned int f)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	char name[60];
	u64 i;

	own_name(th, f, name);
	if (!th->there[f]) {
		CHECK_OK(sg_create(&t.v, own_dir(th, f), name, (u32)strlen(name), &new, &th->own[f]));
		th->version[f] = 0;
		th->there[f] = true;
	} else if (rng_chance(&th->rng, 30)) {
		CHECK_OK(sg_unlink(&t.v, own_dir(th, f), name, (u32)strlen(name), 1));
		CHECK_OK(sg_evict(&t.v, &th->own[f]));
		th->there[f] = false;
	} else if (rng_chance(&th->rng, 20)) {
		CHECK_OK(sg_resize(&t.v, &th->own[f], 0, 1));
		th->version[f] = 0;
	} else {
		th->version[f]++;
		for (i = 0; i < WORDS; i++)
			th->buf[i] = tag(th->n + 1, th->version[f], i);
		CHECK_EQ(sg_write(&t.v, &th->own[f], 0, th->buf, sizeof(th->buf), 1), sizeof(th->buf));
	}
}

/* --- contested names ------------------------------------------------------------------------ */

static void fight_for_name(struct thread *th)
{
	struct sg_iref *a = &dir[rng_below(&th->rng, DIRS)], *b = &dir[rng_below(&th->rng, DIRS)], ref;
	bool is_dir = rng_chance(&th->rng, 30), met;
	struct sg_new new = { .mode = (is_dir ? S_IFDIR : S_IFREG) | 0700, .now = 1 };
	char name[20], to[20];
	u32 len = (u32)sprintf(name, "c%d", (int)rng_below(&th->rng, CONTESTED));
	u32 tolen = (u32)sprintf(to, "c%d", (int)rng_below(&th->rng, CONTESTED));

	met = !find(a, name, &ref);
	switch (rng_below(&th->rng, 6)) {
	case 0:
		ONE_OF(sg_create(&t.v, a, name, len, &new, &ref), -EEXIST);
		break;
	case 1:
		ONE_OF(sg_link(&t.v, &stable[rng_below(&th->rng, STABLE)], a, name, len, 1), -EEXIST);
		break;
	case 2:
		ONE_OF(sg_unlink(&t.v, a, name, len, 1), -ENOENT, -EISDIR);
		break;
	case 3:
		ONE_OF(sg_rmdir(&t.v, a, name, len, 1), -ENOENT, -ENOTDIR);
		break;
	case 4:
		ONE_OF(sg_rename(&t.v, a, name, len, b, to, tolen, 0, NULL, 1), -ENOENT, -EISDIR,
		       -ENOTDIR);
		break;
	case 5:
		ONE_OF(sg_rename(&t.v, a, name, len, b, to, tolen, SG_RENAME_EXCHANGE, NULL, 1), -ENOENT);
		break;
	}
	if (met)
		/* frees the file if this was its last name */
		CHECK_OK(sg_evict(&t.v, &ref));
}

/*
 * Writes, truncates or reads one file of all threads: each word was written at its place, or is
 * zero.
 */
static void fight_for_data(struct thread *th)
{
	u64 first = rng_below(&th->rng, 16 * WORDS), n = 1 + rng_size(&th->rng, WORDS - 1), i;
	s64 got;

	switch (rng_below(&th->rng, 8)) {
	case 0:
		CHECK_OK(sg_resize(&t.v, &common, rng_below(&th->rng, 16 * WORDS) * 8, 1));
		break;
	case 1:
		CHECK_OK(sg_punch(&t.v, &common, first * 8, n * 8, 1));
		break;
	case 2:
	case 3:
	case 4:
		for (i = 0; i < n; i++)
			th->buf[i] = tag(100, 0, first + i);
		CHECK_EQ(sg_write(&t.v, &common, first * 8, th->buf, n * 8, 1), n * 8);
		break;
	default:
		walk_begin();
		got = sg_read(&t.v, &common, first * 8, th->got, n * 8);
		walk_end();
		CHECK(got >= 0 && (u64)got <= n * 8);
		for (i = 0; i < (u64)got / 8; i++)
			if (th->got[i] && th->got[i] != tag(100, 0, first + i))
				test_fail(__FILE__, __LINE__, "word %" PRIu64 " is %" PRIx64, first + i,
					  th->got[i]);
	}
}

static void fight_for_attributes(struct thread *th)
{
	const struct sg_iref *ref = &stable[rng_below(&th->rng, STABLE)];
	struct sg_attr a = { .uid = th->n, .gid = th->n, .mode = 0600 + th->n };
	char value[300];
	int n;

	memset(value, (int)('a' + th->n), sizeof(value));
	switch (rng_below(&th->rng, 4)) {
	case 0:
		CHECK_OK(sg_setattr(&t.v, ref, SG_SET_UID | SG_SET_GID | SG_SET_MODE, &a));
		break;
	case 1:
		CHECK_OK(sg_xattr_set(&t.v, ref, SG_XATTR_USER, "x", 1, value, sizeof(value), 0, 1));
		break;
	case 2:	/* the read returns one complete value */
		walk_begin();
		n = sg_xattr_get(&t.v, ref, SG_XATTR_USER, "x", 1, value, sizeof(value));
		walk_end();
		if (n != -ENODATA)
			CHECK(n == sizeof(value) && !memcmp(value, value + 1, sizeof(value) - 1));
		break;
	default:
		CHECK_OK(sg_getattr(&t.v, ref, &a));
		CHECK(a.uid == a.gid && (a.mode & 0777) == 0600 + a.uid);
	}
}

/* --- unchanged names ------------------------------------------------------------------------ */

struct listing {
	u8 met[STABLE];
	u64 last, names;
};

static bool meet(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct listing *l = ctx;
	unsigned int i;

	(void)ino;
	(void)type;
	if (l->names++ % 50 == 49)
		return false;	/* stops the listing, which continues with this name */
	CHECK(cookie > l->last);
	l->last = cookie;
	if (len > 7 && !memcmp(name, "stable-", 7)) {
		CHECK(sscanf(name, "stable-%u-", &i) == 1 && i < STABLE);
		l->met[i]++;
	}
	return true;
}

static void list(struct thread *th)
{
	unsigned int d = (unsigned int)rng_below(&th->rng, DIRS), i;
	struct listing l = { 0 };
	u64 cookie = 0;

	while (cookie != INT64_MAX) {
		l.last = cookie ? cookie - 1 : 0;
		walk_begin();
		CHECK_OK(sg_readdir(&t.v, &dir[d], &cookie, meet, &l));
		walk_end();
	}
	for (i = 0; i < STABLE; i++)
		CHECK_EQ(l.met[i], i % DIRS == d);
}

static void look_up_stable(struct thread *th)
{
	unsigned int i = (unsigned int)rng_below(&th->rng, STABLE);
	struct sg_iref ref;
	char name[80];

	sprintf(name, "stable-%u-name-that-nobody-touches", i);
	CHECK_OK(find(&dir[i % DIRS], name, &ref));
	CHECK_EQ(ref.ino, stable[i].ino);
}

/* --- run ------------------------------------------------------------------------------------ */

static void step(struct thread *th)
{
	unsigned int f = (unsigned int)rng_below(&th->rng, OWN);
	u64 dice = rng_below(&th->rng, 100);
	struct sg_statfs st;

	test_note("thread %u: file %u, dice %" PRIu64, th->n, f, dice);
	if (dice < 25) {
		own_change(th, f);
		own_check(th, f);
	} else if (dice < 50) {
		fight_for_name(th);
	} else if (dice < 70) {
		fight_for_data(th);
	} else if (dice < 80) {
		fight_for_attributes(th);
	} else if (dice < 95) {
		look_up_stable(th);
	} else if (dice < 99) {
		list(th);
	} else {
		CHECK_OK(sg_statfs(&t.v, &st));
	}
}

static void *work(void *arg)
{
	struct thread *th = arg;
	unsigned int f;
	u64 i;

	for (i = 0; i < ops / THREADS; i++)
		step(th);
	for (f = 0; f < OWN; f++)
		own_check(th, f);
	return NULL;
}

static void setup(void)
{
	pthread_rwlockattr_t attr;
	char name[80];
	unsigned int i;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&walkers, &attr);
	tvol_make(&t, 64 << 20);
	t.v.quiesce = quiesce;
	common = test_create(&t.v, &t.root, "common", S_IFREG | 0600);
	for (i = 0; i < DIRS; i++) {
		sprintf(name, "dir-%u", i);
		dir[i] = test_create(&t.v, &t.root, name, S_IFDIR | 0700);
	}
	for (i = 0; i < STABLE; i++) {
		sprintf(name, "stable-%u-name-that-nobody-touches", i);
		stable[i] = test_create(&t.v, &dir[i % DIRS], name, S_IFREG | 0600);
	}
}

int main(void)
{
	static struct thread th[THREADS];
	pthread_t id[THREADS];
	unsigned int i;

	ops = test_amount(20000, 3000000, 50000000);
	seed = test_seed();
	setup();
	for (i = 0; i < THREADS; i++) {
		th[i].n = i;
		th[i].rng.state = seed * 31 + i;
		CHECK_OK(pthread_create(&id[i], NULL, work, &th[i]));
	}
	for (i = 0; i < THREADS; i++)
		CHECK_OK(pthread_join(id[i], NULL));
	printf("%" PRIu64 " operations, %" PRIu64 " commits, %" PRIu64 " waits for a lock\n", ops,
	       sg_counters(&t.v).commits, t.v.stat.lock_waits);
	/* checks the volume in the state that a crash would leave now */
	test_clean(t.mem, t.size);
	tvol_drop(&t);
	return test_done();
}
