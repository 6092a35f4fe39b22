// SPDX-License-Identifier: Apache-2.0
/*
 * Which systems have a file open, and which file has an inode number (docs/protocol.md, section 5).
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static u8 *mem;
static u64 settled;

static int unlink_by(struct tsys *s, const char *name)
{
	return sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 1);
}

static bool gone(struct tsys *s, const struct sg_iref *ref)
{
	struct sg_attr a;
	int err = sg_getattr(&s->v, ref, &a);

	CHECK(!err || err == -ESTALE);
	return err;
}

static void write_all(struct tsys *s, const struct sg_iref *f, int byte)
{
	u8 buf[5000];

	memset(buf, byte, sizeof(buf));
	CHECK_EQ(sg_write(&s->v, f, 0, buf, sizeof(buf), 1), sizeof(buf));
}

static void holds(struct tsys *s, const struct sg_iref *f, int byte)
{
	u8 buf[5000], want[5000];

	memset(want, byte, sizeof(want));
	CHECK_EQ(sg_read(&s->v, f, 0, buf, sizeof(buf)), sizeof(buf));
	CHECK(!memcmp(buf, want, sizeof(want)));
}

static void join(struct tsys *s, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		tsys_join(&s[i], mem, SIZE, i + 1);
}

static void leave(struct tsys *s, unsigned int n)
{
	struct sg_statfs st;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (i + 1 == n) {
			sg_settle(&s[i].v);
			CHECK_OK(sg_statfs(&s[i].v, &st));
			CHECK_EQ(st.used_inodes, 1);	/* no inode without a name remains */
		}
		tsys_leave(&s[i]);
	}
	test_clean(mem, SIZE);
}

/* Makes a file, and gets its generation like a lookup. */
static struct sg_iref make(struct tsys *s, const char *name)
{
	struct sg_iref f = test_create(&s->v, &s->root, name, S_IFREG | 0600);

	f.generation = (u32)sg_iget(&s->v, &f, genflags);
	return f;
}

/*
 * A file that another system unlinks keeps its bytes while it is open. The last close frees the
 * file.
 */
static void last_close_frees(void)
{
	struct tsys s[3];
	struct sg_iref f;
	u64 before;

	join(s, 3);
	before = sg_used_inodes(&s[0].v);
	f = make(&s[0], "f");
	write_all(&s[0], &f, 7);
	CHECK_OK(sg_open_inode(&s[0].v, &f, false));
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(unlink_by(&s[2], "f"));
	/* the unlinking system does not use the file, but other systems do */
	CHECK_OK(sg_evict(&s[2].v, &f));
	sg_settle(&s[2].v);
	holds(&s[0], &f, 7);
	write_all(&s[1], &f, 8);		/* the file can still be used */
	holds(&s[0], &f, 8);
	/* no other system can open the unlinked file */
	CHECK_EQ(sg_open_inode(&s[2].v, &f, false), -ESTALE);
	/* a system that has the file open may open it again */
	CHECK_OK(sg_open_inode(&s[1].v, &f, true));
	sg_close_inode(&s[1].v, &f);
	CHECK_OK(sg_evict(&s[1].v, &f));
	sg_settle(&s[0].v);
	sg_settle(&s[1].v);
	sg_settle(&s[2].v);
	holds(&s[0], &f, 8);
	sg_close_inode(&s[0].v, &f);
	CHECK(!gone(&s[0], &f));
	CHECK_OK(sg_evict(&s[0].v, &f));
	CHECK(gone(&s[1], &f));
	CHECK_EQ(sg_used_inodes(&s[0].v), before);
	leave(s, 3);
}

/*
 * The death of a system closes its files. Live systems take over the deferred inodes of a dead
 * system.
 */
