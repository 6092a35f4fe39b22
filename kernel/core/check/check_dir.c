// SPDX-License-Identifier: GPL-2.0
/*
 * Directories: index pages, buckets, names.
 *
 * The checker removes an invalid name in place. If the index itself is wrong, or a lookup cannot
 * find a name, it records that the directory must be rebuilt (check_engine.c). The rebuild uses all
 * buckets that name the directory.
 */
#include "check.h"

struct dir {
	struct sg_ck *c;
	u64 ino;
	u64 names, pages;
	u64 first_stray;	/* the first entry of c->strays that this walk has added */
	bool broken, rebuild;
	/* a copy of the bucket being checked, which cannot change meanwhile */
	struct sg_bucket b;
	bool usable[SG_BUCKET_SLOTS];	/* slots with a valid name */
	bool ended;			/* one of its names has been removed */
};

static void broken(struct dir *d, u64 at, const char *what)
{
	if (!d->broken)	/* one report suffices, because the complete directory is rebuilt */
		d->rebuild = ck_found(d->c, CK_ASK, d->ino, at, "directory: %s", what);
	d->broken = true;
}

/* --- one bucket ---------------------------------------------------------------------------- */

static const struct sg_dirent *dirent_at(const struct sg_bucket *b, unsigned int off)
{
	return (const struct sg_dirent *)((const u8 *)b + off);
}

static unsigned int dirent_len(const struct sg_dirent *d)
{
	return (unsigned int)SG_ALIGN_UP(sizeof(*d) + SG_REF_LEN(d->ref), 8);
}

#define EACH_BYTE	0x0101010101010101ULL

/* Reports whether one of the word's eight bytes is 0. */
static bool has_zero(u64 word)
{
	return (word - EACH_BYTE) & ~word & 0x80 * EACH_BYTE;
}

static bool name_valid(const u8 *name, unsigned int len)
{
	unsigned int i;
	u64 word;

	if (!len || (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))))
		return false;
	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, name + i, 8);
		if (has_zero(word) || has_zero(word ^ '/' * EACH_BYTE))
			return false;
	}
	for (; i < len; i++)
		if (!name[i] || name[i] == '/')
			return false;
	return true;
}

/* Reports whether the dirent lies inside the bucket, and whether its key matches its name. */
static const struct sg_dirent *dirent_valid(const struct sg_ck *c, const struct sg_bucket *b,
					    u64 slot)
{
	unsigned int off = SG_BUCKET_OFF(slot), len;
	const struct sg_dirent *d = dirent_at(b, off);

	if (off & 7 || off < offsetof(struct sg_bucket, data) || off > SG_PAGE - sizeof(*d))
		return NULL;
	len = SG_REF_LEN(d->ref);
	if (off + sizeof(*d) + len > SG_PAGE || !name_valid(d->name, len))
		return NULL;
	if (d->key >> SG_DIR_KEY_BITS || d->key << 12 != (slot & ~0xfffULL))
		return NULL;
	if (!ck_hidden(c) &&
	    d->key >> SG_DIR_TIE_BITS != sg_dir_hash(&c->vol, (const char *)d->name, len))
		return NULL;
	return d;
}

static bool same_name(const struct sg_dirent *a, const struct sg_dirent *b)
{
	unsigned int len = SG_REF_LEN(a->ref);

	return len == SG_REF_LEN(b->ref) && !memcmp(a->name, b->name, len);
}

/*
 * Returns an earlier slot with a usable name that has the same key or name as slot @i, or overlaps
 * its dirent. Returns @i if there is none.
 */
static unsigned int clash_of(const struct dir *d, unsigned int i, const struct sg_dirent *e)
{
	unsigned int k, off = SG_BUCKET_OFF(d->b.slot[i]), end = off + dirent_len(e);

	for (k = 0; k < i; k++) {
		unsigned int at = SG_BUCKET_OFF(d->b.slot[k]);
		const struct sg_dirent *o = dirent_at(&d->b, at);

		if (d->usable[k] && (o->key == e->key || same_name(o, e) ||
				     (at < end && off < at + dirent_len(o))))
			return k;
	}
	return i;
}

/*
 * Reports whether a lookup finds the slot. A lookup begins at the key's home and ends at the first
 * empty slot.
 */
