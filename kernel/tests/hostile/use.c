// SPDX-License-Identifier: Apache-2.0
/* The host's operations. All of them may fail, but must return, with a valid result. */
#include <sys/stat.h>
#include "hostile.h"

#define INODES	180	/* number of inode numbers that operations use */
#define NAMES	3000	/* names per listing */

void (*host_interlude)(struct host *h);

static const char *const names[] = {
	"dir", "many", "one", "table", "short", "long", "link", "sub", "large", "sparse", "new", "other",
	"a-name-of-some-length-so-that-a-bucket-holds-few-7", "third", "fourth",
};

static u64 below(struct host *h, u64 n)
{
	return rng_below(&h->rng, n);
}

static const char *a_name(struct host *h)
{
	return names[below(h, sizeof(names) / sizeof(names[0]))];
}

static u64 a_pos(struct host *h)
{
	static const u64 at[] = { 0, 5000, SG_CHUNK - 10, SG_CHUNK, 1ULL << 30, 1ULL << 40,
		SG_FILE_MAX - SG_PAGE };

	return below(h, 2) ? at[below(h, 7)] : below(h, 1 << 17);
}

/* Checks that the engine's error is one that a user may get. */
static s64 said(s64 ret)
{
	if (ret < -133)
		CHECK_EQ(ret, 0);
	return ret;
}

static bool some_inode(struct host *h, struct sg_iref *ref)
{
	u64 ino = below(h, 4) ? 1 + below(h, 14) : below(h, INODES);

	memset(ref, 0, sizeof(*ref));
	if (said(sg_iref(h->v, ino, ref)))
		return false;
	CHECK(ref->off < H_ROOM - SG_INODE_SIZE && !(ref->off & 7));
	return true;
}

static bool some_dir(struct host *h, struct sg_iref *ref)
{
	return !said(sg_iref(h->v, 1 + below(h, 4), ref));
}

/* --- reading ---------------------------------------------------------------------------------- */

struct listing {
	unsigned int n;
};

static bool emit_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct listing *l = ctx;

	(void)ino;
	(void)cookie;
	CHECK(len && len <= SG_NAME_MAX && type < 16 && !memchr(name, 0, len) && !memchr(name, '/', len));
	return ++l->n < NAMES;
}

static void op_list(struct host *h)
{
	struct listing l = { 0 };
	struct sg_iref dir;
	u64 cookie = below(h, 2) ? 0 : rng_next(&h->rng) >> 1;

	if (some_dir(h, &dir))
		said(sg_readdir(h->v, &dir, &cookie, emit_name, &l));
}

static void op_lookup(struct host *h)
{
	struct sg_iref dir, ref;
	unsigned int type;
	const char *name = a_name(h);

	if (some_dir(h, &dir) && !said(sg_lookup(h->v, &dir, name, (u32)strlen(name), &ref, &type)))
		CHECK(ref.off < H_ROOM - SG_INODE_SIZE && type < 16);
}

static int emit_xattr(void *ctx, unsigned int space, const char *name, u32 name_len, const void *value,
		      u32 value_len)
{
	u32 *sum = ctx;

	/* reads every byte */
	*sum ^= sg_crc32c(sg_crc32c(space, name, name_len), value, value_len);
	return 0;
}

static void op_look(struct host *h)
{
	struct sg_iref ref;
	struct sg_attr a;
	u32 sum = 0;

	if (!some_inode(h, &ref))
		return;
	said(sg_getattr(h->v, &ref, &a));
	sg_seq(h->v, &ref);
	sg_cuts(h->v, &ref);
	said(sg_xattr_list(h->v, &ref, emit_xattr, &sum));
	CHECK(said(sg_xattr_get(h->v, &ref, SG_XATTR_USER, "big", 3, h->buf, 30000)) <= 30000);
	CHECK(said(sg_readlink(h->v, &ref, (char *)h->buf, SG_SYMLINK_MAX)) <= SG_SYMLINK_MAX);
}

