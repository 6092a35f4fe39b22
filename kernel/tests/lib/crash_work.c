// SPDX-License-Identifier: Apache-2.0
/* Operations under the recorder. crash_work.h describes the correct results. */
#include <sys/stat.h>
#include "crash_work.h"
#include "internal.h"
#include "tree.h"

#define BYTES	(8u << 20)	/* largest file whose data is compared byte by byte */

/* --- one image ------------------------------------------------------------------------------ */

static void __attribute__((noreturn)) wrong(struct cw *w, struct sg_vol *v, const char *what)
{
	char *image = tree_text(v), *after = tree_text(&w->t.v);

	fprintf(stderr, "--- before\n%s--- after\n%s--- image\n%s", w->before_text, after, image);
	test_fail(__FILE__, __LINE__, "%s", what);
}

/* Checks that each byte of the file that the operation changes has its old or its new value. */
static void judge_data(struct cw *w, struct sg_vol *v)
{
	u64 lo = w->old_size < w->new_size ? w->old_size : w->new_size, i;
	static u8 got[BYTES];
	struct sg_iref ref;
	struct sg_attr a;

	CHECK_OK(sg_iref(v, w->ino, &ref));
	CHECK_OK(sg_getattr(v, &ref, &a));
	if (a.size < lo || a.size > (w->old_size > w->new_size ? w->old_size : w->new_size))
		wrong(w, v, "the size is neither the old nor the new one");
	CHECK_EQ(sg_read(v, &ref, 0, got, a.size), a.size);
	if (w->done) {
		if (a.size != w->new_size || memcmp(got, w->new, a.size))
			wrong(w, v, "data of an operation that had returned is lost");
		return;
	}
	if (w->whole) {
		if (!(a.size == w->old_size && !memcmp(got, w->old, a.size)) &&
		    !(a.size == w->new_size && !memcmp(got, w->new, a.size)))
			wrong(w, v, "only a part of an atomic write is in the file");
		test_counted();
		return;
	}
	for (i = 0; i < a.size; i++) {
		bool old = i < w->old_size && got[i] == w->old[i];
		bool new = i < w->new_size && got[i] == w->new[i];

		if (old || new)
			continue;
		fprintf(stderr, "byte %" PRIu64 " is 0x%02x, was 0x%02x, becomes 0x%02x\n", i, got[i],
			w->old[i], w->new[i]);
		wrong(w, v, "the file has data that was never written");
	}
	test_counted();
}

static void judge_tree(struct cw *w, struct sg_vol *v)
{
	u64 sum = tree_of(v, w->ino);

	test_counted();
	if (w->done && sum != w->after)
		wrong(w, v, "an operation that had returned is lost");
	if (sum != w->after && sum != w->before)
		wrong(w, v, "the tree is neither the old nor the new one");
	if (w->ino)
		judge_data(w, v);
}

static void checked(struct crash_image *img, u64 size, const char *when)
{
	struct sg_check_result res;

	test_counted();
	if (!test_is_clean(img->mem, size, &res))
		test_fail(__FILE__, __LINE__, "not clean %s", when);
}

/* Joins (which recovers), compares the tree, leaves, and checks the volume. */
static void judge_mount(struct cw *w, struct crash_image *img)
{
	struct tvol t = { .mem = img->mem, .size = w->t.size };

	tvol_join(&t);
	judge_tree(w, &t.v);
	tvol_leave(&t);
	checked(img, w->t.size, "after recovery");
}

/* --- the surviving system ------------------------------------------------------------------- */

/*
 * Restores the survivor in the state that it had when the image's crash happened, between two
 * operations.
 */
static void survive(const struct cw *w, struct crash_image *img, struct sg_vol *v)
{
	CHECK_OK(sg_open(v, img->mem, w->t.size, false, NULL));
	v->slot = w->beside.slot;
	v->incarnation = w->beside.incarnation;
	v->state = sg_state_word(v, (unsigned int)v->slot);
	v->alive = w->beside.alive;
	v->on_damage = w->beside.on_damage;
	v->tx = sg_alloc(v->sb.areas * sizeof(*v->tx));
	v->watch = sg_watch_make();
	v->ack = sg_ack_make();
	v->held = sg_alloc(SG_HELD * sizeof(*v->held));
	CHECK(v->tx && v->watch && v->ack && v->held);
	v->beats = sg_get(v, sg_slot_off(v, (unsigned int)v->slot) +
			  offsetof(struct sg_slot, heartbeat));
	CHECK_OK(sg_ledger_open(v));
}

