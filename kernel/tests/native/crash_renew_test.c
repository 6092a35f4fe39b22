// SPDX-License-Identifier: Apache-2.0
/*
 * A volume gets a new UUID and label. Death and power cut interrupt the call after each store. The
 * next system to open the volume finds the old pair or the new pair, never a mixture. After the
 * call has returned, it finds the new pair. The call can be repeated, and the checker finds nothing
 * to repair. The same holds if only one of the two superblocks was valid before.
 */
#include "crash.h"
#include "internal.h"

#define SIZE	SG_VOLUME_MIN
#define NONE	(~0ULL)

static u8 *mem;
static struct sg_super old, new;
static u64 judged[2];	/* number of images with the old pair, and with the new pair */

static void judge(struct crash *c, struct crash_image *img)
{
	struct sg_probe probe;
	struct sg_vol v;
	char why[200];
	bool is_new;

	CHECK_OK(sg_probe(img->mem, SIZE, &probe));
	CHECK(probe.valid);
	is_new = memcmp(probe.sb.uuid, old.uuid, 16);
	judged[is_new]++;
	CHECK(is_new || !c->done);
	CHECK(!memcmp(probe.sb.uuid, is_new ? new.uuid : old.uuid, 16));
	CHECK(!strcmp(probe.sb.label, is_new ? "new" : "old"));
	CHECK_EQ(probe.sb.created, is_new ? new.created : old.created);
	CHECK_OK(sg_open(&v, img->mem, SIZE, false, NULL));
	CHECK_OK(sg_join_alone(&v, &test_identity, 0, true));
	CHECK_OK(sg_renew(&v, "again", why));
	sg_leave(&v);
	test_clean(img->mem, SIZE);
	CHECK_OK(sg_probe(img->mem, SIZE, &probe));
	CHECK(!strcmp(probe.sb.label, "again") && memcmp(probe.sb.uuid, new.uuid, 16));
}

/*
 * @same: the volume keeps its identity, and gets another UUID and label (sg_relabel()). @invalid:
 * offset of a superblock that was damaged before, or NONE.
 */
static void run(bool same, u64 invalid)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .label = "old" };
	struct crash c;
	struct sg_vol v;
	struct rec rec;
	char why[200];
	u8 uuid[16];

	sg_make_uuid(uuid);
	mem = test_map(SIZE);
	CHECK_OK(sg_format(mem, SIZE, &opts, why));
	if (invalid != NONE)
		mem[invalid + offsetof(struct sg_super, uuid)] ^= 1;
	CHECK_OK(sg_open(&v, mem, SIZE, false, NULL));
	CHECK_OK(sg_join_alone(&v, &test_identity, 0, true));
	old = v.sb;
	judged[0] = judged[1] = 0;
	crash_init(&c, mem, SIZE);
	c.judge = judge;
	c.samples = test_amount(20, 40, 200);
	rec_init(&rec, mem, SIZE, true);
	rec_to(&rec);
	CHECK_OK(same ? sg_relabel(&v, uuid, "new", why) : sg_renew(&v, "new", why));
	rec_to(NULL);
	new = v.sb;
	CHECK(!same || (!memcmp(new.uuid, uuid, 16) && new.created == old.created));
	crash_run(&c, rec.ev, rec.n);
	crash_end(&c);
	printf("%" PRIu64 " images, %" PRIu64 " old, %" PRIu64 " new\n", c.images, judged[0],
	       judged[1]);
	CHECK(judged[0] && judged[1]);
	rec_free(&rec);
	crash_free(&c);
	sg_leave(&v);
	test_unmap(mem, SIZE);
}

int main(void)
{
	run(false, NONE);
	run(true, NONE);
	run(true, 0);
	run(true, SIZE - SG_PAGE);
	return test_done();
}
