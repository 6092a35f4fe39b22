/* SPDX-License-Identifier: GPL-2.0 */
/* What the engine's files share with each other and nobody else sees. */
#ifndef SG_INTERNAL_H
#define SG_INTERNAL_H

#include "engine.h"

#define SG_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
/* Each side is had once (D10): a word of the volume may say something else the second time. */
#define SG_PICK(a, op, b) ({				\
	__typeof__(a) a_ = (a);				\
	__typeof__(b) b_ = (b);				\
	a_ op b_ ? a_ : b_;				\
})
#define SG_MIN(a, b)		SG_PICK(a, <, b)
#define SG_MAX(a, b)		SG_PICK(a, >, b)
/* Hot paths: what belongs to them, and what must not be mixed into them. */
#define SG_INLINE	inline __attribute__((always_inline))
#define SG_NOINLINE	__attribute__((__noinline__))
#define SG_ALIGN_UP(x, a)	(((x) + (a) - 1) & ~((u64)(a) - 1))

#define SG_HOT_OFF		SG_PAGE
#define SG_HOT(field)		(SG_HOT_OFF + offsetof(struct sg_hot, field))

/* --- geometry (super.c) -------------------------------------------------------------------- */

/* Fills the offsets of @sb from size, areas and chunk_cap; -EINVAL when they make no volume. */
int sg_geometry(struct sg_super *sb);
/* May a volume of @size bytes begin there? If not, says so: -EINVAL. */
bool sg_base_fits(u64 size, u64 phys);
int sg_refuse_base(u64 size, u64 phys, char why[200]);
/* As sg_open(), and also what is half moved to another base, for who goes on with that. */
int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);
static inline bool sg_is_moving(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_MOVING;
}
bool sg_super_crc_wrong(const struct sg_super *sb);
void sg_super_sign(struct sg_super *sb);
/*
 * For who has just got a slot: somebody may have had the volume to himself since sg_open(), and
 * moved it. -EAGAIN: what we know of it is old.
 */
int sg_super_recheck(struct sg_vol *vol);
/* At @off is a whole superblock of this volume, and it has @size in it. */
bool sg_super_read(const struct sg_vol *vol, u64 off, u64 size, struct sg_super *out);
void sg_super_store(struct sg_vol *vol, u64 off, struct sg_super *sb);	/* durable on return */

/* --- growth (grow.c) ----------------------------------------------------------------------- */

/*
 * For who is about to join or to replay: the volume may have grown since it was opened. With a
 * slot: it is said how far we reach, from now on. -EUCLEAN, -EBUSY: not here, not now (vol->why).
 */
int sg_size_join(struct sg_vol *vol);
/*
 * For who is joined: the volume's size as it is by now, and an answer to who wants it to grow. Any
 * lock may be held, but it may sleep if the system's memory has to be looked at.
 */
void sg_follow(struct sg_vol *vol);
/* It is said to have @size, and we use it alone so far. -EUCLEAN: more than is here (vol->why). */
int sg_size_take(struct sg_vol *vol, u64 size);
void sg_grow_settle(struct sg_vol *vol);	/* what a dead grower left */

/* --- standing still (freeze.c) ------------------------------------------------------------- */

static inline bool sg_is_still(const struct sg_vol *vol)
{
	return sg_load64(&vol->still.closed);
}
/* Until we do not any more. -EINTR: who waits is to die. */
int sg_still_wait(struct sg_vol *vol);
void sg_freeze_settle(struct sg_vol *vol);	/* what a dead one has announced */

static inline u64 sg_slot_off(const struct sg_vol *vol, unsigned int slot)
{
	return vol->sb.slot_off + slot * sizeof(struct sg_slot);
}

static inline u64 sg_area_off(const struct sg_vol *vol, unsigned int slot, unsigned int area)
{
	return vol->sb.journal_off + ((u64)slot * vol->sb.areas + area) * sizeof(struct sg_area);
}

/* Lies in the record part (head, crc, lock, words) of some transaction area. */
static inline bool sg_area_record(const struct sg_vol *vol, u64 off)
{
	u64 in = (off - vol->sb.journal_off) & (SG_PAGE - 1);

	return off >= vol->sb.journal_off && off < vol->sb.ledger_off &&
	       (in < offsetof(struct sg_area, free_pages) || in >= offsetof(struct sg_area, word));
}

static inline u64 sg_ledger_off(const struct sg_vol *vol, unsigned int slot)
{
	return vol->sb.ledger_off + slot * SG_PAGE;
}

static inline u64 sg_chunk_off(const struct sg_vol *vol, u64 chunk)
{
	return vol->sb.chunk_off + chunk * sizeof(struct sg_chunk);
}

/* --- checked access to volume bytes (D10) -------------------------------------------------- */

/*
 * The volume's size, as far as we have heard: what we take pages from. And the bound that nothing
 * reaches beyond: the same, or more while it grows (grow.c). Both only grow, at any time.
 */
static inline u64 sg_size(const struct sg_vol *vol)
{
	return sg_load64(&vol->sb.size);
}
static inline u64 sg_chunks(const struct sg_vol *vol)
{
	return sg_size(vol) >> SG_CHUNK_SHIFT;
}
static inline u64 sg_bound(const struct sg_vol *vol)
{
	return sg_load64(&vol->size);
}

/* [off, off + len) lies inside the volume. */
static inline bool sg_inside(const struct sg_vol *vol, u64 off, u64 len)
{
	u64 bound = sg_bound(vol);

	return len <= bound && off <= bound - len;
}

