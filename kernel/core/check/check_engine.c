// SPDX-License-Identifier: GPL-2.0
/*
 * Repairs that need new pages or names. The checker joins the volume and makes them through the
 * engine, in transactions. After an interruption each repair is therefore complete or not begun.
 * The space map and the lists of free inodes are already right. Directories that are still damaged
 * are not changed, except that their index is replaced.
 */
#include "check.h"

#define LOST_FOUND	"lost+found"
/* number of names to try for an orphan, and for lost+found itself */
#define TRIES		100

/* --- hold the volume ----------------------------------------------------------------------- */

const struct sg_identity *ck_identity(const struct sg_ck *c)
{
	static const struct sg_identity nobody = { .name = "fsck", .pid = 1 };

	return c->opts->id ? c->opts->id : &nobody;
}

/*
 * Always returns false, because this check has no inode open. Bits of its slot belong to the slot's
 * last owner.
 */
static bool nothing_open(struct sg_vol *vol, u64 ino, u32 generation)
{
	(void)vol;
	(void)ino;
	(void)generation;
	return false;
}

int ck_hold(struct sg_ck *c)
{
	unsigned int slot;
	int err;

	err = sg_slot_take_alone(&c->vol, ck_identity(c), c->opts->wait_ms, c->opts->force);
	if (err)
		return err;
	if (c->opts->holding)
		err = c->opts->holding(c->opts->ctx, &c->vol);
	c->vol.in_use = nothing_open;
	err = err ?: sg_size_take(&c->vol, ck_get(c, SG_HOT(size)));
	for (slot = 0; slot < SG_SLOTS && !err; slot++) {
		if (!ck_slot_taken(c, slot))
			continue;
		err = sg_tx_replay(&c->vol, slot, 0);
		c->res->replayed |= c->vol.stat.replays != 0;
	}
	err = err ? err : sg_size_take(&c->vol, ck_get(c, SG_HOT(size)));
	if (err)
		ck_release(c);
	else
		sg_grow_settle(&c->vol);
	return err;
}

void ck_release(struct sg_ck *c)
{
	if (c->opts->holding)
		c->opts->holding(c->opts->ctx, NULL);
	sg_leave(&c->vol);
}

/* --- lost+found ---------------------------------------------------------------------------- */

static struct sg_new new_directory(u32 mode)
{
	return (struct sg_new){ .mode = SG_S_IFDIR | mode, .now = (s64)sg_now() };
}

/*
 * Returns a name to try: NAME, then NAME.1 and so on, finally a random name that no user can have
 * created in advance.
 */
static u32 name_number(char *name, size_t size, const char *first, unsigned int i)
{
	u64 number;

	if (!i)
		return (u32)sg_snprintf(name, size, "%s", first);
	if (i < TRIES)
		return (u32)sg_snprintf(name, size, "%s.%u", first, i);
	sg_random(&number, sizeof(number));
	return (u32)sg_snprintf(name, size, "%s.%016llx", first, CK_U(number));
}

/*
 * Reports whether only root may read a directory. Orphans need such a directory, because they may
 * come from a private one. A user who may create names in the root may have made another directory
 * that looks like lost+found.
 */
static bool is_private(struct sg_vol *vol, const struct sg_iref *dir)
{
	return !(sg_iget(vol, dir, mode) & 077) && !(u32)sg_iget(vol, dir, owner);
}

static int lost_found(struct sg_ck *c, struct sg_iref *out)
{
	struct sg_vol *vol = &c->vol;
	struct sg_new new = new_directory(0700);
	unsigned int i, type;
	struct sg_iref root;
	char name[32];
	int err = sg_iref(vol, SG_INO_ROOT, &root);

	for (i = 0; !err && i <= TRIES; i++) {
		u32 len = name_number(name, sizeof(name), LOST_FOUND, i);

		err = sg_lookup(vol, &root, name, len, out, &type);
		if (err == -ENOENT) {
			err = sg_create(vol, &root, name, len, &new, out);
			if (!err)
				c->made = out->ino;
			return err;
		}
		if (!err && type == SG_S_IFDIR >> 12 && is_private(vol, out))
			return 0;
	}
	return err ? err : -EEXIST;
}

/* Finds an unused name for inode @ino: #NUMBER, as in other file systems. */
static int free_name(struct sg_vol *vol, const struct sg_iref *dir, u64 ino, char name[40],
		     u32 *len)
{
	unsigned int i, type;
	struct sg_iref there;
	char first[24];
	int err = 0;

	sg_snprintf(first, sizeof(first), "#%llu", CK_U(ino));
	for (i = 0; !err && i <= TRIES; i++) {
		*len = name_number(name, 40, first, i);
		err = sg_lookup(vol, dir, name, *len, &there, &type);
	}
	return err == -ENOENT ? 0 : err ? err : -EEXIST;
}

