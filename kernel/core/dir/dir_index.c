// SPDX-License-Identifier: GPL-2.0
/*
 * Directories: an extendible hash whose index is a tree of pages (docs/directories.md).
 *
 * The index names the bucket of each hash. A transaction distributes a full bucket to fresh
 * buckets, and changes the index words that name it. So readers see either the old bucket or the
 * new ones. The old bucket does not change until its deferred free is reclaimed.
 */
#include "dir/dir_index.h"

/* a split needs at most this many words of a transaction */
#define SPLIT_WORDS	(SG_DIR_SPAN_MAX + 48)
#define FAN_BITS	2			/* a new index page begins with 4 buckets */
/* other words of a transaction: for one or two chunks, and a deferred free */
#define RECLAIM_WORDS	(8 * 3)

/* --- find ------------------------------------------------------------------------------------- */

void sg_name_of(const struct sg_vol *vol, const char *name, u32 len, struct sg_name *n)
{
	n->name = name;
	n->len = len;
	n->twins = true;
	n->turns = 0;
	n->hash = sg_dir_hash(vol, name, len);
}

static int wrong(struct sg_place *p, u64 off)
{
	p->bucket = off;
	return -EUCLEAN;
}

/* Reports whether the bucket matches its place in the index. */
static SG_INLINE bool fits_place(const struct sg_vol *vol, const struct sg_iref *dir, u64 hash,
		       struct sg_place *p)
{
	u64 head = sg_get(vol, p->bucket + offsetof(struct sg_bucket, head));
	u64 prefix = sg_get(vol, p->bucket + offsetof(struct sg_bucket, prefix));
	unsigned int below = SG_DIR_INDEX_BITS * p->level;

	p->depth = (unsigned int)(head >> 32);
	if ((u32)head != SG_BUCKET_MAGIC || p->depth > below ||
	    (p->level && p->depth + SG_DIR_SPAN_BITS < below))
		return false;
	return prefix == sg_key_prefix(hash << SG_DIR_TIE_BITS, p->depth) &&
	       sg_get(vol, p->bucket + offsetof(struct sg_bucket, dir)) == dir->ino;
}

/* Finds the bucket, in the index as @tx sees it, or in place (@tx NULL). */
static SG_INLINE int walk(const struct sg_vol *vol, struct sg_tx *tx, const struct sg_iref *dir,
			  u64 hash, struct sg_place *p)
{
	unsigned int shift = SG_DIR_HASH_BITS;
	u64 word;

	p->level = 0;
	p->bucket = 0;
	p->word = SG_IOFF(dir, table);
	word = tx ? sg_tx_get(tx, p->word) : sg_get(vol, p->word);
	if (!word)
		return 0;
	for (;;) {
		u64 off = word & ~SG_DIR_ENTRY_KIND, kind = word & SG_DIR_ENTRY_KIND;

		if (!sg_data_page(vol, off))
			return wrong(p, p->word);
		if (kind == SG_DIR_ENTRY_BUCKET) {
			p->bucket = off;
			return fits_place(vol, dir, hash, p) ? 0 : -EUCLEAN;
		}
		if (kind != SG_DIR_ENTRY_INDEX || p->level == SG_DIR_LEVELS_MAX)
			return wrong(p, p->word);
		p->level++;
		shift -= SG_DIR_INDEX_BITS;
		p->word = off + (hash >> shift & (SG_TABLE_ENTRIES - 1)) * 8;
		word = tx ? sg_tx_get(tx, p->word) : sg_get(vol, p->word);
	}
}

int sg_dir_walk(const struct sg_vol *vol, const struct sg_iref *dir, u64 hash, struct sg_place *p)
{
	return walk(vol, NULL, dir, hash, p);
}

int sg_dir_there(const struct sg_vol *vol, const struct sg_iref *dir)
{
	u64 mode = sg_iget(vol, dir, mode);

	if (!mode || !sg_is_same(vol, dir))
		return -ESTALE;
	return sg_is_dir(mode) ? 0 : -ENOTDIR;
}

static SG_INLINE int dir_index_find(const struct sg_vol *vol, const struct sg_iref *dir,
				    struct sg_name *n)
{
	struct sg_place p;
	int err = sg_dir_there(vol, dir);

