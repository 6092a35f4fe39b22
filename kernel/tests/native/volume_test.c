// SPDX-License-Identifier: Apache-2.0
/* Formatting, finding, opening and joining volumes: refusals and their reasons. */
#include <sys/stat.h>
#include <time.h>
#include "internal.h"
#include "test.h"

static u8 *mem;
static char why[200];

static void quiet(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

static void format(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };

	memset(mem, 0xa5, TEST_SMALL);
	CHECK_OK(sg_format(mem, TEST_SMALL, &opts, why));
}

static struct sg_super *super(unsigned int copy)
{
	return (void *)(mem + copy * (TEST_SMALL - SG_PAGE));
}

static void seal(unsigned int copy)
{
	super(copy)->crc = 0;
	super(copy)->crc = sg_crc32c(~0u, super(copy), sizeof(struct sg_super));
}

/* --- format --------------------------------------------------------------------------------- */

static void refuses(u64 size, struct sg_format_opts opts, const char *reason)
{
	why[0] = 0;
	CHECK_EQ(sg_format(mem, size, &opts, why), -EINVAL);
	if (!strstr(why, reason))
		test_fail(__FILE__, __LINE__, "'%s' does not contain '%s'", why, reason);
}

static void format_refusals(void)
{
	const char *long_label = "a label that is quite a bit longer than the 63 bytes that it may have";

	memset(mem, 0x5a, TEST_SMALL);
	refuses(TEST_SMALL - 1, (struct sg_format_opts){ .phys = TEST_PHYS }, "16 MiB to");
	refuses(TEST_SMALL, (struct sg_format_opts){ .phys = TEST_PHYS + SG_PAGE }, "invalid base");
	refuses(TEST_SMALL, (struct sg_format_opts){ .phys = ~0ULL << 21 }, "invalid base");
	refuses(TEST_SMALL, (struct sg_format_opts){ .areas = 17 }, "17 areas");
	refuses(TEST_SMALL, (struct sg_format_opts){ .chunk_cap = 3 }, "room to grow to 6291456");
	refuses(TEST_SMALL, (struct sg_format_opts){ .chunk_cap = ~0ULL }, "room to grow");
	refuses(TEST_SMALL, (struct sg_format_opts){ .params = 1ULL << 40 }, "unknown parameters");
	refuses(TEST_SMALL, (struct sg_format_opts){ .label = long_label }, "label is longer");
	/* the refused call has stored nothing */
	CHECK(mem[0] == 0x5a && !memcmp(mem, mem + 1, TEST_SMALL - 1));
}

static void format_takes_what_it_is_given(void)
{
	u8 uuid[16] = "sixteen bytes..";
	struct sg_format_opts opts = {
		.phys = TEST_PHYS, .label = "vol", .uuid = uuid, .areas = 3, .root_mode = 01750,
		.root_uid = 5, .root_gid = 6, .params = SG_PARAM_HOST_SPLICE,
	};
	struct sg_iref root;
	struct sg_attr a;
	struct sg_vol v;

	/* a remainder of less than a chunk is not used */
	CHECK_OK(sg_format(mem, TEST_SMALL + SG_PAGE, &opts, why));
	CHECK_OK(sg_open(&v, mem, TEST_SMALL + SG_PAGE, true, NULL));
	CHECK_EQ(v.size, TEST_SMALL);
	CHECK(!strcmp(v.sb.label, "vol") && !memcmp(v.sb.uuid, uuid, 16));
	CHECK(v.sb.areas == 3 && v.sb.params == SG_PARAM_HOST_SPLICE);
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	CHECK_OK(sg_getattr(&v, &root, &a));
	CHECK(a.mode == (S_IFDIR | 01750) && a.uid == 5 && a.gid == 6 && a.nlink == 2);
	test_clean(mem, TEST_SMALL);
}

/* --- open ----------------------------------------------------------------------------------- */

static void cannot_open(int err, const char *reason)
{
	struct sg_vol v;

	CHECK_EQ(sg_open(&v, mem, TEST_SMALL, false, NULL), err);
	if (!strstr(v.why, reason))
		test_fail(__FILE__, __LINE__, "'%s' does not contain '%s'", v.why, reason);
}