static void op_read(struct host *h)
{
	u64 pos = a_pos(h), len = below(h, HOST_BUF);
	struct sg_iref ref;
	struct sg_run run;

	if (!some_inode(h, &ref))
		return;
	CHECK(said(sg_read(h->v, &ref, pos, h->buf, len)) <= (s64)len);
	if (!said(sg_walk(h->v, &ref, pos / SG_PAGE, 1 << 20, &run))) {
		CHECK(run.pages && run.pages <= 1 << 20);
		CHECK(!run.off || (run.off < H_ROOM && run.pages <= (H_ROOM - run.off) / SG_PAGE));
	}
	sg_seek(h->v, &ref, pos, below(h, 2));
	sg_root(h->v, &ref);
	said(sg_flush(h->v, &ref, pos / SG_PAGE, 1 << 20));
}

/* --- data ------------------------------------------------------------------------------------- */

static void op_write(struct host *h)
{
	u64 len = 1 + rng_size(&h->rng, HOST_BUF - 1);
	struct sg_iref ref;

	if (some_inode(h, &ref))
		CHECK(said(sg_write(h->v, &ref, a_pos(h), h->buf, len, 2)) <= (s64)len);
}

/* Writes like the module: first gets the place for the bytes, then stores there. */
static void op_pieces(struct host *h)
{
	static const unsigned int flags[] = { 0, SG_WRITE_KEEP_SIZE, SG_WRITE_IN_PLACE, SG_WRITE_LOCKED };
	u64 pos = a_pos(h), len = 1 + below(h, HOST_BUF - 1), size;
	struct sg_iref ref;
	struct sg_write w;
	bool append = !below(h, 4);

	if (!some_inode(h, &ref) || (append && said(sg_append_begin(h->v, &ref, &size))))
		return;
	if (!said(sg_write_begin(h->v, &ref, append ? size : pos, len,
				 append ? SG_WRITE_APPEND : flags[below(h, 4)], &w))) {
		CHECK(w.len && w.len <= len && w.off < H_ROOM && w.len <= H_ROOM - w.off);
		memcpy(volume + w.off, h->buf, w.len);
		said(sg_write_end(h->v, &ref, &w, below(h, 3) ? w.len : below(h, w.len + 1), 2));
	}
	if (append)
		sg_append_end(h->v, &ref);
}

/*
 * Writes atomically, seldom without the lock, because the first such write waits for systems that
 * do not exist.
 */
static void op_atomic(struct host *h)
{
	u64 len = 1 + rng_size(&h->rng, SG_MIN(HOST_BUF, SG_ATOMIC_MAX) - 1), size;
	bool append = below(h, 8), filled = false;
	struct sg_iref ref;

	if (!some_inode(h, &ref))
		return;
	if (!below(h, 20))
		said(sg_set_atomic(h->v, &ref, below(h, 2), 2));
	if (append && said(sg_append_begin(h->v, &ref, &size)))
		return;
	said(sg_write_atomic(h->v, &ref, append ? size : a_pos(h), h->buf, len,
			     append ? SG_WRITE_APPEND : 0, 2, &filled));
	if (append)
		sg_append_end(h->v, &ref);
}

static void op_size(struct host *h)
{
	struct sg_iref ref;

	if (some_inode(h, &ref))
		said(sg_resize(h->v, &ref, below(h, 3) ? a_pos(h) : 0, 2));
}

static void op_range(struct host *h)
{
	u64 pos = a_pos(h), page = pos & ~(SG_PAGE - 1);
	struct sg_iref ref;

	if (!some_inode(h, &ref))
		return;
	switch (below(h, 4)) {
	case 0:
		said(sg_punch(h->v, &ref, pos, 1 + below(h, 2 * SG_CHUNK), 2));
		break;
	case 1:
		said(sg_collapse(h->v, &ref, page, SG_PAGE * (1 + below(h, 600)), 2));
		break;
	case 2:
		said(sg_insert(h->v, &ref, page, SG_PAGE * (1 + below(h, 600)), 2));
		break;
	default:
		said(sg_allocate(h->v, &ref, page / SG_PAGE, 1 + below(h, 600)));
	}
}

/* --- names ------------------------------------------------------------------------------------ */

static void op_create(struct host *h)
{
	static const u32 modes[] = { S_IFREG | 0600, S_IFDIR | 0700, S_IFLNK | 0777, S_IFIFO | 0600 };
	struct sg_new new = { .mode = modes[below(h, 4)], .now = 2, .target = "target", .target_len = 6 };
	struct sg_iref dir, ref;
	const char *name = a_name(h);

	if (some_dir(h, &dir) && !said(sg_create(h->v, &dir, name, (u32)strlen(name), &new, &ref)))
		said(sg_link(h->v, &ref, &dir, "more", 4, 2));
}

