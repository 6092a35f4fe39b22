// SPDX-License-Identifier: Apache-2.0
/*
 * Names outside of the volume. The caller is often root, and trees belong to users whom root must
 * not trust. Such a user may rename a directory during a copy and put a symbolic link in its place.
 * So the tool opens each directory once, without following a link, and names in it are relative to
 * this descriptor. After each open, a check makes sure that the opened object is the one that was
 * examined before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "ctl.h"
#include "outside.h"

int outside_below(struct outside *o, const struct outside *up, int dir, const char *name)
{
	size_t n = strlen(up->path);
	const char *slash = n && up->path[n - 1] == '/' ? "" : "/";

	*o = (struct outside){ .at = dir, .name = name, .depth = up->depth + 1 };
	if (asprintf(&o->path, "%s%s%s", up->path, slash, name) >= 0)
		return 0;
	o->path = NULL;
	return path_error(up->path, -ENOMEM);
}

void outside_free(struct outside *o)
{
	free(o->path);
	o->path = NULL;
}

void outside_many(void)
{
	const rlim_t want = 2 * DEPTH_MAX;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= want)
		return;
	files.rlim_cur = SG_MIN(files.rlim_max, want);
	/* without more descriptors, the tool refuses the deepest directories */
	setrlimit(RLIMIT_NOFILE, &files);
}

int outside_stat(const struct outside *o, struct stat *st)
{
	return fstatat(o->at, o->name, st, o->follow ? 0 : AT_SYMLINK_NOFOLLOW);
}

int outside_exchanged(const struct outside *o)
{
	tool_error("%s: was replaced meanwhile", o->path);
	return -ESTALE;
}

int outside_open(const struct outside *o, int flags, const struct stat *is)
{
	int fd = openat(o->at, o->name, flags | O_CLOEXEC | (o->follow ? 0 : O_NOFOLLOW), 0600);
	struct stat st;

	if (fd < 0)
		return outside_error(o->path);
	if (!is)
		return fd;
	if (!fstat(fd, &st) && outside_same(&st, is))
		return fd;
	close(fd);
	return outside_exchanged(o);
}

int outside_walk(int top, const char *path, size_t len)
{
	int dir = fcntl(top, F_DUPFD_CLOEXEC, 0), next, err;
	char name[NAME_MAX + 1];
	size_t n;

	if (dir < 0)
		return -errno;
	for (; len; path += n + (n < len), len -= n + (n < len)) {
		const char *slash = memchr(path, '/', len);

		n = slash ? (size_t)(slash - path) : len;
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = -errno;
		close(dir);
		if (next < 0)
			return err;
		dir = next;
	}
	return dir;
}
