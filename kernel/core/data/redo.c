// SPDX-License-Identifier: GPL-2.0
/*
 * The log of a transaction: bytes that it stores into pages to which other systems may store, too
 * (docs/atomic-data.md).
 *
 * Short logs are in the record itself, behind its words. Longer logs are in free pages of chunks
 * that the transaction keeps locked until the record is invalid. No other system takes such a page
 * before that, not even after a crash, and no page has to be freed.
 *
 * Replay finds the pages of the file as a write does, by its table. So even a forged log can only
 * change pages of the one file whose change counter is in the record (D10).
 */
#include "internal.h"

static struct sg_log *log_of(const struct sg_redo *redo)
{
	return (struct sg_log *)((u8 *)redo - offsetof(struct sg_log, redo));
}

/* number of bytes between two checks whether this system has been fenced */
#define STEP	256u
#define PAGE_IS_BAD	(-ENODATA)

/*
 * The place of a log's bytes: private memory or the record; or (@poison) other pages of the volume,
 * whose memory may be bad without being listed.
 */
struct source {
	const u8 *at;
	bool poison;
};

/*
 * Stores bytes; @r: for a replay. -EIO: this system was fenced, and other systems may write there
 * now. -ENODATA: the bytes are lost.
 */
static int store_run(struct sg_vol *vol, const struct sg_replay *r, u8 *to, struct source from,
		     u64 len)
{
	u8 step[STEP] SG_UNINITIALIZED;
	u64 n;

	for (; len; to += n, from.at += n, len -= n) {
		n = SG_MIN(len, (u64)(STEP - ((uintptr_t)to & (STEP - 1))));
		if (from.poison && sg_os_read(step, from.at, n))
			return PAGE_IS_BAD;
		if (r ? !sg_may_replay(r) : !sg_is_ours(vol))
			return -EIO;
		sg_os_write(to, from.poison ? step : from.at, n);
		sg_wb(to, n);
	}
	return 0;
}

static bool overlap(const struct sg_vol *vol, const struct sg_run *run, struct source from,
		    u64 len)
{
	u64 off = (u64)(from.at - vol->base);

	return from.poison && run->off < off + len &&
	       off < run->off + (run->pages << SG_PAGE_SHIFT);
}

/*
 * Stores @len bytes into pages of the file, or checks whether that is possible (!@store). It skips
 * bad pages and then returns -ENODATA: their content is lost in any case. -EUCLEAN: the file does
 * not have all these pages. -EIO: this system was fenced, and stopped in the middle.
 */
static int store_in_place(struct sg_vol *vol, const struct sg_replay *r, const struct sg_iref *ref,
			  u64 pos, struct source from, u64 len, bool store)
{
	struct sg_run run;
	int err, all = 0;
	u64 in, n;

	for (; len; pos += n, from.at += n, len -= n) {
		in = pos & (SG_PAGE - 1);
		n = SG_MIN(SG_PAGE - in, len);
		err = sg_walk(vol, ref, pos >> SG_PAGE_SHIFT, sg_pages_of(in + len), &run);
		if (err == -EIO) {
			all = all ?: PAGE_IS_BAD;
			continue;
		}
		if (err || !run.off || overlap(vol, &run, from, len)) {
			all = -EUCLEAN;
			continue;
		}
		n = SG_MIN((run.pages << SG_PAGE_SHIFT) - in, len);
		err = store ? store_run(vol, r, (u8 *)sg_at(vol, run.off) + in, from, n) : 0;
		if (err == -EIO)
			return err;
		all = all ?: err;
	}
	return all;
}

/* --- writing -------------------------------------------------------------------------------- */

static void put_piece(struct sg_log_piece *p, const struct sg_log *log,
		      const struct sg_log_part *part)
{
	u32 crc = part->from ? sg_crc32c(~0u, log->buf + part->at, part->len) : 0;

	sg_store64(&p->pos, log->pos + part->at);
	sg_store64(&p->len, SG_LOG_WORD(part->len, crc));
	sg_store64(&p->from, part->from);
	sg_store64(&p->reserved, 0);
}

/* The record's checksum covers the bytes that are in the record. */
static unsigned int log_put(struct sg_tx *tx, const struct sg_redo *redo)
{
	const struct sg_log *log = log_of(redo);
	struct sg_word *at = tx->a->word + tx->n;
	struct sg_log_head *head = (void *)at;
	struct sg_log_piece *piece = (void *)(at + 1);
	u8 *bytes = (u8 *)(piece + log->n), *end = bytes;
	unsigned int i;

	sg_store64(&head->ino, log->ref->ino | (u64)log->n << 40);
	sg_store64(&head->generation, (u32)sg_iget(tx->vol, log->ref, genflags));
	for (i = 0; i < log->n; i++) {
		put_piece(&piece[i], log, &log->part[i]);
		if (log->part[i].from)
			continue;
		sg_os_write(end, log->buf + log->part[i].at, log->part[i].len);
		end += log->part[i].len;
	}
	return sg_log_words(log->n, (u64)(end - bytes));
}

