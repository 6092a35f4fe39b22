// SPDX-License-Identifier: GPL-2.0
/*
 * Transactions (D8): redo journal in words.
 *
 * A commit has four steps; each is durable before the next begins:
 *   1. the words, then head and crc, in the area; fresh pages were written back before
 *   2. the words in place; changed inodes have an odd seq meanwhile, also during replay. A record
 *      may have a log, too: bytes of a file, stored in place before the words (data/redo.c)
 *   3. head = 0
 *   4. locks are released
 * After a crash before the end of step 1, nothing of the change exists (the crc is wrong). After a
 * later crash, replay completes the change; a replay can be repeated. head = 0 is durable before
 * locks are free, so no replay can undo a store of a later transaction.
 */
#include "internal.h"

#define RESERVE	(2 + SG_TX_INODES)	/* words that the commit adds */
#define LINE	64			/* bytes of a cache line */
#define TRIES	20			/* attempts of sg_tx_try() */
#define TRY_US	50u
#define STILL_US	500	/* between checks for the end of a freeze */

static u64 area_field(const struct sg_tx *tx, u64 field)
{
	return tx->area + field;
}

/*
 * Begins a turn of an area. The area's lock excludes other threads, unless this system has been
 * fenced. Then locks exclude no thread, but still only one may use the area. The swap is a full
 * barrier. If the acknowledging thread (epoch.c) sees no turn in progress, a transaction that
 * begins later defers nothing with an earlier epoch.
 */
static void begin_turn(struct sg_tx *tx)
{
	u64 turn = sg_load64(&tx->turn);

	while (turn & 1 || sg_cas64(&tx->turn, turn, turn + 1) != turn) {
		sg_sleep_us(10);
		turn = sg_load64(&tx->turn);
	}
}

/*
 * An index entry has the round in the upper bits, and the number of the word in the lowest eight.
 */
static void next_round(struct sg_tx *tx)
{
	tx->round += 1u << 8;
	if (tx->round)
		return;
	memset(tx->index, 0, sizeof(tx->index));	/* no transaction has round 0 */
	tx->round = 1u << 8;
}

/*
 * Begins a transaction in an area. @err: this thread does not have the area's lock, because it is
 * being killed, or the system is leaving. The transaction then has no effect, and uses separate
 * memory. So it does not disturb the holder of the area, which may wait without end for a paused
 * system.
 */
static struct sg_tx *area_taken(struct sg_vol *vol, unsigned int i, u64 off, int err)
{
	struct sg_tx *spare = err ? sg_alloc(sizeof(*spare)) : NULL, *tx = spare ?: &vol->tx[i];

	begin_turn(tx);
	tx->spare = spare;
	tx->vol = vol;
	tx->area = off;
	tx->a = sg_at(vol, off);
	tx->locked = !err;
	tx->err = sg_may_write(vol) ?: err;
	tx->n = 0;
	next_round(tx);
	tx->free_pages = 0;
	tx->used_inodes = 0;
	tx->nlocks = 0;
	tx->most_locks = SG_TX_LOCKS_USUAL;
	tx->ninodes = 0;
	tx->ndeferred = 0;
	tx->npaid = 0;
	tx->kept = NULL;
	tx->holds_chunk = false;
	tx->busy = 0;
	tx->hasty = false;
	tx->room_in = 0;
	tx->pass_over = false;
	tx->plain = tx->fresh = false;
	tx->split = 0;
	tx->redo = NULL;
	tx->nlog = 0;
	/* a fenced system does not have the area: another system may use it */
	SG_ASSERT(tx->err || !sg_load64(&tx->a->head));
	return tx;
}

static u64 area_lock(const struct sg_vol *vol, unsigned int k)
{
	return sg_area_off(vol, (unsigned int)vol->slot, k) + offsetof(struct sg_area, lock);
}

/* Locks the first free area from @k on. */
static bool try_areas(struct sg_vol *vol, unsigned int *k)
{
	unsigned int i;

	for (i = 0; i < vol->sb.areas; i++) {
		if (sg_trylock(vol, area_lock(vol, *k)))
			return true;
		*k = (*k + 1) % vol->sb.areas;
	}
	return false;
}

#define AREA_NS		10000000ULL	/* for one area, then the next: doubled each time, up to */
#define AREA_MOST_NS	2000000000ULL	/* this, so that a stray lock word is found */
#define AREA_HURRY_NS	10000000000ULL	/* for a system that is about to leave */

