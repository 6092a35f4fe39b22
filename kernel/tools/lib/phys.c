// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the physical address of a device's first byte (D3). sysfs has the address of a pmem disk.
 * The address of a partition is higher by the partition's start, and that of a linear device-mapper
 * table (LVM) by its offset. A device that is not one contiguous range of such a device has no
 * base.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tool.h"

#define DEPTH 8 /* limit for devices on top of devices */
#define SECTOR	512

static int read_number(const char *dir, const char *name, u64 *out)
{
	char path[512], text[64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	ok = fgets(text, sizeof(text), f) && sscanf(text, "%" SCNi64, (int64_t *)out) == 1;
	fclose(f);
	return ok ? 0 : -EINVAL;
}

static int base_of(dev_t dev, u64 *phys, unsigned int depth);

/* --- device mapper ------------------------------------------------------------------------- */

/* Returns the kernel's tables of @dev, which the caller frees. */
static struct dm_ioctl *dm_table(dev_t dev)
{
	size_t len = 64 << 10;
	struct dm_ioctl *io = calloc(1, len);
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);

	if (!io || fd < 0)
		goto fail;
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = (uint32_t)len;
	io->data_start = sizeof(*io);
	io->flags = DM_STATUS_TABLE_FLAG;
	io->dev = (uint64_t)dev;
	if (ioctl(fd, DM_TABLE_STATUS, io) || io->flags & DM_BUFFER_FULL_FLAG)
		goto fail;
	close(fd);
	return io;
fail:
	if (fd >= 0)
		close(fd);
	free(io);
	return NULL;
}

/* Reads one target "linear", with "MAJOR:MINOR SECTOR" as its parameters. */
static int target_base(const struct dm_target_spec *spec, u64 *phys, unsigned int depth)
{
	unsigned int maj, min;
	u64 sector;
	int err;

	if (strcmp(spec->target_type, "linear") ||
	    sscanf((const char *)(spec + 1), "%u:%u %" SCNu64, &maj, &min, &sector) != 3)
		return -ENODATA;
	err = base_of(makedev(maj, min), phys, depth + 1);
	if (!err)
		*phys += sector * SECTOR;
	return err;
}

/*
 * Accepts only one target. With several targets, the kernel returns the memory of one target at a
 * time. So the kernel does not mount such a device, even if the targets are adjacent.
 */
static int dm_base(dev_t dev, u64 *phys, unsigned int depth)
{
	struct dm_ioctl *io = dm_table(dev);
	const struct dm_target_spec *spec;
	int err = io && io->target_count == 1 ? 0 : -ENODATA;

	if (!err) {
		spec = (const void *)((const char *)io + io->data_start);
		err = target_base(spec, phys, depth);
	}
	free(io);
	return err;
}

/* --- disks and partitions ------------------------------------------------------------------ */

static int base_of(dev_t dev, u64 *phys, unsigned int depth)
{
	char dir[64], up[80];
	u64 start, maj_min;

	if (depth > DEPTH)
		return -ENODATA;
	snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	snprintf(up, sizeof(up), "%s/dm", dir);
	if (!access(up, F_OK))
		return dm_base(dev, phys, depth);
	if (!read_number(dir, "partition", &maj_min)) {
		snprintf(up, sizeof(up), "%s/..", dir);
		if (read_number(dir, "start", &start) ||
		    read_number(up, "device/resource", phys))
			return -ENODATA;
		*phys += start * SECTOR;
		return 0;
	}
	return read_number(dir, "device/resource", phys) ? -ENODATA : 0;
}

int device_phys(dev_t dev, u64 *phys)
{
	return base_of(dev, phys, 0);
}

/*
 * Reads the flag `dax` of the queue; a partition uses the queue of its disk. Without this flag the
 * kernel copies blocks instead of mapping memory.
 */
bool device_is_dax(dev_t dev)
{
	char path[80];
	u64 dax = 0;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (read_number(path, "queue/dax", &dax))
		read_number(path, "../queue/dax", &dax);
	return dax;
}

int target_phys(const struct target *t, u64 *phys)
{
	char dir[64];

	if (t->kind == TARGET_BLOCK)
		return device_phys(t->rdev, phys);
	if (t->kind == TARGET_FILE)
		return -ENODATA;
	snprintf(dir, sizeof(dir), "/sys/dev/char/%u:%u", major(t->rdev), minor(t->rdev));
	return read_number(dir, "resource", phys) ? -ENODATA : 0;
}