static void death_closes(void)
{
	struct tsys s[3];
	struct sg_iref f, g;

	join(s, 3);
	f = make(&s[0], "f");
	g = make(&s[0], "g");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(sg_open_inode(&s[0].v, &g, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(sg_evict(&s[0].v, &f));
	/* the dying system defers this file, which is open here */
	CHECK_OK(unlink_by(&s[1], "g"));
	sg_settle(&s[0].v);
	CHECK(!gone(&s[0], &f));
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	sg_recover_all(&s[2].v);
	sg_settle(&s[0].v);
	sg_settle(&s[2].v);
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &f));
	CHECK(!gone(&s[0], &g));
	sg_close_inode(&s[0].v, &g);
	CHECK_OK(sg_evict(&s[0].v, &g));
	CHECK(gone(&s[0], &g));
	/* the death of a system that has an unlinked file open frees the file as well */
	f = make(&s[0], "f");
	CHECK_OK(sg_open_inode(&s[0].v, &f, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	tsys_fence(&s[2], &s[0]);
	tsys_die(&s[0]);
	sg_recover_all(&s[2].v);
	sg_settle(&s[2].v);
	CHECK(gone(&s[2], &f));
	s[0] = s[2];
	leave(s, 1);
}

/* A fenced system that continues cannot close, open or unmap files of its slot's next owner. */
static void the_dead_close_nothing(void)
{
	struct tsys s[2], next;
	struct sg_iref f, g;

	join(s, 2);
	f = make(&s[0], "f");
	g = make(&s[0], "g");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	tsys_fence(&s[0], &s[1]);
	sg_recover_all(&s[0].v);
	tsys_join(&next, mem, SIZE, 9);
	CHECK_EQ(next.v.slot, s[1].v.slot);
	CHECK_OK(sg_open_inode(&next.v, &f, false));
	sg_set_mapper(&next.v, &f, false, true);
	sg_set_mapper(&s[1].v, &f, false, false);
	CHECK_EQ(sg_iget(&s[0].v, &f, mappers), 1ULL << next.v.slot);
	s[1].v.shut_down = false;	/* makes each call the first to detect the fence */
	sg_set_mapper(&s[1].v, &g, false, true);
	CHECK_EQ(sg_iget(&s[0].v, &g, mappers), 0);
	s[1].v.shut_down = false;
	CHECK(!sg_close_inode(&s[1].v, &f));
	CHECK(sg_open_elsewhere(&s[0].v, &f));
	s[1].v.shut_down = false;
	CHECK_EQ(sg_open_inode(&s[1].v, &g, false), -EIO);
	CHECK(!sg_open_elsewhere(&s[0].v, &g));
	tsys_die(&s[1]);
	sg_set_mapper(&next.v, &f, false, false);
	sg_close_inode(&next.v, &f);
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(unlink_by(&s[0], "g"));
	sg_settle(&s[0].v);
	s[1] = next;
	leave(s, 2);
}

/* Finds an inode's entry in a slot's ledger. */
static u64 deferred_of(struct sg_vol *v, unsigned int slot, u64 ino)
{
	u64 at = sg_ledger_off(v, slot), end = at + SG_PAGE;

	for (at += 8; at < end; at += 8)
		if (SG_LEDGER_KIND(sg_get(v, at)) == SG_LEDGER_INODE &&
		    SG_LEDGER_VALUE(sg_get(v, at)) == ino)
			return at;
	test_fail(__FILE__, __LINE__, "slot %u does not list deferred inode %" PRIu64, slot, ino);
}

/*
 * One thread takes over a dead system's deferred inodes. Meanwhile another thread closes and frees
 * such a file. The other thread must not change the entry that the first thread is still moving.
 */
static void closed_while_taken_over(bool comes)
{
	struct tsys s[2];
	struct sg_iref f;
	struct sg_tx *tx;
	u64 at;

	join(s, 2);
	f = make(&s[0], "f");
	CHECK_OK(sg_open_inode(&s[0].v, &f, false));
	CHECK_OK(unlink_by(&s[1], "f"));
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	sg_recover_all(&s[0].v);
	at = deferred_of(&s[0].v, 1, f.ino);
	tx = sg_tx_begin(&s[0].v);
	sg_defer_free(tx, SG_LEDGER_INODE, f.ino, 0);
	sg_tx_set(tx, at, 0);
	CHECK(sg_close_inode(&s[0].v, &f));
	CHECK_OK(sg_evict(&s[0].v, &f));
	CHECK(gone(&s[0], &f));
	if (comes)
		CHECK_OK(sg_tx_commit(tx));
	else
		sg_tx_abort(tx);
	sg_settle(&s[0].v);
	CHECK_EQ(sg_ledger_reclaimable(&s[0].v), 0);
	CHECK(sg_ledger_empty(&s[0].v, 0));
	make(&s[0], "f");	/* new entries still get separate places */
	make(&s[0], "g");
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(unlink_by(&s[0], "g"));
	sg_settle(&s[0].v);
	leave(s, 1);
}

static u64 used_ino;

static bool in_use(struct sg_vol *vol, u64 ino, u32 generation)
{
	(void)vol;
	(void)generation;
	return ino == used_ino;
}

/*
 * A paused system may have locked a deferred inode, or a system that waits for space that this
 * system has deferred. Neither settling nor a join into the slot waits for that lock.
 */
static void locked_is_left_for_later(void)
{
	struct tsys s[2];
	struct sg_iref f;

	join(s, 2);
	f = make(&s[0], "f");
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(sg_ilock(&s[1].v, &f));
	test_within(20, "settling, while another system holds the lock");
	sg_settle(&s[0].v);
	CHECK(!gone(&s[1], &f));
	tsys_fence(&s[1], &s[0]);
	tsys_die(&s[0]);
	sg_recover_all(&s[1].v);
	tsys_join(&s[0], mem, SIZE, 9);
	test_within(0, NULL);
	CHECK(!gone(&s[1], &f));
	sg_iunlock(&s[1].v, &f);
	sg_settle(&s[0].v);
	CHECK(gone(&s[1], &f));
	leave(s, 2);
}

/* s[1] locks all transaction areas of s[0], as a hostile member can. */
static void seize_areas(struct tsys *s, bool on)
{
	unsigned int i;

	for (i = 0; i < s[0].v.sb.areas; i++) {
		u64 lock = sg_area_off(&s[1].v, (unsigned int)s[0].v.slot, i) +
			   offsetof(struct sg_area, lock);

		if (on)
			CHECK(sg_trylock(&s[1].v, lock));
		else
			sg_unlock(&s[1].v, lock);
	}
}

/* Makes an unlinked file that s[0] does not use any more. */
static struct sg_iref make_unlinked(struct tsys *s)
{
	struct sg_iref f = make(&s[0], "f");

	write_all(&s[0], &f, 7);
	CHECK_OK(sg_open_inode(&s[0].v, &f, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK(sg_close_inode(&s[0].v, &f));
	return f;
}

/* Checks that s[0] frees the inode after the locks are released. */
static void settled_later(struct tsys *s, const struct sg_iref *f, u64 used)
{
	CHECK(!gone(&s[0], f));
	sg_settle(&s[0].v);
	CHECK(gone(&s[1], f));
	CHECK_EQ(sg_used_inodes(&s[0].v), used);
}

/*
 * The last user of a file may be memory reclaim, or an exiting process. It must not wait for the
 * file's lock, for a transaction area or for the end of a freeze, which may take very long. A later
 * call frees the file.
 */
static void the_last_user_never_waits(void)
{
	struct tsys s[2];
	struct sg_iref f;
	u64 used, start;

	join(s, 2);
	used = sg_used_inodes(&s[0].v);
	f = make_unlinked(s);
	test_within(20, "evicting, while another system has locks that this needs");
	CHECK_OK(sg_evict_try(&s[0].v, &f));	/* succeeds: no system holds the lock */
	CHECK(gone(&s[0], &f));
	f = make_unlinked(s);
	CHECK_OK(sg_ilock(&s[1].v, &f));
	CHECK_EQ(sg_evict_try(&s[0].v, &f), -EBUSY);
	sg_iunlock(&s[1].v, &f);
	settled_later(s, &f, used);
	f = make_unlinked(s);
	seize_areas(s, true);
	CHECK_EQ(sg_evict_try(&s[0].v, &f), -EBUSY);
	/* the failed call has kept no lock */
	CHECK(!sg_is_locked(&s[1].v, SG_IOFF(&f, lock)));
	/* while another thread is known to wait long, a call fails without a retry */
	sg_store64(&s[0].v.stuck, 1);
	start = sg_ticks();
	CHECK_EQ(sg_evict_try(&s[0].v, &f), -EBUSY);
	CHECK(sg_ticks() - start < 1000000000ULL);
	sg_store64(&s[0].v.stuck, 0);
	seize_areas(s, false);
	settled_later(s, &f, used);
	f = make_unlinked(s);
	sg_store64(&s[0].v.still.closed, 1);
	CHECK_EQ(sg_evict_try(&s[0].v, &f), -EBUSY);
	sg_store64(&s[0].v.still.closed, 0);
	settled_later(s, &f, used);
	test_within(0, NULL);
	leave(s, 2);
}

static void *settle_once(void *arg)
{
	struct tsys *s = arg;

	sg_settle(&s->v);
	sg_store64(&settled, 1);
	return NULL;
}

/*
 * s[0] settles, and waits for a lock of s[1]. A request to stop ends the settling, and affects no
 * other thread.
 */
static void stopped_while_it_waits(struct tsys *s, u64 lock, const struct sg_iref *f)
{
	pthread_t id;

	CHECK(sg_trylock(&s[1].v, lock));
	settled = 0;
	CHECK_OK(pthread_create(&id, NULL, settle_once, &s[0]));
	while (!sg_load64(&s[0].v.stuck))
		sg_sleep_us(1000);
	CHECK(!sg_load64(&settled));
	sg_settle_stop(&s[0].v, true);
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(sg_load64(&s[0].v.stuck), 0);
	CHECK_OK(sg_ilock(&s[0].v, &s[0].root));	/* other threads can still take locks */
	sg_iunlock(&s[0].v, &s[0].root);
	sg_unlock(&s[1].v, lock);
	sg_settle(&s[0].v);	/* settling does nothing before it is allowed again */
	CHECK(!gone(&s[0], f));
	sg_settle_stop(&s[0].v, false);
}

/* A request to stop, for a freeze or an unmount, ends settling in any wait. */
static void settling_can_be_stopped(void)
{
	struct tsys s[3];
	struct sg_iref f;
	unsigned int i;

	join(s, 3);
	f = make(&s[0], "f");
	write_all(&s[0], &f, 7);
	CHECK_OK(unlink_by(&s[0], "f"));
	test_within(20, "settling with a request to stop");
	for (i = 1; i < s[0].v.sb.areas; i++)
		CHECK(sg_trylock(&s[1].v, sg_area_off(&s[1].v, 0, i) + offsetof(struct sg_area, lock)));
	stopped_while_it_waits(s, sg_area_off(&s[0].v, 0, 0) + offsetof(struct sg_area, lock), &f);
	for (i = 1; i < s[0].v.sb.areas; i++)
		sg_unlock(&s[1].v, sg_area_off(&s[1].v, 0, i) + offsetof(struct sg_area, lock));
	/* taking over a dead system's ledger waits for the mount table's lock */
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &f));
	f = make(&s[2], "g");
	CHECK_OK(unlink_by(&s[2], "g"));
	tsys_fence(&s[0], &s[2]);
	tsys_die(&s[2]);
	sg_recover_all(&s[0].v);
	stopped_while_it_waits(s, SG_HOT(slot_lock), &f);
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &f));
	test_within(0, NULL);
	leave(s, 2);
}

