// SPDX-License-Identifier: GPL-2.0
/*
 * Space: a bitmap per chunk of 2 MiB, each under its own lock.
 *
 * A transaction keeps the locks of the chunks that it changes. It waits only for its first chunk,
 * and only to take pages. If it holds one, it skips busy chunks. So transactions cannot wait for
 * each other in a circle, and parallel writers move to different chunks and remain there
 * (sg_vol.cursor). A transaction that frees pages waits for no chunk, because its holder may be
 * paused (reclaim.c).
 *
 * Two advisory bitmaps hint which chunks have room, and which are empty; they are not journalled.
 * After a false hint, a system checks the chunk in vain, and clears the hint. Missing hints are
 * completed step by step (sg_space_mend_hints()). Without any hint, the allocator checks every
 * chunk before it returns ENOSPC (docs/protocol.md, section 9).
 */
#include "internal.h"

#define MAP_WORDS	8
#define MEND_STEP	8192	/* number of chunks per step, 16 GiB: less than a millisecond */
#define SEARCH		256	/* number of chunks to search for a long run, */
#define VAIN_MAX	4	/* halved after each vain search, at most this often */
#define GOOD		4	/* a search ends when this many chunks have such a run */
#define ENOUGH		4	/* pages of a run that is better than one in an empty chunk */
#define BUSY_NS		1000000ULL	/* time to poll a busy chunk before a wait for its lock */
/* time after which an allocator that must not wait for a lock returns ENOSPC */
#define BUSY_HELD_NS	100000000ULL
#define BUSY_LOCK_NS 1000000000ULL /* time after which an allocator that waits for the lock returns
#ENOSPC */
#define BUSY_SLICE_NS	50000000ULL	/* part of that time between checks of all chunks */
/*
 * entries of the ledger, and words of the transaction, that must remain free when a busy chunk is
 * skipped
 */
#define PASS_ROOM	SG_AREA_WORDS
#define PASS_WORDS	8

struct map {
	u64 w[MAP_WORDS];
};

static u64 map_off(const struct sg_vol *vol, u64 chunk, unsigned int word)
{
	return sg_chunk_off(vol, chunk) + offsetof(struct sg_chunk, map) + word * 8;
}

static u64 chunk_lock(const struct sg_vol *vol, u64 chunk)
{
	return sg_chunk_off(vol, chunk) + offsetof(struct sg_chunk, lock);
}

/* --- hints: bit per chunk, "has room" then "is empty" --------------------------------------- */

/* HINT_USED: has room, but is not empty; only for next_hinted() */
enum hint { HINT_ROOM, HINT_EMPTY, HINT_USED };

static u64 *hint_word(const struct sg_vol *vol, enum hint kind, u64 chunk)
{
	u64 half = SG_ALIGN_UP(vol->sb.chunk_cap, 64) / 8;

	return sg_at(vol, vol->sb.hint_off + kind * half + chunk / 64 * 8);
}

static void hint_set(struct sg_vol *vol, enum hint kind, u64 chunk, bool on)
{
	u64 *w = hint_word(vol, kind, chunk), bit = 1ULL << (chunk & 63);

	if (!(sg_load64(w) & bit) == !on)
		return;
	if (on)
		sg_or64(w, bit);
	else
		sg_and64(w, ~bit);
}

/*
 * Combines hint words: @all has the bits that are set in all words, @any those in any word. Loads
 * each word once.
 */
static void map_sum(const struct sg_vol *vol, u64 chunk, u64 *all, u64 *any)
{
	unsigned int i;

	*all = ~0ULL;
	*any = 0;
	for (i = 0; i < MAP_WORDS; i++) {
		u64 w = sg_get(vol, map_off(vol, chunk, i));

		*all &= w;
		*any |= w;
	}
}