static void op_remove(struct host *h)
{
	const char *name = a_name(h);
	struct sg_iref dir, ref;
	unsigned int type;
	bool open;

	if (!some_dir(h, &dir) || said(sg_lookup(h->v, &dir, name, (u32)strlen(name), &ref, &type)))
		return;
	open = below(h, 2) && !said(sg_open_inode(h->v, &ref, false));
	if (said(sg_unlink(h->v, &dir, name, (u32)strlen(name), 2)))
		said(sg_rmdir(h->v, &dir, name, (u32)strlen(name), 2));
	if (!open || sg_close_inode(h->v, &ref))
		said(sg_evict(h->v, &ref));
}

static void op_rename(struct host *h)
{
	struct sg_new white = { .mode = S_IFCHR, .now = 2 };
	const char *a = a_name(h), *b = a_name(h);
	struct sg_iref from, to;

	if (some_dir(h, &from) && some_dir(h, &to))
		said(sg_rename(h->v, &from, a, (u32)strlen(a), &to, b, (u32)strlen(b),
			       (unsigned int)below(h, 5), &white, 2));
}

static void op_tmpfile(struct host *h)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 2 };
	struct sg_iref dir, ref;

	if (said(sg_tmpfile(h->v, &new, &ref)))
		return;
	said(sg_write(h->v, &ref, 0, h->buf, 9000, 2));
	if (below(h, 2) && some_dir(h, &dir))
		said(sg_link(h->v, &ref, &dir, "from-nowhere", 12, 2));
	if (sg_close_inode(h->v, &ref))
		said(sg_evict(h->v, &ref));
}

static void op_attr(struct host *h)
{
	struct sg_attr a = { .mode = S_IFREG | 0640, .uid = 5, .mtime = 7, .flags = SG_FL_NODUMP };
	const char *name = below(h, 2) ? "small" : "big";
	struct sg_iref ref;

	if (!some_inode(h, &ref))
		return;
	said(sg_setattr(h->v, &ref, (unsigned int)below(h, 0x200), &a));
	said(sg_touch(h->v, &ref, SG_SET_MTIME | SG_SET_ATIME, 1, 2, 3));
	said(sg_xattr_set(h->v, &ref, SG_XATTR_USER, name, (u32)strlen(name),
			  below(h, 3) ? h->buf : NULL, (u32)rng_size(&h->rng, 60000), 0, 2));
	said(sg_xattr_set_mode(h->v, &ref, SG_XATTR_ACL_ACCESS, h->buf, 100, 0600, 2));
}

/* --- words between systems -------------------------------------------------------------------- */

static void op_maintain(struct host *h)
{
	struct sg_statfs st;

	said(sg_maintain(h->v));
	if (!below(h, 3))
		sg_settle(h->v);
	if (!below(h, 3))
		said(sg_statfs(h->v, &st));
	if (!below(h, 4))
		said(sg_reclaim(h->v, ~0u));
	if (!below(h, 6))
		sg_epoch_wait(h->v, 50);
}

static void op_mappers(struct host *h)
{
	struct sg_iref ref;
	bool holes = below(h, 2);

	if (!some_inode(h, &ref))
		return;
	sg_set_mapper(h->v, &ref, holes, true);
	sg_wait_mappers(h->v, &ref, holes);
	sg_set_mapper(h->v, &ref, holes, false);
}

static void op_userlock(struct host *h)
{
	struct sg_userlock want = {
		.kind = 1 + (unsigned int)below(h, 3), .exclusive = below(h, 2), .pid = 5,
		.owner = below(h, 3), .slot = -1,
	}, who;
	struct sg_userlock_wait wait = { 0 };
	struct sg_iref ref;

	if (!some_inode(h, &ref))
		return;
	want.start = want.kind == SG_USERLOCK_FLOCK ? 0 : below(h, 50);
	want.last = want.kind == SG_USERLOCK_FLOCK ? SG_USERLOCK_MAX : want.start + below(h, 50);
	said(sg_userlock_test(h->v, &ref, &want, &who));
	if (said(sg_userlock_set(h->v, &ref, &want, below(h, 2) ? &wait : NULL, &who)))
		sg_userlock_give_up(h->v, &ref, &wait);
	if (below(h, 3))
		said(sg_userlock_clear(h->v, &ref, &want));
}

