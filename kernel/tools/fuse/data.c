// SPDX-License-Identifier: Apache-2.0
/* Contents of files. read() uses no page cache of the file: each read goes to the volume. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fuse.h"

#define CUT_TRIES	4		/* of a read of a file that another system cuts */
#define COPY_MAX	(64ULL << 20)	/* of one call of copy_file_range() */

/* --- open and closed ------------------------------------------------------------------------ */

static int may_open(const struct sg_iref *ref, u32 flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (!writes && !(flags & O_TRUNC))
		return 0;
	if (is_fixed(ref, SG_FL_IMMUTABLE | SG_FL_SEALED))
		return -EPERM;
	if (is_fixed(ref, SG_FL_APPEND) && (flags & O_TRUNC || (writes && !(flags & O_APPEND))))
		return -EPERM;
	return fs.vol.read_only ? -EROFS : 0;
}

int op_open(void)
{
	const struct fuse_open_in *in = ARG(struct fuse_open_in);
	struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO };
	struct sg_iref ref;
	bool writes;
	int err;

	if (handle_of_last(&out.fh))
		return reply(&out, sizeof(out));
	err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;
	if (!err)
		err = may_open(&ref, in->flags);
	if (!err)
		err = node_open(IN->nodeid, &ref, false, false);
	if (err)
		return err;
	writes = (in->flags & O_ACCMODE) != O_RDONLY;
	if (writes)	/* another system may be about to seal it */
		err = sg_may_open_to_write(VOL, &ref);
	if (!err && in->flags & O_TRUNC)
		err = truncate_to(&ref, 0, in->open_flags & FUSE_OPEN_KILL_SUIDGID, call_time());
	if (!err)
		err = handle_new(IN->nodeid, writes ? HANDLE_WRITES : 0, &out.fh);
	/* a process here may have sealed it before this handle existed, which it now sees */
	if (!err && writes && is_fixed(&ref, SG_FL_SEALED)) {
		handle_drop(out.fh);
		err = -EPERM;
	}
	if (err) {
		node_close(IN->nodeid);
		return err;
	}
	nodes_opened();
	return reply(&out, sizeof(out));
}

/* Closes a file or a directory. */
int op_release(void)
{
	const struct fuse_release_in *in = ARG(struct fuse_release_in);
	u64 id;

	if (!in)
		return -EINVAL;
	locks_release(IN->nodeid, in->fh, in->lock_owner,
		      in->release_flags & FUSE_RELEASE_FLOCK_UNLOCK);
	id = handle_end(in->fh);
	if (id)
		node_close(id);
	return reply(NULL, 0);
}

/* --- read ----------------------------------------------------------------------------------- */

static u64 size_of(const struct sg_iref *ref)
{
	return sg_load64(&node_record(ref)->size);
}

/*
 * Reads again if another system has cut the file meanwhile: the first read may have returned zeroes
 * that the file never had. If this system was fenced, other systems no longer wait for its reads.
 * Then the pages may belong to another file.
 */
static s64 read_some(const struct sg_iref *ref, u64 pos, void *buf, u64 len)
{
	unsigned int turn;
	s64 n = 0;
	u64 cuts;

	for (turn = 0; turn < CUT_TRIES; turn++) {
		cuts = sg_cuts(VOL, ref);
		n = sg_read(VOL, ref, pos, buf, len);
		if (n <= 0)
			return n;
		if (!system_alive())
			return -EIO;
		sg_acquire_fence();
		if (cuts == sg_cuts(VOL, ref) && pos + (u64)n <= size_of(ref))
			break;
	}
	return (u32)sg_load64(&node_record(ref)->genflags) == (u32)ref->generation ? n : -ESTALE;
}

int op_read(void)
{
	const struct fuse_read_in *in = ARG(struct fuse_read_in);
	struct sg_iref ref;
	s64 n = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (n)
		return (int)n;
	if (!out_room())
		return -ENOMEM;
	n = read_some(&ref, in->offset, self->out, in->size < IO_MAX ? in->size : IO_MAX);
	if (n < 0)
		return (int)n;
	if (!(in->flags & O_NOATIME))
		touch_atime(&ref);
	return reply_large(self->out, (size_t)n);
}

/* --- write ---------------------------------------------------------------------------------- */

static void copy_in(const struct sg_write *w, const void *from)
{
	sg_os_write(VOL->base + w->off, from, w->len);
	sg_wb(VOL->base + w->off, w->len);
}

/*
 * Writes in place without a lock, within one look. Where that is not possible, it locks the inode
 * first.
 */
static int begin_piece(const struct sg_iref *ref, u64 pos, const void *from, u64 len,
		       struct sg_write *w)
{
	int err;

	sg_look_begin();
	err = sg_write_begin(VOL, ref, pos, len, SG_WRITE_IN_PLACE, w);
	if (!err)
		copy_in(w, from);
	sg_look_end();
	if (err != -EAGAIN)
		return err;
	err = sg_write_begin(VOL, ref, pos, len, SG_WRITE_LOCKED, w);
	if (!err)
		copy_in(w, from);
	return err;
}

