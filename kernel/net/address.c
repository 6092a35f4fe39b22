// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses. A system publishes its own to each peer by hellos. It accepts an address of a peer as
 * a source of packets from that peer, and as a destination, if
 *
 *	- no system but the peer uses it, as far as this system knows: it is not local, and was not
 *	  accepted from another peer;
 *	- it is in the network of the device itself, or, if this system publishes all its addresses,
 *	  in the network of any interface except the loopback one.
 *
 * A route to the address needs more: the peer has accepted an address of this system, which the
 * route names as the preferred source. Otherwise the peer would drop the packets.
 */
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>

#include "sgnet.h"

/* --- addresses of this system ----------------------------------------------------------------- */

static void sgn_local_add(struct sgn *net, const struct net_device *d, const struct net_device *dev,
			  u8 family, const void *byte, u8 prefix, bool wide)
{
	struct sgn_local *l = &net->local[net->nlocals];

	if (net->nlocals == SGN_LOCALS) {
		net->crowded = true;
		return;
	}
	memset(l, 0, sizeof(*l));
	l->address.family = family;
	memcpy(l->address.byte, byte, family == 4 ? 4 : 16);
	l->prefix = prefix;
	l->own = d == dev;
	l->loop = d->flags & IFF_LOOPBACK || !wide;
	net->nlocals++;
}

static void sgn_scan_4(struct sgn *net, const struct net_device *d, const struct net_device *dev)
{
	const struct in_device *in = __in_dev_get_rcu(d);
	const struct in_ifaddr *a;

	if (!in)
		return;
	in_dev_for_each_ifa_rcu(a, in)
		sgn_local_add(net, d, dev, 4, &a->ifa_local, a->ifa_prefixlen,
			      a->ifa_scope <= RT_SCOPE_SITE);
}

