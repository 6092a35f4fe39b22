// SPDX-License-Identifier: GPL-2.0
/* What all systems share: superblocks, hot page, mount table, transaction areas, locks. */
#include "check.h"

/* --- superblocks --------------------------------------------------------------------------- */

static void check_copy(struct sg_ck *c, u64 off, const char *which)
{
	if (memcmp(sg_at(&c->vol, off), &c->vol.sb, sizeof(c->vol.sb)) &&
	    ck_found(c, CK_SAFE, 0, off, "the %s is damaged or old", which)) {
		sg_os_write(sg_at(&c->vol, off), &c->vol.sb, sizeof(c->vol.sb));
		sg_wb(sg_at(&c->vol, off), sizeof(c->vol.sb));
		sg_fence();
	}
}

/* sg_open() has taken the better of the two; one at a time, so that one is good at any moment. */
void ck_super(struct sg_ck *c)
{
	check_copy(c, 0, "superblock");
	check_copy(c, c->vol.size - SG_PAGE, "backup superblock");
}

/* --- hot page and mount table -------------------------------------------------------------- */

/* A word that claims an incarnation to come would be a lock that its holder never took. */
void ck_lock(struct sg_ck *c, u64 ino, u64 off)
{
	u64 word = ck_get(c, off);

	if (!word || (SG_LOCK_SLOT(word) < SG_SLOTS && !(word >> 41) &&
		      SG_LOCK_INC(word) <= ck_get(c, SG_HOT(incarnation))))
		return;
	if (ck_found(c, CK_SAFE, ino, off, "a lock held by nobody (0x%llx)", CK_U(word)))
		ck_set(c, off, 0);
}

void ck_hot(struct sg_ck *c)
{
	ck_lock(c, 0, SG_HOT(rename_lock));
	ck_lock(c, 0, SG_HOT(inode_lock));
	ck_lock(c, 0, SG_HOT(slot_lock));
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
		    ck_found(c, CK_ASK, 0, off, "slot %u of the mount table makes no sense", slot))
			ck_set(c, off, SG_SLOT_WORD(SG_SLOT_DEAD, SG_SLOT_INC(word)));
		if (SG_SLOT_INC(word) > newest &&
		    ck_found(c, CK_SAFE, 0, SG_HOT(incarnation),
			     "slot %u has incarnation %u, the newest is %llu", slot,
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

	for (chunk = 0; chunk < c->vol.sb.chunks; chunk++)
		ck_lock(c, 0, sg_chunk_off(&c->vol, chunk));
}