/* Sets and clears the hints according to the map; needs the chunk's lock, or exclusive access. */
static void hints_follow(struct sg_vol *vol, u64 chunk)
{
	u64 all, any;

	map_sum(vol, chunk, &all, &any);
	hint_set(vol, HINT_ROOM, chunk, all != ~0ULL);
	hint_set(vol, HINT_EMPTY, chunk, !any);
}

/*
 * Sets hints without the lock. A hint may already be false when it is set; the next system that
 * uses the hint clears it. This function clears no hint, because it could remove one that another
 * system has just set.
 */
static void hints_promise(struct sg_vol *vol, u64 from, u64 to)
{
	u64 c, all, any;

	for (c = from; c < to; c++) {
		map_sum(vol, c, &all, &any);
		if (all != ~0ULL)
			hint_set(vol, HINT_ROOM, c, true);
		if (!any)
			hint_set(vol, HINT_EMPTY, c, true);
	}
}

void sg_space_found(struct sg_vol *vol, u64 from)
{
	hints_promise(vol, from, sg_chunks(vol));
}

void sg_space_rebuild_hints(struct sg_vol *vol)
{
	u64 c;

	for (c = 0; c < sg_chunks(vol); c++)
		hints_follow(vol, c);
}

void sg_space_doubt_hints(struct sg_vol *vol)
{
	sg_store64(&vol->hints_left, sg_chunks(vol));
}

/*
 * Completes hints from the last chunk towards the first. hints_left decreases only after the chunks
 * have been checked.
 */
bool sg_space_mend_hints(struct sg_vol *vol)
{
	u64 left = sg_load64(&vol->hints_left), from = left - SG_MIN(left, (u64)MEND_STEP);

	if (!left)
		return false;
	hints_promise(vol, from, left);
	sg_yield();
	/* false if hints may be missing again, or if another thread was first */
	sg_cas64(&vol->hints_left, left, from);
	return true;
}

void sg_chunk_release(struct sg_tx *tx, u64 lock)
{
	hints_follow(tx->vol, (lock - tx->vol->sb.chunk_off) / sizeof(struct sg_chunk));
	sg_unlock(tx->vol, lock);
}

/* Returns the hints of the 64 chunks around @chunk. */
static u64 hints_at(const struct sg_vol *vol, enum hint kind, u64 chunk)
{
	if (kind == HINT_USED)
		return sg_load64(hint_word(vol, HINT_ROOM, chunk)) &
		       ~sg_load64(hint_word(vol, HINT_EMPTY, chunk));
	return sg_load64(hint_word(vol, kind, chunk));
}

/* Reports whether the chunk has room, and is not empty, by the hints. */
static bool is_used(const struct sg_vol *vol, u64 chunk)
{
	return hints_at(vol, HINT_USED, chunk) >> (chunk & 63) & 1;
}

static unsigned int ones(u64 w)
{
	w -= w >> 1 & 0x5555555555555555ULL;
	w = (w & 0x3333333333333333ULL) + (w >> 2 & 0x3333333333333333ULL);
	w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (unsigned int)(w * 0x0101010101010101ULL >> 56);
}

/* Reports whether at least half of the 64 chunks around this one are empty. */
static bool is_young(const struct sg_vol *vol, u64 chunk)
{
	u64 chunks = sg_chunks(vol), around = SG_MIN(chunks - (chunk & ~63ULL), 64ULL);

	return chunk < chunks && 2 * ones(hints_at(vol, HINT_EMPTY, chunk)) >= around;
}

/* Returns the first chunk >= @from with the hint, or the number of chunks if there is none. */
static u64 next_hinted(const struct sg_vol *vol, enum hint kind, u64 from)
{
	u64 chunks = sg_chunks(vol), c = from & ~63ULL;
	u64 mask = ~0ULL << (from & 63);

	for (; c < chunks; c += 64, mask = ~0ULL) {
		u64 w = hints_at(vol, kind, c) & mask;

		if (w)
			return SG_MIN(c + sg_ctz64(w), chunks);
	}
	return chunks;
}

