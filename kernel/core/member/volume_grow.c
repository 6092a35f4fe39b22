// SPDX-License-Identifier: GPL-2.0
/*
 * Growth in place, while other systems use the volume. docs/protocol.md, section 7.
 *
 * A store of one word, hot.size, in a transaction, makes the space behind the volume a part of it.
 * Before that, all live systems have answered that they have memory for the new part and accept
 * references to it. They have also ended all operations that began earlier. Afterwards, the first
 * system that notices the growth writes the first superblock.
 */
#include "internal.h"

#define PIECE		(64ULL << 10)	/* number of bytes of the chunk table to make at a time */
#define STEP		256u		/* number of bytes to clear between checks for a fence */
#define LOOK_US		500		/* between checks of systems that have not answered */
/* attempts at a changing size; only a hostile member makes more necessary */
#define JOIN_LOOKS	10
#define MIB_OF(bytes)	((unsigned long long)(bytes) >> 20)

/* Raises a word to @to; it never becomes smaller, in whatever order threads store it. */
static void raise(u64 *word, u64 to)
{
	u64 seen = sg_load64(word), was;

	for (; seen < to; seen = was) {
		was = sg_cas64(word, seen, to);
		if (was == seen)
			return;
	}
}

static struct sg_slot *volume_grow_slot_at(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, sg_slot_off(vol, slot));
}

static u64 grow_word(const struct sg_vol *vol)
{
	return sg_load64_acquire(sg_at(vol, SG_HOT(grow)));
}

static u64 hot_size(const struct sg_vol *vol)
{
	return sg_load64_acquire(sg_at(vol, SG_HOT(size)));
}

static u64 most(const struct sg_vol *vol)
{
	return vol->sb.chunk_cap << SG_CHUNK_SHIFT;
}

/* Returns the bytes of memory that this system has for the volume; @want bytes are requested. */
static u64 room_for(struct sg_vol *vol, u64 want)
{
	if (vol->reach && sg_load64(&vol->room) < want)
		raise(&vol->room, vol->reach(vol) & ~(SG_VOLUME_ALIGN - 1));
	return sg_load64(&vol->room);
}

/* --- follow --------------------------------------------------------------------------------- */

/*
 * Adopts a new size of the volume. A grower stores a size only after this system has answered that
 * it has memory for that size.
 */
static void take_size(struct sg_vol *vol, u64 size)
{
	if (size % SG_VOLUME_ALIGN || size > sg_bound(vol) || size > most(vol)) {
		sg_damaged(vol, 0, SG_HOT(size), "invalid size of the volume");
		return;
	}
	raise(&vol->sb.size, size);
	raise(&vol->sb.chunks, size >> SG_CHUNK_SHIFT);
}

static void say_how_far(struct sg_vol *vol)
{
	struct sg_slot *own = volume_grow_slot_at(vol, (unsigned int)vol->slot);
	u64 memory = SG_SIZE_WORD(sg_load64(&vol->room), vol->incarnation);
	u64 reach = SG_SIZE_WORD(sg_bound(vol), vol->incarnation);

	if (!sg_is_ours(vol))
		return;
	if (sg_load64(&own->memory) != memory)
		sg_store64(&own->memory, memory);
	if (sg_load64(&own->reach) != reach)
		sg_store64_release(&own->reach, reach);
}

/*
 * Answers the announcement @grow. From here on this system accepts references to the new part,
 * before any exists.
 */
static void answer(struct sg_vol *vol, u64 grow)
{
	struct sg_slot *own = volume_grow_slot_at(vol, (unsigned int)vol->slot);
	u64 want = SG_SIZE_OF(grow);

	if (sg_load64(&own->cannot) == grow)
		return;
	if (want <= most(vol) && want <= room_for(vol, want))
		raise(&vol->size, want);
	say_how_far(vol);
	if (want > sg_bound(vol) && sg_is_ours(vol))
		sg_store64_release(&own->cannot, grow);
}

static void follow_size(struct sg_vol *vol)
{
	u64 known = sg_size(vol), size = hot_size(vol);

	if (size > known)
		take_size(vol, size);
}

