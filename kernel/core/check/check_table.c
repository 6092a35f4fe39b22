// SPDX-License-Identifier: GPL-2.0
/*
 * File tables: each entry must name a page or table of this volume that has no other owner.
 *
 * The checker clears an invalid entry, which leaves a hole. If two files have the same page, the
 * first file keeps it, because a copy for the second file would expose bytes of the first.
 */
#include "check.h"

struct walk {
	struct sg_ck *c;
	u64 ino;
	u64 max_pages;
	struct ck_tree *out;
	ck_leaf leaf;
	void *ctx;
};

static void drop_entry(struct walk *w, u64 at)
{
	w->out->bad = true;
	ck_set(w->c, at, 0);
}

static void walk_table(struct walk *w, u64 table, unsigned int level, u64 page);

static void walk_entry(struct walk *w, u64 at, u64 e, unsigned int level, u64 page)
{
	struct sg_ck *c = w->c;
	u64 off = 0, n = sg_level_pages(level);
	enum sg_entry kind = sg_entry_kind(&c->vol, e, level, &off);

	if (kind == SG_ENTRY_NONE)
		return;
	if (kind == SG_ENTRY_BAD ||
	    (kind == SG_ENTRY_LEAF && (n > w->max_pages || page > w->max_pages - n))) {
		if (ck_found(c, CK_ASK, w->ino, at, "page %llu: the table entry %s", CK_U(page),
			     sg_table_lost(&c->vol, e) ? "leads to bad memory" : "is invalid"))
			drop_entry(w, at);
		return;
	}
	/* bad pages of users' files are lost, too, but must not read as zeroes */
	if (!w->ino && kind == SG_ENTRY_LEAF && sg_is_bad(&c->vol, off, n)) {
		if (ck_found(c, CK_ASK, 0, at, "page %llu of a system file is bad memory",
			     CK_U(page)))
			drop_entry(w, at);
		return;
	}
	if (!ck_claim(c, off, kind == SG_ENTRY_LEAF ? n : 1)) {
		if (ck_found(c, CK_ASK, w->ino, at, "page %llu: %s belongs to something else",
			     CK_U(page), kind == SG_ENTRY_LEAF ? "its place" : "its table"))
			drop_entry(w, at);
		return;
	}
	if (kind == SG_ENTRY_TABLE) {
		w->out->pages++;
		walk_table(w, off, level - 1, page);
		return;
	}
	w->out->pages += n;
	w->out->end = SG_MAX(w->out->end, page + n);
	if (w->leaf)
		w->leaf(c, w->ctx, page, off, n);
}

static void walk_table(struct walk *w, u64 table, unsigned int level, u64 page)
{
	const u64 *t = ck_page(w->c, table);
	unsigned int i;

	if (w->c->image)
		ck_image_table(w->c, table, level, true);
	for (i = 0; i < SG_TABLE_ENTRIES; i++) {
		u64 e = sg_load64(&t[i]);

		if (e)
			walk_entry(w, table + 8 * i, e, level, page + i * sg_level_pages(level));
	}
}

void ck_table(struct sg_ck *c, u64 ino, u64 root_off, u64 max_pages, struct ck_tree *out,
	      ck_leaf leaf, void *ctx)
{
	struct walk w = { c, ino, max_pages, out, leaf, ctx };
	u64 word = ck_get(c, root_off), off = 0;
	enum sg_entry kind = sg_root_kind(&c->vol, word, &off);

	bool lost;

	memset(out, 0, sizeof(*out));
	if (kind == SG_ENTRY_NONE)
		return;
	lost = sg_table_lost(&c->vol, word) && (kind == SG_ENTRY_BAD || !ino);
	if (lost || kind == SG_ENTRY_BAD || !ck_claim(c, off, 1)) {
		if (ck_found(c, CK_ASK, ino, root_off, "the root of its table %s",
			     lost ? "is bad memory" :
			     kind == SG_ENTRY_BAD ? "is invalid" : "belongs to something else"))
			drop_entry(&w, root_off);
		return;
	}
	out->pages = 1;
	if (kind == SG_ENTRY_TABLE) {
		walk_table(&w, off, SG_ROOT_HEIGHT(word), 0);
		return;
	}
	out->end = 1;
	if (leaf)
		leaf(c, ctx, 0, off, 1);
}

bool ck_table_deferred(struct sg_ck *c, u64 table, unsigned int level, unsigned int first)
{
	const u64 *t = ck_page(c, table);
	bool ok = true;
	unsigned int i;

	if (c->image)
		ck_image_table(c, table, level, true);
	for (i = first; i < SG_TABLE_ENTRIES && ok; i++) {
		u64 off = 0;

		switch (sg_entry_kind(&c->vol, sg_load64(&t[i]), level, &off)) {
		case SG_ENTRY_NONE:
			break;
		case SG_ENTRY_LEAF:
			ok = ck_claim(c, off, sg_level_pages(level));
			break;
		case SG_ENTRY_TABLE:
			ok = ck_claim(c, off, 1) && ck_table_deferred(c, off, level - 1, 0);
			break;
		case SG_ENTRY_BAD:
			ok = false;
		}
	}
	return ok;
}
