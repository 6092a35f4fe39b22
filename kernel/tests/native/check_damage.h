/* SPDX-License-Identifier: Apache-2.0 */
/* A volume with each kind of structure, and functions that damage it, for check_test.c. */
#ifndef SG_CHECK_DAMAGE_H
#define SG_CHECK_DAMAGE_H

#include <sys/stat.h>
#include "internal.h"
#include "test.h"

#define SIZE		(32ULL << 20)
#define WIDE		1200		/* names, which take several index words and many buckets */
#define DEEP		8000
#define BIG_PAGES	(SG_CHUNK_PAGES + 40)

static struct tvol t;
static u8 *good;		/* the volume after its only system left cleanly */
static struct sg_vol look;	/* opened only to find words to damage */

/* --- the volume's contents ----------------------------------------------------------------- */

struct known {
	char path[64];
	u64 ino;
	u32 mode, crc;
	u64 size;
};
static struct known known[WIDE + 64];
static unsigned int nknown;

static void remember(const char *path, const struct sg_iref *ref)
{
	struct known *k = &known[nknown++];

	snprintf(k->path, sizeof(k->path), "%s", path);
	k->ino = ref->ino;
}

static struct sg_iref dir_of(struct sg_vol *v, const char *path, const char **name)
{
	struct sg_iref at;
	const char *slash;
	unsigned int type;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &at));
	while ((slash = strchr(path, '/'))) {
		CHECK_OK(sg_lookup(v, &at, path, (u32)(slash - path), &at, &type));
		path = slash + 1;
	}
	*name = path;
	return at;
}

static struct sg_iref make(const char *path, u32 mode, const char *target)
{
	struct sg_new new = { .mode = mode, .now = 7, .target = target,
			      .target_len = target ? (u32)strlen(target) : 0 };
	const char *name;
	struct sg_iref dir = dir_of(&t.v, path, &name), ref;

	CHECK_OK(sg_create(&t.v, &dir, name, (u32)strlen(name), &new, &ref));
	remember(path, &ref);
	return ref;
}

static void fill(const struct sg_iref *ref, u64 pos, u64 len)
{
	struct rng rng = { ref->ino * 1000 + pos };
	static u8 buf[BIG_PAGES * SG_PAGE];

	rng_fill(&rng, buf, len);
	CHECK_EQ(sg_write(&t.v, ref, pos, buf, len, 7), len);
}

static void make_file(const char *path, u64 len)
{
	struct sg_iref ref = make(path, S_IFREG | 0644, NULL);

	fill(&ref, 0, len);
}

static void set_xattr(const char *path, u32 len)
{
	const char *name;
	struct sg_iref dir = dir_of(&t.v, path, &name), ref = test_lookup(&t.v, &dir, name);
	static char value[60000];

	memset(value, 'v', sizeof(value));
	CHECK_OK(sg_xattr_set(&t.v, &ref, SG_XATTR_USER, "one", 3, value, len, 0, 7));
	CHECK_OK(sg_xattr_set(&t.v, &ref, SG_XATTR_USER, "two", 3, "x", 1, 0, 7));
}

static u32 contents(struct sg_vol *v, const struct sg_iref *ref, const struct sg_attr *a)
{
	static char buf[BIG_PAGES * SG_PAGE];
	s64 n = 0;

	if (S_ISREG(a->mode)) {
		n = sg_read(v, ref, 0, buf, SG_MIN(a->size, (u64)sizeof(buf)));
		if (a->size > sizeof(buf))
			n = sg_read(v, ref, a->size - 9000, buf, 9000);
	} else if (S_ISLNK(a->mode)) {
		n = sg_readlink(v, ref, buf, sizeof(buf));
	}
	CHECK(n >= 0);
	return sg_crc32c(0, buf, (size_t)n);
}

/* Makes so many long names of one file that the index gets a second level. */
static void many_names(void)
{
	struct sg_iref dir = make("links", S_IFDIR | 0755, NULL), file;
	char name[SG_NAME_MAX + 1];
	unsigned int i;

	file = make("linked", S_IFREG | 0644, NULL);
	memset(name, '.', sizeof(name));
	for (i = 0; i < DEEP; i++) {
		snprintf(name + 230, 20, "%u", i);
		CHECK_OK(sg_link(&t.v, &file, &dir, name, (u32)strlen(name), 7));
	}
}

/* Moves a directory into one with a larger inode number. */
static void early_moved(void)
{
	struct sg_iref root, moved;

	make("early", S_IFDIR | 0755, NULL);
	snprintf(known[nknown - 1].path, sizeof(known->path), "moved/early");
	make_file("early/file", 500);
	snprintf(known[nknown - 1].path, sizeof(known->path), "moved/early/file");
	moved = make("moved", S_IFDIR | 0755, NULL);
	CHECK_OK(sg_iref(&t.v, SG_INO_ROOT, &root));
	CHECK_OK(sg_rename(&t.v, &root, "early", 5, &moved, "early", 5, 0, NULL, 7));
}

