// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells of a mount (docs/doorbells.md). The engine decides whom to ring, and what is due after
 * a ring. A driver (bells_ivshmem.c) sends and receives the interrupts.
 *
 * A mount uses at most one exchange: the one for its volume, or else one for any volume. A mount
 * without an exchange works as before, because it looks at the volume anyway.
 */
#include <linux/rculist.h>

#include "bells.h"

/* Guards the two lists, and the choice of each mount. */
static DEFINE_MUTEX(sgfs_bells_lock);
static LIST_HEAD(sgfs_exchanges);
static LIST_HEAD(sgfs_ringing);		/* mounts that have joined */

/* At most one start of a thread by rings in this time: a thread may have much to do. */
#define DUE_NS	(200 * NSEC_PER_USEC)

/* --- callbacks of the engine ------------------------------------------------------------------ */

static void sgfs_ring(struct sg_vol *vol, u16 id)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);
	struct sgfs_exchange *x;

	rcu_read_lock();
	x = rcu_dereference(fs->bells.exchange);
	if (x)
		x->ring(x, id);
	rcu_read_unlock();
}

/*
 * Start a work item, now or in the next jiffy. An item that an earlier call has started is left
 * alone: a second start would move it from the queue to a timer. Its look comes after this call,
 * because the caller's stores, the exchange here and sgfs_due_begins() are in order.
 */
static void sgfs_start_due(struct workqueue_struct *wq, struct delayed_work *work,
			   struct sgfs_due_work *d)
{
	bool started = xchg(&d->started, true);
	u64 now = ktime_get_ns();

	if (now - READ_ONCE(d->last) >= DUE_NS) {
		WRITE_ONCE(d->last, now);
		mod_delayed_work(wq, work, 0);
	} else if (!started) {
		mod_delayed_work(wq, work, 1);
	}
}

void sgfs_due_begins(struct sgfs_due_work *d)
{
	smp_store_mb(d->started, false);
}

/* The engine may call this at any time, also in the interrupt, but these works end before it. */
static void sgfs_due(struct sg_vol *vol, unsigned int due)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);
	struct sgfs_bells *b = &fs->bells;

	if (!READ_ONCE(b->runs))
		return;
	if (due & SG_DUE_ACKNOWLEDGE)
		sgfs_start_due(fs->acknowledger, &fs->acknowledge, &b->acknowledge);
	if (due & SG_DUE_FREEZE)
		sgfs_start_due(fs->waiter, &fs->freeze_watch, &b->freeze);
	if (due & SG_DUE_WATCH)
		sgfs_start_due(fs->watcher, &fs->watch, &b->watch);
}

void sgfs_bells_prepare(struct sgfs *fs)
{
	fs->vol.ring = sgfs_ring;
	fs->vol.due = sgfs_due;
}

/* --- the choice of an exchange ---------------------------------------------------------------- */

static bool sgfs_is_for(const struct sgfs_exchange *x, const struct sgfs *fs)
{
	return !memcmp(x->uuid, fs->vol.sb.uuid, sizeof(x->uuid));
}

static struct sgfs_exchange *sgfs_exchange_for(const struct sgfs *fs)
{
	struct sgfs_exchange *x, *any = NULL;

	list_for_each_entry(x, &sgfs_exchanges, node) {
		if (sgfs_is_for(x, fs))
			return x;
		if (!any && !memchr_inv(x->uuid, 0, sizeof(x->uuid)))
			any = x;
	}
	return any;
}

/* Connect a mount that has no exchange, if there is one for it. */
static void sgfs_connect(struct sgfs *fs)
{
	struct sgfs_exchange *x = sgfs_exchange_for(fs);
	unsigned long flags;

	if (!x || rcu_access_pointer(fs->bells.exchange))
		return;
	spin_lock_irqsave(&x->lock, flags);
	sg_store64(&fs->vol.doorbells.muted, x->muted);
	list_add_tail_rcu(&fs->bells.at, &x->mounts);
	spin_unlock_irqrestore(&x->lock, flags);
	rcu_assign_pointer(fs->bells.exchange, x);
	/* last: from here on other systems ring, and rely on rings of this system */
	sg_doorbell_announce(&fs->vol, x->number, x->id);
	sg_doorbell_tell(&fs->vol, 0);	/* they may poll less from now on */
}

