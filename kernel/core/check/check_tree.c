// SPDX-License-Identifier: GPL-2.0
/*
 * Names and their inodes: the link count of every inode in use is the number of its names, every
 * directory has one name, and parents lead to the root. An inode without a name goes to lost+found,
 * unless it has no links. An inode without links lost its last name while it was open, so the
 * checker frees it.
 */
#include "check.h"

/* --- while directories are read ------------------------------------------------------------ */

static u64 type_of(u64 mode)
{
	return (sg_mode(mode) & SG_S_IFMT) >> 12;
}

/* Returns the permissions to trust in a mode whose type is invalid: at most those of the owner. */
static u64 believed(u64 mode, unsigned int type)
{
	if (type == SG_S_IFLNK >> 12)
		return 0777;
	return mode & 0700 ? mode & 0700 : type == SG_S_IFDIR >> 12 ? 0700 : 0600;
}

/* Restores an inode's lost type from the name. */
static bool type_restored(struct sg_ck *c, u64 ino, unsigned int type)
{
	u64 at = ck_ifield(c, ino, mode), mode = ck_get(c, at);
	u64 want = (mode & ~0xffffffffULL) | believed(mode, type) | (u64)type << 12;

	if (!ck_type_known(want) ||
	    !ck_found(c, CK_ASK, ino, at, "its type (mode 0%o) is unknown; its name says 0%o",
		      sg_mode(mode), sg_mode(want)))
		return false;
	ck_set(c, at, want);
	c->state[ino] = CK_USED | (sg_is_dir(want) ? CK_DIR : 0);
	c->retyped |= sg_is_dir(want);
	return true;
}

static bool directory_named(struct sg_ck *c, u64 dir, u64 ino, u64 ref_off)
{
	u64 at = ck_ifield(c, ino, special);

	if (c->state[ino] & CK_NAMED)
		return !ck_found(c, CK_ASK, dir, ref_off, "a second name for directory %llu",
				 CK_U(ino));
	c->state[ino] |= CK_NAMED;
	c->parent[ino] = dir;
	c->links[dir]++;
	if (ck_get(c, at) != dir && ck_found(c, CK_ASK, ino, at, "its parent is %llu instead of %llu",
					     CK_U(dir), CK_U(ck_get(c, at))))
		ck_set(c, at, dir);
	return true;
}

/*
 * Reports whether this directory was removed, with name and links in one transaction. The checker
 * does not check the contents of such a directory.
 */
bool ck_removed_dir(const struct sg_ck *c, u64 ino)
{
	return c->state[ino] & CK_DIR && c->state[ino] & CK_DEFERRED &&
	       !sg_nlink(ck_inode(c, ino)->mode);
}

bool ck_refers(struct sg_ck *c, u64 dir, const struct sg_dirent *d, u64 ref_off)
{
	u64 ino = SG_REF_INO(d->ref), known;
	unsigned int type = SG_REF_TYPE(d->ref);

	if (ino < c->inodes && c->state[ino] & CK_TYPELESS && !type_restored(c, ino, type))
		return true;
	if (ino <= SG_INO_ROOT || ino >= c->inodes || !(c->state[ino] & CK_USED) ||
	    ck_removed_dir(c, ino)) {
		ck_loss_named(c, ino, type);
		return !ck_found(c, CK_ASK, dir, ref_off,
				 "a name refers to inode %llu, which is not in use", CK_U(ino));
	}
	if (c->state[ino] & CK_CUT)
		return false;
	known = type_of(ck_inode(c, ino)->mode);
	if (type != known && ck_found(c, CK_ASK, dir, ref_off,
				      "a name says that inode %llu is of type %u", CK_U(ino), type))
		ck_set(c, ref_off, SG_REF(ino, SG_REF_LEN(d->ref), known));
	if (c->state[ino] & CK_DIR)
		return directory_named(c, dir, ino, ref_off);
	c->links[ino]++;
	return true;
}

/* --- when all directories have been read --------------------------------------------------- */

static void check_links(struct sg_ck *c, u64 ino, u32 want)
{
	u64 at = ck_ifield(c, ino, mode), mode = ck_get(c, at);

	if (sg_nlink(mode) != want &&
	    ck_found(c, ck_giving(c), ino, at, "has %u links, counts %u", want, sg_nlink(mode)))
		ck_set(c, at, (u64)want << 32 | sg_mode(mode));
}