/* --- one chunk ------------------------------------------------------------------------------ */

static bool holds(const struct sg_tx *tx, u64 lock)
{
	unsigned int i;

	for (i = 0; i < tx->nlocks; i++)
		if (tx->lock[i].off == lock)
			return true;
	return false;
}

/*
 * Reports whether the transaction has a place for the lock of another chunk. The last place is for
 * inode_lock.
 */
static bool has_place(const struct sg_tx *tx)
{
	return tx->nlocks + 1 < tx->most_locks;
}

/*
 * Locks a chunk. Returns whether the chunk is locked; *kept: whether the transaction had the
 * chunk's lock before.
 */
static bool chunk_enter(struct sg_tx *tx, u64 chunk, bool *kept)
{
	u64 lock = chunk_lock(tx->vol, chunk);

	*kept = holds(tx, lock);
	if (*kept)
		return true;
	if (!has_place(tx))
		return false;
	return sg_trylock(tx->vol, lock);
}

static void chunk_keep(struct sg_tx *tx, u64 chunk, bool kept)
{
	if (!kept)
		sg_tx_keep_lock(tx, chunk_lock(tx->vol, chunk), sg_chunk_release);
	tx->holds_chunk = true;
}

static void chunk_load(struct sg_tx *tx, u64 chunk, struct map *m)
{
	unsigned int i;

	for (i = 0; i < MAP_WORDS; i++)
		m->w[i] = sg_tx_get(tx, map_off(tx->vol, chunk, i));
}

/*
 * Loads a chunk's map with bad pages masked, so that none is allocated even if its bit is clear. So
 * no system has to keep the bits of bad pages set.
 */
static void chunk_load_good(struct sg_tx *tx, u64 chunk, struct map *m)
{
	chunk_load(tx, chunk, m);
	sg_bad_mask(tx->vol, chunk, m->w);
}

/*
 * Loads into @m the pages that could be taken from a chunk now, without the chunk's lock.
 */
static void map_look(const struct sg_vol *vol, u64 chunk, struct map *m)
{
	unsigned int i;

	for (i = 0; i < MAP_WORDS; i++)
		m->w[i] = sg_get(vol, map_off(vol, chunk, i));
	sg_bad_mask(vol, chunk, m->w);
}

/* Returns the first bit >= @from with the wanted value, or 512. */
static unsigned int next_bit(const struct map *m, unsigned int from, bool used)
{
	while (from < SG_CHUNK_PAGES) {
		u64 w = m->w[from / 64] ^ (used ? 0 : ~0ULL);

		w &= ~0ULL << (from & 63);
		if (w)
			return (from & ~63u) + sg_ctz64(w);
		from = (from & ~63u) + 64;
	}
	return SG_CHUNK_PAGES;
}

/*
 * Finds a free run of @need to @want pages, at or behind @from if there is one, otherwise before
 * it.
 */
static unsigned int find_run(const struct map *m, unsigned int from, unsigned int need,
			     unsigned int want, unsigned int *start)
{
	unsigned int pass, limit = SG_CHUNK_PAGES;

	for (pass = 0; pass < 2; pass++, limit = from, from = 0) {
		unsigned int s = next_bit(m, from, false);

		while (s < limit) {
			unsigned int e = next_bit(m, s, true);

			if (e - s >= need) {
				*start = s;
				return SG_MIN(e - s, want);
			}
			s = next_bit(m, e, false);
		}
	}
	return 0;
}

/*
 * Returns the largest power of two for which that many contiguous pages are free; 0: no page is
 * free.
 */
