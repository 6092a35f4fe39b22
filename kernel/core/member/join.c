// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving: a system takes a slot of the mount table, says who it is, and frees the slot
 * at the end. docs/protocol.md, section 1; recovery.c frees the slots of dead systems.
 */
#include "internal.h"

/* --- taking a slot ---------------------------------------------------------------------------- */

/*
 * Who has not said yet who it is, is fenced when it is silent for some seconds, though it may only
 * be paused (fence.c). Then the slot is the next one's, and the stores that are left must not reach
 * that one's words. So a system looks at its slot before each store. A word is swapped for what
 * stood there before the look: nobody stores an incarnation that has been replaced again.
 */
static void say_word(struct sg_vol *vol, u64 *word, u64 val)
{
	u64 seen;

	do {
		seen = sg_load64(word);
		if (seen == val || !sg_is_ours(vol))
			return;
	} while (sg_cas64(word, seen, val) != seen);
}

static void say_bytes(struct sg_vol *vol, void *to, const void *from, size_t len)
{
	if (sg_is_ours(vol))
		sg_os_write(to, from, len);
}

static void say_who(struct sg_vol *vol)
{
	struct sg_slot *slot = sg_at(vol, sg_slot_off(vol, (unsigned int)vol->slot));
	const struct sg_identity *id = &vol->id;

	say_bytes(vol, slot->machine, id->machine, 16);
	say_bytes(vol, slot->boot, id->boot, 16);
	say_bytes(vol, slot->name, id->name, sizeof(slot->name));
	say_bytes(vol, slot->version, id->version, sizeof(slot->version));
	say_word(vol, &slot->pid, id->pid);
	say_word(vol, &slot->beat_ns, id->beat_ns);
	say_word(vol, &slot->named, vol->incarnation);
	sg_wb(slot, sizeof(*slot));
	sg_fence();
}

/* From here on we own what our incarnation names. */
static void introduce(struct sg_vol *vol, unsigned int i, u32 inc, const struct sg_identity *id)
{
	struct sg_slot *slot = sg_at(vol, sg_slot_off(vol, i));

	vol->slot = (int)i;
	vol->incarnation = inc;
	vol->state = &slot->state;
	vol->alive = SG_SLOT_WORD(SG_SLOT_LIVE, inc);
	vol->id = *id;
	sg_make_legible(vol->id.name, sizeof(vol->id.name));
	/*
	 * First: until then others wait for what our predecessor acknowledged. Loaded before the
	 * look at our slot, it is no later than what the next one here begins with.
	 */
	say_word(vol, &slot->epoch, sg_get(vol, SG_HOT(epoch)));
	say_word(vol, &slot->joined, (u64)sg_now());
	say_word(vol, &slot->cannot, 0);
	say_word(vol, &slot->memory, SG_SIZE_WORD(sg_load64(&vol->room), inc));
	say_word(vol, &slot->reach, SG_SIZE_WORD(sg_bound(vol), inc));
	say_who(vol);
	sg_first_beat(vol);
}

void sg_slot_mend(struct sg_vol *vol)
{
	const struct sg_identity *id = &vol->id;
	struct sg_slot slot;

	sg_slot_read(vol, (unsigned int)vol->slot, &slot);
	if (slot.named != vol->incarnation || slot.pid != id->pid || slot.beat_ns != id->beat_ns ||
	    memcmp(slot.machine, id->machine, 16) || memcmp(slot.boot, id->boot, 16) ||
	    memcmp(slot.version, id->version, sizeof(slot.version)) || strcmp(slot.name, id->name))
		say_who(vol);
}

/* Locks need it (lock.c), from the moment when we have a slot. */
static bool can_hold(struct sg_vol *vol)
{
	if (!vol->held)
		vol->held = sg_alloc(SG_HELD * sizeof(*vol->held));
	return vol->held;
}

