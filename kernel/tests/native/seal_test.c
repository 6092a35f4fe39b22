// SPDX-License-Identifier: Apache-2.0
/*
 * Sealed files: each change of contents or size is refused, on each system; the file cannot be
 * sealed while another system has it open; an opener and a system that seals meet.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL
#define KIB	1024ULL

static u8 *mem;
static struct tsys s[2];
static char why[200];
static u8 bytes[64 * KIB], got[64 * KIB];

static struct sg_iref make(const char *name, u64 len)
{
	struct sg_iref f = test_create(&s[0].v, &s[0].root, name, S_IFREG | 0600);

	memset(bytes, 'b', sizeof(bytes));
	CHECK_EQ(sg_write(&s[0].v, &f, 0, bytes, len, 1), len);
	return f;
}

static void says(const char *text)
{
	test_counted();
	if (!strstr(why, text))
		test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", text, why);
}

/* --- refusals -------------------------------------------------------------------------------- */

static void refuses(struct sg_vol *v, const struct sg_iref *f)
{
	bool filled = false;
	struct sg_write w;
	u64 size, pos = 4096;

	CHECK_EQ(sg_write(v, f, 0, bytes, 10, 1), -EPERM);
	CHECK_EQ(sg_write(v, f, 100000, bytes, 10, 1), -EPERM);
	CHECK_EQ(sg_write_begin(v, f, 0, 10, SG_WRITE_IN_PLACE, &w), -EAGAIN);
	CHECK_EQ(sg_write_begin(v, f, 0, 10, SG_WRITE_KEEP_SIZE, &w), -EPERM);
	CHECK_EQ(sg_append_begin(v, f, &size), -EPERM);
	CHECK_EQ(sg_write_atomic(v, f, 0, bytes, 4096, 0, 1, &filled), -EPERM);
	CHECK_EQ(sg_set_atomic(v, f, true, 1), -EPERM);
	CHECK_EQ(sg_resize(v, f, 0, 1), -EPERM);
	CHECK_EQ(sg_resize(v, f, 9000, 1), -EPERM);
	CHECK_EQ(sg_resize(v, f, 90000, 1), -EPERM);
	CHECK_EQ(sg_extend(v, f, 90000, 1), -EPERM);
	CHECK_EQ(sg_allocate(v, f, 0, 1), -EPERM);
	CHECK_EQ(sg_allocate(v, f, 100, 1), -EPERM);
	CHECK_EQ(sg_allocate_now(v, f, 100), -EPERM);
	CHECK_EQ(sg_punch(v, f, 0, 4096, 1), -EPERM);
	CHECK_EQ(sg_punch(v, f, 5, 90, 1), -EPERM);
	CHECK_EQ(sg_punch_rest(v, f, &pos, 8192), -EPERM);
	CHECK_EQ(sg_collapse(v, f, 0, 4096, 1), -EPERM);
	CHECK_EQ(sg_insert(v, f, 0, 4096, 1), -EPERM);
	CHECK_EQ(sg_may_open_to_write(v, f), -EPERM);
	CHECK_EQ(sg_read(v, f, 0, got, 9000), 9000);
	CHECK(!memcmp(got, bytes, 9000));
}

static void allows(struct sg_vol *v, const struct sg_iref *root, const struct sg_iref *f)
{
	struct sg_attr a = { .mode = 0640, .uid = 5, .flags = SG_FL_NODUMP };

	CHECK_OK(sg_touch(v, f, SG_SET_MTIME | SG_SET_CTIME | SG_SET_ATIME, 9, 9, 9));
	CHECK_OK(sg_setattr(v, f, SG_SET_MODE | SG_SET_UID | SG_SET_FLAGS, &a));
	CHECK_OK(sg_xattr_set(v, f, SG_XATTR_USER, "a", 1, "b", 1, 0, 1));
	CHECK_OK(sg_link(v, f, root, "link", 4, 1));
	CHECK_OK(sg_unlink(v, root, "link", 4, 1));
	CHECK_OK(sg_rename(v, root, "f", 1, root, "g", 1, 0, NULL, 1));
	CHECK(sg_is_sealed(v, f));
}