/* Each new volume supports atomic writes. With the parameter, its root directory has the flag. */
static void atomic_volume(void)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS, .params = SG_PARAM_DATA_ATOMIC };
	struct sg_iref root;
	struct sg_attr a;
	struct sg_vol v;
	char why[200];

	CHECK_OK(sg_format(mem, TEST_SMALL, &opts, why));
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK(v.sb.incompat == SG_INCOMPAT_ATOMIC && v.sb.params == SG_PARAM_DATA_ATOMIC);
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	CHECK_OK(sg_getattr(&v, &root, &a));
	CHECK_EQ(a.flags, SG_FL_ATOMIC);
	test_clean(mem, TEST_SMALL);
}

static void seal_both(void)
{
	seal(0);
	seal(1);
}

static void open_refusals(void)
{
	struct sg_probe p;
	struct sg_vol v;

	memset(mem, 0, TEST_SMALL);
	cannot_open(-EINVAL, "no StargateFS");
	CHECK_EQ(sg_open(&v, mem, TEST_SMALL - 1, false, NULL), -EINVAL);
	CHECK_OK(sg_probe(mem, TEST_SMALL - 1, &p));
	CHECK(!p.stargate);
	format();
	super(0)->version = super(1)->version = 2;
	seal_both();
	cannot_open(-EOPNOTSUPP, "format version 2");
	format();
	super(0)->incompat = super(1)->incompat = 16;
	seal_both();
	cannot_open(-EOPNOTSUPP, "incompat 0x10");
	format();
	super(0)->ro_compat = super(1)->ro_compat = 8;
	seal_both();
	cannot_open(-EROFS, "can be used read-only");
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, true, NULL));
	format();
	super(0)->compat = super(1)->compat = 16;
	seal_both();
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
}

static void damaged_superblocks(void)
{
	struct sg_probe p;
	struct sg_vol v;

	format();
	super(0)->size ^= 1;
	CHECK_OK(sg_probe(mem, TEST_SMALL, &p));
	CHECK(p.stargate && p.valid && p.from_backup && !p.live);
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	super(1)->size ^= 1;
	CHECK_OK(sg_probe(mem, TEST_SMALL, &p));
	CHECK(p.stargate && !p.valid);
	cannot_open(-EUCLEAN, "superblock and backup are damaged");
	format();
	/* superblocks with a valid checksum, but a wrong geometry */
	super(0)->data_off += SG_PAGE;
	super(1)->data_off += SG_PAGE;
	seal_both();
	cannot_open(-EUCLEAN, "damaged");
}

/*
 * The volume is smaller than its memory. The search finds the backup superblock, but does not use
 * it.
 */
static void backup_in_the_middle(void)
{
	const u64 more = TEST_SMALL + SG_CHUNK;
	struct sg_probe p;
	struct sg_vol v;

	format();
	memset(mem + TEST_SMALL, 0, SG_CHUNK);
	CHECK_EQ(sg_search(mem, more, &p), more);
	CHECK(p.valid && !p.from_backup);
	memset(mem, 0, SG_PAGE);
	CHECK_EQ(sg_search(mem, more, &p), TEST_SMALL);
	CHECK(p.valid && p.from_backup && p.sb.size == TEST_SMALL);
	CHECK_EQ(sg_open(&v, mem, more, false, NULL), -EUCLEAN);
	CHECK(strstr(v.why, "the first superblock is damaged: fsck.stargatefs -y can repair it"));
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	super(1)->label[0] ^= 1;
	CHECK_EQ(sg_search(mem, more, &p), more);
	CHECK(!p.stargate && !p.valid);
	CHECK_EQ(sg_open(&v, mem, more, false, NULL), -EINVAL);
	CHECK(strstr(v.why, "check the device"));
}

/* --- join ----------------------------------------------------------------------------------- */

static const struct sg_identity other = {
	.machine = "other machine", .boot = "boot 1", .name = "other", .beat_ns = 1000000,
};

static void *beat(void *arg)
{
	struct sg_vol *v = arg;

	while (!__atomic_load_n(&v->owner, __ATOMIC_RELAXED)) {
		sg_beat(v);
		sg_sleep_us(1000);
	}
	return NULL;
}

static void stop(struct sg_vol *v, pthread_t id)
{
	__atomic_store_n(&v->owner, v, __ATOMIC_RELAXED);
	pthread_join(id, NULL);
}

