// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a volume in the state that recovery would produce, and storing repairs.
 *
 * A check that must not change anything replays committed transactions of dead systems into private
 * copies of the pages. All code of the checker reads through ck_page(). So the volume may be mapped
 * read-only, and a check before recovery has the same result as a check after it.
 */
#include "check.h"

#define BUCKETS	4096
#define SWAPS	1000

struct ck_page {
	u64 off;
	struct ck_page *next;
	u64 word[SG_PAGE / 8];
};

static struct ck_page **bucket_of(const struct sg_ck *c, u64 page)
{
	return &c->copies[(page >> SG_PAGE_SHIFT) % BUCKETS];
}

static struct ck_page *copy_of(const struct sg_ck *c, u64 page)
{
	struct ck_page *p = *bucket_of(c, page);

	while (p && p->off != page)
		p = p->next;
	return p;
}

const void *ck_page(const struct sg_ck *c, u64 off)
{
	u64 page = off & ~(SG_PAGE - 1);

	if (c->ncopies) {
		const struct ck_page *p = copy_of(c, page);

		if (p)
			return p->word;
	}
	return sg_at(&c->vol, page);
}

const void *ck_at(const struct sg_ck *c, u64 off)
{
	return (const u8 *)ck_page(c, off) + (off & (SG_PAGE - 1));
}

static struct ck_page *copy_made(struct sg_ck *c, u64 page)
{
	struct ck_page *p = copy_of(c, page);

	if (p)
		return p;
	p = sg_alloc(sizeof(*p));
	if (!p)
		return NULL;
	p->off = page;
	memcpy(p->word, sg_at(&c->vol, page), SG_PAGE);
	p->next = *bucket_of(c, page);
	*bucket_of(c, page) = p;
	c->ncopies++;
	return p;
}

static int play_area(struct sg_ck *c, u64 off)
{
	const struct sg_area *a = sg_at(&c->vol, off);
	unsigned int log, n = sg_tx_words(a, &log), i;
	struct ck_page *p;

	for (i = 0; i < n; i++) {
		u64 to = sg_load64(&a->word[i].off);

		if (!sg_tx_word_replays(&c->vol, to))
			continue;
		p = copy_made(c, to & ~(SG_PAGE - 1));
		if (!p)
			return -ENOMEM;
		p->word[(to & (SG_PAGE - 1)) / 8] = sg_load64(&a->word[i].val);
	}
	c->res->replayed |= n != 0;
	return 0;
}

int ck_view_recovered(struct sg_ck *c)
{
	unsigned int slot, i;
	int err;

	if (!c->recovering)
		return 0;
	c->copies = sg_alloc(BUCKETS * sizeof(*c->copies));
	if (!c->copies)
		return -ENOMEM;
	for (slot = 0; slot < SG_SLOTS; slot++) {
		if (!ck_slot_taken(c, slot))
			continue;
		for (i = 0; i < c->vol.sb.areas; i++) {
			err = play_area(c, sg_area_off(&c->vol, slot, i));
			if (err)
				return err;
		}
	}
	return 0;
}

void ck_view_free(struct sg_ck *c)
{
	unsigned int i;

	for (i = 0; c->copies && i < BUCKETS; i++) {
		while (c->copies[i]) {
			struct ck_page *p = c->copies[i];

			c->copies[i] = p->next;
			sg_free(p);
		}
	}
	sg_free(c->copies);
	c->copies = NULL;
	c->ncopies = 0;
}

bool ck_is_ours(struct sg_ck *c)
{
	if (!c->dead && c->vol.slot >= 0 && sg_is_silenced(&c->vol))
		c->dead = true;
	return !c->dead;
}

/*
 * Stores a repair. A checker that was stopped for some seconds may have been fenced. Other systems
 * may then use the volume, and the checker's findings are old. So the checker loads the word, then
 * checks its own slot, then swaps the word. The swap fails if another system has stored the word
 * since the load. While the checker owns its slot, a swap fails only because a joiner changes a
 * counter in the hot page before the joiner stops. In this case the checker swaps again. The next
 * pass finds any word that was not stored.
 */
void ck_set(struct sg_ck *c, u64 off, u64 val)
{
	u64 *p = sg_at(&c->vol, off);
	unsigned int turn;

	SG_ASSERT(!c->looking);
	for (turn = 0; turn < SWAPS; turn++) {
		u64 was = sg_load64(p);

		sg_acquire_fence();
		if (!ck_is_ours(c))
			return;
		if (sg_cas64(p, was, val) == was) {
			sg_wb(p, 8);
			return;
		}
	}
}

void ck_zero(struct sg_ck *c, u64 off, u64 len)
{
	u64 i;

	for (i = 0; i < len; i += 8)
		ck_set(c, off + i, 0);
}