int sg_slot_take(struct sg_vol *vol, const struct sg_identity *id)
{
	u32 inc = (u32)sg_add64(sg_at(vol, SG_HOT(incarnation)), 1) + 1;
	unsigned int i;

	vol->incarnation = inc;	/* without a slot: of who recovers one for himself (fence.c) */
	if (!can_hold(vol)) {
		sg_snprintf(vol->why, sizeof(vol->why), "not enough memory");
		return -ENOMEM;
	}
	/* durable before anybody bears it: twice given, it would own what the dead locked */
	sg_wb(sg_at(vol, SG_HOT(incarnation)), 8);
	sg_fence();
	for (i = 0; i < SG_SLOTS; i++) {
		u64 *word = sg_state_word(vol, i), seen = sg_load64_acquire(word);

		/* its last owner may still go on: its bits in semaphores stay for a while */
		if (SG_SLOT_STATE(seen) != SG_SLOT_FREE || sg_get(vol, SG_HOT(lapsed)) >> i & 1 ||
		    sg_cas64(word, seen, SG_SLOT_WORD(SG_SLOT_LIVE, inc)) != seen)
			continue;
		introduce(vol, i, inc, id);
		sg_recover_none_yet(vol);
		return 0;
	}
	sg_free(vol->held);
	vol->held = NULL;
	sg_snprintf(vol->why, sizeof(vol->why), "all %u slots are in use", SG_SLOTS);
	return -EBUSY;
}

/*
 * What has been done in the slot, then the slot. Not if we have been declared dead: then somebody
 * may be replaying what we left.
 */
static void set_free(struct sg_vol *vol)
{
	u64 *word = sg_state_word(vol, (unsigned int)vol->slot);

	/* a fence that failed may have left it; by now we have nothing mapped */
	if (sg_is_ours(vol))
		sg_end_lapse(vol, (unsigned int)vol->slot);
	sg_fence();
	sg_cas64(word, vol->alive, SG_SLOT_WORD(SG_SLOT_FREE, vol->incarnation));
	sg_wb(word, 8);
	sg_fence();
}

static void forget(struct sg_vol *vol)
{
	sg_slot_exit(vol);
	vol->still = (struct sg_still){ 0 };
	vol->freezing.phase = 0;
	vol->slot = -1;
	vol->state = NULL;
}

/*
 * Nothing is under way: either nothing has been changed yet, or it was whole transactions, and what
 * the ledger holds is taken over by whoever lives. Left LIVE, the slot would hold up every epoch.
 */
static void step_back(struct sg_vol *vol)
{
	set_free(vol);
	forget(vol);
}

#define JOIN_WAIT_MS	10000	/* for locks: their holders may be paused, for ever */

/*
 * What joining cannot do without: our ledger, which somebody may just take over what he finds in,
 * and that no semaphore is ours any more.
 */
static int enter(struct sg_vol *vol)
{
	int err = sg_lock(vol, SG_HOT(slot_lock));

	if (err)
		return err;
	err = sg_ledger_open(vol);
	sg_unlock(vol, SG_HOT(slot_lock));
	if (err)
		return err;
	sg_withdraw_opens(vol, true);
	return sg_sem_withdraw(vol);
}

int sg_slot_enter(struct sg_vol *vol)
{
	int err;

	vol->hurry = false;
	vol->held_up = 0;
	vol->owed_at = vol->owed_left_at = vol->opens_at = (struct sg_owed_at){ 0 };
	vol->tx = sg_alloc(vol->sb.areas * sizeof(*vol->tx));
	vol->watch = sg_watch_make();
	vol->ack = sg_ack_make();
	vol->sems = sg_sems_make();
	if (!vol->tx || !vol->watch || !vol->ack || !vol->sems || !can_hold(vol))
		return -ENOMEM;
	vol->join_until = sg_ticks() + (vol->join_wait_ms ?: JOIN_WAIT_MS) * 1000000ULL;
	err = enter(vol);
	if (!err) {
		err = sg_settle_free(vol, true) ?: sg_ledger_settle_inodes(vol);
		/* no room: who cannot mount cannot delete either; sg_settle() comes back to it */
		if (err == -ENOSPC || err == -EBUSY)
			err = 0;
	}
	vol->join_until = 0;
	return err;
}

void sg_slot_exit(struct sg_vol *vol)
{
	sg_ledger_close(vol);
	sg_free(vol->tx);
	sg_free(vol->watch);
	sg_free(vol->ack);
	sg_free(vol->held);
	sg_sems_free(vol);
	vol->tx = NULL;
	vol->watch = NULL;
	vol->ack = NULL;
	vol->held = NULL;
}

/* --- joining ---------------------------------------------------------------------------------- */

