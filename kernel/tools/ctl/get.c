// SPDX-License-Identifier: Apache-2.0
/*
 * get: files and trees out of a volume. Holes stay holes, and names of one file names of one file.
 *
 * The volume is a stranger's (D10): nothing of it may be followed or run by who copies it out. So
 * within a tree no symbolic link that is met outside is followed (a directory may hold a link and a
 * directory of one name), set-ID bits fall, and devices are not made.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"

static char buffer[CTL_PIECE];

static void times_of(const struct sg_attr *attr, struct timespec times[2])
{
	const s64 ns[2] = { attr->atime, attr->mtime };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		times[i].tv_sec = (time_t)(ns[i] / 1000000000);
		times[i].tv_nsec = (long)(ns[i] % 1000000000);
		if (times[i].tv_nsec < 0) {
			times[i].tv_nsec += 1000000000;
			times[i].tv_sec--;
		}
	}
}

/* --- files --------------------------------------------------------------------------------- */

static int write_out(int fd, const char *data, size_t len, s64 pos, const char *to)
{
	ssize_t n;

	for (; len; data += n, pos += n, len -= (size_t)n) {
		n = pwrite(fd, data, len, (off_t)pos);
		if (n < 0)
			return outside_error(to);
	}
	return 0;
}

static int get_data(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr, int fd,
		    const char *to)
{
	s64 pos = 0, end, n;
	int err;

	while ((pos = sg_seek(call_vol(c), ref, (u64)pos, false)) >= 0 && (u64)pos < attr->size) {
		end = sg_seek(call_vol(c), ref, (u64)pos, true);
		end = end < 0 ? (s64)attr->size : SG_MIN(end, (s64)attr->size);
		for (; pos < end; pos += n) {
			n = sg_read(call_vol(c), ref, (u64)pos, buffer,
				    SG_MIN((u64)(end - pos), (u64)CTL_PIECE));
			if (n <= 0)
				return path_error(to, n ? (int)n : -EIO);
			err = write_out(fd, buffer, (size_t)n, pos, to);
			if (err)
				return err;
		}
	}
	return pos < 0 && pos != -ENXIO ? path_error(to, (int)pos) : 0;
}

static int get_file(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		    const char *to, unsigned int depth)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (depth ? O_NOFOLLOW : 0);
	int fd = open(to, flags, 0600), err;
	struct timespec times[2];

	if (fd < 0)
		return outside_error(to);
	times_of(attr, times);
	err = get_data(c, ref, attr, fd, to);
	if (!err && (ftruncate(fd, (off_t)attr->size) || fchmod(fd, attr->mode & 01777) ||
		     futimens(fd, times)))
		err = outside_error(to);
	if (close(fd) && !err)
		err = outside_error(to);
	return err;
}

static int get_link(struct call *c, const struct sg_iref *ref, const char *to)
{
	char target[SG_SYMLINK_MAX + 1];
	int n = sg_readlink(call_vol(c), ref, target, SG_SYMLINK_MAX);

	if (n < 0)
		return path_error(to, n);
	target[SG_MIN(n, SG_SYMLINK_MAX)] = 0;
	return symlink(target, to) ? outside_error(to) : 0;
}

static int get_special(const struct sg_attr *attr, const char *to)
{
	if (S_ISFIFO(attr->mode) || S_ISSOCK(attr->mode))
		return mknod(to, attr->mode & ~07000u, 0) ? outside_error(to) : 0;
	tool_error("%s: is a %s; devices are not taken out of a volume", to, type_name(attr->mode));
	return -EPERM;
}

/* "TO/NAME", without a second slash where TO ends with some. */
static int name_inside(const char *to, const char *name, char **out)
{
	const char *slash = to[strlen(to) - 1] == '/' ? "" : "/";

	return asprintf(out, "%s%s%s", to, slash, name) < 0 ? path_error(to, -ENOMEM) : 0;
}

/* --- trees --------------------------------------------------------------------------------- */

static int get_any(struct call *c, const struct sg_iref *ref, const char *to, unsigned int depth);

/* 1: made; 0: it was there. */
static int outside_dir(const char *to, unsigned int depth)
{
	struct stat st;

	if (!mkdir(to, 0700))
		return 1;
	if (errno != EEXIST || (depth ? lstat(to, &st) : stat(to, &st)))
		return outside_error(to);
	errno = ENOTDIR;
	return S_ISDIR(st.st_mode) ? 0 : outside_error(to);
}