/* Makes a file with a page in it, and removes it. */
static void work_in(struct sg_vol *v, const struct sg_iref *dir)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref f;

	CHECK_OK(sg_create(v, dir, "survivor", 8, &new, &f));
	CHECK_EQ(sg_write(v, &f, 0, "alive", 5, 1), 5);
	CHECK_OK(sg_unlink(v, dir, "survivor", 8, 1));
	CHECK_OK(sg_evict(v, &f));
}

/*
 * Works on the survivor's own file and names. This needs no new inode, whose lock a dead system
 * might hold.
 */
static void work_on_own(const struct cw *w, struct sg_vol *v)
{
	const struct sg_iref *dir = &w->beside_dir, *f = &w->beside_file;

	CHECK_EQ(sg_write(v, f, 0, "alive", 5, 1), 5);
	CHECK_OK(sg_link(v, f, dir, "second", 6, 1));
	CHECK_OK(sg_unlink(v, dir, "first", 5, 1));
	CHECK_OK(sg_rename(v, dir, "second", 6, dir, "first", 5, 0, NULL, 1));
	CHECK_OK(sg_resize(v, f, 0, 1));
}

/*
 * Works while the other system is silent, then fences it, and works with locks and inodes that it
 * had locked.
 */
static void go_on(const struct cw *w, struct sg_vol *v)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	work_on_own(w, v);
	sg_fence_slots(v, sg_slots_taken(v));
	test_lapses_over(v->base);
	work_in(v, &root);
}

static void judge_survivor(struct cw *w, struct crash_image *img)
{
	struct sg_vol v;

	survive(w, img, &v);
	go_on(w, &v);
	judge_tree(w, &v);
	sg_recover_all(&v);
	judge_tree(w, &v);
	sg_settle(&v);
	judge_tree(w, &v);
	sg_leave(&v);
	CHECK(!sg_slots_taken(&v));
	checked(img, w->t.size, "after the survivor has left");
}

/* --- crashes of the recovery ---------------------------------------------------------------- */

static void judge_nested(struct crash *c, struct crash_image *img)
{
	judge_mount(c->ctx, img);
}

/* Recovers under the recorder, and judges each crash during the recovery. */
static void crash_recovery(struct cw *w, struct crash_image *img)
{
	struct tvol t = { .mem = img->mem, .size = w->t.size };
	struct rec log;

	crash_reset(&w->nested, img->mem);
	rec_init(&log, img->mem, w->t.size, true);
	rec_to(&log);
	/*
	 * the recoverer completes the recovery itself, so that the tree is the old or the new one
	 */
	if (w->beside.slot >= 0) {
		survive(w, img, &t.v);
		sg_fence_slots(&t.v, sg_slots_taken(&t.v));
		sg_recover_all(&t.v);
		sg_settle(&t.v);
		sg_leave(&t.v);
	} else {
		tvol_join(&t);
		tvol_leave(&t);
	}
	rec_to(NULL);
	crash_run(&w->nested, log.ev, log.n);
	while (log.pages)
		rec_mark(&img->rec, log.page[--log.pages] * SG_PAGE);
	rec_free(&log);
	w->recoveries++;
}

static void judge_image(struct crash *c, struct crash_image *img)
{
	struct cw *w = c->ctx;

	w->done = c->done;
	if (rng_below(&w->rng, w->check) == 0)
		checked(img, w->t.size, "before recovery");
	if (w->nest && rng_below(&w->rng, w->nest) == 0)
		crash_recovery(w, img);
	else if (w->beside.slot >= 0)
		judge_survivor(w, img);
	else
		judge_mount(w, img);
}

/* --- operations ----------------------------------------------------------------------------- */

/* Finds the directory and the last name of a path. */
static bool find_dir(struct cw *w, const char *path, struct sg_iref *dir, const char **name)
{
	struct sg_iref next;
	unsigned int type;
	const char *slash;

	*dir = w->t.root;
	while ((slash = strchr(path, '/'))) {
		if (sg_lookup(&w->t.v, dir, path, (u32)(slash - path), &next, &type))
			return false;
		*dir = next;
		path = slash + 1;
	}
	*name = path;
	return true;
}