static void adopted(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_iref *ref)
{
	u64 mode = sg_tx_iget(tx, ref, mode);

	sg_tx_inode(tx, dir);
	sg_tx_inode(tx, ref);
	if (sg_is_dir(mode)) {
		sg_tx_iset(tx, ref, special, dir->ino);
		sg_tx_iset(tx, dir, mode, sg_tx_iget(tx, dir, mode) + (1ULL << 32));
	} else {
		sg_tx_iset(tx, ref, mode, 1ULL << 32 | sg_mode(mode));
	}
}

/*
 * Adds a name. With @ref, also makes the directory the inode's parent, in the same transaction. The
 * transaction locks both.
 */
static int add_locked(struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n, u64 ino,
		      unsigned int type, const struct sg_iref *ref)
{
	unsigned int turn;
	int err = -EAGAIN;

	for (turn = 0; err == -EAGAIN && turn < TRIES; turn++) {
		struct sg_tx *tx = sg_tx_begin(vol);

		if (ref)
			adopted(tx, dir, ref);
		err = sg_dir_add(tx, dir, n, ino, type);
		if (err != -EAGAIN) {
			err = sg_tx_commit(tx);
			continue;
		}
		sg_tx_abort(tx);
		err = sg_dir_make_room(vol, dir, n);
		err = err ? err : -EAGAIN;
	}
	return err;
}

static int adopt(struct sg_vol *vol, const struct sg_iref *dir, u64 ino)
{
	struct sg_iref ref;
	struct sg_name n;
	char name[40];
	u64 mode;
	u32 len;
	int err = sg_iref(vol, ino, &ref);

	if (!err)
		err = free_name(vol, dir, ino, name, &len);
	if (err)
		return err;
	mode = sg_iget(vol, &ref, mode);
	sg_name_of(vol, name, len, &n);
	sg_lock_inodes(vol, dir, &ref);
	err = add_locked(vol, dir, &n, ino, (sg_mode(mode) & SG_S_IFMT) >> 12, &ref);
	sg_unlock_inodes(vol, dir, &ref);
	return err;
}

static int adopt_orphans(struct sg_ck *c)
{
	struct sg_iref dir;
	u64 i;
	int err = 0;

	if (c->orphans.n)
		err = lost_found(c, &dir);
	for (i = 0; !err && i < c->orphans.n; i++) {
		err = adopt(&c->vol, &dir, c->orphans.item[i].ino);
		c->res->adopted += !err;
		if (!(i & 255))
			ck_progress(c, "lost+found", i, c->orphans.n);
	}
	return err;
}

/* --- rebuild directories ------------------------------------------------------------------- */

/**
 * struct build - the rebuild of a directory's index.
 * @draft: a deferred inode without links, so that recovery frees it with all its pages after an
 *   interruption.
 * @as: the draft's record with the directory's number, because the buckets must name the directory.
 */
struct build {
	struct sg_iref dir, draft, as;
	int err;
};

static int begin_draft(struct sg_vol *vol, struct build *b)
{
	struct sg_new new = new_directory(0);
	struct sg_tx *tx = sg_tx_begin(vol);
	int err = sg_inode_take(tx, &new, 0, 0, &b->draft);

	if (!err)
		sg_defer_inode(tx, &b->draft);
	err = sg_tx_commit(tx);
	b->as = (struct sg_iref){ .ino = b->dir.ino, .off = b->draft.off };
	return err;
}

static void add_name(struct sg_ck *c, void *ctx, const struct sg_dirent *d)
{
	u64 ino = SG_REF_INO(d->ref), lock;
	struct build *b = ctx;
	struct sg_name n;
	int err;

	if (b->err || ino <= SG_INO_ROOT || ino >= c->inodes)
		return;
	/* for a record without a type, the type from this name */
	if (!(c->state[ino] & (CK_USED | CK_TYPELESS))) {
		ck_loss_named(c, ino, SG_REF_TYPE(d->ref));
		return;
	}
	lock = b->draft.off + offsetof(struct sg_inode, lock);
	sg_lock(&c->vol, lock);
	sg_name_of(&c->vol, (const char *)d->name, SG_REF_LEN(d->ref), &n);
	err = sg_dir_look(&c->vol, &b->as, &n);
	if (err == -ENOENT)
		b->err = add_locked(&c->vol, &b->as, &n, ino, SG_REF_TYPE(d->ref), NULL);
	else
		b->err = err;
	sg_unlock(&c->vol, lock);
}

