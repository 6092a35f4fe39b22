// SPDX-License-Identifier: GPL-2.0
/*
 * Epochs (D7): no page is used again while a system may still read it (docs/protocol.md, section
 * 4).
 *
 * hot.epoch grows by one when all live and lapsed slots have acknowledged it. A deferred free of
 * epoch e may be reclaimed when all of them have acknowledged e + 2.
 */
#include "internal.h"

#define EPOCHS		2048	/* SG_LEDGER_EPOCH() is stored modulo this */
/* time until the next sg_acknowledge() while an epoch is in progress */
#define SOON_MS		5
#define EPOCH_LOOK_US	200	/* between looks of a thread that waits for an epoch */

/**
 * struct sg_ack - an epoch that this system is about to acknowledge
 * @epoch: its number; 0: none
 * @turn: turns of the areas when this system saw the epoch; odd: a transaction was in progress
 * @busy: a thread is acknowledging
 * @reported: the last epoch that was reported as late
 */
struct sg_ack {
	u64 epoch;
	u64 turn[SG_AREAS_MAX];
	u64 busy;
	u64 reported;
};

struct sg_ack *sg_ack_make(void)
{
	return sg_alloc(sizeof(struct sg_ack));
}

static u64 *acknowledged(const struct sg_vol *vol, unsigned int slot)
{
	return sg_at(vol, sg_slot_off(vol, slot) + offsetof(struct sg_slot, epoch));
}

/*
 * Reports whether no other system has a slot and none has lapsed. A system that is fenced for
 * silence may only be paused. When it continues, its processes can store through their mappings
 * until it detects the fence. So for the lapse (fence.c) its slot counts as one that does not
 * acknowledge, and pages that it may have mapped are not reclaimed.
 */
bool sg_alone(const struct sg_vol *vol)
{
	u64 others = sg_slots_taken(vol);

	/* loaded after the states, as in worst_lag() */
	others |= sg_load64(sg_at(vol, SG_HOT(lapsed)));
	return !(others & ~(1ULL << vol->slot));
}

/*
 * Returns how far the slowest system is behind @epoch. With @lapsed, lapsed slots count, too,
 * because a fenced system may still store to its pages. Without @lapsed only live slots count.
 */
static u64 worst_lag(const struct sg_vol *vol, u64 epoch, bool lapsed, unsigned int *who)
{
	u64 live = 0;
	s64 worst = 0;
	unsigned int i;

	*who = SG_SLOTS;
	for (i = 0; i < SG_SLOTS; i++)
		if (SG_SLOT_STATE(sg_load64_acquire(sg_state_word(vol, i))) == SG_SLOT_LIVE)
			live |= 1ULL << i;
	/*
	 * loaded after the states: if a state is dead, the slot's lapsed bit was stored before it
	 */
	if (lapsed)
		live |= sg_load64(sg_at(vol, SG_HOT(lapsed)));
	for (; live; live &= live - 1) {
		s64 lag;

		i = sg_ctz64(live);
		lag = (s64)(epoch - sg_load64_acquire(acknowledged(vol, i)));
		if (lag > worst) {
			worst = lag;
			*who = i;
		}
	}
	return (u64)worst;
}

static u64 horizon_of(const struct sg_vol *vol, bool lapsed)
{
	u64 epoch = sg_load64_acquire(sg_at(vol, SG_HOT(epoch)));
	unsigned int who;

	return epoch - worst_lag(vol, epoch, lapsed, &who);
}

u64 sg_epoch_horizon(const struct sg_vol *vol)
{
	return horizon_of(vol, true);
}

/*
 * Compares complete epochs, because the horizon may be behind the deferred free, and briefly far
 * behind when a system joins.
 */
bool sg_epoch_over(const struct sg_vol *vol, u64 horizon, unsigned int deferred_epoch)
{
	u64 now = sg_load64_acquire(sg_at(vol, SG_HOT(epoch)));
	u64 made = now - ((now - deferred_epoch) & (EPOCHS - 1));

	return (s64)(horizon - made) >= 2;
}

/* --- acknowledge ------------------------------------------------------------------------------ */

static void begin_ack(struct sg_vol *vol, u64 epoch)
{
	struct sg_ack *ack = vol->ack;
	unsigned int i;

	for (i = 0; i < vol->sb.areas; i++)
		ack->turn[i] = sg_load64_acquire(&vol->tx[i].turn);
	ack->epoch = epoch;
}

static bool transactions_over(const struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < vol->sb.areas; i++)
		if (vol->ack->turn[i] & 1 &&
		    sg_load64_acquire(&vol->tx[i].turn) == vol->ack->turn[i])
			return false;
	return true;
}

void sg_quiesce(struct sg_vol *vol)
{
	sg_count(&vol->stat.quiesces, 1);
	sg_look_wait();
	if (vol->quiesce)
		vol->quiesce(vol);
}

