// SPDX-License-Identifier: GPL-2.0
/*
 * Objects: finding, creating and removing them.
 *
 * These functions need the lock of the system inode. Callers that lock and unlock objects do not
 * need that lock: they have the object open, and an open object does not move. One transaction
 * creates or removes an object with its pages (D8).
 */
#include "sem/sem.h"

/* --- pages ------------------------------------------------------------------------------------ */

u64 sg_sem_page_at(const struct sg_vol *vol, u64 page, int *err)
{
	const struct sg_iref file = sg_sem_file();
	struct sg_run run;

	*err = sg_walk(vol, &file, page, 1, &run);
	return *err ? 0 : run.off;
}

u64 sg_sem_hash(const struct sg_vol *vol, const void *name, u32 len)
{
	u64 seed = vol->sb.hash_seed[0];
	u32 low = sg_crc32c((u32)seed, name, len), high = sg_crc32c((u32)(seed >> 32), name, len);

	return ((u64)high << 32 | low) * 0x9e3779b97f4a7c15ULL ^ low;
}

bool sg_sem_head_known(u64 head)
{
	return SG_SEM_TYPE(head) && SG_SEM_TYPE(head) < SG_SEM_KINDS &&
	       SG_SEM_LIFE(head) < SG_SEM_LIVES &&
	       !(SG_SEM_FLAGS(head) & ~(SG_SEM_FLAGS_KNOWN | SG_SEM_REMOVED));
}

/* --- find ------------------------------------------------------------------------------------- */

static bool has_name(const struct sg_vol *vol, const struct sg_sem_spot *s,
		     const struct sg_sem_search *q)
{
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head));

	return head && !(SG_SEM_FLAGS(head) & SG_SEM_REMOVED) &&
	       sg_get(vol, SG_SEM_FIELD(s, hash)) == q->hash &&
	       sg_get(vol, SG_SEM_FIELD(s, mode)) >> 32 == q->len &&
	       !memcmp(sg_at(vol, SG_SEM_FIELD(s, name)), q->name, q->len);
}

int sg_sem_each_in_page(struct sg_vol *vol, u64 page, sg_sem_on_spot fn, void *ctx)
{
	struct sg_sem_spot s = { .page = page };
	int err = 0;

	for (s.i = 0; s.i < SG_SEM_RECORDS && !err; s.i++) {
		u64 off = sg_sem_page_at(vol, page, &err);	/* @fn may remove the page */

		if (!off)
			break;
		s.off = sg_sem_record_off(off, s.i);
		err = fn(vol, &s, ctx);
	}
	return err;
}

static int search_one(struct sg_vol *vol, const struct sg_sem_spot *s, void *ctx)
{
	struct sg_sem_search *q = ctx;

	if (has_name(vol, s, q)) {
		q->found = *s;
		q->has = true;
		return 1;
	}
	if (!q->has_room && (!sg_get(vol, SG_SEM_FIELD(s, head)) || sg_sem_is_over(vol, s))) {
		q->room = *s;
		q->has_room = true;
	}
	return 0;
}

/* Finds the name, and a possible place for it: an unused record, otherwise a missing page. */
static int search(struct sg_vol *vol, struct sg_sem_search *q)
{
	u64 page = sg_sem_chain(q->hash), hole = 0;
	unsigned int k;
	int err = 0;

	for (k = 0; k < SG_SEM_CHAIN_PAGES && !err; k++, page += SG_SEM_CHAINS) {
		if (sg_sem_page_at(vol, page, &err))
			err = sg_sem_each_in_page(vol, page, search_one, q);
		else if (!err && !q->has_hole)
			hole = page, q->has_hole = true;
	}
	if (!q->has_room && q->has_hole)
		q->room = (struct sg_sem_spot){ .page = hole };
	return err < 0 ? err : 0;
}

int sg_sem_name_fits(const char *name, u32 len)
{
	if (len > SG_SEM_NAME_MAX)
		return -ENAMETOOLONG;
	return len && !memchr(name, '/', len) && !memchr(name, 0, len) ? 0 : -EINVAL;
}

int sg_sem_begin(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_search *q)
{
	const struct sg_iref file = sg_sem_file();
	int err = sg_sem_name_fits(name, len) ?: sg_may_write(vol) ?: sg_ilock(vol, &file);

	if (err)
		return err;
	*q = (struct sg_sem_search){ .name = name, .len = len,
		.hash = sg_sem_hash(vol, name, len) };
	err = sg_may_change(vol, &file) ?: search(vol, q);
	if (err)
		sg_iunlock(vol, &file);
	return err;
}

void sg_sem_end(struct sg_vol *vol)
{
	const struct sg_iref file = sg_sem_file();

	sg_iunlock(vol, &file);
}

/* --- remove ----------------------------------------------------------------------------------- */

