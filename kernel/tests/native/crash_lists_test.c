// SPDX-License-Identifier: Apache-2.0
/*
 * A repair of the lists of free inodes is interrupted, and no second repair follows. Two systems
 * mount the volume, and make files until all free records are used. Neither finds damage, and no
 * two files get the same number. A record that is being cleared always keeps its generation, and
 * its link to the next record on its list of deferred inodes.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include "crash.h"
#include "internal.h"
#include "systems.h"

#define FILES	40	/* files that each system makes and removes, to get free records */

static u8 *mem;
static u64 numbers;		/* records of the inode file */

static void quietly(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

static void repair(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &test_identity,
				      .force = true, .holding = test_end_lapses };
	struct sg_check_result res;

	CHECK_OK(sg_check(mem, TEST_SMALL, &opts, &res));
	CHECK(res.found && res.fixed == res.found);
}

/* Returns the list of one of the slot's areas, or NULL if all are empty. */
static u64 *list_of(struct sg_vol *v, unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < v->sb.areas; i++) {
		u64 *list = (u64 *)(mem + sg_area_off(v, slot, i) + offsetof(struct sg_area, free_ino));

		if (*list)
			return list;
	}
	return NULL;
}

static u64 *field_of(struct sg_vol *v, u64 ino, size_t field)
{
	struct sg_iref ref;

	CHECK_OK(sg_iref(v, ino, &ref));
	return (u64 *)(mem + ref.off + field);
}
#define FIELD(v, ino, name)	field_of(v, ino, offsetof(struct sg_inode, name))

/* --- lists of free inodes ------------------------------------------------------------------- */

static void make_files(struct tsys *s, struct sg_iref *ref)
{
	char name[20];
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%d-%u", s->v.slot, i);
		ref[i] = test_create(&s->v, &s->root, name, S_IFREG | 0600);
	}
}

static void remove_files(struct tsys *s, const struct sg_iref *ref)
{
	char name[20];
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%d-%u", s->v.slot, i);
		CHECK_OK(sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1));
		CHECK_OK(sg_evict(&s->v, &ref[i]));
	}
}

/* Makes lists of free inodes for two slots, and a free record on neither list. */
static void make_lists(void)
{
	struct sg_iref of_a[FILES], of_b[FILES];
	struct tsys a, b;
	struct sg_vol v;
	u64 first, *list;

	mem = tsys_volume(TEST_SMALL);
	tsys_join(&a, mem, TEST_SMALL, 1);
	tsys_join(&b, mem, TEST_SMALL, 2);
	make_files(&a, of_a);
	make_files(&b, of_b);
	remove_files(&a, of_a);
	remove_files(&b, of_b);
	tsys_leave(&b);
	tsys_leave(&a);
	test_clean(mem, TEST_SMALL);
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK(list_of(&v, 0) && list_of(&v, 1));
	list = list_of(&v, 0);
	first = *list;
	*list = *FIELD(&v, first, next_free);
	numbers = sg_get(&v, SG_HOT(inodes));
}

static void use(struct tsys *s, bool *taken)
{
	static unsigned int n;
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref ref;
	char name[20];

	snprintf(name, sizeof(name), "n%u", n++);
	CHECK_OK(sg_create(&s->v, &s->root, name, (u32)strlen(name), &new, &ref));
	if (ref.ino >= 2 * numbers)
		return;
	CHECK(!taken[ref.ino]);
	taken[ref.ino] = true;
}

static void judge_lists(struct crash *c, struct crash_image *img)
{
	struct sg_identity id = tsys_identity(1, 1);
	bool *taken = calloc(2 * numbers, 1);
	struct tsys a, b;
	u64 i;

	(void)c;
	CHECK(taken);
	CHECK_OK(tsys_try(&a, img->mem, TEST_SMALL, &id, 0, true));
	test_lapses_over(img->mem);
	tsys_join(&b, img->mem, TEST_SMALL, 2);
	for (i = 0; i < numbers / 2 + 2; i++) {
		use(&a, taken);
		use(&b, taken);
	}
	tsys_leave(&b);
	tsys_leave(&a);
	free(taken);
}

