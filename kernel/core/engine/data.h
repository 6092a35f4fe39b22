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
 * Finds pages by a walk of the file table (D5). It takes no lock and checks each entry. @page and
 * @want are in pages; pages beyond the table are a hole. -ESTALE: there is no table, because
 * another file has this inode number now.
 */
int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run);
/*
 * As sg_walk(), but also for bad pages: for callers that do not read the pages. -EIO: the table
 * page that locates @page is bad. sg_walk() also returns -EIO if @page itself is bad.
 */
int sg_walk_bad(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
		struct sg_run *run);
/*
 * Returns the root word, for splicing: 0, or the height (1..4) and physical address of the root
 * table.
 */
u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref);

/**
 * struct sg_write - one part of a write, from sg_write_begin() to sg_write_end().
 * @off: volume offset of the bytes. @len: number of bytes that may be stored there.
 * @fresh: no other system can see these pages until sg_write_end() adds them to the file.
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
 * Begins only a write that needs no lock: in place, inside the file's size. Does not sleep.
 * -EAGAIN: the write needs a lock.
 */
#define SG_WRITE_IN_PLACE	2u
/*
 * As sg_write_begin(), but always keeps the inode locked until sg_write_end(), also for a write in
 * place. So the written pages stay part of the file.
 */
#define SG_WRITE_LOCKED		4u
/* For use between sg_append_begin() and sg_append_end(), where the inode is locked already. */
#define SG_WRITE_APPEND		8u

/*
 * Prepares to store bytes at @pos: in place, or into fresh pages, in which all bytes outside [pos,
 * pos+len) are zeroed. A part may be shorter than @len, so the caller loops. Between begin and end
 * the caller must not wait for this volume, and must not cause page faults on it, so it copies with
 * faults disabled. Before sg_write_end() it makes the stored bytes durable with sg_wb().
 * sg_write_end() publishes min(@done, len) bytes, extends the size if necessary, and sets mtime and
 * ctime to @now (if not 0). done == 0 undoes the part.
 *
 * -EMEDIUMTYPE, with the inode locked: writes to this file must be atomic. The caller continues
 * with sg_write_atomic(). Another process can set that attribute at any time, also between two
 * parts of a write.
 */
int sg_write_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len,
		   unsigned int flags, struct sg_write *w);
int sg_write_end(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		 s64 now);
/*
 * Lock the inode for an append, and unlock it. In between, no other thread or system changes the
 * file, so all parts of the append are contiguous. *size: the end of the file.
 */
int sg_append_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 *size);
void sg_append_end(struct sg_vol *vol, const struct sg_iref *ref);

/*
 * Writes all of @len bytes, at most SG_ATOMIC_MAX, or none (docs/atomic-data.md). This holds after
 * any crash, and for readers in all systems (sg_read()). The bytes are durable on return. @flags: 0
 * or SG_WRITE_APPEND. *filled becomes true if holes were filled, as by sg_write_begin() with fresh
 * pages. *filled can also be true after -EIO, which means that a page became bad meanwhile.
 * -EOPNOTSUPP: the software that made the volume was too old for atomic writes.
 */
int sg_write_atomic(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf,
		    u64 len, unsigned int flags, s64 now, bool *filled);
/* Returns the length of the first of several atomic writes that store @len bytes at @pos. */
u64 sg_atomic_unit(u64 pos, u64 len);
/*
 * Makes all future writes to this file atomic, or ends that. For a directory, applies to files and
 * directories that are created there later. Waits for the other systems, 2 s at most.
 */