static bool can_be_found(const struct sg_bucket *b, unsigned int i, u64 key)
{
	unsigned int k = (unsigned int)(key >> SG_DIR_TIE_BITS) % SG_BUCKET_SLOTS;

	for (; k != i; k = (k + 1) % SG_BUCKET_SLOTS)
		if (!b->slot[k])
			return false;
	return true;
}

static u64 prefix_of(u64 key, unsigned int depth)
{
	return depth ? key >> (SG_DIR_KEY_BITS - depth) << (SG_DIR_KEY_BITS - depth) : 0;
}

static void end_name(struct dir *d, u64 off, unsigned int i)
{
	ck_set(d->c, off + offsetof(struct sg_bucket, slot) + 8 * i, SG_BUCKET_TOMB);
	d->b.slot[i] = SG_BUCKET_TOMB;
	d->usable[i] = false;
	d->ended = true;
}

/* Checks slot @i, which has a name. */
static void check_name(struct dir *d, u64 off, unsigned int i)
{
	struct sg_ck *c = d->c;
	u64 at = off + offsetof(struct sg_bucket, slot) + 8 * i, slot = d->b.slot[i];
	const struct sg_dirent *e = dirent_valid(c, &d->b, slot);

	if (!e || clash_of(d, i, e) != i) {
		if (ck_found(c, CK_ASK, d->ino, at, "directory: a name %s",
			     e ? "is there twice" : "is invalid"))
			end_name(d, off, i);
		return;
	}
	d->usable[i] = true;
	if (prefix_of(e->key, (unsigned int)(d->b.head >> 32)) != d->b.prefix ||
	    !can_be_found(&d->b, i, e->key))
		broken(d, at, "a name is in a place where no lookup finds it");
	else if (!ck_refers(c, d->ino, e, off + SG_BUCKET_OFF(slot) +
			    offsetof(struct sg_dirent, ref)))
		end_name(d, off, i);
}

/* Checks the bucket's counters against its slots: names, tombs, bytes of names. */
static void check_fill(struct dir *d, u64 off)
{
	u64 fill = d->b.fill, bytes = fill & 0xffff, want;
	unsigned int i, live = 0, tombs = 0, end = 0;

	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		unsigned int o = SG_BUCKET_OFF(d->b.slot[i]);

		tombs += d->b.slot[i] == SG_BUCKET_TOMB;
		live += d->b.slot[i] > SG_BUCKET_TOMB;
		if (d->usable[i])
			end = SG_MAX(end, o + dirent_len(dirent_at(&d->b, o)));
	}
	d->names += live;
	if (end)
		end -= offsetof(struct sg_bucket, data);
	if (bytes < end || bytes > SG_BUCKET_DATA || bytes & 7)
		bytes = end;
	want = SG_FILL(bytes, live, tombs);
	if (fill != want && (d->ended || ck_found(d->c, CK_SAFE, d->ino, off,
						  "directory: a bucket counts its names wrongly")))
		ck_set(d->c, off + offsetof(struct sg_bucket, fill), want);
}

/*
 * Stores the bucket in the image with only its valid names. An invalid name becomes a slot with an
 * invalid offset; a duplicate gets the slot word of the other name.
 */
static void image_bucket(struct dir *d, u64 off)
{
	u64 slot[SG_BUCKET_SLOTS];
	unsigned int i, k;

	memset(d->usable, 0, sizeof(d->usable));
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		const struct sg_dirent *e = NULL;

		slot[i] = d->b.slot[i];
		if (slot[i] <= SG_BUCKET_TOMB)
			continue;
		e = dirent_valid(d->c, &d->b, slot[i]);
		k = e ? clash_of(d, i, e) : i;
		d->usable[i] = e && k == i;
		if (!e)
			slot[i] |= SG_BUCKET_OFF(~0ULL);
		else if (k != i)
			slot[i] = d->b.slot[k];
	}
	ck_image_bucket(d->c, off, &d->b, slot, d->usable);
}

static void check_bucket(struct dir *d, u64 off)
{
	unsigned int i;

	if (d->c->image)
		image_bucket(d, off);
	memset(d->usable, 0, sizeof(d->usable));
	d->ended = false;
	for (i = 0; i < SG_BUCKET_SLOTS; i++)
		if (d->b.slot[i] > SG_BUCKET_TOMB)
			check_name(d, off, i);
	check_fill(d, off);
}

/* --- the index ----------------------------------------------------------------------------- */

