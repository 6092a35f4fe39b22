// SPDX-License-Identifier: Apache-2.0
/* Compares the volume with the model: every name, attribute and byte. */
#include "model.h"

static const u8 zero[SG_PAGE];

static void compare_attr(struct model *m, struct m_inode *in)
{
	struct sg_attr a;
	u32 type = in->mode & S_IFMT;

	CHECK_OK(sg_getattr(&m->t.v, &in->ref, &a));
	CHECK_EQ(a.ino, in->ref.ino);
	CHECK_EQ(a.mode, in->mode);
	CHECK_EQ(a.nlink, in->nlink);
	CHECK_EQ(a.uid, in->uid);
	CHECK_EQ(a.gid, in->gid);
	CHECK_EQ(a.flags & ~SG_FL_ENGINE, in->flags);
	CHECK_EQ(!!(a.flags & SG_FL_ATOMIC), in->atomic);
	CHECK_EQ(a.has_xattr, in->xattrs != 0);
	if (type == S_IFREG || type == S_IFLNK)
		CHECK_EQ(a.size, in->size);
	if (type == S_IFDIR) {
		CHECK_EQ(a.entries, in->names);
		CHECK_EQ(a.special, in->parent ? in->parent->ref.ino : a.special);
	}
	if (type == S_IFCHR || type == S_IFBLK)
		CHECK_EQ(a.special, in->rdev);
}

/* --- data ----------------------------------------------------------------------------------- */

static void compare_mapped(struct model *m, struct m_inode *in, u64 page, const struct sg_run *run)
{
	u64 i;

	for (i = 0; i < run->pages; i++) {
		const u8 *want = sparse_page(&in->data, page + i);

		if (memcmp(m->t.mem + run->off + i * SG_PAGE, want ? want : zero, SG_PAGE))
			test_fail(__FILE__, __LINE__, "page %" PRIu64 " of inode %" PRIu64
				  " (size %" PRIu64 ") differs", page + i, in->ref.ino, in->size);
	}
	test_counted();
}

static void compare_data(struct model *m, struct m_inode *in)
{
	u64 end = (in->size + SG_PAGE - 1) / SG_PAGE, page, i;
	struct sg_run run;

	for (page = 0; page < end; page += run.pages) {
		CHECK_OK(sg_walk(&m->t.v, &in->ref, page, end - page, &run));
		CHECK(run.pages && run.pages <= end - page);
		if (run.off)
			compare_mapped(m, in, page, &run);
	}
	for (i = 0; i < in->data.cap; i++) {
		u64 n = in->data.e[i].page - 1;

		if (!in->data.e[i].page || !memcmp(in->data.e[i].bytes, zero, SG_PAGE))
			continue;
		CHECK_OK(sg_walk(&m->t.v, &in->ref, n, 1, &run));
		CHECK(run.off);
	}
}

/* --- symlinks, extended attributes ---------------------------------------------------------- */

static void compare_target(struct model *m, struct m_inode *in)
{
	CHECK_EQ(sg_readlink(&m->t.v, &in->ref, (char *)m->got, M_IO), in->size);
	CHECK(!memcmp(m->got, in->target, in->size));
}

struct xattr_count {
	struct m_inode *in;
	unsigned int n;
};

static int meet_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
		      const void *value, u32 value_len)
{
	struct xattr_count *c = ctx;
	unsigned int i;

	for (i = 0; i < c->in->xattrs; i++) {
		struct m_xattr *x = &c->in->xattr[i];

		if (x->space != space || x->name_len != name_len || memcmp(x->name, name, name_len))
			continue;
		CHECK_EQ(value_len, x->len);
		CHECK(!memcmp(value, x->value, x->len));
		c->n++;
	}
	return 0;
}

static void compare_xattrs(struct model *m, struct m_inode *in)
{
	struct xattr_count c = { in, 0 };

	CHECK_OK(sg_xattr_list(&m->t.v, &in->ref, meet_xattr, &c));
	CHECK_EQ(c.n, in->xattrs);
}

/* --- names ---------------------------------------------------------------------------------- */

struct listing {
	struct model *m;
	struct m_inode *dir;
	u64 last;
	u32 n, stop;
};

static bool meet_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct listing *l = ctx;
	struct m_name *n;

	if (l->n == l->stop)
		return false;
	n = m_find(l->dir, name, len);
	CHECK(n);
	CHECK_EQ(ino, n->inode->ref.ino);
	CHECK_EQ(type, n->inode->mode >> 12);
	CHECK(cookie > l->last || !l->last);
	l->last = cookie;
	l->n++;
	return true;
}

/* Reads in two parts, so that continuing from a cookie is tested as well. */
static void compare_names(struct model *m, struct m_inode *dir)
{
	struct listing l = { .m = m, .dir = dir };
	u64 cookie = 0;
	u32 i;

	l.stop = (u32)rng_below(&m->rng, dir->names + 1);
	CHECK_OK(sg_readdir(&m->t.v, &dir->ref, &cookie, meet_name, &l));
	CHECK_EQ(l.n, l.stop);
	l.stop = ~0u;
	CHECK_OK(sg_readdir(&m->t.v, &dir->ref, &cookie, meet_name, &l));
	CHECK_EQ(l.n, dir->names);
	CHECK_EQ(cookie, INT64_MAX);
	for (i = 0; i < dir->names; i++) {
		struct sg_iref ref;
		unsigned int type;

		CHECK_OK(sg_lookup(&m->t.v, &dir->ref, dir->name[i].name, dir->name[i].len, &ref, &type));
		CHECK_EQ(ref.ino, dir->name[i].inode->ref.ino);
	}
}

void model_compare(struct model *m)
{
	struct sg_statfs st;
	u32 i;

	for (i = 0; i < m->inodes; i++) {
		struct m_inode *in = m->inode[i];

		test_note("comparing inode %" PRIu64 " after operation %" PRIu64, in->ref.ino, m->ops);
		compare_attr(m, in);
		compare_xattrs(m, in);
		switch (in->mode & S_IFMT) {
		case S_IFDIR:
			compare_names(m, in);
			break;
		case S_IFREG:
			compare_data(m, in);
			break;
		case S_IFLNK:
			compare_target(m, in);
			break;
		}
	}
	if (m->shared)
		return;
	CHECK_OK(sg_statfs(&m->t.v, &st));
	CHECK_EQ(st.used_inodes, m->inodes);
}