int sg_set_atomic(struct sg_vol *vol, const struct sg_iref *ref, bool on, s64 now);
bool sg_is_atomic(const struct sg_vol *vol, const struct sg_iref *ref);
/* Reports whether some writes to the file are atomic, so that all writes need the inode's lock. */
bool sg_is_read_whole(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Announces the first atomic write to a file, and waits up to 2 s until all systems have seen this.
 * The caller does not have the file locked. sg_write_atomic() calls it, but not with
 * SG_WRITE_APPEND.
 */
int sg_note_whole_first(struct sg_vol *vol, const struct sg_iref *ref);

/*
 * Seals a regular file: contents and size are final on all systems, and each change of them fails
 * with -EPERM. The contents are durable on return. The caller makes sure that no process of this
 * system has the file open for writing, or opens it so meanwhile. Refusals, with the reason in
 * @why: -EBUSY: another system has the file open. -EINVAL: the file has holes (or is not a regular
 * file: @why is empty). -EOPNOTSUPP: a system's software is too old. A file that is sealed already
 * stays sealed, and the call returns 0.
 */
int sg_seal(struct sg_vol *vol, const struct sg_iref *ref, s64 now, char why[200]);
/* Ends that. -EBUSY: another system has the file open. */
int sg_unseal(struct sg_vol *vol, const struct sg_iref *ref, s64 now, char why[200]);
bool sg_is_sealed(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * For a system that has just opened the file (sg_open_inode()), to write to it. Waits until another
 * system has sealed it, if one is about to. -EPERM: the file is sealed. The caller then closes it.
 */
int sg_may_open_to_write(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * The root of the tree of hashes that was kept with the seal, as bytes. The engine keeps it, and
 * never computes it. -ENODATA: there is none.
 */
int sg_seal_root(struct sg_vol *vol, const struct sg_iref *ref, u64 root[SG_DIGEST_SIZE / 8]);
/* -EINVAL: the file is not sealed. -EEXIST: it has another root. */
int sg_seal_set_root(struct sg_vol *vol, const struct sg_iref *ref,
		     const u64 root[SG_DIGEST_SIZE / 8]);

/*
 * Copies of any length, by walk; for tools and tests. Return bytes or -errno; holes read as 0. A
 * read of up to SG_ATOMIC_MAX bytes sees all of an atomic write or nothing. For a longer read this
 * holds for each part that sg_atomic_unit() cuts. A caller without a slot waits for no lock. If
 * other systems write the file all the time, it may read a mixture of old and new bytes.
 */
s64 sg_read(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len);
s64 sg_write(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf, u64 len,
	     s64 now);

/*
 * Allocates zeroed pages for the holes of [first, first + pages). Returns 0 or -ENOSPC. If holes in
 * a range of 2 MiB or more need more pages than are free, the call returns -ENOSPC and allocates
 * nothing. After any other -ENOSPC, the pages allocated so far remain in the file. It does not
 * change the size; sg_resize() or the caller does.
 */
int sg_allocate(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/* Sets the size. Cuts off the pages behind the new size, and zeroes the rest of the last page. */
int sg_resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Makes the file at least that long, and sets its times. Bytes that another system has appended
 * remain, even if the caller's value of the size is old.
 */
int sg_extend(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * sg_resize() in two parts, for callers that must not wait for long (sg_vol.gives_way). If
 * sg_set_size() fails, the size is unchanged. If it returns 0, some pages behind the size may
 * remain: sg_finish_cut() cuts them off, or does nothing.
 */
int sg_set_size(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
int sg_finish_cut(struct sg_vol *vol, const struct sg_iref *ref);
/* Makes [pos, pos+len) read as zeroes; whole pages become deferred frees. */
int sg_punch(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/*
 * Zeroes [*pos, end) inside SG_FILE_MAX, without setting times. *pos returns the end of the part
 * that is done, also after an error. So a second call does not erase bytes that were written
 * meanwhile.
 */
int sg_punch_rest(struct sg_vol *vol, const struct sg_iref *ref, u64 *pos, u64 end);
/*
 * Page-aligned. sg_collapse() removes the range and moves the rest down; sg_insert() opens a hole
 * and moves the rest up.
 */
int sg_collapse(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
int sg_insert(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* Returns the next position >= pos with data, or with a hole (SEEK_DATA, SEEK_HOLE); or -ENXIO. */
s64 sg_seek(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, bool hole);
/*
 * Starts write-back of all cache lines of the file's pages in [first, first+pages), then fences.
 * Does nothing if the file is gone.
 */
int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/*
 * As sg_flush(), also for pages that other systems move meanwhile. If they move again and again,
 * the call finally locks the file. -EINTR: while it waited for the lock, the thread was killed or
 * had to give way (sg_vol.gives_way). Without @wait the call takes no lock and returns -EBUSY
 * instead.
 */
int sg_flush_moving(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages, bool wait);

#endif
