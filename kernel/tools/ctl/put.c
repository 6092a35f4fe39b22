// SPDX-License-Identifier: Apache-2.0
/* put: copies files and trees into a volume. It keeps holes and hard links. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"
#include "outside.h"
#include "tar.h"

static char buffer[CTL_PIECE];

/**
 * struct source - the object to copy into the volume. @in: its name; @path: for messages. @stream:
 * read it to its end, as a pipe; otherwise it is a file of st_size bytes, or no file.
 */
struct source {
	const struct outside *in;
	const char *path;
	struct stat st;
	bool stream;
};

static bool is_input(const struct outside *from)
{
	return !from->depth && !strcmp(from->path, "-");
}

/* Reports whether the next file would fail with the same error. */
static bool hopeless(int err)
{
	return err == -ENOSPC || err == -EIO || err == -EUCLEAN || err == -EROFS || err == -ENOMEM;
}

/* --- contents ------------------------------------------------------------------------------ */

static int write_in(struct call *c, const struct sg_iref *ref, u64 pos, size_t len,
		    const char *from)
{
	const char *data = buffer;
	u64 start = pos;
	s64 n;

	for (; len; data += n, pos += (u64)n, len -= (size_t)n) {
		n = sg_write(call_vol(c), ref, pos, data, len, (s64)sg_now());
		if (n <= 0)
			return path_error(from, n ? (int)n : -ENOSPC);
	}
	return path_error(from, device_relieve(&c->m.target, pos - start));
}

/* Reads to the end: pipes, and files without a size, as in /proc. */
static int put_stream(struct call *c, const struct sg_iref *ref, int fd, const char *from)
{
	u64 pos = 0;
	ssize_t n;
	int err;

	while ((n = read(fd, buffer, CTL_PIECE)) > 0) {
		err = write_in(c, ref, pos, (size_t)n, from);
		if (err)
			return err;
		pos += (u64)n;
	}
	return n ? outside_error(from) : 0;
}

static int put_data(struct call *c, const struct sg_iref *ref, int fd, off_t size, const char *from)
{
	off_t pos = 0, end;
	ssize_t n;
	int err;

	while (pos < size && (pos = lseek(fd, pos, SEEK_DATA)) >= 0) {
		end = lseek(fd, pos, SEEK_HOLE);
		for (end = end < 0 ? size : SG_MIN(end, size); pos < end; pos += n) {
			n = pread(fd, buffer, (size_t)SG_MIN(end - pos, (off_t)CTL_PIECE), pos);
			if (n < 0)
				return outside_error(from);
			if (!n)		/* the file has become shorter: add zeroes, as cp does */
				return path_error(from, sg_resize(call_vol(c), ref, (u64)size,
								  (s64)sg_now()));
			err = write_in(c, ref, (u64)pos, (size_t)n, from);
			if (err)
				return err;
		}
	}
	if (pos < 0 && errno != ENXIO)
		return outside_error(from);
	return path_error(from, sg_resize(call_vol(c), ref, (u64)size, (s64)sg_now()));
}

static int put_contents(struct call *c, const struct sg_iref *ref, const struct source *s)
{
	/*
	 * Within a tree, put opens only files. If a FIFO has replaced a file meanwhile, put does
	 * not wait for a writer of the FIFO.
	 */
	int flags = O_RDONLY | O_NOCTTY | (s->stream ? 0 : O_NONBLOCK), err, fd;

	if (is_input(s->in)) {
		fd = dup(STDIN_FILENO);
		if (fd < 0)
			return outside_error(s->path);
	} else {
		fd = outside_open(s->in, flags, s->stream ? NULL : &s->st);
		if (fd < 0)
			return fd;
	}
	if (s->stream || !s->st.st_size || lseek(fd, 0, SEEK_HOLE) < 0)
		err = put_stream(c, ref, fd, s->path);
	else
		err = put_data(c, ref, fd, s->st.st_size, s->path);
	close(fd);
	return err;
}

/* --- attributes ---------------------------------------------------------------------------- */

/*
 * A volume stores times as nanoseconds in 64 bits; the kernel module has the same limits in
 * seconds.
 */
static s64 mtime_of(struct call *c, const struct source *s)
{
	const s64 most = INT64_MAX / 1000000000 - 1, least = INT64_MIN / 1000000000 + 1;
	s64 sec = SG_MAX(SG_MIN((s64)s->st.st_mtim.tv_sec, most), least);

	if (sec == s->st.st_mtim.tv_sec)
		return sec * 1000000000 + s->st.st_mtim.tv_nsec;
	if (!c->clamped)
		tool_warn("%s: its time is outside the range of a volume (1677 to 2262): the nearest time is stored, also for files that follow",
			  s->path);
	c->clamped = true;
	return sec * 1000000000;
}

