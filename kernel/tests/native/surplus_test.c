// SPDX-License-Identifier: Apache-2.0
/*
 * Free inode records move to the system that makes files. One system makes files and another one
 * removes them, as with a queue in a directory: the inode file does not grow with each file.
 * Systems that remove their own files take no records from each other.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	(64ULL << 20)
#define BATCH	400

static struct tsys a, b;

static void make(struct tsys *s, unsigned int n)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f;
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++)
		CHECK_OK(sg_create(&s->v, &s->root, name, (u32)sprintf(name, "f%u", i), &new, &f));
}

static void discard(struct tsys *s, unsigned int n)
{
	struct sg_iref f;
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		u32 len = (u32)sprintf(name, "f%u", i);

		CHECK_OK(sg_lookup(&s->v, &s->root, name, len, &f, NULL));
		CHECK_OK(sg_unlink(&s->v, &s->root, name, len, 2));
		CHECK_OK(sg_evict(&s->v, &f));
	}
}

static u64 records(void)
{
	return sg_get(&a.v, SG_HOT(inodes));
}

/*
 * During the first rounds, systems learn which system needs records. After that, the free records
 * are enough.
 */
static void one_makes_another_removes(struct tsys *from, struct tsys *to)
{
	unsigned int i, learn = test_amount(60, 100, 300), rounds = test_amount(100, 300, 3000);
	u64 before = 0;

	for (i = 0; i < learn + rounds; i++) {
		if (i == learn)
			before = records();
		make(from, BATCH);
		discard(to, BATCH);
	}
	CHECK(records() - before <= 4 * BATCH);
	CHECK_EQ(sg_used_inodes(&a.v), 1);
	printf("%u rounds of %u files: %u records, then %u\n", learn + rounds, BATCH,
	       (unsigned int)before, (unsigned int)records());
}

static u64 *word_of(struct tsys *s, unsigned int area, size_t field)
{
	return sg_at(&s->v, sg_area_off(&s->v, (unsigned int)s->v.slot, area) + field);
}
#define WORD(s, area, field)	word_of(s, area, offsetof(struct sg_area, field))

/* While each system removes its own files, no records move to the other system. */
static void each_its_own(void)
{
	unsigned int i, k;
	u64 heads[SG_AREAS_MAX];

	make(&b, BATCH);
	discard(&b, BATCH);
	for (k = 0; k < b.v.sb.areas; k++)
		heads[k] = *WORD(&b, k, free_ino);
	for (i = 0; i < 20; i++) {
		make(&a, BATCH / 2);
		discard(&a, BATCH / 2);
	}
	for (k = 0; k < b.v.sb.areas; k++)
		CHECK_EQ(*WORD(&b, k, free_ino), heads[k]);
}

static bool has_list(struct tsys *s)
{
	unsigned int k;

	for (k = 0; k < s->v.sb.areas; k++)
		if (*WORD(s, k, free_ino))
			return true;
	return false;
}

/*
 * Without a free page, a system also takes records of an area without a surplus. B uses its own
 * list first; the names of @dir fit into its existing page.
 */
static void full(void)
{
	struct sg_new file = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_new folder = { .mode = S_IFDIR | 0700, .now = 1 };
	struct sg_iref big, dir, f;
	unsigned int n, k;
	char name[16];
	u64 at, last;

	for (k = 0; k < a.v.sb.areas; k++) {	/* the sum of the counts stays the same */
		*WORD(&a, k, used_inodes) += 1 << 20;
		*(u64 *)sg_at(&a.v, sg_area_off(&a.v, 9, k) +
			      offsetof(struct sg_area, used_inodes)) -= 1 << 20;
	}
	CHECK_OK(sg_create(&b.v, &b.root, "big", 3, &file, &big));
	CHECK_OK(sg_create(&b.v, &b.root, "dir", 3, &folder, &dir));
	CHECK_OK(sg_create(&b.v, &dir, "0", 1, &file, &f));
	for (n = 0; has_list(&b); n++)
		CHECK_OK(sg_create(&b.v, &b.root, name, (u32)sprintf(name, "h%u", n), &file, &f));
	CHECK(has_list(&a));
	for (at = 0; !sg_allocate(&b.v, &big, at, 1); at++)
		;
	last = records();
	for (n = 0; n < 10; n++)
		CHECK_OK(sg_create(&b.v, &dir, name, (u32)sprintf(name, "g%u", n), &file, &f));
	CHECK_EQ(records(), last);
}

int main(void)
{
	u8 *mem = tsys_volume(SIZE);

	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	one_makes_another_removes(&a, &b);
	one_makes_another_removes(&b, &a);
	each_its_own();
	full();
	tsys_leave(&a);
	tsys_leave(&b);
	test_clean(mem, SIZE);
	return test_done();
}
