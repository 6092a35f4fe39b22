// SPDX-License-Identifier: Apache-2.0
/* The model's operations on attributes, extended attributes and the volume as a whole. */
#include "model.h"

#define NOW(m)	((s64)(m)->ops + 1)

/* --- attributes ----------------------------------------------------------------------------- */

/* Sets or clears the attribute data=atomic. With other systems, each change would wait for them. */
static void step_atomic_flag(struct model *m, struct m_inode *in)
{
	bool on = rng_chance(&m->rng, 60);
	u32 type = in->mode & S_IFMT;
	struct m_expect e = { 0 };

	if (m->shared)
		return;
	test_note("op %" PRIu64 ": data=%s of %" PRIu64, m->ops, on ? "atomic" : "inplace", in->ref.ino);
	m_may(&e, type != S_IFREG && type != S_IFDIR, -EINVAL);
	if (m_check(m, &e, sg_set_atomic(&m->t.v, &in->ref, on, NOW(m))))
		in->atomic = on;
}

void model_all_atomic(struct model *m)
{
	CHECK_OK(sg_set_atomic(&m->t.v, &m->root->ref, true, NOW(m)));
	m->root->atomic = true;
}

static void step_setattr(struct model *m, struct m_inode *in)
{
	unsigned int set = (unsigned int)rng_below(&m->rng, 256);
	struct sg_attr a = {
		.mode = (u32)rng_below(&m->rng, 010000),
		.uid = (u32)rng_next(&m->rng),
		.gid = (u32)rng_next(&m->rng),
		.mtime = (s64)rng_next(&m->rng), .ctime = NOW(m), .atime = -NOW(m), .btime = NOW(m),
		.flags = rng_chance(&m->rng, 50) ? SG_FL_NODUMP : SG_FL_NOATIME | SG_FL_SYNC,
	}, got;
	u64 seq = sg_seq(&m->t.v, &in->ref);

	test_note("op %" PRIu64 ": setattr %" PRIu64 ", set 0x%x", m->ops, in->ref.ino, set);
	CHECK_OK(sg_setattr(&m->t.v, &in->ref, set, &a));
	CHECK_OK(sg_getattr(&m->t.v, &in->ref, &got));
	CHECK(got.seq > seq);
	if (set & SG_SET_MODE)
		in->mode = (in->mode & S_IFMT) | a.mode;
	if (set & SG_SET_UID)
		in->uid = a.uid;
	if (set & SG_SET_GID)
		in->gid = a.gid;
	if (set & SG_SET_FLAGS)
		in->flags = a.flags;
	if (set & SG_SET_MTIME)
		CHECK_EQ(got.mtime, a.mtime);
	if (set & SG_SET_CTIME)
		CHECK_EQ(got.ctime, a.ctime);
	if (set & SG_SET_ATIME)
		CHECK_EQ(got.atime, a.atime);
	if (set & SG_SET_BTIME)
		CHECK_EQ(got.btime, a.btime);
}

static void step_touch(struct model *m, struct m_inode *in)
{
	struct sg_attr got;
	s64 t = (s64)rng_next(&m->rng);

	test_note("op %" PRIu64 ": touch %" PRIu64, m->ops, in->ref.ino);
	CHECK_OK(sg_touch(&m->t.v, &in->ref, SG_SET_MTIME | SG_SET_ATIME, t, 0, t + 1));
	CHECK_OK(sg_getattr(&m->t.v, &in->ref, &got));
	CHECK(got.mtime == t && got.atime == t + 1);
}

/* --- extended attributes -------------------------------------------------------------------- */

static struct m_xattr *find_xattr(struct m_inode *in, unsigned int space, const char *name, u32 len)
{
	unsigned int i;

	for (i = 0; i < in->xattrs; i++)
		if (in->xattr[i].space == space && in->xattr[i].name_len == len &&
		    !memcmp(in->xattr[i].name, name, len))
			return &in->xattr[i];
	return NULL;
}

static u32 some_xattr(struct model *m, unsigned int *space, char *name)
{
	u32 len;

	*space = (unsigned int)rng_range(&m->rng, SG_XATTR_USER, SG_XATTR_ACL_DEFAULT);
	if (*space >= SG_XATTR_ACL_ACCESS)
		return 0;
	len = (u32)snprintf(name, 256, "x%" PRIu64, rng_below(&m->rng, 4));
	if (rng_chance(&m->rng, 10)) {
		memset(name + len, 'z', 200);
		len += 200;
	}
	return len;
}