/* Prepares a transaction on the file. @tx: a transaction that has just begun. */
static struct sg_tx *of_file(struct sg_tx *tx)
{
	const struct sg_iref file = sg_sem_file();

	sg_tx_inode(tx, &file);
	return tx;
}

struct sg_tx *sg_sem_tx_begin(struct sg_vol *vol, bool try)
{
	struct sg_tx *tx = try ? sg_tx_try(vol) : sg_tx_begin(vol);

	return tx ? of_file(tx) : NULL;
}

int sg_sem_tx_commit(struct sg_tx *tx)
{
	sg_sys_copy(tx, SG_SYS_SEMS);
	return sg_tx_commit(tx);
}

static int sem_table_cut_pages(struct sg_tx *tx, u64 page, u64 pages)
{
	const struct sg_iref file = sg_sem_file();
	u64 next;

	sg_table_cut(tx, &file, page, page + pages, &next);
	if (next < page + pages)
		sg_tx_fail(tx, -ENOSPC);	/* the ledger is full */
	return tx->err;
}

static bool is_alone_in_page(const struct sg_vol *vol, const struct sg_sem_spot *s)
{
	u64 page = s->off & ~(SG_PAGE - 1);
	unsigned int i;

	for (i = 0; i < SG_SEM_RECORDS; i++)
		if (i != s->i && sg_get(vol, sg_sem_record_off(page, i)))
			return false;
	return true;
}

static int destroy_in(struct sg_tx *tx, const struct sg_sem_spot *s)
{
	struct sg_vol *vol = tx->vol;
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head));
	bool alone = is_alone_in_page(vol, s);

	if (alone)
		sem_table_cut_pages(tx, s->page, 1);
	else
		sg_tx_set(tx, SG_SEM_FIELD(s, head), 0);
	if (sg_sem_has_words(SG_SEM_TYPE(head), SG_SEM_FLAGS(head)) ||
	    sg_sem_has_side(SG_SEM_TYPE(head)))
		sem_table_cut_pages(tx, sg_sem_words_page(s->page, s->i), 2);
	return sg_sem_tx_commit(tx);
}

/* Removes an object's name, or makes it valid, by the flag SG_SEM_REMOVED. */
static int sem_table_hide(struct sg_vol *vol, const struct sg_sem_spot *s, bool hide, bool try)
{
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head)), flag = (u64)SG_SEM_REMOVED << 16;
	struct sg_tx *tx = sg_sem_tx_begin(vol, try);

	if (!tx)
		return -EBUSY;
	sg_tx_set(tx, SG_SEM_FIELD(s, head), hide ? head | flag : head & ~flag);
	return sg_sem_tx_commit(tx);
}

/*
 * Removes a ring, whose data needs more than one transaction. The name is removed first, so after a
 * crash in between the object is one that no system needs.
 */
static int destroy(struct sg_vol *vol, const struct sg_sem_spot *s, bool try)
{
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head));
	struct sg_tx *tx;
	int err = 0;

	if (SG_SEM_TYPE(head) == SG_SEM_RING) {
		if (!(SG_SEM_FLAGS(head) & SG_SEM_REMOVED))
			err = sem_table_hide(vol, s, true, try);
		err = err ?: sg_sem_ring_cut(vol, s, try);
		if (err)
			return err;
	}
	tx = sg_sem_tx_begin(vol, try);
	return tx ? destroy_in(tx, s) : -EBUSY;
}

int sg_sem_destroy(struct sg_vol *vol, const struct sg_sem_spot *s)
{
	return destroy(vol, s, false);
}

int sg_sem_destroy_try(struct sg_vol *vol, const struct sg_sem_spot *s)
{
	return destroy(vol, s, true);
}

int sg_sem_unlink(struct sg_vol *vol, const char *name, u32 len, u64 serial)
{
	struct sg_sem_search q;
	int err = sg_sem_begin(vol, name, len, &q);

	if (err)
		return err;
	if (!q.has || sg_sem_is_over(vol, &q.found))
		err = -ENOENT;
	else if (!sg_sem_is_meant(vol, &q.found, serial))
		err = -ESTALE;
	else if (sg_sem_is_used(vol, &q.found))
		err = sem_table_hide(vol, &q.found, true, false);
	else
		err = sg_sem_destroy(vol, &q.found);
	sg_sem_end(vol);
	return err;
}

/* --- create ----------------------------------------------------------------------------------- */

/** struct made - an object being made. @fresh: its record's page is also new. */
struct made {
	struct sg_tx *tx;
	struct sg_sem_spot s;
	bool fresh;
};

static int fresh_page(struct sg_tx *tx, u64 page, u64 *off)
{
	const struct sg_iref file = sg_sem_file();

	if (sg_take_page(tx, SG_USE_META, off))
		return tx->err;
	sg_fresh_zero(tx->vol, *off, SG_PAGE);
	return sg_table_add(tx, &file, page, *off, 1);
}