static bool load_bucket(struct dir *d, u64 off)
{
	memcpy(&d->b, ck_page(d->c, off), SG_PAGE);
	return (u32)d->b.head == SG_BUCKET_MAGIC && d->b.dir == d->ino;
}

static void walk_page(struct dir *d, u64 page, unsigned int level, u64 prefix);

/* Claims the target of an index word and checks it. Returns false if the word is wrong. */
static bool walk_word(struct dir *d, u64 word, unsigned int level, u64 prefix)
{
	u64 off = word & ~SG_DIR_ENTRY_KIND;
	unsigned int kind = word & SG_DIR_ENTRY_KIND, depth;

	if (!sg_data_page(&d->c->vol, off) || ck_claimed(d->c, off))
		return false;
	/*
	 * ck_space() salvages a page that looks like a bucket, so this code does not read the page
	 * as an index page
	 */
	if (kind == SG_DIR_ENTRY_INDEX && level < SG_DIR_LEVELS_MAX && !load_bucket(d, off)) {
		ck_claim(d->c, off, 1);
		d->pages++;
		if (d->c->image)
			ck_image_index(d->c, off);
		walk_page(d, off, level + 1, prefix);
		return true;
	}
	if (kind != SG_DIR_ENTRY_BUCKET || !load_bucket(d, off))
		return false;
	ck_claim(d->c, off, 1);
	d->pages++;
	ck_note(d->c, &d->c->strays, d->ino, off);
	depth = (unsigned int)(d->b.head >> 32);
	if (d->b.prefix != prefix || depth > 9 * level || depth + SG_DIR_SPAN_BITS < 9 * level) {
		if (d->c->image)
			ck_image_head(d->c, off);
		return false;
	}
	check_bucket(d, off);
	return true;
}

/*
 * Returns the number of words from @i on that name the bucket loaded last, or 0 if that number does
 * not match the bucket's depth.
 */
