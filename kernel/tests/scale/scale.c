// SPDX-License-Identifier: Apache-2.0
/*
 * scale size GIB | files N | names N | systems N: measures the cost of the engine at this scale, in
 * this process, on sparse memory. It prints lines "WHAT N UNIT VALUE"; e2e/bench/scale makes a page
 * of them.
 *
 * Times are processor time of the only thread, so other programs affect them only through the
 * caches. A short time is the median of several runs. The engine's own memory is counted in
 * sg_alloc() and sg_free() (linked with --wrap). The number of blocks of the volume's file gives
 * the used part of the volume.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"
#include "test.h"

#define MIB		(1ULL << 20)
#define GIB		(1ULL << 30)
#define RUNS		7
#define PER_DIR		1000
#define OPS		20000
#define SETTLE_NS	1000000000ULL

static u64 scale;

/* --- memory of the engine ------------------------------------------------------------------- */

static u64 mem_now, mem_most;

void *__real_sg_alloc(size_t len);
void __real_sg_free(void *p);
void *__wrap_sg_alloc(size_t len);
void __wrap_sg_free(void *p);

void *__wrap_sg_alloc(size_t len)
{
	void *p = __real_sg_alloc(len);

	mem_now += malloc_usable_size(p);
	mem_most = SG_MAX(mem_most, mem_now);
	return p;
}

void __wrap_sg_free(void *p)
{
	mem_now -= malloc_usable_size(p);
	__real_sg_free(p);
}

/* --- output --------------------------------------------------------------------------------- */

static void say(const char *what, const char *unit, double value)
{
	printf("%s %" PRIu64 " %s %.3f\n", what, scale, unit, value);
}

static u64 spent(void)
{
	struct timespec t;

	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static double median_of(u64 *ns, unsigned int n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	return (double)ns[n / 2];
}

/* --- volumes -------------------------------------------------------------------------------- */

struct disk {
	u8 *mem;
	u64 size;
	int fd;
};

static struct disk disk_new(u64 size)
{
	struct disk d = { .size = size, .fd = memfd_create("scale", 0) };

	CHECK(d.fd >= 0);
	CHECK_OK(ftruncate(d.fd, (off_t)size));
	d.mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d.fd, 0);
	CHECK(d.mem != MAP_FAILED);
	return d;
}

static void disk_end(struct disk *d)
{
	CHECK_OK(munmap(d->mem, d->size));
	CHECK_OK(close(d->fd));
}

static double touched(const struct disk *d)
{
	struct stat st;

	CHECK_OK(fstat(d->fd, &st));
	return (double)st.st_blocks * 512;
}

static void make(struct disk *d)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	char why[200];

	if (sg_format(d->mem, d->size, &opts, why))
		test_fail(__FILE__, __LINE__, "sg_format: %s", why);
}

static void join(struct sg_vol *v, struct disk *d)
{
	int err = sg_open(v, d->mem, d->size, false, NULL) ?:
		  sg_join(v, &test_identity, 0, false);

	if (err)
		test_fail(__FILE__, __LINE__, "cannot join: %d, %s", err, v->why);
}

static struct sg_iref root_of(struct sg_vol *v)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	return root;
}

/* Prints the time and the peak memory of a check. */
static void check(struct disk *d, const char *time, const char *memory)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_ONLY };
	u64 before = mem_now, start = spent();
	struct sg_check_result res;

	mem_most = mem_now;
	CHECK_OK(sg_check(d->mem, d->size, &opts, &res));
	say(time, "ms", (double)(spent() - start) / 1e6);
	say(memory, "MiB", (double)(mem_most - before) / (double)MIB);
	CHECK_EQ(res.found, 0);
}

/* --- size: an empty volume ------------------------------------------------------------------ */

static void size_made(void)
{
	u64 ns[RUNS];
	double bytes = 0;
	unsigned int i;

	for (i = 0; i < RUNS; i++) {
		struct disk d = disk_new(scale * GIB);
		u64 start = spent();

		make(&d);
		ns[i] = spent() - start;
		bytes = touched(&d);
		disk_end(&d);
	}
	say("size.mkfs", "ms", median_of(ns, RUNS) / 1e6);
	say("size.mkfs-touched", "MiB", bytes / (double)MIB);
}

