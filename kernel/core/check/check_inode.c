// SPDX-License-Identifier: GPL-2.0
/* Inode records: their contents, and the lists of free records. */
#include "check.h"

/* --- find ----------------------------------------------------------------------------------- */

u64 ck_inode_off(const struct sg_ck *c, u64 ino)
{
	if (ino >= c->inodes)
		return 0;
	return c->ipage[ino / SG_INODES_PER_PAGE] + ino % SG_INODES_PER_PAGE * SG_INODE_SIZE;
}

const struct sg_inode *ck_inode(const struct sg_ck *c, u64 ino)
{
	return ck_at(c, ck_inode_off(c, ino));
}

/* --- records ------------------------------------------------------------------------------- */

bool ck_type_known(u64 mode)
{
	switch (sg_mode(mode) & SG_S_IFMT) {
	case SG_S_IFREG: case SG_S_IFDIR: case SG_S_IFLNK: case SG_S_IFCHR:
	case SG_S_IFBLK: case SG_S_IFIFO: case SG_S_IFSOCK:
		return !(sg_mode(mode) & ~(SG_S_IFMT | 07777u));
	}
	return false;
}

/*
 * Frees the record. The generation grows by 1, so that no system confuses the next file with this
 * one. Its link in a list of deferred inodes is kept, too, because other records may follow it.
 * Neither word becomes 0 meanwhile, and the mode is cleared last. So after an interruption the
 * record either still has no type, or is free and complete.
 */
void ck_clear_inode(struct sg_ck *c, u64 ino)
{
	u64 off = ck_inode_off(c, ino), mode = ck_ifield(c, ino, mode), at;
	u64 genflags = ck_ifield(c, ino, genflags), deferred = ck_ifield(c, ino, deferred_next);

	for (at = off; at < off + SG_INODE_SIZE; at += 8)
		if (at != mode && at != genflags && at != deferred)
			ck_set(c, at, 0);
	ck_set(c, genflags, (u32)ck_get(c, genflags) + 1);
	sg_fence();
	ck_set(c, mode, 0);
	c->state[ino] = 0;
	c->relist = true;
}

static void clear_flags(struct sg_ck *c, u64 ino, u64 flags)
{
	u64 at = ck_ifield(c, ino, genflags);

	ck_set(c, at, ck_get(c, at) & ~(flags << 32));
}

#define SEAL		(SG_FL_SEALED | SG_FL_DIGEST)

static void check_seal(struct sg_ck *c, u64 ino, const struct sg_inode *in)
{
	u64 flags = sg_load64(&in->genflags) >> 32, at = ck_ifield(c, ino, genflags);

	if (!(flags & SEAL))
		return;
	if (!sg_is_reg(sg_load64(&in->mode))) {
		if (ck_found(c, CK_ASK, ino, at, "is sealed, but is not a file"))
			clear_flags(c, ino, SEAL);
	} else if (!(flags & SG_FL_SEALED)) {
		if (ck_found(c, CK_ASK, ino, at, "has the digest of a seal, but is not sealed"))
			clear_flags(c, ino, SEAL);
	} else if (!(c->vol.sb.ro_compat & SG_RO_COMPAT_SEALS)) {
		if (ck_found(c, CK_ASK, ino, at, "is sealed, on a volume without sealed files"))
			clear_flags(c, ino, SEAL);
	}
}

static void check_flags(struct sg_ck *c, u64 ino, const struct sg_inode *in)
{
	u64 gf = sg_load64(&in->genflags), known = (u64)SG_FL_KNOWN << 32 | 0xffffffffu;
	u64 seq = sg_load64(&in->seq);

	if (gf & ~known && ck_found(c, CK_ASK, ino, ck_ifield(c, ino, genflags),
				    "unknown flags 0x%x", (u32)(gf >> 32) & ~SG_FL_KNOWN))
		ck_set(c, ck_ifield(c, ino, genflags), gf & known);
	if (seq & 1 && ck_found(c, CK_SAFE, ino, ck_ifield(c, ino, seq),
				"is marked as being changed, but no system changes it"))
		ck_set(c, ck_ifield(c, ino, seq), seq + 1);
}

/*
 * Makes the root inode a directory, although its mode has another type. All other fields are kept,
 * and checked as fields of a directory. The function drops unusual permissions, because they are in
 * the damaged word.
 */
static void root_restored(struct sg_ck *c, u64 ino, u64 mode)
{
	if (ino == SG_INO_ROOT && !sg_is_dir(mode) &&
	    ck_found(c, CK_ASK, ino, ck_ifield(c, ino, mode), "the root is not a directory"))
		ck_set(c, ck_ifield(c, ino, mode),
		       2ULL << 32 | SG_S_IFDIR | (mode & 0755 ? mode & 0755 : 0755));
}