static unsigned int longest_run(const struct map *m)
{
	struct map begins;	/* @len free pages begin here */
	unsigned int len, i;
	u64 any = 0;

	for (i = 0; i < MAP_WORDS; i++) {
		begins.w[i] = ~m->w[i];
		any |= begins.w[i];
	}
	for (len = 1; any && len < SG_CHUNK_PAGES; len *= 2) {
		any = 0;
		for (i = 0; i < MAP_WORDS; i++) {
			unsigned int at = i + len / 64, bits = len & 63;
			u64 behind = at < MAP_WORDS ? begins.w[at] >> bits : 0;

			if (bits && at + 1 < MAP_WORDS)
				behind |= begins.w[at + 1] << (64 - bits);
			/* the words behind this one still have the bits for @len */
			begins.w[i] &= behind;
			any |= begins.w[i];
		}
	}
	return any ? len : len / 2;
}

static unsigned int free_in(const struct map *m)
{
	unsigned int i, n = 0;

	for (i = 0; i < MAP_WORDS; i++)
		n += 64 - ones(m->w[i]);
	return n;
}

static void alloc_mark(struct sg_tx *tx, u64 chunk, unsigned int start, unsigned int n, bool used)
{
	while (n) {
		unsigned int bit = start & 63, k = SG_MIN(n, 64 - bit);
		u64 mask = (k == 64 ? ~0ULL : (1ULL << k) - 1) << bit;
		u64 off = map_off(tx->vol, chunk, start / 64), w = sg_tx_get(tx, off);

		sg_tx_set(tx, off, used ? w | mask : w & ~mask);
		start += k;
		n -= k;
	}
}

/* Reports whether a part of 2 MiB of a file began at the start of this chunk when it was empty. */
static bool is_for_leaf(const struct sg_vol *vol, u64 chunk)
{
	return sg_get(vol, sg_chunk_off(vol, chunk) + offsetof(struct sg_chunk, use)) ==
	       SG_CHUNK_LEAF;
}

static bool take_in(struct sg_tx *tx, u64 chunk, unsigned int from, unsigned int need,
		    unsigned int want, u64 *off, u64 *got)
{
	unsigned int start = 0, n;
	struct map m;
	bool kept;

	if (!chunk_enter(tx, chunk, &kept))
		return false;
	chunk_load_good(tx, chunk, &m);
	n = find_run(&m, from, need, want, &start);
	if (!n) {
		if (!kept)	/* clears a false hint for other allocators */
			sg_chunk_release(tx, chunk_lock(tx->vol, chunk));
		return false;
	}
	chunk_keep(tx, chunk, kept);
	alloc_mark(tx, chunk, start, n, true);
	sg_tx_fresh(tx);
	tx->free_pages -= n;
	sg_count(&tx->stat.pages_allocated, n);
	*off = (chunk << SG_CHUNK_SHIFT) + (u64)start * SG_PAGE;
	*got = n;
	return true;
}

/* --- allocate ------------------------------------------------------------------------------- */

static struct sg_cursor *cursor(struct sg_tx *tx, enum sg_use use)
{
	struct sg_vol *vol = tx->vol;

	return &vol->cursor[(sg_cpu() * 2 + use) % SG_ARRAY_SIZE(vol->cursor)];
}

/*
 * Returns where a search begins: spreads systems and CPUs over the volume, and separates data from
 * metadata.
 */
static u64 first_cursor(const struct sg_vol *vol, enum sg_use use)
{
	u64 key = (u64)vol->slot * 32 + (sg_cpu() & 15) * 2 + use;

	return key * 0x9e3779b97f4a7c15ULL % sg_chunks(vol);
}

/*
 * Reports whether a check of all chunks may continue, as sg_turn() does for other loops. False:
 * tx->err has the reason.
 */
static bool alloc_go_on(struct sg_tx *tx, u64 *turns)
{
	int err = sg_turn(turns);

	if (err)
		sg_tx_fail(tx, err);
	return !err;
}