/* The copy of what finds a system inode's pages, behind the backup superblock (struct sg_last). */
static inline u64 sg_sys_copy_at(u64 size, unsigned int which)
{
	return size - SG_PAGE + offsetof(struct sg_last, sys) + which * sizeof(struct sg_sys_copy);
}
static inline u64 sg_sys_copy_off(const struct sg_vol *vol, unsigned int which)
{
	return sg_sys_copy_at(sg_size(vol), which);
}

/* A page that the allocator hands out: aligned, inside the data area. */
static inline bool sg_data_place(const struct sg_vol *vol, u64 off)
{
	return !(off & (SG_PAGE - 1)) && off >= vol->sb.data_off && off < sg_bound(vol) - SG_PAGE;
}

static inline bool sg_data_range(const struct sg_vol *vol, u64 off, u64 pages)
{
	return sg_data_place(vol, off) && pages <= (sg_bound(vol) - SG_PAGE - off) >> SG_PAGE_SHIFT;
}

/* Callers have checked the offset. */
static inline void *sg_at(const struct sg_vol *vol, u64 off)
{
	SG_ASSERT(sg_inside(vol, off, 8));
	return vol->base + off;
}

static inline u64 sg_get(const struct sg_vol *vol, u64 off)
{
	return sg_load64(sg_at(vol, off));
}

/* Such a page, to be looked into: bad memory is as good as no page. */
static inline bool sg_data_page(const struct sg_vol *vol, u64 off)
{
	return sg_data_place(vol, off) && (!sg_has_bad(vol) || !sg_is_bad(vol, off, 1));
}

/* --- bad memory (bad.c) -------------------------------------------------------------------- */

/* Bits of the chunk's bad pages are set, none is cleared. */
void sg_bad_mask(const struct sg_vol *vol, u64 chunk, u64 map[SG_CHUNK_PAGES / 64]);
u64 sg_bad_free(const struct sg_vol *vol);	/* of them, those that nobody has */
/* For who knows nothing of the volume yet: its list, if it is one, has that page. */
bool sg_bad_listed(const void *base, u64 off);
/* For who has set vol->base: where sg_has_bad() looks. */
void sg_bad_watch(struct sg_vol *vol);
/* Has the list changed? Then what follows from it is done. Any lock may be held. */
void sg_bad_look(struct sg_vol *vol);

/*
 * Damage was found: logs once with inode and offset, sets hot.errors when we may write, calls
 * vol->on_damage. Returns -EUCLEAN, so that callers write `return sg_damaged(...)`.
 */
int sg_damaged(const struct sg_vol *vol, u64 ino, u64 off, const char *what);

/* 0, or -EROFS / -EIO: has it a place in the mount table, and do others take it for alive? */
int sg_is_member(const struct sg_vol *vol);
/* The same, and may this volume be changed now? */
int sg_may_write(const struct sg_vol *vol);
/* Our slot says what it said when we joined. */
static inline bool sg_is_ours(const struct sg_vol *vol)
{
	return sg_load64(vol->state) == vol->alive;
}
/* It does not: -EIO. From now on nothing is stored. */
int sg_declared_dead(const struct sg_vol *vol);
/* A call of an inode's or object's ended so: memory of that one alone is bad, and we go on. */
static inline bool sg_is_bad_memory(const struct sg_vol *vol, int err)
{
	return err == -EIO && sg_is_ours(vol) && !sg_load64(&vol->shut_down);
}
/* From here on sg_is_ours() is false, without a look at the slot. */
static inline void sg_stop_state(struct sg_vol *vol)
{
	sg_store64(&vol->stopped, ~vol->alive);
	*(const u64 *volatile *)&vol->state = &vol->stopped;
}
/* The slot's bits, in inodes and elsewhere, may be its next owner's by now. */
static inline bool sg_is_silenced(const struct sg_vol *vol)
{
	return sg_load64(&vol->shut_down) || (!sg_is_ours(vol) && sg_declared_dead(vol));
}

/* For waits and loops of sg_settle(), which others may want to end (sg_settle_stop()). */
static inline bool sg_settle_ends(const struct sg_vol *vol)
{
	return sg_load64(&vol->settle_stop) && sg_load64(&vol->settler) == sg_self();
}

/* For waits that others here may want to end, though the thread is not to die: -EINTR. */
static inline bool sg_wait_ends(const struct sg_vol *vol)
{
	return sg_settle_ends(vol) || (vol->gives_way && vol->gives_way(vol));
}

/* Statistics: whole words, but not exact across CPUs on purpose. */
static inline void sg_count(u64 *counter, u64 n)
{
	sg_store64(counter, sg_load64(counter) + n);
}

/*
 * For loops that are as long as somebody has made them who can write to the volume: at each turn,
 * with no spin lock held. Others get to run meanwhile; -EINTR: who is at it is to die.
 */
#define SG_TURNS	1024
static inline int sg_turn(u64 *turns)
{
	if (++*turns % SG_TURNS)
		return 0;
	sg_yield();
	return sg_interrupted() ? -EINTR : 0;
}

/* --- locks (lock.c) ------------------------------------------------------------------------ */
/*
 * Order: rename_lock, inode locks by ascending inode number, a transaction area, inode_lock,
 * chunk locks. A chunk lock is waited for only when no other chunk lock is held. slot_lock,
 * freeze_lock and then grow_lock are waited for with nothing else held; system inodes (number 0)
 * come before others.
 * A new inode's lock is only tried, with the area's held (inode.c), so it needs no place here.
 * That of semaphores is locked with nothing else held; a barrier's lock with nothing before or
 * behind it.
 *
 * -EINTR: not taken, since who waits is to die, or to give way. -EIO: nor by one who has been taken
 * for dead.
 * -EBUSY: nor by one in a hurry (sg_vol.hurry), or who has waited for long while joining.
 */