/* Acknowledges epochs. Returns whether this system has acknowledged all of them. */
static bool try_ack(struct sg_vol *vol)
{
	u64 *own = acknowledged(vol, (unsigned int)vol->slot);
	u64 epoch = sg_load64_acquire(sg_at(vol, SG_HOT(epoch)));
	struct sg_ack *ack = vol->ack;

	if (sg_load64(own) == epoch)
		return true;
	if (sg_cas64(&ack->busy, 0, 1))
		return false;
	if (ack->epoch != epoch)
		begin_ack(vol, epoch);
	if (transactions_over(vol)) {
		sg_quiesce(vol);
		if (sg_is_ours(vol))	/* quiesce may have taken long */
			sg_store64_release(own, ack->epoch);
	}
	sg_store64_release(&ack->busy, 0);
	return sg_load64(own) == epoch;
}

/* --- advance ---------------------------------------------------------------------------------- */

/* Returns whether this call has advanced the epoch. */
static bool push(struct sg_vol *vol, bool lapsed)
{
	u64 *word = sg_at(vol, SG_HOT(epoch)), epoch = sg_load64_acquire(word);
	unsigned int who;

	return !worst_lag(vol, epoch, lapsed, &who) && sg_cas64(word, epoch, epoch + 1) == epoch;
}

/*
 * Tries to advance the epoch. A new epoch that a lapsed system does not acknowledge makes no
 * deferred free reclaimable sooner.
 */
void sg_epoch_push(struct sg_vol *vol)
{
	push(vol, true);
}

int sg_acknowledge(struct sg_vol *vol)
{
	bool done;

	if (vol->slot < 0)
		return SG_MAINTAIN_MS;
	if (!sg_is_ours(vol))
		return sg_declared_dead(vol);
	done = try_ack(vol);
	if (sg_ledger_waits(vol))
		sg_epoch_push(vol);
	return done && !sg_ledger_waits(vol) ? SG_MAINTAIN_MS : SOON_MS;
}

/*
 * Acknowledges for a thread in a long wait, if this system has only one thread, or is joining. The
 * system counts as live, so other systems wait for its acknowledgement.
 */
void sg_epoch_acknowledge(struct sg_vol *vol)
{
	if (vol->maintained || !vol->ack || !sg_is_ours(vol))
		return;
	sg_beat(vol);
	try_ack(vol);
}

/* Acknowledges and tries to advance the epoch, for a thread that waits for an epoch. */
void sg_epoch_urge(struct sg_vol *vol)
{
	sg_epoch_acknowledge(vol);
	if (push(vol, true))
		sg_doorbell_tell(vol, SG_DUE_ACKNOWLEDGE);
}

static void report_laggard(struct sg_vol *vol, u64 target, bool lapsed)
{
	struct sg_slot info;
	unsigned int who;

	if (!worst_lag(vol, target, lapsed, &who) || sg_slot_read(vol, who, &info) ||
	    vol->ack->reported == target)
		return;
	vol->ack->reported = target;
	if (SG_SLOT_STATE(info.state) != SG_SLOT_LIVE)
		sg_log(vol->owner, SG_WARN,
		       "freed space cannot be used yet: %.60s (slot %u) was fenced and may still run; its pages stay unused for %u s after the fence",
		       info.name, who, SG_LAPSE_MS / 1000);
	else
		sg_log(vol->owner, SG_WARN,
		       "freed space cannot be used yet: %.60s (slot %u) does not acknowledge epoch %llu",
		       info.name, who, (unsigned long long)target);
}

/*
 * Waits until all live slots, and with @lapsed also lapsed ones, have acknowledged the current
 * epoch and @ahead more.
 */
static bool wait_ahead(struct sg_vol *vol, unsigned int ahead, bool lapsed, unsigned int wait_ms)
{
	u64 target, start = sg_ticks();

	if (sg_has_stopped(vol))
		return false;
	target = sg_get(vol, SG_HOT(epoch)) + ahead;
	if (sg_alone(vol))
		return true;
	/* the epoch may have advanced before, while no thread waited */
	sg_doorbell_tell(vol, SG_DUE_ACKNOWLEDGE);
	while (!sg_has_stopped(vol) && (s64)(horizon_of(vol, lapsed) - target) < 0) {
		if (lapsed ? sg_wait_ends(vol) : sg_interrupted())
			return false;
		if (sg_ticks() - start > wait_ms * 1000000ULL || sg_may_write(vol)) {
			report_laggard(vol, sg_get(vol, SG_HOT(epoch)), lapsed);
			return false;
		}
		sg_epoch_acknowledge(vol);
		if (push(vol, lapsed))
			sg_doorbell_tell(vol, SG_DUE_ACKNOWLEDGE);
		sg_sleep_us(EPOCH_LOOK_US);
	}
	return !sg_has_stopped(vol);
}

bool sg_epoch_wait(struct sg_vol *vol, unsigned int wait_ms)
{
	return wait_ahead(vol, 2, true, wait_ms);
}

/* Waits until all operations that live systems had begun before this call have ended. */
bool sg_epoch_ends(struct sg_vol *vol, unsigned int wait_ms)
{
	return wait_ahead(vol, 2, false, wait_ms);
}

/*
 * Waits until live systems have acknowledged the next epoch. They have then removed all mappings
 * that existed when it began.
 */
bool sg_epoch_next(struct sg_vol *vol, unsigned int wait_ms)
{
	return wait_ahead(vol, 1, false, wait_ms);
}