/* Returns the current announcement, after answering it. */
static u64 follow_grow(struct sg_vol *vol)
{
	u64 grow = grow_word(vol);

	if (SG_SIZE_OF(grow) > sg_size(vol))
		answer(vol, grow);
	return grow;
}

void sg_follow(struct sg_vol *vol)
{
	if (vol->slot < 0 || vol->steady || sg_has_stopped(vol))
		return;
	follow_size(vol);
	follow_grow(vol);
}

u64 sg_size_now(struct sg_vol *vol)
{
	sg_follow(vol);
	return sg_size(vol);
}

/* --- join ----------------------------------------------------------------------------------- */

static int volume_grow_cut_short(struct sg_vol *vol, u64 size)
{
	sg_snprintf(vol->why, sizeof(vol->why),
		    "cut short: the volume has grown to %llu MiB, and only %llu are here",
		    MIB_OF(size), MIB_OF(sg_load64(&vol->room)));
	return -EUCLEAN;
}

/*
 * Checks the superblock at the new end, which is the valid backup from now on. It must not differ
 * in the fields that sg_open() has checked. The volume may also have been moved, or a hostile
 * member may have written these bytes.
 */
int sg_size_take(struct sg_vol *vol, u64 size)
{
	struct sg_super sb;
	int err;

	if (size <= vol->sb.size || size % SG_VOLUME_ALIGN || size > most(vol))
		return 0;
	if (size > room_for(vol, size))
		return volume_grow_cut_short(vol, size);
	if (!sg_super_read(vol, size - SG_PAGE, size, &sb))
		return 0;	/* no growth made this size: fsck reports it */
	err = sg_super_compare(vol, &sb);
	if (err)
		return err;
	vol->sb = sb;
	raise(&vol->size, size);
	return 0;
}

/*
 * Reports whether the grower is live. The joiner recovers a dead one, then checks whether the
 * growth is complete.
 */
static bool grower_lives(const struct sg_vol *vol)
{
	u64 word = sg_get(vol, SG_HOT(grow_lock.word));

	return word && sg_owner_live(vol, SG_LOCK_SLOT(word), SG_LOCK_INC(word));
}

int sg_size_join(struct sg_vol *vol)
{
	unsigned int turn;
	u64 size, grow;
	int err;

	/*
	 * A grower may have read the slots before this one was LIVE. The grower may then store the
	 * size and clear the announcement between the two loads here. In that case, load the size
	 * again.
	 */
	for (turn = 0; turn < JOIN_LOOKS; turn++) {
		size = hot_size(vol);
		err = sg_size_take(vol, size);
		if (err || vol->slot < 0)
			return err;
		/* one word has both, so any later grower waits for this system's answer */
		grow = follow_grow(vol);
		if (hot_size(vol) == size)
			break;
	}
	follow_size(vol);
	say_how_far(vol);
	if (SG_SIZE_OF(grow) <= sg_bound(vol) || !grower_lives(vol))
		return 0;
	/* the grower has not seen this system, or sees that it has too little memory */
	sg_snprintf(vol->why, sizeof(vol->why),
		    "the volume is growing to %llu MiB, and only %llu are here: try again",
		    MIB_OF(SG_SIZE_OF(grow)), MIB_OF(sg_load64(&vol->room)));
	return -EBUSY;
}

/* --- limits of all live systems ------------------------------------------------------------- */

/**
 * struct growth - a growth in progress; grow_lock is held
 * @from, @to: sizes. @word: hot.grow, its announcement.
 * @why: text for the user.
 */
struct growth {
	struct sg_vol *vol;
	u64 from, to, word;
	char *why;
};

/* Returns the size to which a system could follow; ~0: the system has not stored it. */
static u64 memory_of(const struct sg_vol *vol, unsigned int slot)
{
	u64 state = sg_load64_acquire(sg_state_word(vol, slot));
	u64 memory = sg_load64(&volume_grow_slot_at(vol, slot)->memory);

	if (SG_SLOT_STATE(state) != SG_SLOT_LIVE || SG_SIZE_NR(memory) != SG_SLOT_INC(state))
		return ~0ULL;
	return SG_SIZE_OF(memory);
}

/*
 * Returns the least memory of another system, and that system in *who; SG_SLOTS: all have at least
 * @least.
 */
