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
/* Hot paths: functions to inline into them, and functions to keep out of them. */
#define SG_INLINE	inline __attribute__((always_inline))
#define SG_NOINLINE	__attribute__((__noinline__))
#define SG_ALIGN_UP(x, a)	(((x) + (a) - 1) & ~((u64)(a) - 1))

#define SG_HOT_OFF		SG_PAGE
#define SG_HOT(field)		(SG_HOT_OFF + offsetof(struct sg_hot, field))

/**
 * struct sg_upcalls - calls from lower layers of the engine to higher ones (volume/open.c)
 * @recover_slot: the holder of a lock may be dead: recovers its slot.
 * @acknowledge: a thread waits, and no other thread acknowledges epochs meanwhile.
 * @freeze_watch: a transaction waits for the end of a freeze, and no other thread looks for it.
 * @follow: the volume may have grown.
 * @reclaim, @grow_ledger: a transaction needs room in the ledger.
 * @more_space: no page is free.
 * @evict: an inode without a name is no longer needed.
 * @replay_log: a record has a log: @n words, behind the @seqs change counters of its inodes.
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

/* Fills the offsets of @sb from size, areas and chunk_cap; -EINVAL: they describe no volume. */
int sg_geometry(struct sg_super *sb);
/* May a volume of @size bytes begin at @phys? sg_refuse_base(): if not, -EINVAL with the reason. */
bool sg_base_fits(u64 size, u64 phys);
int sg_refuse_base(u64 size, u64 phys, char why[200]);
static inline bool sg_is_moving(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_MOVING;
}
/* Volumes of earlier versions are also used by software that could not replay a log. */
static inline bool sg_knows_atomic(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_ATOMIC;
}
bool sg_super_crc_wrong(const struct sg_super *sb);
void sg_super_sign(struct sg_super *sb);
/*
 * For a system that has just got a slot: another system may have had exclusive access since
 * sg_open(), and moved the volume. -EAGAIN: this system's copy of the superblock is old.
 */
int sg_super_recheck(struct sg_vol *vol);
/*
 * 0: @sb describes the volume as sg_open() found it, with the same base and features; it may have
 * another size or label. Otherwise -EAGAIN, with vol->why.
 */
int sg_super_compare(struct sg_vol *vol, const struct sg_super *sb);
/* At @off is a whole superblock of this volume, and its size is @size. */
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

/* @off lies in the record part (head, crc, lock, words) of a transaction area. */
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
 * The volume's size, as far as this system knows: it takes pages below it. The bound: no reference
 * leads beyond it. They are equal, except that the bound is larger while the volume grows
 * (volume_grow.c). Both only grow, at any time.
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

/*
 * Offset of the copy of a system inode's root word and record count, behind the backup superblock
 * (struct sg_last).
 */
static inline u64 sg_sys_copy_at(u64 size, unsigned int which)
{
	return size - SG_PAGE + offsetof(struct sg_last, sys) + which * sizeof(struct sg_sys_copy);
}
static inline u64 sg_sys_copy_off(const struct sg_vol *vol, unsigned int which)
{
	return sg_sys_copy_at(sg_size(vol), which);
}

/* A page that the allocator can take: aligned, inside the data area. */
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

/* Such a page, for reading: a bad page counts as no page. */
static inline bool sg_data_page(const struct sg_vol *vol, u64 off)
{
	return sg_data_place(vol, off) && (!sg_has_bad(vol) || !sg_is_bad(vol, off, 1));
}

/* --- bad pages (bad_pages.c) --------------------------------------------------------------- */

/* Sets the bits of the chunk's bad pages, clears none. */
void sg_bad_mask(const struct sg_vol *vol, u64 chunk, u64 map[SG_CHUNK_PAGES / 64]);
u64 sg_bad_free(const struct sg_vol *vol);	/* bad pages that are not in use */
/* For callers that have not opened the volume yet: its list, if it is one, has that page. */
bool sg_bad_listed(const void *base, u64 off);
/* For a caller that has set vol->base: sets the word that sg_has_bad() loads. */
void sg_bad_watch(struct sg_vol *vol);
/* If the list has changed, updates what depends on it. Any lock may be held. */
void sg_bad_look(struct sg_vol *vol);

