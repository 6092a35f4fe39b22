// SPDX-License-Identifier: Apache-2.0
/*
 * Maps the file or device that holds a volume.
 *
 * The tool maps a regular file (on tmpfs, hugetlbfs, a DAX file system) and a device-dax node
 * shared, so that all processes that map them use the same memory. A block device is different:
 * its mapping uses the page cache, also for /dev/pmemN, and keeps the state of the first read. A
 * mounted file system uses the memory itself, so neither side sees the stores of the other. So for
 * a block device
 *  - the tool drops the cache before it maps the device, and after each write-back;
 *  - a change opens the device exclusively: no mount, LVM or other tool can use it meanwhile;
 *  - the tool changes a volume that others may mount in a private copy (TARGET_HOLD, device.c);
 *  - a check for live systems reads around the cache (target_read_now(), member.c);
 *  - other processes do not see a store immediately, so the tool refuses TARGET_SHARE.
 *
 * The kernel decides the order within a write-back. A power cut in the middle of it may leave more
 * than the journal expects, which fsck.stargatefs then repairs. This cannot happen with files and
 * device-dax.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "internal.h"
#include "tool.h"

static int failed(struct target *t, const char *what, int err)
{
	tool_error("%s: %s: %s", t->path, what, strerror(err));
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	return -err;
}

static int dax_size(struct target *t)
{
	char path[96];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(t->rdev), minor(t->rdev));
	f = fopen(path, "r");
	if (f) {
		n = fscanf(f, "%lu", &t->size);
		fclose(f);
	}
	return n == 1 ? 0 : -ENODEV;
}

/* Finds kind and size. Does not round the size down to complete chunks, which the engine does. */
static int look_at(struct target *t)
{
	struct stat st;

	if (fstat(t->fd, &st))
		return -errno;
	t->rdev = st.st_rdev;
	if (S_ISREG(st.st_mode)) {
		t->kind = TARGET_FILE;
		t->size = (u64)st.st_size;
		return 0;
	}
	if (S_ISBLK(st.st_mode)) {
		t->kind = TARGET_BLOCK;
		return ioctl(t->fd, BLKGETSIZE64, &t->size) ? -errno : 0;
	}
	if (S_ISCHR(st.st_mode)) {
		t->kind = TARGET_DAX;
		return dax_size(t);
	}
	return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
}

bool device_read_only(int fd)
{
	int ro = 0;

	return !ioctl(fd, BLKROGET, &ro) && ro;
}

int device_writable(int fd, const char *path)
{
	if (!device_read_only(fd))
		return 0;
	tool_error("%s: is a read-only device; make it writable first: blockdev --setrw %s (or "
		   "lvchange -p rw, if LVM made it read-only)", path, path);
	return -EROFS;
}

static int open_flags(enum target_use use, bool block)
{
	if (use == TARGET_LOOK || use == TARGET_READ)
		return O_RDONLY | O_CLOEXEC;
	return O_RDWR | O_CLOEXEC | (block ? O_EXCL : 0);
}

/*
 * From a block device the kernel also reads pages near the accessed ones. The engine never accesses
 * a bad page, but a page near an accessed one may be bad, and some processors crash when they read
 * it (docs/bad-memory.md). So for a volume with a list of bad pages, switches read-ahead off.
 */
static void keep_to_it(const struct target *t)
{
	u64 bads;

	posix_fadvise(t->fd, 0, 0, POSIX_FADV_RANDOM);
	if (pread(t->fd, &bads, sizeof(bads), SG_HOT(bads)) != sizeof(bads) || SG_BADS_USED(bads))
		madvise(t->base, t->size, MADV_RANDOM);
	else
		posix_fadvise(t->fd, 0, 0, POSIX_FADV_NORMAL);
}

/* For a writable private mapping, the kernel may charge each page as memory. */
static const char *private_refused(const struct target *t, char why[200])
{
	char size[32];

	snprintf(why, 200, "the kernel refuses a private mapping of %s; it counts all of that as memory "
		 "if vm.overcommit_memory is 2: set that to 0 meanwhile, or raise ulimit -d and -v",
		 show_size(t->size, size));
	return why;
}

