// SPDX-License-Identifier: Apache-2.0
/*
 * put --tar: copies the content of a tar archive into a volume, with owners, modes, times, extended
 * attributes, ACLs and flags. It uses the owners' numbers, not their names.
 *
 * The archive is untrusted: put makes names only below the given directory, and follows no symbolic
 * link. It checks each length in the archive against the bytes that exist.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tar_read.h"

/**
 * struct finish - attributes that put sets at the end: those of a directory, after its content; and
 * flags of any inode, because flags may forbid changes.
 */
struct finish {
	struct sg_iref ref;
	s64 mtime, atime;
	u32 flags;
	struct finish *next;
};

/*
 * struct put - an archive in progress. @top: the directory above all names. @finish: attributes to
 * set at the end.
 */
struct put {
	struct call *c;
	struct tar_reader in;
	struct sg_iref top;
	struct finish *finish;
};

static struct tar_reader opened;	/* by before_tar_put() */

/* --- the target of an entry ------------------------------------------------------------------ */

static int entry_error(const struct put *p, const struct tar_entry *e, const char *what)
{
	tool_error("%s: %s: %s", p->in.path, e->path, what);
	return -EINVAL;
}

static int make_parent(struct put *p, const struct sg_iref *dir, const char *name, u32 len,
		       struct sg_iref *out)
{
	struct sg_new new = { .mode = S_IFDIR | 0755, .uid = geteuid(), .gid = getegid(),
			      .now = (s64)sg_now() };

	return sg_create(call_vol(p->c), dir, name, len, &new, out);
}

/*
 * Finds the directory and the last name of @path; with *len 0 it is the top itself. With @make,
 * creates missing directories.
 */
static int find_parent(struct put *p, const struct tar_entry *e, const char *path, bool make,
		       struct sg_iref *dir, const char **name, u32 *len)
{
	unsigned int type, depth = 0;
	struct sg_iref next;
	int err;

	*dir = p->top;
	*len = 0;
	for (;;) {
		path += strspn(path, "/");
		if (path[0] == '.' && (!path[1] || path[1] == '/')) {
			path++;
			continue;
		}
		if (!*path)
			return 0;
		if (*len) {	/* the previous name was a directory of the path */
			err = sg_lookup(call_vol(p->c), dir, *name, *len, &next, &type);
			if (err == -ENOENT && make) {
				err = make_parent(p, dir, *name, *len, &next);
				type = S_IFDIR >> 12;
			}
			if (err)
				return path_error(e->path, err);
			if (type != S_IFDIR >> 12)
				return entry_error(p, e, "a part of its path is not a directory in the volume");
			*dir = next;
		}
		*name = path;
		*len = (u32)strcspn(path, "/");
		if (*len == 2 && !memcmp(path, "..", 2))
			return entry_error(p, e, "names with \"..\" are not followed");
		if (*len > SG_NAME_MAX || ++depth > DEPTH_MAX)
			return path_error(e->path, -ENAMETOOLONG);
		path += *len;
	}
}

/* --- attributes ------------------------------------------------------------------------------ */

static int later(struct put *p, const struct tar_entry *e, const struct sg_iref *ref)
{
	struct finish *f = malloc(sizeof(*f));

	if (!f)
		return path_error(e->path, -ENOMEM);
	*f = (struct finish){ *ref, e->mtime, e->atime, e->flags, p->finish };
	p->finish = f;
	return 0;
}

static int finish_all(struct put *p)
{
	struct sg_attr attr;
	struct finish *f;
	int err = 0, e;

	while ((f = p->finish)) {
		e = sg_touch(call_vol(p->c), &f->ref, SG_SET_MTIME | SG_SET_ATIME, f->mtime,
			     0, f->atime);
		if (!e && f->flags) {
			attr = (struct sg_attr){ .flags = f->flags };
			e = sg_setattr(call_vol(p->c), &f->ref, SG_SET_FLAGS, &attr);
		}
		err = err ? err : path_error(p->in.path, e);
		p->finish = f->next;
		free(f);
	}
	return err;
}

static void describe(const struct tar_entry *e, u32 type, struct sg_new *new)
{
	*new = (struct sg_new){ .mode = type | e->mode, .uid = e->uid, .gid = e->gid,
				.rdev = e->rdev, .now = (s64)sg_now() };
	if (e->xattrs.len) {
		new->xattrs = e->xattrs.data;
		new->xattrs_len = e->xattrs.len;
	}
}