/* --- may the volume be written, is it damaged (access.c) ----------------------------------- */

/*
 * Reports damage: logs once with inode and offset, sets hot.errors if this system may write, calls
 * vol->on_damage. Returns -EUCLEAN, so that callers write `return sg_damaged(...)`.
 */
int sg_damaged(const struct sg_vol *vol, u64 ino, u64 off, const char *what);

/* 0: this system has a slot and is live there; otherwise -EROFS (no slot) or -EIO (fenced). */
int sg_is_member(const struct sg_vol *vol);
/* As sg_is_member(), and may this volume be changed now? */
int sg_may_write(const struct sg_vol *vol);
/* True if the slot's state word is still the one with which this system joined. */
static inline bool sg_is_ours(const struct sg_vol *vol)
{
	return sg_load64(vol->state) == vol->alive;
}
/* The state word has changed: -EIO. From now on this system stores nothing. */
int sg_declared_dead(const struct sg_vol *vol);
/*
 * A call for one inode or object ended with @err: only pages of that one are bad, and this system
 * continues.
 */
static inline bool sg_is_bad_memory(const struct sg_vol *vol, int err)
{
	return err == -EIO && sg_is_ours(vol) && !sg_load64(&vol->shut_down);
}
/* From here on sg_is_ours() is false, without a load of the slot. */
static inline void sg_stop_state(struct sg_vol *vol)
{
	sg_store64(&vol->stopped, ~vol->alive);
	*(const u64 *volatile *)&vol->state = &vol->stopped;
}
/* The slot's bits, in inodes and elsewhere, may now belong to its next owner. */
static inline bool sg_is_silenced(const struct sg_vol *vol)
{
	return sg_load64(&vol->shut_down) || (!sg_is_ours(vol) && sg_declared_dead(vol));
}

/* This thread is in sg_settle(). */
static inline bool sg_is_settler(const struct sg_vol *vol)
{
	return sg_load64(&vol->settler) == sg_self();
}

/* For waits and loops of sg_settle(), which other threads may end (sg_settle_stop()). */
static inline bool sg_settle_ends(const struct sg_vol *vol)
{
	return sg_load64(&vol->settle_stop) && sg_is_settler(vol);
}

/* For waits that other threads here may end, although no signal kills the thread: -EINTR. */
static inline bool sg_wait_ends(const struct sg_vol *vol)
{
	return sg_settle_ends(vol) || (vol->gives_way && vol->gives_way(vol));
}

/* Statistics: whole words, but deliberately not exact across CPUs. */
static inline void sg_count(u64 *counter, u64 n)
{
	sg_store64(counter, sg_load64(counter) + n);
}

/*
 * For loops whose length a member can choose, because it can write the volume: call it on each
 * turn, with no spin lock held. Other threads get to run meanwhile. -EINTR: the calling thread is
 * being killed.
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
u64 sg_slots_taken(const struct sg_vol *vol);	/* a bit per slot that is not free */
bool sg_holds_alone(const struct sg_vol *vol);	/* a system that takes a slot now stops there */
bool sg_is_taken_alone(const struct sg_vol *vol);	/* by another live system */
void sg_make_legible(char *name, size_t len);	/* makes it text for people */
void sg_first_beat(struct sg_vol *vol);
/* Fenced, or set back. A joiner has no slot yet. */
static inline bool sg_is_fenced(const struct sg_vol *vol)
{
	return vol->slot >= 0 && sg_load64_acquire(vol->state) != vol->alive;
}

/* --- fresh pages (access.c) ---------------------------------------------------------------- */

/*
 * Bytes of pages that no other system can see yet (allocated by the running transaction). The store
 * is immediate and write-back starts. The commit's first fence makes them durable before the words
 * that publish them.
 */
void sg_fresh_write(struct sg_vol *vol, u64 off, const void *src, u64 len);
void sg_fresh_zero(struct sg_vol *vol, u64 off, u64 len);
/* no write-back: sg_wb() the page afterwards */
void sg_fresh_set(struct sg_vol *vol, u64 off, u64 val);

#endif
