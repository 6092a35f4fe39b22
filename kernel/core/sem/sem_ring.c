// SPDX-License-Identifier: GPL-2.0
/*
 * Rings: named objects with data (docs/channels.md). Processes that have mapped a ring send and
 * receive without the engine (uapi/ringword.h). The engine makes and removes the data, and gives
 * cells to readers. It lets processes wait for a part of the ring as for an object, and ends the
 * claims of dead readers.
 *
 * A process that has mapped a ring can forge any word of its page. The engine never uses them as an
 * address or a bound: positions only determine which claims count as lost.
 */
#include "sem/sem.h"

static u64 *ring_word(const struct sg_vol *vol, const struct sg_sem *ring, unsigned int i)
{
	return (u64 *)sg_at(vol, ring->words) + i;
}

static struct sg_sem_side *ring_side(const struct sg_vol *vol, const struct sg_sem *ring)
{
	return sg_at(vol, ring->side);
}

/* --- the feature ------------------------------------------------------------------------------ */

/* Older software would remove a ring without its data. */
int sg_sem_ring_allow(struct sg_vol *vol)
{
	return sg_feature_allow(vol, SG_RO_COMPAT_RINGS);
}

/* --- data ------------------------------------------------------------------------------------- */

/*
 * Makes the ring's pages. Damage may have left pages there without an object; the function zeroes
 * and reuses them.
 */
int sg_sem_ring_fill(struct sg_vol *vol, const struct sg_sem_spot *s, u64 size)
{
	const struct sg_iref file = sg_sem_file();
	u64 page = sg_sem_ring_page(s->page, s->i), end = page + (size >> SG_PAGE_SHIFT), n;
	struct sg_run run;
	int err = 0;

	for (; page < end && !err; page += n) {
		err = sg_walk(vol, &file, page, end - page, &run);
		n = run.pages;
		if (!err && run.off)
			sg_fresh_zero(vol, run.off, run.pages << SG_PAGE_SHIFT);
		else if (!err)
			err = sg_allocate_some(vol, &file, page, run.pages, &n);
		if (!err && sg_interrupted())
			err = -EINTR;
		sg_epoch_acknowledge(vol);
	}
	return err;
}

int sg_sem_ring_cut(struct sg_vol *vol, const struct sg_sem_spot *s, bool try)
{
	const struct sg_iref file = sg_sem_file();
	u64 page = sg_sem_ring_page(s->page, s->i), end = page + SG_RING_PAGES_MAX, next;
	struct sg_tx *tx;
	int err = 0;

	for (; page < end && !err; page = next) {
		tx = sg_sem_tx_begin(vol, try);
		if (!tx)
			return -EBUSY;
		sg_table_cut(tx, &file, page, end, &next);
		if (next == page)
			sg_tx_fail(tx, -ENOSPC);	/* the ledger is full */
		err = sg_sem_tx_commit(tx);
	}
	return err;
}

int sg_sem_ring_find(struct sg_vol *vol, const struct sg_sem_spot *s, struct sg_sem *out)
{
	const struct sg_iref file = sg_sem_file();
	u64 size = sg_get(vol, SG_SEM_FIELD(s, initial)), page, end;
	struct sg_run run;
	int err = 0;

	if (!sg_sem_ring_size_fits(size))
		return sg_damaged(vol, 0, s->off, "the size of a ring");
	out->size = size;
	out->data = sg_sem_ring_page(s->page, s->i);
	end = out->data + (size >> SG_PAGE_SHIFT);
	if (out->flags & SG_SEM_REMOVED)
		/* the ring may have only a part of its data, but no program can open it any more */
		return 0;
	for (page = out->data; page < end && !err; page += run.pages) {
		err = sg_walk(vol, &file, page, end - page, &run);
		if (!err && !run.off)
			err = sg_damaged(vol, 0, s->off, "a ring without its data");
	}
	return err;
}