/*
 * The slot's last owner left the bit of an open file. The slot's present owner detects that when
 * the file loses its name.
 */
static void stale_bits(void)
{
	struct tsys s[2];
	struct sg_iref f, g;

	join(s, 2);
	f = make(&s[0], "f");
	g = make(&s[0], "g");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(sg_open_inode(&s[1].v, &g, false));
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	sg_recover_all(&s[0].v);
	tsys_join(&s[1], mem, SIZE, 9);
	CHECK_EQ(s[1].v.slot, 1);
	s[1].v.in_use = in_use;
	used_ino = g.ino;
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(unlink_by(&s[0], "g"));
	CHECK_OK(sg_evict(&s[0].v, &f));
	CHECK_OK(sg_evict(&s[0].v, &g));
	CHECK(!gone(&s[0], &f));	/* another system could have the file open */
	sg_settle(&s[1].v);
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &f));
	CHECK(!gone(&s[0], &g));
	used_ino = 0;
	sg_settle(&s[1].v);
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &g));
	/* a joiner clears the bit for an inode that was deferred when the slot got a new owner */
	f = make(&s[0], "f");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(sg_evict(&s[0].v, &f));
	tsys_fence(&s[0], &s[1]);
	tsys_die(&s[1]);
	sg_recover_all(&s[0].v);
	tsys_join(&s[1], mem, SIZE, 9);
	sg_settle(&s[0].v);
	CHECK(gone(&s[0], &f));
	leave(s, 2);
}