#define SG_HELD	1024	/* of sg_vol.held */
int sg_lock(struct sg_vol *vol, u64 off);
int sg_lock_soon(struct sg_vol *vol, u64 off);	/* or -EBUSY, for those who can come again */
/* Or -EBUSY at once, or nearly so, for callers that hold what other threads wait for. */
int sg_lock_brief(struct sg_vol *vol, u64 off);
int sg_lock_for(struct sg_vol *vol, u64 off, u64 ns);	/* killable; -EBUSY: not in this time */
/* For who is to die, too: never -EINTR; -EBUSY after minutes. */
int sg_lock_sure(struct sg_vol *vol, u64 off);
bool sg_trylock(struct sg_vol *vol, u64 off);
void sg_unlock(struct sg_vol *vol, u64 off);
bool sg_is_locked(const struct sg_vol *vol, u64 off);	/* by one who lives, as far as is known */
/* Two inodes at once, in order; b may be NULL or the same. */
int sg_lock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
void sg_unlock_inodes(struct sg_vol *vol, const struct sg_iref *a, const struct sg_iref *b);
/* Up to four, duplicates and NULL allowed. */
int sg_lock_four(struct sg_vol *vol, const struct sg_iref *const v[4]);
void sg_unlock_four(struct sg_vol *vol, const struct sg_iref *const v[4]);

static inline int sg_ilock(struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_lock(vol, ref->off + offsetof(struct sg_inode, lock));
}

static inline void sg_iunlock(struct sg_vol *vol, const struct sg_iref *ref)
{
	sg_unlock(vol, ref->off + offsetof(struct sg_inode, lock));
}

/* The holder of the lock that this word names is dead: recovered here and now. */
void sg_help(struct sg_vol *vol, u64 lock_word);

/* --- transactions (tx.c, D8) --------------------------------------------------------------- */

#define SG_TX_LOCKS	17	/* one of them a new inode's */
#define SG_TX_INODES	6
#define SG_TX_INDEX	512	/* a power of two, twice SG_AREA_WORDS and more */

/**
 * struct sg_tx - a transaction being built. Nothing but fresh pages changes before commit.
 * @err: first error; sticky, so that builders need not check each step. Commit returns it.
 * @index, @round: where each word is, by a hash of its offset; entries of earlier transactions have
 *   another round, so that nothing has to be cleared. In memory of our own: nobody else's store
 *   leads a search astray (D10).
 * @owed: ledger entries taken by this transaction, given back by abort.
 */
struct sg_tx {
	struct sg_vol *vol;
	u64 turn;		/* odd while under way: sg_ack waits for it */
	u64 area;
	struct sg_area *a;
	bool locked;		/* we have the area's lock; else nothing comes of it */
	bool spare;		/* in memory of its own, not one of sg_vol.tx: not @locked */
	int err;
	unsigned int n;
	u32 round, index[SG_TX_INDEX];
	s64 free_pages, used_inodes;	/* changes, applied to the area's counters at commit */
	unsigned int nlocks, ninodes, nowed;
	u64 lock[SG_TX_LOCKS];
	u64 inode[SG_TX_INODES];
	u32 owed[SG_AREA_WORDS / 2];
	unsigned int npaid;
	u32 paid[SG_AREA_WORDS / 2];	/* ledger entries cleared by this transaction */
	struct sg_kept *kept;	/* noted by this transaction, taken back by abort (ledger.c) */
	bool holds_chunk;
	u64 fresh_ino, fresh_ino_off;	/* records that the inode file gains with this commit */
};

/*
 * Takes an area; waits when all are busy. Never NULL: when the volume may not be changed, or who
 * waits is to die, tx->err says so at once. Pays debts first when the ledger is tight.
 */
struct sg_tx *sg_tx_begin(struct sg_vol *vol);
struct sg_tx *sg_tx_begin_payer(struct sg_vol *vol);	/* for those who pay */
struct sg_tx *sg_tx_begin_in(struct sg_vol *vol, unsigned int area);	/* in this one: owed.c */
/*
 * For callers that must not wait for other systems. NULL: no area is free, or this system stands
 * still. It pays no debts.
 */
struct sg_tx *sg_tx_try(struct sg_vol *vol);
/* The word as this transaction sees it, and its new value. */
u64 sg_tx_get(struct sg_tx *tx, u64 off);
void sg_tx_set(struct sg_tx *tx, u64 off, u64 val);
/*
 * Words that may still be set, keeping a reserve for counters and sequence numbers; no more than
 * twice the debts that the ledger can still take, so that one loop bound serves cutters.
 */
unsigned int sg_tx_room(const struct sg_tx *tx);
/* This inode changes: readers notice (seq). What guards it is held until the record is void. */
void sg_tx_inode(struct sg_tx *tx, const struct sg_iref *ref);
/* Held until commit or abort. */
void sg_tx_keep_lock(struct sg_tx *tx, u64 off);
/* Waits for it first. -EIO, in tx->err, too: declared dead meanwhile, and the area not ours. */
int sg_tx_wait_lock(struct sg_tx *tx, u64 off, bool soon);
/*
 * Nothing stands still for one who has been declared dead, locked or not, and he gets no lock:
 * whatever he finds to be full, or damaged, or another, this is why.
 */
