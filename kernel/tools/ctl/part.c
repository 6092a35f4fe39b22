// SPDX-License-Identifier: Apache-2.0
/*
 * Makes a file under the name FILE.part, and gives it its own name when it is complete and durable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "copy.h"

static int name_taken(const char *path)
{
	tool_error("%s: exists already: give the copy a new file", path);
	return -EEXIST;
}

static int in_use(const struct part *p)
{
	tool_error("%s: another copy is being made there", p->path);
	return -EAGAIN;
}

static int not_made(const char *path)
{
	int err = -errno;

	tool_error("%s: cannot be created: %s", path, strerror(-err));
	return err;
}

/*
 * Removes the file of a killed run. Otherwise a process that still has it open could read the copy.
 * Removes it only under its lock and while it has this name, because another run may just have
 * completed it.
 */
static int remove_old(const struct part *p)
{
	int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), err = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : not_made(p->path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1) {
		tool_error("%s: exists, and is not a private file of yours; remove it", p->path);
		err = -EEXIST;
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		err = in_use(p);
	} else if (file_is_named(fd, p->path) && unlink(p->path) && errno != ENOENT) {
		err = not_made(p->path);
	}
	close(fd);
	return err;
}

/*
 * Creates a file, locks it, and checks that it still has the name: another copy may have removed
 * the file before the lock.
 */
static int open_file(struct part *p)
{
	unsigned int turn;
	int err;

	for (turn = 0; turn < 100; turn++) {
		p->fd = open(p->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (p->fd < 0 && errno != EEXIST)
			return not_made(p->path);
		if (p->fd < 0) {
			err = remove_old(p);
			if (err)
				return err;
			continue;
		}
		if (!flock(p->fd, LOCK_EX | LOCK_NB) && file_is_named(p->fd, p->path))
			return 0;
		close(p->fd);
	}
	return in_use(p);
}

static int set_size(const struct part *p, u64 size, bool reserved)
{
	if (fchmod(p->fd, 0600) || ftruncate(p->fd, (off_t)size))
		return -errno;
	/*
	 * Allocates the memory first: the copy stores through a mapping, where a lack of memory
	 * would cause SIGBUS.
	 */
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
	if (!access(name, F_OK)) {	/* another run has just completed the file */
		part_close(p);
		return name_taken(name);
	}
	err = set_size(p, size, reserved);
	if (!err)
		return 0;
	tool_error("%s: cannot be made as large as %s: %s", p->path,
		   reserved ? "requested" : "the volume", strerror(-err));
	part_close(p);
	return err;
}

/*
 * Makes the name durable, too. If the directory cannot be synced, syncs the complete file system.
 *
 */
static int flush_name(const struct part *p)
{
	size_t n = strlen(p->name) - strlen(last_name(p->name));
	char *dir = n ? strndup(p->name, n) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, err = 0;

	if ((fd < 0 || fsync(fd)) && syncfs(p->fd)) {
		err = -errno;
		tool_error("%s: its name cannot be written: %s", p->name, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	free(dir);
	return err;
}

/*
 * Gives the file its own name, unless another file has it. Some file systems cannot rename in this
 * way (NFS, 9p, many in user space). On these, a hard link gives the file a second name, if no file
 * has that name.
 */
static int give_name(const struct part *p)
{
	if (!renameat2(AT_FDCWD, p->path, AT_FDCWD, p->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!link(p->path, p->name))
		return unlink(p->path) ? -errno : 0;
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (!access(p->name, F_OK))
		return -EEXIST;
	return rename(p->path, p->name) ? -errno : 0;
}

int part_finish(struct part *p)
{
	int err = 0;

	if (fsync(p->fd)) {
		err = -errno;
		tool_error("%s: cannot be written: %s", p->path, strerror(-err));
		return err;
	}
	if (!file_is_named(p->fd, p->path)) {
		tool_error("%s: was replaced meanwhile", p->path);
		p->path[0] = 0;
		return -ESTALE;
	}
	p->whole = true;
	err = give_name(p);
	if (err == -EEXIST)
		return name_taken(p->name);
	if (err)
		tool_error("%s: is complete, but cannot be renamed to %s: %s", p->path, p->name,
			   strerror(-err));
	else
		p->path[0] = 0;
	return err ? err : flush_name(p);
}

void part_close(struct part *p)
{
	if (p->path[0] && !p->whole && file_is_named(p->fd, p->path))
		unlink(p->path);
	close(p->fd);
}