u64 sg_sem_ring_at(const struct sg_vol *vol, const struct sg_sem *ring, u64 i)
{
	u64 off = 0;
	int err;

	if (ring->type == SG_SEM_RING && i < ring->size >> SG_PAGE_SHIFT)
		off = sg_sem_page_at(vol, ring->data + i, &err);
	return off;
}

void sg_sem_ring_write_back(struct sg_vol *vol, const struct sg_sem *sem)
{
	const struct sg_iref file = sg_sem_file();
	u64 page = sem->data, end = page + (sem->size >> SG_PAGE_SHIFT);
	struct sg_run run;

	for (; page < end; page += run.pages) {
		if (sg_walk(vol, &file, page, end - page, &run))
			return;
		if (run.off)
			sg_wb(sg_at(vol, run.off), run.pages << SG_PAGE_SHIFT);
	}
	sg_wb(sg_at(vol, sem->words), SG_PAGE);
	sg_wb(sg_at(vol, sem->side), SG_PAGE);
}

/* --- parts ------------------------------------------------------------------------------------ */

int sg_sem_ring_part(const struct sg_sem *ring, unsigned int part, struct sg_sem *out)
{
	if (ring->type != SG_SEM_RING || part >= SG_RING_PARTS)
		return -EINVAL;
	*out = *ring;
	out->type = part == SG_RING_LOCK ? SG_SEM_MUTEX : SG_SEM_EVENT;
	out->words += 8 * SG_RING_WORD(part);
	if (part != SG_RING_LOCK)
		out->waits = ring->rec + offsetof(struct sg_sem_record, part) +
			     (part - 1) * sizeof(struct sg_sem_waits);
	return 0;
}

/* Wakes a writer that waits for room, so that it checks again. */
static void ring_more_room(struct sg_vol *vol, const struct sg_sem *ring)
{
	struct sg_sem room;

	sg_sem_ring_part(ring, SG_RING_ROOM, &room);
	sg_sem_advance(vol, &room, 1);
}

u64 sg_sem_ring_used(struct sg_vol *vol, const struct sg_sem *sem)
{
	u64 tail = sg_load64(ring_word(vol, sem, SG_RING_WORD(SG_RING_TAIL))) & SG_SEMW_COUNT;
	u64 head = SG_RING_HEAD_POS(sg_load64(ring_word(vol, sem, SG_RING_HEAD)));

	/* both words may be forged, and they are not loaded at the same time */
	return tail < head ? 0 : SG_MIN((tail - head) * SG_RING_GRAIN, sem->size);
}

u64 sg_sem_ring_tail(const struct sg_vol *vol, const struct sg_sem *ring)
{
	return sg_load64_acquire(ring_word(vol, ring, SG_RING_WORD(SG_RING_TAIL))) & SG_SEMW_COUNT;
}

bool sg_sem_ring_has_record(const struct sg_vol *vol, const struct sg_sem *ring)
{
	u64 tail = sg_sem_ring_tail(vol, ring);
	u64 head = sg_load64_acquire(ring_word(vol, ring, SG_RING_HEAD));

	return tail != SG_RING_HEAD_POS(head);
}

/*
 * Reports whether there is room, as a writer finds it (ringword.h): loads the head first, then the
 * cells. It ignores a cell of a dead system, because the next sender sweeps that cell.
 */
bool sg_sem_ring_has_room(const struct sg_vol *vol, const struct sg_sem *ring)
{
	u64 tail = sg_sem_ring_tail(vol, ring);
	u64 low = SG_RING_HEAD_POS(sg_load64_acquire(ring_word(vol, ring, SG_RING_HEAD)));
	u64 freed = sg_load64(ring_word(vol, ring, SG_RING_FREED)), cell;
	const struct sg_sem_side *side = ring_side(vol, ring);
	unsigned int i;

	if (freed > low)
		freed = 0;
	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++) {
		cell = sg_load64_acquire(ring_word(vol, ring, i));
		if (cell && SG_RING_CELL_POS(cell) >= freed &&
		    sg_sem_cell_counts(vol, sg_load64(&side->own[i])))
			low = SG_MIN(low, SG_RING_CELL_POS(cell));
	}
	/* words are forged: wakes a sender, which then gets an error */
	return low > tail || tail - low > ring->size / SG_RING_GRAIN ||
	       tail - low <= ring->size / SG_RING_GRAIN / 2;
}

