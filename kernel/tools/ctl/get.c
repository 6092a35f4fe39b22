// SPDX-License-Identifier: Apache-2.0
/*
 * get: copies files and trees out of a volume. It keeps holes and hard links.
 *
 * The volume is untrusted (D10), so this system must not follow a link or run a program from it. So
 * within a tree, get follows no symbolic link of this system, because a directory of the volume may
 * contain a link and a directory with the same name. It clears set-ID bits, and makes no devices.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"
#include "outside.h"
#include "tar.h"

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

static int get_piece(struct call *c, const struct sg_iref *ref, const struct piece *p, int fd,
		     const char *to)
{
	u64 pos = p->pos;
	int err;
	s64 n;

	for (; pos < p->end; pos += (u64)n) {
		n = sg_read(call_vol(c), ref, pos, buffer, SG_MIN(p->end - pos, (u64)CTL_PIECE));
		if (n <= 0)
			return path_error(to, n ? (int)n : -EIO);
		err = write_out(fd, buffer, (size_t)n, (s64)pos, to);
		if (err)
			return err;
	}
	return 0;
}

static int get_data(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr, int fd,
		    const char *to)
{
	struct piece p = { 0 };
	int err, more;

	do {
		more = piece_next(c, to, ref, attr->size, &p);
		err = more > 0 ? get_piece(c, ref, &p, fd, to) : more;
	} while (more > 0 && !err);
	return err;
}

/*
 * Overwrites an existing file, as cp does. Another user may have the file open, or may have set a
 * set-ID bit. So get first removes the access of all users but the owner, and then writes. It does
 * not open other types: opening a FIFO would wait, and opening a device could trigger an action.
 */