static u64 limit_of_others(const struct sg_vol *vol, u64 least, unsigned int *who)
{
	unsigned int i;

	*who = SG_SLOTS;
	for (i = 0; i < SG_SLOTS; i++) {
		u64 memory = memory_of(vol, i);

		if ((int)i == vol->slot || memory >= least)
			continue;
		least = memory;
		*who = i;
	}
	return least;
}

/*
 * Returns the limit of growth, and in *who the system that causes it; SG_SLOTS: only the volume
 * itself.
 */
static u64 limit(struct sg_vol *vol, unsigned int *who)
{
	return limit_of_others(vol, SG_MIN(room_for(vol, most(vol)), most(vol)), who);
}

u64 sg_grow_limit(struct sg_vol *vol)
{
	unsigned int who;

	return sg_has_stopped(vol) ? sg_size(vol) : SG_MAX(limit(vol, &who), sg_size(vol));
}

static bool in_the_way(const struct sg_vol *vol, unsigned int who, u64 least, char why[200])
{
	struct sg_slot slot;

	if (who == SG_SLOTS || sg_slot_read(vol, who, &slot))
		return false;
	sg_snprintf(why, 200, "no more than %llu MiB while %.60s (slot %u) uses the volume: "
		    "it has no memory beyond; unmount it there first", MIB_OF(least), slot.name,
		    who);
	return true;
}

int sg_grow_ask(const struct sg_vol *vol, u64 size, char why[200])
{
	unsigned int who;
	u64 least;

	why[0] = 0;
	if (sg_has_stopped(vol))
		return -EIO;
	least = limit_of_others(vol, size & ~(SG_VOLUME_ALIGN - 1), &who);
	return in_the_way(vol, who, least, why) ? -EBUSY : 0;
}

static int volume_grow_too_large(struct growth *g)
{
	unsigned int who;
	u64 least = limit(g->vol, &who);

	if (in_the_way(g->vol, who, least, g->why))
		return -EBUSY;
	if (least == most(g->vol))
		sg_snprintf(g->why, 200, "no more than %llu MiB: the volume's metadata has no room "
			    "for more (mkfs.stargatefs --max-size)", MIB_OF(least));
	else
		sg_snprintf(g->why, 200, "no more than %llu MiB: this system has no memory beyond",
			    MIB_OF(least));
	return -ENOSPC;
}

/* --- ask the other systems ------------------------------------------------------------------ */

static void store_grow(struct sg_vol *vol, u64 word)
{
	u64 *grow = sg_at(vol, SG_HOT(grow));

	sg_store64_release(grow, word);
	sg_wb(grow, 8);
	sg_fence();
	/* either a joiner sees this word, or this system sees the joiner */
	sg_full_fence();
	sg_doorbell_ring_all(vol);
}

static void announce(struct growth *g)
{
	g->word = SG_SIZE_WORD(g->to, SG_SIZE_NR(grow_word(g->vol)) + 1);
	store_grow(g->vol, g->word);
	sg_follow(g->vol);
}

static void end_announcement(struct sg_vol *vol)
{
	if (!sg_may_write(vol))
		store_grow(vol, SG_SIZE_WORD(0, SG_SIZE_NR(grow_word(vol))));
}

/*
 * Returns the slot of a live system without memory for @g->to; SG_SLOTS: there is none. A system
 * that has answered so comes before one that has not answered.
 */
static unsigned int somebody_behind(const struct growth *g, bool *cannot)
{
	unsigned int i, behind = SG_SLOTS;

	*cannot = false;
	for (i = 0; i < SG_SLOTS && !*cannot; i++) {
		const struct sg_slot *slot = volume_grow_slot_at(g->vol, i);
		u64 state = sg_load64_acquire(&slot->state), reach;

		if (SG_SLOT_STATE(state) != SG_SLOT_LIVE || (int)i == g->vol->slot)
			continue;
		reach = sg_load64_acquire(&slot->reach);
		if (SG_SIZE_NR(reach) == SG_SLOT_INC(state) && SG_SIZE_OF(reach) >= g->to)
			continue;
		behind = i;
		*cannot = sg_load64_acquire(&slot->cannot) == g->word;
	}
	return behind;
}

