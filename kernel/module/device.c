// SPDX-License-Identifier: GPL-2.0
/*
 * The location of a volume: a block device with memory behind it (/dev/pmemN, or a logical volume
 * on one), or a bare physical range. Either way it is one contiguous extent of memory, mapped
 * write-back, at the address for which the volume was made (D1-D3). File tables hold physical
 * addresses.
 */
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/fs_context.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/nd.h>

#include "stargatefs.h"

static int sgfs_refuse(struct fs_context *fc, const char *what, const char *why)
{
	errorfc(fc, "%s: %s", what, why);
	return -EINVAL;
}

static int sgfs_check_place(struct fs_context *fc, const struct sgfs_memory *mem)
{
	if (!IS_ALIGNED(mem->phys, SG_VOLUME_ALIGN)) {
		errorfc(fc, "the volume begins at physical address 0x%llx, which is "
			"not a multiple of 2 MiB",
			(u64)mem->phys);
		return -EINVAL;
	}
	if (mem->size < SG_VOLUME_MIN) {
		errorfc(fc, "%llu bytes are too small: a volume has at least 16 MiB", mem->size);
		return -EINVAL;
	}
	return 0;
}

/* The whole device must be one contiguous physical range, and one contiguous virtual range. */
static int sgfs_map_device(struct fs_context *fc, struct super_block *sb, struct sgfs_memory *mem)
{
	long want = mem->size >> PAGE_SHIFT, got;
	int id = dax_read_lock();

	got = sgfs_dax_access(mem->dax, mem->start >> PAGE_SHIFT, want, &mem->base, &mem->phys);
	dax_read_unlock(id);
	if (got < 0) {
		errorfc(fc, "%s: its memory cannot be accessed (error %ld%s)", sb->s_id, -got,
			got == -EHWPOISON || got == -EIO ? ": bad blocks; see ndctl list -M" : "");
		return got;
	}
	if (got < want) {
		errorfc(fc, "%s: only %ld of its %ld pages are contiguous memory (a fragmented "
			"logical volume, or bad blocks); make it with lvcreate --contiguous y",
			sb->s_id, got, want);
		return -EINVAL;
	}
	mem->pages = sgfs_hold_pages(mem->phys);
	if (!mem->pages) {	/* a DAX device has struct pages until its driver removes them */
		errorfc(fc, "%s: its device is being removed", sb->s_id);
		return -ENODEV;
	}
	return sgfs_check_place(fc, mem);
}

/*
 * Find the memory of an NVDIMM whose namespace has no struct pages, as in every VM. Its driver sets
 * no DAX flag then, but the module needs no struct pages. The namespace's device is the parent of
 * the disk, and has the address.
 */
static const struct resource *sgfs_raw_namespace(struct block_device *bdev)
{
	const struct device *dev = disk_to_dev(bdev->bd_disk)->parent;
	const struct resource *res;

	if (!dev || !dev->type || !dev->type->name ||
	    (strcmp(dev->type->name, "nd_namespace_io") &&
	     strcmp(dev->type->name, "nd_namespace_pmem")))
		return NULL;
	res = &to_nd_namespace_io(dev)->res;
	return resource_size(res) == get_capacity(bdev->bd_disk) << SECTOR_SHIFT ? res : NULL;
}

static int sgfs_map_namespace(struct fs_context *fc, struct super_block *sb,
			      const struct resource *res, struct sgfs_memory *mem)
{
	int err;

	mem->phys = res->start + (get_start_sect(sb->s_bdev) << SECTOR_SHIFT);
	err = sgfs_check_place(fc, mem);
	if (err)
		return err;
	mem->base = memremap(mem->phys, mem->size, MEMREMAP_WB);
	if (!mem->base)
		return sgfs_refuse(fc, sb->s_id, "its memory cannot be mapped write-back");
	return 0;
}

int sgfs_memory_of_device(struct fs_context *fc, struct super_block *sb, struct sgfs_memory *mem)
{
	const struct resource *res;
	int err;

	mem->size = bdev_nr_bytes(sb->s_bdev) & PAGE_MASK;
	mem->read_only = bdev_read_only(sb->s_bdev);
	/*
	 * Become the holder of the device, which memory_failure() calls; two partitions share one
	 * holder (poison.c).
	 */
	mem->dax = fs_dax_get_by_bdev(sb->s_bdev, &mem->start, mem, &sgfs_dax_holder) ?:
		   fs_dax_get_by_bdev(sb->s_bdev, &mem->start, NULL, NULL);
	if (!mem->dax) {
		res = sgfs_raw_namespace(sb->s_bdev);
		if (res)
			return sgfs_map_namespace(fc, sb, res, mem);
		return sgfs_refuse(fc, sb->s_id,
				   "is not a DAX device: its bytes cannot be addressed as memory");
	}
	err = sgfs_map_device(fc, sb, mem);
	if (err)
		sgfs_memory_release(mem);
	return err;
}