static void use_object(struct host *h, struct sg_sem *s)
{
	u64 until = sg_ticks() + 2000000, seen;
	struct sg_sem_stat st;
	int err;

	sg_sem_fstat(h->v, s, &st);
	switch (s->type) {
	case SG_SEM_MUTEX:
		err = (int)said(sg_sem_lock(h->v, s, h->caller, until));
		if (err == -EOWNERDEAD)
			said(sg_sem_consistent(h->v, s, h->caller));
		if (!err || err == -EOWNERDEAD)
			said(sg_sem_unlock(h->v, s, h->caller));
		break;
	case SG_SEM_COUNT:
		said(sg_sem_wait(h->v, s, h->caller, until));
		said(sg_sem_post(h->v, s));
		break;
	case SG_SEM_RWLOCK:
		if (!said(sg_sem_read_lock(h->v, s, h->caller, until)))
			said(sg_sem_read_unlock(h->v, s));
		if (!said(sg_sem_write_lock(h->v, s, h->caller, until)))
			said(sg_sem_write_unlock(h->v, s, h->caller));
		break;
	case SG_SEM_COND:
		said(sg_sem_cond_prepare(h->v, s, &seen));
		said(sg_sem_cond_wait(h->v, s, h->caller, seen, until));
		said(sg_sem_cond_signal(h->v, s, true));
		break;
	case SG_SEM_BARRIER:
		said(sg_sem_meet(h->v, s, h->caller, until));
		break;
	case SG_SEM_EVENT:
		said(sg_sem_await(h->v, s, h->caller, ~0ULL, until));
		said(sg_sem_advance(h->v, s, 3));
		break;
	case SG_SEM_RING:
		test_use_ring(h->v, s, h->caller, until, H_ROOM);
		break;
	}
	sg_sem_ring(h->v, s);
}

static bool emit_sem(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	unsigned int *n = ctx;

	CHECK(len && len <= SG_SEM_NAME_MAX && name[0] && st->type && st->type < SG_SEM_KINDS);
	return ++*n < 1000;
}

static void op_sem(struct host *h)
{
	unsigned int i = (unsigned int)below(h, 20), n = 0;
	struct sg_sem_new new = test_object(i, below(h, 2), below(h, 2), 2);
	struct sg_sem sem;
	char name[12];
	u64 cookie = 0;
	u32 len = (u32)sprintf(name, "%u", i);

	if (!h->caller)
		return;
	if (!said(sg_sem_open(h->v, name, len, 0, below(h, 2), &sem)) ||
	    !said(sg_sem_create(h->v, name, len, &new, below(h, 2), below(h, 2), &sem))) {
		use_object(h, &sem);
		sg_sem_close(h->v, &sem);
	}
	switch (below(h, 8)) {
	case 0:
		said(sg_sem_unlink(h->v, name, len, SG_SEM_ANY));
		break;
	case 1:
		said(sg_sem_reset(h->v, name, len, SG_SEM_ANY));
		break;
	case 2:
		said(sg_sem_list(h->v, &cookie, emit_sem, &n));
	}
}

static void op_grow(struct host *h)
{
	char why[200] = "";

	if (!below(h, 4))
		said(sg_grow(h->v, below(h, 2) ? 0 : H_SIZE + below(h, 5) * SG_CHUNK, 300, why));
}

static void op_freeze(struct host *h)
{
	char why[200] = "";

	if (!below(h, 4) && !said(sg_freeze(h->v, 1 + (u32)below(h, 40), why)))
		said(sg_thaw(h->v));
	said(SG_MIN(sg_freeze_watch(h->v), 0));
}

static void op_holdings(struct host *h)
{
	static __thread struct sg_holding all[SG_SLOTS];
	struct sg_slot slot;
	unsigned int i;

	sg_holdings(h->v, all);
	sg_largest_free(h->v);
	for (i = 0; i < SG_SLOTS; i++)
		if (!said(sg_slot_read(h->v, i, &slot)))
			CHECK(strnlen(slot.name, sizeof(slot.name)) < sizeof(slot.name));
	sg_needs_recovery(h->v);
	sg_guard(h->v, test_identity.machine);
}

