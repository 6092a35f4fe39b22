// SPDX-License-Identifier: GPL-2.0
/*
 * One bucket of a directory: find, add and remove a name; distribute names to other buckets.
 *
 * The code stores the bytes of a dirent while no slot refers to them, in place or in the running
 * transaction. The transaction then stores the slot's word, which makes the bytes a name. So a
 * crash leaves at most unreferenced bytes, and an abort has nothing to undo.
 */
#include "dir/dir_index.h"

#define TOMBS_AT_ONCE	8	/* tombs that one removal clears */

static unsigned int home(u64 hash)
{
	return (unsigned int)hash % SG_BUCKET_SLOTS;
}

/* Returns the part of the hash that a slot's word has, without offset and tie-break. */
static u64 slot_hash(u64 word)
{
	return word >> (12 + SG_DIR_TIE_BITS);
}

static u64 short_hash(u64 hash)
{
	return slot_hash(SG_BUCKET_WORD(hash << SG_DIR_TIE_BITS, 0));
}

/*
 * Compares names by relaxed loads of one word each, because without a lock the bytes may change
 * meanwhile.
 */
static bool same_bytes(const struct sg_vol *vol, u64 at, const char *name, u32 len)
{
	u32 i, rest = len & 7;

	for (i = 0; i + 8 <= len; i += 8)
		if (sg_get(vol, at + i) != sg_name_word(name + i))
			return false;
	return !rest || !((sg_get(vol, at + i) ^ sg_name_tail(name, len)) << (64 - 8 * rest));
}

/* Reports whether a slot's word, whose hash matches, refers to that name. */
static int is_it(const struct sg_vol *vol, u64 word, struct sg_name *n)
{
	unsigned int off = SG_BUCKET_OFF(word);
	u64 at = n->bucket + off;

	if (word == SG_BUCKET_TOMB)
		return 0;
	n->twins = true;
	if (!sg_dirent_inside(off, 1))
		return -EUCLEAN;
	n->ref_off = at + offsetof(struct sg_dirent, ref);
	n->ref = sg_get(vol, n->ref_off);
	if (SG_REF_LEN(n->ref) != n->len ||
	    sg_get(vol, at + offsetof(struct sg_dirent, key)) >> SG_DIR_TIE_BITS != n->hash)
		return 0;
	if (!sg_dirent_inside(off, n->len))
		return -EUCLEAN;
	return same_bytes(vol, at + offsetof(struct sg_dirent, name), n->name, n->len);
}

int sg_bucket_find(const struct sg_vol *vol, struct sg_name *n)
{
	u64 want = short_hash(n->hash);
	unsigned int i, at = home(n->hash);

	n->twins = false;
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 off = sg_bucket_slot(n->bucket, at + i), word = sg_get(vol, off);
		int hit;

		if (!word)
			break;
		if (slot_hash(word) != want)
			continue;
		hit = is_it(vol, word, n);
		if (hit) {
			n->slot_off = off;
			return hit < 0 ? hit : 0;
		}
	}
	return -ENOENT;
}

/* --- add -------------------------------------------------------------------------------------- */

void sg_bucket_init(struct sg_vol *vol, u64 bucket, u64 dir, u64 prefix, unsigned int depth)
{
	sg_fresh_zero(vol, bucket, offsetof(struct sg_bucket, data));
	sg_fresh_set(vol, bucket + offsetof(struct sg_bucket, head),
		     SG_BUCKET_MAGIC | (u64)depth << 32);
	sg_fresh_set(vol, bucket + offsetof(struct sg_bucket, dir), dir);
	sg_fresh_set(vol, bucket + offsetof(struct sg_bucket, prefix), prefix);
	sg_wb(sg_at(vol, bucket), 64);
}

static u64 fill_off(u64 bucket)
{
	return bucket + offsetof(struct sg_bucket, fill);
}

struct fill {
	unsigned int bytes, live, tombs;
};

static struct fill fill_of(u64 word)
{
	return (struct fill){ word & 0xffff, word >> 16 & 0xffff, word >> 32 & 0xffff };
}

static u64 fill_word(const struct fill *f)
{
	return SG_FILL((u64)f->bytes, f->live, f->tombs);
}

/* the place for a new name */
struct spot {
	u64 slot;
	unsigned int at;	/* offset of the dirent in data */
	struct fill fill;	/* value of fill after the name was added */
};

/*
 * Returns the first slot without a name on the search path of @hash; SG_BUCKET_SLOTS: there is
 * none.
 */
static unsigned int free_slot(struct sg_tx *tx, u64 bucket, u64 hash, bool *tomb)
{
	unsigned int i;

	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 word = sg_tx_get(tx, sg_bucket_slot(bucket, home(hash) + i));

		*tomb = word == SG_BUCKET_TOMB;
		if (!word || *tomb)
			return (home(hash) + i) % SG_BUCKET_SLOTS;
	}
	return i;
}

