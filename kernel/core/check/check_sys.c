// SPDX-License-Identifier: GPL-2.0
/*
 * System inodes: the file of inode records, and the other system files.
 *
 * The words that locate their pages exist twice (struct sg_sys_copy), because nothing else names
 * those pages. The copy has a checksum, and one transaction changes both. So if they differ, and
 * the copy leads to valid contents of that system inode, the copy is right. The survey of a table
 * that is not trusted yet claims nothing and repairs nothing.
 */
#include "check.h"

/* --- survey of a table ---------------------------------------------------------------------- */

/**
 * struct survey - the pages that a root word leads to, read as an inode file.
 * @used, @free, @bad: numbers of records. @end: file page after the last one. @left: number of
 *   pages that may still be read.
 * @rooted: the first page begins like that of an inode file.
 */
struct survey {
	u64 used, free, bad;
	u64 end, left;
	bool rooted;
};

static bool all_zero(const u64 *w, unsigned int n)
{
	while (n && !sg_load64(w))
		w++, n--;
	return !n;
}

/* Checks a record as far as possible without other records. */
static bool record_sane(const struct sg_ck *c, const struct sg_inode *in)
{
	u64 mode = sg_load64(&in->mode), table = sg_load64(&in->table), off;
	u64 xattr = sg_load64(&in->xattr);
	u64 deferred = sg_load64(&in->deferred_next);

	if (sg_load64(&in->project) ||
	    (deferred && deferred != SG_DEFERRED_LINK(SG_DEFERRED_LINK_INO(deferred))) ||
	    sg_load64(&in->replacing) & ~SG_LOCK_BITS ||
	    (u32)(sg_load64(&in->genflags) >> 32) & ~SG_FL_KNOWN ||
	    sg_load64(&in->next_free) > SG_INO_MAX)
		return false;
	if (!mode)
		return true;
	if (!ck_type_known(mode) || sg_load64(&in->size) > SG_FILE_MAX ||
	    (xattr && !sg_data_page(&c->vol, xattr)))
		return false;
	return !sg_is_reg(mode) || sg_root_kind(&c->vol, table, &off) != SG_ENTRY_BAD;
}

static bool begins_inode_file(const struct sg_inode *in)
{
	return all_zero((const u64 *)in, SG_INODE_SIZE / 8) &&
	       sg_is_dir(sg_load64(&in[SG_INO_ROOT].mode)) &&
	       sg_load64(&in[SG_INO_ROOT].special) == SG_INO_ROOT;
}

static void survey_page(struct sg_ck *c, struct survey *s, u64 page, u64 off)
{
	u8 kind[SG_INODES_PER_PAGE] = { CK_SEEN_NONE };
	const struct sg_inode *in;
	unsigned int i;

	s->end = SG_MAX(s->end, page + 1);
	if (sg_is_lost(&c->vol, off))
		return;
	in = ck_page(c, off);
	if (!page)
		s->rooted = begins_inode_file(in);
	for (i = 0; i < SG_INODES_PER_PAGE; i++) {
		if (!record_sane(c, &in[i]))
			kind[i] = CK_SEEN_BAD;
		else if (sg_load64(&in[i].mode))
			kind[i] = CK_SEEN_USED;
		else if (!all_zero((const u64 *)&in[i], SG_INODE_SIZE / 8))
			kind[i] = CK_SEEN_FREE;
		s->bad += kind[i] == CK_SEEN_BAD;
		s->used += kind[i] == CK_SEEN_USED;
		s->free += kind[i] == CK_SEEN_FREE;
	}
	if (c->image)
		ck_image_survey(c, off, kind, !page && s->rooted);
}

/*
 * Surveys a table. Recurses once per level. The recursion may reach a page twice, so @left bounds
 * it.
 */
static void survey_table(struct sg_ck *c, struct survey *s, u64 table, unsigned int level, u64 page)
{
	const u64 *t = ck_page(c, table);
	u64 off = 0, i, k;

	if (c->image)
		ck_image_table(c, table, level, false);
	for (i = 0; i < SG_TABLE_ENTRIES; i++) {
		u64 at = page + i * sg_level_pages(level);
		enum sg_entry kind = sg_entry_kind(&c->vol, sg_load64(&t[i]), level, &off);
		u64 pages = kind == SG_ENTRY_LEAF ? sg_level_pages(level) : 1;

		if (kind == SG_ENTRY_NONE)
			continue;
		if (kind == SG_ENTRY_BAD || pages > s->left) {
			s->bad += SG_INODES_PER_PAGE;
			continue;
		}
		s->left -= pages;
		if (kind == SG_ENTRY_TABLE)
			survey_table(c, s, off, level - 1, at);
		else
			for (k = 0; k < pages; k++)
				survey_page(c, s, at + k, off + k * SG_PAGE);
	}
}

