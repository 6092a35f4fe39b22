// SPDX-License-Identifier: Apache-2.0
/* The undamaged volumes, and the changes that inputs make to them. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fuzz.h"
#include "sem/sem.h"

#define PAGES_MAX	64
#define INODES		40	/* most pages of a kind that changes can name */
#define COPIES		(FUZZ_SIZE - SG_PAGE + offsetof(struct sg_last, sys))

/* The pages of one kind of structure, which changes and references name by number. */
struct places {
	u64 page[PAGES_MAX];
	unsigned int n;
};

static struct image {
	int fd;
	u64 incarnation;
	struct places table, dir, xattr, sem;
} images[2];	/* clean, crashed */

static u8 *mem;

/* Prints a log line if FUZZ_TALK is set, for the analysis of a failing input. */
void fuzz_say(const char *line)
{
	if (getenv("FUZZ_TALK"))
		fprintf(stderr, "%s\n", line);
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	fuzz_say(line);
}

/* --- their contents ------------------------------------------------------------------------- */

static void xattr(struct sg_vol *v, const struct sg_iref *f, const char *name, u32 len)
{
	static u8 value[SG_XATTR_VALUE_MAX];

	CHECK_OK(sg_xattr_set(v, f, SG_XATTR_USER, name, (u32)strlen(name), value, len, 0, 1));
}

/* The files get inode numbers from 2 on, in this order. fuzz_use.c uses the names. */
static void populate(struct sg_vol *v, const struct sg_iref *root)
{
	struct sg_iref dir, many, f;
	char name[80];
	unsigned int i;

	dir = test_create(v, root, "dir", S_IFDIR | 0755);
	many = test_create(v, root, "many", S_IFDIR | 0755);
	test_create(v, &dir, "sub", S_IFDIR | 0700);
	f = test_create(v, root, "one", S_IFREG | 0644);		/* a single page */
	test_fill(v, &f, 0, 3000);
	f = test_create(v, root, "table", S_IFREG | 0644);
	test_fill(v, &f, 0, 50000);
	xattr(v, &f, "small", 30);
	/* a large leaf and some more */
	f = test_create(v, &dir, "large", S_IFREG | 0644);
	test_fill(v, &f, 0, SG_CHUNK + 9000);
	f = test_create(v, &dir, "sparse", S_IFREG | 0644);		/* tables of all levels */
	test_fill(v, &f, 8192, 5000);
	test_fill(v, &f, 1ULL << 40, 5000);
	xattr(v, &f, "big", 20000);
	test_symlink(v, root, "short", 30);
	test_symlink(v, root, "long", 2000);
	CHECK_OK(sg_link(v, &f, root, "link", 4, 1));
	test_create(v, root, "fifo", S_IFIFO | 0600);
	for (i = 0; i < 150; i++) {
		sprintf(name, "a-name-of-some-length-so-that-a-bucket-holds-few-%u", i);
		test_create(v, &many, name, S_IFREG | 0600);
	}
}

/*
 * Leaves deferred frees of every kind, like a system that dies with open files and pages that it
 * has not reclaimed.
 */
static void leave_deferred(struct sg_vol *v, const struct sg_iref *root)
{
	struct sg_iref dir = test_lookup(v, root, "dir"), f, d;
	unsigned int i;
	char name[40];

	f = test_create(v, root, "gone", S_IFREG | 0600);
	test_fill(v, &f, 0, 3 << 20);
	test_fill(v, &f, 1ULL << 32, 10000);
	xattr(v, &f, "x", 9000);
	CHECK_OK(sg_unlink(v, root, "gone", 4, 1));
	CHECK_OK(sg_evict(v, &f));
	d = test_create(v, &dir, "gone", S_IFDIR | 0700);
	for (i = 0; i < 60; i++) {
		sprintf(name, "%u-%s", i, "some-name-of-a-good-length");
		f = test_create(v, &d, name, S_IFREG | 0600);
		CHECK_OK(sg_unlink(v, &d, name, (u32)strlen(name), 1));
		CHECK_OK(sg_evict(v, &f));
	}
	CHECK_OK(sg_rmdir(v, &dir, "gone", 4, 1));
	CHECK_OK(sg_evict(v, &d));
	f = test_create(v, root, "open", S_IFREG | 0600);
	test_fill(v, &f, 0, 100000);
	CHECK_OK(sg_unlink(v, root, "open", 4, 1));
}

