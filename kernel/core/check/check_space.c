// SPDX-License-Identifier: GPL-2.0
/*
 * Owners of pages, and the space map.
 *
 * A page belongs to the first owner that claims it; metadata claims first, deferred frees last. The
 * order of corrections makes an interruption harmless: pages in use are marked before any page is
 * freed. No page is freed while its owner is unclear.
 */
#include "check.h"

static u64 total_pages(const struct sg_ck *c)
{
	return sg_size(&c->vol) >> SG_PAGE_SHIFT;
}

/* Returns a mask of the bits from @page up to @end in the word that has @page. */
static u64 mask_of(u64 page, u64 end)
{
	u64 n = SG_MIN(64 - (page & 63), end - page);

	return (n == 64 ? ~0ULL : (1ULL << n) - 1) << (page & 63);
}

bool ck_claimed(const struct sg_ck *c, u64 off)
{
	u64 page = off >> SG_PAGE_SHIFT;

	return c->map[page / 64] >> (page & 63) & 1;
}

bool ck_claim(struct sg_ck *c, u64 off, u64 pages)
{
	u64 first = off >> SG_PAGE_SHIFT, end = first + pages, p;

	for (p = first; p < end; p = (p | 63) + 1)
		if (c->map[p / 64] & mask_of(p, end))
			return false;
	for (p = first; p < end; p = (p | 63) + 1)
		c->map[p / 64] |= mask_of(p, end);
	return true;
}

int ck_space_begin(struct sg_ck *c)
{
	u64 bytes = SG_ALIGN_UP(total_pages(c), SG_CHUNK_PAGES) / 8;

	/* the first call, or the volume has grown since the last one */
	if (c->map_bytes != bytes) {
		sg_free(c->map);
		c->map = sg_alloc(bytes);
		if (!c->map)
			return -ENOMEM;
		c->map_bytes = bytes;
	}
	memset(c->map, 0, bytes);
	ck_claim(c, 0, c->vol.sb.data_off >> SG_PAGE_SHIFT);
	ck_claim(c, sg_size(&c->vol) - SG_PAGE, 1);
	return 0;
}

static u64 map_word(const struct sg_ck *c, u64 chunk, unsigned int i)
{
	return ck_get(c, sg_chunk_off(&c->vol, chunk) + offsetof(struct sg_chunk, map) + 8 * i);
}

/* Returns the pages in use that nothing has claimed, among the 64 from @page on. */
static u64 lost_pages(const struct sg_ck *c, u64 page)
{
	u64 chunk = page / SG_CHUNK_PAGES;

	return map_word(c, chunk, page % SG_CHUNK_PAGES / 64) & ~c->map[page / 64];
}

/* Checks whether a name found in the bucket is a name of the root that should be restored. */
static void worth(struct sg_ck *c, void *ctx, const struct sg_dirent *d)
{
	u64 ino = SG_REF_INO(d->ref);

	if (ino > SG_INO_ROOT && ino < c->inodes && c->state[ino] & (CK_USED | CK_TYPELESS))
		*(bool *)ctx = true;
	else
		ck_loss_named(c, ino, SG_REF_TYPE(d->ref));
}

static bool names_of_root(struct sg_ck *c, u64 lost, u64 page, struct sg_bucket *b)
{
	bool found = false;

	for (; lost; lost &= lost - 1) {
		u64 off = (page + sg_ctz64(lost)) << SG_PAGE_SHIFT;

		if (sg_is_lost(&c->vol, off))
			continue;
		memcpy(b, ck_page(c, off), sizeof(*b));
		if ((u32)b->head == SG_BUCKET_MAGIC && b->dir == SG_INO_ROOT)
			ck_bucket_names(c, b, worth, &found);
	}
	return found;
}

/*
 * Finds the names of an empty root directory. If the root had to be made again, it is empty, but
 * buckets with its names may still exist. An interruption between the two repairs is harmless,
 * because only the contents of the volume decide.
 */