static struct {
	struct tsys s[2];	/* the system that settles, and another system */
	struct sg_iref f;
	u64 asked;
} turned;

/*
 * The engine has queried whether this system uses the inode, and is stopped with the answer "no".
 * Meanwhile the inode gets a name, is opened here, and loses the name.
 */
static bool named_and_opened(struct sg_vol *vol, u64 ino, u32 generation)
{
	struct tsys *by = &turned.s[1];

	if (ino != turned.f.ino || generation != (u32)turned.f.generation)
		return false;
	if (turned.asked++)
		return true;
	CHECK_OK(sg_link(&by->v, &turned.f, &by->root, "named", 5, 1));
	CHECK(!sg_close_inode(&by->v, &turned.f));
	CHECK_OK(sg_open_inode(vol, &turned.f, false));
	CHECK_OK(unlink_by(by, "named"));
	CHECK_OK(sg_evict(&by->v, &turned.f));
	CHECK(!gone(by, &turned.f));
	return false;
}

/*
 * A ledger or list names an inode that another system has freed, and made again without a name. The
 * system with that ledger checks the openers, and does not free an inode that it has opened
 * meanwhile.
 */
static void opened_since_the_look(bool on_lists, bool short_of_space)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct tsys *s = turned.s;
	struct sg_iref f, spare[100];
	unsigned int n = 0;

	join(s, 2);
	s[0].v.deferred_on_lists = on_lists;
	f = make(&s[1], "f");
	CHECK_OK(sg_open_inode(&s[1].v, &f, false));
	CHECK_OK(unlink_by(&s[0], "f"));
	sg_close_inode(&s[1].v, &f);
	CHECK_OK(sg_evict(&s[1].v, &f));
	CHECK(gone(&s[1], &f));
	do {
		CHECK(n < SG_ARRAY_SIZE(spare));
		CHECK_OK(sg_tmpfile(&s[1].v, &new, &spare[n]));
	} while (spare[n++].ino != f.ino);
	turned.f = spare[--n];
	turned.f.generation = (u32)sg_iget(&s[1].v, &turned.f, genflags);
	write_all(&s[1], &turned.f, 3);
	turned.asked = 0;
	s[0].v.in_use = named_and_opened;
	if (short_of_space)
		CHECK(sg_inode_settle_left(&s[0].v, f.ino));
	else
		CHECK_OK(sg_inode_settle(&s[0].v, f.ino));
	CHECK(turned.asked);
	CHECK(!gone(&s[0], &turned.f));
	holds(&s[0], &turned.f, 3);
	s[0].v.in_use = NULL;
	sg_close_inode(&s[0].v, &turned.f);
	CHECK_OK(sg_evict(&s[0].v, &turned.f));
	CHECK(gone(&s[0], &turned.f));
	while (n--) {
		sg_close_inode(&s[1].v, &spare[n]);
		CHECK_OK(sg_evict(&s[1].v, &spare[n]));
	}
	leave(s, 2);
}