/* --- claims ----------------------------------------------------------------------------------- */

/*
 * Reports whether the reader of cell @i claimed the record at that position. If that reader only
 * tried, another reader may have been first. The head names the cell of its last claim. The reader
 * that claims the next record first sets that cell to CLAIMED (ringword.h).
 */
static bool ring_was_claimed(u64 head, u64 cell, unsigned int i)
{
	if (SG_RING_CELL_POS(cell) >= SG_RING_HEAD_POS(head))
		return false;
	return cell & SG_RING_CLAIMED || SG_RING_HEAD_CELL(head) == i;
}

/*
 * Ends the claim of a cell whose owner is dead. Returns false if a process of a fenced system may
 * still store there.
 */
static bool ring_end_claim(struct sg_vol *vol, const struct sg_sem *ring, unsigned int i)
{
	u64 *at = ring_word(vol, ring, i), head, cell;

	/* if another reader sets this cell to CLAIMED meanwhile, the swap below fails */
	head = sg_load64_acquire(ring_word(vol, ring, SG_RING_HEAD));
	cell = sg_load64_acquire(at);
	if (cell && sg_cas64(at, cell, 0) != cell)
		return false;
	if (cell && ring_was_claimed(head, cell, i))
		sg_add64(&ring_side(vol, ring)->own[SG_RING_LOST_AT], 1);
	return true;
}

void sg_sem_ring_give_cell(struct sg_vol *vol, struct sg_sem *sem)
{
	unsigned int i = sem->cell;

	if (i < SG_SEM_CELL_FIRST || i >= SG_SEM_CELLS)
		return;
	/*
	 * the dead reader's mapping is gone, so only another reader can change the cell in between,
	 * and only once
	 */
	if (!ring_end_claim(vol, sem, i))
		ring_end_claim(vol, sem, i);
	sg_store64_release(&ring_side(vol, sem)->own[i], 0);
	sem->cell = 0;
	ring_more_room(vol, sem);
}

/* Ends the claims of dead readers. The file is locked, so no cell gets an owner meanwhile. */
static bool ring_sweep_locked(struct sg_vol *vol, const struct sg_sem *ring)
{
	struct sg_sem_side *side = ring_side(vol, ring);
	bool any = false;
	unsigned int i;

	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++)
		if (sg_load64(ring_word(vol, ring, i)) &&
		    !sg_sem_cell_counts(vol, sg_load64(&side->own[i])))
			any |= ring_end_claim(vol, ring, i);
	return any;
}

/*
 * Locks the file. Returns -EBUSY if the lock was not free within this time; the time 0 means a very
 * short wait.
 */
static int ring_lock_file(struct sg_vol *vol, const struct sg_sem *ring, u64 ns)
{
	const struct sg_iref file = sg_sem_file();
	u64 lock = SG_IOFF(&file, lock);
	int err;

	if (ring->type != SG_SEM_RING)
		return -EINVAL;
	if (!sg_sem_usable(vol, ring))
		return -EIO;
	err = sg_may_write(vol) ?: ns ? sg_lock_for(vol, lock, ns) : sg_lock_brief(vol, lock);
	if (err)
		return err;
	err = sg_may_change(vol, &file);
	if (err)
		sg_iunlock(vol, &file);
	return err;
}

int sg_sem_ring_sweep(struct sg_vol *vol, const struct sg_sem *ring)
{
	struct sg_sem_side *side;
	unsigned int i;
	bool any;
	int err;

	if (ring->type != SG_SEM_RING)
		return -EINVAL;
	if (!sg_sem_usable(vol, ring))
		return -EIO;
	side = ring_side(vol, ring);
	/* first recovers systems that died with claims, because their claims count until then */
	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++)
		if (sg_load64(ring_word(vol, ring, i)))
			sg_help(vol, sg_load64(&side->own[i]));
	err = ring_lock_file(vol, ring, 0);
	if (err)
		return err == -EBUSY ? 0 : err;
	any = ring_sweep_locked(vol, ring);
	sg_sem_end(vol);
	if (any)
		ring_more_room(vol, ring);
	return 0;
}

