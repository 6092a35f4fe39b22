/* SPDX-License-Identifier: GPL-2.0 */
/* The base of all layers: bounds, words, slots, damage (docs/engine.md). */
#ifndef SG_BASE_H
#define SG_BASE_H

#include "engine.h"

#define SG_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
/* Evaluates each side once (D10): a word of the volume may have another value when loaded again. */
#define SG_PICK(a, op, b) ({				\
	__typeof__(a) a_ = (a);				\
	__typeof__(b) b_ = (b);				\
	a_ op b_ ? a_ : b_;				\
})
#define SG_MIN(a, b)		SG_PICK(a, <, b)
#define SG_MAX(a, b)		SG_PICK(a, >, b)
/* For functions that hot paths must inline, and for functions that must stay out of hot paths. */
#define SG_INLINE	inline __attribute__((always_inline))
#define SG_NOINLINE	__attribute__((__noinline__))
#define SG_ALIGN_UP(x, a)	(((x) + (a) - 1) & ~((u64)(a) - 1))

#define SG_HOT_OFF		SG_PAGE
#define SG_HOT(field)		(SG_HOT_OFF + offsetof(struct sg_hot, field))

/**
 * struct sg_upcalls - calls from lower layers of the engine to higher ones (volume/open.c)
 * @recover_slot: recovers the slot of a lock's holder that may be dead.
 * @acknowledge: acknowledges epochs, for a waiting thread of a program without another thread for
 * that.
 * @freeze_watch: checks for the end of a freeze, for a waiting transaction when no other thread
 * does.
 * @follow: adapts to a volume that may have grown.
 * @reclaim, @grow_ledger: make room in the ledger for a transaction.
 * @more_space: waits for space when no page is free.
 * @evict: frees an inode without a name that is no longer needed.
 * @replay_log: replays the log of a record: @n words, behind the @seqs change counters of its
 * inodes.
 */
struct sg_replay;
struct sg_upcalls {
	bool (*recover_slot)(struct sg_vol *vol, unsigned int slot);
	void (*acknowledge)(struct sg_vol *vol);
	int (*freeze_watch)(struct sg_vol *vol);
	void (*follow)(struct sg_vol *vol);
	int (*reclaim)(struct sg_vol *vol, unsigned int budget);
	int (*grow_ledger)(struct sg_vol *vol);
	bool (*more_space)(struct sg_vol *vol, struct sg_nospace *nospace);
	int (*evict)(struct sg_vol *vol, const struct sg_iref *ref);
	int (*replay_log)(const struct sg_replay *r, const struct sg_word *log, unsigned int n,
			  unsigned int seqs);
};
extern const struct sg_upcalls sg_upcalls;

/* --- geometry and superblock (superblock.c) ------------------------------------------------ */

/*
 * Computes the offsets of @sb from size, areas and chunk_cap. -EINVAL: no volume can have these
 * values.
 */
int sg_geometry(struct sg_super *sb);
/*
 * Reports whether a volume of @size bytes may begin at @phys. sg_refuse_base() returns -EINVAL with
 * the reason if it may not.
 */
bool sg_base_fits(u64 size, u64 phys);
int sg_refuse_base(u64 size, u64 phys, char why[200]);
static inline bool sg_is_moving(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_MOVING;
}
/*
 * Reports whether all software that uses the volume can replay a log; volumes made by earlier
 * versions are also used by software that cannot.
 */
static inline bool sg_knows_atomic(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_ATOMIC;
}
bool sg_super_crc_wrong(const struct sg_super *sb);
void sg_super_sign(struct sg_super *sb);
/*
 * Reads the superblock again, for a system that has just got a slot. Since sg_open(), another
 * system may have had exclusive access and moved the volume. -EAGAIN: this system's copy of the
 * superblock is old.
 */
int sg_super_recheck(struct sg_vol *vol);
/*
 * Compares @sb with the superblock that sg_open() read. 0: base and features are the same; size or
 * label may differ. Otherwise -EAGAIN, with vol->why.
 */
int sg_super_compare(struct sg_vol *vol, const struct sg_super *sb);
/* Reports whether a complete superblock of this volume with this @size is at @off. */
bool sg_super_read(const struct sg_vol *vol, u64 off, u64 size, struct sg_super *out);
void sg_super_store(struct sg_vol *vol, u64 off, struct sg_super *sb);	/* durable on return */

