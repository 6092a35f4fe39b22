/* SPDX-License-Identifier: GPL-2.0 */
/* What every layer stands on: bounds, words, slots, damage (docs/engine.md). */
#ifndef SG_BASE_H
#define SG_BASE_H

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

/**
 * struct sg_upcalls - what lower layers of the engine ask of higher ones (volume/open.c)
 * @recover_slot: the holder of a lock may be dead: recovers its slot.
 * @acknowledge: a thread waits, and no other thread acknowledges epochs meanwhile.
 * @stand: a transaction waits for the end of a freeze, and no other thread looks at it.
 * @follow: the volume may have grown.
 * @reclaim, @grow_ledger: a transaction needs room in the ledger.
 * @more_space: nothing is free.
 * @evict: an inode without a name has done its work.
 */
struct sg_upcalls {
	bool (*recover_slot)(struct sg_vol *vol, unsigned int slot);
	void (*acknowledge)(struct sg_vol *vol);
	int (*stand)(struct sg_vol *vol);
	void (*follow)(struct sg_vol *vol);
	int (*reclaim)(struct sg_vol *vol, unsigned int budget);
	int (*grow_ledger)(struct sg_vol *vol);
	bool (*more_space)(struct sg_vol *vol, struct sg_hunger *hunger);
	int (*evict)(struct sg_vol *vol, const struct sg_iref *ref);
};
extern const struct sg_upcalls sg_upcalls;

/* --- geometry and superblock (superblock.c) ------------------------------------------------ */

/* Fills the offsets of @sb from size, areas and chunk_cap; -EINVAL when they make no volume. */
int sg_geometry(struct sg_super *sb);
/* May a volume of @size bytes begin there? If not, says so: -EINVAL. */
bool sg_base_fits(u64 size, u64 phys);
int sg_refuse_base(u64 size, u64 phys, char why[200]);
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

static inline bool sg_is_still(const struct sg_vol *vol)
{
	return sg_load64(&vol->still.closed);
}
/* --- checked access to volume bytes (D10) -------------------------------------------------- */

/*
 * The volume's size, as far as we have heard: what we take pages from. And the bound that nothing
 * reaches beyond: the same, or more while it grows (volume_grow.c). Both only grow, at any time.
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

/* --- bad memory (bad_pages.c) -------------------------------------------------------------- */

/* Bits of the chunk's bad pages are set, none is cleared. */
void sg_bad_mask(const struct sg_vol *vol, u64 chunk, u64 map[SG_CHUNK_PAGES / 64]);
u64 sg_bad_free(const struct sg_vol *vol);	/* of them, those that nobody has */
/* For who knows nothing of the volume yet: its list, if it is one, has that page. */
bool sg_bad_listed(const void *base, u64 off);
/* For who has set vol->base: where sg_has_bad() looks. */
void sg_bad_watch(struct sg_vol *vol);
/* Has the list changed? Then what follows from it is done. Any lock may be held. */
void sg_bad_look(struct sg_vol *vol);

/* --- may it be written, is it damaged (access.c) ------------------------------------------- */

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

/* --- the mount table (slots.c) ------------------------------------------------------------- */

u64 *sg_state_word(const struct sg_vol *vol, unsigned int slot);
bool sg_owner_live(const struct sg_vol *vol, unsigned int slot, u32 inc);
u64 sg_slots_taken(const struct sg_vol *vol);	/* a bit per slot that is not free */
bool sg_holds_alone(const struct sg_vol *vol);	/* who takes a slot now goes no further */
void sg_make_legible(char *name, size_t len);	/* as text, for people */
void sg_first_beat(struct sg_vol *vol);
/* Fenced, or set back. A joiner has no slot yet. */
static inline bool sg_is_fenced(const struct sg_vol *vol)
{
	return vol->slot >= 0 && sg_load64_acquire(vol->state) != vol->alive;
}

/* --- fresh pages (access.c) ---------------------------------------------------------------- */

/*
 * Bytes of pages that nobody else can see yet (allocated by the running transaction): stored at
 * once, write-back started; commit's first fence makes them durable before the words that publish
 * them.
 */
void sg_fresh_write(struct sg_vol *vol, u64 off, const void *src, u64 len);
void sg_fresh_zero(struct sg_vol *vol, u64 off, u64 len);
void sg_fresh_set(struct sg_vol *vol, u64 off, u64 val); /* no write-back: sg_wb() the page after */

#endif
