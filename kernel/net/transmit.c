// SPDX-License-Identifier: GPL-2.0
/*
 * Packets into rings. The destination address selects the peer, and the queue selects the ring: the
 * kernel spreads flows over queues by their hash. A packet of up to 64 KiB is one record, and the
 * receiver, or an interface behind it, divides it into segments.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>

#include "sgnet.h"

/* A peer that frees nothing for so long does not stop the traffic to other peers any more. */
#define SGN_STALL	(HZ / 10)

/* Report whether the receiver's check accepts this packet's segmentation (wire.h). */
static bool sgn_is_plain_tcp(const struct sk_buff *skb)
{
	u32 l4 = skb_transport_offset(skb);

	if (!(skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) ||
	    skb_shinfo(skb)->gso_size < SGN_SEGMENT_MIN)
		return false;
	if (skb->protocol == htons(ETH_P_IPV6) &&
	    (l4 != sizeof(struct ipv6hdr) || ipv6_hdr(skb)->nexthdr != IPPROTO_TCP))
		return false;
	return l4 + tcp_hdrlen(skb) <= SGN_HEAD_MAX;
}

netdev_features_t sgn_features_check(struct sk_buff *skb, struct net_device *dev,
				     netdev_features_t features)
{
	if (skb->encapsulation || (skb_is_gso(skb) && !sgn_is_plain_tcp(skb)))
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

/* A packet without a second segment, which programs of BPF can make, is a packet like others. */
static bool sgn_is_divided(const struct sk_buff *skb)
{
	return skb_is_gso(skb) &&
	       skb_transport_offset(skb) + tcp_hdrlen(skb) + skb_shinfo(skb)->gso_size < skb->len;
}

/* -EINVAL: the receiver would refuse the packet. */
static int sgn_describe(struct sk_buff *skb, struct sgn_frame *f)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	memset(f, 0, sizeof(*f));
	if (skb->ip_summed == CHECKSUM_PARTIAL &&
	    skb_checksum_start_offset(skb) + skb->csum_offset + 2u > SGN_HEAD_MAX &&
	    (skb_is_gso(skb) || skb_checksum_help(skb)))
		return -EINVAL;
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		f->flags = SGN_NEEDS_CSUM;
		f->csum_start = skb_checksum_start_offset(skb);
		f->csum_offset = skb->csum_offset;
	} else if (skb->ip_summed == CHECKSUM_UNNECESSARY) {
		f->flags = SGN_CSUM_VALID;
	}
	if (!sgn_is_divided(skb))
		return 0;
	f->gso = info->gso_type & SKB_GSO_TCPV6 ? SGN_GSO_TCP6 : SGN_GSO_TCP4;
	f->gso_size = info->gso_size;
	if (info->gso_type & SKB_GSO_TCP_ECN)
		f->flags |= SGN_GSO_ECN;
	return 0;
}

/* Find the peer's address; NULL: the packet is dropped. */
static struct sgn_entry *sgn_target(struct sgn_queue *q, struct sk_buff *skb, struct sgn_frame *f)
{
	struct sgn_entry *e = NULL;
	struct sgn_ip ip;
	u32 head = min_t(u32, skb->len, SGN_HEAD_MAX);

	if (!pskb_may_pull(skb, head) || sgn_describe(skb, f) ||
	    sgn_frame_check(f, skb->data, head, skb->len, &ip)) {
		sgn_add(q, SGN_TX_MALFORMED, 1);
		return NULL;
	}
	e = sgn_entry_find(q->net, ip.version, skb->data + ip.dest);
	if (!e)
		sgn_add(q, SGN_TX_NO_PEER, 1);
	return e;
}

/*
 * Stop the queue until there is room; or report that the peer has freed nothing for long, and so
 * its packets are dropped.
 */
static bool sgn_wait_for_room(struct sgn_queue *q, struct sgn_ring *r, unsigned int slot,
			      unsigned int index, struct netdev_queue *txq)
{
	if (!r->full) {
		r->full = true;
		r->full_since = jiffies;
	}
	if (time_after(jiffies, r->full_since + SGN_STALL))
		return false;
	q->waits_slot = slot;
	q->waits_ring = index;
	/* the poll of the queue starts it again, and may do so from now on */
	netif_tx_stop_queue(txq);
	return true;
}

static int sgn_send(struct sgn_queue *q, struct sk_buff *skb, const struct sgn_frame *f,
		    struct sgn_peer *p, struct netdev_queue *txq)
{
	struct sgn_side *tx = rcu_dereference_bh(p->tx);
	unsigned int i = tx ? q->index % tx->n : 0;
	struct sgn_ring *r;
	bool ring = false;
	int err;

	if (!tx)
		return -ENOTCONN;
	r = &tx->ring[i];
	spin_lock(&r->lock);
	err = sgn_ring_send(r, SGN_PACKET, f, sizeof(*f), skb);
	if (!err) {
		r->full = false;
		ring = r->asked;
	}
	if (err == -ENOBUFS && sgn_wait_for_room(q, r, p->slot, i, txq))
		err = -EBUSY;
	spin_unlock(&r->lock);
	if (ring)
		stargate_bell_ring(q->net->volume, p->slot);
	return err;
}

netdev_tx_t sgn_xmit(struct sk_buff *skb, struct net_device *dev)
{
	unsigned int index = skb_get_queue_mapping(skb), len = skb->len;
	struct sgn *net = sgn_of(dev);
	struct sgn_queue *q = &net->queue[index];
	struct sgn_frame frame;
	struct sgn_entry *e;
	int err = -EHOSTUNREACH;

	/* a fenced system stores nothing (D6) */
	if (unlikely(!stargate_volume_alive(net->volume)))
		goto drop;
	e = sgn_target(q, skb, &frame);
	if (!e)
		goto drop;
	err = sgn_send(q, skb, &frame, e->peer, netdev_get_tx_queue(dev, index));
	sgn_queue_hurry(q, ktime_get_ns());
	if (err == -EBUSY) {
		/* the poll starts the queue again, and no peer rings for room */
		sgn_queue_arm(q);
		sgn_add(q, SGN_TX_FULL, 1);
		return NETDEV_TX_BUSY;
	}
	if (!err) {
		sgn_add(q, SGN_TX_PACKETS, 1);
		sgn_add(q, SGN_TX_BYTES, len);
		skb_tx_timestamp(skb);
		consume_skb(skb);
		return NETDEV_TX_OK;
	}
	sgn_add(q, err == -ENOBUFS ? SGN_TX_STALLED : SGN_TX_NO_PEER, 1);
drop:
	kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* Report whether a stopped queue may send again: there is room, or the wait was too long. */
static bool sgn_may_resume(struct sgn_queue *q)
{
	struct sgn_peer *p = rcu_dereference(q->net->peer[q->waits_slot]);
	struct sgn_side *tx = p ? rcu_dereference(p->tx) : NULL;
	struct sgn_ring *r;
	bool room;

	if (!tx)
		return true;
	r = &tx->ring[q->waits_ring % tx->n];
	spin_lock(&r->lock);
	room = sgn_ring_has_room(r) || time_after(jiffies, r->full_since + SGN_STALL);
	spin_unlock(&r->lock);
	return room;
}

void sgn_xmit_resume(struct sgn_queue *q)
{
	struct netdev_queue *txq = netdev_get_tx_queue(q->napi.dev, q->index);

	if (netif_tx_queue_stopped(txq) && sgn_may_resume(q))
		netif_tx_wake_queue(txq);
}
