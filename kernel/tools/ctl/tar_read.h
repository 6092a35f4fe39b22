/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of tar archives: pax, ustar, and GNU's forms of long names and numbers. */
#ifndef SG_CTL_TAR_READ_H
#define SG_CTL_TAR_READ_H

#include "tar.h"

#define TAR_END	1

/**
 * struct tar_reader - an archive. @left: bytes of the entry not read yet, padding not counted;
 * @padding: after them. @first: the header that tar_open() has read is still unused.
 * @broken: it ends in the middle, or cannot be read (reported).
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
 * struct tar_entry - an entry of an archive.
 * @type: as in the header, 0: a type that volumes do not have. @size: of its bytes in the archive.
 * @sparse: they belong to @piece of a file of @real_size; @major, @minor: version of that list's
 *	form.
 * @said: an error: some attribute cannot be kept, which has been reported.
 * @acls: a bit for each SG_XATTR_ACL_* that @xattrs has.
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
/* Skips the rest of the last entry. 0, TAR_END, or an error, after which nothing can be read. */
int tar_next(struct tar_reader *r, struct tar_entry *e);
int tar_read_data(struct tar_reader *r, void *to, size_t len);	/* of the entry */
void tar_forget(struct tar_entry *e);

#endif