static bool take_hinted(struct sg_tx *tx, enum sg_use use, u64 from, unsigned int want, u64 *off,
			u64 *got)
{
	u64 chunks = sg_chunks(tx->vol), c = from, limit = chunks, turns = 0;
	unsigned int pass;

	for (pass = 0; pass < 2; pass++, c = 0, limit = from) {
		while ((c = next_hinted(tx->vol, HINT_ROOM, c)) < limit) {
			if (take_in(tx, c, 0, 1, want, off, got)) {
				sg_store64(&cursor(tx, use)->next, c + 1);
				return true;
			}
			if (!alloc_go_on(tx, &turns))
				return false;
			c++;
		}
	}
	return false;
}

/**
 * struct found - the best chunks of a search for a run
 * @fullest: the chunk with the fewest free pages among those with a long enough run; @free: their
 *   number, SG_CHUNK_PAGES: there is none
 * @longest: the chunk with the longest run, of @run pages
 */
struct found {
	u64 fullest, longest;
	unsigned int free, run;
};

/* Notes a chunk that has pages in use. Returns whether it has a long enough run. */
static bool note_chunk(const struct sg_tx *tx, struct found *f, u64 chunk, unsigned int need)
{
	unsigned int run, free;
	struct map m;

	if (is_for_leaf(tx->vol, chunk))
		return false;
	map_look(tx->vol, chunk, &m);
	run = longest_run(&m);
	if (!run || sg_is_locked(tx->vol, chunk_lock(tx->vol, chunk)))
		return false;
	if (run > f->run) {
		f->run = run;
		f->longest = chunk;
	}
	free = free_in(&m);
	if (2 * run <= need || free >= f->free)
		return 2 * run > need;
	f->free = free;
	f->fullest = chunk;
	return true;
}

/*
 * Searches a limited number of chunks that are partly in use for a run of @need pages, without
 * their locks. Of those with such a run, the function chooses the fullest. So small runs gather in
 * few chunks, and other chunks become empty when their files are removed: only an empty chunk can
 * become a large leaf. After a vain search, the next search is shorter, and begins where this one
 * ended.
 */
static struct found search_used(struct sg_tx *tx, struct sg_cursor *at, u64 from, unsigned int need)
{
	u64 vain = SG_MIN(sg_load64(&at->vain), (u64)VAIN_MAX), c = from;
	struct found f = { .free = SG_CHUNK_PAGES };
	unsigned int left = SEARCH >> vain, good = 0;
	bool around = false;

	for (; left && good < GOOD; left--, c++) {
		c = next_hinted(tx->vol, HINT_USED, c);
		if (c >= sg_chunks(tx->vol) && !around) {
			around = true;
			c = next_hinted(tx->vol, HINT_USED, 0);
		}
		if (c >= (around ? from : sg_chunks(tx->vol)))
			break;
		good += note_chunk(tx, &f, c, need);
	}
	sg_store64(&at->vain, good ? 0 : vain + 1);
	if (!good)
		sg_store64(&at->next, SG_MIN(c, sg_chunks(tx->vol) - 1) + 1);
	return f;
}

/* Takes pages of an empty chunk, which is for small runs or for a large leaf from now on. */
static bool take_new(struct sg_tx *tx, u64 chunk, u64 use, unsigned int need, unsigned int want,
		     u64 *off, u64 *got)
{
	u64 at = sg_chunk_off(tx->vol, chunk) + offsetof(struct sg_chunk, use);

	if (!take_in(tx, chunk, 0, need, want, off, got))
		return false;
	if (sg_get(tx->vol, at) != use)
		sg_store64(sg_at(tx->vol, at), use);
	return true;
}

static bool take_and_stay(struct sg_tx *tx, struct sg_cursor *at, u64 chunk, unsigned int need,
			  unsigned int want, u64 *off, u64 *got)
{
	if (chunk >= sg_chunks(tx->vol) || !take_in(tx, chunk, 0, need, want, off, got))
		return false;
	sg_store64(&at->next, chunk + 1);
	return true;
}

/*
 * Tries first the chunk from which this system took its last pages. Where most chunks are empty, a
 * new one follows, so that systems and processors use different chunks. Elsewhere an empty chunk is
 * the last choice before a shorter run.
 */
