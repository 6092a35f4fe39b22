// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic writes (P3): one transaction per write. docs/atomic-data.md has the order of the stores.
 *
 *   holes: fresh pages, as in any write
 *   whole pages: fresh pages replace the old ones, where no system can still store to these
 *   all other bytes: in place, under a log (redo.c), or copies of their pages
 */
#include "internal.h"

/*
 * Parts of pages that have more bytes do not fit into the record. If the write also replaces
 * complete pages, a copy of these two pages is then cheaper than a log
 * (docs/decisions/0013-no-log-for-each-page.md). SG_COW is for benchmarks only: this build copies
 * each page of which a write has a part, as NOVA does.
 */
#ifdef SG_COW
#define LOG_AT_MOST	0
#define LOG_ALONE	false
#else
#define LOG_AT_MOST	3072
#define LOG_ALONE	true
#endif
#define STEP	1024u	/* bytes of a page that are copied at a time */
/* entries of the ledger that must remain free when pages are replaced */
#define LEDGER_ROOM	(4 * SG_ATOMIC_PAGES)

/* KIND_PART: a part of a page that may be replaced; sort_parts() decides */
enum kind { KIND_HOLE, KIND_WHOLE, KIND_LOG, KIND_PART };

/**
 * struct atomic - one atomic write.
 * @first, @pages: the pages that it touches; @kind: of each.
 * @append: the caller has the inode locked. @size: of the file before.
 * @replace: pages may be replaced; @replacing: the inode's word for that is set.
 * @fills: the transaction has pages for holes; @filled: these are in the file.
 * @zeroed: bytes behind the old size were zeroed before the transaction.
 * @log: not initialized before atomic_commit(), because small writes need only a part of it.
 */
struct atomic {
	struct sg_vol *vol;
	const struct sg_iref *ref;
	const u8 *buf;
	u64 pos, len, size, first;
	s64 now;
	unsigned int pages;
	bool append, replace, replacing, fills, filled, zeroed;
	u8 kind[SG_ATOMIC_PAGES];
	struct sg_log log;
};

/* --- which pages are written in which way --------------------------------------------------- */

/*
 * Returns the number of bytes that the write has in pages [i, i + n), which begin at its byte *at.
 */
static u64 bytes_of(const struct atomic *w, unsigned int i, unsigned int n, u64 *at)
{
	u64 begin = SG_MAX(w->pos, (w->first + i) << SG_PAGE_SHIFT);
	u64 end = SG_MIN(w->pos + w->len, (w->first + i + n) << SG_PAGE_SHIFT);

	*at = begin - w->pos;
	return end - begin;
}

static unsigned int whole_pages(const struct atomic *w)
{
	unsigned int i, n = 0;

	for (i = 0; i < w->pages; i++)
		n += w->kind[i] == KIND_WHOLE;
	return n;
}

/* Only the first and the last page can be parts. */
static void sort_parts(struct atomic *w)
{
	unsigned int last = w->pages - 1, i;
	bool alone = LOG_ALONE && !whole_pages(w);
	u64 at, bytes = 0;

	for (i = 0; i <= last; i += last ?: 1)
		bytes += w->kind[i] == KIND_PART ? bytes_of(w, i, 1, &at) : 0;
	for (i = 0; i <= last; i += last ?: 1)
		if (w->kind[i] == KIND_PART)
			w->kind[i] = alone || bytes <= LOG_AT_MOST ? KIND_LOG : KIND_WHOLE;
}

static int sort_pages(struct atomic *w)
{
	struct sg_run run;
	unsigned int i;
	u64 at;
	int err;

	for (i = 0; i < w->pages; i++) {
		err = sg_walk(w->vol, w->ref, w->first + i, 1, &run);
		if (err)
			return err;
		if (!run.off)
			w->kind[i] = KIND_HOLE;
		else if (!w->replace || run.level != 1)
			w->kind[i] = KIND_LOG;
		else
			w->kind[i] = bytes_of(w, i, 1, &at) == SG_PAGE ? KIND_WHOLE : KIND_PART;
	}
	sort_parts(w);
	return 0;
}

/*
 * Decides whether to replace pages. This is possible only if no system can store to the old ones
 * meanwhile. All systems must have seen that writes need the inode's lock (SG_FL_REPLACE), and no
 * process may map the file. If a paused system prevents old pages from becoming free, the ledger
 * fills up, and pages are logged instead.
 */
static void choose(struct atomic *w)
{
	unsigned int i;

	if (!whole_pages(w))
		return;
	if (!sg_ledger_is_tight(w->vol) && sg_ledger_room(w->vol) > LEDGER_ROOM) {
		w->replacing = true;
		if (sg_replace_begin(w->vol, w->ref))
			return;
	}
	for (i = 0; i < w->pages; i++)
		if (w->kind[i] == KIND_WHOLE)
			w->kind[i] = KIND_LOG;
}

/* --- the three ways ------------------------------------------------------------------------- */