bool cw_find(struct cw *w, const char *path, struct sg_iref *ref)
{
	const char *name;
	struct sg_iref dir;
	unsigned int type;

	return find_dir(w, path, &dir, &name) &&
	       !sg_lookup(&w->t.v, &dir, name, (u32)strlen(name), ref, &type);
}

static int do_create(struct cw *w, const struct cw_op *op, struct sg_iref *dir, const char *name)
{
	static const u32 mode[] = {
		[CW_CREATE] = S_IFREG | 0644, [CW_MKDIR] = S_IFDIR | 0755,
		[CW_SYMLINK] = S_IFLNK | 0777, [CW_MKNOD] = S_IFCHR | 0600,
	};
	static char target[SG_SYMLINK_MAX];
	struct sg_new new = { .mode = mode[op->kind], .uid = 7, .gid = 8, .flags = op->flags, .now = 1 };
	struct sg_iref ref;

	if (op->kind == CW_SYMLINK) {
		memset(target, 't', sizeof(target));
		new.target = target;
		new.target_len = (u32)op->len;
	}
	if (op->kind == CW_MKNOD)
		new.rdev = op->len;
	return sg_create(&w->t.v, dir, name, (u32)strlen(name), &new, &ref);
}

static int do_tmpfile(struct cw *w, struct sg_iref *dir, const char *name)
{
	struct sg_new new = { .mode = S_IFREG | 0600, .now = 1 };
	struct sg_iref ref;
	int err = sg_tmpfile(&w->t.v, &new, &ref);

	return err ? err : sg_link(&w->t.v, &ref, dir, name, (u32)strlen(name), 1);
}

static int do_rename(struct cw *w, const struct cw_op *op, struct sg_iref *dir, const char *name)
{
	struct sg_new whiteout = { .mode = S_IFCHR, .now = 1 };
	struct sg_iref ndir, target;
	const char *nname;

	if (!find_dir(w, op->b, &ndir, &nname))
		return -ENOENT;
	if (!(op->flags & SG_RENAME_EXCHANGE) && cw_find(w, op->b, &target))
		w->open = target;
	return sg_rename(&w->t.v, dir, name, (u32)strlen(name), &ndir, nname, (u32)strlen(nname),
			 op->flags, &whiteout, 1);
}

static int do_names(struct cw *w, const struct cw_op *op)
{
	struct sg_iref dir, ref;
	const char *name;
	u32 len;

	if (!find_dir(w, op->a, &dir, &name))
		return -ENOENT;
	len = (u32)strlen(name);
	switch (op->kind) {
	case CW_LINK:
		return cw_find(w, op->b, &ref) ? sg_link(&w->t.v, &ref, &dir, name, len, 1) : -ENOENT;
	case CW_UNLINK:
	case CW_RMDIR:
		if (cw_find(w, op->a, &ref))
			w->open = ref;
		return (op->kind == CW_RMDIR ? sg_rmdir : sg_unlink)(&w->t.v, &dir, name, len, 1);
	case CW_RENAME:
		return do_rename(w, op, &dir, name);
	case CW_TMPFILE:
		return do_tmpfile(w, &dir, name);
	default:
		return do_create(w, op, &dir, name);
	}
}

/* Writes bytes that depend on the time of the write, so that no stale byte matches by chance. */
static s64 do_write(struct cw *w, const struct cw_op *op, const struct sg_iref *ref)
{
	static u8 buf[BYTES];
	struct rng r = { ++w->stamp };

	rng_fill(&r, buf, op->len);
	return sg_write(&w->t.v, ref, op->pos, buf, op->len, 1);
}

/* No reader sees these bytes, unless the size grows over them before they are zeroed. */
static int do_stale(struct cw *w, const struct cw_op *op, const struct sg_iref *ref)
{
	u8 bytes[SG_PAGE], *at;
	struct sg_run run;

	CHECK_OK(sg_walk(&w->t.v, ref, op->pos >> SG_PAGE_SHIFT, 1, &run));
	CHECK(run.off && op->pos >= sg_iget(&w->t.v, ref, size));
	at = (u8 *)sg_at(&w->t.v, run.off) + (op->pos & (SG_PAGE - 1));
	memset(bytes, 's', op->len);
	sg_os_write(at, bytes, op->len);
	sg_wb(at, op->len);
	sg_fence();
	return 0;
}

