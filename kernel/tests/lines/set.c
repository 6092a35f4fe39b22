// SPDX-License-Identifier: Apache-2.0
/* The volume and its systems, and the names of the objects to which lines belong. */
#include <sys/mman.h>
#include <sys/stat.h>
#include "lines.h"

struct lines_set lines;

static const struct sg_identity identity = {
	.name = "lines", .beat_ns = SG_MAINTAIN_MS * 1000000ULL,
};

void lines_play(unsigned int c)
{
	lines_core(c);
	lines_cpu = lines.threads ? c : 0;
}

static struct sg_iref make(unsigned int c, const struct sg_iref *dir, const char *name, u32 mode)
{
	struct sg_new new = { .mode = mode, .now = 1 };
	struct sg_iref ref;

	CHECK_OK(sg_create(lines_vol(c), dir, name, (u32)strlen(name), &new, &ref));
	return ref;
}

static void fill(unsigned int c, const struct sg_iref *ref)
{
	static const u8 bytes[16 * SG_PAGE];

	CHECK_EQ(sg_write(lines_vol(c), ref, 0, bytes, sizeof(bytes), 1), sizeof(bytes));
}

static void damaged(struct sg_vol *v, u64 ino, u64 off)
{
	test_fail(__FILE__, __LINE__, "damage reported by the system in slot %d: inode %" PRIu64
		  ", offset 0x%" PRIx64, v->slot, ino, off);
}

static void join(struct sg_vol **at)
{
	struct sg_vol *v = sg_alloc(sizeof(*v));

	CHECK(v);
	CHECK_OK(sg_open(v, lines.mem, LINES_SIZE, false, NULL));
	v->on_damage = damaged;
	CHECK_OK(sg_join(v, &identity, 0, false));
	v->maintained = v->freeze_watched = true;
	while (sg_space_mend_hints(v))
		;
	*at = v;
}

void lines_make(unsigned int n, bool threads)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .label = "lines", .areas = SG_AREAS_MAX };
	unsigned int c;
	char name[16], why[200] = "";

	lines.n = n;
	lines.threads = threads;
	lines.mem = test_map(LINES_SIZE);
	lines_play(0);
	if (sg_format(lines.mem, LINES_SIZE, &opts, why))
		test_fail(__FILE__, __LINE__, "sg_format: %s", why);
	for (c = 0; c < (threads ? 1 : n); c++) {
		lines_play(c);
		join(&lines.v[c]);
	}
	lines_play(0);
	CHECK_OK(sg_iref(lines.v[0], SG_INO_ROOT, &lines.root));
	lines.shared_dir = make(0, &lines.root, "shared", S_IFDIR | 0700);
	lines.shared = make(0, &lines.root, "file", S_IFREG | 0600);
	fill(0, &lines.shared);
	for (c = 0; c < n; c++) {
		lines_play(c);
		sprintf(name, "d%u", c);
		lines.dir[c] = make(c, &lines.root, name, S_IFDIR | 0700);
		lines.file[c] = make(c, &lines.dir[c], "file", S_IFREG | 0600);
		fill(c, &lines.file[c]);
	}
}

/* Ends the systems without leaving, like a crash, and frees their memory. */
void lines_drop(void)
{
	unsigned int c;

	for (c = 0; c < (lines.threads ? 1 : lines.n); c++) {
		sg_abandon(lines.v[c]);
		sg_free(lines.v[c]);
		lines.v[c] = NULL;
	}
	test_unmap(lines.mem, LINES_SIZE);
}

/* --- names ----------------------------------------------------------------------------------- */

#define FIELD(f)	{ #f, offsetof(struct sg_vol, f), sizeof(((struct sg_vol *)0)->f) }
static const struct {
	const char *name;
	size_t off, len;
} fields[] = {
	FIELD(base), FIELD(size), FIELD(sb), FIELD(slot), FIELD(beats), FIELD(shut_down),
	FIELD(settler), FIELD(still), FIELD(freezing), FIELD(opening), FIELD(ledger), FIELD(tx),
	FIELD(stat), FIELD(spin), FIELD(odd), FIELD(releases), FIELD(stuck), FIELD(held),
	FIELD(cursor), FIELD(hints_left),
};

