// SPDX-License-Identifier: GPL-2.0
/*
 * Structures that all systems share: superblocks, hot page, mount table, transaction areas, locks.
 */
#include "check.h"

/* --- superblocks --------------------------------------------------------------------------- */

static void check_copy(struct sg_ck *c, u64 off, const char *which)
{
	if (memcmp(sg_at(&c->vol, off), &c->vol.sb, sizeof(c->vol.sb)) &&
	    ck_found(c, CK_SAFE, 0, off, "the %s is damaged or old", which) && ck_is_ours(c)) {
		sg_os_write(sg_at(&c->vol, off), &c->vol.sb, sizeof(c->vol.sb));
		sg_wb(sg_at(&c->vol, off), sizeof(c->vol.sb));
		sg_fence();
	}
}

/*
 * Repairs the superblocks; sg_open() has chosen the better of the two. The engine stores one at a
 * time, so that one is always valid. After growth the first superblock may be older; the next
 * joiner updates it.
 */
void ck_super(struct sg_ck *c)
{
	if (SG_SIZE_OF(ck_get(c, SG_HOT(grow))) != sg_size(&c->vol))
		check_copy(c, 0, "superblock");
	check_copy(c, sg_size(&c->vol) - SG_PAGE, "backup superblock");
}

/* --- complete a move to another base ------------------------------------------------------- */

int ck_end_move(struct sg_ck *c, void *base, u64 size)
{
	const struct sg_check_opts *o = c->opts;
	const struct sg_relocate_opts opts = {
		.phys = SG_BASE_BEGUN, .id = ck_identity(c), .wait_ms = o->wait_ms,
		.force = o->force, .owner = o->owner, .holding = o->holding,
		.flush = o->flush, .relieve = o->relieve, .progress = o->progress, .ctx = o->ctx,
	};
	struct sg_relocate_result moved;
	int err = sg_relocate(base, size, &opts, &moved);

	if (err) {
		memcpy(c->vol.why, moved.why, sizeof(c->vol.why));
		return err;
	}
	sg_snprintf(c->line, sizeof(c->line), "was half moved to base 0x%llx", CK_U(moved.to));
	if (o->report)
		o->report(o->ctx, c->line, 0, 0, true);
	c->was_moving = true;
	return 0;
}

/* --- hot page and mount table -------------------------------------------------------------- */

/* Checks a lock word: an incarnation that was never assigned cannot be that of a holder. */
void ck_lock(struct sg_ck *c, u64 ino, u64 off)
{
	u64 word = ck_get(c, off);

	if (!word || (SG_LOCK_SLOT(word) < SG_SLOTS && !(word & ~SG_LOCK_BITS) &&
		      SG_LOCK_INC(word) <= ck_get(c, SG_HOT(incarnation))))
		return;
	if (ck_found(c, CK_SAFE, ino, off, "a lock has no holder (0x%llx)", CK_U(word)))
		ck_set(c, off, 0);
}

/*
 * Checks the words about growth. An announcement of a system that died while it grew the volume may
 * remain, and is harmless.
 */
static void check_growth(struct sg_ck *c)
{
	u64 size = ck_get(c, SG_HOT(size)), grow = ck_get(c, SG_HOT(grow));

	if (size && size != sg_size(&c->vol) &&
	    ck_found(c, CK_SAFE, 0, SG_HOT(size), "the recorded size is invalid: %llu bytes",
		     CK_U(size)))
		ck_set(c, SG_HOT(size), 0);
	if (SG_SIZE_OF(grow) > c->vol.sb.chunk_cap << SG_CHUNK_SHIFT &&
	    ck_found(c, CK_SAFE, 0, SG_HOT(grow), "the recorded target of a growth is invalid: %llu bytes",
		     CK_U(SG_SIZE_OF(grow))))
		ck_set(c, SG_HOT(grow), 0);
}

/*
 * Clears a freeze of a system that died, or a freeze in a copied volume, because no system is
 * frozen for it.
 */
static void check_freeze(struct sg_ck *c)
{
	u64 word = ck_get(c, SG_HOT(freeze));

	if (SG_FREEZE_LIMIT(word) > SG_FREEZE_MAX_MS &&
	    ck_found(c, CK_SAFE, 0, SG_HOT(freeze), "a freeze of %u ms is requested",
		     SG_FREEZE_LIMIT(word)))
		ck_set(c, SG_HOT(freeze), SG_FREEZE(0, SG_FREEZE_NR(word)));
}

