// SPDX-License-Identifier: Apache-2.0
/* Files and trees out of a volume and into it: get, put. Holes stay holes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"

#define PIECE		(1u << 20)
#define DEPTH_MAX	1024

static char buffer[PIECE];

static char *join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int outside_error(const char *path)
{
	tool_error("%s: %s", path, strerror(errno));
	return -errno;
}

static struct timespec timespec_of(s64 ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	if (t.tv_nsec < 0) {
		t.tv_nsec += 1000000000;
		t.tv_sec--;
	}
	return t;
}

/* --- get ----------------------------------------------------------------------------------- */

static int get_data(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr, int fd,
		    const char *to)
{
	s64 pos = 0, end, n;

	while ((pos = sg_seek(call_vol(c), ref, (u64)pos, false)) >= 0 && (u64)pos < attr->size) {
		end = sg_seek(call_vol(c), ref, (u64)pos, true);
		end = end < 0 ? (s64)attr->size : SG_MIN(end, (s64)attr->size);
		for (; pos < end; pos += n) {
			n = sg_read(call_vol(c), ref, (u64)pos, buffer,
				    SG_MIN((u64)(end - pos), (u64)PIECE));
			if (n <= 0)
				return path_error(to, n ? (int)n : -EIO);
			if (pwrite(fd, buffer, (size_t)n, pos) != n)
				return outside_error(to);
		}
	}
	return pos < 0 && pos != -ENXIO ? path_error(to, (int)pos) : 0;
}