static inline u64 sg_slot_off(const struct sg_vol *vol, unsigned int slot)
{
	return vol->sb.slot_off + slot * sizeof(struct sg_slot);
}

static inline u64 sg_area_off(const struct sg_vol *vol, unsigned int slot, unsigned int area)
{
	return vol->sb.journal_off + ((u64)slot * vol->sb.areas + area) * sizeof(struct sg_area);
}

/* Reports whether @off lies in the record part (head, crc, lock, words) of a transaction area. */
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

static inline bool sg_is_still(const struct sg_vol *vol)
{
	return sg_load64(&vol->still.closed);
}
/* --- checked access to volume bytes (D10) -------------------------------------------------- */

/*
 * sg_size() returns the volume's size as this system last read it: the system takes only pages
 * below it. sg_bound() returns the bound: no reference leads beyond it. They are equal, except that
 * the bound is larger while the volume grows (volume_grow.c). Both may grow at any time, and never
 * shrink.
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

/* Reports whether [off, off + len) lies inside the volume. */
static inline bool sg_inside(const struct sg_vol *vol, u64 off, u64 len)
{
	u64 bound = sg_bound(vol);

	return len <= bound && off <= bound - len;
}

/*
 * Returns the offset of the copy of a system inode's root word and record count. It is behind the
 * backup superblock (struct sg_last).
 */
static inline u64 sg_sys_copy_at(u64 size, unsigned int which)
{
	return size - SG_PAGE + offsetof(struct sg_last, sys) + which * sizeof(struct sg_sys_copy);
}
static inline u64 sg_sys_copy_off(const struct sg_vol *vol, unsigned int which)
{
	return sg_sys_copy_at(sg_size(vol), which);
}

/* Reports whether @off is a page that the allocator can take: aligned, inside the data area. */
static inline bool sg_data_place(const struct sg_vol *vol, u64 off)
{
	return !(off & (SG_PAGE - 1)) && off >= vol->sb.data_off && off < sg_bound(vol) - SG_PAGE;
}

static inline bool sg_data_range(const struct sg_vol *vol, u64 off, u64 pages)
{
	return sg_data_place(vol, off) && pages <= (sg_bound(vol) - SG_PAGE - off) >> SG_PAGE_SHIFT;
}

/* Returns the address of @off, which the caller has checked. */
static inline void *sg_at(const struct sg_vol *vol, u64 off)
{
	SG_ASSERT(sg_inside(vol, off, 8));
	return vol->base + off;
}

static inline u64 sg_get(const struct sg_vol *vol, u64 off)
{
	return sg_load64(sg_at(vol, off));
}

/* As sg_data_place(), for a page that the caller reads. Also returns false for a bad page. */
static inline bool sg_data_page(const struct sg_vol *vol, u64 off)
{
	return sg_data_place(vol, off) && (!sg_has_bad(vol) || !sg_is_bad(vol, off, 1));
}

/* --- bad pages (bad_pages.c) --------------------------------------------------------------- */

/* Sets the bits of the chunk's bad pages in @map, and clears none. */
void sg_bad_mask(const struct sg_vol *vol, u64 chunk, u64 map[SG_CHUNK_PAGES / 64]);
/* returns the number of bad pages that are not in use */
u64 sg_bad_free(const struct sg_vol *vol);
/*
 * Reports whether the list of a volume, if there is a volume, has that page; for callers that have
 * not opened it yet.
 */
bool sg_bad_listed(const void *base, u64 off);
/* Chooses the word that sg_has_bad() loads; for a caller that has just set vol->base. */
void sg_bad_watch(struct sg_vol *vol);
/*
 * If the list has changed, updates this system's state that depends on the list. The caller may
 * hold any lock.
 */
void sg_bad_look(struct sg_vol *vol);

/* --- may the volume be written, is it damaged (access.c) ----------------------------------- */

/*
 * Reports damage: logs once with inode and offset, sets hot.errors if this system may write, calls
 * vol->on_damage. Returns -EUCLEAN, so that callers write `return sg_damaged(...)`.
 */
int sg_damaged(const struct sg_vol *vol, u64 ino, u64 off, const char *what);

/*
 * Returns 0 if this system has a slot and still owns it; otherwise -EROFS (no slot) or -EIO
 * (fenced).
 */
int sg_is_member(const struct sg_vol *vol);
/* As sg_is_member(); also checks that the volume may be changed now. */
int sg_may_write(const struct sg_vol *vol);
/* Returns true if the slot's state word is still the one with which this system joined. */
static inline bool sg_is_ours(const struct sg_vol *vol)
{
	return sg_load64(vol->state) == vol->alive;
}
/*
 * Makes this system store nothing from now on, because the slot's state word has changed. Returns
 * -EIO.
 */