static void one_at_a_time(void)
{
	struct sg_identity user = other, rebooted = other;
	struct sg_vol a, b;
	struct sg_slot slot;
	struct sg_probe p;
	pthread_t id;

	format();
	user.pid = 77;
	memcpy(rebooted.boot, "boot 2", 6);
	CHECK_OK(sg_open(&a, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&a, &user, 0, false));
	pthread_create(&id, NULL, beat, &a);
	CHECK_OK(sg_probe(mem, TEST_SMALL, &p));
	CHECK_EQ(p.live, 1);
	CHECK_OK(sg_open(&b, mem, TEST_SMALL, false, NULL));
	CHECK_EQ(sg_join_alone(&b, &test_identity, 1000, false), -EBUSY);
	CHECK(strstr(b.why, "process 77 on other (slot 0)"));
	stop(&a, id);
	sg_leave(&a);
	/*
	 * the identity of a kernel is of another kind, and the kernel's next boot need not wait for
	 * it
	 */
	CHECK_OK(sg_open(&a, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&a, &other, 0, false));
	pthread_create(&id, NULL, beat, &a);
	CHECK_EQ(sg_join_alone(&b, &test_identity, 1000, false), -EBUSY);
	CHECK(strstr(b.why, "mounted by other (slot 0)"));
	stop(&a, id);
	CHECK_OK(sg_join(&b, &rebooted, 50, false));
	CHECK_OK(sg_slot_read(&b, 0, &slot));
	CHECK_EQ(SG_SLOT_STATE(slot.state), SG_SLOT_FREE);
	CHECK_OK(sg_slot_read(&b, 1, &slot));
	CHECK(!strcmp(slot.name, "other") && !memcmp(slot.boot, "boot 2", 6));
	CHECK_EQ(sg_slot_read(&b, SG_SLOTS, &slot), -EINVAL);
	sg_abandon(&a);
	sg_leave(&b);
	test_clean(mem, TEST_SMALL);
}

extern bool (*sg_interrupt_hook)(void);

static bool dying(void)
{
	return true;
}

extern bool (*sg_no_memory_hook)(size_t len);

static bool no_memory(size_t len)
{
	(void)len;
	return true;
}

/* Fails one allocation, so that memory suffices only to take a slot. */
static bool little_memory(size_t len)
{
	return len != SG_HELD * sizeof(u64);
}

static void lacks_memory(struct sg_vol *v, bool (*hook)(size_t len))
{
	sg_no_memory_hook = hook;
	CHECK_EQ(sg_join(v, &test_identity, 0, false), -ENOMEM);
	CHECK(strstr(v->why, "memory") && !strstr(v->why, "fsck"));
	v->why[0] = 0;
	CHECK_EQ(sg_join_alone(v, &test_identity, 0, false), -ENOMEM);
	CHECK(strstr(v->why, "memory") && !strstr(v->why, "fsck"));
	sg_no_memory_hook = NULL;
}

/* Only damage needs fsck: each other refusal names its reason. */
static void why_not_entered(void)
{
	struct sg_lock *lock = (void *)(mem + SG_HOT(slot_lock));
	struct sg_vol v;
	u64 *slot9;

	format();
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	slot9 = sg_state_word(&v, 9);
	lacks_memory(&v, no_memory);
	lacks_memory(&v, little_memory);
	*slot9 = SG_SLOT_WORD(SG_SLOT_LIVE, 77);
	lock->word = SG_LOCK_WORD(9, 77);
	sg_interrupt_hook = dying;
	CHECK_EQ(sg_join(&v, &test_identity, 0, false), -EINTR);
	CHECK(strstr(v.why, "interrupted") && !strstr(v.why, "fsck"));
	sg_interrupt_hook = NULL;
	lock->word = 0;
	*slot9 = 0;
	CHECK_OK(sg_join(&v, &test_identity, 0, false));
	sg_leave(&v);
}

static bool watch_was_said;

static void watch(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_INFO && strstr(line, "other (slot 0) did not leave: watched for"))
		watch_was_said = true;
}

