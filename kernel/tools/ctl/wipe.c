// SPDX-License-Identifier: Apache-2.0
/*
 * A new volume must not show the content of an old one. A guest sees all of a volume's memory, also
 * the part that its file system does not use (D10). So deleting a volume wipes its bytes. A new
 * volume checks its bytes again, because another tool may have freed them without wiping.
 *
 * Reads and writes bypass the page cache, as those of other systems do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "volume.h"

#define PIECE	(4u << 20)
#define LOOKS 60 /* waits 3 s for a process that only reads, as udev does */
#define PAUSE	50000		/* us */

int volume_claim(const char *path)
{
	int fd = open(path, O_RDWR | O_DIRECT | O_EXCL | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	if (fd < 0 && err == -EBUSY)
		tool_error("%s: is mounted or in use here; unmount it first", path);
	else if (fd < 0)
		tool_error("%s: cannot be opened: %s", path, strerror(-err));
	return err ?: fd;
}

/*
 * Returns how many processes and devices have a device of the device mapper open, or -errno.
 */
static int opened(dev_t dev)
{
	struct dm_ioctl ask = {
		.version = { DM_VERSION_MAJOR, 0, 0 }, .data_size = sizeof(ask),
		.dev = (major(dev) << 8) | (minor(dev) & 0xff) | ((u64)(minor(dev) & ~0xffu) << 12),
	};
	int fd = open("/dev/" DM_DIR "/" DM_CONTROL_NODE, O_RDWR | O_CLOEXEC), err = 0;

	if (fd < 0 || ioctl(fd, DM_DEV_STATUS, &ask))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err ?: ask.open_count;
}

int volume_sole(int fd, const char *path)
{
	struct stat st;
	int i, n = fstat(fd, &st) ? -errno : 0;

	for (i = 0; i < LOOKS && n >= 0 && n != 1; i++) {
		if (i)
			usleep(PAUSE);
		n = opened(st.st_rdev);
	}
	if (n == 1)
		return 0;
	if (n < 0)
		tool_error("%s: its other users cannot be found: %s", path, strerror(-n));
	else
		tool_error("%s: is open here in another program or device; close it first (fuser "
			   "-v %s, losetup and lsblk show which)", path, path);
	return n < 0 ? n : -EBUSY;
}

/* --- wiping -------------------------------------------------------------------------------- */

/* Bad pages cannot be read. A write repairs them, or fails. */
static bool is_clean(int fd, u8 *bytes, size_t len, u64 at)
{
	return pread(fd, bytes, len, (off_t)at) == (ssize_t)len && !bytes[0] &&
	       !memcmp(bytes, bytes + 1, len - 1);
}

static void progress(const char *name, u64 at, u64 size)
{
	static u64 last;
	u64 now = sg_ticks();

	if (!isatty(STDERR_FILENO) || (at && at < size && now - last < 200000000))
		return;
	last = now;
	fprintf(stderr, "\rwiping %s: %3llu %%%s", name, (unsigned long long)(at * 100 / size),
		at < size ? "" : "\r\033[K");
	fflush(stderr);
}

static int wipe_all(int fd, u8 *bytes, const u8 *zeroes, u64 size, const char *name)
{
	size_t len;
	u64 at;

	for (at = 0; at < size; at += len) {
		progress(name, at, size);
		len = size - at < PIECE ? (size_t)(size - at) : PIECE;
		if (!is_clean(fd, bytes, len, at) &&
		    pwrite(fd, zeroes, len, (off_t)at) != (ssize_t)len)
			return errno ? -errno : -EIO;
	}
	progress(name, size, size);
	return fsync(fd) ? -errno : 0;
}

int wipe(int fd, const char *path, const char *name)
{
	void *bytes = NULL, *zeroes = NULL;
	int err = -ENOMEM;
	u64 size;

	errno = 0;
	if (ioctl(fd, BLKGETSIZE64, &size)) {
		err = -errno;
	} else if (!posix_memalign(&bytes, SG_PAGE, PIECE) &&
		   !posix_memalign(&zeroes, SG_PAGE, PIECE)) {
		memset(zeroes, 0, PIECE);
		err = wipe_all(fd, bytes, zeroes, size, name);
	}
	free(bytes);
	free(zeroes);
	if (err)
		tool_error("%s: cannot be wiped: %s", path, strerror(-err));
	return err;
}

/* --- logical volumes with the tag ---------------------------------------------------------- */

int wipe_and_remove(const char *zone, const char *name)
{
	char lv[SHOW_MAX], path[SHOW_MAX + 8];
	int err, fd;

	snprintf(lv, sizeof(lv), "%s/%s", zone, name);
	snprintf(path, sizeof(path), "/dev/%s/%s", zone, name);
	err = volume_activate(lv, path);
	if (err)
		return err;
	fd = volume_claim(path);
	if (fd < 0)
		return fd;
	err = wipe(fd, path, name);
	close(fd);
	return err ?: LVM("lvremove", "-y", lv);
}

/*
 * Reports whether the logical volume is still an incomplete one; the caller has locked it. Reads
 * LVM's state again, because a logical volume with the tag in an older map may be complete by now.
 */
static bool is_left(const char *zone, const char *name)
{
	const struct zone_piece *p = NULL;
	struct zones now;
	struct zone *z;
	bool left;

	if (zones_load(&now))
		return false;
	if (!zone_pick(&now, zone, strlen(zone), &z))
		p = zone_find(z, name);
	left = p && zone_tagged(p->tags, WIPING_TAG);
	zones_free(&now);
	return left;
}

bool zone_finish(const struct zone *z)
{
	const struct zone_piece *p;
	bool any = false;
	unsigned int i;
	int fd;

	for (i = 0; i < z->pieces; i++) {
		p = &z->piece[i];
		if (!p->volume || !zone_tagged(p->tags, WIPING_TAG) || zone_find(z, p->volume) != p)
			continue;
		fd = volume_lock(z->name, p->volume);
		if (fd < 0)
			continue;	/* another command has locked it */
		if (is_left(z->name, p->volume)) {
			tool_warn("%s/%s: a command left it incomplete: it is wiped and removed",
				  z->name, p->volume);
			wipe_and_remove(z->name, p->volume);
			any = true;
		}
		close(fd);
	}
	return any;
}
