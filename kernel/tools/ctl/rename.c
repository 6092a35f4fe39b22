// SPDX-License-Identifier: Apache-2.0
/* Commands that give names: mv, ln. They refuse the same changes as a kernel on a mount. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"

/**
 * struct goal - a name to make: @name in @dir; @path: the complete path, for messages. @into: the
 * command line names only the directory, and each source keeps its last name.
 */
struct goal {
	bool into;
	struct sg_iref dir;
	const char *name;
	u32 len;
	char *path;
};

static bool ends_in_slash(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

/* Resolves the last argument. With several sources it must be a directory. */
static int find_goal(struct call *c, bool several, struct goal *g)
{
	const char *to = c->argv[c->argc - 1];
	struct sg_attr attr;
	int err = path_seek(call_vol(c), to, true, &g->dir, &attr);

	g->path = NULL;
	g->into = !err && S_ISDIR(attr.mode) && !c->exact;
	if (g->into)
		return 0;
	if (several)
		return path_error(to, err ? err : -ENOTDIR);
	g->path = strdup(to);
	if (!g->path)
		return path_error(to, -ENOMEM);
	return path_parent(call_vol(c), g->path, &g->dir, &g->name, &g->len);
}

/* Makes the goal for @from in the directory of @all. The caller frees g->path. */
static int goal_of(const struct call *c, const struct goal *all, const char *from, struct goal *g)
{
	const char *to = c->argv[c->argc - 1];
	char *name;
	int n;

	*g = *all;
	name = without_slashes(from);
	if (!name)
		return path_error(from, -ENOMEM);
	n = asprintf(&g->path, "%s%s%s", to, ends_in_slash(to) ? "" : "/", last_name(name));
	free(name);
	if (n < 0) {
		g->path = NULL;
		return path_error(from, -ENOMEM);
	}
	g->name = last_name(g->path);
	g->len = (u32)strlen(g->name);
	return 0;
}

/* --- changes that flags forbid ------------------------------------------------------------- */

int attr_allows(const char *path, const struct sg_attr *attr)
{
	if (!(attr->flags & (SG_FL_IMMUTABLE | SG_FL_APPEND)))
		return 0;
	tool_error("%s: is immutable or append-only", path);
	return -EPERM;
}

/* Checks that flags allow the directory to get a name, or (@takes) to lose one. */
static int dir_allows(struct call *c, const struct sg_iref *dir, const char *path, bool takes)
{
	struct sg_attr attr;
	int err = sg_getattr(call_vol(c), dir, &attr);

	if (err)
		return path_error(path, err);
	if (!(attr.flags & (SG_FL_IMMUTABLE | (takes ? SG_FL_APPEND : 0))))
		return 0;
	tool_error("%s: its directory is immutable or append-only", path);
	return -EPERM;
}

/* --- mv ------------------------------------------------------------------------------------ */

/** struct moved - a renamed name, its new name, and the inode that now has the new name. */
struct moved {
	struct sg_iref dir, ref, old;
	const char *name;
	u32 len;
	struct sg_attr attr, old_attr;
	bool taken;
};

static int look_at(struct call *c, const struct sg_iref *dir, const char *name, u32 len,
		   struct sg_iref *ref, struct sg_attr *attr)
{
	unsigned int type;
	int err = sg_lookup(call_vol(c), dir, name, len, ref, &type);

	return err ? err : sg_getattr(call_vol(c), ref, attr);
}

static int look_from(struct call *c, const char *from, struct moved *m)
{
	int err = path_parent(call_vol(c), from, &m->dir, &m->name, &m->len);

	if (err)
		return err;
	err = look_at(c, &m->dir, m->name, m->len, &m->ref, &m->attr);
	if (!err && ends_in_slash(from) && !S_ISDIR(m->attr.mode))
		err = -ENOTDIR;
	if (err)
		return path_error(from, err);
	err = dir_allows(c, &m->dir, from, true);
	return err ? err : attr_allows(from, &m->attr);
}

static int look_to(struct call *c, const char *from, const struct goal *g, struct moved *m)
{
	int err = look_at(c, &g->dir, g->name, g->len, &m->old, &m->old_attr);

	m->taken = !err;
	if (err && err != -ENOENT)
		return path_error(g->path, err);
	if (!m->taken && ends_in_slash(g->path) && !S_ISDIR(m->attr.mode))
		return path_error(g->path, -ENOTDIR);
	if (!m->taken || c->keep)
		return m->taken ? path_error(g->path, -EEXIST) :
		       dir_allows(c, &g->dir, g->path, false);
	if (m->old.ino == m->ref.ino) {
		tool_error("%s: is the same file as %s", from, g->path);
		return -EEXIST;
	}
	if (links_find(&c->links, LINK_MADE, m->old.ino)) {
		tool_error("%s: would replace a file that was just moved there", from);
		return -EEXIST;
	}
	err = dir_allows(c, &g->dir, g->path, true);
	return err ? err : attr_allows(g->path, &m->old_attr);
}

static int move_error(const char *from, const char *to, int err)
{
	if (err != -EINVAL)
		return path_error(to, err);
	tool_error("%s: cannot be moved below itself, to %s", from, to);
	return err;
}

static int move_to(struct call *c, const char *from, const struct goal *g)
{
	struct link_seen this = { .dev = LINK_MADE };
	struct moved m = { .name = NULL };
	int err = look_from(c, from, &m);

	if (!err)
		err = look_to(c, from, g, &m);
	if (err)
		return err;
	err = sg_rename(call_vol(c), &m.dir, m.name, m.len, &g->dir, g->name, g->len,
			c->keep ? SG_RENAME_NOREPLACE : 0, NULL, (s64)sg_now());
	if (err)
		return move_error(from, g->path, err);
	this.ino = m.ref.ino;
	err = links_add(&c->links, &this);
	if (!err && m.taken)
		err = sg_evict(call_vol(c), &m.old);
	return path_error(g->path, err);
}

/* --- ln ------------------------------------------------------------------------------------ */

/* Does not check the target, because it may name a file that does not exist yet. */
static int make_symlink(struct call *c, const char *target, const struct goal *g)
{
	struct sg_new new = { .mode = S_IFLNK | 0777, .uid = geteuid(), .gid = getegid(),
			      .target = target, .target_len = (u32)strlen(target),
			      .now = (s64)sg_now() };
	struct sg_iref ref;

	return path_error(g->path, sg_create(call_vol(c), &g->dir, g->name, g->len, &new, &ref));
}

/* Gives the new name to the symbolic link itself, not to its target. */
static int make_link(struct call *c, const char *from, const struct goal *g)
{
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path_find(call_vol(c), from, false, &ref, &attr);

	if (err)
		return err;
	if (S_ISDIR(attr.mode)) {
		tool_error("%s: is a directory, which has one name only; ln -s makes a symbolic link",
			   from);
		return -EPERM;
	}
	if (!attr.nlink) {
		tool_error("%s: has no name any more, and is being freed", from);
		return -ENOENT;
	}
	err = attr_allows(from, &attr);
	if (err)
		return err;
	ref.generation = attr.generation;
	return path_error(g->path, sg_link(call_vol(c), &ref, &g->dir, g->name, g->len,
					   (s64)sg_now()));
}

static int link_to(struct call *c, const char *from, const struct goal *g)
{
	int err;

	if (ends_in_slash(g->path))
		return path_error(g->path, -ENOENT);
	if (g->into && *from == '<' && !c->symbolic) {
		tool_error("%s: is a number, not a name; give the name, too", from);
		return -EINVAL;
	}
	err = dir_allows(c, &g->dir, g->path, false);
	if (err)
		return err;
	return c->symbolic ? make_symlink(c, from, g) : make_link(c, from, g);
}

/* --- both ---------------------------------------------------------------------------------- */

/* Continues after a refused name. */
static int into_dir(struct call *c, const struct goal *all,
		    int (*one)(struct call *c, const char *from, const struct goal *g))
{
	struct goal g;
	int i, err = 0, e;

	for (i = 0; i + 1 < c->argc; i++) {
		e = goal_of(c, all, c->argv[i], &g);
		e = e ? e : one(c, c->argv[i], &g);
		free(g.path);
		err = err ? err : e;
	}
	return err;
}

static int name_all(struct call *c,
		    int (*one)(struct call *c, const char *from, const struct goal *g))
{
	struct goal g;
	int err = find_goal(c, c->argc > 2, &g);

	if (!err)
		err = g.into ? into_dir(c, &g, one) : one(c, c->argv[0], &g);
	free(g.path);
	links_free(&c->links);
	return err;
}

int before_mv(struct call *c)
{
	if (c->exact && c->argc > 2)
		return tool_usage_error("-T: takes one source and one target");
	return 0;
}

int cmd_mv(struct call *c)
{
	return name_all(c, move_to);
}

int cmd_ln(struct call *c)
{
	return name_all(c, link_to);
}