static struct survey surveyed(struct sg_ck *c, u64 root)
{
	struct survey s = { .left = sg_size(&c->vol) >> SG_PAGE_SHIFT };
	u64 off = 0;

	switch (sg_root_kind(&c->vol, root, &off)) {
	case SG_ENTRY_TABLE:
		survey_table(c, &s, off, SG_ROOT_HEIGHT(root), 0);
		break;
	case SG_ENTRY_LEAF:
		survey_page(c, &s, 0, off);
		break;
	default:
		break;
	}
	return s;
}

/* Reports whether the pages have inode records, most of them valid. */
static bool mostly_records(const struct survey *s)
{
	return s->used && s->bad <= (s->used + s->free) / 2;
}

/* --- choose a root word --------------------------------------------------------------------- */

static u64 records_off(unsigned int which)
{
	return which == SG_SYS_INODES ? SG_HOT(inodes) :
	       sg_sys_ref(which).off + offsetof(struct sg_inode, size);
}

/*
 * Reports whether this word leads to valid contents of a system inode. A word without a checksum
 * (not @vouched) must also look like the inode file's root, and not like another table of records.
 */
static bool leads_somewhere(struct sg_ck *c, unsigned int which, u64 root, bool vouched)
{
	struct survey s;
	u64 off;

	if (which != SG_SYS_INODES)
		return sg_root_kind(&c->vol, root, &off) != SG_ENTRY_BAD;
	s = surveyed(c, root);
	return mostly_records(&s) &&
	       (vouched || s.rooted ||
		s.end * SG_INODES_PER_PAGE == ck_get(c, records_off(which)));
}

/*
 * Reports whether @old is the first part of the table that @root names: a table grows at its top.
 */
static bool grew_from(const struct sg_ck *c, u64 root, u64 old)
{
	unsigned int level = SG_ROOT_HEIGHT(root), want = SG_ROOT_HEIGHT(old);
	u64 off, old_off;

	if (sg_root_kind(&c->vol, root, &off) != SG_ENTRY_TABLE ||
	    sg_root_kind(&c->vol, old, &old_off) == SG_ENTRY_BAD || !old)
		return false;
	for (; level > want; level--) {
		enum sg_entry kind = sg_entry_kind(&c->vol, ck_get(c, off), level, &off);

		if (kind != (level > 1 ? SG_ENTRY_TABLE : SG_ENTRY_LEAF))
			return false;
	}
	return level == want && off == old_off;
}

static bool copy_valid(const struct sg_ck *c, unsigned int which)
{
	u64 at = sg_sys_copy_off(&c->vol, which);

	return ck_get(c, at + offsetof(struct sg_sys_copy, check)) ==
	       sg_sys_check(which, ck_get(c, at + offsetof(struct sg_sys_copy, table)),
			    ck_get(c, at + offsetof(struct sg_sys_copy, records)));
}

/*
 * Returns the offset of the root word to use. This is the inode's own word, restored if possible;
 * until then it is the copy's word. Returns 0 if both are lost.
 */
static u64 root_word(struct sg_ck *c, unsigned int which)
{
	u64 own = sg_sys_ref(which).off + offsetof(struct sg_inode, table);
	u64 copy = sg_sys_copy_off(&c->vol, which) + offsetof(struct sg_sys_copy, table);
	u64 said = ck_get(c, own), was = ck_get(c, copy);
	bool valid = copy_valid(c, which), alone;

	if ((valid && said == was) || (valid && grew_from(c, said, was)))
		return own;
	alone = leads_somewhere(c, which, said, false);
	if (valid && leads_somewhere(c, which, was, true)) {
		if (!ck_found(c, alone ? CK_ASK : CK_SAFE, 0, own,
			      "system inode %u: its root word and the copy differ", which))
			return copy;
		ck_set(c, own, was);
		sg_fence();
		return own;
	}
	return alone ? own : 0;
}

