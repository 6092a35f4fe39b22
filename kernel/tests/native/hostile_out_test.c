// SPDX-License-Identifier: Apache-2.0
/*
 * stargatectl get, get --tar, cat and ls on hostile volumes: a file that maps one page everywhere,
 * and directories with two names each. The tools finish soon, write no more bytes than the volume
 * has, and report the damage by their exit status.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "test.h"

#define SIZE	SG_VOLUME_MIN
#define LARGE	(64ULL << 20)
#define DEEP	40
#define FILES	60
#define MANY	100000u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY	"true"		/* a sanitizer's shadow memory alone exceeds the limit */
#else
#define MEMORY	"ulimit -v 524288"
#endif

static char line[2 * PATH_MAX];
static char dir[] = "/tmp/sg-hostile-out.XXXXXX";
static char ctl[PATH_MAX];
static struct tvol t;

/* --- running the tool ----------------------------------------------------------------------- */

static void find_tool(void)
{
	const char *tools = getenv("SG_TOOLS");
	char own[PATH_MAX] = "";

	if (!tools) {
		CHECK(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
		*strrchr(own, '/') = 0;
	}
	snprintf(ctl, sizeof(ctl), "%.4000s%s/stargatectl", tools ?: own, tools ? "" : "/../tools");
	if (*ctl != '/') {
		CHECK(realpath(ctl, own));
		snprintf(ctl, sizeof(ctl), "%.4000s", own);
	}
}

/* Checks that the command exits with status 1 within 20 s, without a signal, and reports @what. */
static void fails(const char *what, const char *arguments)
{
	test_note("%s", arguments);
	snprintf(line, sizeof(line), "%s; timeout 20 %s %s 2>err", MEMORY, ctl, arguments);
	CHECK_EQ(system(line), 1 << 8);
	snprintf(line, sizeof(line), "grep -q '%s' err", what);
	if (system(line)) {
		CHECK(system("cat err >&2") >= 0);
		test_fail(__FILE__, __LINE__, "%s: the output does not contain '%s'", arguments, what);
	}
	test_counted();
}

static u64 stored, inodes;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	(void)type;
	(void)at;
	stored += (u64)st->st_blocks * 512;
	inodes++;
	return 0;
}

static void count(const char *path)
{
	stored = inodes = 0;
	CHECK_OK(nftw(path, count_one, 50, FTW_PHYS));
}

static void store_volume(void)
{
	int fd = open("v.img", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, t.mem, t.size), t.size);
	close(fd);
	test_unmap(t.mem, t.size);
}

/* --- one page mapped everywhere ------------------------------------------------------------- */

static u64 page_of(const struct sg_iref *pool, u64 n)
{
	struct sg_run run;

	CHECK_OK(sg_walk_bad(&t.v, pool, n, 1, &run));
	CHECK(run.off);
	return run.off;
}

static u64 *table_at(u64 off)
{
	memset(t.mem + off, 0, SG_PAGE);
	return (u64 *)(t.mem + off);
}

/* Makes a file of 64 TiB, in which every second page is the same page. */
static void forge_file(void)
{
	static u8 bytes[5 * SG_PAGE];
	struct sg_iref pool, file;
	struct sg_inode *in;
	u64 page[5];
	unsigned int level, i;

	tvol_make(&t, SIZE);
	pool = test_create(&t.v, &t.root, "pool", S_IFREG | 0600);
	file = test_create(&t.v, &t.root, "large", S_IFREG | 0600);
	memset(bytes, 'x', sizeof(bytes));
	CHECK_EQ(sg_write(&t.v, &pool, 0, bytes, sizeof(bytes), 1), sizeof(bytes));
	for (i = 0; i < 5; i++)
		page[i] = page_of(&pool, i);
	tvol_leave(&t);
	for (level = 1; level <= 4; level++) {
		u64 *table = table_at(page[level]);

		for (i = 0; i < 512; i += level == 1 ? 2 : 1)
			table[i] = (TEST_PHYS + page[level - 1]) |
				   (level == 1 ? SG_PTE_LEAF : SG_PTE_TABLE);
	}
	in = (void *)(t.mem + file.off);
	in->size = SG_FILE_MAX;
	in->table = SG_ROOT((TEST_PHYS + page[4]) | SG_PTE_TABLE, 4);
	store_volume();
}

static void test_file(void)
{
	forge_file();
	fails("maps more than the volume has", "get v.img /large out");
	count("out");
	CHECK(stored <= 2 * SIZE);
	fails("maps more than the volume has", "get --tar v.img /large - >out.tar");
	count("out.tar");
	CHECK(stored <= 2 * SIZE);
	fails("maps more than the volume has", "cat v.img /large >out.cat");
	CHECK_OK(system("head -c 100000000 out.cat | tr -d '\\0' | wc -c >n; test $(cat n) -le 33554432"));
	CHECK_OK(system("rm -rf out*"));
}

/* --- directories with two names ------------------------------------------------------------- */

