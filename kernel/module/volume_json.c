// SPDX-License-Identifier: GPL-2.0
/*
 * .stargate/volume.json: the data with which a VMM gives a volume to a VM (D11). Its keys never
 * change; stargatefs(5) lists them.
 */
#include <linux/uaccess.h>

#include "stargatefs.h"

#define ROOM	320

/* Return the size of the largest pages that can map the volume, up to 1 GiB. */
static u64 sgfs_alignment(const struct sgfs_memory *mem)
{
	u64 lowest = mem->phys & -mem->phys;

	return lowest ? min_t(u64, lowest, SZ_1G) : SZ_1G;
}

/*
 * Report whether the volume has bad pages. Faults of region fail at these pages, and
 * MADV_POPULATE_WRITE of the complete file fails, too (region.c).
 */
static bool sgfs_volume_json_has_bad(const struct sgfs *fs)
{
	return sg_has_bad(&fs->vol) && sg_is_bad(&fs->vol, 0, fs->mem.size >> PAGE_SHIFT);
}

/* Numbers above 2^53 are not safe in JSON: an address is a string. */
static int sgfs_volume_json_describe(const struct super_block *sb, char text[ROOM])
{
	const struct sgfs *fs = SGFS(sb);

	return scnprintf(text, ROOM,
			 "{\n"
			 "  \"version\": 1,\n"
			 "  \"uuid\": \"%pUb\",\n"
			 "  \"base\": \"0x%llx\",\n"
			 "  \"size\": %llu,\n"
			 "  \"alignment\": %llu,\n"
			 "  \"mode\": \"%s\",\n"
			 "  \"joined\": %s,\n"
			 "  \"bad\": %s\n"
			 "}\n",
			 fs->vol.sb.uuid, (u64)fs->mem.phys, fs->mem.size, sgfs_alignment(&fs->mem),
			 sb_rdonly(sb) ? "ro" : "rw", fs->joined ? "true" : "false",
			 sgfs_volume_json_has_bad(fs) ? "true" : "false");
}

loff_t sgfs_about_size(const struct super_block *sb)
{
	char text[ROOM];

	return sgfs_volume_json_describe(sb, text);
}

static ssize_t sgfs_read_about(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	char text[ROOM];

	return simple_read_from_buffer(to, len, pos, text,
				       sgfs_volume_json_describe(file_inode(file)->i_sb, text));
}

const struct file_operations sgfs_about_operations = {
	.open		= generic_file_open,
	.llseek		= default_llseek,
	.read		= sgfs_read_about,
};