static s64 do_atomic(struct cw *w, const struct cw_op *op, const struct sg_iref *ref)
{
	static u8 buf[SG_ATOMIC_MAX];
	struct rng r = { ++w->stamp };
	bool filled = false;

	rng_fill(&r, buf, op->len);
	return sg_write_atomic(&w->t.v, ref, op->pos, buf, op->len, 0, 1, &filled);
}

static s64 do_inode(struct cw *w, const struct cw_op *op, const struct sg_iref *ref)
{
	struct sg_attr a = { .mode = (u32)op->len & 07777, .uid = 1, .flags = SG_FL_NODUMP };
	static u8 value[SG_XATTR_VALUE_MAX];
	struct sg_vol *v = &w->t.v;
	char why[200];

	switch (op->kind) {
	case CW_WRITE:
		return do_write(w, op, ref);
	case CW_ATOMIC:
		return do_atomic(w, op, ref);
	case CW_FLAG:
		return sg_set_atomic(v, ref, op->len, 1);
	case CW_MAP:
		sg_set_mapper(v, ref, false, op->len);
		return 0;
	case CW_SEAL:
		return op->len ? sg_seal(v, ref, 1, why) : sg_unseal(v, ref, 1, why);
	case CW_ROOT:
		return sg_seal_set_root(v, ref, (const u64[4]){ 1, 2, 3, ++w->stamp });
	case CW_STALE:
		return do_stale(w, op, ref);
	case CW_RESIZE:
		return sg_resize(v, ref, op->len, 1);
	case CW_PUNCH:
		return sg_punch(v, ref, op->pos, op->len, 1);
	case CW_ALLOCATE:
		return sg_allocate(v, ref, op->pos / SG_PAGE, op->len / SG_PAGE);
	case CW_COLLAPSE:
		return sg_collapse(v, ref, op->pos, op->len, 1);
	case CW_INSERT:
		return sg_insert(v, ref, op->pos, op->len, 1);
	case CW_XATTR:
		memset(value, (int)++w->stamp, sizeof(value));
		return sg_xattr_set(v, ref, SG_XATTR_USER, op->b, (u32)strlen(op->b), value,
				    (u32)op->len, 0, 1);
	case CW_UNXATTR:
		return sg_xattr_set(v, ref, SG_XATTR_USER, op->b, (u32)strlen(op->b), NULL, 0, 0, 1);
	default:
		return sg_setattr(v, ref, SG_SET_MODE | SG_SET_UID | SG_SET_FLAGS, &a);
	}
}

static s64 perform(struct cw *w, const struct cw_op *op)
{
	struct sg_iref ref;
	int left;

	switch (op->kind) {
	case CW_EVICT:
		return w->open.ino ? sg_evict(&w->t.v, &w->open) : -ENOENT;
	case CW_RECLAIM:
		left = sg_reclaim(&w->t.v, op->len ? (unsigned int)op->len : ~0u);
		return left < 0 ? left : 0;
	case CW_REMOUNT:
		if (w->beside.slot >= 0) {
			sg_leave(&w->t.v);
			CHECK_OK(sg_join(&w->t.v, &test_identity, 0, false));
		} else {
			tvol_leave(&w->t);
			tvol_join(&w->t);
		}
		w->open.ino = 0;
		return 0;
	case CW_CREATE ... CW_RENAME:
	case CW_TMPFILE:
		return do_names(w, op);
	default:
		return cw_find(w, op->a, &ref) ? do_inode(w, op, &ref) : -ENOENT;
	}
}

/* --- under the recorder --------------------------------------------------------------------- */

static bool changes_data(enum cw_kind kind)
{
	return kind == CW_WRITE || kind == CW_PUNCH || kind == CW_RESIZE || kind == CW_ATOMIC;
}

static void read_file(struct cw *w, u8 *buf, u64 *size)
{
	struct sg_iref ref;
	struct sg_attr a;

	CHECK_OK(sg_iref(&w->t.v, w->ino, &ref));
	CHECK_OK(sg_getattr(&w->t.v, &ref, &a));
	CHECK(a.size <= BYTES);
	*size = a.size;
	memset(buf, 0, BYTES);
	CHECK_EQ(sg_read(&w->t.v, &ref, 0, buf, a.size), a.size);
}

