// SPDX-License-Identifier: Apache-2.0
/*
 * Growth is interrupted after each of its stores. On an unused volume, death and power cut
 * interrupt it: the next mount finds the old size or the new one, and an intact volume. After
 * growth has returned, the next mount finds the new size. On a volume with a live system, that
 * system continues, recovers the dead one, and finds the same. On some images, recovery is
 * interrupted as well.
 */
#include <sys/stat.h>
#include "crash.h"
#include "internal.h"
#include "systems.h"

#define MIB	(1ULL << 20)
#define ROOM	(24 * MIB)
#define FROM	(16 * MIB)
#define TO	(20 * MIB)
#define LEN	(3 * MIB)

static u8 *mem;
static struct tsys grower, other;
static struct crash nested;
static struct rng rng;
/* number of images with the old size, and with the new size */
static u64 judged[2], recoveries, checked;

static void make(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	char why[200];

	memset(mem, 0xa5, ROOM);
	CHECK_OK(sg_format(mem, FROM, &opts, why));
}

/* Fills the volume before it grows, so that later allocations come from the new part. */
static void fill(struct tsys *s)
{
	struct sg_iref f = test_create(&s->v, &s->root, "full", S_IFREG | 0600);
	static u8 buf[1 << 16];
	u64 at = 0;
	s64 n;

	s->v.space_wait_ms = 1;
	memset(buf, 'x', sizeof(buf));
	while ((n = sg_write(&s->v, &f, at, buf, sizeof(buf), 1)) > 0)
		at += (u64)n;
	CHECK_EQ(n, -ENOSPC);
	CHECK(at > 14 * MIB);
}

static void look_at_old(struct sg_vol *v, const struct sg_iref *root)
{
	struct sg_iref f = test_lookup(v, root, "full");
	u8 buf[8];
	u64 at;

	for (at = 0; at < 14 * MIB; at += MIB / 4) {
		CHECK_EQ(sg_read(v, &f, at, buf, 8), 8);
		CHECK(!memcmp(buf, "xxxxxxxx", 8));
	}
}

/* Makes a file that fits in the new part only. */
static void use_new(struct sg_vol *v, const struct sg_iref *root)
{
	bool grown = sg_size(v) == TO;
	struct sg_iref f = test_create(v, root, "new", S_IFREG | 0600);
	static u8 buf[LEN], got[LEN];

	CHECK(grown || sg_size(v) == FROM);
	memset(buf, 'n', LEN);
	if (sg_write(v, &f, 0, buf, LEN, 1) == (s64)LEN) {
		CHECK(grown);
		CHECK_EQ(sg_read(v, &f, 0, got, LEN), LEN);
		CHECK(!memcmp(buf, got, LEN));
	} else {
		CHECK(!grown);
	}
	judged[grown]++;
}

/* Checks that growth is complete. */
static void is_finished(struct sg_vol *v)
{
	struct sg_super sb;

	CHECK_EQ(SG_SIZE_OF(sg_get(v, SG_HOT(grow))), 0);
	CHECK(sg_super_read(v, 0, sg_size(v), &sb));
	CHECK(sg_super_read(v, sg_size(v) - SG_PAGE, sg_size(v), &sb));
}

static void left(struct sg_vol *v, struct crash_image *img)
{
	sg_leave(v);
	test_clean(img->mem, ROOM);
	CHECK_OK(sg_open(v, img->mem, ROOM, true, NULL));
}

/* --- on an unused volume ---------------------------------------------------------------------- */

/*
 * In this image, the memory ends where the new part ends, and the first superblock is torn. The
 * backup superblock with the new size counts only if the volume has grown.
 */
static void torn_first(struct crash_image *img)
{
	const struct sg_hot *hot = (const void *)(img->mem + SG_HOT_OFF);
	struct sg_probe p;

	img->mem[100] ^= 1;
	sg_search(img->mem, TO, &p);
	CHECK(p.valid && p.sb.size == (hot->size == TO ? TO : FROM));
	img->mem[100] ^= 1;
}

static void next_mount(struct crash *c, struct crash_image *img)
{
	struct sg_check_result res;
	struct tsys s;

	if (rng_below(&rng, 4) == 0) {
		CHECK(test_is_clean(img->mem, ROOM, &res));
		checked++;
	}
	memset(&s, 0, sizeof(s));
	torn_first(img);
	CHECK_OK(sg_open(&s.v, img->mem, ROOM, false, NULL));
	CHECK_OK(sg_join(&s.v, &test_identity, 0, true));
	test_lapses_over(img->mem);
	CHECK_OK(sg_iref(&s.v, SG_INO_ROOT, &s.root));
	CHECK(!c->done || sg_size(&s.v) == TO);
	is_finished(&s.v);
	look_at_old(&s.v, &s.root);
	use_new(&s.v, &s.root);
	left(&s.v, img);
}

/* --- with a second, live system --------------------------------------------------------------- */