static void forge_tree(void)
{
	struct sg_iref at, next, file;
	unsigned int i;
	char name[20];

	tvol_make(&t, SIZE);
	at = t.root;
	for (i = 0; i < DEEP; i++) {
		next = test_create(&t.v, &at, "one", S_IFDIR | 0700);
		test_forge_name(&t.v, &at, "other", next.ino, S_IFDIR >> 12);
		at = next;
	}
	file = test_create(&t.v, &at, "file", S_IFREG | 0600);
	test_fill(&t.v, &file, 0, 1 << 20);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "again-%u", i);
		test_forge_name(&t.v, &at, name, file.ino, S_IFREG >> 12);
	}
	tvol_leave(&t);
	store_volume();
}

static void test_tree(void)
{
	forge_tree();
	fails("has two names", "get -r v.img / out");
	count("out");
	CHECK(inodes <= DEEP + 2);
	CHECK(stored < 4 << 20);
	fails("has two names", "get --tar v.img / - >out.tar");
	count("out.tar");
	CHECK(stored < 4 << 20);
	fails("has two names", "ls -r v.img >out.ls");
	count("out.ls");
	CHECK(stored < 1 << 20);
}

/* --- an inode file that maps one page everywhere --------------------------------------------- */

/*
 * As many inodes as a volume can have, all in one page, each with the same table, in which every
 * second page is present. The list of bad pages is full.
 */
static void forge_inodes(void)
{
	static u8 bytes[6 * SG_PAGE];
	struct sg_inode *sys, rec = { .mode = 1ULL << 32 | S_IFREG | 0600, .size = LARGE };
	struct sg_iref pool;
	u64 page[6], *table;
	unsigned int i;

	tvol_make(&t, LARGE);
	pool = test_create(&t.v, &t.root, "pool", S_IFREG | 0600);
	memset(bytes, 'x', sizeof(bytes));
	CHECK_EQ(sg_write(&t.v, &pool, 0, bytes, sizeof(bytes), 1), sizeof(bytes));
	for (i = 0; i < 6; i++)
		page[i] = page_of(&pool, i);
	for (i = 0; i < SG_BAD_MAX; i++)
		CHECK(sg_bad_add(&t.v, LARGE / 2 + i * 2 * SG_PAGE, SG_PAGE) >= 0);
	tvol_leave(&t);
	table = table_at(page[1]);
	for (i = 0; i < 512; i += 2)
		table[i] = (TEST_PHYS + page[0]) | SG_PTE_LEAF;
	table = table_at(page[2]);
	for (i = 0; i < 512; i++)
		table[i] = (TEST_PHYS + page[1]) | SG_PTE_TABLE;
	rec.table = SG_ROOT((TEST_PHYS + page[2]) | SG_PTE_TABLE, 2);
	for (i = 0; i < SG_INODES_PER_PAGE; i++)
		memcpy(t.mem + page[3] + i * SG_INODE_SIZE, &rec, sizeof(rec));
	table = table_at(page[4]);
	for (i = 0; i < 512; i++)
		table[i] = (TEST_PHYS + page[3]) | SG_PTE_LEAF;
	table = table_at(page[5]);
	for (i = 0; i < 512; i++)
		table[i] = (TEST_PHYS + page[4]) | SG_PTE_TABLE;
	sys = (void *)(t.mem + SG_HOT(sys) + SG_SYS_INODES * sizeof(struct sg_inode));
	sys->table = SG_ROOT((TEST_PHYS + page[5]) | SG_PTE_TABLE, 2);
	sys->size = LARGE;
	*(u64 *)(t.mem + SG_HOT(inodes)) = LARGE / SG_INODE_SIZE;
	store_volume();
}

static void test_inodes(void)
{
	forge_inodes();
	fails("damaged; run fsck", "bad v.img >out.bad");
	fails("damaged; run fsck", "-j bad v.img >out.bad");
}

/* --- many names: memory depends on their lengths, not on the longest possible name ------------ */

static void test_many(void)
{
	struct sg_iref at, file;
	unsigned int i;
	char name[20];

	tvol_make(&t, LARGE);
	at = test_create(&t.v, &t.root, "many", S_IFDIR | 0700);
	file = test_create(&t.v, &at, "file", S_IFREG | 0600);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%u", i);
		test_forge_name(&t.v, &at, name, file.ino, S_IFREG >> 12);
	}
	tvol_leave(&t);
	store_volume();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* the volume has 64 MiB of names */
	snprintf(line, sizeof(line), "ulimit -v 98304; timeout 60 %s ls v.img /many >names", ctl);
	test_note("%s", line);
	CHECK_OK(system(line));
	snprintf(line, sizeof(line), "test $(wc -l <names) -eq %u", MANY + 1);
	CHECK_OK(system(line));
#endif
}

int main(void)
{
	find_tool();
	CHECK(mkdtemp(dir));
	CHECK_OK(chdir(dir));
	test_file();
	test_tree();
	test_inodes();
	test_many();
	CHECK_OK(chdir("/"));
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	CHECK_OK(system(line));
	return test_done();
}
