// SPDX-License-Identifier: Apache-2.0
/*
 * Growth in place when the growing system fails. It is fenced but continues, or it dies before the
 * other systems use the new size.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define MIB	(1ULL << 20)
#define ROOM	(64 * MIB)

static u8 *mem;
static char why[200];

static void make(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .chunk_cap = ROOM / SG_CHUNK };

	memset(mem, 0xa5, ROOM);
	CHECK_OK(sg_format(mem, 16 * MIB, &opts, why));
}

static void fill(struct tsys *s)
{
	struct sg_iref f = test_create(&s->v, &s->root, "full", S_IFREG | 0600);
	static u8 buf[1 << 16];
	u64 at = 0;
	s64 n;

	while ((n = sg_write(&s->v, &f, at, buf, sizeof(buf), 1)) > 0)
		at += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	CHECK(at > 16 * MIB);
}

/* --- a grower that is stopped, and continues -------------------------------------------------- */

static struct {
	struct tsys grower, next;
	u64 first;		/* offset of the first chunk table entry that the growth makes */
	u8 table[SG_PAGE];	/* the content of that table page after the next system's growth */
	bool stopped;
} late;

/* Acts as another system, which recovers the grower, makes the volume grow, and uses the new part.
 * */
static void on_new_chunk(void *addr, bool behind)
{
	if (behind || late.stopped || (u8 *)addr < mem + late.first)
		return;
	late.stopped = true;
	tsys_fence(&late.next, &late.grower);
	CHECK(sg_maintain(&late.next.v) >= 0);
	CHECK_OK(sg_grow(&late.next.v, 24 * MIB, 0, why));
	fill(&late.next);
	memcpy(late.table, mem + late.next.v.sb.chunk_off, SG_PAGE);
}

/* The grower is stopped before it makes the new chunks. They are in use when it continues. */
static void continues(void)
{
	int err;

	make();
	tsys_join(&late.grower, mem, ROOM, 1);
	tsys_join(&late.next, mem, ROOM, 2);
	late.first = sg_chunk_off(&late.next.v, 16 * MIB / SG_CHUNK);
	test_trap(mem + late.next.v.sb.chunk_off, on_new_chunk);
	err = sg_grow(&late.grower.v, 24 * MIB, 0, why);
	test_trap_end();
	CHECK(late.stopped);
	CHECK(!memcmp(late.table, mem + late.next.v.sb.chunk_off, SG_PAGE));
	CHECK_EQ(err, -EIO);
	tsys_die(&late.grower);
	tsys_leave(&late.next);
	test_clean(mem, ROOM);
}

/*
 * Tests the same while the grower stores the new last page. A file uses that page when the grower
 * continues.
 */
static void on_last_page(void *addr, bool behind)
{
	u8 *last = mem + 24 * MIB - SG_PAGE;

	if (behind || late.stopped || (u8 *)addr < last || (u8 *)addr >= last + SG_PAGE)
		return;
	late.stopped = true;
	tsys_fence(&late.next, &late.grower);
	CHECK_OK(sg_grow(&late.next.v, 32 * MIB, 0, why));
	fill(&late.next);
	memset(last, 0x77, SG_PAGE);
	memcpy(late.table, last, SG_PAGE);
}

#define STEP 256u /* bytes between two checks whether the system was fenced */

static void continues_at_the_end(void)
{
	u8 *last = mem + 24 * MIB - SG_PAGE;
	int err;

	make();
	late.stopped = false;
	tsys_join(&late.grower, mem, ROOM, 1);
	tsys_join(&late.next, mem, ROOM, 2);
	tsys_maintain(&late.next);
	test_trap(last, on_last_page);
	err = sg_grow(&late.grower.v, 24 * MIB, 0, why);
	test_trap_end();
	CHECK(late.stopped);
	CHECK(!memcmp(late.table + STEP, last + STEP, SG_PAGE - STEP));
	CHECK_EQ(err, -EIO);
	tsys_die(&late.grower);
	tsys_leave(&late.next);
	test_clean(mem, ROOM);
}

/* --- a joiner with less memory ---------------------------------------------------------------- */

/*
 * A grower died after its announcement, or after its commit. A joiner with less memory recovers it,
 * and uses the volume if that has not grown.
 */
static void joined_with_less(void)
{
	struct sg_identity id = tsys_identity(2, 1);
	struct tsys a, b;
	unsigned int grown;

	for (grown = 0; grown < 2; grown++) {
		make();
		tsys_join(&a, mem, ROOM, 1);
		CHECK_OK(sg_lock(&a.v, SG_HOT(grow_lock)));
		sg_store64(sg_at(&a.v, SG_HOT(grow)), SG_SIZE_WORD(24 * MIB, 3));
		if (grown)
			tsys_record(&a.v, 0, 0, SG_HOT(size), 24 * MIB);
		tsys_die(&a);
		if (grown) {
			CHECK_EQ(tsys_try(&b, mem, 16 * MIB, &id, 0, true), -EUCLEAN);
			CHECK(strstr(b.v.why, "cut short: the volume has grown to 24 MiB"));
			continue;
		}
		CHECK_OK(tsys_try(&b, mem, 16 * MIB, &id, 0, true));
		CHECK_EQ(SG_SIZE_OF(sg_get(&b.v, SG_HOT(grow))), 0);
		tsys_leave(&b);
		test_clean(mem, 16 * MIB);
	}
}

/* --- the backup superblock of a growth that did not come about -------------------------------- */

static void dies_before_commit(struct tsys *by, struct tsys *grower)
{
	struct sg_super *sb = (void *)(mem + 20 * MIB - SG_PAGE);

	CHECK_OK(sg_lock(&grower->v, SG_HOT(grow_lock)));
	sg_store64(sg_at(&grower->v, SG_HOT(grow)), SG_SIZE_WORD(20 * MIB, 3));
	memcpy(sb, mem, sizeof(*sb));
	sb->size = 20 * MIB;
	sb->chunks = 20 * MIB / SG_CHUNK;
	sb->generation++;
	sg_super_sign(sb);
	tsys_fence(by, grower);
	tsys_die(grower);
	sg_recover_all(&by->v);
	sg_settle(&by->v);
	CHECK_EQ(SG_SIZE_OF(sg_get(&by->v, SG_HOT(grow))), 0);
}

/*
 * A growth has failed, or its grower has died before the commit. The memory ends where the new part
 * would, and the first superblock is damaged: only the backup at the old end counts.
 */
static void not_grown(bool dies)
{
	struct tsys a, b;
	struct sg_probe p;

	make();
	tsys_join(&a, mem, ROOM, 1);
	tsys_join(&b, mem, ROOM, 2);
	if (dies) {
		dies_before_commit(&a, &b);
	} else {
		CHECK_EQ(sg_grow(&a.v, 20 * MIB, 300, why), -EAGAIN);
		tsys_leave(&b);
	}
	tsys_leave(&a);
	mem[100] ^= 1;
	sg_search(mem, 20 * MIB, &p);
	CHECK(p.valid && p.from_backup && p.sb.size == 16 * MIB);
	mem[100] ^= 1;
	tsys_join(&a, mem, ROOM, 1);
	CHECK_OK(sg_grow(&a.v, 22 * MIB, 0, why));
	tsys_leave(&a);
	test_clean(mem, ROOM);
}

int main(void)
{
	mem = test_map(ROOM);
	continues();
	continues_at_the_end();
	joined_with_less();
	not_grown(false);
	not_grown(true);
	return test_done();
}