void ck_root_strays(struct sg_ck *c)
{
	u64 ino = SG_INO_ROOT, page;
	struct sg_bucket *b;
	bool found = false;

	if (ino >= c->inodes || !(c->state[ino] & CK_DIR) || c->state[ino] & CK_REBUILD ||
	    ck_get(c, ck_ifield(c, ino, table)))
		return;
	b = sg_alloc(sizeof(*b));
	c->no_memory |= !b;
	for (page = 0; b && page < total_pages(c); page += 64)
		found |= names_of_root(c, lost_pages(c, page), page, b);
	sg_free(b);
	if (!found)
		return;
	c->hold_pages = true;
	if (ck_found(c, CK_ASK, ino, ck_ifield(c, ino, table),
		     "directory: is empty, but its names are still there")) {
		c->state[ino] |= CK_REBUILD;
		ck_note(c, &c->rebuild, ino, 0);
	}
}

struct difference {
	u64 missing, missing_at;	/* in use, marked free */
	u64 lost, lost_at;		/* marked in use, without an owner */
	u64 free;			/* without an owner */
};

static void count(u64 bits, u64 page, u64 *n, u64 *at)
{
	if (!bits)
		return;
	if (!*n)
		*at = (page + sg_ctz64(bits)) << SG_PAGE_SHIFT;
	*n += sg_popcount64(bits);
}

/*
 * Records the pages that damage has cut off from directories to be rebuilt, because those pages
 * still have names.
 */
static void salvage(struct sg_ck *c, u64 lost, u64 page)
{
	u64 ino, off;

	for (; lost; lost &= lost - 1) {
		off = (page + sg_ctz64(lost)) << SG_PAGE_SHIFT;
		if (ck_is_bucket_of(c, off, &ino) && ino < c->inodes && c->state[ino] & CK_REBUILD)
			ck_note(c, &c->strays, ino, off);
	}
}

static void compare(struct sg_ck *c, struct difference *d)
{
	u64 chunk;
	unsigned int i;

	for (chunk = 0; chunk < sg_chunks(&c->vol); chunk++) {
		for (i = 0; i < 8; i++) {
			u64 page = chunk * SG_CHUNK_PAGES + 64 * i;
			u64 want = c->map[page / 64], have = map_word(c, chunk, i);

			count(want & ~have, page, &d->missing, &d->missing_at);
			count(have & ~want, page, &d->lost, &d->lost_at);
			d->free += sg_popcount64(~want);
			if (c->rebuild.n)
				salvage(c, have & ~want, page);
			if (c->image)
				ck_image_lost(c, have & ~want, page);
		}
		if (!(chunk & 1023))
			ck_progress(c, "space map", chunk, sg_chunks(&c->vol));
	}
}

/* Marks claimed pages as in use, or (@give) frees pages without an owner. */
static void correct(struct sg_ck *c, bool give)
{
	u64 chunk, off;
	unsigned int i;

	for (chunk = 0; chunk < sg_chunks(&c->vol); chunk++) {
		for (i = 0; i < 8; i++) {
			u64 want = c->map[chunk * 8 + i], have = map_word(c, chunk, i);

			off = sg_chunk_off(&c->vol, chunk) + offsetof(struct sg_chunk, map) + 8 * i;
			if (give ? have & ~want : want & ~have)
				ck_set(c, off, give ? have & want : have | want);
		}
	}
	sg_fence();
}

static void free_counter(struct sg_ck *c, u64 want)
{
	u64 have = c->vol.sb.free_base, off;
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < c->vol.sb.areas; i++)
			have += ck_get(c, sg_area_off(&c->vol, slot, i) +
				       offsetof(struct sg_area, free_pages));
	if (have == want)
		return;
	off = sg_area_off(&c->vol, 0, 0) + offsetof(struct sg_area, free_pages);
	if (ck_found(c, CK_SAFE, 0, off, "counters say %llu free pages, there are %llu",
		     CK_U(have), CK_U(want)))
		ck_set(c, off, ck_get(c, off) + want - have);
}

void ck_space(struct sg_ck *c)
{
	struct difference d = { 0 };

	compare(c, &d);
	c->res->pages = total_pages(c);
	c->res->pages_used = total_pages(c) - d.free;
	if (d.missing && ck_found(c, CK_ASK, 0, d.missing_at,
				  "%llu pages in use are marked free", CK_U(d.missing)))
		correct(c, false);
	/*
	 * The owner of a page that is marked in use may still be unclear. So the next pass frees
	 * such a page, after repairs.
	 */
	if (!c->looking && c->hold_pages)
		return;
	if (d.lost && ck_found(c, ck_giving(c), 0, d.lost_at,
			       "%llu pages are marked in use, but belong to nothing", CK_U(d.lost)))
		correct(c, true);
	free_counter(c, d.free);
}