/* --- the file of an inode number -------------------------------------------------------------- */

/* Makes files, and adds their number to @n, until one of them gets the number of a freed file. */
static struct sg_iref reuse(struct tsys *s, const struct sg_iref *old, unsigned int *n)
{
	struct sg_iref f;
	char name[30];

	for (*n = 0; *n < 1000; ) {
		sprintf(name, "again-%u", (*n)++);
		f = make(s, name);
		if (f.ino == old->ino)
			return f;
	}
	test_fail(__FILE__, __LINE__, "inode %" PRIu64 " is not reused", old->ino);
}

static void remove_all(struct tsys *s, unsigned int n)
{
	struct sg_iref f;
	char name[30];

	while (n--) {
		sprintf(name, "again-%u", n);
		f = test_lookup(&s->v, &s->root, name);
		CHECK_OK(unlink_by(s, name));
		CHECK_OK(sg_evict(&s->v, &f));
	}
}

/* Late calls, when the number belongs to another file, change nothing. */
static void late_changes(struct tsys *s, const struct sg_iref *old)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_attr a = { .mode = 0777, .uid = 99 };
	struct sg_vol *v = &s->v;
	struct sg_iref out;
	u8 buf[100] = { 1 };

	CHECK_EQ(sg_write(v, old, 10, buf, sizeof(buf), 5), -ESTALE);
	CHECK_EQ(sg_write(v, old, 90000, buf, sizeof(buf), 5), -ESTALE);
	CHECK_EQ(sg_resize(v, old, 100, 5), -ESTALE);
	CHECK_EQ(sg_resize(v, old, 9000, 5), -ESTALE);
	CHECK_EQ(sg_punch(v, old, 10, 20, 5), -ESTALE);
	CHECK_EQ(sg_punch(v, old, 0, 4096, 5), -ESTALE);
	CHECK_EQ(sg_allocate(v, old, 5, 5), -ESTALE);
	CHECK_EQ(sg_collapse(v, old, 0, 4096, 5), -ESTALE);
	CHECK_EQ(sg_insert(v, old, 0, 4096, 5), -ESTALE);
	CHECK_EQ(sg_setattr(v, old, SG_SET_MODE | SG_SET_UID, &a), -ESTALE);
	CHECK_EQ(sg_touch(v, old, SG_SET_MTIME, 5, 5, 5), -ESTALE);
	CHECK_EQ(sg_xattr_set(v, old, SG_XATTR_USER, "x", 1, buf, 10, 0, 5), -ESTALE);
	CHECK_EQ(sg_link(v, old, &s->root, "late", 4, 5), -ESTALE);
	CHECK_EQ(sg_open_inode(v, old, false), -ESTALE);
	CHECK(sg_create(v, old, "late", 4, &new, &out) < 0);
	CHECK_OK(sg_evict(v, old));		/* finds nothing to free */
}