/*
 * Makes shared semaphores. One system dies with open objects and held locks. Another system has
 * closed its objects: some of them have no name any more, and some have no other user.
 */
static void make_objects(struct sg_vol *v, bool crashed)
{
	static struct sg_sem_caller c;
	unsigned int i;
	char name[12];

	CHECK_OK(sg_sem_enter(v, 1, 2, "fuzz", &c));
	for (i = 0; i < FUZZ_OBJECTS; i++) {
		struct sg_sem_new new = test_object(i, i % 5 == 4, i & 1, 1 + i);
		struct sg_sem sem;

		sprintf(name, "%u", i);
		CHECK_OK(sg_sem_create(v, name, (u32)strlen(name), &new, true, i & 2, &sem));
		if (new.type == SG_SEM_MUTEX)
			CHECK_OK(sg_sem_lock(v, &sem, &c, 0));
		else if (new.type == SG_SEM_RWLOCK)
			CHECK_OK(sg_sem_read_lock(v, &sem, &c, 0));
		if (i % 7 == 6)
			CHECK_OK(sg_sem_unlink(v, name, (u32)strlen(name), SG_SEM_ANY));
		if (!crashed || i % 3 == 2)
			sg_sem_close(v, &sem);
	}
	if (!crashed)
		sg_sem_exit(v, &c);
}

/* --- where their structures are ------------------------------------------------------------- */

static void place(struct places *p, u64 off)
{
	if (p->n < PAGES_MAX)
		p->page[p->n++] = off;
}

static void find_tables(struct image *img, const struct sg_vol *v, u64 off, unsigned int level)
{
	u64 i, next;

	place(&img->table, off);
	for (i = 0; level > 1 && i < SG_TABLE_ENTRIES; i++)
		if (sg_entry_kind(v, sg_get(v, off + 8 * i), level, &next) == SG_ENTRY_TABLE)
			find_tables(img, v, next, level - 1);
}