int target_change(struct target *t, char why[200])
{
	if (t->use != TARGET_CHECK)
		return 0;
	if (!mprotect(t->base, t->size, PROT_READ | PROT_WRITE)) {
		t->use = TARGET_HOLD;
		return 0;
	}
	if (errno == ENOMEM)
		private_refused(t, why);
	else
		snprintf(why, 200, "cannot be mapped for writing: %s", strerror(errno));
	return -errno;
}

static int map(struct target *t)
{
	bool look = t->use == TARGET_READ || t->use == TARGET_CHECK;
	int prot = look ? PROT_READ : PROT_READ | PROT_WRITE;
	int share = t->use == TARGET_LOOK || device_held(t) ? MAP_PRIVATE : MAP_SHARED;

	if (t->kind == TARGET_DAX && t->use == TARGET_LOOK)
		return -EOPNOTSUPP;	/* device-dax has no private mappings */
	if (t->kind == TARGET_BLOCK)
		ioctl(t->fd, BLKFLSBUF, 0);
	if (device_held(t)) {
		t->device = device_new();
		if (!t->device)
			return -ENOMEM;
	}
	t->base = mmap(NULL, t->size, prot, share | MAP_NORESERVE, t->fd, 0);
	if (t->base == MAP_FAILED) {
		device_free(t);
		return -errno;
	}
	if (t->kind == TARGET_BLOCK)
		keep_to_it(t);
	if (t->kind == TARGET_FILE)
		sg_os_mapped(t->base, t->size, t->fd);
	return 0;
}

static void unmap(struct target *t, u64 size)
{
	sg_os_unmapped(t->base);
	munmap(t->base, size);
}

bool target_follow(struct target *t)
{
	u64 had = t->base ? t->size : 0;
	int err = look_at(t);

	if (!err && had && t->size == had)
		return true;
	if (t->base)
		unmap(t, had);
	t->base = NULL;
	if (!err && t->size >= SG_VOLUME_MIN && map(t))
		t->base = NULL;
	return t->base;
}

/*
 * Does not open objects that cannot hold a volume. Opening a FIFO would wait for a peer, and
 * opening a device (a tape, a watchdog) may have unwanted effects.
 */
static int refuse_kind(const char *path, const struct stat *st)
{
	struct target dax = { .rdev = st->st_rdev };
	mode_t mode = st->st_mode;

	if (S_ISREG(mode) || S_ISBLK(mode) || (S_ISCHR(mode) && !dax_size(&dax)))
		return 0;
	if (S_ISCHR(mode))
		tool_error("%s: is a character device, but not a device-dax node (/dev/daxN.M)", path);
	else
		tool_error("%s: is a %s, not a file or device that can hold a volume%s", path,
			   S_ISDIR(mode) ? "directory" : S_ISFIFO(mode) ? "FIFO" : "socket",
			   S_ISDIR(mode) ? "; for a mounted volume, name its device" : "");
	return -EINVAL;
}

/* .stargate/region has no private mappings. */
static bool is_region(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == SG_FS_MAGIC;
}

static const char *pinned;
static char pinned_at[32];

void target_pin(const char *path, int fd)
{
	pinned = path;
	snprintf(pinned_at, sizeof(pinned_at), "/proc/self/fd/%d", fd);
}

const char *target_path(const char *path)
{
	return pinned && !strcmp(path, pinned) ? pinned_at : path;
}

bool file_is_named(int fd, const char *path)
{
	struct stat own, there;

	return !fstat(fd, &own) && !lstat(path, &there) && own.st_dev == there.st_dev &&
	       own.st_ino == there.st_ino && own.st_nlink == 1;
}