/* --- all operations --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(struct host *h);
} ops[] = {
	{ "list", op_list }, { "lookup", op_lookup }, { "look", op_look }, { "read", op_read },
	{ "write", op_write }, { "pieces", op_pieces }, { "size", op_size }, { "range", op_range },
	{ "atomic", op_atomic },
	{ "create", op_create }, { "remove", op_remove }, { "rename", op_rename },
	{ "tmpfile", op_tmpfile }, { "attr", op_attr }, { "maintain", op_maintain }, { "maintain", op_maintain },
	{ "mappers", op_mappers }, { "userlock", op_userlock }, { "sem", op_sem }, { "grow", op_grow },
	{ "freeze", op_freeze }, { "holdings", op_holdings },
};

static void begin(struct host *h, const char *name)
{
	h->op = name;
	h->since = sg_ticks();
	test_note("operation %" PRIu64 ": %s", h->done, name);
	if (host_interlude)
		host_interlude(h);
}

static void end(struct host *h)
{
	h->op = NULL;
	h->done++;
	test_counted();
}

void host_step(struct host *h)
{
	u64 i = below(h, sizeof(ops) / sizeof(ops[0]));

	begin(h, ops[i].name);
	ops[i].fn(h);
	end(h);
}

int host_join(struct sg_vol *v, bool force)
{
	int err;

	memset(v, 0, sizeof(*v));
	err = sg_open(v, volume, H_ROOM, false, NULL);
	return said(err ?: sg_join(v, &test_identity, force ? 0 : 100, force));
}

void host_begin(struct host *h, struct sg_vol *v, u64 seed)
{
	memset(h, 0, sizeof(*h));
	h->v = v;
	h->rng.state = seed;
	h->buf = malloc(HOST_BUF);
	memset(h->buf, 'h', HOST_BUF);
	begin(h, "enter");
	h->caller = sg_alloc(sizeof(*h->caller));
	if (v->slot < 0 || said(sg_sem_enter(v, 3, 4, "host", h->caller))) {
		sg_free(h->caller);
		h->caller = NULL;
	}
	end(h);
}

void host_end(struct host *h)
{
	begin(h, "exit");
	if (h->caller)
		sg_sem_exit(h->v, h->caller);
	sg_free(h->caller);
	free(h->buf);
	end(h);
}

/* --- exclusive access ------------------------------------------------------------------------- */

static void run_check(enum sg_check_mode mode)
{
	const struct sg_check_opts opts = { .mode = mode, .id = &test_identity, .force = true };
	struct sg_check_result res = { 0 };

	said(sg_check(volume, H_ROOM, &opts, &res));
	CHECK(res.fixed <= res.found);
}

static void run_relocate(struct host *h)
{
	const struct sg_relocate_opts opts = { .phys = below(h, 2) ? TEST_PHYS + SG_CHUNK * below(h, 99) :
		SG_BASE_BEGUN, .id = &test_identity, .force = true };
	struct sg_relocate_result res = { 0 };

	said(sg_relocate(volume, H_ROOM, &opts, &res));
}

static void run_looks(void)
{
	struct sg_probe probe;
	struct sg_vol v = { 0 };

	sg_probe(volume, H_ROOM, &probe);
	CHECK(sg_search(volume, H_ROOM, &probe) <= H_ROOM);
	if (!sg_open(&v, volume, H_ROOM, true, NULL)) {
		struct host h;

		host_begin(&h, &v, 1);
		op_list(&h);
		op_look(&h);
		op_read(&h);
		op_holdings(&h);
		host_end(&h);
	}
}

void host_alone(struct host *h)
{
	static const char *const what[] = { "check", "repair", "preen", "relocate", "looks" };
	u64 i = below(h, 5);

	begin(h, what[i]);
	switch (i) {
	case 0:
		run_check(SG_CHECK_ONLY);
		break;
	case 1:
		run_check(SG_CHECK_REPAIR);
		break;
	case 2:
		run_check(SG_CHECK_PREEN);
		break;
	case 3:
		run_relocate(h);
		break;
	default:
		run_looks();
	}
	end(h);
}
