/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the protocol of /dev/fuse that <linux/fuse.h> of the oldest supported build system
 * lacks. Numbers and layouts are part of the kernel's interface and never change.
 */
#ifndef SG_FUSE_WIRE_H
#define SG_FUSE_WIRE_H

#include <linux/fuse.h>
#include <stdint.h>

/*
 * These opcodes have new names: <linux/fuse.h> defines opcodes as enumerators, which #ifdef cannot
 * test.
 */
#define OP_SYNCFS	50
#define OP_TMPFILE	51
#define OP_STATX	52

/* This bit in the number of a reply: it is a reply to the interrupt of that request. */
#define REPLY_TO_INTERRUPT	1ULL

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES	(1 << 6)
#endif
#define INIT_EXT		(1u << 30)
#define INIT2_DIRECT_MMAP	(1u << (36 - 32))	/* mappings of files with direct_io */

/* struct fuse_init_in and struct fuse_init_out. Older headers lack the second word of flags. */
struct wire_init_in {
	uint32_t major, minor, max_readahead, flags, flags2;
};

struct wire_init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2;
	uint32_t unused[7];
};

struct wire_time {
	int64_t sec;
	uint32_t nsec;
	int32_t unused;
};

struct wire_statx_in {
	uint32_t getattr_flags, unused;
	uint64_t fh;
	uint32_t flags, mask;
};

struct wire_statx_out {
	uint64_t attr_valid;
	uint32_t attr_valid_nsec, flags;
	uint64_t unused[2];
	/* from here on: struct fuse_statx */
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, unused1;
	uint64_t ino, size, blocks, attributes_mask;
	struct wire_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t unused2[14];
};

#endif
