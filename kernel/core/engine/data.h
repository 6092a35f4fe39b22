/* SPDX-License-Identifier: GPL-2.0 */
/* Contents of files. */
#ifndef SG_ENGINE_DATA_H
#define SG_ENGINE_DATA_H

#include "engine/inode.h"

/**
 * struct sg_run - pages of a file that follow each other in the volume, or a hole.
 * @off: volume offset of the first page, or 0 for a hole.
 * @pages: how many, at least 1, up to what was asked.
 * @level: 1, or 2/3 when all of it lies in one large leaf.
 */
struct sg_run {
	u64 off;
	u64 pages;
	unsigned int level;
};

/*
 * The walk (D5): lock-free, checked. Wants page numbers; beyond the table: a hole. -ESTALE: no
 * table, since the number is another file's by now.
 */
int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run);
/*
 * As sg_walk(), also of pages whose memory is bad, for who does not look into them. -EIO: where the
 * page is stands in bad memory itself. Of sg_walk() that, or the page is bad.
 */
int sg_walk_bad(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
		struct sg_run *run);
/* The root word, for splicing: 0, or height (1..4) and physical address of the root table. */
u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref);

/**
 * struct sg_write - a piece of a write, between sg_write_begin() and sg_write_end().
 * @off: where the bytes go (volume offset). @len: how many may be stored there.
 * @fresh: pages that nobody can see yet; they become the file's at sg_write_end().
 */
struct sg_write {
	u64 pos, off, len;
	bool fresh;
	/* private to the engine */
	struct sg_tx *tx;
	u64 first, pages;
	u64 size;
	bool locked, append;
};

#define SG_WRITE_KEEP_SIZE	1u
/* Only where no lock is needed: in place, inside the size. Does not sleep. -EAGAIN: not here. */
#define SG_WRITE_IN_PLACE	2u
/* Keeps the inode locked from begin to end, in place too: what is written to stays the file's. */
#define SG_WRITE_LOCKED		4u
/* Between sg_append_begin() and sg_append_end(): the inode is locked already. */
#define SG_WRITE_APPEND		8u

/*
 * Prepares to store bytes at @pos: in place, or into fresh pages (everything in them that is
 * outside [pos, pos+len) is zeroed). A piece may be shorter than @len; the caller loops. Between
 * begin and end the caller must not sleep on, or fault in, anything that needs this volume: copy
 * with faults disabled. Stored bytes are made durable with sg_wb() before sg_write_end().
 * sg_write_end() publishes min(@done, len) bytes, extends the size if need be and sets mtime and
 * ctime to @now (when nonzero); done == 0 undoes.
 */
int sg_write_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len,
		   unsigned int flags, struct sg_write *w);
int sg_write_end(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		 s64 now);
/*
 * Between these two nobody else changes the file, so that what is written behind its size, in as
 * many pieces as it takes, is one. *size is where it ends.
 */
int sg_append_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 *size);
void sg_append_end(struct sg_vol *vol, const struct sg_iref *ref);

/* Copies of any length, by walk; for tools and tests. Return bytes or -errno; holes read as 0. */
s64 sg_read(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len);
s64 sg_write(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf, u64 len,
	     s64 now);

/*
 * Allocates zeroed pages for holes of [first, first + pages). 0 or -ENOSPC: before anything is
 * taken when the holes alone are more than is free, else what was allocated stays. Does not change
 * the size: that is sg_resize()'s or the caller's.
 */
int sg_allocate(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/* Sets the size; cuts pages off behind it, zeroes the rest of the last page. */
int sg_resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/* Makes [pos, pos+len) read as zeroes; whole pages are freed. */
int sg_punch(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* Page-aligned: removes the range and closes up / opens a hole and moves the rest up. */
int sg_collapse(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
int sg_insert(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* SEEK_DATA / SEEK_HOLE: position >= pos, or -ENXIO. */
s64 sg_seek(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, bool hole);
/*
 * Starts write-back of all lines of the file's pages in [first, first+pages), then fences. Nothing
 * to do, if the file is gone.
 */
int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);

#endif
