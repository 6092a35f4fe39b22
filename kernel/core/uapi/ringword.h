/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The operations on a ring that a process does by itself, after it has mapped the ring's page and
 * its data (docs/channels.md). Nothing here waits. The kernel only does what this header cannot:
 * semctl.h. All words may be forged by other users of the ring. So each is loaded once and checked,
 * and nothing here reads or writes outside of the data.
 *
 * A reader claims a record in two steps that count as one. It stores the position in its cell
 * (TRIES), then moves the head from exactly that position, and names its cell there. Until the head
 * moves, nothing is claimed; from then on the cell already protects the record. Before the next
 * reader moves the head on, it makes the cell named there say CLAIMED. So for each cell that a dead
 * reader left, the kernel knows whether a record was claimed.
 *
 * A writer may overwrite what is behind the head and behind all cells. It loads the head first. A
 * claim from before that load is in a cell by now, and a later one is not behind the head.
 */
#ifndef SG_RINGWORD_H
#define SG_RINGWORD_H

#include "semtype.h"
#ifndef __cplusplus
#include <stdbool.h>
#endif

/**
 * struct sg_ring - a mapped ring
 * @page: its words. @data: its bytes, mapped twice, one after the other: no record is divided.
 * @grains: size of the data, a power of two. @cell: where this user claims records, 0: nowhere yet.
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
	SG_RING_NONE,	/* reader: no record; writer: no room */
	SG_RING_LARGE,	/* reader: the record is larger than the buffer */
	SG_RING_BAD,	/* words or record make no sense: a user has forged them */
	SG_RING_BUSY,	/* reader: others were first each time */
	SG_RING_ASK,	/* done if the kernel does the rest */
};

/* A reader that loses the race for a record so often, and then so often again, meets a forger. */
#define SG_RING_TURNS	200u
#define SG_RING_ROUNDS	100u

/* Compilers otherwise keep struct sg_ring in memory: 30 instructions more for each record. */
#define SG_RINGW_FAST	inline __attribute__((always_inline))

static inline u64 sg_ringw_load(const u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void sg_ringw_store(u64 *p, u64 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* A store that is seen before anything that follows is loaded. */
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

/* Grains of a record with this payload, and one for its head. */
static inline u64 sg_ringw_grains(u64 len)
{
	return (len + 2 * SG_RING_GRAIN - 1) / SG_RING_GRAIN;
}

/* The longest payload. */
static inline u64 sg_ringw_most(const struct sg_ring *r)
{
	return r->grains / 2 * SG_RING_GRAIN - SG_RING_GRAIN;
}

static inline struct sg_ring_record *sg_ringw_record(const struct sg_ring *r, u64 pos)
{
	return (struct sg_ring_record *)(r->data + (pos & (r->grains - 1)) * SG_RING_GRAIN);
}

/* --- writer, which has the ring's lock -------------------------------------------------------- */

/* Most cache lines have no cell in use. */
static inline u64 sg_ringw_line(const u64 *cell)
{
	return sg_ringw_load(cell) | sg_ringw_load(cell + 1) | sg_ringw_load(cell + 2) |
	       sg_ringw_load(cell + 3) | sg_ringw_load(cell + 4) | sg_ringw_load(cell + 5) |
	       sg_ringw_load(cell + 6) | sg_ringw_load(cell + 7);
}

/*
 * Up to where data may be overwritten. A cell may also hold the position of a claim that failed,
 * and then protects nothing. That is certain for positions behind @freed.
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
 * There is room for @n grains, at most the whole ring, behind @tail, by what the last writer has
 * found. If FREED is beyond the tail, the difference is larger than any ring.
 */
static inline bool sg_ringw_has_room(const struct sg_ring *r, u64 tail, u64 n)
{
	u64 freed = sg_ringw_load(sg_ringw_at(r, SG_RING_FREED));

	return tail - freed <= r->grains - n && tail <= SG_RING_POS_MAX - n;
}

/* The same; looks at the readers if it seems that there is none. */
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
 * Room is missing. From now on readers say when they have freed something. Look again after this,
 * then let the kernel wait until ROOM has the count that this returns.
 */
static inline u64 sg_ringw_want_room(const struct sg_ring *r)
{
	u64 *room = sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM));

	return (__atomic_fetch_or(room, SG_SEMW_ASKED, __ATOMIC_SEQ_CST) & SG_SEMW_COUNT) + 1;
}

/* The head of the record at @pos, whose payload is there. */
static inline void sg_ringw_head(const struct sg_ring *r, u64 pos, u64 len, unsigned int tag)
{
	struct sg_ring_record *rec = sg_ringw_record(r, pos);

	__atomic_store_n(&rec->len_tag, len | (u64)tag << 32, __ATOMIC_RELAXED);
	__atomic_store_n(&rec->at, pos, __ATOMIC_RELAXED);
}

/*
 * The records from @tail on, @count of them in @n grains, are complete: readers may have them. ASK:
 * sleepers have to be woken, so the kernel advances TAIL by @n.
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

/* The record at @tail is complete. */
static inline enum sg_ring_result sg_ringw_commit(const struct sg_ring *r, u64 tail, u64 len,
						  unsigned int tag)
{
	sg_ringw_head(r, tail, len, tag);
	return sg_ringw_publish(r, tail, sg_ringw_grains(len), 1);
}

/* --- reader ----------------------------------------------------------------------------------- */

/**
 * struct sg_ring_claim - a record that this reader has
 * @at: its position. NONE: the position at which the ring was empty.
 */
struct sg_ring_claim {
	const unsigned char *data;
	unsigned int len, tag;
	u64 at;
};

/* The reader that moved the head last may not have said so yet. */
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
		/* no other reader: stores of one processor are seen in order */
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

/* Checks the record at @pos, which no writer overwrites. */
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

/* The cell protects what is at the head, and behind it. OK, NONE, BUSY. */
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
	/* only now the record cannot be overwritten any more */
	return sg_ringw_load(sg_ringw_at(r, SG_RING_HEAD)) == *head ? SG_RING_OK : SG_RING_BUSY;
}

/*
 * Claims the next record, of at most @room bytes, unless another reader is first (BUSY). Unless the
 * result is OK, call sg_ringw_release() if the cell is not 0. LARGE: @out->len is its length.
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

/* Bytes that a record of a batch takes of the receiver's buffer: the next one begins aligned. */
static inline u64 sg_ringw_step(u64 len)
{
	return (len + 7) & ~7ULL;
}

/*
 * The same for as many records as there are, at most @most, whose steps fit @room together. They
 * are one claim: the cell protects them all, from the first one on. *n: how many; otherwise as
 * above, for the first one. An error in a later record is found when that is the first one.
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

/* The same, many times if others are first. After BUSY yield: at most SG_RING_ROUNDS times. */
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

/* True: a writer waits for room: sg_ringw_tell(). */
static inline bool sg_ringw_release(const struct sg_ring *r)
{
	sg_ringw_store_first(sg_ringw_at(r, r->cell), 0);
	return sg_ringw_load(sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM))) > SG_SEMW_COUNT;
}

/* False: the writer sleeps: the kernel advances ROOM by 1. */
static inline bool sg_ringw_tell(const struct sg_ring *r)
{
	u64 *room = sg_ringw_at(r, SG_RING_WORD(SG_RING_ROOM)), seen = sg_ringw_load(room);

	return seen <= SG_SEMW_COUNT ||
	       (!(seen & SG_SEMW_WAITERS) &&
		sg_ringw_swap(room, seen, (seen & SG_SEMW_COUNT) + 1));
}

#endif