/*
 * Waits until an area is free. The thread waits for each area in turn, because the holder of one
 * may be another system that searches for free records, and is paused.
 */
static int wait_areas(struct sg_vol *vol, unsigned int *k)
{
	u64 start = sg_ticks(), ns = AREA_NS;
	int err;

	for (;; ns = SG_MIN(2 * ns, AREA_MOST_NS)) {
		err = sg_lock_for(vol, area_lock(vol, *k), ns);
		if (err != -EBUSY || (vol->hurry && sg_ticks() - start > AREA_HURRY_NS) ||
		    (vol->join_until && sg_ticks() > vol->join_until))
			return err;
		*k = (*k + 1) % vol->sb.areas;
		if (try_areas(vol, k))
			return 0;
	}
}

static struct sg_tx *take_area(struct sg_vol *vol)
{
	unsigned int k = sg_cpu() % vol->sb.areas;
	int err = try_areas(vol, &k) ? 0 : wait_areas(vol, &k);

	return area_taken(vol, k, sg_area_off(vol, (unsigned int)vol->slot, k), err);
}

/*
 * Usually threads of this system hold the areas, and end their transactions soon. So the function
 * tries a few times. If a thread of this system has already waited long for a lock, another system
 * holds that lock, and further attempts are useless.
 */
struct sg_tx *sg_tx_try(struct sg_vol *vol)
{
	struct sg_tx *tx = NULL;
	unsigned int turn, k;

	for (turn = 0; !tx && turn < TRIES && !sg_is_still(vol); turn++) {
		if (turn && sg_load64(&vol->stuck))
			break;
		if (turn)
			sg_sleep_us(TRY_US);
		k = sg_cpu() % vol->sb.areas;
		if (try_areas(vol, &k))
			tx = area_taken(vol, k, sg_area_off(vol, (unsigned int)vol->slot, k), 0);
	}
	if (tx && sg_is_still(vol)) {	/* as in tx_begin() */
		sg_tx_abort(tx);
		tx = NULL;
	}
	return tx;
}

static struct sg_tx *take_area_of(struct sg_vol *vol, int which)
{
	unsigned int k = (unsigned int)which;

	if (which < 0)
		return take_area(vol);
	return area_taken(vol, k, sg_area_off(vol, (unsigned int)vol->slot, k),
			  sg_lock(vol, area_lock(vol, k)));
}

/* Waits for the end of a freeze. -EINTR: the process is being killed, or gives way. */
static int still_wait(struct sg_vol *vol)
{
	while (sg_is_still(vol) && sg_is_ours(vol)) {
		if (sg_interrupted() || sg_wait_ends(vol))
			return -EINTR;
		if (!vol->freeze_watched)	/* no other thread checks for the end */
			vol->up->freeze_watch(vol);
		sg_sleep_us(STILL_US);
	}
	return 0;
}

/*
 * Begins a transaction, but not during a freeze (freeze.c). Either this thread sees the closed gate
 * after the barrier of begin_turn(), or the thread that closes the gate sees this turn. @which: the
 * area; -1: any.
 */
static struct sg_tx *tx_begin(struct sg_vol *vol, int which)
{
	int err = still_wait(vol);
	struct sg_tx *tx = take_area_of(vol, which);

	while (!err && !tx->err && sg_is_still(vol)) {
		sg_tx_abort(tx);
		err = still_wait(vol);
		tx = take_area_of(vol, which);
	}
	if (err)
		sg_tx_fail(tx, err);
	return tx;
}

struct sg_tx *sg_tx_begin_reclaimer(struct sg_vol *vol)
{
	return tx_begin(vol, -1);
}

struct sg_tx *sg_tx_begin_in(struct sg_vol *vol, unsigned int area)
{
	return tx_begin(vol, (int)area);
}

struct sg_tx *sg_tx_begin(struct sg_vol *vol)
{
	if (sg_ledger_is_tight(vol))
		vol->up->reclaim(vol, 64);
	if (sg_ledger_is_full(vol))
		vol->up->grow_ledger(vol);
	return sg_tx_begin_reclaimer(vol);
}

/*
 * Returns the index entry of @off, or the free entry for it. Some entries are always unused.
 */
static u32 *tx_find(struct sg_tx *tx, u64 off)
{
	u32 at = (u32)(off >> 3 ^ off >> 12), *e;

	for (;; at++) {
		e = &tx->index[at % SG_TX_INDEX];
		if ((*e ^ tx->round) >> 8 || sg_load64(&tx->a->word[*e & 255].off) == off)
			return e;
	}
}

