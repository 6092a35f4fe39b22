// SPDX-License-Identifier: Apache-2.0
/* The volume under attack, between canaries and inaccessible memory. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hostile.h"

#define CANARY	(256u << 10)
#define GUARD	SG_CHUNK

struct victim victim;
u8 *volume;
static int image = -1, work = -1;

/* --- its contents ----------------------------------------------------------------------------- */

/* The host's operations use these names (use.c). */
static void make_tree(struct sg_vol *v, const struct sg_iref *root)
{
	struct sg_iref dir = test_create(v, root, "dir", S_IFDIR | 0755);
	struct sg_iref many = test_create(v, root, "many", S_IFDIR | 0755), f;
	static u8 value[20000];
	char name[80];
	unsigned int i;

	test_create(v, &dir, "sub", S_IFDIR | 0700);
	f = test_create(v, root, "one", S_IFREG | 0644);
	test_fill(v, &f, 0, 3000);
	f = test_create(v, root, "table", S_IFREG | 0644);
	test_fill(v, &f, 0, 50000);
	CHECK_OK(sg_xattr_set(v, &f, SG_XATTR_USER, "small", 5, value, 30, 0, 1));
	f = test_create(v, &dir, "large", S_IFREG | 0644);
	test_fill(v, &f, 0, SG_CHUNK + 9000);
	f = test_create(v, &dir, "sparse", S_IFREG | 0644);
	test_fill(v, &f, 8192, 5000);
	test_fill(v, &f, 1ULL << 40, 5000);
	CHECK_OK(sg_xattr_set(v, &f, SG_XATTR_USER, "big", 3, value, sizeof(value), 0, 1));
	CHECK_OK(sg_link(v, &f, root, "link", 4, 1));
	test_symlink(v, root, "short", 30);
	test_symlink(v, root, "long", 2000);
	for (i = 0; i < 120; i++) {
		sprintf(name, "a-name-of-some-length-so-that-a-bucket-holds-few-%u", i);
		test_create(v, &many, name, S_IFREG | 0600);
	}
}

/* Leaves a dead system with deferred frees of all kinds, a file without a name, and locks. */
static void leave_behind(struct sg_vol *v, const struct sg_iref *root)
{
	const struct sg_userlock lock = {
		.kind = SG_USERLOCK_POSIX, .exclusive = true, .pid = 77, .owner = 1,
		.start = 10, .last = 20, .slot = -1,
	};
	struct sg_iref f = test_create(v, root, "gone", S_IFREG | 0600);
	static u8 value[9000];

	test_fill(v, &f, 0, 3 << 20);
	test_fill(v, &f, 1ULL << 32, 10000);
	CHECK_OK(sg_xattr_set(v, &f, SG_XATTR_USER, "x", 1, value, sizeof(value), 0, 1));
	CHECK_OK(sg_unlink(v, root, "gone", 4, 1));
	CHECK_OK(sg_evict(v, &f));
	f = test_create(v, root, "open", S_IFREG | 0600);
	test_fill(v, &f, 0, 100000);
	CHECK_OK(sg_userlock_set(v, &f, &lock, NULL, NULL));
	CHECK_OK(sg_unlink(v, root, "open", 4, 1));
	CHECK_OK(sg_lock(v, SG_HOT(rename_lock)));
}

static void make_sems(struct sg_vol *v)
{
	static struct sg_sem_caller c;
	unsigned int i;
	char name[12];

	CHECK_OK(sg_sem_enter(v, 1, 2, "victim", &c));
	for (i = 0; i < 14; i++) {
		struct sg_sem_new new = test_object(i, i % 5 == 4, i & 1, 1 + i);
		struct sg_sem sem;

		sprintf(name, "%u", i);
		CHECK_OK(sg_sem_create(v, name, (u32)strlen(name), &new, true, i & 2, &sem));
		if (new.type == SG_SEM_MUTEX)
			CHECK_OK(sg_sem_lock(v, &sem, &c, 0));
		if (i % 3 == 2)
			sg_sem_close(v, &sem);
	}
}

/* --- where its structures are ----------------------------------------------------------------- */

static void place(struct places *p, u64 off)
{
	if (p->n < H_PLACES)
		p->page[p->n++] = off;
}

static void find_tables(const struct sg_vol *v, u64 off, unsigned int level)
{
	u64 i, next;

	place(&victim.table, off);
	for (i = 0; level > 1 && i < SG_TABLE_ENTRIES; i++)
		if (sg_entry_kind(v, sg_get(v, off + 8 * i), level, &next) == SG_ENTRY_TABLE)
			find_tables(v, next, level - 1);
}