int target_open(struct target *t, const char *path, enum target_use use)
{
	char why[200];
	struct stat st;
	int err;

	*t = (struct target){ .path = path, .fd = -1, .use = use };
	if (stat(target_path(path), &st))
		return failed(t, "cannot be opened", errno);
	err = refuse_kind(path, &st);
	if (err)
		return err;
	if (use == TARGET_SHARE && S_ISBLK(st.st_mode)) {
		tool_error("%s: is a block device, where other systems do not see stores immediately; name the file or device-dax node that VMs map",
			   path);
		return -EOPNOTSUPP;
	}
	t->fd = open(target_path(path), open_flags(use, S_ISBLK(st.st_mode)) | O_NONBLOCK);
	if (t->fd < 0 && errno == EBUSY)
		return failed(t, "is mounted or in use here; unmount it first", EBUSY);
	if (t->fd < 0)
		return failed(t, use == TARGET_LOOK || use == TARGET_READ ? "cannot be opened" :
			      "cannot be opened for writing", errno);
	err = look_at(t);
	if (err)
		return failed(t, "its size is unknown", -err);
	/*
	 * Accepts an empty file, in which a tool may later make a volume, or a machine its memory.
	 *
	 */
	if (t->size < SG_VOLUME_MIN && (use != TARGET_SHARE || t->size)) {
		tool_error("%s: has %llu bytes; the smallest volume is 16 MiB", path,
			   (unsigned long long)t->size);
		close(t->fd);
		t->fd = -1;
		return -EINVAL;
	}
	if (use == TARGET_SHARE) {
		target_follow(t);
		return 0;
	}
	if (use != TARGET_LOOK && use != TARGET_READ && t->kind == TARGET_BLOCK &&
	    device_writable(t->fd, path)) {
		close(t->fd);
		t->fd = -1;
		return -EROFS;
	}
	err = map(t);
	if (err == -EINVAL && use == TARGET_LOOK && is_region(t->fd))
		return failed(t, "is the memory of a mounted volume; name the mounted device instead", EBUSY);
	if (err == -ENOMEM && (use == TARGET_LOOK || device_held(t)))
		return failed(t, private_refused(t, why), ENOMEM);
	return err ? failed(t, "cannot be mapped", -err) : 0;
}

/* --- a new file ---------------------------------------------------------------------------- */

/*
 * Allocates bytes before any process stores to them. In a full file system the first store would
 * otherwise cause SIGBUS. For a @sparse volume, allocates only its metadata.
 */
static int reserve(const struct target *t, const struct sg_super *sb, bool sparse)
{
	u64 front = sparse ? sb->data_off + SG_PAGE : t->size;
	u64 last = sb->size - SG_PAGE;

	if (fallocate(t->fd, 0, 0, (off_t)front) ||
	    (front < last && fallocate(t->fd, 0, (off_t)last, SG_PAGE)))
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	return 0;
}

/*
 * First checks the free space, so that an attempt does not fill the tmpfs, and with it the
 * machine's memory.
 */
static int fits(const struct target *t, const struct sg_super *sb, bool sparse)
{
	u64 want = sparse ? sb->data_off : t->size, have, left;
	struct statvfs fs;
	struct stat st;
	char a[32], b[32];

	if (fstatvfs(t->fd, &fs) || fstat(t->fd, &st) || !fs.f_blocks)
		return 0;
	have = (u64)st.st_blocks * 512;
	left = (u64)fs.f_bavail * fs.f_frsize;
	if (want <= have || want - have <= left)
		return 0;
	tool_error("%s: does not fit there: %s %s, and %s are free", t->path, show_size(want, a),
		   sparse ? "of metadata" : "are needed", show_size(left, b));
	return -ENOSPC;
}

int target_create(struct target *t, const char *path, const struct sg_super *sb, bool sparse)
{
	struct stat st;
	int err;

	*t = (struct target){ .path = path, .use = TARGET_CHANGE, .grown = true };
	if (target_path(path) != path) {
		t->fd = open(target_path(path), O_RDWR | O_CLOEXEC);
	} else {
		/*
		 * The file did not exist before. So if a file has the name now, no check has
		 * examined it.
		 */
		t->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		t->made = t->fd >= 0;
	}
	if (t->fd < 0 || fstat(t->fd, &st))
		return failed(t, "cannot be made", errno);
	t->was = (u64)st.st_size;
	t->size = sb->size;
	err = fits(t, sb, sparse);
	if (err)
		goto undo;
	if (ftruncate(t->fd, (off_t)t->size))
		err = -errno;
	if (!err)
		err = reserve(t, sb, sparse);
	if (!err)
		err = map(t);
	if (!err)
		return 0;
	tool_error("%s: cannot be made that large: %s", path, strerror(-err));
undo:
	target_undo(t);
	return err;
}

