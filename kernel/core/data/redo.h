/* SPDX-License-Identifier: GPL-2.0 */
/* Logs of bytes that a transaction stores in place. */
#ifndef SG_REDO_H
#define SG_REDO_H

#include "journal/tx.h"

/*
 * A part of a write: @len bytes from its byte @at on. @from: place of the bytes in the volume; 0:
 * in the record.
 */
struct sg_log_part {
	u32 at, len;
	u64 from;
};

/**
 * struct sg_log - the log of one write, as it is made.
 * @buf, @pos: the bytes of the write, and the position of the first one in the file.
 * @part: the parts to log; @n: their number; @bytes: their total length.
 */
struct sg_log {
	struct sg_redo redo;
	const struct sg_iref *ref;
	const u8 *buf;
	u64 pos, bytes;
	unsigned int n;
	struct sg_log_part part[SG_LOG_PIECES];
};

static inline unsigned int sg_log_words(unsigned int pieces, u64 bytes)
{
	return 1 + 2 * pieces + (unsigned int)((bytes + 15) / sizeof(struct sg_word));
}

void sg_log_init(struct sg_log *log, const struct sg_iref *ref, u64 pos, const u8 *buf);
void sg_log_add(struct sg_log *log, u64 at, u64 len);
/*
 * Finds room for the bytes, and makes them part of the commit. The transaction sets no word
 * afterwards. -ENOSPC: no pages are free.
 */
int sg_log_place(struct sg_tx *tx, struct sg_log *log);
/* Reports whether all bytes of a placed log are in the record. */
static inline bool sg_log_is_inside(const struct sg_log *log)
{
	unsigned int i;

	for (i = 0; i < log->n && !log->part[i].from; i++)
		;
	return i == log->n;
}
/* Stores a log in place, for replay. Returns 0 also if the log is damaged, which it reports. */
int sg_redo_replay(const struct sg_replay *r, const struct sg_word *log, unsigned int n,
		   unsigned int seqs);

#endif