static void sgfs_disconnect(struct sgfs *fs)
{
	struct sgfs_exchange *x = rcu_dereference_protected(fs->bells.exchange,
							    lockdep_is_held(&sgfs_bells_lock));
	unsigned long flags;

	if (!x)
		return;
	sg_doorbell_announce(&fs->vol, 0, 0);
	RCU_INIT_POINTER(fs->bells.exchange, NULL);
	spin_lock_irqsave(&x->lock, flags);
	list_del_rcu(&fs->bells.at);
	spin_unlock_irqrestore(&x->lock, flags);
	synchronize_rcu();	/* interrupts and ringing threads that still use the mount */
}

void sgfs_bells_start(struct sgfs *fs)
{
	mutex_lock(&sgfs_bells_lock);
	WRITE_ONCE(fs->bells.runs, true);
	list_add_tail(&fs->bells.all, &sgfs_ringing);
	sgfs_connect(fs);
	mutex_unlock(&sgfs_bells_lock);
}

/* Called before the works end that a ring starts. */
void sgfs_bells_stop(struct sgfs *fs)
{
	if (!fs->bells.runs)
		return;
	mutex_lock(&sgfs_bells_lock);
	list_del(&fs->bells.all);
	sgfs_disconnect(fs);
	WRITE_ONCE(fs->bells.runs, false);
	mutex_unlock(&sgfs_bells_lock);
}

/* --- drivers ---------------------------------------------------------------------------------- */

void sgfs_exchange_add(struct sgfs_exchange *x)
{
	struct sgfs *fs;

	mutex_lock(&sgfs_bells_lock);
	list_add_tail(&x->node, &sgfs_exchanges);
	list_for_each_entry(fs, &sgfs_ringing, bells.all)
		sgfs_connect(fs);
	mutex_unlock(&sgfs_bells_lock);
}

void sgfs_exchange_remove(struct sgfs_exchange *x)
{
	struct sgfs *fs;

	mutex_lock(&sgfs_bells_lock);
	list_del(&x->node);
	list_for_each_entry(fs, &sgfs_ringing, bells.all) {
		if (rcu_access_pointer(fs->bells.exchange) != x)
			continue;
		sgfs_disconnect(fs);
		sgfs_connect(fs);	/* to another one */
	}
	mutex_unlock(&sgfs_bells_lock);
}

void sgfs_exchange_rung(struct sgfs_exchange *x)
{
	struct sgfs *fs;

	rcu_read_lock();
	list_for_each_entry_rcu(fs, &x->mounts, bells.at) {
		sg_doorbell_rung(&fs->vol);
		sgfs_userlocks_rung(fs);
		sgfs_uses_rung(fs);
	}
	rcu_read_unlock();
}

void sgfs_exchange_mute(struct sgfs_exchange *x, int by)
{
	unsigned long flags;
	struct sgfs *fs;

	spin_lock_irqsave(&x->lock, flags);
	x->muted += by;
	list_for_each_entry(fs, &x->mounts, bells.at)
		sg_store64(&fs->vol.doorbells.muted, x->muted);
	spin_unlock_irqrestore(&x->lock, flags);
}

/* --- /sys/fs/stargatefs/<id>/bells ------------------------------------------------------------ */

static ssize_t sgfs_pairs_show(struct sgfs *fs, const char *kind, char *buf, ssize_t len)
{
	struct sg_slot slot;
	unsigned int i;
	u16 id;

	for (i = 0; i < SG_SLOTS; i++) {
		if ((int)i == fs->vol.slot || sg_slot_read(&fs->vol, i, &slot) ||
		    SG_SLOT_STATE(slot.state) != SG_SLOT_LIVE)
			continue;
		len += sysfs_emit_at(buf, len, "slot_%u %s\n", i,
				     sg_doorbell_of(&fs->vol, i, &id) ? kind : "polled");
	}
	return len;
}

ssize_t sgfs_bells_show(struct sgfs *fs, char *buf)
{
	const struct sg_doorbells *d = &fs->vol.doorbells;
	const char *kind = "none";
	struct sgfs_exchange *x;
	ssize_t len;

	mutex_lock(&sgfs_bells_lock);
	x = rcu_dereference_protected(fs->bells.exchange, lockdep_is_held(&sgfs_bells_lock));
	if (x)
		kind = x->kind;
	len = sysfs_emit(buf, "driver %s\nexchange %u\nnumber %u\nrings_sent %llu\n"
			 "rings_received %llu\nrings_lost %llu\nsenders_muted %llu\ncovered %d\n",
			 kind, x ? x->number : 0, x ? x->id : 0, d->sent, d->rings, d->lost,
			 d->muted, sg_doorbell_covers(&fs->vol));
	len = sgfs_pairs_show(fs, kind, buf, len);
	mutex_unlock(&sgfs_bells_lock);
	return len;
}