/* --- clearing a record ---------------------------------------------------------------------- */

static u64 at;			/* the record */
static u64 deferred_next;		/* the next record on its list */
static u32 generation;
static bool cleared;		/* the record was cleared in an image */

static void make_deferred(void)
{
	struct sg_inode *in;
	struct sg_iref ref, behind;
	struct tsys a;
	u64 head;

	mem = tsys_volume(TEST_SMALL);
	tsys_join(&a, mem, TEST_SMALL, 1);
	head = sg_area_off(&a.v, 0, 0) + offsetof(struct sg_area, deferred_ino);
	behind = test_create(&a.v, &a.root, "behind", S_IFREG | 0600);
	ref = test_create(&a.v, &a.root, "typeless", S_IFREG | 0600);
	CHECK_OK(sg_unlink(&a.v, &a.root, "behind", 6, 1));
	CHECK_OK(sg_unlink(&a.v, &a.root, "typeless", 8, 1));
	tsys_die(&a);
	at = ref.off;
	in = (void *)(mem + at);
	in->mode &= ~(u64)S_IFMT;
	generation = (u32)in->genflags;
	/* a list of deferred inodes, as when a ledger has no room for them */
	deferred_next = SG_DEFERRED_LINK(behind.ino);
	in->deferred_next = deferred_next;
	((struct sg_inode *)(mem + behind.off))->deferred_next = SG_DEFERRED_LINK(0);
	*(u64 *)(mem + head) = ref.ino;
}

/* After a kill, the stores are visible in their order. */
static void judge_cleared(struct crash *c, struct crash_image *img)
{
	const struct sg_inode *in = (void *)(img->mem + at);

	test_counted();
	if (in->mode)
		return;
	CHECK_EQ((u32)in->genflags, generation + 1);
	if (img == &c->killed && !cleared) {
		CHECK_EQ(in->deferred_next, deferred_next);
		cleared = true;
	}
}

/* --- a fenced system that continues ---------------------------------------------------------- */

static u64 *state;

static void not_free(const void *p)
{
	(void)p;
	if (SG_SLOT_STATE(*state) == SG_SLOT_FREE)
		*state = SG_SLOT_WORD(SG_SLOT_DEAD, 1);
}

/*
 * The slot is dead again whenever the repair has freed it, as if further systems died there. The
 * repair reports that it has not repaired this.
 */
static void test_never_recovered(void)
{
	struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .id = &test_identity,
				      .force = true, .holding = test_end_lapses };
	struct sg_check_result res;
	struct sg_vol v;

	mem = tsys_volume(TEST_SMALL);
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, true, NULL));
	state = (u64 *)(mem + sg_slot_off(&v, 9));
	*state = SG_SLOT_WORD(SG_SLOT_DEAD, 1);
	rec_at_store = not_free;
	CHECK_OK(sg_check(mem, TEST_SMALL, &opts, &res));
	rec_at_store = NULL;
	CHECK_EQ(res.found, res.fixed + 1);
	test_unmap(mem, TEST_SMALL);
}

/* -------------------------------------------------------------------------------------------- */

static void run(void (*judge)(struct crash *c, struct crash_image *img), u64 every)
{
	struct crash c;
	struct rec rec;

	crash_init(&c, mem, TEST_SMALL);
	c.judge = judge;
	c.every = every;
	rec_init(&rec, mem, TEST_SMALL, true);
	rec_to(&rec);
	repair();
	rec_to(NULL);
	crash_run(&c, rec.ev, rec.n);
	crash_end(&c);
	rec_free(&rec);
	CHECK(c.images > 0);
	printf("%" PRIu64 " images\n", c.images);
	crash_free(&c);
	test_unmap(mem, TEST_SMALL);
}

int main(void)
{
	sg_log_hook = quietly;
	make_lists();
	run(judge_lists, test_amount(9, 3, 1));
	make_deferred();
	run(judge_cleared, 1);
	CHECK(cleared);
	test_never_recovered();
	return test_done();
}