static void find_dir(struct image *img, const struct sg_vol *v, u64 word)
{
	u64 off = word & ~(SG_PAGE - 1), i;

	if (!word || img->dir.n >= PAGES_MAX)
		return;
	for (i = 0; i < img->dir.n; i++)
		if (img->dir.page[i] == off)
			return;
	place(&img->dir, off);
	if ((word & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		for (i = 0; i < 512; i++)
			find_dir(img, v, sg_get(v, off + 8 * i));
}

static void find_places(struct image *img, const struct sg_vol *v)
{
	struct sg_iref ref = sg_sys_ref(SG_SYS_INODES);
	u64 ino, root, off;

	for (ino = 0; ino < INODES; ino++) {
		if (ino && sg_iref(v, ino, &ref))
			continue;
		root = sg_iget(v, &ref, table);
		if (!ino || sg_is_reg(sg_iget(v, &ref, mode))) {
			if (sg_root_kind(v, root, &off) == SG_ENTRY_TABLE)
				find_tables(img, v, off, SG_ROOT_HEIGHT(root));
		} else if (sg_is_dir(sg_iget(v, &ref, mode))) {
			find_dir(img, v, root);
		}
		if (sg_iget(v, &ref, xattr))
			place(&img->xattr, sg_iget(v, &ref, xattr));
	}
	CHECK(img->table.n && img->dir.n > 3 && img->xattr.n > 1);
}

/* Finds all pages of the file of semaphores, except the data of rings, which no kernel reads. */
static void find_objects(struct image *img, const struct sg_vol *v)
{
	const struct sg_iref file = sg_sem_file();
	struct sg_run run;
	u64 page;

	for (page = 0; page < SG_SEM_RINGS_PAGE; page += run.off ? 1 : run.pages) {
		CHECK_OK(sg_walk(v, &file, page, SG_SEM_RINGS_PAGE - page, &run));
		if (run.off)
			place(&img->sem, run.off);
	}
	CHECK(img->sem.n > 10);
}

static void make_image(struct image *img, bool crashed)
{
	struct tvol t;

	tvol_make(&t, FUZZ_SIZE);
	populate(&t.v, &t.root);
	if (crashed)
		leave_deferred(&t.v, &t.root);
	make_objects(&t.v, crashed);
	find_places(img, &t.v);
	find_objects(img, &t.v);
	img->incarnation = sg_get(&t.v, SG_HOT(incarnation));
	if (crashed)
		tvol_crash(&t);
	else
		tvol_leave(&t);
	test_clean(t.mem, t.size);
	img->fd = memfd_create("fuzz", MFD_CLOEXEC);
	CHECK(img->fd >= 0);
	CHECK_EQ(write(img->fd, t.mem, t.size), t.size);
	test_unmap(t.mem, t.size);
}

/* --- changes -------------------------------------------------------------------------------- */

static u64 *word_at(u64 off)
{
	return (u64 *)(mem + (off & ~7ULL) % FUZZ_SIZE);
}

static u64 in_places(const struct places *p, u16 index)
{
	return p->page[(index >> 9) % p->n] + (index & 511) * 8;
}

/* The superblock before any change. Like the engine, the fuzzer uses only a checked superblock. */
static struct sg_super victim;

static u64 inode_word(u16 index)
{
	u64 ino = (index >> 5) % INODES, off = SG_HOT(sys);
	struct sg_vol v = { .base = mem, .size = FUZZ_SIZE, .sb = victim, .slot = -1 };
	struct sg_iref ref;

	sg_bad_watch(&v);
	if (ino && !sg_iref(&v, ino, &ref))
		off = ref.off;
	return off + (index & 31) * 8;
}

/* Returns the offset of the word that a change applies to. */
static u64 place_of(const struct image *img, const struct sg_super *sb, const struct fuzz_change *c)
{
	u64 i = c->index;

	switch (c->class) {
	case FZ_SUPER:
		/* the copies of system words behind the backup superblock */
		if (i & 0x4000)
			return COPIES + i % (SG_SYS_COUNT * sizeof(struct sg_sys_copy) / 8) * 8;
		return i % 64 * 8 + (i & 0x8000 ? FUZZ_SIZE - SG_PAGE : 0);
	case FZ_HOT:
		return SG_PAGE + i % 512 * 8;
	case FZ_SLOT:
		return sb->slot_off + i % (SG_SLOTS * sizeof(struct sg_slot) / 8) * 8;
	case FZ_AREA:
		return sb->journal_off + i % (8 * 512) * 8;
	case FZ_LEDGER:
		return sb->ledger_off + i % (2 * 512) * 8;
	case FZ_HINT:
		return sb->hint_off + i % 512 * 8;
	case FZ_CHUNK:
		return sb->chunk_off + i % (FUZZ_SIZE / SG_CHUNK * 16) * 8;
	case FZ_INODE:
		return inode_word(c->index);
	case FZ_TABLE:
		return in_places(&img->table, c->index);
	case FZ_DIR:
		return in_places(&img->dir, c->index);
	case FZ_XATTR:
		return in_places(&img->xattr, c->index);
	case FZ_SEM:
		return in_places(&img->sem, c->index);
	default:
		return i * 8 + (c->value >> 56) % 32 * (SG_CHUNK / 4);
	}
}

/* Returns a word that refers to some structure, in one of the valid forms. */
static u64 reference(const struct image *img, const struct sg_super *sb, u64 value)
{
	const struct places *all[] = { &img->table, &img->dir, &img->xattr };
	const struct places *p = all[value % 3];
	u64 off = p->page[(value >> 8) % p->n], n = value >> 16;

	switch (value >> 4 & 15) {
	case 0:
		return off;
	case 1:
		return (sb->phys + off) | SG_PTE_LEAF;
	case 2:
		return (sb->phys + off) | SG_PTE_TABLE;
	case 3:
		return (sb->phys + (off & ~(SG_CHUNK - 1))) | SG_PTE_LEAF_HUGE;
	case 4:
		return SG_ROOT((sb->phys + off) | SG_PTE_TABLE, n & 7);
	case 5:
		return off | SG_DIR_ENTRY_BUCKET;
	case 6:
		return off | SG_DIR_ENTRY_INDEX;
	case 7:
		return SG_LEDGER_ENTRY(n & 7, off >> SG_PAGE_SHIFT, n >> 3 & 0x3ff, 0);
	case 8:
		return SG_LEDGER_ENTRY(SG_LEDGER_INODE, n % INODES, 0, 0);
	case 9:
		return SG_REF(n % INODES, n >> 8 & 0xff, n >> 16 & 15);
	case 10:
		return FUZZ_SIZE - SG_PAGE + (n & 0xfff);
	case 11:
		return (sb->phys + FUZZ_SIZE + (n & 0xff) * SG_PAGE) | SG_PTE_LEAF;
	case 12:
		return sb->phys | SG_PTE_TABLE;
	case 13:
		return SG_LOCK_WORD(n & 63, img->incarnation);
	case 14:
		return SG_SLOT_WORD(n & 3, img->incarnation + (n >> 2 & 1));
	default:
		return n % INODES;
	}
}

/*
 * Adds a word to the record of an area, and makes the record valid, so that replay stores the word.
 */
static void add_to_record(const struct image *img, const struct sg_super *sb,
			  const struct fuzz_change *c)
{
	static const u8 targets[] = { FZ_HOT, FZ_SLOT, FZ_AREA, FZ_LEDGER, FZ_CHUNK, FZ_INODE, FZ_TABLE,
				      FZ_DIR, FZ_XATTR, FZ_RAW, FZ_SUPER, FZ_SEM };
	struct sg_area *a = (void *)(mem + sb->journal_off + (c->value & 1) * SG_PAGE);
	struct fuzz_change at = *c;
	unsigned int n = SG_AREA_COUNT(a->head);

	if (n >= SG_AREA_WORDS)
		return;
	at.class = targets[(c->value >> 1 & 0x7f) % sizeof(targets)];
	a->word[n].off = place_of(img, sb, &at) + (c->how & 0x80 ? c->value >> 60 : 0);
	a->word[n].val = c->how & 1 ? reference(img, sb, c->value >> 8) : c->value >> 8;
	a->head = SG_AREA_HEAD(1, n + 1);
}

static void change(const struct image *img, const struct sg_super *sb, const struct fuzz_change *c)
{
	u64 *w;

	if (c->class == FZ_RECORD) {
		add_to_record(img, sb, c);
		return;
	}
	w = word_at(place_of(img, sb, c));
	switch (c->how % FZ_HOWS) {
	case FZ_SET:
		*w = c->value;
		break;
	case FZ_XOR:
		*w ^= c->value;
		break;
	case FZ_ADD:
		*w += c->value;
		break;
	case FZ_REFER:
		*w = reference(img, sb, c->value);
		break;
	case FZ_BYTE:
		((u8 *)w)[c->value & 7] = (u8)(c->value >> 8);
		break;
	}
}

static void raw(const u8 *data, size_t size)
{
	while (size >= 5) {
		u32 off = (u32)(data[0] | data[1] << 8 | data[2] << 16 | (u32)data[3] << 24) % FUZZ_SIZE;
		size_t n = data[4];

		data += 5;
		size -= 5;
		n = n < size ? n : size;
		n = n < FUZZ_SIZE - off ? n : FUZZ_SIZE - off;
		memcpy(mem + off, data, n);
		data += n;
		size -= n;
	}
}

/* --- checksums, and changes that would only take time ---------------------------------------- */

static void mend_super(u64 off)
{
	struct sg_super *sb = (void *)(mem + off);

	sb->crc = 0;
	sb->crc = sg_crc32c(~0u, sb, sizeof(*sb));
}

static void mend_copy(unsigned int which)
{
	struct sg_sys_copy *copy = (void *)(mem + COPIES + which * sizeof(*copy));

	copy->check = sg_sys_check(which, copy->table, copy->records);
}

static void mend_record(u64 off)
{
	struct sg_area *a = (void *)(mem + off);
	u64 head = a->head;
	unsigned int n = SG_AREA_COUNT(head);

	if (head && n <= SG_AREA_WORDS)
		a->crc = sg_crc32c(sg_crc32c(~0u, &head, 8), a->word, n * sizeof(a->word[0]));
}

static void mend_xattr(u64 off)
{
	struct sg_xattr_head *h = (void *)(mem + off);
	u32 crc = sg_crc32c(sg_crc32c(~0u, &h->ino, 8), &h->size, 8);

	if (!h->pages && h->size <= SG_XATTR_INLINE)
		h->crc = sg_crc32c(crc, h->page, h->size);
}

static void mend(const struct image *img, const struct sg_super *sb)
{
	unsigned int i;

	mend_super(0);
	mend_super(FUZZ_SIZE - SG_PAGE);
	for (i = 0; i < SG_SYS_COUNT; i++)
		mend_copy(i);
	for (i = 0; i < 8; i++)
		mend_record(sb->journal_off + i * SG_PAGE);
	for (i = 0; i < img->xattr.n; i++)
		mend_xattr(img->xattr.page[i]);
}

/*
 * Completes unfinished changes, which would make readers wait 20 s each time without new results.
 */
static void end_changes(void)
{
	unsigned int i;

	for (i = 0; i < INODES; i++)
		*word_at(inode_word((u16)(i << 5 | offsetof(struct sg_inode, seq) / 8))) &= ~1ULL;
}

static void setup(void)
{
	sg_log_hook = quiet;
	make_image(&images[0], false);
	make_image(&images[1], true);
	mem = test_map(FUZZ_SIZE);
}

u8 *fuzz_volume(const u8 *data, size_t size, unsigned int classes)
{
	struct image *img;
	struct fuzz_change c;
	size_t at;

	if (!mem)
		setup();
	if (size < 2)
		return NULL;
	img = &images[data[0] & FUZZ_CRASHED ? 1 : 0];
	/* maps fresh private pages over the file: a reset costs only the pages with stores */
	CHECK(mmap(mem, FUZZ_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, img->fd, 0) == mem);
	memcpy(&victim, mem, sizeof(victim));
	if (data[0] & FUZZ_RAW)
		raw(data + 2, size - 2);
	for (at = 2; !(data[0] & FUZZ_RAW) && at + sizeof(c) <= size; at += sizeof(c)) {
		memcpy(&c, data + at, sizeof(c));
		c.class %= FZ_CLASSES;
		if (classes >> c.class & 1)
			change(img, &victim, &c);
	}
	if (!(data[0] & FUZZ_FLAWED))
		mend(img, &victim);
	end_changes();
	return mem;
}

/* --- changes during reads -------------------------------------------------------------------- */

#define RACE_WORDS	4096

static struct race {
	u64 n;
	struct {
		u64 *at, victim, hostile;
	} word[RACE_WORDS];
	bool stop;
} race;

/*
 * Notes the input's changes, the words in which the two volumes differ, and maps the undamaged
 * volume.
 */
u8 *fuzz_race_volume(const u8 *data, size_t size, unsigned int classes)
{
	static u64 *hostile;
	u64 *now, i;

	if (!fuzz_volume(data, size, classes))
		return NULL;
	if (!hostile)
		hostile = (u64 *)test_map(FUZZ_SIZE);
	memcpy(hostile, mem, FUZZ_SIZE);
	fuzz_volume(data, 2, 0);
	race.n = 0;
	for (now = (u64 *)mem, i = 0; i < FUZZ_SIZE / 8 && race.n < RACE_WORDS; i++) {
		if (now[i] == hostile[i])
			continue;
		race.word[race.n].at = &now[i];
		race.word[race.n].victim = now[i];
		race.word[race.n++].hostile = hostile[i];
	}
	return mem;
}

static void *race_on(void *arg)
{
	u64 i;

	(void)arg;
	while (!__atomic_load_n(&race.stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < race.n; i++)
			__atomic_store_n(race.word[i].at, race.word[i].hostile, __ATOMIC_RELAXED);
		for (i = 0; i < race.n; i++)
			__atomic_store_n(race.word[i].at, race.word[i].victim, __ATOMIC_RELAXED);
	}
	return NULL;
}

void fuzz_race(void (*look)(void *ctx), void *ctx)
{
	pthread_t id;

	race.stop = false;
	CHECK_OK(pthread_create(&id, NULL, race_on, NULL));
	look(ctx);
	__atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
	pthread_join(id, NULL);
}

void fuzz_protect(bool read_only)
{
	CHECK_OK(mprotect(mem, FUZZ_SIZE, read_only ? PROT_READ : PROT_READ | PROT_WRITE));
}
