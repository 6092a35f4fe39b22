// SPDX-License-Identifier: GPL-2.0
/*
 * The control: a work that runs four times a second, and at once after news. It finds the systems
 * that have the permission's object open, makes rings for them, opens their rings, and exchanges
 * hellos. It ends a peer when the peer's slot is no longer live, when the peer has closed the
 * object, or when its ring was bad (docs/network.md).
 */
#include <linux/slab.h>

#include "sgnet.h"

#define SGN_CONTROL_MS	250
#define SGN_SHUN	(10 * HZ)
#define SGN_RETRY	(2 * HZ)	/* after rings could not be made: the volume may be full */
#define SGN_REFRESH	(5 * HZ)
#define SGN_NEWS	msecs_to_jiffies(20)	/* between runs that peers cause */
#define SGN_NAME_ROOM	64

void sgn_control_now(struct sgn *net)
{
	mod_delayed_work(sgn_wq, &net->control, 0);
}

/* The time does not depend on this call, so many calls do not delay the run. */
void sgn_control_soon(struct sgn *net)
{
	unsigned long at = READ_ONCE(net->ran_at) + SGN_NEWS, now = jiffies;

	mod_delayed_work(sgn_wq, &net->control, time_after(at, now) ? at - now : 0);
}

/* --- rings ------------------------------------------------------------------------------------ */

/* Incarnations are never used again, so a ring's name belongs to one life of both systems. */
static void sgn_ring_name(char name[SGN_NAME_ROOM], u32 from, u32 to, unsigned int queue)
{
	snprintf(name, SGN_NAME_ROOM, SG_NET_PERMIT ".%u.%u.%u", from, to, queue);
}

static void sgn_side_close(struct sgn *net, struct sgn_side *side)
{
	unsigned int i;

	if (!side)
		return;
	for (i = 0; i < SG_NET_QUEUES; i++)
		stargate_ring_close(net->volume, &side->ring[i].mem);
	kvfree(side);
}

/*
 * Make this system's rings for a peer. The ring of queue 0 is the last one, so a peer that finds it
 * finds all.
 */
static struct sgn_side *sgn_side_make(struct sgn *net, u32 peer)
{
	struct sgn_side *side = kvzalloc(sizeof(*side), GFP_KERNEL);
	u32 self = stargate_volume_incarnation(net->volume);
	char name[SGN_NAME_ROOM];
	int i, err = 0;

	if (!side)
		return NULL;
	side->n = net->nqueues;
	for (i = side->n - 1; i >= 0 && !err; i--) {
		sgn_ring_name(name, peer, self, i);
		err = stargate_ring_make(net->volume, name, net->ring_bytes, &side->ring[i].mem) ?:
		      sgn_ring_begin(&side->ring[i]);
	}
	if (!err)
		return side;
	sgn_side_close(net, side);
	return NULL;
}

/* Report whether the next run may succeed. */
static bool sgn_is_passing(int err)
{
	return err == -EBUSY || err == -EAGAIN || err == -ENOMEM || err == -EINTR;
}

/* Open the peer's rings, as many as it has made. */
static struct sgn_side *sgn_side_open(struct sgn *net, u32 peer)
{
	struct sgn_side *side = kvzalloc(sizeof(*side), GFP_KERNEL);
	u32 self = stargate_volume_incarnation(net->volume);
	char name[SGN_NAME_ROOM];
	int err = 0;

	if (!side)
		return NULL;
	while (side->n < SG_NET_QUEUES) {
		struct sgn_ring *r = &side->ring[side->n];

		sgn_ring_name(name, self, peer, side->n);
		err = stargate_ring_open(net->volume, name, &r->mem);
		if (!err)
			err = sgn_ring_begin(r);
		if (err)
			break;
		side->n++;
	}
	/*
	 * Behind the peer's rings may be an object of any user. The peer may have closed its rings,
	 * and not yet removed them.
	 */
	if (side->n && !sgn_is_passing(err) &&
	    stargate_ring_received(net->volume, &side->ring[0].mem))
		return side;
	sgn_side_close(net, side);
	return NULL;
}

static struct sgn_side *sgn_tx(const struct sgn_peer *p)
{
	return rcu_dereference_protected(p->tx, true);	/* only the control changes it */
}

static void sgn_tx_close(struct sgn *net, struct sgn_peer *p)
{
	struct sgn_side *tx = sgn_tx(p);

	if (!tx)
		return;
	RCU_INIT_POINTER(p->tx, NULL);
	synchronize_net();
	sgn_side_close(net, tx);
	memset(&p->told, 0, sizeof(p->told));
}