static int set_mtime(struct call *c, const struct sg_iref *ref, const struct source *s)
{
	if (s->stream)
		return 0;
	return path_error(s->path, sg_touch(call_vol(c), ref, SG_SET_MTIME, mtime_of(c, s), 0, 0));
}

static void describe(const struct source *s, struct sg_new *new)
{
	*new = (struct sg_new){ .mode = s->st.st_mode, .uid = s->st.st_uid, .gid = s->st.st_gid,
				.rdev = s->st.st_rdev, .now = (s64)sg_now() };
	if (!s->stream)
		return;
	new->mode = S_IFREG | 0644;
	new->uid = geteuid();
	new->gid = getegid();
	new->rdev = 0;
}

/* --- all types but directories ------------------------------------------------------------- */

static int make_nameless(struct call *c, const struct place *p, const struct source *s,
			 struct sg_new *new, struct sg_iref *ref)
{
	char target[SG_SYMLINK_MAX + 1];
	ssize_t n;
	int err = 0;

	if (S_ISLNK(new->mode)) {
		n = readlinkat(s->in->at, s->in->name, target, sizeof(target));
		if (n < 0)
			return outside_error(s->path);
		new->target = target;
		new->target_len = (u32)n;
	} else if (p->taken && S_ISREG(new->mode)) {
		err = place_inherit(c, p, new);
	}
	return path_error(s->path, err ? err : sg_tmpfile(call_vol(c), new, ref));
}

static int put_new(struct call *c, const struct place *p, const struct source *s,
		   struct sg_new *new)
{
	struct link_seen this = { .dev = s->st.st_dev, .ino = s->st.st_ino };
	struct sg_iref ref;
	int err = make_nameless(c, p, s, new, &ref);

	if (err)
		return err;
	if (S_ISREG(new->mode))
		err = put_contents(c, &ref, s);
	if (!err)
		err = set_mtime(c, &ref, s);
	if (!err)
		err = path_error(s->path, place_give(c, p, &ref));
	/* the next system in the slot must not count as a user of the file */
	if (sg_close_inode(call_vol(c), &ref))
		sg_evict(call_vol(c), &ref);
	this.other = ref.ino;
	if (!err && s->st.st_nlink > 1 && !s->stream)
		err = path_error(s->path, links_add(&c->links, &this));
	return err;
}

static int put_other(struct call *c, const struct sg_iref *dir, const char *name,
		     const struct source *s)
{
	const struct link_seen *seen = NULL;
	struct sg_iref ref;
	struct sg_new new;
	struct place p;
	int err;

	describe(s, &new);
	err = place_look(c, dir, name, new.mode, s->path, &p);
	if (err)
		return err;
	if (sg_is_atomic(call_vol(c), dir))
		new.flags = SG_FL_ATOMIC;
	if (!s->stream)
		seen = links_find(&c->links, s->st.st_dev, s->st.st_ino);
	if (!seen)
		return put_new(c, &p, s, &new);
	err = sg_iref(call_vol(c), seen->other, &ref);
	return path_error(s->path, err ? err : place_give(c, &p, &ref));
}

/* --- directories --------------------------------------------------------------------------- */

static int put_any(struct call *c, const struct sg_iref *dir, const char *name,
		   const struct outside *from);

/* Continues after a file that cannot be copied, unless the next would fail with the same error. */
static int put_below(struct call *c, const struct sg_iref *ref, const struct source *s)
{
	int fd = outside_open(s->in, O_RDONLY | O_DIRECTORY, &s->st), err = 0, now;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct outside from;
	struct dirent *e;

	if (fd < 0)
		return fd;
	if (!d) {
		err = outside_error(s->path);
		close(fd);
		return err;
	}
	while (!hopeless(err) && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		now = outside_below(&from, s->in, dirfd(d), e->d_name);
		now = now ? now : put_any(c, ref, e->d_name, &from);
		err = !err || hopeless(now) ? now : err;
		outside_free(&from);
	}
	closedir(d);
	return err;
}

/* An existing directory keeps its attributes, as in cp. */
static int put_dir(struct call *c, const struct sg_iref *dir, const char *name,
		   const struct source *s)
{
	struct sg_iref ref;
	struct sg_new new;
	struct place p;
	int err, e;

	if (!c->recursive)
		return needs_recursion(s->path);
	if (s->in->depth > DEPTH_MAX)
		return path_error(s->path, -ENAMETOOLONG);
	err = place_look(c, dir, name, S_IFDIR, s->path, &p);
	if (err)
		return err;
	if (p.taken)
		return put_below(c, &p.old, s);
	describe(s, &new);
	err = path_error(s->path, sg_create(call_vol(c), dir, name, p.len, &new, &ref));
	if (err)
		return err;
	err = put_below(c, &ref, s);
	e = hopeless(err) ? 0 : set_mtime(c, &ref, s);
	return err ? err : e;
}

