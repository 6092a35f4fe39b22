// SPDX-License-Identifier: GPL-2.0
/*
 * The file of shared semaphores. Records of objects must be valid. All other bytes are volatile,
 * and may have any value. A page of words without an object remains, because the next object in
 * that place uses it. Data without a ring is freed, because it may be 64 MiB.
 */
#include "check.h"
#include "sem/sem.h"

#define RECORD_PAGES	((u64)SG_SEM_CHAINS * SG_SEM_CHAIN_PAGES)

/**
 * struct place - where a page of the file is
 * @at: its entry; @off: the page; @pages: number of pages of the entry.
 */
struct place {
	u64 at, off, pages;
};

/* Finds a page as sg_sem_page_at() does, but in the state that recovery would produce. */
static bool find_page(const struct sg_ck *c, u64 page, struct place *p)
{
	const struct sg_iref file = sg_sem_file();
	u64 root = ck_get(c, SG_IOFF(&file, table)), off;
	unsigned int level = SG_ROOT_HEIGHT(root);
	enum sg_entry kind = sg_root_kind(&c->vol, root, &off);

	if (page >= sg_level_pages(level + 1))
		return false;
	for (*p = (struct place){ .pages = 1 }; kind == SG_ENTRY_TABLE; level--) {
		p->pages = sg_level_pages(level);
		p->at = off + 8 * (page / p->pages % SG_TABLE_ENTRIES);
		kind = sg_entry_kind(&c->vol, ck_get(c, p->at), level, &off);
	}
	p->off = off + page % p->pages * SG_PAGE;
	return kind == SG_ENTRY_LEAF;
}

static bool has_page(const struct sg_ck *c, u64 page)
{
	struct place p;

	return find_page(c, page, &p);
}

/*
 * Checks the data of a ring. A ring that is being made or removed may have a part of its data
 * (sem_ring.c). All rings together may have no more pages than the volume, because forged sizes
 * could otherwise keep the checker busy without end.
 */
static bool has_data(struct sg_ck *c, u64 head, u64 size, u64 page, unsigned int i)
{
	u64 first = sg_sem_ring_page(page, i), n, pages = size >> SG_PAGE_SHIFT;

	if (SG_SEM_TYPE(head) != SG_SEM_RING || SG_SEM_FLAGS(head) & SG_SEM_REMOVED)
		return true;
	c->ring_pages += pages;
	if (c->ring_pages > sg_size(&c->vol) >> SG_PAGE_SHIFT)
		return false;
	for (n = 0; n < pages; n++)
		if (!has_page(c, first + n))
			return false;
	return true;
}

/*
 * Checks the object's page of words. If it is missing, the object's next opener would report
 * damage.
 */
static bool has_pages(const struct sg_ck *c, u64 head, u64 page, unsigned int i)
{
	u64 words = sg_sem_words_page(page, i);
	unsigned int type = SG_SEM_TYPE(head);

	return (!sg_sem_has_words(type, SG_SEM_FLAGS(head)) || has_page(c, words)) &&
	       (!sg_sem_has_side(type) || has_page(c, words + 1));
}

static bool makes_sense(const struct sg_ck *c, const struct sg_sem_record *r, u64 page)
{
	u64 len = sg_load64(&r->mode) >> 32, hash = sg_load64(&r->hash);

	return sg_sem_head_known(sg_load64(&r->head)) && len && len <= SG_SEM_NAME_MAX &&
	       (SG_SEM_TYPE(sg_load64(&r->head)) != SG_SEM_RING ||
		sg_sem_ring_size_fits(sg_load64(&r->initial))) &&
	       (ck_hidden(c) || hash == sg_sem_hash(&c->vol, r->name, (u32)len)) &&
	       sg_sem_chain(hash) == page % SG_SEM_CHAINS;
}

static void check_page(struct sg_ck *c, u64 page, u64 off)
{
	const struct sg_sem_page *p = ck_page(c, off);
	bool good[SG_SEM_RECORDS];
	unsigned int i;

	for (i = 0; i < SG_SEM_RECORDS; i++)
		good[i] = makes_sense(c, &p->record[i], page);
	if (c->image)
		ck_image_sems(c, off, good);
	for (i = 0; i < SG_SEM_RECORDS; i++) {
		const struct sg_sem_record *r = &p->record[i];
		u64 at = off + offsetof(struct sg_sem_page, record) + i * sizeof(*r);

		if (!sg_load64(&r->head))
			continue;
		if (!good[i]) {
			if (ck_found(c, CK_ASK, 0, at, "a semaphore is invalid"))
				ck_set(c, at, 0);
			continue;
		}
		if (!has_pages(c, sg_load64(&r->head), page, i) ||
		    !has_data(c, sg_load64(&r->head), sg_load64(&r->initial), page, i)) {
			if (ck_found(c, CK_ASK, 0, at, "a semaphore has lost its words"))
				ck_set(c, at, 0);
			continue;
		}
		ck_lock(c, 0, at + offsetof(struct sg_sem_record, lock));
	}
}

/* --- data of rings ---------------------------------------------------------------------------- */

/* Returns the number of pages that the ring in this place has, or may have. */
static u64 ring_pages(const struct sg_ck *c, u64 page, unsigned int i)
{
	struct place p;
	u64 head, at;

	if (i >= SG_SEM_RECORDS || !find_page(c, page, &p))
		return 0;
	at = sg_sem_record_off(p.off, i);
	head = ck_get(c, at);
	if (!sg_sem_head_known(head) || SG_SEM_TYPE(head) != SG_SEM_RING)
		return 0;
	return ck_get(c, at + offsetof(struct sg_sem_record, initial)) >> SG_PAGE_SHIFT;
}

/* Cuts off the pages from @page to @end, so that the checker does not find them later. */
static void drop_data(struct sg_ck *c, u64 page, u64 end)
{
	struct place p;

	for (; page < end; page += p.pages) {
		if (find_page(c, page, &p) && p.at)
			ck_set(c, p.at, 0);
		else
			p.pages = 1;
	}
}

/*
 * Frees data whose ring has been lost by damage or removed by fsck. No other code would free that
 * data.
 */
static void check_data(struct sg_ck *c, u64 page, u64 at)
{
	u64 place = (page - SG_SEM_RINGS_PAGE) / SG_RING_PAGES_MAX;
	u64 in = (page - SG_SEM_RINGS_PAGE) % SG_RING_PAGES_MAX;

	if (c->ring_reported == place + 1 || in < ring_pages(c, place / 8, place % 8))
		return;
	c->ring_reported = place + 1;
	if (ck_found(c, ck_giving(c), 0, at, "page %llu of the rings' data belongs to no ring",
		     CK_U(page - SG_SEM_RINGS_PAGE)))
		drop_data(c, page, page - in + SG_RING_PAGES_MAX);
}

void ck_sems(struct sg_ck *c, void *ctx, u64 first, u64 off, u64 pages)
{
	u64 i;

	(void)ctx;
	for (i = 0; i < pages; i++)
		if (first + i < RECORD_PAGES)
			check_page(c, first + i, off + i * SG_PAGE);
		else if (first + i >= SG_SEM_RINGS_PAGE)
			check_data(c, first + i, off + i * SG_PAGE);
}