static inline void sg_tx_fail(struct sg_tx *tx, int err)
{
	if (!tx->err)
		tx->err = sg_is_ours(tx->vol) ? err : sg_declared_dead(tx->vol);
}
/* Both end the transaction and free the object. */
int sg_tx_commit(struct sg_tx *tx);
void sg_tx_abort(struct sg_tx *tx);
/*
 * Replays what a slot had committed. Trusts nothing in there. -EIO: not all, for we have been
 * declared dead, or the slot's state is not @held any more (0: whatever it is, we are alone).
 */
int sg_tx_replay(struct sg_vol *vol, unsigned int slot, u64 held);
/* What replay would store, for those who only look: words of a valid record, and which count. */
unsigned int sg_tx_words(const struct sg_area *a);
u32 sg_area_crc(u64 head, const struct sg_word *words, unsigned int n);
bool sg_tx_word_replays(const struct sg_vol *vol, u64 off);

/* Fields of an inode within a transaction. */
#define SG_IOFF(ref, field)	((ref)->off + offsetof(struct sg_inode, field))
#define sg_tx_iget(tx, ref, field)	sg_tx_get(tx, SG_IOFF(ref, field))
#define sg_tx_iset(tx, ref, field, v)	sg_tx_set(tx, SG_IOFF(ref, field), v)
#define sg_iget(vol, ref, field)	sg_get(vol, SG_IOFF(ref, field))

/*
 * Bytes of pages that nobody else can see yet (allocated by the running transaction): stored at
 * once, write-back started; commit's first fence makes them durable before the words that publish
 * them.
 */
void sg_fresh_write(struct sg_vol *vol, u64 off, const void *src, u64 len);
void sg_fresh_zero(struct sg_vol *vol, u64 off, u64 len);
void sg_fresh_set(struct sg_vol *vol, u64 off, u64 val); /* no write-back: sg_wb() the page after */

/* --- slots (slot.c): the steps of joining, for fsck, which takes them one by one ------------ */

u64 *sg_state_word(const struct sg_vol *vol, unsigned int slot);
bool sg_owner_live(const struct sg_vol *vol, unsigned int slot, u32 inc);
u64 sg_slots_taken(const struct sg_vol *vol);	/* a bit per slot that is not free */
int sg_slot_take(struct sg_vol *vol, const struct sg_identity *id);
/* Who we are is said anew, if a joiner that was paused has stored its own words over ours. */
void sg_slot_mend(struct sg_vol *vol);
int sg_slot_take_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		       bool force);
int sg_slot_enter(struct sg_vol *vol);	/* transactions and ledger; settles what the dead owed */
void sg_slot_exit(struct sg_vol *vol);	/* their end; the slot stays ours */

/* --- death (death.c, D6) ------------------------------------------------------------------- */

struct sg_watch *sg_watch_make(void);
u64 sg_slots_of_tools(const struct sg_vol *vol);
u64 sg_slots_of_machine(const struct sg_vol *vol, const struct sg_identity *id);
void sg_fence_slots(struct sg_vol *vol, u64 bits);	/* all of them, but ours */
/*
 * Fences those of @bits whose heart stands still for @wait_ms. With @live: only if all do; else
 * -EBUSY, and who is alive. Without, guards do not count: it is our own machine that has booted.
 */
int sg_fence_silent(struct sg_vol *vol, u64 bits, unsigned int wait_ms, unsigned int *live);
int sg_fence_silent_tools(struct sg_vol *vol, unsigned int wait_ms);	/* those that are silent */
bool sg_recover_slot(struct sg_vol *vol, unsigned int slot);	/* true: it was us who did it */
void sg_recover_all(struct sg_vol *vol);
void sg_recover_none_yet(struct sg_vol *vol);	/* we have just got our slot */
/* Takes over the debts of slots that are free; without @wait, if nobody else is just doing so. */
int sg_settle_free(struct sg_vol *vol, bool wait);

/* --- epochs (epoch.c, D7) ------------------------------------------------------------------- */

struct sg_ack *sg_ack_make(void);
bool sg_alone(const struct sg_vol *vol);	/* nobody else has a slot */
bool sg_holds_alone(const struct sg_vol *vol);	/* who takes a slot now goes no further */
void sg_quiesce(struct sg_vol *vol);		/* our own looks, windows and mappings */
u64 sg_epoch_horizon(const struct sg_vol *vol);	/* what all who live have acknowledged */
/* A debt of that epoch, as it stands in a debt's word, may be paid. */
bool sg_epoch_over(const struct sg_vol *vol, u64 horizon, unsigned int debt_epoch);
void sg_epoch_push(struct sg_vol *vol);
void sg_epoch_heed(struct sg_vol *vol);		/* acknowledges, if nobody else does for us */
void sg_epoch_urge(struct sg_vol *vol);		/* that, and pushes */
bool sg_epoch_next(struct sg_vol *vol, unsigned int wait_ms);

/* --- opens (opens.c) ------------------------------------------------------------------------ */

bool sg_open_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref);
bool sg_is_left(const struct sg_vol *vol, u64 ino);	/* without a name, and open nowhere */
/* @ref: with its generation. */
bool sg_open_here(struct sg_vol *vol, const struct sg_iref *ref);
void sg_tmpfile_open(struct sg_vol *vol, const struct sg_iref *ref);	/* a new one, by us */
/* @all: whatever we may seem to have open, we have just joined and have not. */
void sg_withdraw_opens(struct sg_vol *vol, bool all);
/* The file that @ref means has its number still. */
static inline bool sg_is_same(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !ref->generation || (!sg_is_lost(vol, ref->off) &&
	       (u32)sg_iget(vol, ref, genflags) == (u32)ref->generation);
}