/* Of one who joins and one who wants to be alone, each with its slot, one sees the other. */
static int anybody_alone(struct sg_vol *vol)
{
	u64 word = sg_get(vol, SG_HOT(alone_lock.word));
	unsigned int slot = SG_LOCK_SLOT(word);
	struct sg_slot info;

	if (!word || sg_holds_alone(vol) || !sg_owner_live(vol, slot, SG_LOCK_INC(word)))
		return 0;
	sg_slot_read(vol, slot, &info);
	if (info.pid)
		sg_snprintf(vol->why, sizeof(vol->why),
			    "process %llu on %.60s (slot %u) has the volume to itself; wait for it to end",
			    (unsigned long long)info.pid, info.name, slot);
	else
		sg_snprintf(vol->why, sizeof(vol->why),
			    "%.60s (slot %u) is just moving the volume to another base; wait for it to end",
			    info.name, slot);
	return -EBUSY;
}

/* Who has them: some by name, all in the log. */
static void say_all_taken(struct sg_vol *vol)
{
	char names[100] = "";
	struct sg_slot slot;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		size_t len = strlen(names);

		sg_slot_read(vol, i, &slot);
		sg_log(vol->owner, SG_INFO, "slot %u: %.60s", i, slot.name);
		if (len + strlen(slot.name) + 3 < sizeof(names))
			sg_snprintf(names + len, sizeof(names) - len, "%s, ", slot.name);
	}
	sg_snprintf(vol->why, sizeof(vol->why),
		    "all %u slots are in use: %s... (stargatectl systems lists them)", SG_SLOTS, names);
}

/* All slots belong to somebody: one of the dead gives his. Silence alone is not death here. */
static int take_some_slot(struct sg_vol *vol, const struct sg_identity *id)
{
	int err = sg_slot_take(vol, id);

	if (err != -EBUSY)
		return err;
	sg_recover_all(vol);
	err = sg_slot_take(vol, id);
	if (err == -EBUSY)
		err = sg_wait_for_lapse(vol) ?: sg_slot_take(vol, id);
	if (err == -EBUSY)
		say_all_taken(vol);
	return err;
}

/* A tool that was killed had the volume to itself, maybe, or one slot of the 64. */
#define TOOL_MS		5000	/* of silence, after which a tool is dead */

/* Recovery may bring to light that the volume has grown, and the volume's size what to recover. */
static int recover_and_follow(struct sg_vol *vol)
{
	int err = sg_size_join(vol);

	if (err)
		return err;
	sg_recover_all(vol);
	return sg_size_join(vol);
}

/* Somebody holds what joining needs. He may be paused, and come back at any time. */
static void say_who_holds(struct sg_vol *vol)
{
	struct sg_slot info;

	sg_slot_read(vol, SG_LOCK_SLOT(vol->held_up), &info);
	sg_snprintf(vol->why, sizeof(vol->why),
		    "%.60s (slot %u) holds a lock that mounting needs and does not give it back; "
		    "if it is paused, resume it or fence it", info.name,
		    SG_LOCK_SLOT(vol->held_up));
}

/* Only damage is for fsck, which needs the volume for itself; the rest passes, or is ours. */
static void say_not_entered(struct sg_vol *vol, int err)
{
	const char *why = "what a dead system owed cannot be settled yet: try again";

	if (err == -EBUSY && SG_LOCK_SLOT(vol->held_up) < SG_SLOTS && sg_is_ours(vol)) {
		say_who_holds(vol);
		return;
	}
	if (sg_load64(&vol->shut_down) || !sg_is_ours(vol))
		why = "declared dead by another system meanwhile: try again";
	else if (err == -EUCLEAN)
		why = "what a dead system owed cannot be settled: run fsck.stargatefs";
	else if (err == -ENOMEM)
		why = "not enough memory";
	else if (err == -EINTR)
		why = "interrupted while waiting for another system";
	else if (err == -EIO)
		why = "memory that is needed for joining is bad: stargatectl bad lists it";
	sg_snprintf(vol->why, sizeof(vol->why), "%s (error %d)", why, -err);
}

int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force)
{
	u64 others;
	int err;

	SG_ASSERT(!vol->read_only && vol->slot < 0);
	err = sg_bad_refuse(vol);
	if (err)
		return err;
	if (force)
		sg_fence_slots(vol, sg_slots_taken(vol));
	else
		err = sg_fence_silent(vol, sg_slots_of_machine(vol, id), wait_ms, NULL);
	if (!err && wait_ms && !force)
		err = sg_fence_silent_tools(vol, TOOL_MS);
	if (!err)
		err = take_some_slot(vol, id);
	if (err)
		return err;
	/* while somebody has the volume to itself, the dead are not ours to recover */
	err = anybody_alone(vol) ?: recover_and_follow(vol);
	others = sg_slots_taken(vol) & ~(1ULL << vol->slot);
	if (!err && others)
		err = anybody_alone(vol);
	err = err ?: sg_super_recheck(vol);
	if (err) {
		step_back(vol);
		return err;
	}
	sg_space_doubt_hints(vol);
	err = sg_slot_enter(vol);
	if (err) {
		say_not_entered(vol, err);
		step_back(vol);
		return err;
	}
	sg_grow_settle(vol);
	sg_freeze_settle(vol);
	return 0;
}