static void size_joined(struct disk *d)
{
	u64 in[RUNS], mend[RUNS], largest[RUNS], out[RUNS];
	struct sg_vol v;
	unsigned int i;

	for (i = 0; i < RUNS; i++) {
		u64 start = spent();

		join(&v, d);
		in[i] = spent() - start;
		start = spent();
		while (sg_space_mend_hints(&v))
			;
		mend[i] = spent() - start;
		start = spent();
		CHECK(sg_largest_free(&v));
		largest[i] = spent() - start;
		start = spent();
		sg_leave(&v);
		out[i] = spent() - start;
	}
	say("size.join", "us", median_of(in, RUNS) / 1e3);
	say("size.mend", "ms", median_of(mend, RUNS) / 1e6);
	say("size.largest-free", "ms", median_of(largest, RUNS) / 1e6);
	say("size.leave", "us", median_of(out, RUNS) / 1e3);
}

static void measure_size(void)
{
	struct disk d;

	size_made();
	d = disk_new(scale * GIB);
	make(&d);
	size_joined(&d);
	check(&d, "size.check", "size.check-memory");
	disk_end(&d);
}

/* --- files: many, in directories of a thousand ---------------------------------------------- */

static u32 name_of(char *name, u64 i)
{
	return (u32)sg_snprintf(name, 24, "file-%08llu", (unsigned long long)i);
}

static struct sg_iref make_file(struct sg_vol *v, const struct sg_iref *dir, u64 i, u32 mode)
{
	struct sg_new new = { .mode = mode, .now = 1 };
	struct sg_iref ref;
	char name[24];

	CHECK_OK(sg_create(v, dir, name, name_of(name, i), &new, &ref));
	return ref;
}

static void look_up(struct sg_vol *v, const struct sg_iref *dir, u64 i, int want)
{
	struct sg_iref ref;
	unsigned int type;
	char name[24];

	CHECK_EQ(sg_lookup(v, dir, name, name_of(name, i), &ref, &type), want);
}

static void remove_file(struct sg_vol *v, const struct sg_iref *dir, u64 i)
{
	struct sg_iref ref;
	unsigned int type;
	char name[24];
	u32 len = name_of(name, i);

	CHECK_OK(sg_lookup(v, dir, name, len, &ref, &type));
	CHECK_OK(sg_unlink(v, dir, name, len, 1));
	CHECK_OK(sg_evict(v, &ref));
}

static double each(u64 start, u64 n)
{
	return (double)(spent() - start) / (double)n;
}

static u64 pages_free(struct sg_vol *v)
{
	struct sg_statfs s;

	CHECK_OK(sg_statfs(v, &s));
	return s.free_pages;
}

/* Settles once a second, like a kernel. The measured time includes this. */
static void settle_sometimes(struct sg_vol *v)
{
	static u64 last;

	if (sg_ticks() - last < SETTLE_NS)
		return;
	sg_settle(v);
	last = sg_ticks();
}

/* Prints the cost of many names, which are all in the root directory or in @dirs directories. */
static void names_made(struct sg_vol *v, const struct sg_iref *dir, u64 dirs, const char *what)
{
	u64 free_before = pages_free(v), start = spent(), i;
	struct sg_iref root = root_of(v);

	for (i = 0; i < scale; i++) {
		make_file(v, dirs ? &dir[i % dirs] : &root, i, SG_S_IFREG | 0600);
		settle_sometimes(v);
	}
	say(what, "ns", each(start, scale));
	say(dirs ? "files.bytes" : "names.bytes", "bytes",
	    (double)(free_before - pages_free(v)) * SG_PAGE / (double)scale);
}

static void names_found(struct sg_vol *v, const struct sg_iref *dir, u64 dirs, const char *what)
{
	struct rng rng = { 1 };
	u64 n = SG_MIN(scale, 1000000ULL), start = spent(), k;
	struct sg_iref root = root_of(v);

	for (k = 0; k < n; k++) {
		u64 i = rng_below(&rng, scale);

		look_up(v, dirs ? &dir[i % dirs] : &root, i, 0);
	}
	say(what, "ns", each(start, n));
}

static void names_removed(struct sg_vol *v, const struct sg_iref *dir, u64 dirs, const char *what)
{
	struct sg_iref root = root_of(v);
	u64 start = spent(), i;

	for (i = 0; i < scale; i++) {
		remove_file(v, dirs ? &dir[i % dirs] : &root, i);
		settle_sometimes(v);
	}
	say(what, "ns", each(start, scale));
}

static void holdings(struct sg_vol *v)
{
	struct sg_holding out[SG_SLOTS];
	u64 start = spent();

	sg_holdings(v, out);
	say("files.holdings", "ms", (double)(spent() - start) / 1e6);
}