static bool take_long(struct sg_tx *tx, enum sg_use use, u64 from, unsigned int need,
		      unsigned int want, u64 *off, u64 *got)
{
	struct sg_cursor *at = cursor(tx, use);
	struct found f = { .free = SG_CHUNK_PAGES };
	u64 empty;

	if (is_used(tx->vol, from) && !is_for_leaf(tx->vol, from) &&
	    take_and_stay(tx, at, from, need, want, off, got)) {
		sg_store64(&at->vain, 0);
		return true;
	}
	empty = next_hinted(tx->vol, HINT_EMPTY, from);
	if (empty >= sg_chunks(tx->vol))
		empty = next_hinted(tx->vol, HINT_EMPTY, 0);
	if (!is_young(tx->vol, empty))
		f = search_used(tx, at, from, need);
	if (f.free < SG_CHUNK_PAGES && take_and_stay(tx, at, f.fullest, need, want, off, got))
		return true;
	if (f.run >= ENOUGH &&
	    take_and_stay(tx, at, f.longest, SG_MIN(f.run, need), want, off, got))
		return true;
	if (empty < sg_chunks(tx->vol) && take_new(tx, empty, SG_CHUNK_ANY, need, want, off, got)) {
		sg_store64(&at->next, empty + 1);
		return true;
	}
	return f.run && take_in(tx, f.longest, 0, SG_MIN(f.run, need), want, off, got);
}

/*
 * Completes missing hints before it returns without a chunk, so that the next allocation need not
 * check all chunks again.
 */
static bool take_promised(struct sg_tx *tx, enum sg_use use, u64 from, unsigned int big,
			  unsigned int want, u64 *off, u64 *got)
{
	do {
		if (take_long(tx, use, from, big, want, off, got) ||
		    take_hinted(tx, use, from, want, off, got))
			return true;
	} while (!tx->err && sg_space_mend_hints(tx->vol));
	return false;
}

/*
 * Checks all chunks when there is no hint, and sets missing hints. *busy: the lock of a chunk that
 * has room, or 0.
 */
static bool take_anywhere(struct sg_tx *tx, unsigned int want, u64 *off, u64 *got, u64 *busy)
{
	u64 c, turns = 0;

	*busy = 0;
	for (c = 0; c < sg_chunks(tx->vol) && alloc_go_on(tx, &turns); c++) {
		u64 all = ~0ULL;
		unsigned int i;
		struct map m;

		map_look(tx->vol, c, &m);
		for (i = 0; i < MAP_WORDS; i++)
			all &= m.w[i];
		if (all == ~0ULL)
			continue;
		hint_set(tx->vol, HINT_ROOM, c, true);
		if (take_in(tx, c, 0, 1, want, off, got))
			return true;
		if (has_place(tx) && !holds(tx, chunk_lock(tx->vol, c)))
			*busy = chunk_lock(tx->vol, c);
	}
	return false;
}

/*
 * Waits when the only chunks with room are locked; usually their holders are about to commit. It
 * polls only one of these chunks, until the chunk's lock is free or the time @until is reached.
 */
static void await_chunk(struct sg_tx *tx, u64 lock, u64 until)
{
	do {
		if (sg_interrupted())
			sg_tx_fail(tx, -EINTR);
		if (tx->err || sg_ticks() >= until)
			return;
		sg_yield();
	} while (sg_is_locked(tx->vol, lock));
}

/* Returns the result of a wait for a chunk's lock, which ended with @err. */
static int room_waited(struct sg_vol *vol, u64 lock, int err)
{
	if (err == -EINTR && vol->room_locked)
		vol->room_locked(vol, lock);
	return err;
}

int sg_wait_room(struct sg_vol *vol, u64 lock, u64 ns)
{
	int err = room_waited(vol, lock, sg_lock_for(vol, lock, ns));

	if (!err)
		sg_unlock(vol, lock);
	return err == -EBUSY ? -ENOSPC : err;
}

