/* SPDX-License-Identifier: GPL-2.0 */
/* Contents of files. */
#ifndef SG_ENGINE_DATA_H
#define SG_ENGINE_DATA_H

#include "engine/inode.h"

/**
 * struct sg_run - pages of a file that are contiguous in the volume, or a hole.
 * @off: volume offset of the first page, or 0 for a hole.
 * @pages: number of pages: at least 1, at most the number that the caller wanted.
 * @level: 1, or 2 or 3 if the whole run lies in one large leaf.
 */
struct sg_run {
	u64 off;
	u64 pages;
	unsigned int level;
};

/*
 * The walk (D5): takes no lock, checks each entry. @page and @want are in pages; pages beyond the
 * table are a hole. -ESTALE: there is no table, because another file has the number now.
 */
int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run);
/*
 * As sg_walk(), but also for bad pages: for callers that do not read the pages. -EIO: the table
 * page that locates @page is bad. sg_walk() also returns -EIO if @page itself is bad.
 */
int sg_walk_bad(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
		struct sg_run *run);
/* The root word, for splicing: 0, or height (1..4) and physical address of the root table. */
u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref);

/**
 * struct sg_write - one part of a write, from sg_write_begin() to sg_write_end().
 * @off: volume offset of the bytes. @len: number of bytes that may be stored there.
 * @fresh: no other system can see these pages yet; sg_write_end() adds them to the file.
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
/*
 * Only if no lock is needed: in place, inside the size. Does not sleep. -EAGAIN: a lock would be
 * needed.
 */
#define SG_WRITE_IN_PLACE	2u
/*
 * Keeps the inode locked from begin to end, also for a write in place: the written pages stay part
 * of the file.
 */
#define SG_WRITE_LOCKED		4u
/* Between sg_append_begin() and sg_append_end(): the inode is locked already. */
#define SG_WRITE_APPEND		8u

/*
 * Prepares to store bytes at @pos: in place, or into fresh pages, in which all bytes outside [pos,
 * pos+len) are zeroed. A part may be shorter than @len; the caller loops. Between begin and end the
 * caller must not sleep on, or fault in, anything that needs this volume: it copies with faults
 * disabled. It makes the stored bytes durable with sg_wb() before sg_write_end(). sg_write_end()
 * publishes min(@done, len) bytes, extends the size if necessary, and sets mtime and ctime to @now
 * (if not 0). done == 0 undoes the part.
 *
 * -EMEDIUMTYPE, with the inode locked: each write to this file is to be atomic. The caller goes on
 * with sg_write_atomic(). The attribute may be set at any time, also between two parts of a write.
 */
int sg_write_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len,
		   unsigned int flags, struct sg_write *w);
int sg_write_end(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		 s64 now);
/*
 * Between these two calls no other thread or system changes the file. So all parts written behind
 * its size are contiguous, however many there are. *size: the end of the file.
 */
int sg_append_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 *size);
void sg_append_end(struct sg_vol *vol, const struct sg_iref *ref);

/*
 * Writes all of @len bytes, at most SG_ATOMIC_MAX, or none (docs/atomic-data.md): after any crash,
 * and to readers in all systems (sg_read()). Durable on return. @flags: 0 or SG_WRITE_APPEND.
 * *filled becomes true if holes were filled, as by sg_write_begin() with fresh pages. That may also
 * be so after -EIO: a page became bad meanwhile. -EOPNOTSUPP: the volume was made by software that
 * knew no atomic writes.
 */
int sg_write_atomic(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf,
		    u64 len, unsigned int flags, s64 now, bool *filled);
/* How many of @len bytes at @pos the first of several atomic writes has. */
u64 sg_atomic_unit(u64 pos, u64 len);
/*
 * From now on each write to this file is atomic, or not any more. In a directory: for files and
 * directories that are made there. Waits for the other systems, 2 s at most.
 */
int sg_set_atomic(struct sg_vol *vol, const struct sg_iref *ref, bool on, s64 now);
bool sg_is_atomic(const struct sg_vol *vol, const struct sg_iref *ref);
/* Some writes to it are atomic: no other write may store without the inode's lock. */
bool sg_is_read_whole(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Before the first atomic write to a file, without its lock: waits until all systems know, 2 s at
 * most. sg_write_atomic() does this itself, but not with SG_WRITE_APPEND.
 */
int sg_note_whole_first(struct sg_vol *vol, const struct sg_iref *ref);

/*
 * Copies of any length, by walk; for tools and tests. Return bytes or -errno; holes read as 0. A
 * read of up to SG_ATOMIC_MAX bytes sees all of an atomic write or nothing; a longer one sees so
 * each part that sg_atomic_unit() cuts. A caller without a slot waits for no lock, and may get a
 * mixture from a file that other systems write all the time.
 */
s64 sg_read(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len);
s64 sg_write(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf, u64 len,
	     s64 now);

/*
 * Allocates zeroed pages for the holes of [first, first + pages). Returns 0 or -ENOSPC. If a range
 * of 2 MiB or more has holes that need more pages than are free, -ENOSPC comes before any page is
 * taken; otherwise allocated pages stay. Does not change the size: sg_resize() or the caller does.
 */
int sg_allocate(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/* Sets the size; cuts off the pages behind it, and zeroes the rest of the last page. */
int sg_resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Makes the file at least that long, and sets its times. The caller's idea of the size may be old:
 * what another system has appended stays.
 */
int sg_extend(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * The same in two parts, for callers that must not wait for long (sg_vol.gives_way). After an error
 * of sg_set_size() the size is as before. After 0 some pages may be left behind it:
 * sg_finish_cut() cuts them off, or does nothing.
 */
int sg_set_size(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
int sg_finish_cut(struct sg_vol *vol, const struct sg_iref *ref);
/* Makes [pos, pos+len) read as zeroes; whole pages become deferred frees. */
int sg_punch(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/*
 * The same for [*pos, end) inside SG_FILE_MAX, without the times. *pos: how far it is done, also
 * after an error. A caller that comes again then erases nothing that was written meanwhile.
 */
int sg_punch_rest(struct sg_vol *vol, const struct sg_iref *ref, u64 *pos, u64 end);
/*
 * Page-aligned. sg_collapse() removes the range and moves the rest down; sg_insert() opens a hole
 * and moves the rest up.
 */
int sg_collapse(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
int sg_insert(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* SEEK_DATA / SEEK_HOLE: position >= pos, or -ENXIO. */
s64 sg_seek(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, bool hole);
/*
 * Starts write-back of all cache lines of the file's pages in [first, first+pages), then fences.
 * Does nothing if the file is gone.
 */
int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/*
 * As sg_flush(), also for pages that other systems move meanwhile. If they move again and again, it
 * keeps the file locked in the end. It waits for the lock: -EINTR: it is being killed, or gives way
 * (sg_vol.gives_way). Without @wait it takes no lock: -EBUSY.
 */
int sg_flush_moving(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages, bool wait);

#endif