/*
 * Makes an object's page. Damage may have left a page there without an object, which is reused,
 * since no system reads it.
 */
static int empty_page(struct sg_tx *tx, u64 page, u64 *off)
{
	int err;

	*off = sg_sem_page_at(tx->vol, page, &err);
	if (err) {
		sg_tx_fail(tx, err);
		return tx->err;
	}
	if (!*off)
		return fresh_page(tx, page, off);
	sg_fresh_zero(tx->vol, *off, SG_PAGE);
	return 0;
}

static void sem_table_put(const struct made *m, u64 off, u64 val)
{
	if (m->fresh)
		sg_fresh_set(m->tx->vol, off, val);
	else
		sg_tx_set(m->tx, off, val);
}

static void put_name(const struct made *m, const char *name, u32 len)
{
	u64 words[sizeof(((struct sg_sem_record *)0)->name) / 8] = { 0 };
	unsigned int i;

	memcpy(words, name, len);
	for (i = 0; i < (len + 7) / 8; i++)
		sem_table_put(m, SG_SEM_FIELD(&m->s, name) + 8 * i, words[i]);
}

static void put_record(const struct made *m, const struct sg_sem_search *q,
		       const struct sg_sem_new *new, u32 serial)
{
	unsigned int flags = new->flags;
	u64 off;

	for (off = 0; off < offsetof(struct sg_sem_record, name); off += 8)
		if (m->fresh || sg_tx_get(m->tx, m->s.off + off))
			sem_table_put(m, m->s.off + off, 0);
	put_name(m, q->name, q->len);
	sem_table_put(m, SG_SEM_FIELD(&m->s, hash), q->hash);
	sem_table_put(m, SG_SEM_FIELD(&m->s, owner), new->uid | (u64)new->gid << 32);
	sem_table_put(m, SG_SEM_FIELD(&m->s, mode), (new->mode & 07777) | (u64)q->len << 32);
	sem_table_put(m, SG_SEM_FIELD(&m->s, created), (u64)new->now);
	sem_table_put(m, SG_SEM_FIELD(&m->s, initial), new->initial);
	if (!sg_sem_has_words(new->type, new->flags))
		sem_table_put(m, SG_SEM_FIELD(&m->s, words.word),
			      sg_sem_first_word(new->type, new->initial));
	flags |= new->type == SG_SEM_RING ? SG_SEM_REMOVED : 0;	/* until the ring has its data */
	sem_table_put(m, SG_SEM_FIELD(&m->s, head),
		      SG_SEM_HEAD(new->type, new->life, flags, serial));
}

static void put_words(struct sg_tx *tx, const struct sg_sem_spot *s, const struct sg_sem_new *new)
{
	u64 page = sg_sem_words_page(s->page, s->i), off;

	if (sg_sem_has_words(new->type, new->flags) && !empty_page(tx, page, &off)) {
		sg_fresh_set(tx->vol, off, sg_sem_first_word(new->type, new->initial));
		sg_wb(sg_at(tx->vol, off), 8);
	}
	if (sg_sem_has_side(new->type) && !tx->err)
		empty_page(tx, page + 1, &off);
}

static int make_data(struct sg_vol *vol, const struct sg_sem_spot *s, u64 size)
{
	int err = sg_sem_ring_fill(vol, s, size);

	if (!err)
		return sem_table_hide(vol, s, false, false);
	/* if the removal fails, the next system that finds the object tries again */
	sg_sem_destroy(vol, s);
	return err;
}

int sg_sem_make(struct sg_vol *vol, struct sg_sem_search *q, const struct sg_sem_new *new)
{
	const struct sg_iref file = sg_sem_file();
	struct made m = { .s = q->room, .fresh = !q->room.off };
	u64 serial_at = SG_IOFF(&file, special), off;
	u32 serial;
	int err;

	m.tx = sg_sem_tx_begin(vol, false);
	serial = (u32)sg_tx_get(m.tx, serial_at) + 1;
	sg_tx_set(m.tx, serial_at, serial);
	if (m.fresh && !fresh_page(m.tx, m.s.page, &off))
		m.s.off = sg_sem_record_off(off, m.s.i);
	if (!m.tx->err)
		put_words(m.tx, &m.s, new);
	if (!m.tx->err)
		put_record(&m, q, new, serial);
	if (m.fresh && !m.tx->err)
		sg_wb(sg_at(vol, m.s.off), sizeof(struct sg_sem_record));
	q->found = m.s;
	err = sg_sem_tx_commit(m.tx);
	return err || new->type != SG_SEM_RING ? err : make_data(vol, &m.s, new->initial);
}