	if (err)
		return err;
	err = walk(vol, NULL, dir, n->hash, &p);
	n->bucket = p.bucket;
	if (err)
		return err;
	return p.bucket ? sg_bucket_find(vol, n) : -ENOENT;
}

int sg_dir_look(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n)
{
	int err;

	for (; n->turns < SG_READ_TURNS; n->turns += 1 + SG_READ_PAGE) {
		int found;

		err = sg_read_begin(vol, dir, &n->seq);
		if (err)
			return err;
		found = dir_index_find(vol, dir, n);
		if (sg_read_retry(vol, dir, n->seq))
			continue;
		if (found == -EUCLEAN)
			return sg_damaged(vol, dir->ino, n->bucket, "directory");
		return found;
	}
	return sg_damaged(vol, dir->ino, dir->off, "a change of a directory never ends");
}

/* --- make room -------------------------------------------------------------------------------- */

static void pages_changed(struct sg_tx *tx, const struct sg_iref *dir, s64 pages)
{
	sg_tx_iset(tx, dir, blocks, sg_tx_iget(tx, dir, blocks) + (u64)pages);
	sg_tx_iset(tx, dir, size, sg_tx_iget(tx, dir, size) + (u64)pages * SG_PAGE);
}

static int walk_in(struct sg_tx *tx, const struct sg_iref *dir, u64 hash, struct sg_place *p)
{
	int err = tx->err ?: walk(tx->vol, tx, dir, hash, p);

	if (err == -EUCLEAN && !tx->err)
		sg_tx_fail(tx, sg_damaged(tx->vol, dir->ino, p->bucket, "directory"));
	return err;
}

static int first_bucket(struct sg_tx *tx, const struct sg_iref *dir)
{
	u64 off;

	if (sg_take_page(tx, SG_USE_META, &off))
		return tx->err;
	sg_bucket_init(tx->vol, off, dir->ino, 0, 0);
	sg_tx_iset(tx, dir, table, off | SG_DIR_ENTRY_BUCKET);
	pages_changed(tx, dir, 1);
	return tx->err;
}

static unsigned int dir_index_span_of(const struct sg_place *p)
{
	return p->level ? 1u << (SG_DIR_INDEX_BITS * p->level - p->depth) : 1;
}

/*
 * Changes the index words that name the bucket: they then name the @n new buckets @to. Each new
 * bucket gets a contiguous part of the words, and all parts are equal.
 */
static int rename_words(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_place *p,
			const u64 *to, unsigned int n)
{
	unsigned int span = dir_index_span_of(p), i;
	u64 first = p->level ? p->word & ~(u64)(span * 8 - 1) : p->word;
	u64 last = first + (span - 1) * 8, old = p->bucket | SG_DIR_ENTRY_BUCKET;

	if (sg_tx_get(tx, first) != old || sg_tx_get(tx, last) != old)
		sg_tx_fail(tx, sg_damaged(tx->vol, dir->ino, first, "directory index"));
	for (i = 0; i < span; i++)
		sg_tx_set(tx, first + i * 8, to[i / (span / n)] | SG_DIR_ENTRY_BUCKET);
	return tx->err;
}

/* Puts an index page in place of a bucket that only a single word named. */
static int hang_index(struct sg_tx *tx, const struct sg_place *p, const u64 *to)
{
	const unsigned int each = SG_TABLE_ENTRIES >> FAN_BITS;
	unsigned int i;
	u64 off;

	if (sg_take_page(tx, SG_USE_META, &off))
		return tx->err;
	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		sg_fresh_set(tx->vol, off + i * 8, to[i / each] | SG_DIR_ENTRY_BUCKET);
	sg_wb(sg_at(tx->vol, off), SG_PAGE);
	sg_tx_set(tx, p->word, off | SG_DIR_ENTRY_INDEX);
	return tx->err;
}