static int log_apply(struct sg_tx *tx, const struct sg_redo *redo)
{
	const struct sg_log *log = log_of(redo);
	int err, all = 0;
	unsigned int i;

	for (i = 0; i < log->n && sg_is_ours(tx->vol); i++) {
		err = store_in_place(tx->vol, NULL, log->ref, log->pos + log->part[i].at,
				     (struct source){ .at = log->buf + log->part[i].at },
				     log->part[i].len, true);
		all = all ?: err;
	}
	/* this system may have been fenced in the previous step, after the check above */
	if (!sg_is_ours(tx->vol))
		return -EIO;
	return all == PAGE_IS_BAD ? -EIO : all;
}

void sg_log_init(struct sg_log *log, const struct sg_iref *ref, u64 pos, const u8 *buf)
{
	log->redo = (struct sg_redo){ .put = log_put, .apply = log_apply };
	log->ref = ref;
	log->buf = buf;
	log->pos = pos;
	log->bytes = 0;
	log->n = 0;
}

void sg_log_add(struct sg_log *log, u64 at, u64 len)
{
	SG_ASSERT(log->n < SG_ARRAY_SIZE(log->part));
	log->part[log->n++] = (struct sg_log_part){ .at = (u32)at, .len = (u32)len };
	log->bytes += len;
}

/* --- room for the bytes --------------------------------------------------------------------- */

/**
 * struct scratch - free pages with the bytes of a log until the record is invalid.
 * @run: the runs taken; @n: their number. @left: bytes that still fit into the last run, from @off
 * on.
 */
struct scratch {
	struct sg_run run[SG_ATOMIC_PAGES];
	unsigned int n;
	u64 off, left;
};

static int scratch_more(struct sg_tx *tx, struct scratch *s, u64 bytes)
{
	struct sg_run *run = &s->run[s->n];
	int err = s->n == SG_ARRAY_SIZE(s->run) ? -ENOSPC :
		  sg_take_run(tx, SG_USE_META, 0, sg_pages_of(bytes), &run->off, &run->pages);

	if (err)
		return err;
	s->n++;
	s->off = run->off;
	s->left = run->pages << SG_PAGE_SHIFT;
	return 0;
}

/*
 * Returns the pages within the transaction, so their bits never change. The transaction's lock of
 * the chunk keeps other systems from taking them.
 */
static void scratch_give(struct sg_tx *tx, const struct scratch *s)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		sg_give_run(tx, s->run[i].off, s->run[i].pages);
}

/* Writes the bytes of one part into these pages; the part is divided where a run of pages ends. */
static int scratch_write(struct sg_tx *tx, struct scratch *s, struct sg_log *log,
			 struct sg_log_part part, u64 *bytes)
{
	u64 n;
	int err;

	for (; part.len; part.at += (u32)n, part.len -= (u32)n) {
		err = s->left ? 0 : scratch_more(tx, s, *bytes);
		if (!err && log->n == SG_ARRAY_SIZE(log->part))
			err = -ENOSPC;
		if (err)
			return err;
		n = SG_MIN((u64)part.len, s->left);
		sg_fresh_write(tx->vol, s->off, log->buf + part.at, n);
		log->part[log->n++] = (struct sg_log_part){ part.at, (u32)n, s->off };
		s->off += n;
		s->left -= n;
		*bytes -= n;
	}
	return 0;
}

static int log_outside(struct sg_tx *tx, struct sg_log *log)
{
	struct sg_log_part part[SG_ATOMIC_PAGES] SG_UNINITIALIZED;
	unsigned int n = log->n, i;
	struct scratch s = {};
	u64 bytes = log->bytes;
	int err = n > SG_ARRAY_SIZE(part) ? -EUCLEAN : 0;

	for (i = 0; i < n && !err; i++)
		part[i] = log->part[i];
	log->n = 0;
	for (i = 0; i < n && !err; i++)
		err = scratch_write(tx, &s, log, part[i], &bytes);
	scratch_give(tx, &s);
	return err;
}