/*
 * Checks the list of bad pages. A bad page is no damage, but an entry outside the volume is
 * invalid.
 */
static void check_bad(struct sg_ck *c)
{
	u64 bads = ck_get(c, SG_HOT(bads)), i;

	if (SG_BADS_USED(bads) > SG_BAD_MAX &&
	    ck_found(c, CK_SAFE, 0, SG_HOT(bads), "the list of bad memory has %u entries",
		     SG_BADS_USED(bads)))
		ck_set(c, SG_HOT(bads), SG_BADS(SG_BAD_MAX, SG_BADS_CHANGES(bads) + 1));
	for (i = 0; i < SG_BAD_MAX; i++) {
		u64 at = SG_HOT(bad) + i * 8, w = ck_get(c, at);

		if (!w || (i < SG_BADS_USED(bads) && SG_BAD_VALID(w) &&
			   SG_BAD_PAGE(w) + SG_BAD_COUNT(w) <= sg_size(&c->vol) / SG_PAGE))
			continue;
		if (ck_found(c, CK_SAFE, 0, at, "an entry of the list of bad memory is invalid"))
			ck_set(c, at, 0);
	}
}

void ck_hot(struct sg_ck *c)
{
	ck_lock(c, 0, SG_HOT(rename_lock));
	ck_lock(c, 0, SG_HOT(inode_lock));
	ck_lock(c, 0, SG_HOT(slot_lock));
	ck_lock(c, 0, SG_HOT(grow_lock));
	ck_lock(c, 0, SG_HOT(freeze_lock));
	check_growth(c);
	check_freeze(c);
	check_bad(c);
	if (ck_get(c, SG_HOT(errors)) &&
	    ck_found(c, CK_SAFE, ck_get(c, SG_HOT(error_ino)), SG_HOT(errors),
		     "damage was seen while in use, %llu times", CK_U(ck_get(c, SG_HOT(errors))))) {
		ck_set(c, SG_HOT(errors), 0);
		ck_set(c, SG_HOT(error_ino), 0);
	}
}

bool ck_slot_taken(const struct sg_ck *c, unsigned int slot)
{
	u64 word = ck_get(c, sg_slot_off(&c->vol, slot) + offsetof(struct sg_slot, state));

	return (int)slot != c->vol.slot && SG_SLOT_STATE(word) != SG_SLOT_FREE;
}

void ck_slots(struct sg_ck *c)
{
	unsigned int slot;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		u64 off = sg_slot_off(&c->vol, slot) + offsetof(struct sg_slot, state);
		u64 word = ck_get(c, off), newest = ck_get(c, SG_HOT(incarnation));

		if (SG_SLOT_STATE(word) > SG_SLOT_RECOVERING &&
		    ck_found(c, CK_ASK, 0, off, "slot %u of the mount table is invalid", slot))
			ck_set(c, off, SG_SLOT_WORD(SG_SLOT_DEAD, SG_SLOT_INC(word)));
		if (SG_SLOT_INC(word) > newest &&
		    ck_found(c, CK_SAFE, 0, SG_HOT(incarnation),
			     "slot %u has incarnation %u, but the newest is %llu", slot,
			     SG_SLOT_INC(word), CK_U(newest)))
			ck_set(c, SG_HOT(incarnation), SG_SLOT_INC(word));
	}
}

/* --- transaction areas and chunks ---------------------------------------------------------- */

void ck_areas(struct sg_ck *c)
{
	unsigned int slot, i;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		for (i = 0; i < c->vol.sb.areas; i++) {
			u64 off = sg_area_off(&c->vol, slot, i);

			ck_lock(c, 0, off + offsetof(struct sg_area, lock));
			if (ck_slot_taken(c, slot) || !ck_get(c, off))
				continue;
			if (ck_found(c, CK_SAFE, 0, off,
				     "a transaction of a system that has left (slot %u)", slot))
				ck_set(c, off, 0);
		}
	}
}

void ck_chunk_locks(struct sg_ck *c)
{
	u64 chunk;

	for (chunk = 0; chunk < sg_chunks(&c->vol); chunk++)
		ck_lock(c, 0, sg_chunk_off(&c->vol, chunk));
}