static void numbers_come_back(void)
{
	struct sg_attr was = {}, is = {};
	struct tsys s[2];
	struct sg_iref f, g;
	unsigned int n;

	join(s, 2);
	f = make(&s[0], "f");
	write_all(&s[0], &f, 1);
	CHECK_OK(unlink_by(&s[1], "f"));
	CHECK_OK(sg_evict(&s[1].v, &f));
	late_changes(&s[0], &f);		/* the record is free */
	g = reuse(&s[1], &f, &n);
	CHECK(g.generation != f.generation);
	write_all(&s[1], &g, 2);
	CHECK_OK(sg_getattr(&s[1].v, &g, &was));
	late_changes(&s[0], &f);		/* the record belongs to another file */
	CHECK_OK(sg_getattr(&s[1].v, &g, &is));
	CHECK(!memcmp(&was, &is, sizeof(is)));
	holds(&s[0], &g, 2);
	/* a close of the old file does not close the new file with its number */
	CHECK_OK(sg_open_inode(&s[0].v, &g, false));
	CHECK_EQ(sg_open_inode(&s[0].v, &f, false), -ESTALE);
	sg_close_inode(&s[0].v, &f);
	CHECK(sg_open_elsewhere(&s[1].v, &g));
	sg_close_inode(&s[0].v, &g);
	CHECK(!sg_open_elsewhere(&s[1].v, &g));
	remove_all(&s[1], n);
	leave(s, 2);
}

/* Gives the old number to another inode of @mode. A symbolic link gets @target. */
static void becomes(struct tsys *s, const struct sg_iref *old, u32 mode, const char *target)
{
	struct sg_new new = { .mode = mode, .now = 1, .target = target,
			      .target_len = target ? (u32)strlen(target) : 0 };
	struct sg_iref f = { .ino = 0 };
	unsigned int n;
	char name[30];

	for (n = 0; f.ino != old->ino; n++) {
		CHECK(n < 1000);
		sprintf(name, "again-%u", n);
		CHECK_OK(sg_create(&s->v, &s->root, name, (u32)strlen(name), &new, &f));
	}
	/* gives a directory an index */
	if (sg_is_dir(mode))
		test_create(&s->v, &f, "inside", S_IFREG | 0600);
}

/*
 * A call with an old reference finds words of another inode in the file's record. That is no
 * damage. A flush succeeds, as the stores through a mapping were freed with the file.
 */
static void late_looks(u32 mode, const char *target)
{
	struct tsys s[2];
	struct sg_iref f;
	struct sg_run run;

	mem = tsys_volume(SIZE);
	join(s, 2);
	f = make(&s[0], "f");
	write_all(&s[0], &f, 1);
	CHECK_OK(unlink_by(&s[1], "f"));
	CHECK_OK(sg_evict(&s[1].v, &f));
	CHECK_OK(sg_flush(&s[0].v, &f, 0, 2));		/* the record is free */
	becomes(&s[1], &f, mode, target);
	CHECK_EQ(sg_walk(&s[0].v, &f, 0, 1, &run), -ESTALE);
	CHECK_EQ(sg_walk(&s[0].v, &f, 0, 9, &run), -ESTALE);
	CHECK_OK(sg_flush(&s[0].v, &f, 0, 2));
	tsys_leave(&s[1]);
	tsys_leave(&s[0]);
	test_clean(mem, SIZE);
}