static int volume_grow_no_answer(struct growth *g, unsigned int who)
{
	struct sg_slot slot;

	sg_slot_read(g->vol, who, &slot);
	sg_snprintf(g->why, 200, "%.60s (slot %u) does not answer: is it paused, dead or too old? "
		    "The volume stays at %llu MiB", slot.name, who, MIB_OF(g->from));
	return -EAGAIN;
}

static int wait_for_answers(struct growth *g, u64 end)
{
	unsigned int who;
	bool cannot;
	int err;

	for (;;) {
		/* this check is first: the slots may now be on bad pages */
		err = sg_may_write(g->vol);
		if (err)
			return err;
		who = somebody_behind(g, &cannot);
		if (who == SG_SLOTS)
			return 0;
		if (cannot)
			return volume_grow_too_large(g);
		if (sg_interrupted())
			return -EINTR;
		if ((s64)(sg_ticks() - end) > 0)
			return volume_grow_no_answer(g, who);
		sg_epoch_urge(g->vol);
		sg_sleep_us(LOOK_US);
	}
}

/*
 * Waits two epochs, as in D7, until all operations have ended that had begun with the old bound.
 * Operations that begin from now on may find references to the new part.
 */
static int wait_for_ends(struct growth *g, u64 end)
{
	s64 left = (s64)(end - sg_ticks());

	if (sg_alone(g->vol))
		sg_quiesce(g->vol);
	if (sg_epoch_ends(g->vol, left > 0 ? (unsigned int)(left / 1000000) : 0))
		return 0;
	sg_snprintf(g->why, 200, "a system does not finish an operation (see stargatectl systems); "
		    "the volume stays at %llu MiB", MIB_OF(g->from));
	return sg_may_write(g->vol) ?: -EAGAIN;
}

/* --- the new part --------------------------------------------------------------------------- */

/*
 * Clears chunks. This system may be stopped here, fenced, and continue when another one has made
 * the volume grow, and the chunks are in use. So it loads each word, checks its slot, and swaps the
 * word. It writes back all words, because an earlier grower may have cleared words without
 * write-back.
 */
static int clear_words(struct sg_vol *vol, u64 off, u64 len)
{
	u64 *word = sg_at(vol, off), i, seen;

	for (i = 0; i < len / 8; i++) {
		seen = sg_load64(&word[i]);
		if (!seen)
			continue;
		sg_acquire_fence();
		if (sg_may_write(vol))
			return sg_may_write(vol);
		if (sg_cas64(&word[i], seen, 0) != seen)
			return sg_may_write(vol) ?: -EAGAIN;
	}
	sg_wb(word, len);
	return 0;
}

/* Makes the new chunks free; no system has read their entries in the table so far. */
static int make_chunks(struct growth *g)
{
	u64 off = sg_chunk_off(g->vol, g->from >> SG_CHUNK_SHIFT), n;
	u64 end = sg_chunk_off(g->vol, g->to >> SG_CHUNK_SHIFT);
	u64 *last = sg_at(g->vol, end - 8);
	int err;

	for (; off < end; off += n) {
		n = SG_MIN(end - off, PIECE - (off & (PIECE - 1)));
		err = clear_words(g->vol, off, n) ?: sg_may_write(g->vol);
		if (err)
			return err;
		sg_epoch_acknowledge(g->vol);
	}
	sg_cas64(last, 0, 1ULL << 63);		/* for the page of the backup superblock */
	sg_wb(last, 8);
	return 0;
}

/*
 * Checks both superblocks, because a growth copies each of them over the other one. Both must still
 * have the values that sg_open() has checked: a checksum gives no protection against a hostile
 * member.
 */
static bool reads_as_opened(struct sg_vol *vol, u64 off, u64 size, struct sg_super *out)
{
	return sg_super_read(vol, off, size, out) && !sg_super_compare(vol, out);
}

/*
 * Stores the old size. From then on the size says where the backup superblock is, even if this
 * growth fails. Only the first growth has to store it.
 */
static void note_size(const struct sg_vol *vol, u64 size)
{
	u64 *word = sg_at(vol, SG_HOT(size));

	if (sg_cas64(word, 0, size))
		return;
	sg_wb(word, 8);
	sg_fence();
}