static bool is_set(const struct sg_tx *tx, const u32 *e)
{
	return !((*e ^ tx->round) >> 8);
}

u64 sg_tx_get(struct sg_tx *tx, u64 off)
{
	const u32 *e = tx_find(tx, off);

	return is_set(tx, e) ? sg_load64(&tx->a->word[*e & 255].val) : sg_get(tx->vol, off);
}

static SG_NOINLINE bool in_copies(const struct sg_vol *vol, u64 off)
{
	return off >= sg_sys_copy_off(vol, 0) && off < sg_sys_copy_off(vol, SG_SYS_COUNT);
}

/*
 * Reports whether a transaction may store the word. Words lie between the superblock and its
 * backup, or in the copies after the backup. Each word is checked three times, so one comparison
 * covers both ends: an offset below the first one wraps.
 */
static SG_INLINE bool word_allowed(const struct sg_vol *vol, u64 off)
{
	return !(off & 7) &&
	       (off - SG_PAGE < sg_bound(vol) - 2 * SG_PAGE || in_copies(vol, off));
}

static void tx_put(struct sg_tx *tx, u64 off, u64 val)
{
	u32 *e = tx_find(tx, off);

	if (!is_set(tx, e)) {
		if (tx->n == SG_AREA_WORDS || !word_allowed(tx->vol, off)) {
			SG_ASSERT(tx->n < SG_AREA_WORDS);
			sg_tx_fail(tx, -EUCLEAN);
			return;
		}
		*e = tx->round | tx->n++;
		sg_store64(&tx->a->word[*e & 255].off, off);
	}
	sg_store64(&tx->a->word[*e & 255].val, val);
}

void sg_tx_set(struct sg_tx *tx, u64 off, u64 val)
{
	if (!tx->err)
		tx_put(tx, off, val);
}

unsigned int sg_tx_room(const struct sg_tx *tx)
{
	unsigned int used = tx->n + RESERVE;
	unsigned int words = used < SG_AREA_WORDS ? SG_AREA_WORDS - used : 0;
	unsigned int deferreds = SG_MIN(sg_ledger_room(tx->vol),
					(unsigned int)SG_ARRAY_SIZE(tx->deferred) - tx->ndeferred);

	return SG_MIN(words, 2 * deferreds);
}

unsigned int sg_tx_log_room(const struct sg_tx *tx)
{
	return tx->n + RESERVE < SG_AREA_WORDS ? SG_AREA_WORDS - tx->n - RESERVE : 0;
}

void sg_tx_inode(struct sg_tx *tx, const struct sg_iref *ref)
{
	unsigned int i;

	if (!sg_is_same(tx->vol, ref))
		sg_tx_fail(tx, -ESTALE);
	for (i = 0; i < tx->ninodes; i++)
		if (tx->inode[i] == ref->off)
			return;
	SG_ASSERT(tx->ninodes < SG_TX_INODES);
	if (tx->ninodes == SG_TX_INODES)
		sg_tx_fail(tx, -EUCLEAN);
	else
		tx->inode[tx->ninodes++] = ref->off;
}

int sg_tx_wait_lock(struct sg_tx *tx, u64 off, sg_tx_release release)
{
	int err = sg_lock(tx->vol, off);

	if (err)
		sg_tx_fail(tx, err);
	else
		sg_tx_keep_lock(tx, off, release);
	return err;
}

void sg_tx_keep_lock(struct sg_tx *tx, u64 off, sg_tx_release release)
{
	SG_ASSERT(tx->nlocks < SG_TX_LOCKS);
	tx->lock[tx->nlocks++] = (struct sg_tx_lock){ off, release };
}

static void release(struct sg_tx *tx)
{
	struct sg_vol *vol = tx->vol;
	u64 lock = area_field(tx, offsetof(struct sg_area, lock));
	bool locked;

	while (tx->nlocks) {
		const struct sg_tx_lock *kept = &tx->lock[--tx->nlocks];

		if (kept->release)
			kept->release(tx, kept->off);
		else
			sg_unlock(vol, kept->off);
	}
	if (tx->spare) {
		sg_free(tx);
		return;
	}
	locked = tx->locked;	/* after the next store the object may belong to another thread */
	sg_store64_release(&tx->turn, sg_load64(&tx->turn) + 1);
	if (locked)
		sg_unlock(vol, lock);
}