static int fill_holes(struct atomic *w, struct sg_tx *tx, unsigned int i, unsigned int n)
{
	u64 page, off, got, at, len, in;
	int err;

	for (; n; i += (unsigned int)got, n -= (unsigned int)got) {
		page = w->first + i;
		err = sg_take_fresh(tx, w->ref, page, n, &off, &got);
		if (err)
			return err;
		len = bytes_of(w, i, (unsigned int)got, &at);
		in = w->pos + at - (page << SG_PAGE_SHIFT);
		sg_fresh_zero(w->vol, off, in);
		sg_fresh_write(w->vol, off + in, w->buf + at, len);
		sg_fresh_zero(w->vol, off + in + len, (got << SG_PAGE_SHIFT) - in - len);
	}
	w->fills = true;
	return 0;
}

/* Enters @n fresh pages at @off; adjacent old pages become one deferred free. */
static int switch_pages(struct atomic *w, struct sg_tx *tx, u64 page, u64 off, u64 n)
{
	u64 old, run = 0, pages = 0, i;
	int err;

	for (i = 0; i < n; i++) {
		err = sg_table_replace(tx, w->ref, page + i, off + (i << SG_PAGE_SHIFT), &old);
		if (err)
			return err;
		if (pages && old != run + (pages << SG_PAGE_SHIFT)) {
			sg_defer_run(tx, run, pages);
			pages = 0;
		}
		if (!pages)
			run = old;
		pages++;
	}
	sg_defer_run(tx, run, pages);
	return tx->err;
}

/* Copies bytes [in, end) of the old page @page to the same place in a fresh page at @off. */
static SG_NOINLINE int copy_old(struct atomic *w, u64 page, u64 off, u64 in, u64 end)
{
	u8 step[STEP] SG_UNINITIALIZED;
	struct sg_run run;
	u64 n;
	int err = in < end ? sg_walk(w->vol, w->ref, page, 1, &run) : 0;

	for (; !err && in < end; in += n) {
		n = SG_MIN(end - in, (u64)STEP);
		if (sg_os_read(step, w->vol->base + run.off + in, n))
			return -EIO;	/* memory that was not known to be bad */
		sg_fresh_write(w->vol, off + in, step, n);
	}
	return err;
}

/* Writes pages [i, i + n) to fresh pages at @off. */
static int write_fresh(struct atomic *w, unsigned int i, unsigned int n, u64 off)
{
	u64 page = w->first + i, at, len = bytes_of(w, i, n, &at);
	u64 in = w->pos + at - (page << SG_PAGE_SHIFT), end = in + len;
	u64 last = off + ((u64)(n - 1) << SG_PAGE_SHIFT);

	sg_fresh_write(w->vol, off + in, w->buf + at, len);
	return copy_old(w, page, off, 0, in) ?:
	       copy_old(w, page + n - 1, last, end - ((u64)(n - 1) << SG_PAGE_SHIFT), SG_PAGE);
}

static int replace_pages(struct atomic *w, struct sg_tx *tx, unsigned int i, unsigned int n)
{
	struct sg_run run;
	u64 off, got;
	int err;

	for (; n; i += (unsigned int)got, n -= (unsigned int)got) {
		/* near the old page, so that the file's pages remain together */
		err = sg_walk(w->vol, w->ref, w->first + i, 1, &run) ?:
		      sg_take_run(tx, SG_USE_DATA, run.off, n, &off, &got) ?:
		      write_fresh(w, i, (unsigned int)got, off) ?:
		      switch_pages(w, tx, w->first + i, off, got);
		if (err)
			return err;
	}
	return 0;
}

static int log_pages(struct atomic *w, unsigned int i, unsigned int n)
{
	u64 at, len = bytes_of(w, i, n, &at);

	sg_log_add(&w->log, at, len);
	return 0;
}

static int write_pages(struct atomic *w, struct sg_tx *tx, u8 kind)
{
	unsigned int i, n;
	int err = 0;

	for (i = 0; i < w->pages && !err; i += n) {
		for (n = 1; i + n < w->pages && w->kind[i + n] == w->kind[i]; n++)
			;
		if (w->kind[i] != kind)
			continue;
		if (kind == KIND_HOLE)
			err = fill_holes(w, tx, i, n);
		else if (kind == KIND_WHOLE)
			err = replace_pages(w, tx, i, n);
		else
			err = log_pages(w, i, n);
	}
	return err;
}

/* --- the transaction ------------------------------------------------------------------------ */

static void set_words(struct atomic *w, struct sg_tx *tx)
{
	sg_tx_inode(tx, w->ref);
	if (w->pos + w->len > w->size)
		sg_tx_iset(tx, w->ref, size, w->pos + w->len);
	if (sg_times_differ(w->vol, w->ref, w->now))
		sg_tx_times(tx, w->ref, w->now, w->now);
	if (w->replacing)
		sg_tx_iset(tx, w->ref, replacing, 0);
}

/* Writes all pages in their ways. A small write usually has one way for all pages. */
static int write_all(struct atomic *w, struct sg_tx *tx)
{
	unsigned int i;

	for (i = 1; i < w->pages && w->kind[i] == w->kind[0]; i++)
		;
	if (i == w->pages)
		return write_pages(w, tx, w->kind[0]);
	return write_pages(w, tx, KIND_WHOLE) ?: write_pages(w, tx, KIND_HOLE) ?:
	       write_pages(w, tx, KIND_LOG);
}

