// SPDX-License-Identifier: GPL-2.0
/*
 * The file of shared semaphores. Records of objects have to be valid. All the rest is volatile, and
 * its users expect any bytes there. A page of words without an object stays: the next object in
 * that place uses it.
 */
#include "check.h"
#include "sem/sem.h"

#define RECORD_PAGES	((u64)SG_SEM_CHAINS * SG_SEM_CHAIN_PAGES)

/* As sg_sem_page_at(), but for the file as recovery would leave it. */
static bool has_page(const struct sg_ck *c, u64 page)
{
	const struct sg_iref file = sg_sem_file();
	u64 root = ck_get(c, SG_IOFF(&file, table)), off;
	unsigned int level = SG_ROOT_HEIGHT(root);
	enum sg_entry kind = sg_root_kind(&c->vol, root, &off);

	if (page >= sg_level_pages(level + 1))
		return false;
	for (; kind == SG_ENTRY_TABLE; level--)
		kind = sg_entry_kind(&c->vol, ck_get(c, off + 8 * (page / sg_level_pages(level) %
								   SG_TABLE_ENTRIES)), level, &off);
	return kind == SG_ENTRY_LEAF;
}

/* An object that is being made or removed may have a part of its data (sem_ring.c). */
static bool has_data(const struct sg_ck *c, u64 head, u64 size, u64 page, unsigned int i)
{
	u64 first = sg_sem_ring_page(page, i), n;

	if (SG_SEM_TYPE(head) != SG_SEM_RING || SG_SEM_FLAGS(head) & SG_SEM_REMOVED)
		return true;
	for (n = 0; n < size >> SG_PAGE_SHIFT; n++)
		if (!has_page(c, first + n))
			return false;
	return true;
}

/* A missing page would be damage for the object's next opener. */
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

void ck_sems(struct sg_ck *c, void *ctx, u64 first, u64 off, u64 pages)
{
	u64 i;

	(void)ctx;
	for (i = 0; i < pages; i++)
		if (first + i < RECORD_PAGES)
			check_page(c, first + i, off + i * SG_PAGE);
}