static void rejoin(struct sg_vol *v, struct disk *d)
{
	u64 start;

	sg_leave(v);
	check(d, "files.check", "files.check-memory");
	start = spent();
	join(v, d);
	say("files.join", "us", (double)(spent() - start) / 1e3);
}

static void measure_files(void)
{
	u64 dirs = SG_MAX(scale / PER_DIR, 1ULL), i;
	struct disk d = disk_new(SG_MAX(scale * 1024, GIB) & ~(SG_CHUNK - 1));
	struct sg_iref *dir = calloc(dirs, sizeof(*dir));
	struct sg_iref root;
	struct sg_vol v;
	u64 before = mem_now;

	make(&d);
	join(&v, &d);
	root = root_of(&v);
	CHECK(dir);
	for (i = 0; i < dirs; i++)
		dir[i] = make_file(&v, &root, i, SG_S_IFDIR | 0700);
	names_made(&v, dir, dirs, "files.create");
	names_found(&v, dir, dirs, "files.lookup");
	holdings(&v);
	say("files.memory", "KiB", (double)(mem_now - before) / 1024);
	rejoin(&v, &d);
	names_removed(&v, dir, dirs, "files.remove");
	sg_leave(&v);
	free(dir);
	disk_end(&d);
}

/* --- names: all in one directory ------------------------------------------------------------ */

static bool count_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 next)
{
	(void)name;
	(void)len;
	(void)ino;
	(void)type;
	(void)next;
	++*(u64 *)ctx;
	return true;
}

static void listed(struct sg_vol *v, const struct sg_iref *root)
{
	u64 n = 0, cookie = 0, start = spent();

	CHECK_OK(sg_readdir(v, root, &cookie, count_name, &n));
	say("names.list", "ns", each(start, n));
	CHECK_EQ(n, scale);
}

static void absent(struct sg_vol *v, const struct sg_iref *root)
{
	u64 n = SG_MIN(scale, 1000000ULL), start = spent(), i;

	for (i = 0; i < n; i++)
		look_up(v, root, scale + i, -ENOENT);
	say("names.absent", "ns", each(start, n));
}

static void measure_names(void)
{
	struct disk d = disk_new(SG_MAX(scale * 1024, GIB) & ~(SG_CHUNK - 1));
	struct sg_iref root;
	struct sg_vol v;

	make(&d);
	join(&v, &d);
	root = root_of(&v);
	names_made(&v, NULL, 0, "names.create");
	names_found(&v, NULL, 0, "names.lookup");
	absent(&v, &root);
	listed(&v, &root);
	names_removed(&v, NULL, 0, "names.remove");
	sg_leave(&v);
	disk_end(&d);
}

/* --- systems: several on one volume --------------------------------------------------------- */

struct member {
	struct sg_vol v;
	struct sg_iref root, dir, file;
	u64 maintained, settled;
};

static void maintain(struct member *m, u64 now)
{
	if (now - m->maintained >= SG_MAINTAIN_MS * 1000000ULL) {
		CHECK(sg_maintain(&m->v) >= 0);
		m->maintained = now;
	}
	if (now - m->settled >= SETTLE_NS) {
		sg_settle(&m->v);
		m->settled = now;
	}
}

/* Does the periodic work of all systems by wall-clock time, like a kernel. */
static void maintain_all(struct member *m, u64 n)
{
	u64 now = sg_ticks(), i;

	for (i = 0; i < n; i++)
		maintain(&m[i], now);
}

static void join_all(struct member *m, struct disk *d)
{
	u64 before = mem_now, start = 0, i;

	for (i = 0; i < scale; i++) {
		maintain_all(m, i);
		start = spent();
		join(&m[i].v, d);
		if (i + 1 == scale)
			say("systems.join", "us", (double)(spent() - start) / 1e3);
		m[i].v.maintained = true;
		m[i].root = root_of(&m[i].v);
		m[i].dir = make_file(&m[i].v, &m[i].root, i, SG_S_IFDIR | 0700);
		m[i].file = make_file(&m[i].v, &m[i].dir, i, SG_S_IFREG | 0600);
		test_fill(&m[i].v, &m[i].file, 0, SG_PAGE);
	}
	say("systems.memory", "KiB",
	    ((double)(mem_now - before) / (double)scale + sizeof(struct sg_vol)) / 1024);
}