/* Replaces a bucket by 1 << @bits fresh buckets. */
static int replace_bucket(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_place *p,
			  unsigned int bits)
{
	u64 prefix = sg_get(tx->vol, p->bucket + offsetof(struct sg_bucket, prefix));
	unsigned int n = 1u << bits, depth = p->depth + bits, i;
	bool hang = n > dir_index_span_of(p);
	u64 to[1 << FAN_BITS];
	int err;

	for (i = 0; i < n; i++) {
		if (sg_take_page(tx, SG_USE_META, &to[i]))
			return tx->err;
		sg_bucket_init(tx->vol, to[i], dir->ino,
			       prefix | (u64)i << (SG_DIR_KEY_BITS - depth), depth);
	}
	err = sg_bucket_deal(tx, dir, p, to, bits);
	if (!err)
		err = hang ? hang_index(tx, p, to) : rename_words(tx, dir, p, to, n);
	if (err)
		return err;
	sg_defer_run(tx, p->bucket, 1);
	pages_changed(tx, dir, n - 1 + hang);
	return tx->err;
}

/*
 * Makes room in a full bucket. If removed names take a large part of it, or no bits are left for a
 * split, all names move to one fresh page. Otherwise the names are split.
 */
static int relieve(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_place *p,
		   const struct sg_name *n)
{
	unsigned int live, bytes, quarters = 3;
	unsigned int bits = dir_index_span_of(p) > 1 ? 1 : FAN_BITS;
	int err = sg_bucket_load(tx, dir, p->bucket, &live, &bytes);

	if (err)
		return err;
	if (bits == FAN_BITS && p->level == SG_DIR_LEVELS_MAX)
		quarters = 4;
	bytes += sg_dirent_size(n->len);
	if (bytes * 4 <= SG_BUCKET_DATA * quarters && live * 4 < SG_BUCKET_LIVE_MAX * quarters)
		return replace_bucket(tx, dir, p, 0);
	if (quarters == 3)
		return replace_bucket(tx, dir, p, bits);
	sg_log(tx->vol->owner, SG_WARN, "directory %llu is full for names of one hash",
	       (unsigned long long)dir->ino);
	sg_tx_fail(tx, -ENOSPC);
	return tx->err;
}

/* --- change ----------------------------------------------------------------------------------- */

int sg_dir_add(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
	       unsigned int type)
{
	struct sg_place p;

	sg_tx_inode(tx, dir);
	/* the loop ends, because each turn except the last one uses words of the transaction */
	while (!walk_in(tx, dir, n->hash, &p)) {
		n->bucket = p.bucket;
		if (!p.bucket) {
			first_bucket(tx, dir);
		} else if (sg_bucket_put(tx, dir, n, ino, type)) {
			sg_tx_iset(tx, dir, entries, sg_tx_iget(tx, dir, entries) + 1);
			break;
		} else if (!tx->err) {
			if (sg_tx_room(tx) < SPLIT_WORDS)
				sg_tx_fail(tx, -EAGAIN);
			else
				relieve(tx, dir, &p, n);
		}
	}
	return tx->err;
}

static int make_some_room(struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n,
			  bool *done)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	struct sg_place p;
	int err = walk_in(tx, dir, n->hash, &p);

	n->bucket = p.bucket;
	*done = err || !p.bucket || sg_bucket_has_room(tx, dir, n);
	if (*done) {
		err = tx->err;
		sg_tx_abort(tx);
		return err;
	}
	sg_tx_inode(tx, dir);
	if (sg_tx_room(tx) < SPLIT_WORDS)
		sg_tx_fail(tx, -ENOSPC);	/* the ledger is full */
	else
		relieve(tx, dir, &p, n);
	return sg_tx_commit(tx);
}

int sg_dir_make_room(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *name)
{
	struct sg_name n = *name;
	unsigned int turn;
	bool done = false;
	int err = 0;

	for (turn = 0; !err && !done && turn <= SG_DIR_KEY_BITS; turn++)
		err = make_some_room(vol, dir, &n, &done);
	return err ?: done ? 0 : -ENOSPC;
}

