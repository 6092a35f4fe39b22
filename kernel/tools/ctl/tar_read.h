/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of tar archives: pax, ustar, and GNU's forms of long names and numbers. */
#ifndef SG_CTL_TAR_READ_H
#define SG_CTL_TAR_READ_H

#include "tar.h"

#define TAR_END	1

/**
 * struct tar_reader - an archive. @left: unread bytes of the entry, without padding; @padding:
 * bytes of padding after them. @first: tar_next() must still use the header that tar_open() has
 * read. @broken: the archive ends too early, or cannot be read (already reported).
 */
struct tar_reader {
	const char *path;
	int fd;
	u64 left;
	unsigned int padding;
	bool first, broken;
	struct tar_header header;
};

/**
 * struct tar_entry - an entry of an archive. @type: as in the header; 0: a type that volumes do not
 * have. @size: number of its bytes in the archive.
 * @sparse: the bytes belong to the extents @piece of a file of @real_size; @major, @minor: version
 * of the sparse format.
 * @said: error of an attribute that cannot be stored (already reported). @acls: a bit for each
 * SG_XATTR_ACL_* in @xattrs.
 */
struct tar_piece {
	u64 pos, len;
};
struct tar_entry {
	char *path, *link;
	char type;
	u32 mode, uid, gid, flags;
	u64 size, rdev, real_size, major, minor;
	s64 mtime, atime;
	bool sparse;
	int said;
	unsigned int acls;
	struct tar_piece *piece;
	size_t pieces, room;
	struct xattrs xattrs;
};

/* All functions report errors. */
int tar_open(struct tar_reader *r, const char *path);
void tar_close(struct tar_reader *r);
/*
 * Skips the rest of the last entry, and reads the next header. Returns 0, TAR_END, or an error,
 * after which nothing more can be read.
 */
int tar_next(struct tar_reader *r, struct tar_entry *e);
int tar_read_data(struct tar_reader *r, void *to, size_t len);	/* of the entry */
void tar_forget(struct tar_entry *e);

#endif