static int get_below(struct call *c, const struct listing *l, const char *to, unsigned int depth)
{
	int err = 0, e;
	size_t i;

	for (i = 0; i < l->n && err != -ELOOP; i++) {
		struct sg_iref child;
		char *path;

		e = name_inside(to, l->item[i].name, &path);
		if (e)
			return e;
		e = sg_iref(call_vol(c), l->item[i].ino, &child);
		e = e ? path_error(path, e) : get_any(c, &child, path, depth + 1);
		err = err ? err : e;
		free(path);
	}
	return err;
}

/* A directory that was there keeps its mode, as with cp. */
static int get_dir(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		   const char *to, unsigned int depth)
{
	struct timespec times[2];
	struct listing l;
	int err, made;

	if (!c->recursive)
		return needs_recursion(c->argv[0]);
	if (depth > DEPTH_MAX || !call_may_go_on(c))
		return depth > DEPTH_MAX ? path_error(to, -ENAMETOOLONG) : -ELOOP;
	made = outside_dir(to, depth);
	if (made < 0)
		return made;
	err = list_dir(call_vol(c), ref, to, &l);
	if (err)
		return err;
	err = get_below(c, &l, to, depth);
	err = err ? err : l.missing;
	list_free(&l);
	times_of(attr, times);
	if (made && (chmod(to, attr->mode & 01777) || utimensat(AT_FDCWD, to, times, 0)))
		return err ? err : outside_error(to);
	return err;
}

/* What is no file cannot be overwritten: one of the same kind makes way. */
static void make_way(const char *to, u32 mode)
{
	struct stat st;

	if (!lstat(to, &st) && (st.st_mode & S_IFMT) == (mode & S_IFMT))
		unlink(to);
}

static int get_inode(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		     const char *to, unsigned int depth)
{
	struct timespec times[2];
	int err;

	if (S_ISREG(attr->mode))
		return get_file(c, ref, attr, to, depth);
	make_way(to, attr->mode);
	err = S_ISLNK(attr->mode) ? get_link(c, ref, to) : get_special(attr, to);
	times_of(attr, times);
	if (!err && utimensat(AT_FDCWD, to, times, AT_SYMLINK_NOFOLLOW))
		err = outside_error(to);
	return err;
}

static int get_any(struct call *c, const struct sg_iref *ref, const char *to, unsigned int depth)
{
	struct link_seen this = { .ino = ref->ino, .path = (char *)to };
	const struct link_seen *seen;
	struct sg_attr attr;
	int err = sg_getattr(call_vol(c), ref, &attr);

	if (err)
		return path_error(to, err);
	if (S_ISDIR(attr.mode))
		return get_dir(c, ref, &attr, to, depth);
	seen = attr.nlink > 1 ? links_find(&c->links, 0, ref->ino) : NULL;
	if (seen && ((unlink(to) && errno != ENOENT) || link(seen->path, to)))
		return outside_error(to);
	if (seen)
		return 0;
	err = get_inode(c, ref, &attr, to, depth);
	if (!err && attr.nlink > 1)
		err = path_error(to, links_add(&c->links, &this));
	return err;
}

/* --- the command --------------------------------------------------------------------------- */

/* Under which name it comes out when none is given, or NULL. */
static const char *own_name(const char *path)
{
	const char *name = last_name(path);

	if (*name == '<' || !*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return NULL;
	return name;
}

int cmd_get(struct call *c)
{
	char *from = without_slashes(c->argv[0]), *inside = NULL;
	const char *name = from ? own_name(from) : NULL, *to = c->argc > 1 ? c->argv[1] : name;
	struct sg_attr attr;
	struct sg_iref ref;
	struct stat st;
	int err = from ? 0 : -ENOMEM;

	if (err || (!to || !*to || !strcmp(to, "-"))) {
		tool_error("%s: %s", c->argv[0], err ? strerror(-err) : !to || !*to ?
			   "say where to: get VOLUME PATH TO" : "for standard output use cat");
		err = -EINVAL;
	}
	if (!err)
		err = path_find(call_vol(c), c->argv[0], true, &ref, &attr);
	/* as cp: into a directory that is there */
	if (!err && name && !stat(to, &st) && S_ISDIR(st.st_mode))
		err = name_inside(to, name, &inside);
	if (!err)
		err = get_any(c, &ref, inside ? inside : to, 0);
	links_free(&c->links);
	free(inside);
	free(from);
	return err;
}