/* a byte per page of the volume: whether the page has inode records */
static u8 *inode_page;

void lines_names_learn(void)
{
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	u64 pages = sg_get(lines.v[0], SG_HOT(inodes)) / SG_INODES_PER_PAGE, p, i;
	struct sg_run run;

	free(inode_page);
	inode_page = calloc(LINES_SIZE / SG_PAGE, 1);
	CHECK(inode_page);
	for (p = 0; p < pages; p += run.pages) {
		CHECK_OK(sg_walk(lines.v[0], &sys, p, pages - p, &run));
		for (i = 0; run.off && i < run.pages; i++)
			inode_page[run.off / SG_PAGE + i] = 1;
	}
}

/* Names the inode whose record has this offset: a known inode of the test, or "an inode". */
static void name_inode(u64 off, char *name)
{
	const char *whose = "an inode";
	unsigned int c;
	u64 rec = off & ~(SG_INODE_SIZE - 1ULL);

	for (c = 0; c < lines.n; c++)
		if (lines.dir[c].off == rec)
			whose = "own directory's inode";
		else if (lines.file[c].off == rec)
			whose = "own file's inode";
	if (lines.shared_dir.off == rec)
		whose = "shared directory's inode";
	if (lines.shared.off == rec)
		whose = "shared file's inode";
	sprintf(name, "%s, line %d", whose, (int)(off % SG_INODE_SIZE / 64));
}

static void name_data(u64 off, char *name)
{
	const struct sg_bucket *b = (const void *)(lines.mem + (off & ~(SG_PAGE - 1)));

	if (inode_page && inode_page[off / SG_PAGE])
		name_inode(off, name);
	else if ((u32)b->head == SG_BUCKET_MAGIC)
		sprintf(name, "a directory's bucket, %s", off % SG_PAGE < 64 ? "head" : "names");
	else
		strcpy(name, "a table, or data");
}

static void name_in_volume(u64 off, char *name)
{
	const struct sg_super *sb = &lines.v[0]->sb;

	if (off < SG_PAGE)
		strcpy(name, "superblock");
	else if (off < 2 * SG_PAGE)
		sprintf(name, "hot page, line %d", (int)(off % SG_PAGE / 64));
	else if (off < sb->journal_off)
		sprintf(name, "a slot, line %d", (int)(off % sizeof(struct sg_slot) / 64));
	else if (off < sb->ledger_off)
		sprintf(name, "an area's %s", off % SG_PAGE < 64 ? "head" : "words");
	else if (off < sb->hint_off)
		strcpy(name, "a ledger");
	else if (off < sb->chunk_off)
		strcpy(name, "hints");
	else if (off < sb->data_off)
		sprintf(name, "a chunk's %s", off % sizeof(struct sg_chunk) < 64 ? "lock" : "map");
	else
		name_data(off, name);
}

static void name_fields(size_t off, char *name)
{
	unsigned int i;

	strcpy(name, "sg_vol:");
	for (i = 0; i < SG_ARRAY_SIZE(fields); i++)
		if (fields[i].off < off + 64 && fields[i].off + fields[i].len > off &&
		    strlen(name) + strlen(fields[i].name) + 2 < LINES_NAME)
			sprintf(name + strlen(name), " %s", fields[i].name);
}

void lines_name(const void *line, char name[LINES_NAME])
{
	const u8 *at = line;
	unsigned int c;

	if (at >= lines.mem && at < lines.mem + LINES_SIZE) {
		name_in_volume((u64)(at - lines.mem), name);
		return;
	}
	strcpy(name, "private memory");
	for (c = 0; c < (lines.threads ? 1 : lines.n); c++) {
		const struct sg_vol *v = lines.v[c];

		if (at >= (const u8 *)v && at < (const u8 *)(v + 1))
			name_fields((size_t)(at - (const u8 *)v), name);
		else if (at >= (const u8 *)v->held && at < (const u8 *)(v->held + SG_HELD))
			strcpy(name, "sg_vol.held[]");
		else if (at >= (const u8 *)v->tx && at < (const u8 *)(v->tx + v->sb.areas))
			sprintf(name, "sg_vol.tx[], at %d", (int)((size_t)(at - (const u8 *)v->tx) %
								  sizeof(struct sg_tx)));
	}
}
