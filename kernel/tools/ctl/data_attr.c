// SPDX-License-Identifier: Apache-2.0
/*
 * attr: shows or sets whether writes to a file are atomic. For a directory, the setting applies to
 * new files in it. In a mount, the module changes the setting; otherwise this tool does it, on a
 * volume that nobody uses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "ctl.h"
#include "uapi/ioctl.h"

/* Reads the word before the paths: returns 1 if there is one. *want: the setting that it names. */
static int read_word(const struct call *c, u32 *want)
{
	*want = SG_ATOMIC_ASK;
	if (c->argc && !strcmp(c->argv[0], "data=atomic"))
		*want = SG_ATOMIC_SET;
	else if (c->argc && !strcmp(c->argv[0], "data=inplace"))
		*want = SG_ATOMIC_CLEAR;
	return *want != SG_ATOMIC_ASK;
}

int before_attr(struct call *c)
{
	u32 want;
	int word = read_word(c, &want);

	if (c->argc > word)
		return !word && !strncmp(c->argv[0], "data=", 5) ?
		       tool_usage_error("'%s': must be data=atomic or data=inplace", c->argv[0]) :
		       0;
	return tool_usage_error("attr: PATH is missing: name a file or directory");
}

static void show(struct call *c, const char *path, bool atomic)
{
	struct json *j = &c->j;

	if (c->json) {
		json_row(j, NULL);
		json_str(j, "path", path);
		json_str(j, "data", atomic ? "atomic" : "inplace");
		json_close(j, '}');
		return;
	}
	fputs(atomic ? "data=atomic   " : "data=inplace  ", stdout);
	print_text(path);
	putchar('\n');
}

/* --- in a mount ----------------------------------------------------------------------------- */

static int attr_open(int dir, const char *path)
{
	while (*path == '/')
		path++;
	return openat(dir, *path ? path : ".", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int attr_mounted_one(struct call *c, int dir, const char *path, u32 want)
{
	int fd = attr_open(dir, path), ret, err;

	if (fd < 0)
		return outside_error(path);
	ret = ioctl(fd, SG_IOC_ATOMIC, &want);
	err = ret < 0 ? -errno : 0;
	close(fd);
	if (err == -ENOTTY)
		tool_error("%s: is neither a file nor a directory of a mounted StargateFS that "
			   "supports atomic writes", path);
	else if (err == -EOPNOTSUPP)
		tool_error("%s: the volume was made by an earlier version, without atomic writes",
			   path);
	else if (err)
		return path_error(path, err);
	else if (want == SG_ATOMIC_ASK)
		show(c, path, ret);
	return err;
}

static int attr_mounted(struct call *c, const char *where, int first, u32 want)
{
	int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0, e, i;

	if (dir < 0)
		return outside_error(where);
	for (i = first; i < c->argc; i++) {
		e = attr_mounted_one(c, dir, c->argv[i], want);
		err = err ? err : e;
	}
	close(dir);
	return err;
}

/* --- not mounted here ----------------------------------------------------------------------- */

static int attr_volume_one(struct call *c, const char *path, u32 want)
{
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path_find(call_vol(c), path, true, &ref, &attr);

	if (err)
		return err;
	if (want == SG_ATOMIC_ASK) {
		show(c, path, attr.flags & SG_FL_ATOMIC);
		return 0;
	}
	err = attr_allows(path, &attr);
	if (err)
		return err;
	err = sg_set_atomic(call_vol(c), &ref, want == SG_ATOMIC_SET, (s64)sg_now());
	if (err == -EINVAL)
		tool_error("%s: is neither a regular file nor a directory", path);
	else if (err == -EOPNOTSUPP)
		tool_error("%s: the volume was made by an earlier version, without atomic writes",
			   path);
	else
		path_error(path, err);
	return err;
}

static int attr_volume(struct call *c, int first, u32 want)
{
	int err = member_open(&c->m, c->volume, want != SG_ATOMIC_ASK, c->force), e, i;

	if (err)
		return err;
	for (i = first; i < c->argc; i++) {
		e = attr_volume_one(c, c->argv[i], want);
		err = err ? err : e;
	}
	e = member_close(&c->m);
	return err ? err : e;
}

static int attr(struct call *c, int first, u32 want)
{
	char where[PATH_MAX];
	struct stat st;

	if (stat(c->volume, &st))
		return outside_error(c->volume);
	if (S_ISDIR(st.st_mode))
		return attr_mounted(c, c->volume, first, want);
	if (S_ISBLK(st.st_mode) && mounted_at(st.st_rdev, where))
		return attr_mounted(c, where, first, want);
	return attr_volume(c, first, want);
}

int cmd_attr(struct call *c)
{
	bool list;
	u32 want;
	int first = read_word(c, &want), err;

	list = c->json && want == SG_ATOMIC_ASK;
	if (list) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, "files");
	}
	err = attr(c, first, want);
	if (list) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
	return tool_end(err ? 1 : 0);
}
