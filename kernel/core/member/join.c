// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving: a system takes a slot of the mount table, stores its identity, and frees the
 * slot at the end. docs/protocol.md, section 1. recovery.c frees the slots of dead systems.
 */
#include "internal.h"

/* --- take a slot ------------------------------------------------------------------------------ */

/*
 * Stores words of a slot. A system without an identity is fenced when it has been silent for some
 * seconds, although it may only be paused (fence.c). Then another system gets the slot, and the
 * remaining stores of this one must not change its words. So a system checks its slot before each
 * store. It then swaps each word against the value that it loaded before the check, so that an old
 * incarnation is never stored again.
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
	say_word(vol, &slot->knows, SG_SLOT_KNOWS(SG_RO_COMPAT_KNOWN, vol->incarnation));
	say_word(vol, &slot->named, vol->incarnation);
	sg_wb(slot, sizeof(*slot));
	sg_fence();
}

/* Takes the slot: from here on this system owns everything that its incarnation names. */
static void join_introduce(struct sg_vol *vol, unsigned int i, u32 inc,
			   const struct sg_identity *id)
{
	struct sg_slot *slot = sg_at(vol, sg_slot_off(vol, i));

	vol->slot = (int)i;
	vol->incarnation = inc;
	vol->state = &slot->state;
	vol->alive = SG_SLOT_WORD(SG_SLOT_LIVE, inc);
	vol->id = *id;
	sg_make_legible(vol->id.name, sizeof(vol->id.name));
	/*
	 * Stores the epoch first, because until then other systems wait for the last owner's
	 * acknowledgement. The epoch is loaded before the slot is checked. So it is not later than
	 * the epoch with which the slot's next owner begins.
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

/* Allocates the memory for locks (lock.c), which the system needs as soon as it has a slot. */
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

	/*
	 * also without a slot it names this joiner, which may recover a slot for itself (fence.c)
	 */
	vol->incarnation = inc;
	if (!can_hold(vol)) {
		sg_snprintf(vol->why, sizeof(vol->why), "not enough memory");
		return -ENOMEM;
	}
	/*
	 * durable before any slot has it, because an incarnation that is assigned twice would own a
	 * dead system's locks
	 */
	sg_wb(sg_at(vol, SG_HOT(incarnation)), 8);
	sg_fence();
	for (i = 0; i < SG_SLOTS; i++) {
		u64 *word = sg_state_word(vol, i), seen = sg_load64_acquire(word);

		/*
		 * the slot's last owner may still run, so its bits in semaphores remain for a while
		 */
		if (SG_SLOT_STATE(seen) != SG_SLOT_FREE || sg_get(vol, SG_HOT(lapsed)) >> i & 1 ||
		    sg_cas64(word, seen, SG_SLOT_WORD(SG_SLOT_LIVE, inc)) != seen)
			continue;
		join_introduce(vol, i, inc, id);
		sg_recover_none_yet(vol);
		return 0;
	}
	sg_free(vol->held);
	vol->held = NULL;
	sg_snprintf(vol->why, sizeof(vol->why), "all %u slots are in use", SG_SLOTS);
	return -EBUSY;
}

/*
 * Frees the slot after all work in it is durable. If this system was fenced, it does nothing,
 * because another system may be replaying its records.
 */
static void set_free(struct sg_vol *vol)
{
	u64 *word = sg_state_word(vol, (unsigned int)vol->slot);

	/* a failed fence may have left the lapsed bit; this system has nothing mapped any more */
	if (sg_is_ours(vol))
		sg_end_lapse(vol, (unsigned int)vol->slot);
	sg_fence();
	sg_cas64(word, vol->alive, SG_SLOT_WORD(SG_SLOT_FREE, vol->incarnation));
	sg_wb(word, 8);
	sg_fence();
}

static void join_forget(struct sg_vol *vol)
{
	sg_slot_exit(vol);
	vol->still = (struct sg_still){ 0 };
	vol->freezing.phase = 0;
	vol->slot = -1;
	vol->state = NULL;
}

/*
 * Gives up the slot after a failed join. No change is in progress: there was none yet, or only
 * complete transactions. A live system takes over the ledger's deferred frees. A slot that remained
 * LIVE would delay all epochs.
 */
static void step_back(struct sg_vol *vol)
{
	set_free(vol);
	join_forget(vol);
}

/* limit of waits for locks, whose holders may be paused without end */
#define JOIN_WAIT_MS	10000

/*
 * Does the parts of a join that may fail: opening the slot's ledger, from which another system may
 * be taking over deferred frees, and clearing the slot's bits in semaphores.
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
	vol->deferred_at = vol->deferred_left_at = vol->opens_at = (struct sg_deferred_at){ 0 };
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
		/*
		 * no room: the mount must succeed, because otherwise nothing could be deleted;
		 * sg_settle() tries again
		 */
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
	sg_userlock_forget(vol);
	vol->tx = NULL;
	vol->watch = NULL;
	vol->ack = NULL;
	vol->held = NULL;
}

/* --- join ------------------------------------------------------------------------------------- */

/*
 * Checks for a system with exclusive access. A joiner and such a system both take a slot first, so
 * one of them sees the other.
 */