/* --- the inode file's pages ----------------------------------------------------------------- */

/* Makes room for page @page in the list of the file's pages. */
static bool ipage_room(struct sg_ck *c, u64 page)
{
	u64 room = c->ipages ? c->ipages : 64;
	u64 *grown;

	if (page < c->ipages)
		return true;
	while (room <= page)
		room *= 2;
	grown = sg_alloc(room * sizeof(*grown));
	if (!grown) {
		c->no_memory = true;
		return false;
	}
	if (c->ipage)
		memcpy(grown, c->ipage, c->ipages * sizeof(*grown));
	sg_free(c->ipage);
	c->ipage = grown;
	c->ipages = room;
	return true;
}

static void inode_leaf(struct sg_ck *c, void *ctx, u64 page, u64 off, u64 pages)
{
	u64 i;

	(void)ctx;
	for (i = 0; i < pages && ipage_room(c, page + i); i++) {
		c->ipage[page + i] = off + i * SG_PAGE;
		if (c->image)
			ck_image_records(c, off + i * SG_PAGE);
	}
	c->inodes = SG_MAX(c->inodes, (page + pages) * SG_INODES_PER_PAGE);
}

/* Handles lost records after the last page that still exists, up to the number in the copy. */
static void lost_end(struct sg_ck *c, u64 root)
{
	u64 at = sg_sys_copy_off(&c->vol, SG_SYS_INODES);
	u64 said = ck_get(c, at + offsetof(struct sg_sys_copy, records));
	u64 pages = said / SG_INODES_PER_PAGE;

	if (!c->inodes || said <= c->inodes || !copy_valid(c, SG_SYS_INODES) ||
	    root != ck_get(c, at + offsetof(struct sg_sys_copy, table)) ||
	    said % SG_INODES_PER_PAGE || pages > sg_size(&c->vol) >> SG_PAGE_SHIFT ||
	    pages > sg_level_pages(SG_ROOT_HEIGHT(root) + 1) || !ipage_room(c, pages - 1))
		return;
	c->inodes = said;
}

static void count_records(struct sg_ck *c)
{
	u64 said = ck_get(c, SG_HOT(inodes));

	if (said != c->inodes &&
	    ck_found(c, CK_ASK, 0, SG_HOT(inodes), "%llu inode records are counted, there are %llu",
		     CK_U(said), CK_U(c->inodes)))
		ck_set(c, SG_HOT(inodes), c->inodes);
}

/* Replaces a lost page by a page of free records. The inodes in it are lost. */
static void note_hole(struct sg_ck *c, u64 page)
{
	u64 ino = page * SG_INODES_PER_PAGE, i;

	for (i = 0; i < SG_INODES_PER_PAGE; i++)
		c->state[ino + i] = CK_MISSING;
	if (ck_found(c, CK_ASK, ino, 0, "inodes %llu to %llu are lost", CK_U(ino),
		     CK_U(ino + SG_INODES_PER_PAGE - 1)))
		ck_note(c, &c->holes, page, 0);
}

/* --- all system inodes ---------------------------------------------------------------------- */

/* Checks fields that are equal in all system inodes; the engine reads them when it fills a hole. */
static void check_constants(struct sg_ck *c, unsigned int which)
{
	const struct sg_iref sys = sg_sys_ref(which);
	u64 mode = 1ULL << 32 | SG_S_IFREG;

	ck_lock(c, 0, SG_IOFF(&sys, lock));
	if (ck_get(c, SG_IOFF(&sys, mode)) != mode &&
	    ck_found(c, CK_SAFE, 0, SG_IOFF(&sys, mode), "system inode %u has mode 0%llo", which,
		     CK_U(ck_get(c, SG_IOFF(&sys, mode)))))
		ck_set(c, SG_IOFF(&sys, mode), mode);
	if (ck_get(c, SG_IOFF(&sys, genflags)) &&
	    ck_found(c, CK_SAFE, 0, SG_IOFF(&sys, genflags), "system inode %u has flags", which))
		ck_set(c, SG_IOFF(&sys, genflags), 0);
}

