// SPDX-License-Identifier: GPL-2.0
/* File data: read, seek, flush. These functions use the walk (D5). */
#include "internal.h"

/* attempts to read between two changes, before the reader takes the lock */
#define WHOLE_TURNS	32
#define MET_ANEW	16	/* number of restarts of the count for a file that changes */

int sg_met_more(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m)
{
	u64 seq;

	sg_acquire_fence();
	seq = sg_iget(vol, ref, seq);
	if (m->counted && seq == m->seq && !(seq & 1))
		return sg_damaged(vol, ref->ino, 0, "file table larger than the volume");
	if (m->counted++ == MET_ANEW)
		return -EBUSY;
	m->seq = seq;
	m->sum = 0;
	return 0;
}

/* Counts a hole as one page, because it ends at a mapped page, or only after many tables. */
static int met(const struct sg_vol *vol, const struct sg_iref *ref, const struct sg_run *run,
	       struct sg_met *m)
{
	return sg_met(vol, ref, m, run->off ? run->pages : 1, 2);
}

static s64 read_plain(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len)
{
	u64 size = sg_iget(vol, ref, size), end, done = 0;
	struct sg_run run;
	int err;

	if (pos >= size || !len)
		return 0;
	end = SG_MIN(len, size - pos) + pos;
	while (pos < end) {
		u64 in = pos & (SG_PAGE - 1), n;

		sg_look_begin();
		err = sg_walk(vol, ref, pos >> SG_PAGE_SHIFT, sg_pages_of(in + end - pos), &run);
		if (err) {
			sg_look_end();
			return done ? (s64)done : err;
		}
		n = SG_MIN((run.pages << SG_PAGE_SHIFT) - in, end - pos);
		if (run.off)
			err = sg_os_read((u8 *)buf + done, vol->base + run.off + in, n);
		else
			memset((u8 *)buf + done, 0, n);
		sg_look_end();
		if (err)
			return done ? (s64)done : err;
		pos += n;
		done += n;
	}
	return (s64)done;
}

/* Reads with the inode locked, because the file changes all the time. */
static s64 read_locked(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len)
{
	s64 n;
	int err;

	if (vol->slot < 0)
		return read_plain(vol, ref, pos, buf, len);
	err = sg_ilock(vol, ref);
	if (err)
		return err;
	n = read_plain(vol, ref, pos, buf, len);
	sg_iunlock(vol, ref);
	return n;
}

static bool is_read_whole(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_iget(vol, ref, genflags) >> 32 & (SG_FL_ATOMIC | SG_FL_WHOLE);
}

/* Reads between two changes of the file. */
static s64 read_whole(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len)
{
	unsigned int turn;
	u64 seq;
	s64 n;
	int err;

	for (turn = 0; turn < WHOLE_TURNS; turn++) {
		err = sg_read_begin(vol, ref, &seq);
		if (err)
			return err;
		n = read_plain(vol, ref, pos, buf, len);
		if (!sg_read_retry(vol, ref, seq))
			return n;
	}
	return read_locked(vol, ref, pos, buf, len);
}

s64 sg_read(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len)
{
	u64 done = 0, want;
	s64 n;

	if (!is_read_whole(vol, ref)) {
		n = read_plain(vol, ref, pos, buf, len);
		/* the first atomic write to the file may have been during the read */
		sg_acquire_fence();
		if (!is_read_whole(vol, ref))
			return n;
	}
	do {
		want = sg_atomic_unit(pos + done, len - done);
		n = read_whole(vol, ref, pos + done, (u8 *)buf + done, want);
		if (n < 0)
			return done ? (s64)done : n;
		done += (u64)n;
	} while ((u64)n == want && done < len);
	return (s64)done;
}

s64 sg_seek(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, bool hole)
{
	u64 size = sg_iget(vol, ref, size), page = pos >> SG_PAGE_SHIFT;
	struct sg_met sum = {};
	u64 turns = 0;
	struct sg_run run;
	int err;

	if (size > SG_FILE_MAX)
		return sg_damaged(vol, ref->ino, ref->off, "inode larger than a file can be");
	if (pos >= size)
		return -ENXIO;
	while (page < sg_pages_of(size)) {
		err = sg_turn(&turns) ?:
		      sg_walk_bad(vol, ref, page, sg_pages_of(size) - page, &run) ?:
		      met(vol, ref, &run, &sum);
		if (err)
			return err;
		if (!run.off == hole)
			return (s64)SG_MAX(pos, page << SG_PAGE_SHIFT);
		page += run.pages;
	}
	return hole ? (s64)size : -ENXIO;	/* there is always a hole at the end of the file */
}

/*
 * Flushes. With @killable, a signal that kills the thread ends the flush. Otherwise the thread
 * continues to the end, because it may flush for other threads.
 */
static int flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages, bool killable)
{
	u64 end = SG_MIN(pages, SG_TABLE_PAGES - SG_MIN(first, SG_TABLE_PAGES)) + first;
	struct sg_met sum = {};
	u64 turns = 0;
	struct sg_run run;
	int err;

	while (first < end) {
		err = sg_walk_bad(vol, ref, first, end - first, &run) ?:
		      met(vol, ref, &run, &sum);
		if (err)	/* the pages may have been freed with their file */
			return err == -ESTALE ? 0 : err;
		pages = run.pages;
		if (run.off) {
			pages = sg_good_pages(vol, run.off, pages);
			sg_wb(sg_at(vol, run.off), pages << SG_PAGE_SHIFT);
		}
		first += pages ?: 1;	/* the content of a bad page is lost */
		if (sg_turn(&turns) && killable)
			return -EINTR;
	}
	sg_fence();
	return 0;
}

int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages)
{
	return flush(vol, ref, first, pages, false);
}

int sg_flush_killable(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages)
{
	return flush(vol, ref, first, pages, true);
}

int sg_zero_mapped(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 end)
{
	struct sg_run run;
	int err;

	while (pos < end) {
		u64 in = pos & (SG_PAGE - 1), n, pages;

		err = sg_walk_bad(vol, ref, pos >> SG_PAGE_SHIFT,
				  sg_pages_of(in + end - pos), &run);
		if (err)
			return err;
		pages = run.off ? sg_good_pages(vol, run.off, run.pages) : run.pages;
		n = SG_MIN(((pages ?: 1) << SG_PAGE_SHIFT) - in, end - pos);
		if (run.off && pages) {		/* no reader sees the content of a bad page */
			sg_os_zero(sg_at(vol, run.off + in), n);
			sg_wb(sg_at(vol, run.off + in), n);
		}
		pos += n;
	}
	return 0;
}