static void one_file(void)
{
	struct sg_iref f = make("f", 9000);
	u64 root[4] = { 1, 2, 3, 4 }, other[4] = { 5 };
	struct sg_run run;

	/* a process has stored behind the end, through a mapping that it has removed since */
	CHECK_OK(sg_walk(&s[0].v, &f, 2, 1, &run));
	memset(s[0].v.base + run.off + 9000 % SG_PAGE, 'x', 100);
	CHECK_EQ(sg_seal_set_root(&s[0].v, &f, root), -EINVAL);
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	CHECK_EQ(s[0].v.base[run.off + 9000 % SG_PAGE], 0);
	CHECK_EQ(s[0].v.base[run.off + SG_PAGE - 1], 0);
	refuses(&s[0].v, &f);
	refuses(&s[1].v, &f);
	allows(&s[1].v, &s[1].root, &f);
	CHECK_OK(sg_seal(&s[1].v, &f, 1, why));
	CHECK_EQ(sg_seal_root(&s[1].v, &f, other), -ENODATA);
	CHECK_OK(sg_seal_set_root(&s[1].v, &f, root));
	CHECK_OK(sg_seal_set_root(&s[0].v, &f, root));
	other[0] = 5;
	CHECK_EQ(sg_seal_set_root(&s[0].v, &f, other), -EEXIST);
	CHECK_OK(sg_seal_root(&s[0].v, &f, other));
	CHECK(!memcmp(root, other, sizeof(root)));
	CHECK_OK(sg_unseal(&s[0].v, &f, 1, why));
	CHECK_EQ(sg_seal_root(&s[0].v, &f, other), -ENODATA);
	CHECK_EQ(sg_write(&s[1].v, &f, 0, bytes, 10, 1), 10);
	CHECK_OK(sg_seal(&s[1].v, &f, 1, why));
	CHECK_OK(sg_unlink(&s[0].v, &s[0].root, "g", 1, 1));
	CHECK_OK(sg_evict(&s[0].v, &f));
}

static void no_holes(void)
{
	struct sg_iref f = make("f", 5000);
	u64 root[4];

	CHECK_OK(sg_resize(&s[0].v, &f, 20000, 1));
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EINVAL);
	says("hole at byte 8192");
	CHECK(!sg_is_sealed(&s[0].v, &f));
	CHECK_OK(sg_allocate(&s[0].v, &f, 0, 5));
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	CHECK_EQ(sg_seal(&s[0].v, &s[0].root, 1, why), -EINVAL);
	CHECK_EQ(sg_seal_set_root(&s[0].v, &s[0].root, root), -EINVAL);
	f = make("empty", 0);
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	CHECK_EQ(sg_write(&s[0].v, &f, 0, bytes, 1, 1), -EPERM);
}

/* --- other systems --------------------------------------------------------------------------- */

static void other_opener(void)
{
	struct sg_iref f = make("opened", 5000);

	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EBUSY);
	says("has the file open");
	CHECK(!sg_is_replacing(&s[1].v, &f));
	CHECK_EQ(sg_write(&s[1].v, &f, 0, bytes, 10, 1), 10);
	CHECK(!sg_close_inode(&s[1].v, &f));
	/* a bit of a free slot has no meaning */
	sg_or64(sg_at(&s[0].v, SG_IOFF(&f, openers)), 1ULL << 60);
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	/* open for reading */
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_EQ(sg_unseal(&s[0].v, &f, 1, why), -EBUSY);
	says("has the file open");
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	CHECK(!sg_close_inode(&s[1].v, &f));
	CHECK_OK(sg_unseal(&s[0].v, &f, 1, why));
}

/* The processes of a system that was fenced may still store through a mapping. */
static void fenced_opener(void)
{
	struct sg_iref f = make("fenced", 5000);
	unsigned int slot = (unsigned int)s[1].v.slot;
	u64 *lapsed = sg_at(&s[0].v, SG_HOT(lapsed));

	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(sg_fence_lapsed(&s[0].v, slot, s[1].v.incarnation));
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EBUSY);
	sg_recover_all(&s[0].v);
	CHECK(*lapsed >> slot & 1);
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EBUSY);
	says("fenced");
	test_lapses_over(mem);
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	tsys_die(&s[1]);
	tsys_join(&s[1], mem, SIZE, 2);
}

/* A system whose software has no sealed files would write to them. */
static void feature(void)
{
	struct sg_super *sb = (void *)mem, *backup = (void *)(mem + SIZE - SG_PAGE);
	struct sg_iref f = make("feature", 5000);
	struct sg_slot *slot = sg_at(&s[1].v, sg_slot_off(&s[1].v, (unsigned int)s[1].v.slot));
	u64 knows = slot->knows;

	CHECK_EQ(sb->ro_compat, 0);
	slot->knows = SG_SLOT_KNOWS(SG_RO_COMPAT_RINGS, s[1].v.incarnation);
	CHECK_EQ(sg_seal(&s[0].v, &f, 1, why), -EOPNOTSUPP);
	says("software");
	CHECK_EQ(sb->ro_compat, 0);
	CHECK(!sg_is_sealed(&s[0].v, &f));
	slot->knows = knows;
	CHECK_OK(sg_seal(&s[0].v, &f, 1, why));
	CHECK_EQ(sb->ro_compat, SG_RO_COMPAT_SEALS);
	CHECK_EQ(backup->ro_compat, SG_RO_COMPAT_SEALS);
}