void sg_tx_abort(struct sg_tx *tx)
{
	sg_count(&tx->stat.aborts, 1);
	/*
	 * The fence completes stores to fresh pages, even those that bypass the cache, before other
	 * systems get the pages.
	 */
	sg_fence();
	sg_ledger_abort(tx);
	release(tx);
}

static u64 seq_off(u64 inode)
{
	return inode + offsetof(struct sg_inode, seq);
}

/* Adds the words of the commit: counters of the area, and change counters of the inodes. */
static void add_own_words(struct sg_tx *tx)
{
	unsigned int i;
	u64 off;

	if (tx->free_pages) {
		off = area_field(tx, offsetof(struct sg_area, free_pages));
		tx_put(tx, off, sg_get(tx->vol, off) + (u64)tx->free_pages);
	}
	if (tx->used_inodes) {
		off = area_field(tx, offsetof(struct sg_area, used_inodes));
		tx_put(tx, off, sg_get(tx->vol, off) + (u64)tx->used_inodes);
	}
	for (i = 0; i < tx->ninodes; i++)
		tx_put(tx, seq_off(tx->inode[i]), (sg_get(tx->vol, seq_off(tx->inode[i])) | 1) + 1);
}

u32 sg_area_crc(u64 head, const struct sg_word *words, unsigned int n)
{
	return sg_crc32c(sg_crc32c(~0u, &head, 8), words, n * sizeof(*words));
}

/*
 * Makes the record valid. The first fence makes fresh pages durable before that. A cache may write
 * the record back at any time, and a complete record is valid, even without a fence.
 */
static void make_valid(struct sg_tx *tx)
{
	struct sg_area *a = tx->a;
	unsigned int n = tx->n + tx->nlog;
	u64 head = SG_AREA_HEAD((u64)tx->vol->incarnation, n) | SG_AREA_SEQS(tx->ninodes) |
		   SG_AREA_LOGS(tx->nlog);

	if (!tx->plain || tx->fresh)
		sg_fence();
	sg_store64(&a->crc, sg_area_crc(head, a->word, n));
	sg_store64_release(&a->head, head);
	sg_wb(a, offsetof(struct sg_area, word) + n * sizeof(struct sg_word));
	sg_fence();
}

/*
 * Stores one word of the area in place. The word is loaded once, and checked even if this system
 * wrote it.
 */
static void store_word(struct sg_vol *vol, u64 off, u64 val)
{
	if (word_allowed(vol, off))
		sg_store64(sg_at(vol, off), val);
}

/*
 * Writes back the words. Words of one cache line are usually adjacent, so the line is written back
 * once.
 */
static void tx_write_back(struct sg_vol *vol, const struct sg_word *w, unsigned int n)
{
	u64 last = ~0ULL, off;
	unsigned int i;

	for (i = 0; i < n; i++) {
		off = sg_load64(&w[i].off);
		if (off / LINE == last || !word_allowed(vol, off))
			continue;
		sg_wb(vol->base + off, 8);
		last = off / LINE;
	}
}

static int apply(struct sg_tx *tx)
{
	struct sg_vol *vol = tx->vol;
	const struct sg_word *w = tx->a->word;
	unsigned int i, n = tx->n, seqs = n - tx->ninodes;
	int err = 0;

	for (i = 0; i < tx->ninodes; i++)
		sg_or64(sg_at(vol, seq_off(tx->inode[i])), 1);
	if (tx->redo)	/* first, because a new size must cover bytes that exist */
		err = tx->redo->apply(tx, tx->redo);
	if (err && !sg_is_ours(vol))
		return err;	/* another system has the record, and completes the change */
	for (i = 0; i < seqs; i++)
		store_word(vol, sg_load64(&w[i].off), sg_load64(&w[i].val));
	sg_release_fence();
	for (; i < n; i++)
		store_word(vol, sg_load64(&w[i].off), sg_load64(&w[i].val));
	tx_write_back(vol, w, n);
	sg_fence();
	return err;
}

static void make_invalid(struct sg_area *a)
{
	sg_store64_release(&a->head, 0);
	sg_wb(a, 8);
	sg_fence();
}