static void say_who_lives(struct sg_vol *vol, unsigned int live)
{
	struct sg_slot slot;

	sg_slot_read(vol, live, &slot);
	if (slot.pid)
		sg_snprintf(vol->why, sizeof(vol->why),
			    "in use by process %llu on %.60s (slot %u); wait for it to end",
			    (unsigned long long)slot.pid, slot.name, live);
	else
		sg_snprintf(vol->why, sizeof(vol->why),
			    "mounted by %.60s (slot %u); unmount it there first", slot.name, live);
}

/* All but ourselves. -EBUSY, with vol->why: one of them lives. */
static int fence_all(struct sg_vol *vol, unsigned int wait_ms, bool force)
{
	u64 others = sg_slots_taken(vol);
	unsigned int live;
	int err = 0;

	if (vol->slot >= 0)
		others &= ~(1ULL << vol->slot);
	if (force)
		sg_fence_slots(vol, others);
	else
		err = sg_fence_silent(vol, others, wait_ms, &live);
	if (err == -EBUSY)
		say_who_lives(vol, live);
	return err;
}

/*
 * Taken also from one who is dead and not recovered: all that it keeps away is joiners, and what
 * there is to replay is looked at by whoever is alone, before it is believed (fsck).
 */
static int claim_alone(struct sg_vol *vol)
{
	u64 *word = sg_at(vol, SG_HOT(alone_lock.word)), seen = sg_load64(word);
	int err = anybody_alone(vol);

	if (err)
		return err;
	if (sg_cas64(word, seen, SG_LOCK_WORD(vol->slot, vol->incarnation)) == seen)
		return 0;
	return anybody_alone(vol) ?: -EBUSY;
}

/*
 * The volume for ourselves: from the moment when we hold alone_lock nobody gets further than
 * anybody_alone(), and who was there before us is seen by us.
 */
int sg_slot_take_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		       bool force)
{
	int err = sg_bad_refuse(vol) ?: take_some_slot(vol, id);

	if (err == -EBUSY)	/* all 64 may be the silent ones */
		err = fence_all(vol, wait_ms, force) ?: take_some_slot(vol, id);
	if (err)
		return err;
	err = fence_all(vol, wait_ms, force) ?: claim_alone(vol);
	if (!err)	/* who has come meanwhile */
		err = fence_all(vol, wait_ms, force) ?: sg_super_recheck(vol);
	if (err)
		step_back(vol);
	return err;
}

int sg_join_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		  bool force)
{
	int err;

	SG_ASSERT(!vol->read_only && vol->slot < 0);
	err = sg_slot_take_alone(vol, id, wait_ms, force);
	if (err)
		return err;
	err = recover_and_follow(vol);
	if (!err) {
		sg_space_doubt_hints(vol);
		err = sg_slot_enter(vol);
		if (err)
			say_not_entered(vol, err);
	}
	if (err) {
		step_back(vol);
		return err;
	}
	sg_grow_settle(vol);
	sg_freeze_settle(vol);
	return 0;
}

/* --- leaving ---------------------------------------------------------------------------------- */

#define LAST_PUSH_MS	200	/* for debts that others hold up; who lives takes over the rest */

void sg_leave(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return;
	sg_stand_end(vol);
	vol->hurry = true;
	sg_beat(vol);		/* finds out whether we were set back */
	if (!sg_may_write(vol) && vol->ledger) {
		sg_sem_settle(vol);
		sg_ledger_settle_inodes(vol);
		if (sg_reclaim(vol, ~0u) > 0 && sg_epoch_ends(vol, LAST_PUSH_MS))
			sg_reclaim(vol, ~0u);
	}
	if (!sg_load64(&vol->shut_down))
		set_free(vol);
	sg_abandon(vol);
}

void sg_abandon(struct sg_vol *vol)
{
	if (vol->slot >= 0)
		forget(vol);
}