/* A process that watches a silent system reports it, and can be killed. */
static void watching(void)
{
	void (*was)(void *owner, enum sg_level level, const char *line) = sg_log_hook;
	struct sg_vol v;
	u64 start;

	format();
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&v, &other, 0, false));
	sg_abandon(&v);
	sg_log_hook = watch;
	sg_interrupt_hook = dying;
	start = sg_ticks();
	CHECK_EQ(sg_join_alone(&v, &test_identity, 60000, false), -EINTR);
	CHECK(sg_ticks() - start < 5000000000ULL);
	CHECK(watch_was_said && strstr(v.why, "interrupted"));
	sg_interrupt_hook = NULL;
	sg_log_hook = was;
	CHECK_OK(sg_join(&v, &test_identity, 100, false));
	sg_leave(&v);
	test_clean(mem, TEST_SMALL);
}

static void all_slots_taken(void)
{
	struct sg_vol v;
	unsigned int i;
	u64 start;

	format();
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	for (i = 0; i < SG_SLOTS; i++)
		*(u64 *)(mem + v.sb.slot_off + i * sizeof(struct sg_slot)) =
			SG_SLOT_WORD(SG_SLOT_LIVE, i + 1);
	*(u64 *)(mem + SG_HOT(incarnation)) = SG_SLOTS;
	CHECK_EQ(sg_slot_take(&v, &test_identity), -EBUSY);
	CHECK(strstr(v.why, "all 64 slots"));
	CHECK_EQ(sg_join(&v, &test_identity, 500, false), -EBUSY);	/* silence is not death */
	start = sg_ticks();
	/* with exclusive access, the watch leads to a fence */
	CHECK_OK(sg_join_alone(&v, &test_identity, 500, false));
	/* all slots are watched at the same time, not one by one */
	CHECK(sg_ticks() - start < 8 * 500000000ULL);
	sg_leave(&v);
	sg_leave(&v);	/* leaves again, which has no effect */
	test_clean(mem, TEST_SMALL);
}

/*
 * A fenced system was only paused, and continues. Other systems own its slot and locks by now, so
 * the fenced system stores nothing.
 */