static bool sgn_side_is_bad(const struct sgn_side *side)
{
	unsigned int i;

	for (i = 0; side && i < side->n; i++)
		if (READ_ONCE(side->ring[i].bad))
			return true;
	return false;
}

/* Report whether senders find all rings of this system. */
static bool sgn_side_is_whole(struct sgn *net, const struct sgn_side *side)
{
	unsigned int i;

	for (i = 0; i < side->n; i++)
		if (!stargate_ring_received(net->volume, &side->ring[i].mem))
			return false;
	return true;
}

/* --- peers ------------------------------------------------------------------------------------ */

static struct sgn_peer *sgn_peer_at(const struct sgn *net, unsigned int slot)
{
	return rcu_dereference_protected(net->peer[slot], true);
}

/* Do not make the slot a peer for some time. */
static void sgn_shun(struct sgn *net, unsigned int slot, unsigned long time)
{
	net->shunned[slot] = (jiffies + time) | 1;
}

static void sgn_peer_add(struct sgn *net, unsigned int slot, u32 incarnation, const char *name)
{
	struct sgn_peer *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return;
	p->slot = slot;
	p->incarnation = incarnation;
	strscpy(p->name, name, sizeof(p->name));
	spin_lock_init(&p->lock);
	p->rx = sgn_side_make(net, incarnation);
	if (!p->rx) {
		sgn_shun(net, slot, SGN_RETRY);
		kfree(p);
		return;
	}
	rcu_assign_pointer(net->peer[slot], p);
	WRITE_ONCE(net->present, net->present | BIT_ULL(slot));
}

static void sgn_peer_remove(struct sgn *net, unsigned int slot, const char *why)
{
	struct net_device *dev = sgn_dev_get(net);
	struct sgn_peer *p = sgn_peer_at(net, slot);

	if (dev)
		netdev_info(dev, "%.63s in slot %u is no peer any more: %s\n", p->name, slot, why);
	/* routes first, so that packets take another way before the rings end */
	sgn_address_forget(net, p, dev);
	dev_put(dev);
	WRITE_ONCE(net->present, net->present & ~BIT_ULL(slot));
	RCU_INIT_POINTER(net->peer[slot], NULL);
	synchronize_net();
	sgn_tx_close(net, p);
	sgn_side_close(net, p->rx);
	kfree_rcu_mightsleep(p);
}

static bool sgn_is_present(struct sgn *net, unsigned int slot, u64 users, u32 *incarnation,
			   char name[STARGATE_NAME_ROOM])
{
	if (slot == stargate_volume_slot(net->volume) || !(users >> slot & 1))
		return false;
	if (net->shunned[slot] && time_before(jiffies, net->shunned[slot]))
		return false;
	net->shunned[slot] = 0;
	return stargate_slot_live(net->volume, slot, incarnation, name);
}

/* Begin and end one peer, and open its rings. */
static void sgn_peer_follow(struct sgn *net, unsigned int slot, u64 users)
{
	struct sgn_peer *p = sgn_peer_at(net, slot);
	char name[STARGATE_NAME_ROOM];
	u32 incarnation = 0;
	bool present = sgn_is_present(net, slot, users, &incarnation, name);
	const char *why = present ? "it has begun anew" : "it has left, or has died";

	if (p && (sgn_side_is_bad(p->rx) || sgn_side_is_bad(sgn_tx(p)))) {
		sgn_shun(net, slot, SGN_SHUN);
		present = false;
		why = "a ring has impossible positions";
	}
	/* otherwise the peer would never find the rings again */
	if (p && present && !sgn_side_is_whole(net, p->rx)) {
		sgn_shun(net, slot, SGN_RETRY);
		present = false;
		why = "its rings were removed";
	}
	if (p && (!present || p->incarnation != incarnation)) {
		sgn_peer_remove(net, slot, why);
		p = NULL;
	}
	if (!p && present) {
		sgn_peer_add(net, slot, incarnation, name);
		p = sgn_peer_at(net, slot);
	}
	if (!p)
		return;
	/* the peer may have made its device again, with other rings */
	if (sgn_tx(p) && !stargate_ring_received(net->volume, &sgn_tx(p)->ring[0].mem))
		sgn_tx_close(net, p);
	if (!sgn_tx(p))
		rcu_assign_pointer(p->tx, sgn_side_open(net, incarnation));
}