/*
 * Waits for a chunk that has been locked for a while, by a system that is paused or dead. Only a
 * transaction without a chunk may wait.
 */
static bool lock_chunk(struct sg_tx *tx, u64 lock)
{
	int err = room_waited(tx->vol, lock, sg_lock_for(tx->vol, lock, BUSY_SLICE_NS));

	if (!err) {
		sg_tx_keep_lock(tx, lock, sg_chunk_release);
		tx->holds_chunk = true;
	} else if (err != -EBUSY) {
		sg_tx_fail(tx, err);
	}
	return !err;
}

static u64 busy_limit(const struct sg_tx *tx)
{
	if (tx->hasty)
		return BUSY_NS;
	return tx->holds_chunk ? BUSY_HELD_NS : BUSY_LOCK_NS;
}

/*
 * Checks all chunks when there is no hint. If a chunk with room is busy, the function waits, and
 * checks all chunks again when the chunk's lock is free, or after a while. Another chunk may have
 * room then. The wait is limited, because the caller holds an inode for which other threads wait.
 */
static bool take_last(struct sg_tx *tx, unsigned int want, u64 *off, u64 *got)
{
	u64 start = sg_ticks(), now, busy;

	for (;;) {
		bool taken = take_anywhere(tx, want, off, got, &busy);

		tx->room_in = taken ? 0 : busy;
		now = sg_ticks();
		if (!busy || tx->err || taken || now - start >= busy_limit(tx))
			return taken;
		if (tx->holds_chunk)
			await_chunk(tx, busy, start + BUSY_HELD_NS);
		else if (now - start < BUSY_NS)
			await_chunk(tx, busy, start + BUSY_NS);
		else if (lock_chunk(tx, busy))
			start = now;
	}
}

int sg_try_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 pages, u64 *off, u64 *got)
{
	unsigned int want = (unsigned int)SG_MIN(pages, (u64)SG_CHUNK_PAGES);
	unsigned int near = SG_MIN(want, 16u), big = SG_MIN(want, 256u);
	u64 from = sg_load64(&cursor(tx, use)->next);

	if (tx->err)
		return tx->err;
	if (goal && goal >> SG_CHUNK_SHIFT < sg_chunks(tx->vol) &&
	    take_in(tx, goal >> SG_CHUNK_SHIFT,
		    (unsigned int)(goal >> SG_PAGE_SHIFT) & (SG_CHUNK_PAGES - 1), near, want, off,
		    got))
		return 0;
	from = from ? (from - 1) % sg_chunks(tx->vol) : first_cursor(tx->vol, use);
	if (take_promised(tx, use, from, big, want, off, got) || take_last(tx, want, off, got))
		return 0;
	return tx->err ?: -ENOSPC;
}

int sg_take_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 pages, u64 *off, u64 *got)
{
	int err = sg_try_run(tx, use, goal, pages, off, got);

	if (err)
		sg_tx_fail(tx, err);
	return err ? tx->err : 0;
}

int sg_take_page(struct sg_tx *tx, enum sg_use use, u64 *off)
{
	u64 got;

	return sg_take_run(tx, use, 0, 1, off, &got);
}

static bool take_empty(struct sg_tx *tx, u64 from, u64 *off)
{
	u64 chunks = sg_chunks(tx->vol), c = from, limit = chunks, turns = 0, got;
	unsigned int pass;

	for (pass = 0; pass < 2; pass++, c = 0, limit = from) {
		while ((c = next_hinted(tx->vol, HINT_EMPTY, c)) < limit) {
			if (take_new(tx, c, SG_CHUNK_LEAF, SG_CHUNK_PAGES, SG_CHUNK_PAGES, off,
				     &got))
				return true;
			if (!alloc_go_on(tx, &turns))
				return false;
			c++;
		}
	}
	return false;
}