/*
 * Sets attributes of an existing directory: those in the archive replace its own, and other
 * attributes remain.
 */
static int set_all(struct put *p, const struct tar_entry *e, const struct sg_iref *ref)
{
	struct sg_attr attr = { .mode = S_IFDIR | e->mode, .uid = e->uid, .gid = e->gid };
	struct sg_vol *vol = call_vol(p->c);
	s64 now = (s64)sg_now();
	u32 at = 0;
	int err = 0;

	/* Removes an ACL that the archive does not have, because it would still apply. */
	sg_xattr_set(vol, ref, SG_XATTR_ACL_ACCESS, "", 0, NULL, 0, 0, now);
	sg_xattr_set(vol, ref, SG_XATTR_ACL_DEFAULT, "", 0, NULL, 0, 0, now);
	while (at < e->xattrs.len && !err) {
		const struct sg_xattr_entry *x = (const void *)((const u8 *)e->xattrs.data + at);

		err = sg_xattr_set(vol, ref, x->space, (const char *)x->name, x->name_len,
				   x->name + x->name_len, x->value_len, 0, now);
		at += (u32)SG_ALIGN_UP(sizeof(*x) + x->name_len + x->value_len, 8);
	}
	err = err ?: sg_setattr(vol, ref, SG_SET_MODE | SG_SET_UID | SG_SET_GID, &attr);
	return path_error(e->path, err);
}

/* --- the entries ----------------------------------------------------------------------------- */

static int put_dir(struct put *p, const struct tar_entry *e, const struct sg_iref *dir,
		   const char *name, u32 len)
{
	struct sg_iref ref = p->top;
	unsigned int type = S_IFDIR >> 12;
	struct sg_new new;
	int err = len ? sg_lookup(call_vol(p->c), dir, name, len, &ref, &type) : 0;

	if (!err && type != S_IFDIR >> 12)
		return entry_error(p, e, "the volume has an object of another kind with that name");
	if (err == -ENOENT) {
		describe(e, S_IFDIR, &new);
		err = path_error(e->path, sg_create(call_vol(p->c), dir, name, len, &new, &ref));
	} else {
		err = err ? path_error(e->path, err) : set_all(p, e, &ref);
	}
	return err ?: later(p, e, &ref);
}

static int put_data(struct put *p, const struct sg_iref *ref, const struct tar_entry *e, u64 pos,
		    u64 len)
{
	static char buffer[CTL_PIECE];
	size_t piece, done;
	s64 n;
	int err;

	for (; len; len -= piece, pos += piece) {
		piece = (size_t)SG_MIN(len, (u64)CTL_PIECE);
		err = tar_read_data(&p->in, buffer, piece);
		for (done = 0; !err && done < piece; done += (size_t)n) {
			n = sg_write(call_vol(p->c), ref, pos + done, buffer + done, piece - done,
				     (s64)sg_now());
			if (n <= 0)
				return path_error(e->path, n ? (int)n : -ENOSPC);
		}
		err = err ?: path_error(e->path, device_relieve(&p->c->m.target, piece));
		if (err)
			return err;
	}
	return 0;
}

static int put_contents(struct put *p, const struct sg_iref *ref, const struct tar_entry *e)
{
	int err = e->sparse ? 0 : put_data(p, ref, e, 0, e->size);
	size_t i;

	for (i = 0; e->sparse && !err && i < e->pieces; i++)
		err = put_data(p, ref, e, e->piece[i].pos, e->piece[i].len);
	return err ?: path_error(e->path, sg_resize(call_vol(p->c), ref,
						    e->sparse ? e->real_size : e->size,
						    (s64)sg_now()));
}

