/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * Operations on a ring for a process that has mapped the ring's page and its data
 * (docs/channels.md). They need no system call, and none of them waits. The kernel does the rest
 * (semctl.h). Another user of the ring can forge any word. So each function loads a word once and
 * checks it, and never reads or writes outside the data.
 *
 * A reader claims a record in two steps that count as one. It stores the position in its cell
 * (TRIES), then moves the head from exactly that position, and names its cell there. Nothing is
 * claimed until the head moves; when it moves, the cell already protects the record. Before the
 * next reader moves the head again, it sets the cell named there to CLAIMED. So for each cell of a
 * dead reader, the kernel can decide whether the reader had claimed a record.
 *
 * A writer may overwrite the bytes behind the head and behind the positions in all cells. It loads
 * the head first, then the cells. If a claim was made before the load of the head, its cell is set.
 * If a claim was made later, its position is not behind the loaded head.
 */
#ifndef SG_RINGWORD_H
#define SG_RINGWORD_H

#include "semtype.h"
#if !defined(__cplusplus) && !defined(__KERNEL__)
#include <stdbool.h>
#endif

/**
 * struct sg_ring - a mapped ring
 * @page: its words. @data: its bytes, mapped twice, one after the other: no record is divided.
 * @grains: size of the data, a power of two. @cell: the cell in which this user claims records; 0:
 * it has none yet.
 */
struct sg_ring {
	u64 *page;
	unsigned char *data;
	u64 grains;
	unsigned int cell;
	bool single;
};

enum sg_ring_result {
	SG_RING_OK,
	SG_RING_NONE,	/* for a reader: there is no record; for a writer: there is no room */
	SG_RING_LARGE,	/* reader: the record is larger than the buffer */
	SG_RING_BAD,	/* words or record are invalid: a user has forged them */
	SG_RING_BUSY,	/* reader: another reader was first each time */
	SG_RING_ASK,	/* complete when the kernel has done the rest */
};

/* A reader that loses SG_RING_TURNS races in each of SG_RING_ROUNDS calls assumes forged words. */
#define SG_RING_TURNS	200u
#define SG_RING_ROUNDS	100u

/*
 * Inline functions. Otherwise the compiler keeps struct sg_ring in memory, which costs 30 more
 * instructions per record.
 */
#define SG_RINGW_FAST	inline __attribute__((always_inline))

