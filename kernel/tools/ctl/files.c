// SPDX-License-Identifier: Apache-2.0
/* Commands about names: cat, mkdir, rm. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"

/* --- cat ----------------------------------------------------------------------------------- */

static int put_hole(u64 end, u64 *pos, char *buf)
{
	size_t n;

	memset(buf, 0, SG_MIN(end - *pos, (u64)CTL_PIECE));
	for (; *pos < end; *pos += n) {
		n = SG_MIN(end - *pos, (u64)CTL_PIECE);
		if (fwrite(buf, 1, n, stdout) != n)
			return tool_output_error();
	}
	return 0;
}

/* Returns 1 if the file was truncated at the same time. */
static int put_piece(struct call *c, const char *path, const struct sg_iref *ref,
		     const struct piece *p, u64 *pos, char *buf)
{
	s64 n;

	for (; *pos < p->end; *pos += (u64)n) {
		n = sg_read(call_vol(c), ref, *pos, buf, SG_MIN(p->end - *pos, (u64)CTL_PIECE));
		if (n <= 0)
			return n ? path_error(path, (int)n) : 1;
		if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			return tool_output_error();
	}
	return 0;
}

static int cat_file(struct call *c, const char *path, char *buf)
{
	struct piece p = { 0 };
	struct sg_attr attr;
	struct sg_iref ref;
	u64 pos = 0;
	int more, err = path_find(call_vol(c), path, true, &ref, &attr);

	if (err)
		return err;
	if (S_ISDIR(attr.mode))
		return path_error(path, -EISDIR);
	if (!S_ISREG(attr.mode)) {
		tool_error("%s: is a %s, which has no content to show", path,
			   type_name(attr.mode));
		return -EINVAL;
	}
	c->taken = 0;	/* the user may name the same file twice */
	do {
		more = piece_next(c, path, &ref, attr.size, &p);
		err = more < 0 ? more : put_hole(more ? p.pos : attr.size, &pos, buf) ?:
		      more ? put_piece(c, path, &ref, &p, &pos, buf) : 0;
	} while (more > 0 && !err);
	return SG_MIN(err, 0);
}

int has_contents(struct call *c)
{
	if (!sg_is_image(call_vol(c)))
		return 0;
	tool_error("%s: is a metadata image, without contents of files", c->volume);
	return -EOPNOTSUPP;
}

int cmd_cat(struct call *c)
{
	char *buf = malloc(CTL_PIECE);
	int i, err = buf ? has_contents(c) : -ENOMEM;

	if (err) {
		free(buf);
		return err;
	}
	for (i = 0; i < c->argc && !ferror(stdout); i++) {
		int e = cat_file(c, c->argv[i], buf);

		err = err ? err : e;
	}
	free(buf);
	return err;
}

/* --- mkdir --------------------------------------------------------------------------------- */

static int make_dir(struct call *c, const char *path)
{
	struct sg_new new = { .mode = S_IFDIR | 0755, .uid = geteuid(), .gid = getegid(),
			      .now = (s64)sg_now() };
	struct sg_iref dir, ref;
	struct sg_attr attr;
	const char *name;
	u32 len;
	int err = path_seek(call_vol(c), path, true, &ref, &attr);

	if (!err)
		return c->parents && S_ISDIR(attr.mode) ? 0 : path_error(path, -EEXIST);
	err = path_parent(call_vol(c), path, &dir, &name, &len);
	if (err)
		return err;
	return path_error(path, sg_create(call_vol(c), &dir, name, len, &new, &ref));
}

static int make_parents(struct call *c, const char *path)
{
	char *copy = strdup(path), *slash;
	int err = copy ? 0 : -ENOMEM;

	for (slash = copy ? strchr(copy + 1, '/') : NULL; !err && slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (slash[1] && slash[-1] != '/')
			err = make_dir(c, copy);
		*slash = '/';
	}
	free(copy);
	return err;
}

int cmd_mkdir(struct call *c)
{
	int i, err = 0;

	for (i = 0; i < c->argc && !err; i++) {
		if (c->parents)
			err = make_parents(c, c->argv[i]);
		if (!err)
			err = make_dir(c, c->argv[i]);
	}
	return err;
}

/* --- rm ------------------------------------------------------------------------------------ */

static int remove_name(struct call *c, const struct sg_iref *dir, const char *name, u32 len,
		       const char *path, unsigned int depth);

static int remove_below(struct call *c, const struct sg_iref *dir, const char *path,
			unsigned int depth)
{
	struct listing l;
	char *below;
	size_t i;
	int err;

	if (!call_may_go_on(c))
		return -ELOOP;
	err = list_dir(call_vol(c), dir, path, &l);
	if (err)
		return err;
	for (i = 0; i < l.n && !err; i++) {
		if (asprintf(&below, "%s/%s", path, l.item[i].name) < 0)
			below = NULL;
		err = below ? remove_name(c, dir, l.item[i].name, l.item[i].len, below, depth + 1) :
			path_error(path, -ENOMEM);
		free(below);
	}
	list_free(&l);
	return err;
}

static int remove_name(struct call *c, const struct sg_iref *dir, const char *name, u32 len,
		       const char *path, unsigned int depth)
{
	struct sg_vol *vol = call_vol(c);
	struct sg_iref ref;
	unsigned int type;
	s64 now = (s64)sg_now();
	int err = sg_lookup(vol, dir, name, len, &ref, &type);

	if (!err && type == S_IFDIR >> 12) {
		if (!c->recursive)
			return needs_recursion(path);
		if (depth > DEPTH_MAX)
			return path_error(path, -ENAMETOOLONG);
		err = remove_below(c, &ref, path, depth);
		if (err)
			return err;
		err = sg_rmdir(vol, dir, name, len, now);
	} else if (!err) {
		err = sg_unlink(vol, dir, name, len, now);
	}
	if (!err)
		err = sg_evict(vol, &ref);
	return path_error(path, err);
}

static int remove_path(struct call *c, const char *path)
{
	size_t n = strlen(path);
	struct sg_iref dir;
	struct sg_attr attr;
	const char *name;
	u32 len;
	int err = path_parent(call_vol(c), path, &dir, &name, &len);

	if (!err && path[n - 1] == '/')	/* so the path does not name a file */
		err = path_find(call_vol(c), path, false, &(struct sg_iref){ 0 }, &attr);
	return err ? err : remove_name(c, &dir, name, len, path, 0);
}

int cmd_rm(struct call *c)
{
	int i, err = 0, e;

	for (i = 0; i < c->argc; i++) {
		e = remove_path(c, c->argv[i]);
		err = err ? err : e;
	}
	return err;
}