/* --- hellos ----------------------------------------------------------------------------------- */

/* False: the ring is full, so the next run tells it. */
static bool sgn_tell(struct sgn *net, struct sgn_peer *p)
{
	struct sgn_hello hello = net->hello;
	struct sgn_side *tx = sgn_tx(p);
	int err;

	hello.echo = p->said.serial;
	hello.accepted = p->accepted;
	if (!tx || !memcmp(&hello, &p->told, sizeof(hello)))
		return true;
	spin_lock_bh(&tx->ring[0].lock);
	err = sgn_ring_send(&tx->ring[0], SGN_HELLO, &hello, SGN_HELLO_LEN(hello.count), NULL);
	spin_unlock_bh(&tx->ring[0].lock);
	if (err)
		return false;
	p->told = hello;
	stargate_bell_ring(net->volume, p->slot);
	return true;
}

static void sgn_listen(struct sgn_peer *p)
{
	spin_lock_bh(&p->lock);
	if (p->news)
		p->said = p->heard;
	p->news = false;
	spin_unlock_bh(&p->lock);
}

/* --- the device ------------------------------------------------------------------------------- */

/* After the kernel has removed the device's routes, make them again. */
static void sgn_forget_routes(struct sgn *net)
{
	struct sgn_entry *e;
	int i;

	if (net->home == net->ns->net_cookie && !xchg(&net->flushed, false))
		return;
	net->home = net->ns->net_cookie;
	hash_for_each(net->entries, i, e, node)
		e->routed = false;
}

static void sgn_device_follow(struct sgn *net, struct net_device *dev)
{
	unsigned int slot, connected = 0;

	sgn_forget_routes(net);
	if (time_after(jiffies, net->refreshed_at + SGN_REFRESH))
		sgn_address_refresh(net, dev);
	sgn_address_scan(net, dev);
	for (slot = 0; slot < STARGATE_SLOTS; slot++) {
		struct sgn_peer *p = sgn_peer_at(net, slot);

		if (!p)
			continue;
		sgn_listen(p);
		sgn_address_accept(net, p);
		sgn_address_route(net, p, dev);
		sgn_tell(net, p);
		connected += !!sgn_tx(p);
	}
	if (connected)
		netif_carrier_on(dev);
	else
		netif_carrier_off(dev);
}

/* --- the work --------------------------------------------------------------------------------- */

/* Return the systems that take part, or 0 if this system does not. */
static u64 sgn_users(struct sgn *net)
{
	u64 users;

	if (!stargate_volume_alive(net->volume))
		return 0;
	users = stargate_permit_users(net->volume);
	if (users)
		return users;
	/* the object has been removed, and may exist again */
	stargate_permit_end(net->volume);
	return stargate_permit(net->volume, SG_NET_PERMIT) ? 0 :
	       stargate_permit_users(net->volume);
}

/* Return the device's namespace with a reference. NULL: the device, or the namespace, ends. */
static struct net *sgn_ns_get(struct sgn *net)
{
	struct net_device *dev;
	struct net *ns;

	rcu_read_lock();
	dev = rcu_dereference(net->dev);
	ns = dev ? maybe_get_net(dev_net(dev)) : NULL;
	rcu_read_unlock();
	return ns;
}

void sgn_control(struct work_struct *work)
{
	struct sgn *net = container_of(to_delayed_work(work), struct sgn, control);
	struct net_device *dev;
	unsigned int slot;
	u64 users;

	/* a later device of this volume may make rings already */
	net->ns = sgn_ns_get(net);
	if (!net->ns)
		return;
	users = sgn_users(net);
	WRITE_ONCE(net->ran_at, jiffies);
	WRITE_ONCE(net->permitted, users);
	for (slot = 0; slot < STARGATE_SLOTS; slot++)
		sgn_peer_follow(net, slot, users);
	dev = sgn_dev_get(net);
	if (dev) {
		sgn_device_follow(net, dev);
		dev_put(dev);
		queue_delayed_work(sgn_wq, &net->control, msecs_to_jiffies(SGN_CONTROL_MS));
	}
	put_net(net->ns);
}

void sgn_control_end(struct sgn *net)
{
	unsigned int slot;

	for (slot = 0; slot < STARGATE_SLOTS; slot++)
		if (sgn_peer_at(net, slot))
			sgn_peer_remove(net, slot, "the device is removed");
	stargate_permit_end(net->volume);
}