void cw_make(struct cw *w, u64 size, u64 seed)
{
	memset(w, 0, sizeof(*w));
	tvol_make(&w->t, size);
	rec_init(&w->rec, w->t.mem, size, true);
	crash_init(&w->c, w->t.mem, size);
	crash_init(&w->nested, w->t.mem, size);
	w->beside.slot = -1;
	w->c.judge = judge_image;
	w->nested.judge = judge_nested;
	w->c.ctx = w->nested.ctx = w;
	w->c.samples = w->nested.samples = 4;
	w->nested.every = 4;
	w->check = 4;
	w->rng.state = w->c.rng.state = w->nested.rng.state = seed;
	w->old = malloc(BYTES);
	w->new = malloc(BYTES);
	CHECK(w->old && w->new);
}

/* Allocates behind the end of a file, where no reader looks for bytes. */
void cw_fill(struct cw *w, u64 leave)
{
	struct sg_iref f = test_create(&w->t.v, &w->t.root, "filler", S_IFREG | 0600);
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&w->t.v, &st));
	/* keeps ten pages for the tables of the file */
	CHECK_OK(sg_allocate(&w->t.v, &f, 0, st.free_pages - leave - 10));
	crash_reset(&w->c, w->t.mem);
}

void cw_beside(struct cw *w)
{
	struct sg_identity id = { .machine = "another machine", .boot = "b", .name = "survivor" };
	struct sg_iref root;

	CHECK_OK(sg_open(&w->beside, w->t.mem, w->t.size, false, NULL));
	w->beside.on_damage = w->t.v.on_damage;
	CHECK_OK(sg_join(&w->beside, &id, 0, false));
	CHECK_OK(sg_iref(&w->beside, SG_INO_ROOT, &root));
	w->beside_dir = test_create(&w->beside, &root, "beside", S_IFDIR | 0700);
	w->beside_file = test_create(&w->beside, &w->beside_dir, "first", S_IFREG | 0600);
	w->c.killed_only = w->nested.killed_only = true;
	crash_reset(&w->c, w->t.mem);
}

/* Maintains both systems between operations, so that deferred frees can be reclaimed. */
static void maintain_both(struct cw *w)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		CHECK(sg_maintain(&w->beside) >= 0);
		CHECK(sg_maintain(&w->t.v) >= 0);
	}
	crash_reset(&w->c, w->t.mem);
}

s64 cw_do(struct cw *w, const struct cw_op *op)
{
	struct sg_iref ref;
	s64 ret;

	test_note("kind %d %s %s, pos %" PRIu64 ", len %" PRIu64 ", flags %u; image %" PRIu64, op->kind,
		  op->a ? op->a : "", op->b ? op->b : "", op->pos, op->len, op->flags, w->c.images);
	w->ino = changes_data(op->kind) && cw_find(w, op->a, &ref) ? ref.ino : 0;
	w->whole = op->kind == CW_ATOMIC;
	w->before = tree_of(&w->t.v, w->ino);
	free(w->before_text);
	w->before_text = tree_text(&w->t.v);
	if (w->ino)
		read_file(w, w->old, &w->old_size);
	if (w->beside.slot >= 0)
		maintain_both(w);
	w->rec.n = 0;
	rec_forget_pages(&w->rec);
	rec_to(&w->rec);
	ret = perform(w, op);
	rec_to(NULL);
	w->after = tree_of(&w->t.v, w->ino);
	if (w->ino)
		read_file(w, w->new, &w->new_size);
	crash_run(&w->c, w->rec.ev, w->rec.n);
	crash_end(&w->c);
	/* the recorder has seen every store */
	CHECK(!memcmp(w->c.killed.ref, w->t.mem, w->t.size));
	return ret;
}

void cw_drop(struct cw *w)
{
	if (w->beside.slot >= 0)
		sg_leave(&w->beside);
	tvol_drop(&w->t);
	crash_free(&w->c);
	crash_free(&w->nested);
	rec_free(&w->rec);
	free(w->before_text);
	free(w->old);
	free(w->new);
}