/* Measures reads of one system, while the others are only joined. */
static void one_reads(struct member *m)
{
	static u8 buf[SG_PAGE];
	u64 start = spent(), i;

	for (i = 0; i < 10 * OPS; i++)
		CHECK_EQ(sg_read(&m->v, &m->file, 0, buf, SG_PAGE), SG_PAGE);
	say("systems.read", "ns", each(start, 10 * OPS));
}

/*
 * Measures creates. The systems create in turn, each in its own directory or all in one. All
 * systems do their periodic work meanwhile.
 */
static void all_create(struct member *m, bool together, const char *what)
{
	u64 start = spent(), i;

	for (i = 0; i < OPS; i++) {
		struct member *who = &m[i % scale];
		const struct sg_iref *dir = together ? &m[0].dir : &who->dir;

		make_file(&who->v, dir, scale + i, SG_S_IFREG | 0600);
		remove_file(&who->v, dir, scale + i);
		maintain_all(m, scale);
	}
	say(what, "ns", each(start, OPS));
}

/* Measures the work of all systems for one epoch, which each acknowledges immediately. */
static void epochs(struct member *m)
{
	u64 first = sg_get(&m->v, SG_HOT(epoch)), start, i;
	const u64 n = 100;

	start = spent();
	while (sg_get(&m->v, SG_HOT(epoch)) < first + n) {
		for (i = 0; i < scale; i++)
			CHECK(sg_acknowledge(&m[i].v) >= 0);
		sg_epoch_push(&m->v);
	}
	say("systems.epoch", "us", each(start, n) / 1e3);
	start = spent();
	for (i = 0; i < n * scale; i++)
		CHECK(sg_watch(&m[i % scale].v) >= 0);
	say("systems.watch", "us", each(start, n * scale) / 1e3);
}

/*
 * Leaves the largest possible work of a dead system: a record of maximum size in each of its
 * journals. The record's words are in a page of the system's own file, so replay changes no other
 * data.
 */
static void fill_journals(struct member *m)
{
	struct sg_run run;
	unsigned int i, k;

	CHECK_OK(sg_walk(&m->v, &m->file, 0, 1, &run));
	for (i = 0; i < m->v.sb.areas; i++) {
		struct sg_area *a = sg_at(&m->v, sg_area_off(&m->v, (unsigned int)m->v.slot, i));
		u64 head = SG_AREA_HEAD((u64)m->v.incarnation, SG_AREA_WORDS);

		for (k = 0; k < SG_AREA_WORDS; k++)
			a->word[k] = (struct sg_word){ run.off + 8 * k, k };
		a->crc = sg_crc32c(sg_crc32c(~0u, &head, 8), a->word, sizeof(a->word));
		a->head = head;
	}
}

/* Measures a recovery: the last system dies, and the first one recovers it. */
static void one_dies(struct member *m)
{
	struct member *dead = &m[scale - 1];
	unsigned int slot = (unsigned int)dead->v.slot, areas = dead->v.sb.areas;
	u32 incarnation = dead->v.incarnation;
	u64 replays = m->v.stat.replays, start;

	fill_journals(dead);
	sg_abandon(&dead->v);
	CHECK_OK(sg_fence_slot(&m->v, slot, incarnation));
	start = spent();
	sg_recover_all(&m->v);
	say("systems.recover", "us", (double)(spent() - start) / 1e3);
	CHECK_EQ(m->v.stat.replays - replays, areas);
}

static void measure_systems(void)
{
	struct member *m = calloc(scale, sizeof(*m));
	struct disk d = disk_new(4 * GIB);
	u64 i;

	CHECK(m && scale <= SG_SLOTS);
	make(&d);
	join_all(m, &d);
	one_reads(m);
	all_create(m, false, "systems.create-apart");
	all_create(m, true, "systems.create-together");
	epochs(m);
	if (scale > 1)
		one_dies(m);
	for (i = 0; i < (scale > 1 ? scale - 1 : 1); i++)
		sg_leave(&m[i].v);
	check(&d, "systems.check", "systems.check-memory");
	free(m);
	disk_end(&d);
}

/* -------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*measure)(void);
} modes[] = {
	{ "size", measure_size }, { "files", measure_files },
	{ "names", measure_names }, { "systems", measure_systems },
};

int main(int argc, char **argv)
{
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	scale = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	for (i = 0; scale && i < SG_ARRAY_SIZE(modes); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].measure();
		return 0;
	}
	fprintf(stderr, "usage: scale size GIB | files N | names N | systems N\n");
	return 2;
}
