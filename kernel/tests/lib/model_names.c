// SPDX-License-Identifier: Apache-2.0
/* The model's operations on names: create, link, unlink, rename and related ones. */
#include "model.h"

#define NOW(m)	((s64)(m)->ops + 1)
#define FEW	24	/* pages that an operation may need: records, buckets, index, ledger */

static bool is_dir(const struct m_inode *in)
{
	return (in->mode & S_IFMT) == S_IFDIR;
}

/* Chooses a name that most likely exists in @dir, or most likely does not. */
static u32 some_name(struct model *m, const struct m_inode *dir, bool existing, char *name)
{
	const struct m_name *n;

	if (!existing || !dir->names || rng_chance(&m->rng, 8))
		return m_new_name(m, name);
	n = &dir->name[rng_below(&m->rng, dir->names)];
	memcpy(name, n->name, n->len);
	return n->len;
}

/* --- create --------------------------------------------------------------------------------- */

static u32 some_type(struct model *m)
{
	static const u32 rare[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };
	u64 dice = rng_below(&m->rng, 100);

	if (dice < 62)
		return S_IFREG;
	if (dice < 80)
		return S_IFDIR;
	return dice < 93 ? S_IFLNK : rare[dice & 3];
}

static u32 some_target(struct model *m, char *target)
{
	u32 len = (u32)rng_range(&m->rng, 1, rng_chance(&m->rng, 60) ? 80 : SG_SYMLINK_MAX), i;

	for (i = 0; i < len; i++)
		target[i] = (char)('a' + (i + m->ops) % 26);
	target[len] = 0;
	return len;
}

/* Adds a new inode to the model. @dir: the directory from which the inode inherits, or NULL. */
static struct m_inode *added(struct model *m, const struct m_inode *dir, const struct sg_iref *ref,
			     const struct sg_new *new)
{
	struct m_inode *in = m_add(m, ref, new->mode);
	u32 type = new->mode & S_IFMT;

	in->atomic = dir && dir->atomic && (type == S_IFREG || type == S_IFDIR);
	in->uid = new->uid;
	in->gid = new->gid;
	in->flags = new->flags;
	in->rdev = new->rdev;
	if (new->target) {
		in->target = strdup(new->target);
		in->size = new->target_len;
	}
	return in;
}

static struct sg_new some_new(struct model *m, u32 type)
{
	struct sg_new new = {
		.mode = type | (u32)rng_below(&m->rng, 010000),
		.uid = (u32)rng_below(&m->rng, 70000),
		.gid = (u32)rng_below(&m->rng, 70000),
		.flags = rng_chance(&m->rng, 10) ? SG_FL_NODUMP : 0,
		.now = NOW(m),
	};

	if (type == S_IFCHR || type == S_IFBLK)
		new.rdev = rng_below(&m->rng, 1u << 20);
	return new;
}

static void step_create(struct model *m)
{
	struct m_inode *dir = m_pick_dir(m), *in;
	char name[SG_NAME_MAX + 2], target[SG_SYMLINK_MAX + 1];
	u32 len = some_name(m, dir, false, name);
	struct sg_new new = some_new(m, some_type(m));
	struct m_expect e = { .need = FEW };
	struct sg_iref ref;

	if ((new.mode & S_IFMT) == S_IFLNK) {
		new.target = target;
		new.target_len = some_target(m, target);
	}
	if (rng_chance(&m->rng, 1)) {
		len = SG_NAME_MAX + 1;
		memset(name, 'y', len);
	}
	test_note("op %" PRIu64 ": create %.*s in %" PRIu64 ", mode %o", m->ops, (int)len, name,
		  dir->ref.ino, new.mode);
	m_may(&e, len > SG_NAME_MAX, -ENAMETOOLONG);
	m_may(&e, m_find(dir, name, len), -EEXIST);
	m_may(&e, !dir->nlink, -ENOENT);
	if (!m_check(m, &e, sg_create(&m->t.v, &dir->ref, name, len, &new, &ref)))
		return;
	in = added(m, dir, &ref, &new);
	m_name_add(dir, name, len, in);
	if (is_dir(in)) {
		in->nlink = 2;
		dir->nlink++;
	}
}

static void step_tmpfile(struct model *m)
{
	struct m_inode *dir = m_pick_dir(m), *in;
	struct sg_new new = some_new(m, S_IFREG);
	struct m_expect e = { .need = FEW };
	char name[SG_NAME_MAX + 2];
	struct sg_iref ref;
	u32 len;

	test_note("op %" PRIu64 ": tmpfile", m->ops);
	if (!m_check(m, &e, sg_tmpfile(&m->t.v, &new, &ref)))
		return;
	in = added(m, NULL, &ref, &new);
	in->nlink = 0;
	m->unnamed++;
	if (rng_chance(&m->rng, 40)) {
		if (m->unnamed > M_UNNAMED_MAX)
			m_evict(m, in);
		return;
	}
	len = some_name(m, dir, false, name);
	test_note("op %" PRIu64 ": link tmpfile %" PRIu64 " as %.*s", m->ops, ref.ino, (int)len, name);
	m_may(&e, m_find(dir, name, len), -EEXIST);
	m_may(&e, !dir->nlink, -ENOENT);
	if (m_check(m, &e, sg_link(&m->t.v, &ref, &dir->ref, name, len, NOW(m)))) {
		m->unnamed--;
		in->nlink = 1;
		m_name_add(dir, name, len, in);
	} else {
		m_evict(m, in);
	}
}

