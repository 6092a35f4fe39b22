// SPDX-License-Identifier: Apache-2.0
/*
 * Interrupted repairs. For each damage of check_test, the machine dies or the power fails at many
 * points of the repair. A second repair must complete the first one. Neither repair may harm other
 * data.
 */
#define _GNU_SOURCE
#include "check_damage.h"
#include "crash.h"

static void quietly(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}
extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);

static struct sg_check_result check(u8 *mem, enum sg_check_mode mode)
{
	struct sg_check_opts opts = { .mode = mode, .id = &test_identity, .force = true,
				      .holding = test_end_lapses };
	struct sg_check_result res;
	int err = sg_check(mem, SIZE, &opts, &res);

	if (err)
		test_fail(__FILE__, __LINE__, "sg_check: %d, %s", err, res.why);
	return res;
}

/* A complete check is slow, and images differ little, so the test judges one in @stride images. */
static u64 stride, images;

static void judge(struct crash *c, struct crash_image *img)
{
	const struct damage *d = c->ctx;
	struct sg_check_result res;
	struct sg_vol v;

	if (images++ % stride)
		return;
	res = check(img->mem, SG_CHECK_REPAIR);
	CHECK_EQ(res.fixed, res.found);
	CHECK_EQ(check(img->mem, SG_CHECK_ONLY).found, 0);
	CHECK_OK(sg_open(&v, img->mem, SIZE, true, NULL));
	check_intact(&v, d);
}

int main(int argc, char **argv)
{
	u64 points = test_amount(1, 6, 100), i;
	struct crash c;
	struct rec rec;

	sg_log_hook = quietly;
	make_volume();
	crash_init(&c, good, SIZE);
	c.judge = judge;
	c.samples = points / 6;
	for (i = 0; i < DAMAGES; i++) {
		const struct damage *d = &damages[i];

		if (argc > 1 && strcmp(argv[1], d->name))
			continue;
		/* the repair rebuilds thousands of names; index_* tests the same with fewer */
		if (argc == 1 && points < 100 && !strncmp(d->name, "second_", 7))
			continue;
		test_note("damage %s", d->name);
		memcpy(t.mem, good, SIZE);
		d->make();
		crash_reset(&c, t.mem);
		rec_init(&rec, t.mem, SIZE, true);
		rec_to(&rec);
		check(t.mem, SG_CHECK_REPAIR);
		rec_to(NULL);
		c.every = rec.n / points + 1;
		stride = rec.n / (points == 1 ? 4 : 8 * points) + 1;
		c.ctx = (void *)d;
		crash_run(&c, rec.ev, rec.n);
		crash_end(&c);
		rec_free(&rec);
	}
	CHECK(c.images > 0);
	crash_free(&c);
	drop_volume();
	return test_done();
}