static void populate(void)
{
	struct sg_iref ref;
	char path[64], target[400];
	unsigned int i;

	make_file("one", 100);			/* has no table: the root word is the leaf */
	make_file("small", 9 * SG_PAGE);
	make_file("other", 5 * SG_PAGE);
	make_file("big", BIG_PAGES * SG_PAGE);	/* has a large leaf and a table */
	ref = make("sparse", S_IFREG | 0600, NULL);
	fill(&ref, 3ULL << 30, 5000);		/* has three levels of tables */
	fill(&ref, 4000, 100);
	make("link", S_IFLNK | 0777, "one");
	memset(target, 'l', sizeof(target));
	target[sizeof(target) - 1] = 0;
	make("longlink", S_IFLNK | 0777, target);
	make("fifo", S_IFIFO | 0600, NULL);
	make("deep", S_IFDIR | 0755, NULL);
	make("deep/a", S_IFDIR | 0755, NULL);
	make("deep/a/b", S_IFDIR | 0755, NULL);
	make_file("deep/a/b/file", 3 * SG_PAGE);
	make_file("deep/a/file", 77);
	make("wide", S_IFDIR | 0755, NULL);
	for (i = 0; i < WIDE; i++) {
		snprintf(path, sizeof(path), "wide/name-of-some-length-%u", i);
		make_file(path, i % 3 ? 0 : 10 + i);
	}
	set_xattr("small", 20);
	set_xattr("other", 50000);
	set_xattr("deep", 30);
	early_moved();
	many_names();
}

static void learn(struct sg_vol *v)
{
	struct sg_attr attr;
	struct sg_iref ref;
	unsigned int i;

	for (i = 0; i < nknown; i++) {
		CHECK_OK(sg_iref(v, known[i].ino, &ref));
		CHECK_OK(sg_getattr(v, &ref, &attr));
		known[i].mode = attr.mode;
		known[i].size = attr.size;
		known[i].crc = contents(v, &ref, &attr);
	}
}

/* --- finding words to damage --------------------------------------------------------------- */

static u64 record(const char *path)
{
	unsigned int i;
	struct sg_iref ref;

	for (i = 0; i < nknown; i++)
		if (!strcmp(known[i].path, path))
			break;
	CHECK(i < nknown);
	CHECK_OK(sg_iref(&look, known[i].ino, &ref));
	return ref.off;
}

static u64 number(const char *path)
{
	u64 off = record(path);
	unsigned int i;

	for (i = 0; i < nknown; i++) {
		struct sg_iref ref;

		CHECK_OK(sg_iref(&look, known[i].ino, &ref));
		if (ref.off == off)
			return known[i].ino;
	}
	abort();
}

static u64 *word(u64 off)
{
	return (u64 *)(t.mem + off);
}

#define FIELD(path, field)	word(record(path) + offsetof(struct sg_inode, field))
#define HOT(field)		word(SG_HOT(field))
#define AREA(slot, area, field)	\
	word(sg_area_off(&look, slot, area) + offsetof(struct sg_area, field))

static u64 root_record(void)
{
	struct sg_iref ref;

	CHECK_OK(sg_iref(&look, SG_INO_ROOT, &ref));
	return ref.off;
}
#define ROOT(field)		word(root_record() + offsetof(struct sg_inode, field))

/* Follows the tables to the level 1 entry of a file's page. */
static u64 *entry(const char *path, u64 page)
{
	u64 root = *FIELD(path, table), off = (root & SG_PTE_ADDR) - look.sb.phys;
	unsigned int level = SG_ROOT_HEIGHT(root);

	for (; level > 1; level--)
		off = (*word(off + 8 * (page >> (9 * (level - 1)) & 511)) & SG_PTE_ADDR) -
		      look.sb.phys;
	return word(off + 8 * (page & 511));
}