int sg_log_place(struct sg_tx *tx, struct sg_log *log)
{
	int err = 0;

	if (tx->err || !log->n)
		return tx->err;
	if (sg_log_words(log->n, log->bytes) > sg_tx_log_room(tx))
		err = log_outside(tx, log);
	if (!err && sg_log_words(log->n, 0) > sg_tx_log_room(tx))
		err = -ENOSPC;
	if (err)
		sg_tx_fail(tx, err);
	tx->redo = &log->redo;
	return tx->err;
}

/* --- replay --------------------------------------------------------------------------------- */

static int log_damaged(struct sg_vol *vol, u64 ino, u64 off)
{
	sg_damaged(vol, ino, off, "log of a write");
	return 0;	/* the rest of the record is valid */
}

/*
 * Reports whether the inode's change counter is among those in the record, which precede the log.
 */
static bool log_is_locked(const struct sg_iref *ref, const struct sg_word *log, unsigned int seqs)
{
	unsigned int i;

	for (i = 1; i <= seqs; i++)
		if (sg_load64(&log[-(int)i].off) == SG_IOFF(ref, seq))
			return true;
	return false;
}

/*
 * Checks the place of a piece whose bytes are outside the record. Returns false if no log can have
 * bytes there.
 */
static bool is_outside(struct sg_vol *vol, u64 from, u64 len, u32 crc, bool store)
{
	u64 in = from & (SG_PAGE - 1), pages = sg_pages_of(in + len), n;
	const u8 *at;
	u8 step[STEP];
	u32 sum = ~0u;

	if (!sg_data_range(vol, from - in, pages) || sg_good_pages(vol, from - in, pages) < pages)
		return false;
	for (at = vol->base + from; len && !store; at += n, len -= n) {
		n = SG_MIN(len, (u64)STEP);
		if (sg_os_read(step, at, n))
			return false;
		sum = sg_crc32c(sum, step, n);
	}
	return store || sum == crc;
}

/* Checks a piece, or stores it. @bytes, @left: the bytes of the record behind the pieces. */
static int replay_piece(const struct sg_replay *r, const struct sg_iref *ref,
			const struct sg_log_piece *p, const u8 **bytes, u64 *left, bool store)
{
	u64 pos = sg_load64(&p->pos), word = sg_load64(&p->len), from = sg_load64(&p->from);
	u64 len = SG_LOG_LEN(word);
	struct source source = { .at = *bytes };

	if (len > SG_ATOMIC_MAX || pos > SG_FILE_MAX - len)
		return -EUCLEAN;
	if (from) {
		if (!is_outside(r->vol, from, len, SG_LOG_CRC(word), store))
			return -EUCLEAN;
		source = (struct source){ .at = r->vol->base + from, .poison = true };
	} else if (len <= *left) {
		*bytes += len;
		*left -= len;
	} else {
		return -EUCLEAN;
	}
	return store_in_place(r->vol, r, ref, pos, source, len, store);
}

static int replay_pieces(const struct sg_replay *r, const struct sg_iref *ref,
			 const struct sg_log_piece *piece, unsigned int n, u64 left, bool store)
{
	const u8 *bytes = (const u8 *)(piece + n);
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && (!err || err == PAGE_IS_BAD); i++)
		err = replay_piece(r, ref, &piece[i], &bytes, &left, store);
	return err == PAGE_IS_BAD ? 0 : err;
}

int sg_redo_replay(const struct sg_replay *r, const struct sg_word *log, unsigned int n,
		   unsigned int seqs)
{
	const struct sg_log_head *head = (const void *)log;
	const struct sg_log_piece *piece = (const void *)(log + 1);
	u64 word = sg_load64(&head->ino), ino = SG_LOG_INO(word), left;
	unsigned int count = SG_LOG_COUNT(word);
	struct sg_iref ref;
	int err;

	if (sg_log_words(count, 0) > n || sg_iref(r->vol, ino, &ref))
		return log_damaged(r->vol, ino, 0);
	ref.generation = (u32)sg_load64(&head->generation);
	if (!ref.generation || !sg_is_same(r->vol, &ref) || !log_is_locked(&ref, log, seqs) ||
	    !sg_is_reg(sg_iget(r->vol, &ref, mode)))
		return log_damaged(r->vol, ino, ref.off);
	left = (n - sg_log_words(count, 0)) * sizeof(*log);
	/*
	 * Checks the complete log before it stores anything: with an invalid log the old bytes may
	 * still exist.
	 */
	err = replay_pieces(r, &ref, piece, count, left, false) ?:
	      replay_pieces(r, &ref, piece, count, left, true);
	return err == -EUCLEAN ? log_damaged(r->vol, ino, ref.off) : err;
}