static int anybody_alone(struct sg_vol *vol)
{
	unsigned int slot = SG_LOCK_SLOT(sg_get(vol, SG_HOT(alone_lock.word)));
	struct sg_slot info;

	if (!sg_is_taken_alone(vol))
		return 0;
	sg_slot_read(vol, slot, &info);
	if (info.pid)
		sg_snprintf(vol->why, sizeof(vol->why),
			    "process %u on %.60s (slot %u) has exclusive access; wait for it to end",
			    SG_SLOT_PID(info.pid), info.name, slot);
	else
		sg_snprintf(vol->why, sizeof(vol->why),
			    "%.60s (slot %u) is moving the volume to another base; wait for it to end",
			    info.name, slot);
	return -EBUSY;
}

/* Names the systems that have the slots: some of them in the error, all in the log. */
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

/*
 * Recovers dead systems to get a slot when all slots are taken. Silence alone does not count as
 * death here.
 */
static int take_some_slot(struct sg_vol *vol, const struct sg_identity *id)
{
	int err = sg_slot_take(vol, id);

	if (err != -EBUSY)
		return err;
	sg_recover_all(vol);
	err = sg_slot_take(vol, id);
	if (err == -EBUSY && anybody_alone(vol))
		return err;
	if (err == -EBUSY)
		err = sg_wait_for_lapse(vol) ?: sg_slot_take(vol, id);
	if (err == -EBUSY)
		say_all_taken(vol);
	return err;
}

/*
 * Silence after which a joiner fences systems that have no guard. A killed tool may have exclusive
 * access, or one of the 64 slots. A joiner that died while it recovered a slot in its own name has
 * left the dead system's locks.
 */
#define UNGUARDED_MS	5000

/*
 * Recovers all dead systems. Recovery may show that the volume has grown, and the new size may show
 * further systems to recover.
 */
static int recover_and_follow(struct sg_vol *vol)
{
	int err = sg_size_join(vol);

	if (err)
		return err;
	sg_recover_all(vol);
	return sg_size_join(vol);
}

/*
 * Explains that a system holds a lock that the join needs. The holder may be paused, and may
 * continue at any time.
 */
static void say_who_holds(struct sg_vol *vol)
{
	struct sg_slot info;

	sg_slot_read(vol, SG_LOCK_SLOT(vol->held_up), &info);
	sg_snprintf(vol->why, sizeof(vol->why),
		    "%.60s (slot %u) holds a lock that mounting needs and does not give it back; "
		    "if it is paused, resume it or fence it", info.name,
		    SG_LOCK_SLOT(vol->held_up));
}

/*
 * Explains why the join failed. Only a damaged volume needs fsck; the other reasons are temporary,
 * or concern only this system.
 */
static void say_not_entered(struct sg_vol *vol, int err)
{
	const char *why = "the deferred frees of a dead system cannot be taken over yet: try again";

	if (err == -EBUSY && SG_LOCK_SLOT(vol->held_up) < SG_SLOTS && sg_is_ours(vol)) {
		say_who_holds(vol);
		return;
	}
	if (sg_load64(&vol->shut_down) || !sg_is_ours(vol))
		why = "fenced by another system meanwhile: try again";
	else if (err == -EUCLEAN)
		why = "the deferred frees of a dead system are damaged: run fsck.stargatefs";
	else if (err == -ENOMEM)
		why = "not enough memory";
	else if (err == -EINTR)
		why = "interrupted while waiting for another system";
	else if (err == -EIO)
		why = "memory that joining needs is bad: stargatectl bad lists it";
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
		err = sg_fence_unguarded(vol, UNGUARDED_MS);
	if (!err)
		err = take_some_slot(vol, id);
	if (err)
		return err;
	/* while a system has exclusive access, this one recovers no dead systems */
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
			    "in use by process %u on %.60s (slot %u); wait for it to end",
			    SG_SLOT_PID(slot.pid), slot.name, live);
	else
		sg_snprintf(vol->why, sizeof(vol->why),
			    "mounted by %.60s (slot %u); unmount it there first", slot.name, live);
}

/* Fences all other systems. -EBUSY, with vol->why: one of them is live. */
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
 * Takes the lock, also from a dead holder that has not been recovered. The lock only blocks
 * joiners, and a system with exclusive access (fsck) checks the records before it trusts them.
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
 * Takes exclusive access. From the time when this system holds alone_lock, no joiner passes
 * anybody_alone(), and this system sees all earlier joiners.
 */
int sg_slot_take_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		       bool force)
{
	int err = sg_bad_refuse(vol) ?: take_some_slot(vol, id);

	if (err == -EBUSY)	/* the owners of all 64 slots may be silent */
		err = fence_all(vol, wait_ms, force) ?: take_some_slot(vol, id);
	if (err)
		return err;
	err = fence_all(vol, wait_ms, force) ?: claim_alone(vol);
	if (!err)	/* systems that have joined meanwhile */
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

/* --- leave ------------------------------------------------------------------------------------ */

/* limit of waits for deferred frees that other systems delay; a live system takes over the rest */
#define LAST_PUSH_MS	200

void sg_leave(struct sg_vol *vol)
{
	if (vol->slot < 0)
		return;
	sg_freeze_watch_end(vol);
	vol->hurry = true;
	sg_beat(vol);		/* detects whether this system was set back */
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
		join_forget(vol);
}