static void check_root(struct sg_ck *c)
{
	u64 ino = SG_INO_ROOT, at;

	if (!c->inodes)
		ck_found(c, CK_NEVER, 0, SG_HOT(sys[SG_SYS_INODES].table),
			 "the inode file is lost: neither its root word nor the copy leads to it");
	if (!c->inodes || c->state[ino] & CK_MISSING) {
		c->hold_pages = true;	/* these pages may be the only remains of the files */
		return;
	}
	if (!(c->state[ino] & CK_DIR))
		return;		/* this has been reported */
	at = ck_ifield(c, ino, special);
	if (ck_get(c, at) != ino && ck_found(c, CK_ASK, ino, at, "the root has a parent"))
		ck_set(c, at, ino);
	c->state[ino] |= CK_NAMED | CK_ROOTED;
	check_links(c, ino, c->links[ino] + 2);
}

/*
 * Walks from a directory to its parents. It stops at a directory that is known to lead to the root,
 * or at one without a name, which is then the orphan. If the path is a circle, Brent's algorithm
 * detects this in at most twice as many steps as the path has. The checker walks no path twice.
 */
static void check_rooted(struct sg_ck *c, u64 ino)
{
	u64 at = ino, mark = ino, steps = 0, limit = 1;

	while (!(c->state[at] & CK_ROOTED) && c->state[at] & CK_NAMED) {
		at = c->parent[at];
		if (at == mark) {
			if (ck_found(c, CK_ASK, at, ck_inode_off(c, at),
				     "directories contain each other"))
				ck_note(c, &c->cut, at, 0);
			break;
		}
		if (++steps == limit) {
			mark = at;
			steps = 0;
			limit *= 2;
		}
	}
	for (at = ino; !(c->state[at] & CK_ROOTED) && c->state[at] & CK_NAMED; at = c->parent[at])
		c->state[at] |= CK_ROOTED;
}

static void no_name(struct sg_ck *c, u64 ino, bool links)
{
	if (links) {
		if (ck_found(c, CK_ASK, ino, ck_inode_off(c, ino), "%s without a name",
			     c->state[ino] & CK_DIR ? "a directory" : "a file"))
			ck_note(c, &c->orphans, ino, 0);
	} else if (!(c->state[ino] & CK_DEFERRED)) {
		if (ck_found(c, ck_giving(c), ino, ck_inode_off(c, ino),
			     "has no links, but is still there"))
			ck_note(c, &c->settle, ino, 0);
	}
}

static void check_inode_names(struct sg_ck *c, u64 ino)
{
	u32 nlink = sg_nlink(ck_get(c, ck_ifield(c, ino, mode)));

	if (!(c->state[ino] & CK_USED))
		return;
	if (c->state[ino] & CK_DIR ? !(c->state[ino] & CK_NAMED) : !c->links[ino]) {
		no_name(c, ino, nlink);
		return;
	}
	if (c->state[ino] & CK_DIR)
		check_rooted(c, ino);
	check_links(c, ino, c->links[ino] + (c->state[ino] & CK_DIR ? 2 : 0));
}

/*
 * Records the inodes whose pages behind the size must be freed. Recovery handles those inodes that
 * a ledger names.
 */
static void check_cutting(struct sg_ck *c)
{
	u64 i, n = 0;

	for (i = 0; i < c->settle.n; i++) {
		u64 ino = c->settle.item[i].ino;

		if (c->state[ino] & CK_DEFERRED)
			continue;
		if (ck_found(c, ck_giving(c), ino, ck_inode_off(c, ino),
			     "was being truncated"))
			c->settle.item[n++].ino = ino;
	}
	c->settle.n = n;
}

void ck_tree(struct sg_ck *c)
{
	u64 ino;

	check_cutting(c);
	check_root(c);
	/* If names are still missing, their files would count as orphans. */
	if (c->rebuild.n || c->hold_pages || c->no_memory)
		return;
	for (ino = SG_INO_ROOT + 1; ino < c->inodes; ino++) {
		check_inode_names(c, ino);
		if (!(ino & 0xffff))
			ck_progress(c, "names", ino, c->inodes);
	}
}
