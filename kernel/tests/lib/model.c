// SPDX-License-Identifier: Apache-2.0
/*
 * The model: its inodes and names, and the course of a run. model.h describes the purpose of the
 * model.
 */
#include <sys/mman.h>
#include "model.h"

static void *must(void *p)
{
	CHECK(p);
	return p;
}

/* --- expectation ---------------------------------------------------------------------------- */

void m_may(struct m_expect *e, bool cond, int err)
{
	if (!cond)
		return;
	CHECK(e->n < sizeof(e->err) / sizeof(e->err[0]));
	e->err[e->n++] = err;
}

static bool full(struct model *m, u64 need)
{
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&m->t.v, &st));
	m->full++;
	/* other systems may have used further pages, and freed them since */
	return st.free_pages <= need + (m->shared ? st.pages / 4 : 0);
}

bool m_check(struct model *m, const struct m_expect *e, s64 ret)
{
	unsigned int i;

	test_counted();
	for (i = 0; i < e->n; i++)
		if (ret == e->err[i])
			return false;
	if (ret >= 0 && !e->n) {
		m->done++;
		return true;
	}
	if (ret == -ENOSPC && !e->n && e->need && full(m, e->need))
		return false;
	test_fail(__FILE__, __LINE__, "returned %" PRId64 "; expected %d (%u possible errors)", ret,
		  e->n ? e->err[0] : 0, e->n);
}

/* --- inodes --------------------------------------------------------------------------------- */

static void use(struct model *m, const struct m_inode *in, bool on)
{
	u64 *word = &m->using[in->ref.ino % M_NUMBERS / 64], bit = 1ULL << in->ref.ino % 64;

	if (on)
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

bool model_in_use(struct sg_vol *vol, u64 ino, u32 generation)
{
	struct model *m = (void *)((u8 *)vol - offsetof(struct model, t.v));

	(void)generation;
	return __atomic_load_n(&m->using[ino % M_NUMBERS / 64], __ATOMIC_SEQ_CST) >> ino % 64 & 1;
}

struct m_inode *m_add(struct model *m, const struct sg_iref *ref, u32 mode)
{
	struct m_inode *in = must(calloc(1, sizeof(*in)));

	in->ref = *ref;
	in->mode = mode;
	in->nlink = 1;
	in->at = m->inodes;
	use(m, in, true);
	if (m->shared)
		CHECK_OK(sg_open_inode(&m->t.v, ref, true));
	if (m->inodes == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->inode = must(realloc(m->inode, m->room * sizeof(*m->inode)));
	}
	m->inode[m->inodes++] = in;
	return in;
}

void m_forget(struct model *m, struct m_inode *in)
{
	use(m, in, false);
	m->inode[in->at] = m->inode[--m->inodes];
	m->inode[in->at]->at = in->at;
	while (in->xattrs)
		free(in->xattr[--in->xattrs].value);
	while (in->names)
		free(in->name[--in->names].name);
	free(in->name);
	free(in->target);
	sparse_free(&in->data);
	free(in);
}

static u32 hash(const char *name, u32 len)
{
	return sg_crc32c(~0u, name, len);
}

struct m_name *m_find(const struct m_inode *dir, const char *name, u32 len)
{
	u32 h = hash(name, len), i;

	for (i = 0; i < dir->names; i++)
		if (dir->name[i].hash == h && dir->name[i].len == len &&
		    !memcmp(dir->name[i].name, name, len))
			return &dir->name[i];
	return NULL;
}

void m_name_add(struct m_inode *dir, const char *name, u32 len, struct m_inode *in)
{
	struct m_name *n;

	if (dir->names == dir->room) {
		dir->room = dir->room ? 2 * dir->room : 16;
		dir->name = must(realloc(dir->name, dir->room * sizeof(*dir->name)));
	}
	n = &dir->name[dir->names++];
	n->hash = hash(name, len);
	n->len = len;
	n->name = must(malloc(len + 1));
	memcpy(n->name, name, len);
	n->name[len] = 0;
	n->inode = in;
	if ((in->mode & S_IFMT) == S_IFDIR)
		in->parent = dir;
}

void m_name_remove(struct m_inode *dir, struct m_name *n)
{
	free(n->name);
	*n = dir->name[--dir->names];
}

bool m_is_below(const struct m_inode *in, const struct m_inode *above)
{
	for (; in; in = in->parent)
		if (in == above)
			return true;
	return false;
}

void m_evict(struct model *m, struct m_inode *in)
{
	struct sg_attr attr;

	sg_close_inode(&m->t.v, &in->ref);
	CHECK_OK(sg_evict(&m->t.v, &in->ref));
	if (!m->shared)		/* another system may have reused the number */
		CHECK_EQ(sg_getattr(&m->t.v, &in->ref, &attr), -ESTALE);
	m->unnamed--;
	m_forget(m, in);
}

void m_unlinked(struct model *m, struct m_inode *in)
{
	m->unnamed++;
	if (m->unnamed > M_UNNAMED_MAX || rng_chance(&m->rng, 60))
		m_evict(m, in);
}

/* --- picking -------------------------------------------------------------------------------- */

static struct m_inode *pick(struct model *m, u32 type)
{
	unsigned int tries;

	for (tries = 0; tries < 24; tries++) {
		struct m_inode *in = m->inode[rng_below(&m->rng, m->inodes)];

		if (!type || (in->mode & S_IFMT) == type)
			return in;
	}
	return NULL;
}

struct m_inode *m_pick_dir(struct model *m)
{
	struct m_inode *in = rng_chance(&m->rng, 30) ? m->root : pick(m, S_IFDIR);

	return in ? in : m->root;
}

struct m_inode *m_pick_file(struct model *m)
{
	return pick(m, S_IFREG);
}

struct m_inode *m_pick_any(struct model *m)
{
	return pick(m, 0);
}

/* Chooses a name from so few that it often exists already. Some names are long or unusual. */
u32 m_new_name(struct model *m, char name[SG_NAME_MAX + 2])
{
	u64 n = rng_below(&m->rng, 1u << rng_below(&m->rng, 14));
	u32 len = (u32)snprintf(name, SG_NAME_MAX, "n%" PRIu64, n), want;

	if (rng_chance(&m->rng, 10)) {
		want = (u32)rng_range(&m->rng, len, SG_NAME_MAX);
		memset(name + len, 'x', want - len);
		len = want;
	} else if (rng_chance(&m->rng, 5)) {
		name[0] = (char)(1 + n % 255);
		if (name[0] == '/')
			name[0] = '\n';
	}
	return len;
}

/* --- a run ---------------------------------------------------------------------------------- */

void model_make(struct model *m, u64 size, u64 memory, u64 seed)
{
	memset(m, 0, sizeof(*m));
	tvol_make_in(&m->t, size, memory);
	m->t.v.in_use = model_in_use;
	/*
	 * The first page is read-only, because no operation of the model stores into it. The
	 * operations do not change the other superblock either, but its page also holds other data.
	 * The checker compares the two superblocks.
	 */
	CHECK_OK(mprotect(m->t.mem, SG_PAGE, PROT_READ));
	m->rng.state = seed;
	m->root = m_add(m, &m->t.root, S_IFDIR | 0755);
	m->root->nlink = 2;
	m->buf = must(malloc(M_IO));
	m->got = must(malloc(M_IO));
}

void model_share(struct model *m, const struct sg_iref *dir, u64 seed)
{
	m->shared = true;
	m->rng.state = seed;
	m->root = m_add(m, dir, S_IFDIR | 0755);
	m->root->nlink = 2;
	m->buf = must(malloc(M_IO));
	m->got = must(malloc(M_IO));
}

/*
 * Decides whether the tree grows or shrinks. It grows until the volume is full, or for a random
 * time; then it shrinks for a while.
 */
static void set_aim(struct model *m)
{
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&m->t.v, &st));
	if (m->aim == M_SHRINK && st.free_pages > st.pages / 8 * 7)
		m->aim = M_GROW;
	else if (m->aim == M_GROW && (st.free_pages < st.pages / (m->shared ? 8 : 64) ||
				      rng_chance(&m->rng, 2)))
		m->aim = rng_chance(&m->rng, 30) ? M_SHRINK : M_GROW;
	else if (m->inodes > 20000)
		m->aim = M_SHRINK;
}

