// SPDX-License-Identifier: Apache-2.0
/* Recognizes other formats on a device, so that a tool does not overwrite them by mistake. */
#include "tool.h"

static const struct {
	const char *name;
	u64 off;
	const char *magic;
	unsigned int len;
} signatures[] = {
	{ "ext2, ext3 or ext4", 0x438, "\x53\xef", 2 },
	{ "XFS", 0, "XFSB", 4 },
	{ "Btrfs", 0x10040, "_BHRfS_M", 8 },
	{ "bcache", 0x1018, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca", 8 },
	{ "bcachefs", 0x1018, "\xc6\x85\x73\xf6\x66\xce\x90\xa9", 8 },
	{ "F2FS", 0x400, "\x10\x20\xf5\xf2", 4 },
	{ "EROFS", 0x400, "\xe2\xe1\xf5\xe0", 4 },
	{ "GFS2", 0x10000, "\x01\x16\x19\x70", 4 },
	{ "OCFS2", 0x2000, "OCFSV2", 6 },
	{ "NOVA", 0, "\x41\x56\x4f\x4e", 4 },
	{ "NTFS", 3, "NTFS    ", 8 },
	{ "exFAT", 3, "EXFAT   ", 8 },
	{ "FAT", 54, "FAT1", 4 },
	{ "FAT", 82, "FAT32", 5 },
	{ "ISO 9660", 0x8001, "CD001", 5 },
	{ "SquashFS", 0, "hsqs", 4 },
	{ "swap space", 4086, "SWAPSPACE2", 10 },
	{ "an LVM physical volume", 512, "LABELONE", 8 },
	{ "an LVM physical volume", 0, "LABELONE", 8 },
	{ "a LUKS container", 0, "LUKS\xba\xbe", 6 },
	{ "a RAID member", 4096, "\xfc\x4e\x2b\xa9", 4 },
	{ "a partition table", 512, "EFI PART", 8 },
	{ "a QCOW2 image", 0, "QFI\xfb", 4 },
	{ "an nvdimm namespace's own data", 0x1000, "NVDIMM_PFN_INFO", 15 },
	{ "an nvdimm namespace's own data", 0x1000, "NVDIMM_DAX_INFO", 15 },
	{ "an nvdimm namespace's own data", 0x1000, "BTT_ARENA_INFO", 14 },
};

/*
 * Reports a partition table if a boot sector has no known file system, and one of its entries has a
 * type.
 */
static bool has_partitions(const u8 *base)
{
	unsigned int i;

	if (base[510] != 0x55 || base[511] != 0xaa)
		return false;
	for (i = 446; i < 510; i += 16)
		if (!(base[i] & 0x7f) && base[i + 4])
			return true;
	return false;
}

static bool is_lvm(unsigned int i)
{
	return !strcmp(signatures[i].magic, "LABELONE");
}

static const char *find(const void *base, u64 size, bool besides_lvm)
{
	unsigned int i;

	for (i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++)
		if (!(besides_lvm && is_lvm(i)) &&
		    signatures[i].off + signatures[i].len <= size &&
		    !memcmp((const u8 *)base + signatures[i].off, signatures[i].magic,
			    signatures[i].len))
			return signatures[i].name;
	return size >= 512 && has_partitions(base) ? "a partition table" : NULL;
}

const char *foreign_signature(const void *base, u64 size)
{
	return find(base, size, false);
}

const char *foreign_besides_lvm(const void *base, u64 size)
{
	return find(base, size, true);
}