static void check_record(struct sg_ck *c, u64 ino)
{
	const struct sg_inode *in = ck_inode(c, ino);
	u64 mode;

	ck_lock(c, ino, ck_ifield(c, ino, lock));
	root_restored(c, ino, sg_load64(&in->mode));
	mode = sg_load64(&in->mode);
	if (!mode)
		return;
	if (!ck_type_known(mode)) {
		c->state[ino] = CK_TYPELESS;
		c->hold_pages = true;
		return;
	}
	c->state[ino] = CK_USED | (sg_is_dir(mode) ? CK_DIR : 0);
	if (sg_is_dir(mode))
		c->res->directories++;
	else if (sg_is_reg(mode))
		c->res->files++;
	else
		c->res->others++;
	check_flags(c, ino, in);
	check_seal(c, ino, in);
}

void ck_records(struct sg_ck *c)
{
	u64 ino, i;

	for (ino = 1; ino < c->inodes; ino++) {
		if (!(c->state[ino] & CK_MISSING))
			check_record(c, ino);
		if (!(ino & 0xffff))
			ck_progress(c, "inodes", ino, c->inodes);
	}
	for (i = 0; i < c->cut.n; i++)	/* noted by the previous pass */
		if (c->cut.item[i].ino < c->inodes)
			c->state[c->cut.item[i].ino] |= CK_CUT;
	c->cut.n = 0;
}

/* --- contents of files --------------------------------------------------------------------- */

void ck_blocks(struct sg_ck *c, u64 ino, u64 pages)
{
	u64 off = ck_ifield(c, ino, blocks), said = ck_get(c, off);

	if (said != pages && ck_found(c, CK_SAFE, ino, off, "counts %llu pages, has %llu",
				      CK_U(said), CK_U(pages)))
		ck_set(c, off, pages);
}

/* Pages of a sealed file: @pages are mapped in front of page @end. */
struct inside {
	u64 end, pages;
};

static void count_inside(struct sg_ck *c, void *ctx, u64 page, u64 off, u64 pages)
{
	struct inside *in = ctx;

	(void)c;
	(void)off;
	if (page < in->end)
		in->pages += SG_MIN(pages, in->end - page);
}

static u64 check_regular(struct sg_ck *c, u64 ino, const struct sg_inode *in)
{
	u64 flags = sg_load64(&in->genflags) >> 32, size;
	struct inside in_size = {};
	struct ck_tree t;

	if (sg_load64(&in->size) > SG_FILE_MAX &&
	    ck_found(c, CK_ASK, ino, ck_ifield(c, ino, size),
		     "is %llu bytes long: more than the maximum",
		     CK_U(sg_load64(&in->size))))
		ck_set(c, ck_ifield(c, ino, size), SG_FILE_MAX);
	size = sg_load64(&in->size);
	in_size.end = sg_pages_of(SG_MIN(size, SG_FILE_MAX));
	ck_table(c, ino, ck_ifield(c, ino, table), SG_FILE_MAX >> SG_PAGE_SHIFT, &t,
		 flags & SG_FL_SEALED ? count_inside : NULL, &in_size);
	if (flags & SG_FL_SEALED && in_size.pages < in_size.end &&
	    ck_found(c, CK_ASK, ino, ck_ifield(c, ino, genflags), "is sealed, but has holes"))
		clear_flags(c, ino, SEAL);
	if (flags & SG_FL_CUTTING)
		ck_note(c, &c->settle, ino, 0); /* see ck_tree(); not if a ledger names the inode */
	return t.pages;
}

/*
 * Readers reject a target that contains a NUL (readlink.c), so such a target counts as lost, too.
 */
static bool target_whole(const struct sg_ck *c, u64 ino, u64 size, u64 page)
{
	u64 at = page ? page : ck_ifield(c, ino, tail);

	return !memchr(ck_at(c, at), 0, size);
}

/* Keeps a link with a lost target as a link, so that its owner can see and remove it. */
static u64 check_symlink(struct sg_ck *c, u64 ino, const struct sg_inode *in)
{
	u64 size = sg_load64(&in->size), page = sg_load64(&in->table);
	bool inlined = size < sizeof(in->tail), ok = size && size <= SG_SYMLINK_MAX;

	if (ok && !inlined)
		ok = sg_data_page(&c->vol, page) && target_whole(c, ino, size, page) &&
		     ck_claim(c, page, 1);
	else if (ok)
		ok = !page && target_whole(c, ino, size, page);
	if (c->image && !inlined && size <= SG_SYMLINK_MAX && sg_data_page(&c->vol, page))
		ck_image_target(c, page, size, ok);
	if (ok)
		return inlined ? 0 : 1;
	if (ck_found(c, CK_ASK, ino, ck_ifield(c, ino, table), "the link's target is lost")) {
		ck_set(c, ck_ifield(c, ino, table), 0);
		ck_zero(c, ck_ifield(c, ino, tail), sizeof(in->tail));
		ck_set(c, ck_ifield(c, ino, tail), '?');
		ck_set(c, ck_ifield(c, ino, size), 1);
	}
	return 0;
}