/*
 * Clears the new last page. This system may be stopped here, fenced, and continue when another one
 * has made the volume grow further; the page is in use then. So this system checks its slot before
 * each step.
 */
static int clear_last(struct sg_vol *vol, u64 off)
{
	u64 at;
	int err = 0;

	for (at = 0; at < SG_PAGE && !err; at += STEP) {
		err = sg_may_write(vol);
		if (!err)
			sg_fresh_zero(vol, off + at, STEP);
	}
	return err ?: sg_may_write(vol);
}

/*
 * Stores the backup superblock in the new last page; it is valid as soon as the volume has grown.
 */
static int make_last(struct growth *g)
{
	struct sg_super sb;
	int err;

	if (!reads_as_opened(g->vol, 0, g->from, &sb)) {
		sg_snprintf(g->why, 200, "the superblock is damaged: run fsck.stargatefs");
		return -EUCLEAN;
	}
	sb.size = g->to;
	sb.chunks = g->to >> SG_CHUNK_SHIFT;
	sb.generation++;
	err = sg_may_write(g->vol);
	if (err)
		return err;
	note_size(g->vol, g->from);
	err = clear_last(g->vol, g->to - SG_PAGE);
	if (err)
		return err;
	sg_super_store(g->vol, g->to - SG_PAGE, &sb);
	return 0;
}

/*
 * Invalidates the backup superblock that a failed growth to @size has left. Otherwise a probe that
 * finds the first superblock damaged, and memory up to that backup, would assume that size. The
 * function swaps one word, because this system may be fenced meanwhile, and the page may then be in
 * use.
 */
static void forget_last(struct sg_vol *vol, u64 size)
{
	u64 *magic = sg_at(vol, size - SG_PAGE + offsetof(struct sg_super, magic));

	if (sg_bad_listed(vol->base, size - SG_PAGE) || sg_may_write(vol) ||
	    sg_cas64(magic, SG_MAGIC, 0) != SG_MAGIC)
		return;
	sg_wb(magic, 8);
	sg_fence();
}

/* --- the commit ----------------------------------------------------------------------------- */

/* Makes the old last page an ordinary free page. */
static void free_old_last(struct sg_tx *tx, u64 size)
{
	u64 chunk = sg_chunk_off(tx->vol, (size >> SG_CHUNK_SHIFT) - 1);
	u64 off = chunk + offsetof(struct sg_chunk, map) + 7 * sizeof(u64), map;

	if (sg_tx_wait_lock(tx, chunk + offsetof(struct sg_chunk, lock), sg_chunk_release))
		return;
	map = sg_tx_get(tx, off);
	if (!(map >> 63))
		sg_tx_fail(tx, sg_damaged(tx->vol, 0, off, "the last page is marked free"));
	sg_tx_set(tx, off, map & ~(1ULL << 63));
}

/*
 * Commits the growth. The record has only words of the old part, so a system that replays it needs
 * no memory for the new part. All locks under which the system inodes' root words change are held.
 * So the copies of these words remain right until the commit is complete.
 */
static int commit(struct growth *g)
{
	struct sg_vol *vol = g->vol;
	struct sg_tx *tx = sg_tx_begin(vol);

	sg_tx_wait_lock(tx, SG_HOT(inode_lock), NULL);
	if (!tx->err)
		free_old_last(tx, g->from);
	if (!tx->err)
		sg_sys_copies_write(vol, g->to);
	sg_tx_set(tx, SG_HOT(size), g->to);
	tx->free_pages += (s64)((g->to - g->from) >> SG_PAGE_SHIFT);
	return sg_tx_commit(tx);
}

static int commit_locked(struct growth *g)
{
	struct sg_iref sys[SG_SYS_COUNT];
	unsigned int n;
	int err = 0;

	for (n = 0; n < SG_SYS_COUNT && !err; n++) {
		sys[n] = sg_sys_ref(n);
		err = sg_ilock(g->vol, &sys[n]);
	}
	if (err)
		n--;
	else
		err = commit(g);
	while (n)
		sg_iunlock(g->vol, &sys[--n]);
	return err;
}

/* --- the rest ------------------------------------------------------------------------------- */

/*
 * Writes the size to the first superblock, too. Until then the backup is the valid one, and
 * hot.grow shows that.
 */