/* Returns the first bucket of a directory whose index is a page, or its only bucket. */
static u64 index_of(const char *path)
{
	u64 w = path ? *FIELD(path, table) : *ROOT(table);

	CHECK((w & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX);
	return w & ~SG_DIR_ENTRY_KIND;
}

static struct sg_bucket *bucket_of(const char *path)
{
	u64 w = path ? *FIELD(path, table) : *ROOT(table);

	while ((w & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		w = *word(w & ~SG_DIR_ENTRY_KIND);
	return (void *)word(w & ~SG_DIR_ENTRY_KIND);
}

static unsigned int nth_name(const struct sg_bucket *b, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < SG_BUCKET_SLOTS; i++)
		if (b->slot[i] > SG_BUCKET_TOMB && !n--)
			return i;
	abort();
}

static struct sg_dirent *dirent_of(struct sg_bucket *b, unsigned int slot)
{
	return (void *)((u8 *)b + SG_BUCKET_OFF(b->slot[slot]));
}

/* Finds the bucket and the slot in which a directory names an inode. */
static unsigned int slot_naming(const char *dir, u64 ino, struct sg_bucket **b)
{
	unsigned int i;

	*b = bucket_of(dir);
	for (i = 0; i < SG_BUCKET_SLOTS; i++)
		if ((*b)->slot[i] > SG_BUCKET_TOMB && SG_REF_INO(dirent_of(*b, i)->ref) == ino)
			return i;
	test_fail(__FILE__, __LINE__, "the directory has no name for inode %" PRIu64, ino);
}

static u64 *map_word(u64 off)
{
	u64 page = off >> SG_PAGE_SHIFT;

	return word(sg_chunk_off(&look, page / SG_CHUNK_PAGES) + offsetof(struct sg_chunk, map) +
		    page % SG_CHUNK_PAGES / 64 * 8);
}

static u64 place_of(const char *path, u64 page)
{
	return (*entry(path, page) & SG_PTE_ADDR) - look.sb.phys;
}

/* --- damages ------------------------------------------------------------------------------- */

static void primary(void) { t.mem[offsetof(struct sg_super, chunks)] ^= 1; }
static void backup(void) { t.mem[SIZE - SG_PAGE + 9] ^= 1; }
static void future_lock(void) { FIELD("small", lock)[0] = SG_LOCK_WORD(3, 1000); }
static void wild_lock(void) { *HOT(rename_lock) = 0xffff; }
static void chunk_lock(void) { *word(sg_chunk_off(&look, 2)) = SG_LOCK_WORD(0, 77777); }
static void errors_seen(void) { *HOT(errors) = 3; }
static void odd_seq(void) { *FIELD("small", seq) |= 1; }
static void bad_slot(void) { *word(sg_slot_off(&look, 9)) = 99; }
static void old_incarnation(void) { *word(sg_slot_off(&look, 5)) = SG_SLOT_WORD(0, 4000); }
static void left_transaction(void) { *AREA(7, 0, head) = SG_AREA_HEAD(1, 2); }

static void many_inodes(void) { *HOT(inodes) = 1ULL << 40; }
static void few_inodes(void) { *HOT(inodes) = 3; }
static void inode_blocks(void) { *HOT(sys[SG_SYS_INODES].blocks) += 5; }

/* Returns the word of the inode file's only table that names the page of inode @ino. */
static u64 *inode_entry(u64 ino)
{
	u64 root = *HOT(sys[SG_SYS_INODES].table);

	CHECK_EQ(SG_ROOT_HEIGHT(root), 1);
	return word((root & SG_PTE_ADDR) - look.sb.phys + 8 * (ino / SG_INODES_PER_PAGE));
}
static void inode_hole(void)
{
	/* the page of inodes in the middle of /wide's files */
	*inode_entry(known[nknown - 100].ino) = 0xdead000;
}
static void inode_end(void) { *inode_entry(*HOT(inodes) - 1) = 0; }
static void inode_start(void) { *inode_entry(SG_INO_ROOT) = 0xdead000; }

/* The root word of the inode file, and its copy. */
#define SYS_ROOT	(*HOT(sys[SG_SYS_INODES].table))
static struct sg_sys_copy *sys_copy(unsigned int which)
{
	return &((struct sg_last *)word(SIZE - SG_PAGE))->sys[which];
}
static void seal(unsigned int which)
{
	struct sg_sys_copy *c = sys_copy(which);

	c->check = sg_sys_check(which, c->table, c->records);
}
static u64 inode_page_root(u64 ino)
{
	return SG_ROOT(*inode_entry(ino) & ~SG_PTE_NX, 0);
}
static void sys_root_zero(void) { SYS_ROOT = 0; }
static void sys_root_wild(void) { SYS_ROOT = 0x77; }
static void sys_root_file(void) { SYS_ROOT = *FIELD("small", table); }
static void sys_root_data(void) { SYS_ROOT = *FIELD("one", table); }
static void sys_root_part(void) { SYS_ROOT = inode_page_root(500); }
static void sys_root_first(void) { SYS_ROOT = inode_page_root(0); }
static void sys_root_locks(void) { *HOT(sys[SG_SYS_LOCKS].table) = *FIELD("small", table); }
static void sys_root_sems(void) { *HOT(sys[SG_SYS_SEMS].table) = 0x77; }
static void sys_size(void) { *HOT(sys[SG_SYS_SEMS].size) = 12; }
static void sys_mode(void) { *HOT(sys[SG_SYS_INODES].mode) = 0; }
static void sys_cutting(void)
{
	*HOT(sys[SG_SYS_INODES].genflags) = (u64)SG_FL_CUTTING << 32;
	inode_hole();		/* filling the hole must not truncate the file to its size of 0 */
}
static void copy_zero(void) { memset(sys_copy(0), 0, SG_SYS_COUNT * sizeof(*sys_copy(0))); }
static void copy_table(void) { sys_copy(SG_SYS_INODES)->table ^= SG_PAGE; }
static void copy_records(void) { sys_copy(SG_SYS_INODES)->records += 64; }
static void copy_check(void) { sys_copy(SG_SYS_LOCKS)->check ^= 1ULL << 40; }
/*
 * The copy is outdated, as after an older engine, which knows no copies, has grown the inode file.
 */
static void copy_old(void)
{
	sys_copy(SG_SYS_INODES)->table = inode_page_root(0);
	sys_copy(SG_SYS_INODES)->records = SG_INODES_PER_PAGE;
	seal(SG_SYS_INODES);
}
static void copy_astray(void)
{
	sys_copy(SG_SYS_INODES)->table = *FIELD("small", table);
	seal(SG_SYS_INODES);
}
static void copy_and_count(void) { copy_zero(); *HOT(inodes) = 77; }
static void sys_root_and_count(void) { sys_root_file(); *HOT(inodes) = 77; }

static void file_type(void) { *FIELD("small", mode) &= ~(u64)S_IFMT; }
static void dir_type(void) { *FIELD("deep", mode) |= 0170000; }
static void mode_bits(void) { *FIELD("deep/a/b", mode) |= 1 << 20; }
/*
 * The directory "moved" has a larger inode number than "moved/early", and names it. So the checker
 * handles the names in "moved/early" one pass later.
 */
static void typeless_both(void)
{
	*FIELD("moved/early", mode) |= 0177777;
	*FIELD("moved/early/file", mode) = 1ULL << 32 | 0176677;
}
/* The only name that records the type is in a directory that fsck rebuilds. */
static void typeless_rebuilt(void)
{
	*FIELD("deep/a/file", mode) = 1ULL << 32 | 0176677;
	*FIELD("deep/a", table) = 0;
}
static void flags(void) { *FIELD("small", genflags) |= 1ULL << 60; }
static void large_size(void) { *FIELD("small", size) = SG_FILE_MAX + 1; }
static void link_size(void) { *FIELD("link", size) = 5000; }
static void link_page(void) { *FIELD("longlink", table) = 12345; }
static void link_empty(void) { memset(t.mem + *FIELD("longlink", table), 0, SG_PAGE); }
static void link_cut(void) { t.mem[*FIELD("longlink", table) + 398] = 0; }
static void link_tail(void) { *FIELD("link", tail) = 'x'; }
static void fifo_data(void) { *FIELD("fifo", table) = *FIELD("small", table); }
static void file_links(void) { *FIELD("small", mode) += 3ULL << 32; }
static void dir_links(void) { *FIELD("deep", mode) -= 1ULL << 32; }
static void no_links(void) { *FIELD("small", mode) &= 0xffffffff; }
static void blocks(void) { *FIELD("big", blocks) = 1; }
static void dir_entries(void) { *FIELD("wide", entries) += 1; }
static void dir_size(void) { *FIELD("wide", size) = 1; }

static void entry_flags(void) { *entry("small", 2) |= SG_PTE_HUGE; }
static void entry_user(void) { *entry("small", 3) |= 4; }
static void entry_outside(void) { *entry("small", 4) += look.sb.size; }
static void entry_metadata(void)
{
	*entry("small", 4) = (look.sb.phys + look.sb.chunk_off) | SG_PTE_LEAF;
}
static void shared_page(void) { *entry("other", 1) = *entry("small", 1); }
static void shared_table(void)
{
	*FIELD("other", table) = *FIELD("small", table);
}
static void table_in_itself(void)
{
	u64 root = *FIELD("sparse", table), off = (root & SG_PTE_ADDR) - look.sb.phys;

	CHECK(SG_ROOT_HEIGHT(root) > 1);
	*word(off + 8) = (look.sb.phys + off) | SG_PTE_TABLE;
}
static void root_word(void) { *FIELD("small", table) |= 1ULL << 60; }
static void root_height(void) { *FIELD("small", table) |= 7ULL << SG_ROOT_HEIGHT_SHIFT; }

static u64 free_head(void)
{
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < look.sb.areas; i++)
			if (*AREA(slot, i, free_ino))
				return *AREA(slot, i, free_ino);
	abort();
}
static u64 *next_of(u64 ino)
{
	struct sg_iref ref;

	CHECK_OK(sg_iref(&look, ino, &ref));
	return word(ref.off + offsetof(struct sg_inode, next_free));
}
static void list_circle(void) { *next_of(*next_of(free_head())) = free_head(); }
static void list_used(void) { *next_of(free_head()) = number("small"); }
static void list_wild(void) { *next_of(free_head()) = 1ULL << 50; }
static void list_short(void) { *next_of(free_head()) = 0; }
static void list_twice(void) { *AREA(9, 1, free_ino) = free_head(); }
static void used_count(void) { *AREA(0, 1, used_inodes) += 4; }
static void free_count(void) { *AREA(1, 0, free_pages) -= 100; }
static void used_is_free(void)
{
	*map_word(place_of("small", 1)) &= ~(1ULL << (place_of("small", 1) >> 12 & 63));
}
static void meta_is_free(void) { *map_word(look.sb.ledger_off) = 0; }
static void free_is_used(void)
{
	u64 off;

	for (off = SIZE - 2 * SG_PAGE; *map_word(off) >> (off >> 12 & 63) & 1; off -= SG_PAGE)
		;
	*map_word(off) |= 1ULL << (off >> 12 & 63);
}

static void bucket_magic(void) { bucket_of("wide")->head ^= 1; }
static void bucket_owner(void) { bucket_of("wide")->dir = 4; }
static void bucket_depth(void) { bucket_of("wide")->head += 1ULL << 32; }
static void bucket_prefix(void) { bucket_of("wide")->prefix ^= 1ULL << 62; }
static void bucket_fill(void) { bucket_of("wide")->fill += 1 << 16; }
static void bucket_bytes(void) { bucket_of("wide")->fill &= ~0xffffULL; }
static void index_zero(void) { *word(index_of("wide")) = 0; }
static void index_wild(void) { *word(index_of("wide") + 8 * 500) = 0x1234567890abcdeULL; }
static void index_again(void) { *word(index_of("wide")) = *word(index_of("wide") + 8 * 511); }
static void index_itself(void)
{
	*word(index_of("wide") + 8 * 77) = index_of("wide") | SG_DIR_ENTRY_INDEX;
}
static void index_root(void) { *FIELD("wide", table) = SG_PAGE | SG_DIR_ENTRY_INDEX; }
static void index_page(void) { memset(word(index_of("wide")), 0x5a, SG_PAGE); }
/* Returns the first word in the root of /links' index that names another index page. */
static u64 *second_level(void)
{
	u64 off = index_of("links");
	unsigned int i;

	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		if ((*word(off + 8 * i) & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
			return word(off + 8 * i);
	test_fail(__FILE__, __LINE__, "the index has one level only");
}
static void second_wild(void) { *word(*second_level() & ~3ULL) ^= 1ULL << 50; }
static void second_is_first(void) { *second_level() = index_of("links") | SG_DIR_ENTRY_INDEX; }
static void second_is_bucket(void) { *second_level() ^= 3; }

static void root_bucket(void) { *ROOT(table) ^= 3; }

#define WIDE_BUCKET	struct sg_bucket *b = bucket_of("wide")
#define WIDE_NAME	WIDE_BUCKET; unsigned int i = nth_name(b, 2)
static void slot_offset(void) { WIDE_NAME; b->slot[i] |= 0xff0; }
static void slot_key(void) { WIDE_NAME; b->slot[i] ^= 1ULL << 40; }
static void name_key(void) { WIDE_NAME; dirent_of(b, i)->key ^= 1ULL << 9; }
static void name_len(void) { WIDE_NAME; dirent_of(b, i)->ref &= ~(0xffULL << 40); }
static void name_slash(void) { WIDE_NAME; dirent_of(b, i)->name[3] = '/'; }
static void name_nobody(void) { WIDE_NAME; dirent_of(b, i)->ref |= 0xfffffff; }
static void name_free(void)
{
	WIDE_NAME;
	struct sg_dirent *d = dirent_of(b, i);

	d->ref = SG_REF(free_head(), SG_REF_LEN(d->ref), SG_REF_TYPE(d->ref));
}
static void name_type(void) { WIDE_NAME; dirent_of(b, i)->ref ^= 3ULL << 48; }
static void name_of_root(void)
{
	WIDE_NAME;
	struct sg_dirent *d = dirent_of(b, i);

	d->ref = SG_REF(SG_INO_ROOT, SG_REF_LEN(d->ref), 4);
}
static void name_twice(void)
{
	WIDE_NAME;
	unsigned int k;

	for (k = i; b->slot[k % SG_BUCKET_SLOTS]; k++)
		;
	b->slot[k % SG_BUCKET_SLOTS] = b->slot[i];
	b->fill += 1 << 16;
	*FIELD("wide", entries) += 1;
}
static void name_unreachable(void)
{
	WIDE_BUCKET;
	unsigned int i, k;

	for (i = 0; ; i++) {	/* moves a name that is stored where its search begins */
		CHECK(i < SG_BUCKET_SLOTS);
		if (b->slot[i] <= SG_BUCKET_TOMB)
			continue;
		for (k = i + 2; k < i + 100; k++)
			if (!b->slot[k % SG_BUCKET_SLOTS] && !b->slot[(k - 1) % SG_BUCKET_SLOTS])
				break;
		if (k < i + 100)
			break;
	}
	b->slot[k % SG_BUCKET_SLOTS] = b->slot[i];
	b->slot[i] = 0;
}
static void lost_name(void)
{
	WIDE_NAME;

	b->slot[i] = SG_BUCKET_TOMB;
	b->fill += (1ULL << 32) - (1 << 16);
	*FIELD("wide", entries) -= 1;
}

static void end_name(const char *dir, const char *path)
{
	struct sg_bucket *b;
	unsigned int i = slot_naming(dir, number(path), &b);

	b->slot[i] = SG_BUCKET_TOMB;
	b->fill += (1ULL << 32) - (1 << 16);
	if (dir)
		*FIELD(dir, entries) -= 1;
	else
		*ROOT(entries) -= 1;
}
static void lost_file(void) { end_name("deep/a", "deep/a/file"); }
static void lost_dir(void) { end_name("deep", "deep/a"); }
static void lost_unlinked(void)
{
	end_name("deep/a", "deep/a/file");
	*FIELD("deep/a/file", mode) &= 0xffffffff;
}
static void lost_typeless(void)
{
	end_name("deep/a", "deep/a/file");
	*FIELD("deep/a/file", mode) &= ~(u64)S_IFMT;
}
static void parent(void) { *FIELD("deep/a", special) = number("wide"); }
static void root_parent(void) { *ROOT(special) = number("wide"); }
static void root_mode(void) { *ROOT(mode) = 0; }
static void root_zero(void) { memset(word(root_record()), 0, SG_INODE_SIZE); }
static void root_table(void) { *ROOT(table) = 0; }
static void dir_table(void) { *FIELD("wide", table) = 0; }

/* The name /deep/a/b/file becomes a name of /deep, and /deep loses its own name. */
static void circle(void)
{
	struct sg_bucket *b;
	unsigned int i = slot_naming("deep/a/b", number("deep/a/b/file"), &b);
	struct sg_dirent *d = dirent_of(b, i);

	d->ref = SG_REF(number("deep"), SG_REF_LEN(d->ref), 4);
	end_name(NULL, "deep");
}
static void second_name(void)
{
	struct sg_bucket *b;
	unsigned int i = slot_naming("deep/a/b", number("deep/a/b/file"), &b);
	struct sg_dirent *d = dirent_of(b, i);

	d->ref = SG_REF(number("deep/a"), SG_REF_LEN(d->ref), 4);
}

static struct sg_xattr_head *xattr_of(const char *path)
{
	return (void *)word(*FIELD(path, xattr));
}
static void xattr_crc(void) { xattr_of("small")->page[1] ^= 1; }
static void xattr_far(void) { xattr_of("other")->page[3] = 8; }
static void xattr_owner(void) { *FIELD("one", xattr) = *FIELD("small", xattr); }
static void xattr_wild(void) { *FIELD("small", xattr) = 77; }
static void xattr_size(void) { xattr_of("other")->size = 1ULL << 50; }

static u64 *deferred(void) { return word(sg_ledger_off(&look, 11) + 8 * 20); }
static void deferred_of_used(void)
{
	*deferred() = SG_LEDGER_ENTRY(SG_LEDGER_RUN, place_of("small", 2) >> SG_PAGE_SHIFT, 3, 0);
}
static void deferred_wild(void) { *deferred() = SG_LEDGER_ENTRY(SG_LEDGER_TABLE + 2, 1ULL << 39, 0, 0); }
static void deferred_of_table(void)
{
	u64 root = *FIELD("other", table);

	*deferred() = SG_LEDGER_ENTRY(SG_ROOT_HEIGHT(root),
			  ((root & SG_PTE_ADDR) - look.sb.phys) >> SG_PAGE_SHIFT, 0, 0);
}
static void deferred_of_nobody(void) { *deferred() = SG_LEDGER_ENTRY(SG_LEDGER_INODE, *HOT(inodes), 0, 0); }
static void deferred_of_none(void) { *deferred() = SG_LEDGER_ENTRY(SG_LEDGER_INODE, 0, 7, 0); }
static void deferred_of_dir(void)
{
	*deferred() = SG_LEDGER_ENTRY(SG_LEDGER_DIR, index_of("wide") >> SG_PAGE_SHIFT, 0, 0);
}
static void deferred_of_xattr(void)
{
	*deferred() = SG_LEDGER_ENTRY(SG_LEDGER_XATTR, *FIELD("other", xattr) >> SG_PAGE_SHIFT, 0, 0);
}
static void deferred_of_below(void)
{
	u64 root = *FIELD("sparse", table), off = (root & SG_PTE_ADDR) - look.sb.phys;

	/* a free page looks like a table, and its entries name pages of a file */
	memcpy(word(SIZE - 2 * SG_PAGE), word(off), SG_PAGE);
	*deferred() = SG_LEDGER_ENTRY(SG_ROOT_HEIGHT(root), SIZE / SG_PAGE - 2, 0, 0);
	*map_word(SIZE - 2 * SG_PAGE) |= 1ULL << ((SIZE / SG_PAGE - 2) & 63);
}
static void deferred_chain(void) { *word(sg_ledger_off(&look, 11)) = place_of("small", 0); }
static void deferred_chain_circle(void)
{
	u64 off = SIZE - 2 * SG_PAGE;

	*word(sg_ledger_off(&look, 11)) = off;
	memset(word(off), 0, SG_PAGE);
	*word(off) = off;
}
static u64 *deferred_head(void)
{
	return word(sg_area_off(&look, 9, 0) + offsetof(struct sg_area, deferred_ino));
}
static void deferred_far(void) { *deferred_head() = *HOT(inodes); }
static void deferred_unlisted(void) { *deferred_head() = number("small"); }
static void deferred_circle(void)
{
	*deferred_head() = number("small");
	*FIELD("small", deferred_next) = SG_DEFERRED_LINK(number("other"));
	*FIELD("other", deferred_next) = SG_DEFERRED_LINK(number("small"));
}
static void deferred_nowhere(void) { *FIELD("small", deferred_next) = SG_DEFERRED_LINK(0); }
/* Sets flags of an inode. It does not set the volume's feature bit; seal_feature() sets that. */
static void set_seal(u64 *genflags, u32 flags) { *genflags |= (u64)flags << 32; }
static void seal_feature(void)
{
	struct sg_super sb = look.sb;

	sb.ro_compat |= SG_RO_COMPAT_SEALS;
	sg_super_store(&look, 0, &sb);
	sg_super_store(&look, SIZE - SG_PAGE, &sb);
}
static void seal_unsaid(void) { set_seal(FIELD("small", genflags), SG_FL_SEALED); }
static void seal_of_dir(void)
{
	seal_feature();
	set_seal(FIELD("wide", genflags), SG_FL_SEALED);
}
static void seal_of_holes(void)
{
	seal_feature();
	set_seal(FIELD("sparse", genflags), SG_FL_SEALED | SG_FL_DIGEST);
}
static void seal_only_root(void)
{
	seal_feature();
	set_seal(FIELD("small", genflags), SG_FL_DIGEST);
}
static void cutting(void) { *FIELD("small", genflags) |= (u64)SG_FL_CUTTING << 32; }

/*
 * @safe: the repair can lose nothing, so preening does it.
 * @lost: paths that change, with all paths below them; separated by spaces.
 * @saved: the least number of files and directories that fsck moves to lost+found.
 */
static const struct damage {
	const char *name;
	void (*make)(void);
	bool safe;
	const char *lost;
	unsigned int saved;
} damages[] = {
#define DAMAGE(fn, ...)	{ #fn, fn, __VA_ARGS__ }
	DAMAGE(primary, true, "", 0),
	DAMAGE(backup, true, "", 0),
	DAMAGE(future_lock, true, "", 0),
	DAMAGE(wild_lock, true, "", 0),
	DAMAGE(chunk_lock, true, "", 0),
	DAMAGE(errors_seen, true, "", 0),
	DAMAGE(odd_seq, true, "", 0),
	DAMAGE(bad_slot, false, "", 0),
	DAMAGE(old_incarnation, true, "", 0),
	DAMAGE(left_transaction, true, "", 0),
	DAMAGE(many_inodes, false, "", 0),
	DAMAGE(few_inodes, false, "", 0),
	DAMAGE(inode_blocks, true, "", 0),
	DAMAGE(inode_hole, false, "@hole", 0),
	DAMAGE(inode_end, false, "links linked moved", 0),
	DAMAGE(inode_start, false, "one small other big sparse link longlink fifo deep wide", WIDE),
	DAMAGE(sys_root_zero, true, "", 0),
	DAMAGE(sys_root_wild, true, "", 0),
	DAMAGE(sys_root_file, true, "", 0),
	DAMAGE(sys_root_data, true, "", 0),
	DAMAGE(sys_root_part, true, "", 0),
	DAMAGE(sys_root_first, false, "", 0),
	DAMAGE(sys_root_and_count, false, "", 0),
	DAMAGE(sys_root_locks, false, "", 0),
	DAMAGE(sys_root_sems, true, "", 0),
	DAMAGE(sys_size, true, "", 0),
	DAMAGE(sys_mode, true, "", 0),
	DAMAGE(sys_cutting, false, "@hole", 0),
	DAMAGE(copy_zero, true, "", 0),
	DAMAGE(copy_table, true, "", 0),
	DAMAGE(copy_records, true, "", 0),
	DAMAGE(copy_check, true, "", 0),
	DAMAGE(copy_old, true, "", 0),
	DAMAGE(copy_astray, true, "", 0),
	DAMAGE(copy_and_count, false, "", 0),
	DAMAGE(file_type, false, "", 0),
	DAMAGE(dir_type, false, "", 0),
	DAMAGE(mode_bits, false, "", 0),
	DAMAGE(typeless_both, false, "", 0),
	DAMAGE(typeless_rebuilt, false, "", 0),
	DAMAGE(flags, false, "", 0),
	DAMAGE(seal_unsaid, false, "", 0),
	DAMAGE(seal_of_dir, false, "", 0),
	DAMAGE(seal_of_holes, false, "", 0),
	DAMAGE(seal_only_root, false, "", 0),
	DAMAGE(large_size, false, "small", 0),
	DAMAGE(link_size, false, "link", 0),
	DAMAGE(link_page, false, "longlink", 0),
	DAMAGE(link_empty, false, "longlink", 0),
	DAMAGE(link_cut, false, "longlink", 0),
	DAMAGE(link_tail, false, "link", 0),
	DAMAGE(fifo_data, false, "", 0),
	DAMAGE(file_links, true, "", 0),
	DAMAGE(dir_links, true, "", 0),
	DAMAGE(no_links, true, "", 0),
	DAMAGE(blocks, true, "", 0),
	DAMAGE(dir_entries, true, "", 0),
	DAMAGE(dir_size, true, "", 0),
	DAMAGE(entry_flags, false, "small", 0),
	DAMAGE(entry_user, false, "small", 0),
	DAMAGE(entry_outside, false, "small", 0),
	DAMAGE(entry_metadata, false, "small", 0),
	DAMAGE(shared_page, false, "other", 0),
	DAMAGE(shared_table, false, "other", 0),
	DAMAGE(table_in_itself, false, "", 0),
	DAMAGE(root_word, false, "small", 0),
	DAMAGE(root_height, false, "small", 0),
	DAMAGE(list_circle, true, "", 0),
	DAMAGE(list_used, true, "", 0),
	DAMAGE(list_wild, true, "", 0),
	DAMAGE(list_short, true, "", 0),
	DAMAGE(list_twice, true, "", 0),
	DAMAGE(used_count, true, "", 0),
	DAMAGE(free_count, true, "", 0),
	DAMAGE(used_is_free, false, "", 0),
	DAMAGE(meta_is_free, false, "", 0),
	DAMAGE(free_is_used, true, "", 0),
	DAMAGE(bucket_magic, false, "@bucket", 1),
	DAMAGE(bucket_owner, false, "@bucket", 1),
	DAMAGE(bucket_depth, false, "", 0),
	DAMAGE(bucket_prefix, false, "", 0),
	DAMAGE(bucket_fill, true, "", 0),
	DAMAGE(bucket_bytes, true, "", 0),
	DAMAGE(index_zero, false, "", 0),
	DAMAGE(index_wild, false, "", 0),
	DAMAGE(index_again, false, "", 0),
	DAMAGE(index_itself, false, "", 0),
	DAMAGE(index_root, false, "", 0),
	DAMAGE(index_page, false, "", 0),
	DAMAGE(second_wild, false, "", 0),
	DAMAGE(second_is_first, false, "", 0),
	DAMAGE(second_is_bucket, false, "", 0),
	DAMAGE(root_bucket, false, "", 0),
	DAMAGE(slot_offset, false, "@name", 1),
	DAMAGE(slot_key, false, "@name", 1),
	DAMAGE(name_key, false, "@name", 1),
	DAMAGE(name_len, false, "@name", 1),
	DAMAGE(name_slash, false, "@name", 1),
	DAMAGE(name_nobody, false, "@name", 1),
	DAMAGE(name_free, false, "@name", 1),
	DAMAGE(name_type, false, "", 0),
	DAMAGE(name_of_root, false, "@name", 1),
	DAMAGE(name_twice, false, "", 0),
	DAMAGE(name_unreachable, false, "", 0),
	DAMAGE(lost_name, false, "@name", 1),
	DAMAGE(lost_file, false, "deep/a/file", 1),
	DAMAGE(lost_dir, false, "deep/a", 1),
	DAMAGE(lost_unlinked, true, "deep/a/file", 0),
	DAMAGE(lost_typeless, false, "deep/a/file", 0),
	DAMAGE(parent, false, "", 0),
	DAMAGE(root_parent, false, "", 0),
	DAMAGE(root_mode, false, "", 0),
	DAMAGE(root_zero, false, "", 0),
	DAMAGE(root_table, false, "", 0),
	DAMAGE(dir_table, false, "", 0),
	DAMAGE(circle, false, "deep", 2),
	DAMAGE(second_name, false, "deep/a", 1),
	DAMAGE(xattr_crc, false, "", 0),
	DAMAGE(xattr_far, false, "", 0),
	DAMAGE(xattr_owner, false, "", 0),
	DAMAGE(xattr_wild, false, "", 0),
	DAMAGE(xattr_size, false, "", 0),
	DAMAGE(deferred_of_used, false, "", 0),
	DAMAGE(deferred_wild, false, "", 0),
	DAMAGE(deferred_of_table, false, "", 0),
	DAMAGE(deferred_of_nobody, false, "", 0),
	DAMAGE(deferred_of_none, false, "", 0),
	DAMAGE(deferred_of_dir, false, "", 0),
	DAMAGE(deferred_of_xattr, false, "", 0),
	DAMAGE(deferred_of_below, false, "", 0),
	DAMAGE(deferred_chain, false, "", 0),
	DAMAGE(deferred_chain_circle, false, "", 0),
	DAMAGE(deferred_far, true, "", 0),
	DAMAGE(deferred_unlisted, true, "", 0),
	DAMAGE(deferred_circle, true, "", 0),
	DAMAGE(deferred_nowhere, true, "", 0),
	DAMAGE(cutting, true, "", 0),
};
#define DAMAGES	(sizeof(damages) / sizeof(damages[0]))

#include "check_intact.h"

/* Makes the volume, notes its contents, and leaves it. */
static inline void make_volume(void)
{
	tvol_make(&t, SIZE);
	populate();
	tvol_leave(&t);
	good = test_map(SIZE);
	memcpy(good, t.mem, SIZE);
	CHECK_OK(sg_open(&look, good, SIZE, true, NULL));
	learn(&look);
}

static inline void drop_volume(void)
{
	test_unmap(t.mem, SIZE);
	test_unmap(good, SIZE);
}

#endif
