// SPDX-License-Identifier: Apache-2.0
/*
 * grow: extends a volume over the memory behind it. If the volume is mounted on this host, the
 * module does this. On a file or a device-dax node this tool joins as one of the systems. The tool
 * opens a block device without a mount here exclusively.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "ctl.h"
#include "uapi/ioctl.h"

#define LOCK_MS	10000

static int show(struct call *c, u64 size, u64 was)
{
	char a[32], b[32];

	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_size(&c->j, "size", size);
		json_size(&c->j, "was", was);
		json_end(&c->j);
	} else if (size == was) {
		print_text(c->volume);
		printf(": has %s already\n", show_size(size, a));
	} else {
		print_text(c->volume);
		printf(": has grown from %s to %s\n", show_size(was, a), show_size(size, b));
	}
	return 0;
}

/* --- mounted here --------------------------------------------------------------------------- */

static int grow_mounted(struct call *c, const char *dir)
{
	struct sg_ioc_grow g = { .size = c->size };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0) {
		err = -errno;
		tool_error("%s: cannot be opened: %s", dir, strerror(-err));
		return err;
	}
	err = ioctl(fd, SG_IOC_GROW, &g) ? -errno : 0;
	close(fd);
	if (!err)
		return show(c, g.size, g.was);
	g.why[sizeof(g.why) - 1] = 0;
	if (g.why[0])
		tool_error("%s: %s", c->volume, g.why);
	else if (err == -ENOTTY)
		tool_error("%s: is not a directory of a mounted StargateFS", c->volume);
	else
		tool_error("%s: cannot grow: %s", c->volume, strerror(-err));
	return err;
}

/* --- not mounted here ------------------------------------------------------------------------- */

static int grow_joined(struct call *c, struct sg_vol *vol)
{
	u64 was = sg_size_now(vol);
	char why[200];
	int err = sg_grow(vol, c->size, 0, why);

	if (!err)
		return show(c, vol->sb.size, was);
	tool_error("%s: %s", c->volume, why);
	return err;
}

static int grow_alone(struct call *c)
{
	int err = member_open(&c->m, c->volume, true, false);

	if (err)
		return err;
	err = grow_joined(c, &c->m.vol);
	return member_close(&c->m) ?: err;
}

/*
 * Grows the volume together with all systems that map the same file; the engine waits until each
 * system has mapped the new memory.
 */
static int grow_beside(struct call *c)
{
	int err = member_join(&c->m, c->volume);

	if (err)
		return err;
	err = grow_joined(c, &c->m.vol);
	return member_close(&c->m) ?: err;
}

/* Returns the size, or 0 after a message if the path could not be examined. */
static u64 size_now(const char *path, struct target *t, u64 *most)
{
	struct sg_vol vol;

	if (member_look_on(t, &vol, path))
		return 0;
	*most = vol.sb.chunk_cap << SG_CHUNK_SHIFT;
	target_close(t);
	return vol.sb.size;
}

/*
 * Extends the file before the volume grows. If the growth fails, shortens the file again. No other
 * process can use the new bytes, because a tool that grows the volume would need the same lock.
 */
static int grow_longer(struct call *c, u64 had)
{
	struct target t;
	u64 most;
	int err = target_lengthen(c->volume, had, c->size);

	if (err)
		return err;
	err = grow_beside(c);
	if (err && size_now(c->volume, &t, &most) - 1 < had)
		target_shorten(c->volume, had);
	return err;
}

/* Locks the file. Any user who can read the file can hold this lock, so the wait has a limit. */
static int lock_file(struct call *c, int fd)
{
	unsigned int waited;

	for (waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += 100) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return outside_error(c->volume);
		if (waited >= LOCK_MS) {
			tool_error("%s: another process holds its lock (flock), perhaps to grow it: try again",
				   c->volume);
			return -EAGAIN;
		}
		usleep(100000);
	}
	return 0;
}

/*
 * In a zone of files, the CSI driver stores the length of each volume in a symbolic link next to
 * the file: .at-NAME for NAME. If the file is longer, the driver assumes that a member has extended
 * it. It updates the link before it calls this command.
 */
static int ask_driver(struct call *c)
{
	const char *slash = strrchr(c->volume, '/'), *name = slash ? slash + 1 : c->volume;
	const char *end = strstr(name, ".stargate");
	unsigned long long base, len;
	char link[PATH_MAX], text[64];
	ssize_t n;

	if (!end || end[9])
		return 0;
	if (snprintf(link, sizeof(link), "%.*s.at-%.*s", (int)(name - c->volume), c->volume,
		     (int)(end - name), name) >= (int)sizeof(link))
		return 0;
	n = readlink(link, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	if (sscanf(text, "0x%llx+0x%llx", &base, &len) != 2 || c->size <= len)
		return 0;
	tool_error("%s: is a volume of the CSI driver, which would shrink it again: enlarge its claim",
		   c->volume);
	return -EPERM;
}

/* The opened file grows, even if the name then belongs to another file. */
static int grow_file(struct call *c)
{
	int err, fd = open(c->volume, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct target t;
	struct stat st;
	char a[32];
	u64 most;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		err = fd < 0 ? -errno : -EINVAL;
		tool_error("%s: cannot be opened: %s", c->volume, strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	target_pin(c->volume, fd);
	err = ask_driver(c) ?: lock_file(c, fd);
	if (err) {
		close(fd);
		return err;
	}
	if (!size_now(c->volume, &t, &most)) {
		err = -EIO;
	} else if (c->size <= t.size) {
		err = grow_beside(c);
	} else if (c->size > most) {
		tool_error("%s: no more than %s: the volume's metadata has no room for more "
			   "(mkfs.stargatefs --max-size)", c->volume, show_size(most, a));
		err = -ENOSPC;
	} else {
		err = grow_longer(c, t.size);
	}
	close(fd);
	return err;
}

static int grow(struct call *c)
{
	char where[PATH_MAX];
	struct stat st;
	int err;

	if (stat(c->volume, &st)) {
		err = -errno;
		tool_error("%s: cannot be opened: %s", c->volume, strerror(-err));
		return err;
	}
	if (S_ISDIR(st.st_mode))
		return grow_mounted(c, c->volume);
	if (S_ISREG(st.st_mode))
		return grow_file(c);
	if (!S_ISBLK(st.st_mode))
		return grow_beside(c);
	return mounted_at(st.st_rdev, where) ? grow_mounted(c, where) : grow_alone(c);
}

int cmd_grow(struct call *c)
{
	return refused_now(c, grow(c));
}
