// SPDX-License-Identifier: Apache-2.0
/* A file that is made under the name FILE.part, and gets its own when it is whole and durable. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "copy.h"

static int name_taken(const char *path)
{
	tool_error("%s: is there already: a copy goes into a file of its own", path);
	return -EEXIST;
}

static int open_file(struct part *p)
{
	int err;

	p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (p->fd < 0) {
		err = -errno;
		tool_error("%s: cannot be created: %s", p->path, strerror(-err));
		return err;
	}
	if (!flock(p->fd, LOCK_EX | LOCK_NB))
		return 0;
	tool_error("%s: another copy is just being made there", p->path);
	close(p->fd);
	return -EAGAIN;
}

/* What one who was killed has left is begun anew. */
static int set_size(const struct part *p, u64 size, bool reserved)
{
	if (ftruncate(p->fd, 0) || ftruncate(p->fd, (off_t)size))
		return -errno;
	/* who maps it stores into it: that there is no memory he would learn by SIGBUS */
	if (reserved && fallocate(p->fd, 0, 0, (off_t)size) && errno != EOPNOTSUPP &&
	    errno != ENOSYS)
		return -errno;
	return 0;
}

int part_open(struct part *p, const char *name, u64 size, bool reserved)
{
	int err;

	*p = (struct part){ .name = name, .fd = -1 };
	if (!access(name, F_OK))
		return name_taken(name);
	if ((size_t)snprintf(p->path, sizeof(p->path), "%s.part", name) >= sizeof(p->path)) {
		tool_error("%s: the name is too long", name);
		return -ENAMETOOLONG;
	}
	err = open_file(p);
	if (err)
		return err;
	err = set_size(p, size, reserved);
	if (!err)
		return 0;
	tool_error("%s: cannot be made as large as %s: %s", p->path,
		   reserved ? "it is to be" : "the volume", strerror(-err));
	part_close(p);
	return err;
}

int part_finish(struct part *p)
{
	int err = 0;

	if (fsync(p->fd)) {
		err = -errno;
		tool_error("%s: cannot be written: %s", p->path, strerror(-err));
		return err;
	}
	if (renameat2(AT_FDCWD, p->path, AT_FDCWD, p->name, RENAME_NOREPLACE))
		err = -errno;
	if (err == -EEXIST)
		return name_taken(p->name);
	if (err)
		tool_error("%s: cannot be renamed to %s: %s", p->path, p->name, strerror(-err));
	else
		p->path[0] = 0;
	return err;
}

void part_close(struct part *p)
{
	if (p->path[0])
		unlink(p->path);
	close(p->fd);
}