static int open_file(const struct outside *to, struct stat *made)
{
	int fd = openat(to->at, to->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
			(to->follow ? 0 : O_NOFOLLOW), 0600);
	int err = 0;

	if (fd < 0 && errno != ENXIO)
		return outside_error(to->path);
	if (fd < 0 || (!fstat(fd, made) && !S_ISREG(made->st_mode))) {
		tool_error("%s: exists, and is not a file", to->path);
		err = -EEXIST;
	} else if (fchmod(fd, 0600) || ftruncate(fd, 0)) {
		err = outside_error(to->path);
	}
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int get_file(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		    const struct outside *to, struct stat *made)
{
	int fd = open_file(to, made), err;
	struct timespec times[2];

	if (fd < 0)
		return fd;
	times_of(attr, times);
	err = get_data(c, ref, attr, fd, to->path);
	if (!err && (ftruncate(fd, (off_t)attr->size) || fchmod(fd, attr->mode & 01777) ||
		     futimens(fd, times)))
		err = outside_error(to->path);
	if (close(fd) && !err)
		err = outside_error(to->path);
	return err;
}

/* --- neither file nor directory ------------------------------------------------------------ */

static int get_link(struct call *c, const struct sg_iref *ref, const struct outside *to)
{
	char target[SG_SYMLINK_MAX + 1];
	int n = sg_readlink(call_vol(c), ref, target, SG_SYMLINK_MAX);

	if (n < 0)
		return path_error(to->path, n);
	target[SG_MIN(n, SG_SYMLINK_MAX)] = 0;
	return symlinkat(target, to->at, to->name) ? outside_error(to->path) : 0;
}

static int get_special(const struct sg_attr *attr, const struct outside *to)
{
	if (S_ISFIFO(attr->mode) || S_ISSOCK(attr->mode))
		return mknodat(to->at, to->name, attr->mode & ~07000u, 0) ?
		       outside_error(to->path) : 0;
	tool_error("%s: is a %s; devices are not copied out of a volume", to->path,
		   type_name(attr->mode));
	return -EPERM;
}

/*
 * An object that is neither file nor directory cannot be overwritten: get removes an existing
 * object of the same kind.
 */
static void make_way(const struct outside *to, u32 mode)
{
	struct stat st;

	if (!fstatat(to->at, to->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    (st.st_mode & S_IFMT) == (mode & S_IFMT))
		unlinkat(to->at, to->name, 0);
}

/* Sets the times of the new object, unless another object has replaced it. */
static int set_times(const struct outside *to, const struct sg_attr *attr, struct stat *made)
{
	int fd = openat(to->at, to->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct timespec times[2];

	if (fd < 0 || fstat(fd, made)) {
		err = outside_error(to->path);
	} else if ((made->st_mode & S_IFMT) != (attr->mode & S_IFMT) ||
		   made->st_uid != geteuid() || made->st_nlink != 1) {
		err = outside_exchanged(to);
	} else {
		times_of(attr, times);
		if (utimensat(fd, "", times, AT_EMPTY_PATH))
			err = outside_error(to->path);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int get_other(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		     const struct outside *to, struct stat *made)
{
	int err;

	make_way(to, attr->mode);
	err = S_ISLNK(attr->mode) ? get_link(c, ref, to) : get_special(attr, to);
	return err ? err : set_times(to, attr, made);
}

/* --- trees --------------------------------------------------------------------------------- */

static int get_any(struct call *c, const struct sg_iref *ref, const struct outside *to);

/* Makes the directory, or opens an existing one. *made: whether this call made it. The caller
 * closes the returned descriptor. */
static int outside_dir(const struct outside *to, bool *made)
{
	struct stat st;
	int fd;

	*made = !mkdirat(to->at, to->name, 0700);
	if (!*made && errno != EEXIST)
		return outside_error(to->path);
	/* O_PATH, because the user may not have permission to read an existing directory. */
	fd = outside_open(to, O_DIRECTORY | (*made ? O_RDONLY : O_PATH), NULL);
	if (fd < 0 || !*made || (!fstat(fd, &st) && st.st_uid == geteuid()))
		return fd;
	close(fd);
	return outside_exchanged(to);
}

static int get_below(struct call *c, const struct listing *l, const struct outside *to, int dir)
{
	struct outside below;
	int err = 0, e;
	size_t i;

	for (i = 0; i < l->n && err != -ELOOP; i++) {
		struct sg_iref child;

		e = outside_below(&below, to, dir, l->item[i].name);
		if (e)
			return e;
		e = sg_iref(call_vol(c), l->item[i].ino, &child);
		e = e ? path_error(below.path, e) : get_any(c, &child, &below);
		err = err ? err : e;
		outside_free(&below);
	}
	return err;
}

/*
 * Copies the content of a directory, then its attributes if get has made it. An existing directory
 * keeps its attributes.
 */
static int fill_dir(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		    const struct outside *to, int dir, bool made)
{
	struct timespec times[2];
	struct listing l;
	int err = list_dir(call_vol(c), ref, to->path, &l);

	if (err)
		return err;
	err = get_below(c, &l, to, dir);
	err = err ? err : l.missing;
	list_free(&l);
	times_of(attr, times);
	if (made && (fchmod(dir, attr->mode & 01777) || futimens(dir, times)))
		return err ? err : outside_error(to->path);
	return err;
}

static int get_dir(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		   const struct outside *to)
{
	bool made;
	int dir, err;

	if (!c->recursive)
		return needs_recursion(c->argv[0]);
	if (to->depth > DEPTH_MAX)
		return path_error(to->path, -ENAMETOOLONG);
	dir = outside_dir(to, &made);
	if (dir < 0)
		return dir;
	if (!to->depth) {
		c->top = dir;
		c->below = strlen(to->path) + (to->path[strlen(to->path) - 1] != '/');
	}
	err = fill_dir(c, ref, attr, to, dir, made);
	close(dir);
	return err;
}

/*
 * Makes one more name of the copied file. Does nothing if another file has replaced the copy.
 */
static int get_again(struct call *c, const struct link_seen *seen, const struct outside *to)
{
	const char *path = seen->path + c->below, *name = last_name(path);
	int dir = outside_walk(c->top, path, (size_t)(name - path)), err = 0;
	struct stat st;

	if (dir < 0)
		return path_error(to->path, dir);
	if ((unlinkat(to->at, to->name, 0) && errno != ENOENT) ||
	    linkat(dir, name, to->at, to->name, 0) ||
	    fstatat(to->at, to->name, &st, AT_SYMLINK_NOFOLLOW)) {
		err = outside_error(to->path);
	} else if (!outside_same(&st, &seen->made)) {
		unlinkat(to->at, to->name, 0);
		err = outside_exchanged(to);
	}
	close(dir);
	return err;
}

static int get_any(struct call *c, const struct sg_iref *ref, const struct outside *to)
{
	struct link_seen this = { .ino = ref->ino, .path = to->path };
	const struct link_seen *seen;
	struct sg_attr attr;
	int err = sg_getattr(call_vol(c), ref, &attr);

	if (err)
		return path_error(to->path, err);
	if (S_ISDIR(attr.mode) || attr.nlink <= 1)
		err = tree_meet(c, to->path, ref->ino);
	if (err)
		return err;
	if (S_ISDIR(attr.mode))
		return get_dir(c, ref, &attr, to);
	seen = attr.nlink > 1 ? links_find(&c->links, 0, ref->ino) : NULL;
	if (seen)
		return get_again(c, seen, to);
	err = S_ISREG(attr.mode) ? get_file(c, ref, &attr, to, &this.made) :
	      get_other(c, ref, &attr, to, &this.made);
	if (!err && attr.nlink > 1 && to->depth)
		err = path_error(to->path, links_add(&c->links, &this));
	return err;
}

/* --- the command --------------------------------------------------------------------------- */

/* Returns the name of the copy if the user gives none, or NULL. */
static const char *own_name(const char *path)
{
	const char *name = last_name(path);

	if (*name == '<' || !*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return NULL;
	return name;
}

/* If @to is an existing directory, the copy goes into it, as with cp. */
static int get_into(struct call *c, const struct sg_iref *ref, const char *name, char *to)
{
	struct outside dir = outside_named(AT_FDCWD, to, to, true), inside;
	int fd = outside_open(&dir, O_PATH | O_DIRECTORY, NULL), err;

	if (fd < 0)
		return fd;
	err = outside_below(&inside, &dir, fd, name);
	if (!err) {
		inside.depth = 0;
		err = get_any(c, ref, &inside);
		outside_free(&inside);
	}
	close(fd);
	return err;
}

static int get(struct call *c)
{
	char *from = without_slashes(c->argv[0]), *to = c->argc > 1 ? c->argv[1] : NULL;
	const char *name = from ? own_name(from) : NULL;
	struct outside top;
	struct sg_attr attr;
	struct sg_iref ref;
	struct stat st;
	int err = from ? 0 : -ENOMEM;

	outside_many();
	to = to ? to : (char *)name;
	if (err || (!to || !*to || !strcmp(to, "-"))) {
		tool_error("%s: %s", c->argv[0], err ? strerror(-err) : !to || !*to ?
			   "name the target: get VOLUME PATH TO" : "to write to standard output, use cat");
		err = -EINVAL;
	}
	if (!err)
		err = path_find(call_vol(c), c->argv[0], true, &ref, &attr);
	if (!err) {
		top = outside_named(AT_FDCWD, to, to, true);
		if (name && !stat(to, &st) && S_ISDIR(st.st_mode))
			err = get_into(c, &ref, name, to);
		else
			err = get_any(c, &ref, &top);
	}
	links_free(&c->links);
	free(from);
	return err;
}

int cmd_get(struct call *c)
{
	return has_contents(c) ?: c->tar ? tar_get(c) : get(c);
}