/* Restores the other system in an image, with the size that it has announced. */
static void survive(struct sg_vol *v, struct crash_image *img)
{
	const struct sg_slot *slot;

	CHECK_OK(sg_open(v, img->mem, ROOM, false, NULL));
	v->slot = other.v.slot;
	v->incarnation = other.v.incarnation;
	v->state = sg_state_word(v, (unsigned int)v->slot);
	v->alive = other.v.alive;
	v->on_damage = other.v.on_damage;
	v->tx = sg_alloc(v->sb.areas * sizeof(*v->tx));
	v->watch = sg_watch_make();
	v->ack = sg_ack_make();
	v->held = sg_alloc(SG_HELD * sizeof(*v->held));
	CHECK(v->tx && v->watch && v->ack && v->held);
	CHECK_OK(sg_ledger_open(v));
	slot = sg_at(v, sg_slot_off(v, (unsigned int)v->slot));
	v->beats = slot->heartbeat;
	v->size = SG_MAX(v->size, SG_SIZE_OF(slot->reach));
}

static void go_on(struct crash *c, struct crash_image *img)
{
	struct sg_iref root;
	struct sg_vol v;
	char why[200];

	survive(&v, img);
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	look_at_old(&v, &root);		/* before this system fences the dead one */
	sg_follow(&v);
	sg_fence_slots(&v, sg_slots_taken(&v));
	test_lapses_over(img->mem);
	if (rng_chance(&rng, 50)) {
		sg_recover_all(&v);
		sg_settle(&v);
		is_finished(&v);
	} else {			/* or the growth completes that of the dead system */
		CHECK_OK(sg_grow(&v, TO, 0, why));
		is_finished(&v);
	}
	CHECK(!c->done || sg_size(&v) == TO);
	look_at_old(&v, &root);
	use_new(&v, &root);
	left(&v, img);
}

/* --- recovery interrupted --------------------------------------------------------------------- */

static void again(struct crash_image *img, bool done)
{
	struct sg_vol v;
	struct rec log;

	crash_reset(&nested, img->mem);
	nested.done = done;
	rec_init(&log, img->mem, ROOM, true);
	rec_to(&log);
	CHECK_OK(sg_open(&v, img->mem, ROOM, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	sg_leave(&v);
	rec_to(NULL);
	crash_run(&nested, log.ev, log.n);
	while (log.pages)
		rec_mark(&img->rec, log.page[--log.pages] * SG_PAGE);
	rec_free(&log);
	recoveries++;
}

static u64 nest;

static void judge(struct crash *c, struct crash_image *img)
{
	if (rng_below(&rng, nest) == 0)
		again(img, c->done);
	else if (c->killed_only)
		go_on(c, img);
	else
		next_mount(c, img);
}

/* --- the growth that is judged ---------------------------------------------------------------- */

/* Runs the periodic work of the other system whenever the growing system waits. */
static void let_other(struct sg_vol *vol)
{
	(void)vol;
	CHECK(sg_maintain(&other.v) >= 0);
}

static void grown(struct crash *c, u8 *to)
{
	struct rec rec;
	char why[200];

	rec_init(&rec, to, ROOM, true);
	rec_to(&rec);
	if (sg_grow(&grower.v, TO, 0, why))
		test_fail(__FILE__, __LINE__, "cannot grow: %s", why);
	rec_to(NULL);
	crash_run(c, rec.ev, rec.n);
	crash_end(c);
	CHECK(!memcmp(c->killed.ref, mem, ROOM));	/* the recorder has seen every store */
	rec_free(&rec);
}

static void run(bool beside)
{
	struct crash c;
	unsigned int i;

	make();
	tsys_join(&grower, mem, ROOM, 1);
	if (beside)
		tsys_join(&other, mem, ROOM, 2);
	fill(&grower);
	memset(judged, 0, sizeof(judged));
	for (i = 0; beside && i < 3; i++) {	/* both systems take turns from here on */
		CHECK(sg_maintain(&other.v) >= 0);
		CHECK(sg_maintain(&grower.v) >= 0);
	}
	if (beside)
		grower.v.quiesce = let_other;
	crash_init(&c, mem, ROOM);
	crash_init(&nested, mem, ROOM);
	c.judge = judge;
	nested.judge = next_mount;
	nested.every = 8;
	c.killed_only = beside;
	c.samples = nested.samples = test_amount(20, 40, 200);
	nest = test_amount(60, 100, 20);
	grown(&c, mem);
	printf("%s: %" PRIu64 " images, %" PRIu64 " with the old size, %" PRIu64 " grown; %" PRIu64
	       " interrupted recoveries\n", beside ? "beside another system" : "alone", c.images,
	       judged[0], judged[1], recoveries);
	CHECK(judged[0] > (beside ? 0 : 10) && judged[1] > 10);
	crash_free(&c);
	crash_free(&nested);
	tsys_leave(&grower);
	if (beside)
		tsys_leave(&other);
	test_clean(mem, ROOM);
}

int main(void)
{
	tlog_catch();
	rng.state = test_seed();
	mem = test_map(ROOM);
	run(false);
	run(true);
	CHECK(checked && recoveries);
	return test_done();
}