/*
 * Writes to a file of atomic writes, unit by unit (docs/atomic-data.md). @flags: those of
 * sg_write_atomic().
 */
static s64 write_units(const struct sg_iref *ref, u64 pos, const u8 *from, u64 len, u32 flags,
		       s64 now, bool *filled)
{
	u64 done = 0, n;
	int err = 0;

	for (; done < len; done += n) {
		n = sg_atomic_unit(pos + done, len - done);
		err = sg_write_atomic(VOL, ref, pos + done, from + done, n, flags, now, filled);
		if (err)
			break;
	}
	return done ? (s64)done : err;
}

static s64 write_some(const struct sg_iref *ref, u64 pos, const u8 *from, u64 len, s64 now)
{
	bool filled = false;
	struct sg_write w;
	u64 done = 0;
	s64 err = 0;

	while (done < len && !err) {
		err = begin_piece(ref, pos + done, from + done, len - done, &w);
		if (err)
			break;
		filled |= w.fresh;
		err = sg_write_end(VOL, ref, &w, w.len, now);
		if (!err)
			done += w.len;
	}
	if (err == -EMEDIUMTYPE) {
		err = write_units(ref, pos + done, from + done, len - done, 0, now, &filled);
		done += err > 0 ? (u64)err : 0;
	}
	if (filled)	/* processes of other systems may have mapped zeroes there */
		sg_wait_mappers(VOL, ref, true);
	return done ? (s64)done : err;
}

/*
 * Returns how many bytes of this append the last server wrote before it ended. That server noted
 * the position of the append: the bytes must be there. Another system may have appended the same
 * bytes. So bytes at the end of the file count only if the file has the time of this call. A part
 * of the bytes counts only at the end of the file.
 */
static u64 appended_before(const struct sg_iref *ref, const u8 *from, u64 len)
{
	u64 pos = self->call->note[0] - 1, size = size_of(ref), n;
	u8 *room = out_room();

	if (!is_repeated() || !self->call->note[0] || !room || len > IO_MAX || size <= pos)
		return 0;
	if (size <= pos + len && (s64)sg_load64(&node_record(ref)->mtime) != call_time())
		return 0;
	n = size - pos < len ? size - pos : len;
	return sg_read(VOL, ref, pos, room, n) == (s64)n && !memcmp(room, from, n) ? n : 0;
}

/*
 * Appends the rest of a call. @before: bytes that the last server has appended. The note of their
 * position remains.
 */
static s64 append_once(const struct sg_iref *ref, const u8 *from, u64 len, u64 before, s64 now)
{
	bool filled = false;
	struct sg_write w;
	u64 pos, done = 0;
	s64 err = sg_append_begin(VOL, ref, &pos);

	if (err)
		return err;
	if (before && pos != self->call->note[0] - 1 + before) {
		sg_append_end(VOL, ref);	/* another system has appended since */
		return 0;
	}
	if (!before)
		self->call->note[0] = pos + 1;
	while (done < len && !err) {
		err = sg_write_begin(VOL, ref, pos + done, len - done, SG_WRITE_APPEND, &w);
		if (err)
			break;
		copy_in(&w, from + done);
		err = sg_write_end(VOL, ref, &w, w.len, now);
		if (!err)
			done += w.len;
	}
	if (err == -EMEDIUMTYPE) {	/* the inode is locked: no part was written */
		err = write_units(ref, pos, from, len, SG_WRITE_APPEND, now, &filled);
		done = err > 0 ? (u64)err : 0;
	}
	sg_append_end(VOL, ref);
	if (done || filled)	/* filled: possibly by a unit that then failed on bad memory */
		sg_wait_mappers(VOL, ref, true);
	return done ? (s64)done : err;
}

/* Appends the bytes of one call contiguously, even if other systems append at the same time. */
static s64 append(const struct sg_iref *ref, const u8 *from, u64 len, s64 now)
{
	struct sg_nospace nospace = { 0 };
	u64 before = appended_before(ref, from, len);
	s64 n;

	if (before == len)
		return (s64)len;
	do
		n = append_once(ref, from + before, len - before, before, now);
	while (n == -ENOSPC && sg_more_space(VOL, &nospace));
	if (before)
		return (s64)before + (n > 0 ? n : 0);
	return n;
}

int op_write(void)
{
	const struct fuse_write_in *in = ARG(struct fuse_write_in);
	struct fuse_write_out out = { 0 };
	s64 now = call_time(), n;
	struct sg_iref ref;
	const u8 *from;

	if (!in || !call_arg(sizeof(*in) + in->size))
		return -EINVAL;
	from = (const u8 *)(in + 1);
	n = node_ref(IN->nodeid, &ref);
	if (!n)
		n = drop_privileges(&ref, in->write_flags & FUSE_WRITE_KILL_SUIDGID, now);
	if (!n && in->flags & O_APPEND && !(in->write_flags & FUSE_WRITE_CACHE))
		n = append(&ref, from, in->size, now);
	else if (!n)
		n = write_some(&ref, in->offset, from, in->size, now);
	if (n < 0)
		return (int)n;
	out.size = (u32)n;
	return reply(&out, sizeof(out));
}