static void step_xattr_set(struct model *m, struct m_inode *in)
{
	u32 len = (u32)rng_size(&m->rng, rng_chance(&m->rng, 10) ? SG_XATTR_VALUE_MAX : 300), name_len;
	unsigned int space, flags = (unsigned int)rng_below(&m->rng, 12);
	/* a change also moves the other values */
	struct m_expect e = { .need = len / SG_PAGE + 400 };
	struct m_xattr *x;
	char name[256];

	flags = flags > SG_XATTR_REPLACE ? 0 : flags;
	name_len = some_xattr(m, &space, name);
	x = find_xattr(in, space, name, name_len);
	if (!x && in->xattrs == M_XATTRS)
		return;
	test_note("op %" PRIu64 ": set xattr %u %.*s of %" PRIu64 " to %u bytes, flags %u", m->ops,
		  space, (int)name_len, name, in->ref.ino, len, flags);
	rng_fill(&m->rng, m->buf, len);
	m_may(&e, x && flags == SG_XATTR_CREATE, -EEXIST);
	m_may(&e, !x && flags == SG_XATTR_REPLACE, -ENODATA);
	if (!m_check(m, &e, sg_xattr_set(&m->t.v, &in->ref, space, name, name_len, m->buf, len, flags,
					 NOW(m))))
		return;
	if (!x) {
		x = &in->xattr[in->xattrs++];
		*x = (struct m_xattr){ .space = space, .name_len = name_len };
		memcpy(x->name, name, name_len);
	}
	free(x->value);
	x->value = malloc(len + 1);
	memcpy(x->value, m->buf, len);
	x->len = len;
}

static void step_xattr_remove(struct model *m, struct m_inode *in)
{
	unsigned int space;
	char name[256];
	u32 name_len = some_xattr(m, &space, name);
	struct m_expect e = { .need = 400 };
	struct m_xattr *x;

	if (in->xattrs && rng_chance(&m->rng, 70)) {
		x = &in->xattr[rng_below(&m->rng, in->xattrs)];
		space = x->space;
		name_len = x->name_len;
		memcpy(name, x->name, name_len);
	}
	x = find_xattr(in, space, name, name_len);
	test_note("op %" PRIu64 ": remove xattr %u %.*s of %" PRIu64, m->ops, space, (int)name_len,
		  name, in->ref.ino);
	m_may(&e, !x, -ENODATA);
	if (!m_check(m, &e, sg_xattr_set(&m->t.v, &in->ref, space, name, name_len, NULL, 0, 0, NOW(m))))
		return;
	free(x->value);
	*x = in->xattr[--in->xattrs];
}

static void step_xattr_get(struct model *m, struct m_inode *in)
{
	unsigned int space;
	char name[256];
	u32 name_len = some_xattr(m, &space, name);
	struct m_xattr *x = find_xattr(in, space, name, name_len);
	int got;

	test_note("op %" PRIu64 ": get xattr %u %.*s of %" PRIu64, m->ops, space, (int)name_len, name,
		  in->ref.ino);
	got = sg_xattr_get(&m->t.v, &in->ref, space, name, name_len, m->got, M_IO);
	CHECK_EQ(got, x ? (int)x->len : -ENODATA);
	if (!x)
		return;
	CHECK(!memcmp(m->got, x->value, x->len));
	CHECK_EQ(sg_xattr_get(&m->t.v, &in->ref, space, name, name_len, NULL, 0), x->len);
	if (x->len)
		CHECK_EQ(sg_xattr_get(&m->t.v, &in->ref, space, name, name_len, m->got, x->len - 1),
			 -ERANGE);
}

void m_step_attr(struct model *m)
{
	struct m_inode *in = m_pick_any(m);
	u64 dice = rng_below(&m->rng, 100);

	if (!in)
		return;
	if (dice < 4)
		step_atomic_flag(m, in);
	else if (dice < 30)
		step_setattr(m, in);
	else if (dice < 45)
		step_touch(m, in);
	else if (dice < (m->aim == M_GROW ? 70 : 55))
		step_xattr_set(m, in);
	else if (dice < 85)
		step_xattr_remove(m, in);
	else
		step_xattr_get(m, in);
}

/* --- the volume ----------------------------------------------------------------------------- */

void m_step_volume(struct model *m)
{
	struct sg_statfs st;
	int left;

	if (rng_chance(&m->rng, 80)) {
		test_note("op %" PRIu64 ": reclaim", m->ops);
		left = sg_reclaim(&m->t.v, (unsigned int)rng_below(&m->rng, 100));
		CHECK(left >= 0);
		return;
	}
	test_note("op %" PRIu64 ": statfs", m->ops);
	CHECK_OK(sg_statfs(&m->t.v, &st));
	CHECK(st.free_pages <= st.pages);
	if (m->shared)
		return;
	CHECK_EQ(st.used_inodes, m->inodes);
	CHECK_EQ(sg_reclaim(&m->t.v, 1), 0);
}