int sg_declared_dead(const struct sg_vol *vol);
/*
 * Reports whether @err means that only pages of one inode or object are bad, and this system
 * continues.
 */
static inline bool sg_is_bad_memory(const struct sg_vol *vol, int err)
{
	return err == -EIO && sg_is_ours(vol) && !sg_load64(&vol->shut_down);
}
/* Makes sg_is_ours() false, from now on without a load of the slot. */
static inline void sg_stop_state(struct sg_vol *vol)
{
	sg_store64(&vol->stopped, ~vol->alive);
	*(const u64 *volatile *)&vol->state = &vol->stopped;
}
/*
 * Reports whether this system must store nothing, because the slot's bits, in inodes and elsewhere,
 * may now belong to the next owner.
 */
static inline bool sg_is_silenced(const struct sg_vol *vol)
{
	return sg_load64(&vol->shut_down) || (!sg_is_ours(vol) && sg_declared_dead(vol));
}

/* Reports whether this thread is in sg_settle(). */
static inline bool sg_is_settler(const struct sg_vol *vol)
{
	return sg_load64(&vol->settler) == sg_self();
}

/*
 * Reports whether another thread has ended this thread's sg_settle() by sg_settle_stop(). The waits
 * and loops of sg_settle() check this.
 */
static inline bool sg_settle_ends(const struct sg_vol *vol)
{
	return sg_load64(&vol->settle_stop) && sg_is_settler(vol);
}

/* Reports whether a wait must end with -EINTR because of other threads here, without a signal. */
static inline bool sg_wait_ends(const struct sg_vol *vol)
{
	return sg_settle_ends(vol) || (vol->gives_way && vol->gives_way(vol));
}

/*
 * Decides what a call does that has found no space. 0: it tries again. -EINTR: the thread must give
 * way.
 */
static inline int sg_space_again(struct sg_vol *vol, struct sg_nospace *nospace)
{
	if (vol->up->more_space(vol, nospace))
		return 0;
	return nospace->gives_way ? -EINTR : -ENOSPC;
}

/*
 * Adds to a counter of the statistics. Never stores half a word, but is deliberately not exact
 * across CPUs.
 */
static inline void sg_count(u64 *counter, u64 n)
{
	sg_store64(counter, sg_load64(counter) + n);
}

/*
 * Lets other threads run now and then, in a loop whose length a hostile member can choose. The loop
 * calls it on each turn, with no spin lock held. Returns -EINTR if the calling thread is being
 * killed.
 */
#define SG_TURNS	1024
static inline int sg_turn(u64 *turns)
{
	if (++*turns % SG_TURNS)
		return 0;
	sg_yield();
	return sg_interrupted() ? -EINTR : 0;
}

/* --- the mount table (slots.c) ------------------------------------------------------------- */

u64 *sg_state_word(const struct sg_vol *vol, unsigned int slot);
bool sg_owner_live(const struct sg_vol *vol, unsigned int slot, u32 inc);
u64 sg_slots_taken(const struct sg_vol *vol);	/* one bit for each slot that is not free */
bool sg_holds_alone(const struct sg_vol *vol);	/* this system has exclusive access */
/* another live system has exclusive access */
bool sg_is_taken_alone(const struct sg_vol *vol);
void sg_make_legible(char *name, size_t len);	/* replaces bytes that are not printable */
void sg_first_beat(struct sg_vol *vol);
/* Reports whether this system was fenced or set back. A joiner has no slot yet. */
static inline bool sg_is_fenced(const struct sg_vol *vol)
{
	return vol->slot >= 0 && sg_load64_acquire(vol->state) != vol->alive;
}

/* --- fresh pages (access.c) ---------------------------------------------------------------- */

/*
 * Store bytes of pages that no other system can see yet, because the running transaction allocated
 * them. The stores are immediate, and write-back starts. The commit's first fence makes the bytes
 * durable before the words that publish them.
 */
void sg_fresh_write(struct sg_vol *vol, u64 off, const void *src, u64 len);
void sg_fresh_zero(struct sg_vol *vol, u64 off, u64 len);
/* does not start write-back: the caller calls sg_wb() for the page */
void sg_fresh_set(struct sg_vol *vol, u64 off, u64 val);

#endif