static void taken_for_dead(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	u8 *before = test_map(TEST_SMALL);
	struct sg_iref root, ref;
	struct sg_vol a, b;

	format();
	CHECK_OK(sg_open(&a, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&a, &other, 0, false));
	CHECK_OK(sg_iref(&a, SG_INO_ROOT, &root));
	CHECK_OK(sg_create(&a, &root, "a", 1, &new, &ref));
	CHECK_OK(sg_lock(&a, ref.off));
	CHECK_OK(sg_open(&b, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join_alone(&b, &test_identity, 100, false));
	CHECK_OK(sg_lock(&b, ref.off));
	memcpy(before, mem, TEST_SMALL);
	sg_unlock(&a, ref.off);
	CHECK_EQ(sg_create(&a, &root, "b", 1, &new, &ref), -EIO);
	CHECK_EQ(sg_write(&a, &ref, 0, "x", 1, 1), -EIO);
	CHECK_EQ(sg_touch(&a, &root, SG_SET_MTIME, 1, 1, 1), -EIO);
	/* other systems would regard the dead system as live if this stored a heartbeat */
	sg_beat(&a);
	CHECK(a.shut_down && !memcmp(before, mem, TEST_SMALL));
	/* a read-only mount that has not detected its fence leaves as well */
	a.shut_down = false;
	a.read_only = true;
	sg_leave(&a);
	CHECK(!memcmp(before, mem, TEST_SMALL));
	sg_unlock(&b, ref.off);
	sg_leave(&b);
	test_clean(mem, TEST_SMALL);
	test_unmap(before, TEST_SMALL);
}

static void *touch_it(void *arg)
{
	struct sg_vol *v = arg;
	struct sg_iref root;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	CHECK_EQ(sg_touch(v, &root, SG_SET_MTIME, 7, 7, 7), -EIO);
	return NULL;
}

static void join_new(struct sg_vol *v, struct sg_iref *root)
{
	format();
	CHECK_OK(sg_open(v, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(v, &test_identity, 0, false));
	CHECK_OK(sg_iref(v, SG_INO_ROOT, root));
}

/*
 * A fenced system was paused while it waited for a lock. The lock that it gets later is not valid.
 */
static void taken_for_dead_while_waiting(void)
{
	u64 mtime, *word;
	struct sg_iref root;
	struct sg_vol v;
	pthread_t id;

	join_new(&v, &root);
	mtime = sg_iget(&v, &root, mtime);
	word = (u64 *)(mem + v.sb.slot_off);
	CHECK_OK(sg_ilock(&v, &root));
	CHECK_OK(pthread_create(&id, NULL, touch_it, &v));
	while (!sg_load64(sg_at(&v, SG_IOFF(&root, lock.waiters))))
		sg_sleep_us(100);
	sg_store64(word, SG_SLOT_WORD(SG_SLOT_FREE, v.incarnation));
	pthread_join(id, NULL);
	CHECK_EQ(sg_iget(&v, &root, mtime), mtime);
	sg_abandon(&v);
}

/*
 * A fenced system was paused between the first and the last word of its change: no word is stored.
 */
static void taken_for_dead_while_changing(void)
{
	struct sg_iref root;
	struct sg_vol v;
	struct sg_tx *tx;
	u64 mtime;

	join_new(&v, &root);
	mtime = sg_iget(&v, &root, mtime);
	tx = sg_tx_begin(&v);
	sg_tx_set(tx, SG_IOFF(&root, mtime), mtime + 1);
	sg_store64((u64 *)(mem + v.sb.slot_off), SG_SLOT_WORD(SG_SLOT_FREE, v.incarnation));
	CHECK_EQ(sg_tx_commit(tx), -EIO);
	CHECK(v.shut_down && sg_iget(&v, &root, mtime) == mtime);
	sg_abandon(&v);
	test_clean(mem, TEST_SMALL);
}

/*
 * Fills ledger pages with one entry for an inode in use. Stores @last as the link of the last page.
 */
static void fill_ledger(const struct sg_super *sb, unsigned int pages, u64 last)
{
	u64 page = sb->ledger_off, next = sb->data_off + TEST_SMALL / 2;
	unsigned int i;

	while (pages--) {
		u64 *word = (u64 *)(mem + page);

		word[0] = pages ? next : last;
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			word[i] = SG_LEDGER_ENTRY(SG_LEDGER_INODE, SG_INO_ROOT, 0, 0);
		page = next;
		next += SG_PAGE;
	}
}

/* A long hostile ledger with repeated entries takes almost no time. */
static void hostile_ledger(void)
{
	const u64 pages[] = { 3, SG_LEDGER_PAGES, SG_LEDGER_PAGES }, loop[] = { 1, 1, 0 };
	struct sg_vol v;
	unsigned int i;
	clock_t start;

	for (i = 0; i < SG_ARRAY_SIZE(pages); i++) {
		format();
		CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
		fill_ledger(&v.sb, (unsigned int)pages[i],
			    loop[i] ? v.sb.data_off + TEST_SMALL / 2 : 0);
		start = clock();
		CHECK_OK(sg_join(&v, &test_identity, 0, false));
		CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
		CHECK_EQ(sg_get(&v, SG_HOT(errors)) != 0, loop[i]);
		sg_abandon(&v);
	}
}

/* --- states in which no change is allowed ---------------------------------------------------- */

static void no_changes(struct sg_vol *v, int err)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref root, ref;
	struct sg_attr a = { .mode = 0700 };
	u8 buf[10] = "";

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	CHECK_OK(sg_getattr(v, &root, &a));
	CHECK_EQ(sg_touch(v, &root, SG_SET_MTIME, 1, 1, 1), err);
	CHECK_EQ(sg_write(v, &root, 0, buf, 10, 1), err);
	CHECK_EQ(sg_resize(v, &root, 0, 1), err);
	CHECK_EQ(sg_punch(v, &root, 0, 1, 1), err);
	CHECK_EQ(sg_allocate(v, &root, 0, 1), err);
	CHECK_EQ(sg_collapse(v, &root, 0, SG_PAGE, 1), err);
	CHECK_EQ(sg_reclaim(v, 1), err);
	CHECK_EQ(sg_super_write(v, &v->sb), err);
	if (v->slot < 0)
		return;
	CHECK_EQ(sg_create(v, &root, "x", 1, &new, &ref), err);
	CHECK_EQ(sg_tmpfile(v, &new, &ref), err);
	CHECK_EQ(sg_setattr(v, &root, SG_SET_MODE, &a), err);
	CHECK_EQ(sg_xattr_set(v, &root, SG_XATTR_USER, "x", 1, buf, 1, 0, 1), err);
}

static void read_only_and_shut_down(void)
{
	struct sg_vol v;
	u8 *before = test_map(TEST_SMALL);

	format();
	memcpy(before, mem, TEST_SMALL);
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, true, NULL));
	no_changes(&v, -EROFS);
	CHECK(!memcmp(before, mem, TEST_SMALL));
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	v.shut_down = true;
	no_changes(&v, -EIO);
	sg_leave(&v);
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK(sg_needs_recovery(&v));	/* a mount that was shut down does not leave cleanly */
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	v.read_only = true;
	no_changes(&v, -EROFS);
	v.read_only = false;
	sg_leave(&v);
	test_clean(mem, TEST_SMALL);
	test_unmap(before, TEST_SMALL);
}