void sg_dir_remove(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n)
{
	u64 entries = sg_tx_iget(tx, dir, entries);

	sg_tx_inode(tx, dir);
	sg_bucket_remove(tx, n);
	if (entries)
		sg_tx_iset(tx, dir, entries, entries - 1);
	/* the last name of a directory that was large; a small directory keeps its single bucket */
	if (entries == 1 &&
	    (sg_tx_iget(tx, dir, table) & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		sg_dir_drop(tx, dir);
}

void sg_dir_point(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n, u64 ino,
		  unsigned int type)
{
	sg_tx_inode(tx, dir);
	sg_tx_set(tx, n->ref_off, SG_REF(ino, n->len, type));
}

/* --- free an index ---------------------------------------------------------------------------- */

void sg_dir_drop(struct sg_tx *tx, const struct sg_iref *dir)
{
	u64 root = sg_tx_iget(tx, dir, table), off = root & ~SG_DIR_ENTRY_KIND;

	if (!root)
		return;
	if (!sg_data_page(tx->vol, off))	/* its pages remain lost until fsck finds them */
		sg_damaged(tx->vol, dir->ino, SG_IOFF(dir, table), "directory");
	else if ((root & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		sg_defer_free(tx, SG_LEDGER_DIR, off >> SG_PAGE_SHIFT, 0);
	else
		sg_defer_run(tx, off, 1);
	sg_tx_inode(tx, dir);
	sg_tx_iset(tx, dir, table, 0);
	pages_changed(tx, dir, -(s64)(sg_tx_iget(tx, dir, size) >> SG_PAGE_SHIFT));
}

static bool may_reclaim(const struct sg_tx *tx)
{
	return tx->n + RECLAIM_WORDS <= SG_AREA_WORDS && sg_tx_room(tx) >= 4 * SG_DIR_LEVELS_MAX;
}

/*
 * Records, by a last index word of 0, that everything except the page itself is free.
 */
static unsigned int dir_index_page_left(struct sg_tx *tx, u64 page)
{
	if (sg_get(tx->vol, page + (SG_TABLE_ENTRIES - 1) * 8))
		sg_tx_set(tx, page + (SG_TABLE_ENTRIES - 1) * 8, 0);
	return SG_TABLE_ENTRIES - 1;
}

/*
 * Frees the targets of an index page's words, from @i on, then the page. Returns where to continue,
 * or SG_TABLE_ENTRIES. Recurses once per level. The remainder of a child becomes a deferred free.
 */
static unsigned int dir_index_reclaim_in(struct sg_tx *tx, u64 page, unsigned int level,
					 unsigned int i)
{
	for (; i < SG_TABLE_ENTRIES; i++) {
		u64 word = sg_get(tx->vol, page + i * 8), off = word & ~SG_DIR_ENTRY_KIND;
		unsigned int child;

		if (!word || (i && word == sg_get(tx->vol, page + i * 8 - 8)))
			continue;	/* adjacent words may name the same bucket */
		if (!may_reclaim(tx))
			return i;
		if (!sg_data_page(tx->vol, off) || !(word & SG_DIR_ENTRY_KIND) ||
		    ((word & SG_DIR_ENTRY_INDEX) && level == SG_DIR_LEVELS_MAX)) {
			sg_damaged(tx->vol, 0, page + i * 8, "directory index being freed");
			continue;
		}
		if (word & SG_DIR_ENTRY_BUCKET) {
			if (!sg_give_or_defer(tx, off, 1))
				return i;
			continue;
		}
		child = dir_index_reclaim_in(tx, off, level + 1, 0);
		if (child == SG_TABLE_ENTRIES)
			continue;
		sg_defer_free(tx, SG_LEDGER_DIR, off >> SG_PAGE_SHIFT, child);
		return i + 1 < SG_TABLE_ENTRIES ? i + 1 : dir_index_page_left(tx, page);
	}
	return may_reclaim(tx) && sg_give_or_defer(tx, page, 1) ? SG_TABLE_ENTRIES :
	       dir_index_page_left(tx, page);
}

int sg_dir_reclaim(struct sg_tx *tx, u64 off, unsigned int *index)
{
	unsigned int first = *index;

	if (first >= SG_TABLE_ENTRIES)
		return sg_damaged(tx->vol, 0, off, "deferred free of a directory");
	*index = dir_index_reclaim_in(tx, off, 1, first);
	if (*index == first && !tx->n)
		/*
		 * a chunk is busy, or the ledger has no room: deferred frees without children must
		 * be reclaimed first
		 */
		sg_tx_fail(tx, tx->busy ? -EBUSY : -ENOSPC);
	return tx->err;
}