static void step_link(struct model *m)
{
	struct m_inode *in = m_pick_any(m), *dir = m_pick_dir(m);
	struct m_expect e = { .need = FEW };
	char name[SG_NAME_MAX + 2];
	u32 len = some_name(m, dir, false, name);

	if (!in || !in->nlink)
		return;
	test_note("op %" PRIu64 ": link %" PRIu64 " as %.*s in %" PRIu64, m->ops, in->ref.ino,
		  (int)len, name, dir->ref.ino);
	m_may(&e, m_find(dir, name, len), -EEXIST);
	m_may(&e, !dir->nlink, -ENOENT);
	m_may(&e, is_dir(in), -EPERM);
	if (!m_check(m, &e, sg_link(&m->t.v, &in->ref, &dir->ref, name, len, NOW(m))))
		return;
	in->nlink++;
	m_name_add(dir, name, len, in);
}

/* --- remove --------------------------------------------------------------------------------- */

/*
 * Removes the name of @in from @dir in the model: decrements the link count, and may remove the
 * inode.
 */
static void lost_name(struct model *m, struct m_inode *dir, struct m_inode *in)
{
	if (is_dir(in)) {
		dir->nlink--;
		in->nlink = 0;
		in->parent = NULL;
	} else {
		in->nlink--;
	}
	if (!in->nlink)
		m_unlinked(m, in);
}

static void step_remove(struct model *m)
{
	struct m_inode *dir = m_pick_dir(m), *in;
	struct m_expect e = { 0 };	/* ENOSPC is never correct here */
	char name[SG_NAME_MAX + 2];
	u32 len = some_name(m, dir, true, name);
	struct m_name *n = m_find(dir, name, len);
	bool rmdir = n ? is_dir(n->inode) : rng_chance(&m->rng, 50);
	int ret;

	if (rng_chance(&m->rng, 5))
		rmdir = !rmdir;
	test_note("op %" PRIu64 ": %s %.*s in %" PRIu64, m->ops, rmdir ? "rmdir" : "unlink",
		  (int)len, name, dir->ref.ino);
	in = n ? n->inode : NULL;
	m_may(&e, !n, -ENOENT);
	m_may(&e, n && rmdir && !is_dir(in), -ENOTDIR);
	m_may(&e, n && rmdir && is_dir(in) && in->names, -ENOTEMPTY);
	m_may(&e, n && !rmdir && is_dir(in), -EISDIR);
	ret = (rmdir ? sg_rmdir : sg_unlink)(&m->t.v, &dir->ref, name, len, NOW(m));
	if (!m_check(m, &e, ret))
		return;
	m_name_remove(dir, n);
	lost_name(m, dir, in);
}

static void step_evict(struct model *m)
{
	u32 i, start = (u32)rng_below(&m->rng, m->inodes);

	for (i = 0; i < m->inodes && m->unnamed; i++) {
		struct m_inode *in = m->inode[(start + i) % m->inodes];

		if (in->nlink)
			continue;
		test_note("op %" PRIu64 ": evict %" PRIu64, m->ops, in->ref.ino);
		m_evict(m, in);
		return;
	}
}

/* --- rename --------------------------------------------------------------------------------- */

struct rename {
	struct m_inode *odir, *ndir, *from, *to;
	char oname[SG_NAME_MAX + 2], nname[SG_NAME_MAX + 2];
	u32 olen, nlen;
	unsigned int flags;
};

static unsigned int some_flags(struct model *m)
{
	static const unsigned int flags[] = {
		0, 0, 0, 0, SG_RENAME_NOREPLACE, SG_RENAME_EXCHANGE, SG_RENAME_EXCHANGE,
		SG_RENAME_WHITEOUT, SG_RENAME_NOREPLACE | SG_RENAME_WHITEOUT,
		SG_RENAME_EXCHANGE | SG_RENAME_NOREPLACE, SG_RENAME_EXCHANGE | SG_RENAME_WHITEOUT,
	};

	return flags[rng_below(&m->rng, sizeof(flags) / sizeof(flags[0]))];
}