static unsigned int span_of(struct dir *d, const u64 *t, unsigned int i, unsigned int level)
{
	unsigned int depth = (unsigned int)(d->b.head >> 32), span, k;

	if ((t[i] & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX)
		return 1;
	span = 1u << (9 * level - depth);
	if (i & (span - 1))
		return 0;
	for (k = 1; k < span; k++)
		if (t[i + k] != t[i])
			return 0;
	return span;
}

/*
 * Walks an index page of @level (1: the root). Recurses once per level, at most SG_DIR_LEVELS_MAX
 * deep.
 */
static void walk_page(struct dir *d, u64 page, unsigned int level, u64 prefix)
{
	const u64 *from = ck_page(d->c, page);
	unsigned int i, span;
	/* a copy, because span_of() reads words again after the walk has used them */
	u64 *t = sg_alloc(SG_PAGE);

	if (!t) {
		d->c->no_memory = true;
		return;
	}
	memcpy(t, from, SG_PAGE);
	for (i = 0; i < SG_TABLE_ENTRIES; i += span) {
		u64 part = prefix | (u64)i << (SG_DIR_KEY_BITS - 9 * level);

		span = 0;
		if (walk_word(d, t[i], level, part))
			span = span_of(d, t, i, level);
		if (!span) {
			broken(d, page + 8 * i, "the index is damaged");
			span = 1;
		}
	}
	sg_free(t);
}

/* --- all of them --------------------------------------------------------------------------- */

static void check_counts(struct dir *d)
{
	struct sg_ck *c = d->c;
	u64 at = ck_ifield(c, d->ino, entries), xattrs = ck_xattr(c, d->ino);

	if (d->broken)
		return;
	if (ck_get(c, at) != d->names &&
	    ck_found(c, CK_SAFE, d->ino, at, "directory: counts %llu names, has %llu",
		     CK_U(ck_get(c, at)), CK_U(d->names)))
		ck_set(c, at, d->names);
	ck_blocks(c, d->ino, d->pages + xattrs);
	at = ck_ifield(c, d->ino, size);
	if (ck_get(c, at) != d->pages * SG_PAGE &&
	    ck_found(c, CK_SAFE, d->ino, at, "directory: is %llu bytes large, not %llu",
		     CK_U(d->pages * SG_PAGE), CK_U(ck_get(c, at))))
		ck_set(c, at, d->pages * SG_PAGE);
}

/*
 * Checks a removed directory. No lookup finds a name in it any more, and its pages are freed with
 * it.
 */
static void check_removed(struct dir *d, u64 root_at, u64 root)
{
	u64 off = root & ~SG_DIR_ENTRY_KIND;
	struct sg_ck *c = d->c;

	ck_xattr(c, d->ino);
	if (!root)
		return;
	if (sg_data_page(&c->vol, off) && ck_claim(c, off, 1) &&
	    ((root & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_BUCKET ||
	     ck_dir_deferred(c, off, 0, 1, &d->pages)))
		return;
	if (ck_found(c, CK_ASK, d->ino, root_at, "directory: removed, and its index is damaged"))
		ck_set(c, root_at, 0);
}

static void check_dir(struct dir *d, u64 ino)
{
	struct sg_ck *c = d->c;
	u64 root_at = ck_ifield(c, ino, table), root = ck_get(c, root_at);

	d->ino = ino;
	d->names = 0;
	d->pages = 0;
	d->broken = false;
	d->first_stray = c->strays.n;
	if (ck_removed_dir(c, ino)) {
		check_removed(d, root_at, root);
		return;
	}
	if (root ? !walk_word(d, root, 0, 0) : ck_get(c, ck_ifield(c, ino, entries)))
		broken(d, root_at, "the root of its index is damaged");
	check_counts(d);
	if (d->broken)
		/* its unreachable pages count neither as orphans nor as lost */
		c->hold_pages = true;
	if (!d->broken || !d->rebuild) {
		c->strays.n = d->first_stray;
		return;
	}
	c->state[ino] |= CK_REBUILD;
	ck_note(c, &c->rebuild, ino, 0);
}

void ck_dirs(struct sg_ck *c)
{
	struct dir *d = sg_alloc(sizeof(*d));
	u64 ino;

	c->no_memory |= !d;
	for (ino = 1; d && ino < c->inodes; ino++) {
		if (!(ino & 0xfff))
			ck_progress(c, "directories", ino, c->inodes);
		if (c->state[ino] & CK_DIR) {
			d->c = c;
			check_dir(d, ino);
		}
	}
	sg_free(d);
}

/* --- deferred frees, and salvage ----------------------------------------------------------- */

bool ck_dir_deferred(struct sg_ck *c, u64 page, unsigned int first, unsigned int level, u64 *pages)
{
	const u64 *t = ck_page(c, page);
	unsigned int i;
	u64 last;

	if (first >= SG_TABLE_ENTRIES)
		return false;
	if (c->image)
		ck_image_index(c, page);
	last = first ? sg_load64(&t[first - 1]) : 0;	/* this part has been reclaimed */
	for (i = first; i < SG_TABLE_ENTRIES; i++) {
		u64 word = sg_load64(&t[i]), off = word & ~SG_DIR_ENTRY_KIND;

		if (!word || word == last)
			continue;
		last = word;
		if (!sg_data_page(&c->vol, off) || !ck_claim(c, off, 1))
			return false;
		(*pages)++;
		if ((word & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_INDEX &&
		    (level == SG_DIR_LEVELS_MAX || !ck_dir_deferred(c, off, 0, level + 1, pages)))
			return false;
	}
	return true;
}

bool ck_is_bucket_of(const struct sg_ck *c, u64 off, u64 *ino)
{
	const struct sg_bucket *b;

	if (sg_is_lost(&c->vol, off))
		return false;
	b = ck_page(c, off);
	*ino = b->dir;
	return (u32)b->head == SG_BUCKET_MAGIC;
}

void ck_image_lost(struct sg_ck *c, u64 lost, u64 page)
{
	struct dir *d = lost ? sg_alloc(sizeof(*d)) : NULL;
	u64 ino, off;

	c->no_memory |= lost && !d;
	for (; d && lost; lost &= lost - 1) {
		off = (page + sg_ctz64(lost)) << SG_PAGE_SHIFT;
		if (!ck_is_bucket_of(c, off, &ino))
			continue;
		d->c = c;
		memcpy(&d->b, ck_page(c, off), sizeof(d->b));
		image_bucket(d, off);
	}
	sg_free(d);
}

void ck_bucket_names(struct sg_ck *c, const struct sg_bucket *b, ck_name fn, void *ctx)
{
	unsigned int i;

	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		const struct sg_dirent *d = NULL;

		if (b->slot[i] > SG_BUCKET_TOMB)
			d = dirent_valid(c, b, b->slot[i]);
		if (d)
			fn(c, ctx, d);
	}
}