static u64 check_special(struct sg_ck *c, u64 ino, const struct sg_inode *in)
{
	if ((sg_load64(&in->table) || sg_load64(&in->size)) &&
	    ck_found(c, CK_ASK, ino, ck_ifield(c, ino, table), "has data, but is not a file")) {
		ck_set(c, ck_ifield(c, ino, table), 0);
		ck_set(c, ck_ifield(c, ino, size), 0);
	}
	return 0;
}

/*
 * Clears a record whose type no name can restore, not even a name that the next pass reads.
 */
static void clear_typeless(struct sg_ck *c, u64 ino)
{
	if (ck_found(c, CK_ASK, ino, ck_ifield(c, ino, mode), "has no known type (mode 0%o)",
		     sg_mode(ck_get(c, ck_ifield(c, ino, mode)))) && !c->rebuild.n && !c->retyped)
		ck_clear_inode(c, ino);
}

void ck_files(struct sg_ck *c)
{
	u64 ino, pages;

	for (ino = 1; ino < c->inodes; ino++) {
		const struct sg_inode *in;
		u64 mode;

		if (!(ino & 0xfff))
			ck_progress(c, "files", ino, c->inodes);
		if (c->state[ino] & CK_TYPELESS)
			clear_typeless(c, ino);
		if (!(c->state[ino] & CK_USED) || c->state[ino] & CK_DIR)
			continue;
		in = ck_inode(c, ino);
		mode = sg_load64(&in->mode);
		if (sg_is_reg(mode))
			pages = check_regular(c, ino, in);
		else if (sg_is_lnk(mode))
			pages = check_symlink(c, ino, in);
		else
			pages = check_special(c, ino, in);
		ck_blocks(c, ino, pages + ck_xattr(c, ino));
	}
}

/* --- free records -------------------------------------------------------------------------- */

/* Walks a list. Returns false if the list has a record that is not free, or the same record twice.
 * */
static bool follow(struct sg_ck *c, u64 ino)
{
	while (ino) {
		if (ino >= c->inodes || c->state[ino])
			return false;
		c->state[ino] = CK_LISTED;
		ino = ck_get(c, ck_ifield(c, ino, next_free));
	}
	return true;
}

static u64 list_off(const struct sg_ck *c, unsigned int slot, unsigned int area)
{
	return sg_area_off(&c->vol, slot, area) + offsetof(struct sg_area, free_ino);
}

/*
 * Puts all free records on one list. While the records are linked again, no head leads to them.
 * Otherwise each old head would lead into the new chain, and two systems would take the same
 * record. So after an interruption some records may be on no list, which is harmless, but none is
 * on two lists.
 */
static void make_list(struct sg_ck *c)
{
	u64 ino, first = 0;
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < c->vol.sb.areas; i++)
			if (ck_get(c, list_off(c, slot, i)))
				ck_set(c, list_off(c, slot, i), 0);
	sg_fence();
	for (ino = c->inodes; ino-- > 1; ) {
		if (c->state[ino] & ~CK_LISTED)
			continue;
		ck_set(c, ck_ifield(c, ino, next_free), first);
		first = ino;
	}
	sg_fence();
	ck_set(c, list_off(c, 0, 0), first);
	sg_fence();
}

static void used_counter(struct sg_ck *c, u64 want)
{
	u64 have = 0, off;
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < c->vol.sb.areas; i++)
			have += ck_get(c, sg_area_off(&c->vol, slot, i) +
				       offsetof(struct sg_area, used_inodes));
	c->said_used = have;
	if (have == want || !c->inodes)
		return;
	off = sg_area_off(&c->vol, 0, 0) + offsetof(struct sg_area, used_inodes);
	if (ck_found(c, CK_SAFE, 0, off, "counters say %llu used inodes, there are %llu",
		     CK_U(have), CK_U(want)))
		ck_set(c, off, ck_get(c, off) + want - have);
}

void ck_free_lists(struct sg_ck *c)
{
	u64 ino, used = 0, unlisted = 0;
	unsigned int slot, i;
	bool relist = c->relist;

	/* the inodes still exist somewhere, so the checker changes no word that leads to them */
	if (!c->inodes) {
		used_counter(c, 0);
		return;
	}
	for (slot = 0; slot < SG_SLOTS && !relist; slot++)
		for (i = 0; i < c->vol.sb.areas; i++)
			if (!follow(c, ck_get(c, list_off(c, slot, i))))
				relist |= ck_found(c, ck_giving(c), 0, list_off(c, slot, i),
						   "a list of free inodes is broken");
	for (ino = 1; ino < c->inodes; ino++) {
		used += (c->state[ino] & (CK_USED | CK_TYPELESS)) != 0;
		unlisted += !c->state[ino];
	}
	c->unlisted = unlisted;
	if (unlisted && !relist)
		relist = ck_found(c, ck_giving(c), 0, 0, "%llu free inodes are on no list",
				  CK_U(unlisted));
	if (relist)
		make_list(c);
	c->relist = false;
	used_counter(c, used);
}