static int get_file(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		    const char *to)
{
	struct timespec times[2] = { timespec_of(attr->atime), timespec_of(attr->mtime) };
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return outside_error(to);
	err = get_data(c, ref, attr, fd, to);
	if (!err && (ftruncate(fd, (off_t)attr->size) || fchmod(fd, attr->mode & 07777) ||
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

static int get_any(struct call *c, const struct sg_iref *ref, const char *to, unsigned int depth);

static int get_dir(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr,
		   const char *to, unsigned int depth)
{
	struct listing l;
	int err, e;
	size_t i;

	if (!c->recursive || depth > DEPTH_MAX)
		return path_error(to, -EISDIR);
	if (!call_may_go_on(c))
		return -ELOOP;
	if (mkdir(to, 0700) && errno != EEXIST)
		return outside_error(to);
	err = list_dir(call_vol(c), ref, &l);
	if (err)
		return path_error(to, err);
	for (i = 0; i < l.n && err != -ELOOP; i++) {
		struct sg_iref child;
		char *path = join(to, l.item[i].name);

		e = path ? sg_iref(call_vol(c), l.item[i].ino, &child) : -ENOMEM;
		e = e ? path_error(l.item[i].name, e) : get_any(c, &child, path, depth + 1);
		err = err ? err : e;
		free(path);
	}
	list_free(&l);
	if (chmod(to, attr->mode & 07777))
		return outside_error(to);
	return err;
}

static int get_any(struct call *c, const struct sg_iref *ref, const char *to, unsigned int depth)
{
	struct sg_attr attr;
	int err = sg_getattr(call_vol(c), ref, &attr);

	if (err)
		return path_error(to, err);
	if (S_ISREG(attr.mode))
		return get_file(c, ref, &attr, to);
	if (S_ISDIR(attr.mode))
		return get_dir(c, ref, &attr, to, depth);
	if (S_ISLNK(attr.mode))
		return get_link(c, ref, to);
	if (mknod(to, attr.mode, (dev_t)attr.special))
		return outside_error(to);
	return 0;
}

int cmd_get(struct call *c)
{
	const char *to = c->argc > 1 ? c->argv[1] : last_name(c->argv[0]);
	struct sg_attr attr;
	struct sg_iref ref;
	struct stat st;
	char *inside = NULL;
	int err = path_find(call_vol(c), c->argv[0], true, &ref, &attr);

	if (err)
		return err;
	/* as cp: into a directory that is there */
	if (!stat(to, &st) && S_ISDIR(st.st_mode) && strcmp(c->argv[0], "/")) {
		inside = join(to, last_name(c->argv[0]));
		if (!inside)
			return path_error(to, -ENOMEM);
	}
	err = get_any(c, &ref, inside ? inside : to, 0);
	free(inside);
	return err;
}

/* --- put ----------------------------------------------------------------------------------- */

static int put_data(struct call *c, const struct sg_iref *ref, int fd, off_t size, const char *from)
{
	off_t pos = 0, end;
	s64 done;
	ssize_t n;

	while (pos < size && (pos = lseek(fd, pos, SEEK_DATA)) >= 0) {
		end = lseek(fd, pos, SEEK_HOLE);
		for (end = end < 0 ? size : end; pos < end; pos += n) {
			n = pread(fd, buffer, (size_t)SG_MIN(end - pos, (off_t)PIECE), pos);
			if (n <= 0)
				return n ? outside_error(from) : 0;
			done = sg_write(call_vol(c), ref, (u64)pos, buffer, (u64)n,
					(s64)sg_now());
			if (done != n)
				return path_error(from, done < 0 ? (int)done : -ENOSPC);
		}
	}
	return pos < 0 && errno != ENXIO ? outside_error(from) : 0;
}

/* A pipe, or what else cannot be sought in: to its end. */
static int put_stream(struct call *c, const struct sg_iref *ref, int fd, const char *from)
{
	u64 pos = 0;
	s64 done;
	ssize_t n;

	while ((n = read(fd, buffer, PIECE)) > 0) {
		done = sg_write(call_vol(c), ref, pos, buffer, (u64)n, (s64)sg_now());
		if (done != n)
			return path_error(from, done < 0 ? (int)done : -ENOSPC);
		pos += (u64)n;
	}
	return n ? outside_error(from) : 0;
}

static int put_file(struct call *c, const struct sg_iref *ref, const struct stat *st,
		    const char *from)
{
	s64 mtime = (s64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	int fd = strcmp(from, "-") ? open(from, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO), err;
	bool regular = S_ISREG(st->st_mode);

	if (fd < 0)
		return outside_error(from);
	err = sg_resize(call_vol(c), ref, 0, (s64)sg_now());
	if (err)
		path_error(from, err);
	else if (regular)
		err = put_data(c, ref, fd, st->st_size, from);
	else
		err = put_stream(c, ref, fd, from);
	if (!err && regular)
		err = path_error(from, sg_resize(call_vol(c), ref, (u64)st->st_size,
						 (s64)sg_now()));
	if (!err && regular)
		err = path_error(from, sg_touch(call_vol(c), ref, SG_SET_MTIME, mtime, 0, 0));
	close(fd);
	return err;
}

static int put_any(struct call *c, const struct sg_iref *dir, const char *name, const char *from,
		   unsigned int depth);

static int put_dir(struct call *c, const struct sg_iref *ref, const char *from, unsigned int depth)
{
	DIR *d = opendir(from);
	struct dirent *e;
	int err = 0;

	if (!d)
		return outside_error(from);
	while (!err && (e = readdir(d))) {
		char *path;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		path = join(from, e->d_name);
		err = path ? put_any(c, ref, e->d_name, path, depth + 1) : -ENOMEM;
		free(path);
	}
	closedir(d);
	return err;
}

/* The inode for @name: made, or the one that is there if it is of the same kind. */
static int put_inode(struct call *c, const struct sg_iref *dir, const char *name,
		     const struct stat *st, const char *from, struct sg_iref *out)
{
	char target[SG_SYMLINK_MAX + 1];
	struct sg_new new = { .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid,
			      .rdev = st->st_rdev, .now = (s64)sg_now() };
	struct sg_vol *vol = call_vol(c);
	u32 len = (u32)strlen(name);
	struct sg_attr attr;
	unsigned int type;
	ssize_t n;
	int err;

	if (S_ISLNK(st->st_mode)) {
		n = readlink(from, target, sizeof(target));
		if (n < 0)
			return outside_error(from);
		new.target = target;
		new.target_len = (u32)n;
	}
	err = sg_create(vol, dir, name, len, &new, out);
	if (err != -EEXIST)
		return path_error(from, err);
	err = sg_lookup(vol, dir, name, len, out, &type);
	if (!err)
		err = sg_getattr(vol, out, &attr);
	if (!err && (attr.mode & S_IFMT) != (st->st_mode & S_IFMT))
		err = -EEXIST;
	if (!err && !S_ISREG(attr.mode) && !S_ISDIR(attr.mode))
		err = -EEXIST;
	return path_error(from, err);
}

/* What is named on the command line is read; pipes and devices within a tree are made anew. */
static int look_at(const char *from, unsigned int depth, struct stat *st, bool *stream)
{
	if (depth ? lstat(from, st) : strcmp(from, "-") ? stat(from, st) : fstat(STDIN_FILENO, st))
		return outside_error(from);
	*stream = !depth && !S_ISDIR(st->st_mode) && (!S_ISREG(st->st_mode) || !strcmp(from, "-"));
	return 0;
}

static int put_any(struct call *c, const struct sg_iref *dir, const char *name, const char *from,
		   unsigned int depth)
{
	struct stat st, made;
	struct sg_iref ref;
	bool stream;
	int err = look_at(from, depth, &st, &stream);

	if (err)
		return err;
	if (S_ISDIR(st.st_mode) && (!c->recursive || depth > DEPTH_MAX))
		return path_error(from, -EISDIR);
	made = st;
	if (stream) {
		made.st_mode = S_IFREG | 0644;
		made.st_rdev = 0;
		st.st_mode = S_IFIFO;
	}
	err = put_inode(c, dir, name, &made, from, &ref);
	if (err)
		return err;
	if (S_ISREG(made.st_mode))
		return put_file(c, &ref, &st, from);
	return S_ISDIR(st.st_mode) ? put_dir(c, &ref, from, depth) : 0;
}

/* Where it goes: into the directory that is there, or under the last name of the path. */
static int put_place(struct call *c, const char *from, const char *path, struct sg_iref *dir,
		     const char **name)
{
	struct sg_vol *vol = call_vol(c);
	struct sg_attr attr;
	struct sg_iref at;
	unsigned int type;
	u32 len;
	int err;

	*name = last_name(from);
	if (!strcmp(path, "/"))
		return path_find(vol, path, true, dir, &attr);
	err = path_parent(vol, path, dir, name, &len);
	if (err)
		return err;
	if (!sg_lookup(vol, dir, *name, len, &at, &type) && type == S_IFDIR >> 12) {
		*dir = at;
		*name = last_name(from);
	}
	return 0;
}

int cmd_put(struct call *c)
{
	char *from = strdup(c->argv[0]), *copy = NULL;
	const char *name;
	struct sg_iref dir;
	size_t n = from ? strlen(from) : 0;
	int err;

	while (n > 1 && from[n - 1] == '/')
		from[--n] = 0;
	err = from ? put_place(c, from, c->argc > 1 ? c->argv[1] : "/", &dir, &name) : -ENOMEM;
	if (!err && !strcmp(name, ".") && c->recursive) {
		err = put_dir(c, &dir, from, 0);	/* "FROM/.": what is in it, as cp does */
	} else if (!err) {
		copy = strndup(name, strcspn(name, "/"));
		err = copy ? put_any(c, &dir, copy, from, 0) : -ENOMEM;
	}
	free(copy);
	free(from);
	return err;
}