/* --- files without a name --------------------------------------------------------------------- */

static void temporary_files(void)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct tsys s[2];
	struct sg_iref f;

	join(s, 2);
	s[0].v.in_use = in_use;
	used_ino = 0;
	CHECK_OK(sg_tmpfile(&s[0].v, &new, &f));
	write_all(&s[0], &f, 3);
	sg_settle(&s[0].v);	/* settles before the kernel reports the file as in use */
	sg_settle(&s[1].v);
	CHECK(!gone(&s[1], &f));
	used_ino = f.ino;
	/* a file that got a name, and was unlinked on another system, cannot get another name */
	CHECK_OK(sg_link(&s[0].v, &f, &s[0].root, "named", 5, 1));
	holds(&s[1], &f, 3);
	CHECK_OK(unlink_by(&s[1], "named"));
	CHECK_EQ(sg_link(&s[0].v, &f, &s[0].root, "again", 5, 1), -ENOENT);
	sg_settle(&s[1].v);
	holds(&s[0], &f, 3);
	sg_close_inode(&s[0].v, &f);
	CHECK_OK(sg_evict(&s[0].v, &f));
	CHECK(gone(&s[1], &f));
	/* a system dies while it has a file without a name */
	CHECK_OK(sg_tmpfile(&s[0].v, &new, &f));
	tsys_fence(&s[1], &s[0]);
	tsys_die(&s[0]);
	sg_recover_all(&s[1].v);
	sg_settle(&s[1].v);
	CHECK(gone(&s[1], &f));
	s[0] = s[1];
	leave(s, 1);
}

/*
 * Settling does not free a file that the engine is just making. That holds although the kernel does
 * not report the file as in use yet, and although the number was deferred before.
 */
static bool enough;

static void *settle_all_the_time(void *arg)
{
	struct tsys *s = arg;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		sg_settle(&s->v);
	return NULL;
}

static void spare_files(u64 rounds)
{
	u8 buf[4 * SG_PAGE], got[4 * SG_PAGE];
	struct tsys s[2];
	struct sg_iref f;
	pthread_t id[2];
	unsigned int i;

	join(s, 2);
	used_ino = 0;
	s[0].v.in_use = s[1].v.in_use = in_use;
	f = make(&s[0], "f");
	for (i = 0; i < 4; i++)
		memset(buf + i * SG_PAGE, (int)i + 1, SG_PAGE);
	CHECK_EQ(sg_write(&s[0].v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
	for (i = 0; i < 2; i++) {
		tsys_maintain(&s[i]);
		CHECK_OK(pthread_create(&id[i], NULL, settle_all_the_time, &s[i]));
	}
	while (rounds--) {
		CHECK_OK(sg_collapse(&s[0].v, &f, SG_PAGE, SG_PAGE, 1));
		CHECK_OK(sg_insert(&s[0].v, &f, SG_PAGE, SG_PAGE, 1));
		CHECK_EQ(sg_read(&s[0].v, &f, 0, got, sizeof(got)), sizeof(got));
		CHECK(!memcmp(got + 2 * SG_PAGE, buf + 2 * SG_PAGE, 2 * SG_PAGE));
		CHECK(!memcmp(got, buf, SG_PAGE));
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		CHECK_OK(pthread_join(id[i], NULL));
		tsys_rest(&s[i]);
	}
	CHECK_OK(unlink_by(&s[0], "f"));
	CHECK_OK(sg_evict(&s[0].v, &f));
	leave(s, 2);
}

int main(void)
{
	tlog_catch();
	mem = tsys_volume(SIZE);
	last_close_frees();
	death_closes();
	the_dead_close_nothing();
	closed_while_taken_over(true);
	closed_while_taken_over(false);
	locked_is_left_for_later();
	the_last_user_never_waits();
	settling_can_be_stopped();
	stale_bits();
	opened_since_the_look(false, false);
	opened_since_the_look(true, false);
	opened_since_the_look(false, true);
	numbers_come_back();
	temporary_files();
	spare_files(test_amount(300, 3000, 100000));
	late_looks(S_IFDIR | 0700, NULL);
	late_looks(S_IFLNK | 0777, "a/target/that/is/too/long/for/the/record/"
		   "and/so/has/a/page/of/its/own/to/be/in");
	return test_done();
}