/*
 * A process that reads the new size may immediately store to these bytes: without memory for them
 * it would receive SIGBUS.
 */
int target_lengthen(const char *path, u64 had, u64 size)
{
	struct target t = { .path = path, .fd = open(target_path(path), O_RDWR | O_CLOEXEC) };
	int err = 0;

	if (t.fd < 0)
		return failed(&t, "cannot be opened for writing", errno);
	if (fallocate(t.fd, 0, (off_t)had, (off_t)(size - had)))
		err = errno;
	if ((err == EOPNOTSUPP || err == ENOSYS) && !ftruncate(t.fd, (off_t)size))
		err = 0;
	if (err) {
		target_shorten(path, had);
		return failed(&t, "cannot be made that large", err);
	}
	close(t.fd);
	return 0;
}

void target_shorten(const char *path, u64 had)
{
	if (truncate(target_path(path), (off_t)had))
		tool_warn("%s: cannot be cut to the size of its volume: %s", path, strerror(errno));
}

void target_undo(struct target *t)
{
	if (t->base && t->base != MAP_FAILED)
		unmap(t, t->size);
	if ((t->made && file_is_named(t->fd, t->path) && unlink(t->path)) ||
	    (!t->made && t->grown && ftruncate(t->fd, (off_t)t->was)))
		tool_warn("%s: an interrupted change cannot be undone: %s", t->path, strerror(errno));
	close(t->fd);
	t->fd = -1;
}

int target_flush(const struct target *t)
{
	if (device_held(t))
		return device_store(t);
	if ((t->use == TARGET_CHANGE || t->use == TARGET_HOLD) && t->kind != TARGET_DAX &&
	    (msync(t->base, t->size, MS_SYNC) || fsync(t->fd)))
		return -errno;
	return 0;
}

int target_drain(const struct target *t)
{
	return device_held(t) ? device_drain(t) : target_flush(t);
}

int target_close(struct target *t)
{
	int err;

	if (t->fd < 0)
		return 0;
	err = target_flush(t);
	if (t->base)
		unmap(t, t->size);
	if (t->kind == TARGET_BLOCK)
		ioctl(t->fd, BLKFLSBUF, 0);
	if (err && err != -EBUSY)	/* another system has joined, which has been reported */
		tool_error("%s: only a part could be written: %s", t->path, strerror(-err));
	if (err && t->made && file_is_named(t->fd, t->path))
		unlink(t->path);
	close(t->fd);
	t->fd = -1;
	device_free(t);
	return err;
}

int device_past_cache(const struct target *t, int flags)
{
	char path[32];
	int fd;

	/* Opens the same device, even if another device now has its name. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
	fd = open(path, flags | O_DIRECT | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* This also bypasses the private copy, in which recovery may have run. */
int target_read_now(const struct target *t, u64 off, void *buf, size_t len)
{
	u64 first = off & ~(SG_PAGE - 1), end = SG_ALIGN_PAGE(off + len);
	int fd, err = 0;
	void *pages;

	if (t->kind == TARGET_DAX) {
		memcpy(buf, (const u8 *)t->base + off, len);
		return 0;
	}
	if (t->kind == TARGET_FILE)
		return pread(t->fd, buf, len, (off_t)off) == (ssize_t)len ? 0 : -EIO;
	fd = device_past_cache(t, O_RDONLY);
	if (fd < 0)
		return fd;
	if (posix_memalign(&pages, SG_PAGE, end - first)) {
		close(fd);
		return -ENOMEM;
	}
	if (pread(fd, pages, end - first, (off_t)first) != (ssize_t)(end - first))
		err = -EIO;
	else
		memcpy(buf, (const u8 *)pages + (off - first), len);
	free(pages);
	close(fd);
	return err;
}