static void sgn_scan_6(struct sgn *net, const struct net_device *d, const struct net_device *dev)
{
	struct inet6_dev *in = __in6_dev_get(d);
	const struct inet6_ifaddr *a;

	if (!in)
		return;
	read_lock_bh(&in->lock);
	list_for_each_entry(a, &in->addr_list, if_list)
		if (!(a->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
			sgn_local_add(net, d, dev, 6, &a->addr, a->prefix_len, true);
	read_unlock_bh(&in->lock);
}

static bool sgn_is_published(const struct sgn *net, const struct sgn_local *l)
{
	return (net->publish == SG_NET_PUBLISH_ALL || l->own) && !l->loop &&
	       sgn_address_fits(&l->address);
}

static bool sgn_same(const struct sgn_address *a, const struct sgn_address *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool sgn_address_scan(struct sgn *net, const struct net_device *dev)
{
	struct sgn_hello now = { .version = SGN_VERSION, .serial = net->hello.serial,
		.mtu = READ_ONCE(dev->mtu) };
	const struct net_device *d;
	unsigned int i;

	net->nlocals = 0;
	net->crowded = false;
	rcu_read_lock();
	for_each_netdev_rcu(dev_net(dev), d)
		if (d->flags & IFF_UP) {
			sgn_scan_4(net, d, dev);
			sgn_scan_6(net, d, dev);
		}
	rcu_read_unlock();
	/* a device that is down receives nothing, so it has no addresses for others */
	for (i = 0; i < net->nlocals && READ_ONCE(net->up); i++)
		if (now.count < SGN_ADDRESSES && sgn_is_published(net, &net->local[i]))
			now.address[now.count++] = net->local[i].address;
	if (!memcmp(&now, &net->hello, sizeof(now)))
		return false;
	if (!++now.serial)
		now.serial++;
	net->hello = now;
	return true;
}

/* --- the table -------------------------------------------------------------------------------- */

static u32 sgn_hash(u8 family, const u8 *byte)
{
	return jhash(byte, family == 4 ? 4 : 16, family);
}

struct sgn_entry *sgn_entry_find(const struct sgn *net, u8 family, const u8 *byte)
{
	struct sgn_entry *e;

	hash_for_each_possible_rcu(net->entries, e, node, sgn_hash(family, byte))
		if (e->address.family == family &&
		    !memcmp(e->address.byte, byte, family == 4 ? 4 : 16))
			return e;
	return NULL;
}

static struct sgn_entry *sgn_entry_of(struct sgn *net, const struct sgn_address *a)
{
	struct sgn_entry *e;

	rcu_read_lock();	/* only the control changes the table, so the entry stays */
	e = sgn_entry_find(net, a->family, a->byte);
	rcu_read_unlock();
	return e;
}

static void sgn_entry_remove(struct sgn_entry *e, const struct net_device *dev)
{
	if (e->routed && dev)
		sgn_route(dev, e, SGN_ROUTE_REMOVE);
	hash_del_rcu(&e->node);
	kfree_rcu(e, rcu);
}

/* --- acceptance ------------------------------------------------------------------------------- */

static bool sgn_in_prefix(const struct sgn_address *a, const struct sgn_local *l)
{
	unsigned int bytes = l->prefix / 8, bits = l->prefix % 8;

	if (a->family != l->address.family || memcmp(a->byte, l->address.byte, bytes))
		return false;
	return !bits || !((a->byte[bytes] ^ l->address.byte[bytes]) >> (8 - bits));
}

/* Report whether peers may have addresses in the network of a local address. */
static bool sgn_is_shared(const struct sgn *net, const struct sgn_local *l)
{
	return l->prefix && !l->loop && (l->own || net->publish == SG_NET_PUBLISH_ALL);
}

static bool sgn_is_acceptable(struct sgn *net, const struct sgn_peer *p,
			      const struct sgn_address *a)
{
	const struct sgn_entry *e = sgn_entry_of(net, a);
	bool near = false;
	unsigned int i;

	/* an address that the table does not contain could be one of this system */
	if (net->crowded || (e && e->peer != p))
		return false;
	for (i = 0; i < net->nlocals; i++) {
		if (sgn_same(a, &net->local[i].address))
			return false;
		near |= sgn_is_shared(net, &net->local[i]) && sgn_in_prefix(a, &net->local[i]);
	}
	return near;
}

static void sgn_entry_add(struct sgn *net, struct sgn_peer *p, const struct sgn_address *a)
{
	struct sgn_entry *e;

	if (sgn_entry_of(net, a))
		return;
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return;		/* the next run tries again */
	e->address = *a;
	e->peer = p;
	hash_add_rcu(net->entries, &e->node, sgn_hash(a->family, a->byte));
}

static bool sgn_is_listed(const struct sgn_peer *p, const struct sgn_address *a)
{
	unsigned int i;

	for (i = 0; i < p->said.count; i++)
		if (p->accepted >> i & 1 && sgn_same(a, &p->said.address[i]))
			return true;
	return false;
}

void sgn_address_accept(struct sgn *net, struct sgn_peer *p)
{
	unsigned int i;

	p->accepted = 0;
	for (i = 0; i < p->said.count; i++)
		if (sgn_is_acceptable(net, p, &p->said.address[i])) {
			sgn_entry_add(net, p, &p->said.address[i]);
			if (sgn_entry_of(net, &p->said.address[i]))
				p->accepted |= 1u << i;
		}
}

/* --- routes ----------------------------------------------------------------------------------- */

/* Find an address of this system that the peer accepts as a source. */
static const struct sgn_address *sgn_source(const struct sgn *net, const struct sgn_peer *p,
					    u8 family)
{
	unsigned int i;

	if (p->said.echo != net->hello.serial || !rcu_access_pointer(p->tx))
		return NULL;
	for (i = 0; i < net->hello.count; i++)
		if (p->said.accepted >> i & 1 && net->hello.address[i].family == family)
			return &net->hello.address[i];
	return NULL;
}

static void sgn_entry_route(struct sgn *net, struct sgn_entry *e, const struct net_device *dev)
{
	const struct sgn_address *source = sgn_source(net, e->peer, e->address.family);

	if (e->routed && source && sgn_same(source, &e->source))
		return;
	if (!source || !READ_ONCE(net->up)) {
		if (e->routed)
			sgn_route(dev, e, SGN_ROUTE_REMOVE);
		e->routed = false;
		return;
	}
	e->source = *source;
	e->routed = !sgn_route(dev, e, SGN_ROUTE_SET);
}

/* The kernel removes a route with the address that is its preferred source, and tells nobody. */
void sgn_address_refresh(struct sgn *net, const struct net_device *dev)
{
	struct sgn_entry *e;
	int i;

	net->refreshed_at = jiffies;
	hash_for_each(net->entries, i, e, node)
		if (e->routed)
			e->routed = !sgn_route(dev, e, SGN_ROUTE_KEEP);
}

void sgn_address_route(struct sgn *net, struct sgn_peer *p, const struct net_device *dev)
{
	struct hlist_node *next;
	struct sgn_entry *e;
	int i;

	hash_for_each_safe(net->entries, i, next, e, node) {
		if (e->peer != p)
			continue;
		if (sgn_is_listed(p, &e->address))
			sgn_entry_route(net, e, dev);
		else
			sgn_entry_remove(e, dev);
	}
}

void sgn_address_forget(struct sgn *net, struct sgn_peer *p, const struct net_device *dev)
{
	struct hlist_node *next;
	struct sgn_entry *e;
	int i;

	hash_for_each_safe(net->entries, i, next, e, node)
		if (e->peer == p)
			sgn_entry_remove(e, dev);
}