/* --- an opener and a seal at the same time ---------------------------------------------------- */

static u64 waits, ended;
static int result;

static void *opens(void *f)
{
	CHECK_OK(sg_open_inode(&s[1].v, f, false));
	sg_store64(&waits, 1);
	result = sg_may_open_to_write(&s[1].v, f);
	sg_store64(&ended, 1);
	return NULL;
}

/* The sealing system has checked the openers. A later opener waits until the sealing has ended. */
static void opener_waits(void)
{
	struct sg_iref f = make("waits", 5000);
	pthread_t thread;

	waits = ended = 0;
	CHECK_OK(sg_ilock(&s[0].v, &f));
	sg_replace_begin(&s[0].v, &f);
	CHECK(!pthread_create(&thread, NULL, opens, &f));
	tawait(&waits, 1);
	sg_sleep_us(50000);
	CHECK(!sg_load64(&ended));
	sg_store64(sg_at(&s[0].v, SG_IOFF(&f, genflags)),
		   sg_iget(&s[0].v, &f, genflags) | (u64)SG_FL_SEALED << 32);
	sg_replace_end(&s[0].v, &f);
	sg_iunlock(&s[0].v, &f);
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_EQ(result, -EPERM);
	CHECK(!sg_close_inode(&s[1].v, &f));
}

static u64 stop, stored, sealed;

/* Stores as a module does: in place, without the inode's lock, while the file is open. */
static void *stores(void *arg)
{
	const struct sg_iref *f = arg;
	struct sg_vol *v = &s[1].v;
	struct sg_write w;
	u8 byte = 0;
	int i;

	while (!sg_load64(&stop)) {
		CHECK_OK(sg_open_inode(v, f, false));
		if (!sg_may_open_to_write(v, f)) {
			for (i = 0; i < 20; i++) {
				CHECK_OK(sg_write_begin(v, f, 0, 100, SG_WRITE_IN_PLACE, &w));
				byte++;
				memset(v->base + w.off, byte, 100);
				sg_add64(&stored, 1);
			}
		}
		sg_close_inode(v, f);
		sg_yield();
	}
	return NULL;
}

static void one_byte(const struct sg_iref *f, u8 *out)
{
	struct sg_run run;
	unsigned int i;

	CHECK_OK(sg_walk(&s[0].v, f, 0, 1, &run));
	memcpy(out, s[0].v.base + run.off, 100);
	for (i = 1; i < 100; i++)
		if (out[i] != out[0])
			test_fail(__FILE__, __LINE__, "a store is in progress in a sealed file");
}

static void race(void)
{
	struct sg_iref f = make("race", 5000);
	u64 turns = test_amount(500, 2000, 50000), n, tries;
	u8 before[100], after[100];
	pthread_t thread;
	int err;

	CHECK(!pthread_create(&thread, NULL, stores, &f));
	for (n = 0, tries = 0; n < turns || sg_load64(&stored) < turns; tries++) {
		CHECK(tries < 100000 * turns);
		if (tries % 8 == 0)
			sg_sleep_us(50);	/* the writer's turn */
		err = sg_seal(&s[0].v, &f, 1, why);
		CHECK(!err || err == -EBUSY);
		if (err)
			continue;
		n++;
		one_byte(&f, before);
		sg_yield();
		one_byte(&f, after);
		CHECK(!memcmp(before, after, sizeof(before)));
		while (sg_unseal(&s[0].v, &f, 1, why) == -EBUSY)
			;
	}
	sg_store64(&stop, 1);
	CHECK_OK(pthread_join(thread, NULL));
	CHECK(n && stored);
	sealed = n;
}

int main(void)
{
	test_within(600, "sealed files");
	mem = tsys_volume(SIZE);
	tsys_join(&s[0], mem, SIZE, 1);
	tsys_join(&s[1], mem, SIZE, 2);
	feature();
	one_file();
	no_holes();
	other_opener();
	opener_waits();
	race();
	fenced_opener();
	printf("%" PRIu64 " seals beside %" PRIu64 " stores\n", sealed, stored);
	sg_settle(&s[0].v);
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
	return test_done();
}