/*
 * Finds a free cell. The first readers get cells in separate cache lines. *taken: some cell has a
 * reader, or may have one.
 */
static unsigned int ring_free_cell(const struct sg_vol *vol, const struct sg_sem *ring, bool *taken)
{
	const unsigned int lines = (SG_SEM_CELLS - SG_SEM_CELL_FIRST) / 8;
	const struct sg_sem_side *side = ring_side(vol, ring);
	unsigned int n, found = 0;

	*taken = false;
	for (n = 0; n < 8 * lines; n++) {
		unsigned int i = SG_SEM_CELL_FIRST + n % lines * 8 + n / lines;
		u64 own = sg_load64(&side->own[i]);

		if (sg_sem_cell_counts(vol, own) || sg_sem_cell_lapses(vol, own))
			*taken = true;
		else if (!found)
			found = i;
	}
	return found;
}

int sg_sem_ring_reader(struct sg_vol *vol, struct sg_sem *ring, u64 until)
{
	u64 now = sg_ticks();
	unsigned int i;
	bool taken;
	int err;

	if (ring->type == SG_SEM_RING && ring->cell)
		return 0;
	err = sg_sem_ring_sweep(vol, ring) ?:
	      ring_lock_file(vol, ring, until > now ? until - now : 0);
	if (err)
		return err != -EBUSY ? err : until ? -ETIMEDOUT : -EAGAIN;
	i = ring_free_cell(vol, ring, &taken);
	if (taken && ring->flags & SG_SEM_SINGLE)
		err = -EBUSY;
	else if (!i)
		err = -EUSERS;
	if (!err) {
		sg_store64(ring_word(vol, ring, i), 0);
		sg_store64_release(&ring_side(vol, ring)->own[i],
				   SG_LOCK_WORD(vol->slot, vol->incarnation));
		ring->cell = i;
	}
	sg_sem_end(vol);
	return err;
}

/* --- reset ------------------------------------------------------------------------------------ */

/*
 * Resets a ring. Positions continue, so that no old bytes look like a record. If the positions are
 * not possible, they start again at 0.
 */
void sg_sem_ring_reset(struct sg_vol *vol, const struct sg_sem *sem, bool force)
{
	u64 *tail = ring_word(vol, sem, SG_RING_WORD(SG_RING_TAIL));
	u64 *lock = ring_word(vol, sem, SG_RING_WORD(SG_RING_LOCK));
	u64 *room = ring_word(vol, sem, SG_RING_WORD(SG_RING_ROOM));
	u64 word = sg_load64(lock), flags = force ? SG_SEMW_WAITERS | SG_SEMW_ASKED : 0;
	u64 pos = sg_load64(tail) & SG_SEMW_COUNT, stays = SG_SEMW_DIED;
	unsigned int i;

	if (pos > SG_RING_POS_MAX - (1ULL << 48))
		pos = 0;
	if (word & SG_SEMW_OWNER)
		word |= SG_SEMW_DIED;
	if (sg_sem_owner_may_store(vol, sem, word))
		stays |= SG_SEMW_OWNER;
	sg_store64(lock, force ? 0 : word & stays);
	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++)
		if (sg_load64(ring_word(vol, sem, i)) && !ring_end_claim(vol, sem, i))
			sg_store64(ring_word(vol, sem, i), 0);
	sg_store64(ring_word(vol, sem, SG_RING_FREED), pos);
	sg_store64(room, ((sg_load64(room) + 1) & SG_SEMW_COUNT) | (sg_load64(room) & flags));
	sg_store64(tail, pos | (sg_load64(tail) & flags));
	sg_store64_release(ring_word(vol, sem, SG_RING_HEAD), SG_RING_HEAD_AT(pos, 0));
}