static void superblock_rewritten(void)
{
	struct sg_super sb;
	struct sg_vol v;

	format();
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, true));
	sb = v.sb;
	strcpy(sb.label, "another");
	CHECK_OK(sg_super_write(&v, &sb));
	CHECK_EQ(v.sb.generation, sb.generation + 1);
	sg_leave(&v);
	test_clean(mem, TEST_SMALL);
	super(0)->magic = 0;
	CHECK_OK(sg_open(&v, mem, TEST_SMALL, false, NULL));
	CHECK(!strcmp(v.sb.label, "another"));
}

/* sg_renew() turns a copy of a volume into a separate volume, and keeps the contents. */
static void renewed(void)
{
	char longest[64], too_long[65];
	struct sg_super was;
	struct tvol t;

	memset(longest, 'l', sizeof(longest));
	longest[63] = 0;
	memset(too_long, 'l', sizeof(too_long));
	too_long[64] = 0;
	tvol_make(&t, TEST_SMALL);
	test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	was = t.v.sb;
	CHECK_EQ(sg_renew(&t.v, too_long, why), -EINVAL);
	CHECK(strstr(why, "longer than 63 bytes") && !memcmp(&t.v.sb, &was, sizeof(was)));
	CHECK_OK(sg_renew(&t.v, longest, why));
	CHECK(memcmp(t.v.sb.uuid, was.uuid, 16) && !strcmp(t.v.sb.label, longest));
	CHECK(t.v.sb.uuid[6] >> 4 == 4 && t.v.sb.uuid[8] >> 6 == 2);
	CHECK(t.v.sb.created > was.created && t.v.sb.phys == was.phys);
	CHECK(!memcmp(t.mem, t.mem + TEST_SMALL - SG_PAGE, sizeof(was)));
	tvol_recheck(&t);
	test_lookup(&t.v, &t.root, "f");
	was = t.v.sb;
	CHECK_OK(sg_renew(&t.v, "", why));	/* no byte of the long label remains */
	CHECK(!t.v.sb.label[0] && !memcmp(t.v.sb.label, t.v.sb.label + 1, 63));
	CHECK(memcmp(t.v.sb.uuid, was.uuid, 16));
	tvol_drop(&t);
}

/* sg_relabel() changes the UUID, the label, or both. An omitted value does not change. */
static void relabelled(void)
{
	static const u8 uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	struct sg_super was;
	char too_long[65];
	struct tvol t;

	memset(too_long, 'l', sizeof(too_long));
	too_long[64] = 0;
	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_relabel(&t.v, NULL, "label", why));
	was = t.v.sb;
	CHECK_EQ(sg_relabel(&t.v, uuid, too_long, why), -EINVAL);
	CHECK(strstr(why, "longer than 63 bytes") && !memcmp(&t.v.sb, &was, sizeof(was)));
	CHECK_OK(sg_relabel(&t.v, uuid, NULL, why));
	CHECK(!memcmp(t.v.sb.uuid, uuid, 16) && !strcmp(t.v.sb.label, "label"));
	CHECK(t.v.sb.created == was.created && t.v.sb.phys == was.phys);
	CHECK_OK(sg_relabel(&t.v, NULL, "l", why));	/* no byte of the longer label remains */
	CHECK(!memcmp(t.v.sb.uuid, uuid, 16) && !strcmp(t.v.sb.label, "l"));
	CHECK(!memcmp(t.v.sb.label + 2, t.v.sb.label + 1, 62) && !t.v.sb.label[1]);
	CHECK(!memcmp(t.mem, t.mem + TEST_SMALL - SG_PAGE, sizeof(was)));
	tvol_recheck(&t);
	tvol_drop(&t);
}