static void write_down(struct sg_vol *vol)
{
	u64 size = sg_size(vol);
	struct sg_super sb;

	if (sg_may_write(vol))
		return;
	if (!reads_as_opened(vol, size - SG_PAGE, size, &sb)) {
		sg_damaged(vol, 0, size - SG_PAGE, "invalid backup superblock");
		return;
	}
	sg_super_store(vol, 0, &sb);
	end_announcement(vol);
}

/* The volume has not grown to @size, for which this system may not have the memory. */
static void volume_grow_withdraw(struct sg_vol *vol, u64 size)
{
	if (size > sg_size(vol) && size % SG_VOLUME_ALIGN == 0 && size <= room_for(vol, size))
		forget_last(vol, size);
	end_announcement(vol);
}

/* Completes the growth of a system that died meanwhile. grow_lock is held. */
static void volume_grow_finish(struct sg_vol *vol)
{
	u64 size;

	if (!vol->steady)
		follow_size(vol);
	size = SG_SIZE_OF(grow_word(vol));
	if (size && size == sg_size(vol))
		write_down(vol);
	else if (size && size <= most(vol))
		volume_grow_withdraw(vol, size);
}

void sg_grow_settle(struct sg_vol *vol)
{
	if (vol->reach) {	/* for a caller that queries how large the volume could become */
		room_for(vol, most(vol));
		say_how_far(vol);
	}
	if (!SG_SIZE_OF(grow_word(vol)) || sg_may_write(vol) ||
	    !sg_trylock(vol, SG_HOT(grow_lock)))
		return;
	volume_grow_finish(vol);
	sg_unlock(vol, SG_HOT(grow_lock));
}

/* --- the whole growth ----------------------------------------------------------------------- */

static int refuse_size(struct growth *g)
{
	unsigned int who;

	if (!g->to)
		g->to = SG_MAX(limit(g->vol, &who), g->from);
	if (g->to < g->from) {
		sg_snprintf(g->why, 200, "a volume cannot shrink: it has %llu MiB",
			    MIB_OF(g->from));
		return -EINVAL;
	}
	if (g->to > most(g->vol) || g->to > room_for(g->vol, g->to))
		return volume_grow_too_large(g);
	return 0;
}

/*
 * Makes the volume grow. It makes the chunks before the announcement, because that may take a
 * while.
 */
static int volume_grow_to(struct growth *g, unsigned int wait_ms)
{
	u64 end;
	int err;

	raise(&g->vol->size, g->to);
	err = make_chunks(g);
	if (err)
		return err;
	announce(g);
	end = sg_ticks() + (wait_ms ?: SG_GROW_WAIT_MS) * 1000000ULL;
	err = wait_for_answers(g, end) ?: wait_for_ends(g, end) ?: make_last(g) ?:
	      commit_locked(g);
	if (err) {
		volume_grow_withdraw(g->vol, g->to);
		return err;
	}
	sg_follow(g->vol);
	write_down(g->vol);
	sg_log(g->vol->owner, SG_INFO, "the volume has grown from %llu to %llu MiB",
	       MIB_OF(g->from), MIB_OF(g->to));
	return 0;
}

int sg_grow(struct sg_vol *vol, u64 size, unsigned int wait_ms, char why[200])
{
	struct growth g = { .vol = vol, .to = size & ~(SG_VOLUME_ALIGN - 1), .why = why };
	int err = sg_may_write(vol);

	why[0] = 0;
	if (size && !g.to)
		g.to = SG_VOLUME_ALIGN;		/* too small, but not 0 */
	if (!err)
		err = sg_lock(vol, SG_HOT(grow_lock));
	if (!err) {
		volume_grow_finish(vol);
		g.from = sg_size(vol);
		err = refuse_size(&g);
		if (!err && g.to > g.from)
			err = volume_grow_to(&g, wait_ms);
		sg_unlock(vol, SG_HOT(grow_lock));
	}
	if (!err && g.to > g.from)
		sg_space_found(vol, g.from >> SG_CHUNK_SHIFT);
	if (err && !why[0])
		sg_snprintf(why, 200, err == -EROFS ? "the volume cannot be changed here" :
			    err == -EINTR ? "interrupted" : "error %d", -err);
	return err;
}