/* --- the rest ------------------------------------------------------------------------------- */

/*
 * Syncs a volume that is a file on a disk: the host caches such a file. In other volumes each write
 * has already reached the volume's memory.
 */
int op_fsync(void)
{
	sg_fence();
	if (!fs.durable && fdatasync(fs.target.fd))
		return -errno;
	return reply(NULL, 0);
}

static int allocate(const struct sg_iref *ref, u32 mode, u64 pos, u64 len, s64 now)
{
	u64 first = pos / SG_PAGE, end = (pos + len + SG_PAGE - 1) / SG_PAGE;
	int err = sg_allocate(VOL, ref, first, end - first);

	if (err)
		return err;
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		return sg_extend(VOL, ref, pos + len, now);
	return sg_touch(VOL, ref, SG_SET_MTIME | SG_SET_CTIME, now, now, 0);
}

static int change_pages(const struct sg_iref *ref, u32 mode, u64 pos, u64 len, s64 now)
{
	int err;

	switch (mode & ~(u32)FALLOC_FL_KEEP_SIZE) {
	case 0:
		return allocate(ref, mode, pos, len, now);
	case FALLOC_FL_PUNCH_HOLE:
		return sg_punch(VOL, ref, pos, len, now);
	case FALLOC_FL_ZERO_RANGE:
		err = sg_punch(VOL, ref, pos, len, now);
		return err ? err : allocate(ref, mode, pos, len, now);
	case FALLOC_FL_COLLAPSE_RANGE:
		return sg_collapse(VOL, ref, pos, len, now);
	case FALLOC_FL_INSERT_RANGE:
		return sg_insert(VOL, ref, pos, len, now);
	}
	return -EOPNOTSUPP;
}

int op_fallocate(void)
{
	const struct fuse_fallocate_in *in = ARG(struct fuse_fallocate_in);
	s64 now = call_time();
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!err && (in->offset > SG_FILE_MAX || in->length > SG_FILE_MAX - in->offset))
		err = -EFBIG;
	if (!err && is_fixed(&ref, SG_FL_IMMUTABLE | SG_FL_SEALED))
		err = -EPERM;
	if (!err && is_fixed(&ref, SG_FL_APPEND) && in->mode & ~(u32)FALLOC_FL_KEEP_SIZE)
		err = -EPERM;
	if (!err)
		err = drop_privileges(&ref, IN->uid != 0, now);
	if (!err)
		err = change_pages(&ref, in->mode, in->offset, in->length, now);
	if (err)
		return err;
	sg_wait_mappers(VOL, &ref, false);
	sg_wait_mappers(VOL, &ref, true);
	return reply(NULL, 0);
}

int op_lseek(void)
{
	const struct fuse_lseek_in *in = ARG(struct fuse_lseek_in);
	struct fuse_lseek_out out;
	struct sg_iref ref;
	s64 pos = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!pos && in->whence != SEEK_DATA && in->whence != SEEK_HOLE)
		pos = -EINVAL;
	if (!pos)
		pos = sg_seek(VOL, &ref, in->offset, in->whence == SEEK_HOLE);
	if (pos < 0)
		return (int)pos;
	out.offset = (u64)pos;
	return reply(&out, sizeof(out));
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Copies a range. Holes of the source become zeroes, as they do in a copy by read() and write(). */
static s64 copy_some(const struct sg_iref *from, u64 pos, const struct sg_iref *to, u64 at,
		     u64 len, s64 now)
{
	u64 done = 0;
	s64 n = 0;

	while (done < len) {
		n = read_some(from, pos + done, self->out, least(len - done, IO_MAX));
		if (n > 0)
			n = write_some(to, at + done, self->out, (u64)n, now);
		if (n <= 0)
			break;
		done += (u64)n;
	}
	return done ? (s64)done : n;
}

int op_copy(void)
{
	const struct fuse_copy_file_range_in *in = ARG(struct fuse_copy_file_range_in);
	struct fuse_write_out out = { 0 };
	struct sg_iref from, to;
	s64 n = in ? node_ref(IN->nodeid, &from) : -EINVAL;

	if (!n)
		n = node_ref(in->nodeid_out, &to);
	if (!n && !out_room())
		n = -ENOMEM;
	if (!n)
		n = drop_privileges(&to, IN->uid != 0, call_time());
	if (!n)
		n = copy_some(&from, in->off_in, &to, in->off_out, least(in->len, COPY_MAX),
			      call_time());
	if (n < 0)
		return (int)n;
	out.size = (u32)n;
	return reply(&out, sizeof(out));
}