/* Makes a new file, which gets its name when it is complete. */
static int put_new(struct put *p, const struct tar_entry *e, u32 type, const struct place *at)
{
	struct sg_iref ref;
	struct sg_new new;
	int err;

	describe(e, type, &new);
	if (sg_is_atomic(call_vol(p->c), &at->dir))
		new.flags = SG_FL_ATOMIC;
	if (S_ISLNK(type)) {
		new.target = e->link;
		new.target_len = (u32)strlen(e->link);
		if (!new.target_len || new.target_len > SG_SYMLINK_MAX)
			return path_error(e->path, new.target_len ? -ENAMETOOLONG : -EINVAL);
	}
	err = path_error(e->path, sg_tmpfile(call_vol(p->c), &new, &ref));
	if (err)
		return err;
	if (S_ISREG(type))
		err = put_contents(p, &ref, e);
	if (!err)
		err = path_error(e->path, sg_touch(call_vol(p->c), &ref,
						   SG_SET_MTIME | SG_SET_ATIME,
						   e->mtime, 0, e->atime));
	err = err ?: path_error(e->path, place_give(p->c, at, &ref));
	if (sg_close_inode(call_vol(p->c), &ref))
		sg_evict(call_vol(p->c), &ref);
	return err ?: e->flags ? later(p, e, &ref) : 0;
}

static int find_linked(struct put *p, const struct tar_entry *e, struct sg_iref *ref, u32 *mode)
{
	struct sg_attr attr;
	struct sg_iref dir;
	const char *name;
	u32 len;
	int err = find_parent(p, e, e->link, false, &dir, &name, &len);

	if (err)
		return err;
	if (!len)
		return entry_error(p, e, "is a link to a directory, which volumes do not have");
	err = sg_lookup(call_vol(p->c), &dir, name, len, ref, NULL) ?:
	      sg_getattr(call_vol(p->c), ref, &attr);
	if (err)
		return path_error(e->path, err);
	*mode = attr.mode;
	return S_ISDIR(attr.mode) ? entry_error(p, e, "is a link to a directory, which volumes do not have") : 0;
}

static u32 mode_of(char type)
{
	switch (type) {
	case '0': case '7': return S_IFREG;
	case '2': return S_IFLNK;
	case '3': return S_IFCHR;
	case '4': return S_IFBLK;
	case '5': return S_IFDIR;
	case '6': return S_IFIFO;
	}
	return 0;
}

static int put_entry(struct put *p, const struct tar_entry *e)
{
	u32 len, type = mode_of(e->type);
	struct sg_iref dir, linked;
	char name[SG_NAME_MAX + 1];
	const char *last;
	struct place at;
	int err;

	if (!type && e->type != '1')
		return entry_error(p, e, "has an unknown type; make the archive by "
				   "tar --format=posix");
	err = find_parent(p, e, e->path, true, &dir, &last, &len);
	if (!err && e->type == '1')
		err = find_linked(p, e, &linked, &type);
	if (err)
		return err;
	if (S_ISDIR(type))
		return put_dir(p, e, &dir, last, len);
	if (!len)
		return entry_error(p, e, "is not a directory");
	memcpy(name, last, len);
	name[len] = 0;
	err = place_look(p->c, &dir, name, type, e->path, &at);
	if (err)
		return err;
	return e->type == '1' ? path_error(e->path, place_give(p->c, &at, &linked)) :
	       put_new(p, e, type, &at);
}

/* --- the command ----------------------------------------------------------------------------- */

static bool hopeless(int err)
{
	return err == -ENOSPC || err == -EIO || err == -EUCLEAN || err == -EROFS || err == -ENOMEM;
}

/*
 * Reads the first header before it opens the volume. So a file that is not an archive changes
 * nothing.
 */
int before_tar_put(struct call *c)
{
	return tar_open(&opened, c->argv[0]) ? 1 : 0;
}

int tar_put(struct call *c)
{
	const char *path = c->argc > 1 ? c->argv[1] : "/";
	static struct tar_entry e;
	struct put p = { .c = c };
	struct sg_attr attr;
	int err = path_find(call_vol(c), path, true, &p.top, &attr), now;

	if (!err && !S_ISDIR(attr.mode))
		err = path_error(path, -ENOTDIR);
	if (err)
		return err;
	p.in = opened;
	while (!hopeless(err) && !p.in.broken && (now = tar_next(&p.in, &e)) != TAR_END) {
		now = now ? now : put_entry(&p, &e) ?: e.said;
		err = !err || hopeless(now) ? now : err;
	}
	now = finish_all(&p);
	tar_forget(&e);
	tar_close(&p.in);
	return err ? err : now;
}