static bool find_spot(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n,
		      struct spot *s)
{
	u64 off = fill_off(n->bucket);
	struct fill now = fill_of(sg_get(tx->vol, off)), *f = &s->fill;
	unsigned int slot;
	bool tomb;

	*f = fill_of(sg_tx_get(tx, off));
	/* slots refer to bytes that this transaction has freed until it commits */
	s->at = SG_MAX(f->bytes, now.bytes);
	if (s->at & 7 || s->at > SG_BUCKET_DATA) {
		sg_tx_fail(tx, sg_damaged(tx->vol, dir->ino, off, "directory bucket overflows"));
		return false;
	}
	f->bytes = s->at + sg_dirent_size(n->len);
	if (f->live >= SG_BUCKET_LIVE_MAX || f->bytes > SG_BUCKET_DATA)
		return false;
	slot = free_slot(tx, n->bucket, n->hash, &tomb);
	if (slot == SG_BUCKET_SLOTS || (!tomb && f->live + f->tombs >= SG_BUCKET_LIVE_MAX))
		return false;
	s->slot = sg_bucket_slot(n->bucket, slot);
	f->live++;
	if (tomb && f->tombs)
		f->tombs--;
	return true;
}

bool sg_bucket_has_room(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n)
{
	struct spot s;

	return find_spot(tx, dir, n, &s);
}

/*
 * Returns the lowest tie-break that no name with this hash has. A bucket has fewer names than there
 * are tie-breaks.
 */
static unsigned int free_tie(struct sg_tx *tx, const struct sg_name *n)
{
	u64 used[(1 << SG_DIR_TIE_BITS) / 64] = { 0 };
	unsigned int i, tie = 0;

	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 word = sg_tx_get(tx, sg_bucket_slot(n->bucket, i));

		if (slot_hash(word) == short_hash(n->hash))
			used[word >> 18 & 3] |= 1ULL << (word >> 12 & 63);
	}
	while (used[tie / 64] >> (tie % 64) & 1)
		tie++;
	return tie;
}

static void store_dirent(struct sg_vol *vol, u64 at, u64 key, u64 ref, const struct sg_name *n)
{
	u64 to = at + offsetof(struct sg_dirent, name);
	u32 i;

	sg_fresh_set(vol, at + offsetof(struct sg_dirent, key), key);
	sg_fresh_set(vol, at + offsetof(struct sg_dirent, ref), ref);
	for (i = 0; i + 8 <= n->len; i += 8)
		sg_fresh_set(vol, to + i, sg_name_word(n->name + i));
	if (i < n->len)
		sg_fresh_set(vol, to + i, sg_name_tail(n->name, n->len));
	sg_wb(sg_at(vol, at), sg_dirent_size(n->len));
}

bool sg_bucket_put(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
		   unsigned int type)
{
	unsigned int off;
	struct spot s;
	u64 key;

	if (!find_spot(tx, dir, n, &s))
		return false;
	off = (unsigned int)offsetof(struct sg_bucket, data) + s.at;
	key = n->hash << SG_DIR_TIE_BITS | (n->twins ? free_tie(tx, n) : 0);
	n->ref = SG_REF(ino, n->len, type);
	n->ref_off = n->bucket + off + offsetof(struct sg_dirent, ref);
	n->slot_off = s.slot;
	sg_tx_fresh(tx);
	store_dirent(tx->vol, n->bucket + off, key, n->ref, n);
	sg_tx_set(tx, s.slot, SG_BUCKET_WORD(key, off));
	sg_tx_set(tx, fill_off(n->bucket), fill_word(&s.fill));
	return true;
}

/* --- remove ----------------------------------------------------------------------------------- */

static unsigned int slot_index(const struct sg_name *n)
{
	return (unsigned int)(n->slot_off - sg_bucket_slot(n->bucket, 0)) / 8;
}

/*
 * Clears a slot. If the next slot is empty, no search needs a tomb here, so the slot becomes empty,
 * and then the tombs before it. So buckets lose their tombs without a rewrite.
 */
static void clear_slot(struct sg_tx *tx, const struct sg_name *n, struct fill *f)
{
	unsigned int i = slot_index(n), k;

	if (sg_tx_get(tx, sg_bucket_slot(n->bucket, i + 1))) {
		sg_tx_set(tx, n->slot_off, SG_BUCKET_TOMB);
		f->tombs++;
		return;
	}
	sg_tx_set(tx, n->slot_off, 0);
	for (k = 1; k <= TOMBS_AT_ONCE && f->tombs; k++) {
		u64 off = sg_bucket_slot(n->bucket, i + SG_BUCKET_SLOTS - k);

		if (sg_tx_get(tx, off) != SG_BUCKET_TOMB)
			break;
		sg_tx_set(tx, off, 0);
		f->tombs--;
	}
}

void sg_bucket_remove(struct sg_tx *tx, const struct sg_name *n)
{
	u64 off = fill_off(n->bucket);
	struct fill f = fill_of(sg_tx_get(tx, off));
	u64 data = n->bucket + offsetof(struct sg_bucket, data);
	u64 at = n->ref_off - offsetof(struct sg_dirent, ref) - data;

	clear_slot(tx, n, &f);
	if (f.live)
		f.live--;
	if (!f.live)
		f.bytes = 0;
	else if (at + sg_dirent_size(n->len) == f.bytes)
		f.bytes = (unsigned int)at;
	sg_tx_set(tx, off, fill_word(&f));
}

