// SPDX-License-Identifier: Apache-2.0
/*
 * mkfs makes a volume over an older one, with garbage in all unused pages. Death or power cut
 * interrupt it. An image with a valid superblock of the new volume also has all structures to which
 * the superblock leads. After mkfs has returned, each image has that superblock.
 */
#include "crash.h"
#include "internal.h"

#define SIZE	SG_VOLUME_MIN

static const u8 uuid[2][16] = { "the old volume", "the new volume" };
static u64 judged[3];		/* number of images with the old volume, the new volume, and none */

static void make(u8 *mem, unsigned int which)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .uuid = uuid[which] };
	char why[200];

	CHECK_OK(sg_format(mem, SIZE, &opts, why));
}

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/* mkfs writes the first superblock last. Before that, only this superblock is invalid. */
static void finish(struct crash_image *img)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_REPAIR, .holding = test_end_lapses };
	struct sg_check_result res;

	CHECK_OK(sg_check(img->mem, SIZE, &opts, &res));
	CHECK_EQ(res.found, 1);
	CHECK_EQ(res.fixed, 1);
}

static void use(struct crash_image *img, bool from_backup)
{
	struct sg_iref root, f;
	struct sg_vol v;

	if (from_backup)
		finish(img);
	test_clean(img->mem, SIZE);
	CHECK_OK(sg_open(&v, img->mem, SIZE, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, false));
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	f = test_create(&v, &root, "first", SG_S_IFREG | 0600);
	test_fill(&v, &f, 0, SG_PAGE);
	sg_leave(&v);
	test_clean(img->mem, SIZE);
}

static void judge(struct crash *c, struct crash_image *img)
{
	struct sg_probe probe;
	bool is_new;

	CHECK_OK(sg_probe(img->mem, SIZE, &probe));
	is_new = probe.valid && !memcmp(probe.sb.uuid, uuid[1], 16);
	judged[is_new ? 1 : probe.valid ? 0 : 2]++;
	CHECK(is_new || !c->done);
	if (is_new)
		use(img, probe.from_backup);
}

int main(void)
{
	u8 *mem = test_map(SIZE);
	struct crash c;
	struct rec rec;

	sg_log_hook = quiet;
	memset(mem, 0xa5, SIZE);
	make(mem, 0);
	/* fills all metadata: bytes that mkfs does not write back must not be right by chance */
	memset(mem + 2 * SG_PAGE, 0xa5, ((struct sg_super *)mem)->data_off - SG_PAGE);
	crash_init(&c, mem, SIZE);
	c.judge = judge;
	c.every = 499;		/* most stores zero lines, so the images differ little */
	c.samples = test_amount(10, 20, 100);
	rec_init(&rec, mem, SIZE, true);
	rec_to(&rec);
	make(mem, 1);
	rec_to(NULL);
	crash_run(&c, rec.ev, rec.n);
	crash_end(&c);
	printf("%" PRIu64 " images, %" PRIu64 " old, %" PRIu64 " new, %" PRIu64 " of none\n",
	       c.images, judged[0], judged[1], judged[2]);
	CHECK(judged[0] && judged[1] && judged[2]);
	rec_free(&rec);
	crash_free(&c);
	test_unmap(mem, SIZE);
	return test_done();
}