static u64 xattr_pages(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 head = sg_tx_iget(tx, ref, xattr);

	if (!sg_data_page(tx->vol, head))
		return 0;
	return 1 + sg_tx_get(tx, head + offsetof(struct sg_xattr_head, pages));
}

/*
 * Replaces the directory's index by the new one. The next pass frees the pages of the old index,
 * which then have no owner.
 */
static int end_draft(struct sg_vol *vol, struct build *b)
{
	struct sg_tx *tx;
	int err;

	sg_lock_inodes(vol, &b->dir, &b->draft);
	tx = sg_tx_begin(vol);
	sg_tx_inode(tx, &b->dir);
	sg_tx_inode(tx, &b->draft);
	sg_tx_iset(tx, &b->dir, table, sg_tx_iget(tx, &b->draft, table));
	sg_tx_iset(tx, &b->dir, size, sg_tx_iget(tx, &b->draft, size));
	sg_tx_iset(tx, &b->dir, entries, sg_tx_iget(tx, &b->draft, entries));
	sg_tx_iset(tx, &b->dir, blocks,
		   sg_tx_iget(tx, &b->draft, blocks) + xattr_pages(tx, &b->dir));
	sg_tx_iset(tx, &b->draft, table, 0);
	sg_tx_iset(tx, &b->draft, size, 0);
	sg_tx_iset(tx, &b->draft, entries, 0);
	sg_tx_iset(tx, &b->draft, blocks, 0);
	err = sg_tx_commit(tx);
	sg_unlock_inodes(vol, &b->dir, &b->draft);
	return err;
}

static int rebuild(struct sg_ck *c, u64 ino, struct sg_bucket *bucket)
{
	struct build b = { .err = 0 };
	int err = sg_iref(&c->vol, ino, &b.dir);
	u64 i;

	if (!err)
		err = begin_draft(&c->vol, &b);
	if (err)
		return err;
	for (i = 0; i < c->strays.n && !b.err; i++) {
		if (c->strays.item[i].ino != ino)
			continue;
		memcpy(bucket, sg_at(&c->vol, c->strays.item[i].arg), sizeof(*bucket));
		ck_bucket_names(c, bucket, add_name, &b);
		ck_progress(c, "directories rebuilt", i, c->strays.n);
	}
	err = b.err ? b.err : end_draft(&c->vol, &b);
	sg_inode_settle(&c->vol, b.draft.ino);
	return err;
}

static int rebuild_all(struct sg_ck *c)
{
	struct sg_bucket *bucket = sg_alloc(sizeof(*bucket));
	int err = bucket ? 0 : -ENOMEM;
	u64 i;

	for (i = 0; !err && i < c->rebuild.n; i++)
		err = rebuild(c, c->rebuild.item[i].ino, bucket);
	sg_free(bucket);
	return err;
}

/* --- the engine's work --------------------------------------------------------------------- */

bool ck_engine_needed(const struct sg_ck *c)
{
	if (c->opts->mode == SG_CHECK_PREEN && c->unfixed)
		return false;	/* a person should decide first */
	return c->recovering || c->orphans.n || c->rebuild.n || c->settle.n || c->holes.n;
}

static int work(struct sg_ck *c)
{
	const struct sg_iref inodes = sg_sys_ref(SG_SYS_INODES);
	int err = 0;
	u64 i;

	for (i = 0; !err && i < c->holes.n; i++)
		err = sg_allocate(&c->vol, &inodes, c->holes.item[i].ino, 1);
	if (!err)
		err = rebuild_all(c);
	for (i = 0; !err && i < c->settle.n; i++)
		err = sg_inode_settle(&c->vol, c->settle.item[i].ino);
	if (!err)
		err = adopt_orphans(c);
	return err;
}

/*
 * A full volume is no error here, because the next pass finds and reports the remaining damage
 * again.
 */
int ck_engine(struct sg_ck *c)
{
	int err;

	sg_end_lapses_of_ended(&c->vol);
	/* A fenced system may still reach deferred frees that the first round could not reclaim. */
	if (c->pass)
		sg_wait_for_lapse(&c->vol);
	sg_recover_all(&c->vol);
	sg_space_rebuild_hints(&c->vol);
	err = sg_slot_enter(&c->vol);
	if (!err)
		err = work(c);
	if (c->vol.ledger) {
		sg_ledger_settle_inodes(&c->vol);
		sg_reclaim(&c->vol, ~0u);
	}
	sg_slot_exit(&c->vol);
	c->no_space = err == -ENOSPC;
	if (err && err != -ENOSPC && err != -EUCLEAN)
		sg_snprintf(c->vol.why, sizeof(c->vol.why), "the engine cannot repair (error %d)",
			    -err);
	return err == -ENOSPC || err == -EUCLEAN ? 0 : err;
}