/* Both calls are refused while another system uses the volume, or may still use it. */
static void renewed_only_alone(void)
{
	struct sg_super was;
	struct tvol t;
	struct sg_vol v;

	tvol_make(&t, TEST_SMALL);
	was = t.v.sb;
	CHECK_OK(sg_open(&v, t.mem, TEST_SMALL, false, NULL));
	CHECK_OK(sg_join(&v, &test_identity, 0, false));
	CHECK_EQ(sg_renew(&v, "new", why), -EBUSY);
	CHECK_EQ(sg_relabel(&v, (u8 *)t.v.sb.hash_seed, "new", why), -EBUSY);
	CHECK(strstr(why, "unmount it there"));
	CHECK(!memcmp(t.mem, &was, sizeof(was)));
	sg_leave(&t.v);
	CHECK_OK(sg_renew(&v, "new", why));
	sg_leave(&v);
	CHECK_OK(sg_open(&v, t.mem, TEST_SMALL, true, NULL));
	CHECK(sg_renew(&v, "newer", why) && !strcmp(v.sb.label, "new"));
	test_clean(t.mem, TEST_SMALL);
}

/*
 * The volume had another UUID when it was opened. The opener's data is outdated, and the join is
 * refused.
 */
static void opened_before(void)
{
	u8 uuid[16];
	struct tvol t;
	struct sg_vol v;

	tvol_make(&t, TEST_SMALL);
	CHECK_OK(sg_open(&v, t.mem, TEST_SMALL, false, NULL));
	sg_make_uuid(uuid);
	CHECK_OK(sg_relabel(&t.v, uuid, NULL, why));
	tvol_leave(&t);
	CHECK_EQ(sg_join(&v, &test_identity, 0, false), -EAGAIN);
	CHECK(strstr(v.why, "its superblock has changed"));
	test_clean(t.mem, TEST_SMALL);
	test_unmap(t.mem, TEST_SMALL);
}

/* --- records -------------------------------------------------------------------------------- */

static void strange_inodes(void)
{
	struct sg_iref f;
	struct sg_attr a;
	struct sg_inode *rec;
	struct tvol t;

	tvol_make(&t, TEST_SMALL);
	f = test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	t.v.on_damage = NULL;
	rec = (void *)(t.mem + f.off);
	rec->mode = 0030644 | 1ULL << 32;
	CHECK_EQ(sg_getattr(&t.v, &f, &a), -EUCLEAN);
	rec->mode = S_IFREG | 0600 | 1ULL << 32;
	rec->size = SG_FILE_MAX + 1;
	CHECK_EQ(sg_getattr(&t.v, &f, &a), -EUCLEAN);
	rec->size = 0;
	CHECK_OK(sg_getattr(&t.v, &f, &a));
	rec->mode = 0;
	CHECK_EQ(sg_getattr(&t.v, &f, &a), -ESTALE);
	CHECK_EQ(sg_setattr(&t.v, &f, SG_SET_MODE, &a), -ESTALE);
	rec->mode = S_IFREG | 0600 | 1ULL << 32;
	a.generation = 99;
	CHECK_OK(sg_setattr(&t.v, &f, SG_SET_GENERATION, &a));
	CHECK_OK(sg_getattr(&t.v, &f, &a));
	CHECK_EQ(a.generation, 99);
	CHECK_EQ(sg_iref(&t.v, 0, &f), -ESTALE);
	CHECK_EQ(sg_iref(&t.v, SG_INO_MAX + 1, &f), -ESTALE);
	CHECK_EQ(sg_iref(&t.v, 1 << 20, &f), -ESTALE);
	*(u64 *)(t.mem + SG_HOT(errors)) = 0;
	tvol_drop(&t);
}

int main(void)
{
	sg_log_hook = quiet;
	mem = test_map(TEST_SMALL + SG_CHUNK);
	format_refusals();
	format_takes_what_it_is_given();
	atomic_volume();
	open_refusals();
	damaged_superblocks();
	backup_in_the_middle();
	one_at_a_time();
	why_not_entered();
	watching();
	all_slots_taken();
	taken_for_dead();
	taken_for_dead_while_waiting();
	taken_for_dead_while_changing();
	hostile_ledger();
	read_only_and_shut_down();
	superblock_rewritten();
	renewed();
	relabelled();
	renewed_only_alone();
	opened_before();
	strange_inodes();
	return test_done();
}