static int atomic_commit(struct atomic *w)
{
	struct sg_tx *tx = sg_tx_begin(w->vol);
	int err;

	tx->most_locks = SG_TX_LOCKS;
	w->fills = false;
	sg_log_init(&w->log, w->ref, w->pos, w->buf);
	err = write_all(w, tx);
	set_words(w, tx);
	err = err ?: sg_log_place(tx, &w->log);
	if (!err) {
		if (!w->zeroed && sg_log_is_inside(&w->log))
			sg_tx_plain(tx);
		sg_count(&tx->stat.atomic_replaced, (u64)whole_pages(w) << SG_PAGE_SHIFT);
		sg_count(&tx->stat.atomic_logged, w->log.bytes);
		err = sg_tx_commit(tx);
		/* -EIO: a page of the log is bad; all other bytes have been stored */
		w->filled = w->fills && (!err || err == -EIO);
		return err;
	}
	err = tx->err ?: err;
	sg_tx_abort(tx);
	return err;
}

/* Makes one atomic write in a transaction, with the inode locked. */
static int atomic_locked(struct atomic *w)
{
	int err = sg_may_store(w->vol, w->ref);

	if (err)
		return err;
	if (sg_is_cutting(w->vol, w->ref) || !(w->append || sg_is_told(w->vol, w->ref)))
		return -EAGAIN;
	w->size = sg_iget(w->vol, w->ref, size);
	w->replace = w->replace &&
		     sg_iget(w->vol, w->ref, genflags) >> 32 & SG_FL_REPLACE;
	w->replacing = false;
	w->zeroed = w->size < w->pos;
	err = sg_note_whole(w->vol, w->ref) ?: sort_pages(w);
	/* these bytes are behind the size, and become visible */
	if (!err && w->zeroed)
		err = sg_zero_mapped(w->vol, w->ref, w->size,
				     SG_MIN(w->pos, sg_stale_end(w->size)));
	if (err)
		return err;
	choose(w);
	err = atomic_commit(w);
	if (err && w->replacing)
		sg_replace_end(w->vol, w->ref);
	return err;
}

static int atomic_once(struct atomic *w)
{
	int err = w->append ? 0 : sg_note_whole_first(w->vol, w->ref) ?: sg_ilock(w->vol, w->ref);

	if (err)
		return err;
	err = atomic_locked(w);
	if (!w->append)
		sg_iunlock(w->vol, w->ref);
	return err;
}

/* Logging complete pages needs as many free pages as replacing them, but no room in the ledger. */
static bool log_helps(const struct atomic *w, int err)
{
	return err == -ENOSPC && w->replacing && sg_ledger_room(w->vol) <= LEDGER_ROOM;
}

/* Decides after a failure: returns 0 if another attempt makes sense. */
static int atomic_again(struct atomic *w, int err, struct sg_nospace *nospace, unsigned int *turns)
{
	if (err == -EAGAIN)
		return sg_finish_cut_again(w->vol, w->ref, turns);
	if (err != -ENOSPC)
		return err;
	if (log_helps(w, err)) {
		w->replace = false;
		return 0;
	}
	w->replace = true;
	return w->vol->up->more_space(w->vol, nospace) ? 0 : err;
}

/* Sets fields one by one, because the object is large, and most of it is not used. */
static void atomic_init(struct atomic *w, struct sg_vol *vol, const struct sg_iref *ref, u64 pos,
			u64 len)
{
	w->vol = vol;
	w->ref = ref;
	w->pos = pos;
	w->len = len;
	w->first = pos >> SG_PAGE_SHIFT;
	w->pages = (unsigned int)sg_pages_of((pos & (SG_PAGE - 1)) + len);
	w->replace = true;
	w->replacing = w->filled = false;
}

int sg_write_atomic(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf,
		    u64 len, unsigned int flags, s64 now, bool *filled)
{
	struct sg_nospace nospace = {};
	unsigned int turns = 0;
	int err = sg_may_write(vol);
	struct atomic w SG_UNINITIALIZED;

	if (err)
		return err;
	if (!sg_knows_atomic(vol))
		return -EOPNOTSUPP;
	if (!len || len > SG_ATOMIC_MAX)
		return -EINVAL;
	if (pos >= SG_FILE_MAX || len > SG_FILE_MAX - pos)
		return -EFBIG;
	atomic_init(&w, vol, ref, pos, len);
	w.buf = buf;
	w.now = now;
	w.append = flags & SG_WRITE_APPEND;
	do {
		err = atomic_once(&w);
		*filled |= w.filled;
		if (!err || (w.append && !log_helps(&w, err)))
			return err;
		err = atomic_again(&w, err, &nospace, &turns);
	} while (!err);
	return err;
}

u64 sg_atomic_unit(u64 pos, u64 len)
{
	return len <= SG_ATOMIC_MAX ? len : SG_ATOMIC_MAX - (pos & (SG_ATOMIC_MAX - 1));
}