/* --- space (space.c) ----------------------------------------------------------------------- */

enum sg_use { SG_USE_DATA, SG_USE_META };

/*
 * Takes a run of up to @want pages (at least one) in one chunk, as near behind @goal (volume
 * offset, or 0) as can be. -ENOSPC when there is none: sets tx->err too. Contents are stale.
 */
int sg_take_run(struct sg_tx *tx, enum sg_use use, u64 goal, u64 want, u64 *off, u64 *got);
int sg_take_page(struct sg_tx *tx, enum sg_use use, u64 *off);
/* A whole aligned chunk, or -ENOSPC (tx->err is not set: the caller falls back to runs). */
int sg_take_chunk(struct sg_tx *tx, u64 goal, u64 *off);
/*
 * Gives pages of one chunk back to the bitmap. For debts being paid, and for pages taken by the
 * same transaction. False: nothing done, because another transaction holds the chunk: commit what
 * there is and come again (tx->err untouched); or damage (tx->err set).
 */
bool sg_give_run(struct sg_tx *tx, u64 off, u64 pages);
void sg_space_release(struct sg_tx *tx, u64 chunk_lock);	/* hints follow, then unlock */
u64 sg_free_pages(const struct sg_vol *vol);
u64 sg_used_inodes(const struct sg_vol *vol);
void sg_space_rebuild_hints(struct sg_vol *vol);	/* all; for who is alone with it */
void sg_space_found(struct sg_vol *vol, u64 from);	/* hints of the chunks from there on */
/*
 * Hints may be missing: they are not flushed, and who has died has not made his. They are made up
 * for some chunks at a time: the second does one step. False: there is nothing left to do.
 */
void sg_space_doubt_hints(struct sg_vol *vol);
bool sg_space_mend_hints(struct sg_vol *vol);

/* --- ledger (ledger.c, D7) ----------------------------------------------------------------- */

#define SG_LEDGER_PAGES	256	/* of a slot's chain, at most */

int sg_ledger_open(struct sg_vol *vol);	/* our slot's; pays nothing yet */
void sg_ledger_close(struct sg_vol *vol);
/* For commit and abort: what a transaction did to the ledger becomes so, or never was. */
void sg_ledger_commit(struct sg_tx *tx);
void sg_ledger_abort(struct sg_tx *tx);
unsigned int sg_ledger_room(const struct sg_vol *vol);	/* debts that can still be taken on */
/* Records a debt in the transaction; sets tx->err = -ENOSPC when the ledger cannot hold it. */
void sg_owe(struct sg_tx *tx, unsigned int kind, u64 value, unsigned int count);
void sg_owe_run(struct sg_tx *tx, u64 off, u64 pages);	/* a debt per chunk that it touches */
/*
 * The debt of an inode: no links, or SG_FL_CUTTING. It always succeeds: what the ledger has no room
 * for goes on a list (owed.c). Owing twice is once. The second ends it, unless the inode, as the
 * transaction sees it, still has one of the two reasons; what is on a list stays there.
 */