/* Checks the size of all system inodes except the inode file, whose records can be counted. */
static void check_size(struct sg_ck *c, unsigned int which)
{
	u64 at = sg_sys_copy_off(&c->vol, which) + offsetof(struct sg_sys_copy, records);

	if (copy_valid(c, which) && ck_get(c, at) != ck_get(c, records_off(which)) &&
	    ck_found(c, CK_SAFE, 0, records_off(which),
		     "system inode %u: its size and the copy differ", which))
		ck_set(c, records_off(which), ck_get(c, at));
}

/* Checks a copy, and repairs it by three stores; the last word makes the others valid. */
static void check_copy(struct sg_ck *c, unsigned int which)
{
	u64 at = sg_sys_copy_off(&c->vol, which);
	u64 records = which == SG_SYS_INODES ? c->inodes : ck_get(c, records_off(which));
	u64 root = ck_get(c, sg_sys_ref(which).off + offsetof(struct sg_inode, table));
	u64 want[] = { root, records, sg_sys_check(which, root, records) };
	unsigned int i;

	if (!memcmp(ck_at(c, at), want, sizeof(want)) ||
	    !ck_found(c, CK_SAFE, 0, at, "the copy of system inode %u's root word is damaged or old",
		      which))
		return;
	for (i = 0; i < SG_ARRAY_SIZE(want); i++)
		ck_set(c, at + 8 * i, want[i]);
	sg_fence();
}

/*
 * Returns the largest number of pages that the file can span. A hash determines the places of locks
 * and semaphores, so these files consist mostly of holes.
 */
static u64 most_pages(const struct sg_ck *c, unsigned int which)
{
	switch (which) {
	case SG_SYS_LOCKS:
		return SG_USERLOCK_CHAINS * SG_USERLOCK_CHAIN_PAGES;
	case SG_SYS_SEMS:
		return SG_SEM_PAGES;
	default:
		return sg_size(&c->vol) >> SG_PAGE_SHIFT;
	}
}

static ck_leaf leaf_of(unsigned int which)
{
	static const ck_leaf leaf[SG_SYS_COUNT] = {
		[SG_SYS_INODES] = inode_leaf,
		[SG_SYS_LOCKS] = ck_userlocks,
		[SG_SYS_SEMS] = ck_sems,
	};

	return leaf[which];
}

static void sys_file(struct sg_ck *c, unsigned int which)
{
	u64 own = sg_sys_ref(which).off + offsetof(struct sg_inode, table);
	u64 blocks = sg_sys_ref(which).off + offsetof(struct sg_inode, blocks);
	u64 root = root_word(c, which);
	struct ck_tree t;

	check_constants(c, which);
	if (!root && which == SG_SYS_INODES)
		return;		/* check_root() reports it */
	ck_table(c, 0, root ? root : own, most_pages(c, which), &t, leaf_of(which), NULL);
	if (which == SG_SYS_INODES) {
		lost_end(c, ck_get(c, root));
		count_records(c);
	} else {
		check_size(c, which);
	}
	if (ck_get(c, blocks) != t.pages &&
	    ck_found(c, CK_SAFE, 0, blocks, "system inode %u counts %llu pages, has %llu", which,
		     CK_U(ck_get(c, blocks)), CK_U(t.pages)))
		ck_set(c, blocks, t.pages);
	/* otherwise the next pass restores it, or it cannot be restored */
	if (root == own || !root)
		check_copy(c, which);
}

int ck_inode_file(struct sg_ck *c)
{
	unsigned int i;
	u64 page;

	for (i = 0; i < SG_SYS_COUNT; i++)
		sys_file(c, i);
	c->state = sg_alloc((c->inodes + 1) * sizeof(*c->state));
	c->links = sg_alloc((c->inodes + 1) * sizeof(*c->links));
	c->parent = sg_alloc((c->inodes + 1) * sizeof(*c->parent));
	if (!c->state || !c->links || !c->parent || c->no_memory)
		return -ENOMEM;
	for (page = 0; page < c->inodes / SG_INODES_PER_PAGE; page++)
		if (!c->ipage[page])
			note_hole(c, page);
	return 0;
}

void ck_inode_free_arrays(struct sg_ck *c)
{
	sg_free(c->ipage);
	sg_free(c->state);
	sg_free(c->links);
	sg_free(c->parent);
	c->ipage = NULL;
	c->state = NULL;
	c->links = NULL;
	c->parent = NULL;
	c->inodes = 0;
	c->ipages = 0;
}
