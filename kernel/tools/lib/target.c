// SPDX-License-Identifier: Apache-2.0
/*
 * The file or device that holds a volume, mapped.
 *
 * A plain file (on tmpfs, hugetlbfs, a DAX file system) and a device-dax node are mapped shared:
 * all who map them see one memory. A block device is different: its mapping goes through the page
 * cache, also for /dev/pmemN, and shows what was read once; a mounted file system, which uses the
 * memory itself, neither sees our stores nor shows us its own. So of a block device
 *  - the cache is dropped before it is mapped, and dropped again behind what we wrote back;
 *  - to change it, it is opened exclusively: no mount, no LVM, no other tool has it meanwhile;
 *  - whether another system is alive is read past the cache (target_read_now(), member.c).
 * Order within a write-back is the kernel's: a power cut in the middle of it may leave more than
 * the journal expects, which fsck.stargatefs then repairs. Files and device-dax have no such gap.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
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

/* Kind and size. Sizes are cut to whole chunks by the engine, not here. */
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

static int open_flags(enum target_use use, bool block)
{
	if (use != TARGET_CHANGE)
		return O_RDONLY | O_CLOEXEC;
	return O_RDWR | O_CLOEXEC | (block ? O_EXCL : 0);
}

static int map(struct target *t)
{
	int prot = t->use == TARGET_READ ? PROT_READ : PROT_READ | PROT_WRITE;
	int share = t->use == TARGET_LOOK ? MAP_PRIVATE : MAP_SHARED;

	if (t->kind == TARGET_DAX && t->use == TARGET_LOOK)
		return -EOPNOTSUPP;	/* device-dax has no private mappings */
	if (t->kind == TARGET_BLOCK)
		ioctl(t->fd, BLKFLSBUF, 0);
	t->base = mmap(NULL, t->size, prot, share | MAP_NORESERVE, t->fd, 0);
	return t->base == MAP_FAILED ? -errno : 0;
}

int target_open(struct target *t, const char *path, enum target_use use)
{
	struct stat st;
	int err;

	*t = (struct target){ .path = path, .fd = -1, .use = use };
	if (stat(path, &st))
		return failed(t, "cannot be opened", errno);
	t->fd = open(path, open_flags(use, S_ISBLK(st.st_mode)));
	if (t->fd < 0 && errno == EBUSY)
		return failed(t, "is mounted or in use here; unmount it first", EBUSY);
	if (t->fd < 0)
		return failed(t, "cannot be opened", errno);
	err = look_at(t);
	if (err)
		return failed(t, "holds no volume", -err);
	if (t->size < SG_VOLUME_MIN) {
		tool_error("%s: has %llu bytes; the smallest volume is 16 MiB", path,
			   (unsigned long long)t->size);
		close(t->fd);
		t->fd = -1;
		return -EINVAL;
	}
	err = map(t);
	return err ? failed(t, "cannot be mapped", -err) : 0;
}

/*
 * Makes the file, or grows a smaller one. Unless @sparse its blocks are there before anybody maps
 * it: a full file system would otherwise be a SIGBUS in whoever stores first. @dry: in memory only.
 */
int target_create(struct target *t, const char *path, u64 size, bool sparse, bool dry)
{
	struct stat st;
	int err = 0;

	*t = (struct target){ .path = path, .fd = -1, .use = TARGET_CHANGE };
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		tool_error("%s: --size is for plain files; a device has its own", path);
		return -EINVAL;
	}
	if (dry)
		t->fd = memfd_create("volume", MFD_CLOEXEC);
	else
		t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (t->fd < 0)
		return failed(t, "cannot be made", errno);
	if (fstat(t->fd, &st))
		return failed(t, "cannot be made", errno);
	if ((u64)st.st_size > size) {
		tool_error("%s: is larger than --size; leave --size out, or remove the file", path);
		close(t->fd);
		return -EFBIG;
	}
	if ((u64)st.st_size < size && ftruncate(t->fd, (off_t)size))
		return failed(t, "cannot be made that large", errno);
	if (!dry && !sparse && fallocate(t->fd, 0, 0, (off_t)size) && errno == ENOSPC)
		return failed(t, "does not fit there", ENOSPC);
	err = look_at(t);
	if (!err)
		err = map(t);
	return err ? failed(t, "cannot be mapped", -err) : 0;
}

int target_close(struct target *t)
{
	int err = 0;

	if (t->fd < 0)
		return 0;
	if (t->use == TARGET_CHANGE && t->kind != TARGET_DAX &&
	    (msync(t->base, t->size, MS_SYNC) || fsync(t->fd)))
		err = -errno;
	munmap(t->base, t->size);
	if (t->kind == TARGET_BLOCK)
		ioctl(t->fd, BLKFLSBUF, 0);
	close(t->fd);
	t->fd = -1;
	if (err)
		tool_error("%s: not all could be written: %s", t->path, strerror(-err));
	return err;
}

/* Also past our own private copy, in which recovery may have been played. */
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
	fd = open(t->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return -errno;
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