/* --- the source ---------------------------------------------------------------------------- */

/*
 * Copies the content of a pipe or device on the command line; creates links, pipes and devices of a
 * tree.
 */
static int source_look(const struct outside *from, struct source *s)
{
	bool in = is_input(from);

	*s = (struct source){ .in = from, .path = from->path };
	if (in ? fstat(STDIN_FILENO, &s->st) : outside_stat(from, &s->st))
		return outside_error(from->path);
	if (!from->depth && S_ISSOCK(s->st.st_mode) && !in) {
		tool_error("%s: is a socket, which has no content to put", from->path);
		return -EINVAL;
	}
	s->stream = in || (!from->depth && !S_ISDIR(s->st.st_mode) && !S_ISREG(s->st.st_mode));
	return 0;
}

static bool is_volume(const struct call *c, const struct stat *st)
{
	struct stat own;

	if (S_ISBLK(st->st_mode))
		return c->m.target.kind == TARGET_BLOCK && st->st_rdev == c->m.target.rdev;
	return !fstat(c->m.target.fd, &own) && own.st_dev == st->st_dev &&
	       own.st_ino == st->st_ino;
}

static int put_any(struct call *c, const struct sg_iref *dir, const char *name,
		   const struct outside *from)
{
	struct source s;
	int err = source_look(from, &s);

	if (err)
		return err;
	if ((S_ISREG(s.st.st_mode) || s.stream) && is_volume(c, &s.st)) {
		tool_error("%s: is the volume itself", from->path);
		return -EINVAL;
	}
	if (S_ISDIR(s.st.st_mode) && !s.stream)
		return put_dir(c, dir, name, &s);
	return put_other(c, dir, name, &s);
}

/* --- the command --------------------------------------------------------------------------- */

/* For "FROM/.", ".." and "/", put copies the content of the directory, as cp does. */
static bool only_contents(const char *from)
{
	const char *name = last_name(from);

	return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

/*
 * Finds the target: in an existing directory, or under the last name of the path. With *name NULL,
 * the directory itself gets the content of @from.
 */
static int find_place(struct call *c, const char *from, const char *path, struct sg_iref *dir,
		      char **name)
{
	const char *last = last_name(from);
	struct sg_attr attr;
	u32 len = (u32)strlen(last);
	int err = path_seek(call_vol(c), path, true, dir, &attr);

	*name = NULL;
	if (!err && S_ISDIR(attr.mode)) {
		if (only_contents(from))
			return 0;
		if (!strcmp(from, "-")) {
			tool_error("standard input has no name: give a PATH that is not a directory");
			return -EINVAL;
		}
	} else {
		err = path_parent(call_vol(c), path, dir, &last, &len);
	}
	if (!err && len > SG_NAME_MAX)
		/* an error of the volume, not of the source */
		return path_error(path, -ENAMETOOLONG);
	*name = err ? NULL : strndup(last, len);
	return err || *name ? err : path_error(path, -ENOMEM);
}

/* Called before the volume is opened. */
int before_put(struct call *c)
{
	const char *path = c->argc > 1 ? c->argv[1] : "/";
	size_t n = strlen(path);
	struct outside from = outside_named(AT_FDCWD, c->argv[0], c->argv[0], true);
	struct source s;
	int err;

	if (c->tar)
		return before_tar_put(c);
	err = source_look(&from, &s);
	if (!err && S_ISDIR(s.st.st_mode) && !c->recursive)
		err = needs_recursion(c->argv[0]);
	/*
	 * Refuses a path with a slash at its end for a file, unless it names an existing directory.
	 *
	 */
	c->must_be_dir = n && path[n - 1] == '/' && !S_ISDIR(s.st.st_mode);
	return err ? 1 : 0;
}

static int put(struct call *c)
{
	const char *path = c->argc > 1 ? c->argv[1] : "/";
	char *from = without_slashes(c->argv[0]), *name;
	struct outside top = outside_named(AT_FDCWD, from, from, true);
	struct sg_attr attr;
	struct sg_iref dir;
	struct source s;
	int err = from ? 0 : path_error(c->argv[0], -ENOMEM);

	outside_many();
	if (!err && c->must_be_dir)
		err = path_find(call_vol(c), path, true, &dir, &attr);
	if (!err)
		err = find_place(c, from, path, &dir, &name);
	if (!err) {
		err = name ? put_any(c, &dir, name, &top) :
		      source_look(&top, &s) ?: put_below(c, &dir, &s);
		free(name);
	}
	links_free(&c->links);
	free(from);
	return err;
}

int cmd_put(struct call *c)
{
	return c->tar ? tar_put(c) : put(c);
}