/* --- distribute ------------------------------------------------------------------------------- */

static int damaged_name(struct sg_tx *tx, const struct sg_iref *dir, u64 at)
{
	int err = sg_damaged(tx->vol, dir->ino, at, "invalid name in a directory");

	sg_tx_fail(tx, err);
	return err;
}

/* Reads slot @i. 0: it has no name. 1: returns its ref word and offset. -EUCLEAN: it is damaged. */
static int name_at(struct sg_tx *tx, const struct sg_iref *dir, u64 bucket, unsigned int i,
		   u64 *at, u64 *ref)
{
	u64 word = sg_tx_get(tx, sg_bucket_slot(bucket, i));
	unsigned int off = SG_BUCKET_OFF(word);

	if (!word || word == SG_BUCKET_TOMB)
		return 0;
	*at = bucket + off;
	if (!sg_dirent_inside(off, 1))
		return damaged_name(tx, dir, *at);
	*ref = sg_tx_get(tx, *at + offsetof(struct sg_dirent, ref));
	return sg_dirent_inside(off, SG_REF_LEN(*ref)) ? 1 : damaged_name(tx, dir, *at);
}

int sg_bucket_load(struct sg_tx *tx, const struct sg_iref *dir, u64 bucket, unsigned int *live,
		   unsigned int *bytes)
{
	unsigned int i;

	*live = 0;
	*bytes = 0;
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 at, ref;
		int err = name_at(tx, dir, bucket, i, &at, &ref);

		if (err < 0)
			return err;
		if (err) {
			*live += 1;
			*bytes += sg_dirent_size(SG_REF_LEN(ref));
		}
	}
	return 0;
}

/*
 * A bucket being filled. Private memory records which slots are taken. So the search for a free
 * slot ends even if another system stores into the bucket meanwhile.
 */
struct heap {
	u64 bucket, taken[SG_BUCKET_SLOTS / 64];
	struct fill fill;
};

/* Takes the first free slot from the name's home on. A bucket has more slots than names. */
static unsigned int take_slot(struct heap *h, u64 hash)
{
	unsigned int i = home(hash);

	while (h->taken[i / 64] >> (i % 64) & 1)
		i = (i + 1) % SG_BUCKET_SLOTS;
	h->taken[i / 64] |= 1ULL << (i % 64);
	return i;
}

/* Copies a name. It fits here if it fitted in the old bucket, unless that bucket is damaged. */
static bool deal_name(struct sg_vol *vol, struct heap *h, u64 from, u64 key, u64 ref)
{
	unsigned int size = sg_dirent_size(SG_REF_LEN(ref)), i;
	unsigned int off = (unsigned int)offsetof(struct sg_bucket, data) + h->fill.bytes;

	if (h->fill.live >= SG_BUCKET_LIVE_MAX || h->fill.bytes + size > SG_BUCKET_DATA)
		return false;
	i = take_slot(h, key >> SG_DIR_TIE_BITS);
	sg_fresh_set(vol, sg_bucket_slot(h->bucket, i), SG_BUCKET_WORD(key, off));
	sg_fresh_set(vol, h->bucket + off, key);
	sg_fresh_set(vol, h->bucket + off + offsetof(struct sg_dirent, ref), ref);
	for (i = sizeof(struct sg_dirent); i < size; i += 8)
		sg_fresh_set(vol, h->bucket + off + i, sg_get(vol, from + i));
	h->fill.bytes += size;
	h->fill.live++;
	return true;
}

int sg_bucket_deal(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_place *from,
		   const u64 *to, unsigned int bits)
{
	struct sg_vol *vol = tx->vol;
	u64 prefix = sg_get(vol, from->bucket + offsetof(struct sg_bucket, prefix));
	struct heap h[4] = { { 0 } };
	unsigned int i, k, n = 1u << bits;

	for (k = 0; k < n; k++)
		h[k].bucket = to[k];
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		u64 at, ref, key;
		int err = name_at(tx, dir, from->bucket, i, &at, &ref);

		if (!err)
			continue;
		if (err < 0)
			return err;
		key = sg_get(vol, at);
		k = (unsigned int)(key >> (SG_DIR_KEY_BITS - from->depth - bits)) & (n - 1);
		if (key >> SG_DIR_KEY_BITS || sg_key_prefix(key, from->depth) != prefix ||
		    !deal_name(vol, &h[k], at, key, ref))
			return damaged_name(tx, dir, at);
	}
	for (k = 0; k < n; k++) {
		sg_fresh_set(vol, fill_off(to[k]), fill_word(&h[k].fill));
		sg_wb(sg_at(vol, to[k]), offsetof(struct sg_bucket, data) + h[k].fill.bytes);
	}
	return 0;
}