static void expect_rename(const struct rename *r, struct m_expect *e)
{
	bool exchange = r->flags & SG_RENAME_EXCHANGE;
	struct m_inode *from = r->from, *to = r->to;

	m_may(e, exchange && r->flags != SG_RENAME_EXCHANGE, -EINVAL);
	m_may(e, !from || (exchange && !to) || !r->ndir->nlink, -ENOENT);
	m_may(e, to && r->flags & SG_RENAME_NOREPLACE, -EEXIST);
	if (!from)
		return;
	m_may(e, is_dir(from) && m_is_below(r->ndir, from), -EINVAL);
	if (!to || to == from)
		return;
	if (exchange) {
		m_may(e, is_dir(to) && m_is_below(r->odir, to), -EINVAL);
		return;
	}
	m_may(e, is_dir(to) && !is_dir(from), -EISDIR);
	m_may(e, !is_dir(to) && is_dir(from), -ENOTDIR);
	m_may(e, is_dir(to) && to->names, -ENOTEMPTY);
}

static void move_name(struct m_inode *dir, const char *name, u32 len, struct m_inode *in)
{
	m_find(dir, name, len)->inode = in;
	if (is_dir(in))
		in->parent = dir;
}

static void did_exchange(struct rename *r)
{
	move_name(r->odir, r->oname, r->olen, r->to);
	move_name(r->ndir, r->nname, r->nlen, r->from);
	r->odir->nlink += (u32)is_dir(r->to) - (u32)is_dir(r->from);
	r->ndir->nlink += (u32)is_dir(r->from) - (u32)is_dir(r->to);
}

static void did_rename(struct model *m, struct rename *r, const struct sg_new *whiteout)
{
	unsigned int type;
	struct sg_iref ref;

	if (r->to) {
		m_name_remove(r->ndir, m_find(r->ndir, r->nname, r->nlen));
		lost_name(m, r->ndir, r->to);
	}
	m_name_remove(r->odir, m_find(r->odir, r->oname, r->olen));
	m_name_add(r->ndir, r->nname, r->nlen, r->from);
	if (is_dir(r->from)) {
		r->odir->nlink--;
		r->ndir->nlink++;
	}
	if (!(r->flags & SG_RENAME_WHITEOUT))
		return;
	CHECK_OK(sg_lookup(&m->t.v, &r->odir->ref, r->oname, r->olen, &ref, &type));
	m_name_add(r->odir, r->oname, r->olen, added(m, NULL, &ref, whiteout));
}

static void step_rename(struct model *m)
{
	struct sg_new whiteout = { .mode = S_IFCHR, .now = NOW(m) };
	struct m_expect e = { .need = FEW };
	struct rename r;
	struct m_name *n;
	int ret;

	r.odir = m_pick_dir(m);
	r.ndir = rng_chance(&m->rng, 40) ? r.odir : m_pick_dir(m);
	r.olen = some_name(m, r.odir, true, r.oname);
	r.nlen = some_name(m, r.ndir, rng_chance(&m->rng, 50), r.nname);
	r.flags = some_flags(m);
	n = m_find(r.odir, r.oname, r.olen);
	r.from = n ? n->inode : NULL;
	n = m_find(r.ndir, r.nname, r.nlen);
	r.to = n ? n->inode : NULL;
	test_note("op %" PRIu64 ": rename %.*s in %" PRIu64 " to %.*s in %" PRIu64 ", flags %u", m->ops,
		  (int)r.olen, r.oname, r.odir->ref.ino, (int)r.nlen, r.nname, r.ndir->ref.ino, r.flags);
	expect_rename(&r, &e);
	ret = sg_rename(&m->t.v, &r.odir->ref, r.oname, r.olen, &r.ndir->ref, r.nname, r.nlen, r.flags,
			&whiteout, NOW(m));
	if (!m_check(m, &e, ret) || r.from == r.to)
		return;	/* for two names of one inode, POSIX requires that rename does nothing */
	if (r.flags & SG_RENAME_EXCHANGE)
		did_exchange(&r);
	else
		did_rename(m, &r, &whiteout);
}

/* --- lookup and listing --------------------------------------------------------------------- */

static void step_lookup(struct model *m)
{
	struct m_inode *dir = m_pick_dir(m);
	char name[SG_NAME_MAX + 2];
	u32 len = some_name(m, dir, true, name);
	struct m_name *n = m_find(dir, name, len);
	struct sg_iref ref;
	unsigned int type;
	int err;

	test_note("op %" PRIu64 ": lookup %.*s in %" PRIu64, m->ops, (int)len, name, dir->ref.ino);
	err = sg_lookup(&m->t.v, &dir->ref, name, len, &ref, &type);
	CHECK_EQ(err, n ? 0 : -ENOENT);
	if (n) {
		CHECK_EQ(ref.ino, n->inode->ref.ino);
		CHECK_EQ(ref.off, n->inode->ref.off);
		CHECK_EQ(type, n->inode->mode >> 12);
	}
}

void m_step_names(struct model *m)
{
	u64 dice = rng_below(&m->rng, 100);
	bool grow = m->aim == M_GROW;

	if (dice < (grow ? 38 : 14))
		step_create(m);
	else if (dice < (grow ? 50 : 58))
		step_remove(m);
	else if (dice < 70)
		step_rename(m);
	else if (dice < 76)
		step_link(m);
	else if (dice < 80)
		step_tmpfile(m);
	else if (dice < 84)
		step_evict(m);
	else
		step_lookup(m);
}