int sg_tx_commit(struct sg_tx *tx)
{
	struct sg_vol *vol = tx->vol;
	int err;

	if (!tx->err)
		add_own_words(tx);
	err = tx->err;
	if (err) {
		sg_tx_abort(tx);
		return err;
	}
	SG_ASSERT(!tx->ninodes || sg_load64(&tx->a->word[tx->n - 1].off) ==
				  seq_off(tx->inode[tx->ninodes - 1]));
	/* the last check before other systems can see a store */
	if (tx->n && !sg_is_ours(vol)) {
		err = sg_declared_dead(vol);
		sg_tx_abort(tx);
		return err;
	}
	if (tx->n) {
		if (tx->redo)
			tx->nlog = tx->redo->put(tx, tx->redo);
		make_valid(tx);
		err = apply(tx);
		if (err && !sg_is_ours(vol)) {
			err = sg_declared_dead(vol);
			sg_tx_abort(tx);
			return err;
		}
		make_invalid(tx->a);
	}
	sg_count(&tx->stat.commits, 1);
	sg_count(&tx->stat.commit_words, tx->n);
	sg_ledger_commit(tx);
	release(tx);
	return err;
}

/*
 * Returns the number of words of a valid record, 0: there is none. It trusts no byte except by the
 * checksum.
 */
static unsigned int tx_words_of(const struct sg_area *a, u64 head)
{
	unsigned int n = SG_AREA_COUNT(head);

	if (!head || n > SG_AREA_WORDS)
		return 0;
	return sg_load64(&a->crc) == sg_area_crc(head, a->word, n) ? n : 0;
}

unsigned int sg_tx_words(const struct sg_area *a, unsigned int *log)
{
	u64 head = sg_load64(&a->head);
	unsigned int n = tx_words_of(a, head);

	*log = SG_MIN(n, SG_AREA_LOG_COUNT(head));
	return n - *log;
}

/*
 * Reports whether replay may store to this offset. Replay never stores into another record, which
 * may still have to be replayed. It never stores into the mount table either, because no
 * transaction changes that table, and the table's words say which system may replay.
 */
bool sg_tx_word_replays(const struct sg_vol *vol, u64 off)
{
	return word_allowed(vol, off) && !sg_area_record(vol, off) && !sg_is_lost(vol, off) &&
	       !(off >= sg_slot_off(vol, 0) && off < sg_slot_off(vol, SG_SLOTS));
}

bool sg_may_replay(const struct sg_replay *r)
{
	return (r->vol->slot < 0 || sg_is_ours(r->vol)) &&
	       (!r->held || sg_load64(sg_state_word(r->vol, r->slot)) == r->held);
}

/* Replays words. @odd: only makes change counters odd, before the words that they protect. */
static int replay_words(const struct sg_replay *r, const struct sg_word *w, unsigned int n,
			bool odd)
{
	for (; n; n--, w++) {
		u64 off = sg_load64(&w->off);

		if (!sg_tx_word_replays(r->vol, off))
			continue;
		if (!sg_may_replay(r))
			return -EIO;
		if (odd)
			sg_or64(sg_at(r->vol, off), 1);
		else
			sg_store64(sg_at(r->vol, off), sg_load64(&w->val));
		sg_wb(r->vol->base + off, 8);
	}
	sg_release_fence();
	return 0;
}

/*
 * Replays an area, as apply(), for a system that died before or in that function. Readers run
 * meanwhile.
 */
static int replay_area(struct sg_vol *vol, unsigned int slot, u64 held, struct sg_area *a)
{
	const struct sg_replay r = { vol, slot, held };
	u64 head = sg_load64(&a->head);	/* loaded once, as its counts bound loops */
	unsigned int all = tx_words_of(a, head), log = SG_MIN(all, SG_AREA_LOG_COUNT(head));
	unsigned int n = all - log, seqs = SG_MIN(n, SG_AREA_SEQ_COUNT(head));
	int err = replay_words(&r, a->word + n - seqs, seqs, true) ?:
		  (log ? vol->up->replay_log(&r, a->word + n, log, seqs) : 0) ?:
		  replay_words(&r, a->word, n - seqs, false) ?:
		  replay_words(&r, a->word + n - seqs, seqs, false);

	if (err)
		return err;
	sg_fence();
	head = sg_load64(&a->head);
	sg_acquire_fence();
	if (!sg_may_replay(&r))
		return -EIO;
	/*
	 * A swap, because this system may be stopped here, and fenced. When it continues, the
	 * slot's next owner may have stored another record here.
	 */
	if (head && sg_cas64(&a->head, head, 0) == head) {
		sg_wb(a, 8);
		sg_fence();
	}
	sg_count(&vol->stat.replays, all != 0);
	return 0;
}

int sg_tx_replay(struct sg_vol *vol, unsigned int slot, u64 held)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < vol->sb.areas && !err; i++)
		err = replay_area(vol, slot, held, sg_at(vol, sg_area_off(vol, slot, i)));
	return err;
}