void sg_owe_inode(struct sg_tx *tx, const struct sg_iref *ref);
/* An inode with these words is owed: it has no links, or is being cut. */
static inline bool sg_has_reason(u64 mode, u64 genflags)
{
	return mode && (!(u32)(mode >> 32) || (u32)(genflags >> 32) & SG_FL_CUTTING);
}
void sg_disown_inode(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * The debt of an inode that we have just made, and use: it is not settled, nor is it given up for
 * want of an opener's bit, until sg_evict(). A link ends it, too.
 */
void sg_owe_kept(struct sg_tx *tx, const struct sg_iref *ref);
bool sg_ledger_keeps(const struct sg_vol *vol, const struct sg_iref *ref);
void sg_ledger_let_go(struct sg_vol *vol, const struct sg_iref *ref);
bool sg_ledger_owes(const struct sg_vol *vol, const struct sg_iref *ref);	/* we do */
bool sg_ledger_is_tight(const struct sg_vol *vol);	/* pay before owing more */
bool sg_ledger_waits(const struct sg_vol *vol);	/* there are debts that others hold up */
int sg_ledger_grow(struct sg_vol *vol);
/* Does this slot's ledger hold any debt? Its chain may be long; damage is looked at closely. */
bool sg_ledger_empty(const struct sg_vol *vol, unsigned int slot);
/* Moves the debts of a recovered slot into our own books. */
int sg_ledger_settle(struct sg_vol *vol, unsigned int slot);
/* Frees, or cuts to size, the inodes that we owe; those that nobody has open, or locked. */
int sg_ledger_settle_inodes(struct sg_vol *vol);
/*
 * Of these, what can be done at once for somebody who is waiting for space, locks held. False: some
 * is locked just now.
 */
bool sg_ledger_settle_left(struct sg_vol *vol);
u64 sg_ledger_payable(const struct sg_vol *vol);	/* debts of pages */
bool sg_ledger_paying(const struct sg_vol *vol);	/* a thread of ours pays some just now */
bool sg_ledger_is_stuck(const struct sg_vol *vol);	/* others keep us from paying any */

/* --- inodes without a name that we have made, and owe on lists (nameless.c) ----------------- */

int sg_nameless_open(struct sg_vol *vol);
void sg_nameless_close(struct sg_vol *vol);
void sg_nameless_keep(struct sg_tx *tx, const struct sg_iref *ref);	/* abort drops it again */
bool sg_nameless_kept(const struct sg_vol *vol, const struct sg_iref *ref);
/* @which, or, if that is NULL, the one of @ref. */
void sg_nameless_drop(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_kept *which);

/* --- lists of owed inodes (owed.c) ----------------------------------------------------------- */

/* Is on some list, whosever it is: then it is looked after there. The inode is locked. */
static inline bool sg_is_listed(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_get(vol, ref->off + offsetof(struct sg_inode, owed_next));
}
/* Puts it on a list of ours, unless it is on some list. Needs no room. The inode is locked. */
void sg_owed_add(struct sg_tx *tx, const struct sg_iref *ref);
/* As sg_ledger_settle_inodes() and sg_ledger_settle_left(), some of them at a time. */
int sg_owed_settle(struct sg_vol *vol);
bool sg_owed_settle_left(struct sg_vol *vol);
bool sg_owed_empty(const struct sg_vol *vol, unsigned int slot);
/* The lists of a slot that is free become ours. slot_lock is held. */
int sg_owed_take_over(struct sg_vol *vol, unsigned int slot);

/**
 * struct sg_owed_walk - along a list that others may change meanwhile.
 * @at: word that names the next one. @ref: the present one. @n: passed so far.
 * @mark: one passed before; coming there again the list is a circle.
 */
struct sg_owed_walk {
	u64 at;
	struct sg_iref ref;
	u64 n, mark;
};
struct sg_owed_walk sg_owed_walk(const struct sg_vol *vol, unsigned int slot, unsigned int area);
/* False: the end, or what should be on the list and is not, or who is at it is to die. */
bool sg_owed_walk_next(const struct sg_vol *vol, struct sg_owed_walk *w);

/* --- file tables (table.c) ----------------------------------------------------------------- */

/* Checks entry @e of a table of @level (1..4). Kind of what it names: */
enum sg_entry { SG_ENTRY_NONE, SG_ENTRY_LEAF, SG_ENTRY_TABLE, SG_ENTRY_BAD };
enum sg_entry sg_entry_kind(const struct sg_vol *vol, u64 e, unsigned int level, u64 *off);
/* The same for a root word: LEAF is the only page of a file, TABLE a table of the root's height. */
enum sg_entry sg_root_kind(const struct sg_vol *vol, u64 root, u64 *off);
bool sg_table_lost(const struct sg_vol *vol, u64 e);	/* names a table, in bad memory */
/* What says where @page is makes no sense: -EUCLEAN, and it is logged; or bad memory: -EIO. */
int sg_table_wrong(const struct sg_vol *vol, const struct sg_iref *ref, u64 page);
static inline u64 sg_leaf(const struct sg_vol *vol, u64 off, unsigned int level)
{
	return (vol->sb.phys + off) | (level > 1 ? SG_PTE_LEAF_HUGE : SG_PTE_LEAF);
}
static inline u64 sg_link_entry(const struct sg_vol *vol, u64 off)
{
	return (vol->sb.phys + off) | SG_PTE_TABLE;
}
static inline u64 sg_level_pages(unsigned int level)	/* pages mapped by one entry */
{
	return 1ULL << (9 * (level - 1));
}
/*
 * Hooks @pages fresh pages at @off behind file page @page (one run, all unmapped before; for a
 * whole aligned chunk a level 2 leaf is used if the place is free, and made of a table of level 1
 * that has become one). Grows the table as needed.
 * Adds to sg_inode.blocks in tx what it took for tables and the pages themselves.
 */
int sg_table_add(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 off, u64 pages);
/* How many of @want pages at the hole @page one sg_table_add() can take. */
u64 sg_table_fit(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 want);
/*
 * When @page lies inside a large leaf, but not at its start: a table of smaller leaves instead.
 * -ENOSPC when there is no page for the table; the transaction is still good then.
 */
int sg_table_split(struct sg_tx *tx, const struct sg_iref *ref, u64 page);
/*
 * Cuts mapped pages out of [page, end), in file order, until done or the transaction or ledger is
 * full; *next: where to go on (>= end when done). What was cut is owed; blocks follow. Large leaves
 * that lie half in the range have been split: -EAGAIN when one has not.
 */
int sg_table_cut(struct sg_tx *tx, const struct sg_iref *ref, u64 page, u64 end, u64 *next);
/* For who takes pages out in another way: sg_inode.cuts. */
void sg_count_cut(struct sg_tx *tx, const struct sg_iref *ref);
/* Cuts everything with one word: the root becomes a debt (or a run for a single page). */
void sg_table_drop(struct sg_tx *tx, const struct sg_iref *ref);
/*
 * One step in paying a SG_DEBT_TABLE: frees entries of the table page @off (@level) from *@index
 * on in @tx, child tables become debts of their own; *index == SG_TABLE_ENTRIES when only the page
 * itself was left and has been freed too.
 */
int sg_table_pay(struct sg_tx *tx, u64 off, unsigned int level, unsigned int *index);

/* --- data (file.c, write.c, resize.c, range.c) --------------------------------------------- */

#define SG_TABLE_PAGES	(1ULL << 36)	/* that a table of full height reaches */
#define SG_FILE_PAGES	(SG_FILE_MAX >> SG_PAGE_SHIFT)
static inline u64 sg_pages_of(u64 bytes)
{
	return (bytes + SG_PAGE - 1) >> SG_PAGE_SHIFT;
}
/**
 * struct sg_met - pages that a walk through a file has met
 * @seq: of the file when counting began; @counted: how often it has begun anew.
 */
struct sg_met {
	u64 sum, seq;
	unsigned int counted;
};
int sg_met_more(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m);
/*
 * An honest file maps no page twice, so there is a limit to what may be met: @times as many pages
 * as the volume has. A damaged file can go on for ever. What others move ahead meanwhile is met
 * again; so only what one state of the file has too much of is damage. -EBUSY: it changes all the
 * time.
 */
static inline int sg_met(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_met *m,
			 u64 pages, unsigned int times)
{
	m->sum += pages;
	return m->sum <= times * (sg_bound(vol) >> SG_PAGE_SHIFT) ? 0 : sg_met_more(vol, ref, m);
}

/* Zeroes the mapped bytes of [pos, end) in place and starts their write-back. */
int sg_zero_mapped(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 end);
/* Size and times (now 0: keep) without the journal, durable on return. Inode locked. */
void sg_publish(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/*
 * Behind the size, up to here, mapped pages may hold anything: what was stored through a mapping or
 * by a write that did not come to its end. It is zeroed before the size moves up over it. Further
 * behind, mapped pages are zero: no write in place begins there before the size is near.
 */
static inline u64 sg_stale_end(u64 size)
{
	return (size & ~(SG_CHUNK - 1)) + SG_CHUNK;
}
/* One page, if the file's lock and space can be had at once. */
int sg_allocate_now(struct sg_vol *vol, const struct sg_iref *ref, u64 page);
/* Pages behind the size may remain of a truncation: finish it before anything is put there. */
bool sg_is_cutting(const struct sg_vol *vol, const struct sg_iref *ref);
int sg_finish_cut(struct sg_vol *vol, const struct sg_iref *ref);
/* The same for who comes back for it: *turns counts, 0 at first. -EUCLEAN: it is never over. */
int sg_finish_cut_again(struct sg_vol *vol, const struct sg_iref *ref, unsigned int *turns);
#define SG_RECLAIM_SOME	1024	/* debts to pay before giving up for want of space */

/* --- inodes (inode.c) ---------------------------------------------------------------------- */

/*
 * A free record, filled from @new (links, size 0), touched in tx, and locked until tx ends. Before
 * any page is taken.
 */
int sg_inode_take(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 special,
		  struct sg_iref *out);
/* Frees the record. Its table, index and xattrs have been cut in this transaction. */
void sg_inode_give(struct sg_tx *tx, const struct sg_iref *ref);
/* Finishes what the ledger says of an inode: evicts, or cuts behind size. */
int sg_inode_settle(struct sg_vol *vol, u64 ino);
/*
 * Tries to free what has been left: once, as it is want of space that asks for it. False: it is
 * locked, and whoever wants space may hold what its holder waits for.
 */
bool sg_inode_settle_left(struct sg_vol *vol, u64 ino);
static inline struct sg_iref sg_sys_ref(unsigned int which)
{
	return (struct sg_iref){ .off = SG_HOT(sys) + which * sizeof(struct sg_inode) };
}
static inline unsigned int sg_sys_which(const struct sg_iref *sys)
{
	return (unsigned int)((sys->off - SG_HOT(sys)) / sizeof(struct sg_inode));
}
/*
 * The inode is locked, and is about to be changed in place: 0, if we live (a lock that was waited
 * for may not be ours), and it is the file that is meant still (D9).
 */
int sg_may_change(const struct sg_vol *vol, const struct sg_iref *ref);
/* Words of an inode were stored in place, its lock held: readers notice, write-back starts. */
void sg_inode_changed(struct sg_vol *vol, const struct sg_iref *ref);
void sg_tx_times(struct sg_tx *tx, const struct sg_iref *ref, s64 mtime, s64 ctime); /* 0: keep */
static inline u32 sg_mode(u64 word) { return (u32)word; }
static inline u32 sg_nlink(u64 word) { return (u32)(word >> 32); }

#define SG_S_IFMT	0170000u
#define SG_S_IFSOCK	0140000u
#define SG_S_IFLNK	0120000u
#define SG_S_IFREG	0100000u
#define SG_S_IFBLK	0060000u
#define SG_S_IFDIR	0040000u
#define SG_S_IFCHR	0020000u
#define SG_S_IFIFO	0010000u

static inline bool sg_is_dir(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFDIR; }
static inline bool sg_is_reg(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFREG; }
static inline bool sg_is_lnk(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFLNK; }

/* --- readers without a lock (reader.c) ------------------------------------------------------ */

/* Begin, read, retry while it says true (D9). Bounded: -EUCLEAN; -EINTR: who waits is to die. */
int sg_read_begin(const struct sg_vol *vol, const struct sg_iref *ref, u64 *seq);
bool sg_read_retry(const struct sg_vol *vol, const struct sg_iref *ref, u64 seq);
/* Turns of a reader that finds the inode changed each time, until it gives up (-EUCLEAN). */
#define SG_READ_TURNS	1000000u
/* A page that is looked through in a turn counts as so many more: what is bounded is the time. */
#define SG_READ_PAGE	100u

/* --- copies of the system inodes (syscopy.c) ----------------------------------------------- */

u64 sg_sys_check(unsigned int which, u64 table, u64 records);	/* sg_sys_copy.check */
/* All anew, from the system inodes, for a volume of @size: for who makes, moves or grows it. */
void sg_sys_copies_write(struct sg_vol *vol, u64 size);
/* The inode file has got another root word, or more records, in this transaction. */
void sg_sys_copy(struct sg_tx *tx, unsigned int which);

/* --- directories (dir.c, bucket.c, dirhash.c, readdir.c) ------------------------------------ */

/**
 * struct sg_name - a name that is looked for, and where it was found.
 * @twins: some other name may have the same hash: a new one has to look for a free tie-break.
 * @turns: of SG_READ_TURNS, that looking for it has taken.
 * @seq: of the directory, when sg_dir_look() looked. As long as it stands, so does the rest.
 */
struct sg_name {
	const char *name;
	u32 len;
	bool twins;
	u32 turns;
	u64 hash;
	u64 seq;
	u64 bucket;		/* page that it is or would be in; 0: the directory has none */
	u64 slot_off;		/* of its slot word */
	u64 ref_off;		/* of sg_dirent.ref */
	u64 ref;
};

u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len); /* 55 bits, never all ones */
void sg_name_of(const struct sg_vol *vol, const char *name, u32 len, struct sg_name *n);
/* 0: @dir is one, named or not; -ESTALE: its number is nobody's by now, or another file's. */
int sg_dir_there(const struct sg_vol *vol, const struct sg_iref *dir);
/* Looks without a lock, and sees no transaction that is under way. -ENOENT, -ENOTDIR. */
int sg_dir_look(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n);
/*
 * The rest is done in a transaction, with the directory locked.
 *
 * Adds a name that is known to be absent; entries, size and blocks follow. -EAGAIN (in tx->err,
 * too): would take more splits than a transaction holds, as only crafted names do. Abort, call
 * sg_dir_make_room(), which uses transactions of its own, and try again.
 */
int sg_dir_add(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
	       unsigned int type);
int sg_dir_make_room(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n);
/* Needs no page: names can be removed when the volume is full. */
void sg_dir_remove(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n);
/* Changes what a name refers to. */
void sg_dir_point(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n, u64 ino,
		  unsigned int type);
/* Cuts the whole index of an empty directory: a debt. */
void sg_dir_drop(struct sg_tx *tx, const struct sg_iref *dir);
/* One step in paying SG_DEBT_DIR for the index page @off; as sg_table_pay(). */
int sg_dir_pay(struct sg_tx *tx, u64 off, unsigned int *index);

/* --- extended attributes (xattr.c) --------------------------------------------------------- */

void sg_xattr_drop(struct sg_tx *tx, const struct sg_iref *ref);	/* blob becomes a debt */
/* Frees pages of a blob, as many as one transaction can; *done: that was all. */
int sg_xattr_pay(struct sg_tx *tx, u64 head, bool *done);
/* Writes a payload into fresh pages; *head: offset for sg_inode.xattr (0 for an empty payload). */
int sg_xattr_build(struct sg_tx *tx, u64 ino, const void *payload, u32 len, u64 *head, u64 *pages);

/* --- locks of users (userlock.c; userlock_circle.c: deadlocks) ------------------------------- */

#define SG_USERLOCK_SPARES	3	/* records that one change may need: two locks, a request */

/**
 * struct sg_userlock_chain - a chain of the lock file, locked
 * @first: its first page
 * @nr: which; @pages: that it has
 * @spare: unused records, as many as were found
 */
struct sg_userlock_chain {
	struct sg_vol *vol;
	struct sg_userlock_page *first;
	unsigned int nr, pages, spares;
	struct sg_userlock_record *spare[SG_USERLOCK_SPARES];
};
struct sg_userlock_at {			/* where a search through a chain is; zeroes at first */
	struct sg_userlock_page *in;
	unsigned int page, i;
};

/* The page @k of a chain; NULL with *err 0: there is none. */
struct sg_userlock_page *sg_userlock_page(struct sg_vol *vol, unsigned int nr, unsigned int k,
					  int *err);
int sg_userlock_grow(struct sg_vol *vol, unsigned int nr, unsigned int k);
/*
 * How to wait for a chain's lock. SURE: to give something back, which a process that is killed must
 * do all the same. BRIEF: -EBUSY instead of waiting for long.
 */
enum sg_userlock_patience { SG_USERLOCK_PATIENT, SG_USERLOCK_SURE, SG_USERLOCK_BRIEF };
/* -ENOENT: there is no such chain yet. After 0, what the dead have left in it is gone. */
int sg_userlock_enter(struct sg_vol *vol, unsigned int nr, struct sg_userlock_chain *c,
		      enum sg_userlock_patience patience);
void sg_userlock_leave(struct sg_userlock_chain *c);
/* The next record in use, and a copy of it; NULL at the end. */
struct sg_userlock_record *sg_userlock_next(const struct sg_userlock_chain *c,
					    struct sg_userlock_at *at,
					    struct sg_userlock_record *copy);
/* Somebody else holds what @want cannot be had beside: who. */
bool sg_userlock_held(const struct sg_userlock_chain *c, const struct sg_userlock_record *want,
		      struct sg_userlock_record *by);
/* One of the same kind, by the same owner. */
static inline bool sg_userlock_same_owner(const struct sg_userlock_record *a,
					  const struct sg_userlock_record *b)
{
	return a->owner == b->owner && !((a->head ^ b->head) >> 8) &&
	       SG_USERLOCK_KIND(a->head) == SG_USERLOCK_KIND(b->head);
}
/*
 * @want waits for the lock that @wait names: -EDEADLK when that lock's owner waits, over others
 * maybe, for the owner of @want. Then the request has been given up. No chain is locked.
 */
int sg_userlock_circle(struct sg_vol *vol, const struct sg_iref *ref,
		       const struct sg_userlock_record *want, struct sg_userlock_wait *wait);

/* --- shared semaphores (sem.h has what their files share) ------------------------------------ */

struct sg_sems *sg_sems_make(void);
void sg_sems_free(struct sg_vol *vol);
/* We have just joined: what the slot's last owner had open, and waited for, we have not. */
int sg_sem_withdraw(struct sg_vol *vol);
void sg_sem_settle(struct sg_vol *vol);	/* what could not be closed when it was to be */

#endif
