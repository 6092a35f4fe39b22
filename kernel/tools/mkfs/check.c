// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of mkfs.stargatefs before any change: whether it may overwrite the target, and whether
 * the target is large enough.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "mkfs.h"

#define PIECE	(1u << 20)

/* --- the content --------------------------------------------------------------------------- */

static int refuse_stargate(const struct request *r, const struct sg_probe *probe)
{
	char id[37];

	if (probe->live && !r->force_live) {
		tool_error("%s: %u system(s) use this StargateFS or died while using it; unmount it there, run fsck.stargatefs, or give --force-live",
			   r->path,
			   probe->live);
		return -EBUSY;
	}
	if (r->force || r->force_live)
		return 0;
	if (probe->from_backup) {
		tool_error("%s: holds a StargateFS (%.63s%s%s) whose first superblock is damaged; "
			   "fsck.stargatefs -y can repair it, -f overwrites it", r->path,
			   probe->sb.label, probe->sb.label[0] ? ", " : "",
			   show_uuid(probe->sb.uuid, id));
		return -EEXIST;
	}
	tool_error("%s: holds a StargateFS (%.63s%s%s); give -f to overwrite it", r->path,
		   probe->sb.label, probe->sb.label[0] ? ", " : "",
		   probe->valid ? show_uuid(probe->sb.uuid, id) : "damaged");
	return -EEXIST;
}

/*
 * Refuses to overwrite data, so that a typing error does not destroy it. *known: the check
 * recognised the content.
 */
static int refuse_known(const struct request *r, const void *base, u64 size, bool *known)
{
	struct sg_probe probe;
	const char *other;

	sg_probe(base, size, &probe);
	other = probe.stargate ? NULL : foreign_signature(base, size);
	if (!other)
		sg_search(base, size, &probe);
	*known = probe.stargate;
	if (probe.stargate)
		return refuse_stargate(r, &probe);
	*known = other;
	if (!other || r->force)
		return 0;
	tool_error("%s: holds %s; give -f to overwrite it", r->path, other);
	return -EEXIST;
}

/*
 * Returns the offset of the file's first byte that is not zero, -1 if there is none, or -errno - 1.
 *
 */
static s64 first_byte(int fd, char *piece)
{
	off_t pos = 0, data;
	ssize_t n, i;

	for (;; pos += n) {
		data = lseek(fd, pos, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			return -1;
		pos = data < 0 ? pos : data;	/* hugetlbfs does not report holes */
		n = pread(fd, piece, PIECE, pos);
		if (n <= 0)
			return n ? -(s64)errno - 1 : -1;
		for (i = 0; i < n; i++)
			if (piece[i])
				return pos + i;
	}
}

/* A regular file may hold any data; only a file of zeroes counts as new. */
static int refuse_data(const struct request *r, int fd)
{
	char *piece = malloc(PIECE);
	s64 at = piece ? first_byte(fd, piece) : -ENOMEM - 1;

	free(piece);
	if (at == -1)
		return 0;
	if (at < 0) {
		tool_error("%s: cannot be read: %s", r->path, strerror((int)-(at + 1)));
		return (int)(at + 1);
	}
	tool_error("%s: holds data of unknown kind, from byte %lld on; give -f to overwrite it",
		   r->path, (long long)at);
	return -EEXIST;
}

/* Refuses a file without a given address, but only after its users and content allow the format. */
static int refuse_unplaced(const struct request *r)
{
	if (r->phys_given)
		return 0;
	tool_error("%s: give the address where VMs map it, e.g. --phys 16G", r->path);
	return -EINVAL;
}

static int refuse_contents(const struct request *r, u64 size)
{
	int fd = open(target_path(r->path), O_RDONLY | O_CLOEXEC), err = 0;
	bool known = false;
	void *base;

	if (fd < 0) {
		err = -errno;
		tool_error("%s: cannot be opened: %s", r->path, strerror(-err));
		return err;
	}
	base = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		err = -errno;
		tool_error("%s: cannot be mapped: %s", r->path, strerror(-err));
	} else {
		sg_os_mapped(base, size, fd);	/* the search reads holes without filling them */
		err = refuse_known(r, base, size, &known);
		sg_os_unmapped(base);
		munmap(base, size);
	}
	if (!err)
		err = refuse_unplaced(r);	/* before the complete file is read */
	if (!err && !known && !r->force)
		err = refuse_data(r, fd);
	close(fd);
	return err;
}

/* --- the place ----------------------------------------------------------------------------- */

static int refuse_place(const char *path, const char *what, int err)
{
	tool_error("%s: cannot be made: %s%s%s", path, what ? what : "", what ? ": " : "",
		   strerror(err));
	return -err;
}

/* Checks whether a file of that name can be made. */
static int check_new(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	char *dir;
	int err = 0;

	if (!lstat(path, &st))
		return refuse_place(path, "it is a symbolic link to nothing", ENOENT);
	if (slash && !slash[1])
		return refuse_place(path, "that names a directory", EISDIR);
	dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	if (!dir)
		return refuse_place(path, NULL, ENOMEM);
	if (stat(dir, &st) || access(dir, W_OK | X_OK))
		err = refuse_place(path, dir, errno);
	else if (!S_ISDIR(st.st_mode))
		err = refuse_place(path, dir, ENOTDIR);
	free(dir);
	return err;
}

static int check_size(const struct request *r, const struct stat *st, u64 *size)
{
	u64 has = st ? (u64)st->st_size : 0;

	*size = r->size ? r->size : has;
	if (r->size && has > r->size)
		tool_error("%s: has %llu bytes, more than --size says (%llu); leave --size out, or "
			   "remove the file", r->path, (unsigned long long)has,
			   (unsigned long long)r->size);
	else if (!st && !r->size)
		tool_error("%s: there is no such file or device; to make a file, give its size: --size 256M", r->path);
	else if (*size < SG_VOLUME_MIN)
		tool_error("%s: has %llu bytes; the smallest volume is 16 MiB: --size 16M would "
			   "make it grow", r->path, (unsigned long long)has);
	else
		return 0;
	return -EINVAL;
}

int check_file(const struct request *r, const struct stat *st, u64 *size)
{
	int err = check_size(r, st, size);

	if (!err && !st)
		err = refuse_unplaced(r) ?: check_new(r->path);
	if (err || !st)
		return err;
	return st->st_size ? refuse_contents(r, (u64)st->st_size) : refuse_unplaced(r);
}

/* --- devices ------------------------------------------------------------------------------- */

static int find_phys(struct request *r, const struct target *t)
{
	u64 phys;
	int err = target_phys(t, &phys);

	if (err && !r->phys_given) {
		tool_error("%s: not one contiguous range of memory that the kernel knows; give --phys",
			   r->path);
		return err;
	}
	if (!err && r->phys_given && phys != r->opts.phys) {
		tool_error("%s: lies at 0x%llx, and not at 0x%llx; leave --%s out", r->path,
			   (unsigned long long)phys, (unsigned long long)r->opts.phys,
			   r->phys_given);
		return -EINVAL;
	}
	if (!err)
		r->opts.phys = phys;
	if (r->opts.phys % SG_VOLUME_ALIGN) {
		tool_error("%s: its address 0x%llx is not a multiple of 2 MiB; align the device or partition",
			   r->path, (unsigned long long)r->opts.phys);
		return -EINVAL;
	}
	return 0;
}

/* On a device, searches only for signatures, because a complete read would take minutes. */
int check_device(struct request *r, const struct target *t)
{
	bool known;
	int err = refuse_known(r, t->base, t->size, &known);

	return err ? err : find_phys(r, t);
}