int sg_take_chunk(struct sg_tx *tx, u64 goal, u64 *off)
{
	u64 chunks = sg_chunks(tx->vol), from = goal >> SG_CHUNK_SHIFT;

	if (tx->err)
		return tx->err;
	if (!from || from >= chunks)
		from = (sg_load64(&cursor(tx, SG_USE_DATA)->next) ?:
			first_cursor(tx->vol, SG_USE_DATA)) % chunks;
	do {
		if (take_empty(tx, from, off))
			return 0;
	} while (!tx->err && sg_space_mend_hints(tx->vol));
	return tx->err ?: -ENOSPC;
}

/* --- free ----------------------------------------------------------------------------------- */

static bool all_used(const struct map *m, unsigned int start, unsigned int n)
{
	return next_bit(m, start, false) >= start + n;
}

bool sg_give_run(struct sg_tx *tx, u64 off, u64 pages)
{
	u64 chunk = off >> SG_CHUNK_SHIFT;
	unsigned int start = (unsigned int)(off >> SG_PAGE_SHIFT) & (SG_CHUNK_PAGES - 1);
	struct map m;
	bool kept;

	if (tx->err)
		return false;
	if (!pages || !sg_data_range(tx->vol, off, pages) || start + pages > SG_CHUNK_PAGES) {
		sg_tx_fail(tx, sg_damaged(tx->vol, 0, off, "pages to free are out of bounds"));
		return false;
	}
	if (!chunk_enter(tx, chunk, &kept)) {
		tx->busy = chunk_lock(tx->vol, chunk);
		return false;
	}
	chunk_keep(tx, chunk, kept);
	chunk_load(tx, chunk, &m);
	if (!all_used(&m, start, (unsigned int)pages)) {
		sg_tx_fail(tx, sg_damaged(tx->vol, 0, off, "pages to free are free already"));
		return false;
	}
	alloc_mark(tx, chunk, start, (unsigned int)pages, false);
	tx->free_pages += (s64)pages;
	sg_count(&tx->stat.pages_freed, pages);
	return true;
}

bool sg_give_or_defer(struct sg_tx *tx, u64 off, u64 pages)
{
	if (sg_give_run(tx, off, pages))
		return true;
	if (tx->err || !tx->pass_over || sg_ledger_room(tx->vol) < PASS_ROOM ||
	    sg_tx_room(tx) < PASS_WORDS)
		return false;
	sg_defer_run(tx, off, pages);
	return !tx->err;
}

/* --- counting ------------------------------------------------------------------------------- */

static u64 sum_areas(const struct sg_vol *vol, u64 field)
{
	unsigned int slot, i;
	u64 sum = 0;

	for (slot = 0; slot < SG_SLOTS; slot++)
		for (i = 0; i < vol->sb.areas; i++)
			sum += sg_get(vol, sg_area_off(vol, slot, i) + field);
	return sum;
}

u64 sg_free_pages(const struct sg_vol *vol)
{
	return vol->sb.free_base + sum_areas(vol, offsetof(struct sg_area, free_pages));
}

u64 sg_used_inodes(const struct sg_vol *vol)
{
	return sum_areas(vol, offsetof(struct sg_area, used_inodes));
}

u64 sg_largest_free(const struct sg_vol *vol)
{
	u64 c, run = 0, best = 0, turns = 0;

	for (c = 0; c < sg_chunks(vol); c++) {
		unsigned int at = 0;
		struct map m;

		/*
		 * the thread is being killed, or the system has stopped, so no caller needs the
		 * result
		 */
		if (sg_turn(&turns) || sg_has_stopped(vol))
			break;
		map_look(vol, c, &m);
		while (at < SG_CHUNK_PAGES) {
			unsigned int end = next_bit(&m, at, true);

			run += end - at;
			best = SG_MAX(best, run);
			if (end == SG_CHUNK_PAGES)
				break;
			run = 0;
			at = next_bit(&m, end, false);
		}
	}
	return best;
}
