// SPDX-License-Identifier: Apache-2.0
/*
 * Crashes during a repair. The test repairs a volume with several kinds of damage under the
 * recorder. In each image that a crash can leave, a second repair completes the first. Then the
 * checker finds nothing more, the volume can be used, and undamaged files are unchanged.
 */
#include <sys/stat.h>
#include "crash.h"
#include "internal.h"
#include "tree.h"

#define FILES	60

struct work {
	struct tvol t;
	struct sg_iref safe, hurt, files[FILES];
	struct rng rng;
	u64 sum;		/* checksum of the undamaged files */
};

/* --- an undamaged volume -------------------------------------------------------------------- */

static void populate(struct sg_vol *v, const struct sg_iref *dir, struct sg_iref *files)
{
	static u8 data[40000];
	char name[60];
	unsigned int i;

	memset(data, 'd', sizeof(data));
	for (i = 0; i < FILES; i++) {
		sprintf(name, "a-name-of-some-length-so-that-buckets-split-%u", i);
		files[i] = test_create(v, dir, name, (i % 7 ? S_IFREG : S_IFDIR) | 0700);
		if (i % 7)
			CHECK(sg_write(v, &files[i], i * 300, data, i * 600 + 1, 1) > 0);
		if (i % 5 == 0)
			CHECK_OK(sg_xattr_set(v, &files[i], SG_XATTR_USER, "x", 1, data, i * 100 + 1, 0, 1));
	}
}

/* --- damage --------------------------------------------------------------------------------- */

static u64 *word(struct work *w, u64 off)
{
	return (u64 *)(w->t.mem + off);
}

static struct sg_inode *hurt_inode(struct work *w)
{
	return (void *)(w->t.mem + w->files[rng_below(&w->rng, FILES)].off);
}

static struct sg_bucket *hurt_bucket(struct work *w)
{
	struct sg_inode *dir = (void *)(w->t.mem + w->hurt.off);
	u64 entry = dir->table;

	while ((entry & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		entry = *word(w, (entry & ~(SG_PAGE - 1)) + rng_below(&w->rng, 512) * 8);
	return (void *)(w->t.mem + (entry & ~(SG_PAGE - 1)));
}

static void hurt_names(struct work *w)
{
	struct sg_bucket *b = hurt_bucket(w);
	u64 *slot = &b->slot[rng_below(&w->rng, SG_BUCKET_SLOTS)];
	struct sg_inode *dir = (void *)(w->t.mem + w->hurt.off);

	switch (rng_below(&w->rng, 6)) {
	case 0:
		*slot = 0;
		break;
	case 1:
		*slot ^= 1ULL << rng_below(&w->rng, 64);
		break;
	case 2:
		b->head = 0;
		break;
	case 3:
		b->fill ^= rng_next(&w->rng);
		break;
	case 4:
		dir->entries += 3;
		break;
	case 5:
		((u64 *)b->data)[rng_below(&w->rng, SG_BUCKET_DATA / 8)] ^= rng_next(&w->rng);
		break;
	}
}

static void hurt_record(struct work *w)
{
	struct sg_inode *in = hurt_inode(w), *other = hurt_inode(w);

	switch (rng_below(&w->rng, 7)) {
	case 0:
		in->mode = 0;
		break;
	case 1:
		in->mode ^= 7ULL << 32;
		break;
	case 2:
		in->table = other->table;	/* two files now share pages */
		break;
	case 3:
		in->size = rng_next(&w->rng);
		break;
	case 4:
		in->blocks += 5;
		break;
	case 5:
		in->xattr = other->xattr ? other->xattr : SG_PAGE;
		break;
	case 6:
		in->table ^= 1ULL << rng_below(&w->rng, 64);
		break;
	}
}

static void hurt_shared(struct work *w)
{
	const struct sg_super *sb = &w->t.v.sb;
	u64 chunk = rng_below(&w->rng, sb->chunks);

	switch (rng_below(&w->rng, 6)) {
	case 0:
		*word(w, sb->chunk_off + chunk * 128 + 64 + rng_below(&w->rng, 8) * 8) ^=
			rng_next(&w->rng);
		break;
	case 1:
		*word(w, sb->journal_off + offsetof(struct sg_area, free_pages)) += 7;
		break;
	case 2:
		*word(w, sb->journal_off + offsetof(struct sg_area, free_ino)) += 1;
		break;
	case 3:
		*word(w, sb->ledger_off + 8 + rng_below(&w->rng, 20) * 8) =
			SG_LEDGER_ENTRY(rng_below(&w->rng, 8), rng_below(&w->rng, 4096), 3, 0);
		break;
	case 4:
		*word(w, 16) ^= 1;	/* makes the superblock's checksum wrong */
		break;
	case 5:
		*word(w, SG_HOT(inodes)) += 16;
		break;
	}
}

static void hurt(struct work *w)
{
	u64 n = rng_range(&w->rng, 1, 4);

	while (n--) {
		switch (rng_below(&w->rng, 3)) {
		case 0:
			hurt_names(w);
			break;
		case 1:
			hurt_record(w);
			break;
		case 2:
			hurt_shared(w);
			break;
		}
	}
}

/* --- judging -------------------------------------------------------------------------------- */

static int repair(u8 *mem, u64 size, struct sg_check_result *res)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };

	return sg_check(mem, size, &opts, res);
}

static void judge(struct crash *c, struct crash_image *img)
{
	struct work *w = c->ctx;
	struct tvol t = { .mem = img->mem, .size = w->t.size };
	struct sg_check_result res;

	CHECK_OK(repair(img->mem, w->t.size, &res));
	CHECK_EQ(res.found, res.fixed);
	test_clean(img->mem, w->t.size);
	tvol_join(&t);
	CHECK_EQ(tree_below(&t.v, "safe"), w->sum);
	tree_of(&t.v, 0);
	tvol_leave(&t);
	test_clean(img->mem, w->t.size);
}

static void round_of(struct work *w, struct crash *c, const u8 *victim)
{
	struct sg_check_result res;
	struct rec log;

	memcpy(w->t.mem, victim, w->t.size);
	hurt(w);
	crash_reset(c, w->t.mem);
	rec_init(&log, w->t.mem, w->t.size, true);
	rec_to(&log);
	CHECK_OK(repair(w->t.mem, w->t.size, &res));
	rec_to(NULL);
	crash_run(c, log.ev, log.n);
	crash_end(c);
	rec_free(&log);
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

int main(void)
{
	u64 rounds = test_amount(5, 40, 5000), seed = test_seed(), i;
	static struct work w;
	struct crash c;
	u8 *victim;

	sg_log_hook = quiet;	/* the test causes this damage on purpose */
	w.rng.state = seed;
	tvol_make(&w.t, TEST_SMALL);
	w.safe = test_create(&w.t.v, &w.t.root, "safe", S_IFDIR | 0700);
	w.hurt = test_create(&w.t.v, &w.t.root, "hurt", S_IFDIR | 0700);
	populate(&w.t.v, &w.safe, w.files);
	populate(&w.t.v, &w.hurt, w.files);
	w.sum = tree_below(&w.t.v, "safe");
	tvol_leave(&w.t);
	victim = test_map(w.t.size);
	memcpy(victim, w.t.mem, w.t.size);
	crash_init(&c, victim, w.t.size);
	c.judge = judge;
	c.ctx = &w;
	c.every = 5;
	c.samples = 1;
	for (i = 0; i < rounds; i++) {
		test_note("round %" PRIu64, i);
		round_of(&w, &c, victim);
	}
	printf("%" PRIu64 " repairs, %" PRIu64 " images\n", rounds, c.images);
	return test_done();
}