static inline u64 sg_ringw_load(const u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void sg_ringw_store(u64 *p, u64 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Stores @v; other processors see the store before this one executes any later load. */
static inline void sg_ringw_store_first(u64 *p, u64 v)
{
	__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

static inline bool sg_ringw_swap(u64 *p, u64 old, u64 now)
{
	return __atomic_compare_exchange_n(p, &old, now, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static inline u64 *sg_ringw_at(const struct sg_ring *r, unsigned int word)
{
	return r->page + word;
}

static inline u64 sg_ringw_tail(const struct sg_ring *r)
{
	return sg_ringw_load(sg_ringw_at(r, SG_RING_WORD(SG_RING_TAIL))) & SG_SEMW_COUNT;
}

/* Returns the number of grains of a record with this payload, the head included. */
static inline u64 sg_ringw_grains(u64 len)
{
	return (len + 2 * SG_RING_GRAIN - 1) / SG_RING_GRAIN;
}

/* Returns the length of the longest payload. */
static inline u64 sg_ringw_most(const struct sg_ring *r)
{
	return r->grains / 2 * SG_RING_GRAIN - SG_RING_GRAIN;
}

static inline struct sg_ring_record *sg_ringw_record(const struct sg_ring *r, u64 pos)
{
	return (struct sg_ring_record *)(r->data + (pos & (r->grains - 1)) * SG_RING_GRAIN);
}

/* --- writer, which has the ring's lock -------------------------------------------------------- */

/* Returns 0 if no cell of the cache line is in use, as in most lines. */
static inline u64 sg_ringw_line(const u64 *cell)
{
	return sg_ringw_load(cell) | sg_ringw_load(cell + 1) | sg_ringw_load(cell + 2) |
	       sg_ringw_load(cell + 3) | sg_ringw_load(cell + 4) | sg_ringw_load(cell + 5) |
	       sg_ringw_load(cell + 6) | sg_ringw_load(cell + 7);
}

/*
 * Returns the position up to which data may be overwritten. A cell may also have the position of a
 * claim that failed; such a cell protects nothing. A position behind @freed certainly belongs to a
 * failed claim.
 */
static inline u64 sg_ringw_lowest(const struct sg_ring *r, u64 freed)
{
	u64 low = SG_RING_HEAD_POS(sg_ringw_load(sg_ringw_at(r, SG_RING_HEAD)));
	unsigned int i, k;

	if (freed > low)
		freed = 0;	/* forged */
	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i += 8) {
		if (!sg_ringw_line(sg_ringw_at(r, i)))
			continue;
		for (k = i; k < i + 8; k++) {
			u64 cell = sg_ringw_load(sg_ringw_at(r, k));

			if (cell && SG_RING_CELL_POS(cell) < low && SG_RING_CELL_POS(cell) >= freed)
				low = SG_RING_CELL_POS(cell);
		}
	}
	return low;
}

/*
 * Reports whether there is room for @n grains behind @tail, by the position that the last writer
 * stored. If FREED is beyond the tail, the difference is larger than any ring.
 */
static inline bool sg_ringw_has_room(const struct sg_ring *r, u64 tail, u64 n)
{
	u64 freed = sg_ringw_load(sg_ringw_at(r, SG_RING_FREED));

	return tail - freed <= r->grains - n && tail <= SG_RING_POS_MAX - n;
}

/* As sg_ringw_room_seen(); if that finds no room, also checks the readers' cells. */
static inline enum sg_ring_result sg_ringw_room(const struct sg_ring *r, u64 tail, u64 n)
{
	u64 freed = sg_ringw_load(sg_ringw_at(r, SG_RING_FREED)), low;

	if (n > r->grains)
		return SG_RING_NONE;
	if (sg_ringw_has_room(r, tail, n))
		return SG_RING_OK;
	low = sg_ringw_lowest(r, freed);
	if (low > tail || tail - low > r->grains || tail > SG_RING_POS_MAX - n)
		return SG_RING_BAD;
	sg_ringw_store(sg_ringw_at(r, SG_RING_FREED), low);
	return tail + n - low <= r->grains ? SG_RING_OK : SG_RING_NONE;
}

/*
 * For a writer that found no room: from now on readers report when they have freed a record. The
 * caller checks for room again, then waits in the kernel until ROOM has the returned count.
 */
static inline u64 sg_ringw_want_room(const struct sg_ring *r)
{
	u64 *room = sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM));

	return (__atomic_fetch_or(room, SG_SEMW_ASKED, __ATOMIC_SEQ_CST) & SG_SEMW_COUNT) + 1;
}

/* Writes the head of the record at @pos, whose payload is in place. */
static inline void sg_ringw_head(const struct sg_ring *r, u64 pos, u64 len, unsigned int tag)
{
	struct sg_ring_record *rec = sg_ringw_record(r, pos);

	__atomic_store_n(&rec->len_tag, len | (u64)tag << 32, __ATOMIC_RELAXED);
	__atomic_store_n(&rec->at, pos, __ATOMIC_RELAXED);
}

/*
 * Makes the @count complete records from @tail on, in @n grains, available to readers. ASK: some
 * reader sleeps, so the kernel must advance TAIL by @n.
 */
static inline enum sg_ring_result sg_ringw_publish(const struct sg_ring *r, u64 tail, u64 n,
						   u64 count)
{
	u64 *word = sg_ringw_at(r, SG_RING_WORD(SG_RING_TAIL));
	u64 *sent = sg_ringw_at(r, SG_RING_SENT);

	__atomic_store_n(sent, __atomic_load_n(sent, __ATOMIC_RELAXED) + count, __ATOMIC_RELAXED);
	if (sg_ringw_swap(word, tail, tail + n))
		return SG_RING_OK;
	return (sg_ringw_load(word) & SG_SEMW_COUNT) == tail ? SG_RING_ASK : SG_RING_BAD;
}

/* Makes the complete record at @tail available to readers. */
static inline enum sg_ring_result sg_ringw_commit(const struct sg_ring *r, u64 tail, u64 len,
						  unsigned int tag)
{
	sg_ringw_head(r, tail, len, tag);
	return sg_ringw_publish(r, tail, sg_ringw_grains(len), 1);
}

/* --- reader ----------------------------------------------------------------------------------- */

/**
 * struct sg_ring_claim - a record that this reader has claimed
 * @at: its position. NONE: the position at which the ring was empty.
 */
struct sg_ring_claim {
	const unsigned char *data;
	unsigned int len, tag;
	u64 at;
};

/*
 * Sets the cell of the reader that moved the head last to CLAIMED, if that reader has not yet done
 * it.
 */
static inline void sg_ringw_help(const struct sg_ring *r, u64 head)
{
	unsigned int other = SG_RING_HEAD_CELL(head);
	u64 cell;

	if (other < SG_SEM_CELL_FIRST || other == r->cell)
		return;
	cell = sg_ringw_load(sg_ringw_at(r, other));
	if (cell & SG_RING_TRIES && SG_RING_CELL_POS(cell) < SG_RING_HEAD_POS(head))
		sg_ringw_swap(sg_ringw_at(r, other), cell,
			      SG_RING_CELL_AT(SG_RING_CELL_POS(cell), SG_RING_CLAIMED));
}

static SG_RINGW_FAST bool sg_ringw_move_head(const struct sg_ring *r, u64 head, u64 n)
{
	u64 pos = SG_RING_HEAD_POS(head), next = SG_RING_HEAD_AT(pos + n, r->cell);
	u64 *cell = sg_ringw_at(r, r->cell);

	if (r->single) {
		/*
		 * no other reader exists, and other processors see the stores of one processor in
		 * order
		 */
		sg_ringw_store(cell, SG_RING_CELL_AT(pos, SG_RING_CLAIMED));
		sg_ringw_store(sg_ringw_at(r, SG_RING_HEAD), next);
		return true;
	}
	if (SG_RING_HEAD_CELL(head) != r->cell)
		sg_ringw_help(r, head);
	if (!sg_ringw_swap(sg_ringw_at(r, SG_RING_HEAD), head, next))
		return false;
	sg_ringw_store(cell, SG_RING_CELL_AT(pos, SG_RING_CLAIMED));
	return true;
}

/* Checks the record at @pos. The caller has made sure that no writer overwrites it. */
static SG_RINGW_FAST enum sg_ring_result sg_ringw_look(const struct sg_ring *r, u64 pos, u64 tail,
						       u64 room, struct sg_ring_claim *out)
{
	const struct sg_ring_record *rec = sg_ringw_record(r, pos);
	u64 len_tag = __atomic_load_n(&rec->len_tag, __ATOMIC_RELAXED);
	u64 n;

	out->len = (unsigned int)len_tag;
	out->tag = (unsigned int)(len_tag >> 32);
	out->data = (const unsigned char *)(rec + 1);
	n = sg_ringw_grains(out->len);
	if (tail - pos > r->grains || n > tail - pos || n > r->grains / 2 ||
	    __atomic_load_n(&rec->at, __ATOMIC_RELAXED) != pos)
		return SG_RING_BAD;
	return out->len > room ? SG_RING_LARGE : SG_RING_OK;
}

/*
 * Makes the reader's cell protect the record at the head and all later ones. Returns OK, NONE or
 * BUSY.
 */
static SG_RINGW_FAST enum sg_ring_result sg_ringw_protect(const struct sg_ring *r, u64 *head,
							  u64 *tail)
{
	*head = sg_ringw_load(sg_ringw_at(r, SG_RING_HEAD));
	*tail = sg_ringw_tail(r);
	if (*tail == SG_RING_HEAD_POS(*head))
		return SG_RING_NONE;
	if (r->single)
		return SG_RING_OK;
	sg_ringw_store_first(sg_ringw_at(r, r->cell),
			     SG_RING_CELL_AT(SG_RING_HEAD_POS(*head), SG_RING_TRIES));
	/* if the head has not moved, writers cannot overwrite the record any more */
	return sg_ringw_load(sg_ringw_at(r, SG_RING_HEAD)) == *head ? SG_RING_OK : SG_RING_BUSY;
}

/*
 * Claims the next record, of at most @room bytes. Returns BUSY if another reader was first, and
 * LARGE if the record is longer; @out->len is then its length. After any result except OK, the
 * caller calls sg_ringw_release() if the cell is not 0.
 */
static SG_RINGW_FAST enum sg_ring_result sg_ringw_try(const struct sg_ring *r, u64 room,
						      struct sg_ring_claim *out)
{
	u64 head, tail;
	enum sg_ring_result res = sg_ringw_protect(r, &head, &tail);

	out->at = SG_RING_HEAD_POS(head);
	if (res == SG_RING_OK)
		res = sg_ringw_look(r, out->at, tail, room, out);
	if (res != SG_RING_OK)
		return res;
	return sg_ringw_move_head(r, head, sg_ringw_grains(out->len)) ? SG_RING_OK : SG_RING_BUSY;
}

/*
 * Returns the bytes that a record of a batch takes in the receiver's buffer; the next record is
 * aligned.
 */
static inline u64 sg_ringw_step(u64 len)
{
	return (len + 7) & ~7ULL;
}

/*
 * As sg_ringw_try(), for up to @most records that fit together into @room (sg_ringw_step()). They
 * are one claim: the cell protects all of them, from the first one on. *n is their number. Results
 * other than OK are about the first record; an error in a later record shows when that record is
 * the first.
 */
static inline enum sg_ring_result sg_ringw_try_many(const struct sg_ring *r, u64 room,
						    struct sg_ring_claim *out, unsigned int most,
						    unsigned int *n)
{
	u64 head, tail, pos;
	enum sg_ring_result res = sg_ringw_protect(r, &head, &tail);

	*n = 0;
	out->at = pos = SG_RING_HEAD_POS(head);
	while (res == SG_RING_OK && *n < most && pos != tail) {
		struct sg_ring_claim *c = out + *n;

		c->at = pos;
		res = sg_ringw_look(r, pos, tail, room, c);
		if (res != SG_RING_OK)
			break;
		++*n;
		pos += sg_ringw_grains(c->len);
		room -= room < sg_ringw_step(c->len) ? room : sg_ringw_step(c->len);
	}
	if (!*n)
		return res;
	pos -= SG_RING_HEAD_POS(head);
	return sg_ringw_move_head(r, head, pos) ? SG_RING_OK : SG_RING_BUSY;
}

/*
 * As sg_ringw_try(), with further attempts while other readers are first. After BUSY the caller
 * yields and calls again, at most SG_RING_ROUNDS times.
 */
static inline enum sg_ring_result sg_ringw_claim_many(const struct sg_ring *r, u64 room,
						      struct sg_ring_claim *out, unsigned int most,
						      unsigned int *n)
{
	enum sg_ring_result res = SG_RING_BUSY;
	unsigned int turn;

	for (turn = 0; turn < SG_RING_TURNS && res == SG_RING_BUSY; turn++)
		res = sg_ringw_try_many(r, room, out, most, n);
	return res;
}

static inline enum sg_ring_result sg_ringw_claim(const struct sg_ring *r, u64 room,
						 struct sg_ring_claim *out)
{
	unsigned int n;

	return sg_ringw_claim_many(r, room, out, 1, &n);
}

/* Ends the claim. Returns true if a writer waits for room; the caller then calls sg_ringw_tell().
 * */
static inline bool sg_ringw_release(const struct sg_ring *r)
{
	sg_ringw_store_first(sg_ringw_at(r, r->cell), 0);
	return sg_ringw_load(sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM))) > SG_SEMW_COUNT;
}

/*
 * Counts in ROOM that a record was freed. Returns false if the writer sleeps; the kernel must then
 * advance ROOM by 1.
 */
static inline bool sg_ringw_tell(const struct sg_ring *r)
{
	u64 *room = sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM)), seen = sg_ringw_load(room);

	return seen <= SG_SEMW_COUNT ||
	       (!(seen & SG_SEMW_WAITERS) &&
		sg_ringw_swap(room, seen, (seen & SG_SEMW_COUNT) + 1));
}

#endif