void model_step(struct model *m)
{
	u64 dice = rng_below(&m->rng, 1000);

	m->ops++;
	if (dice < 450)
		m_step_names(m);
	else if (dice < 860)
		m_step_data(m);
	else if (dice < 980)
		m_step_attr(m);
	else
		m_step_volume(m);
	if (m->ops % (m->shared ? 1024 : 256) == 0)
		set_aim(m);
}

static void forget_unnamed(struct model *m)
{
	u32 i;

	for (i = m->inodes; i-- > 0;)
		if (!m->inode[i]->nlink)
			m_forget(m, m->inode[i]);
	m->unnamed = 0;
}

void model_remount(struct model *m, bool crash)
{
	test_note("remount%s after %" PRIu64 " operations", crash ? " after a crash" : "", m->ops);
	forget_unnamed(m);
	if (crash)
		tvol_crash(&m->t);
	else
		tvol_leave(&m->t);
	test_clean(m->t.mem, m->t.size);
	tvol_join(&m->t);
	m->t.v.in_use = model_in_use;
	m->recoveries += crash;
}

void model_again(struct model *m)
{
	u32 i;

	forget_unnamed(m);
	for (i = 0; i < m->inodes; i++) {
		use(m, m->inode[i], true);
		CHECK_OK(sg_open_inode(&m->t.v, &m->inode[i]->ref, false));
	}
	m->recoveries++;
}

static void clear_dir(struct model *m, struct m_inode *dir)
{
	while (dir->names) {
		struct m_name *n = &dir->name[dir->names - 1];
		struct m_inode *in = n->inode;
		bool is_dir = (in->mode & S_IFMT) == S_IFDIR;

		if (is_dir)
			clear_dir(m, in);
		CHECK_OK((is_dir ? sg_rmdir : sg_unlink)(&m->t.v, &dir->ref, n->name, n->len, 1));
		m_name_remove(dir, n);
		in->nlink -= is_dir ? 2 : 1;
		dir->nlink -= is_dir;
		if (!in->nlink) {
			m->unnamed++;
			m_evict(m, in);
		}
	}
}

void model_clear(struct model *m)
{
	u32 i;

	test_note("removing everything after %" PRIu64 " operations", m->ops);
	clear_dir(m, m->root);
	for (i = m->inodes; i-- > 0;)
		if (!m->inode[i]->nlink)
			m_evict(m, m->inode[i]);
	CHECK_EQ(m->inodes, 1);
}

void model_drop(struct model *m)
{
	model_clear(m);
	m_forget(m, m->root);
	if (!m->shared)
		tvol_drop(&m->t);
	free(m->inode);
	free(m->buf);
	free(m->got);
}