static void find_dir(const struct sg_vol *v, u64 word)
{
	u64 off = word & ~(SG_PAGE - 1), i;

	for (i = 0; i < victim.dir.n; i++)
		if (victim.dir.page[i] == off)
			return;
	if (!word || victim.dir.n == H_PLACES)
		return;
	place(&victim.dir, off);
	for (i = 0; (word & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX && i < 512; i++)
		find_dir(v, sg_get(v, off + 8 * i));
}

static void find_file(const struct sg_vol *v, const struct sg_iref *ref)
{
	u64 root = sg_iget(v, ref, table), off;

	if (sg_is_dir(sg_iget(v, ref, mode)) && ref->ino)
		find_dir(v, root);
	else if (sg_root_kind(v, root, &off) == SG_ENTRY_TABLE)
		find_tables(v, off, SG_ROOT_HEIGHT(root));
	if (sg_iget(v, ref, xattr))
		place(&victim.xattr, sg_iget(v, ref, xattr));
}

static void find_pages(const struct sg_vol *v, unsigned int which, u64 limit, struct places *p)
{
	const struct sg_iref file = sg_sys_ref(which);
	struct sg_run run;
	u64 page;

	find_file(v, &file);
	for (page = 0; page < limit; page += run.off ? 1 : run.pages) {
		CHECK_OK(sg_walk(v, &file, page, limit - page, &run));
		if (run.off)
			place(p, run.off);
	}
	CHECK(p->n);
}

static void find_places(const struct sg_vol *v)
{
	struct sg_iref ref;
	u64 ino;

	find_pages(v, SG_SYS_INODES, 16, &victim.inode);
	find_pages(v, SG_SYS_LOCKS, 1 << 15, &victim.lock);
	/* without the data of rings */
	find_pages(v, SG_SYS_SEMS, SG_SEM_RINGS_PAGE, &victim.sem);
	for (ino = 1; ino < 20; ino++)
		if (!sg_iref(v, ino, &ref))
			find_file(v, &ref);
	CHECK(victim.table.n && victim.dir.n > 3 && victim.xattr.n > 1);
}

/* --- memory ----------------------------------------------------------------------------------- */

static u8 canary_byte(u64 i)
{
	return (u8)(i * 151 ^ i >> 8);
}

static void put_canary(u8 *p)
{
	u64 i;

	for (i = 0; i < CANARY; i++)
		p[i] = canary_byte(i);
}

static void check_canary(const u8 *p, const char *where)
{
	u64 i;

	for (i = 0; i < CANARY; i++)
		if (p[i] != canary_byte(i))
			test_fail(__FILE__, __LINE__, "stored outside: %s the volume, byte %" PRIu64,
				  where, i);
	test_counted();
}

void volume_check_canaries(void)
{
	check_canary(volume - CANARY, "before");
	check_canary(volume + H_ROOM, "behind");
}

/* Canaries are in the same file as the volume, so that one mapping has all three. */
static void map_work(void)
{
	u64 len = H_ROOM + 2 * CANARY;
	u8 *p = mmap(NULL, len + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);

	work = memfd_create("hostile", MFD_CLOEXEC);
	CHECK(p != MAP_FAILED && work >= 0 && !ftruncate(work, (off_t)len));
	p += GUARD;
	CHECK(mmap(p, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, work, 0) == p);
	volume = p + CANARY;
	put_canary(p);
	put_canary(volume + H_ROOM);
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	if (getenv("HOSTILE_TALK"))
		fprintf(stderr, "%s\n", line);
}

void volume_setup(void)
{
	struct tvol t;

	sg_log_hook = quiet;
	tvol_make_in(&t, H_SIZE, H_ROOM);
	make_tree(&t.v, &t.root);
	leave_behind(&t.v, &t.root);
	make_sems(&t.v);
	find_places(&t.v);
	victim.sb = t.v.sb;
	victim.incarnation = (u32)sg_get(&t.v, SG_HOT(incarnation));
	tvol_crash(&t);
	test_clean(t.mem, t.size);
	image = memfd_create("image", MFD_CLOEXEC);
	CHECK(image >= 0);
	CHECK_EQ(write(image, t.mem, H_ROOM), H_ROOM);
	test_unmap(t.mem, t.size);
	map_work();
	volume_reset();
}

/* Maps fresh private pages over the image, so that a reset costs only the pages with stores. */
void volume_reset(void)
{
	CHECK(mmap(volume, H_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, image, 0) ==
	      volume);
}

void volume_reset_shared(void)
{
	CHECK(mmap(volume, H_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, work, CANARY) ==
	      volume);
	CHECK_EQ(pread(image, volume, H_ROOM, 0), H_ROOM);
}

/* --- after the attack ------------------------------------------------------------------------- */

static int check(enum sg_check_mode mode, struct sg_check_result *res)
{
	const struct sg_check_opts opts = { .mode = mode, .id = &test_identity, .force = true };

	memset(res, 0, sizeof(*res));
	return sg_check(volume, H_ROOM, &opts, res);
}

void volume_afterwards(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .label = "anew" };
	struct sg_check_result res;
	char why[200];
	struct sg_vol v;
	int err = check(SG_CHECK_REPAIR, &res);

	/*
	 * the checker's repairs must be complete, and it must report damage that it cannot repair
	 */
	if (!err && res.fixed == res.found) {
		err = check(SG_CHECK_ONLY, &res);
		if (err || res.found)
			test_fail(__FILE__, __LINE__, "the repaired volume still has damage: error %d, %" PRIu64 " findings" PRIu64 " found", err,
				  res.found);
		CHECK_OK(host_join(&v, false));
		sg_leave(&v);
	}
	CHECK_OK(sg_format(volume, H_SIZE, &opts, why));
	CHECK_OK(host_join(&v, false));
	sg_leave(&v);
	CHECK_OK(check(SG_CHECK_ONLY, &res));
	CHECK_EQ(res.found, 0);
	volume_check_canaries();
}