/*
 * A search for the first extent of the wanted range, which must begin at the right address.
 */
struct piece {
	u64 start, end;
};

static int sgfs_take_piece(struct resource *res, void *arg)
{
	struct piece *p = arg;

	if (res->start <= p->start)
		p->end = res->end + 1;
	return 1;
}

/*
 * Report whether the range is reserved on purpose, without a gap: by memmap=SIZE$ADDRESS or
 * firmware, or as persistent or specific purpose memory without a driver. A range that is merely
 * not RAM does not count.
 */
static bool sgfs_is_reserved(u64 phys, u64 size)
{
	static const unsigned long kinds[] = {
		IORES_DESC_RESERVED, IORES_DESC_PERSISTENT_MEMORY,
		IORES_DESC_PERSISTENT_MEMORY_LEGACY, IORES_DESC_SOFT_RESERVED,
	};
	struct piece p = { .start = phys };
	unsigned int i = 0;

	if (region_intersects(phys, size, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	    REGION_DISJOINT)
		return false;
	while (i < ARRAY_SIZE(kinds)) {	/* follow adjacent ranges of all kinds, up to a hole */
		p.end = p.start;
		walk_iomem_res_desc(kinds[i++], IORESOURCE_MEM, p.start, phys + size - 1, &p,
				    sgfs_take_piece);
		if (p.end == p.start)
			continue;
		if (p.end >= phys + size)
			return true;
		p.start = p.end;
		i = 0;
	}
	return false;
}

int sgfs_memory_of_range(struct fs_context *fc, u64 phys, u64 size, bool read_only,
			 struct sgfs_memory *mem)
{
	int err;

	mem->phys = phys;
	mem->size = size & PAGE_MASK;
	mem->read_only = read_only;
	err = sgfs_check_place(fc, mem);
	if (err)
		return err;
	if (phys + size < phys || !sgfs_is_reserved(phys, mem->size))
		return sgfs_refuse(fc, "phys=, size=",
				   "not all of this is reserved memory (see /proc/iomem and memmap= of "
				   "the kernel)");
	mem->resource = request_mem_region(phys, mem->size, SGFS_NAME);
	if (!mem->resource) {
		errorfc(fc, "phys=, size=: a driver uses this memory already: mount its device "
			"instead (see /proc/iomem)");
		return -EBUSY;
	}
	mem->base = memremap(phys, mem->size, MEMREMAP_WB);
	if (!mem->base) {
		sgfs_memory_release(mem);
		return sgfs_refuse(fc, "phys=, size=", "this memory cannot be mapped write-back");
	}
	return 0;
}

void sgfs_memory_release(struct sgfs_memory *mem)
{
	if (mem->dax) {
		fs_put_dax(mem->dax, mem);
		mem->dax = NULL;
		mem->base = NULL;
	}
	if (mem->pages)
		put_dev_pagemap(mem->pages);
	mem->pages = NULL;
	if (mem->base)
		memunmap(mem->base);
	mem->base = NULL;
	if (mem->resource)
		release_mem_region(mem->phys, mem->size);
	mem->resource = NULL;
}

/*
 * Check whether the device is being removed. The module then keeps the memory, but can no longer
 * use the kernel's DAX code: region gets no more pages. A device below LVM sends no notice, so the
 * module polls.
 */
void sgfs_memory_watch(struct sgfs *fs)
{
	struct sgfs_memory *mem = &fs->mem;
	phys_addr_t phys;
	void *base;
	long got;
	int id;

	if (!mem->pages || mem->going)
		return;
	id = dax_read_lock();
	got = sgfs_dax_access(mem->dax, mem->start >> PAGE_SHIFT, 1, &base, &phys);
	dax_read_unlock(id);
	if (got != -ENXIO)
		return;
	mem->going = true;
	sg_log(fs->sb, SG_WARN, "its device is being removed, which waits for this mount: unmount "
	       "the volume (its memory stays until then, but .stargate/region is mapped no more)");
}
